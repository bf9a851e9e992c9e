#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The dashboard in a real browser: dashboard.sh WEIR TOP. dashboard.mjs has the tests. Needs Node.js
# 18, chromium, and once `npm ci` in this folder; skipped (77) if one of them is missing.
weir=$1 top=$2
here=$top/tests/ui

skip() {
	echo "SKIPPED: the dashboard is not looked at, since $*"
	exit 77
}

command -v node >/dev/null || skip 'there is no node (apt-get install nodejs)'
for name in chromium chromium-browser google-chrome; do
	browser=$(command -v "$name") && break
done
[ -n "$browser" ] || skip 'there is no chromium (apt-get install chromium)'
[ -d "$here/node_modules/playwright-core" ] && [ -d "$here/node_modules/axe-core" ] ||
	skip 'its libraries are not installed (npm ci in tests/ui)'

# The sources must use nothing that turns text into markup.
if grep -rnE 'innerHTML|insertAdjacentHTML|document\.write|eval\(' "$top/admin/ui/src"; then
	echo 'FAILED: texts are to be inserted as texts'
	exit 1
fi
exec timeout 560 node "$here/dashboard.mjs" "$browser" "$weir" "$top"
