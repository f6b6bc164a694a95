#!/usr/bin/env python3
"""What parts cost: many parts of a sparse file, one after the other, each timed.

    python benches/parts_scale.py --bin target/release/tslice --parts 10000

The input is a sparse .npy of 10 TB, of which a few MB are selected: so next to nothing is read, and
what is measured is the parts themselves. Prints the time of a part near the beginning, the middle and
the end, that of the very last one, which puts the output in place and removes the folder of 10,000
parts, and the system calls of some parts. docs/scale.md holds a run. Needs NumPy.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tests", "python"))
import supervise

ROWS, COLUMNS, STEP, WIDTH = 10_000_000, 262_144, 2500, 4096


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--bin", default="target/release/tslice")
    options.add_argument("--parts", type=int, default=10_000)
    options.add_argument("--dir", help="where the files are made")
    options = options.parse_args()
    binary, count = os.path.abspath(options.bin), options.parts
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        os.chdir(folder)
        with open("a.npy", "wb") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": "<f4", "fortran_order": False, "shape": (ROWS, COLUMNS)})
            file.truncate(file.tell() + ROWS * COLUMNS * 4)
        args = [binary, "a.npy", f"[::{STEP}, :{WIDTH}]", "-o", "o.npy"]
        times, calls = [], {}
        for part in range(count):
            argv = [*args, "--part", f"{part}/{count}"]
            if part in (0, 1, count // 2, count - 2, count - 1) and not supervise.unavailable():
                seen = []
                supervise.Run(argv, lambda call: seen.append(call.name)).go()
                names = ("openat", "linkat", "unlinkat", "mkdirat", "renameat2", "fsync", "ftruncate", "fallocate")
                calls[part] = ", ".join(f"{seen.count(name)} {name}" for name in names if name in seen)
                continue
            began = time.perf_counter()
            subprocess.run(argv, check=True)
            times.append(time.perf_counter() - began)
        assert os.listdir(".") and not [name for name in os.listdir(".") if name.startswith(".tslice")]
        whole = np.load("o.npy", mmap_mode="r")
        assert whole.shape == (ROWS // STEP, WIDTH) and not whole[::97].any()
        ms = lambda some: f"{statistics.median(some) * 1000:.1f} ms"
        print(f"{count} parts of {whole.nbytes / 1e6:.0f} MB, selected from {ROWS * COLUMNS * 4 / 1e12:.1f} TB")
        print(f"median of the first 100: {ms(times[:100])}, of the middle: {ms(times[count // 2:][:100])}, "
              f"of the last 100: {ms(times[-100:])}; all: {sum(times):.0f} s")
        for part, text in calls.items():
            print(f"system calls of part {part}: {text}")


if __name__ == "__main__":
    main()
