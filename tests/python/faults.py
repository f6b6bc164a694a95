#!/usr/bin/env python3
"""Each system call of a run fails in turn: existing files stay as they were, no temporary file is left.

    python tests/python/faults.py --bin target/debug/tslice [--only WORD] [--quick] [--jobs N]

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

import collections
import concurrent.futures
import errno
import itertools
import multiprocessing
import os
import re
import shutil
import signal
import sys
import tempfile
import time

import harness
import supervise
from fault_scenes import scenes
from scenes import O_TMPFILE, SETPIPE_SZ, Folder, InPlace, Several, Wrong, at, begin, read

# the part of a quick pass: one in so many
QUICK_STEP = 3

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
        # below it an index, with a caret where it is wrong
        if not re.match(r"tslice: [^A-Z\n][^\n]*\n(  [^\n]*\n)*(hint: [^\n]*\n)?$", message) or "panicked" in message:
            raise Wrong(f"the message is not one line: {message!r:.400}")
        if names and names not in message:
            raise Wrong(f"the message does not name {names}: {message!r:.300}")


class Once:
    """A decision for one call, by number; what it was is kept."""

    def __init__(self, number, act):
        self.number, self.act, self.call = number, act, None

    def is_due(self, call):
        return call.number == self.number

    def __call__(self, call):
        if not self.is_due(call):
            return None
        self.call = (call.name, call.path(), call.args[0])
        return self.act(call)


class OnceAfter(Once):
    """A decision for one call, by its number from the last of `looks` calls on that `is_look` knows: how
    many are before those differs from run to run where there are threads."""

    def __init__(self, number, act, is_look, looks):
        super().__init__(number, act)
        self.is_look, self.looks, self.seen = is_look, looks, 0

    def is_due(self, call):
        if self.looks:
            self.looks -= self.is_look(call.name, call.path())
            return False
        self.seen += 1
        return self.seen == self.number


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


def places(scene, calls):
    """The calls of a run that something happens to, by their numbers: of those of one name the first ones,
    and then one in twenty."""
    first, seen = 12 if OPTIONS.quick else 20 if scene.is_slow else 60, collections.Counter()
    for number, (name, _, _) in enumerate(calls, 1):
        seen[name] += 1
        if seen[name] <= first or seen[name] % 20 == 0:
            yield number


def fail(scene, calls, folder):
    for number in places(scene, calls):
        name = calls[number - 1][0]
        for word in errnos(name)[:1] if OPTIONS.quick else errnos(name):
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
    for number in places(scene, calls):
        for which in (signal.SIGKILL,) if OPTIONS.quick else (signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            def act(call):
                os.kill(call.run.pid, which)
            named = OPTIONS.named or scene.litters or isinstance(scene, (Folder, Several))
            litter = which == signal.SIGKILL and named
            yield which.name, lambda: turn(scene, folder, number, act, by=which, litter=litter)


def shrink(scene, calls, folder):
    for name, number in itertools.product(scene.inputs, places(scene, calls)):
        size = os.path.getsize(at(name))
        for cut in (50, 5000) if OPTIONS.quick else (0, 50, 130, 5000, size // 2, size - 1):
            if cut >= size:
                continue

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
    for number in places(scene, calls):
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
    path, victim = os.path.join(folder, scene.output), os.path.join(folder, "spool", "victim")

    def is_look(name, path):
        return name == "newfstatat" and path == scene.output.encode()

    # the name is looked at for its kind first, and then for good
    looks = [number for number, (name, path, _) in enumerate(calls, 1) if is_look(name, path)]
    for number in filter(lambda number: number > looks[-1], places(scene, calls)):
        def act(call):
            with open(victim, "w") as file:
                file.write("victim")
            if os.path.lexists(path):
                os.unlink(path)
            os.symlink("spool/victim", path)

        def one():
            scene.prepare(folder)
            once = OnceAfter(number - looks[-1], act, is_look, len(looks))
            run = scene.run(folder, once)
            if once.call and read(victim) != b"victim":
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

FAULTS = (fail, signals, shrink, rival, switch, worlds)


def try_scene(number):
    """All faults of a scene, in a folder of this process: how many passed and failed, and what to print."""
    scene, options = SCENES[number], OPTIONS
    wanted = [fault for fault in FAULTS if options.only in f"{scene.name}: {fault.__name__}"]
    step = QUICK_STEP * (20 if scene.is_slow else 1)
    passed, lines, begun, folder = 0, [], time.monotonic(), at(f"work-{number}")
    try:
        calls = scene.rehearse(folder)
        synced = [path for name, path, _ in calls if name == "fsync"]
        # the file, and the folder that its name is in
        if "--fsync" in scene.args and len(synced) < (1 if "--in-place" in scene.args else 2):
            raise Wrong(f"was run with --fsync, and synced {synced}")
        for fault in wanted:
            for count, (title, one) in enumerate(fault(scene, calls, folder)):
                if options.quick and count % step != number % step:
                    continue
                try:
                    one()
                    passed += 1
                except (Wrong, TimeoutError) as wrong:
                    lines.append(f"FAILED   {scene.name}: {title} {wrong}")
    except Wrong as wrong:
        calls, lines = [], [f"FAILED   {scene.name}: {wrong}"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    failed = len(lines)
    lines.append(f"{'FAILED' if failed else 'ok':8} {scene.name}: {len(calls)} calls, {passed + failed} faults tried "
                 f"({time.monotonic() - begun:.1f} s)")
    return passed, failed, lines


def main():
    global OPTIONS, SCENES
    parser = harness.parser("every system call of a run goes wrong in turn")
    parser.add_argument("--only", default="", help="the scenes, or faults, whose name holds this")
    parser.add_argument("--quick", action="store_true", help="one errno a call, SIGKILL alone, and a part of that")
    parser.add_argument("--named", action="store_true", help="the program has no files without names and exchanges none: SIGKILL may leave one, and a folder between old and new")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="scenes that are tried at one time")
    parser.add_argument("--share", default="1/1", help="1/3: the first, fourth, ... scene alone, for several runs")
    OPTIONS = parser.parse_args()
    harness.begin(OPTIONS)
    if reason := supervise.unavailable():
        print(f"SKIPPED  everything: {reason}\n0 passed, 0 failed")
        return 0
    home = tempfile.mkdtemp(prefix="tslice-faults-")
    begin(home)
    tally = harness.Tally()
    try:
        SCENES = list(scenes())
        for scene in SCENES:
            if isinstance(scene, Folder):
                scene.one_by_one |= OPTIONS.named
        share, shares = map(int, OPTIONS.share.split("/"))
        numbers = [number for number, scene in enumerate(SCENES)
                   if number % shares == share - 1 and any(OPTIONS.only in f"{scene.name}: {fault.__name__}" for fault in FAULTS)]
        method = multiprocessing.get_context("fork")
        with concurrent.futures.ProcessPoolExecutor(OPTIONS.jobs, method) as workers:
            for passed, failed, lines in workers.map(try_scene, numbers):
                tally.passed += passed
                tally.failed += failed
                print("\n".join(lines), flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
