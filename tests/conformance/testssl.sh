#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# testssl (Debian's testssl.sh) at a server with `tls`: testssl.sh PROGRAM
#
# Protocols, the defaults that clients get, and the known vulnerabilities: none may be VULNERABLE,
# nothing older than TLS 1.2 may be offered, and 1.2 and 1.3 must be. No name is resolved and no
# other host is contacted. Takes about a minute.
set -uo pipefail

program=$1
work=$(mktemp -d) || exit 2
server=
cleanup() {
	[ -n "$server" ] && kill "$server" 2>/dev/null && wait "$server" 2>/dev/null
	rm -rf "$work"
}
trap cleanup EXIT
cd "$work" || exit 2

command -v testssl >/dev/null || { echo 'testssl is missing: apt-get install testssl.sh'; exit 1; }

openssl req -x509 -newkey rsa:2048 -nodes -days 90 -subj /CN=localhost -keyout site.key -out site.pem \
	-addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>openssl.log || { cat openssl.log; exit 1; }
cat >server.yaml <<'EOF'
weir: 1
stages:
  web:
    use: http.server
    with: { listen: "127.0.0.1:0", tls: { cert: site.pem, key: site.key } }
    to: { request: hello, handshake: shake }
  hello: { use: respond, with: { body: "hello\n" }, threads: inline }
  shake: { use: tls.handshake, queue: { limit: 1024 } }
EOF
"$program" run server.yaml >out 2>log &
server=$!
for _ in $(seq 200); do
	url=$(sed -n 's/^weir [^:]*: \(https:.*\)/\1/p' out)
	[ -n "$url" ] && break
	kill -0 "$server" 2>/dev/null || { cat log; exit 1; }
	sleep 0.05
done
port=${url##*:}
port=${port%/}

timeout "${TESTSSL_SECONDS:-240}" testssl --quiet --color 0 --warnings batch --nodns none --ip 127.0.0.1 --sneaky \
	--connect-timeout 5 --openssl-timeout 10 -p -S -U --csvfile found.csv "localhost:$port" >report 2>&1 </dev/null
rc=$?
failures=0
fail() {
	failures=$((failures + 1))
	printf 'FAILED: %s\n' "$1"
}
# found ID: the finding of testssl. Columns: id, fqdn/ip, port, severity, finding, ...
found() {
	awk -F'","' -v id="\"$1" '$1 == id { print $4 ": " $5; exit }' found.csv
}
[ $rc != 124 ] || fail "testssl was not done in time"
[ -s found.csv ] || fail "testssl found nothing (exit $rc)"
! grep -q '","\(HIGH\|CRITICAL\)","[^"]*VULNERABLE' found.csv || fail "something is VULNERABLE"
! grep -q 'VULNERABLE (NOT ok)' report || fail "something is VULNERABLE (NOT ok)"
for old in SSLv2 SSLv3 TLS1 TLS1_1; do
	[[ $(found $old) == *'not offered'* ]] || fail "$old: $(found $old)"
done
for new in TLS1_2 TLS1_3; do
	[[ $(found $new) == *offered* && $(found $new) != *'not offered'* ]] || fail "$new: $(found $new)"
done
for hole in heartbleed CCS ticketbleed ROBOT secure_renego secure_client_renego CRIME_TLS POODLE_SSL SWEET32 FREAK \
	DROWN LOGJAM BEAST LUCKY13 RC4; do
	case $(found $hole) in
	*'not vulnerable'* | *'not applicable'* | OK:* | INFO:*) ;;
	*) fail "$hole: $(found $hole)" ;;
	esac
done
[ $failures = 0 ] || cat report
printf '%d lines of testssl, %d failed\n' "$(wc -l <found.csv)" "$failures"
[ $failures = 0 ]
