#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Decisions and changes survive a restart, beside the history, and are marked.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

sed -i 's/^admin: .*/admin: { listen: "127.0.0.1:0", history: { file: past } }/' server.yaml
one() { weir "$@" --admin "$admin"; }
launch server.yaml
one set hello.threads.max=3
is exit 0
one log
is exit 0; is out has 'hello.threads.max'; is out lacks 'before the restart'
one stop
is exit 0
ended

launch server.yaml
one log
is exit 0; is out has 'set       hello.threads.max'; is out has '(before the restart)'
one undo
is failed; is err has 'no change is left to undo'
one set hello.threads.max=4
is exit 0
one log -o json
about='the log as JSON'
checks=$((checks + 1))
python3 -c '
import json, sys
acts = [e for e in json.load(open(sys.argv[1])) if e["kind"] == "act"]
assert [(a["target"], a["to"], a["before_restart"]) for a in acts] == [
    ("hello.threads.max", "3", True), ("hello.threads.max", "4", False)], acts
assert [a["id"] for a in acts] == [1, 2], acts
' "$work/out" || fail 'it is another one'
one why hello
is exit 0; is out has 'before the restart'
one undo
is exit 0
# a crash keeps what was saved: a save is due once a second
until [ "$(grep -c 'threads.max = ' <(grep -a -o 'threads.max = [0-9a-z]*' past.log))" -ge 3 ]; do kill -0 "$pid" || break; done
kill -KILL "$pid"
ended

launch server.yaml
one log
is exit 0
about='the log after a crash'
checks=$((checks + 1))
[ "$(grep -c 'before the restart' <<<"$out")" = 3 ] || fail 'not three entries'
kill "$pid"
ended

# A file of something else is set aside.
head -c 5000 /dev/zero >past.log
launch server.yaml
one log
is exit 0; is out lacks 'before the restart'
kill "$pid"
ended
is exit 0; is err has 'past.log was not read'; is err has 'past.log.bad'
finish
