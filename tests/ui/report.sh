#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The report in a real browser: report.sh WEIR MAKE_RUNS. It draws what it should, loads nothing, says nothing on
# the console, fits a telephone, shows values under the pointer, is dark when it should be and prints.
# Skipped (77) without chromium.
# shellcheck source=tests/cli/lib.sh
set -- "$1" "" "$2"
. "$(dirname "$0")/../cli/lib.sh"

browser=
for name in chromium chromium-browser google-chrome; do
	browser=$(command -v "$name") && break
done
if [ -z "$browser" ]; then
	echo 'SKIPPED: the report is not looked at, since there is no chromium (apt-get install chromium)'
	exit 77
fi
"$3" "$work" || exit 2

# browse FILE ARGS...: open a page with the options; $out is what it prints, $err what the page says on its console.
browse() {
	local file=$1
	shift
	about="chromium $* $file"
	timeout 90 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run \
		--user-data-dir="$work/profile" --allow-file-access-from-files --enable-logging=stderr \
		--virtual-time-budget=4000 "$@" "file://$work/$file" >"$work/out" 2>"$work/log" </dev/null
	rc=$?
	out=$(<"$work/out")
	err=$(grep -a ':CONSOLE' "$work/log")
}

# count PATTERN: how often it is in $out.
count() {
	grep -aoE "$1" <<<"$out" | wc -l
}

# equals WHAT ACTUAL EXPECTED
equals() {
	checks=$((checks + 1))
	[ "$2" = "$3" ] || fail "$1: $2, expected $3"
}

# ---- two runs ----
weir report good.json slow.json -o two.html
is exit 0
browse two.html --dump-dom
is exit 0; is err empty
is out has 'data-read="ready"' # the script came to its end
# goodput, two classes, p99, p50; three percentiles; eight over time for each
equals 'charts' "$(count '<svg class="chart"')" 24
# ten loads for two runs in five charts, and a legend entry in each
equals 'circles' "$(count 'href="#m0" class="mark" x="[0-9.]+%"')" 50
equals 'squares' "$(count 'href="#m1" class="mark" x="[0-9.]+%"')" 50
equals 'flags' "$(count '<use href="#flag"')" 16
equals 'tables beside charts' "$(count '<details class="twin"')" 24
equals 'references to elsewhere' "$(count '(src|href|action|data)="[^#d"][^"]*"')" 0

# ---- texts of a run are texts ----
weir report hostile.json --force -o hostile.html
browse hostile.html --dump-dom
is err empty; is out has '<title>&lt;script&gt;'; is out has 'VOID'
equals 'scripts' "$(count '<script')" 1
equals 'images' "$(count '<img')" 0

# ---- a telephone, and a pointer ----
cat >frame.html <<'HTML'
<!DOCTYPE html><title>frame</title><iframe id=f src=two.html width=360 height=800></iframe>
<script>
document.getElementById("f").onload = ({ target }) => {
  const page = target.contentDocument, svg = page.querySelectorAll("svg.chart")[8], box = svg.getBoundingClientRect();
  const small = [...page.querySelectorAll("svg.chart text")].filter((t) => t.getClientRects().length && parseFloat(target.contentWindow.getComputedStyle(t).fontSize) < 10);
  svg.dispatchEvent(new target.contentWindow.PointerEvent("pointermove", { clientX: box.left + box.width / 2, clientY: box.top + 20 }));
  document.body.dataset.width = page.documentElement.scrollWidth;
  document.body.dataset.small = small.length;
  document.body.dataset.read = page.getElementById("read").innerText.replaceAll("\n", "; ");
};
</script>
HTML
browse frame.html --dump-dom
is err empty
is out has 'data-width="360"' # nothing sticks out to the right
is out has 'data-small="0"'   # and no text has shrunk
is out has 'ok: '; is out has 'offered: '

# ---- dark, and print ----
browse two.html --window-size=1200,900 --screenshot="$work/light.png"
is err empty
browse two.html --window-size=1200,900 --screenshot="$work/dark.png" --blink-settings=preferredColorScheme=0
is err empty
checks=$((checks + 1))
[ -s light.png ] && [ -s dark.png ] && ! cmp -s light.png dark.png || fail 'dark looks as light does'
browse two.html --no-pdf-header-footer --print-to-pdf="$work/two.pdf"
checks=$((checks + 1))
[ "$(head -c 5 two.pdf)" = '%PDF-' ] || fail 'it does not print'
finish
