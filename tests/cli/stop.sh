#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `weir stop`: it waits until the server has ended, and reports whether work was lost.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

# gone: the process of the server has ended when weir stop returns.
gone() {
	checks=$((checks + 1))
	case $(ps -o stat= -p "$pid") in '' | Z*) ;; *) fail 'the process still runs' ;; esac
}

launch server.yaml
weir stop --admin "$admin"
is exit 0; is out has 'has stopped in '; is out has 'nothing was lost'; is err empty; gone
weir stop --admin "$admin"
is exit 3; is out empty
ended
is exit 0; is err has 'operator asks to stop'; is err has 'nothing was lost'

launch server.yaml
weir stop --admin "$admin" -o json
is exit 0; gone
about='the JSON of weir stop'
checks=$((checks + 1))
python3 -c '
import json, sys
doc = json.load(open(sys.argv[1]))
assert doc["state"] == "stopped" and doc["report"]["whole"] and not doc["now"], doc
assert doc["report"]["unfinished"] == doc["report"]["lost"] == 0, doc
' "$work/out" || fail 'it is another one'
ended
is exit 0

# Accepted work is finished; a limit of the command ends the wait, not the server.
cat >slow.yaml <<'YAML'
weir: 1
name: slow
admin: { listen: "127.0.0.1:0" }
drain: { grace: 60s }
stages:
  web:  { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: slow } }
  slow: { use: delay, with: { time: "${TIME}" }, threads: { min: 1, max: 1 }, to: end }
  end:  { use: respond, with: { body: "late\n" } }
YAML
# busy: the stage has a request.
busy() {
	until grep -q '^slow .* 1/1 ' <("$program" ps --admin "$admin"); do kill -0 "$pid" || break; done
}
TIME=700ms launch slow.yaml
curl -s "$web" >"$work/answer" &
client=$!
busy
weir stop --admin "$admin"
is exit 0; is out has 'nothing was lost'; gone
wait "$client"
about='the answer'
checks=$((checks + 1))
[ "$(<"$work/answer")" = late ] || fail 'the request was not finished'
ended
is exit 0

TIME=60s launch slow.yaml
curl -s "$web" >"$work/answer" &
client=$!
curl -s "$web" >"$work/answer2" &
busy
weir stop --admin "$admin" --timeout 200ms
is exit 1; is err has 'has not ended after 0.2 s'; is err has 'weir stop --now'
about='the server'
checks=$((checks + 1))
kill -0 "$pid" || fail 'it has ended'
# The second request waits in the queue and is given up; the first one is in a handler that sleeps.
weir stop --now --admin "$admin"
is exit 1; gone
ended
is exit 1
wait "$client"

# A signal as well as a request: the end is the same.
launch server.yaml
kill -TERM "$pid"
ended
is exit 0
weir stop --now now
is exit 2
finish
