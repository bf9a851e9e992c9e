#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/docs: every document becomes a page, and every link of a page leads to a file, and to a heading in it.
#   docs.sh SOURCE_DIR
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v pandoc >/dev/null || exit 77
bash "$1/scripts/docs" "$work/html" >"$work/log" 2>&1 || {
	cat "$work/log"
	exit 1
}
python3 - "$work/html" <<'PY'
import os, re, sys
pages = links = 0
bad = []
for folder, _, names in os.walk(sys.argv[1]):
    for page in (os.path.join(folder, name) for name in names if name.endswith(".html")):
        text = open(page).read()
        if "<title>" not in text:
            continue  # a page of a sample site
        pages += 1
        for link in re.findall(r'(?:href|src|srcset)="([^"]+)"', text):
            path, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            links += 1
            target = os.path.normpath(os.path.join(folder, path)) if path else page
            if not os.path.exists(target):
                bad.append(f"{page}: {link} leads nowhere")
            elif anchor and target.endswith(".html") and f'id="{anchor}"' not in open(target).read():
                bad.append(f"{page}: {link} names no heading")
print(f"{pages} pages, {links} links", *bad, sep="\n")
sys.exit(bool(bad) or pages < 20 or links < 500)
PY
