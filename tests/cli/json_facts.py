# SPDX-License-Identifier: MIT
"""Compares the JSON of verbs with their text; see json.sh. Arguments: PROGRAM ADMIN SOURCE_DIR WORK."""
import json
import re
import subprocess
import sys

program, admin, top, work = sys.argv[1:]
page = open(f"{top}/docs/json.md").read()
documented = set(re.findall(r"`([a-z_0-9]+)`", page))


def run(*args):
    done = subprocess.run([program, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (args, done.stderr)
    return done.stdout


def both(*args):
    text, doc = run(*args), json.loads(run(*args, "-o", "json"))
    return text, doc


def check_fields(doc, skip=()):
    """Every field of doc is in docs/json.md; those of members in `skip` are in docs/api.md."""
    if isinstance(doc, list):
        for item in doc:
            check_fields(item, skip)
    elif isinstance(doc, dict):
        for key, value in doc.items():
            assert key in documented, f"docs/json.md lacks {key}"
            if key not in skip:
                check_fields(value, skip)


def check_why():
    text, doc = both("why", "--admin", admin)
    check_fields(doc, skip=("bottleneck",))
    assert doc["server"] == "tested" and 0.5 < doc["span_seconds"]
    assert [s["name"] for s in doc["stages"]] == ["web", "hello"]
    assert doc["bottleneck"]["text"] in text or text.splitlines()[0][:20] == doc["bottleneck"]["text"][:20]
    text, doc = both("why", "hello", "--admin", admin)
    check_fields(doc, skip=("bottleneck", "decisions"))
    (stage,) = doc["stages"]
    assert stage["name"] == "hello" and stage["decisions"] == [] and stage["held"] is None
    policy, mode = re.search(r"policy (\w+), (\w+)", text).groups()
    assert (stage["admission"]["policy"], stage["admission"]["mode"]) == (policy, mode)
    assert stage["threads"]["max"] == int(re.search(r"\(max (\d+)\)", text)[1])
    assert stage["queue_limit"] == int(re.search(r"\(limit (\d+)\)", text)[1])


def check_shed():
    text, doc = both("why", "--shed", "80200Z1000000", "--admin", "127.0.0.1:1")
    check_fields(doc)
    assert doc["reason"] in text and doc["text"] in text and doc["stage"] is None


def check_top():
    text, doc = both("top", "-n", "1", "--admin", admin)
    check_fields(doc)
    rows = [line.split()[0] for line in text.splitlines()[2:]]
    assert [s["name"] for s in doc["stages"]] == rows == ["web", "hello"], rows
    frames = run("top", "-n", "2", "--admin", admin, "-o", "json").splitlines()
    first, second = map(json.loads, frames)
    assert second["uptime_seconds"] > first["uptime_seconds"]


def check_ps():
    text, doc = both("ps", "--admin", admin)
    assert re.search(r"IN/S DONE/S SHED/S", text)
    for stage in doc["stages"]:
        assert stage["name"] in text and set(stage["per_second"]) == {"in", "done", "shed"}
        assert all(v >= 0 for v in stage["per_second"].values())


def check_overload():
    text, doc = both("overload", "--admin", admin)
    check_fields(doc)
    assert text == f"{doc['mode']}: {doc['meaning']}\n"
    doc = json.loads(run("overload", "shadow", "--admin", admin, "-o", "json"))
    assert doc["mode"] == "shadow" and run("overload", "--admin", admin).startswith("shadow: ")


def check_explain():
    for path in f"{work}/server.yaml", f"{top}/config/servers/cores.yaml":
        text, doc = both("explain", path)
        check_fields(doc)
        keys = [k for k in doc["keys"] if k["origin"] != "note"]
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        notes = " ".join(line[2:] for line in text.splitlines() if line.startswith("#"))
        assert " ".join(k["value"] for k in doc["keys"] if k["origin"] == "note") == notes
        assert len(keys) == len(lines)
        for key, line in zip(keys, lines):
            where = f"{key['file']}:{key['line']}" if key["file"] else key["origin"]
            assert line.split()[0] == key["path"] and key["value"] in line and where in line, (key, line)
    (key,) = json.loads(run("explain", f"{work}/server.yaml", "stages.hello.threads.max", "--set",
                            "hello.threads.max=3", "-o", "json"))["keys"]
    assert key == {"path": "stages.hello.threads.max", "value": "3", "origin": "set", "file": None, "line": None}


def check_settings(settings, text):
    for s in settings:
        assert re.search(rf"^ +{re.escape(s['name'])} ", text, re.M), s["name"]
        assert not s["help"] or s["help"] in text
        for bound in "minimum", "maximum", "default":
            assert not s[bound] or s[bound] in text, (s["name"], bound, s[bound])
        for choice in s["choices"]:
            assert choice["name"] in text
        check_settings(s.get("fields", []), text)


def check_describe():
    types = [t["type"] for t in json.loads(run("list", "-o", "json"))]
    for name in types + ["stage", "group", "class", "admin", "log", "token"]:
        text, doc = both("describe", name)
        check_fields(doc)
        assert doc["name"] == name and doc["help"] in text
        check_settings(doc["settings"], text)
        for more in doc.get("outlets", []) + doc.get("fields", []) + doc.get("metrics", []):
            assert more["name"] in text and (more["help"] or "") in text, more
        assert doc.get("source", False) == ("a source, which" in text)
    rate = {s["name"]: s for s in json.loads(run("describe", "delay", "-o", "json"))["settings"]}["time"]
    assert rate["type"] == "duration"


for check in check_why, check_shed, check_top, check_ps, check_overload, check_explain, check_describe:
    check()
    print(check.__name__, "agrees")
