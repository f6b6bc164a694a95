#!/usr/bin/env python3
"""Differential test: `--cast` against NumPy's astype with ml_dtypes.

    python tests/python/cast_differential.py --bin target/debug/tslice --values 20000 --seed 1

Casts of every pair of dtypes: all values of 8 and 16 bits, and as many random bit patterns of the
others, with those near which rounding and overflow change; compared bit by bit, NaN payloads aside.
Then np.can_cast for every pair and rule, strings to other lengths, datetimes to other units, and random casts with an index, an order, a pipe, a gather,
an assignment or a scatter. Needs Python 3.10, NumPy 2, ml_dtypes.
"""

import concurrent.futures
import io
import itertools
import json
import math
import multiprocessing
import os
import random
import sys
import tempfile
import time
import warnings

import ml_dtypes
import numpy as np

import cast_reference as reference
import harness
from formats import read_safetensors, safetensors_file
from harness import Tally

NAMES = reference.NATIVE + reference.ML
WINE = False
CODES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "int64": "I64",
         "float8_e5m2": "F8_E5M2", "float64": "F64", "uint8": "U8"}


def tslice(*args, **options):
    """Runs tslice; under wine once more where the exit status was lost, as every run here may be repeated."""
    run = harness.tslice(*args, **options)
    if WINE and (run.returncode in (-9, -11) or run.returncode == 1 and not run.stderr):
        print(f"once more, status {run.returncode}: {args}", flush=True)
        run = harness.tslice(*args, **options)
    return run


def numbers(rng, name, count):
    """Numbers of a type: all of them, or many."""
    dtype = reference.dtype_of(name)
    size = dtype.itemsize
    if name == "bool":
        return np.array([False, True] * 40)
    if size <= 2:
        return np.arange(256**size, dtype=f"u{size}").view(dtype)
    if name.startswith("complex"):
        part = numbers(rng, "float32" if size == 8 else "float64", count)
        return np.stack([part, np.roll(part, 7)], -1).reshape(-1).view(dtype)
    patterns = np.frombuffer(rng.randbytes(count * size), f"u{size}")
    if dtype.kind in "iu":
        # also integers of fewer bits, and those beside powers of two
        fewer = patterns >> np.array(rng.choices(range(size * 8), k=count), patterns.dtype)
        near = [(1 << bits) + off for bits in range(size * 8) for off in (-1, 0, 1)]
        near = np.array([n % (1 << size * 8) for n in near], f"u{size}")
        return np.concatenate([patterns, fewer, near, -near]).view(dtype)
    # also numbers of usual size, and those at and beside the ties of smaller types
    usual = np.array([rng.gauss(0, 1) * 2.0 ** rng.randint(-30, 30) for _ in range(count)], dtype)
    ties = []
    for bits, _ in itertools.product((1, 2, 3, 7, 10, 23), range(count // 20)):
        mantissa = rng.randrange(1 << bits, 2 << bits) + 0.5
        ties.append(rng.choice([-1, 1]) * mantissa * 2.0 ** rng.randint(-150, 130))
    with np.errstate(all="ignore"):
        ties = np.array(ties, dtype)
    beside = [np.nextafter(ties, dtype.type(end)) for end in (-np.inf, np.inf)]
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 464, 480, 240, 57344, 61440, 65504, 65519, 65520, 2.0**-127,
            2.0**-128, 2.0**-126, 127, 128, 255, 256, 2.0**31, 2.0**32, 2.0**63, 2.0**64, -2.0**63, -1, 0.5, 1.5]
    return np.concatenate([patterns.view(dtype), usual, ties, *beside, np.array(ends, dtype)])


def spelled(rng, name):
    """A dtype with a byte order, as --dtype and --cast take it."""
    dtype = reference.dtype_of(name)
    if name in reference.NATIVE and dtype.itemsize > 1 and rng.random() < 0.5:
        return dtype.newbyteorder(">").str, dtype.newbyteorder(">")
    return name, dtype


def check_pair(tally, rng, values, name, to):
    ours, stored = spelled(rng, name)
    theirs, target = spelled(rng, to)
    with open("in.bin", "wb") as file:
        file.write(values.astype(stored).tobytes() if name in reference.NATIVE else values.tobytes())
    run = tslice("in.bin", "--dtype", ours, "--cast", theirs, "--casting", "unsafe", "-o", "out.bin", "-f")
    title = f"{ours} to {theirs}"
    if run.returncode or run.stderr:
        tally.check(title, False, f"status {run.returncode}, {run.stderr.decode()!r}")
        return
    found = np.fromfile("out.bin", f"V{target.itemsize}").view(target)
    if to in reference.NATIVE:
        found = found.astype(reference.dtype_of(to))
    expected = reference.cast(values, reference.dtype_of(to))
    if found.shape != expected.shape:
        tally.check(title, False, f"{found.shape} for {expected.shape}")
        return
    wrong = reference.same_bits(found, expected, signs=name in reference.ML)
    places = wrong[:3] // (2 if reference.dtype_of(to).kind == "c" else 1)
    shown = [f"{values[at]!r} gives {found[at]!r}, not {expected[at]!r}" for at in places]
    tally.check(title, not len(wrong), f"{len(wrong)} of {len(values)} differ: " + "; ".join(shown))


def check_pairs(tally, options):
    for name in NAMES:
        rng = random.Random(f"{options.seed} {name}")
        values = numbers(rng, name, options.values)
        for to in NAMES:
            check_pair(tally, rng, values, name, to)


def check_nibbles(tally, options):
    """float4_e2m1fn, two numbers in a byte, the first in the low bits, to every other dtype."""
    packed = np.frombuffer(random.Random(options.seed).randbytes(4096), "u1")
    codes = np.stack([packed & 15, packed >> 4], -1).reshape(64, 128)
    values = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    with open("nibbles.safetensors", "wb") as file:
        file.write(safetensors_file({"w": ("F4", [64, 128], packed.tobytes())}))
    for to in NAMES:
        theirs = reference.dtype_of(to)
        for index, expected in (("...", values), ("3:60:7, 2:-4", values[3:60:7, 2:-4]), ("[[5, 2]]", values[[5, 2]])):
            run = tslice("nibbles.safetensors", index, "--cast", to, "--casting", "unsafe", "-o", "out.bin", "-f",
                                 "-t", "w")
            title = f"float4_e2m1fn[{index}] to {to}"
            if run.returncode or run.stderr:
                tally.check(title, False, f"status {run.returncode}, {run.stderr.decode()!r}")
                continue
            found = np.fromfile("out.bin", f"V{theirs.itemsize}").view(theirs)
            expected = reference.cast(np.ascontiguousarray(expected).ravel(), theirs)
            wrong = found.shape != expected.shape or len(reference.same_bits(found, expected))
            tally.check(title, not wrong, f"{found[:8]!r} for {expected[:8]!r}")
    for to in ("float4_e2m1fn", "float6_e2m3fn"):
        run = tslice("nibbles.safetensors", "--cast", to, "--casting", "unsafe", "-o", "out.safetensors", "-t", "w")
        tally.check(f"to {to}", run.returncode == 1 and b"smaller than a byte" in run.stderr, f"{run.stderr!r}")


# what PyTorch, the safetensors format and short names mean, in the words of NumPy and ml_dtypes
OTHER_NAMES = {
    "bool": "bool", "half": "float16", "double": "float64", "short": "int16", "long": "int64", "cfloat": "complex64",
    "cdouble": "complex128", "float": "float64", "int": "int64",
    "BOOL": "bool", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64", "U8": "uint8", "U16": "uint16",
    "U32": "uint32", "U64": "uint64", "F16": "float16", "F32": "float32", "F64": "float64", "C64": "complex64",
    "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "f32": "float32", "f64": "float64", "bf16": "bfloat16", "fp16": "float16", "i16": "int16", "i32": "int32",
    "i64": "int64", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}
TWO_MEANINGS = {"i8": ("int8", "int64"), "u8": ("uint8", "uint64"), "f16": ("float16", "float128")}


def names_of_dtypes():
    """Every name that has a meaning, with what NumPy and ml_dtypes say it is."""
    names = {name: reference.dtype_of(name) for name in NAMES}
    for name in np.sctypeDict:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # `a`
            dtype = np.dtype(name)
        if not dtype.hasobject and not hasattr(ml_dtypes, dtype.name):
            names[name] = dtype
    for dtype in list(names.values()):
        if dtype.kind not in "SUVMm" and not hasattr(ml_dtypes, dtype.name):
            bare = dtype.str[1:]
            names.update({order + bare: np.dtype(order + bare) for order in "<>=|"})
            if bare not in TWO_MEANINGS:
                names[bare] = np.dtype(bare)
    names.update({code: np.dtype(code) for code in "?bhilqBHILQefdgFDG" if code not in names})
    for name, meaning in OTHER_NAMES.items():
        names[name] = reference.dtype_of(meaning)
    for text in ("S5", "<U3", ">U3", "V2", "M8[s]", ">M8[25s]", "datetime64[ms]", "timedelta64[D]", "<f16", ">c32"):
        names[text] = np.dtype(text)
    return names


def check_names(tally, options):
    """Each name of a dtype in --dtype, in --cast and on both sides of FROM:TO."""
    def dtype_of_output(title, *arguments):
        run = tslice("in.bin", *arguments, "-o", "out.npy", "-f", "-q")
        if run.returncode or run.stderr:
            tally.check(title, False, f"status {run.returncode}, {run.stderr.decode()!r}")
            return None
        return np.load("out.npy").dtype

    for name, dtype in names_of_dtypes().items():
        stored = dtype if not hasattr(ml_dtypes, dtype.name) else np.dtype({1: "|V1", 2: "<V2"}[dtype.itemsize])
        if not dtype.itemsize:
            continue  # a string or a void without a length: nothing can be read as one
        with open("in.bin", "wb") as file:
            file.write(bytes(dtype.itemsize * 3))
        found = dtype_of_output(f"--dtype {name}", "--dtype", name, "--shape", "3")
        tally.check(f"--dtype {name}", found == stored, f"{found} for {stored}")
        if (dtype.kind in "SUVMm" or dtype.char in "gG") and not hasattr(ml_dtypes, dtype.name):
            continue
        unsafe = ["--casting", "unsafe", "--shape", "3"]
        with open("in.bin", "wb") as file:
            file.write(bytes(3))
        for to in (name, f"uint8:{name}", f"U8:{name}"):
            found = dtype_of_output(f"--cast {to}", "--dtype", "uint8", "--cast", to, *unsafe)
            tally.check(f"--cast {to}", found == stored, f"{found} for {stored}")
        with open("in.bin", "wb") as file:
            file.write(bytes(dtype.itemsize * 3))
        found = dtype_of_output(f"--cast {name}:>i2", "--dtype", name, "--cast", f"{name}:>i2", *unsafe)
        tally.check(f"--cast {name}:>i2", found == np.dtype(">i2"), f"{found}")
    for name, readings in TWO_MEANINGS.items():
        for flags in (["--dtype", name], ["--cast", name], ["--cast", f"{name}:f4"], ["--cast", f"f4:{name}"]):
            run = tslice("in.bin", *flags, "-o", "out.npy", "-f")
            said = run.stderr.decode()
            both = run.returncode == 2 and all(reading in said for reading in readings)
            tally.check(f"{flags} is refused", both, f"status {run.returncode}, {said!r}")


SMALLER = ["float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"]
SAFETENSORS = {meaning: name for name, meaning in OTHER_NAMES.items() if name.isupper()}
SAFETENSORS.update({"float6_e2m3fn": "F6_E2M3", "float6_e3m2fn": "F6_E3M2", "float4_e2m1fn": "F4"})


def check_promotions(tally, options):
    """The hint at inputs of two dtypes: np.result_type's answer, where it can be cast to."""
    names = NAMES + SMALLER
    dtypes = {name: np.dtype(getattr(ml_dtypes, name, None) or name) for name in names}
    for name in names:
        with open(name, "wb") as file:
            if name in SAFETENSORS:
                bits = int(name[5]) if name in SMALLER else dtypes[name].itemsize * 8
                file.write(safetensors_file({"w": (SAFETENSORS[name], [4], bytes(bits // 2))}))
            else:
                file.write(saved(np.zeros(4, dtypes[name])))
    for one, other in itertools.product(names, names):
        if one == other:
            continue
        run = tslice("concat", one, other, "-o", "none.npy")
        try:
            common = np.result_type(dtypes[one], dtypes[other]).name
        except TypeError:
            common = None
        if any(name in SMALLER for name in (common, one, other)):
            common = None  # parts of bytes are not cast while they are joined
        hint = f"hint: --cast {common} casts all of them first" if common else ""
        said = run.stderr.decode()
        good = run.returncode == 1 and "has dtype" in said and (hint in said if hint else "hint" not in said)
        tally.check(f"{one} and {other}", good, f"{common}: status {run.returncode}, {said!r}")


def check_text(tally, options):
    """All numbers of the 8-bit floats as csv and json, exactly."""
    for name in reference.ML:
        dtype = reference.dtype_of(name)
        if dtype.itemsize > 1:
            continue
        codes = np.arange(256, dtype="u1")
        with open("in.bin", "wb") as file:
            file.write(codes.tobytes())
        for form in ("csv", "json"):
            run = tslice("in.bin", "--dtype", name, "--to", form)
            if run.returncode or run.stderr:
                tally.check(f"{name} as {form}", False, run.stderr.decode())
                continue
            texts = run.stdout.decode().split() if form == "csv" else json.loads(run.stdout)
            found = [float(str(text).replace("Infinity", "inf")) for text in texts]
            values = codes.view(dtype).astype(np.float64)
            wrong = [at for at in range(256) if found[at] != values[at] and not (np.isnan(found[at]) and np.isnan(values[at]))]
            signs = np.signbit(found) == np.signbit(values)
            tally.check(f"{name} as {form}", len(found) == 256 and not wrong, f"codes {wrong[:5]}")
            tally.check(f"{name} as {form}, zeros", bool(np.all(signs[values == 0])), "the sign of a zero is lost")


KINDS = {"b": 0, "u": 1, "i": 2, "f": 3, "c": 4}


def allowed(name, to, rule):
    """np.can_cast; between ml_dtypes' types and others, whether all values are kept."""
    ours, theirs = reference.dtype_of(name), reference.dtype_of(to)
    kind = lambda name, dtype: 3 if name in reference.ML else KINDS[dtype.kind]
    if rule == "unsafe":
        return True
    if name in reference.NATIVE and to in reference.NATIVE:
        return np.can_cast(ours, theirs, rule)
    if rule == "same_kind":
        return kind(name, ours) <= kind(to, theirs)
    if name == to:
        return True
    if kind(name, ours) > kind(to, theirs) or ours.itemsize > 2:
        return False
    values = numbers(random.Random(0), name, 0)
    with np.errstate(all="ignore"):
        values = values[~np.isnan(values.astype(np.float64))]
        kept = reference.cast(values, theirs)
        if theirs.kind == "c":
            kept = kept.real
        exact, kept = values.astype(np.float64), kept.astype(np.float64)
    return bool(np.all((exact == kept) & (np.signbit(exact) == np.signbit(kept))))


STEPS = [1, 12, 1, 7, 24, 60, 60] + [1000] * 6


def factor_wraps(source, target):
    """Whether NumPy's factor between two units has lost high bits, so that astype gives any number."""
    if source.kind not in "mM" or source.kind != target.kind:
        return False
    ends = [np.datetime_data(source), np.datetime_data(target)]
    if any(unit == "generic" for unit, _ in ends):
        return False
    (long, count), (short, _) = sorted((UNITS.index(unit), count) for unit, count in ends)
    if long <= 1 and short > 1:
        if source.kind == "M":
            return False  # by the calendar
        count, long = count * 146097, 3
    return count * math.prod(STEPS[long + 1:short + 1]) >= 2**64


def run_other(tally, title, array, target, rule="unsafe", way="slice"):
    """Cast strings or times, and compare the file with np.save's of astype; both may refuse."""
    with open("in.npy", "wb") as file:
        file.write(saved(array))
    flags = ["--cast", target.str, "--casting", rule.replace("_", "-")]
    try:
        allowed = np.can_cast(array.dtype, target, rule)
        # `M8` without a unit would keep the one of the array
        allowed &= target.kind not in "mM" or np.datetime_data(target)[0] != "generic"
        allowed &= not factor_wraps(array.dtype, target)
        expected = array.astype(target) if allowed else None
    except (OverflowError, ValueError):
        expected = None
    if way == "slice":
        run = tslice("in.npy", *flags)
    elif way == "reversed":
        run, expected = tslice("in.npy", "::-3", *flags), None if expected is None else expected[::-3]
    elif way == "concat":
        with open("swapped.npy", "wb") as file:
            file.write(saved(array.astype(array.dtype.newbyteorder())))
        run = tslice("concat", "in.npy", "swapped.npy", *flags)
        expected = None if expected is None else np.concatenate([expected, expected]).astype(target)
    elif way == "from":
        flags[1] = f"{array.dtype.newbyteorder().str}:{target.str}"
        run = tslice("-", *flags, input=saved(array))
    else:
        with open("target.npy", "wb") as file:
            file.write(saved(np.zeros(len(array), target.newbyteorder())))
        run = tslice("assign", "target.npy", "--value", "in.npy", *flags, "-o", "out.npy", "-f")
        expected = None if expected is None else expected.astype(target.newbyteorder())
        if run.returncode == 0:
            with open("out.npy", "rb") as file:
                run.stdout = file.read()
    title = f"{title}: {array.dtype.str} to {target.str}, {rule}, {way}"
    if expected is None:
        refused = run.returncode == 1 and run.stderr.startswith(b"tslice: --cast: ")
        tally.check(title, refused, f"status {run.returncode}, {run.stderr.decode()!r}")
        return
    good = run.returncode == 0 and run.stdout == saved(expected)
    detail = f"status {run.returncode}, {run.stderr.decode()!r}"
    if not good and run.returncode == 0:
        bare = np.dtype(f"{target.str[0]}i8") if target.kind in "mM" else target
        found = np.load(io.BytesIO(run.stdout)).view(bare)
        wrong = np.flatnonzero(found != expected.view(bare))[:3]
        detail += f"{len(found)} for {len(expected)}: {found[wrong]} for {expected.view(bare)[wrong]} at {wrong}"
    tally.check(title, good, detail)


WAYS = ["slice", "reversed", "concat", "from", "assign"]


def check_strings(tally, options):
    """Strings to longer and shorter ones: with zeros at the end and within, and beyond ASCII."""
    rng = random.Random(f"strings {options.seed}")
    lengths = [1, 2, 3, 5, 8, 31, 300]
    for kind, ours, theirs in itertools.product("SU", lengths, lengths):
        source = np.dtype(f"{rng.choice('<>')}{kind}{ours}")
        target = np.dtype(f"{rng.choice('<>')}{kind}{theirs}")
        if kind == "S":
            parts = [bytes(rng.choices([0, 65, 255], k=rng.randint(0, ours))) for _ in range(200)]
        else:
            parts = ["".join(rng.choices("\0Aé界😀\U0010ffff", k=rng.randint(0, ours))) for _ in range(200)]
        array = np.array(parts, source)
        for way in WAYS:
            run_other(tally, "string", array, target, "unsafe", way)
        for rule in ("safe", "same_kind"):
            run_other(tally, "string", array, target, rule)
    for source, target in (("S5", "<U5"), ("<U5", "S5"), ("<U5", "<i4"), ("<i4", "S3"), ("<M8[s]", "<i8"), ("<M8[s]", "<m8[s]")):
        with open("in.npy", "wb") as file:
            file.write(saved(np.zeros(3, source)))
        run = tslice("in.npy", "--cast", target, "--casting", "unsafe")
        refused = run.returncode == 1 and run.stderr.startswith(b"tslice: --cast: ") and not run.stdout
        tally.check(f"{source} to {target} is refused", refused, f"status {run.returncode}, {run.stderr!r}")


UNITS = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"]


def times(rng, kind, unit, count):
    """Times of a unit: near 1970, of all magnitudes, the ends, and NaT."""
    low, high = -(2**63), 2**63 - 1
    # where 64 bits cannot hold the day, NumPy's calendar gives no date that means anything
    most = 2**63 // count // {"Y": 370, "M": 31, "W": 7}.get(unit, 1) - 20_000
    values = [rng.randrange(-1000, 1000) for _ in range(100)]
    values += [rng.choice([-1, 1]) * (rng.getrandbits(63) >> rng.randrange(63)) for _ in range(300)]
    if kind == "M":
        values = [abs(value) % most * (1 if value > 0 else -1) for value in values]
    else:
        values += [high, low + 1]
    return np.array(values + [low, 0, -1, 1], "<i8")


def check_times(tally, options):
    """Pairs of units, with counts, by every rule; what NumPy refuses is refused."""
    rng = random.Random(f"times {options.seed}")
    units = [("", 1)] + [(unit, 1) for unit in UNITS]
    units += [(unit, rng.choice([2, 3, 7, 12, 25, 400, 1000, 86400])) for unit in UNITS]
    pairs = list(itertools.product("Mm", units, units))
    for kind, (ours, count), (theirs, other) in rng.sample(pairs, min(options.times, len(pairs))):
        if not ours and not theirs:
            continue  # astype takes a unit that is left out for any, and then the byte order of the array
        name = lambda unit, count: f"{rng.choice('<>')}{kind}8" + (f"[{count}{unit}]" if unit else "")
        source, target = np.dtype(name(ours, count)), np.dtype(name(theirs, other))
        array = times(rng, kind, ours, count).view(f"<{source.str[1:]}").astype(source)
        run_other(tally, "time", array, target, "unsafe", rng.choice(WAYS))
        for rule in ("safe", "same_kind", "unsafe"):
            run_other(tally, "time", array, target, rule)


def check_rules(tally, options):
    for name, to, rule in itertools.product(NAMES, NAMES, ("safe", "same_kind", "unsafe")):
        with open("in.bin", "wb") as file:
            file.write(bytes(64))
        run = tslice("in.bin", "--dtype", name, "--cast", to, "--casting", rule.replace("_", "-"), "-n",
                             "-o", "none.bin")
        expected = 0 if allowed(name, to, rule) else 1
        tally.check(f"{name} to {to}, {rule}", run.returncode == expected,
                    f"status {run.returncode}, not {expected}: {run.stderr.decode()!r}")


def saved(array, order="C"):
    out = io.BytesIO()
    np.save(out, np.array(array, order=order))
    return out.getvalue()


def random_array(rng):
    shape = [rng.choice([1, 2, 3, 7, 50]) for _ in range(rng.randint(1, 4))]
    dtype = np.dtype(rng.choice("<>") + rng.choice(["i1", "i2", "i4", "i8", "u1", "u2", "f2", "f4", "f8", "c8"]))
    values = np.array([rng.randint(-120, 120) for _ in range(int(np.prod(shape)))])
    return values.astype(dtype).reshape(shape)


def check_ways(tally, options):
    """Casts on the way through everything else."""
    rng = random.Random(f"ways {options.seed}")
    for number in range(options.ways):
        array = random_array(rng)
        target = np.dtype(rng.choice("<>") + rng.choice(["b1", "i2", "i8", "u1", "f2", "f4", "f8", "c16"]))
        order, out_order = rng.choice("CF"), rng.choice("CF")
        with open("in.npy", "wb") as file:
            file.write(saved(array, order))
        flags = ["--cast", target.str, "--casting", "unsafe", "-j", str(rng.randint(1, 3))]
        flags += ["--order", "F"] if out_order == "F" else []
        flags += rng.choice([[], ["--io", "read"]])
        way = rng.choice(["slice", "pipe", "transpose", "gather", "assign", "scatter", "list", "concat", "split"])
        stdin, expected = {}, None
        to = reference.dtype_of(target.newbyteorder("=").name)
        if way == "slice":
            run, expected = ["in.npy", "::-1", *flags], array[::-1]
        elif way == "pipe":
            flags = [flag for flag in flags if flag not in ("--io", "read")]
            run, expected = ["-", "[..., ::2]", *flags], array[..., ::2]
            stdin = {"input": saved(array, order)}
        elif way == "transpose":
            run, expected = ["in.npy", "-T", *flags], array.T
        elif way == "gather":
            rows = rng.choices(range(array.shape[0]), k=4)
            run, expected = ["gather", "in.npy", "--axis", "0", "--indices", str(rows), *flags], array[rows]
        elif way == "split":
            axis, parts = rng.randrange(array.ndim), rng.randint(1, 3)
            run = ["split", "in.npy", "--axis", str(axis), "--parts", str(parts), *flags, "-o", "part-{}.npy", "-f"]
            done = tslice(*run)
            good = done.returncode == 0
            for at, part in enumerate(np.array_split(reference.cast(array, to).astype(target), parts, axis)):
                if good:
                    with open(f"part-{at}.npy", "rb") as file:
                        good = file.read() == saved(part, out_order)
            tally.check(f"way {number}: {run}", good, f"{array.shape} {array.dtype}: {done.stderr.decode()!r}")
            continue
        elif way == "concat":
            axis, other = rng.randrange(array.ndim), array.astype(array.dtype.newbyteorder())
            with open("other.npy", "wb") as file:
                file.write(saved(other, rng.choice("CF")))
            run = ["concat", "in.npy", "other.npy", "in.npy", "--axis", str(axis), *flags]
            expected = np.concatenate([array, array, array], axis)
        elif way == "list":
            rows = rng.choices(range(array.shape[-1]), k=4)
            run, expected = ["in.npy", f"[..., {rows}]", *flags], array[..., rows]
        else:
            whole = np.zeros(array.shape, target)
            whole[...] = 1
            with open("target.npy", "wb") as file:
                file.write(saved(whole, out_order))
            flags = [flag for flag in flags if flag not in ("--order", "F")] + ["-o", "out.npy", "-f"]
            changed = whole.copy()
            if way == "assign":
                step = rng.choice([1, 2, -1])
                value = np.array(array[..., ::step])
                changed[..., ::step] = reference.cast(value, to).astype(target)
                run = ["assign", "target.npy", f"[..., ::{step}]", "--value", "value.npy", *flags]
            else:
                rows = rng.choices(range(array.shape[0]), k=3)
                value = array[rows]
                for row, one in zip(rows, value):
                    changed[row] = reference.cast(np.array(one), to).astype(target)
                run = ["scatter", "target.npy", "--indices", str([[row] for row in rows]), "--values", "value.npy",
                       *flags]
            with open("value.npy", "wb") as file:
                file.write(saved(value, rng.choice("CF")))
            done = tslice(*run)
            good = done.returncode == 0
            if good:
                with open("out.npy", "rb") as file:
                    good = file.read() == saved(changed, out_order)
            tally.check(f"way {number}: {run}", good, f"{array.shape} {array.dtype}: {done.stderr.decode()!r}")
            continue
        done = tslice(*run, **stdin)
        wanted = saved(reference.cast(expected, to).astype(target), out_order)
        tally.check(f"way {number}: {run}", done.returncode == 0 and done.stdout == wanted,
                    f"{array.shape} {array.dtype} {order}: status {done.returncode}, {done.stderr.decode()!r}")


def check_checkpoint(tally, options):
    """A checkpoint, all but its norms to bfloat16, its head to 8 bits, the steps as they are."""
    rng = np.random.default_rng(options.seed)
    arrays = {"embed": rng.normal(size=(500, 64)).astype(np.float32),
              "norm": rng.normal(size=64).astype(np.float32),
              "head": rng.normal(size=(64, 100)), "steps": np.array(7, np.int64)}
    tensors = {name: (CODES[it.dtype.name], it.shape, it.tobytes()) for name, it in arrays.items()}
    with open("model.safetensors", "wb") as file:
        file.write(safetensors_file(tensors, {"format": "pt"}))
    run = tslice("model.safetensors", "-t", "embed", "-t", "head", "-t", "steps", "--keep-rest", "--cast",
                         "float32:bfloat16", "--cast", "float64:float8_e4m3fn", "-o", "small.safetensors")
    tally.check("a checkpoint is converted", run.returncode == 0 and not run.stderr, run.stderr.decode())
    with open("small.safetensors", "rb") as file:
        found, metadata = read_safetensors(file.read())
    expected = dict(arrays, embed=reference.cast(arrays["embed"], reference.dtype_of("bfloat16")),
                    head=reference.cast(arrays["head"], reference.dtype_of("float8_e4m3fn")))
    for name, array in expected.items():
        wanted = (CODES[array.dtype.name], list(array.shape), array.tobytes())
        code, shape, data = found[name]
        tally.check(f"tensor {name}", (code, list(shape), bytes(data)) == wanted, f"{code} {shape}")
    tally.check("metadata", metadata == {"format": "pt"}, str(metadata))


# those with the most runs first, as they are shared out to the processes
CHECKS = [check_times, check_rules, check_names, check_strings, check_pairs, check_promotions, check_ways,
          check_nibbles, check_text, check_checkpoint]


def run_check(job):
    """Runs a check in a folder of its own; how many passed and failed."""
    check, options = job
    tally, begun = Tally(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tslice-cast-") as folder:
        os.chdir(folder)
        check(tally, options)
        os.chdir("/")
    words = check.__name__.removeprefix("check_")
    print(f"{words}: {tally.passed} good, {tally.failed} bad ({time.monotonic() - begun:.1f} s)", flush=True)
    return tally


def main():
    parser = harness.parser(__doc__.split("\n")[0])
    parser.add_argument("--values", type=int, default=20_000, help="random bit patterns of each wide dtype")
    parser.add_argument("--ways", type=int, default=300, help="random casts on the way")
    parser.add_argument("--times", type=int, default=2_000, help="pairs of units of times; there are fewer than 2,000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="checks that run at a time")
    parser.add_argument("--only", default="", help="run the checks whose name holds this")
    parser.add_argument("--wine", action="store_true", help="wine loses an exit status now and then: run once more")
    options = parser.parse_args()
    global WINE
    WINE = options.wine
    harness.begin(options)
    total = Tally()
    jobs = [(check, options) for check in CHECKS if options.only in check.__name__]
    method = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(options.jobs, method) as workers:
        for tally in workers.map(run_check, jobs):
            total.passed += tally.passed
            total.failed += tally.failed
    return total.finish()


if __name__ == "__main__":
    sys.exit(main())
