#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The width of a stage that holds events: what ps, top, show, why, log, describe and the metrics say
# about it. Arguments: PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

cat >held.yaml <<'YAML'
weir: 1
name: held
admin: { listen: "127.0.0.1:0" }
drain: { grace: 1s } # then the stage ends its holds
stages:
  web:    { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: db } }
  db:     { use: hold, with: { time: 1m }, width: { max: 2, policy: static }, slo: 1h, to: answer }
  answer: { use: respond, with: { body: "done\n" }, threads: inline }
YAML
sed 's/time: 1m/time: 1ms, capacity: 1/; s/width: .*slo: 1h/slo: 10s/' held.yaml >found.yaml

one() { weir "$@" --admin "$admin"; }

# shows TEXT VERB...: wait until the output of the verb has the text.
shows() {
	until [[ $("$program" "${@:2}" --admin "$admin") == *"$1"* ]]; do :; done
}

weir describe stage
is exit 0; is out has 'width            how many events a stage that holds them may have in work at once'
weir describe hold
is exit 0; is out has "holds events while something else works on them; 'width:' says how many at once"
weir describe delay
is exit 0; is out lacks 'width'
weir explain held.yaml stages.db
is exit 0; is out has 'stages.db.width.max'

# ---- two are held, the third waits ----
launch held.yaml
for i in 1 2 3; do
	curl -sS "$web$i" >"answer$i" &
done
shows 'db: 2 of 2 under way' ps
shows '1 of 4096' show db

one ps
is exit 0; is out has 'db: 2 of 2 under way'; is out lacks 'answer: '
one top
is exit 0; is out has 'db: 2 of 2 under way'
one show db
is exit 0; is out has 'width      2 of 2 under way (min 1, max 2)'; is out has ', 2 of them held'
one show answer
is exit 0; is out lacks 'under way'
one why db
is exit 0; is out has 'width    2 of 2 under way'
one log
is exit 0; is out lacks ' width '

one set db.width.max=3
is exit 0
shows 'db: 3 of 3 under way' top
one log
is exit 0; is out has 'static    width     db: 2 -> 3, width.max is 3 now (max 3)'
one why db
is exit 0; is out has 'width 2 -> 3 at once at '; is out has 'because  width.max is 3 now'
one set answer.width.max=3
is failed; is err has 'holds no events, so it has no width'
one set db.width.min=4
is failed; is err has 'width.min 4 would be greater than width.max 3'
one set db.width.max=5000
is failed; is err has 'width.max 5000 would be greater than queue.limit 4096'

about='GET /metrics'
out=$(curl -sS --max-time 60 "${admin}metrics") rc=$?
is exit 0
is out has 'weir_stage_width{stage="db"} 3'
is out has 'weir_stage_in_work{stage="db"} 3'
is out has 'weir_stage_refused_behind_total{stage="db"} 0'
is out lacks 'weir_stage_width{stage="answer"}'

kill -TERM "$pid"
ended

# ---- the policy finds a width, and says why ----
launch found.yaml
"$program" bench "$web" --closed --connections 16 --for 1h --warmup 0s -q >/dev/null 2>&1 &
load=$!
shows 'weir      width     db: 4 -> ' log
shows ' ms each, ' ps
one top
is exit 0; is out has ' under way, '; is out has ' ms each, '
one why db
is exit 0; is out has ' at once / '; is out has ' ms each, '; is out has ' at once at '
one log -o json
is exit 0; is out has '"action": "width"'
# A reload that replaces the graph keeps the width within its new bounds.
sed -i 's/slo: 10s/slo: 10s, width: { min: 100 }/' found.yaml
echo '  more:   { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: db } }' >>found.yaml
one reload
is exit 0
one log
is exit 0; is out has ' -> 100, width.min is 100 now (min 100)'
kill -KILL "$load"
kill -TERM "$pid"
ended
is exit 0

finish
