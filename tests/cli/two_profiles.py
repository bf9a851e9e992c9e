# SPDX-License-Identifier: MIT
"""Answers of /api/v1/profile for tests of `weir profile`: two_profiles.py PORT_FILE WHICH

The second answer is 10 s later with WHICH `later`; with `reloaded`, a reload has replaced the stages in between.
A third answer is the first one again, and so on.
"""
import sys

from answers import serve


def row(on, kind, started, restarted, waits, **more):
    """`waits` are the buckets, [upper bound, events]."""
    count = sum(n for _, n in waits)
    return {"on": on, "kind": kind, "offered_total": 0, "refused_total": 0, "started_total": started, "restarted_total": restarted,
            "put_back_total": restarted, "dropped_total": 0, "completed_total": started, "failed_total": 0, "shed_total": 0,
            "spawned_total": 0, "departed_total": 0, "busy_seconds_total": 0.5, "batches_total": started, "waiting": 0,
            "wait_seconds": {"count": count, "sum": sum((bound or 200) * n for bound, n in waits), "restarted_sum": 0, "buckets": waits}, **more}


def stage(name, placement, group, *rows, awaiting=0):
    return {"name": name, "placement": placement, "group": group, "waiting": 1, "running": 2, "held": 3, "awaiting": awaiting, "rows": list(rows)}


def arc(src, outlet, to, on, sent, refused=0):
    return {"from": src, "outlet": outlet, "to": to, "on": on, "sent_total": sent, "offered_total": sent + refused}


def profile(since, counted, n):
    """`n` times the same, and once more something that does not grow."""
    return {"name": "shop", "time": 1.7e9 + counted, "since": since, "counted_seconds": counted, "stages": [
        stage("web", "source", "", row("web/0", "io", 10 * n, 0, []), row("web/1", "io", 7, 0, [])),
        stage("parse", "group", "core", row("core/0", "core", 3000 * n, 6 * n, [[1e-6, 2000 * n], [0.001, 1006 * n], [0.5, 3]], spawned_total=500 * n, departed_total=480 * n),
              row("core/1", "core", 1000 * n, 0, [[0.002, 1000 * n]], shed_total=n, failed_total=2 * n, spawned_total=7 * n, departed_total=7 * n),
              row("web/0", "io", 0, 0, [], offered_total=4000 * n), awaiting=4),
        stage("a-name-that-is-long", "pool", "work", row("others", "others", 12345678 * n, 0, [[0.01, 5], [None, 12345678 * n]])),
        stage("idle", "pool", "idle", row("idle/0", "thread", 5, 0, [[0.001, 5]]))],
        "arcs": [arc("web", "request", "parse", "web/0", 4000 * n, 40 * n), arc("web", "request", "parse", "web/1", 7),
                 arc("parse", "out", "a-name-that-is-long", "core/0", 3000 * n), arc("parse", "out", "a-name-that-is-long", "core/1", 1000 * n)]}


answers = [profile(5, 100, 1), profile(5, 110, 2) if sys.argv[2] == "later" else profile(108, 2, 1)]


def answer(path):
    answers.reverse()
    return answers[1]


serve(answer, sys.argv[1])
