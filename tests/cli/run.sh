#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A server's life seen from the shell: it prints where it listens, answers, drains on SIGTERM with
# exit code 0, and prints a report when it crashes. Waits for its output and its end, never for a
# time.
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
# A reload between the two polls: stages are matched by name, and a new one has done nothing yet.
python3 "$top/tests/cli/two_looks.py" "${admin}api/v1/stages" "$work/port" 2>"$work/looks.err" &
looks=$!
until [ -e "$work/port" ]; do kill -0 "$looks" 2>/dev/null || break; done
weir why --admin "http://127.0.0.1:$(<"$work/port")"
kill "$looks"
is exit 0; is out has '46,840 offered/s'; is out lacks '7777'
checks=$((checks + 1))
[ "$(grep -c ' 0 offered/s' <<<"$out")" = 2 ] || fail "not only hello has done something: $out"
weir overload --admin "$admin"
is exit 0; is out has 'enforce: '
weir overload shadow --admin "$admin"
is exit 0; is out has 'shadow: '
out=$(curl -sS "${admin}api/v1/overload" 2>&1)
is out has '"mode":"shadow"'
out=$(curl -sS "${admin}api/v1/decisions?n=1" 2>&1)
is out has 'overload.mode = shadow'; is out has 'it was enforce'
weir overload of --admin "$admin"
is exit 2; is err has "'of' is not one of off, shadow, enforce"
weir overload enforce --admin "$admin"
is exit 0; is out has 'enforce: '
weir overload off --admin "${web%/}"
is exit 1; is err has 'the server answered'
weir overload off --admin unix:/nowhere.sock
is exit 3; is err has 'no weir server answers'
# A refusal by its id: queue_full of stage 1 and class 0, half the objective; priority with the same
# numbers.
weir why --shed 80200ZS000000 --admin "$admin"
is exit 0; is out has "'hello' refused class 'default' (queue_full)"; is err empty
is out has 'ms, the objective '; is out lacks "number"
[[ $out =~ ^'shed 80200ZS000000: at '[0-2][0-9]:[0-5][0-9]:[0-6][0-9]\.[0-9]' ' ]] || fail 'no time of day'
weir why --shed b020000000000 --admin "$admin"
is exit 0; is out has 'shed B020000000000: '; is out has "'hello' refused class 'default' (priority)"
is out has '0 % of the class was admitted: the users whose number, from 0 to 1, is below that share; this user'
weir why --shed 80200ZS000000 --admin http://127.0.0.1:1/
is exit 0; is out has '0.0 s after the start stage 1 refused class 0 (queue_full)'
is out has 'predicted wait was 50 % of the objective'; is err has 'numbers are shown instead of names'
weir why --shed 80200ZSZZZZZZ --admin "$admin" # two months after the start
is exit 0; is out has 'after the start stage 1'; is err has 'was started after the refusal'
for id in '' 8 F000000000000 0000000000000 800020000000U; do
	weir why --shed "$id" --admin "$admin"
	is exit 2; is err has 'is not a shed id'; is out empty
done
weir why hello --shed 80200ZS000000 --admin "$admin"
is exit 2; is err has '--shed takes no stage'
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

# The port of a running admin endpoint cannot be used twice, and nothing starts then.
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

# A second signal does not wait: queued events are given up, and the exit code shows it.
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
until grep -q '^slow .* 2/[0-9]* .* 1/1 ' <("$program" ps --admin "$admin"); do :; done
kill -TERM "$pid"
until grep -q 'finishing accepted work' "$work/log"; do :; done
kill -TERM "$pid"
ended
is exit 1
is err has 'because a second signal arrived'

# A crash report, then the signal's default action.
# ThreadSanitizer has a thread of its own, without our handler's stack: a signal from outside may hit it.
tsan=
grep -q __tsan_init "$program" && tsan=yes
for _ in 1 2 3 4; do
	launch server.yaml
	kill -SEGV "$pid"
	ended
	if [ -z "$tsan" ] || grep -q 'crashed with' <<<"$err"; then
		break
	fi
done
is failed
is err has "weir: crashed with SIGSEGV in thread '"; is err has "' outside any stage" # any thread
is err has 'weir:   #0 '; is err lacks 'it was handling'

# In a handler: the stage and the event, also when the stack overflows. A sanitizer handles wild
# pointers and overflows first.
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
	curl -s "$web${bug%:*}?id=7"
	ended
	is failed
	is err has "weir: crashed with ${bug#*:} in thread 'buggy/0' while it ran stage 'buggy' on events of type 'http.request'"
	is err has "weir: it was handling 'GET /${bug%:*}?id=7'"
	is err has ' crash.so(+0x'
	[ "$bug" = abort:SIGABRT ] || is err has '#0 crash.so(+0x'
	# The frame below the handler is in the program.
	[ "$bug" = stack:SIGSEGV ] || is err has ' weir(+0x'
done
# addr2line understands the printed offset: for the first frame of the last crash it finds a
# function of the plug-in.
if command -v addr2line >/dev/null; then
	at=$(grep -o '#0 crash.so(+0x[0-9a-f]*' "$work/log" | sed 's/.*+//')
	checks=$((checks + 1))
	addr2line -f -e "$3" "$at" | grep -q '^overflow' || fail "$at is not in overflow()"
fi
# The server is started with closed standard descriptors. No file or connection may get their
# numbers, since messages would then go there.
ADMIN="unix:$work/quiet.sock" "$program" run server.yaml <&- >&- 2>&- &
pid=$!
until weir ps --admin "unix:$work/quiet.sock" && [ "$rc" = 0 ]; do kill -0 "$pid" || break; done
is exit 0
for fd in 0 1 2; do
	out=$(readlink "/proc/$pid/fd/$fd")
	is out has /dev/null
done
kill -TERM "$pid"
wait "$pid"
finish
