#!/usr/bin/env python3
"""Outputs that appear together, where one of them cannot be put in place: all old files are there
again, the input among them, and nothing else is left; what a rival has put there meanwhile stays.

    python tests/python/several_outputs.py --bin target/debug/tslice

Each check runs in a folder of its own. The last line is `N passed, N failed`.
"""

import contextlib
import errno
import json
import os
import resource
import shutil
import subprocess
import sys

import numpy as np

import harness
import supervise
from formats import write_safetensors
from harness import Skip, done_well, failed_well, names, same, tslice

ARRAY = np.arange(600 * 50, dtype="<i4").reshape(600, 50)
INDEX = "model.safetensors.index.json"


def state(folder="."):
    """All files below a folder: inode, mode and bytes, by path."""
    found = {}
    for where, _, files in os.walk(folder):
        for name in files:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[path] = (os.stat(path).st_ino, os.stat(path).st_mode, file.read())
    return found


@contextlib.contextmanager
def immutable(path):
    if subprocess.run(["chattr", "+i", path], stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("no file can be made immutable here")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", path], check=True)


@contextlib.contextmanager
def mounted(path):
    """Another file is mounted there, whose name nothing can take."""
    other = path.replace("/", "-") + ".mounted"
    with open(other, "w") as file:
        file.write("mounted")
    if subprocess.run(["mount", "--bind", other, path], stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("only root can mount")
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True)


def blocked_split(pattern, blocked, block, *args, old=(0, 1, 2), **options):
    """A split over its own input and old files, of which one cannot be replaced, changes nothing."""
    source = pattern.format(0)
    for number in old:
        with open(pattern.format(number), "w") as file:
            file.write(f"old {number}")
        os.chmod(pattern.format(number), 0o640 + number)
    np.save("made.npy", ARRAY)
    if source.endswith(".npy"):
        shutil.copy("made.npy", source)
    else:
        source = "made.npy"
    with block(pattern.format(blocked)):
        before = state()
        done = tslice("split", source, "--parts", "3", "-o", pattern.format("{}"), "--force", *args, **options)
        failed_well(done, 1, pattern.format(blocked), "cannot be put in place")
        assert state() == before, (pattern, blocked, set(state()) ^ set(before))
    done_well(tslice("split", source, "--parts", "3", "-o", pattern.format("{}"), "--force", *args))
    assert not [name for name in names() if name.startswith(".tslice-")], names()


def check_an_output_that_is_immutable_or_a_mount_point_undoes_all():
    formats = ("x-{}.npy", "x-{}.npz", "x-{}.csv", "x-{}.bin", "x-{}.safetensors", "x-{}.json")
    for block in (immutable, mounted):
        for blocked in (1, 2):
            for pattern in formats:
                blocked_split(pattern, blocked, block)
        blocked_split("z-{}.npz", 2, block, "--deflate")
        blocked_split("s-{}.npy", 2, block, "--fsync")
        blocked_split("n-{}.npy", 2, block, old=(0, 2))


def check_more_outputs_than_descriptors_are_undone_too():
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (70, 70))
    blocked_split("x-{}.npy", 2, immutable, preexec_fn=few)
    blocked_split("x-{}.npy", 2, mounted, old=(0, 2), preexec_fn=few)


def check_a_sticky_folder_of_another_owner():
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        raise Skip("another user is needed")
    os.chmod(".", 0o755)
    os.mkdir("shared")
    np.save("shared/x-0.npy", ARRAY)
    for number in (1, 2):
        with open(f"shared/x-{number}.npy", "w") as file:
            file.write(f"old {number}")
    os.chmod("shared", 0o1777)
    for number in (0, 1):
        os.chown(f"shared/x-{number}.npy", 65534, 65534)
    shutil.copy(harness.BIN, "tslice")
    before = state("shared")
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", os.path.abspath("tslice")]
    split = ["split", "shared/x-0.npy", "--parts", "3", "-o", "shared/x-{}.npy", "--force"]
    done = subprocess.run([*user, *split], capture_output=True, stdin=subprocess.DEVNULL, env=harness.env(), timeout=60)
    failed_well(done, 1, "x-2.npy", "cannot be put in place")
    assert state("shared") == before
    os.chown("shared/x-2.npy", 65534, 65534)
    subprocess.run([*user, *split], check=True, timeout=60)
    for number, part in enumerate(np.array_split(ARRAY, 3)):
        same(f"shared/x-{number}.npy", part)
    assert names("shared") == ["x-0.npy", "x-1.npy", "x-2.npy"]


def checkpoint():
    """A checkpoint of two shards in `in`."""
    os.mkdir("in")
    for name, file in (("a", "1.safetensors"), ("b", "2.safetensors")):
        write_safetensors(f"in/{file}", {name: ("I32", ARRAY.shape, ARRAY.tobytes())})
    with open(f"in/{INDEX}", "w") as file:
        json.dump({"metadata": {}, "weight_map": {"a": "1.safetensors", "b": "2.safetensors"}}, file)


def old_folder(path):
    os.mkdir(path)
    for name in ("1.safetensors", "2.safetensors", INDEX, "config.json"):
        with open(f"{path}/{name}", "w") as file:
            file.write(f"old {path} {name}")


def check_a_folder_of_shards_with_a_file_that_cannot_be_replaced():
    checkpoint()
    old_folder("out")
    for block in (immutable, mounted):
        for name in ("1.safetensors", "2.safetensors", INDEX):
            with block(f"out/{name}"):
                before = state()
                done = tslice(f"in/{INDEX}", "[:5]", "-t", "*", "-o", "out/", "--force")
                failed_well(done, 1, f"out/{name}", "cannot be put in place")
                assert state() == before, set(state()) ^ set(before)


def check_folders_of_shards_appear_together():
    checkpoint()
    split = ["split", f"in/{INDEX}", "-t", "*", "--parts", "3", "-o", "d{}/"]
    # the first one is new, the second holds old files, the third cannot be replaced
    for first in ("new", "empty", "old"):
        for middle in (True, False):
            if first == "empty":
                os.mkdir("d0")
            if first == "old":
                old_folder("d0")
            old_folder("d1")
            old_folder("d2")
            if middle:
                os.mkdir("d1/sub")
            was = sorted(os.listdir("."))
            with immutable("d2/2.safetensors"):
                before = state()
                failed_well(tslice(*split, "--force"), 1, "d2", "cannot be put in place")
                # an exchanged folder comes back as it was
                assert state() == before, set(state()) ^ set(before)
                assert names() == was, names()
            done_well(tslice(*split, "--force"))
            for number in range(3):
                part = ARRAY[number * 200:][:200]
                with open(f"d{number}/1.safetensors", "rb") as file:
                    assert file.read().endswith(part.tobytes())
                assert os.path.exists(f"d{number}/config.json") == (number > 0 or first == "old")
                shutil.rmtree(f"d{number}")
            assert names() == ["in"], names()


RENAMES = ("linkat", "renameat", "renameat2")


def interrupted(split, number, act, world=lambda call: None):
    """A run in which `act` is done before call `number` of those that give names, which then fails."""
    count = 0

    def decide(call):
        nonlocal count
        answer = world(call)
        if answer is not None or call.name not in RENAMES:
            return answer
        count += 1
        if count == number:
            act()
            return errno.EIO
        return None

    stderr = os.memfd_create("stderr")
    run = supervise.Run([harness.BIN, *split], decide, stderr=stderr).go()
    run.err = os.pread(stderr, 1 << 16, 0).decode()
    os.close(stderr)
    return run, count


def check_what_a_rival_puts_there_meanwhile_stays():
    if reason := supervise.unavailable():
        raise Skip(reason)

    def replace():
        with open("rival", "w") as file:
            file.write("rival")
        os.rename("rival", "x-0.npy")

    def remove():
        os.unlink("x-0.npy")

    lacks = lambda call: errno.EINVAL if call.name == "renameat2" else None
    for world in (lambda call: None, lacks):
        for old in ((), (0, 1, 2)):
            for act in (replace, remove):
                for name in names():
                    os.unlink(name)
                np.save("a.npy", ARRAY)
                split = ["split", "a.npy", "--parts", "3", "-o", "x-{}.npy", "--force"]
                for number in old:
                    with open(f"x-{number}.npy", "w") as file:
                        file.write(f"old {number}")
                # the name of the last one is the last that is given
                _, count = interrupted(split, 0, None, world)
                for number in range(3):
                    os.unlink(f"x-{number}.npy")
                for number in old:
                    with open(f"x-{number}.npy", "w") as file:
                        file.write(f"old {number}")
                run, _ = interrupted(split, count, act, world)
                assert run.status == 1 and "x-2.npy: cannot be put in place" in run.err, (run.status, run.err)
                left = [name for name in names() if name.startswith(".tslice-")]
                found = {name: open(name).read() for name in names() if name not in ("a.npy", *left)}
                expected = {f"x-{number}.npy": f"old {number}" for number in old}
                if act is replace:
                    expected["x-0.npy"] = "rival"
                assert found == expected, (old, act, found)
                # an old file that lost its name to the rival is not lost, and the message says where it is
                assert len(left) == (1 if old and act is replace else 0), left
                for name in left:
                    assert open(name).read() == "old 0" and name in run.err, run.err


def main():
    parser = harness.check_parser("outputs that appear together, or not at all")
    options = parser.parse_args()
    harness.begin(options)
    return harness.run_checks(globals(), "several-outputs", options)


if __name__ == "__main__":
    sys.exit(main())
