# SPDX-License-Identifier: MIT
"""Answers of a real server, changed as if events of `hello` had children, for tests of the command.

with_children.py ADMIN_URL PORT_FILE

12 events of `hello` wait for 40 children, which are at `tiles`, the stage after it. The slowest request has awaited
16 children, of which the last two are shown.
"""
import json
import sys
import urllib.request

from answers import serve

CHILDREN = {"limit": 256, "spawned_total": 345, "joined_total": 300, "orphaned_total": 4, "cancelled_total": 1, "refused_total": 2, "in_flight": 40}


def span(stage, after, wait, service, awaiting, **more):
    return {"stage": stage, "after": after, "wait": wait, "service": service, "awaiting": awaiting, **more}


SLOWEST = {"id": 1, "class": "default", "at": 1.7e9, "took": 0.1, "outcome": "ok", "path": "GET /page", "trace": "", "end": "hello", "hops": 2,
           "spans": [span("hello", 0, 0.01, 0.01, 0.06), span("hello", 0.08, 0, 0.02, 0)], "children": 16,
           "child_spans": [span("tiles", 0.02, 0.05, 0.01, 0, child=16), span("tiles", 0.02, 0.04, 0.01, 0, child=15)]}


def changed(stage):
    if stage.get("name") == "hello":
        stage.update(awaiting=12, in_flight=12, children=CHILDREN)
        stage["links"] = [{"outlet": "tile", "to": "tiles", "type": None, "events_total": 345, "loop": False}]
    return stage


def answer(path):
    doc = json.load(urllib.request.urlopen(sys.argv[1].rstrip("/") + path, timeout=20))
    if path.startswith("/api/v1/requests/slowest"):
        return {"requests": [SLOWEST], "next": None}
    if path == "/api/v1/stages":
        doc["stages"] = [changed(s) for s in doc["stages"]]
        tiles = json.loads(json.dumps(doc["stages"][-1]))
        tiles.update(name="tiles", in_flight=33, awaiting=0, links=[])
        doc["stages"].append(tiles)
    elif path.startswith("/api/v1/stages/"):
        doc = changed(doc)
    return doc


serve(answer, sys.argv[2])
