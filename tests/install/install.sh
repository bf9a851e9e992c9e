#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What `cmake --install` gives is enough for a program that embeds weir: one is built outside the tree,
# against the installed package alone, by CMake and by pkg-config, and run. Plug-ins: tests/plugin.
#   install.sh BUILD_DIR SOURCE_DIR C_COMPILER CXX_COMPILER [C_FLAGS]
set -euo pipefail

build=$1 top=$2 cc=$3 cxx=$4 flags=${5-}
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
for file in bin/weir include/weir/stage.h include/weir/http.h share/weir/servers/static.yaml \
	share/weir/servers/site/index.html share/doc/weir/README.md share/doc/weir/LICENSE \
	share/weir/prometheus/weir.rules.yml share/weir/grafana/weir.json \
	lib/systemd/system/weir@.service lib/systemd/system/weir@.socket etc/logrotate.d/weir; do
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

# serves PROGRAM: run it where shop.yaml is, ask its two ports, and end it.
serves() {
	local port admin
	mkfifo "$work/said"
	(cd "$work/shop" && exec "$1") >"$work/said" &
	server=$!
	IFS=' ,' read -r -t 60 _ port _ admin <"$work/said"
	rm "$work/said"
	[ "$(curl -s -m 60 "http://127.0.0.1:$port/")" = bread ]
	curl -s -m 60 "http://127.0.0.1:$admin/api/v1/graph" | grep -q '"goods"'
	kill -TERM "$server"
	wait "$server"
	server=
}

say "a program with a server from a YAML file inside: docs/embedding.md"
cp -r "$top/tests/install/shop" "$work/shop"
mkdir "$work/page"
awk -v dir="$work/page" '/^```/ { inside = !inside; n++; next } inside { print > (dir "/" n) }' \
	"$top/docs/embedding.md"
for file in shop.c shop.yaml CMakeLists.txt; do
	found=
	for block in "$work"/page/*; do
		! cmp -s "$block" "$work/shop/$file" || found=1
	done
	[ "$found" ] || { say "docs/embedding.md shows another $file"; exit 1; }
done
cmake -S "$work/shop" -B "$work/shop/build" -DCMAKE_PREFIX_PATH="$work/prefix" \
	-DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="$flags" >"$work/shop.log"
cmake --build "$work/shop/build"
serves "$work/shop/build/shop"
# shellcheck disable=SC2046,SC2086 # lists of flags
$cc $flags -Wl,-rpath,"$libdir" "$work/shop/shop.c" $(pkg-config --cflags --libs weir) -o "$work/shop/by_pc"
serves "$work/shop/by_pc"

say "the program reads the file again on SIGHUP, from another folder, and says what is wrong with it"
mkfifo "$work/said"
(cd / && exec "$work/shop/by_pc" "$work/shop/shop.yaml") >"$work/said" 2>"$work/reloads" &
server=$!
IFS=' ,' read -r -t 60 _ port _ <"$work/said"
# reloads TEXT: after SIGHUP the program says TEXT.
reloads() {
	kill -HUP "$server"
	for ((tries = 0; tries < 1200; tries++)); do
		! grep -q "$1" "$work/reloads" || return 0
		sleep 0.05
	done
	cat "$work/reloads"
	exit 1
}
reloads 'nothing changes'
sed -i 's/use: respond/use: respnod/' "$work/shop/shop.yaml"
reloads 'shop.yaml:6:'
[ "$(curl -s -m 60 "http://127.0.0.1:$port/")" = bread ]
sed -i 's/use: respnod/use: respond/; s/bread/cake/' "$work/shop/shop.yaml"
reloads '^reloaded: 1 stage is rebuilt'
until [ "$(curl -s -m 60 "http://127.0.0.1:$port/")" = cake ]; do # the old graph accepts for a moment
	sleep 0.05
done
sed -i 's/cake/bread/' "$work/shop/shop.yaml"
kill -TERM "$server"
wait "$server"
server=
rm "$work/said"

say "a mistake in the file is reported at its place"
sed -i 's/use: respond/use: respnod/' "$work/shop/shop.yaml"
if (cd "$work/shop" && "$work/shop/by_pc") 2>"$work/wrong"; then
	say "the mistake was not found"
	exit 1
fi
grep -q 'shop.yaml:6:' "$work/wrong"
sed -i 's/use: respnod/use: respond/' "$work/shop/shop.yaml"

say "every public header and function in a C++17 program"
(cd "$work/prefix/include" && for header in weir/*.h; do echo "#include <$header>"; done) >"$work/headers"
nm -D --defined-only "$libdir/libweir.so" | awk '{ print $3 }' | LC_ALL=C sort >"$work/exported"
cat "$work"/prefix/include/weir/*.h | grep -o 'weir_[a-z0-9_]*(' | tr -d '(' | LC_ALL=C sort -u >"$work/named"
LC_ALL=C comm -12 "$work/exported" "$work/named" | sed 's/.*/\treinterpret_cast<void *>(\&&),/' >"$work/calls"
sed -e "/@HEADERS@/r $work/headers" -e "/@CALLS@/r $work/calls" -e '/@[A-Z]*@/d' "$top/tests/install/embed.cc" >"$work/shop/embed.cc"
# shellcheck disable=SC2046,SC2086 # lists of flags
$cxx $flags -std=c++17 -Wall -Wextra -Werror -pedantic -Wl,-rpath,"$libdir" "$work/shop/embed.cc" \
	$(pkg-config --cflags --libs weir) -o "$work/shop/embed"
(cd "$work" && shop/embed)

say "manual pages and completions"
for file in man/man1/weir.1.gz man/man5/weir.yaml.5.gz man/man5/weir-file.read.5.gz bash-completion/completions/weir \
	zsh/vendor-completions/_weir fish/vendor_completions.d/weir.fish; do
	[ -s "$work/prefix/share/$file" ] || { say "share/$file is missing"; exit 1; }
done

say "a list of the libraries in it, with the versions that are installed"
python3 - "$work/prefix/share/doc/weir/weir.cdx.json" <<'PY'
import json, subprocess, sys
bom = json.load(open(sys.argv[1]))
assert bom["bomFormat"] == "CycloneDX" and bom["specVersion"] == "1.5"
have = {c["name"]: c["version"] for c in bom["components"]}
for name, module in (("libyaml", "yaml-0.1"), ("openssl", "openssl"), ("libcurl", "libcurl"), ("gnutls", "gnutls"), ("c-ares", "libcares"),
                     ("libmicrohttpd", "libmicrohttpd"), ("jansson", "jansson"), ("liburcu", "liburcu-memb")):
    version = subprocess.run(["pkg-config", "--modversion", module], capture_output=True, text=True, check=True).stdout
    assert have[name] == version.strip(), (name, have[name], version)
for name in ("llhttp", "xxhash"):
    assert have[name].count(".") == 2, (name, have[name])
assert len({c["bom-ref"] for c in bom["components"]}) == len(bom["components"])
PY

say "the soname of libweir has the minor version and that of the stage interface"
readelf -d "$libdir/libweir.so" >"$work/dynamic"
grep -Eq 'SONAME.*\[libweir\.so\.[0-9]+\.[0-9]+-abi[0-9]+\]' "$work/dynamic"

say "nothing but weir_* is exported by libweir"
nm -D --defined-only "$libdir/libweir.so" >"$work/symbols"
grep -q ' weir_graph_build' "$work/symbols"
if grep -v ' weir_' "$work/symbols"; then
	exit 1
fi
say "uninstall leaves what it did not install"
echo mine >"$work/prefix/share/weir/mine"
cmake --build "$build" --target uninstall >"$work/uninstall.log"
[ "$(find "$work/prefix" -type f)" = "$work/prefix/share/weir/mine" ] || {
	find "$work/prefix" -type f
	exit 1
}
say fine
