/* SPDX-License-Identifier: MIT */
/* The simulator of core groups: cores, cells, queues, dealing. */
#include "group.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "heap.h"
#include "load/rng.h"

#define NONE         UINT32_MAX
#define ARRIVAL      UINT32_MAX /* in the heap; other entries are cores */
#define BATCH_MAX_NS 1000000    /* BATCH_NS in stage/cohort.c */
#define DEAL_STAGES  2          /* with fewer, waking another core is not worth its cost */
#define DEAL_EVENTS  4

enum { STREAM_ARRIVALS, STREAM_ROUTES, STREAM_SERVICES };

struct request {
	int64_t began_ns, at_ns; /* arrival at the group, and at the present stage */
	uint64_t number;
	uint32_t next; /* in its list */
	uint8_t route, position;
};

/* Oldest first. */
struct list {
	uint32_t first, last, n;
};

struct group_core {
	struct next_core next;
	struct list cell[NEXT_STAGES_MAX];
	uint64_t ready; /* stages whose cell is not empty */
	uint32_t waiting;
	struct list batch;
	int stage; /* of the last batch; -1: none */
	bool idle;
};

struct group {
	const struct group_config *c;
	struct group_result *r;
	struct request *request;
	uint32_t n_requests, max_requests;
	struct list unused;
	struct list queue[NEXT_STAGES_MAX];
	uint64_t queue_ready;
	struct next_stage view[NEXT_STAGES_MAX];
	struct next_order order;
	struct group_core *core;
	int n_idle;
	struct heap heap;
	uint64_t key[3];
	int64_t now_ns;
	int rc;
};

/* ---- lists ---- */

static void list_push(struct group *g, struct list *l, uint32_t i)
{
	g->request[i].next = NONE;
	if (l->n++ == 0)
		l->first = i;
	else
		g->request[l->last].next = i;
	l->last = i;
}

static uint32_t list_pop(struct group *g, struct list *l)
{
	uint32_t i = l->first;

	l->first = g->request[i].next;
	l->n--;
	return i;
}

/* Return an unused request, or NONE. */
static uint32_t request_new(struct group *g)
{
	if (g->unused.n > 0)
		return list_pop(g, &g->unused);
	if (g->n_requests == g->max_requests) {
		uint32_t max = g->max_requests ? 2 * g->max_requests : 1024;
		struct request *more = realloc(g->request, max * sizeof(*more));

		if (!more)
			return NONE;
		g->request = more;
		g->max_requests = max;
	}
	return g->n_requests++;
}

/* ---- what is offered ---- */

static double route_weights(const struct group_config *c)
{
	double sum = 0;

	for (int i = 0; i < c->n_routes; i++)
		sum += c->route[i].weight;
	return sum;
}

/* Compute, over all routes, the load of each stage and the mean work from the stage to the end of a
 * route. */
static void measure(const struct group_config *c, struct next_stage *view)
{
	double visits[NEXT_STAGES_MAX] = {0}, rest[NEXT_STAGES_MAX] = {0};
	double per_core = c->rate_per_s / NS_PER_S / c->cores, sum = route_weights(c);

	for (int i = 0; i < c->n_routes; i++) {
		double work = 0;

		for (int k = c->route[i].n - 1; k >= 0; k--) {
			int stage = c->route[i].stage[k];

			work += (double)c->stage[stage].service.mean_ns;
			visits[stage] += c->route[i].weight / sum;
			rest[stage] += c->route[i].weight / sum * work;
		}
	}
	for (int i = 0; i < c->n_stages; i++) {
		view[i].service_ns = c->stage[i].service.mean_ns;
		view[i].rest_ns = visits[i] > 0 ? (int64_t)(rest[i] / visits[i]) : 0;
		view[i].load = visits[i] * (double)c->stage[i].service.mean_ns * per_core;
	}
}

double group_load(const struct group_config *c)
{
	struct next_stage view[NEXT_STAGES_MAX];
	double load = 0;

	measure(c, view);
	for (int i = 0; i < c->n_stages; i++)
		load += view[i].load;
	return load;
}

static int draw_route(const struct group *g, uint64_t number)
{
	double at =
	    weir_random_unit(weir_random_at(g->key[STREAM_ROUTES], number)) * route_weights(g->c);
	int i = 0;

	while (i < g->c->n_routes - 1 && at > g->c->route[i].weight)
		at -= g->c->route[i++].weight;
	return i;
}

/* ---- waiting ---- */

static int stage_of(const struct group *g, uint32_t i)
{
	const struct request *q = &g->request[i];

	return g->c->route[q->route].stage[q->position];
}

static void wake_one(struct group *g)
{
	for (int i = 0; i < g->c->cores && g->n_idle > 0; i++)
		if (g->core[i].idle) {
			g->core[i].idle = false;
			g->n_idle--;
			heap_push(&g->heap, g->now_ns + g->c->wake_ns, (uint32_t)i, &g->rc);
			return;
		}
}

static void push_queue(struct group *g, int stage, uint32_t i)
{
	g->request[i].at_ns = g->now_ns;
	list_push(g, &g->queue[stage], i);
	g->queue_ready |= UINT64_C(1) << stage;
}

static void push_cell(struct group *g, struct group_core *core, int stage, uint32_t i)
{
	g->request[i].at_ns = g->now_ns;
	list_push(g, &core->cell[stage], i);
	core->ready |= UINT64_C(1) << stage;
	core->waiting++;
	next_arrived(&core->next, stage, 1);
}

static void arrive(struct group *g)
{
	uint64_t total = g->c->warmup + g->c->requests;
	uint32_t i = request_new(g);

	if (i == NONE) {
		g->rc = WEIR_ENOMEM;
		return;
	}
	g->request[i] = (struct request){.began_ns = g->now_ns,
	    .number = g->r->arrived++,
	    .route = (uint8_t)draw_route(g, g->r->arrived - 1)};
	push_queue(g, stage_of(g, i), i);
	wake_one(g);
	if (g->r->arrived < total) {
		double gap = rng_exp(weir_random_at(g->key[STREAM_ARRIVALS], g->r->arrived));

		heap_push(&g->heap, g->now_ns + 1 + (int64_t)(gap * NS_PER_S / g->c->rate_per_s),
		    ARRIVAL, &g->rc);
	}
}

/* ---- batches ---- */

static void finish(struct group *g, uint32_t i)
{
	if (g->request[i].number >= g->c->warmup)
		hdr_add(&g->r->response, g->now_ns - g->request[i].began_ns, 1);
	g->r->ended++;
	list_push(g, &g->unused, i);
}

static void end_batch(struct group *g, struct group_core *core)
{
	bool deal = g->c->deal && g->n_idle > 0 &&
		    (__builtin_popcountll(core->ready) >= DEAL_STAGES ||
			core->waiting + core->batch.n >= DEAL_EVENTS);

	while (core->batch.n > 0) {
		uint32_t i = list_pop(g, &core->batch);
		struct request *q = &g->request[i];

		if (++q->position == g->c->route[q->route].n) {
			finish(g, i);
			continue;
		}
		int stage = stage_of(g, i);

		if (g->c->stage[stage].local && !deal) {
			push_cell(g, core, stage, i);
		} else {
			push_queue(g, stage, i);
			g->r->dealt += g->c->stage[stage].local;
		}
	}
}

static uint32_t queue_share(const struct group *g, int stage)
{
	uint32_t n = g->queue[stage].n, share = n / (uint32_t)g->c->cores;

	return n > 0 && share == 0 ? 1 : share;
}

static struct next_view look(struct group *g, const struct group_core *core)
{
	struct next_view v = {.n = g->c->n_stages,
	    .ready = core->ready | g->queue_ready,
	    .stage = g->view,
	    .order = &g->order,
	    .now_ns = g->now_ns};

	for (uint64_t set = v.ready; set; set &= set - 1) {
		int i = __builtin_ctzll(set);
		const struct list *cell = &core->cell[i], *queue = &g->queue[i];
		int64_t oldest_ns = cell->n > 0 ? g->request[cell->first].at_ns : INT64_MAX;

		if (queue->n > 0 && g->request[queue->first].at_ns < oldest_ns)
			oldest_ns = g->request[queue->first].at_ns;
		g->view[i].oldest_ns = oldest_ns;
		g->view[i].length = cell->n + queue_share(g, i);
	}
	return v;
}

/* Take one event; returns the time of its service. */
static int64_t take_one(struct group *g, struct group_core *core, int stage)
{
	struct list *cell = &core->cell[stage], *queue = &g->queue[stage];
	uint32_t i = list_pop(g, cell->n > 0 ? cell : queue);
	const struct request *q = &g->request[i];
	int64_t *longest_ns = &g->r->stage[stage].longest_ns;

	if (g->now_ns - q->at_ns > *longest_ns)
		*longest_ns = g->now_ns - q->at_ns;
	list_push(g, &core->batch, i);
	return sim_draw_ns(&g->c->stage[stage].service, g->key[STREAM_SERVICES],
	    q->number * SIM_STAGES_MAX + q->position);
}

static uint32_t batch_size(const struct group *g, const struct next_choice *c)
{
	const struct group_stage *s = &g->c->stage[c->stage];
	uint32_t n = g->view[c->stage].length, most = s->cohort < c->max ? s->cohort : c->max;
	int64_t timely = s->service.mean_ns > 0 ? BATCH_MAX_NS / s->service.mean_ns : n;

	n = n < most ? n : most;
	return n < timely ? n : timely > 0 ? (uint32_t)timely : 1;
}

static int64_t begin_batch(struct group *g, struct group_core *core, const struct next_choice *c)
{
	int stage = c->stage;
	uint32_t n = batch_size(g, c), cell_n = core->cell[stage].n;
	uint32_t from_cell = n < cell_n ? n : cell_n;
	int64_t spent_ns = g->c->batch_ns + (core->stage != stage ? g->c->switch_ns : 0);
	struct group_stage_result *r = &g->r->stage[stage];

	for (uint32_t k = 0; k < n; k++)
		spent_ns += take_one(g, core, stage);
	core->waiting -= from_cell;
	g->r->from_queue += n - from_cell;
	if (core->cell[stage].n == 0)
		core->ready &= ~(UINT64_C(1) << stage);
	if (g->queue[stage].n == 0)
		g->queue_ready &= ~(UINT64_C(1) << stage);
	next_took(&core->next, stage, n, from_cell);
	core->stage = stage;
	r->events += n;
	r->batches++;
	r->visits += c->begins;
	return spent_ns;
}

static void turn(struct group *g, int k)
{
	struct group_core *core = &g->core[k];

	end_batch(g, core);
	struct next_view v = look(g, core);
	struct next_choice c = next_choose(&core->next, &g->c->limits, &v);

	g->r->by_why[c.why]++;
	if (c.stage < 0) {
		core->idle = true;
		g->n_idle++;
		return;
	}
	int64_t spent_ns = begin_batch(g, core, &c);

	g->r->busy_ns[k] += spent_ns;
	heap_push(&g->heap, g->now_ns + spent_ns, (uint32_t)k, &g->rc);
	if (g->queue_ready != 0)
		wake_one(g);
}

/* ---- a run ---- */

static int group_init(struct group *g)
{
	g->core = calloc((size_t)g->c->cores, sizeof(*g->core));
	if (!g->core)
		return WEIR_ENOMEM;
	for (int i = 0; i < g->c->cores; i++) {
		next_core_init(&g->core[i].next, g->c->policy);
		g->core[i].stage = -1;
		g->core[i].idle = true;
	}
	g->n_idle = g->c->cores;
	for (uint64_t i = 0; i < 3; i++)
		g->key[i] = rng_key(g->c->seed, i);
	measure(g->c, g->view);
	struct next_view v = {.n = g->c->n_stages, .stage = g->view};

	next_order_make(g->c->policy, &v, &g->c->limits, &g->order);
	heap_push(&g->heap, 0, ARRIVAL, &g->rc);
	return g->rc;
}

int group_run(const struct group_config *c, struct group_result *r)
{
	struct group g = {.c = c, .r = r};

	memset(r, 0, sizeof(*r));
	if (group_load(c) >= 1)
		return WEIR_EINVAL;
	g.rc = group_init(&g);
	while (g.rc == 0 && g.heap.n > 0) {
		struct heap_entry e = heap_pop(&g.heap);

		g.now_ns = e.at;
		if (e.what == ARRIVAL)
			arrive(&g);
		else
			turn(&g, (int)e.what);
	}
	r->ended_ns = g.now_ns;
	heap_fini(&g.heap);
	free(g.request);
	free(g.core);
	return g.rc;
}
