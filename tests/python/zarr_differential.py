#!/usr/bin/env python3
"""Differential test: arrays of Zarr, in folders and zip archives, against zarr-python and NumPy.

    python tests/python/zarr_differential.py --bin target/debug/tslice --count 2000 --seed 1

The program must be built with the feature `zarr`, and zarr-python 3 be there. Every case is a hierarchy of random
arrays: versions 2 and 3, random shapes, chunks and shards, byte orders, memory orders, codecs and filters, fill
values, and chunks that were never written. Random indexes with slices, lists and masks must give what NumPy takes
of the array that zarr-python reads; some outputs are written in parts, as streams, transposed, or compared by
`diff`. A fifth of the cases is an output of Zarr, which zarr-python and, where it is there, TensorStore must
read. Every tenth case is a damaged store: an error in one line, or the same array. `--only NUMBER` runs one again.
"""

import json
import os
import sys

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

import chunk_cases
import harness
from chunk_cases import check, check_damaged, random_array, simple, spelled
from harness import Failure

try:
    import tensorstore
except ImportError:  # the outputs are read by zarr-python alone
    tensorstore = None

DTYPES = ["u1", "i1", "u2", "i2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", "?", "M8[10s]", "m8[ns]", "U3", "S5", "V6"]
FIELDS = [("a", "<i4"), ("b", "<f8"), ("c", "S3")]
NESTED = [("x", ">i2"), ("n", [("u", "u1"), ("w", ">f8")])]


def random_fill(rng, dtype):
    if dtype.kind in "iuf":
        return rng.choice([0, 1, dtype.type(7)])
    return rng.choice([1 + 2j, 0]) if dtype.kind == "c" else rng.choice([True, False]) if dtype.kind == "b" else None


def blosc_names(rng):
    return rng.choice(["lz4", "lz4hc", "blosclz", "zstd", "zlib"])


def compressor3(rng):
    """Codecs behind the bytes, in version 3."""
    chain = rng.choice([
        [], [], [GzipCodec(level=rng.choice([0, 1, 5]))], [ZstdCodec(level=rng.choice([-1, 0, 3]), checksum=rng.random() < 0.5)],
        [BloscCodec(cname=blosc_names(rng), clevel=rng.randrange(10), shuffle=rng.choice(["noshuffle", "shuffle", "bitshuffle"]))],
    ])
    return chain + ([Crc32cCodec()] if rng.random() < 0.3 else [])


def create3(rng, group, name, dtype, shape):
    chunk = [rng.choice([1, 2, 3, 4, max(n, 1), n + 2]) for n in shape]
    order = rng.sample(range(len(shape)), len(shape))
    filters = [TransposeCodec(order=order)] if len(shape) > 1 and rng.random() < 0.3 else []
    plain = dtype.kind in "VS" or dtype.itemsize == 1
    endian = BytesCodec() if plain or rng.random() < 0.7 else BytesCodec(endian="big")
    codecs = filters + [endian] + compressor3(rng)
    shape_of_chunks = chunk
    if rng.random() < 0.4 and shape and not plain:
        shape_of_chunks = [n * rng.choice([1, 2, 3]) for n in chunk]
        around = [TransposeCodec(order=order)] if rng.random() < 0.15 and len(shape) > 1 else []
        inner = [chunk[axis] for axis in order] if around else chunk
        codecs = around + [ShardingCodec(chunk_shape=inner, codecs=codecs, index_location=rng.choice(["start", "end"]))]
        codecs += [Crc32cCodec()] if rng.random() < 0.1 else []
    metadata = dict(shape=shape, dtype=dtype, chunks=shape_of_chunks, fill_value=random_fill(rng, dtype))
    separator = rng.choice(["/", "."])
    kind = rng.choice(["default", "v2"])
    encoding = {"name": kind, "separator": separator}
    if metadata["fill_value"] is None:
        del metadata["fill_value"]
    array = zarr.create(store=group.store, path=(group.path + "/" + name).strip("/"), zarr_format=3, codecs=codecs,
                        chunk_key_encoding=encoding, overwrite=True, **metadata)
    return array, [str(codec) for codec in codecs]


def create2(rng, group, name, dtype, shape):
    chunk = [rng.choice([1, 2, 3, 4, max(n, 1), n + 2]) for n in shape]
    compressor = rng.choice([
        None, None, numcodecs.Zlib(rng.randrange(10)), numcodecs.GZip(rng.randrange(10)), numcodecs.BZ2(1), numcodecs.Zstd(rng.choice([1, 5])),
        numcodecs.Blosc(cname=blosc_names(rng), clevel=rng.randrange(10), shuffle=rng.choice([0, 1, 2])),
    ])
    filters = []
    if dtype.itemsize > 1 and rng.random() < 0.2:
        filters.append(numcodecs.Shuffle(elementsize=dtype.itemsize))
    if rng.random() < 0.15:
        # zarrs has another sum of an odd number of bytes
        filters.append(rng.choice([numcodecs.Adler32(), numcodecs.Fletcher32()]) if dtype.itemsize % 2 == 0 else numcodecs.Adler32())
    metadata = dict(shape=shape, dtype=dtype, chunks=chunk, order=rng.choice("CF"), fill_value=random_fill(rng, dtype))
    array = zarr.create(store=group.store, path=(group.path + "/" + name).strip("/"), zarr_format=2, compressor=compressor,
                        filters=filters or None, dimension_separator=rng.choice(["/", "."]), overwrite=True, **metadata)
    return array, [str(compressor), str(filters)]


def random_dtype(rng, version):
    if rng.random() < 0.1:
        return np.dtype(FIELDS)
    if version == 2 and rng.random() < 0.1:
        return np.dtype(NESTED)
    dtype = np.dtype(rng.choice(DTYPES))
    return dtype.newbyteorder(">") if version == 2 and rng.random() < 0.3 else dtype


def store(case, path, as_zip):
    """A hierarchy and its arrays: name, elements as zarr-python reads them, version and what is to be told."""
    rng, arrays = case.rng, {}
    version = rng.choice([2, 3, 3])
    where = zarr.storage.ZipStore(path, mode="w", compression=rng.choice([0, 8])) if as_zip else path
    root = rng.random() < 0.3
    group = zarr.open_group(where, mode="w", zarr_format=version) if not root else None
    if root and not as_zip:
        where = zarr.storage.LocalStore(path)
    for number in range(1 if root else rng.randint(1, 3)):
        dtype = random_dtype(rng, version)
        shape = tuple(rng.choice([1, 2, 3, 5, 8, 13, rng.choice([0, 40])]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3, 4])))
        name = "" if root else rng.choice(["a", "b", "image", "x y"]) + str(number)
        parent = group
        if not root and rng.random() < 0.3:
            parent = group.require_group("inner")
            name = "inner/" + name
        holder = parent if parent is not None else Root(where)
        create = create3 if version == 3 else create2
        try:
            array, told = create(rng, holder, name.split("/")[-1], dtype, shape)
        except (TypeError, ValueError, NotImplementedError) as error:
            case.story.append(f"zarr-python does not make {dtype} {shape}: {error!r}")
            if root:
                raise Skip from None
            continue
        # elements that were never written are anything where there is no fill value
        has_fill = dtype.names is None
        if not has_fill or rng.random() < 0.9:
            data = random_array(rng, dtype, shape)
            if has_fill and rng.random() < 0.3 and shape and shape[0] > 1:
                part = slice(0, rng.randrange(1, shape[0]))
                array[part] = data[part]
            elif not shape:
                array[...] = data
            elif data.size:
                array[:] = data
        case.story.append(f"{name!r}: version {version}, {dtype}, shape {shape}, chunks {array.chunks}, {told}")
        # what zarr-python reads
        arrays[name] = np.asarray(array[...]).astype(dtype.newbyteorder("<") if dtype.kind not in "V" else dtype, copy=False).reshape(shape)
    if as_zip:
        where.close()
    return arrays


class Root:
    """What stands for a group where the array is all there is."""

    def __init__(self, where):
        self.store, self.path = where, ""


class Skip(Exception):
    pass


def array_case(case):
    rng = case.rng
    as_zip = rng.random() < 0.25
    name = "s.zip" if as_zip else rng.choice(["s.zarr", "s"])
    try:
        arrays = store(case, case.path(name), as_zip)
    except Skip:
        return
    if rng.random() < 0.02:
        listed(case, name, arrays)
    for key in rng.sample(sorted(arrays), min(len(arrays), 2)):
        check(case, name, key, arrays[key], lambda name, array: stored_list(case, name, array))


def stored_list(case, name, array):
    """An array that is a list or a mask, in chunks."""
    zarr.create_array(case.path(name + ".zarr"), data=array, overwrite=True, chunks=tuple(max(1, n // 2) for n in array.shape))
    return f"@{name}.zarr"


def listed(case, name, arrays):
    status, out, err = case.run(["info", "--json", name])
    if status or err:
        raise Failure(f"status {status}, {err!r}")
    found = {entry["name"]: (entry["shape"], entry["dtype"]) for entry in json.loads(out)[0]["tensors"]}
    expected = {key or None: list(array.shape) for key, array in arrays.items()}
    if {key: shape for key, (shape, _) in found.items()} != expected:
        raise Failure(f"info shows {found}")


def damaged_case(case):
    """Bytes of metadata and of chunks that are changed: an error in one line, or elements."""
    rng = case.rng
    name = rng.choice(["s.zarr", "s.zarr", "s.zip"])
    try:
        arrays = store(case, case.path(name), name == "s.zip")
    except Skip:
        return
    files = [case.path(name)] if name == "s.zip" else [os.path.join(at, file) for at, _, names in os.walk(case.path(name)) for file in names]
    for path in rng.sample(sorted(files), min(len(files), rng.randint(1, 3))):
        with open(path, "r+b") as file:
            data = bytearray(file.read())
            kind = rng.randrange(5)
            if kind == 0:
                data = data[:rng.randrange(len(data) + 1)]
            elif kind == 1 and path.endswith(("zarr.json", ".zarray")):
                data = hostile_metadata(rng, bytes(data))
            else:
                for _ in range(rng.randint(1, 4)):
                    if data:
                        data[rng.randrange(len(data))] = rng.randrange(256)
            file.seek(0)
            file.write(data)
            file.truncate()
    for key in [None, *arrays]:
        check_damaged(case, ["info", name] if key is None else [name, *(["-t", key] if key else []), "-o", "o.npy", "--force"])


def hostile_metadata(rng, data):
    """Numbers that are too large, and words that mean nothing."""
    text = data.decode()
    numbers = [at for at, char in enumerate(text) if char.isdigit()]
    if not numbers:
        return data
    at = rng.choice(numbers)
    value = rng.choice(["0", "-1", "1e3", "18446744073709551615", "4611686018427387904", "1048576", "null", '"x"', "[]", "99999999999999999999999"])
    return (text[:at] + value + text[at + 1:]).encode()


def written_case(case):
    """An output of Zarr: a random slice of an array, in random chunks and shards, as zarr-python and TensorStore read it."""
    rng = case.rng
    dtype = np.dtype(rng.choice(["u1", "i1", "<u2", ">i2", "<i4", "u8", "f2", "<f4", ">f8", "c8", "c16", "?", "<M8[10s]", "<m8[ns]"]))
    shape = tuple(rng.choice([0, 1, 2, 5, 8, 13, 40] if rng.random() < 0.1 else [1, 2, 5, 8, 13, 40]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3, 4])))
    array = random_array(rng, dtype, shape)
    items = simple(rng, shape)
    expected = np.asarray(array[tuple(items)])
    name, line = "a.npy", []
    if rng.random() < 0.3 and dtype.kind not in "mM":
        zarr.save_array(case.path("a.zarr"), array.astype(dtype.newbyteorder("<"))) if array.ndim else np.save(case.path(name), array)
        name = "a.zarr" if array.ndim else name
    if name == "a.npy":
        np.save(case.path(name), array)
    if rng.random() < 0.3:
        line, expected = ["-T"], expected.T
    rank = expected.ndim
    chunk = [rng.choice([1, 2, 3, 7, 64]) for _ in range(rank)]
    lens = lambda lens: ",".join(map(str, lens))
    if rng.random() < 0.8:
        line += ["--chunks", lens(chunk)]
        if rng.random() < 0.4:
            line += ["--shards", lens([length * rng.choice([1, 2, 5]) for length in chunk])]
    if rng.random() < 0.7:
        line += ["--codec", rng.choice(["none", "zstd", "zstd:1", "zstd:19", "gzip", "gzip:9", "blosc", "blosc:0", "blosc:8"])]
    key = rng.choice(["", "", "w", "layers/w"])
    line += ["--name", key] if key else []
    line += ["-j", str(rng.randint(1, 3))]
    command = [name, "[" + ", ".join(map(spelled, items)) + "]", "-o", "o.zarr", *line]
    if rng.random() < 0.2:
        zarr.save_array(case.path("o.zarr"), np.arange(5))
        command.append("--force")
    status, _, err = case.run(command)
    if status or err:
        raise Failure(f"status {status}, {err!r}")
    case.check_names([name, "o.zarr"])
    found = zarr.open(case.path("o.zarr"), mode="r")
    found = found[key] if key else found
    wanted = dtype.newbyteorder("<")
    if "--chunks" in line and list(found.chunks) != chunk:
        raise Failure(f"chunks {found.chunks}")
    told = (found.dtype, found.shape)
    if told != (wanted, expected.shape):
        raise Failure(f"{told} for {wanted} {expected.shape}")
    same(found[...], expected, wanted)
    if tensorstore is not None and dtype.kind not in "mM":
        place = {"driver": "file", "path": os.path.join(case.path("o.zarr"), key)}
        same(tensorstore.open({"driver": "zarr3", "kvstore": place}).result().read().result(), expected, wanted)


def same(found, expected, dtype):
    found, expected = np.asarray(found, dtype), np.ascontiguousarray(expected.astype(dtype))
    if found.tobytes() != expected.tobytes():
        raise Failure(f"other elements:\n{found}\nexpected\n{expected}")


def usual_case(case):
    (written_case if case.rng.random() < 0.2 else array_case)(case)


def one(job):
    return chunk_cases.one(job, usual_case, damaged_case)


def main():
    options = chunk_cases.options_of(__doc__.split("\n")[0])
    harness.begin(options)
    print("zarr-python", zarr.__version__, "numcodecs", numcodecs.__version__)
    return harness.run_cases("zarr_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
