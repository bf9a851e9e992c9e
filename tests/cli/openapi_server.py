# SPDX-License-Identifier: MIT
"""A server for openapi.py: its process, requests to it, load on it, and a watcher of its events."""
import http.client
import os
import re
import subprocess
import tempfile
import threading
import time

from openapi_document import parse

PATIENCE_S = 60
JSON = {"Content-Type": "application/json"}


class Wrong(Exception):
    """The server or the document is wrong."""


failures = []
checks = 0


def check(good, what):
    global checks
    checks += 1
    if not good:
        failures.append(what)
        print("FAILED", what, flush=True)


def result():
    """Prints the result and returns the exit code."""
    print(f"{checks} checks, {len(failures)} failed")
    return 1 if failures or not checks else 0


class Server:
    """A server process, its admin endpoint, and the requests sent to it."""

    def __init__(self, program, yaml, cwd, env=None):
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([program, "run", yaml], cwd=cwd, env=dict(os.environ, **(env or {})),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.admin = self.web = self.tls = None
        self.document = None
        self.seen = set()   # (method, path, status)
        self.bodies = {}    # the last body for each of these
        for line in self.process.stdout:
            port = re.search(r"(https?)://127\.0\.0\.1:(\d+)", line)
            if port and "admin http://" in line:
                self.admin = int(port[2])
                break
            if port:
                self.web, self.tls = int(port[2]), port[1] == "https"
        if not self.admin or not self.web:
            self.process.kill()
            raise Wrong(f"{yaml} did not start: {self.said()}")

    def said(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")[-2000:]

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()

    def raw(self, method, target, body=None, headers=None):
        """(status, Content-Type, body, Allow)"""
        c = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=PATIENCE_S)
        try:
            c.request(method, target, body=body.encode() if isinstance(body, str) else body, headers=headers or {})
            r = c.getresponse()
            return r.status, r.headers.get("Content-Type", ""), r.read(), r.headers.get("Allow", "")
        finally:
            c.close()

    def ask(self, method, path, want, query="", body=None, headers=None, **names):
        """One request to a path of the document. `want` is a status, or several in a tuple.

        Returns the body, parsed when it is JSON.
        """
        target = path.format(**names) + (f"?{query}" if query else "")
        what = f"{method} {target} {(body or '')[:60]}"
        if method not in ("GET", "HEAD"):
            headers = JSON if headers is None else headers
        status, media, got, _ = self.raw(method, target, body, headers)
        check(status in (want if isinstance(want, tuple) else (want,)), f"{what}: {status} instead of {want}: {got[:300]}")
        wrong = self.document.answer_errors(method, path, status, media, got)
        check(not wrong, f"{what}: {status}: {wrong}")
        if method in ("PUT", "POST"):
            wrong = self.document.body_errors(method, path, body)
            check(status != 200 or not wrong, f"{what}: accepted, but not documented: {wrong}")
            check(status != 400 or wrong, f"{what}: documented, but refused with 400")
        self.seen.add((method, path, status))
        self.bodies[method, path, status] = (media, got)
        return parse(got) if media.startswith("application/") and got else got.decode()

    def until(self, condition, what):
        """Polls until `condition` holds."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if condition():
                return
            time.sleep(0.02)
        raise Wrong(f"this never happened: {what}")


class Load:
    """Clients that send the next request as soon as they have a response."""

    def __init__(self, server, clients=12):
        self.server = server
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True) for i in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self, i):
        path = ("/vip", "/x", "/x", "/old")[i % 4]
        while not self.over.is_set():
            try:
                c = http.client.HTTPConnection("127.0.0.1", self.server.web, timeout=PATIENCE_S)
                while not self.over.is_set():
                    c.request("GET", path)
                    c.getresponse().read()
                    self.over.wait(0.001)
            except (OSError, http.client.HTTPException):
                self.over.wait(0.01)  # /old is dropped and its connection closed
            finally:
                c.close()

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(PATIENCE_S)


class Watcher(threading.Thread):
    """Reads one stream until it has seen each of `kinds`, or PATIENCE_S is over."""

    def __init__(self, server, query, kinds):
        super().__init__(daemon=True)
        self.server, self.query, self.kinds = server, query, set(kinds)
        self.greeted = threading.Event()
        self.wrong = "the stream did not begin"
        self.start()
        if not self.greeted.wait(PATIENCE_S):
            raise Wrong("no hello event arrived")

    def run(self):
        try:
            self.wrong = self.read()
        except (OSError, ValueError, Wrong) as e:
            self.wrong = repr(e)
        self.greeted.set()

    def read(self):
        server, document = self.server, self.server.document
        answer = document.paths["/events"]["get"]["responses"]["200"]
        c = http.client.HTTPConnection("127.0.0.1", server.admin, timeout=PATIENCE_S)
        try:
            c.request("GET", f"/events?{self.query}", headers={} if "last=" in self.query else {"Last-Event-ID": "0"})
            r = c.getresponse()
            media = r.headers["Content-Type"]
            if r.status != 200 or media not in answer["content"]:
                return f"{r.status} {media}"
            server.seen.add(("GET", "/events", 200))
            end = time.monotonic() + PATIENCE_S
            fields, first = {}, True
            while self.kinds and time.monotonic() < end:
                line = r.readline().decode()
                if not line:
                    return "the stream ended"
                line = line.rstrip("\n")
                if line and not line.startswith(":"):
                    key, _, value = line.partition(": ")
                    fields[key] = value
                if line or "event" not in fields:
                    continue
                kind = fields["event"]
                if first and kind != "hello":
                    return f"{kind} before hello"
                first = False
                if kind not in answer["x-events"]:
                    return f"{kind} is not documented"
                wrong = document.errors_of(parse(fields["data"]), answer["x-events"][kind])
                if wrong or not fields["id"].isdigit():
                    return f"{kind} {fields['id']}: {wrong}"
                self.kinds.discard(kind)
                self.greeted.set()
                fields = {}
            return f"never arrived: {self.kinds}" if self.kinds else ""
        finally:
            c.close()

    def end(self):
        self.join(PATIENCE_S + 10)
        check(not self.wrong, f"/events?{self.query}: {self.wrong}")
