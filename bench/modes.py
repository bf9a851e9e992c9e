#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Overload control in every mode and placement of a stage, on the real server: a table.

  bench/modes.py [--weir FILE] [--policies weir,codel] [--load 3] [--for 8] [--slo 500] [--service 20]

A stage sleeps --service ms per event. It is offered --load times the capacity that it has in the given
mode and placement. A cell shows the goodput (responses within the objective) divided by that capacity,
and the p99 of the response time divided by the objective. In a group with other stages, the goodput is
that of all stages together, and the p99 that of the worst stage. The targets for `weir` are a goodput
of at least 0.95 and a p99 of at most 1. tests/policy/test_matrix has the same cells in virtual time.
Sleeping uses no CPU, so two cores are enough. A cell marked "late" does not count, since the generator
sent its requests too late.
"""
import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from processes import free_ports

MODES = ["shared", "exclusive", "partitioned"]
PLACEMENTS = ["pool of 1", "pool of 4", "group of 4, alone", "group of 4, others at 1/16", "group of 4, others loaded", "inline"]
OTHERS = ["other", "another"]


def stage(name, o, policy, mode, placement):
    where = {"inline": "threads: inline", "pool of 1": "threads: { min: 1, max: 1, policy: static }",
             "pool of 4": "threads: { min: 4, max: 4, policy: static }"}.get(placement, "group: all")
    key = ", key: header.x-user" if mode == "partitioned" else ""
    rate = ", rate: 100" if policy == "rate" else ""
    return (f"  {name}: {{ use: delay, with: {{ dist: const, time: {o.service}ms }}, mode: {mode}{key}, {where}, slo: {o.slo}ms, "
            f"admission: {{ policy: {policy}{rate} }}, to: answer }}\n")


def config(o, policy, mode, placement, ports):
    text = "weir: 1\nname: modes\n"
    if placement.startswith("group"):
        text += "groups: { all: { threads: { min: 4, max: 4, policy: static } } }\n"
    text += "stages:\n"
    names = ["work"] + (OTHERS if "others" in placement else [])
    for name, port in zip(names, ports):
        text += f"  web-{name}: {{ use: http.server, with: {{ listen: \"127.0.0.1:{port}\" }}, to: {{ request: {name} }} }}\n"
        own = name == "work"
        text += stage(name, o, policy if own else "weir", mode if own else "shared", placement)
    return text + "  answer: { use: respond, with: { body: x }, threads: inline }\n", names


def bench(o, port, rate):
    command = [o.weir, "bench", f"http://127.0.0.1:{port}/", "--rate", str(rate), "--warmup", "3s", "--for", f"{o.seconds}s",
               "--timeout", f"{40 * o.slo}ms", "--grace", "1s", "--json", "-q", "--class", "all", "--users", "10000", "--path", "/"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def in_time(latency, slo_s):
    """A lower bound of the number of answers within the objective, from the generator's quantiles."""
    known = [(q, latency[f"p{n}_s"]) for q, n in ((0.5, 50), (0.9, 90), (0.99, 99), (0.999, 999))] + [(1, latency["max_s"])]
    return latency["count"] * max([q for q, at in known if at <= slo_s], default=0)


def measure(o, policy, mode, placement):
    ports = free_ports(3)
    text, names = config(o, policy, mode, placement, ports)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
        f.write(text)
        f.flush()
        checked = subprocess.run([o.weir, "check", f.name], capture_output=True, text=True)
        if checked.returncode:
            return "refused by weir check"
        server = subprocess.Popen([o.weir, "run", f.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return run_cell(o, server, mode, placement, ports, names)
        finally:
            server.send_signal(signal.SIGKILL)
            server.wait()


def run_cell(o, server, mode, placement, ports, names):
    for port in ports[:len(names)]:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                if server.poll() is not None:
                    return "the server did not start"
    own = 1 if mode == "exclusive" or placement == "pool of 1" else 4
    beside = 0.25 if "1/16" in placement else 4 * o.load
    per_s = 1000 / o.service
    runs = [bench(o, port, (o.load * own if name == "work" else beside) * per_s) for name, port in zip(names, ports)]
    done, worst, void = 0, 0, False
    for run in runs:
        out, err = run.communicate()
        if not out:
            return err.strip()
        result = json.loads(out)
        latency = result["phases"][-1]["classes"][0]["latency"]["ok"]
        done += in_time(latency, o.slo / 1000) / o.seconds if latency["count"] else 0
        worst = max(worst, latency["p99_s"] if latency["count"] else 0)
        void = void or bool(result["void"])
    possible = 4 if "loaded" in placement else own + (0.5 if "1/16" in placement else 0)
    share = done / (min(possible, 4) * per_s)
    return f"{share:.3f}, {worst / (o.slo / 1000):.2f}{' late' if void else ''}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--weir", default=os.path.join(os.path.dirname(__file__), "../build/release/weir"))
    p.add_argument("--policies", default="weir")
    p.add_argument("--load", type=float, default=3)
    p.add_argument("--for", dest="seconds", type=int, default=8)
    p.add_argument("--slo", type=int, default=500, help="ms")
    p.add_argument("--service", type=int, default=20, help="ms")
    o = p.parse_args()
    for policy in o.policies.split(","):
        print(f"\npolicy {policy}: goodput / capacity, p99 / objective of {o.slo} ms; service time {o.service} ms, "
              f"load {o.load:g} times the capacity\n")
        print("| |", " | ".join(MODES), "|\n|", "--- | " * (len(MODES) + 1))
        for placement in PLACEMENTS:
            print("|", placement, end=" |")
            for mode in MODES:
                print("", measure(o, policy, mode, placement), end=" |")
                sys.stdout.flush()
            print()


main()
