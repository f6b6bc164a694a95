#!/usr/bin/env python3
"""Takes the screens of docs/terminal.md again, in a real terminal (tmux).

    python tests/terminal/capture.py --bin target/debug/tslice           write the page
    python tests/terminal/capture.py --bin target/debug/tslice --check   compare; exit status 1 if it differs

Every line of a `console` or `text` block that begins with `$ ` is typed into a terminal of 100 columns,
and what the screen shows then becomes the rest of the block. In a `text` block the screen is taken
while the command runs; bytes, rates and times differ from run to run, so `--check` passes these over.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "docs", "terminal.md")
WIDTH, HEIGHT = 100, 60

# a pipe that gives two thirds of a file, and the rest some seconds later
SLOWLY = 'slowly() { size=$(stat -c %s "$1"); head -c $((size * 2 / 3)) "$1"; sleep 4; tail -c +$((size * 2 / 3 + 1)) "$1"; }'


def write_files(folder):
    z, y, x = np.indices((32, 64, 64))
    distance = 4 * (2 * z - 31) ** 2 + (2 * y - 63) ** 2 + (2 * x - 63) ** 2
    np.save(os.path.join(folder, "ball.npy"), (np.maximum(0, 4096 - distance) / 4096).astype("<f4"))
    count = np.arange(48 * 48 * 64 * 4 * 100, dtype="u4") % 251
    np.save(os.path.join(folder, "photos.npy"), count.astype("u1").reshape(4800, 48, 64, 4))
    bytes_ = (np.arange(20 * 28 * 30 * 8) % 251).astype("u1")
    np.save(os.path.join(folder, "volume.npy"), bytes_.view("<f8").reshape(20, 28, 30, order="F"))


class Terminal:
    """A shell in a terminal of its own."""

    def __init__(self, folder, program):
        self.socket = f"tslice-{os.getpid()}"
        path = f"{os.path.dirname(os.path.abspath(program))}:{os.environ['PATH']}"
        # the prompt wakes up whoever waits for a command to end
        prompt = f"tmux -L {self.socket} wait-for -S prompt"
        rc = os.path.join(folder, ".rc")
        with open(rc, "w") as file:
            file.write(f"PS1='$ '\nPATH='{path}'\n{SLOWLY}\nPROMPT_COMMAND='{prompt}'\n")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(WIDTH), "-y", str(HEIGHT), "-c", folder,
                  "env", "-u", "NO_COLOR", "bash", "--noprofile", "--rcfile", rc)
        self.wait()

    def tmux(self, *args):
        return subprocess.run(["tmux", "-L", self.socket, *args], check=True, timeout=60,
                              stdout=subprocess.PIPE, text=True).stdout

    def wait(self):
        self.tmux("wait-for", "prompt")

    def type(self, text):
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def run(self, command):
        """What is shown below a command when it has ended."""
        self.type(command)
        self.wait()
        time.sleep(0.1)
        return self.shown()[:-1]

    def while_it_runs(self, command, seconds):
        self.type(command)
        time.sleep(seconds)
        shown = self.shown()
        self.wait()
        return shown

    def shown(self):
        """The lines of the screen below the command, which fits one line."""
        lines = [line.rstrip() for line in self.tmux("capture-pane", "-p").splitlines()]
        while lines and not lines[-1]:
            lines.pop()
        return lines[1:]

    def clear(self):
        self.type("clear")
        self.wait()
        time.sleep(0.1)

    def close(self):
        self.tmux("kill-server")


def taken(terminal, kind, commands):
    lines = []
    for command in commands:
        terminal.clear()
        lines.append(f"$ {command}")
        if kind == "console":
            lines += terminal.run(command)
        else:
            lines += terminal.while_it_runs(command, 2)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="target/debug/tslice")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    with open(PAGE) as file:
        page = file.read()
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        terminal = Terminal(folder, options.bin)

        def block(found):
            nonlocal differ
            kind, text = found.groups()
            commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
            now = "\n".join(taken(terminal, kind, commands)) + "\n"
            if options.check and kind == "console" and now != text:
                differ += 1
                print(f"is on the page:\n{text}\nis shown:\n{now}")
            return f"```{kind}\n{now}```\n"

        try:
            page = re.sub(r"```(console|text)\n(.*?)```\n", block, page, flags=re.S)
        finally:
            terminal.close()
    if options.check:
        sys.exit(f"{differ} screens differ" if differ else 0)
    with open(PAGE, "w") as file:
        file.write(page)


if __name__ == "__main__":
    main()
