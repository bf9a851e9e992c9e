#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Changes to a running server from the command line: set, unset, undo, pause, resume, drain, show,
# queue, log, save. Arguments: PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

cat >shop.yaml <<'YAML'
# The shop's server.
weir: 1
name:   shop          # two blanks on purpose
admin: { listen: "127.0.0.1:0" }
defaults:
  queue: { limit: 512 }     # for all
stages:
  web:   { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: work } }
  work:
    use: delay          # it waits
    with: { time: 1us }

    threads:
      min: 1
      # not more than the database bears
      max: 4   # four
    admission: { policy: "none" }
    to: hello
  hello: { use: respond, with: { body: "hello\n" } }
YAML
cp shop.yaml before.yaml
chmod 640 shop.yaml

# one ARGS...: a verb on the server.
one() { weir "$@" --admin "$admin"; }

# ---- without a server ----
weir set work.threads.max=3 --admin http://127.0.0.1:1
is exit 3
is err has 'no weir server answers'
weir set work
is exit 2
is err has 'STAGE.KNOB=VALUE'
weir set --admin
is exit 2
weir pause
is exit 2
is err has 'STAGE is missing'
weir log -n nine
is exit 2
for verb in set unset undo pause resume drain show queue log save; do
	weir "$verb" --help
	is exit 0
	is out has "weir $verb"
done

launch shop.yaml

# ---- knobs ----
one set work.threads.max=6
is exit 0
is out has 'work.threads.max = 6 (configured 4)'
one set work.threads.max=7 --for 10m
is exit 0
is out has 'until '
one show work
is out has 'threads.max'
is out has 'until '
one show work -o json
is out has '"overridden": "7"'
is out has '"configured": "4"'
one undo
is exit 0
is out has "undid 'set work.threads.max'"
one show work -o json
is out has '"overridden": "6"'
one unset work.threads.max
is exit 0
is out has '4 (as configured)'
one unset work.threads.max
is exit 1
is err has 'already has its configured value'
one set work.threads.max=5000
is exit 1
is err has 'from 1 to 1024'
one set wrok.threads.max=5
is exit 2
is err has "did you mean 'work'?"
one set work.threads.mx=5
is exit 2
is err has "did you mean 'threads.max'?"
one set work.threads.max=5 --for ever
is exit 1
is err has 'for:'
one set work.use=drop
is exit 2

# ---- stages ----
one pause work
is exit 0
is out has 'work is paused'
one show work
is out has 'paused'
one ps
is out has 'work is paused by an operator'; is out lacks 'hello is paused'
one why work
is out has 'state    paused by an operator'
one why
is out has 'work is paused by an operator'
curl -sS --max-time 60 "$web" >answer &
asked=$!
for _ in $(seq 600); do
	one queue work -o json
	[[ $out == *'"length": 1'* ]] && break
	sleep 0.1
done
one queue work -n 3
is exit 0
is out has '1 waiting at work'
is out has 'http.request'
one resume work
is out has 'work is running'
wait "$asked"
out=$(<answer)
is out has hello
one drain work
is exit 0
out=$(curl -sS -i --max-time 60 "$web")
is out has '503'
is out has 'reason=draining'
one show work
is out has 'drained'
one ps
is out has 'work is drained by an operator'
one undo
is out has "undid 'drain work'"
out=$(curl -sS --max-time 60 "$web")
is out has hello
one pause hello
is exit 0
one undo
one queue web
is exit 1
is err has 'no queue'
one drain web
is exit 1
is err has 'source'
one pause web
is exit 0
one resume web
out=$(curl -sS --max-time 60 "$web")
is out has hello

# ---- log ----
one log
is exit 0
is out has 'work.threads.max: 4 -> 6'
is out has '(undone)'
one log -n 1
is exit 0
[ "$(wc -l <<<"$out")" = 1 ] || fail 'not one line'
one log -o json
is out has '"kind": "act"'
# The controller of a pool may have decided something since the last change.
python3 -c '
import json, sys
log = json.load(sys.stdin)
times = [e["at"] if e["kind"] == "act" else e["time"] for e in log]
last = [e for e in log if e["kind"] == "act"][-1]
if not any(round(at * 1e4) % 100 for at in times):
    sys.exit("all times are whole hundredths of a second")
sys.exit(times != sorted(times) or (last["what"], last["target"]) != ("resume", "web"))
' <<<"$out" || fail 'not in the order of time, or the last act is not the resume'

# ---- save ----
one save shop.yaml
is exit 0
is out has 'nothing to save'
one set work.threads.max=9
one set work.queue.limit=64
one set work.with.time=2ms
one set hello.queue.limit=32 --for 1h
one save shop.yaml --dry-run
is exit 0
is out has '+       max: 9   # four'
is out has 'would be saved'
is err has 'hello.queue.limit is 32 only until'
cmp -s shop.yaml before.yaml || fail 'a dry run wrote'
one save shop.yaml
is exit 0
is out has '3 values saved'
sed -e 's/max: 4 /max: 9 /' -e 's/time: 1us/time: 2ms/' before.yaml >want.yaml
sed -i '/^    to: hello/a\    queue: { limit: 64 }' want.yaml
cmp shop.yaml want.yaml || { out=$(diff want.yaml shop.yaml); fail 'something else changed'; }
[ "$(stat -c %a shop.yaml)" = 640 ] || fail 'the mode changed'
[ -z "$(compgen -G 'shop.yaml.*')" ] || fail 'something was left behind'
weir check shop.yaml
is exit 0
one save shop.yaml
is exit 0
cmp -s shop.yaml want.yaml || fail 'saving again is not the same'

# A value without a literal in the file is refused with its location, and nothing is written.
sed 's/time: 1us/time: "${TIME:-1us}"/' before.yaml >env.yaml
cp env.yaml env.before
one save env.yaml
is exit 1
is err has 'env.yaml:11:'
is err has '${}'
cmp -s env.yaml env.before || fail 'a refused save wrote'
printf 'weir: 1\ninclude: before.yaml\n' >main.yaml
one save main.yaml
is exit 1
is err has 'main.yaml:2:'
is err has 'included'
sed -e '/^    threads:/,/max: 4/d' -e 's/^    to: hello/    threads: 3\n&/' before.yaml >short.yaml
one save short.yaml
is exit 1
is err has 'short.yaml:14:'
printf 'weir: 1\nstages:\n  other: { use: drop }\n' >other.yaml
one save other.yaml
is exit 1
is err has "no stage 'work' here"
one save nowhere.yaml
is exit 1

# ---- the objective of a stage ----
one set work.slo=50ms
is exit 0; is out has 'work.slo = 50ms (configured auto)'
one show work -o json
is out has '"slo_seconds": 0.05'
one set work.slo=5ms --for 1h
is exit 0; is out has 'work.slo = 5ms (configured auto), until '
one undo
is exit 0; is out has '50ms again, no longer 5ms'
one set work.slo=100ns
is exit 1; is err has 'too small: at least 100us'
one unset work.slo
is exit 0; is out has 'work.slo = auto (as configured)'
one show work -o json
is out has '"slo_seconds": 0.5'
sed 's/^    to: hello/    slo: 40ms\n&/' before.yaml >shop.yaml
one reload
is exit 0; is out has 'stages.work.slo'; is out lacks 'a new graph'
one show work -o json
is out has '"slo_seconds": 0.04'
cp before.yaml shop.yaml
one reload
is exit 0

# A paused stage does not prevent the server from stopping.
one pause work
curl -sS --max-time 60 "$web" >answer &
asked=$!
for _ in $(seq 600); do
	one queue work -o json
	[[ $out == *'"length": 1'* ]] && break
	sleep 0.1
done
kill -TERM "$pid"
ended
is exit 0
is err has 'nothing was lost'
wait "$asked"
out=$(<answer)
is out has hello
finish
