#!/usr/bin/env python3
"""Differential test: `--field` against NumPy's fields of structured arrays.

    python tests/python/field_differential.py --bin target/debug/tslice --count 1000 --seed 1

Every case is a random structured dtype (nested, padded, with subarrays, strings and titles), a random
array of it, and a field, a field of a field, or several fields as `repack_fields(a[names])` has them;
and what a command makes of them: slices with lists and masks, transposed, in either order; np.take,
np.concatenate, np.stack, np.array_split, print. A case is a function of (seed, number): `--only NUMBER` runs
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
        title = ("title of " + name, name) if rng.random() < 0.2 else name
        fields.append((title, kind, shape) if shape else (title, kind))
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


def random_field(rng, array):
    """A field of an array as --field names it, what NumPy takes, and what is wrong with the name."""
    dtype = array.dtype
    if rng.random() < 0.4 and len(dtype.names) > 1:
        names = rng.sample(dtype.names, rng.randint(1, len(dtype.names)))
        if rng.random() < 0.1:
            return ",".join([*names, names[0]]), None, "named twice"
        last = "," if len(names) == 1 or rng.random() < 0.1 else ""
        return ",".join(names) + last, repack_fields(array[names]), None
    result, names = array, []
    while result.dtype.names and (not names or rng.random() < 0.8):
        name = rng.choice(result.dtype.names)
        title = result.dtype.fields[name][2:]
        names.append(title[0] if title and rng.random() < 0.5 else name)
        result = result[names[-1]]
    field = ".".join(names)
    if len(names) > 1 and any("." in name for name in names):
        return None, None, None  # a name with a dot is found by itself only
    if rng.random() < 0.1:
        return field + "q", None, "is named"
    return field, array[field] if field in dtype.fields else result, None


def random_index(rng, shape, with_lists):
    """An index as text, and as NumPy has it."""
    items = []
    for length in shape[: rng.randint(0, len(shape))]:
        kind = rng.random()
        if length and kind < 0.3:
            items.append(rng.randrange(-length, length))
        elif length and with_lists and kind < 0.6:
            items.append([rng.randrange(-length, length) for _ in range(rng.choice([1, 3, 3, 3]))])
        elif length < 8 and with_lists and kind < 0.7:
            items.append([rng.random() < 0.5 for _ in range(length)])
        else:
            items.append(slice(None, None, rng.choice([1, 2, -1])))
    if rng.random() < 0.3:
        items.insert(0, Ellipsis)
    spelled = [f"::{item.step}" if isinstance(item, slice) else "..." if item is Ellipsis else str(item) for item in items]
    items = [np.array(item, bool) if item == [] else item for item in items]
    return "[" + ", ".join(spelled) + "]", tuple(items)


def taken(result, index):
    """`result[index]`, an array with its dtype where it is a single element too."""
    if any(isinstance(item, (list, np.ndarray)) for item in index):
        return result[index]
    return result[index if Ellipsis in index else (*index, Ellipsis)]


def check(output, expected, order="C"):
    """Hold a .npy against an array: the header that np.save writes, and the bytes of all fields."""
    wanted = io.BytesIO()
    np.save(wanted, np.array(expected, order=order))
    header = len(wanted.getvalue()) - expected.nbytes
    found = np.load(io.BytesIO(output)) if output[:header] == wanted.getvalue()[:header] else None
    if found is None or not same(found, expected):
        raise Failure(f"wrong bytes: {output[:200]!r} for {wanted.getvalue()[:200]!r}")


def sliced(case, path, result, options):
    rng = case.rng
    text, index = random_index(rng, result.shape, with_lists=True)
    try:
        expected = taken(result, index)
    except IndexError:
        return None
    line = [path, text]
    if rng.random() < 0.3:
        line.append("-T")
        expected = expected.T
    order = rng.choice("CCF")
    line += ["--order", order] if order == "F" else []
    stdin = {}
    if rng.random() < 0.2 and "--io" not in options:
        with open(path, "rb") as file:
            stdin = {"input": file.read()}
        line[0] = "-"
    return line + options, stdin, lambda output: check(output, expected, order)


def gathered(case, path, result, options):
    rng = case.rng
    if result.ndim == 0 or 0 in result.shape:
        return None
    axis = rng.randrange(-result.ndim, result.ndim)
    indices = [rng.randrange(result.shape[axis]) for _ in range(rng.randint(1, 5))]
    expected = np.take(result, indices, axis)
    line = ["gather", path, "--indices", str(indices), "--axis", str(axis)]
    return line + options, {}, lambda output: check(output, expected)


def joined(case, path, result, options):
    rng = case.rng
    text, index = random_index(rng, result.shape, with_lists=rng.random() < 0.5)
    try:
        part = taken(result, index)
    except IndexError:
        return None
    command = rng.choice(["concat", "stack"]) if part.ndim else "stack"
    ndim = part.ndim + (command == "stack")
    axis = rng.randrange(-ndim, ndim)
    many = rng.randint(1, 4)
    join = np.concatenate if command == "concat" else np.stack
    expected = join([part] * many, axis, dtype=part.dtype)
    line = [command, *[path] * many, "--axis", str(axis), "--index", text]
    return line + options, {}, lambda output: check(output, expected)


def split(case, path, result, options):
    rng, directory = case.rng, case.dir
    text, index = random_index(rng, result.shape, with_lists=rng.random() < 0.5)
    try:
        whole = taken(result, index)
    except IndexError:
        return None
    if whole.ndim == 0:
        return None
    axis, many = rng.randrange(-whole.ndim, whole.ndim), rng.randint(1, 3)
    pattern = os.path.join(directory, "part-{}.npy")
    # -q: lengths that differ are noted, which the random splits look at
    line = ["split", "-q", path, text, "--axis", str(axis), "--parts", str(many), "-o", pattern]

    def check_all(output):
        for number, expected in enumerate(np.array_split(whole, many, axis)):
            with open(pattern.replace("{}", str(number)), "rb") as file:
                check(file.read(), expected)

    return line + options, {}, check_all


def viewed(case, path, result, options):
    """Numbers only: how structures are printed is view_differential's."""
    if result.dtype.kind not in "iu" or result.size > 1000:
        return None

    def check_text(output):
        told, expected = output.decode().rsplit("\nshape ", 1)[0], str(np.array(result))
        if told.rstrip("\n") != expected:
            raise Failure(f"{told!r} for {expected!r}")

    return ["view", path], {}, check_text


def field_case(case):
    rng, directory = case.rng, case.dir
    dtype = random_dtype(rng)
    shape = [rng.choice([0, 1, 2, 3, 7, 40]) for _ in range(rng.randint(0, 3))]
    array = np.zeros(shape, dtype)
    fill(rng, array)
    path = os.path.join(directory, "in.npy")
    np.save(path, np.array(array, order=rng.choice("CF")))
    field, result, wrong = random_field(rng, array)
    if field is None:
        return
    options = rng.choice([[], ["--io", "read"]]) + ["-j", str(rng.randint(1, 3))]
    if wrong:
        work = [path, *options], {}, None
    else:
        work = rng.choice([sliced] * 4 + [gathered, joined, joined, split, viewed])(case, path, result, options)
    if work is None:
        return
    line, stdin, check_output = work
    line += ["--field", field]
    case.story += ["tslice " + " ".join(line), f"shape {shape}, dtype {dtype}"]
    run = harness.tslice(*line, **stdin)
    told = run.stderr.decode()
    if wrong:
        if run.returncode != 1 or wrong not in told or run.stdout:
            raise Failure(f"status {run.returncode}, {told!r}, where something {wrong}")
        return
    if run.returncode or told:
        raise Failure(f"status {run.returncode}, {told!r}")
    check_output(run.stdout)


def one(job):
    options, number = job
    return harness.run_case(Case(random.Random(f"{options.seed} {number}")), field_case, number, options.keep)


def main():
    options = harness.case_parser(__doc__.split("\n")[0], 1000).parse_args()
    harness.begin(options)
    return harness.run_cases("field_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
