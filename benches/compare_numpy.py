#!/usr/bin/env python3
"""tslice against NumPy and cp, on this machine, with every result checked byte for byte.

    cargo build --release
    python3 benches/compare_numpy.py              # some minutes, about five times --mib of disk
    python3 benches/compare_numpy.py --layouts    # axes in another order, of up to 2 GiB
    python3 benches/compare_numpy.py --quick      # seconds: does it work at all?

Needs NumPy 1.20 or newer. For each workload, in turn and several rounds over:

    tslice  the program, its start included
    plain   np.save(out, np.load(file, mmap_mode='r')[index])
    best    the faster of assigning to np.lib.format.open_memmap and of
            np.save(out, np.ascontiguousarray(...))
    cp      cp of a file with the contents of the result (--reflink=never): as many bytes, merely copied

NumPy runs inside this process: its start, which takes longer than many a job, is given to it. The
inputs are in the page cache, outputs are new files. A ratio is a time divided by that of tslice in
the same round; what is shown is the median. Below 1.00, tslice lost.
"""

import argparse
import filecmp
import itertools
import math
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# name, input, index
WORKLOADS = [
    ("whole file", "rows", "..."),
    ("contiguous rows", "rows", "100:-100"),
    ("every other row", "rows", "::2"),
    ("crop of columns", "rows", ":, 100:-100"),
    ("thin crop", "rows", ":, 40:56"),
    ("one column", "rows", ":, 17"),
    ("every other column", "rows", ":, ::2"),
    ("every third column", "rows", ":, ::3"),
    ("rows reversed", "rows", "::-1"),
    ("columns reversed", "rows", ":, ::-1"),
    ("all reversed", "rows", "::-1, ::-1"),
    ("image crops", "images", ":, 16:-16, 16:-16"),
    ("one channel", "images", "..., 0"),
    ("channels flipped", "images", "..., ::-1"),
    ("thumbnails", "images", ":, ::4, ::4"),
    ("images mirrored", "images", ":, :, ::-1"),
    ("Fortran to C", "fortran", "..."),
    ("Fortran, a crop", "fortran", "10:-10, :, 5:-5"),
    ("float64, stride 2", "doubles", ":, ::2"),
    ("int16, stride 2", "shorts", ":, ::2"),
]

# transposed, or axes in another order: dtype, shape, axes; the shapes of layouts.rs
LAYOUTS = [
    *(("<f4", (16384, 16384 + more), (1, 0)) for more in (0, 1)),
    *(("|u1", (32768, 32768 + more), (1, 0)) for more in (0, 1)),
    *(("<u2", (32768, 32768 + more), (1, 0)) for more in (0, 1)),
    *(("<f8", (256, 256, 256), axes) for axes in itertools.permutations(range(3))),
    ("<f4", (2,) * 26, tuple(random.Random(5).sample(range(26), 26))),
]


def make_input(path, dtype, shape, fortran=False):
    """Write numbers that repeat nowhere near, and fit every dtype here, without ever holding all."""
    array = np.lib.format.open_memmap(path, "w+", dtype, shape, fortran_order=fortran)
    flat = array.reshape(-1, order="A")
    for start in range(0, flat.size, 1 << 22):
        part = np.arange(start, min(start + (1 << 22), flat.size), dtype=np.uint64)
        flat[start : start + part.size] = part * 2654435761 % 65521 % (251 if flat.itemsize == 1 else 32749)
    array.flush()


def make_inputs(folder, mib):
    """Write the inputs, each of about `mib` MiB, without ever holding one whole."""
    size = mib << 20

    def write(name, dtype, tail, fortran=False):
        itemsize = np.dtype(dtype).itemsize
        shape = (max(size // (itemsize * math.prod(tail)), 300), *tail)
        path = folder / f"{name}.npy"
        make_input(path, dtype, shape, fortran)
        return path

    return {
        "rows": write("rows", "<f4", (1024,)),
        "images": write("images", "|u1", (128, 128, 3)),
        "fortran": write("fortran", "<f4", (64, 500), fortran=True),
        "doubles": write("doubles", "<f8", (512,)),
        "shorts": write("shorts", "<i2", (2048,)),
    }


def view(path, index):
    """What an index takes, or a tuple of axes puts in its order."""
    array = np.load(path, mmap_mode="r")
    return array.transpose(index) if isinstance(index, tuple) else array[eval(f"np.s_[{index}]", {"np": np})]


def arguments(index):
    return ["--transpose", ",".join(map(str, index))] if isinstance(index, tuple) else [f"[{index}]"]


def plain(path, index, out):
    np.save(out, view(path, index))


def assigned(path, index, out):
    taken = view(path, index)
    target = np.lib.format.open_memmap(out, "w+", taken.dtype, taken.shape)
    target[...] = taken
    del target


def contiguous(path, index, out):
    np.save(out, np.ascontiguousarray(view(path, index)))


def indices(folder, mib):
    inputs = make_inputs(folder, mib)
    return [(name, lambda source=source: inputs[source], index) for name, source, index in WORKLOADS]


def layouts(folder):
    """Each has the file to itself, as all together may not fit in memory."""

    def name(dtype, shape, axes):
        return f"{dtype} " + ("x".join(map(str, shape)) + f" {axes}" if len(shape) < 4 else f"2^{len(shape)} shuffled")

    def make(dtype, shape):
        make_input(folder / "layout.npy", dtype, shape)
        return folder / "layout.npy"

    return [
        (name(dtype, shape, axes), lambda dtype=dtype, shape=shape: make(dtype, shape), axes)
        for dtype, shape, axes in LAYOUTS
    ]


class Wrong(Exception):
    pass


def same_bytes(a, b):
    """Whether two arrays hold the same bytes, in the same shape, dtype and order of axes."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    rows = max(1, (16 << 20) // max(1, a[:1].nbytes))
    parts = range(0, a.shape[0], rows)
    return all(a[n : n + rows].tobytes() == b[n : n + rows].tobytes() for n in parts)


def measure(args, folder, path, index):
    """The seconds of each contender in each round, and the bytes of the result."""
    reference, out = folder / "reference.npy", folder / "out.npy"
    contiguous(path, index, reference)
    contenders = {
        "tslice": lambda: subprocess.run([args.bin, path, *arguments(index), "-o", out], check=True),
        **({} if isinstance(index, tuple) else {"plain": lambda: plain(path, index, out)}),
        "assigned": lambda: assigned(path, index, out),
        "contiguous": lambda: contiguous(path, index, out),
        "cp": lambda: subprocess.run(["cp", "--reflink=never", reference, out], check=True),
    }
    times = {name: [] for name in contenders}
    for turn in range(args.rounds):
        names = list(contenders)
        # nobody always runs first, or always behind the same neighbour
        names = names[turn % len(names) :] + names[: turn % len(names)]
        for name in names if turn % 2 == 0 else names[::-1]:
            out.unlink(missing_ok=True)
            start = time.perf_counter()
            contenders[name]()
            times[name].append(time.perf_counter() - start)
            if name in ("tslice", "cp"):
                right = filecmp.cmp(out, reference, shallow=False)
            else:
                right = same_bytes(np.load(out, mmap_mode="r"), np.load(reference, mmap_mode="r"))
            if not right:
                raise Wrong(f"{name} wrote another result for [{index}] of {path.name}")
    out.unlink()
    times["best"] = [min(pair) for pair in zip(times.pop("assigned"), times.pop("contiguous"))]
    return times, reference.stat().st_size


def compare(args, folder, name, path, index):
    """Measure a workload and print its line; whether tslice lost."""
    with path.open("rb") as file:
        while file.read(1 << 24):  # into the page cache
            pass
    times, size = measure(args, folder, path, index)
    ours = statistics.median(times["tslice"])
    ratios = {
        other: statistics.median(b / a for a, b in zip(times["tslice"], times[other]))
        for other in ("plain", "best", "cp")
        if other in times
    }
    lost = [other for other, ratio in ratios.items() if ratio < 1]
    print(
        f"{name:28} {size / 1e6:8.1f} {ours:8.4f} {size / ours / 1e9:6.2f}"
        f" {ratios.get('plain', math.nan):8.2f} {ratios['best']:7.2f} {ratios['cp']:6.2f}"
        + ("   slower than " + ", ".join(lost) if lost else ""),
        flush=True,
    )
    return bool(lost)


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default=here.parent / "target/release/tslice", type=Path, help="the program (%(default)s)")
    parser.add_argument("--dir", help="where to make the temporary folder with all files")
    parser.add_argument("--rounds", type=int, help="rounds a workload (7; 2 with --quick)")
    parser.add_argument("--mib", type=int, help="size of an input in MiB (512; 8 with --quick)")
    parser.add_argument("--quick", action="store_true", help="small files, few rounds: a smoke test, no measurement")
    parser.add_argument("--layouts", action="store_true", help="axes in another order, of up to 2 GiB")
    parser.add_argument("--only", default="", help="workloads with this in their name")
    args = parser.parse_args()
    args.rounds = args.rounds or (2 if args.quick else 7)
    args.mib = args.mib or (8 if args.quick else 512)
    if not args.bin.is_file():
        sys.exit(f"{args.bin} is missing: cargo build --release")
    args.bin = args.bin.resolve()

    folder = Path(tempfile.mkdtemp(prefix="tslice-compare-", dir=args.dir))
    rows = []
    try:
        workloads = layouts(folder) if args.layouts else indices(folder, args.mib)
        print(f"NumPy {np.__version__}, {args.rounds} rounds, {folder}\n")
        print(f"{'workload':28} {'out MB':>8} {'seconds':>8} {'GB/s':>6} {'x plain':>8} {'x best':>7} {'x cp':>6}")
        for name, make, index in workloads:
            if args.only in name:
                rows.append(compare(args, folder, name, make(), index))
    except Wrong as wrong:
        sys.exit(f"wrong: {wrong}")
    finally:
        shutil.rmtree(folder)
    count, losses = len(rows), sum(rows)
    print("\nevery result was right, byte for byte")
    print(f"slower than something else in {losses} of {count} workloads")


if __name__ == "__main__":
    main()
