#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""curl and Node's HTTP client against weir: all kinds of everyday requests, and the response to each:
"got (N)", method and target, the body.

usage: clients.py WEIR
"""
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import servers  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CODE = ["-o", "/dev/null", "-w", "%{http_code} %{http_version} %{num_connects}\\n"]
# arguments, standard input, expected output
CURL = [
    (["URL/a"] + CODE, b"", "200 1.1 1\n"),
    (["-0", "URL/a"] + CODE, b"", "200 1.1 1\n"),
    (["-I", "URL/a"] + CODE, b"", "200 1.1 1\n"),
    (["-d", "hello=world", "URL/"], b"", "hello=world"),
    (["-d", "x=1", "-X", "PATCH", "URL/"], b"", "x=1"),
    (["-T", "-", "-H", "Expect:", "URL/"], b"streamed", "streamed"),
    (["-T", "-", "-H", "Expect: 100-continue", "URL/"], b"asked first", "asked first"),
    (["--http2", "-d", "h2c is not taken", "URL/"], b"", "h2c is not taken"),
    (["-H", "Connection: close", "-d", "last", "URL/"], b"", "last"),
    (["--path-as-is", "URL/a/../b%20c?d=e&f[]=g"] + CODE + ["-g"], b"", "200 1.1 1\n"),
    (["--compressed", "-H", "X-Empty;", "-b", "a=b; c=d", "-A", "", "URL/"] + CODE, b"", "200 1.1 1\n"),
    (["-X", "OPTIONS", "--request-target", "*", "URL/"] + CODE, b"", "200 1.1 1\n"),
    (["--proxy", "URL", "-d", "absolute", "http://other.example/a"], b"", "absolute"),
    (["-r", "0-1", "URL/"] + CODE, b"", "200 1.1 1\n"),
    (["--http0.9", "--request-target", "no-slash", "URL/"] + CODE[:3] + ["%{http_code}"], b"", "400"),
]
MANY = 50


def curl(url, arguments, given):
    done = subprocess.run([servers.find("curl"), "-sS", "-m", "20", "--noproxy", "localhost"] + [a.replace("URL", url) for a in arguments],
                          input=given, capture_output=True, timeout=60, check=False)
    if done.returncode != 0:
        return "exit %d: %s" % (done.returncode, done.stderr.decode())
    said = done.stdout.decode()
    return said.split("\n", 2)[2] if said.startswith("got (") else said


def curls(url):
    bad = 0
    for arguments, given, wanted in CURL:
        got = curl(url, arguments, given)
        if got != wanted:
            bad += 1
            print("curl %s: expected %r, got %r" % (" ".join(arguments), wanted, got))
    big = os.urandom(500000).hex().encode()
    for how in (["--data-binary", "@-"], ["-T", "-"]):
        if curl(url, how + [url + "/"], big).encode() != big:
            bad += 1
            print("curl %s: 1 MB was changed on the way" % how[0])
    # One connection for all: later requests do not open a new one.
    got = curl(url, CODE + sum(([url + "/%d" % i, "-o", "/dev/null"] for i in range(MANY)), [])[:-2], b"")
    if got.split("\n")[:-1] != ["200 1.1 1"] + ["200 1.1 0"] * (MANY - 1):
        bad += 1
        print("curl, %d on one connection: %s" % (MANY, got))
    print("curl: %d checks, %d bad" % (len(CURL) + 3, bad))
    return bad


def node(port):
    done = subprocess.run([servers.find("node"), os.path.join(HERE, "client.mjs"), str(port)], stdin=subprocess.DEVNULL,
                          timeout=60, check=False)
    return done.returncode != 0


def main():
    with servers.Servers(sys.argv[1]) as s:
        s.start_weir(", max_body: 4MiB", "use: echo, with: { greeting: got, max_body: 4MiB }")
        bad = curls("http://127.0.0.1:%d" % s.port["weir"]) + node(s.port["weir"])
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
