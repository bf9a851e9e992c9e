#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Reloading: the output and effect of weir diff and weir reload, what stays, the effect of an
# invalid file, and a hundred reloads in a row under load, twenty of them invalid. After those no
# request has failed and nothing has leaked. Arguments: PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

mkdir site
echo one >site/page.txt
# write BODY MAX IO_THREADS: shop.yaml
write() {
	cat >shop.yaml <<YAML
weir: 1
name: shop
admin: { listen: "\${ADMIN:-127.0.0.1:0}" }
defaults: { admission: { policy: none } } # what a machine that stalls has refused is no loss of a reload
stages:
  web:   { use: http.server, with: { listen: "127.0.0.1:0", threads: $3 }, to: { request: way } }
  way:   { use: router, with: { routes: [ { path: "/site/*", to: site }, { path: "*", to: work } ] }, to: { site: cache, work: work } }
  cache: { use: file.cache, with: { revalidate: 1h }, to: { miss: disk } }
  disk:  { use: file.read, with: { root: . } }
  work:  { use: delay, with: { time: 100us }, threads: { min: 1, max: $2 }, queue: { limit: 2000 }, to: hello }
  hello: { use: respond, with: { body: "$1\n" } }
YAML
}
one() { weir "$@" --admin "$admin"; }
get() { curl -sS --max-time 20 "${web%/}$1"; }

# ---- diff, without a server ----
write hello 4 1
cp shop.yaml a.yaml
weir diff a.yaml shop.yaml
is exit 0; is out has 'nothing changes'
write hello 8 1
weir diff a.yaml shop.yaml
is exit 1; is out has '1 stage changes, 0 connections dropped'; is out has 'stages.work.threads.max: 4 -> 8'
weir diff a.yaml shop.yaml -o json
is exit 1; is out has '"effect": "live"'
sed -i 's/use: delay/use: delayed/' shop.yaml
weir diff a.yaml shop.yaml
is exit 1; is err has "did you mean 'delay'"; is err has 'Nothing was compared.'
weir reload --admin http://127.0.0.1:1
is exit 3
weir diff a.yaml --admin http://127.0.0.1:1
is exit 3
weir diff
is exit 2; is err has 'FILE is missing'

# ---- one at a time ----
write hello 4 1
launch shop.yaml
[ "$(get /)" = hello ] || fail 'it does not serve'
one reload
is exit 0; is out has 'nothing changes'
# Only live knobs change: the same graph, whose counters continue.
write hello 8 1
one reload --dry-run
is exit 0; is out has '4 -> 8'; is out has 'nothing was done'
one show work
is out has 'min 1, max 4'
one reload
is exit 0; is out has '4 -> 8'
one show work
is out has 'min 1, max 8'
one log
is out has 'operator  reload    work.threads.max: 4 -> 8'; is out lacks 'threads.max = 8'
# An override outranks a value that needs a new graph.
one set work.queue.limit=1500
write hullo 8 2
one reload -o json
is exit 0; is out has '"result": "followed"'; is out has '"effect": "rebuild"'
[ "$(get /)" = hullo ] || fail 'the new graph does not answer'
one log
is out has 'operator  reload    shop: a new graph of 6 stages'; is out lacks 'takes over'
one show work
is out has '1500'
one undo
is exit 0; is out has 'queue.limit'
one show work
is out lacks '1500'
# An invalid file: an error with a caret, and nothing changes. The server continues.
sed -i 's/use: delay/use: delayed/' shop.yaml
one reload
is exit 1; is err has "did you mean 'delay'"; is err has '^^^'; is err has 'was not changed'
is err has 'shop.yaml:10:'; is err lacks "$work"
[ "$(get /)" = hullo ] || fail 'a bad file ended the server'
# A file that cannot be built: found after all of it was read.
write hullo 8 2
sed -i 's/root: \./root: .\/none/' shop.yaml
one reload
is exit 1; is err has 'none'; is err has 'was not changed'
# The file has the name given at the start.
about='GET /api/v1/config after reloads'
out=$(curl -sS "${admin%/}/api/v1/config")
is out has '{"file":"shop.yaml","text":'; is out has '{"file":"shop.yaml","line":'; is out lacks "$work"
# Changes that need a restart are reported.
write hullo 8 2
sed -i 's/admin: .*/admin: { listen: "127.0.0.1:9" }/' shop.yaml
one reload
is exit 0; is out has 'some changes wait for the next start'; is out has 'at the next start'


# ---- diff with the running server, which does not change and counts no reload ----
write hullo 8 2
sed 's/max: 8/max: 6/; s/^  hello: .*/  hello: { use: respond, with: { body: "else\\n" } }\n  more: { use: respond }/' shop.yaml >new.yaml
one diff shop.yaml
is exit 0; is out has 'nothing changes'; is out has '1 value comes from ${} on both sides'
orders=$(curl -sS "${admin%/}/api/v1/reload" | grep -o '"done":[0-9]*')
one diff new.yaml
is exit 1; is err has "stage 'more'"; is err has 'Nothing was compared.'
sed -i '/more:/d' new.yaml
one diff new.yaml
is exit 1; is out has 'stages.work.threads.max: 8 -> 6'; is out has 'body: "hullo\n" -> "else\n"  (rebuilt)'
one diff new.yaml -o json
is exit 1; is out has '"effect": "rebuild"'; is out has '"uncompared": 1'
# A value that is literal on one side and from ${} on the other, and the other way round.
sed 's/listen: "${ADMIN:-127.0.0.1:0}"/listen: "127.0.0.1:0"/' shop.yaml >new.yaml
one diff new.yaml
is exit 1; is out has 'admin.listen: (hidden) -> "127.0.0.1:0"  (at the next start)'
# shellcheck disable=SC2016
sed 's/time: 100us/time: "${TIME:-300us}"/' shop.yaml >new.yaml
one diff new.yaml
is exit 1; is out has 'stages.work.with.time: 100us -> (hidden)'; is out lacks 300us
checks=$((checks + 2))
[ "$(curl -sS "${admin%/}/api/v1/reload" | grep -o '"done":[0-9]*')" = "$orders" ] || fail 'a diff was an order'
[ "$(get /)" = hullo ] || fail 'a diff changed what runs'
# Characters that are printed escaped are not a difference.
write $'\xe2\x80\x8f\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d\xe2\x80\x8e' 8 2
one reload
is exit 0
one diff shop.yaml
is exit 0; is out has 'nothing changes'
write hullo 8 2
one diff shop.yaml
is exit 1; is out has 'body: "\u200f'; is out has '-> "hullo\n"'
one reload
is exit 0

kill -HUP "$pid"
weir reload --dry-run --admin "$admin"
is exit 0
curl -sS "${admin%/}/metrics" >metrics
grep -q '^weir_config_last_reload_successful 1$' metrics || fail 'the metric is not there'
grep -q '^weir_config_reloads_total{result="failed"} 2$' metrics || fail "$(grep reloads metrics)"


# ---- the cache stays while nothing changes that its contents depend on ----
metric() { curl -sS "${admin%/}/metrics" | awk -v name="$1" '$0 !~ /^#/ && index($0, name) { print $2 + 0 }'; }
write hullo 8 2
one reload
[ "$(get /site/page.txt)" = one ] || fail 'the file is not served'
hits=$(metric cache_hits_total) misses=$(metric cache_misses_total)
write other 8 2
one reload
is out has 'stages.hello.with.body'
[ "$(get /site/page.txt)" = one ] || fail 'the file is not served any more'
checks=$((checks + 4))
[ "$(metric cache_hits_total)" = $((hits + 1)) ] || fail "the cache was lost: $hits then $(metric cache_)"
[ "$(metric cache_misses_total)" = "$misses" ] || fail "the cache was lost: $misses then $(metric cache_)"
sed -i 's/root: \./root: site/' shop.yaml
one reload
is exit 0
rc=$(curl -sS -o body -w '%{http_code}' "${web%/}/site/page.txt")
[ "$rc" = 404 ] || fail "another root, and the old file is served: $rc $(<body)"
[ "$(metric cache_hits_total)" = $((hits + 1)) ] || fail "an object of the old root was used"

# ---- a hundred under load, a fifth of them invalid ----
# Each handler thread has one more descriptor, its schedstat: threads are counted separately.
fds() { find "/proc/$pid/fd" -type l -printf '%l\n' | grep -vc schedstat; }
threads() { find "/proc/$pid/task" -maxdepth 1 | wc -l; }
rss() { awk '/VmRSS/ { print $2 }' "/proc/$pid/status"; }
drained() { [[ $(curl -sS "${admin%/}/api/v1/reload") == *'"draining":0'* ]]; }
settle() {
	local i
	for i in $(seq 600); do
		drained && return
		sleep 0.05
	done
	fail 'a graph before does not end'
}
settle
write most 8 3
one reload; settle # opens the largest number of sockets for the port; they stay open
write hullo 8 2
one reload; settle # things created once exist now
fds=$(fds) threads=$(threads)
"$program" bench "$web" --rate 300 --for 12s -c 20 -q --json >bench.json 2>bench.err &
load=$!
# A scraper runs at the same time: no counter ever decreases.
cat >scrape.py <<'PY'
import os, sys, time, urllib.request
url, done = sys.argv[1:]
was, scrapes, kinds, fell = {}, 0, {}, []
while not os.path.exists(done) or scrapes < 2:
    for line in urllib.request.urlopen(url, timeout=20).read().decode().splitlines():
        word = line.split()
        if line.startswith("# TYPE"):
            kinds[word[2]] = word[3]
        if line.startswith("#"):
            continue
        series, value = line.rsplit(" ", 1)
        name = series.split("{")[0]
        base = next((name.removesuffix(end) for end in ("_bucket", "_sum", "_count") if name.removesuffix(end) in kinds), name)
        if kinds.get(base) not in ("counter", "histogram", "summary"):
            continue
        if float(value) < was.get(series, 0.0):
            fell.append(f"{series}: {was[series]} then {value}")
        was[series] = float(value)
    scrapes += 1
    time.sleep(0.02)  # the load needs the cores
print(scrapes, "scrapes,", len(was), "counters,", len(fell), "fell", *fell[:5], sep=" ")
sys.exit(0 if not fell and scrapes > 20 and was.get('weir_stage_events_in_total{stage="work",class="default"}', 0) > 0 else 1)
PY
python3 scrape.py "${admin%/}/metrics" "$work/scraped" >scrape.txt 2>&1 &
scraper=$!
good=0 bad=0
for i in $(seq 100); do
	write "n$i" $((4 + i % 3)) $((1 + i % 3))
	if [ $((i % 5)) = 0 ]; then
		sed -i 's/use: delay/use: delayed/' shop.yaml
		one reload
		[ "$rc" = 1 ] && bad=$((bad + 1))
	else
		one reload
		if [ "$rc" = 0 ]; then good=$((good + 1)); else echo "$err" | head -5; fi
	fi
	[ "$i" = 20 ] && settle && rss20=$(rss)
done
touch scraped
about='a hundred reloads'
checks=$((checks + 2))
wait "$scraper" || fail "counters fell: $(tail -5 scrape.txt)"
cat scrape.txt
[ "$good $bad" = '80 20' ] || fail "$good good and $bad bad reloads instead of 80 and 20"
[ "$(get /)" = n99 ] || fail "the newest configuration does not answer: $(get /)"
wait "$load" # 1 also means that the generator was late, which does not matter here
settle
python3 - bench.json >load.txt <<'PY' || fail "requests were lost: $(<load.txt)"
import json, sys
run = json.load(open(sys.argv[1]))
sums = {}
for phase in run["phases"]:
    for c in phase["classes"]:
        for kind in ("outcomes", "errors"):
            for name, n in c[kind].items():
                sums[f"{kind}.{name}"] = sums.get(f"{kind}.{name}", 0) + n
print(sums)
lost = sum(n for name, n in sums.items() if name != "outcomes.ok")
sys.exit(0 if lost == 0 and sums["outcomes.ok"] > 1000 else 1)
PY
# The clients are gone, and the I/O threads are two as before.
# A reload is not an event: after it the samples of an idle server are 0, whatever its stages have
# done before.
cat >samples.py <<'PY'
import json, sys, time, urllib.request
url, count, behind = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
began = time.time()
while True:
    answer = json.load(urllib.request.urlopen(url, timeout=20))
    stages = answer["stages"].values()
    new = [(at, [s["in"][i] for s in stages]) for i, at in enumerate(answer["at"]) if at > behind]
    new = [(at, row) for at, row in new if any(x is not None for x in row)]
    # idle, in a second that began after the requests above: the next samples begin here
    if behind == 0 and new and new[-1][0] > began + 1 and not any(new[-1][1]):
        print(new[-1][0])
        break
    if behind and len(new) >= count:
        print(*new)
        sys.exit(1 if any(x for _, row in new for x in row) else 0)
    time.sleep(0.05)
PY
idle=$(python3 samples.py "${admin%/}/api/v1/history" 1 0)
write last 8 2
one reload; settle
checks=$((checks + 1))
python3 samples.py "${admin%/}/api/v1/history" 3 "$idle" >samples.txt || fail "events of a reload: $(<samples.txt)"
for _ in $(seq 100); do
	[ "$(fds)" -le "$fds" ] && break
	sleep 0.05
done
checks=$((checks + 3))
[ "$(fds)" -le "$fds" ] || fail "$(fds) descriptors instead of $fds: $(ls -l "/proc/$pid/fd")"
[ "$(threads)" -le "$((threads + 1))" ] || fail "$(threads) threads instead of $threads"
# Memory growth by 80 more reloads, in KiB. The allocator's arenas grow at first; a graph is 2 MiB.
grown=$(($(rss) - rss20))
echo "80 reloads after the first 20: $grown KiB more of $(rss)"
if ! grep -qaE '__[at]san_init' "$program"; then
	[ "$grown" -lt 8192 ] || fail "memory grew by $grown KiB"
fi
kill -TERM "$pid"
ended
is exit 0; is err has 'nothing was lost'

# ---- a long request: reloads continue meanwhile, and a drain gives it the usual time ----
slow() {
	cat >slow.yaml <<YAML
weir: 1
name: slow
admin: { listen: "127.0.0.1:0" }
drain: { grace: 20s }
stages:
  web:   { use: http.server, with: { listen: "127.0.0.1:0", threads: 1 }, to: { request: work } }
  work:  { use: delay, with: { time: 3s }, threads: { min: 1, max: 1 }, to: hello }
  hello: { use: respond, with: { body: "$1\n" } }
YAML
}
export SECRET=hunter2
# shellcheck disable=SC2016
slow '${SECRET}'
launch slow.yaml --set work.queue.limit=7
# --set takes effect whatever the file contains, and a secret is not printed.
one diff slow.yaml
is exit 0; is out has 'not compared'; is out lacks hunter2
sed 's/max: 1 }/max: 1 }, queue: { limit: 9 }/' slow.yaml >new.yaml
one diff new.yaml
is exit 0
SECRET=other one diff new.yaml -o json
is exit 0; is out lacks other
about=GET
out=$(curl -sS "${admin%/}/api/v1/config")
is out has '"sets":["work.queue.limit"]'; is out has '"stages.hello.with.body":null'; is out lacks hunter2
curl -sS --max-time 20 -o body -w '%{http_code}' "$web" >code &
load=$!
for _ in $(seq 200); do
	[ "$(metric 'http_connections{')" = 1 ] && break
	sleep 0.02
done
# A former secret is not printed.
slow plain0
one reload
is exit 0; is out has '(hidden) -> (hidden)'; is out lacks hunter2
for i in $(seq 10); do # more than there may be graphs with requests
	slow "plain$i"
	one reload
	is exit 0; is out has "plain$i"
done
kill -TERM "$pid"
ended
wait "$load"
is exit 0; is err has 'nothing was lost'; is err lacks 'ended unfinished'; is err lacks hunter2
checks=$((checks + 1))
[ "$(<code) $(<body)" = '200 hunter2' ] || fail "the request of the first graph: $(<code) $(<body)"

# ---- a client that reads slowly or not at all: its graph ends after drain.old, and no reload is
# refused ----
idle() {
	cat >idle.yaml <<YAML
weir: 1
name: idle
admin: { listen: "127.0.0.1:0" }
drain: { grace: 20s, old: $1 }
stages:
  web:   { use: http.server, with: { listen: "127.0.0.1:0", threads: 1, body_timeout: 1h, min_body_rate: 0 }, to: { request: hello } }
  hello: { use: respond, with: { body: "$2\n" } }
YAML
}
idle 1h first
launch idle.yaml
# Each graph has a request of which half the body never arrives.
halves=()
for i in $(seq 8); do
	exec {half}<>"/dev/tcp/127.0.0.1/$(sed 's,.*:,,; s,/,,' <<<"$web")"
	printf 'POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 8\r\n\r\nhalf' >&"$half"
	halves+=("$half")
	for _ in $(seq 200); do
		[ "$(metric 'http_received_bytes_total{')" -ge $((i * 51)) ] && break
		sleep 0.02
	done
	idle 1h "body$i"
	one reload
	is exit 0
done
idle 1h ninth
one reload
is exit 1; is err has 'too many earlier graphs still have requests'
for half in "${halves[@]}"; do exec {half}<&-; done
settle
kill -TERM "$pid"
ended
is exit 0
idle 50ms first
launch idle.yaml
for i in $(seq 12); do
	exec {half}<>"/dev/tcp/127.0.0.1/$(sed 's,.*:,,; s,/,,' <<<"$web")"
	printf 'POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 8\r\n\r\nhalf' >&"$half"
	for _ in $(seq 200); do
		[ "$(metric 'http_received_bytes_total{')" -ge $((i * 51)) ] && break
		sleep 0.02
	done
	idle 50ms "body$i"
	one reload
	is exit 0
	settle
	read -r -t 20 line <&"$half"
	checks=$((checks + 1))
	[[ $line == 'HTTP/1.1 503 '* ]] || fail "half a request of a graph that was ended was answered '$line'"
	exec {half}<&-
done
kill -TERM "$pid"
ended
is exit 0
finish
