#!/usr/bin/env python3
"""Differential test: packed values against xarray.

    python tests/python/unpack_differential.py --bin target/debug/tslice --count 2000 --seed 1

The program must be built with the features `hdf5` and `zarr`, and xarray, netCDF4, h5netcdf and zarr be there. Every
case is a variable of a netCDF 4, an HDF5 of h5py, a Zarr 2 or a Zarr 3 with a random mixture of `scale_factor`,
`add_offset`, `_FillValue`, `missing_value` and `_Unsigned`. What `--unpack` takes of it, by an index, a cast, a
reduction, a join, a gather, parts and in every output, must be what xarray's decoding gives, the dtype included; and
a Zarr that is written without it must decode to the same values. `--only NUMBER` runs one again.
"""

import json
import random
import shutil
import sys
import warnings

import h5py
import netCDF4
import numpy as np
import safetensors.numpy
import xarray
import zarr
from xarray.backends.zarr import FillValueCoder

import harness
from cases import Case
from chunk_cases import check_same, simple, spelled
from harness import Failure

FORMATS = ["netcdf", "hdf5", "zarr2", "zarr3"]
DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
NAMES = ["time", "lat", "lon"]


class Packed:
    """A random variable, the attributes that pack it, and how to write it."""

    def __init__(self, rng):
        self.format = rng.choice(FORMATS)
        self.dtype = np.dtype(rng.choice(DTYPES + ["i2"] * 4 + (["f2"] if "zarr" in self.format else [])))
        if rng.random() < 0.2 and self.format != "zarr3":
            self.dtype = self.dtype.newbyteorder(">")
        self.shape = tuple(rng.choice([1, 2, 3, 5, 40]) for _ in range(rng.randint(1, 3)))
        self.dims = NAMES[:len(self.shape)]
        self.seed = rng.random()
        self.fill = self.number(rng) if rng.random() < 0.6 else None
        self.missing = (self.fill if self.fill is not None and rng.random() < 0.5 else self.number(rng)) if rng.random() < 0.4 else None
        self.chunks = tuple(rng.randint(1, n) for n in self.shape) if rng.random() < 0.7 else None
        kind = rng.choice([np.float32, np.float64])
        other = rng.choice([kind, kind, np.float32, np.float64])
        self.attributes = {}
        if rng.random() < 0.6:
            self.attributes["scale_factor"] = kind(rng.choice([0.01, 0.5, 2.0, -0.1, rng.uniform(1e-3, 9)]))
        elif self.dtype.kind in "iu" and self.fill is None and self.missing is None and rng.random() < 0.3:
            # xarray fails where fills of these are NaN, and cuts off the fractions of floats
            self.attributes["scale_factor"] = rng.choice([np.int8, np.int16, np.int32, np.int64, np.uint8])(rng.choice([1, 2, 3, 100]))
        if rng.random() < 0.5:
            self.attributes["add_offset"] = other(rng.choice([273.15, -1.0, 0.0, rng.uniform(-400, 400)]))
        # xarray reads the bytes of a fill value of the other byte order as another number
        if rng.random() < 0.2 and self.dtype.kind in "iu" and self.dtype.isnative:
            self.attributes["_Unsigned"] = "true" if self.dtype.kind == "i" else "false"
        if self.missing is not None:
            self.attributes["missing_value"] = self.missing

    def number(self, rng):
        """A fill value of the dtype, which elements have too."""
        if self.dtype.kind == "f":
            values = [np.nan, -9999.0, 1e20 if self.dtype.itemsize > 2 else 6e4, 0.0, -32767.0, 9.96921e36 if self.dtype.itemsize > 2 else 1.0]
            return self.dtype.newbyteorder("=").type(rng.choice(values))
        info = np.iinfo(self.dtype)
        return self.dtype.newbyteorder("=").type(rng.choice([info.min, info.max, info.max - 1, 0, 99]))

    def values(self, more=""):
        rng = random.Random(f"{self.seed} {more}")
        special = [it for it in (self.fill, self.missing) if it is not None]
        if self.dtype.kind == "f":
            usual = lambda: rng.choice([rng.uniform(-300, 300), np.nan, 0.0])
        else:
            info = np.iinfo(self.dtype)
            usual = lambda: rng.choice([rng.randint(int(info.min), int(info.max)), rng.randint(0, 100), int(info.max)])
        some = [rng.choice(special) if special and rng.random() < 0.3 else usual() for _ in range(int(np.prod(self.shape)))]
        return np.array(some, self.dtype).reshape(self.shape)

    def write(self, path, values):
        """Write the file, with a second variable beside it."""
        shutil.rmtree(path, ignore_errors=True)
        if self.format == "netcdf":
            self.write_netcdf(path, values)
        elif self.format == "hdf5":
            self.write_hdf5(path, values)
        else:
            self.write_zarr(path, values)

    def write_netcdf(self, path, values):
        with netCDF4.Dataset(path, "w") as file:
            for name, size in zip(self.dims, self.shape):
                file.createDimension(name, size)
            endian = {">": "big"}.get(self.dtype.byteorder, "little")
            made = file.createVariable("v", self.dtype.newbyteorder("="), self.dims, fill_value=self.fill, chunksizes=self.chunks, endian=endian)
            made.set_auto_maskandscale(False)
            for name, value in self.attributes.items():
                made.setncattr(name, value)
            made[...] = values

    def write_hdf5(self, path, values):
        with h5py.File(path, "w") as file:
            made = file.create_dataset("v", data=values, chunks=self.chunks)
            for axis, (name, size) in enumerate(zip(self.dims, self.shape)):
                file[name] = np.arange(size)
                file[name].make_scale(name)
                made.dims[axis].attach_scale(file[name])
            given = self.attributes if self.fill is None else {**self.attributes, "_FillValue": self.fill}
            for name, value in given.items():
                made.attrs[name] = value

    def write_zarr(self, path, values):
        version = int(self.format[-1])
        group = zarr.open_group(path, mode="w", zarr_format=version)
        plain = {name: value if isinstance(value, str) else value.item() for name, value in self.attributes.items()}
        more = {"dimension_names": self.dims} if version == 3 else {}
        if version == 2:
            plain["_ARRAY_DIMENSIONS"] = self.dims
            more["fill_value"] = self.fill
        elif self.fill is not None:
            plain["_FillValue"] = FillValueCoder.encode(self.fill, self.dtype)
        made = group.create_array("v", shape=self.shape, dtype=self.dtype, chunks=self.chunks or self.shape, attributes=plain, **more)
        made[...] = values


def opened(path, kind, **how):
    """The variable of a file, as xarray decodes it."""
    engine = {"netcdf": "netcdf4", "hdf5": "h5netcdf"}.get(kind, "zarr")
    more = {"consolidated": False} if engine == "zarr" else {}
    with xarray.open_dataset(path, engine=engine, decode_times=False, decode_coords=False, **more, **how) as data:
        return data["v"].load()


def decoded(path, kind):
    values = opened(path, kind).values
    return values.astype(values.dtype.newbyteorder("="))


def same(found, expected):
    if found.dtype.newbyteorder("=") != expected.dtype.newbyteorder("="):
        raise Failure(f"dtype {found.dtype}, xarray has {expected.dtype}")
    check_same(found.astype(expected.dtype), expected)


def run(case, line):
    line = [str(word) for word in line]
    status, out, err = case.run(line)
    if status or err:
        raise Failure(f"{line}: status {status}, {err!r}")
    return out


def index_of(rng, shape):
    items = simple(rng, shape)
    return tuple(items), "[" + ", ".join(map(spelled, items)) + "]"


def sliced(case, packed, values):
    """An index into every output."""
    rng = case.rng
    items, text = index_of(rng, values.shape)
    expected = np.asarray(values[items])
    line = ["s", text, "-t", "v", "--unpack"]
    turned = []
    if rng.random() < 0.3:
        turned, expected = ["-T"], expected.T
    line += turned + rng.choice([[], ["-j", "1"], ["-j", "3"], ["--io", "read"]])
    to = rng.choice(["npy", "npz", "safetensors", "zarr", "raw", "parts", "order", "cast"])
    if to == "cast" and values.dtype.kind == "f":
        dtype = rng.choice(["float64", "float32", "float16"])
        run(case, [*line, "--cast", dtype, "-o", "o.npy"])
        with np.errstate(over="ignore"):
            return same(np.load(case.path("o.npy")), expected.astype(dtype))
    if to == "npz":
        run(case, [*line, "-o", "o.npz"])
        return same(np.load(case.path("o.npz"))["v"], expected)
    if to == "safetensors":
        run(case, [*line, "-o", "o.safetensors"])
        return same(safetensors.numpy.load_file(case.path("o.safetensors"))["v"], expected)
    if to == "zarr":
        run(case, [*line, "-o", "o.zarr"])
        made = zarr.open(case.path("o.zarr"), mode="r")
        made = made if isinstance(made, zarr.Array) else made["v"]
        kept = set(made.attrs) & {"scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned"}
        if kept:
            raise Failure(f"attributes {kept} are left")
        return same(np.asarray(made[...]), expected)
    if to == "raw":
        run(case, [*line, "-o", "o.bin"])
        # what is not packed keeps its byte order, which xarray changes and a header tells
        run(case, [*line, "-o", "o.npy"])
        dtype = np.load(case.path("o.npy")).dtype
        return same(np.fromfile(case.path("o.bin"), dtype).reshape(expected.shape), expected)
    if to == "parts":
        count = rng.randint(1, 3)
        for part in range(count):
            run(case, [*line, "-o", "o.npy", "--part", f"{part}/{count}"])
    else:
        run(case, [*line, *(["--order", "F"] if to == "order" else []), "-o", "o.npy"])
    same(np.load(case.path("o.npy")), expected)


def listed(case, packed, values):
    """Lists, gathers and shuffles."""
    rng = case.rng
    axis = rng.randrange(values.ndim)
    where = [rng.randrange(values.shape[axis]) for _ in range(rng.randint(0, 6))]
    expected = np.take(values, np.array(where, np.int64), axis)
    if rng.random() < 0.5:
        run(case, ["gather", "s", "-t", "v", "--axis", axis, "--indices", json.dumps(where), "--unpack", "-o", "o.npy"])
    else:
        text = ", ".join([":"] * axis + [json.dumps(where)])
        run(case, ["s", f"[{text}]", "-t", "v", "--unpack", "-o", "o.npy"])
    same(np.load(case.path("o.npy")), expected)


def reshaped(case, packed, values):
    line = ["s", "-t", "v", "--unpack", "--reshape", "-1"]
    step = case.rng.choice([1, 2, -1])
    run(case, [*line[:1], f"::{step}", *line[1:], "-o", "o.npy"])
    same(np.load(case.path("o.npy")), values.reshape(-1)[::step])


def joined(case, packed, values):
    """Two files of which each has another packing."""
    rng = case.rng
    other = Packed(random.Random(rng.random()))
    others = {**packed.__dict__, "seed": rng.random()}
    other.__dict__.update({name: value for name, value in others.items() if name != "attributes"})
    other.attributes = dict(packed.attributes)
    for name in ["scale_factor", "add_offset"]:
        if name in other.attributes and rng.random() < 0.5:
            other.attributes[name] = type(other.attributes[name])(rng.uniform(1, 5))
    other.write(case.path("t"), other.values())
    axis = rng.randrange(values.ndim)
    line = ["concat", "s", "t", "-t", "v", "--axis", str(axis), "-o", "o.npy"]
    run(case, [*line, "--unpack"])
    same(np.load(case.path("o.npy")), np.concatenate([values, decoded(case.path("t"), packed.format)], axis))
    status, _, err = case.run([*line, "--force"])
    differs = any(other.attributes[name] != value for name, value in packed.attributes.items() if name in ("scale_factor", "add_offset"))
    if bool(status) != differs or differs and "input 1 has" not in err:
        raise Failure(f"packings differ: {differs}; status {status}, {err!r}")


def reduced(case, packed, values):
    rng = case.rng
    how = rng.choice(["min", "max", "mean", "sum", "std", "any"])
    if values.dtype.kind != "f":
        how = rng.choice(["min", "max", "sum"])
    axis = rng.randrange(values.ndim)
    run(case, ["view", "s", "-t", "v", "--unpack", "--reduce", how, "--axis", axis, "-o", "o.npy"])
    found = np.load(case.path("o.npy"))
    with np.errstate(all="ignore"):
        expected = getattr(np, how)(values, axis)
    if found.dtype != expected.dtype:
        raise Failure(f"dtype {found.dtype}, NumPy has {expected.dtype}")
    # sums of integers are exact, modulo 2^64
    if how in ("min", "max", "any") or values.dtype.kind != "f":
        return check_same(found, np.asarray(expected))
    with np.errstate(all="ignore"):
        wide = getattr(np, how)(values.astype(np.float64), axis)
        tolerance = np.finfo(values.dtype).eps * 40 if values.dtype.kind == "f" else 0
        near = np.abs(found - wide) <= tolerance * (np.abs(values).astype(np.float64).sum(axis) + 1e-300)
    if not (near | (np.isnan(found) & np.isnan(wide)) | (found == wide) | ~np.isfinite(wide) | ~np.isfinite(expected)).all():
        raise Failure(f"{how}: {found} {expected}")


def looked_at(case, packed, values):
    """Comparisons, digests, statistics and values."""
    np.save(case.path("x.npy"), values)
    way = case.rng.choice(["diff", "digest", "stats", "view", "split"])
    if way == "diff":
        pair = ["s", "x.npy"] if case.rng.random() < 0.5 else ["x.npy", "s"]
        return run(case, ["diff", *pair, "-t", "v", "--unpack", "--equal-nan"])
    if way == "digest":
        found = run(case, ["info", "s", "-t", "v", "--unpack", "--digest"]).split()[0]
        if found != run(case, ["info", "x.npy", "--digest"]).split()[0]:
            raise Failure("another digest")
        return None
    if way == "stats":
        found = json.loads(run(case, ["view", "s", "-t", "v", "--unpack", "--stats", "--json"]))
        nan = int(np.isnan(values).sum())
        if found["nan"] != nan:
            raise Failure(f"{found['nan']} are NaN, not {nan}")
        return None
    if way == "split":
        count = case.rng.randint(1, 3)
        if len(values) % count:
            return None
        run(case, ["split", "s", "-t", "v", "--unpack", "--parts", count, "-o", "p{}.npy"])
        for number, part in enumerate(np.array_split(values, count)):
            same(np.load(case.path(f"p{number}.npy")), part)
        return None
    found = run(case, ["view", "s", "-t", "v", "--unpack", "--full"]).decode()
    expected = run(case, ["view", "x.npy", "--full"]).decode()
    if found.split("\n")[:-2] != expected.split("\n")[:-2]:
        raise Failure(f"{found}\n{expected}")


def kept(case, packed, values):
    """A Zarr that is written of stored elements means the same."""
    untyped = [isinstance(value, np.float32) or name == "scale_factor" and isinstance(value, np.integer) for name, value in packed.attributes.items()]
    if "zarr" not in packed.format and any(untyped):
        return None  # a number of JSON has no type of its own
    status, _, err = case.run(["s", "-t", "v", "-o", "o.zarr"])
    if status or err and "NaN or infinity is written" not in err:
        raise Failure(f"status {status}, {err!r}")
    if isinstance(zarr.open(case.path("o.zarr"), mode="r"), zarr.Array):
        raise Failure("the array has lost its name")
    found = opened(case.path("o.zarr"), "zarr").values
    check_same(found.astype(np.float64), values.astype(np.float64))


def cast(case, packed, values):
    """Fill values are cast with the elements, or said to be left out."""
    stored = opened(case.path("s"), packed.format, mask_and_scale=False).values
    dtype = np.dtype(case.rng.choice(["i1", "i2", "i4", "u2", "f2", "f4", "f8"]))
    if "_Unsigned" in packed.attributes or dtype.name == packed.dtype.newbyteorder("=").name:
        return None
    status, _, err = case.run(["s", "-t", "v", "--cast", dtype.name, "--casting", "unsafe", "-o", "o.zarr"])
    if status:
        raise Failure(f"status {status}, {err!r}")
    attributes = dict(zarr.open(case.path("o.zarr"), mode="r")["v"].attrs)
    given = {"_FillValue": packed.fill, "missing_value": packed.missing}
    for name, value in given.items():
        if value is None:
            continue
        if np.isnan(value) and dtype.kind == "f":
            continue
        with np.errstate(all="ignore"):
            now = np.asarray(value).astype(dtype)
        limits = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
        holds = not np.isnan(value) and float(limits.min) <= float(value) <= float(limits.max)
        if name not in attributes:
            if holds or f"{name} " not in err:
                raise Failure(f"{name} {value} is left out of {dtype}: {err!r}")
            continue
        if not holds:
            # float64 has more than the largest number of an integer of 64 bits
            raise Failure(f"{name} {value} is no {dtype}, and stays: {attributes}")
        there = attributes[name]
        there = FillValueCoder.decode(there, dtype) if name == "_FillValue" else there
        if np.asarray(there).astype(dtype) != now:
            raise Failure(f"{name} {there}, not {now}")
    return None


WAYS = [sliced, sliced, sliced, listed, reshaped, joined, reduced, looked_at, looked_at, kept, cast]


def usual_case(case):
    packed = Packed(case.rng)
    packed.write(case.path("s"), packed.values())
    try:
        with np.errstate(all="ignore"):
            values = decoded(case.path("s"), packed.format)
    except Exception as error:  # what xarray cannot decode is no case
        case.rng.random()
        return None if isinstance(error, (ValueError, KeyError, OverflowError, TypeError)) else check_same(0, 1)
    with np.errstate(all="ignore"):
        return case.rng.choice(WAYS)(case, packed, values)


def one(job):
    options, number = job
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = Case(random.Random(f"{options.seed} {number}"))
        return harness.run_case(case, usual_case, number, options.keep)


def main():
    options = harness.case_parser(__doc__.split("\n")[0], 2000).parse_args()
    harness.begin(options)
    print("xarray", xarray.__version__)
    return harness.run_cases("unpack_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
