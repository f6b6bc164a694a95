#!/usr/bin/env python3
"""Blocks that outputs share with their inputs, on file systems that share them: images of XFS and
btrfs, made here and mounted by loop devices. Needs root, mkfs.xfs and mkfs.btrfs (Debian's xfsprogs and
btrfs-progs), and filefrag (e2fsprogs); what is missing is skipped in words.

Each output must hold what NumPy and the safetensors package say (safetensors needs that package), and
be shared but for some blocks at its ends, by filefrag and by the free space of the image. `--large` takes a
slice of 4 GB and a checkpoint of 8 GB, and prints how long the runs take; `--faults` runs the scenes of
faults.py and parts.py that share blocks on the image.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np

import harness
from harness import MIB, Skip, done_well, tslice

OPTIONS = None
# what may be copied of an output: a header, and blocks at the ends of ranges
ENDS = 256 << 10
PATTERN = np.random.default_rng(1).integers(0, 256, 8 * MIB, np.uint8)


# ---------------------------------------------------------------- images


class Image:
    """A file system in a sparse file, mounted while this is open, with the working directory in it."""

    def __init__(self, kind, size):
        self.kind, self.size = kind, size

    def __enter__(self):
        for tool in (f"mkfs.{self.kind}", "mount", "umount", "filefrag"):
            if shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin") is None:
                raise Skip(f"no {tool} here")
        if os.geteuid() != 0:
            raise Skip("only root may mount an image")
        self.home = tempfile.mkdtemp(prefix="tslice-image-", dir=OPTIONS.folder)
        self.image, self.root = os.path.join(self.home, "image"), os.path.join(self.home, "root")
        os.mkdir(self.root)
        with open(self.image, "wb") as file:
            file.truncate(self.size)
        self.mounted = False
        options = ["-m", "reflink=1"] if self.kind == "xfs" else []
        made = run([f"mkfs.{self.kind}", "-q", *options, self.image])
        mounted = run(["mount", "-o", "loop", self.image, self.root])
        if made.returncode or mounted.returncode:
            shutil.rmtree(self.home)
            raise Skip(f"{self.kind} cannot be mounted here: {(made.stderr + mounted.stderr).strip()}")
        self.before = os.getcwd()
        os.chdir(self.root)
        return self

    def __exit__(self, *_):
        os.chdir(self.before)
        for _ in range(20):
            if run(["umount", self.root]).returncode == 0:
                break
            time.sleep(0.5)
        shutil.rmtree(self.home, ignore_errors=True)

    def used(self):
        os.sync()
        free = os.statvfs(self.root)
        return (free.f_blocks - free.f_bfree) * free.f_frsize


def run(command):
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    return subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, PATH=path, LC_ALL="C"))


def shared_bytes(path):
    """Bytes of the extents that filefrag calls shared."""
    found = run(["filefrag", "-b1", "-v", path])
    assert found.returncode == 0, found.stderr
    rows = re.findall(r"^ *\d+: .*?: +(\d+): .*$", found.stdout, re.M)
    flags = [line for line in found.stdout.splitlines() if re.match(r" *\d+:", line)]
    return sum(int(length) for length, line in zip(rows, flags) if "shared" in line)


def is_shared(path, at_most=ENDS):
    size, shared = os.path.getsize(path), shared_bytes(path)
    found = f"{shared} of {size} bytes are shared"
    assert size - shared <= at_most, f"{path}: {found}"
    return found


def timed(*args):
    begun = time.monotonic()
    done = done_well(tslice(*args, "-q"))
    seconds = time.monotonic() - begun
    return done, f"{seconds * 1000:.0f} ms"


# ---------------------------------------------------------------- files


def rows(count, number):
    """Different rows of 1 MiB."""
    for row in range(count):
        at = (row * 7919 + number * 104729) % (len(PATTERN) - MIB)
        yield PATTERN[at:at + MIB] ^ np.uint8(row % 251)


def make_npy(path, count, number=0):
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": (count, MIB)})
        for row in rows(count, number):
            file.write(row)


def make_checkpoint(path, tensors):
    """Tensors of bytes, each a name and a number of rows of 1 MiB but for the first, whose rows have
    4104 bytes; its small rows, which no block begins with, are what is cut."""
    import json
    import struct
    header, at = {"__metadata__": {"format": "pt"}}, 0
    shapes = {"embed": [2051, 4104]} | {name: [count, MIB] for name, count in tensors.items()}
    for name, shape in shapes.items():
        end = at + shape[0] * shape[1]
        header[name] = {"dtype": "U8", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.write(np.resize(PATTERN, 2051 * 4104))
        for number, (name, count) in enumerate(tensors.items()):
            for row in rows(count, number):
                file.write(row)


def same_rows(array, start, number=0):
    """The array holds the rows from `start` on."""
    for at, row in enumerate(rows(start + len(array), number)):
        assert at < start or np.array_equal(array[at - start], row), f"row {at} differs"


def package():
    try:
        from safetensors import safe_open
        return safe_open
    except ImportError:
        raise Skip("the package safetensors is not here") from None


# ---------------------------------------------------------------- checks


def slices(image):
    count = 4200 if OPTIONS.large else 40
    make_npy("a.npy", count)
    os.sync()
    used = image.used()
    tslice("a.npy", "[3:-5]", "-o", "o.npy", "--dry-run")
    assert harness.names() == ["a.npy"] or harness.names() == ["a.npy", "lost+found"], harness.names()
    _, time_taken = timed("a.npy", "[3:-5]", "-o", "o.npy")
    note = f"{time_taken}, {is_shared('o.npy')}"
    assert image.used() - used < 8 * MIB, f"{image.used() - used} bytes more are used"
    same_rows(np.load("o.npy", mmap_mode="r"), 3)
    before = os.stat("a.npy")
    # over the input itself, of which the new one has the blocks
    done_well(tslice("o.npy", "[1:]", "-o", "o.npy", "--force", "-q"))
    is_shared("o.npy")
    same_rows(np.load("o.npy", mmap_mode="r"), 4)
    assert os.stat("a.npy").st_mtime_ns == before.st_mtime_ns
    # a change of the one does not reach the other
    done_well(tslice("assign", "o.npy", "[0, 5000:9000]", "--fill", "1", "--in-place", "-q"))
    same_rows(np.load("a.npy", mmap_mode="r")[:6], 0)
    # what begins elsewhere in a block is copied
    done_well(tslice("a.npy", "[:5, 1:]", "-o", "u.npy", "-q"))
    assert np.array_equal(np.load("u.npy"), np.load("a.npy", mmap_mode="r")[:5, 1:])
    done_well(tslice("a.npy", "[2:9]", "-o", "r.npy", "-q", "--io", "read"))
    is_shared("r.npy")
    same_rows(np.load("r.npy"), 2)
    return note


def checkpoint(image):
    safe_open = package()
    count = 800 if OPTIONS.large else 4
    tensors = {f"layer{i}": count for i in range(10)}
    make_checkpoint("m.safetensors", tensors)
    os.sync()
    used = image.used()
    trim = ["m.safetensors", "[:2000]", "-t", "embed", "--keep-rest"]
    _, time_taken = timed(*trim, "-o", "t.safetensors")
    note = f"{time_taken}, {is_shared('t.safetensors', ENDS + 51 * 4104 + (9 << 20))}"
    assert image.used() - used < 20 * MIB, f"{image.used() - used} bytes more are used"
    with safe_open("t.safetensors", "np") as file:
        assert sorted(file.keys()) == sorted(["embed", *tensors]) and file.metadata() == {"format": "pt"}
        assert np.array_equal(file.get_tensor("embed"), np.resize(PATTERN, 2051 * 4104).reshape(2051, 4104)[:2000])
        for number, name in enumerate(tensors):
            same_rows(file.get_tensor(name), 0, number)
    with open("t.safetensors", "rb") as file:
        assert int.from_bytes(file.read(8), "little") % 8 == 0
    if not OPTIONS.large:
        # the bytes are the same where nothing is shared
        copied = os.path.join(OPTIONS.folder or tempfile.gettempdir(), f"tslice-copied-{os.getpid()}.safetensors")
        try:
            done_well(tslice(*trim, "-o", copied, "-q"))
            assert run(["cmp", copied, "t.safetensors"]).returncode == 0
        finally:
            os.unlink(copied)
        done_well(tslice("m.safetensors", "-o", "c.npz", "-q"))
        with np.load("c.npz") as arrays:
            same_rows(arrays["layer3"], 0, 3)
    return note


def joins(image):
    for number in range(3):
        make_npy(f"{number}.npy", 5, number)
    os.sync()
    concat = ["concat", "0.npy", "1.npy", "2.npy", "-o", "all.npy"]
    done_well(tslice(*concat, "-q"))
    is_shared("all.npy")
    joined = np.load("all.npy")
    for number in range(3):
        same_rows(joined[5 * number:5 * number + 5], 0, number)
    split = ["split", "all.npy", "--sizes", "4,11", "-o", "part{}.npy"]
    dry = tslice(*split, "--dry-run").stdout.decode()
    for rows in (4, 11):
        assert f"{rows * MIB - 4096} bytes" in dry, dry
    done_well(tslice(*split, "-q"))
    for number, part in enumerate((joined[:4], joined[4:])):
        is_shared(f"part{number}.npy")
        assert np.array_equal(np.load(f"part{number}.npy"), part)
    done_well(tslice("all.npy", "-o", "all.safetensors", "-q"))
    is_shared("all.safetensors")


def parts(image):
    make_npy("a.npy", 40)
    make_checkpoint("m.safetensors", {"layer0": 20, "layer1": 20})
    for number in range(2):
        make_npy(f"{number}.npy", 20, number)
    os.sync()
    used = image.used()
    trim = ["-t", "embed", "--keep-rest"]
    for args, out, copied in (
        (["a.npy", "[3:-5]"], "o.npy", 0),
        (["m.safetensors", "[:2000]", *trim], "t.safetensors", 51 * 4104 + (9 << 20)),
        (["concat", "0.npy", "1.npy"], "j.npy", 0),
    ):
        done_well(tslice(*args, "-o", "whole-" + out, "-q"))
        for number in (2, 0, 3, 1):
            part = [*args, "-o", out, "--part", f"{number}/4"]
            done_well(tslice(*part, "-q"))
        is_shared(out, copied + ENDS)
        assert run(["cmp", out, "whole-" + out]).returncode == 0
    assert image.used() - used < 40 * MIB, f"{image.used() - used} bytes more are used"
    same_rows(np.load("o.npy"), 3)
    # sums of all bytes are needed there: copied
    for number in range(3):
        done_well(tslice("a.npy", "-o", "c.npz", "--part", f"{number}/3", "-q"))
    with np.load("c.npz") as arrays:
        same_rows(arrays["a"], 0)


def small_disks(_image):
    """What is shared needs no space."""
    make_npy("a.npy", 150)
    os.sync()
    free = os.statvfs(".").f_bavail * os.statvfs(".").f_frsize
    for number in range(4):
        done_well(tslice("a.npy", "[1:]", "-o", f"{number}.npy", "-q"))
        is_shared(f"{number}.npy")
    assert free < 4 * 149 * MIB, "the image is too large to tell"


def faults(_image):
    if not OPTIONS.faults:
        raise Skip("--faults asks for it")
    folder, lines = os.path.dirname(os.path.abspath(__file__)), []
    for script, *args in (("faults.py", "--only", "shares blocks"), ("parts.py", "--scene", "shares blocks")):
        command = [sys.executable, os.path.join(folder, script), "--bin", harness.BIN, *args]
        done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, TMPDIR=os.getcwd()))
        assert done.returncode == 0, done.stdout + done.stderr
        lines.append(done.stdout.splitlines()[-1])
    return "; ".join(lines)


def on(kind, check, size):
    def checked():
        with Image(kind, size) as image:
            return check(image)
    return checked


def main():
    global OPTIONS
    parser = harness.check_parser(__doc__.splitlines()[0])
    parser.add_argument("--folder", help="where the images are made")
    parser.add_argument("--large", action="store_true", help="a slice of 4 GB, a checkpoint of 8 GB")
    parser.add_argument("--faults", action="store_true", help="also make system calls fail on the images")
    OPTIONS = parser.parse_args()
    OPTIONS.folder = OPTIONS.folder and os.path.abspath(OPTIONS.folder)
    harness.begin(OPTIONS)
    size = (12 << 30) if OPTIONS.large else (1 << 30)
    checks = {}
    for kind in ("xfs", "btrfs"):
        for check in (slices, checkpoint, joins, parts, faults):
            checks[f"check_{check.__name__}_on_{kind}"] = on(kind, check, size)
        checks[f"check_small_disks_of_{kind}"] = on(kind, small_disks, 512 << 20)
    return harness.run_checks(checks, "sharing", OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
