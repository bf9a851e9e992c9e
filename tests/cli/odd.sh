#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Acts of operators in odd orders and with odd input: save into files that are links, read-only or
# nothing to write, saves at once, two stops at once, a server that was killed, names for new.
# Arguments: PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

mkdir 'my shop'
cat >'my shop/a b.yaml' <<YAML
weir: 1
name: shop
admin: { listen: "unix:$(pwd -P)/my shop/admin.sock", history: { file: past.bin } }
stages:
  web:  { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: work } }
  work: { use: delay, with: { time: 1us }, threads: { max: 4 }, queue: { limit: 100 }, to: hello }
  hello: { use: respond, with: { body: "hello\n" }, queue: { limit: 100 } }
YAML
file='my shop/a b.yaml'
admin="unix:$(pwd -P)/my shop/admin.sock"
one() { weir "$@" --admin "$admin"; }

# serve: start the server, wait until it answers. Its socket is not in a URL, so not by launch.
serve() {
	"$program" run "$file" >"$work/said" 2>"$work/log" </dev/null &
	pid=$!
	for _ in $(seq 600); do
		one ps
		[ "$rc" = 0 ] && return
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	err=$(<"$work/log")
	fail 'the server does not answer'
	finish
}
# gone: wait for the process of the server.
gone() {
	wait "$pid"
	rc=$?
}

# ---- new ----
for name in web test all install; do
	weir new $name
	is exit 2; is err has "'$name' is a name in the files of every new server"
	[ ! -e $name ] || fail "$name was made"
done
weir new "my shop/it's/deep"
is exit 1; is err has 'No such file or directory'
mkdir "my shop/it's"
weir new "my shop/it's/deep"
is exit 0; is out has "  cd 'my shop/it'\\''s/deep'"
(eval "$(grep '^  cd ' <<<"$out")" && [ -e deep.yaml ]) || fail 'the printed command does not work'
weir new deep
is exit 0; is out has $'  cd deep\n'
weir new deep
is exit 1; is err has 'exists already'
weir new 'a b'
is exit 2
weir new ''
is exit 2

# ---- save: odd files ----
serve
one set work.threads.max=6
is exit 0
for odd in . /dev/null "my shop"; do
	one save "$odd"
	is exit 1; is err has 'is not a regular file'; is err has 'Nothing was written.'
done
one save ''
is exit 2; is err has 'FILE is empty'
ln -s nowhere.yaml dangling.yaml
one save dangling.yaml
is exit 1; is err has 'dangling.yaml: No such file or directory'
[ ! -e nowhere.yaml ] || fail 'a file was made'
ln -s round.yaml round.yaml
one save round.yaml
is exit 1; is err has 'Too many levels of symbolic links'
mkfifo fifo
one save fifo
is exit 1; is err has 'is not a regular file'
: >empty.yaml
one save empty.yaml
is exit 1; is err has 'the configuration is empty'

# A link stays a link.
ln -s 'my shop/a b.yaml' link.yaml
one save link.yaml
is exit 0; is out has 'link.yaml: 1 value saved'
[ -L link.yaml ] || fail 'the link was replaced'
grep -q 'threads: { max: 6 }' "$file" || fail 'the target of the link has the old value'
one save "$file"
is exit 0
for left in my\ shop/*.yaml.*; do
	[ ! -e "$left" ] || fail "$left was left"
done

# A file that may not be written is not replaced, though its folder could be written.
cat >guarded.sh <<'SH'
cp "$2" guarded.yaml && chmod 444 guarded.yaml || exit 2
"$1" save guarded.yaml --admin "$3"
SH
about='a save into a read-only file'
if [ "$(id -u)" != 0 ]; then
	out=$(bash guarded.sh "$program" "$file" "$admin" 2>&1)
	rc=$?
	is exit 1; is out has 'guarded.yaml cannot be written: Permission denied'
fi

# ---- saves at once ----
# Each saves other values into the same file, and none is lost.
one set work.queue.limit=200
one set hello.queue.limit=300
for _ in 1 2 3 4 5; do
	"$program" save "$file" --admin "$admin" >>saves 2>&1 &
	savers+=($!)
done
codes=''
for saver in "${savers[@]}"; do
	wait "$saver"
	codes+="$? "
done
about='saves at once' out="$codes $(<saves)" err=''
is out has '0 0 0 0 0 '
weir check "$file"
is exit 0
out=$(<"$file")
is out has 'queue: { limit: 200 }'
is out has 'queue: { limit: 300 }'

# Somebody else holds the lock of the folder: it is saved nevertheless.
exec 4<'my shop'
if flock -n 4; then
	one set work.threads.max=7
	one save "$file"
	is exit 0; is out has '3 values saved'
fi
exec 4<&-

# ---- a server that was killed ----
kill -KILL "$pid"
gone
one ps
is exit 3; is err has 'no weir server answers'
one stop
is exit 3
one save "$file"
is exit 3
serve # its socket and its history were left
one show work -o json
is out has '"effective": "7"'
# a second server does not take the socket of a server that runs
weir run "$file"
is exit 1; is err has 'admin.sock'
one ps
is exit 0

# ---- stops at once ----
for i in 1 2 3; do
	"$program" stop --admin "$admin" >stop.$i 2>&1 &
	stopper[i]=$!
done
for i in 1 2 3; do
	wait "${stopper[i]}"
	rc=$? out=$(<stop.$i) about="stop $i of three" err=''
	# one that comes after the end finds no server
	if [ $rc != 3 ]; then
		is exit 0; is out has 'nothing was lost'
	fi
done
gone
is exit 0
one stop
is exit 3
finish
