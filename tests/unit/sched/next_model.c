/* SPDX-License-Identifier: MIT */
#include "sched/next_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/random.h>

#include "sched/next_quick.h"

#define COHORT_MAX 64
#define SWITCH_NS  300 /* of each batch */
#define BURST_MAX  16
/* Most events that may wait; under overload, further arrivals are dropped. */
#define WAITING_MAX 20000

/* Arrival times, oldest first. */
struct line {
	int64_t *at_ns;
	uint32_t first, n, max;
};

struct model_core {
	struct next_core next;
	struct oracle oracle;
	struct line cell[NEXT_STAGES_MAX];
	int64_t ends_ns;                 /* of the batch in progress; INT64_MAX: idle */
	uint32_t sends[NEXT_STAGES_MAX]; /* events of the batch by next stage */
	uint32_t yields;                 /* events of the batch that wait again */
	int stage;                       /* of the batch */
};

struct model {
	const struct model_config *c;
	struct model_result *r;
	uint64_t drawn;
	struct next_stage stage[NEXT_STAGES_MAX]; /* service, rest, load */
	int64_t paused_until_ns[NEXT_STAGES_MAX];
	struct next_order order;
	struct line queue[NEXT_STAGES_MAX];
	struct model_core *core;
	int64_t now_ns, burst_ns, interval_ns;
	uint64_t waiting;
};

static uint64_t draw(struct model *m)
{
	return weir_random_at(m->c->seed, m->drawn++);
}

static uint32_t draw_below(struct model *m, uint32_t n)
{
	return (uint32_t)(draw(m) % n);
}

/* ---- lines ---- */

static void line_push(struct line *l, int64_t at_ns)
{
	if (l->n == l->max) {
		struct line more = {.max = l->max ? 2 * l->max : 8, .n = l->n};

		more.at_ns = calloc(more.max, sizeof(*more.at_ns));
		for (uint32_t i = 0; i < l->n; i++)
			more.at_ns[i] = l->at_ns[(l->first + i) % l->max];
		free(l->at_ns);
		*l = more;
	}
	l->at_ns[(l->first + l->n++) % l->max] = at_ns;
}

static void line_take(struct line *l, uint32_t n)
{
	l->n -= n;
	if (n > 0)
		l->first = (l->first + n) % l->max;
}

static int64_t line_oldest(const struct line *l)
{
	return l->n > 0 ? l->at_ns[l->first] : INT64_MAX;
}

/* ---- the stages ---- */

static void make_stages(struct model *m)
{
	const struct model_config *c = m->c;
	double work = 0;

	for (int i = c->n_stages - 1; i >= 0; i--) {
		struct next_stage *s = &m->stage[i];

		/* The costs have few different values, so that some are equal. */
		s->service_ns = c->equal ? 1000 : 200 << draw_below(m, 6);
		s->rest_ns =
		    s->service_ns + (i + 1 < c->n_stages ? m->stage[i + 1].rest_ns : 0) / 2;
		s->load = (double)s->service_ns;
		work += s->load;
	}
	for (int i = 0; i < c->n_stages; i++) {
		m->stage[i].load *= c->load / work;
		if (c->equal)
			m->stage[i].service_ns = m->stage[i].rest_ns = 0;
	}
	/* An event visits about half of the stages from where it enters. */
	m->interval_ns = (int64_t)((BURST_MAX / 2 + 1) * (work / 2 + SWITCH_NS) / c->load /
				   c->n_cores / (c->n_stages > 2 ? 1.5 : 1)) +
			 1;
}

static void arrive(struct model *m)
{
	const struct model_config *c = m->c;
	int stage = draw(m) % 2 ? 0 : (int)draw_below(m, (uint32_t)c->n_stages);

	for (uint32_t k = 1 + draw_below(m, BURST_MAX); k > 0 && m->waiting < WAITING_MAX; k--) {
		line_push(&m->queue[stage], m->now_ns);
		m->waiting++;
		m->r->arrived++;
	}
	m->burst_ns =
	    m->now_ns + 1 - (int64_t)(log(weir_random_unit(draw(m))) * (double)m->interval_ns);
	if (c->pauses && draw_below(m, 8) == 0)
		m->paused_until_ns[draw_below(m, (uint32_t)c->n_stages)] =
		    m->now_ns + 1 + draw_below(m, (uint32_t)(20 * m->interval_ns));
}

/* Where an event goes after `stage`; n_stages: it ends. */
static int next_of(struct model *m, int stage)
{
	int n = m->c->n_stages;

	switch (draw_below(m, 16)) {
	case 0:
		return stage > 0 ? (int)draw_below(m, (uint32_t)stage) : n; /* back */
	case 1:
	case 2:
		return n;
	default:
		stage += 1 + (int)draw_below(m, 3);
		return stage < n ? stage : n;
	}
}

/* ---- a core ---- */

static bool someone_idle(const struct model *m)
{
	for (int i = 0; i < m->c->n_cores; i++)
		if (m->core[i].ends_ns == INT64_MAX)
			return true;
	return false;
}

static void push_cell(struct model *m, struct model_core *core, int stage, uint32_t k)
{
	for (uint32_t i = 0; i < k; i++)
		line_push(&core->cell[stage], m->now_ns);
	m->waiting += k;
	next_arrived(&core->next, stage, k);
	oracle_arrived(&core->oracle, stage, k);
}

/* Events of the batch wait again: in the cell, or in the queue, where other cores may take what is
 * before them. */
static void yield(struct model *m, struct model_core *core)
{
	struct line *cell = &core->cell[core->stage], *queue = &m->queue[core->stage];
	bool shared = draw(m) % 2;
	uint32_t ahead = cell->n + (shared ? queue->n : 0);

	next_yielded(&core->next, ahead, m->now_ns);
	oracle_yielded(&core->oracle, ahead, m->now_ns);
	if (!shared)
		push_cell(m, core, core->stage, core->yields);
	for (uint32_t k = 0; shared && k < core->yields; k++, m->waiting++)
		line_push(queue, m->now_ns);
}

/* The batch of this core has ended: its events go on. */
static void end_batch(struct model *m, struct model_core *core)
{
	int n = m->c->n_stages;
	bool deal = someone_idle(m) && draw(m) % 2;

	if (core->yields > 0)
		yield(m, core);
	for (int i = 0; i < n; i++) {
		if (deal)
			for (uint32_t k = 0; k < core->sends[i]; k++, m->waiting++)
				line_push(&m->queue[i], m->now_ns);
		else if (core->sends[i] > 0)
			push_cell(m, core, i, core->sends[i]);
	}
	memset(core->sends, 0, sizeof(core->sends));
	core->yields = 0;
}

static struct next_view look(
    const struct model *m, const struct model_core *core, struct next_stage *stage)
{
	struct next_view v = {
	    .n = m->c->n_stages, .stage = stage, .order = &m->order, .now_ns = m->now_ns};

	for (int i = 0; i < v.n; i++) {
		const struct line *cell = &core->cell[i], *queue = &m->queue[i];

		stage[i] = m->stage[i];
		stage[i].length = cell->n + queue->n;
		stage[i].oldest_ns =
		    line_oldest(cell) < line_oldest(queue) ? line_oldest(cell) : line_oldest(queue);
		if (stage[i].length > 0 && m->now_ns >= m->paused_until_ns[i])
			v.ready |= UINT64_C(1) << i;
	}
	return v;
}

static void begin_batch(
    struct model *m, struct model_core *core, const struct next_choice *c, uint32_t length)
{
	struct line *cell = &core->cell[c->stage];
	uint32_t most = 1 + draw_below(m, m->c->cohort);
	uint32_t n = length < most ? length : most;

	n = n < c->max ? n : c->max;
	uint32_t from_cell = n < cell->n ? n : cell->n;

	line_take(cell, from_cell);
	line_take(&m->queue[c->stage], n - from_cell);
	m->waiting -= n;
	next_took(&core->next, c->stage, n, from_cell);
	oracle_took(&core->oracle, c->stage, n, from_cell);
	core->stage = c->stage;
	for (uint32_t i = 0; i < n; i++) {
		int to = next_of(m, c->stage);

		if (m->c->limits.gate == NEXT_CUTOFF && draw_below(m, 16) == 0)
			core->yields++;
		else if (to < m->c->n_stages)
			core->sends[to]++;
		else
			m->r->ended++;
	}
	int64_t service_ns = m->c->equal ? 1000 : m->stage[c->stage].service_ns;

	core->ends_ns = m->now_ns + SWITCH_NS + (int64_t)n * service_ns;
}

static bool same_visit(const struct next_visit *a, const struct next_visit *b)
{
	return a->open == b->open && a->stage == b->stage && a->gate == b->gate &&
	       a->left == b->left && a->until_ns == b->until_ns && a->began_ns == b->began_ns;
}

static bool same_core(const struct next_core *a, const struct next_core *b)
{
	return same_visit(&a->visit, &b->visit) && same_visit(&a->urgent, &b->urgent) &&
	       a->last == b->last && a->last_urgent == b->last_urgent &&
	       a->starve_check_ns == b->starve_check_ns && a->simple == b->simple &&
	       memcmp(a->state, b->state, sizeof(a->state)) == 0;
}

/* Whether next_quick, which must not read the stages, either changes nothing or chooses like
 * next_choose, which has changed the core from `before` to `after`. */
static bool quick_agrees(struct model *m, const struct next_core *before,
    const struct next_core *after, const struct next_view *v, const struct next_choice *c)
{
	struct next_core core = *before;
	struct next_stage unread[NEXT_STAGES_MAX];
	struct next_view bits = *v;
	bool begins = false;

	memset(unread, 0xa5, sizeof(unread));
	bits.stage = unread;
	int stage = next_quick(&core, &bits, &begins);
	if (stage < 0)
		return same_core(&core, before);
	m->r->quick++;
	return stage == c->stage && begins == c->begins && c->max == UINT32_MAX &&
	       c->why == (begins ? NEXT_POLICY : NEXT_STAY) && same_core(&core, after);
}

/* One choice. Returns false if it breaks a law. */
static bool choose(
    struct model *m, struct model_core *core, const struct next_view *v, struct next_choice *c)
{
	struct next_core before = core->next;

	*c = next_choose(&core->next, &m->c->limits, v);
	m->r->by_why[c->why]++;
	bool agrees = quick_agrees(m, &before, &core->next, v, c);
	if (oracle_check(&core->oracle, &m->c->limits, v, c) && agrees)
		return true;
	m->r->broken = agrees ? core->oracle.broken : "next_quick chooses as next_choose";
	m->r->core = (int)(core - m->core);
	return false;
}

/* A core looks for its next batch. Now and then the batch turns out to be empty, as if other cores
 * had been faster; then the core chooses again without the stage. */
static bool turn(struct model *m, struct model_core *core)
{
	struct next_stage stage[NEXT_STAGES_MAX];
	struct next_choice c;

	end_batch(m, core);
	struct next_view v = look(m, core, stage);

	core->ends_ns = INT64_MAX;
	while (choose(m, core, &v, &c)) {
		if (c.stage < 0)
			return true;
		if (m->c->policy == &next_color || draw_below(m, 32) > 0) {
			begin_batch(m, core, &c, stage[c.stage].length);
			return true;
		}
		next_took(&core->next, c.stage, 0, 0);
		oracle_yielded(&core->oracle, 0, INT64_MAX);
		v.ready &= ~(UINT64_C(1) << c.stage);
	}
	return false;
}

/* ---- a run ---- */

static struct model_core *first_to_end(struct model *m)
{
	struct model_core *first = &m->core[0];

	for (int i = 1; i < m->c->n_cores; i++)
		if (m->core[i].ends_ns < first->ends_ns)
			first = &m->core[i];
	return first;
}

/* The next thing in time: a burst, which wakes an idle core, or the end of a batch. */
static bool step(struct model *m)
{
	struct model_core *core = first_to_end(m);

	if (core->ends_ns > m->burst_ns) {
		m->now_ns = m->burst_ns;
		arrive(m);
		int from = (int)draw_below(m, (uint32_t)m->c->n_cores);

		for (int i = 0; i < m->c->n_cores; i++) {
			core = &m->core[(from + i) % m->c->n_cores];
			if (core->ends_ns == INT64_MAX)
				return turn(m, core);
		}
		return true;
	}
	m->now_ns = core->ends_ns;
	return turn(m, core);
}

static void finish(struct model *m)
{
	for (int i = 0; i < m->c->n_cores; i++) {
		struct model_core *core = &m->core[i];

		m->r->policy_checked += core->oracle.policy_checked;
		m->r->waiting += core->yields;
		for (int k = 0; k < m->c->n_stages; k++) {
			m->r->waiting += core->sends[k];
			free(core->cell[k].at_ns);
		}
		oracle_fini(&core->oracle);
	}
	for (int k = 0; k < m->c->n_stages; k++)
		free(m->queue[k].at_ns);
	free(m->core);
	m->r->waiting += m->waiting;
}

void model_run(const struct model_config *c, struct model_result *r)
{
	struct model m = {.c = c, .r = r, .now_ns = 1000000};

	memset(r, 0, sizeof(*r));
	make_stages(&m);
	m.burst_ns = m.now_ns;
	m.core = calloc((size_t)c->n_cores, sizeof(*m.core));
	for (int i = 0; i < c->n_cores; i++) {
		next_core_init(&m.core[i].next, c->policy);
		next_adapt(&m.core[i].next, &c->limits);
		oracle_init(&m.core[i].oracle, c->policy);
		m.core[i].ends_ns = INT64_MAX;
	}
	struct next_view v = {.n = c->n_stages, .stage = m.stage};

	next_order_make(c->policy, &v, &c->limits, &m.order);
	while (r->choice < c->choices && step(&m))
		r->choice++;
	finish(&m);
}

static uint32_t below(uint64_t *key, uint32_t n)
{
	*key = weir_random_at(*key, 1);
	return (uint32_t)(*key % n);
}

struct model_config model_draw(uint64_t seed, const struct next_policy *policy, enum next_gate gate)
{
	static const int stages[] = {1, 2, 3, 5, 8, 14, 33, 63, 64};
	static const int cores[] = {1, 1, 2, 3, 8, 64};
	static const double loads[] = {0.3, 0.7, 0.9, 1.0, 1.5, 4};
	uint64_t key = weir_random_at(seed, 0);
	struct model_config c = {.seed = key, .policy = policy, .choices = 2000};

	c.n_stages = stages[below(&key, 9)];
	c.n_cores = cores[below(&key, 6)];
	c.load = loads[below(&key, 6)];
	c.cohort = 1u << below(&key, 7);
	c.equal = below(&key, 5) == 0;
	c.pauses = policy != &next_color && below(&key, 3) == 0;
	c.limits = (struct next_limits){.gate = gate, .gate_events = 1u << below(&key, 6)};
	c.limits.gate_ns = 1000 << below(&key, 8);
	c.limits.starve_ns = below(&key, 2) ? 20000 << below(&key, 8) : 0;
	for (uint32_t k = below(&key, 4); k > 0; k--) {
		uint32_t i = below(&key, (uint32_t)c.n_stages);
		uint32_t kind = 1 + below(&key, 3);

		c.limits.urgent_set |= UINT64_C(1) << i;
		c.limits.urgent[i] =
		    (struct next_urgent){.events = kind & 1 ? 4u << below(&key, 5) : 0,
			.wait_ns = kind & 2 ? 10000 << below(&key, 6) : 0};
	}
	return c;
}
