#!/usr/bin/env python3
"""Differential test: GGUF files against the `gguf` package, read and written; and hostile headers.

    python tests/python/gguf_differential.py --bin target/debug/tslice --count 1000 --seed 1

Every case is a random file of all types that the package knows: written by the package, where it is there, or
as it writes them, in either byte order, version 2 or 3, with other alignments, in several files. Slices of a
tensor must be those of the package's reader (or NumPy's of the same bytes): of quantised types whole blocks of
the last axis; anything else is an error. Two of five cases write a file: of tensors of a GGUF, of a split one or of a
.npz, chosen, sliced, cast and renamed, with other metadata, and must write the bytes that this test writes, of which the
package reads each field. Every fifth case is a hostile file instead: it must be an error in one
line, or hold tensors that lie in it. `--only NUMBER` runs one again.
"""

import importlib
import io
import json
import os
import random
import struct
import sys

import numpy as np

import gguf_files as files
import harness
from cases import Case, check_hostile, compare, output_way
from gguf_files import BLOCKS, NUMBERS
from harness import Failure

KINDS = [*NUMBERS, *BLOCKS]
NAMES = ["blk.0.attn_q.weight", "token_embd.weight", "a b", "größe", "x[0]", "output", "blk.1.ffn_down.weight"]


def package():
    """The `gguf` package, where it is there."""
    try:
        return importlib.import_module("gguf")
    except ImportError:
        return None


# ---------------------------------------------------------------- files


def random_tensors(rng):
    tensors = []
    for name in rng.sample(NAMES, rng.choice([1, 2, 3, 4])):
        shape = [rng.choice([1, 2, 3, 4, 5]) for _ in range(rng.choice([1, 2, 2, 3, 4]))]
        tensors.append(files.tensor(rng, name, rng.choice(KINDS), shape))
    return tensors


def random_value(rng, kind):
    letter = files.LETTERS.get(kind)
    if kind == files.TEXT:
        return rng.choice(["", "llama", "größe\n\u202e", '"quoted"\\', "x" * 300])
    if kind == files.LIST:
        inner = rng.choice([*files.LETTERS, files.TEXT])
        return inner, [random_value(rng, inner) for _ in range(rng.choice([0, 1, 5, 200]))]
    if letter in "fd":
        plain = rng.choice([0.0, 1.5, 1e-5, -3.25, 1e30])
        return struct.unpack(letter, struct.pack(letter, plain))[0]
    if letter == "?":
        return rng.random() < 0.5
    size = struct.calcsize(letter)
    return int.from_bytes(rng.randbytes(size), "little", signed=letter.islower())


def random_metadata(rng):
    kinds = [*files.LETTERS, files.TEXT, files.LIST]
    chosen = [rng.choice(kinds) for _ in range(rng.choice([0, 1, 4]))]
    return [(f"test.k{number}", kind, random_value(rng, kind)) for number, kind in enumerate(chosen)]


def as_json(kind, value):
    """What `info --json` must show."""
    return [as_json(value[0], it) for it in value[1]] if kind == files.LIST else value


def written_by_package(module, path, tensors, metadata, big):
    """The package's own file."""
    endian = module.GGUFEndian.BIG if big else module.GGUFEndian.LITTLE
    writer = module.GGUFWriter(path, "llama", endianess=endian)
    types = module.GGUFValueType
    for key, kind, value in metadata:
        if kind == files.LIST:
            writer.add_key_value(key, value[1], types.ARRAY, sub_type=types(value[0])) if value[1] else None
        else:
            writer.add_key_value(key, value, types(kind))
    for it in tensors:
        if it.kind in NUMBERS and it.kind != "BF16":
            writer.add_tensor(it.name, it.items().copy())
        else:
            # by its bytes, as for types that the package cannot quantise
            rows = np.frombuffer(it.data, "u1").reshape(*it.shape[:-1], -1).copy()
            if not big:
                writer.add_tensor(it.name, rows, raw_dtype=module.GGMLQuantizationType[it.kind])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_by_package(module, path):
    """The items of each tensor, as the package reads them."""
    found = {}
    for it in module.GGUFReader(path).tensors:
        data = it.data
        if it.tensor_type.name in BLOCKS:
            data = np.ascontiguousarray(data).view(f"V{BLOCKS[it.tensor_type.name][2]}")
        elif it.tensor_type.name == "BF16":
            data = np.ascontiguousarray(data).view("V2")
        found[it.name] = data
    return found


# ---------------------------------------------------------------- slices


def random_index(rng, tensor):
    """An index that counts elements, the one that counts items, and whether the first is allowed."""
    items = tensor.items().shape
    ours, theirs, fits = [], [], True
    for axis, length in enumerate(items):
        block = tensor.block if axis == len(items) - 1 else 1
        if block > 1:
            start, stop = sorted(rng.randint(0, length) for _ in range(2))
            how = rng.random()
            if how < 0.6:
                bounds = [rng.choice([start, start - length]) if start < length else start, stop]
                ours.append(f"{bounds[0] * block}:{stop * block}" if start or rng.random() < 0.5 else f":{stop * block}")
                theirs.append(slice(start, stop))
            elif how < 0.8:
                ours.append(":")
                theirs.append(slice(None))
            else:
                ours.append(rng.choice(["0", "-1", "[0]", "::2", "::-1", "1:", f":{block + 1}", "[True]"]))
                if ours[-1] in ("[True]", f":{block + 1}"):
                    ours[-1] = f":{block - 1}"
                theirs.append(None)
                fits = False
            continue
        how = rng.random()
        if how < 0.3:
            at = rng.randrange(-length, length)
            ours.append(str(at))
            theirs.append(at)
        elif how < 0.45 and not any(isinstance(it, list) for it in theirs):
            at = [rng.randrange(-length, length) for _ in range(rng.choice([1, 2, 5]))]
            ours.append(str(at))
            theirs.append(at)
        else:
            bounds = [rng.choice([None, rng.randint(-6, 6)]) for _ in range(2)]
            step = rng.choice([None, 1, 2, -1, -2])
            ours.append(":".join("" if it is None else str(it) for it in (*bounds, step)))
            theirs.append(slice(*bounds, step))
    return "[" + ", ".join(ours) + "]", tuple(theirs), fits


def loaded(data):
    return np.load(io.BytesIO(data))


def slice_case(case):
    rng = case.rng
    tensors, metadata = random_tensors(rng), random_metadata(rng)
    module, big = package() if rng.random() < 0.7 else None, rng.random() < 0.2
    tensors = [it for it in tensors if not big or it.kind in NUMBERS or it.kind in files.SWAPPED] or tensors
    big = big and all(it.kind in NUMBERS or it.kind in files.SWAPPED for it in tensors)
    name, arrays = "m.gguf", {it.name: it.items() for it in tensors}
    if module and not (big and any(it.kind not in NUMBERS or it.kind == "BF16" for it in tensors)):
        metadata = [it for it in metadata if not (it[1] == files.LIST and not it[2][1])]
        written_by_package(module, case.path(name), tensors, metadata, big)
        theirs = read_by_package(module, case.path(name))
        for it in tensors:
            if theirs[it.name].astype(arrays[it.name].dtype).tobytes() != arrays[it.name].tobytes():
                raise Failure(f"the test itself: the package reads {it.name} ({it.kind}) otherwise")
        arrays = theirs
    elif rng.random() < 0.3:
        count = rng.choice([2, 3])
        _, contents = files.split(tensors, count, metadata, ">" if big else "<")
        for number, content in enumerate(contents):
            case.write(f"m-{number + 1:05}-of-{count:05}.gguf", content)
        name = f"m-{rng.randint(1, count):05}-of-{count:05}.gguf"
    else:
        order, version = ">" if big else "<", rng.choice([2, 3])
        case.write(name, files.file(tensors, metadata, order, version, rng.choice([1, 8, 32, 64])))
    case.story.append(f"{name}: {[(it.name, it.kind, it.shape) for it in tensors]}")
    check_info(case, name, tensors, metadata)
    for it in rng.sample(tensors, min(2, len(tensors))):
        index, theirs, fits = random_index(rng, it)
        way, given = ([name], {})
        if "-of-" not in name and rng.random() < 0.2:
            way, given = (["-"], {"stdin": name, "pipe_in": open(case.path(name), "rb").read()})
        line = way + [index, "-t", it.name] + rng.choice([[], ["--io", "read"]][: 1 if way == ["-"] else 2])
        line += ["-j", str(rng.randint(1, 3))]
        if not fits:
            status, _, err = case.run(line + ["--to", "npy"], **given)
            case.check_error(status, err, [1], "blocks of")
            continue
        array = arrays[it.name]
        expected = np.array(array[theirs])
        status, out, err = case.run(line + ["--to", "npy"], **given)
        is_raw = it.kind in BLOCKS or it.kind == "BF16"
        said = f"tslice: note: NumPy has no {'bfloat16' if it.kind == 'BF16' else it.kind}: "
        if status or err or is_raw != case.raw_note.startswith(said):
            raise Failure(f"status {status}, {err!r}")
        got = loaded(out)
        same = got.shape == expected.shape and got.dtype.itemsize == expected.dtype.itemsize
        if not same or got.astype(got.dtype.newbyteorder("=")).tobytes() != expected.astype(expected.dtype.newbyteorder("=")).tobytes():
            raise Failure(f"{it.kind}: {got.dtype} {got.shape}, expected {expected.dtype} {expected.shape}")
        if it.kind in BLOCKS and rng.random() < 0.3:
            status, out, err = case.run(line + ["--to", "raw"], **given)
            if status or out != expected.tobytes():
                raise Failure(f"raw bytes: status {status}, {err!r}, {out[:40]!r}")


def check_info(case, name, tensors, metadata):
    status, out, err = case.run(["info", "--json", name])
    if status or err:
        raise Failure(f"status {status}, {err!r}")
    (said,) = json.loads(out)
    found = {it["name"]: (it["shape"], it["bytes"]) for it in said["tensors"]}
    expected = {it.name: (list(it.shape), len(it.data)) for it in tensors}
    if found != expected:
        raise Failure(f"info shows {found}, expected {expected}")
    kinds = {it["name"]: it["dtype"] for it in said["tensors"]}
    for it in tensors:
        if it.kind in BLOCKS and kinds[it.name] != it.kind:
            raise Failure(f"info names {kinds[it.name]} for {it.kind}")
    for key, kind, value in metadata:
        if said["metadata"].get(key) != as_json(kind, value):
            raise Failure(f"metadata {key}: {said['metadata'].get(key)!r} for {value!r}")


# ---------------------------------------------------------------- files that are written


GIVEN = {4: "u32", 5: "int32", 6: "f32", 7: "bool", 10: "u64", 11: "i64", 12: "float64", 0: "uint8", 3: "i16"}


def random_change(rng, kept):
    """Flags, and the metadata of the output where the input has these."""
    if rng.random() < 0.15:
        kept, flags = None, ["--no-metadata"]
    else:
        flags = []
    added = {}
    for key in rng.sample(["a.new", "test.k0", "test.k1", "general.architecture", files.ALIGNMENT, "z.text"], rng.choice([0, 0, 1, 3])):
        if key == files.ALIGNMENT:
            kind, value = 4, rng.choice([8, 16, 32, 128])
        elif rng.random() < 0.4 or key == "general.architecture":
            kind, value = files.TEXT, rng.choice(["llama", "x:1", "größe=2", ""])
        else:
            kind = rng.choice(list(GIVEN))
            value = random_value(rng, kind)
        shown = str(value).lower() if kind == 7 else repr(value) if kind != files.TEXT else value
        plain = kind == files.TEXT and rng.random() < 0.8
        flags += ["--metadata", f"{key}={shown}" if plain else f"{key}={GIVEN.get(kind, 'string')}:{shown}"]
        added[key] = (key, kind, value)
    result = [added.pop(key, (key, kind, value)) for key, kind, value in kept or []]
    if kept is None:
        result.append(added.pop("general.architecture", ("general.architecture", files.TEXT, "unknown")))
    order = sorted(added, key=lambda key: (key != "general.architecture", key.encode()))
    return flags, result + [added[key] for key in order]


def written_input(case, tensors, metadata):
    """Writes an input; returns its name, the metadata that a copy keeps, None for none, and its tensors in order."""
    rng = case.rng
    if all(it.kind in NUMBERS and it.kind != "BF16" for it in tensors) and rng.random() < 0.4:
        np.savez(case.path("m.npz"), **{it.name: it.items() for it in tensors})
        return "m.npz", None, tensors
    big = all(it.kind in NUMBERS or it.kind in files.SWAPPED for it in tensors) and rng.random() < 0.2
    order = ">" if big else "<"
    if rng.random() < 0.25:
        count = rng.choice([2, 3])
        tensors, contents = files.split(tensors, count, metadata, order)
        for number, content in enumerate(contents):
            case.write(f"m-{number + 1:05}-of-{count:05}.gguf", content)
        return f"m-00001-of-{count:05}.gguf", metadata, tensors
    alignment = rng.choice([32, 32, 8, 64])
    case.write("m.gguf", files.file(tensors, metadata, order, rng.choice([2, 3]), alignment))
    return "m.gguf", metadata + ([(files.ALIGNMENT, 4, alignment)] if alignment != 32 else []), tensors


def write_case(case):
    rng = case.rng
    tensors, metadata = random_tensors(rng), random_metadata(rng)
    if rng.random() < 0.1:
        tensors.append(files.Tensor("none", "F32", (0, 3), b""))
    name, kept, tensors = written_input(case, tensors, metadata)
    flags, result = random_change(rng, kept)
    expected = {it.name: it for it in tensors}
    names = list(expected)
    line = [name]
    if rng.random() < 0.5:
        names = [it for it in names if rng.random() < 0.6] or names[:1]
        for it in names:
            line += ["-t", it.replace("[", "[[]") if "[" in it else it]
    if len(names) == 1 and rng.random() < 0.7 and "none" not in names:
        (it,) = (expected[it] for it in names)
        index, theirs, fits = random_index(rng, it)
        if fits:
            line.append(index)
            items = np.array(it.items()[theirs])
            shape = items.shape
            if it.kind in BLOCKS:
                shape = (*shape[:-1], shape[-1] * it.block)
            expected[it.name] = files.Tensor(it.name, it.kind, shape, items.tobytes())
    if all(expected[it].kind in ("F32", "F16", "F64") for it in names) and rng.random() < 0.5:
        kind = rng.choice(["F32", "F16", "F64"])
        line += ["--cast", {"F32": "float32", "F16": "float16", "F64": "float64"}[kind], "--casting", "unsafe"]
        for it in names:
            with np.errstate(all="ignore"):
                cast = expected[it].items().astype(NUMBERS[kind][1])
            if np.isnan(cast).any() and kind != expected[it].kind:
                return  # what becomes of the payload of a NaN is the processor's
            expected[it] = files.Tensor(it, kind, expected[it].shape, cast.tobytes())
    all_names = [it.name for it in tensors if it.name in names]
    if rng.random() < 0.3:
        old = rng.choice([it for it in all_names])
        if not set(old) & set("{}[]*?=,\\ "):
            line += ["--rename", f"{old}=new.{old}"]
            expected[old].name = "new." + old
    line += flags + rng.choice([[], ["--io", "read"]]) + ["-j", str(rng.randint(1, 3))]
    groups, out_name, stdout = output_way(rng, "gguf")
    for group in groups:
        line += group
    status, out, err = case.run(line, stdout=stdout)
    if status or err:
        raise Failure(f"status {status}, {err!r}")
    if out_name:
        with open(case.path(out_name), "rb") as file:
            out = file.read()
    written = [expected[it] for it in all_names]
    for it in written:
        if it.kind == "BF16" and not it.shape:
            # which the package does not read
            it.shape = (1,)
    alignment = next((value for key, _, value in result if key == files.ALIGNMENT), 32)
    compare(out, files.file(written, result, alignment=alignment), "the file")
    module = package()
    if module and not any(kind == files.LIST and not value[1] for _, kind, value in result):
        case.write("again.gguf", out)
        check_package(module, case.path("again.gguf"), written, result)


def check_package(module, path, tensors, metadata):
    """What the package reads in a file is this."""
    reader = module.GGUFReader(path)
    fields = [(key, field) for key, field in reader.fields.items() if not key.startswith("GGUF.")]
    if [key for key, _ in fields] != [key for key, _, _ in metadata]:
        raise Failure(f"the package reads the keys {[key for key, _ in fields]}")
    for (key, field), (_, kind, value) in zip(fields, metadata):
        types = [kind, value[0]] if kind == files.LIST else [kind]
        if [int(it) for it in field.types] != types or field.contents() != as_json(kind, value):
            raise Failure(f"the package reads {key}: {field.types} {field.contents()!r} for {value!r}")
    found = [(it.name, it.tensor_type.name, [int(n) for n in it.shape][::-1]) for it in reader.tensors]
    if found != [(it.name, it.kind, list(it.shape)) for it in tensors]:
        raise Failure(f"the package reads {found}")
    items = read_by_package(module, path)
    for it in tensors:
        if items[it.name].tobytes() != it.data:
            raise Failure(f"the package reads other elements in {it.name}")


# ---------------------------------------------------------------- hostile files


def put(data, at, letter, number):
    return data[:at] + struct.pack("<" + letter, number) + data[at + struct.calcsize(letter):]


def hostile_file(rng):
    """A file that must be refused, and what is said of it; or one that may be read."""
    huge = rng.choice([2**63, 2**64 - 1, 2**62, 2**40, 2**32])
    good = files.file([files.tensor(rng, "w", "F32", [2, 3]), files.tensor(rng, "q", "Q4_0", [2, 2])])
    one = files.header([files.tensor(rng, "w", "F32", [2, 3])])
    kind = rng.randrange(16)
    if kind == 0:
        return put(good, 8, "Q", huge), "cut short"
    if kind == 1:
        return put(good, 16, "Q", huge), None
    if kind == 2:
        return put(good, 24, "Q", huge), None
    if kind == 3:
        return put(good, 4, "I", rng.choice([0x00010000, 1, 4, 0x7fff])), "version"
    if kind == 4:
        inner = struct.pack("<IQ", rng.choice([*range(13), 13, 99]), huge)
        return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + files.text("k") + struct.pack("<I", 9) + inner, None
    if kind == 5:
        deep = struct.pack("<IQ", 9, 1) * rng.choice([16, 17, 1000, 200_000])
        return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + files.text("k") + struct.pack("<I", 9) + deep, None
    if kind == 6:
        return files.file([], [("k", 0, 1), ("k", 0, 2)]), "two values of its metadata"
    if kind == 7:
        same = files.tensor(rng, "w", "F32", [2])
        return files.file([same, same]), "two of its tensors"
    if kind == 8:
        number = rng.choice([0, 3, 5, 24, 2**31 + 1])
        return files.file([files.tensor(rng, "w", "F32", [2])], [("general.alignment", 4, number)]), "power of two"
    if kind == 9:
        wrong = rng.choice([(0, 2), (8, files.TEXT), (32, 10)])
        content = "x" if wrong[1] == files.TEXT else wrong[0]
        return files.file([], [("general.alignment", wrong[1], content)]), "power of two"
    if kind == 10:
        shape = rng.choice([[2**62, 2**62], [2**63], [0, 2**63, 2], [2**64 - 1], [2**32, 2**31]])
        it = files.Tensor("w", rng.choice(["F32", "F64", "Q4_0"]), shape, b"")
        return files.file([it]), None
    if kind == 11:
        it = files.Tensor("w", "Q4_K", rng.choice([[], [1], [255], [256, 255], [2, 257]]), bytes(300))
        return files.file([it]), "not a multiple of the block size"
    if kind == 12:
        at = one.index(b"w") + 1 + 4 + 16
        return put(one + bytes(64), at, "I", rng.choice([4, 5, 31, 36, 42, 2**32 - 1])), "the unknown type"
    if kind == 13:
        at = one.index(b"w") + 1 + 4 + 16 + 4
        return put(one + bytes(64), at, "Q", rng.choice([1, 2**63, 2**64 - 1, 2**64 - 32, 31, 96])), None
    if kind == 14:
        return good[: rng.randrange(5, len(good) - 40)], None
    changed = bytearray(good)
    for _ in range(rng.randint(1, 4)):
        changed[rng.randrange(4, len(changed))] = rng.randrange(256)
    return bytes(changed), ()


def hostile_case(case):
    data, says = hostile_file(case.rng)
    case.write("h.gguf", data)
    run = harness.tslice("info", "h.gguf", cwd=case.dir)
    case.story.append(f"{data[:200]!r}\n  status {run.returncode}: {run.stderr[:300]!r}")
    check_hostile(run, "h.gguf", says)


def one(job):
    options, number = job
    kind = hostile_case if number % 5 == 4 else write_case if number % 5 in (1, 3) else slice_case
    return harness.run_case(Case(random.Random(f"{options.seed} {number}")), kind, number, options.keep)


def main():
    options = harness.case_parser(__doc__.split("\n")[0], 1000).parse_args()
    harness.begin(options)
    print("the gguf package", "is there" if package() else "is not there: files are written as it writes them")
    return harness.run_cases("gguf_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
