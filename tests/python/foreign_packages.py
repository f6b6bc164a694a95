#!/usr/bin/env python3
"""Files of other people: the tensors in well-known packages, as their own libraries read them.

    python tests/python/foreign_packages.py --bin target/debug/tslice

Fetches wheels and sources of packages with pip into a folder (`--cache`; nothing of them is installed or run), and
compares every tensor in their `.npy`, `.npz`, HDF5, Zarr, torch, `.safetensors`, `.gguf` files and tables of text:
names, dtypes, shapes, elements. What is refused must be refused for a reason that docs/formats gives (`REASONS`).
The program must be built with the features `zarr` and `hdf5`; the libraries of `foreign_readers.py` are needed, and
pip. The last line is `N passed, M failed`: a tensor that is read otherwise, or not shown, fails, as does a reason
that is not in the docs.
"""

import collections
import concurrent.futures
import glob
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import sys
import tarfile
import tempfile
import zipfile

import numpy as np
from numpy.lib.recfunctions import repack_fields

import chunk_cases
import foreign_readers
import harness
from foreign_readers import Refused

PACKAGES = """tables scipy h5py matplotlib astropy scikit-image pandas librosa pynwb anndata scanpy facenet-pytorch pyfive
    resemblyzer torchmetrics netCDF4 xarray kerchunk hdmf numcodecs lpips torchcrepe silero-vad resampy arviz mdtraj
    nibabel nilearn scikit-learn statsmodels silx hdf5plugin zarr==2.17.2""".split()
# members of packages that may hold tensors
ENDINGS = {".npy", ".npz", ".h5", ".hdf5", ".hdf", ".he5", ".nc", ".nc4", ".mat", ".h5ad", ".nwb", ".loom", ".nxs", ".zip",
           ".gguf", ".safetensors", *foreign_readers.PICKLES, *foreign_readers.TABLES}
# so many wrong tensors of a file are printed
SHOWN = 10
# what is refused, and the words of docs/formats that say so
REASONS = [
    (r"Python objects|without arrays", "An array of Python objects without arrays in it is refused"),
    (r"(strings|elements) of variable length|references|times|floats of an unknown format",
     "strings and elements of variable length (vlen), references, times, and floats of unknown formats"),
    (r"use the filter", "another filter (szip, nbit, blosc2, zfp and others)"),
    (r"MATLAB structure without fields", "a MATLAB structure without fields, which has no elements"),
    (r"^dtype ", "Strings of any length, and objects, are not read"),
    (r"TorchScript|a tar archive|distributed checkpoint", "TorchScript, tar files of PyTorch 0.1 and parts of distributed checkpoints"),
    (r"quantised", "quantised tensors, tensors of a dtype without a name here"),
]


# ---------------------------------------------------------------- packages


def fetch(packages, cache):
    """The newest wheel and the newest sources of each package, as pip finds them. `pip download` would run the
    sources' own build to learn their name, so its finder is asked instead."""
    from pip._internal.commands.download import DownloadCommand
    from pip._internal.network.download import Downloader
    from pip._vendor.packaging.specifiers import SpecifierSet

    command, found = DownloadCommand("download", ""), collections.defaultdict(list)
    for form in ("--only-binary=:all:", "--no-binary=:all:"):
        options, _ = command.parse_args(["--no-deps", form])
        with command.main_context():
            session = command.get_default_session(options)
            finder = command._build_package_finder(options, session)
            for package in packages:
                name, _, version = package.partition("==")
                best = finder.find_best_candidate(name, SpecifierSet(f"=={version}" if version else "")).best_candidate
                if best is None:
                    continue
                path = os.path.join(cache, best.link.filename)
                if not os.path.exists(path):
                    print(f"fetching {best.link.filename}", flush=True)
                    with tempfile.TemporaryDirectory(dir=cache) as folder:
                        part, _ = Downloader(session, "off")(best.link, folder)
                        os.rename(part, path)
                found[name].append(path)
    return found


def unpack(path):
    """The folder in which the members that matter of a package lie."""
    folder = path + ".files"
    if os.path.exists(folder):
        return folder
    part = folder + ".part"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    if zipfile.is_zipfile(path):
        unpack_zip(path, part)
    else:
        with tarfile.open(path) as archive:
            names = wanted([member.name for member in archive.getmembers() if member.isfile()])
            archive.extractall(part, [archive.getmember(name) for name in names], filter="data")
    for inner, _, files in list(os.walk(part)):
        for file in files:
            at = os.path.join(inner, file)
            if file.endswith(".zip") and foreign_readers.kind_of(at) is None and zipfile.is_zipfile(at):
                unpack_zip(at, at + ".files")
    os.rename(part, folder)
    return folder


def unpack_zip(path, folder):
    with zipfile.ZipFile(path) as archive:
        for name in wanted(name for name in archive.namelist() if not name.endswith("/")):
            archive.extract(name, folder)


def wanted(names):
    """Files that may hold tensors, and all in folders of Zarr."""
    names = list(names)
    stores = {os.path.dirname(name) + "/" for name in names if os.path.basename(name) in foreign_readers.ZARR}
    in_store = lambda name: any(name[:at + 1] in stores for at, letter in enumerate(name) if letter == "/")
    return [name for name in names if os.path.splitext(name)[1].lower() in ENDINGS or in_store(name)]


def files_of(folders):
    """Files and stores of Zarr, each once though the wheel and the sources have it."""
    seen = set()
    for folder in folders:
        for inner, names, files in os.walk(folder):
            names.sort()
            if foreign_readers.kind_of(inner) == "zarr":
                # what is below belongs to it
                names.clear()
                if os.path.relpath(inner, folder) not in seen:
                    seen.add(os.path.relpath(inner, folder))
                    yield "zarr", inner
                continue
            for file in sorted(files):
                path = os.path.join(inner, file)
                with open(path, "rb") as opened:
                    digest = hashlib.file_digest(opened, "sha256").digest() + os.path.splitext(file)[1].encode()
                kind = foreign_readers.kind_of(path)
                if kind and digest not in seen:
                    seen.add(digest)
                    yield kind, path


# ---------------------------------------------------------------- one file


def compare(job):
    """All tensors of a file: (outcome, name, words), where the outcome is alike, refused, wrong, or alone: read, and
    there is nothing to compare it with."""
    kind, path = job
    try:
        return list(outcomes(kind, path))
    except Exception as error:  # a file that the test itself cannot judge
        return [("wrong", "", f"the test itself: {error!r}")]


def outcomes(kind, path):
    expected = foreign_readers.attempt(lambda: foreign_readers.read(kind, path))
    options = foreign_readers.options_of(kind, path)
    if kind == "text" and (isinstance(expected, Refused) or not expected):
        return
    done = harness.tslice("info", "--json", path, *options)
    error = done.stderr.decode(errors="replace").strip()
    if done.returncode not in (0, 1) or "panicked" in error:
        yield "wrong", "", harness.text(done)
        return
    listed = json.loads(done.stdout or "[]")
    if isinstance(expected, Refused):
        if not listed:
            yield "alike", "", "refused by both"
        else:
            yield "wrong", "", f"read, though the library says {expected}"
        return
    if not listed:
        said = error or "no error, and nothing is read"
        reason = said.splitlines()[0].removeprefix("tslice: ").replace(path, "FILE")
        for name, array in expected.items():
            yield ("alike", name, "refused by both") if isinstance(array, Refused) else ("refused", name, reason)
        if not expected:
            yield "refused", "", reason
        return
    shown = {entry["name"] or "": entry for entry in listed[0]["tensors"]}
    unreadable = {entry["name"] or "": entry["reason"] for entry in listed[0].get("unreadable", [])}
    yield from by_names(path, options, expected, shown, unreadable)


def by_names(path, options, expected, shown, unreadable):
    if not expected and not shown:
        yield "alike", "", "no tensors"
    spare = [name for name in shown if name not in expected]
    for name, array in expected.items():
        if isinstance(array, Refused):
            if name not in shown:
                yield "refused" if name in unreadable else "alike", name, unreadable.get(name, "not shown by both")
            elif "No NumPy equivalent" in array or "too large" in array:
                yield "alone", name, array
            else:
                yield "wrong", name, f"read, though the library says {array}"
        elif name in shown:
            problem = difference(path, options, name, array)
            yield "wrong" if problem else "alike", name, problem
        elif name in unreadable:
            yield "refused", name, unreadable[name]
        elif name.startswith("?"):
            # within an object, whose tensors may have any name
            same = next((other for other in spare if not difference(path, options, other, array)), None)
            if same:
                spare.remove(same)
            yield ("alike" if same else "wrong"), name, "not shown"
        else:
            yield "wrong", name, "not shown"
    for name in spare:
        if name not in expected:
            yield "wrong", name, "the library has no such tensor"
    for name, reason in unreadable.items():
        if name not in expected:
            yield "refused", name, reason


def difference(path, options, name, array):
    """How a tensor is not the array; None where it is."""
    with tempfile.TemporaryDirectory(prefix="tslice-foreign-") as folder:
        output = os.path.join(folder, "o.npy")
        chosen = [f"--tensor={name}"] if name else []
        done = harness.tslice(path, *chosen, *options, "-o", output)
        if done.returncode or b"panicked" in done.stderr:
            return done.stderr.decode(errors="replace").splitlines()[0] if done.stderr else harness.text(done)
        found = np.load(output)
    opaque = found.dtype.kind == "V" and not found.dtype.names and not array.dtype.names
    if opaque and found.dtype.itemsize == array.dtype.itemsize:
        array = array.view(found.dtype) if array.ndim else array.reshape(1).view(found.dtype).reshape(())
    if found.dtype.names and sorted(found.dtype.names) == sorted(array.dtype.names or ()):
        # a .npy has the fields in the order of their bytes, whatever order they are named in
        found = found[list(array.dtype.names)]
    try:
        chunk_cases.check_same(repacked(found), repacked(array))
    except harness.Failure as failure:
        return " ".join(str(failure).split())[:300]
    return None


def repacked(array):
    return repack_fields(array, recurse=True) if array.dtype.names else array


# ---------------------------------------------------------------- all of them


def explained(reason, docs):
    """The sentence of the docs that a reason has."""
    for pattern, sentence in REASONS:
        if re.search(pattern, reason) and sentence in docs:
            return sentence
    return None


def alike_reasons(reason):
    """A reason without its names and numbers."""
    return re.sub(r"[0-9]+", "N", re.sub(r"(\"[^\"]*\"|'[^']*'|`[^`]*`)", "...", reason))[:140]


def main():
    parser = harness.parser(__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cache", default="target/foreign", help="where packages are kept")
    parser.add_argument("--packages", nargs="*", default=PACKAGES)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    options = parser.parse_args()
    harness.begin(options)
    os.makedirs(options.cache, exist_ok=True)
    docs = ""
    for page in sorted(glob.glob(os.path.join(os.path.dirname(__file__), "../../docs/formats/*.md"))):
        with open(page, encoding="utf-8") as file:
            docs += " ".join(file.read().split()) + "\n"
    tally, rows, reasons = harness.Tally(), collections.defaultdict(collections.Counter), collections.defaultdict(list)
    for pattern, sentence in REASONS:
        tally.check(f"reason {pattern}", sentence in docs, f"docs/formats does not say {sentence!r}")
    for package, paths in fetch(options.packages, os.path.abspath(options.cache)).items():
        jobs = list(files_of([unpack(path) for path in paths]))
        with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("fork")) as workers:
            for (kind, path), found in zip(jobs, workers.map(compare, jobs)):
                if found:
                    rows[package, kind]["files"] += 1
                short = path.split(".files/", maxsplit=1)[1]
                wrong = [f"WRONG {short}: {name}: {words}" for outcome, name, words in found if outcome == "wrong"]
                print("".join(line + "\n" for line in wrong[:SHOWN]), end="", flush=True)
                if len(wrong) > SHOWN:
                    print(f"      and {len(wrong) - SHOWN} more in this file", flush=True)
                for outcome, name, words in found:
                    judge(tally, rows[package, kind], reasons, docs, (outcome, f"{short}: {name}", words))
    print_tables(rows, reasons, docs)
    return tally.finish()


def judge(tally, row, reasons, docs, result):
    outcome, where, words = result
    if outcome == "refused":
        reasons[alike_reasons(words)].append(where)
        if not explained(words, docs):
            outcome = "unexplained"
    row[outcome] += 1
    if outcome == "alone":
        return
    if outcome in ("alike", "refused"):
        tally.passed += 1
        return
    tally.failed += 1


def print_tables(rows, reasons, docs):
    outcomes_of = ("files", "alike", "alone", "refused", "unexplained", "wrong")
    total = collections.Counter()
    print(f"\n{'package':<16} {'kind':<12}" + "".join(f"{word:>12}" for word in outcomes_of))
    for (package, kind), row in sorted(rows.items()):
        if row:
            total.update(row)
            print(f"{package:<16} {kind:<12}" + "".join(f"{row[word]:>12}" for word in outcomes_of))
    print(f"{'all':<29}" + "".join(f"{total[word]:>12}" for word in outcomes_of))
    print("\nreasons of refusal (tensors, what is said, where the first one is, the words of docs/formats)")
    for reason, places in sorted(reasons.items(), key=lambda entry: -len(entry[1])):
        print(f"{len(places):>6}  {reason}\n        {places[0]}\n        {explained(reason, docs) or 'NOT IN THE DOCS'}")


if __name__ == "__main__":
    sys.exit(main())
