#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What `cmake --install` gives is enough for a program that embeds weir: one is built outside the tree,
# against the installed package alone, by CMake and by pkg-config, and run. Plug-ins: tests/plugin.
#   install.sh BUILD_DIR SOURCE_DIR C_COMPILER [C_FLAGS]
set -euo pipefail

build=$1 top=$2 cc=$3 flags=${4-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

say() {
	printf '%s\n' "== $*"
}

say install
cmake --install "$build" --prefix "$work/prefix" >"$work/install.log"
libdir=$(dirname "$(dirname "$(find "$work/prefix" -name weir.pc)")")
for file in bin/weir include/weir/stage.h include/weir/http.h share/weir/servers/static.yaml \
	share/weir/servers/site/index.html share/doc/weir/README.md share/doc/weir/LICENSE \
	share/weir/prometheus/weir.rules.yml share/weir/grafana/weir.json \
	lib/systemd/system/weir@.service lib/systemd/system/weir@.socket; do
	[ -f "$work/prefix/$file" ] || { say "$file is missing"; exit 1; }
done
# The installed servers work where they are.
"$work/prefix/bin/weir" check "$work/prefix/share/weir/servers/static.yaml"

say "a program by find_package(weir)"
mkdir "$work/program"
cp "$top/tests/install/embed.c" "$work/program"
cp "$top/tests/install/embed.cmake" "$work/program/CMakeLists.txt"
cmake -S "$work/program" -B "$work/made" -DCMAKE_PREFIX_PATH="$work/prefix" \
	-DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" >"$work/configure.log"
cmake --build "$work/made"
"$work/made/embed"

# The tutorial puts the build folder into PATH, and CMake looks for packages beside the folders of PATH, too, before /usr/local.
say "find_package(weir) finds the installed package while the build folder is in PATH"
PATH=$build:$PATH cmake -S "$work/program" -B "$work/found" -DCMAKE_INSTALL_PREFIX="$work/prefix" \
	-DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" >"$work/found.log"
grep -q "^weir_DIR:PATH=$work/prefix/" "$work/found/CMakeCache.txt"

say "the program by pkg-config"
export PKG_CONFIG_PATH=$libdir/pkgconfig
# shellcheck disable=SC2046,SC2086 # lists of flags
$cc $flags -Wl,-rpath,"$libdir" "$work/program/embed.c" $(pkg-config --cflags --libs weir) \
	-o "$work/embed"
"$work/embed"

say "the soname of libweir has the minor version"
readelf -d "$libdir/libweir.so" >"$work/dynamic"
grep -Eq 'SONAME.*\[libweir\.so\.[0-9]+\.[0-9]+\]' "$work/dynamic"

say "nothing but weir_* is exported by libweir"
nm -D --defined-only "$libdir/libweir.so" >"$work/symbols"
grep -q ' weir_graph_build' "$work/symbols"
if grep -v ' weir_' "$work/symbols"; then
	exit 1
fi
say fine
