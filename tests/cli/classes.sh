#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The objective of a class of a running server: set, for a time, undo, unset, save, reload, --set.
# Arguments: PROGRAM SOURCE_DIR.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# shellcheck source=tests/cli/server.sh
. "$(dirname "$0")/server.sh"

cat >shop.yaml <<'YAML'
weir: 1
name: shop
admin: { listen: "127.0.0.1:0" }
classes:
  cart: { match: { path: /cart/* }, slo: 200ms } # those that pay
  v1.x:
    match: { path: /v1/* }
    guarantee: 5%
  rest: {}
stages:
  web:  { use: http.server, with: { listen: "127.0.0.1:0" }, to: { request: work } }
  work: { use: delay, with: { time: 1us }, to: own }
  own:  { use: delay, with: { time: 10ms }, slo: 300ms, to: hello }
  hello: { use: respond, with: { body: "hello\n" } }
YAML
cp shop.yaml before.yaml

# one ARGS...: a verb on the server.
one() { weir "$@" --admin "$admin"; }

# objective STAGE SECONDS: the objective that the stage uses.
objective() {
	one show "$1" -o json
	is out has "\"slo_seconds\": $2"
}

# watched CLASS SECONDS: the objective that alerts and metrics compare answers with.
watched() {
	about="the metrics"
	out=$(curl -sS --max-time 60 "${admin}metrics")
	is out has "weir_class_slo_seconds{class=\"$1\"} $2"
}

launch shop.yaml
objective work 0.2
objective own 0.3
watched cart 0.2

# ---- set ----
one set classes.cart.slo=80ms
is exit 0; is out has 'classes.cart.slo = 80ms (configured 200ms)'
objective work 0.08
objective own 0.3
watched cart 0.08
one set classes.v1.x.slo=60ms --for 1h
is exit 0; is out has 'classes.v1.x.slo = 60ms (configured 500ms), until '
objective work 0.06
watched v1.x 0.06
one undo
is exit 0; is out has "undid 'set classes.v1.x.slo': 500ms again, no longer 60ms"
objective work 0.08
out=$(curl -sS --max-time 60 "${admin}metrics")
is out lacks 'weir_class_slo_seconds{class="v1.x"}'
one log
is exit 0; is out has 'classes.cart'
weir set classes.cart.slo=80ms --admin "$admin" -o json
is exit 0; is out has '"configured": "200ms"'

# ---- refused ----
one set classes.cart.slo=1ns
is exit 1; is err has 'too small: at least 100us'
one set classes.card.slo=1s
is exit 2; is err has "there is no class 'card', did you mean 'cart'?"
one set classes.cart.prio=1
is exit 2; is err has "class 'cart' has no knob 'prio'"
one set classes.cart.priority=1
is exit 1; is err has "'priority' of class 'cart' cannot change while the server runs"
one set classes.cart=1s
is exit 2; is err has 'classes.CLASS.KNOB'
one unset classes.rest.slo
is exit 1; is err has "'slo' of class 'rest' already has its configured value"
# every class has an objective, and the longest is shorter than the stage takes
one set classes.rest.slo=5ms
is exit 0
one set classes.v1.x.slo=5ms
is exit 0
one set classes.cart.slo=5ms
is exit 1; is err has "one event alone takes 10ms at stage 'own'"
one unset classes.rest.slo
is exit 0; is out has 'classes.rest.slo = 500ms (as configured)'
one unset classes.v1.x.slo
is exit 0
objective work 0.08

# ---- save ----
one set classes.v1.x.slo=90ms
is exit 0
one save shop.yaml --dry-run
is exit 0; is out has 'slo: 90ms'; is out has '2 values would be saved'
one save shop.yaml
is exit 0; is out has '2 values saved'
about='the saved file'
out=$(<shop.yaml)
is out has 'cart: { match: { path: /cart/* }, slo: 80ms } # those that pay'
is out has $'    guarantee: 5%\n    slo: 90ms\n'
one reload
is exit 0; is out lacks 'a new graph'
one set classes.cart.slo=80ms -o json
is out has '"configured": "80ms"'
one unset classes.cart.slo
is exit 0

# ---- reload ----
cp before.yaml shop.yaml
one reload --dry-run
is exit 0; is out has 'classes.cart.slo'; is out lacks 'a new graph'
one reload
is exit 0; is out has 'classes.cart.slo'; is out lacks 'a new graph'
objective work 0.2
watched cart 0.2
out=$(curl -sS --max-time 60 "${admin}metrics")
is out lacks 'weir_class_slo_seconds{class="v1.x"}'

# An override passes to a new graph, if that has the class.
one set classes.cart.slo=70ms
is exit 0
sed 's/guarantee: 5%/guarantee: 6%/' before.yaml >shop.yaml
one reload
is exit 0
objective work 0.07
one undo
is exit 0; is out has "undid 'set classes.cart.slo'"
objective work 0.2
one set classes.cart.slo=70ms
is exit 0
sed 's/cart:/basket:/' before.yaml >shop.yaml
one reload
is exit 0
one log
is out has 'dropped   classes.cart: slo'
objective work 0.2
kill -TERM "$pid"
ended
is exit 0

# ---- a stage called "classes" ----
sed -e 's/^  own: /  classes: /; s/to: own/to: classes/' before.yaml >shop.yaml
launch shop.yaml
one set classes.cart.slo=90ms
is exit 0; is out has 'classes.cart.slo = 90ms (configured 200ms)'
one set classes.threads.max=3
is exit 0; is out has 'classes.threads.max = 3'
one set classes.nothing=3
is exit 2; is err has "stage 'classes' has no knob 'nothing'"
one save shop.yaml
is exit 0; is out has '2 values saved'
kill -TERM "$pid"
ended
weir check shop.yaml --set classes.threads.max=4 --set classes.cart.slo=95ms
is exit 0

# ---- --set ----
cp before.yaml shop.yaml
weir explain shop.yaml classes.v1.x.slo --set classes.v1.x.slo=44ms
is exit 0; is out has '44ms'
weir check shop.yaml --set classes.v1.x.slow=44ms
is exit 1; is err has "class 'v1.x' has no knob 'slow'"
weir check shop.yaml --set classes.rest.slo=44
is exit 1
finish
