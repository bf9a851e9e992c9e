#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What `weir check` says before a server would fail, or would do less than its YAML seems to say: where it stands and what to
# write instead. Arguments: PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir site
echo gone >site/404.html

# checked: site.yaml from stdin
checked() {
	{
		printf 'weir: 1\nstages:\n'
		cat
	} >site.yaml
	weir check site.yaml
}

# ---- two listeners, one address: the kernel would blame another process ----
checked <<'YAML'
  a: { use: http.server, with: { listen: "127.0.0.1:18080" }, to: { request: d } }
  b: { use: http.server, with: { listen: [ "127.0.0.1:18081", "127.0.0.1:18080" ] }, to: { request: d } }
  d: { use: respond }
YAML
is exit 1
is err has "site.yaml:4:63: stage 'b' listens on 127.0.0.1:18080, as stage 'a' does in line 3 (127.0.0.1:18080)"
checked <<'YAML'
  a: { use: http.server, with: { listen: [ "127.0.0.1:18080", ":18080" ] }, to: { request: d } }
  d: { use: respond }
YAML
is exit 1
is err has "stage 'a' listens on :18080, as stage 'a' does in line 3 (127.0.0.1:18080)"
checked <<'YAML'
  a: { use: http.server, with: { listen: [ "127.0.0.1:18080", "127.0.0.2:18080", "[::1]:18080", "127.0.0.1:0" ] }, to: { request: d } }
  b: { use: http.server, with: { listen: [ "127.0.0.1:0", "[::]:18081", "0.0.0.0:18081" ] }, to: { request: d } }
  d: { use: respond }
YAML
is exit 0

# ---- what is no mistake, but does not do what it seems to ----
checked <<'YAML'
  a: { use: http.server, to: { request: d } }
  d:
    use: file.read
    with:
      root: site
      error_pages: { 403: /nope403.html, 404: /404.html }
      cache_rules: [ { match: "*.css", value: a }, { match: "^/assets/.*$", value: b }, { match: "*.js$", value: c } ]
YAML
is exit 0
is err has "site.yaml:8:27: stage 'd' (file.read): '/nope403.html' is no file below 'root'"
is err has "site.yaml:9:61: stage 'd' (file.read): '^/assets/.*\$' looks like a regular expression"
is err has "'*.js\$' looks like"
is err lacks "'*.css' looks"
is err lacks "'/404.html'"

# ---- a hint that helps ----
checked <<'YAML'
  a: { use: http.server, with: { max_conn_per_ip: 3, zuzu: 1 }, to: { request: d } }
  d: { use: file.read, with: { root: site, error_pages: { 500: /404.html } } }
YAML
is exit 1
is err has "did you mean 'max_connections' or 'max_per_address'?"
is err has 'header_timeout, ...'
is err has 'known here: 400, 403, 404, 405, 406'
is err lacks "mean '400'"
checked <<'YAML'
  a: { use: http.server, to: { request: d } }
  shake: { use: tls.handshake }
  d: { use: respond }
YAML
is exit 1
is err has "add 'handshake: shake' under 'to:' of stage 'a', or remove it"

# ---- errors of values stand at the value ----
checked <<'YAML'
  a: { use: http.server, with: { listen: [ "127.0.0.1:18080", "127.0.0.1" ] }, to: { request: l } }
  l: { use: access_log, with: { file: nolog/access.log }, to: p }
  p: { use: file.read, with: { root: site, precompressed: [ br, zip ] } }
YAML
is exit 1
is err has "site.yaml:3:63: stage 'a' (http.server): '127.0.0.1' is not an address"
is err has "site.yaml:4:39: stage 'l' (access_log): 'nolog/access.log' cannot be opened"
is err has "site.yaml:5:65: stage 'p' (file.read): 'precompressed' cannot be 'zip'"
checked <<'YAML'
  a: { use: http.server, with: { listen: "127.0.0.1" }, to: { request: d } }
  d: { use: file.read, with: { root: nosite } }
YAML
is exit 1
is err has "site.yaml:3:42: stage 'a' (http.server): '127.0.0.1' is not an address"
is err has "site.yaml:4:38: stage 'd' (file.read): root 'nosite' cannot be opened"
checked <<'YAML'
  a: { use: http.server, with: { user: nobody }, to: { request: d } }
  d: { use: file.read, with: { root: site, error_pages: { 404: nope } } }
YAML
is exit 1
is err has "site.yaml:3:40: stage 'a' (http.server): 'user' is"
is err has "site.yaml:4:64: stage 'd' (file.read): 'error_pages' cannot be 'nope'"

# The same address of two links is two.
checked <<'YAML'
  a: { use: http.server, with: { listen: [ "[fe80::1%1]:18080", "[fe80::1%2]:18080" ] }, to: { request: d } }
  d: { use: respond }
YAML
is exit 0
checked <<'YAML'
  a: { use: http.server, with: { listen: [ "[fe80::1%1]:18080", "[fe80::1%1]:18080" ] }, to: { request: d } }
  d: { use: respond }
YAML
is exit 1
is err has "as stage 'a' does in line 3"

# ---- who reads a log's FIFO does not notice: a look that is over would be the end of the log ----
mkfifo pipe
cat pipe >piped &
reader=$!
printf 'weir: 1\nlog: { file: pipe }\nstages:\n  a: { use: http.server, to: { request: d } }\n  d: { use: respond }\n' >piping.yaml
weir check piping.yaml
is exit 0
exec 9<>pipe
echo still there >&9
for ((i = 0; i < 1000 && $(wc -c <piped) == 0; i++)); do sleep 0.01; done
exec 9>&-
wait "$reader"
checks=$((checks + 1))
[ "$(cat piped)" = 'still there' ] || fail "the reader heard: '$(cat piped)'"

# ---- and those of a start: an address that another process has ----
# shellcheck source=tests/cli/server.sh
. "$top/tests/cli/server.sh"
launch server.yaml
port=$(tr -d / <<<"${web##*:}")
checked <<YAML
  a: { use: http.server, with: { listen: [ "127.0.0.1:0", "127.0.0.1:$port" ] }, to: { request: d } }
  d: { use: respond }
YAML
is exit 0
weir run site.yaml
is exit 1
is err has "site.yaml:3:59: stage 'a' (http.server): 127.0.0.1:$port is in use by another process"
kill -TERM "$pid"
ended
is exit 0
finish
