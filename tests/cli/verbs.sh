#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every verb that runs no server: what it prints, where, and its exit code.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

weir
is exit 0; is out has 'Likely next'; is out has 'explain'; is err empty
weir --help
is exit 0; is out has 'Likely next'
weir help check
is exit 0; is out has 'usage: weir check FILE'; is out has 'Example'
for verb in list describe schema check explain graph run ps help version; do
	weir $verb --help
	is exit 0; is out has "usage: weir $verb"; is out has "weir $verb"; is err empty
done

weir chekc
is exit 2; is err has "did you mean 'check'?"; is out empty
weir list --frob
is exit 2; is err has "'--frob'"; is err has 'usage: weir list'
weir list surplus
is exit 2; is err has "'surplus'"
weir check
is exit 2; is err has 'usage: weir check'
weir list -o yaml
is exit 2; is err has "not 'yaml'"
weir list -f dot
is exit 2
weir check x.yaml --set nonsense
is exit 2; is err has 'STAGE.KNOB=VALUE'
weir check x.yaml --set
is exit 2; is err has 'needs a value'

weir version
is exit 0; is out has 'weir 0.'
weir version -o json
is exit 0; is out has '"stage_abi"'
weir list
is exit 0; is out has 'http.server'; is out has 'file.cache'
weir list -o json
is exit 0; is out has '"type": "echo"'
weir describe file.read
is exit 0; is out has 'root'
weir describe file.raed
is exit 1; is err has "did you mean 'file.read'?"
weir schema
is exit 0; is out has "\"\$schema\""; is out has 'file.cache'

"$program" list >/dev/full 2>"$work/err"
rc=$? out='' err=$(<"$work/err") about='weir list >/dev/full'
is exit 1; is err has 'cannot write'

for file in "$top"/config/servers/*.yaml; do
	weir check "$file"
	is exit 0; is out has ': fine, '; is err empty
	weir graph "$file" -f mermaid
	is exit 0; is err empty
	weir explain "$file"
	is exit 0; is out has 'default'
done
weir check "$top/config/servers/static.yaml" --set disk.threads.max=0
is exit 1; is err has 'threads'
weir run "$top/config/servers/static.yaml" --check
is exit 0; is out has ': fine, '
weir explain "$top/config/servers/static.yaml" stages.disk.threads
is exit 0; is out has 'static.yaml:'; is out lacks 'cache'
weir explain "$top/config/servers/static.yaml" stages.nowhere
is exit 1; is err has 'nowhere'
weir graph "$top/config/servers/static.yaml"
is exit 0; is out has 'disk'
weir graph "$top/config/servers/static.yaml" -f dot
is exit 0; is out has 'digraph'
weir graph "$top/config/servers/static.yaml" -f pdf
is exit 2; is err has "not 'pdf'"

# The mistakes of docs/README, all at once, each with its place, its line and the mend.
cat >shop.yaml <<'YAML'
weir: 1
stages:
  web: { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: disk } }
  disk:
    treads: 4
    use: file.read
    root: /srv
    threads: { min: 4, max: 2 }
YAML
weir check shop.yaml
is exit 1; is out empty
is err has "shop.yaml:5:5: unknown key 'treads' in stage 'disk'"
is err has '    5 |     treads: 4'
is err has "did you mean 'threads'?"
is err has "shop.yaml:7:5: 'root' is not a key of a stage"
is err has 'errors. Nothing was started.'
weir check shop.yaml -o json
is exit 1; is out has '"line": 5'; is out has '"hint": "did you mean '
weir run shop.yaml
is exit 1; is err has 'Nothing was started.'
weir check missing.yaml
is exit 1; is err has 'missing.yaml'
printf 'weir: 1\nstages:\n  disk: { use: file.read, with: { root: ./gone } }\n' >root.yaml
weir check root.yaml
is exit 1; is err has 'root.yaml:3:'

weir ps --admin 127.0.0.1:1
is exit 3; is err has '127.0.0.1:1'; is out empty
weir ps --admin unix:/nowhere.sock
is exit 3
weir ps --admin 'no address'
is exit 2
finish
