/* SPDX-License-Identifier: MIT */
/*
 * Checks the promises of admission when an event leaves a queue or is refused.
 *
 * I4 waits: the p99 of the measured wait is at most 1.5 caps. The cap is half of the objective, but
 * at least two services.
 *   Check: if N events reach handlers of the stage in any interval of a run, at most N / 100 + S of
 *     them waited longer than 1.5 caps. The slack S is 10 events plus twice the number of events
 *     that wait when the wait is at the cap. It is needed since waits are not independent: one
 *     swing over the limit makes a whole queue late. A running sum checks all intervals at once: it
 *     adds 0.99 for a late event and -0.01 for any other, never falls below 0, and must not exceed
 *     S.
 *   Short objectives: below some 20 services, 1.5 caps cannot be guaranteed. With n threads, and m
 *     services ahead of an event at the cap, 99 % of the waits end within cap + 2.33 sqrt(m)
 *     services / n. The service in progress, which the prediction does not include, adds one more
 *     service. If the resulting time is longer than 1.5 caps, it is the limit.
 *   Not checked: events that were queued before a change of service times was known, or while there
 *     were more threads; and priority queues, which the prediction does not cover
 *     (docs/overload.md, "What is weak").
 *
 * I7 deadlines: no handler starts an event after its deadline. The server is allowed 1 ms more,
 * since its clock readings are not exact; in virtual time they are.
 *
 * I8 midway: no request is refused after its first admission.
 *   Check: a request admitted upstream on behalf of a stage is not refused by that stage's policy
 *     later; and no policy refuses a request of a class with a single route after the first
 *     admission. No refusal is tolerated, but the check begins only after the warm-up, in which the
 *     routes are learned. Refusals because of a deadline or the queue limit do not count.
 *
 * I9 calm: no request is refused at a load of 0.7.
 *   Check: at the loads in laws_setting.c, the number of refused requests is at most the share
 *     defined there. If that share is not 0, CALM_SLACK more are allowed, since refusals come in
 *     clusters.
 */
#include "world.h"

#include <math.h>

#include "base/clock.h"

#define LATE_SHARE  0.01
#define CAPS        1.5
#define CAP         0.5 /* WAIT_CAP of weir.c */
#define CAP_COSTS   2
#define NINETY_NINE 2.33 /* standard deviations */
/* Number of completions after which a changed cost is known: twice the 50 completions over which a
 * cost is averaged (COST_WEIGHT of meter.c). */
#define COST_EVENTS 100
#define KNOWN_NS    (200 * NS_PER_MS)

/* Time from which the routes are known. */
#define WARM_NS (2 * NS_PER_S)

/* Refusals allowed for one swing of the queue. 20 is a guess from observation
 * (docs/overload.md). */
#define CALM_SLACK 20

static bool is_warm(const struct sim *s)
{
	return s->now_ns >= WARM_NS && s->now_ns >= s->conf->warmup_ns;
}

/* ---- I4 ---- */

static double most_wait_ns(double cap_ns, double cost_ns, int threads)
{
	double ahead = cap_ns * threads / cost_ns;
	double chance_ns = cap_ns + cost_ns + NINETY_NINE * cost_ns * sqrt(ahead) / threads;

	return fmax(CAPS * cap_ns, chance_ns);
}

static void check_wait(struct sim *s, int stage, const struct request *r)
{
	struct stage *st = &s->stage[stage];
	struct stage_laws *l = &st->law;
	double cost_ns = (double)st->mean_cost_ns;

	if (cost_ns <= 0 || r->queued_ns < l->excused_ns || !is_warm(s) ||
	    st->conf->discipline == WEIR_DISCIPLINE_PRIORITY ||
	    st->conf->params.mode != WEIR_ADMISSION_ENFORCE)
		return;
	double cap_ns = fmax(CAP * (double)st->conf->slo_ns, CAP_COSTS * cost_ns);
	double most_ns = most_wait_ns(cap_ns, cost_ns, st->target);
	bool late = (double)(s->now_ns - r->queued_ns) > most_ns;
	double slack = 10 + 2 * st->target * cap_ns / cost_ns;

	l->late = fmax(0, l->late + late - LATE_SHARE);
	laws_saw(s, SIM_LAW_WAIT, l->late / slack);
	if (l->late > slack)
		laws_break(s, SIM_LAW_WAIT, stage,
		    "%.0f more events than one in a hundred waited longer than %.1f ms; the last "
		    "one waited %.1f ms",
		    l->late, most_ns * 1e-6, (double)(s->now_ns - r->queued_ns) * 1e-6);
}

void laws_left_queue(struct sim *s, int stage, const struct request *r)
{
	laws_saw(s, SIM_LAW_DEADLINE, 0);
	if (r->deadline_ns <= s->now_ns)
		laws_break(s, SIM_LAW_DEADLINE, stage,
		    "a handler starts %lld ns after the deadline",
		    (long long)(s->now_ns - r->deadline_ns));
	if (laws_asked(s, SIM_LAW_WAIT))
		check_wait(s, stage, r);
}

void laws_slowed(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];
	double service_ns = (double)st->conf->service.mean_ns * st->slow;

	st->law.excused_ns =
	    s->now_ns + KNOWN_NS +
	    (int64_t)(COST_EVENTS * service_ns / (st->target > 0 ? st->target : 1));
}

/* ---- I8, I9 ---- */

void laws_sent(struct sim *s)
{
	s->set.sent++;
	if (s->set.calm_ratio >= 0 && laws_asked(s, SIM_LAW_CALM))
		laws_saw(s, SIM_LAW_CALM, 0);
}

/* Whether `by` must not refuse the request, since an earlier admission has decided on its
 * behalf. */
static bool no_second_refusal(const struct sim *s, int by, const struct request *r)
{
	return is_warm(s) && s->shape[by].front >= 0 &&
	       ((r->asked_for >> by & 1) || s->set.sole_way[r->class_id]);
}

void laws_arrived(struct sim *s, int stage, const struct request *r)
{
	if (laws_asked(s, SIM_LAW_MIDWAY) && no_second_refusal(s, stage, r))
		laws_saw(s, SIM_LAW_MIDWAY, 0);
}

static void check_midway(struct sim *s, int entry, int by, const struct request *r, const char *why)
{
	if (!no_second_refusal(s, by, r))
		return;
	laws_break(s, SIM_LAW_MIDWAY, by, "a request of class %d is refused (%s) at stage '%s', %s",
	    r->class_id, why, s->conf->stage[entry].name,
	    r->asked_for >> by & 1 ? "although an earlier admission decided for this stage"
				   : "although its class has only one route");
}

static void check_calm(struct sim *s, int stage)
{
	double most = s->set.calm_ratio * (double)s->set.sent;

	most += s->set.calm_ratio > 0 ? CALM_SLACK : 0;
	s->set.refused++;
	laws_saw(s, SIM_LAW_CALM, (double)s->set.refused / fmax(most, 1));
	if ((double)s->set.refused > most)
		laws_break(s, SIM_LAW_CALM, stage,
		    "%llu of %llu requests are refused at a load of %.2f",
		    (unsigned long long)s->set.refused, (unsigned long long)s->set.sent,
		    s->set.demand[stage] / s->stage[stage].target);
}

void laws_refused(struct sim *s, int entry, int by, const struct request *r, int reason)
{
	if (by >= 0 && r->at > 0 && laws_asked(s, SIM_LAW_MIDWAY))
		check_midway(s, entry, by, r, weir_error_word(reason));
	if ((by >= 0 || reason == WEIR_EQUEUE) && s->set.calm_ratio >= 0 &&
	    laws_asked(s, SIM_LAW_CALM))
		check_calm(s, by >= 0 ? by : entry);
}
