#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The verbs of weir against a hostile admin endpoint: hostile.py PROGRAM SOURCE_DIR

  evil      every text in every response contains control characters, DEL, C1 controls, changes of
            text direction and newlines; none of them is printed
  refusals  the same in error responses, 400 to 503
  rubbish   responses that are not JSON or not UTF-8
  dribble   a response that arrives byte by byte and never ends, in clear text and in a TLS
            handshake: the verbs end at their own time-out
  source    every field that a verb reads is served here, and verbs that talk to a server print
            only through plain.h
"""
import glob
import json
import os
import pty
import re
import select
import socket
import subprocess
import sys
import threading
import time

PROGRAM, TOP = sys.argv[1:3]
EVIL = "Q\x1b[2J\x07\x7f\x9b31m\u202e\u2066\u200f\r\nFORGED\tz"
HANG = 60  # seconds; reached only when a verb hangs
failures, checks = [], 0


def check(good, what):
    global checks
    checks += 1
    if not good:
        failures.append(what)
        print("FAILED:", what, file=sys.stderr)


# ---- the server ----

def stage(name, n):
    seconds = {"p99": 0.1, "count": n, "sum": n * 0.001}
    return {"name": name, "use": EVIL, "placement": EVIL, "group": EVIL, "state": EVIL, "in_flight": 1,
            "busy_seconds_total": n * 0.01, "slo_seconds": 1, "queue": {"length": 1, "limit": 5, "oldest_wait_seconds": 1},
            "trouble": EVIL, "threads": {"busy": 1, "now": 2, "min": 1, "max": 4}, "admission": {"policy": EVIL, "mode": EVIL, "why": EVIL},
            "classes": [{"name": EVIL, "offered_total": 2 * n, "completed_total": n, "failed_total": n, "shed_total": {EVIL: n},
                         "wait_seconds": seconds, "service_seconds": seconds}],
            "metrics": [{"name": EVIL, "help": EVIL, "turned_away": True, "value": n}]}


def knob(**more):
    return {"name": "with.text", "live": True, "effective": EVIL, "configured": EVIL, "overridden": EVIL, **more}


def request(spans):
    return {"took": 0.5, "path": EVIL, "class": EVIL, "outcome": EVIL, "end": EVIL, "trace": EVIL, "at": 1.7e9, "hops": 9,
            "spans": [{"stage": EVIL, "after": 0, "wait": 0.1, "service": 0.1}] * spans}


def profile(n):
    row = {"on": EVIL, "kind": EVIL, "started_total": n, "completed_total": 1e300 * n,
           "wait_seconds": {"count": n, "sum": n, "buckets": [[1e300, n], [EVIL, n], EVIL]}}
    return {"name": EVIL, "time": 1e300, "since": 1, "counted_seconds": n, "stages": [{"name": EVIL, "group": EVIL, "rows": [row, row, EVIL]}, EVIL],
            "arcs": [{"from": EVIL, "outlet": EVIL, "to": EVIL, "on": EVIL, "sent_total": n, "offered_total": 2 * n}] * 2}


def act(**more):
    return {"at": 1.7e9, "actor": EVIL, "what": EVIL, "target": EVIL, "from": EVIL, "to": EVIL, "undone": True, **more}


def decision(of):
    return {"id": 1, "time": 1e300, "stage": of, "actor": EVIL, "action": EVIL, "from": 1, "to": 2, "rule": EVIL,
            "inputs": EVIL, "limit": EVIL, "outcome_5s": EVIL, "outcome_30s": EVIL}


def answers(n, result):
    """(end of the path, response) pairs; the first match is sent. `n` grows with each request."""
    column = {k: [1, 2] for k in ("in", "done", "shed", "queue", "busy", "wait_p99")}
    return [
        ("/knobs", {"knobs": [knob(), knob(expires_at=1e300), knob(kept=EVIL, name=EVIL)]}),
        ("/knobs/threads.max", knob(expires_at=1.7e9)),
        ("/queue", {"length": 1, "oldest": [{"age": 1, "class": EVIL, "type": EVIL, "deadline_left": 1}] * 2}),
        ("/tap", {"requests": [request(2), request(0)], "after": n, "dropped": n}),
        ("/slowest", {"requests": [request(2)]}),
        ("/profile", profile(n)),
        ("/pause", {"state": EVIL, "in_flight": 1}), ("/resume", {"state": EVIL, "in_flight": 1}),
        ("/drain", {"state": EVIL, "in_flight": 1}),
        ("/stages", {"time": 1e300, "uptime_seconds": n, "name": EVIL, "stages": [stage(EVIL, n), stage("work", n)],
                     "bottleneck": {"text": EVIL, "limits": True, "formula": EVIL, "law": EVIL, "stage": EVIL, "used": 0.5}}),
        ("/stages/work", stage("work", n)),
        ("/decisions", {"decisions": [decision(EVIL), decision("work")], "next": ""}),
        ("/changes", {"changes": [act(), act(expires_at=1e300)], "next": ""}),
        ("/undo", {"undone": act()}),
        ("/history", {"stages": {EVIL: column, "work": column}, "at": [1, 2], "from": -1, "to": 0}),
        ("/overload", {"mode": EVIL}),
        ("/stop", {"state": "stopped", "report": {"whole": False, "took_seconds": 1e300, "unfinished": 1, "lost": 1}}),
        ("/config", {"files": [{"file": EVIL, "text": EVIL}], "values": {"stages.work.with." + EVIL: EVIL, "name": EVIL},
                     "sets": [EVIL]}),
        ("/reload", {"id": 1, "done": 1, "last": {
            "result": result, "summary": EVIL, "text": EVIL, "preview": False, "renewed": [{"stage": EVIL, "text": EVIL}],
            "changes": [{"effect": EVIL, "path": EVIL, "from": EVIL, "to": EVIL}]}}),
        ("/graph", {"name": EVIL, "ready": True, "classes": [], "stages": [{"name": "work"}, {"name": EVIL}]}),
        ("/alerts", {"active": [{"level": EVIL, "text": EVIL}]}),
        ("/v1", {"routes": [], "version": EVIL}),
    ]


class Server:
    """A server that responds by calling how(server, socket, path, number of the request)."""

    def __init__(self, how):
        self.how, self.n, self.over = how, 0, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            self.n += 1
            threading.Thread(target=self.serve, args=(peer, self.n), daemon=True).start()

    def serve(self, peer, n):
        with peer:
            head = b""
            try:
                while b"\r\n\r\n" not in head and (more := peer.recv(65536)):
                    head += more
                    if head[:1] == b"\x16":  # a TLS hello
                        break
                path = head.split(b" ")[1].decode().split("?")[0] if head[:1] != b"\x16" else ""
                self.how(self, peer, path, n)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
            except OSError:
                pass

    def close(self):
        self.over.set()
        # Wakes accept(). After close() alone, another listener could reuse the descriptor first.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.listener.close()


def send(peer, status, body):
    peer.sendall(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nRetry-After: 7\r\nConnection: close\r\n\r\n" % (status, len(body)) + body)


def evil(result, ascii_only):
    def how(server, peer, path, n):
        for end, doc in answers(n, result):
            if path.endswith(end):
                return send(peer, 200, json.dumps(doc, ensure_ascii=ascii_only).encode())
        return send(peer, 404, json.dumps({"detail": EVIL}).encode())
    return how


def refusal(status, body):
    return lambda server, peer, path, n: send(peer, status, body)


def dribble(first, byte):
    def how(server, peer, path, n):
        peer.sendall(first)
        while not server.over.wait(0.02):
            peer.sendall(byte)
    return how


# ---- the verbs ----

VERBS = {  # operands and options of each verb; the output contains texts from the server
    "diff": ["own.yaml"], "reload": [], "ps": [], "why": ["work"], "overload": [], "show": ["work"], "queue": ["work"],
    "top": ["-n", "1"], "trace": [], "tap": ["work", "-n", "2", "--for", "100ms"], "profile": ["--for", "100ms"],
    "log": [], "snapshot": ["page.html"],
    "set": ["work.threads.max=3"], "unset": ["work.threads.max"], "undo": [], "pause": ["work"], "resume": ["work"],
    "drain": ["work"], "save": ["own.yaml"], "stop": [], "purge": ["*"],
}
NO_JSON = {"why", "overload", "top", "snapshot", "save", "stop", "purge"}
SILENT = {"snapshot", "overload", "stop", "purge"}  # these print no text from the response


def verbs_with_admin():
    text = subprocess.run([PROGRAM, "help"], capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^  (\w+) {2,}\S", text, re.M)
    return {v for v in names
            if "--admin" in subprocess.run([PROGRAM, v, "--help"], capture_output=True, text=True, check=True).stdout}


def run(url, verb, *more):
    """(exit code, output of both streams); the exit code is None when the verb hangs."""
    try:
        p = subprocess.run([PROGRAM, verb, *VERBS[verb], "--admin", url, *more], capture_output=True, stdin=subprocess.DEVNULL,
                           timeout=HANG)
    except subprocess.TimeoutExpired:
        return None, b""
    return p.returncode, p.stdout + p.stderr


BAD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def is_plain(name, out, forged=True):
    try:
        text = out.decode()
    except UnicodeDecodeError as e:
        return check(False, f"{name}: {e}: {out[-300:]!r}")
    found = BAD.search(text)
    check(not found, f"{name} prints {found and ascii(found[0])}: {ascii(text[-600:])}")
    if forged:
        check(not re.search("^FORGED", text, re.M), f"{name} prints a line that the server forged: {ascii(text[-600:])}")
    return None


def test_evil():
    for result in ("ok", "failed"):
        for ascii_only in (True, False):
            server = Server(evil(result, ascii_only))
            for verb in VERBS if result == "ok" else ["reload"]:
                rc, out = run(server.url, verb)
                check(rc in (0, 1, 2), f"{verb}: exit {rc}: {ascii(out[-300:])}")
                is_plain(verb, out, result == "ok")
                check(verb in SILENT or b"Q\\x1b[2J\\x07\\x7f" in out, f"{verb} shows nothing: {ascii(out[-600:])}")
                if verb in NO_JSON:
                    continue
                rc, out = run(server.url, verb, "-o", "json")
                is_plain(verb + " -o json", out)
                # A newline ends a configuration value, so diff shows these texts differently.
                check(verb == "diff" or b"q\\u001b[2j" in out.lower(), f"{verb} -o json shows nothing: {ascii(out[-600:])}")
            for more in (["--shed", "0000000000000"], []):
                p = subprocess.run([PROGRAM, "why", *more, "--admin", server.url], capture_output=True, timeout=HANG)
                is_plain("why", p.stdout + p.stderr)
            server.close()


def test_refusals():
    problem = json.dumps({"detail": EVIL}, ensure_ascii=False).encode()
    for status in (400, 401, 403, 404, 409, 429, 500, 503):
        server = Server(refusal(status, problem))
        for verb in VERBS:
            rc, out = run(server.url, verb)
            check(rc in (1, 2, 3), f"{verb}: exit {rc} for status {status}")
            is_plain(f"{verb} for status {status}", out)
        server.close()


def test_rubbish():
    for body in (b"\x1b[2J\xff\x9b", b'{"detail":"\x1b[2J\xff\xc2\x9b\r\nFORGED"}', b"[" * 5000, b"null", b'{"stages":7}'):
        for status in (200, 403, 409):
            server = Server(refusal(status, body))
            for verb in VERBS:
                rc, out = run(server.url, verb)
                check(rc in (1, 2, 3) or body in (b"null", b'{"stages":7}'), f"{verb}: exit {rc} for {body!r}")
                is_plain(f"{verb} for {body!r}", out)
                if verb in ("ps", "why", "top", "overload"):
                    is_plain(f"{verb} -o json", run(server.url, verb, "-o", "json")[1])
            server.close()


def test_dribble():
    """A verb keeps its time-out even while bytes continue to arrive."""
    ways = {"a body": Server(dribble(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n", b" ")),
            "a head": Server(dribble(b"HTTP/1.1 200 OK\r\nX: ", b"x")),
            "nothing": Server(lambda server, peer, path, n: server.over.wait())}
    for way, server in ways.items():
        for verb in VERBS:
            rc, out = run(server.url, verb, "--timeout", "200ms")
            check(rc == 3, f"{verb}: exit {rc} for {way} without end")
            check(b"did not answer in time" in out, f"{verb}: {ascii(out[-300:])}")
        server.close()
    server = Server(dribble(b"\x16\x03\x03\x40\x00", b"\x02"))
    rc, out = run(server.url.replace("http:", "https:"), "ps", "--timeout", "200ms")
    check(rc == 3 and b"did not answer in time" in out, f"a TLS record without end: exit {rc}: {ascii(out[-300:])}")
    server.close()


def test_options():
    for wrong in ("0", "soon", "2h", "-1s"):
        p = subprocess.run([PROGRAM, "ps", "--timeout", wrong], capture_output=True, timeout=HANG)
        check(p.returncode == 2 and b"--timeout" in p.stderr, f"--timeout {wrong}: {p.returncode} {p.stderr!r}")


def test_top_screen():
    """The same on a terminal, where top prints escape sequences of its own for styles."""
    server = Server(evil("ok", True))
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execv(PROGRAM, [PROGRAM, "top", "--admin", server.url])
    out, end = b"", time.monotonic() + HANG
    while b"q quit" not in out and time.monotonic() < end and select.select([fd], [], [], HANG)[0]:
        out += os.read(fd, 65536)
    os.write(fd, b"q")
    try:
        while os.read(fd, 65536):
            pass
    except OSError:
        pass
    os.waitpid(pid, 0)
    check(b"Q\\x1b[2J" in out and b"\x1b[2J" not in out and b"\x07" not in out, f"top: {out[-900:]!r}")
    server.close()


# ---- the source ----

RAW = re.compile(r"(?<![\w])(?:v?printf|v?fprintf|json_dumpf|fwrite)\s*\(|(?<![\w])puts\s*\(\s*[^\"\s]"
                 r"|fputs\s*\([^\"]*,\s*std(?:out|err)\)")
OWN = {"main.c",        # prints the command line
       "plain.c"}
READ = re.compile(r'\b(?:act_text|ps_text|text)\([^;,]+, "(\w+)"\)')


def test_source():
    served = json.dumps(answers(1, "ok"))
    for path in sorted(glob.glob(os.path.join(TOP, "cli", "*.c"))):
        name = os.path.basename(path)
        with open(path) as f:
            text = f.read()
        if not re.search(r'#include "(?:act|client|turned_away|top|why_shed|verb_diff)\.h"', text):
            continue
        for key in READ.findall(text):
            check(f'"{key}"' in served or key in ("detail",), f"{name} reads '{key}', which this server does not send")
        if name in OWN:
            continue
        for found in RAW.finditer(text):
            line = text[text.rfind("\n", 0, found.start()) + 1:text.find("\n", found.start())].strip()
            to_page = name == "snapshot.c" and "fprintf(out," in line
            check(to_page or "fputs(style, out)" in line, f"{name} prints without plain.h: {line}")


def main():
    os.chdir(os.environ.get("TMPDIR", "/tmp"))
    work = subprocess.run(["mktemp", "-d"], capture_output=True, text=True, check=True).stdout.strip()
    os.chdir(work)
    with open("own.yaml", "w") as f:
        f.write('weir: 1\nname: own\nstages:\n  work: { use: delay, with: { time: 1ms }, threads: { max: 2 } }\n')
    check(verbs_with_admin() - {"bench", "simulate"} == set(VERBS), f"verbs that talk to a server: {verbs_with_admin()}")
    for test in (test_evil, test_refusals, test_rubbish, test_dribble, test_options, test_top_screen, test_source):
        test()
    subprocess.run(["rm", "-r", work], check=True)
    print(f"{checks} checks, {len(failures)} failed")
    sys.exit(1 if failures else 0)


main()
