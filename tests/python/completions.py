#!/usr/bin/env python3
"""Completions in real shells: bash, zsh, fish and elvish, in tmux, with a tab.

    python tests/python/completions.py [--bin target/debug/tslice] [--shell zsh] [--install]

Each case starts a shell, loads what `tslice completions SHELL` prints, types a line and a tab, and
looks at the screen. Names of tensors with special characters are completed and the line is run, so
that whatever quotes a shell has put there, the program must get the name. --install fetches tmux
and the shells that are missing with apt-get; without it they are skipped with a message.

PowerShell is skipped unless `pwsh` is there.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from formats import write_safetensors

ROOT = Path(__file__).resolve().parents[2]

# how a shell is started without anybody's settings, and what it is told first
SHELLS = {
    "bash": (["bash", "--noprofile", "--norc", "-i"],
             "PS1='$ '; HISTFILE=; source <(tslice completions bash)"),
    "zsh": (["zsh", "-f", "-i"],
            "PS1='$ '; autoload -U compinit; compinit -D; source <(tslice completions zsh)"),
    "fish": (["fish", "--no-config", "--private", "-i"],
             "function fish_prompt; echo '$ '; end; function fish_right_prompt; end; "
             "tslice completions fish | source"),
    "elvish": (["elvish", "-norc"],
               "set edit:prompt = { put '$ ' }; set edit:rprompt = { put '' }; "
               "eval (tslice completions elvish | slurp)"),
    "pwsh": (["pwsh", "-NoProfile", "-NoLogo"],
             "function prompt { '$ ' }; tslice completions powershell | Out-String | Invoke-Expression"),
}

# What is typed, and the line after a tab. A `|` marks the cursor, so that a space behind a word counts.
LINES = [
    ("tslice in", "tslice info |"),
    ("tslice sl", "tslice sl|"),
    ("tslice pho", "tslice photos.npy |"),
    ("tslice my", r"tslice my\ file.npy |"),
    ("tslice data/s", "tslice data/sub/|"),
    ("tslice ~/data/s", "tslice ~/data/sub/|"),
    ("tslice $HOME/pho", "tslice $HOME/photos.npy |"),
    ("tslice photos.npy --outp", "tslice photos.npy --output |"),
    ("tslice photos.npy '[::2]' --outp", "tslice photos.npy '[::2]' --output |"),
    ("tslice photos.npy -1 --keepd", "tslice photos.npy -1 --keepdims |"),
    ("tslice photos.npy -o my", r"tslice photos.npy -o my\ file.npy |"),
    ("tslice photos.npy --output=my", r"tslice photos.npy --output=my\ file.npy |"),
    ("tslice photos.npy --to saf", "tslice photos.npy --to safetensors |"),
    ("tslice photos.npy --to=saf", "tslice photos.npy --to=safetensors |"),
    ("tslice photos.npy --part pl", "tslice photos.npy --part plan/|"),
    ("tslice photos.npy --cast bf", "tslice photos.npy --cast bfloat16 |"),
    ("tslice --to npz pho", "tslice --to npz photos.npy |"),
    ("tslice gather pho", "tslice gather photos.npy |"),
    ("tslice gather photos.npy --indi", "tslice gather photos.npy --indices|"),
    ("tslice gather photos.npy --indices pho", "tslice gather photos.npy --indices photos.npy |"),
    ("tslice gather x.npy --out-of-range wr", "tslice gather x.npy --out-of-range wrap |"),
    ("tslice assign photos.npy --value pho", "tslice assign photos.npy --value photos.npy |"),
    ("tslice assign x.npy --value model.safetensors --value-tensor hea",
     "tslice assign x.npy --value model.safetensors --value-tensor head/bias |"),
    ("tslice scatter x.npy --values pho", "tslice scatter x.npy --values photos.npy |"),
    ("tslice concat photos.npy pho", "tslice concat photos.npy photos.npy |"),
    ("tslice concat a.npy b.npy --ax", "tslice concat a.npy b.npy --axis |"),
    ("tslice stack --files-from pho", "tslice stack --files-from photos.npy |"),
    ("tslice split photos.npy --ev", "tslice split photos.npy --every |"),
    ("tslice view photos.npy --colormap mag", "tslice view photos.npy --colormap magma |"),
    ("tslice diff photos.npy pho", "tslice diff photos.npy photos.npy |"),
    ("tslice info photos.npy pho", "tslice info photos.npy photos.npy |"),
    ("tslice explain pho", "tslice explain photos.npy |"),
    ("tslice completions fi", "tslice completions fish |"),
    ("tslice model.safetensors -t hea", "tslice model.safetensors -t head/bias |"),
    ("tslice model.safetensors --tensor=hea", "tslice model.safetensors --tensor=head/bias |"),
    ("tslice model.safetensors --rename hea", "tslice model.safetensors --rename head/bias=|"),
    ("tslice points.npy --field vel", "tslice points.npy --field velocity |"),
]

# elvish shows what it quotes, and most paths, as a list of one to choose from.
NOT_ELVISH = {"tslice photos.npy --to=saf", "tslice model.safetensors --tensor=hea",
              "tslice model.safetensors --rename hea", "tslice my", "tslice photos.npy -o my",
              "tslice photos.npy --output=my", "tslice $HOME/pho", "tslice ~/data/s"}

# What is typed, and words that are listed, and some that are not.
LISTS = [
    ("tslice ", ["gather", "completions", "photos.npy", "data/"], ["--output"]),
    ("tslice photos.npy -", ["--output", "--begin-mask", "-T"], ["gather"]),
    ("tslice photos.npy --in", ["--input-order"], []),
    ("tslice gather photos.npy --out", ["--out-of-range", "--output"], ["--force"]),
    ("tslice photos.npy --to ", ["npy", "safetensors", "json"], ["photos.npy "]),
    ("tslice photos.npy --part ", ["auto", "status", "discard", "plan/"], []),
    ("tslice completions ", ["bash", "elvish", "fish", "powershell", "zsh"], ["photos.npy"]),
    ("tslice model.safetensors -t layers.", ["layers.0.weight", "layers.1.weight"], ["head"]),
    ("tslice diff model.safetensors photos.npy -t layers.", ["layers.0.weight"], []),
]

# Names of tensors, each with its own first letter.
NAMES = ["A b", "B/c.d", "C'd", 'D"e', "E$f", "F*g", "G:h=i", "H;j&k", "I#l", "J(m)", "K\\n", "L!o",
         "M{a,b}", "N~p", "O ünï", "P%q", "Q<r>", "R`s", "S|t", "U[0]", "V?w", "W@x", "X^y"]

PROMPT = "$ "


class Screen:
    """A shell in a terminal."""

    def __init__(self, shell, folder, program):
        self.server = f"tslice-{os.getpid()}-{id(self)}-{time.monotonic_ns()}"
        # nothing but what it needs: no settings of the one who runs the test
        path = f"{program.parent}:{os.environ['PATH']}"
        environment = {"PATH": path, "HOME": str(folder), "TERM": "xterm-256color",
                       "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
        argv, first = SHELLS[shell]
        subprocess.run(["tmux", "-f", "/dev/null", "-L", self.server, "new-session", "-d", "-x",
                        "160", "-y", "80", shlex.join(["env", "-i",
                        *(f"{name}={value}" for name, value in environment.items()), *argv])],
                       cwd=folder, env=dict(environment), check=True)
        self.wait(lambda text: text.strip())
        self.settle(0.15)
        self.type(first)
        self.key("Enter")
        self.wait(lambda text: text.splitlines()[-1:] == [PROMPT.rstrip()])
        self.settle(0.15)

    def tmux(self, *args):
        run = subprocess.run(["tmux", "-L", self.server, *args], capture_output=True, text=True)
        return run.stdout

    def text(self):
        shown = self.tmux("capture-pane", "-p", "-J")
        return "\n".join(line.rstrip() for line in shown.splitlines()).rstrip()

    def type(self, text):
        self.tmux("send-keys", "-l", "--", text)

    def key(self, name):
        self.tmux("send-keys", name)

    def wait(self, done, seconds=6.0):
        """The screen as soon as it is as wanted, or as it is after some seconds."""
        end = time.monotonic() + seconds
        while not done(text := self.text()) and time.monotonic() < end:
            time.sleep(0.02)
        return text

    def settle(self, quiet):
        """The screen when it has not changed for a while."""
        text, since = self.text(), time.monotonic()
        while time.monotonic() - since < quiet:
            time.sleep(0.02)
            if (now := self.text()) != text:
                text, since = now, time.monotonic()
        return text

    def close(self):
        self.tmux("kill-server")


def last_line(text):
    """The line that is being typed."""
    lines = [line for line in text.splitlines() if line.startswith((PROMPT, "~$ "))]
    return lines[-1][len(PROMPT):] if lines else ""


def check_line(screen, typed, expected):
    """None, or what is wrong."""
    before, _ = expected.split("|")
    screen.type(typed)
    screen.wait(lambda text: last_line(text).rstrip() == typed.rstrip())
    screen.key("Tab")
    # what is typed next shows where the cursor stands
    screen.type("Z")
    text = screen.wait(lambda text: last_line(text) == before + "Z", 4)
    return None if last_line(text) == before + "Z" else f"{last_line(text)!r}, not {before + 'Z'!r}"


def check_list(screen, shell, typed, listed, not_listed):
    screen.type(typed)
    screen.wait(lambda text: last_line(text).rstrip() == typed.rstrip())
    screen.key("Tab")
    if shell == "bash":
        screen.settle(0.2)
        screen.key("Tab")

    def shown(text):
        return "\n".join(line for line in text.splitlines() if not line.startswith(PROMPT)) + "\n"

    text = screen.wait(lambda text: all(word in shown(text) for word in listed))
    text = text if all(word in shown(text) for word in listed) else screen.settle(0.5)
    # a shell may complete what all have in common, and leave one
    missing = [word for word in listed if word not in shown(text) and word not in last_line(text)]
    extra = [word for word in not_listed if word in shown(text)]
    return f"missing {missing}, not wanted {extra}:\n{text}" if missing or extra else None


def check_name(screen, shell, quote, name):
    screen.type(f"tslice info names.safetensors -t {quote}{name[0]}")
    screen.key("Tab")
    screen.settle(0.25)
    if shell == "elvish":
        # out of the list of candidates
        screen.key("Enter")
        screen.settle(0.25)
    screen.key("Enter")

    def rows(text):
        return [line.split("int64")[0].strip() for line in text.splitlines() if "int64" in line]

    text = screen.wait(lambda text: rows(text) or "tslice: " in text)
    return None if rows(text) == [name] else text


def write_files(folder):
    import numpy as np

    np.save(folder / "photos.npy", np.zeros((4, 6, 3), "u1"))
    np.save(folder / "my file.npy", np.zeros(3))
    np.save(folder / "points.npy", np.zeros(3, [("x", "f4"), ("velocity", "f8", (3,))]))
    (folder / "data" / "sub").mkdir(parents=True)
    np.save(folder / "data" / "sub" / "one.npy", np.zeros(3))
    write_safetensors(folder / "names.safetensors", {name: ("I64", [2], bytes(16)) for name in NAMES})
    model = ["head/bias", "layers.0.weight", "layers.1.weight"]
    write_safetensors(folder / "model.safetensors", {name: ("F32", [2], bytes(8)) for name in model})


def available(shells, install):
    """The shells that can be tried."""
    programs = {"tmux": "tmux", **{SHELLS[shell][0][0]: shell for shell in shells}}
    missing = [program for program in programs if not shutil.which(program)]
    fetched = [program for program in missing if program != "pwsh"]
    if install and fetched:
        prefix = [] if os.getuid() == 0 else ["sudo", "-n"]
        subprocess.run([*prefix, "apt-get", "update", "-q"], stdout=subprocess.DEVNULL)
        subprocess.run([*prefix, "apt-get", "install", "-q", "-y", *fetched],
                       stdout=subprocess.DEVNULL)
    if not shutil.which("tmux"):
        sys.exit("tmux is missing: --install fetches it")
    for shell in shells:
        if shutil.which(SHELLS[shell][0][0]):
            yield shell
        else:
            print(f"skipped: {shell} is not here")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="target/debug/tslice")
    parser.add_argument("--shell", action="append", choices=list(SHELLS))
    parser.add_argument("--install", action="store_true", help="fetch what is missing with apt-get")
    parser.add_argument("--only", default="", help="the cases that hold this text")
    parser.add_argument("--jobs", type=int, default=4, help="so many terminals at a time")
    args = parser.parse_args()
    program = (Path.cwd() / args.bin).resolve()
    if program.name != "tslice" or not program.exists():
        sys.exit(f"{program} is not there, or not named tslice")

    passed = failed = 0
    for shell in available(args.shell or list(SHELLS), args.install):
        cases = [(typed, check_line, (typed, line)) for typed, line in LINES
                 if shell != "elvish" or typed not in NOT_ELVISH]
        cases += [(typed, check_list, (shell, typed, *words)) for typed, *words in LISTS]
        quotes = {"bash": ["", "'", '"'], "zsh": ["", "'", '"'], "fish": ["", "'", '"']}
        cases += [(f"name {quote}{name}", check_name, (shell, quote, name))
                  for quote in quotes.get(shell, [""]) for name in NAMES
                  # no shell can put an exclamation mark into double quotes
                  if (quote, name) != ('"', "L!o")]
        chosen = [case for case in cases if args.only in case[0]]

        def run(case):
            label, check, rest = case
            # a tab may create files, such as a history
            with tempfile.TemporaryDirectory() as folder:
                write_files(Path(folder))
                screen = Screen(shell, Path(folder), program)
                try:
                    return label, check(screen, *rest)
                finally:
                    screen.close()

        with ThreadPoolExecutor(args.jobs) as pool:
            for label, wrong in pool.map(run, chosen):
                passed += wrong is None
                if wrong is not None:
                    failed += 1
                    print(f"{shell}: {label}\n    {wrong}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
