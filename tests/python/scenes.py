"""Kinds of runs for faults.py: how the folder of a run is made, what may be in it afterwards, and what
the system lacks meanwhile.

A scene is rehearsed once, undisturbed: what that run makes is judged by `expected`, and is what later runs are
held against. `begin(folder)` says where the files that scenes are made of lie, under `at(name)`.
"""

import errno
import io
import json
import os
import shutil
import struct
import subprocess
import threading
import zipfile

import numpy as np

import harness
import supervise

OLD = b"precious"
O_TMPFILE, SETPIPE_SZ = 0o20200000, 1031
HOME = None


class Wrong(Exception):
    """What a run should not have done."""


def begin(folder):
    global HOME
    HOME = folder


def at(*names):
    return os.path.join(HOME, *names)


def judged(kind):
    """Where this process writes what it looks at."""
    return at(f"judged-{os.getpid()}.{kind}")


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Scene:
    """A run: how its folder is made, its arguments, and what it puts where."""

    def __init__(self, name, args, expected, output="o.npy", stdin=None, to_stdout=None, old=None, inputs=("a.npy",),
                 world=lambda call: None, is_slow=False):
        self.name, self.args, self.expected, self.output, self.old = name, args, expected, output, old
        self.is_slow = is_slow
        self.stdin, self.to_stdout, self.inputs, self.world = stdin, to_stdout, inputs, world
        # whether SIGKILL may leave a name that begins with .tslice-
        self.litters = "--force" in args or world is no_unnamed_files

    def prepare(self, folder):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(os.path.join(folder, "spool"))
        for name in self.inputs:
            shutil.copy(at(name), os.path.join(folder, name))
        if self.old is not None and self.output not in self.inputs:
            with open(os.path.join(folder, self.output), "wb") as file:
                file.write(self.old)

    def run(self, folder, decide=lambda call: None):
        """The run, with what it wrote to standard output and standard error. Calls that the scene's
        world answers are not counted, and not decided on."""
        stdin, feeder, opened = os.open(os.devnull, os.O_RDONLY), None, []
        if self.stdin:
            os.close(stdin)
            stdin, feeder = feed(at(self.stdin))
        opened.append(stdin)
        stderr = os.memfd_create("stderr")
        if self.to_stdout == "pipe":
            drain, stdout = os.pipe()
            opened.append(drain)
            drained = []
            reader = threading.Thread(target=lambda: drained.extend(iter(lambda: os.read(drain, 1 << 20), b"")))
            reader.start()
        else:
            stdout = os.memfd_create("stdout")
        opened += [stderr, stdout]
        env = harness.env(TMPDIR=os.path.join(folder, "spool"))
        count = 0

        def judged(call):
            nonlocal count
            answer = self.world(call)
            # hundreds of looks at the page cache, which nothing depends on
            if answer is not None or call.name == "preadv2":
                return answer
            count += 1
            call.number = count
            return decide(call)

        run = supervise.Run([harness.BIN, *self.args], judged, stdin, stdout, stderr, folder, env)
        try:
            run.go(30)
            run.err = os.pread(stderr, 1 << 20, 0)
            if self.to_stdout != "pipe":
                run.out = os.pread(stdout, 1 << 24, 0)
        finally:
            if self.to_stdout == "pipe":
                opened.remove(stdout)
                os.close(stdout)
                reader.join()
                run.out = b"".join(drained)
            for fd in opened:
                os.close(fd)
            if feeder:
                os.waitpid(feeder, 0)
        return run

    def original(self, name):
        """What a file of the folder was before the run; None if it was not."""
        if name in self.inputs:
            return read(at(name))
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
            data = read(path)
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

    def outcome(self, folder, run):
        """What a run that has done its job has made."""
        return run.out if self.to_stdout else read(os.path.join(folder, self.output))

    def rehearse(self, folder):
        """An undisturbed run: its output, and the list of its calls."""
        calls = []
        self.prepare(folder)
        run = self.run(folder, lambda call: calls.append((call.name, call.path(), call.args[0])))
        if run.status != 0 or run.err:
            raise Wrong(f"the undisturbed run ends with {run.status}: {run.err!r}")
        self.new = self.outcome(folder, run)
        self.expected(self.new)
        self.state(folder)
        return calls


class InPlace(Scene):
    """A run that changes its first input, or several. What it leaves undone, another run completes."""

    def __init__(self, name, args, expected, inputs=("a.npy",), changed=None, **more):
        super().__init__(name, args, expected, output=inputs[0], inputs=inputs, **more)
        self.changed = changed or inputs[:1]

    def outcome(self, folder, run):
        return b"".join(read(os.path.join(folder, name)) for name in self.changed)

    def marks(self, old):
        """Where marks of a run that goes on may stand: in place of CRC-32s in the directory of an archive."""
        if not self.output.endswith(".npz"):
            return set()
        with zipfile.ZipFile(io.BytesIO(old)) as archive:
            at, places = archive.start_dir, set()
            for _ in archive.infolist():
                places.update(range(at + 16, at + 20))
                at += 46 + sum(struct.unpack_from("<HHH", old, at + 28))
        return places

    def state(self, folder, litter=False, ignore=()):
        if set(ignore) & set(self.changed):
            return "both"
        data, old = self.outcome(folder, None), b"".join(map(self.original, self.changed))
        if len(data) != len(old):
            raise Wrong(f"{self.output} has another length")
        now, before, after = (np.frombuffer(b, "u1") for b in (data, old, self.new))
        strange = np.flatnonzero((now != before) & (now != after))
        if not set(strange.tolist()) <= self.marks(old):
            raise Wrong(f"{self.output} holds bytes that are neither the old ones nor the new ones")
        for name in sorted(os.listdir(folder)):
            if name not in ("spool", *self.changed) and name not in ignore:
                if read(os.path.join(folder, name)) != self.original(name):
                    raise Wrong(f"{name} was changed, or is left")
        if not ignore and data != self.new:
            if self.run(folder).status != 0 or self.outcome(folder, None) != self.new:
                raise Wrong("another run does not complete it")
            return "part"
        return "both"


class Appends(Scene):
    """A run that puts rows behind those of its first input. What it leaves is the old array, perhaps with bytes
    behind it, or the new one; over the old one, another run with --force makes the new one."""

    def __init__(self, name, args, expected, inputs, **more):
        super().__init__(name, args, expected, output=inputs[0], inputs=inputs, **more)

    def state(self, folder, litter=False, ignore=()):
        data, old = read(os.path.join(folder, self.output)), self.original(self.output)
        for name in self.inputs[1:]:
            if name not in ignore and read(os.path.join(folder, name)) != self.original(name):
                raise Wrong(f"{name} was changed")
        if self.output in ignore or data == self.new:
            return "both"
        if not data.startswith(old):
            raise Wrong(f"{self.output} is neither the old array nor the new one")
        if len(data) > len(old) and not ignore:
            again = subprocess.run([harness.BIN, *self.args, "--force"], cwd=folder, capture_output=True)
            if again.returncode or read(os.path.join(folder, self.output)) != self.new:
                raise Wrong(f"another run with --force does not append: {again.stderr!r}")
        return "old"


class Folder(Scene):
    """A run that makes a folder of shards and their index: where there was none, over an old one, or over
    one with a folder in it, whose files are exchanged one by one. `before` is what it held, by paths, and
    `kept` what it holds then and afterwards."""

    def __init__(self, name, args, expected, inputs, before=None, kept=None):
        super().__init__(name, args, expected, output="out", inputs=inputs)
        self.before, self.kept = before or {}, kept or {}
        self.one_by_one = any("/" in path for path in self.kept)

    def prepare(self, folder):
        super().prepare(folder)
        for name, data in (self.before | self.kept).items():
            path = os.path.join(folder, "out", name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)

    def outcome(self, folder, run):
        """All files under out/, by their paths; None where it does not exist."""
        out = os.path.join(folder, "out")
        if not os.path.exists(out):
            return None
        paths = [os.path.join(where, name) for where, _, names in os.walk(out) for name in names]
        return {os.path.relpath(path, out): read(path) for path in paths}

    def state(self, folder, litter=False, ignore=()):
        for name in os.listdir(folder):
            if name not in ("spool", "out", *self.inputs):
                if not (litter and name.startswith(".tslice-")):
                    raise Wrong(f"{name} is left")
        for name in self.inputs:
            if name not in ignore and read(os.path.join(folder, name)) != self.original(name):
                raise Wrong(f"{name} was changed")
        found = self.outcome(folder, None)
        if found is None and not self.before:
            return "old"
        if litter and found:
            found = {name: data for name, data in found.items() if not name.startswith(".tslice-")}
        new = dict(self.new)
        for name in set(ignore) & set(new) & set(found):
            # cut short before it was looked at, or after it was copied
            if found[name] == read(os.path.join(folder, name)):
                new[name] = found[name]
        if found == new:
            return "new"
        if found == self.before | self.kept and found:
            return "old"
        if litter and self.one_by_one and found and self.is_between(found):
            if not ignore:
                done = self.run(folder)
                complete = self.outcome(folder, None)
                if done.status != 0 or any(complete.get(name) != data for name, data in self.new.items()):
                    raise Wrong(f"another run does not complete it: {done.err!r:.300}")
            return "both"
        raise Wrong(f"the folder is neither the old one nor the new one: it holds {sorted(found or ())}")

    def is_between(self, found):
        """Files are old or new, those that are kept are there, and no index says that these are a checkpoint."""
        either = all(data in (self.before.get(name), self.new.get(name)) for name, data in found.items())
        kept = all(found.get(name) == data for name, data in self.kept.items())
        return either and kept and not any(name.endswith(".index.json") for name in found)


class Several(Scene):
    """A run that makes three files, over others: all are old or all are new. SIGKILL may leave some of
    each; what was replaced then has a name that begins with .tslice-, until all are new."""

    NAMES = ("p0.npy", "p1.npy", "p2.npy")

    def __init__(self, name, args, array, old=(), inputs=("a.npy",), world=lambda call: None):
        def expected(new):
            for name, part in zip(self.NAMES, np.array_split(array, 3)):
                an_array(part)(new[name])

        super().__init__(name, ["split", *args, "-o", "p{}.npy"], expected, inputs=inputs, world=world)
        self.before = {name: f"{OLD} {name}".encode() for name in old}

    def prepare(self, folder):
        super().prepare(folder)
        for name in self.inputs:
            self.before[name] = read(at(name))
        for name, data in self.before.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)

    def original(self, name):
        return self.before.get(name)

    def outcome(self, folder, run):
        return {name: read(os.path.join(folder, name)) for name in self.NAMES}

    def state(self, folder, litter=False, ignore=()):
        found = {name: read(os.path.join(folder, name)) for name in os.listdir(folder) if name != "spool"}
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


# ---------------------------------------------------------------- what a system lacks


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


def little_memory(size):
    """A machine with so many bytes of memory, in which no page of a file is."""
    def answer(call):
        if call.name == "sysinfo":
            # of struct sysinfo totalram is the fifth field, and mem_unit the last
            call.write_memory(call.args[0], struct.pack("<10QHHxxxxQQI4x", 0, 0, 0, 0, size, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1))
            return ("value", 0)
        return errno.EAGAIN if call.name == "preadv2" else None
    return answer


def no_room(free):
    """File systems with so many bytes left, for those who ask."""
    def answer(call):
        if call.name == "fstatfs":
            # of struct statfs, in words: the type, the size of a block, all blocks, the free ones, those for users
            call.write_memory(call.args[1], struct.pack("<15Q", 0xEF53, 4096, 1 << 20, free >> 12, free >> 12, *[0] * 4, 4096, *[0] * 5))
            return ("value", 0)
    return answer


# ---------------------------------------------------------------- what undisturbed runs must write


def wrong_values():
    return Wrong("the undisturbed run writes other values than NumPy")


def an_array(array):
    def check(raw):
        with open(judged("npy"), "wb") as file:
            file.write(raw)
        found = np.load(judged("npy"))
        if found.dtype != array.dtype or not np.array_equal(found, array):
            raise wrong_values()
    return check


def tensors_of(raw):
    """The tensors of a .safetensors: name -> shape and bytes."""
    n, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + n])
    header.pop("__metadata__", None)
    return {name: (info["shape"], raw[8 + n:][slice(*info["data_offsets"])]) for name, info in header.items()}


def a_safetensors(**arrays):
    expected = {name: (list(array.shape), np.ascontiguousarray(array).tobytes()) for name, array in arrays.items()}

    def check(raw):
        if tensors_of(raw) != expected:
            raise wrong_values()
    return check


def shards(count, **arrays):
    """A folder of so many shards that hold these tensors together."""
    def check(files):
        (index,) = [json.loads(data) for name, data in files.items() if name.endswith(".index.json")]
        found = {}
        for name in set(index["weight_map"].values()):
            found |= tensors_of(files[name])
        if len(set(index["weight_map"].values())) != count or set(index["weight_map"]) != set(found):
            raise Wrong(f"the index says {index['weight_map']}")
        expected = {name: (list(array.shape), np.ascontiguousarray(array).tobytes()) for name, array in arrays.items()}
        if found != expected:
            raise wrong_values()
    return check


def an_npz(**arrays):
    def check(raw):
        with open(judged("npz"), "wb") as file:
            file.write(raw)
        with np.load(judged("npz")) as found:
            if sorted(found) != sorted(arrays) or any(not np.array_equal(found[n], arrays[n]) for n in arrays):
                raise wrong_values()
    return check


def ends_with(array):
    def check(raw):
        if not raw.endswith(np.ascontiguousarray(array).tobytes()):
            raise wrong_values()
    return check


def bytes_of(array):
    def check(raw):
        if raw != np.ascontiguousarray(array).tobytes():
            raise wrong_values()
    return check


def text_with(*words):
    def check(raw):
        for word in words:
            if word not in raw:
                raise Wrong(f"the undisturbed run does not print {word!r}")
    return check
