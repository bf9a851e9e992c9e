# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# Functions shared by the peers. A peer is a small script that sets some variables, defines some
# functions and ends with `peer_main "$@"`:
#
#   packages=(...)   Debian packages; program=NAME is the executable in them
#   proxy=yes        burn and delay are done by the origin behind it (see ./origin)
#   works="..."      the kinds of work it can do, out of: burn delay hello file
#   cannot="..."     what it cannot do, for the table
#   version          prints name and version
#   settings         prints one static setting per line, "KEY=VALUE KEY=VALUE", for $PEER_WORK
#   config           writes its configuration to $PEER_DIR, with the setting in ${set[KEY]}
#   serve            becomes the server, in the foreground
#
# Verbs: install present ours works proxy cannot version settings config start stop. The caller (./run)
# passes its parameters in the environment:
#
#   PEER_WORK PEER_TIME PEER_DIST  the work and how long it takes
#   PEER_DIR PEER_PORT             scratch folder, and the port to listen on, on 127.0.0.1
#   PEER_ORIGIN_PORT               where the origin listens
#   PEER_SETTING                   one line of `settings`; empty: no limits
#   PEER_RATE PEER_SLO_MS          closed-loop throughput without limits, and the objective: the
#                                  figures by which an operator would size limits
#   WEIR_BUILD                     the build of weir
#
# `start` writes its pid to $PEER_DIR/pid and stays in the foreground; `stop` ends that process.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
build=${WEIR_BUILD:-$top/build/release}
weir=$build/weir
work=${PEER_WORK:-burn} dir=${PEER_DIR:-} port=${PEER_PORT:-} origin_port=${PEER_ORIGIN_PORT:-}
rate=${PEER_RATE:-1000} slo_ms=${PEER_SLO_MS:-100}
dist=${PEER_DIST:-const}
case $work in
delay) time=${PEER_TIME:-20ms} ;;
*) time=${PEER_TIME:-1ms} ;;
esac
# Number of threads of a pool that blocks in delay. On one core the budget of weir is 32, of which
# other stages need a few.
delay_threads=28
packages=() program='' proxy=no works='burn delay hello file'
declare -A set=()

die() {
	printf '%s: %s\n' "${0##*/}" "$*" >&2
	exit 1
}

# has_origin: whether the work is done by the origin behind this peer.
has_origin() {
	[ $proxy = yes ] && [[ $work == burn || $work == delay ]]
}

# permille N: N thousandths of the throughput without limits; at least 1.
permille() {
	local n=$((rate * $1 / 1000))
	echo $((n > 0 ? n : 1))
}

# Work `file` serves a file of 1 KiB. Servers that can only serve files use a file of 6 bytes for
# `hello`.
make_files() {
	mkdir -p "$dir/www"
	printf 'hello\n' >"$dir/www/hello"
	head -c 768 /dev/zero | tr '\0' 'x' | fold -w 63 >"$dir/www/file"
	truncate -s 1024 "$dir/www/file"
	chmod 755 "$dir" "$dir/www"
}

# Debian starts daemons when it installs them. A temporary policy-rc.d prevents that.
install_quietly() {
	local policy=/usr/sbin/policy-rc.d mine=no rc=0
	if [ ! -e $policy ]; then
		printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy && mine=yes
	fi
	DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
		-o DPkg::Lock::Timeout=120 "$@" >&2 || rc=$?
	[ $mine = no ] || rm -f $policy
	return $rc
}

peer_install() {
	present && return
	[ ${#packages[@]} -gt 0 ] || die "$program is missing: cmake --build --preset release"
	[ "$(id -u)" = 0 ] || die "run as root: apt-get install --no-install-recommends ${packages[*]}"
	install_quietly "${packages[@]}"
	present || die "$program is still missing after installing ${packages[*]}"
}

# Debian installs servers in /usr/sbin, which is not in every user's PATH.
PATH=$PATH:/usr/sbin:/sbin
present() {
	command -v "$program" >/dev/null
}

config() { :; }

read_setting() {
	local pair
	for pair in ${PEER_SETTING:-}; do
		set[${pair%%=*}]=${pair#*=}
	done
}

# Stop the server that `start` became; fails if none is running.
peer_stop() {
	local pid
	pid=$(cat "$dir/pid" 2>/dev/null) || die "no pid in $dir: is it running?"
	kill -TERM "$pid" || die "there is no process $pid"
	tail --pid="$pid" -f /dev/null
	rm -f "$dir/pid"
}

peer_main() {
	read_setting
	case ${1:-} in
	install) peer_install ;;
	present) present ;;
	ours) [ ${#packages[@]} = 0 ] ;;
	works) echo "$works" ;;
	proxy) has_origin ;;
	cannot) printf '%s\n' "$cannot" ;;
	version) version 2>&1 | head -1 ;;
	settings) settings ;;
	config) config ;;
	start)
		config
		echo $$ >"$dir/pid"
		serve
		;;
	stop) peer_stop ;;
	*) die "usage: ${0##*/} install|present|ours|works|proxy|cannot|version|settings|config|start|stop" ;;
	esac
}
