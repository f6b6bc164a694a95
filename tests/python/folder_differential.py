#!/usr/bin/env python3
"""Differential test: folders of `.npy` written and read, and statistics of many files, against NumPy.

    python tests/python/folder_differential.py --bin target/debug/tslice --count 300 --seed 1

Two of three cases are a dict of random arrays whose names have numbers, folders and odd characters: written as a folder
from `.npz` or `.safetensors`, which NumPy must load; read again whole, by name, with an index, in natural order; replaced,
or refused where another file lies in it. The others are `view --stats` and `info` of files that a list names, by lines or
NUL bytes: counts and extremes are NumPy's, `--fail-on` names the files. `--only NUMBER` runs one again.
"""

import json
import os
import random
import re
import sys

import numpy as np

import harness
from cases import Case
from formats import safetensors_file
from harness import Failure

NAMES = ["a", "b10", "b9", "b2", "x.y", "layer.0.w", "layers/0/w", "layers/10/w", "layers/9/w", "é x", "d/e/f", "-", "w=1"]
BAD = ["a//b", "/a", "a/", ".hidden", "a/../b", "x/.y", "n" * 260, "a.npy/b"]
DTYPES = ["<u1", "<i2", ">i4", "<i8", "<f2", "<f4", ">f8", "<c8", "?"]


def random_array(rng):
    shape = [rng.choice([0, 1, 2, 3, 7]) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
    dtype = np.dtype(rng.choice(DTYPES))
    count = int(np.prod(shape))
    data = rng.randbytes(count * dtype.itemsize)
    if dtype.kind == "b":
        data = bytes(byte & 1 for byte in data)
    return np.frombuffer(data, dtype).reshape(shape)


def natural(name):
    return [(int(part), part) if part.isdigit() else (-1, part) for part in re.findall(r"[0-9]+|[^0-9]", name)]


def run(case, line, status=0):
    found, out, err = case.run([str(word) for word in line])
    if found != status:
        raise Failure(f"status {found}: {err!r}")
    return out, err


def files_in(folder):
    return {os.path.relpath(os.path.join(path, file), folder) for path, _, files in os.walk(folder) for file in files}


def check_folder(case, folder, arrays):
    found = files_in(case.path(folder))
    if found != {name + ".npy" for name in arrays}:
        raise Failure(f"{found} for {list(arrays)}")
    for name, array in arrays.items():
        loaded = np.load(case.path(f"{folder}/{name}.npy"))
        if loaded.dtype != array.dtype or loaded.shape != array.shape or loaded.tobytes() != array.tobytes():
            raise Failure(f"{name}: {loaded!r}, not {array!r}")


def folder_case(case):
    rng = case.rng
    names = rng.sample(NAMES, rng.randint(1, 6))
    arrays = {name: random_array(rng) for name in names}
    np.savez(case.path("in.npz"), **arrays)
    if rng.random() < 0.15:
        bad = rng.choice(BAD)
        case.write("bad.safetensors", safetensors_file({"x": ("U8", [1], b"a"), bad: ("F64", [1], bytes(8))}))
        _, err = run(case, ["bad.safetensors", "-o", "unz/", "--to", "npy"], 1)
        if os.path.exists(case.path("unz")) or ("path" not in err and "no file can have it" not in err):
            raise Failure(f"{bad!r}: {err!r}")
        return
    order = rng.choice([[], [], ["--order", "F"]])
    if rng.random() < 0.3:
        os.mkdir(case.path("unz"))
    target = "unz/" if not os.path.isdir(case.path("unz")) else rng.choice(["unz", "unz/"])
    run(case, ["in.npz", "-o", target, "--to", "npy", *order])
    check_folder(case, "unz", arrays)
    if rng.random() < 0.3:
        case.write("unz/.DS_Store", b"x")
    # read: names without the extension, in natural order
    out, _ = run(case, ["info", "unz", "--json"])
    listed = [tensor["name"] for tensor in json.loads(out)[0]["tensors"]]
    if listed != sorted(arrays, key=natural):
        raise Failure(f"{listed}, not {sorted(arrays, key=natural)}")
    run(case, ["unz/", "-o", "again.npz"])
    with np.load(case.path("again.npz")) as again:
        for name, array in arrays.items():
            if again[name].dtype != array.dtype or again[name].tobytes() != array.tobytes() or again[name].shape != array.shape:
                raise Failure(f"{name}: {again[name]!r}, not {array!r}")
    run(case, ["diff", "unz", "in.npz"])
    name = rng.choice(names)
    index = "[...]" if not arrays[name].ndim else "[::-1]"
    taken = arrays[name] if not arrays[name].ndim else arrays[name][::-1]
    run(case, ["unz", "-t", re.sub(r"([\\*?\[\]{}])", r"\\\1", name), index, "-o", "one.npy"])
    if np.load(case.path("one.npy")).tobytes() != taken.tobytes():
        raise Failure(f"{name}: {np.load(case.path('one.npy'))!r}, not {taken!r}")
    # an existing folder is replaced as a whole, if it is one of arrays
    others = {name: random_array(rng) for name in rng.sample(NAMES, rng.randint(1, 4))}
    np.savez(case.path("others.npz"), **others)
    run(case, ["others.npz", "-o", "unz/", "--to", "npy"], 1)
    if rng.random() < 0.5:
        case.write("unz/notes.txt", b"mine")
        before = files_in(case.path("unz"))
        run(case, ["others.npz", "-o", "unz/", "--to", "npy", "--force"], 1)
        if files_in(case.path("unz")) != before:
            raise Failure("a folder with other files was changed")
        run(case, ["info", "unz"], 1)
    else:
        run(case, ["others.npz", "-o", "unz/", "--to", "npy", "--force"])
        check_folder(case, "unz", others)
    leftovers = [name for name in os.listdir(case.dir) if name.startswith(".tslice")]
    if leftovers:
        raise Failure(f"left behind: {leftovers}")


def stats_case(case):
    rng = case.rng
    arrays, lines = {}, []
    for number in range(rng.randint(1, 6)):
        name = f"{rng.choice(['f', 'g h', 'é'])}{number}.{rng.choice(['npy', 'npz'])}"
        own = {}
        for key in "xy"[:1 if name.endswith("npy") else rng.randint(1, 2)]:
            values = np.array([rng.choice([0.0, 1.5, -3.0, rng.gauss(0, 5)]) for _ in range(rng.choice([1, 5, 40]))])
            if rng.random() < 0.3:
                values[rng.randrange(len(values))] = rng.choice([np.nan, np.inf, -np.inf])
            own[key] = values.astype(rng.choice(["<f4", "<f8", ">f8"]))
        if name.endswith("npy"):
            np.save(case.path(name), own["x"])
            own = {None: own["x"]}
        else:
            np.savez(case.path(name), **own)
        arrays[name] = own
        lines.append(name)
    missing = rng.random() < 0.15
    if missing:
        lines.insert(rng.randint(0, len(lines)), "nowhere.npy")
    null = rng.random() < 0.5
    text = "".join(line + ("\0" if null else "\n") for line in lines).encode()
    case.write("list", text)
    from_pipe = rng.random() < 0.5
    names = ["--files-from", "-" if from_pipe else "list", *(["-0"] if null else [])]
    call = lambda line: case.run([*line, *names], pipe_in=text if from_pipe else None)
    fail_on = rng.choice([None, "nan", "inf", "nan,inf", "zero"])
    as_json = rng.random() < 0.6
    status, out, err = call(["view", "--stats", "-q", *(["--json"] if as_json else []), *(["--fail-on", fail_on] if fail_on else [])])
    counts = {"nan": np.isnan, "inf": np.isinf, "zero": lambda a: a == 0}
    rows = [(name, key, array) for name, own in arrays.items() for key, array in own.items()]
    at_fault = {name for name, _, array in rows for what in (fail_on or "").split(",") if what and counts[what](array).any()}
    if status != (1 if at_fault or missing else 0) or any(name not in err for name in at_fault):
        raise Failure(f"status {status}, {err!r}; at fault: {at_fault}")
    if missing and "nowhere.npy: No such file" not in err:
        raise Failure(f"{err!r}")
    if as_json:
        records = [json.loads(line) for line in out.decode().splitlines()]
        if [(r["file"], r["name"]) for r in records] != [(name, key) for name, key, _ in rows]:
            raise Failure(f"{records}")
        for record, (_, _, array) in zip(records, rows):
            real = array[~np.isnan(array)]
            finite = real[np.isfinite(real)].astype("f8")
            extreme = lambda which: array.dtype.type(record[which]["value"])
            numbers = [record["nan"], record["infinite"], record["zero"], record["count"]]
            if numbers != [np.isnan(array).sum(), np.isinf(array).sum(), (array == 0).sum(), array.size]:
                raise Failure(f"{record}: {array!r}")
            if real.size and (extreme("min") != real.min() or extreme("max") != real.max()):
                raise Failure(f"{record}: {array!r}")
            if finite.size and not np.isclose(record["mean"], finite.mean(), rtol=1e-9, atol=1e-12):
                raise Failure(f"{record}: mean {finite.mean()}")
    else:
        table = out.decode().splitlines()
        if table[0].split()[:2] != ["file", "name"] or len(table) != 1 + len(rows):
            raise Failure(f"{table}")
        for line, (name, key, _) in zip(table[1:], rows):
            if not line.startswith(name) or key is not None and key not in line:
                raise Failure(f"{line!r} for {name}, {key}")
    status, out, err = call(["info", "--json"])
    found = [(file["file"], [tensor["name"] for tensor in file["tensors"]]) for file in json.loads(out)]
    if status != int(missing) or found != [(name, list(own)) for name, own in arrays.items()]:
        raise Failure(f"status {status}, {found}")


def one(job):
    options, number = job
    rng = random.Random(f"{options.seed} {number}")
    return harness.run_case(Case(rng), stats_case if number % 3 == 2 else folder_case, number, options.keep)


def main():
    options = harness.case_parser(__doc__.split("\n")[0], 300).parse_args()
    harness.begin(options)
    return harness.run_cases("folder_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
