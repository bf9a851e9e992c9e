#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# weir profile: its tables, with a made-up server, to the letter; and the sums of a real one.
# Arguments: PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

# ---- the command line ----
weir profile --help
is exit 0
is out has 'weir profile --for 10s'
weir profile --for 1ms
is exit 2
is err has '--for'
weir profile --for 100ms --admin http://127.0.0.1:1
is exit 3
is err has 'no weir server answers'

# ---- two answers of a made-up server ----
# made_up WHICH: set $at to its address.
made_up() {
	rm -f port
	timeout 120 python3 "$top/tests/cli/two_profiles.py" port "$1" 2>/dev/null &
	maker=$!
	until [ -s port ]; do
		kill -0 "$maker" || break
		sleep 0.05
	done
	at=http://127.0.0.1:$(<port)
}

# golden FILE: the output is this, whatever the address.
golden() {
	checks=$((checks + 1))
	diff <(sed "s|$at|URL|" <<<"$out") "$top/tests/cli/$1" >"$work/diff" ||
		fail "not as $1: $(<"$work/diff")"
}

made_up later
weir profile --for 100ms --admin "$at"
is exit 0
golden profile.txt
checks=$((checks + 1))
awk 'length > 100 { bad = 1 } END { exit bad }' <<<"$out" || fail 'a line is longer than 100'
weir profile --for 100ms --admin "$at" -o json
is exit 0
golden profile.json
kill "$maker"

made_up reloaded
weir profile --for 100ms --admin "$at"
is exit 0
is out has '2.0 s, since a reload has replaced the stages'
is out has '3000         6      3000'
kill "$maker"

# ---- a server ----
sed -i 's/^stages:/groups: { core: { schedule: fifo, cores: 1 } }\nstages:/; s/to: { request: hello }/to: { request: slow }/' server.yaml
echo '  slow:  { use: burn, group: core, with: { time: 1us }, to: hello }' >>server.yaml
sed -i 's/hello: { use: respond,/hello: { use: respond, group: core,/' server.yaml
launch server.yaml

# load: requests during the window, until the verb has ended.
load() {
	while kill -0 "$1" 2>/dev/null; do
		curl -sS --max-time 60 "$web" >/dev/null
	done
}
about='weir profile, during requests'
"$program" profile --for 500ms --admin "$admin" -o json >"$work/out" 2>"$work/err" </dev/null &
verb=$!
load "$verb"
wait "$verb"
rc=$?
out=$(<"$work/out") err=$(<"$work/err")
is exit 0
is out has '"on": "core/0"'
is out has '"replaced": false'
python3 - "$work/out" <<'PY' || fail 'the numbers of the window do not fit'
import json, sys
doc = json.load(open(sys.argv[1]))
stages = {s["name"]: s for s in doc["stages"]}
def total(stage, key):
    return sum(row[key] for row in stages[stage]["rows"])
arcs = {(a["from"], a["to"]): 0 for a in doc["arcs"]}
for a in doc["arcs"]:
    arcs[a["from"], a["to"]] += a["sent"]
n = total("hello", "started")
assert n > 0 and 0.4 < doc["seconds"], doc["seconds"]
# one request at a time: of the last one, a part may be within the window
for have in (total("web", "started"), total("slow", "started"), total("slow", "completed"), total("hello", "completed"),
             arcs["web", "slow"], arcs["slow", "hello"]):
    assert abs(have - n) <= 1, (have, n)
for row in stages["slow"]["rows"]:
    if row["waits"]:
        assert 0 <= row["wait_mean"] <= row["wait_longest"], row
        assert abs(row["queue_mean"] - row["wait_mean"] * row["waits"] / doc["seconds"]) < 1e-9, row
PY
checks=$((checks + 1))
kill "$pid"
ended
finish
