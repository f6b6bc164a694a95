"""Files for the program to read, and a strict reader of what it writes."""

import json
import struct

import numpy as np

from harness import MIB, Failure

# How many bits an element of a safetensors dtype has.
BITS = {"BOOL": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
        "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
        "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64}


def cube(path="a.npy", shape=(5, 6, 7), dtype="<i4"):
    array = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    np.save(path, array)
    return array


def big(path, mib):
    """A sparse .npy of float32, rows of 4 KiB, that takes no space on the disk."""
    rows = mib * MIB // 4096
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": (rows, 1024)})
        file.truncate(file.tell() + rows * 4096)
    return rows


def safetensors_file(tensors, metadata=None):
    """The bytes of a file; tensors: name -> (dtype, shape, bytes), in order of their data."""
    header, at = {}, 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values())


def write_safetensors(path, tensors, metadata=None):
    with open(path, "wb") as file:
        file.write(safetensors_file(tensors, metadata))


def item_bytes(code):
    return max(BITS[code] // 8, 1)


def aligned(tensors):
    """The tensors in the order in which a file is written: as they stand where each begins at a multiple of its
    item's size, else those of larger items first."""
    at = 0
    for code, _, data in tensors.values():
        if at % item_bytes(code):
            return dict(sorted(tensors.items(), key=lambda one: -BITS[one[1][0]]))
        at += len(data)
    return tensors


def check_aligned(tensors):
    """Refuse tensors, in the order of their file, of which one begins at no multiple of its item's size."""
    at = 0
    for name, (code, _, data) in tensors.items():
        if at % item_bytes(code):
            raise Failure(f"{name!r} of {code} begins at byte {at} of the data")
        at += len(data)


def read_safetensors(blob):
    """A strict reader: what the format document allows and nothing else."""
    if len(blob) < 8:
        raise Failure(f"a safetensors output of {len(blob)} bytes")
    (length,) = struct.unpack("<Q", blob[:8])
    if (8 + length) % 8:
        raise Failure(f"the data of the output begin at byte {8 + length}, not on 8 bytes")
    text = blob[8 : 8 + length]
    if text[:1] != b"{":
        raise Failure("the header does not begin with {")

    def unique(pairs):
        if len({k for k, _ in pairs}) != len(pairs):
            raise Failure("a key twice in the header")
        return dict(pairs)

    header = json.loads(text.decode(), object_pairs_hook=unique)
    metadata = header.pop("__metadata__", None)
    data, at, tensors = blob[8 + length :], 0, {}
    for name, info in sorted(header.items(), key=lambda entry: entry[1]["data_offsets"]):
        if set(info) != {"dtype", "shape", "data_offsets"}:
            raise Failure(f"the entry of {name!r} has the keys {sorted(info)}")
        begin, end = info["data_offsets"]
        bits = BITS[info["dtype"]] * int(np.prod(info["shape"], dtype=object) if info["shape"] else 1)
        if begin != at or (end - begin) * 8 != bits:
            raise Failure(f"offsets of {name!r}: {begin}..{end} after {at}, for {bits} bits")
        tensors[name] = (info["dtype"], tuple(info["shape"]), data[begin:end])
        at = end
    if at != len(data):
        raise Failure(f"{len(data) - at} bytes after the last tensor")
    return tensors, metadata
