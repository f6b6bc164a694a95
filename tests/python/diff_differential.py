#!/usr/bin/env python3
"""Differential test: `tslice diff` and `info --digest` against NumPy and blake3.

    python tests/python/diff_differential.py --bin target/debug/tslice --count 1000 --seed 1

Every case is a random array and a copy with some elements changed, in random containers, memory
orders and byte orders, whole or indexed, with random tolerances. Exit status, the number of
elements that differ and the largest differences must be those that NumPy finds. A case is a
function of (seed, number): `--only NUMBER` runs one again.

Every third case compares arrays of two dtypes within tolerances, bfloat16 and 8-bit floats among them,
under names that differ: what np.isclose says of both cast to float64 or complex128. Needs ml_dtypes.
Where the package blake3 is there, every tensor has the digest that it finds of NumPy's bytes.
"""

import io
import json
import random
import sys

import ml_dtypes
import numpy as np

import harness
import random_tensors
from cases import Case
from formats import safetensors_file
from harness import Failure
try:
    import blake3
except ImportError:
    blake3 = None
from view_differential import floats, random_index, random_shape, repair

NAMES = {"i1": "I8", "i2": "I16", "i4": "I32", "i8": "I64", "u1": "U8", "u2": "U16", "u4": "U32", "u8": "U64",
         "f2": "F16", "f4": "F32", "f8": "F64", "c8": "C64", "b1": "BOOL"}


def random_array(rng):
    shape = random_shape(rng)
    count = int(np.prod(shape))
    if rng.random() < 0.75:
        dtype = np.dtype(rng.choice("<>") + rng.choice(list(NAMES) + ["c16"]))
    else:
        dtype = random_tensors.random_dtype(rng)
        while dtype.itemsize * count > 1 << 20:
            dtype = random_tensors.random_dtype(rng)
    flat = floats(rng, dtype, count) if dtype.kind in "fc" and dtype.names is None else None
    if dtype.kind == "b":
        flat = np.frombuffer(random_tensors.random_bytes(rng, count), "u1") % 2 == 1
    if flat is None:
        data = random_tensors.random_bytes(rng, count * dtype.itemsize)
        flat = np.frombuffer(bytearray(data), dtype) if data else np.zeros(count, dtype)
        if dtype.itemsize:
            repair(flat)
    return np.array(flat).reshape(shape)


def change(rng, array):
    """A copy with some elements changed: a little, by others, by their own negatives or NaN."""
    changed = array.copy()
    flat = changed.reshape(-1)
    if not flat.size or not array.dtype.itemsize:
        return changed
    for _ in range(rng.choice([0, 0, 1, 1, 3, 50])):
        at = rng.randrange(flat.size)
        kind = rng.randrange(5)
        with np.errstate(all="ignore"):
            if array.dtype.kind in "fc" and array.dtype.names is None and kind < 4:
                old = flat[at]
                flat[at] = [old * 1.00001, -old, np.nan, old + 1][kind]
            elif array.dtype.kind in "iu" and kind < 2:
                flat[at] = flat[at] ^ flat.dtype.type(1)
            else:
                flat[at] = flat[rng.randrange(flat.size)]
    return changed


def write(rng, case, stem, array):
    """A file of the array in a random container and order; returns its name."""
    kind = rng.choice(["npy", "npy", "npz", "safetensors"])
    name = f"{stem}.{kind}"
    other = array.astype(array.dtype.newbyteorder(rng.choice("<>")))
    code = NAMES.get(array.dtype.str[1:]) if array.dtype.names is None else None
    if kind == "safetensors" and code:
        raw = array.astype(array.dtype.newbyteorder("<")).tobytes()
        case.write(name, safetensors_file({"x": (code, array.shape, raw)}))
        return name
    out = io.BytesIO()
    other = np.array(other, order=rng.choice("CF"))
    if kind == "npz":
        (np.savez if rng.random() < 0.5 else np.savez_compressed)(out, x=other)
    else:
        name = f"{stem}.npy"
        np.save(out, other)
    case.write(name, out.getvalue())
    return name


def same_elements(a, b):
    """NumPy's ==, and NaN of the same bits."""
    a, b = a.astype(a.dtype.newbyteorder("=")), b.astype(b.dtype.newbyteorder("="))
    if a.dtype.names is not None:
        same = np.ones(a.shape, bool)
        for name in a.dtype.names:
            part = same_elements(a[name], b[name])
            same &= part.all(axis=tuple(range(a.ndim, part.ndim)))
        return same
    same = np.asarray(a == b)
    if not a.dtype.itemsize:
        return np.ones(a.shape, bool)
    if a.dtype.char in "gG":
        parts = 1 if a.dtype.char == "g" else 2
        bits = [np.ascontiguousarray(x).reshape(a.shape + (1,)).view("u1").reshape(a.shape + (parts, 16)) for x in (a, b)]
        values = [np.ascontiguousarray(x).reshape(a.shape + (1,)).view("g") for x in (a, b)]
        return same | ((bits[0] == bits[1])[..., :10].all(-1) | (values[0] == values[1])).all(-1)
    if a.dtype.kind in "fcmM":
        width = a.dtype.itemsize // (2 if a.dtype.kind == "c" else 1)
        bits = [np.ascontiguousarray(x).reshape(a.shape + (1,)).view(f"u{width}") for x in (a, b)]
        part = f"f{width}" if a.dtype.kind in "fc" else a.dtype
        values = [np.ascontiguousarray(x).reshape(a.shape + (1,)).view(part) for x in (a, b)]
        same |= ((bits[0] == bits[1]) | (values[0] == values[1])).all(-1)
    return same


def differences(a, b):
    """The absolute and the relative difference of each pair."""
    with np.errstate(all="ignore"):
        if a.dtype.kind in "iub":
            pairs = [(abs(int(x) - int(y)), abs(int(y))) for x, y in zip(a.reshape(-1), b.reshape(-1))]
            absolute = np.array([float(d) for d, _ in pairs])
            relative = np.array([float(d) / float(y) if y else (np.inf if d else np.nan) for d, y in pairs])
        else:
            wide = "c16" if a.dtype.kind == "c" else "f8"
            x, y = a.astype(wide).reshape(-1), b.astype(wide).reshape(-1)
            absolute = np.hypot((x - y).real, (x - y).imag) if wide == "c16" else np.abs(x - y)
            relative = absolute / np.abs(y)
    return absolute, relative


def name_of(dtype):
    """The name of a dtype that `info` prints, without byte orders."""
    return dtype.name if dtype.kind in "biufc" and dtype.char not in "gG" else dtype.str[1:]


def digest_of(array):
    head = f"{name_of(array.dtype)}\n{','.join(map(str, array.shape))}\n"
    if array.dtype.kind in "mM":
        # newbyteorder leaves times without a unit as they are
        array = array.view(array.dtype.str[0] + "i8")
    return blake3.blake3(head.encode() + array.astype(array.dtype.newbyteorder("<")).tobytes()).hexdigest()


def check_digest(case, path, array):
    """Its digest, and what --check says of that and of another one."""
    if blake3 is None or array.dtype.names is not None or not array.dtype.itemsize:
        return
    status, out, err = case.run(["info", path, "--digest", "-j", case.rng.choice(["1", "3"])])
    out = out.decode()
    if status or err or out.split("  ")[0] != digest_of(array):
        raise Failure(f"expected the digest {digest_of(array)}: {out!r}")
    case.write("manifest", out.encode())
    wrong = case.rng.random() < 0.5
    if wrong:
        name = out.split("  ")[1]
        case.write("manifest", f"{'0' * 64}  {name}{'1' * 64}  gone\n".encode())
    status, out, err = case.run(["info", path, "--check", "manifest"])
    if err or (status, out.decode()) != ((1, f"gone: missing\n{name.strip()}: another\n") if wrong else (0, "")):
        raise Failure(f"--check says {status}, {out!r}")


def diff_case(case):
    rng = case.rng
    a = random_array(rng)
    b = change(rng, a)
    a_name, b_name = write(rng, case, "a", a), write(rng, case, "b", b)
    check_digest(case, a_name, a)
    args = ["diff", a_name, b_name, "--json", "-j", rng.choice(["1", "2", "3"])]
    case.story.append(f"array: {a.dtype!r} {a.shape}")
    if rng.random() < 0.3:
        index = random_index(rng, a.shape)
        args.append(index)
        a, b = np.asarray(eval("a" + index) if index != "[]" else a), np.asarray(eval("b" + index) if index != "[]" else b)
    simple = a.dtype.names is None and a.dtype.kind in "biufc" and a.dtype.char not in "gG"
    equal_nan = rng.random() < 0.3
    if equal_nan:
        args.append("--equal-nan")
    if simple and rng.random() < 0.4:
        atol, rtol = rng.choice([0, 1e-8, 0.5, 1]), rng.choice([0, 1e-5, 1e-6, 0.1])
        args += ["--atol", str(atol), "--rtol", str(rtol)]
        with np.errstate(all="ignore"):
            same = np.isclose(a, b, rtol, atol, equal_nan)
    else:
        same = same_elements(a, b)
        if equal_nan and simple and a.dtype.kind in "fc":
            same = same | np.isnan(a) & np.isnan(b)
        elif equal_nan and (a.dtype.names is not None or a.dtype.char in "gG"):
            args.remove("--equal-nan")
    pipe = None
    if rng.random() < 0.15:
        with open(case.path(a_name), "rb") as file:
            pipe = file.read()
        if a_name.endswith("npz"):
            pipe = None
        else:
            args[1] = "-"
    status, out, err = case.run(args, stdin=a_name if pipe else None, pipe_in=pipe)
    differing = int(np.sum(~same))
    if err or status != (1 if differing else 0):
        raise Failure(f"expected exit status {1 if differing else 0}: {differing} differ")
    found = json.loads(out)
    (tensor,) = found["tensors"]
    if found["same"] != (differing == 0) or tensor["differing"] != differing or tensor["elements"] != a.size:
        raise Failure(f"expected {differing} of {a.size} to differ: {found}")
    if not differing:
        return
    places = np.argwhere(~same)
    if tensor["first"]["place"] != places[0].tolist():
        raise Failure(f"expected the first at {places[0].tolist()}: {found}")
    with np.printoptions():
        first = tuple(places[0])
        # NumPy takes the wrong width for lengths of time without a unit in the other byte order
        native = lambda array: array.astype(array.dtype.newbyteorder("="))
        expected = [str(native(np.asarray(array[first]))) for array in (a, b)]
    if tensor["first"]["values"] != expected and "\\ud" not in repr(expected):
        raise Failure(f"expected the values {expected}: {tensor['first']['values']}")
    if simple:
        check_not_finite(tensor, a, b, same)
        check_largest(tensor, a, b, same)


def check_not_finite(tensor, a, b, same):
    """How many NaN and infinities differ, and the first of them."""
    places = np.argwhere(~same & ~(np.isfinite(a) & np.isfinite(b)))
    told = tensor.get("nan_or_inf", {"differing": 0})
    if told["differing"] != len(places) or len(places) and told["place"] != places[0].tolist():
        raise Failure(f"expected {len(places)} with NaN or infinity, the first at {places[:1].tolist()}: {told}")


def check_largest(tensor, a, b, same):
    """The largest differences of what is finite, and their places."""
    same = same | ~(np.isfinite(a) & np.isfinite(b))
    for what, values in zip(("absolute", "relative"), differences(a, b)):
        values = np.where(same.reshape(-1), np.nan, values)
        key = f"largest_{what}_difference"
        if np.isnan(values).all():
            if key in tensor:
                raise Failure(f"there is no {what} difference: {tensor}")
            continue
        largest = np.nanmax(values)
        told = tensor[key]["difference"]
        told = np.inf if told == "Infinity" else told
        if told != largest and not np.isclose(told, largest, 1e-15, 0):
            raise Failure(f"expected the largest {what} difference {largest}: {told}")
        flat = int(np.ravel_multi_index(tensor[key]["place"], a.shape)) if a.ndim else 0
        if values[flat] != largest and not np.isclose(values[flat], largest, 1e-15, 0):
            raise Failure(f"the largest {what} difference is not at {tensor[key]['place']}")


SMALL = {"bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2"}


def numbers(rng, count):
    """Numbers that most types hold about, and some that few do."""
    near = lambda: rng.choice([0.0, 1.0, rng.randrange(100), rng.randrange(400) / 4, rng.uniform(-3, 3)])
    far = lambda: rng.choice([np.nan, np.inf, -np.inf, -0.0, 300.5, -129, 70000, 1e-6, 2.0**40 + 1, 1e300])
    return np.array([far() if rng.random() < 0.1 else near() for _ in range(count)])


def as_type(values, dtype):
    """The numbers in a type, as near as it has them."""
    with np.errstate(all="ignore"):
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            low, high = max(info.min, -(2**52)), min(info.max, 2**52)
            return np.clip(np.nan_to_num(values, posinf=high, neginf=low), low, high).astype(dtype)
        if dtype.kind == "c":
            return (values + 1j * np.roll(values, 1)).astype(dtype)
        return values.astype(dtype)


def mixed_file(rng, case, stem, name, array):
    """A file of the array under a name, in a format that has its dtype."""
    code = SMALL.get(array.dtype.name) or NAMES.get(array.dtype.str[1:])
    if code and (array.dtype.name in SMALL or rng.random() < 0.5):
        raw = array.astype(array.dtype.newbyteorder("<")).tobytes()
        case.write(f"{stem}.safetensors", safetensors_file({name: (code, array.shape, raw)}))
        return f"{stem}.safetensors"
    out = io.BytesIO()
    np.savez(out, **{name: array.astype(array.dtype.newbyteorder(rng.choice("<>")))})
    case.write(f"{stem}.npz", out.getvalue())
    return f"{stem}.npz"


def mixed_case(case):
    """Two dtypes within a tolerance."""
    rng = case.rng
    shape = random_shape(rng)
    kinds = rng.sample(list(NAMES) + ["c16"] + list(SMALL), 2)
    dtypes = [np.dtype(getattr(ml_dtypes, kind, kind)) for kind in kinds]
    base = numbers(rng, int(np.prod(shape)))
    changed = base * np.array([rng.choice([1, 1, 1, 1.001, 1.2, -1]) for _ in base]) if base.size else base
    a, b = (as_type(values, dtype).reshape(shape) for values, dtype in zip((base, changed), dtypes))
    case.story.append(f"arrays: {a.dtype} and {b.dtype} {shape}")
    atol, rtol = rng.choice([0, 1e-8, 0.25, 1]), rng.choice([0, 1e-5, 1e-2, 0.1])
    equal_nan = rng.random() < 0.5
    files = mixed_file(rng, case, "a", "old.x", a), mixed_file(rng, case, "b", "new.x", b)
    args = ["diff", *files, "--json", "--atol", str(atol), "--rtol", str(rtol)]
    args += ["--rename", rng.choice(["old.*=new.*", "old.x=new.x", "old*=new*"])]
    args += ["--equal-nan"] * equal_nan + ["-j", rng.choice(["1", "3"])]
    if rng.random() < 0.2:
        index = random_index(rng, a.shape)
        args.append(index)
        a, b = (np.asarray(eval("x" + index, {"x": x, "np": np}) if index != "[]" else x) for x in (a, b))
    wide = "c16" if "c" in (a.dtype.kind, b.dtype.kind) else "f8"
    a, b = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        same = np.isclose(a, b, rtol, atol, equal_nan)
    strict = rng.random() < 0.1
    status, out, err = case.run(args + ["--dtypes"] * strict)
    differing = int(np.sum(~same))
    if err or status != (1 if differing or strict else 0):
        raise Failure(f"expected {differing} to differ")
    (tensor,) = json.loads(out)["tensors"]
    if strict:
        if "differing" in tensor or tensor["same"]:
            raise Failure(f"expected the dtypes to differ: {tensor}")
        return
    if tensor["differing"] != differing or tensor["elements"] != a.size:
        raise Failure(f"expected {differing} of {a.size} to differ: {tensor}")
    if differing:
        if tensor["first"]["place"] != np.argwhere(~same)[0].tolist():
            raise Failure(f"expected the first at {np.argwhere(~same)[0].tolist()}: {tensor}")
        check_not_finite(tensor, a, b, same)
        check_largest(tensor, a, b, same)


def large_slabs_case(case):
    """Lists whose slabs are longer than what is compared at a time: no element may be divided."""
    rng = case.rng
    dtype = random_tensors.random_dtype(rng)
    while not 3 <= dtype.itemsize <= 64:
        dtype = random_tensors.random_dtype(rng)
    shape = (3, rng.randrange(400_000, 900_000) // dtype.itemsize)
    data = random_tensors.random_bytes(rng, shape[0] * shape[1] * dtype.itemsize)
    a = np.frombuffer(bytearray(data), dtype)
    repair(a)
    a = a.reshape(shape)
    b = a.copy()
    for _ in range(4):
        row, column = rng.randrange(3), rng.randrange(shape[1])
        b[row, column] = a[(row + 1) % 3, column]
    for name, array in (("a.npy", a), ("b.npy", b)):
        out = io.BytesIO()
        np.save(out, array)
        case.write(name, out.getvalue())
    case.story.append(f"array: {dtype!r} {shape}")
    first = rng.choice([0, 1, 7])
    same = same_elements(a[[2, 0], first:], b[[2, 0], first:])
    status, out, err = case.run(["diff", "a.npy", "b.npy", f"[[2, 0], {first}:]", "--json"])
    differing = int(np.sum(~same))
    if err or status != (1 if differing else 0):
        raise Failure(f"expected exit status {1 if differing else 0}: {differing} differ")
    (tensor,) = json.loads(out)["tensors"]
    places = np.argwhere(~same)
    if tensor["differing"] != differing or differing and tensor["first"]["place"] != places[0].tolist():
        raise Failure(f"expected {differing}, the first at {places[:1].tolist()}: {tensor}")


def one(job):
    options, number = job
    case = Case(random.Random(f"diff {options.seed} {number}"))
    kind = large_slabs_case if number % 60 == 59 else mixed_case if number % 3 == 1 else diff_case
    return harness.run_case(case, kind, number, options.keep)


def main():
    options = harness.case_parser(__doc__.splitlines()[0], 1000).parse_args()
    harness.begin(options)
    sys.exit(harness.run_cases("diff_differential", options, one, random_tensors.start_worker))


if __name__ == "__main__":
    main()
