/* SPDX-License-Identifier: MIT */
/*
 * Checks the shares of classes and the end of overload at each tick, from sums over slots of 100 ms
 * (the interval of the policy).
 *
 * I6 guarantees: each class with demand gets 0.9 of its guarantee g over 1 s.
 *   Check: for each slot, take the smaller of two amounts: the demand of the class, and the share g
 *     of the work that the stage's handlers begin. In every interval of a run, the class gets at
 *     least 0.9 of the sum of these amounts, minus a slack. Work that handlers do not begin,
 *     because they crash or hang, is not counted. Events that another stage refuses are not demand.
 *   Slack: g times the work of the stage during the objective plus 200 ms, plus the work of
 *     SHARE_EVENTS events. The first part is needed since admitted events may wait for as long as
 *     the objective, and since the policy notices a new load late. The second part is needed for
 *     random deviations: with 4 threads and services of 5 ms, a guarantee of 2 % is only 16 events
 *     a second. The probability that a sum with a drift of -0.1 and the variance of a Poisson
 *     process exceeds x events is exp(-0.2 x), which is 1e-13 for 150.
 *   Not checked: classes with few users (each user is served in its own period of 10 s), and
 *     priority queues.
 *
 * I10 normal again: the policy reports NORMAL at most 2 intervals plus the drain time after the
 * load fell below 0.8.
 *   Check: the check starts with a slot in which the stage is offered less than 0.8 of its
 *     capacity, and restarts after a slot with more load. Let d be the predicted wait at the start,
 *     and n the number of threads. (a) Within 2 d / (1 - 0.8) plus one interval plus 100 services /
 *     n, a thread is idle or almost nothing waits. (b) Within two further intervals and two ticks,
 *     the policy reports NORMAL. The factor 2 is needed since the services during the drain are
 *     random.
 *   Not checked: policies that do not report their state.
 */
#include "world.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

#define SLOT_NS (100 * NS_PER_MS)

#define SHARE        0.9
#define SHARE_EVENTS 150
#define SHARE_NS     (200 * NS_PER_MS)

#define CALM_LOAD      0.8
#define DRAIN_SERVICES 100
#define LOW            0.05 /* of the objective: WAIT_LOW of weir.c */

static bool in_order(const struct stage *st)
{
	return st->conf->discipline != WEIR_DISCIPLINE_PRIORITY &&
	       st->conf->params.mode == WEIR_ADMISSION_ENFORCE && st->mean_cost_ns > 0;
}

/* ---- I6 ---- */

static double begun_ns(const struct sim *s, const struct stage *st)
{
	double all_ns = 0;

	for (int k = 0; k < s->conf->n_classes; k++)
		all_ns += (double)((int64_t)(st->books[k].handled - st->law.then[k].handled) *
				   st->cost_ns[k]);
	return all_ns;
}

static void check_share(struct sim *s, int stage, int k, double all_ns)
{
	struct stage *st = &s->stage[stage];
	struct stage_laws *l = &st->law;
	double g = s->conf->guarantee[k], cost_ns = (double)st->cost_ns[k];
	double wants_ns = (double)(st->books[k].wanted - l->then[k].wanted) * cost_ns;
	double got_ns = (double)(st->books[k].handled - l->then[k].handled) * cost_ns;
	double due_ns = SHARE * fmin(wants_ns, g * all_ns);
	double slack_ns = g * st->target * (double)(st->conf->slo_ns + SHARE_NS) +
			  SHARE_EVENTS * fmax(cost_ns, (double)st->mean_cost_ns);

	l->owed_ns[k] = fmax(0, l->owed_ns[k] + due_ns - got_ns);
	laws_saw(s, SIM_LAW_SHARE, l->owed_ns[k] / slack_ns);
	if (l->owed_ns[k] > slack_ns)
		laws_break(s, SIM_LAW_SHARE, stage,
		    "class %d is owed %.1f ms of its guarantee of %.1f %%; the limit is %.1f ms", k,
		    l->owed_ns[k] * 1e-6, g * 100, slack_ns * 1e-6);
}

/* ---- I10 ---- */

static double wait_ns(const struct sim *s, const struct stage *st)
{
	double n = st->target > 0 ? st->target : 1;

	return (double)(queue_work_ns(s, st) + st->pipeline_ns) / n;
}

static bool is_over(const struct stage *st)
{
	char line[256] = "";

	st->conf->admission->explain(st->state, &st->conf->params, NULL, line, sizeof(line));
	return strncmp(line, "OVER", 4) == 0;
}

/* Start the check of I10: set the time by which the queue must be short if the load stays small. */
static void arm(struct sim *s, struct stage *st)
{
	struct stage_laws *l = &st->law;

	l->calm_ns = l->low_ns = 0;
	l->normal = false;
	l->drain_ns = s->now_ns + SLOT_NS + (int64_t)(2 * wait_ns(s, st) / (1 - CALM_LOAD)) +
		      DRAIN_SERVICES * st->mean_cost_ns / (st->target > 0 ? st->target : 1);
}

/* Record whether the load was small in the slot that ends now. */
static void follow_load(struct sim *s, struct stage *st)
{
	struct stage_laws *l = &st->law;
	double wants_ns = 0, span_ns = (double)(s->now_ns - l->slot_ns);

	for (int k = 0; k < s->conf->n_classes; k++)
		wants_ns +=
		    (double)((int64_t)(st->books[k].wanted - l->then[k].wanted) * st->cost_ns[k]);
	if (wants_ns < CALM_LOAD * st->target * span_ns) {
		l->calm_ns = l->calm_ns ? l->calm_ns : l->slot_ns;
		return;
	}
	arm(s, st);
}

static void check_normal(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];
	struct stage_laws *l = &st->law;
	int64_t until_ns = l->drain_ns;

	if (!l->low_ns && (st->idle != NONE || wait_ns(s, st) <= LOW * (double)st->conf->slo_ns))
		l->low_ns = s->now_ns;
	if (!l->calm_ns || l->normal)
		return;
	if (l->low_ns)
		until_ns = l->low_ns + 2 * SLOT_NS + 2 * ADMISSION_TICK_NS;
	l->normal = l->low_ns && !is_over(st);
	double span_ns = (double)(until_ns - l->calm_ns);
	laws_saw(s, SIM_LAW_NORMAL, (double)(s->now_ns - l->calm_ns) / fmax(1, span_ns));
	if (!l->normal && s->now_ns > until_ns)
		laws_break(s, SIM_LAW_NORMAL, stage,
		    l->low_ns
			? "the load has been small for %.2f s, but the policy still reports OVER"
			: "the load has been small for %.2f s, but events still wait",
		    (double)(s->now_ns - l->calm_ns) * 1e-9);
}

/* ---- the tick ---- */

static void begin_slot(struct sim *s, struct stage *st)
{
	st->law.slot_ns = s->now_ns;
	for (int k = 0; k < s->conf->n_classes; k++)
		st->law.then[k] = (struct slot_then){
		    .wanted = st->books[k].wanted, .handled = st->books[k].handled};
}

static void end_slot(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];
	double all_ns = begun_ns(s, st);

	for (int k = 0; k < s->conf->n_classes && laws_asked(s, SIM_LAW_SHARE); k++)
		if (s->conf->guarantee[k] > 0 && s->set.anonymous[k])
			check_share(s, stage, k, all_ns);
	follow_load(s, st);
	begin_slot(s, st);
}

void laws_load_tick(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];
	struct stage_laws *l = &st->law;

	if (!laws_asked(s, SIM_LAW_SHARE) && !laws_asked(s, SIM_LAW_NORMAL))
		return;
	/* No promise holds while costs are outdated or ticks are lost. */
	if (!in_order(st) || s->lost_ticks || s->now_ns < s->conf->warmup_ns ||
	    s->now_ns < l->excused_ns || l->slot_ns == 0) {
		begin_slot(s, st);
		arm(s, st);
		return;
	}
	if (st->conf->admission->explain && laws_asked(s, SIM_LAW_NORMAL))
		check_normal(s, stage);
	if (s->now_ns - l->slot_ns >= SLOT_NS)
		end_slot(s, stage);
}
