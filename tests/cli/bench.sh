#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Load runs from the shell: a run with a server, one without a server, one ended by Ctrl-C, and
# invalid command lines. Every request that was due has exactly one outcome in the run file.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

# law FILE: in every class of every phase `offered` is the sum of the outcomes, and not 0 in total.
law() {
	checks=$((checks + 1))
	python3 - "$1" <<'PY' || fail "the law is broken in $1"
import json, sys
run = json.load(open(sys.argv[1]))
offered = 0
for phase in run["phases"]:
    for c in phase["classes"]:
        offered += c["offered"]
        assert c["offered"] == sum(c["outcomes"].values()), c
assert offered > 0
PY
}

# ---- command lines ----

weir bench
is exit 2; is err has 'the URL is missing'
weir bench ftp://127.0.0.1/ --rate 1
is exit 2; is err has "unknown scheme 'ftp'"
weir bench 127.0.0.1 --rate 1
is exit 2; is err has 'use http://HOST:PORT/PATH'
weir bench http://127.0.0.1:99999/ --rate 1
is exit 2; is err has 'the port must be 1 to 65535'
weir bench http://no-such-host.invalid/ --rate 1 --for 1s -q
is exit 2; is err has 'no-such-host.invalid'
weir bench http://127.0.0.1:1/
is exit 2; is err has 'the load is missing'
weir bench http://127.0.0.1:1/ --clients 10 --rate 5
is exit 2; is err has '--clients sends as fast as the server responds'
weir bench http://127.0.0.1:1/ --clients 10 --closed
is exit 2; is err has 'exclude each other'
weir bench http://127.0.0.1:1/ --rate 10 --pages
is exit 2; is err has '--pages needs --clients'
weir bench http://127.0.0.1:1/ --clients 10 --think-law pareto --think-shape 1
is exit 2; is err has 'must be above 1'
weir bench unix:relative --rate 10
is exit 2; is err has 'is not unix:/PATH'
weir bench http://127.0.0.1:1/ --rate 10 --ramp 1..2
is exit 2; is err has 'only one of'
weir bench http://127.0.0.1:1/ --rate -5
is exit 2; is err has '--rate'; is err has '-5'
weir bench http://127.0.0.1:1/ --ramp 5k-10k
is exit 2; is err has '5k-10k'
weir bench http://127.0.0.1:1/ --rate 10 --for 10
is exit 2; is err has 'write 10ms or 10s'
weir bench http://127.0.0.1:1/ --rate 10 --for 2s --spike 3x@5s+1s
is exit 2; is err has '3x@5s+1s'
weir bench http://127.0.0.1:1/ --raet 10
is exit 2; is err has "did you mean '--rate'"
weir bench http://127.0.0.1:1/ --rate 1 --class ':1'
is exit 2; is err has '--class'
weir bench http://127.0.0.1:1/ --rate 1 --header 'no colon'
is exit 2; is err has 'no colon'
weir bench http://127.0.0.1:1/ --find-capacity --slo fast
is exit 2; is err has "is not of the form p99=50ms"
weir bench http://127.0.0.1:1/ --sweep 1x,2x
is exit 2; is err has '--capacity'
weir bench http://127.0.0.1:1/ --trace absent.txt
is exit 2; is err has 'absent.txt'
printf '0.1\nsoon\n' >times.txt
weir bench http://127.0.0.1:1/ --trace times.txt
is exit 2; is err has 'times.txt:2'; is err has 'soon'
weir bench http://127.0.0.1:1/ --rate 10 --arrivals bursts --burst-factor 20 --burst-share 10%
is exit 2; is err has 'below 1'
printf '0.1\n' >times.txt
weir bench http://127.0.0.1:1/ --trace times.txt --warmup 1s
is exit 2; is err has '--warmup'
weir bench http://127.0.0.1:1/ --rate 1 --users 0
is exit 2; is err has '--users'
weir bench http://127.0.0.1:1/ --rate 1 --users 5 --site surge:20
is exit 2; is err has '--users works with --path'
weir bench --help
is exit 0; is out has '--find-capacity'; is out has '--class'

# ---- the host ----

weir doctor
is out has 'cores this process may use'; is out has 'open files'; is out has 'user a server would run as'
weir doctor -o json
is out has '"open_files"'
weir doctor --all
is exit 2

# An option before the first class would apply to no class.
weir bench http://127.0.0.1:1/ --method PUT --class a
is exit 2; is err has '--method before the first --class'
weir bench http://127.0.0.1:1/ --class a --method PUT --class b:0
is exit 2; is err has 'the weight must be'

# ---- no server: counted, reported, exit 3 ----

weir bench http://127.0.0.1:1/ --rate 50 --for 1s -q -o refused.json
is exit 3; is err has 'no connection'; is out has 'refused'
law refused.json

# ---- a server ----

launch server.yaml
weir bench "$web" --rate 200 --for 1s -q -o run.json --admin "$admin" --class a:1 --path /a --class b:3 --path /b
is out has 'PHASE'; is out has '200/s'; is out has ' b '
law run.json
cp run.json kept.json
weir bench "$web" --rate 200 --for 1s -q -o run.json
is exit 2; is err has '--force'
cmp -s run.json kept.json || fail 'an existing run file was touched'
weir bench "$web" --rate 100 --for 1s -q --site surge:20 --make-site site
is out has '100/s'
[ -n "$(find site -type f)" ] || fail 'no site was made'
weir bench "$web" --rate 100 --for 1s -q -o users.json --users 3
law users.json
python3 - <<'PY' || fail 'the users do not add up to their class'
import json
cls = json.load(open("users.json"))["phases"][0]["classes"][0]
assert len(cls["users"]) == 3 and sum(u[0] for u in cls["users"]) == cls["offered"], cls
PY
checks=$((checks + 1))
weir bench "$web" --clients 20 --think 50ms --think-law pareto --pages --for 1s -q -o thinkers.json
is out has '20 users'
law thinkers.json
python3 -c 'import json; p = json.load(open("thinkers.json"))["plan"]
assert p["users"] == 20 and p["think"] == {"law": "pareto", "shape": 1.5, "pages": True}, p' ||
	fail 'the run file lacks the users'
weir bench "$web" --closed -c 4 --for 1s -q -o closed.json
is out has 'closed loop'
law closed.json
weir bench "$web" --steps 50,100 --for 1s -q --rounds 2 --against "$web" -o side.json
is out has '50/s'
law side.json
law side.against.json
weir bench "$web" --rate 100 --for 1s --seed 7 -q -o one.json
weir bench "$web" --rate 100 --for 1s --seed 7 -q -o two.json
python3 - <<'PY' || fail 'one seed, two schedules'
import json
one, two = (json.load(open(f))["phases"][0]["classes"][0]["offered"] for f in ("one.json", "two.json"))
assert one == two, (one, two)
PY
checks=$((checks + 1))

# ---- an objective is a gate: 0 if it was met, 4 if not, 1 if the host hides it ----

# The answers of server.yaml take no time, but no server answers within a microsecond.
weir bench "$web" --rate 100 --for 1s -q --slo p50=10s -o met.json
is out has 'objective'; is out has 'verdict'
case "$rc $out" in
'0 '*'p50=10s met: 100 %'* | '1 '*'VOID'*) ;;
*) fail 'neither met nor why that is not known' ;;
esac
weir bench "$web" --rate 100 --for 1s -q --slo p99=1us -o missed.json
case "$rc $out" in
'4 '*'p99=1us MISSED: 0 %'* | '1 '*'VOID'*) ;;
*) fail 'neither missed nor why that is not known' ;;
esac
python3 - <<'PY' || fail 'the run file has no result of the gate'
import json
for name, text, met in (("met", "p50=10s", True), ("missed", "p99=1us", False)):
    run = json.load(open(name + ".json"))
    assert run["objective"]["text"] == text, run["objective"]
    assert run["objective"]["met"] == met or run["void"], run["objective"]
PY
checks=$((checks + 1))
weir bench "$web" --rate 100 --for 1s -q --slo fast
is exit 2; is err has 'is not of the form p99=50ms'

# ---- a late generator finds nothing, neither a capacity nor that there is none ----

# The generator runs for a hundredth of the time: requests are late by tens of milliseconds on any
# host.
about='weir bench --find-capacity, held back'
"$program" bench "$web" --find-capacity --for 300ms --warmup 100ms --sweep 1x,2x -o late.json >out 2>err &
bench=$!
while kill -STOP "$bench" 2>/dev/null; do
	sleep 0.05
	kill -CONT "$bench" 2>/dev/null
	sleep 0.0005
done
wait "$bench"
rc=$?
out=$(<out) err=$(<err)
is exit 1; is out has 'VOID: the capacity search ended at'; is out has 'capacity    not found: '
is err has 'does not count, since the generator was late by'; is err lacks 'does not keep'
law late.json
checks=$((checks + 1))
python3 - <<'PY' || fail 'the run file does not say that it is void'
import json
run = json.load(open("late.json"))
assert run["void"].startswith("the capacity search ended"), run["void"]
assert run["capacity_per_s"] is None and run["capacity_note"].startswith("not found"), run["capacity_note"]
late = [p for p in run["phases"] if p["name"].startswith("late ")]
assert len(late) >= 3 and all(p["warmup"] for p in late), run["phases"]
assert not any(p["multiple"] for p in run["phases"]), "a sweep of nothing"
PY
weir report late.json -o late.html
is exit 0
out=$(<late.html)
is out has 'is VOID and does not count'; is out lacks 'conditioned under overload'; is out lacks "verdict ok"

# When it is not late it finds the capacity, here none, and prints a line per trial. When the host
# stalls the search is void. There is no third result.
weir bench "$web" --find-capacity --rate 50 --for 200ms --warmup 50ms --slo p50=1us
case "$rc $out" in
'0 '*'capacity    no rate met p50=1us'* | '1 '*'capacity    not found'*'VOID: the capacity search'*) ;;
*) fail 'neither a capacity nor why there is none' ;;
esac
is err has 'searching: a trial takes 0.25 s'
is err lacks 'due '

# ---- Ctrl-C: the measured part is written ----

about='weir bench, interrupted'
mkfifo progress
"$program" bench "$web" --rate 100 --for 600s -o stopped.json >out 2>progress &
bench=$!
read -r -t 60 _ <progress # after the first second
kill -INT "$bench"
cat progress >/dev/null &
wait "$bench"
rc=$?
out=$(<out)
is out has 'stopped by hand'
case "$rc $out" in # 1: a second in which the host stalls does not count, and that is reported
'0 '* | '1 '*"VOID: the p99 of the generator's lag"*) ;;
*) fail 'neither a run that counts nor one that says why not' ;;
esac
law stopped.json

kill -TERM "$pid"
ended
is exit 0

# ---- a sweep: loads below the given capacity must be served, or the machine changed ----

cat >limited.yaml <<'YAML'
weir: 1
name: limited
admin: { listen: "127.0.0.1:0" }
stages:
  web:   { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: hello } }
  hello:
    use: respond
    with: { body: "hello\n" }
    threads: { min: 1, max: 1 }
    admission: { policy: rate, rate: 40 }
YAML
launch limited.yaml
weir bench "$web" --capacity 400 --sweep 0.5x,0.9x,2x --for 1s --pause 0s -o changed.json
case "$out" in
*'verdict     The machine changed during the run'*'2 of 2 loads below the capacity: not served'*)
	is err has 'that should have been served'
	out=$(python3 -c 'import json
run = json.load(open("changed.json"))
print(sum(p["multiple"] == 0.5 for p in run["phases"]))')
	is out has '3' # the first time, and two repetitions
	;;
*'VOID'*) ;; # the host stalled in every phase
*) fail 'loads below the capacity were refused, and the verdict does not say so' ;;
esac
is out lacks 'collapses'
weir report changed.json -o changed.html
out=$(<changed.html)
is out lacks 'collapses'
kill -TERM "$pid"
ended
finish
