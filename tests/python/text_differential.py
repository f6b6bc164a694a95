#!/usr/bin/env python3
"""Differential test: datetimes, strings and structures as `.csv`, `.txt` and `.json`, against NumPy.

    python tests/python/text_differential.py --bin target/debug/tslice --count 1000 --seed 1

Every case is an array of a random dtype, simple or structured (nested, with subarrays), written as
text. It must read as what NumPy says of each value: np.datetime_as_string, tolist, the integer of a
length of time; and np.loadtxt must read the columns of a structure as the array itself. A case is a
function of (seed, number): `--only NUMBER` runs one again. Needs Python 3.9, NumPy 2.
"""

import csv
import json
import os
import random
import sys

import numpy as np

import harness
from cases import Case
from harness import Failure

UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "25s", "7D", "100ns"]
SIMPLE = ["<f4", ">f8", "<f2", "<i2", ">i8", "|u1", "|b1", "<c8", ">c16", "|S5", "<U3", ">U2"]
NAMES = ["x", "y", "z", "a.b", "größe", 'q"', "n 1"]


def random_dtype(rng, depth=0):
    if depth == 0 and rng.random() < 0.3 or depth > 0 and rng.random() < 0.7:
        if rng.random() < 0.4:
            return np.dtype(f"{rng.choice('<>')}{rng.choice('Mm')}8[{rng.choice(UNITS)}]")
        return np.dtype(rng.choice(SIMPLE))
    fields = []
    for name in rng.sample(NAMES, rng.randint(1, 4)):
        shape = rng.choice([()] * 4 + [(2,), (3, 2), (0,)])
        title = ("title of " + name, name) if rng.random() < 0.2 else name
        fields.append((title, random_dtype(rng, depth + 1) if depth < 2 else rng.choice(SIMPLE), shape))
    return np.dtype(fields, align=rng.random() < 0.4)


def fill(rng, array):
    """Random values: of strings, text; of times, some that are none."""
    kind = array.dtype.kind
    if array.dtype.names:
        for name in array.dtype.names:
            fill(rng, array[name])
    elif kind in "SU":
        letters = "ab,\" #" if rng.random() < 0.4 else "abc"
        text = lambda: "".join(rng.choice(letters) for _ in range(rng.randint(0, 3)))
        array[...] = np.array([text() for _ in range(array.size)], array.dtype).reshape(array.shape)
    elif kind == "b":
        array[...] = np.frombuffer(rng.randbytes(array.size), "u1").reshape(array.shape) % 2
    elif kind in "Mm":
        # within the years that NumPy can spell
        wide = rng.choice([10, 10**5, 10**9])
        times = [np.iinfo("i8").min if rng.random() < 0.1 else rng.randrange(-wide, wide) for _ in range(array.size)]
        if array.dtype.str[4:] in ("[Y]", "[M]", "[W]", "[D]", "[7D]"):
            times = [time if time < -(10**17) else time % 9000 for time in times]
        array[...] = np.array(times, "i8").view(array.dtype.newbyteorder("=")).reshape(array.shape)
    else:
        array[...] = np.frombuffer(rng.randbytes(array.nbytes), array.dtype).reshape(array.shape)


def texts(array):
    """The texts or numbers of all values of an array, those of fields one after the other."""
    if array.dtype.names:
        found = []
        for item in array.ravel():
            for name in array.dtype.names:
                found += texts(np.asarray(item[name], item.dtype.fields[name][0].base))
        return found
    return [plain(value) for value in array.ravel()]


def plain(value):
    kind = value.dtype.kind
    if kind == "M":
        return str(np.datetime_as_string(value))
    if kind == "m":
        return "NaT" if np.isnat(value) else int(value.astype("i8"))
    return value.decode() if kind == "S" else value


def nested(array):
    """The lists and objects of an array."""
    if array.ndim:
        return [nested(array[at, ...]) for at in range(len(array))]
    if array.dtype.names:
        fields = array.dtype.fields
        return {name: nested(np.asarray(array[name], fields[name][0].base)) for name in array.dtype.names}
    return plain(array[()])


def same_value(found, value):
    """A number or text of a file against what it must be; numbers as texts of their own type."""
    if isinstance(value, (str, np.str_)):
        return found == value
    if isinstance(value, int):
        return str(found) == str(value)
    if isinstance(value, np.bool_):
        return found in ((True, False)[not value], str(int(value)))
    if value.dtype.kind == "c":
        if isinstance(found, list):
            return same_value(found[0], value.real) and same_value(found[1], value.imag)
        again = complex(found)
        return same_value(again.real, value.real) and same_value(again.imag, value.imag)
    if value.dtype.kind == "f":
        with np.errstate(over="ignore"):
            again = np.array(float(found.replace("Infinity", "inf") if isinstance(found, str) else found)).astype(value.dtype)
        return bool(again == value or np.isnan(again) and np.isnan(value))
    return int(found) == int(value)


def same_nested(found, value):
    if isinstance(value, list):
        return isinstance(found, list) and len(found) == len(value) and all(map(same_nested, found, value))
    if isinstance(value, dict):
        return isinstance(found, dict) and list(found) == list(value) and all(same_nested(found[name], value[name]) for name in value)
    return same_value(found, value)


def columns(dtype):
    base, shape = dtype.subdtype or (dtype, ())
    count = int(np.prod(shape, dtype=int))
    return count * (sum(columns(base.fields[name][0]) for name in base.names) if base.names else 1)


def kinds(dtype):
    base = dtype.base
    return "".join(kinds(base.fields[name][0]) for name in base.names) if base.names else base.kind


def text_case(case):
    rng = case.rng
    dtype = random_dtype(rng)
    form = rng.choice(["csv", "txt", "json"])
    shape = [rng.choice([0, 1, 2, 5]) for _ in range(rng.randint(0, 4 if form == "json" else 2))]
    array = np.zeros(shape, dtype)
    fill(rng, array)
    path, out = os.path.join(case.dir, "in.npy"), os.path.join(case.dir, "out." + form)
    np.save(path, np.array(array, order=rng.choice("CF")))
    case.story += [f"{form} of shape {shape}, dtype {dtype}"]
    run = harness.tslice(path, "-o", out)
    told = run.stderr.decode()
    if columns(dtype) == 0:
        if run.returncode != 1 or "no equivalent" not in told:
            raise Failure(f"status {run.returncode}, {told!r}, of a dtype without values")
        return
    if run.returncode or told:
        raise Failure(f"status {run.returncode}, {told!r}")
    with open(out, newline="", encoding="utf-8") as file:
        text = file.read()
    if form == "json":
        if not same_nested(json.loads(text), nested(array)):
            raise Failure(f"{text!r} for {nested(array)!r}")
        return
    rows = list(csv.reader(text.splitlines(), delimiter="," if form == "csv" else " "))
    found, wanted = [value for row in rows for value in row], texts(array)
    lines = 1 if array.ndim == 0 else shape[0]
    lines = 0 if array.size == 0 and not (array.ndim == 2 and shape[1] == 0) else lines
    if len(rows) != lines or len(found) != len(wanted) or not all(map(same_value, found, wanted)):
        raise Failure(f"{text!r} for {wanted!r}")
    if array.ndim == 1 and array.size and dtype.names and not set(kinds(dtype)) & set("SUbmMc"):
        delimiter = "," if form == "csv" else None
        loaded = np.loadtxt(out, dtype=dtype.newbyteorder("="), delimiter=delimiter, ndmin=1)
        if loaded.shape != array.shape or not all(map(same_value, texts(loaded), wanted)):
            raise Failure(f"np.loadtxt reads {loaded!r} for {array!r}")


def one(job):
    options, number = job
    return harness.run_case(Case(random.Random(f"{options.seed} {number}")), text_case, number, options.keep)


def main():
    options = harness.case_parser(__doc__.split("\n")[0], 1000).parse_args()
    harness.begin(options)
    return harness.run_cases("text_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
