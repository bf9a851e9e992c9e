#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads vectors.txt for Python programs. The head of that file describes the format of a line.

usage: vectors.py FUZZ_CORPUS_FOLDER    write them as seeds for fuzz_http_conn and fuzz_http_guard
"""
import os
import re
import sys

GET = b"GET / HTTP/1.1\r\nHost: t\r\n"
POST = b"POST / HTTP/1.1\r\nHost: t\r\n"
NAMED = {
    "r": b"\r", "n": b"\n", "t": b"\t", "\\": b"\\", "G": GET, "P": POST,
    "C": POST + b"Transfer-Encoding: chunked\r\n\r\n",
}
PIECE = re.compile(r"\\x([0-9a-fA-F]{2})|\\\((\d+):((?:\\.|[^\\)])*)\)|\\(.)|([^\\]+)", re.S)
# fuzz_http_conn ignores longer inputs.
SEED_BYTES_MAX = 36000


def decode(text):
    out, at = [], 0
    while at < len(text):
        piece = PIECE.match(text, at)
        if not piece:
            raise ValueError("cannot read %r" % text[at:])
        byte, times, repeated, name, plain = piece.groups()
        if byte:
            out.append(bytes([int(byte, 16)]))
        elif times:
            out.append(int(times) * decode(repeated))
        elif name:
            out.append(NAMED[name])
        else:
            out.append(plain.encode())
        at = piece.end()
    return b"".join(out)


def load(path=os.path.join(os.path.dirname(os.path.abspath(__file__)), "vectors.txt")):
    """A list of (statuses, end, name, bytes)."""
    rows = []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line[0] in "#\n":
                continue
            statuses, end, name, text = re.match(r"(\S+)\s+(\S+)\s+(\S+)\s*(.*)\n", line).groups()
            rows.append((statuses, end, name, decode(text)))
    return rows


def write_seed(folder, name, data):
    with open(os.path.join(folder, "vector_" + name.replace("/", "_")), "wb") as out:
        out.write(data)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for _, _, name, data in load():
        if len(data) > SEED_BYTES_MAX:
            continue
        # The first four bytes of a seed of fuzz_http_conn select the split.
        write_seed(os.path.join(sys.argv[1], "http_conn"), name, b"\x07\x00\x00\x00" + data)
        if name.split("/")[0] not in ("chunk", "ext", "trailer"):
            write_seed(os.path.join(sys.argv[1], "http_guard"), name, data[:19000])


if __name__ == "__main__":
    main()
