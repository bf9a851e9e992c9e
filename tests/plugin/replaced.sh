#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The file of a plug-in is replaced while a server runs: nothing happens to the server, a dry run
# reports the change and runs none of it, and a reload runs the new one beside the old. Then files
# that are not loaded: by kind, owner and mode. Arguments: PROGRAM SOURCE_DIR C_COMPILER [C_FLAGS]
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$2/tests/cli/server.sh"
unset WEIR_TRUST_FILES SUDO_UID
cc=$3 flags=${4-}
export CONSTRUCTED=$work/constructed

# build FILE VERSION [FLAG]...
build() {
	local file=$1 version=$2
	shift 2
	# shellcheck disable=SC2086
	"$cc" $flags -shared -fPIC -O1 -g -D_GNU_SOURCE "-DVERSION=\"$version\"" "-I$top/framework/include" \
		"-I$top/stages/include" "$top/tests/plugin/replaced/ver.c" -o "$file" "$@" || exit 2
}
one() { weir "$@" --admin "$admin"; }
get() { curl -sS --max-time 20 "$web"; }
# answers TEXT: for a moment after a reload the replaced graph still accepts connections.
answers() {
	local tries=0
	about="GET / ($1)"
	checks=$((checks + 1))
	while out=$(get) rc=$?; [ "$out" != "$1" ] && [ $((tries += 1)) -lt 400 ]; do
		sleep 0.05
	done
	[ "$out" = "$1" ] || fail "expected '$1'"
}
# known VERSION: the server's help for the type is that of the running build.
known() {
	about="the knob of $1"
	out=$(curl -sS --max-time 20 "${admin/%\//}/api/v1/stages/ver/knobs/with.tone")
	checks=$((checks + 1))
	[[ $out == *"of build $1\""* ]] || fail "expected 'of build $1'"
}
loaded() {
	checks=$((checks + 1))
	[ "$(tr "\n" " " <"$CONSTRUCTED")" = "$* " ] || fail "loaded were '$(tr '\n' ' ' <"$CONSTRUCTED")', not '$*'"
}

# alone: wait until the versions that were replaced are unloaded.
alone() {
	local tries=0
	about='the versions in memory'
	checks=$((checks + 1))
	while out=$(awk '/memfd:ver.so/ { print $5 }' "/proc/$pid/maps" | sort -u) && [ "$(wc -l <<<"$out")" != 1 ]; do
		[ $((tries += 1)) -lt 1200 ] || { fail 'a replaced version was not unloaded'; return; }
		sleep 0.05
	done
}

build one.so one
build two.so two
build abi.so abi -DABI=1
# shellcheck disable=SC2016
build origin.so origin '-Wl,-rpath,$ORIGIN/lib'
cp one.so ver.so
cat >shop.yaml <<'YAML'
weir: 1
name: shop
plugin: ./ver.so
admin: { listen: "127.0.0.1:0" }
stages:
  web: { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: ver } }
  ver: { use: ver }
YAML

weir explain shop.yaml plugin
is exit 0; is out has 'plugin.ver'; is out has './ver.so ('; is out has 'shop.yaml:3'
rm "$CONSTRUCTED"

# ---- cp over a loaded file, as the guide says ----
launch shop.yaml
answers one
loaded one
cp two.so ver.so
answers one
: >ver.so
answers one
head -c 6000 two.so >ver.so
answers one
one reload
is exit 1; is err has "plug-in './ver.so' is incomplete"; is err has 'was not changed'
answers one
cp two.so ver.so
one reload --dry-run
is exit 0; is out has '1 plug-in changes'; is out has 'plugin.ver: ./ver.so ('; is out has '(rebuilt)'
is out has 'does not load plug-ins'; is out has 'nothing was done'
loaded one
answers one
one reload
is exit 0; is out has '1 plug-in changes'; is out has 'plugin.ver: ./ver.so ('
answers two
loaded one two
alone
one reload
is exit 0; is out has 'nothing changes'
# The previous contents of the file are loaded again.
cp one.so ver.so
one reload
is exit 0; is out has '1 plug-in changes'
answers one
loaded one two one
alone
# One with another ABI is refused before any of it runs. The running one continues, and the type is
# still its type.
cp abi.so ver.so
one reload
is exit 1; is err has 'stage ABI 1'; is err has 'was not changed'
answers one
one show ver
is exit 0
known one
# Neither a dry run nor a refused reload registers the type of the file's current contents.
cp two.so ver.so
one reload --dry-run
is exit 0
known one
sed -i 's/use: ver }/use: ver, with: { tome: 1 } }/' shop.yaml
one reload
is exit 1; is err has 'tome'
known one
answers one
alone
sed -i 's/, with: { tome: 1 }//' shop.yaml
# Renamed into place, as packages do; and a file of another name with the same type.
cp two.so new.so && mv new.so ver.so
one reload
is exit 0
answers two
known two
alone
mkdir v2 && build v2/ver.so three
sed -i 's,plugin: .*,plugin: v2/ver.so,' shop.yaml
one reload
is exit 0; is out has 'plugin.ver: ./ver.so ('; is out has 'v2/ver.so ('
answers three
# The type of a plug-in that the file no longer names: the next start would not know it.
sed -i '/plugin:/d' shop.yaml
one reload
is exit 1; is err has "comes from a plug-in that this file does not name"
answers three
# A dry run with a plug-in that was never loaded runs none of it.
sed -i 's,^name:.*,&\nplugin: [v2/ver.so\, ./fresh.so],' shop.yaml
build fresh.so fresh -DNAME=fresh
one reload --dry-run
is exit 1; is err has "plug-in './fresh.so' is not loaded yet"; is err has "'weir check'"
loaded one two one two two three
sed -i 's/^plugin: .*/plugin: v2\/ver.so/' shop.yaml
# A version that was linked so is never unloaded. The next ones are still told apart from it.
build kept.so kept -Wl,-z,nodelete
for version in kept one kept two; do
	cp "$version.so" new.so && mv new.so v2/ver.so
	one reload
	is exit 0
	answers "$version"
done
loaded one two one two two three kept one two
# Profilers and debuggers show what it is.
grep -q 'memfd:ver.so' "/proc/$pid/maps" || fail 'the copy has no name'
checks=$((checks + 1))
kill -TERM "$pid"
ended
is exit 0

# ---- files that are not loaded ----
mkdir dir
# refused NAME WORDS [HINT]: a server whose plug-in is dir/ver.so
refused() {
	about=$1
	printf 'weir: 1\nplugin: dir/ver.so\nstages:\n  end: { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: r } }\n  r: { use: respond }\n' >plain.yaml
	weir check plain.yaml
	about=$1
	is exit 1; is err has "$2"; is err has "${3-}"; is err has 'plain.yaml:2:9: '
}
fine() {
	weir check plain.yaml
	about=$1
	is exit 0
}
: >"$CONSTRUCTED"
mkfifo dir/ver.so
refused 'a FIFO' "dir/ver.so' is not a regular file"
rm dir/ver.so && mkdir dir/ver.so
refused 'a folder' "dir/ver.so' is not a regular file"
rmdir dir/ver.so && ln -s /dev/null dir/ver.so
refused 'a device' "/dev/null' is not a regular file"
rm dir/ver.so && printf '#!/bin/sh\n' >dir/ver.so
refused 'a script' 'is not a shared object'
cp origin.so dir/ver.so
refused 'a run path beside itself' 'looks for libraries beside itself' 'absolute path'
cp one.so dir/ver.so
chmod 666 dir/ver.so
refused 'mode 666' "is writable by every user" "chmod o-w $work/dir/ver.so"
chmod 646 dir/ver.so
refused 'mode 646' "is writable by every user"
chmod 644 dir/ver.so
chmod 777 dir
refused 'below a folder of mode 777' "the folder '$work/dir' is writable by every user" "chmod o-w $work/dir"
chmod 1777 dir
fine 'below a sticky folder, as /tmp'
chmod 755 dir
ln -sf "$work/dir" "$work/link"
sed 's,dir/,link/,' plain.yaml >linked.yaml
weir check linked.yaml
is exit 0
if [ "$(id -u)" = 0 ]; then
	chgrp 54321 dir/ver.so && chmod 664 dir/ver.so
	refused 'mode 664 of another group' "is writable by group 54321" "chmod g-w $work/dir/ver.so"
	chgrp 0 dir/ver.so
	fine "mode 664 of the owner's own group"
	chgrp 54321 dir && chmod 775 dir
	refused 'below a folder of mode 775 of another group' "the folder '$work/dir' is writable by group 54321"
	chmod 755 dir && chown 54321 dir/ver.so
	refused 'a file of another owner' "belongs to user 54321" "chown root $work/dir/ver.so"
	chown 0 dir/ver.so && chown 54321 dir
	refused 'a file below a folder of another owner' "the folder '$work/dir' belongs to user 54321" '/etc/weir'
	SUDO_UID=54321 fine 'a file of who called sudo'
	WEIR_TRUST_FILES=any fine 'a file of anybody, where that was said'
	chown 0 dir
	mkdir link2 && ln -s "$work/dir/ver.so" link2/ver.so && chown -h 54321 link2/ver.so
	sed 's,dir/,link2/,' plain.yaml >linked.yaml
	weir check linked.yaml
	is exit 1; is err has "the link '$work/link2/ver.so' belongs to user 54321"

	# ---- the configuration of a server that root starts, and its includes ----
	printf 'weir: 1\ninclude: part.yaml\nstages:\n  end: { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: r } }\n  r: { use: respond }\n' >main.yaml
	printf 'weir: 1\nname: parts\n' >part.yaml
	weir check main.yaml
	is exit 0
	chown 54321 part.yaml
	weir check main.yaml
	is exit 1; is err has 'main.yaml:2:10: '; is err has 'belongs to user 54321'; is err has 'root runs this server'
	is err has "chown root $work/part.yaml"
	chown 0 part.yaml && chown 54321 main.yaml
	weir check main.yaml
	is exit 1; is err has "main.yaml' belongs to user 54321"
	chown 0:54321 main.yaml && chmod 664 main.yaml
	weir check main.yaml
	is exit 1; is err has "main.yaml' is writable by group 54321"; is err has 'chmod g-w'
	chmod 644 main.yaml && mkdir open && chmod 777 open && cp main.yaml part.yaml open
	weir check open/main.yaml
	is exit 1; is err has "the folder '$work/open' is writable by every user"
	chmod 1777 open
	weir check open/main.yaml
	is exit 0
	# A user other than root may read files that others of a team can write.
	if command -v setpriv >/dev/null; then
		chmod 755 "$work" && chmod 775 open && chgrp 54321 open
		out=$(setpriv --reuid 54321 --regid 54321 --clear-groups "$program" check open/main.yaml 2>&1) || fail 'a user is held to the rules of root'
		checks=$((checks + 1))
	fi
fi
finish
