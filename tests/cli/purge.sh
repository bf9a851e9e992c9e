#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# weir purge: what is stored of a URL, a prefix, everything; and a server that stores nothing. Arguments: PROGRAM
# SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

cat >cached.yaml <<'YAML'
weir: 1
name: cached
admin: { listen: "127.0.0.1:0" }
stages:
  web:   { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: cache } }
  cache: { use: http.cache, threads: inline, to: { miss: hello } }
  hello: { use: respond, with: { body: "hello\n", headers: ["Cache-Control: max-age=1000", "Cache-Tag: greeting"] } }
YAML
one() { weir "$@" --admin "$admin"; }
get() { curl -sS --max-time 20 -o /dev/null -D - "${web%/}$1" | grep -i '^cache-status'; }

weir purge
is exit 2; is err has 'URL'
weir purge --help
is exit 0; is out has 'weir purge'
launch cached.yaml
for path in /a /a/b /c /d; do get $path >/dev/null; done
[[ $(get /a) == *'weir; hit'* ]] || fail 'no hit'
one purge "${web%/}/a"
is exit 0; is out has '1 removed'
[[ $(get /a) == *'fwd=miss; stored'* ]] || fail 'still there'
one purge "${web%/}/a*" -o json
is exit 0; is out has '"purged": 2'
one purge /a
is exit 1; is err has "'/a' is not http://HOST/PATH"
one purge tag:greeting
is exit 0; is out has '2 removed'
one purge '*'
is exit 0; is out has '0 removed'
kill "$pid"
ended
is exit 0

launch server.yaml
one purge '*'
is exit 2; is err has 'no stage of this server stores answers'
kill "$pid"
ended
finish
