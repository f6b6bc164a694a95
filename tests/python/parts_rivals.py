"""Parts that are stopped, killed and run twice; strange files in the folder of parts: checks of parts.py.

A run that stands still is one that waits in a system call, while others go on (`supervise`), or one that
is stopped by SIGSTOP at a random moment. Whatever it does when it goes on, an output that is in place is
not changed by it, and nothing is left beside it.
"""

import errno
import fcntl
import os
import random
import shutil
import signal
import socket
import time

import numpy as np

import harness
import supervise
from harness import done_well, failed_well, names, tslice

INDEX = "[:, ::-1]"


def cube(seed=1, rows=100):
    np.save("a.npy", np.random.default_rng(seed).integers(0, 1 << 30, (rows, 600), dtype="i4"))


def part(number, count, *more, cwd=None, out="o.npy"):
    return tslice("a.npy", INDEX, "-o", out, "--part", f"{number}/{count}", *more, cwd=cwd)


def argv(number, count, *more):
    return [harness.BIN, "a.npy", INDEX, "-o", "o.npy", "--part", f"{number}/{count}", *more]


def supervised(number, count, decide, *more):
    """One part, each of whose calls waits for `decide`; its exit status and what it says."""
    if reason := supervise.unavailable():
        raise harness.Skip(reason)
    err = os.memfd_create("err")
    try:
        run = supervise.Run(argv(number, count, *more), decide, stderr=err, env=harness.env()).go(30)
        return run.status, os.pread(err, 4096, 0)
    finally:
        os.close(err)


def at(matches, act):
    """A decision: at the first call that matches, something is done before it goes on."""
    done = []

    def decide(call):
        if not done and matches(call):
            done.append(call.name)
            act()

    decide.done = done
    return decide


def read(path):
    with open(path, "rb") as file:
        return file.read()


def restore(path, data, stat):
    with open(path, "wb") as file:
        file.write(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


# ---------------------------------------------------------------- stopped at each call


def stalls(tally, step):
    """One run of the last part stands still before each of its calls, while another completes the output,
    which is changed then, as may be the input."""
    calls = []
    for title, force, changes in (("", [], False), ("--force", ["--force"], False), ("the input changes", [], True)):
        for number in range(1, (len(calls) or 1) + 1, step):
            os.makedirs("work")
            os.chdir("work")
            try:
                name, problem = stalled(calls, number, force, changes)
            finally:
                os.chdir("..")
                shutil.rmtree("work")
            tally.check(f"stalled, {title}: {name}", problem is None, problem)
    return len(calls)


def stalled(calls, number, force, changes):
    cube()
    expected = np.load("a.npy")[:, ::-1]
    if force:
        shutil.copy("a.npy", "o.npy")
    if not calls:
        supervised(0, 1, lambda call: calls.append(call.name))
        os.unlink("o.npy")
    done_well(part(1, 2, *force))

    def others():
        for index in (0, 1):
            done_well(part(index, 2, *force))
        harness.same("o.npy", expected)
        done_well(tslice("assign", "o.npy", "[5]", "--fill", "7", "--in-place"))
        if changes:
            cube(seed=2)

    decide = at(lambda call: call.number == number, others)
    status, err = supervised(0, 2, decide, *force)
    name = f"before call {number}, {calls[number - 1] if number <= len(calls) else '?'}"
    if not decide.done:
        return name, None if status == 0 else f"{status} {err!r}"
    changed = expected.copy()
    changed[5] = 7
    # the program may find its own output and the changed input as any other run does
    if status != 0 and not (status == 1 and err.startswith(b"tslice: ") and (changes or force and b"exists" in err)):
        return name, f"{status} {err!r}"
    if not np.array_equal(np.load("o.npy"), changed):
        return name, "the output was changed"
    if force and ".tslice-parts-o.npy" in names():
        # it had not looked yet: what was changed since is made again with --force, by a job of its own
        assert status == 0 and "part.1" not in names(".tslice-parts-o.npy"), err
        done_well(tslice("a.npy", "-o", "o.npy", "--part", "discard"))
    litter = [it for it in names() if it not in ("a.npy", "o.npy")]
    return name, f"left {litter}" if litter else None


# ---------------------------------------------------------------- stopped and killed at random


def check_parts_that_are_stopped_and_killed_at_random(rounds=6):
    for number in range(rounds):
        rng = random.Random(f"rivals {number}")
        cube(seed=number, rows=rng.choice([100, 3000]))
        expected, count = np.load("a.npy")[:, ::-1].copy(), rng.choice([1, 2, 3, 5])
        force = ["--force"] if rng.random() < 0.4 else []
        running, stopped, edited = [], set(), False
        starts = [rng.randrange(count) for _ in range(rng.randrange(2, 12))]
        begin = lambda index: running.append((index, harness.start(*argv(index, count, *force)[1:])))
        while starts or running:
            if starts and (len(running) < 6 or rng.random() < 0.1):
                begin(starts.pop())
            index, process = rng.choice(running)
            what = rng.random()
            if process.poll() is not None:
                running.remove((index, process))
                err = process.stderr.read()
                assert process.returncode in (0, -signal.SIGKILL), (index, process.returncode, err)
            elif what < 0.1:
                process.send_signal(signal.SIGKILL)
            elif what < 0.5 and process.pid not in stopped:
                process.send_signal(signal.SIGSTOP)
                stopped.add(process.pid)
            elif process.pid in stopped:
                process.send_signal(signal.SIGCONT)
                stopped.discard(process.pid)
            # once those that are not stopped have made the output, it is changed
            if not edited and rng.random() < 0.05:
                for one in range(count):
                    done_well(tslice(*argv(one, count, *force)[1:]))
                harness.same("o.npy", expected)
                done_well(tslice("assign", "o.npy", "[3]", "--fill", "9", "--in-place"))
                expected[3], edited, force, starts = 9, True, [], []
        for index in range(count):
            done_well(tslice(*argv(index, count, *force)[1:]))
        harness.same("o.npy", expected)
        assert names() == ["a.npy", "o.npy"], names()
        os.unlink("o.npy")


# ---------------------------------------------------------------- other file systems


def check_without_leases_what_somebody_may_write_is_copied():
    """As on a network file system: a killed part makes the output a copy, and else nothing does."""
    links = []
    for killed in (False, True):
        cube()
        if killed:
            kill = lambda call: os.kill(call.run.pid, signal.SIGKILL) if call.name == "pwrite64" else None
            assert supervised(0, 2, kill)[0] == -signal.SIGKILL
            assert any(name.startswith("writer.") for name in names(".tslice-parts-o.npy"))
        done_well(part(0, 2))
        data = os.stat(".tslice-parts-o.npy/data").st_ino
        refuse = lambda call: errno.EINVAL if call.name == "fcntl" and call.args[1] == fcntl.F_SETLEASE else None
        status, err = supervised(1, 2, refuse)
        assert (status, err) == (0, b""), (status, err)
        harness.same("o.npy", np.load("a.npy")[:, ::-1])
        links.append(os.stat("o.npy").st_ino == data)
        # it is this job's, and complete
        before = os.stat("o.npy")
        for index in (0, 1):
            done_well(part(index, 2))
        assert os.stat("o.npy").st_mtime_ns == before.st_mtime_ns and names() == ["a.npy", "o.npy"], names()
        os.unlink("o.npy")
    assert links == [True, False], links


def check_a_killed_part_costs_no_copy_where_there_are_leases():
    cube()
    with open("a.npy") as file:
        try:
            fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            raise harness.Skip(f"no leases here: {error}")
    kill = lambda call: os.kill(call.run.pid, signal.SIGKILL) if call.name == "pwrite64" else None
    assert supervised(0, 2, kill)[0] == -signal.SIGKILL
    data = os.stat(".tslice-parts-o.npy/data").st_ino
    for index in (0, 1):
        done_well(part(index, 2))
    harness.same("o.npy", np.load("a.npy")[:, ::-1])
    assert os.stat("o.npy").st_ino == data


def check_a_file_that_the_server_took_away():
    """NFS: what is written to a file that is gone fails with ESTALE."""
    for call_name in ("pwrite64", "fsync"):
        cube()
        done = []

        def decide(call):
            if call.name == call_name and not done:
                done.append(call)
                for index in (0, 1):
                    done_well(part(index, 2))
                return errno.ESTALE
            return None

        assert supervised(0, 2, decide) == (0, b""), call_name
        harness.same("o.npy", np.load("a.npy")[:, ::-1])
        assert done and names() == ["a.npy", "o.npy"], names()
        os.unlink("o.npy")


# ---------------------------------------------------------------- inputs that change


def check_a_duplicate_that_writes_a_changed_input_spoils_the_job():
    cube()
    original, stat = read("a.npy"), os.stat("a.npy")
    expected = np.load("a.npy")[:, ::-1].copy()

    def complete_and_change():
        done_well(part(0, 2))
        cube(seed=2)

    decide = at(lambda call: call.name == "pwrite64", complete_and_change)
    status, err = supervised(0, 2, decide)
    assert decide.done and status == 1 and b"a.npy: changed while a part" in err, (status, err)
    # also when the input is what it was: nobody knows which of its bytes were written
    restore("a.npy", original, stat)
    failed_well(part(1, 2), 1, "o.npy: an input changed while its parts were written", "--part discard")
    failed_well(tslice("a.npy", "-o", "o.npy", "--part", "status"), 1, "an input changed")
    assert not os.path.exists("o.npy")
    done_well(tslice("a.npy", "-o", "o.npy", "--part", "discard"))
    for index in (0, 1):
        done_well(part(index, 2))
    harness.same("o.npy", expected)


def check_whoever_finishes_looks_at_all_inputs_again():
    cube()
    original, stat = read("a.npy"), os.stat("a.npy")
    done_well(part(0, 2))
    is_closing = lambda call: call.name == "renameat" and call.path() == b"closed"
    decide = at(is_closing, lambda: cube(seed=2))
    status, err = supervised(1, 2, decide)
    assert decide.done and status == 1 and b"a.npy: changed while a part" in err, (status, err)
    assert not os.path.exists("o.npy")
    restore("a.npy", original, stat)
    failed_well(part(1, 2), 1, "an input changed while its parts were written")
    assert not os.path.exists("o.npy")


def check_inputs_of_one_name_size_and_time_are_told_apart():
    for folder, seed in (("A", 1), ("B", 2)):
        os.mkdir(folder)
        rng = np.random.default_rng(seed)
        np.save(f"{folder}/x.npy", rng.integers(0, 99, (500, 600), dtype="i4"))
        np.save(f"{folder}/i.npy", rng.integers(0, 500, 3000))
        for name in "xi":
            os.utime(f"{folder}/{name}.npy", (7, 7))
    same = "had the same size and time of last change, but other content"
    of = lambda number, *args: tslice(*args, "-o", "o.npy", "--part", f"{number}/2")
    discard = lambda: done_well(tslice("A/x.npy", "-o", "o.npy", "--part", "discard"))
    for ours, theirs, name in (
        (["A/x.npy", "[::-1]"], ["B/x.npy", "[::-1]"], "x.npy"),
        (["A/x.npy", "[@A/i.npy]"], ["A/x.npy", "[@B/i.npy]"], "i.npy"),
        (["gather", "A/x.npy", "--axis", "0", "--indices", "A/i.npy"], ["gather", "A/x.npy", "--axis", "0", "--indices", "B/i.npy"], "i.npy"),
        (["concat", "A/x.npy", "A/x.npy"], ["concat", "B/x.npy", "B/x.npy"], "x.npy"),
    ):
        done_well(of(0, *ours))
        failed_well(of(1, *theirs), 1, "parts of another job", f"the input {name} {same}")
        done_well(of(1, *ours))
        discard()
        os.unlink("o.npy")
    # one that differs in its last element alone, and one in the middle of a large file
    shutil.copytree("A", "C", copy_function=shutil.copy2)
    with open("C/x.npy", "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\1")
    os.utime("C/x.npy", (7, 7))
    done_well(of(0, "A/x.npy"))
    failed_well(of(1, "C/x.npy"), 1, same)
    # a copy with the same times is the same input on another machine
    shutil.copytree("A", "D", copy_function=shutil.copy2)
    done_well(of(1, "D/x.npy"))
    harness.same("o.npy", np.load("A/x.npy"))


# ---------------------------------------------------------------- what killed beginnings leave


def check_a_killed_beginning_leaves_nothing(kills=40):
    cube()
    rng, left = random.Random(1), 0
    for number in range(kills):
        process = harness.start(*argv(number % 2, 2)[1:])
        time.sleep(rng.random() * 0.012)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        left += any(name.startswith(".tslice-begin-") for name in names())
        if rng.random() < 0.2:
            done_well(tslice("a.npy", "-o", "o.npy", "--part", "status"))
        if rng.random() < 0.2:
            done_well(tslice("a.npy", "-o", "o.npy", "--part", "discard"))
            assert names() == ["a.npy"], names()
            continue
        if rng.random() < 0.5:
            continue
        for index in (0, 1):
            done_well(part(index, 2))
        harness.same("o.npy", np.load("a.npy")[:, ::-1])
        assert names() == ["a.npy", "o.npy"], names()
        os.unlink("o.npy")
    return f"{left} of {kills} left a folder"


def check_folders_of_other_outputs_are_let_be():
    cube()
    done_well(part(0, 2, out="o.npy"))
    others = ["o.npy.0123456789ab", "p.npy"]
    for out in others:
        done_well(part(0, 2, "--to", "npy", out=out))
    kept = [".tslice-begin-o.npy.0123456789ab", ".tslice-0123456789ab"]
    for name in kept:
        os.mkdir(name)
    done_well(part(1, 2, out="o.npy"))
    for out in others:
        done_well(part(1, 2, "--to", "npy", out=out))
    assert names() == sorted(["a.npy", "o.npy", *others, *kept]), names()


# ---------------------------------------------------------------- strange files


def strange(path, kind):
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "folder":
        os.mkdir(path)
    elif kind == "link":
        os.symlink("/dev/zero", path)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(path)
    elif kind == "oversized":
        with open(path, "w") as file:
            file.truncate(1 << 40)
    else:
        with open(path, "wb") as file:
            file.write({"garbage": b"\xff{[", "empty": b"", "huge": b'{"protocol":2,"version":"0","parts":18446744073709551615,'
                                                                    b'"len":9,"inputs":[],"work":""}'}[kind])


def check_strange_files_in_the_folder_are_errors_and_nobody_waits():
    cube()
    done_well(part(0, 2))
    folder = ".tslice-parts-o.npy"
    os.rename(folder, "kept")
    kinds = ["FIFO", "folder", "link", "socket", "oversized", "garbage", "empty", "huge"]
    for name in ("job", "data", "closed", "chosen", "changed", "part.0", "part.1", "join.1.0", "writer.x", "copy.x"):
        for kind in kinds:
            if name in ("data", "closed", "writer.x", "copy.x") and kind not in ("FIFO", "folder", "link", "socket"):
                continue
            shutil.copytree("kept", folder)
            path = f"{folder}/{name}"
            if os.path.exists(path):
                os.unlink(path)
            strange(path, kind)
            for run in (part(1, 2), part(0, 2), tslice("a.npy", "-o", "o.npy", "--part", "status")):
                assert run.returncode in (0, 1), (name, kind, harness.text(run))
                if run.returncode and name != "changed":
                    failed_well(run, 1, f"{name} of its parts is damaged")
            if os.path.exists("o.npy"):
                harness.same("o.npy", np.load("a.npy")[:, ::-1])
                assert name in ("closed", "writer.x", "copy.x", "part.0"), (name, kind)
                os.unlink("o.npy")
            discard = tslice("a.npy", "-o", "o.npy", "--part", "discard")
            if discard.returncode and kind == "folder":
                failed_well(discard, 1, f"{name} of its parts is damaged")
            else:
                done_well(discard)
                assert names() == ["a.npy", "kept"], (name, kind, names())
            shutil.rmtree(folder, ignore_errors=True)
    for kind in ("FIFO", "link", "socket", "garbage"):
        strange(folder, kind)
        for run in (part(1, 2), *(tslice("a.npy", "-o", "o.npy", "--part", it) for it in ("status", "discard"))):
            failed_well(run, 1, "the folder of its parts cannot be opened")
        os.unlink(folder)
