#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A plug-in is replaced again and again under load: no request is lost, and each former version is unloaded.

  rounds.py PROGRAM SOURCE_DIR C_COMPILER [C_FLAGS] [--rounds N]

Three clients request pages all the time, each over one connection, one of them so slowly that the end of a page of
1 MB is sent by later graphs. Each round renames a new version into place and reloads. By hand, with a release build:

  tests/plugin/rounds/rounds.py build/release/weir . cc --rounds 1000
"""
import argparse
import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PAGE = re.compile(rb"version (\d{8})\n")


class Client(threading.Thread):
    """Requests pages until told to stop. `lost` has what went wrong."""

    def __init__(self, port, path, slow=False):
        super().__init__(daemon=True)
        self.port, self.path, self.slow = port, path, slow
        self.done, self.lost, self.newest = 0, [], -1
        self.stop = threading.Event()

    def connection(self):
        conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        if self.slow:
            conn.sock = socket.socket()
            conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            conn.sock.settimeout(120)
            conn.sock.connect(("127.0.0.1", self.port))
        else:
            conn.connect()
        return conn

    def one(self, conn):
        conn.request("GET", self.path)
        response = conn.getresponse()
        body = b""
        while part := response.read(65536 if self.slow else 1 << 21):
            body += part
            if self.slow:
                self.stop.wait(0.02)
        match = PAGE.match(body)
        if response.status != 200 or not match:
            raise ValueError(f"{response.status} {body[:80]!r}")
        if self.slow and (len(body) != 1 << 20 or body[17:].strip(b"\0")):
            raise ValueError(f"{len(body)} bytes")
        self.newest = max(self.newest, int(match[1]))
        self.done += 1

    def run(self):
        conn = self.connection()
        while not self.stop.is_set():
            try:
                self.one(conn)
            except (OSError, http.client.HTTPException, ValueError) as e:
                self.lost.append(repr(e))
                conn.close()
                if len(self.lost) > 20:
                    return
                conn = self.connection()


class Server:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.process = subprocess.Popen([program, "run", "page.yaml"], cwd=folder, stdout=subprocess.PIPE,
                                        stderr=open(f"{folder}/log", "w"), text=True)
        said = ""
        while "admin http" not in said:
            line = self.process.stdout.readline()
            if not line:
                sys.exit(f"the server did not start:\n{open(f'{folder}/log').read()}")
            said += line
        self.admin = re.search(r"admin (http://\S+)", said)[1]
        self.port = int(re.search(r": http://[\d.]+:(\d+)/", said)[1])

    def reload(self):
        """Reload, again if too many earlier graphs still send their pages."""
        while True:
            done = subprocess.run([self.program, "reload", "--admin", self.admin], capture_output=True, text=True)
            if done.returncode == 0:
                return
            if "too many earlier graphs" not in done.stderr + done.stdout:
                sys.exit(f"reload failed: {done.stdout}{done.stderr}\n{open(f'{self.folder}/log').read()}")
            time.sleep(0.05)

    def copies(self):
        """The number of plug-ins that are mapped."""
        with open(f"/proc/{self.process.pid}/maps") as maps:
            return len({line.split()[4] for line in maps if "memfd:page.so" in line})

    def figures(self):
        pid = self.process.pid
        with open(f"/proc/{pid}/status") as status:
            rss = int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])
        with open(f"/proc/{pid}/maps") as maps:
            lines = len(maps.readlines())
        return f"RSS {rss} KB, {lines} mappings, {self.copies()} versions mapped, " \
               f"{len(os.listdir(f'/proc/{pid}/fd'))} descriptors"


def put(template, version, path):
    """Rename a version of the plug-in to `path`."""
    with open(path + ".new", "wb") as file:
        file.write(template.replace(b"version 00000000", b"version %08d" % version))
    os.chmod(path + ".new", 0o755)
    os.rename(path + ".new", path)


def until(what, condition):
    for _ in range(12000):
        if condition():
            return
        time.sleep(0.01)
    sys.exit(f"after 120 s: {what}")


def load_and_replace(server, template, path, rounds):
    clients = [Client(server.port, "/"), Client(server.port, "/"), Client(server.port, "/all", slow=True)]
    for client in clients:
        client.start()
    for version in range(1, rounds + 1):
        put(template, version, path)
        server.reload()
        until(f"version {version} does not answer", lambda v=version: max(c.newest for c in clients) >= v)
        if version in (1, 100, 200, 500) or version == rounds:
            print(f"round {version}: {server.figures()}", flush=True)
    for client in clients:
        client.stop.set()
    for client in clients:
        client.join()
    return clients


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("source")
    parser.add_argument("compiler")
    parser.add_argument("flags", nargs="?", default="")
    parser.add_argument("--rounds", type=int, default=30)
    args = parser.parse_args()
    args.program = os.path.abspath(args.program)
    os.environ["WEIR_TRUST_FILES"] = "any"
    folder = tempfile.mkdtemp()
    server = None
    try:
        here, path = f"{args.source}/tests/plugin/rounds", f"{folder}/page.so"
        shutil.copy(f"{here}/page.yaml", folder)
        environ = dict(os.environ, CC=args.compiler, CFLAGS=args.flags)
        subprocess.run([args.program, "stage", "build", f"{here}/page.c", "-o", path], check=True, env=environ)
        with open(path, "rb") as file:
            template = file.read()
        server = Server(args.program, folder)
        clients = load_and_replace(server, template, path, args.rounds)
        until("a former version is still mapped", lambda: server.copies() == 1)
        print(f"at the end: {server.figures()}")
        lost = [text for client in clients for text in client.lost]
        print(f"{sum(c.done for c in clients)} pages, {clients[2].done} of them slow, {len(lost)} lost {lost[:3]}")
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(timeout=120)
        if code != 0 or lost:
            sys.exit(f"exit code {code}\n{open(f'{folder}/log').read()[-3000:]}")
    finally:
        if server and server.process.poll() is None:
            server.process.kill()
        shutil.rmtree(folder)


main()
