# SPDX-License-Identifier: MIT
"""What idle connections cost a server: resident memory before and behind opening them."""
import contextlib
import pathlib
import resource
import socket
import time

import measure

SETTLE_S = 15  # until a server has taken all that are opened


def resident_bytes(pid):
    """Of a process and its children, pages shared with others counted in part."""
    total = 0
    for p in measure.family(pid):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{p}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
    return total


def descriptors(pid):
    n = 0
    for p in measure.family(pid):
        with contextlib.suppress(OSError):
            n += len(list(pathlib.Path(f"/proc/{p}/fd").iterdir()))
    return n


def ask(s):
    s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    s.recv(4096)


def measured(server, n):
    """Every connection has had one answer, so buffers that a server keeps are counted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    n = min(n, hard - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(n + 200, hard), hard))
    pid = server.process.pid
    server.get()
    rest, before = resident_bytes(pid), descriptors(pid)
    open_ones = []
    with contextlib.ExitStack() as stack:
        for _ in range(n):
            s = stack.enter_context(contextlib.closing(socket.create_connection(("127.0.0.1", server.port), timeout=10)))
            ask(s)
            open_ones.append(s)
        until = time.monotonic() + SETTLE_S
        while descriptors(pid) - before < n and time.monotonic() < until:
            time.sleep(0.05)
        taken = descriptors(pid) - before
        held = resident_bytes(pid)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return {"connections": taken, "rest_mib": rest / 2**20, "bytes_each": (held - rest) / max(taken, 1)}
