#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `-o json` of why, top, ps, overload, explain and describe: it parses, has the facts of the text, and
# docs/json.md has every field.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

sed -i 's/^stages:/classes:\n  app:  { match: { path: "\/app\/*" }, slo: 50ms }\n  rest: { match: { path: "\/*" } }\nstages:/' server.yaml
launch server.yaml
curl -s "$web" >"$work/answer"
# a sample is taken once a second
until "$program" top --admin "$admin" -o json 2>"$work/ignored" |
	grep -q '"done":[0-9]'; do kill -0 "$pid" || break; done
timeout 100 python3 "$top/tests/cli/json_facts.py" "$program" "$admin" "$top" "$work" >"$work/out" 2>"$work/err"
rc=$? about='json_facts.py'
out=$(<"$work/out") err=$(<"$work/err")
is exit 0
weir why hello --shed 80200ZS000000 -o json --admin "$admin"
is exit 2
weir why nothing -o json --admin "$admin"
is exit 2; is out empty
for verb in why top overload ps; do
	weir "$verb" --admin 127.0.0.1:1 -o json
	is exit 3; is out empty
done
kill "$pid"
ended
is exit 0
finish
