#!/usr/bin/env python3
"""Differential test: `--transpose` and `-T` against np.transpose.

    python tests/python/transpose_differential.py --bin target/debug/tslice --count 2000 --seed 1

Every case is a random array with items of 1 to 16 bytes, a random index with steps in both
directions, and a random permutation of the axes of the result: through a file, a pipe or a gather,
in either order of the output, now and then wrong. A case is a function of (seed, number): `--only
NUMBER` runs one again. Needs Python 3.9, NumPy 2.
"""

import io
import os
import random
import sys

import numpy as np

import harness
from cases import Case
from harness import Failure


def random_index(rng, shape):
    """A basic index, as text and as NumPy takes it."""
    items, texts = [], []
    for length in shape[: rng.randint(0, len(shape))]:
        kind = rng.random()
        if kind < 0.1:
            items.append(None)
            texts.append("None")
        elif kind < 0.25 and length:
            items.append(rng.randrange(-length, length))
            texts.append(str(items[-1]))
            continue
        start, stop = (rng.choice([None, rng.randint(-length - 1, length + 1)]) for _ in range(2))
        step = rng.choice([None, 1, 2, 3, -1, -2])
        items.append(slice(start, stop, step))
        texts.append(":".join("" if bound is None else str(bound) for bound in (start, stop, step)))
    return "[" + ", ".join(texts) + "]", tuple(items)


def transpose_case(case):
    rng, directory = case.rng, case.dir
    most = rng.choice([6, 6, 40])
    while True:
        shape = [rng.choice([0, 1, 2, 3, 5, most, 2 * most + 1]) for _ in range(rng.randint(0, 5))]
        size = rng.randint(1, 16)
        if np.prod(shape) * size < 300_000:
            break
    raw = rng.randbytes(int(np.prod(shape)) * size)
    array = np.frombuffer(raw, f"V{size}").reshape(shape) if raw else np.zeros(shape, f"V{size}")
    path = os.path.join(directory, "in.npy")
    np.save(path, np.array(array, order=rng.choice("CF")))

    if shape and shape[0] and rng.random() < 0.3:
        indices = rng.choices(range(shape[0]), k=rng.randint(1, 9))
        if rng.random() < 0.5:
            line, result = ["gather", path, "--axis", "0", "--indices", str(indices)], array[indices]
        else:
            line, result = [path, f"[{indices}]"], array[indices]
    else:
        text, index = random_index(rng, shape)
        line, result = [path, text], array[index]

    axes = list(range(result.ndim))
    rng.shuffle(axes)
    signed = [axis - result.ndim if rng.random() < 0.3 else axis for axis in axes]
    wrong = None
    if rng.random() < 0.1:
        line.append(rng.choice(["-T", "--transpose="]))
        axes = axes and list(range(result.ndim))[::-1]
    elif rng.random() < 0.1 and result.ndim:
        wrong = rng.choice([signed[1:], signed + [0], [result.ndim] + signed[1:], [signed[-1]] + signed[:-1]])
        if sorted(axis % result.ndim for axis in wrong) == sorted(axes) and max(wrong) < result.ndim:
            wrong = None
        elif not wrong:
            wrong = [0, 0]
        if wrong:
            line += ["--transpose", ",".join(map(str, wrong))]
        else:
            line += ["--transpose", ",".join(map(str, signed))]
    else:
        spelled = ",".join(map(str, signed))
        line += rng.choice([["--transpose", spelled], [f"--transpose={spelled}"], [f"--transpose=[{spelled}]"]])

    order = rng.choice("CCF")
    line += ["--order", order] if order == "F" else []
    line += rng.choice([[], ["--io", "read"]]) + ["-j", str(rng.randint(1, 3))]
    stdin = None
    if rng.random() < 0.3 and "--io" not in line:
        with open(path, "rb") as file:
            stdin = file.read()
        line[line.index(path)] = "-"
    out = os.path.join(directory, "out.npy") if rng.random() < 0.5 else None
    line += ["-o", out] if out else []
    case.story += ["tslice " + " ".join(line), f"shape {shape}, items of {size} bytes, transposed by {axes}"]
    run = harness.tslice(*line, **({} if stdin is None else {"input": stdin}))
    told = run.stderr.decode()
    if wrong:
        if run.returncode != 1 or not told.startswith("tslice: --transpose: ") or run.stdout:
            raise Failure(f"status {run.returncode}, {told!r} for wrong axes")
        return
    if run.returncode or told:
        raise Failure(f"status {run.returncode}, {told!r}")
    wanted = io.BytesIO()
    np.save(wanted, np.array(np.transpose(result, axes), order=order))
    got = run.stdout
    if out:
        with open(out, "rb") as file:
            got = file.read()
    if got != wanted.getvalue():
        raise Failure(f"wrong bytes, {len(got)} for {len(wanted.getvalue())}")


def one(job):
    options, number = job
    return harness.run_case(Case(random.Random(f"{options.seed} {number}")), transpose_case, number, options.keep)


def main():
    options = harness.case_parser(__doc__.split("\n")[0], 2000).parse_args()
    harness.begin(options)
    return harness.run_cases("transpose_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
