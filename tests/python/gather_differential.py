#!/usr/bin/env python3
"""Differential test: `tslice gather` against NumPy.

    python tests/python/gather_differential.py --bin target/debug/tslice --count 2000 --seed 1

Every case is a random tensor, random indices, and a random way in and out: .npy or .safetensors,
either order, either byte order, files, pipes or a typed list. The oracle is gather_reference.py.
A case is a function of (seed, number): `--only NUMBER` runs one again. Needs Python 3.9, NumPy 2.
"""

import io
import os
import random
import sys

import numpy as np

import gather_reference as reference
import harness
from cases import Case
from formats import safetensors_file
from harness import Failure

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
NAMES = {"i1": "I8", "i2": "I16", "i4": "I32", "i8": "I64", "u1": "U8", "u2": "U16", "u4": "U32", "u8": "U64",
         "f2": "F16", "f4": "F32", "f8": "F64", "c8": "C64"}


def random_shape(rng, least, most):
    return [rng.choice([0, 1, 2, 2, 3, 4, 5, 7, 30]) for _ in range(rng.randint(least, most))]


def random_case(rng):
    while True:
        params = random_shape(rng, 0, 4)
        batch = rng.randint(0, max(len(params) - 1, 0)) if rng.random() < 0.4 else 0
        axis = rng.randrange(batch, len(params)) if len(params) > batch and rng.random() < 0.5 else None
        shape = params[:batch] + random_shape(rng, 0, 2)
        count = rng.randint(0, len(params) - batch)
        lens = params[batch : batch + count] if axis is None else [params[axis]]
        if axis is None:
            shape.append(count)
        size = np.prod(shape) * np.prod(params)
        if np.prod(params) < 20_000 and np.prod(shape) < 2000 and size < 10**7:
            break
    mode = rng.choice(["error"] * 4 + ["clip", "wrap", "zero"])
    negative = mode != "wrap" and rng.random() < 0.3
    wild = 0 if mode == "error" and rng.random() < 0.8 else 0.1
    dtype = np.dtype(rng.choice("<>") + rng.choice(INTEGERS))
    info = np.iinfo(dtype)
    numbers = []
    for at in range(int(np.prod(shape))):
        length = lens[at % len(lens)]
        number = rng.randrange(length) if length else 0
        if rng.random() < wild:
            number = rng.choice([-1, length, -length, -length - 1, 2 * length + 1, info.min, info.max])
        elif negative and length and rng.random() < 0.3:
            number -= length
        numbers.append(min(max(number, info.min), info.max))
    indices = np.array(numbers, dtype).reshape(shape)
    if axis is not None and rng.random() < 0.3:
        axis -= len(params)
    if axis is not None and rng.random() < 0.3:
        batch -= indices.ndim + (rng.random() < 0.1)
    return params, indices, axis, batch, mode, negative


def index_text(rng, indices):
    """Indices as text, and the array that they mean: a row a line."""
    end = rng.choice(["\n", "\n", "\r\n"])
    rows = indices.reshape(len(indices), -1) if indices.ndim else indices.reshape(1, 1)
    lines = [rng.choice([" ", ",", ", ", "\t", " , "]).join(str(int(number)) for number in row) for row in rows]
    if rng.random() < 0.3:
        lines = [line + rng.choice(["", " # 7", "#"]) for line in lines]
        lines.insert(rng.randint(0, len(lines)), rng.choice(["", "# positions", "  "]))
    text = end.join(lines) + rng.choice([end, ""])
    meant = np.loadtxt(io.StringIO(text.replace(",", " ")), np.int64, ndmin=1)
    return text.encode(), meant

def file_bytes(rng, array, typed, suffix):
    """A file of that suffix; returns its bytes and the flag that chooses a tensor."""
    if suffix == ".npy":
        out = io.BytesIO()
        np.save(out, np.array(array, order=rng.choice('CCF')))
        return out.getvalue(), []
    raw = array.astype(array.dtype.newbyteorder("<")).tobytes()
    tensors = {"first": ("U8", [3], b"abc"), "this": (NAMES[array.dtype.str[1:]], array.shape, raw)}
    return safetensors_file(tensors), [typed, "this"]


def gather_case(case):
    rng, directory = case.rng, case.dir
    shape, indices, axis, batch, mode, negative = random_case(rng)
    as_text = None
    if indices.ndim in (1, 2) and indices.size and indices.max() < 2**63 and rng.random() < 0.25:
        as_text, indices = index_text(rng, indices)
    dtype = np.dtype(rng.choice("<>") + rng.choice(list(NAMES)))
    count = int(np.prod(shape))
    params = np.frombuffer(rng.randbytes(count * dtype.itemsize), dtype).reshape(shape)
    message = None
    raw = params.view(np.dtype((np.void, dtype.itemsize))) if count else np.zeros(shape, f"V{dtype.itemsize}")
    try:
        if axis is None:
            expected = reference.gather_nd(raw, indices, batch, mode, negative)
        else:
            expected = reference.gather(raw, indices, axis, batch, mode, negative)
    except reference.Misfit:
        expected = None
    except reference.Bad as bad:
        expected, message = None, f"tslice: {bad}\n" + (f"hint: {bad.hint}\n" if bad.hint else "")

    suffixes = [rng.choice([".npy"] * 3 + [".safetensors"]) for _ in range(2)]
    contents, choose = file_bytes(rng, params, "-t", suffixes[0])
    index_contents, choose_indices = file_bytes(rng, indices, "--indices-tensor", suffixes[1])
    if as_text is not None:
        suffixes[1], index_contents, choose_indices = rng.choice([".txt", ".csv"]), as_text, []
    paths = [os.path.join(directory, name + suffix) for name, suffix in zip(("params", "indices"), suffixes)]
    for path, content in zip(paths, (contents, index_contents)):
        with open(path, "wb") as out:
            out.write(content)
    stdin, way = None, rng.randrange(6)
    line = ["gather"]
    if way == 0:
        stdin = contents
        line += rng.choice([[], ["-"]])
    else:
        line.append(paths[0])
    if way == 1:
        stdin, paths[1] = index_contents, "-"
    if way == 2 and indices.ndim and indices.size < 500 and indices.max(initial=0) < 2**63 and indices.size:
        paths[1], choose_indices = str(indices.tolist()), []
    line += ["--indices", paths[1], *choose, *choose_indices, "--out-of-range", mode]
    line += ["--axis", str(axis)] if axis is not None else []
    line += ["--batch-dims", str(batch)] if batch or rng.random() < 0.3 else []
    line += ["--negative"] if negative else []
    line += ["-j", str(rng.randint(1, 3))] + rng.choice([[], ["--io", "read"]])
    order = rng.choice(["C", "C", "F"])
    line += ["--order", order] if order == "F" else []
    out = os.path.join(directory, "out.npy") if rng.random() < 0.5 else None
    line += ["-o", out] if out else []
    case.story += ["tslice " + " ".join(line), f"params {shape} {dtype}, indices {indices.shape} {indices.dtype}"]
    run = harness.tslice(*line, **({} if stdin is None else {"input": stdin}))
    told = run.stderr.decode()
    there = out is not None and os.path.exists(out)
    if expected is None:
        problem = None
        if run.returncode != 1 or message not in (None, told) or not told.startswith("tslice: "):
            problem = f"status {run.returncode}, {told!r} instead of {message!r}"
        elif run.stdout or there:
            problem = "an output in spite of the error"
    elif run.returncode or told:
        problem = f"status {run.returncode}, {told!r}"
    else:
        wanted = io.BytesIO()
        result = np.frombuffer(expected.tobytes(), dtype).reshape(expected.shape) if expected.size else \
            np.zeros(expected.shape, dtype)
        if suffixes[0] == ".safetensors":
            result = result.astype(dtype.newbyteorder("<"))
        np.save(wanted, np.array(result, order=order))
        got = run.stdout
        if out:
            with open(out, "rb") as file:
                got = file.read()
        problem = None if got == wanted.getvalue() else f"wrong bytes, {len(got)} for {len(wanted.getvalue())}"
    if problem:
        raise Failure(problem)


def one(job):
    options, number = job
    return harness.run_case(Case(random.Random(f"{options.seed} {number}")), gather_case, number, options.keep)


def main():
    options = harness.case_parser(__doc__.split("\n")[0], 2000).parse_args()
    harness.begin(options)
    return harness.run_cases("gather_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
