/* SPDX-License-Identifier: MIT */
/*
 * What doors promise, looked at when an event leaves a queue or is refused.
 *
 *   I4 waits   Measured wait p99 <= 1.5 cap. Read: in every stretch of a run, of N events that handlers
 *              of the stage were given at most N / 100 and two queues' worth waited longer than 1.5 caps;
 *              a cap is half of the objective, at least two services, and a queue's worth is what waits at
 *              the cap. The queue's worth is there since waits are not independent: one swing over the
 *              limit makes a whole queue late. "Every stretch" by a running sum: 0.99 for a late event,
 *              -0.01 for another, not below 0, at most the slack.
 *              Where the objective is less than some 20 services, 1.5 caps are not what can be held: of m
 *              services ahead at the cap 99 % end within cap + 2.33 sqrt(m) services / n, and the rest
 *              of the one under way is not in the prediction. The limit is that if it is more.
 *              Not held against the door: what was queued before the services' times changed and until
 *              that is known, or by a number of threads that is gone; and queues by priority, which
 *              the prediction is not about (docs/overload.md, "What is weak").
 *   I7 deadlines  No handler starts after its deadline (+1 ms). Read: without the millisecond, for there is
 *              no clock here that could be late.
 *   I8 midway  Zero mid-path admission rejects. Read: for whose sake a request was let in at one door, by
 *              that stage's policy it is not refused at a later one; and of a class that goes one way, no
 *              request is refused by a policy behind its first door. Exact, once warm: the doors have to
 *              learn the ways first. Deadlines and the queue's limit are no admission.
 *   I9 calm    Zero rejects at a load of 0.7. Read: see laws_setting.c for the loads it is said of, and
 *              the share; and with a share CALM_SLACK more, since they come in clusters.
 */
#include "world.h"

#include <math.h>

#include "base/clock.h"

#define LATE_SHARE  0.01
#define CAPS        1.5
#define CAP         0.5 /* WAIT_CAP of weir.c */
#define CAP_COSTS   2
#define NINETY_NINE 2.33 /* standard deviations */
/* A cost follows the last 50 completions (COST_WEIGHT of meter.c); twice that. */
#define COST_EVENTS 100
#define KNOWN_NS    (200 * NS_PER_MS)

/* Warm: ways are known. */
#define WARM_NS (2 * NS_PER_S)

/* Refusals of one swing of the queue: a guess, from what was seen (docs/overload.md). */
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
		    "%.0f more than one in a hundred waited longer than %.1f ms, this one %.1f",
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

/* Is it said of the request that `by` does not refuse it at a later door? */
static bool no_second_door(const struct sim *s, int by, const struct request *r)
{
	return is_warm(s) && s->shape[by].front >= 0 &&
	       ((r->asked_for >> by & 1) || s->set.sole_way[r->class_id]);
}

void laws_arrived(struct sim *s, int stage, const struct request *r)
{
	if (laws_asked(s, SIM_LAW_MIDWAY) && no_second_door(s, stage, r))
		laws_saw(s, SIM_LAW_MIDWAY, 0);
}

static void check_midway(struct sim *s, int gate, int by, const struct request *r, const char *why)
{
	if (!no_second_door(s, by, r))
		return;
	laws_break(s, SIM_LAW_MIDWAY, by, "class %d refused (%s) at the door of '%s', %s",
	    r->class_id, why, s->conf->stage[gate].name,
	    r->asked_for >> by & 1 ? "though it was let in before" : "and none before asked");
}

static void check_calm(struct sim *s, int stage)
{
	double most = s->set.calm_ratio * (double)s->set.sent;

	most += s->set.calm_ratio > 0 ? CALM_SLACK : 0;
	s->set.refused++;
	laws_saw(s, SIM_LAW_CALM, (double)s->set.refused / fmax(most, 1));
	if ((double)s->set.refused > most)
		laws_break(s, SIM_LAW_CALM, stage, "%llu of %llu refused at a load of %.2f",
		    (unsigned long long)s->set.refused, (unsigned long long)s->set.sent,
		    s->set.demand[stage] / s->stage[stage].target);
}

void laws_refused(struct sim *s, int gate, int by, const struct request *r, int reason)
{
	if (by >= 0 && r->at > 0 && laws_asked(s, SIM_LAW_MIDWAY))
		check_midway(s, gate, by, r, weir_error_word(reason));
	if ((by >= 0 || reason == WEIR_EQUEUE) && s->set.calm_ratio >= 0 &&
	    laws_asked(s, SIM_LAW_CALM))
		check_calm(s, by >= 0 ? by : gate);
}
