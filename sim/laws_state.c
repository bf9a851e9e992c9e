/* SPDX-License-Identifier: MIT */
/*
 * Checks that credits and threads are returned (I14) and that shared state is read consistently
 * (I15).
 *
 * I14 returned: when a handler crashes or a request ends on its way, its credits are returned, and
 * a crashed thread is replaced.
 *   Check of the credits: whenever the routes have been counted anew (every 50 ms, unless ticks are
 *     lost), the work on its way to a stage is at most the sum over the classes of n times the cost
 *     of the class there. n is the number of events of the class that are queued or in handlers at
 *     the stages from which a path of links leads to the stage, over links that the class uses. The
 *     slack is 1 ns per event for rounding. A loop counts as no way (route.h), so no event is counted
 *     twice.
 *     The path need not be a part of one route. The server learns for each class which share of the
 *     events of a stage takes which link, but not where these events came from. If the routes
 *     a-c-d and b-c-e are of one class, an event at b counts as on its way to d, in proportion to
 *     the events of c that go to d. For the events at c, the sum is right in the mean.
 *     An event that yields counts as handled at its first yield, in the server as well, but is sent on
 *     later. The server remembers MEMORY events of a stage. So together the shares of the links of a
 *     stage may exceed 1 by the number of events that had yielded at once, over those that are
 *     remembered.
 *   Check of the threads: a crashed thread is replaced within RETURN_NS (control runs every
 *     100 ms). The events of its batch are covered by I1.
 *
 * I15 reads: no torn reads of users and routes.
 *   Check: time and counters never decrease. A policy is a function of its state and its input: if
 *     queried again with copies of both, it returns the same verdict, leaves the same state, and
 *     writes nothing beyond that state. It is queried again for the probes of admit.c, one
 *     admission in PROBE_EVERY. The memory accesses of the server's threads are checked by
 *     ThreadSanitizer (tests/torture, .ci).
 */
#include "world.h"

#include <string.h>

#include "base/clock.h"

#define MEMORY    500 /* MEMORY_EVENTS in admission/route.c */
#define RETURN_NS (100 * NS_PER_MS + 2 * ADMISSION_TICK_NS)

/* ---- I14 ---- */

/* Add to next[stage] the stages to which the events of the route go on from there. */
static void add_route(const struct sim_route *r, uint32_t *next)
{
	for (int at = 1; at < r->n; at++)
		next[r->stage[at - 1]] |= 1u << r->stage[at];
}

/* Find for class `k` the stages from which a path leads to each stage. */
static void find_upstream(struct sim *s, int k)
{
	uint32_t next[SIM_STAGES_MAX] = {0};
	int n = s->conf->n_stages;

	for (int i = 0; i < s->conf->n_sources; i++) {
		const struct sim_source *c = &s->conf->source[i];
		for (int r = 0; r < s->conf->n_routes && c->class_id == k; r++)
			if (c->any_route || c->route == r)
				add_route(&s->conf->route[r], next);
	}
	for (int by = 0; by < n; by++)
		for (int i = 0; i < n; i++)
			if (next[i] >> by & 1)
				next[i] |= next[by];
	for (int i = 0; i < n; i++)
		for (int to = 0; to < n; to++)
			if (to != i && next[i] >> to & 1)
				s->stage[to].law.upstream[k] |= 1u << i;
}

void laws_state_init(struct sim *s)
{
	for (int k = 0; k < s->conf->n_classes; k++)
		find_upstream(s, k);
}

/* Number of events of the class at the stages from which a path leads to `st`. */
static int64_t upstream_of(const struct sim *s, const struct stage *st, int k)
{
	int64_t n = 0;

	for (int i = 0; i < s->conf->n_stages; i++)
		if (st->law.upstream[k] >> i & 1)
			n += s->stage[i].lane[k].n + s->stage[i].in_cells[k] +
			     s->stage[i].books[k].running;
	return n;
}

/* Return how much the shares of the links from a stage may exceed 1 together. */
static double most_shares(const struct stage *st, int k)
{
	double n = st->books[k].ran < MEMORY ? (double)st->books[k].ran : MEMORY;

	return n > 0 ? 1 + st->law.most_back[k] / n : 1;
}

static double most_visits(const struct sim *s, const struct stage *st, int k)
{
	double most = 1;

	for (int i = 0; i < s->conf->n_stages; i++)
		if (st->law.upstream[k] >> i & 1)
			most *= most_shares(&s->stage[i], k);
	return most;
}

static void check_credits(struct sim *s, int stage)
{
	const struct stage *st = &s->stage[stage];
	int64_t all = 0, most_ns = 0;

	for (int k = 0; k < s->conf->n_classes; k++) {
		int64_t n = upstream_of(s, st, k);
		all += n;
		most_ns +=
		    (int64_t)((double)n * most_visits(s, st, k) * (double)(st->cost_ns[k] + 1));
	}
	laws_saw(s, SIM_LAW_RETURNED, most_ns > 0 ? (double)st->pipeline_ns / (double)most_ns : 0);
	if (st->pipeline_ns > most_ns)
		laws_break(s, SIM_LAW_RETURNED, stage,
		    "%.3f ms of work is on its way, but only %lld events can bring it, which take "
		    "%.3f ms",
		    (double)st->pipeline_ns * 1e-6, (long long)all, (double)most_ns * 1e-6);
}

void laws_state_tick(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];

	if (st->live >= st->target || s->lost_ticks) {
		st->law.missing_ns = 0;
		return;
	}
	if (!st->law.missing_ns)
		st->law.missing_ns = s->now_ns;
	if (st->law.excused_ns < s->now_ns)
		st->law.excused_ns = s->now_ns; /* admitted when there were more threads */
	laws_saw(s, SIM_LAW_RETURNED, (double)(s->now_ns - st->law.missing_ns) / RETURN_NS);
	if (s->now_ns - st->law.missing_ns > RETURN_NS)
		laws_break(s, SIM_LAW_RETURNED, stage, "only %d of %d threads exist for %.0f ms",
		    st->live, st->target, (double)(s->now_ns - st->law.missing_ns) * 1e-6);
}

void laws_routes(struct sim *s)
{
	for (int i = 0; i < s->conf->n_stages && s->route; i++)
		if (s->now_ns == s->routes_at_ns && s->shape[i].front >= 0)
			check_credits(s, i);
}

/* ---- I15 ---- */

void laws_sampled(struct sim *s, int stage)
{
	const struct stage *st = &s->stage[stage];

	for (int k = 0; k < s->conf->n_classes; k++) {
		const struct books *b = &st->books[k];
		const struct looked *then = &st->meter.then[k];
		laws_saw(s, SIM_LAW_READS, 0);
		if (b->asked < then->asked || b->wanted < then->wanted ||
		    b->policy_refused < then->refused ||
		    b->completed + b->failed < then->completed ||
		    b->service_ns < then->service_ns || b->wait_ns < then->wait_ns ||
		    b->wanted > b->asked)
			laws_break(s, SIM_LAW_READS, stage, "a counter of class %d decreased", k);
	}
}

/* Query the policy a second time for one event. `before`, `view`, `admitted` (0 or 1) and `reason`
 * are those of the first decision. */
void laws_asked_again(struct sim *s, int stage, int class_id, const struct admission_view *view,
    const unsigned char *before, int admitted, int reason)
{
	static const unsigned char nothing[ADMISSION_STATE_MAX];
	struct stage *st = &s->stage[stage];
	const struct admission_policy *p = st->conf->admission;
	_Alignas(16) unsigned char copy[ADMISSION_STATE_MAX];
	bool refused = false;
	int why = 0;

	if (!laws_asked(s, SIM_LAW_READS))
		return;
	memcpy(copy, before, sizeof(copy));
	int m = p->admit(copy, &st->conf->params, view, class_id, 1, &refused, &why);
	laws_saw(s, SIM_LAW_READS, 0);
	if (m != admitted || (m == 0 && why != reason) ||
	    memcmp(copy, st->state, sizeof(copy)) != 0)
		laws_break(s, SIM_LAW_READS, stage,
		    "policy %s, queried twice: %d admitted with reason %d, then %d with reason %d",
		    p->name, admitted, reason, m, why);
	if (memcmp(st->state + p->state_size, nothing, sizeof(nothing) - p->state_size) != 0)
		laws_break(s, SIM_LAW_READS, stage, "policy %s wrote beyond its state", p->name);
}
