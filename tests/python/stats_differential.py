#!/usr/bin/env python3
"""Differential test: `tslice view --stats --json` against NumPy and exact fractions.

    python tests/python/stats_differential.py --bin target/debug/tslice --count 500 --seed 1

Every case is a random array of numbers. Counts, extremes and their places, and quantiles (where
there are few enough values) are NumPy's; the mean is the exact one, rounded once, and the deviation
lies next to the exact one; nothing depends on the number of threads. A case is a function of
(seed, number): `--only NUMBER` runs one again.
"""

import io
import json
import math
import random
import sys
from fractions import Fraction

import numpy as np

import harness
import random_tensors
from cases import Case
from formats import safetensors_file
from harness import Failure
from view_differential import SMALL, floats, random_index, random_shape


def random_array(rng):
    shape = random_shape(rng)
    if rng.random() < 0.05:
        shape = (rng.choice([17_000, 40_000]), rng.choice([1, 5]))
    count = int(np.prod(shape))
    code = rng.choice(["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
    dtype = np.dtype(rng.choice("<>") + code)
    flat = floats(rng, dtype, count) if dtype.kind == "f" else None
    if flat is None:
        flat = np.frombuffer(random_tensors.random_bytes(rng, count * dtype.itemsize), dtype)
        if dtype.kind == "b":
            flat = flat.view("u1") % 2 == 1
        elif rng.random() < 0.5 and dtype.kind in "iu":
            flat = (flat % np.array(50, dtype)).astype(dtype)
    return flat.reshape(shape)


def number(value):
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}.get(value, value)


def stats_case(case):
    rng = case.rng
    if SMALL and rng.random() < 0.15:
        code = rng.choice(list(SMALL))
        shape = random_shape(rng)
        data = random_tensors.random_bytes(rng, int(np.prod(shape)) * np.dtype(SMALL[code]).itemsize)
        a = np.frombuffer(data, SMALL[code]).reshape(shape)
        name = "a.safetensors"
        case.write(name, safetensors_file({"x": (code, shape, data)}))
    else:
        a, name, out = random_array(rng), "a.npy", io.BytesIO()
        np.save(out, np.array(a, order=rng.choice("CCF")))
        case.write(name, out.getvalue())
    case.story.append(f"array: {a.dtype!r} {a.shape}")
    args = ["view", name, "--stats", "--json"]
    if rng.random() < 0.3:
        index = random_index(rng, a.shape)
        args.append(index)
        a = np.asarray(eval("a" + index) if index != "[]" else a)
    results = [case.run([*args, "-j", threads]) for threads in ("1", rng.choice("234"))]
    if results[0] != results[1] or results[0][0] != 0 or results[0][2]:
        raise Failure("threads change the result, or it failed")
    found = json.loads(results[0][1])
    is_float = a.dtype.kind not in "iub"
    wide = a.astype("f8") if is_float else a
    nan, inf = (np.isnan(wide), np.isinf(wide)) if is_float else (np.zeros(a.shape, bool),) * 2
    expected = {"count": a.size, "nan": int(nan.sum()), "infinite": int(inf.sum()), "zero": int((wide == 0).sum()),
                "shape": list(a.shape)}
    for key, value in expected.items():
        if found[key] != value:
            raise Failure(f"expected {key} {value}: {found[key]}")
    values = wide[~nan]
    if not values.size:
        if found["min"] is not None or found["mean"] is not None or found["quantiles"]:
            raise Failure(f"there is nothing to tell: {found}")
        return
    for key, best in (("min", values.min()), ("max", values.max())):
        place = np.argwhere(wide == best)[0].tolist()
        told = number(found[key]["value"])
        same = np.array(told, a.dtype) == np.array(best, a.dtype) if is_float else told == int(best)
        if found[key]["position"] != place or not same:
            raise Failure(f"expected {key} {best} at {place}: {found[key]}")
    finite = [Fraction(x) for x in wide[~nan & ~inf].tolist()]
    if finite:
        mean = sum(finite) / len(finite)
        variance = sum((x - mean) ** 2 for x in finite) / len(finite) if len(finite) < 2000 else None
        if found["mean"] != float(mean):
            raise Failure(f"expected the mean {float(mean)!r}: {found['mean']!r}")
        if variance is not None:
            scale = Fraction(4) ** 600
            deviation = math.isqrt(int(variance * scale * scale)) / scale
            if not math.isclose(found["std"], float(Fraction(deviation)), rel_tol=4e-16, abs_tol=5e-324):
                raise Failure(f"expected the deviation {float(Fraction(deviation))!r}: {found['std']!r}")
    elif found["mean"] is not None:
        raise Failure("there is no mean")
    with np.errstate(all="ignore"):
        quantiles = np.quantile(values.astype("f8"), [entry["q"] for entry in found["quantiles"]])
    for entry, true in zip(found["quantiles"], quantiles):
        told, error = number(entry["value"]), number(entry["error"])
        if len(np.unique(values)) <= 16384 and error != 0:
            raise Failure(f"{entry} should be exact")
        if np.isnan(true) or np.isinf(true) or np.isinf(told) or told == true:
            continue
        if abs(told - true) > error + abs(true) * 1e-15 * (1 if is_float else 4):
            raise Failure(f"expected the quantile {true!r}: {entry}")
    if sum(found["histogram"]["counts"]) != a.size - nan.sum() - inf.sum():
        raise Failure(f"the bars do not add up: {found['histogram']}")


def one(job):
    options, number = job
    case = Case(random.Random(f"stats {options.seed} {number}"))
    return harness.run_case(case, stats_case, number, options.keep)


def main():
    options = harness.case_parser(__doc__.splitlines()[0], 500).parse_args()
    harness.begin(options)
    sys.exit(harness.run_cases("stats_differential", options, one, random_tensors.start_worker))


if __name__ == "__main__":
    main()
