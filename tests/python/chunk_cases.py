"""Random arrays for formats that store them in chunks, and indexes of them, whose results must be NumPy's."""

import io
import os
import random
import resource
import warnings

import numpy as np
from numpy.lib.recfunctions import repack_fields

import harness
from cases import Case
from harness import Failure
from lists_differential import nested, random_index


# what a damaged file of some kilobytes may take, in bytes
MEMORY = 1 << 30


def one(job, usual, damaged):
    """A case: every tenth one is of a damaged file, in little memory."""
    options, number = job
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = Case(random.Random(f"{options.seed} {number}"))
        is_damaged = number % 10 == 9 or options.damaged
        before = resource.getrlimit(resource.RLIMIT_DATA)
        if is_damaged:
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, before[1]))
        try:
            return harness.run_case(case, damaged if is_damaged else usual, number, options.keep)
        finally:
            resource.setrlimit(resource.RLIMIT_DATA, before)


def options_of(description):
    cases = harness.case_parser(description, 2000)
    cases.add_argument("--damaged", action="store_true", help="damaged files alone")
    return cases.parse_args()


def check_damaged(case, line):
    """Of what was damaged there is an error in one line, or elements."""
    status, _, err = case.run(line)
    if "panicked" in err or status not in (0, 1) or len(err) > 3000 or status and not err.startswith("tslice: "):
        raise Failure(f"status {status}, {err!r}")


def random_array(rng, dtype, shape):
    """Elements whose neighbours are often the same, so that codecs have something to do."""
    count = int(np.prod(shape))
    data = bytearray(rng.randbytes(count * dtype.itemsize))
    if rng.random() < 0.5 and count:
        data = bytearray(bytes(data[:dtype.itemsize]) * count)
        for _ in range(min(count, 20)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    if dtype.kind == "f" and dtype.itemsize == 16:
        # not all bytes are long doubles
        return np.array([rng.uniform(-9, 9) for _ in range(count)], dtype).reshape(shape)
    if dtype == bool:
        data = bytearray(byte & 1 for byte in data)
    elif dtype.kind == "U":
        return np.array(["".join(rng.choice("aé☃ ") for _ in range(rng.randrange(4))) for _ in range(count)], dtype).reshape(shape)
    elif dtype.kind == "S":
        return np.array([rng.randbytes(3).strip(b"\0") for _ in range(count)], dtype).reshape(shape)
    return np.frombuffer(bytes(data), dtype).reshape(shape)


def spelled(item):
    if isinstance(item, np.ndarray):
        return nested(item) if item.ndim else str(int(item))
    if isinstance(item, slice):
        return ":".join("" if part is None else str(part) for part in (item.start, item.stop, item.step))
    return "..." if item is Ellipsis else str(item)


def check(case, name, key, array):
    rng = case.rng
    items = random_index(rng, array.shape, False, False) if rng.random() < 0.6 else simple(rng, array.shape)
    # what typed lists cannot say
    typed = all(not isinstance(it, np.ndarray) or it.ndim == 0 or it.size or (it.shape == (0,) and it.dtype != bool) for it in items)
    if not typed:
        items = simple(rng, array.shape)
    try:
        expected = array[tuple(items)] if items else array
        problem = None
    except IndexError as error:
        problem = str(error)
    line = [name, "[" + ", ".join(map(spelled, items)) + "]"]
    if key:
        line += ["-t", key]
    line += rng.choice([[], [], ["-j", str(rng.randint(1, 3))]])
    if problem is not None:
        status, _, err = case.run([*line, "-o", "bad.npy"])
        return case.check_error(status, err, [1, 2])
    # a single string of NumPy forgets how long it may be
    expected = np.asarray(expected, array.dtype)
    transposed = []
    if rng.random() < 0.25:
        transposed, expected = ["-T"], expected.T
    way = rng.choice(["file", "file", "stream", "parts", "fortran", "diff"])
    if way == "stream":
        status, out, err = case.run([*line, *transposed, "--to", "npy"])
        found = np.load(io.BytesIO(out)) if not status and not err else None
    elif way == "parts":
        count = rng.randint(1, 4)
        for part in rng.sample(range(count), count):
            status, _, err = case.run([*line, *transposed, "-o", "p.npy", "--part", f"{part}/{count}"])
            if status or err:
                break
        found = np.load(case.path("p.npy")) if not status and not err else None
        if found is not None:
            os.remove(case.path("p.npy"))
    elif way == "diff" and not transposed and not key:
        np.save(case.path("whole.npy"), array)
        status, out, err = case.run(["diff", name, "whole.npy", line[1]])
        if status or err or out:
            raise Failure(f"diff: status {status}, {out!r} {err!r}")
        return
    else:
        order = ["--order", "F"] if way == "fortran" else []
        status, _, err = case.run([*line, *transposed, *order, "-o", "o.npy", "--force"])
        found = np.load(case.path("o.npy")) if not status and not err else None
    if found is None:
        raise Failure(f"status {status}, {err!r}")
    same = found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("=") and found.shape == expected.shape
    if not same:
        raise Failure(f"{found.dtype} {found.shape} for {expected.dtype} {expected.shape}")
    if without_padding(found.astype(expected.dtype)) != without_padding(expected):
        raise Failure(f"other elements:\n{found}\nexpected\n{expected}")


def without_padding(array):
    """The bytes of the elements; what lies between the fields of structures, and behind the ten bytes of a long
    double, is anything."""
    if array.dtype.kind == "f" and array.dtype.itemsize == 16:
        little = np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<")))
        return little.reshape(-1).view("u1").reshape(-1, 16)[:, :10].tobytes()
    return (repack_fields(array, recurse=True) if array.dtype.names else array).tobytes()


def simple(rng, shape):
    items = []
    for length in shape[:rng.randint(0, len(shape))]:
        if length and rng.random() < 0.3:
            items.append(rng.randrange(-length, length))
        else:
            bound = lambda: rng.choice([None, rng.randint(-length - 1, length + 1)])
            items.append(slice(bound(), bound(), rng.choice([None, 1, 2, 3, -1, -2, 7])))
    if rng.random() < 0.2:
        items.insert(rng.randint(0, len(items)), None)
    return items
