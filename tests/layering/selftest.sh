#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Shows that check.sh can fail. A small valid tree must pass. Then each kind of violation is planted
# alone in a copy, and must be reported with the name of the file.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
failed=0

# plant FILE: write standard input to FILE of the tree under test.
plant() {
	mkdir -p "$work/tree/$(dirname "$1")"
	cat >"$work/tree/$1"
}

fresh_tree() {
	rm -rf "$work/tree"
	plant framework/include/weir/error.h <<<'enum weir_error { WEIR_OK };'
	plant framework/include/weir/stage.h <<<'#include <weir/error.h>'
	plant framework/include/weir/graph.h <<<'#include <weir/stage.h>'
	plant framework/base/lock.h <<<'struct lock { int held; };'
	plant framework/event/queue.h <<<'#include "base/lock.h"'
	plant framework/stage/sink.h <<<'#include "event/queue.h"'
	plant framework/graph/build.c <<<'#include "stage/sink.h"'
	plant stages/basic/parts.h <<<'#include <weir/stage.h>'
	plant stages/basic/echo.c <<<'#include "parts.h"'
	plant config/yaml_tree.c <<<'#include <yaml.h>'
	plant admin/http/mhd.c  <<<'#include <microhttpd.h>'
}

# expect MODE FILE: check.sh MODE must fail and name FILE.
expect() {
	local out
	out=$(bash "$here/check.sh" "$1" "$work/tree" 2>&1)
	local rc=$?
	if [ $rc -ne 1 ] || ! grep -q "^$2:[0-9]*: " <<<"$out"; then
		printf 'not caught: %s in %s (exit %d): %s\n' "$1" "$2" $rc "$out"
		failed=1
	fi
}

# refuse INCLUDE FILE: planting `#include INCLUDE` in FILE must be a violation.
refuse() {
	fresh_tree
	plant "$2" <<<"#include $1"
	expect includes "$2"
}

long_function() {
	printf 'int long_one(int a,\n    int b)\n{\n'
	local i
	for ((i = 0; i < $1 - 4; i++)); do
		printf '\ta += b;\n'
	done
	printf '}\n'
}

fresh_tree
long_function 60 | plant config/long.c
for mode in includes headers sizes; do
	if ! out=$(bash "$here/check.sh" "$mode" "$work/tree" 2>&1); then
		printf 'a right tree is refused by %s: %s\n' "$mode" "$out"
		failed=1
	fi
done

refuse '"base/lock.h"' stages/basic/echo.c            # a stage past the public headers
refuse '<weir/graph.h>' stages/basic/echo.c           # a stage that uses the embedder's API
refuse '"event/queue.h"' framework/base/clock.h       # upwards within the framework
refuse '"stage/sink.h"' framework/event/queue.c       # the same
refuse '"stage/sink.h"' framework/admission/rate.c    # a policy that knows a stage
refuse '"stage/sink.h"' framework/control/resize.c    # the same
refuse '"stage/sink.h"' config/bind.c                 # config past the public headers
refuse '<weir/graph.h>' config/bind.c                 # config that uses the running graph
refuse '"stage/sink.h"' admin/http/mhd.c                   # admin past the public headers
refuse '<yaml.h>' config/bind.c                       # YAML outside its one file
refuse '<yaml.h>' framework/graph/build.c             # the framework and YAML
refuse '<microhttpd.h>' framework/graph/build.c       # the framework and HTTP
refuse '"echo.c"' stages/basic/parts.h                # a source
refuse '"gone.h"' stages/basic/echo.c                 # a header that does not exist
refuse '<stdio.h>' framework/attic/old.c              # a folder without a rule

fresh_tree
plant stages/basic/parts.h <<<'struct parts { size_t n; };'
expect headers stages/basic/parts.h
fresh_tree
long_function 61 | plant config/long.c
expect sizes config/long.c
fresh_tree
seq -f '/* %g */' 501 | plant config/long.c
expect sizes config/long.c

for file in config/text.c admin/ui/src/page.jsx scripts/lib.sh bench/CMakeLists.txt; do
	fresh_tree
	find "$work/tree" -type f -exec sed -i '1i /* SPDX-License-Identifier: MIT */' {} +
	plant "$file" <<<'int text;'
	expect licences "$file"
done

[ $failed = 0 ] && echo "selftest: every planted violation was caught"
exit $failed
