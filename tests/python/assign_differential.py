#!/usr/bin/env python3
"""Differential test: `tslice assign` and `tslice scatter` against live NumPy.

    python tests/python/assign_differential.py --bin target/debug/tslice --count 1500 --seed 1

Every case is a random target file, a random index or random positions, and a random value. What
`a[index] = value` makes of the elements must be in the file, and every other byte must be as it
was: header, other tensors, bytes after the data. The same command is run with -o and with
--in-place, and the two must agree; what NumPy refuses (and what the tool refuses beyond that: a
value of another shape without --broadcast, of another dtype) must leave every byte alone.

Targets in a `.npz` have members beside them, data descriptors, deflated neighbours or zip64 fields; afterwards
the CRC-32 of the member must be right wherever it stands, and Python's zipfile must find no fault.

Some cases change several tensors that globs choose, of one file or of the shards of a checkpoint, by one
number or by values of the same names; one tensor that does not fit must leave all of them alone.

A case is a function of (seed, number): `--only NUMBER` runs one again, `--keep` leaves its files.
"""

import fnmatch
import io
import json
import os
import random
import struct
import sys
import zipfile
import zlib

import numpy as np

import harness
from cases import Case, compare, input_way
from formats import read_safetensors, safetensors_file
from harness import Failure
from random_indices import make_request
from random_tensors import (
    cut, DESCR, FROM_CODE, npy_header, random_bytes, random_dtype, random_safetensor, random_shape,
    start_worker, Tensor, TENSOR_NAMES)

CODES = {code: np.dtype(descr) for code, descr in DESCR.items() if "V" not in descr}


class Unseekable(io.BytesIO):
    """What zipfile writes data descriptors to."""

    def seekable(self):
        return False

    def tell(self):
        raise OSError

    def seek(self, *args):
        raise OSError


class Target:
    """A file, the tensor in it that is changed, and where its bytes stand."""

    member = None

    def __init__(self, rng):
        self.options = []
        if rng.random() < 0.3:
            names = rng.sample(TENSOR_NAMES, rng.choice([1, 2, 3]))
            self.name = rng.choice(names)
            tensors = {name: random_safetensor(rng, tuple(CODES)) for name in names}
            code, self.shape, self.data = tensors[self.name]
            self.dtype, self.order, self.extension = CODES[code], "C", "safetensors"
            self.blob = safetensors_file(tensors, rng.choice([None, {"a": "1"}]))
            sizes = {name: len(data) for name, (_, _, data) in tensors.items()}
            self.start = len(self.blob) - sum(sizes.values())
            for name in names:
                if name == self.name:
                    break
                self.start += sizes[name]
            if len(names) > 1 or rng.random() < 0.5:
                self.options = [rng.choice(["-t", "--tensor"]), self.name]
        else:
            self.dtype = random_dtype(rng)
            self.shape = random_shape(rng, self.dtype.itemsize)
            self.order, self.extension = rng.choice("CCF"), "npy"
            header, fortran = npy_header(self.shape, self.dtype, self.order)
            self.order = "F" if fortran else "C"
            count = int(np.prod(self.shape, dtype=object)) if self.shape else 1
            self.data = random_bytes(rng, count * self.dtype.itemsize)
            self.start = len(header)
            self.blob = header + self.data
            if rng.random() < 0.3:
                self.pack(rng)
            elif rng.random() < 0.2:
                self.blob += random_bytes(rng, rng.choice([1, 64, 999]))

    def pack(self, rng):
        """Make it a member of an archive."""
        names = rng.sample(TENSOR_NAMES, rng.choice([1, 2, 3]))
        self.member, self.extension, array = rng.choice(names) + ".npy", "npz", self.blob
        out = io.BytesIO() if rng.random() < 0.7 else Unseekable()
        with zipfile.ZipFile(out, "w") as archive:
            for name in names:
                ours = name + ".npy" == self.member
                blob = array if ours else npy_header((3,), np.dtype("u1"))[0] + b"abc"
                info = zipfile.ZipInfo(name + ".npy")
                info.compress_type = zipfile.ZIP_DEFLATED if not ours and rng.random() < 0.4 else zipfile.ZIP_STORED
                with archive.open(info, "w", force_zip64=rng.random() < 0.5) as member:
                    member.write(blob)
        self.blob = out.getvalue()
        self.start += self.blob.index(array)
        if len(names) > 1 or rng.random() < 0.5:
            self.options = [rng.choice(["-t", "--tensor"]), self.member.removesuffix(".npy")]

    def with_data(self, data):
        blob = self.blob[: self.start] + bytes(data) + self.blob[self.start + len(data) :]
        return blob if self.member is None else self.with_sum(bytearray(blob), len(data))

    def with_sum(self, blob, count):
        """The archive with the CRC-32 of the member put right: in its header, behind its data, in the directory."""
        with zipfile.ZipFile(io.BytesIO(self.blob)) as archive:
            info, directory = archive.getinfo(self.member), archive.start_dir
        name_len, extra_len = struct.unpack_from("<HH", blob, info.header_offset + 26)
        begin = info.header_offset + 30 + name_len + extra_len
        end = begin + info.file_size
        crc = struct.pack("<I", zlib.crc32(blob[begin:end]))
        if info.flag_bits & 8:
            assert blob[end : end + 4] == b"PK\7\10"
            blob[end + 4 : end + 8] = crc
        else:
            blob[info.header_offset + 14 : info.header_offset + 18] = crc
        at = directory
        while blob[at + 46 : at + 46 + struct.unpack_from("<H", blob, at + 28)[0]] != self.member.encode():
            at += 46 + sum(struct.unpack_from("<HHH", blob, at + 28))
        blob[at + 16 : at + 20] = crc
        with zipfile.ZipFile(io.BytesIO(bytes(blob))) as archive:
            assert archive.testzip() is None
        return bytes(blob)

    def elements(self, data):
        """A writable array of raw elements over the bytes of a bytearray."""
        return np.ndarray(self.shape, "V%d" % self.dtype.itemsize, buffer=data, order=self.order)


def swapped(rng, dtype):
    """The same dtype in the other byte order, where it is one that is swapped."""
    plain = dtype.kind in "biufcMmU"
    return dtype.newbyteorder() if plain and rng.random() < 0.3 else dtype


def byteswapped(raw, dtype):
    """The bytes of elements in the other byte order."""
    width = {"c": dtype.itemsize // 2, "U": 4}.get(dtype.kind, dtype.itemsize)
    return np.frombuffer(raw, "u1").reshape(-1, max(width, 1))[:, ::-1].tobytes()


def stretched_from(rng, shape):
    """A shape that NumPy broadcasts to `shape` in an assignment."""
    shape = [1 if rng.random() < 0.3 else n for n in shape]
    shape = shape[rng.randrange(len(shape) + 1) :] if rng.random() < 0.4 else shape
    while rng.random() < 0.2 and len(shape) < 60:
        shape = [1] + shape
    return tuple(shape)


def save(rng, array, dtype, name):
    """A file that holds an array of raw elements, as that dtype."""
    code = FROM_CODE.get(dtype.str[1:]) if dtype.names is None else None
    if code and dtype.str[0] != ">" and rng.random() < 0.25:
        tensors = {"v": (code, array.shape, array.tobytes())}
        options = []
        if rng.random() < 0.4:
            tensors["other"] = ("U8", (3,), b"abc")
            options = ["--value-tensor", "v"]
        return name + ".safetensors", safetensors_file(tensors, None), options
    order = rng.choice("CCF")
    header, fortran = npy_header(array.shape, dtype, order)
    return name + ".npy", header + array.tobytes("F" if fortran else "C"), []


NUMBERS = ["0", "1", "-1", "7", "255", "256", "-129", "0x10", "1_000", "1.5", "-2.25e3", "1e-30", "65519", "65520",
           "1e40", "nan", "inf", "-inf", "3.14159265358979", "16777217", "-0.0", "true", "false", "1+2j", "-2.5j",
           "18446744073709551615", "18446744073709551616", "-9223372036854775808", "0.1", ".5", "2."]


def fill_element(text, dtype):
    """The bytes of the element, or None where it has none."""
    if dtype.names is not None or dtype.kind not in "biufc" or dtype.str[1:] in ("f16", "c32"):
        return None
    if dtype.kind == "b":
        truth = {"true": True, "1": True, "false": False, "0": False}
        return np.array(truth[text], dtype).tobytes() if text in truth else None
    if dtype.kind in "iu":
        try:
            return np.array(int(text, 0), dtype).tobytes()
        except (ValueError, OverflowError):
            return None
    try:
        value = complex(text)
    except ValueError:
        try:
            value = complex(int(text, 0))
        except ValueError:
            return None
    if dtype.kind == "f":
        if "j" in text:
            return None
        value = float(int(text, 0) if text.startswith("0x") else text)
    with np.errstate(all="ignore"):
        element = np.array(value).astype(dtype)
    # a number that becomes infinity is refused, unless infinity is what was said
    return element.tobytes() if np.isinf(element) == np.isinf(value) else None


def assign_case(case):
    rng = case.rng
    target = Target(rng)
    dtype = target.dtype
    size = dtype.itemsize
    case.story.append(f"target: shape {target.shape} dtype {dtype.str} {target.extension} {target.order}")
    request = make_request(rng, target.shape, wrong_rate=0.06)
    statuses, says = request.statuses, request.says
    after = bytearray(target.data)
    slice_shape = None
    if statuses == (0,):
        items = request.items if Ellipsis in request.items else request.items + (Ellipsis,)
        slice_shape, _ = Tensor(target.data, target.shape, size, target.order).take(request.items)
    options, ways, files = [], {}, {}
    if rng.random() < 0.12:
        text = rng.choice(NUMBERS)
        options = [f"--fill={text}"] if rng.random() < 0.5 else ["--fill", text]
        element = fill_element(text, dtype)
        if statuses == (0,) and element is None:
            statuses, says = (1, 2), None
        elif statuses == (0,) and size:
            target.elements(after)[items] = np.frombuffer(element, "V%d" % size)[0]
    else:
        shape = slice_shape if slice_shape is not None else (2,)
        how = rng.choice(["equal"] * 6 + ["broadcast", "broadcast", "wrong", "stretch"])
        if how in ("broadcast", "stretch"):
            shape = stretched_from(rng, shape)
        elif how == "wrong":
            shape = rng.choice([shape + (2,), shape[1:], tuple(n + (i == 0) for i, n in enumerate(shape)), (3, *shape)])
            shape = shape[:64]
        value_dtype = swapped(rng, dtype)
        count = int(np.prod(shape, dtype=object)) if shape else 1
        raw = random_bytes(rng, count * size)
        if size:
            value = np.ndarray(shape, "V%d" % size, buffer=raw)
            written = value
            if value_dtype != dtype:
                written = np.ndarray(shape, "V%d" % size, buffer=byteswapped(raw, dtype))
        else:
            value = written = np.ndarray(shape, np.dtype([]))
        if how == "broadcast":
            options.append("--broadcast")
        name, blob, more = save(rng, value, value_dtype, "value") if size else (
            "value.npy", npy_header(shape, value_dtype)[0], [])
        options += more
        other_dtype = False
        if rng.random() < 0.04 and dtype.str != "|u1":
            name, blob, options = "value.npy", npy_header(shape, np.dtype("u1"))[0] + bytes(count), options[:len(options) - len(more)]
            other_dtype = statuses == (0,)
        files[name] = blob
        arg, ways, io_allowed = input_way(rng, name, blob)
        options += ["--value", arg]
        if io_allowed and rng.random() < 0.4:
            options += ["--io", rng.choice(["auto", "mmap", "read"])]
        if statuses == (0,):
            if how != "broadcast" and shape != slice_shape:
                statuses, says = (1,), "shape"
            elif size:
                try:
                    target.elements(after)[items] = written
                except ValueError:
                    statuses, says = (1,), "could not broadcast input array from shape"
            else:
                try:
                    np.zeros(slice_shape, "u1")[...] = np.zeros(shape, "u1")
                except ValueError:
                    statuses, says = (1,), "could not broadcast input array from shape"
        # the shape is looked at before the dtype
        if statuses == (0,) and other_dtype:
            statuses, says = (1,), "dtype"
    expected = target.with_data(after) if statuses == (0,) else target.blob
    check_both(case, "assign", target, request.args, options, ways, files, statuses, says, expected)


def sub_byte_case(case):
    """Elements of 4 and 6 bits, which can be written where the cut falls on whole bytes."""
    rng = case.rng
    target = Target.__new__(Target)
    code, shape, data = random_safetensor(rng, ("F4", "F6_E2M3", "F6_E3M2"))
    target.shape, target.data, target.extension, target.options = shape, data, "safetensors", ["-t", "w"]
    target.blob = safetensors_file({"w": (code, shape, data), "z": ("U8", (2,), b"ab")}, None)
    target.start = len(target.blob) - len(data) - 2
    case.story.append(f"target: shape {shape} dtype {code}")
    request = make_request(rng, shape, wrong_rate=0)
    value_shape, taken = cut((code, shape, data), request.items)
    statuses, says, after = (0,), None, bytearray(data)
    value = b""
    if taken is None:
        statuses, value_shape = (1,), (0,)
    else:
        value = random_bytes(rng, len(taken))
        # where each byte of the slice comes from, as the slice of a tensor of bytes' numbers
        group, width = {"F4": (2, 1)}.get(code, (4, 3))
        numbers = np.arange(int(np.prod(shape, dtype=object)) if shape else 1).reshape(shape)
        firsts = numbers[request.items if Ellipsis in request.items else request.items + (Ellipsis,)].ravel()[::group]
        for k, first in enumerate(firsts // group):
            after[first * width : first * width + width] = value[k * width : k * width + width]
    options = ["--value", "value.safetensors"]
    files = {"value.safetensors": safetensors_file({"v": (code, value_shape, value)}, None)}
    expected = target.with_data(after) if statuses == (0,) else target.blob
    check_both(case, "assign", target, request.args, options, {}, files, statuses, says, expected)


def naive_scatter(elements, tuples, values, skip):
    """Writes values[k] at elements[tuples[k]], in order; the number of the first bad tuple, or None."""
    n = tuples.shape[-1]
    for k in np.ndindex(tuples.shape[:-1]):
        where = tuple(int(i) for i in tuples[k])
        if not all(0 <= i < size for i, size in zip(where, elements.shape[:n])):
            if not skip:
                return k, where
        elif elements.itemsize:
            elements[where + (Ellipsis,)] = values[k]
    return None


INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]


def scatter_case(case):
    rng = case.rng
    target = Target(rng)
    while target.dtype.itemsize == 0:
        target = Target(rng)
    dtype, size, shape = target.dtype, target.dtype.itemsize, target.shape
    case.story.append(f"target: shape {shape} dtype {dtype.str} {target.extension} {target.order}")
    n = rng.choice([rng.randrange(len(shape) + 1), min(1, len(shape)), len(shape)])
    rows = rng.choice([(), (3,), (5,), (0,), (2, 3), (1,), (40,), (2, 1, 2)])
    rows = rows[:64 - len(shape[n:])]  # NumPy's most axes, of the values
    slab = int(np.prod(shape[n:], dtype=object)) if shape[n:] else 1
    if slab * size * int(np.prod(rows, dtype=object)) > 2_000_000:
        rows = (1,)
    kind = np.dtype(rng.choice("<>") + rng.choice(INTEGERS))
    limits = np.iinfo(kind)
    wild = rng.random() < 0.25
    tuples = np.zeros(rows + (n,), kind)
    for k in np.ndindex(tuples.shape):
        axis = shape[k[-1]]
        low, high = (-2, axis + 2) if wild and rng.random() < 0.2 else (0, max(axis - 1, 0))
        tuples[k] = min(max(rng.randint(low, high), limits.min), limits.max)
        if wild and rng.random() < 0.02:
            tuples[k] = rng.choice([limits.min, limits.max])
    options, files, statuses, says = [], {}, (0,), None
    in_name = "idx.npy"
    order = rng.choice("CCF")
    header, fortran = npy_header(tuples.shape, kind, order)
    files[in_name] = header + tuples.tobytes("F" if fortran else "C")
    code = FROM_CODE.get(kind.str[1:])
    if code and kind.str[0] != ">" and rng.random() < 0.2:
        in_name = "idx.safetensors"
        files = {in_name: safetensors_file({"a": (code, tuples.shape, tuples.tobytes()), "b": ("U8", (1,), b"x")}, None)}
        options += ["--indices-tensor", "a"]
    typed = rows and n and rng.random() < 0.15 and tuples.size
    if typed:
        files, options = {}, []
        options += ["--indices", str(tuples.tolist())]
    else:
        options += ["--indices", in_name]
    value_dtype = swapped(rng, dtype)
    value_shape = rows + shape[n:]
    if rng.random() < 0.06:
        others = [value_shape + (1,), (2,) + value_shape, value_shape[1:] + (7,)]
        value_shape = rng.choice([other for other in others if len(other) <= 64])  # NumPy's most
        if value_shape != rows + shape[n:]:
            statuses, says = (1,), "the values have shape"
    count = int(np.prod(value_shape, dtype=object)) if value_shape else 1
    raw = random_bytes(rng, count * size)
    values = written = np.ndarray(value_shape, "V%d" % size, buffer=raw)
    if value_dtype != dtype:
        written = np.ndarray(value_shape, "V%d" % size, buffer=byteswapped(raw, dtype))
    name, blob, more = save(rng, values, value_dtype, "values")
    files[name] = blob
    arg, ways, io_allowed = input_way(rng, name, blob)
    options += [o.replace("--value-tensor", "--values-tensor") for o in more] + ["--values", arg]
    if io_allowed and rng.random() < 0.4:
        options += ["--io", rng.choice(["auto", "mmap", "read"])]
    skip = rng.random() < 0.3
    if skip:
        options += ["--out-of-range", "skip"]
    after = bytearray(target.data)
    if statuses == (0,):
        if 0 in rows or n == 0:
            bad = None
            if n == 0 and 0 not in rows:
                naive_scatter(target.elements(after), tuples, written, skip)
        else:
            bad = naive_scatter(target.elements(after), tuples, written, skip)
        if bad is not None:
            k, where = bad
            statuses, after = (1,), bytearray(target.data)
            place = "[%s]" % ",".join(map(str, k)) if k else ""
            says = "indices%s = [%s] does not index into target of shape [%s]" % (
                place, ", ".join(map(str, where)), ", ".join(map(str, shape)))
    if typed and int(tuples.max()) >= 1 << 63:
        # a file may hold it, and then it is out of range
        statuses, says, after = (2,), "integer index does not fit into 64 bits", bytearray(target.data)
    expected = target.with_data(after) if statuses == (0,) else target.blob
    check_both(case, "scatter", target, [], options, ways, files, statuses, says, expected)


def check_both(case, command, target, index_args, options, ways, files, statuses, says, expected):
    """Run a command with -o and with --in-place, and look at every byte."""
    rng = case.rng
    if rng.random() < 0.4:
        options = options + ["-j", str(rng.randrange(1, 5))]
    for name, blob in files.items():
        case.write(name, blob)
    in_name, out_name = "in." + target.extension, "out." + target.extension
    case.write(in_name, target.blob)
    copied = dict(files, **{in_name: target.blob})
    place = rng.choice([["-o", out_name], ["--output=" + out_name], ["-o", in_name, "--force"]])
    if rng.random() < 0.08:
        status, out, err = case.run([command, in_name, *index_args, *target.options, *options, *place, "--dry-run"], **ways)
        case.check_names(copied)
        if statuses == (0,) and (status != 0 or not out.startswith(b"would write ")):
            raise Failure(f"the dry run ends with {status}")
    status, out, err = case.run([command, in_name, *index_args, *target.options, *options, *place], **ways)
    result = in_name if "--force" in place else out_name
    if statuses == (0,):
        if status != 0 or err:
            raise Failure(f"exit status {status} with {err!r}, expected 0 and no message")
        case.check_names(set(copied) | {result})
        copied[result] = expected
    else:
        case.check_error(status, err, statuses, says)
        case.check_names(copied)
    for name, blob in copied.items():
        with open(case.path(name), "rb") as file:
            compare(file.read(), blob, f"{name} after -o")
    if target.extension == "npz":
        # not changed in place
        return
    case.write(in_name, target.blob)
    copied[in_name] = expected
    for again in range(2):
        status, out, err = case.run([command, in_name, *index_args, *target.options, *options, "--in-place"], **ways)
        if statuses != (0,):
            case.check_error(status, err, statuses, says)
        elif status != 0 or err:
            raise Failure(f"in place: exit status {status} with {err!r}, expected 0 and no message")
        case.check_names(copied)
        for name, blob in copied.items():
            with open(case.path(name), "rb") as file:
                compare(file.read(), blob, f"{name} after --in-place, {again} times repeated")


def spaced(blob, count):
    """The file with spaces behind its header."""
    length = int.from_bytes(blob[:8], "little")
    return (length + count).to_bytes(8, "little") + blob[8 : 8 + length] + b" " * count + blob[8 + length :]


MANY = {"F32": "<f4", "I16": "<i2", "U8": "u1", "F64": "<f8"}


def many_case(case):
    """Several tensors of a file, or of two shards, at once."""
    rng = case.rng
    code = rng.choice(list(MANY))
    rows = rng.randrange(2, 5)
    names = ["l.0.w", "head", "l.1.w", "l.2.w"]
    shapes = {name: (rows, rng.randrange(1, 6)) for name in names}
    make = lambda shape: np.frombuffer(bytearray(random_bytes(rng, int(np.prod(shape)) * np.dtype(MANY[code]).itemsize)),
                                       MANY[code]).reshape(shape)
    target = {name: make(shape) for name, shape in shapes.items()}
    globs = rng.choice([["l.*"], ["*"], ["l.{1,2}.w", "head"], ["l.0.w", "l.2.w"]])
    chosen = [name for name in names if any(fnmatch.fnmatchcase(name, glob.replace("{1,2}", "[12]")) for glob in globs)]
    blob = lambda tensors, metadata=None: safetensors_file(
        {name: (code, a.shape, a.tobytes()) for name, a in tensors.items()}, metadata)
    options = [part for glob in globs for part in ("-t", glob)]
    index = rng.choice(["[:, 0]", "[1:]", "[::-1, ::2]", "[...]", "[[0, 0, 1]]", "[-1]"])
    values, fails = {}, rng.random() < 0.15
    way = rng.choice(["fill", "names", "one", "scatter"])
    if way == "scatter":
        tuples = [[rng.randrange(rows)] for _ in range(rng.randrange(1, 4))]
        if fails:
            tuples[-1] = [rows]
        values = {name: make((len(tuples), shapes[name][1])) for name in names[::-1]}
        command = ["scatter", "--indices", str(tuples), "--values", "v.safetensors"]
        expected = {name: a.copy() for name, a in target.items()}
        for name in chosen:
            for at, value in zip(tuples, values[name]):
                if at[0] < rows:
                    expected[name][at[0]] = value
    else:
        command, where = ["assign"], eval("np.s_" + index)
        expected = {name: a.copy() for name, a in target.items()}
        if way == "fill":
            fails = False
            command += ["--fill", "7"]
            values = {name: 7 for name in names}
        elif way == "names":
            values = {name: make(target[name][where].shape) for name in names[::-1]}
            command += ["--value", "v.safetensors"]
            if fails:
                del values[chosen[-1]]
                fails = len(chosen) > 1
        else:
            fails = False
            values = {"x": make((1,) if index != "[:, 0]" else (rows,))}
            command += ["--value", "v.safetensors", "--broadcast"]
        for name in chosen:
            value = values.get(name, values.get("x"))
            if value is not None:
                expected[name][where] = value
        options.append(index)
    if way != "fill":
        case.write("v.safetensors", blob(values))
    options += ["-j", rng.choice(["1", "3"])]
    case.story.append(f"{way} to {chosen} of {shapes}")
    if rng.random() < 0.5:
        metadata = rng.choice([None, {"a": "1", "b": "x" * rng.choice([1, 5000])}])
        spaces = rng.choice([0, 0, 3, 64, 6000])
        padded = lambda tensors: spaced(blob(tensors, metadata), spaces)
        case.write("m.safetensors", padded(target))
        files, wanted = ["m.safetensors"], [padded(target if fails else expected)]
        change, changed = [], dict(metadata or {})
        if rng.random() < 0.3:
            change, changed = ["--no-metadata"], {}
        if rng.random() < 0.4:
            change += ["--metadata", "b=" + "2" * rng.choice([1, 9000])]
            changed["b"] = change[-1][2:]
        copy = [command[0], "m.safetensors", *command[1:], *options, *change, "-o", "c.safetensors"]
        status, out, err = case.run(copy)
        if (status, out) != (1 if fails else 0, b"") or bool(err) != fails:
            raise Failure(f"-o: status {status}, {err!r}")
        if not fails:
            with open(case.path("c.safetensors"), "rb") as file:
                copied = file.read()
            if not change:
                compare(copied, wanted[0], "the copy")
            elif (found := read_safetensors(copied)) != read_safetensors(blob(expected, changed or None)):
                raise Failure(f"the copy with other metadata holds {found}")
        name = "m.safetensors"
    else:
        os.mkdir(case.path("ckpt"))
        parts = [names[:2], names[2:]]
        files = [f"ckpt/model-0000{number}-of-00002.safetensors" for number in (1, 2)]
        weights = {name: os.path.basename(file) for part, file in zip(parts, files) for name in part}
        index = {"metadata": {}, "weight_map": weights}
        case.write("ckpt/model.safetensors.index.json", json.dumps(index).encode())
        after = target if fails else expected
        for part, file in zip(parts, files):
            case.write(file, blob({name: target[name] for name in part}))
        wanted = [blob({name: after[name] for name in part}) for part in parts]
        name = rng.choice(["ckpt", "ckpt/model.safetensors.index.json"])
    for again in range(rng.choice([1, 2])):
        status, out, err = case.run([command[0], name, *command[1:], *options, "--in-place"])
        if (status, out) != (1 if fails else 0, b"") or bool(err) != fails:
            raise Failure(f"in place: status {status}, {err!r}")
        for file, blob_after in zip(files, wanted):
            with open(case.path(file), "rb") as opened:
                compare(opened.read(), blob_after, f"{file} in place, {again} times repeated")


def judge_the_loop(count, seed):
    """Hold naive_scatter, the oracle of the scatter cases, against TensorFlow."""
    import tensorflow as tf

    rng = random.Random(seed)
    for number in range(count):
        shape = tuple(rng.randrange(1, 5) for _ in range(rng.randrange(1, 5)))
        n = rng.randrange(1, len(shape) + 1)
        # a single tuple is TensorFlow's column of scalars: the formula of the shapes does not hold
        rows = rng.choice([(1,), (3,), (20,), (2, 3), (0,)])
        tuples = np.zeros(rows + (n,), rng.choice(["i4", "i8"]))
        for k in np.ndindex(tuples.shape):
            tuples[k] = rng.randrange(shape[k[-1]]) if rng.random() < 0.99 else rng.choice([-1, shape[k[-1]]])
        target = np.arange(int(np.prod(shape)), dtype="i4").reshape(shape)
        values = -1 - np.arange(int(np.prod(rows + shape[n:])), dtype="i4").reshape(rows + shape[n:])
        ours = target.copy()
        bad = naive_scatter(ours, tuples, values, False)
        try:
            theirs = tf.tensor_scatter_nd_update(target, tuples, values).numpy()
        except tf.errors.InvalidArgumentError as error:
            if bad is None:
                raise SystemExit(f"case {number}: rows {rows} of {n} into {shape}: TensorFlow says {error}")
            # of several bad tuples TensorFlow names any
            continue
        if bad is not None or not np.array_equal(ours, theirs):
            raise SystemExit(f"case {number} of the loop: {ours!r}, TensorFlow has {theirs!r}")
    print(f"the loop agrees with TensorFlow {tf.__version__} in {count} cases")


# ---------------------------------------------------------------- the runner


def one(job):
    options, number = job
    rng = random.Random(f"assign {options.seed}/{number}")
    kind = rng.choices([assign_case, sub_byte_case, scatter_case, many_case], [52, 5, 28, 15])
    return harness.run_case(Case(rng), kind[0], number, options.keep)


def main():
    parser = harness.case_parser("tslice assign and scatter against live NumPy", 1500)
    parser.add_argument("--tensorflow", type=int, default=0, help="hold the oracle of scatter against TensorFlow first")
    options = parser.parse_args()
    if options.tensorflow:
        judge_the_loop(options.tensorflow, options.seed)
    harness.begin(options)
    return harness.run_cases("assign_differential", options, one, start_worker)


if __name__ == "__main__":
    sys.exit(main())
