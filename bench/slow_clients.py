#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Slow clients of a server on 127.0.0.1, each watched until its connection ends:
slow_clients.py KIND PORT CONNECTIONS SECONDS [options]

  --rate N       connections opened per second (2000)
  --addresses N  1: all come from 127.0.0.1; more: from 127.0.0.2 and the N - 1 following, in turn
  --again        closed connections are opened again, at the same rate

Kinds, and what each of their connections does:

  header   a head that never ends: a field of 12 bytes every 5 s
  body     a POST of 8,192 bytes that never completes: 6 bytes every 5 s
  read     GET of 1 MB, of which 32 bytes are read every 5 s, through a window of 1 KB
  range    the same for a range of the file: bytes=K-, with a different K per connection
  ranges   the same for 8 ranges of 8,000 bytes, a response of 64 KB that has to be composed
  many     the same for 1,300 ranges, Apache's range attack (CVE-2011-3192)
  silent   connects and sends nothing
  half     half a request line, then nothing
  idle     a request, its response, then nothing

Prints JSON: `opened`; `refused` (no connection); `asleep` (still open at the end); `ends` (how many
ended in which way: status and X-Weir-Limit of the last response, `closed` for an end without one,
`reset`); `answers` (statuses that slow readers began to read); `lived_s` (median time from connect
to the end). A slow reader does not see an end after data that it has not read, only a reset.
"""
import argparse
import collections
import heapq
import json
import re
import resource
import select
import socket
import statistics
import time

DRIP_S = 5
HEAD = "Host: slow\r\nUser-Agent: slow_clients\r\n"
RANGES = ",".join("%d-%d" % (i * 20000, i * 20000 + 7999) for i in range(8))
MANY = ",".join("5-%d" % i for i in range(1300))


def get(fields):
    return ("GET /1m.txt HTTP/1.1\r\n" + HEAD + fields + "\r\n").encode()


class Kind:
    """What is sent first and then every DRIP_S, and whether responses are read slowly."""

    def __init__(self, first, drip=b"", slow=False):
        self.first, self.drip, self.slow = first, drip, slow


KINDS = {
    "header": Kind(("GET /1k.txt HTTP/1.1\r\n" + HEAD).encode(), b"X-Slow: 12\r\n"),
    "body": Kind(("POST /1k.txt HTTP/1.1\r\n" + HEAD + "Content-Length: 8192\r\n\r\n").encode(), b"a=slow"),
    "read": Kind(get(""), slow=True),
    "range": Kind(None, slow=True),
    "ranges": Kind(get("Range: bytes=" + RANGES + "\r\n"), slow=True),
    "many": Kind(get("Range: bytes=" + MANY + "\r\n"), slow=True),
    "silent": Kind(b""),
    "half": Kind(b"GET /1k.t"),
    "idle": Kind(("GET /1k.txt HTTP/1.1\r\n" + HEAD + "\r\n").encode()),
}


class Client:
    def __init__(self, a, k):
        self.k, self.begun, self.head = k, time.monotonic(), b""
        self.sock = socket.socket()
        self.sock.setblocking(False)
        if KINDS[a.kind].slow:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        if a.addresses > 1:
            self.sock.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT: ports are chosen by connect
            self.sock.bind(("127.0.0.%d" % (2 + k % a.addresses), 0))
        self.sock.connect_ex(("127.0.0.1", a.port))


class Attack:
    def __init__(self, a):
        self.a, self.kind = a, KINDS[a.kind]
        self.poll, self.clients, self.drips = select.epoll(), {}, []
        self.opened = self.refused = 0
        self.ends, self.answers, self.lived = collections.Counter(), collections.Counter(), []

    def open(self):
        try:
            c = Client(self.a, self.opened)
        except OSError:
            self.refused += 1
            return
        self.opened += 1
        self.clients[c.sock.fileno()] = c
        self.poll.register(c.sock, select.EPOLLOUT)

    def begin(self, c):
        """Called when `c` is connected."""
        c.sock.send(self.kind.first if self.kind.first is not None else get("Range: bytes=%d-\r\n" % (c.k % 1000)))
        self.poll.modify(c.sock, 0 if self.kind.slow else select.EPOLLIN)
        if self.kind.drip or self.kind.slow:
            heapq.heappush(self.drips, (time.monotonic() + DRIP_S, c.k, c))

    def drip(self, c):
        if self.kind.slow:
            self.took(c, c.sock.recv(32))
        else:
            c.sock.send(self.kind.drip)
        heapq.heappush(self.drips, (time.monotonic() + DRIP_S, c.k, c))

    def took(self, c, got):
        if self.kind.slow:
            if not c.head:
                self.answers[got[9:12].decode("latin-1")] += 1
            c.head = got
        else:
            c.head = got if got.startswith(b"HTTP/") else c.head
        if not got:
            self.end(c, self.said(c))

    def said(self, c):
        """Status and limit of the last response of a closed client; "closed" if it has none.

        The normal response of an idle client does not count.
        """
        limit = re.search(rb"(?i)\r\nx-weir-limit: ([a-z_]+)", c.head)
        if not c.head or (self.a.kind == "idle" and b" 200 " in c.head[:16]):
            return "closed"
        return c.head[9:12].decode("latin-1") + (" " + limit.group(1).decode() if limit else "")

    def end(self, c, how):
        self.ends[how] += 1
        self.lived.append(time.monotonic() - c.begun)
        del self.clients[c.sock.fileno()]
        c.sock.close()

    def safely(self, call, c, *args):
        try:
            call(c, *args)
        except BlockingIOError:
            heapq.heappush(self.drips, (time.monotonic() + DRIP_S, c.k, c))
        except OSError:
            self.end(c, "reset, " + self.said(c) if c.head and not self.kind.slow else "reset")

    def event(self, fd, events):
        c = self.clients[fd]
        if events & select.EPOLLOUT and not events & (select.EPOLLERR | select.EPOLLHUP):
            self.safely(self.begin, c)
        elif events & select.EPOLLIN and not self.kind.slow:
            self.safely(lambda c: self.took(c, c.sock.recv(4096)), c)
        else:
            self.safely(self.over, c)

    def over(self, c):
        error = c.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            raise OSError(error, "")
        self.end(c, "closed")

    def run(self):
        begun = time.monotonic()
        while time.monotonic() - begun < self.a.seconds:
            now = time.monotonic()
            due = min(int((now - begun) * self.a.rate), self.a.connections if not self.a.again else 1 << 40)
            while self.opened + self.refused < due and len(self.clients) < self.a.connections:
                self.open()
            while self.drips and self.drips[0][0] <= now:
                c = heapq.heappop(self.drips)[2]
                if c.sock.fileno() >= 0:
                    self.safely(self.drip, c)
            for fd, events in self.poll.poll(0.005):
                self.event(fd, events)
        return {"opened": self.opened, "refused": self.refused, "asleep": len(self.clients), "ends": dict(self.ends.most_common()),
                "answers": dict(self.answers), "lived_s": statistics.median(self.lived) if self.lived else None}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kind", choices=KINDS)
    p.add_argument("port", type=int)
    p.add_argument("connections", type=int)
    p.add_argument("seconds", type=float)
    p.add_argument("--rate", type=int, default=2000)
    p.add_argument("--addresses", type=int, default=1)
    p.add_argument("--again", action="store_true")
    a = p.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(json.dumps(Attack(a).run()))


if __name__ == "__main__":
    main()
