#!/usr/bin/env python3
"""Differential test: `tslice concat`, `stack`, `split` and `merge`, and `--group`, against NumPy and dicts of arrays.

    python tests/python/assembly_differential.py [JOB] --bin target/debug/tslice --count 1000 --seed 1

A case is a list of files of any format with random tensors, and a command line that makes others of them: each tensor
of an output is joined of members, or is a part of one. JOB says what is done; without it, each case draws one.

    concat   arrays of any dtype, one a file, joined or cut, as np.concatenate, np.stack and np.split do; checkpoints
             that are cut in shards and joined again; rows that are appended
    merge    the tensors of several files, chosen and renamed, in one: a union of dicts
    group    tensors of a state dict, joined or cut by patterns of their names

The output must hold what a few lines of Python make of the arrays, in their order and byte for byte. It is read by the
strict reader of these tests and the safetensors package, where there is one, or by np.load. What NumPy refuses, and
what has no union or no groups, must be refused with what is at fault, and leave no file.

A case is a function of (JOB, seed, number): `--only NUMBER` runs one again, `--keep` leaves its files.
"""

import fnmatch
import functools
import itertools
import json
import random
import re
import sys

import numpy as np

import harness
from assembly_files import (Output, Plan, Refused, check_npy, code_of, joined, little, of_raw, random_array, raw, take,
                            tensors_of, write_file)
from cases import Case
from formats import aligned
from harness import Failure
from random_indices import random_items, spell, spell_item
from random_tensors import random_bytes, random_dtype, start_worker

# Dtypes of single arrays, of tensors in every format, and of arrays that are cast.
ANY = ["?", "i1", "<i2", ">i2", "<f4", "<f4", ">f4", "<f8", ">f8", "<c8", ">c16", "S3", "<U2", ">U2", "V5", "<M8[s]",
       ">M8[s]"]
PLAIN = ["?", "i1", "<i2", "<i4", "<i8", "u1", "<u4", "<f2", "<f4", "<f4", "<f8"]
CASTS = ["?", "<i2", ">i4", "<i8", "u1", ">u2", "<f2", ">f4", "<f8", "<c8", ">c16"]
# Formats of outputs with several tensors.
MANY = ["safetensors", "safetensors", "shards", "npz", "deflated"]


def planned(job):
    """A case of a function that plans a command line, and answers (arrays, metadata) of the output or is Refused."""
    @functools.wraps(job)
    def case_of(case):
        plan = Plan(case)
        try:
            expected = job(plan)
        except Refused as refused:
            expected = refused
        plan.run(expected)
    return case_of


# ---------------------------------------------------------------- concat: one array a file


def other_order(rng, dtype):
    """The dtype in either byte order, where that is one thing."""
    if dtype.names is not None or dtype.kind == "V" or rng.random() < 0.7:
        return dtype
    return dtype.newbyteorder(rng.choice("<>"))


def any_dtype(rng):
    return random_dtype(rng) if rng.random() < 0.25 else np.dtype(rng.choice(ANY))


def add_one(plan, array):
    """One more input, of a format that has such an array; the array as it holds it."""
    kind = plan.rng.choice(["npy", "npy", "npy", "npz", "npz-deflated", "safetensors"])
    if array.dtype.names is not None or kind == "safetensors" and code_of(array.dtype) is None:
        kind = "npy"
    return plan.add(kind, {"w": array}, path=f"{len(plan.paths)}.bin")["w"]


def one_output(rng, dtype, name="out"):
    """An output of a format that has one such array."""
    kinds = ["npy"] * 6 + ["npz", "deflated", "bin", "bin"] + ["safetensors"] * 2 * (code_of(dtype) is not None)
    return Output(rng, kinds, "CCF", name)


def limited(shape):
    """The shape, changed where it stands to one of few elements."""
    while np.prod(shape) > 60_000:
        shape[shape.index(max(shape))] = 2
    return shape


def random_shapes(rng, stack):
    """Shapes that can be joined, and the axis."""
    ndim = rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5] if stack else [1, 1, 2, 2, 3, 3, 4, 5])
    shape = [rng.choice([1, 2, 3, 4, 5, 7, 9]) for _ in range(ndim)]
    if rng.random() < 0.1:
        shape = limited([rng.choice([40, 129, 300]) if rng.random() < 0.5 else n for n in shape])
    if ndim and rng.random() < 0.06:
        shape[rng.randrange(ndim)] = 0
    axis = rng.randrange(ndim + stack)
    count = rng.choice([1, 2, 2, 3, 3, 4, 5, 8, 120])
    if count == 120:
        shape = [min(n, 4) for n in shape]
    shapes = []
    for _ in range(count):
        one = list(shape)
        if not stack and rng.random() < 0.7:
            one[axis] = rng.choice([0, 1, 2, 3, 6, 50 if count < 9 else 4])
        shapes.append(tuple(one))
    return shapes, axis


def damage_one(rng, shapes, dtypes):
    """Now and then one array is of another dtype or shape."""
    at, wrong = rng.randrange(len(shapes)), rng.random()
    if wrong < 0.04:
        dtypes[at] = np.dtype(rng.choice(["<i4", "<i8"]))
    elif wrong < 0.08:
        shapes[at] = shapes[at] + (1,) if rng.random() < 0.5 else tuple(n + 1 for n in shapes[at])
    return wrong < 0.08


def list_item(case, length):
    """A list or a mask in the file list.npy, which may not fit the axis."""
    rng = case.rng
    if rng.random() < 0.3:
        item = np.array([rng.random() < 0.6 for _ in range(length)], bool)
    else:
        count = rng.choice([0, 1, 2, 3, 5]) if length else 0
        item = np.array([rng.randrange(-length, length) for _ in range(count)], rng.choice(["<i8", ">i4", "<i2"]))
        if item.size and rng.random() < 0.15:
            item[rng.randrange(item.size)] = rng.choice([length, -length - 1])
    np.save(case.path("list.npy"), item)
    return item


def full(items):
    """The items as an index of which the result is an array."""
    return items if any(item is ... for item in items) else (*items, ...)


def values_of(rng, shape, dtype, order):
    """An array of small numbers, which most casts keep."""
    values = [rng.randrange(100) for _ in range(min(int(np.prod(shape)), 1000))]
    return np.asarray(np.resize(values, shape).astype(dtype), order=order)


@planned
def join_arrays(plan):
    """np.concatenate and np.stack of what an index takes of each array, which may be cast."""
    rng = plan.rng
    stacks = rng.random() < 0.4
    shapes, axis = random_shapes(rng, stacks)
    dtype = any_dtype(rng)
    dtypes, cast, make = [other_order(rng, dtype) for _ in shapes], None, random_array
    casting = rng.choice(["same_kind", "same_kind", "unsafe"])
    if rng.random() < 0.25:
        few = rng.sample(CASTS, rng.choice([1, 2, 2, 3, 5]))
        dtypes, make = [np.dtype(rng.choice(few)) for _ in shapes], values_of
        cast = np.dtype(rng.choice(["<f8", ">f4", "<c16", "<f2", ">i4", "<i8"]))
        plan.options.append(["--cast", cast.str, "--casting", casting.replace("_", "-")])
    damaged = damage_one(rng, shapes, dtypes)
    arrays = [add_one(plan, make(rng, shape, dtype, rng.choice("CCF"))) for shape, dtype in zip(shapes, dtypes)]
    plan.command, plan.ways = "stack" if stacks else "concat", ["names"] * 3 + ["lines", "zeros", "pipe"]
    plan.output = one_output(rng, arrays[0].dtype if cast is None else cast)
    items, spelled, ndim = (), [], len(shapes[0])
    common = [at for at, lengths in enumerate(zip(*shapes)) if len(set(lengths)) == 1]
    if rng.random() < 0.25 and len(set(shapes)) == 1:
        items = tuple(random_items(rng, shapes[0]))
        spelled = [spell_item(rng, item, lambda: "") for item in items]
        ndim = take(arrays[0], full(items)).ndim
        axis = rng.randrange(max(1, ndim + stacks))
    elif rng.random() < 0.15 and common and not damaged:
        at = rng.choice(common)
        items, spelled = (*[slice(None)] * at, list_item(plan.case, shapes[0][at])), [":"] * at + ["@list.npy"]
    axis = 9 if rng.random() < 0.03 else axis - ndim - stacks if rng.random() < 0.3 else axis
    plan.options += [["--index", spell(rng, spelled)]] if spelled else []
    plan.options += rng.choice([[["--axis", str(axis)]], [[f"--axis={axis}"]]]) if axis or rng.random() < 0.5 else []
    return {None: joined([take(array, full(items)) for array in arrays], stacks, axis, cast, casting)}, {}


def random_cuts(rng, length, count):
    """A flag that cuts an axis, of about this length in about so many parts, and what makes the parts of an array."""
    way = rng.choice(["parts", "parts", "every", "sizes", "sizes", "at", "at"])
    if way == "parts":
        return f"--parts={count}", lambda array, axis: np.array_split(array, count, axis)
    if way == "every":
        every = rng.choice([1, 2, 3, 5, 100, max(1, -(-length // count))])
        return f"--every={every}", lambda array, axis: np.split(array, range(every, array.shape[axis], every), axis)
    has_percents = rng.random() < 0.4
    if has_percents:
        cuts = sorted(rng.choice([0, 10, 12.5, 33.3, 50, 80, 99.999999, 100]) for _ in range(count - 1))
        words = [f"{percent:f}%" for percent in (np.diff([0, *cuts, 100]) if way == "sizes" else cuts)]
        words += [str(length)] * (way == "at" and rng.random() < 0.3)
    elif way == "at":
        words = [str(rng.randrange(-length - 2, length + 3)) for _ in range(count - 1)]
        words = sorted(words, key=int) if rng.random() < 0.6 else words
    else:
        cuts = sorted(rng.randrange(length + 1) for _ in range(count - 1))
        even = [len(part) for part in np.array_split(np.zeros(length), count)]
        words = [str(size) for size in rng.choice([even, np.diff([0, *cuts, length]).tolist()])]

    def cut(array, axis):
        n = array.shape[axis]
        # in millionths of a percent
        found = [n * round(float(word[:-1]) * 10**6) // 10**8 if word[-1] == "%" else int(word) for word in words]
        if way == "sizes" and not has_percents and sum(found) != n:
            raise Refused("add up to")
        return np.split(array, found if way == "at" else np.cumsum(found[:-1], dtype=int), axis)
    return f"--{way}={','.join(words)}", cut


def split_array(case):
    """np.array_split and np.split of what an index takes of an array, and the parts joined to what it was."""
    plan, rng = Plan(case), case.rng
    shape = [rng.choice([1, 2, 3, 5, 8, 13]) for _ in range(rng.choice([1, 1, 2, 2, 3, 3, 4]))]
    if rng.random() < 0.1:
        shape[rng.randrange(len(shape))] = rng.choice([0, 200, 700])
    array = add_one(plan, random_array(rng, limited(shape), any_dtype(rng), rng.choice("CCF")))
    items = tuple(random_items(rng, shape)) if rng.random() < 0.3 else ()
    values = take(array, full(items))
    if values.ndim == 0:
        items, values = (), array
    axis = rng.randrange(values.ndim)
    flag, cut = random_cuts(rng, values.shape[axis], rng.choice([1, 2, 3, 4, 7, 20]))
    parts = [of_raw(part, array.dtype) for part in cut(raw(values), axis)]
    digits, pattern = rng.choice([(0, "{}"), (5, "{:05}"), (3, "{:03}"), (1, "{:01}")])
    output = plan.output = one_output(rng, array.dtype, f"part-{pattern}")
    names = [f"part-{number:0{digits}}.{output.extension}" for number in range(len(parts))]
    plan.command, plan.ways = "split", ["names", "names", "pipe"]
    plan.index = [spell(rng, [spell_item(rng, item, lambda: "") for item in items])] if items else []
    plan.options += [[flag], [f"--axis={axis - values.ndim if rng.random() < 0.3 else axis}"]]
    lengths = {part.shape[axis] for part in parts}
    if not any(group[0] in ("-q", "--quiet") for group in plan.options):
        if flag.startswith("--parts") and len(lengths) > 1:
            plan.notes.append(f"have sizes from {min(lengths)} to {max(lengths)}\nhint: --equal refuses that\n")
        if names != sorted(names):
            plan.notes.append("names of the parts sort otherwise than their numbers\n")
    plan.run((dict(zip(names, parts)), {}))
    if output.kind != "bin" and sum(part.shape[axis] for part in parts) == values.shape[axis] and len(parts) < 400:
        status, _, err = case.run(["concat", *names, "--axis", str(axis), "--order", output.order, "-o", "joined.npy"])
        if status != 0:
            raise Failure(f"concat of the parts: {err}")
        with open(case.path("joined.npy"), "rb") as file:
            check_npy(file.read(), little(values) if output.kind == "safetensors" else values, output.order)


def cut_checkpoint(case):
    """A checkpoint is cut for tensor parallelism, and its shards are one checkpoint again."""
    rng = case.rng
    kind, count = rng.choice(["safetensors", "safetensors", "npz"]), rng.choice([1, 2, 3, 4])
    arrays = {}
    for layer in range(rng.choice([1, 2, 3])):
        width = rng.choice([4, 6, 9, 13])
        for name, shape in [("q", (width, 5)), ("o", (5, width)), ("norm", (7,))]:
            dtype = np.dtype(rng.choice(["<f4", "<f2", "i1", "<i8"]))
            arrays[f"layers.{layer}.{name}"] = random_array(rng, shape, dtype)
    arrays["step"] = np.array(7)
    metadata = {"format": "pt"} if kind == "safetensors" else {}

    def as_written(arrays):
        return {name: arrays[name] for name in aligned(tensors_of(arrays))} if kind == "safetensors" else arrays

    arrays = arrays if rng.random() < 0.5 else as_written(arrays)
    write_file(case, f"in.{kind}", kind, arrays, metadata)
    output = Output(rng, [kind])
    for names, axis in (("q", 0), ("o", 1)):
        files = [f"{names}{number}.{kind}" for number in range(count)]
        for command in (["split", f"in.{kind}", "--parts", str(count), "-o", f"{names}{{}}.{kind}"],
                        ["concat", *files, "--force", "-o", f"in.{kind}"]):
            spelled = f"--axis={rng.choice([axis, axis - 2])}"
            status, _, err = case.run([*command, "-t", f"*.{names}", spelled, "--keep-rest"])
            if status != 0:
                raise Failure(f"{command[0]}: {err}")
        shards = [as_written({name: np.array_split(array, count, axis)[number] if name.endswith(names) else array
                              for name, array in arrays.items()}) for number in range(count)]
        for file, shard in zip(files, shards):
            output.check_file(case, file, shard, metadata)
        arrays = as_written({name: arrays[name] for name in shards[0]})
        output.check_file(case, f"in.{kind}", arrays, metadata)


def append_rows(case):
    """Rows behind those of a .npy, where it lies."""
    rng = case.rng
    dtype = random_dtype(rng)
    rest = [rng.randint(0, 4) for _ in range(rng.randint(0, 2))]
    lengths = [rng.choice([0, 1, 9, 400]), *(rng.choice([0, 1, 5, 300]) for _ in range(rng.randint(1, 3)))]
    names = [f"{number}.npy" for number in range(len(lengths))]
    arrays = [random_array(rng, [n, *rest], dtype, rng.choice("CF") if at else "C") for at, n in enumerate(lengths)]
    for name, array in zip(names, arrays):
        write_file(case, name, "npy", {None: array})
    junk = random_bytes(rng, rng.choice([0, 0, 1, 90, 70_000]))
    with open(case.path(names[0]), "rb+") as file:
        before = len(file.read())
        file.write(junk)
    args = ["concat", "--append-to", *names, "-j", rng.choice("13")]
    if junk:
        status, _, err = case.run(args)
        if status != 1 or f"{len(junk)} bytes follow the array" not in err:
            raise Failure(f"the bytes behind the array are not told: {status}, {err!r}")
    status, out, err = case.run(args + ["--force"] * bool(junk))
    if status or out or err:
        raise Failure(f"status {status}, {err!r}")
    with open(case.path(names[0]), "rb") as file:
        blob = file.read()
    check_npy(blob, joined(arrays, False, 0), "C")
    if len(blob) - before != sum(array.nbytes for array in arrays[1:]):
        raise Failure("bytes are left behind the array")


# ---------------------------------------------------------------- names


def matches(name, pattern, names):
    """A pattern that is the name of a tensor is that tensor; brackets stand for themselves."""
    return name == pattern if pattern in names else fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def chosen_names(plan, names, globs):
    """What -t and --exclude leave, and what --exclude takes away."""
    rng, left, excluded = plan.rng, set(names), set()
    plain = [name for name in names if not set(name) & set("[*?{")]
    for flag in ("-t", "--exclude"):
        if rng.random() < 0.8:
            continue
        patterns = [rng.choice(plain + globs) for _ in range(rng.choice([1, 1, 2]))]
        patterns += ["none"] * (rng.random() < 0.06)
        plan.options += [[flag, pattern] for pattern in patterns]
        hits = [{name for name in names if matches(name, pattern, names)} for pattern in patterns]
        if not all(hits):
            raise Refused("no tensor is named")
        if flag == "-t":
            left = set().union(*hits)
        else:
            excluded = set().union(*hits)
    if not left - excluded:
        raise Refused("leaves out all chosen")
    return left - excluded, excluded


class Pattern:
    """A name with pieces: {l} is any text without a dot, {p:q,k,v} one of these, {i:*} any number, and * any text."""

    def __init__(self, text):
        self.text = text
        found = re.findall(r"([^{*]*)(?:\{(\w+)(?::([^}]*))?\}|(\*))?", text)
        self.pieces = [(before, "*" if star else key, texts.split(",") if texts else [])
                       for before, key, texts, star in found if before or key or star]
        self.texts = {key: texts for _, key, texts in self.pieces if key}
        self.regex = re.compile("".join(map(self.regex_of, self.pieces)), re.S)

    @staticmethod
    def regex_of(piece):
        before, key, texts = piece
        if not key:
            return re.escape(before)
        inside = ".*?" if key == "*" else "[0-9]+" if texts == ["*"] else "|".join(map(re.escape, texts)) or r"[^.]+?"
        return f"{re.escape(before)}({inside})"

    def free(self, into):
        """The pieces that another pattern does not have."""
        return [key for key in self.texts if key not in into.texts]

    def is_numbered(self, key):
        return self.texts[key] in ([], ["*"])

    def values(self, name):
        """The texts of the pieces, or None for another name."""
        found = self.regex.fullmatch(name)
        return found and dict(zip(self.texts, found.groups()))

    def filled(self, values):
        return "".join(before + (values[key] if key else "") for before, key, _ in self.pieces)

    def place(self, key, text):
        """Where a member with this text stands."""
        if not self.is_numbered(key):
            return self.texts[key].index(text)
        if not re.fullmatch("[0-9]+", text):
            raise Refused("is not a number")
        return int(text)


# ---------------------------------------------------------------- merge: files as one


NAMES = [f"{layer}.{part}" for layer in ("a", "b", "layers.0", "layers.1") for part in ("q", "k", "v", "w")]


def random_input(plan, names):
    """Writes a file; what it holds, and its metadata."""
    rng = plan.rng
    kind = rng.choice(["npy", "npz", "npz-deflated", "safetensors", "safetensors", "shards"])
    # an array of .npy has the stem of its file
    count = min(rng.choice([1, 1, 2, 3, 5]), len(names))
    names = [f"in{len(plan.paths)}"] if kind == "npy" else rng.sample(names, count)
    arrays, metadata = {}, {}
    for name in names:
        shape = [rng.choice([0, 1, 2, 3, 5, 40]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
        arrays[name] = random_array(rng, shape, np.dtype(rng.choice(PLAIN)), rng.choice("CCF"))
    if kind in ("safetensors", "shards") and rng.random() < 0.5:
        metadata = {key: rng.choice(["pt", "np"]) for key in rng.sample(["format", "by", "k"], rng.choice([0, 1, 2]))}
    return plan.add(kind, arrays, metadata or None), metadata


def renamed(plan, chosen):
    """The new name of each chosen (input, name)."""
    rng, new, done, flags = plan.rng, {}, [], []
    # flags are shuffled, but these stay in their order
    plan.options.append(flags)
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        number = rng.choice([None, rng.randrange(len(plan.paths))])
        old = rng.choice(NAMES + ["a.*", "layers.*.q", "in0"])
        to = old.replace("a", "z") if "*" in old else rng.choice(NAMES + ["new"])
        # each applies to what the one before it made, but for swaps
        swapped = [made for *one, made in done if one == [number, to, old]]
        of = {key: new.get(key, key[1]) for key in chosen
              if number in (None, key[0]) and not any(key in made for made in swapped)}
        if old in of.values():
            hit = {key: to for key, name in of.items() if name == old}
        else:
            fits = {key: Pattern(old).values(name) for key, name in of.items()}
            hit = {key: Pattern(to).filled(values) for key, values in fits.items() if values is not None}
        if not hit and rng.random() < 0.9:
            continue
        flags += ["--rename", ("" if number is None else f"{number}:") + f"{old}={to}"]
        if not hit:
            raise Refused("no chosen tensor is named")
        new.update(hit)
        done.append((number, old, to, hit))
    return new


def by_table(plan, arrays):
    """New names by a table, each by its first rule; names that no rule is for stay."""
    rng = plan.rng
    rules = [(rng.choice(NAMES + ["in0"]), rng.choice(NAMES + ["new"])) for _ in range(rng.choice([1, 3, 8]))]
    lines = [f"{old}={new}" for old, new in rules]
    if rng.random() < 0.5:
        lines.insert(rng.randrange(len(lines) + 1), "layers.{l}.*=layers.{l+1}.*")
    plan.case.write("table", "\n".join(lines).encode())
    plan.options.append(["--rename-from", "table"])

    def new_name(name):
        for old, to in (line.split("=") for line in lines):
            number = re.fullmatch(r"layers\.([0-9]+)\.(.*)", name) if "{" in old else None
            if number or old == name:
                return f"layers.{int(number[1]) + 1}.{number[2]}" if number else to
        return name

    made = {new_name(name): array for name, array in arrays.items()}
    if len(made) < len(arrays):
        raise Refused("would be named")
    return made


def given_metadata(plan):
    """What --metadata and --metadata-from add, and whether that of the inputs is dropped."""
    rng, given = plan.rng, {}
    if rng.random() < 0.2:
        given = {key: rng.choice(["", "file", "a=b"]) for key in rng.sample(["format", "by", "new"], 2)}
        plan.case.write("texts.json", json.dumps(given).encode())
        plan.options.append(["--metadata-from", "texts.json"])
    if rng.random() < 0.25:
        key = rng.choice(["format", "by", "k", "new", "é"])
        given[key] = rng.choice(["x", "", "a=b=c"])
        plan.options.append(["--metadata", f"{key}={given[key]}"])
    drop = rng.random() < 0.15
    plan.options += [["--no-metadata"]] if drop else []
    return given, drop


@planned
def merge(plan):
    """The tensors of several files, chosen and renamed, in one."""
    rng = plan.rng
    names = rng.sample(NAMES, rng.choice([3, 6, 12, 16]))
    inputs = [random_input(plan, names) for _ in range(rng.choice([1, 2, 2, 3, 4, 6]))]
    plan.command, plan.ways, plan.notes = "merge", ["names"] * 6 + ["lines", "zeros"], None
    plan.output = Output(rng, MANY)
    wins = rng.choice([None, None, "--first", "--last"])
    plan.options += [[wins]] if wins else []
    members = [(at, name) for at, (arrays, _) in enumerate(inputs) for name in arrays]
    left, _ = chosen_names(plan, sorted({name for _, name in members}), ["a.*", "layers.?.q", "*"])
    chosen = [(at, name) for at, name in members if name in left]
    given, drop = given_metadata(plan) if plan.output.has_metadata else ({}, False)
    new = renamed(plan, chosen)
    placed, twice = {}, None
    for at, name in chosen:
        there = placed.setdefault(new.get((at, name), name), [])
        if any(other == at for other, _ in there):
            raise Refused("two tensors of the output would be named")
        if there and wins is None and twice is None:
            twice = [plan.paths[there[0][0]], plan.paths[at]]
        there.append((at, name))
    if twice:
        raise Refused(*twice)
    metadata = {}
    for key, value in (pair for _, texts in inputs for pair in texts.items()):
        if drop or key in given or not plan.output.has_metadata:
            continue
        if wins is None and metadata.get(key, value) != value:
            raise Refused("metadata", key)
        if key not in metadata or wins == "--last":
            metadata[key] = value
    winners = {name: there[0 if wins == "--first" else -1] for name, there in placed.items()}
    arrays = {name: inputs[at][0][old] for name, (at, old) in winners.items()}
    if len(inputs) == 1 and not any("--rename" in flags for flags in plan.options):
        arrays = by_table(plan, arrays)
    return arrays, metadata | given


# ---------------------------------------------------------------- group: tensors of a state dict by their names


LAYERS = ["0", "1", "2", "10", "a", "enc-1", "é", "x y"]
OTHERS = ["embed.w", "head", "h.0", "h.1.q", "norm.0.1.w", "0", "q", "m.0.e.x", "h..q.w"]
GLOBS = ["h.*", "m.0.*", "m.*", "*.w", "e*", "*"]
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
# What is taken of each member, in NumPy and as text.
INDEXES = [((), "")] * 5 + [
    ((slice(None, None, -1),), "[::-1]"),
    ((..., slice(None, None, 2)), "[..., ::2]"),
    ((..., [0]), "[..., [0]]"),
]


def number_array(rng, shape, dtype):
    """An array without NaN: what a cast makes of the bits of one is for cast_differential.py."""
    array = random_array(rng, shape, dtype)
    return np.where(np.isnan(array), dtype.type(0), array) if dtype.kind == "f" else array


def state_dict(rng, pattern, free, axis, lengths, rate):
    """Tensors of all names that some texts of the pattern make. Those that differ in free pieces alone have one dtype
    and shape, but for the axis, which has one of these lengths at this rate."""
    carried, count = [key for key in pattern.texts if key not in free], rng.choice([1, 2, 3, 11])
    gaps = [str(number) for number in rng.sample(range(40), count)]
    values = {key: gaps if listed == ["*"] else listed or [str(number) for number in range(count)] if key in free
              else rng.sample(listed or LAYERS, min(rng.choice([1, 2, 3]), len(listed or LAYERS)))
              for key, listed in pattern.texts.items()}
    tensors = {}
    for group in itertools.product(*(values[key] for key in carried)):
        ndim, dtype = rng.choice([1, 2, 2, 3]), np.dtype(rng.choice(PLAIN))
        shape = [rng.choice([1, 2, 3, 5, 0] if rng.random() < 0.9 else [40, 300]) for _ in range(ndim)]
        for place in itertools.product(*(values[key] for key in free)):
            if -ndim <= axis < ndim and rng.random() < rate:
                shape[axis] = rng.choice(lengths)
            tensors[pattern.filled(dict(zip(carried + free, group + place)))] = number_array(rng, shape, dtype)
    return tensors


def damage_members(rng, tensors, pattern):
    """One tensor is missing, extra, or does not fit."""
    name, kind = rng.choice(list(tensors)), rng.choice(["missing", "number", "text", "zeros", "shape", "dtype"])
    numbered = [key for key in pattern.texts if key != "*" and pattern.is_numbered(key)]
    if kind == "missing":
        del tensors[name]
    elif kind == "shape":
        tensors[name] = number_array(rng, (*tensors[name].shape, 2), tensors[name].dtype)
    elif kind == "dtype":
        tensors[name] = number_array(rng, tensors[name].shape, np.dtype(rng.choice(PLAIN)))
    elif numbered:
        values, key = pattern.values(name), rng.choice(numbered)
        number = str(rng.choice([3, 11, 12, 10**30]))
        values[key] = {"number": number, "text": "shared", "zeros": "0" + values[key]}[kind]
        tensors[pattern.filled(values)] = tensors[name]


def spread(plan, tensors, counts):
    """Writes the tensors to files, some in the other byte order; as these hold them, in the order of the inputs."""
    rng, names, held = plan.rng, list(tensors), {}
    for name in rng.sample(OTHERS, max(rng.choice([0, 1, 3, 6]), not tensors)):
        if name not in tensors:
            names.append(name)
            tensors[name] = number_array(rng, (rng.choice([1, 4]),), np.dtype("u1"))
    rng.shuffle(names)
    count = rng.choice(counts)
    for number in range(count):
        arrays = {name: tensors[name] for name in names[number::count]}
        kind = rng.choice(["npz", "npz-deflated", "safetensors", "safetensors", "shards" if arrays else "npz"])
        if kind.startswith("npz"):
            for name in rng.sample(list(arrays), len(arrays) // 3):
                arrays[name] = arrays[name].astype(arrays[name].dtype.newbyteorder(">"))
            arrays = {name: np.array(array, order=rng.choice("CF")) for name, array in arrays.items()}
        held |= plan.add(kind, arrays)
    return held


def plan_group(plan, pattern, into, axis, tensors, counts):
    """What joins and cuts by name have in common: the files and most flags. Answers the tensors in their order, what is
    taken of each, the names of those that are chosen, and of those that are kept if they are in no group."""
    rng = plan.rng
    tensors = spread(plan, tensors, counts)
    plan.output, plan.notes = Output(rng, MANY), None
    plan.options.append(["--group", pattern.text, "--into", into.text])
    named = rng.choice(["**", "*", into.text.replace("{l}", "*")]).replace("{p}", "*")
    if plan.command != "split" and "{" not in named and rng.random() < 0.2:
        plan.options.append(["--axis", f"{named}={axis}", "--axis", "7"])
    elif axis or rng.random() < 0.2:
        plan.options.append([f"--axis={axis}"])
    index, text = rng.choice(INDEXES)
    if text and plan.command == "split":
        plan.index = [text]
    elif text:
        plan.options.append(["--index", text])
    cast, keeps = rng.choice([None] * 5 + ["<f8", ">f8"]), rng.random() < 0.6
    plan.options += [["--cast", f"all:{cast}"]] * (cast is not None) + [["--keep-rest"]] * keeps
    chosen, excluded = chosen_names(plan, list(tensors), GLOBS)

    def taken(name):
        array = take(tensors[name], index)
        return array if cast is None else array.astype(cast)
    return tensors, taken, chosen, set(tensors) - excluded if keeps else set()


def assembled(tensors, kept, made):
    """The output, in the order of the inputs: what is made of each tensor, or itself where that is None and it is kept.
    Groups may have several faults, of which the program tells one."""
    arrays, refusals = {}, []
    for name, array in tensors.items():
        try:
            new = made(name)
        except Refused as refused:
            refusals += refused.args
            continue
        if new is None:
            new = {name: array} if name in kept else {}
        refusals += ["would be named"] * any(one in arrays for one in new)
        arrays |= new
    if refusals:
        raise Refused("|".join(refusals))
    return arrays, {}


def grouped(pattern, into, names):
    """The whole that each first name stands for, and the names of its members in their order; or Refused."""
    free, groups = pattern.free(into), {}
    for name in names:
        values = pattern.values(name)
        if values is not None:
            where = tuple(pattern.place(key, values[key]) for key in free)
            groups.setdefault(tuple(values[key] for key in values if key not in free), []).append((where, name))
    if not groups:
        raise Refused("no tensor is named")
    sets = [{where for where, _ in group} for group in groups.values()]
    # a product of all numbers below the greatest, and of all texts
    counts = [len({where[at] for where in sets[0]}) if pattern.texts[key] == ["*"]
              else len(pattern.texts[key]) or 1 + max(where[at] for where in sets[0]) for at, key in enumerate(free)]
    if any(len(group) != len(found) for group, found in zip(groups.values(), sets)):
        raise Refused("have the same position in their group|is missing|is extra")
    if any(found != sets[0] for found in sets) or int(np.prod(counts, dtype=object)) != len(sets[0]):
        raise Refused("is missing|is extra")
    return {group[0][1]: (into.filled(pattern.values(group[0][1])), [name for _, name in sorted(group)])
            for group in groups.values()}


@planned
def join_by_name(plan):
    """Tensors whose names differ in some pieces are joined."""
    rng = plan.rng
    stacks, axis = rng.random() < 0.4, rng.choice([0, 0, 0, 1, -1, -2, 2])
    pattern, into = map(Pattern, rng.choice(PATTERNS))
    tensors = state_dict(rng, pattern, pattern.free(into), axis, [0, 1, 2, 7], 0 if stacks else 0.3)
    if rng.random() < 0.25:
        damage_members(rng, tensors, pattern)
    plan.command = "stack" if stacks else "concat"
    tensors, taken, chosen, kept = plan_group(plan, pattern, into, axis, tensors, [1, 1, 1, 2, 3])
    wholes = grouped(pattern, into, [name for name in tensors if name in chosen])
    kept -= {name for _, group in wholes.values() for name in group}
    names = [wholes[name][0] if name in wholes else name for name in tensors if name in wholes or name in kept]
    if len(set(names)) < len(names):
        raise Refused("would be named")

    def made(name):
        if name not in wholes:
            return None
        whole, group = wholes[name]
        return {whole: joined([taken(one) for one in group], stacks, axis)}
    return assembled(tensors, kept, made)


@planned
def split_by_name(plan):
    """Tensors are cut, and their parts have names that differ in one piece."""
    rng = plan.rng
    whole, into = map(Pattern, rng.choice(SPLITS))
    (own,) = into.free(whole)
    listed = into.texts[own]
    squeezes, axis = rng.random() < 0.25, rng.choice([0, 0, 0, 1, -1, 2])
    count = len(listed) if listed and rng.random() < 0.9 else rng.choice([1, 2, 3, 12])
    tensors = state_dict(rng, whole, [], axis, [count] * 19 + [5], 1 if squeezes else 0.5)
    first = next(iter(tensors.values())).shape
    flag, cut = random_cuts(rng, first[axis] if -len(first) <= axis < len(first) else 4, count)
    equal, plan.command, plan.statuses = rng.random() < 0.1, "split", (1, 2)
    plan.options += [[flag]] + [["--squeeze"]] * squeezes + [["--equal"]] * equal
    tensors, taken, chosen, kept = plan_group(plan, whole, into, axis, tensors, [1])
    if not any(name in chosen and whole.values(name) is not None for name in tensors):
        raise Refused("no tensor is named")

    def made(name):
        values = whole.values(name) if name in chosen else None
        if values is None:
            return None
        array = taken(name)
        if not -array.ndim <= axis < array.ndim:
            raise Refused("out of bounds")
        parts = cut(array, axis)
        lengths = {part.shape[axis] for part in parts}
        if squeezes and lengths != {1}:
            raise Refused("can be dropped")
        if listed and len(listed) != len(parts):
            raise Refused("the list in the name has")
        if equal and len(lengths) > 1:
            raise Refused("parts have sizes")
        texts = listed or map(str, range(len(parts)))
        return {into.filled({**values, own: text}): part.squeeze(axis) if squeezes else part
                for text, part in zip(texts, parts)}
    return assembled(tensors, kept, made)


# ---------------------------------------------------------------- jobs


JOBS = {
    "concat": {join_arrays: 60, split_array: 35, cut_checkpoint: 5, append_rows: 6},
    "merge": {merge: 1},
    "group": {join_by_name: 2, split_by_name: 1},
}


def one(job):
    options, number = job
    rng = random.Random(f"{options.job} {options.seed}/{number}")
    kinds = JOBS[options.job or rng.choice(list(JOBS))]
    (kind,) = rng.choices(list(kinds), list(kinds.values()))
    return harness.run_case(Case(rng), kind, number, options.keep)


def main():
    parser = harness.case_parser("what tslice makes of several tensors, against NumPy", 1000)
    parser.add_argument("job", nargs="?", choices=JOBS)
    options = parser.parse_args()
    harness.begin(options)
    return harness.run_cases("assembly_differential", options, one, start_worker, [options.job] if options.job else [])


if __name__ == "__main__":
    sys.exit(main())
