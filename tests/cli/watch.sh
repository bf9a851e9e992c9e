#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Watching a running server from the command line: top as frames and on a terminal with keys, trace.
# Arguments: PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

sed -i 's/to: { request: hello }/to: { request: slow }/' server.yaml
echo '  slow:  { use: delay, with: { time: 5ms }, to: hello }' >>server.yaml

one() { weir "$@" --admin "$admin"; }

# ---- without a server ----
weir top --admin http://127.0.0.1:1
is exit 3
is err has 'no weir server answers'
weir trace --admin http://127.0.0.1:1
is exit 3
weir top -n none
is exit 2
weir trace -n 0
is exit 2
for verb in top trace; do
	weir "$verb" --help
	is exit 0
	is out has "weir $verb"
done

launch server.yaml

# ---- frames ----
one top
is exit 0
is out has 'tested  up 0:00:'
is out has 'slow'
is out has 'running'
is out lacks $'\033'
checks=$((checks + 1))
awk 'length > 80 { bad = 1 } END { exit bad }' <<<"$out" || fail 'a line is longer than 80'
one top -n 2
is exit 0
checks=$((checks + 1))
[ "$(grep -c '^STAGE ' <<<"$out")" = 2 ] || fail 'expected two frames'

# ---- the slowest ----
one trace
is exit 0
is out has 'no request ended'
curl -sS --max-time 60 "${web}a?b=c" >/dev/null
one trace
is exit 0
is out has 'GET /a?b=c  (default, ok,'
is out has 'slow '
is out has '#'
one trace -n 1 -o json
is exit 0
is out has '"path": "GET /a?b=c"'
is out has '"stage": "hello"'

# The lines add up: time spent in no stage is named and drawn. A made-up endpoint gives it to the
# millisecond.
cat >slowest.py <<'PY'
import http.server, json, sys
def span(stage, after, wait, service):
    return {"stage": stage, "after": after, "wait": wait, "service": service}
def request(took, spans):
    return {"id": 1, "class": "default", "at": 1.7e9, "took": took, "outcome": "ok", "path": "GET /x", "trace": "", "end": "b",
            "hops": len(spans), "spans": spans}
SLOW = request(0.08, [span("a", 0.04, 0.005, 0.005), span("b", 0.06, 0.0, 0.01)])  # 40 in front, 10 between, 10 behind
FULL = request(0.02, [span("a", 0.0, 0.005, 0.005), span("b", 0.01, 0.0, 0.01)])
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"requests": [SLOW, FULL], "next": None}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
PY
mkfifo port
timeout 60 python3 slowest.py >port 2>/dev/null &
maker=$!
read -r -t 30 at <port
weir trace --admin "http://127.0.0.1:$at"
is exit 0
is out has '(at no stage)'
is out has '60ms |----------------    ----    ----|'
checks=$((checks + 1))
[ "$(grep -c 'at no stage' <<<"$out")" = 1 ] || fail 'a request whose stages have all its time has none elsewhere'
kill "$maker"

# ---- the configuration ----
about='GET /api/v1/config'
out=$(curl -sS --max-time 60 "${admin}api/v1/config") rc=$?
is exit 0
is out has '"file":"server.yaml","text":"weir: 1\nname: tested\n'
is out has '${ADMIN:-127.0.0.1:0}'
is out has '"path":"admin.listen","value":null'
is out has '"path":"stages.slow.with.time","value":"5ms"'
is out has '"path":"name","value":"tested"'
is out lacks '"path":"stages.slow.queue.limit"' # no line sets it
is out has '"stages.slow.queue.limit":"4096"'

# ---- on a terminal ----
cat >terminal.py <<'PY'
"""terminal.py PROGRAM ADMIN: weir top on a terminal of 80 x 24; keys, and what the screen then shows."""
import fcntl, os, pty, select, struct, sys, termios, time

pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execv(sys.argv[1], [sys.argv[1], "top", "--admin", sys.argv[2]])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
seen = b""


def until(word, since=0):
    """Read until `word` was shown behind place `since`; the place behind it."""
    global seen
    end = time.monotonic() + 60
    while word not in seen[since:]:
        if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
            sys.exit(f"{word} was not shown; {seen[since:]!r}")
        try:
            seen += os.read(fd, 65536)
        except OSError:
            sys.exit(f"{word} was not shown before it ended; {seen[since:]!r}")
    return since + seen[since:].index(word) + len(word)


at = until(b"q quit")
assert b"\033[?1049h" in seen[:at]
os.write(fd, b"/slo\n")
at = until(b"/ filter slo", at)
os.write(fd, b"p")
at = until(b"slow is paused", at)
os.write(fd, b"r")
at = until(b"slow is running", at)
os.write(fd, b"s")
at = until(b"s sort (shed)", at)
os.write(fd, b"\033[B\033[A")  # arrows do no harm
os.write(fd, b"w")
at = until(b"(any key)", at)
os.write(fd, b" ")
at = until(b"q quit", at)
os.write(fd, b"q")
at = until(b"\033[?1049l", at)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
PY
about='weir top on a terminal'
python3 terminal.py "$program" "$admin" >out 2>err
rc=$? out=$(<out) err=$(<err)
is exit 0

kill -TERM "$pid"
ended
is exit 0
finish
