#!/usr/bin/env python3
"""Each system call of a run fails in turn: existing files stay as they were, no temporary file is left.

    python tests/python/faults.py --bin target/debug/tslice [--only WORD] [--quick]

Each `Scene` is one run of the binary in a folder of its own. After an undisturbed run, whose
output NumPy judges, the scene is repeated once for each of its system calls and each fault:

    fail    the call fails, with each errno of a list; or transfers only half
    signal  SIGKILL, SIGTERM or SIGINT comes just before the call
    shrink  another process cuts the input short just before the call
    rival   another process creates the output just before the call
    switch  another process puts a symbolic link in the output's place, or in its folder's
    world   a whole run without some feature of the kernel or the file system: it must succeed

A run must end with exit status 0 and the whole output, or with 1, one message, and the folder as
it was; only its own signal may end it otherwise. Needs NumPy and what `supervise` asks for.
"""

import errno
import fcntl
import itertools
import json
import os
import re
import shutil
import signal
import struct
import sys
import tempfile
import time

import numpy as np

import harness
import supervise
from formats import write_safetensors

QUICK = False
OLD = b"precious"
O_TMPFILE, SETPIPE_SZ, MAP_STACK = 0o20200000, 1031, 0x20000

# What a call can say of itself; EINTR only where signals interrupt, since others never give it.
INTERRUPTED = {"read", "write", "pread64", "pwrite64", "openat", "fallocate", "ftruncate", "splice", "poll", "fstatfs"}
ERRNOS = {
    "openat": ["EACCES", "EMFILE", "ENOSPC", "ENOMEM"], "mmap": ["ENOMEM", "ENODEV", "EAGAIN"],
    "mprotect": ["ENOMEM"], "mremap": ["ENOMEM"], "clone": ["EAGAIN"], "clone3": ["EAGAIN"],
    "brk": [],  # has no errno: it answers with where the heap ends
    "read": ["EIO", "EISDIR"], "pread64": ["EIO", "ESTALE"], "write": ["EIO", "ENOSPC"],
    "pwrite64": ["EIO", "ENOSPC", "EDQUOT", "EFBIG"], "fallocate": ["EIO", "ENOSPC", "EFBIG", "EOPNOTSUPP"],
    "ftruncate": ["EIO", "EFBIG"], "fsync": ["EIO", "ENOSPC"], "linkat": ["EIO", "ENOSPC", "EPERM", "EXDEV", "EMLINK"],
    "renameat": ["EIO", "ENOSPC", "EACCES", "EXDEV"], "renameat2": ["EIO", "ENOSPC", "EINVAL"],
    "mkdirat": ["EACCES", "ENOSPC"], "openat2": ["ENOSYS", "EXDEV"], "flistxattr": ["EIO", "EOPNOTSUPP"],
    "fchmod": ["EPERM", "EIO"], "socketpair": ["EMFILE"], "pipe2": ["EMFILE"], "rt_sigaction": ["EINVAL"],
    "ioctl": ["EOPNOTSUPP", "EXDEV", "EINVAL", "ENOSPC"], "splice": ["EINVAL", "EIO"], "poll": ["ENOMEM"], "sigaltstack": ["ENOMEM"], "getrandom": ["ENOSYS"],
}
OTHERS = ["EIO", "ENOMEM"]


class Wrong(Exception):
    """What a run should not have done."""


# ---------------------------------------------------------------- scenes


class Scene:
    """A run: how its folder is made, its arguments, and what it puts where."""

    def __init__(self, name, args, expected, output="o.npy", stdin=None, to_stdout=None, old=None, inputs=("a.npy",),
                 world=lambda call: None):
        self.name, self.args, self.expected, self.output, self.old = name, args, expected, output, old
        self.stdin, self.to_stdout, self.inputs, self.world = stdin, to_stdout, inputs, world
        # whether SIGKILL may leave a name that begins with .tslice-
        self.litters = "--force" in args or world is no_unnamed_files

    def prepare(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "spool"))
        for name in self.inputs:
            shutil.copy(os.path.join(HOME, name), os.path.join(folder, name))
        if self.old is not None and self.output not in self.inputs:
            with open(os.path.join(folder, self.output), "wb") as file:
                file.write(self.old)

    def run(self, folder, decide=lambda call: None):
        """The run, with what it wrote to standard output and standard error."""
        stdin, feeder, opened = os.open(os.devnull, os.O_RDONLY), None, []
        if self.stdin:
            os.close(stdin)
            stdin, feeder = feed(os.path.join(HOME, self.stdin))
        opened.append(stdin)
        stderr = os.memfd_create("stderr")
        if self.to_stdout == "pipe":
            drain, stdout = os.pipe()
            fcntl.fcntl(stdout, SETPIPE_SZ, 1 << 20)  # it all fits
            os.set_blocking(drain, False)
            opened.append(drain)
        else:
            stdout = os.memfd_create("stdout")
        opened += [stderr, stdout]
        env = harness.env(TMPDIR=os.path.join(folder, "spool"))

        def judged(call):
            answer = self.world(call)
            return decide(call) if answer is None else answer

        run = supervise.Run([harness.BIN, *self.args], judged, stdin, stdout, stderr, folder, env)
        try:
            run.go(30)
            run.err = os.pread(stderr, 1 << 20, 0)
            if self.to_stdout == "pipe":
                os.close(stdout)
                opened.remove(stdout)
                run.out = b""
                while piece := os.read(drain, 1 << 20):
                    run.out += piece
            else:
                run.out = os.pread(stdout, 1 << 24, 0)
        finally:
            for fd in opened:
                os.close(fd)
            if feeder:
                os.waitpid(feeder, 0)
        return run

    def original(self, name):
        """What a file of the folder was before the run; None if it was not."""
        if name in self.inputs:
            with open(os.path.join(HOME, name), "rb") as file:
                return file.read()
        return self.old if name == self.output else None

    def state(self, folder, litter=False, ignore=()):
        """'old', 'new' or 'both' (where the output is none of the files); raises on anything else."""
        for name in os.listdir(os.path.join(folder, "spool")):
            raise Wrong(f"spool/{name} is left")
        found = "old" if not self.to_stdout and self.old is None else "both"
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name)
            if name == "spool" or name in ignore or os.path.isdir(path):
                continue
            if litter and name.startswith(".tslice-"):
                continue
            with open(path, "rb") as file:
                data = file.read()
            if name == self.output and not self.to_stdout:
                if data == self.new:
                    found = "new"
                elif data == self.original(name):
                    found = "old"
                else:
                    raise Wrong(f"{name} holds {len(data)} bytes that are neither the old ones nor the new ones")
            elif self.original(name) is None:
                raise Wrong(f"{name} is left")
            elif data != self.original(name):
                raise Wrong(f"{name} was changed")
        for name in self.inputs:
            if name not in ignore and not os.path.exists(os.path.join(folder, name)):
                raise Wrong(f"{name} is gone")
        if self.old is not None and not self.to_stdout and not os.path.exists(os.path.join(folder, self.output)):
            raise Wrong("what stood there is gone")
        return found

    def rehearse(self):
        """An undisturbed run: its output, and the list of its calls."""
        folder, calls = os.path.join(HOME, "work"), []
        self.prepare(folder)
        run = self.run(folder, lambda call: calls.append((call.name, call.path(), call.args[0])))
        if run.status != 0 or run.err:
            raise Wrong(f"the undisturbed run ends with {run.status}: {run.err!r}")
        if self.to_stdout:
            self.new = run.out
        else:
            with open(os.path.join(folder, self.output), "rb") as file:
                self.new = file.read()
        self.expected(self.new)
        self.state(folder)
        return calls


class InPlace(Scene):
    """A run that changes its first input. What it leaves undone, another run completes."""

    def __init__(self, name, args, expected, inputs=("a.npy",)):
        super().__init__(name, args, expected, output=inputs[0], inputs=inputs)

    def state(self, folder, litter=False, ignore=()):
        with open(os.path.join(folder, self.output), "rb") as file:
            data = file.read()
        old = self.original(self.output)
        if self.output in ignore:
            return "both"
        if len(data) != len(old):
            raise Wrong(f"{self.output} has another length")
        now, before, after = (np.frombuffer(b, "u1") for b in (data, old, self.new))
        if not np.all((now == before) | (now == after)):
            raise Wrong(f"{self.output} holds bytes that are neither the old ones nor the new ones")
        for name in sorted(os.listdir(folder)):
            if name not in ("spool", self.output) and name not in ignore:
                with open(os.path.join(folder, name), "rb") as file:
                    if file.read() != self.original(name):
                        raise Wrong(f"{name} was changed, or is left")
        if not ignore and data != self.new:
            if self.run(folder).status != 0:
                raise Wrong("another run does not complete it")
            with open(os.path.join(folder, self.output), "rb") as file:
                if file.read() != self.new:
                    raise Wrong("another run does not complete it")
            return "part"
        return "both"


INDEX = "m.safetensors.index.json"


class Folder(Scene):
    """A run that makes a folder of two shards and their index: where there was none, over an old one,
    or over one with a folder in it, whose files are exchanged one by one."""

    def __init__(self, name, args, expected, old=False, with_folder=False):
        super().__init__(name, args, expected, output="out", inputs=("m.safetensors", "b.safetensors"))
        self.one_by_one = with_folder
        self.before = dict.fromkeys((*self.inputs, INDEX), OLD) if old or with_folder else {}
        self.kept = {"config.json": b"kept"} if self.before else {}
        if with_folder:
            self.kept["sub/file"] = b"kept"

    def prepare(self, folder):
        super().prepare(folder)
        with open(os.path.join(folder, INDEX), "w") as file:
            json.dump({"metadata": {}, "weight_map": {"w": "m.safetensors", "b": "b.safetensors"}}, file)
        for name, data in (self.before | self.kept).items():
            path = os.path.join(folder, "out", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)

    def original(self, name):
        with open(os.path.join(HOME, name), "rb") as file:
            return file.read() if name in self.inputs else None

    def found(self, folder):
        """All files under out/, by their paths; None where it does not exist."""
        out = os.path.join(folder, "out")
        if not os.path.exists(out):
            return None
        paths = [os.path.join(where, name) for where, _, names in os.walk(out) for name in names]
        return {os.path.relpath(path, out): open(path, "rb").read() for path in paths}

    def state(self, folder, litter=False, ignore=()):
        for name in os.listdir(folder):
            if name not in ("spool", "out", INDEX, *self.inputs):
                if not (litter and name.startswith(".tslice-")):
                    raise Wrong(f"{name} is left")
        for name in self.inputs:
            if name not in ignore:
                with open(os.path.join(folder, name), "rb") as file:
                    if file.read() != self.original(name):
                        raise Wrong("the shard was changed")
        found = self.found(folder)
        if found is None and not self.before:
            return "old"
        if litter and found:
            found = {name: data for name, data in found.items() if not name.startswith(".tslice-")}
        if found == self.new:
            return "new"
        if found == self.before | self.kept and found:
            return "old"
        whole = found and all(found.get(name) == data for name, data in self.kept.items())
        either = whole and all(found.get(name, OLD) in (OLD, self.new[name]) for name in self.inputs)
        if litter and self.one_by_one and either and INDEX not in found:
            return "both"
        raise Wrong(f"the folder is neither the old one nor the new one: it holds {sorted(found or ())}")

    def rehearse(self):
        folder, calls = os.path.join(HOME, "work"), []
        self.prepare(folder)
        run = self.run(folder, lambda call: calls.append((call.name, call.path(), call.args[0])))
        if run.status != 0 or run.err:
            raise Wrong(f"the undisturbed run ends with {run.status}: {run.err!r}")
        self.new = self.found(folder)
        for name, data in self.kept.items():
            if self.new[name] != data:
                raise Wrong(f"{name} was not kept")
        self.expected(self.new["m.safetensors"])
        self.state(folder)
        return calls


class Several(Scene):
    """A run that makes three files, over others: all are old or all are new. SIGKILL may leave some of
    each; what was replaced then has a name that begins with .tslice-, until all are new."""

    NAMES = ("p0.npy", "p1.npy", "p2.npy")

    def __init__(self, name, args, array, old=(), inputs=("a.npy",), world=lambda call: None):
        super().__init__(name, ["split", *args, "-o", "p{}.npy"], array, inputs=inputs, world=world)
        self.before = {name: f"{OLD} {name}".encode() for name in old}

    def prepare(self, folder):
        super().prepare(folder)
        for name in self.inputs:
            with open(os.path.join(HOME, name), "rb") as file:
                self.before[name] = file.read()
        for name, data in self.before.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)

    def original(self, name):
        return self.before.get(name)

    def state(self, folder, litter=False, ignore=()):
        found = {}
        for name in os.listdir(folder):
            if name != "spool":
                with open(os.path.join(folder, name), "rb") as file:
                    found[name] = file.read()
        for name in ignore:
            found.pop(name, None)
        left = [data for name, data in found.items() if name.startswith(".tslice-")]
        if left and not litter:
            raise Wrong("a temporary name is left")
        found = {name: data for name, data in found.items() if not name.startswith(".tslice-")}
        before = {name: data for name, data in self.before.items() if name not in ignore}
        new = before | {name: data for name, data in self.new.items() if name not in ignore}
        if found == new:
            return "new"
        if found == before:
            return "old"
        if not litter:
            raise Wrong(f"neither all are old nor all are new: {sorted(found)}")
        for name in {*found, *before, *new}:
            # where a file system lacks both calls, nothing stands there for an instant
            if name in found and found[name] not in (before.get(name), new.get(name)):
                raise Wrong(f"{name} is neither old nor new")
            if name in before and found.get(name) != before[name] and before[name] not in left:
                raise Wrong(f"what was in {name} is lost")
        return "both"

    def rehearse(self):
        folder, calls = os.path.join(HOME, "work"), []
        self.prepare(folder)
        run = self.run(folder, lambda call: calls.append((call.name, call.path(), call.args[0])))
        if run.status != 0 or run.err:
            raise Wrong(f"the undisturbed run ends with {run.status}: {run.err!r}")
        self.new = {}
        for name, expected in zip(self.NAMES, np.array_split(self.expected, 3)):
            with open(os.path.join(folder, name), "rb") as file:
                self.new[name] = file.read()
            an_array(expected)(self.new[name])
        self.state(folder)
        return calls


def feed(path):
    """A pipe that a process of its own fills from a file: its end to read, and the process."""
    reader, writer = os.pipe()
    feeder = os.fork()
    if feeder == 0:
        try:
            os.close(reader)
            with open(path, "rb") as file, open(writer, "wb") as pipe:
                shutil.copyfileobj(file, pipe)
        finally:
            os._exit(0)
    os.close(writer)
    return reader, feeder


def no_unnamed_files(call):
    """File systems without O_TMPFILE."""
    return errno.EOPNOTSUPP if call.name == "openat" and call.args[2] & O_TMPFILE == O_TMPFILE else None


def no_exchange(call):
    """File systems whose `rename` has no flags."""
    return errno.EINVAL if call.name == "renameat2" else None


def no_exchange_or_links(call):
    """File systems without hard links, too."""
    if call.name == "linkat":
        return errno.EPERM
    return no_exchange(call) or no_unnamed_files(call)


def an_array(array):
    def check(raw):
        with open(os.path.join(HOME, "judged.npy"), "wb") as file:
            file.write(raw)
        found = np.load(os.path.join(HOME, "judged.npy"))
        if found.dtype != array.dtype or not np.array_equal(found, array):
            raise Wrong("the undisturbed run writes other values than NumPy")
    return check


def a_safetensors(array):
    def check(raw):
        n, = struct.unpack("<Q", raw[:8])
        (info,) = [v for k, v in json.loads(raw[8:8 + n]).items() if k != "__metadata__"]
        if info["shape"] != list(array.shape) or raw[8 + n:] != np.ascontiguousarray(array).tobytes():
            raise Wrong("the undisturbed run writes other values than NumPy")
    return check


def an_npz(**arrays):
    def check(raw):
        with open(os.path.join(HOME, "judged.npz"), "wb") as file:
            file.write(raw)
        with np.load(os.path.join(HOME, "judged.npz")) as found:
            if sorted(found) != sorted(arrays) or any(not np.array_equal(found[n], arrays[n]) for n in arrays):
                raise Wrong("the undisturbed run writes other values than NumPy")
    return check


def ends_with(array):
    def check(raw):
        if not raw.endswith(np.ascontiguousarray(array).tobytes()):
            raise Wrong("the undisturbed run writes other values than NumPy")
    return check


def bytes_of(array):
    def check(raw):
        if raw != np.ascontiguousarray(array).tobytes():
            raise Wrong("the undisturbed run writes other values than NumPy")
    return check


def text_with(*words):
    def check(raw):
        for word in words:
            if word not in raw:
                raise Wrong(f"the undisturbed run does not print {word!r}")
    return check


def scenes():
    a = np.arange(60 * 30 * 40, dtype="<i4").reshape(60, 30, 40)  # 288 kB
    np.save(os.path.join(HOME, "a.npy"), a)
    big = np.arange(6 << 20, dtype="u4").astype("u1").reshape(6, 1024, 1024)
    np.save(os.path.join(HOME, "big.npy"), big)
    write_safetensors(os.path.join(HOME, "m.safetensors"), {"w": ("I32", a.shape, a.tobytes())})
    back, every = "[::-1, ::-2]", "[::2]"
    yield Scene("slice to a new file", ["a.npy", back, "-o", "o.npy"], an_array(a[::-1, ::-2]))
    yield Scene("slice over an old file", ["a.npy", back, "-o", "o.npy", "--force"], an_array(a[::-1, ::-2]), old=OLD)
    yield Scene("slice over the input", ["a.npy", back, "-o", "a.npy", "--force"], an_array(a[::-1, ::-2]),
                output="a.npy", old=OLD)
    yield Scene("slice with --fsync", ["a.npy", every, "-o", "o.npy", "--fsync"], an_array(a[::2]))
    yield Scene("slice over an old file with --fsync", ["a.npy", every, "-o", "o.npy", "--force", "--fsync"],
                an_array(a[::2]), old=OLD)
    for old in (None, OLD):
        yield Scene(f"slice that shares blocks, {'over an old file' if old else 'to a new file'}",
                    ["big.npy", "[1:4]", "-o", "o.npy", *(["--force"] if old else [])], an_array(big[1:4]),
                    inputs=("big.npy",), old=old)
    write_safetensors(os.path.join(HOME, "k.safetensors"), {"w": ("I32", a.shape, a.tobytes()),
                                                            "z": ("U8", big.shape, big.tobytes())})
    yield Scene("cut one tensor, keep one that shares blocks", ["k.safetensors", "[::2]", "-t", "w", "--keep-rest",
                                                                "-o", "o.safetensors"], ends_with(big),
                output="o.safetensors", inputs=("k.safetensors",))
    yield Scene("slice by reading", ["a.npy", back, "-o", "o.npy", "--io", "read"], an_array(a[::-1, ::-2]))
    yield Scene("slice in two threads", ["big.npy", back, "-o", "o.npy", "-j", "2"], an_array(big[::-1, ::-2]),
                inputs=("big.npy",))
    yield Scene("slice out of a checkpoint", ["m.safetensors", back, "-t", "w", "-o", "o.npy"],
                an_array(a[::-1, ::-2]), inputs=("m.safetensors",))
    yield Scene("slice to a checkpoint", ["a.npy", back, "-o", "o.safetensors"], a_safetensors(a[::-1, ::-2]),
                output="o.safetensors")
    yield Scene("slice to a pipe", ["a.npy", back], an_array(a[::-1, ::-2]), to_stdout="pipe")
    yield Scene("slice to a redirected file", ["a.npy", back], an_array(a[::-1, ::-2]), to_stdout="file")
    yield Scene("slice of a pipe as it comes", ["-", "[::2, 3:5]", "-o", "o.npy"], an_array(a[::2, 3:5]), stdin="a.npy",
                inputs=())
    yield Scene("slice of a pipe that is spooled", ["-", back, "-o", "o.npy"], an_array(big[::-1, ::-2]), stdin="big.npy",
                inputs=())
    yield Scene("pipe to pipe", ["-", "[3:9]"], an_array(a[3:9]), stdin="a.npy", inputs=(), to_stdout="pipe")
    shutil.copy(os.path.join(HOME, "a.npy"), os.path.join(HOME, "p0.npy"))
    three = Several.NAMES
    yield Several("split", ["a.npy", "--parts", "3"], a)
    yield Several("split over old files", ["a.npy", "--parts", "3", "--force"], a, old=three)
    yield Several("split over its input and an old file, with --fsync", ["p0.npy", "--parts", "3", "--force", "--fsync"],
                  a, old=three[2:], inputs=("p0.npy",))
    for lacking, world in (("exchange", no_exchange), ("exchange and links", no_exchange_or_links)):
        yield Several(f"split over its input and old files without {lacking}", ["p0.npy", "--parts", "3", "--force"], a,
                      old=three[1:], inputs=("p0.npy",), world=world)
    for force in ([], ["--force"]):
        yield Scene(f"slice without unnamed files {' '.join(force)}", ["a.npy", every, "-o", "o.npy", *force],
                    an_array(a[::2]), old=OLD if force else None, world=no_unnamed_files)
    one = ["-o", "o.npy"]
    where = np.array([[5, 3], [0, 29], [59, 0]] * 200, "<i8")
    np.save(os.path.join(HOME, "i.npy"), where)
    value = -np.arange(30 * 30 * 40, dtype="<i4").reshape(30, 30, 40)
    np.save(os.path.join(HOME, "v.npy"), value)
    changed, filled = a.copy(), a.copy()
    changed[::2], filled[:, :, 3] = value, 7
    gathered, both = an_array(a[where[:, 0], where[:, 1]]), ("a.npy", "i.npy")
    yield Scene("gather", ["gather", "a.npy", "--indices", "i.npy", *one], gathered, inputs=both)
    yield Scene("gather by reading", ["gather", "a.npy", "--indices", "i.npy", "--io", "read", *one], gathered,
                inputs=both)
    yield Scene("gather to a pipe", ["gather", "a.npy", "--indices", "i.npy"], gathered, inputs=both, to_stdout="pipe")
    yield Scene("gather with indices from a pipe", ["gather", "a.npy", "--indices", "-", *one], gathered,
                stdin="i.npy")
    yield Scene("gather along an axis, over an old file",
                ["gather", "a.npy", "--indices", "[[3, 1], [0, 29]]", "--axis", "1", *one, "--force"],
                an_array(a[:, [[3, 1], [0, 29]]]), old=OLD)
    yield Scene("slice with a list", ["a.npy", "[:, [0, 2, -1]]", *one], an_array(a[:, [0, 2, -1]]))
    yield Scene("cut one tensor, keep the rest", ["m.safetensors", "[::2]", "-t", "w", "--keep-rest",
                                                 "-o", "o.safetensors"], a_safetensors(a[::2]),
                output="o.safetensors", inputs=("m.safetensors",))
    write_safetensors(os.path.join(HOME, "b.safetensors"), {"b": ("U8", (9,), bytes(9))})
    cut = [INDEX, "[::2]", "-t", "w", "--keep-rest", "-o", "out/"]
    yield Folder("cut one tensor of a sharded checkpoint", cut, a_safetensors(a[::2]))
    yield Folder("cut one over an old folder", [*cut, "--force"], a_safetensors(a[::2]), old=True)
    yield Folder("cut one over an old folder, with --fsync", [*cut, "--force", "--fsync"], a_safetensors(a[::2]), old=True)
    yield Folder("cut one over a folder with a folder in it", [*cut, "--force"], a_safetensors(a[::2]), with_folder=True)
    np.savez(os.path.join(HOME, "s.npz"), a=a, b=a[:2])
    np.savez_compressed(os.path.join(HOME, "d.npz"), a=a, b=a[:2])
    for kind, name in ("stored", "s.npz"), ("deflated", "d.npz"):
        yield Scene(f"slice out of an archive, {kind}", [name, back, "-t", "a", "-o", "o.npy"], an_array(a[::-1, ::-2]),
                    inputs=(name,))
        yield Scene(f"list out of an archive, {kind}", [name, "[:, [0, 2, -1]]", "-t", "a", "-o", "o.npy"],
                    an_array(a[:, [0, 2, -1]]), inputs=(name,))
    two, cut = an_npz(a=a[::2], b=a[:2]), ["s.npz", "[::2]", "-t", "a", "--keep-rest"]
    yield Scene("cut one array of an archive", [*cut, "-o", "o.npz"], two, output="o.npz", inputs=("s.npz",))
    yield Scene("cut one over an old archive, deflated", [*cut, "--deflate", "--force", "-o", "o.npz"], two, output="o.npz",
                inputs=("s.npz",), old=OLD)
    yield Scene("an archive to a pipe", [*cut, "--to", "npz"], two, inputs=("s.npz",), to_stdout="pipe")
    yield Scene("a deflated archive to a pipe", [*cut, "--to", "npz", "--deflate"], two, inputs=("s.npz",), to_stdout="pipe")
    yield Scene("slice to raw bytes", ["a.npy", every, "-o", "o.bin"], bytes_of(a[::2]), output="o.bin")
    put = ["assign", "a.npy", every, "--value", "v.npy"]
    yield Scene("assign to a copy", [*put, *one], an_array(changed), inputs=("a.npy", "v.npy"))
    yield Scene("assign to a copy over an old file", [*put, *one, "--force"], an_array(changed),
                inputs=("a.npy", "v.npy"), old=OLD)
    yield Scene("assign to a copy over itself", [*put, "-o", "a.npy", "--force"], an_array(changed),
                inputs=("a.npy", "v.npy"), output="a.npy", old=OLD)
    yield Scene("assign from a pipe", ["assign", "a.npy", every, "--value", "-", *one], an_array(changed),
                stdin="v.npy")
    yield InPlace("assign in place", [*put, "--in-place"], an_array(changed), inputs=("a.npy", "v.npy"))
    yield InPlace("fill in place, with --fsync", ["assign", "a.npy", "..., 3", "--fill", "7", "--in-place", "--fsync"],
                  an_array(filled))
    rows = np.arange(30, dtype="<i8")[::-1, None] * 2
    np.save(os.path.join(HOME, "r.npy"), rows)
    scattered, three = a.copy(), ("a.npy", "r.npy", "v.npy")
    scattered[rows[:, 0]] = value
    put = ["scatter", "a.npy", "--indices", "r.npy", "--values", "v.npy"]
    yield Scene("scatter to a copy", [*put, *one], an_array(scattered), inputs=three)
    yield Scene("scatter to a copy over itself", [*put, "-o", "a.npy", "--force"], an_array(scattered), inputs=three,
                output="a.npy", old=OLD)
    yield Scene("scatter to a pipe", [*put, "-o", "-"], an_array(scattered), inputs=three, to_stdout="pipe")
    yield InPlace("scatter in place", [*put, "--in-place"], an_array(scattered), inputs=three)
    write_safetensors(os.path.join(HOME, "c.safetensors"), {"v": ("I32", value.shape, value.tobytes()),
                                                            "t": ("I32", a.shape, a.tobytes())})
    yield InPlace("assign in place from another tensor of the file", [
        "assign", "c.safetensors", every, "-t", "t", "--value", "c.safetensors", "--value-tensor", "v", "--in-place",
    ], ends_with(changed), inputs=("c.safetensors",))
    yield Scene("info", ["info", "a.npy"], text_with(b"(60, 30, 40)", b"int32"), to_stdout="file")


# ---------------------------------------------------------------- judging


def judge(scene, run, folder, by=None, litter=False, ignore=(), silent=False, names=None):
    """By the promises; `by` is the signal that was sent, if one was.

    Two things are let pass. A folder that cannot be brought to the disk, with the output in it, is
    an error that says so. And Rust's runtime aborts where memory ends just as it gives a new thread
    its signal stack.
    """
    state = scene.state(folder, litter, ignore)
    if by is not None and run.status == -by:
        return
    if run.status == 0:
        if state in ("old", "part"):
            raise Wrong("exit status 0, and no output")
        if scene.to_stdout and run.out != scene.new:
            raise Wrong(f"exit status 0, and {len(run.out)} of {len(scene.new)} bytes on standard output")
        return
    if run.status != 1:
        raise Wrong(f"ends with {run.status}: {run.err!r:.300}")
    if state == "new" and b"is in place, but" not in run.err:
        raise Wrong(f"exit status 1, and the output stands there: {run.err!r:.300}")
    if not silent:
        message = run.err.decode(errors="replace")
        if not re.match(r"tslice: [^A-Z\n][^\n]*\n(hint: [^\n]*\n)?$", message) or "panicked" in message:
            raise Wrong(f"the message is not one line: {message!r:.400}")
        if names and names not in message:
            raise Wrong(f"the message does not name {names}: {message!r:.300}")


class Once:
    """A decision for one call, by number; what it was is kept."""

    def __init__(self, number, act):
        self.number, self.act, self.call = number, act, None

    def __call__(self, call):
        if call.number != self.number:
            return None
        self.call = (call.name, call.path(), call.args[0])
        return self.act(call)


def turn(scene, folder, number, act, litter=False, litter_of=None, **how):
    """One run with one fault; the call that it met, or None where the run had fewer calls."""
    scene.prepare(folder)
    once = Once(number, act)
    try:
        run = scene.run(folder, once)
        if run.status == -signal.SIGABRT and b"alternative stack" in run.err:
            scene.state(folder, litter=True)
        elif once.call:
            litter = litter or once.call[0] == litter_of
            judge(scene, run, folder, silent=once.call[0] == "write" and once.call[2] == 2, litter=litter, **how)
        return once.call, run
    except Wrong as wrong:
        name, path, _ = once.call or ("?", b"", 0)
        raise Wrong(f"call {number}, {name} {path.decode(errors='replace')}: {wrong}") from None


# ---------------------------------------------------------------- faults


def errnos(name):
    return ERRNOS.get(name, OTHERS) + (["EINTR"] if name in INTERRUPTED else [])


def fail(scene, calls, folder):
    for number, (name, _, _) in enumerate(calls, 1):
        for word in errnos(name)[:1] if QUICK else errnos(name):
            def act(call):
                # with threads, another call may have come to this place
                return getattr(errno, word) if word in errnos(call.name) else None
            judged = must_succeed if word == "EINTR" else turn
            # a name that cannot be removed is left
            yield f"{word} from", lambda: judged(scene, folder, number, act, litter_of="unlinkat")
        if name in ("read", "write", "pread64", "pwrite64"):
            def halve(call):
                done = call.half()
                return None if done is None else ("value", done)
            yield "half of", lambda: must_succeed(scene, folder, number, halve)


def must_succeed(scene, folder, number, act, **how):
    call, run = turn(scene, folder, number, act, **how)
    if call and run.status != 0:
        raise Wrong(f"call {number}, {call[0]}: ends with {run.status}: {run.err!r:.300}")


def signals(scene, calls, folder):
    for number in range(1, len(calls) + 1):
        for which in (signal.SIGKILL,) if QUICK else (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            def act(call):
                os.kill(call.run.pid, which)
            litter = which == signal.SIGKILL and (scene.litters or isinstance(scene, (Folder, Several)))
            yield which.name, lambda: turn(scene, folder, number, act, by=which, litter=litter)


def shrink(scene, calls, folder):
    for name, number in itertools.product(scene.inputs, range(1, len(calls) + 1)):
        size = os.path.getsize(os.path.join(HOME, name))
        for cut in (50, 5000) if QUICK else (0, 50, 130, 5000, size // 2, size - 1):
            def act(call):
                # not after it was replaced by the output, nor while it is moved aside for that
                path = os.path.join(folder, name)
                if os.path.exists(path) and os.path.getsize(path) == size:
                    os.truncate(path, cut)
            # cut before the run has begun to look at it, it is just a short file
            yield f"{name} cut to {cut},", lambda: turn(scene, folder, number, act, ignore=(name,), names=name)


def rival(scene, calls, folder):
    if scene.to_stdout or scene.old is not None or isinstance(scene, (InPlace, Folder, Several)):
        return
    path = os.path.join(folder, scene.output)
    for number in range(1, len(calls) + 1):
        first = []

        def act(call):
            try:
                with open(path, "xb") as file:
                    file.write(b"rival")
                first.append(True)
            except FileExistsError:
                pass

        def one():
            first.clear()
            try:
                call, run = turn(scene, folder, number, act, ignore=(scene.output,))
            except Wrong as wrong:
                if "no output" not in str(wrong):  # it was not looked at
                    raise
                call, run = ("?",), None
            with open(path, "rb") as file:
                data = file.read()
            if first and (data != b"rival" or run is None or run.status != 1):
                raise Wrong(f"call {number}: the rival was first, and lost")
            if not first and data != scene.new:
                raise Wrong(f"call {number}: the rival came late, and won")
        yield "a rival before", one


def switch(scene, calls, folder):
    if scene.to_stdout or scene.output in scene.inputs or isinstance(scene, (Folder, Several)):
        return
    seen = [n for n, (name, path, _) in enumerate(calls, 1) if name == "newfstatat" and path == scene.output.encode()]
    path, victim = os.path.join(folder, scene.output), os.path.join(folder, "spool", "victim")
    # the name is looked at for its kind first, and then for good
    for number in range(seen[-1] + 1, len(calls) + 1):
        def act(call):
            with open(victim, "w") as file:
                file.write("victim")
            if os.path.lexists(path):
                os.unlink(path)
            os.symlink("spool/victim", path)

        def one():
            scene.prepare(folder)
            once = Once(number, act)
            run = scene.run(folder, once)
            if once.call and open(victim).read() != "victim":
                raise Wrong(f"call {number}, {once.call[0]}: a link that came later was followed")
            if run.status not in (0, 1):
                raise Wrong(f"call {number}: ends with {run.status}: {run.err!r:.300}")
        yield "a link before", one


def worlds(scene, calls, folder):
    def lacks(**kinds):
        def decide(call):
            for name, (word, holds) in kinds.items():
                if call.name == name and holds(call):
                    return getattr(errno, word)
        return decide

    def always(call):
        return True

    def in_proc(call):
        return call.path().startswith(b"/proc")

    def unnamed(call):
        return call.args[2] & O_TMPFILE == O_TMPFILE

    no_proc = {name: ("ENOENT", in_proc) for name in ("openat", "newfstatat", "readlinkat", "statx")}
    kinds = {
        "no unnamed files": dict(openat=("EOPNOTSUPP", unnamed)),
        "no unnamed files, no renameat2": dict(openat=("EOPNOTSUPP", unnamed), renameat2=("EINVAL", always)),
        "no unnamed files, no renameat2, no links": dict(
            openat=("EOPNOTSUPP", unnamed), renameat2=("EINVAL", always), linkat=("EPERM", always)),
        "no renameat2": dict(renameat2=("EINVAL", always)),
        "no openat2": dict(openat2=("ENOSYS", always)),
        "no attributes": dict(flistxattr=("EOPNOTSUPP", always)),
        "no /proc": no_proc,
        "no fallocate": dict(fallocate=("EOPNOTSUPP", always)),
        "no links": dict(linkat=("EPERM", always)),
        "no maps of files": dict(mmap=("ENODEV", lambda call: call.args[4] < 1 << 31)),
        "no advice": dict(madvise=("EINVAL", always), fadvise64=("EINVAL", always)),
        "no splice": dict(splice=("EINVAL", always)),
        "no statx": dict(statx=("ENOSYS", always)),
        "no copy_file_range": dict(copy_file_range=("ENOSYS", always)),
        "no enlarged pipes": dict(fcntl=("EPERM", lambda call: call.args[1] == SETPIPE_SZ)),
        "no randomness": dict(getrandom=("ENOSYS", always)),
        "no fstatfs": dict(fstatfs=("ENOSYS", always)),
        "no threads": dict(clone3=("EAGAIN", always), clone=("EAGAIN", always)),
    }
    for name, lacking in kinds.items():
        def one(name=name, lacking=lacking):
            scene.prepare(folder)
            run = scene.run(folder, lacks(**lacking))
            judge(scene, run, folder)
            if run.status != 0 and name not in FORGIVEN:
                raise Wrong(f"{name}: ends with {run.status}: {run.err!r:.300}")
        yield f"{name},", one


# Without threads there is no pool, and an unnamed file that cannot be linked stays unnamed: said, and no more.
FORGIVEN = {"no threads", "no links"}


# ---------------------------------------------------------------- the runner


def main():
    global HOME, QUICK
    parser = harness.parser("every system call of a run goes wrong in turn")
    parser.add_argument("--only", default="", help="the scenes, or faults, whose name holds this")
    parser.add_argument("--quick", action="store_true", help="one errno a call, SIGKILL alone, and a third of that")
    options = parser.parse_args()
    QUICK = options.quick
    harness.begin(options)
    if reason := supervise.unavailable():
        print(f"SKIPPED  everything: {reason}\n0 passed, 0 failed")
        return 0
    HOME = tempfile.mkdtemp(prefix="tslice-faults-")
    faults = (fail, signals, shrink, rival, switch, worlds)
    tally = harness.Tally()
    try:
        for index, scene in enumerate(scenes()):
            wanted = [m for m in faults if options.only in f"{scene.name}: {m.__name__}"]
            if not wanted:
                continue
            begun, before = time.monotonic(), (tally.passed, tally.failed)
            calls = scene.rehearse()
            for fault in wanted:
                for number, (title, one) in enumerate(fault(scene, calls, os.path.join(HOME, "work"))):
                    if QUICK and number % 3 != index % 3:
                        continue
                    try:
                        one()
                        tally.passed += 1
                    except (Wrong, TimeoutError) as wrong:
                        tally.failed += 1
                        print(f"FAILED   {scene.name}: {title} {wrong}", flush=True)
            print(f"{'ok' if tally.failed == before[1] else 'FAILED':8} {scene.name}: {len(calls)} calls, "
                  f"{tally.passed - before[0]} faults tried ({time.monotonic() - begun:.1f} s)", flush=True)
    finally:
        shutil.rmtree(HOME, ignore_errors=True)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
