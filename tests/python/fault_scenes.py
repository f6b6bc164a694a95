"""The runs whose system calls faults.py makes fail: what they read, and what they must write."""

import json
import shutil

import numpy as np

import torch_files
from formats import write_safetensors
from scenes import (OLD, Appends, Folder, InPlace, Scene, Several, a_safetensors, an_array, an_npz, at, bytes_of, ends_with,
                    little_memory, no_exchange, no_exchange_or_links, no_unnamed_files, shards, text_with)

INDEX = "m.safetensors.index.json"
MIB = 1 << 20


def scenes():
    yield from basic()
    yield from several_tensors()
    yield from texts_and_tables()
    yield from out_of_core()


def basic():
    a = np.arange(60 * 30 * 40, dtype="<i4").reshape(60, 30, 40)  # 288 kB
    np.save(at("a.npy"), a)
    big = np.arange(6 << 20, dtype="u4").astype("u1").reshape(6, 1024, 1024)
    np.save(at("big.npy"), big)
    write_safetensors(at("m.safetensors"), {"w": ("I32", a.shape, a.tobytes())})
    back, every = "[::-1, ::-2]", "[::2]"
    yield Scene("slice to a new file", ["a.npy", back, "-o", "o.npy"], an_array(a[::-1, ::-2]))
    yield Scene("slice over an old file", ["a.npy", back, "-o", "o.npy", "--force"], an_array(a[::-1, ::-2]), old=OLD)
    yield Scene("slice over the input", ["a.npy", back, "-o", "a.npy", "--force"], an_array(a[::-1, ::-2]),
                output="a.npy", old=OLD)
    yield Scene("slice with --fsync", ["a.npy", every, "-o", "o.npy", "--fsync"], an_array(a[::2]))
    yield Scene("slice over an old file with --fsync", ["a.npy", every, "-o", "o.npy", "--force", "--fsync"],
                an_array(a[::2]), old=OLD)
    for old in (None, OLD):
        yield Scene(f"slice that shares blocks, {'over an old file' if old else 'to a new file'}",
                    ["big.npy", "[1:4]", "-o", "o.npy", *(["--force"] if old else [])], an_array(big[1:4]),
                    inputs=("big.npy",), old=old)
    write_safetensors(at("k.safetensors"), {"w": ("I32", a.shape, a.tobytes()),
                                                            "z": ("U8", big.shape, big.tobytes())})
    yield Scene("cut one tensor, keep one that shares blocks", ["k.safetensors", "[::2]", "-t", "w", "--keep-rest",
                                                                "-o", "o.safetensors"], ends_with(big),
                output="o.safetensors", inputs=("k.safetensors",))
    yield Scene("slice by reading", ["a.npy", back, "-o", "o.npy", "--io", "read"], an_array(a[::-1, ::-2]))
    yield Scene("slice in two threads", ["big.npy", back, "-o", "o.npy", "-j", "2"], an_array(big[::-1, ::-2]),
                inputs=("big.npy",))
    yield Scene("slice out of a checkpoint", ["m.safetensors", back, "-t", "w", "-o", "o.npy"],
                an_array(a[::-1, ::-2]), inputs=("m.safetensors",))
    yield Scene("slice to a checkpoint", ["a.npy", back, "-o", "o.safetensors"], a_safetensors(a=a[::-1, ::-2]),
                output="o.safetensors")
    yield Scene("slice to a pipe", ["a.npy", back], an_array(a[::-1, ::-2]), to_stdout="pipe")
    yield Scene("slice to a redirected file", ["a.npy", back], an_array(a[::-1, ::-2]), to_stdout="file")
    yield Scene("slice of a pipe as it comes", ["-", "[::2, 3:5]", "-o", "o.npy"], an_array(a[::2, 3:5]), stdin="a.npy",
                inputs=())
    yield Scene("slice of a pipe that is spooled", ["-", back, "-o", "o.npy"], an_array(big[::-1, ::-2]), stdin="big.npy",
                inputs=())
    yield Scene("pipe to pipe", ["-", "[3:9]"], an_array(a[3:9]), stdin="a.npy", inputs=(), to_stdout="pipe")
    shutil.copy(at("a.npy"), at("p0.npy"))
    three = Several.NAMES
    yield Several("split", ["a.npy", "--parts", "3"], a)
    yield Several("split over old files", ["a.npy", "--parts", "3", "--force"], a, old=three)
    yield Several("split over its input and an old file, with --fsync", ["p0.npy", "--parts", "3", "--force", "--fsync"],
                  a, old=three[2:], inputs=("p0.npy",))
    for lacking, world in (("exchange", no_exchange), ("exchange and links", no_exchange_or_links)):
        yield Several(f"split over its input and old files without {lacking}", ["p0.npy", "--parts", "3", "--force"], a,
                      old=three[1:], inputs=("p0.npy",), world=world)
    for force in ([], ["--force"]):
        yield Scene(f"slice without unnamed files {' '.join(force)}", ["a.npy", every, "-o", "o.npy", *force],
                    an_array(a[::2]), old=OLD if force else None, world=no_unnamed_files)
    one = ["-o", "o.npy"]
    where = np.array([[5, 3], [0, 29], [59, 0]] * 200, "<i8")
    np.save(at("i.npy"), where)
    value = -np.arange(30 * 30 * 40, dtype="<i4").reshape(30, 30, 40)
    np.save(at("v.npy"), value)
    changed, filled = a.copy(), a.copy()
    changed[::2], filled[:, :, 3] = value, 7
    gathered, both = an_array(a[where[:, 0], where[:, 1]]), ("a.npy", "i.npy")
    yield Scene("gather", ["gather", "a.npy", "--indices", "i.npy", *one], gathered, inputs=both)
    yield Scene("gather by reading", ["gather", "a.npy", "--indices", "i.npy", "--io", "read", *one], gathered,
                inputs=both)
    yield Scene("gather to a pipe", ["gather", "a.npy", "--indices", "i.npy"], gathered, inputs=both, to_stdout="pipe")
    yield Scene("gather with indices from a pipe", ["gather", "a.npy", "--indices", "-", *one], gathered,
                stdin="i.npy")
    yield Scene("gather along an axis, over an old file",
                ["gather", "a.npy", "--indices", "[[3, 1], [0, 29]]", "--axis", "1", *one, "--force"],
                an_array(a[:, [[3, 1], [0, 29]]]), old=OLD)
    yield Scene("slice with a list", ["a.npy", "[:, [0, 2, -1]]", *one], an_array(a[:, [0, 2, -1]]))
    yield Scene("cut one tensor, keep the rest", ["m.safetensors", "[::2]", "-t", "w", "--keep-rest",
                                                 "-o", "o.safetensors"], a_safetensors(w=a[::2]),
                output="o.safetensors", inputs=("m.safetensors",))
    write_safetensors(at("b.safetensors"), {"b": ("U8", (9,), bytes(9))})
    with open(at(INDEX), "w") as file:
        json.dump({"metadata": {}, "weight_map": {"w": "m.safetensors", "b": "b.safetensors"}}, file)
    sharded = ("m.safetensors", "b.safetensors", INDEX)
    cut, both_cut = [INDEX, "[::2]", "-t", "w", "--keep-rest", "-o", "out/"], shards(2, w=a[::2], b=np.zeros(9, "u1"))
    stood, config = dict.fromkeys(sharded, OLD), {"config.json": b"kept"}
    yield Folder("cut one tensor of a sharded checkpoint", cut, both_cut, sharded)
    yield Folder("cut one over an old folder", [*cut, "--force"], both_cut, sharded, stood, config)
    yield Folder("cut one over an old folder, with --fsync", [*cut, "--force", "--fsync"], both_cut, sharded, stood, config)
    yield Folder("cut one over a folder with a folder in it", [*cut, "--force"], both_cut, sharded, stood,
                 config | {"sub/file": b"kept"})
    np.savez(at("s.npz"), a=a, b=a[:2])
    np.savez_compressed(at("d.npz"), a=a, b=a[:2])
    for kind, name in ("stored", "s.npz"), ("deflated", "d.npz"):
        yield Scene(f"slice out of an archive, {kind}", [name, back, "-t", "a", "-o", "o.npy"], an_array(a[::-1, ::-2]),
                    inputs=(name,))
        yield Scene(f"list out of an archive, {kind}", [name, "[:, [0, 2, -1]]", "-t", "a", "-o", "o.npy"],
                    an_array(a[:, [0, 2, -1]]), inputs=(name,))
    two, cut = an_npz(a=a[::2], b=a[:2]), ["s.npz", "[::2]", "-t", "a", "--keep-rest"]
    yield Scene("cut one array of an archive", [*cut, "-o", "o.npz"], two, output="o.npz", inputs=("s.npz",))
    yield Scene("cut one over an old archive, deflated", [*cut, "--deflate", "--force", "-o", "o.npz"], two, output="o.npz",
                inputs=("s.npz",), old=OLD)
    yield Scene("an archive to a pipe", [*cut, "--to", "npz"], two, inputs=("s.npz",), to_stdout="pipe")
    yield Scene("a deflated archive to a pipe", [*cut, "--to", "npz", "--deflate"], two, inputs=("s.npz",), to_stdout="pipe")
    yield Scene("slice to raw bytes", ["a.npy", every, "-o", "o.bin"], bytes_of(a[::2]), output="o.bin")
    put = ["assign", "a.npy", every, "--value", "v.npy"]
    yield Scene("assign to a copy", [*put, *one], an_array(changed), inputs=("a.npy", "v.npy"))
    yield Scene("assign to a copy over an old file", [*put, *one, "--force"], an_array(changed),
                inputs=("a.npy", "v.npy"), old=OLD)
    yield Scene("assign to a copy over itself", [*put, "-o", "a.npy", "--force"], an_array(changed),
                inputs=("a.npy", "v.npy"), output="a.npy", old=OLD)
    yield Scene("assign from a pipe", ["assign", "a.npy", every, "--value", "-", *one], an_array(changed),
                stdin="v.npy")
    yield InPlace("assign in place", [*put, "--in-place"], an_array(changed), inputs=("a.npy", "v.npy"))
    yield InPlace("fill in place, with --fsync", ["assign", "a.npy", "..., 3", "--fill", "7", "--in-place", "--fsync"],
                  an_array(filled))
    np.save(at("few.npy"), a[:9])
    longer = an_array(np.concatenate([a, a[:9]]))
    for more in ([], ["--fsync"]):
        yield Appends(f"append in place {' '.join(more)}", ["concat", "--append-to", "a.npy", "few.npy", *more], longer,
                      inputs=("a.npy", "few.npy"))
    rows = np.arange(30, dtype="<i8")[::-1, None] * 2
    np.save(at("r.npy"), rows)
    scattered, three = a.copy(), ("a.npy", "r.npy", "v.npy")
    scattered[rows[:, 0]] = value
    put = ["scatter", "a.npy", "--indices", "r.npy", "--values", "v.npy"]
    yield Scene("scatter to a copy", [*put, *one], an_array(scattered), inputs=three)
    yield Scene("scatter to a copy over itself", [*put, "-o", "a.npy", "--force"], an_array(scattered), inputs=three,
                output="a.npy", old=OLD)
    yield Scene("scatter to a pipe", [*put, "-o", "-"], an_array(scattered), inputs=three, to_stdout="pipe")
    yield InPlace("scatter in place", [*put, "--in-place"], an_array(scattered), inputs=three)
    write_safetensors(at("c.safetensors"), {"v": ("I32", value.shape, value.tobytes()),
                                                            "t": ("I32", a.shape, a.tobytes())})
    yield InPlace("assign in place from another tensor of the file", [
        "assign", "c.safetensors", every, "-t", "t", "--value", "c.safetensors", "--value-tensor", "v", "--in-place",
    ], ends_with(changed), inputs=("c.safetensors",))
    yield Scene("info", ["info", "a.npy"], text_with(b"(60, 30, 40)", b"int32"), to_stdout="file")


def several_tensors():
    """Merges, shards of a size, metadata, and changes of several tensors in place."""
    layers = {f"l{number}": np.arange(100 * 100, dtype="<i4").reshape(100, 100) + number for number in range(4)}
    stored = {name: ("I32", array.shape, array.tobytes()) for name, array in layers.items()}
    first, others = {"l0": stored["l0"]}, {name: stored[name] for name in ("l1", "l2", "l3")}
    write_safetensors(at("l.safetensors"), stored, {"format": "pt"})
    write_safetensors(at("l0.safetensors"), first, {"format": "pt"})
    np.savez(at("l123.npz"), l1=layers["l1"], l2=layers["l2"], l3=layers["l3"])
    np.save(at("x.npy"), layers["l3"] * 2)
    merge, three = ["merge", "l0.safetensors", "l123.npz", "x.npy"], ("l0.safetensors", "l123.npz", "x.npy")
    together = layers | {"x": layers["l3"] * 2}
    for kind, judged in (("safetensors", a_safetensors(**together)), ("npz", an_npz(**together))):
        yield Scene(f"merge to a new .{kind}", [*merge, "-o", f"o.{kind}"], judged, output=f"o.{kind}", inputs=three)
    yield Scene("merge over an old file, with --fsync", [*merge, "-o", "o.safetensors", "--force", "--fsync"],
                a_safetensors(**together), output="o.safetensors", inputs=three, old=OLD)
    yield Scene("merge over one of its inputs", [*merge, "-o", "l0.safetensors", "--force"], a_safetensors(**together),
                output="l0.safetensors", inputs=three, old=OLD)
    yield Scene("merge to a pipe", [*merge, "--to", "npz"], an_npz(**together), inputs=three, to_stdout="pipe")
    yield Folder("merge to a folder", [*merge, "-o", "out/", "--shard-size", "100kB"], shards(3, **together), three)

    with open(at("config.json"), "w") as file:
        json.dump({"name": "x" * 9000}, file)
    cut, two = ["l.safetensors", "-o", "out/", "--shard-size", "100kB"], shards(2, **layers)
    whole = ("l.safetensors",)
    old_index = {"metadata": {}, "weight_map": {"l0": "old-1.safetensors", "l1": "model-00002-of-00002.safetensors"}}
    stood = {"old-1.safetensors": OLD, "model-00002-of-00002.safetensors": OLD,
             "model.safetensors.index.json": json.dumps(old_index).encode()}
    kept = {"config.json": b"{}"}
    yield Folder("cut into shards of a size", cut, two, whole)
    yield Folder("cut into shards of a size, with other files", [*cut, "--with-files"], two, (*whole, "config.json"))
    yield Folder("cut into shards over an old folder", [*cut, "--force"], two, whole, stood, kept)
    yield Folder("cut into shards over a folder with a folder in it, with other files", [*cut, "--force", "--with-files"],
                 two, (*whole, "config.json"), stood | kept, {"sub/file": b"kept"})

    yield Scene("change metadata alone", ["l.safetensors", "--metadata", "by=me", "-o", "o.safetensors"],
                a_safetensors(**layers), output="o.safetensors", inputs=whole)
    yield Scene("change metadata alone, over the input", ["l.safetensors", "--no-metadata", "-o", "l.safetensors", "--force"],
                a_safetensors(**layers), output="l.safetensors", inputs=whole, old=OLD)

    filled = {name: array.copy() for name, array in layers.items()}
    for array in filled.values():
        array[:, 0] = 7
    fill = ["-t", "l*", "[:, 0]", "--fill", "7", "--in-place"]
    yield InPlace("assign to several tensors in place", ["assign", "l.safetensors", *fill], a_safetensors(**filled), whole)
    write_safetensors(at("l123.safetensors"), others)
    index = "l.safetensors.index.json"
    weight_map = {name: "l0.safetensors" if name == "l0" else "l123.safetensors" for name in layers}
    with open(at(index), "w") as file:
        json.dump({"metadata": {}, "weight_map": weight_map}, file)
    parts = ("l0.safetensors", "l123.safetensors")

    def in_shards(arrays):
        return ends_with(np.stack([arrays[name] for name in ("l1", "l2", "l3")]))

    yield InPlace("assign to several tensors in shards", ["assign", index, *fill], in_shards(filled), (*parts, index), parts)
    rows = np.array([[9], [0], [50]], "<i8")
    np.save(at("rows.npy"), rows)
    values = {name: -np.arange(300, dtype="<i4").reshape(3, 100) - number for number, name in enumerate(layers)}
    write_safetensors(at("values.safetensors"), {name: ("I32", array.shape, array.tobytes()) for name, array in values.items()})
    scattered = {name: array.copy() for name, array in layers.items()}
    for name, array in scattered.items():
        array[rows[:, 0]] = values[name]
    put = ["-t", "l*", "--indices", "rows.npy", "--values", "values.safetensors", "--in-place"]
    beside = ("rows.npy", "values.safetensors")
    yield InPlace("scatter to several tensors in place", ["scatter", "l.safetensors", *put], a_safetensors(**scattered),
                  (*whole, *beside))
    yield InPlace("scatter to several tensors in shards", ["scatter", index, *put], in_shards(scattered),
                  (*parts, index, *beside), parts)
    yield Scene("reduce several tensors", ["view", "l.safetensors", "-t", "*", "--reduce", "sum", "--axis", "0", "-o", "o.npz"],
                an_npz(**{name: array.sum(0) for name, array in layers.items()}), output="o.npz", inputs=whole)
    yield Scene("statistics of several tensors", ["view", "l.safetensors", "-t", "*", "--stats"],
                text_with(*(name.encode() for name in layers)), inputs=whole, to_stdout="file")


def texts_and_tables():
    """Inputs that are read as texts, whose elements wait in a temporary file; files of torch.save; reductions."""
    a = np.load(at("a.npy"))
    table = a.reshape(600, 120).astype("<f8")
    # cut within its first line, it holds no row
    np.savetxt(at("t.csv"), table, "%d", ",", header="x" * 200)
    with open(at("t.json"), "w") as file:
        json.dump(table.tolist(), file)
    for kind in ("csv", "json"):
        yield Scene(f"{kind} to a new file", [f"t.{kind}", "-o", "o.npy", "--dtype", "float64"], an_array(table),
                    inputs=(f"t.{kind}",))
    yield Scene("csv over an old file", ["t.csv", "[::-1, 3:]", "-o", "o.npy", "--force"], an_array(table[::-1, 3:]),
                inputs=("t.csv",), old=OLD)
    yield Scene("csv from a pipe", ["-", "--from", "csv", "-o", "o.npy"], an_array(table), stdin="t.csv", inputs=())
    torch_files.pt({"w": torch_files.View(a.tobytes(), "int32", 0, a.shape, (1200, 40, 1)),
                    "t": torch_files.View(a.tobytes(), "int32", 0, a.shape[::-1], (1, 40, 1200))}, at("m.pt"))
    yield Scene("convert a .pt", ["m.pt", "-o", "o.safetensors"], a_safetensors(w=a, t=a.T), output="o.safetensors",
                inputs=("m.pt",))
    yield Scene("slice out of a .pt", ["m.pt", "-t", "t", "[::2]", "-o", "o.npy"], an_array(a.T[::2]), inputs=("m.pt",))
    for axis, judged in (("0", a.mean(0)), ("1,2", a.mean((1, 2)))):
        yield Scene(f"reduce along {axis}", ["view", "a.npy", "--reduce", "mean", "--axis", axis, "-o", "o.npy"],
                    an_array(judged))


def out_of_core():
    """Changed layouts and rows in random order of what does not fit in a little memory."""
    long = np.zeros((131072, 128), "<u4")  # 64 MiB, of which a quarter is taken
    long[:, :32] = np.arange(131072 * 32, dtype="u4").reshape(131072, 32)
    np.save(at("long.npy"), long)
    for name, more in (("", []), (" by reading", ["--io", "read"])):
        yield Scene(f"transpose in panels{name}", ["long.npy", "[:, :32]", "-T", "-o", "o.npy", *more],
                    an_array(long[:, :32].T), inputs=("long.npy",), world=little_memory(40 * MIB), is_slow=True)
    square = np.zeros((4096, 4096), "<u4")  # 64 MiB
    square[:, :1024] = np.arange(4096 * 1024, dtype="u4").reshape(4096, 1024)
    np.save(at("square.npy"), square)
    turn, result, few = ["square.npy", "[:, :1024]", "-T"], an_array(square[:, :1024].T), little_memory(40 * MIB)
    yield Scene("transpose in two passes", [*turn, "-o", "o.npy"], result, inputs=("square.npy",), world=few, is_slow=True)
    yield Scene("transpose in two passes over an old file", [*turn, "-o", "o.npy", "--force"], result,
                inputs=("square.npy",), old=OLD, world=few, is_slow=True)
    yield Scene("transpose in two passes to a pipe", turn, result, inputs=("square.npy",), to_stdout="pipe", world=few,
                is_slow=True)
    rows = np.arange(1 << 22, dtype="<u4").reshape(-1, 16)  # 16 MiB
    where = np.random.default_rng(1).integers(0, len(rows), 6000)
    np.save(at("many.npy"), rows)
    np.save(at("where.npy"), where)
    pick, few = ["gather", "many.npy", "--axis", "0", "--indices", "where.npy"], little_memory(16 * MIB)
    both = ("many.npy", "where.npy")
    yield Scene("distribute rows", [*pick, "-o", "o.npy"], an_array(rows[where]), inputs=both, world=few)
    yield Scene("distribute rows over an old file", [*pick, "-o", "o.npy", "--force"], an_array(rows[where]), inputs=both,
                old=OLD, world=few)
    yield Scene("distribute rows to a pipe", pick, an_array(rows[where]), inputs=both, to_stdout="pipe", world=few)
    yield Scene("distribute rows of a list by reading", ["many.npy", "[@where.npy]", "-o", "o.npy", "--io", "read"],
                an_array(rows[where]), inputs=both, world=few, is_slow=True)
    there, scattered = np.random.default_rng(2).permutation(len(rows))[:6000], rows.copy()
    values = ~rows[:6000]
    scattered[there] = values
    np.save(at("there.npy"), there.reshape(-1, 1))
    np.save(at("list.npy"), there)
    np.save(at("values.npy"), values)
    put = ["scatter", "many.npy", "--indices", "there.npy", "--values", "values.npy"]
    three, more = ("many.npy", "there.npy", "values.npy"), {"world": few, "is_slow": True}
    yield Scene("distribute values", [*put, "-o", "o.npy"], an_array(scattered), inputs=three, **more)
    yield Scene("distribute values to a pipe", [*put, "-o", "-"], an_array(scattered), inputs=three, to_stdout="pipe", **more)
    yield InPlace("distribute values in place", [*put, "--in-place"], an_array(scattered), inputs=three, **more)
    yield InPlace("distribute values to a list in place",
                  ["assign", "many.npy", "[@list.npy]", "--value", "values.npy", "--in-place", "--io", "read"],
                  an_array(scattered), inputs=("many.npy", "list.npy", "values.npy"), **more)
