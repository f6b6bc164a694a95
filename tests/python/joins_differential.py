#!/usr/bin/env python3
"""Differential test: `tslice concat`, `tslice stack` and `tslice split` against live NumPy.

    python tests/python/joins_differential.py --bin target/debug/tslice --count 1500 --seed 1

A case is a list of random arrays in files of any format, of one dtype but for the byte order, that
are joined along a random axis. The output must hold what np.concatenate and np.stack make of them,
in the byte order of the first; what they refuse must be refused, and leave no file. Or it is an
array that is split, which must give the parts of np.array_split and np.split, and be joined to what
it was; or a checkpoint that is cut in shards, and is the same when they are joined.

A case is a function of (seed, number): `--only NUMBER` runs one again, `--keep` leaves its files.
"""

import io
import random
import sys
import warnings
import zipfile

import numpy as np

import harness
from cases import Case, common_options
from formats import aligned, check_aligned, read_safetensors, safetensors_file
from harness import Failure
from random_indices import random_items, spell, spell_item
from random_tensors import FROM_CODE, npy_header, random_bytes, random_dtype, start_worker

DTYPES = ["?", "i1", "<i2", ">i2", "<f4", "<f4", ">f4", "<f8", ">f8", "<c8", ">c16", "S3", "<U2", ">U2", "V5",
          "<M8[s]", ">M8[s]"]


def array_of(rng, shape, dtype, order="C"):
    count = int(np.prod(shape, dtype=object)) if shape else 1
    data = random_bytes(rng, min(count * dtype.itemsize, 1 << 20))
    data = (data * (count * dtype.itemsize // (1 << 20) + 1))[: count * dtype.itemsize]
    if dtype == np.dtype("?"):
        data = bytes(byte & 1 for byte in data)
    return np.ndarray(shape, dtype, data, order=order)


def other_order(rng, dtype):
    """The dtype in either byte order, where that is one thing."""
    if dtype.names is not None or dtype.kind == "V" or rng.random() < 0.7:
        return dtype
    return dtype.newbyteorder(rng.choice("<>"))


def raw(array):
    """The elements as bytes, so that NumPy copies the padding of a structure too."""
    itemsize = array.dtype.itemsize
    return array.view("V%d" % itemsize) if itemsize else np.ndarray(array.shape, np.dtype([]))


def take(array, index):
    """array[index] with the padding of structures, which NumPy leaves out where an index has lists."""
    taken = raw(array)[index]
    return taken.view(array.dtype) if array.dtype.itemsize else np.ndarray(taken.shape, array.dtype)


def little(array):
    return array.astype(array.dtype.newbyteorder("<")) if array.dtype.names is None else array


def code_of(dtype):
    return FROM_CODE.get(dtype.newbyteorder("<").str[1:]) if dtype.names is None and dtype.kind != "V" else None


def write(case, name, array, kind, tensor="w"):
    """Writes a file that holds the array, in C or Fortran order where the format has them."""
    if kind == "npy":
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        header, _ = npy_header(array.shape, array.dtype, order)
        case.write(name, header + raw(array).tobytes(order))
    elif kind in ("npz", "npz-deflated"):
        with open(case.path(name), "wb") as file:
            (np.savez if kind == "npz" else np.savez_compressed)(file, **{tensor: array})
    else:
        tensors = {tensor: (code_of(array.dtype), array.shape, little(array).tobytes())}
        with open(case.path(name), "wb") as file:
            file.write(safetensors_file(tensors))


def check_output(case, blob, extension, expected, order):
    """The bytes of an output hold the array."""
    if extension == "npy":
        found = np.load(io.BytesIO(blob))
    elif extension == "npz":
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            (name,) = archive.namelist()
            blob = archive.read(name)
        found = np.load(io.BytesIO(blob))
    elif extension == "safetensors":
        ((code, shape, data),) = read_safetensors(blob)[0].values()
        if list(shape) != list(expected.shape) or data != little(expected).tobytes():
            raise Failure(f"safetensors: {shape}, expected {expected.shape}, or other bytes")
        return
    else:
        if blob != raw(expected).tobytes(order):
            raise Failure("other bytes")
        return
    if found.shape != expected.shape:
        raise Failure(f"shape {found.shape}, expected {expected.shape}")
    if found.dtype != expected.dtype:
        raise Failure(f"dtype {found.dtype}, expected {expected.dtype}")
    data = raw(expected).tobytes(order)
    if blob[len(blob) - len(data):] != data:
        raise Failure("other elements")
    if found.ndim > 1 and found.size > 1 and order == "F" and not found.flags.f_contiguous:
        raise Failure("not in Fortran order")


def random_shapes(rng, stack):
    ndim = rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5] if stack else [1, 1, 2, 2, 3, 3, 4, 5])
    shape = [rng.choice([1, 2, 3, 4, 5, 7, 9]) for _ in range(ndim)]
    if rng.random() < 0.1:
        shape = [rng.choice([40, 129, 300]) if rng.random() < 0.5 else n for n in shape]
        while np.prod(shape) > 60_000:
            shape[shape.index(max(shape))] = 2
    if ndim and rng.random() < 0.06:
        shape[rng.randrange(ndim)] = 0
    axis = rng.randrange(ndim + stack)
    count = rng.choice([1, 2, 2, 3, 3, 4, 5, 8, 120])
    if count == 120:
        shape = [min(n, 4) for n in shape]
    shapes = []
    for _ in range(count):
        one = list(shape)
        if not stack and rng.random() < 0.7:
            one[axis] = rng.choice([0, 1, 2, 3, 6, 50 if count < 9 else 4])
        shapes.append(tuple(one))
    return shapes, axis


def list_item(case, length):
    """A list or a mask in the file list.npy, and whether it fits an axis."""
    rng = case.rng
    if rng.random() < 0.3:
        item = np.array([rng.random() < 0.6 for _ in range(length)], bool)
    else:
        count = rng.choice([0, 1, 2, 3, 5]) if length else 0
        item = np.array([rng.randrange(-length, length) for _ in range(count)], rng.choice(["<i8", ">i4", "<i2"]))
    fits = item.dtype == bool or not item.size or rng.random() < 0.85
    if not fits:
        item[rng.randrange(item.size)] = rng.choice([length, -length - 1])
    np.save(case.path("list.npy"), item)
    return item, fits


def join_case(case):
    rng = case.rng
    stack = rng.random() < 0.4
    command = "stack" if stack else "concat"
    shapes, axis = random_shapes(rng, stack)
    dtype = random_dtype(rng) if rng.random() < 0.25 else np.dtype(rng.choice(DTYPES))
    arrays, names, kinds = [], [], []
    for number, shape in enumerate(shapes):
        array = array_of(rng, shape, other_order(rng, dtype), rng.choice("CCF"))
        kind = rng.choice(["npy", "npy", "npy", "npz", "npz-deflated", "safetensors"])
        if dtype.names is not None or (kind == "safetensors" and code_of(dtype) is None):
            kind = "npy"
        if kind == "safetensors" and dtype.kind not in "S":
            array = np.ascontiguousarray(little(array)).reshape(shape)
        arrays.append(array)
        kinds.append(kind)
        names.append(f"{number}.bin")
    statuses, wrong = (0,), rng.random()
    if wrong < 0.04 and len(arrays) > 1 and dtype.names is None and dtype.kind in "fiu":
        at = rng.randrange(1, len(arrays))
        arrays[at], kinds[at] = array_of(rng, shapes[at], np.dtype("i8" if dtype.itemsize != 8 else "i4")), "npy"
        statuses = (1,)
    elif wrong < 0.08 and len(arrays) > 1:
        at = rng.randrange(1, len(arrays))
        arrays[at] = array_of(rng, shapes[at] + (1,) if rng.random() < 0.5 else tuple(n + 1 for n in shapes[at]),
                              arrays[at].dtype)
        bad = np.concatenate if not stack else np.stack
        try:
            bad([np.zeros(a.shape, "?") for a in arrays], axis)
        except ValueError:
            statuses = (1,)
    items = ()
    if rng.random() < 0.25 and len({a.shape for a in arrays}) == 1:
        items = tuple(random_items(rng, arrays[0].shape))
    index = items if Ellipsis in items else items + (Ellipsis,)
    extra, fits = set(), True
    spelled = [spell_item(rng, item, lambda: "") for item in items]
    common = [at for at, lengths in enumerate(zip(*(a.shape for a in arrays))) if len(set(lengths)) == 1]
    listed = statuses == (0,) and not items and common and rng.random() < 0.15
    if listed:
        at = rng.choice(common)
        item, fits = list_item(case, arrays[0].shape[at])
        index, spelled = (slice(None),) * at + (item, Ellipsis), [":"] * at + ["@list.npy"]
        extra.add("list.npy")
        statuses = (0,) if fits else (1,)
    for name, array, kind in zip(names, arrays, kinds):
        write(case, name, array, kind)
    if statuses == (0,):
        ndim = arrays[0][index].ndim
        if items and (ndim == 0 and not stack):
            statuses = (1,)
        elif items:
            axis = rng.randrange(ndim + stack)
    if rng.random() < 0.03:
        axis, statuses = 9, (1,)
    elif rng.random() < 0.3 and statuses == (0,):
        axis -= arrays[0][index].ndim + stack
    extension = rng.choice(["npy", "npy", "npy", "npz", "bin", "safetensors"])
    if extension == "safetensors" and code_of(arrays[0].dtype) is None:
        extension = "npy"
    order = rng.choice("CCF") if extension != "safetensors" else "C"
    args = [] if axis == 0 and rng.random() < 0.5 else rng.choice([["--axis", str(axis)], [f"--axis={axis}"]])
    args = args + (["--order", order] if order == "F" or rng.random() < 0.1 else [])
    if spelled:
        args += ["--index", spell(rng, spelled)]
    args += [option for group in common_options(rng, True) for option in group]
    if extension == "npz" and rng.random() < 0.5:
        args += ["--deflate"]
    expected = None
    if statuses == (0,):
        taken = [take(array, index) for array in arrays]
        first = taken[0].dtype if kinds[0] != "safetensors" else taken[0].dtype.newbyteorder("<")
        join = np.stack if stack else np.concatenate
        joined = join([raw(swapped(array, first)) for array in taken], axis)
        expected = np.ndarray(joined.shape, first, np.ascontiguousarray(joined).tobytes())
    ways = {}
    inputs = list(names)
    way = rng.choice(["names", "names", "names", "list", "null", "pipe"])
    if way == "pipe":
        at = rng.randrange(len(names))
        inputs[at] = "-"
        with open(case.path(names[at]), "rb") as file:
            ways = {"stdin": names[at], "pipe_in": file.read()} if rng.random() < 0.7 else {"stdin": names[at]}
        if "pipe_in" in ways and "mmap" in " ".join(args):
            inputs, ways = list(names), {}
    if way in ("list", "null"):
        end = b"\n" if way == "list" else b"\0"
        blob = end.join(name.encode() for name in names) + (end if rng.random() < 0.8 else b"")
        args += ["-0"] if way == "null" else []
        if rng.random() < 0.5:
            case.write("names", blob)
            extra.add("names")
            args += ["--files-from", "names"]
        else:
            case.write("names", blob)
            extra.add("names")
            args += ["--files-from=-"]
            ways = {"stdin": "names"}
        inputs = []
    out = rng.choice(["file", "file", "stdout"])
    if out == "file":
        args += ["-o", "out." + extension]
    elif extension != "npy":
        args += ["--to", "raw" if extension == "bin" else extension]
    status, printed, err = case.run([command, *inputs, *args], **ways)
    there = set(names) | extra
    if statuses == (0,):
        if status != 0 or err:
            raise Failure(f"exit status {status} with {err!r}, expected 0 and no message")
        case.check_names(there | ({"out." + extension} if out == "file" else set()))
        if out == "file":
            with open(case.path("out." + extension), "rb") as file:
                printed = file.read()
        check_output(case, printed, extension, expected, order)
    else:
        case.check_error(status, err, statuses)
        case.check_names(there)
        if printed:
            raise Failure("something was printed")
        if not fits:
            # positions are checked before a byte is written, and where nothing is
            status, printed, err = case.run([command, *inputs, *args, "--dry-run"], **ways)
            case.check_error(status, err, statuses)
            if printed:
                raise Failure("something was printed without an output")


CASTS = ["?", "<i2", ">i4", "<i8", "u1", ">u2", "<f2", ">f4", "<f8", "<c8", ">c16"]


def cast_case(case):
    """Inputs of several dtypes, cast before they are joined: np.concatenate and np.stack with dtype=."""
    rng = case.rng
    stack = rng.random() < 0.3
    shapes, axis = random_shapes(rng, stack)
    few = rng.sample(CASTS, rng.choice([1, 2, 2, 3, 5]))
    arrays = []
    for number, shape in enumerate(shapes):
        values = np.array([rng.randrange(100) for _ in range(min(int(np.prod(shape)), 1000))])
        array = np.resize(values, shape).astype(rng.choice(few))
        array = np.asarray(array, order="F") if rng.random() < 0.4 else array  # asfortranarray gives 0-d ones an axis
        write(case, f"{number}.npy", array, "npy")
        arrays.append(array)
    to = np.dtype(rng.choice(["<f8", ">f4", "<c16", "<f2", ">i4", "<i8"]))
    casting = rng.choice(["same_kind", "same_kind", "unsafe"])
    args = ["--axis", str(axis), "--cast", to.str, "--casting", casting.replace("_", "-")]
    order = rng.choice("CCF")
    args += ["--order", order] if order == "F" else []
    args += [option for group in common_options(rng, True) for option in group]
    names = [f"{number}.npy" for number in range(len(arrays))]
    inputs, ways = list(names), {}
    if rng.random() < 0.2 and "mmap" not in " ".join(args):
        at = rng.randrange(len(names))
        inputs[at], ways = "-", {"stdin": names[at]}
    to_file = rng.random() < 0.5
    args += ["-o", "out.npy"] if to_file else []
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            join = np.stack if stack else np.concatenate
            expected = join(arrays, axis=axis, dtype=to.newbyteorder("="), casting=casting).astype(to)
    except TypeError:
        expected = None
    status, printed, err = case.run(["stack" if stack else "concat", *inputs, *args], **ways)
    if expected is None:
        case.check_error(status, err, (1,))
        case.check_names(set(names))
        return
    if status != 0 or err:
        raise Failure(f"exit status {status} with {err!r}, expected 0 and no message")
    if to_file:
        with open(case.path("out.npy"), "rb") as file:
            printed = file.read()
    check_output(case, printed, "npy", expected, order)


def parts_of(rng, array, axis):
    """The flags of a split, and the parts that NumPy makes."""
    n = array.shape[axis]
    way = rng.choice(["parts", "parts", "sizes", "at", "percents", "every"])
    if way == "parts":
        count = rng.choice([1, 2, 3, 4, 7, 20])
        return ["--parts", str(count)], np.array_split(array, count, axis)
    if way == "sizes":
        cuts = sorted(rng.randrange(n + 1) for _ in range(rng.randrange(4)))
        sizes = np.diff([0, *cuts, n]).tolist()
        return ["--sizes", ",".join(map(str, sizes))], np.split(array, cuts, axis)
    if way == "at":
        cuts = [rng.randrange(-n - 2, n + 3) for _ in range(rng.randrange(1, 5))]
        cuts = sorted(cuts) if rng.random() < 0.6 else cuts
        return [f"--at={','.join(map(str, cuts))}"], np.split(array, cuts, axis)
    if way == "percents":
        percents = sorted(rng.choice([0, 10, 12.5, 33.3, 50, 80, 99.999999, 100]) for _ in range(rng.randrange(1, 4)))
        if rng.random() < 0.5:
            text = [f"{percent}%" for percent in percents]
            text = [*text, str(n)] if rng.random() < 0.3 else text
            cuts = [n * round(percent * 10**6) // 10**8 for percent in percents] + [n] * (len(text) - len(percents))
            return [f"--at={','.join(text)}"], np.split(array, cuts, axis)
        shares = np.diff([0, *[round(percent * 10**6) for percent in percents], 10**8]).tolist()
        sizes = [n * share // 10**8 for share in shares[:-1]]
        text = [f"{share // 10**6}.{share % 10**6:06}%" for share in shares]
        return ["--sizes", ",".join(text)], np.split(array, np.cumsum(sizes).tolist(), axis)
    every = rng.choice([1, 2, 3, 5, 100])
    return ["--every", str(every)], np.split(array, range(every, n, every), axis)


def split_case(case):
    rng = case.rng
    ndim = rng.choice([1, 1, 2, 2, 3, 3, 4])
    shape = [rng.choice([1, 2, 3, 5, 8, 13]) for _ in range(ndim)]
    if rng.random() < 0.1:
        shape[rng.randrange(ndim)] = rng.choice([0, 200, 700])
    while np.prod(shape) > 60_000:
        shape[shape.index(max(shape))] = 2
    dtype = random_dtype(rng) if rng.random() < 0.25 else np.dtype(rng.choice(DTYPES))
    array = array_of(rng, shape, dtype, rng.choice("CCF"))
    kind = rng.choice(["npy", "npy", "npy", "npz", "npz-deflated", "safetensors"])
    if dtype.names is not None or (kind == "safetensors" and code_of(dtype) is None):
        kind = "npy"
    write(case, "in.bin", array, kind)
    items = tuple(random_items(rng, array.shape)) if rng.random() < 0.3 else ()
    index = items if Ellipsis in items else items + (Ellipsis,)
    values = raw(array)[index]
    if not isinstance(values, np.ndarray) or values.ndim == 0:
        items, values = (), raw(array)
    axis = rng.randrange(values.ndim)
    flags, parts = parts_of(rng, values, axis)
    if kind == "safetensors":
        dtype = dtype.newbyteorder("<")
        parts = [raw(little(part.view(array.dtype))) for part in parts]
    extension = rng.choice(["npy", "npy", "npz", "bin", "safetensors"])
    if extension == "safetensors" and code_of(dtype) is None:
        extension = "npy"
    order = rng.choice("CCF") if extension != "safetensors" else "C"
    digits, pattern = rng.choice([(0, "{}"), (5, "{:05}"), (3, "{:03}"), (1, "{:01}")])
    options = ["--order", order] if order == "F" else []
    options += [option for group in common_options(rng, True) for option in group]
    options += ["--deflate"] if extension == "npz" and rng.random() < 0.4 else []
    spelled = [spell(rng, [spell_item(rng, item, lambda: "") for item in items])] if items else []
    ways, source = {}, "in.bin"
    if rng.random() < 0.3 and "mmap" not in options:
        with open(case.path("in.bin"), "rb") as file:
            ways, source = {"stdin": "in.bin", "pipe_in": file.read()}, "-"
    names = [f"part-{number:0{digits}}.{extension}" for number in range(len(parts))]
    args = ["split", source, *spelled, *flags, f"--axis={axis - values.ndim if rng.random() < 0.3 else axis}", *options]
    out = ["-o", f"part-{pattern}.{extension}"]
    existing = rng.random() < 0.1
    if existing:
        case.write(names[-1], b"what stood there before")
        status, _, err = case.run([*args, *out], **ways)
        case.check_error(status, err, (1,), "exists")
        case.check_names({"in.bin", names[-1]})
        out.append("--force")
    status, printed, err = case.run([*args, *out], **ways)
    lengths = {part.shape[axis] for part in parts}
    is_uneven = flags[0] == "--parts" and len(lengths) > 1 and not {"-q", "--quiet"} & set(options)
    notes = [f"have sizes from {min(lengths)} to {max(lengths)}\nhint: --equal refuses that\n"] if is_uneven else []
    if names != sorted(names) and not {"-q", "--quiet"} & set(options):
        notes.append("names of the parts sort otherwise than their numbers\n")
    if status != 0 or printed or not all(note in err for note in notes) or err.count("note: ") != len(notes):
        raise Failure(f"exit status {status} with {err!r}, expected 0 and {notes!r}")
    case.check_names({"in.bin", *names})
    for name, part in zip(names, parts):
        with open(case.path(name), "rb") as file:
            blob = file.read()
        expected = np.ndarray(part.shape, dtype, np.ascontiguousarray(part).tobytes())
        try:
            check_output(case, blob, extension, expected, order)
        except Failure as failure:
            raise Failure(f"{name}: {failure}") from None
    # what was split is joined to what it was
    if extension != "bin" and sum(part.shape[axis] for part in parts) == values.shape[axis] and len(parts) < 400:
        status, _, err = case.run(["concat", *names, "--axis", str(axis), "--order", order, "-o", "joined.npy"])
        if status != 0:
            raise Failure(f"concat of the parts: {err}")
        joined = raw(little(values.view(array.dtype))) if "safetensors" in (kind, extension) else values
        with open(case.path("joined.npy"), "rb") as file:
            blob = file.read()
        data = np.ascontiguousarray(joined).tobytes() if order == "C" else joined.tobytes("F")
        if not blob.endswith(data) or np.load(io.BytesIO(blob)).shape != joined.shape:
            raise Failure("split and concat are not the identity")


def checkpoint_case(case):
    """A checkpoint is cut for tensor parallelism, and its shards are one checkpoint again."""
    rng = case.rng
    kind = rng.choice(["safetensors", "safetensors", "npz"])
    count = rng.choice([1, 2, 3, 4])
    arrays = {}
    for layer in range(rng.choice([1, 2, 3])):
        width = rng.choice([4, 6, 9, 13])
        for name, shape in [("q", (width, 5)), ("o", (5, width)), ("norm", (7,))]:
            dtype = np.dtype(rng.choice(["<f4", "<f2", "i1", "<i8"]))
            arrays[f"layers.{layer}.{name}"] = array_of(rng, shape, dtype)
    arrays["step"] = np.array(7)
    if kind == "npz":
        np.savez(case.path("in.npz"), **arrays)
    else:
        tensors = {name: (code_of(a.dtype), a.shape, a.tobytes()) for name, a in arrays.items()}
        tensors = tensors if rng.random() < 0.5 else aligned(tensors)
        case.write("in.safetensors", safetensors_file(tensors, {"format": "pt"}))
    steps = [("split", "in", "*.q", 0, "a{}"), ("concat", "a", "*.q", 0, "b"),
             ("split", "b", "*.o", -1, "c{}"), ("concat", "c", "*.o", 1, "d")]
    for command, source, names, axis, target in steps:
        ways = ["--parts", str(count)] if command == "split" else []
        sources = [f"{source}{n}.{kind}" for n in range(count)] if command == "concat" else [f"{source}.{kind}"]
        status, _, err = case.run([command, *sources, "-t", names, f"--axis={axis}", "--keep-rest", *ways,
                                   "-o", f"{target}.{kind}"])
        if status != 0:
            raise Failure(f"{command}: {err}")

    def tensors_of(name):
        with open(case.path(name), "rb") as file:
            blob = file.read()
        if kind == "safetensors":
            tensors, metadata = read_safetensors(blob)
            check_aligned(tensors)
            return tensors, metadata
        with np.load(io.BytesIO(blob)) as archive:
            return {name: (archive[name].dtype, archive[name].shape, archive[name].tobytes()) for name in archive.files}

    for number in range(count):
        shard = tensors_of(f"a{number}.{kind}")
        shard = shard[0] if kind == "safetensors" else shard
        for name, array in arrays.items():
            part = np.array_split(array, count)[number] if name.endswith("q") else array
            if shard[name][2] != part.tobytes() or tuple(shard[name][1]) != part.shape:
                raise Failure(f"shard {number}: {name} differs")
    expected = (tensors, {"format": "pt"}) if kind == "safetensors" else tensors_of("in.npz")
    if tensors_of(f"d.{kind}") != expected:
        raise Failure("the checkpoint is another one")


def swapped(array, dtype):
    """The same values in the byte order of another dtype, bit for bit."""
    return array if array.dtype == dtype or not dtype.itemsize else array.byteswap().view(dtype)


def append_case(case):
    """Rows behind those of a .npy, where it lies."""
    rng = case.rng
    dtype = random_dtype(rng)
    rest = [rng.randint(0, 4) for _ in range(rng.randint(0, 2))]
    first = array_of(rng, [rng.choice([0, 1, 9, 400]), *rest], dtype)
    others = [array_of(rng, [rng.choice([0, 1, 5, 300]), *rest], dtype) for _ in range(rng.randint(1, 3))]
    blob = io.BytesIO()
    np.save(blob, first)
    junk = random_bytes(rng, rng.choice([0, 0, 1, 90, 70_000]))
    case.write("a.npy", blob.getvalue() + junk)
    names = []
    for number, array in enumerate(others):
        out = io.BytesIO()
        # NumPy copies no padding between fields
        np.save(out, array if dtype.names or not dtype.itemsize else np.array(array, order=rng.choice("CF")))
        names.append(f"{number}.npy")
        case.write(names[-1], out.getvalue())
    args = ["concat", "--append-to", "a.npy", *names, "-j", rng.choice("13")]
    if junk:
        status, _, err = case.run(args)
        if status != 1 or f"{len(junk)} bytes follow the array" not in err:
            raise Failure(f"the bytes behind the array are not told: {status}, {err!r}")
    status, out, err = case.run(args + ["--force"] * bool(junk))
    if status or out or err:
        raise Failure(f"status {status}, {err!r}")
    with open(case.path("a.npy"), "rb") as file:
        found = file.read()
    got, wanted = np.load(io.BytesIO(found), allow_pickle=False), b"".join(map(raw, [first, *others]))
    shape = (sum(len(array) for array in [first, *others]), *rest)
    if got.shape != shape or got.dtype != first.dtype or not found.endswith(wanted):
        raise Failure(f"{got.dtype} {got.shape} in place of {first.dtype} {shape}, or other elements")
    if len(found) - len(blob.getvalue()) != len(wanted) - first.nbytes:
        raise Failure("bytes are left behind the array")


def one(job):
    options, number = job
    rng = random.Random(f"joins {options.seed}/{number}")
    kind = rng.choices([join_case, cast_case, split_case, checkpoint_case, append_case], [45, 15, 35, 5, 6])
    return harness.run_case(Case(rng), kind[0], number, options.keep)


def main():
    options = harness.case_parser("tslice concat, stack and split against live NumPy", 1500).parse_args()
    harness.begin(options)
    return harness.run_cases("joins_differential", options, one, start_worker)


if __name__ == "__main__":
    sys.exit(main())
