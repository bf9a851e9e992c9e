#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `weir man`: a page for every verb, section and stage type, without a warning of roff.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

weir man
is exit 2; is err has 'FOLDER is missing'
weir man ./absent
is exit 1; is err has "cannot write the pages to './absent'"
mkdir pages
weir man pages
is exit 0; is err empty; is out empty

# shown PAGE: as man prints it, in $out. The hyphens that it prints are not those of ASCII.
shown() {
	about="the page $1"
	rc=0
	out=$(groff -man -dAD=l -Tascii -ww -P-cbou "pages/$1" 2>"$work/err") || rc=$?
	err=$(<"$work/err")
	is exit 0; is err empty
}

shown weir.1
for verb in $("$program" help | awk '/^Next/ { exit } /^  [a-z]/ { print $1 }'); do
	is out has "weir $verb"
done
is out has '--token-file FILE'; is out has 'weir check config/servers/static.yaml'
is out has '--warmup'; is out has 'WEIR_ADMIN'; is out has 'weir-file.read(5)'

shown weir.yaml.5
for section in STAGE GROUP CLASS OVERLOAD TRACE LOG ALERTS ADMIN TOKEN USER DRAIN PAYLOADS; do
	is out has "
$section
"
done
is out has 'discipline'

n=0
for type in $("$program" list -o json | python3 -c 'import json, sys
for t in json.load(sys.stdin): print(t["type"])'); do
	shown "weir-$type.5"
	is out has "weir-$type "
	n=$((n + 1))
done
about="$n stage types"
[ "$n" -ge 10 ]; rc=$?; is exit 0
shown weir-file.read.5
is out has 'index  file that answers for its directory'; is out has 'text; default index.html'
is out has '       use: file.read'

finish
