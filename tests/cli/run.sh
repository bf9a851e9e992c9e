#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A server's life as the shell sees it: it says where it listens, answers, drains on SIGTERM with
# exit code 0, and has last words when it crashes. Waits on its output and on its end, never on time.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >server.yaml <<'YAML'
weir: 1
name: tested
admin: { listen: "127.0.0.1:0" }
drain: { grace: 20s }
stages:
  web:   { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: hello } }
  hello: { use: respond, with: { body: "hello\n" } }
YAML

# launch ARGS...: start a server, set $pid, $admin and $web from what it prints.
launch() {
	local line
	about="weir run $*"
	mkfifo "$work/said"
	"$program" run "$@" >"$work/said" 2>"$work/err" </dev/null &
	pid=$!
	admin='' web=''
	exec 3<"$work/said"
	rm "$work/said"
	while [ -z "$admin" ] && read -r -t 60 line <&3; do
		case "$line" in
		*'admin http://'*) admin=${line##* } ;;
		*'http://'*) web=${line##* } ;;
		esac
	done
	checks=$((checks + 1))
	[ -n "$admin" ] && [ -n "$web" ] && return
	err=$(<"$work/err")
	fail 'it did not say where it listens'
	finish
}

# ended: wait for the server, set $rc, $out, $err.
ended() {
	wait "$pid"
	rc=$?
	out=$(cat <&3)
	err=$(<"$work/err")
	exec 3<&-
}

launch server.yaml
out=$(curl -sS "$web" 2>&1)
is out has 'hello'
out=$(curl -sS "${admin}readyz" -o /dev/null -w '%{http_code}' 2>&1)
is out has 200
running=$about
weir ps --admin "$admin"
is exit 0; is out has 'STAGE'; is out has 'hello'; is out has 'http.server'
weir ps --admin "$admin" -o json
is exit 0; is out has '"stages"'
about=$running
kill -HUP "$pid"
kill -TERM "$pid"
ended
is exit 0
is err has 'SIGHUP'
is err has 'nothing was lost'

# The port of a running admin endpoint cannot be had twice, and nothing starts then.
launch server.yaml
weir run server.yaml --set web.with.nonsense=1
is exit 1; is err has 'nonsense'
sed "s|127.0.0.1:0\" }\$|${admin#http://}\" }|; s|9900/|9900|" server.yaml | sed 's|/" }$|" }|' >taken.yaml
weir run taken.yaml
is exit 1; is err has 'Nothing was started.'
about='weir run server.yaml'
kill -INT "$pid"
ended
is exit 0

# Last words, then the signal's own course.
launch server.yaml
kill -SEGV "$pid"
ended
checks=$((checks + 1))
# 139 of a shell; a sanitizer that takes the signal afterwards has a code of its own.
[ "$rc" != 0 ] || fail 'it ended well'
is err has 'weir: crashed with SIGSEGV'
finish
