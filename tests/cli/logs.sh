#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Logs of a running server: destinations, formats, reopening on SIGUSR1, changes by a reload, and
# that a log nobody reads does not block requests. Arguments: PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

# write LOG ACCESS_LOG: shop.yaml
write() {
	cat >shop.yaml <<YAML
weir: 1
name: shop
admin: { listen: "127.0.0.1:0" }
$1
stages:
  web: { use: http.server, with: { listen: "127.0.0.1:0", threads: 1 }, to: { request: log } }
  log: { use: access_log, with: { $2 }, to: { out: end }, threads: inline }
  end: { use: respond, with: { body: hello } }
YAML
}
get() { curl -sS --max-time 20 "${web%/}$1"; }
# raw BYTES: send them unchanged, read the response to its end
raw() {
	local to=${web#http://}
	exec 7<>"/dev/tcp/127.0.0.1/$(tr -d / <<<"${to##*:}")" || fail 'no connection'
	# shellcheck disable=SC2059
	printf "$1" >&7
	timeout 10 cat <&7 >answer
	exec 7<&-
}
# await FILE PATTERN: wait until a line matches
await() {
	local i
	for ((i = 0; i < 2000; i++)); do
		grep -qE "$2" "$1" 2>/dev/null && return
		sleep 0.01
	done
	fail "no line '$2' in $1: $(cat "$1" 2>/dev/null)"
}

write 'log: { file: /nowhere/log }' 'file: access.log'
weir run shop.yaml
is exit 1; is err has 'shop.yaml:4:14: '; is err has "'/nowhere/log' cannot be opened for writing"
write 'log: { level: loud }' 'file: access.log'
weir check shop.yaml
is exit 1; is err has 'loud'

# A check creates no file: run as root it would create one that the server's user cannot write.
write 'log: { file: server.log }' 'file: access.log'
ls -a >before
for args in 'check shop.yaml' 'run --check shop.yaml' 'explain shop.yaml' 'diff shop.yaml shop.yaml'; do
	# shellcheck disable=SC2086
	weir $args
	is exit 0
done
ls -a | diff before - || fail 'a file was made'
write 'log: { file: server.log }' 'file: no/access.log'
weir check shop.yaml
is exit 1; is err has "'no/access.log' cannot be opened for writing: No such file or directory"
write 'log: { file: no/server.log }' 'file: access.log'
weir check shop.yaml
is exit 1; is err has 'shop.yaml:4:14: '; is err has "'no/server.log' cannot be opened for writing: No such file or directory"

write 'log: { file: server.log, format: json }' 'file: access.log, flush: 1ms, format: json'
launch shop.yaml
await server.log "\"msg\":\"shop: weir [0-9].* starts, process $pid, configuration $PWD/shop.yaml\""
[ "$(get /one)" = hello ] || fail 'it does not serve'
await server.log '^\{"ts":"[^"]*","level":"info","thread":"[^"]*","msg":"web: listening'
await access.log '"target":"/one","status":200'
raw 'GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'
await server.log 'web: 127.0.0.1: refused with 400: '

# Rotation: rename, send the signal, and further lines are in new files.
mv server.log server.1 && mv access.log access.1
kill -USR1 "$pid"
for ((i = 0; i < 2000; i++)); do
	[ -e server.log ] && [ -e access.log ] && break
	sleep 0.01
done
get /two >answer
await access.log '"target":"/two"'
checks=$((checks + 1))
grep -q /two access.1 && fail 'the old file got a new line'

# A reload moves the log and changes its format.
sed -i 's/log: { file: server.log, format: json }/log: { file: other.log, level: debug }/' shop.yaml
weir reload --admin "$admin"
is exit 0; is out has 'log.file: server.log -> other.log'; is out has 'log.format: json -> logfmt'
raw 'BAD\r\n\r\n'
await other.log '^ts=[^ ]* level=info thread=[^ ]* msg="web: 127.0.0.1: refused with 400: '
# A dry run creates nothing.
sed -i 's/file: access.log/file: third.log/' shop.yaml
weir reload --dry-run --admin "$admin"
is exit 0
[ ! -e third.log ] || fail 'a dry run made a file'
sed -i 's/file: third.log/file: access.log/' shop.yaml
kill -TERM "$pid"
ended
is exit 0
# The server's final messages are in the log, too.
for said in 'shop: finishing accepted work' 'shop: drained in [0-9.]* s, nothing was lost'; do
	checks=$((checks + 1))
	grep -q "level=info .*$said" other.log || fail "the log lacks '$said'"
	grep -q "weir $said" <<<"$err" || fail "stderr lacks '$said'"
done

# A pipe without a reader.
mkfifo pipe
exec 9<>pipe
write 'log: { file: pipe, level: debug }' 'file: pipe, flush: 0s, buffer: 16KiB'
launch shop.yaml
for ((i = 0; i < 40; i++)); do
	curl -sS --max-time 20 "${web%/}/[1-50]?$(printf 'x%.0s' {1..200})" >answer || fail 'a request failed'
done
curl -sS "${admin%/}/metrics" >metrics
grep -qE '^weir_access_log_dropped_total\{[^}]*\} [1-9]' metrics || fail "nothing was dropped: $(grep access_log metrics)"
kill -TERM "$pid"
ended
is exit 0
exec 9>&-
finish
