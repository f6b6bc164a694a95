#!/usr/bin/env python3
"""Differential test: lists and masks in an index against NumPy's advanced indexing.

    python tests/python/lists_differential.py --bin target/debug/tslice --count 5000 --seed 1

Every case is a random tensor of 0 to 6 axes and a random index with one to four lists and masks,
typed or from files (.npy, .safetensors, .npz, text, standard input), shuffles, or all positions but some, beside integers,
slices, an ellipsis and new axes. NumPy's outcome is the oracle, errors word for word; with --outer
np.ix_ on the axes of lists; of a shuffle the positions are those of the Python in docs/index.md, of `~` those of np.delete. Every fourth case is an assignment, every tenth one of gather or scatter with
--elements, against np.take_along_axis and np.put_along_axis. `--comparisons` takes masks by comparison alone,
`@FILE==3`, `--alike` indices of several tensors without -t: every dtype of numbers and bool, against NumPy's `a == 3`; floats that NumPy lacks against ml_dtypes. A case is a function of (seed, number):
`--only NUMBER` runs one again. Needs Python 3.9, NumPy 2.
"""

import io
import operator
import os
import random
import re
import sys

import ml_dtypes
import numpy as np

import harness
from cases import Case
from formats import safetensors_file
from harness import Failure
from random_indices import shuffled

INTEGERS = {"i1": "I8", "i2": "I16", "i4": "I32", "i8": "I64", "u1": "U8", "u2": "U16", "u4": "U32", "u8": "U64"}
DTYPES = ["<u1", "<i2", ">i4", "<f4", "<f8", ">f8", "<c16", "V3", "V12"]

# a list of bytes that happens to look like a mask
MASK_NOTE = re.compile(r"tslice: note: [^\n]* though it looks like a mask\nhint: [^\n]*\n"
                       # or numbers in a text that are compared
                       r"|tslice: note: [^\n]*: integers beyond 2\^53 are read as float64\nhint: [^\n]*\n")


def tensor(rng, shape, dtype):
    count = int(np.prod(shape))
    raw = rng.randbytes(count * np.dtype(dtype).itemsize)
    return np.frombuffer(raw, dtype).reshape(shape)


# ---------------------------------------------------------------- an index


def random_slice(rng, length):
    bound = lambda: rng.choice([None, None, rng.randint(-length - 2, length + 2)])
    return slice(bound(), bound(), rng.choice([None, None, 1, 2, -1, -2, 3]))


def random_integers(rng, shape, length, wrong):
    low = -length if rng.random() < 0.5 else 0
    draw = lambda: rng.randint(low, length - 1) if length else rng.randint(-1, 1)
    values = [draw() for _ in range(int(np.prod(shape)))]
    if rng.random() < 0.2:
        values.sort()
    elif length and rng.random() < 0.3:
        # ascending stretches, which are copied as one
        for at in range(1, len(values)):
            if rng.random() < 0.95:
                values[at] = (values[at - 1] + length + 1) % length
    if wrong and values:
        values[rng.randrange(len(values))] = rng.choice([length, -length - 1, length + 7, 1000])
    return np.array(values, np.int64).reshape(shape)


def random_mask(rng, shape, wanted):
    count = int(np.prod(shape))
    if rng.random() < 0.7:
        true = set(rng.sample(range(count), min(wanted, count)))
        mask = [at in true for at in range(count)]
    elif rng.random() < 0.5:
        share = rng.choice([0, 0.1, 0.5, 0.9, 0.98, 1])
        mask = [rng.random() < share for _ in range(count)]
    else:
        mask, now = [], rng.random() < 0.5
        for _ in range(count):
            now ^= rng.random() < 0.05
            mask.append(now)
    return np.array(mask, bool).reshape(shape)


class Shuffle(np.ndarray):
    """The positions of a shuffle, and how it is written."""

    @staticmethod
    def of(seed, length, taken):
        array = shuffled(seed, length)[taken].view(Shuffle)
        array.text = f"shuffle({seed})"
        if taken != slice(None):
            array.text += f"[{slice_text(taken)}]"
        return array


class Others(np.ndarray):
    """All positions but some, as np.delete has it."""

    @staticmethod
    def of(length, left_out):
        array = np.delete(np.arange(length), left_out.ravel()).view(Others)
        array.left_out = left_out
        return array


SIGNS = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
COMPARED = {"?": "BOOL", **INTEGERS, "f2": "F16", "f4": "F32", "f8": "F64", "c8": "C64", "c16": None}
# float8_e8m0fnu has no sign and no 0
OTHER_FLOATS = {"BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
                "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz}
ENDS = [k + d for k in (0, 2**7, 2**8, 2**11, 2**15, 2**16, 2**24, 2**31, 2**32, 2**53, 2**63, 2**64) for d in (-1, 0, 1)]


class Compared(np.ndarray):
    """What a comparison with a number is true of."""

    @staticmethod
    def of(rng, shape):
        code, kind = rng.choice([*((c, k) for k, c in COMPARED.items()), *OTHER_FLOATS.items()])
        dtype = np.dtype(kind)
        count = int(np.prod(shape))
        if dtype.kind in "iufc" and rng.random() < 0.5:
            dtype = dtype.newbyteorder(">")
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 0.5, 3.0, 1e300, 65504.0, 0.1, float(2**53)]
        number = rng.choice([rng.choice(ENDS), -rng.choice(ENDS), rng.randint(-3, 9), rng.choice(special[1:]),
                             rng.gauss(0, 2), float(rng.choice(ENDS)), True, False, 10**30])
        if kind == "?" and abs(number) >= 2**63:
            number = 1
        near = [number, *special, rng.randint(-3, 9)]
        with np.errstate(all="ignore"):
            if dtype.kind == "b":
                labels = np.array([rng.random() < 0.5 for _ in range(count)], bool)
            elif dtype.kind in "iu":
                info = np.iinfo(dtype)
                ends = [number, number - 1, number + 1, info.min, info.max, *ENDS, rng.randint(-3, 9)]
                ends = [int(n) for n in ends if abs(n) < 2**70]
                labels = np.array([min(max(rng.choice(ends), info.min), info.max) for _ in range(count)], dtype)
            elif dtype.kind == "c":
                labels = np.array([complex(rng.choice(near), rng.choice([0, 0, 1, -1, np.nan])) for _ in range(count)], dtype)
            elif rng.random() < 0.3:
                labels = np.frombuffer(rng.randbytes(count * dtype.itemsize), dtype)
            else:
                labels = np.array([float(rng.choice(near)) for _ in range(count)], "f8").astype(dtype)
            labels = labels.reshape(shape)
            sign = rng.choice(list(SIGNS))
            # ml_dtypes compares with a float as a double
            other = number if kind in COMPARED else np.array(float(number)).astype(dtype)
            array = np.asarray(SIGNS[sign](labels, other)).view(Compared)
        blank = lambda: rng.choice(["", "", " "])
        array.labels, array.code = labels, code
        array.text = blank() + sign + blank() + repr(number)
        array.opposite = rng.random() < 0.3
        return ~array if array.opposite else array

    def __array_finalize__(self, source):
        self.__dict__.update(getattr(source, "__dict__", {}))


def with_computed(rng, shape, items):
    """Put a shuffle, or all positions but some, in place of an item along one axis."""
    taken = [0 if i is None or i is Ellipsis else i.ndim if getattr(i, "dtype", None) == bool else 1 for i in items]
    if sum(taken) > len(shape):
        return
    number = rng.choice([n for n, axes in enumerate(taken) if axes == 1] or [None])
    if number is None:
        return
    before = sum(len(shape) - sum(taken) if i is Ellipsis else n for i, n in zip(items[:number], taken))
    length = shape[before]
    if rng.random() < 0.5:
        left_out = random_integers(rng, rng.choice([[0], [1], [2], [5], [2, 2], [300]]), length, False)
        items[number] = Others.of(length, left_out if length else left_out[:0])
        return
    lengths = [i.shape[-1] for i in items if isinstance(i, np.ndarray) and i.ndim]
    whole = slice(None)
    some = slice(rng.choice(lengths)) if lengths else whole
    seed = rng.choice([0, 42, 2**64 - 1, rng.randrange(2**64)])
    items[number] = Shuffle.of(seed, length, rng.choice([whole, some, some, random_slice(rng, length)]))


def random_index(rng, shape, outer, long):
    """The items of an index; arrays are lists and masks, of a `long` one many elements."""
    # lists that are broadcast to nothing, whose positions NumPy does not look at, beside bad positions
    nothing = not outer and rng.random() < 0.08
    common = [rng.choice([1, 1, 2, 2, 3, 3, 4, 0]) for _ in range(1 if outer else rng.choice([1, 1, 1, 2, 2, 3]))]
    if nothing:
        common[-1] = 0
    elif rng.random() < 0.9:
        common = [max(n, 1) for n in common]
    if long:
        common[-1:] = [rng.randint(20, 600)]
    wrong = 0.1 + 0.14 * rng.random() if nothing else rng.random()
    items, axis, arrays = [], 0, 0
    wanted = rng.randint(1, 4)
    while axis < len(shape) and rng.random() < 0.93:
        if rng.random() < 0.1:
            items.append(None)
        left = len(shape) - axis
        if arrays < wanted and rng.random() < 0.6:
            arrays += 1
            if rng.random() < 0.3:
                ndim = 1 if outer else rng.randint(1, min(left, 3))
                lengths = list(shape[axis:axis + ndim])
                if wrong < 0.04:
                    lengths[rng.randrange(ndim)] += 1
                items.append(random_mask(rng, lengths, common[-1] if len(common) == 1 else 1))
                axis += ndim
            else:
                if outer:
                    lengths = [rng.choice([0, 1, 2, 3, 5, common[-1]])]
                else:
                    lengths = [rng.choice([n, n, n, 1]) for n in common[rng.choice([0, 0, 0, len(common) - 1]):]]
                    if wrong < 0.1 and lengths and rng.random() < 0.4:
                        lengths[-1] += 1
                items.append(random_integers(rng, lengths, shape[axis], 0.1 < wrong < 0.2 and rng.random() < 0.5))
                axis += 1
        elif rng.random() < 0.35:
            length = shape[axis]
            good = length > 0 and not 0.2 < wrong < 0.24
            integer = rng.randint(-length, length - 1) if good else length + rng.randint(0, 3)
            # an array without axes, from a file, is an integer too
            items.append(np.array(integer) if rng.random() < 0.3 else integer)
            axis += 1
        elif rng.random() < 0.15 and Ellipsis not in [i for i in items if not isinstance(i, np.ndarray)]:
            items.append(Ellipsis)
            axis += rng.randint(0, left)
        else:
            items.append(random_slice(rng, shape[axis]))
            axis += 1
    if not arrays:
        # a mask or a list on what is left, or too many indices
        length = shape[axis] if axis < len(shape) else 3
        items.append(random_integers(rng, [rng.randint(0, 4)], length, False))
    if rng.random() < 0.03:
        items.append(0)
    return items


def slice_text(item):
    return ":".join("" if part is None else str(part) for part in (item.start, item.stop, item.step))


def nested(array):
    return repr(array.tolist()) if array.size else "[" * array.ndim + "]" * array.ndim


# ---------------------------------------------------------------- where lists come from


class Spelling:
    """The arguments for an index: what is typed, what lies in files, what is piped."""

    def __init__(self, case):
        self.case = case
        self.stdin = None

    def list(self, number, array):
        if isinstance(array, Shuffle):
            return array.text
        if isinstance(array, Others):
            return "~" + self.list(number, array.left_out)
        if isinstance(array, Compared):
            return ("~" if array.opposite else "") + self.file(number, array.labels, array.code) + array.text
        rng = self.case.rng
        is_mask, exact = array.dtype == bool, array
        # a typed list says its shape only if no axis but the last is empty
        typeable = array.ndim > 0 and (array.size or (array.shape == (0,) and not is_mask))
        if typeable and array.size < 60 and rng.random() < 0.4:
            return nested(array)
        if not is_mask:
            fitting = [t for t in INTEGERS if not array.size or
                       (np.iinfo(t).min <= array.min() and array.max() <= np.iinfo(t).max)]
            kind = rng.choice(fitting)
            if array.ndim and rng.random() < 0.1:
                # NumPy casts uint64 to int64: numbers from 2^63 on are negative
                array, kind = array.view(np.uint64), "u8"
            array = array.astype(rng.choice(["<", ">"]) + kind)
        opposite = is_mask and rng.random() < 0.4
        if opposite:
            array = ~array
        code = "BOOL" if is_mask else INTEGERS[array.dtype.str[1:]]
        return ("~" if opposite else "") + self.file(number, array, code, exact)

    def file(self, number, array, code, exact=None):
        rng = self.case.rng
        is_mask = array.dtype == bool
        way = rng.choice(["npy", "npy", "npy", "fortran", "safetensors", "npz", "stdin", "text"])
        if code in OTHER_FLOATS:
            way = "safetensors"
        elif code is None and way == "safetensors":
            way = "npz"
        path = os.path.join(self.case.dir, rng.choice([f"list{number}", f"my list,[{number}]", f"a'#{number}"]))
        name = None
        if exact is None and array.dtype.kind in "iuf":
            exact = array
            # a text is float64, to which the number is compared
            is_exact = array.dtype.kind in "iu" or array.dtype.itemsize == 8
            if way == "text" and is_exact and not (array.dtype.kind in "iu" and array.size and max(abs(int(n)) for n in array.flat) > 2**53):
                np.savetxt(path + ".csv", array.reshape(-1, 1), fmt="%.17g") if array.ndim == 1 and array.size > 1 else None
                if os.path.exists(path + ".csv"):
                    return self.quoted(path + ".csv", None)
            way = "npy" if way == "text" else way
        if way == "text" and not is_mask and array.dtype.kind in "iu" and array.ndim in (1, 2) and array.size and array.shape[-1] > 1:
            path += ".txt"
            if array.ndim == 2 and array.shape[0] > 1:
                text = "\n".join(",".join(map(str, row)) for row in exact.tolist()) + "\n"
            elif array.ndim == 1:
                text = " ".join(map(str, exact.tolist()))
            else:
                text = None
            if text is not None:
                with open(path, "w") as file:
                    file.write(text)
                return self.quoted(path, None)
        contents = io.BytesIO()
        if way == "safetensors":
            path, name = path + ".safetensors", rng.choice(["val", "a,b", "x.y"])
            little = array.astype(array.dtype.newbyteorder("<"))
            tensors = {"other": ("U8", [3], b"abc"), name: (code, list(array.shape), little.tobytes())}
            contents.write(safetensors_file(tensors))
        elif way == "npz":
            path, name = path + ".npz", "mine"
            rng.choice([np.savez, np.savez_compressed])(contents, mine=array, other=np.zeros(3))
        else:
            np.save(contents, np.asfortranarray(array) if way == "fortran" and array.ndim else array)
            path += ".npy"
        if way == "stdin" and self.stdin is None:
            self.stdin = contents.getvalue()
            return "@-"
        with open(path, "wb") as file:
            file.write(contents.getvalue())
        return self.quoted(path, name)

    @staticmethod
    def quoted(path, name):
        word = lambda text: f'"{text}"' if set(text) & set(" ,[]()#'\"") else text
        return "@" + word(path) + (f"#{word(name)}" if name else "")

    def index(self, items):
        texts = []
        for number, item in enumerate(items):
            if isinstance(item, np.ndarray):
                texts.append(self.list(number, item))
            elif isinstance(item, slice):
                texts.append(slice_text(item))
            else:
                texts.append({None: "None", Ellipsis: "..."}.get(item, None) or str(item))
        return "[" + ", ".join(texts) + "]"


# ---------------------------------------------------------------- what NumPy says


def orthogonal(array, items):
    """Each list along its own axis: np.ix_ on the axes of lists, after the other items."""
    items = [int(i) if isinstance(i, np.ndarray) and i.ndim == 0 else i for i in items]
    ndim = array.ndim
    taken = sum(1 for i in items if i is not None and i is not Ellipsis)
    if taken > ndim:
        return array[tuple(0 for _ in range(taken))]
    full = []
    seen = False
    for item in items:
        if item is Ellipsis:
            full += [slice(None)] * (ndim - taken)
            seen = True
        else:
            full.append(item)
    if not seen:
        full += [slice(None)] * (ndim - taken)
    for axis, (item, length) in enumerate(zip([i for i in full if i is not None], array.shape)):
        if isinstance(item, np.ndarray) and item.dtype == bool and len(item) != length:
            raise IndexError(f"boolean index did not match indexed array along axis {axis}; size of axis is "
                             f"{length} but size of corresponding boolean axis is {len(item)}")
    # integers and slices first, so that only lists are left, each with an axis of its own
    basic = array[tuple(slice(None) if isinstance(i, np.ndarray) else i for i in full)]
    kept = [i for i in full if not isinstance(i, (int, np.integer))]
    lists = [i if isinstance(i, np.ndarray) else np.arange(n) for i, n in zip(kept, basic.shape)]
    kept_axes = [axis for axis, i in enumerate(j for j in full if j is not None) if not isinstance(i, int)]
    sources = iter(kept_axes)
    nothing = any(isinstance(i, np.ndarray) and not np.count_nonzero(i if i.dtype == bool else i == i) for i in kept)
    for item, length in zip(kept, basic.shape):
        axis = None if item is None else next(sources)
        if not isinstance(item, np.ndarray):
            continue
        # np.ix_ looks at no list where one is empty, and at none where a slice is
        for value in item.tolist() if item.dtype != bool and not nothing else []:
            if not -length <= value < length:
                raise IndexError(f"index {value} is out of bounds for axis {axis} with size {length}")
    lists = [np.flatnonzero(i) if i.dtype == bool else i.astype(np.int64) for i in lists]
    return basic[np.ix_(*lists)] if lists else basic


def same_error(ours, theirs):
    """The first line of our message, without the file and the place that we name too."""
    line = ours.split("\n")[0]
    return line.startswith("tslice: ") and line.endswith(theirs.strip())


# ---------------------------------------------------------------- cases


def elements(case):
    """gather and scatter with --elements."""
    rng = case.rng
    shape = [rng.choice([1, 2, 3, 4, 5]) for _ in range(rng.choice([1, 2, 2, 3, 4]))]
    array = tensor(rng, shape, rng.choice(DTYPES))
    axis = rng.randrange(len(shape))
    lengths = [rng.choice([n, n, n, 1]) if array.shape[a] != 1 else rng.choice([1, 1, 3]) for a, n in enumerate(shape)]
    lengths[axis] = rng.choice([0, 1, 2, 5, 9])
    if rng.random() < 0.05:
        lengths[rng.randrange(len(shape))] += 7
    indices = random_integers(rng, lengths, shape[axis], rng.random() < 0.1)
    indices = indices.astype(rng.choice(["<i8", ">i4", "i2"]))
    paths = [os.path.join(case.dir, name) for name in ("in.npy", "indices.npy", "value.npy", "out.npy")]
    np.save(paths[0], np.array(array, order=rng.choice("CF")))
    np.save(paths[1], np.array(indices, order=rng.choice("CF")))
    line = ["--indices", paths[1], "--axis", str(axis - rng.choice([0, len(shape)])), "--elements",
            "-j", str(rng.randint(1, 3))]
    target = np.array(array)
    try:
        expected, error = np.take_along_axis(array, indices.astype(np.int64), axis), None
    except (IndexError, ValueError) as reason:
        expected, error = None, str(reason)
    if rng.random() < 0.5:
        line = ["gather", paths[0], *line, "-o", paths[3]]
    else:
        own = () if expected is None else tuple(rng.choice([n, n, 1]) for n in expected.shape)
        value = tensor(rng, own, array.dtype)
        np.save(paths[2], value)
        line = ["scatter", paths[0], *line, "--values", paths[2], "-o", paths[3]]
        if expected is not None:
            places = np.take_along_axis(np.arange(array.size).reshape(array.shape), indices.astype(np.int64), axis)
            flat = target.reshape(-1)
            for place, one_value in zip(places.ravel().tolist(), np.broadcast_to(value, places.shape).reshape(-1)):
                flat[place] = one_value
            expected = target
    case.story += ["tslice " + " ".join(line), f"array {array.shape} {array.dtype}, indices {indices.shape}"]
    run = harness.tslice(*line)
    if error is not None:
        if run.returncode != 1 or os.path.exists(paths[3]):
            raise Failure(f"status {run.returncode}, {run.stderr!r} where NumPy says {error!r}")
    elif run.returncode or run.stderr:
        raise Failure(f"status {run.returncode}, {run.stderr!r}")
    else:
        got = np.load(paths[3])
        if got.shape != expected.shape or got.tobytes() != np.ascontiguousarray(expected).tobytes():
            raise Failure(f"wrong elements: shape {got.shape} for {expected.shape}")


def shuffled_axis(case):
    """gather along an axis by a shuffle."""
    rng = case.rng
    array = tensor(rng, [rng.randint(0, 40) for _ in range(rng.randint(1, 3))], rng.choice(DTYPES))
    path = os.path.join(case.dir, "in.npy")
    np.save(path, np.array(array, order=rng.choice("CF")))
    seen = rng.choice([[], [], ["--reshape=-1"]])
    array = array.reshape(-1) if seen else array
    axis = rng.randrange(-array.ndim, array.ndim)
    length = array.shape[axis]
    order = Shuffle.of(rng.randrange(2**64), length, rng.choice([slice(None), random_slice(rng, length)]))
    line = ["gather", path, *seen, "--axis", str(axis), "--indices", order.text, "-j", str(rng.randint(1, 3))]
    case.story += ["tslice " + " ".join(line), f"array {array.shape} {array.dtype}"]
    wanted = io.BytesIO()
    np.save(wanted, np.take(array, order, axis))
    run = harness.tslice(*line)
    if run.returncode or run.stderr or run.stdout != wanted.getvalue():
        raise Failure(f"status {run.returncode}, {run.stderr!r}, or other elements")


def compared(case):
    """A mask by comparison among slices."""
    rng = case.rng
    outer = rng.random() < 0.2
    axes = 1 if outer else rng.choice([0, 1, 1, 1, 2, 2, 3, 4])
    lengths = [rng.choice([0, 1, 2, 5, 9]) if rng.random() < 0.2 else rng.choice([1, 2, 3, 5]) for _ in range(axes)]
    if axes == 1 and rng.random() < 0.2:
        lengths = [rng.choice([300, 5000, 70001])]
    before = [rng.choice([1, 2, 3]) for _ in range(rng.choice([0, 0, 1, 2]))]
    after = [rng.choice([1, 2, 3]) for _ in range(rng.choice([0, 0, 1, 2]))]
    array = tensor(rng, before + lengths + after, rng.choice(DTYPES))
    of = lengths if not lengths or rng.random() > 0.04 else [lengths[0] + 1, *lengths[1:]]
    items = [*(random_slice(rng, n) for n in before), Compared.of(rng, of)]
    items += [random_slice(rng, n) for n in after[:rng.randint(0, len(after))]]
    path = os.path.join(case.dir, "in.npy")
    np.save(path, np.array(array, order=rng.choice("CCF")))
    spelling = Spelling(case)
    text = spelling.index(items)
    how = assignment if rng.random() < 0.25 else selection
    how(case, array, [np.asarray(i) if isinstance(i, Compared) else i for i in items], path, text, spelling.stdin, outer)


def alike(case):
    """An index of several tensors, none of which is named: all, where the axes that it indexes have one length."""
    rng = case.rng
    length = rng.randint(1, 20)
    tensors = {}
    for name in "abcd"[:rng.randint(2, 4)]:
        shape = [length, *(rng.randint(1, 3) for _ in range(rng.choice([0, 1, 2])))]
        tensors[name] = tensor(rng, shape, rng.choice(["<u1", "<i2", "<f4", "<f8"]))
    if rng.random() < 0.2:
        tensors["odd"] = tensor(rng, rng.choice([[length + 1], [], [length + 3, 2]]), "<u1")
    path = os.path.join(case.dir, "in.npz")
    np.savez(path, **tensors)
    seed = rng.randrange(2**64)
    take = [rng.randrange(length) for _ in range(rng.randint(1, 5))]
    text, index = rng.choice([(f"shuffle({seed})", shuffled(seed, length)), (f"[{take}]", take), ("::-1", slice(None, None, -1)),
                              (str(take[0]), take[0])])
    line, cut = [path, text], None
    if isinstance(index, int) or rng.random() < 0.5:
        line += ["-o", os.path.join(case.dir, "out.npz")]
    else:
        cut = rng.randint(0, 100)
        line = ["split", *line, "--at", f"{cut}%", "-o", os.path.join(case.dir, "out{}.npz")]
    case.story += ["tslice " + " ".join(line), str({name: one.shape for name, one in tensors.items()})]
    run = harness.tslice(*line)
    told = run.stderr.decode()
    if "odd" in tensors:
        if run.returncode != 1 or "has several tensors" not in told and "-t" not in told:
            raise Failure(f"status {run.returncode}, {told!r}")
        return
    if run.returncode or f"the index applies to all {len(tensors)} tensors" not in told or told.count("\n") != 1:
        raise Failure(f"status {run.returncode}, {told!r}")
    for number in range(1 if cut is None else 2):
        with np.load(os.path.join(case.dir, f"out{'' if cut is None else number}.npz")) as found:
            for name, one in tensors.items():
                expected = one[index]
                if cut is not None:
                    expected = np.split(expected, [len(expected) * cut // 100])[number]
                if found[name].shape != expected.shape or found[name].tobytes() != expected.tobytes():
                    raise Failure(f"{name}: {found[name]}, not {expected}")


def random_case(case):
    rng = case.rng
    if rng.random() < 0.02:
        return alike(case)
    if rng.random() < 0.05:
        return compared(case)
    if rng.random() < 0.1:
        return elements(case)
    if rng.random() < 0.03:
        return shuffled_axis(case)
    outer = rng.random() < 0.2
    shape = [rng.choice([0, 1, 2, 3, 4, 5, 6]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3, 3, 4, 4, 5, 6]))]
    if rng.random() < 0.9:
        shape = [max(n, 1) for n in shape]
    if rng.random() < 0.05 and len(shape) in (1, 2):
        shape[0] *= 700
    long = rng.random() < 0.15
    if long and shape:
        shape = [min(n, 3) for n in shape]
        shape[rng.randrange(len(shape))] = rng.randint(20, 2000)
    array = tensor(rng, shape, rng.choice(DTYPES))
    items = random_index(rng, array.shape, outer, long)
    if rng.random() < 0.25:
        with_computed(rng, array.shape, items)
    if int(np.prod([max(i.size, 1) for i in items if isinstance(i, np.ndarray)], dtype=object)) * max(array.size, 1) > (5 * 10**6 if long else 10**8):
        return
    path = os.path.join(case.dir, "in.npy")
    order = rng.choice("CCF")
    np.save(path, np.array(array, order=order))
    spelling = Spelling(case)
    text = spelling.index(items)
    if rng.random() < 0.25:
        assignment(case, array, items, path, text, spelling.stdin, outer)
    else:
        selection(case, array, items, path, text, spelling.stdin, outer)


def selection(case, array, items, path, text, stdin, outer):
    rng = case.rng
    try:
        expected = orthogonal(array, items) if outer else array[tuple(items)]
        error = None
    except IndexError as reason:
        expected, error = None, str(reason)
    out_order = rng.choice("CCCF")
    line = [path, text] + (["--outer"] if outer else []) + (["--order", "F"] if out_order == "F" else [])
    line += ["-j", str(rng.randint(1, 3))] + rng.choice([[], ["--io", "read"]])
    out = os.path.join(case.dir, "out.npy") if rng.random() < 0.5 else None
    line += ["-o", out] if out else []
    case.story += ["tslice " + " ".join(line), f"array {array.shape} {array.dtype}", repr(items)]
    run = harness.tslice(*line, **({} if stdin is None else {"input": stdin}))
    told = MASK_NOTE.sub("", run.stderr.decode())
    if error is not None:
        if run.returncode != 1 or not same_error(told, error):
            raise Failure(f"status {run.returncode}, {told!r} where NumPy says {error!r}")
        if run.stdout or (out and os.path.exists(out)):
            raise Failure("an output in spite of the error")
        return
    if run.returncode or told:
        raise Failure(f"status {run.returncode}, {told!r}")
    got = run.stdout
    if out:
        with open(out, "rb") as file:
            got = file.read()
    wanted = io.BytesIO()
    np.save(wanted, np.array(expected, order=out_order))
    if got != wanted.getvalue():
        shape = np.load(io.BytesIO(got)).shape
        raise Failure(f"wrong bytes: shape {shape} for {expected.shape}")


def assignment(case, array, items, path, text, stdin, outer):
    """a[index] = value; positions that occur twice keep the last value in C order of the result."""
    rng = case.rng
    target = np.array(array)
    numbers = np.arange(array.size).reshape(array.shape)
    try:
        places = orthogonal(numbers, items) if outer else numbers[tuple(items)]
        error = None
    except IndexError as reason:
        places, error = None, str(reason)
    line = ["assign", path, text] + (["--outer"] if outer else [])
    fill = rng.random() < 0.3 and array.dtype.kind in "iuf"
    shape = (2,) if places is None else places.shape
    if fill:
        line += ["--fill", "7"]
        value = np.full(shape, 7).astype(array.dtype)
    else:
        own = shape
        if places is None:
            line, own = line + ["--broadcast"], ()
        elif rng.random() < 0.3:
            line.append("--broadcast")
            own = tuple(rng.choice([n, n, 1]) for n in shape)[rng.choice([0, 0, 1 if len(shape) > 1 else 0]):]
        value = tensor(rng, own, array.dtype)
        values = os.path.join(case.dir, "value.npy")
        np.save(values, np.array(value, order=rng.choice("CF")))
        line += ["--value", values]
    in_place = rng.random() < 0.5
    out = path if in_place else os.path.join(case.dir, "out.npy")
    line += ["--in-place"] if in_place else ["-o", out]
    line += ["-j", str(rng.randint(1, 3))] + rng.choice([[], ["--io", "read"]])
    case.story += ["tslice " + " ".join(line), f"array {array.shape} {array.dtype}", repr(items)]
    with open(path, "rb") as file:
        before = file.read()
    run = harness.tslice(*line, **({} if stdin is None else {"input": stdin}))
    told = MASK_NOTE.sub("", run.stderr.decode())
    if error is not None:
        with open(path, "rb") as file:
            changed = file.read() != before
        if run.returncode != 1 or not same_error(told, error) or changed:
            raise Failure(f"status {run.returncode}, {told!r} where NumPy says {error!r}; changed: {changed}")
        return
    if run.returncode or told:
        raise Failure(f"status {run.returncode}, {told!r}")
    flat = target.reshape(-1)
    for place, element in zip(places.reshape(-1).tolist(), np.broadcast_to(value, places.shape).reshape(-1)):
        flat[place] = element
    got = np.load(out)
    if got.shape != target.shape or got.tobytes() != target.tobytes():
        raise Failure("the target is not what NumPy makes of it")


def one(job):
    options, number = job
    test = compared if options.comparisons else alike if options.alike else random_case
    return harness.run_case(Case(random.Random(f"{options.seed} {number}")), test, number, options.keep)


def main():
    parser = harness.case_parser(__doc__.split("\n")[0], 500)
    parser.add_argument("--comparisons", action="store_true", help="masks by comparison alone")
    parser.add_argument("--alike", action="store_true", help="an index of several tensors alone")
    options = parser.parse_args()
    harness.begin(options)
    return harness.run_cases("lists_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
