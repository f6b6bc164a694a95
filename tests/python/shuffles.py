#!/usr/bin/env python3
"""Rows in random order, of inputs that do not fit in memory: lists, masks, tuples and elements, held against NumPy.

    python tests/python/shuffles.py --bin target/release/tslice --count 200

Each case is a gather, or an index with lists, of 40 to 100 MiB that are not in the page cache, in a memory control
group of 64 MiB, page cache included. Rows have 1 byte to 200 KiB. Most lists are dense and scattered, so that short
rows are distributed through temporary files and long ones read one by one; others are short, sorted or local, so that
they are not. Repeated, negative and dropped positions, transposed results, casts, parts, pipes, positioned reads and
numbers of threads come in any combination. Every byte of a result is compared. Some cases have a bad position, or no
room in TMPDIR, and must leave nothing.

Needs Linux, NumPy, 400 MB of disk in --dir (TMPDIR, or /tmp), and the right to make control groups (root); without it
all is skipped.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

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
    def __init__(self, rng, folder, pool):
        self.rng, self.folder, self.pool = rng, folder, pool
        self.flags, self.text, self.expected, self.dense = [], "", None, False

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
        self.text = f"{whole.dtype} {shape} {order}"
        return whole

    def save(self, name, array):
        np.save(f"{self.folder}/{name}", array)

    def draw(self):
        kind = str(self.rng.choice(["axis0", "axis0", "axis0", "index", "inner", "mask", "pair", "tuples", "elements"]))
        self.text = kind
        getattr(self, kind)(int(self.rng.integers(40, 100)) * MIB)

    def rows(self, nbytes):
        """A dtype, the shape behind the first axis and that axis."""
        size = int(self.rng.choice([1, 2, 4, 4, 8, 8, 16, 3, 12]))
        dtype = {1: "u1", 2: "<u2", 4: "<f4", 8: "<i8", 16: "<c16", 3: "V3", 12: "V12"}[size]
        row = int(np.exp(self.rng.uniform(np.log(size), np.log(200 << 10))))
        items = max(1, row // size)
        inner = () if items == 1 else (items,)
        if items > 3 and self.rng.random() < 0.3:
            inner = (2, items // 2)
        length = max(2, nbytes // (int(np.prod(inner)) * size))
        return dtype, inner, min(length, 6_000_000)

    def positions(self, length):
        kind, positions = draw_list(self.rng, length, int(length * self.rng.uniform(0.3, 1.2)))
        self.text += f", {kind} of {len(positions)}"
        self.dense = kind in ("shuffle", "repeats")
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
        self.command = ["gather", "in.npy", "--axis", "0", "--indices", "k.npy"]
        self.result(expected)

    def index(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        a = self.params(dtype, (length, *inner), str(self.rng.choice(["C", "C", "F"])))
        k = self.positions(length).astype("i8")
        self.save("k.npy", k)
        self.command = ["in.npy", "[@k.npy]"]
        expected = a[k]
        if inner and self.rng.random() < 0.4:
            self.command[1], expected = "[@k.npy, ..., ::2]", a[k][..., ::2]
        self.result(expected)

    def inner(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        outer = int(self.rng.integers(2, 5))
        length = max(2, length // outer)
        a = self.params(dtype, (outer, length, *inner))
        k = self.positions(length).astype("i8")
        self.save("k.npy", k)
        self.command = ["in.npy", "[:, @k.npy]"]
        self.result(a[:, k])

    def mask(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        a = self.params(dtype, (length, *inner))
        mask = self.rng.random(length) < self.rng.choice([0.01, 0.5, 0.97])
        self.save("k.npy", mask)
        self.command = ["in.npy", "[@k.npy]"]
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
        self.command = ["in.npy", "[@j.npy, @k.npy]"]
        self.result(a[j, k])

    def tuples(self, nbytes):
        dtype, inner, length = self.rows(nbytes)
        first = int(self.rng.integers(2, 300))
        length = max(2, length // first)
        a = self.params(dtype, (first, length, *inner))
        count = first * length
        k = np.stack([self.rng.integers(0, first, count), self.rng.integers(0, length, count)], axis=1)
        self.save("k.npy", k)
        self.command = ["gather", "in.npy", "--indices", "k.npy"]
        self.result(a[k[:, 0], k[:, 1]])

    def elements(self, nbytes):
        columns = int(self.rng.choice([1, 3, 64, 1000]))
        length = min(nbytes // 8, 6_000_000) // columns
        a = self.params("<i8", (length, columns))
        axis = int(self.rng.integers(0, 2))
        k = self.rng.integers(0, a.shape[axis], a.shape)
        self.save("k.npy", k)
        self.command = ["gather", "in.npy", "--indices", "k.npy", "--axis", axis, "--elements"]
        self.result(np.take_along_axis(a, k, axis))

    def result(self, expected):
        """What else is done to it."""
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
    if found.shape != expected.shape or found.dtype != expected.dtype:
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
    before = sorted(os.listdir(folder))
    case.text += f": {' '.join(map(str, command))}"
    if way < 0.1:
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
            done = run(group, folder, *command, "-o", "-", stdout=cat.stdin)
            cat.stdin.close()
            cat.wait()
    else:
        done = run(group, folder, *command, "-o", "out.npy")
    if done.returncode or done.stderr:
        return harness.text(done)
    if sorted(os.listdir(folder)) != sorted([*before, "out.npy"]):
        return f"left {os.listdir(folder)}"
    return differs(f"{folder}/out.npy", case)


def judge_errors(group, rng, folder, pool, tally):
    """A bad position among good ones, and no room: nothing is left, and the first one is named."""
    case = Case(rng, folder, pool)
    a = case.params("<f4", (60 * MIB // 256, 64))
    k = rng.permutation(len(a))
    case.save("k.npy", k)
    command = ["gather", "in.npy", "--axis", "0", "--indices", "k.npy", "-o", "out.npy"]
    before = sorted(os.listdir(folder))

    def fails(name, says, **options):
        forget(f"{folder}/in.npy")
        done = run(group, folder, *command, **options)
        good = done.returncode == 1 and all(word in done.stderr.decode() for word in says)
        tally.check(name, good and sorted(os.listdir(folder)) == before, harness.text(done))

    forget(f"{folder}/in.npy")
    done = run(group, folder, *command, "--dry-run")
    space = len(k) * (256 + 16)
    tally.check("dry run", f"{space} bytes" in done.stdout.decode() and folder in done.stdout.decode(), harness.text(done))
    fails("no folder for temporary files", ["cannot be kept in /nonexistent"], tmpdir="/nonexistent")
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
            case = Case(np.random.default_rng([options.seed, number]), folder, pool)
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
