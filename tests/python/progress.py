#!/usr/bin/env python3
"""The progress bar: shown for work beyond a second on a terminal, and nowhere else.

    python tests/python/progress.py --bin target/debug/tslice

Commands are made slow by a pipe: the input comes slowly, or nobody reads the output. Standard error
is a pseudo-terminal of 80 columns, where the bar must appear and say the right total. Off a terminal
and with -q nothing may be said.
"""

import fcntl
import os
import re
import struct
import subprocess
import sys
import termios
import threading
import time

import numpy as np

import harness
from formats import safetensors_file
from harness import start

# rows and columns of the files, of one byte an element
ROWS, COLUMNS = 1000, 2500

# For each job: the command; the file that comes slowly through standard input, none where the output
# is not read; and what the bar says besides bytes, rate and time.
FILE, TWO = "of 2.50 MB", "of 5.00 MB"
READING, ALL = "reading * of 2.50 MB", "reading"
JOBS = {
    "slice": ("a.npy ::-1", None, FILE),
    "slice of a pipe": ("- ::2 -o slice.npy", "a.npy", "of 1.25 MB"),
    "slice of a pipe, backwards": ("- ::-1 -o backwards.npy", "b.npy", "reading * of 7.50 MB"),
    "relayout": ("f.npy", None, FILE),
    "cast": ("a.npy --cast u2", None, TWO),
    "lists": ("a.npy [@idx.npy]", None, FILE),
    "conversion": ("m.safetensors --to npz", None, FILE),
    "deflate": ("a.npy --to npz --deflate", None, FILE),
    "text": ("a.npy --to csv", None, FILE),
    "archive in a pipe": ("- -o archive.npy", "z.npz", ALL),
    "raw bytes in a pipe": ("- --dtype u1 --shape -1,2500 -o raw.npy", "raw.bin", ALL),
    "gather": ("gather a.npy --axis 0 --indices idx.npy", None, FILE),
    "gather_nd": ("gather a.npy --indices tuples.npy", None, FILE),
    "gather of a pipe": ("gather - --axis 0 --indices idx.npy -o gather.npy", "a.npy", READING),
    "indices in a pipe": ("gather a.npy --axis 0 --indices - -o indices.npy", "million.npy", "reading * of 8.00 MB"),
    "indices as text": ("gather a.npy --axis 0 --indices - -o numbers.npy", "numbers.txt", ALL),
    "list as text": ("a.npy [@-] -o numbered.npy", "numbers.txt", ALL),
    "assign": ("assign a.npy --value - -o assign.npy", "a.npy", READING),
    "scatter": ("scatter a.npy --indices tuples.npy --values - -o scatter.npy", "a.npy", READING),
    "concat": ("concat a.npy a.npy", None, TWO),
    "concat of a pipe": ("concat a.npy - -o concat.npy", "a.npy", TWO),
    "stack": ("stack a.npy a.npy --axis -1", None, TWO),
    "split": ("split - --at 333,666 -o split-{}.npy", "a.npy", FILE),
    "split across a pipe": ("split - --axis 1 --at 833,1666 -o across-{}.npy", "a.npy", READING),
    "diff": ("diff - a.npy", "a.npy", FILE),
    "statistics": ("view - --stats", "a.npy", FILE),
    "values": ("view -", "a.npy", READING),
    "picture": ("view - -o picture.png --width 100", "a.npy", READING),
}


def write_files():
    rng = np.random.default_rng(1)
    array = rng.integers(0, 255, (ROWS, COLUMNS), dtype="u1")
    np.save("a.npy", array)
    np.save("b.npy", np.concatenate([array] * 3))
    np.save("f.npy", np.asfortranarray(array))
    np.savez("z.npz", a=array)
    array.tofile("raw.bin")
    np.save("idx.npy", rng.permutation(ROWS))
    np.save("tuples.npy", rng.permutation(ROWS)[:, None])
    np.save("million.npy", np.zeros(1_000_000, "<i8"))
    with open("numbers.txt", "w") as file:
        file.write("7\n" * 100_000)
    with open("m.safetensors", "wb") as file:
        file.write(safetensors_file({"x": ("U8", array.shape, array.tobytes())}))


class Slow:
    """A run whose pipe is held back until `enough` says that it may go on, and what it said on standard
    error until then."""

    def __init__(self, job, enough, flags=(), terminal=True):
        command, self.stdin, self.expected = job
        self.args, self.enough, self.terminal = [*command.split(), *flags], enough, terminal
        self.said = self.before = b""
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        leader, follower = os.openpty() if self.terminal else os.pipe()
        if self.terminal:
            fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        listener = threading.Thread(target=self.listen, args=(leader,))
        listener.start()
        pipe = "stdin" if self.stdin else "stdout"
        process = start(*self.args, stderr=follower, **{pipe: subprocess.PIPE})
        os.close(follower)
        data = b""
        if self.stdin:
            with open(self.stdin, "rb") as file:
                data = file.read()
            process.stdin.write(data[:len(data) // 3])
            process.stdin.flush()
        self.enough(self)
        self.before = self.said
        if self.stdin:
            process.stdin.write(data[len(data) // 3:])
            process.stdin.close()
        else:
            process.stdout.read()
            process.stdout.close()
        self.status = process.wait(harness.TIMEOUT)
        listener.join(harness.TIMEOUT)

    def listen(self, leader):
        while True:
            try:
                data = os.read(leader, 1 << 16)
            except OSError:  # the other end of a terminal is gone
                break
            if not data:
                break
            self.said += data
        os.close(leader)

    def result(self):
        self.thread.join()
        assert self.status == 0, f"{self.args}: exit status {self.status}: {self.said!r}"
        return self.before.decode(errors="replace")


def lines(said):
    """What a terminal showed, one after the other, in the line of the bar."""
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\r", said)
    return [line.strip() for line in shown.split("\r") if line.strip()]


BYTES, RATE = r"[\d.]+ [kM]?B", r"[\d.]+ [kMG]?B/s"


def pattern(expected):
    if expected == ALL:
        return rf"reading {BYTES}, {RATE}"
    before, _, total = expected.rpartition("of ")
    return rf"{before.replace('*', '').strip()} ?[█▉▊▋▌▍▎▏░▒▓ ]+ {BYTES} of {re.escape(total)}, {RATE}, \w+ left"


def check_a_bar_appears_for_slow_work():
    write_files()
    shown = lambda run: harness.wait_until(lambda: len(lines(run.said.decode(errors="replace"))) > 2, 40)
    runs = {name: Slow(job, shown) for name, job in JOBS.items()}
    problems = []
    for name, run in runs.items():
        found = lines(run.result())
        if not found or not re.fullmatch(pattern(run.expected), found[-1]):
            problems.append(f"{name}: expected {pattern(run.expected)!r}, shown is {found[-1:]}")
        elif max(map(len, found)) > 80:
            problems.append(f"{name}: wider than the terminal: {found}")
        elif not run.said.endswith(b"\x1b[2K") and b"\x1b[" in run.said:
            problems.append(f"{name}: the bar is left behind: {run.said[-60:]!r}")
    assert not problems, "\n".join(problems)
    return f"{len(runs)} jobs"


def check_nothing_is_said_off_a_terminal_or_with_q():
    write_files()
    held = lambda run: time.sleep(1.6)
    off = {name: Slow(job, held, terminal=False) for name, job in JOBS.items()}
    for name, run in off.items():
        run.result()
        assert not run.said, f"{name}: {run.said!r}"
    for name in JOBS:
        for output in re.findall(r"-o (\S+)", JOBS[name][0]):
            for number in "012":
                if os.path.exists(output.replace("{}", number)):
                    os.remove(output.replace("{}", number))
    quiet = {name: Slow(job, held, flags=["-q"]) for name, job in JOBS.items()}
    for name, run in quiet.items():
        run.result()
        assert not run.said, f"{name} -q: {run.said!r}"


def main():
    options = harness.check_parser(__doc__.splitlines()[0]).parse_args()
    harness.begin(options)
    sys.exit(harness.run_checks(globals(), "progress", options))


if __name__ == "__main__":
    main()
