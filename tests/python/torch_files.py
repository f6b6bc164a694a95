"""Files as torch.save writes them, without PyTorch: pickles put together from their instructions, in the
zip archive that torch.save makes of them.

    pt({"w": View(storage, dtype, offset, shape, strides)}, "m.pt", big=False)

A storage is the bytes of an array; several views may have one. Objects are dicts, lists, tuples, `Ordered`
(an OrderedDict), views, `Holder`s (objects of classes that tslice does not know) and plain values.
"""

import argparse
import struct
import types
import zipfile

import numpy as np

STORAGES = {"float64": "Double", "float32": "Float", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long",
            "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool",
            "complex128": "ComplexDouble", "complex64": "ComplexFloat"}
# PyTorch has no classes of storages for these: they are bytes, and tensors name the type
UNTYPED = {"uint16": 2, "uint32": 4, "uint64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1,
           "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1}
SIZES = {name: 2 if name == "bfloat16" else np.dtype(name).itemsize for name in STORAGES} | UNTYPED


class View:
    """A tensor: elements of a storage (bytes, compared by identity), little-endian."""

    def __init__(self, storage, dtype, offset, shape, strides, parameter=False):
        self.storage, self.dtype, self.offset = storage, dtype, offset
        self.shape, self.strides, self.parameter = tuple(shape), tuple(strides), parameter

    def array(self):
        """Its elements as unsigned integers of their size, or pairs of these."""
        size = SIZES[self.dtype]
        kind = np.dtype(f"<u{size}") if size <= 8 else np.dtype([("re", "<u8"), ("im", "<u8")])
        base = np.frombuffer(self.storage, kind)
        if 0 in self.shape:
            return np.empty(self.shape, kind)
        strides = [stride * size for stride in self.strides]
        return np.lib.stride_tricks.as_strided(base[self.offset:], self.shape, strides, writeable=False)


class Ordered(dict):
    """An OrderedDict."""


class Holder:
    """An object of a class that tslice does not know, with these items as attributes, or as arguments."""

    KINDS = ["namespace", "simple", "module", "attributes", "made"]

    def __init__(self, kind, items):
        self.kind, self.items = kind, items

    def parts(self):
        """The items of a module as it keeps them: parameters, buffers, modules, and then its attributes."""
        def place(value):
            if isinstance(value, View):
                return "_parameters" if value.parameter else "_buffers"
            return "_modules" if isinstance(value, Holder) and value.kind == "module" else ""
        parts = {"_parameters": {}, "_buffers": {}, "_modules": {}, "": {}}
        for key, value in self.items.items():
            parts[place(value)][key] = value
        return parts

    def made(self, value_of):
        """The object itself, of items that `value_of` makes."""
        if self.kind == "module":
            import torch
            module = torch.nn.Module()
            for part, items in self.parts().items():
                (getattr(module, part) if part else module.__dict__).update({k: value_of(v) for k, v in items.items()})
            return module
        items = {key: value_of(value) for key, value in self.items.items()}
        if self.kind == "made":
            return Made(*items.values())
        if self.kind == "attributes":
            return AttributeDict(items)
        made = argparse.Namespace() if self.kind == "namespace" else types.SimpleNamespace()
        made.__dict__.update(items)
        return made

    def named(self, path):
        """As `named` does."""
        if self.kind == "made":
            yield from named(list(self.items.values()), path)
        elif self.kind == "module":
            for items in self.parts().values():
                yield from named(items, path)
        else:
            yield from named(self.items, path)


class AttributeDict(dict):
    """As that of Lightning."""


class Made:
    """What a call with arguments makes."""

    def __init__(self, *items):
        self.items = items

    def __reduce__(self):
        return Made, self.items


# ---------------------------------------------------------------- instructions


def text(value):
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def integer(value):
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if -2**31 <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    raw = value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def name(module, attribute):
    return f"c{module}\n{attribute}\n".encode()


def tuple_of(*parts):
    return b"(" + b"".join(parts) + b"t"


def call(module, attribute, *arguments):
    return name(module, attribute) + tuple_of(*arguments) + b"R"


EMPTY = call("collections", "OrderedDict")


def storage(kind, key, count, device="cpu"):
    module = "torch.storage" if kind == "UntypedStorage" else "torch"
    return tuple_of(text("storage"), name(module, kind), text(key), text(device), integer(count)) + b"Q"


def tensor(stored, offset, shape, strides, *more):
    """`_rebuild_tensor_v2`, or v3 where a dtype follows."""
    version = "_rebuild_tensor_v3" if more else "_rebuild_tensor_v2"
    return call("torch._utils", version, stored, integer(offset), tuple_of(*map(integer, shape)),
                tuple_of(*map(integer, strides)), b"\x89", EMPTY, *more)


def program(*parts):
    return b"\x80\x02" + b"".join(parts) + b"."


# ---------------------------------------------------------------- whole files


class Archive:
    """The storages that views have, in the order in which they come."""

    def __init__(self):
        self.storages = []

    def key(self, view):
        for number, (held, _) in enumerate(self.storages):
            if held is view.storage:
                return str(number)
        self.storages.append((view.storage, view.dtype))
        return str(len(self.storages) - 1)

    def pickle(self, value):
        if isinstance(value, View):
            key, size = self.key(value), SIZES[value.dtype]
            if value.dtype in STORAGES:
                stored = storage(STORAGES[value.dtype] + "Storage", key, len(value.storage) // size)
                made = tensor(stored, value.offset, value.shape, value.strides)
            else:
                stored = storage("UntypedStorage", key, len(value.storage))
                made = tensor(stored, value.offset, value.shape, value.strides, name("torch", value.dtype))
            return call("torch._utils", "_rebuild_parameter", made, b"\x88", EMPTY) if value.parameter else made
        if isinstance(value, Holder):
            if value.kind == "made":
                return call("torch_files", "Made", *map(self.pickle, value.items.values()))
            made = name("torch_files", value.kind) + b")\x81"
            if value.kind == "attributes":
                return made + b"(" + b"".join(self.pickle(k) + self.pickle(v) for k, v in value.items.items()) + b"u"
            parts = value.parts() if value.kind == "module" else {"": value.items}
            return made + self.pickle({k: v for k, v in parts.items() if k} | parts[""]) + b"b"
        if isinstance(value, dict):
            items = [self.pickle(k) + self.pickle(v) for k, v in value.items()]
            # as many at a time as Python's own
            batches = [b"".join(items[at:at + 1000]) for at in range(0, max(len(items), 1), 1000)]
            return (EMPTY if isinstance(value, Ordered) else b"}") + b"".join(b"(" + batch + b"u" for batch in batches)
        if isinstance(value, bytes):
            return b"C" + bytes([len(value)]) + value
        if isinstance(value, list):
            return b"](" + b"".join(map(self.pickle, value)) + b"e"
        if isinstance(value, tuple):
            return tuple_of(*map(self.pickle, value))
        if value is None or isinstance(value, bool):
            return {None: b"N", True: b"\x88", False: b"\x89"}[value]
        if isinstance(value, int):
            return integer(value)
        if isinstance(value, float):
            return b"G" + struct.pack(">d", value)
        return text(value)


def swapped(data, dtype):
    """Bytes of elements in the other order; complex numbers in halves."""
    size = SIZES[dtype] // (2 if dtype.startswith("complex") else 1)
    return np.frombuffer(data, f"<u{size}").byteswap().tobytes() if size > 1 else data


def write(path, pickle, storages=(), folder="archive", order=b"little", deflated=False):
    """An archive with this pickle and these members below `data`."""
    method = zipfile.ZIP_DEFLATED if deflated else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", method) as file:
        file.writestr(f"{folder}/data.pkl", pickle)
        if order is not None:
            file.writestr(f"{folder}/byteorder", order)
        for number, data in enumerate(storages):
            file.writestr(f"{folder}/data/{number}", data)
        file.writestr(f"{folder}/version", b"3\n")


def pt(value, path, big=False, **options):
    archive = Archive()
    made = program(archive.pickle(value))
    storages = [swapped(data, dtype) if big else data for data, dtype in archive.storages]
    write(path, made, storages, order=b"big" if big else b"little", **options)


def old(path, pickle, keys=(), storages=(), protocol=2):
    """What torch.save wrote before 1.6; a storage is its bytes, and the number of its elements."""
    head = [b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.", integer(1001), b"}"]
    made = b"".join(b"\x80" + bytes([protocol]) + part.removesuffix(b".") + b"." for part in head)
    with open(path, "wb") as file:
        file.write(made + pickle + program(b"](" + b"".join(map(text, keys)) + b"e"))
        for data, count in storages:
            file.write(struct.pack("<Q", count) + data)


def named(value, path=""):
    """All tensors of an object by their names, as tslice writes these."""
    if isinstance(value, Holder):
        yield from value.named(path)
        return
    if isinstance(value, dict):
        for key, item in value.items():
            dot = "." if path else ""
            inner = f"{path}{dot}{key}" if isinstance(key, str) else f"{path}[{key!r}]"
            yield from named(item, inner)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from named(item, f"{path}[{number}]")
    elif hasattr(value, "shape") and hasattr(value, "dtype"):
        yield path, value
