#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A certificate renewed in place is reported by a reload, and by a dry run. Arguments: PROGRAM
# SOURCE_DIR. Needs openssl; without it nothing is tested (77).
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

command -v openssl >/dev/null || {
	echo 'SKIPPED: there is no openssl'
	exit 77
}
# certificate NAME DAYS: site.pem and site.key
certificate() {
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout site.key -out site.pem -days "$2" \
		-subj "/CN=$1" -addext "subjectAltName=DNS:$1" 2>/dev/null && chmod 600 site.key
}
one() { weir "$@" --admin "$admin"; }

certificate old.example 30 || fail 'no certificate was made'
cat >>server.yaml <<'YAML'
  safe:  { use: http.server, with: { listen: "127.0.0.1:0", tls: { cert: site.pem, key: site.key } }, to: { request: hello, handshake: shake } }
  shake: { use: tls.handshake }
YAML
launch server.yaml
one reload --dry-run
is exit 0; is out has 'nothing changes'; is out lacks 'certificate'

certificate new.example 60
one reload --dry-run
is exit 0; is out lacks 'nothing changes'; is out has '1 stage has renewed certificates (nothing was done)'
is out has '~ safe: certificate for new.example, valid until '; is out has ' (before: old.example, until '
one reload -o json
is exit 0; is out has '"result": "turned"'; is out has '"stage": "safe"'; is out has 'certificate for new.example, valid until '
one reload
is exit 0; is out has 'nothing changes'; is out lacks 'certificate'

# A common name may be anything, and is truncated, but still reported.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout site.key -out site.pem -days 70 -utf8 \
	-subj "/CN=$(printf 'ж%.0s' {1..45})" 2>/dev/null || fail 'no certificate was made'
one reload --dry-run
is exit 0; is out has '~ safe: certificate for ??????'; is out has ' (before: new.example, until '

# The same together with other changes.
certificate third.example 90
sed -i 's/hello\\n/hullo\\n/' server.yaml
one reload
is exit 0; is out has '1 stage is rebuilt'; is out has '~ safe: certificate for third.example, valid until '
kill -TERM "$pid"
ended
is exit 0
finish
