#!/usr/bin/env python3
"""Differential test: arrays of Zarr, in folders and zip archives, against zarr-python and NumPy.

    python tests/python/zarr_differential.py --bin target/debug/tslice --count 2000 --seed 1

The program must be built with the feature `zarr`, and zarr-python 3 be there. Every case is a hierarchy of random
arrays: versions 2 and 3, random shapes, chunks and shards, byte orders, memory orders, codecs and filters, fill
values, and chunks that were never written. Random indexes with slices, lists and masks must give what NumPy takes
of the array that zarr-python reads; some outputs are written in parts, as streams, transposed, or compared by
`diff`. Codecs leave out what zarr-python takes for said, and integers of 8 bits may be xarray's booleans. A fifth of the cases is odd: groups without metadata, keys that stand twice in an archive, NaN in
attributes, fill values of another kind, codecs of numcodecs, keys that need not or must be understood, consolidated
metadata. Others are written by TensorStore, in dtypes that zarr-python has not, or by kerchunk, whose references
are copied to their places. A fifth of the cases is an output of Zarr, which zarr-python and, where it is there,
TensorStore must read, with the attributes, names of dimensions and fill value of its input. Every tenth case is a
damaged store: an error in one line, or the same array. `--only NUMBER` runs one again.
"""

import base64
import json
import math
import os
import sys
import warnings

import numcodecs
import numpy as np
import zarr
import zarr.codecs.numcodecs as of_numcodecs
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec

import chunk_cases
import harness
from chunk_cases import check, check_damaged, random_array, simple, spelled
from harness import Failure

try:
    import tensorstore
except ImportError:  # the outputs are read by zarr-python alone
    tensorstore = None
try:
    import h5py
    import ml_dtypes
    from kerchunk.hdf import SingleHdf5ToZarr
except ImportError:
    SingleHdf5ToZarr = None

# codecs of numcodecs in version 3 are no part of the format, which zarr-python says each time
warnings.filterwarnings("ignore", module="zarr")
# elements that fixedscaleoffset stores as others, which do not hold all of them
warnings.filterwarnings("ignore", "(invalid value|overflow|divide by zero) encountered")

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
    if rng.random() < 0.25:
        chain = [rng.choice([
            of_numcodecs.Zstd(level=rng.choice([1, 9])), of_numcodecs.GZip(level=2), of_numcodecs.Zlib(), of_numcodecs.BZ2(level=1),
            of_numcodecs.Blosc(cname=blosc_names(rng), clevel=3, shuffle=rng.choice([0, 1, 2])), of_numcodecs.CRC32(),
            of_numcodecs.CRC32(location="end"), of_numcodecs.CRC32C(), of_numcodecs.Adler32(), of_numcodecs.Shuffle(), of_numcodecs.LZ4(),
        ])]
    return chain + ([Crc32cCodec()] if rng.random() < 0.3 else [])


def differences(rng, dtype, is_wider=True):
    """The configuration of differences of neighbours, now and then stored as other integers, which are wider."""
    wider = [kind for kind in ["i2", "i4", "i8"] if int(kind[1]) > dtype.itemsize]
    kind = rng.choice(wider or ["i8"])
    return {"dtype": dtype.str} if rng.random() < 0.5 or not is_wider else {"dtype": dtype.str, "astype": dtype.str[0].replace("|", "<") + kind}


def scaled(rng, dtype, kinds="u1 i1 u2 i2 i4 i8 f4 f8"):
    """The configuration of numbers with an offset and a scale, which are stored as others."""
    astype = np.dtype(rng.choice(kinds.split()))
    order = rng.choice("<>") if dtype.str[0] in "<>|" and astype.itemsize > 1 else "|"
    offset = rng.choice([0, 3, -2.5, 1577836801, 1577836801.0, 1600000000001] if dtype.itemsize == 8 else [0, 1, 3])
    said = {"offset": offset, "scale": rng.choice([1, 2, 0.5, 10, 0.1]), "dtype": dtype.str}
    return said if rng.random() < 0.1 else said | {"astype": astype.str.replace(astype.str[0], order)}


def create3(rng, group, name, dtype, shape):
    chunk = [rng.choice([1, 2, 3, 4, max(n, 1), n + 2]) for n in shape]
    order = rng.sample(range(len(shape)), len(shape))
    filters = [TransposeCodec(order=order)] if len(shape) > 1 and rng.random() < 0.3 else []
    plain = dtype.kind in "VS" or dtype.itemsize == 1
    endian = BytesCodec() if plain or rng.random() < 0.7 else BytesCodec(endian="big")
    if dtype.kind in "iu" and rng.random() < 0.1:
        # zarr-python does not read its own big-endian differences, nor wider ones of single bytes
        configuration = differences(rng, dtype.newbyteorder("<"), dtype.itemsize > 1)
        filters, endian = filters + [of_numcodecs.Delta(**configuration)], BytesCodec()
    elif dtype.kind == "b" and rng.random() < 0.3:
        filters = filters + [of_numcodecs.PackBits()]
    elif dtype.kind in "iuf" and dtype != np.uint64 and rng.random() < 0.15:
        # what a float beyond 2^64 becomes is up to the processor
        # nor big-endian numbers, nor wider ones of single bytes
        configuration = scaled(rng, dtype, "u1 i1" if dtype.itemsize == 1 else "u1 i1 u2 i2 i4 i8 f4 f8")
        configuration = {key: value.replace(">", "<") if key == "astype" else value for key, value in configuration.items()}
        if rng.random() < 0.5:
            configuration["dtype"] = dtype.name
        filters, endian = filters + [of_numcodecs.FixedScaleOffset(**configuration)], BytesCodec()
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
        numcodecs.Blosc(cname=blosc_names(rng), clevel=rng.randrange(10), shuffle=rng.choice([0, 1, 2])), numcodecs.LZ4(),
    ])
    filters = []
    if dtype.kind in "iu" and rng.random() < 0.15:
        filters.append(numcodecs.Delta(**differences(rng, dtype)))
    elif dtype.kind == "b" and rng.random() < 0.4:
        filters.append(numcodecs.PackBits())
    elif dtype.kind in "iuf" and dtype.newbyteorder("=") != np.uint64 and rng.random() < 0.2:
        filters.append(numcodecs.FixedScaleOffset(**scaled(rng, dtype)))
    if dtype.itemsize > 1 and not filters and rng.random() < 0.2:
        filters.append(numcodecs.Shuffle(elementsize=dtype.itemsize))
    if rng.random() < 0.15:
        # zarrs has another sum of an odd number of bytes
        filters.append(rng.choice([numcodecs.Adler32(), numcodecs.Fletcher32()]) if dtype.itemsize % 2 == 0 and not filters else numcodecs.Adler32())
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
        # numcodecs adds signed differences to a sum without a sign in float64, and loses what is beyond 2^53
        rounds = dtype.kind == "u" and dtype.itemsize == 8 and "Delta" in str(told) and "astype" in str(told)
        written = None
        if not has_fill or rng.random() < 0.9:
            data = random_array(rng, dtype, shape)
            part = ...
            if has_fill and rng.random() < 0.3 and shape and shape[0] > 1:
                part = slice(0, rng.randrange(1, shape[0]))
            if rounds:
                part = ...
                written = data
            if data.size:
                try:
                    array[part] = data[part]
                except OverflowError as error:  # numcodecs' delta of some elements of 64 bits
                    print(f"left out: zarr-python does not write {name!r} of {dtype}, {told}: {error}", flush=True)
                    raise Skip from None
        case.story.append(f"{name!r}: version {version}, {dtype}, shape {shape}, chunks {array.chunks}, {told}")
        # what zarr-python reads
        read = np.asarray(array[...] if written is None else written)
        if version == 3 and not as_zip and rng.random() < 0.3:
            leave_out(rng, os.path.join(path, name, "zarr.json"))
        if not as_zip and dtype in (np.int8, np.uint8) and rng.random() < 0.5:
            # what xarray writes: all is 0 or 1
            try:
                array[...] = np.asarray(read != 0, dtype)
                array.attrs["dtype"] = "bool"
            except ValueError:  # zarr-python does not read all that it writes
                pass
            else:
                read = np.asarray(array[...], bool)
                dtype = np.dtype(bool)
        arrays[name] = read.astype(dtype.newbyteorder("<") if dtype.kind not in "V" else dtype, copy=False).reshape(shape)
    if as_zip:
        where.close()
    return arrays


def leave_out(rng, path):
    """Leave out of metadata what is usual."""
    with open(path) as file:
        metadata = json.load(file)

    def shorten(codecs):
        for codec in codecs:
            said = codec.get("configuration", {})
            shorten(said.get("codecs", []))
            names = {"zstd": ["checksum", "level"], "blosc": ["blocksize", "typesize"], "gzip": ["level"], "sharding_indexed": []}
            for key in names.get(codec["name"], []):
                if key in said and rng.random() < 0.7:
                    if rng.random() < 0.3 and key == "typesize":
                        said[key] = None
                    else:
                        del said[key]

    shorten(metadata["codecs"])
    if rng.random() < 0.5:
        metadata["storage_transformers"] = None
    with open(path, "w") as file:
        json.dump(metadata, file)


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


def metadata_files(folder, names):
    return [os.path.join(at, name) for at, _, files in os.walk(folder) for name in files if name in names]


def changed(path, **entries):
    with open(path) as file:
        metadata = json.load(file)
    metadata.update(entries)
    with open(path, "w") as file:
        json.dump(metadata, file)


def odd_attributes(rng):
    words = [math.nan, math.inf, -math.inf, 0.1, None, "x", "NaN", [1, math.nan], {"a": [math.inf]}]
    return {name: rng.choice(words) for name in rng.sample("abcde", rng.randint(1, 4))}


def legal(value):
    """An attribute as JSON for programs has it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: legal(one) for key, one in value.items()}
    return [legal(one) for one in value] if isinstance(value, list) else value


def odd_fill(rng, fill):
    """Another way to write a fill value, which zarr-python reads as the same."""
    if isinstance(fill, bool) or not isinstance(fill, (int, float)):
        return fill
    same = [fill, float(fill)]
    same += [int(fill), str(int(fill))] if fill == int(fill) else []
    same += [bool(fill)] if fill in (0, 1) else []
    return rng.choice(same)


def odd_case(case):
    """A hierarchy with what other programs, and people, leave in it."""
    rng = case.rng
    name = rng.choice(["s.zip", "s.zarr", "s.zarr", "s.zarr"])
    place, said, refused = case.path(name), {}, None
    try:
        arrays = store(case, place, name == "s.zip")
    except Skip:
        return
    if name == "s.zip":
        # the keys of attributes that are set later stand twice
        where = zarr.storage.ZipStore(place, mode="a")
        for key in arrays:
            said[key] = odd_attributes(rng)
            try:
                zarr.open_array(where, path=key, mode="r+").attrs.update(said[key])
            except ValueError:  # zarr-python does not read all that it writes
                del said[key]
        if arrays:  # it is open then
            where.close()
    else:
        for key in arrays:
            said[key] = odd_attributes(rng)
            try:
                zarr.open_array(place, path=key, mode="r+").attrs.update(said[key])
            except ValueError:  # zarr-python does not read all that it writes
                del said[key]
        for path in metadata_files(place, ["zarr.json", ".zarray"]):
            with open(path) as file:
                metadata = json.load(file)
            if "fill_value" not in metadata:
                continue
            kind = str(metadata.get("data_type", metadata.get("dtype"))).strip("<>|=")
            is_number = kind.startswith(("int", "uint", "float", "i", "u", "f")) and not kind.startswith("fixed")
            entries = {"fill_value": odd_fill(rng, metadata["fill_value"])} if is_number else {}
            if str(metadata.get("dtype")) in ("|u1", "|i1"):
                entries["dtype"] = rng.choice("<|") + metadata["dtype"][1:]
            if metadata.get("data_type") in ("uint8", "int8", "bool"):
                entries["codecs"] = [{"name": "bytes"} if codec["name"] == "bytes" else codec for codec in metadata["codecs"]]
            if metadata["zarr_format"] == 3 and rng.random() < 0.2:
                entries["more"] = {"must_understand": False, "name": "x"}
            changed(path, **entries)
        if "" not in arrays:
            zarr.open_group(place, mode="r+").attrs["root"] = math.nan
            if rng.random() < 0.3:
                try:
                    zarr.consolidate_metadata(place)
                except ValueError:  # as above
                    pass
            for path in metadata_files(place, ["zarr.json", ".zgroup", ".zattrs"]):
                is_inner = os.path.dirname(path) == os.path.join(place, "inner")
                if is_inner or (os.path.dirname(path) == place and rng.random() < 0.2):
                    os.remove(path)
            if rng.random() < 0.3 and len(arrays) > 1:
                refused = rng.choice(sorted(arrays))
                [path] = metadata_files(os.path.join(place, refused), ["zarr.json", ".zarray"])
                changed(path, **rng.choice([{"more": 1}, {"fill_value": {}}] if path.endswith("zarr.json") else [{"fill_value": {}}, {"dtype": "<q9"}]))
    status, out, err = case.run(["info", "--json", name])
    error = f'{{"error":"{name}: 1 tensor cannot be read","hint":null,"exit":1}}\n'
    wanted = (0, "") if refused is None else (1, error)
    if (status, err) != wanted:
        raise Failure(f"info: status {status}, {err!r}")
    info = json.loads(out, parse_constant=lambda word: no_json(word))[0]
    if [it["name"] for it in info.get("unreadable", [])] != ([refused] if refused is not None else []):
        raise Failure(f"unreadable: {info.get('unreadable')}")
    for entry in info["tensors"]:
        if entry.get("attributes", {}) != legal(said.get(entry["name"] or "", {})):
            raise Failure(f"attributes {entry.get('attributes')} of {entry['name']}")
    for key in sorted(arrays):
        if key != refused:
            check(case, name, key, arrays[key], lambda name, array: stored_list(case, name, array))


def no_json(word):
    raise Failure(f"{word} is no JSON")


def tensorstore_case(case):
    """An array that TensorStore writes, in a dtype that zarr-python may not have."""
    rng = case.rng
    version = rng.choice([2, 3])
    kinds = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "uint8", "int16", "float32", "complex64"]
    kind = rng.choice(kinds)
    dtype = np.dtype(getattr(ml_dtypes, kind, None) or kind)
    shape = [rng.choice([1, 2, 3, 5, 9]) for _ in range(rng.choice([1, 2, 3]))]
    chunk = [rng.choice([1, 2, 4]) for _ in shape]
    if version == 2:
        of_numpy = not hasattr(ml_dtypes, kind)
        metadata = {"shape": shape, "chunks": chunk, "dtype": dtype.str if of_numpy else kind, "order": rng.choice("CF") if len(shape) > 1 else "C"}
        metadata["compressor"] = rng.choice([None, {"id": "zlib", "level": 3}, {"id": "blosc", "cname": "lz4", "clevel": 3, "shuffle": 1}])
    else:
        codecs = [{"name": "bytes", "configuration": {"endian": rng.choice(["little", "big"])}} if dtype.itemsize > 1 else {"name": "bytes"}]
        codecs += rng.choice([[], [{"name": "gzip", "configuration": {"level": 1}}], [{"name": "zstd", "configuration": {"level": 1}}]])
        metadata = {"shape": shape, "data_type": kind, "codecs": codecs}
        metadata["chunk_grid"] = {"name": "regular", "configuration": {"chunk_shape": chunk}}
        if rng.random() < 0.3 and dtype.kind != "c":
            metadata["fill_value"] = rng.choice([0.0, 1.0, "NaN"] if dtype.kind in "fV" and "fn" not in kind else [0, 1])
    spec = {"driver": "zarr" if version == 2 else "zarr3", "kvstore": {"driver": "file", "path": case.path("s.zarr")}, "metadata": metadata}
    case.story.append(f"TensorStore: {json.dumps(metadata)}")
    array = tensorstore.open(spec, create=True).result()
    values = np.array([rng.choice([0, 1, 2, 0.5, 7]) for _ in range(math.prod(shape))]).reshape(shape).astype(dtype)
    end = rng.randint(0, shape[0])
    array[:end].write(values[:end]).result()
    expected = np.ascontiguousarray(array.read().result())
    status, _, err = case.run(["s.zarr", "-o", "o.bin"])
    if status or err:
        raise Failure(f"status {status}, {err!r}")
    with open(case.path("o.bin"), "rb") as file:
        found = file.read()
    if found != expected.tobytes():
        raise Failure(f"other elements than {expected}")


def kerchunk_case(case):
    """The Zarr that kerchunk makes of a file of HDF5, its references copied to where they stand for."""
    rng = case.rng
    arrays = {}
    with h5py.File(case.path("in.h5"), "w") as file:
        for number in range(rng.randint(1, 3)):
            name = rng.choice(["", "g/", "g/h/"]) + f"d{number}"
            dtype = np.dtype(rng.choice(["<i2", ">i4", "<f4", "<f8", "u1"]))
            shape = tuple(rng.choice([1, 2, 5, 8]) for _ in range(rng.choice([1, 2, 3])))
            options = rng.choice([{}, {"chunks": tuple(max(1, n // 2) for n in shape)}, {"chunks": shape, "compression": "gzip", "shuffle": rng.random() < 0.5}])
            arrays[name] = random_array(rng, dtype, shape)
            made = file.create_dataset(name, data=arrays[name], **options)
            made.attrs["units"] = "K"
            if dtype.kind == "f":
                made.attrs["_FillValue"] = dtype.type(rng.choice([math.nan, -9999]))
    with open(case.path("in.h5"), "rb") as file:
        data = file.read()
    references = SingleHdf5ToZarr(case.path("in.h5"), inline_threshold=rng.choice([0, 500])).translate()
    references = references.get("refs", references)
    for key, value in references.items():
        if isinstance(value, list):
            value = data[value[1] : value[1] + value[2]] if len(value) == 3 else data
        elif value.startswith("base64:"):
            value = base64.b64decode(value[len("base64:"):])
        else:
            value = value.encode()
        os.makedirs(os.path.dirname(case.path("s.zarr/" + key)), exist_ok=True)
        with open(case.path("s.zarr/" + key), "wb") as file:
            file.write(value)
    case.story.append(f"kerchunk: {sorted(references)}")
    for key, array in arrays.items():
        if not is_kept(case, key, array):
            print(f"left out: kerchunk gives {key!r} other bytes")
            continue
        check(case, "s.zarr", key, array.astype(array.dtype.newbyteorder("<")), lambda name, array: stored_list(case, name, array))


def is_kept(case, key, array):
    """Whether zarr-python reads what was written: kerchunk takes a chunk of b"-" for the text of a number."""
    try:
        return zarr.open_group(case.path("s.zarr"), mode="r", zarr_format=2)[key][...].tobytes() == array.tobytes()
    except ValueError:
        return False


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
    dtype = np.dtype(rng.choice(["u1", "i1", "<u2", ">i2", "<i4", "u8", "f2", "<f4", ">f8", "c8", "c16", "?", "<M8[10s]", "<m8[ns]", "<U3", ">U2", "S5"]))
    shape = tuple(rng.choice([0, 1, 2, 5, 8, 13, 40] if rng.random() < 0.1 else [1, 2, 5, 8, 13, 40]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3, 4])))
    array = random_array(rng, dtype, shape)
    items = simple(rng, shape)
    expected = np.asarray(array[tuple(items)])
    name, line, said = "a.npy", [], None
    if rng.random() < 0.5 and dtype.kind not in "mMUS" and array.ndim:
        name, version = "a.zarr", rng.choice([2, 3])
        names = [rng.choice("xyzt") + str(axis) if rng.random() < 0.9 else None for axis in range(array.ndim)]
        attributes, dimensions = {"units": "K", "n": [1, {"a": None}]}, {"dimension_names": names}
        if version == 2:
            names = [one or "w" + str(axis) for axis, one in enumerate(names)]
            dimensions, attributes["_ARRAY_DIMENSIONS"] = {}, names
        fill = rng.choice([0, 1]) if dtype.kind in "?bc" else rng.choice([0, 7, math.nan] if dtype.kind == "f" else [0, 7])
        zarr.create_array(case.path("a.zarr"), data=array.astype(dtype.newbyteorder("<")), zarr_format=version, fill_value=fill, attributes=attributes, **dimensions)
        said = ({key: value for key, value in attributes.items() if key != "_ARRAY_DIMENSIONS"}, kept_names(names, items), fill)
    if name == "a.npy":
        np.save(case.path(name), array)
    if rng.random() < 0.3:
        line, expected = ["-T"], expected.T
        said = said and (said[0], said[1][::-1], said[2])
    rank = expected.ndim
    chunk = [rng.choice([1, 2, 3, 7, 64]) for _ in range(rank)]
    lens = lambda lens: ",".join(map(str, lens))
    if rng.random() < 0.8:
        line += ["--chunks", lens(chunk)]
        shard = [length * rng.choice([1, 2, 5]) for length in chunk]
        if rng.random() < 0.4 and math.prod(shard) * dtype.itemsize < 1 << 31:
            line += ["--shards", lens(shard)]
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
    if said is not None:
        attributes, names, fill = said
        found_names = found.metadata.dimension_names
        names = tuple(names) if any(names) else None
        kept = dict(found.attrs)
        if "_FillValue" not in attributes:  # what xarray takes for missing in version 2
            kept.pop("_FillValue", None)
        told = (kept, found_names, np.asarray(found.fill_value, wanted).tobytes())
        if told != (attributes, names, np.asarray(fill, wanted).tobytes()):
            raise Failure(f"{told} for {said}")
    if tensorstore is not None and dtype.kind not in "mMUS":
        place = {"driver": "file", "path": os.path.join(case.path("o.zarr"), key)}
        same(tensorstore.open({"driver": "zarr3", "kvstore": place}).result().read().result(), expected, wanted)


def kept_names(names, items):
    """The names of the axes that are left by items of NumPy's basic indexing."""
    if Ellipsis not in items:
        items = [*items, Ellipsis]
    at = next(number for number, item in enumerate(items) if item is Ellipsis)
    taken = sum(item is not None for item in items) - 1
    items = items[:at] + [slice(None)] * (len(names) - taken) + items[at + 1 :]
    left, rest = [], iter(names)
    for item in items:
        if item is None:
            left.append(None)
        elif isinstance(item, slice):
            left.append(next(rest))
        else:
            next(rest)
    return left


def same(found, expected, dtype):
    found, expected = np.asarray(found, dtype), np.ascontiguousarray(expected.astype(dtype))
    if found.tobytes() != expected.tobytes():
        raise Failure(f"other elements:\n{found}\nexpected\n{expected}")


def usual_case(case):
    part = case.rng.random()
    others = [(0.2, written_case), (0.4, odd_case)]
    others += [(0.5, tensorstore_case)] if tensorstore is not None and SingleHdf5ToZarr is not None else []
    others += [(0.6, kerchunk_case)] if SingleHdf5ToZarr is not None else []
    next((one for most, one in others if part < most), array_case)(case)


def one(job):
    return chunk_cases.one(job, usual_case, damaged_case)


def main():
    options = chunk_cases.options_of(__doc__.split("\n")[0])
    harness.begin(options)
    print("zarr-python", zarr.__version__, "numcodecs", numcodecs.__version__)
    return harness.run_cases("zarr_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
