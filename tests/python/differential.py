#!/usr/bin/env python3
"""Differential test: the tslice binary against live NumPy.

    python tests/python/differential.py --bin target/debug/tslice --count 5000 --seed 1

Every case is a random tensor file, a random index in a random spelling, and a random way in and
out. What NumPy accepts must come out byte for byte as np.save writes it; what NumPy refuses must
end with exit status 1 (does not fit the shape) or 2 (no shape could make it right), a `tslice:`
message, no output and no temporary file. About one case in five is a safetensors file, laid out here with
struct and json alone.

A case is a function of (seed, number): `--only NUMBER` runs one again, `--keep` leaves its files.
The elements are compared as raw bytes: the tensor is indexed by NumPy as an array of void items,
so that the padding of structured dtypes counts too. Needs Python 3.9 and NumPy 2.
What the binary does not do yet is named with `--without`, so that it is left out in plain sight.
"""

import fnmatch
import io
import random
import sys

import numpy as np

import harness
from cases import arrange, Case, common_options, compare, input_way, output_way
from formats import check_aligned, read_safetensors, safetensors_file
from harness import Failure
from random_indices import make_request, MAX_NDIM, Request
from random_tensors import (
    bf16_npy, cut, DESCR, expected_npy, FROM_CODE, handmade_header, npy_header, random_bytes, random_dtype,
    random_safetensor, random_shape, start_worker, Tensor, TENSOR_NAMES)

FEATURES = ("several", "keep-rest")
INPUT_NAMES = ["in.npy", "in.npy", "in.npy", "in", "we ird.npy", "in.safetensors", "ünï.npy", "in.bin"]


def npy_case(case):
    rng = case.rng
    dtype = random_dtype(rng)
    shape = random_shape(rng, dtype.itemsize)
    order = rng.choice("CCF")
    header, fortran = npy_header(shape, dtype, order)
    if rng.random() < 0.3:
        try:
            header, fortran = npy_header(shape, dtype, order, rng.choice([(1, 0), (2, 0), (3, 0)]))
        except (ValueError, UnicodeError):
            pass
    elif rng.random() < 0.12 and all(ord(c) < 256 for c in repr(np.lib.format.dtype_to_descr(dtype))):
        header = handmade_header(rng, shape, dtype, fortran)
    count = int(np.prod(shape, dtype=object)) if shape else 1
    data = random_bytes(rng, count * dtype.itemsize)
    blob = header + data
    case.story.append(f"input: shape {shape} dtype {np.lib.format.dtype_to_descr(dtype)!r} order {order}; "
                      f"header {header!r}")
    if rng.random() < 0.1:
        blob += random_bytes(rng, rng.choice([1, 7, 64, 1000]))
    request = make_request(rng, shape)
    cut_short = request.statuses == (0,) and data and rng.random() < 0.02
    if cut_short:
        blob = blob[: len(header) + rng.randrange(len(data))]
        request.statuses = (1,)
        case.story.append(f"cut short to {len(blob)} bytes")
    name = rng.choice(INPUT_NAMES)
    case.write(name, blob)
    input_arg, ways, io_allowed = input_way(rng, name, blob)
    options, out_name, stdout = output_way(rng, "npy")
    options += [["--drain"]] * bool(cut_short)  # a pipe that is cut short is noticed so
    out_order = "C"
    if rng.random() < 0.2 and dtype.itemsize:  # NumPy makes S1 of S0 where it copies
        out_order = rng.choice("CFF")
        options.append(["--order", out_order])
    args = arrange(rng, input_arg, request.args, options + common_options(rng, io_allowed))
    status, out, err = case.run(args, stdout=stdout, **ways)
    names = [name] + (["captured"] if stdout == "captured" else [])
    if request.statuses != (0,):
        case.check_error(status, err, request.statuses, request.says)
        case.check_names(names)
        if not (cut_short and "pipe_in" in ways):  # there the first bytes may be gone before the cut is seen
            compare(out, b"", "standard output after an error")
        return
    out_shape, raw = Tensor(data, shape, dtype.itemsize, "F" if fortran else "C").take(request.items)
    if status != 0:
        raise Failure(f"exit status {status}, expected 0")
    if err:
        raise Failure("a message on standard error though all went well")
    if out_name:
        compare(out, b"", "standard output beside -o")
        case.check_names(names + [out_name])
        with open(case.path(out_name), "rb") as file:
            out = file.read()
    else:
        case.check_names(names)
    compare(out, expected_npy(out_shape, raw, dtype, out_order), "output")
    with open(case.path(name), "rb") as file:
        compare(file.read(), blob, "the input afterwards")


# ---------------------------------------------------------------- safetensors


def safetensors_case(case):
    rng = case.rng
    names = rng.sample(TENSOR_NAMES, rng.choice([1, 1, 2, 3, 5]))
    tensors = {name: random_safetensor(rng) for name in names}
    metadata = rng.choice([None, {}, {"format": "pt"}, {"format": "np", "note": "ä \"q\" \\ \n", "z": "", "a": "1"}])
    blob = safetensors_file(tensors, metadata)
    case.story.append("input: " + ", ".join(f"{n!r} {d} {s}" for n, (d, s, _) in tensors.items())
                      + f"; metadata {metadata}")
    in_name = rng.choice(["in.safetensors", "in.safetensors", "in.npy", "in"])
    case.write(in_name, blob)
    kind = rng.choice(["npy", "npy", "one", "one", "one", "several", "keep-rest", "unnamed"])
    kind = "one" if kind in case.without else kind
    chosen = [rng.choice(names)]
    extension = "npy" if kind in ("npy", "unnamed") else "safetensors"
    options = []
    if kind == "several":
        chosen = rng.sample(names, rng.randrange(1, len(names) + 1))
        if rng.random() < 0.3 and len(names) > 1:
            pattern = rng.choice(["*", "layers.*", "layers.?.weight", "*weight"])
            found = [n for n in names if fnmatch.fnmatchcase(n, pattern)]
            if found and not any("[" in n for n in found):
                chosen = found
                options.append([rng.choice(["-t", "--tensor"]), pattern])
        # One index for all of them: nothing that depends on their shapes.
    if not options and not (kind == "unnamed" or (len(names) == 1 and rng.random() < 0.4)):
        options += [rng.choice([["-t", n], ["--tensor", n], ["--tensor=" + n]]) for n in chosen]
    if kind == "keep-rest":
        options.append(["--keep-rest"])
    first = tensors[chosen[0]]
    request = make_request(rng, first[1], wrong_rate=0.08)
    if len(chosen) > 1:
        request = Request()
        request.args, request.items = rng.choice([([], ()), (["..."], (Ellipsis,)), (["[None]"], (None,)),
                                                  (["[..., None]"], (Ellipsis, None))])
        if max(len(tensors[n][1]) for n in chosen) == MAX_NDIM:
            request.args, request.items = [], ()
    if kind == "unnamed":
        if len(names) > 1:
            request.statuses = (1, 2) if request.statuses == (0,) else tuple({1, 2, *request.statuses})
            request.says = None
    results = {}
    if request.statuses == (0,):
        for name in chosen:
            shape, data = cut(tensors[name], request.items)
            results[name] = (tensors[name][0], shape, data)
        if any(data is None for _, _, data in results.values()):
            request.statuses = (1,)
        elif extension == "npy" and any(d not in DESCR for d, _, _ in results.values()):
            request.statuses = (1,)
    input_arg, ways, io_allowed = input_way(rng, in_name, blob)
    more, out_name, stdout = output_way(rng, extension)
    args = arrange(rng, input_arg, request.args, options + more + common_options(rng, io_allowed))
    status, out, err = case.run(args, stdout=stdout, **ways)
    present = [in_name] + (["captured"] if stdout == "captured" else [])
    if request.statuses != (0,):
        case.check_error(status, err, request.statuses, request.says)
        if kind == "unnamed" and len(names) > 1 and status == 1 and request.says is None:
            if "index" not in err and not all(n in err or repr(n) in err for n in names):
                raise Failure("the message does not list the names of the tensors")
        case.check_names(present)
        compare(out, b"", "standard output after an error")
        return
    if status != 0:
        raise Failure(f"exit status {status}, expected 0")
    if err:
        raise Failure("a message on standard error though all went well")
    if out_name:
        case.check_names(present + [out_name])
        with open(case.path(out_name), "rb") as file:
            out = file.read()
    else:
        case.check_names(present)
    if extension == "npy":
        (dtype, shape, data), = results.values()
        compare(out, bf16_npy(shape, dtype, data), "output")
        return
    found, found_metadata = read_safetensors(out)
    check_aligned(found)
    expected = {n: results.get(n, t) for n, t in tensors.items() if n in results or kind == "keep-rest"}
    if {n: t[:2] for n, t in found.items()} != {n: t[:2] for n, t in expected.items()}:
        raise Failure(f"tensors {[(n, t[:2]) for n, t in found.items()]}, "
                      f"expected {[(n, t[:2]) for n, t in expected.items()]}")
    if (found_metadata or None) != (metadata or None):
        raise Failure(f"metadata {found_metadata}, expected {metadata}")
    for name, (_, _, data) in expected.items():
        compare(found[name][2], data, f"tensor {name!r}")


def round_trip_case(case):
    """npy to safetensors and back; the byte order is swapped where the target needs it."""
    rng = case.rng
    dtype = random_dtype(rng) if rng.random() < 0.25 else np.dtype(rng.choice("<>") + rng.choice(list(FROM_CODE)))
    shape, order = random_shape(rng, dtype.itemsize), rng.choice("CF")
    header, fortran = npy_header(shape, dtype, order)
    count = int(np.prod(shape, dtype=object)) if shape else 1
    data = random_bytes(rng, count * dtype.itemsize)
    blob = header + data
    case.story.append(f"input: shape {shape} dtype {np.lib.format.dtype_to_descr(dtype)!r} order {order}")
    stem = rng.choice(["cube", "my data", "a.b"])
    case.write(stem + ".npy", blob)
    request = make_request(rng, shape, wrong_rate=0.05)
    target = None if dtype.names is not None or dtype.fields else FROM_CODE.get(dtype.str[1:])
    if request.statuses == (0,) and target is None:
        request.statuses = (1,)
    input_arg, ways, io_allowed = input_way(rng, stem + ".npy", blob)
    more, out_name, stdout = output_way(rng, "safetensors")
    tensor_name = stem if input_arg != "-" else "tensor"
    if rng.random() < 0.3:
        tensor_name = rng.choice(["renamed", "layers.0 ß"])
        more.append(["--name", tensor_name])
    args = arrange(rng, input_arg, request.args, more + common_options(rng, io_allowed))
    status, out, err = case.run(args, stdout=stdout, **ways)
    present = [stem + ".npy"] + (["captured"] if stdout == "captured" else [])
    if request.statuses != (0,):
        case.check_error(status, err, request.statuses, request.says)
        case.check_names(present)
        compare(out, b"", "standard output after an error")
        return
    if status != 0 or err:
        raise Failure(f"exit status {status} and a message {err!r}, expected 0 and none")
    if out_name:
        case.check_names(present + [out_name])
        with open(case.path(out_name), "rb") as file:
            out = file.read()
    out_shape, raw = Tensor(data, shape, dtype.itemsize, "F" if fortran else "C").take(request.items)
    values = raw("C")
    if dtype.str[0] == ">":
        width = dtype.itemsize // 2 if dtype.kind == "c" else dtype.itemsize
        values = np.frombuffer(values, "u%d" % width).byteswap().tobytes()
    found, _ = read_safetensors(out)
    if {n: t[:2] for n, t in found.items()} != {tensor_name: (target, out_shape)}:
        raise Failure(f"tensors {[(n, t[:2]) for n, t in found.items()]}, expected "
                      f"{tensor_name!r} {target} {out_shape}")
    compare(found[tensor_name][2], values, f"tensor {tensor_name!r}")
    case.write("between.safetensors", out)
    status, out, err = case.run(["between.safetensors", "-o", "back.npy"])
    if status != 0:
        raise Failure(f"back to npy: exit status {status}")
    with open(case.path("back.npy"), "rb") as file:
        back = file.read()
    little = dtype.newbyteorder("<")
    compare(back, npy_header(out_shape, little)[0] + values, "back to npy")
    loaded = np.load(io.BytesIO(back))
    again = np.frombuffer(values, little).reshape(out_shape)
    if loaded.shape != out_shape or loaded.tobytes() != again.tobytes():
        raise Failure("np.load reads other values")


# ---------------------------------------------------------------- the runner


def one(job):
    options, number = job
    rng = random.Random(f"{options.seed}/{number}")
    case = Case(rng, options.without)
    kind = rng.choices([npy_case, safetensors_case, round_trip_case], [78, 14, 8])[0]
    return harness.run_case(case, kind, number, options.keep)


def main():
    parser = harness.case_parser("tslice against live NumPy", 5000)
    parser.add_argument("--without", default="", help="comma list of: " + ", ".join(FEATURES))
    options = parser.parse_args()
    if int(np.__version__.split(".")[0]) < 2:
        sys.exit(f"differential.py needs NumPy 2, found {np.__version__}")
    harness.begin(options)
    options.without = [name for name in options.without.split(",") if name]
    if set(options.without) - set(FEATURES):
        sys.exit(f"--without takes {', '.join(FEATURES)}")
    for name in options.without:
        print(f"NOT TESTED: {name}")
    return harness.run_cases("differential", options, one, start_worker)


if __name__ == "__main__":
    sys.exit(main())
