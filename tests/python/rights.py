#!/usr/bin/env python3
"""Modes, access lists, extended attributes, owners and groups of what is replaced, beside what `cp` leaves; a real
overlayfs; a file system that is nearly full; kills while rows are appended.

    python tests/python/rights.py --bin target/debug/tslice

Needs root, for other users and for mounts in a namespace of its own. The last line is `N passed, M failed`.
"""

import itertools
import os
import random
import shutil
import signal
import stat
import struct
import subprocess
import sys
import time

import numpy as np

import harness
from harness import MIB, Skip

USER, MATE, GROUP, TEAM = 4001, 4002, 4003, 4004
ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def acl(owner, named, group, mask, others):
    """The bytes of an access list with an entry for MATE."""
    entries = [(1, owner, -1), (2, named, MATE), (4, group, -1), (16, mask, -1), (32, others, -1)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)


def rights(path):
    found = os.lstat(path)
    names = [name for name in os.listxattr(path) if not name.startswith("security.")]
    return stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, {name: os.getxattr(path, name) for name in names}


def as_user(user):
    """For Popen: root, or a user who is in the team."""
    def change():
        os.umask(0o022)
        if user:
            os.setgroups([TEAM])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
    return change


def run(user, *words):
    done = subprocess.run([str(word) for word in words], env=harness.env(), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=as_user(user))
    return done


def dress(path, mode, owner, group, attributes):
    os.chown(path, owner, group)
    os.chmod(path, mode)
    for name, value in attributes.items():
        os.setxattr(path, name, value)
    if stat.S_IMODE(os.stat(path).st_mode) & 0o7000 != mode & 0o7000:
        os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) & 0o777 | mode & 0o7000)


def need_root():
    if os.geteuid() != 0:
        raise Skip("needs root")
    os.chmod(".", 0o777)


def files():
    """The files that the kinds of output are made of."""
    x = np.arange(60, dtype="f4").reshape(6, 10)
    np.save("x.npy", x)
    np.savez("x.npz", a=x, b=x + 1)
    harness.done_well(harness.tslice("x.npz", "-o", "x.safetensors"))
    for name in os.listdir("."):
        os.chmod(name, 0o644)


MODES = [0o600, 0o640, 0o644, 0o660, 0o666, 0o755, 0o700, 0o604, 0o444, 0o4755, 0o2755, 0o2664, 0o6711]
LISTS = [{}, {ACCESS: acl(6, 6, 4, 6, 0)}, {ACCESS: acl(7, 4, 6, 4, 4), "user.note": b"kept"}, {"user.note": b"kept"}]
OWNERS = [(0, 0), (USER, USER), (USER, TEAM), (MATE, TEAM), (MATE, GROUP)]
KINDS = {
    "npy": (["x.npy", "[1:]"], "out.npy"), "npz": (["x.npz"], "out.npz"), "text": (["x.npy"], "out.csv"),
    "safetensors": (["x.npz"], "out.safetensors"), "merge": (["merge", "x.npz", "x.npy"], "out.npz"),
    "concat": (["concat", "x.npy", "x.npy"], "out.npy"), "split": (["split", "x.npy", "--parts", "2"], "out_{}.npy"),
    "stack": (["stack", "x.npy", "x.npy"], "out.npy"),
}


def expected(of_cp, old, user, is_mine):
    """What a file has that takes the place of another one, where `cp` left `of_cp`."""
    mode, _, group, attributes = of_cp
    if not user or is_mine:
        return of_cp
    # the owner cannot be given away; the group can be, to one's own, and that of the folder is there from the start
    kept = group in (TEAM, user, GROUP)
    if not kept:
        found = attributes.get(ACCESS)
        mode = mode & 0o707 | (mode & 7) << 3 if found is None else mode
    return mode & ~0o6000, user, group if kept else GROUP, attributes


def one_file(kind, mode, attributes, owner, user, default):
    words, name = KINDS[kind]
    folder = "place"
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    os.chmod(folder, 0o2777)
    os.chown(folder, 0, GROUP)
    if default:
        os.setxattr(folder, DEFAULT, acl(7, 7, 7, 7, 5))
    outs = [name.replace("{}", str(number)) for number in range(2)] if "{}" in name else [name]
    for out in outs:
        for path in (f"{folder}/{out}", f"{folder}/cp"):
            with open(path, "w") as file:
                file.write("old")
            if default:
                os.removexattr(path, ACCESS)
            dress(path, mode, *owner, attributes)
    copied = run(user, "cp", "x.npy", f"{folder}/cp")
    of_cp = rights(f"{folder}/cp")
    if copied.returncode != 0 and user == owner[0]:
        # it may not write into the file, and tslice puts another one in its place
        of_cp = (mode & 0o777 if mode & 0o111 else mode, *of_cp[1:])
    done = run(user, harness.BIN, *words, "-f", "-o", f"{folder}/{name}")
    assert done.returncode == 0, harness.text(done)
    for out in outs:
        found, wanted = rights(f"{folder}/{out}"), expected(of_cp, mode, user, owner[0] == user)
        if user and owner[0] != user:
            # by others a file with an access list is judged by its mode alone, where the group goes
            found, wanted = (found[0] & 0o707, *found[1:3]), (wanted[0] & 0o707, *wanted[1:3])
        # what a program may do as its owner or group goes with the first byte that is written
        found, wanted = (found[0] & 0o1777, *found[1:]), (wanted[0] & 0o1777, *wanted[1:])
        assert found == wanted, f"{kind} {mode:o} {sorted(attributes)} {owner} by {user}, default {default}: " \
                                f"{found} where cp and the rules leave {wanted}"


def check_files_as_cp_leaves_them():
    need_root()
    files()
    cases = list(itertools.product(KINDS, MODES, LISTS, OWNERS, (0, USER), (False, True)))
    random.Random(7).shuffle(cases)
    # each kind with each mode, list, owner, user at least once
    seen, count = set(), 0
    for case in cases:
        kind, mode, attributes, owner, user, default = case
        marks = {(kind, mode), (kind, str(attributes), owner), (mode, str(attributes), user), (owner, user, default, kind)}
        if not marks <= seen:
            seen |= marks
            one_file(*case)
            count += 1
    return f"{count} files and sets"


def check_bits_that_lend_rights_are_kept_by_root_alone():
    need_root()
    files()
    for mode, owner, user in itertools.product((0o4755, 0o2755, 0o6755), OWNERS, (0, USER)):
        for path in ("out.npy", "cp"):
            shutil.rmtree(path, ignore_errors=True)
            open(path, "w").close()
            dress(path, mode, *owner, {})
        run(user, "cp", "x.npy", "cp")
        done = run(user, harness.BIN, "x.npy", "-f", "-o", "out.npy")
        assert done.returncode == 0, harness.text(done)
        if user and owner[0] != user:
            assert rights("out.npy")[0] & 0o6000 == 0, f"{mode:o} of {owner} by {user}: {rights('out.npy')}"
        else:
            assert rights("out.npy") == rights("cp"), f"{mode:o} {owner} by {user}: {rights('out.npy')} {rights('cp')}"
        os.remove("out.npy")


def check_in_place_nothing_changes():
    need_root()
    files()
    for mode, attributes, owner in itertools.product((0o600, 0o664, 0o755), LISTS, OWNERS):
        shutil.copy("x.npy", "t.npy")
        dress("t.npy", mode, *owner, attributes)
        before = rights("t.npy")
        done = run(0, harness.BIN, "assign", "t.npy", "[0]", "--fill", "5", "--in-place")
        assert done.returncode == 0, harness.text(done)
        assert rights("t.npy") == before, f"{before} became {rights('t.npy')}"
        os.remove("t.npy")


def tree(folder):
    return {os.path.relpath(os.path.join(at, name), folder): rights(os.path.join(at, name))
            for at, folders, names in os.walk(folder) for name in (*folders, *names, ".")
            if name != "." or at == folder}


def check_folders_as_cp_leaves_them():
    """`.zarr` and folders of shards, whose files have the same names: the rights of each are those that it had."""
    need_root()
    files()
    outputs = {"o.zarr": ["x.npy", "--chunks", "3,5"], "shards/": ["x.npz", "--shard-size", "240"]}
    if not harness.tslice("x.npy", "-o", "probe.zarr").returncode == 0:
        outputs.pop("o.zarr")
    count = 0
    for (out, words), mode, attributes, owner, user in itertools.product(
            outputs.items(), (0o700, 0o750, 0o2775, 0o1777, 0o755), LISTS, OWNERS, (0, USER)):
        if user and owner[0] != user:
            continue
        shutil.rmtree(out, ignore_errors=True)
        harness.done_well(harness.tslice(*words, "-o", out))
        for at, folders, names in os.walk(out, topdown=False):
            for name in names:
                dress(os.path.join(at, name), mode & 0o666 | 0o600, *owner, attributes)
            lists = {ACCESS: acl(7, 5, 5, 7, 0), DEFAULT: acl(7, 5, 5, 5, 0)} if ACCESS in attributes else {}
            dress(at, mode, *owner, dict(attributes, **lists))
        before = tree(out)
        done = run(user, harness.BIN, *words, "-f", "-o", out)
        assert done.returncode == 0, harness.text(done)
        after = tree(out)
        differ = {name: (before.get(name), after.get(name)) for name in before | after
                  if before.get(name) != after.get(name)}
        assert not differ, f"{out} {mode:o} {sorted(attributes)} {owner} by {user}: {differ}"
        count += 1
    return f"{count} folders"


def check_new_names_take_the_mode_of_old_ones():
    need_root()
    files()
    harness.done_well(harness.tslice("x.npz", "-o", "m/", "--shard-size", "240"))
    for name in os.listdir("m"):
        dress(f"m/{name}", 0o600, USER, TEAM, {"user.note": b"old"})
    harness.done_well(harness.tslice("x.npz", "-o", "m/", "-f", "--shard-size", "1000"))
    for name in os.listdir("m"):
        mode, owner, group, attributes = rights(f"m/{name}")
        assert (mode, owner, group) == (0o600, USER, TEAM), f"{name}: {mode:o} {owner} {group}"
        assert bool(attributes) == name.endswith(".json"), f"{name}: {attributes}"
    if harness.tslice("x.npy", "-o", "z.zarr", "--chunks", "6,10").returncode == 0:
        for at, _, names in os.walk("z.zarr"):
            for name in names:
                os.chmod(os.path.join(at, name), 0o640)
        os.chmod("z.zarr", 0o700)
        harness.done_well(harness.tslice("x.npy", "-o", "z.zarr", "-f", "--chunks", "2,2"))
        assert rights("z.zarr")[0] == 0o700
        modes = {found[0] for name, found in tree("z.zarr").items() if os.path.isfile(f"z.zarr/{name}")}
        assert modes == {0o640}, modes


# ---------------------------------------------------------------- file systems

OVERLAY = """
import os, subprocess, sys, json
tslice, x = sys.argv[1:]
subprocess.run("mkdir -p base/l base/u base/w m && mount -t tmpfs t base && mkdir -p base/l base/u base/w", shell=True,
               check=True)
os.chdir("base/l")
def run(*words):
    done = subprocess.run([tslice, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    print(words, done.returncode, done.stderr.decode()[:300])
    assert done.returncode == 0
def make(*more):
    run(x, "-o", "o.npy", *more)
    run(x, "-o", "s/", "--shard-size", "100", *more)
    if zarr:
        run(x, "-o", "o.zarr", "--chunks", "3,5", *more)
zarr = subprocess.run([tslice, x, "-o", "probe.zarr"], stderr=subprocess.DEVNULL).returncode == 0
make()
open("s/other.txt", "w").write("kept")
for at, folders, names in os.walk("."):
    for name in folders:
        os.chmod(os.path.join(at, name), 0o750)
    for name in names:
        os.chmod(os.path.join(at, name), 0o640)
os.chdir("../..")
subprocess.run("mount -t overlay o -o lowerdir=base/l,upperdir=base/u,workdir=base/w m", shell=True, check=True)
os.chdir("m")
def modes():
    return {os.path.join(at, name): os.stat(os.path.join(at, name)).st_mode & 0o7777
            for at, folders, names in os.walk(".") for name in (*folders, *names)}
before = modes()
make("-f")
assert modes() == before, (before, modes())
assert open("s/other.txt").read() == "kept"
if zarr:
    # a lower folder again: other chunks
    run(x, "[::-1]", "-o", "o.zarr", "-f", "--chunks", "2,2")
    run("diff", "o.zarr", "o.zarr")
assert not [name for name in os.listdir(".") if name.startswith(".tslice-")], os.listdir(".")
subprocess.run([tslice, "diff", x, "o.npy"], check=True)
"""


def in_namespace(script, *words):
    """Runs a script of Python that may mount."""
    done = subprocess.run(["unshare", "-m", sys.executable, "-c", script, harness.BIN, *words],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=harness.env())
    if b"mount: " in done.stderr and b"permission denied" in done.stderr:
        raise Skip("mounting is not allowed here")
    assert done.returncode == 0, f"{done.stdout.decode()[-1500:]} {done.stderr.decode()[-1500:]}"


def check_files_and_folders_of_a_lower_layer_of_overlayfs():
    need_root()
    files()
    in_namespace(OVERLAY, os.path.abspath("x.npy"))


FULL = """
import os, subprocess, sys, threading, time
tslice, x = sys.argv[1:]
subprocess.run("mkdir -p small && mount -t tmpfs -o size=8m t small", shell=True, check=True)
lowest = [1 << 40]
def watch():
    while not done:
        free = os.statvfs("small")
        lowest[0] = min(lowest[0], free.f_bavail * free.f_frsize)
done = False
thread = threading.Thread(target=watch)
thread.start()
run = subprocess.run([tslice, x, "-o", "small/o.npy"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
done = True
thread.join()
assert run.returncode == 1 and b"No space left" in run.stderr, run.stderr
assert os.listdir("small") == []
assert lowest[0] > 7 << 20, f"{lowest[0]} bytes were free at the least"
"""


def check_an_output_that_does_not_fit_fills_nothing():
    need_root()
    np.save("big.npy", np.ones(12 * MIB, "u1"))
    in_namespace(FULL, os.path.abspath("big.npy"))


def check_holes_stay_holes():
    path = "sparse.npy"
    array = np.lib.format.open_memmap(path, mode="w+", dtype="u1", shape=(64 * MIB,))
    array[12345] = 7
    array[20_000_000:20_100_000] = 3
    array.flush()
    subprocess.run(["cp", "--sparse=always", path, "cp.npy"], check=True)
    blocks = lambda path: os.stat(path).st_blocks
    harness.done_well(harness.tslice("sparse.npy", "-o", "o.npy"))
    assert open("o.npy", "rb").read() == open(path, "rb").read()
    assert blocks("o.npy") <= blocks("cp.npy") + 16, f"{blocks('o.npy')} blocks, {blocks('cp.npy')} by cp"
    for words in (["[1000:]"], ["[::2]"], ["--cast", "int16"]):
        harness.done_well(harness.tslice("sparse.npy", *words, "-o", "s.npy", "-f"))
        assert blocks("s.npy") < 3000, f"{words}: {blocks('s.npy')} blocks"
    harness.same("s.npy", array.astype("i2"))


# ---------------------------------------------------------------- rows that are appended


def check_no_kill_while_appending_loses_a_row():
    np.save("rows.npy", np.full((20_000, 64), 3.0))
    rows = 20_000
    counts = {}
    for kill in range(KILLS):
        number = (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)[kill % 3]
        np.save("all.npy", np.zeros((10, 64)))
        process = harness.start("concat", "--append-to", "all.npy", "rows.npy")
        time.sleep(random.Random(kill).random() * SPAN)
        process.send_signal(number)
        process.communicate()
        counts[process.returncode] = counts.get(process.returncode, 0) + 1
        found = np.load("all.npy")
        assert len(found) in (10, 10 + rows), f"{len(found)} rows after {number}"
        assert not found[:10].any() and (found[10:] == 3).all(), "rows are lost"
        more = [] if number != signal.SIGKILL else ["--force"]
        harness.done_well(harness.tslice("concat", "--append-to", "all.npy", "rows.npy", *more))
        assert len(np.load("all.npy")) == len(found) + rows
    return f"{KILLS} kills, ended {counts}"


if __name__ == "__main__":
    parser = harness.check_parser(__doc__)
    parser.add_argument("--kills", type=int, default=60, help="how often appending is killed")
    parser.add_argument("--span", type=float, default=0.25, help="in seconds, within which it is")
    options = parser.parse_args()
    KILLS, SPAN = options.kills, options.span
    harness.begin(options)
    sys.exit(harness.run_checks(globals(), "rights", options))
