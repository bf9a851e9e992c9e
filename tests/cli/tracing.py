#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traces from end to end: tracing.py PROGRAM

A traceparent comes in, and everything reported about the request contains its trace: logs,
refusals, slowest requests, taps, and the export to a fake collector that works, is slow, or is
down. Every wait is for a condition and lasts at most a minute. Prints what failed and exits 1.
"""
import http.client
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = sys.argv[1]
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
YAML = """
weir: 1
name: traced
admin: {{ listen: "127.0.0.1:0" }}
{trace}
classes: {{ vip: {{ match: {{ path: /vip* }} }}, other: {{}} }}
stages:
  web:  {{ use: http.server, with: {{ listen: "127.0.0.1:0", deadline: header }}, to: {{ request: log }} }}
  log:  {{ use: access_log, with: {{ file: "{log}", flush: 1ms }}, to: work, threads: inline }}
  work: {{ use: delay, with: {{ time: {delay} }}, to: answer }}
  answer: {{ use: respond, with: {{ body: "x\\n" }}, threads: inline }}
"""
checks = failures = 0


def check(good, what):
    global checks, failures
    checks += 1
    if not good:
        failures += 1
        print(f"FAILED: {what}", file=sys.stderr)
    return good


def until(condition, what):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if condition():
            return check(True, what)
        time.sleep(0.01)
    return check(False, what)


class Collector:
    """Records every POST and, once `go` is set, answers with the next of `statuses`.

    The last status is repeated for ever.
    """

    def __init__(self, *statuses):
        statuses = list(statuses or [200])
        self.posts, self.at, self.go, collector = [], [], threading.Event(), self
        self.go.set()

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.at.append(time.monotonic())
                collector.posts.append((self.path, self.headers["Content-Type"], json.loads(body)))
                collector.go.wait()
                self.send_response(statuses.pop(0) if len(statuses) > 1 else statuses[0])
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1/traces"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def spans(self):
        return [s for _, _, doc in list(self.posts) for r in doc["resourceSpans"]
                for scope in r["scopeSpans"] for s in scope["spans"]]

    def end(self):
        self.go.set()
        self.server.shutdown()
        self.server.server_close()


class Server:
    def __init__(self, folder, trace="", delay="1ms"):
        self.log = os.path.join(folder, "access.log")
        path = os.path.join(folder, "server.yaml")
        with open(path, "w") as f:
            f.write(YAML.format(trace=trace, log=self.log, delay=delay))
        self.err_path = os.path.join(folder, "err")
        with open(self.err_path, "w") as err:
            self.process = subprocess.Popen([PROGRAM, "run", path], stdout=subprocess.PIPE, stderr=err,
                                            stdin=subprocess.DEVNULL, text=True)
        self.web = self.admin = None
        while not (self.web and self.admin):
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("FAILED: the server did not start: " + self.err())
            port = int(re.search(r":(\d+)/", line).group(1))
            if " admin " in line:
                self.admin = port
            else:
                self.web = port

    def err(self):
        with open(self.err_path) as f:
            return f.read()

    def get(self, path="/", **fields):
        c = http.client.HTTPConnection("127.0.0.1", self.web, timeout=60)
        c.request("GET", path, headers={k.replace("_", "-"): v for k, v in fields.items()})
        answer = c.getresponse()
        answer.read()
        c.close()
        return answer

    def ask(self, path, status=200):
        c = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=60)
        c.request("GET", path)
        answer = c.getresponse()
        body = answer.read()
        c.close()
        check(answer.status == status, f"{path}: {answer.status} instead of {status}: {body[:200]}")
        return body.decode()

    def metric(self, name):
        return sum(float(l.split()[-1]) for l in self.ask("/metrics").splitlines() if l.startswith(name))

    def logged(self):
        try:
            with open(self.log) as f:
                return f.read().splitlines()
        except FileNotFoundError:
            return []

    def weir(self, *args):
        return subprocess.run([PROGRAM, *args, "--admin", f"http://127.0.0.1:{self.admin}"], capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=120)

    def end(self, within=60):
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        rc = self.process.wait(within)
        self.process.stdout.close()
        check(rc == 0, f"the server ended with {rc}: {self.err()}")
        return time.monotonic() - begun


def attributes(span):
    return {a["key"]: list(a["value"].values())[0] for a in span["attributes"]}


# ---- traceparent ----

def test_traceparent(folder):
    s = Server(folder)
    check(s.get("/a", traceparent=TRACEPARENT).status == 200, "a valid traceparent is accepted")
    for bad in ("00-" + "0" * 32 + f"-{PARENT}-01", "junk", TRACEPARENT + "-x", TRACEPARENT.upper()):
        check(s.get("/b", traceparent=bad).status == 200, f"a malformed traceparent does no harm: '{bad}'")
    check(s.get("/c").status == 200, "a request without a trace is answered")
    until(lambda: len(s.logged()) == 6, "six lines in the log")
    check(s.logged()[0].endswith(f" trace={TRACE}"), "the log names the trace: " + s.logged()[0])
    check(not any(TRACE in line for line in s.logged()[1:]), "the other lines do not name it")
    check(re.search(" trace=[0-9a-f]{32}$", s.logged()[5]), "one of the slowest requests gets a trace of its own: " + s.logged()[5])
    until(lambda: s.metric("weir_http_hints_ignored_total") == 4, "malformed traceparents are counted")
    shed = s.get("/d", traceparent=TRACEPARENT, x_deadline_ms="0")
    check(shed.status == 503 and f"; trace={TRACE}" in shed.headers["X-Weir-Shed"],
          f"a refusal names the trace: {shed.status} {shed.headers['X-Weir-Shed']}")
    check("trace=" not in s.get("/d", x_deadline_ms="0").headers["X-Weir-Shed"], "a refusal without a trace names none")
    slowest = {r["path"]: r for r in json.loads(s.ask("/api/v1/requests/slowest"))["requests"]}
    check(slowest["GET /a"]["trace"] == TRACE, "the slowest requests have the trace from the client")
    check(re.fullmatch("[0-9a-f]{32}", slowest["GET /c"]["trace"]) and slowest["GET /c"]["trace"] != TRACE,
          "or a trace of their own")
    check(slowest["GET /a"]["end"] == "answer", "the slowest requests show where they ended")
    shown = s.weir("trace")
    check(shown.returncode == 0 and f"trace {TRACE}" in shown.stdout, "weir trace shows it: " + shown.stdout)
    s.end()


# ---- taps ----

def test_tap(folder):
    s = Server(folder, delay="5ms")
    tap = "/api/v1/stages/work/tap"
    first = json.loads(s.ask(tap))
    check(first["requests"] == [] and first["dropped"] == 0, "a new tap is empty")
    s.get("/vip/1", traceparent=TRACEPARENT)
    s.get("/2", x_deadline_ms="0")
    s.get("/3")
    got = []
    cursor = first["after"]

    def more():
        nonlocal cursor
        doc = json.loads(s.ask(f"{tap}?after={cursor}"))
        cursor = doc["after"]
        got.extend(doc["requests"])
        return len(got) >= 2

    until(more, "the tap shows two requests")
    check([r["path"] for r in got] == ["GET /vip/1", "GET /3"], f"the tap shows the right requests: {[r['path'] for r in got]}")
    check(got[0]["class"] == "vip" and got[0]["trace"] == TRACE, f"the tap shows class and trace: {got[0]}")
    work = [x for x in got[0]["spans"] if x["stage"] == "work"]
    check(len(work) == 1 and work[0]["service"] >= 0.004, f"the tap shows the time at the stage: {got[0]['spans']}")
    for query in ("slow=5", "slow=-1ms", "outcome=good", "after=x", "after=-1", "n=0", "slow=" + "1" * 40 + "ms"):
        s.ask(f"{tap}?{query}", 400)
    s.ask(tap + "?class=nosuch", 404)
    s.ask("/api/v1/stages/wrok/tap", 404)
    # The command with a filter. Requests continue until it has enough of them.
    done = threading.Event()

    def load():
        while not done.is_set():
            s.get("/vip/x")
            s.get("/y")

    thread = threading.Thread(target=load)
    thread.start()
    one = s.weir("tap", "work", "--class", "vip", "--slow", "1ms", "-n", "3", "--for", "60s")
    check(one.returncode == 0 and len(one.stdout.splitlines()) == 3, f"three lines: {one.stdout}{one.stderr}")
    for line in one.stdout.splitlines():
        check(re.fullmatch(r"\S+ +\S+ ok +vip:.* work \S+\+\S+ .*GET /vip/x  [0-9a-f]{32}", line), f"a line: {line}")
    two = s.weir("tap", "work", "-n", "2", "-o", "json", "--outcome", "ok")
    check([sorted(json.loads(x)) for x in two.stdout.splitlines()] ==
          [["at", "child_spans", "children", "class", "end", "hops", "id", "outcome", "path", "spans", "took", "trace"]] * 2, f"as JSON: {two.stdout}")
    none = s.weir("tap", "work", "--slow", "10m", "--for", "300ms")
    check(none.returncode == 0 and none.stdout == "", "nothing is that slow")
    done.set()
    thread.join()
    # Requests refused by the very first admission have passed no stage, but they were offered to
    # that one.
    shed = []
    cursor = json.loads(s.ask("/api/v1/stages/log/tap?outcome=shed"))["after"]

    def refused():
        nonlocal cursor
        s.get("/z", x_deadline_ms="0")
        doc = json.loads(s.ask(f"/api/v1/stages/log/tap?outcome=shed&after={cursor}"))
        cursor = doc["after"]
        shed.extend(doc["requests"])
        return shed

    until(refused, "a refusal is seen")
    check(shed and shed[0]["end"] == "log" and shed[0]["outcome"] == "deadline" and shed[0]["spans"] == [],
          f"the refusal shows which stage refused: {shed[:1]}")
    check(s.weir("tap", "nosuch").returncode == 2, "an unknown stage exits 2")
    check(s.weir("tap", "work", "--outcome", "good").returncode == 1, "an unknown outcome is reported by the server")
    check(s.weir("tap", "work", "--slow", "a b").returncode == 2, "an option cannot inject a query")
    s.end()


# ---- the export ----

def check_span(span):
    for key, pattern in (("traceId", "[0-9a-f]{32}"), ("spanId", "[0-9a-f]{16}"), ("parentSpanId", "([0-9a-f]{16})?"),
                         ("startTimeUnixNano", "[0-9]{19}"), ("endTimeUnixNano", "[0-9]{19}")):
        check(isinstance(span.get(key), str) and re.fullmatch(pattern, span[key]), f"{key} of {span}")
    check(span["name"] and span["kind"] in (1, 2) and int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"]),
          f"name, kind, times of {span}")
    for a in span["attributes"]:
        check(sorted(a) == ["key", "value"] and len(a["value"]) == 1, f"attribute {a}")
        for kind, value in a["value"].items():
            check(kind in ("stringValue", "intValue") and isinstance(value, str), f"value of {a}")
            check(kind != "intValue" or re.fullmatch("-?[0-9]+", value), f"number of {a}")


def test_export(folder):
    collector = Collector()
    s = Server(folder, f"trace: {{ otlp: '{collector.url}', sample: 0%, slow: never }}", "5ms")
    s.get("/no")  # sampled neither by the client nor by the server
    s.get("/no", traceparent=TRACEPARENT[:-2] + "00")
    s.get("/yes?q=1", traceparent=TRACEPARENT)
    until(lambda: collector.spans(), "spans arrive")
    s.end()
    spans = collector.spans()
    path, kind, doc = collector.posts[0]
    check(path == "/v1/traces" and kind == "application/json", f"POST {path} {kind}")
    check(sorted(doc) == ["resourceSpans"] and len(doc["resourceSpans"]) == 1, "one resource")
    resource = attributes(doc["resourceSpans"][0]["resource"])
    check(resource["service.name"] == "traced", f"resource {resource}")
    for span in spans:
        check_span(span)
    roots = [x for x in spans if x["kind"] == 2]
    check(len(roots) == 1 and len(spans) == 4, f"one request with three stages is exported: {len(roots)} of {len(spans)}")
    root = roots[0]
    check(root["traceId"] == TRACE and root["parentSpanId"] == PARENT and root["name"] == "GET", f"the request: {root}")
    about = attributes(root)
    check(about["weir.request"] == "GET /yes?q=1" and about["weir.outcome"] == "ok" and about["weir.class"] == "other" and
          "status" not in root, f"attributes of the request: {about}")
    check(len({x["spanId"] for x in spans}) == 4, "spans have ids of their own")
    for x in spans:
        if x is not root:
            check(x["traceId"] == TRACE and x["parentSpanId"] == root["spanId"], f"a child of the request: {x}")
            check(int(x["startTimeUnixNano"]) >= int(root["startTimeUnixNano"]) - 1000 and
                  int(x["endTimeUnixNano"]) <= int(root["endTimeUnixNano"]) + 1000, f"within the time of the request: {x}")
    work = [x for x in spans if x["name"] == "work"][0]
    check(int(attributes(work)["weir.service_ns"]) >= 4000000 and int(attributes(work)["weir.wait_ns"]) >= 0,
          f"wait and service: {work}")
    collector.end()


def test_slowest_and_failures_are_exported(folder):
    collector = Collector()
    s = Server(folder, f"trace: {{ otlp: '{collector.url}', sample: 0% }}")
    s.get("/slow")
    until(lambda: collector.spans(), "the slowest requests are exported, too")
    root = [x for x in collector.spans() if x["kind"] == 2][0]
    check(root["parentSpanId"] == "", "the trace begins at the server")
    s.end()
    collector.end()
    s = Server(folder, f"trace: {{ otlp: '{(collector := Collector()).url}', sample: 100%, slow: never, parent: ignore }}")
    s.get("/shed", x_deadline_ms="0", traceparent=TRACEPARENT[:-2] + "00")
    until(lambda: collector.spans(), "a refusal is exported")
    root = collector.spans()[0]
    check(root["status"]["code"] == 2 and attributes(root)["weir.outcome"] == "deadline", f"a refusal is exported as an error: {root}")
    s.end()
    collector.end()


def test_no_collector(folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    s = Server(folder, f"trace: {{ otlp: 'http://127.0.0.1:{port}/v1/traces', sample: 100% }}")
    for _ in range(3):
        s.get("/")
    until(lambda: s.metric('weir_trace_failed_total') >= 1, "traces that could not be sent in five attempts are counted")
    check(s.get("/").status == 200, "requests are still answered")
    check(s.end() < 30, "the server ends in time")
    check(s.err().count("cannot be sent") == 1, f"the failure is logged once: {s.err()}")
    s = None
    collector = Collector(400)
    s = Server(folder, f"trace: {{ otlp: '{collector.url}', sample: 100% }}")
    s.get("/")
    until(lambda: s.metric('weir_trace_failed_total') >= 1, "a refusal by the collector is a failure")
    check(len(collector.posts) == 1, f"a refused batch is not sent again: {len(collector.posts)}")
    s.end()
    check("it answered 400" in s.err(), f"the refusal is logged: {s.err()}")
    collector.end()


def gaps(collector, first):
    """Did post `first` and the four after it arrive at least 1, 2, 4 and 8 s apart?"""
    at = collector.at[first:first + 5]
    return len(at) == 5 and all(at[i + 1] - at[i] >= 0.99 * 2 ** i for i in range(4))


def test_busy_collector(folder):
    """One collector is busy four times and then accepts: nothing is lost. The other one is busy five
    times: that batch is lost, and the next batch gets five attempts of its own."""
    folders = [os.path.join(folder, name) for name in "ab"]
    for name in folders:
        os.mkdir(name)
    last, never = Collector(503, 429, 502, 504, 204), Collector(503, 503, 503, 503, 503, 503, 200)
    a, b = [Server(name, f"trace: {{ otlp: '{c.url}', sample: 100% }}") for name, c in zip(folders, (last, never))]
    a.get("/")
    b.get("/")
    until(lambda: a.metric('weir_trace_sent_total') >= 1, "the fifth attempt is accepted")
    check(a.metric('weir_trace_failed_total') == 0, "no trace has failed")
    check(len(last.posts) == 5 and gaps(last, 0), f"five posts at growing distances: {last.at}")
    check(all(post == last.posts[0] for post in last.posts), "each attempt sends the same batch")
    a.end()
    check("it answered 503" in a.err() and "the collector accepts traces again" in a.err(), f"failure and recovery are logged: {a.err()}")
    check(a.err().count("cannot be sent") == 1, f"the failure is logged once: {a.err()}")
    until(lambda: b.metric('weir_trace_failed_total') >= 1, "a batch is lost after five attempts")
    check(len(never.posts) == 5 and gaps(never, 0), f"five posts: {never.at}")
    b.get("/")
    until(lambda: b.metric('weir_trace_sent_total') >= 1, "the next batch is accepted")
    check(len(never.posts) == 7, f"at its second attempt: {len(never.posts)}")
    check(b.metric('weir_trace_failed_total') == 1, "only the first batch has failed")
    b.end()
    last.end()
    never.end()


def test_busy_at_the_end(folder):
    """While the server ends, a busy collector gets one more attempt, not five."""
    collector = Collector(503)
    s = Server(folder, f"trace: {{ otlp: '{collector.url}', sample: 100% }}")
    s.get("/")
    until(lambda: collector.posts, "the first attempt arrives")
    s.end()
    check(2 <= len(collector.posts) <= 4, f"one more attempt, or those that were due: {len(collector.posts)}")
    collector.end()


def test_slow_collector(folder):
    collector = Collector()
    collector.go.clear()
    s = Server(folder, f"trace: {{ otlp: '{collector.url}', sample: 100% }}", "0")
    s.get("/")
    until(lambda: collector.posts, "the first batch is in flight")
    c = http.client.HTTPConnection("127.0.0.1", s.web, timeout=60)
    for _ in range(100):
        c.request("GET", "/")
        if c.getresponse().read() != b"x\n":
            check(False, "a request is answered while the collector is blocked")
    c.close()
    check(len(collector.posts) <= 2, "requests do not wait for the collector")
    took = s.end()
    check(took < 30, f"the end of the server does not wait for the collector: {took} s")
    collector.end()


def test_bad_addresses(folder):
    path = os.path.join(folder, "bad.yaml")
    for url in ("ftp://127.0.0.1/", "127.0.0.1", "http://"):
        with open(path, "w") as f:
            f.write(YAML.format(trace=f"trace: {{ otlp: '{url}' }}", log=os.path.join(folder, "l"), delay="0"))
        for verb in ("run", "check"):
            run = subprocess.run([PROGRAM, verb, path], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
            check(run.returncode == 1 and "bad.yaml:5:" in run.stderr and "collector" in run.stderr, f"{verb} {url}: {run.stderr}")


def has_export():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "x.yaml")
        with open(path, "w") as f:
            f.write(YAML.format(trace="trace: { otlp: 'x:' }", log=os.path.join(folder, "l"), delay="0"))
        run = subprocess.run([PROGRAM, "run", path], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        return "built without" not in run.stderr


def main():
    # Must have no effect: traces go only to the address in the YAML.
    os.environ["http_proxy"] = "http://127.0.0.1:9"
    tests = [test_traceparent, test_tap]
    if has_export():
        tests += [test_export, test_slowest_and_failures_are_exported, test_no_collector, test_busy_collector, test_busy_at_the_end,
                  test_slow_collector, test_bad_addresses]
    else:
        print("built without the export, whose tests are skipped")
    for test in tests:
        with tempfile.TemporaryDirectory() as folder:
            test(folder)
    print(f"{checks} checks, {failures} failed")
    sys.exit(failures > 0)


main()
