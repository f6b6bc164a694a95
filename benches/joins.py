#!/usr/bin/env python3
"""Joins and splits of real sizes: a checkpoint of 4 GB cut for tensor parallelism and joined again, and
100,000 files stacked, beside cp and NumPy.

    python benches/joins.py --bin target/release/tslice --dir /somewhere [checkpoint] [files] [planes]

Files are in the page cache. Needs NumPy, and in --dir 13 GB for the checkpoint, 7 GB for the files.
--run COMMAND stands before each measured command. benches/results.md holds a run.
"""

import argparse
import json
import os
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

SCRIPT = os.path.abspath(__file__)
HIDDEN, INNER, VOCABULARY = 4096, 11008, 32000


def checkpoint_shapes(layers):
    """Names and shapes of a Llama-like model, in the order of its files."""
    shapes = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN)}
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        shapes[prefix + "input_layernorm.weight"] = (HIDDEN,)
        shapes[prefix + "mlp.down_proj.weight"] = (HIDDEN, INNER)
        shapes[prefix + "mlp.gate_proj.weight"] = (INNER, HIDDEN)
        shapes[prefix + "mlp.up_proj.weight"] = (INNER, HIDDEN)
        shapes[prefix + "post_attention_layernorm.weight"] = (HIDDEN,)
        for name in "kqvo":
            shapes[prefix + f"self_attn.{name}_proj.weight"] = (HIDDEN, HIDDEN)
    shapes["model.norm.weight"] = (HIDDEN,)
    return shapes


def write_checkpoint(path, shapes, dtype, block):
    """Tensors of 2 bytes an element, made of a block of bytes again and again; padding and order are those
    of tslice, so that cmp can compare."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in shapes.items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        while at > 0:
            at -= file.write(block[: min(at, len(block))])
    return os.path.getsize(path)


def measure(argv):
    """Run a command; print its seconds, its descriptors and its own memory (MiB) at the highest."""
    descriptors = rss = 0
    began = time.perf_counter()
    process = subprocess.Popen(argv)
    done = threading.Event()

    def look():
        nonlocal descriptors, rss
        while not done.wait(0.01):
            try:
                descriptors = max(descriptors, len(os.listdir(f"/proc/{process.pid}/fd")))
                status = open(f"/proc/{process.pid}/status").read()
                rss = max(rss, int(status.split("RssAnon:")[1].split()[0]) // 1024)
            except (OSError, IndexError):
                pass  # it has ended

    watcher = threading.Thread(target=look)
    watcher.start()
    status = process.wait()
    seconds = time.perf_counter() - began
    done.set()
    watcher.join()
    print(json.dumps([seconds, descriptors, rss]))
    return status


class Bench:
    def __init__(self, options):
        self.before, self.bin = shlex.split(options.run), os.path.abspath(options.bin)
        self.layers = options.layers

    def run(self, title, *argv):
        os.sync()
        argv = [*self.before, sys.executable, SCRIPT, "--measure", *map(str, argv)]
        done = subprocess.run(argv, check=True, stdout=subprocess.PIPE)
        seconds, descriptors, rss = json.loads(done.stdout.splitlines()[-1])
        print(f"{title}: {seconds:.3f} s, {descriptors} descriptors, RssAnon {rss} MiB", flush=True)

    def checkpoint(self):
        shapes = checkpoint_shapes(self.layers)
        size = write_checkpoint("model.safetensors", shapes, "BF16", np.random.default_rng(1).bytes(1 << 24))
        print(f"checkpoint: {len(shapes)} tensors, {size / 1e9:.2f} GB")
        axes = ["-t", "*_proj.weight", "--axis", "*.o_proj.weight=1", "--axis", "*.down_proj.weight=1", "--keep-rest"]
        for turn in range(2):
            self.run("cp", "cp", "model.safetensors", "copy.safetensors")
            os.unlink("copy.safetensors")
        self.run("split in 4", self.bin, "split", "model.safetensors", *axes, "--parts", 4, "-o", "rank-{}.safetensors", "-q")
        ranks = [f"rank-{number}.safetensors" for number in range(4)]
        print(f"ranks: {sum(map(os.path.getsize, ranks)) / 1e9:.2f} GB")
        self.run("concat", self.bin, "concat", *ranks, *axes, "-o", "whole.safetensors", "-q")
        subprocess.run([self.bin, "diff", "model.safetensors", "whole.safetensors", "-q"], check=True)
        print("identical: every name, shape, dtype and element")

    def files(self, count=100_000):
        os.mkdir("files")
        array = np.arange(4096, dtype="f4")
        with open("list", "w") as names:
            for number in range(count):
                np.save(f"files/{number:06}.npy", array + number)
                names.write(f"files/{number:06}.npy\n")
        script = (
            "import numpy as np\n"
            "names = open('list').read().split()\n"
            "np.save('numpy.npy', np.stack([np.load(name) for name in names]))\n"
        )
        self.run("stack, tslice", self.bin, "stack", "--files-from", "list", "-o", "out.npy", "-q")
        self.run("stack, NumPy", sys.executable, "-c", script)
        subprocess.run(["cmp", "out.npy", "numpy.npy"], check=True)
        print("identical")

    def planes(self, side=16_000):
        planes = np.random.default_rng(1).integers(0, 256, (3, side, side), "u1")
        for name, plane in zip("rgb", planes):
            np.save(f"{name}.npy", plane)
        np.save("rgba.npy", np.stack([*planes, planes[0]], -1))
        numpy = "import numpy as np; np.save('numpy.npy', np.stack([np.load(f'{c}.npy') for c in 'rgb'], -1))"
        for turn in range(2):
            self.run("planes, np.stack", sys.executable, "-c", numpy)
            self.run("planes, tslice", self.bin, "stack", "r.npy", "g.npy", "b.npy", "--axis", "-1", "-o", "out.npy", "-fq")
            self.run("crop of the same size", self.bin, "out.npy", "[::-1]", "-o", "crop.npy", "-fq")
        subprocess.run(["cmp", "out.npy", "numpy.npy"], check=True)


def run_benches(description, which, make):
    """Run those of the benches that the command line names, each in a folder of its own."""
    if sys.argv[1:2] == ["--measure"]:
        return measure(sys.argv[2:])
    options = argparse.ArgumentParser(description=description)
    options.add_argument("which", nargs="*", default=which)
    options.add_argument("--bin", default="target/release/tslice")
    options.add_argument("--dir", help="where the files are made")
    options.add_argument("--layers", type=int, default=9, help="of the checkpoint: 0.4 GB each")
    options.add_argument("--run", default="", help="what stands before each measured command")
    options = options.parse_args()
    bench = make(options)
    for name in options.which:
        folder = tempfile.mkdtemp(dir=options.dir)
        home = os.getcwd()
        os.chdir(folder)
        try:
            getattr(bench, name)()
        finally:
            os.chdir(home)
            shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(run_benches(__doc__.split("\n")[0], ["checkpoint", "files", "planes"], Bench))
