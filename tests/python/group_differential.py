#!/usr/bin/env python3
"""Differential test: tensors joined and cut by name (`concat`, `stack` and `split` with `--group`) against dicts of
NumPy arrays.

    python tests/python/group_differential.py --bin target/debug/tslice --count 1000 --seed 1

A case is a state dict, spread over files of any format, whose names follow a random pattern with pieces; now and
then one is missing, extra, of another shape or dtype, or no number. What `tslice` writes must be what a few lines of
Python with `re` and NumPy make of the dict, in its order and byte for byte; what has no groups must be refused with
a name at fault, and leave no file.

A case is a function of (seed, number): `--only NUMBER` runs one again, `--keep` leaves its files.
"""

import fnmatch
import itertools
import random
import re
import sys

import numpy as np

import harness
from cases import Case, common_options
from formats import safetensors_file
from harness import Failure
from merge_differential import DTYPES, Output, Refused, run_and_check, tensors_of, write_shards
from random_tensors import random_bytes, start_worker

LAYERS = ["0", "1", "2", "10", "a", "enc-1", "é", "x y"]
OTHERS = ["embed.w", "head", "h.0", "h.1.q", "norm.0.1.w", "0", "q", "m.0.e.x", "h..q.w"]
# The names of members, and of the wholes that they make.
PATTERNS = [
    ("h.{l}.{p:q,k,v}.w", "h.{l}.qkv.w"),
    ("h.{l}.{p:q,k,v}.w", "h.{l}.w"),
    ("m.{l}.e.{e}.{p:up,down}", "m.{l}.{p}s"),
    ("m.{l}.e.{e}.{p:up,down}", "m.{p:up,down}.{l}"),
    ("m.{l}.e.{e}.{p:up,down}", "m.{l}"),
    ("m.{l}.{p:up,down}.{e}", "{l}"),
    ("e{e}", "all"),
    ("e{e}.*", "all.*"),
    ("{p:b,a}{e}.{l}", "{p}.{l}"),
    ("{p:a,,b}x{l}", "x.{l}.x"),
    ("opt[{e}].{l}", "opt.{l}"),
    ("demo_{i:*}.{l}", "all.{l}"),
    ("m.{l}.{i:*}.{p:up,down}", "m.{l}"),
    ("m.{p:up,down}.{i:*}.{e}", "m.{p}"),
]


# The names of wholes, and of the parts that they are cut into.
SPLITS = [
    ("h.{l}.qkv.w", "h.{l}.{p:q,k,v}.w"),
    ("m.{l}.{p:up,down}s", "m.{l}.e.{e}.{p}"),
    ("all", "e{e}"),
    ("all.*", "e{e}.*"),
    ("{p:b,a}.{l}", "{p:b,a}{e}.{l}"),
    ("opt.{l}", "opt[{e}].{l}"),
    ("x.{l}.x", "{p:a,,b}x{l}"),
    ("x.{l}.x", "x.{p:a,b}"),
]


def pieces(pattern):
    """The pattern in pieces: (text before, key or None, texts)."""
    found = re.findall(r"([^{*]*)(?:\{(\w+)(?::([^}]*))?\}|(\*))?", pattern)
    return [(before, "*" if star else key or None, texts.split(",") if texts else [])
            for before, key, texts, star in found if before or key or star]


def regex(pattern):
    def one(before, key, texts):
        if key is None:
            return re.escape(before)
        inside = ".*?" if key == "*" else "[0-9]+" if texts == ["*"] else "|".join(map(re.escape, texts)) if texts else r"[^.]+?"
        return f"{re.escape(before)}({inside})"
    return re.compile("".join(one(*piece) for piece in pieces(pattern)), re.S)


def filled(pattern, values):
    return "".join(before + (values[key] if key else "") for before, key, _ in pieces(pattern))


def keys(pattern):
    return [key for _, key, _ in pieces(pattern) if key]


def random_array(rng, shape, dtype):
    data = random_bytes(rng, int(np.prod(shape, dtype=object)) * dtype.itemsize)
    if dtype == np.dtype("?"):
        data = bytes(byte & 1 for byte in data)
    array = np.frombuffer(data, dtype).reshape(shape)
    # what a cast makes of the bits of a NaN is for cast_differential.py
    return np.where(np.isnan(array), dtype.type(0), array) if dtype.kind == "f" else array


def members(case, pattern, into, axis, stacks):
    """A state dict whose names follow the pattern; shapes differ along the axis only."""
    rng = case.rng
    texts = {key: listed for _, key, listed in pieces(pattern) if key}
    free = [key for key in keys(pattern) if key not in keys(into)]
    count = rng.choice([1, 2, 3, 11])
    gaps = [str(number) for number in rng.sample(range(40), count)]
    values = {key: gaps if listed == ["*"] else listed or [str(number) for number in range(count)] if key in free
              else rng.sample(listed or LAYERS, min(rng.choice([1, 2, 3]), len(listed or LAYERS)))
              for key, listed in texts.items()}
    tensors = {}
    carried = [key for key in keys(pattern) if key not in free]
    for group in itertools.product(*(values[key] for key in carried)):
        ndim = rng.choice([1, 2, 2, 3])
        shape = [rng.choice([1, 2, 3, 5, 0] if rng.random() < 0.9 else [40, 300]) for _ in range(ndim)]
        dtype = np.dtype(rng.choice(DTYPES))
        for place in itertools.product(*(values[key] for key in free)):
            if not stacks and -ndim <= axis < ndim and rng.random() < 0.3:
                shape[axis] = rng.choice([0, 1, 2, 7])
            name = filled(pattern, dict(zip(carried + free, group + place)))
            tensors[name] = random_array(rng, shape, dtype)
    return tensors


def damage(case, tensors, pattern):
    """One tensor is missing, extra, or does not fit."""
    rng = case.rng
    name = rng.choice(list(tensors))
    numbered = [key for _, key, listed in pieces(pattern) if key and key != "*" and listed in ([], ["*"])]
    kind = rng.choice(["missing", "number", "text", "zeros", "shape", "dtype"])
    if kind == "missing":
        del tensors[name]
    elif kind == "shape":
        tensors[name] = random_array(rng, (*tensors[name].shape, 2), tensors[name].dtype)
    elif kind == "dtype":
        tensors[name] = random_array(rng, tensors[name].shape, np.dtype(rng.choice(DTYPES)))
    elif numbered:
        found = regex(pattern).fullmatch(name)
        at = 1 + keys(pattern).index(rng.choice(numbered))
        text = {"number": str(rng.choice([3, 11, 12, 10**30])), "text": "shared", "zeros": "0" + found[at]}[kind]
        tensors[name[:found.start(at)] + text + name[found.end(at):]] = tensors[name]


def little(arrays):
    return {name: array.astype(array.dtype.newbyteorder("<")) for name, array in arrays.items()}


def spread(case, tensors, counts=(1, 1, 1, 2, 3)):
    """Writes the tensors to files, some in the other byte order; the paths, and names in the order of the inputs."""
    rng = case.rng
    names = list(tensors)
    rng.shuffle(names)
    count = rng.choice(counts)
    shares = [names[at::count] for at in range(count)]
    paths, order = [], []
    for number, share in enumerate(shares):
        arrays = {name: tensors[name] for name in share}
        kind = rng.choice(["npz", "npz-deflated", "safetensors", "safetensors", "shards"])
        path = f"in{number}.{kind}"
        if kind == "shards" and arrays:
            arrays = write_shards(case, path, arrays, None, rng)
        elif kind.startswith("npz"):
            for name in rng.sample(share, len(share) // 3):
                tensors[name] = arrays[name] = arrays[name].astype(arrays[name].dtype.newbyteorder())
            with open(case.path(path), "wb") as file:
                (np.savez if kind == "npz" else np.savez_compressed)(file, **{n: np.array(a, order=rng.choice("CF"))
                                                                            for n, a in arrays.items()})
        else:
            case.write(path, safetensors_file(tensors_of(arrays)))
        paths.append(path)
        order += [(number, name) for name in arrays]
    return paths, order


def chosen_names(case, names, options):
    """What -t and --exclude leave, and what --exclude takes away."""
    rng = case.rng
    found = [set(names), set()]
    for at, (flag, rate) in enumerate((("-t", 0.15), ("--exclude", 0.15))):
        if rng.random() > rate:
            continue
        glob = rng.choice(["h.*", "m.0.*", "m.*", "*.w", "e*", "*"] + [name for name in names if not set(name) & set("[*?{")])
        options.append([flag, glob])
        found[at] = {name for name in names if name == glob or glob not in names and fnmatch.fnmatchcase(name, glob.replace("[", "[[]"))}
        if not found[at]:
            raise Refused("no tensor is named")
    if not found[0] - found[1]:
        raise Refused("leaves out all chosen")
    return found[0] - found[1], found[1]


def place(pattern, key, text):
    listed = next(texts for _, one, texts in pieces(pattern) if one == key)
    if listed and listed != ["*"]:
        return listed.index(text)
    if not re.fullmatch("[0-9]+", text):
        raise Refused("is not a number")
    return int(text)


def grouped(pattern, into, names):
    """The names of each whole's members, in their order, by the first of them; or Refused."""
    fits, groups = regex(pattern), {}
    free = [at for at, key in enumerate(keys(pattern)) if key not in keys(into)]
    for name in names:
        found = fits.fullmatch(name)
        if found:
            values = found.groups()
            group = tuple(value for at, value in enumerate(values) if at not in free)
            where = tuple(place(pattern, keys(pattern)[at], values[at]) for at in free)
            groups.setdefault(group, []).append((where, name))
    if not groups:
        raise Refused("no tensor is named")
    sets = [{where for where, _ in group} for group in groups.values()]
    listed = [dict((key, texts) for _, key, texts in pieces(pattern))[keys(pattern)[at]] for at in free]
    # a product of all numbers below the greatest, and of all texts
    counts = [len({where[at] for where in sets[0]}) if texts == ["*"]
              else len(texts) or 1 + max(where[at] for where in sets[0]) for at, texts in enumerate(listed)]
    size = int(np.prod(counts, dtype=object))
    if any(len(group) != len(found) for group, found in zip(groups.values(), sets)):
        raise Refused("have the same position in their group", "is missing", "is extra")
    if any(found != sets[0] for found in sets) or size != len(sets[0]):
        raise Refused("is missing", "is extra")
    wholes = {}
    for group in groups.values():
        group.sort()
        found = fits.fullmatch(group[0][1])
        wholes[min(names.index(name) for _, name in group)] = (
            filled(into, dict(zip(keys(pattern), found.groups()))), [name for _, name in group])
    return wholes


def joined(arrays, axis, stacks, index=(), dtype=None):
    arrays = [array[index] if dtype is None else array[index].astype(dtype) for array in arrays]
    dtype = arrays[0].dtype
    if any(array.dtype.newbyteorder("<") != dtype.newbyteorder("<") for array in arrays):
        raise Refused("has dtype", "does not fit shape", "out of bounds", "zero-dim")
    try:
        result = np.stack(arrays, axis) if stacks else np.concatenate(arrays, axis)
    except (ValueError, np.exceptions.AxisError) as error:
        shapes = len({array.shape for array in arrays}) > 1
        raise Refused("does not fit shape", "out of bounds") from error if shapes else Refused("out of bounds", "zero-dim")
    return result.astype(dtype, order="C")


def join_case(case):
    rng = case.rng
    stacks = rng.random() < 0.4
    pattern, into = rng.choice(PATTERNS)
    axis = rng.choice([0, 0, 0, 1, -1, -2, 2])
    tensors = members(case, pattern, into, axis, stacks)
    if rng.random() < 0.25:
        damage(case, tensors, pattern)
    for name in rng.sample(OTHERS, rng.choice([0, 1, 3, 6])):
        tensors.setdefault(name, random_array(rng, (rng.choice([1, 4]),), np.dtype("u1")))
    if not tensors:
        return
    paths, order = spread(case, tensors)
    options = [["--group", pattern, "--into", into]] + common_options(rng, True)
    named = [["--axis", f"{rng.choice(['**', '*', into.replace('{l}', '*')]).replace('{p}', '*')}={axis}", "--axis", "7"]]
    options += named if "{" not in named[0][1] and rng.random() < 0.2 else \
        [["--axis", str(axis)]] if axis or rng.random() < 0.2 else []
    index = rng.choice([(), (), (), (slice(None, None, -1),), (..., slice(None, None, 2))])
    options += [["--index", {1: "::-1", 2: "[..., ::2]"}[len(index)]]] if index else []
    dtype = rng.choice([None] * 5 + ["<f8", ">f8"])
    options += [["--cast", f"all:{dtype}"]] if dtype else []
    keeps = rng.random() < 0.6
    options += [["--keep-rest"]] if keeps else []
    names = [name for _, name in order]
    try:
        chosen, excluded = chosen_names(case, names, options)
        wholes = grouped(pattern, into, [name if name in chosen else "\n.\n" for name in names])
        taken = {name for _, group in wholes.values() for name in group}
        expected = {}
        for at, name in enumerate(names):
            if at not in wholes and (name in taken or not keeps or name in excluded):
                continue
            whole, group = wholes.get(at, (name, None))
            if whole in expected:
                raise Refused("would be named")
            expected[whole] = group or [name]
        wholes = {whole for whole, _ in wholes.values()}
        expected = {whole: joined([tensors[name] for name in group], axis, stacks, index, dtype) if whole in wholes
                    else tensors[whole] for whole, group in expected.items()}
        refused = None
    except Refused as error:
        expected, refused = {}, error.args
    command = "stack" if stacks else "concat"
    check(case, [command, *paths], options, expected, refused)


def cut(array, axis, flag, values):
    if not -array.ndim <= axis < array.ndim:
        raise Refused("out of bounds")
    size = array.shape[axis]
    if flag == "--parts":
        return np.array_split(array, values, axis)
    if flag == "--every":
        return np.split(array, range(values, size, values), axis)
    if flag == "--sizes":
        if sum(values) != size:
            raise Refused("add up to")
        return np.split(array, np.cumsum(values)[:-1], axis)
    return np.split(array, values, axis)


def parts_of(array, axis, flag, values, squeezes, listed, equal):
    """The parts of a whole by the texts that tell them apart."""
    parts = cut(array, axis, flag, values)
    lengths = {part.shape[axis] for part in parts}
    if squeezes and lengths != {1}:
        raise Refused("can be dropped")
    if listed and len(listed) != len(parts):
        raise Refused("the list in the name has")
    if equal and len(lengths) > 1:
        raise Refused("parts have sizes")
    texts = listed or map(str, range(len(parts)))
    return {text: part.squeeze(axis) if squeezes else part for text, part in zip(texts, parts)}


def split_case(case):
    rng = case.rng
    whole, into = rng.choice(SPLITS)
    free = [(key, texts) for _, key, texts in pieces(into) if key and key not in keys(whole)]
    (own, listed), = free
    squeezes = rng.random() < 0.25
    axis = rng.choice([0, 0, 0, 1, -1, 2])
    count = len(listed) if listed and rng.random() < 0.9 else rng.choice([1, 2, 3, 12])
    values = {key: texts or rng.sample(LAYERS, rng.choice([1, 2])) for _, key, texts in pieces(whole) if key}
    tensors = {}
    for group in itertools.product(*values.values()):
        shape = [rng.choice([1, 2, 3, 6, 0]) for _ in range(rng.choice([1, 2, 2, 3]))]
        if -len(shape) <= axis < len(shape) and (squeezes or rng.random() < 0.5):
            shape[axis] = count if rng.random() < 0.95 else 5
        name = filled(whole, dict(zip(values, group)))
        tensors[name] = random_array(rng, shape, np.dtype(rng.choice(DTYPES)))
    for name in rng.sample(OTHERS, rng.choice([0, 1, 3])):
        tensors.setdefault(name, random_array(rng, (4,), np.dtype("u1")))
    paths, order = spread(case, tensors, [1])
    flag = rng.choice(["--parts", "--parts", "--every", "--sizes", "--at"])
    size = next(iter(tensors.values())).shape
    size = size[axis] if -len(size) <= axis < len(size) else 4
    cuts = {"--parts": count, "--every": rng.choice([1, 2, max(1, -(-size // count))]),
            "--sizes": [len(part) for part in np.array_split(np.zeros(size), count)],
            "--at": sorted(rng.choices(range(7), k=count - 1))}[flag]
    text = ",".join(map(str, cuts)) if isinstance(cuts, list) else str(cuts)
    options = [["--group", whole, "--into", into], [f"{flag}={text}"]] + common_options(rng, True)
    options += [["--axis", str(axis)]] if axis else []
    options += [["--squeeze"]] if squeezes else []
    equal, keeps = rng.random() < 0.1, rng.random() < 0.6
    options += [["--equal"]] * equal + [["--keep-rest"]] * keeps
    index = rng.choice([(), (), (), (slice(None, None, -1),), (..., [0])])
    dtype = rng.choice([None] * 5 + ["<f8", ">f8"])
    options += [["--cast", f"all:{dtype}"]] if dtype else []
    names = [name for _, name in order]
    try:
        chosen, excluded = chosen_names(case, names, options)
        fits = regex(whole)
        if not any(name in chosen and fits.fullmatch(name) for name in names):
            raise Refused("no tensor is named")
        expected, refusals = {}, []
        for name in names:
            found = fits.fullmatch(name) if name in chosen else None
            if not found:
                if keeps and name not in excluded:
                    refusals += ["would be named"] * (name in expected)
                    expected[name] = tensors[name]
                continue
            values = dict(zip(keys(whole), found.groups()))
            try:
                if index and isinstance(index[-1], list) and 0 in tensors[name].shape[-1:]:
                    raise Refused("out of bounds")
                array = tensors[name][index]
                array = array if dtype is None else array.astype(dtype)
                parts = parts_of(array, axis, flag, cuts, squeezes, listed, equal)
            except Refused as error:
                refusals += error.args
                continue
            for text, part in parts.items():
                one = filled(into, {**values, own: text})
                refusals += ["would be named"] * (one in expected)
                expected[one] = np.array(part, order="C")
        refused = refusals or None
    except Refused as error:
        expected, refused = {}, error.args
    by_index = [] if not index else ["[::-1]"] if len(index) == 1 else ["[..., [0]]"]
    check(case, ["split", *paths, *by_index], options, expected, refused, (1, 2))


def check(case, command, options, arrays, refused, statuses=(1,)):
    """Runs it with a random output; one of the words of a refusal is enough, since groups may have several faults."""
    output = Output(case.rng)
    arrays = arrays if output.kind in ("npz", "deflated") else little(arrays)
    run_and_check(case, command, options, output, (arrays, {}), refused, statuses, any)


def one(job):
    options, number = job
    rng = random.Random(f"group {options.seed}/{number}")
    return harness.run_case(Case(rng), rng.choice([join_case, join_case, split_case]), number, options.keep)


def main():
    options = harness.case_parser("tensors joined and cut by name against dicts of arrays", 1000).parse_args()
    harness.begin(options)
    return harness.run_cases("group_differential", options, one, start_worker)


if __name__ == "__main__":
    sys.exit(main())
