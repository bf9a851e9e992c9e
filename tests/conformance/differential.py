#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random request streams to weir, nginx, HAProxy and lighttpd: is weir ever more lax than the others?

usage: differential.py WEIR [--streams N] [--seed S] [--at-once N] [--show N]

A stream is one or two requests, from vectors.txt or made up, with up to four mutations, followed by
a valid request that asks to close the connection. Every server gets the same bytes on a connection
of its own, and the requests that it served are counted: all responses except refusals.

weir is lax in two cases. It served a request at which at least two others stopped (what a server
would have done after its refusal is unknown). Or it saw a different method or target where all
others saw the same one, so it ended a message elsewhere. Such a stream is played again, alone and
slowly, since on a loaded machine a slow response looks like none. It fails the run if weir is still
lax.

Two known differences are excused. nginx and lighttpd refuse a tab next to the value of Host, which
is white space to RFC 9110 (5.6.3) and RFC 9112 (5.1), and so to weir. HAProxy and lighttpd take "?a"
in "http://t?a" as a part of the authority, which RFC 3986 (3.2) ends there. A lax stream with one of
these is played once more, with spaces for the tabs and "/?" for the "?", and fails the run if weir
is lax then, too. The number of excused streams is printed.

Repeatable: stream i of seed S is the same on every machine. At the end, the program prints how often
weir differed from each of the others.
"""
import argparse
import random
import re
import select
import socket
import sys
import time

sys.dont_write_bytecode = True
import servers  # noqa: E402
import vectors  # noqa: E402

PEERS = ("nginx", "haproxy", "lighttpd")
ALL = ("weir",) + PEERS
# Statuses that count as a refusal to read the stream as a request. A 404 or 501 for a well-framed
# request would be a matter of taste, but none of the four servers sends one here: all targets exist,
# and each method is known to all or refused by all.
REFUSALS = {400, 405, 408, 413, 414, 417, 421, 426, 431, 494, 497, 501, 502, 503, 505}
# lighttpd requires a length with every POST, which RFC 9110 allows a server to do. Its responses to
# such a stream do not count.
POLICY = 411
# Vectors with these are left out. nginx has no OPTIONS *; lighttpd answers it itself and closes.
# HAProxy requires a key for an upgrade to WebSocket even where no server upgrades.
TASTE = (b"OPTIONS *", b"websocket")
HOST_LINE = re.compile(rb"(?i)(?<=\r\n)host:([ \t]*)([^\r\n]*?)([ \t]*)(?=\r\n)")
BARE_QUERY = re.compile(rb"(?i)(?<= )(https?://[^/?\s]*)\?")
SENTINEL = b"GET /sentinel HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
STREAM_BYTES_MAX = 12000  # HAProxy buffers 16 KiB of head and body together
# After this time without a byte the server is waiting for more, so our side is shut down.
QUIET_S, QUIET_ALONE_S = 0.06, 0.5
END_S = 5

# ---- streams ----

METHODS = [b"GET", b"POST", b"PUT", b"HEAD", b"OPTIONS", b"DELETE"]
TARGETS = [b"/", b"/a", b"/a?b=c", b"http://t/", b"//a", b"/a%20b", b"/;p", b"/a?b?c", b"/~a[0]", b"/a|b"]
VERSIONS = [b"HTTP/1.1"] * 6 + [b"HTTP/1.0"]
FIELDS = [
    b"X: a", b"X:", b"Content-Type: text/plain", b"Connection: close", b"Connection: keep-alive",
    b"Transfer-Encoding: chunked", b"Content-Length: 5", b"Content-Length: 0", b"Expect: 100-continue",
    b"Cookie: a=b", b"TE: trailers", b"Upgrade: h2c", b"Trailer: X", b"Transfer-Encoding: identity",
    b"Range: bytes=0-1", b"Host: t", b"Content-Encoding: gzip", b"Accept: */*", b"Via: 1.1 x",
]
CHUNKED = [b"5\r\nhello\r\n0\r\n\r\n", b"1;a=b\r\nx\r\n0\r\n\r\n", b"0\r\n\r\n", b"0\r\nX: a\r\n\r\n", b"a\r\n0123456789\r\n00\r\n\r\n"]
NASTY = [
    b"\r", b"\n", b"\r\n", b"\x00", b" ", b"\t", b"\x0b", b"\x0c", b":", b";", b",", b"=", b"+", b"-", b"_", b"\"", b"'",
    b"\\", b"/", b"#", b"?", b"@", b"[", b"]", b"(", b"%", b"%00", b"%0d%0a", b"0", b"5", b"9", b"f", b"0x", b"\x7f", b"\x80",
    b"\xff", b"\xa0", b"\x01", b"\x1f", b"\r\n ", b"\r\n\t", b"\n\n", b"\r\r", b"chunked", b"close", b"HTTP/1.1",
]


def made_up(rng):
    fields = [b"Host: t"] + [rng.choice(FIELDS) for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 3)))]
    rng.shuffle(fields)
    line = b" ".join((rng.choice(METHODS), rng.choice(TARGETS), rng.choice(VERSIONS)))
    head = b"\r\n".join([line] + fields) + b"\r\n\r\n"
    if any(f.startswith(b"Transfer") for f in fields):
        return head + rng.choice(CHUNKED)
    return head + (b"hello" if b"Content-Length: 5" in fields else b"")


def mutate_byte(rng, s):
    at = rng.randrange(len(s) + 1)
    cut = rng.choice((0, 0, 1, 1, 2))
    return s[:at] + rng.choice((rng.choice(NASTY), b"", bytes([rng.randrange(256)]))) + s[at + cut:]


def mutate_near(rng, s):
    """Mutates next to a byte that matters: line ends, colons, digits, spaces."""
    places = [i for i, b in enumerate(s) if b in b"\r\n: 0123456789;,abcdef"]
    if not places:
        return mutate_byte(rng, s)
    at = rng.choice(places) + rng.choice((0, 0, 1))
    return s[:at] + rng.choice(NASTY) + s[at + rng.choice((0, 0, 1)):]


def mutate_lines(rng, s):
    lines = s.split(b"\r\n")
    at = rng.randrange(len(lines))
    what = rng.randrange(5)
    if what == 0:
        lines.insert(rng.randrange(len(lines) + 1), lines[at])
    elif what == 1 and len(lines) > 1:
        lines.pop(at)
    elif what == 2:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif what == 3:
        lines.insert(at, rng.choice(FIELDS))
    else:
        lines[at] = lines[at].swapcase()
    return b"\r\n".join(lines)


def mutate_ends(rng, s):
    parts = s.split(b"\r\n")
    if len(parts) < 2:
        return s
    at = rng.randrange(1, len(parts))
    end = rng.choice((b"\n", b"\r", b"\n\r", b"\r\r\n", b" \r\n", b"\t\r\n", b"\r\n ", b""))
    return b"\r\n".join(parts[:at]) + end + b"\r\n".join(parts[at:])


MUTATIONS = (mutate_byte, mutate_near, mutate_near, mutate_lines, mutate_ends)


def base(rng, good, bad):
    what = rng.random()
    return rng.choice(good) if what < 0.4 else rng.choice(bad) if what < 0.5 else made_up(rng)


def stream_of(seed, i, known):
    rng = random.Random("%d:%d" % (seed, i))
    s = b"".join(base(rng, *known) for _ in range(rng.choice((1, 1, 2))))
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
        s = rng.choice(MUTATIONS)(rng, s)
    return s[:STREAM_BYTES_MAX] + SENTINEL


# ---- playing ----


class Player:
    """Plays one stream to one server.

    Call `feed` when the socket is readable and `quiet` when nothing has arrived for a while.
    """

    def __init__(self, port, stream):
        self.bytes = b""
        self.since = time.monotonic()
        self.shut = False
        self.s = socket.socket()
        self.s.connect(("127.0.0.1", port))
        try:
            self.s.sendall(stream)
        except OSError:
            pass  # the server refused before it had read everything
        self.s.setblocking(False)

    def feed(self):
        """True when the server has ended the connection."""
        self.since = time.monotonic()
        try:
            got = self.s.recv(65536)
        except BlockingIOError:
            return False
        except OSError:
            return True
        self.bytes += got
        return not got

    def quiet(self):
        """Ends our side, since the server waits for more. True if it keeps the connection even then."""
        if self.shut:
            return time.monotonic() - self.since > END_S
        self.shut = True
        self.since = time.monotonic()
        try:
            self.s.shutdown(socket.SHUT_WR)
        except OSError:
            return True
        return False


def answers_of(data, heads, proxied):
    """(status, method and target as the server saw them) for each response.

    `heads`: some requests may have been HEAD. Which ones is unknown, so a response that is followed
    directly by the next one, whatever its length field, is taken as a response to HEAD.
    """
    out, at = [], 0
    while at < len(data):
        end = data.find(b"\r\n\r\n", at)
        line = data[at:at + 12]
        if end < 0 or not line.startswith(b"HTTP/1."):
            break
        status, head = int(line[9:12]), data[at:end].lower()
        at = end + 4
        length = body_length(head, data, at)
        if heads and data[at:at + 7] in (b"HTTP/1.", b""):
            length = 0
        if status >= 200:
            # The origin refused, so the server in front of it accepted the request.
            status = 200 if proxied and b"\r\nserver: nginx" in head else status
            out.append((status, label(data[at:at + length])))
        at += length
    return out


def label(body):
    """The second line of the body from weir's echo or the origin; None without it, as for HEAD."""
    lines = body.split(b"\n", 2)
    if len(lines) < 3 or not lines[0].startswith((b"you sent", b"seen")):
        return None
    method, _, target = lines[1].partition(b" ")
    if b"://" in target[:8]:
        target = b"/" + target.split(b"/", 3)[3] if target.count(b"/") > 2 else b"/"
    return method + b" " + target


def body_length(head, data, at):
    for line in head.split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    if b"transfer-encoding: chunked" in head:
        end = data.find(b"0\r\n\r\n", at)
        return (end + 5 if end >= 0 else len(data)) - at
    return 0


def served(name, stream, data):
    """The requests that the server served up to its first refusal; None when it does not count."""
    seen = []
    for status, what in answers_of(data, b"HEAD" in stream, name in ("haproxy", "lighttpd")):
        if status == POLICY:
            return None
        if status in REFUSALS:
            break
        seen.append(what)
    return seen


class Runner:
    def __init__(self, ports, at_once, quiet_s):
        self.ports, self.at_once, self.quiet_s = ports, at_once, quiet_s
        self.poll = select.epoll()
        self.open = {}  # descriptor: (player, key, name)
        self.done = {}  # key: {name: served}

    def begin(self, key, stream):
        self.done[key] = {"stream": stream}
        for name in ALL:
            player = Player(self.ports[name], stream)
            self.open[player.s.fileno()] = (player, key, name)
            self.poll.register(player.s.fileno(), select.EPOLLIN)

    def end(self, fd):
        player, key, name = self.open.pop(fd)
        self.poll.unregister(fd)
        player.s.close()
        row = self.done[key]
        row[name] = served(name, row["stream"], player.bytes)

    def turn(self):
        for fd, _ in self.poll.poll(self.quiet_s / 4):
            if self.open[fd][0].feed():
                self.end(fd)
        now = time.monotonic()
        for fd, (player, _, _) in list(self.open.items()):
            if now - player.since > self.quiet_s and player.quiet():
                self.end(fd)

    def play(self, streams):
        """Plays `streams`, (key, bytes) pairs; yields (key, row) when all four servers have ended."""
        streams, more = iter(streams), True
        while more or self.open:
            while more and len(self.open) < self.at_once * len(ALL):
                item = next(streams, None)
                more = item is not None
                if more:
                    self.begin(*item)
            self.turn()
            for key in [k for k, row in self.done.items() if len(row) == 1 + len(ALL)]:
                yield key, self.done.pop(key)


def count(row, name):
    return None if row[name] is None else len(row[name])


def lower(row, peer):
    return row[peer] is not None and len(row["weir"]) > len(row[peer])


def higher(row, peer):
    return row[peer] is not None and len(row["weir"]) < len(row[peer])


def is_lax(row):
    """Did weir serve a request at which two peers stopped, or see a different request?"""
    stops = [len(row[peer]) for peer in PEERS if lower(row, peer)]
    return len(stops) > len(set(stops)) or is_alone(row)


def together(row):
    """(what weir saw, what all three peers saw) for each request where all three saw the same."""
    for i, mine in enumerate(row["weir"]):
        others = {row[peer][i] if row[peer] is not None and i < len(row[peer]) else None for peer in PEERS}
        if mine is not None and None not in others and len(others) == 1:
            yield mine, others.pop()


def is_alone(row):
    """Did all three peers see the same request somewhere, and weir a different one?"""
    return any(mine != others for mine, others in together(row))


def show(key, row):
    print("stream %d: %s\n  %r" % (key, " ".join("%s=%s" % (n, count(row, n)) for n in ALL), row["stream"][:-len(SENTINEL)]))
    if is_alone(row):
        print("  " + " ".join("%s=%r" % (n, row[n]) for n in ALL))


def plain(stream):
    """The stream with spaces for the tabs around Host values, and a path before each query.

    By the RFCs both streams mean the same.
    """
    spaced = HOST_LINE.sub(lambda m: m[0][:5] + b" " * len(m[1]) + m[2] + b" " * len(m[3]), stream)
    return BARE_QUERY.sub(rb"\1/?", spaced)


def judge(ports, suspects):
    """Plays each stream alone: (streams in which weir is lax, number of excused streams)."""
    alone = Runner(ports, 1, QUIET_ALONE_S)
    lax = {key: row for key, row in alone.play(suspects) if is_lax(row)}
    again = [(key, plain(row["stream"])) for key, row in lax.items() if plain(row["stream"]) != row["stream"]]
    excused = [key for key, row in alone.play(again) if not is_lax(row)]
    return [(key, row) for key, row in lax.items() if key not in excused], len(excused)


def run(options, ports, known):
    counts = {peer: [0, 0] for peer in PEERS}
    suspects, n, served_all, compared = [], 0, 0, 0
    runner = Runner(ports, options.at_once, QUIET_S)
    streams = ((i, stream_of(options.seed, i, known)) for i in range(options.streams))
    for key, row in runner.play(streams):
        n += 1
        compared += sum(1 for _ in together(row))
        served_all += len(row["weir"]) > 0
        for peer in PEERS:
            counts[peer][0] += lower(row, peer)
            counts[peer][1] += higher(row, peer)
        if is_lax(row):
            suspects.append((key, row["stream"]))
    return n, served_all, compared, counts, judge(ports, suspects), len(suspects)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("--streams", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=32)
    parser.add_argument("--show", type=int, default=20)
    options = parser.parse_args()
    rows = [(statuses[0] == "2", data) for statuses, _, _, data in vectors.load()
            if data and len(data) < 2000 and not any(word in data for word in TASTE)]
    known = [data for good, data in rows if good], [data for good, data in rows if not good]
    with servers.Servers(options.weir) as s:
        s.start_weir()
        s.start_peers()
        start = time.monotonic()
        n, served_all, compared, counts, (lax, excused), suspects = run(options, s.port, known)
        took = time.monotonic() - start
    for key, row in sorted(lax, key=lambda item: len(item[1]["stream"]))[:options.show]:
        show(key, row)
    for peer in PEERS:
        print("weir served more than %s in %d streams, less in %d" % (peer, *counts[peer]))
    print("%d requests where all three peers reported the same and weir's report was compared" % compared)
    print("%d streams of seed %d in %.1f s, weir served something in %d; laxer than two: %d (%d before they were played alone, %d "
          "of them excused)" % (n, options.seed, took, served_all, len(lax), suspects, excused))
    if n < options.streams or not 0 < served_all < n or not compared:
        sys.exit("the run itself is broken: not all streams were played, or all ended alike")
    sys.exit(1 if lax else 0)


if __name__ == "__main__":
    main()
