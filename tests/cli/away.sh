#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Connections turned away before the graph are reported where an operator looks first. Arguments:
# PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

sed 's/listen: "127.0.0.1:0" }, to/listen: "127.0.0.1:0", accept_rate: 1 }, to/' server.yaml >limited.yaml
one() { weir "$@" --admin "$admin"; }
status() { curl -sS -o /dev/null -w '%{http_code}\n' --max-time 20 "$web" 2>/dev/null; }

launch limited.yaml
one ps
is out lacks 'turned away'
one why
is out lacks 'turned away'; is out lacks 'turns away'

# A second's worth of connections, at least 10, is accepted; of 40 within 20 s some are not.
for _ in {1..40}; do status; done >told
about='40 connections'
checks=$((checks + 1))
refused=$(grep -c 503 told)
[ "$refused" -gt 0 ] || fail "$(sort told | uniq -c)"
one ps
is out has "web turned away $refused in front of the graph: $refused connections refused for exceeding accept_rate"
about='the column SHED'
checks=$((checks + 1))
[ "$(awk '$2 == "http.server" { print $(NF - 2) }' <<<"$out")" = "$refused" ] || fail "not $refused"
one ps -o json
is out has '"turned_away":true'; is out has '"turned_away":false'

# While connections are still turned away.
while [ ! -e enough ]; do status; done >/dev/null &
one why
is out has 'web turns away '; is out has '/s connections refused for exceeding accept_rate'; is out has ' turned away/s'
one why web
is out has 'web turns away '
one why hello
is out lacks 'turns away'
# The samples show the refusals: in weir top, and in the curves of the dashboard.
shed=0
for _ in {1..200}; do
	one top -n 1
	shed=$(awk '$1 == "web" { print $(NF - 1) }' <<<"$out")
	[ "${shed:-0}" != 0 ] && [ "$shed" != - ] && break
done
checks=$((checks + 1))
case "$shed" in '' | 0 | -) fail 'weir top knows nothing of it' ;; esac
touch enough
wait $!

# Errors of clients are not counted there.
before=$(curl -sS "${admin%/}/metrics" | grep '^weir_http_refused')
sed -i 's/, accept_rate: 1//' limited.yaml
kill -TERM "$pid"
ended
launch limited.yaml
for _ in 1 2 3; do curl -sS -o /dev/null -H 'Content-Length: 1' -H 'Content-Length: 2' -X POST "$web"; done
about="bad requests behind $before"
checks=$((checks + 1))
curl -sS "${admin%/}/metrics" >metrics
grep -q '^weir_http_bad_requests_total.* 3$' metrics || fail 'they were not counted as bad'
one ps
is out lacks 'turned away'
kill -TERM "$pid"
ended
is exit 0
finish
