"""Random tensors and the bytes of their files, as NumPy writes them. Each is a function of a
random.Random, so that a case can be run again."""

import io
import random
import struct
import warnings

import numpy as np

from formats import BITS

pool = b""
POOL_BYTES = 9 << 20


def start_worker():
    global pool
    pool = random.Random(20).randbytes(POOL_BYTES)
    warnings.simplefilter("ignore")


def random_bytes(rng, n):
    start = rng.randrange(0, len(pool) - n + 1)
    return pool[start : start + n]


# ---------------------------------------------------------------- .npy


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
            while rng.random() < 0.3 and field.itemsize < 500:
                field = np.dtype((field, rng.choice([(2,), (1,), (3, 1)])))  # one in another
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
