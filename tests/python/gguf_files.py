"""Files in the GGUF format, as llama.cpp's programs write them, for the tests of tslice."""

import re
import struct

import numpy as np

# the type's number, elements of a block, bytes of a block
NUMBERS = {"F32": (0, "f4"), "F16": (1, "f2"), "I8": (24, "i1"), "I16": (25, "i2"), "I32": (26, "i4"), "I64": (27, "i8"),
           "F64": (28, "f8"), "BF16": (30, "V2")}
BLOCKS = {"Q4_0": (2, 32, 18), "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34),
          "Q8_1": (9, 32, 40), "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110), "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176),
          "Q6_K": (14, 256, 210), "Q8_K": (15, 256, 292), "IQ2_XXS": (16, 256, 66), "IQ2_XS": (17, 256, 74),
          "IQ3_XXS": (18, 256, 98), "IQ1_S": (19, 256, 50), "IQ4_NL": (20, 32, 18), "IQ3_S": (21, 256, 110),
          "IQ2_S": (22, 256, 82), "IQ4_XS": (23, 256, 136), "IQ1_M": (29, 256, 56), "TQ1_0": (34, 256, 54),
          "TQ2_0": (35, 256, 66), "MXFP4": (39, 32, 17), "NVFP4": (40, 64, 36), "Q1_0": (41, 128, 18)}

# types of metadata: struct's letters
LETTERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
TEXT, LIST = 8, 9
ALIGNMENT = "general.alignment"


class Tensor:
    """A tensor: NumPy's shape in elements, and its bytes in the file."""

    def __init__(self, name, kind, shape, data):
        self.name, self.kind, self.shape, self.data = name, kind, shape, data

    @property
    def block(self):
        return BLOCKS[self.kind][1] if self.kind in BLOCKS else 1

    def items(self):
        """The array of its items: numbers or, with the last axis in blocks, the bytes of these."""
        if self.kind in BLOCKS:
            shape, dtype = (*self.shape[:-1], self.shape[-1] // self.block), f"V{BLOCKS[self.kind][2]}"
        else:
            shape, dtype = self.shape, NUMBERS[self.kind][1]
        return np.frombuffer(self.data, dtype).reshape(shape)


def tensor(rng, name, kind, shape):
    """Random bytes; `shape` in items."""
    count = int(np.prod(shape, dtype=object))
    size = BLOCKS[kind][2] if kind in BLOCKS else np.dtype(NUMBERS[kind][1]).itemsize
    block = BLOCKS[kind][1] if kind in BLOCKS else 1
    return Tensor(name, kind, (*shape[:-1], shape[-1] * block) if shape else (), rng.randbytes(count * size))


def text(value, order="<"):
    value = value if isinstance(value, bytes) else value.encode()
    return struct.pack(order + "Q", len(value)) + value


def value(kind, content, order="<"):
    """A value of metadata; a list is (type of its values, values)."""
    if kind == TEXT:
        return text(content, order)
    if kind == LIST:
        inner, contents = content
        return struct.pack(order + "IQ", inner, len(contents)) + b"".join(value(inner, it, order) for it in contents)
    return struct.pack(order + LETTERS[kind], content)


def header(tensors, metadata=(), order="<", version=3, alignment=32):
    """The header up to the data; `metadata` is (key, type, value)."""
    metadata = list(metadata)
    if alignment != 32 and ALIGNMENT not in [key for key, _, _ in metadata]:
        metadata.append((ALIGNMENT, 4, alignment))
    parts = [b"GGUF", struct.pack(order + "IQQ", version, len(tensors), len(metadata))]
    for key, kind, content in metadata:
        parts += [text(key, order), struct.pack(order + "I", kind), value(kind, content, order)]
    at = 0
    for it in tensors:
        number = (BLOCKS.get(it.kind) or NUMBERS[it.kind])[0]
        parts += [text(it.name, order), struct.pack(order + "I", len(it.shape))]
        parts += [struct.pack(order + "Q", length) for length in reversed(it.shape)]
        parts += [struct.pack(order + "IQ", number, at)]
        at += -(-len(it.data) // alignment) * alignment
    whole = b"".join(parts)
    return whole + bytes(-len(whole) % alignment)


# numbers of several bytes in a block, as ggml-common.h has its structures: "e" is a scale; x skips a byte
SWAPPED = {"Q4_0": "e16x", "Q4_1": "2e16x", "Q5_0": "e20x", "Q5_1": "2e20x", "Q8_0": "e32x", "Q2_K": "80x2e", "Q3_K": "108xe",
           "Q4_K": "2e140x", "Q5_K": "2e172x", "Q6_K": "208xe", "Q8_K": "f256x16h", "IQ4_NL": "e16x", "IQ4_XS": "eh132x",
           "TQ1_0": "52xe", "TQ2_0": "64xe", "MXFP4": "17x", "NVFP4": "36x", "Q1_0": "e16x"}


def big_endian(kind, data):
    """The bytes of a little-endian tensor in a big-endian file; None where nobody knows."""
    if kind in NUMBERS:
        size = np.dtype(NUMBERS[kind][1]).itemsize
        return np.frombuffer(data, "u1").reshape(-1, size)[:, ::-1].tobytes()
    if kind not in SWAPPED:
        return None
    letters = SWAPPED[kind].replace("e", "H").replace("f", "I").replace("h", "H")
    plain = np.frombuffer(data, "u1").reshape(-1, BLOCKS[kind][2]).copy()
    for row in plain:
        at = 0
        for count, letter in re.findall(r"(\d*)([HIx])", letters):
            for _ in range(int(count or 1)):
                size = struct.calcsize(letter)
                row[at:at + size] = row[at:at + size][::-1].copy()
                at += size
    return plain.tobytes()


def file(tensors, metadata=(), order="<", version=3, alignment=32):
    """All of a file; the bytes of numbers are those of a little-endian one."""
    parts = [header(tensors, metadata, order, version, alignment)]
    for it in tensors:
        data = (big_endian(it.kind, it.data) or it.data) if order == ">" else it.data
        parts += [data, bytes(-len(data) % alignment)]
    return b"".join(parts)


def split(tensors, count, metadata=(), order="<"):
    """The files of a model in several, as llama-gguf-split writes them: the first may be without tensors."""
    parts = [tensors[number::count] for number in range(count)]
    files = []
    for number, part in enumerate(parts):
        place = [("split.no", 2, number), ("split.count", 2, count), ("split.tensors.count", 5, len(tensors))]
        files.append(file(part, (list(metadata) if number == 0 else []) + place, order))
    return [it for part in parts for it in part], files
