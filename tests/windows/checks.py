"""What holds on Windows, of the program that tests/windows/run runs under wine: names, outputs, pipes, locks, the golden
tables.

    python tests/windows/checks.py --bin target/windows/tslice
"""
import json
import os
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/python"))
import harness  # noqa: E402
from harness import done_well, failed_well, names, same, tslice  # noqa: E402

CUBE = np.arange(60, dtype="<f4").reshape(3, 4, 5)
# of the golden tables, one case of so many: each is a run of wine
EVERY = 23


def golden(name):
    lines = (ROOT / "fixtures" / name).read_text().splitlines()[1:]
    return [json.loads(line) for line in lines[::EVERY]]


def source(shape):
    np.save("in.npy", np.arange(int(np.prod(shape)), dtype="<i8").reshape(shape))


def judge(done, result):
    done_well(done)
    found = np.load("out.npy")
    assert [list(found.shape), found.ravel().tolist()] == result


def check_golden_index():
    cases = [case for case in golden("index.jsonl") if case["verdict"] == "ok"]
    for case in cases:
        source(case["shape"])
        judge(tslice("in.npy", "-o", "out.npy", "--force", "--", case["text"]), case["result"])
    return f"{len(cases)} cases"


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
    for name in ["a1.npy", "a2.npy", "b.npy"]:
        np.save(name, CUBE)
    done_well(tslice("concat", "a?.npy", "-o", "out.npy"))
    same("out.npy", np.concatenate([CUBE, CUBE]))
    failed_well(tslice("concat", "c*.npy", "-o", "none.npy"), 1)


def check_names():
    folder = Path("x" * 100, "y" * 100, "z" * 100)
    folder.mkdir(parents=True)
    for path in [folder / "a.npy", Path("sp ace é 日本.npy")]:
        np.save(path, CUBE)
        windows = str(path).replace("/", "\\")
        drive = "Z:" + os.path.abspath(path).replace("/", "\\")
        # this wine tells no path of more than 260 characters of an open folder
        near = Path(windows).name if len(drive) > 260 else windows
        for name in [windows, drive]:
            done_well(tslice(name, "[0]", "-o", f"{near}-out.npy", "--force"))
            same(near.replace("\\", "/") + "-out.npy", CUBE[0])


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


def check_kill_leaves_no_output():
    np.save("a.npy", np.zeros((3000, 3000)))
    child = harness.start("a.npy", "[::-1].T", "-o", "out.npy")
    child.kill()
    child.wait()
    assert all(name.startswith(".tslice-") or name == "a.npy" for name in os.listdir("."))


def main():
    options = harness.check_parser(__doc__.splitlines()[0]).parse_args()
    harness.begin(options)
    return harness.run_checks(globals(), "windows", options)


if __name__ == "__main__":
    sys.exit(main())
