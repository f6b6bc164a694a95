#!/usr/bin/env python3
"""Differential test: `tslice view` against NumPy's `print`.

    python tests/python/view_differential.py --bin target/debug/tslice --count 2000 --seed 1

Every case is a random array of any dtype, any shape and either order, whole or indexed, with
random options; what is printed must be what NumPy prints, character for character, and below it
name, shape and dtype. bfloat16 and the 8-bit floats are compared with ml_dtypes where it is
installed. A case is a function of (seed, number): `--only NUMBER` runs one again.
"""

import io
import random
import re
import sys

import numpy as np

import harness
import random_tensors
from cases import Case
from formats import safetensors_file
from harness import Failure

try:
    import ml_dtypes
    SMALL = {"BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
             "F8_E8M0": ml_dtypes.float8_e8m0fnu, "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
             "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz}
except ImportError:
    SMALL = {}

LENGTHS = [0, 1, 1, 2, 3, 3, 4, 5, 6, 7, 8, 12, 30]


def random_shape(rng):
    while True:
        if rng.random() < 0.15:
            return (rng.choice([999, 1000, 1001, 1500, 3000]),)
        shape = tuple(rng.choice(LENGTHS) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5])))
        if np.prod(shape, dtype=object) <= 5000:
            return shape


def floats(rng, dtype, count):
    """Floats of one kind: what decides between notations lies near thresholds."""
    numbers = np.random.default_rng(rng.randrange(2**32))
    kind = rng.randrange(9)
    with np.errstate(all="ignore"):
        if kind == 0:
            values = numbers.standard_normal(count)
        elif kind == 1:
            values = numbers.integers(-1000, 1001, count)
        elif kind == 2:
            values = numbers.integers(-10**9, 10**9, count) / 10 ** numbers.integers(0, 9, count)
        elif kind == 3:
            values = 10.0 ** numbers.integers(-6, 10, count) * numbers.choice([1, 1, -1, 0.9999999, 1.5], count)
        elif kind == 4:
            values = numbers.choice([0.5, 500, 500.00003, 1e-4, 1.0000001e-4, 0.1, 100, 0, -0.0], count)
        elif kind == 5:
            values = numbers.choice([99999999, 1e8, 99999999.5, 1, 999, 1000, 1e6, 999999.94], count)
        elif kind == 6:
            values = numbers.random(count) * rng.choice([1, 1e-3, 1e3, 1e7, 1e300, 1e-300])
        elif kind == 7:
            values = numbers.integers(0, 2**53, count, dtype="i8").astype("f8") * 2.0 ** rng.randrange(-60, 10)
        else:
            return None  # any bits
        values = np.asarray(values, "f8")
        if rng.random() < 0.3 and count:
            special = numbers.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], count)
            values = np.where(numbers.random(count) < rng.choice([0.1, 1.0]), special, values)
        if dtype.kind == "c":
            return (values + 1j * numbers.permutation(values)).astype(dtype)
        return values.astype(dtype)


def repair(array):
    """Bytes that NumPy itself cannot print become zeros: x87 floats that are no numbers, code
    points beyond the last, datetimes without a unit."""
    dtype = array.dtype
    if dtype.names is not None:
        for name in dtype.names:
            repair(array[name])
    elif dtype.kind == "U" and dtype.itemsize:
        points = np.ascontiguousarray(array).view("u4" if dtype.isnative else ">u4")
        # characters that are older than any Python, surrogates, private ones
        starts = np.array([0, 0, 0, 0x4e00, 0xd800, 0xe000, 0x1f600, 0x100000])
        good = (starts[points % 8] + points // 8 % 0x50).astype(points.dtype)
        array[...] = good.view(dtype).reshape(array.shape)
    elif dtype.char in "gG":
        array[...] = 0
    elif dtype.kind == "M" and np.datetime_data(dtype)[0] == "generic":
        array[...] = "NaT"


def random_array(rng):
    shape = random_shape(rng)
    count = int(np.prod(shape))
    dtype = random_tensors.random_dtype(rng)
    while dtype.itemsize * count > 1 << 20:
        dtype = random_tensors.random_dtype(rng)
    flat = None
    if dtype.kind in "fc" and dtype.names is None:
        flat = floats(rng, dtype, count)
    elif dtype.kind in "mM" and rng.random() < 0.7:
        flat = np.array([rng.randrange(-10**rng.randrange(1, 18), 10**rng.randrange(1, 18)) for _ in range(count)],
                        "i8").astype(dtype.str[0] + "i8").view(dtype)
        if rng.random() < 0.3 and count:
            flat[rng.randrange(count)] = "NaT"
    elif dtype.kind in "iu" and rng.random() < 0.7:
        flat = np.array([rng.randrange(0, 120) for _ in range(count)], dtype)
    elif dtype.kind in "SU" and rng.random() < 0.7:
        flat = np.array(["".join(rng.choice("abc'\"\\\n\té\u200b中😀 ") for _ in range(rng.randrange(9)))
                         for _ in range(count)] or [""], "U")[:count]
        flat = (np.char.encode(flat, "latin-1", "replace") if dtype.kind == "S" else flat).astype(dtype)
    if dtype == np.dtype(dtype.str[0] + "M8"):
        flat = np.full(count, "NaT", dtype)
    if flat is None:
        data = random_tensors.random_bytes(rng, count * dtype.itemsize)
        flat = np.frombuffer(bytearray(data), dtype) if data else np.zeros(count, dtype)
        if dtype.itemsize:
            repair(flat)
    return flat.reshape(shape)


def random_index(rng, shape):
    items = []
    for length in shape:
        draw = rng.random()
        if draw < 0.2 and length:
            items.append(str(rng.randrange(-length, length)))
        elif draw < 0.5:
            items.append(rng.choice(["::-1", "::2", "1:", ":-1", ":5"]))
        elif draw < 0.6 and length and not any("[" in item for item in items):
            items.append(str([rng.randrange(-length, length) for _ in range(rng.randrange(1, 12))]))
        else:
            items.append(":")
    return "[" + ", ".join(items) + "]"


def expected_text(array, options):
    if array.dtype == np.dtype(">m8"):
        # NumPy 2.4 finds a wrong maximum for lengths of time without a unit in the other byte order,
        # and its astype keeps that order
        array = array.byteswap().view("<m8")
    with np.printoptions(**options):
        text = str(array)
    # a string without quotes may hold surrogates, which no stream of UTF-8 takes
    if array.ndim == 0:
        text = re.sub("[\ud800-\udfff]", "\ufffd", text)
        # nor may what is not printable reach a terminal
        text = "".join(c if c.isprintable() or c in "\n\t" else f"\\u{{{ord(c):x}}}" for c in text)
    return text


def view_case(case):
    rng = case.rng
    if SMALL and rng.random() < 0.15:
        code = rng.choice(list(SMALL))
        shape = random_shape(rng)
        itemsize = np.dtype(SMALL[code]).itemsize
        data = random_tensors.random_bytes(rng, int(np.prod(shape)) * itemsize)
        array = np.frombuffer(data, SMALL[code]).reshape(shape)
        case.write("a.safetensors", safetensors_file({"x": (code, shape, data)}))
        name, footer = "a.safetensors", f"x, shape {{}}, dtype {array.dtype}"
    else:
        array = random_array(rng)
        out = io.BytesIO()
        np.save(out, np.array(array, order=rng.choice("CCF")))
        case.write("a.npy", out.getvalue())
        name, footer = "a.npy", "shape {}, dtype "
    args = ["view", name if rng.random() < 0.8 else "-"]
    index = random_index(rng, array.shape) if rng.random() < 0.4 else None
    if index:
        array = eval("array" + index) if index != "[]" else array
        array = np.asarray(array)
        args.append(index)
    options = {}
    if rng.random() < 0.2:
        options["precision"] = rng.randrange(0, 20)
        args += ["--precision", str(options["precision"])]
    draw = rng.random()
    if draw < 0.2:
        options["threshold"] = sys.maxsize
        args.append("--full")
    elif draw < 0.4:
        options["edgeitems"] = rng.randrange(1, 8)
        args += ["--edge", str(options["edgeitems"])]
    if rng.random() < 0.2:
        args += ["--io", "read"]
    case.story.append(f"array: {array.dtype!r} {array.shape}")
    expected = expected_text(array, options)
    pipe = None
    if args[1] == "-":
        with open(case.path(name), "rb") as file:
            pipe = file.read()
    status, out, err = case.run(args, stdin=name if pipe is not None else None, pipe_in=pipe)
    if status != 0 or err:
        raise Failure("it should have printed the array")
    shape = "(" + ", ".join(map(str, array.shape)) + ("," if array.ndim == 1 else "") + ")"
    text = out.decode("utf-8", "surrogateescape")
    values, _, last = text.rstrip("\n").rpartition("\n")
    if values != expected:
        pairs = zip(expected.split("\n") + [None], values.split("\n") + [None])
        line, (theirs, ours) = next((n, pair) for n, pair in enumerate(pairs) if pair[0] != pair[1])
        raise Failure(f"line {line}: expected\n{theirs!a}\nprinted\n{ours!a}")
    if not last.startswith(footer.format(shape)):
        raise Failure(f"the last line is {last!r}")


def one(job):
    options, number = job
    case = Case(random.Random(f"view {options.seed} {number}"))
    return harness.run_case(case, view_case, number, options.keep)


def main():
    options = harness.case_parser(__doc__.splitlines()[0], 2000).parse_args()
    harness.begin(options)
    sys.exit(harness.run_cases("view_differential", options, one, random_tensors.start_worker))


if __name__ == "__main__":
    main()
