#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every verb that does not run a server: its output, where it goes, and its exit code.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

weir
is exit 0; is out has 'Next steps'; is out has 'explain'; is err empty
weir --help
is exit 0; is out has 'Next steps'
weir help check
is exit 0; is out has 'usage: weir check FILE'; is out has 'Example'
for verb in list describe schema check explain graph run ps simulate help version; do
	weir $verb --help
	is exit 0; is out has "usage: weir $verb"; is out has "weir $verb"; is err empty
done

weir chekc
is exit 2; is err has "did you mean 'check'?"; is out empty
weir list --frob
is exit 2; is err has "'--frob'"; is err has 'usage: weir list'
weir list one surplus
is exit 2; is err has "'surplus'"
weir check
is exit 2; is err has 'FILE is missing'; is err has 'usage: weir check'
weir run
is exit 2; is err has 'FILE is missing'
weir describe
is exit 2; is err has 'TYPE is missing'
weir compare one.json
is exit 2; is err has 'RUN is missing'
weir run x.yaml -o json
is exit 2; is err has "'run' does not take -o"
weir list --set a.b=c
is exit 2; is err has "'list' does not take --set"
weir help chek
is exit 2; is err has "did you mean 'check'?"
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
weir describe class
is exit 0; is out has 'guarantee'
weir describe file.raed
is exit 1; is err has "did you mean 'file.read'?"
weir describe admni
is exit 1; is err has "did you mean 'admin'?"; is err has 'other names are stage, group'
# The help lists what can be described.
sections=$(sed 's/.*other names are //; s/,//g' <<<"${err##*$'\n'}")
weir describe --help
help=$out
for section in $sections; do
	out=$help
	is out has "'$section'"
	weir describe "$section"
	is exit 0; is out has 'keys of '
done
[ "$(wc -w <<<"$sections")" -ge 11 ] || fail "too few: $sections"
# A type of a plug-in is known when the command names a file that loads it, whatever else is wrong
# there.
printf 'weir: 1\nplugin: %s\nnonsense: 1\n' "$3" >plugin.yaml
weir list
is exit 0; is out lacks 'crash'
weir list plugin.yaml
is exit 0; is out has 'crash'; is err empty
weir describe crash
is exit 1; is err has "unknown stage type 'crash'"
weir describe crash plugin.yaml
is exit 0; is out has 'crash: '; is err empty
printf 'weir: 1\nplugin: ./gone.so\n' >gone.yaml
weir list gone.yaml
is exit 1; is err has 'gone.yaml:2:9'; is out empty
weir describe echo gone.yaml
is exit 1; is out empty
weir list gone
is exit 1; is err has 'gone: cannot be read'

weir schema
is exit 0; is out has "\"\$schema\""; is out has 'file.cache'

"$program" list >/dev/full 2>"$work/err"
rc=$? out='' err=$(<"$work/err") about='weir list >/dev/full'
is exit 1; is err has 'cannot write'

# For https.yaml.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost \
	-keyout "$work/site.key" -out "$work/site.pem" 2>/dev/null
export CERT=$work/site.pem KEY=$work/site.key
for file in "$top"/config/servers/*.yaml; do
	weir check "$file"
	# root is warned that `user:` is missing
	err=$(grep -v 'running as root' <<<"$err")
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
weir check "$top/config/servers/static.yaml" --set web.max_connections=100
is exit 1; is err has "did you mean 'with.max_connections'?"
weir check "$top/config/servers/static.yaml" --set web.with.max_connections=100
is exit 0
# The sample site is for this host only, unless configured otherwise.
weir explain "$top/config/servers/static.yaml" stages.web.with
is out has '127.0.0.1:'
ADDRESS=0.0.0.0 weir explain "$top/config/servers/static.yaml" stages.web.with
is out has '0.0.0.0:'
weir check "$top/config/servers/static.yaml" --set disk.admission.threshold=1025
is exit 1; is err has 'a threshold of 1025 is above the limit of the queue'
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

# The admin endpoint may not listen where a stage does: detected without opening anything.
clash() {
	printf 'weir: 1\nadmin: { listen: "%s" }\nstages:\n  web: { use: http.server, with: { listen: %s }, to: { request: end } }\n  end: { use: respond }\n' \
		"$1" "$2" >clash.yaml
	weir check clash.yaml
}
clash 0.0.0.0:9900 '"127.0.0.1:8080"'
is exit 1; is err has 'clash.yaml:2:18: '; is err has 'needs tokens and TLS there'
clash 127.0.0.1:9900 '"127.0.0.1:9900"'
is exit 1; is err has 'clash.yaml:2:18: '; is err has "stage 'web' would both listen on port 9900"
clash localhost:9900 '["127.0.0.1:8080", "0.0.0.0:9900"]'
is exit 1; is err has 'would both listen'
clash 127.0.0.1:9900 '":9900"'
is exit 1; is err has 'would both listen'
clash 127.0.0.1:9900 '["127.0.0.1:8080", "127.0.0.2:9900"]'
is exit 0
clash 127.0.0.1:0 '"127.0.0.1:0"'
is exit 0
clash unix:/nowhere/admin.sock '"127.0.0.1:9900"'
is exit 0

# The mistakes of docs/README, all at once, each with its path, its line and the suggested fix.
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
