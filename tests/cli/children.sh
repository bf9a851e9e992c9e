#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Children of events: what ps, top, show, why and trace say about the stage whose events wait for them,
# and the knob. Arguments: PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

weir describe stage
is exit 0; is out has 'children         how many children an event may have at a time'
weir explain server.yaml stages.hello
is exit 0; is out has 'stages.hello.children'; is out has '256'

cp "$(dirname "$3")/split.so" .
printf 'weir: 1\nname: x\nplugin: ./split.so\nstages:\n  end: { use: drop }\n' >split.yaml
weir describe split split.yaml
is exit 0; is out has 'square           squares numbers; number; children, which are awaited'

# ---- the knob: refused where no event can have children, and out of its bounds ----
sed 's/use: respond,/use: respond, children: 5,/' server.yaml >none.yaml
weir check none.yaml
is exit 1; is err has "stage 'hello' (respond) has no outlet, so none of its events has children"
is err has "remove 'children'"
sed 's/use: respond,/use: respond, children: 0,/' server.yaml >small.yaml
weir check small.yaml
is exit 1; is err has "'0' is too small"
sed 's/use: respond,/use: respond, children: 65537,/' server.yaml >large.yaml
weir check large.yaml
is exit 1; is err has "'65537' is too large"

# ---- a server whose events have none ----
launch server.yaml
for verb in ps top 'show hello' 'why hello'; do
	# shellcheck disable=SC2086
	weir $verb --admin "$admin"
	is exit 0; is out lacks 'children'
done
weir set hello.children=7 --admin "$admin"
is exit 1; is err has "stage 'hello' has no outlet"

# ---- the same, as if they had some ----
timeout 120 python3 "$top/tests/cli/with_children.py" "$admin" "$work/port" 2>"$work/changes.err" &
changes=$!
until [ -s "$work/port" ]; do kill -0 "$changes" || break; done
at=http://127.0.0.1:$(<"$work/port")
says='12 events wait for children, 40 of which are in flight; of the stages after it, tiles has most in flight, 33'
weir ps --admin "$at"
is exit 0; is out has "hello: $says"; is out lacks 'tiles: '
weir top --admin "$at"
is exit 0; is out has 'hello: 12 events wait for children, 40 of which are in flight'; is out lacks 'tiles: '
weir why hello --admin "$at"
is exit 0; is out has "  children $says"
weir show hello --admin "$at"
is exit 0
is out has 'children   345 made: 300 joined, 4 orphaned, 1 cancelled, 40 in flight; 12 of the events in flight wait for theirs (at most 256 each)'
is out has '           2 of the orphaned were refused to their parent'
weir trace --admin "$at"
is exit 0
is out has '  hello                10ms     10ms |...###'
is out has '  (its children)       60ms          |      ~~~~~~~~~~~~~~~~~~~~'
is out has '   child 16 tiles      50ms     10ms |      ................###'
is out has '   child 15 tiles      40ms     10ms |      .............###'
is out has '  it awaited 16 children last; of these, those that ended last are shown'
is out lacks '(at no stage)'
kill "$changes"
kill "$pid"
ended
finish
