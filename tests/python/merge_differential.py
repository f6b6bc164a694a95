#!/usr/bin/env python3
"""Differential test: `tslice merge` against dicts of NumPy arrays, and the safetensors package.

    python tests/python/merge_differential.py --bin target/debug/tslice --count 1000 --seed 1

A case is a list of files of any format with random tensors, some of one name, that are merged with
random flags. The output must hold what dicts say, in their order and byte for byte: it is read by
the strict reader of these tests, by the safetensors package where there is one, or by np.load. What has
no union must be refused with the names that are at fault, and leave no file.

A case is a function of (seed, number): `--only NUMBER` runs one again, `--keep` leaves its files.
"""

import fnmatch
import io
import json
import os
import random
import re
import sys

import numpy as np

import harness
from cases import Case, common_options
from formats import aligned, check_aligned, read_safetensors, safetensors_file
from harness import Failure
from random_tensors import FROM_CODE, random_bytes, start_worker

try:
    from safetensors import deserialize
except ImportError:
    deserialize = None

DTYPES = ["?", "i1", "<i2", "<i4", "<i8", "u1", "<u4", "<f2", "<f4", "<f4", "<f8"]
NAMES = [f"{layer}.{part}" for layer in ("a", "b", "layers.0", "layers.1") for part in ("q", "k", "v", "w")]


def code_of(dtype):
    return FROM_CODE[np.dtype(dtype).newbyteorder("<").str[1:]]


def random_array(rng):
    shape = tuple(rng.choice([0, 1, 2, 3, 5, 40]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3])))
    dtype = np.dtype(rng.choice(DTYPES))
    count = int(np.prod(shape, dtype=object)) if shape else 1
    data = random_bytes(rng, count * dtype.itemsize)
    if dtype == np.dtype("?"):
        data = bytes(byte & 1 for byte in data)
    return np.frombuffer(data, dtype).reshape(shape)


def tensors_of(arrays):
    return {name: (code_of(array.dtype), array.shape, array.tobytes()) for name, array in arrays.items()}


def write_shards(case, folder, arrays, metadata, rng):
    """A sharded checkpoint; returns the arrays in the order in which it has them."""
    os.mkdir(case.path(folder))
    names, count = list(arrays), rng.choice([1, 2, 3])
    files = [f"model-{number + 1:05}-of-{count:05}.safetensors" for number in range(count)]
    parts = {file: {} for file in files}
    for name in names:
        parts[rng.choice(files)][name] = arrays[name]
    parts = {file: part for file, part in parts.items() if part}
    for file, part in parts.items():
        case.write(f"{folder}/{file}", safetensors_file(tensors_of(part), metadata))
    weight_map = {name: file for file, part in parts.items() for name in part}
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    case.write(f"{folder}/model.safetensors.index.json", json.dumps(index, indent=2).encode())
    return {name: array for part in parts.values() for name, array in part.items()}


class Input:
    """A file, and what it holds."""

    def __init__(self, case, number, names, keys):
        rng = case.rng
        kind = rng.choice(["npy", "npz", "npz-deflated", "safetensors", "safetensors", "shards"])
        count = rng.choice([1, 1, 2, 3, 5])
        self.arrays = {name: random_array(rng) for name in rng.sample(names, min(count, len(names)))}
        self.metadata = {}
        if kind in ("safetensors", "shards") and rng.random() < 0.5:
            self.metadata = {key: rng.choice(["pt", "np"]) for key in rng.sample(keys, rng.choice([0, 1, 2]))}
        self.path = f"in{number}.{kind}"
        if kind == "npy":
            # such an array has the stem of its file
            self.arrays = {f"in{number}": random_array(rng)}
            np.save(case.path(self.path), np.array(*self.arrays.values(), order=rng.choice("CCF")))
        elif kind == "shards":
            self.arrays = write_shards(case, self.path, self.arrays, self.metadata, rng)
        elif kind == "safetensors":
            case.write(self.path, safetensors_file(tensors_of(self.arrays), self.metadata or None))
        else:
            with open(case.path(self.path), "wb") as file:
                (np.savez if kind == "npz" else np.savez_compressed)(file, **self.arrays)


def matches(name, pattern, names):
    """A pattern that is the name of a tensor is that tensor."""
    return name == pattern if pattern in names else fnmatch.fnmatchcase(name, pattern)


class Refused(Exception):
    """What tslice must say."""


def renamed(rng, inputs, chosen, options):
    """The new name of each chosen (input, name)."""
    new, done, flags = {}, [], []
    # flags are shuffled, but these stay in their order
    options.append(flags)
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
        number = rng.choice([None, rng.randrange(len(inputs))])
        old = rng.choice(NAMES + ["a.*", "layers.*.q", "in0"])
        to = old.replace("a", "z") if "*" in old else rng.choice(NAMES + ["new"])
        # each applies to what the one before it made, but for swaps
        swapped = [made for *one, made in done if one == [number, to, old]]
        of = {key: new.get(key, key[1]) for key in chosen
              if number in (None, key[0]) and not any(key in made for made in swapped)}
        if old in of.values():
            hit = {key: to for key, name in of.items() if name == old}
        elif "*" in old:
            head, tail = old.split("*")
            fits = {key: name for key, name in of.items()
                    if name.startswith(head) and name.endswith(tail) and len(name) >= len(head) + len(tail)}
            hit = {key: to.replace("*", name[len(head):len(name) - len(tail)]) for key, name in fits.items()}
        else:
            hit = {}
        if not hit and rng.random() < 0.9:
            continue
        flags += ["--rename", ("" if number is None else f"{number}:") + f"{old}={to}"]
        if not hit:
            raise Refused("no chosen tensor is named")
        new.update(hit)
        done.append((number, old, to, hit))
    return new


def given_metadata(case, options):
    """What --metadata and --metadata-from add, and whether that of the inputs is dropped."""
    rng, given = case.rng, {}
    if rng.random() < 0.2:
        given = {key: rng.choice(["", "file", "a=b"]) for key in rng.sample(["format", "by", "new"], 2)}
        case.write("texts.json", json.dumps(given).encode())
        options.append(["--metadata-from", "texts.json"])
    if rng.random() < 0.25:
        key = rng.choice(["format", "by", "k", "new", "é"])
        given[key] = rng.choice(["x", "", "a=b=c"])
        options.append(["--metadata", f"{key}={given[key]}"])
    drop = rng.random() < 0.15
    options += [["--no-metadata"]] if drop else []
    return given, drop


def union(case, inputs, options, wins, has_metadata):
    """What the output has: the arrays in order, and the metadata; or Refused."""
    rng = case.rng
    names = {name for one in inputs for name in one.arrays}
    chosen = [(at, name) for at, one in enumerate(inputs) for name in one.arrays]
    for flag, rate in (("-t", 0.25), ("--exclude", 0.2)):
        if rng.random() > rate:
            continue
        patterns = [rng.choice(sorted(names) + ["a.*", "layers.?.q", "*"]) for _ in range(rng.choice([1, 2]))]
        if rng.random() < 0.06:
            patterns.append("none")
        for pattern in patterns:
            options.append([flag, pattern])
        if any(not any(matches(name, pattern, names) for name in names) for pattern in patterns):
            raise Refused("no tensor is named")
        hit = {name for name in names for pattern in patterns if matches(name, pattern, names)}
        chosen = [(at, name) for at, name in chosen if (name in hit) == (flag == "-t")]
    if not chosen:
        raise Refused("leaves out all chosen")
    given, drop = given_metadata(case, options) if has_metadata else ({}, False)
    new = renamed(rng, inputs, chosen, options)
    placed, twice = {}, None
    for at, name in chosen:
        there = placed.setdefault(new.get((at, name), name), [])
        if any(other == at for other, _ in there):
            raise Refused("two tensors of the output would be named")
        if there and wins is None and twice is None:
            twice = [inputs[there[0][0]].path, inputs[at].path]
        there.append((at, name))
    if twice:
        raise Refused(*twice)
    metadata = {}
    for one in inputs:
        for key, value in one.metadata.items():
            if drop or key in given:
                continue
            if wins is None and has_metadata and metadata.get(key, value) != value:
                raise Refused("metadata", key)
            if key not in metadata or wins == "--last":
                metadata[key] = value
    metadata.update(given)
    at = 0 if wins == "--first" else -1
    return {name: inputs[there[at][0]].arrays[there[at][1]] for name, there in placed.items()}, metadata


def by_table(case, arrays, options):
    """New names by a table, each by its first rule; names that no rule is for stay."""
    rng = case.rng
    rules = [(rng.choice(NAMES + ["in0"]), rng.choice(NAMES + ["new"])) for _ in range(rng.choice([1, 3, 8]))]
    lines = [f"{old}={new}" for old, new in rules]
    if rng.random() < 0.5:
        lines.insert(rng.randrange(len(lines) + 1), "layers.{l}.*=layers.{l+1}.*")
    case.write("table", "\n".join(lines).encode())
    options.append(["--rename-from", "table"])
    made = {}
    for name, array in arrays.items():
        new = name
        for line in lines:
            old, to = line.split("=")
            number = re.fullmatch(r"layers\.([0-9]+)\.(.*)", name) if "{" in old else None
            if number or old == name:
                new = f"layers.{int(number[1]) + 1}.{number[2]}" if number else to
                break
        if new in made:
            raise Refused("would be named")
        made[new] = array
    return made


def check_safetensors(blob, arrays, metadata):
    found, texts = read_safetensors(blob)
    check_aligned(found)
    if list(found.items()) != list(aligned(tensors_of(arrays)).items()):
        raise Failure(f"tensors: {list(found)}, expected {list(arrays)}, or other bytes")
    if (texts or {}) != metadata:
        raise Failure(f"metadata: {texts}, expected {metadata}")
    if deserialize:
        theirs = {name: (one["dtype"], tuple(one["shape"]), bytes(one["data"])) for name, one in deserialize(blob)}
        if theirs != tensors_of(arrays):
            raise Failure("the package reads something else")


def check_npz(blob, arrays):
    with np.load(io.BytesIO(blob)) as archive:
        if archive.files != list(arrays):
            raise Failure(f"members: {archive.files}, expected {list(arrays)}")
        for name, array in arrays.items():
            found = archive[name]
            if (found.dtype, found.shape, found.tobytes()) != (array.dtype, array.shape, array.tobytes()):
                raise Failure(f"{name}: {found.dtype} {found.shape}, expected {array.dtype} {array.shape}, or other bytes")


def load_shards(case, folder, metadata):
    """What a loader of such checkpoints reads: the index says in which shard each tensor is."""
    with open(case.path(f"{folder}/model.safetensors.index.json"), "rb") as file:
        index = json.load(file)
    found = {}
    for shard in sorted(set(index["weight_map"].values())):
        with open(case.path(f"{folder}/{shard}"), "rb") as file:
            tensors, texts = read_safetensors(file.read())
        check_aligned(tensors)
        if (texts or {}) != metadata:
            raise Failure(f"metadata: {texts}, expected {metadata}")
        if any(index["weight_map"][name] != shard for name in tensors):
            raise Failure(f"the index says something else of {shard}")
        found.update(tensors)
    if index["metadata"] != {"total_size": sum(len(data) for _, _, data in found.values())}:
        raise Failure(f"metadata of the index: {index['metadata']}")
    return found, sorted(os.listdir(case.path(folder)))


def check_shards(case, arrays, metadata, size):
    found, files = load_shards(case, "out", metadata)
    shards, bytes_of = [], lambda shard: sum(len(data) for _, _, data in shard.values())
    for name, tensor in tensors_of(arrays).items():
        if not shards or bytes_of(shards[-1]) + len(tensor[2]) > size:
            shards.append({})
        shards[-1][name] = tensor
    expected = [one for shard in shards for one in aligned(shard).items()]
    if list(found.items()) != expected:
        raise Failure(f"tensors: {list(found)}, expected {list(arrays)}, or other bytes")
    names = [f"model-{number + 1:05}-of-{len(shards):05}.safetensors" for number in range(len(shards))]
    if files != names + ["model.safetensors.index.json"]:
        raise Failure(f"files: {files}, expected {len(shards)} shards")


class Output:
    """An output of a random format, for several tensors."""

    def __init__(self, rng):
        self.kind = rng.choice(["safetensors", "safetensors", "shards", "npz", "deflated"])
        self.target = {"safetensors": "out.safetensors", "shards": "out"}.get(self.kind, "out.npz")
        self.size = rng.choice([1, 1, 20, 100, 500, 5_000_000])
        self.has_metadata = self.kind in ("safetensors", "shards")
        given = {"deflated": [["--deflate"]], "shards": [["--shard-size", str(self.size)]]}
        self.options = given.get(self.kind, [])

    def check(self, case, arrays, metadata):
        """It holds these arrays."""
        if self.kind == "shards":
            return check_shards(case, arrays, metadata, self.size)
        with open(case.path(self.target), "rb") as file:
            blob = file.read()
        if self.kind == "safetensors":
            check_safetensors(blob, arrays, metadata)
        else:
            check_npz(blob, arrays)


def run_and_check(case, command, options, output, expected, refused, statuses=(1,), says=all):
    """Runs it: the output must hold these arrays and metadata, or the error says all (or any) of the words."""
    rng = case.rng
    options = options + output.options
    rng.shuffle(options)
    command = command + [word for group in options for word in group]
    target = output.target
    before = [name for name in os.listdir(case.dir) if name != "tmp"]
    can_part = command[0] != "split" and output.kind in ("safetensors", "npz") and refused is None
    way = rng.random()
    if can_part and way < 0.17:
        count = rng.choice([2, 3, 7])
        for part in rng.sample(range(count), count):
            run = case.run([*command, "-o", target, "--part", f"{part}/{count}"])
            if run[0]:
                break
    elif output.kind != "shards" and way < 0.35:
        run = case.run([*command, "--to", target[4:]], stdout="piped")
        os.rename(case.path("piped"), case.path(target))
        if run[0]:
            os.remove(case.path(target))
    else:
        if rng.random() < 0.1:
            case.run([*command, "-o", target, "--dry-run"])
            case.check_names(before)
        run = case.run([*command, "-o", target])
    status, _, err = run
    if refused is not None:
        case.check_error(status, err, statuses)
        if not says(word in err for word in refused):
            raise Failure(f"the message does not say {refused}")
        return case.check_names(before)
    if status:
        raise Failure("refused")
    case.check_names(before + [target])
    output.check(case, *expected)


def merge_case(case):
    rng = case.rng
    names = rng.sample(NAMES, rng.choice([3, 6, 12, 16]))
    inputs = [Input(case, number, names, ["format", "by", "k"]) for number in range(rng.choice([1, 2, 2, 3, 4, 6]))]
    wins = rng.choice([None, None, "--first", "--last"])
    options = [[wins]] if wins else []
    options += common_options(rng, True)
    output = Output(rng)
    try:
        arrays, metadata = union(case, inputs, options, wins, output.has_metadata)
        if len(inputs) == 1 and not any("--rename" in flags for flags in options):
            arrays = by_table(case, arrays, options)
        expected, refused = (arrays, metadata if output.has_metadata else {}), None
    except Refused as error:
        expected, refused = None, error.args
    paths = [one.path for one in inputs]
    if rng.random() < 0.2:
        case.write("names", "".join(path + "\n" for path in paths).encode())
        paths = ["--files-from", "names"]
    statuses = (1, 2) if refused and "renamed" in refused[0] else (1,)
    run_and_check(case, ["merge", *paths], options, output, expected, refused, statuses)


def one(job):
    options, number = job
    rng = random.Random(f"merge {options.seed}/{number}")
    return harness.run_case(Case(rng), merge_case, number, options.keep)


def main():
    options = harness.case_parser("tslice merge against dicts of arrays", 1000).parse_args()
    harness.begin(options)
    return harness.run_cases("merge_differential", options, one, start_worker)


if __name__ == "__main__":
    sys.exit(main())
