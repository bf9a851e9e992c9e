#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# weir simulate: capacities that can be calculated by hand, refused arguments, and the times of a
# running server.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

cat >fork.yaml <<'YAML'
weir: 1
name: fork
admin: { listen: "" }
classes:
  gold: { match: { path: /gold/* } }
  rest: {}
groups:
  core: { threads: { min: 4, max: 4 } }
stages:
  web:   { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: route } }
  route: { use: router, with: { routes: [ { path: /a/*, to: a }, { to: b } ] }, threads: inline, to: { a: first, b: wait } }
  first: { use: burn, group: core, with: { time: 3ms }, to: again }
  again: { use: burn, group: core, with: { time: 1ms }, to: answer }
  wait:  { use: delay, with: { time: 10ms }, threads: { min: 5, max: 5 }, to: answer }
  answer: { use: respond, with: { body: "x" }, threads: inline }
YAML

# number KEY [STAGE]: put a number of the document, or of one stage of it, into $value.
number() {
	value=$(python3 -c '
import json, sys
doc = json.loads(sys.argv[1])
where = doc if len(sys.argv) < 4 else next(s for s in doc["stages"] if s["name"] == sys.argv[3])
print(where[sys.argv[2]])' "$out" "$@") || fail "no $*"
}

# near WANTED PERCENT: is $value within PERCENT of WANTED?
near() {
	checks=$((checks + 1))
	awk -v is="$value" -v wanted="$1" -v percent="$2" \
		'BEGIN { d = is - wanted; if (d < 0) d = -d; exit !(d <= wanted * percent / 100) }' ||
		fail "$value, not $1"
}

# A fifth goes to the group of four threads: 4 ms each, 5,000/s. The rest takes 10 ms in one of five
# threads: 625/s of all. Two cores: 0.2 * 4 ms of each, 2,500/s.
weir simulate fork.yaml --share route.a=20% --cores 2 --load 0.5x -o json
is exit 0; is err empty
number capacity_per_second; near 625 0.01
number bottleneck; checks=$((checks + 1)); [ "$value" = wait ] || fail "the bottleneck is $value"
number cores_ceiling_per_second; near 2500 0.01
number ceiling_per_second core; near 5000 0.01
number service_seconds core; near 0.004 0.01
number busy wait; near 0.5 3
number done_per_second core; near 62.5 5

# The same seed gives the same output to the bit; another seed another one.
first=$out
weir simulate fork.yaml --share route.a=20% --cores 2 --load 0.5x -o json
checks=$((checks + 1)); [ "$out" = "$first" ] || fail 'not the same again'
weir simulate fork.yaml --share route.a=20% --cores 2 --load 0.5x -o json --seed 2
checks=$((checks + 1)); [ "$out" != "$first" ] || fail 'the seed does not matter'

# Twice the capacity: the bottleneck is busy, the rest is shed, mostly of the lower class.
weir simulate fork.yaml --share route.a=0% --cores 2 --load 2x --class gold=10% \
	--set wait.admission.policy=threshold --set wait.admission.threshold=20
is exit 0; is out has 'the bottleneck is stage wait'; is out has 'threshold 100%'
is out has 'utilisation law U = X S / n: wait is 100% busy'; is out has "Little's law"
is out lacks 'core '

# A row per 100 ms, including the warm-up of a quarter.
weir simulate fork.yaml --share route.a=0% --load 2x --for 4s -o csv
is exit 0; is out has 'time_s,offered_per_s,goodput_per_s,late_per_s,shed_per_s,wait_threads,wait_queued'
checks=$((checks + 1)); [ "$(wc -l <<<"$out")" = 51 ] || fail 'not 50 rows'

# Times given with --cost take precedence over those of burn and delay.
weir simulate fork.yaml --share route.a=0% --cost wait=20ms --load 100 -o json
is exit 0
number capacity_per_second; near 250 0.01
number load; near 0.4 0.01

# A stage that holds events: the six servers of 20 ms behind it can do 300/s, whatever the number of
# threads in its group. The width policy finds that number of servers, and at twice the load nearly
# all that they can do is in time.
cat >wide.yaml <<'YAML'
weir: 1
name: wide
admin: { listen: "" }
groups:
  core: { threads: { min: 1, max: 1 } }
stages:
  web: { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: work } }
  work: { use: burn, with: { time: 100us }, group: core, to: db }
  db: { use: hold, with: { time: 20ms, capacity: 6 }, group: core, width: { max: 200 }, slo: 100ms, to: answer }
  answer: { use: respond, with: { body: "x" }, threads: inline }
YAML
weir simulate wide.yaml --cores 1 --load 2x --for 60s -o json
is exit 0; is err empty
number capacity_per_second; near 300 0.01
number bottleneck; checks=$((checks + 1)); [ "$value" = db ] || fail "the bottleneck is $value"
number ceiling_per_second core; near 10000 0.01
number done_per_second db; near 300 3
number width core; checks=$((checks + 1)); [ "$value" = None ] || fail "core has a width of $value"
number width db
checks=$((checks + 1))
[[ $value == *"'max': 200"*"'servers': 6"*"widening stopped helping at "[67]* ]] || fail "the width is $value"
weir simulate wide.yaml --cores 1 --load 2x --for 60s
is exit 0; is out has ' under way, '; is out has '/s; widening stopped helping at '
is out has 'n of db is the number of events that the other side, for which the stage waits, works on at once.'; is out has ' ms / 6 at once.'
weir simulate wide.yaml --cores 1 --load 2x --set db.width.policy=static --set db.width.max=8
is exit 0; is out has 'db: 8.0 of 8 under way'; is out lacks 'helping'
weir simulate wide.yaml --cores 1 --load 0.5x --set db.with.capacity=0 --set db.width.max=8
is exit 0; is out has 'capacity 400/s'; is out has 'n of db is the largest width of the stage.'

# A core group is simulated with its cores; its stages share their time.
cat >cores.yaml <<'YAML'
weir: 1
name: cores
admin: { listen: "" }
groups:
  core: { schedule: srpt, cores: auto, gate: { time: 10ms }, visit: [lookup, parse, work] }
stages:
  web:    { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: parse } }
  parse:  { use: burn, group: core, with: { time: 50us }, to: lookup }
  lookup: { use: burn, group: core, with: { time: 5us }, urgent: { events: 128 }, to: work }
  work:   { use: burn, group: core, mode: exclusive, with: { time: 445us }, to: answer }
  answer: { use: respond, with: { body: "x" }, threads: inline }
YAML
weir simulate cores.yaml --cores 1 --load 2x --for 1s
is exit 0; is out has 'capacity 2000/s: the bottleneck is group core'
is out has 'group core: srpt, 1 core 100% busy, '; is out has '% starved; longest wait '
weir simulate cores.yaml --cores 8 --load 200 --for 1s -o json
is exit 0; is out has '"group": "core"'; is out has '"cores": 8'
is out has '"events_per_visit": 1.'; is out has '"left_out": []'

# An exclusive stage has one thread at a time, however many cores its group has: 1 / 445 us.
number bottleneck; checks=$((checks + 1)); [ "$value" = work ] || fail "the bottleneck is $value"
number capacity_per_second; near 2247 0.1
number ceiling_per_second work; near 2247 0.1
number threads_max work; near 1 0
number threads_max parse; near 8 0
number ceiling_per_second parse; near 16000 0.1
weir simulate cores.yaml --cores 8 --load 2x --for 1s
is exit 0; is out has 'capacity 2247/s: the bottleneck is stage work'
is out has '1/1'; is out has 'utilisation law U = X S / n: work is 100% busy'

# The cores that the group may have are those of the simulated machine.
sed 's/cores: auto/cores: 7/' cores.yaml >fixed.yaml
weir simulate fixed.yaml --cores 8 --load 200 --for 1s
is exit 0; is out has 'group core: srpt, 7 cores '
weir simulate fixed.yaml --cores 6 --load 200 --for 1s
is exit 1; is err has "group 'core': cores 7, but this process may use 6"
sed 's/cores: auto/cores: "4-6"/' cores.yaml >fixed.yaml
weir simulate fixed.yaml --cores 8 --load 200 --for 1s
is exit 0; is out has 'group core: srpt, 3 cores '
weir simulate fixed.yaml --cores 6 --load 200 --for 1s
is exit 1; is err has "this process may not run on CPU 6"
weir simulate cores.yaml --cores 8 --load 200 --for 1s --keys 5
is exit 2; is err has '--keys has no effect: no stage'

# In a short run, too, nothing is busy for more than all the time.
for seed in 1 2 3 4 5 6; do
	weir simulate cores.yaml --cores 1 --load 3x --for 1s --seed "$seed" --cost work=30ms,exp
	value=$(sed -n 's/^utilisation law.* is \([0-9]*\)% busy.*/\1/p' <<<"$out"); checks=$((checks + 1))
	[ "$value" -gt 0 ] && [ "$value" -le 100 ] || fail "the bottleneck is $value% busy"
done

# What the model leaves out is named.
cat >left.yaml <<'YAML'
weir: 1
name: left
admin: { listen: "" }
groups:
  core: { schedule: fifo, cores: { min: 1, max: auto }, gate: { cutoff: 1ms }, serial: path }
  copy: { schedule: fifo, cores: 1 }
  io:   { schedule: wavefront, cores: { min: 2, max: auto } }
stages:
  web:   { use: http.server, group: io, with: { listen: "127.0.0.1:0" }, to: { request: parse } }
  parse: { use: burn, group: core, with: { time: 50us }, cohort: { max: 4, linger: 1ms }, to: pick }
  pick:  { use: burn, group: copy, mode: replicated, with: { time: 5us }, degrade: { above: 0.9 }, queue: { discipline: fifo }, to: form }
  form:  { use: burn, group: copy, with: { time: 5us }, cohort: { max: 4, linger: 1ms, by: path }, to: part }
  part:  { use: burn, mode: partitioned, key: path, with: { time: 5us }, cohort: { policy: seda }, to: last }
  last:  { use: burn, group: io, with: { time: 5us }, to: answer }
  answer: { use: respond, with: { body: "x" }, threads: inline }
YAML
weir simulate left.yaml --cores 4 --load 1000 --for 1s
is exit 0
out=$(grep '^Left out: ' <<<"$out" | sed 1d)
checks=$((checks + 1))
[ "$out" = "$(cat <<'TEXT'
Left out: gate.cutoff of group core: handlers that do not yield; in the model, those of all stages do.
Left out: cores of group io: with a source, the number of cores is always the largest.
Left out: cohort.linger of stage parse: no batch waits for more events.
Left out: degrade of stage pick: the stage does not reduce its quality.
Left out: cohort.by of stage form: a batch may have events of several keys.
Left out: mode: partitioned of stage part: any thread takes any event of the stage.
Left out: cohort.policy of stage part: batches have up to cohort.max events, or as many as take 1 ms.
TEXT
)" ] || fail 'other keys are left out'
weir simulate left.yaml --cores 4 --load 1000 --for 1s -o json
is exit 0
number left_out; out=$value
is out has "{'group': 'io', 'stage': None, 'key': 'cores', 'why': '"
is out has "{'group': None, 'stage': 'part', 'key': 'mode: partitioned', 'why': '"

# A batch waits for a fuller one, of a pool and of a core group: at 200/s hardly any comes within 5 ms.
for group in '' 'group: core, '; do
	cat >linger.yaml <<YAML
weir: 1
name: linger
admin: { listen: "" }
groups:
  core: { schedule: fifo }
stages:
  web:    { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: first } }
  first:  { use: burn, ${group}cohort: { max: 16, linger: 5ms }, with: { time: 10us }, to: second }
  second: { use: burn, group: core, with: { time: 10us }, to: answer }
  answer: { use: respond, with: { body: "x" }, threads: inline }
YAML
	weir simulate linger.yaml --cores 2 --load 20 --for 60s -o json
	is exit 0; is out has '"left_out": []'
	number wait_p50_seconds first; near 0.005 2
done

# Cores of two groups read requests. The policies of pools choose the cores of the third group: 20,000
# requests of 100 us keep two busy.
cat >two.yaml <<'YAML'
weir: 1
name: two
admin: { listen: "" }
groups:
  one: { schedule: fifo, cores: 2 }
  two: { schedule: fifo, cores: 1 }
  all: { schedule: fifo, cores: { min: 1, max: auto } }
stages:
  web:    { use: http.server, group: one, with: { listen: "127.0.0.1:0" }, to: { request: first } }
  more:   { use: http.server, group: two, with: { listen: "127.0.0.1:0" }, to: { request: second } }
  first:  { use: burn, group: one, with: { time: 50us }, to: last }
  second: { use: burn, group: two, with: { time: 50us }, to: last }
  last:   { use: burn, group: all, with: { time: 100us }, to: answer }
  answer: { use: respond, with: { body: "x" }, threads: inline }
YAML
weir simulate two.yaml --cores 8 --load 20000 --for 10s
is exit 0; is out has 'group one: fifo, 2 cores 25% busy'; is out has 'group two: fifo, 1 core 50% busy'
is out has 'group all: fifo, 8 cores (3.'; is out has ' in the mean, 3 at the end, at least 1) 6'
checks=$((checks + 1))
[ "$(grep -c '^Left out: ' <<<"$out")" = 1 ] || fail 'more is left out'
weir simulate two.yaml --cores 8 --load 20000 --for 10s -o json
is exit 0; is out has '"cores_min": 1'; is out has '"cores_mean": 3.'; is out has '"cores_end": 3'

# One key is the work of one core; with many, the cores share it.
cat >serial.yaml <<'YAML'
weir: 1
name: serial
admin: { listen: "" }
groups:
  core: { schedule: fifo, serial: path }
stages:
  web:    { use: http.server, with: { listen: "127.0.0.1:0", threads: 4, per_thread: 1 }, to: { request: first } }
  first:  { use: burn, group: core, with: { time: 50us }, to: second }
  second: { use: burn, group: core, with: { time: 50us }, to: answer }
  answer: { use: respond, with: { body: "x" }, threads: inline }
YAML
for keys in 1:10000:25 3:30000:50; do
	IFS=: read -r values capacity busy <<<"$keys"
	weir simulate serial.yaml --cores 4 --load 20000 --for 1s --keys "$values"
	is exit 0; is out has "group core: fifo, 4 cores $busy"
	is out has "capacity $capacity/s: the bottleneck is stage first, whose serial key has fewer values than"
done
# The same of a partitioned stage, for itself.
sed 's/, serial: path//; s/first:  { use: burn, group: core,/& mode: partitioned, key: path,/' serial.yaml >parted.yaml
weir simulate parted.yaml --cores 4 --load 1000 --for 1s --keys 2
is exit 0; is out has 'capacity 40000/s: the bottleneck is group core'
weir simulate parted.yaml --cores 4 --load 60000 --for 1s --keys 1
is exit 0; is out has 'capacity 20000/s: the bottleneck is stage first, whose key has fewer values than there are cores'
is out has 'group core: fifo, 4 cores 50% busy'
is out has 'Left out: with.threads of stage web: '
is out has 'Left out: with.per_thread of stage web: '
# The only key stays where it is, however many of its events wait.
weir simulate serial.yaml --cores 4 --load 90000 --for 1s --keys 1 --set first.queue.limit=100000
is exit 0; is out has '  0 slots of serial keys a second given'
weir simulate serial.yaml --cores 4 --load 0.5x --for 1s
is exit 0; is out has 'group core: fifo, 4 cores 5'; is out has 'bottleneck is group core'; is out has 'slots of serial keys a second given'
weir simulate serial.yaml --cores 4 --load 0.5x --for 1s -o json
is exit 0; is out has '"slots_moved_per_second": '

# A source in a group, a replicated stage, replicas and the order of queues are simulated.
cat >kinds.yaml <<'YAML'
weir: 1
name: kinds
admin: { listen: "" }
groups:
  io:   { schedule: fifo }
  copy: { schedule: fifo } # replicas
  rest: { schedule: fifo }
stages:
  web:  { use: http.server, group: io, with: { listen: "127.0.0.1:0" }, to: { request: read } }
  read: { use: burn, group: io, with: { time: 5us }, to: both }
  both: { use: burn, group: copy, with: { time: 10us }, to: own }
  own:  { use: burn, group: rest, mode: replicated, with: { time: 10us }, to: last }
  last: { use: burn, threads: 8, queue: { discipline: shortest, by: header.content-length }, with: { time: 20us, dist: exp }, to: answer }
  answer: { use: respond, with: { body: "x" }, threads: inline }
YAML
weir simulate kinds.yaml --cores 8 --load 20000 --for 1s
is exit 0; is out has 'group io: fifo, 8 cores 1'
checks=$((checks + 1))
[ "$(grep -c '^Left out: ' <<<"$out")" = 2 ] || fail 'more is left out'
is out has 'Left out: queue.by of stage last: the expected work of an event is its service time.'
sed 's/fifo } # replicas/fifo, replicas: 2 }/' kinds.yaml >copies.yaml
weir simulate copies.yaml --cores 8 --load 20000 --for 1s
is exit 0; is out has 'group copy: fifo, 8 cores '
weir simulate copies.yaml --cores 5 --load 20000 --for 1s
is exit 1; is err has "group 'copy': 5 cores cannot be divided equally among 2 replicas"

# A load of millions per second is simulated for less than 5 s, and the size is printed first.
exec 3< <(exec "$program" simulate server.yaml --cost hello=1us --cores 2 --load 3x 2>&1 >/dev/null)
size=$!
about='weir simulate server.yaml --cost hello=1us --cores 2 --load 3x'
read -r err <&3
kill "$size"
exec 3<&-
is err has '12.5 million events will be simulated, 2.08 s of virtual time at 6000000/s'

# ---- invalid arguments ----

weir simulate
is exit 2; is err has 'the FILE is missing'
weir simulate fork.yaml more
is exit 2; is err has "unexpected argument 'more'"
weir simulate nowhere.yaml
is exit 1; is err has 'nowhere.yaml'; is out empty
weir simulate fork.yaml --speed 3
is exit 2; is err has "unknown option '--speed'"
weir simulate fork.yaml --load fast
is exit 2; is err has 'fast'
weir simulate fork.yaml --cost wiat=1ms
is exit 2; is err has 'names no stage of the server'
weir simulate fork.yaml --cost wait=1ms,slowly
is exit 2; is err has 'only const, exp or lognormal, and cpu or blocks may follow the time'
weir simulate fork.yaml --share route.c=1%
is exit 2; is err has 'with an outlet that is linked'
weir simulate fork.yaml --class silver=1%
is exit 2; is err has 'with a class of the server'
weir simulate fork.yaml --class gold=60% --class rest=60%
is exit 2; is err has 'more than 100%'
weir simulate fork.yaml --admin 127.0.0.1:1
is exit 3; is out empty
weir simulate server.yaml
is exit 2; is err has "the service time of stage 'hello' is unknown"
weir simulate --help
is exit 0; is out has '--cost'; is err empty

# ---- times of a running server ----

launch server.yaml
"$program" bench "$web" --rate 200 --for 1s -q >/dev/null
weir simulate server.yaml --admin "$admin" --load 0.5x -o json
is exit 0
number service_seconds hello
checks=$((checks + 1))
awk -v s="$value" 'BEGIN { exit !(s > 0 && s < 1) }' || fail "hello takes $value s"
kill -TERM "$pid"
ended

finish
