#!/usr/bin/env python3
"""Black-box checks at the edges: ranks, sizes and headers as large as they come, many runs at one
time, races for a name, links and folders that change under a run.

    python tests/python/limits.py --bin target/debug/tslice [--only WORD]

Written and run as `promises.py` is. Memory is checked with generous bounds, time never.
"""

import ctypes
import json
import mmap
import os
import re
import shutil
import struct
import subprocess
import sys
import time
import unicodedata

import numpy as np

import harness
import supervise
from formats import cube, write_safetensors
from harness import MIB, Skip, done_well, failed_well, names, peak_rss_anon, same, start, text, tslice, wait_until


def npy(path, descr, shape, bytes_of_data, version=1, padding=0):
    """A header with any claims, and a hole of data."""
    header = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * padding + b"\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)))
        file.write(header)
        file.truncate(file.tell() + bytes_of_data)


def within(limit, *args, **options):
    """Runs with less memory of its own, in bytes, at any time; the result and the peak."""
    process = start(*args, **options)
    peak = peak_rss_anon(process)
    process.err = process.stderr.read()
    assert peak < limit, f"{args}: {peak / MIB:.0f} MiB of {limit / MIB:.0f}"
    return process, peak


def started(count, *args, **options):
    """Runs that wait for the data of their standard input, after its header: `go(i)` sends it."""
    with open("a.npy", "rb") as file:
        raw = file.read()
    runs = []
    for i in range(count):
        words = [str(word).replace("{i}", str(i)) for word in args]
        run = start("-", *words, "--drain", stdin=subprocess.PIPE, **options)
        run.stdin.write(raw[:-1])
        run.stdin.flush()
        runs.append(run)
    assert wait_until(lambda: all(asleep(run) for run in runs)), "the runs do not wait for their input"
    return runs, raw[-1:]


def asleep(run):
    with open(f"/proc/{run.pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "S"


def ended(run):
    _, err = run.communicate(timeout=harness.TIMEOUT)
    run.err = err
    return run


# ---------------------------------------------------------------- sizes


def check_64_axes():
    array = np.arange(4, dtype="<u2").reshape((1,) * 62 + (2, 2))
    np.save("a.npy", array)
    for i, index in enumerate(["...", "..., ::-1, 1", "0, " * 62 + "1, 0", ", ".join([":"] * 64), "::-1, " * 63 + ":"]):
        done_well(tslice("a.npy", index, "-o", f"{i}.npy"))
        same(f"{i}.npy", eval(f"array[{index}]"))
    failed_well(tslice("a.npy", "None", "-o", "o.npy"), 1, "64")
    done_well(tslice("a.npy", "None, 0", "-o", "o.npy"))
    same("o.npy", array[None, 0])
    npy("b.npy", "<u2", (1,) * 65, 2)
    failed_well(tslice("b.npy", "0", "-o", "p.npy"), 1, "b.npy", "65")


def check_axes_of_2_to_the_63():
    longest = 2 ** 63 - 1
    npy("a.npy", "|V0", f"({longest},)", 0)
    for i, (index, length) in enumerate([("...", longest), ("::-1", longest), (f"{longest - 1}:", 1),
                                         (f"::{longest - 1}", 2), (f"-{longest}:-1", longest - 1), ("5:5", 0)]):
        done = done_well(tslice("a.npy", index, "-n", "-o", f"{i}.npy"))
        assert f"({length},)".encode() in done.stdout, text(done)
        done_well(tslice("a.npy", index, "-o", f"{i}.npy"))
    failed_well(tslice("a.npy", str(longest), "-o", "o.npy"), 1, "out of bounds")
    npy("b.npy", "|u1", f"(0, {longest})", 0)
    done_well(tslice("b.npy", "..., 9223372036854775806", "-o", "b0.npy"))
    assert np.load("b0.npy").shape == (0,)
    for shape in ((longest, 2), (2 ** 62, 2), (2 ** 32, 2 ** 32), (0, longest, 2)):
        npy("c.npy", "|u1", shape, 0)
        failed_well(tslice("c.npy", "0:0", "-o", "o.npy"), 1, "c.npy", "2^63")
    npy("c.npy", "|u1", f"({longest},)", 0)
    failed_well(tslice("c.npy", "0", "-o", "o.npy"), 1, "c.npy", "cut short")


def check_a_sparse_tebibyte():
    npy("a.npy", "<f4", (1 << 28, 1024), 1 << 40)
    with open("a.npy", "r+b") as file:
        file.seek(-4, os.SEEK_END)
        file.write(struct.pack("<f", 7))
    peaks = []
    for io in ("mmap", "read"):
        for i, index in enumerate(["-1, -1", "-1", "::-50000, -1", "1:3, ::-1", "::100_000_000, ::1000", "-3:0:-100000000, 5"]):
            process, peak = within(64 * MIB + 8 * MIB, "a.npy", index, "-o", "o.npy", "-f", "-j", "2", "--io", io)
            assert process.returncode == 0, process.err
            peaks.append(peak)
            found = np.load("o.npy")
            expected = {0: (), 1: (1024,), 2: (5369,), 3: (2, 1024), 4: (3, 2), 5: (3,)}[i]
            assert found.shape == expected and found.sum() == (7 if i < 3 else 0), f"{index}: {found.shape}"
    done_well(tslice("info", "a.npy"))
    return f"at most {max(peaks) / MIB:.1f} MiB"


def check_casts_to_longer_elements():
    """To a stream, in order, from a layout in another one: 16 bytes come out for each that goes in."""
    np.save("a.npy", np.asfortranarray(np.arange(6000 * 8000, dtype="u1").reshape(6000, 8000)))
    peaks = []
    for io, threads in (("mmap", 2), ("read", 2), ("read", 16)):
        args = ("a.npy", "--cast", "complex128", "--io", io, "-j", str(threads))
        process, peak = within((64 + 4 * threads) * MIB, *args)
        assert process.returncode == 0, process.err
        peaks.append(peak)
    return f"at most {max(peaks) / MIB:.1f} MiB"


def check_long_index_texts():
    """As long as the kernel allows one argument to be."""
    array = cube(shape=(10, 3))
    longest = 131_000 // 2
    begun = tslice("a.npy", "0," * longest, "-o", "o.npy")
    message = failed_well(begun, 1, "too many indices")
    assert len(message) < 1000, f"{len(message)} bytes of message"
    for bad in ("(" * longest, "[" * longest, "1" * longest * 2, ":" * longest, "1" + "-" * longest, "None," * (longest // 3),
                "0," * longest + "x", "é" * longest):
        done = tslice("a.npy", bad, "-o", "o.npy")
        message = failed_well(done, done.returncode)
        assert done.returncode in (1, 2) and len(message) < 1000, f"{bad[:9]}: {len(message)} bytes of message"
    for flag in ("--begin=" + "1," * longest, "--begin=" + "9" * longest * 2):
        done = tslice("a.npy", flag, "--end", "1", "-o", "o.npy")
        assert len(failed_well(done, 2)) < 1000
    done_well(tslice("a.npy", " " * longest + "5" + "\t" * longest, "-o", "o.npy"))
    same("o.npy", array[5])


def check_headers_of_100_megabytes():
    sizes = 100_000_000 - 200
    npy("a.npy", "<f4", "(2,)", 8, version=2, padding=sizes)
    process, npy_peak = within(900 * MIB, "a.npy", "1", "-o", "o.npy")
    assert process.returncode in (0, 1) and b"panicked" not in process.err, process.err
    count = 1_100_000
    parts = ",".join(f'"layer.{i:08}.w":{{"dtype":"I8","shape":[1],"data_offsets":[{i},{i + 1}]}}' for i in range(count))
    header = f"{{{parts}}}".encode()
    assert 80_000_000 < len(header) <= 100_000_000
    with open("m.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + bytes(i % 251 for i in range(count)))
    # the promise: 64 MiB, 16 MiB a thread, and 250 bytes for each tensor above 100,000
    many = 64 * MIB + 250 * (count - 100_000)
    process, peak = within(many + 32 * MIB, "m.safetensors", "-t", "layer.00000777.w", "-o", "p.npy", "-j", "2")
    assert process.returncode == 0, process.err
    for flag in ([], ["--json"]):
        process, _ = within(many, "info", "m.safetensors", *flag)
        assert process.returncode == 0, process.err
    process, _ = within(250 * MIB + many, "info", "m.safetensors", "--tree")
    assert process.returncode == 0, process.err
    same("p.npy", np.array([777 % 251], "i1"))
    one = ["m.safetensors", "-t", "layer.00000777.w", "0", "--keep-rest", "-o", "k.safetensors", "-j", "2"]
    process, kept_peak = within(many + 32 * MIB, *one)
    assert process.returncode == 0, process.err
    changed = header.replace(b'777.w":{"dtype":"I8","shape":[1]', b'777.w":{"dtype":"I8","shape":[]', 1)
    changed += b" " * (-len(changed) % 8)
    with open("m.safetensors", "rb") as before, open("k.safetensors", "rb") as after:
        assert after.read(8 + len(changed)) == struct.pack("<Q", len(changed)) + changed
        before.seek(8 + len(header))
        assert after.read() == before.read()
    os.remove("k.safetensors")
    message = failed_well(tslice("m.safetensors", "-o", "q.npy"), 1, "-t")
    assert len(message) < 2000, f"{len(message)} bytes of message"
    header = b'{"__metadata__":{"note":"' + b"x" * 90_000_000 + b'"},"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    with open("n.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + b"z")
    process, _ = within(8 * len(header), "n.safetensors", "-o", "r.npy")
    assert process.returncode == 0, process.err
    header = b'{"' + b"n" * 90_000_000 + b'":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'
    with open("n.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + b"z")
    for flag in ([], ["--json"]):
        process, _ = within(200 * MIB, "info", "n.safetensors", *flag)
        assert process.returncode == 0, process.err
    peaks = [f"{name} {peak / MIB:.0f} MiB" for name, peak in
             [("npy", npy_peak), ("safetensors", peak), ("--keep-rest", kept_peak)]]
    return ", ".join(peaks)


def cached_bytes(path):
    """Bytes of a file that are in the page cache."""
    size = os.path.getsize(path)
    with open(path, "rb") as file, mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as map:
        first = ctypes.c_char.from_buffer(map)
        pages = np.zeros(-(-size // mmap.PAGESIZE), "u1")
        asked = ctypes.CDLL(None, use_errno=True).mincore(
            ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(size), pages.ctypes.data_as(ctypes.c_void_p))
        assert asked == 0, os.strerror(ctypes.get_errno())
        del first
    return int((pages & 1).sum()) * mmap.PAGESIZE


def check_rows_far_apart_are_read_alone():
    """Of a cold file no more than the rows that are needed, and a little around them."""
    npy("a.npy", "<f4", "(8000, 65536)", 8000 * 65536 * 4)  # 2 GB, rows of 256 KiB
    for index, used in (("[::64, ::8]", 125 << 18), ("[::-64, 60000:]", 125 * 5536 * 4), ("[::8, ::8]", 1000 << 18)):
        with open("a.npy", "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        done_well(tslice("a.npy", index, "-o", "o.npy", "--force"))
        read = cached_bytes("a.npy")
        # the page of the header may bring what follows it
        assert used <= read < used * 5 // 4 + 16 * MIB, f"{index}: {read / MIB:.0f} MiB read for {used / MIB:.0f}"


def check_names_that_are_no_line():
    """Names of files and tensors break no message up, and say nothing to the terminal."""
    evil = "a\nb\x1b[31m\x07.npy"
    array = cube()
    os.rename("a.npy", evil)
    for done in (tslice(evil, "[9]", "-o", "o.npy"), tslice(evil + "x", "[0]", "-o", "o.npy"),
                 tslice(evil, "[0]", "-o", evil), tslice(evil, "[0]", "-o", "no\n/o.npy"),
                 tslice(evil, "[0]", "-o", "o.x\ny")):
        message = failed_well(done, done.returncode)
        assert not any(c < " " and c != "\n" for c in message), repr(message)
        lines = message.splitlines()
        assert all(line.startswith(("  ", "hint: ")) for line in lines[1:]), repr(message)
    write_safetensors("m.safetensors", {evil: ("U8", (1,), b"x"), "c\n": ("U8", (1,), b"y")})
    for done in (tslice("m.safetensors", "-o", "o.npy"), tslice("m.safetensors", "-t", "\x1b", "-o", "o.npy"),
                 tslice("info", "m.safetensors", evil)):
        assert b"\x1b" not in done.stdout + done.stderr and b"\x07" not in done.stdout + done.stderr, text(done)
    assert tslice("info", "m.safetensors").stdout.count(b"\n") == 5, text(tslice("info", "m.safetensors"))
    done_well(tslice("m.safetensors", "-t", evil, "-o", "o.npy"))
    done_well(tslice(evil, "[1]", "-o", "new\n.npy"))
    same("new\n.npy", array[1])


# ---------------------------------------------------------------- many at one time


def check_characters_are_printable_as_in_python():
    """`view` prints strings as NumPy does, so the rule is `str.isprintable`; one that this Python's
    Unicode does not know yet may be known to the other."""
    codes = [code for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    np.save("all.npy", np.array([chr(code) for code in codes], "U1"))
    printed = tslice("view", "all.npy", "--full", timeout=600).stdout.decode()
    inside = re.findall(r"""('(?:[^'\\\n]|\\.)+'|"(?:[^"\\\n]|\\.)+")""", printed)[:len(codes)]
    assert len(inside) == len(codes), f"{len(inside)} of {len(codes)}"
    newer = 0
    for code, shown in zip(codes, inside):
        if shown != repr(chr(code)):
            assert unicodedata.category(chr(code)) == "Cn", f"U+{code:04X}: {shown} for {chr(code)!r}"
            newer += 1
    return f"Unicode {unicodedata.unidata_version}, {newer} newer characters"


def check_nothing_that_is_not_printable_reaches_a_terminal():
    """Names of tensors, files, fields and metadata with what controls terminals, turns lines, or is not
    seen: in no text, and as escapes in JSON, which mean the same."""
    bad = "\x9b31m|\x85|\x7f|\u202e|\u2066|\u2028|\u2029|\u200b|\u200d|\ufeff|\u00ad|\ue000|\U000e0041|\x1b[31m|\n|\r|\t|\x00"
    file = f"x{bad}.safetensors".replace("/", "").replace("\0", "")
    tensors = {f"a{bad}": ("F32", [2], bytes(8)), f"b{bad}": ("U8", [3], bytes(3))}
    write_safetensors(file, tensors)
    write_safetensors("same.safetensors", tensors)
    write_safetensors("other.safetensors", {f"c{bad}": ("F32", [2], bytes(8))})
    fields = np.zeros(2, [(f"f{bad}".replace("\0", ""), "i4")])
    np.save("fields.npy", fields)
    np.save("strings.npy", np.array([bad, "plain"]))
    name = f"a{bad}"
    arguments = [
        ["info", file], ["info", file, "--json"], ["view", file, "-t", "*"], ["view", file, "-t", "*", "--stats"],
        ["view", file, "-t", "*", "--stats", "--json"], ["diff", file, "other.safetensors"],
        ["diff", file, "other.safetensors", "--json"], ["diff", file, "same.safetensors"], ["info", "fields.npy"],
        ["info", "fields.npy", "--json"], ["view", "fields.npy"], ["view", "strings.npy"], ["view", file, "-t", "nothing"],
        [file, "-t", "b*", "-n", "-o", f"o{bad}.npy".replace("\0", "")], [file, "-t", "b*", "[9]", "-o", "o.npy"],
        ["strings.npy", "--to", "json"], ["explain", file, "-t", "b*", "[0]"], ["info", f"gone{bad}".replace("\0", "")],
        ["split", file, "-t", "b*", "--parts", "2", "-n", "-o", f"p{bad}{{}}.npy".replace("\0", "")],
        [file, "-t", "b*", "-o", f"q{bad}.npy".replace("\0", ""), "--part", "status"],
        ["assign", file, "-t", "b*", "--fill", "1", "--in-place", "-n"], [file, f"[@gone{bad}]".replace("\0", "")],
        [file, "-t", "b*", "-o", f"r{bad}.npy".replace("\0", ""), "--part", "plan/2"],
    ]
    for args in arguments:
        run = tslice(*args)
        for told in (run.stdout, run.stderr):
            shown = told.decode()
            wrong = {c for c in shown if not c.isprintable() and c != "\n"}
            assert not wrong, f"{args}: {wrong} in {shown!r}"
            assert "|\n|" not in shown, f"{args}: {shown!r}"
        if "--json" in args and args[0] == "info" and args[1] == file:
            assert [t["name"] for t in json.loads(run.stdout)[0]["tensors"]] == list(tensors)
    assert json.loads(tslice("strings.npy", "--to", "json").stdout) == [bad.rstrip("\0"), "plain"]
    assert name in tensors


def check_a_list_that_changes_while_it_is_written_by():
    """In place the elements are written while the list is read a last time: the error is true, and names it."""
    why = supervise.unavailable()
    if why:
        raise Skip(why)
    count = 4 << 20
    args = [harness.BIN, "assign", "t.npy", "[@mask.npy]", "--fill", "7", "--in-place", "--io", "read", "-j", "1"]
    said = []
    for change, word in (("cut", "cut short"), ("other", "was changed")):
        reads, at = [], None
        for last in (False, True):
            np.save("t.npy", np.zeros(count, "u1"))
            np.save("mask.npy", np.ones(count, bool))

            def decide(call):
                if call.name in ("pread64", "read") and os.readlink(f"/proc/{run.pid}/fd/{call.args[0]}").endswith("mask.npy"):
                    seen[0] += 1
                    if last and seen[0] == at:
                        if change == "cut":
                            os.truncate("mask.npy", 1000)
                        else:
                            with open("mask.npy", "r+b") as file:
                                file.seek(128)
                                file.write(bytes(count))

            seen = [0]
            with open("told", "wb") as told, open(os.devnull, "r+b", buffering=0) as null:
                run = supervise.Run(args, decide, null.fileno(), null.fileno(), told.fileno(), env=harness.env())
                run.go()
            at = seen[0] - 2
        told = open("told").read()
        assert run.status == 1, f"{change}: {run.status}, {told!r}"
        assert told.startswith("tslice: mask.npy: the file ") and word in told, f"{change}: {told!r}"
        assert np.load("t.npy").any(), "it was the check that found it"
        said.append(told.split("\n")[0])
    return "; ".join(said)


def check_many_runs_on_one_input():
    array = cube("a.npy", shape=(200, 90, 50))
    jobs = [(f"{i}.npy", f"::-{i % 3 + 1}, {i}::7") for i in range(24)]
    runs = [start("a.npy", index, "-o", name, "-j", "2") for name, index in jobs]
    for run, (name, index) in zip(runs, jobs):
        assert ended(run).returncode == 0, run.err
        same(name, eval(f"array[{index}]"))


def check_a_race_for_a_name():
    array = cube(shape=(30, 40, 50))
    for turn in range(4):
        runs, last = started(12, f"[{turn}]", "-o", "o.npy")
        for run in runs:
            run.stdin.write(last)
            run.stdin.close()
            run.stdin = None
        results = [ended(run).returncode for run in runs]
        assert sorted(results) == [0] + [1] * 11, results
        for run in runs:
            assert run.returncode == 0 or (b"o.npy" in run.err and b"exists" in run.err), run.err
        same("o.npy", array[turn])
        assert names() == ["a.npy", "o.npy"], names()
        os.unlink("o.npy")


def check_a_race_with_force():
    array = cube(shape=(30, 40, 50))
    for turn in range(4):
        runs, last = started(12, "[{i}]", "-o", "o.npy", "--force")
        for run in runs:
            run.stdin.write(last)
            run.stdin.close()
            run.stdin = None
        results = [ended(run).returncode for run in runs]
        assert results == [0] * 12, results
        found = np.load("o.npy")
        assert any(np.array_equal(found, array[i]) for i in range(12)), "the output is none of the twelve"
        assert names() == ["a.npy", "o.npy"], names()


def check_a_reader_never_sees_half_a_file():
    array = cube(shape=(30, 400, 50))
    done_well(tslice("a.npy", "[0]", "-o", "o.npy"))
    looks = 0
    for turn in range(30):
        run = start("a.npy", f"[{turn}]", "-o", "o.npy", "--force")
        while run.poll() is None:
            found = np.load("o.npy")
            assert np.array_equal(found, array[turn]) or turn == 0 or np.array_equal(found, array[turn - 1])
            looks += 1
        assert ended(run).returncode == 0, run.err
    return f"{looks} looks"


def check_1_to_64_threads():
    array = cube("a.npy", shape=(64, 128, 250))  # 8 MB, so that there is a pool
    expected = {"[::-1]": array[::-1], "[..., ::2]": array[..., ::2]}
    for index, values in expected.items():
        for threads in (*range(1, 10), 16, 31, 64):
            done_well(tslice("a.npy", index, "-o", "o.npy", "-f", "-j", threads))
            same("o.npy", values)
            with open("p.npy", "wb") as out:
                assert tslice("a.npy", index, "-j", threads, stdout=out).returncode == 0
            assert open("o.npy", "rb").read() == open("p.npy", "rb").read(), f"{threads} threads"


def check_one_pool_a_run():
    """A run that is many jobs starts no more threads than one job: counted by the calls that make them."""
    why = supervise.unavailable()
    if why:
        raise Skip(why)
    part = np.zeros((640, 1024), "f4")  # 2.5 MiB, so that each is a job of its own, with a pool
    files = [f"part-{number}.npy" for number in range(40)]
    for name in files:
        np.save(name, part)
    np.savez("kept.npz", **{f"t{number}": part for number in range(20)})
    shutil.copy("kept.npz", "again.npz")
    np.save("picture.npy", np.zeros((6000, 2000), "u1"))
    np.save("mask.npy", np.ones(10 << 20, bool))
    np.save("long.npy", np.zeros(10 << 20, "u1"))
    threads = 4
    runs = {
        "concat": ["concat", *files, "-o", "o.npy", "-j", threads],
        "kept": ["concat", "kept.npz", "again.npz", "-t", "t0", "--keep-rest", "-o", "o.npz", "-j", threads],
        "diff": ["diff", "kept.npz", "again.npz", "-j", threads],
        "stats": ["view", "kept.npz", "-t", "*", "--stats", "-j", threads],
        "picture": ["view", "picture.npy", "-o", "o.png", "--range", "p1,p99", "-j", threads],
        "masked": ["long.npy", "[@mask.npy]", "-o", "m.npy", "-j", threads],
    }
    counts = {}
    for name, args in runs.items():
        started = []
        note = lambda call: started.append(call.name) if call.name in ("clone", "clone3") else None
        with open(os.devnull, "r+b", buffering=0) as null:
            run = supervise.Run([harness.BIN, *map(str, args)], note, null.fileno(), null.fileno(), env=harness.env())
            assert run.go().status == 0, f"{name}: {run.status}"
        counts[name] = len(started)
    # a pool of the first job may be smaller than the one that replaces it; one thread waits for signals
    assert all(count <= 2 * threads for count in counts.values()), counts
    assert counts["concat"] >= threads, counts
    small = []
    note = lambda call: small.append(call.name) if call.name in ("clone", "clone3") else None
    with open(os.devnull, "r+b", buffering=0) as null:
        args = ["concat", "a.npy", "a.npy", "-o", "small.npy", "-j", "4"]
        np.save("a.npy", np.arange(5))
        assert supervise.Run([harness.BIN, *args], note, null.fileno(), null.fileno(), env=harness.env()).go().status == 0
    assert len(small) <= 1, small
    return ", ".join(f"{name} {count}" for name, count in counts.items())


# ---------------------------------------------------------------- folders and links


def check_a_link_that_comes_during_the_run():
    array = cube(shape=(30, 40, 50))
    with open("victim", "w") as file:
        file.write("victim")
    for force in ([], ["--force"]):
        if force:
            with open("o.npy", "w") as file:
                file.write("old")
        (run,), last = started(1, "[3]", "-o", "o.npy", *force)
        if force:
            os.unlink("o.npy")
        os.symlink("victim", "o.npy")
        run.stdin.write(last)
        run.stdin.close()
        run.stdin = None
        assert ended(run).returncode == (0 if force else 1), run.err
        assert open("victim").read() == "victim", "a link that came later was followed"
        if force:
            assert not os.path.islink("o.npy")
            same("o.npy", array[3])
        os.unlink("o.npy")


def check_a_folder_that_is_moved_during_the_run():
    array = cube(shape=(30, 40, 50))
    os.mkdir("d")
    os.mkdir("other")
    (run,), last = started(1, "[3]", "-o", "d/o.npy")
    os.rename("d", "moved")
    os.symlink("other", "d")
    run.stdin.write(last)
    run.stdin.close()
    run.stdin = None
    assert ended(run).returncode == 0, run.err
    assert not names("other"), "the output went where a later link leads"
    same("moved/o.npy", array[3])


def check_a_folder_that_is_removed_during_the_run():
    cube(shape=(30, 40, 50))
    os.mkdir("d")
    (run,), last = started(1, "[3]", "-o", "d/o.npy")
    os.rmdir("d")
    run.stdin.write(last)
    run.stdin.close()
    run.stdin = None
    assert ended(run).returncode == 1 and b"d/o.npy" in run.err, run.err


def check_folders_without_all_rights():
    """As an ordinary user, in a folder where nothing can be listed, and one where nothing can be made."""
    cube()
    options = {}
    if os.geteuid() == 0:
        os.chmod(".", 0o755)
        subprocess.run(["cp", harness.BIN, "program"], check=True)
        os.chmod("program", 0o755)
        options = dict(preexec_fn=lambda: (os.setgid(65534), os.setuid(65534)))
    program, harness.BIN = harness.BIN, os.path.abspath("program") if options else harness.BIN
    try:
        for mode, status in ((0o300, 0), (0o500, 1), (0o600, 1)):
            os.mkdir("d", 0o700)
            if options:
                os.chown("d", 65534, 65534)
            os.chmod("d", mode)
            for more in ([], ["--force"]):
                done = tslice("a.npy", "[0]", "-o", "d/o.npy", *more, **options)
                assert done.returncode == status, f"{mode:o}: {text(done)}"
            if status == 0:  # the folder cannot be opened to wait for it, so nothing is begun
                failed_well(tslice("a.npy", "[1]", "-o", "d/p.npy", "--fsync", **options), 1, "d/p.npy")
            os.chmod("d", 0o700)
            assert names("d") == (["o.npy"] if status == 0 else []), f"{mode:o}: {names('d')}"
            subprocess.run(["rm", "-r", "d"], check=True)
    finally:
        harness.BIN = program


def check_a_folder_whose_files_belong_to_others():
    """In a sticky folder of somebody else the second of three files cannot be replaced: the first is
    what it was, and no other name is left."""
    if os.geteuid() != 0:
        raise harness.Skip("needs root, to make files of several users")
    index = shards("in", 2, 1)
    os.mkdir("out")
    for name in names("in"):
        with open(os.path.join("out", name), "wb") as file:
            file.write(b"old")
        os.chown(os.path.join("out", name), *((65534, 65534) if name != "s00001.safetensors" else (0, 0)))
    os.chmod("out", 0o1777)
    os.chmod(".", 0o755)
    subprocess.run(["cp", harness.BIN, "program"], check=True)
    program, harness.BIN = harness.BIN, os.path.abspath("program")
    nobody = dict(preexec_fn=lambda: (os.setgid(65534), os.setuid(65534)))
    state = lambda: {name: (os.stat(f"out/{name}").st_ino, open(f"out/{name}", "rb").read()) for name in names("out")}
    try:
        before = state()
        done = tslice(index, "-t", "*", "-fo", "out/", **nobody)
        failed_well(done, 1, "out/s00001.safetensors: ", "not permitted")
        assert state() == before, state()
        os.chown("out/s00001.safetensors", 65534, 65534)
        done_well(tslice(index, "-t", "*", "-fo", "out/", **nobody))
        assert names("out") == names("in"), names("out")
        assert all(data != b"old" for _, data in state().values())
        stat = os.stat("out")
        assert (stat.st_mode & 0o7777, stat.st_uid) == (0o1777, 0), "the folder is another one"
    finally:
        harness.BIN = program


def check_a_standard_output_that_does_not_block():
    array = cube(shape=(300, 40, 50))
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    run = start("a.npy", "[::-1]", stdout=writer, stdin=subprocess.DEVNULL)
    os.close(writer)
    with open("o.npy", "wb") as out:
        while piece := os.read(reader, 65536):
            out.write(piece)
            time.sleep(0.001)
    os.close(reader)
    assert ended(run).returncode == 0, run.err
    same("o.npy", array[::-1])


def check_a_standard_input_that_does_not_block():
    array = cube(shape=(300, 40, 50))
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    run = start("-", "[::2]", "--drain", "-o", "o.npy", stdin=reader)
    os.close(reader)
    with open("a.npy", "rb") as file, open(writer, "wb", buffering=0) as pipe:
        while piece := file.read(100_000):
            pipe.write(piece)
            time.sleep(0.002)
    assert ended(run).returncode == 0, run.err
    same("o.npy", array[::2])


def check_few_descriptors():
    import resource
    array = cube()
    for most in range(5, 12):
        done = tslice("a.npy", "[0]", "-o", "o.npy", "-f",
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most)))
        if done.returncode == 0:
            same("o.npy", array[0])
            return f"{most} do"
        if done.returncode != 127:  # the loader's own
            failed_well(done, 1)
        assert names() == ["a.npy"], names()
    raise AssertionError("11 descriptors are not enough")


def shards(folder, files, tensors):
    """A checkpoint of some files of some tensors each, one byte a tensor."""
    os.mkdir(folder)
    weight_map = {}
    for file in range(files):
        name = f"s{file:05}.safetensors"
        held = {f"t{file}.{i}": ("U8", (1,), bytes([(file + i) % 251])) for i in range(tensors)}
        write_safetensors(os.path.join(folder, name), held)
        weight_map.update(dict.fromkeys(held, name))
    index = os.path.join(folder, "m.safetensors.index.json")
    with open(index, "w") as file:
        json.dump({"weight_map": weight_map}, file)
    return index


def check_checkpoints_of_700_files():
    """As many files out as the hard limit of descriptors allows; beyond it a clear error."""
    import resource
    index = shards("in", 700, 1)

    def limited(soft, hard):
        return dict(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)))

    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 1500:
        raise harness.Skip("the hard limit of descriptors is low")
    done_well(tslice(index, "-t", "*", "-o", "out/", **limited(1024, 1500)))
    assert len(names("out")) == 701
    for name in names("out"):
        if name.endswith(".safetensors"):
            with open(os.path.join("in", name), "rb") as ours, open(os.path.join("out", name), "rb") as theirs:
                assert ours.read()[-1:] == theirs.read()[-1:], name
    before = {name: os.stat(os.path.join("out", name)).st_ino for name in names("out")}
    failed_well(tslice(index, "-t", "*", "-fo", "out/", **limited(256, 600)), 1, "Too many open files", "ulimit")
    failed_well(tslice(index, "-t", "*", "-o", "new/", **limited(256, 600)), 1, "Too many open files", "ulimit")
    # files that are read need not all be open at a time
    done_well(tslice(index, "-t", "*", "-o", "o.safetensors", **limited(256, 256)))
    os.unlink("o.safetensors")
    assert before == {name: os.stat(os.path.join("out", name)).st_ino for name in names("out")}
    assert names() == ["in", "out"], names()


def check_archives_of_40000_deflated_members():
    """An inflater has some 40 kB: one is enough for all headers."""
    import io
    import zipfile
    memory = io.BytesIO()
    np.save(memory, np.arange(8, dtype="<i4"))
    with zipfile.ZipFile("a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(40_000):
            archive.writestr(f"layer{i}.npy", memory.getvalue())
    process, peak = within(120 * MIB, "a.npz", "-t", "layer39999", "[::-1]", "-o", "o.npy")
    assert process.returncode == 0, process.err
    same("o.npy", np.arange(8, dtype="<i4")[::-1])
    return f"{peak / MIB:.0f} MiB"


def check_archives_of_100000_members():
    """Far below 64 MiB: a member takes its name twice and some 250 bytes."""
    import io
    import zipfile
    count, changed = 100_000, 777
    memory = io.BytesIO()
    np.save(memory, np.arange(8, dtype="<i4"))
    with zipfile.ZipFile("a.npz", "w") as archive:
        for i in range(count):
            archive.writestr(f"layer.{i:06}.w.npy", memory.getvalue())
    name = f"layer.{changed:06}.w"
    peaks = []
    for limit, *args in [(40, "info", "a.npz"), (40, "info", "a.npz", "--json"),
                         (40 + 8, "a.npz", "-t", name, "[::2]", "-o", "o.npy", "-j", "2"),
                         (40 + 8, "a.npz", "-t", name, "[::2]", "--keep-rest", "-o", "o.npz", "-j", "2")]:
        process, peak = within(limit * MIB, *args)
        assert process.returncode == 0, process.err
        peaks.append(peak)
    same("o.npy", np.arange(0, 8, 2, dtype="<i4"))
    with np.load("o.npz") as archive:
        assert len(archive.files) == count
        for i in (0, changed, count - 1):
            expected = np.arange(8, dtype="<i4")[::2 if i == changed else 1]
            np.testing.assert_array_equal(archive[f"layer.{i:06}.w"], expected)
    return f"at most {max(peaks) / MIB:.0f} MiB"


def check_indexes_of_millions_of_tensors():
    """Of a sharded checkpoint: memory in proportion to the text of the index."""
    count = 1_000_000
    text = ",".join(f'"{i:x}":"a.safetensors"' for i in range(count))
    text = f'{{"weight_map":{{{text},"w":"b.safetensors"}}}}'
    with open("m.safetensors.index.json", "w") as file:
        file.write(text)
    write_safetensors("b.safetensors", {"w": ("U8", (1,), b"\7")})
    process, peak = within(4 * len(text), "m.safetensors.index.json", "-t", "w", "-o", "o.npy")
    assert process.returncode == 0, process.err
    same("o.npy", np.array([7], "u1"))
    failed_well(tslice("m.safetensors.index.json", "-t", "*"), 1, "a.safetensors")
    with open("m.safetensors.index.json", "w") as file:
        file.write(text[:-2] + ',"777":"a.safetensors"}}')
    failed_well(tslice("m.safetensors.index.json", "-t", "w"), 1, "two tensors are named '777'")
    return f"{peak / MIB:.0f} MiB for {len(text) / MIB:.0f} MiB"


def check_texts_of_gguf():
    """A text of 60 MB in the metadata is held once."""
    text = lambda value: struct.pack("<Q", len(value)) + value
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text(b"tokenizer.chat_template") + struct.pack("<I", 8)
    with open("t.gguf", "wb") as file:
        file.write(head + text(b"x" * 60_000_000))
    for flag in ([], ["--json"]):
        process, peak = within(100 * MIB, "info", "t.gguf", *flag)
        assert process.returncode == 0, process.err
    return f"{peak / MIB:.0f} MiB"


def check_names_of_a_megabyte():
    """A name is shown as far as people read it."""
    long = "n" * 1_000_000
    write_safetensors("m.safetensors", {long: ("U8", (2,), b"ab"), long + "2": ("U8", (2,), b"cd"),
                                        "c": ("U8", (1,), b"e")})
    for args in (["m.safetensors"], ["m.safetensors", "-t", "x"], ["m.safetensors", "-t", "n*", "5", "-o", "o.safetensors"],
                 ["gather", "m.safetensors", "--indices", "[0]"]):
        message = failed_well(tslice(*args), 1)
        assert len(message) < 2000, f"{args}: {len(message)} bytes of message"


def check_items_of_megabytes():
    """What prints or writes elements holds pieces of them; what compares them holds one of each file."""
    limit = 12 * MIB
    whole = 64 * MIB
    words = b"it's 6 megabytes, " * (6 * MIB // 18)
    plain = b"0123456789abcdef" * (6 * MIB // 16)
    strings = np.array([words, plain])
    points = np.array(["\u00e9'x" * (MIB // 3), ""])
    nested = np.zeros(2, [("a", [("x", "<f4"), ("y", "S4")], (MIB // 4,)), ("b", "<i2", (3, MIB // 4))])
    nested["a"]["y"][:, 7], nested["b"][1, 2, 5] = b"y", -3
    arrays = {"strings": strings, "points": points, "swapped": points.astype(points.dtype.newbyteorder(">")),
              "voids": strings[1:].view("V%d" % strings.itemsize)[:, None], "nested": nested}
    for name, array in arrays.items():
        np.save(name + ".npy", array)
        shown, _ = within_text(limit, "view", name + ".npy")
        assert shown.startswith(f"{array}\nshape "), f"view {name}: not what NumPy prints"
        changed = array.copy()
        changed.view("u1").reshape(-1)[-strings.itemsize // 3 * 2 if name == "strings" else -6] ^= 1
        np.save("changed.npy", changed)
        run, _ = within(whole, "diff", name + ".npy", name + ".npy")
        assert run.returncode == 0, run.err
        run, _ = within(whole, "diff", name + ".npy", "changed.npy")
        assert run.returncode == 1, run.err
    run, _ = within(whole, "diff", "points.npy", "swapped.npy")
    assert run.returncode == 0, run.err

    for name, array in ("strings", strings.astype("U")), ("points", points), ("swapped", points):
        csv, _ = within_text(limit, name + ".npy", "--to", "csv")
        quoted = ['"%s"' % text if "," in text or not text else text for text in array.tolist()]
        assert csv == "".join(line + "\n" for line in quoted), f"csv of {name}"
        written, _ = within_text(limit, name + ".npy", "--to", "json")
        assert json.loads(written) == array.tolist(), f"json of {name}"
    written, _ = within_text(limit, "nested.npy", "[1]", "--to", "json")
    written = json.loads(written)
    assert written["a"][7] == {"x": 0, "y": "y"} and written["b"] == nested[1]["b"].tolist(), "json of nested"


def within_text(limit, *args):
    """As `within`, and what was written to standard output."""
    with open("written", "wb") as file:
        run, peak = within(limit, *args, stdout=file)
    assert run.returncode == 0, run.err
    with open("written", encoding="utf-8") as file:
        return file.read(), peak


def main():
    options = harness.check_parser("black-box checks of tslice at the edges").parse_args()
    harness.begin(options)
    return harness.run_checks(globals(), "limits", options)


if __name__ == "__main__":
    sys.exit(main())
