#!/usr/bin/env python3
"""What `tslice concat`, `stack` and `split` promise when they are killed, when the disk is full, and
of how many descriptors and how much memory they take.

    python tests/python/joins_promises.py --bin target/debug/tslice [--kills 200]

Each check runs in a folder of its own. The last line is `N passed, N failed`.
"""

import os
import random
import resource
import signal
import subprocess
import sys
import time

import numpy as np

import harness
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
        args = ["split", "in0.npy", "--parts", str(parts), "--axis", str(turn % 2), "-o", "p{}.npy"]
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
