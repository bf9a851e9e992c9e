#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What `cmake --install` gives is enough: a plug-in and a program that embeds weir are built outside
# the tree, against the installed package alone, by CMake and by pkg-config, and run.
#   install.sh BUILD_DIR SOURCE_DIR C_COMPILER [C_FLAGS]
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

say install
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
libdir=$(dirname "$(dirname "$(find "$work/prefix" -name weir.pc)")")

say "a plug-in and a program by find_package(weir)"
mkdir "$work/out-of-tree"
cp "$top"/tests/install/{shout.c,embed.c} "$work/out-of-tree"
cp "$top/tests/install/plugin.cmake" "$work/out-of-tree/CMakeLists.txt"
cmake -S "$work/out-of-tree" -B "$work/made" -DCMAKE_PREFIX_PATH="$work/prefix" \
	-DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" >"$work/configure.log"
cmake --build "$work/made"
"$work/made/embed"

say "the program by pkg-config"
export PKG_CONFIG_PATH=$libdir/pkgconfig
# shellcheck disable=SC2046,SC2086 # lists of flags
$cc $flags -Wl,-rpath,"$libdir" "$work/out-of-tree/embed.c" $(pkg-config --cflags --libs weir) \
	-o "$work/embed"
"$work/embed"

say "the plug-in in the installed weir"
cat >"$work/shout.yaml" <<'YAML'
weir: 1
name: shouting
plugin: ./made/shout.so
admin: { listen: "127.0.0.1:0" }
stages:
  web:   { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: shout } }
  shout: { use: shout }
YAML
"$work/prefix/bin/weir" check "$work/shout.yaml"
mkfifo "$work/said"
"$work/prefix/bin/weir" run "$work/shout.yaml" >"$work/said" &
server=$!
exec 3<"$work/said"
web=
while [ -z "$web" ] && read -r -t 60 line <&3; do
	case "$line" in
	*'admin http://'*) ;;
	*'http://'*) web=${line##* } ;;
	esac
done
answer=$(curl -sS "${web}hello")
[ "$answer" = /HELLO ] || { say "expected /HELLO, got '$answer'"; exit 1; }
kill -TERM "$server"
wait "$server"
server=

say "nothing but weir_* is exported by libweir"
if nm -D --defined-only "$libdir/libweir.so" | grep -v ' weir_'; then
	exit 1
fi
say fine
