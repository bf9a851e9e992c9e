# SPDX-License-Identifier: MIT
"""Pairs of samples of a server with a core group, for tests of `weir why`.

cores_looks.py STAGES_URL PORT_FILE

The first of a pair is the response of the server at STAGES_URL, with its core twice, so that the test
runs on machines with one core. The second is that of a second later.
In between, each of two cores has made 500 visits of 10 events, and each pair differs in one thing;
see PAIRS. After the last pair, its second sample is the response once more.
"""
import copy
import json
import sys
import urllib.request

from answers import serve

first = json.load(urllib.request.urlopen(sys.argv[1], timeout=20))
for has_cores in first["groups"] + first["stages"]:
    has_cores["cores"] += copy.deepcopy(has_cores["cores"])
first["groups"][0]["cores_now"] = 2


def add(core, **more):
    for key, n in more.items():
        core[key] += n
    core["longest_wait_seconds"] = 0.027


def second(group=None, busy=(0.9, 0.8), asleep=(), spare=0, threads=None, **more):
    doc = copy.deepcopy(first)
    doc["uptime_seconds"] += 1
    doc["groups"][0].update(group or {})
    usual = {"visits_total": 500, "events_total": 5000, "from_queue_total": 1000, "dealt_total": 50}
    for k, core in enumerate(doc["groups"][0]["cores"]):
        add(core, **{**usual, **more}, busy_seconds_total=busy[k])
    for k, seconds in asleep:
        doc["groups"][0]["cores"][k].update(blocked_seconds=seconds, blocked_in="b")
    if spare:
        doc["groups"][0]["cores"][0].update(spare_blocked_seconds=spare, spare_blocked_in="a")
    for stage in doc["stages"]:
        if stage["cores"]:
            stage["threads"].update(threads or {})
        part = {"a": 0.2, "b": 0.8}.get(stage["name"], 0)
        for k, core in enumerate(stage["cores"]):
            add(core, busy_seconds_total=part * busy[k])
    return doc


PAIRS = [
    second(),
    second(starved_total=200),
    second(urgent_total=200),
    second(cut_by_gate_total=1500, visits_total=2500),
    second(blocked_total=2),
    second(group={"balance": False}, busy=(0.9, 0.1)),
    second(busy=(0.2, 0.1)),
    second(asleep=[(0, 6.2)], busy=(1, 0.1)),
    second(asleep=[(0, 6.2)], spare=1.5, threads={"busy": 3, "now": 3, "spares": 1, "spares_busy": 1, "max": 2}),
    second(asleep=[(0, 0.0084), (1, 40)], group={"cores_now": 1}, busy=(1, 1), blocked_total=1),
    second(group={"cores_now": 1}, busy=(0.2, 0)),
]
answers = [doc for pair in PAIRS for doc in (first, pair)]
answers += [answers[-1]]  # for `weir show`
answers += [PAIRS[-4], PAIRS[-3]]  # for `weir ps`


def answer(path):
    if path == "/api/v1/stages":
        return answers.pop(0)
    if path == "/api/v1/graph" or path.startswith("/api/v1/groups/"):
        return json.load(urllib.request.urlopen(sys.argv[1].removesuffix("/api/v1/stages") + path, timeout=20))
    return {"decisions": []}


serve(answer, sys.argv[2])
