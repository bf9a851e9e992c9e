#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A core group: what explain, graph, ps, top, show, why and the metrics say about it. Arguments:
# PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

cat >cores.yaml <<'YAML'
weir: 1
name: cores
admin: { listen: "127.0.0.1:0" }
groups:
  core: { schedule: srpt, cores: 1, gate: { events: 4 }, starve: 20ms }
stages:
  web: { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: a } }
  a:   { use: burn, group: core, with: { time: 1us }, to: b }
  b:   { use: respond, group: core, with: { body: "b\n" }, urgent: { events: 64, wait: 2ms } }
YAML

one() { weir "$@" --admin "$admin"; }

# is_text: the output is the text on standard input.
is_text() {
	checks=$((checks + 1))
	[ "$out" = "$(cat)" ] || fail 'the text is another one'
}

# ---- the file in words and drawn ----
weir explain cores.yaml groups.core
is exit 0
is out has 'groups.core.schedule                 srpt                 cores.yaml:5'
out=$(grep '^#' <<<"$out")
is_text <<'TEXT'
# Core group 'core' runs on 1 core.
# A core chooses the stage that it visits next by srpt: visit the stage from which the least work is left to the end of the graph (Gordon).
# A visit of a stage ends after 4 events, or earlier, if the stage has no more events on the core.
# A stage whose oldest event has waited for over 20ms is next.
# 'b' interrupts other stages when 64 of its events wait on the core or one has waited for 2ms.
# Of the events of a stage on a core, the oldest is served first.
# The core gets no events of others: it is the only one.
TEXT
weir explain cores.yaml groups.core.gate
is exit 0; is out lacks '#'
weir explain "$top/config/servers/cores.yaml" groups.core
is exit 0
is out has '# A visit of a stage ends with the first batch that is done 10ms or more after it began, or earlier, if'
is out has '# A stage whose oldest event has waited for over 25ms is next: 5% of the shortest objective, 500ms.'
cat >other.yaml <<'YAML'
weir: 1
groups:
  core: { schedule: fifo, cores: 1..auto, gate: { cutoff: 1ms }, starve: 0, balance: false, serial: path }
  io:   { schedule: wavefront }
stages:
  web: { use: http.server, group: io, with: { listen: "127.0.0.1:0" }, to: { request: a } }
  a:   { use: burn, group: core, with: { time: 1us }, to: b }
  b:   { use: respond, group: core, with: { body: "b\n" } }
YAML
weir explain other.yaml groups
out=$(grep '^#' <<<"$out")
is_text <<'TEXT'
# Core group 'core' runs on 1 to all cores.
# A core chooses the stage that it visits next by fifo: visit the stage with the event that has waited longest.
# An event that takes over 1ms waits for the next visit, if its handler asks for the time.
# A visit of a stage ends when the stage has no more events on the core.
# A stage may wait without limit while others are visited (starve: 0).
# Of the events of a stage on a core, the oldest is served first.
# Events with the same 'path' do not overlap, and keep their order.
# Idle cores get no events of others (balance: false).
# Core group 'io' runs on the I/O threads of web.
# A core chooses the stage that it visits next by wavefront: go forward and backward through the stages (Larus and Parkes).
# A visit of a stage ends when the stage has no more events on the core.
# A stage whose oldest event has waited for over 25ms is next: 5% of the shortest objective, 500ms.
# Of the events of a stage on a core, the oldest is served first.
# Idle cores get events of others.
TEXT
cat >copies.yaml <<'YAML'
weir: 1
groups:
  two:  { schedule: fifo, cores: 4, replicas: 2 }
  four: { schedule: fifo, cores: 4, replicas: 4 }
  cpus: { schedule: fifo, cores: 0-3, replicas: 2 }
  keys: { schedule: fifo, cores: 4, serial: path }
  kept: { schedule: fifo, cores: 4 }
  some: { schedule: fifo, cores: 4, serial: path }
stages:
  web: { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: a } }
  a:   { use: burn, group: two, to: b }
  b:   { use: burn, group: four, to: c }
  c:   { use: burn, group: cpus, to: d }
  d:   { use: burn, group: keys, to: e }
  e:   { use: burn, group: kept, mode: replicated, to: f }
  f:   { use: burn, group: some, mode: replicated, serial: none, to: g }
  g:   { use: burn, group: some, to: h }
  h:   { use: respond, threads: inline, with: { body: "b\n" } }
YAML
weir explain copies.yaml groups
out=$(grep -E '^# (Core group|It is|Idle|The core|A copy)' <<<"$out")
is_text <<'TEXT'
# Core group 'two' runs on 4 cores.
# It is 2 copies of 2 cores each; an event stays in its copy.
# Idle cores get events of others of their copy.
# Core group 'four' runs on 4 cores.
# It is 4 copies of 1 core each; an event stays in its copy.
# A copy has one core, which gets no events of others.
# Core group 'cpus' runs on CPUs 0-3.
# It is 2 copies with equal shares of the cores; an event stays in its copy.
# Idle cores get events of others of their copy.
# Core group 'keys' runs on 4 cores.
# Idle cores get events of others; of serial stages, only all events of some keys.
# Core group 'kept' runs on 4 cores.
# Idle cores get no events of others: those of replicated stages stay on their core.
# Core group 'some' runs on 4 cores.
# Idle cores get events of others; of serial stages, only all events of some keys; of replicated stages, none.
TEXT
weir graph copies.yaml
is out has 'group two (fifo, 4 cores, 2 copies of 2 cores each, gate all): a'
weir graph other.yaml
is out has 'web (http.server, group io)'
is out has 'group io (wavefront, the I/O threads of web, gate all): web'
weir graph cores.yaml
is exit 0
is_text <<'TEXT'
web (http.server)
    request -> a
a (burn, group core)
    to -> b
b (respond, group core)
group core (srpt, 1 core, gate events: 4): a, b
TEXT

# ---- warnings ----
cat >warned.yaml <<'YAML'
weir: 1
groups:
  core: { schedule: fifo, gate: { time: 10ms } }
  more: { schedule: fifo, cores: 1 }
stages:
  web: { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: a } }
  a:   { use: burn, group: core, with: { time: 1us }, cohort: { linger: 20ms }, to: b }
  b:   { use: respond, group: more, with: { body: "b\n" }, local: always, admission: { policy: codel } }
YAML
weir check warned.yaml
is exit 0
is err has "groups 'core' and 'more' both have a thread on CPU"
is err has "stage 'a': 'linger' of 20 ms is longer than 'gate.time' of its group 'core', 10 ms"
is err has "warned.yaml:8:96: stage 'b': with admission policy 'codel' all events take the queue, so 'local: always' means nothing; choose policy weir or none, or remove 'local'"
weir check cores.yaml
is exit 0
is err lacks 'both have a thread'
is err lacks 'linger'
is err lacks 'means nothing'

# ---- a running server ----
launch cores.yaml
for i in 1 2 3; do
	curl -sS --max-time 60 "$web$i" >/dev/null
done
# the last batch is counted after its answer was sent
until [[ $("$program" show b --admin "$admin") == *' 3 '* ]]; do :; done

one ps
is exit 0; is out has 'group core: 1 core '; is out has '1 events a visit'; is out has 'srpt, gate events: 4, starve 20ms'
one top
is exit 0; is out has 'core: 1 core '
one show core
is exit 0; is out has 'group core: 1 core '; is out has 'MAX WAIT'; is out lacks 'CLASS'
one show b
is exit 0; is out has 'MAX WAIT'; is out has 'CLASS'
one show core -o json
is exit 0; is out has '"schedule": "srpt"'
one show web
is exit 0; is out lacks 'MAX WAIT'
one why b
is exit 0; is out has 'group core'; is out has '  cores    1 core '
one why web
is exit 0; is out lacks 'group core'
one show core
is out has 'gate.events'; is out lacks 'threads.max'
one show b
is out lacks 'threads.max'
one show nothing
is exit 2; is err has "there is no stage or group 'nothing'"
for verb in pause drain queue why; do
	one "$verb" core
	is exit 2; is err has "there is no stage 'core': it is a group"
done
for path in groups groups/core stages/core/knobs stages/core; do
	about="GET $path"
	out=$(curl -sS --max-time 60 "${admin}api/v1/$path") rc=$?
	is exit 0; is out has '"status":404'; is out has '/api/v1/groups/'; is out has '/knobs"'
done
one set nothing.x=1
is exit 2; is err has "there is no stage or group 'nothing'"

# ---- save ----
sed 's/cores: 1,/cores: { min: 1, max: 3, policy: seda },/' cores.yaml >map.yaml
one set core.cores=1..auto
is exit 0
one set core.balance=false
is exit 0
one save map.yaml
is exit 0
is out has '+   core: { schedule: srpt, cores: { min: 1, max: auto, policy: seda }, gate: { events: 4 }, starve: 20ms, balance: false }'
weir check map.yaml
is exit 0
sed -e '/^  core:/c\  core:\n    schedule: srpt\n    cores:\n      min: 1\n      max: 3\n    gate: { events: 4 }\n    starve: 20ms' \
	cores.yaml >map.yaml
one save map.yaml
is exit 0
out=$(grep '^[-+]' <<<"$out")
is_text <<'TEXT'
-     cores:
+     cores: { min: 1, max: auto }
-       min: 1
-       max: 3
+     balance: false
TEXT
one unset core.cores
is exit 0
one unset core.balance
is exit 0

about='GET /metrics'
out=$(curl -sS --max-time 60 "${admin}metrics") rc=$?
is exit 0
is out has 'weir_core_group_info{group="core",schedule="srpt",gate="events: 4"} 1'
is out has 'weir_core_group_starve_seconds{group="core"} 0.02'
is out has 'weir_stage_core_batches_total{stage="b",core="0"} 3'

# ---- why, with two samples of two cores ----
python3 "$top/tests/cli/cores_looks.py" "${admin}api/v1/stages" "$work/port" 2>"$work/looks.err" &
looks=$!
until [ -e "$work/port" ]; do kill -0 "$looks" || break; done
url=http://127.0.0.1:$(<"$work/port")

weir why a --admin "$url"
is exit 0
out=$(grep -A4 '^group' <<<"$out")
is_text <<'TEXT'
group core
  cores    2 cores 90 % and 80 % busy; srpt, gate events: 4, starve 20ms
  visits   1000/s of 10 events; begun by the schedule 100 %, urgent 0 %, starve 0 %; cut by the gate 0 %, urgent 0 %, starve 0 %
  events   10,000/s, 20 % of them from queues; 100/s dealt to idle cores; longest wait 27ms
  advice   more cores than 2, or a cheaper b, which takes 80 % of their time
TEXT
weir why --admin "$url"
is out has '  advice   a longer starve than 20ms, or less load; it begins 40 % of the visits'
weir why --admin "$url"
is out has '  advice   higher thresholds of urgent; it begins 40 % of the visits'
weir why --admin "$url"
is out has "  advice   a wider gate than 'events: 4'; it cuts 60 % of the visits, after 2 events on average"
weir why --admin "$url"
is out has '  blocked  4 times a core slept in a handler for 5 ms or longer, and a spare thread served the queues'
weir why --admin "$url"
is out has '  advice   balance: true; the cores are unequally busy'; is out lacks '  blocked'
weir why --admin "$url"
is out has '  cores    2 cores 20 % and 10 % busy'; is out lacks 'advice'
weir why a --admin "$url"
is out has "  blocked  core 0 has slept for 6.2 s in a handler of stage 'b'; a spare thread serves the queues"
is out has "  advice   move stage 'b' out of the group; a pool has more threads than cores"
is out lacks ' times a core'
weir why a --admin "$url"
is out has "  blocked  core 0 has slept for 6.2 s in a handler of stage 'b'; its spare thread has slept, too, for 1.5 s in one of stage 'a'"
is out has '; 2 of 2 threads busy (max 2) and 1 of 1 spare for blocked cores, 0 waiting ('
weir why --admin "$url"
is out has "  blocked  core 0 has slept for 8 ms in a handler of stage 'b'; a spare thread serves the queues"
is out has "  blocked  core 1 has slept for 40 s in a handler of stage 'b'"$'\n'
is out has '  blocked  2 times a core slept in a handler'
# one of the two cores has left
weir why --admin "$url"
is out has '  cores    1 core 20 % busy; srpt'
weir show core --admin "$url"
is exit 0; is out has 'group core: 1 core '
is out lacks ' and '
out=$(grep -cE '^ +[01] .*s$' <<<"$out") out+=$(grep -cE '^ +1 .*  left$' "$work/out")
is_text <<<11
weir ps --admin "$url"
is exit 0
is out has "group core: blocked: core 0 has slept for 6.2 s in a handler of stage 'b'; a spare thread serves the queues"
weir ps --admin "$url"
is out has "group core: blocked: core 0 has slept for 6.2 s in a handler of stage 'b'; its spare thread has slept, too, for 1.5 s in one of stage 'a'"
is out has ' 2/2 '; is out lacks ' 3/3 '
kill "$looks"

# ---- a reload drops an override ----
one set core.gate.events=0
is exit 0
one set core.gate.time=1ms
is exit 0
sed -i 's/gate: { events: 4 }/gate: { cutoff: 1ms }/' cores.yaml
for how in --dry-run ''; do
	one reload $how
	is exit 0; is out has 'core: gate.time dropped: '; is out has 'a new graph '
done
one undo
is out lacks 'gate.'

kill "$pid"; ended
finish
