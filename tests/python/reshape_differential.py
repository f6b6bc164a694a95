#!/usr/bin/env python3
"""Differential test: `--reshape` and `--rearrange` against NumPy's reshape and transpose, and einops where it is.

    python tests/python/reshape_differential.py --bin target/debug/tslice --count 2000 --seed 1

Every case is a random array in a random file (.npy in either order, .npz stored or deflated, .safetensors, raw
bytes; .zarr and .h5 with --features), seen in another shape, indexed, with lists now and then, and rearranged by a
random pattern, through one of the commands that take an index. Now and then the shape or the pattern is wrong. A
case is a function of (seed, number): `--only NUMBER` runs one again. Needs Python 3.9, NumPy 2.
"""

import os
import random
import re
import sys

import numpy as np

import harness
from cases import Case
from harness import Failure
from transpose_differential import random_index

try:
    from einops import rearrange
except ImportError:
    rearrange = None

DTYPES = ["u1", "<i2", "<f4", ">f4", "<f8", "<c8", "|S3", "|b1"]


def divisors(number):
    return [part for part in range(1, number + 1) if number % part == 0]


def lengths(rng, size):
    """Random lengths whose product is `size`."""
    if size == 0:
        shape = [rng.choice([0, 1, 2, 3]) for _ in range(rng.randint(1, 4))]
        shape[rng.randrange(len(shape))] = 0
        return shape
    shape, left = [], size
    for _ in range(rng.randint(0, 4)):
        shape.append(rng.choice(divisors(left)))
        left //= shape[-1]
    if left > 1 or rng.random() < 0.1:
        shape.insert(rng.randint(0, len(shape)), left)
    return shape


def random_array(rng, dtype):
    while True:
        shape = [rng.choice([0, 1, 2, 3, 4, 6, 8, 12, 60]) for _ in range(rng.randint(0, 4))]
        if np.prod(shape) <= 30_000:
            break
    count = int(np.prod(shape))
    if dtype == "|b1":
        return np.frombuffer(rng.randbytes(count), "u1").reshape(shape) % 2 == 1
    if dtype == "|S3":
        return np.array([f"{rng.randrange(1000):03}" for _ in range(count)], dtype).reshape(shape)
    return (np.arange(count) % 251 - (0 if dtype == "u1" else 40)).reshape(shape).astype(dtype)


def write(case, array, name="in"):
    """Puts an array into a file of a random kind: the words that name it."""
    rng = case.rng
    kinds = ["npy", "npy", "F", "F", "npz", "raw", "rawF"]
    kinds += ["safetensors"] if array.dtype.str[1] != "S" and array.dtype.str[0] != ">" else []
    kinds += ["zarr"] * 2 if case.features and array.dtype.str[0] != ">" and array.dtype.str[1] != "S" else []
    kind = rng.choice(kinds)
    path = case.path(name)
    if kind == "npz":
        save = rng.choice([np.savez, np.savez_compressed])
        save(path + ".npz", a=np.array(array, order=rng.choice("CF")))
        return [path + ".npz"]
    if kind.startswith("raw"):
        order = "F" if kind == "rawF" else "C"
        with open(path + ".bin", "wb") as file:
            file.write(array.tobytes(order))
        shape = ",".join(map(str, array.shape))
        return [path + ".bin", "--dtype", array.dtype.str, f"--shape={shape}", "--input-order", order]
    np.save(path + ".npy", np.array(array, order="F" if kind == "F" else "C"))
    if kind in ("npy", "F"):
        return [path + ".npy"]
    made = f"{path}.{kind}"
    chunks = ["--chunks", ",".join(str(rng.randint(1, 5)) for _ in array.shape)] if kind == "zarr" and array.ndim else []
    harness.done_well(harness.tslice(path + ".npy", "-o", made, *chunks))
    return [made]


def random_shape(rng, array):
    """(text, shape) of another shape of the array, or of none (then the message of NumPy)."""
    shape = lengths(rng, array.size)
    if rng.random() < 0.08:
        shape = [length + 1 for length in shape] or [2]
    if shape and rng.random() < 0.3:
        shape[rng.randrange(len(shape))] = -1
    try:
        return ",".join(map(str, shape)), np.reshape(array, shape).shape, None
    except ValueError as error:
        return ",".join(map(str, shape)), None, str(error)


def random_pattern(rng, shape):
    """(pattern, lengths of the split, order of its axes, shape of the result) for a shape."""
    names = iter(rng.sample([letter + more for letter in "abcdefghkxyz" for more in ("", "1", "_b")], 30))
    left, split, parts = [], [], []
    ellipsis = range(0)
    if rng.random() < 0.4:
        start = rng.randint(0, len(shape))
        ellipsis = range(start, rng.randint(start, len(shape)))
        if not ellipsis:
            left.append("...")
    for axis, length in enumerate(shape):
        if axis in ellipsis:
            left += ["..."] if axis == ellipsis[0] else []
            split.append(length)
            continue
        if length == 1 and rng.random() < 0.5:
            left.append(rng.choice(["1", "()"]))
            split.append(1)
            continue
        if rng.random() < 0.55 and length:
            lens = [rng.choice(divisors(length))]
            while rng.random() < 0.3:
                lens.append(rng.choice(divisors(length // int(np.prod(lens)))))
            lens.append(length // int(np.prod(lens)))
            rng.shuffle(lens)
        else:
            lens = [length]
        words, unknown = [], rng.randrange(len(lens) + 1) if 0 not in lens else len(lens)
        for place, part in enumerate(lens):
            name = next(names)
            parts.append((name, len(split) + place))
            words.append(name if place == unknown or len(lens) == 1 and rng.random() < 0.9 else f"{name}={part}")
        split += lens
        if rng.random() < 0.1:
            words.insert(rng.randint(0, len(words)), "1")
        left.append("(" + " ".join(words) + ")" if len(words) > 1 or rng.random() < 0.1 else words[0])
    axes = np.cumsum([0] + [1] * len(split))
    # where the ellipsis stands among the parts
    before = sum(1 for _ in left[: left.index("...")]) if "..." in left else None
    rng.shuffle(parts)
    if "..." in left:
        first = part_of(left, shape, before)
        parts.insert(rng.randint(0, len(parts)), ("...", range(first, first + len(ellipsis))))
    right, groups = [], []
    while parts:
        if rng.random() < 0.15:
            right.append(rng.choice(["1", "()"]))
            groups.append([])
        if rng.random() < 0.35:
            count = rng.randint(1, len(parts))
            merged, parts = parts[:count], parts[count:]
            right.append("(" + " ".join(name for name, _ in merged) + ")")
            groups.append([at for _, places in merged for at in ([places] if isinstance(places, int) else places)])
        else:
            (name, places), parts = parts[0], parts[1:]
            right.append(name)
            groups += [[places]] if isinstance(places, int) else [[at] for at in places]
    order = [at for group in groups for at in group]
    order += [at for at in axes[:-1].tolist() if at not in order]
    result = [int(np.prod([split[at] for at in group], dtype=np.int64)) for group in groups]
    blank = rng.choice([" ", "  "])
    return blank.join(left) + rng.choice([" -> ", "->"]) + blank.join(right), split, order, result


def part_of(left, shape, before):
    """How many parts the axes have that stand before the ellipsis."""
    return sum(max(1, len([word for word in axis.strip("()").split() if word != "1"])) for axis in left[:before])


def rearranged(rng, array, line):
    """Adds a random pattern to a command line, seldom one that does not fit: what it gives, or None."""
    pattern, split, order, shape = random_pattern(rng, array.shape)
    line += ["--rearrange", pattern]
    result = array.reshape(split).transpose(order).reshape(shape)
    if rearrange:
        theirs = by_einops(array, pattern)
        assert theirs.shape == result.shape and theirs.tobytes() == result.tobytes(), (pattern, array.shape)
    return result


def by_einops(array, pattern):
    """What einops makes of a pattern with lengths at the names, which it takes apart from it."""
    lens = re.findall(r"(\w+)=(\d+)", pattern.split("->")[0])
    if len(dict(lens)) < len(lens):
        raise ValueError("a name twice")
    plain = re.sub(r"(\w+)=(\d+)", r"\1", pattern)
    return rearrange(np.asarray(array), plain, **{name: int(part) for name, part in lens})


def check_pattern(case, array):
    """A pattern that is right but for a word or two: whether it is one is what einops says."""
    rng = case.rng
    if not rearrange:
        return
    pattern = random_pattern(rng, array.shape)[0]
    words = re.findall(r"->|\.\.\.|[()]|[\w=]+", pattern)
    for _ in range(rng.randint(1, 2)):
        place = rng.randrange(len(words))
        kind = rng.random()
        if kind < 0.35:
            del words[place]
        elif kind < 0.7:
            words.insert(rng.randint(0, len(words)), rng.choice(words + ["(", ")", "1", "...", "->"]) if words else "a")
        else:
            other = rng.randrange(len(words))
            words[place], words[other] = words[other], words[place]
        if not words:
            return
    text = " ".join(words)
    if "=" in text.split("->")[-1]:
        return
    np.save(case.path("in.npy"), array)
    words = [case.path("in.npy"), "--rearrange", text, "-o", case.path("out.npy")]
    case.story.append(f"tslice {words}, shape {array.shape}")
    run = harness.tslice(*words)
    try:
        wanted = by_einops(array, text)
    except Exception as error:
        told = run.stderr.decode()
        if run.returncode not in (1, 2) or not told.startswith("tslice: --rearrange: ") or told.count("\n") != 3:
            raise Failure(f"{run.returncode} {told!r}, einops: {error}") from None
        return
    if run.returncode:
        raise Failure(f"{run}, einops has shape {wanted.shape}")
    same(case, case.path("out.npy"), wanted)


def command(case, seen, line):
    """Adds to a command line what it does with an array that is seen so: what it should give."""
    rng = case.rng
    text, index = random_index(rng, seen.shape)
    if seen.ndim and seen.shape[0] and rng.random() < 0.4:
        rows = rng.choices(range(seen.shape[0]), k=rng.randint(1, 9))
        kind = rng.random()
        if kind < 0.3:
            line[:0] = ["gather"]
            return seen[rows], line + ["--axis", "0", "--indices", str(rows)]
        text, index = f"[{rows}]", (rows,)
        if kind < 0.6:
            text, index = "[@rows.npy]", np.array(rows)
            if kind < 0.45:
                index = np.array([rng.random() < 0.6 for _ in range(int(np.prod(seen.shape[:2])))], bool)
                index = index.reshape(seen.shape[:2])
            text = f"[..., @{case.path('rows.npy')}]" if kind > 0.55 and seen.ndim == 1 else f"[@{case.path('rows.npy')}]"
            np.save(case.path("rows.npy"), index)
    line.insert(1, text)
    # one element alone would lose its byte order
    return np.asarray(seen[index], seen.dtype), line


def check_slice(case, array):
    rng = case.rng
    line, told = write(case, array), None
    seen = array
    if rng.random() < 0.85:
        text, shape, told = random_shape(rng, array)
        seen = array if told else array.reshape(shape)
        line.append(f"--reshape={text}")
    result, line = command(case, seen, line)
    if rng.random() < 0.7:
        result = rearranged(rng, result, line)
    order = rng.choice("CCF")
    line += ["--order", order] if order == "F" else []
    if array.dtype.kind in "iuf" and rng.random() < 0.2:
        line += ["--cast", "float32"]
        result = result.astype("<f4")
    out = case.path("out.npy")
    given = {}
    if rng.random() < 0.15 and line[line[0] == "gather"].endswith((".npy", ".bin")):
        place = int(line[0] == "gather")
        with open(line[place], "rb") as file:
            given = {"input": file.read()}
        line[place] = "-"
    else:
        line += rng.choice([[], [], ["--io", "read"]])
    line += ["-j", str(rng.randint(1, 3)), "-o", out]
    lines = [line]
    if rng.random() < 0.15 and not given:
        parts = rng.randint(1, 3)
        lines = [line + ["--part", f"{part}/{parts}"] for part in range(parts)]
    for words in lines:
        case.story.append("tslice " + " ".join(words))
        run = harness.tslice(*words, **given)
        if told:
            if run.returncode != 1 or told not in run.stderr.decode() or os.path.exists(out):
                raise Failure(f"{run.returncode} {run.stderr!r}, not {told!r}")
            return
        if run.returncode or run.stderr:
            raise Failure(f"status {run.returncode}, {run.stderr!r}")
    wanted = case.path("wanted.npy")
    np.save(wanted, np.array(result, order=order))
    with open(out, "rb") as ours, open(wanted, "rb") as theirs:
        if ours.read() != theirs.read():
            raise Failure(f"{np.load(out)!r:.300} instead of {result!r:.300}")


def run_well(case, *words):
    case.story.append("tslice " + " ".join(map(str, words)))
    return harness.done_well(harness.tslice(*words))


def same(case, path, wanted):
    found = np.load(path)
    if found.shape != wanted.shape or found.tobytes() != wanted.astype(found.dtype).tobytes():
        raise Failure(f"{found!r:.300} instead of {wanted!r:.300}")


def reshaped(rng, array):
    shape = lengths(rng, array.size)
    return f"--reshape={','.join(map(str, shape))}", array.reshape(shape)


def check_assign(case, array):
    """The target is seen in the shape, and keeps its own."""
    rng = case.rng
    array = np.array(array, order=rng.choice("CF"))
    target, value = case.path("target.npy"), case.path("value.npy")
    np.save(target, array)
    flag, _ = reshaped(rng, array)
    seen = np.array(array, order="C").reshape([int(length) for length in flag[10:].split(",") if length])
    place = rng.choice([["--in-place"], ["-o", case.path("changed.npy")]])
    if seen.ndim and seen.shape[0] and rng.random() < 0.4:
        rows = rng.choices(range(seen.shape[0]), k=rng.randint(1, 5))
        values = np.roll(seen[rows], 1)
        seen[rows] = values
        np.save(value, values)
        words = ["scatter", target, "--indices", str([[row] for row in rows]), "--values", value]
    else:
        text, index = random_index(rng, seen.shape)
        values = np.roll(seen[index], 1)
        seen[index] = values
        np.save(value, values)
        words = ["assign", target, text, "--value", value]
    run_well(case, *words, flag, *place)
    same(case, place[-1] if len(place) > 1 else target, seen.reshape(array.shape))
    if np.isfortran(np.load(target)) != np.isfortran(array):
        raise Failure("the file has another order")


def check_split_and_join(case, array):
    rng = case.rng
    words = write(case, array)
    flag, seen = reshaped(rng, array)
    if not seen.ndim:
        return
    axis = rng.randrange(seen.ndim)
    parts = rng.randint(1, 3)
    run_well(case, "split", *words, flag, "--axis", axis, "--parts", parts, "-q", "-o", case.path("part{}.npy"))
    for number, wanted in enumerate(np.array_split(seen, parts, axis)):
        same(case, case.path(f"part{number}.npy"), wanted)
    command = rng.choice(["concat", "stack"])
    joined = np.concatenate([seen, seen], axis) if command == "concat" else np.stack([seen, seen], axis)
    run_well(case, command, words[0], *words, flag, "--axis", axis, "-o", case.path("joined.npy"))
    same(case, case.path("joined.npy"), joined)


def check_several(case, array):
    """Of several tensors each, and those that are not chosen as they are."""
    rng = case.rng
    arrays = {name: np.array(np.roll(array, at), order=rng.choice("CF")) for at, name in enumerate("abc")}
    rng.choice([np.savez, np.savez_compressed])(case.path("in.npz"), **arrays)
    flag, _ = reshaped(rng, array)
    seen = np.array(array, order="C").reshape([int(length) for length in flag[10:].split(",") if length])
    words = [case.path("in.npz"), "-t", "[ab]", flag]
    result = rearranged(rng, seen, words)
    words += rng.choice([["--keep-rest"], []]) + ["-o", case.path("out.npz")]
    run_well(case, *words)
    found = np.load(case.path("out.npz"))
    wanted = ["a", "b"] + (["c"] if "--keep-rest" in words else [])
    if sorted(found.files) != wanted or found["a"].tobytes() != result.tobytes() or found["b"].shape != result.shape:
        raise Failure(f"{found.files}, {found['a']!r:.200} instead of {result!r:.200}")
    if "c" in wanted and found["c"].tobytes() != arrays["c"].tobytes():
        raise Failure("another tensor was changed")


def check_field(case, array):
    """A field of structures, whose axes stand behind those of the tensor."""
    rng = case.rng
    record = np.dtype([("x", "<i2"), ("y", "<f4", (2, 3)), ("z", "u1")])
    items = np.zeros(array.shape, record)
    items["x"] = np.arange(array.size).reshape(array.shape)
    items["y"] = np.arange(array.size * 6).reshape(array.shape + (2, 3))
    items["z"] = 7
    np.save(case.path("in.npy"), np.array(items, order=rng.choice("CF")))
    name = rng.choice(["x", "y", "x,z"])
    seen = np.ascontiguousarray(items[["x", "z"]].astype([("x", "<i2"), ("z", "u1")]) if name == "x,z" else items[name])
    seen = seen.reshape(items.shape + ((2, 3) if name == "y" else ()))
    flag, seen = reshaped(rng, seen)
    words = [case.path("in.npy"), "--field", name, flag]
    seen = rearranged(rng, seen, words)
    run_well(case, *words, "-o", case.path("out.npy"))
    same(case, case.path("out.npy"), seen)


def check_diff(case, array):
    rng = case.rng
    first = write(case, array, "a")
    np.save(case.path("b.npy"), np.array(array, order=rng.choice("CF")))
    flag, seen = reshaped(rng, array)
    if len(first) > 1:
        return
    run_well_or_not = harness.tslice("diff", *first, case.path("b.npy"), flag, random_index(rng, seen.shape)[0])
    case.story.append(f"diff {first} {flag}")
    if run_well_or_not.returncode or run_well_or_not.stderr:
        raise Failure(f"{run_well_or_not}")


def check_view(case, array):
    rng = case.rng
    words = write(case, array)
    flag, seen = reshaped(rng, array)
    words += [flag]
    if rng.random() < 0.6:
        seen = rearranged(rng, seen, words)
    if array.dtype.kind == "f" and seen.size and rng.random() < 0.5:
        axis = rng.randrange(max(seen.ndim, 1))
        out = case.path("most.npy")
        run_well(case, "view", *words, "--reduce", "max", "--axis", axis, "-o", out)
        return same(case, out, np.max(seen, axis))
    shown = run_well(case, "view", *words).stdout.decode()
    with np.printoptions(legacy=False):
        if not shown.startswith(str(seen)) and array.dtype.str[1] not in "Scb":
            raise Failure(f"{shown} instead of {seen}")


def any_case(case):
    rng = case.rng
    array = random_array(rng, rng.choice(DTYPES))
    kinds = [check_slice] * 6 + [check_pattern] * 2 + [check_assign, check_split_and_join, check_several, check_field, check_diff, check_view]
    rng.choice(kinds)(case, array)


def one(job):
    options, number = job
    case = Case(random.Random(f"{options.seed} {number}"))
    case.features = options.features
    return harness.run_case(case, any_case, number, options.keep)


def main():
    parser = harness.case_parser(__doc__.split("\n")[0], 2000)
    parser.add_argument("--features", action="store_true", help="the program has the feature zarr")
    options = parser.parse_args()
    harness.begin(options)
    return harness.run_cases("reshape_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
