#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Follows docs/writing-a-stage.md exactly, outside the tree, with an installed weir: the files of
# the page are those in project/, they build, check, run and answer. Then invalid plug-ins, each
# refused with a message at its location in the YAML.
#   plugin.sh BUILD_DIR SOURCE_DIR C_COMPILER [C_FLAGS]
set -euo pipefail

build=$1 top=$2 cc=$3 flags=${4-}
work=$(mktemp -d)
server=
cleanup() {
	[ -z "$server" ] || kill -KILL "$server" 2>/dev/null || true
	rm -rf "$work"
}
trap cleanup EXIT

say() {
	printf '%s\n' "== $*"
}

die() {
	say "$*"
	exit 1
}

# page_has FILE: is it on the page, word for word, as a block of code?
page_has() {
	local block
	for block in "$work"/page/*; do
		cmp -s "$block" "$1" && return
	done
	die "docs/writing-a-stage.md shows another $(basename "$1")"
}

# make_project NAME: copy, configure and build tests/plugin/NAME; its .so files end up beside it.
make_project() {
	cp -r "$top/tests/plugin/$1" "$work/$1"
	cmake -S "$work/$1" -B "$work/$1/build" -DCMAKE_PREFIX_PATH="$work/prefix" \
		-DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags -Wall -Wextra -Werror" >"$work/$1.log"
	cmake --build "$work/$1/build" >>"$work/$1.log" || { cat "$work/$1.log"; exit 1; }
	cp "$work/$1"/build/*.so "$work/$1"
}

# refused NAME WORDS: `weir check` of a server with plug-in NAME fails with these words and the
# location.
refused() {
	printf 'weir: 1\nplugin: ./%s.so\nstages:\n  end: { use: drop }\n' "$1" >"$work/bad/$1.yaml"
	if "$weir" check "$work/bad/$1.yaml" >"$work/said" 2>&1; then
		die "$1 was not refused"
	fi
	if ! grep -qF "$2" <(grep -F "$1.yaml:2:9: " "$work/said"); then
		cat "$work/said"
		die "$1: expected '$2'"
	fi
}

say "the page shows what is tested"
mkdir "$work/page"
awk -v dir="$work/page" '/^```/ { inside = !inside; n++; next } inside { print > (dir "/" n) }' \
	"$top/docs/writing-a-stage.md"
for file in upper.c CMakeLists.txt hello.yaml; do
	page_has "$top/tests/plugin/project/$file"
done
for file in vote.c vote.yaml vote_test.c CMakeLists.txt; do
	page_has "$top/tests/plugin/vote/$file"
done
page_has "$top/tests/plugin/waits/ask.c"
page_has "$top/tests/plugin/waits/pool.c"
page_has "$top/tests/plugin/pair/query.c"
page_has "$top/tests/plugin/pair/query.yaml"
for file in number.h square.c split.c split.yaml call.c hedge.c hedge.yaml fetch.c; do
	page_has "$top/tests/plugin/ops/$file"
done

say install
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
weir=$work/prefix/bin/weir

say "a stage with outlets, metrics and parameters, and its test"
make_project vote
"$weir" check "$work/vote/vote.yaml"
"$work/vote/build/vote_test"
libdir=$(dirname "$(dirname "$(find "$work/prefix" -name weir.pc)")")
export PKG_CONFIG_PATH=$libdir/pkgconfig
# shellcheck disable=SC2046,SC2086 # lists of flags
$cc $flags -D_GNU_SOURCE -Wl,-rpath,"$libdir" "$work/vote/vote.c" "$work/vote/vote_test.c" -lweir-test \
	$(pkg-config --cflags --libs weir) -o "$work/vote/by_pc"
"$work/vote/by_pc"

say "weir stage build finds the installed headers"
rm "$work/vote/vote.so"
(cd "$work/vote" && CC=$cc CFLAGS=$flags "$weir" stage build vote.c)
"$weir" check "$work/vote/vote.yaml"

say "build, check, describe"
make_project project
"$weir" check "$work/project/hello.yaml"
# Here and below not through a pipe: grep -q closes it early, and with pipefail the writer's error
# would count.
grep -q 'what follows the path' <("$weir" describe upper "$work/project/hello.yaml") ||
	die "describe does not know the plug-in of hello.yaml"

# begin FILE: start a server of FILE; $web and $admin are its addresses, $server its process.
begin() {
	local line
	web='' admin=''
	rm -f "$work/lines"
	mkfifo "$work/lines"
	PORT=0 ADMIN_PORT=0 "$weir" run "$1" >"$work/lines" &
	server=$!
	exec 3<"$work/lines"
	while { [ -z "$web" ] || [ -z "$admin" ]; } && read -r -t 60 line <&3; do
		case "$line" in
		*'admin http://'*) admin=${line##* } ;;
		*'http://'*) web=${line##* } ;;
		esac
	done
	if [ -z "$web" ] || [ -z "$admin" ]; then
		die "the server did not say where it listens"
	fi
}

end() {
	kill -TERM "$1"
	wait "$1" || die "the server ended with $?"
}

# asks PATH ANSWER: the server answers a GET of PATH with ANSWER.
asks() {
	local answer
	answer=$(curl -sS --max-time 60 "${web}$1" | tail -n 1)
	[ "$answer" = "$2" ] || die "expected $2, got '$answer'"
}

# runs FILE PATH ANSWER: a server of FILE answers a GET of PATH with ANSWER.
runs() {
	begin "$1"
	asks "$2" "$3"
	end "$server"
	server=
}

say run
runs "$work/project/hello.yaml" hello '/HELLO!!'

say "a stage that waits"
make_project waits
"$weir" check "$work/waits/ask.yaml"
runs "$work/waits/ask.yaml" ask "200 OK"
"$weir" check "$work/waits/pool.yaml"
runs "$work/waits/pool.yaml" "" 42
runs "$work/waits/pool.yaml" silent "the database does not answer"

say "two stages of one file, with a payload"
make_project pair
ln -s query.so "$work/pair/reply.so"
"$weir" check "$work/pair/query.yaml"
runs "$work/pair/query.yaml" '?q=one+two+three' "3 words"
runs "$work/pair/query.yaml" '' "write ?q=WORDS"
grep -q 'gives query .*the parsed query (outlet .parsed.)' <("$weir" describe query "$work/pair/query.yaml") ||
	die "describe does not show what query gives"
sed 's/none: help/none: reply/; /^  help/d' "$work/pair/query.yaml" >"$work/pair/lacks.yaml"
if "$weir" check "$work/pair/lacks.yaml" 2>"$work/said"; then
	die "a way without the payload was not refused"
fi
grep -qF "lacks.yaml:8:3: 'reply' needs query; on the way web > query > reply no stage gives it" "$work/said" ||
	die "expected the way without the payload, got: $(cat "$work/said")"
say "three stages of one file"
make_project trio
ln -s one.so "$work/trio/two.so"
ln -s one.so "$work/trio/three.so"
"$weir" check "$work/trio/trio.yaml"
runs "$work/trio/trio.yaml" '' marked

say "operations"
make_project ops
for file in split call gone hedge fetch; do
	"$weir" check "$work/ops/$file.yaml"
done
runs "$work/ops/split.yaml" 3 14
runs "$work/ops/split.yaml" 0 0
runs "$work/ops/call.yaml" 3 81
runs "$work/ops/hedge.yaml" 7 49

say "waiting for a socket"
begin "$work/project/hello.yaml"
other=$server
OTHER_PORT=$(printf '%s' "$web" | tr -dc '0-9:' | sed 's/.*://')
export OTHER_PORT
begin "$work/ops/fetch.yaml"
asks hello '/HELLO!!'
end "$server"
server=$other
end "$other"
server=

# The client leaves before the answer, which takes an hour: what was begun ends, and the server has
# nothing to wait for.
say "a client that goes away"
begin "$work/ops/gone.yaml"
curl -sS --max-time 1 "${web}3" && die "the answer did not take an hour"
# has METRIC STAGE VALUE
has() {
	grep -q "^$1{.*stage=\"$2\".*} $3\$" <(curl -sS "${admin}metrics")
}
# awaits METRIC STAGE VALUE
awaits() {
	local try
	for try in {1..600}; do
		has "$@" && return
		sleep 0.1
	done
	die "after $try tries: $1 of $2 is not $3"
}
awaits weir_stage_failed_total square 1
awaits weir_stage_failed_total call 1
has weir_stage_in_flight square 0 || die "a question is left"
end "$server"
server=

say "plug-ins that are wrong"
make_project bad
refused wrong_abi "wrong_abi.so' was built for stage ABI"
refused no_symbol "has no symbol 'weir_stage_no_symbol'"
refused unresolved "undefined symbol: weir_call_of_the_future"
refused no_handle "stage type 'no_handle' has no handle function"
refused taken "there is already a stage type 'echo'"
refused not_there "No such file or directory"
say fine
