/* SPDX-License-Identifier: MIT */
/* Splits the time of threads; see time_split.h. */
#include "graph/time_split.h"

#include <string.h>

/* Longest time that samples of an inline stage may wait for the busy time that they are part of. */
#define PENDING_NS 2e9

static const enum weir_thread_time time_of[SLEEP_REASONS] = {
    [SLEEP_IO] = WEIR_TIME_IO,
    [SLEEP_LOCK] = WEIR_TIME_LOCK,
    [SLEEP_MEMORY] = WEIR_TIME_MEMORY,
    [SLEEP_TIMED] = WEIR_TIME_SLEEP,
    [SLEEP_OTHER] = WEIR_TIME_BLOCKED,
};

static double above_0(double x)
{
	return x > 0 ? x : 0;
}

static double least(double a, double b)
{
	return a < b ? a : b;
}

void time_split_age(struct time_stage *stage, int n)
{
	for (int i = 0; i < n; i++)
		for (int r = 0; r < SLEEP_REASONS; r++)
			stage[i].seen[r] *= SEEN_KEPT;
}

/* Sums over the stages of a pool. */
struct sums {
	double busy_ns, behind_ns, seen;
};

static double seen_of(const struct time_stage *s)
{
	double n = 0;

	for (int r = 0; r < SLEEP_REASONS; r++)
		n += s->seen[r];
	return n;
}

static struct sums sums_of(const struct time_stage *stage, int n)
{
	struct sums sum = {0};

	for (int i = 0; i < n; i++) {
		sum.busy_ns += stage[i].busy_ns;
		sum.behind_ns += stage[i].behind_ns;
		sum.seen += seen_of(&stage[i]);
	}
	return sum;
}

/* The share of stage `s` by the time in its handler; equal shares if no handler ran. */
static double share_of(const struct time_stage *s, const struct sums *sum, int n)
{
	return sum->busy_ns > 0 ? s->busy_ns / sum->busy_ns : 1.0 / n;
}

/* Distribute `blocked_ns`, the time in which handlers of the pool itself slept, by the samples, and
 * without any by the time in handlers. */
static void block(struct time_stage *stage, int n, const struct sums *sum, double blocked_ns)
{
	for (int i = 0; i < n; i++) {
		struct time_stage *s = &stage[i];
		double seen = seen_of(s);
		double part = sum->seen > 0 ? seen / sum->seen : share_of(s, sum, n);
		double own_ns = blocked_ns * part;
		for (int r = 0; seen > 0 && r < SLEEP_REASONS; r++)
			s->out[time_of[r]] = own_ns * s->seen[r] / seen;
		if (seen == 0)
			s->out[WEIR_TIME_BLOCKED] = own_ns;
		s->own_ns = own_ns;
	}
}

/* Return the time in which handlers slept; see time_split.h. What is not explained, or explained twice,
 * goes to *carry_ns. */
static double take_blocked(
    const struct time_round *round, const struct sums *sum, double cpu_ns, double *carry_ns)
{
	double in_calls_ns = sum->busy_ns + sum->behind_ns;
	double open_ns = in_calls_ns - cpu_ns - round->runq_ns + *carry_ns;
	double share = round->in_calls > 0 ? (sum->seen + round->seen_behind) / round->in_calls : 0;
	double blocked_ns = above_0(least(open_ns, share * (in_calls_ns + above_0(*carry_ns))));

	if (open_ns - blocked_ns > CARRY_NS)
		blocked_ns = open_ns - CARRY_NS;
	*carry_ns = open_ns - blocked_ns;
	if (*carry_ns < -OWED_NS)
		*carry_ns = -OWED_NS;
	return blocked_ns;
}

void time_split(const struct time_round *round, struct time_stage *stage, int n, double *carry_ns)
{
	struct sums sum = sums_of(stage, n);
	double cpu_ns = above_0(round->cpu_ns - round->spun_ns);
	double seen = sum.seen + round->seen_behind, carried_ns = above_0(*carry_ns);
	double blocked_ns = take_blocked(round, &sum, cpu_ns, carry_ns);

	double behind_ns =
	    least(seen > 0 ? blocked_ns * round->seen_behind / seen : 0, sum.behind_ns);
	for (int i = 0; i < n; i++)
		memset(stage[i].out, 0, sizeof(stage[i].out));
	double own_ns = blocked_ns - behind_ns;
	block(stage, n, &sum, own_ns);
	double run_ns = above_0(cpu_ns - (sum.behind_ns - behind_ns));
	double idle_ns = above_0(round->wall_ns - run_ns - round->runq_ns - own_ns - sum.behind_ns -
				 above_0(*carry_ns) + carried_ns);
	double awake_ns = 0;
	for (int i = 0; i < n; i++)
		awake_ns += above_0(stage[i].busy_ns - stage[i].own_ns);
	for (int i = 0; i < n; i++) {
		struct time_stage *s = &stage[i];
		double part = share_of(s, &sum, n);
		s->out[WEIR_TIME_RUNNING] =
		    run_ns * (awake_ns > 0 ? above_0(s->busy_ns - s->own_ns) / awake_ns : part);
		s->out[WEIR_TIME_RUNNABLE] = round->runq_ns * part;
		s->out[WEIR_TIME_DOWNSTREAM] = s->behind_ns;
		s->out[WEIR_TIME_IDLE] = idle_ns / n;
	}
}

void time_split_inline(struct time_stage *s, double sample_ns, double *pending_ns)
{
	double left_ns = s->busy_ns;

	memset(s->out, 0, sizeof(s->out));
	for (int r = 0; r < SLEEP_REASONS; r++) {
		pending_ns[r] += s->seen[r] * sample_ns;
		double slept_ns = least(pending_ns[r], left_ns);
		s->out[time_of[r]] = slept_ns;
		left_ns -= slept_ns;
		pending_ns[r] = least(pending_ns[r] - slept_ns, PENDING_NS);
	}
	s->out[WEIR_TIME_RUNNING] = left_ns;
}
