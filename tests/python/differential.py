#!/usr/bin/env python3
"""Differential test: the tslice binary against live NumPy.

    python tests/python/differential.py --bin target/debug/tslice --count 5000 --seed 1

Every case is a random tensor file, a random index in a random spelling, and a random way in and
out. What NumPy accepts must come out byte for byte as np.save writes it; what NumPy refuses must
end with exit status 1 (does not fit the shape) or 2 (no shape could make it right), a `tslice:`
message, no output and no litter. About one case in five is a safetensors file, laid out here with
struct and json alone.

A case is a function of (seed, number): `--only NUMBER` runs one again, `--keep` leaves its files.
The elements are compared as raw bytes: the tensor is indexed by NumPy as an array of void items,
so that the padding of structured dtypes counts too. Needs Python 3.9 and NumPy 2.
What the binary does not do yet is named with `--without`, so that it is left out in plain sight.
"""

import fnmatch
import io
import os
import random
import shlex
import struct
import subprocess
import sys
import tempfile
import warnings

import numpy as np

import harness
from formats import BITS, read_safetensors, safetensors_file
from harness import TIMEOUT, Failure

MAX_NDIM = 64
INT64 = (-(2**63), 2**63 - 1)
POOL_BYTES = 9 << 20
FEATURES = ("several", "keep-rest")
pool = b""


# ---------------------------------------------------------------- dtypes and files


def plain_dtype(rng):
    order = rng.choice("<>")
    kind = rng.randrange(10)
    if kind < 5:
        code = rng.choice(["b1", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"])
        return np.dtype(order + code)
    if kind == 5:
        return np.dtype(rng.choice([np.longdouble, np.clongdouble])).newbyteorder(order)
    if kind == 6:
        return np.dtype("%sS%d" % ("|", rng.choice([0, 1, 3, 5, 16, 33])))
    if kind == 7:
        return np.dtype("%sU%d" % (order, rng.choice([0, 1, 2, 3, 7])))
    if kind == 8:
        return np.dtype("V%d" % rng.choice([0, 1, 3, 5, 12, 24, 100]))
    unit = rng.choice(["", "[Y]", "[M]", "[W]", "[D]", "[h]", "[m]", "[s]", "[ms]", "[us]", "[ns]",
                       "[ps]", "[fs]", "[as]", "[25s]", "[7D]"])
    return np.dtype(order + rng.choice(["M8", "m8"]) + unit)


NAMES = ["x", "y", "z", "left", "right", "a b", "it's", 'say "hi"', "back\\slash", "(1, 2)", "f0",
         "descr", "naïve", "Ångström", "日本", "σ", "{", "}]", "'shape': (3,)", "tab\there"]


def struct_dtype(rng, depth=0):
    names = rng.sample(NAMES, rng.randrange(1, 5))
    formats, offsets, titles, at = [], [], [], 0
    padded, titled = rng.random() < 0.4, rng.random() < 0.25
    for i, _ in enumerate(names):
        field = struct_dtype(rng, depth + 1) if depth < 2 and rng.random() < 0.2 else plain_dtype(rng)
        if field.itemsize and rng.random() < 0.25:
            field = np.dtype((field, rng.choice([(2,), (1,), (2, 3), (1, 2, 1)])))
        if padded:
            at += rng.randrange(0, 5)
        formats.append(field)
        offsets.append(at)
        titles.append("title %d" % i if titled else None)
        at += field.itemsize
    spec = {"names": names, "formats": formats, "offsets": offsets,
            "itemsize": at + (rng.randrange(0, 5) if padded else 0)}
    if titled:
        spec["titles"] = titles
    return np.dtype(spec)


def random_dtype(rng):
    """A fixed-size dtype that NumPy itself can save and load."""
    while True:
        dtype = struct_dtype(rng) if rng.random() < 0.25 else plain_dtype(rng)
        try:
            descr = np.lib.format.dtype_to_descr(dtype)
            again = np.lib.format.descr_to_dtype(descr)
            if np.lib.format.dtype_to_descr(again) == descr and again.itemsize == dtype.itemsize:
                return again
        except (ValueError, TypeError):
            continue


def blank(shape, dtype, order="C"):
    """An array of exactly this dtype (np.empty makes S1 of S0), contents undefined."""
    return np.ndarray(shape, dtype=dtype, order=order)


def npy_header(shape, dtype, order="C", version=None):
    """The header that np.save writes, and whether it says Fortran order."""
    out = io.BytesIO()
    array = blank(shape, dtype, order)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.lib.format.write_array(out, array, version=version)
    raw = out.getvalue()
    header = raw[: len(raw) - array.nbytes]
    return header, array.flags.f_contiguous and not array.flags.c_contiguous


def handmade_header(rng, shape, dtype, fortran):
    """A version 1.0 header as other writers spell it; np.load reads every one of them."""
    descr = repr(np.lib.format.dtype_to_descr(dtype))
    if dtype.names is None and dtype.kind in "iufc" and dtype.isnative and rng.random() < 0.5:
        descr = repr(rng.choice([dtype.str.replace("<", "="), dtype.str[1:], dtype.name]))
    axes = [str(n) for n in shape]
    style = rng.randrange(5)
    text = "(%s%s)" % (", ".join(axes), "," if len(axes) == 1 or (axes and style == 1) else "")
    parts = ["'descr': " + descr, "'fortran_order': %r" % fortran, "'shape': " + text]
    if style in (2, 3):
        rng.shuffle(parts)
    if style == 3 and dtype.names is None:
        parts = [p.replace("'descr'", '"descr"').replace("'shape'", '"shape"') for p in parts]
    body = "{%s%s}" % ((" , " if style == 2 else ", ").join(parts), "," if style == 4 else "")
    body = body.encode("latin1")
    body += b" " * (-(10 + len(body) + 1) % rng.choice([16, 64, 1])) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(body)) + body


def random_shape(rng, itemsize):
    """A shape of a few KiB at most; now and then of a few MiB, so that plans have many pieces."""
    if rng.random() < 0.006 and itemsize:
        ndim, limit = rng.randrange(1, 5), (1 << 20) * rng.choice([1, 3]) // itemsize
        shape = [1] * ndim
        while True:
            axis = rng.randrange(ndim)
            longer = shape[axis] * rng.choice([2, 3, 7]) + rng.randrange(2)
            if int(np.prod(shape, dtype=object)) // shape[axis] * longer > limit:
                return tuple(shape)
            shape[axis] = longer
    ndim = rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 6, 7])
    if rng.random() < 0.03:
        ndim = rng.choice([8, 9, 13, 31, 32, 33, 63, 64])
    shape, count, limit = [], 1, max(1, 6144 // max(1, itemsize))
    for _ in range(ndim):
        n = rng.choice([1, 2, 3, 4, 5, 6, 7, 9, 13]) if ndim < 8 else rng.choice([1, 1, 1, 1, 2, 3])
        n = n if count * n <= limit else 1
        shape.append(n)
        count *= n
    if ndim and rng.random() < 0.08:
        shape[rng.randrange(ndim)] = 0
    rng.shuffle(shape)
    return tuple(shape)


def random_bytes(rng, n):
    start = rng.randrange(0, len(pool) - n + 1)
    return pool[start : start + n]


class Tensor:
    """Raw elements with a shape: indexed by NumPy, read back as bytes."""

    def __init__(self, data, shape, itemsize, order="C"):
        self.data, self.shape, self.itemsize, self.order = data, shape, itemsize, order
        if itemsize:
            self.array = np.ndarray(shape, "V%d" % itemsize, buffer=data, order=order)
        else:
            self.array = np.ndarray(shape, np.dtype([]))

    def take(self, index):
        """The shape of the selection, and a function from order to its bytes."""
        index = index if Ellipsis in index else index + (Ellipsis,)
        view = self.array[index]
        return view.shape, lambda order: view.tobytes(order) if self.itemsize else b""


def expected_npy(shape, raw, dtype, order):
    header, fortran = npy_header(shape, dtype, order)
    return header + raw("F" if fortran else "C")


# ---------------------------------------------------------------- index expressions


def random_items(rng, shape):
    """Items that NumPy accepts: ints, slices, Ellipsis and None."""
    items, axis, ndim = [], 0, len(shape)
    stop_at = ndim if rng.random() < 0.5 else rng.randrange(ndim + 1)
    dots = rng.randrange(stop_at + 1) if rng.random() < 0.4 else None
    calm = ndim > 7 or rng.random() < 0.5
    while axis < stop_at or dots is not None:
        if rng.random() < (0.03 if ndim > 7 else 0.12):
            items.append(None)
            continue
        if dots == axis:
            items.append(Ellipsis)
            dots = None
            skipped = rng.randrange(0, ndim - axis + 1)
            axis += skipped
            tail = min(ndim - axis, max(0, stop_at - axis))
            axis = ndim - tail
            stop_at = ndim
            continue
        if axis >= stop_at:
            break
        n = shape[axis]
        if n and rng.random() < 0.3:
            items.append(rng.randrange(-n, n))
        else:
            items.append(random_slice(rng, n, calm))
        axis += 1
    while rng.random() < 0.1:
        items.append(None)
    result = sum(not isinstance(i, int) for i in items) + ndim
    return [i for i in items if i is not None] if result > MAX_NDIM else items


def random_slice(rng, n, calm):
    def bound():
        kind = rng.random()
        if kind < 0.35:
            return None
        if calm or kind < 0.85:
            return rng.randrange(-n - 2, n + 3)
        return rng.choice([-1, 1]) * rng.choice(
            [10**6, 2**31, 2**32 + 1, 2**62, 2**63 - 1, 2**63, 2**64, 2**64 + 3, 10**30])

    def step():
        kind = rng.random()
        if kind < 0.4:
            return None
        if calm or kind < 0.9:
            return rng.choice([1, 1, 2, 3, 5, -1, -1, -2, -3])
        return rng.choice([-1, 1]) * rng.choice([100, 2**31, 2**62, 2**63 - 1, 2**63, 2**64 + 1, 10**25])

    if rng.random() < 0.15:
        return slice(None)
    return slice(bound(), bound(), step())


def spell_int(rng, value):
    sign = "-" if value < 0 else ("+" if rng.random() < 0.05 else "")
    size, style = abs(value), rng.random()
    if style < 0.75:
        digits = str(size)
    else:
        prefix = rng.choice(["0x", "0X", "0b", "0B", "0o", "0O"])
        digits = format(size, {"x": rng.choice("xX"), "b": "b", "o": "o"}[prefix[1].lower()])
        digits = prefix + rng.choice(["", "", "_", "0"]) + digits
    if rng.random() < 0.1 and len(digits) > 1 and digits[0] != "0":
        cut = rng.randrange(1, len(digits))
        digits = digits[:cut] + "_" + digits[cut:]
    if size == 0 and digits == "0" and rng.random() < 0.1:
        digits = rng.choice(["00", "0_0"])
    return sign + digits


def spell_item(rng, item, gap):
    if item is Ellipsis:
        return rng.choice(["...", "...", "Ellipsis"])
    if item is None:
        return rng.choice(["None", "newaxis", "np.newaxis", "tf.newaxis"])
    if isinstance(item, int):
        return spell_int(rng, item)

    def bound(value):
        if value is None:
            return "None" if rng.random() < 0.15 else ""
        return spell_int(rng, value)

    text = bound(item.start) + gap() + ":" + gap() + bound(item.stop)
    if item.step is not None or rng.random() < 0.15:
        text += gap() + ":" + gap() + bound(item.step)
    return text


def spell(rng, texts):
    """Joins item texts: white space, brackets, trailing comma. Never begins like a flag."""
    airy = rng.random() < 0.3

    def gap():
        return rng.choice(["", "", " ", "  ", "\t", "\n", " \r\n"]) if airy else ""

    body = ("," if rng.random() < 0.3 else ", ").join(gap() + t + gap() for t in texts)
    if texts and rng.random() < 0.12:
        body += "," + gap()
    flaglike = body.lstrip().startswith("-") and not body.startswith("-")
    wrap = rng.choice(["[]", "[]", "()", None, None])
    if flaglike and wrap is None:
        wrap = "[]"
    return body if wrap is None else gap() + wrap[0] + body + wrap[1] + gap()


BAD_ITEMS = ["1.5", "1e3", "a", "--1", "+-1", "1__0", "_1", "1_", "0x", "0b2", "0o8", "01", "1 2", ". . .",
             "..", "....", "1:2:3:4", "none", "np.None", "newaxi", "1;2", "\u00a01", "\uff11", "@", "*", "0x1g",
             "0 x1", "1:a", "1:...", "Ellipsis:2", "::1.0", "'1'", "1-1", "2*3", "newaxis newaxis", "1 :2 3",
             "::None:", "0b", "0x_", "1\u2003", "-", "+", "np.", "\U0001f600", "nan", "1/2", "…", "１:２"]
BAD_WHOLES = ["[0", "0]", "(0]", "[0)", "0,,0", ",", "[,]", ",0", "[0]]", "[0][0]", "0, , 0", "()()", "[[", "]",
              "(", "[:] :", "0;", "[...,,]", "[ , ]"]
OVERFLOWS = [2**64, -(2**64), 2**65 + 1, -(10**20), 10**40]


def keep_dims(items):
    """The items of --keepdims: an integer i becomes the slice of length 1 at i."""
    return tuple(slice(i, i + 1 if i != -1 else None) if isinstance(i, int) else i for i in items)


# ---------------------------------------------------------------- StridedSlice flags


def to_flags(rng, items):
    """The same index as begin, end, strides and masks, with noise wherever it is not looked at."""
    begin, end, strides = [], [], []
    masks = dict.fromkeys(["begin", "end", "ellipsis", "new-axis", "shrink-axis"], 0)
    seen_dots = False
    noise = lambda: rng.choice([0, 0, 1, -1, 5, 2**40, *INT64])
    for i, item in enumerate(items):
        bit = 1 << i

        def sometimes(*names):
            for name in names:
                masks[name] |= bit if rng.random() < 0.2 else 0

        if item is Ellipsis:
            begin.append(noise()), end.append(noise()), strides.append(rng.choice([1, 1, 0, -4]))
            masks["ellipsis"] |= bit
            sometimes("begin", "end", "new-axis", "shrink-axis")
        elif item is None:
            begin.append(noise()), end.append(noise()), strides.append(rng.choice([1, 1, 0, -4]))
            masks["new-axis"] |= bit
            sometimes("begin", "end", "shrink-axis")
        elif isinstance(item, int):
            begin.append(item), end.append(rng.choice([min(item + 1, INT64[1]), noise()]))
            strides.append(rng.choice([1, 1, 1, 2, 9]))
            masks["shrink-axis"] |= bit
            sometimes("begin", "end")
        else:
            begin.append(noise() if item.start is None else item.start)
            end.append(noise() if item.stop is None else item.stop)
            strides.append(1 if item.step is None else item.step)
            masks["begin"] |= bit if item.start is None else 0
            masks["end"] |= bit if item.stop is None else 0
    m = len(items)
    if m < 62 and rng.random() < 0.2:
        past = 1 << rng.randrange(m, 63)
        masks[rng.choice([n for n in masks if n != "ellipsis"])] |= past
    return begin, end, strides, masks


def spell_mask(rng, mask):
    bits = [i for i in range(mask.bit_length()) if mask >> i & 1]
    return rng.choice([str(mask), hex(mask), bin(mask), "|".join("1<<%d" % b for b in bits) or "0"])


def spell_flags(rng, begin, end, strides, masks):
    args = []

    def flag(name, value):
        args.extend([f"--{name}={value}"] if rng.random() < 0.5 else [f"--{name}", value])

    def numbers(values):
        text = rng.choice([",", ",", ", "]).join(str(v) for v in values)
        return f"[{text}]" if rng.random() < 0.2 else text

    flag("begin", numbers(begin))
    flag("end", numbers(end))
    if any(s != 1 for s in strides) or rng.random() < 0.5:
        flag("strides", numbers(strides))
    for name, mask in masks.items():
        if mask or rng.random() < 0.1:
            flag(name + "-mask", spell_mask(rng, mask))
    return args


def fits_int64(items):
    for item in items:
        parts = (item.start, item.stop, item.step) if isinstance(item, slice) else (item,)
        if any(isinstance(p, int) and not INT64[0] <= p <= INT64[1] for p in parts):
            return False
    return True


# ---------------------------------------------------------------- one index, right or wrong


class Request:
    """An index as arguments, and what NumPy says to it."""

    def __init__(self):
        self.args = []  # what stands for INDEX on the command line
        self.items = ()  # what NumPy is given
        self.statuses = (0,)
        self.says = None  # a text that the message must hold
        self.broken_input = None


def make_request(rng, shape, flags_allowed=True, wrong_rate=0.16):
    request = Request()
    items = random_items(rng, shape)
    as_flags = flags_allowed and rng.random() < 0.2
    gap = lambda: rng.choice(["", "", "", " "])
    texts = None
    wrong = None
    if rng.random() < wrong_rate:
        kinds = ["out_of_range", "out_of_range", "too_many", "step0", "two_dots", "overflow", "syntax", "syntax"]
        kinds += ["lengths", "negative_mask", "shrink_stride"] if as_flags else []
        wrong = rng.choice(kinds)
        as_flags = as_flags and wrong not in ("overflow", "syntax")
    place = rng.randrange(len(items) + 1)
    if wrong == "out_of_range":
        axis = rng.randrange(len(shape)) if shape else 0
        if shape:
            n = shape[axis]
            items = [slice(None)] * axis + [rng.choice([n, n + 3, -n - 1, -n - 9, *INT64])]
            request.statuses = (1,)
    elif wrong == "too_many":
        items = [i for i in items if i is None or i is Ellipsis]
        items[place:place] = [slice(None)] * (len(shape) + 1 + rng.randrange(3))
        request.statuses, request.says = (1,), None if as_flags else "too many indices"
    elif wrong == "step0":
        items.insert(place, slice(rng.choice([None, 1]), None, 0))
        request.statuses = (2,)
    elif wrong == "two_dots":
        items.insert(place, Ellipsis)
        items.insert(rng.randrange(len(items) + 1), Ellipsis)
        request.statuses = (2,)
    elif wrong == "overflow":
        items.insert(place, rng.choice(OVERFLOWS))
        request.statuses = (2,)
    elif wrong == "syntax":
        request.statuses = (2,)
        if rng.random() < 0.3:
            texts = rng.choice(BAD_WHOLES)
        else:
            texts = [spell_item(rng, i, gap) for i in items]
            texts.insert(place, rng.choice(BAD_ITEMS))
            texts = "[" + ", ".join(texts) + "]"
    if len(items) > MAX_NDIM or sum(i is None for i in items) + len(shape) > MAX_NDIM:
        if not wrong:
            items = []
        as_flags = as_flags and len(items) <= MAX_NDIM
    request.items = tuple(items)
    if as_flags and fits_int64(items):
        begin, end, strides, masks = to_flags(rng, items)
        if wrong == "lengths":
            rng.choice([begin, end]).append(1)
            request.statuses = (2,)
        elif wrong == "negative_mask":
            request.args = spell_flags(rng, begin, end, strides, masks)
            request.args.append("--%s-mask=-%d" % (rng.choice(["begin", "end", "new-axis"]), rng.randrange(1, 9)))
            request.args = [a for i, a in enumerate(request.args)
                            if i == len(request.args) - 1 or not is_repeat(request.args, i)]
            request.statuses = (2,)
            return request
        elif wrong == "shrink_stride":
            at = [i for i, item in enumerate(items) if isinstance(item, int)]
            if at:
                strides[rng.choice(at)] = rng.choice([0, -1, INT64[0]])
                request.statuses = (2,)
        request.args = spell_flags(rng, begin, end, strides, masks)
        return request
    if wrong in ("lengths", "negative_mask", "shrink_stride"):
        request.statuses = (0,)
    if isinstance(texts, str):
        text = texts
    else:
        text = spell(rng, [spell_item(rng, i, gap) for i in items])
    request.args = [text] if text.strip() or rng.random() < 0.5 else []
    if any(isinstance(i, int) for i in items) and wrong is None and rng.random() < 0.12:
        request.args.append("--keepdims")
        request.items = keep_dims(items)
    if wrong == "out_of_range" and shape:
        try:
            blank(shape, "V1")[request.items]
        except IndexError as error:
            request.says = str(error)
    return request


def is_repeat(args, i):
    """Whether argument i belongs to a flag that the last argument gives again."""
    name = args[-1].split("=")[0]
    return args[i].split("=")[0] == name or (i and args[i - 1] == name)


# ---------------------------------------------------------------- running


class Case:
    """One folder, one run, and what was found there afterwards."""

    def __init__(self, rng, without=()):
        self.rng, self.without = rng, without
        self.dir = tempfile.mkdtemp(prefix="tslice-diff-")
        os.mkdir(self.path("tmp"))
        self.story = []

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)

    def run(self, args, stdin=None, stdout="pipe", pipe_in=None):
        """Runs tslice in the folder. `stdin`: a file's name; `pipe_in`: bytes for a pipe."""
        shown = " ".join(shlex.quote(a) for a in ["tslice", *args])
        shown = (f"cat {stdin} | " if pipe_in is not None else "") + shown
        shown += f" < {stdin}" if stdin and pipe_in is None else ""
        shown += f" > {stdout}" if stdout != "pipe" else ""
        self.story.append("argv: " + shown)
        source = open(self.path(stdin), "rb") if stdin and pipe_in is None else None
        target = open(self.path(stdout), "wb") if stdout != "pipe" else None
        given = {"input": pipe_in} if pipe_in is not None else {"stdin": source or subprocess.DEVNULL}
        try:
            done = harness.tslice(*args, cwd=self.dir, env=harness.env(TMPDIR=self.path("tmp")),
                                  stdout=target or subprocess.PIPE, **given)
        except subprocess.TimeoutExpired:
            raise Failure(f"still running after {TIMEOUT} s") from None
        finally:
            for file in (source, target):
                if file:
                    file.close()
        out = done.stdout
        if target:
            with open(self.path(stdout), "rb") as file:
                out = file.read()
        self.story.append(f"exit status {done.returncode}; stderr: {done.stderr.decode(errors='replace').strip()!r}")
        return done.returncode, out, done.stderr.decode(errors="replace")

    def check_names(self, expected):
        found = set(os.listdir(self.dir)) - {"tmp"} | {"tmp/" + n for n in os.listdir(self.path("tmp"))}
        if found != set(expected):
            raise Failure(f"files: expected {sorted(expected)}, found {sorted(found)}")

    def check_error(self, status, err, statuses, says=None):
        if status not in statuses:
            raise Failure(f"exit status {status}, expected {' or '.join(map(str, statuses))}")
        if not err.startswith("tslice: "):
            raise Failure("the message does not begin with `tslice: `")
        if says and says not in err:
            raise Failure(f"the message does not say {says!r}")
        if "panicked" in err:
            raise Failure("a panic")


def shorten(data, most=96):
    return data if len(data) <= most else data[:most] + b"...(%d bytes)" % len(data)


def compare(found, expected, what):
    if found != expected:
        at = next((i for i, (a, b) in enumerate(zip(found, expected)) if a != b), min(len(found), len(expected)))
        raise Failure(f"{what}: {len(found)} bytes, expected {len(expected)}; first difference at byte {at}: "
                      f"{bytes(found[at:at + 24])!r}, expected {bytes(expected[at:at + 24])!r}\n"
                      f"  begins {shorten(bytes(found), 128)!r}\n  expected {shorten(bytes(expected), 128)!r}")


def input_way(rng, name, data):
    """(INPUT argument, keyword arguments of run, whether --io may be given)."""
    way = rng.choice(["file", "file", "file", "redirect", "pipe"])
    if way == "file":
        return rng.choice([name, "./" + name]), {}, True
    if way == "redirect":
        return "-", {"stdin": name}, True
    return "-", {"stdin": name, "pipe_in": data}, False


def common_options(rng, io_allowed):
    options = []
    if io_allowed and rng.random() < 0.4:
        options.append(["--io", rng.choice(["auto", "mmap", "read"])])
    if rng.random() < 0.4:
        n = str(rng.randrange(1, 5))
        options.append(rng.choice([["-j", n], ["-j" + n], ["--threads", n], ["--threads=" + n]]))
    if rng.random() < 0.1:
        options.append([rng.choice(["-q", "--quiet"])])
    return options


def output_way(rng, extension):
    """(option groups, file name or None, standard output for run)."""
    way = rng.choice(["-o", "-o", "-o", "--to", "pipe", "dash", "redirect"])
    if way == "-o":
        name = "out." + extension
        return [rng.choice([["-o", name], ["--output", name], ["--output=" + name], ["-o" + name]])], name, "pipe"
    if way == "--to":
        return [["-o", "result"], ["--to", extension]], "result", "pipe"
    options = [] if extension == "npy" else [["--to", extension]]
    if way == "dash":
        options.append(["-o", "-"])
    return options, None, "captured" if way == "redirect" else "pipe"


def arrange(rng, input_arg, index_args, groups):
    """One command line: INPUT before INDEX, option groups anywhere."""
    head, tail = [], []
    for group in groups:
        (head if rng.random() < 0.3 else tail).extend(group)
    return [*head, input_arg, *index_args, *tail]


INPUT_NAMES = ["in.npy", "in.npy", "in.npy", "in", "we ird.npy", "in.safetensors", "ünï.npy", "in.bin"]


def npy_case(case):
    rng = case.rng
    dtype = random_dtype(rng)
    shape = random_shape(rng, dtype.itemsize)
    order = rng.choice("CCF")
    header, fortran = npy_header(shape, dtype, order)
    if rng.random() < 0.3:
        try:
            header, fortran = npy_header(shape, dtype, order, rng.choice([(1, 0), (2, 0), (3, 0)]))
        except (ValueError, UnicodeError):
            pass
    elif rng.random() < 0.12 and all(ord(c) < 256 for c in repr(np.lib.format.dtype_to_descr(dtype))):
        header = handmade_header(rng, shape, dtype, fortran)
    count = int(np.prod(shape, dtype=object)) if shape else 1
    data = random_bytes(rng, count * dtype.itemsize)
    blob = header + data
    case.story.append(f"input: shape {shape} dtype {np.lib.format.dtype_to_descr(dtype)!r} order {order}; "
                      f"header {header!r}")
    if rng.random() < 0.1:
        blob += random_bytes(rng, rng.choice([1, 7, 64, 1000]))
    request = make_request(rng, shape)
    cut_short = request.statuses == (0,) and data and rng.random() < 0.02
    if cut_short:
        blob = blob[: len(header) + rng.randrange(len(data))]
        request.statuses = (1,)
        case.story.append(f"cut short to {len(blob)} bytes")
    name = rng.choice(INPUT_NAMES)
    case.write(name, blob)
    input_arg, ways, io_allowed = input_way(rng, name, blob)
    options, out_name, stdout = output_way(rng, "npy")
    out_order = "C"
    if rng.random() < 0.2 and dtype.itemsize:  # NumPy makes S1 of S0 where it copies
        out_order = rng.choice("CFF")
        options.append(["--order", out_order])
    args = arrange(rng, input_arg, request.args, options + common_options(rng, io_allowed))
    status, out, err = case.run(args, stdout=stdout, **ways)
    names = [name] + (["captured"] if stdout == "captured" else [])
    if request.statuses != (0,):
        case.check_error(status, err, request.statuses, request.says)
        case.check_names(names)
        if not (cut_short and "pipe_in" in ways):  # there the first bytes may be gone before the cut is seen
            compare(out, b"", "standard output after an error")
        return
    out_shape, raw = Tensor(data, shape, dtype.itemsize, "F" if fortran else "C").take(request.items)
    if status != 0:
        raise Failure(f"exit status {status}, expected 0")
    if err:
        raise Failure("a message on standard error though all went well")
    if out_name:
        compare(out, b"", "standard output beside -o")
        case.check_names(names + [out_name])
        with open(case.path(out_name), "rb") as file:
            out = file.read()
    else:
        case.check_names(names)
    compare(out, expected_npy(out_shape, raw, dtype, out_order), "output")
    with open(case.path(name), "rb") as file:
        compare(file.read(), blob, "the input afterwards")


# ---------------------------------------------------------------- safetensors

DESCR = {"BOOL": "|b1", "U8": "|u1", "I8": "|i1", "F8_E5M2": "|V1", "F8_E4M3": "|V1", "F8_E8M0": "|V1",
         "F8_E4M3FNUZ": "|V1", "F8_E5M2FNUZ": "|V1", "I16": "<i2", "U16": "<u2", "F16": "<f2",
         "BF16": "<V2", "I32": "<i4", "U32": "<u4", "F32": "<f4", "C64": "<c8", "F64": "<f8",
         "I64": "<i8", "U64": "<u8"}
FROM_CODE = {v[1:]: k for k, v in DESCR.items() if "V" not in v}
TENSOR_NAMES = ["w", "layers.0.weight", "layers.1.weight", "layers.1.bias", "embed tokens", "a/b", "gewicht-ß",
                "日本", "x[0]", "it's", "tensor", "W"]


def random_safetensor(rng, dtypes=tuple(BITS)):
    dtype = rng.choice(dtypes)
    bits = BITS[dtype]
    while True:
        shape = random_shape(rng, max(1, bits // 8))
        if bits % 8 and rng.random() < 0.8 and shape:
            shape = shape[:-1] + (rng.choice([4, 8, 12, 2]),)
        count = int(np.prod(shape, dtype=object)) if shape else 1
        if count * bits % 8 == 0 and count * bits < 30_000_000:
            return dtype, shape, random_bytes(rng, count * bits // 8)


def cut(tensor, items):
    """The selection of a safetensors tensor: (shape, bytes), bytes None where it would cut one."""
    dtype, shape, data = tensor
    bits = BITS[dtype]
    if bits % 8 == 0:
        out_shape, raw = Tensor(data, shape, bits // 8).take(items)
        return out_shape, raw("C")
    group = {4: 2, 6: 4}[bits]  # elements that begin and end on a byte together
    count = int(np.prod(shape, dtype=object)) if shape else 1
    numbers = np.arange(count).reshape(shape)
    numbers = numbers[items if Ellipsis in items else items + (Ellipsis,)]
    flat = numbers.ravel()
    if flat.size * bits % 8:
        return numbers.shape, None
    firsts = flat.reshape(-1, group)
    if not ((firsts[:, :1] % group == 0).all() and (firsts == firsts[:, :1] + np.arange(group)).all()):
        return numbers.shape, None
    width = group * bits // 8
    packed = np.frombuffer(data, np.uint8).reshape(-1, width)
    return numbers.shape, packed[firsts[:, 0] // group].tobytes()


def bf16_npy(shape, dtype, data):
    descr = DESCR[dtype]
    header, _ = npy_header(shape, np.dtype(descr))
    return header.replace(b"'|V2'", b"'<V2'") + data


def safetensors_case(case):
    rng = case.rng
    names = rng.sample(TENSOR_NAMES, rng.choice([1, 1, 2, 3, 5]))
    tensors = {name: random_safetensor(rng) for name in names}
    metadata = rng.choice([None, {}, {"format": "pt"}, {"format": "np", "note": "ä \"q\" \\ \n", "z": "", "a": "1"}])
    blob = safetensors_file(tensors, metadata)
    case.story.append("input: " + ", ".join(f"{n!r} {d} {s}" for n, (d, s, _) in tensors.items())
                      + f"; metadata {metadata}")
    in_name = rng.choice(["in.safetensors", "in.safetensors", "in.npy", "in"])
    case.write(in_name, blob)
    kind = rng.choice(["npy", "npy", "one", "one", "one", "several", "keep-rest", "unnamed"])
    kind = "one" if kind in case.without else kind
    chosen = [rng.choice(names)]
    extension = "npy" if kind in ("npy", "unnamed") else "safetensors"
    options = []
    if kind == "several":
        chosen = rng.sample(names, rng.randrange(1, len(names) + 1))
        if rng.random() < 0.3 and len(names) > 1:
            pattern = rng.choice(["*", "layers.*", "layers.?.weight", "*weight"])
            found = [n for n in names if fnmatch.fnmatchcase(n, pattern)]
            if found and not any("[" in n for n in found):
                chosen = found
                options.append([rng.choice(["-t", "--tensor"]), pattern])
        # One index for all of them: nothing that depends on their shapes.
    if not options and not (kind == "unnamed" or (len(names) == 1 and rng.random() < 0.4)):
        options += [rng.choice([["-t", n], ["--tensor", n], ["--tensor=" + n]]) for n in chosen]
    if kind == "keep-rest":
        options.append(["--keep-rest"])
    first = tensors[chosen[0]]
    request = make_request(rng, first[1], wrong_rate=0.08)
    if len(chosen) > 1:
        request = Request()
        request.args, request.items = rng.choice([([], ()), (["..."], (Ellipsis,)), (["[None]"], (None,)),
                                                  (["[..., None]"], (Ellipsis, None))])
        if max(len(tensors[n][1]) for n in chosen) == MAX_NDIM:
            request.args, request.items = [], ()
    if kind == "unnamed":
        if len(names) > 1:
            request.statuses = (1, 2) if request.statuses == (0,) else tuple({1, 2, *request.statuses})
            request.says = None
    results = {}
    if request.statuses == (0,):
        for name in chosen:
            shape, data = cut(tensors[name], request.items)
            results[name] = (tensors[name][0], shape, data)
        if any(data is None for _, _, data in results.values()):
            request.statuses = (1,)
        elif extension == "npy" and any(d not in DESCR for d, _, _ in results.values()):
            request.statuses = (1,)
    input_arg, ways, io_allowed = input_way(rng, in_name, blob)
    more, out_name, stdout = output_way(rng, extension)
    args = arrange(rng, input_arg, request.args, options + more + common_options(rng, io_allowed))
    status, out, err = case.run(args, stdout=stdout, **ways)
    present = [in_name] + (["captured"] if stdout == "captured" else [])
    if request.statuses != (0,):
        case.check_error(status, err, request.statuses, request.says)
        if kind == "unnamed" and len(names) > 1 and status == 1 and request.says is None:
            if "index" not in err and not all(n in err or repr(n) in err for n in names):
                raise Failure("the message does not list the names of the tensors")
        case.check_names(present)
        compare(out, b"", "standard output after an error")
        return
    if status != 0:
        raise Failure(f"exit status {status}, expected 0")
    if err:
        raise Failure("a message on standard error though all went well")
    if out_name:
        case.check_names(present + [out_name])
        with open(case.path(out_name), "rb") as file:
            out = file.read()
    else:
        case.check_names(present)
    if extension == "npy":
        (dtype, shape, data), = results.values()
        compare(out, bf16_npy(shape, dtype, data), "output")
        return
    found, found_metadata = read_safetensors(out)
    expected = {n: results.get(n, t) for n, t in tensors.items() if n in results or kind == "keep-rest"}
    if {n: t[:2] for n, t in found.items()} != {n: t[:2] for n, t in expected.items()}:
        raise Failure(f"tensors {[(n, t[:2]) for n, t in found.items()]}, "
                      f"expected {[(n, t[:2]) for n, t in expected.items()]}")
    if (found_metadata or None) != (metadata or None):
        raise Failure(f"metadata {found_metadata}, expected {metadata}")
    for name, (_, _, data) in expected.items():
        compare(found[name][2], data, f"tensor {name!r}")


def round_trip_case(case):
    """npy to safetensors and back; the byte order is swapped where the target needs it."""
    rng = case.rng
    dtype = random_dtype(rng) if rng.random() < 0.25 else np.dtype(rng.choice("<>") + rng.choice(list(FROM_CODE)))
    shape, order = random_shape(rng, dtype.itemsize), rng.choice("CF")
    header, fortran = npy_header(shape, dtype, order)
    count = int(np.prod(shape, dtype=object)) if shape else 1
    data = random_bytes(rng, count * dtype.itemsize)
    blob = header + data
    case.story.append(f"input: shape {shape} dtype {np.lib.format.dtype_to_descr(dtype)!r} order {order}")
    stem = rng.choice(["cube", "my data", "a.b"])
    case.write(stem + ".npy", blob)
    request = make_request(rng, shape, wrong_rate=0.05)
    target = None if dtype.names is not None or dtype.fields else FROM_CODE.get(dtype.str[1:])
    if request.statuses == (0,) and target is None:
        request.statuses = (1,)
    input_arg, ways, io_allowed = input_way(rng, stem + ".npy", blob)
    more, out_name, stdout = output_way(rng, "safetensors")
    tensor_name = stem if input_arg != "-" else "tensor"
    if rng.random() < 0.3:
        tensor_name = rng.choice(["renamed", "layers.0 ß"])
        more.append(["--name", tensor_name])
    args = arrange(rng, input_arg, request.args, more + common_options(rng, io_allowed))
    status, out, err = case.run(args, stdout=stdout, **ways)
    present = [stem + ".npy"] + (["captured"] if stdout == "captured" else [])
    if request.statuses != (0,):
        case.check_error(status, err, request.statuses, request.says)
        case.check_names(present)
        compare(out, b"", "standard output after an error")
        return
    if status != 0 or err:
        raise Failure(f"exit status {status} and a message {err!r}, expected 0 and none")
    if out_name:
        case.check_names(present + [out_name])
        with open(case.path(out_name), "rb") as file:
            out = file.read()
    out_shape, raw = Tensor(data, shape, dtype.itemsize, "F" if fortran else "C").take(request.items)
    values = raw("C")
    if dtype.str[0] == ">":
        width = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
        values = np.frombuffer(values, "u%d" % width).byteswap().tobytes()
    found, _ = read_safetensors(out)
    if {n: t[:2] for n, t in found.items()} != {tensor_name: (target, out_shape)}:
        raise Failure(f"tensors {[(n, t[:2]) for n, t in found.items()]}, expected "
                      f"{tensor_name!r} {target} {out_shape}")
    compare(found[tensor_name][2], values, f"tensor {tensor_name!r}")
    case.write("between.safetensors", out)
    status, out, err = case.run(["between.safetensors", "-o", "back.npy"])
    if status != 0:
        raise Failure(f"back to npy: exit status {status}")
    with open(case.path("back.npy"), "rb") as file:
        back = file.read()
    little = dtype.newbyteorder("<")
    compare(back, npy_header(out_shape, little)[0] + values, "back to npy")
    loaded = np.load(io.BytesIO(back))
    again = np.frombuffer(values, little).reshape(out_shape)
    if loaded.shape != out_shape or loaded.tobytes() != again.tobytes():
        raise Failure("np.load reads other values")


# ---------------------------------------------------------------- the runner


def start_worker():
    global pool
    pool = random.Random(20).randbytes(POOL_BYTES)
    warnings.simplefilter("ignore")


def one(job):
    options, number = job
    rng = random.Random(f"{options.seed}/{number}")
    case = Case(rng, options.without)
    kind = rng.choices([npy_case, safetensors_case, round_trip_case], [78, 14, 8])[0]
    return harness.run_case(case, kind, number, options.keep)


def main():
    parser = harness.case_parser("tslice against live NumPy", 5000)
    parser.add_argument("--without", default="", help="comma list of: " + ", ".join(FEATURES))
    options = parser.parse_args()
    if int(np.__version__.split(".")[0]) < 2:
        sys.exit(f"differential.py needs NumPy 2, found {np.__version__}")
    harness.begin(options)
    options.without = [name for name in options.without.split(",") if name]
    if set(options.without) - set(FEATURES):
        sys.exit(f"--without takes {', '.join(FEATURES)}")
    for name in options.without:
        print(f"NOT TESTED: {name}")
    return harness.run_cases("differential", options, one, start_worker)


if __name__ == "__main__":
    sys.exit(main())
