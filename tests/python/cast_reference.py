"""What a cast gives: NumPy's astype with ml_dtypes, where they round once and define the result.

Two things are done here: from float to integer, what C leaves open is the nearest end of the range,
and 0 for NaN; and numbers of more than 24 bits are rounded to odd before ml_dtypes, which goes
through float32, rounds them to the nearest (rounding to odd first changes no rounding to fewer bits).
"""

import ml_dtypes
import numpy as np

NATIVE = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float16", "float32", "float64", "complex64", "complex128"]
ML = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz"]


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name)) if name in ML else np.dtype(name)


def is_native(dtype):
    return dtype.kind in "buifc" and not hasattr(ml_dtypes, dtype.name)


def odd_float32(values):
    """Float64 to float32, cut off, with the last bit set where anything was."""
    with np.errstate(all="ignore"):
        near = values.astype(np.float32)
    back = near.astype(np.float64)
    inexact = (back != values) & np.isfinite(values)
    away = inexact & (np.abs(back) > np.abs(values))
    bits = near.view(np.uint32).copy()
    bits[away] -= 1
    bits[inexact] |= 1
    return bits.view(np.float32)


def odd_float64(values):
    """Integers to float64, in the same way."""
    negative = values < 0
    magnitude = values.astype(np.uint64)
    magnitude = np.where(negative, np.uint64(0) - magnitude, magnitude)
    wide = magnitude >> np.uint64(53) != 0
    low = magnitude & np.uint64(2047)
    cut = (magnitude - low) | np.where(low != 0, np.uint64(2048), np.uint64(0))
    result = np.where(wide, cut, magnitude).astype(np.float64)
    return np.where(negative, -result, result)


def cast(values, to):
    """The array that a cast gives."""
    source = values.dtype
    with np.errstate(all="ignore"):
        if source.kind == "c" and to.kind != "c" and to != np.bool_:
            values = values.real
            source = values.dtype
        if to.kind in "iu" and source.kind not in "biu":
            return saturated(values.astype(np.float64), to)
        if not is_native(to) and is_native(source):
            if source.kind in "iu":
                values = odd_float64(values)
            if values.dtype == np.float64:
                values = odd_float32(values)
        if not is_native(source) and source != to:
            values = values.astype(np.float32)  # which holds them all
        return values.astype(to)


def saturated(values, to):
    info = np.iinfo(to)
    result = np.zeros(values.shape, to)
    cut = np.trunc(values)
    inside = (cut >= float(info.min)) & (cut < float(info.max) + (1 if info.bits < 64 else 0))
    result[inside] = cut[inside].astype(to)
    result[cut >= float(info.max) + (1 if info.bits < 64 else 0)] = info.max
    result[cut < float(info.min)] = info.min
    return result


@np.errstate(all="ignore")
def same_bits(found, expected, signs=False):
    """Where two arrays of one dtype differ; NaN of any payload are the same, and with `signs` of one sign."""
    if expected.dtype.kind == "c":
        part = np.float32 if expected.dtype.itemsize == 8 else np.float64
        found, expected = found.view(part), expected.view(part)
    unsigned = f"u{expected.dtype.itemsize}"
    differs = found.view(unsigned) != expected.view(unsigned)
    if expected.dtype.kind in "fV" or not is_native(expected.dtype):
        both = np.isnan(found.astype(np.float64)) & np.isnan(expected.astype(np.float64))
        if signs:
            top = np.array(1 << expected.dtype.itemsize * 8 - 1, unsigned)
            both &= found.view(unsigned) & top == expected.view(unsigned) & top
        differs &= ~both
    return np.flatnonzero(differs)
