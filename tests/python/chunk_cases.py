"""Random arrays for formats that store them in chunks, and indexes of them, whose results must be NumPy's."""

import io
import json
import os
import random
import re
import warnings

import numpy as np
from numpy.lib.recfunctions import repack_fields

import harness
from cases import Case
from harness import Failure
from lists_differential import nested, random_index


# what a damaged file of some kilobytes may take, in bytes
MEMORY = 1 << 30


def one(job, usual, damaged, memory=MEMORY):
    """A case: every tenth one is of a damaged file, in little memory."""
    options, number = job
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = Case(random.Random(f"{options.seed} {number}"))
        is_damaged = number % 10 == 9 or options.damaged
        if is_damaged:
            case.memory = memory
        return harness.run_case(case, damaged if is_damaged else usual, number, options.keep)


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


def check(case, name, key, array, store_list):
    """A random index of an array in a file, or what another command makes of it; `store_list` writes an array to
    a file of this format, by its path, and says how to call it."""
    if case.rng.random() < 0.3:
        return check_command(case, name, key, array, store_list)
    rng = case.rng
    items = random_index(rng, array.shape, False, False) if rng.random() < 0.6 else simple(rng, array.shape)
    # what typed lists cannot say
    typed = all(not isinstance(it, np.ndarray) or it.ndim == 0 or it.size or (it.shape == (0,) and it.dtype != bool) for it in items)
    # nor what Linux takes as one argument
    typed = typed and len(", ".join(map(spelled, items))) < 100_000
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
    check_same(found, expected)


# ---------------------------------------------------------------- other commands


def command(name):
    """Registers a function that makes a command line and what NumPy makes of the array; None where it cannot."""
    return lambda made: COMMANDS.setdefault(name, made)


COMMANDS = {}


@command("outer")
def outer(case, source, key, array, store_list):
    """Lists one by one, typed or from a file in chunks."""
    rng, items, taken = case.rng, [], array
    for axis in range(array.ndim):
        if rng.random() < 0.4 or not array.shape[axis]:
            items.append(":")
            continue
        if rng.random() < 0.4:
            places = np.array([rng.random() < 0.5 for _ in range(array.shape[axis])])
        else:
            places = np.array([rng.randrange(-array.shape[axis], array.shape[axis]) for _ in range(rng.randint(1, 5))], "i4")
        items.append(store_list(f"list{axis}", places) if rng.random() < 0.5 else nested(places))
        taken = np.compress(places, taken, axis) if places.dtype == bool else np.take(taken, places, axis)
    if all(item == ":" for item in items):
        return None
    return [*source, "[" + ", ".join(items) + "]", "--outer"], taken


@command("sorted")
def sorted_list(case, source, key, array, store_list):
    """A list that does not decrease, or a mask, along one axis, and slices of the others, perhaps in another order."""
    if not array.ndim or 0 in array.shape:
        return None
    rng, axis = case.rng, case.rng.randrange(array.ndim)
    length = array.shape[axis]
    if rng.random() < 0.3:
        places = np.array([rng.random() < 0.6 for _ in range(length)])
    else:
        places = np.sort(np.array(rng.choices(range(length), k=rng.choice([1, 3, length, 2 * length])), "<i4"))
    items = [rng.choice([":", f"{rng.randrange(n)}:", "::2", "::-1", f"{rng.randrange(n)}::-2"]) for n in array.shape]
    key = [slice(*[int(bound) if bound else None for bound in item.split(":")]) for item in items]
    items[axis], key[axis] = store_list("sorted", places), places
    line, taken = [*source, "[" + ", ".join(items) + "]"], array[tuple(key)]
    if rng.random() < 0.3:
        order = rng.sample(range(taken.ndim), taken.ndim)
        line, taken = [*line, "--transpose", ",".join(map(str, order))], taken.transpose(order)
    return line, taken


@command("mask")
def mask(case, source, key, array, store_list):
    """A mask of all axes, or of the first ones, or its opposite."""
    if not array.ndim:
        return None
    shape = array.shape[: case.rng.randint(1, array.ndim)]
    places = np.array([case.rng.random() < 0.4 for _ in range(int(np.prod(shape)))], bool).reshape(shape)
    opposite = case.rng.random() < 0.3
    return [*source, ("~" if opposite else "") + store_list("mask", places)], array[~places if opposite else places]


@command("gather")
def gather(case, source, key, array, store_list):
    if not array.ndim or 0 in array.shape:
        return None
    rng, axis = case.rng, case.rng.randrange(array.ndim)
    places = np.array([rng.randrange(array.shape[axis]) for _ in range(rng.randint(1, 12))], "<i8")
    np.save(case.path("places.npy"), places)
    return ["gather", *source, "--axis", str(axis), "--indices", "places.npy"], np.take(array, places, axis)


@command("field")
def field(case, source, key, array, store_list):
    """A field of a structure, of a structure in it, or of an array of structures."""
    path, taken = [], array
    while taken.dtype.names and (not path or case.rng.random() < 0.8):
        path.append(case.rng.choice(taken.dtype.names))
        taken = taken[path[-1]]
    return ([*source, "--field", ".".join(path)], taken) if path else None


@command("repeats")
def repeats(case, source, key, array, store_list):
    """So many rows, most of them again and again, that chunks are put in order before they are taken."""
    if not array.ndim or 0 in array.shape:
        return None
    rng, axis = case.rng, case.rng.randrange(array.ndim)
    outer, inner = int(np.prod(array.shape[:axis])), int(np.prod(array.shape[axis + 1:]))
    count = 20_000 // outer + 1
    if outer * count * inner * array.dtype.itemsize > 4_000_000:
        return None
    some = [rng.randrange(array.shape[axis]) for _ in range(rng.randint(1, 5))]
    places = np.array(rng.choices(some if rng.random() < 0.5 else range(array.shape[axis]), k=count), "<i4")
    np.save(case.path("places.npy"), places)
    line = [*source, "[" + ":, " * axis + "@places.npy]"]
    return line + rng.choice([[], ["--order", "F"]]), np.take(array, places, axis)


@command("tuples")
def tuples(case, source, key, array, store_list):
    """As many tuples of positions, some counted from the end."""
    if array.ndim < 2 or 0 in array.shape or array[0, 0].nbytes > 200:
        return None
    lists = [np.array(case.rng.choices(range(-length, length), k=20_000), "<i2") for length in array.shape[:2]]
    for number, places in enumerate(lists):
        np.save(case.path(f"places{number}.npy"), places)
    return [*source, "[@places0.npy, @places1.npy]"], array[tuple(lists)]


@command("gather_nd")
def gather_nd(case, source, key, array, store_list):
    if 0 in array.shape:
        return None
    rng, depth, count = case.rng, case.rng.randint(0, array.ndim), case.rng.randint(1, 9)
    places = np.array([[rng.randrange(n) for n in array.shape[:depth]] for _ in range(count)], "<i8").reshape(count, depth)
    np.save(case.path("places.npy"), places)
    return ["gather", *source, "--indices", "places.npy"], array[tuple(places.T)] if depth else np.stack([array] * count)


@command("reduce")
def reduce(case, source, key, array, store_list):
    """A reduction of a part of an array along some axes, whose sums are exact."""
    if array.dtype.kind not in "iub" or not array.ndim or not array.size:
        return None
    rng, items = case.rng, simple(case.rng, array.shape)
    taken = np.asarray(array[tuple(items)])
    if not taken.ndim or not taken.size:
        return None
    axes = sorted(rng.sample(range(taken.ndim), rng.randint(1, taken.ndim)))
    how = rng.choice(["min", "max", "sum", "any", "all"])
    index = "[" + ", ".join(map(spelled, items)) + "]"
    line = ["view", *source, index, "--reduce", how, "--axis", ",".join(map(str, axes))]
    return line, getattr(np, how)(taken, axis=tuple(axes))


@command("concat")
def concat(case, source, key, array, store_list):
    if not array.ndim:
        return None
    axis, plain = case.rng.randrange(array.ndim), case.rng.random() < 0.5
    if plain and not key:
        np.save(case.path("again.npy"), array)
    other = "again.npy" if plain and not key else source[0]
    line = ["concat", source[0], other, *source[1:], "--axis", str(axis)]
    return line, np.concatenate([array, array], axis)


@command("stack")
def stack(case, source, key, array, store_list):
    axis = case.rng.randint(0, array.ndim)
    return ["stack", source[0], source[0], source[0], *source[1:], "--axis", str(axis)], np.stack([array] * 3, axis)


@command("cast")
def cast(case, source, key, array, store_list):
    kinds = {"u": ["<u8", "<f8", "<i8"], "i": ["<i8", "<f8"], "f": ["<f8", "<f4", "<c16"], "b": ["<i4", "<f4"]}
    if array.dtype.kind not in kinds or array.dtype.itemsize == 16:
        return None
    to = case.rng.choice(kinds[array.dtype.kind])
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        # which NaN it is, is up to who casts
        return None
    return [*source, "[...]", "--cast", to, "--casting", "unsafe"], array.astype(to)


@command("assign")
def assign(case, source, key, array, store_list):
    """Elements in chunks are the value of an assignment to a slice of a file without."""
    target = np.zeros((*array.shape, 2) if array.ndim < 5 else (2, *array.shape), array.dtype)
    np.save(case.path("target.npy"), target)
    place = (..., 1) if array.ndim < 5 else (1,)
    target[place] = array
    return ["assign", "target.npy", "[..., 1]" if array.ndim < 5 else "[1]", "--value", source[0], *(["--value-tensor", key] if key else [])], target


def check_command(case, name, key, array, store_list):
    """What a command makes of an array; of one that it does not apply to, the whole of it in parts."""
    rng, source = case.rng, [name, *(["-t", key] if key else [])]
    looks = [check_statistics, check_digest, check_difference]
    kind = rng.choice([*COMMANDS, "split", *looks])
    if kind == "split":
        return check_split(case, source, array)
    if kind in looks:
        return kind(case, source, array)
    made = COMMANDS[kind](case, source, key, array, store_list) if kind in COMMANDS else None
    if made is None:
        return check_split(case, source, array)
    line, expected = made
    status, _, err = case.run([*line, "-o", "o.npy", "--force", "-j", str(rng.randint(1, 3))])
    if status or err:
        raise Failure(f"status {status}, {err!r}")
    # NumPy's joins take out the padding of structures
    check_same(np.load(case.path("o.npy")), np.asarray(expected, array.dtype if array.dtype.names and array.dtype.names == expected.dtype.names else expected.dtype))


def check_split(case, source, array):
    if not array.ndim:
        return
    axis, count = case.rng.randrange(array.ndim), case.rng.randint(1, 4)
    status, _, err = case.run(["split", *source, "--axis", str(axis), "--parts", str(count), "-o", "part{}.npy", "--force", "-q"])
    if status:
        raise Failure(f"status {status}, {err!r}")
    for number, part in enumerate(np.array_split(array, count, axis)):
        check_same(np.load(case.path(f"part{number}.npy")), part)


def check_statistics(case, source, array):
    """Count, extremes with their first places, and mean of a part of an array, some threads beside each other."""
    if array.dtype.kind not in "iuf" or array.dtype.itemsize == 16 or not array.size:
        return check_digest(case, source, array)
    items = simple(case.rng, array.shape)
    taken = np.asarray(array[tuple(items)], array.dtype)
    line = ["view", *source, "[" + ", ".join(map(spelled, items)) + "]", "--stats", "--json", *threads(case)]
    status, out, err = case.run(line)
    if status or err:
        raise Failure(f"status {status}, {err!r}")
    told = json.loads(out)
    told = told if isinstance(told, dict) else told[0]
    numbers = taken[~np.isnan(taken)] if taken.dtype.kind == "f" else taken.reshape(-1)
    if told["count"] != taken.size or not numbers.size:
        return None if told["count"] == taken.size else fail(f"statistics {told}")
    for name, value in [("min", numbers.min()), ("max", numbers.max())]:
        place = [int(at[0]) for at in np.nonzero(np.atleast_1d(taken == value))][:taken.ndim]
        found = told[name]["value"]
        if not isinstance(found, str) and (type(value)(found) != value or told[name]["position"] != place):
            raise Failure(f"{name} {told[name]}, expected {value} at {place}")
    return None


def fail(why):
    raise Failure(why)


def threads(case):
    return case.rng.choice([[], ["-j", str(case.rng.randint(1, 3))]])


def plain_copy(case, array):
    """An array as a file of its own, and the path of that."""
    np.save(case.path("plain.npy"), array)
    return "plain.npy"


def check_digest(case, source, array):
    """The digest of an array in chunks is that of the same array without."""
    if array.dtype.names or array.dtype.kind not in "iufb" or array.dtype.itemsize == 16:
        return check_split(case, source, array)
    digests = []
    for line in [["info", *source], ["info", plain_copy(case, array)]]:
        status, out, err = case.run([*line, "--digest", "--json", *threads(case)])
        if status or err:
            raise Failure(f"status {status}, {err!r}")
        digests.append(re.findall('"digest": *"([^"]*)"', out.decode()))
    if len(digests[0]) != 1 or digests[0] != digests[1]:
        raise Failure(f"digests {digests}")
    return None


def check_difference(case, source, array):
    """How many elements of two arrays differ, and the first place."""
    if array.dtype.kind not in "iu" or not array.size or len(source) > 1:
        return check_split(case, source, array)
    changed = array.copy()
    flat = changed.reshape(-1)
    places = [case.rng.randrange(array.size) for _ in range(case.rng.randint(0, 4))]
    for place in places:
        flat[place] ^= 1
    both = [source[0], plain_copy(case, changed)]
    case.rng.shuffle(both)
    status, out, err = case.run(["diff", *both, "--json", *threads(case)])
    differing = np.flatnonzero(changed.reshape(-1) != array.reshape(-1))
    if err or status != int(differing.size > 0):
        raise Failure(f"status {status}, {err!r}")
    if differing.size:
        first = [int(at) for at in np.unravel_index(differing[0], array.shape)]
        told = json.loads(out)["tensors"][0]
        found = told["differing"], told["first"]["place"]
        if found != (differing.size, first):
            raise Failure(f"diff {told}, expected {differing.size} from {first} on")
    return None


def check_same(found, expected):
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
