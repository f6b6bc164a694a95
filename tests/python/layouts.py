#!/usr/bin/env python3
"""Random layouts: the time of a slice against np.ascontiguousarray(a[index]), which copies in memory.

    layouts.py target/release/tslice [--count 200] [--seed 0] [--mib 16] [--dir FOLDER]
    layouts.py target/release/tslice --only 17,403       the cases of these seeds again
    layouts.py BASE NEW ...                               two programs: what the second gained, too

Each case is drawn from a seed of its own: rank, shape, memory order, item size (1 to 24 bytes), selection
(steps, backwards, crops, single positions) and transposition. Its output holds up to so many MiB, its input at
most 16 times as many, and a wrong byte ends the run. What is compared is the processor time, user and system, of
one thread each: it depends little on what else runs. Rounds are interleaved, and the least of three counts.
Outputs are removed before each run, so that nobody pays for the old one.

Two ratios are formed, above 1 where the program took less: to NumPy doing the same job, the copy of a mapped
array and tofile(); and to NumPy's copy of an array in memory. The first is the fair one: both read a mapped file
and write a new one. The second has no files, so that a plain copy is far below 1 there. The start of a process is
counted for neither: Python runs already, and from the program's time is taken that of a slice of one element.
Printed are the distribution of both and the ten cases worst at the same job. Times never make it fail.
"""
import argparse
import os
import resource
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

SIZES = {1: "u1", 2: "<u2", 4: "<f4", 8: "<f8", 16: "<c16", 3: "V3", 6: "V6", 12: "V12", 24: "V24"}

# The most bytes of an input, as a multiple of those that are wanted of its output.
INPUT = 16


def draw(seed, wanted):
    """(dtype, shape, order, index as text, transposition or None) of a case with about `wanted` bytes."""
    rng = np.random.default_rng(seed)
    size = int(rng.choice(list(SIZES)))
    rank = int(rng.integers(1, 6))
    items = []
    for _ in range(rank):
        kind = rng.choice(["all", "all", "crop", "step", "back", "one"], p=[0.3, 0.1, 0.2, 0.2, 0.15, 0.05])
        items.append(str(kind))
    if all(kind == "one" for kind in items):
        items[0] = "all"
    # lengths: some short, the others share what is left
    kept = [axis for axis, kind in enumerate(items) if kind != "one"]
    lens = {axis: int(rng.choice([2, 3, 4, 5, 7, 16, 33, 64])) for axis in kept if rng.random() < 0.4}
    if len(lens) == len(kept):
        lens.pop(kept[int(rng.integers(len(kept)))])
    rest = wanted / size / np.prod([float(n) for n in lens.values()] or [1.0])
    free = [axis for axis in kept if axis not in lens]
    shares = rng.dirichlet(np.full(len(free), 3.0))
    for axis, share in zip(free, shares):
        lens[axis] = max(2, int(round(rest ** share)))
        if rng.random() < 0.3:  # powers of two are common, and hard on caches
            lens[axis] = 1 << max(1, round(np.log2(lens[axis])))
    shape, index = [], []
    for axis, kind in enumerate(items):
        n = lens.get(axis, int(rng.integers(2, 6)))
        if kind == "all":
            shape.append(n)
            index.append(":")
        elif kind == "crop":
            start = int(rng.integers(0, max(2, n // 4)))
            shape.append(start + n + int(rng.integers(0, max(2, n // 4))))
            index.append(f"{start}:{start + n}")
        elif kind == "step":
            step = int(rng.choice([2, 3, 4, 7]))
            shape.append(n * step)
            index.append(f"::{step}")
        elif kind == "back":
            step = int(rng.choice([1, 1, 2, 3]))
            shape.append(n * step)
            index.append(f"::-{step}")
        else:
            shape.append(n)
            index.append(str(int(rng.integers(n))))
    order = "F" if rng.random() < 0.4 else "C"
    axes = None
    if len(kept) > 1 and rng.random() < 0.4:
        axes = [int(axis) for axis in rng.permutation(len(kept))]
    return SIZES[size], tuple(shape), order, f"[{', '.join(index)}]", axes


def draw_within(seed, wanted):
    """As draw(), made smaller until the input has at most INPUT times the bytes that are wanted. A case whose
    short axes and steps alone make it larger is drawn once more, from another seed."""
    most, smaller = INPUT * wanted, wanted
    while True:
        case = draw(seed, smaller)
        nbytes = int(np.prod(case[1])) * np.dtype(case[0]).itemsize
        if nbytes <= most:
            return nbytes, *case
        smaller //= 2
        if smaller == 0:
            seed, smaller = seed + (1 << 32), wanted


def processor_time(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def least_times(out, jobs):
    """The least processor time of each job, (whose, what to run), of three rounds."""
    rounds = []
    for _ in range(3):
        times = []
        for who, run in jobs:
            out.unlink(missing_ok=True)
            before = processor_time(who)
            run()
            times.append(processor_time(who) - before)
        rounds.append(times)
    return [min(times) for times in zip(*rounds)]


def start_time(program, folder):
    """What a slice of one element takes."""
    path, out = folder / "in.npy", folder / "out.npy"
    np.save(path, np.zeros(8))
    command = [program, str(path), "[3]", "-o", str(out), "-f", "-q", "-j", "1"]
    return min(least_times(out, [(resource.RUSAGE_CHILDREN, lambda: subprocess.run(command, check=True))] * 7))


def measure(programs, starts, folder, pool, seed, wanted):
    nbytes, dtype, shape, order, index, axes = draw_within(seed, wanted)
    path, out = folder / "in.npy", folder / "out.npy"
    with open(path, "wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": order == "F", "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, nbytes, len(pool)):
            file.write(pool[:nbytes - start])
    whole = np.load(path)
    view = eval(f"whole{index}")
    view = view if axes is None else view.transpose(axes)
    flags = [] if axes is None else ["--transpose", ",".join(map(str, axes))]
    expected = np.ascontiguousarray(view)

    def in_memory():
        np.array(view, order="C")

    def same_job():
        mapped = np.load(path, mmap_mode="r")
        mapped = eval(f"mapped{index}")
        np.array(mapped if axes is None else mapped.transpose(axes), order="C").tofile(out)

    def sliced(program):
        command = [program, str(path), index, *flags, "-o", str(out), "-f", "-q", "-j", "1"]
        subprocess.run(command, check=True)

    for program in programs:
        sliced(program)
        found = np.load(out)
        assert found.shape == expected.shape and found.tobytes() == expected.tobytes(), f"seed {seed}: wrong bytes"
    jobs = [(resource.RUSAGE_SELF, in_memory), (resource.RUSAGE_SELF, same_job)]
    jobs += [(resource.RUSAGE_CHILDREN, partial(sliced, program)) for program in programs]
    in_memory_time, same_job_time, *times = least_times(out, jobs)
    times = [max(time - start, 1e-4) for time, start in zip(times, starts)]
    what = f"{dtype} {shape} {order} {index}" + ("" if axes is None else f" transposed {axes}")
    return in_memory_time, same_job_time, times, expected.nbytes, nbytes, what


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", type=os.path.realpath)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mib", type=int, default=16)
    parser.add_argument("--only", help="seeds, parted by commas")
    parser.add_argument("--dir")
    args = parser.parse_args()
    seeds = range(args.seed, args.seed + args.count)
    if args.only:
        seeds = [int(seed) for seed in args.only.split(",")]
    pool = np.random.default_rng(1).bytes(8 << 20)
    cases = []
    with tempfile.TemporaryDirectory(dir=args.dir) as folder:
        starts = [start_time(program, Path(folder)) for program in args.programs]
        print("starts, in ms, not counted:", *(f"{start * 1e3:.1f}" for start in starts))
        for seed in seeds:
            cases.append((seed, *measure(args.programs, starts, Path(folder), pool, seed, args.mib << 20)))
            if args.only:
                show(cases[-1])
    cases.sort(key=on_files_ratio)
    for name, ratio in (("in memory", lambda case: case[1] / case[3][-1]), ("the same job", on_files_ratio)):
        print(f"{len(cases)} layouts, NumPy's time {name} over the program's: {percentiles(map(ratio, cases))}")
    if len(args.programs) > 1:
        gains = [case[3][0] / case[3][-1] for case in cases]
        print(f"the first program's time over the second's: {percentiles(gains)}")
    if not args.only:
        for case in cases[:10]:
            show(case)


def percentiles(ratios):
    ratios = np.array(list(ratios))
    shown = ", ".join(f"{at}% {np.percentile(ratios, at):.2f}" for at in (0, 1, 5, 25, 50, 75, 95, 100))
    return f"{shown}; below 1: {np.mean(ratios < 1):.1%}"


def on_files_ratio(case):
    return case[2] / case[3][-1]


def show(case):
    seed, in_memory, on_files, times, out, read, what = case
    print(f"  {on_files_ratio(case):.2f}  seed {seed}: {what}: {times[-1] * 1e3:.1f} ms; NumPy {on_files * 1e3:.1f} ms, "
          f"in memory {in_memory * 1e3:.1f}; {out / 1e6:.1f} MB of {read / 1e6:.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
