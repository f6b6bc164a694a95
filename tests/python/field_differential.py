#!/usr/bin/env python3
"""Differential test: `--field` against NumPy's fields of structured arrays.

    python tests/python/field_differential.py --bin target/debug/tslice --count 1000 --seed 1

Every case is a random structured dtype (nested, padded, with subarrays and strings), a random array
of it, and a field, a field of a field, or several fields as `repack_fields(a[names])` has them; with
an index, a transposition and an order. A case is a function of (seed, number): `--only NUMBER` runs
one again. Needs Python 3.9, NumPy 2.
"""

import io
import os
import random
import sys

import numpy as np
from numpy.lib.recfunctions import repack_fields

import harness
from cases import Case
from harness import Failure

SIMPLE = ["<f4", ">f8", "<i2", ">i8", "|u1", "|b1", "<c8", "|S5", "<U3", "<M8[s]", "|V3"]
NAMES = ["x", "y", "z", "pos", "a.b", "größe", "it's", "n 1"]


def random_dtype(rng, depth=0):
    fields = []
    for name in rng.sample(NAMES, rng.randint(1, 4)):
        kind = random_dtype(rng, depth + 1) if depth < 2 and rng.random() < 0.3 else rng.choice(SIMPLE)
        shape = rng.choice([()] * 4 + [(2,), (3, 2)])
        fields.append((name, kind, shape) if shape else (name, kind))
    return np.dtype(fields, align=rng.random() < 0.4)


def fill(rng, array):
    """Random numbers in all fields, zeros between them."""
    if array.dtype.names:
        for name in array.dtype.names:
            fill(rng, array[name])
    elif array.dtype.kind == "b":
        array[...] = np.frombuffer(rng.randbytes(array.size), "u1").reshape(array.shape) % 2
    else:
        array[...] = np.frombuffer(rng.randbytes(array.nbytes), array.dtype).reshape(array.shape)


def same(found, expected):
    """Whether all fields hold the same bytes; what lies between them NumPy does not copy."""
    if expected.dtype.names:
        return all(same(found[name], expected[name]) for name in expected.dtype.names)
    return found.tobytes() == expected.tobytes()


def field_case(case):
    rng, directory = case.rng, case.dir
    dtype = random_dtype(rng)
    shape = [rng.choice([0, 1, 2, 3, 7, 40]) for _ in range(rng.randint(0, 3))]
    array = np.zeros(shape, dtype)
    fill(rng, array)
    path = os.path.join(directory, "in.npy")
    np.save(path, np.array(array, order=rng.choice("CF")))

    wrong = None
    if rng.random() < 0.4 and len(dtype.names) > 1:
        names = rng.sample(dtype.names, rng.randint(2, len(dtype.names)))
        field, result = ",".join(names), repack_fields(array[names])
        if rng.random() < 0.1:
            field, wrong = field + "," + names[0], "named twice"
    else:
        result, names = array, []
        while result.dtype.names and (not names or rng.random() < 0.8):
            names.append(rng.choice(result.dtype.names))
            result = result[names[-1]]
            if any("." in name for name in names) and len(names) > 1:
                return  # a name with a dot is found by itself only
        field = ".".join(names)
        if rng.random() < 0.1:
            field, wrong = field + "q", "is named"
    if array.dtype.names and field in array.dtype.names:
        result = array[field]
    items = []
    for length in result.shape[: rng.randint(0, result.ndim)]:
        if length and rng.random() < 0.3:
            items.append((rng.randrange(-length, length), None))
        else:
            step = rng.choice([1, 2, -1])
            items.append((slice(None, None, step), f"::{step}"))
    index = tuple(item for item, _ in items)
    text = ", ".join(str(item) if spelled is None else spelled for item, spelled in items)
    if rng.random() < 0.3:
        index, text = (Ellipsis, *index), ", ".join(["...", text] if text else ["..."])
    expected = None
    try:
        # with an ellipsis a single element stays an array, and keeps its dtype
        expected = result[index if Ellipsis in index else (*index, Ellipsis)]
    except IndexError:
        wrong = wrong or "out of bounds"
    line = [path, "[" + text + "]", "--field", field]
    if expected is not None and rng.random() < 0.3:
        line.append("-T")
        expected = expected.T
    order = rng.choice("CCF")
    line += ["--order", order] if order == "F" else []
    line += rng.choice([[], ["--io", "read"]]) + ["-j", str(rng.randint(1, 3))]
    stdin = {}
    if rng.random() < 0.2 and "--io" not in line:
        with open(path, "rb") as file:
            stdin = {"input": file.read()}
        line[0] = "-"
    case.story += ["tslice " + " ".join(line), f"shape {shape}, dtype {dtype}"]
    run = harness.tslice(*line, **stdin)
    told = run.stderr.decode()
    if wrong:
        if run.returncode != 1 or wrong not in told or run.stdout:
            raise Failure(f"status {run.returncode}, {told!r}, where something {wrong}")
        return
    if run.returncode or told:
        raise Failure(f"status {run.returncode}, {told!r}")
    wanted = io.BytesIO()
    np.save(wanted, np.array(expected, order=order))
    header = len(wanted.getvalue()) - expected.nbytes
    found = np.load(io.BytesIO(run.stdout)) if run.stdout[:header] == wanted.getvalue()[:header] else None
    if found is None or not same(found, expected):
        raise Failure(f"wrong bytes: {run.stdout[:160]!r} for {wanted.getvalue()[:160]!r}")


def one(job):
    options, number = job
    return harness.run_case(Case(random.Random(f"{options.seed} {number}")), field_case, number, options.keep)


def main():
    options = harness.case_parser(__doc__.split("\n")[0], 1000).parse_args()
    harness.begin(options)
    return harness.run_cases("field_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
