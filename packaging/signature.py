"""Checks the signature of a program for macOS against its bytes, as its kernel does page by page.

    python packaging/signature.py PROGRAM

A program of Apple's processors that has none, or was changed after it was signed, is killed when it starts.
"""
import hashlib
import struct
import sys

CODE_SIGNATURE = 0x1D
CODE_DIRECTORY = 0xFADE0C02
SHA256 = 2

data = open(sys.argv[1], "rb").read()
magic, cpu, _, _, count = struct.unpack_from("<5I", data)
assert magic == 0xFEEDFACF, "not a program of 64 bits for macOS"
at, signature = 32, None
for _ in range(count):
    command, size = struct.unpack_from("<2I", data, at)
    if command == CODE_SIGNATURE:
        signature = struct.unpack_from("<2I", data, at + 8)
    at += size
if signature is None:
    # Intel's processors start it, and a signature need not be there
    sys.exit("no signature" if cpu == 0x0100000C else print("no signature, and none is needed"))
start, _ = signature
blobs = struct.unpack_from(">I", data, start + 8)[0]
offsets = [struct.unpack_from(">2I", data, start + 12 + 8 * number)[1] for number in range(blobs)]
directories = [start + it for it in offsets if struct.unpack_from(">I", data, start + it)[0] == CODE_DIRECTORY]
for at in directories:
    hashes, _, _, pages, limit = struct.unpack_from(">5I", data, at + 16)
    width, kind, _, shift = struct.unpack_from("4B", data, at + 36)
    assert kind == SHA256 and limit == start, "a signature of another kind"
    for page in range(pages):
        place = at + hashes + page * width
        bytes_of_page = data[page << shift : min((page + 1) << shift, limit)]
        assert hashlib.sha256(bytes_of_page).digest() == data[place : place + width], f"page {page} was changed"
    print(f"signed: {pages} pages")
assert directories, "an empty signature"
