#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Access to the admin endpoint: auth.sh PROGRAM SOURCE_DIR
#
#   matrix    listen x tokens x TLS x users: which combinations are allowed, and the errors of the others
#   roles     viewer, operator and no token, with curl and with the command
#   foreign   rebound Hosts, pages of other origins, forms
#   failures  six wrong tokens from 127.0.0.1; good tokens pass meanwhile
#   file      a socket file and its users; the file left by a killed server
#   tls       HTTPS with curl and with the command, and a certificate that is not trusted
#   secrets   no token and no session id in anything that was printed
#
# openapi.py tests the response of every route to every role. Needs curl. Certificates are made with
# openssl; without it TLS is left out.
# shellcheck source=tests/cli/lib.sh
. "$2/tests/cli/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$2/tests/cli/server.sh"
command -v curl >/dev/null || { echo 'SKIPPED: there is no curl'; exit 77; }

stages='stages:
  web:   { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: hello } }
  hello: { use: respond, with: { body: "hello\n" } }'

umask 077
head -c 32 /dev/urandom | basenc --base64url >boss.token
head -c 16 /dev/urandom | basenc --base16 >eye.token
head -c 32 /dev/urandom | basenc --base64url >stranger.token
boss=$(<boss.token) eye=$(<eye.token) stranger=$(<stranger.token)
tokens='tokens: { boss: { role: operator, file: boss.token }, eye: { file: eye.token } }'
mkdir kept # everything that was printed, to search it for secrets

# config FILE ADMIN: a server with `admin: { ADMIN }`.
config() {
	printf 'weir: 1\nname: tested\nadmin: { %s }\ndrain: { grace: 20s }\n%s\n' "$2" "$stages" >"$1"
}

n_said=0
keep() {
	n_said=$((n_said + 1))
	printf '%s\n%s\n' "$out" "$err" >"kept/$n_said"
}

# refused WORDS ADMIN | allowed ADMIN
refused() {
	config x.yaml "$2"
	weir check x.yaml
	about="check of admin: { $2 }"
	is exit 1
	is err has "$1"
	is err has 'x.yaml:3:'
	keep
	weir run x.yaml
	is exit 1
	is err has "$1"
	keep
}

allowed() {
	config x.yaml "$1"
	weir check x.yaml
	about="check of admin: { $1 }"
	is exit 0
	keep
}

# asks STATUS CURL-ARGS...: send one request; the body is in $out.
asks() {
	local want=$1
	shift
	about="curl $*"
	rc=$(curl -s --max-time 30 -o body -D head -w '%{http_code}' "$@" 2>"$work/err")
	out=$(<body) err=$(<head)
	is exit "$want"
	keep
}

bearer() {
	printf 'Authorization: Bearer %s' "$1"
}

json='Content-Type: application/json'

# ---- matrix ----

have_tls=
if command -v openssl >/dev/null && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem \
	-out cert.pem -days 2 -subj /CN=tested -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' 2>/dev/null &&
	openssl ecparam -name prime256v1 -genkey -noout -out other.pem 2>/dev/null; then
	have_tls=1
fi
tls='tls: { cert: cert.pem, key: key.pem }'

allowed 'listen: "127.0.0.1:0"'
allowed 'listen: "[::1]:0"'
allowed 'listen: "unix:/tmp/weir-nobody-listens-here"'
allowed "listen: '127.0.0.1:0', $tokens"
for place in 0.0.0.0:9900 '[::]:9900' 192.0.2.1:9900; do
	refused 'has no tokens and no TLS' "listen: '$place'"
	refused 'the admin endpoint needs TLS there' "listen: '$place', $tokens"
done
refused 'tokens are not used there' "listen: 'unix:/tmp/weir-x', $tokens"
refused "'users' are not used on" "listen: '127.0.0.1:0', users: { nobody: {} }"
refused "no user 'nobody-of-that-name'" "listen: 'unix:/tmp/weir-x', users: { nobody-of-that-name: {} }"
refused "'key' is missing" "listen: '127.0.0.1:0', tls: { cert: cert.pem }"
refused 'is not a valid name for Host' "listen: '127.0.0.1:0', hosts: [ 'https://x' ]"
refused 'unknown key' "listen: '127.0.0.1:0', token: {}"
refused 'must be a map' "listen: '127.0.0.1:0', tokens: [ boss ]"
refused "'file'" "listen: '127.0.0.1:0', tokens: { boss: { role: operator } }"
refused "'admin'" "listen: '127.0.0.1:0', tokens: { boss: { role: admin, file: boss.token } }"
refused 'itself uses the name' "listen: '127.0.0.1:0', tokens: { drain: { file: boss.token } }"
refused 'at most 23' "listen: '127.0.0.1:0', tokens: { twenty-four-letters-long: { file: boss.token } }"
refused 'hold the same token' "listen: '127.0.0.1:0', tokens: { a: { file: boss.token }, b: { file: boss.token } }"
refused 'No such file' "listen: '127.0.0.1:0', tokens: { a: { file: nothing } }"
echo swordfish >weak.token
refused '128 random bits' "listen: '127.0.0.1:0', tokens: { a: { file: weak.token } }"
cat boss.token eye.token >both.token
refused '128 random bits' "listen: '127.0.0.1:0', tokens: { a: { file: both.token } }"
cp boss.token open.token && chmod 644 open.token
refused 'chmod 600 open.token' "listen: '127.0.0.1:0', tokens: { a: { file: open.token } }"
if [ $have_tls ]; then
	refused 'it has no tokens' "listen: '0.0.0.0:9900', $tls"
	refused 'TLS is not used on it' "listen: 'unix:/tmp/weir-x', $tls"
	refused 'does not match the certificate' "listen: '127.0.0.1:0', tls: { cert: cert.pem, key: other.pem }"
	chmod 640 key.pem
	refused 'chmod 600 key.pem' "listen: '127.0.0.1:0', $tls"
	chmod 600 key.pem
	allowed "listen: '0.0.0.0:9900', $tokens, $tls"
	allowed "listen: '127.0.0.1:0', $tls"
fi

# ---- roles ----

config tokens.yaml "listen: '127.0.0.1:0', hosts: [ weir.example.org ], $tokens"
weir explain tokens.yaml admin
is out has 'admin.tokens.boss.role'
is out has 'boss.token'
keep
launch tokens.yaml
at=${admin%/}
asks 200 "$at/healthz"
asks 200 "$at/readyz"
asks 200 "$at/"
asks 401 "$at/api/v1/graph"
is err has 'WWW-Authenticate: Bearer'
is out has 'Authorization: Bearer'
asks 401 "$at/metrics"
asks 200 -H "$(bearer "$eye")" "$at/metrics"
asks 200 -H "$(bearer "$eye")" "$at/api/v1/config"
is out has boss.token
asks 403 -X POST -H "$json" -H "$(bearer "$eye")" "$at/api/v1/stages/hello/pause"
is out has 'needs the role operator'
asks 200 -X POST -H "$json" -H "$(bearer "$boss")" "$at/api/v1/stages/hello/pause"
asks 200 -H "$(bearer "$eye")" "$at/api/v1/acts"
is out has '"actor":"boss"'

weir ps --admin "$at"
is exit 3
is err has --token-file
weir ps --admin "$at" --token-file eye.token
is exit 0
is out has hello
WEIR_ADMIN=$at WEIR_TOKEN_FILE=eye.token weir show hello
is exit 0
is out has paused
weir resume hello --admin "$at" --token-file eye.token
is exit 1
is err has 'needs the role operator'
weir resume hello --admin "$at" --token-file boss.token
is exit 0
weir log --admin "$at" --token-file eye.token
is out has boss

# The reload is logged once with the name of the operator; a reload by a signal has no name.
sed -i 's/hello\\n/hullo\\n/' tokens.yaml
weir reload --admin "$at" --token-file boss.token
is exit 0
is out has '(rebuilt)'
weir log --admin "$at" --token-file eye.token
is out has 'boss      reload '
checks=$((checks + 1))
[ "$(grep -c 'a new graph of' <<<"$out")" = 1 ] || fail 'it does not stand there once'
asks 200 -H "$(bearer "$eye")" "$at/api/v1/acts"
is out has '"actor":"boss","what":"reload"'
sed -i 's/hullo\\n/hello\\n/' tokens.yaml
kill -HUP "$pid"
reloads() { curl -sS -H "$(bearer "$eye")" "$at/api/v1/reload"; }
until [[ $(reloads) == *'"done":2'* ]]; do :; done
asks 200 -H "$(bearer "$eye")" "$at/api/v1/acts"
is out has '"actor":"reload","what":"reload"'
keep
weir ps --admin "$at" --token-file open.token
is exit 3
is err has 'chmod 600'
weir ps --admin "$at" --token-file nothing
is exit 3
is err has 'No such file'
weir why hello --admin "$at"
is exit 3
is err has --token-file

# ---- foreign ----

asks 421 -H 'Host: evil.example' -H "$(bearer "$boss")" "$at/api/v1/graph"
asks 421 -H "Host: 127.0.0.1.evil.example:${at##*:}" -H "$(bearer "$boss")" "$at/api/v1/graph"
asks 200 -H 'Host: weir.example.org' -H "$(bearer "$boss")" "$at/api/v1/graph"
asks 200 -X POST -H "$json" -H "$(bearer "$boss")" "$at/api/v1/session"
cookie=$(grep -i '^set-cookie:' head | sed -e 's/^[^:]*: //' -e 's/;.*//')
session=${cookie#*=}
about='the cookie'
out=$cookie
is out has "weir-${at##*:}="
rm "kept/$n_said" # which contains the id on purpose
asks 200 -H "Cookie: $cookie" "$at/api/v1/graph"
asks 403 -X POST -H "$json" -H "Cookie: $cookie" -H 'Origin: http://evil.example' "$at/api/v1/stages/hello/pause"
asks 403 -X POST -H "$json" -H "Cookie: $cookie" -H 'Sec-Fetch-Site: same-site' "$at/api/v1/stages/hello/pause"
asks 403 -X POST -H "$json" -H "Cookie: $cookie" "$at/api/v1/stages/hello/pause"
# A form of another page can send three types, none of which is accepted.
for type in application/x-www-form-urlencoded multipart/form-data text/plain; do
	asks 403 -X POST -H "Content-Type: $type" -H "Cookie: $cookie" -H 'Origin: http://evil.example' -d '{}' \
		"$at/api/v1/stages/hello/pause"
	asks 415 -X POST -H "Content-Type: $type" -H "Cookie: $cookie" -H "Origin: $at" -d '{}' "$at/api/v1/stages/hello/pause"
done
asks 200 -H "$(bearer "$boss")" "$at/api/v1/stages/hello"
is out has '"state":"running"'
asks 405 -H "Cookie: $cookie" "$at/api/v1/stages/hello/pause"
asks 200 -X POST -H "$json" -H "Cookie: $cookie" -H "Origin: $at" "$at/api/v1/stages/hello/resume"

# ---- failures ----

for _ in 1 2 3 4 5; do
	asks 401 -H "$(bearer "$stranger")" "$at/api/v1/graph"
done
asks 429 -H "$(bearer "$stranger")" "$at/api/v1/graph"
is err has 'Retry-After: '
asks 200 -H "$(bearer "$boss")" "$at/api/v1/graph"
asks 401 --interface 127.0.0.2 -H "$(bearer "$stranger")" "$at/api/v1/graph"
asks 200 -H "Cookie: $cookie" "$at/api/v1/graph"
asks 200 "$at/readyz"
weir ps --admin "$at" --token-file boss.token
is exit 0
weir ps --admin "$at" --token-file stranger.token
is exit 3
is err has 'too many wrong ones came from here'
keep

# A replaced token ends its sessions when the server reads it again; here the server is restarted.
kill -TERM "$pid"
ended
is exit 0
is err has 'a wrong token came from 127.0.0.1, number 5 of the 5'
is err has 'boss: POST /api/v1/stages/hello/pause: done'
keep

# ---- reload ----

config changing.yaml "listen: '127.0.0.1:0', $tokens"
launch changing.yaml
at=${admin%/}
asks 200 -X POST -H "$json" -H "$(bearer "$boss")" "$at/api/v1/session"
cookie=$(grep -i '^set-cookie:' head | sed -e 's/^[^:]*: //' -e 's/;.*//')
rm "kept/$n_said"
: >events
about='events of one who may no longer'
curl -sN --max-time 60 -H "$(bearer "$eye")" "$at/events?hz=1" >events &
watcher=$!
for _ in $(seq 200); do
	grep -q 'event: hello' events && break
	sleep 0.05
done
head -c 32 /dev/urandom | basenc --base64url >third.token
third=$(<third.token)
# One token is removed, one is added, one stays with its session; one more name for Host.
config changing.yaml "listen: '127.0.0.1:0', hosts: [ weir.example.net ],
  tokens: { third: { role: operator, file: third.token }, boss: { role: operator, file: boss.token } }"
weir diff changing.yaml --admin "$at" --token-file eye.token
is exit 1; is out has 'admin.tokens.eye.role: viewer -> (gone)'; is out lacks 'next start'
weir reload --admin "$at" --token-file boss.token -o json
is exit 0; is out lacks restart; is out has '"by": "boss"'
asks 401 -H "$(bearer "$eye")" "$at/api/v1/graph"
asks 200 -H "$(bearer "$third")" "$at/api/v1/graph"
asks 200 -H "Cookie: $cookie" "$at/api/v1/graph"
asks 200 -H 'Host: weir.example.net' -H "$(bearer "$boss")" "$at/api/v1/graph"
{ wait "$watcher"; } 2>/dev/null
rc=$?
is exit 0 # the server ended it: curl's own limit would give 28
# An invalid section changes nothing.
config changing.yaml "listen: '127.0.0.1:0', tokens: { third: { file: nothing } }"
weir reload --admin "$at" --token-file third.token
is exit 1; is err has 'No such file'
asks 200 -H "$(bearer "$boss")" "$at/api/v1/graph"
# A new listen address waits for a restart, and so do the new tokens; but token files are read
# again.
config changing.yaml "listen: '127.0.0.1:1', tokens: { third: { role: operator, file: third.token } }"
weir reload --admin "$at" --token-file third.token
is exit 0; is out has 'admin.listen: "127.0.0.1:0" -> "127.0.0.1:1"  (at the next start)'
is out has 'admin.tokens.boss.role: operator -> (gone)  (at the next start)'
asks 200 -H "$(bearer "$boss")" "$at/api/v1/graph"
# The old address again, with the current tokens: nothing waits for a restart.
config changing.yaml "listen: '127.0.0.1:0', tokens: { third: { role: operator, file: third.token } }"
weir reload --admin "$at" --token-file third.token
is exit 0; is out lacks 'next start'
asks 401 -H "$(bearer "$boss")" "$at/api/v1/graph"
asks 401 -H "Cookie: $cookie" "$at/api/v1/graph"
kill -TERM "$pid"
ended
is exit 0; is err has "the previous token 'eye' is no longer valid"
keep

# ---- file ----

mkdir run
config file.yaml "listen: 'unix:$work/run/weir.sock'"
# launch_file FILE: as launch, for a server whose admin is a socket file.
launch_file() {
	mkfifo fifo
	"$program" run "$1" >fifo 2>log </dev/null &
	pid=$!
	exec 3<fifo
	rm fifo
	while read -r -t 60 line <&3 && [[ $line != *'admin unix:'* ]]; do
		:
	done
	about="weir run $1"
	out=$line
	is out has "admin unix:$work/run/weir.sock"
}
launch_file file.yaml
out=$(stat -c %a run/weir.sock)
about='the mode of the socket file'
is out has 600
weir ps --admin "unix:$work/run/weir.sock"
is exit 0
is out has hello
weir pause hello --admin "unix:$work/run/weir.sock"
is exit 0
weir log --admin "unix:$work/run/weir.sock"
is out has "$(id -un)"
config second.yaml "listen: 'unix:$work/run/weir.sock'"
weir run second.yaml
is exit 1
is err has 'in use'
weir ps --admin "unix:$work/run/weir.sock" # and the first one still listens
is exit 0
kill -KILL "$pid"
{ wait "$pid"; } 2>/dev/null
exec 3<&-
[ -S run/weir.sock ] || fail 'a killed server has removed its file'
config users.yaml "listen: 'unix:$work/run/weir.sock', users: { '4321': { role: viewer } }"
launch_file users.yaml # replaces the file of the killed server
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 711 . # a user outside our groups must reach the file
	chmod 711 run
	as() {
		local uid=$1 want=$2
		shift 2
		about="user $uid: $*"
		out=$(setpriv --reuid "$uid" --clear-groups curl -s --max-time 30 -w '%{http_code}' --unix-socket "$work/run/weir.sock" "$@")
		rc=${out: -3}
		is exit "$want"
	}
	as 4321 200 http://localhost/api/v1/session
	is out has '"role":"viewer"'
	as 4321 403 -X POST -H "$json" http://localhost/api/v1/stages/hello/pause
	as 4322 403 http://localhost/healthz
	is out has 'user 4322 has no access'
	as 0 200 -X POST -H "$json" http://localhost/api/v1/stages/hello/pause
	config users.yaml "listen: 'unix:$work/run/weir.sock', users: { '4322': { role: viewer } }"
	weir reload --admin "unix:$work/run/weir.sock"
	is exit 0
	as 4321 403 http://localhost/healthz
	as 4322 200 http://localhost/healthz
fi
config users.yaml "listen: 'unix:$work/run/weir.sock'"
weir reload --admin "unix:$work/run/weir.sock"
is exit 0
out=$(stat -c %a run/weir.sock)
about='the mode of the socket file that has no users any more'
is out has 600
kill -TERM "$pid"
ended
is exit 0
[ ! -e run/weir.sock ] || fail 'the socket file is left'

# ---- tls ----

if [ $have_tls ]; then
	config tls.yaml "listen: '127.0.0.1:0', $tokens, $tls"
	mkfifo fifo
	"$program" run tls.yaml >fifo 2>log </dev/null &
	pid=$!
	exec 3<fifo
	rm fifo
	at=
	while [ -z "$at" ] && read -r -t 60 line <&3; do
		[[ $line != *'admin https://'* ]] || at=${line##* }
	done
	at=${at%/}
	port=${at##*:}
	asks 200 --cacert cert.pem -H "$(bearer "$boss")" "$at/api/v1/graph"
	asks 200 --cacert cert.pem --tls-max 1.2 "$at/healthz"
	asks 000 --cacert cert.pem --tls-max 1.1 --ciphers DEFAULT@SECLEVEL=0 "$at/healthz"
	asks 000 "http://127.0.0.1:$port/healthz"
	asks 000 "$at/healthz" # not trusted
	asks 200 --cacert cert.pem "https://localhost:$port/" # curl resolves localhost itself
	asks 403 --cacert cert.pem -H "Origin: http://127.0.0.1:$port" -H "$(bearer "$boss")" "$at/api/v1/graph"
	asks 200 --cacert cert.pem -X POST -H "$json" -H "$(bearer "$boss")" "$at/api/v1/session"
	is err has '__Host-weir-'
	is err has '; Secure'
	rm "kept/$n_said"
	about='events over TLS'
	out=$(curl -sN --max-time 30 --cacert cert.pem -H "$(bearer "$eye")" "$at/events?hz=4" | head -c 1500)
	is out has 'event: hello'
	is out has '"role":"viewer"'
	is out has 'event: tick'
	weir ps --admin "$at" --token-file eye.token
	is exit 3
	if [ -s /etc/ssl/certs/ca-certificates.crt ]; then
		is err has 'NOT trusted'
	else # from Debian's ca-certificates, which scripts/test installs
		is err has 'this system trusts no certificate authority'
	fi
	is err has --ca
	weir ps --admin "$at" --token-file eye.token --ca cert.pem
	is exit 0
	is out has hello
	if getent hosts localhost >/dev/null; then # a system without /etc/hosts may not know it
		WEIR_CA=cert.pem weir ps --admin "https://localhost:$port" --token-file eye.token
		is exit 0
	else
		echo "this system does not know 'localhost': left out"
	fi
	WEIR_CA=cert.pem weir ps --admin "$at" --token-file eye.token
	is exit 0
	weir ps --admin "https://other.localhost:$port" --token-file eye.token --ca cert.pem
	is exit 3
	is err has 'does not match'
	weir ps --admin "http://127.0.0.1:$port" --token-file eye.token
	is exit 3
	# Clients that do not start or finish the handshake do not keep others out.
	for _ in $(seq 50); do
		exec {hand}<>"/dev/tcp/127.0.0.1/$port"
		printf '\x16\x03\x01' >&"$hand"
	done
	asks 200 --cacert cert.pem "$at/healthz"
	kill -TERM "$pid"
	ended
	is exit 0
	keep
fi

# ---- secrets ----

about='all that was said'
out=$(grep -rlFe "$boss" -e "$eye" -e "$stranger" -e "$session" kept)
is out empty
out=$(grep -rlF boss.token kept)
is out has kept/ # the search would find it
finish
