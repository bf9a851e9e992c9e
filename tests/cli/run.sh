#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A server's life as the shell sees it: it says where it listens, answers, drains on SIGTERM with
# exit code 0, and has last words when it crashes. Waits on its output and on its end, never on time.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

launch server.yaml
out=$(curl -sS "$web" 2>&1)
is out has 'hello'
out=$(curl -sSi -H 'x-deadline-ms: 0' "$web" 2>&1)
is out has '503'; is out has 'reason=deadline'
out=$(curl -sSi -H 'x-deadline-ms: soon' "$web" 2>&1)
is out has '200'
out=$(curl -sS "${admin}metrics" 2>&1)
is out has 'weir_http_hints_ignored_total{stage="web"} 1'
out=$(curl -sS "${admin}readyz" -o /dev/null -w '%{http_code}' 2>&1)
is out has 200
running=$about
weir why --admin "$admin"
is exit 0; is out has 'the server'; is out has 'hello'; is out has 'policy none'
weir why hello --admin "$admin"
is exit 0; is out has 'offered/s'; is out lacks 'web'
weir why nowhere --admin "$admin"
is exit 2; is err has "there is no stage 'nowhere'"
weir overload --admin "$admin"
is exit 0; is out has 'enforce: '
weir overload shadow --admin "$admin"
is exit 0; is out has 'shadow: '
out=$(curl -sS "${admin}api/v1/overload" 2>&1)
is out has '"mode":"shadow"'
out=$(curl -sS "${admin}api/v1/decisions?n=1" 2>&1)
is out has 'overload.mode = shadow'; is out has 'it was enforce'
weir overload of --admin "$admin"
is exit 2; is err has "'of' is none of off, shadow, enforce"
weir overload enforce --admin "$admin"
is exit 0; is out has 'enforce: '
weir overload off --admin "${web%/}"
is exit 1; is err has 'the server answered'
weir overload off --admin unix:/nowhere.sock
is exit 3; is err has 'no weir server answers'
# A refusal by its id: queue_full of stage 1 and class 0, half the objective; priority of the same.
weir why --shed 80200ZS000000 --admin "$admin"
is exit 0; is out has "'hello' refused class 'default' (queue_full)"; is err empty
is out has 'ms of an objective of'; is out lacks "number"
[[ $out =~ ^'shed 80200ZS000000: at '[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]' ' ]] || fail 'no time of day'
weir why --shed b020000000000 --admin "$admin"
is exit 0; is out has 'shed B020000000000: '; is out has "'hello' refused class 'default' (priority)"
is out has '0 % of the class was let in, this user'
weir why --shed 80200ZS000000 --admin http://127.0.0.1:1/
is exit 0; is out has '0.0 s after the start stage 1 refused class 0 (queue_full)'
is out has 'predicted wait 50 % of the objective'; is err has 'numbers stand for names'
weir why --shed 80200ZSZZZZZZ --admin "$admin" # two months after the start
is exit 0; is out has 'after the start stage 1'; is err has 'was started after that'
for id in '' 8 F000000000000 0000000000000 800020000000U; do
	weir why --shed "$id" --admin "$admin"
	is exit 2; is err has 'is no shed id'; is out empty
done
weir why hello --shed 80200ZS000000 --admin "$admin"
is exit 2; is err has '--shed needs no stage'
weir ps --admin "$admin" --shed 80200ZS000000
is exit 2; is err has "'ps' does not take --shed"
weir ps --admin "$admin"
is exit 0; is out has 'STAGE'; is out has 'hello'; is out has 'http.server'
[[ ${out%%$'\n'*} == "tested  $admin  up "*' s' ]] || fail 'it does not begin with the server'
while read -r line; do
	[ ${#line} -le 100 ] || fail "a line of ${#line} columns: $line"
done <<<"$out"
checks=$((checks + 2))
weir ps --admin "$admin" -o json
is exit 0; is out has '"stages"'
about=$running
kill -HUP "$pid"
kill -TERM "$pid"
ended
is exit 0
is err has 'reload'
is err has 'nothing was lost'

# The port of a running admin endpoint cannot be had twice, and nothing starts then.
launch server.yaml
weir run server.yaml --set web.with.nonsense=1
is exit 1; is err has 'nonsense'
taken=${admin#http://}
ADMIN=${taken%/} weir run server.yaml
is exit 1; is err has "${taken%/}"; is err has 'Nothing was started.'
about='weir run server.yaml'
kill -INT "$pid"
ended
is exit 0

# A second signal does not wait: what is still queued is given up, and the exit code says so.
cat >slow.yaml <<'YAML'
weir: 1
name: slow
admin: { listen: "127.0.0.1:0" }
drain: { grace: 60s }
stages:
  web:  { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: slow } }
  slow: { use: delay, with: { time: 1s }, threads: { min: 1, max: 1 }, to: end }
  end:  { use: respond, with: { body: "late\n" } }
YAML
launch slow.yaml
for _ in 1 2 3; do
	curl -s "$web" >>"$work/answers" &
done
until "$program" ps --admin "$admin" | grep -q '^slow .* 2/[0-9]* .* 1/1 '; do :; done
kill -TERM "$pid"
until grep -q 'finishing what was accepted' "$work/log"; do :; done
kill -TERM "$pid"
ended
is exit 1
is err has 'because a second signal came'

# Last words, then the signal's own course.
launch server.yaml
kill -SEGV "$pid"
ended
is failed
is err has "weir: crashed with SIGSEGV in thread '"; is err has "' outside any stage" # whichever the kernel picks

# In a handler: which stage, on what, also when it is the stack that ran out. A sanitizer looks at
# wild pointers and overflows first.
cat >buggy.yaml <<YAML
weir: 1
name: buggy
plugin: $3
admin: { listen: "127.0.0.1:0" }
stages:
  web:   { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: buggy } }
  buggy: { use: crash }
YAML
for bug in abort:SIGABRT null:SIGSEGV stack:SIGSEGV; do
	launch buggy.yaml
	curl -s "$web${bug%:*}"
	ended
	is failed
	is err has "weir: crashed with ${bug#*:} in thread 'buggy/0' while it ran stage 'buggy' on events of type 'http.request'"
done
finish
