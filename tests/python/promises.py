#!/usr/bin/env python3
"""Black-box checks of the program's guarantees: complete outputs or none, exit statuses, signals, memory.

    python tests/python/promises.py --bin target/debug/tslice

Each function named `check_...` is one promise; it gets an empty folder and fails by raising. A
check that this machine cannot make (as root, without /dev/full, ...) is skipped with its reason.
Needs Linux, Python 3.9 and NumPy.
"""

import json
import os
import random
import re
import resource
import shutil
import signal
import stat
import struct
import subprocess
import sys
import threading
import time

import numpy as np

import harness
import supervise
from formats import big, cube, write_safetensors
from harness import (MIB, TIMEOUT, Skip, done_well, failed_well, names, peak_rss_anon, same, shell, start, text,
                     tslice)
from scenes import little_memory, no_room

HERE = os.path.dirname(os.path.abspath(__file__))
BAD = os.path.join(HERE, os.pardir, os.pardir, "fixtures", "bad")
KILLS = 20
# the signals that end runs, whether all folders are replaced file by file, and whether a file that is being written has a
# name also without --force: otherwise on other systems
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
FILE_BY_FILE = HAS_NAME = False


def two_tensors(path="m.safetensors"):
    f = np.arange(12, dtype="<f4").reshape(3, 4)
    i = np.arange(6, dtype="<i8")
    write_safetensors(path, {"weight": ("F32", f.shape, f.tobytes()), "steps": ("I64", i.shape, i.tobytes())},
                      {"format": "pt"})
    return f, i


def not_root():
    if os.geteuid() == 0:
        raise Skip("runs as root, whom permissions do not stop")


# ---------------------------------------------------------------- the command line


def check_no_arguments_print_the_usage():
    done = tslice()
    assert done.returncode == 2 and not done.stdout, text(done)
    assert b"usage" in done.stderr.lower() and b"tslice" in done.stderr, text(done)


def check_help_and_version():
    for flag in ("-h", "--help"):
        done = done_well(tslice(flag))
        assert b"tslice" in done.stdout and b"--output" in done.stdout, text(done)
    for flag in ("-V", "--version"):
        done = done_well(tslice(flag))
        assert re.match(rb"tslice \d+\.\d+\.\d+", done.stdout), text(done)
    for command in ("info", "explain", "completions"):
        assert done_well(tslice(command, "--help")).stdout


def check_the_first_example():
    array = cube(shape=(3, 5, 2, 4, 3))
    done_well(tslice("a.npy", "[1, 2:4, None, ..., :-3:-1, :]", "-o", "out.npy"))
    same("out.npy", array[1, 2:4, None, ..., :-3:-1, :])


def check_strided_slice_flags_of_the_text():
    array = cube(shape=(3, 5, 2, 4, 3))
    done_well(tslice("a.npy", "--begin", "1,2,0,0,0,0", "--end", "2,4,0,0,-3,0", "--strides", "1,1,1,1,-1,1",
                     "--begin-mask", "48", "--end-mask", "1<<5", "--ellipsis-mask", "0x8",
                     "--new-axis-mask", "0b100", "--shrink-axis-mask", "1", "-o", "out.npy"))
    same("out.npy", array[1, 2:4, None, ..., :-3:-1, :])


def check_strided_slice_flag_errors():
    cube()
    failed_well(tslice("a.npy", "--begin", "1,2", "--end", "3", "-o", "o.npy"), 2, "2", "1")
    failed_well(tslice("a.npy", "--begin", "1", "-o", "o.npy"), 2, "--end")
    failed_well(tslice("a.npy", "--end", "1", "-o", "o.npy"), 2, "--begin")
    failed_well(tslice("a.npy", "[1]", "--begin", "1", "--end", "2", "-o", "o.npy"), 2)
    failed_well(tslice("a.npy", "--begin", "1", "--end", "2", "--begin-mask=-1", "-o", "o.npy"), 2)
    failed_well(tslice("a.npy", "--begin", "1", "--end", "2", "--begin-mask", "x", "-o", "o.npy"), 2)
    failed_well(tslice("a.npy", "--begin", "1", "--end", "2", "--strides", "0", "-o", "o.npy"), 2)
    failed_well(tslice("a.npy", "--begin", "1,1", "--end", "2,2", "--ellipsis-mask", "9", "-o", "o.npy"), 2)
    failed_well(tslice("a.npy", "--begin", "9", "--end", "2", "--shrink-axis-mask", "1", "-o", "o.npy"), 1)
    failed_well(tslice("a.npy", "--begin", "1", "--end", "2", "--strides=-1", "--shrink-axis-mask", "1",
                       "-o", "o.npy"), 2)
    assert names() == ["a.npy"], names()


def check_empty_flag_lists_select_everything():
    array = cube()
    done_well(tslice("a.npy", "--begin", "", "--end", "", "-o", "o.npy"))
    same("o.npy", array)


def check_an_index_may_begin_like_a_flag():
    array = cube()
    for i, index in enumerate(["-1", ":-3:-1", "..., 0", "-2:", "-1, -1", "-0x1", ":", "-1:-3:-1, ..."]):
        done_well(tslice("a.npy", index, "-o", f"{i}.npy"))
        same(f"{i}.npy", eval(f"array[{index}]"))
        done_well(tslice("-o", f"{i}b.npy", "a.npy", index))
        same(f"{i}b.npy", eval(f"array[{index}]"))
        done_well(tslice("-o", f"{i}c.npy", "--", "a.npy", index))
        same(f"{i}c.npy", eval(f"array[{index}]"))


def check_a_typo_in_a_flag_gets_a_suggestion():
    cube()
    done = tslice("a.npy", "[0]", "--outptu", "o.npy")
    failed_well(done, 2, "--outptu", "--output")
    failed_well(tslice("--outptu", "o.npy", "a.npy", "[0]"), 2, "--outptu", "--output")
    failed_well(tslice("a.npy", "[0]", "-x"), 2, "-x")
    assert names() == ["a.npy"], names()


def check_exit_statuses():
    cube()
    failed_well(tslice("a.npy", "[0", "-o", "o.npy"), 2)
    failed_well(tslice("a.npy", "[::0]", "-o", "o.npy"), 2, "zero")
    failed_well(tslice("a.npy", "[..., ...]", "-o", "o.npy"), 2)
    failed_well(tslice("a.npy", "[1, 9]", "-o", "o.npy"), 1,
                "index 9 is out of bounds for axis 1 with size 6", "^")
    failed_well(tslice("a.npy", "[0, 0, 0, 0]", "-o", "o.npy"), 1, "too many indices")
    failed_well(tslice("missing.npy", "[0]", "-o", "o.npy"), 1, "missing.npy")
    failed_well(tslice("a.npy", "[0]", "-o", "o.npy", "extra"), 2)
    failed_well(tslice("a.npy", "[0]", "-o", "no/such/folder/o.npy"), 1, "no/such/folder")
    os.mkdir("empty")
    failed_well(tslice("empty", "[0]", "-o", "o.npy"), 1, "empty: is a directory")
    os.rmdir("empty")
    failed_well(tslice("a.npy", "[0]", "-j", "x", "-o", "o.npy"), 2)
    failed_well(tslice("a.npy", "[0]", "--io", "magic", "-o", "o.npy"), 2)
    failed_well(tslice("a.npy", "[0]", "--to", "npx", "-o", "o.npy"), 2)
    failed_well(tslice("a.npy", "[[[0, 1], [1]]]", "-o", "o.npy"), 2)
    assert names() == ["a.npy"], names()


def check_an_error_shows_a_caret_under_the_item():
    cube()
    message = failed_well(tslice("a.npy", "[1, 9, 0]", "-o", "o.npy"), 1)
    lines = message.splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip().startswith("^"))
    assert "[1, 9, 0]" in lines[at - 1], message
    assert lines[at - 1][lines[at].index("^")] == "9", message


def check_the_format_of_an_output_comes_from_its_name():
    array = cube()
    done = tslice("a.npy", "[0]", "-o", "o.xyz")
    assert done.returncode in (1, 2), text(done)
    failed_well(done, done.returncode, "--to")
    done = tslice("a.npy", "[0]", "-o", "o")
    failed_well(done, done.returncode, "--to")
    assert done.returncode in (1, 2) and names() == ["a.npy"], names()
    done_well(tslice("a.npy", "[0]", "-o", "o.xyz", "--to", "npy"))
    same("o.xyz", array[0])


def check_the_format_of_an_input_comes_from_its_bytes():
    array = cube("a.safetensors.npy")
    os.rename("a.safetensors.npy", "a.safetensors")
    done_well(tslice("a.safetensors", "[0]", "-o", "o.npy"))
    same("o.npy", array[0])


def check_a_file_named_like_a_subcommand():
    array = cube("gather.npy")
    os.rename("gather.npy", "info")
    done_well(tslice("./info", "[0]", "-o", "o.npy"))
    same("o.npy", array[0])


def check_a_terminal_gets_no_binary():
    cube()
    two_tensors()
    leader, follower = os.openpty()
    try:
        for args in (["a.npy", "[0]"], ["m.safetensors", "--to", "safetensors"], ["a.npy", "--to", "npz"],
                     ["gather", "a.npy", "--indices", "[[0]]"], ["concat", "a.npy", "a.npy"],
                     ["stack", "a.npy", "a.npy"], ["assign", "a.npy", "[0]", "--fill", "1", "-o", "-"],
                     ["scatter", "a.npy", "--indices", "[[0]]", "--values", "v.npy", "-o", "-"],
                     ["view", "a.npy", "-o", "-"]):
            np.save("v.npy", np.load("a.npy")[:1])
            done = tslice(*args, stdout=follower)
            assert done.returncode in (1, 2) and done.stderr.startswith(b"tslice: "), text(done)
            assert b"-o" in done.stderr and b"tslice view" in done.stderr, text(done)
    finally:
        os.close(follower)
        os.close(leader)


def check_the_bar_shows_a_kept_pipe_for_itself():
    # the last row comes first: nothing can be written before all is there
    array = np.arange(3_000_000, dtype="<i4").reshape(1000, 3000)
    np.save("a.npy", array)
    with open("a.npy", "rb") as file:
        data = file.read()
    for command in (["-", "[::-1]"], ["gather", "-", "--axis", "0", "--negative", "--indices", "[-1]"]):
        leader, follower = os.openpty()
        try:
            run = start(*command, "-f", "-o", "o.npy", stdin=subprocess.PIPE, stderr=follower)
            run.stdin.write(data[:1_000_000])
            run.stdin.flush()
            time.sleep(1.6)
            shown = os.read(leader, 1 << 16).decode(errors="replace")
            run.stdin.write(data[1_000_000:])
            run.stdin.close()
            assert run.wait() == 0
        finally:
            os.close(follower)
            os.close(leader)
        # it counts what was read of the input, not what was written
        assert "reading" in shown and " of 12.00 MB" in shown, repr(shown)
        assert " 0 B of" not in shown, repr(shown)
    same("o.npy", array[[-1]])


def check_dry_run_writes_nothing():
    cube()
    for where in (["-o", "o.npy"], []):
        for flag in ("-n", "--dry-run"):
            done = done_well(tslice("a.npy", "[1:3, 0]", flag, *where))
            for word in (b"(2, 7)", b"int32", b"56", b"npy"):
                assert word in done.stdout, f"no {word!r}: {text(done)}"
    failed_well(tslice("a.npy", "[9]", "-n", "-o", "o.npy"), 1, "out of bounds")
    open("there.npy", "w").close()
    failed_well(tslice("a.npy", "[0]", "-n", "-o", "there.npy"), 1, "there.npy")
    assert names() == ["a.npy", "there.npy"], names()


def check_info():
    cube()
    two_tensors()
    done = done_well(tslice("info", "a.npy"))
    for word in (b"(5, 6, 7)", b"int32"):
        assert word in done.stdout, text(done)
    done = done_well(tslice("info", "a.npy", "m.safetensors"))
    for word in (b"a.npy", b"weight", b"steps", b"m.safetensors"):
        assert word in done.stdout, text(done)
    done = tslice("info", "a.npy", "missing.npy")
    assert done.returncode == 1 and b"missing.npy" in done.stderr, text(done)
    assert tslice("info").returncode == 2
    with open("a.npy", "rb") as source:
        assert b"(5, 6, 7)" in done_well(tslice("info", "-", stdin=source)).stdout


def check_explain():
    cube(shape=(3, 5, 2, 4, 3))
    index = "[1, 2:4, None, ..., :-3:-1, :]"
    for args in (["a.npy", index], [index, "--shape", "3,5,2,4,3"]):
        done = done_well(tslice("explain", *args))
        assert b"(2, 1, 2, 2, 3)" in done.stdout, text(done)
        for word in (b"begin", b"strides", b"ellipsis"):
            assert word in done.stdout, text(done)
    done = done_well(tslice("explain", "--shape", "5,6", "--begin", "1,0", "--end", "2,4",
                            "--shrink-axis-mask", "1"))
    assert b"(4,)" in done.stdout, text(done)
    failed_well(tslice("explain", "[9]", "--shape", "5,6"), 1, "out of bounds")
    failed_well(tslice("explain", "[9", "--shape", "5,6"), 2)


def check_completions():
    for name in ("bash", "zsh", "fish"):
        assert b"tslice" in done_well(tslice("completions", name)).stdout
    failed_well(tslice("completions", "nonesuch"), 2)


def check_tensor_names():
    f, i = two_tensors()
    done = tslice("m.safetensors", "[0]", "-o", "o.npy")
    assert done.returncode in (1, 2), text(done)
    failed_well(done, done.returncode, "weight", "steps")
    done = tslice("m.safetensors", "[0]", "-t", "wieght", "-o", "o.npy")
    assert done.returncode in (1, 2), text(done)
    failed_well(done, done.returncode, "wieght", "weight", "steps")
    done = tslice("m.safetensors", "-t", "weight", "-t", "steps", "-o", "o.npy")
    assert done.returncode in (1, 2), text(done)
    failed_well(done, done.returncode)
    assert names() == ["m.safetensors"], names()
    done_well(tslice("m.safetensors", "[:, 1]", "-t", "weight", "-o", "w.npy"))
    same("w.npy", f[:, 1])
    done_well(tslice("m.safetensors", "[::-1]", "-t", "steps", "-o", "s.npy"))
    same("s.npy", i[::-1])


def check_globs_of_tensor_names():
    if b"--keep-rest" not in tslice("--help").stdout:
        raise Skip("the binary takes one tensor at a time")
    f, i = two_tensors()
    done_well(tslice("m.safetensors", "[::-1]", "-t", "st*", "-o", "s.npy"))
    same("s.npy", i[::-1])


def check_a_tensor_keeps_its_name():
    cube("cube.npy")
    done_well(tslice("cube.npy", "[0]", "-o", "a.safetensors"))
    assert b"cube" in tslice("info", "a.safetensors").stdout
    done_well(tslice("cube.npy", "[0]", "--name", "other", "-o", "b.safetensors"))
    assert b"other" in tslice("info", "b.safetensors").stdout
    with open("cube.npy", "rb") as source:
        done_well(tslice("-", "[0]", "-o", "c.safetensors", stdin=source))
    assert b"tensor" in tslice("info", "c.safetensors").stdout


def check_contradictions_are_errors():
    cube()
    two_tensors()
    cases = [["a.npy", "[0]", "-t", "x", "-o", "o.npy"],
             ["a.npy", "[0]", "--order", "F", "-o", "o.safetensors"],
             ["a.npy", "[0]", "--name", "x", "-o", "o.npy"],
             ["a.npy", "[0]", "--strides", "2", "-o", "o.npy"],
             ["a.npy", "[0]", "--shrink-axis-mask", "1", "-o", "o.npy"],
             ["m.safetensors", "[0]", "-t", "weight", "--keep-rest", "-o", "o.npy"]]
    for args in cases:
        done = tslice(*args)
        assert done.returncode in (1, 2), f"{args}: {text(done)}"
        failed_well(done, done.returncode)
    assert names() == ["a.npy", "m.safetensors"], names()


# ---------------------------------------------------------------- whole or not at all


def check_an_existing_output_is_refused():
    array = cube()
    with open("o.npy", "w") as file:
        file.write("precious")
    failed_well(tslice("a.npy", "[0]", "-o", "o.npy"), 1, "o.npy", "--force")
    assert open("o.npy").read() == "precious" and names() == ["a.npy", "o.npy"]
    for flag in ("-f", "--force"):
        done_well(tslice("a.npy", "[0]", "-o", "o.npy", flag))
        same("o.npy", array[0])
    done_well(tslice("a.npy", "[1]", "-o", "new.npy", "--force", "--fsync"))
    same("new.npy", array[1])
    assert names() == ["a.npy", "new.npy", "o.npy"], names()


def check_the_output_may_be_the_input():
    array = cube(shape=(700, 30, 40))
    failed_well(tslice("a.npy", "[::-1]", "-o", "a.npy"), 1)
    same("a.npy", array)
    for io in ("mmap", "read"):
        done_well(tslice("a.npy", "[::-1]", "-o", "a.npy", "--force", "--io", io))
        array = array[::-1]
        same("a.npy", array)
    assert names() == ["a.npy"], names()


def check_an_error_leaves_what_stood_there():
    cube()
    with open("o.npy", "w") as file:
        file.write("precious")
    failed_well(tslice("a.npy", "[9]", "-o", "o.npy", "--force"), 1)
    with open("a.npy", "r+b") as file:
        file.truncate(500)
    failed_well(tslice("a.npy", "[0]", "-o", "o.npy", "--force"), 1, "a.npy")
    assert open("o.npy").read() == "precious" and names() == ["a.npy", "o.npy"]


def check_symbolic_links():
    array = cube()
    os.mkdir("far")
    os.symlink("a.npy", "in.npy")
    os.symlink("far/real.npy", "out.npy")
    with open("far/real.npy", "w") as file:
        file.write("precious")
    failed_well(tslice("in.npy", "[0]", "-o", "out.npy"), 1)
    done_well(tslice("in.npy", "[0]", "-o", "out.npy", "--force"))
    assert os.path.islink("out.npy"), "--force replaced the link in place of the file it points to"
    same("far/real.npy", array[0])
    assert names("far") == ["real.npy"], names("far")


def check_modes_and_umask():
    cube()
    before = os.umask(0o027)
    try:
        done_well(tslice("a.npy", "[0]", "-o", "o.npy"))
        assert stat.S_IMODE(os.stat("o.npy").st_mode) == 0o640, oct(os.stat("o.npy").st_mode)
        os.umask(0o022)
        done_well(tslice("a.npy", "[0]", "-o", "p.npy"))
        assert stat.S_IMODE(os.stat("p.npy").st_mode) == 0o644, oct(os.stat("p.npy").st_mode)
        os.chmod("p.npy", 0o600)
        done_well(tslice("a.npy", "[1]", "-o", "p.npy", "--force"))
        assert stat.S_IMODE(os.stat("p.npy").st_mode) == 0o600, oct(os.stat("p.npy").st_mode)
    finally:
        os.umask(before)


def check_outputs_that_are_no_regular_files():
    array = cube()
    os.mkfifo("pipe.npy")
    got = []
    reader = threading.Thread(target=lambda: got.append(open("pipe.npy", "rb").read()), daemon=True)
    reader.start()
    done = tslice("a.npy", "[0]", "-o", "pipe.npy", "--force")
    assert done.returncode == 0, text(done)
    reader.join(10)
    with open("o.npy", "wb") as file:
        file.write(got[0])
    same("o.npy", array[0])
    assert stat.S_ISFIFO(os.stat("pipe.npy").st_mode), "the FIFO was replaced"
    done_well(tslice("a.npy", "[0]", "-o", "/dev/null", "--to", "npy", "--force"))
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode), "/dev/null was replaced"
    assert names() == ["a.npy", "o.npy", "pipe.npy"], names()


def check_dev_stdout():
    array = cube()
    done = shell('"$tslice" a.npy "[0]" -o /dev/stdout --to npy | cat > o.npy; exit "${PIPESTATUS[0]}"')
    assert done.returncode == 0, text(done)
    same("o.npy", array[0])
    done = shell('"$tslice" a.npy "[1]" -o - > p.npy')
    assert done.returncode == 0, text(done)
    same("p.npy", array[1])


def check_appending_to_a_file():
    array = cube(shape=(600, 40, 40))
    done = shell('printf 0123456789 > o; "$tslice" a.npy "[::2]" >> o && "$tslice" a.npy "[0]" -j1 >> o')
    assert done.returncode == 0, text(done)
    raw = open("o", "rb").read()
    assert raw[:10] == b"0123456789", raw[:20]
    with open("rest", "wb") as file:
        file.write(raw[10:])
    with open("rest", "rb") as file:
        assert np.array_equal(np.load(file), array[::2]), "the first part"
        assert np.array_equal(np.load(file), array[0]), "the second part"


def check_standard_output_that_is_not_at_its_start():
    array = cube()
    done = shell('{ printf 0123456789; "$tslice" a.npy "[::2]"; printf end; } > o')
    assert done.returncode == 0, text(done)
    raw = open("o", "rb").read()
    assert raw[:10] == b"0123456789" and raw[-3:] == b"end", (raw[:20], raw[-10:])
    with open("mid", "wb") as file:
        file.write(raw[10:-3])
    same("mid", array[::2])


def check_standard_input_that_is_not_at_its_start():
    array = cube()
    open("both", "wb").write(b"0123456789" + open("a.npy", "rb").read())
    done = shell('{ head -c 0; dd bs=10 count=1 of=/dev/null 2>/dev/null; "$tslice" - "[::2]"; } < both > o.npy')
    assert done.returncode == 0, text(done)
    same("o.npy", array[::2])


def check_a_missing_folder():
    cube()
    failed_well(tslice("a.npy", "[0]", "-o", "nowhere/o.npy"), 1, "nowhere/o.npy")
    assert names() == ["a.npy"], names()


def check_a_folder_as_output():
    cube()
    os.mkdir("d.npy")
    for more in ([], ["--force"]):
        failed_well(tslice("a.npy", "[0]", "-o", "d.npy", *more), 1, "d.npy")
    assert names() == ["a.npy", "d.npy"] and not names("d.npy")


def check_a_read_only_folder():
    not_root()
    cube()
    os.mkdir("locked", 0o555)
    failed_well(tslice("a.npy", "[0]", "-o", "locked/o.npy"), 1, "locked")
    assert not names("locked")


def check_an_unreadable_input():
    not_root()
    cube()
    os.chmod("a.npy", 0)
    failed_well(tslice("a.npy", "[0]", "-o", "o.npy"), 1, "a.npy")


def check_inputs_are_never_changed():
    cube()
    before, when = open("a.npy", "rb").read(), os.stat("a.npy").st_mtime_ns
    os.chmod("a.npy", 0o444)
    done_well(tslice("a.npy", "[::-1]", "-o", "o.npy"))
    assert open("a.npy", "rb").read() == before and os.stat("a.npy").st_mtime_ns == when


# ---------------------------------------------------------------- disks that fill up


def limit_file_size():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def check_a_full_disk():
    cube(shape=(500, 30, 40))
    with open("there.npy", "w") as file:
        file.write("precious")
    failed_well(tslice("a.npy", "[::2]", "-o", "o.npy", preexec_fn=limit_file_size), 1, "o.npy")
    failed_well(tslice("a.npy", "[::2]", "-o", "there.npy", "-f", preexec_fn=limit_file_size), 1, "there.npy")
    assert open("there.npy").read() == "precious" and names() == ["a.npy", "there.npy"], names()


def check_dev_full():
    if not os.path.exists("/dev/full"):
        raise Skip("no /dev/full")
    cube()
    with open("/dev/full", "wb") as full:
        done = tslice("a.npy", "[0]", stdout=full)
    done.stdout = b""
    failed_well(done, 1, "o space left on device")
    for args in (["info", "a.npy"], ["explain", "a.npy", "[0]"], ["--help"]):
        with open("/dev/full", "wb") as full:
            done = tslice(*args, stdout=full)
        assert done.returncode in (1, 0) and done.returncode >= 0 and b"panicked" not in done.stderr, text(done)


# ---------------------------------------------------------------- pipes


def check_a_closed_pipe_is_quiet():
    cube(shape=(4000, 40, 40))
    done = shell('"$tslice" a.npy "[::-1]" | head -c 10 > /dev/null; echo "${PIPESTATUS[0]}"')
    assert not done.stderr, text(done)
    assert done.stdout.strip() in (b"0", b"141"), text(done)
    two_tensors()
    done = shell('"$tslice" info a.npy m.safetensors | true; echo "${PIPESTATUS[0]}"')
    assert not done.stderr and done.stdout.strip() in (b"0", b"141"), text(done)


def check_a_standard_output_closed_from_the_start():
    cube()
    for command in ('a.npy "[0]"', "info a.npy", 'explain a.npy "[0]"'):
        done = shell(f'"$tslice" {command} >&-')
        assert done.returncode == 1 and done.stderr.startswith(b"tslice: "), f"{command}: {text(done)}"
    done = shell('"$tslice" a.npy "[0]" -o o.npy >&-')
    assert done.returncode == 0, text(done)


def check_a_standard_input_closed_from_the_start():
    array = cube()
    done = shell('"$tslice" - "[0]" -o o.npy <&-')
    failed_well(done, 1)
    assert names() == ["a.npy"], names()
    done = shell('"$tslice" a.npy "[0]" -o o.npy <&-')
    assert done.returncode == 0, text(done)
    same("o.npy", array[0])
    failed_well(tslice("-", "[0]", "-o", "p.npy"), 1)  # an empty one


def check_all_streams_closed():
    array = cube()
    done = shell('"$tslice" a.npy "[0]" -o o.npy <&- >&- 2>&-')
    assert done.returncode == 0, text(done)
    same("o.npy", array[0])
    done = shell('"$tslice" a.npy "[9]" -o p.npy <&- >&- 2>&-')
    assert done.returncode == 1, text(done)


def check_a_pipeline_spools_nothing():
    array = cube("big.npy", shape=(1200, 50, 60))
    os.mkdir("watch")
    script = """cat big.npy | "$tslice" - '[::4]' | "$tslice" - '[..., 0]' > out.npy"""
    for tmp in ("/nonexistent-folder", os.path.abspath("watch")):
        done = shell("set -o pipefail; " + script, TMPDIR=tmp)
        assert done.returncode == 0 and not done.stderr, text(done)
        same("out.npy", array[::4][..., 0])
        assert not names("watch"), names("watch")
    assert names() == ["big.npy", "out.npy", "watch"], names()


def check_a_pipe_in_any_order():
    array = cube("big.npy", shape=(1200, 50, 60))
    for i, index in enumerate(["::-1", "..., ::-1", ":, 7, 1:3", "600:2:-7", "None, 5", "0:0"]):
        done = shell(f"cat big.npy | \"$tslice\" - '{index}' -o {i}.npy")
        assert done.returncode == 0 and not done.stderr, f"{index}: {text(done)}"
        same(f"{i}.npy", eval(f"array[{index}]"))


def check_a_pipe_that_is_cut_short():
    cube(shape=(500, 30, 40))
    for size in (3, 100, 5000, 2_000_000):
        for words in ('"[0]" --drain', '"[-1]"', ""):
            done = shell(f'head -c {size} a.npy | "$tslice" - {words} -o o.npy')
            failed_well(done, 1)
    assert names() == ["a.npy"], names()


def check_a_pipe_is_closed_after_what_is_needed():
    array = cube("big.npy", shape=(40, 300, 400))
    done = shell('cat big.npy | "$tslice" - "[1]" -o o.npy; echo ${PIPESTATUS[0]}')
    assert done.stdout.strip() == b"141" and not done.stderr, text(done)
    same("o.npy", array[1])
    done = shell('cat big.npy | "$tslice" - "[2]" --drain -o d.npy; echo ${PIPESTATUS[0]}')
    assert done.stdout.strip() == b"0" and not done.stderr, text(done)
    same("d.npy", array[2])


# ---------------------------------------------------------------- a full folder of temporary files


def check_a_full_temporary_folder_is_an_error():
    os.mkdir("small")
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", "small"]
    if os.geteuid() != 0 or subprocess.run(mount, stderr=subprocess.DEVNULL).returncode != 0:
        raise Skip("only root can mount a file system")
    try:
        array = np.arange(1_000_000, dtype="f4").reshape(1000, 1000)
        np.save("a.npy", array)
        with open("a.csv", "w") as file:
            file.writelines(",".join(map(str, row)) + "\n" for row in array.astype(int).tolist())
        with open("a.json", "w") as file:
            json.dump(array.astype(int).tolist(), file)
        before, env = names(), harness.env(TMPDIR=os.path.abspath("small"))
        for args in (["a.csv", "-o", "o.npy"], ["a.json", "-o", "o.npy"], ["view", "a.csv", "--reduce", "mean", "-o", "o.npy"],
                     ["merge", "a.csv", "-o", "o.npz"], ["a.csv", "-o", "o/", "--shard-size", "1MB"]):
            failed_well(tslice(*args, env=env), 1, "small", "No space left")
            assert names() == before and not names("small"), (args, names(), names("small"))
        np.save("b.npy", np.tile(array, (8, 1)))
        before = names()
        with open("b.npy", "rb") as file:
            pipe = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE).stdout
            failed_well(tslice("-", "[::-1]", "-o", "o.npy", stdin=pipe, env=env), 1, "small", "No space left")
        assert names() == before and not names("small"), (names(), names("small"))
    finally:
        subprocess.run(["umount", "small"], check=True)


def check_how_much_room_rows_in_random_order_need_is_asked_first():
    if why := supervise.unavailable():
        raise Skip(why)
    rows = np.arange(1 << 22, dtype="<u4").reshape(-1, 16)  # 16 MiB, on a machine that says it has as much memory
    np.save("a.npy", rows)
    np.save("i.npy", np.random.default_rng(1).integers(0, len(rows), 6000))
    np.save("v.npy", rows[:6000])
    before = names()
    # the other way round nothing is copied before, nor changed in place
    for args in (["gather", "a.npy", "--axis", "0", "--indices", "i.npy", "-o", "o.npy"],
                 ["assign", "a.npy", "[@i.npy]", "--value", "v.npy", "-o", "o.npy"],
                 ["assign", "a.npy", "[@i.npy]", "--value", "v.npy", "--in-place"],
                 ["gather", "a.npy", "--axis", "0", "--indices", "i.npy", "--dry-run"],
                 ["gather", "a.npy", "--axis", "0", "--indices", "i.npy", "-T", "--dry-run"],
                 ["assign", "a.npy", "[@i.npy]", "--value", "v.npy", "--in-place", "--dry-run"]):
        said, read = refused_room([*args, "--io", "read", "-j", "1"])
        assert f"{6000 * (64 + 16)} bytes are needed" in said, said
        assert names() == before and np.array_equal(np.load("a.npy"), rows), names()
        assert read < MIB, f"{read} bytes were read before"


def refused_room(args):
    """What a run says that has 400,000 bytes of room for temporary files, and how much it has read of a.npy."""
    memory, full, read = little_memory(16 * MIB), no_room(400_000), 0

    def decide(call):
        nonlocal read
        if call.name in ("pread64", "copy_file_range") and \
                os.readlink(f"/proc/{run.pid}/fd/{call.args[0]}").endswith("a.npy"):
            read += call.args[2 if call.name == "pread64" else 4]
        return memory(call) or full(call)

    stderr = os.memfd_create("stderr")
    run = supervise.Run([harness.BIN, *args], decide, stderr=stderr, env=harness.env())
    run.go()
    said = os.pread(stderr, 1 << 16, 0).decode()
    assert run.status == 1, (run.status, said)
    return said, read


# ---------------------------------------------------------------- signals and kills


def seconds_of(*args, output="whole.npy"):
    """How long an undisturbed run takes; its output is removed."""
    begun = time.monotonic()
    done_well(tslice(*args, "-o", output))
    os.unlink(output)
    return time.monotonic() - begun


def is_whole(output):
    """Whether a signal came after the output of `signalled` was in place."""
    try:
        return np.array_equal(np.load(output, mmap_mode="r"), np.load("big.npy", mmap_mode="r")[::-1, ::-1])
    except (OSError, ValueError):
        return False


def signalled(number, output, *more):
    """A long run that got a signal, or None where its output was in place before."""
    for delay in (0.25, 0.1, 0.03):
        with open("there.npy", "w") as file:
            file.write("precious")
        process = start("big.npy", "[::-1, ::-1]", "-o", output, "-j", "1", *more)
        time.sleep(delay)
        if process.poll() is None:
            process.send_signal(number)
            begun = time.monotonic()
            process.error = process.communicate(timeout=TIMEOUT)[1]
            process.seconds = time.monotonic() - begun
            if not is_whole(output):
                return process
        else:
            process.communicate()
        os.unlink(output)
    return None


def check_signals_clean_up():
    big("big.npy", 1536)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for output, more in (("o.npy", []), ("there.npy", ["--force"])):
            process = signalled(number, output, *more)
            if process is None:
                raise Skip("the run was over before the signal came")
            assert process.returncode == -number, f"{number!r}: ended with {process.returncode}, {process.error!r}"
            assert process.seconds < 5, "took more than 5 s to end"
            assert b"panicked" not in process.error, process.error
            assert names() == ["big.npy", "there.npy"], f"{number!r}: {names()}"
            assert open("there.npy").read() == "precious"
    done = shell('"$tslice" big.npy "[::-1, ::-1]" -o o.npy -j1 & sleep 0.1; kill -TERM $!; wait $!')
    assert done.returncode == 143, text(done)


def killable():
    """Runs to be killed: arguments, the output, a check of a whole one, whether a kill may leave litter."""
    array = cube("a.npy", shape=(3000, 40, 50))  # 24 MB
    cut = array[::-1, ::-1]

    def in_checkpoint(path):
        with open(path, "rb") as file:
            n, = struct.unpack("<Q", file.read(8))
            assert json.loads(file.read(n))["a"]["shape"] == list(cut.shape)
            assert file.read() == cut.tobytes(), f"{path} holds other values"

    yield ["a.npy", "[::-1, ::-1]", "-o", "o.npy"], "o.npy", lambda path: same(path, cut)
    yield ["a.npy", "[::-1, ::-1]", "-o", "o.safetensors"], "o.safetensors", in_checkpoint
    where = np.random.default_rng(1).integers(0, (3000, 40), (120_000, 2))
    np.save("i.npy", where)
    yield (["gather", "a.npy", "--indices", "i.npy", "-o", "o.npy"], "o.npy",
           lambda path: same(path, array[where[:, 0], where[:, 1]]))
    changed = array.copy()
    changed[..., ::2] = 7
    yield (["assign", "a.npy", "[..., ::2]", "--fill", "7", "-o", "o.npy"], "o.npy", lambda path: same(path, changed))


def check_kills_leave_old_or_nothing():
    rng, done, litter = random.Random(9), 0, 0
    jobs = list(killable())
    for args, output, whole in jobs:
        longest = 1.2 * seconds_of(*args[:-2], output=output)
        for turn in range(-(-KILLS // len(jobs))):
            force, by = turn % 2, SIGNALS[turn // 2 % len(SIGNALS)]
            if force:
                with open(output, "w") as file:
                    file.write("precious")
            process = start(*args, "-j", "2", *(["--force"] if force else []))
            time.sleep(rng.random() * longest)
            process.send_signal(by)
            process.communicate()
            left = [n for n in names() if n not in ("a.npy", "i.npy", output)]
            may_leave = (force or HAS_NAME) and by == signal.SIGKILL
            assert all(may_leave and n.startswith(".tslice-") for n in left), left
            litter += len(left)
            if os.path.exists(output):
                with open(output, "rb") as file:
                    old = file.read(9) == b"precious"
                assert force or not old
                if not old:
                    whole(output)
                    done += 1
                os.unlink(output)
            else:
                assert not force, "the old file is gone"
            for name in left:
                os.unlink(name)
    return f"{done} of {KILLS} runs were done before the signal, {litter} left a name that begins with .tslice-"


def check_no_row_is_lost_where_several_append():
    """Each of those that append at a time waits or fails, and a kill leaves the rows that were there."""
    rng, killed = random.Random(11), 0
    np.save("a.npy", np.zeros((1, 500), "<i8"))
    for number in range(1, 9):
        np.save(f"{number}.npy", np.full((number * 300, 500), number, "<i8"))
    wanted = {0: 1}
    for turn in range(6):
        runs = [(number, start("concat", "--append-to", "a.npy", f"{number}.npy", "--force")) for number in range(1, 9)]
        if turn % 2:
            time.sleep(rng.random() * 0.05)
            runs[rng.randrange(8)][1].kill()
        killed_now = 0
        for number, process in runs:
            error = process.communicate()[1].decode()
            killed_now += process.returncode == -signal.SIGKILL
            if process.returncode == 0:
                wanted[number] = wanted.get(number, 0) + number * 300
            elif process.returncode != -signal.SIGKILL:
                assert process.returncode == 1 and "another process is appending" in error, error
        found = np.load("a.npy")
        assert (found == found[:, :1]).all(), "a row of several runs"
        numbers, counts = np.unique(found[:, 0], return_counts=True)
        found = dict(zip(numbers.tolist(), counts.tolist()))
        # a killed run may have been through with it
        strange = {n for n in found.keys() | wanted.keys() if found.get(n) != wanted.get(n)}
        assert len(strange) <= killed_now, (found, wanted)
        killed += killed_now
        wanted = found
    return f"{killed} of 48 runs were killed"


def tree():
    """All files below the working directory, by path; without temporary names."""
    found = {}
    for where, folders, files in os.walk("."):
        folders[:] = [name for name in folders if not name.startswith(".tslice-")]
        for name in files:
            if not name.startswith(".tslice-"):
                with open(os.path.join(where, name), "rb") as file:
                    found[os.path.join(where, name)] = file.read()
    return found


def restore(files):
    for name in names():
        shutil.rmtree(name) if os.path.isdir(name) else os.unlink(name)
    for path, data in files.items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)


def old_or_new(found, before, after):
    """Every byte is that of before or that of after, in files of the same lengths."""
    assert found.keys() == before.keys(), found.keys() ^ before.keys()
    for path, data in found.items():
        assert len(data) == len(before[path]), path
        now, old, new = (np.frombuffer(files[path], "u1") for files in (found, before, after))
        assert ((now == old) | (now == new)).all(), f"{path} holds other bytes"


def several_killable():
    """Runs to be killed over old outputs: what they need, their arguments, whether they change files in place."""
    layers = {f"l{number}": np.full((1500, 1000), number, "<f4") for number in range(4)}
    stored = {name: ("F32", array.shape, array.tobytes()) for name, array in layers.items()}
    write_safetensors("l.safetensors", stored)
    cut = ["l.safetensors", "-o", "out/", "--force", "--shard-size"]
    done_well(tslice(*cut, "14MB"))
    np.savez("b.npz", **{f"b{number}": layers["l0"] for number in range(2)})
    np.save("i.npy", np.arange(0, 1500, 2)[:, None])
    np.save("v.npy", np.full((750, 1000), 9, "<f4"))
    with open("out/config.json", "w") as file:
        file.write("{}")
    yield ["merge", "l.safetensors", "b.npz", "-o", "l.safetensors", "--force"], False
    yield [*cut, "7MB"], False
    os.mkdir("out/sub")
    yield [*cut, "20MB", "--quiet"], False
    fill = ["-t", "l*", "[:, ::2]", "--fill", "7", "--in-place"]
    yield ["assign", "l.safetensors", *fill], True
    yield ["scatter", "out", "-t", "l*", "--indices", "i.npy", "--values", "v.npy", "--in-place"], True


def check_kills_of_jobs_of_several_tensors():
    """Merges, shards over an old folder and changes of several tensors in place: old, new, or completed by another run."""
    rng, counts = random.Random(10), {"old": 0, "new": 0, "between": 0}
    jobs = list(several_killable())
    shutil.rmtree("out/sub")
    before = tree()
    for args, in_place in jobs:
        restore(before)
        # an empty folder within, where files are exchanged one by one
        one_by_one = "20MB" in args
        longest, begun = 0.0, time.monotonic()
        done_well(tslice(*args))
        longest, after = 1.2 * (time.monotonic() - begun), tree()
        assert after != before
        for turn in range(-(-KILLS // len(jobs))):
            restore(before)
            if one_by_one:
                os.mkdir("out/sub")
            by = SIGNALS[turn % len(SIGNALS)]
            process = start(*args, "-j", "2")
            time.sleep(rng.random() * longest)
            process.send_signal(by)
            process.communicate()
            left = [name for where in (".", "out") for name in names(where) if name.startswith(".tslice-")]
            assert not left or (by == signal.SIGKILL and not in_place), (args, by, left)
            found = tree()
            outcome = "old" if found == before else "new" if found == after else "between"
            counts[outcome] += 1
            if outcome != "between":
                continue
            if in_place:
                old_or_new(found, before, after)
            else:
                assert (one_by_one or FILE_BY_FILE) and by == signal.SIGKILL, (args, by, found.keys())
                assert not any(path.endswith(".index.json") for path in found), found.keys()
            done_well(tslice(*args))
            assert tree() == after, (args, tree().keys())
    return ", ".join(f"{count} left {outcome}" for outcome, count in counts.items())


def check_an_input_that_shrinks():
    """The elements are all 1, so that an output with anything else in it is a lie."""
    rng = random.Random(5)
    rows, longest, caught = 32768, 0.0, 0  # of 4 KiB
    ones = np.ones((rows // 64, 1024), "<f4").tobytes()
    for turn in range(18):
        with open("big.npy", "wb") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": "<f4", "fortran_order": False, "shape": (rows, 1024)})
            for _ in range(64):
                file.write(ones)
        io, threads = ("mmap", "read", "auto")[turn % 3], str(1 + turn % 4)
        args = ["big.npy", "[::-1, ::2]", "-j", threads, "--io", io]
        longest = longest or seconds_of(*args)
        process = start(*args, "-o", "o.npy")
        time.sleep(rng.random() * longest)
        os.truncate("big.npy", rng.choice([0, 100, 4096 * 7, 4096 * rows // 2, 4096 * (rows - 9) + 17]))
        _, err = process.communicate(timeout=TIMEOUT)
        assert process.returncode in (0, 1), f"--io {io}: ended with {process.returncode}, {err!r}"
        assert b"panicked" not in err, err
        if process.returncode == 1:
            caught += 1
            assert err.startswith(b"tslice: ") and b"big.npy" in err, err
            assert names() == ["big.npy"], names()
        else:
            found = np.load("o.npy")
            assert found.shape == (rows, 512) and (found == 1).all(), f"--io {io}: exit 0 with wrong bytes"
            os.unlink("o.npy")
        os.unlink("big.npy")
    assert caught, "no run was caught by the cut: the check checked nothing"
    return f"{caught} of 18 runs were caught by the cut"


# ---------------------------------------------------------------- memory


def check_memory_stays_small():
    big("big.npy", 3072)
    peaks = []
    for threads in (1, 4):
        limit = 64 * MIB + 4 * MIB * threads
        for io in ("mmap", "read"):
            for index in ("[::16]", "[:, ::64]", "[::-32, ::-1]"):
                process = start("big.npy", index, "-o", "o.npy", "-j", str(threads), "--io", io)
                peak = peak_rss_anon(process)
                err = process.stderr.read()
                assert process.returncode == 0, (process.returncode, err)
                assert peak < limit, f"{index} --io {io} -j{threads}: {peak / MIB:.1f} MiB of {limit // MIB}"
                peaks.append(peak)
                os.unlink("o.npy")
    return f"at most {max(peaks) / MIB:.1f} MiB"


def check_memory_of_a_pipe_stays_small():
    big("big.npy", 512)
    limit = (64 + 16) * MIB
    for index in ("[::16]", "[:, ::64]"):
        with open("o.npy", "wb") as out:
            cat = subprocess.Popen(["cat", "big.npy"], stdout=subprocess.PIPE)
            process = start("-", index, "-j", "4", stdin=cat.stdout, stdout=out)
            cat.stdout.close()
            peak = peak_rss_anon(process)
            cat.wait()
        assert process.returncode == 0, process.stderr.read()
        assert peak < limit, f"{index}: {peak / MIB:.1f} MiB of {limit // MIB}"


def check_a_small_memory_is_enough():
    """256 MiB of memory of its own (heap and stacks together) do for a file of 3 GiB."""
    big("big.npy", 3072)

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (256 * MIB, 256 * MIB))

    done_well(tslice("big.npy", "[::64, ::-1]", "-o", "o.npy", "-j", "2", preexec_fn=limit))


# ---------------------------------------------------------------- the bytes


def check_threads_and_io_do_not_change_the_bytes():
    cube(shape=(300, 70, 80))
    for index in ("[::-1]", "[:, ::3, ::-2]", "[..., 5]", "[None, 1:-1]"):
        seen = set()
        for threads in ("1", "2", "3", "4"):
            for io in ("mmap", "read"):
                done_well(tslice("a.npy", index, "-o", "o.npy", "-f", "-j", threads, "--io", io))
                seen.add(open("o.npy", "rb").read())
        done = tslice("a.npy", index)
        seen.add(done.stdout)
        assert len(seen) == 1, f"{index}: {len(seen)} different outputs"


def check_object_arrays_are_refused():
    np.save("o.npy", np.array([1, "a"], dtype=object), allow_pickle=True)
    failed_well(tslice("o.npy", "[0]", "-o", "out.npy"), 1, "o.npy", "object")


def check_a_short_file_is_refused():
    cube()
    size = os.path.getsize("a.npy")
    for cut in (size - 1, size - 100, 128, 127, 20, 10, 9, 6, 3, 1, 0):
        os.truncate("a.npy", cut)
        failed_well(tslice("a.npy", "[0, 0, 0]", "-o", "o.npy"), 1, "a.npy")
        failed_well(tslice("info", "a.npy"), 1, "a.npy")
    assert names() == ["a.npy"], names()


def check_bytes_after_safetensors_data_are_an_error():
    two_tensors()
    with open("m.safetensors", "ab") as file:
        file.write(b"x")
    failed_well(tslice("m.safetensors", "[0]", "-t", "weight", "-o", "o.npy"), 1, "m.safetensors")


def check_hostile_files():
    if not os.path.isdir(BAD):
        raise Skip("no fixtures/bad")
    seen = 0
    for folder, _, files in os.walk(BAD):
        for name in sorted(files):
            if name == "README.md":
                continue
            path, seen = os.path.join(folder, name), seen + 1
            for args in ([path, "[0]", "-o", "out.npy"], [path, "-o", "out.safetensors"], ["info", path]):
                begun = time.monotonic()
                done = tslice(*args)
                took = time.monotonic() - begun
                try:
                    failed_well(done, 1)
                    assert took < 5, f"{took:.1f} s"
                except AssertionError as error:
                    raise AssertionError(f"{name} ({args[0] if args[0] == 'info' else 'slice'}): {error}") from None
            with open(path, "rb") as source:
                done = tslice("-", "[0]", stdin=source)
            assert done.returncode == 1 and done.stderr.startswith(b"tslice: "), f"< {name}: {text(done)}"
            assert not names(), names()
    assert seen, "no file in fixtures/bad"
    return f"{seen} files"


# ---------------------------------------------------------------- the runner


def main():
    global KILLS
    parser = harness.check_parser("black-box checks of tslice's promises")
    parser.add_argument("--kills", type=int, default=KILLS, help="how many runs are killed (%(default)s)")
    options = parser.parse_args()
    KILLS = options.kills
    harness.begin(options)
    return harness.run_checks(globals(), "promises", options)


if __name__ == "__main__":
    sys.exit(main())
