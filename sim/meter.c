/* SPDX-License-Identifier: MIT */
/*
 * Simulates the ticks of the control thread: every 10 ms it samples for admission policies (rules
 * and constants as in framework/graph/meter.c), and every 100 ms resize policies decide.
 */
#include "world.h"

#include <math.h>
#include <string.h>

#include "admission/fair.h"
#include "base/clock.h"
#include "group.h"

#define COST_WEIGHT   0.02 /* as in framework/graph/meter.c */
#define RUNNING_SHARE 0.5  /* as in framework/graph/meter.c */
#define LATE          2
#define COST_AGE      0.001
#define LOOK_NS       (100 * NS_PER_MS)
#define HIST_NS       NS_PER_S
#define HIST_EVENTS   100
#define CONTROL_NS    (100 * NS_PER_MS) /* CONTROL_TICK_NS of framework/control */

/* ---- costs ---- */

/* Update the moving mean *cost_ns with `n` values. Up to 1 / COST_WEIGHT values have equal weight;
 * with the constant weight, the first value would dominate the mean of the next fifty. */
static void follow(double *cost_ns, double *known, uint64_t n, uint64_t took_ns)
{
	if (n == 0)
		return;
	double mean_ns = (double)took_ns / (double)n;
	double weight = 1 - pow(1 - COST_WEIGHT, (double)n);
	double even = (double)n / (*known + (double)n);
	*known = fmin(*known + (double)n, 1 / COST_WEIGHT);
	*cost_ns += fmax(weight, even) * (mean_ns - *cost_ns);
}

static uint64_t ended(const struct books *b)
{
	return b->completed + b->failed;
}

/* Return an estimate of the service time from the events in handlers, or 0 if there is no reason to
 * use it. There is a reason if most of these events have already taken longer than nearly all
 * earlier events. The estimate is a fraction of the mean time that the events in handlers have
 * taken so far. */
static double so_far(const struct sim *s, const struct stage *st)
{
	double late_ns = LATE * fmax((double)st->meter.service_p99_ns, st->meter.mean_cost_ns);
	double sum_ns = 0;
	int n_long = 0;

	for (uint32_t i = st->first; i < st->first + (uint32_t)st->conf->threads_max; i++) {
		const struct worker *w = &s->worker[i];
		if (w->n == 0 || &s->stage[w->stage] != st)
			continue;
		double each_ns = (double)(s->now_ns - w->started_ns) / w->n;
		sum_ns += each_ns;
		n_long += each_ns > late_ns;
	}
	return 2 * n_long > st->busy ? RUNNING_SHARE * sum_ns / st->busy : 0;
}

/* Like so_far, for a stage with a width. As in framework/graph/meter.c, it is not known when each
 * event in work began. Events that were in work when the last one ended have been in work at least
 * since then. */
static double held_so_far(const struct sim *s, struct stage *st, uint64_t ended)
{
	struct meter *m = &st->meter;
	double late_ns = LATE * fmax((double)m->service_p99_ns, m->mean_cost_ns);

	if (ended > 0 || m->in_work == 0 || st->busy == 0) {
		m->ended_ns = s->now_ns;
		m->in_work = st->busy;
		return 0;
	}
	double each_ns = (double)(s->now_ns - m->ended_ns);
	return 2 * m->in_work > st->busy && each_ns > late_ns ? RUNNING_SHARE * each_ns : 0;
}

static void learn_costs(const struct sim *s, struct stage *st)
{
	struct meter *m = &st->meter;
	uint64_t n = 0, took_ns = 0;

	for (int c = 0; c < s->conf->n_classes; c++) {
		uint64_t done = ended(&st->books[c]) - m->then[c].completed;
		uint64_t ns = st->books[c].service_ns - m->then[c].service_ns;
		m->cost_ns[c] += COST_AGE * (m->mean_cost_ns - m->cost_ns[c]) * (m->cost_ns[c] > 0);
		follow(&m->cost_ns[c], &m->known[c], done, ns);
		n += done;
		took_ns += ns;
	}
	follow(&m->mean_cost_ns, &m->all_known, n, took_ns);
	double so_far_ns = st->conf->width ? held_so_far(s, st, n) : so_far(s, st);
	if (m->mean_cost_ns <= 0)
		so_far_ns = 0;
	st->mean_cost_ns = (int64_t)fmax(m->mean_cost_ns, so_far_ns);
	for (int c = 0; c < s->conf->n_classes; c++) {
		double cost_ns = m->cost_ns[c] > 0 ? m->cost_ns[c] : m->mean_cost_ns;
		st->cost_ns[c] = (int64_t)fmax(cost_ns, so_far_ns);
	}
}

/* ---- quantiles ---- */

static int64_t p90_since(struct weir_hist *now, const struct weir_hist *then, struct weir_hist *all)
{
	for (int i = 0; i < WEIR_HIST_BUCKETS; i++) {
		now->count[i] -= then->count[i];
		all->count[i] += now->count[i];
	}
	return weir_hist_total(now) ? weir_hist_quantile_ns(now, 0.9) : -1;
}

static void learn_quantiles(const struct sim *s, struct stage *st)
{
	struct meter *m = &st->meter;
	struct weir_hist all = {0}, service = {0}, service_now = {0};

	m->looked_at_ns = s->now_ns;
	for (int c = 0; c < s->conf->n_classes; c++) {
		struct weir_hist now = st->books[c].wait;
		int64_t p90_ns = p90_since(&now, &m->wait_then[c], &all);
		weir_hist_add(&service_now, &st->books[c].service);
		m->response_p90_ns[c] = p90_ns < 0 ? 0 : p90_ns + (int64_t)m->cost_ns[c];
	}
	for (int i = 0; i < WEIR_HIST_BUCKETS; i++)
		service.count[i] = service_now.count[i] - m->service_then.count[i];
	m->service_p99_ns = weir_hist_total(&service) ? weir_hist_quantile_ns(&service, 0.99) : 0;
	uint64_t total = weir_hist_total(&all);
	m->wait_p90_ns = total ? weir_hist_quantile_ns(&all, 0.9) : 0;
	m->all_response_p90_ns = total ? m->wait_p90_ns + (int64_t)m->mean_cost_ns : 0;
	if (s->now_ns - m->hist_at_ns < HIST_NS ||
	    (total < HIST_EVENTS && s->now_ns - m->hist_at_ns < 2 * HIST_NS))
		return;
	for (int c = 0; c < s->conf->n_classes; c++)
		m->wait_then[c] = st->books[c].wait;
	m->service_then = service_now;
	m->hist_at_ns = s->now_ns;
}

/* ---- the sample ---- */

static void fill_classes(const struct sim *s, struct stage *st, struct admission_sample *out)
{
	struct meter *m = &st->meter;
	uint64_t wait_ns = 0;

	for (int c = 0; c < s->conf->n_classes; c++) {
		const struct books *b = &st->books[c];
		struct looked *then = &m->then[c];
		out->class[c].offered = b->asked - then->asked;
		out->class[c].wanted = b->wanted - then->wanted;
		out->class[c].priority = s->conf->priority[c];
		out->class[c].guarantee = s->conf->guarantee[c];
		out->class[c].refused = b->policy_refused - then->refused;
		out->class[c].completed = ended(b) - then->completed;
		out->class[c].cost_ns = st->cost_ns[c];
		out->class[c].response_p90_ns = m->response_p90_ns[c];
		out->completed += out->class[c].completed;
		wait_ns += b->wait_ns - then->wait_ns;
		*then = (struct looked){.asked = b->asked,
		    .wanted = b->wanted,
		    .refused = b->policy_refused,
		    .completed = ended(b),
		    .service_ns = b->service_ns,
		    .wait_ns = b->wait_ns};
	}
	if (out->completed == 0)
		return;
	out->wait_mean_ns = (int64_t)(wait_ns / out->completed);
	out->response_mean_ns = out->wait_mean_ns + (int64_t)m->mean_cost_ns;
}

/* Advance the demand by user, and replace the table of users if it is too small, as in
 * framework/stage/sink.c. */
static void tick_users(struct sim *s, struct stage *st)
{
	uint32_t slots = fair_wants(st->fair, s->now_ns);
	struct fair_table *table = slots ? fair_table_new(slots) : NULL;

	fair_tick(st->fair, s->now_ns);
	if (table)
		fair_renew(st->fair, table, s->now_ns);
	else if (slots)
		s->rc = WEIR_ENOMEM;
	fair_table_free(fair_left(st->fair));
}

static bool has_idle(const struct stage *st)
{
	return st->idle != NONE || (st->group && st->group->n_idle > 0);
}

static void tick_stage(struct sim *s, struct stage *st)
{
	struct meter *m = &st->meter;
	struct admission_sample out = {.now_ns = s->now_ns,
	    .span_ns = s->now_ns - m->at_ns,
	    .n_classes = s->conf->n_classes,
	    .threads = st->target > 0 ? st->target : 1,
	    .idle = m->idle || has_idle(st),
	    .length = st->length,
	    .limit = st->own,
	    .slo_ns = st->conf->slo_ns};

	m->idle = has_idle(st);
	learn_costs(s, st);
	if (s->now_ns - m->looked_at_ns >= LOOK_NS)
		learn_quantiles(s, st);
	out.cost_ns = st->mean_cost_ns;
	out.work_ns = group_work_ns(s, st, queue_work_ns(s, st));
	st->wait_ns = st->conf->admission->tick ? out.work_ns / (int64_t)out.threads : 0;
	out.wait_p90_ns = m->wait_p90_ns;
	out.service_p99_ns = m->service_p99_ns;
	out.response_p90_ns = m->all_response_p90_ns;
	laws_sampled(s, (int)(st - s->stage));
	fill_classes(s, st, &out);
	m->at_ns = s->now_ns;
	if (st->conf->admission->tick && st->conf->params.mode != WEIR_ADMISSION_OFF)
		st->conf->admission->tick(st->state, &st->conf->params, &out);
	if (st->fair)
		tick_users(s, st);
	if (st->conf->admission->least_left)
		st->least_left_ns = st->conf->admission->least_left(st->state);
	if (st->conf->admission->most_wait)
		st->most_wait_ns = st->conf->admission->most_wait(st->state);
}

/* ---- threads ---- */

/* Return the number of threads that may still be added to all pools together. */
static int left_of_budget(const struct sim *s)
{
	int left = s->conf->thread_budget, max = 0;

	for (int i = 0; i < s->conf->n_stages; i++) {
		if (s->stage[i].conf->width || s->stage[i].group)
			continue;
		left -= s->stage[i].target;
		max += s->stage[i].conf->threads_max;
	}
	return s->conf->thread_budget ? left : max + left;
}

void meter_add_view(const struct sim *s, const struct stage *st, struct resize_view *v)
{
	int64_t computed = st->cpu_time + st->computing * s->cpu_time - st->cpu_started_sum;
	int64_t computing_ns = st->computing_ns + st->computing * s->now_ns - st->computing_sum_ns;

	v->busy += st->busy;
	v->queue_length += st->length;
	v->queue_limit += st->conf->queue_limit;
	v->busy_ns_total += (uint64_t)(st->busy_ns + st->busy * s->now_ns - st->started_sum_ns);
	v->cpu_ns_total += (uint64_t)(computed / CPU_UNIT);
	v->runq_ns_total += (uint64_t)(computing_ns - computed / CPU_UNIT);
	v->running += st->running;
	v->offered_total += st->turned_ahead;
	for (int c = 0; c < s->conf->n_classes; c++) {
		v->offered_total += st->books[c].offered;
		v->completed_total += st->books[c].completed;
		v->items += ended(&st->books[c]);
	}
}

static void widen_stage(struct sim *s, int i)
{
	struct stage *st = &s->stage[i];
	struct width_view v = {.width = st->target,
	    .min = st->conf->threads_min,
	    .max = st->conf->threads_max,
	    .in_work = st->busy,
	    .queue_length = st->length};
	struct width_decision d = {0};

	for (int c = 0; c < s->conf->n_classes; c++) {
		v.ended += ended(&st->books[c]);
		v.service_ns += st->books[c].service_ns;
	}
	if (!st->conf->width->decide(st->width_state, &v, s->now_ns, &d))
		return;
	int to = d.width < v.min ? v.min : d.width > v.max ? v.max : d.width;
	if (to < v.width) /* the waiting events were admitted when more were allowed */
		st->law.excused_ns =
		    s->now_ns > st->law.excused_ns ? s->now_ns : st->law.excused_ns;
	workers_resize(s, i, to);
}

static void resize_stage(struct sim *s, int i, double cpu)
{
	struct stage *st = &s->stage[i];
	struct resize_view v;
	struct resize_decision d = {0};

	workers_mend(s, i);
	if (st->conf->width)
		widen_stage(s, i);
	if (!st->conf->resize)
		return;
	v = (struct resize_view){.live = st->live,
	    .target = st->target,
	    .min = st->conf->threads_min,
	    .max = st->conf->threads_max,
	    .runq_known = true,
	    .useful = st->conf->threads_max,
	    .budget_left = left_of_budget(s),
	    .cores = s->conf->cores,
	    .cpu_ratio = cpu};
	meter_add_view(s, st, &v);
	if (!st->conf->resize->decide(st->resize_state, &v, s->now_ns, &d))
		return;
	int to = d.target > v.max ? v.max : d.target < v.min ? v.min : d.target;
	if (to - v.target > v.budget_left)
		to = v.target + (v.budget_left > 0 ? v.budget_left : 0);
	laws_resized(s, i, to, d.rule);
	workers_resize(s, i, to);
}

static void control(struct sim *s)
{
	int64_t span_ns = s->now_ns - s->control_at_ns;
	double cpu =
	    (double)(s->cpu_used_ns - s->cpu_used_then_ns) / ((double)span_ns * s->conf->cores);

	s->control_at_ns = s->now_ns;
	s->cpu_used_then_ns = s->cpu_used_ns;
	for (int i = 0; i < s->conf->n_stages; i++)
		resize_stage(s, i, cpu);
	for (int i = 0; i < s->conf->n_groups; i++) {
		group_resize(s, &s->group[i], cpu);
		group_order(s, &s->group[i], span_ns);
	}
}

static void fill_bin(struct sim *s)
{
	struct sim_bin *bin = result_bin(s);

	for (int i = 0; bin && i < s->conf->n_stages; i++) {
		bin->threads[i] = s->stage[i].live;
		bin->queued[i] = (int32_t)s->stage[i].length;
	}
}

void meter_tick(struct sim *s)
{
	fill_bin(s);
	sim_at(s, s->now_ns + ADMISSION_TICK_NS, STEP_TICK, 0);
	if (s->lost_ticks) {
		laws_tick(s);
		return;
	}
	for (int i = 0; i < s->conf->n_stages; i++)
		tick_stage(s, &s->stage[i]);
	routes_tick(s);
	laws_routes(s);
	if (s->now_ns - s->control_at_ns >= CONTROL_NS)
		control(s);
	laws_tick(s);
}
