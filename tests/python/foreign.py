#!/usr/bin/env python3
"""Files of other programs: each is named, and the command in docs/files.md converts it.

    python tests/python/foreign.py --bin target/debug/tslice

Every file is written by the program or package that it is of, and the command is run as it is written; what
it makes must hold the same elements. Needs NumPy; h5py, scipy, pillow, tifffile, nibabel, pyarrow, onnx and
zarr are used where they are there. The last line is `N passed, M failed`.
"""

import bz2
import gzip
import importlib
import json
import lzma
import os
import pickle
import re
import subprocess
import sys

import numpy as np

import harness

FLOATS = np.arange(12, dtype=np.float32).reshape(3, 4)
BYTES = (FLOATS * 20).astype(np.uint8)


def ensure(holds, what):
    if not holds:
        raise harness.Failure(what)


def package(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        raise harness.Skip(f"{name} is not there") from None


def commands():
    """The commands of docs/files.md, by the kinds of files as messages name them."""
    with open(os.path.join(os.path.dirname(__file__), "../../docs/files.md"), encoding="utf-8") as file:
        section = file.read().split("## Files of other programs\n")[1].split("\n## ")[0]
    items = re.findall(r"^- (.*?):\s`(.*?)`", section, re.MULTILINE)
    return {kind.strip(): line for kinds, line in items for kind in kinds.split(", ")}


def converted(path, output, expected):
    """Runs the command for a file; `expected` are the tensors of what it writes, by name."""
    run = harness.tslice(path, "-o", "never.npy")
    said = run.stderr.decode()
    hint = re.search(r"hint: `(.*?)` reads it", said)
    lines = [line for kind, line in commands().items() if f"{kind}, " in said]
    ensure(run.returncode == 1 and (hint or "docs/files.md" in said and len(lines) == 1), said)
    line = hint[1] if hint else lines[0]
    # the program and the Python of this test
    search = os.pathsep.join([os.path.dirname(sys.executable), os.path.dirname(harness.BIN), os.environ["PATH"]])
    line = line.replace("tslice - ...", f"tslice - -o {output}").replace("FILE", path).replace("'out.", f"'{output[:-3]}")
    run = subprocess.run(["bash", "-c", line], env=harness.env(PATH=search), capture_output=True, text=True)
    ensure(run.returncode == 0, f"{line}\n{run.stderr}")
    for name, array in expected.items():
        chosen = ["-t", name] if name else []
        run = harness.tslice(output, *chosen, "-o", "check.npy", "-f")
        ensure(run.returncode == 0, run.stderr.decode())
        got = np.load("check.npy")
        same = got.dtype.newbyteorder("=") == array.dtype and np.array_equal(got, array)
        ensure(same, f"{path}: {name}: {got!r}")


def read(path, expected, *options):
    """A file that is read as it is."""
    run = harness.tslice(path, *options, "-o", "read.npy", "-f")
    ensure(run.returncode == 0, run.stderr.decode())
    got = np.load("read.npy")
    ensure(got.dtype == expected.dtype and np.array_equal(got, expected), f"{path}: {got!r}")


def check_text():
    np.savetxt("t.csv", FLOATS, delimiter=",")
    read("t.csv", FLOATS.astype(float))
    np.savetxt("s.txt", FLOATS)
    read("s.txt", FLOATS.astype(float))
    with open("h.csv", "w", encoding="utf-8") as file:
        file.write("a,b\n1,2\n3,4\n")
    read("h.csv", np.array([[1.0, 2], [3, 4]]))
    with open("l.json", "w", encoding="utf-8") as file:
        json.dump(FLOATS.tolist(), file)
    read("l.json", FLOATS.astype(float))
    # under another name, the flag that reads it is said
    np.savetxt("t.log", FLOATS, delimiter=",")
    said = harness.tslice("t.log", "-o", "never.npy").stderr.decode()
    ensure("hint: --from csv reads it" in said, said)
    read("t.log", FLOATS.astype(float), "--from", "csv")


def check_pickles():
    for protocol in range(6):
        with open(f"p{protocol}.pkl", "wb") as file:
            pickle.dump(FLOATS, file, protocol=protocol)
        read(f"p{protocol}.pkl", FLOATS)
    for protocol in (2, 3, 4, 5):
        with open(f"l{protocol}.pkl", "wb") as file:
            pickle.dump({"a": FLOATS.tolist()}, file, protocol=protocol)
        converted(f"l{protocol}.pkl", f"l{protocol}.npz", {"a": FLOATS.astype(float)})


def check_compressed():
    np.save("a.npy", FLOATS)
    with open("a.npy", "rb") as file:
        plain = file.read()
    for name, module in (("z.npy.gz", gzip), ("z.npy.bz2", bz2), ("z.npy.xz", lzma)):
        with module.open(name, "wb") as file:
            file.write(plain)
        converted(name, f"{module.__name__}.npy", {None: FLOATS})


def check_hdf5():
    with package("h5py").File("d.h5", "w") as file:
        file["x"] = FLOATS
        file.create_group("g")["y"] = BYTES
    converted("d.h5", "d.npz", {"x": FLOATS, "g/y": BYTES})


def check_matlab():
    scipy_io = package("scipy.io")
    scipy_io.savemat("m5.mat", {"x": FLOATS})
    converted("m5.mat", "m5.npz", {"x": FLOATS})
    scipy_io.savemat("m4.mat", {"x": FLOATS.astype(float)}, format="4")
    converted("m4.mat", "m4.npz", {"x": FLOATS.astype(float)})


def check_pictures():
    package("PIL.Image").fromarray(BYTES).save("i.png")
    converted("i.png", "i.npy", {None: BYTES})


def check_tiff():
    tifffile = package("tifffile")
    for big in (False, True):
        tifffile.imwrite(f"{big}.tif", FLOATS, bigtiff=big)
        converted(f"{big}.tif", f"{big}.npy", {None: FLOATS})


def check_nifti():
    nibabel, volume = package("nibabel"), FLOATS.reshape(3, 2, 2)
    for name, kind in (("n1.nii", nibabel.Nifti1Image), ("n2.nii", nibabel.Nifti2Image)):
        nibabel.save(kind(volume, np.eye(4)), name)
        converted(name, name.split(".", maxsplit=1)[0] + ".npy", {None: volume})


def check_tables():
    table = package("pyarrow").table({"x": FLOATS[0], "y": BYTES[1]})
    package("pyarrow.parquet").write_table(table, "p.parquet")
    converted("p.parquet", "p.npz", {"x": FLOATS[0], "y": BYTES[1]})
    package("pyarrow.feather").write_feather(table, "f.feather")
    converted("f.feather", "f.npz", {"x": FLOATS[0], "y": BYTES[1]})


def check_onnx():
    onnx = package("onnx")
    weights = [package("onnx.numpy_helper").from_array(FLOATS, "w")]
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], initializer=weights)), "m.onnx")
    converted("m.onnx", "m.npz", {"w": FLOATS})


def check_zarr():
    zarr = package("zarr")
    for version in (2, 3):
        zarr.create_array(f"a{version}.zarr", data=FLOATS, zarr_format=version)
        converted(f"a{version}.zarr", f"a{version}.npy", {None: FLOATS})
        group = zarr.open_group(f"g{version}.zarr", mode="w", zarr_format=version)
        group.create_array("x", data=FLOATS)
        converted(f"g{version}.zarr", f"g{version}.npz", {"x": FLOATS})


def main():
    options = harness.check_parser("files of other programs, and the commands that convert them").parse_args()
    harness.begin(options)
    return harness.run_checks(globals(), "foreign", options)


if __name__ == "__main__":
    sys.exit(main())
