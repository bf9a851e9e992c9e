/* SPDX-License-Identifier: MIT */
#include "sched/next_oracle.h"

#include <stdlib.h>
#include <string.h>

#define COLOR_RUNS 256  /* entries of the policy `color` */
#define GONE       0x80 /* added to the stage of an event that has left */

void oracle_init(struct oracle *o, const struct next_policy *policy)
{
	memset(o, 0, sizeof(*o));
	o->policy = policy;
	o->last = -1;
	for (int i = 0; i < NEXT_STAGES_MAX; i++)
		o->ready_since_ns[i] = -1;
}

void oracle_fini(struct oracle *o)
{
	free(o->color);
}

static bool is_ready(const struct next_view *v, int i)
{
	return i >= 0 && i < v->n && (v->ready & UINT64_C(1) << i) != 0;
}

/* ---- the policies, naively ---- */

static int first_ready(const struct next_view *v, int from, int step)
{
	for (int i = from; i >= 0 && i < v->n; i += step)
		if (is_ready(v, i))
			return i;
	return -1;
}

static int pick_wavefront(struct oracle *o, const struct next_view *v)
{
	int found;

	if (o->direction == 0) {
		o->direction = 1;
		return first_ready(v, 0, 1);
	}
	found = first_ready(v, o->last + o->direction, o->direction);
	if (found < 0) {
		o->direction = -o->direction;
		found = first_ready(v, o->last + o->direction, o->direction);
	}
	return found < 0 ? o->last : found;
}

static int pick_mg1(struct oracle *o, const struct next_view *v)
{
	for (;;) {
		int i = v->order->table[o->entry++ % (uint64_t)v->order->n_table];

		if (is_ready(v, i))
			return i;
	}
}

/* The ready stage with the least `key`; of equals the first, or the last. */
static int least(const struct next_view *v, int64_t (*key)(const struct next_stage *), bool last)
{
	int best = -1;

	for (int i = 0; i < v->n; i++) {
		if (!is_ready(v, i))
			continue;
		if (best < 0 || key(&v->stage[i]) < key(&v->stage[best]) ||
		    (last && key(&v->stage[i]) == key(&v->stage[best])))
			best = i;
	}
	return best;
}

static int64_t key_fifo(const struct next_stage *s)
{
	return s->oldest_ns;
}

static int64_t key_srpt(const struct next_stage *s)
{
	return s->rest_ns;
}

static int64_t key_dbr(const struct next_stage *s)
{
	return -s->service_ns;
}

/* Remove the events at the front that have left. */
static void trim(struct oracle *o)
{
	for (; o->first_color < o->n_color && o->color[o->first_color] & GONE; o->first_color++)
		if (o->first_color + 1 == o->n_color ||
		    ((o->color[o->first_color + 1] ^ o->color[o->first_color]) & ~GONE))
			o->runs--;
}

static int pick_color(struct oracle *o, const struct next_view *v)
{
	bool has[NEXT_STAGES_MAX] = {false};
	int best = -1;

	trim(o);
	if (o->first_color == o->n_color)
		o->full = false;
	if (o->full)
		return -1;
	for (size_t i = o->first_color; i < o->n_color; i++)
		if (!(o->color[i] & GONE))
			has[o->color[i]] = true;
	if (o->first_color < o->n_color)
		best = o->color[o->first_color];
	for (int i = 0; i < v->n; i++)
		if (is_ready(v, i) && !has[i] &&
		    (best < 0 || v->stage[i].oldest_ns < v->stage[best].oldest_ns))
			best = i;
	return best;
}

static int pick(struct oracle *o, const struct next_view *v)
{
	if (o->policy == &next_fifo)
		return least(v, key_fifo, false);
	if (o->policy == &next_srpt)
		return least(v, key_srpt, true);
	if (o->policy == &next_dbr)
		return least(v, key_dbr, false);
	if (o->policy == &next_mg1)
		return pick_mg1(o, v);
	if (o->policy == &next_color)
		return pick_color(o, v);
	return pick_wavefront(o, v);
}

/* ---- visits ---- */

/* Events until the visit ends. */
static uint64_t left(const struct oracle_visit *t, const struct next_limits *l)
{
	uint64_t end = UINT64_MAX;

	if (t->bound >= 0)
		end = (uint64_t)t->bound;
	if (!t->urgent && t->gate == NEXT_ARRIVED && t->length < end)
		end = t->length;
	if (!t->urgent && t->gate == NEXT_EVENTS && l->gate_events < end)
		end = l->gate_events;
	return end == UINT64_MAX ? UINT32_MAX : end > t->taken ? end - t->taken : 0;
}

static bool may_go_on(
    const struct oracle_visit *t, const struct next_limits *l, const struct next_view *v)
{
	if (!t->open || !is_ready(v, t->stage) || left(t, l) == 0)
		return false;
	if (t->bound >= 0 && v->stage[t->stage].oldest_ns >= t->yielded_ns)
		return false;
	return t->urgent || t->gate != NEXT_TIME ||
	       v->now_ns - t->began_ns - t->cut_ns < l->gate_ns;
}

static void visit_begin(struct oracle_visit *t, const struct next_limits *l,
    const struct next_view *v, int stage, bool urgent)
{
	*t = (struct oracle_visit){.open = true,
	    .urgent = urgent,
	    .stage = stage,
	    .gate = l->gate,
	    .began_ns = v->now_ns,
	    .length = v->stage[stage].length,
	    .bound = -1};
}

/* Stage `s` goes first. Each stage of `waiting` may let each other stage go first once. */
static bool takes_turn(uint64_t *met, uint64_t waiting, int s)
{
	bool fair = true;

	for (int i = 0; i < NEXT_STAGES_MAX; i++) {
		if (i == s || !(waiting >> i & 1)) {
			met[i] = 0;
			continue;
		}
		fair = fair && !(met[i] >> s & 1);
		met[i] |= UINT64_C(1) << s;
	}
	return fair;
}

/* Clear the counts of stages that no longer wait. */
static void forget(uint64_t *met, uint64_t waiting)
{
	for (int i = 0; i < NEXT_STAGES_MAX; i++)
		if (!(waiting >> i & 1))
			met[i] = 0;
}

static uint64_t urgent_set(const struct next_limits *l, const struct next_view *v)
{
	uint64_t set = 0;

	for (int i = 0; i < v->n; i++) {
		const struct next_urgent *u = &l->urgent[i];

		if (is_ready(v, i) && (l->urgent_set >> i & 1) &&
		    ((u->events && v->stage[i].length >= u->events) ||
			(u->wait_ns && v->now_ns - v->stage[i].oldest_ns >= u->wait_ns)))
			set |= UINT64_C(1) << i;
	}
	return set;
}

/* Stages that have waited over the limit; `must`: those that the core has known long enough. */
static uint64_t starved_set(
    const struct oracle *o, const struct next_limits *l, const struct next_view *v, bool must)
{
	uint64_t set = 0;

	for (int i = 0; i < v->n && l->starve_ns > 0; i++)
		if (is_ready(v, i) && v->now_ns - v->stage[i].oldest_ns > l->starve_ns &&
		    (!must || v->now_ns - o->ready_since_ns[i] > l->starve_ns / 16))
			set |= UINT64_C(1) << i;
	return set;
}

static bool broken(struct oracle *o, const char *law)
{
	o->broken = law;
	return false;
}

static bool check_urgent(struct oracle *o, const struct next_limits *l, const struct next_view *v,
    const struct next_choice *c, uint64_t urgent)
{
	if (c->why != NEXT_URGENT)
		return broken(o, "S6: an urgent stage is not next");
	if (!(urgent >> c->stage & 1))
		return broken(o, "order: a stage that is not urgent is called so");
	if (!c->begins || c->max != UINT32_MAX)
		return broken(o, "S6: an urgent visit begins without a bound");
	if (!takes_turn(o->urgent_met, urgent, c->stage))
		return broken(o, "S6: an urgent stage waits for two visits of another one");
	if (o->visit.stage == c->stage)
		o->visit.open = false;
	visit_begin(&o->urgent, l, v, c->stage, true);
	return true;
}

static bool check_begin(struct oracle *o, const struct next_limits *l, const struct next_view *v,
    const struct next_choice *c)
{
	visit_begin(&o->visit, l, v, c->stage, false);
	if (!c->begins)
		return broken(o, "order: a visit begins without saying so");
	return c->max == left(&o->visit, l) || broken(o, "S3: a visit begins with a wrong bound");
}

static bool check_stay(struct oracle *o, const struct next_limits *l, const struct next_view *v,
    const struct next_choice *c, uint64_t starved)
{
	if (!may_go_on(&o->visit, l, v) || c->stage != o->visit.stage)
		return broken(o, "S3: a visit outlasts its gate");
	if (starved & ~(UINT64_C(1) << c->stage))
		return broken(o, "S2: a visit goes on while another stage starves");
	if (c->begins || c->max != left(&o->visit, l))
		return broken(o, "S3: a visit goes on with a wrong bound");
	return true;
}

static bool check_policy(struct oracle *o, const struct next_limits *l, const struct next_view *v,
    const struct next_choice *c, uint64_t starved)
{
	int want;

	if (starved)
		return broken(o, "S2: the policy is asked while a stage starves");
	if (may_go_on(&o->visit, l, v))
		return broken(o, "S3: a visit ends before its gate");
	want = pick(o, v);
	if (want >= 0 && want != c->stage)
		return broken(o, "order: the policy picks another stage");
	o->policy_checked += want >= 0;
	o->last = c->stage;
	return check_begin(o, l, v, c);
}

static bool check_rest(struct oracle *o, const struct next_limits *l, const struct next_view *v,
    const struct next_choice *c)
{
	uint64_t must = starved_set(o, l, v, true), may = starved_set(o, l, v, false);

	if (!takes_turn(o->starve_met, must, c->stage))
		return broken(o, "S2: a starved stage waits for two batches of another one");
	switch (c->why) {
	case NEXT_STAY:
		return check_stay(o, l, v, c, must);
	case NEXT_POLICY:
		return check_policy(o, l, v, c, must);
	case NEXT_STARVED:
		if (!(may >> c->stage & 1))
			return broken(o, "order: a stage that did not starve is called so");
		if (c->stage == o->visit.stage && may_go_on(&o->visit, l, v))
			return broken(o, "S3: a visit is ended by its own stage");
		return check_begin(o, l, v, c);
	default:
		return broken(o, "order: no stage is urgent, or one is ready");
	}
}

static void note_ready(struct oracle *o, const struct next_view *v)
{
	for (int i = 0; i < v->n; i++)
		if (!is_ready(v, i))
			o->ready_since_ns[i] = -1;
		else if (o->ready_since_ns[i] < 0)
			o->ready_since_ns[i] = v->now_ns;
}

bool oracle_check(struct oracle *o, const struct next_limits *l, const struct next_view *v,
    const struct next_choice *c)
{
	uint64_t urgent = urgent_set(l, v);

	o->choices++;
	o->by_why[c->why]++;
	note_ready(o, v);
	forget(o->urgent_met, urgent);
	forget(o->starve_met, starved_set(o, l, v, true));
	if (v->ready == 0 ? c->stage != -1 || c->why != NEXT_NONE : !is_ready(v, c->stage))
		return broken(o, "order: the stage is not ready");
	if (may_go_on(&o->urgent, l, v)) {
		takes_turn(o->urgent_met, urgent, c->stage); /* a visit counts once */
		if (c->why != NEXT_URGENT || c->stage != o->urgent.stage || c->begins)
			return broken(o, "S6: an urgent visit is cut");
		return c->max == left(&o->urgent, l) || broken(o, "S6: an urgent visit is bounded");
	}
	if (o->urgent.open) {
		o->urgent.open = false;
		o->visit.cut_ns += v->now_ns - o->urgent.began_ns;
	}
	if (v->ready == 0) {
		o->visit.open = false;
		return true;
	}
	return urgent ? check_urgent(o, l, v, c, urgent) : check_rest(o, l, v, c);
}

/* ---- what happened since ---- */

void oracle_took(struct oracle *o, int stage, uint32_t n, uint32_t from_cell)
{
	(o->urgent.open ? &o->urgent : &o->visit)->taken += n;
	for (size_t i = o->first_color; i < o->n_color && from_cell > 0; i++)
		if (o->color[i] == stage) {
			o->color[i] |= GONE;
			from_cell--;
		}
}

void oracle_yielded(struct oracle *o, uint32_t ahead, int64_t at_ns)
{
	struct oracle_visit *t = o->urgent.open ? &o->urgent : &o->visit;
	int64_t bound = (int64_t)(t->taken + ahead);

	if (t->bound < 0)
		t->yielded_ns = at_ns;
	if (t->bound < 0 || bound < t->bound)
		t->bound = bound;
}

void oracle_arrived(struct oracle *o, int stage, uint32_t k)
{
	if (o->policy != &next_color)
		return;
	if (o->first_color == o->n_color)
		o->first_color = o->n_color = 0;
	if (o->n_color == 0 || (o->color[o->n_color - 1] & ~GONE) != stage)
		o->runs++;
	if (o->n_color + k > o->max_color) {
		o->max_color = 2 * o->max_color + k;
		o->color = realloc(o->color, o->max_color);
	}
	memset(o->color + o->n_color, stage, k);
	o->n_color += k;
	o->full = o->full || o->runs > COLOR_RUNS;
}
