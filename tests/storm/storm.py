#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A storm over a server: storm.py WEIR STORM.SO [--seed N] [--seeds N] [--rounds N] [--seconds S]. See README.md."""
import argparse
import http.client
import json
import mmap
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import shape

HANG_S = 120  # only ends what hangs
COUNTS = ("made", "ended", "cancelled", "deaths", "overlaps", "broken")
BAD_LOG = re.compile(r"Sanitizer|runtime error|ssert|a bug in weir|counters are off by -?[1-9]|STORM|crash|unknown event")
failures = []


def fail(what):
    failures.append(what)
    print("FAILED:", what, flush=True)


# ---- the server ----

class Server:
    def __init__(self, weir, folder):
        self.folder, self.admin, self.port = folder, None, None
        with open(f"{folder}/counts", "wb") as f:
            f.write(bytes(4096))
        self.file = open(f"{folder}/counts", "rb")
        self.counts_at = mmap.mmap(self.file.fileno(), 4096, prot=mmap.PROT_READ)
        self.log = open(f"{folder}/log", "wb")
        env = dict(os.environ, STORM_COUNTS=f"{folder}/counts", WEIR_TRUST_FILES="any")
        self.process = subprocess.Popen([weir, "run", "storm.yaml"], cwd=folder, stdout=subprocess.PIPE, stderr=self.log,
                                        stdin=subprocess.DEVNULL, env=env)
        watch = threading.Timer(HANG_S, self.process.kill)
        watch.start()
        for line in self.process.stdout:
            found = re.search(r"http://127.0.0.1:(\d+)/", line.decode())
            if found and b"admin" in line:
                self.admin = int(found[1])
                break
            if found:
                self.port = int(found[1])
        watch.cancel()
        if not self.admin:
            self.process.wait()
            fail(f"the server did not start: {self.read_log()[-2000:]}")

    def counts(self):
        return dict(zip(COUNTS, struct.unpack("6q", self.counts_at[:48])))

    def read_log(self):
        with open(f"{self.folder}/log", "rb") as f:
            return f.read().decode("utf-8", "replace")

    def call(self, method, path, body=None, timeout=HANG_S):
        c = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=timeout)
        try:
            c.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
            answer = c.getresponse()
            data = answer.read()
        finally:
            c.close()
        return answer.status, data

    def get(self, path):
        """The answer as JSON. A connection may be closed for a newer one, so it tries again."""
        for _ in range(100):
            try:
                status, data = self.call("GET", path)
                if status == 200:
                    return json.loads(data)
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.05)
        raise SystemExit(f"{path} is not answered: {self.read_log()[-3000:]}")

    def end(self):
        """Drain. There is time for everything, so nothing may be lost."""
        if self.process.poll() is not None:
            fail(f"the server ended by itself: {self.process.returncode}: {self.read_log()[-6000:]}")
        self.process.send_signal(signal.SIGTERM)
        try:
            rc = self.process.wait(HANG_S + 60)
        except subprocess.TimeoutExpired:
            fail(f"the server does not end: {self.read_log()[-2000:]}")
            if os.environ.get("STORM_KEEP"):
                input(f"pid {self.process.pid}> ")
            self.process.send_signal(signal.SIGABRT)
            rc = self.process.wait()
        self.process.stdout.close()
        self.log.close()
        log, counts = self.read_log(), self.counts()
        found = BAD_LOG.search(log)
        if rc != 0 or found:
            at = found.start() if found else len(log)
            fail(f"exit {rc}: {log[max(0, at - 1500):at + 8000]}")
        if counts["made"] != counts["ended"]:
            fail(f"events are left: {counts}")
        if counts["overlaps"] or counts["broken"]:
            fail(f"wrong: {counts}")
        return rc, counts


# ---- the laws ----

def came(c):
    return c["offered_total"] + c["spawned_total"]


def left(c):
    return c["completed_total"] + c["failed_total"] + c["departed_total"] + sum(c["shed_total"].values())


def sum_of(view, of):
    return sum(of(c) for s in view["stages"] for c in s["classes"])


def is_quiet(view):
    return all(s["in_flight"] == 0 and s["threads"]["busy"] == 0 for s in view["stages"]) and sum_of(view, came) == sum_of(view, left)


def check_stage(s):
    """What does not hold of a stage at which nothing is in flight."""
    k = s["children"]
    spawned = sum(c["spawned_total"] for c in s["classes"])
    zeros = {"residual": s["law"]["residual"], "queue": s["queue"]["length"], "held": s["held"], "awaiting": s["awaiting"],
             "in_work": s["width"]["in_work"] if s["width"] else 0,
             "spawned": k["spawned_total"] - spawned,
             "ended children": k["spawned_total"] - k["joined_total"] - k["orphaned_total"] - k["cancelled_total"]}
    for c in s["classes"]:
        zeros[f"law of {c['name']}"] = came(c) - left(c)
        zeros[f"queued {c['name']}"] = c["queued"]
        refused = c["offered_total"] - c["admitted_total"]
        zeros[f"refused {c['name']}"] = max(0, refused - sum(c["shed_total"].values()))
    for core in s["cores"]:
        zeros["waiting in a cell"] = core["waiting"]
    return [f"{s['name']} {what}: {n}" for what, n in zeros.items() if n != 0]


def check_links(view):
    """Each stage has admitted what the links to it have carried."""
    into, wrong = {}, []
    for s in view["stages"]:
        for link in s["links"]:
            into[link["to"]] = into.get(link["to"], 0) + link["events_total"]
    for s in view["stages"]:
        admitted = sum(c["admitted_total"] for c in s["classes"])
        if s["name"] != "web" and into.get(s["name"], 0) != admitted:
            wrong.append(f"{s['name']} admitted {admitted}, links {into.get(s['name'])}")
    return wrong


def check_profile(profile):
    """The laws of weir/profile.h of the running graph, at rest."""
    wrong = []
    for s in profile["stages"]:
        def total(name):
            return sum(r[f"{name}_total"] for r in s["rows"])
        arcs = [a for a in profile["arcs"] if a["to"] == s["name"]]
        begun = total("started") + total("restarted")
        zeros = {"begun": begun + total("dropped") + total("refused") - total("offered") - total("put_back"),
                 "ended": total("completed") + total("failed") + total("shed") + total("departed") - total("offered") - total("spawned"),
                 "waiting": s["waiting"] + s["running"] + s["held"] + s["awaiting"]}
        if s["name"] != "web":
            zeros["waits"] = sum(r["wait_seconds"]["count"] for r in s["rows"]) - begun
            zeros["sent here"] = sum(a["sent_total"] for a in arcs) + total("refused") - total("offered")
            zeros["offered here"] = sum(a["offered_total"] for a in arcs) - total("offered")
        wrong += [f"profile of {s['name']}, {what}: {n}" for what, n in zeros.items() if n != 0]
    return wrong


def check_laws(server, view, counts):
    wrong = [w for s in view["stages"] for w in check_stage(s)] + check_links(view) + check_profile(server.get("/api/v1/profile"))
    spawned = sum_of(view, lambda c: c["spawned_total"])
    cancelled = sum(s["children"]["cancelled_total"] for s in view["stages"])
    if view["payloads"]["reserved_bytes"]:
        wrong.append(f"payloads {view['payloads']}")
    if counts["made"] != counts["ended"] or counts["made"] != spawned or counts["cancelled"] != cancelled:
        wrong.append(f"{counts}, spawned {spawned}, cancelled {cancelled}")
    if counts["overlaps"] or counts["broken"]:
        wrong.append(f"{counts}")
    for w in wrong:
        fail(f"law: {w}")
    return wrong


def settle(server):
    """Wait until nothing is in flight, and check the laws then."""
    until = time.monotonic() + HANG_S
    for s in ("web", *shape.TYPES):
        server.call("POST", f"/api/v1/stages/{s}/resume", {})
    before = None
    while time.monotonic() < until:
        state = server.get("/api/v1/reload")
        view = server.get("/api/v1/stages")
        counts = server.counts()
        totals = [(s["name"], s["classes"], s["links"], s["children"]) for s in view["stages"]]
        if not state["draining"] and is_quiet(view) and counts == server.counts():
            if before == totals:
                return check_laws(server, view, counts)
            before = totals
        time.sleep(0.02)
    rows = [{k: s[k] for k in ("name", "state", "in_flight", "held", "awaiting", "law", "queue", "children")} for s in view["stages"]]
    fail(f"never quiet: draining {state['draining']} counts {counts} " + "\n".join(json.dumps(r) for r in rows))
    if os.environ.get("STORM_KEEP"):
        input(f"pid {server.process.pid}> ")
    return ["hang"]


# ---- clients ----

def request(rng):
    return f"GET {rng.choice(('/vip', '/'))}{rng.randrange(9)} HTTP/1.1\r\nHost: t\r\nX-User: {rng.randrange(9)}\r\n\r\n".encode()


def client(rng, port, statuses):
    with socket.create_connection(("127.0.0.1", port), timeout=3) as sock:
        how = rng.randrange(10)
        n = rng.choice((1, 1, 3, 12))
        text = b"".join(request(rng) for _ in range(n))
        if how == 0:
            text = text[:rng.randrange(len(text))]
        sock.sendall(text)
        if how < 3:  # goes away, perhaps by a reset
            if rng.random() < 0.5:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            time.sleep(rng.choice((0, 0, 0.001, 0.02)))
            return
        if how == 3:
            sock.shutdown(socket.SHUT_WR)
        got = b""
        while got.count(b"HTTP/1.1 ") < n:
            if how == 4:
                time.sleep(0.05)
            data = sock.recv(rng.choice((100, 65536)))
            if not data:
                break
            got += data
        for status in re.findall(rb"HTTP/1.1 (\d+)", got):
            statuses[status.decode()] = statuses.get(status.decode(), 0) + 1


# ---- operators ----

STAGE_KNOBS = (("threads.max", ("1", "2", "5", "0")), ("threads.min", ("1", "2")), ("queue.limit", ("1", "8", "64", "2000")),
               ("children", ("1", "2", "50")), ("admission.mode", ("off", "shadow", "enforce")), ("admission.rate", ("10", "1000")),
               ("with.kids", ("1", "2", "8")), ("with.burn", ("0", "1us", "30us")), ("with.die", ("0", "200", "2000")),
               ("with.nap", ("0", "8ms")), ("width.max", ("1", "3", "20")), ("cohort.max", ("1", "5", "64")),
               ("cohort.linger", ("0", "1ms")), ("urgent.events", ("0", "2", "9")), ("urgent.wait", ("0", "1ms")),
               ("local", ("always", "never", "auto")))
GROUP_KNOBS = (("cores", ("1", "2", "1..2")), ("schedule", shape.SCHEDULES), ("gate.events", ("0", "1", "30")), ("gate.time", ("0", "1ms")),
               ("gate.arrived", ("true", "false")), ("gate.cutoff", ("0", "1ms")), ("starve", ("0", "1ms", "auto")),
               ("balance", ("true", "false")), ("threads.max", ("1", "3")))
VIEWS = ("stages", "profile", "graph", "requests/slowest", "decisions", "changes", "history", "stages/mid/queue", "stages/mid/tap",
         "stages/turn/knobs")


def act(rng, server, texts):
    """One random act of an operator."""
    stage = rng.choice(("web", *shape.TYPES))
    way = rng.randrange(20)
    if way < 6:
        of, knobs = (f"stages/{stage}", STAGE_KNOBS) if rng.random() < 0.7 else (f"groups/{rng.choice(shape.GROUPS)}", GROUP_KNOBS)
        name, values = rng.choice(knobs)
        path = f"/api/v1/{of}/knobs/{name}"
        if rng.random() < 0.2:
            return server.call("DELETE", path)
        body = {"value": rng.choice(values)}
        if rng.random() < 0.3:
            body["for"] = "300ms"
        return server.call("PUT", path, body)
    if way < 9:
        return server.call("POST", f"/api/v1/stages/{stage}/{rng.choice(('pause', 'drain'))}", {})
    if way < 13:
        return server.call("POST", f"/api/v1/stages/{stage}/resume", {})
    if way == 13:
        return server.call("POST", "/api/v1/undo", {})
    if way == 14:
        return server.call("PUT", "/api/v1/overload", {"mode": rng.choice(("off", "shadow", "enforce"))})
    if way < 17:
        return server.call("GET", f"/api/v1/{rng.choice(VIEWS)}")
    if way == 17 and rng.random() < 0.3:  # another version of the plug-in
        with open(f"{server.folder}/next.so", "wb") as f:
            f.write(server.plugin + bytes(rng.randrange(4)))
        os.rename(f"{server.folder}/next.so", f"{server.folder}/storm.so")
    if rng.random() < 0.8:
        with open(f"{server.folder}/next.yaml", "w") as f:
            f.write(rng.choice(texts))
        os.rename(f"{server.folder}/next.yaml", f"{server.folder}/storm.yaml")
    return server.call("POST", "/api/v1/reload", {"preview": rng.random() < 0.1})


class Crowd:
    """Threads that call how(rng) until the end."""

    def __init__(self, rng, n, how):
        self.over, self.how = False, how
        self.threads = [threading.Thread(target=self.run, args=(random.Random(rng.random()),)) for _ in range(n)]
        for t in self.threads:
            t.start()

    def run(self, rng):
        while not self.over:
            try:
                self.how(rng)
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)

    def end(self):
        self.over = True
        for t in self.threads:
            t.join()


def one_storm(rng, server, texts, seconds, statuses, acts):
    def operate(r):
        status = act(r, server, texts)[0]
        acts[status] = acts.get(status, 0) + 1
        time.sleep(r.choice((0, 0.005, 0.05)))

    clients = Crowd(rng, 6, lambda r: client(r, server.port, statuses))
    operators = Crowd(rng, 2, operate)
    time.sleep(seconds)
    return clients, operators


def run(args, seed):
    rng = random.Random(seed)
    folder = tempfile.mkdtemp(prefix="weir-storm-")
    shutil.copy(args.plugin, f"{folder}/storm.so")
    for t in set(shape.TYPES.values()):
        os.symlink("storm.so", f"{folder}/storm_{t}.so")
    os.environ["WEIR_TRUST_FILES"] = "any"
    texts = [shape.draw(rng, args.weir, folder) for _ in range(args.shapes)]
    with open(f"{folder}/storm.yaml", "w") as f:
        f.write(texts[0])
    server = Server(args.weir, folder)
    try:
        if server.admin:
            run_rounds(args, rng, seed, server, texts)
    finally:
        server.process.kill()  # without effect if it has ended
        server.process.wait()
    if failures:
        shutil.copy(f"{folder}/log", f"storm-{seed}.log")
        print(f"the folder is {folder}, the log storm-{seed}.log")
    else:
        shutil.rmtree(folder)


def run_rounds(args, rng, seed, server, texts):
    with open(f"{server.folder}/storm.so", "rb") as f:
        server.plugin = f.read()
    statuses, acts = {}, {}
    for _ in range(args.rounds):
        crowds = one_storm(rng, server, texts, args.seconds, statuses, acts)
        for crowd in crowds:
            crowd.end()
        if server.process.poll() is not None or settle(server):
            break
    whole = rng.random() < 0.5 and not failures
    crowds = () if whole else one_storm(rng, server, texts, args.seconds / 2, statuses, acts)
    rc, counts = server.end()
    for crowd in crowds:
        crowd.end()
    print(f"seed {seed}: exit {rc}, {counts}, answers {statuses}, acts {acts}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weir")
    parser.add_argument("plugin", help="storm.so")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="how many, one after another")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="length of a round")
    parser.add_argument("--shapes", type=int, default=4, help="number of configurations between which reloads change")
    args = parser.parse_args()
    args.weir = os.path.abspath(args.weir)
    for seed in range(args.seed, args.seed + args.seeds):
        run(args, seed)
        if failures:
            break
    sys.exit(1 if failures else 0)


main()
