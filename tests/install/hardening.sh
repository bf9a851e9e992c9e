#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every C file that becomes part of the program, also of other projects, is compiled with the same
# protections, and the linker keeps them. Arguments: PROGRAM LIBRARY C_COMPILER OBJECT...
# If the start files of the compiler lack the marks IBT and SHSTK (Debian 12), no program has them;
# the objects still do.
set -uo pipefail

program=$1 library=$2 cc=$3
shift 3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
	failures=$((failures + 1))
	printf 'FAILED %s\n' "$*"
}

# has_marks FILE: is it marked as supporting indirect branch tracking and shadow stacks?
has_marks() { readelf -nW "$1" 2>/dev/null | grep -q 'x86 feature: IBT, SHSTK'; }

[ $# -gt 100 ] || fail "only $# objects were given"
for object; do
	has_marks "$object" || fail "$object: no IBT and SHSTK"
	producer=$(readelf --debug-dump=info --dwarf-depth=1 "$object" 2>/dev/null | grep -m1 DW_AT_producer)
	for flag in -fstack-protector-strong -fstack-clash-protection -fcf-protection=full; do
		[[ $producer == *"$flag"* ]] || fail "$object: compiled without $flag"
	done
done

echo 'int main(void) { return 0; }' >"$work/plain.c"
"$cc" -fcf-protection=full "$work/plain.c" -o "$work/plain" || fail 'the compiler makes no program'
for file in "$program" "$library"; do
	! has_marks "$work/plain" || has_marks "$file" || fail "$file: an object took IBT and SHSTK away"
	segments=$(readelf -lW "$file")
	[[ $segments == *GNU_RELRO* ]] || fail "$file: no RELRO"
	grep -q 'GNU_STACK.* RW ' <<<"$segments" || fail "$file: its stack may be executed"
	readelf -dW "$file" | grep -Eq 'BIND_NOW|Flags:.*NOW' || fail "$file: symbols are bound late"
done
readelf -hW "$program" | grep -q 'Type: *DYN' || fail "$program: no position-independent program"
printf '%d objects, %d failed\n' $# $failures
[ $failures = 0 ]
