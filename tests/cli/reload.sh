#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Reloading: what weir diff and weir reload say and do, what stays, what a bad file does, and a hundred in a row under load,
# twenty of them bad, after which no request has failed and nothing is left behind. Arguments: PROGRAM SOURCE_DIR.
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
is exit 1; is out has '1 stage changes, 0 connections drop'; is out has 'stages.work.threads.max: 4 -> 8'
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

# ---- one after the other ----
write hello 4 1
launch shop.yaml
[ "$(get /)" = hello ] || fail 'it does not serve'
one reload
is exit 0; is out has 'nothing changes'
# Live knobs alone: the same graph, whose counters go on.
write hello 8 1
one reload --dry-run
is exit 0; is out has '4 -> 8'; is out has 'nothing was done'
one show work
is out has '1 to 4'
one reload
is exit 0; is out has '4 -> 8'
one show work
is out has '1 to 8'
one log
is out has 'operator  reload    work.threads.max: 4 -> 8'; is out lacks 'threads.max = 8'
# An override stays over one that needs a new graph.
one set work.queue.limit=1500
write hullo 8 2
one reload -o json
is exit 0; is out has '"result": "followed"'; is out has '"effect": "rebuild"'
[ "$(get /)" = hullo ] || fail 'the new graph does not answer'
one log
is out has 'operator  reload    shop: a new graph of 6 stages'; is out lacks follows
one show work
is out has '1500'
one undo
is exit 0; is out has 'queue.limit'
one show work
is out lacks '1500'
# A bad file: the caret, and nothing changes. The server goes on.
sed -i 's/use: delay/use: delayed/' shop.yaml
one reload
is exit 1; is err has "did you mean 'delay'"; is err has '^^^'; is err has 'was not changed'
is err has 'shop.yaml:10:'; is err lacks "$work"
[ "$(get /)" = hullo ] || fail 'a bad file ended the server'
# One that can not be built: found after all was read.
write hullo 8 2
sed -i 's/root: \./root: .\/none/' shop.yaml
one reload
is exit 1; is err has 'none'; is err has 'was not changed'
# The file is called what it was called at the start.
about='GET /api/v1/config after reloads'
out=$(curl -sS "${admin%/}/api/v1/config")
is out has '{"file":"shop.yaml","text":'; is out has '{"file":"shop.yaml","line":'; is out lacks "$work"
# What only a start can do is said.
write hullo 8 2
sed -i 's/admin: .*/admin: { listen: "127.0.0.1:9" }/' shop.yaml
one reload
is exit 0; is out has 'waits for the next start'; is out has 'at the next start'


# ---- diff against what runs, which is neither changed nor told of ----
write hullo 8 2
sed 's/max: 8/max: 6/; s/^  hello: .*/  hello: { use: respond, with: { body: "else\\n" } }\n  more: { use: respond }/' shop.yaml >new.yaml
one diff shop.yaml
is exit 0; is out has 'nothing changes'; is out has '1 value comes from ${} on both sides'
orders=$(curl -sS "${admin%/}/api/v1/reload" | grep -o '"done":[0-9]*')
one diff new.yaml
is exit 1; is err has "stage 'more'"; is err has 'Nothing was compared.'
sed -i '/more:/d' new.yaml
one diff new.yaml
is exit 1; is out has 'stages.work.threads.max: 8 -> 6'; is out has 'body: "hullo\n" -> "else\n"  (made anew)'
one diff new.yaml -o json
is exit 1; is out has '"effect": "rebuild"'; is out has '"uncompared": 1'
# A value that is in the open here and from ${} there, and the other way round.
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

kill -HUP "$pid"
weir reload --dry-run --admin "$admin"
is exit 0
curl -sS "${admin%/}/metrics" >metrics
grep -q '^weir_config_last_reload_successful 1$' metrics || fail 'the metric is not there'
grep -q '^weir_config_reloads_total{result="failed"} 2$' metrics || fail "$(grep reloads metrics)"


# ---- the cache stays while nothing that makes its content changes ----
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

# ---- a hundred under load, a fifth of them bad ----
# Each handler thread has one more, its schedstat: threads are counted apart.
fds() { find "/proc/$pid/fd" -type l -printf '%l\n' | grep -vc schedstat; }
threads() { find "/proc/$pid/task" -maxdepth 1 | wc -l; }
rss() { awk '/VmRSS/ { print $2 }' "/proc/$pid/status"; }
drained() { curl -sS "${admin%/}/api/v1/reload" | grep -q '"draining":0'; }
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
one reload; settle # the most sockets that a port gets, which stay
write hullo 8 2
one reload; settle # what is made once is there now
fds=$(fds) threads=$(threads)
"$program" bench "$web" --rate 300 --for 12s -c 20 -q --json >bench.json 2>bench.err &
load=$!
# Meanwhile somebody scrapes again and again: no counter is ever smaller than it was.
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
wait "$load" # 1 also means that the generator was late, which is no business of this test
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
# Clients of the load are gone, the I/O threads are two, as before.
write last 8 2
one reload; settle
for _ in $(seq 100); do
	[ "$(fds)" -le "$fds" ] && break
	sleep 0.05
done
checks=$((checks + 3))
[ "$(fds)" -le "$fds" ] || fail "$(fds) descriptors instead of $fds: $(ls -l "/proc/$pid/fd")"
[ "$(threads)" -le "$((threads + 1))" ] || fail "$(threads) threads instead of $threads"
# Memory: what 80 more reloads left, in KiB. An allocator's arenas grow at first; a graph is 2 MiB.
grown=$(($(rss) - rss20))
echo "80 reloads after the first 20: $grown KiB more of $(rss)"
if ! grep -qaE '__[at]san_init' "$program"; then
	[ "$grown" -lt 8192 ] || fail "memory grew by $grown KiB"
fi
kill -TERM "$pid"
ended
is exit 0; is err has 'nothing was lost'

# ---- a request that lasts: reloads go on meanwhile, and a drain gives it the time that all have ----
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
# A --set holds whatever the file says, and a secret is not told.
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
# What was a secret is not told when it is none any more.
slow plain0
one reload
is exit 0; is out has '(hidden) -> (hidden)'; is out lacks hunter2
for i in $(seq 10); do # more than graphs with requests there may be
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
finish
