#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `user:`: the identity of a server that root starts, what it can still do, and its messages without
# the setting. Skipped (77) when not run as root. Arguments: PROGRAM SOURCE_DIR PLUGIN_THAT_CRASHES
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$2/tests/cli/server.sh"
if [ "$(id -u)" != 0 ] || ! setpriv --reuid nobody --clear-groups true 2>/dev/null; then
	printf 'only root can become another user here\n'
	exit 77
fi
chmod 755 "$work"
cp "$3" crash.so

# Two free ports that only root can bind.
read -r low other <<<"$(python3 - <<'PY'
import socket
free = []
for port in range(600, 1024):
    s = socket.socket()
    try:
        s.bind(("127.0.0.1", port))
        free.append(str(port))
    except OSError:
        pass
    s.close()
print(*free[:2])
PY
)"
# write USER_LINE BODY [ADDRESS]: shop.yaml
write() {
	cat >shop.yaml <<YAML
weir: 1
name: shop
$1
plugin: ./crash.so
admin: { listen: "127.0.0.1:0" }
stages:
  web:   { use: http.server, with: { listen: [ "127.0.0.1:$low"${3+, "$3"} ] }, to: { request: hello } }
  hello: { use: respond, with: { body: "$2\n" } }
YAML
}
one() { weir "$@" --admin "$admin"; }
status() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$pid/status" | tr '\t' ' '; }
# same NAME WANTED GOT
same() {
	checks=$((checks + 1))
	[ "$2" = "$3" ] || { about=$1 && fail "'$3', not '$2'"; }
}

write 'user: nobody' hello
weir check shop.yaml
is exit 0; is err empty
launch shop.yaml
uid=$(id -u nobody) gid=$(id -g nobody)
same uids "$uid $uid $uid $uid" "$(status Uid)"
same gids "$gid $gid $gid $gid" "$(status Gid)"
same groups "$(id -G nobody)" "$(status Groups | sed 's/ *$//')"
for set in CapInh CapPrm CapEff CapAmb; do
	same $set 0000000000000000 "$(status $set)"
done
same NoNewPrivs 1 "$(status NoNewPrivs)"
same 'owner of /proc/PID, of what may be dumped' 0 "$(stat -c %u "/proc/$pid/mem")"
same answer hello "$(curl -sS "http://127.0.0.1:$low/")"
err=$(<log)
is err lacks 'running as root'; is err lacks 'it is ignored'
# A new graph has the socket that root bound; the new file of a plug-in is loaded without root.
write 'user: nobody' hullo
one reload
is exit 0; is out has 'hello.with.body'
same answer hullo "$(curl -sS "http://127.0.0.1:$low/")"
objcopy --add-section .note.more=shop.yaml crash.so more.so && cp more.so crash.so
one reload
is exit 0; is out has '1 plug-in changes'
same answer hullo "$(curl -sS "http://127.0.0.1:$low/")"
# Another privileged address needs root; nothing changes.
write 'user: nobody' hullo "127.0.0.1:$other"
one reload
is exit 1; is err has "127.0.0.1:$other: no permission to listen there"; is err has 'when root starts it, not in a reload'
same answer hullo "$(curl -sS "http://127.0.0.1:$low/")"
write 'user: daemon' hullo
one reload
is exit 0; is out has 'user: nobody -> daemon'; is out has 'at the next start'
kill -TERM "$pid"
ended
is exit 0

# ---- errors ----
write 'user: nobody_of_that_name' hello
weir check shop.yaml
is exit 1; is err has "shop.yaml:3:7: there is no user 'nobody_of_that_name'"
write 'user: [ nobody ]' hello
weir check shop.yaml
is exit 1; is err has "'user' takes a string"
# Checked for the user that will run it: a folder only root can read cannot be its root.
mkdir -p closed/in && chmod 700 closed
write 'user: nobody' hello
sed -i 's,  hello: .*,  hello: { use: file.read\, with: { root: closed/in } },' shop.yaml
weir check shop.yaml
is exit 1; is err has 'closed'
sed -i '/^user:/d' shop.yaml
weir check shop.yaml
is exit 0; is out has ': fine, '; is err has 'running as root'
weir check shop.yaml -o json
is exit 0; is out has '"total": 0'; is err has 'running as root'
sed 's/^name:.*/&\nuser: root/' shop.yaml >rooted.yaml
weir check rooted.yaml
is exit 0; is err empty
weir explain shop.yaml user
is exit 0; is out has 'default'

# ---- without the setting ----
launch server.yaml
err=$(<log)
is err has 'running as root'; is err has "'user: NAME'"
kill -TERM "$pid"
ended
sed 's/^name:.*/&\nuser: root/' server.yaml >rooted.yaml
launch rooted.yaml
err=$(<log)
is err lacks 'running as root'
kill -TERM "$pid"
ended
# A user other than root cannot switch, and says so.
sed 's/^name:.*/&\nuser: daemon/' server.yaml >other.yaml
chmod 644 other.yaml
real=$program
printf '#!/bin/sh\nexec setpriv --reuid nobody --clear-groups %q "$@"\n' "$real" >as_nobody
chmod 755 as_nobody
program=$work/as_nobody
weir check other.yaml
is exit 0; is err has "'user: daemon' is ignored"
launch other.yaml
err=$(<log)
is err has "'user: daemon' is ignored"
kill -TERM "$pid"
ended
is exit 0
finish
