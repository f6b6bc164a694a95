#!/usr/bin/env python3
"""Outputs in parts: any order, any number at once, kills and repeats.

    python tests/python/parts.py --bin target/debug/tslice --count 40 --seed 1

- `--count` random jobs (slices, gathers, lists, joins, checkpoints, archives; all formats that have parts),
  each in 1, 2, 7 and 64 parts that run in random order, some at once, some twice, some killed at a
  random moment and run again. The output must hold what NumPy says, and be byte for byte that of
  the undivided run; nothing may be left beside it.
- The part that completes an output is killed before each of its system calls, or one of them fails,
  and is run again: before that the output is not there, afterwards it is whole.
- A run of the last part stands still before each of its calls while others complete the output: it stays
  as it is (`parts_rivals.py`, with kills, stops, strange files and data that are cut short).
- Parts of other jobs, two runs of one part, discarding under a running part.
"""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

import harness
import parts_rivals
import supervise
from formats import read_safetensors, safetensors_file
from harness import done_well, failed_well, names, parser, Tally, tslice
from random_indices import shuffled

COUNTS = (1, 2, 7, 64)


# whether the program writes Zarr
ZARR = False


def read(path):
    """The bytes of a file, or the names and bytes of all files in a folder."""
    if os.path.isdir(path):
        found = (os.path.join(folder, name) for folder, _, files in os.walk(path) for name in files)
        return sorted((os.path.relpath(file, path), read(file)) for file in found)
    with open(path, "rb") as file:
        return file.read()


def remove(path):
    shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)


def writes_zarr():
    np.save("a.npy", np.zeros(3))
    return tslice("a.npy", "-o", "o.zarr").returncode == 0


# ---------------------------------------------------------------- random jobs


def array(rng, most=400_000):
    dtype = np.dtype(rng.choice(["<i4", ">i4", "u1", ">f8", "<i2", "<c8", ">u8", "S3", "V7"]))
    shape, left = [], most // dtype.itemsize
    for _ in range(rng.randrange(1, 4)):
        shape.append(rng.randrange(1, max(2, min(left, rng.choice([9, 90, 900, 90_000])) + 1)))
        left //= shape[-1]
    data = np.frombuffer(rng.randbytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    return np.asfortranarray(data) if rng.random() < 0.3 else data


def index(rng, shape):
    items, numbers = [], []
    for n in shape:
        kind = rng.randrange(6)
        if kind == 0 and n > 0 and n < 20:
            items.append(rng.randrange(-n, n))
        elif kind < 4:
            start, step = rng.randrange(-n, n), rng.choice([1, 1, 1, 2, 3, -1, -2])
            items.append(slice(None if rng.random() < 0.6 else start, None, step))
        elif kind == 4 and not numbers:
            numbers = [rng.randrange(-n, n) for _ in range(rng.randrange(1, 60))]
            items.append(numbers)
        else:
            items.append(slice(None))
    spell = lambda it: (f"{'' if it.start is None else it.start}::{it.step or 1}" if isinstance(it, slice) else str(it))
    return tuple(items), "[" + ", ".join(map(spell, items)) + "]"


def loaded(path):
    """The tensors of a file by name, as raw bytes."""
    if path.endswith(".npz"):
        with np.load(path) as file:
            return {name: file[name].tobytes() for name in file.files}
    if path.endswith(".safetensors"):
        return {name: bytes(data) for name, (_, _, data) in read_safetensors(read(path))[0].items()}
    return {"": np.load(path).tobytes()} if path.endswith(".npy") else {"": read(path)}


def join_job(rng):
    """concat or stack of a few arrays or of many, which are not all open at the same time."""
    count = rng.choice([1, 2, 3, 7, 150])
    first = array(rng, 200_000 // count + 100)
    while first.dtype.kind in "SV" and rng.random() < 0.7:
        first = array(rng, 200_000 // count + 100)
    along, ndim = rng.choice(["concat", "stack"]), first.ndim
    axis = rng.randrange(ndim if along == "concat" else ndim + 1)
    arrays, paths = [], []
    for number in range(count):
        shape = list(first.shape)
        if along == "concat":
            shape[axis] = rng.choice([shape[axis], rng.randrange(0, 2 * shape[axis] + 1)])
        dtype = first.dtype.newbyteorder(rng.choice("<>")) if rng.random() < 0.3 else first.dtype
        data = np.frombuffer(rng.randbytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
        arrays.append(np.asfortranarray(data) if rng.random() < 0.2 else data)
        paths.append(f"{'xy'[number % 2]}/in{number // 2}.npy")
    for folder in "xy":
        os.mkdir(folder)
    for path, data in zip(paths, arrays):
        np.save(path, data)
    args = [along, *paths, "--axis", str(axis)]
    if ndim > 1 and rng.random() < 0.5:
        # an index of another axis, so that all inputs take it
        others = [at for at in range(ndim) if along == "stack" or at != axis]
        at, items, texts = rng.choice(others), [slice(None)] * ndim, [":"] * ndim
        n = first.shape[at]
        kind = rng.choice(["slice", "list", "file", "shuffle"])
        numbers = [rng.randrange(-n, n) for _ in range(rng.randrange(1, 40))]
        items[at], texts[at] = (slice(None, None, -1), "::-1") if kind == "slice" else (numbers, str(numbers))
        if kind == "file":
            np.save("list.npy", numbers)
            texts[at] = "@list.npy"
        if kind == "shuffle":
            items[at], texts[at] = shuffled(count, n), f"shuffle({count})"
        arrays = [data[tuple(items)] for data in arrays]
        args += ["--index", "[" + ", ".join(texts) + "]"]
    dtype = arrays[0].dtype
    if dtype.kind in "iu" and rng.random() < 0.2:
        dtype = np.dtype("<i8" if dtype.kind == "i" else "<u8")
        args += ["--cast", dtype.name]
    result = (np.concatenate if along == "concat" else np.stack)([it.astype(dtype) for it in arrays], axis)
    if dtype.kind not in "SV" and rng.random() < 0.3:
        return args, "o.safetensors", {"in": result.astype(dtype.newbyteorder("<")).tobytes()}
    out, order = rng.choice(["o.npy", "o.bin", "o.npz"]), rng.choice("CCF")
    raw = result.astype(dtype).tobytes(order if out == "o.bin" else "C")
    return args + ["--order", order], out, {"in" if out == "o.npz" else "": raw}


def shards_job(rng):
    """A checkpoint cut for tensor parallelism is put together; some tensors are the same in all shards."""
    count = rng.randrange(2, 6)
    sizes = [rng.randrange(1, 90) for _ in range(count)]
    rows = rng.randrange(1, 400)
    kept = {f"kept{i}": rng.randbytes(rng.choice([0, 7, 60_000])) for i in range(rng.randrange(3))}
    wide = [[np.frombuffer(rng.randbytes(rows * size * 2), "<u2").reshape(rows, size) for size in sizes] for _ in "ab"]
    for number, size in enumerate(sizes):
        tensors = {name: ("U8", [len(data)], data) for name, data in kept.items()}
        for name, parts in zip("ab", wide):
            tensors[name] = ("U16", [rows, size], parts[number].tobytes())
        with open(f"s{number}.safetensors", "wb") as file:
            file.write(safetensors_file(tensors, {"made": "by a test"}))
    args = ["concat", *(f"s{number}.safetensors" for number in range(count)), "-t", "a", "-t", "b", "--axis", "1"]
    if kept:
        args.append("--keep-rest")
    whole = {name: np.concatenate(parts, 1).tobytes() for name, parts in zip("ab", wide)}
    return args, rng.choice(["o.safetensors", "o.npz"]), whole | kept


def job(rng):
    """Files are written; the arguments without -o, the output's name, and the bytes of its tensors."""
    kind = rng.choice(["slice", "slice", "cast", "mask", "gather", "checkpoint", "archive", "safetensors",
                       "join", "join", "join", "shards"])
    if kind == "join":
        return join_job(rng)
    if kind == "shards":
        return shards_job(rng)
    if kind in ("checkpoint", "archive"):
        tensors = {name: np.ascontiguousarray(array(rng)) for name in rng.sample("abcdefgh", rng.randrange(1, 6))}
        if kind == "archive":
            tensors["none"] = np.zeros((0, 3), "f4")
            (np.savez if rng.random() < 0.7 else np.savez_compressed)("in.npz", **tensors)
            return ["in.npz", "-t", "*"], "o.npz", {name: it.tobytes() for name, it in tensors.items()}
        blobs = {name: ("U8", [it.nbytes], it.tobytes()) for name, it in tensors.items()}
        with open("in.safetensors", "wb") as file:
            file.write(safetensors_file(blobs, {"made": "by a test"}))
        out = rng.choice(["o.safetensors", "o.npz"])
        if ZARR and rng.random() < 0.3:
            return ["in.safetensors", "-t", "*", "--chunks", str(rng.choice([1000, 9000]))], "o.zarr", None
        return ["in.safetensors", "-t", "*"], out, {name: data for name, (_, _, data) in blobs.items()}
    a = array(rng)
    while kind == "safetensors" and a.dtype.kind in "SV":
        a = array(rng)
    np.save("in.npy", a)
    order = rng.choice("CCF")
    if kind == "mask":
        mask = np.array([rng.random() < 0.4 for _ in range(a.size)]).reshape(a.shape)
        np.save("m.npy", mask)
        args, result, order = ["in.npy", "[@m.npy]"], a[mask], "C"
    elif kind == "cast":
        to = rng.choice(["f8", "i8", "f4"])
        a = np.frombuffer(rng.randbytes(a.size), "u1").reshape(a.shape).astype(rng.choice(["u1", ">i2"]))
        np.save("in.npy", a)
        args, result = ["in.npy", "--cast", "<" + to], a.astype(to)
    elif kind == "gather":
        axis = rng.randrange(a.ndim)
        np.save("i.npy", np.array([rng.randrange(a.shape[axis]) for _ in range(rng.randrange(1, 500))], rng.choice(["i4", "i8"])))
        result = np.take(a, np.load("i.npy"), axis)
        args = ["gather", "in.npy", "--indices", "i.npy", "--axis", str(axis)]
    else:
        items, text = index(rng, a.shape)
        args, result = ["in.npy", text], a[items]
    if kind == "safetensors":
        return args, "o.safetensors", {"in": result.astype(a.dtype.newbyteorder("<")).tobytes()}
    if ZARR and result.dtype.kind not in "SV" and rng.random() < 0.3:
        chunks = [max(1, min(n, rng.choice([1, n // 3, n // 2 + 1, 64]))) for n in result.shape]
        while np.prod([-(-n // c) for n, c in zip(result.shape, chunks)]) > 500:
            chunks = [2 * c for c in chunks]
        codec = ["--codec", rng.choice(["none", "zstd:1", "gzip:1", "blosc"])]
        return args + ["--chunks", ",".join(map(str, chunks)), *codec], "o.zarr", None
    out = rng.choice(["o.npy", "o.bin", "o.npz"])
    raw = result.tobytes(order) if out == "o.bin" else result.tobytes()
    return args + ["--order", order], out, {"in" if out == "o.npz" else "": raw}


def run_parts(rng, args, out, count):
    """Every part to its end, with kills and repeats on the way; then all of them again."""
    parts = list(range(count)) * 2
    rng.shuffle(parts)
    left, running, killed = parts + rng.sample(range(count), min(count, 3)), [], 0
    done = set()
    while left or running:
        while left and len(running) < 4:
            part = left.pop()
            process = harness.start(*args, "-o", out, "--part", f"{part}/{count}")
            kill_at = time.monotonic() + rng.random() * 0.02 if rng.random() < 0.3 else None
            running.append((part, process, kill_at))
        for entry in list(running):
            part, process, kill_at = entry
            if kill_at and time.monotonic() > kill_at and process.poll() is None:
                process.send_signal(signal.SIGKILL)
            status = process.poll()
            if status is None:
                continue
            err = process.communicate()[1]
            running.remove(entry)
            if status == -signal.SIGKILL:
                killed += 1
                left.insert(rng.randrange(len(left) + 1), part)
            else:
                assert status == 0 and not err, (part, status, err)
                done.add(part)
        if os.path.exists(out):
            whole = read("whole" + os.path.splitext(out)[1])
            assert read(out) == whole, "the output appeared before it was whole"
        time.sleep(0.0005)
    for part in range(count):
        done_well(tslice(*args, "-o", out, "--part", f"{part}/{count}"))
    return killed


def random_job(seed, number):
    rng = random.Random(f"{seed} {number}")
    before = None
    args, out, tensors = job(rng)
    before = names()
    whole = "whole" + os.path.splitext(out)[1]
    name = ["--name", "in"] if tensors and "in" in tensors else []
    args = args + name
    done_well(tslice(*args, "-o", whole))
    # of Zarr, zarr_differential.py compares what is written
    if tensors is not None:
        assert loaded(whole) == tensors, f"{args}: the undivided run writes other values than NumPy"
    killed = 0
    for count in COUNTS:
        killed += run_parts(rng, args, out, count)
        assert read(out) == read(whole), f"{args} in {count} parts differs"
        litter = [it for it in names() if it not in before + [out, whole] and not it.startswith(".tslice-")]
        assert not litter, litter
        assert ".tslice-parts-" + out not in names(), "the folder of the parts is left"
        remove(out)
    return killed


def in_folder(function, *args):
    home, folder = os.getcwd(), tempfile.mkdtemp(prefix="tslice-parts-")
    os.chdir(folder)
    try:
        return function(*args)
    finally:
        os.chdir(home)
        shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------- the last part, call by call


SCENES = {
    "npy": (["a.npy", "[::-1, ::2]"], "o.npy", 3, []),
    "npz": (["a.npz", "-t", "*"], "o.npz", 2, []),
    "over an old file": (["a.npy", "[::2]"], "o.npy", 2, ["--force"]),
    "shares blocks": (["a.npy"], "o.npy", 2, []),
    "the first, too": (["a.npy", "[::-1]"], "o.npy", 1, []),
    "zarr": (["a.npy", "[::-1]", "--chunks", "16,30,40"], "o.zarr", 2, []),
}


# Rust's runtime and libc end the process where these fail
ENDING = ("getrandom", "brk")


def call_by_call(tally, title, step):
    args, out, count, force = SCENES[title]
    a = np.arange(40 * 30 * 40, dtype="<i4").reshape(40, 30, 40)
    os.mkdir("start")
    np.save("start/a.npy", a)
    np.savez("start/a.npz", x=a, y=a[0], z=a[:0])
    old = b"old"
    if force:
        with open("start/" + out, "wb") as file:
            file.write(old)
    done_well(tslice(*args, "-o", "../whole", "--to", out.split(".")[-1], cwd="start"))
    whole = read("whole")
    for part in range(1, count):
        done_well(tslice(*args, "-o", out, "--part", f"{part}/{count}", *force, cwd="start"))
    last = [harness.BIN, *args, "-o", out, "--part", f"0/{count}", *force]

    def fresh():
        shutil.rmtree("work", ignore_errors=True)
        shutil.copytree("start", "work", symlinks=True)  # copy2: times of change are kept
        return os.open("err", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)

    def run(decide):
        err = fresh()
        try:
            return supervise.Run(last, decide, stderr=err, cwd="work", env=harness.env()).go(30), os.pread(err, 4096, 0)
        finally:
            os.close(err)

    def state():
        path = "work/" + out
        if not os.path.exists(path):
            return "nothing"
        found = read(path)
        return "whole" if found == whole else "old" if force and found == old else "WRONG"

    calls = []
    run(lambda call: calls.append(call.name))
    tally.check(f"{title}: the undisturbed run", state() == "whole", state())

    def resumed(name):
        before = state()
        if before not in ("whole", "old" if force else "nothing"):
            return f"{name}: left {before}"
        for part in (0, *range(count)):
            done = tslice(*args, "-o", out, "--part", f"{part}/{count}", *force, cwd="work")
            if done.returncode:
                return f"{name}: part {part} again: {harness.text(done)}"
        rest = [it for it in names("work") if it not in ("a.npy", "a.npz", out)]
        return None if state() == "whole" and not rest else f"{name}: then {state()}, {rest}"

    for number in range(1, len(calls) + 1, step):
        name = f"kill at call {number}, {calls[number - 1]}"
        run(lambda call: os.kill(call.run.pid, signal.SIGKILL) if call.number == number else None)
        problem = resumed(name)
        tally.check(f"{title}: {name}", problem is None, problem)
        if calls[number - 1] in ENDING:
            continue
        for word in ("EIO", "ENOSPC"):
            name, failed = f"{word} from call {number}, {calls[number - 1]}", []
            # the call of that number may be another one in each run, where threads make some
            found, err = run(lambda call: failed.append(call.name) or getattr(errno, word) if call.number == number else None)
            good = found.status in (0, 1) and (found.status == 0) == (err == b"") or b"alternative stack" in err
            good = good or failed[:1] and failed[0] in ENDING
            problem = resumed(name) if good else f"{found.status} {err!r}"
            tally.check(f"{title}: {name}", problem is None, problem)
    return len(calls)


# ---------------------------------------------------------------- single checks


def cube():
    np.save("a.npy", np.arange(60_000, dtype="<i4").reshape(100, 600))


def part(number, count, *more, index="[:, ::-1]", out="o.npy"):
    return tslice("a.npy", index, "-o", out, "--part", f"{number}/{count}", *more)


def check_other_jobs_are_refused():
    cube()
    done_well(part(0, 4))
    refused = lambda done, *says: failed_well(done, 1, "parts of another job", *says, "--part discard removes them")
    refused(part(1, 3), "it has 4 parts, not 3")
    refused(part(1, 4, index="[:, ::-2]"), "the index, or another flag")
    refused(part(1, 4, "--order", "F"), "the index, or another flag")
    np.save("b.npy", np.load("a.npy"))
    refused(tslice("b.npy", "[:, ::-1]", "-o", "o.npy", "--part", "1/4"), "other inputs")
    os.utime("a.npy", ns=(1, 1))
    refused(part(1, 4), "the input a.npy had a different size or time")
    assert names() == [".tslice-parts-o.npy", "a.npy", "b.npy"], names()
    status = lambda: done_well(tslice("a.npy", "-o", "o.npy", "--part", "status")).stdout
    assert status() == b"o.npy: 1 of 4 parts are complete, missing 1-3\n", status()
    done_well(tslice("a.npy", "-o", "o.npy", "--part", "discard"))
    assert status() == b"o.npy: no parts are begun\n", status()
    assert names() == ["a.npy", "b.npy"], names()


def check_an_output_that_exists_needs_force():
    cube()
    with open("o.npy", "w") as file:
        file.write("old")
    failed_well(part(0, 2), 1, "exists")
    done_well(part(0, 2, "--force"))
    assert read("o.npy") == b"old"
    failed_well(part(1, 2), 1, "exists")
    done_well(part(1, 2, "--force"))
    harness.same("o.npy", np.load("a.npy")[:, ::-1])
    # one that comes while the parts run
    done_well(part(0, 2, out="p.npy"))
    shutil.copy("a.npy", "p.npy")
    failed_well(part(1, 2, out="p.npy"), 1, "exists")
    os.unlink("p.npy")
    done_well(part(1, 2, out="p.npy"))
    harness.same("p.npy", np.load("a.npy")[:, ::-1])


def check_a_repeat_after_the_end_does_nothing():
    cube()
    for number in (1, 0, 1, 0):
        done_well(part(number, 2))
    before = os.stat("o.npy")
    done_well(part(0, 2))
    done_well(part(0, 2, "--force"))
    after = os.stat("o.npy")
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    # one that was changed since is left alone, and made again with --force
    with open("o.npy", "r+b") as file:
        file.seek(200)
        file.write(b"x")
    done_well(part(0, 2))
    assert read("o.npy")[200:201] == b"x"
    for number in (0, 1):
        done_well(part(number, 2, "--force"))
    harness.same("o.npy", np.load("a.npy")[:, ::-1])
    assert names() == ["a.npy", "o.npy"], names()
    # one of another job is like any file
    failed_well(part(0, 3), 1, "exists")


def check_a_folder_is_not_replaced():
    if not ZARR:
        raise harness.Skip("the program was built without Zarr")
    cube()
    part = lambda number, *more: tslice("a.npy", "-o", "o.zarr", "--chunks", "30,600", "--part", f"{number}/2", *more)
    os.mkdir("o.zarr")
    done_well(part(0))
    assert os.listdir("o.zarr") == []
    open("o.zarr/mine", "w").close()
    for force in ([], ["--force"]):
        failed_well(part(1, *force), 1, "o.zarr", "is a folder that is not empty", "remove it first")
    assert os.listdir("o.zarr") == ["mine"]
    os.unlink("o.zarr/mine")
    # an empty one is
    done_well(part(1))
    assert sorted(os.listdir("o.zarr")) == ["c", "zarr.json"]
    done_well(tslice("a.npy", "-o", "w.zarr", "--chunks", "30,600"))
    assert read("o.zarr") == read("w.zarr")
    os.unlink("o.zarr/c/0/0")
    # a folder that somebody changed is still this job's: its own time is as it was
    done_well(part(0))
    assert names() == ["a.npy", "o.zarr", "w.zarr"], names()


def check_two_runs_of_one_part_at_once():
    rng = np.random.default_rng(1)
    np.save("a.npy", rng.integers(0, 1 << 30, (1000, 3000), dtype="i4"))
    for _ in range(5):
        runs = [harness.start("a.npy", "[:, ::-1]", "-o", "o.npy", "--part", f"{i % 3}/3") for i in range(9)]
        for run in runs:
            err = run.communicate()[1]
            assert run.returncode == 0 and not err, err
        harness.same("o.npy", np.load("a.npy")[:, ::-1])
        assert names() == ["a.npy", "o.npy"], names()
        os.unlink("o.npy")


def check_discarding_under_a_running_part():
    rng = np.random.default_rng(1)
    np.save("a.npy", rng.integers(0, 1 << 30, (3000, 3000), dtype="i4"))
    for delay in range(0, 60, 3):
        run = harness.start("a.npy", "[:, ::-1]", "-o", "o.npy", "--part", "0/2")
        time.sleep(delay / 1000)
        done_well(tslice("a.npy", "-o", "o.npy", "--part", "discard"))
        err = run.communicate()[1]
        assert run.returncode in (0, 1), err
        assert run.returncode == 0 or b"discarded" in err, err
        assert "o.npy" not in names()
        done_well(tslice("a.npy", "-o", "o.npy", "--part", "discard"))
        assert names() == ["a.npy"], names()


def check_what_has_no_parts():
    cube()
    for out, says in (("o.csv", "csv"), ("o.json", "json")):
        failed_well(part(0, 2, out=out), 1, "cannot be written in parts", says)
    failed_well(tslice("a.npy", "-o", "o.npz", "--deflate", "--part", "0/2"), 1, "compressed")
    failed_well(tslice("a.npy", "--part", "0/2"), 2, "-o FILE")
    failed_well(tslice("-", "-o", "o.npy", "--part", "0/2", stdin=open("a.npy")), 1, "regular file")
    failed_well(tslice("a.npy", "-o", "a.npy", "-f", "--part", "0/2"), 1, "is also the output")
    for value in ("2/2", "x", "0/0", "-1/2", "1", "plan/0"):
        failed_well(tslice("a.npy", "-o", "o.npy", "--part", value), 2, "--part")
    for value in ("status", "discard", "plan/2"):
        failed_well(tslice("a.npy", "-o", "o.npy", "--part", value, "-n"), 2, "--dry-run has no effect")
    failed_well(tslice("a.npy", "-o", "o.npy", "--part", "auto"), 1, "no variables of a scheduler")
    failed_well(tslice("concat", "a.npy", "-", "-o", "o.npy", "--part", "0/2", stdin=open("a.npy")), 1, "regular file")
    failed_well(tslice("concat", "a.npy", "-o", "o.csv", "--part", "0/2"), 1, "cannot be written in parts")
    failed_well(tslice("split", "a.npy", "--parts", "2", "-o", "o{}.npy", "--part", "0/2"), 2, "a split has several")
    assert names() == ["a.npy"], names()


def check_other_joins_are_refused():
    for folder in "xy":
        os.mkdir(folder)
        np.save(f"{folder}/a.npy", np.arange(6000, dtype="i4").reshape(100, 60))
        os.utime(f"{folder}/a.npy", (1, 1))
    np.save("l.npy", [3, 1, 2])
    np.save("half.npy", np.arange(3000, dtype="i4").reshape(50, 60))
    part = lambda number, *args: tslice("concat", *args, "-o", "o.npy", "--part", f"{number}/4")
    files = ["x/a.npy", "y/a.npy"]
    # the same by name, size and time, but for their folders
    for begun, others, says in (
        (files, [*files[::-1]], "other inputs"),
        ([files[0], *files], [*files, files[1]], "other inputs"),
        (files, [*files, "--axis", "1", "--index", "[:60]"], "other"),
        ([*files, "--axis", "-1"], [*files, "--axis", "-1", "--index", "[::-1]"], "the index, or another flag"),
        ([*files, "--index", "[[3, 1, 2]]"], [*files, "--index", "[[3, 1, 1]]"], "the index, or another flag"),
        ([*files, "--index", "[@l.npy]"], [*files, "--index", "[[3, 1, 2]]"], "from other inputs"),
        (files, [*files, "--order", "F"], "the index, or another flag"),
        # the same of the first input
        (["half.npy", files[0], "--index", "[:50]"], ["half.npy", files[0], "--index", "[-50:]"], "the index, or another flag"),
    ):
        done_well(part(0, *begun))
        done_well(part(1, *begun))
        failed_well(part(2, *others), 1, "parts of another job", says)
        done_well(tslice("concat", *begun, "-o", "o.npy", "--part", "discard"))
    # another mount of the same folders
    done_well(part(0, *files))
    done_well(part(1, *(os.path.abspath(file) for file in files)))
    np.save("l.npy", [3, 1, 1])
    done_well(tslice("concat", "-o", "o.npy", "--part", "status", *files))
    os.utime("y/a.npy", (2, 2))
    failed_well(part(2, *files), 1, "the input y/a.npy had a different size or time")
    done_well(tslice("concat", "-o", "o.npy", "--part", "discard", *files))
    # a list that changed
    done_well(part(0, *files, "--index", "[@l.npy]"))
    np.save("l.npy", [3, 1, 2])
    os.utime("l.npy", (3, 3))
    failed_well(part(1, *files, "--index", "[@l.npy]"), 1, "the input l.npy had a different size or time")


def check_a_part_reads_only_its_inputs():
    count = 300
    for number in range(count):
        np.save(f"{number}.npy", np.full(1000, number, "f4"))
    args = ["concat", *(f"{number}.npy" for number in range(count)), "-o", "o.npy"]
    plan = done_well(tslice(*args, "--part", "plan/10")).stdout.decode().splitlines()
    for line in map(json.loads, plan):
        assert line["writes"] <= line["reads"] <= line["writes"] + 64 * 32, line
    # elements that are not there any more are missed by the part that needs them alone
    os.truncate("299.npy", 2000)
    failed_well(tslice(*args, "--part", "0/10"), 1, "299.npy")  # headers of all are read
    np.save("299.npy", np.full(1000, 299, "f4"))
    if reason := supervise.unavailable():
        raise harness.Skip(reason)
    opened = []
    note = lambda call: opened.append(call.path()) if call.name == "openat" else None
    assert supervise.Run([harness.BIN, *args, "--part", "3/10", "-j", "1"], note).go(30).status == 0
    inputs = {path: opened.count(path) for path in opened if path.endswith(b".npy") and path[:-4].isdigit()}
    # the header and a sample of each; elements of those that give some
    assert len(inputs) == count and set(inputs.values()) == {2, 3}, inputs
    read_from = [path for path, times in inputs.items() if times == 3]
    assert 30 <= len(read_from) <= 33 and all(89 <= int(path[:-4]) <= 121 for path in read_from), sorted(read_from)
    for number in range(10):
        done_well(tslice(*args, "--part", f"{number}/10"))
    harness.same("o.npy", np.repeat(np.arange(count, dtype="f4"), 1000))


def check_kept_tensors_are_compared_by_the_parts_that_write_them():
    kept = np.arange(60_000, dtype="u1")
    for number in range(3):
        tensors = {"a": ("U8", [50_000], bytes(50_000)), "kept": ("U8", [60_000], kept.tobytes())}
        if number == 2:
            other = kept.copy()
            other[59_000] += 1
            tensors["kept"] = ("U8", [60_000], other.tobytes())
        with open(f"{number}.safetensors", "wb") as file:
            file.write(safetensors_file(tensors))
    args = ["concat", *(f"{number}.safetensors" for number in range(3)), "-t", "a", "--keep-rest", "-o", "o.safetensors"]
    failed_well(tslice(*args), 1, "2.safetensors", "kept")
    outcomes = [tslice(*args, "--part", f"{number}/8") for number in range(8)]
    assert [done.returncode for done in outcomes].count(1) == 1, [harness.text(done) for done in outcomes]
    failed_well(next(done for done in outcomes if done.returncode), 1, "2.safetensors", "kept")
    assert not os.path.exists("o.safetensors")


def check_plan_and_auto():
    cube()
    index = "[:, ::-1]"
    plan = done_well(tslice("a.npy", index, "-o", "o.npy", "--part", "plan/5")).stdout.decode().splitlines()
    plan = [json.loads(line) for line in plan]
    assert [line["part"] for line in plan] == [f"{i}/5" for i in range(5)]
    at = 128
    for line in plan:
        assert line["output"][0] == at and (at == 128 or at % 4096 == 0), line
        at = line["output"][1]
        assert line["writes"] == at - line["output"][0] and line["reads"] >= line["writes"], line
    assert at == 128 + 240_000
    assert names() == ["a.npy"]
    for line in plan[:2]:
        subprocess.run(["bash", "-c", line["command"]], check=True)
    for line in plan[2:3]:
        subprocess.run(line["argv"], check=True)
    for i in (3, 4):
        env = harness.env(SLURM_ARRAY_TASK_ID=str(10 + i), SLURM_ARRAY_TASK_COUNT="5", SLURM_ARRAY_TASK_MIN="10",
                          SLURM_ARRAY_TASK_MAX="14", SLURM_ARRAY_TASK_STEP="1")
        done_well(tslice("a.npy", index, "-o", "o.npy", "--part", "auto", env=env))
    harness.same("o.npy", np.load("a.npy")[:, ::-1])


# ---------------------------------------------------------------- all of it


def main():
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=40, help="random jobs")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--step", type=int, default=1, help="only every so many calls of the last part")
    options.add_argument("--only", type=int, help="this random job alone")
    options.add_argument("--scene", choices=SCENES, help="only the last part, call by call, of this kind of job")
    options = options.parse_args()
    harness.begin(options)
    global ZARR
    ZARR = in_folder(writes_zarr)
    tally, began = Tally(), time.monotonic()
    if options.scene is None:
        random_jobs(tally, options, began)
    if options.scene is None and options.only is None:
        for name, check in [*globals().items(), *vars(parts_rivals).items()]:
            if name.startswith("check_"):
                try:
                    in_folder(check)
                    tally.check(name, True)
                except harness.Skip as reason:
                    print(f"SKIPPED  {name}: {reason}")
                except (AssertionError, subprocess.TimeoutExpired, TimeoutError) as error:
                    tally.check(name, False, error)
    if options.only is None:
        if reason := supervise.unavailable():
            print(f"SKIPPED  the last part, call by call: {reason}")
            return tally.finish()
        if options.scene is None:
            calls = in_folder(parts_rivals.stalls, tally, options.step)
            print(f"parts: stalled: {calls} calls, {time.monotonic() - began:.1f} s", flush=True)
        for title in SCENES if options.scene is None else [options.scene]:
            if title == "zarr" and not ZARR:
                print("SKIPPED  zarr: the program was built without it")
                continue
            calls = in_folder(call_by_call, tally, title, options.step)
            print(f"parts: {title}: {calls} calls, {time.monotonic() - began:.1f} s", flush=True)
    return tally.finish()


def random_jobs(tally, options, began):
    killed = 0
    for number in range(options.count) if options.only is None else [options.only]:
        try:
            killed += in_folder(random_job, options.seed, number)
            tally.check(f"job {number}", True)
        except AssertionError as error:
            tally.check(f"job {number}", False, error)
    print(f"parts: {options.count} jobs, {killed} parts killed, {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
