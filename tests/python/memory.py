#!/usr/bin/env python3
"""How much memory of its own (RssAnon) the program takes for texts, masks, reductions and thousands of tensors or
files: no more than 64 MiB and 4 MiB a thread, whatever their size.

    python tests/python/memory.py --bin target/release/tslice [--only WORD] [--scale 10]

`--scale` divides all sizes. Each check runs in a folder of its own, and needs up to 3 GB there (TMPDIR). The last
line is `N passed, N failed`.
"""

import json
import os
import pickle
import resource
import struct
import sys

import numpy as np

import harness
import torch_files
from harness import MIB, peak_rss_anon, same, start

SCALE = 1
THREADS = 2
LIMIT = (64 + 4 * THREADS) * MIB


def peak(*args, limit=LIMIT, **options):
    """The highest RssAnon of a run that must succeed."""
    process = start(*args, "-j", THREADS, **options)
    most = peak_rss_anon(process)
    err = process.stderr.read()
    assert process.returncode == 0, (args, process.returncode, err)
    assert most < limit, f"{args}: {most / MIB:.0f} MiB of {limit / MIB:.0f}"
    return most


def told(**peaks):
    return ", ".join(f"{name.replace('_', ' ')} {most / MIB:.0f} MiB" for name, most in peaks.items())


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))


def check_pickles():
    array = np.arange(7_500_000 // SCALE) % 9000
    found = {}
    for protocol in (0, 2, 5):
        # elements that are decoded, and such that are read where they lie
        with open("p.pkl", "wb") as file:
            pickle.dump({"w": array, "few": array[:9]}, file, protocol)
        found[f"protocol_{protocol}"] = peak("p.pkl", "-t", "w", "-o", "w.npy", "-f")
        same("w.npy", array)
    return told(**found)


def check_a_line_of_100_megabytes():
    count = 20_000_000 // SCALE
    row = np.arange(count) % 9000 + 1000
    line = ",".join(map(str, row.tolist())).encode()
    with open("a.csv", "wb") as file:
        file.write(line + b"\n" + line + b"\n")
    with open("a.json", "wb") as file:
        file.write(b"[" + line + b"]")
    with open("list.txt", "wb") as file:
        file.write(line.replace(b",", b" "))
    np.save("few.npy", np.arange(10_000, dtype="u1"))
    csv = peak("a.csv", "--dtype", "float32", "-o", "csv.npy")
    same("csv.npy", np.stack([row, row]).astype("f4"))
    as_json = peak("a.json", "--dtype", "int64", "-o", "json.npy")
    same("json.npy", row.astype("i8"))
    listed = peak("few.npy", "[@list.txt]", "-o", "listed.npy")
    return told(csv=csv, json=as_json, list=listed)


def check_one_cell_of_100_megabytes_is_no_number():
    digits = b"1" * (100_000_000 // SCALE)
    for name, text in (("a.csv", digits), ("b.csv", b'"' + digits + b'"'), ("c.csv", b"# " + digits + b"\n1,2\n"),
                       ("a.json", b"[" + digits + b"]"), ("b.json", b'["' + digits + b'"]')):
        with open(name, "wb") as file:
            file.write(text)
        process = start(name, "-o", "o.npy", "-f", "-j", THREADS)
        most = peak_rss_anon(process)
        err = process.stderr.read()
        assert most < LIMIT, f"{name}: {most / MIB:.0f} MiB"
        assert process.returncode in (0, 1) and len(err) < 2000, (name, process.returncode, len(err))


def check_merges_of_thousands_of_inputs():
    count = 5000 // SCALE
    os.mkdir("in")
    row = np.arange(1000, dtype="f4")
    for number in range(count):
        np.save(f"in/t{number:05}.npy", row + number)
    with open("list", "w") as file:
        file.writelines(f"in/t{number:05}.npy\n" for number in range(count))
    peaks = {}
    for output, more in (("o.safetensors", []), ("o.npz", []), ("out/", ["--shard-size", "2MB"]), ("d.npz", ["--deflate"])):
        name = output.strip("/").replace(".", "_")
        peaks[name] = peak("merge", "--files-from", "list", "-o", output, *more, preexec_fn=few_descriptors)
    with np.load("o.npz") as found:
        assert len(found.files) == count and (found[f"t{count - 1:05}"] == row + count - 1).all()
    return told(**peaks)


def check_statistics_of_100000_tensors():
    count = 100_000 // SCALE
    data = np.arange(count * 4, dtype="<f4")
    header = {f"model.layers.{i}.weight": {"dtype": "F32", "shape": [2, 2], "data_offsets": [16 * i, 16 * i + 16]}
              for i in range(count)}
    blob = json.dumps(header).encode()
    with open("m.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(blob)) + blob + data.tobytes())
    every = ["view", "m.safetensors", "-t", "*"]
    return told(table=peak(*every, "--stats"), sorted=peak(*every, "--stats", "--sort", "nan,max"),
                json=peak(*every, "--stats", "--json"), axis=peak(*every, "--stats", "--axis", "0"),
                reduced=peak(*every, "--reduce", "mean", "--axis", "0", "-o", "o.safetensors"),
                metadata=peak("m.safetensors", "--metadata", "by=me", "-o", "p.safetensors"),
                # all changes are checked, and held, before the first is made
                filled=peak("assign", "m.safetensors", "-t", "*", "[0]", "--fill", "0", "--in-place", limit=LIMIT + 2048 * count))


def check_checkpoints_of_a_million_tensors():
    count = 1_000_000 // SCALE
    storage = np.arange(count * 4, dtype="<f4")
    stored = storage.tobytes()
    views = {f"layers.{i // 10}.w{i % 10}": torch_files.View(stored, "float32", 4 * i, (4,), (1,)) for i in range(count)}
    torch_files.pt(views, "m.pt")
    del views
    last = count - 1
    limit = LIMIT + 250 * max(count - 100_000, 0)
    one = peak("m.pt", "-t", f"layers.{last // 10}.w{last % 10}", "-o", "o.npy", limit=limit)
    same("o.npy", storage[-4:])
    return told(one_of_a_million=one)


def check_reductions_to_very_many_slices():
    rows = 20_000_000 // SCALE
    np.save("a.npy", np.arange(rows * 4, dtype="i4").reshape(rows, 4))
    np.save("f.npy", np.asfortranarray(np.load("a.npy")))
    reduced = lambda name, how, axis: peak("view", name, "--reduce", how, "--axis", axis, "-o", f"{how}.npy", "-f")
    peaks = told(mean=reduced("a.npy", "mean", "1"), std=reduced("a.npy", "std", "1"), fortran=reduced("f.npy", "mean", "1"),
                 max=reduced("a.npy", "max", "1"), none=reduced("a.npy", "any", "0"))
    same("mean.npy", np.load("a.npy", mmap_mode="r").mean(1))
    return peaks


def check_masks_of_a_gigabyte():
    count = 1_000_000_000 // SCALE
    block = np.random.default_rng(1).integers(0, 2, 1_000_000, "u1")
    with open("mask.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|b1", "fortran_order": False, "shape": (count,)})
        for _ in range(count // len(block)):
            file.write(block.tobytes())
    with open("a.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (count,)})
        file.truncate(file.tell() + count)
    return told(kept=peak("a.npy", "[@mask.npy]", "-o", "o.npy"), others=peak("a.npy", "[~@mask.npy]", "-o", "p.npy"),
                by_reading=peak("a.npy", "[~@mask.npy]", "-o", "p.npy", "--io", "read", "-f"))


def check_100_million_positions():
    count = 100_000_000 // SCALE
    np.save("i.npy", np.random.default_rng(1).permutation(count).astype("<u4"))
    np.save("a.npy", np.arange(count, dtype="<u4"))
    peaks = told(list=peak("a.npy", "[@i.npy]", "-o", "o.npy"),
                 scatter=peak("scatter", "a.npy", "--axis", "0", "--elements", "--indices", "i.npy", "--values", "a.npy", "-o", "s.npy"))
    same("o.npy", np.load("i.npy"))
    return peaks


def main():
    global SCALE
    parser = harness.check_parser("memory of its own that the program takes")
    parser.add_argument("--scale", type=int, default=1, help="what all sizes are divided by (%(default)s)")
    options = parser.parse_args()
    SCALE = options.scale
    harness.begin(options)
    return harness.run_checks(globals(), "memory", options)


if __name__ == "__main__":
    sys.exit(main())
