#!/usr/bin/env python3
"""Differential test: `tslice assign` and `tslice scatter` against live NumPy.

    python tests/assign_differential.py --bin target/debug/tslice --count 1500 --seed 1

Every case is a random target file, a random index or random positions, and a random value. What
`a[index] = value` makes of the elements must be in the file, and every other byte must be as it
was: header, other tensors, bytes after the data. The same command is run with -o and with
--in-place, and the two must agree; what NumPy refuses (and what the tool refuses beyond that: a
value of another shape without --broadcast, of another dtype) must leave every byte alone.

A case is a function of (seed, number): `--only NUMBER` runs one again, `--keep` leaves its files.
Shares its makers of files and indices with differential.py.
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import random
import shlex
import shutil
import sys
import time
import traceback

import numpy as np

import differential as base
from differential import Case, Failure, Tensor, compare, make_request, npy_header, random_bytes, random_shape

CODES = {code: np.dtype(descr) for code, descr in base.DESCR.items() if "V" not in descr}


class Target:
    """A file, the tensor in it that is changed, and where its bytes stand."""

    def __init__(self, rng):
        self.options = []
        if rng.random() < 0.3:
            names = rng.sample(base.TENSOR_NAMES, rng.choice([1, 2, 3]))
            self.name = rng.choice(names)
            tensors = {name: base.random_safetensor(rng, tuple(CODES)) for name in names}
            code, self.shape, self.data = tensors[self.name]
            self.dtype, self.order, self.extension = CODES[code], "C", "safetensors"
            self.blob = base.safetensors_file(tensors, rng.choice([None, {"a": "1"}]))
            sizes = {name: len(data) for name, (_, _, data) in tensors.items()}
            self.start = len(self.blob) - sum(sizes.values())
            for name in names:
                if name == self.name:
                    break
                self.start += sizes[name]
            if len(names) > 1 or rng.random() < 0.5:
                self.options = [rng.choice(["-t", "--tensor"]), self.name]
        else:
            self.dtype = base.random_dtype(rng)
            self.shape = random_shape(rng, self.dtype.itemsize)
            self.order, self.extension = rng.choice("CCF"), "npy"
            header, fortran = npy_header(self.shape, self.dtype, self.order)
            self.order = "F" if fortran else "C"
            count = int(np.prod(self.shape, dtype=object)) if self.shape else 1
            self.data = random_bytes(rng, count * self.dtype.itemsize)
            self.start = len(header)
            self.blob = header + self.data
            if rng.random() < 0.2:
                self.blob += random_bytes(rng, rng.choice([1, 64, 999]))

    def with_data(self, data):
        return self.blob[: self.start] + bytes(data) + self.blob[self.start + len(data) :]

    def elements(self, data):
        """A writable array of raw elements over the bytes of a bytearray."""
        return np.ndarray(self.shape, "V%d" % self.dtype.itemsize, buffer=data, order=self.order)


def swapped(rng, dtype):
    """The same dtype in the other byte order, where it is one that is swapped."""
    plain = dtype.kind in "biufc" and dtype.itemsize <= 16 and dtype.str[1:] not in ("f16", "c32")
    return dtype.newbyteorder() if plain and rng.random() < 0.3 else dtype


def stretched_from(rng, shape):
    """A shape that NumPy broadcasts to `shape` in an assignment."""
    shape = [1 if rng.random() < 0.3 else n for n in shape]
    shape = shape[rng.randrange(len(shape) + 1) :] if rng.random() < 0.4 else shape
    while rng.random() < 0.2 and len(shape) < 60:
        shape = [1] + shape
    return tuple(shape)


def save(rng, array, dtype, name):
    """A file that holds an array of raw elements, as that dtype."""
    code = base.FROM_CODE.get(dtype.str[1:]) if dtype.names is None else None
    if code and dtype.str[0] != ">" and rng.random() < 0.25:
        tensors = {"v": (code, array.shape, array.tobytes())}
        options = []
        if rng.random() < 0.4:
            tensors["other"] = ("U8", (3,), b"abc")
            options = ["--value-tensor", "v"]
        return name + ".safetensors", base.safetensors_file(tensors, None), options
    order = rng.choice("CCF")
    header, fortran = npy_header(array.shape, dtype, order)
    return name + ".npy", header + array.tobytes("F" if fortran else "C"), []


NUMBERS = ["0", "1", "-1", "7", "255", "256", "-129", "0x10", "1_000", "1.5", "-2.25e3", "1e-30", "65519", "65520",
           "1e40", "nan", "inf", "-inf", "3.14159265358979", "16777217", "-0.0", "true", "false", "1+2j", "-2.5j",
           "18446744073709551615", "18446744073709551616", "-9223372036854775808", "0.1", ".5", "2."]


def fill_element(text, dtype):
    """The bytes of the element, or None where it has none."""
    if dtype.names is not None or dtype.kind not in "biufc" or dtype.str[1:] in ("f16", "c32"):
        return None
    if dtype.kind == "b":
        truth = {"true": True, "1": True, "false": False, "0": False}
        return np.array(truth[text], dtype).tobytes() if text in truth else None
    if dtype.kind in "iu":
        try:
            return np.array(int(text, 0), dtype).tobytes()
        except (ValueError, OverflowError):
            return None
    try:
        value = complex(text)
    except ValueError:
        try:
            value = complex(int(text, 0))
        except ValueError:
            return None
    if dtype.kind == "f":
        if "j" in text:
            return None
        value = float(int(text, 0) if text.startswith("0x") else text)
    with np.errstate(all="ignore"):
        return np.array(value).astype(dtype).tobytes()


def assign_case(case):
    rng = case.rng
    target = Target(rng)
    dtype = target.dtype
    size = dtype.itemsize
    case.story.append(f"target: shape {target.shape} dtype {dtype.str} {target.extension} {target.order}")
    request = make_request(rng, target.shape, wrong_rate=0.06)
    statuses, says = request.statuses, request.says
    after = bytearray(target.data)
    slice_shape = None
    if statuses == (0,):
        items = request.items if Ellipsis in request.items else request.items + (Ellipsis,)
        slice_shape, _ = Tensor(target.data, target.shape, size, target.order).take(request.items)
    options, ways, files = [], {}, {}
    if rng.random() < 0.12:
        text = rng.choice(NUMBERS)
        options = [f"--fill={text}"] if rng.random() < 0.5 else ["--fill", text]
        element = fill_element(text, dtype)
        if statuses == (0,) and element is None:
            statuses, says = (1, 2), None
        elif statuses == (0,) and size:
            target.elements(after)[items] = np.frombuffer(element, "V%d" % size)[0]
    else:
        shape = slice_shape if slice_shape is not None else (2,)
        how = rng.choice(["equal"] * 6 + ["broadcast", "broadcast", "wrong", "stretch"])
        if how in ("broadcast", "stretch"):
            shape = stretched_from(rng, shape)
        elif how == "wrong":
            shape = rng.choice([shape + (2,), shape[1:], tuple(n + (i == 0) for i, n in enumerate(shape)), (3, *shape)])
            shape = shape[:64]
        value_dtype = swapped(rng, dtype)
        count = int(np.prod(shape, dtype=object)) if shape else 1
        raw = random_bytes(rng, count * size)
        if size:
            value = np.ndarray(shape, "V%d" % size, buffer=raw)
            written = value
            if value_dtype != dtype:
                width = size // 2 if dtype.kind == "c" else size
                flat = np.frombuffer(raw, "u%d" % width).byteswap() if width > 1 else np.frombuffer(raw, "u1")
                written = np.ndarray(shape, "V%d" % size, buffer=flat.tobytes())
        else:
            value = written = np.ndarray(shape, np.dtype([]))
        if how == "broadcast":
            options.append("--broadcast")
        name, blob, more = save(rng, value, value_dtype, "value") if size else (
            "value.npy", npy_header(shape, value_dtype)[0], [])
        options += more
        if rng.random() < 0.04 and dtype.str != "|u1":
            name, blob, options = "value.npy", npy_header(shape, np.dtype("u1"))[0] + bytes(count), options[:len(options) - len(more)]
            if statuses == (0,):
                statuses, says = (1,), "dtype"
        files[name] = blob
        arg, ways, io_allowed = base.input_way(rng, name, blob)
        options += ["--value", arg]
        if io_allowed and rng.random() < 0.4:
            options += ["--io", rng.choice(["auto", "mmap", "read"])]
        if statuses == (0,):
            if how != "broadcast" and shape != slice_shape:
                statuses, says = (1,), "shape"
            elif size:
                try:
                    target.elements(after)[items] = written
                except ValueError:
                    statuses, says = (1,), "could not broadcast input array from shape"
            else:
                try:
                    np.zeros(slice_shape, "u1")[...] = np.zeros(shape, "u1")
                except ValueError:
                    statuses, says = (1,), "could not broadcast input array from shape"
    expected = target.with_data(after) if statuses == (0,) else target.blob
    check_both(case, "assign", target, request.args, options, ways, files, statuses, says, expected)


def check_both(case, command, target, index_args, options, ways, files, statuses, says, expected):
    """Run a command with -o and with --in-place, and look at every byte."""
    rng = case.rng
    if rng.random() < 0.4:
        options = options + ["-j", str(rng.randrange(1, 5))]
    for name, blob in files.items():
        case.write(name, blob)
    in_name, out_name = "in." + target.extension, "out." + target.extension
    case.write(in_name, target.blob)
    copied = dict(files, **{in_name: target.blob})
    place = rng.choice([["-o", out_name], ["--output=" + out_name], ["-o", in_name, "--force"]])
    if rng.random() < 0.08:
        status, out, err = case.run([command, in_name, *index_args, *target.options, *options, *place, "--dry-run"], **ways)
        case.check_names(copied)
        if statuses == (0,) and (status != 0 or not out.startswith(b"would write ")):
            raise Failure(f"the dry run ends with {status}")
    status, out, err = case.run([command, in_name, *index_args, *target.options, *options, *place], **ways)
    result = in_name if "--force" in place else out_name
    if statuses == (0,):
        if status != 0 or err:
            raise Failure(f"exit status {status} with {err!r}, expected 0 and no message")
        case.check_names(set(copied) | {result})
        copied[result] = expected
    else:
        case.check_error(status, err, statuses, says)
        case.check_names(copied)
    for name, blob in copied.items():
        with open(case.path(name), "rb") as file:
            compare(file.read(), blob, f"{name} after -o")
    case.write(in_name, target.blob)
    copied[in_name] = expected
    for again in range(2):
        status, out, err = case.run([command, in_name, *index_args, *target.options, *options, "--in-place"], **ways)
        if statuses != (0,):
            case.check_error(status, err, statuses, says)
        elif status != 0 or err:
            raise Failure(f"in place: exit status {status} with {err!r}, expected 0 and no message")
        case.check_names(copied)
        for name, blob in copied.items():
            with open(case.path(name), "rb") as file:
                compare(file.read(), blob, f"{name} after --in-place, {again} times repeated")


# ---------------------------------------------------------------- the runner


def run_case(job):
    binary, seed, number, keep = job
    rng = random.Random(f"assign {seed}/{number}")
    case = Case(rng, binary, frozenset())
    kind = rng.choices([assign_case], [1])[0]
    try:
        kind(case)
        return number, None
    except Failure as failure:
        problem = str(failure)
    except Exception as error:  # a case that the test itself cannot judge is a failure too
        problem = "the test itself: " + repr(error) + "\n" + traceback.format_exc()
    finally:
        if not keep:
            shutil.rmtree(case.dir, ignore_errors=True)
    story = "\n  ".join([f"FAILED case {number} ({kind.__name__})", *case.story, problem])
    return number, story + (f"\n  files: {case.dir}" if keep else "")


def main():
    parser = argparse.ArgumentParser(description="tslice assign and scatter against live NumPy")
    parser.add_argument("--bin", default="target/debug/tslice")
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this case alone")
    parser.add_argument("--keep", action="store_true", help="leave the files of the cases")
    parser.add_argument("--jobs", type=int, default=max(2, os.cpu_count() or 2))
    parser.add_argument("--show", type=int, default=20, help="print at most this many failures")
    options = parser.parse_args()
    binary = os.path.abspath(options.bin)
    if not os.access(binary, os.X_OK):
        sys.exit(f"no program at {options.bin}")
    numbers = range(options.count) if options.only is None else [options.only]
    jobs = [(binary, options.seed, n, options.keep) for n in numbers]
    started, passed, failed = time.monotonic(), 0, 0
    method = multiprocessing.get_context("fork")
    with concurrent.futures.ProcessPoolExecutor(options.jobs, method, initializer=base.start_worker) as workers:
        for number, problem in workers.map(run_case, jobs, chunksize=max(1, min(50, len(jobs) // 8))):
            if problem is None:
                passed += 1
                continue
            failed += 1
            if failed <= options.show:
                print(problem)
                print(f"  again: python tests/assign_differential.py --bin {shlex.quote(options.bin)} "
                      f"--seed {options.seed} --only {number} --keep", flush=True)
    print(f"assign_differential: seed {options.seed}, NumPy {np.__version__}, {time.monotonic() - started:.1f} s")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
