#!/usr/bin/env python3
"""Differential test: axes by the names of dimensions, against xarray.

    python tests/python/names_differential.py --bin target/debug/tslice --count 500 --seed 1

The program must be built with the features `hdf5` and `zarr`, and xarray, netCDF4 and zarr be there. Every case is a
random data set with coordinates, written as netCDF 4, Zarr 2 or Zarr 3, and a job that names dimensions: a transpose
behind an index, a reduction, a gather, a split, a join of several files, an index whose items have names, of one variable
or of the whole data set (`--cuts`: these alone), against isel. `--only NUMBER` runs one again.
"""

import json
import random
import sys
import warnings

import numpy as np
import xarray

import harness
from cases import Case
from chunk_cases import check_same, simple, spelled
from harness import Failure

FORMATS = ["netcdf", "zarr2", "zarr3"]
NAMES = ["time", "lat", "lon", "level"]


def random_data(rng, sizes, start):
    """Variables over some dimensions each, `time` from `start` on; the others are the same in every file."""
    fixed = np.random.default_rng(7)
    fresh = np.random.default_rng(rng.randrange(1 << 30))
    variables = {}
    for number, dims in enumerate(rng.dims):
        source = fresh if "time" in dims else fixed
        values = source.integers(-100, 100, [sizes[name] for name in dims])
        variables[f"v{number}"] = (dims, values.astype(rng.dtypes[number]))
    coordinates = {name: np.arange(size, dtype="f8") + (start if name == "time" else 0) for name, size in sizes.items()}
    return xarray.Dataset(variables, coordinates)


class Shapes(random.Random):
    """A generator that has chosen which dimensions the variables have."""

    def choose(self):
        self.sizes = {name: self.randint(1, 5) for name in NAMES}
        self.dims = [self.sample(NAMES, self.randint(1, 4)) for _ in range(self.randint(1, 4))]
        self.dtypes = [self.choice(["i2", "i4", "f4", "f8"]) for _ in self.dims]
        used = {name for dims in self.dims for name in dims}
        self.sizes = {name: size for name, size in self.sizes.items() if name in used}


def write(data, path, kind):
    plain = {name: {"_FillValue": None} for name in data.variables}
    if kind == "netcdf":
        data.to_netcdf(path, engine="netcdf4", encoding=plain)
    else:
        data.to_zarr(path, zarr_format=int(kind[-1]), consolidated=False)


def run(case, line):
    line = [str(word) for word in line]
    status, out, err = case.run(line)
    if status or err:
        raise Failure(f"status {status}, {err!r}")
    return out


def made(case):
    return np.load(case.path("o.npy"))


def transposed(case, data, name):
    """A transpose of what an index leaves, whose integers drop their dimensions."""
    rng, array = case.rng, data[name]
    items = simple(rng, array.shape)
    plain = all(isinstance(it, (int, np.integer, slice)) or it is Ellipsis for it in items)
    line = [case.path("s"), "-t", name]
    if plain:
        line.insert(1, "[" + ", ".join(map(spelled, items)) + "]")
        array = array[tuple(items)]
    order = rng.sample(array.dims, array.ndim)
    if order:
        line += ["--transpose", ",".join(order)]
    run(case, [*line, "-o", "o.npy"])
    check_same(made(case), array.transpose(*order).values)


def reduced(case, data, name):
    rng, array = case.rng, data[name]
    dims = rng.sample(array.dims, rng.randint(1, array.ndim))
    how = rng.choice(["max", "min", "sum", "mean"])
    run(case, ["view", case.path("s"), "-t", name, "--reduce", how, "--axis", ",".join(dims), "-o", "o.npy"])
    expected = getattr(array.astype("f8"), how)(dims).values
    if not np.allclose(made(case), expected, rtol=1e-6):
        raise Failure(f"{made(case)}, not {expected}")


def gathered(case, data, name):
    rng, array = case.rng, data[name]
    dim = rng.choice(array.dims)
    where = [rng.randrange(array.sizes[dim]) for _ in range(rng.randint(1, 5))]
    run(case, ["gather", case.path("s"), "-t", name, "--axis", dim, "--indices", json.dumps(where), "-o", "o.npy"])
    check_same(made(case), array.isel({dim: where}).values)


def cut(case, data, name):
    rng, array = case.rng, data[name]
    dim = rng.choice(array.dims)
    at = rng.randint(0, array.sizes[dim])
    run(case, ["split", case.path("s"), "-t", name, "--axis", dim, "--at", at, "-o", "o{}.npy"])
    for number, part in enumerate([slice(None, at), slice(at, None)]):
        check_same(np.load(case.path(f"o{number}.npy")), array.isel({dim: part}).values)


def missing(case, data, name):
    absent = next((it for it in [*NAMES, "depth"] if it not in data[name].dims), None)
    status, _, err = case.run([case.path("s"), "-t", name, "--transpose", ",".join([absent] * data[name].ndim), "-o", "o.npy"])
    listed = ", ".join(data[name].dims)
    if status != 1 or f'no dimension is named "{absent}": there are {listed}' not in err:
        raise Failure(f"status {status}, {err!r}")


def joined(case, data, name):
    """Files of which the time goes on: all variables that have it are joined, coordinates among them."""
    rng = case.rng
    if "time" not in rng.sizes:
        return None
    files, parts, start = [], [], 0
    for number in range(rng.randint(1, 3)):
        sizes = {**rng.sizes, "time": rng.randint(1, 4)}
        parts.append(random_data(rng, sizes, start))
        start += sizes["time"]
        files.append(case.path(f"j{number}"))
        write(parts[-1], files[-1], rng.kind)
    run(case, ["concat", *files, "--axis", "time", "-o", "o.zarr"])
    expected = xarray.concat(parts, "time", data_vars="minimal", coords="minimal", compat="override", join="override")
    with xarray.open_zarr(case.path("o.zarr"), consolidated=False, mask_and_scale=False) as found:
        xarray.testing.assert_equal(found.load(), expected)


def item(case, number, length):
    """What isel takes, and how it is spelled."""
    rng = case.rng
    kind = rng.choice(["slice", "slice", "integer", "list", "file", "mask", "compared"])
    if kind == "integer":
        at = rng.randrange(-length, length)
        return at, str(at)
    if kind == "list":
        where = [rng.randrange(-length, length) for _ in range(rng.randint(1, 4))]
        return where, str(where)
    if kind == "file":
        where = np.array([rng.randrange(-length, length) for _ in range(rng.randint(1, 4))])
        np.save(case.path(f"list{number}.npy"), where)
        return where, f"@list{number}.npy"
    if kind in ("mask", "compared"):
        labels = np.array([rng.randrange(2) for _ in range(length)])
        np.save(case.path(f"list{number}.npy"), labels == 1 if kind == "mask" else labels)
        return labels == 1, f"@list{number}.npy" + ("" if kind == "mask" else "==1")
    bound = lambda: rng.choice([None, rng.randint(-length - 1, length + 1)])
    where = slice(bound(), bound(), rng.choice([None, None, 1, 2, -1]))
    return where, ":".join("" if it is None else str(it) for it in (where.start, where.stop, where.step))


def named(case, data, name):
    """An index whose items have names."""
    rng = case.rng
    whole = rng.random() < 0.7
    sizes = dict(data.sizes if whole else data[name].sizes)
    dims = rng.sample(list(sizes), rng.randint(1, len(sizes)))
    items = {dim: item(case, number, sizes[dim]) for number, dim in enumerate(dims)}
    blank = rng.choice(["", "", " "])
    text = "[" + ", ".join(f"{dim}{blank}={blank}{items[dim][1]}" for dim in dims) + "]"
    taken = {dim: where for dim, (where, _) in items.items()}
    if not whole:
        run(case, [case.path("s"), "-t", name, text, "-o", "o.npy"])
        return check_same(made(case), data[name].isel(taken).values)
    run(case, [case.path("s"), text, "-o", "o.zarr"])
    with xarray.open_zarr(case.path("o.zarr"), consolidated=False, mask_and_scale=False) as found:
        expected = data.isel(taken)
        # what has no dimension of its name is a variable like others in a file
        xarray.testing.assert_equal(found.load().reset_coords(), expected.reset_coords())
    status, _, err = case.run([case.path("s"), text[:-1] + ", depth=0]", "-o", "x.zarr"])
    if status != 1 or 'no dimension is named "depth"' not in err:
        raise Failure(f"status {status}, {err!r}")


WAYS = [named, named, transposed, transposed, reduced, gathered, cut, missing, joined, joined]


def usual_case(case):
    rng = case.rng
    rng.choose()
    rng.kind = rng.choice(FORMATS)
    data = random_data(rng, rng.sizes, 0)
    write(data, case.path("s"), rng.kind)
    try:
        return (named if rng.cuts else rng.choice(WAYS))(case, data, rng.choice(list(data.data_vars)))
    except AssertionError as error:
        raise Failure(str(error)) from error


def one(job):
    options, number = job
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = Case(Shapes(f"{options.seed} {number}"))
        case.rng.cuts = options.cuts
        return harness.run_case(case, usual_case, number, options.keep)


def main():
    parser = harness.case_parser(__doc__.split("\n")[0], 500)
    parser.add_argument("--cuts", action="store_true", help="indices whose items have names alone")
    options = parser.parse_args()
    harness.begin(options)
    print("xarray", xarray.__version__)
    return harness.run_cases("names_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
