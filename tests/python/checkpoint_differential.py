#!/usr/bin/env python3
"""Differential test: folders of checkpoints against safetensors and PyTorch, with indexes that do not agree.

    python tests/python/checkpoint_differential.py --bin target/debug/tslice --count 300 --seed 1

Every case is a folder of shards, written by the packages `safetensors` or `torch` where they are there, with an index or without:
one that agrees, that leaves tensors out, that names shards or tensors that are not there, that places a tensor
in one of several shards that hold it, or in another one. What `info` lists, what it says is missing, and the elements
of tensors must be what the shards hold. After `--reindex` nothing is missing.
"""

import json
import os
import random
import sys

import numpy as np

import formats
import harness
from cases import Case
from harness import Failure


try:
    import safetensors.numpy as safetensors
except ImportError:
    safetensors = None

CODES = {"int16": "I16", "int32": "I32", "float64": "F64"}


def torch():
    try:
        import torch
        return torch
    # ValueError: a library that it is linked with is not there
    except (ImportError, ValueError):
        return None


def write_shard(path, tensors, kind):
    if kind == "safetensors":
        if safetensors:
            return safetensors.save_file(tensors, path)
        entries = {name: (CODES[array.dtype.name], array.shape, array.tobytes()) for name, array in tensors.items()}
        return formats.write_safetensors(path, entries)
    made = {name: torch().from_numpy(array) for name, array in tensors.items()}
    torch().save(made, path, _use_new_zipfile_serialization=kind == "bin")


def folder_case(case):
    rng = case.rng
    kind = rng.choice(["safetensors", "safetensors", "bin", "old"]) if torch() else "safetensors"
    stem, end = ("model", "safetensors") if kind == "safetensors" else ("pytorch_model", "bin")
    count = rng.choice([1, 2, 3, 12])
    files = [f"{stem}-{rng.choice(['{}', '{:05}']).format(number)}-of-{count}.{end}" for number in range(1, count + 1)]
    shards, number = {}, 0
    for file in files:
        shards[file] = {}
        for _ in range(rng.choice([1, 2, 4])):
            shards[file][f"t{number}.w"] = np.arange(number, number + rng.choice([0, 1, 5]), dtype=rng.choice(["i4", "f8"]))
            number += 1
    weight_map = {name: file for file, tensors in shards.items() for name in tensors}
    # overlays: the old tensor stands in another shard
    twice = set()
    for name in rng.sample(sorted(weight_map), rng.choice([0, 0, 1])):
        other = rng.choice(files)
        if name not in shards[other]:
            shards[other][name] = np.full(2, -1, dtype="i2")
            twice.add(name)
    left_out = [name for name in weight_map if name not in twice and rng.random() < rng.choice([0, 0, 0.3])]
    index = {name: file for name, file in weight_map.items() if name not in left_out}
    absent = set(rng.sample(files, rng.choice([0, 0, 1])))
    ghosts = {f"ghost{n}": rng.choice(files) for n in range(rng.choice([0, 0, 2]))}
    index |= ghosts
    moved = rng.choice([name for name in index if name in weight_map] or [None]) if rng.random() < 0.3 else None
    if moved and moved not in twice and count > 1:
        index[moved] = rng.choice([file for file in files if file != weight_map[moved]])
    os.mkdir(case.path("m"))
    for file in files:
        if file not in absent:
            write_shard(case.path(f"m/{file}"), shards[file], kind)
    has_index = rng.random() < 0.8 and bool(index)
    if has_index:
        with open(case.path(f"m/{stem}.{end}.index.json"), "w") as file:
            json.dump({"metadata": {"note": "kept"}, "weight_map": index}, file)
    case.story.append(f"{kind} {shards.keys()} absent {absent} left out {left_out} twice {twice} ghosts {ghosts} moved {moved} index {has_index}")
    listed = set(index.values()) if has_index else set(files)
    there = {}
    for file in files:
        if file in absent or file not in listed:
            continue
        for name, array in shards[file].items():
            if has_index and name in index and index[name] != file:
                there.setdefault(name, []).append((1, file, array))
            else:
                there.setdefault(name, []).append((0, file, array))
    expected, conflict = {}, False
    for name, held in there.items():
        best = [it for it in held if it[0] == min(held, key=lambda it: it[0])[0]]
        conflict |= len(best) > 1
        expected[name] = best[0]
    missing = {name for name in index if name not in expected} if has_index else set()
    run = harness.tslice("info", "m", "--json", cwd=case.dir)
    if not expected and not missing or conflict:
        if run.returncode != 1:
            raise Failure(f"status {run.returncode} for {'a conflict' if conflict else 'nothing'}")
        return
    gone = {file for file in listed if file in absent} if has_index else set()
    if run.returncode != (1 if missing or gone else 0):
        raise Failure(f"status {run.returncode}, {run.stderr!r}; missing {missing}, gone {gone}")
    shown = json.loads(run.stdout)[0]
    # an input of one file does not say which
    only = next((file for file in files if file not in absent), None)
    names = {tensor["name"]: tensor.get("file", only) for tensor in shown["tensors"]}
    if names != {name: file for name, (_, file, _) in expected.items()}:
        raise Failure(f"{names} for {expected}")
    found = {entry["name"] for entry in shown.get("missing", []) if entry["name"]}
    if found != missing:
        raise Failure(f"missing {found} for {missing}")
    for name in rng.sample(sorted(expected), min(len(expected), 3)):
        run = harness.tslice("m", "-t", name, "--to", "npy", cwd=case.dir)
        if run.returncode or not run.stdout.endswith(expected[name][2].tobytes()):
            raise Failure(f"-t {name}: status {run.returncode}, {run.stderr!r}")
    for name in list(missing)[:2]:
        run = harness.tslice("m", "-t", name, "--to", "npy", cwd=case.dir)
        if run.returncode != 1 or run.stdout:
            raise Failure(f"-t {name}: status {run.returncode} for a tensor that is missing")
    # all that is asked for, or an error
    run = harness.tslice("m", "-t", "*", "-o", "all.safetensors", cwd=case.dir)
    if run.returncode != (1 if missing else 0):
        raise Failure(f"-t '*': status {run.returncode}, {run.stderr!r}; missing {missing}")
    if not missing:
        if safetensors:
            whole = safetensors.load_file(case.path("all.safetensors"))
            whole = {name: array.tobytes() for name, array in whole.items()}
        else:
            with open(case.path("all.safetensors"), "rb") as file:
                whole = {name: data for name, (_, _, data) in formats.read_safetensors(file.read())[0].items()}
        if whole != {n: a.tobytes() for n, (_, _, a) in expected.items()}:
            raise Failure("all of it is not what the shards hold")
    # a copy of the folder with a change in it
    if not missing and kind == "safetensors":
        chosen = rng.choice(sorted(expected))
        run = harness.tslice("assign", "m", "-t", chosen, "--fill", "7", "-o", "changed/", cwd=case.dir)
        if run.returncode:
            raise Failure(f"assign: status {run.returncode}, {run.stderr!r}")
        changed = {}
        for file in os.listdir(case.path("changed")):
            if file.endswith(".safetensors"):
                with open(case.path(f"changed/{file}"), "rb") as shard:
                    held = formats.read_safetensors(shard.read())[0]
                formats.check_aligned(held)
                changed |= {name: data for name, (_, _, data) in held.items()}
        wanted = {name: (np.full_like(array, 7) if name == chosen else array).tobytes() for name, (_, _, array) in expected.items()}
        if changed != wanted:
            raise Failure(f"assign {chosen}: {sorted(changed)} for {sorted(wanted)}, or other elements")
    # what the index does not name is left out
    if has_index and not missing:
        run = harness.tslice("m", "--index-only", "-t", "*", "-o", "only.safetensors", cwd=case.dir)
        named = {name: array.tobytes() for name, (_, _, array) in expected.items() if name in index}
        if run.returncode != (0 if named else 1):
            raise Failure(f"--index-only: status {run.returncode}, {run.stderr!r}")
        if named:
            with open(case.path("only.safetensors"), "rb") as file:
                only, _ = formats.read_safetensors(file.read())
            formats.check_aligned(only)
            if {name: data for name, (_, _, data) in only.items()} != named:
                raise Failure(f"--index-only: {sorted(only)} for {sorted(named)}")
    if not absent and not ghosts:
        run = harness.tslice("info", "m", "--reindex", "--json", cwd=case.dir)
        strict = harness.tslice("info", "m", "--strict", "--json", cwd=case.dir)
        if run.returncode or strict.returncode and not twice:
            raise Failure(f"--reindex: {run.returncode}, {run.stderr!r}; then --strict: {strict.returncode}, {strict.stderr!r}")


def one(job):
    options, number = job
    return harness.run_case(Case(random.Random(f"{options.seed} {number}")), folder_case, number, options.keep)


def main():
    options = harness.case_parser(__doc__.split("\n")[0], 300).parse_args()
    harness.begin(options)
    return harness.run_cases("checkpoint_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
