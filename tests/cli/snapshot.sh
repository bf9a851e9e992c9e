#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `weir snapshot`: one self-contained page, in which no text is markup and no secret appears.
# Arguments: PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

weir snapshot
is exit 2; is err has 'FILE is missing'
weir snapshot now.html --admin http://127.0.0.1:1
is exit 3; is err has 'no weir server answers'
checks=$((checks + 1))
[ ! -e now.html ] || fail 'a file without a server'

# ---- a server in which every text is markup ----
python3 "$top/tests/cli/snapshot_server.py" "$work/port" 2>"$work/made_up.err" &
made_up_pid=$!
until [ -s port ]; do
	kill -0 $made_up_pid 2>/dev/null || { fail "the made-up server ended: $(<made_up.err)"; finish; }
	sleep 0.02
done
made_up=http://127.0.0.1:$(<port)
echo old >now.html
weir snapshot now.html --admin "$made_up"
is exit 0; is out empty; is err empty
out=$(<now.html)
about='the page of the made-up server'
is out has '<!DOCTYPE html>'; is out has '</html>'; is out has "default-src 'none'"
is out lacks '<script'; is out lacks '<img'; is out lacks 'hunter'; is out lacks $'\u202e'
is out has '&lt;script&gt;alert(1)'
for kept in kept-a kept_b /kept/c kept-d kept_e 'The last 15 minutes' '<svg' 'Decisions' '(left out)'; do
	case $kept in
	kept-a) is out lacks "$kept" ;; # after a secret in the same line: rather too much is left out
	*) is out has "$kept" ;;
	esac
done
# Entries with the same time: the log ends with the one that the server lists first, its newest.
weir log -o json --admin "$made_up"
is exit 0
last=$(python3 -c 'import json, sys; print([e for e in json.load(sys.stdin) if e["kind"] == "act"][-1]["from"][:5])' <<<"$out")
out=$last
is out lacks hunt
out=$(<now.html)
# Only our own tags, closed in order, without handlers, and without references out of the page.
checks=$((checks + 1))
python3 - now.html <<'PY' || fail 'its tags are not as they should be'
import html.parser, sys

class Page(html.parser.HTMLParser):
    open, bad = [], []
    VOID = {"meta", "link", "br", "img", "input", "path", "circle", "rect", "line", "use", "col"}
    LOOSE = {"tr", "td", "th", "p", "li", "dt", "dd", "thead", "tbody", "option"}
    def look(self, tag, attrs):
        for name, value in attrs:
            if name.startswith("on") or name in ("src", "href", "xlink:href", "action") and not value.startswith(("#", "data:,")):
                self.bad.append(f"{tag} {name}={value}")
    def handle_starttag(self, tag, attrs):
        self.look(tag, attrs)
        if tag not in self.VOID | self.LOOSE:
            self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        self.look(tag, attrs)
    def handle_endtag(self, tag):
        if tag in self.VOID | self.LOOSE:
            return
        if not self.open or self.open.pop() != tag:
            self.bad.append(f"</{tag}>")

page = Page()
page.feed(open(sys.argv[1], encoding="utf-8").read())
print(page.bad, page.open)
sys.exit(bool(page.bad or page.open))
PY
checks=$((checks + 1))
leftover=$(find . -name 'now.html?*')
[ -z "$leftover" ] || fail "left beside it: $leftover"

# ---- a page that cannot be written leaves the old one ----
mkdir shut
echo old >shut/now.html
chmod 500 shut
if [ "$(id -u)" != 0 ]; then
	weir snapshot shut/now.html --admin "$made_up"
	is exit 1
fi
weir snapshot nowhere/now.html --admin "$made_up"
is exit 1; is err has 'nowhere'
checks=$((checks + 1))
[ "$(<shut/now.html)" = old ] || fail 'what was there before is gone'
chmod 700 shut

kill "$made_up_pid"
wait "$made_up_pid" 2>/dev/null

# ---- weir itself ----
launch server.yaml
weir snapshot now.html --admin "$admin"
is exit 0
out=$(<now.html)
is out has 'tested'; is out has 'hello'; is out has 'weir: 1'; is out has 'weir 0.'
weir snapshot - --admin "$admin"
is exit 0; is out has '</html>'
weir why --admin "$admin"
is exit 0; is out has 'Nothing '
weir log --all --admin "$admin"
is exit 0
kill -TERM "$pid"
ended
is exit 0
finish
