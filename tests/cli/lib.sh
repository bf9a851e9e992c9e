# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034
# For tests of the command: weir ARGS... runs it, `is` checks the result. Tests source this file
# with the arguments PROGRAM SOURCE_DIR. Files are created in $work, which is removed.
set -uo pipefail

program=$1
top=$2
work=$(mktemp -d) || exit 2
cleanup() {
	local pid
	for pid in $(jobs -p); do
		kill -KILL "$pid" 2>/dev/null
	done
	rm -rf "$work"
}
trap cleanup EXIT
cd "$work" || exit 2
failures=0 checks=0 about=
out='' err='' rc=0

# weir ARGS...: set $out, $err, $rc.
weir() {
	about="weir $*"
	"$program" "$@" >"$work/out" 2>"$work/err" </dev/null
	rc=$?
	out=$(<"$work/out")
	err=$(<"$work/err")
}

fail() {
	failures=$((failures + 1))
	printf 'FAILED %s: %s\n-- exit %s\n-- stdout\n%s\n-- stderr\n%s\n' "$about" "$1" "$rc" "$out" "$err"
}

# is exit N | is failed | is out|err has|lacks TEXT | is out|err empty
is() {
	checks=$((checks + 1))
	case "$1 ${2-}" in
	'failed ') [ "$rc" != 0 ] || fail 'expected it to fail' ;;
	exit\ *) [ "$rc" = "$2" ] || fail "expected exit code $2" ;;
	*\ has) [[ ${!1} == *"$3"* ]] || fail "std$1 lacks '$3'" ;;
	*\ lacks) [[ ${!1} != *"$3"* ]] || fail "std$1 has '$3'" ;;
	*\ empty) [ -z "${!1}" ] || fail "std$1 is not empty" ;;
	*) fail "the test asks 'is $*', which means nothing" ;;
	esac
}

finish() {
	printf '%d checks, %d failed\n' "$checks" "$failures"
	[ $failures = 0 ] && [ $checks -gt 0 ]
	exit
}
