/* SPDX-License-Identifier: MIT */
/*
 * Allocates the locals of threads (event/local.h: the counters and outboxes of one thread at one
 * stage), lists them by stage, and adds their counters to the stage's common book when a thread
 * exits.
 *
 * When a thread registers, it gets the locals of the stages that it runs, with histograms and
 * thread state. These stages are those of its pool, its source stage, and the inline stages
 * downstream of them. A thread with neither pool nor source may offer events to any stage, so it
 * gets the locals of all inline stages. Other locals have only counters and outboxes. They are
 * allocated when the thread first sends to the stage or finishes an event there. Readers walk the
 * list of a stage's locals, and most threads use few stages, so these lists are short.
 *
 * | call                                          | caller                               |
 * |-----------------------------------------------|--------------------------------------|
 * | graph_books_make, graph_books_free            | the creator of the thread struct     |
 * | graph_books_list, graph_books_fold            | the thread, with threads_lock        |
 * | local_open, book_lock_common, book_add_common | the thread; they take threads_lock   |
 * | book_count_common                             | any thread; it takes threads_lock     |
 */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "event/local.h"
#include "stage/stage.h"

static void outbox_init(struct outbox *o, struct local *from, int outlet)
{
	o->tail = &o->head;
	o->from = from;
	o->outlet = outlet;
}

static void local_free(struct local *l)
{
	if (!l)
		return;
	conf_put(l->conf);
	free(l->times);
	free(l->answers);
	free(l->thread_state);
	free(l);
}

static int local_add_times(struct local *l, const struct weir_stage *st)
{
	l->times = calloc((size_t)st->sink.queue.n_classes, sizeof(*l->times));
	return l->times ? 0 : WEIR_ENOMEM;
}

static int local_add_answers(struct local *l, const struct weir_stage *st)
{
	l->answers = calloc((size_t)st->sink.queue.n_classes, sizeof(*l->answers));
	return l->answers ? 0 : WEIR_ENOMEM;
}

static int local_add_run(struct local *l, const struct weir_stage *st)
{
	size_t state =
	    (st->ops->thread_state_size + WEIR_CACHE_LINE - 1) & -(size_t)WEIR_CACHE_LINE;

	l->thread_state = state ? aligned_alloc(WEIR_CACHE_LINE, state) : NULL;
	return !state || l->thread_state ? 0 : WEIR_ENOMEM;
}

static struct local *local_new(struct thread *t, struct weir_stage *st, bool runs)
{
	size_t n = (size_t)st->n_outlets;
	struct local *l = calloc(1, sizeof(*l) + n * sizeof(l->outbox[0]));

	if (!l)
		return NULL;
	l->thread = t;
	l->stage = st;
	l->n_outboxes = st->n_outlets;
	l->batched = st->batcher != NULL;
	l->service_ns = -1;
	l->runs = runs;
	for (int i = 0; i < st->n_outlets; i++) {
		outbox_init(&l->outbox[i], l, i);
		l->outbox[i].sink = st->outlets[i].to ? &st->outlets[i].to->sink : NULL;
	}
	outbox_init(&l->again, l, OUTLET_AGAIN);
	outbox_init(&l->take, l, OUTLET_TAKE);
	l->again.sink = l->take.sink = &st->sink;
	/* if the stage has a width, any thread may end a hold, and then records the service time */
	int rc = runs || stage_has_width(st) ? local_add_times(l, st) : 0;
	if (rc == 0 && runs)
		rc = local_add_run(l, st);
	if (rc == 0 && t->source == st)
		rc = local_add_answers(l, st);
	if (rc == 0)
		return l;
	local_free(l);
	return NULL;
}

/* ---- the locals of a thread ---- */

/* Whether the thread that sends an event to the stage also runs the stage. */
static bool in_sender(const struct weir_stage *st)
{
	return st->sink.inlined || st->sink.direct;
}

static bool runs(const struct thread *t, const struct weir_stage *st)
{
	return (t->source && st == t->source) || in_sender(st) || (t->pool && st->pool == t->pool);
}

/* Allocate the local of `st`, and those of all inline stages that the thread may run after `st`.
 * The recursion is shallow, because chains of inline stages are short. */
static int make(struct thread *t, struct weir_stage *st)
{
	int rc = 0;

	if (t->local[st->id])
		return 0;
	t->local[st->id] = local_new(t, st, runs(t, st));
	if (!t->local[st->id])
		return WEIR_ENOMEM;
	for (int o = 0; rc == 0 && runs(t, st) && o < st->n_outlets; o++)
		if (st->outlets[o].to && in_sender(st->outlets[o].to))
			rc = make(t, st->outlets[o].to);
	return rc;
}

int graph_books_make(struct thread *t, bool all)
{
	struct weir_graph *g = t->graph;
	bool anywhere = !t->source && !t->pool;
	int rc = 0;

	t->local = calloc((size_t)g->n_stages, sizeof(struct local *));
	if (!t->local)
		return WEIR_ENOMEM;
	t->n_locals = g->n_stages;
	for (int i = 0; rc == 0 && i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		bool own = (t->source && st == t->source) || (t->pool && st->pool == t->pool);
		if (all || own || (in_sender(st) && anywhere))
			rc = make(t, st);
	}
	return rc;
}

void graph_books_free(struct thread *t)
{
	for (int i = 0; i < t->n_locals; i++)
		local_free(t->local[i]);
	free(t->local);
	conf_put(t->lent);
	t->local = NULL;
	t->lent = NULL;
	t->n_locals = 0;
}

/* ---- each stage's list of locals ---- */

static void list(struct weir_graph *g, struct local *l) WEIR_REQUIRES(&g->threads_lock)
{
	struct gone *gone = &g->gone[l->stage->id];

	l->next = gone->books;
	gone->books = l;
}

void graph_books_list(struct weir_graph *g, struct thread *t)
{
	for (int i = 0; i < t->n_locals; i++)
		if (t->local[i])
			list(g, t->local[i]);
}

struct local *local_open(struct thread *t, int id)
{
	struct weir_stage *st = t->graph->stages[id];
	/* thread_prepare calls thread_init later */
	struct local *l = local_new(t, st, in_sender(st));

	if (!l)
		return NULL;
	t->local[id] = l;
	lock_take(&t->graph->threads_lock);
	list(t->graph, l);
	lock_release(&t->graph->threads_lock);
	return l;
}

uint64_t graph_stage_changes(const struct weir_graph *g, int id)
{
	const struct gone *gone = &g->gone[id];
	/* pairs with book_changed */
	uint64_t n = atomic_load_explicit(&gone->book.changes, memory_order_acquire);

	n += atomic_load_explicit(&g->stages[id]->sink.stirred, memory_order_acquire);

	for (const struct local *l = gone->books; l; l = l->next)
		n += atomic_load_explicit(&l->book.changes, memory_order_acquire);
	return n;
}

/* ---- the common book ---- */

static void fold_book(struct book *into, const struct book *from)
{
	/* All members of a book before running_since_ns are counters. */
	const book_counter *src = (const book_counter *)from;
	book_counter *dst = (book_counter *)into;

	for (size_t i = 0; i < offsetof(struct book, running_since_ns) / sizeof(*src); i++)
		book_add(&dst[i], book_read(&src[i]));
}

static void fold_hist(struct hist_book *into, const struct hist_book *from)
{
	for (int i = 0; i < WEIR_HIST_BUCKETS; i++)
		book_add(&into->count[i], book_read(&from->count[i]));
	book_add(&into->sum_ns, book_read(&from->sum_ns));
}

static void fold_times(struct time_book *into, const struct time_book *from, int n_classes)
{
	for (int c = 0; from && c < n_classes; c++) {
		fold_hist(&into[c].wait, &from[c].wait);
		fold_hist(&into[c].service, &from[c].service);
	}
}

static void fold_answers(struct answer_book *into, const struct answer_book *from, int n_classes)
{
	for (int c = 0; into && from && c < n_classes; c++)
		for (int o = 0; o < WEIR_OUTCOMES; o++)
			fold_hist(&into[c].by[o], &from[c].by[o]);
}

static void fold_local(struct gone *gone, struct local *l, int n_classes)
{
	struct local **at = &gone->books;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	fold_book(&gone->book, &l->book);
	if (l->times && !gone->times) {
		gone->times = gone->first_times;
		gone->first_times = NULL;
	}
	fold_times(gone->times, l->times, n_classes);
	fold_answers(gone->answers, l->answers, n_classes);
	for (int o = 0; o < l->n_outboxes; o++) {
		book_add(&gone->link_events[o], book_read(&l->outbox[o].events));
		book_add(&gone->link_made[o], book_read(&l->outbox[o].made));
		for (int c = 0; c < n_classes; c++)
			book_add(&gone->link_tried[o * WEIR_CLASSES_MAX + c],
			    book_read(&l->outbox[o].tried[c]));
	}
}

/* ---- the counters of exited threads, by thread ---- */

struct thread_id graph_books_id(const struct local *l)
{
	const struct thread *t = l->thread;
	int n = atomic_load_explicit(&t->number, memory_order_relaxed);

	/* a thread that was attached, or has not got its number yet */
	if (n < 0)
		return (struct thread_id){.n = -1};
	return (struct thread_id){.pool = t->pool, .source = t->source, .n = n};
}

bool graph_books_same(const struct thread_id *a, const struct thread_id *b)
{
	return a->pool == b->pool && a->source == b->source && a->n == b->n;
}

static struct local *left_of(const struct gone *gone, const struct thread_id *id)
{
	struct local *l = gone->left;

	while (l && !graph_books_same(&l->left, id))
		l = l->next;
	return l;
}

/* Add the counters of `l` to those of earlier threads of the same number. If there are none, keep
 * `l` itself, because an allocation could fail here. Returns whether it was kept. */
static bool keep(struct gone *gone, struct local *l, int n_classes)
{
	l->left = graph_books_id(l);
	if (l->left.n < 0)
		return false;
	struct local *left = left_of(gone, &l->left);
	if (!left) {
		conf_put(l->conf);
		free(l->thread_state);
		l->conf = NULL;
		l->thread_state = NULL;
		l->thread = NULL;
		l->next = gone->left;
		gone->left = l;
		return true;
	}
	fold_book(&left->book, &l->book);
	if (!left->times) {
		left->times = l->times;
		l->times = NULL;
	}
	fold_times(left->times, l->times, n_classes);
	for (int o = 0; o < l->n_outboxes; o++) {
		book_add(&left->outbox[o].events, book_read(&l->outbox[o].events));
		for (int c = 0; c < n_classes; c++)
			book_add(&left->outbox[o].tried[c], book_read(&l->outbox[o].tried[c]));
	}
	return false;
}

void weir_answered(
    struct weir_stage *st, const struct weir_event *ev, enum weir_outcome outcome, int64_t took_ns)
{
	struct thread *t = thread_current;
	struct weir_graph *g = st->graph;
	struct local *l = g && t && t->graph == g && t->local ? t->local[st->id] : NULL;

	if (WEIR_LIKELY(l && l->answers)) {
		hist_book_add(&l->answers[ev->class_id].by[outcome], took_ns, 1);
		return;
	}
	if (!g || !g->gone[st->id].answers)
		return;
	lock_take(&g->threads_lock);
	hist_book_add(&g->gone[st->id].answers[ev->class_id].by[outcome], took_ns, 1);
	lock_release(&g->threads_lock);
}

void graph_books_fold(struct weir_graph *g, struct thread *t)
{
	for (int i = 0; i < t->n_locals; i++) {
		if (!t->local[i])
			continue;
		fold_local(&g->gone[i], t->local[i], g->n_classes);
		graph_tickets_leave(t->local[i]);
		if (keep(&g->gone[i], t->local[i], g->n_classes))
			t->local[i] = NULL;
	}
}

void graph_books_forget(struct gone *gone)
{
	while (gone->left) {
		struct local *l = gone->left;
		gone->left = l->next;
		local_free(l);
	}
}

struct book *book_lock_common(struct thread *t, int id) WEIR_NO_THREAD_SAFETY
{
	lock_take(&t->graph->threads_lock);
	return &t->graph->gone[id].book;
}

void book_unlock_common(struct thread *t) WEIR_NO_THREAD_SAFETY
{
	lock_release(&t->graph->threads_lock);
}

void book_count_common(struct weir_graph *g, int id, int row, int64_t n)
{
	struct book *book = &g->gone[id].book;

	lock_take(&g->threads_lock);
	book_add(&book->metric[row], (uint64_t)n);
	book_changed(book);
	lock_release(&g->threads_lock);
}

void book_add_common(struct thread *t, int id, const struct book *from)
{
	struct book *book = book_lock_common(t, id);

	fold_book(book, from);
	book_changed(book);
	book_unlock_common(t);
}
