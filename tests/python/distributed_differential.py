#!/usr/bin/env python3
"""Differential test: distributed checkpoints of PyTorch, as several processes save them with gloo, against the tensors.

    python tests/python/distributed_differential.py --bin target/debug/tslice --count 200 --seed 1

Every fourth of the cases is saved by 1, 2, 4 and 8 processes. A checkpoint holds tensors that are sharded along axes of
meshes of one or two axes, evenly or not, replicated ones, plain ones of random dtypes and strides, and objects. Slices of
each and copies of all must be what was saved. Then the folder is damaged, in five ways: a file is cut short, removed or changed, or
the metadata are; what is still read must be right, and all else an error in one line.
"""

import functools
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile

import numpy as np

import harness
import random_indices
from cases import Case, check_hostile
from harness import Failure

RANKS = [1, 2, 4, 8]
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int8", "uint8", "bool", "complex64", "float8_e4m3fn"]


def plan(seed, number, ranks):
    """What case `number` holds: [(name, dtype, shape, how it is placed)]."""
    rng = random.Random(f"{seed}/{number}")
    meshes = [(ranks,)] + [(a, ranks // a) for a in (2, 4) if ranks % a == 0 and ranks > a]
    tensors = []
    for at in range(rng.randrange(1, 7)):
        shape = tuple(rng.choice([1, 2, 3, 5, 8, 17, 40]) for _ in range(rng.choice([0, 1, 1, 2, 2, 2, 3, 4])))
        name = rng.choice(["model.w", "layers.0.weight", "optim.state.exp_avg", "a b", "größe", "x/y"]) + str(at)
        kind = rng.choice(["mesh", "mesh", "mesh", "plain", "strided"]) if shape else "plain"
        mesh = rng.choice(meshes)
        # an axis for each of the mesh; -1 for replicated ones
        axes = [rng.choice([-1, *range(len(shape))]) for _ in mesh] if kind == "mesh" else []
        tensors.append((name, rng.choice(DTYPES), shape, kind, mesh, axes))
    return tensors


def items(seed, number, at, dtype, shape):
    """The bytes of the elements."""
    rng = np.random.default_rng([seed, number, at])
    count = int(np.prod(shape, dtype=np.int64))
    size = {"float64": 8, "int64": 8, "complex64": 8, "float32": 4, "float16": 2, "bfloat16": 2}.get(dtype, 1)
    values = rng.integers(0, 2 if dtype == "bool" else 255, count * size, dtype=np.uint8)
    return values.reshape(count, size)


# ---------------------------------------------------------------- the processes that save


def worker(rank, ranks, port, folder, seed, count):
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    meshes = {}
    for number in range(count):
        state = {}
        for at, (name, dtype, shape, kind, mesh, axes) in enumerate(plan(seed, number, ranks)):
            flat = torch.from_numpy(items(seed, number, at, dtype, shape).reshape(-1).copy())
            full = flat.view(getattr(torch, dtype)).reshape(shape)
            if kind == "mesh":
                if mesh not in meshes:
                    meshes[mesh] = init_device_mesh("cpu", mesh)
                placed = [Replicate() if axis < 0 else Shard(axis) for axis in axes]
                full = distribute_tensor(full, meshes[mesh], placed, src_data_rank=None)
            elif kind == "strided":
                full = full.mT.contiguous().mT if len(shape) > 1 else full
            state[name] = full
        nested = {"tensors": state, "epoch": number, "groups": [{"lr": 0.1}]}
        dcp.save(nested, checkpoint_id=os.path.join(folder, str(number)))
    dist.barrier()
    dist.destroy_process_group()


def save(ranks, seed, count):
    """A folder with `count` checkpoints of so many processes."""
    folder = tempfile.mkdtemp(prefix="tslice-dcp-")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    given = [str(it) for it in (ranks, port, folder, seed, count)]
    own = [sys.executable, "-W", "ignore", __file__, "--worker"]
    started = [subprocess.Popen([*own, str(rank), *given], stderr=subprocess.PIPE) for rank in range(ranks)]
    said = [process.communicate(timeout=1800)[1] for process in started]
    if any(process.returncode for process in started):
        sys.exit(b"\n".join(said).decode())
    return folder


# ---------------------------------------------------------------- what the program reads


def elements(path, size):
    with open(path, "rb") as file:
        data = file.read()
    return data[len(data) - size:]


def expected(seed, number, at, dtype, shape):
    values = items(seed, number, at, dtype, shape)
    return np.ascontiguousarray(values).view(f"V{values.shape[1]}").reshape(shape)


def slices(case, number, folder, seed, ranks):
    rng = case.rng
    tensors = plan(seed, number, ranks)
    for at, (name, dtype, shape, *_) in enumerate(tensors):
        array = expected(seed, number, at, dtype, shape)
        index = random_indices.random_items(rng, shape)
        try:
            taken = array[tuple(index)]
        except (IndexError, ValueError):
            continue
        text = "[" + ", ".join(random_indices.spell_item(rng, item, lambda: "") for item in index) + "]"
        how = rng.choice([[], ["--io", "read"], ["-j", "1"], ["--order", "F"]])
        status, _, err = case.run([folder, "-t", "tensors." + name, text, "-o", "out.npy", "--force", *how])
        if status != 0:
            raise Failure(f"{name}: status {status}: {err}")
        taken = np.asarray(taken)
        bytes_of = taken.tobytes("F" if "F" in how else "C")
        if elements(case.path("out.npy"), len(bytes_of)) != bytes_of:
            raise Failure(f"{name} {dtype} {shape}: other elements")
    status, out, err = case.run(["info", folder, "--json"])
    found = json.loads(out)[0]
    names = ["tensors." + name for name, *_ in tensors]
    if status != 0 or sorted(it["name"] for it in found["tensors"]) != sorted(names):
        raise Failure(f"status {status}, {err}, {out}")


def whole(case, number, folder, seed, ranks):
    status, _, err = case.run([folder, "-t", "*", "-o", "out.safetensors"])
    if status != 0:
        raise Failure(f"status {status}: {err}")
    with open(case.path("out.safetensors"), "rb") as file:
        data = file.read()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    tensors = plan(seed, number, ranks)
    if set(header) - {"__metadata__"} != {"tensors." + name for name, *_ in tensors}:
        raise Failure(f"tensors {sorted(header)}")
    for at, (name, dtype, shape, *_) in enumerate(tensors):
        told = header["tensors." + name]
        begin, end = told["data_offsets"]
        if told["shape"] != list(shape) or data[start + begin:start + end] != expected(seed, number, at, dtype, shape).tobytes():
            raise Failure(f"{name} {dtype} {shape}: other elements")


def damaged(case, number, folder, seed, ranks):
    rng = case.rng
    copy = case.path("copy")
    shutil.copytree(folder, copy)
    files = [name for name in sorted(os.listdir(copy)) if rng.random() < 0.5] or [".metadata"]
    for name in files:
        path = os.path.join(copy, name)
        with open(path, "rb") as file:
            data = bytearray(file.read())
        way = rng.choice(["cut", "change", "change", "remove"])
        if way == "remove":
            os.remove(path)
            continue
        if way == "cut":
            del data[rng.randrange(len(data) + 1):]
        for _ in range(rng.randrange(1, 4) if way == "change" and data else 0):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with open(path, "wb") as file:
            file.write(data)
    case.memory = 1 << 30
    for args in (["copy", "-t", "*", "-o", "out.npz"], ["info", "copy"]):
        status, out, err = case.run(args)
        if status != 0:
            done = subprocess.CompletedProcess(args, status, out, err.encode())
            check_hostile(done, err.split(": ")[1] if ": " in err else "", None)
        if status not in (0, 1):
            raise Failure(f"status {status}: {err}")


def one(folders, job):
    options, number = job
    ranks = RANKS[number % len(RANKS)]
    count = number // len(RANKS)
    folder = os.path.join(folders[ranks], str(count))
    for again, kind in enumerate([slices, whole] + [damaged] * 5):
        case = Case(random.Random(f"{options.seed}/{number}/{again}"))
        judged = functools.partial(kind, number=count, folder=folder, seed=options.seed, ranks=ranks)
        judged.__name__ = kind.__name__
        problem = harness.run_case(case, judged, number, options.keep)
        if problem:
            return problem
    return None


def main():
    if sys.argv[1:2] == ["--worker"]:
        rank, ranks, port, folder, seed, count = sys.argv[2:]
        worker(int(rank), int(ranks), int(port), folder, int(seed), int(count))
        return 0
    options = harness.case_parser(__doc__, 200).parse_args()
    harness.begin(options)
    count = max(options.count, (options.only or 0) + 1)
    folders = {ranks: save(ranks, options.seed, -(-count // len(RANKS))) for ranks in RANKS[:count]}
    try:
        return harness.run_cases("distributed_differential", options, functools.partial(one, folders))
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
