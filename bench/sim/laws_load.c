/* SPDX-License-Identifier: MIT */
/*
 * What classes get, and how overload ends: sums over slots of 100 ms (the interval of the policy), looked
 * at by the tick.
 *
 *   I6 guarantees    Each class with demand gets 0.9 of its guarantee g over 1 s. Read: in every stretch of a
 *                    run, of the work that the stage's handlers begin the class gets 0.9 of the smaller of
 *                    what it wants, slot by slot, and its g, less a slack. The share is of what the stage
 *                    does, so handlers that die or hang are nobody's debt, and what it wants is what no
 *                    other stage refuses. The slack: what is owed while the events that were let in wait, and
 *                    until a new load is known (the objective and 200 ms, at g); and SHARE_EVENTS,
 *                    since with 16 events a second, which 2 % are of 4 threads and 5 ms, "over 1 s" is a
 *                    matter of chance alone: of a sum with a drift of -0.1 and the variance of a Poisson
 *                    process more than x events is exp(-0.2 x) likely, 1e-13 of 150.
 *                    Not said of classes of few users (each is served for its turn of 10 s), nor of queues
 *                    by priority.
 *   I10 normal again NORMAL at most 2 intervals and the drain after the load fell below 0.8. Read: from the
 *                    first of some slots in each of which the stage is offered less than 0.8 of what its
 *                    threads can do, (a) within twice d / (1 - 0.8), one interval and 100 services / n a thread is idle or
 *                    hardly anything waits, d being the predicted wait at the start; and (b) the policy
 *                    says NORMAL within two intervals and two ticks of that. Armed anew by each slot
 *                    with more. Twice, since the drain itself is a queue: services come as they may.
 *                    Only of policies that say in which state they are.
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
		    "class %d is owed %.1f ms of work of its %.1f %%, at most %.1f", k,
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

	st->conf->admission->explain(st->state, &st->conf->params, line, sizeof(line));
	return strncmp(line, "OVER", 4) == 0;
}

/* From here on the load may be small: then the queue is to be short so soon. */
static void arm(struct sim *s, struct stage *st)
{
	struct stage_laws *l = &st->law;

	l->calm_ns = l->low_ns = 0;
	l->normal = false;
	l->drain_ns = s->now_ns + SLOT_NS + (int64_t)(2 * wait_ns(s, st) / (1 - CALM_LOAD)) +
		      DRAIN_SERVICES * st->mean_cost_ns / (st->target > 0 ? st->target : 1);
}

/* The slot that ends was calm, or was not. */
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
		    l->low_ns ? "little is offered for %.2f s, and it is still OVER"
			      : "little is offered for %.2f s, and the queue still stands",
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
	/* Nothing is promised while nothing is known: costs, or what happened in lost ticks. */
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
