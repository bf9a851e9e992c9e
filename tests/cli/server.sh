# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# For tests that need a running server: server.yaml in $work, `launch ARGS...` and `ended`. Sourced
# after lib.sh.

cat >server.yaml <<'YAML'
weir: 1
name: tested
admin: { listen: "${ADMIN:-127.0.0.1:0}" }
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
	"$program" run "$@" >"$work/said" 2>"$work/log" </dev/null &
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
	err=$(<"$work/log")
	fail 'it did not say where it listens'
	finish
}

# ended: wait for the server, set $rc, $out, $err.
ended() {
	wait "$pid"
	rc=$?
	out=$(cat <&3)
	err=$(<"$work/log")
	exec 3<&-
}
