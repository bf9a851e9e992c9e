#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# weir stage build: what it makes can be loaded, and a mistake leaves the former file.
# Arguments: PROGRAM SOURCE_DIR CRASH C_COMPILER [C_FLAGS]
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh"
export CC=$4 CFLAGS=${5-} WEIR_TRUST_FILES=any
umask 002

left() {
	checks=$((checks + 1))
	[ -z "$(find . -name '.weir-stage-*')" ] || fail 'a folder was left'
}

cp "$top/tests/plugin/project/upper.c" "$top/tests/plugin/project/hello.yaml" .
weir stage build upper.c
is exit 0; is out has "upper.so is built"; is err empty
left
weir check hello.yaml
is exit 0
checks=$((checks + 1))
[ "$(stat -c %a upper.so)" = 755 ] || fail 'the mode'
sum=$(cksum <upper.so)

same() {
	is failed; is out empty; is err has 'upper.so was not changed.'
	checks=$((checks + 1))
	[ "$(cksum <upper.so)" = "$sum" ] || fail 'the file was changed'
	left
}
mkdir bad
echo 'int x(' >bad/upper.c
weir stage build bad/upper.c
same
sed 's/weir_stage_upper/weir_stage_lower/' upper.c >bad/upper.c
weir stage build bad/upper.c
same; is err has "has no symbol 'weir_stage_upper'"
(cat upper.c; echo 'void missing(void); __attribute__((used)) static void calls(void) { missing(); }') >bad/upper.c
weir stage build bad/upper.c
same; is err has 'undefined symbol: missing'
(cat upper.c; echo 'void abort(void); __attribute__((constructor)) static void ends(void) { abort(); }') >bad/upper.c
weir stage build bad/upper.c
same; is err has 'ended a process by signal 6'
sed 's/\.abi = WEIR_STAGE_ABI/.abi = 1/' upper.c >bad/upper.c
weir stage build bad/upper.c
same; is err has 'stage ABI 1'
weir stage build absent.c
is failed; is err has 'absent.c'; is err has 'absent.so was not changed.'
CC=no-such-compiler weir stage build upper.c
same; is err has "cannot run the compiler 'no-such-compiler'"; is err has 'apt-get install gcc'
LDLIBS=-lno_such_library weir stage build upper.c
same

# Two sources; a folder; words of the environment.
printf '#include <ctype.h>\nint raised(int c);\nint raised(int c) { return toupper(c); }\n' >more.c
mkdir target
CFLAGS="$CFLAGS -DEXTRA=1" weir stage build upper.c more.c -o target/upper.so
is exit 0; is out has 'target/upper.so is built'
weir stage build upper.c -o new/upper.so
is exit 0; is out has 'new/upper.so is built'
weir stage build upper.c -o no/where/upper.so
is failed; is err has 'cannot create the folder of no/where/upper.so'
sed 's/return/char *p = 1; (void)p; return/' more.c >bad/upper.c
weir stage build bad/upper.c
same; is err has 'makes pointer from integer'

weir stage build
is exit 2; is err has 'a source file is missing'
weir stage frob upper.c
is exit 2; is err has "'frob' is not known"
weir stage build upper.c -o target/up-per.so
is exit 2; is err has 'cannot be loaded'
weir stage build upper.c -o target/upper
is exit 2
weir stage build target/.c
is exit 2
finish
