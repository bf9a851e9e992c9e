/* SPDX-License-Identifier: MIT */
/*
 * Checks the number of threads over time, for pools whose resize policy claims these laws.
 *
 * I12 and the limit on reversals in I11 hold once the setting (rates, services, faults:
 * laws_setting.c) has been unchanged for SETTLED_NS. The rest of I11 holds at any time.
 *
 * I11 steady: a pool's target changes direction at most once in 60 s, and a pool whose threads wait
 * for cores does not grow.
 *   Check: two reversals of the target are at least 60 s apart. A pool does not grow, except by the
 *     rule for stalls, if in the last half a second to a second its threads waited for cores longer
 *     than RUNQ times their CPU time, and blocked for less than BLOCKED times their CPU time. The
 *     policy's own limits are 0.5 and 0.2, for smoothed values. The values here are measured
 *     independently, so RUNQ is twice and BLOCKED half of the policy's limit.
 *
 * I12 converges: a pool reaches the right size from any initial number of threads. Policies that
 * never change the number, or always use the minimum or the maximum, must fail.
 *   Check: at each tick 0.95 L* <= target <= 2 min(L*, cap) + 1, with both limits rounded in favour
 *     of the policy and within the pool's bounds. L* = rate x service is the mean number of busy
 *     threads, and cap the number above which cores are the limit. If the load needs nearly all
 *     cores, the lower limit is 1. The factor 2 covers noise and the margins of the policy: the
 *     policy plans for threads that are busy 0.8 of the time, and releases threads only when a
 *     quarter is not needed, together 1 / (0.8 * 0.75) = 1.7.
 *   Not checked: pools that share a budget, and graphs in which another stage cannot pass the load
 *     on.
 */
#include "group.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"

/* Time after a change until a pool must have settled. The policy plans for the greatest demand of
 * the last 15 s. It then releases a tenth of the excess every 250 ms: from 200 to 25 threads in 5
 * s. */
#define SETTLED_NS  (30 * NS_PER_S)
#define REVERSAL_NS (60 * NS_PER_S)
#define WINDOW_NS   (500 * NS_PER_MS)
#define RUNQ        1.0
#define BLOCKED     0.1
#define MOST        2.0
#define PASSES      0.95
#define CAP_MARGIN  1.25 /* the same as in resize_weir.c */

static bool is_settled(const struct sim *s)
{
	return s->set.open && s->now_ns - s->set.changed_ns >= SETTLED_NS && s->now_ns < s->end_ns;
}

/* ---- I11 ---- */

static int64_t cpu_ns(const struct sim *s, const struct stage *st)
{
	return (st->cpu_time + st->computing * s->cpu_time - st->cpu_started_sum) / CPU_UNIT;
}

static int64_t computing_ns(const struct sim *s, const struct stage *st)
{
	return st->computing_ns + st->computing * s->now_ns - st->computing_sum_ns;
}

static int64_t busy_ns(const struct sim *s, const struct stage *st)
{
	return st->busy_ns + st->busy * s->now_ns - st->started_sum_ns;
}

static void follow_window(struct sim *s, struct stage *st)
{
	struct stage_laws *l = &st->law;

	if (s->now_ns - l->window_ns < WINDOW_NS)
		return;
	l->window_ns = s->now_ns;
	l->cpu_then[1] = l->cpu_then[0];
	l->computing_then[1] = l->computing_then[0];
	l->busy_then[1] = l->busy_then[0];
	l->cpu_then[0] = cpu_ns(s, st);
	l->computing_then[0] = computing_ns(s, st);
	l->busy_then[0] = busy_ns(s, st);
}

static void check_growth(struct sim *s, int stage, int to, const char *rule)
{
	struct stage *st = &s->stage[stage];
	const struct stage_laws *l = &st->law;
	double cpu = (double)(cpu_ns(s, st) - l->cpu_then[1]);
	double computing = (double)(computing_ns(s, st) - l->computing_then[1]);
	double busy = (double)(busy_ns(s, st) - l->busy_then[1]);
	double runq = computing - cpu;

	if (s->now_ns < 2 * WINDOW_NS || cpu <= 0 || strncmp(rule, "stalled", 7) == 0)
		return;
	laws_saw(s, SIM_LAW_STEADY, busy - computing < BLOCKED * cpu ? runq / (RUNQ * cpu) : 0);
	if (busy - computing < BLOCKED * cpu && runq > RUNQ * cpu)
		laws_break(s, SIM_LAW_STEADY, stage,
		    "from %d to %d threads, which wait for cores %.2f times as long as "
		    "they compute: %s",
		    st->target, to, runq / cpu, rule);
}

static void check_turn(struct sim *s, int stage, int to)
{
	struct stage *st = &s->stage[stage];
	struct stage_laws *l = &st->law;
	int direction = to > st->target ? 1 : -1;

	if (st->direction == 0 || direction == st->direction || !is_settled(s))
		return;
	if (l->turned_ns) {
		double since_ns = (double)(s->now_ns - l->turned_ns);
		laws_saw(s, SIM_LAW_STEADY, (double)REVERSAL_NS / since_ns);
		if (since_ns < (double)REVERSAL_NS)
			laws_break(s, SIM_LAW_STEADY, stage,
			    "from %d to %d threads, only %.1f s after the last reversal",
			    st->target, to, since_ns * 1e-9);
	}
	l->turned_ns = s->now_ns;
}

void laws_resized(struct sim *s, int stage, int to, const char *rule)
{
	const struct stage *st = &s->stage[stage];

	if (to < st->target) /* the waiting events were admitted when there were more threads */
		s->stage[stage].law.excused_ns =
		    s->now_ns > st->law.excused_ns ? s->now_ns : st->law.excused_ns;
	if (!laws_asked(s, SIM_LAW_STEADY) || to == st->target)
		return;
	check_turn(s, stage, to);
	laws_saw(s, SIM_LAW_STEADY, 0);
	if (to > st->target)
		check_growth(s, stage, to, rule);
}

/* ---- I12 ---- */

/* Whether the other stages pass on all of the offered load. */
static bool others_pass(const struct sim *s, int stage)
{
	for (int i = 0; i < s->conf->n_stages; i++)
		if (i != stage && s->set.demand[i] > PASSES * s->conf->stage[i].threads_max)
			return false;
	return s->conf->n_stages == 1 || s->set.cpu <= PASSES * s->conf->cores;
}

static void check_number(struct sim *s, int stage)
{
	const struct stage *st = &s->stage[stage];
	double need = s->set.demand[stage], share = st->conf->cpu_share;
	double cap = share > 0 ? s->conf->cores / share * CAP_MARGIN + 1 : need;
	int most = (int)(ceil(MOST * fmin(need, cap))) + 1;
	int least = s->set.cpu > PASSES * s->conf->cores ? 1 : (int)(PASSES * need);

	if (most < st->conf->threads_min)
		most = st->conf->threads_min;
	if (least > st->conf->threads_max)
		least = st->conf->threads_max;
	laws_saw(s, SIM_LAW_CONVERGES, fmax((double)st->target / most, (double)least / st->target));
	if (st->target < least || st->target > most)
		laws_break(s, SIM_LAW_CONVERGES, stage,
		    "the pool has %d threads; the load needs %.1f, so %d to %d are allowed",
		    st->target, need, least, most);
}

void laws_pool_tick(struct sim *s, int stage)
{
	struct stage *st = &s->stage[stage];
	bool sized = st->group && st->group->conf->resize;

	if ((st->conf->resize || sized) && laws_asked(s, SIM_LAW_STEADY))
		follow_window(s, st);
	if (!st->conf->resize)
		return;
	if (laws_asked(s, SIM_LAW_CONVERGES) && is_settled(s) && !s->conf->thread_budget &&
	    others_pass(s, stage))
		check_number(s, stage);
}
