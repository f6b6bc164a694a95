#!/usr/bin/env python3
"""Everyday work on a checkpoint of 4 GB in 8 shards: merged, cut into other shards, searched for NaN, reduced,
beside cp and the Python that people write for it; and on one of 20,000 tensors, a mixture of experts of 2 GB, where
the header counts.

    python benches/checkpoint.py --bin target/release/tslice --dir /somewhere [merge] [reshard] [table] [mean] [experts]

Files are in the page cache. Needs NumPy and safetensors, 14 GB in --dir, and as much memory as the checkpoint for
the Python. Results are compared. `--layers` and `--run` are those of joins.py; benches/results.md holds a run.
"""

import glob
import json
import os
import shlex
import shutil
import subprocess
import sys

import numpy as np
from safetensors import safe_open

from joins import Bench, checkpoint_shapes, run_benches, write_checkpoint

SHARDS = 8
EMBEDDING = "model.embed_tokens.weight"
LOAD = """
import glob, json, os
import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file
tensors = {}
for shard in sorted(glob.glob("in/*.safetensors")):
    with safe_open(shard, "np") as file:
        for name in file.keys():
            tensors[name] = file.get_tensor(name)
"""
MERGE = LOAD + """
save_file(tensors, "python.safetensors", {"format": "pt"})
"""
RESHARD = LOAD + """
shards, size = [{}], 0
for name, array in tensors.items():
    if shards[-1] and size + array.nbytes > 10**9:
        shards, size = shards + [{}], 0
    shards[-1][name] = array
    size += array.nbytes
os.mkdir("python")
weight_map = {}
for number, shard in enumerate(shards, 1):
    file = f"model-{number:05}-of-{len(shards):05}.safetensors"
    save_file(shard, f"python/{file}", {"format": "pt"})
    weight_map.update(dict.fromkeys(shard, file))
with open("python/model.safetensors.index.json", "w") as file:
    json.dump({"metadata": {}, "weight_map": weight_map}, file)
"""
TABLE = LOAD + """
with open("python.json", "w") as out:
    for name, array in tensors.items():
        wide = array.astype("f4")
        row = {"name": name, "nan": int(np.isnan(wide).sum()), "infinite": int(np.isinf(wide).sum()),
               "min": float(np.nanmin(wide)), "max": float(np.nanmax(wide)), "mean": float(np.nanmean(wide, dtype="f8"))}
        out.write(json.dumps(row) + "\\n")
"""
MEAN = """
import numpy as np
from safetensors import safe_open
with safe_open("in/model-00001-of-00008.safetensors", "np") as file:
    np.save("python.npy", file.get_tensor("%s").mean(0))
""" % EMBEDDING
OPEN = """
from safetensors import safe_open
with safe_open("ours.safetensors", "np") as file:
    slices = map(file.get_slice, file.keys())
    rows = [(part.get_dtype(), part.get_shape()) for part in slices]
"""


def experts_shapes(layers=52):
    """Names and shapes of a mixture of experts: 20,282 tensors."""
    hidden, inner = 256, 200
    shapes = {EMBEDDING: (1024, hidden)}
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        shapes |= {prefix + f"{norm}_layernorm.weight": (hidden,) for norm in ("input", "post_attention")}
        shapes |= {prefix + f"self_attn.{name}_proj.weight": (hidden, hidden) for name in "kqvo"}
        for expert in range(128):
            mlp = f"{prefix}mlp.experts.{expert}."
            shapes |= {mlp + f"{name}_proj.weight": (inner, hidden) for name in ("gate", "up")}
            shapes[mlp + "down_proj.weight"] = (hidden, inner)
    return shapes | {"model.norm.weight": (hidden,)}


def tensors_of(paths):
    """All tensors of some files, one after the other by name."""
    found = {}
    for path in paths:
        with safe_open(path, "np") as file:
            found |= dict.fromkeys(file.keys(), path)
    return found


def same_tensors(ours, theirs):
    ours, theirs = tensors_of(ours), tensors_of(theirs)
    assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
    for name in ours:
        with safe_open(ours[name], "np") as one, safe_open(theirs[name], "np") as other:
            assert one.get_tensor(name).tobytes() == other.get_tensor(name).tobytes(), name
    print(f"identical: {len(ours)} tensors")


class Everyday(Bench):
    def shards(self, shapes=None):
        """The checkpoint in `in`: float16, normally distributed, with a few NaN."""
        shapes = shapes or checkpoint_shapes(self.layers)
        names, total = list(shapes), sum(2 * int(np.prod(shape)) for shape in shapes.values())
        block = (np.random.default_rng(1).standard_normal(1 << 23) * 0.02).astype("f2")
        block[1 << 22] = np.nan
        os.mkdir("in")
        weight_map, size = {}, 0
        for number in range(SHARDS):
            shard, bytes_of_shard = {}, 0
            while names and (number == SHARDS - 1 or bytes_of_shard < total / SHARDS):
                name = names.pop(0)
                shard[name] = shapes[name]
                bytes_of_shard += 2 * int(np.prod(shapes[name]))
            file = f"model-{number + 1:05}-of-{SHARDS:05}.safetensors"
            size += write_checkpoint(f"in/{file}", shard, "F16", block.tobytes())
            weight_map |= dict.fromkeys(shard, file)
        with open("in/model.safetensors.index.json", "w") as file:
            json.dump({"metadata": {}, "weight_map": weight_map}, file)
        print(f"checkpoint: {len(shapes)} tensors, {size / 1e9:.2f} GB, {SHARDS} shards")

    def python(self, title, script):
        self.run(f"{title}, Python", sys.executable, "-c", script)

    def cp(self, *paths):
        os.mkdir("copy")
        self.run("cp", "cp", *paths, "copy")
        shutil.rmtree("copy")

    def merge(self):
        self.shards()
        self.cp(*glob.glob("in/*"))
        self.run("merge, tslice", self.bin, "merge", *sorted(glob.glob("in/*.safetensors")), "-o", "ours.safetensors", "-q")
        self.python("merge", MERGE)
        same_tensors(["ours.safetensors"], ["python.safetensors"])

    def reshard(self):
        self.shards()
        self.cp(*glob.glob("in/*"))
        self.run("shards of 1 GB, tslice", self.bin, "in", "-o", "ours/", "--shard-size", "1GB", "-q")
        self.python("shards of 1 GB", RESHARD)
        same_tensors(glob.glob("ours/*.safetensors"), glob.glob("python/*.safetensors"))
        assert sorted(os.listdir("ours")) == sorted(os.listdir("python")), os.listdir("ours")

    def table(self):
        self.shards()
        self.cp(*glob.glob("in/*"))
        view = [self.bin, "view", "in", "-t", "*", "--stats", "-q"]
        self.run("table of NaN, tslice", "sh", "-c", shlex.join(view) + " > table.txt")
        self.python("table of NaN", TABLE)
        theirs = {row["name"]: row for row in map(json.loads, open("python.json"))}
        done = subprocess.run([*view, "--json"], check=True, stdout=subprocess.PIPE)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(rows) == len(theirs)
        for row in rows:
            other = theirs[row["name"]]
            assert all(row[key] == other[key] for key in ("nan", "infinite")), (row, other)
            # the extremes are printed as NumPy prints float16
            for key in ("min", "max"):
                assert np.float16(row[key]["value"]) == np.float16(other[key]), (row, other)
            assert np.isclose(row["mean"], other["mean"], 1e-6, 1e-9), (row, other)
        print(f"the same numbers: {len(rows)} tensors")

    def mean(self):
        self.shards()
        subprocess.run([self.bin, "in", "-t", EMBEDDING, "-o", "embedding.npy", "-q"], check=True)
        self.cp("embedding.npy")
        self.run("mean of rows, tslice", self.bin, "view", "in", "-t", EMBEDDING, "--reduce", "mean", "--axis", "0",
                 "-o", "ours.npy", "-q")
        self.python("mean of rows", MEAN)
        ours, theirs = np.load("ours.npy"), np.load("python.npy")
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=1e-6)
        print("the same within a unit of float16")

    def experts(self):
        self.shards(experts_shapes())
        whole, experts = "ours.safetensors", ["-t", "*.experts.*"]
        jobs = {
            "merge": ["merge", *sorted(glob.glob("in/*.safetensors")), "-o", whole],
            "shards of 150 MB": ["in", "-o", "shards/", "--shard-size", "150MB"],
            "experts": ["in", *experts, "-o", "experts.safetensors"],
            "split in 4": ["split", "in", *experts, "--axis", 0, "--parts", 4, "--keep-rest", "-o", "rank-{}.safetensors"],
        }
        for title, job in jobs.items():
            self.run(f"{title}, dry run", self.bin, *job, "-nq")
            self.run(title, self.bin, *job, "-q")
        self.cp(whole)
        self.run("info", self.bin, "info", whole)
        self.run("info --json", self.bin, "info", whole, "--json")
        self.python("dtypes and shapes", OPEN)


if __name__ == "__main__":
    sys.exit(run_benches(__doc__.split("\n")[0], ["merge", "reshard", "table", "mean", "experts"], Everyday))
