#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""slowhttptest's four modes against weir with short time-outs: slow heads, slow bodies, slow reading,
and Apache's range attack.

usage: slow.py WEIR

In each mode the server has to close every slow connection before slowhttptest's own time is up, and
every request of a probe that runs all the time has to be answered. Slow readers are counted through
the server's metric: what the server wrote before it closed stays in the kernel's buffers, so a
client that reads 4 bytes a second does not see the end for hours. The numbers are small. This test
shows that each of the four attacks ends; a benchmark (bench/slow) measures what 10,000 slow
connections cost the other clients.
"""
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
import servers  # noqa: E402

CONNECTIONS = 100
LIMIT_S = 12  # for slowhttptest; the time-outs below are 1 s
KNOBS = ", header_timeout: 1s, body_timeout: 1s, write_timeout: 1s, idle_timeout: 1s"
# More than fits into the buffers of two sockets, so that a client that does not read is noticed.
ANSWER = 'use: respond, with: { body: "%s" }' % ("a" * 400000)
MODES = {"H": ["-i", "1"], "B": ["-i", "1", "-s", "8192"], "X": ["-w", "8", "-y", "16", "-n", "1", "-z", "4"], "R": ["-a", "1", "-b", "300"]}


class Probe(threading.Thread):
    def __init__(self, port):
        super().__init__()
        self.port, self.over = port, threading.Event()
        self.good = self.bad = 0

    def ask(self):
        with socket.create_connection(("127.0.0.1", self.port), 5) as s:
            s.sendall(b"GET /probe HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
            s.settimeout(5)
            n, answer = 0, s.recv(65536)
            head = answer[:12]
            while answer:
                n += len(answer)
                answer = s.recv(65536)
            return head == b"HTTP/1.1 200" and n > 400000

    def run(self):
        while not self.over.wait(0.05):
            try:
                good = self.ask()
            except OSError:
                good = False
            self.good += good
            self.bad += not good


def begin(port, mode):
    return subprocess.Popen(
        [servers.find("slowhttptest"), "-" + mode, "-c", str(CONNECTIONS), "-r", "200", "-l", str(LIMIT_S), "-p", "3",
         "-u", "http://127.0.0.1:%d/" % port] + MODES[mode], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)


def attack(port, mode):
    said = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", begin(port, mode).communicate()[0])
    end = re.search(r"Exit status:\s*(.*)", said)
    return end.group(1).strip() if end else "no exit status:\n" + said


def metric(admin, name):
    text = urllib.request.urlopen(admin + "/metrics", timeout=5).read().decode()
    return sum(float(line.split()[-1]) for line in text.splitlines() if re.match(name + r"[ {]", line))


def ended_all(s):
    """Starts slow readers and waits until all have connected and only the probe's are left."""
    admin = s.await_said("weir", r"admin (http://\S+)").group(1).rstrip("/")
    before = metric(admin, "weir_http_accepted_total")
    reader = begin(s.port["weir"], "X")
    now = most = 0
    try:
        while reader.poll() is None:
            now = metric(admin, "weir_http_connections")
            most = max(most, now)
            if metric(admin, "weir_http_accepted_total") - before >= CONNECTIONS and most > CONNECTIONS / 2 and now <= 2:
                return "No open connections left"
            time.sleep(0.05)
    finally:
        reader.kill()
        reader.communicate()
    return "%d of %d are still open" % (now, most)


def main():
    bad, ends = 0, {}
    with servers.Servers(sys.argv[1]) as s:
        s.start_weir(KNOBS, ANSWER)
        probe = Probe(s.port["weir"])
        probe.start()
        attackers = [threading.Thread(target=lambda m=mode: ends.update({m: attack(s.port["weir"], m)})) for mode in "HBR"]
        for attacker in attackers:
            attacker.start()
        for attacker in attackers:
            attacker.join()
        ends["X"] = ended_all(s)
        probe.over.set()
        probe.join()
    for mode, end in sorted(ends.items()):
        print("slowhttptest -%s: %s" % (mode, end))
        bad += end != "No open connections left"
    print("probe: %d answered, %d not" % (probe.good, probe.bad))
    sys.exit(1 if bad or probe.bad or not probe.good else 0)


if __name__ == "__main__":
    main()
