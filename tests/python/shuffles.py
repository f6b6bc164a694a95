#!/usr/bin/env python3
"""Rows in random order, of files that do not fit in memory: lists, masks, tuples and elements, held against NumPy.

    python tests/python/shuffles.py --bin target/release/tslice --count 200

Each case is a gather, an index with lists, a scatter or an assignment to lists, of 40 to 100 MiB that are not in the
page cache, in a memory control group of 64 MiB, page cache included. Rows have 1 byte to 200 KiB. Most lists are dense
and scattered, so that short rows are distributed through temporary files and long ones read or written one by one; others are
short, sorted or local, so that they are not; some take more memory than there is. Repeated, negative and dropped
positions, masks, values that are broadcast, targets that are copied or changed in place, transposed results, Fortran order, casts, parts, pipes in and out, shards, members of archives, positioned
reads and numbers of threads come in any combination. Every byte of a result is compared. Some cases have a bad
position, or no room in TMPDIR, and must leave nothing.

Needs Linux, NumPy, 400 MB of disk in --dir (TMPDIR, or /tmp), and the right to make control groups (root); without it
all is skipped.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

import numpy as np

import harness
from harness import MIB, Tally
from memory_group import enter, make_group, remove

LIMIT = 64 * MIB


def forget(path):
    """Drops a file from the page cache."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def run(group, folder, *args, **options):
    env = harness.env(TMPDIR=options.pop("tmpdir", folder))
    return harness.tslice(*args, cwd=folder, env=env, preexec_fn=lambda: enter(group), timeout=300, **options)


def draw_list(rng, length, wanted):
    """A kind of list, and positions on an axis of that length, about so many."""
    kind = str(rng.choice(["shuffle", "repeats", "few", "sorted", "local", "reversed", "half"],
                          p=[0.4, 0.2, 0.1, 0.05, 0.1, 0.05, 0.1]))
    if kind == "shuffle":
        positions = rng.permutation(length)
    elif kind == "repeats":
        positions = rng.integers(0, length, wanted)
    elif kind == "few":
        positions = rng.integers(0, length, rng.integers(1, 200))
    elif kind == "sorted":
        positions = np.sort(rng.integers(0, length, wanted))
    elif kind == "local":
        positions = np.clip(np.arange(length) + rng.integers(-20, 20, length), 0, length - 1)
    elif kind == "reversed":
        positions = np.arange(length)[::-1].copy()
    else:  # one half of the output in order, the other not
        positions = np.concatenate([np.arange(length // 2), rng.permutation(length)[:length // 2]])
    return kind, positions[:max(1, wanted)]


class Case:
    def __init__(self, rng, folder, pool, kinds=None):
        self.rng, self.folder, self.pool, self.kinds = rng, folder, pool, kinds
        self.flags, self.text, self.expected, self.fortran = [], "", None, False
        self.input, self.source = ["in.npy"], None

    def params(self, dtype, shape, order="C"):
        """The input: a header and bytes of the pool, not in memory."""
        path = f"{self.folder}/in.npy"
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": order == "F", "shape": shape}
        with open(path, "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            start = int(self.rng.integers(0, len(self.pool)))
            left = nbytes
            while left:
                left -= file.write(self.pool[start:start + left])
                start = 0
        whole = np.load(path)
        forget(path)
        self.text += f" {whole.dtype} {shape} {order}"
        return whole

    def contain(self, whole):
        """Puts the input into an archive, or into a shard of a checkpoint, or makes it a pipe."""
        path, names = f"{self.folder}/in.npy", {"u1": "U8", "<u2": "U16", "<f4": "F32", "<i8": "I64"}
        how = str(self.rng.choice(["npy", "npz", "shards", "pipe"], p=[0.7, 0.1, 0.1, 0.1]))
        name = names.get(whole.dtype.str.replace("|", ""))
        if how == "pipe":
            self.input, self.source = ["-"], path
        elif how == "npz":
            with zipfile.ZipFile(f"{self.folder}/in.npz", "w") as archive:
                archive.writestr("other.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '|u1', 'fortran_order': False, "
                                              b"'shape': (3,), }".ljust(127) + b"\nabc")
                archive.write(path, "x.npy")
            self.input = ["in.npz", "-t", "x"]
        elif how == "shards" and name and whole.flags.c_contiguous:
            folder = f"{self.folder}/model"
            os.mkdir(folder)
            for shard, tensors in (("a", {"other": ("U8", [3], b"abc")}), ("b", {"x": (name, whole.shape, whole.data)})):
                header = {key: {"dtype": dtype, "shape": list(shape), "data_offsets": [0, memoryview(data).nbytes]}
                          for key, (dtype, shape, data) in tensors.items()}
                text = json.dumps(header).encode()
                with open(f"{folder}/{shard}.safetensors", "wb") as file:
                    file.write(len(text).to_bytes(8, "little") + text)
                    for _, _, data in tensors.values():
                        file.write(data)
            with open(f"{folder}/model.safetensors.index.json", "w") as file:
                json.dump({"weight_map": {"other": "a.safetensors", "x": "b.safetensors"}}, file)
            forget(f"{folder}/b.safetensors")
            self.input = ["model", "-t", "x"]
        else:
            return
        if how != "pipe":
            os.unlink(path)
            if how == "npz":
                forget(f"{self.folder}/in.npz")

    def save(self, name, array):
        np.save(f"{self.folder}/{name}", array)

    def draw(self):
        kinds = ["axis0", "axis0", "axis0", "index", "inner", "mask", "pair", "tuples", "elements", "items", "scatter",
                 "scatter", "tuple", "put", "put_flat", "assign", "assign", "assign_inner", "assign_pair"]
        kind = str(self.rng.choice(kinds if self.kinds is None else self.kinds))
        self.text = f"{kind}:"
        getattr(self, kind)(int(self.rng.integers(40, 100)) * MIB)

    def rows(self, nbytes, least=1):
        """A dtype, the shape behind the first axis and that axis; rows have at least so many bytes."""
        size = int(self.rng.choice([1, 2, 4, 4, 8, 8, 16, 3, 12]))
        dtype = {1: "u1", 2: "<u2", 4: "<f4", 8: "<i8", 16: "<c16", 3: "V3", 12: "V12"}[size]
        row = int(np.exp(self.rng.uniform(np.log(max(size, least)), np.log(200 << 10))))
        items = max(1, row // size)
        inner = () if items == 1 else (items,)
        if items > 3 and self.rng.random() < 0.3:
            inner = (2, items // 2)
        length = max(2, nbytes // (int(np.prod(inner)) * size))
        return dtype, inner, min(length, 6_000_000)

    def positions(self, length):
        kind, positions = draw_list(self.rng, length, int(length * self.rng.uniform(0.3, 1.2)))
        self.text += f", {kind} of {len(positions)}"
        dtype = self.rng.choice(["<i8", "<i4", ">i8", "<u4"])
        return positions.astype(dtype)

    def axis0(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        a = self.params(dtype, (length, *inner))
        k = self.positions(length)
        wide = k.astype("i8")
        expected = a[wide]
        how = str(self.rng.choice(["plain", "zero", "clip", "wrap", "negative"], p=[0.6, 0.1, 0.1, 0.1, 0.1]))
        if how != "plain" and k.dtype.kind == "i":
            at = self.rng.integers(0, len(k), max(1, len(k) // 50))
            bad = self.rng.choice([-1, -2, length, length + 5], len(at))
            if how == "negative":
                bad = -1 - bad % length
            k = wide.copy()
            k[at] = bad
            if how == "zero":
                expected[at] = np.zeros((), a.dtype)
            elif how == "negative":
                expected[at] = a[k[at]]
            else:
                expected[at] = a[np.clip(k[at], 0, length - 1) if how == "clip" else k[at] % length]
            self.flags += ["--negative"] if how == "negative" else ["--out-of-range", how]
        if self.rng.random() < 0.2:
            k = k.reshape(-1, 1) if len(k) % 2 else k.reshape(2, -1)
            expected = expected.reshape(*k.shape, *a.shape[1:])
        self.save("k.npy", k)
        self.contain(a)
        self.command = ["gather", *self.input, "--axis", "0", "--indices", "k.npy"]
        self.result(expected)

    def index(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        a = self.params(dtype, (length, *inner), str(self.rng.choice(["C", "C", "F"])))
        k = self.positions(length).astype("i8")
        self.save("k.npy", k)
        index, expected = "[@k.npy]", a[k]
        if inner and self.rng.random() < 0.4:
            index, expected = "[@k.npy, ..., ::2]", a[k][..., ::2]
        self.contain(a)
        self.command = [self.input[0], index, *self.input[1:]]
        self.result(expected)

    def inner(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        outer = int(self.rng.integers(2, 5))
        length = max(2, length // outer)
        a = self.params(dtype, (outer, length, *inner))
        k = self.positions(length).astype("i8")
        self.save("k.npy", k)
        self.contain(a)
        self.command = [self.input[0], "[:, @k.npy]", *self.input[1:]]
        self.result(a[:, k])

    def mask(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        a = self.params(dtype, (length, *inner))
        mask = self.rng.random(length) < self.rng.choice([0.01, 0.5, 0.97])
        self.save("k.npy", mask)
        self.contain(a)
        self.command = [self.input[0], "[@k.npy]", *self.input[1:]]
        self.result(a[mask])

    def pair(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        first = int(self.rng.integers(2, 300))
        length = max(2, length // first)
        a = self.params(dtype, (first, length, *inner))
        count = first * length
        j, k = self.rng.integers(0, first, count), self.rng.integers(-length, length, count)
        self.save("j.npy", j)
        self.save("k.npy", k)
        self.contain(a)
        self.command = [self.input[0], "[@j.npy, @k.npy]", *self.input[1:]]
        self.result(a[j, k])

    def tuples(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        first = int(self.rng.integers(2, 300))
        length = max(2, length // first)
        a = self.params(dtype, (first, length, *inner))
        count = first * length
        k = np.stack([self.rng.integers(0, first, count), self.rng.integers(0, length, count)], axis=1)
        self.save("k.npy", k)
        self.contain(a)
        self.command = ["gather", *self.input, "--indices", "k.npy"]
        self.result(a[k[:, 0], k[:, 1]])

    def elements(self, nbytes):
        columns = int(self.rng.choice([1, 3, 64, 1000]))
        length = min(nbytes // 8, 6_000_000) // columns
        a = self.params("<i8", (length, columns))
        axis = int(self.rng.integers(0, 2))
        k = self.rng.integers(0, a.shape[axis], a.shape)
        self.save("k.npy", k)
        self.contain(a)
        self.command = ["gather", *self.input, "--indices", "k.npy", "--axis", axis, "--elements"]
        self.result(np.take_along_axis(a, k, axis))

    def items(self, nbytes):
        """Single items, by positions that take more memory than there is."""
        dtype = str(self.rng.choice(["u1", "<u2", "<f4"]))
        a = self.params(dtype, (nbytes // np.dtype(dtype).itemsize,))
        k = self.rng.integers(0, len(a), int(self.rng.integers(8_500_000, 11_000_000)))
        self.save("k.npy", k)
        forget(f"{self.folder}/k.npy")
        self.contain(a)
        self.command = ["gather", *self.input, "--axis", "0", "--indices", "k.npy"]
        self.result(a[k])

    def values(self, shape, dtype):
        """Values for a target, in their file."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        whole = np.frombuffer((self.pool * (1 + size // len(self.pool)))[:size], dtype).reshape(shape)
        self.save("v.npy", whole)
        forget(f"{self.folder}/v.npy")
        return whole

    def target(self, command, a):
        """A target that is copied, or changed in place."""
        self.command, self.expected = command, a
        self.flags += ["--io", "read"] if self.rng.random() < 0.2 else []
        self.flags += ["-j", int(self.rng.choice([1, 2, 3, 8]))] if self.rng.random() < 0.6 else []
        self.flags += ["--in-place"] if self.rng.random() < 0.3 and self.input[0] != "in.npz" else []

    def scatter(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        a = self.params(dtype, (length, *inner))
        k = self.positions(length)
        values = self.values((len(k), *inner), a.dtype)
        if k.dtype.kind == "i" and self.rng.random() < 0.3:
            at = self.rng.integers(0, len(k), max(1, len(k) // 50))
            k = k.astype("i8")
            k[at] = self.rng.choice([-1, -length, length, length + 5, 2**40], len(at))
            self.flags += ["--out-of-range", "skip"]
        there = (k >= 0) & (k < length)
        a[k[there]] = values[there]
        self.save("k.npy", k.reshape(-1, 1))
        forget(f"{self.folder}/k.npy")
        self.target(["scatter", "in.npy", "--indices", "k.npy", "--values", "v.npy"], a)

    def tuple(self, nbytes):
        """Tuples of two positions, some of them the same."""
        dtype, inner, length = self.rows(nbytes)
        first = int(self.rng.integers(2, 300))
        length = max(2, length // first)
        a = self.params(dtype, (first, length, *inner))
        count = int(first * length * self.rng.uniform(0.3, 1.5))
        k = np.stack([self.rng.integers(0, first, count), self.rng.integers(0, length, count)], axis=1)
        self.save("k.npy", k)
        a[k[:, 0], k[:, 1]] = self.values((count, *inner), a.dtype)
        self.target(["scatter", "in.npy", "--indices", "k.npy", "--values", "v.npy"], a)

    def put(self, nbytes):
        columns = int(self.rng.choice([3, 64, 1000]))
        a = self.params("<i8", (min(nbytes // 8, 6_000_000) // columns, columns))
        axis = int(self.rng.integers(0, 2)) if columns == 1000 else 1
        # no position twice: NumPy does not say which value stays
        order = self.rng.permutation(a.shape[axis])
        k = np.stack([np.roll(order, shift) for shift in range(min(a.shape[1 - axis], 64))], 1 - axis)
        k = np.take(k, np.arange(a.shape[1 - axis]) % 64 % k.shape[1 - axis], 1 - axis)
        self.save("k.npy", k)
        np.put_along_axis(a, k, self.values(k.shape, a.dtype), axis)
        self.target(["scatter", "in.npy", "--indices", "k.npy", "--values", "v.npy", "--axis", axis, "--elements"], a)

    def put_flat(self, nbytes):
        """Single elements of one axis."""
        dtype = str(self.rng.choice(["u1", "<u2", "<f4", "<i8"]))
        a = self.params(dtype, (nbytes // np.dtype(dtype).itemsize,))
        k = self.rng.permutation(len(a))[:int(self.rng.integers(4_000_000, 9_000_000))]
        k[::7] -= len(a)  # from the end
        self.save("k.npy", k)
        forget(f"{self.folder}/k.npy")
        np.put_along_axis(a, k, self.values(k.shape, a.dtype), 0)
        self.target(["scatter", "in.npy", "--indices", "k.npy", "--values", "v.npy", "--axis", 0, "--elements"], a)

    def assign(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        a = self.params(dtype, (length, *inner))
        if self.rng.random() < 0.3:
            k = self.rng.random(length) < self.rng.choice([0.02, 0.5, 0.97])
            count = int(k.sum())
        else:
            k = self.positions(length).astype("i8")
            k[::5] -= length  # from the end
            count = len(k)
        self.save("k.npy", k)
        index, shape = "[@k.npy]", (count, *inner)
        at = (k,)
        if inner and self.rng.random() < 0.2:
            index, at = "[@k.npy, ..., ::2]", (k, ..., slice(None, None, 2))
            shape = (count, *inner[:-1], (inner[-1] + 1) // 2)
        value, more = shape, []
        if self.rng.random() < 0.2:
            value, more = shape[1:], ["--broadcast"]
        a[at] = self.values(value, a.dtype)
        self.target(["assign", "in.npy", index, "--value", "v.npy", *more], a)

    def assign_inner(self, nbytes):
        """Rows behind an outer axis, or of the last one."""
        dtype, inner, length = self.rows(nbytes)
        outer = int(self.rng.integers(2, 5))
        length = max(2, length // outer)
        a = self.params(dtype, (outer, length, *inner))
        k = self.positions(length).astype("i8")
        self.save("k.npy", k)
        a[:, k] = self.values((outer, len(k), *inner), a.dtype)
        self.target(["assign", "in.npy", "[:, @k.npy]", "--value", "v.npy"], a)

    def assign_pair(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        first = int(self.rng.integers(2, 300))
        length = max(2, length // first)
        a = self.params(dtype, (first, length, *inner))
        count = int(first * length * self.rng.uniform(0.3, 1.2))
        j, k = self.rng.integers(0, first, count), self.rng.integers(-length, length, count)
        self.save("j.npy", j)
        self.save("k.npy", k)
        a[j, k] = self.values((count, *inner), a.dtype)
        self.target(["assign", "in.npy", "[@j.npy, @k.npy]", "--value", "v.npy"], a)

    def result(self, expected):
        """What else is done to it."""
        if expected.ndim > 1 and self.rng.random() < 0.25:
            axes = [int(axis) for axis in self.rng.permutation(expected.ndim)]
            self.flags += ["-T"] if axes == sorted(axes) else [f"--transpose={','.join(map(str, axes))}"]
            expected = expected.T if axes == sorted(axes) else expected.transpose(axes)
        if expected.ndim > 1 and self.rng.random() < 0.1:
            self.flags += ["--order", "F"]
            self.fortran = True
        if expected.dtype.str == "<f4" and self.rng.random() < 0.3:
            self.flags += ["--cast", "f8"]
            with np.errstate(all="ignore"):
                expected = expected.astype("f8")
        if self.rng.random() < 0.3:
            self.flags += ["-j", int(self.rng.choice([1, 2, 3, 8]))]
        if self.rng.random() < 0.2:
            self.flags += ["--io", "read"]
        self.expected = np.ascontiguousarray(expected)


def bytes_of(array):
    return array.reshape(-1).view("u1") if array.dtype.kind != "f" else array.reshape(-1)


def differs(path, case):
    found, expected = np.load(path), case.expected
    if found.shape != expected.shape or found.dtype != expected.dtype or case.fortran > found.flags.f_contiguous:
        return f"{found.dtype} {found.shape}, not {expected.dtype} {expected.shape}"
    if found.dtype.kind == "f":
        # a cast may change the bits of what is no number
        same = np.array_equal(found, expected, equal_nan=True)
    else:
        same = np.array_equal(bytes_of(np.ascontiguousarray(found)), bytes_of(expected))
    return None if same else "other values"


def judge(group, case):
    """None, or what went wrong."""
    folder, way = case.folder, case.rng.random()
    command = [*case.command, *case.flags, "-q"]
    before, is_pipe, options = sorted(os.listdir(folder)), case.source is not None, {}
    if is_pipe:
        options["stdin"] = subprocess.Popen(["cat", case.source], stdout=subprocess.PIPE).stdout
    case.text += f": {' '.join(map(str, command))}"
    if case.command[0] in ("scatter", "assign"):
        to = [] if "--in-place" in case.flags else ["-o", "out.npy"]
        done = run(group, folder, *command, *to)
        if not to:
            os.rename(f"{folder}/in.npy", f"{folder}/out.npy")
            before.remove("in.npy")
    elif way < 0.1 and not is_pipe:
        count = int(case.rng.integers(2, 5))
        for part in map(int, case.rng.permutation(count)):
            case.text += f" --part {part}/{count}"
            done = run(group, folder, *command, "-o", "out.npy", "--part", f"{part}/{count}")
            if done.returncode:
                return harness.text(done)
    elif way < 0.2:
        case.text += " | cat"
        with open(f"{folder}/out.npy", "wb") as out:
            cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=out)
            done = run(group, folder, *command, "-o", "-", stdout=cat.stdin, **options)
            cat.stdin.close()
            cat.wait()
    else:
        done = run(group, folder, *command, "-o", "out.npy", **options)
    if done.returncode or done.stderr:
        return harness.text(done)
    if sorted(os.listdir(folder)) != sorted([*before, "out.npy"]):
        return f"left {os.listdir(folder)}"
    return differs(f"{folder}/out.npy", case)


def judge_errors(group, rng, folder, pool, tally):
    """A bad position among good ones, and no room: nothing is left, and the first one is named."""
    case = Case(rng, folder, pool)
    a = case.params("<f4", (68 * MIB // 256, 64))
    k = rng.permutation(len(a))
    case.save("k.npy", k)
    case.save("p.npy", k.reshape(-1, 1))
    command = ["gather", "in.npy", "--axis", "0", "--indices", "k.npy", "-o", "out.npy"]
    before = sorted(os.listdir(folder))

    def fails(name, says, **options):
        forget(f"{folder}/in.npy")
        done = run(group, folder, *command, **options)
        good = done.returncode == 1 and all(word in done.stderr.decode() for word in says)
        tally.check(name, good and sorted(os.listdir(folder)) == before, harness.text(done))

    def told(good, words):
        """Whether a run says what it should; pages that another one has asked for may still come in."""
        for _ in range(5):
            forget(f"{folder}/in.npy")
            done = run(group, folder, *words)
            if good(done.stdout.decode()):
                break
            time.sleep(0.2)
        return good(done.stdout.decode()), harness.text(done)

    def tells(name, space, *words):
        said = f"{space} bytes (" if space else "of temporary files"
        tally.check(f"what is told of {name}", *told(lambda text: (said in text) == (space > 0), words))

        def in_json(text):
            value = json.loads(text)
            value = value["outputs"][0] if "outputs" in value else value
            return value.get("temporary_bytes", 0) == space

        tally.check(f"what is told of {name} in JSON", *told(in_json, [*words, "--json"]))

    rows = len(k) * 256
    dry = [*command, "--dry-run"]
    tells("short rows", rows + len(k) * 16, *dry)
    tells("transposed", 2 * rows + len(k) * 16, *dry, "-T")
    tells("a list", rows + len(k) * 16, "explain", "in.npy", "[@k.npy]")
    put = ["scatter", "in.npy", "--indices", "p.npy", "--values", "in.npy", "-o", "out.npy"]
    tells("values", rows + len(k) * 16, *put, "--dry-run")
    tells("few rows", 0, "explain", "in.npy", "[[50000, 100000, 7]]")
    tells("columns", 0, "explain", "in.npy", "[:, ::2]")
    tells("a transposed tensor", 0, "explain", "in.npy", "-T")
    half = 128 + rows // 2
    tells("a part", -(-(half - half % 4096 - 128) // 256) * (256 + 16), *dry, "--part", "0/2")
    tally.check("what is told of what fits", *told(lambda text: "temporary" not in text, ["explain", "in.npy", "[5]"]))
    fails("no folder for temporary files", ["cannot be kept in /nonexistent"], tmpdir="/nonexistent")
    command, gathers = ["assign", "in.npy", "[@k.npy]", "--value", "v.npy", "--in-place"], command
    case.save("v.npy", a[::-1])
    before, was = sorted(os.listdir(folder)), a.tobytes()
    fails("no folder for temporary files of values", ["cannot be kept in /nonexistent"], tmpdir="/nonexistent")
    tally.check("nothing is changed without one", np.load(f"{folder}/in.npy").tobytes() == was)
    os.unlink(f"{folder}/v.npy")
    command, before = gathers, sorted(os.listdir(folder))
    for places in [[7], [len(k) - 1], [1000, 70_000, 200_000], [150_000, 150_001]]:
        bad = k.copy()
        bad[places] = len(a) + np.arange(len(places))
        case.save("k.npy", bad)
        fails(f"bad positions at {places}", [f"indices[{places[0]}]"])


def main():
    parser = harness.parser(__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this case alone")
    parser.add_argument("--kinds", nargs="*", help="only these kinds of cases: scatter, axis0, ...")
    parser.add_argument("--dir", default=os.environ.get("TMPDIR", "/tmp"), help="a folder on a disk")
    parser.add_argument("--verbose", action="store_true", help="print each case and how long it took")
    options = parser.parse_args()
    harness.begin(options)
    group, tally = make_group(LIMIT), Tally()
    if not group:
        print("SKIPPED  everything: no right to make a memory control group")
        print("0 passed, 0 failed")
        return 0
    # what is in memory cannot be forgotten
    kind = subprocess.run(["stat", "-f", "-c", "%T", options.dir], stdout=subprocess.PIPE, text=True).stdout.strip()
    if kind in ("tmpfs", "ramfs"):
        remove(group)
        print(f"SKIPPED  everything: {options.dir} is in memory")
        print("0 passed, 0 failed")
        return 0
    pool = np.random.default_rng(options.seed).bytes(101 * MIB)
    folder = tempfile.mkdtemp(prefix="tslice-shuffles-", dir=options.dir)
    try:
        for number in range(options.count) if options.only is None else [options.only]:
            case = Case(np.random.default_rng([options.seed, number]), folder, pool, options.kinds)
            case.draw()
            begun = time.monotonic()
            problem = judge(group, case)
            tally.check(f"case {number}, {case.text}", problem is None, problem)
            if options.verbose:
                print(f"case {number} ({time.monotonic() - begun:.1f} s), {case.text}", flush=True)
            for name in os.listdir(folder):
                path = f"{folder}/{name}"
                shutil.rmtree(path) if os.path.isdir(path) else os.unlink(path)
        if options.only is None:
            judge_errors(group, np.random.default_rng(options.seed), folder, pool, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        remove(group)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
