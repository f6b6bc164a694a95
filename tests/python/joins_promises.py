#!/usr/bin/env python3
"""What `tslice concat`, `stack` and `split` promise when they are killed, when the disk is full, and
of how many descriptors and how much memory they take.

    python tests/python/joins_promises.py --bin target/debug/tslice [--kills 200]

Each check runs in a folder of its own. The last line is `N passed, N failed`.
"""

import errno
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

import harness
import supervise
from harness import MIB, Skip, done_well, failed_well, names, peak_rss_anon, same, start, tslice

KILLS = 60


def arrays(count=4, rows=500):
    made = [np.arange(rows * 2000, dtype="i4").reshape(rows, 2000) + number for number in range(count)]
    for number, array in enumerate(made):
        np.save(f"in{number}.npy", array)
    return made


def stop(process, seconds, by):
    time.sleep(seconds)
    process.send_signal(by)
    process.communicate()


def seconds_of(*args):
    begun = time.monotonic()
    done_well(tslice(*args))
    return time.monotonic() - begun


def check_a_killed_join_leaves_old_or_new():
    made, rng, done = arrays(), random.Random(3), 0
    inputs = [f"in{number}.npy" for number in range(len(made))]
    for axis in (0, 1):
        expected = np.concatenate(made, axis)
        args = ["concat", *inputs, "--axis", str(axis), "-o", "out.npy", "--force"]
        longest = 1.2 * seconds_of(*args)
        for turn in range(KILLS // 2):
            by = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[turn % 3]
            with open("out.npy", "w") as file:
                file.write("precious")
            stop(start(*args, "-j", "2"), rng.random() * longest, by)
            left = [name for name in names() if name not in (*inputs, "out.npy")]
            assert all(by == signal.SIGKILL and name.startswith(".tslice-") for name in left), left
            for name in left:
                os.unlink(name)
            with open("out.npy", "rb") as file:
                old = file.read() == b"precious"
            if not old:
                same("out.npy", expected)
                done += 1
    return f"{done} of {KILLS} were done before the signal"


def check_a_killed_split_leaves_none_or_all():
    made, rng, outcomes = arrays(1, 2000)[0], random.Random(4), {"none": 0, "all": 0, "some": 0}
    for turn in range(KILLS):
        parts = rng.choice([3, 40])
        args = ["split", "-q", "in0.npy", "--parts", str(parts), "--axis", str(turn % 2), "-o", "p{}.npy"]
        if turn < 4:
            longest = 1.2 * seconds_of(*args, "--force")
        for name in names():
            if name != "in0.npy":
                os.unlink(name)
        by = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[turn % 3]
        stop(start(*args, "-j", "2"), rng.random() * longest, by)
        found = [name for name in names() if name != "in0.npy"]
        expected = np.array_split(made, parts, turn % 2)
        outcome = "none" if not found else "all" if len(found) == parts else "some"
        outcomes[outcome] += 1
        assert outcome != "some" or by == signal.SIGKILL, (by, found)
        # names are given in order, and each file that has its name is whole
        assert sorted(found) == sorted(f"p{number}.npy" for number in range(len(found))), found
        for number in range(len(found)):
            same(f"p{number}.npy", expected[number])
        if outcome == "some":
            done_well(tslice(*args, "--force"))
            assert len(names()) == parts + 1
    return ", ".join(f"{count} left {outcome}" for outcome, count in outcomes.items())


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 * MIB, 2 * MIB))


def check_a_full_disk_leaves_nothing():
    arrays(2, 400)
    with open("p1.npy", "w") as file:
        file.write("precious")
    before = names()
    failed_well(tslice("concat", "in0.npy", "in1.npy", "-o", "o.npy", preexec_fn=limit_file_size), 1, "o.npy")
    split = ["split", "in0.npy", "--sizes", "10,390", "-o", "p{}.npy", "--force"]
    failed_well(tslice(*split, preexec_fn=limit_file_size), 1, "p1.npy")
    assert names() == before and open("p1.npy").read() == "precious", names()


def check_a_full_file_system_leaves_nothing():
    os.mkdir("small")
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "none", "small"]
    if os.geteuid() != 0 or subprocess.run(mount, stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("only root can mount a file system")
    try:
        made = arrays(2, 400)
        failed_well(tslice("concat", "in0.npy", "in1.npy", "in1.npy", "-o", "small/o.npy"), 1, "small/o.npy")
        failed_well(tslice("stack", "in0.npy", "in1.npy", "--axis", "-1", "-o", "small/o.npy", "--fsync"), 1)
        np.save("both.npy", np.concatenate(made))
        failed_well(tslice("split", "both.npy", "--parts", "7", "-o", "small/p{}.npy"), 1, "small/p")
        assert not os.listdir("small"), os.listdir("small")
    finally:
        subprocess.run(["umount", "small"], check=True)


def check_a_rival_keeps_the_set_from_appearing():
    # the last name is taken while the parts are written
    np.save("in0.npy", np.zeros((4000, 3000), "f4"))
    for _ in range(20):
        process = start("split", "in0.npy", "--parts", "3", "--axis", "1", "-o", "p{}.npy")
        time.sleep(0.01)
        if process.poll() is None:
            with open("p2.npy", "w") as file:
                file.write("rival")
        process.communicate()
        if process.returncode == 0:
            assert len(names()) == 4, names()
        else:
            assert names() == ["in0.npy", "p2.npy"] and open("p2.npy").read() == "rival", names()
        for name in names()[1:]:
            os.unlink(name)


def few_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))


def check_thousands_of_files_take_few_descriptors_and_little_memory():
    count, row = 5000, np.arange(1000, dtype="f4")
    for number in range(count):
        np.save(f"{number:05}.npy", row + number)
    with open("list", "w") as file:
        file.writelines(f"{number:05}.npy\n" for number in range(count))
    expected = row + np.arange(count, dtype="f4")[:, None]
    peaks = []
    for axis, whole in ((0, expected), (1, expected.T)):
        process = start("stack", "--files-from", "list", "--axis", axis, "-j", "2", "-o", "out.npy",
                        preexec_fn=few_descriptors)
        peaks.append(peak_rss_anon(process))
        assert process.returncode == 0
        same("out.npy", whole)
        os.unlink("out.npy")
    assert max(peaks) < 64 * MIB, peaks
    return f"{max(peaks) / MIB:.0f} MiB"


def check_a_kill_between_two_names_leaves_the_first_ones():
    if reason := supervise.unavailable():
        raise Skip(reason)
    made = np.arange(70 * 30, dtype="i4").reshape(70, 30)
    np.save("in0.npy", made)
    calls = ("linkat", "renameat2", "renameat")
    split = ["split", "in0.npy", "--every", "10", "-o", "p{}.npy"]
    clean = lambda: [os.unlink(name) for name in names() if name != "in0.npy"]
    # all outputs open at the same time, and three at a time
    for limit in (1000, 70):
        argv = [shutil.which("prlimit"), f"--nofile={limit}:{limit}", harness.BIN, *split]
        seen = []
        status = supervise.Run(argv, lambda call: seen.append(call.name) if call.name in calls else None).go().status
        assert status == 0 and len(seen) >= 7, (status, seen)
        clean()
        for number in range(1, len(seen) + 1):
            count = 0

            def kill(call):
                nonlocal count
                if call.name in calls:
                    count += 1
                    if count == number:
                        os.kill(call.run.pid, signal.SIGKILL)
                        return errno.EIO  # so that the call is not made; nobody sees its result
                return None

            supervise.Run(argv, kill).go()
            found = [name for name in names() if name.startswith("p")]
            litter = [name for name in names() if name.startswith(".tslice-")]
            # the names are given last, one after the other
            expected = max(0, number - 1 - (len(seen) - 7))
            assert found == [f"p{part}.npy" for part in range(expected)], (limit, number, found)
            assert limit == 70 or not litter, litter
            for part in range(expected):
                same(f"p{part}.npy", made[part * 10:][:10])
            if found:
                failed_well(tslice(*split), 1, "p0.npy", "exists")
            done_well(tslice(*split, "--force"))
            for part in range(7):
                same(f"p{part}.npy", made[part * 10:][:10])
            clean()
    return f"killed before each of {len(seen)} calls"


def check_more_outputs_than_descriptors():
    count = 2000
    made = np.arange(count * 100, dtype="<i4").reshape(count, 100)
    np.save("in0.npy", made)

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    def judge(what):
        assert len(names()) == count + 1, (what, len(names()))
        for part in range(count):
            same(f"p{part:04}.npy", what[part:part + 1])
            os.unlink(f"p{part:04}.npy")

    split = ["split", "in0.npy", "--every", "1", "-o", "p{:04}.npy"]
    process = start(*split, "-j", "2", preexec_fn=limit)
    peak = peak_rss_anon(process)
    assert process.returncode == 0, process.stderr.read()
    assert peak < 64 * MIB, peak
    judge(made)
    with open("in0.npy", "rb") as file:
        done_well(tslice("split", "-", *split[2:], stdin=file, preexec_fn=limit))
    judge(made)
    # a name that is taken at the end, a full disk, signals: nothing
    with open("p1999.npy", "w") as file:
        file.write("precious")
    failed_well(tslice(*split, preexec_fn=limit), 1, "p1999.npy", "exists")
    assert names() == ["in0.npy", "p1999.npy"], names()
    for by in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL) * 2:
        process = start(*split, "--force", preexec_fn=limit)
        stop(process, random.random() * 0.8, by)
        left = [name for name in names() if name not in ("in0.npy", "p1999.npy")]
        whole = sum(name.startswith("p") for name in left)
        if by != signal.SIGKILL:
            assert whole in (0, count - 1) and len(left) == whole, (by, len(left))
        assert all(name.startswith((".tslice-", "p")) for name in left)
        for name in left:
            os.unlink(name)
    done_well(tslice(*split, "--force", preexec_fn=limit))
    judge(made)
    return f"{count} outputs with 256 descriptors, {peak / MIB:.0f} MiB"


def main():
    global KILLS
    parser = harness.check_parser("what concat, stack and split promise")
    parser.add_argument("--kills", type=int, default=KILLS, help="how many runs are killed (%(default)s)")
    options = parser.parse_args()
    KILLS = options.kills
    harness.begin(options)
    return harness.run_checks(globals(), "joins-promises", options)


if __name__ == "__main__":
    sys.exit(main())
