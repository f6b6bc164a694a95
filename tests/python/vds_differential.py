#!/usr/bin/env python3
"""Differential test: datasets of HDF5 that are made of pieces of other datasets and files, against h5py.

    python tests/python/vds_differential.py --bin target/debug/tslice --count 500 --seed 1

The program must be built with the feature `hdf5`, and h5py be there. A case is a virtual dataset of random sources, in
chunks or not, in this file and in others, in either byte order: blocks, strides, lists, other shapes of as many elements,
parts that overlap, gaps, sources without an end, sources numbered by `%b`, virtual datasets of virtual datasets; or a
dataset behind an external link, or in external files. Random indexes of it, copies to `.npy`, `.zarr` and `.safetensors`
must be what h5py reads. Then a source is removed: what lies in it is an error that names it, all else is read. Every
tenth case is a damaged file, in little memory: an error in one line, or elements. `--only NUMBER` runs one again.
"""

import json
import os
import sys

import h5py
import numpy as np

import chunk_cases
import harness
from chunk_cases import check, check_damaged, check_same, random_array
from harness import Failure

# what a damaged file may take: caches of sources, and the program
MEMORY = 160 << 20

DTYPES = ["u1", "<i2", ">i4", "<i8", ">f8", "<f4", "f2", "<c8", ">c16", "?", "S5", "V6"]
STRUCTURE = [("a", "<i4"), ("b", ">f8"), ("c", "S3")]


def random_dtype(rng):
    return np.dtype(STRUCTURE) if rng.random() < 0.08 else np.dtype(rng.choice(DTYPES))


def storage_of(rng, shape, grows=()):
    """How a source is stored."""
    options = {}
    if shape and 0 not in shape and (grows or rng.random() < 0.6):
        options["chunks"] = tuple(rng.randint(1, n) for n in shape)
        options["compression"] = rng.choice([None, "gzip", "lzf"])
        if grows:
            options["maxshape"] = tuple(None if axis in grows else n for axis, n in enumerate(shape))
    return options


def stored_order(rng, dtype):
    """The dtype as a source may have it."""
    return dtype.newbyteorder() if dtype.kind in "iufc" and rng.random() < 0.3 else dtype


class Sources:
    """Datasets in files of their own, or in the file of the virtual dataset."""

    def __init__(self, case, dtype, version):
        self.case, self.dtype, self.version, self.count, self.here = case, dtype, version, 0, []

    def add(self, shape, name=None, grows=(), array=None):
        rng = self.case.rng
        dtype = stored_order(rng, self.dtype)
        array = random_array(rng, dtype, shape) if array is None else array
        path = rng.choice(["d", "d", "g/d"])
        self.count += 1
        if name is None and rng.random() < 0.2:
            path = f"own{self.count}"
            self.here.append((path, array, storage_of(rng, shape, grows)))
            return "s.h5", path, shape
        name = name or rng.choice([f"p{self.count}.h5", f"p{self.count}.h5", f"sub/p{self.count}.h5", f"per%%cent{self.count}.h5"])
        own = name.replace("%%", "%")
        os.makedirs(os.path.dirname(self.case.path(own)) or ".", exist_ok=True)
        with h5py.File(self.case.path(own), "w", libver=self.version) as file:
            options = storage_of(rng, shape, grows)
            if len(shape) > 0 and shape[0] > 1 and rng.random() < 0.1 and not grows and dtype.kind in "iuf":
                # never written in part
                file.create_dataset(path, shape, dtype, fillvalue=dtype.type(3), **{"chunks": (1, *shape[1:])})[: shape[0] // 2] = array[: shape[0] // 2]
            elif rng.random() < 0.12 and dtype.kind != "V" and not grows:
                # a virtual dataset itself
                file.create_dataset("inner", data=array, **options)
                layout = h5py.VirtualLayout(shape, stored_order(rng, self.dtype))
                layout[...] = h5py.VirtualSource(".", "inner", shape, dtype)
                file.require_group(os.path.dirname(path) or "/")
                file.create_virtual_dataset(path, layout)
            else:
                file.create_dataset(path, data=array, **options)
        return name, path, shape


def random_slices(rng, shape):
    """Slices of a shape, with steps, and how long they are."""
    items = []
    for n in shape:
        start = rng.randrange(n)
        step = rng.choice([1, 1, 1, 2, 3])
        items.append(slice(start, rng.randint(start + 1, n), step))
    return tuple(items), tuple(len(range(n)[it]) for it, n in zip(items, shape))


def factors(rng, count, rank):
    """A shape of this rank with so many elements."""
    shape = []
    for _ in range(rank - 1):
        n = rng.choice([d for d in range(1, min(count, 30) + 1) if count % d == 0])
        shape.append(n)
        count //= n
    shape.append(count)
    rng.shuffle(shape)
    return tuple(shape)


def low_level(layout, place, name, path, taken):
    """A mapping between any two selections."""
    layout.dcpl_maps = getattr(layout, "dcpl_maps", [])
    layout.dcpl_maps.append((place, name, path, taken))


def space(shape, items, unlimited=None):
    """A selection of slices; along `unlimited` it has no end: (axis, block, stride)."""
    lens = tuple(h5py.h5s.UNLIMITED if unlimited and axis == unlimited[0] else n for axis, n in enumerate(shape))
    made = h5py.h5s.create_simple(tuple(shape), lens)
    start = tuple(it.start for it in items)
    step = [it.step for it in items]
    count = [len(range(it.start, it.stop, it.step)) for it in items]
    block = [1] * len(shape)
    if unlimited:
        axis, block[axis], step[axis] = unlimited
        count[axis] = h5py.h5s.UNLIMITED
    made.select_hyperslab(start, tuple(count), tuple(step), tuple(block))
    return made


def fixed_parts(rng, sources, shape, maps):
    """Mappings of a known length."""
    for _ in range(rng.choice([1, 2, 3, 5, 9])):
        kind = rng.choice(["rows", "slices", "slices", "shape", "list"])
        if kind == "rows":
            step = rng.randint(1, shape[0])
            for start in range(0, shape[0], step):
                part = (min(step, shape[0] - start), *shape[1:])
                if rng.random() < 0.9:
                    # the source as a whole, or with an axis of length 1 less
                    squeezed = part[1:] if part[0] == 1 and len(part) > 1 and rng.random() < 0.5 else part
                    name, path, own = sources.add(squeezed)
                    place = tuple(slice(s, s + n, 1) for s, n in zip((start, *[0] * (len(shape) - 1)), part))
                    taken = h5py.h5s.create_simple(own)
                    maps.append((space(shape, place), name, path, taken))
            continue
        items, lens = random_slices(rng, shape)
        place = space(shape, items)
        if kind == "list" and rng.random() < 0.7:
            axis = rng.randrange(len(shape))
            at = sorted(rng.sample(range(shape[axis]), rng.randint(1, shape[axis])))
            place.select_none()
            for number in at:
                one = [slice(number, number + 1, 1) if a == axis else it for a, it in enumerate(items)]
                place.select_hyperslab(tuple(it.start for it in one), tuple(len(range(it.start, it.stop, it.step)) for it in one), tuple(it.step for it in one), (1,) * len(one), op=h5py.h5s.SELECT_OR)
            lens = tuple(len(at) if a == axis else n for a, n in enumerate(lens))
        count = int(np.prod(lens))
        wanted = factors(rng, count, rng.choice([1, 2, 3])) if kind == "shape" else lens
        # a part of a larger source
        steps = [rng.choice([1, 1, 2]) for _ in wanted]
        starts = [rng.choice([0, 0, 2]) for _ in wanted]
        ends = [s + (n - 1) * step + 1 for s, n, step in zip(starts, wanted, steps)]
        name, path, own = sources.add(tuple(end + rng.choice([0, 0, 1]) for end in ends))
        taken = space(own, [slice(s, end, step) for s, end, step in zip(starts, ends, steps)])
        maps.append((place, name, path, taken))


def endless_parts(rng, sources, shape, maps):
    """A mapping whose source has no end, or blocks numbered by %b."""
    axis = rng.randrange(len(shape))
    others = [slice(0, n, 1) for n in shape]
    start = rng.choice([0, 0, 2])
    block = rng.choice([1, 1, 2, 3])
    stride = block + rng.choice([0, 0, 1, 2])
    items = list(others)
    items[axis] = slice(start, start + 1, 1)
    place = space(shape, items, (axis, block, stride))
    if rng.random() < 0.5:
        own = list(shape)
        own[axis] = block
        whole = tuple(own)
        for number in range(rng.choice([0, 1, 3, 12])):
            if rng.random() < 0.9:
                sources.add(whole, f"n{axis}_{number}.h5")
                # the dataset has one name in all files
                path = sources.case.path(f"n{axis}_{number}.h5")
                with h5py.File(path, "a") as file:
                    if "d" not in file:
                        file["d"] = file["g/d"]
        maps.append((place, f"n{axis}_%b.h5", "d", h5py.h5s.create_simple(whole)))
        return
    length = rng.randint(1, 9)
    first, step = rng.choice([0, 0, 1]), rng.choice([1, 1, 2])
    own = list(shape)
    own[axis] = length
    name, path, _ = sources.add(tuple(own), grows=[axis])
    items = [slice(0, n, 1) for n in own]
    items[axis] = slice(first, first + 1, 1)
    taken = space(own, items, (axis, 1, step))
    maps.append((place, name, path, taken))


def write(case, name="s.h5"):
    """A virtual dataset; its path and the names of its sources."""
    rng = case.rng
    dtype = random_dtype(rng)
    version = (rng.choice(["earliest", "v110", "v112", "latest"]), "latest")
    shape = tuple(rng.choice([1, 2, 3, 5, 8, 13]) for _ in range(rng.choice([1, 2, 2, 3])))
    sources, maps = Sources(case, dtype, version), []
    is_endless = rng.random() < 0.35
    if is_endless:
        endless_parts(rng, sources, shape, maps)
    if not is_endless or rng.random() < 0.3:
        fixed_parts(rng, sources, shape, maps)
    with h5py.File(case.path(name), "w", libver=version) as file:
        for path, array, options in sources.here:
            file.create_dataset(path, data=array, **options)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        if dtype.kind in "iuf" and rng.random() < 0.6:
            plist.set_fill_value(np.array(7, dtype))
        for place, source, path, taken in maps:
            source = "." if source == name else source
            plist.set_virtual(place, source.encode(), path.encode(), taken)
        most = tuple(h5py.h5s.UNLIMITED for _ in shape) if is_endless else None
        h5py.h5d.create(file.id, b"v", h5py.h5t.py_create(dtype, logical=True), h5py.h5s.create_simple(shape, most), plist)
    case.story.append(f"{dtype} {shape} {version}, {[(source, path, taken.shape) for _, source, path, taken in maps]}")
    return [source.replace("%%", "%") for _, source, _, _ in maps if source != name and "%b" not in source]


def read(case, name, path):
    """What h5py reads."""
    before = os.getcwd()
    os.chdir(case.path("."))
    try:
        with h5py.File(name, "r") as file:
            dataset = file[path]
            # the library fills no gaps where parts that overlap have as many elements as the whole
            array = np.full(dataset.shape, dataset.fillvalue, dataset.dtype)
            if array.size:
                dataset.read_direct(array)
            return array
    finally:
        os.chdir(before)


def virtual_case(case):
    rng = case.rng
    names = write(case)
    try:
        array = read(case, "s.h5", "v")
    except OSError as error:
        case.story.append(f"h5py: {error}")
        status, _, err = case.run(["s.h5", "-t", "v", "-o", "o.npy"])
        if status == 1 and err.startswith("tslice: "):
            return
        raise Failure(f"h5py cannot read it, {error}; status {status}, {err}")
    for _ in range(3):
        check(case, "s.h5", "v", array, lambda name, array: stored_list(case, name, array))
    copies(case, "s.h5", "v", array)
    if names:
        missing(case, array, rng.choice(names))


def stored_list(case, name, array):
    """An array that is a list or a mask, as a virtual dataset."""
    with h5py.File(case.path(name + "_of.h5"), "w") as file:
        file.create_dataset("x", data=array)
    with h5py.File(case.path(name + ".h5"), "w") as file:
        layout = h5py.VirtualLayout(array.shape, array.dtype)
        layout[...] = h5py.VirtualSource(name + "_of.h5", "x", array.shape, array.dtype)
        file.create_virtual_dataset("g/x", layout)
    return f"@{name}.h5#g/x"


def copies(case, name, path, array):
    """The whole in other formats."""
    rng = case.rng
    status, _, err = case.run([name, "-t", path, "-o", "whole.npy", "--force", *rng.choice([[], ["-j", "2"]])])
    if status:
        raise Failure(f"status {status}, {err!r}")
    check_same(np.load(case.path("whole.npy")), array)
    target = rng.choice(["whole.zarr", "whole.safetensors", None])
    if target == "whole.safetensors" and array.dtype.kind not in "iuf?":
        target = None
    if target and array.dtype.kind in "iufc?":
        status, _, err = case.run([name, "-t", path, "-o", target])
        if status or any(not line.startswith("tslice: note: ") for line in err.splitlines()):
            raise Failure(f"status {status}, {err!r}")
        status, _, err = case.run(["diff", name, target, "-t", path] if target.endswith("s") else ["diff", f"{name}", target, "-t", path])
        if status:
            raise Failure(f"diff: status {status}, {err!r}")


def missing(case, array, name):
    """Without a source: an error that names it, or elements that need it not."""
    rng = case.rng
    os.rename(case.path(name), case.path(name + ".away"))
    try:
        # h5py reads its elements as gaps
        without = read(case, "s.h5", "v")
    except OSError:
        without = None
    status, _, err = case.run(["s.h5", "-t", "v", "-o", "m.npy", "--force"])
    if status == 0:
        if without is None or without.shape != array.shape or without.tobytes() != array.tobytes():
            raise Failure(f"{name} is missing, and all is read")
    elif name not in err or status != 1:
        raise Failure(f"status {status}, {err!r}")
    for _ in range(3):
        items = [rng.choice([slice(None), slice(at, at + 1)]) for at in (rng.randrange(n) if n else 0 for n in array.shape)]
        status, _, err = case.run(["s.h5", "-t", "v", "[" + ", ".join(map(chunk_cases.spelled, items)) + "]", "-o", "m.npy", "--force"])
        if status == 0:
            check_same(np.load(case.path("m.npy")), array[tuple(items)])
        elif name not in err:
            raise Failure(f"status {status}, {err!r}")
    os.rename(case.path(name + ".away"), case.path(name))


def linked_case(case):
    """Datasets behind external links."""
    rng = case.rng
    dtype = random_dtype(rng)
    shape = tuple(rng.choice([1, 2, 5, 9]) for _ in range(rng.choice([0, 1, 2, 3])))
    array = random_array(rng, dtype, shape)
    with h5py.File(case.path("t.h5"), "w", libver=(rng.choice(["earliest", "latest"]), "latest")) as file:
        file.create_dataset("g/x", data=array, **storage_of(rng, shape))
        file["g/soft"] = h5py.SoftLink("/g/x")
        file["back"] = h5py.ExternalLink("s.h5", "/")
        file["again"] = h5py.ExternalLink("s.h5", "/link")
    ways = {"link": "/g/x", "soft": "g/soft", "group": "/g", "chain": "/again"}
    with h5py.File(case.path("s.h5"), "w") as file:
        for name, path in ways.items():
            file[name] = h5py.ExternalLink("t.h5", path)
        file["none"] = h5py.ExternalLink("none.h5", "/x")
        file["out"] = h5py.ExternalLink("../t.h5", "/x")
        file["nothing"] = h5py.ExternalLink("t.h5", "/nothing")
    status, out, err = case.run(["info", "s.h5"])
    lost = [line.strip().split(" cannot be read")[0] for line in out.decode().splitlines() if "cannot be read" in line]
    if status != 1 or sorted(lost) != ["none", "nothing", "out"]:
        raise Failure(f"status {status}, {out.decode()}, {err}")
    for key in rng.sample(["link", "soft", "group/x", "group/soft", "chain"], 2):
        with h5py.File(case.path("s.h5")) as file:
            wanted = file[key][...]
        check(case, "s.h5", key, np.asarray(wanted, array.dtype), lambda name, array: stored_list(case, name, array))


def external_case(case):
    """A dataset in external files."""
    rng = case.rng
    dtype = np.dtype(rng.choice(["u1", "<i2", ">i4", "<f8", ">c8", "S5"]))
    shape = tuple(rng.choice([1, 2, 5, 9, 300]) for _ in range(rng.choice([1, 2])))
    array = random_array(rng, dtype, shape)
    left, files = array.nbytes, []
    while left and len(files) < 6:
        size = rng.randint(1, left)
        name = rng.choice([f"e{len(files)}.bin", f"sub/e{len(files)}.bin"])
        last = len(files) == 5 or size == left
        files.append((name, rng.choice([0, 0, 7]), h5py.h5f.UNLIMITED if last and rng.random() < 0.5 else left if last else size))
        left = 0 if last else left - size
    os.makedirs(case.path("sub"), exist_ok=True)
    before = os.getcwd()
    os.chdir(case.path("."))
    try:
        with h5py.File("s.h5", "w") as file:
            file.create_dataset("v", shape, dtype, external=files)[...] = array
    finally:
        os.chdir(before)
    case.story.append(f"{dtype} {shape} {files}")
    array = np.asarray(array, dtype)
    check(case, "s.h5", "v", array, lambda name, array: stored_list(case, name, array))
    copies(case, "s.h5", "v", array)
    gone = rng.choice(files)[0]
    os.remove(case.path(gone))
    status, _, err = case.run(["s.h5", "-t", "v", "-o", "m.npy", "--force"])
    if status != 1 or gone not in err:
        raise Failure(f"{gone} is missing: status {status}, {err!r}")


def damaged_case(case):
    rng = case.rng
    names = write(case)
    damaged = [name for name in ["s.h5", *names] if rng.random() < 0.4] or ["s.h5"]
    for name in set(damaged):
        with open(case.path(name), "r+b") as file:
            data = bytearray(file.read())
            heap = data.find(b"GCOL")
            if rng.random() < 0.2:
                data = data[:rng.randrange(len(data))]
            for _ in range(rng.randint(1, 8)):
                if not data:
                    break
                start, span = (heap, 400) if 0 <= heap < len(data) and rng.random() < 0.7 else (0, rng.choice([200, 3000, 10**6]))
                data[min(len(data) - 1, start + rng.randrange(span))] = rng.choice([0, 255, rng.randrange(256)])
            if 0 <= heap < len(data) and rng.random() < 0.7:
                sum_again(data, heap)
            file.seek(0)
            file.write(data)
            file.truncate()
    check_damaged(case, ["info", "s.h5"])
    _, out, _ = case.run(["info", "s.h5", "--json"])
    # of a damaged shape there may be any number of fill values
    listed = json.loads(out) if out[:1] in (b"[", "[") else []
    if any(it["bytes"] > 100 << 20 for file in listed for it in file["tensors"]):
        return
    for index in ([], ["[..., :1]"]):
        check_damaged(case, ["s.h5", "-t", "v", *index, "-o", "o.npy", "--force"])


def sum_again(data, heap):
    """Give the first object of a heap the checksum of its new bytes, so that what is in it is read."""
    size = int.from_bytes(data[heap + 24:heap + 32], "little")
    start = heap + 32
    if 4 < size <= len(data) - start:
        data[start + size - 4:start + size] = lookup3(data[start:start + size - 4]).to_bytes(4, "little")


def lookup3(data):
    """Bob Jenkins' hash, which HDF5 takes as a checksum."""
    mask = 0xFFFFFFFF
    rot = lambda x, k: (x << k | x >> (32 - k)) & mask
    a = b = c = (0xDEADBEEF + len(data)) & mask
    word = lambda i: int.from_bytes(data[i:i + 4].ljust(4, b"\0"), "little")
    at = 0
    while len(data) - at > 12:
        a, b, c = (a + word(at)) & mask, (b + word(at + 4)) & mask, (c + word(at + 8)) & mask
        for x, k in enumerate([4, 6, 8, 16, 19, 4]):
            if x % 3 == 0:
                a = (a - c & mask) ^ rot(c, k)
                c = c + b & mask
            elif x % 3 == 1:
                b = (b - a & mask) ^ rot(a, k)
                a = a + c & mask
            else:
                c = (c - b & mask) ^ rot(b, k)
                b = b + a & mask
        at += 12
    if at == len(data):
        return c
    tail = bytes(data[at:]).ljust(12, b"\0")
    a, b, c = (x + int.from_bytes(tail[i:i + 4], "little") & mask for x, i in ((a, 0), (b, 4), (c, 8)))
    c = (c ^ b) - rot(b, 14) & mask
    a = (a ^ c) - rot(c, 11) & mask
    b = (b ^ a) - rot(a, 25) & mask
    c = (c ^ b) - rot(b, 16) & mask
    a = (a ^ c) - rot(c, 4) & mask
    b = (b ^ a) - rot(a, 14) & mask
    return (c ^ b) - rot(b, 24) & mask


def usual_case(case):
    case.rng.choice([virtual_case] * 6 + [linked_case, external_case])(case)


def one(job):
    return chunk_cases.one(job, usual_case, damaged_case, MEMORY)


def main():
    options = chunk_cases.options_of(__doc__.split("\n")[0])
    harness.begin(options)
    print("h5py", h5py.__version__, "HDF5", h5py.version.hdf5_version)
    return harness.run_cases("vds_differential", options, one)


if __name__ == "__main__":
    sys.exit(main())
