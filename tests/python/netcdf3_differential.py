#!/usr/bin/env python3
"""Differential test: variables of netCDF 3 files against netCDF4, scipy and xarray.

    python tests/python/netcdf3_differential.py --bin target/debug/tslice --count 1500 --seed 1

netCDF4 and xarray must be there. Every case is a file of random variables, by netCDF4 in each of the three formats or, where it is there, by
scipy: of all types and ranks, with and without a dimension that grows, one record variable alone or several, of no record, of
a number of records that is not said; with attributes of all types, and xarray's booleans. Random indexes and commands must
give what NumPy makes of the array that netCDF4 reads, `info` what netCDF4 says of dimensions and attributes, and `--unpack`
what xarray makes of packed values. Every tenth case is a damaged file, or one that is cut at every 7th byte, in 64 MiB of
memory: an error in one line, or elements. `--only NUMBER` runs one again.
"""

import json
import os
import struct
import sys
import warnings

import netCDF4
import numpy as np
import xarray

import chunk_cases
import harness
from chunk_cases import check, check_damaged, check_same
from harness import Failure

try:
    import scipy
    import scipy.io
except ImportError:  # netCDF4 alone writes files
    scipy = None

# what a damaged file may take: 64 MiB, and the program without a file
MEMORY = 72 << 20

CLASSIC = ["i1", "S1", "i2", "i4", "f4", "f8"]
WIDE = [*CLASSIC, "u1", "u2", "u4", "i8", "u8"]
FORMATS = {"NETCDF3_CLASSIC": CLASSIC, "NETCDF3_64BIT_OFFSET": CLASSIC, "NETCDF3_64BIT_DATA": WIDE, "scipy 1": CLASSIC, "scipy 2": CLASSIC}
if scipy is None:
    FORMATS = {name: kinds for name, kinds in FORMATS.items() if not name.startswith("scipy")}


def random_data(rng, kind, shape):
    count = int(np.prod(shape, dtype=int))
    if kind == "S1":
        return np.array([rng.choice(b"abc~\xe9 ") for _ in range(count)], "u1").view("S1").reshape(shape)
    return np.frombuffer(rng.randbytes(count * np.dtype(kind).itemsize), kind).reshape(shape)


def random_attribute(rng, wide, ascii_only):
    """A value, and how JSON says it."""
    kind = rng.choice(WIDE if wide else CLASSIC)
    if kind == "S1":
        text = rng.choice(["K", "a text", "a text" if ascii_only else "größe", "two\nlines", "x" * 300])
        return text, text
    if kind in ("f4", "f8"):
        values = [rng.choice([0.5, -3.25, 1e30, float("nan"), float("inf")]) for _ in range(rng.choice([1, 1, 2, 5]))]
        array = np.array(values, kind)
        said = ["NaN" if np.isnan(it) else "Infinity" if np.isinf(it) else float(it) for it in array]
    else:
        array = np.frombuffer(rng.randbytes(np.dtype(kind).itemsize * rng.choice([1, 1, 2, 5])), kind)
        said = [int(it) for it in array]
    return array, said[0] if len(said) == 1 else said


def layout(rng, kinds, ascii_only):
    """Dimensions, how many records there are (None: no dimension grows), and variables."""
    sizes = {name: rng.choice([1, 2, 3, 5, 7, 13]) for name in rng.sample(["x", "y", "lat", "z" if ascii_only else "größe", "a b"], rng.randint(1, 4))}
    # netCDF4 does not read what scipy writes of no records
    records = rng.choice([None, 1 if ascii_only else 0, 1, 2, 5, 17])
    variables = {}
    names = [f"v{number}" for number in range(rng.choice([1, 1, 2, 4]))] + [name for name in sizes if rng.random() < 0.3]
    if records is not None and rng.random() < 0.4:
        names.append("time")
    for name in rng.sample(names, len(names)):
        dims = [name] if name in sizes else ["time"] if name == "time" else rng.sample(sorted(sizes), rng.randint(1 if ascii_only else 0, len(sizes)))
        if records is not None and name not in sizes and name != "time" and rng.random() < 0.6:
            dims = ["time", *dims]
        variables[name] = (rng.choice(kinds), dims)
    return sizes, records, variables


def write(case, path, packs=False):
    """Writes a file; returns its variables as netCDF4 reads them, and what is said of them and of the file."""
    rng = case.rng
    form = rng.choice(list(FORMATS))
    # scipy writes no other letters, and of no axes what netCDF4 does not read
    ascii_only = form.startswith("scipy")
    sizes, records, variables = layout(rng, FORMATS[form], ascii_only)
    wide, said = form == "NETCDF3_64BIT_DATA", {None: {}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if form.startswith("scipy"):
            file = scipy.io.netcdf_file(path, "w", version=int(form[-1]))
            put = lambda owner, key, value: setattr(owner, key, value)
        else:
            file = netCDF4.Dataset(path, "w", format=form)
            put = lambda owner, key, value: owner.setncattr(key, value)
        if records is not None:
            file.createDimension("time", None)
        for name, size in sizes.items():
            file.createDimension(name, size)
        for key in rng.sample(["title", "history", "n"], rng.choice([0, 1, 2])):
            value, said[None][key] = random_attribute(rng, wide, ascii_only)
            put(file, key, value)
        made = {}
        for name, (kind, dims) in variables.items():
            # netCDF4 wants a fill value first
            fill = np.array(7, kind)[()] if packs and kind != "S1" and rng.random() < 0.6 else None
            given = {} if ascii_only else {"fill_value": False if fill is None else fill}
            made[name] = file.createVariable(name, kind, dims, **given)
            if ascii_only and fill is not None:
                put(made[name], "_FillValue", fill)
            said[name] = {}
            for key in rng.sample(["units", "valid", "long name"[:4], "k"], rng.choice([0, 0, 1, 3])):
                value, said[name][key] = random_attribute(rng, wide, ascii_only)
                put(made[name], key, value)
            if kind == "i1" and not packs and rng.random() < 0.2:
                put(made[name], "dtype", "bool")
                variables[name] = ("?", dims)
            if packs and kind in ("i1", "i2", "i4", "f4", "u1", "u2"):
                for key, value in [("scale_factor", rng.choice([np.float64(0.5), np.float32(0.1)])), ("add_offset", np.float64(3.25))]:
                    if rng.random() < 0.6:
                        put(made[name], key, value)
        for name, (kind, dims) in variables.items():
            shape = tuple(records if dim == "time" else sizes[dim] for dim in dims)
            data = random_data(rng, kind, shape) if kind != "?" else np.array(rng.choices([0, 1], k=int(np.prod(shape, dtype=int))), "i1").reshape(shape)
            if packs and data.dtype.kind == "f":
                data = np.array(rng.choices([7.0, 1.5, -2.0], k=data.size), kind).reshape(shape)
            if not form.startswith("scipy"):
                made[name].set_auto_maskandscale(False)
                made[name].set_auto_chartostring(False)
            if data.size:
                made[name][(slice(None),) * data.ndim if data.ndim else ...] = data
        file.close()
    case.story.append(f"{form}: {sizes}, {records} records, {variables}")
    arrays = {}
    with netCDF4.Dataset(path) as file:
        file.set_auto_maskandscale(False)
        file.set_auto_chartostring(False)
        for name, variable in file.variables.items():
            array = np.asarray(variable[...])
            if variables[name][0] == "?":
                array = array.astype(bool)
            elif array.dtype.itemsize > 1:
                array = array.astype(array.dtype.newbyteorder(">"))
            arrays[name] = array
    stream(case, path, form, records, variables, packs)
    return arrays, variables, said


def stream(case, path, form, records, variables, packs):
    """As a program writes it that does not know how many records will come."""
    if packs or not records or form == "NETCDF3_64BIT_DATA" or case.rng.random() < 0.7 or not any("time" in dims for _, dims in variables.values()):
        return
    with open(path, "r+b") as file:
        file.seek(4)
        file.write(struct.pack(">I", 2**32 - 1))
    case.story.append("the number of records is not said")


def check_info(case, name, arrays, variables, said):
    status, out, err = case.run(["info", "--json", name])
    if status or err:
        raise Failure(f"status {status}, {err!r}")
    (told,) = json.loads(out)
    found = [(it["name"], it["shape"], it.get("dimension_names", []), it.get("attributes", {})) for it in told["tensors"]]
    expected = [(key, list(array.shape), list(variables[key][1]), said[key]) for key, array in arrays.items()]
    if found != expected:
        raise Failure(f"info says {found}, expected {expected}")
    if told.get("groups", {"": {}} if not said[None] else {}).get("", {}) != said[None]:
        raise Failure(f"of the file info says {told.get('groups')}, expected {said[None]}")


def variable_case(case):
    rng = case.rng
    name = rng.choice(["s.nc", "s"])
    arrays, variables, said = write(case, case.path(name))
    check_info(case, name, arrays, variables, said)
    lists = lambda name, array: (np.save(case.path(name + ".npy"), array), f"@{name}.npy")[1]
    for key in rng.sample(sorted(arrays), min(len(arrays), 2)):
        check(case, name, key, arrays[key], lists)


def unpack_case(case):
    """Packed values, as xarray has them."""
    arrays, variables, _ = write(case, case.path("p.nc"), packs=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xarray.open_dataset(case.path("p.nc"), engine="netcdf4", decode_times=False, decode_coords=False, concat_characters=False) as file:
            expected = {name: np.asarray(file[name].values) for name in file.variables}
    for key in case.rng.sample(sorted(arrays), min(len(arrays), 2)):
        array = expected[key]
        status, _, err = case.run(["p.nc", "-t", key, "--unpack", "-o", "o.npy", "--force"])
        if status == 1 and "packed" in err or status == 2:
            # of a tensor that is not packed, --unpack is an error
            if array.tobytes() != arrays[key].astype(arrays[key].dtype.newbyteorder("=")).tobytes():
                raise Failure(f"{key}: {err!r}, expected {array}")
            continue
        if status or err:
            raise Failure(f"status {status}, {err!r}")
        check_same(np.load(case.path("o.npy")), array)


def damaged_case(case):
    rng = case.rng
    arrays, _, _ = write(case, case.path("s.nc"))
    with open(case.path("s.nc"), "rb") as file:
        data = bytearray(file.read())
    if rng.random() < 0.1:
        for end in range(0, min(len(data), 4000), 7):
            case.write("s.nc", data[:end])
            case.story = case.story[:3]
            check_damaged(case, ["info", "s.nc"])
        return
    if rng.random() < 0.3:
        data = data[:rng.randrange(len(data))]
    else:
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(min(len(data), rng.choice([60, 400, 10**6])))] = rng.choice([0, 1, 255, 127, rng.randrange(256)])
    case.write("s.nc", data)
    for key in [None, *arrays]:
        check_damaged(case, ["info", "s.nc"] if key is None else ["s.nc", "-t", key, "-o", "o.npy", "--force"])
    if os.path.exists(case.path("o.npy")):
        os.remove(case.path("o.npy"))


def usual_case(case):
    (unpack_case if case.rng.random() < 0.15 else variable_case)(case)


def one(job):
    return chunk_cases.one(job, usual_case, damaged_case, MEMORY)


def main():
    options = chunk_cases.options_of(__doc__.split("\n")[0])
    harness.begin(options)
    print("netCDF4", netCDF4.__version__, "scipy", getattr(scipy, "__version__", "is not there"), "xarray", xarray.__version__)
    return harness.run_cases("netcdf3_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
