#!/usr/bin/env python3
"""Differential test: layouts that are changed in less memory than they need, against NumPy.

    python tests/python/panels_differential.py --bin target/release/tslice --count 200 --seed 1

Every case is a file of 66 to 130 MiB that is not in memory, a random order of its axes, often with a crop, steps,
axes backwards, merged or split, or a cast, read by maps or by position, as a file, a part of an output, or from a pipe. It runs in a memory
control group of --memory MiB, page cache included. Every byte of the output is compared.

A case is a function of (seed, number): `--only NUMBER` runs one again, `--keep` leaves its files.
Needs the right to make control groups (root); without it everything is skipped.
"""

import io
import os
import random
import subprocess
import sys

import numpy as np

import harness
from cases import Case
from harness import Failure, MIB
from memory_group import enter, make_group, remove


def random_shape(rng, items):
    """About so many items; some axes are short, as those of channels are."""
    ndim = rng.choice([2, 2, 2, 3, 3, 4, 5])
    shape, left = [], items
    for _ in range(ndim - 1):
        most = max(2, round(left ** rng.uniform(0.1, 0.9)))
        shape.append(rng.choice([2, 3, 4, 7, rng.randint(1, most), most, 1 << max(1, most.bit_length() - 1)]))
        left = max(1, left // shape[-1])
    shape.append(left)
    rng.shuffle(shape)
    return shape


def random_index(rng, shape):
    items = []
    for length in shape:
        start, stop, step = None, None, None
        if rng.random() < 0.4:
            start, stop = sorted(rng.sample(range(length + 1), 2))
            if stop - start < length // 2:
                start = None
        if rng.random() < 0.25:
            step = rng.choice([-1, -1, 2, -3])
            if step < 0:
                start, stop = (None if stop is None else stop - 1), (None if not start else start - 1)
        items.append(slice(start, stop, step))
    words = [":".join("" if part is None else str(part) for part in (it.start, it.stop, it.step)) for it in items]
    return tuple(items), ", ".join(words).replace(": ", ":")


def split(rng, length):
    """Two lengths of which this is the product."""
    part = rng.choice([part for part in range(1, min(length, 200) + 1) if length % part == 0])
    return [part, length // part]


def forget(path):
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def panel_case(case, limit):
    group = make_group(limit)
    try:
        in_group(case, group)
    finally:
        remove(group)


def in_group(case, group):
    rng, directory = case.rng, case.dir
    dtype = np.dtype(rng.choice(["u1", "<i2", "<f4", "<f4", "<f8", "V3", "V12"]))
    shape = random_shape(rng, rng.randint(66 * MIB, 130 * MIB) // dtype.itemsize)
    fortran = rng.random() < 0.4
    path, out = os.path.join(directory, "in.npy"), os.path.join(directory, "out.npy")
    with open(path, "wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": fortran, "shape": tuple(shape)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(np.random.default_rng(rng.getrandbits(32)).bytes(int(np.prod(shape)) * dtype.itemsize))
    forget(path)

    line, seen = [path], list(shape)
    if rng.random() < 0.25:
        at = rng.randrange(len(shape))
        seen[at : at + 2] = rng.choice([[int(np.prod(shape[at : at + 2]))], split(rng, shape[at]) + shape[at + 1 : at + 2]])
        line.append("--reshape=" + ",".join(map(str, seen)))
    index = tuple(slice(None) for _ in seen)
    if rng.random() < 0.5:
        index, word = random_index(rng, seen)
        line.append(f"[{word}]")
    lens = [len(range(*it.indices(length))) for it, length in zip(index, seen)]
    names = [chr(ord("a") + at) for at in range(len(lens))]
    if rng.random() < 0.3:
        at = rng.randrange(len(lens))
        lens[at : at + 1] = split(rng, lens[at])
        names[at] = f"(x={lens[at]} y)"
    axes = list(range(len(lens)))
    rng.shuffle(axes)
    if len(lens) > len(names):
        apart = " ".join(names).replace("(x=", "x ").translate({ord(it): " " for it in "0123456789)"}).split()
        line += ["--rearrange", " ".join(names) + " -> " + " ".join(apart[at] for at in axes)]
    else:
        line.append("--transpose=" + ",".join(map(str, axes)))
    order = rng.choice("CCF")
    line += ["--order", order] if order == "F" else []
    cast = rng.choice(["<f8", "<f4", "<i8"]) if dtype.str in ("|u1", "<i2") and rng.random() < 0.3 else None
    line += ["--cast", np.dtype(cast).name] if cast else []
    line += ["-j", str(rng.randint(1, 3))] if rng.random() < 0.7 else []
    options = {"preexec_fn": lambda: enter(group), "timeout": 600}
    way = rng.choice(["map", "map", "map", "read", "read", "pipe", "parts", "stdout"])
    line += ["--io", "read"] if way == "read" else []
    if way == "pipe":
        options["stdin"] = subprocess.Popen(["cat", path], stdout=subprocess.PIPE).stdout
        line[0] = "-"
    case.story += ["tslice " + " ".join(line), f"{way}, shape {shape}, {dtype.str}, {'F' if fortran else 'C'} order"]

    def run(*more, **also):
        done = harness.tslice(*line, *more, **options, **also)
        if done.returncode or done.stderr:
            raise Failure(f"status {done.returncode}, {done.stderr.decode()!r:.500}")

    if way == "parts":
        parts = rng.randint(2, 4)
        for part in range(parts):
            run("-o", out, "--part", f"{part}/{parts}")
    elif way == "stdout":
        with open(out, "wb") as file:
            run(stdout=file)
    else:
        run("-o", out)

    whole = np.load(path, mmap_mode="r")
    if fortran and seen != shape:
        whole = np.ascontiguousarray(whole)
    result = whole.reshape(seen)[index].reshape(lens).transpose(axes)
    wanted = io.BytesIO()
    np.save(wanted, np.array(result.astype(cast) if cast else result, order=order))
    with open(out, "rb") as file:
        got = file.read()
    if got != wanted.getvalue():
        raise Failure(f"wrong bytes, {len(got)} for {len(wanted.getvalue())}")


def one(job):
    options, number = job

    def kind(case):
        panel_case(case, options.memory * MIB)

    return harness.run_case(Case(random.Random(f"{options.seed} {number}")), kind, number, options.keep)


def main():
    parser = harness.case_parser(__doc__.split("\n")[0], 200)
    parser.add_argument("--memory", type=int, default=64, help="MiB of a group")
    options = parser.parse_args()
    harness.begin(options)
    group = make_group(options.memory * MIB)
    if not group:
        print("SKIPPED  everything: no right to make a memory control group\n0 passed, 0 failed")
        return 0
    remove(group)
    return harness.run_cases("panels_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
