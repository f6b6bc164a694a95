#!/usr/bin/env python3
"""The formats against each other, and against NumPy and the safetensors package.

    python tests/python/containers.py --bin target/debug/tslice

Every pair of an input and an output format is tried with every dtype; a dtype that a format lacks
must be refused. Then archives and checkpoints that lie. Needs NumPy; safetensors and ml_dtypes are
used where they are there. The last line is `N passed, M failed`.
"""

import contextlib
import csv
import io
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import warnings
import zipfile

import numpy as np

import formats
import harness
import text_differential

try:
    from safetensors.numpy import load_file
except ImportError:
    load_file = None

DTYPES = ["?", "i1", "u1", "<i2", ">i2", "<u2", "<i4", ">u4", "<i8", ">u8", "<f2", ">f2", "<f4", ">f4", "<f8", ">f8",
          "<c8", ">c16", "S3", "<U2", ">U2", "V5", "<M8[s]", [("x", "<i2"), ("y", "<f4")]]
NAMES = {"b": "BOOL", "i1": "I8", "u1": "U8", "i2": "I16", "u2": "U16", "i4": "I32", "u4": "U32", "i8": "I64",
         "u8": "U64", "f2": "F16", "f4": "F32", "f8": "F64", "c8": "C64"}


tally = harness.Tally()
check = tally.check


def run(*args, stdin=None):
    done = harness.tslice(*args, timeout=120, **({} if stdin is None else {"input": stdin}))
    return done.returncode, done.stdout, done.stderr.decode()


def little(array):
    return array.astype(array.dtype.newbyteorder("<")) if array.dtype.names is None else array


def safetensors_name(dtype):
    return NAMES.get("b" if dtype.kind == "b" else dtype.str[1:]) if dtype.names is None else None


def write_safetensors(path, array, extra=()):
    tensors = {name: (safetensors_name(item.dtype), item.shape, little(item).tobytes())
               for name, item in (("w", array), *extra)}
    formats.write_safetensors(path, tensors)


def read_safetensors(path):
    with open(path, "rb") as file:
        tensors, _ = formats.read_safetensors(file.read())
    kinds = {v: k for k, v in NAMES.items()}
    out = {}
    for name, (code, shape, data) in tensors.items():
        kind = kinds[code]
        out[name] = np.frombuffer(data, np.dtype("?" if kind == "b" else "<" + kind)).reshape(shape)
    return out


def write_input(kind, path, array):
    """Writes the array as one tensor named w; false where the format lacks the dtype."""
    if kind == "npy":
        with open(path, "wb") as file:
            np.save(file, array)
    elif kind in ("npz", "npz-deflated"):
        with open(path, "wb") as file:
            (np.savez if kind == "npz" else np.savez_compressed)(file, other=np.arange(3), w=array)
    elif kind == "raw":
        with open(path, "wb") as file:
            file.write(b"skipped" + array.tobytes())
    elif safetensors_name(array.dtype) is None:
        return False
    elif kind == "safetensors":
        write_safetensors(path, array, [("other", np.arange(3))])
    else:
        folder = os.path.dirname(path)
        write_safetensors(os.path.join(folder, "1.safetensors"), array)
        write_safetensors(os.path.join(folder, "2.safetensors"), np.zeros(2, "u1"))
        with open(path, "w") as file:
            json.dump({"weight_map": {"w": "1.safetensors"}}, file)
    return True


def text_values(array):
    """What a text of the array must read as, element by element."""
    if array.dtype.kind == "S":
        return [x.decode() for x in array.ravel()]
    return array.ravel().tolist()


def same_text(found, array):
    """Compares numbers as texts of their own type: parsed back, they are the same bits."""
    if array.dtype.kind in "SU":
        return found == text_values(array)
    kind = array.dtype.newbyteorder("<")
    if kind.kind == "c":
        again = np.array([complex(x) for x in found], kind)
    elif kind.kind == "f":
        again = np.array([float(x) for x in found]).astype(kind)
    else:
        again = np.array([int(x) for x in found], kind)
    return np.array_equal(again, little(array).ravel(), equal_nan=kind.kind in "fc")


def from_json(value, array):
    def flat(value, depth):
        return [value] if depth == 0 else [x for item in value for x in flat(item, depth - 1)]

    values = flat(value, array.ndim)
    number = lambda x: float(x.replace("Infinity", "inf")) if isinstance(x, str) else x
    if array.dtype.kind == "c":
        return [complex(number(re), number(im)) for re, im in values]
    return [number(x) for x in values] if array.dtype.kind == "f" else values


def has_text(dtype):
    return dtype.names is not None or dtype.kind in "?biufcSUM"


def sample(dtype, rng):
    shape = (4, 6)
    raw = rng.integers(0, 256, 24 * dtype.itemsize, np.uint8).tobytes()
    if dtype.kind == "b":
        return (np.frombuffer(raw, "u1") > 127).reshape(shape)
    if dtype.kind == "S":
        return np.array([b"a", b'b"', b"c d", b"", b"#", b"x,y"] * 4, dtype).reshape(shape)
    if dtype.kind == "U":
        return np.array(["a", 'b"', "c ", "", "é", ",y"] * 4, dtype).reshape(shape)
    return np.frombuffer(raw, dtype).reshape(shape)


def pairs(folder, rng):
    kinds_in = ["npy", "npz", "npz-deflated", "raw", "safetensors", "sharded"]
    kinds_out = ["npy", "npz", "safetensors", "raw", "csv", "txt", "json"]
    for source in kinds_in:
        for target in kinds_out:
            count = 0
            for code in DTYPES:
                dtype = np.dtype(code)
                array = sample(dtype, rng)
                name = f"{source} to {target}, {dtype}"
                path = os.path.join(folder, "in.json" if source == "sharded" else "in")
                if not write_input(source, path, array):
                    continue
                flags = ["-t", "w"] if source != "npy" and source != "raw" else []
                if source == "raw":
                    if dtype.names is not None:
                        continue
                    flags = ["--dtype", dtype.str, "--shape", "4,6", "--offset", "7"]
                out = os.path.join(folder, "out." + ("bin" if target == "raw" else target))
                code_, _, err = run(path, "1:, ::-2", *flags, "-f", "-o", out)
                expected = array[1:, ::-2]
                lacking = (target == "safetensors" and safetensors_name(dtype) is None
                           or target in ("csv", "txt", "json") and not has_text(dtype))
                if lacking:
                    check(name, code_ == 1 and "no equivalent" in err, f"status {code_}, {err!r}")
                    continue
                if code_ != 0 or err:
                    check(name, False, f"status {code_}, {err!r}")
                    continue
                count += 1
                try:
                    compare(name, source, target, out, expected)
                except Exception as error:  # an output that cannot be read
                    check(name, False, repr(error))
            print(f"{source:>13} to {target:<12} {count:2} dtypes")


def compare(name, source, target, out, expected):
    if target == "npy":
        found = np.load(out)
        same = found.dtype == expected.dtype or source in ("safetensors", "sharded")
        check(name, same and found.tobytes() == (little(expected) if source in ("safetensors", "sharded")
                                                 else expected).tobytes(), "other values")
    elif target == "npz":
        archive = np.load(out)
        check(name, zipfile.ZipFile(out).testzip() is None and len(archive.files) == 1, "not a good archive")
        found = archive[archive.files[0]]
        check(name, little(found).tobytes() == little(expected).tobytes(), "other values")
    elif target == "safetensors":
        (found,) = (load_file(out) if load_file and expected.dtype.kind != "c" else read_safetensors(out)).values()
        check(name, found.tobytes() == little(expected).tobytes(), "other values")
    elif target == "raw":
        with open(out, "rb") as file:
            raw = file.read()
        wanted = little(expected) if source in ("safetensors", "sharded") else expected
        check(name, raw == wanted.tobytes(), "other bytes")
    elif target == "json":
        with open(out) as file:
            value = json.load(file)
        if expected.dtype.names or expected.dtype.kind == "M":
            check(name, text_differential.same_nested(value, text_differential.nested(expected)), "json")
            return
        check(name, len(value) == 3 and len(value[0]) == 3 and same_text(from_json(value, expected), expected), "json")
    else:
        with open(out, newline="") as file:
            rows = list(csv.reader(file, delimiter="," if target == "csv" else " "))
        values = [x for row in rows for x in row]
        if expected.dtype.names or expected.dtype.kind == "M":
            wanted = text_differential.texts(expected)
            same = len(values) == len(wanted) and all(map(text_differential.same_value, values, wanted))
            check(name, len(rows) == 3 and same, f"{rows}")
            return
        check(name, len(rows) == 3 and same_text(values, expected), f"{rows}")
        if target == "txt" and expected.dtype.kind in "biufc":
            loaded = np.loadtxt(out, dtype=expected.dtype.newbyteorder("="))
            check(name, np.array_equal(loaded, expected, equal_nan=expected.dtype.kind in "fc"), "loadtxt")


def python_csv(rows):
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(rows)
    return written.getvalue()


def texts(folder):
    path = os.path.join(folder, "t.npy")

    def text(array, form, expected):
        np.save(path, array)
        status, out, err = run(path, "--to", form)
        check(f"{form} of {array!r}", (status, out.decode()) == (0, expected), f"{status} {out!r} {err!r}")

    text(np.array(1.5), "csv", "1.5\n")
    text(np.array([0.1, 1e300, -0.0, np.nan, np.inf], "f8"), "txt", "0.1\n1e300\n-0.0\nnan\ninf\n")
    text(np.array([0.1, 65504, 6e-8], "f2"), "csv", "0.1\n65500.0\n6e-8\n")
    text(np.array([[True, False]]), "csv", "1,0\n")
    text(np.array([[True, False]]), "json", "[[true, false]]\n")
    text(np.array([np.nan, np.inf, -np.inf, 1]), "json", '["NaN", "Infinity", "-Infinity", 1.0]\n')
    text(np.array([1 + 2j], "c8"), "json", "[[1.0, 2.0]]\n")
    text(np.array([1 - 2j], "c8"), "txt", "1.0-2.0j\n")
    text(np.zeros((2, 2, 1), "i1"), "json", "[[[0],\n[0]],\n[[0],\n[0]]]\n")
    text(np.zeros((2, 0), "i1"), "json", "[[], []]\n")
    text(np.zeros((2, 0), "i1"), "csv", "\n\n")
    text(np.zeros((0, 2), "i1"), "csv", "")
    for rows in [[["a,b"], ['c"'], [""]], [["", ""], ["a", ""]], [["x\ny", "'"], ['"', " z"]], [[""]]]:
        text(np.array(rows), "csv", python_csv(rows))
        text(np.array(rows)[:, 0], "csv", python_csv([row[:1] for row in rows]))
    text(np.array(7, "u8"), "json", "7\n")
    np.save(path, np.zeros((1, 1, 1)))
    status, out, err = run(path, "--to", "csv")
    check("3-d csv", status == 1 and not out and "at most 2 axes" in err, err)


def deflated(folder):
    """Archives of --deflate, to a file and into a pipe, against what NumPy has in memory."""
    rng = np.random.default_rng(2)
    source, out = os.path.join(folder, "d.npz"), os.path.join(folder, "deflated.npz")
    arrays = {
        "noise": rng.integers(0, 256, 1 << 20, "u1"),
        "runs": np.repeat(np.arange(300, dtype="i8"), 1000).reshape(300, 1000),
        "none": np.zeros((0, 3), "f4"),
        "one": np.array(2.5),
        "\u00fc": np.arange(24, dtype=">i2").reshape(2, 3, 4),
    }
    np.savez(source, **arrays)

    def same(name, blob, index):
        archive = io.BytesIO(blob)
        with zipfile.ZipFile(archive) as zipped:
            methods = {info.compress_type for info in zipped.infolist()}
            check(f"{name}: zip", zipped.testzip() is None and methods == {zipfile.ZIP_DEFLATED}, str(methods))
        loaded = np.load(io.BytesIO(blob))
        check(f"{name}: names", loaded.files == list(arrays), str(loaded.files))
        for key, array in arrays.items():
            found, expected = loaded[key], array[index]
            equal = found.dtype == expected.dtype and found.shape == expected.shape
            check(f"{name}: {key}", equal and found.tobytes() == expected.tobytes(), f"{found!r}")

    for text, index in (("...", ...), ("..., ::-1", None)):
        if index is None:
            del arrays["one"]
            index = (..., slice(None, None, -1))
        choice = [flag for key in arrays for flag in ("-t", key)]
        status, _, err = run(source, text, *choice, "--deflate", "-f", "-o", out)
        check(f"deflate {text}", (status, err) == (0, ""), err)
        with open(out, "rb") as file:
            blob = file.read()
        same(f"deflate {text}", blob, index)
        status, piped, err = run(source, text, *choice, "--deflate", "--to", "npz")
        check(f"deflate {text} into a pipe", (status, err) == (0, ""), err)
        same(f"deflate {text} into a pipe", piped, index)
    mine = os.path.getsize(out)
    np.savez_compressed(source, **{key: array[..., ::-1] for key, array in arrays.items()})
    check("deflate: as small as NumPy's", mine < 1.05 * os.path.getsize(source), f"{mine} bytes")


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def archive(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as file:
        for name, data in members:
            file.writestr(zipfile.ZipInfo(name), data, method)
    return bytearray(out.getvalue())


def hostile(folder):
    path = os.path.join(folder, "bad.npz")
    good = npy(np.arange(1000))

    def refused(name, blob, says, args=("-t", "w")):
        with open(path, "wb") as file:
            file.write(blob)
        status, out, err = run(path, *args, "--to", "raw")
        check(f"hostile: {name}", status == 1 and out == b"" and says in err and err.startswith("tslice: "),
              f"status {status}, {len(out)} bytes, {err!r}")

    deflated = zipfile.ZIP_DEFLATED
    refused("cut", archive([("w.npy", good)])[:-30], "end of a central directory")
    refused("name", archive([("../w.npy", good)]), "leads out of the archive", ("-t", "../w"))
    refused("absolute", archive([("/w.npy", good)]), "leads out of the archive", ("-t", "/w"))
    refused("method", archive([("w.npy", good)], zipfile.ZIP_BZIP2), "compression method 12")
    refused("no npy", archive([("w.npy", b"hello world")]), "not a .npy")
    refused("short", archive([("w.npy", good[:-8])]), "takes 8128 bytes")
    refused("long", archive([("w.npy", good + b"12345678")], deflated), "takes 8128 bytes")
    refused("object", archive([("w.npy", npy(np.array([{}], object)))]), "pickle")

    blob = archive([("w.npy", good)])
    blob[blob.rindex(b"PK\x01\x02") + 8] |= 1
    refused("encrypted", blob, "encrypted")

    blob = archive([("w.npy", good)], deflated)
    for at in blob.rindex(b"PK\x01\x02") + 16, 14:
        blob[at : at + 4] = struct.pack("<I", 1)
    refused("crc", blob, "CRC-32", ("-t", "w", "-o", os.path.join(folder, "x.bin")))
    check("hostile: crc leaves nothing", not os.path.exists(os.path.join(folder, "x.bin")))
    refused("crc, backwards", blob, "CRC-32", ("-t", "w", "::-1", "-o", os.path.join(folder, "x.bin")))

    # the header asks for 8 bytes an item of 1000, the stream has a gigabyte of zeros
    bomb = npy(np.zeros(0, "u1")) + bytes(1 << 26)
    blob = archive([("w.npy", bomb)], deflated)
    refused("bomb, honest", blob, "takes 128 bytes")
    for at in blob.rindex(b"PK\x01\x02") + 24, 22:
        blob[at : at + 4] = struct.pack("<I", 128)
    refused("bomb, lying", blob, "more than the expected 128 bytes", ("-t", "w", "-o", os.path.join(folder, "x.bin")))

    blob = archive([("w.npy", good), ("v.npy", good)])
    at = blob.rindex(b"PK\x01\x02") + 42
    blob[at : at + 4] = struct.pack("<I", 0)
    refused("overlap", blob, "local header", ("-t", "v"))
    blob = archive([("w.npy", good)])
    at = blob.rindex(b"PK\x05\x06")
    for field, name in ((10, "count"), (12, "size"), (16, "start")):
        for value in (0xFF, 0xFFFF, 0xFFFE):
            lie = bytearray(blob)
            lie[at + field : at + field + 2] = struct.pack("<H", value)
            refused(f"{name} {value:#x}", lie, "damaged")
    rng = np.random.default_rng(7)
    crashes = []
    for method in (zipfile.ZIP_STORED, deflated):
        blob = archive([("w.npy", npy(np.arange(20))), ("v.npy", npy(np.ones(3)))], method)
        for _ in range(150):
            broken = bytearray(blob)
            for at in rng.integers(0, len(broken), rng.integers(1, 4)):
                broken[at] = rng.integers(0, 256)
            with open(path, "wb") as file:
                file.write(broken[: rng.integers(len(broken) // 2, len(broken) + 1)])
            for args in (["info", path], [path, "-t", "w", "::-1"]):
                status, _, err = run(*args)
                if status not in (0, 1) or "panicked" in err:
                    crashes.append((status, err))
    check("hostile: bytes changed at random", not crashes, str(crashes[:2]))


JAVA = """
import java.io.*; import java.nio.file.*; import java.util.zip.*;
public class Zip {
    public static void main(String[] args) throws Exception {
        try (ZipOutputStream out = new ZipOutputStream(new FileOutputStream(args[0]))) {
            for (String name : new String[] {"w.npy", "\\u00fc.npy"}) {
                byte[] data = Files.readAllBytes(Path.of(args[2]));
                ZipEntry entry = new ZipEntry(name);
                if (args[1].equals("stored")) {
                    CRC32 crc = new CRC32();
                    crc.update(data);
                    entry.setMethod(ZipEntry.STORED);
                    entry.setSize(data.length);
                    entry.setCrc(crc.getValue());
                }
                out.putNextEntry(entry);
                out.write(data);
            }
        }
    }
}
"""


def writers(folder):
    """Archives of other writers: sizes in extra fields, or behind the data."""
    path, out, member = (os.path.join(folder, name) for name in ("writer.npz", "writer.npy", "w.npy"))
    array = np.arange(100_000, dtype="<i4").reshape(100, 1000)
    data = npy(array)
    with open(member, "wb") as file:
        file.write(data)

    def read(name, keys=("w",)):
        for key in keys:
            for text, expected in (("...", array), ("[3, ::-1]", array[3, ::-1])):
                status, _, err = run(path, "-t", key, text, "-f", "-o", out)
                equal = status == 0 and np.array_equal(np.load(out), expected)
                check(f"writers: {name}, {key}{text}", equal and np.array_equal(np.load(path)[key], array), err)

    class Pipe(io.RawIOBase):
        """A file that can only be written in order."""

        def __init__(self):
            self.bytes = bytearray()

        def writable(self):
            return True

        def write(self, data):
            self.bytes += data
            return len(data)

    both = ("w", "\u00fc")
    for save in np.savez, np.savez_compressed:
        save(path, **{key: array for key in both})
        read(save.__name__, both)
    for method in zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED:
        for force in False, True:
            for streamed in False, True:
                target = Pipe() if streamed else io.BytesIO()
                with zipfile.ZipFile(target, "w", method) as file:
                    for key in both:
                        with file.open(zipfile.ZipInfo(key + ".npy"), "w", force_zip64=force) as inside:
                            inside.write(data)
                with open(path, "wb") as file:
                    file.write(target.bytes if streamed else target.getvalue())
                read(f"zipfile, method {method}, zip64 {force}, streamed {streamed}", both)
    if shutil.which("zip"):
        for level in "-0", "-9":
            for streamed in False, True:
                os.path.exists(path) and os.remove(path)
                to = "-" if streamed else path
                done = subprocess.run(["zip", "-q", level, to, "w.npy"], cwd=folder, stdout=subprocess.PIPE, check=True)
                if streamed:
                    with open(path, "wb") as file:
                        file.write(done.stdout)
                read(f"Info-ZIP {level}, streamed {streamed}")
    if shutil.which("java"):
        source = os.path.join(folder, "Zip.java")
        with open(source, "w") as file:
            file.write(JAVA)
        for method in "stored", "deflated":
            subprocess.run(["java", source, path, method, member], check=True)
            read(f"Java, {method}", both)


def local_headers(folder):
    """Each bit of a local header that Python's zipfile refuses, or bits that say another size or CRC-32."""
    path, out = os.path.join(folder, "local.npz"), os.path.join(folder, "local.npy")
    good = archive([("w.npy", npy(np.arange(10))), ("v.npy", npy(np.arange(5)))])
    at = good.index(b"PK\x03\x04", 1)
    lenient, strict = [], set()
    for byte in range(at, at + 30 + 5):
        for bit in range(8):
            bad = bytearray(good)
            bad[byte] ^= 1 << bit
            with open(path, "wb") as file:
                file.write(bad)
            try:
                with zipfile.ZipFile(path) as file:
                    file.open("v.npy")
                refused = False
            except (zipfile.BadZipFile, RuntimeError, NotImplementedError, UnicodeDecodeError):
                refused = True
            status, _, err = run(path, "-t", "v", "[0]", "-f", "-o", out)
            if refused and not (status == 1 and err.startswith("tslice: ")):
                lenient.append((byte - at, bit, err))
            if status:
                strict.add(byte - at)
    check("local headers: as strict as zipfile", not lenient, str(lenient))
    # signature, flags, method, CRC-32, sizes, lengths, name
    expected = {0, 1, 2, 3, 6, 7, 8, 9, *range(14, 35)}
    check("local headers: no stricter than said", strict == expected, str(strict ^ expected))


def record(blob, signature, name):
    """Where the local header of a member is, or its entry in the directory."""
    ahead = 30 if signature == b"PK\x03\x04" else 46
    at = blob.index(signature)
    while blob[at + ahead : at + ahead + len(name)] != name:
        at = blob.index(signature, at + 1)
    return at


def faulty_members(folder):
    """Archives with one member that contradicts itself: what np.load reads of them is read, but for members whose
    name or size np.load does not look at."""
    path, out = os.path.join(folder, "faulty.npz"), os.path.join(folder, "rest.npz")
    good, name = npy(np.arange(5)), b"w.npy"
    local, entry = b"PK\x03\x04", b"PK\x01\x02"

    def changed(*places, method=zipfile.ZIP_STORED):
        blob = archive([("v.npy", good), ("w.npy", good)], method)
        starts = {signature: record(blob, signature, name) for signature in (local, entry)}
        for signature, field, value in places:
            at = starts[signature] + field
            blob[at : at + len(value)] = value
        return blob

    def made(data, member="w.npy"):
        return archive([("v.npy", good), (member, data)])

    cases = {
        "header cut": made(good[:50]),
        "magic cut": made(good[:5]),
        "empty": made(b""),
        "no array": made(b"hello world!"),
        "array cut": made(good[:-8]),
        "array longer": made(good + b"12345678"),
        "object": made(npy(np.array([{}], object))),
        "name that climbs": made(good, "../w.npy"),
        "name of no text": changed((local, 30, b"\xff"), (entry, 46, b"\xff")),
        "no local header": changed((local, 0, b"\0")),
        "other name": changed((local, 30, b"q")),
        "encrypted": changed((entry, 8, b"\1")),
        "method": changed((entry, 10, b"\x63")),
        "offset of another": changed((entry, 42, b"\0\0\0\0")),
        "offset behind the end": changed((entry, 42, struct.pack("<I", 1 << 30))),
        "stored size": changed((entry, 20, struct.pack("<I", 100))),
        "crc": changed((entry, 16, b"none")),
        "crc of the local header": changed((local, 14, b"none")),
        "no deflate stream": changed((local, 40, b"\xff" * 4), method=zipfile.ZIP_DEFLATED),
    }
    stricter = {"array longer", "name that climbs", "name of no text", "crc of the local header"}
    for case, blob in cases.items():
        with open(path, "wb") as file:
            file.write(blob)
        loaded, found = np.load(path), {}
        for key in loaded.files:
            with contextlib.suppress(Exception):
                found[key] = loaded[key]
        read = {key for key, value in found.items() if isinstance(value, np.ndarray)}
        status, printed, err = run("info", path, "--json")
        said = json.loads(printed)[0]
        ours = {tensor["name"] for tensor in said["tensors"]}
        named = [it["reason"] for it in said.get("unreadable", [])]
        check(f"faulty: {case}: info", status == 1 and ours == {"v"} and len(named) == 1, f"{status} {said} {err}")
        check(f"faulty: {case}: as np.load", ours == read or case in stricter, f"{ours} {read}")
        status, _, err = run(path, "-f", "-o", out)
        check(f"faulty: {case}: note", status == 0 and "left out" in err and err.count("\n") == 1, err)
        rest = np.load(out)
        check(f"faulty: {case}: rest", rest.files == ["v"] and np.array_equal(rest["v"], np.arange(5)), str(rest.files))


def main():
    harness.begin(harness.parser("formats against each other, NumPy and safetensors").parse_args())
    np.seterr(all="ignore")
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="tslice-containers-") as folder:
        pairs(folder, np.random.default_rng(1))
        texts(folder)
        deflated(folder)
        hostile(folder)
        faulty_members(folder)
        writers(folder)
        local_headers(folder)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
