#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The proposals of the scripts of `weir completion bash` and `zsh`, requested as bash does, and
# within zsh after compinit.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

weir completion
is exit 2; is err has 'bash|zsh|fish is missing'
weir completion tcsh
is exit 2; is err has "not for 'tcsh'"; is out empty
weir completion bash
is exit 0; is err empty
printf '%s\n' "$out" >weir.bash
# shellcheck source=/dev/null
. ./weir.bash

# propose WORD...: the proposals for the last word of `weir WORD...`, in $out between blanks.
asked=$program
propose() {
	about="completing: weir $*"
	COMP_WORDS=("$asked" "$@")
	COMP_CWORD=$#
	COMPREPLY=()
	_weir 2>"$work/err"
	rc=$?
	err=$(<"$work/err")
	out=" ${COMPREPLY[*]} "
}

propose ''
is out has ' --help '; is err empty
for verb in $("$program" help | awk '/^Next/ { exit } /^  [a-z]/ { print $1 }'); do
	is out has " $verb "
done
propose ex
is out has ' explain '; is out lacks ' run '
propose check --s
is out has ' --set '
propose list --s
is out lacks ' --set '
propose ps --
is out has ' --admin '; is out has ' --help '; is out lacks ' --check '
propose ps -o ''
is out has ' json '
propose report -o ''
is out lacks ' json '
propose overload ''
is out has ' off shadow enforce '
propose completion b
is out has ' bash '
propose describe file.
is out has ' file.read '; is out lacks 'http'
propose describe d
is out has ' drain '; is out has ' digest '
propose describe to
is out has ' token '
propose help b
is out has ' bench '
propose bench --ra
is out has ' --rate '; is err empty
propose simulate --lo
is out has ' --load '
propose check ''
is out lacks ' --set '
propose nonsense ''
is err empty

propose bench U
is out lacks 'URL'

# Stages of a running server, here not at the default address.
weir completion zsh
is exit 0; is err empty; is out has '#compdef weir'
printf '%s\n' "$out" >_weir
zsh=$(command -v zsh)
[ -n "$zsh" ] || echo 'SKIPPED: there is no zsh (apt-get install zsh), its completion is not asked'

# zpropose WORD...: zsh's proposals for the last word of `weir WORD...`, in $out between blanks.
# This runs zsh itself: the functions that receive proposals write them down, and the words on the
# line are as compinit leaves them.
cat >ask.zsh <<'ZSH'
fpath=($PWD $fpath)
autoload -Uz compinit && compinit -u -d $PWD/zcompdump || exit 3
[[ $_comps[weir] == _weir ]] || { print -u2 'weir has no completion'; exit 3; }
words=($asked "$@") CURRENT=$#words PREFIX=$words[-1] SUFFIX='' curcontext=:complete:weir:
compadd() {
	local -a list=() before=()
	while (( $# )); do
		case $1 in
		--) shift; break ;;
		-a) before+=($1) ;;
		-S) shift ;;
		-*) ;;
		*) break ;;
		esac
		shift
	done
	[[ $1 == -- ]] && shift
	(( $#before )) && list=(${(P)1}) || list=("$@")
	print -rl -- ${(M)list:#${PREFIX}*}
}
_describe() {
	local -a rows=("${(@P)@[-1]}")
	print -rl -- ${(M)${rows%%:*}:#${PREFIX}*}
}
_files() { print FILES; }
_weir
ZSH
zpropose() {
	about="completing in zsh: weir $*"
	out=" $(asked=$asked "$zsh" -f ask.zsh "$@" 2>"$work/err" </dev/null | tr '\n' ' ')"
	rc=$?
	err=$(<"$work/err")
}

if [ -n "$zsh" ]; then
	zpropose ''
	is err empty; is out has ' --help '
	for verb in $("$program" help | awk '/^Next/ { exit } /^  [a-z]/ { print $1 }'); do
		is out has " $verb "
	done
	zpropose ex
	is out has ' explain '; is out lacks ' run '
	zpropose check --s
	is out has ' --set '
	zpropose list --s
	is out lacks ' --set '
	zpropose ps -o ''
	is out has ' json '
	zpropose report -o ''
	is out has ' FILES '; is out lacks ' json '
	zpropose overload ''
	is out has ' off shadow enforce '
	zpropose completion ''
	is out has ' bash zsh '
	zpropose describe file.
	is out has ' file.read '; is out lacks 'http'
	zpropose help b
	is out has ' bench '
	zpropose bench --ra
	is out has ' --rate '; is err empty
	zpropose snapshot ''
	is out has ' FILES '
	zpropose nonsense ''
	is err empty
fi

launch server.yaml
printf '#!/bin/sh\nexec "%s" "$@" --admin "%s"\n' "$program" "$admin" >asked
chmod +x asked
asked=$work/asked
propose show h
is out has ' hello '; is out lacks 'web'
propose why ''
is out has ' hello '; is out has ' web '
propose set h
is out has ' hello. '
if [ -n "$zsh" ]; then
	zpropose show h
	is out has ' hello '; is out lacks 'web'
	zpropose set ''
	is out has ' hello '
fi
kill -TERM "$pid"
about='weir run server.yaml'
ended
is exit 0
# fish: what `complete -C` proposes, a proposal and its description per line.
weir completion fish
is exit 0; is err empty
printf '%s\n' "$out" >weir.fish
fish_proposes() {
	about="fish completes: weir $*"
	rc=0
	out=$(PATH=$(dirname "$program"):$PATH fish --no-config -c "source weir.fish; complete -C 'weir $*'" 2>"$work/err") || rc=$?
	err=$(<"$work/err")
	is exit 0; is err empty
}
if command -v fish >fish_is; then
	fish_proposes ''
	for verb in $("$program" help | awk '/^Next/ { exit } /^  [a-z]/ { print $1 }'); do
		is out has "$verb	"
	done
	fish_proposes 'check --s'
	is out has '--set	'
	fish_proposes 'list --s'
	is out lacks '--set'
	fish_proposes 'ps -o '
	is out has json
	fish_proposes 'completion '
	is out has fish; is out lacks 'describe'
	fish_proposes 'overload '
	is out has shadow
	fish_proposes 'describe file.'
	is out has file.read; is out lacks http
	fish_proposes 'bench --rat'
	is out has --rate
	touch a_file.yaml
	fish_proposes 'check a_f'
	is out has a_file.yaml
fi
finish
