"""What holds on Windows, of the program that tests/windows/run runs under wine: names, outputs, pipes, locks, Ctrl-C,
the golden tables, and the promises of tests/python/promises.py.

    python tests/windows/checks.py --bin target/windows/tslice

Beside the program stands `hold`, which opens a file as other programs do.
"""
import concurrent.futures
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))
import harness  # noqa: E402
import promises  # noqa: E402
from harness import Skip, done_well, failed_well, names, same, tslice, wait_until  # noqa: E402

# of the golden tables, one case of so many is run
EVERY = 1
CUBE = np.arange(60, dtype="<f4").reshape(3, 4, 5)


# ---------------------------------------------------------------- the golden tables


def golden(name, run):
    """Runs each case of a table in a folder of its own, some at a time; `run` says what is wrong with one."""
    cases = [json.loads(line) for line in (ROOT / "fixtures" / name).read_text().splitlines()[1::EVERY]]
    # no argument can hold this byte
    cases = [case for case in cases if "\0" not in case.get("text", "")]

    def one(numbered):
        number, case = numbered
        folder = Path(f"{number}")
        folder.mkdir()
        # a run of wine may lose its exit status, and says nothing then
        for _ in range(2):
            (folder / "out.npy").unlink(missing_ok=True)
            done, expected = run(case, folder)
            if done.returncode == 0 or done.returncode > 0 and done.stderr:
                break
        found = None
        if (folder / "out.npy").exists():
            found = np.load(folder / "out.npy")
            found = [list(found.shape), found.ravel().tolist()]
        good = found == expected and (done.returncode == 0) == (expected is not None)
        return None if good else f"{case}: {harness.text(done)}, {found}"

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        wrong = [problem for problem in workers.map(one, enumerate(cases)) if problem]
    assert not wrong, f"{len(wrong)} of {len(cases)}: " + "; ".join(wrong[:5])
    return f"{len(cases)} cases"


def source(folder, shape, dtype="<i8"):
    np.save(folder / "in.npy", np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape))


def check_golden_indices():
    def run(case, folder):
        source(folder, case["shape"])
        done = tslice("in.npy", "-o", "out.npy", "--", case["text"], cwd=folder)
        return done, case.get("result")

    return golden("index.jsonl", run)


def check_golden_strided_slices():
    def run(case, folder):
        source(folder, case["shape"])
        lists = [f"--{name}={','.join(map(str, case[name]))}" for name in ("begin", "end", "strides")]
        masks = [f"--{name.replace('_', '-')}={case[name]}" for name in case if name.endswith("_mask")]
        return tslice("in.npy", *lists, *masks, "-o", "out.npy", cwd=folder), case["result"]

    return golden("strided_slice.jsonl", run)


def check_golden_gathers():
    def run(case, folder):
        source(folder, case["params"], "<i4")
        shape, numbers = case["indices"]
        np.save(folder / "indices.npy", np.array(numbers, "<" + case["dtype"]).reshape(shape))
        axis = [] if case["axis"] is None else [f"--axis={case['axis']}"]
        flags = [f"--batch-dims={case['batch_dims']}", f"--out-of-range={case['mode']}", *axis]
        return tslice("gather", "in.npy", "--indices", "indices.npy", *flags, "-o", "out.npy", cwd=folder), case["result"]

    return golden("gather.jsonl", run)


# ---------------------------------------------------------------- outputs


def check_output_appears_whole():
    np.save("a.npy", CUBE)
    done_well(tslice("a.npy", "[1]", "-o", "out.npy"))
    same("out.npy", CUBE[1])
    failed_well(tslice("a.npy", "[2]", "-o", "out.npy"), 1, "exists")
    same("out.npy", CUBE[1])
    done_well(tslice("a.npy", "[2]", "-o", "out.npy", "--force"))
    same("out.npy", CUBE[2])
    assert names() == ["a.npy", "out.npy"], names()


def check_mapped_input_is_replaced():
    for io in ["mmap", "read", "auto"]:
        np.save("a.npy", CUBE)
        done_well(tslice("a.npy", "[::-1, 1]", "-o", "a.npy", "--force", "--io", io))
        same("a.npy", CUBE[::-1, 1])
        assert names() == ["a.npy"], names()


def held(path):
    """A program that has a file open, and closes it when its input ends."""
    holder = subprocess.Popen([os.path.join(os.path.dirname(harness.BIN), "hold"), path], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    assert holder.stdout.readline().strip() == b"open"
    return holder


def check_an_output_that_another_program_has_open_stays():
    np.save("a.npy", CUBE)
    np.savez("a.npz", a=CUBE, b=CUBE)
    done_well(tslice("a.npz", "-o", "out/", "--shard-size", "100"))
    shard = next(name for name in names("out") if name.endswith(".safetensors"))
    for args, path in [(["a.npy", "[0]", "-o", "out.npy"], "out.npy"), (["a.npz", "-o", "out.npz"], "out.npz"),
                       (["a.npz", "-t", "a", "-o", "out/", "--shard-size", "50"], f"out/{shard}")]:
        if not os.path.exists(path):
            np.save("x.npy", CUBE)
            os.rename("x.npy", path)
        before = {name: Path(name).read_bytes() for name in [path, *(f"out/{name}" for name in names("out"))]}
        holder = held(path)
        failed_well(tslice(*args, "--force"), 1, "another program has the file open")
        assert before == {name: Path(name).read_bytes() for name in before}, path
        assert len(names("out")) == len([name for name in before if name.startswith("out/")]), names("out")
        holder.communicate()
        done_well(tslice(*args, "--force"))
        assert Path(path).read_bytes() != before[path] if os.path.exists(path) else path.startswith("out/")
    assert names() == ["a.npy", "a.npz", "out", "out.npy", "out.npz"], names()


def check_ctrl_c_removes_what_is_written():
    np.save("a.npy", np.zeros((6000, 6000)))
    Path("there.npy").write_text("precious")
    for output, more in [("out.npy", []), ("there.npy", ["--force"])]:
        leader, follower = os.openpty()

        def in_terminal():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        args = [harness.BIN, "a.npy", "[::-1, ::-1]", "-j", "1", "-o", output, *more]
        run = subprocess.Popen(args, stdin=follower, stdout=follower, stderr=follower, preexec_fn=in_terminal)
        os.close(follower)
        begun = wait_until(lambda: any(name.startswith(".tslice-") for name in names()) or run.poll() is not None)
        os.write(leader, b"\x03")
        status = run.wait(20)
        os.close(leader)
        if status == 0:
            raise Skip("the run was over before Ctrl-C came")
        # the low byte of 0xC000013A
        assert begun and status == 0x3A, status
        assert names() == ["a.npy", "there.npy"], names()
        assert Path("there.npy").read_text() == "precious"


# ---------------------------------------------------------------- inputs, pipes and names


def check_files_of_more_than_4_gib():
    rows, row = 1200, 1 << 20
    with open("big.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, row)})
        begin = file.tell()
        file.seek(begin + 4 * row * rows - 8)
        file.write(np.array([3, 4], "<f4").tobytes())
    whole = np.load("big.npy", mmap_mode="r+")
    whole[1100, :4] = [5, 6, 7, 8]
    whole.flush()
    for io in ["mmap", "read"]:
        done_well(tslice("big.npy", "[[1100, -1, 1100], [0, -1, 3]]", "-o", "few.npy", "--force", "--io", io))
        same("few.npy", np.array([5, 4, 8], "<f4"))
        done_well(tslice("big.npy", "[:1050:-50, :3]", "-o", "rows.npy", "--force", "--io", io))
        same("rows.npy", whole[:1050:-50, :3])
        done_well(tslice("assign", "big.npy", "[1150, ::300000]", "--fill", "9" if io == "mmap" else "8", "--in-place",
                         "--io", io))
        assert whole[1150, ::300000].tolist() == [9 if io == "mmap" else 8] * 4 and not whole[1150, 1:300000].any()
    np.save("new.npy", np.full((1, row), 2, "<f4"))
    done_well(tslice("concat", "new.npy", "--append-to", "big.npy"))
    del whole
    whole = np.load("big.npy", mmap_mode="r")
    assert whole.shape == (rows + 1, row) and (whole[-1] == 2).all() and whole[-2, -1] == 4


def check_closed_pipes_are_quiet():
    np.save("a.npy", np.zeros((1000, 1000)))
    for command in ['a.npy "[::-1]"', 'view a.npy --precision 3 --full', "a.npy --to csv", "explain a.npy [0]"]:
        done = harness.shell(f'"$tslice" {command} | head -c 1 > /dev/null; echo "${{PIPESTATUS[0]}}"')
        assert not done.stderr and done.stdout.strip() in (b"0", b"1"), (command, harness.text(done))


def check_pipes_are_binary():
    np.save("a.npy", np.arange(512).astype("u1").reshape(2, 256))
    done = tslice("-", "[1]", "-o", "-", input=Path("a.npy").read_bytes())
    done_well(done)
    Path("out.npy").write_bytes(done.stdout)
    same("out.npy", np.arange(256).astype("u1"))


def check_text_ends_with_newlines_alone():
    np.save("a.npy", CUBE)
    done_well(tslice("a.npy", "[0]", "-o", "out.csv"))
    assert b"\r" not in Path("out.csv").read_bytes()
    assert b"\r" not in tslice("info", "a.npy").stdout


def check_patterns_of_inputs_are_expanded():
    os.mkdir("d1")
    os.mkdir("D2")
    for number, name in enumerate(["a1.npy", "a2.npy", "b.npy", "a10.npy", "d1/x.npy", "D2/X.NPY", "d1/.x.npy"]):
        np.save("saved.npy", CUBE + number)
        os.rename("saved.npy", name)
    for pattern, numbers in [("a?.npy", [0, 1]), ("a*.npy", [0, 3, 1]), ("D*\\*.npy", [5, 4]), (".\\*b*", [2])]:
        done = tslice("concat", pattern, "-o", "out.npy", "--force")
        assert done.returncode == 0, harness.text(done)
        same("out.npy", np.concatenate([CUBE + number for number in numbers]))
        os.unlink("out.npy")
    done_well(tslice("merge", "?1.npy", "b.npy", "-o", "out.npz"))
    assert sorted(np.load("out.npz")) == ["a1", "b"]
    done = done_well(tslice("info", "?.npy", "a2.npy"))
    assert [line.split()[0] for line in done.stdout.splitlines()[1:-1]] == [b"b.npy", b"a2.npy"], harness.text(done)
    failed_well(tslice("concat", "c*.npy", "-o", "none.npy"), 1)


def check_names():
    folder = Path("x" * 100, "y" * 100, "z" * 100)
    folder.mkdir(parents=True)
    for path in [folder / "a.npy", Path("sp ace é 日本.npy")]:
        np.save(path, CUBE)
        windows = str(path).replace("/", "\\")
        drive = "Z:" + os.path.abspath(path).replace("/", "\\")
        # this wine tells no path of more than 260 characters of an open folder
        near = path.name if len(drive) > 260 else windows
        for name in [windows, drive]:
            done_well(tslice(name, "[0]", "-o", f"{near}-out.npy", "--force"))
            same(near.replace("\\", "/") + "-out.npy", CUBE[0])
    os.unlink(f"{near}-out.npy")
    # bytes that are no UTF-8 stand for units that are no Unicode
    for name in [b"a\xff.npy", b"b\xed\xa0\x80.npy"]:
        np.save("saved.npy", CUBE)
        os.rename("saved.npy", name)
        done_well(subprocess.run([harness.BIN.encode(), name, b"[0]", b"-o", b"out.npy", b"--force"], capture_output=True))
        same("out.npy", CUBE[0])
        done_well(subprocess.run([harness.BIN.encode(), name, b"[1]", b"-o", name, b"--force"], capture_output=True))


def check_messages_are_those_of_other_systems():
    failed_well(tslice("none.npy", "[0]", "-o", "o.npy"), 1, "none.npy: No such file or directory")
    np.save("a.npy", CUBE)
    failed_well(tslice("a.npy", "[0]", "-o", "none\\o.npy"), 1, "No such file or directory")
    failed_well(tslice("a.npy", "[0", "-o", "o.npy"), 2)
    assert tslice().returncode == 2


def check_changes_in_place():
    np.save("a.npy", CUBE)
    done_well(tslice("assign", "a.npy", "[1, ::2]", "--fill", "7", "--in-place"))
    expected = CUBE.copy()
    expected[1, ::2] = 7
    same("a.npy", expected)
    np.save("b.npy", CUBE[:1])
    done_well(tslice("concat", "b.npy", "--append-to", "a.npy"))
    same("a.npy", np.concatenate([expected, CUBE[:1]]))


def check_a_file_that_somebody_appends_to_is_locked():
    np.save("a.npy", np.zeros((1, 1000)))
    np.save("b.npy", np.ones((60000, 1000)))
    before = Path("a.npy").stat().st_size
    first = harness.start("concat", "b.npy", "--append-to", "a.npy", "-j", "1")
    assert wait_until(lambda: Path("a.npy").stat().st_size > before or first.poll() is not None)
    if first.poll() is not None:
        raise Skip("the first run was over before the second began")
    second = tslice("concat", "b.npy", "--append-to", "a.npy")
    if second.returncode == 0 and first.poll() is not None:
        raise Skip("the first run was over before the second asked for the lock")
    failed_well(second, 1, "another process is appending")
    first.communicate()
    assert first.returncode == 0 and np.load("a.npy").shape == (60001, 1000)


def check_parts_of_one_machine():
    np.save("a.npy", np.arange(40000, dtype="<f4"))
    for part in ["2/3", "0/3", "1/3"]:
        done_well(tslice("a.npy", "[::-1]", "-o", "out.npy", "--part", part))
    same("out.npy", np.arange(40000, dtype="<f4")[::-1])
    assert names() == ["a.npy", "out.npy"], names()


def check_folders():
    np.savez("a.npz", a=CUBE, b=CUBE[0], c=CUBE[1])
    for force in [[], ["--force"]]:
        done_well(tslice("a.npz", "-t", "*", "-o", "out/", "--shard-size", "500", *force))
        assert any(name.endswith("index.json") for name in names("out")), names("out")
        done_well(tslice("info", "out"))
    assert not [name for name in os.listdir(".") if name.startswith(".tslice-")]


# ---------------------------------------------------------------- the promises of all systems

# those that are made otherwise here, or that wine cannot show
NOT_HERE = {
    "a terminal gets no binary": "the terminal of wine is none of Linux's",
    "the bar shows a kept pipe for itself": "wine draws the terminal anew",
    "symbolic links": "wine shows a link of Linux as the file that it leads to",
    "modes and umask": "files have the rights of their folder",
    "dev stdout": "there is no such name",
    "a read only folder": "folders have no such attribute",
    "an unreadable input": "files have no such attribute",
    "a closed pipe is quiet": "there is no SIGPIPE: see `closed pipes are quiet`",
    "all streams closed": "wine gives the numbers of closed descriptors to its own files",
    "a pipe is closed after what is needed": "wine's own descriptors keep the pipe open",
    "a full temporary folder is an error": "wine takes no folder for temporary files from TMPDIR",
    "how much room rows in random order need is asked first": "system calls of wine are watched there",
    "signals clean up": "Ctrl-C takes their place",
    "an input that shrinks": "no program can shorten a file that is mapped, but wine lets those of Linux",
    "memory stays small": "pages of wine count as those of the program",
    "memory of a pipe stays small": "pages of wine count as those of the program",
    "a small memory is enough": "pages of wine count as those of the program",
}


def not_here(reason):
    def skip():
        raise Skip(reason)

    return skip


def once_more(check):
    """Now and then wine kills a process that takes a second to end: a check that fails so is made again."""
    def run():
        try:
            return check()
        except AssertionError as error:
            if not re.search("status (-9|-11|137)|wine client error", str(error)):
                raise
            print(f"once more: {error}")
        promises.restore({})
        return check()

    return run


for name, check in list(vars(promises).items()):
    if name.startswith("check_"):
        reason = NOT_HERE.pop(name[len("check_"):].replace("_", " "), None)
        globals()[name] = not_here(reason) if reason else check
assert not NOT_HERE, f"no such promises: {NOT_HERE}"
for name, check in list(globals().items()):
    if name.startswith("check_"):
        globals()[name] = once_more(check)


def main():
    global EVERY
    parser = harness.check_parser(__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=EVERY, help="run one case of so many of the golden tables")
    options = parser.parse_args()
    EVERY, promises.KILLS = options.every, 8
    promises.SIGNALS, promises.FILE_BY_FILE, promises.HAS_NAME = (signal.SIGKILL,), True, True
    harness.begin(options)
    return harness.run_checks(globals(), "windows", options)


if __name__ == "__main__":
    sys.exit(main())
