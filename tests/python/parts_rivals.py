"""Parts that are stopped, killed and run twice; strange files in the folder of parts: checks of parts.py.

A run that stands still is one that waits in a system call, while others go on (`supervise`), or one that
is stopped by SIGSTOP at a random moment. Whatever it does when it goes on, an output that is in place has
the same bytes afterwards, and nothing is left beside it.
"""

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
    """One run of the last part stands still before each of its calls, while another completes the output."""
    calls = []
    for title, force in (("", []), ("--force", ["--force"])):
        for number in range(1, (len(calls) or 1) + 1, step):
            os.makedirs("work")
            os.chdir("work")
            try:
                name, problem = stalled(calls, number, force)
            finally:
                os.chdir("..")
                shutil.rmtree("work")
            tally.check(f"stalled, {title}: {name}", problem is None, problem)
    return len(calls)


def stalled(calls, number, force):
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

    decide = at(lambda call: call.number == number, others)
    status, err = supervised(0, 2, decide, *force)
    name = f"before call {number}, {calls[number - 1] if number <= len(calls) else '?'}"
    if status != 0 or err:
        return name, f"{status} {err!r}"
    if not np.array_equal(np.load("o.npy"), expected):
        return name, "the output was changed"
    litter = [it for it in names() if it not in ("a.npy", "o.npy")]
    return name, f"left {litter}" if litter else None


# ---------------------------------------------------------------- stopped and killed at random


def check_parts_that_are_stopped_and_killed_at_random(rounds=6):
    for number in range(rounds):
        rng = random.Random(f"rivals {number}")
        cube(seed=number, rows=rng.choice([100, 3000]))
        expected, count = np.load("a.npy")[:, ::-1].copy(), rng.choice([1, 2, 3, 5])
        force = ["--force"] if rng.random() < 0.4 else []
        running, stopped, complete = [], set(), False
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
            # those that are not stopped make the output
            if not complete and rng.random() < 0.05:
                for one in range(count):
                    done_well(tslice(*argv(one, count, *force)[1:]))
                harness.same("o.npy", expected)
                complete = True
        for index in range(count):
            done_well(tslice(*argv(index, count, *force)[1:]))
        harness.same("o.npy", expected)
        assert names() == ["a.npy", "o.npy"], names()
        os.unlink("o.npy")


# ---------------------------------------------------------------- inputs that change


def check_a_part_whose_input_changes_is_not_complete():
    cube()
    original, stat = read("a.npy"), os.stat("a.npy")
    expected = np.load("a.npy")[:, ::-1].copy()
    decide = at(lambda call: call.name == "pwrite64", lambda: cube(seed=2))
    status, err = supervised(0, 2, decide)
    assert decide.done and status == 1 and b"a.npy: changed while a part" in err, (status, err)
    failed_well(part(1, 2), 1, "parts of another job", "--part discard")
    restore("a.npy", original, stat)
    status = done_well(tslice("a.npy", "-o", "o.npy", "--part", "status")).stdout
    assert status == b"o.npy: 0 of 2 parts are complete, missing 0-1\n", status
    for index in (1, 0):
        assert not os.path.exists("o.npy")
        done_well(part(index, 2))
    harness.same("o.npy", expected)


def check_inputs_of_one_name_size_and_time_are_told_apart():
    for folder, seed in (("A", 1), ("B", 2)):
        os.mkdir(folder)
        rng = np.random.default_rng(seed)
        np.save(f"{folder}/x.npy", rng.integers(0, 99, (500, 600), dtype="i4"))
        np.save(f"{folder}/i.npy", rng.integers(0, 500, 3000))
        for name in "xi":
            os.utime(f"{folder}/{name}.npy", (7, 7))
    same = "had the same size and time of last change, but different content"
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
    rng = random.Random(1)
    for number in range(kills):
        process = harness.start(*argv(number % 2, 2)[1:])
        time.sleep(rng.random() * 0.012)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert set(names()) <= {".tslice-parts-o.npy", ".tslice-ended-o.npy", "a.npy", "o.npy"}, names()
        if "o.npy" in names():
            # Both parts ended before their signals came: the output is whole, a repeat removes what is left beside it.
            harness.same("o.npy", np.load("a.npy")[:, ::-1])
            done_well(part(number % 2, 2))
            assert names() == ["a.npy", "o.npy"], names()
            os.unlink("o.npy")
            continue
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


def check_folders_of_other_outputs_are_let_be():
    cube()
    done_well(part(0, 2, out="o.npy"))
    others = ["o.npy.0123456789ab", "p.npy"]
    for out in others:
        done_well(part(0, 2, "--to", "npy", out=out))
    kept = [".tslice-ended-p.npy.0123456789ab", ".tslice-0123456789ab"]
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
    for name in ("job", "data", "part.0", "part.1", "other"):
        for kind in kinds:
            shutil.copytree("kept", folder)
            path = f"{folder}/{name}"
            if os.path.exists(path):
                os.unlink(path)
            strange(path, kind)
            status = tslice("a.npy", "-o", "o.npy", "--part", "status")
            if status.returncode or name == "job":
                failed_well(status, 1, f'the file "{name}" of its parts is damaged')
            for run in (part(1, 2), part(0, 2)):
                assert run.returncode in (0, 1), (name, kind, harness.text(run))
                if run.returncode:
                    other = name == "data" and kind in ("oversized", "garbage", "empty", "huge")
                    says = 'the file "data" of its parts has' if other else f'the file "{name}" of its parts is damaged'
                    failed_well(run, 1, says, "--part discard")
            if os.path.exists("o.npy"):
                harness.same("o.npy", np.load("a.npy")[:, ::-1])
                assert name == "other", (name, kind)
                os.unlink("o.npy")
            done_well(tslice("a.npy", "-o", "o.npy", "--part", "discard"))
            assert names() == ["a.npy", "kept"], (name, kind, names())
    for kind in ("FIFO", "link", "socket", "garbage"):
        strange(folder, kind)
        for run in (part(1, 2), *(tslice("a.npy", "-o", "o.npy", "--part", it) for it in ("status", "discard"))):
            failed_well(run, 1, "the folder of its parts cannot be opened")
        os.unlink(folder)


def check_data_that_are_cut_short_are_an_error():
    cube()
    data = ".tslice-parts-o.npy/data"
    says = lambda found: (f"o.npy: the file \"data\" of its parts has {found} bytes, not 240128", "--part discard")
    for size in (0, 128, 240127, 240129):
        # between two parts, and when all are complete, but one was killed before it put the output in place
        for complete in (1, 2):
            done_well(part(0, 2))
            if complete == 2:
                is_header = lambda call: call.name == "pwrite64" and call.args[3] == 0
                kill = lambda call: os.kill(call.run.pid, signal.SIGKILL) if is_header(call) else None
                assert supervised(1, 2, kill)[0] == -signal.SIGKILL
            os.truncate(data, size)
            for number in (1, 0):
                failed_well(part(number, 2), 1, *says(size))
            assert not os.path.exists("o.npy")
            done_well(tslice("a.npy", "-o", "o.npy", "--part", "discard"))
    # while a part is written
    decide = at(lambda call: call.name == "fsync" and b"data" in os.readlink(f"/proc/{call.run.pid}/fd/{call.args[0]}").encode(),
                lambda: os.truncate(data, 5000))
    status, err = supervised(0, 2, decide)
    assert decide.done and status == 1 and b'the file "data" of its parts has 5000 bytes' in err, (status, err)
    done_well(tslice("a.npy", "-o", "o.npy", "--part", "discard"))
    # without it
    done_well(part(0, 2))
    os.unlink(data)
    failed_well(part(1, 2), 1, 'the file "data" of its parts is damaged', "--part discard")
    done_well(tslice("a.npy", "-o", "o.npy", "--part", "discard"))
    for number in (0, 1):
        done_well(part(number, 2))
    harness.same("o.npy", np.load("a.npy")[:, ::-1])
    assert names() == ["a.npy", "o.npy"], names()
