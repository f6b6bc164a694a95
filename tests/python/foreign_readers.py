"""What their own libraries read from tensor files: NumPy, h5py, zarr-python, PyTorch, safetensors and gguf.

    kind_of(path)        "npy", "npz", "hdf5", "zarr", "torch", "safetensors", "gguf", "text" or None
    read(kind, path)     {name: array, or a Refused}, by the names that tslice gives; raises where the library refuses all

No object of a pickle is made here, and no function in one is called, but those that put tensors together. A tensor
within such an object has a name beginning with `?`: it is found by its elements.
"""

import collections
import functools
import io
import json
import os
import pickle
import re
import types
import warnings
import zipfile

import numpy as np

# more elements than this, in bytes, are not compared
LARGEST = 1 << 28
NAMES = 50_000
PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".th", ".tar")
TABLES = {".csv": ",", ".tsv": "\t", ".txt": None, ".dat": None}
ZARR = (".zarray", ".zgroup", "zarr.json")
HDF5 = b"\x89HDF\r\n\x1a\n"
# the first pickle of torch.save before PyTorch 1.6
LEGACY = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."


class Refused(str):
    """Why a library makes no array of a tensor."""


def kind_of(path):
    if os.path.isdir(path):
        return "zarr" if any(os.path.exists(os.path.join(path, name)) for name in ZARR) else None
    with open(path, "rb") as file:
        head = file.read(1 << 13)
    ending = os.path.splitext(path)[1].lower()
    if head.startswith(HDF5) or any(head[at:at + 8] == HDF5 for at in (512, 1024, 2048, 4096)):
        return "hdf5"
    if head.startswith(b"GGUF"):
        return "gguf"
    if head.startswith(b"PK"):
        return kind_of_archive(path, ending)
    if ending in PICKLES and head[2:15] == LEGACY:
        return "torch"
    if ending in TABLES:
        return "text"
    return {".npy": "npy", ".npz": "npz", ".safetensors": "safetensors"}.get(ending)


def kind_of_archive(path, ending):
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return None
    if any(name in ZARR for name in names):
        return "zarr"
    if any(name.endswith("/data.pkl") for name in names):
        return "torch"
    return "npz" if ending == ".npz" else None


def read(kind, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return READERS[kind](path)


def attempt(make):
    """An array, or why there is none."""
    try:
        return make()
    except Exception as error:  # whatever a library throws at a file
        return Refused(f"{type(error).__name__}: {error}")


# ---------------------------------------------------------------- NumPy


def read_npy(path):
    return {"": np.load(path)}


def read_npz(path):
    with np.load(path) as arrays:
        return {name: attempt(lambda name=name: arrays[name]) for name in arrays.files}


@functools.cache
def table(path):
    """A table as np.loadtxt reads it, and the delimiter that it took; None where there is none."""
    usual = TABLES[os.path.splitext(path)[1].lower()]
    for delimiter in dict.fromkeys([usual, None, ",", "\t", ";"]):
        for names in (0, 1):
            try:
                array = np.loadtxt(path, delimiter=delimiter, skiprows=names, encoding="utf-8", quotechar='"')
            except (ValueError, IndexError):
                continue
            if array.size and (not names or no_number(path, delimiter)):
                return array, delimiter
    return None


def read_text(path):
    found = table(path)
    return {"": found[0]} if found else {}


def options_of(kind, path):
    """How tslice is told what np.loadtxt found out."""
    if kind != "text" or not table(path):
        return []
    ending, delimiter = os.path.splitext(path)[1].lower(), table(path)[1]
    if delimiter is None:
        return [] if ending == ".txt" else ["--from", "txt"]
    return ["--from", "csv", "--delimiter", delimiter] if delimiter != TABLES[ending] else []


def no_number(path, delimiter):
    """Whether the first line has no number in it."""
    with open(path, encoding="utf-8") as file:
        for cell in file.readline().split(delimiter):
            try:
                float(cell.strip(' "\r\n'))
                return False
            except ValueError:
                pass
    return True


# ---------------------------------------------------------------- HDF5


def read_hdf5(path):
    """Datasets by every path on which links inside the file lead to them."""
    import h5py
    import hdf5plugin  # noqa: F401 (its filters)

    found = {}
    with h5py.File(path, "r") as file:
        walk_hdf5(h5py, file, "", [h5py.h5o.get_info(file.id).addr], found)
    return found


def walk_hdf5(h5py, group, prefix, above, found):
    for name in group:
        if len(found) > NAMES:
            return
        if isinstance(group.get(name, getlink=True), h5py.ExternalLink):
            continue
        key = prefix + name
        try:
            item = group[name]
        except KeyError:
            # a link that leads nowhere is no tensor; an object that cannot be opened is one that is not read
            if isinstance(group.get(name, getlink=True), h5py.HardLink):
                found[key] = Refused("cannot be opened")
            continue
        if isinstance(item, h5py.Dataset):
            found[key] = attempt(lambda item=item: dataset(h5py, item))
        elif isinstance(item, h5py.Group):
            place = h5py.h5o.get_info(item.id).addr
            if item.file == group.file and place not in above:
                walk_hdf5(h5py, item, key + "/", [*above, place], found)


MATLAB = {"double": "f8", "single": "f4", "logical": "?", "char": "u2"}
MATLAB |= {f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


def dataset(h5py, item):
    if item.shape is None:
        return Refused("no elements, and no shape")
    plain = plain_part(item.dtype)
    if plain is None:
        return Refused(f"objects in Python: {item.dtype}")
    if item.size * item.dtype.itemsize > LARGEST:
        return Refused("too large for this test")
    array = np.asarray(item[...]).reshape(item.shape + item.dtype.shape)
    if plain != item.dtype:
        part = np.zeros(array.shape, plain)
        copy_fields(array, part)
        return part
    kind = item.attrs.get("MATLAB_class", b"").decode()
    if item.attrs.get("MATLAB_empty"):
        # what is stored is its shape; (1, 1) of a structure without fields
        shape = tuple(int(length) for length in array)
        return np.zeros(shape, MATLAB.get(kind, array.dtype)) if 0 in shape else Refused("a structure without fields")
    if kind == "logical":
        return array.astype(bool)
    return array


def plain_part(dtype):
    """A dtype without the fields that are objects in Python; None where nothing is left."""
    if dtype.subdtype:
        base = plain_part(dtype.subdtype[0])
        return base and np.dtype((base, dtype.shape))
    if not dtype.names:
        return None if dtype.kind == "O" else dtype
    fields = {name: plain_part(dtype[name]) for name in dtype.names}
    if all(fields[name] == dtype[name] for name in fields):
        return dtype
    return np.dtype([entry for entry in fields.items() if entry[1]]) if any(fields.values()) else None


def copy_fields(array, part):
    for name in part.dtype.names:
        if part[name].dtype.names:
            copy_fields(array[name], part[name])
        else:
            part[name] = array[name]


# ---------------------------------------------------------------- Zarr


def read_zarr(path):
    """Arrays by their paths, groups without metadata of their own between them too."""
    import zarr

    if os.path.isdir(path):
        store, names = path, []
        for folder, _, files in os.walk(path):
            names += [os.path.relpath(os.path.join(folder, file), path) for file in files if file in ZARR]
    else:
        store = zarr.storage.ZipStore(path, mode="r")
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if os.path.basename(name) in ZARR]
    found = {}
    for name in names:
        inner = os.path.dirname(name)
        node = attempt(lambda inner=inner: zarr.open(store, path=inner, mode="r"))
        if isinstance(node, Refused) and os.path.exists(os.path.join(path, inner, ".zarray")):
            node = attempt(lambda inner=inner: without_fill_value(zarr, os.path.join(path, inner)))
        if isinstance(node, zarr.Array):
            found[inner] = attempt(lambda node=node: elements_of_zarr(node))
        elif isinstance(node, Refused):
            found[inner] = node
    return found


def without_fill_value(zarr, folder):
    """An array of version 2 whose fill value zarr-python 3 does not take, though zarr-python 2 wrote it (0 of strings)."""
    stored = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            stored[name] = file.read()
    stored[".zarray"] = json.dumps(dict(json.loads(stored[".zarray"]), fill_value=None)).encode()
    buffers = {name: zarr.core.buffer.cpu.Buffer.from_bytes(data) for name, data in stored.items()}
    return zarr.open_array(zarr.storage.MemoryStore(buffers), mode="r")


def elements_of_zarr(array):
    if array.nbytes > LARGEST:
        return Refused("too large for this test")
    read = np.asarray(array[...])
    return Refused(f"objects in Python: {read.dtype}") if read.dtype.kind in "OT" else read


# ---------------------------------------------------------------- PyTorch


class Opaque:
    """Anything of a pickle but a tensor, a plain value or a plain container: what it was made of is kept."""

    def __new__(cls, *parts, **named):
        made = object.__new__(cls)
        made.parts = [*parts, named]
        return made

    def __init__(self, *_, **__):
        pass

    def __call__(self, *parts, **named):
        return Opaque(self, *parts, named)

    def __setstate__(self, state):
        self.parts.append(state)

    def __setitem__(self, key, value):
        self.parts.append({key: value})

    def append(self, value):
        self.parts.append(value)

    def extend(self, values):
        self.parts.extend(values)

    add = append


PLAIN = {("collections", "OrderedDict"): collections.OrderedDict, ("builtins", "set"): set, ("__builtin__", "set"): set}
REBUILD = ["_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter",
           "_rebuild_parameter_with_state", "_rebuild_sparse_tensor", "_rebuild_qtensor"]


class Unpickler(pickle.Unpickler):
    """Knows the functions of torch that put a tensor together; all else is opaque."""

    def find_class(self, module, name):
        import torch

        if (module, name) in PLAIN:
            return PLAIN[module, name]
        if module == "torch._utils" and name in REBUILD and hasattr(torch._utils, name):
            return getattr(torch._utils, name)
        if (module, name) in (("torch", "Size"), ("torch", "device"), ("torch.serialization", "_get_layout")):
            return getattr(torch if module == "torch" else torch.serialization, name)
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        if (module, name) == ("torch.storage", "UntypedStorage"):
            return torch.UntypedStorage
        return type(name, (Opaque,), {"__module__": module})


def careful_pickle():
    """A module to read pickles with, for torch.load."""
    module = types.ModuleType("careful_pickle")
    module.Unpickler = Unpickler
    module.load = lambda file, **options: Unpickler(file, **options).load()
    module.loads = lambda data, **options: Unpickler(io.BytesIO(data), **options).load()
    return module


def read_torch(path):
    import torch

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            # loading TorchScript would run it
            if any(name.endswith(("/constants.pkl", "/model.json")) for name in archive.namelist()):
                raise ValueError("TorchScript, which is a program")
    value = torch.load(path, map_location="cpu", pickle_module=careful_pickle(), weights_only=False)
    found = {}
    for name, tensor in tensors_in(torch, value, "", set()):
        # within an opaque object, or a name that occurs twice
        key = name if name not in found else f"?{name} {len(found)}"
        found[key] = attempt(lambda tensor=tensor: elements_of_torch(torch, tensor))
    return found


def tensors_in(torch, value, path, seen):
    """All tensors of an object, with their names."""
    if isinstance(value, torch.Tensor):
        yield path, value
        return
    if isinstance(value, Opaque):
        if id(value) in seen:
            return
        seen.add(id(value))
        for number, part in enumerate(value.parts):
            for name, tensor in tensors_in(torch, part, "", seen):
                yield f"?{path}/{number}/{name.lstrip('?')}", tensor
    elif isinstance(value, dict):
        for key, item in value.items():
            inner = f"{path}.{key}" if path and isinstance(key, str) else key if isinstance(key, str) else f"{path}[{key!r}]"
            yield from tensors_in(torch, item, inner, seen)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from tensors_in(torch, item, f"{path}[{number}]", seen)


def elements_of_torch(torch, tensor):
    if tensor.layout != torch.strided or tensor.is_quantized:
        return Refused(f"{tensor.layout}, quantised: {tensor.is_quantized}")
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    try:
        return tensor.numpy()
    except TypeError:
        size = tensor.element_size()
        return tensor.flatten().view(torch.uint8).numpy().view(f"V{size}").reshape(tensor.shape)


def read_safetensors(path):
    import safetensors.torch
    import torch

    tensors = safetensors.torch.load_file(path)
    return {name: elements_of_torch(torch, tensor) for name, tensor in tensors.items()}


# ---------------------------------------------------------------- GGUF


def read_gguf(path):
    """Blocks as bytes."""
    import gguf

    found = {}
    for tensor in gguf.GGUFReader(path).tensors:
        name = re.sub(r"^GGMLQuantizationType\.", "", str(tensor.tensor_type))
        plain = name in ("F32", "F16", "F64", "I8", "I16", "I32", "I64")
        shape = [int(n) for n in reversed(tensor.shape)]
        size = gguf.GGML_QUANT_SIZES[tensor.tensor_type]
        data = np.ascontiguousarray(tensor.data)
        if not plain:
            shape[-1] //= size[0]
            data = data.reshape(-1).view("u1").view(f"V{size[1]}")
        found[tensor.name] = data.reshape(shape)
    return found


READERS = {"npy": read_npy, "npz": read_npz, "text": read_text, "hdf5": read_hdf5, "zarr": read_zarr,
           "torch": read_torch, "safetensors": read_safetensors, "gguf": read_gguf}
