/* SPDX-License-Identifier: MIT */
/* The simulator of heavy tails; see tail.h. */
#include "tail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "event/bins.h"
#include "heap.h"
#include "load/rng.h"

#define ARRIVAL      UINT32_MAX /* in the heap; other entries are cores */
#define STEP_NS      10000      /* work of `parse` and `send` */
#define BATCH_MAX    64
#define BATCH_MAX_NS 1000000 /* COHORT_NS in stage/cohort.h */
#define SAMPLES      20000   /* draws for the mean work of a stage */

enum { STREAM_ARRIVALS, STREAM_WORK, STREAM_HINTS };
enum { PARSE, BRIEF, PART, SEND = PART + TAIL_PARTS, STAGES };

struct request {
	struct weir_event ev;
	int64_t work_ns; /* in all */
	int64_t left_ns; /* at its stage */
	uint64_t number;
	int stage;
};

struct tail_core {
	struct next_core next;
	struct weir_event *batch[BATCH_MAX];
	int n, stage;
	bool idle;
};

struct tail {
	const struct tail_config *c;
	struct tail_result *r;
	struct request *request;
	uint64_t arrived;
	struct bins *queue[STAGES];
	uint32_t length[STAGES];
	struct next_stage view[STAGES];
	struct next_order order;
	struct tail_core *core;
	struct heap heap;
	uint64_t key[3];
	double gap_ns; /* mean time between arrivals */
	int64_t now_ns;
	int rc;
};

/* ---- work ---- */

static int64_t draw_work_ns(const struct tail *g, uint64_t number)
{
	const struct tail_config *c = g->c;
	double u = weir_random_unit(weir_random_at(g->key[STREAM_WORK], number));
	double cut = pow((double)c->least_ns / (double)c->most_ns, c->alpha);

	return (int64_t)((double)c->least_ns * pow(1 - u * (1 - cut), -1 / c->alpha));
}

/* The stage after `stage`, or STAGES. */
static int next_stage(const struct tail *g, const struct request *q, int stage)
{
	if (!g->c->chain || stage == SEND)
		return STAGES;
	if (stage == PARSE)
		return q->work_ns <= g->c->short_ns ? BRIEF : PART;
	return stage == BRIEF ? SEND : stage + 1;
}

static int64_t work_at(const struct tail *g, const struct request *q, int stage)
{
	if (!g->c->chain)
		return q->work_ns;
	if (stage == PARSE || stage == SEND)
		return STEP_NS;
	return stage == BRIEF ? q->work_ns : q->work_ns / TAIL_PARTS;
}

/* Measure the stages with a sample of the work. */
static void measure(struct tail *g)
{
	double service[STAGES] = {0}, rest[STAGES] = {0}, visits[STAGES] = {0}, all = 0;

	for (uint64_t k = 0; k < SAMPLES; k++) {
		struct request q = {.work_ns = draw_work_ns(g, k)};
		double left = 0;
		for (int i = 0; i < STAGES; i = next_stage(g, &q, i))
			left += (double)work_at(g, &q, i);
		all += left / SAMPLES;
		for (int i = 0; i < STAGES; i = next_stage(g, &q, i)) {
			service[i] += (double)work_at(g, &q, i);
			rest[i] += left;
			visits[i]++;
			left -= (double)work_at(g, &q, i);
		}
	}
	for (int i = 0; i < STAGES && visits[0] > 0; i++) {
		g->view[i].service_ns = visits[i] > 0 ? (int64_t)(service[i] / visits[i]) : 0;
		g->view[i].rest_ns = visits[i] > 0 ? (int64_t)(rest[i] / visits[i]) : 0;
		g->view[i].load = g->c->load * service[i] / (all * SAMPLES);
	}
	g->gap_ns = all / g->c->load / g->c->cores;
}

/* ---- waiting ---- */

static void wake_one(struct tail *g)
{
	for (int i = 0; i < g->c->cores; i++)
		if (g->core[i].idle) {
			g->core[i].idle = false;
			heap_push(&g->heap, g->now_ns, (uint32_t)i, &g->rc);
			return;
		}
}

static uint8_t bin_at(const struct tail *g, const struct request *q)
{
	double u = weir_random_unit(weir_random_at(g->key[STREAM_HINTS], q->number));
	double factor = pow(1 + g->c->hint_error, 2 * u - 1);

	return g->c->shortest ? bin_of((uint64_t)((double)q->left_ns * factor)) : 0;
}

static void push(struct tail *g, struct request *q)
{
	q->ev.queued_ns = g->now_ns;
	bin_note(&q->ev, bin_at(g, q));
	if (bins_reserve(g->queue[q->stage], 1) != 0) {
		g->rc = WEIR_ENOMEM;
		return;
	}
	bins_put(g->queue[q->stage], &q->ev);
	g->length[q->stage]++;
	wake_one(g);
}

static void arrive(struct tail *g)
{
	struct request *q = &g->request[g->arrived];

	*q = (struct request){.number = g->arrived++, .ev.arrival_ns = g->now_ns};
	q->work_ns = draw_work_ns(g, q->number);
	q->left_ns = work_at(g, q, PARSE);
	push(g, q);
	if (g->arrived < g->c->warmup + g->c->requests) {
		double gap = rng_exp(weir_random_at(g->key[STREAM_ARRIVALS], g->arrived));
		heap_push(&g->heap, g->now_ns + 1 + (int64_t)(gap * g->gap_ns), ARRIVAL, &g->rc);
	}
}

/* ---- batches ---- */

static void finish(struct tail *g, const struct request *q)
{
	int64_t took_ns = g->now_ns - q->ev.arrival_ns;

	if (q->number < g->c->warmup)
		return;
	hdr_add(&g->r->all, took_ns, 1);
	hdr_add(q->work_ns <= g->c->short_ns ? &g->r->brief : &g->r->tail, took_ns, 1);
}

/* The batch has ended: its events go on, or back. */
static void end_batch(struct tail *g, struct tail_core *core)
{
	uint32_t ahead = g->length[core->stage];
	bool yielded = false;

	for (int i = 0; i < core->n; i++) {
		struct request *q = (struct request *)core->batch[i];
		if (q->left_ns > 0) {
			yielded = true;
			g->r->yields++;
			push(g, q);
			continue;
		}
		q->stage = next_stage(g, q, q->stage);
		if (q->stage == STAGES) {
			finish(g, q);
			continue;
		}
		q->left_ns = work_at(g, q, q->stage);
		push(g, q);
	}
	core->n = 0;
	if (yielded)
		next_yielded(&core->next, ahead, g->now_ns);
}

static struct next_view look(struct tail *g)
{
	struct next_view v = {
	    .n = STAGES, .stage = g->view, .order = &g->order, .now_ns = g->now_ns};

	for (int i = 0; i < STAGES; i++) {
		if (g->length[i] == 0)
			continue;
		v.ready |= UINT64_C(1) << i;
		g->view[i].length = g->length[i] / (uint32_t)g->c->cores + 1;
		g->view[i].oldest_ns = bins_oldest(g->queue[i])->queued_ns;
	}
	return v;
}

static int batch_size(const struct tail *g, const struct next_choice *c)
{
	int64_t service_ns = g->view[c->stage].service_ns, n = BATCH_MAX;
	uint32_t share = (g->length[c->stage] + (uint32_t)g->c->cores - 1) / (uint32_t)g->c->cores;

	if (service_ns * n > BATCH_MAX_NS)
		n = service_ns > BATCH_MAX_NS ? 1 : BATCH_MAX_NS / service_ns;
	n = n < share ? n : share;
	return (int)(n < c->max ? n : c->max);
}

static int64_t begin_batch(struct tail *g, struct tail_core *core, const struct next_choice *c)
{
	const struct tail_config *conf = g->c;
	int64_t slice_ns = conf->limits.gate == NEXT_CUTOFF ? conf->limits.gate_ns : INT64_MAX;
	int64_t starved_ns = conf->starve_ns > 0 ? g->now_ns - conf->starve_ns : INT64_MIN;
	int64_t spent_ns = conf->batch_ns;

	core->stage = c->stage;
	core->n = bins_take(g->queue[c->stage], batch_size(g, c), starved_ns, core->batch);
	g->length[c->stage] -= (uint32_t)core->n;
	for (int i = 0; i < core->n; i++) {
		struct request *q = (struct request *)core->batch[i];
		int64_t took_ns = q->left_ns < slice_ns ? q->left_ns : slice_ns;
		q->left_ns -= took_ns;
		spent_ns += took_ns;
	}
	next_took(&core->next, c->stage, (uint32_t)core->n, 0);
	return spent_ns;
}

static void turn(struct tail *g, int k)
{
	struct tail_core *core = &g->core[k];

	end_batch(g, core);
	struct next_view v = look(g);
	struct next_choice c = next_choose(&core->next, &g->c->limits, &v);
	core->idle = c.stage < 0;
	if (!core->idle)
		heap_push(&g->heap, g->now_ns + begin_batch(g, core, &c), (uint32_t)k, &g->rc);
}

/* ---- a run ---- */

static int tail_init(struct tail *g)
{
	g->core = calloc((size_t)g->c->cores, sizeof(*g->core));
	g->request = calloc(g->c->warmup + g->c->requests, sizeof(*g->request));
	if (!g->core || !g->request)
		return WEIR_ENOMEM;
	for (int i = 0; i < STAGES; i++)
		if (!(g->queue[i] = bins_new(64, false)))
			return WEIR_ENOMEM;
	for (int i = 0; i < g->c->cores; i++) {
		next_core_init(&g->core[i].next, g->c->policy);
		g->core[i].idle = true;
	}
	for (uint64_t i = 0; i < 3; i++)
		g->key[i] = rng_key(g->c->seed, i);
	measure(g);
	struct next_view v = {.n = STAGES, .stage = g->view};
	next_order_make(g->c->policy, &v, &g->c->limits, &g->order);
	heap_push(&g->heap, 0, ARRIVAL, &g->rc);
	return g->rc;
}

int tail_run(const struct tail_config *c, struct tail_result *r)
{
	struct tail g = {.c = c, .r = r};

	memset(r, 0, sizeof(*r));
	g.rc = tail_init(&g);
	while (g.rc == 0 && g.heap.n > 0) {
		struct heap_entry e = heap_pop(&g.heap);

		g.now_ns = e.at;
		if (e.what == ARRIVAL)
			arrive(&g);
		else
			turn(&g, (int)e.what);
	}
	heap_fini(&g.heap);
	for (int i = 0; i < STAGES; i++)
		bins_free(g.queue[i]);
	free(g.request);
	free(g.core);
	return g.rc;
}

void tail_fill(uint64_t seed, int cores, double load, struct tail_config *c)
{
	*c = (struct tail_config){.seed = seed,
	    .cores = cores,
	    .load = load,
	    .policy = &next_fifo,
	    .limits = {.gate = NEXT_ALL},
	    .alpha = 1.1,
	    .least_ns = 20000,
	    .most_ns = 50000000,
	    .short_ns = 1000000,
	    .batch_ns = 200,
	    .warmup = 5000,
	    .requests = 100000};
}
