#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A server with a thread per connection that is full: what ps, why and the metrics say about it.
# Arguments: PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

sed -i 's/with: { listen: "127.0.0.1:0" }/with: { listen: "127.0.0.1:0", threads: 2, per_thread: 1, header_timeout: 60s }/
	s/use: respond,/use: respond, threads: inline,/' server.yaml

# says TEXT VERB...: `weir VERB...` says it within 60 s.
says() {
	local end=$((SECONDS + 60)) text=$1
	shift
	until weir "$@" --admin "$admin" && out+=$'\n' && [[ $out == *"$text"* ]]; do
		[ $SECONDS -lt $end ] || break
	done
	is exit 0
	is out has "$text"
}

# ---- a queue behind it, and a handler that would block other clients ----
sed 's/, threads: inline//' server.yaml >queue.yaml
weir check queue.yaml
is exit 0
is err has "queue.yaml:6:85: stage 'web' has 'per_thread', but stage 'hello' behind it has threads and a queue"
sed 's/per_thread: 1/per_thread: 2/; s/use: respond,/use: delay,/; s/with: { body[^}]*}/to: hello/' server.yaml >two.yaml
sed -i '$s/hello:/sleep:/; s/request: hello/request: sleep/' two.yaml
echo '  hello: { use: respond, with: { body: "hello" } }' >>two.yaml
weir check two.yaml
is exit 1
is err has "remove 'threads: inline', or write 'per_thread: 1' at 'web': its handler may block, and other clients of the thread would wait"

launch server.yaml
port=${web%/}
port=${port##*:}
says 'web: 0 of 2 I/O threads full (per_thread: 1)'$'\n' ps
says 'Nothing limits the server: web is the busiest stage, 0 of its 2 I/O threads have a client.' why

# ---- a client of each thread, one of them idle between two requests, and three more ----
exec {one}<>"/dev/tcp/127.0.0.1/$port" {two}<>"/dev/tcp/127.0.0.1/$port"
says 'web: 2 of 2 I/O threads full (per_thread: 1)'$'\n' ps
says 'Nothing limits the server: web is the busiest stage, all of its 2 I/O threads have a client.' why
printf 'GET / HTTP/1.1\r\nHost: a\r\n\r\n' >&"$one"
read -r -t 60 line <&"$one"
exec {three}<>"/dev/tcp/127.0.0.1/$port" {four}<>"/dev/tcp/127.0.0.1/$port" {five}<>"/dev/tcp/127.0.0.1/$port"
says "web: 2 of 2 I/O threads full (per_thread: 1), 1 with an idle client; 3 more clients wait: raise 'threads'" ps
says 'web limits the server: all of its 2 I/O threads have a client, and 3 more wait' why
is out has "; raise its 'threads', or lower 'idle_timeout', since 1 of these clients is idle."
says "  clients  2 of 2 I/O threads full (per_thread: 1), 1 with an idle client; 3 more clients wait: raise 'threads'" why web
about='GET /metrics'
out=$(curl -sS --max-time 60 "${admin}metrics") rc=$?
is exit 0
is out has 'weir_stage_io_threads{stage="web"} 2'
is out has 'weir_stage_io_threads_full{stage="web"} 2'
is out has 'weir_stage_clients_waiting{stage="web"} 3'

# ---- they go ----
exec {one}>&- {two}>&- {three}>&- {four}>&- {five}>&-
says 'web: 0 of 2 I/O threads full (per_thread: 1)'$'\n' ps
says 'Nothing limits the server' why

kill "$pid"; ended
is exit 0
finish
