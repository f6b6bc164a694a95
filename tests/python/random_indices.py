"""Random indices in random spellings, right and wrong, and what NumPy says to them."""

import os
import re

import numpy as np

from random_tensors import blank

MAX_NDIM = 64
INT64 = (-(2**63), 2**63 - 1)


# ---------------------------------------------------------------- shuffles


def documented():
    """What the Python code of docs/index.md defines."""
    page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs/index.md")
    with open(page, encoding="utf-8") as file:
        code = re.search(r"```python\n(.*?)```", file.read(), re.DOTALL)[1]
    names = {}
    exec(code, names)
    return names


DOCUMENTED = documented()


def shuffled(seed, length):
    """All positions in the order of `shuffle(seed)`."""
    return np.array([DOCUMENTED["position"](at, seed, length) for at in range(length)], np.int64)


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
