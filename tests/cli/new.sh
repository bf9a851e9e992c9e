#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `weir new`: the folder that it creates builds against an installed weir without a warning, checks,
# runs and answers; a change of the stage takes effect by a reload. Nothing existing is touched.
#   new.sh PROGRAM SOURCE_DIR BUILD_DIR C_COMPILER [C_FLAGS]
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"
build=$3 cc=$4 flags=${5-}

weir new my-shop
is exit 0; is out has 'my-shop.yaml'; is out has 'my_shop.c'; is out has 'weir run my-shop.yaml'; is err empty
weir new my-shop
is exit 1; is err has 'my-shop exists already'; is out empty
mkdir full && echo kept >full/file
weir new full
is exit 1; is err has 'exists already'
about='an existing folder'
checks=$((checks + 1))
[ "$(ls full)$(<full/file)" = filekept ] || fail 'it was changed'
weir new nowhere/shop
is exit 1; is err has 'No such file'
for name in 9lives 'a b' '' / . a.b echo weird weir "$(printf 'x%.0s' {1..41})"; do
	weir new "$name"
	is exit 2; is err has 'name'; is out empty
done
weir new
is exit 2; is err has 'NAME is missing'
mkdir deep
weir new deep/shop/
is exit 0
about='deep/shop'
checks=$((checks + 1))
[ -e deep/shop/shop.yaml ] || fail 'there is no shop.yaml'
if chmod a-w deep && ! mkdir deep/x 2>/dev/null; then
	weir new deep/other
	is exit 1; is err has 'Permission denied'
fi

# a full disk leaves nothing
(
	ulimit -f 8
	trap '' XFSZ
	"$program" new large >"$work/out" 2>"$work/err"
)
rc=$? out=$(<"$work/out") err=$(<"$work/err") about='weir new on a full disk'
is exit 1; is err has 'large'
checks=$((checks + 1))
[ ! -e large ] || fail 'the folder was left'

# build, as the README says
about='install'
cmake --install "$build" --prefix "$work/prefix" >"$work/made" 2>&1
rc=$? err=$(<"$work/made")
is exit 0
export CMAKE_PREFIX_PATH=$work/prefix CC=$cc CFLAGS="$flags -Wall -Wextra -Werror"
cd my-shop || exit 2
cat >"$work/commands" <<<"$(sed -n '/^cmake -B/p' README.md)"
about='the README'
checks=$((checks + 1))
[ -s "$work/commands" ] || fail 'it has no command that builds'
bash "$work/commands" >"$work/made" 2>&1
rc=$? about='the build' err=$(<"$work/made")
is exit 0; is err lacks warning
weir check my-shop.yaml
is exit 0; is out has 'fine, 2 stages'
weir describe my_shop my-shop.yaml
is exit 0; is out has 'first word of the answer'; is out has 'weir_my_shop_greeted_total'
weir schema
cmp -s "$work/out" weir.schema.json || fail 'the schema is another one'

# run, request
PORT=0 ADMIN_PORT=0 launch my-shop.yaml
about='a request'
out=$(curl -sS "${web%/}/world")
is out has 'hello /world'
weir set my_shop.with.greeting=welcome --admin "$admin"
is exit 0
about='a request after weir set'
out=$(curl -sS "${web%/}/world")
is out has 'welcome /world'
weir unset my_shop.with.greeting --admin "$admin"
is exit 0

# change the stage and reload
sed -i "s/text\[n\] = ' '/text[n] = '~'/" my_shop.c
cmake --build build >"$work/made" 2>&1
rc=$? about='the second build' err=$(<"$work/made")
is exit 0
weir reload --admin "$admin"
is exit 0; is out has 'plugin.my_shop'
about='a request to the changed stage'
out=$(curl -sS "${web%/}/world")
is out has 'hello~/world'
sed -i "s/text\[n\] = '~'/text[n] = '+'/" my_shop.c
weir stage build my_shop.c -o build/my_shop.so
is exit 0; is out has 'build/my_shop.so is built'
weir reload --admin "$admin"
is exit 0; is out has 'plugin.my_shop'
about='a request to the stage that was built without CMake'
out=$(curl -sS "${web%/}/world")
is out has 'hello+/world'
kill -TERM "$pid"
ended
is exit 0
cd "$work" || exit 2
finish
