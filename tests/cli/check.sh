#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The reports of `weir check` before a server would fail, or would do less than its YAML seems to
# say: the location, and what to write instead. Arguments: PROGRAM SOURCE_DIR.
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

# ---- values with a limit: the first excess one is shown ----
{
	printf '  a:\n    use: http.server\n    to: { request: d }\n    with:\n      listen:\n'
	for i in {1..17}; do printf '        - "127.0.0.%d:18080"\n' "$i"; done
	printf '  d: { use: respond }\n'
} >stages
checked <stages
is exit 1
is err has "site.yaml:24:11: stage 'a' (http.server): 'listen' needs 1 to 16 addresses"
is err has 'move the others to another stage of this type'
{
	printf '  a: { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: s2 } }\n'
	for i in {2..256}; do printf '  s%d: { use: access_log, to: s%d, threads: inline }\n' "$i" $((i + 1)); done
	printf '  s257: { use: respond, threads: inline }\n'
} >stages
checked <stages
is exit 1
is err has 'site.yaml:259:3: there are 257 stages, at most 256 are allowed'
is err has 'this is the first stage over the limit'
checked <<'YAML'
  a: { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: d } }
  d: { use: respond, threads: { max: 1000, start: 1000 } }
YAML
is exit 1
is err has "site.yaml:4:3: the pools need at least 1000 threads, stage 'd' 1000 of them, but the budget"
is err has "lower 'threads.start', or share a group"

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
checked <<'YAML'
  a: { use: http.server, with: { listen: [ "unix:/run/a.sock", "unix:/run/b.sock" ] }, to: { request: d } }
  b: { use: http.server, with: { listen: "unix:/run/b.sock" }, to: { request: d } }
  d: { use: respond }
YAML
is exit 1
is err has "stage 'b' listens on unix:/run/b.sock, as stage 'a' does in line 3 (unix:/run/b.sock)"
checked <<'YAML'
  a: { use: http.server, with: { listen: "unix:/run/a.sock", socket_mode: 0999 }, to: { request: d } }
  b: { use: http.server, with: { listen: "unix:@b" }, to: { request: d } }
  c: { use: http.server, with: { listen: "127.0.0.1:0", socket_group: no-such-group }, to: { request: d } }
  d: { use: respond }
YAML
is exit 1
is err has "'socket_mode' cannot be '0999'"
is err has "abstract names are not supported"
is err has "this machine has no group 'no-such-group'"

# ---- valid, but without the effect it seems to have ----
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
is err has "site.yaml:8:27: stage 'd' (file.read): '/nope403.html' is not a servable file below 'root'"
is err has "site.yaml:9:61: stage 'd' (file.read): '^/assets/.*\$' looks like a regular expression"
is err has "'*.js\$' looks like"
is err lacks "'*.css' looks"
is err lacks "'/404.html'"

# ---- useful hints ----
checked <<'YAML'
  a: { use: http.server, with: { max_conn_per_ip: 3, zuzu: 1 }, to: { request: d } }
  d: { use: file.read, with: { root: site, error_pages: { 500: /404.html } } }
YAML
is exit 1
is err has "did you mean 'max_connections' or 'max_per_address'?"
is err has 'memory, ...'
is err has 'known here: 400, 403, 404, 405, 406'
is err lacks "mean '400'"
checked <<'YAML'
  a: { use: http.server, to: { request: d } }
  shake: { use: tls.handshake }
  d: { use: respond }
YAML
is exit 1
is err has "add 'handshake: shake' under 'to:' of 'a', or remove this stage"

# ---- errors of values are located at the value ----
checked <<'YAML'
  a: { use: http.server, with: { listen: [ "127.0.0.1:18080", "127.0.0.1" ] }, to: { request: l } }
  l: { use: access_log, with: { file: nolog/access.log }, to: p }
  p: { use: file.read, with: { root: site, precompressed: [ br, zip ] } }
YAML
is exit 1
is err has "site.yaml:3:63: stage 'a' (http.server): '127.0.0.1' is not an address"
is err has "site.yaml:4:39: stage 'l' (access_log): 'nolog/access.log' cannot be opened"
is err has "site.yaml:5:65: stage 'p' (file.read): 'precompressed' cannot contain 'zip'"
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
is err has "site.yaml:3:40: stage 'a' (http.server): 'user' must be"
is err has "site.yaml:4:64: stage 'd' (file.read): 'error_pages' cannot be 'nope'"

# ---- an origin that is this server ----
checked <<'YAML'
  web: { use: http.server, with: { listen: ":18080" }, to: { request: origin } }
  origin: { use: http.client, with: { origins: [ "http://localhost:18080", "0.0.0.0:18080", "[::1]:18080", "127.0.0.1:18081" ] } }
  inner: { use: http.server, with: { listen: "127.0.0.1:18081" }, to: { request: d } }
  d: { use: respond }
YAML
is exit 1
is err has "site.yaml:4:50: origin http://localhost:18080 is this server: stage 'web' listens there, and its requests would come back to stage 'origin'"
is err has "origin 0.0.0.0:18080 is this server"
is err lacks "origin [::1]:18080"
is err lacks "origin 127.0.0.1:18081"
# by way of another one
checked <<'YAML'
  web: { use: http.server, with: { listen: "127.0.0.1:18080" }, to: { request: one } }
  one: { use: http.client, with: { origins: [ "127.0.0.1:18081" ] } }
  inner: { use: http.server, with: { listen: "unix:/run/x.sock" }, to: { request: two } }
  deep: { use: http.server, with: { listen: "127.0.0.1:18081" }, to: { request: three } }
  two: { use: http.client, with: { origins: "127.0.0.1:18080" } }
  three: { use: http.client, with: { origins: "unix:/run/x.sock" } }
YAML
is exit 1
is err has "origin 127.0.0.1:18081 is this server: stage 'deep' listens there, and its requests would come back to stage 'one'"
is err has "origin unix:/run/x.sock is this server"
checked <<'YAML'
  web: { use: http.server, with: { listen: "127.0.0.1:18080" }, to: { request: origin } }
  origin: { use: http.client, width: { min: 1, max: 2 }, with: { origins: "127.0.0.1:18081", loops: 4 } }
YAML
is exit 1
is err has "stage 'origin' has 4 loops, but a width of 2"

# The same address on two links counts as two.
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

# ---- checking a log FIFO does not disturb its reader: the check must not cause an end of file ----
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
# Whether it has a reader is therefore found out at start.
weir run piping.yaml
is exit 1
is err has "'pipe' cannot be opened for writing: no process reads from this FIFO"
is err has 'start the reader of the FIFO first'
checked <<'YAML'
  a: { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: l } }
  l: { use: access_log, with: { file: pipe }, to: d }
  d: { use: respond }
YAML
is exit 0
weir run site.yaml
is exit 1
is err has "site.yaml:4:"
is err has "stage 'l' (access_log): 'pipe' cannot be opened for writing: no process reads from this FIFO"
is err has 'start the reader of the FIFO first'

# ---- a thread per connection ----
checked <<'YAML'
  a: { use: http.server, with: { listen: "127.0.0.1:0", threads: 256, per_thread: 1 }, to: { request: w } }
  w: { use: delay, threads: inline, to: d }
  d: { use: respond, threads: inline }
YAML
is exit 0
is err lacks per_thread
checked <<'YAML'
  a: { use: http.server, with: { listen: "127.0.0.1:0", per_thread: 101, max_connections: 100 }, to: { request: d } }
  d: { use: respond, threads: inline }
YAML
is exit 1
is err has "site.yaml:3:69: stage 'a' (http.server): 'per_thread' is 101, but all threads together have at most 'max_connections', 100"
is err has "lower 'per_thread'; 1 is a thread per connection"
checked <<'YAML'
  a: { use: http.server, with: { listen: "127.0.0.1:0", threads: 4, per_thread: 1, max_connections: 2 }, to: { request: d } }
  d: { use: respond, threads: inline }
YAML
is exit 0
is err has "site.yaml:3:81: stage 'a'"
is err has "4 I/O threads with 'per_thread: 1' have room for 4 connections, but 'max_connections' is 2"
is err has "raise 'max_connections', or lower 'threads'"
checked <<'YAML'
  a: { use: http.server, with: { listen: "127.0.0.1:0", per_thread: 1 }, to: { request: w } }
  w: { use: burn, threads: inline, to: d }
  d: { use: respond }
YAML
is exit 0
is err has "stage 'a' has 'per_thread', but stage 'd' behind it has threads and a queue"
weir explain site.yaml stages.a.with
is exit 0
is out has 'stages.a.with.per_thread             1  '
weir describe http.server
is exit 0
is out has 'with 1, a thread per connection, inline stages may block'

# ---- errors found at start: an address used by another process ----
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
# A word that is like a known one, and a file without a source.
cat >near.yaml <<'YAML'
weir: 1
classes:
  vip: { match: { pth: /x } }
  rest: {}
stages:
  web: { use: http.server, with: { listen: "127.0.0.1:0" }, to: { reqest: pages } }
  pages: { use: router, with: { routes: [ { path: /a, to: hllo } ] }, to: { hello: hello } }
  hello: { use: respond, with: { body: x } }
YAML
weir check near.yaml
is exit 1
is err has "near.yaml:3:19: class 'vip' matches 'pth', which http.request does not have"
is err has "did you mean 'path'?"
is err has "near.yaml:6:67: stage 'web' (http.server) has no outlet 'reqest'"
is err has "did you mean 'request'?"
sed -i 's/pth/path/; s/reqest/request/' near.yaml
weir check near.yaml
is exit 1
is err has "near.yaml:7:59: stage 'pages' (router): route 1 goes to 'hllo', which is not under 'to:'"
is err has "did you mean 'hello'?"
sed -i 's/hllo/nothing_like_it/' near.yaml
weir check near.yaml
is err has "add 'nothing_like_it: STAGE' to 'to:' of this stage"
sed -i 's/nothing_like_it/hello/' near.yaml
weir check near.yaml
is exit 0
sed -i 's/path: \/x/sna: x/' near.yaml
weir check near.yaml
is err has "did you mean 'sni'?"
sed -i 's/sna: x/headr.x: y/' near.yaml
weir check near.yaml
is exit 1
printf 'weir: 1\nstages:\n  end: { use: drop }\n' >sourceless.yaml
for verb in check run; do
	weir $verb sourceless.yaml
	is exit 1
	is err has "sourceless.yaml:3:3: no stage of this file is a source, so there would be no events"
done
weir graph sourceless.yaml
is exit 0

# Mistakes in links are reported together with those in keys.
cp "$top/tests/config/bad/links_and_keys.yaml" both.yaml
weir check both.yaml
is exit 1; is err has "has no outlet 'requst'"; is err has "links to 'helo'"; is err has "unknown key 'treads'"
is err has "there is no stage type 'respnd'"; is err has '5 errors'
# Not in a file that could not be read as a whole: a stage may be missing because of that.
sed -i '3i include: nowhere.yaml' both.yaml
weir check both.yaml
is exit 1; is err lacks "links to 'helo'"; is err has "a relative path begins at the folder of this file"

# respond: answers that HTTP does not allow, at the place of the mistake.
respond() {
	printf 'weir: 1\nstages:\n  web: { use: http.server, with: { listen: "127.0.0.1:0" }, to: end }\n  end:\n    use: respond\n    with: { %s }\n' "$1" >answer.yaml
	weir check answer.yaml
}
respond 'headers: ["X-A: 1", "content-type: text/html"]'
is exit 1; is err has "answer.yaml:6:33: stage 'end' (respond): the answer would have two 'Content-Type'"
is err has "write it in 'type'"
respond 'type: "", headers: ["Content-Type: a/b"]'
is exit 0
respond 'type: "", headers: ["Content-Type: a/b", "Content-Type: a/c"]'
is exit 1; is err has 'answer.yaml:6:54: '; is err has "two 'Content-Type'"
respond 'headers: ["Server: mine"]'
is exit 1; is err has 'answer.yaml:6:23: '; is err has "'server_name' of http.server"
respond 'headers: ["trailer: X"]'
is exit 1; is err has 'answer.yaml:6:23: '; is err has 'remove this line'
respond 'headers: ["Trailers: X"]'
is exit 0
for status in 204 205 304; do
	respond "status: $status, body: \"x\""
	is exit 1; is err has "answer.yaml:6:32: "; is err has "an answer with status $status has no body"
	is err has "remove 'body', or set another 'status'"
	respond "status: $status"
	is exit 0
done

# Relative paths begin at the folder of the file.
sed -e 's/^stages:/plugin: .\/none.so\nstages:/' answer.yaml >paths.yaml
weir check paths.yaml
is exit 1; is err has 'paths.yaml:2:9: '; is err has 'a relative path begins at the folder of this file'
printf 'weir: 1\nadmin: { listen: "127.0.0.1:0", tokens: { a: { file: none, role: viewer } } }\nstages:\n  web: { use: http.server, with: { listen: "127.0.0.1:0", tls: { cert: none.pem, key: none.key } }, to: end }\n  end: { use: respond }\n' >paths.yaml
weir check paths.yaml
is exit 1; is err has 'paths.yaml:2:54: '; is err has 'a relative path begins at the folder of the YAML file'
# ---- the certificate of the admin endpoint ----
cat >secure.yaml <<'YAML'
weir: 1
name: secure
admin:
  listen: "127.0.0.1:0"
  tls:
    cert: certs/admin.pem
    key: certs/admin.key
stages:
  web:   { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: hello } }
  hello: { use: respond, with: { body: "hello\n" } }
YAML
for verb in check run; do
	weir $verb secure.yaml
	is exit 1
	is err has "secure.yaml:6:11: the certificate certs/admin.pem cannot be used: No such file or directory"
	is err has "    key: certs/admin.key"
	is err has "secure.yaml:7:10: the key of the certificate: cannot read certs/admin.key: No such file or directory"
	is err has "a relative path begins at the folder of the YAML file: looked for in $(pwd -P)"
	is err has '2 errors'
done
# also from elsewhere
mkdir -p other
(cd other && "$program" check ../secure.yaml 2>err)
about='weir check ../secure.yaml' err=$(<other/err)
is err has "a relative path begins at the folder of the YAML file: looked for in $(pwd -P)"
sed -i 's/certs\//\/nowhere\//' secure.yaml
weir check secure.yaml
is exit 1
is err has 'secure.yaml:6:11: the certificate /nowhere/admin.pem cannot be used: No such file or directory'
is err has 'correct the path, or make the file first'
mkdir certs
sed -i 's/\/nowhere\//certs\//' secure.yaml
printf 'no certificate\n' | tee certs/admin.pem >certs/admin.key
weir check secure.yaml
is exit 1
is err has "secure.yaml:7:10: the key of the certificate: certs/admin.key is accessible to users other than its owner"
is err has 'run: chmod 600 certs/admin.key'
chmod 600 certs/admin.key
weir check secure.yaml
is exit 1
is err has 'secure.yaml:6:11: the certificate or the key of certs/admin.pem cannot be used: '
if [ "$(id -u)" != 0 ]; then # root reads everything
	chmod 000 certs/admin.pem
	weir check secure.yaml
	is exit 1
	is err has "user $(id -u), as which the server runs, must be able to read it"
fi
finish
