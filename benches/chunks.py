#!/usr/bin/env python3
"""Pieces of arrays in chunks: 1 GB of float32 in chunks of 128^3, in Zarr (zstd, gzip) and in HDF5 (gzip), beside
zarr-python, TensorStore and h5py.

    python benches/chunks.py --bin target/release/tslice --dir /somewhere [zstd] [gzip] [hdf5] [written] [plain]

`--pieces 'step 4,plane 0'` measures these rows alone. Each row writes a `.npy` of the piece; of tslice the whole program is measured, of the others what comes after
their import, each time in a process of its own, as in a script that does this one thing. Cold rows let go of the pages of the input before each run; that the disk's own memory keeps some is
beyond this script. `written` is the array as a new Zarr. `plain` is the array without chunks, in an HDF5 file, a `.npy` and,
where PyTorch is there, a `.pt`, each by tslice. The best of three runs counts, and the highest RssAnon of
tslice is said. Needs NumPy, zarr, h5py and tensorstore, a build with the features zarr and hdf5, and 5 GB in --dir.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time

import numpy as np

SIDE, CHUNK = 640, 128
PIECES = [
    ("crop", "[200:450, 100:350, 300:550]"),
    ("step 4", "[::4, ::4, ::4]"),
    ("plane 0", "[300]"),
    ("plane 1", "[:, 300]"),
    ("plane 2", "[:, :, 300]"),
    ("transposed", "-T"),
    ("all", "[:]"),
]


def elements():
    """A smooth volume with noise in its last digits: zstd and gzip halve it about."""
    rng = np.random.default_rng(1)
    axes = np.meshgrid(*[np.linspace(0, 9, SIDE, dtype="f4")] * 3, indexing="ij", sparse=True)
    volume = np.sin(axes[0]) * np.cos(axes[1]) + np.sin(axes[2])
    volume += rng.integers(0, 16, volume.shape, dtype="u1").astype("f4") / 256
    return np.round(volume * 1024) / 1024


def make(folder):
    import h5py
    import zarr
    from zarr.codecs import GzipCodec, ZstdCodec

    data = None
    for name, codec in (("zstd", ZstdCodec(level=3)), ("gzip", GzipCodec(level=4))):
        path = os.path.join(folder, name + ".zarr")
        if not os.path.exists(path):
            data = elements() if data is None else data
            array = zarr.create_array(path, shape=data.shape, dtype=data.dtype, chunks=(CHUNK,) * 3, compressors=codec)
            array[...] = data
    path = os.path.join(folder, "gzip.h5")
    if not os.path.exists(path):
        data = elements() if data is None else data
        with h5py.File(path + ".part", "w") as file:
            file.create_dataset("data", data=data, chunks=(CHUNK,) * 3, compression="gzip", compression_opts=4)
        os.rename(path + ".part", path)
    path = os.path.join(folder, "data.npy")
    if not os.path.exists(path):
        np.save(path, elements() if data is None else data)


def files(path):
    if os.path.isfile(path):
        return [path]
    return [os.path.join(at, name) for at, _, names in os.walk(path) for name in names]


def let_go(path):
    for name in files(path):
        file = os.open(name, os.O_RDONLY)
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def warm(path):
    for name in files(path):
        with open(name, "rb") as file:
            while file.read(1 << 24):
                pass


def anonymous(process):
    """The highest RssAnon of a process, in MiB."""
    most = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as file:
                most = max(most, *(int(line.split()[1]) >> 10 for line in file if line.startswith("RssAnon")), 0)
        except (OSError, ValueError, TypeError):
            pass
        time.sleep(0.002)
    return most


def tslice(options, path, index, out, is_watched=False):
    process = subprocess.Popen([options.bin, path, index, "-o", out, "--force", "-q"])
    if is_watched:
        options.memory = max(options.memory, anonymous(process))
    if process.wait():
        sys.exit(f"tslice {path} {index}: status {process.returncode}")


def taken(array, index):
    """The piece of an array of another library."""
    if index == "-T":
        return np.asarray(array[...]).T
    return np.asarray(eval("array" + index, {"array": array}))


def rivals(kind):
    """Other programs that read this, each a function of a path that opens it."""
    import h5py
    import tensorstore
    import zarr

    if kind == "hdf5":
        return {"h5py": lambda path: h5py.File(path)["data"]}

    def open_tensorstore(path):
        return Read(tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": path}}).result())

    return {"zarr-python": lambda path: zarr.open_array(path, mode="r"), "TensorStore": open_tensorstore}


class Read:
    """An array of TensorStore as one of NumPy: reading is a call of its own."""

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index):
        return self.array[index].read().result()


def best(run, prepare, count):
    times = []
    for _ in range(count):
        prepare()
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def in_process(options, kind, rival, path, index, prepare):
    """The seconds that another library takes for a piece, in a process that does nothing else."""
    prepare()
    args = [sys.executable, __file__, "--dir", options.dir, "--rival", kind, rival, path, index]
    return float(subprocess.run(args, stdout=subprocess.PIPE, check=True).stdout)


def one(options):
    kind, rival, path, index = options.rival
    opened = rivals(kind)[rival]
    began = time.perf_counter()
    piece = taken(opened(path), index)
    np.save(os.path.join(options.dir, "other.npy"), np.ascontiguousarray(piece))
    print(time.perf_counter() - began)


def rows(options, kind, path):
    out = os.path.join(options.dir, "out.npy")
    others = rivals(kind)
    print(f"\n{kind}: {os.path.basename(path)}, {sum(map(os.path.getsize, files(path))) >> 20} MiB\n")
    print("| piece | | tslice | " + " | ".join(others) + " | ratio |\n|---|---|---|" + "---|" * (len(others) + 1))
    for name, index in options.pieces:
        for state, prepare in (("warm", lambda: None), ("cold", lambda: let_go(path))):
            if state == "warm":
                warm(path)
            ours = best(lambda: tslice(options, path, index, out), prepare, options.runs)
            # to look at its memory takes a part of a processor
            tslice(options, path, index, out, is_watched=True)
            expected = np.load(out, mmap_mode="r")
            theirs = {}
            for rival in others:
                theirs[rival] = min(in_process(options, kind, rival, path, index, prepare) for _ in range(options.runs))
            if state == "warm" and not np.array_equal(expected, np.load(os.path.join(options.dir, "other.npy"), mmap_mode="r")):
                sys.exit(f"{name}: other elements")
            ratio = min(theirs.values()) / ours
            print(f"| {name} | {state} | {ours:.3f} s | " + " | ".join(f"{t:.3f} s" for t in theirs.values()) + f" | {ratio:.1f}x |", flush=True)


def plain(options):
    """The array without chunks in three formats."""
    import h5py

    paths = {"npy": os.path.join(options.dir, "data.npy"), "hdf5": os.path.join(options.dir, "plain.h5")}
    if not os.path.exists(paths["hdf5"]):
        with h5py.File(paths["hdf5"], "w") as file:
            file["data"] = np.load(paths["npy"])
    try:
        import torch

        paths["pt"] = os.path.join(options.dir, "plain.pt")
        if not os.path.exists(paths["pt"]):
            torch.save(torch.from_numpy(np.load(paths["npy"])), paths["pt"])
    except (ImportError, OSError, ValueError):
        paths.pop("pt", None)
    if options.make:
        return
    out = os.path.join(options.dir, "out.npy")
    print("\n| piece | | " + " | ".join(paths) + " |\n|---|---|" + "---|" * len(paths))
    for name, index in options.pieces:
        for state in ("warm", "cold"):
            times = []
            for path in paths.values():
                warm(path)
                prepare = (lambda: None) if state == "warm" else lambda: let_go(path)
                times.append(best(lambda: tslice(options, path, index, out), prepare, options.runs))
            print(f"| {name} | {state} | " + " | ".join(f"{t:.3f} s" for t in times) + " |", flush=True)


def written(options):
    """The array as a new Zarr, in chunks of 128^3 by zstd:3."""
    import zarr
    from zarr.codecs import ZstdCodec

    source, out = os.path.join(options.dir, "data.npy"), os.path.join(options.dir, "out.zarr")
    clear = lambda: (shutil.rmtree(out, ignore_errors=True), warm(source))

    def ours():
        process = subprocess.Popen([options.bin, source, "-o", out, "--chunks", "128,128,128", "-q"])
        options.memory = max(options.memory, anonymous(process))

    def theirs():
        data = np.load(source, mmap_mode="r")
        array = zarr.create_array(out, shape=data.shape, dtype=data.dtype, chunks=(CHUNK,) * 3, compressors=ZstdCodec(level=3))
        array[...] = data

    times = [best(run, clear, options.runs) for run in (ours, theirs)]
    print(f"\nwritten, zstd:3: tslice {times[0]:.3f} s, zarr-python {times[1]:.3f} s")
    shutil.rmtree(out, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", default="target/release/tslice")
    parser.add_argument("--dir", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--make", action="store_true", help="make the inputs, and measure nothing")
    parser.add_argument("--pieces", help="names of pieces, with commas between them; all where it is left out")
    parser.add_argument("what", nargs="*", default=["zstd", "gzip", "hdf5", "written", "plain"])
    parser.add_argument("--rival", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rival:
        return one(options)
    options.memory = 0
    wanted = options.pieces.split(",") if options.pieces else [name for name, _ in PIECES]
    options.pieces = [(name, index) for name, index in PIECES if name in wanted]
    make(options.dir)
    if options.make:
        return plain(options) if "plain" in options.what else None
    for what in options.what:
        if what == "written":
            written(options)
        elif what == "plain":
            plain(options)
        else:
            rows(options, what, os.path.join(options.dir, "gzip.h5" if what == "hdf5" else what + ".zarr"))
    print(f"\nhighest RssAnon of tslice: {options.memory} MiB")


if __name__ == "__main__":
    main()
