/* SPDX-License-Identifier: MIT */
/*
 * Connects admission upstream (admission/route.h) to the graph: passes it the shape of the graph
 * and, at each tick, the counters, and publishes its results in the sinks.
 *
 * Runs only in the control thread. Other threads read the masks and times in the sinks one by one
 * without a lock. That is safe because any mix of old and new values is valid.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "admission/route.h"
#include "graph/graph.h"
#include "event/local.h"
#include "graph/meter.h"

#define K WEIR_CLASSES_MAX

/* Weight of an event in the mean times of a stage without a meter. Equals COST_WEIGHT in
 * meter.c. */
#define TIME_WEIGHT 0.02

/* Time constant in ns for smoothing the mean stay in a stage that holds events. 1 s is a guess:
 * many ticks. */
#define STAY_NS 1e9

/* Totals and mean times of a stage. */
struct spent {
	uint64_t n, wait_ns, service_ns, behind_ns; /* totals when the counters were last read */
	double wait_mean_ns, service_mean_ns, behind_mean_ns;
	/* For stages that hold events: the values from which the mean stay is computed by Little's
	 * law. */
	int64_t held;
	uint64_t left_then[K];
	/* events in the stage, and departures per ns, both smoothed over about STAY_NS */
	double inside[K], left_rate[K];
};

struct graph_route {
	struct route *route;
	struct route_shape shape;
	struct route_stage *stage;
	struct route_link *link;
	int *outlet; /* by link: number of the outlet at the stage where the link starts */
	struct route_look *look;
	uint64_t *tried;           /* events offered, by link * K + class */
	struct spent *spent, *now; /* by stage id */
	/* by stage id: change number when the counters were last read */
	uint64_t *seen;
	bool *known;       /* by stage id: whether the counters have been read */
	int64_t at_ns;     /* time of the last reading of the counters (learn) */
	int64_t looked_ns; /* time of the last check that found every stage idle */
	/* at the last reading, no counter had changed and no event was in flight */
	bool still;
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
			r->link[n++] =
			    (struct route_link){.from = i, .to = out->to->id, .loop = out->loop};
		}
	}
}

/* Whether any queue is downstream of another queue. If not, admission upstream is not needed. */
static bool any_behind(const struct weir_graph *g, const struct graph_route *r)
{
	bool behind[WEIR_STAGES_MAX] = {false}, any = false;

	for (int i = 0; i < g->n_stages; i++) { /* upstream first */
		const struct weir_stage *st = g->stages[g->order[i]];
		bool seen = behind[st->id];
		any |= seen && is_queued(st);
		for (int l = 0; l < r->shape.n_links; l++)
			if (r->link[l].from == st->id && (seen || is_queued(st)))
				behind[r->link[l].to] = true;
	}
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
	r->seen = calloc(n, sizeof(*r->seen));
	r->known = calloc(n, sizeof(*r->known));
	r->sinks = calloc(n, sizeof(struct sink *));
	if (!r->stage || !r->link || !r->outlet || !r->look || !r->tried || !r->spent || !r->now ||
	    !r->seen || !r->known || !r->sinks)
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
	free(r->seen);
	free(r->known);
	free(r->sinks);
	free(r);
	g->route = NULL;
	for (int i = 0; i < g->n_stages; i++) {
		free(g->stages[i]->sink.ahead);
		g->stages[i]->sink.ahead = NULL;
	}
}

/* ---- counters ---- */

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
		look->awaiting[c] += (int64_t)book_read(&cb->awaiting);
	}
}

static void add_times(
    struct spent *now, const struct book *b, const struct time_book *times, int n_classes)
{
	for (int c = 0; c < n_classes; c++)
		now->behind_ns += book_read(&b->class_book[c].behind_ns);
	for (int c = 0; times && c < n_classes; c++) {
		now->wait_ns += book_read(&times[c].wait.sum_ns);
		now->service_ns += book_read(&times[c].service.sum_ns);
	}
}

/* Update the mean stay of an event in the stage. In a stage without a width, the time for which an
 * event is held or waits for its children is neither wait nor service time. So the stay is then
 * N / X, the mean number of events divided by the departure rate (Little 1961). */
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
		bool stays =
		    (held > 0 || look->awaiting[c] > 0) && s->left_rate[c] > 0 && s->inside[c] > 0;
		look->stay_ns[c] = stays ? (int64_t)(s->inside[c] / s->left_rate[c]) : 0;
	}
}

static void add_tried(uint64_t *sum, const book_counter *tried, int n_classes)
{
	for (int c = 0; c < n_classes; c++)
		sum[c] += book_read(&tried[c]);
}

static void sum_tried(struct weir_graph *g, struct graph_route *r, int l)
    WEIR_REQUIRES(&g->threads_lock)
{
	const struct gone *gone = &g->gone[r->link[l].from];
	uint64_t *sum = &r->tried[l * K], all = 0;
	int o = r->outlet[l];
	uint64_t made = book_read(&gone->link_made[o]);

	memset(sum, 0, K * sizeof(*sum));
	add_tried(sum, &gone->link_tried[o * K], g->n_classes);
	for (const struct local *b = gone->books; b; b = b->next)
		add_tried(sum, b->outbox[o].tried, g->n_classes);
	for (const struct local *b = gone->books; b; b = b->next)
		made += book_read(&b->outbox[o].made);
	for (int c = 0; c < g->n_classes; c++)
		all += sum[c];
	r->link[l].children = made > all / 2;
}

static void sum_stage(struct weir_graph *g, struct graph_route *r, int id)
    WEIR_REQUIRES(&g->threads_lock)
{
	const struct gone *gone = &g->gone[id];
	struct spent *now = &r->now[id];

	memset(now, 0, sizeof(*now));
	memset(&r->look[id], 0, sizeof(r->look[id]));
	look_at(&gone->book, &r->stage[id], g->n_classes, &r->look[id]);
	now->held += (int64_t)book_read(&gone->book.held);
	add_times(now, &gone->book, gone->times, g->n_classes);
	for (const struct local *b = gone->books; b; b = b->next) {
		look_at(&b->book, &r->stage[id], g->n_classes, &r->look[id]);
		now->held += (int64_t)book_read(&b->book.held);
		add_times(now, &b->book, b->times, g->n_classes);
	}
	for (int c = 0; c < g->n_classes; c++)
		now->n += r->look[id].handled[c];
}

static bool is_stale(const struct weir_graph *g, const struct graph_route *r, int id)
{
	return !r->known[id] || r->seen[id] != g->changes[id];
}

/* Read the counters of the stages that have changed into r->look, r->now and r->tried; the values
 * of other stages are left unchanged. Returns whether any stage has changed. */
static bool sum_books(struct weir_graph *g, struct graph_route *r)
{
	bool any = false;

	lock_take(&g->threads_lock);
	for (int l = 0; l < r->shape.n_links; l++)
		if (is_stale(g, r, r->link[l].from))
			sum_tried(g, r, l);
	for (int i = 0; i < g->n_stages; i++) {
		if (!is_stale(g, r, i))
			continue;
		sum_stage(g, r, i);
		r->seen[i] = g->changes[i];
		r->known[i] = any = true;
	}
	lock_release(&g->threads_lock);
	return any;
}

static void follow_mean(double *mean_ns, uint64_t now_ns, uint64_t then_ns, int64_t n)
{
	double weight = TIME_WEIGHT * (double)n > 1 ? 1 : TIME_WEIGHT * (double)n;

	*mean_ns += weight * ((double)(now_ns - then_ns) / (double)n - *mean_ns);
}

/* Update the mean times, which cover about fifty events. Of these means, only behind_mean_ns is
 * used for a stage with a meter. */
static void follow(struct spent *s, const struct spent *now)
{
	int64_t n = (int64_t)(now->n - s->n);

	if (n > 0) {
		follow_mean(&s->wait_mean_ns, now->wait_ns, s->wait_ns, n);
		follow_mean(&s->service_mean_ns, now->service_ns, s->service_ns, n);
		follow_mean(&s->behind_mean_ns, now->behind_ns, s->behind_ns, n);
	}
	s->n = now->n;
	s->wait_ns = now->wait_ns;
	s->service_ns = now->service_ns;
	s->behind_ns = now->behind_ns;
}

/* A meter's cost includes the inline stages downstream. A route treats inline stages as stages of
 * their own, so it gets their part of the cost separately. */
static void fill_costs(const struct sink *k, const struct spent *s, struct route_look *look, int c)
{
	int64_t behind_ns = (int64_t)s->behind_mean_ns;

	look->cost_ns[c] = sink_cost_ns(k, c);
	look->behind_ns[c] = behind_ns < look->cost_ns[c] ? behind_ns : look->cost_ns[c];
}

static void fill_times(struct weir_graph *g, struct graph_route *r, int64_t span_ns)
{
	for (int i = 0; i < g->n_stages; i++) {
		const struct sink *k = &g->stages[i]->sink;
		struct route_look *look = &r->look[i];
		if (r->stage[i].source)
			continue;
		follow(&r->spent[i], &r->now[i]);
		follow_stay(&r->spent[i], look, r->now[i].held, span_ns, g->n_classes);
		bool metered = g->meters[i] != NULL;
		look->wait_ns = metered ? atomic_load_explicit(&k->wait_ns, memory_order_relaxed)
					: (int64_t)r->spent[i].wait_mean_ns;
		for (int c = 0; c < g->n_classes; c++) {
			if (metered)
				fill_costs(k, &r->spent[i], look, c);
			else
				look->cost_ns[c] = (int64_t)r->spent[i].service_mean_ns;
		}
	}
}

/* ---- publishing ---- */

static void tell_door(struct weir_graph *g, struct graph_route *r, int id)
{
	struct ahead *a = g->stages[id]->sink.ahead;

	for (int c = 0; c < g->n_classes; c++) {
		unsigned fronts = 0, judged = 0;
		for (int f = 0; f < r->shape.n_fronts; f++) {
			if (!route_reaches(r->route, id, f))
				continue;
			fronts |= (unsigned)route_enters(r->route, id, f, c) << f;
			judged |= (unsigned)route_judged(r->route, id, f, c) << f;
			if (!(fronts >> f & 1))
				continue;
			atomic_store_explicit(&a->before[c][f],
			    (uint16_t)(AHEAD_ALL * route_before(r->route, id, f, c)),
			    memory_order_relaxed);
			double fan = route_visits(r->route, id, f, c);
			atomic_store_explicit(
			    &a->fan[c][f], fan > 1 ? (float)fan : 1, memory_order_relaxed);
			atomic_store_explicit(&a->lead_ns[c][f], route_lead_ns(r->route, id, f, c),
			    memory_order_relaxed);
		}
		int64_t own_ns = r->look[id].wait_ns + r->look[id].cost_ns[c];
		int64_t rest_ns = route_rest_ns(r->route, id, c) - own_ns;
		atomic_store_explicit(
		    &a->rest_ns[c], rest_ns > 0 ? rest_ns : 0, memory_order_relaxed);
		atomic_store_explicit(&a->fronts[c], (uint16_t)fronts, memory_order_relaxed);
		atomic_store_explicit(&a->judged[c], (uint16_t)judged, memory_order_relaxed);
	}
}

/* ---- idle periods ---- */

static bool any_in_flight(const struct weir_graph *g, const struct graph_route *r)
{
	for (int i = 0; i < g->n_stages; i++)
		for (int c = 0; !r->stage[i].source && c < g->n_classes; c++)
			if (r->look[i].in_flight[c] != 0)
				return true;
	return false;
}

static bool any_stale(const struct weir_graph *g, const struct graph_route *r)
{
	for (int i = 0; i < g->n_stages; i++)
		if (is_stale(g, r, i))
			return true;
	return false;
}

/* Account for the ticks, one per ROUTE_TICK_NS, that were skipped until `until_ns` because no event
 * arrived and none was in flight. */
static void pass_idle(struct weir_graph *g, struct graph_route *r, int64_t until_ns)
{
	int64_t ticks = (until_ns - r->at_ns + ROUTE_TICK_NS / 2) / ROUTE_TICK_NS;
	double left = pow(STAY_NS / (ROUTE_TICK_NS + STAY_NS), (double)ticks);

	route_idle(r->route, ticks);
	for (int i = 0; i < g->n_stages; i++) {
		for (int c = 0; c < g->n_classes; c++) {
			r->spent[i].inside[c] *= left;
			r->spent[i].left_rate[c] *= left;
		}
	}
	r->at_ns = until_ns;
}

/* Whether this tick can be skipped: no counter has changed and no event is in flight. Costs age, so
 * at least one tick per METER_REST_NS is not skipped. */
static bool rests(struct weir_graph *g, struct graph_route *r, int64_t now_ns)
{
	if (r->still && !any_stale(g, r)) {
		r->looked_ns = now_ns;
		if (now_ns - r->at_ns < METER_REST_NS)
			return true;
	}
	if (r->looked_ns > r->at_ns)
		pass_idle(g, r, r->looked_ns == now_ns ? now_ns - ROUTE_TICK_NS : r->looked_ns);
	return false;
}

static void learn(struct weir_graph *g, struct graph_route *r, int64_t now_ns)
{
	int64_t coming_ns[FRONTS_MAX] = {0};

	for (int f = 0; f < r->shape.n_fronts; f++)
		coming_ns[f] =
		    atomic_load_explicit(&r->fronts[f]->pipeline_ns, memory_order_relaxed);
	bool news = sum_books(g, r);
	fill_times(g, r, r->at_ns ? now_ns - r->at_ns : 0);
	r->at_ns = now_ns;
	route_learn(r->route, r->look, r->tried);
	r->still = !news && !any_in_flight(g, r);
	/* Add the difference, so that work added by sinks in the meantime is not lost. */
	for (int f = 0; f < r->shape.n_fronts; f++)
		atomic_fetch_add_explicit(&r->fronts[f]->pipeline_ns,
		    route_pipeline_ns(r->route, f) - coming_ns[f], memory_order_relaxed);
	for (int i = 0; i < g->n_stages; i++)
		tell_door(g, r, i);
}

void graph_route_tick(struct weir_graph *g, int64_t now_ns)
{
	struct graph_route *r = g->route;
	int64_t last_ns = r->looked_ns > r->at_ns ? r->looked_ns : r->at_ns;

	if (last_ns && now_ns - last_ns < ROUTE_TICK_NS)
		return;
	if (!rests(g, r, now_ns))
		learn(g, r, now_ns);
}
