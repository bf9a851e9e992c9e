#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A server has every metric that the rules and the dashboard name, and a rule records every recorded
# series that they use.
#   metrics.sh WEIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"
# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/../cli/server.sh"

rules=$top/contrib/prometheus/weir.rules.yml
dashboard=$top/contrib/grafana/weir.json

sed -i 's/to: { request: hello }/to: { request: held }/' server.yaml
echo '  held:  { use: hold, with: { time: 1ms }, to: hello }' >>server.yaml # has the metrics of a width
launch server.yaml
curl -sS "${admin}metrics" >metrics.txt
kill -TERM "$pid"
ended
is exit 0
grep '^# TYPE ' metrics.txt >types.txt

# there NAME: is it a family, or a part of a histogram or summary?
there() {
	grep -q "^# TYPE $1 " types.txt && return
	grep -qE "^# TYPE ${1%_*} (histogram|summary)$" types.txt && [[ $1 =~ _(bucket|sum|count)$ ]]
}

# names FILE: the metrics it names, without recorded series, whose names have colons.
names() {
	sed -E 's/^ *#.*//; s/[a-z_]+:[a-zA-Z0-9_:]+//g' "$1" | grep -oE '\b(weir|process|http)_[a-z0-9_]+' | sort -u
}

recorded() {
	grep -oE '\bstage(_class)?:weir[a-zA-Z0-9_:]+' "$1" | sort -u
}

for file in "$rules" "$dashboard"; do
	about=${file##*/} out='' err=''
	n=0
	for name in $(names "$file"); do
		n=$((n + 1))
		there "$name" || fail "a server has no metric $name"
	done
	[ $n -ge 15 ] || fail "only $n metrics were found in it"
	for name in $(recorded "$file"); do
		grep -q "record: $name\$" "$rules" || fail "$name is not recorded"
	done
	checks=$((checks + n))
done
# What an operator looks for first is on the dashboard.
about='the dashboard' out=$(<"$dashboard") err=''
for name in weir_request_seconds_bucket weir_request_seconds_count weir_slo_misses_total weir_stage_thread_seconds_total \
	weir_http_responses_5xx_total weir_class_slo_seconds; do
	is out has "$name"
done

about='the test itself' out='' err=''
there weir_nonsense && fail 'takes any name'
there weir_ready_bucket && fail 'takes a bucket of a gauge'
there weir_stage_cohort_size_sum || fail 'does not know a summary'
finish
