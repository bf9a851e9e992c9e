/* SPDX-License-Identifier: MIT */
/*
 * What doors ask ahead of them: the graph as admission/route.h sees it, its books at each tick, and
 * what follows from them in the sinks. The control thread alone; the masks and times that it leaves in
 * the sinks are read without a lock, one by one: each pair of old and new is one that could have been.
 */
#include <stdlib.h>
#include <string.h>

#include "admission/route.h"
#include "flow/graph.h"
#include "flow/local.h"

#define K WEIR_CLASSES_MAX

/* Mean times at a stage without a meter follow events with this weight, as those of meters do. */
#define TIME_WEIGHT 0.02

/* Time constant of the stay in a stage that holds events: a guess, many ticks. */
#define STAY_NS 1e9

/* Sums at a stage, for mean times. */
struct spent {
	uint64_t n, wait_ns, service_ns; /* totals when last looked */
	double wait_mean_ns, service_mean_ns;
	/* for stages that hold events: their stay by Little's law */
	int64_t held;
	uint64_t left_then[K];
	double inside[K],
	    left_rate[K]; /* events, and those that leave in a ns, over the last second or so */
};

struct graph_route {
	struct route *route;
	struct route_shape shape;
	struct route_stage *stage;
	struct route_link *link;
	int *outlet; /* of each link: its number at the stage it comes from */
	struct route_look *look;
	uint64_t *tried;           /* link * K + class */
	struct spent *spent, *now; /* by stage id */
	int64_t at_ns;             /* of the last tick */
	struct sink *fronts[FRONTS_MAX];
	struct sink **sinks; /* by stage id */
};

/* ---- the shape ---- */

static bool is_queued(const struct weir_stage *st)
{
	return !st->sink.inlined && !(st->ops->flags & WEIR_STAGE_SOURCE);
}

static size_t count_links(const struct weir_graph *g)
{
	size_t n = 0;

	for (int i = 0; i < g->n_stages; i++)
		for (int o = 0; o < g->stages[i]->n_outlets; o++)
			n += g->stages[i]->outlets[o].to != NULL;
	return n;
}

static void add_links(struct weir_graph *g, struct graph_route *r)
{
	int n = 0;

	for (int i = 0; i < g->n_stages; i++) {
		for (int o = 0; o < g->stages[i]->n_outlets; o++) {
			const struct outlet *out = &g->stages[i]->outlets[o];
			if (!out->to)
				continue;
			r->outlet[n] = o;
			r->link[n++] = (struct route_link){i, out->to->id, out->loop};
		}
	}
}

/* Does a queue lie between a source and the queue of a front, or behind one? Else nobody asks ahead. */
static bool any_behind(const struct weir_graph *g, const struct graph_route *r)
{
	bool *behind = calloc((unsigned)g->n_stages, sizeof(*behind)), any = false;

	for (int i = 0; behind && i < g->n_stages; i++) { /* upstream first */
		const struct weir_stage *st = g->stages[g->order[i]];
		bool seen = behind[st->id];
		any |= seen && is_queued(st);
		for (int l = 0; l < r->shape.n_links; l++)
			if (r->link[l].from == st->id && (seen || is_queued(st)))
				behind[r->link[l].to] = true;
	}
	free(behind);
	return any;
}

static void add_stages(struct weir_graph *g, struct graph_route *r)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[g->order[i]];
		struct sink *k = &st->sink;
		bool queued = is_queued(st);
		bool front = queued && k->policy->front && r->shape.n_fronts < FRONTS_MAX;
		r->stage[st->id] =
		    (struct route_stage){.source = st->ops->flags & WEIR_STAGE_SOURCE,
			.queued = queued,
			.front = front ? r->shape.n_fronts : -1};
		r->sinks[st->id] = k;
		if (front)
			r->fronts[r->shape.n_fronts++] = k;
	}
}

static int alloc_route(struct weir_graph *g, struct graph_route *r)
{
	size_t n = (unsigned)g->n_stages, links = count_links(g);

	r->stage = calloc(n, sizeof(*r->stage));
	r->link = calloc(links + 1, sizeof(*r->link));
	r->outlet = calloc(links + 1, sizeof(*r->outlet));
	r->look = calloc(n, sizeof(*r->look));
	r->tried = calloc(links * K + 1, sizeof(*r->tried));
	r->spent = calloc(n, sizeof(*r->spent));
	r->now = calloc(n, sizeof(*r->now));
	r->sinks = calloc(n, sizeof(struct sink *));
	if (!r->stage || !r->link || !r->outlet || !r->look || !r->tried || !r->spent || !r->now ||
	    !r->sinks)
		return WEIR_ENOMEM;
	r->shape = (struct route_shape){.n_stages = g->n_stages,
	    .n_classes = g->n_classes,
	    .n_links = (int)links,
	    .stage = r->stage,
	    .link = r->link,
	    .order = g->order};
	return 0;
}

static int make_ahead(struct weir_graph *g, struct graph_route *r)
{
	r->route = route_new(&r->shape);
	if (!r->route)
		return WEIR_ENOMEM;
	for (int i = 0; i < g->n_stages; i++) {
		struct sink *k = &g->stages[i]->sink;
		k->ahead = calloc(1, sizeof(*k->ahead));
		if (!k->ahead)
			return WEIR_ENOMEM;
		k->front = r->stage[i].front;
		k->fronts = r->fronts;
		k->sinks = r->sinks;
	}
	return 0;
}

int graph_route_new(struct weir_graph *g)
{
	struct graph_route *r = calloc(1, sizeof(*r));
	int rc = r ? alloc_route(g, r) : WEIR_ENOMEM;

	g->route = r;
	if (rc != 0)
		return rc;
	add_links(g, r);
	add_stages(g, r);
	if (r->shape.n_fronts > 0 && any_behind(g, r))
		return make_ahead(g, r);
	graph_route_free(g);
	return 0;
}

void graph_route_free(struct weir_graph *g)
{
	struct graph_route *r = g->route;

	if (!r)
		return;
	route_free(r->route);
	free(r->stage);
	free(r->link);
	free(r->outlet);
	free(r->look);
	free(r->tried);
	free(r->spent);
	free(r->now);
	free(r->sinks);
	free(r);
	g->route = NULL;
	for (int i = 0; i < g->n_stages; i++) {
		free(g->stages[i]->sink.ahead);
		g->stages[i]->sink.ahead = NULL;
	}
}

/* ---- the books ---- */

static void look_at(
    const struct book *b, const struct route_stage *stage, int n_classes, struct route_look *look)
{
	for (int c = 0; c < n_classes; c++) {
		const struct class_book *cb = &b->class_book[c];
		uint64_t offered = book_read(&cb->offered);
		int64_t ended = (int64_t)(book_read(&cb->completed) + book_read(&cb->failed));
		for (int i = 0; i < WEIR_SHED_REASONS; i++)
			ended += (int64_t)book_read(&cb->shed[i]);
		look->handled[c] += stage->source ? offered : book_read(&cb->handled);
		look->offered[c] += offered;
		look->in_flight[c] += (int64_t)offered - ended;
	}
}

static void add_times(struct spent *now, const struct time_book *times, int n_classes)
{
	for (int c = 0; times && c < n_classes; c++) {
		now->wait_ns += book_read(&times[c].wait.sum_ns);
		now->service_ns += book_read(&times[c].service.sum_ns);
	}
}

/* A held event is in no wait and no service: it stays for N / X in the mean (Little 1961). */
static void follow_stay(
    struct spent *s, struct route_look *look, int64_t held, int64_t span_ns, int n_classes)
{
	double weight = (double)span_ns / ((double)span_ns + STAY_NS);

	for (int c = 0; c < n_classes; c++) {
		uint64_t left = look->offered[c] - (uint64_t)look->in_flight[c];
		double rate =
		    span_ns > 0 ? (double)(int64_t)(left - s->left_then[c]) / (double)span_ns : 0;
		s->left_then[c] = left;
		s->inside[c] += weight * ((double)look->in_flight[c] - s->inside[c]);
		s->left_rate[c] += weight * (rate - s->left_rate[c]);
		if (held > 0 && s->left_rate[c] > 0 && s->inside[c] > 0)
			look->stay_ns[c] = (int64_t)(s->inside[c] / s->left_rate[c]);
	}
}

static void add_tried(struct graph_route *r, const struct weir_graph *g, const struct thread *t)
{
	for (int l = 0; l < r->shape.n_links; l++) {
		const book_counter *tried =
		    t ? t->local[r->link[l].from]->outbox[r->outlet[l]].tried
		      : &g->gone[r->link[l].from].link_tried[r->outlet[l] * K];
		for (int c = 0; c < g->n_classes; c++)
			r->tried[l * K + c] += book_read(&tried[c]);
	}
}

static void sum_books(struct weir_graph *g, struct graph_route *r, struct spent *now)
{
	lock_take(&g->threads_lock);
	for (int i = 0; i < g->n_stages; i++) {
		look_at(&g->gone[i].book, &r->stage[i], g->n_classes, &r->look[i]);
		now[i].held += (int64_t)book_read(&g->gone[i].book.held);
		add_times(&now[i], g->gone[i].times, g->n_classes);
	}
	add_tried(r, g, NULL);
	for (struct thread *t = g->threads; t; t = t->next) {
		for (int i = 0; i < g->n_stages; i++) {
			look_at(&t->local[i]->book, &r->stage[i], g->n_classes, &r->look[i]);
			now[i].held += (int64_t)book_read(&t->local[i]->book.held);
			add_times(&now[i], t->local[i]->times, g->n_classes);
		}
		add_tried(r, g, t);
	}
	lock_release(&g->threads_lock);
}

/* Mean times of a stage that has no meter, over some fifty events. */
static void follow(struct spent *s, const struct spent *now)
{
	int64_t n = (int64_t)(now->n - s->n);

	if (n > 0) {
		double weight = TIME_WEIGHT * (double)n > 1 ? 1 : TIME_WEIGHT * (double)n;
		s->wait_mean_ns +=
		    weight * ((double)(now->wait_ns - s->wait_ns) / (double)n - s->wait_mean_ns);
		s->service_mean_ns +=
		    weight *
		    ((double)(now->service_ns - s->service_ns) / (double)n - s->service_mean_ns);
	}
	s->n = now->n;
	s->wait_ns = now->wait_ns;
	s->service_ns = now->service_ns;
}

static void fill_times(
    struct weir_graph *g, struct graph_route *r, struct spent *now, int64_t span_ns)
{
	for (int i = 0; i < g->n_stages; i++) {
		const struct sink *k = &g->stages[i]->sink;
		struct route_look *look = &r->look[i];
		for (int c = 0; c < g->n_classes; c++)
			now[i].n += look->handled[c];
		if (r->stage[i].source)
			continue;
		follow(&r->spent[i], &now[i]);
		follow_stay(&r->spent[i], look, now[i].held, span_ns, g->n_classes);
		bool metered = g->meters[i] != NULL;
		look->wait_ns = metered ? atomic_load_explicit(&k->wait_ns, memory_order_relaxed)
					: (int64_t)r->spent[i].wait_mean_ns;
		for (int c = 0; c < g->n_classes; c++)
			look->cost_ns[c] =
			    metered ? sink_cost_ns(k, c) : (int64_t)r->spent[i].service_mean_ns;
	}
}

/* ---- what follows ---- */

static void tell_door(struct weir_graph *g, struct graph_route *r, int id)
{
	struct ahead *a = g->stages[id]->sink.ahead;

	for (int c = 0; c < g->n_classes; c++) {
		unsigned asks = 0, judged = 0;
		for (int f = 0; f < r->shape.n_fronts; f++) {
			asks |= (unsigned)route_gates(r->route, id, f, c) << f;
			judged |= (unsigned)route_judged(r->route, id, f, c) << f;
			if (!(asks >> f & 1))
				continue;
			atomic_store_explicit(&a->before[c][f],
			    (uint16_t)(AHEAD_ALL * route_before(r->route, id, f, c)),
			    memory_order_relaxed);
			atomic_store_explicit(&a->lead_ns[c][f], route_lead_ns(r->route, id, f, c),
			    memory_order_relaxed);
		}
		int64_t own_ns = r->look[id].wait_ns + r->look[id].cost_ns[c];
		int64_t rest_ns = route_rest_ns(r->route, id, c) - own_ns;
		atomic_store_explicit(
		    &a->rest_ns[c], rest_ns > 0 ? rest_ns : 0, memory_order_relaxed);
		atomic_store_explicit(&a->asks[c], (uint16_t)asks, memory_order_relaxed);
		atomic_store_explicit(&a->judged[c], (uint16_t)judged, memory_order_relaxed);
	}
}

void graph_route_tick(struct weir_graph *g, int64_t now_ns)
{
	struct graph_route *r = g->route;
	struct spent *now = r->now;
	int64_t coming_ns[FRONTS_MAX] = {0};

	if (r->at_ns && now_ns - r->at_ns < ROUTE_TICK_NS)
		return;

	memset(now, 0, sizeof(*now) * (size_t)g->n_stages);
	memset(r->look, 0, sizeof(*r->look) * (size_t)g->n_stages);
	memset(r->tried, 0, sizeof(*r->tried) * (size_t)r->shape.n_links * K);
	for (int f = 0; f < r->shape.n_fronts; f++)
		coming_ns[f] =
		    atomic_load_explicit(&r->fronts[f]->pipeline_ns, memory_order_relaxed);
	sum_books(g, r, now);
	fill_times(g, r, now, r->at_ns ? now_ns - r->at_ns : 0);
	r->at_ns = now_ns;
	route_learn(r->route, r->look, r->tried);
	for (int f = 0; f < r->shape.n_fronts; f++) /* what doors added meanwhile stays */
		atomic_fetch_add_explicit(&r->fronts[f]->pipeline_ns,
		    route_pipeline_ns(r->route, f) - coming_ns[f], memory_order_relaxed);
	for (int i = 0; i < g->n_stages; i++)
		tell_door(g, r, i);
}
