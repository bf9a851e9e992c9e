#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Can a request be smuggled through weir to an origin that reads more than weir has judged?

usage: smuggling.py WEIR [--streams N] [--seed S] [--at-once N] [--show N]

weir passes requests on to nginx, Apache, lighttpd and Node, the last three as lenient as they can be
configured. Each gets every stream of vectors.txt, alone and behind a good request, and N random ones
(differential.py), over connections that all clients share. Behind each stream follows a request with a
path of its own.

weir writes the address of the client into X-Forwarded-For of every request that it passes on, and no stream
has such a field. So a line in the log of an origin without it is a request that weir has not seen, or bytes
of a body that were read as one. And the answer to the last request must name its own path: another one was
answered in its place. Either fails the run.
"""
import argparse
import collections
import itertools
import re
import select
import sys
import time

sys.dont_write_bytecode = True
import differential  # noqa: E402
import servers  # noqa: E402
import vectors  # noqa: E402

ORIGINS = ("nginx", "apache", "lighttpd", "node")
QUIET_S = 0.1
GOOD = b"GET /good HTTP/1.1\r\nHost: t\r\n\r\n"
LAST = b"GET /last-%d HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
SEEN_LAST = re.compile(rb"(?i)\r\nlocation: [^\r]*/seen/last-(\d+)\r")
# Longer heads, or of more lines, reach limits of origins before these have read weir's fields, which are the
# last. nginx refuses the target * before it reads a field.
STREAM_BYTES_MAX = 4000
STREAM_LINES_MAX = 80


def is_within_limits(stream):
    return len(stream) < STREAM_BYTES_MAX and stream.count(b"\n") < STREAM_LINES_MAX and b"OPTIONS *" not in stream


def streams_of(options):
    """Pairs (number, bytes) of all streams, each with its last request."""
    rows = [(statuses[0] == "2", data) for statuses, _, _, data in vectors.load() if data]
    known = [data for good, data in rows if good], [data for good, data in rows if not good]
    plain = itertools.chain(known[0], known[1], (GOOD + data for data in known[1]))
    random = (differential.stream_of(options.seed, i, known)[:-len(differential.SENTINEL)]
              for i in range(options.streams))
    for i, stream in enumerate(filter(is_within_limits, itertools.chain(plain, random))):
        yield i, stream + LAST % i


class Runner:
    """Plays streams to all origins, `at_once` of them at a time."""

    def __init__(self, ports, at_once):
        self.ports, self.at_once = ports, at_once
        self.poll = select.epoll()
        self.open = {}  # descriptor: (player, number, origin)
        self.wrong = []
        self.answered = collections.Counter()
        self.played = 0

    def begin(self, number, stream):
        for name, port in self.ports.items():
            player = differential.Player(port, stream)
            player.stream = stream
            self.open[player.s.fileno()] = (player, number, name)
            self.poll.register(player.s.fileno(), select.EPOLLIN)
        self.played += 1

    def end(self, fd):
        player, number, name = self.open.pop(fd)
        self.poll.unregister(fd)
        player.s.close()
        seen = [int(token) for token in SEEN_LAST.findall(player.bytes)]
        self.answered[name] += len(seen)
        # a stream that asks for the end of the connection, or is refused, has no last answer
        if seen not in ([], [number]):
            self.wrong.append((name, number, player.stream, player.bytes))

    def turn(self):
        for fd, _ in self.poll.poll(QUIET_S / 4):
            if self.open[fd][0].feed():
                self.end(fd)
        now = time.monotonic()
        for fd, (player, _, _) in list(self.open.items()):
            if now - player.since > QUIET_S and player.quiet():
                self.end(fd)

    def play(self, streams):
        more = True
        while more or self.open:
            while more and len(self.open) < self.at_once * len(self.ports):
                item = next(streams, None)
                more = item is not None
                if more:
                    self.begin(*item)
            self.turn()


def strays(log):
    """The number of lines in the log of an origin, and those of requests that weir has not passed on."""
    lines = [line for line in log.splitlines() if " for=" in line]
    return len(lines), [line for line in lines if not line.endswith(" for=127.0.0.1")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("--streams", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--show", type=int, default=20)
    options = parser.parse_args()
    failed = False
    with servers.Servers(options.weir) as s:
        s.start_echo_origins()
        ports = s.start_weir_proxy({name: s.port[name] for name in ORIGINS})
        start, runner = time.monotonic(), Runner(ports, options.at_once)
        runner.play(streams_of(options))
        took = time.monotonic() - start
        for origin in ORIGINS:
            n, stray = strays(s.origin_log(origin))
            print("%s: %d requests, %d not from weir, %d last ones answered" % (
                origin, n, len(stray), runner.answered[origin]))
            print("".join("  %s\n" % line for line in stray[:options.show]), end="")
            failed |= bool(stray) or runner.answered[origin] == 0 or n <= runner.answered[origin]
    for name, number, stream, got in runner.wrong[:options.show]:
        print("%s: stream %d: %r\n  got %r" % (name, number, stream, got))
    print("%d streams of seed %d in %.1f s to each origin, %d with a wrong last answer" % (
        runner.played, options.seed, took, len(runner.wrong)))
    sys.exit(1 if failed or runner.wrong else 0)


if __name__ == "__main__":
    main()
