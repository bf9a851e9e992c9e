#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# compare and report on made-up runs: texts, exit codes, files that stay whole. The third argument
# is the program that makes the runs.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

"$3" "$work" || exit 2

weir compare good.json slow.json
is exit 1; is err empty
is out has 'no admission against weir'; is out has 'worse'; is out has 'Worse in'
is out has 'did not alternate'
weir compare slow.json good.json
is exit 0; is out has 'Better in'; is out lacks 'worse  '
weir compare good.json good.json
is exit 0; is out has 'No difference'
cp good.json twin.json
weir compare good.json twin.json
is exit 0; is out has 'weir, twin.json against weir, good.json'
weir compare good.json slow.json -o json
is exit 1; is err empty; is out has '"verdict": "worse"'; is out has '"goodput_per_s"'
weir compare good.json slow.json good.json -o json
is exit 1; is out has '"verdict": "within noise"'

weir compare good.json closed.json
is exit 2; is out empty; is err has "'closed (closed loop)' is a closed-loop one"
weir compare good.json void.json
is exit 2; is err has 'is void'; is err has '--force'
weir compare good.json void.json --force
is out has 'these figures do not count'
weir compare good.json hostile.json --force
is exit 2; is err has 'different classes'
weir compare good.json
is exit 2; is err has 'RUN'
weir compare good.json missing.json
is exit 2; is err has 'missing.json cannot be read'; is out empty
weir compare good.json slow.json -o yaml
is exit 2; is err has "not 'yaml'"

weir report good.json slow.json -o page.html
is exit 0; is out empty; is err empty
page=$(<page.html)
out=$page
is out has '<!DOCTYPE html>'; is out has '</html>'; is out has 'Compared with weir'
weir report good.json -o -
is exit 0; is out has '</html>'
weir report good.json
is exit 2; is err has '-o FILE'
weir report good.json -o no_such_folder/page.html
is exit 1; is err has 'no_such_folder'
weir report good.json -o /dev/full
is exit 1; is err has 'cannot write'

# A malformed file: one message with the member, and the old page unchanged.
sed 's/"took_s":/"tuck_s":/' good.json >bad.json
weir report good.json bad.json -o page.html
is exit 2; is out empty; is err has 'bad.json: took_s is missing'
out=$(<page.html)
[ "$out" = "$page" ] || fail 'the old page was touched'
[ -z "$(find . -name '*.tmp')" ] || fail 'a temporary file was left behind'
head -c 1000 good.json >cut.json
weir report cut.json -o page.html
is exit 2; is err has 'is not JSON: line 1'
finish
