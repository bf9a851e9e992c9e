/* SPDX-License-Identifier: MIT */
/*
 * Takes profiles: the counters of each thread at each stage, not only their sums (weir/profile.h).
 *
 * A profile costs the threads nothing but the counters in struct book: one addition for each batch,
 * `started`, and others only where events are put back, refused or dropped.
 *
 * Threads count while they are read, so the order of the reads keeps the promised inequalities: what
 * has become of events is read first, then what has come, then what was sent. An event is counted in
 * the opposite order: as offered by an arc, as offered to the stage, and then as started, refused or
 * sent. The lock keeps threads from exiting between these reads, which would move their counters.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/profile.h>

#include "base/clock.h"
#include "graph/graph.h"
#include "sched/cores.h"

/* Rows that are allocated beyond the present need, because threads may start before the counters
 * are read. A guess. */
#define ROWS_SPARE 4

/* The rows of a stage, while they are filled. Row 0 is that of WEIR_PROFILE_OTHERS. */
struct rows {
	struct weir_profile_stage *out;
	struct thread_id *id;
	int max;
};

/* ---- reading a local ---- */

static uint64_t read_counter(const book_counter *c)
{
	/* acquire: the reads that follow are not made before this one; see file top */
	return atomic_load_explicit(c, memory_order_acquire);
}

/* Add `by` times what has become of events. */
static void add_outs(struct weir_profile_row *r, const struct book *b, int n_classes, uint64_t by)
{
	r->started += by * read_counter(&b->started);
	r->restarted += by * read_counter(&b->restarted);
	r->again_ns += by * read_counter(&b->again_ns);
	r->dropped += by * read_counter(&b->dropped);
	r->busy_ns += by * read_counter(&b->busy_ns);
	r->batches += by * read_counter(&b->batches);
	for (int c = 0; c < n_classes; c++) {
		const struct class_book *cb = &b->class_book[c];
		r->refused += by * read_counter(&cb->refused);
		r->completed += by * read_counter(&cb->completed);
		r->failed += by * read_counter(&cb->failed);
		r->departed += by * read_counter(&cb->departed);
		for (int s = 0; s < WEIR_SHED_REASONS; s++)
			r->shed += by * read_counter(&cb->shed[s]);
	}
}

static void add_waits(
    struct weir_profile_row *r, const struct time_book *times, int n_classes, uint64_t by)
{
	for (int c = 0; times && c < n_classes; c++) {
		for (int i = 0; i < WEIR_HIST_BUCKETS; i++)
			r->wait.count[i] += by * read_counter(&times[c].wait.count[i]);
		r->wait.sum_ns += by * read_counter(&times[c].wait.sum_ns);
	}
}

static void add_ins(struct weir_profile_row *r, const struct book *b, int n_classes, uint64_t by)
{
	r->put_back += by * read_counter(&b->put_back);
	for (int c = 0; c < n_classes; c++) {
		r->offered += by * read_counter(&b->class_book[c].offered);
		r->spawned += by * read_counter(&b->class_book[c].spawned);
	}
}

static void add_tried(
    struct weir_profile_arc *arc, const book_counter *tried, int n_classes, uint64_t by)
{
	for (int c = 0; c < n_classes; c++)
		arc->offered += by * read_counter(&tried[c]);
}

/* The three parts of a profile, in the order of their reads. */
enum part { OUTS, INS, TRIED };

static void add_local(
    struct weir_profile_row *r, const struct local *l, int n_classes, enum part part, uint64_t by)
{
	switch (part) {
	case OUTS:
		add_outs(r, &l->book, n_classes, by);
		add_waits(r, l->times, n_classes, by);
		for (int o = 0; o < l->n_outboxes; o++)
			r->arc[o].sent += by * read_counter(&l->outbox[o].events);
		break;
	case INS:
		add_ins(r, &l->book, n_classes, by);
		break;
	case TRIED:
		for (int o = 0; o < l->n_outboxes; o++)
			add_tried(&r->arc[o], l->outbox[o].tried, n_classes, by);
	}
}

/* Add the common book, which has also what threads without a row of their own have counted. */
static void add_common(struct weir_profile_row *r, const struct gone *gone, int n_outlets,
    int n_classes, enum part part)
{
	switch (part) {
	case OUTS:
		add_outs(r, &gone->book, n_classes, 1);
		add_waits(r, gone->times, n_classes, 1);
		for (int o = 0; o < n_outlets; o++)
			r->arc[o].sent += read_counter(&gone->link_events[o]);
		break;
	case INS:
		add_ins(r, &gone->book, n_classes, 1);
		break;
	case TRIED:
		for (int o = 0; o < n_outlets; o++)
			add_tried(
			    &r->arc[o], &gone->link_tried[o * WEIR_CLASSES_MAX], n_classes, 1);
	}
}

/* ---- rows ---- */

static void name_row(struct weir_profile_row *r, const struct thread_id *id)
{
	r->number = id->n;
	r->owner = "";
	r->on = WEIR_PROFILE_OTHERS;
	if (id->n >= 0 && id->pool) {
		r->owner = id->pool->name;
		r->on = id->pool->cores ? WEIR_PROFILE_CORE : WEIR_PROFILE_THREAD;
	} else if (id->n >= 0 && id->source) {
		r->owner = id->source->name;
		r->on = WEIR_PROFILE_IO;
	}
}

/* The row of a thread; a new one if it has none yet. */
static struct weir_profile_row *row_of(struct rows *rows, struct thread_id id)
{
	struct weir_profile_stage *s = rows->out;

	WEIR_ASSERT(s != NULL);
	for (int i = 0; i < s->n_rows; i++)
		if (graph_books_same(&rows->id[i], &id))
			return &s->row[i];
	/* a thread has got its number during the reads */
	if (s->n_rows == rows->max)
		return &s->row[0];
	struct weir_profile_row *r = &s->row[s->n_rows];
	rows->id[s->n_rows++] = id;
	r->arc = &s->arcs[(r - s->row) * s->n_outlets];
	name_row(r, &id);
	return r;
}

static void read_part(struct weir_graph *g, struct rows *rows, int id, enum part part)
    WEIR_REQUIRES(&g->threads_lock)
{
	const struct gone *gone = &g->gone[id];
	struct weir_profile_row *others = row_of(rows, (struct thread_id){.n = -1});

	add_common(others, gone, rows->out->n_outlets, g->n_classes, part);
	for (const struct local *l = gone->left; l; l = l->next) {
		add_local(others, l, g->n_classes, part, (uint64_t)-1);
		add_local(row_of(rows, l->left), l, g->n_classes, part, 1);
	}
	for (const struct local *l = gone->books; l; l = l->next)
		add_local(row_of(rows, graph_books_id(l)), l, g->n_classes, part, 1);
}

static uint64_t sum_awaiting(const struct book *b, int n_classes)
{
	uint64_t n = 0;

	for (int c = 0; c < n_classes; c++)
		n += read_counter(&b->class_book[c].awaiting);
	return n;
}

/* Events that are in the stage: only their sums over all threads have a meaning. */
static void read_inside(struct weir_graph *g, struct weir_profile_stage *s, int id)
    WEIR_REQUIRES(&g->threads_lock)
{
	uint64_t running = read_counter(&g->gone[id].book.running);
	uint64_t held = read_counter(&g->gone[id].book.held);
	uint64_t awaiting = sum_awaiting(&g->gone[id].book, g->n_classes);

	for (const struct local *l = g->gone[id].books; l; l = l->next) {
		running += read_counter(&l->book.running);
		held += read_counter(&l->book.held);
		awaiting += sum_awaiting(&l->book, g->n_classes);
	}
	s->running = (int64_t)running > 0 ? running : 0;
	s->held = (int64_t)held > 0 ? held : 0;
	s->awaiting = (int64_t)awaiting > 0 ? awaiting : 0;
}

static int count_rows(const struct gone *gone)
{
	int n = 1;

	for (const struct local *l = gone->left; l; l = l->next)
		n++;
	for (const struct local *l = gone->books; l; l = l->next)
		n++;
	return n;
}

/* ---- memory ---- */

static void rows_free(struct rows *rows)
{
	free(rows->id);
	free(rows->out->row);
	free(rows->out->arcs);
	rows->id = NULL;
	rows->out->row = NULL;
	rows->out->arcs = NULL;
}

static int rows_alloc(struct rows *rows, int max)
{
	struct weir_profile_stage *s = rows->out;

	rows_free(rows);
	rows->max = max + ROWS_SPARE;
	rows->id = calloc((size_t)rows->max, sizeof(*rows->id));
	s->row = calloc((size_t)rows->max, sizeof(*s->row));
	s->arcs = calloc((size_t)rows->max * (size_t)s->n_outlets + 1, sizeof(*s->arcs));
	return rows->id && s->row && s->arcs ? 0 : WEIR_ENOMEM;
}

static int prepare(struct weir_graph *g, struct rows *rows, int id)
{
	const struct weir_stage *st = g->stages[id];
	struct weir_profile_stage *s = rows->out;

	s->name = st->name;
	s->group = st->pool ? st->pool->name : "";
	s->placement = graph_placement(st);
	s->n_outlets = st->n_outlets;
	s->outlet = calloc((size_t)st->n_outlets + 1, sizeof(*s->outlet));
	if (!s->outlet)
		return WEIR_ENOMEM;
	for (int o = 0; o < st->n_outlets; o++)
		s->outlet[o] = (struct weir_profile_outlet){.name = st->outlets[o].name,
		    .to = st->outlets[o].to ? st->outlets[o].to->name : NULL};
	return 0;
}

/* ---- a profile ---- */

/* Read all counters. Returns false if there are more threads than rows. */
static bool read_all(struct weir_graph *g, struct rows *rows)
{
	bool fits = true;

	lock_take(&g->threads_lock);
	for (int i = 0; i < g->n_stages; i++)
		fits &= count_rows(&g->gone[i]) <= rows[i].max;
	for (int part = OUTS; fits && part <= TRIED; part++)
		for (int i = 0; i < g->n_stages; i++)
			read_part(g, &rows[i], i, (enum part)part);
	for (int i = 0; fits && i < g->n_stages; i++)
		read_inside(g, rows[i].out, i);
	lock_release(&g->threads_lock);
	return fits;
}

static int read_counters(struct weir_graph *g, struct rows *rows)
{
	int n, rc = 0;

	do {
		for (int i = 0; rc == 0 && i < g->n_stages; i++) {
			lock_take(&g->threads_lock);
			n = count_rows(&g->gone[i]);
			lock_release(&g->threads_lock);
			WEIR_ASSERT(rows[i].out != NULL);
			rows[i].out->n_rows = 0;
			rc = rows_alloc(&rows[i], n);
		}
	} while (rc == 0 && !read_all(g, rows));
	return rc;
}

static bool is_empty(const struct weir_profile_row *r, int n_outlets)
{
	uint64_t sum = r->offered | r->refused | r->started | r->restarted | r->put_back |
		       r->dropped | r->completed | r->failed | r->shed | r->batches | r->spawned |
		       r->departed;

	for (int o = 0; o < n_outlets; o++)
		sum |= r->arc[o].sent | r->arc[o].offered;
	return sum == 0;
}

/* Whether the thread is of the stage's own pool or loop, which is called `own`. */
static bool is_own(const struct weir_profile_row *r, const char *own)
{
	return strcmp(r->owner, own) == 0;
}

/* The rows of the stage's own threads come first, and that of WEIR_PROFILE_OTHERS last. */
static int compare(const void *pa, const void *pb, void *own)
{
	const struct weir_profile_row *a = pa, *b = pb;

	if (a->on != b->on && (a->on == WEIR_PROFILE_OTHERS || b->on == WEIR_PROFILE_OTHERS))
		return a->on == WEIR_PROFILE_OTHERS ? 1 : -1;
	if (is_own(a, own) != is_own(b, own))
		return is_own(a, own) ? -1 : 1;
	int order = a->on != b->on ? (int)a->on - (int)b->on : strcmp(a->owner, b->owner);
	return order != 0 ? order : a->number - b->number;
}

/* Sort the rows, and look at the queue and the cells. */
static void finish(const struct weir_stage *st, struct weir_profile_stage *s)
{
	const struct sink *sink = &st->sink;
	const char *own = st->pool ? st->pool->name : st->name;

	WEIR_ASSERT(s->row != NULL); /* there is at least the row of WEIR_PROFILE_OTHERS */
	if (is_empty(&s->row[0], s->n_outlets))
		s->row[0] = s->row[--s->n_rows];
	qsort_r(s->row, (size_t)s->n_rows, sizeof(*s->row), compare, (void *)(uintptr_t)own);
	for (int i = 0; i < s->n_rows; i++) {
		struct weir_profile_row *r = &s->row[i];
		if (st->ops->flags & WEIR_STAGE_SOURCE)
			r->started = r->offered;
		if (r->on == WEIR_PROFILE_CORE && is_own(r, own) && r->number < sink->n_cells)
			r->waiting = cell_length(&sink->cells[r->number * sink->cells_apart]);
	}
	s->waiting = sink_waiting(sink);
}

int weir_graph_profile(const struct weir_graph *cg, struct weir_profile **out)
{
	struct weir_graph *g = cg->stages[0]->graph; /* without const: the read takes locks */
	struct weir_profile *p = calloc(1, sizeof(*p));
	struct rows *rows = calloc((size_t)g->n_stages, sizeof(*rows));
	int rc = 0;

	if (p)
		p->stage = calloc((size_t)g->n_stages, sizeof(*p->stage));
	if (!p || !p->stage || !rows)
		rc = WEIR_ENOMEM;
	for (int i = 0; rc == 0 && i < g->n_stages; i++, p->n_stages++) {
		rows[i].out = &p->stage[i];
		rc = prepare(g, &rows[i], i);
	}
	if (rc == 0)
		rc = read_counters(g, rows);
	for (int i = 0; rows && i < g->n_stages; i++)
		free(rows[i].id);
	free(rows);
	if (rc != 0) {
		weir_graph_profile_free(p);
		return rc;
	}
	p->name = g->spec->name;
	p->now_ns = clock_now_ns();
	p->wall_ns = clock_wall_ns();
	p->since_ns = g->built_ns;
	p->since_wall_ns = g->built_wall_ns;
	for (int i = 0; i < g->n_stages; i++)
		finish(g->stages[i], &p->stage[i]);
	*out = p;
	return 0;
}

void weir_graph_profile_free(struct weir_profile *p)
{
	for (int i = 0; p && i < p->n_stages; i++) {
		free(p->stage[i].row);
		free(p->stage[i].arcs);
		free(p->stage[i].outlet);
	}
	if (p)
		free(p->stage);
	free(p);
}
