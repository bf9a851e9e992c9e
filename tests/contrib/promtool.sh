#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The rules as Prometheus reads and evaluates them, the scrape configuration, and the queries of the
# dashboard. Skipped (77) without promtool, which scripts/test provides.
#   promtool.sh WEIR SOURCE_DIR
set -uo pipefail

contrib=$2/contrib tests=$2/tests/contrib
PATH=$2/build/deps/usr/bin:$PATH
if ! command -v promtool >/dev/null; then
	echo 'no promtool here: not looked at'
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

cp "$contrib"/prometheus/*.yml "$tests"/weir*.test.yml "$work"
promtool check config "$work/prometheus.yml" || failed=1
promtool test rules "$work"/weir*.test.yml || failed=1

# Each alert occurs in a test.
while read -r alert; do
	grep -q "$alert" "$tests"/weir*.test.yml || {
		echo "no test asks for $alert"
		failed=1
	}
done < <(sed -n 's/^ *- alert: //p' "$contrib/prometheus/weir.rules.yml")

# Queries of the dashboard, as rules: variables that Grafana fills in have a value here.
{
	printf 'groups:\n  - name: dashboard\n    rules:\n'
	# shellcheck disable=SC2016
	sed -n 's/^ *"expr": "\(.*\)",\{0,1\}$/\1/p' "$contrib/grafana/weir.json" |
		sed 's/\\"/"/g; s/\$__rate_interval/1m/g; s/\$objective/0.99/g' | awk '{
			printf "      - record: dashboard:query:%d\n        expr: |-\n          %s\n", NR, $0
		}'
} >"$work/dashboard.yml"
n=$(grep -c 'record:' "$work/dashboard.yml")
[ "$n" -ge 30 ] || {
	echo "only $n queries were found in the dashboard"
	failed=1
}
promtool check rules "$work/dashboard.yml" || failed=1
exit $failed
