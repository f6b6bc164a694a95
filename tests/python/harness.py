"""What the tests of this folder share: how the program is found, run and judged, and how results
are counted.

A script makes its `parser`, gives what was parsed to `begin`, and ends with the exit status that
one of these returns, which prints `N passed, N failed` as the last line:

    run_checks   functions named `check_...`, each in an empty folder of its own (promises, limits)
    run_cases    random cases, each a function of (seed, number), in several processes (*differential)
    Tally        anything else that is counted (containers, faults)
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np

MIB = 1 << 20
TIMEOUT = 60
BIN = ""


class Skip(Exception):
    """Why this machine cannot make the check."""


class Failure(Exception):
    """What tslice did that it should not have done."""


# ---------------------------------------------------------------- the command line of a test


def parser(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bin", default="target/debug/tslice")
    return parser


def begin(options):
    """Takes the program that the options name, or ends with a message."""
    global BIN
    BIN = os.path.abspath(options.bin)
    if not os.access(BIN, os.X_OK):
        sys.exit(f"no program at {options.bin}")
    # Where nohup or a script had these ignored, what is started from here would ignore them too;
    # a handler is not inherited.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


# ---------------------------------------------------------------- running the program


def env(**more):
    base = {k: v for k, v in os.environ.items() if k != "RUST_BACKTRACE"}
    return dict(base, NO_COLOR="1", **more)


def tslice(*args, **options):
    """Runs the program to its end; standard input is empty unless given."""
    if "input" not in options:
        options.setdefault("stdin", subprocess.DEVNULL)
    for stream in ("stdout", "stderr"):
        options.setdefault(stream, subprocess.PIPE)
    options.setdefault("env", env())
    options.setdefault("timeout", TIMEOUT)
    return subprocess.run([BIN, *map(str, args)], **options)


def start(*args, **options):
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.DEVNULL)
    options.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen([BIN, *map(str, args)], env=env(), **options)


def shell(script, **more):
    """A bash script, in which $tslice is the program."""
    return subprocess.run(["bash", "-c", script], env=env(tslice=BIN, **more), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT)


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.002)
    return False


def peak_rss_anon(process):
    """Bytes: the highest RssAnon seen until the process ends."""
    peak = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status") as file:
                found = re.search(r"RssAnon:\s+(\d+) kB", file.read())
            peak = max(peak, int(found[1]) * 1024 if found else 0)
        except OSError:
            pass
        time.sleep(0.003)
    return peak


# ---------------------------------------------------------------- judging a run


def text(done):
    return f"exit status {done.returncode}, stdout {done.stdout!r:.300}, stderr {done.stderr!r:.600}"


def done_well(done):
    assert done.returncode == 0, text(done)
    assert not done.stderr, text(done)
    return done


def failed_well(done, status, *says):
    """One `tslice: ` message, lower case, that holds the given words; nothing on standard output."""
    assert done.returncode == status, f"expected exit status {status}: {text(done)}"
    message = done.stderr.decode(errors="replace")
    assert message.startswith("tslice: "), text(done)
    first = message[len("tslice: "):len("tslice: ") + 1]
    assert not first.isupper(), f"not lower case: {text(done)}"
    assert "panicked" not in message, text(done)
    assert not done.stdout, text(done)
    for word in says:
        assert word in message, f"the message does not say {word!r}: {text(done)}"
    return message


def same(path, array):
    """The file is what np.save writes of this array."""
    found = np.load(path)
    assert found.shape == array.shape and found.dtype == array.dtype, f"{found.shape} {found.dtype}"
    assert np.array_equal(found, array), f"{path} holds other values"


def names(folder="."):
    return sorted(os.listdir(folder))


# ---------------------------------------------------------------- counting


class Tally:
    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, good, why=""):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {name}: {why}", flush=True)

    def finish(self):
        """Prints the last line; the exit status."""
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def check_parser(description):
    """The command line of a script that ends in `run_checks`."""
    checks = parser(description)
    checks.add_argument("--only", help="run the checks whose name holds this")
    return checks


def run_checks(checks, title, options):
    """Runs every function of `checks` that is named so; the exit status."""
    home, tally, skipped = os.getcwd(), Tally(), 0
    for name, check in list(checks.items()):
        if not name.startswith("check_") or (options.only and options.only not in name):
            continue
        folder, begun = tempfile.mkdtemp(prefix=f"tslice-{title}-"), time.monotonic()
        os.chdir(folder)
        words = name[len("check_"):].replace("_", " ")
        try:
            note = check()
            tally.passed += 1
            print(f"ok       {words}{f': {note}' if note else ''} ({time.monotonic() - begun:.1f} s)", flush=True)
        except Skip as reason:
            skipped += 1
            print(f"SKIPPED  {words}: {reason}", flush=True)
        except Exception as error:
            tally.failed += 1
            where = traceback.extract_tb(error.__traceback__)
            line = next((f for f in where if f.name == name), where[-1])
            print(f"FAILED   {words}: line {line.lineno}: {line.line}\n         "
                  f"{type(error).__name__}: {error}", flush=True)
        finally:
            os.chdir(home)
            subprocess.run(["chmod", "-R", "u+rwX", folder], stderr=subprocess.DEVNULL)
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{title}: {skipped} skipped")
    return tally.finish()


def case_parser(description, count):
    """The command line of a script that ends in `run_cases`."""
    cases = parser(description)
    cases.add_argument("--count", type=int, default=count)
    cases.add_argument("--seed", type=int, default=1)
    cases.add_argument("--only", type=int, help="run this case alone")
    cases.add_argument("--keep", action="store_true", help="leave the files of the cases")
    cases.add_argument("--jobs", type=int, default=max(2, os.cpu_count() or 2))
    cases.add_argument("--show", type=int, default=20, help="print at most this many failures")
    return cases


def run_case(case, kind, number, keep):
    """Runs a function on a case, which has a folder and tells its story; None, or what went wrong."""
    try:
        kind(case)
        return None
    except Failure as failure:
        problem = str(failure)
    except Exception as error:  # a case that the test itself cannot judge is a failure too
        problem = "the test itself: " + repr(error) + "\n" + traceback.format_exc()
    finally:
        if not keep:
            shutil.rmtree(case.dir, ignore_errors=True)
    story = "\n  ".join([f"FAILED case {number} ({kind.__name__})", *case.story, problem])
    return story + (f"\n  files: {case.dir}" if keep else "")


def run_cases(title, options, one, initializer=None, words=()):
    """Runs `one((options, number))`, a function of a module, for each case; the exit status. It
    answers None, or what went wrong. `words` go with --seed and --only to run a case again."""
    script = " ".join([f"tests/python/{title}.py", *words])
    numbers = range(options.count) if options.only is None else [options.only]
    jobs = [(options, number) for number in numbers]
    started, tally = time.monotonic(), Tally()
    method = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(options.jobs, method, initializer=initializer) as workers:
        results = workers.map(one, jobs, chunksize=max(1, min(50, len(jobs) // 8)))
        for number, problem in zip(numbers, results):
            if problem is None:
                tally.passed += 1
                continue
            tally.failed += 1
            if tally.failed <= options.show:
                print(problem)
                print(f"  again: python {script} --bin {shlex.quote(options.bin)} "
                      f"--seed {options.seed} --only {number} --keep", flush=True)
    print(f"{title}: seed {options.seed}, NumPy {np.__version__}, {time.monotonic() - started:.1f} s")
    return tally.finish()
