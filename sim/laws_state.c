/* SPDX-License-Identifier: MIT */
/*
 * Checks that credits and threads are returned (I14) and that shared state is read consistently
 * (I15).
 *
 * I14 returned: when a handler crashes or a request ends on its way, its credits are returned, and
 * a crashed thread is replaced.
 *   Check of the credits: whenever the routes have been counted anew (every 50 ms, unless ticks are
 *     lost), the work on its way to a stage is at most n times the cost of the most expensive
 *     class, where n is the number of events that are queued or in handlers of the stages upstream.
 *     The slack is 1 ns per event for rounding. In graphs with loops events may arrive more than
 *     once, so there only the case n = 0 is checked.
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

#define RETURN_NS (100 * NS_PER_MS + 2 * ADMISSION_TICK_NS)

/* ---- I14 ---- */

/* Find the stages upstream of each stage. */
void laws_state_init(struct sim *s)
{
	for (int i = 0; i < s->conf->n_routes; i++) {
		const struct sim_route *r = &s->conf->route[i];
		uint32_t before = 0;
		for (int at = 0; at < r->n; at++) {
			s->stage[r->stage[at]].law.upstream |= before;
			before |= 1u << r->stage[at];
		}
	}
}

static bool is_looped(const struct sim *s)
{
	for (int l = 0; l < s->n_links; l++)
		if (s->link[l].loop)
			return true;
	return false;
}

static void check_credits(struct sim *s, int stage)
{
	const struct stage *st = &s->stage[stage];
	int64_t n = 0, cost_ns = st->mean_cost_ns;

	for (int i = 0; i < s->conf->n_stages; i++)
		if (st->law.upstream >> i & 1)
			n += s->stage[i].length + s->stage[i].running;
	for (int k = 0; k < s->conf->n_classes; k++)
		cost_ns = st->cost_ns[k] > cost_ns ? st->cost_ns[k] : cost_ns;
	laws_saw(s, SIM_LAW_RETURNED, 0);
	if (n == 0 ? st->pipeline_ns > 0 : !is_looped(s) && st->pipeline_ns > n * (cost_ns + 1))
		laws_break(s, SIM_LAW_RETURNED, stage,
		    "%.3f ms of work is on its way, but only %lld events can bring it",
		    (double)st->pipeline_ns * 1e-6, (long long)n);
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
