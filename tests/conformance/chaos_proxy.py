# SPDX-License-Identifier: MIT
"""A TCP proxy that plays a bad network between a client and a server, determined by a seed.

Each connection has two directions, up to the server and down to the client. Each direction has a
random number generator of its own, so what happens to connection `k` of seed `s` depends on these
two alone (except that the kernel decides how many bytes a read finds). A direction forwards bytes
in steps of 1 byte to 64 KiB: at once, late, or gathered until that many have arrived. At most one
of these events ends it, after a number of bytes:

  half     this direction ends (FIN) and later bytes are discarded; the other one continues
  reset    both sides get a reset (RST)
  server   the server gets a reset, the client an end (FIN)
  client   the client gets a reset, the server an end (FIN)
  freeze   nothing passes in either direction; the client's connection is closed, the server's
           stays open until `thaw`

`connect` returns the client's end, which is a real TCP connection, like the one to the server.
"""
import random
import select
import socket
import struct
import threading
import time

ENDS = ("half", "reset", "server", "client", "freeze")
BUFFER = 65536
TINY_MOST = 300  # steps below 10 bytes per direction; a megabyte byte by byte would take a minute
GATHER_S = 0.01
# The window is much smaller than what the kernel would buffer for a sender, and segments are much
# smaller than the window. With loopback's segments of 64 KiB, the two ends can fall into steps of
# half a window every 0.2 s (silly window syndrome, RFC 9293, 3.8.6): 200 s for the largest file.
NARROW, SEGMENT = 16384, 1000


class Plan:
    """What will happen to connection `k`.

    `end` is None or one of ENDS. It happens in direction `way`, "up" or "down", after `at` bytes.
    """

    def __init__(self, seed, k):
        rng = random.Random("%s/%s" % (seed, k))
        self.name = "%s/%s" % (seed, k)
        self.end = rng.choice(ENDS) if rng.random() < 0.5 else None
        self.way = rng.choice(("up", "down"))
        self.at = int(10 ** rng.uniform(0, 5.5))
        # A small receive window makes the server's writes wait.
        self.narrow = rng.random() < 0.3

    def __str__(self):
        return "%s %s after %d bytes" % (self.end, self.way, self.at) if self.end else "no end"


class Way:
    """One direction: bytes from `src` to `dst`."""

    def __init__(self, src, dst, rng, at):
        self.src, self.dst, self.rng, self.at = src, dst, rng, at
        self.buffer = bytearray()
        self.passed = self.tiny = 0
        self.over = self.done = False  # over: src has ended; done: dst has been shut down
        self.step = None  # [bytes, earliest time, end of gathering]

    def choose(self, now):
        size = self.rng.choice((9, 9, 600, 9000, BUFFER, BUFFER))
        self.tiny += size == 9
        n = 1 + self.rng.randrange(size if self.tiny < TINY_MOST else BUFFER)
        pause = self.rng.choice((0, 0, 0, 0, 0.0002, 0.003))
        gather = GATHER_S if self.rng.random() < 0.2 else 0
        self.step = [n, now + pause, now + pause + gather]

    def wait_s(self, now):
        """Seconds until there is work that needs no further byte from src; None: no such work."""
        if self.step is None or not self.buffer:
            return None
        full = len(self.buffer) >= min(self.step[0], BUFFER) or self.over
        return max(0, self.step[1 if full else 2] - now)

    def read(self):
        try:
            got = self.src.recv(BUFFER)
        except BlockingIOError:
            return
        self.buffer += got
        self.over = self.over or not got

    def write(self, now):
        """Takes one step. Returns True when the planned number of bytes has passed."""
        n = min(self.step[0], len(self.buffer), self.at - self.passed)
        if n > 0:
            try:
                n = self.dst.send(self.buffer[:n])
            except BlockingIOError:
                self.step[1] = self.step[2] = now + 0.001
                return False
            del self.buffer[:n]
            self.passed += n
        self.step = None
        return self.passed >= self.at


class Link(threading.Thread):
    def __init__(self, proxy, plan, client, server):
        super().__init__(daemon=True)
        self.proxy, self.plan, self.client, self.server = proxy, plan, client, server
        ats = {plan.way: plan.at} if plan.end else {}
        self.up = Way(client, server, random.Random(plan.name + "/up"), ats.get("up", float("inf")))
        self.down = Way(server, client, random.Random(plan.name + "/down"), ats.get("down", float("inf")))
        self.ended = False  # as planned

    def run(self):
        try:
            while not (self.up.done and self.down.done):
                self.turn()
                if self.ended and self.plan.end != "half":
                    self.finish(self.plan.end)
                    return
            close(self.client, False)
            close(self.server, False)
        except OSError:  # a reset is passed on to the other side
            close(self.client, True)
            close(self.server, True)

    def turn(self):
        ways, now = (self.up, self.down), time.monotonic()
        for w in ways:
            if w.buffer and w.step is None:
                w.choose(now)
        waits = [s for s in (w.wait_s(now) for w in ways) if s is not None]
        sources = [w.src for w in ways if not w.over and len(w.buffer) < BUFFER]
        ready = select.select(sources, [], [], min(waits) if waits else None)[0]
        now = time.monotonic()
        for w in ways:
            if w.src in ready:
                w.read()
            self.move(w, now)

    def move(self, w, now):
        if w.wait_s(now) == 0 and w.write(now):
            self.ended = True
            if self.plan.end == "half":
                w.dst.shutdown(socket.SHUT_WR)
                w.done = True
        if w.done:  # read and discard, or the sender would wait for space
            w.buffer.clear()
        elif w.over and not w.buffer:
            w.done = True
            w.dst.shutdown(socket.SHUT_WR)

    def finish(self, end):
        close(self.client, end in ("reset", "client"))
        if end == "freeze":
            self.proxy.freeze(self.server)
        else:
            close(self.server, end in ("reset", "server"))


def close(sock, reset):
    if reset:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


class Proxy:
    """`connect` can be called from any thread."""

    def __init__(self):
        self.lock = threading.Lock()
        self.frozen = []
        self.listener = socket.create_server(("127.0.0.1", 0))

    def connect(self, plan, port):
        """Connects to `port` of 127.0.0.1 under `plan`.

        Returns the client's socket and the thread that plays the network.
        """
        server = socket.socket()
        if plan.narrow:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, NARROW)
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
        server.connect(("127.0.0.1", port))
        with self.lock:
            client = socket.create_connection(self.listener.getsockname())
            inner = self.listener.accept()[0]
        for s in (client, inner, server):
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        inner.setblocking(False)
        server.setblocking(False)
        link = Link(self, plan, inner, server)
        link.start()
        return client, link

    def freeze(self, server):
        with self.lock:
            self.frozen.append(server)

    def thaw(self):
        """Resets all frozen connections and returns their number."""
        with self.lock:
            frozen, self.frozen = self.frozen, []
        for s in frozen:
            close(s, True)
        return len(frozen)
