#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Stages whose callbacks hang, fail or end their thread: the server reports it, continues to serve,
# and can be stopped. Arguments: PROGRAM SOURCE_DIR PLUGIN, which is stubborn.c. Waits for files,
# responses and the end of a process.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

plugin=$3

# write THREADS WITH [GRACE]: server.yaml with a stage 'app' of the plug-in.
write() {
	cat >server.yaml <<YAML
weir: 1
name: tested
plugin: $plugin
admin: { listen: "127.0.0.1:0" }
drain: { grace: ${3:-1s} }
stages:
  web: { use: http.server, with: { listen: "127.0.0.1:0", threads: 2, linger: 0ms }, to: { request: app } }
  app: { use: stubborn, with: $2, threads: $1, admission: { policy: none } }
YAML
}
pooled='{ min: 1, max: 1, policy: static, stuck: 50ms }'

# until_true COMMAND...: for at most 60 s, then the test fails.
until_true() {
	local end=$((SECONDS + 60))
	checks=$((checks + 1))
	until "$@"; do
		if [ $SECONDS -ge $end ]; then
			err=$(<"$work/log")
			fail "it did not come true: $*"
			return 1
		fi
		sleep 0.02
	done
}
get() { curl -s --max-time 30 "${web%/}$1"; }
is_there() { [ -e "$1" ]; }
# ask_hang FILE: send a request that hangs, in the background; returns when its handler has started.
ask_hang() {
	curl -s --max-time 60 "${web%/}/hang/$1" >/dev/null &
	until_true is_there "$1.begun"
}
ready() { curl -s -o "$work/readyz" -w '%{http_code}' --max-time 30 "${admin}readyz"; }
is_ready() { [ "$(ready)" = "$1" ]; }
logged() { grep -qF -- "$1" "$work/log"; }
# metric NAME: it exists and is not 0. grep reads everything, or curl would fail.
metric() { curl -s --max-time 30 "${admin}metrics" | grep -F "$1" | grep -vE ' 0$' >/dev/null; }
# ends: within 60 s, or it is killed and the test fails.
ends() {
	local end=$((SECONDS + 60))
	while kill -0 "$pid" 2>/dev/null && [ "$(ps -o stat= -p "$pid" | cut -c1)" != Z ]; do
		if [ $SECONDS -ge $end ]; then
			err=$(<"$work/log")
			fail 'it does not end'
			kill -KILL "$pid"
		fi
		sleep 0.02
	done
	ended
}
# run_now: weir run, which is expected to exit by itself.
run_now() {
	about="weir run server.yaml"
	timeout -k 1 60 "$program" run server.yaml >"$work/out" 2>"$work/err" </dev/null
	rc=$?
	out=$(<"$work/out")
	err=$(<"$work/err")
}

case_a_start_that_is_refused_says_so() {
	touch refuse
	for threads in "$pooled" inline; do
		write "$threads" '{}'
		run_now
		is exit 1
		is err has "stage 'app' (stubborn)"
		is err has 'thread_init'
		is err has 'not found'
		is err has 'Nothing is running.'
	done
	rm refuse
}

case_a_reload_that_is_refused_says_so() {
	write "$pooled" '{}'
	launch server.yaml
	write "$pooled" '{ refuse: server.yaml }'
	weir reload --admin "$admin"
	is exit 1
	is err has "stage 'app' (stubborn)"
	out=$(get /)
	is out has 'done'
	kill -TERM "$pid"
	ends
	is exit 0
}

# The functions of a plug-in that is stuck have names, also static ones: in the log, and in weir show. The
# signal reaches a thread that sleeps in nanosleep, which the handler begins again.
case_a_stuck_handler_has_a_stack() {
	write "$pooled" '{}'
	launch server.yaml
	ask_hang stuck.go
	until_true logged 'wait_for (stubborn.so+0x'
	weir show app --admin "$admin"
	is exit 0
	is out has 'stuck      a handler has run in thread app/0 for '
	is out has 'wait_for (stubborn.so+0x'
	is out has 'start_thread'
	weir why app --admin "$admin"
	is exit 0
	is out has '  stuck    a handler has run in thread app/0 for '
	is out has 'wait_for (stubborn.so+0x'
	weir why --admin "$admin"
	is exit 0
	is out has '  stuck    a handler has run in thread app/0 for '
	is out lacks 'wait_for (stubborn.so+0x'
	weir why app -o json --admin "$admin"
	is exit 0
	is out has '"running": true'
	is out has '"thread": "app/0"'
	is out has 'wait_for (stubborn.so+0x'
	# its thread sleeps
	until_true metric 'weir_stage_thread_seconds_total{stage="app",state="sleep"}'
	touch stuck.go
	until_true shows 'it has returned'
	weir why app --admin "$admin"
	is out has '; it has returned'
	is out has 'wait_for (stubborn.so+0x'
	weir why --admin "$admin"
	is out lacks 'it has returned'
	kill -TERM "$pid"
	ends
	is exit 0
}
shows() { "$program" show app --admin "$admin" 2>&1 | grep -F -- "$1" >/dev/null; }

case_refused_while_it_runs() {
	write '{ min: 1, max: 4, policy: static, stuck: 50ms }' '{}'
	launch server.yaml
	touch refuse
	weir set app.threads.min=2 --admin "$admin"
	is exit 0
	until_true metric 'weir_stage_thread_failures_total{stage="app"}'
	until_true logged "stage 'app' refuses"
	until_true is_ready 200
	out=$(get /)
	is out has 'done'
	get /exit >/dev/null # the last thread
	until_true is_ready 503
	out=$(<"$work/readyz")
	is out has "'app'"
	is out has 'no thread'
	is out has '"reason":"stage","stage":"app"'
	weir why app --admin "$admin"
	is exit 0
	is out has 'no thread'
	rm refuse
	until_true is_ready 200
	out=$(get /)
	is out has 'done'
	kill -TERM "$pid"
	ends
	is exit 0
}

case_a_drain_whose_thread_is_refused() {
	write inline '{}'
	launch server.yaml
	out=$(get /)
	is out has 'done'
	touch refuse
	kill -TERM "$pid"
	ends
	is exit 0
	is err has 'nothing was lost'
	rm refuse
}

case_a_handler_that_never_returns() {
	for threads in "$pooled" '{ min: 2, max: 2, policy: static, stuck: 0 }' inline; do
		for signals in 1 2; do
			write "$threads" '{}' "$([ $signals = 1 ] && echo 500ms || echo 60s)"
			launch server.yaml
			rm -f never.begun
			ask_hang never
			kill -TERM "$pid"
			until_true logged 'finishing accepted work'
			[ $signals = 1 ] || kill -TERM "$pid"
			ends
			is exit 1
			is err has "stage 'app'"
			is err has "in thread '"
			is err has '1 accepted event '
			is err lacks 'nothing was lost'
		done
	done
}

case_a_retired_graph_that_never_ends() {
	write "$pooled" '{}' 500ms
	launch server.yaml
	rm -f never.begun
	ask_hang never
	write "$pooled" '{ body: other }' 500ms
	weir reload --admin "$admin"
	is exit 0
	out=$(get /)
	is out has 'other'
	kill -TERM "$pid"
	ends
	is exit 1
	is err has "stage 'app'"
	is err has "in thread 'app/0'"
	is err has '1 accepted event '
}

case_an_io_thread_that_ends() {
	write inline '{}'
	launch server.yaml
	for _ in 1 2 3 4; do
		get /exit >/dev/null
	done
	until_true metric 'weir_stage_thread_deaths_total{stage="web"}'
	until_true logged "stage 'app'"
	for _ in {1..20}; do
		out=$(get /)
		is out has 'done'
	done
	until_true is_ready 200
	kill -TERM "$pid"
	ends
	is exit 0
}

case_an_io_thread_that_is_held() {
	write inline '{}'
	launch server.yaml
	rm -f free free.begun
	ask_hang free
	until_true is_ready 503
	out=$(<"$work/readyz")
	is out has "'app'"
	is out has 'I/O thread'
	for _ in {1..20}; do
		out=$(get /)
		is out has 'done'
	done
	weir why app --admin "$admin"
	is exit 0
	is out has 'I/O thread'
	touch free
	until_true is_ready 200
	for _ in {1..20}; do
		out=$(get /)
		is out has 'done'
	done
	kill -TERM "$pid"
	ends
	is exit 0
}

case_a_reload_that_hangs() {
	for at in init start thread; do
		write "$pooled" '{}'
		launch server.yaml
		rm -f go go.begun
		write "$pooled" "{ hang: $at }"
		"$program" reload --admin "$admin" >/dev/null 2>&1 &
		until_true is_there go.begun
		out=$(get /)
		is out has 'done'
		kill -TERM "$pid"
		ends
		is exit 0
		is err has 'nothing was lost'
		is err has 'was abandoned'
	done
}

case_a_start_that_hangs() {
	for at in init start thread; do
		for signal in INT TERM; do
			write "$pooled" "{ hang: $at }"
			rm -f go go.begun
			about="weir run server.yaml"
			"$program" run server.yaml >"$work/log" 2>&1 </dev/null &
			pid=$!
			exec 3</dev/null
			until_true is_there go.begun
			kill -$signal "$pid"
			ends
			is failed
			is err has 'during startup'
		done
	done
}

# ask_on FD: send a request on an open connection, and set $out to the body of the response.
ask_on() {
	local line length=0
	printf 'GET / HTTP/1.1\r\nHost: t\r\n\r\n' >&"$1"
	while read -r -t 60 line <&"$1" && [ "$line" != $'\r' ]; do
		case "$line" in
		Content-Length:*) length=${line//[!0-9]/} ;;
		esac
	done
	read -r -t 60 -N "$length" out <&"$1"
}
none_has_requests() { curl -s --max-time 30 "${admin}api/v1/reload" | grep -q '"draining":0[,}]'; }

# A handler that holds an I/O thread returns only after a second reload: the graph that gets its
# connections has been replaced itself by then.
case_a_handler_that_returns_after_two_reloads() {
	local body port
	rm -f free free.begun
	for body in first second third; do
		write inline "{ body: $body }" '20s, old: 500ms'
		sed -i 's/threads: 2, linger/threads: 1, linger/' server.yaml
		if [ $body = first ]; then
			launch server.yaml
			port=${web##*:}
			exec 4<>"/dev/tcp/127.0.0.1/${port%/}"
			ask_on 4
			is out has 'first'
			ask_hang free
			continue
		fi
		weir reload --admin "$admin"
		is exit 0
		until_true logged 'in 1 handlers that did not return'
		until_true none_has_requests
	done
	touch free
	ask_on 4
	is out has 'third'
	exec 4<&-
	for _ in {1..20}; do
		out=$(get /)
		is out has 'third'
	done
	kill -TERM "$pid"
	ends
	is exit 0
	is err has 'nothing was lost'
}

# Where no namespaces can be made, as in most containers, the case below says so and fails nothing.
case_without_namespaces() {
	mkdir -p refusing
	printf '#!/bin/sh\necho "unshare failed: Operation not permitted" >&2\nexit 1\n' >refusing/unshare
	chmod +x refusing/unshare
	about='a case that needs namespaces'
	out=$(PATH=$work/refusing:$PATH case_a_start_that_hangs_in_a_container 2>&1)
	is out has 'left out: a server as process 1, since unshare makes no namespace of processes here'
	is out lacks FAILED
}

# The kernel keeps the first process of a container alive where a signal would kill any other.
case_a_start_that_hangs_in_a_container() {
	if ! unshare --pid --fork --mount-proc true 2>/dev/null; then
		printf 'left out: a server as process 1, since unshare makes no namespace of processes here\n'
		return
	fi
	for signal in INT TERM; do
		write "$pooled" '{ hang: init }'
		rm -f go go.begun
		about="weir run server.yaml as process 1"
		unshare --pid --fork --mount-proc --kill-child "$program" run server.yaml >"$work/log" 2>&1 </dev/null &
		pid=$!
		exec 3</dev/null
		until_true is_there go.begun
		kill -$signal "$(ps -o pid= --ppid "$pid")"
		ends
		is failed
		is err has 'during startup'
	done
}

if [ $# -gt 3 ]; then
	shift 3
	for name in "$@"; do
		"case_$name"
	done
	finish
fi
case_a_start_that_is_refused_says_so
case_a_reload_that_is_refused_says_so
case_a_stuck_handler_has_a_stack
case_refused_while_it_runs
case_a_drain_whose_thread_is_refused
case_a_handler_that_never_returns
case_a_retired_graph_that_never_ends
case_an_io_thread_that_ends
case_an_io_thread_that_is_held
case_a_handler_that_returns_after_two_reloads
case_a_reload_that_hangs
case_a_start_that_hangs
case_without_namespaces
case_a_start_that_hangs_in_a_container
finish
