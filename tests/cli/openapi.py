#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks /api/v1/openapi.json against real servers: openapi.py PROGRAM SOURCE_DIR

  document   is valid OpenAPI as far as we use it, says of every object whether more members are
             allowed, and has exactly the routes of the index
  answers    status, type and body are as documented, and so are refusals, ranges of parameters and
             bodies of requests: for a server under load before, during and after changes and
             reloads by operators, and for the servers in config/servers
  events     one stream: hello, ticks, decisions, changes and reloads
  coverage   every 2xx response in the document was seen
  itself     small mistakes in a document are detected

Needs python3-jsonschema; without it the test is skipped (exit code 77). All waits are for
conditions, with a limit that only a broken server reaches.
"""
import copy
import http.client
import json
import os
import secrets
import socket
import ssl
import subprocess
import sys
import tempfile
import traceback

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from openapi_document import METHODS, Document, faults_of, parse
from openapi_server import JSON, PATIENCE_S, Load, Server, Watcher, Wrong, check, result

KNOB = "/api/v1/stages/{stage}/knobs/{knob}"
GROUP_KNOB = "/api/v1/groups/{group}/knobs/{knob}"
CLASS_KNOB = "/api/v1/classes/{class}/knobs/{knob}"


def names_of(path):
    """Names that exist, for the parameters of `path`."""
    knob = "slo" if "/classes/" in path else "threads.max"
    return {"stage": "work", "group": "pair", "class": "vip", "knob": knob, "file": "app.js"}


SERVER = """
weir: 1
name: described
admin: { listen: "127.0.0.1:0" }
alerts:
  top_class_shed: { above: 2, stages: { work: { enabled: false } } }
groups:
  pair: { threads: { min: 1, max: 2 } }
classes:
  vip:  { match: { path: /vip* } }
  bulk: {}
stages:
  few:
    use: http.server
    with: { listen: "127.0.0.1:0", threads: 2, per_thread: 1 }
    to:   { request: gone }
  web:
    use: http.server
    with: { listen: "127.0.0.1:0" }
    to:   { request: route }
  route:
    use: router
    with: { routes: [ { path: /old*, to: old }, { path: /kept*, to: kept }, { to: more } ] }
    threads: inline
    to: { old: gone, kept: kept, more: work }
  kept: { use: http.cache, threads: inline, to: { miss: work } }
  gone: { use: drop, threads: inline }
  work:
    use: delay
    with:      { time: 5ms }
    threads:   { min: 1, max: 4 }
    queue:     { limit: 64 }
    slo:       1s
    admission: { policy: threshold, threshold: 4 }
    to:        parse
  parse: { use: burn, group: pair, with: { time: 20us }, to: reply }
  reply: { use: respond, group: pair, with: { body: "%s" } }
""" % ("\u00e9" * 3000)  # values as long as this are shown truncated


# ---- the requests ----

def ask_all(server, every_knob=False):
    """Sends every GET, for every stage."""
    graph = server.ask("GET", "/api/v1/graph", 200)
    stages = [stage["name"] for stage in graph["stages"]]
    for method, path, _ in server.document.operations():
        if method == "GET" and "{" not in path and path != "/events":
            server.ask("GET", path, 200)
            server.ask("HEAD", path, 200)
    kept = {stage["name"]: stage["queue"]["limit"] for stage in server.ask("GET", "/api/v1/stages", 200)["stages"]}
    for stage in stages:
        server.ask("GET", "/api/v1/stages/{stage}", 200, stage=stage)
        server.ask("GET", "/api/v1/stages/{stage}/queue", 200 if kept[stage] else 422, stage=stage)
        knobs = server.ask("GET", "/api/v1/stages/{stage}/knobs", 200, stage=stage)["knobs"]
        for knob in knobs if every_knob else knobs[:1]:
            server.ask("GET", KNOB, 200, stage=stage, knob=knob["name"])
    for group in {stage["group"] for stage in graph["stages"]} - {"", *stages}:
        server.ask("GET", "/api/v1/groups/{group}/knobs", 200, group=group)
        server.ask("GET", GROUP_KNOB, 200, group=group, knob="threads.max")
    for name in graph["classes"]:
        knobs = server.ask("GET", "/api/v1/classes/{class}/knobs", 200, **{"class": name})["knobs"]
        for knob in knobs:
            server.ask("GET", CLASS_KNOB, 200, **{"class": name, "knob": knob["name"]})
    page = server.raw("GET", "/")[1].startswith("text/html")
    for parameter in server.document.paths["/{file}"]["parameters"]:
        for file in parameter["schema"]["enum"]:
            server.ask("GET", "/{file}", 200 if page else 404, file=file)
    if not page:  # WEIR_UI=off
        server.seen.add(("GET", "/{file}", 200))


def ask_ranges(server):
    """Tries both ends of every integer range, and one beyond each."""
    for method, path, operation in server.document.operations():
        for p in server.document.parameters(path, operation):
            if p["in"] != "query" or path == "/events" or p["schema"]["type"] != "integer":
                continue
            low, high = p["schema"]["minimum"], p["schema"]["maximum"]
            # No row with such an id exists.
            here = 404 if path.endswith("slowest") and p["name"] in ("before", "after") else 200
            for value, want in ((low, here), (high, here), (low - 1, 400), (high + 1, 400), ("", 400), ("x", 400), ("1.5", 400)):
                server.ask(method, path, want, query=f"{p['name']}={value}", stage="work")


def ask_pages(server):
    """Following `next` gives each row once and in order, for pages of any size; `after` leads back."""
    for path, rows in (("/api/v1/decisions", "decisions"), ("/api/v1/changes", "changes"), ("/api/v1/acts", "acts"), ("/api/v1/requests/slowest", "requests")):
        whole = [row["id"] for row in server.ask("GET", path, 200, query="limit=500")[rows]]
        check(len(whole) > 3, f"{path}: too few rows for several pages: {len(whole)}")
        for limit in (1, 3, len(whole)):
            ids, query, pages = [], f"limit={limit}", 0
            while query is not None and pages <= len(whole):
                page = server.ask("GET", path, (200, 404) if rows == "requests" else 200, query=query)
                if rows not in page:  # 404: the list holds the last two minutes, and the row has left it since
                    ids = whole
                    break
                check(len(page[rows]) <= limit, f"{path}?{query}: {len(page[rows])} rows")
                ids += [row["id"] for row in page[rows]]
                query = page["next"] and page["next"].split("?")[1]
                pages += 1
            moved = rows not in ("changes", "acts")  # new changes appear only when this test makes them
            check(ids == whole or moved and set(ids) & set(whole), f"{path} in pages of {limit}: {ids} instead of {whole}")
            check(len(set(ids)) == len(ids), f"{path} in pages of {limit}: a row appears twice: {ids}")
        server.ask("GET", path, 400, query="before=5&after=1")
        if rows != "requests":
            new = [row["id"] for row in server.ask("GET", path, 200, query=f"limit=2&after={whole[3]}")[rows]]
            check(new == whole[1:3], f"{path}: {new} after {whole[3]} in {whole}")


def ask_tags(server):
    """Cacheable responses have an ETag and are answered 304 when it matches; all others are no-store."""

    def get(target, method="GET", **headers):
        c = http.client.HTTPConnection("127.0.0.1", server.admin, timeout=PATIENCE_S)
        try:
            c.request(method, target, headers={key.replace("_", "-"): value for key, value in headers.items()})
            r = c.getresponse()
            return r.status, r.headers, r.read()
        finally:
            c.close()

    for method, path, operation in server.document.operations():
        if method != "GET" or path == "/events":
            continue
        target = path.format(**names_of(path))
        status, headers, body = get(target)
        if "304" not in operation["responses"]:
            check("ETag" not in headers and headers["Cache-Control"] == "no-store", f"{path} must not be cacheable")
            continue
        tag = headers.get("ETag", "")
        if status == 404 and path == "/{file}":  # WEIR_UI=off
            continue
        weak = path == "/api/v1/graph"  # the body contains the time
        check(tag.startswith('W/"' if weak else '"') and len(tag) > 10, f"{path}: ETag {tag}")
        check(headers["Cache-Control"] == ("no-store" if weak else "private, no-cache"), f"{path}: {headers['Cache-Control']}")
        opaque = tag.removeprefix("W/")
        for shape in ("{tag}", '"x", W/{opaque}', "*"):
            for verb in ("GET", "HEAD"):
                # The graph can change under load, though rarely: then get its new tag.
                for _ in range(5 if weak else 1):
                    sent = shape.format(tag=tag, opaque=opaque)
                    status, headers, body = get(target, verb, If_None_Match=sent)
                    same = status == 304 and not body and headers["ETag"] == tag
                    if same:
                        break
                    tag = get(target)[1]["ETag"] if weak else tag
                    opaque = tag.removeprefix("W/")
                check(same, f"{verb} {path} with {sent}: {status} {body[:50]}")
        for sent in ('"x"', opaque[:-2] + 'x"', opaque.strip('"')):
            status, _, body = get(target, If_None_Match=sent)
            check(status == 200 and body, f"{path} with {sent}: {status}")
    target = KNOB.format(**names_of(KNOB))
    tag = get(target)[1]["ETag"]
    server.ask("PUT", KNOB, 200, body='{"value": "9"}', **names_of(KNOB))
    check(get(target, If_None_Match=tag)[0] == 200, "a knob has changed, but its tag has not")
    server.ask("DELETE", KNOB, 200, **names_of(KNOB))
    # Time and counts change under load, but the tag of the graph changes only with the state of a
    # stage.
    graph, pause = "/api/v1/graph", "/api/v1/stages/{stage}/pause"
    before = server.ask("GET", graph, 200)
    tag = get(graph)[1]["ETag"]
    server.until(lambda: server.ask("GET", graph, 200)["links"] != before["links"], "events continue")
    check(get(graph, If_None_Match=tag)[0] == 304, "no stage has changed its state, but the tag has changed")
    server.ask("POST", pause, 200, body="{}", stage=names_of(KNOB)["stage"])
    check(get(graph, If_None_Match=tag)[0] == 200, "a stage was paused, but the tag has not changed")
    server.ask("POST", pause.replace("pause", "resume"), 200, body="{}", stage=names_of(KNOB)["stage"])
    # The events that waited during the pause may be another state of the stage for a moment.
    server.until(lambda: get(graph, If_None_Match=tag)[0] == 304, "the tag of the resumed stage is the first one again")


def ask_nowhere(server):
    """Unknown paths, methods that a path does not have, and changes that are not permitted."""
    problem = server.document.doc["components"]["schemas"]["Problem"]
    page = server.raw("GET", "/")[1].startswith("text/html")
    for target in ("/nowhere", "/api/v1/", "/api/v2", "/api/v1/stages/a%20b", "/" + "x" * 300):
        status, media, body, _ = server.raw("GET", target)
        check(status == 404 and media == "application/problem+json", f"{target[:40]}: {status} {media}")
        check(not server.document.errors_of(parse(body), problem), f"{target[:40]}: not a Problem by the schema")
    for path, item in server.document.paths.items():
        if path == "/{file}" and not page:
            continue
        allowed = [m.upper() for m in METHODS if m in item]
        for method in ("GET", "PUT", "POST", "DELETE", "PATCH"):
            if method in allowed:
                continue
            status, media, body, allow = server.raw(method, path.format(**names_of(path)), body="{}", headers=JSON)
            check(status == 405 and media == "application/problem+json", f"{method} {path}: {status} {media}")
            check(set(allow.split(", ")) - {"HEAD"} == set(allowed), f"{method} {path}: Allow: {allow}")
            check(not server.document.errors_of(parse(body), problem), f"{method} {path}: not a Problem by the schema")
    for method, path, _ in server.document.operations():
        body = None if method in ("GET", "DELETE") else '{"value": "1"}' if path.endswith("{knob}") else "{}"
        if "{stage}" in path or "{group}" in path or "{class}" in path:
            server.ask(method, path, 404, body=body, **names_of(path) | {"stage": "nosuch", "group": "nosuch", "class": "nosuch"})
        if "{knob}" in path:
            server.ask(method, path, 404, body=body, **names_of(path) | {"knob": "no.such"})
        if method == "GET":
            if path.startswith("/api/"):
                server.ask(method, path, 403, headers={"Sec-Fetch-Site": "cross-site"}, **names_of(path))
            continue
        server.ask(method, path, 415, body=body, headers={}, **names_of(path))
        server.ask(method, path, 415, body=body, headers={"Content-Type": "text/plain"}, **names_of(path))
        server.ask(method, path, 403, body=body, headers=dict(JSON, Origin="http://elsewhere.example"), **names_of(path))
        server.ask(method, path, 403, body=body, headers=dict(JSON, **{"Sec-Fetch-Site": "cross-site"}), **names_of(path))
    server.ask("GET", "/{file}", 404, file="nosuch.js")


def ask_badly(server):
    """Requests that are refused before routing."""
    path, host = "/api/v1/graph", f"Host: 127.0.0.1:{server.admin}\r\n"
    cases = {
        400: ["GET /api/v1/graph HTTP/9\r\n" + host, "nonsense\r\n" + host, f"GET {path} HTTP/1.1\r\n",
              f"GET {path} HTTP/1.1\r\n{host}{host}", f"GET {path} HTTP/1.1\r\n{host}Content-Length: x\r\n",
              f"GET {path} HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n"],
        413: [f"GET {path} HTTP/1.1\r\n{host}Content-Length: 8193\r\n"],
        414: [f"GET {path}?{'x' * 9000} HTTP/1.1\r\n{host}"],
        417: [f"GET {path} HTTP/1.1\r\n{host}Expect: 100-continue\r\n"],
        421: [f"GET {path} HTTP/1.1\r\nHost: elsewhere.example\r\n", f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"],
        431: [f"GET {path} HTTP/1.1\r\n{host}X: {'x' * 9000}\r\n"],
    }
    for want, heads in cases.items():
        for head in heads:
            with socket.create_connection(("127.0.0.1", server.admin), PATIENCE_S) as s:
                s.sendall(head.encode() + b"\r\n")
                r = http.client.HTTPResponse(s)
                r.begin()
                body, what = r.read(), f"{head[:70]!r}"
            check(r.status == want, f"{what}: {r.status} instead of {want}")
            wrong = server.document.answer_errors("GET", path, r.status, r.headers.get("Content-Type", ""), body)
            check(not wrong, f"{what}: {wrong}")


def act_on_knobs(server):
    def put(want, body, stage="work", knob="threads.max"):
        return server.ask("PUT", KNOB, want, body=body, stage=stage, knob=knob)

    server.ask("POST", "/api/v1/undo", 409)
    put(200, '{"value": "6"}')
    put(200, '{"value": 5, "for": null}')
    check(put(200, '{"value": 7, "for": "10m"}')["expires_at"] is not None, "set for 10m, but expires_at is missing")
    check(server.ask("GET", KNOB, 200, stage="work", knob="threads.max")["overridden"] == "7", "the override is not 7")
    for body in ("", "{", "[]", "8", "{}", '{"value": null}', '{"value": [8]}', '{"value": 8, "value": 9}',
                 '{"value": 8, "until": 9}', '{"for": "10m"}'):
        put(400, body)
    for body in ('{"value": "many"}', '{"value": 5000}', '{"value": true}', '{"value": 8, "for": "ever"}',
                 '{"value": 8, "for": "1ns"}', '{"value": 8, "for": 10}'):
        put(422, body)
    fixed = [k["name"] for k in server.ask("GET", "/api/v1/stages/{stage}/knobs", 200, stage="work")["knobs"] if not k["live"]]
    put(422, '{"value": "1"}', knob=fixed[0])
    server.ask("DELETE", KNOB, 200, stage="work", knob="threads.max")
    server.ask("DELETE", KNOB, 409, stage="work", knob="threads.max")
    put(200, '{"value": "6ms", "for": "100ms"}', knob="with.time")
    server.until(lambda: any(act["what"] == "expire" for act in server.ask("GET", "/api/v1/acts", 200)["acts"]), "an override expires")
    # Texts are truncated in many places, but never inside a character.
    for first in range(4):
        text = "x" * first + "\u00e9\u20ac" * 600
        put(422, json.dumps({"value": text}, ensure_ascii=first % 2 == 0))
        put(422, json.dumps({"value": 1, "for": text}, ensure_ascii=False))
        server.ask("PUT", "/api/v1/overload", 422, body=json.dumps({"mode": text}, ensure_ascii=False))


def act_on_class_knobs(server):
    def ask(method, want, body=None, name="bulk", knob="slo"):
        return server.ask(method, CLASS_KNOB, want, body=body, **{"class": name, "knob": knob})

    check(ask("PUT", 200, '{"value": "2s"}')["configured"] == "500ms", "the configured objective is not 500ms")
    check(ask("GET", 200)["effective"] == "2s", "the objective is not 2s")
    ask("PUT", 200, '{"value": "1s", "for": "10m"}')
    ask("PUT", 422, '{"value": "1ns"}')
    ask("PUT", 422, '{"value": "1"}', knob="priority")
    ask("PUT", 404, '{"value": "1s"}', knob="slow")
    ask("PUT", 404, '{"value": "1s"}', name="bulky")
    ask("GET", 404, name="n" * 127)
    ask("DELETE", 200)
    ask("DELETE", 409)
    ask("DELETE", 404, name="classes.bulk")


def act_on_group_knobs(server):
    def put(want, body, group="pair", knob="threads.max"):
        return server.ask("PUT", GROUP_KNOB, want, body=body, group=group, knob=knob)

    check(put(200, '{"value": "6", "for": "10m"}')["configured"] == "2", "the configured value is not 2")
    put(400, '{"value": null}')
    for knob, value in (("threads.max", "0"), ("starve", "1ms"), ("schedule", "fifo"), ("order", "newest")):
        put(422, json.dumps({"value": value}), knob=knob)
    put(404, '{"value": "1"}', knob="threads.mxa")
    put(404, '{"value": "1"}', group="work")
    server.ask("GET", GROUP_KNOB, 404, group="work", knob="threads.max")
    server.ask("GET", "/api/v1/groups/{group}/knobs", 404, group="nobody")
    server.ask("PUT", KNOB, 404, body='{"value": "1"}', stage="pair", knob="threads.max")
    server.ask("DELETE", GROUP_KNOB, 200, group="pair", knob="threads.max")
    server.ask("DELETE", GROUP_KNOB, 409, group="pair", knob="threads.max")
    server.ask("DELETE", GROUP_KNOB, 404, group="nobody", knob="threads.max")


def act_on_stages(server):
    def post(verb, want, stage="work", body="{}"):
        return server.ask("POST", "/api/v1/stages/{stage}/" + verb, want, body=body, stage=stage)

    def state(stage):
        return server.ask("GET", "/api/v1/stages/{stage}", 200, stage=stage)["state"]

    check(post("pause", 200)["state"] == "paused", "a stage was paused, but its state is not 'paused'")
    server.until(lambda: server.ask("GET", "/api/v1/stages/{stage}/queue", 200, query="n=3", stage="work")["oldest"],
        "events wait at a paused stage")
    ask_all(server)
    post("resume", 200, body=None)
    post("drain", 200)
    server.until(lambda: state("work") == "drained", "a stage is drained")
    ask_all(server)
    post("resume", 200)
    post("pause", 200, stage="web")
    post("resume", 200, stage="web")
    for verb, stage in (("pause", "route"), ("drain", "route"), ("drain", "web")):
        post(verb, 422, stage=stage)
    for verb in ("pause", "drain", "resume"):
        for body in ('{"for": "1m"}', "[]", "no", "null"):
            post(verb, 400, body=body)
    check(state("work") == "running", "a refused request changed the state")
    server.ask("POST", "/api/v1/undo", 400, body='{"id": 1}')


def act_on_all(server):
    for mode in ("off", "shadow", "enforce"):
        told = server.ask("PUT", "/api/v1/overload", 200, body=json.dumps({"mode": mode}))
        check(told == {"mode": mode}, f"overload mode {mode}: {told}")
        ask_all(server)
    for body in ("", "{", "{}", '{"mode": null}', '{"mode": "off", "for": "1m"}', '"off"'):
        server.ask("PUT", "/api/v1/overload", 400, body=body)
    for body in ('{"mode": "maybe"}', '{"mode": 1}', '{"mode": false}'):
        server.ask("PUT", "/api/v1/overload", 422, body=body)


def act_on_purge(server):
    told = server.ask("POST", "/api/v1/purge", 200, body='{"what": "*"}')
    check(told == {"purged": 0}, f"purged: {told}")
    for body in ("", "{", "{}", '{"what": 1}', '{"what": "*", "more": 1}', '"*"'):
        server.ask("POST", "/api/v1/purge", 400, body=body)
    for what in ("", "nothing", "tag:"):
        server.ask("POST", "/api/v1/purge", 422, body=json.dumps({"what": what}))


def act_on_save(server, yaml):
    """A preview of what is saved, then the file itself. Knobs that are set for a time are left out."""
    path = "/api/v1/save"

    def text():
        with open(yaml, encoding="utf-8") as f:
            return f.read()

    server.ask("PUT", KNOB, 200, body='{"value": 3}', stage="work", knob="threads.max")
    server.ask("PUT", KNOB, 200, body='{"value": "6ms", "for": "1h"}', stage="work", knob="with.time")
    before = text()
    told = server.ask("POST", path, 200, body='{"preview": true}')
    check({k["knob"] for k in told["left"]} == {"with.time"} and "threads.max" in {k["knob"] for k in told["saved"]}, f"a preview: {told}")
    check(text() == before and told["preview"] is True, "the preview has changed the file")
    told = server.ask("POST", path, 200, body=None)
    check("max: 3" in told["changes"] and "max: 3" in text() and "max: 3" not in before, f"the file after {told}: {text()}")
    check(server.ask("POST", path, 200, body="{}")["changes"] == "", "a second save changes the file")
    server.ask("POST", path, 400, body="[]")


def undo_all(server):
    server.ask("POST", "/api/v1/undo", 200, body="")
    server.ask("POST", "/api/v1/undo", 200, body=None)
    for _ in range(256):
        status, media, body, _ = server.raw("POST", "/api/v1/undo", "{}", JSON)
        wrong = server.document.answer_errors("POST", "/api/v1/undo", status, media, body)
        check(not wrong, f"undo: {status}: {wrong}")
        if status != 200:
            break
    check(status == 409, f"after everything is undone, undo returns {status}: {body}")
    server.ask("POST", "/api/v1/undo", 409, body="{}")


def ask_past(server):
    path = "/api/v1/history"
    server.until(lambda: len(server.ask("GET", path, 200)["at"]) > 1, "the history gets samples")
    for query in ("", "step=1s", "step=10s", "stage=work", "stage=web&step=10s", "from=-5", "from=-5&to=-1", "from=0&to=1",
                  "from=-1.5", "to=99999999999", "&", "stage="):
        h = server.ask("GET", path, 200, query=query)
        for name, stage in h["stages"].items():
            columns = [c for key, c in stage.items() if key != "classes"]
            columns += [c for one in stage.get("classes", []) for c in one.values()]
            check(all(len(c) == len(h["at"]) for c in columns), f"history?{query}: columns of {name}")
            check(("classes" in stage) == ("stage=w" in query), f"history?{query}: fields of {name}")
    for query in ("step=2s", "step=", "from=x", "from=", "from=-1&to=-900", "x=1", "step=1s&step=1s", "from=1e5",
                  "from=100000000001"):
        server.ask("GET", path, 400, query=query)
    server.ask("GET", path, 404, query="stage=nosuch")
    server.ask("GET", path, 404, query="stage=" + "x" * 200)
    path = "/api/v1/requests/slowest"
    for query in ("", "class=vip", "class=", "class=bulk&n=1"):
        check(server.ask("GET", path, 200, query=query)["requests"], f"slowest?{query}: no requests")
    server.ask("GET", path, 404, query="class=nosuch")
    server.ask("GET", path, 400, query="class=" + "x" * 200)
    path = "/api/v1/stages/{stage}/tap"
    after = 0
    for query in ("", "slow=1ms", "class=vip&outcome=ok", "outcome=shed&n=5", "outcome=failed"):
        after = server.ask("GET", path, 200, query=query, stage="work")["after"]
    server.ask("GET", path, 200, query=f"outcome=failed&after={after}", stage="work")
    for query in ("slow=5", "outcome=good", "after=x", "n=0"):
        server.ask("GET", path, 400, query=query, stage="work")
    server.ask("GET", path, 404, stage="nosuch")
    server.ask("GET", path, 404, query="class=nosuch", stage="work")
    check(server.ask("GET", "/api/v1/decisions", 200, query="n=3")["decisions"], "there are no decisions")
    check(len(server.ask("GET", "/api/v1/acts", 200, query="n=2")["acts"]) == 2, "there are not two acts")


# ---- reloads ----

def act_on_reload(server, yaml):
    """A preview, a change of the running graph, a new graph, and a file that is refused."""
    path = "/api/v1/reload"

    def order(want, body, **put):
        with open(yaml, "w", encoding="utf-8") as f:
            f.write(SERVER.replace(put.get("old", ""), put.get("new", "")))
        ordered = server.ask("POST", path, 200, body=body)
        server.until(lambda: server.ask("GET", path, 200)["done"] >= ordered["id"], f"order {ordered['id']} is done")
        told = server.ask("GET", path, 200)
        last = told["last"]
        check(last["result"] == want and last["id"] == ordered["id"], f"a reload to {put}: {last}")
        check((want == "failed") == bool(last["errors"] and last["text"]), f"errors of {last}")
        return told

    def effects(told):
        return {c["effect"] for c in told["last"]["changes"]}

    live = {"old": "max: 4 }", "new": "max: 5 }"}
    watcher = Watcher(server, "hz=0", {"hello", "config", "reload"})
    check(server.ask("GET", path, 200)["last"] is None, "there is a last order before the first one")
    check(effects(order("preview", '{"preview": true}', **live)) == {"live"}, "the preview does not show a live change")
    check(order("unchanged", "")["failure"] is None, "a reload without changes counts as a failure")
    check(effects(order("turned", '{"preview": false}', **live)) == {"live"}, "the reload is not a live change")
    told = order("failed", "{}", old="use: burn", new="use: burnt")
    check("^^^" in told["last"]["text"] and told["failure"] == told["last"], f"a bad file: {told}")
    told = order("preview", '{"preview": true}', old="127.0.0.1:0\" }\nalerts", new="127.0.0.1:9\" }\nalerts")
    check("restart" in effects(told) and told["failure"]["result"] == "failed", f"a preview must not clear the failure: {told}")
    told = order("followed", "{}", old="gone", new="lost")
    check({"add", "remove", "live"} <= effects(told) and told["failure"] is None and told["graph"] == 1, f"another stage: {told}")
    check(any(s["name"] == "lost" for s in server.ask("GET", "/api/v1/graph", 200)["stages"]), "the new stage is missing")
    told = order("followed", None)
    check((told["total"], told["failed"], told["graph"]) == (5, 1, 2), f"counts: {told}")
    for body in ("[]", "{", '{"preview": 1}', '{"preview": true, "x": 1}', '{"x": true}'):
        server.ask("POST", path, 400, body=body)
    watcher.end()


def act_on_stop(server):
    """The end of the server: asked twice, and read until it is there."""
    path = "/api/v1/stop"
    told = server.ask("GET", path, 200)
    check(told["state"] == "running" and told["report"] is None, f"a running server: {told}")
    for body in ("[]", '{"now": 1}', '{"now": true, "x": 1}'):
        server.ask("POST", path, 400, body=body)

    def has_stopped(method, **body):
        try:
            return server.ask(method, path, 200, **body)["state"] == "stopped"
        except (OSError, http.client.HTTPException):
            return True  # it waits for a reader for a second only, which a busy machine may take

    # the answer to the first request may have the report already
    if not has_stopped("POST", body="{}") and not has_stopped("POST"):
        server.until(lambda: has_stopped("GET"), "the server has stopped")


# ---- events ----

def ask_events(server):
    for hz in server.document.paths["/events"]["get"]["parameters"][0]["schema"]["enum"]:
        Watcher(server, f"hz={hz}", {"hello", "tick"} if hz else {"hello"}).end()
    Watcher(server, "last=999999999999999999", {"hello", "tick"}).end()
    for query in ("hz=2", "hz=", "last=x", "last=1000000000000000000", "x=1"):
        server.ask("GET", "/events", 400, query=query)
    server.ask("GET", "/events", 403, headers={"Origin": "http://elsewhere.example"})
    server.ask("HEAD", "/events", 200)


# ---- itself ----

def check_itself(server):
    """Small mistakes in the document must be found."""
    def found(change, what):
        d = Document(copy.deepcopy(server.document.doc))
        change(d.doc)
        wrong = d.against(parse(server.bodies["GET", "/api/v1", 200][1]))
        for (method, path, status), (media, body) in server.bodies.items():
            if method == "GET" and path in ("/api/v1/graph", "/api/v1/stages") and not wrong:
                wrong = d.answer_errors(method, path, status, media, body)
        check(wrong, f"not detected: {what}")

    schemas = ("components", "schemas")
    found(lambda d: d[schemas[0]][schemas[1]]["Stage"]["properties"].pop("held"), "a member that is not described")
    found(lambda d: d[schemas[0]][schemas[1]]["Stage"]["required"].append("heldd"), "a member that does not exist")
    found(lambda d: d[schemas[0]][schemas[1]]["Count"].update(type="string"), "a different type")
    found(lambda d: d[schemas[0]][schemas[1]]["Placement"]["enum"].remove("inline"), "a word that is not described")
    found(lambda d: d["paths"].pop("/api/v1/changes"), "a route that is not described")
    found(lambda d: d["paths"].update({"/x": {"get": {}}}), "a route that does not exist")
    found(lambda d: d["paths"]["/api/v1/graph"]["get"]["responses"].pop("200"), "a status that is not described")


def take_document(server, path):
    """Reads the document from this server. It must be the file in the source tree."""
    status, media, body, _ = server.raw("GET", "/api/v1/openapi.json")
    check(status == 200 and media == "application/json", f"openapi.json: {status} {media}")
    with open(path, "rb") as f:
        check(body == f.read(), "the program's document differs from the file in the tree")
    server.document = Document(parse(body))
    schemas = server.document.doc["components"]["schemas"]
    check(set(schemas["ShedTotals"]["properties"]) == set(schemas["ShedRates"]["properties"]),
          "ShedTotals and ShedRates list different reasons")


TOKENS = {"boss": secrets.token_urlsafe(32), "eye": secrets.token_hex(16)}


def try_tokens(program, work, document):
    """A server with tokens: every route without a token, as a viewer and as an operator.

    Returns the responses seen.
    """
    yaml = os.path.join(work, "tokens.yaml")
    for name, token in TOKENS.items():
        with open(os.open(os.path.join(work, name), os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as f:
            f.write(token + "\n")
    with open(yaml, "w", encoding="utf-8") as f:
        f.write(SERVER.replace('admin: { listen: "127.0.0.1:0" }', '''admin:
  listen: "127.0.0.1:0"
  tokens: { boss: { role: operator, file: boss }, eye: { file: eye } }'''))
    server = Server(program, yaml, work)
    try:
        server.document = document
        try_roles(server)
        try_session(server)
    finally:
        code = server.stop()
    check(code == 0, f"the server with tokens ended with {code}: {server.said()}")
    for name, token in TOKENS.items():
        check(token not in server.said(), f"the log contains the token of {name}")
        check(all(token.encode() not in body for _, body in server.bodies.values()), f"a response contains the token of {name}")
    return server.seen


def bearer(name):
    return {"Authorization": f"Bearer {TOKENS[name]}"}


def try_roles(server):
    page = server.raw("GET", "/")[1].startswith("text/html")
    for method, path, operation in server.document.operations():
        if path == "/events" or path == "/{file}" and not page:
            continue
        public = operation.get("security") == []
        headers = {} if method == "GET" else dict(JSON)
        body = None if method in ("GET", "DELETE") else '{"value": "1"}' if path.endswith("{knob}") else "{}"
        server.ask(method, path, 200 if public else 401, body=body, headers=headers, **names_of(path))
        session = path == "/api/v1/session"
        want = 403 if method != "GET" and not session else 409 if method == "DELETE" else 200
        server.ask(method, path, want, body=body, headers=dict(headers, **bearer("eye")), **names_of(path))
        if method == "GET" or session:
            server.ask(method, path, want, body=body, headers=dict(headers, **bearer("boss")), **names_of(path))
        else:
            sent = "[]" if path == "/api/v1/stop" else body  # not an end of the server, which has more to answer
            status = server.raw(method, path.format(**names_of(path)), sent, dict(headers, **bearer("boss")))[0]
            check(status not in (401, 403, 405, 429), f"{method} {path}: an operator gets {status}")
    status, _, _, _ = server.raw("GET", "/events")
    check(status == 401, f"/events without a token: {status}")
    check(server.ask("GET", "/api/v1/graph", 200, headers=bearer("eye"))["role"] == "viewer", "the viewer's role is not viewer")
    check(server.ask("GET", "/api/v1/graph", 200, headers=bearer("boss"))["role"] == "operator", "the operator's role is not operator")


def try_session(server):
    c = http.client.HTTPConnection("127.0.0.1", server.admin, timeout=PATIENCE_S)
    c.request("POST", "/api/v1/session", body="{}", headers=dict(JSON, **bearer("boss")))
    cookie = c.getresponse().headers.get("Set-Cookie", "")
    c.close()
    check("HttpOnly" in cookie and "SameSite=Strict" in cookie and "Secure" not in cookie, f"the cookie is {cookie}")
    mine = {"Cookie": "other=1; " + cookie.split(";")[0]}
    here = dict(JSON, Origin=f"http://127.0.0.1:{server.admin}", **mine)
    path = "/api/v1/session"
    who = server.ask("GET", path, 200, headers=mine)
    check(who["name"] == "boss" and 0 < who["ends_in_seconds"] <= 12 * 3600, f"a session is {who}")
    server.ask("POST", "/api/v1/stages/{stage}/pause", 403, body="{}", headers=dict(JSON, **mine), stage="work")
    server.ask("POST", "/api/v1/stages/{stage}/pause", 200, body="{}", headers=here, stage="work")
    server.ask("POST", "/api/v1/undo", 403, body="{}", headers=dict(here, Origin="http://elsewhere.example"))
    server.ask("POST", "/api/v1/undo", 415, body="x=1", headers=dict(here, **{"Content-Type": "text/plain"}))
    server.ask("POST", "/api/v1/undo", 200, body="{}", headers=here)
    acts = server.ask("GET", "/api/v1/acts", 200, headers=mine)["acts"]
    check(acts and all(act["actor"] == "boss" for act in acts), f"acts of boss are {acts}")
    server.ask("POST", path, 409, body="{}", headers=here)
    server.ask("DELETE", path, 200, headers=here)
    server.ask("GET", path, 401, headers=mine)


def try_described(program, top, work):
    """All requests to the server above. Returns the document."""
    yaml = os.path.join(work, "described.yaml")
    with open(yaml, "w", encoding="utf-8") as f:
        f.write(SERVER)
    server = Server(program, yaml, work)
    load = None
    try:
        take_document(server, os.path.join(top, "admin", "openapi.json"))
        for fault in faults_of(server.document):
            check(False, fault)
        for wrong in server.document.against(server.ask("GET", "/api/v1", 200)):
            check(False, wrong)
        ask_all(server, every_knob=True)
        load = Load(server)
        server.until(lambda: sum(c["completed_total"] and sum(c["shed_total"].values())
            for c in server.ask("GET", "/api/v1/stages/{stage}", 200, stage="work")["classes"]), "events are completed and shed")
        watcher = Watcher(server, "hz=4", {"hello", "tick", "decision", "act"})
        for step in (ask_all, act_on_knobs, act_on_group_knobs, act_on_class_knobs, act_on_stages, act_on_all, ask_past, ask_pages, ask_tags, ask_ranges, ask_nowhere, ask_badly, ask_events):
            step(server)
        act_on_reload(server, yaml)
        act_on_purge(server)
        act_on_save(server, yaml)
        watcher.end()
        undo_all(server)
        ask_all(server)
        check_itself(server)
        server.seen |= try_tokens(program, work, server.document)
        load.stop()
        load = None
        act_on_stop(server)
        for method, path, operation in server.document.operations():
            for status in operation["responses"]:
                if status.startswith("2"):
                    check((method, path, int(status)) in server.seen, f"{method} {path}: {status} was never seen")
    finally:
        if load:
            load.stop()
        code = server.stop()
    check(code == 0, f"the server ended with {code}: {server.said()}")
    return server.document


def try_shipped(program, top, work, document):
    """The servers in config/servers, which have stages that the server above does not have."""
    folder = os.path.join(top, "config", "servers")
    key, cert = os.path.join(work, "site.key"), os.path.join(work, "site.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1",
                    "-subj", "/CN=localhost", "-keyout", key, "-out", cert], check=True, capture_output=True)
    os.chmod(key, 0o600)
    trusting = ssl.create_default_context(cafile=cert)
    trusting.check_hostname = False
    for name in sorted(n for n in os.listdir(folder) if n.endswith(".yaml")):
        server = Server(program, os.path.join(folder, name), work,
                        {"PORT": "0", "ADMIN_PORT": "0", "CERT": cert, "KEY": key})
        try:
            server.document = document
            for _ in range(3):
                c = http.client.HTTPSConnection("127.0.0.1", server.web, timeout=PATIENCE_S, context=trusting) \
                    if server.tls else http.client.HTTPConnection("127.0.0.1", server.web, timeout=PATIENCE_S)
                c.request("GET", "/")
                c.getresponse().read()
                c.close()
            ask_all(server, every_knob=True)
        finally:
            code = server.stop()
        check(code == 0, f"{name} ended with {code}: {server.said()}")


def main():
    program, top = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory() as work:
        try:
            document = try_described(program, top, work)
            try_shipped(program, top, work, document)
        except Wrong as e:
            check(False, str(e))
        except (LookupError, OSError, TypeError, ValueError, http.client.HTTPException):
            check(False, traceback.format_exc())
    return result()


sys.exit(main())
