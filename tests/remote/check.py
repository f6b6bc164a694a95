"""Remote inputs: results as those of local files, requests and bytes counted, faults survived.

Run by tests/remote/run, which starts nothing itself but gives the paths of nginx and the emulators of
stores; without Node there is no Azurite, and what needs it is left out.

What is *needed* (`needed`): the ranges of the file that hold the selection, in the order in which
they are read, those at most GAP bytes apart made one, cut where one would be longer than REQUEST
bytes. These are the rules of src/source/remote/requests.rs; here they are computed by NumPy from the
positions of the elements. A run may make 1.1 times as many requests as that, and as many bytes,
besides HEADER requests for the header of a file (of at most FIRST bytes, and a second one for the rest
of a longer header).
"""

import argparse
import http.client
import json
import os
import re
import shutil
import ssl
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from emulators import S3, Azure, Gcs, GcsOverS3, free_port, wait
from proxy import Proxy

GAP, REQUEST, FIRST, HEADER = 128 << 10, 2 << 20, 16 << 10, 2

parser = argparse.ArgumentParser()
parser.add_argument("--bin", default="target/debug/tslice")
parser.add_argument("--nginx", required=True)
parser.add_argument("--moto", required=True)
parser.add_argument("--gcs", required=True)
parser.add_argument("--azurite")
parser.add_argument("names", nargs="*")
args = parser.parse_args()
binary = os.path.abspath(args.bin)

work = Path(tempfile.mkdtemp(prefix="tslice-remote-"))
root = work / "root"
root.mkdir()
passed = failed = 0


def expect(what, ok, told=""):
    global passed, failed
    if ok:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {what}: {told}", flush=True)


ENV = {
    name: value
    for name, value in os.environ.items()
    if not name.startswith(("AWS_", "GOOGLE_", "AZURE_", "HF_", "SSL_", "HTTP", "http", "ALL_PROXY"))
}
ENV["HOME"] = str(work)
ENV["NO_PROXY"] = "*"
ENV["AWS_EC2_METADATA_DISABLED"] = "true"


def run(*words, env={}, stdin=None, timeout=120, cwd=None):
    """The program on these arguments."""
    words = [binary, *map(str, words)]
    return subprocess.run(
        words, env={**ENV, **env}, input=stdin, capture_output=True, timeout=timeout, cwd=cwd or work
    )


def output(name):
    path = work / name
    path.unlink(missing_ok=True)
    return path


def text(done):
    return done.stderr.decode(errors="replace") + done.stdout.decode(errors="replace")[:2000]


def same(what, remote, local, env={}, timeout=120):
    """The program writes the same from both; arguments without the output."""
    one, two = output("remote.out"), output("local.out")
    suffix = ["--to", "npy"] if "--to" not in remote else []
    done = run(*remote, *suffix, "-o", one, env=env, timeout=timeout)
    expect(f"{what}: exit", done.returncode == 0, text(done))
    done = run(*local, *suffix, "-o", two)
    expect(f"{what}: local exit", done.returncode == 0, text(done))
    if one.exists() and two.exists():
        expect(f"{what}: bytes", one.read_bytes() == two.read_bytes())


def needed(ranges):
    """Requests and bytes of ranges, in the order in which they are read."""
    requests, total, start, end = 0, 0, 0, 0

    def close():
        nonlocal requests, total
        requests += -(-(end - start) // REQUEST)
        total += end - start

    for first, last in ranges:
        if start < end and start <= first <= end + GAP:
            end = max(end, last)
        elif start < end and first < start and last <= end and start <= last + GAP:
            start = first
        else:
            close()
            start, end = first, last
    close()
    return requests, total


def ranges_of(array, index, offset):
    """The ranges of the file that hold array[index], an array in C order from byte `offset` on."""
    positions = np.arange(array.size, dtype=np.int64).reshape(array.shape)[index].ravel()
    starts = np.flatnonzero(np.diff(positions, prepend=positions[0] - 2) != 1)
    ends = np.append(starts[1:], positions.size) - 1
    size = array.itemsize
    return [
        (offset + int(positions[a]) * size, offset + (int(positions[b]) + 1) * size)
        for a, b in zip(starts, ends)
    ]


def within(what, proxy, requests, bytes, files=1, header=0):
    most = 1.1 * requests + HEADER * files
    expect(f"{what}: requests", len(proxy.requests) <= most, f"{len(proxy.requests)}, needed {requests}")
    most = 1.1 * bytes + (FIRST + header) * files
    expect(f"{what}: bytes", proxy.bytes <= most, f"{proxy.bytes}, needed {bytes}")
    print(
        f"  {what}: {len(proxy.requests)} requests of {requests} needed,"
        f" {proxy.bytes} bytes of {bytes} needed, {proxy.most} at a time",
        flush=True,
    )


def safetensors(path, tensors):
    header, at = {}, 0
    for name, array in tensors.items():
        dtype = {"float32": "F32", "int64": "I64", "uint8": "U8"}[array.dtype.name]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    header = json.dumps(header).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for array in tensors.values():
            file.write(array.tobytes())
    return 8 + len(header)


# -- files --------------------------------------------------------------------------------------

rng = np.random.default_rng(1)
volume = rng.integers(0, 2**31, (200, 300, 200), dtype=np.int32)  # 48 MB
np.save(root / "volume.npy", volume)
tall = rng.integers(0, 255, (1000, 1 << 18), dtype=np.uint8)  # 1,000 runs far apart, 262 MB
np.save(root / "tall.npy", tall)
indices = rng.integers(0, 1000, 300)
np.save(root / "indices.npy", indices)
np.save(root / "mask.npy", rng.random(200) < 0.3)
np.save(root / "fortran.npy", np.asfortranarray(volume[:40]))
np.savez(root / "some.npz", a=volume[:3], b=indices)
np.savez_compressed(root / "packed.npz", a=volume[:3] // 1000, b=indices)
(root / "empty.npy").write_bytes(b"")
(root / "a b%c.npy").write_bytes((root / "indices.npy").read_bytes())
checkpoint = root / "checkpoint"
checkpoint.mkdir()
weights, shards = {}, 8
for shard in range(shards):
    tensors = {
        f"layer.{shard}.w": rng.random((400, 500)).astype(np.float32),
        f"layer.{shard}.b": rng.random(300).astype(np.float32),
    }
    safetensors(checkpoint / f"part {shard}.safetensors", tensors)
    for name, array in tensors.items():
        weights[name] = (f"part {shard}.safetensors", array)
index = {"metadata": {}, "weight_map": {name: file for name, (file, _) in weights.items()}}
(checkpoint / "model.safetensors.index.json").write_text(json.dumps(index))
names = {f"model.layers.{i}.self_attn.weight": rng.random(2).astype(np.float32) for i in range(200_000)}
many = safetensors(root / "many.safetensors", names)

# -- servers ------------------------------------------------------------------------------------

port = free_port()
(work / "nginx.conf").write_text(
    f"""daemon off; master_process off; pid {work}/nginx.pid; error_log {work}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log off; keepalive_requests 100000;
    client_body_temp_path {work}/t1; proxy_temp_path {work}/t2; fastcgi_temp_path {work}/t3;
    uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
    server {{
        listen 127.0.0.1:{port}; root {root};
        location /moved/ {{ rewrite ^/moved/(.*)$ /$1 redirect; }}
        location /private/ {{ if ($http_authorization != "Basic bWU6c2VjcmV0") {{ return 401; }} alias {root}/; }}
    }}
}}
"""
)
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
nginx = subprocess.Popen([args.nginx, "-p", str(work), "-c", str(work / "nginx.conf")], **quiet)
s3 = S3(args.moto)
stores = {"s3": s3, "gcs": Gcs(args.gcs), "gcsxml": GcsOverS3(s3)}
if args.azurite:
    stores["azure"] = Azure(args.azurite)

# -- checks -------------------------------------------------------------------------------------


def check_results():
    """As local files, whatever is taken of them."""
    url = f"http://127.0.0.1:{port}"
    for index in [
        "", "7", "10:90:7, 20:200, 5:70", "::-3, 4, ::2", "5:5", "..., -1", "[3, 1, 1], :, 7", ":, [[5], [299]]",
    ]:
        same(f"volume {index}", [f"{url}/volume.npy", index], [root / "volume.npy", index])
        same(f"fortran {index}", [f"{url}/fortran.npy", index.replace("90", "40")],
             [root / "fortran.npy", index.replace("90", "40")])
    transposed = ["::2, :50", "--transpose", "2,0,1"]
    same("transposed", [f"{url}/volume.npy", *transposed], [root / "volume.npy", *transposed])
    for words in [["-t", "a", "1, ::5"], ["-t", "b"]]:
        for name in ["some.npz", "packed.npz"]:
            same(f"{name} {words}", [f"{url}/{name}", *words], [root / name, *words])
    listed = f"[@{url}/indices.npy, ::1000]"
    same("a remote list", [root / "tall.npy", listed], [root / "tall.npy", f"[@{root}/indices.npy, ::1000]"])
    same("a remote mask", [f"{url}/volume.npy", f"[@{url}/mask.npy, 3]"],
         [root / "volume.npy", f"[@{root}/mask.npy, 3]"])
    same("a name with blanks", [f"{url}/a%20b%25c.npy"], [root / "a b%c.npy"])
    same("redirects", [f"{url}/moved/volume.npy", "3:5"], [root / "volume.npy", "3:5"])
    same("a name and password", [f"http://me:secret@127.0.0.1:{port}/private/indices.npy"], [root / "indices.npy"])
    same("cast", [f"{url}/volume.npy", "3", "--cast", "float64"], [root / "volume.npy", "3", "--cast", "float64"])
    target = root / "target.npy"
    np.save(target, np.zeros((300, 200), np.int32))
    np.save(root / "slice.npy", volume[9])
    done = run("assign", target, ":", "--value", f"{url}/slice.npy", "--in-place")
    expect("a remote value", done.returncode == 0 and np.array_equal(np.load(target), volume[9]), text(done))
    positions = rng.permutation(300)[:50]
    np.save(root / "positions.npy", positions[:, None])
    np.save(root / "rows.npy", volume[3, :50])
    expected = volume[9].copy()
    expected[positions] = volume[3, :50]
    done = run("scatter", target, "--indices", f"{url}/positions.npy", "--values", f"{url}/rows.npy", "--in-place")
    expect("remote positions", done.returncode == 0 and np.array_equal(np.load(target), expected), text(done))
    one, two = output("one.npy"), output("two.npy")
    done = run("concat", f"{url}/volume.npy", f"{url}/volume.npy", "--index", "3:9", "-o", one)
    expect("concat", done.returncode == 0, text(done))
    if one.exists():
        expect("concat: bytes", np.array_equal(np.load(one), np.concatenate([volume[3:9]] * 2)))
    done = run(f"{url}/volume.npy", "3:60, ::3")
    two.write_bytes(done.stdout)
    expect("standard output", done.returncode == 0 and np.array_equal(np.load(two), volume[3:60, ::3]), text(done))
    done = run("diff", f"{url}/volume.npy", root / "volume.npy")
    expect("diff", done.returncode == 0, text(done))
    done = run("view", f"{url}/volume.npy", "--stats", "7")
    expect("stats", done.returncode == 0 and str(volume[7].max()) in text(done).replace(",", ""), text(done))


def check_counts():
    """No more requests and bytes than are needed."""
    offset = 128
    cases = [
        ("crop", volume, "[10:60, 50:150, 20:180]", np.s_[10:60, 50:150, 20:180], "volume"),
        ("stride", volume, "[::7, ::3, ::2]", np.s_[::7, ::3, ::2], "volume"),
        ("planes", volume, "[:, 5]", np.s_[:, 5], "volume"),
        ("all", volume, "", np.s_[:], "volume"),
        ("backwards", volume, "[::-1]", np.s_[::-1], "volume"),
        ("far columns", tall, "[:, 700:800]", np.s_[:, 700:800], "tall"),
        ("list", tall, "[[3, 700, 20, 999], :]", np.s_[[3, 20, 700, 999], :], "tall"),
    ]
    for name, array, index, key, file in cases:
        with Proxy(port) as proxy:
            url = f"{proxy.url}/{file}.npy"
            same(name, [url, *([index] if index else [])], [root / f"{file}.npy", *([index] if index else [])])
            within(name, proxy, *needed(ranges_of(array, key, offset)))
    # a gather of rows by a file of indices, which is read too
    with Proxy(port) as proxy:
        words = ["gather", f"{proxy.url}/tall.npy", "--axis", "0", "--indices", f"{proxy.url}/indices.npy"]
        same("gather", words, ["gather", root / "tall.npy", "--axis", "0", "--indices", root / "indices.npy"])
        requests, total = 0, 0
        for row in sorted(set(indices.tolist())):
            requests, total = requests + 1, total + (1 << 18)
        order = needed([(128 + (int(row) << 18), 128 + (int(row) + 1 << 18)) for row in indices])
        within("gather", proxy, *order, files=2)
    with Proxy(port) as proxy:
        done = run("info", f"{proxy.url}/many.safetensors", timeout=300)
        expect("info of 200,000 tensors", done.returncode == 0 and b"200000 tensors" in done.stdout, text(done))
        expect("info: requests", len(proxy.requests) <= 2, len(proxy.requests))
        expect("info: bytes", proxy.bytes <= many + FIRST, (proxy.bytes, many))
        print(f"  info: {len(proxy.requests)} requests, {proxy.bytes} bytes of a header of {many}")
    with Proxy(port) as proxy:
        url = f"{proxy.url}/checkpoint/model.safetensors.index.json"
        one, two = output("one.safetensors"), output("two.safetensors")
        run(url, "-t", "layer.*.w", "[:, 100:200]", "-o", one)
        done = run(checkpoint, "-t", "layer.*.w", "[:, 100:200]", "-o", two)
        expect("shards", one.exists() and one.read_bytes() == two.read_bytes(), text(done))
        each = needed(ranges_of(weights["layer.0.w"][1], np.s_[:, 100:200], 200))
        within("shards", proxy, each[0] * shards, each[1] * shards, files=shards + 1)
    # what is planned is what is done
    def foretold(said):
        number, unit = re.search(r"(?:read|network) +about ([\d.]+) (\w+)", said).groups()
        return float(number) * 1000 ** ["bytes", "kB", "MB", "GB"].index(unit)

    with Proxy(port) as proxy:
        done = run(f"{proxy.url}/volume.npy", "[10:60, 50:150]", "-o", output("x.npy"), "--dry-run")
        _, planned = needed(ranges_of(volume, np.s_[10:60, 50:150], offset))
        expect("dry run", abs(foretold(text(done)) / planned - 1) < 0.1, (planned, text(done)))
        expect("dry run: header only", len(proxy.requests) == 1)
        done = run("explain", f"{proxy.url}/volume.npy", "[10:60, 50:150]")
        expect("explain", abs(foretold(text(done)) / planned - 1) < 0.1, (planned, text(done)))
    # of several inputs, and of several outputs, besides their headers
    for name in ("one", "two", "three"):
        np.save(root / f"planned-{name}.npy", volume)
    for words in (
        ["concat", "one", "two", "three"], ["concat", "one", "two", "--axis", "1", "--index", "[::3, 50:150]"],
        ["stack", "one", "two", "--index", "[10:20]"], ["concat", *["one", "two"] * 40, "--index", "[:2]"],
        ["split", "one", "--parts", "3"], ["split", "one", "[::2, 50:150]", "--every", "20"],
    ):
        with Proxy(port) as proxy:
            names = [f"{proxy.url}/planned-{word}.npy" if word in ("one", "two", "three") else word for word in words]
            to = ["-o", output("planned{}.npy" if words[0] == "split" else "planned.npy"), "--force"]
            told = foretold(text(run(*names, *to, "--dry-run")))
            before = proxy.bytes
            run(*names, *to)
            headers = FIRST * sum(word in ("one", "two", "three") for word in words)
            made = proxy.bytes - before
            expect(f"dry run of {words[0]}", 0.9 * (made - headers) <= told <= 1.1 * made, (told, made))


def check_latency():
    """1,000 small runs, at 50 ms a request."""
    with Proxy(port, latency=0.05) as proxy:
        began = time.monotonic()
        same("latency", [f"{proxy.url}/tall.npy", "[:, 5:9]"], [root / "tall.npy", "[:, 5:9]"])
        took = time.monotonic() - began
        expect("latency: seconds", took < 15, took)
        expect("latency: a bounded number at a time", proxy.most <= 40, proxy.most)
        print(f"  1,000 runs at 50 ms: {took:.1f} s, {proxy.most} requests at a time")


def check_stores():
    """Slices, shards, parts, folders and refusals of each kind of store."""
    for what, store in stores.items():
        bucket = f"{what}bucket"
        url, key = f"{store.scheme}://{bucket}", "dir/volume.npy"
        store.make(bucket)
        for name in ["volume.npy", "a b%c.npy"]:
            store.put(bucket, f"dir/{name}", (root / name).read_bytes())
        for path in checkpoint.iterdir():
            store.put(bucket, f"checkpoint/{path.name}", path.read_bytes())
        versioned = (lambda it: ("header", store.headers)) if store.headers else None
        index = "[10:60, 50:150]"
        with Proxy(store.port, fault=versioned) as proxy:
            env = store.env(proxy.url)
            same(what, [f"{url}/{key}", index], [root / "volume.npy", index], env=env)
            within(what, proxy, *needed(ranges_of(volume, np.s_[10:60, 50:150], 128)))
            sent = [it.headers for it in proxy.requests]
            expect(f"{what}: signed", all(store.signature in it.get("Authorization", "") for it in sent), sent[-1])
            expect(f"{what}: asks for its version", all(it.get("If-Match") for it in sent[1:]), sent[-1])
            same(f"{what}: a name with blanks", [f"{url}/dir/a b%c.npy"], [root / "a b%c.npy"], env=env)
            one, two = output("one.safetensors"), output("two.safetensors")
            done = run(f"{url}/checkpoint/model.safetensors.index.json", "-t", "layer.*", "-o", one, env=env)
            run(checkpoint, "-t", "layer.*", "-o", two)
            expect(f"{what}: shards", one.exists() and one.read_bytes() == two.read_bytes(), text(done))
            out, whole = output("parts.npy"), output("whole.npy")
            run(root / "volume.npy", "[::-1, 5:]", "-o", whole)
            for part in ("1/2", "0/2"):
                done = run(f"{url}/{key}", "[::-1, 5:]", "-o", out, "--part", part, env=env)
                expect(f"{what}: part {part}", done.returncode == 0, text(done))
            expect(f"{what}: parts", out.exists() and out.read_bytes() == whole.read_bytes())
            done = run("info", f"{url}/{key}", env=env)
            expect(f"{what}: info", b"(200, 300, 200)" in done.stdout, text(done))
            for missing in [[f"{url}/none.npy"], ["info", f"{url}/none/"]][: 1 + store.lists]:
                done = run(*missing, env=env)
                expect(f"{what}: not found {missing}", done.returncode == 1 and b"not found" in done.stderr, text(done))
            done = run(root / "indices.npy", "-o", f"{url}/x.npy", env=env)
            expect(f"{what}: an output", done.returncode != 0 and b"not written to remote" in done.stderr, text(done))
            if store.lists:
                done = run("info", f"{url}/", f"{url}/dir/", env=env)
                told = done.stdout.decode()
                expect(f"{what}: folders", f"{url}/: 0 files, 2 folders" in told, text(done))
                expect(f"{what}: files", f"  volume.npy  {48_000_128}" in told and "a b%c.npy" in told, told)
                done = run("info", f"{url}/dir/", "--json", env=env)
                entries = json.loads(done.stdout)[0]["entries"] if done.returncode == 0 else []
                expect(f"{what}: folders as JSON", {"name": "volume.npy", "bytes": 48_000_128} in entries, text(done))
        refusals = [("a refusal", lambda it: ("status", 403), {})]
        if store.judges:
            refusals.append(("a wrong key", None, {"key": "U0VDUkVU"}))
        for why, fault, wrong in refusals:
            with Proxy(store.port, fault=fault) as proxy:
                for words in [[f"{url}/{key}", "7"], ["info", f"{url}/dir/"]]:
                    done = run(*words, env=store.env(proxy.url, **wrong))
                    told = text(done)
                    refused = done.returncode == 1 and "refuses access (status 403)" in told and store.hint in told
                    expect(f"{what}: {why} {words[0]}", refused, told)
                    expect(f"{what}: {why}: no secret", "SECRET" not in told.replace(store.hint, "") and "U0VDUkVU" not in told, told)


def check_s3():
    s3.make("bucket")
    s3.put("bucket", "dir/volume.npy", (root / "volume.npy").read_bytes())
    (work / ".aws").mkdir(exist_ok=True)
    (work / ".aws/credentials").write_text("[other]\naws_access_key_id = PROFILEID\naws_secret_access_key = x\n")
    (work / ".aws/config").write_text("[profile other]\nregion = eu-central-1\n")
    with Proxy(s3.port) as proxy:
        env = {"AWS_PROFILE": "other", "AWS_ENDPOINT_URL": proxy.url}
        same("s3 profile", ["s3://bucket/dir/volume.npy", "7"], [root / "volume.npy", "7"], env=env)
        signed = proxy.requests[0].headers.get("Authorization", "")
        expect("s3 profile: used", "PROFILEID" in signed and "eu-central-1" in signed, signed)
    with Proxy(s3.port) as proxy:
        done = run("s3://bucket/dir/volume.npy", "7", "-o", output("x.npy"), env={"AWS_ENDPOINT_URL": proxy.url})
        expect("s3 without credentials: not signed", "Authorization" not in proxy.requests[0].headers, text(done))


def check_parts():
    index = "[::-1, 5:]"
    out, whole = output("parts.npy"), output("whole.npy")
    run(root / "volume.npy", index, "-o", whole)
    one = lambda part, address, *rest: run(address, index, "-o", out, "--part", part, *rest)
    url = f"http://127.0.0.1:{port}/volume.npy"
    for part in ("1/3", "0/3"):
        done = one(part, f"{url}?token={part}")
        expect(f"part {part}", done.returncode == 0, text(done))
    expect("parts: no file before all", not out.exists())
    # another file behind the same name, and the same one by another way
    with Proxy(port, fault=lambda it: ("header", {"ETag": '"other"'})) as proxy:
        done = one("2/3", f"{proxy.url}/volume.npy")
        expect("parts: another version", done.returncode == 1 and "volume.npy" in text(done), text(done))
    with Proxy(port, fault=lambda it: ("header", {"ETag": None, "Last-Modified": None})) as proxy:
        done = one("2/3", f"{proxy.url}/volume.npy")
        expect("parts: no version", done.returncode == 1 and "states no version" in text(done), text(done))
    # one that changes after it was copied, while the part is put in place
    with Proxy(port, fault=lambda it: ("header", {"ETag": '"new"'}) if it.range == (0, 1) and it.number > 3 else None) as proxy:
        done = one("2/3", f"{proxy.url}/volume.npy")
        expect("parts: a change at the end", done.returncode == 1 and not out.exists(), text(done))
    run("x.npy", "-o", out, "--part", "discard")
    for part in ("2/3", "0/3", "1/3"):
        done = one(part, url)
        expect(f"parts afresh: {part}", done.returncode == 0, text(done))
    expect("parts: bytes", out.exists() and out.read_bytes() == whole.read_bytes())
    # shards, and a join of a remote file and a local one
    shards = f"http://127.0.0.1:{port}/checkpoint/model.safetensors.index.json"
    for what, words, local in [
        ("shards", [shards, "--to", "safetensors"], [checkpoint, "--to", "safetensors"]),
        ("join", ["concat", url, root / "volume.npy"], ["concat", root / "volume.npy", root / "volume.npy"]),
    ]:
        out, whole = output("parts.out"), output("whole.out")
        suffix = ["--to", "npy"] if what == "join" else []
        run(*local, *suffix, "-o", whole)
        for part in range(3):
            done = run(*words, *suffix, "-o", out, "--part", f"{part}/3")
            expect(f"parts of {what}", done.returncode == 0, text(done))
        expect(f"parts of {what}: bytes", out.exists() and out.read_bytes() == whole.read_bytes())


def once(kind, *rest, at=lambda request: True):
    """A fault that each range meets once."""
    met = set()

    def fault(request):
        if request.range not in met and at(request):
            met.add(request.range)
            return (kind, *rest)

    return fault


def check_faults():
    local = root / "volume.npy"
    index = "[10:60, 50:150]"
    survived = {
        "cut at once": once("cut", 0),
        "cut in the middle": once("cut", 9000),
        "cut in the header": once("cut", 50, at=lambda it: it.number == 0),
        "500": once("status", 500),
        "503 in between": once("status", 503, at=lambda it: it.number > 1),
        "429": once("status", 429, {"Retry-After": "1"}, at=lambda it: it.number in (0, 4)),
        "slow bytes": once("slow", 20_000, 0.02),
        "a stall": once("stall", 5000, at=lambda it: it.number in (0, 3)),
    }
    for name, fault in survived.items():
        with Proxy(port, fault=fault) as proxy:
            same(name, [f"{proxy.url}/volume.npy", index], [local, index], env={"TSLICE_REMOTE_TIMEOUT": "2"})
    later = lambda request: request.number > 0
    refused = {
        "always 500": (lambda it: ("status", 500), "status 500"),
        "403": (lambda it: ("status", 403), "refuses access"),
        "404": (lambda it: ("status", 404), "not found"),
        "416 later": (lambda it: ("status", 416) if later(it) else None, "changed"),
        "another ETag": (lambda it: ("header", {"ETag": '"other"'}) if later(it) else None, "changed"),
        "no ETag any more": (lambda it: ("header", {"ETag": None}) if later(it) else None, "changed"),
        "another time": (
            lambda it: ("header", {"ETag": None, "Last-Modified": f"Sun, 22 Nov 2026 02:54:1{min(it.number, 1)} GMT"}),
            "changed",
        ),
        "another length": (
            lambda it: ("header", {"Content-Range": f"bytes {it.range[0]}-{it.range[1] - 1}/99000000"}) if later(it) else None, "changed",
        ),
        "precondition": (lambda it: ("status", 412) if later(it) else None, "changed"),
        "a Content-Length too long": (lambda it: ("header", {"Content-Length": "9000000"}) if later(it) else None, "two lengths"),
        "more than asked": (lambda it: ("extra", b"x" * 100) if later(it) else None, "two lengths"),
        "another range": (
            lambda it: ("header", {"Content-Range": f"bytes {it.range[0] + 9}-{it.range[1] + 8}/48000128"})
            if later(it)
            else None,
            "changed",
        ),
        "cut again and again": (lambda it: ("cut", 10) if later(it) else None, "cut short"),
        "no ranges later": (lambda it: ("status", 200) if later(it) else None, "ranges"),
    }
    for name, (fault, words) in refused.items():
        with Proxy(port, fault=fault) as proxy:
            out = output("x.npy")
            env = {"TSLICE_REMOTE_TIMEOUT": "1"}
            done = run(f"{proxy.url}/volume.npy?sig=SECRET", index, "-o", out, env=env, timeout=120)
            expect(f"{name}: refused", done.returncode == 1 and words in text(done), text(done))
            expect(f"{name}: no output", not out.exists())
            expect(f"{name}: no secret", "SECRET" not in text(done), text(done))
    for status in (401, 403):
        with Proxy(port, fault=lambda it: ("status", status)) as proxy:
            done = run(f"{proxy.url}/volume.npy", "-o", output("x.npy"))
            expect(f"{status}: the hint", "//NAME:PASSWORD@HOST" in text(done), text(done))
            done = run("s3://bucket/volume.npy", "-o", output("x.npy"), env=s3.env(proxy.url))
            expect(f"{status}: the hint of S3", "AWS_SECRET_ACCESS_KEY" in text(done), text(done))
    done = run(f"http://127.0.0.1:{free_port()}/a.npy?sig=SECRET", timeout=60)
    expect("no server", done.returncode == 1 and "no connection" in text(done) and "SECRET" not in text(done), text(done))
    # a weak ETag is compared, and never asked for
    with Proxy(port, fault=lambda it: ("header", {"ETag": 'W/"1"'})) as proxy:
        same("a weak ETag", [f"{proxy.url}/volume.npy", index], [local, index])
        expect("a weak ETag is not asked for", not any(it.headers.get("If-Match") for it in proxy.requests))


def check_tls():
    key, cert = work / "key.pem", work / "cert.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE", "-keyout", key, "-out", cert], **quiet)
    if made.returncode != 0:
        print("  skipped: no openssl")
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with Proxy(port, tls=context) as proxy:
        began = time.monotonic()
        done = run(f"{proxy.url}/volume.npy?sig=SECRET", "7")
        told = text(done)
        expect("TLS: refused", done.returncode == 1 and "no secure connection" in told and "SECRET" not in told, told)
        expect("TLS: at once", time.monotonic() - began < 5)
        same("TLS: SSL_CERT_FILE", [f"{proxy.url}/volume.npy", "7"], [root / "volume.npy", "7"], env={"SSL_CERT_FILE": str(cert)})


def check_whole_files():
    """A server without ranges is a pipe."""
    with Proxy(port, keep_ranges=False) as proxy:
        url = proxy.url
        same("forward", [f"{url}/volume.npy", "[3:9]"], [root / "volume.npy", "[3:9]"])
        same("spooled", [f"{url}/volume.npy", "[::-40]"], [root / "volume.npy", "[::-40]"])
        done = run("info", f"{url}/volume.npy")
        expect("info of a whole file", done.returncode == 0 and b"(200, 300, 200)" in done.stdout, text(done))
        done = run(f"{url}/checkpoint/model.safetensors.index.json", "-t", "layer.0.w", "-o", output("x.npy"))
        expect("shards without ranges", done.returncode == 1 and b"ranges" in done.stderr and b"hint" in done.stderr, text(done))
    cut = lambda it: ("cut", 1_000_000) if not it.range else None
    with Proxy(port, keep_ranges=False, fault=cut) as proxy:
        # no more is read than is needed, unless it is asked for
        same("the beginning of a whole file", [f"{proxy.url}/volume.npy", "[0]"], [root / "volume.npy", "[0]"])
        for words in [["[0]", "--drain"], ["[190:]"], ["--dtype", "uint8", "--offset", "0"], ["[::-1]"]]:
            out = output("x.npy")
            done = run(f"{proxy.url}/volume.npy", *words, "-o", out)
            expect(f"a whole file cut short {words}", done.returncode == 1 and not out.exists() and b"cut short" in done.stderr, text(done))


def zarr_v2(folder, array, chunk):
    """An array of version 2, its chunks not compressed."""
    folder.mkdir(parents=True)
    metadata = {
        "zarr_format": 2, "shape": array.shape, "chunks": [chunk] * array.ndim, "dtype": array.dtype.str,
        "compressor": None, "filters": None, "fill_value": 0, "order": "C",
    }
    (folder / ".zarray").write_text(json.dumps(metadata))
    padded = np.zeros([-(-length // chunk) * chunk for length in array.shape], array.dtype)
    padded[tuple(map(slice, array.shape))] = array
    for at in np.ndindex(*(length // chunk for length in padded.shape)):
        block = padded[tuple(slice(i * chunk, (i + 1) * chunk) for i in at)]
        # what is the fill value need not be there
        if block.any():
            (folder / ".".join(map(str, at))).write_bytes(np.ascontiguousarray(block).tobytes())


def check_zarr():
    """Arrays of Zarr: chunks are files of their own."""
    folder = root / "zarr"
    array = volume[:40, :60, :50].copy()
    array[16:32, 16:32, 16:32] = 0
    np.save(root / "array.npy", array)
    for name, words in [("v3", ["--codec", "zstd:3"]), ("shards", ["--shards", "32,32,32", "--codec", "blosc"])]:
        out = folder / f"{name}.zarr"
        out.parent.mkdir(exist_ok=True)
        done = run(root / "array.npy", "-o", out, "--chunks", "16,16,16", *words)
        expect(f"zarr: written {name}", done.returncode == 0, text(done))
    zarr_v2(folder / "v2.zarr", array, 16)
    for group in ("g2.zarr", "all2.zarr"):
        zarr_v2(folder / group / "a" / "b c", array, 16)
        zarr_v2(folder / group / "d", array[0], 16)
        for inner in (folder / group, folder / group / "a"):
            (inner / ".zgroup").write_text('{"zarr_format": 2}')
    below = folder / "all2.zarr"
    known = {str(it.relative_to(below)): json.loads(it.read_text()) for it in below.rglob(".z*") if it.is_file()}
    (below / ".zmetadata").write_text(json.dumps({"metadata": known, "zarr_consolidated_format": 1}))
    run(root / "array.npy", "--name", "a/b c", "-o", folder / "all3.zarr", "--chunks", "16,16,16")
    below = folder / "all3.zarr"
    group = json.loads((below / "zarr.json").read_text())
    known = {str(it.parent.relative_to(below)): json.loads(it.read_text()) for it in below.rglob("*/zarr.json")}
    group["consolidated_metadata"] = {"kind": "inline", "must_understand": False, "metadata": known}
    (below / "zarr.json").write_text(json.dumps(group))

    url = f"http://127.0.0.1:{port}/zarr"
    for name in ("v3", "shards", "v2"):
        for words in [[], ["[10:30, ::7, 5]"], ["[[3, 39, 3], :, ::-1]"], ["[:0]"], ["-T"], ["[20:25]", "--cast", "float64"]]:
            same(f"zarr {name} {words}", [f"{url}/{name}.zarr", *words], [root / "array.npy", *words])
        done = run("info", f"{url}/{name}.zarr/", "--json")
        expect(f"zarr: info {name}", done.returncode == 0 and b'"shape":[40,60,50]' in done.stdout, text(done))
    for name in ("all2", "all3"):
        same(f"zarr {name}", [f"{url}/{name}.zarr", "-t", "a/b c", "[7]"], [root / "array.npy", "[7]"])
        same(f"zarr: an array of {name}", [f"{url}/{name}.zarr/a/b%20c", "[7]"], [root / "array.npy", "[7]"])
    done = run(f"{url}/g2.zarr", "-t", "d", "-o", output("x.npy"))
    expect("zarr: a group that is not listed", done.returncode == 1 and b"consolidated" in done.stderr, text(done))
    done = run(f"{url}/none.zarr", "-o", output("x.npy"))
    expect("zarr: not there", done.returncode == 1 and b"not found" in done.stderr, text(done))
    done = run(f"{url}/v3.zarr", "-o", output("x.npy"), "--part", "0/2")
    expect("zarr: parts", done.returncode != 0 and b"is not a regular file" in done.stderr, text(done))

    # a request for the metadata, and one for each chunk that is needed, as long as it is
    with Proxy(port) as proxy:
        same("zarr: counts", [f"{proxy.url}/zarr/v3.zarr", "[17:20, :16, :16]"], [root / "array.npy", "[17:20, :16, :16]"])
        expect("zarr: requests", len(proxy.requests) == 2, [it.path for it in proxy.requests])
    # of a shard its index and the inner chunks
    with Proxy(port) as proxy:
        same("zarr: counts of shards", [f"{proxy.url}/zarr/shards.zarr", "[0, :16, :32]"], [root / "array.npy", "[0, :16, :32]"])
        expect("zarr: requests of shards", len(proxy.requests) <= 5, [(it.path, it.range) for it in proxy.requests])
    # chunks are asked for ahead of who decodes them
    with Proxy(port, latency=0.1) as proxy:
        same("zarr: far away", [f"{proxy.url}/zarr/v3.zarr", "-j", "2"], [root / "array.npy"])
        expect("zarr: at a time", 16 <= proxy.most <= 40, proxy.most)
    with Proxy(port, keep_ranges=False) as proxy:
        same("zarr: whole files", [f"{proxy.url}/zarr/v3.zarr", "[::3]"], [root / "array.npy", "[::3]"])
        same("zarr: shards as whole files", [f"{proxy.url}/zarr/shards.zarr", "[::3]"], [root / "array.npy", "[::3]"])
    chunk = lambda kind, *rest: lambda it: (kind, *rest) if "/c/1" in it.path else None
    with Proxy(port, fault=once("cut", 5000, at=lambda it: "/c/" in it.path)) as proxy:
        same("zarr: cut", [f"{proxy.url}/zarr/v3.zarr"], [root / "array.npy"])
    for why, fault, words in [("403", chunk("status", 403), "refuses access"), ("always cut", chunk("cut", 10), "cut short")]:
        with Proxy(port, fault=fault) as proxy:
            out = output("x.npy")
            done = run(f"{proxy.url}/zarr/v3.zarr?sig=SECRET", "-o", out, env={"TSLICE_REMOTE_TIMEOUT": "1"})
            expect(f"zarr: {why}", done.returncode == 1 and words in text(done) and not out.exists(), text(done))
            expect(f"zarr: {why}: no secret", "SECRET" not in text(done), text(done))
            expect(f"zarr: {why}: the query goes with each", all("sig=SECRET" in it.path for it in proxy.requests))

    # stores list their groups, also those whose metadata are not consolidated
    for what, store in stores.items():
        bucket = f"{what}zarr"
        store.make(bucket)
        for path in folder.rglob("*"):
            if path.is_file():
                store.put(bucket, f"dir/{path.relative_to(folder)}", path.read_bytes())
        address = f"{store.scheme}://{bucket}/dir"
        versioned = (lambda it: ("header", store.headers)) if store.headers else None
        with Proxy(store.port, fault=versioned) as proxy:
            env = store.env(proxy.url)
            for name in ("v3", "shards", "v2"):
                same(f"{what}: zarr {name}", [f"{address}/{name}.zarr", "[3:9, ::2]"], [root / "array.npy", "[3:9, ::2]"], env=env)
            groups = ["all2", "all3"] + ["g2"] * store.lists
            for name in groups:
                same(f"{what}: zarr {name}", [f"{address}/{name}.zarr/", "-t", "a/b c", "[7]"], [root / "array.npy", "[7]"], env=env)
            done = run("info", f"{address}/all3.zarr/", env=env)
            expect(f"{what}: zarr info", done.returncode == 0 and b"a/b c" in done.stdout, text(done))


def check_secrets():
    """Nothing secret is said or sent elsewhere."""
    secret = "http://me:SECRET@127.0.0.1:%d/%s?X-Sig=SECRET"
    url = secret % (port, "volume.npy")
    told = []
    for words in [
        ["info", url], ["info", "--json", url], [url, "[999]"], [url, "9:"], ["explain", url, "7"], [url, "7", "-o", work / "s.npy"],
        [url, "-t", "x"], [root / "volume.npy", f"[@{url}, 0.5]"], ["explain", root / "volume.npy", f"[@{url}]"], [url, "-o", "x.unknown"],
        [root / "volume.npy", "-o", url], ["assign", url, "7", "--fill", "1", "--in-place"], [url, "7", "--part", "0/2", "-o", work / "p.npy"],
        [url, "7", "--part", "plan/2", "-o", work / "p.npy"], [url, "7", "--dry-run", "-o", work / "q.npy"], ["diff", url, url + "x", "--nope"],
        [url, "7", "--io", "mmap"], ["gather", url, "--indices", url], [secret % (port, "none.npy")], [secret % (1, "a.npy")],
        [url, "7", "-o", work / "t.safetensors"], ["s3://me:SECRET@bucket/key"],
    ]:
        done = run(*words, env={"TSLICE_REMOTE_TIMEOUT": "2"})
        expect(f"no secret in {words[:1]} {words[-1]}", b"SECRET" not in done.stderr + done.stdout[:100_000], text(done))
        told.append(text(done))
    expect("outputs hold no secret", b"SECRET" not in (work / "t.safetensors").read_bytes()[:500])
    done = run(root / "volume.npy", "-o", "https://h/a.npy")
    expect("a remote output", done.returncode != 0 and b"not written to remote" in done.stderr, text(done))
    done = run("assign", url, "7", "--fill", "1", "--in-place")
    expect("a remote target", done.returncode == 1 and b"remote file cannot be changed" in done.stderr, text(done))
    done = run(url, "7", "--io", "mmap", "-o", output("x.npy"))
    expect("a mapped remote file", done.returncode != 0 and b"map" in done.stderr, text(done))
    # a password goes to its own server alone
    with Proxy(port) as other:
        move = lambda it: ("status", 302, {"Location": f"{other.url}{it.path}"})
        with Proxy(port, fault=move) as first:
            address = first.url.replace("//", "//me:pw@") + "/volume.npy"
            same("redirected elsewhere", [address, "7"], [root / "volume.npy", "7"], env={"HF_TOKEN": "TOKEN"})
            expect("the first one gets it", first.requests[0].headers.get("Authorization", "").startswith("Basic"))
            expect("the other does not", not any(it.headers.get("Authorization") for it in other.requests))
            expect("asked once only", len(first.requests) == 1, len(first.requests))


def check_memory():
    """Bytes on their way are bounded."""
    limit = "import resource,subprocess,sys; p=subprocess.run(sys.argv[1:]); print(p.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"

    def highest(*words):
        done = subprocess.run(
            [sys.executable, "-c", limit, binary, f"http://127.0.0.1:{port}/{words[0]}", *words[1:], "-j", "2", "-o", str(output("m.npy"))],
            env=ENV, capture_output=True, text=True)
        code, kib = map(int, done.stdout.split())
        return code, kib, done.stderr

    # the pages of the program itself, which are many in a build for tests
    program = highest("indices.npy")[1]
    # 64 MiB and 16 MiB for each thread, of which the program takes 10 for itself
    most = (64 + 2 * 16 - 10) * 1024
    for words in [["tall.npy"], ["tall.npy", "[:, ::2]"], ["tall.npy", "[:, 5:1000]"], ["volume.npy", "--transpose", "2,1,0"]]:
        code, kib, told = highest(*words)
        expect(f"memory of {words}", code == 0 and kib - program < most, f"{code}, {kib} KiB {told}")
        print(f"  memory of {' '.join(words)}: {kib - program} KiB more than the {program} of a small file")


checks = {name[6:]: check for name, check in list(globals().items()) if name.startswith("check_")}
status = 1
try:
    wait(port)
    for store in stores.values():
        wait(store.port)
    for name, check in checks.items():
        if not args.names or name in args.names:
            print(f"{name}: {(check.__doc__ or '').splitlines()[0] if check.__doc__ else ''}", flush=True)
            check()
    status = 1 if failed else 0
finally:
    for server in [nginx, *(store.process for store in stores.values() if store.process)]:
        server.terminate()
        server.wait()
    shutil.rmtree(work, ignore_errors=True)
print(f"{passed} passed, {failed} failed")
sys.exit(status)
