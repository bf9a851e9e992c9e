#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the script of `weir completion bash` proposes, asked as bash asks it.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

weir completion
is exit 2; is err has 'bash is missing'
weir completion fish
is exit 2; is err has "not for 'fish'"; is out empty
weir completion bash
is exit 0; is err empty
printf '%s\n' "$out" >weir.bash
# shellcheck source=/dev/null
. ./weir.bash

# propose WORD...: what is proposed for the last word of `weir WORD...`, in $out between blanks.
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
for verb in $("$program" help | awk '/^Likely/ { exit } /^  [a-z]/ { print $1 }'); do
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

# Stages of a server that runs, here not at the default address.
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
kill -TERM "$pid"
about='weir run server.yaml'
ended
is exit 0
finish
