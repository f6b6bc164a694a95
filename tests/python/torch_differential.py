#!/usr/bin/env python3
"""Differential test: files of torch.save against PyTorch's own tensors; and hostile pickles.

    python tests/python/torch_differential.py --bin target/debug/tslice --count 2000 --seed 1

Every case is a random object (dicts, lists, tuples, parameters) of tensors of random dtypes, which are views
of storages that several of them share: with strides and offsets, expanded, without axes, empty. It is written
by torch.save, where PyTorch is there, or as torch.save writes it (big-endian ones, deflated ones too), and slices of
it must be those of PyTorch or NumPy. Objects of other classes hold tensors and stand beside them, and some files
are those of torch.save before 1.6. Every fifth case is arrays and scalars of NumPy as pickles of protocols 2 to 5 hold
them. Others write a `.pt` of a .safetensors, a .npz or a `.pt`: PyTorch must load it with `weights_only=True`, mapped too, and
Python's pickle without PyTorch. Every tenth case is a hostile file instead: it must be an error in one
line, and nothing in it may run; with `--hostile` all are, and the first 256 try each instruction of pickles.
`--only NUMBER` runs one again.
"""

import argparse
import collections
import datetime
import functools
import importlib
import io
import json
import os
import pathlib
import pickle
import random
import struct
import sys
import uuid
import warnings
import zipfile
from fractions import Fraction

import ml_dtypes
import numpy as np

import harness
import torch_files as files
from cases import Case, check_hostile, output_way
from harness import Failure
from torch_files import SIZES, View

KEYS = ["w", "layers.0.weight", "a b", "größe", "state", "é", "x[0]", 0, 7, -3, (1, "a"), None, True, 0.5,
        b"w", b"it's\n\\\xff\"", (b"'", 1)]

ATTRIBUTES = ["weight", "bias", "encoder", "args", "größe", "_parameters_", "w.x"]


def torch():
    """PyTorch, where it is there."""
    try:
        return importlib.import_module("torch")
    except (ImportError, OSError, ValueError):  # a library that it needs may be missing
        return None


# ---------------------------------------------------------------- objects


def random_view(rng, pool):
    """A view of a storage of the pool, or of a new one."""
    same = [it for it in pool if rng.random() < 0.5]
    if same:
        storage, dtype = same[0]
    else:
        dtype = rng.choice(list(SIZES))
        count = rng.choice([0, 1, 5, 60, 200, 200])
        data = rng.randbytes(count * SIZES[dtype])
        storage = bytes(b & 1 for b in data) if dtype == "bool" else data
        pool.append((storage, dtype))
    count, shape, strides = len(storage) // SIZES[dtype], [], []
    room = count
    for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 4])):
        length = rng.choice([1, 2, 3, 4, 7]) if room else 0
        length = rng.choice([length] * 9 + [0])
        stride = rng.choice([0, 1, 1, 2, 3, 5, 11])
        if length and (length - 1) * stride >= room:
            stride = 0
        shape.append(length)
        strides.append(stride)
        room -= max(length - 1, 0) * stride
    if rng.random() < 0.4 and 0 not in shape:
        # one after the other, in either order
        total, order = int(np.prod(shape)), rng.choice("CF")
        if total <= count:
            element = np.dtype("u1").itemsize
            strides = [s // element for s in np.empty(shape, "u1", order=order).strides]
            room = count - total + 1
    if 0 in shape or room <= 0:
        shape = shape if 0 in shape else [0]
        strides, room = [1] * len(shape), 1
    return View(storage, dtype, rng.randrange(room), shape, strides, rng.random() < 0.2 and dtype == "float32")


def random_object(rng, pool, depth=0):
    if depth == 3 or rng.random() < 0.3 + 0.1 * depth:
        return random_view(rng, pool)
    if rng.random() < 0.15:
        return rng.choice([1, "text", None, 2.5, (1, 2), [], {}])
    if rng.random() < 0.3:
        keys = rng.sample(ATTRIBUTES, rng.choice([0, 1, 2, 3]))
        return files.Holder(rng.choice(files.Holder.KINDS), {key: random_object(rng, pool, depth + 1) for key in keys})
    items = [random_object(rng, pool, depth + 1) for _ in range(rng.choice([1, 2, 2, 3]))]
    if rng.random() < 0.4:
        return rng.choice([list, tuple])(items)
    keys = rng.sample(KEYS, len(items))
    return rng.choice([dict, files.Ordered])(zip(keys, items))


def to_torch(value, module, storages):
    """The same object of PyTorch's tensors. Views of one storage share one there too."""
    if isinstance(value, View):
        dtype = getattr(module, value.dtype)
        if id(value.storage) not in storages:
            data = module.frombuffer(bytearray(value.storage), dtype=module.uint8) if value.storage else module.empty(0, dtype=module.uint8)
            storages[id(value.storage)] = data.untyped_storage()
        empty = module.empty(0, dtype=dtype)
        made = empty.set_(storages[id(value.storage)], value.offset, value.shape, value.strides)
        return module.nn.Parameter(made) if value.parameter else made
    if isinstance(value, files.Holder):
        return value.made(lambda item: to_torch(item, module, storages))
    if isinstance(value, dict):
        return {key: to_torch(item, module, storages) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(to_torch(item, module, storages) for item in value)
    return value


def beside(rng):
    """What stands in checkpoints beside tensors, and is none."""
    some = [pathlib.PurePosixPath("/a/b"), np.dtype("f4"), os.path.join, Fraction(1, 3),
            argparse.Namespace(lr=0.1, layers=[1, 2]), datetime.timedelta(1), collections.deque([1]), slice(1, 2), {1, 2}, 2**70,
            collections.Counter("ab"), collections.defaultdict(list, a=[1]), b"bytes", range(3), complex(1, 2), uuid.UUID(int=1)]
    return rng.sample(some, rng.choice([1, 2, 4]))


def compare_names(case, tensors):
    """`info` lists the tensors under their names."""
    run = harness.tslice("info", "m.pt", "--json", cwd=case.dir)
    if run.returncode:
        raise Failure(f"info: status {run.returncode}, {run.stderr[:300]!r}")
    found = json.loads(run.stdout)[0]["tensors"]
    names = [tensor["name"] or "" for tensor in found]
    if names != [name for name, _ in tensors]:
        raise Failure(f"names {names} for {[name for name, _ in tensors]}")
    for said, (name, view) in zip(found, tensors):
        flags, strides = view.array().flags, list(view.array().strides)
        if flags.c_contiguous or flags.f_contiguous:
            good = said["order"] in ["C"] * flags.c_contiguous + ["F"] * flags.f_contiguous and "strides" not in said
        else:
            # an axis of length 1 has any stride
            pairs = zip(view.shape, said.get("strides", []), strides)
            good = said["order"] == "strided" and all(length == 1 or ours == theirs for length, ours, theirs in pairs)
        if not good:
            raise Failure(f"{name}: {said}, with strides {strides}")


# ---------------------------------------------------------------- slices


def random_index(rng, shape):
    items = []
    for length in shape[: rng.randint(0, len(shape))]:
        if length and rng.random() < 0.4:
            items.append(rng.randrange(-length, length))
        else:
            bounds = [rng.choice([None, rng.randint(-9, 9)]) for _ in range(2)]
            items.append(slice(*bounds, rng.choice([None, 1, 2, 3, -1, -2])))
    if rng.random() < 0.2:
        items.insert(rng.randint(0, len(items)), None)
    if rng.random() < 0.3:
        items.append(Ellipsis)
    return tuple(items)


def spelled(index):
    def word(item):
        if isinstance(item, slice):
            parts = ["" if part is None else str(part) for part in (item.start, item.stop, item.step)]
            return ":".join(parts)
        return "..." if item is Ellipsis else "None" if item is None else str(item)

    return "[" + ", ".join(map(word, index)) + "]"


def torch_bytes(module, tensor, index):
    """What PyTorch takes, as bytes: it has no negative steps."""
    taken = tensor.detach()[index]
    flat = module.empty(taken.numel(), dtype=taken.dtype).copy_(taken.reshape(-1))
    return flat.view(module.uint8).numpy().tobytes() if taken.numel() else b"", tuple(taken.shape)


def slice_case(case):
    rng = case.rng
    pool = []
    value = random_object(rng, pool)
    while len({name for name, _ in files.named(value)}) < len(list(files.named(value))):
        value = random_object(rng, pool)
    tensors = list(files.named(value))
    path, module = case.path("m.pt"), torch() if rng.random() < 0.7 else None
    big = module is None and rng.random() < 0.3
    own = {}
    if module:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = to_torch(value, module, {})
            how = {"pickle_protocol": rng.choice([3, 4, 5])} if rng.random() < 0.3 else {}
            how |= {"_use_new_zipfile_serialization": False} if rng.random() < 0.4 else {}
            saved = made
            if rng.random() < 0.5:
                saved, tensors = {"saved": made, "beside": beside(rng)}, list(files.named({"saved": value}))
            module.save(saved, path, **how)
            case.story.append(f"torch.save(..., {how})")
        own = {name: to_torch(view, module, {}) for name, view in tensors}
    else:
        files.pt(value, path, big=big, deflated=rng.random() < 0.2)
    case.story.append(f"{'torch' if module else 'big' if big else 'little'}: {[name for name, _ in tensors]}")
    if not tensors:
        status, _, err = case.run(["m.pt"])
        return case.check_error(status, err, [1], "no tensors")
    compare_names(case, tensors)
    for name, view in rng.sample(tensors, min(len(tensors), 2)):
        index = random_index(rng, view.shape)
        line = ["m.pt", spelled(index)] + (["-t", name] if name else [])
        line += rng.choice([[], ["--io", "read"]]) + ["-j", str(rng.randint(1, 3))]
        array = view.array()
        expected = np.array(array[(*index, Ellipsis) if Ellipsis not in index else index])
        data, shape = expected.tobytes(), expected.shape
        if module and all(not isinstance(item, slice) or (item.step or 1) > 0 for item in index):
            theirs = torch_bytes(module, own[name], index)
            if theirs != (data, shape):
                raise Failure(f"the test itself: PyTorch and NumPy differ in {line}")
        case.story.append(f"{view.dtype} {view.shape} {view.strides} + {view.offset}")
        status, out, err = case.run(line + ["--to", "npy"])
        if status or err:
            raise Failure(f"status {status}, {err!r}")
        with io.BytesIO(out) as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            found, fortran, dtype = read(file)
            rest = file.read()
        if found != shape or fortran or dtype.itemsize != SIZES[view.dtype]:
            raise Failure(f"shape {found} and dtype {dtype} for {shape} and {view.dtype}")
        # what NumPy lacks is little-endian
        if rest != (files.swapped(data, view.dtype) if big and view.dtype != "bfloat16" else data):
            raise Failure(f"wrong bytes: {rest[:64]!r} for {data[:64]!r}")


# ---------------------------------------------------------------- files that are written

SAFETENSORS = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
               "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL", "complex64": "C64", "uint16": "U16",
               "uint32": "U32", "uint64": "U64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
               "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float8_e8m0fnu": "F8_E8M0"}


class Stub:
    """What a pickle calls or names: the name of a class or function, and what it was given."""

    def __init__(self, name):
        self.name = name

    def __call__(self, *given):
        return (self.name, *given)


class Unpickler(pickle.Unpickler):
    """Reads the pickle of an archive without PyTorch."""

    def find_class(self, module, name):
        return dict if (module, name) == ("collections", "OrderedDict") else Stub(f"{module}.{name}")

    def persistent_load(self, pid):
        return pid


def without_torch(path):
    """The names, dtypes, shapes and bytes of a file that tslice wrote, by Python's own modules."""
    found = []
    with zipfile.ZipFile(path) as archive, open(path, "rb") as file:
        if archive.testzip() or archive.namelist()[0] != "archive/data.pkl":
            raise Failure(f"members {archive.namelist()}")
        if (archive.read("archive/byteorder"), archive.read("archive/version")) != (b"little", b"3\n"):
            raise Failure("another byte order or version")
        for name, tensor in Unpickler(io.BytesIO(archive.read("archive/data.pkl"))).load().items():
            made, storage, offset, shape, strides, grad, hooks, *rest = tensor
            kind, stored, key, device, count = storage
            if (kind, device, offset, grad, hooks) != ("storage", "cpu", 0, False, {}):
                raise Failure(f"{name}: {tensor}")
            if rest:
                dtype = rest[0].name.removeprefix("torch.")
                good = made.endswith("_v3") and stored.name == "torch.storage.UntypedStorage" and dtype in files.UNTYPED
                size = 1
            else:
                dtype = next(it for it, of in files.STORAGES.items() if f"torch.{of}Storage" == stored.name)
                good, size = made.endswith("_v2"), SIZES[dtype]
            plain = [int(np.prod([max(n, 1) for n in shape[axis + 1:]], dtype=object)) for axis in range(len(shape))]
            member = archive.getinfo(f"archive/data/{key}")
            file.seek(member.header_offset + 26)
            at = member.header_offset + 30 + sum(struct.unpack("<HH", file.read(4)))
            if not good or list(strides) != plain or at % 64 or member.compress_type or member.file_size != count * size:
                raise Failure(f"{name}: {tensor} at {at}, {member}")
            found.append((name, dtype, tuple(shape), archive.read(member)))
    return found


def with_torch(module, path, **how):
    """The same, as PyTorch loads them."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loaded = module.load(path, weights_only=True, **how)
    for name, tensor in loaded.items():
        data = tensor.untyped_storage()
        data = module.empty(0, dtype=module.uint8).set_(data, 0, (len(data),), (1,)).numpy().tobytes() if len(data) else b""
        found.append((name, str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape), data))
    return found


def write_case(case):
    rng = case.rng
    tensors = {}
    for name in rng.sample([key for key in KEYS if isinstance(key, str)], rng.choice([1, 1, 2, 3, 5])):
        dtype = rng.choice(list(SIZES))
        shape = [rng.choice([0, 1, 2, 3, 7] if rng.random() < 0.3 else [1, 2, 3]) for _ in range(rng.choice([0, 1, 2, 3, 5]))]
        shape = [300, *shape] if rng.random() < 0.1 and len(shape) < 3 else shape
        data = rng.randbytes(int(np.prod(shape, dtype=object)) * SIZES[dtype])
        tensors[name] = View(bytes(b & 1 for b in data) if dtype == "bool" else data, dtype, 0, shape,
                             [int(np.prod(shape[axis + 1:])) for axis in range(len(shape))])
    says = None
    if any(it.dtype == "complex128" for it in tensors.values()) or rng.random() < 0.3:
        source = "m.pt"
        files.pt(tensors, case.path(source), big=rng.random() < 0.3, deflated=rng.random() < 0.2)
    else:
        source, at, header = "m.safetensors", 0, {}
        if rng.random() < 0.3:
            says, header = "note: the metadata of the input are left out", {"__metadata__": {"format": "pt"}}
        for name, it in tensors.items():
            end = at + len(it.storage)
            header[name] = {"dtype": SAFETENSORS[it.dtype], "shape": it.shape, "data_offsets": [at, end]}
            at = end
        text = json.dumps(header).encode()
        case.write(source, struct.pack("<Q", len(text)) + text + b"".join(it.storage for it in tensors.values()))
    expected = [(name, it.dtype, it.array()) for name, it in tensors.items()]
    line = [source]
    if rng.random() < 0.6:
        at = rng.randrange(len(expected))
        name, dtype, array = expected[at]
        index = random_index(rng, array.shape)
        line += ["-t", name.replace("[", "[[]"), spelled(index)]
        taken = (name, dtype, np.array(array[(*index, Ellipsis) if Ellipsis not in index else index]))
        if rng.random() < 0.5:
            line.append("--keep-rest")
            expected[at] = taken
        else:
            expected = [taken]
    if says and rng.random() < 0.4:
        line, says = [*line, "--no-metadata"], None
    line += ["-j", str(rng.randint(1, 3))]
    groups, out_name, stdout = output_way(rng, rng.choice(["pt", "pth"]))
    line += [word if word != "pth" or "." in word else "pt" for group in groups for word in group]
    status, out, err = case.run(line, stdout=stdout)
    if status or bool(err) != bool(says) or says not in (None, *[err[8:8 + len(says or "")]]):
        raise Failure(f"status {status}, {err!r}")
    if out_name is None:
        out_name = "again.pt"
        case.write(out_name, out)
    path = case.path(out_name)
    expected = [(name, dtype, array.shape, array.tobytes()) for name, dtype, array in expected]
    module = torch()
    ways = {"without PyTorch": without_torch(path)}
    if module:
        ways["torch.load"] = with_torch(module, path)
        ways["torch.load, mapped"] = with_torch(module, path, mmap=True)
    for way, found in ways.items():
        if found != expected:
            raise Failure(f"{way}: {[(*it[:3], it[3][:20]) for it in found]}, expected {[(*it[:3], it[3][:20]) for it in expected]}")
    run = harness.tslice("diff", source, out_name, "--exact", cwd=case.dir) if len(line) == 3 else None
    if run and run.returncode:
        raise Failure(f"diff: {run.stdout!r} {run.stderr!r}")


# ---------------------------------------------------------------- arrays of NumPy

DTYPES = ["f4", "f8", "f2", ">f4", ">i2", "i8", "u1", "b1", "c8", ">c16", "S3", "U2", ">U2", "M8[D]", "m8[25s]", "V4", "bfloat16"]


def random_array(rng):
    """An array of random bytes in some order, or a scalar."""
    name = rng.choice(DTYPES)
    dtype = np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)
    shape = tuple(rng.choice([0, 1, 2, 3, 5] if rng.random() < 0.2 else [1, 2, 3, 5]) for _ in range(rng.choice([0, 1, 2, 2, 3])))
    if rng.random() < 0.05:
        shape = (rng.randrange(200_000),)
    data = np.frombuffer(rng.randbytes(dtype.itemsize * int(np.prod(shape))), "u1")
    if dtype.kind == "b":
        data = data & 1
    if dtype.kind == "U":
        data = np.full(data.size // 4, ord("é"), dtype.str[0] + "u4").view("u1")
    array = data.view(dtype).reshape(shape)
    if rng.random() < 0.3:
        return np.asfortranarray(array)
    if rng.random() < 0.3 and array.ndim:
        return array[::-1]
    # an object whose scalar is one of NumPy's
    return array[()] if array.ndim == 0 and dtype.kind != "V" and rng.random() < 0.7 else array


def random_arrays(rng, depth=0):
    if depth == 2 or rng.random() < 0.5:
        return random_array(rng)
    items = [random_arrays(rng, depth + 1) for _ in range(rng.choice([1, 2, 3]))]
    return items if rng.random() < 0.5 else dict(zip(rng.sample(["w", "a b", 0, (1, "a"), b"w"], len(items)), items))


def arrays_case(case):
    """As NumPy pickles them; in an archive, or as torch.save wrote before 1.6."""
    rng = case.rng
    value = {"": 1, "all": random_arrays(rng), "masked": np.ma.array([1, 2]), "objects": np.array([1, "x"], object)}
    if rng.random() < 0.3:
        value["again"] = value["all"]
    tensors = [(name, array) for name, array in files.named(value) if not name.startswith(("masked", "objects", "again"))]
    if isinstance(value.get("again"), (np.ndarray, np.generic)):
        tensors.append(("again", value["again"]))
    protocol, is_old = rng.choice([2, 2, 3, 4, 5]), rng.random() < 0.3
    pickled = pickle.dumps(value, protocol)
    case.story.append(f"protocol {protocol}, old: {is_old}: {[(name, np.asarray(array).dtype, np.shape(array)) for name, array in tensors]}")
    path = case.path("m.pt")
    if is_old:
        files.old(path, pickled)
    else:
        files.write(path, pickled, deflated=rng.random() < 0.3)
    run = harness.tslice("info", "m.pt", "--json", cwd=case.dir)
    found = json.loads(run.stdout)[0]
    if run.returncode != 1 or [it["name"] for it in found["unreadable"]] != ["masked", "objects"]:
        raise Failure(f"info: status {run.returncode}, {found.get('unreadable')}")
    if [it["name"] for it in found["tensors"]] != [name for name, _ in tensors]:
        raise Failure(f"names {[it['name'] for it in found['tensors']]}")
    if harness.tslice("m.pt", "-o", "s.npz", "--strict", cwd=case.dir).returncode != 1:
        raise Failure("--strict leaves tensors out")
    for name, array in rng.sample(tensors, min(len(tensors), 3)):
        array = np.asarray(array)
        index = random_index(rng, array.shape)
        expected = np.array(array[(*index, Ellipsis) if Ellipsis not in index else index])
        line = ["m.pt", spelled(index), "-t", name, "--to", "npy", *rng.choice([[], ["--io", "read"]])]
        status, out, err = case.run(line)
        # bfloat16 is told of
        if status or err and array.dtype.kind != "V" and array.dtype != ml_dtypes.bfloat16:
            raise Failure(f"{line}: status {status}, {err!r}")
        taken = np.load(io.BytesIO(out))
        if (taken.shape, taken.tobytes()) != (expected.shape, expected.tobytes()):
            raise Failure(f"{line}: {taken!r} for {expected!r}")
        if array.dtype != ml_dtypes.bfloat16 and taken.dtype != array.dtype:
            raise Failure(f"{line}: {taken.dtype} for {array.dtype}")


# ---------------------------------------------------------------- hostile files


def ran():
    return os.path.join(os.getcwd(), "ran")


class Plain(pickle._Unpickler):
    """Reads pickles of plain values, and runs nothing."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError("a name")


def is_plain(data):
    try:
        Plain(io.BytesIO(data)).load()
    except Exception:  # whatever is wrong with it
        return False
    return True


def instruction(rng, code):
    """An instruction alone or behind a few values. Now and then that is a whole pickle, of a number say."""
    made = b"\x80\x02" + rng.choice([b"", b"(", b"](", b"}(", b"NN", b"(KK"]) + bytes([code]) + rng.randbytes(rng.randint(0, 12))
    return made, () if is_plain(made) else None


def hostile_pickle(rng, mark):
    """A pickle that must be refused, or the tensors of which must be; and which of both."""
    good = files.tensor(files.storage("FloatStorage", "0", 4), 0, [2, 2], [2, 1])
    attack = lambda module, attribute, *rest: files.name(module, attribute) + files.tuple_of(*rest) + b"R"
    shell = files.text(f"touch {mark}")
    kind = rng.randrange(23)
    if kind == 0:
        module, attribute = rng.choice([("os", "system"), ("posix", "system"), ("subprocess", "call"), ("builtins", "eval"),
                                        ("builtins", "exec"), ("__builtin__", "open"), ("torch", "load"), ("nt", "system"),
                                        ("torch._utils", "_import_dotted_name"), ("numpy", "load"), ("builtins", "getattr")])
        return files.program(attack(module, attribute, shell)), ()
    if kind == 1:  # by two texts, under a keyword, as an instance
        body = files.text("os") + files.text("system") + b"\x93" + files.tuple_of(shell) + rng.choice([b"R", b"\x81"])
        return files.program(body), ()
    if kind == 2:
        return files.program(f"(ios\nsystem\n".encode() if rng.random() < 0.5 else b"(" + files.name("os", "system") + shell + b"o"), ()
    if kind == 3:
        return instruction(rng, rng.randrange(256))
    if kind == 4:
        deep = rng.choice([1_001, 5_000, 200_000])
        return files.program(rng.choice([b"](" * deep + b"e" * deep, b")" + b"\x85" * deep])), None
    if kind == 5:  # lists of the same lists again: 2^60 tensors
        body = good + b"q\x00"
        for level in range(60):
            body += b"](h" + bytes([level]) + b"h" + bytes([level]) + b"eq" + bytes([level + 1])
        return files.program(body), ()
    if kind == 6:  # a list in itself
        return files.program(b"]q\x00h\x00a" if rng.random() < 0.5 else b"}q\x00" + files.text("a") + b"h\x00s"), ()
    if kind == 7:  # a stack without end
        return files.program(rng.choice([b"(", b"N", b"]", b")2", b"}"]) * 3_000_000), "more than"
    if kind == 8:
        return files.program(b"X\xff\xff\xff\xffabc" if rng.random() < 0.5 else b"\x8d" + b"\xff" * 8), "ends too early"
    if kind == 9:
        wrong = rng.choice([(0, [2**62, 2**62], [1, 1]), (0, [3, 2], [2, 1]), (5, [1], [1]), (0, [2], [2**62]), (2**62, [2], [1]),
                            (0, [2] * 65, [0] * 65), (0, [2**40, 2**40], [0, 0]), (-1, [2], [1]), (0, [-2], [1]), (0, [2], [-1]),
                            (0, [2, 2], [1])])
        return files.program(files.tensor(files.storage("FloatStorage", "0", 4), *wrong)), None
    if kind == 10:
        stored = rng.choice([files.storage("FloatStorage", "0", 5), files.storage("DoubleStorage", "0", 2**61), files.storage("FloatStorage", "9", 4),
                             files.storage("FloatStorage", "../../etc/passwd", 4), files.storage("QInt8Storage", "0", 4),
                             files.storage("FloatStorage", "0", -1)])
        return files.program(files.tensor(stored, 0, [2, 2], [2, 1])), None
    if kind == 11:  # conjugated when it is read
        metadata = b"}" + files.text("conj") + b"\x88s"
        stored = files.storage("ComplexFloatStorage", "0", 2)
        return files.program(files.call("torch._utils", "_rebuild_tensor_v2", stored, b"K\x00", files.tuple_of(b"K\x02"),
                                        files.tuple_of(b"K\x01"), b"\x89", files.EMPTY, metadata)), "1 tensor cannot be read"
    if kind == 12:
        return files.program(b"}(" + files.text("a.b") + good + files.text("a") + b"}" + files.text("b") + good + b"su"), "1 tensor cannot be read"
    if kind == 13:
        cut = files.program(good)
        return cut[:rng.randrange(len(cut))], None
    if kind == 14:  # keys of any length
        body = b"}X" + struct.pack("<I", 1 << 20) + b"k" * (1 << 20) + b"q\x00" + good + b"s"
        return files.program(body + b"q\x01" + b"".join(b"}h\x00h\x01sq\x01" for _ in range(300))), "names"
    if kind == 15:
        return files.program(files.call("torch._utils", rng.choice(["_rebuild_sparse_tensor", "_rebuild_qtensor"]), good)), ()
    if kind == 16:  # objects in objects, as arguments and as states
        deep = rng.choice([10, 999, 100_000])
        body = rng.choice([files.name("a", "b") * deep + good + b"\x85R" * deep, (files.name("a", "b") + b")\x81") * deep + good + b"b" * deep])
        return files.program(body), ()
    if kind == 17:  # an object that is its own argument, state, key and item
        body = files.name("a", "b") + b")\x81q\x00" + rng.choice([b"h\x00b", b"h\x00h\x00s", b"h\x00a", b"}h\x00h\x00sb", b"h\x00)R", b"h\x00\x85R"])
        return files.program(body), ()
    if kind == 18:  # objects of the same objects again
        body = files.name("a", "b") + good + b"\x85Rq\x00"
        for level in range(200):
            held = b"h" + bytes([level])
            body += files.name("a", "b") + held + held + b"\x86R" + held + b"bq" + bytes([level + 1])
        return files.program(body), ()
    if kind == 19:  # names without end
        return files.program(b"](" + b"".join(files.name(f"m{number}", "f" * 1000) for number in range(20_000)) + b"e"), ()
    if kind == 20:  # identifiers of storages that are none
        return files.program(rng.choice([b"N", b")", b"K\x01", files.text("0"), files.tuple_of(files.text("storage")), good]) + b"Q"), ()
    if kind == 21:  # tuples in tuples, a byte each
        return files.program(b"(" + (b")" + b"\x85" * 998) * 1000 + b"t"), "40 MiB"
    changed = bytearray(files.program(b"}" + files.text("w") + good + b"s"))
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(2, len(changed))] = rng.randrange(256)
    return bytes(changed), ()


def hostile_case(case, code=None):
    rng, mark = case.rng, case.path("ran")
    pickle, says = hostile_pickle(rng, mark) if code is None else instruction(rng, code)
    path = case.path("h.pt")
    if rng.random() < 0.3:
        files.old(path, pickle, ["0"], [(b"\0" * 16, rng.choice([4, 4, 4, 0, 2**61, 2**64 - 1]))], rng.choice([2, 3]))
        says = says and None
    else:
        files.write(path, pickle, [b"\0" * 16], deflated=rng.random() < 0.2)
    if rng.random() < 0.1:
        with open(path, "r+b") as file:
            at = rng.randrange(max(os.path.getsize(path) - 300, 0), os.path.getsize(path))
            file.seek(at)
            file.write(bytes([rng.randrange(256)]))
        says = ()
    run = harness.tslice("info", "h.pt", cwd=case.dir)
    case.story.append(f"{pickle[:200]!r}\n  status {run.returncode}: {run.stderr[:300]!r}")
    if os.path.exists(mark):
        raise Failure("the pickle was run")
    check_hostile(run, "h.pt", says)


def one(job):
    options, number = job
    kind = hostile_case if options.hostile or number % 10 == 9 else [slice_case, write_case, arrays_case, write_case, slice_case][number % 5]
    if options.hostile and number < 256:
        kind = functools.update_wrapper(functools.partial(hostile_case, code=number), hostile_case)
    return harness.run_case(Case(random.Random(f"{options.seed} {number}")), kind, number, options.keep)


def main():
    cases = harness.case_parser(__doc__.split("\n")[0], 2000)
    cases.add_argument("--hostile", action="store_true", help="hostile files alone")
    options = cases.parse_args()
    harness.begin(options)
    print("PyTorch", getattr(torch(), "__version__", "is not there: files are written as it writes them"))
    return harness.run_cases("torch_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
