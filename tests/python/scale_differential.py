#!/usr/bin/env python3
"""Differential test: `--multiply`, `--add` and `--nan` against NumPy, and ml_dtypes for the floats that NumPy lacks.

    python tests/python/scale_differential.py --bin target/debug/tslice --count 2000 --seed 1

Every case is an array of random bits or of usual numbers, in either byte order and either order of memory, and a job:
a slice, a cast behind it, a gather, a join, several tensors of which some are no numbers, an assignment or a scatter, whose value
is scaled. Results are compared bit by bit, NaN payloads aside. `--only NUMBER` runs one again. Needs ml_dtypes.
"""

import random
import sys

import ml_dtypes
import numpy as np

import harness
from cases import Case
from formats import read_safetensors, safetensors_file
from harness import Failure

NATIVE = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
OTHERS = {"BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2}
FACTORS = ["0.5", "1/255", "-3", "1e-3", "0.1", "1e300", "1e-30", "65504", "0", "-0.0", "7/3", "1"]
SUMMANDS = ["1", "-273.15", "0", "1e10", "-0.5", "1/3", "1e-8", "-1e300"]


def number(text):
    first, _, second = text.partition("/")
    return float(first) / float(second) if second else float(first)


def random_array(rng, dtype, shape):
    """Random bits, or numbers of usual size with some NaN and infinities."""
    count = int(np.prod(shape))
    if dtype.kind in "iu" or rng.random() < 0.4:
        return np.frombuffer(rng.randbytes(count * dtype.itemsize), dtype).reshape(shape)
    values = np.array([rng.gauss(0, 1) * 2.0 ** rng.randint(-6, 6) for _ in range(count)])
    for special in (np.nan, np.inf, -np.inf, 0.0, -0.0):
        values[[rng.random() < 0.05 for _ in range(count)]] = special
    return values.astype(dtype).reshape(shape)


def scaled(array, scaling):
    """What NumPy makes of it: a number has the dtype of the array, integers are float64."""
    multiply, add, nan = (scaling.get(name) for name in ("multiply", "add", "nan"))
    if array.dtype.kind in "iu":
        if multiply is None and add is None:
            return array
        array = array.astype("f8")
    own = array.dtype.newbyteorder("=") if array.dtype.kind == "f" else array.dtype
    result = array.astype(own)
    one = lambda text: np.array(number(text)).astype(own)
    with np.errstate(all="ignore"):
        if multiply is not None:
            result = result * one(multiply)
        if add is not None:
            result = result + one(add)
        if nan is not None:
            result = np.where(np.isnan(result), one(nan), result)
    if result.dtype != own:
        raise Failure(f"NumPy makes {result.dtype} of {own}")
    return result


def check(found, expected, what):
    if found.shape != expected.shape or found.dtype.itemsize != expected.dtype.itemsize:
        raise Failure(f"{what}: {found.dtype} {found.shape} for {expected.dtype} {expected.shape}")
    # NumPy joins big-endian arrays to native ones
    if found.dtype.kind in "iuf":
        found = found.astype(found.dtype.newbyteorder("="))
    if expected.dtype.kind in "iuf":
        expected = expected.astype(expected.dtype.newbyteorder("="))
    bits = f"u{expected.dtype.itemsize}"
    with np.errstate(all="ignore"):
        nan = np.isnan(expected) if expected.dtype.kind not in "iub" else np.zeros(expected.shape, bool)
        same = (found.view(bits) == np.ascontiguousarray(expected).view(bits)) | (nan & np.isnan(found.view(expected.dtype)))
    if not same.all():
        at = tuple(np.argwhere(~same)[0])
        raise Failure(f"{what}: {found.view(expected.dtype)[at]!r} at {at}, NumPy has {expected[at]!r}")


def flags(rng):
    scaling = {}
    while not scaling:
        if rng.random() < 0.6:
            scaling["multiply"] = rng.choice(FACTORS)
        if rng.random() < 0.5:
            scaling["add"] = rng.choice(SUMMANDS)
        if rng.random() < 0.3:
            scaling["nan"] = rng.choice(["0", "-1", "1e5", "0.1"])
    return scaling, [f"--{name}={value}" for name, value in scaling.items()]


def run(case, line):
    status, out, err = case.run([*map(str, line), "-q"])
    if status:
        raise Failure(f"status {status}: {err!r}")
    return out


def native_case(case):
    rng = case.rng
    dtype = np.dtype(rng.choice("<>") + rng.choice(NATIVE))
    shape = [rng.choice([0, 1, 3, 40]) for _ in range(rng.choice([0, 1, 2, 2, 3]))]
    if rng.random() < 0.1:
        shape = [rng.choice([70001, 300000])]
    array = random_array(rng, dtype, shape)
    if rng.random() < 0.3 and shape:
        array = np.asfortranarray(array)
    np.save(case.path("a.npy"), array)
    scaling, line = flags(rng)
    job = rng.choice(["slice", "slice", "slice", "cast", "gather", "concat", "assign", "scatter", "pipe"])
    expected = scaled(array, scaling)
    if job in ("gather", "concat", "scatter") and (not shape or shape[0] == 0):
        job = "slice"
    if job == "slice":
        index, taken = rng.choice([(["[...]"], lambda a: a), (["[..., ::-1]"], lambda a: a[..., ::-1])] if shape else [([], lambda a: a)])
        order = rng.choice([[], ["--order", "F"]])
        run(case, ["a.npy", *index, *line, *order, "-o", "o.npy"])
        check(np.load(case.path("o.npy")), taken(expected), job)
    elif job == "cast":
        to = rng.choice(["f2", "f4", "f8"])
        run(case, ["a.npy", *line, "--cast", to, "-o", "o.npy"])
        with np.errstate(all="ignore"):
            check(np.load(case.path("o.npy")), expected.astype(to), job)
    elif job == "gather":
        rows = [rng.randrange(shape[0]) for _ in range(5)]
        run(case, ["gather", "a.npy", "--axis", "0", "--indices", str(rows), *line, "-o", "o.npy"])
        check(np.load(case.path("o.npy")), expected[rows], job)
    elif job == "concat":
        np.save(case.path("b.npy"), array[:1])
        run(case, ["concat", "a.npy", "b.npy", *line, "-o", "o.npy"])
        check(np.load(case.path("o.npy")), np.concatenate([expected, expected[:1]]), job)
    elif job == "pipe":
        with open(case.path("a.npy"), "rb") as file:
            data = file.read()
        status, _, err = case.run(["-", *line, "-o", "o.npy"], pipe_in=data)
        if status:
            raise Failure(f"status {status}: {err!r}")
        check(np.load(case.path("o.npy")), expected, job)
    else:
        target = np.zeros(shape, expected.dtype)
        np.save(case.path("t.npy"), target)
        if job == "assign":
            run(case, ["assign", "t.npy", "--value", "a.npy", *line, "-o", "o.npy"])
        else:
            np.save(case.path("i.npy"), np.arange(shape[0])[::-1].reshape(-1, 1))
            run(case, ["scatter", "t.npy", "--indices", "i.npy", "--values", "a.npy", *line, "-o", "o.npy"])
            expected = expected[::-1]
        check(np.load(case.path("o.npy")), expected, job)


def several_case(case):
    """A checkpoint: floats that NumPy lacks too, and tensors that are no numbers."""
    rng = case.rng
    scaling, line = flags(rng)
    arrays, entries = {}, {}
    for at in range(rng.randint(2, 4)):
        code = rng.choice([*OTHERS, "F32", "I32", "BOOL"])
        dtype = np.dtype({"F32": "f4", "I32": "i4", "BOOL": "?", **OTHERS}[code])
        shape = [rng.choice([1, 3, 300]), rng.choice([1, 4])]
        if code == "BOOL":
            array = np.array([rng.random() < 0.5 for _ in range(shape[0] * shape[1])]).reshape(shape)
        else:
            array = random_array(rng, dtype, shape)
        arrays[f"t{at}"] = array
        entries[f"t{at}"] = (code, shape, array.tobytes())
    case.write("m.safetensors", safetensors_file(entries))
    command = rng.choice([["m.safetensors"], ["merge", "m.safetensors"], ["m.safetensors", "-t", "*", "[::-1]"]])
    run(case, [*command, *line, "-o", "o.safetensors"])
    with open(case.path("o.safetensors"), "rb") as file:
        tensors, _ = read_safetensors(file.read())
    for name, array in arrays.items():
        expected = array if array.dtype.kind == "b" else scaled(array, scaling)
        if command[-1] == "[::-1]":
            expected = expected[::-1]
        _, shape, data = tensors[name]
        check(np.frombuffer(data, expected.dtype).reshape(shape), expected, f"{name} of {array.dtype}")
    alone = next((name for name, array in arrays.items() if array.dtype.kind == "b"), None)
    if alone:
        status, _, err = case.run(["m.safetensors", "-t", alone, *line, "-o", "x.npy"])
        if status != 1 or "elements of dtype bool are not scaled" not in err:
            raise Failure(f"bool alone: status {status}, {err!r}")


def one(job):
    options, number = job
    rng = random.Random(f"{options.seed} {number}")
    test = several_case if rng.random() < 0.3 else native_case
    return harness.run_case(Case(rng), test, number, options.keep)


def main():
    options = harness.case_parser(__doc__.split("\n")[0], 2000).parse_args()
    harness.begin(options)
    return harness.run_cases("scale_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
