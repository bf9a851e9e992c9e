#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random operations in random order, while clients send valid, slow and malformed requests.

usage: operators.py WEIR [--seed N] [--seconds S] [--clients N] [--plugin stubborn.so]

A server runs with a random configuration. Two operators call every verb that talks to a server, in
random order and with random operands, reload random edits of the file, valid and invalid ones, and
send SIGHUP and SIGUSR1. At a random time the server gets one to three signals to end, and the next
one starts. Clients send pipelines of requests, uploads, random bytes and half requests, in clear
text and over TLS, read slowly, or disconnect. With the plug-in (tests/cli/stubborn.c) some handlers
do not return for a while.

Whatever the operators do, every 200 response has the right body. The server never ends by itself,
and ends within 60 s of its signals with exit code 0 or 1. Its counters are right, no sanitizer or
assertion reports anything, and no verb hangs or crashes. The same seed gives the same operations,
but not the same interleaving.
"""
import argparse
import hashlib
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

HANG_S = 60  # only ends a server or verb that hangs
FILES = {"empty": 0, "one": 1, "page": 16000, "edge": 65536, "long": 300000, "large": 3000000}
CONTENT = {name: random.Random(name).randbytes(n) for name, n in FILES.items()}
BAD_LOG = re.compile(r"Sanitizer|runtime error|ssert|a bug in weir|counters are off by -?[1-9]|never ended|stack smashing")
failures = []


def fail(what):
    failures.append(what)
    print("FAILED:", what, file=sys.stderr, flush=True)


# ---- configurations ----

def threads_of(rng):
    return rng.choice(("inline", "1", "2", "{ min: 1, max: 4 }", "{ min: auto, max: 4 }", "{ min: 2, max: 2, policy: static }"))


def web_with(rng):
    rows = ['listen: "127.0.0.1:0"', f"threads: {rng.choice((1, 2, 3))}"]
    some = [f"pipeline: {rng.choice((1, 2, 16))}", f"memory: {rng.choice(('8MiB', '64MiB', 'auto'))}", "stream: 64KiB", "max_body: 4MiB",
            f"keep_alive_requests: {rng.choice((0, 1, 5))}", f"linger: {rng.choice(('0ms', '50ms'))}",
            f"max_connections: {rng.choice((4, 40, 1000))}", f"max_per_address: {rng.choice((0, 3))}", "accept_rate: 500",
            "header_timeout: 500ms", "body_timeout: 500ms", "write_timeout: 500ms", "idle_timeout: 200ms", "user: address",
            "methods: [QUERY]", "server_name: x", "deadline: slo"]
    return ", ".join(rows + rng.sample(some, rng.randrange(0, 6)))


def policy(rng):
    names = ("none", "weir", "threshold", "codel", "rate", "dagor", "gradient2", "seda_rt")
    name = rng.choice(names)
    return f"admission: {{ policy: {name}{', rate: 500' if name == 'rate' else ''} }}, queue: {{ limit: {rng.choice((1, 10, 1000))} }}"


def config(rng, folder, plugin):
    cached = rng.random() < 0.7
    log = rng.random() < 0.5
    classes = rng.choice(("", "classes: { vip: { match: { path: /one }, slo: 100ms }, rest: { slo: 1s } }\n",
                          "classes: { late: { match: { path: '/late/*' } }, named: { match: { host: named } }, rest: {} }\n"))
    late = rng.choice(("delay, with: { time: 2ms }", "delay, with: { dist: exp, time: 20ms }", "burn, with: { time: 1ms }"))
    second = rng.random() < 0.3
    tls = f"tls: {{ cert: {folder}/site.pem, key: {folder}/site.key, min_version: '{rng.choice(('1.2', '1.3'))}' }}"
    parts = [
        f'weir: 1\nname: {rng.choice(("one", "two"))}\nadmin: {{ listen: "127.0.0.1:0" }}\n',
        f"plugin: {plugin}\n" if plugin else "",
        f"drain: {{ grace: {rng.choice(('100ms', '2s'))}, old: {rng.choice(('0s', '0s', '100ms', '2s', '10m'))} }}\n{classes}stages:\n",
        f"  web: {{ use: http.server, with: {{ {web_with(rng)} }}, to: {{ request: {'log' if log else 'route'} }} }}\n",
        f"  log: {{ use: access_log, with: {{ file: {folder}/access.log }}, to: route, threads: inline }}\n" if log else "",
        f"  tls: {{ use: http.server, with: {{ {web_with(rng)}, {tls} }}, to: {{ request: route, handshake: shake }} }}\n",
        "  shake: { use: tls.handshake }\n",
        f"  other: {{ use: http.server, with: {{ {web_with(rng)} }}, to: {{ request: route }} }}\n" if second else "",
        "  route: { use: router, with: { routes: [ { path: /sum, to: sum }, { path: /mirror, to: mirror }, "
        f"{{ path: '/late/*', to: late }}, {{ path: '/hang/*', to: hang }} ] }}, to: {{ sum: digest, mirror: mirror, late: late, "
        f"hang: {'hang' if plugin else 'strip'}, else: {'cache' if cached else 'disk'} }}, "
        f"threads: {rng.choice(('inline', '1'))} }}\n",
        f"  digest: {{ use: digest, threads: {threads_of(rng)} }}\n  mirror: {{ use: mirror, threads: {threads_of(rng)} }}\n",
        f"  late: {{ use: {late}, threads: {rng.choice(('1', '2', '{ min: 1, max: 8 }'))}, {policy(rng)}, to: {{ out: strip }} }}\n",
        f"  hang: {{ use: stubborn, with: {{ body: late }}, threads: {rng.choice(('inline', 'inline', '3'))} }}\n" if plugin else "",
        f"  strip: {{ use: respond, with: {{ body: late }}, threads: {rng.choice(('inline', '1'))} }}\n",
        f"  cache: {{ use: file.cache, with: {{ max_object: {rng.choice(('0', '32KiB', '4MiB'))}, "
        f"revalidate: {rng.choice(('1ms', '1s'))} }}, threads: inline, to: {{ miss: disk }} }}\n" if cached else "",
        f"  disk: {{ use: file.read, with: {{ root: {folder}/www, etag: {rng.choice(('local', 'portable'))} }}, "
        f"threads: {rng.choice(('1', '2'))}, {policy(rng)} }}\n"]
    return "".join(parts)


def spoil(rng, text):
    """`text` with a fault: a file that is refused, or at least odd."""
    how = rng.randrange(5)
    at = rng.randrange(len(text))
    if how == 0:
        return text[:at]
    if how == 1:
        return text[:at] + rng.choice("{}[]:,\x00\t\"'&*-") + text[at:]
    if how == 2:
        return text.replace("use: ", "use: x", 1)
    if how == 3:
        return text.replace("to: {", "to: { nowhere: nobody,", 1)
    lines = text.split("\n")
    del lines[rng.randrange(len(lines))]
    return "\n".join(lines)


# ---- clients ----

def expected(rng):
    """A request, and the body of a 200 response to it."""
    kind = rng.randrange(6)
    name = rng.choice(list(FILES))
    if kind < 3:
        return f"GET /{name} HTTP/1.1\r\nHost: {rng.choice(('t', 'named', 'T.'))}\r\n\r\n".encode(), CONTENT[name]
    if kind == 3:
        return f"GET /late/{rng.randrange(99)} HTTP/1.1\r\nHost: t\r\n\r\n".encode(), b"late"
    body = rng.randbytes(int(10 ** rng.uniform(0, 5.3)))
    target, answer = rng.choice((("/sum", hashlib.sha256(body).hexdigest().encode() + b"\n"), ("/mirror", body)))
    if rng.random() < 0.5:
        n = 1 + rng.randrange(20000)
        coded = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + n]), body[i:i + n]) for i in range(0, len(body), n)) + b"0\r\n\r\n"
        return f"POST {target} HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n".encode() + coded, answer
    return f"POST {target} HTTP/1.1\r\nHost: t\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body, answer


class Gone(Exception):
    pass


class Reader:
    def __init__(self, sock):
        self.sock, self.got = sock, b""

    def more(self):
        data = self.sock.recv(65536)
        if not data:
            raise Gone
        self.got += data

    def upto(self, mark):
        while mark not in self.got:
            self.more()
        line, self.got = self.got.split(mark, 1)
        return line

    def take(self, n):
        while len(self.got) < n:
            self.more()
        data, self.got = self.got[:n], self.got[n:]
        return data

    def answer(self):
        head = self.upto(b"\r\n\r\n")
        while head.startswith(b"HTTP/1.1 100"):
            head = self.upto(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        body = b""
        length = re.search(rb"(?im)^Content-Length: (\d+)", head)
        if re.search(rb"(?im)^Transfer-Encoding: chunked", head):
            while (n := int(self.upto(b"\r\n"), 16)) > 0:
                body += self.take(n)
                self.take(2)
            while self.upto(b"\r\n"):
                pass
        elif length:
            body = self.take(int(length[1]))
        return status, body, bool(re.search(rb"(?im)^Connection: close", head))


def hang_client(rng, sock, folder):
    """A handler waits for a file, which is created at once or some time later."""
    name = f"hang{rng.randrange(10 ** 9)}"
    sock.sendall(f"GET /hang/{name} HTTP/1.1\r\nHost: t\r\n\r\n".encode())
    time.sleep(rng.choice((0, 0.1, 1, 5, 7)))
    with open(f"{folder}/{name}", "w"):
        pass
    Reader(sock).answer()


def good_client(rng, sock):
    wanted = [expected(rng) for _ in range(rng.randrange(1, 6))]
    sender = threading.Thread(target=send_all, args=(sock, b"".join(text for text, _ in wanted)), daemon=True)
    sender.start()
    reader = Reader(sock)
    slow = rng.random() < 0.2
    good = 0
    try:
        for text, body in wanted:
            if slow:
                time.sleep(rng.uniform(0, 0.3))
            status, got, closes = reader.answer()
            if status == 200 and got != body:
                fail(f"{text[:60]!r} got {len(got)} bytes instead of its {len(body)}: {got[:60]!r}")
            if status not in (200, 400, 404, 408, 413, 500, 503, 504):
                fail(f"{text[:60]!r} got {status}")
            if status in (400, 404):
                fail(f"{text[:60]!r} got {status}: {got[:80]!r}")
            good += status == 200
            if closes:
                break
        return good
    finally:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        sender.join()


def send_all(sock, data):
    try:
        sock.sendall(data)
    except OSError:
        pass


def bad_client(rng, sock):
    text = bytearray(expected(rng)[0])
    how = rng.randrange(6)
    if how == 0:
        text = bytearray(rng.randbytes(rng.randrange(1, 3000)))
    elif how == 1:
        del text[rng.randrange(1, len(text)):]
    elif how == 2:
        for _ in range(rng.randrange(1, 9)):
            text[rng.randrange(min(len(text), 200))] = rng.randrange(256)
    elif how == 3:
        path = "".join(rng.choice(("/", ".", "..", "%2e", "%2F", "%5c", "%00", "a", "//", ";", "%25", "?", "%")) for _ in range(20))
        text = bytearray(f"{rng.choice(('GET', 'OPTIONS', 'CONNECT', 'QUERY'))} {rng.choice(('', '/', 'http://t', '*'))}{path} HTTP/1.1\r\n"
                         f"Host: {rng.choice(('t', 'T.', 't:80', '[::1]', 't:', 'a b', ''))}\r\n\r\n".encode())
    elif how == 4:
        text += bytes(text[:rng.randrange(len(text))])
    sock.sendall(bytes(text))
    if how == 5:  # a client that reads nothing
        time.sleep(rng.uniform(0, 2))
    elif rng.random() < 0.5:
        sock.settimeout(0.3)
        while sock.recv(65536):
            pass


class Clients:
    def __init__(self, rng, n, folder, plugin):
        self.ports, self.over, self.folder, self.plugin, self.good = [], False, folder, plugin, 0
        self.tls = ssl.create_default_context(cafile=f"{folder}/site.pem")
        self.tls.check_hostname = False
        self.threads = [threading.Thread(target=self.run, args=(random.Random(rng.random()),)) for _ in range(n)]
        for t in self.threads:
            t.start()

    def run(self, rng):
        while not self.over:
            ports = self.ports
            if not ports:
                time.sleep(0.01)
                continue
            try:
                port, tls = rng.choice(ports)
                with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
                    if not tls:
                        self.speak(rng, sock)
                    elif rng.random() < 0.1:
                        bad_client(rng, sock)
                    else:
                        with self.tls.wrap_socket(sock) as secure:
                            self.speak(rng, secure)
            except (OSError, Gone, ValueError):
                pass

    def speak(self, rng, sock):
        if self.plugin and rng.random() < 0.1:
            hang_client(rng, sock, self.folder)
        elif rng.random() < 0.6:
            self.good += good_client(rng, sock)
        else:
            bad_client(rng, sock)

    def end(self):
        self.over = True
        for t in self.threads:
            t.join()


# ---- operators ----

STAGES = ("web", "tls", "shake", "hang", "route", "digest", "mirror", "late", "strip", "cache", "disk", "log", "none")
KNOBS = ("queue.limit=1", "queue.limit=500", "threads.min=1", "threads.max=3", "threads.max=0", "with.max_connections=5",
         "with.memory=1MiB", "with.revalidate=5ms", "with.time=1ms", "admission.rate=10", "admission.threshold=50%", "batch.max=3",
         "with.idle_timeout=100ms", "with.pipeline=1", "nothing=1", "threads.start=2", "slo=5ms")


def act(rng, admin):
    """A random verb with its arguments."""
    stage = rng.choice(STAGES)
    knob = rng.choice(KNOBS)
    verbs = [["reload"], ["reload", "--dry-run"], ["ps"], ["ps", "-o", "json"], ["why"], ["why", stage], ["overload"],
             ["overload", rng.choice(("on", "off", "watch", "x"))], ["show", stage], ["queue", stage], ["top", "-n", "1"], ["trace"],
             ["tap", stage, "-n", "3", "--for", "200ms"], ["log"], ["snapshot", f"page{rng.randrange(3)}.html"],
             ["set", f"{stage}.{knob}"], ["set", f"{stage}.{knob}", "--for", "300ms"], ["unset", f"{stage}.{knob.split('=')[0]}"],
             ["undo"], ["pause", stage], *[["resume", s] for s in rng.sample(STAGES, 4)], ["drain", stage], ["diff", "server.yaml"], ["save", "server.yaml", "--dry-run"]]
    return [*rng.choice(verbs), "--admin", admin]


class Operators:
    def __init__(self, weir, server, rng, folder, plugin):
        self.weir, self.server, self.folder, self.plugin, self.over, self.count = weir, server, folder, plugin, False, 0
        self.threads = [threading.Thread(target=self.run, args=(random.Random(rng.random()),)) for _ in range(2)]
        for t in self.threads:
            t.start()

    def run(self, rng):
        while not self.over:
            if rng.random() < 0.4:
                text = config(rng, self.folder, self.plugin)
                text = spoil(rng, text) if rng.random() < 0.25 else text
                path = f"{self.folder}/new{threading.get_ident()}"
                with open(path, "w") as f:
                    f.write(text)
                os.rename(path, f"{self.folder}/server.yaml")
            if rng.random() < 0.1:
                self.server.process.send_signal(rng.choice((signal.SIGHUP, signal.SIGUSR1)))
                continue
            args = act(rng, self.server.admin)
            try:
                p = subprocess.run([self.weir, *args], cwd=self.folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=HANG_S)
                self.count += 1
                if p.returncode not in (0, 1, 2, 3) or BAD_LOG.search(p.stderr.decode("utf-8", "replace")):
                    fail(f"weir {' '.join(args)}: {p.returncode}: {p.stderr[-3000:]!r}")
            except subprocess.TimeoutExpired:
                fail(f"weir {' '.join(args)} hangs")

    def end(self):
        self.over = True
        for t in self.threads:
            t.join()


# ---- servers ----

class Server:
    def __init__(self, weir, folder):
        self.log = open(f"{folder}/log", "wb")
        self.folder, self.admin, self.ports = folder, None, []
        # A third signal ends the process with threads still running.
        env = dict(os.environ, TSAN_OPTIONS=os.environ.get("TSAN_OPTIONS", "") + ":report_thread_leaks=0")
        self.process = subprocess.Popen([weir, "run", "server.yaml"], cwd=folder, stdout=subprocess.PIPE, stderr=self.log,
                                        stdin=subprocess.DEVNULL, env=env)
        watch = threading.Timer(HANG_S, self.process.kill)
        watch.start()
        for line in self.process.stdout:
            found = re.search(r"https?://[\d.]+:(\d+)/", line.decode())
            if found and b"admin" in line:
                self.admin = found[0]
                break
            if found:
                self.ports.append((int(found[1]), b"https" in line))
        watch.cancel()

    def end(self, rng):
        before = self.process.poll()
        if before is not None:
            fail(f"the server ended by itself: {before}")
        for _ in range(rng.choice((1, 1, 2, 3))):
            self.process.send_signal(rng.choice((signal.SIGTERM, signal.SIGINT)))
            time.sleep(rng.choice((0, 0.01, 0.3)))
        try:
            rc = self.process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            fail("the server does not end")
            self.process.send_signal(signal.SIGABRT)
            rc = self.process.wait()
        self.process.stdout.close()
        self.log.close()
        with open(f"{self.folder}/log", "rb") as f:
            log = f.read().decode("utf-8", "replace")
        found = BAD_LOG.search(log)
        if rc not in (0, 1) or found:
            at = found.start() if found else len(log)
            fail(f"exit {rc}: {log[max(0, at - 500):at + 6000]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--plugin")
    args = parser.parse_args()
    weir = os.path.abspath(args.weir)
    rng = random.Random(args.seed)
    folder = tempfile.mkdtemp(prefix="weir-operators-")
    os.mkdir(f"{folder}/www")
    for name, data in CONTENT.items():
        with open(f"{folder}/www/{name}", "wb") as f:
            f.write(data)
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                    "/CN=t", "-addext", "subjectAltName=DNS:t", "-keyout", f"{folder}/site.key", "-out", f"{folder}/site.pem"],
                   check=True, capture_output=True)
    plugin = os.path.abspath(args.plugin) if args.plugin else None
    end, rounds, acts = time.monotonic() + args.seconds, 0, 0
    clients = Clients(rng, args.clients, folder, plugin)
    while time.monotonic() < end and not failures:
        rounds += 1
        while True:  # some random configurations are invalid
            with open(f"{folder}/server.yaml", "w") as f:
                f.write(config(rng, folder, plugin))
            if subprocess.run([weir, "check", f"{folder}/server.yaml"], capture_output=True, timeout=HANG_S).returncode == 0:
                break
        server = Server(weir, folder)
        if server.admin is None:
            with open(f"{folder}/log") as f:
                fail(f"the server does not start: {f.read()[-2000:]}")
            break
        clients.ports = server.ports
        operators = Operators(weir, server, rng, folder, plugin)
        time.sleep(min(rng.choice((0.2, 1, 5, 15)), max(0.2, end - time.monotonic())))
        late = rng.random() < 0.5  # operators continue while the server ends
        if not late:
            operators.end()
        server.end(rng)
        if late:
            operators.end()
        clients.ports = []
        acts += operators.count
    clients.end()
    if failures:
        print(f"seed {args.seed}, round {rounds}; the files are kept in {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    print(f"{rounds} servers, {acts} verbs, {clients.good} good responses, {len(failures)} failures")
    if not clients.good:
        failures.append("no client got a good response")
    sys.exit(1 if failures else 0)


main()
