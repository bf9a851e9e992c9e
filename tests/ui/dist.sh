#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The dashboard in the tree is the one that its sources make, and small: dist.sh TOP
#
# Limits. A browser loads the page compressed: 100 KB take 1 s on a slow mobile line (1 Mbit/s), which
# is the limit for a first view. Uncompressed it is bounded by the time to parse it and by the memory
# of the program, which has both copies: three and a half times as much is usual for such texts.
# Without vite only the size is checked (exit code 77).
top=$1
ui=$top/admin/ui
# at_most BYTES WHAT LIMIT
at_most() {
	[ "$1" -le "$3" ] && return
	echo "FAILED: admin/ui/dist has $1 bytes $2, more than $3"
	exit 1
}
at_most "$(cat "$ui"/dist/* | wc -c)" uncompressed $((350 * 1024))
at_most "$(for file in "$ui"/dist/*; do gzip -9nc "$file"; done | wc -c)" compressed $((100 * 1024))
if ! [ -d "$ui/node_modules/vite" ] || ! node -e 'const [a, b] = process.versions.node.split(".").map(Number);
	process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null; then
	echo 'SKIPPED: dist is not built anew, since there is no vite (npm ci in admin/ui) or Node.js is older than 20.19'
	exit 77
fi
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
(cd "$ui" && npm run --silent build -- --outDir "$work/dist" --logLevel error) || exit 1
diff -rq "$work/dist" "$ui/dist" || {
	echo 'FAILED: admin/ui/dist is not what admin/ui/src makes: npm run build in admin/ui'
	exit 1
}
