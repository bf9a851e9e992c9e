/* SPDX-License-Identifier: MIT */
/*
 * Takes views of a running graph: sums over threads, gauges, and the conservation law.
 *
 * Counters are read while they change, so the law came = left + in flight can be off by the
 * events that move during the reading. The view contains an upper bound on that error (law_slack).
 * It is the sum of
 *   - the events offered and the events ended between two readings of the stage's counters,
 *   - WEIR_BATCH_MAX events for each thread that may have been moving a batch at the start of the
 *     view of the stage, and again at its end, and
 *   - WEIR_BATCH_MAX events for each batch that was moved in between.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/control.h"
#include "graph/graph.h"
#include "graph/group.h"
#include "graph/reload_state.h"
#include "graph/thread_time.h"
#include "sched/pool.h"

/* Add the counters in the byte range [from, end) of `book` to `into`. */
static void sum_part(struct book *into, const struct book *book, size_t from, size_t end)
{
	const book_counter *src = (const book_counter *)book;
	book_counter *dst = (book_counter *)into;

	for (size_t i = from / sizeof(*src); i < end / sizeof(*src); i++)
		book_add(&dst[i], book_read(&src[i]));
}

static void sum_classes(struct book *into, const struct book *from, int n_classes)
{
	size_t begin = offsetof(struct book, class_book);

	sum_part(into, from, begin, begin + (size_t)n_classes * sizeof(struct class_book));
}

/* Add only the counters in use, because these sums are a large part of the cost of a view. */
static void sum_book(struct book *into, const struct book *from, int n_classes, int n_metrics)
{
	sum_classes(into, from, n_classes);
	sum_part(into, from, offsetof(struct book, running),
	    offsetof(struct book, metric) + (size_t)n_metrics * sizeof(book_counter));
}

static int metrics_of(const struct weir_stage *st)
{
	int n = 0;

	while (st->ops->metrics && n < WEIR_METRICS_MAX && st->ops->metrics[n].name)
		n++;
	return n;
}

static void sum_times(struct weir_class_view *into, const struct time_book *from, int n_classes)
{
	for (int c = 0; into && from && c < n_classes; c++) {
		hist_book_sum(&into[c].wait, &from[c].wait);
		hist_book_sum(&into[c].service, &from[c].service);
	}
}

void graph_sum(struct weir_graph *g, int id, struct book *book, struct weir_class_view *times,
    uint64_t *links, int64_t *running_ns, int64_t *longest_ns)
{
	int n_outlets = g->stages[id]->n_outlets, n_metrics = metrics_of(g->stages[id]);
	int64_t now_ns = running_ns || longest_ns ? clock_now_ns() : 0;

	lock_take(&g->threads_lock);
	sum_book(book, &g->gone[id].book, g->n_classes, n_metrics);
	sum_times(times, g->gone[id].times, g->n_classes);
	for (int o = 0; links && o < n_outlets; o++)
		links[o] += book_read(&g->gone[id].link_events[o]);
	for (const struct local *l = g->gone[id].books; l; l = l->next) {
		sum_book(book, &l->book, g->n_classes, n_metrics);
		/* Histograms are the most expensive part of a view; skip those of unused locals. */
		if (atomic_load_explicit(&l->book.changes, memory_order_acquire) > 0)
			sum_times(times, l->times, g->n_classes);
		for (int o = 0; links && o < n_outlets; o++)
			links[o] += book_read(&l->outbox[o].events);
		int64_t since_ns =
		    atomic_load_explicit(&l->book.running_since_ns, memory_order_relaxed);
		int64_t ran_ns = since_ns && now_ns > since_ns ? now_ns - since_ns : 0;
		if (running_ns)
			*running_ns += ran_ns;
		if (longest_ns && ran_ns > *longest_ns)
			*longest_ns = ran_ns;
	}
	lock_release(&g->threads_lock);
}

static void view_classes(
    struct weir_graph *g, const struct sink *k, const struct book *b, struct weir_stage_view *v)
{
	for (int c = 0; c < g->n_classes; c++) {
		const struct class_book *cb = &b->class_book[c];
		struct weir_class_view *cv = &v->class_view[c];
		cv->offered = book_read(&cb->offered);
		cv->completed = book_read(&cb->completed);
		cv->failed = book_read(&cb->failed);
		cv->spawned = book_read(&cb->spawned);
		cv->departed = book_read(&cb->departed);
		cv->shadow_shed = book_read(&cb->shadow_shed) +
				  atomic_load_explicit(&k->shadow_ahead[c], memory_order_relaxed);
		cv->refused_ahead =
		    atomic_load_explicit(&k->refused_ahead[c], memory_order_relaxed);
		uint64_t refused = book_read(&cb->refused);
		cv->admitted = cv->offered > refused ? cv->offered - refused : 0;
		for (int r = 0; r < WEIR_SHED_REASONS; r++)
			cv->shed[r] = book_read(&cb->shed[r]);
	}
}

/* Count the events offered to stage `id` and the events that have ended there, over all classes. */
static void totals(struct weir_graph *g, int id, int64_t *offered, int64_t *ended)
{
	struct book b = {0};

	*offered = *ended = 0;
	lock_take(&g->threads_lock);
	sum_classes(&b, &g->gone[id].book, g->n_classes);
	for (const struct local *l = g->gone[id].books; l; l = l->next)
		sum_classes(&b, &l->book, g->n_classes);
	lock_release(&g->threads_lock);
	for (int c = 0; c < g->n_classes; c++) {
		*offered += (int64_t)book_came(&b.class_book[c]);
		*ended += (int64_t)book_left(&b.class_book[c]);
	}
}

/* Movement of events in the graph, for the error bound of the conservation law. */
struct motion {
	int threads;    /* number of threads that may be moving a batch */
	uint64_t moves; /* sum of thread.moves, including the threads that have exited */
};

static struct motion motion_of(struct weir_graph *g)
{
	struct motion m = {0};

	for (int i = 0; i < g->n_pools; i++) {
		int states[WEIR_THREAD_STATES];
		m.threads += pool_read(g->pools[i], states) - states[WEIR_THREAD_IDLE];
	}
	lock_take(&g->threads_lock);
	m.moves = g->gone_moves;
	for (const struct thread *t = g->threads; t; t = t->next) {
		uint64_t moves = atomic_load_explicit(&t->moves, memory_order_acquire);
		m.threads += moves & 1;
		m.moves += moves;
	}
	lock_release(&g->threads_lock);
	return m;
}

static void view_law(struct weir_graph *g, struct weir_stage *st, const struct book *b,
    int64_t queued, struct motion *motion, struct weir_stage_view *v)
{
	int64_t offered0 = 0, ended0 = 0, offered, ended;

	for (int c = 0; c < g->n_classes; c++) {
		offered0 += (int64_t)book_came(&b->class_book[c]);
		ended0 += (int64_t)book_left(&b->class_book[c]);
	}
	for (int c = 0; c < g->n_classes; c++) {
		v->spawned += v->class_view[c].spawned;
		v->awaiting += book_read(&b->class_book[c].awaiting);
	}
	int64_t counted =
	    queued + (int64_t)(book_read(&b->running) + book_read(&b->held) + v->awaiting);
	v->held = book_read(&b->held);
	v->children_max = atomic_load_explicit(&st->children, memory_order_relaxed);
	v->joined = book_read(&b->joined);
	v->orphaned = book_read(&b->orphaned);
	v->cancelled = book_read(&b->cancelled);
	v->children_refused = book_read(&b->children_refused);
	v->in_flight = offered0 > ended0 ? (uint64_t)(offered0 - ended0) : 0;
	v->law_residual = offered0 - ended0 - counted;
	offered = offered0;
	ended = ended0;
	if (v->law_residual != 0) /* otherwise these counts are not needed */
		totals(g, st->id, &offered, &ended);
	struct motion before = *motion, after = motion_of(g);
	v->law_slack = (offered - offered0) + (ended - ended0) +
		       (int64_t)WEIR_BATCH_MAX *
			   (before.threads + after.threads + (int64_t)(after.moves - before.moves));
	*motion = after; /* the next reading starts here */
}

const char *graph_placement(const struct weir_stage *st)
{
	if (st->ops->flags & WEIR_STAGE_SOURCE)
		return "source";
	return st->spec->inlined ? "inline" : st->spec->group[0] ? "group" : "pool";
}

/* Spares may start or end between the two looks. */
static void view_spares(const struct pool *pool, struct weir_stage_view *v)
{
	int own[WEIR_THREAD_STATES];
	int spares = v->threads_now - pool_read_own(pool, own);
	int busy = v->threads[WEIR_THREAD_BUSY] - own[WEIR_THREAD_BUSY];

	v->spares_now = spares > 0 ? spares : 0;
	v->spares_busy = busy < 0 ? 0 : busy < v->spares_now ? busy : v->spares_now;
}

static void view_threads(struct weir_stage *st, struct weir_stage_view *v)
{
	const struct pool *pool = st->pool;

	v->placement = graph_placement(st);
	v->blocks_alone = st->sink.inlined && st->ops->flags & WEIR_STAGE_BLOCKS;
	v->group = pool ? pool->name : "";
	v->thread_deaths = atomic_load(&st->deaths.n);
	if (!pool)
		return;
	v->threads_now = pool_read(pool, v->threads);
	if (pool->cores)
		view_spares(pool, v);
	v->threads_target = atomic_load(&pool->target);
	v->threads_min = atomic_load(&pool->min);
	v->threads_max = atomic_load(&pool->max);
	v->thread_failures = atomic_load(&pool->failures);
	v->thread_deaths = atomic_load(&pool->deaths.n);
}

static void view_width(struct weir_stage *st, const struct book *b, struct weir_stage_view *v)
{
	if (!stage_has_width(st))
		return;
	v->width = atomic_load(&st->sink.queue.width);
	v->width_min = atomic_load(&st->width_min);
	v->width_max = atomic_load(&st->width_max);
	v->in_work = (int)queue_kept_all(&st->sink.queue);
	v->refusals = book_read(&b->refusals);
	graph_width_explain(st, v->width_why, sizeof(v->width_why));
}

static void view_names(const struct weir_graph *g, struct weir_stage *st, struct weir_stage_view *v)
{
	static const char *const modes[] = {"shared", "exclusive", "partitioned", "replicated"};
	static const char *const admission_modes[] = {"off", "shadow", "enforce"};
	const char *classes[WEIR_CLASSES_MAX + 1] = {0};
	bool single = st->ops->flags & WEIR_STAGE_SINGLE;

	for (int c = 0; c < g->n_classes; c++)
		classes[c] = g->classes[c].name;
	v->name = st->name;
	v->use = st->ops->name;
	v->summary = st->ops->summary;
	v->mode = modes[single ? WEIR_MODE_EXCLUSIVE : st->spec->mode];
	v->admission = st->sink.policy->name;
	lock_take(&st->sink.queue.lock);
	int cap = atomic_load(&st->sink.mode_cap), mode = st->sink.admission.mode;
	v->admission_mode = admission_modes[mode < cap ? mode : cap];
	v->admission_nonsense = atomic_load_explicit(&st->sink.nonsense, memory_order_relaxed);
	lock_release(&st->sink.queue.lock);
	sink_explain(&st->sink, classes, v->admission_why, sizeof(v->admission_why));
	v->depth = st->depth;
	v->slo_ns = sink_slo_ns(&st->sink);
	v->metrics = st->ops->metrics;
	while (v->metrics && v->metrics[v->n_metrics].name)
		v->n_metrics++;
}

/* A stage that is "drained" cannot become "draining" again: it refuses all events and has none in
 * flight to requeue. */
static const char *state_word(const struct weir_stage *st, uint64_t in_flight)
{
	switch (atomic_load(&st->steer)) {
	case WEIR_STEER_PAUSE:
		return "paused";
	case WEIR_STEER_DRAIN:
		return in_flight > 0 ? "draining" : "drained";
	default:
		return "running";
	}
}

static void sum_answers(
    struct weir_answer_view *into, const struct answer_book *from, int n_classes)
{
	for (int c = 0; from && c < n_classes; c++)
		for (int o = 0; o < WEIR_OUTCOMES; o++)
			hist_book_sum(&into[c].by[o], &from[c].by[o]);
}

static int view_answers(struct weir_graph *g, int id, struct weir_stage_view *v)
{
	if (!g->gone[id].answers)
		return 0;
	v->answers = calloc((size_t)g->n_classes, sizeof(*v->answers));
	if (!v->answers)
		return WEIR_ENOMEM;
	lock_take(&g->threads_lock);
	sum_answers(v->answers, g->gone[id].answers, g->n_classes);
	for (const struct local *l = g->gone[id].books; l; l = l->next)
		sum_answers(v->answers, l->answers, g->n_classes);
	lock_release(&g->threads_lock);
	return 0;
}

static int view_links(struct weir_stage *st, struct weir_stage_view *v, const uint64_t *events)
{
	v->links = calloc((size_t)st->n_outlets + 1, sizeof(*v->links));
	if (!v->links)
		return WEIR_ENOMEM;
	v->n_links = st->n_outlets;
	for (int o = 0; o < st->n_outlets; o++)
		v->links[o] = (struct weir_link_view){
		    .outlet = st->outlets[o].name,
		    .to = st->outlets[o].to ? st->outlets[o].to->name : NULL,
		    .type = st->outlets[o].type,
		    .events_total = events[o],
		    .loop = st->outlets[o].loop,
		};
	return 0;
}

/* Return the highest value shown so far, since a counter must never decrease. The sum may be wrong
 * by the length of a handle call that ends during the reading: the call may be counted as in
 * progress, as ended, as both or as neither. */
static uint64_t never_less(_Atomic uint64_t *shown, uint64_t now)
{
	uint64_t was = atomic_load_explicit(shown, memory_order_relaxed);

	while (was < now && !atomic_compare_exchange_weak_explicit(
				shown, &was, now, memory_order_relaxed, memory_order_relaxed))
		;
	return was < now ? now : was;
}

/* Return the time at which the oldest waiting event was queued, 0 if none waits. n[c] receives the
 * number of waiting events of class c. */
static int64_t oldest_of(struct sink *s, int n_classes, uint64_t *n)
{
	int64_t oldest_ns = queue_oldest_ns(&s->queue, n);

	for (int k = 0; k < s->n_cells; k++) {
		const struct cell *cell = &s->cells[k * s->cells_apart];
		int64_t at_ns = cell_oldest_ns(cell);
		if (at_ns != INT64_MAX && (oldest_ns == 0 || at_ns < oldest_ns))
			oldest_ns = at_ns;
		for (int c = 0; c < n_classes; c++)
			n[c] += cell_class(cell, c);
	}
	return oldest_ns;
}

static int view_stage(
    struct weir_graph *g, struct weir_stage *st, struct motion *motion, struct weir_stage_view *v)
{
	struct book b = {0};
	uint64_t queued[WEIR_CLASSES_MAX] = {0}, n_queued = 0;
	uint64_t *events = calloc((size_t)st->n_outlets + 1, sizeof(*events));
	int64_t running_ns = 0;

	if (!events)
		return WEIR_ENOMEM;
	view_names(g, st, v);
	view_threads(st, v);
	graph_sum(g, st->id, &b, v->class_view, events, &running_ns, &v->longest_running_ns);
	view_classes(g, &st->sink, &b, v);
	int64_t oldest_ns = oldest_of(&st->sink, g->n_classes, queued), now_ns = clock_now_ns();
	v->oldest_wait_ns = oldest_ns && now_ns > oldest_ns ? now_ns - oldest_ns : 0;
	for (int c = 0; c < g->n_classes; c++) {
		v->class_view[c].queued = queued[c];
		n_queued += queued[c];
	}
	v->queue_length = n_queued;
	v->queue_limit = st->pool ? atomic_load(&st->sink.queue.limit) : 0;
	view_width(st, &b, v);
	v->pressure = st->pool ? weir_pressure(st) : 0;
	v->degradation = weir_degradation(st);
	v->busy_ns = never_less(&st->busy_shown_ns, book_read(&b.busy_ns) + (uint64_t)running_ns);
	graph_time_view(g, st->id, v);
	v->batches = book_read(&b.batches);
	v->batch_events = book_read(&b.batch_events);
	for (int i = 0; i < WEIR_COHORT_BUCKETS; i++)
		v->cohorts[i] = book_read(&b.cohorts[i]);
	v->wakeups = book_read(&b.wakeups);
	v->stuck = atomic_load_explicit(&st->stuck, memory_order_relaxed);
	graph_stuck_view(g, st, &v->stuck_call);
	v->unhandled = book_read(&b.unhandled);
	for (int r = 0; r < WEIR_PAYLOAD_REFUSALS; r++)
		v->payload_refused[r] = book_read(&b.payload_refused[r]);
	for (int m = 0; m < v->n_metrics; m++)
		v->metric[m] = (int64_t)book_read(&b.metric[m]);
	view_law(g, st, &b, (int64_t)n_queued, motion, v);
	v->state = state_word(st, v->in_flight);
	if (st->ops->clients && weir_graph_ready(g))
		st->ops->clients(st, &v->clients);
	graph_trouble(g, st, v->trouble, sizeof(v->trouble));
	int rc = view_links(st, v, events);
	free(events);
	if (rc == 0)
		rc = view_answers(g, st->id, v);
	return rc != 0 ? rc : graph_group_view(st, now_ns, v);
}

int weir_graph_view(const struct weir_graph *cg, struct weir_graph_view **out)
{
	/* Get the graph without const. A view modifies only locks and the highest values shown
	 * (never_less). */
	struct weir_graph *g = cg->stages[0]->graph;
	struct weir_graph_view *v = calloc(1, sizeof(*v));
	int phase = atomic_load(&g->phase), rc = 0;
	struct motion motion;

	if (!v)
		return WEIR_ENOMEM;
	v->name = g->spec->name;
	v->now_ns = clock_now_ns();
	v->wall_ns = clock_wall_ns();
	v->started_ns = atomic_load(&g->started_ns);
	v->ready = weir_graph_ready(g);
	v->draining = phase == GRAPH_DRAINING;
	v->n_classes = g->n_classes;
	for (int c = 0; c < g->n_classes; c++) {
		v->class_name[c] = g->classes[c].name;
		if (atomic_load(&g->classes[c].slo_set))
			v->class_slo_ns[c] = atomic_load(&g->classes[c].slo_ns);
	}
	motion = motion_of(g);
	v->stages = calloc((size_t)g->n_stages, sizeof(*v->stages));
	for (int i = 0; v->stages && rc == 0 && i < g->n_stages; i++, v->n_stages++)
		rc = view_stage(g, g->stages[i], &motion, &v->stages[i]);
	v->decisions_total = v->decided_total = journal_total(control_journal(g->control));
	v->acts_total = change_log_total(&g->change_log);
	v->payload_bytes = atomic_load_explicit(&g->payloads->used, memory_order_relaxed);
	v->payload_bytes_limit = atomic_load_explicit(&g->payloads->limit, memory_order_relaxed);
	weir_graph_collect_state(g, &v->collect);
	if (v->stages && rc == 0)
		rc = graph_groups_view(g, v);
	if (v->stages && rc == 0)
		rc = reload_state_add(g, v);
	if (!v->stages || rc != 0) {
		weir_graph_view_free(v);
		return WEIR_ENOMEM;
	}
	*out = v;
	return 0;
}

void weir_graph_view_free(struct weir_graph_view *v)
{
	if (!v)
		return;
	for (int i = 0; v->stages && i < v->n_stages; i++) {
		free(v->stages[i].links);
		free(v->stages[i].answers);
		free(v->stages[i].cores);
	}
	free(v->stages);
	graph_groups_view_free(v);
	free(v);
}
