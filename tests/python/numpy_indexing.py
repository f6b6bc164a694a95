#!/usr/bin/env python3
"""NumPy's own tests of indexing, with the program behind the brackets.

    pip install pytest
    python tests/python/numpy_indexing.py --bin target/release/tslice

Loads numpy/_core/tests/test_indexing.py of the installed NumPy and gives it a class of arrays that
do every `a[index]` and `a[index] = value` of the tests twice: NumPy's way, and by `tslice a.npy INDEX`
or `tslice assign`. The test goes on with the program's elements in NumPy's result, so that it is the
program that the test's assertions hold; views and references stay NumPy's. Where NumPy refuses, the
program must refuse too, and the test sees the program's words. Where shapes, dtypes or elements differ,
the test fails.

What no index of the program can say is done by NumPy alone, and counted by reason. A test that has
nothing to say at all must be named in NOTHING_TO_SAY. It takes about two minutes; `.ci/run` does not
run it. Needs NumPy 2 and pytest.
"""

import collections
import io
import os
import sys
import tempfile

import numpy as np

import harness
from harness import Failure

try:
    import pytest
except ImportError:
    sys.exit("numpy_indexing.py needs pytest: pip install pytest")

# Tests, or classes of them, in which no array is indexed in a way that can be said, and why.
NOTHING_TO_SAY = {
    "test_flatiter_method_signatures": "the methods of a.flat",
    "TestFlatiterIndexing": "a.flat, an iterator",
    "test_subclass_writeable": "arrays of another class",
    "TestSubclasses": "arrays of another class",
    "test_non_integer_argument_errors": "arguments of np.reshape and np.take",
    "test_non_integer_sequence_multiplication": "products of lists",
    "test_reduce_axis_float_index": "an axis of np.min",
    "test_bool_as_int_argument_errors": "arguments of np.reshape and np.take",
    "test_array_to_index_error": "arguments of np.reshape and np.take",
}

# Tests that fail with such a class, and why.
BEYOND = {
    "TestCApiAccess": "NumPy's C functions, not brackets",
    "test_void_scalar_empty_tuple": "the class of the result",
    "test_too_many_fancy_indices_special_case": "64 lists at once, a limit of NumPy's that tslice does not have",
    "test_too_many_advanced_indices": "64 lists at once, a limit of NumPy's that tslice does not have",
}

TESTS = "numpy._core.tests.test_indexing"

# The modules that index for a test: itself, and assert_raises.
CALLERS = {"unittest.case"}


class Unsaid(Exception):
    """Why an index or an assignment cannot be said."""


class Counts:
    """What was done, of one test and of all."""

    def __init__(self):
        self.read = self.written = self.refused = 0
        self.unsaid = collections.Counter()

    def said(self):
        return self.read + self.written + self.refused


ALL = Counts()
NOW = Counts()
FOLDER = ""


# ---------------------------------------------------------------- an index as text


def integer(value):
    if isinstance(value, (bool, np.bool_)):
        raise Unsaid("True or False alone")
    if isinstance(value, (float, np.floating)):
        # both refuse it
        return repr(float(value))
    try:
        return str(value.__index__())
    except (AttributeError, TypeError):
        raise Unsaid(f"an object of type {type(value).__name__}") from None


def array_text(array, number, typed):
    if array.dtype == bool and array.ndim == 0:
        raise Unsaid("True or False alone")
    if array.dtype.hasobject:
        raise Unsaid("an index array of objects")
    if array.ndim == 0:
        return integer(array[()])
    # a typed list says its shape only where no axis but the last is empty
    if typed and array.size < 100 and (array.size or array.shape == (0,) and array.dtype != bool):
        return repr(array.tolist())
    path = os.path.join(FOLDER, f"list{number}.npy")
    np.save(path, array)
    return f"@{path}"


def item_text(item, number, fields):
    if item is None or item is Ellipsis:
        return {None: "None", Ellipsis: "..."}[item]
    if isinstance(item, slice):
        parts = (item.start, item.stop, item.step)
        return ":".join("" if part is None else integer(part) for part in parts)
    if isinstance(item, np.ndarray):
        return array_text(item.view(np.ndarray), number, False)
    if isinstance(item, (list, tuple)):
        try:
            array = np.asarray(item)
        except ValueError:
            raise Unsaid("a list of lists of different lengths, or of objects") from None
        if array.size == 0 and array.dtype.kind == "f":
            array = array.astype(np.intp)
        if array.dtype.kind == "U" and fields:
            raise Unsaid("the name of a field")
        if array.dtype.kind in "fU" and array.ndim == 1:
            # both refuse it
            return repr(array.tolist())
        return array_text(array, number, True)
    if isinstance(item, str):
        raise Unsaid("the name of a field")
    return integer(item)


def index_text(index, fields):
    items = index if isinstance(index, tuple) else (index,)
    return "[" + ", ".join(item_text(item, number, fields) for number, item in enumerate(items)) + "]"


# ---------------------------------------------------------------- the program in the place of NumPy


def outcome(act):
    """A result, or an error."""
    try:
        return act(), None
    except (IndexError, ValueError, TypeError, OverflowError) as error:
        return None, error


def save(array, name):
    if array.dtype.hasobject:
        raise Unsaid("elements that are Python objects")
    path = os.path.join(FOLDER, name)
    np.save(path, array.view(np.ndarray))
    return path


def run(*args):
    """The array that the program makes, or the words in which it refuses."""
    done = harness.tslice(*args)
    told = done.stderr.decode()
    if done.returncode == 0 and not told:
        return np.load(io.BytesIO(done.stdout)), None
    if done.returncode not in (1, 2) or not told.startswith("tslice: ") or done.stdout:
        raise Failure(f"exit status {done.returncode}, {told!r}")
    return None, told.split("\n")[0]


def agree_on_error(error, told, text):
    """The error for the test, in the program's words; both must refuse, or neither."""
    if (error is None) != (told is None):
        raise Failure(f"{text}: NumPy says {error!r}, tslice says {told!r}")
    if error is None:
        return None
    ALL.refused, NOW.refused = ALL.refused + 1, NOW.refused + 1
    return type(error)(told)


def read(array, index):
    found, error = outcome(lambda: np.ndarray.__getitem__(array, index))
    try:
        text = index_text(index, array.dtype.names)
        made, told = run(save(array, "in.npy"), text)
    except Unsaid as reason:
        ALL.unsaid[str(reason)] += 1
        NOW.unsaid[str(reason)] += 1
        if error is not None:
            raise error from None
        return found
    refusal = agree_on_error(error, told, text)
    if refusal is not None:
        raise refusal from None
    ALL.read, NOW.read = ALL.read + 1, NOW.read + 1
    if np.shape(found) != made.shape or found.dtype != made.dtype:
        raise Failure(f"{text}: {made.shape} {made.dtype}, of NumPy {np.shape(found)} {found.dtype}")
    if not isinstance(found, np.ndarray):
        return made[()]
    if found.flags.writeable:
        found.view(np.ndarray)[...] = made
    elif not np.array_equal(found, made):
        raise Failure(f"{text}: other elements")
    return found


def converted(value, dtype):
    """A value as elements of an array, as NumPy converts it."""
    try:
        value = np.asarray(value)
        made = np.empty(value.shape, dtype)
        made[...] = value
    except (TypeError, ValueError):
        raise Unsaid("a value that is no array of the dtype") from None
    if dtype.char == "c" and value.dtype.kind == "U":
        raise Unsaid("a text as one character an element")
    return made


def write(array, index, value):
    expected = np.array(array, subok=False)
    _, error = outcome(lambda: np.ndarray.__setitem__(expected, index, value))
    try:
        text = index_text(index, array.dtype.names)
        paths = save(array, "in.npy"), save(converted(value, array.dtype), "value.npy")
        made, told = run("assign", paths[0], text, "--value", paths[1], "--broadcast", "-o", "-")
    except Unsaid as reason:
        ALL.unsaid[str(reason)] += 1
        NOW.unsaid[str(reason)] += 1
        return np.ndarray.__setitem__(array, index, value)
    refusal = agree_on_error(error, told, text)
    if refusal is not None:
        raise refusal from None
    ALL.written, NOW.written = ALL.written + 1, NOW.written + 1
    if made.tobytes() != expected.tobytes():
        raise Failure(f"{text} = {value!r}: other elements")
    array.view(np.ndarray)[...] = made
    return None


class Array(np.ndarray):
    """An array that the program indexes, where a test does it; elsewhere NumPy."""

    def __getitem__(self, index):
        if by_test(sys._getframe(1)):
            return read(self, index)
        return np.ndarray.__getitem__(self, index)

    def __setitem__(self, index, value):
        if by_test(sys._getframe(1)):
            return write(self, index, value)
        return np.ndarray.__setitem__(self, index, value)


def by_test(frame):
    """Whether a test does it, itself or through assert_raises."""
    return frame.f_globals.get("__name__") in CALLERS


class Numpy:
    """NumPy for the tests: what its functions make is an `Array`."""

    def __getattr__(self, name):
        found = getattr(np, name)
        if isinstance(found, type) or not callable(found):
            return found

        def call(*args, **options):
            made = found(*args, **options)
            return made.view(Array) if type(made) is np.ndarray else made

        return call


# ---------------------------------------------------------------- running the tests


class Watch:
    """Gives the tests their arrays, and counts."""

    def __init__(self):
        self.tests = {}

    def pytest_runtest_setup(self, item):
        item.module.np = Numpy()
        CALLERS.add(item.module.__name__)
        NOW.__init__()

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            name = report.nodeid.split("::", 1)[1]
            self.tests[name] = (report.outcome, NOW.said(), dict(NOW.unsaid), report.longreprtext)


def reason(table, name):
    """What a table says of a test or its class."""
    plain = name.split("[")[0]
    return next((why for key, why in table.items() if key in plain.split("::")), None)


def main():
    global FOLDER
    harness.begin(harness.parser(__doc__.split("\n")[0]).parse_args())
    path = os.path.join(os.path.dirname(np.__file__), "_core", "tests", "test_indexing.py")
    if not os.path.exists(path):
        sys.exit(f"this NumPy came without its tests: no {path}")
    watch, tally = Watch(), {"by the program": 0, "in part": 0}
    failed = 0
    with tempfile.TemporaryDirectory(prefix="tslice-numpy-") as FOLDER:
        options = ["-q", "--no-header", "--noconftest", "-p", "no:cacheprovider", "--pyargs"]
        # its own summary would show NumPy's text again
        pytest.main([*options, "--no-summary", "-W", "ignore", TESTS], plugins=[watch])
    nothing, unable = collections.Counter(), collections.Counter()
    for name, (status, said, unsaid, text) in sorted(watch.tests.items()):
        beyond, silent = reason(BEYOND, name), reason(NOTHING_TO_SAY, name)
        if status == "skipped":
            nothing["skipped by NumPy here"] += 1
        elif status != "passed":
            unable[beyond] += beyond is not None
            failed += beyond is None
            if beyond is None:
                print(f"FAILED {name}\n  " + "\n  ".join(text.strip().split("\n")[-12:]))
        elif said == 0:
            silent = silent or " and ".join(unsaid)
            nothing[silent] += silent != ""
            if not silent:
                failed += 1
                print(f"FAILED {name}: the program did nothing")
        else:
            tally["in part" if unsaid else "by the program"] += 1
    passed = sum(tally.values())
    print(f"NumPy {np.__version__}: {len(watch.tests)} tests")
    print(f"  {tally['by the program']} pass with every index done by the program")
    print(f"  {tally['in part']} pass with some done by NumPy")
    for why, count in (+nothing).most_common():
        print(f"  {count} have nothing for the program: {why}")
    for why, count in (+unable).most_common():
        print(f"  {count} cannot pass: {why}")
    print(f"indices: {ALL.read} read, {ALL.written} written, {ALL.refused} refused by both")
    for why, count in ALL.unsaid.most_common():
        print(f"  {count} done by NumPy alone: {why}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
