#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The vectors of vectors.txt at the admin endpoint, whose own parser (libmicrohttpd) is lax and sits
behind weir's.

usage: admin.py WEIR

What the data plane refuses must be refused here too: with an error or no response, after which
nothing more is served and the connection ends. Host always names the endpoint itself, so it is
never the reason for a refusal. Two vectors run at once, so that the endpoint has connections to spare.
"""
import concurrent.futures
import re
import socket
import sys

sys.dont_write_bytecode = True
import servers  # noqa: E402
import vectors  # noqa: E402

# These are limits of the data plane's test server. The endpoint's limits have their own tests.
LEFT_OUT = ("limit/",)


def ask(port, data):
    """The statuses of all responses up to the end of the connection."""
    answers = b""
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.settimeout(20)
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        try:
            while got := s.recv(65536):
                answers += got
        except ConnectionResetError:
            pass
    return [int(status) for status in re.findall(rb"(?:^|\n|})HTTP/1\.[01] (\d\d\d) ", answers)]


def main():
    with servers.Servers(sys.argv[1]) as s:
        s.start_weir()
        port = int(s.await_said("weir", r"admin http://[^:]+:(\d+)").group(1))
        here = b"127.0.0.1:%d" % port

        def play(row):
            statuses, _, name, data = row
            data = data.replace(b"Host: t\r\n", b"Host: " + here + b"\r\n").replace(b"http://t/", b"http://" + here + b"/")
            return statuses, name, ask(port, data)

        rows = [r for r in vectors.load() if r[3] and r[0] != "none" and not r[2].startswith(LEFT_OUT)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            played = list(pool.map(play, rows))
    refused = [(name, got) for statuses, name, got in played if statuses[0] in "45"]
    lax = [(name, got) for name, got in refused if len(got) > 1 or any(status < 400 for status in got)]
    served = sum(bool(got) and got[0] < 300 for statuses, name, got in played if statuses[0] == "2")
    for name, got in lax:
        print("%s: %s" % (name, got))
    print("%d vectors, %d of them refused, %d lax; %d served" % (len(played), len(refused), len(lax), served))
    sys.exit(1 if lax or not served or len(refused) < 100 else 0)


if __name__ == "__main__":
    main()
