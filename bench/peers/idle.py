# SPDX-License-Identifier: MIT
"""What idle connections cost a server: resident memory before and after they are opened."""
import contextlib
import pathlib
import resource
import socket
import time

import measure

ANSWER_S = 10  # a server that has reached its limit leaves connections in the backlog
SETTLE_S = 15  # time limit for a server to accept all connections


def resident_bytes(pid):
    """PSS of a process and its children: pages shared with others count in part."""
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


def refusal(port, stack):
    """Opens one more connection, to be closed by `stack`, and gets one response.

    Returns why that failed; None if it worked.
    """
    try:
        s = stack.enter_context(contextlib.closing(socket.create_connection(("127.0.0.1", port), timeout=ANSWER_S)))
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return None if s.recv(4096).startswith(b"HTTP/1.1 200") else "closed or refused"
    except TimeoutError:
        return f"no response for {ANSWER_S} s"
    except OSError as why:
        return why.strerror or str(why)


def measured(server, n):
    """Opens `n` connections and measures the server's memory.

    Every connection gets one response, so buffers that a server does not free are included. If a
    connection gets no response, no more are opened: `why` gives the reason, and the figures are those of
    the connections opened before.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    n = min(n, hard - 200)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(n + 200, hard), hard))
    pid = server.process.pid
    server.get()
    rest, before = resident_bytes(pid), descriptors(pid)
    why = None
    with contextlib.ExitStack() as stack:
        opened = 0
        while opened < n and not why:
            why = refusal(server.port, stack)
            opened += not why
        until = time.monotonic() + SETTLE_S
        while descriptors(pid) - before < opened and time.monotonic() < until:
            time.sleep(0.05)
        held = resident_bytes(pid)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return {"connections": opened, "rest_mib": rest / 2**20, "bytes_each": (held - rest) / max(opened, 1), "why": why}
