"""What the jobs of assembly_differential.py share: random arrays, the files that hold them, a command line that is put
together piece by piece, and whether its output holds what it must."""

import io
import json
import os
import zipfile

import numpy as np

from cases import common_options
from formats import aligned, check_aligned, read_safetensors, safetensors_file
from harness import Failure
from random_tensors import FROM_CODE, npy_header, random_bytes

try:
    from safetensors import deserialize
except ImportError:
    deserialize = None

SHARD_INDEX = "model.safetensors.index.json"


class Refused(Exception):
    """Why there is no output. The message holds each of these words; `one|another` stands for either."""


# ---------------------------------------------------------------- arrays


def random_array(rng, shape, dtype, order="C"):
    """An array of random bits."""
    size = int(np.prod(shape, dtype=object)) * dtype.itemsize
    data = (random_bytes(rng, min(size, 1 << 20)) * (size // (1 << 20) + 1))[:size]
    if dtype == np.dtype("?"):
        data = bytes(byte & 1 for byte in data)
    return np.ndarray(shape, dtype, data, order=order)


def raw(array):
    """The elements as bytes, so that NumPy copies the padding of a structure too."""
    itemsize = array.dtype.itemsize
    return array.view("V%d" % itemsize) if itemsize else np.ndarray(array.shape, np.dtype([]))


def of_raw(array, dtype):
    return np.ndarray(array.shape, dtype, np.ascontiguousarray(array).tobytes())


def take(array, index):
    """array[index] with the padding of structures, which NumPy leaves out where an index has lists."""
    try:
        taken = raw(array)[index]
    except IndexError:
        raise Refused("out of bounds|cannot cast") from None
    return taken.view(array.dtype) if array.dtype.itemsize else np.ndarray(taken.shape, array.dtype)


def swapped(array, dtype):
    """The same values in the byte order of another dtype, bit for bit."""
    return array if array.dtype == dtype or not dtype.itemsize else array.byteswap().view(dtype)


def little(array):
    return array.astype(array.dtype.newbyteorder("<"))


def code_of(dtype):
    """The dtype in safetensors, or None."""
    return FROM_CODE.get(dtype.newbyteorder("<").str[1:])


def tensors_of(arrays):
    """The arrays as safetensors has them."""
    return {name: (code_of(array.dtype), array.shape, little(array).tobytes()) for name, array in arrays.items()}


def joined(arrays, stacks, axis, cast=None, casting="same_kind"):
    """What NumPy joins them to, in the byte order of the first; or Refused."""
    join, dtype = np.stack if stacks else np.concatenate, arrays[0].dtype
    try:
        if cast is not None:
            return join(arrays, axis=axis, dtype=cast.newbyteorder("="), casting=casting).astype(cast)
        if any(array.dtype.newbyteorder("<") != dtype.newbyteorder("<") for array in arrays):
            raise Refused("has dtype|does not fit shape|out of bounds|zero-dim")
        return of_raw(join([raw(swapped(array, dtype)) for array in arrays], axis), dtype)
    except TypeError:
        raise Refused("cannot cast|does not fit shape|out of bounds|zero-dim") from None
    except ValueError:  # np.exceptions.AxisError is one
        words = "does not fit shape" if len({array.shape for array in arrays}) > 1 else "zero-dim"
        raise Refused(words + "|out of bounds" + "|cannot cast" * (cast is not None)) from None


# ---------------------------------------------------------------- inputs


def write_file(case, path, kind, arrays, metadata=None):
    """Writes a file of these arrays, and answers them as they are in it, in its order."""
    if kind == "shards":
        return write_shards(case, path, arrays, metadata)
    if kind == "safetensors":
        case.write(path, safetensors_file(tensors_of(arrays), metadata))
        return {name: little(array) for name, array in arrays.items()}
    if kind == "npy":
        (array,) = arrays.values()
        order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        header, _ = npy_header(array.shape, array.dtype, order)
        case.write(path, header + raw(array).tobytes(order))
    else:
        with open(case.path(path), "wb") as file:
            (np.savez if kind == "npz" else np.savez_compressed)(file, **arrays)
    return arrays


def write_shards(case, folder, arrays, metadata):
    rng, count, parts = case.rng, case.rng.choice([1, 2, 3]), {}
    os.mkdir(case.path(folder))
    for name, array in arrays.items():
        parts.setdefault(f"model-{rng.randint(1, count):05}-of-{count:05}.safetensors", {})[name] = array
    held = {}
    for file, part in sorted(parts.items()):
        held |= write_file(case, f"{folder}/{file}", "safetensors", part, metadata)
    weight_map = {name: file for file, part in parts.items() for name in part}
    index = {"metadata": {"total_size": 1}, "weight_map": weight_map}
    case.write(f"{folder}/{SHARD_INDEX}", json.dumps(index, indent=2).encode())
    return held


# ---------------------------------------------------------------- outputs


def check_npy(blob, array, order):
    found = np.load(io.BytesIO(blob))
    if (found.shape, found.dtype) != (array.shape, array.dtype):
        raise Failure(f"{found.dtype} {found.shape}, expected {array.dtype} {array.shape}")
    data = raw(array).tobytes(order)
    if blob[len(blob) - len(data):] != data:
        raise Failure("other elements")
    if not found.flags[f"{order}_CONTIGUOUS"]:
        raise Failure(f"not in order {order}")


def check_tensors(found, metadata, expected, expected_metadata):
    """Tensors of a safetensors file, and the metadata."""
    check_aligned(found)
    if [*found.items()] != [*aligned(expected).items()]:
        raise Failure(f"tensors: {list(found)}, expected {list(expected)}, or other bytes")
    if (metadata or {}) != expected_metadata:
        raise Failure(f"metadata: {metadata}, expected {expected_metadata}")


class Output:
    """An output of one of these formats, its elements in one of these orders where the format has them."""

    def __init__(self, rng, kinds, orders="C", name="out"):
        self.kind = rng.choice(kinds)
        self.order = rng.choice(orders) if self.kind not in ("safetensors", "shards") else "C"
        self.extension = {"deflated": "npz"}.get(self.kind, self.kind)
        self.target = name if self.kind == "shards" else f"{name}.{self.extension}"
        self.size = rng.choice([1, 1, 20, 100, 500, 5_000_000])
        self.has_metadata = self.kind in ("safetensors", "shards")
        given = {"deflated": [["--deflate"]], "shards": [["--shard-size", str(self.size)]]}
        self.options = given.get(self.kind, [])
        if self.order == "F" or "F" in orders and rng.random() < 0.1:
            self.options.append(["--order", self.order])

    def check(self, case, arrays, metadata):
        """It holds these arrays; where its name is a pattern, each is in the file of its name."""
        if self.kind == "shards":
            self.check_shards(case, tensors_of(arrays), metadata)
        elif "{" not in self.target:
            self.check_file(case, self.target, arrays, metadata)
        else:
            for name, array in arrays.items():
                self.check_file(case, name, {None: array}, metadata)

    def check_file(self, case, target, arrays, metadata):
        """The file holds these arrays; one of the name None has any."""
        with open(case.path(target), "rb") as file:
            blob = file.read()
        if self.kind == "safetensors":
            return self.check_safetensors(blob, tensors_of(arrays), metadata)
        if self.kind in ("npz", "deflated"):
            with zipfile.ZipFile(io.BytesIO(blob)) as archive:
                found = {name.removesuffix(".npy"): archive.read(name) for name in archive.namelist()}
            if len(found) != len(arrays) or [*arrays] not in ([None], [*found]):
                raise Failure(f"members: {list(found)}, expected {list(arrays)}")
            blobs = found.values()
        else:
            blobs = [blob]
        for blob, array in zip(blobs, arrays.values()):
            if self.kind != "bin":
                check_npy(blob, array, self.order)
            elif blob != raw(array).tobytes(self.order):
                raise Failure(f"{target}: other bytes")

    def check_safetensors(self, blob, tensors, metadata):
        found, texts = read_safetensors(blob)
        if [*tensors] == [None]:
            tensors = dict(zip(found, tensors.values()))
        check_tensors(found, texts, tensors, metadata)
        if deserialize:
            theirs = {name: (one["dtype"], tuple(one["shape"]), bytes(one["data"])) for name, one in deserialize(blob)}
            if theirs != tensors:
                raise Failure("the package reads something else")

    def check_shards(self, case, tensors, metadata):
        """Each shard holds what comes next and fits; the index says in which one each tensor is."""
        shards = []
        for name, tensor in tensors.items():
            if not shards or sum(len(data) for _, _, data in (*shards[-1].values(), tensor)) > self.size:
                shards.append({})
            shards[-1][name] = tensor
        files = [f"model-{number + 1:05}-of-{len(shards):05}.safetensors" for number in range(len(shards))]
        if sorted(os.listdir(case.path("out"))) != [*files, SHARD_INDEX]:
            raise Failure(f"files: {os.listdir(case.path('out'))}, expected {len(shards)} shards")
        for file, shard in zip(files, shards):
            with open(case.path(f"out/{file}"), "rb") as opened:
                check_tensors(*read_safetensors(opened.read()), shard, metadata)
        total = {"total_size": sum(len(data) for _, _, data in tensors.values())}
        weight_map = {name: file for file, shard in zip(files, shards) for name in shard}
        with open(case.path(f"out/{SHARD_INDEX}"), "rb") as opened:
            index = json.load(opened)
        if index["metadata"] != total or index["weight_map"] != weight_map:
            raise Failure(f"index: {index}, expected {total} and {weight_map}")


# ---------------------------------------------------------------- one run


class Plan:
    """A command line, piece by piece, and what must come of it."""

    def __init__(self, case):
        self.case, self.rng = case, case.rng
        # the inputs, and how they may be given: as names, lines or zeros of a list, or one in a pipe
        self.command, self.paths, self.ways, self.index = None, [], ["names"], []
        # groups of words, which are shuffled
        self.options = common_options(case.rng, True)
        self.output = None
        # what a refusal ends with, and what notes say, or None for any
        self.statuses, self.notes = (1,), []

    def add(self, kind, arrays, metadata=None, path=None):
        """Writes one more input, and answers the arrays as they are in it, in its order."""
        self.paths.append(path or f"in{len(self.paths)}.{kind}")
        return write_file(self.case, self.paths[-1], kind, arrays, metadata)

    def inputs(self):
        """The words for the inputs, and what standard input is."""
        rng, paths, way = self.rng, self.paths, self.rng.choice(self.ways)
        if way == "names":
            return paths, {}
        if way == "pipe":
            at = rng.randrange(len(paths))
            given = {"stdin": paths[at]}
            if rng.random() < 0.7 and ["--io", "mmap"] not in self.options:
                with open(self.case.path(paths[at]), "rb") as file:
                    given["pipe_in"] = file.read()
            return [*paths[:at], "-", *paths[at + 1:]], given
        end = "\n" if way == "lines" else "\0"
        self.case.write("names", (end.join(paths) + end * (rng.random() < 0.8)).encode())
        words = ["-0"] if way == "zeros" else []
        if rng.random() < 0.5:
            return [*words, "--files-from", "names"], {}
        return [*words, "--files-from=-"], {"stdin": "names"}

    def run(self, expected):
        """Runs it: the output holds the arrays and metadata that are expected, or what is said is why it is Refused."""
        case, rng, output = self.case, self.rng, self.output
        words, given = self.inputs()
        options = self.options + output.options
        rng.shuffle(options)
        command = [self.command, *words, *self.index, *(word for group in options for word in group)]
        to_file = [*command, "-o", output.target]
        there = [name for name in os.listdir(case.dir) if name != "tmp"]
        refused = isinstance(expected, Refused)
        targets = [] if refused else [output.target] if "{" not in output.target else [*expected[0]]
        if rng.random() < (0.4 if refused else 0.1):
            self.check_run(case.run([*to_file, "--dry-run"], **given), expected, prints=True)
            case.check_names(there)
        if targets and output.kind != "shards" and rng.random() < 0.08:
            case.write(targets[-1], b"what stood there before")
            status, _, err = case.run(to_file, **given)
            case.check_error(status, err, (1,), "exists")
            case.check_names([*there, targets[-1]])
            to_file.append("--force")
        way = rng.random()
        can_part = output.kind not in ("shards", "deflated") and self.command != "split" and targets and not given
        if way < 0.17 and can_part:
            count = rng.choice([2, 3, 7])
            for part in rng.sample(range(count), count):
                self.check_run(case.run([*to_file, "--part", f"{part}/{count}"]), expected)
        elif way < 0.4 and output.kind != "shards" and "{" not in output.target and "--force" not in to_file:
            to = {"npy": [], "bin": ["--to", "raw"]}.get(output.kind, ["--to", output.extension])
            stdout = rng.choice(["pipe", "printed"])
            run = case.run([*command, *to], stdout=stdout, **given)
            self.check_run(run, expected, prints=True)
            if stdout == "printed":
                os.remove(case.path(stdout))
            if not refused:
                case.write(output.target, run[1])
        else:
            self.check_run(case.run(to_file, **given), expected)
        case.check_names([*there, *targets])
        if not refused:
            output.check(case, *expected)

    def check_run(self, run, expected, prints=False):
        """What is printed, the exit status and the messages."""
        (status, printed, err), notes = run, self.notes
        refused = isinstance(expected, Refused)
        if printed and (refused or not prints):
            raise Failure(f"{len(printed)} bytes were printed")
        if refused:
            self.case.check_error(status, err, self.statuses)
            if not all(any(one in err for one in word.split("|")) for word in expected.args):
                raise Failure(f"the message does not say {expected.args}")
        elif status or notes == [] and err or notes and (
                err.count("note: ") != len(notes) or not all(note in err for note in notes)):
            raise Failure(f"exit status {status} with {err!r}, expected 0 and {notes or 'no message'}")
