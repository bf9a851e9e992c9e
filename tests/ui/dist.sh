#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The dashboard in the tree is the one that its sources make, and small: dist.sh TOP
# Without vite only the size is checked (exit code 77).
top=$1
ui=$top/admin/ui
bytes=$(cat "$ui"/dist/* | wc -c)
if [ "$bytes" -gt $((256 * 1024)) ]; then
	echo "FAILED: admin/ui/dist has $bytes bytes, more than 256 KiB"
	exit 1
fi
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
