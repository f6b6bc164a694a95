"""One run of the program in a folder of its own, with a random way in and out."""

import json
import os
import re
import resource
import shlex
import subprocess
import tempfile

import harness
from harness import Failure, TIMEOUT

RAW_NOTE = re.compile(r"tslice: note: NumPy has no [^\n]*\n(?:hint: --cast float32 writes numbers\n)?")
# kerchunk and netCDF say of many arrays that they are packed; unpack_differential.py holds what is said
PACKED_NOTE = re.compile(r"(?:tslice: note: |\{\"note\":)[^\n]*values are taken as they are stored[^\n]*\n"
                         r"(?:hint: --unpack takes[^\n]*\n)?")


def check_hostile(run, name, says):
    """Of a hostile file there is an error in one line, which says this; where that is (), it may be read."""
    if says == () and run.returncode == 0:
        return
    told = run.stderr.decode()
    if run.returncode != 1 or not told.startswith(f"tslice: {name}: ") or "panicked" in told or len(told) > 2000:
        raise Failure(f"status {run.returncode}, {told!r}")
    if says and says not in told:
        raise Failure(f"{told!r} does not say {says!r}")


class Case:
    """One folder, one run, and what was found there afterwards."""

    def __init__(self, rng, without=()):
        self.rng, self.without = rng, without
        self.dir = tempfile.mkdtemp(prefix="tslice-diff-")
        os.mkdir(self.path("tmp"))
        self.story = []
        # what a run may take, in bytes; None for as much as there is
        self.memory = None

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def run(self, args, stdin=None, stdout="pipe", pipe_in=None):
        """Runs tslice in the folder. `stdin`: a file's name; `pipe_in`: bytes for a pipe."""
        shown = " ".join(shlex.quote(a) for a in ["tslice", *args])
        shown = (f"cat {stdin} | " if pipe_in is not None else "") + shown
        shown += f" < {stdin}" if stdin and pipe_in is None else ""
        shown += f" > {stdout}" if stdout != "pipe" else ""
        self.story.append("argv: " + shown)
        source = open(self.path(stdin), "rb") if stdin and pipe_in is None else None
        target = open(self.path(stdout), "wb") if stdout != "pipe" else None
        given = {"input": pipe_in} if pipe_in is not None else {"stdin": source or subprocess.DEVNULL}
        if self.memory is not None:
            limits = (self.memory, self.memory)
            given["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_DATA, limits)
        try:
            done = harness.tslice(*args, cwd=self.dir, env=harness.env(TMPDIR=self.path("tmp")),
                                  stdout=target or subprocess.PIPE, **given)
        except subprocess.TimeoutExpired:
            raise Failure(f"still running after {TIMEOUT} s") from None
        finally:
            for file in (source, target):
                if file:
                    file.close()
        out = done.stdout
        if target:
            with open(self.path(stdout), "rb") as file:
                out = file.read()
        self.story.append(f"exit status {done.returncode}; stderr: {done.stderr.decode(errors='replace').strip()!r}")
        err = done.stderr.decode(errors="replace")
        # what NumPy lacks is written as bytes, with a note, which no other message is held against
        self.raw_note = "".join(RAW_NOTE.findall(err))
        return done.returncode, out, PACKED_NOTE.sub("", RAW_NOTE.sub("", err))

    def check_names(self, expected):
        found = set(os.listdir(self.dir)) - {"tmp"} | {"tmp/" + n for n in os.listdir(self.path("tmp"))}
        if found != set(expected):
            raise Failure(f"files: expected {sorted(expected)}, found {sorted(found)}")

    def check_error(self, status, err, statuses, says=None):
        if status not in statuses:
            raise Failure(f"exit status {status}, expected {' or '.join(map(str, statuses))}")
        if err.splitlines()[-1:] and err.splitlines()[-1].startswith('{"error":"'):
            # under --json, perhaps behind notes
            err = "tslice: " + json.loads(err.splitlines()[-1])["error"]
        if not err.startswith("tslice: "):
            raise Failure("the message does not begin with `tslice: `")
        if says and says not in err:
            raise Failure(f"the message does not say {says!r}")
        if "panicked" in err:
            raise Failure("a panic")


def shorten(data, most=96):
    return data if len(data) <= most else data[:most] + b"...(%d bytes)" % len(data)


def compare(found, expected, what):
    if found != expected:
        at = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
        raise Failure(f"{what}: {len(found)} bytes, expected {len(expected)}; first difference at byte {at}: "
                      f"{bytes(found[at:at + 24])!r}, expected {bytes(expected[at:at + 24])!r}\n"
                      f"  begins {shorten(bytes(found), 128)!r}\n  expected {shorten(bytes(expected), 128)!r}")


def input_way(rng, name, data):
    """(INPUT argument, keyword arguments of run, whether --io may be given)."""
    way = rng.choice(["file", "file", "file", "redirect", "pipe"])
    if way == "file":
        return rng.choice([name, "./" + name]), {}, True
    if way == "redirect":
        return "-", {"stdin": name}, True
    return "-", {"stdin": name, "pipe_in": data}, False


def common_options(rng, io_allowed):
    options = []
    if io_allowed and rng.random() < 0.4:
        options.append(["--io", rng.choice(["auto", "mmap", "read"])])
    if rng.random() < 0.4:
        n = str(rng.randrange(1, 5))
        options.append(rng.choice([["-j", n], ["-j" + n], ["--threads", n], ["--threads=" + n]]))
    if rng.random() < 0.1:
        options.append([rng.choice(["-q", "--quiet"])])
    return options


def output_way(rng, extension):
    """(option groups, file name or None, standard output for run)."""
    way = rng.choice(["-o", "-o", "-o", "--to", "pipe", "dash", "redirect"])
    if way == "-o":
        name = "out." + extension
        return [rng.choice([["-o", name], ["--output", name], ["--output=" + name], ["-o" + name]])], name, "pipe"
    if way == "--to":
        return [["-o", "result"], ["--to", extension]], "result", "pipe"
    options = [] if extension == "npy" else [["--to", extension]]
    if way == "dash":
        options.append(["-o", "-"])
    return options, None, "captured" if way == "redirect" else "pipe"


def arrange(rng, input_arg, index_args, groups):
    """One command line: INPUT before INDEX, option groups anywhere."""
    head, tail = [], []
    for group in groups:
        (head if rng.random() < 0.3 else tail).extend(group)
    return [*head, input_arg, *index_args, *tail]
