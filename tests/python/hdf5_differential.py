#!/usr/bin/env python3
"""Differential test: datasets of HDF5 files against h5py and NumPy.

    python tests/python/hdf5_differential.py --bin target/debug/tslice --count 2000 --seed 1

The program must be built with the features `hdf5` and `zarr`, and h5py and hdf5plugin be there. Every case is a file of random datasets:
contiguous, compact, chunked with gzip, shuffle, fletcher32, lzf, scale-offset and the filters of hdf5plugin, never written in whole or in part,
of all dtypes that have a counterpart, in groups, behind a user block, by old and new versions of the format; chunks
stored by a mask of filters or unfiltered at the ends of axes, two growing axes, axes that grew, many attributes and
links, links inside the file, to nowhere and to other files, complex numbers as HDF5 2.0 has them, texts of three
paddings, integers and floats of a part of their bits, floats of other sizes, enumerations of FALSE and TRUE. Random
indexes with slices, lists and masks must give what NumPy takes of the array that h5py reads. Some cases are a Zarr made of a dataset or
of a netCDF, which zarr-python and xarray must read, with attributes, names of axes and fill values, or of one that netCDF4
wrote, with dimensions of all kinds and variables that are shorter than these. Every tenth case is a
damaged file, in 64 MiB of memory: an error in one line, or elements. `--only NUMBER` runs one again.
"""

import ctypes
import glob
import json
import os
import sys

import h5py
import hdf5plugin
import numpy as np

import chunk_cases
import harness
from chunk_cases import check, check_damaged, check_same, random_array, simple, spelled
from harness import Failure

try:
    import netCDF4
    import xarray
    import zarr
    from xarray.backends.zarr import FillValueCoder

    from zarr_differential import kept_names
except ImportError:  # the outputs of Zarr are not read
    xarray = None

VERSIONS = ["earliest", "v108", "v110", "v112", "v114", "latest"]

# what a damaged file may take: 64 MiB, and the program without a file; chunks of these cases are small
MEMORY = 72 << 20

# of the library itself, since h5py has no such call: filters are not applied to chunks that reach over an axis
PARTIAL_UNFILTERED = 2


def library():
    """The C library that h5py has loaded; None where it cannot be found."""
    folder = os.path.join(os.path.dirname(os.path.dirname(h5py.__file__)), "h5py.libs")
    found = [path for path in glob.glob(os.path.join(folder, "libhdf5-*")) if "_hl" not in path]
    return ctypes.CDLL(found[0]) if found else None


LIBRARY = library()

DTYPES = ["u1", "i1", "u2", "i2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "?", "S5", "V6", "g"]
STRUCTURES = [
    [("a", "<i4"), ("b", ">f8"), ("c", "S3")],
    [("x", ">i2"), ("v", "<f4", (2, 3)), ("n", [("u", "u1"), ("w", ">c16")])],
    [("k", "<i4"), ("s", [("a", "<i2"), ("b", ">f4", (2,)), ("c", [("d", "<u8")], (2,))], (3,))],
    {"names": ["p", "q"], "formats": ["<u2", "<f4"], "offsets": [3, 8], "itemsize": 17},
]


def random_dtype(rng):
    if rng.random() < 0.15:
        return np.dtype(rng.choice(STRUCTURES))
    dtype = np.dtype(rng.choice(DTYPES))
    return dtype.newbyteorder(">") if rng.random() < 0.3 else dtype


def plugin(rng):
    """A filter of hdf5plugin."""
    return rng.choice([
        lambda: hdf5plugin.Zstd(clevel=rng.choice([1, 3, 9])),
        lambda: hdf5plugin.BZip2(blocksize=rng.choice([1, 9])),
        lambda: hdf5plugin.LZ4(nbytes=rng.choice([0, 16, 40, 1000])),
        lambda: hdf5plugin.Bitshuffle(nelems=rng.choice([0, 8, 64]), cname=rng.choice(["none", "lz4", "zstd"])),
        lambda: hdf5plugin.Blosc(cname=rng.choice(["blosclz", "lz4", "lz4hc", "zlib", "zstd"]), clevel=rng.choice([0, 5]), shuffle=rng.choice([0, 1, 2])),
    ])()


def options_of(rng, dtype, shape):
    """How a dataset is stored."""
    options = {}
    if shape and 0 not in shape and rng.random() < 0.75:
        options["chunks"] = tuple(rng.randint(1, n) if rng.random() < 0.7 else n for n in shape)
        # growing axes, and those that may become longer: other indexes of chunks
        growing = rng.choice([[], [], [0], [len(shape) - 1], list(range(len(shape)))[:2]])
        if growing or rng.random() < 0.2:
            longer = [n + rng.choice([0, 0, 7]) for n in shape]
            options["maxshape"] = tuple(None if axis in growing else n for axis, n in enumerate(longer))
        options["shuffle"] = rng.random() < 0.3
        options["fletcher32"] = rng.random() < 0.2
        options["compression"] = rng.choice([None, "gzip", "gzip", "lzf"])
        if rng.random() < 0.4:
            options["compression"] = plugin(rng)
        if (dtype.kind in "iu" or dtype.kind == "f" and dtype.itemsize in (4, 8)) and rng.random() < 0.25:
            # as many bits as are needed, so many, or so many digits
            scale = rng.choice([0, 2, 5]) if dtype.kind == "f" else rng.choice([0, 0, 3, dtype.itemsize * 8])
            options.update(scaleoffset=scale, fletcher32=False, shuffle=rng.random() < 0.2)
    if dtype.kind in "iuf" and rng.random() < 0.4:
        options["fillvalue"] = dtype.type(7)
    return options


def text_type(rng):
    """A text of fixed length, which is filled up in one of three ways."""
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(rng.choice([1, 2, 5, 8]))
    kind.set_strpad(rng.choice([h5py.h5t.STR_NULLTERM, h5py.h5t.STR_NULLPAD, h5py.h5t.STR_SPACEPAD]))
    return kind


def narrow_type(rng):
    """An integer or a float of fewer bits than its bytes have."""
    if rng.random() < 0.6:
        bits, order = rng.choice([8, 16, 32, 64]), rng.choice(["LE", "BE"])
        # HDF5 2.0 reads all bits of a single byte where the file says that its order is another one
        kind = getattr(h5py.h5t, f"STD_{rng.choice('IU')}{bits}{'LE' if bits == 8 else order}").copy()
        # of more unused bits the library believes that the file is damaged
        precision = rng.randint(1 if bits == 8 else bits // 2, bits)
        kind.set_precision(precision)
        kind.set_offset(rng.randint(0, bits - precision))
        return kind
    size, most, exponents = rng.choice([(16, 10, 5), (32, 23, 8), (64, 52, 11)])
    kind = getattr(h5py.h5t, f"IEEE_F{size}{rng.choice(['LE', 'BE'])}").copy()
    exponent = rng.randint(2, exponents)
    mantissa = rng.randint(max(1, size // 2 - 1 - exponent), most)
    low = rng.randint(0, size - mantissa - exponent - 1)
    kind.set_fields(low + mantissa + exponent, low + mantissa, exponent, low, mantissa)
    kind.set_ebias((1 << (exponent - 1)) - 1)
    if low + mantissa + exponent + 1 < size:
        kind.set_precision(low + mantissa + exponent + 1)
    return kind


def wide_type(rng):
    """A float of fewer bytes than that as which h5py reads it."""
    size = rng.choice([1, 3, 4, 5, 6, 7, 8])
    exponent = rng.randint(2, min(11, 8 * size - 2))
    # of more unused bits the library believes that the file is damaged
    mantissa = rng.randint(max(1, 4 * size - 1 - exponent), min(52, 8 * size - 1 - exponent))
    kind = getattr(h5py.h5t, f"IEEE_F64{rng.choice(['LE', 'BE'])}").copy()
    kind.set_fields(mantissa + exponent, mantissa, exponent, 0, mantissa)
    kind.set_ebias((1 << (exponent - 1)) - 1)
    kind.set_precision(mantissa + exponent + 1)
    kind.set_size(size)
    return kind


def boolean_type(rng):
    kind = h5py.h5t.enum_create(rng.choice([h5py.h5t.STD_U8LE, h5py.h5t.STD_I8LE, h5py.h5t.STD_U8BE]))
    for name, value in rng.choice([[(b"FALSE", 0), (b"TRUE", 1)], [(b"TRUE", 1), (b"FALSE", 0)]]):
        kind.enum_insert(name, value)
    return kind


def low_level(rng, group, name, shape):
    """A dataset of a type that NumPy has not, of random bytes."""
    made = rng.choice([text_type, text_type, narrow_type, wide_type, boolean_type])
    kind = made(rng)
    booleans = kind.get_class() == h5py.h5t.ENUM
    # a field has no room for a wider float
    if rng.random() < 0.3 and made is not wide_type:
        inner, kind = kind, None
        kind = h5py.h5t.create(h5py.h5t.COMPOUND, 3 + 2 * inner.get_size())
        kind.insert(b"a", 0, h5py.h5t.STD_I16LE)
        kind.insert(b"b", 2, inner)
        kind.insert(b"c", 3 + inner.get_size(), inner)
    elif rng.random() < 0.2 and not booleans:
        kind = h5py.h5t.array_create(kind, (2,))
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    if shape and 0 not in shape and rng.random() < 0.5:
        plist.set_chunk(tuple(rng.randint(1, n) for n in shape))
        if rng.random() < 0.5:
            plist.set_deflate(4)
    made = h5py.h5d.create(group.id, name.encode(), kind, h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR), plist)
    count = int(np.prod(shape, dtype=int)) * kind.get_size()
    some = bytes([0, 1]) if booleans else rng.choice([b"ab \0 ", bytes(range(256))])
    data = np.frombuffer(bytes(rng.choice(some) for _ in range(count)), f"V{kind.get_size()}").reshape(shape)
    if data.size and rng.random() < 0.9:
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(data), mtype=kind)
    return group[name]


def write(case, path):
    rng, arrays = case.rng, {}
    block = rng.choice([0, 0, 0, 512, 2048])
    low = rng.choice(VERSIONS)
    high = "latest" if low == "latest" else rng.choice(["v114", "latest"])
    with h5py.File(path, "w", libver=(low, high), userblock_size=block or None, track_order=rng.random() < 0.2) as file:
        for number in range(rng.randint(1, 4)):
            group = file if rng.random() < 0.6 else file.require_group(rng.choice(["g", "g/h"]))
            dtype = random_dtype(rng)
            shape = tuple(rng.choice([1, 2, 3, 5, 8, 13, rng.choice([0, 40])]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3, 4])))
            options = options_of(rng, dtype, shape)
            name = rng.choice(["a", "x y", "w.b"]) + str(number)
            try:
                if rng.random() < 0.2:
                    dataset = low_level(rng, group, name, shape)
                    case.story.append(f"{dataset.name}: {dataset.dtype}, shape {shape}, by the library itself, {low}")
                    arrays[dataset.name.lstrip("/")] = None
                    continue
                dataset = create(rng, group, name, shape, dtype, options)
            except (TypeError, ValueError) as error:
                case.story.append(f"h5py does not make {dtype} {shape} {options}: {error!r}")
                continue
            if rng.random() < 0.85:
                data = random_array(rng, dtype, shape)
                if "chunks" in options and rng.random() < 0.3:
                    part = slice(0, rng.randint(1, shape[0]))
                    dataset[part] = data[part]
                else:
                    dataset[...] = data
                if "chunks" in options and rng.random() < 0.3:
                    masked(rng, dataset, data, options)
            around(rng, file, group, dataset)
            case.story.append(f"{dataset.name}: {dtype}, shape {shape}, {options}, user block {block}, {low}")
            arrays[dataset.name.lstrip("/")] = None
            if rng.random() < 0.3:
                link = "s" + str(number)
                to = dataset.name if rng.random() < 0.5 else dataset.name.rsplit("/", 1)[-1]
                group[link] = h5py.SoftLink(to) if rng.random() < 0.7 else dataset
                arrays[group[link].name.lstrip("/")] = None
    # as they are in the file: filters may lose what the library still has in its memory
    with h5py.File(path) as file:
        for name in list(arrays):
            try:
                arrays[name] = np.asarray(file[name][...]).reshape(file[name].shape + file[name].dtype.shape)
            except OSError as error:
                # the library stores what it cannot read: scale-offset with other filters, now and then
                case.story.append(f"h5py does not read /{name}: {error}")
                del arrays[name]
    if block and rng.random() < 0.5:
        with open(path, "r+b") as file:
            file.write(b"a text in the user block\n")
    return arrays


def complex_datatype(dtype):
    """The datatype that HDF5 2.0 has for complex numbers, in place of a structure of two floats; None before."""
    if not hasattr(LIBRARY, "H5Tcomplex_create"):
        return None
    LIBRARY.H5Tcomplex_create.restype = ctypes.c_int64
    part = h5py.h5t.py_create(np.empty(0, dtype).real.dtype)
    made = LIBRARY.H5Tcomplex_create(ctypes.c_int64(part.id))
    return h5py.h5t.TypeID(made) if made >= 0 else None


def create_complex(group, name, shape, dtype, options):
    """A dataset of the datatype for complex numbers; None where the library has none for them."""
    kind = complex_datatype(dtype)
    if kind is None:
        return None
    made = group.create_dataset(name + " first", shape, dtype, **options)
    try:
        h5py.h5d.create(group.id, name.encode(), kind, made.id.get_space(), made.id.get_create_plist())
    except (TypeError, ValueError, RuntimeError):
        # a file of an older version
        return None
    finally:
        del group[name + " first"]
    return group[name]


def create(rng, group, name, shape, dtype, options):
    if dtype.kind == "c" and rng.random() < 0.5:
        made = create_complex(group, name, shape, dtype, options)
        if made is not None:
            return made
    if not LIBRARY or "chunks" not in options or rng.random() < 0.6:
        if rng.random() < 0.1:
            group[name + " dtype"] = dtype
            dtype = group[name + " dtype"]
        return group.create_dataset(name, shape, dtype, **options)
    # as h5py makes it, and then once more with another option
    made = group.create_dataset(name + " first", shape, dtype, **options)
    plist, space, kind = made.id.get_create_plist(), made.id.get_space(), made.id.get_type()
    LIBRARY.H5Pset_chunk_opts(ctypes.c_int64(plist.id), ctypes.c_uint(PARTIAL_UNFILTERED))
    h5py.h5d.create(group.id, name.encode(), kind, space, plist)
    if rng.random() < 0.5:
        del group[name + " first"]
    return group[name]


def masked(rng, dataset, data, options):
    """Write some chunks as they are, all of whose filters are left out by a mask."""
    count = dataset.id.get_create_plist().get_nfilters()
    chunk = dataset.chunks
    counts = [-(-n // c) for n, c in zip(dataset.shape, chunk)]
    for _ in range(rng.randint(1, 3)):
        at = [rng.randrange(n) for n in counts]
        start = [i * c for i, c in zip(at, chunk)]
        inside = tuple(slice(i, i + c) for i, c in zip(start, chunk))
        part = data[inside]
        if part.shape[: len(chunk)] != chunk or dataset.dtype.kind == "O":
            continue
        dataset.id.write_direct_chunk(tuple(start), np.ascontiguousarray(part).tobytes(), (1 << count) - 1)


def around(rng, file, group, dataset):
    """What stands around a dataset, and must not be in its way."""
    if rng.random() < 0.1:
        for number in range(rng.choice([3, 40, 120])):
            dataset.attrs[f"attribute {number}"] = rng.choice([1.5, "text", [1, 2, 3]])
    if rng.random() < 0.1:
        inner = group.require_group("many")
        for number in range(rng.choice([5, 40, 300])):
            if f"n{number}" not in inner:
                inner[f"n{number}"] = h5py.SoftLink("/nowhere")
    if rng.random() < 0.1:
        if "elsewhere" not in group:
            group.require_group("cycle")["again"] = file
            group["elsewhere"] = h5py.ExternalLink("other.h5", "/x")
            group["loop"] = h5py.SoftLink("loop")
    if dataset.maxshape != dataset.shape and None in dataset.maxshape and rng.random() < 0.3:
        try:
            dataset.resize(tuple(n + rng.choice([0, 1, 9]) if m is None else n for n, m in zip(dataset.shape, dataset.maxshape)))
        except RuntimeError:
            # the library does not find what it has just made with unfiltered chunks
            pass


def dataset_case(case):
    name = case.rng.choice(["s.h5", "s.nc", "s"])
    arrays = write(case, case.path(name))
    for key in case.rng.sample(sorted(arrays), min(len(arrays), 2)):
        check(case, name, key, arrays[key], lambda name, array: stored_list(case, name, array))


def stored_list(case, name, array):
    """An array that is a list or a mask, in chunks."""
    with h5py.File(case.path(name + ".h5"), "w") as file:
        file.create_dataset("g/x", data=array, chunks=tuple(max(1, n // 2) for n in array.shape) if array.size else None)
    return f"@{name}.h5#g/x"


def said_of(rng):
    """Attributes, and how JSON says them."""
    known = [
        ("K", "K"), (np.bytes_(b"fixed"), "fixed"), ("", ""), (np.float32(0.5), 0.5), (np.int16(-7), -7), (np.uint64(2**64 - 1), 2**64 - 1),
        (np.float64(np.nan), "NaN"), (np.array([1.5, -np.inf]), [1.5, "-Infinity"]), (np.bool_(True), True),
        (np.array([[1, 2], [3, 4]], ">i4"), [[1, 2], [3, 4]]), (np.array(["a", "é"], object), ["a", "é"]), (np.array([], "i4"), []),
        (np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")]), [{"a": 1, "b": 2.5}]), (np.array([7], "i8"), [7]),
    ]
    return {f"attribute {number}": rng.choice(known) for number in range(rng.choice([0, 1, 3, 12]))}


def annotated(case, path):
    """A file of a dataset of netCDF's kind in a group, and what a Zarr of it must say."""
    rng = case.rng
    dtype = np.dtype(rng.choice(["u1", "<i2", ">i4", "<f4", ">f8", "f2", "?", "c8"]))
    shape = tuple(rng.choice([1, 2, 5, 8]) for _ in range(rng.choice([1, 2, 3])))
    array, fill = random_array(rng, dtype, shape), None
    with h5py.File(path, "w", libver=(rng.choice(VERSIONS), "latest")) as file:
        group = file.create_group("g")
        options = {"chunks": tuple(max(1, n // 2) for n in shape)} if rng.random() < 0.5 else {}
        if dtype.kind in "iuf" and rng.random() < 0.6:
            fill = dtype.type(rng.choice([7, 9, np.nan] if dtype.kind == "f" else [7, 9]))
            options["fillvalue"] = fill
        dataset = group.create_dataset("x", data=array, **options)
        own, outer = said_of(rng), said_of(rng)
        for holder, attributes in [(dataset, own), (group, outer)]:
            for name, (value, _) in attributes.items():
                holder.attrs[name] = value
        names = [None] * len(shape)
        for axis, length in enumerate(shape):
            way = rng.choice(["none", "scale", "label", "both"])
            if way in ("scale", "both"):
                names[axis] = f"scale {axis}"
                group[names[axis]] = np.arange(length)
                group[names[axis]].make_scale(names[axis])
                dataset.dims[axis].attach_scale(group[names[axis]])
            if way in ("label", "both"):
                names[axis] = f"label {axis}"
                dataset.dims[axis].label = names[axis]
        missing = None
        if dtype.kind in "iuf" and rng.random() < 0.5:
            missing = dtype.type(rng.choice([99, np.nan] if dtype.kind == "f" else [99]))
            dataset.attrs["_FillValue"] = missing if rng.random() < 0.5 else np.array([missing])
    told = {name: value for name, (_, value) in own.items()}
    if missing is not None:
        told["_FillValue"] = FillValueCoder.encode(missing, dtype)
    return array, told, {name: value for name, (_, value) in outer.items()}, names, fill


def written_case(case):
    """A Zarr that is made of a dataset, as zarr-python and xarray read it: attributes, names of axes, fill value."""
    rng = case.rng
    array, own, outer, names, fill = annotated(case, case.path("s.h5"))
    items = simple(rng, array.shape)
    expected = np.asarray(array[tuple(items)], array.dtype)
    names, line = kept_names(names, items), []
    if rng.random() < 0.3:
        line, expected, names = ["-T"], expected.T, names[::-1]
    status, _, err = case.run(["s.h5", "-t", "g/x", "[" + ", ".join(map(spelled, items)) + "]", "-o", "o.zarr", "--name", "g/x", *line])
    lines = [text for text in err.splitlines() if not text.startswith("tslice: note: ")]
    if status or lines:
        raise Failure(f"status {status}, {err!r}")
    reworded = any("Infinity" in str(value) or value == "NaN" for name, value in own.items() if name != "_FillValue")
    if reworded != ("g/x: NaN or infinity is written as a word" in err):
        raise Failure(f"notes {err!r}")
    root = zarr.open_group(case.path("o.zarr"), mode="r")
    found, dtype = root["g/x"], array.dtype.newbyteorder("<")
    wanted = np.asarray(0 if fill is None else fill, dtype)
    told = dict(found.attrs), found.metadata.dimension_names, np.asarray(found.fill_value, dtype).tobytes()
    if told != (own, tuple(names) if any(names) else None, wanted.tobytes()):
        raise Failure(f"{told} for {own} {names} {fill}")
    if dict(root["g"].attrs) != outer:
        raise Failure(f"of the group {dict(root['g'].attrs)} for {outer}")
    check_same(found[...], expected.astype(dtype))
    if all(names) and len(set(names)) == len(names):
        opened = xarray.open_zarr(case.path("o.zarr"), group="g", consolidated=False, decode_cf=False)["x"]
        if opened.dims != tuple(names) or set(opened.attrs) != set(own):
            raise Failure(f"xarray: {opened.dims}, {opened.attrs}")
        if "_FillValue" in own and opened.attrs["_FillValue"] != 99 and not np.isnan(opened.attrs["_FillValue"]):
            raise Failure(f"xarray: {opened.attrs}")
        check_same(opened.values, expected.astype(dtype))


def netcdf_case(case):
    """A file of netCDF, as xarray reads it and the Zarr that is made of it."""
    rng = case.rng
    sizes = {name: rng.choice([1, 2, 5]) for name in "tyx"}
    variables = {}
    for number in range(rng.randint(1, 3)):
        dims = rng.sample(sorted(sizes), rng.choice([1, 2, 3]))
        values = np.array([rng.choice([1.5, 2.0, 250.0, np.nan]) for _ in range(int(np.prod([sizes[name] for name in dims])))])
        variables[f"v{number}"] = xarray.DataArray(values.reshape([sizes[name] for name in dims]), dims=dims, attrs={"units": "K"})
    data = xarray.Dataset(variables, {name: np.arange(size) * 10 for name, size in sizes.items()}, {"title": "a text"})
    # packed integers, floats with a value for those that are missing
    packed = {"dtype": "int16", "scale_factor": 0.5, "add_offset": 10.0, "_FillValue": np.int16(-9999)}
    encodings = {name: rng.choice([packed, {}, {"dtype": "float32", "_FillValue": np.float32(-9999)}]) for name in variables}
    data.to_netcdf(case.path("s.nc"), engine="netcdf4", encoding=encodings)
    status, _, err = case.run(["merge", "s.nc", "-o", "o.zarr"])
    if status:
        raise Failure(f"status {status}, {err!r}")
    with xarray.open_dataset(case.path("s.nc"), engine="netcdf4") as expected:
        found = xarray.open_zarr(case.path("o.zarr"), consolidated=False)
        xarray.testing.assert_equal(found.load(), expected.load())
        for name in variables:
            if found[name].attrs.get("units") != "K" or found[name].dims != expected[name].dims:
                raise Failure(f"{name}: {found[name].attrs} {found[name].dims}")


def dimensions_case(case):
    """A file of netCDF4 itself: dimensions with a variable, without one, growing ones, and variables of their names."""
    rng = case.rng
    sizes = {name: rng.choice([1, 2, 3, 5]) for name in rng.sample(["t", "x", "y", "lat"], rng.randint(1, 4))}
    growing = {name for name in sizes if rng.random() < 0.3}
    names = sorted(sizes)
    with netCDF4.Dataset(case.path("n.nc"), "w") as file:
        for name, size in sizes.items():
            file.createDimension(name, None if name in growing else size)
        file.title = "a text"
        variables = [f"v{number}" for number in range(rng.randint(1, 3))] + [name for name in names if rng.random() < 0.5]
        if growing:
            # what makes them as long as they are
            variables.append("full")
        for name in rng.sample(variables, len(variables)):
            dims = [name] if name in sizes and rng.random() < 0.6 else rng.sample(names, rng.randint(1 if name in sizes else 0, len(names)))
            dims = names if name == "full" else dims
            kind = rng.choice(["f4", "f8", "i2", "i1", "u1", "S1"])
            variable = file.createVariable(name, kind, dims, fill_value=rng.choice([None, None, False]) if kind == "S1" else rng.choice([None, 7, False]))
            shape = tuple(sizes[dim] for dim in dims)
            # shorter than its growing dimension; netCDF reads nonsense where that is not the first one alone
            grows = [axis for axis, dim in enumerate(dims) if dim in growing]
            short = name != "full" and grows == [0] and rng.random() < 0.5
            if short:
                shape = tuple(rng.randrange(n + 1) if axis in grows else n for axis, n in enumerate(shape))
            data = np.array([rng.choice(b"abc") for _ in range(int(np.prod(shape, dtype=int)))], "u1").reshape(shape)
            whole = tuple(slice(0, n) for n in shape)
            variable[whole] = data.view("S1") if kind == "S1" else data % 5
            if rng.random() < 0.5:
                variable.units = "m"
            if kind in ("i1", "u1") and not short and rng.random() < 0.4:
                variable.setncattr("dtype", "bool")
                variable[...] = data % 3
        if rng.random() < 0.3:
            group = file.createGroup("g")
            group.createDimension("z", 2)
            group.createVariable("w", "i4", ("z", names[0]))[...] = np.ones((2, sizes[names[0]]))
        case.story.append(f"{sizes}, growing {growing}, {[(name, it.dimensions, it.dtype) for name, it in file.variables.items()]}")
    status, _, err = case.run(["merge", "n.nc", "-o", "n.zarr"])
    if status or any(not line.startswith("tslice: note: ") for line in err.splitlines()):
        raise Failure(f"status {status}, {err!r}")
    with xarray.open_dataset(case.path("n.nc"), engine="netcdf4", decode_cf=False) as expected:
        found = xarray.open_zarr(case.path("n.zarr"), consolidated=False, decode_cf=False)
        if set(found.variables) != set(expected.variables):
            raise Failure(f"{sorted(found.variables)} for {sorted(expected.variables)}")
        for name, wanted in expected.variables.items():
            it = found.variables[name]
            values = wanted.values
            if wanted.attrs.get("dtype") == "bool":
                values = values.astype(bool)
                del wanted.attrs["dtype"]
            attributes = [{key: value for key, value in one.attrs.items() if key != "_FillValue"} for one in (it, wanted)]
            if it.dims != wanted.dims or attributes[0] != attributes[1]:
                raise Failure(f"{name}: {it.dims} {it.attrs} for {wanted.dims} {wanted.attrs}")
            check_same(it.values, values)
        if found.attrs != expected.attrs:
            raise Failure(f"{found.attrs} for {expected.attrs}")


# a damaged shape may have so many bytes of fill values that they take minutes
HUGE = 1 << 30


def damaged_case(case):
    rng = case.rng
    arrays = write(case, case.path("s.h5"))
    with open(case.path("s.h5"), "r+b") as file:
        data = bytearray(file.read())
        if rng.random() < 0.3:
            data = data[:rng.randrange(len(data))]
        else:
            # where the superblock, headers and indexes are
            for _ in range(rng.randint(1, 8)):
                data[rng.randrange(min(len(data), rng.choice([200, 3000, 10**6])))] = rng.choice([0, 255, rng.randrange(256)])
        file.seek(0)
        file.write(data)
        file.truncate()
    check_damaged(case, ["info", "s.h5"])
    status, out, _ = case.run(["info", "s.h5", "--json"])
    huge = {entry["name"] for entry in json.loads(out)[0]["tensors"] if entry["bytes"] > HUGE} if status == 0 else set()
    for key in [key for key in arrays if key not in huge]:
        check_damaged(case, ["s.h5", "-t", key, "-o", "o.npy", "--force"])
    if os.path.exists(case.path("o.npy")):
        os.remove(case.path("o.npy"))


def family_case(case):
    """A file of several that are one together: an error that says so."""
    size = case.rng.choice([2500, 10_000])
    with h5py.File(case.path("fam%02d.h5"), "w", driver="family", memb_size=size) as file:
        file["x"] = np.arange(case.rng.choice([2000, 5000]))
    for line in [["info", "fam00.h5"], ["fam00.h5", "-o", "o.npy"]]:
        status, _, err = case.run(line)
        if status != 1 or "one file of a family: h5repart joins" not in err:
            raise Failure(f"status {status}, {err!r}")


def usual_case(case):
    part = case.rng.random()
    others = [(0.01, family_case)]
    others += [(0.06, written_case), (0.09, netcdf_case), (0.15, dimensions_case)] if xarray is not None else []
    next((one for most, one in others if part < most), dataset_case)(case)


def one(job):
    return chunk_cases.one(job, usual_case, damaged_case, MEMORY)


def main():
    options = chunk_cases.options_of(__doc__.split("\n")[0])
    harness.begin(options)
    print("h5py", h5py.__version__, "HDF5", h5py.version.hdf5_version)
    return harness.run_cases("hdf5_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
