/* SPDX-License-Identifier: MIT */
#include "unit/control/pool_sim.h"

/* xorshift64* (Vigna 2016) */
static double sim_random(struct sim *s)
{
	s->seed ^= s->seed >> 12;
	s->seed ^= s->seed << 25;
	s->seed ^= s->seed >> 27;
	return ((double)((s->seed * 2685821657736338717ULL) >> 11) + 1) / 9007199254740993.0;
}

static void sim_view(void *ctx, int i, struct resize_view *v)
{
	struct sim *s = ctx;

	(void)i;
	*v = s->v;
	v->runq_known = !s->runq_hidden;
	if (s->runq_hidden)
		v->runq_ns_total = 0;
}

static int sim_resize(void *ctx, int i, int target)
{
	struct sim *s = ctx;
	int move = target > s->v.target ? 1 : -1;

	(void)i;
	s->reversals += s->last_move && move != s->last_move;
	s->last_move = move;
	s->v.budget_left -= target - s->v.target;
	s->v.target = target;
	s->most = target > s->most ? target : s->most;
	s->least = target < s->least ? target : s->least;
	return target;
}

static struct control_repairs sim_repair(void *ctx, int i, int64_t now_ns)
{
	(void)ctx, (void)i, (void)now_ns;
	return (struct control_repairs){0};
}

struct sim *sim_new(const struct resize_policy *policy, int start, int max)
{
	static const struct control_ops ops = {
	    .view = sim_view, .resize = sim_resize, .repair = sim_repair};
	struct control_pool pool = {"p", policy};
	struct sim *s = calloc(1, sizeof(*s));

	CU_ASSERT_PTR_NOT_NULL_FATAL(s);
	s->seed = 88172645463325252ULL;
	s->v = (struct resize_view){.target = start,
	    .min = 1,
	    .max = max,
	    .useful = SIM_THREADS_MAX,
	    .budget_left = 512 - start,
	    .cores = 2,
	    .queue_limit = 4096};
	s->least = s->most = start;
	CU_ASSERT_EQUAL_FATAL(control_new(&ops, s, &pool, 1, &s->control), 0);
	return s;
}

void sim_free(struct sim *s)
{
	control_free(s->control);
	free(s);
}

/* ---- one millisecond ---- */

static void sim_offer(struct sim *s)
{
	s->v.offered_total++;
	if (s->v.queue_length < s->v.queue_limit)
		s->v.queue_length++;
}

static void sim_arrive(struct sim *s)
{
	if (s->closed_loop) {
		while (s->v.queue_length + s->v.running < s->arrivals_per_s)
			sim_offer(s);
		return;
	}
	if (s->next_ns < (double)s->now_ns - NS_PER_S) /* there was no load */
		s->next_ns = (double)s->now_ns;
	while (s->arrivals_per_s > 0 && s->next_ns <= (double)s->now_ns) {
		sim_offer(s);
		s->next_ns += -log(sim_random(s)) / s->arrivals_per_s * NS_PER_S;
	}
}

/* Threads start when they are wanted; surplus ones leave after their event. */
static void sim_staff(struct sim *s)
{
	int n = s->n_threads > s->v.target ? s->n_threads : s->v.target;

	s->v.live = s->n_threads = 0;
	for (int i = 0; i < n; i++) {
		struct sim_thread *t = &s->thread[i];
		t->live = i < s->v.target || t->busy;
		s->v.live += t->live;
		if (t->live)
			s->n_threads = i + 1;
		if (t->busy || i >= s->v.target || s->v.queue_length == 0)
			continue;
		s->v.queue_length--;
		s->v.running++;
		*t = (struct sim_thread){true, true, s->cpu_ns, s->block_ns};
	}
}

static void sim_work(struct sim *s)
{
	int on = 0, off = 0;

	for (int i = 0; i < s->n_threads; i++) {
		on += s->thread[i].busy && s->thread[i].cpu_ns > 0;
		off += s->thread[i].busy && s->thread[i].cpu_ns <= 0;
	}
	double core = on > s->v.cores ? (double)s->v.cores / on : 1;
	double slot = s->slots && off > s->slots ? (double)s->slots / off : 1;
	s->v.busy = 0;
	for (int i = 0; i < s->n_threads; i++) {
		struct sim_thread *t = &s->thread[i];
		if (!t->busy)
			continue;
		double left = SIM_STEP_NS, ran = 0;
		if (t->cpu_ns > 0 && !s->jammed) {
			ran = fmin(t->cpu_ns, core * SIM_STEP_NS);
			t->cpu_ns -= ran;
			left = t->cpu_ns > 0 ? 0 : SIM_STEP_NS - ran / core;
			s->v.cpu_ns_total += (uint64_t)ran;
			s->v.runq_ns_total += (uint64_t)(SIM_STEP_NS - left - ran);
		}
		s->v.busy_ns_total += SIM_STEP_NS;
		if (!s->jammed)
			t->block_ns -= left * slot;
		/* Blocking ends at the nearest step, so the error is at most half a step. */
		t->busy = t->cpu_ns > 0 || t->block_ns > SIM_STEP_NS / 2;
		s->v.busy += t->busy;
		s->v.items += !t->busy;
		s->v.completed_total += !t->busy;
		s->v.running -= !t->busy;
	}
}

static void sim_note(struct sim *s)
{
	if (s->now_ns % NS_PER_S != 0 || s->n_trace == SIM_TRACE_MAX)
		return;
	s->trace[s->n_trace++] = (struct sim_trace){
	    (int)(s->now_ns / NS_PER_S), s->v.target, s->v.queue_length, s->v.items};
}

void sim_run(struct sim *s, double seconds)
{
	int64_t end_ns = s->now_ns + (int64_t)(seconds * NS_PER_S);
	uint64_t cpu_then = s->v.cpu_ns_total;

	while (s->now_ns < end_ns) {
		s->now_ns += SIM_STEP_NS;
		sim_arrive(s);
		sim_staff(s);
		sim_work(s);
		if (s->now_ns % CONTROL_TICK_NS == 0) {
			control_step(s->control, s->now_ns,
			    (double)(s->v.cpu_ns_total - cpu_then) / CONTROL_TICK_NS / s->v.cores);
			cpu_then = s->v.cpu_ns_total;
		}
		sim_note(s);
	}
}

double sim_rate(struct sim *s, double seconds)
{
	uint64_t then = s->v.items;

	sim_run(s, seconds);
	return (double)(s->v.items - then) / seconds;
}

void sim_forget_moves(struct sim *s)
{
	s->reversals = s->last_move = 0;
	s->least = s->most = s->v.target;
}

struct weir_decision sim_decision(const struct sim *s)
{
	struct weir_decision d = {0};

	journal_read(control_journal(s->control), &d, 1);
	return d;
}

bool sim_expect(const struct sim *s, bool truth, const char *what)
{
	CU_ASSERT_TRUE(truth);
	if (truth)
		return true;
	printf("\n# %s is false\n# second threads queue done\n", what);
	for (int i = 0; i < s->n_trace; i++)
		printf("%d %d %u %llu\n", s->trace[i].second, s->trace[i].threads,
		    s->trace[i].queue, (unsigned long long)s->trace[i].done);
	struct weir_decision d[40];
	int n = journal_read(control_journal(s->control), d, 40);
	for (int i = n; i-- > 0;)
		printf("# %s %d->%d %s [%s]\n", d[i].action, d[i].from, d[i].to, d[i].rule,
		    d[i].limit);
	return false;
}
