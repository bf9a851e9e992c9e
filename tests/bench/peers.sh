#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Each installed peer starts with each of its settings, answers one request and stops. Peers that
# are not installed are listed. Afterwards none of our processes is left. peers.sh BUILD_DIR
# SOURCE_DIR
set -uo pipefail
build=$1 peers=$2/bench/peers
for tool in python3 curl taskset setpriv; do
	command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
work=$(mktemp -d) || exit 2
cleanup() {
	local pid
	for pid in $(jobs -p); do
		kill -KILL "$pid" 2>/dev/null
	done
	rm -rf "$work"
}
trap cleanup EXIT
# Servers that run as another user (nginx gives up root) read files below it.
chmod 755 "$work"
export TMPDIR=$work
failures=0
fail() {
	printf 'FAILED %s\n' "$*"
	failures=$((failures + 1))
}

# All settings that ./run tries.
for kind in burn delay hello file; do
	"$peers/run" --check --build "$build" --work $kind >"$work/out" 2>"$work/err" || fail "run --check --work $kind"
	cat "$work/out" "$work/err"
	grep -q '^weir .* 200$' "$work/out" || fail "weir itself did not answer with work $kind"
done

# Manually: start stays in the foreground, stop ends it.
export PEER_DIR=$work/hand PEER_WORK=hello PEER_PORT WEIR_BUILD=$build
mkdir -m 755 "$PEER_DIR"
PEER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$peers/peer_weir" start >"$work/log" 2>&1 &
pid=$!
until curl -s -o "$work/answer" "http://127.0.0.1:$PEER_PORT/"; do
	kill -0 $pid 2>/dev/null || break
done
grep -qx hello "$work/answer" || fail "peer_weir by hand: $(cat "$work/log")"
"$peers/peer_weir" stop || fail 'peer_weir stop'
wait $pid || fail "peer_weir ended with $?"
"$peers/peer_weir" stop 2>/dev/null && fail 'stop of a server that is not running'

# The command lines of servers contain the scratch folder or this build's program.
left=$(pgrep -af "$work|$build/bench/weir_threaded")
[ -z "$left" ] || fail "left behind: $left"
[ $failures = 0 ]
