#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Honest clients behind a bad network (chaos_proxy.py): no client gets a wrong response, and the
server keeps nothing.

usage: chaos.py WEIR [--seed N] [--clients N] [--seconds S] [--only K]

Each client sends a pipeline of requests, each with a response of its own: files from memory and
from disk, parts of them, HEAD, missing files, uploads answered with their SHA-256, and uploads that
are echoed. Bodies have a length or are chunked, and are larger or smaller than `stream:`. Some
responses are late on purpose, so that they do not become ready in order. Half of the clients use
TLS.

Where the network only splits, delays and gathers, every response must arrive whole, with nothing
after the last one. Where it ends a connection, the bytes received must be the beginning of that
sequence. When all clients have gone, the server must have no connections, no events and no counted
memory, and no more descriptors than before. It must not have served more requests than were sent,
and the laws of its stages must hold.

Client `k` of seed `s` is always the same: --only K plays it alone. --seconds continues with further
clients for that long and checks what the server holds after every --clients (240). A failure names
the client.
"""
import argparse
import hashlib
import os
import random
import re
import select
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

sys.dont_write_bytecode = True
import chaos_proxy  # noqa: E402
import servers  # noqa: E402

# Only ends tests that hang.
HANG_S = 120
THREADS = 8
REQUESTS_MOST = 12
FILES = {"empty": 0, "one": 1, "small": 1000, "page": 16000, "edge": 65536, "long": 300000, "large": 2000000}
# No time-out may end a connection here, however slow the host is.
PATIENT = "header_timeout: 10m, body_timeout: 10m, write_timeout: 10m, idle_timeout: 10m, min_body_rate: 0, min_send_rate: 0"
YAML = """weir: 1
name: chaos
admin: {{ listen: "127.0.0.1:0" }}
stages:
  web: {{ use: http.server, with: {{ listen: "127.0.0.1:{plain}", {common} }}, to: {{ request: route }} }}
  tls:
    use: http.server
    with: {{ listen: "127.0.0.1:{tls}", {common}, tls: {{ cert: site.pem, key: site.key }} }}
    to: {{ request: route, handshake: shake }}
  shake: {{ use: tls.handshake }}
  route:
    use: router
    with: {{ routes: [{{ path: /sum, to: sum }}, {{ path: /mirror, to: mirror }}, {{ path: "/late/*", to: late }}] }}
    to: {{ sum: digest, mirror: mirror, late: late, else: cache }}
    threads: inline
  digest: {{ use: digest, threads: 2 }}
  mirror: {{ use: mirror, threads: 2 }}
  late: {{ use: delay, with: {{ dist: exp, time: 2ms }}, threads: 2, to: {{ out: cache }} }}
  cache: {{ use: file.cache, with: {{ root: www, max_object: 64KiB }}, threads: inline, to: {{ miss: disk }} }}
  disk: {{ use: file.read, with: {{ root: www }}, threads: 2 }}
"""


def content(name):
    return random.Random(name).randbytes(FILES[name])


CONTENT = {name: content(name) for name in FILES}


class Expected:
    """The response to request `text`: status and body. Body None: any body of the announced length."""

    def __init__(self, text, status, body, head=False):
        self.text, self.status, self.body, self.head = text, status, body, head


# ---- requests ----

def request(method, target, fields=(), body=b""):
    lines = ["%s %s HTTP/1.1" % (method, target), "Host: chaos", *fields]
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def get_file(rng, close):
    name, late = rng.choice(list(FILES)), rng.choice(("", "", "late/"))
    return Expected(request("GET", "/%s%s" % (late, name), close), 200, CONTENT[name])


def get_part(rng, close):
    name = rng.choice([n for n in FILES if FILES[n] > 1])
    begin = rng.randrange(FILES[name])
    end = rng.randrange(begin, FILES[name])
    return Expected(request("GET", "/" + name, ["Range: bytes=%d-%d" % (begin, end), *close]), 206, CONTENT[name][begin:end + 1])


def head_file(rng, close):
    name = rng.choice(list(FILES))
    return Expected(request("HEAD", "/" + name, close), 200, b"", head=True)


def get_nothing(rng, close):
    return Expected(request("GET", "/none/%d" % rng.randrange(1000), close), 404, None)


def chunked(rng, body):
    out, at = bytearray(), 0
    while at < len(body):
        n = 1 + rng.randrange(rng.choice((10, 1000, 40000)))
        out += b"%x\r\n%s\r\n" % (len(body[at:at + n]), body[at:at + n])
        at += n
    return bytes(out) + b"0\r\n\r\n"


def upload(rng, close):
    body = rng.randbytes(int(10 ** rng.uniform(0, 5.5)))
    target, answer = rng.choice((("/sum", hashlib.sha256(body).hexdigest().encode() + b"\n"), ("/mirror", body)))
    if rng.random() < 0.5:
        text = request("POST", target, ["Transfer-Encoding: chunked", *close], chunked(rng, body))
    else:
        text = request("POST", target, ["Content-Length: %d" % len(body), *close], body)
    return Expected(text, 200, answer)


def pipeline(rng):
    n = 1 + rng.randrange(REQUESTS_MOST)
    kinds = (get_file, get_file, get_part, head_file, get_nothing, upload, upload)
    return [rng.choice(kinds)(rng, ["Connection: close"] if i == n - 1 else []) for i in range(n)]


# ---- responses ----

class Wrong(Exception):
    pass


def unchunk(got, at):
    """The body that starts at `at`, and where it and its trailers end; -1 while they are incomplete."""
    body, n = bytearray(), -1
    while n != 0:
        end = got.find(b"\r\n", at)
        if end < 0:
            return bytes(body), -1
        if not re.fullmatch(rb"[0-9a-fA-F]+", got[at:end]):
            raise Wrong("chunk size %r" % bytes(got[at:end][:40]))
        n = int(got[at:end], 16)
        at = end + 2 + n
        body += got[end + 2:at]
        if n > 0 and len(got) >= at + 2:
            if got[at:at + 2] != b"\r\n":
                raise Wrong("a chunk without its final CRLF")
            at += 2
        elif n > 0:
            return bytes(body), -1
    end = got.find(b"\r\n\r\n", at - 2)
    if end >= 0 and got[at:end + 2] not in (b"", b"X-Bytes: %d\r\n" % len(body)):
        raise Wrong("trailers %r" % bytes(got[at:end + 2][:60]))
    return bytes(body), end + 4 if end >= 0 else -1


def read_body(head, got, at, expected):
    if expected.head:
        return b"", at
    if b"\r\ntransfer-encoding: chunked\r\n" in head:
        return unchunk(got, at)
    length = re.search(rb"\r\ncontent-length: (\d+)\r\n", head)
    if not length:
        raise Wrong("no length in %r" % bytes(head[:200]))
    n = int(length.group(1))
    return bytes(got[at:at + n]), at + n if len(got) >= at + n else -1


def read_one(got, at, expected):
    """Where the response at `at` ends; -1 while it is incomplete."""
    start = b"HTTP/1.1 %d " % expected.status
    if got[at:at + len(start)] != start[:len(got) - at]:
        raise Wrong("%r instead of status %d for %r" % (bytes(got[at:at + 60]), expected.status, expected.text[:60]))
    end = got.find(b"\r\n\r\n", at)
    if end < 0:
        return -1
    body, at = read_body(got[at:end + 2].lower(), got, end + 4, expected)
    if expected.body is not None and (body != expected.body if at >= 0 else not expected.body.startswith(body)):
        raise Wrong("the response to %r has a wrong body" % expected.text[:60])
    return at


def read_all(got, script, torn):
    """The number of complete responses. Raises Wrong when `got` is not a prefix of all of them.

    `torn`: the server may have received half a request and then the end of the connection, and may
    answer that with 400 as its last response.
    """
    at = 0
    for i, expected in enumerate(script):
        if at == len(got):
            return i
        if torn and got[at:at + 13] == b"HTTP/1.1 400 ":
            script = script[:i] + [Expected(expected.text, 400, None)]
            read_all(got[at:], script[i:], False)
            return i
        at = read_one(got, at, expected)
        if at < 0:
            return i
    if at != len(got):
        raise Wrong("%d bytes after the last response: %r" % (len(got) - at, bytes(got[at:at + 60])))
    return len(script)


# ---- a client ----

AGAIN = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def again(call, *args):
    try:
        return call(*args)
    except AGAIN:
        return None


def exchange(sock, out, tls):
    """Sends `out` and reads until the connection ends in any way.

    Returns everything received; None when the connection did not end.
    """
    got, at, until = bytearray(), 0, time.monotonic() + HANG_S
    sock.setblocking(False)
    try:
        if tls:
            sock = tls.wrap_socket(sock, do_handshake_on_connect=False, server_hostname="localhost")
        while time.monotonic() < until:
            part = again(sock.recv, 1 << 16)
            if part is not None:
                if not part:
                    return got
                got += part
            sent = again(sock.send, out[at:at + 16384]) if at < len(out) else None
            at += sent or 0
            if part is None and sent is None:
                select.select([sock], [sock] if at < len(out) else [], [], 1)
        return None
    except OSError:  # reset, or truncated TLS
        return got
    finally:
        sock.close()


class Round:
    def __init__(self, server, proxy, seed, first, n):
        self.server, self.proxy, self.seed = server, proxy, seed
        self.lock, self.next, self.until = threading.Lock(), first, first + n
        self.answers = self.requests = self.whole = self.cut = 0
        self.failures = []

    def take(self):
        with self.lock:
            self.next += 1
            return self.next - 1 if self.next <= self.until else None

    def play(self, k):
        rng, plan = random.Random("%s/%s/requests" % (self.seed, k)), chaos_proxy.Plan(self.seed, k)
        script, tls = pipeline(rng), rng.random() < 0.5
        sock, link = self.proxy.connect(plan, self.server.port["tls" if tls else "web"])
        got = exchange(sock, b"".join(e.text for e in script), self.server.trust if tls else None)
        link.join(HANG_S)
        try:
            if got is None or link.is_alive():
                raise Wrong("the connection did not end")
            n = read_all(got, script, link.ended and plan.end == "half" and plan.way == "up")
            if n < len(script) and not link.ended:
                raise Wrong("%d responses of %d, but the network did not end the connection" % (n, len(script)))
        except Wrong as e:
            n = 0
            with self.lock:
                self.failures.append("client %d (%s, %s): %s" % (k, "TLS" if tls else "plain", plan, e))
        with self.lock:
            self.answers, self.requests = self.answers + n, self.requests + len(script)
            self.whole, self.cut = self.whole + (n == len(script)), self.cut + (n < len(script))

    def work(self):
        k = self.take()
        while k is not None:
            self.play(k)
            k = self.take()

    def run(self):
        threads = [threading.Thread(target=self.work) for _ in range(THREADS)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.frozen = self.proxy.thaw()


# ---- the server ----

class Server(servers.Servers):
    def begin(self):
        for part in ("www", "www/late"):
            os.mkdir(os.path.join(self.folder, part))
            for name in FILES:
                with open(os.path.join(self.folder, part, name), "wb") as f:
                    f.write(CONTENT[name])
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
             "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", "site.key", "-out", "site.pem"],
            cwd=self.folder, check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.trust = ssl.create_default_context(cafile=os.path.join(self.folder, "site.pem"))
        self.port["tls"] = servers.free_port()
        port = servers.free_port()
        common = "stream: 16KiB, max_body: 1MiB, max_per_address: 0, " + PATIENT
        self.start("web", [self.weir, "run", "CONF"], YAML.format(plain=port, tls=self.port["tls"], common=common), port)
        self.admin = self.await_said("web", r"admin (http://\S+)").group(1).rstrip("/")
        self.warm()
        self.files = self.await_same()

    def warm(self):
        """Requests everything once, so that threads, caches with their open files, and sessions exist."""
        for scheme, port in (("http", "web"), ("https", "tls")):
            for name in [*FILES, *("late/" + name for name in FILES)]:
                url = "%s://127.0.0.1:%d/%s" % (scheme, self.port[port], name)
                urllib.request.urlopen(url, context=self.trust if port == "tls" else None, timeout=HANG_S).read()
        self.await_nothing(None)

    def await_same(self):
        """The number of its descriptors, once the connections of our last requests are closed."""
        seen = [self.descriptors()]
        while len(seen) < 10 or len(set(seen[-10:])) > 1:
            time.sleep(0.02)
            seen.append(self.descriptors())
        return seen[-1]

    def metrics(self, where=""):
        """{name: sum of the absolute values of the metrics whose lines contain `where`}"""
        text, found = urllib.request.urlopen(self.admin + "/metrics", timeout=HANG_S).read().decode(), {}
        for line in text.splitlines():
            if not line.startswith("#") and where in line:
                name, value = re.split(r"[ {]", line, 1)[0], float(line.rsplit(" ", 1)[1])
                found[name] = found.get(name, 0) + abs(value)
        return found

    def served(self):
        """The number of requests that entered the graph."""
        return self.metrics('stage="route"')["weir_stage_events_in_total"]

    def descriptors(self):
        """The number of descriptors, except those with which the server watches itself."""
        folder, n = "/proc/%d/fd" % self.processes["web"].pid, 0
        for fd in os.listdir(folder):
            try:
                n += not os.readlink(os.path.join(folder, fd)).startswith("/proc/")
            except OSError:  # closed in the meantime
                pass
        return n

    def rss_bytes(self):
        with open("/proc/%d/statm" % self.processes["web"].pid) as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def left(self, files):
        """{name: amount} of everything that the server still holds."""
        m = self.metrics()
        names = ("weir_http_connections", "weir_http_memory_bytes", "weir_http_stream_buffer_bytes", "weir_stage_in_flight",
                 "weir_stage_queue_length", "weir_stage_law_residual")
        left = {name: m[name] for name in names if m[name] != 0}
        if files is not None and self.descriptors() > files:
            left["descriptors"] = self.descriptors() - files
        return left

    def await_nothing(self, files):
        end = time.monotonic() + HANG_S
        left = self.left(files)
        while left and time.monotonic() < end:
            time.sleep(0.02)
            left = self.left(files)
        return left

    def stop(self):
        """The exit code: 0 after a normal end. Builds with sanitizers also report leaks and races."""
        self.processes["web"].terminate()
        return self.processes["web"].wait(HANG_S)


def play(server, a):
    proxy, first, failures = chaos_proxy.Proxy(), 1 if a.only is None else a.only, []
    n = a.clients if a.only is None else 1
    end = time.monotonic() + a.seconds
    while True:
        before = server.served()
        r = Round(server, proxy, a.seed, first, n)
        r.run()
        left = server.await_nothing(server.files)
        served = server.served() - before
        print("seed %s, clients %d to %d: %d requests, %d served, %d complete responses, %d connections ended early, %d frozen; "
              "RSS %.1f MB" % (a.seed, first, first + n - 1, r.requests, served, r.answers, r.cut, r.frozen,
                               server.rss_bytes() / 1e6), flush=True)
        failures += r.failures
        if left:
            failures.append("the server still holds: %s" % left)
        if not r.answers <= served <= r.requests and not r.failures:
            failures.append("%d served of %d sent, %d answered" % (served, r.requests, r.answers))
        first += n
        if failures or a.only is not None or time.monotonic() >= end:
            return failures


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("weir")
    p.add_argument("--seed", default="1")
    p.add_argument("--clients", type=int, default=240)
    p.add_argument("--seconds", type=float, default=0)
    p.add_argument("--only", type=int)
    a = p.parse_args()
    with Server(a.weir) as server:
        server.begin()
        failures = play(server, a)
        status = server.stop()
        if status != 0:
            failures.append("the server ended with %d:\n%s" % (status, server.log("web")))
    for failure in failures:
        print("FAILED: " + failure)
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
