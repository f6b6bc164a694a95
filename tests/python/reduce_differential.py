#!/usr/bin/env python3
"""Differential test: `tslice view` with `--reduce`, `--stats --axis` and tables, against NumPy.

    python tests/python/reduce_differential.py --bin target/debug/tslice --count 500 --seed 1

Every case is a random array of numbers, bfloat16 and 8-bit floats included, in either order, whole or
indexed, lists too, and random axes. Extremes, booleans, sums of integers, shapes, dtypes and errors are
NumPy's. Sums, means and deviations of floats are the exact ones, computed with fractions and rounded
once, of slices that cancel, are subnormal or lie far apart, too. Complex numbers, datetimes and lengths of time are reduced as np.* has it, or
refused where it refuses them. Nothing depends on the number of threads. A case is a function of
(seed, number): `--only NUMBER` runs one again.
"""

import io
import json
import math
import random
import sys
from fractions import Fraction

import numpy as np

import harness
import random_tensors
from cases import Case
from formats import safetensors_file
from harness import Failure
from stats_differential import number, random_array
from view_differential import SMALL, random_index

# slices of an array whose sums are hard
BLOCKS = 40
HOWS = ["min", "max", "sum", "mean", "std", "any", "all"]
BITS = {2: (11, -14, 15), 4: (24, -126, 127), 8: (53, -1022, 1023)}


def rounded(value, dtype, root=False):
    """A fraction, or its root, as the nearest float of a dtype, ties to even."""
    precision, least, top = BITS[dtype.itemsize]
    if value == 0:
        return dtype.type(0)
    negative, value = value < 0, abs(value)
    scale = 2 * (max(value.denominator.bit_length() - value.numerator.bit_length(), 0) + 80)
    scaled, rest = divmod(value.numerator << (2 * scale), value.denominator)
    if root:
        whole = math.isqrt(scaled)
        rest = rest or whole * whole != scaled
    else:
        whole, scale = scaled, 2 * scale
    power = max(whole.bit_length() - scale - precision, least - precision + 1)
    drop = power + scale
    kept, lost = whole >> drop, whole & ((1 << drop) - 1)
    half = 1 << (drop - 1)
    kept += lost > half or lost == half and (bool(rest) or kept & 1)
    if kept.bit_length() + power > top + 1:
        result = math.inf
    else:
        result = math.ldexp(kept, power)
    return dtype.type(-result if negative else result)


def exact(how, values, dtype):
    """A sum, mean or deviation of finite floats or integers."""
    terms = [Fraction(x) for x in values.tolist()]
    total, count = sum(terms, Fraction(0)), len(terms)
    if how == "sum":
        return rounded(total, dtype)
    if count == 0:
        return dtype.type(math.nan)
    if how == "mean":
        return rounded(total / count, dtype)
    return rounded(sum((x * x for x in terms), Fraction(0)) / count - (total / count) ** 2, dtype, root=True)


def expected_dtype(how, a, small):
    if not small:
        return getattr(np, how)(np.ones((1,), a.dtype)).dtype.newbyteorder("=")
    return {"min": a.dtype, "max": a.dtype, "any": np.dtype("?"), "all": np.dtype("?")}.get(how, np.dtype("f4"))


def random_input(case):
    """(file name, array, whether NumPy lacks the dtype); written."""
    rng = case.rng
    if SMALL and rng.random() < 0.2:
        code = rng.choice(list(SMALL))
        shape = small_shape(rng)
        data = random_tensors.random_bytes(rng, int(np.prod(shape)) * np.dtype(SMALL[code]).itemsize)
        if rng.random() < 0.5:
            # few NaN
            data = bytes(byte & 0x7b for byte in data)
        a, name = np.frombuffer(data, SMALL[code]).reshape(shape), "a.safetensors"
        case.write(name, safetensors_file({"x": (code, shape, data)}))
        case.story.append(f"array: {a.dtype!r} {a.shape}")
        return name, a, True
    a = random_array(rng)
    if a.size > 600 or rng.random() < 0.5:
        shape = small_shape(rng)
        a = np.resize(a.reshape(-1), shape) if a.size else np.zeros(shape, a.dtype)
    a = np.array(a, order=rng.choice("CFF")) if a.ndim else a
    if a.ndim > 2 and rng.random() < 0.3:
        a = np.ascontiguousarray(a.transpose(rng.sample(range(a.ndim), a.ndim)))
    out = io.BytesIO()
    np.save(out, a)
    case.write("a.npy", out.getvalue())
    case.story.append(f"array: {a.dtype!r} {a.shape} {'F' if a.flags.fnc else 'C'}")
    return "a.npy", a, False


def small_shape(rng):
    while True:
        shape = tuple(rng.choice([0, 1, 2, 3, 3, 4, 5, 7, 17]) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, 3, 4])))
        if math.prod(shape) <= 600:
            return shape


def with_lists(rng, shape):
    items = []
    for length in shape[: rng.randrange(1, len(shape) + 1)]:
        if length and rng.random() < 0.6:
            items.append(str([rng.randrange(-length, length) for _ in range(2)]))
        else:
            items.append(rng.choice([":", "::-1", "1:", "..."] if "..." not in items else [":", "::2"]))
    return "[" + ", ".join(items) + "]"


def random_axes(rng, ndim):
    """What NumPy takes, and what the program does; None where it is left out."""
    if rng.random() < 0.15:
        return None
    if rng.random() < 0.06:
        return tuple(rng.randrange(-ndim - 1, ndim + 2) for _ in range(rng.randrange(1, 3)))
    count = rng.randrange(1, ndim + 1) if ndim else rng.randrange(0, 2)
    axes = rng.sample(range(ndim), count) if ndim else [0] * count
    return tuple(axis - max(ndim, 1) if rng.random() < 0.4 else axis for axis in axes)


def as_numpy(axes):
    """A single axis is a number: arrays without axes have a first one for NumPy then."""
    return axes[0] if axes is not None and len(axes) == 1 else axes


def select(case, a):
    rng, args = case.rng, []
    if rng.random() < 0.5 and a.ndim:
        index = with_lists(rng, a.shape) if rng.random() < 0.5 else random_index(rng, a.shape)
        try:
            taken = np.asarray(eval("a" + index)) if index != "[]" else a
        except IndexError:
            return args, a
        args.append(index)
        a = taken
    if rng.random() < 0.1:
        args.append("-T")
        a = a.T
    return args, a


def axis_argument(axes):
    return [] if axes is None else ["--axis=" + ",".join(map(str, axes))]


def options(rng):
    chosen = []
    if rng.random() < 0.5:
        chosen += ["-j", rng.choice("1234")]
    if rng.random() < 0.3:
        chosen += ["--io", rng.choice(["mmap", "read"])]
    return chosen


def reduce_case(case):
    rng = case.rng
    name, a, small = random_input(case)
    selected, a = select(case, a)
    axes, how = random_axes(rng, a.ndim), rng.choice(HOWS)
    # the flag is for integers of the index, too
    keepdims = rng.random() < 0.3 and not selected
    wide = a.astype("f8") if small else a
    out = rng.choice(["r.npy", "r.npy", "r.safetensors", "r.safetensors", "r.npz", "-"])
    args = ["view", name, *selected, "--reduce", how, *axis_argument(axes), "-o", out, *options(rng)]
    in_order, as_name = rng.choice(["C", "F", None, None]), rng.choice(["r", None])
    if in_order and out != "r.safetensors":
        args += ["--order", in_order]
    if out == "-" and rng.random() < 0.5:
        args += ["--to", "npy"]
    if as_name and out not in ("r.npy", "-"):
        args += ["--name", as_name]
    if out == "r.npz" and rng.random() < 0.5:
        args.append("--deflate")
    status, printed, err = case.run(args + ["--keepdims"] * keepdims)
    try:
        reference = getattr(np, how)(wide, axis=as_numpy(axes), keepdims=keepdims)
    except ValueError as error:
        case.check_error(status, err, [1], str(error))
        return
    dtype = expected_dtype(how, a, small)
    if out == "r.safetensors":
        with open(case.path(out), "rb") as file:
            data = file.read()
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        (key, told), = ((key, told) for key, told in header.items() if key != "__metadata__")
        codes = {**{np.dtype(value): code for code, value in SMALL.items()},
                 **{np.dtype(code): told for code, told in [
                     ("?", "BOOL"), ("i1", "I8"), ("u1", "U8"), ("i2", "I16"), ("u2", "U16"), ("i4", "I32"), ("u4", "U32"),
                     ("i8", "I64"), ("u8", "U64"), ("f2", "F16"), ("f4", "F32"), ("f8", "F64")]}}
        if told["dtype"] != codes[dtype]:
            raise Failure(f"expected dtype {dtype}: {told}")
        found = np.frombuffer(data[8 + int.from_bytes(data[:8], "little"):], dtype).reshape(told["shape"])
        if as_name and key != as_name:
            raise Failure(f"expected the name {as_name}: {key}")
    else:
        if out == "-":
            found, printed = np.load(io.BytesIO(printed)), b""
        elif out == "r.npz":
            (key, found), = np.load(case.path(out)).items()
            if as_name and key != as_name:
                raise Failure(f"expected the name {as_name}: {key}")
        else:
            found = np.load(case.path(out))
        if in_order and found.ndim > 1 and found.size and not found.flags["F_CONTIGUOUS" if in_order == "F" else "C_CONTIGUOUS"]:
            raise Failure(f"expected order {in_order}")
        if small and how in ("min", "max"):
            found = found.view(dtype)
        if found.dtype != dtype:
            raise Failure(f"expected dtype {dtype}: {found.dtype}")
    if status != 0 or printed or err:
        raise Failure("it should have worked")
    if found.shape != reference.shape:
        raise Failure(f"expected shape {reference.shape}: {found.shape}")
    check_values(how, wide, axes, found, reference, dtype)


def check_values(how, wide, axes, found, reference, dtype):
    floats = wide.dtype.kind == "f"
    if how in ("min", "max", "any", "all") or how == "sum" and not floats:
        same = np.asarray(found, reference.dtype) if found.dtype.kind not in "?biu" else found
        if not np.array_equal(same, reference, equal_nan=floats and how in ("min", "max")):
            raise Failure(f"expected {reference!r}: {found!r}")
        return
    axes = tuple(range(wide.ndim)) if axes is None else tuple(axis % max(wide.ndim, 1) for axis in axes if wide.ndim)
    staying = [axis for axis in range(wide.ndim) if axis not in axes]
    slices = wide.transpose(staying + list(axes)).reshape(-1 if found.size else 0, math.prod(wide.shape[axis] for axis in axes)) \
        if found.size and math.prod(wide.shape[axis] for axis in axes) else [wide[:0].reshape(-1)] * found.size
    for told, values in zip(found.reshape(-1), slices):
        if floats and not np.isfinite(values).all():
            with np.errstate(all="ignore"):
                want = dtype.type(getattr(np, how)(np.where(np.isfinite(values), 0.0, values)))
        else:
            want = exact(how, values, dtype)
        if not (told == want or np.isnan(told) and np.isnan(want)):
            raise Failure(f"expected {want!r}, found {told!r}, of {values!r}")


def random_other(rng):
    """Complex numbers, with what is special now and then, or times, with NaT."""
    shape = small_shape(rng)
    count = math.prod(shape)
    if rng.random() < 0.5:
        dtype = np.dtype(rng.choice("<>") + rng.choice(["c8", "c16"]))
        part = np.dtype("f4" if dtype.itemsize == 8 else "f8")
        if rng.random() < 0.3:
            parts = np.frombuffer(random_tensors.random_bytes(rng, 2 * count * part.itemsize), part).copy()
        else:
            parts = np.array([rng.choice([0, -0.0, 1, -1, 2, rng.gauss(0, 9), rng.gauss(0, 1e30)]) for _ in range(2 * count)], part)
        if rng.random() < 0.6:
            parts[~np.isfinite(parts)] = 3
        for _ in range(rng.choice([0, 0, 0, 1, 2, 5]) if count else 0):
            parts[rng.randrange(2 * count)] = rng.choice([math.nan, math.inf, -math.inf])
        flat = parts.view(part.str.replace("f4", "c8").replace("f8", "c16")).astype(dtype)
    else:
        dtype = np.dtype(rng.choice("<>") + rng.choice("Mm") + "8[" + rng.choice(["s", "D", "25ns", "Y"]) + "]")
        most = rng.choice([3, 1000, 1 << 40, (1 << 62) - 1])
        values = [rng.randint(-most, most) for _ in range(count)]
        if rng.random() < 0.4:
            values = [np.iinfo("i8").min if rng.random() < 0.1 else value for value in values]
        flat = np.array(values, "i8").view(dtype.newbyteorder("=")).astype(dtype)
    a = flat.reshape(shape)
    return np.array(a, order=rng.choice("CF")) if a.ndim else a


def other_case(case):
    rng = case.rng
    a, out = random_other(rng), io.BytesIO()
    np.save(out, a)
    case.write("a.npy", out.getvalue())
    case.story.append(f"array: {a.dtype!r} {a.shape}")
    selected, a = select(case, a)
    axes, how = random_axes(rng, a.ndim), rng.choice(HOWS)
    args = ["view", "a.npy", *selected, "--reduce", how, *axis_argument(axes), "-o", "r.npy", *options(rng)]
    status, printed, err = case.run(args)
    try:
        with np.errstate(all="ignore"):
            reference = np.asarray(getattr(np, how)(a, axis=as_numpy(axes)))
    except ValueError as error:
        # what is refused for its dtype need not be refused for its axes
        case.check_error(status, err, [1], None if how in ("sum", "mean", "std") else str(error))
        return
    except TypeError:
        case.check_error(status, err, [1], "is not supported for dtype")
        return
    if status != 0 or printed or err:
        raise Failure("it should have worked")
    found = np.load(case.path("r.npy"))
    if (found.dtype, found.shape) != (reference.dtype.newbyteorder("="), reference.shape):
        raise Failure(f"expected {reference.dtype} {reference.shape}: {found.dtype} {found.shape}")
    if a.dtype.kind in "mM" or how in ("any", "all"):
        if found.tobytes() != reference.astype(found.dtype).tobytes():
            raise Failure(f"expected {reference!r}: {found!r}")
        return
    if how in ("min", "max"):
        if not np.array_equal(found, reference, equal_nan=True):
            raise Failure(f"expected {reference!r}: {found!r}")
        return
    axes = tuple(range(a.ndim)) if axes is None else tuple(axis % max(a.ndim, 1) for axis in axes if a.ndim)
    staying = [axis for axis in range(a.ndim) if axis not in axes]
    length = math.prod(a.shape[axis] for axis in axes)
    slices = a.transpose(staying + list(axes)).reshape(-1, length) if found.size and length else [a.reshape(-1)[:0]] * found.size
    part = np.dtype("f4" if a.dtype.itemsize == 8 else "f8")
    for told, values in zip(found.reshape(-1), slices):
        parts = [values.real, values.imag]
        special = not all(np.isfinite(p).all() for p in parts)
        if how == "std":
            terms = [Fraction(x) for p in parts for x in (p.tolist() if not special else [])]
            squares = sum((x * x for x in terms), Fraction(0))
            sums = [sum((Fraction(x) for x in p.tolist()), Fraction(0)) for p in parts] if not special else []
            n = len(values)
            want = [part.type(math.nan) if special or not n else rounded(
                squares / n - sum((s / n) ** 2 for s in sums), part, root=True)]
            got = [told]
        elif special:
            with np.errstate(all="ignore"):
                # infinities and NaN alone: what is finite beside them may be anything
                only = [np.where(np.isfinite(p), 0.0, p) for p in parts]
                value = np.empty(len(values), "c16")
                value.real, value.imag = only
                value = getattr(np, how)(value)
                want = [w if not np.isfinite(w) else exact(how, p, part) for w, p in zip((value.real, value.imag), parts)]
            got = [told.real, told.imag]
        else:
            want, got = [exact(how, p, part) for p in parts], [told.real, told.imag]
        if not all(g == w or np.isnan(g) and np.isnan(w) for g, w in zip(got, want)):
            raise Failure(f"expected {want!r}, found {told!r}, of {values!r}")


def rows_case(case):
    rng = case.rng
    name, a, small = random_input(case)
    selected, a = select(case, a)
    axes = random_axes(rng, a.ndim) or (0,)
    asked = ["view", name, *selected, "--stats", *axis_argument(axes), "--json"]
    status, out, err = case.run(asked + options(rng))
    try:
        np.sum(a.astype("f8"), axis=as_numpy(axes))
    except ValueError as error:
        case.check_error(status, err, [1], str(error))
        return
    if status != 0 or err:
        raise Failure("it should have worked")
    rows = [json.loads(line) for line in out.decode().splitlines()]
    axes = [axis % max(a.ndim, 1) for axis in axes if a.ndim]
    staying = [axis for axis in range(a.ndim) if axis not in axes]
    positions = list(np.ndindex(*(a.shape[axis] for axis in staying)))
    if [tuple(row["position"]) for row in rows] != positions:
        raise Failure(f"expected rows {positions}")
    is_float = a.dtype.kind not in "iub"
    wide = a.astype("f8") if is_float else a
    for row, position in zip(rows, positions):
        index = [slice(None)] * a.ndim
        for axis, at in zip(staying, position):
            index[axis] = slice(at, at + 1)
        part = wide[tuple(index)]
        nan, inf = (np.isnan(part), np.isinf(part)) if is_float else (np.zeros(part.shape, bool),) * 2
        counts = {"count": part.size, "nan": int(nan.sum()), "infinite": int(inf.sum()), "zero": int((part == 0).sum())}
        for key, value in counts.items():
            if row[key] != value:
                raise Failure(f"expected {key} {value}: {row}")
        values = part[~nan]
        for key, best in (("min", np.min), ("max", np.max)):
            if not values.size:
                if row[key] is not None:
                    raise Failure(f"there is no {key}: {row}")
                continue
            first = np.argwhere(part == best(values))[0]
            place = [int(at) + (index[axis].start or 0) for axis, at in enumerate(first)]
            told = number(row[key]["value"])
            same = np.array(told, a.dtype) == np.array(best(values), a.dtype) if is_float else told == int(best(values))
            if row[key]["position"] != place or not same:
                raise Failure(f"expected {key} {best(values)} at {place}: {row}")
        finite = part[~nan & ~inf]
        for key in ("mean", "std"):
            want = exact(key, finite, np.dtype("f8")) if finite.size else None
            if row[key] != want:
                raise Failure(f"expected {key} {want!r}: {row}")


def table_case(case):
    rng = case.rng
    tensors = {}
    for number_of in range(rng.randrange(2, 6)):
        values = np.array([rng.choice([0, 1, -2, 3.5, math.nan, math.inf, -math.inf]) for _ in range(rng.randrange(0, 6))], "f4")
        tensors[f"t{rng.randrange(100)}.{number_of}"] = values
    case.write("m.safetensors", safetensors_file({k: ("F32", v.shape, v.tobytes()) for k, v in tensors.items()}))
    columns = rng.sample(["name", "nan", "inf", "zero", "min", "max", "mean", "std"], rng.randrange(0, 3))
    faults = rng.sample(["nan", "inf", "zero"], rng.randrange(0, 3))
    args = ["view", "m.safetensors", "-t", "*", "--stats"]
    args += ["--sort", ",".join(columns)] if columns else []
    args += ["--fail-on", ",".join(faults)] if faults else []
    as_json = rng.random() < 0.5
    status, out, err = case.run(args + ["--json"] * as_json + options(rng))
    known = {}
    for key, v in tensors.items():
        finite, told = v[np.isfinite(v)].astype("f8"), v[~np.isnan(v)]
        known[key] = {"nan": int(np.isnan(v).sum()), "inf": int(np.isinf(v).sum()), "zero": int((v == 0).sum()),
                      "min": told.min() if told.size else None, "max": told.max() if told.size else None,
                      "mean": exact("mean", finite, np.dtype("f8")) if finite.size else None,
                      "std": exact("std", finite, np.dtype("f8")) if finite.size else None}
    order = list(tensors)
    for column in reversed(columns):
        if column == "name":
            order.sort()
        else:
            order.sort(key=lambda key: -math.inf if known[key][column] is None else known[key][column], reverse=True)
            order.sort(key=lambda key: known[key][column] is None)
    lines = out.decode().splitlines()
    found = [json.loads(line)["name"] for line in lines] if as_json else [line.split()[0] for line in lines[1:]]
    if found != order:
        raise Failure(f"expected {order}: {found}")
    bad = [key for key in tensors if any(known[key][fault] for fault in faults)]
    if status != (1 if bad else 0) or bool(err) != bool(bad):
        raise Failure(f"expected these to be bad: {bad}")
    if bad and as_json:
        err = "tslice: " + json.loads(err)["error"]
    named = [part.split()[0] for part in err.removeprefix("tslice: m.safetensors: ").split("; ")] if bad else []
    if named != bad:
        raise Failure(f"expected {bad} to be named: {named}")


def special_block(rng, dtype, count):
    """Elements that a sum of doubles would get wrong: they cancel, are subnormal, or lie far apart."""
    size = dtype.itemsize
    random_codes = np.frombuffer(random_tensors.random_bytes(rng, count * size), f"u{size}").copy()
    if dtype.kind in "iu":
        ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
        kind = rng.choice(["any", "ends", "few"])
        return {"any": random_codes.view(dtype), "ends": ends[random_codes % 2], "few": (random_codes % 7).astype(dtype)}[kind]
    sign = 1 << (8 * size - 1)
    kind = rng.choice(["any", "cancel", "subnormal", "mixed", "near", "nan", "zeros", "infinite"])
    if kind == "nan":
        return np.full(count, math.nan, dtype)
    if kind == "zeros":
        return np.where(random_codes & 1, 0.0, -0.0).astype(dtype)
    if kind == "subnormal":
        # the lowest bits alone
        return (random_codes & (sign | 3)).view(dtype)
    if kind == "near":
        return (1 + (random_codes % 64).astype("f8") / 64).astype(dtype)
    values = random_codes.view(dtype).copy()
    with np.errstate(invalid="ignore"):
        values[~np.isfinite(values.astype("f8"))] = 1
    if kind == "cancel":
        half = count // 2
        values[half : 2 * half] = -values[:half]
        rng.shuffle(values)
    if kind == "mixed":
        values[:: rng.choice([2, 9, 300])] = np.array(1, dtype)
    if kind == "infinite":
        values[rng.randrange(count)] = rng.choice([math.inf, -math.inf])
    return values


def blocks_case(case):
    """Slices of a thousand elements along either axis: exact, whatever the number of threads."""
    rng = case.rng
    code = rng.choice(["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", *SMALL])
    small = code in SMALL
    dtype = np.dtype(SMALL[code]) if small else np.dtype(rng.choice("<>") + code)
    count, axis = rng.choice([1000, 1024, 1025, 2100]), rng.choice([0, 1])
    blocks = [special_block(rng, dtype.newbyteorder("="), count) for _ in range(BLOCKS)]
    a = np.ascontiguousarray(np.stack(blocks, 1 - axis).astype(dtype))
    case.story.append(f"array: {dtype!r} {a.shape} along {axis}")
    if small:
        name = "a.safetensors"
        case.write(name, safetensors_file({"x": (code, a.shape, a.tobytes())}))
    else:
        name, out = "a.npy", io.BytesIO()
        np.save(out, a)
        case.write(name, out.getvalue())
    wide = a.astype("f8") if small else a
    for how in HOWS:
        found = []
        for threads in "1237":
            out = f"{how}{threads}.npy"
            status, printed, err = case.run(["view", name, "--reduce", how, f"--axis={axis}", "-o", out, "-j", threads])
            if status != 0 or printed or err:
                raise Failure("it should have worked")
            with open(case.path(out), "rb") as file:
                found.append(file.read())
        if len(set(found)) > 1:
            raise Failure(f"{how} depends on the number of threads")
        result = np.load(case.path(out))
        result = result.view(expected_dtype(how, a, small)) if small and how in ("min", "max") else result
        with np.errstate(all="ignore"):
            reference = getattr(np, how)(wide, axis=axis)
        check_values(how, wide, (axis,), result, reference, expected_dtype(how, a, small))


def maps_case(case):
    """Maps of more columns than memory has room for at a time: rows are added to rows of the last axis."""
    rng = case.rng
    dtype = np.dtype(rng.choice("<>") + rng.choice(["u1", "i2", "i4", "f4", "f8"]))
    axis, shape = rng.choice([0, 1]), [rng.randint(250, 400) for _ in range(2)]
    shape.insert(axis, rng.randint(16, 20))
    numbers = np.random.default_rng(rng.getrandbits(32))
    a = (numbers.standard_normal(shape) * 100).astype(dtype)
    if dtype.kind == "f":
        a.reshape(-1)[:: rng.choice([7, 99991])] = rng.choice([np.nan, np.inf, 1e30])
    np.save(case.path("a.npy"), np.asarray(a, order=rng.choice("CF")))
    case.story.append(f"array: {dtype!r} {a.shape} along {axis}")
    how = rng.choice(["min", "max", "sum", "mean", "std"])
    status, printed, err = case.run(["view", "a.npy", "--reduce", how, f"--axis={axis}", "-o", "r.npy", *options(rng)])
    if status != 0 or printed or err:
        raise Failure("it should have worked")
    with np.errstate(all="ignore"):
        reference = getattr(np, how)(a.astype("f8"), axis=axis)
    found = np.load(case.path("r.npy"))
    if found.shape != reference.shape:
        raise Failure(f"expected shape {reference.shape}: {found.shape}")
    largest = np.abs(a[np.isfinite(a)].astype("f8")).max()
    if not np.allclose(found.astype("f8"), reference, rtol=1e-5, atol=1e-5 * largest, equal_nan=True):
        raise Failure(f"expected {reference}")


def run(case):
    kinds = [reduce_case, other_case, rows_case, table_case, blocks_case, maps_case]
    case.rng.choices(kinds, [70, 30, 20, 10, 5, 3])[0](case)


def one(job):
    options, number = job
    case = Case(random.Random(f"reduce {options.seed} {number}"))
    return harness.run_case(case, run, number, options.keep)


def main():
    options = harness.case_parser(__doc__.splitlines()[0], 500).parse_args()
    harness.begin(options)
    sys.exit(harness.run_cases("reduce_differential", options, one, random_tensors.start_worker))


if __name__ == "__main__":
    main()
