#!/usr/bin/env python3
"""Differential test: arrays in pickles against Python's pickle and NumPy; and hostile pickles.

    python tests/python/pickle_differential.py --bin target/debug/tslice --count 1000 --seed 1

Every case is a random object (dicts, lists, tuples, dataclasses, named tuples, deques, subclasses of dict and list) of arrays and
scalars of NumPy: of all dtypes, structures, either byte order, in C, Fortran and other orders, empty, without axes, several times the
same. It is pickled in a random protocol, as Python 3 or as Python 2 does, in a file of its own, or in an array of Python objects in a
`.npy` or `.npz`. `info` must list the names and dtypes that a walk through the object gives, slices and conversions must be
those of NumPy. Every tenth case is a hostile or damaged file instead: it must be an error in one line, or elements, in bounded memory,
and nothing in it may run; with `--hostile` all are, and the first 256 try each instruction of pickles. `--only NUMBER` runs one
again.
"""

import collections
import dataclasses
import functools
import io
import json
import os
import pickle
import random
import struct
import sys
import zipfile

import ml_dtypes
import numpy as np

import harness
import torch_differential as torch_cases
import torch_files as files
from cases import Case, check_hostile
from harness import Failure

# what a hostile pickle may take: its values, and the program
MEMORY = 128 << 20

KEYS = ["w", "mean", "layers.0.weight", "a b", "größe", 0, 7, -3, (1, "a"), None, True, 0.5]

DTYPES = ["f4", "f8", "f2", "g", ">f4", ">f8", "i1", ">i2", "i4", "i8", "u1", ">u8", "b1", "c8", ">c16", "S3", "S1", "U2", ">U2", "M8[D]",
          ">M8[ns]", "m8[25s]", "m8", "V4", "bfloat16", "float8_e4m3fn"]


@dataclasses.dataclass
class Model:
    weight: object = None
    bias: object = None


class Plain:
    """An object with attributes."""


class Named(dict):
    """A dict of another class."""


class Listed(list):
    """A list of another class."""


Pair = collections.namedtuple("Pair", "one other")


class Python2(pickle._Pickler):
    """Writes texts and bytes as Python 2 did: both are texts of bytes."""

    dispatch = dict(pickle._Pickler.dispatch)

    def write_value(self, raw, value):
        if self.proto == 0:
            self.write(b"S" + repr(raw)[1:].encode() + b"\n")
        elif len(raw) < 256:
            self.write(b"U" + bytes([len(raw)]) + raw)
        else:
            self.write(b"T" + struct.pack("<i", len(raw)) + raw)
        if id(value) not in self.memo:
            self.memoize(value)

    def write_bytes(self, value):
        self.write_value(value, value)

    def write_text(self, value):
        if value.isascii():
            self.write_value(value.encode(), value)
        else:
            self.save_str(value)

    dispatch[bytes] = write_bytes
    dispatch[str] = write_text


def pickled(rng, value, protocol, python2):
    file = io.BytesIO()
    (Python2 if python2 else pickle.Pickler)(file, protocol).dump(value)
    return file.getvalue()


# ---------------------------------------------------------------- objects


def random_structure(rng, depth=0):
    names = rng.sample(["a", "b", "größe", "x y", "z"], rng.choice([1, 2, 3]))
    fields = []
    for name in names:
        kind = random_structure(rng, depth + 1) if depth < 2 and rng.random() < 0.2 else np.dtype(rng.choice(["f4", ">i2", "u1", "S3", "U2", "M8[D]"]))
        name = ("title of " + name, name) if rng.random() < 0.1 else name
        fields.append((name, kind, rng.choice([(), (), (2,), (2, 3)])))
    return np.dtype(fields, align=rng.random() < 0.3)


def random_array(rng):
    """An array of random bytes in some order, or a scalar."""
    name = rng.choice(DTYPES)
    dtype = np.dtype(getattr(ml_dtypes, name, name)) if rng.random() < 0.85 else random_structure(rng)
    shape = tuple(rng.choice([0, 1, 2, 3, 5] if rng.random() < 0.2 else [1, 2, 3, 5]) for _ in range(rng.choice([0, 1, 2, 2, 3])))
    if rng.random() < 0.05:
        shape = (rng.randrange(100_000),)
    array = np.zeros(shape, dtype)
    if dtype.kind == "U":
        array[...] = rng.choice(["é", "ab", "", "\U0001f600", "\\u0041"])
    elif dtype.names is None and dtype.kind != "b" and array.size:
        flat = array.reshape(-1).view("u1") if dtype.itemsize else array
        flat[...] = np.frombuffer(rng.randbytes(flat.size), "u1")
        if dtype.char == "g":
            array[...] = rng.random()
    elif dtype.names is not None and array.size:
        first = array[dtype.names[0]]
        if first.dtype.kind in "fiu":
            first[...] = rng.randrange(100)
    elif array.size:
        array[...] = rng.random() < 0.5
    if rng.random() < 0.3:
        array = np.asfortranarray(array) if array.ndim else array
    elif rng.random() < 0.3 and array.ndim:
        array = rng.choice([array[::-1], array[..., :1], array.T, np.moveaxis(array, 0, -1)])
    elif rng.random() < 0.1 and array.ndim == 2 and dtype.kind in "fiu":
        array = np.asmatrix(array)
    # a text as a scalar loses the zeros at its end
    is_whole = array.ndim == 0 and (array.dtype.names is not None or array[()].dtype == np.asarray(array[()]).dtype == array.dtype)
    return array[()] if is_whole and rng.random() < 0.7 else array


def random_object(rng, arrays, depth=0):
    if depth == 3 or rng.random() < 0.3 + 0.1 * depth:
        if arrays and rng.random() < 0.1:
            return rng.choice(arrays)
        arrays.append(random_array(rng))
        return arrays[-1]
    if rng.random() < 0.15:
        return rng.choice([1, "text", None, 2.5, (1, 2), [], {}, b"bytes", "z" * 70_000, 2**80, np.dtype("f4"), {1, 2}])
    items = [random_object(rng, arrays, depth + 1) for _ in range(rng.choice([1, 2, 2, 3]))]
    kind = rng.choice([dict, dict, list, tuple, Named, Listed, Plain, Model, Pair, collections.deque, collections.OrderedDict])
    if kind is Pair:
        return Pair(*[*items, None][:2])
    if kind is Model:
        return Model(*items[:2])
    if kind is Plain:
        made = Plain()
        made.__dict__.update(zip(["weight", "bias", "größe"], items))
        return made
    return kind(zip(rng.sample(KEYS, len(items)), items)) if issubclass(kind, dict) else kind(items)


def named(value, path=""):
    """All arrays of an object by their names, as tslice writes these."""
    if isinstance(value, (np.ndarray, np.generic)):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            dot = "." if path else ""
            yield from named(item, f"{path}{dot}{key}" if isinstance(key, str) else f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple, collections.deque)):
        for number, item in enumerate(value):
            yield from named(item, f"{path}[{number}]")
    elif isinstance(value, (Plain, Model)):
        yield from named(vars(value), path)


def saved(case, value):
    """The file's name, and the arrays by their names in it."""
    rng = case.rng
    protocol = rng.choice([0, 1, 2, 3, 4, 5, 5])
    python2 = protocol < 3 and rng.random() < 0.4
    kind = rng.choice(["pickle", "pickle", "pickle", "npy", "npz"])
    case.story.append(f"{kind}, protocol {protocol}, Python {2 if python2 else 3}")
    if kind == "pickle":
        name = rng.choice(["x.pkl", "x.pickle", "x.data"])
        data = pickled(rng, value, protocol, python2)
        case.write(name, data)
        return name, list(named(value)), data
    shape = rng.choice([(), (1,), (3,), (2, 2)])
    objects = np.empty(shape, object)
    at = rng.randrange(max(objects.size, 1))
    objects.flat[at] = value
    if shape and rng.random() < 0.3:
        objects = np.asfortranarray(objects)
    index = [int(it) for it in np.unravel_index(at, shape)] if shape else []
    inner = list(named(value, str(index) if shape else ""))
    data = io.BytesIO()
    np.save(data, objects)
    data = data.getvalue()
    header = data.index(b"\n") + 1
    data = data[:header] + pickled(rng, objects, protocol, python2)
    if kind == "npy":
        case.write("x.npy", data)
        return "x.npy", inner, data
    plain = np.arange(3)
    with zipfile.ZipFile(case.path("x.npz"), "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        archive.writestr("m.npy", data)
        with archive.open("plain.npy", "w") as file:
            np.save(file, plain)
    with open(case.path("x.npz"), "rb") as file:
        data = file.read()
    return "x.npz", [(f"m{'' if not name or name.startswith('[') else '.'}{name}", array) for name, array in inner] + [("plain", plain)], data


def same(taken, expected, what):
    """Whether an array is that of NumPy: in its dtype, but for those that a .npy cannot say."""
    expected = np.asarray(expected)
    dtype = expected.dtype
    if dtype.kind == "V" and dtype.names is None and dtype != taken.dtype or dtype.name in ("bfloat16", "float8_e4m3fn"):
        taken = taken.view(dtype) if taken.dtype.itemsize == dtype.itemsize else taken
    is_same = taken.dtype == dtype or dtype.names is not None and taken.dtype.itemsize == dtype.itemsize
    # with bytes that hold nothing
    padded = dtype.names is not None or dtype.char == "g"
    if not is_same or taken.shape != expected.shape or not (taken.tobytes() == expected.tobytes() or padded and np.array_equal(taken, expected)):
        raise Failure(f"{what}: {taken.dtype} {taken.shape} {taken.tobytes()[:60]!r} for {dtype} {expected.shape} {expected.tobytes()[:60]!r}")


def slice_case(case):
    rng = case.rng
    value, arrays = {}, []
    while not arrays or len({name for name, _ in named(value)}) < len(list(named(value))):
        value, arrays = random_object(rng, arrays := []), arrays
    if rng.random() < 0.2 and isinstance(value, dict):
        value["objects"] = np.array([1, "x"], object)
    name, tensors, data = saved(case, value)
    bad = [name for name, array in tensors if array.dtype == object]
    tensors = [(name, array) for name, array in tensors if array.dtype != object]
    case.story.append(str([(name, np.asarray(array).dtype, np.shape(array)) for name, array in tensors])[:2000])
    run = harness.tslice("info", name, "--json", cwd=case.dir)
    if run.returncode != (1 if bad else 0):
        raise Failure(f"info: status {run.returncode}, {run.stderr[:300]!r}")
    found = json.loads(run.stdout)[0]
    if [it["name"] for it in found.get("unreadable", [])] != bad:
        raise Failure(f"unreadable: {found.get('unreadable')} for {bad}")
    if [(it["name"] or "", it["shape"]) for it in found["tensors"]] != [(name, list(np.shape(array))) for name, array in tensors]:
        raise Failure(f"names {[(it['name'], it['shape']) for it in found['tensors']]}")
    for path, array in rng.sample(tensors, min(len(tensors), 2)):
        array = np.asarray(array)
        index = torch_cases.random_index(rng, array.shape)
        expected = np.array(array[(*index, Ellipsis) if Ellipsis not in index else index])
        line = [torch_cases.spelled(index), *(["-t", path] if path else []), "--to", "npy", *rng.choice([[], ["-j", "3"]])]
        way = rng.random()
        if way < 0.2 and data[:1] not in b"(]}c)":
            status, out, err = case.run(["-", *line], stdin=name, pipe_in=data)
        else:
            status, out, err = case.run([name, *line, *rng.choice([[], ["--io", "read"]])])
        if status or err and "packed" not in err and array.dtype.kind != "V":
            raise Failure(f"{path}: status {status}, {err!r}")
        same(np.load(io.BytesIO(out)), expected, path)
    whole = rng.random()
    if whole < 0.4 and all(path for path, _ in tensors):
        status, _, err = case.run([name, "-o", "all.npz"])
        if status:
            raise Failure(f"to .npz: status {status}, {err!r}")
        with np.load(case.path("all.npz")) as loaded:
            for path, array in tensors:
                same(loaded[path], array, f"{path} in .npz")
        plain = all(array.dtype.name not in ("bfloat16", "float8_e4m3fn") and array.dtype.kind != "V" for _, array in tensors)
        if plain and not bad:
            status, _, err = case.run(["diff", name, "all.npz"])
            if status:
                raise Failure(f"diff: status {status}, {err!r}")


# ---------------------------------------------------------------- hostile files


def hostile_array(rng):
    """A pickle that says what is not so of arrays, or too much."""
    dtype = lambda name: files.call("numpy", "dtype", files.text(name), b"\x89", b"\x88")
    simple = lambda name: dtype(name) + files.tuple_of(b"K\x03", files.text("<"), b"N", b"N", b"N", b"J\xff\xff\xff\xff", b"J\xff\xff\xff\xff", b"K\x00") + b"b"
    array = lambda shape, of, data: (files.call("numpy.core.multiarray", "_reconstruct", files.name("numpy", "ndarray"), files.tuple_of(b"K\x00"), b"C\x01b")
                                     + files.tuple_of(b"K\x01", shape, of, b"\x89", data) + b"b")
    numbers = lambda *all: files.tuple_of(*map(files.integer, all))
    kind = rng.randrange(9)
    if kind == 0:  # shapes that do not fit, or no shapes
        shape = rng.choice([numbers(2**62, 2**62), numbers(-1), numbers(3), files.tuple_of(*[b"K\x01"] * 65), b"N", files.tuple_of(b"N"), numbers(2**40, 0)])
        return files.program(array(shape, simple("f4"), b"C\x04abcd"))
    if kind == 1:  # structures of structures, each twice the one before
        body = simple("f4") + b"q\x00"
        for level in range(40):
            size = files.integer(4 << level + 1) if level < 60 else b"K\x00"
            fields = b"}(" + files.text("a") + files.tuple_of(b"h" + bytes([level]), b"K\x00") + files.text("b") + files.tuple_of(b"h" + bytes([level]), files.integer(4 << level)) + b"u"
            body += b"0" + dtype("V8") + files.tuple_of(b"K\x03", files.text("|"), b"N", files.tuple_of(files.text("a"), files.text("b")), fields, size, b"K\x01", b"K\x10") + b"bq" + bytes([level + 1])
        return files.program(array(numbers(1), b"h\x28", b"C\x04abcd") if rng.random() < 0.5 else body)
    if kind == 2:  # a structure that is a field of itself
        fields = b"}" + files.text("a") + files.tuple_of(b"h\x00", b"K\x00") + b"s"
        return files.program(dtype("V8") + b"q\x00" + files.tuple_of(b"K\x03", files.text("|"), b"N", files.tuple_of(files.text("a")), fields, b"K\x08", b"K\x01", b"K\x10") + b"b")
    if kind == 3:  # dtypes that are none
        name = rng.choice(["", "f", "Q9", "O", "V", "U999999999999", "f4,f4", "a" * 70_000, "(2,)f4", "M8[xx]", "i3"])
        return files.program(array(numbers(1), simple(name), b"C\x04abcd"))
    if kind == 4:  # texts of protocol 0 that end nowhere, or are none
        line = rng.choice([b"V" + b"\\u00" * 20 + b"\n", b"V" + b"a" * 3_000_000, b"S'\\x4'\n", b"S\n", b"S'\n", b"V\\U0011ffff\n", b"V\\ud800\n", b"I" + b"9" * 70 + b"\n",
                           b"g99999999999\n", b"p-1\n", b"Fnone\n", b"L\n", b"P" + b"x" * 99 + b"\n", b"i\n\n", b"(o", b"(ios\nsystem\n"])
        return b"(" + files.name("numpy", "dtype") + line + b"." if rng.random() < 0.5 else files.program(line)
    if kind == 5:  # many dtypes of many fields
        names = b"(" + b"".join(files.text(f"f{number}") for number in range(3000)) + b"t"
        fields = b"}(" + b"".join(files.text(f"f{number}") + files.tuple_of(b"h\x00", files.integer(number * 4)) for number in range(3000)) + b"u"
        state = files.tuple_of(b"K\x03", files.text("|"), b"N", names + b"q\x01", fields + b"q\x02", files.integer(12000), b"K\x01", b"K\x10") + b"q\x03"
        return files.program(simple("f4") + b"q\x000" + state + b"0](" + (dtype("V8") + b"h\x03b") * 3000 + b"e")
    if kind == 6:  # elements as text, again and again
        body = files.text("é" * 400_000) + b"q\x000" + files.text("latin1") + b"q\x010](" + (files.name("_codecs", "encode") + b"h\x00h\x01\x86R") * 300 + b"e"
        return files.program(body)
    if kind == 7:  # axes in an order that is none
        order = rng.choice([numbers(0, 0), numbers(2, 1), numbers(0), numbers(-1, 0), b"N", numbers(1, 0)])
        return files.program(files.call("numpy._core.numeric", "_frombuffer", b"C\x04abcd", simple("u1"), numbers(2, 2), files.text("K"), order))
    return files.program(files.call("numpy.core.multiarray", "scalar", simple(rng.choice(["f4", "O", "S9"])), rng.choice([b"C\x03abc", files.text("abc"), b"N", b"]"])))


def hostile_case(case, code=None):
    rng, mark = case.rng, case.path("ran")
    name, says = "h.pkl", ()
    way = rng.random()
    if code is not None:
        data, says = torch_cases.instruction(rng, code)
        # it may begin as no pickle does
        says = ()
    elif way < 0.35:
        # of torch: without storages
        data, _ = torch_cases.hostile_pickle(rng, mark)
    elif way < 0.65:
        data = hostile_array(rng)
    else:
        arrays = []
        value = random_object(rng, arrays)
        name, _, data = saved(case, value)
        data = bytearray(data)
        if rng.random() < 0.4:
            data = data[:rng.randrange(len(data))]
        else:
            for _ in range(rng.randint(1, 4)):
                data[rng.randrange(len(data))] = rng.choice([rng.randrange(256), 0, 255, 0x2e])
        data = bytes(data)
    case.write(name, data)
    case.memory = MEMORY + len(data) // 4
    for line in [["info", name], [name, "-t", "*", "-o", "all.npz"]]:
        status, _, err = case.run(line)
        if os.path.exists(mark):
            raise Failure("the pickle was run")
        if status not in (0, 1) or "panicked" in err or "memory allocation" in err:
            raise Failure(f"status {status}, {err[:500]!r}")
        case.story.append(f"{data[:200]!r}")
        if line[0] == "info":
            check_hostile(collections.namedtuple("Run", "returncode stderr")(status, err.encode()), name, says)


def one(job):
    options, number = job
    kind = hostile_case if options.hostile or number % 10 == 9 else slice_case
    if options.hostile and number < 256:
        kind = functools.update_wrapper(functools.partial(hostile_case, code=number), hostile_case)
    return harness.run_case(Case(random.Random(f"{options.seed} {number}")), kind, number, options.keep)


def main():
    cases = harness.case_parser(__doc__.split("\n")[0], 1000)
    cases.add_argument("--hostile", action="store_true", help="hostile files alone")
    options = cases.parse_args()
    harness.begin(options)
    return harness.run_cases("pickle_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
