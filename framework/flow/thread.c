/* SPDX-License-Identifier: MIT */
/*
 * Threads of a graph: entering, leaving, and sending on what a batch emitted. See thread.h.
 *
 * Every thread has a local for every stage (counters only, about 2 KiB); histograms and thread
 * state only where it may run the stage: its pool's stages, its home, and all inline stages, since
 * any thread may come by those. All of it is allocated here, nothing between offer and handle.
 */
#include "flow/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <urcu/urcu-memb.h>

#include "base/clock.h"
#include "flow/graph.h"
#include "flow/local.h"
#include "sched/pool.h"

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
	free(l->thread_state);
	free(l);
}

static struct local *local_new(struct weir_stage *st, bool runs)
{
	size_t n = (size_t)st->n_outlets;
	size_t state =
	    (st->ops->thread_state_size + WEIR_CACHE_LINE - 1) & -(size_t)WEIR_CACHE_LINE;
	struct local *l = calloc(1, sizeof(*l) + n * sizeof(l->outbox[0]));

	if (!l)
		return NULL;
	l->stage = st;
	l->n_outboxes = st->n_outlets;
	l->batched = st->batcher != NULL;
	l->service_ns = -1;
	for (int i = 0; i < st->n_outlets; i++) {
		outbox_init(&l->outbox[i], l, i);
		l->outbox[i].sink = st->outlets[i].to ? &st->outlets[i].to->sink : NULL;
	}
	outbox_init(&l->again, l, OUTLET_AGAIN);
	l->again.sink = &st->sink;
	if (!runs)
		return l;
	l->times = calloc((size_t)st->sink.queue.n_classes, sizeof(*l->times));
	l->thread_state = state ? aligned_alloc(WEIR_CACHE_LINE, state) : NULL;
	if (l->thread_state)
		memset(l->thread_state, 0, state);
	if (l->times && (!state || l->thread_state))
		return l;
	local_free(l);
	return NULL;
}

/* Tell the stages that this thread goes, while it is still `thread_current`. */
static void fini_stages(struct thread *t)
{
	for (int i = 0; i < t->n_locals; i++) {
		struct local *l = t->local[i];
		if (l->thread_ready && l->stage->ops->thread_fini)
			l->stage->ops->thread_fini(l->stage);
		l->thread_ready = false;
	}
}

static void thread_free(struct thread *t)
{
	if (!t)
		return;
	for (int i = 0; t->local && i < t->n_locals; i++)
		local_free(t->local[i]);
	free(t->local);
	free(t);
}

static bool may_run(
    const struct weir_stage *st, const struct weir_stage *home, const struct pool *pool)
{
	return st == home || st->sink.inlined || (pool && st->pool == pool);
}

static struct thread *thread_new(
    struct weir_graph *g, const char *name, const struct weir_stage *home, struct pool *pool)
{
	struct thread *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->graph = g;
	t->slowest = g->slowest;
	t->pool = pool;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->dirty_tail = &t->dirty;
	t->refused_by = WEIR_NO_STAGE;
	t->now_ns = clock_now_ns();
	for (int i = 0; i < MAILBOXES_MAX; i++)
		outbox_init(&t->mail[i], NULL, 0);
	t->local = calloc((size_t)g->n_stages, sizeof(struct local *));
	t->n_locals = g->n_stages;
	for (int i = 0; t->local && i < g->n_stages; i++) {
		t->local[i] = local_new(g->stages[i], may_run(g->stages[i], home, pool));
		if (!t->local[i]) {
			thread_free(t);
			return NULL;
		}
	}
	if (t->local)
		return t;
	thread_free(t);
	return NULL;
}

static int init_stages(struct thread *t)
{
	for (int i = 0; i < t->n_locals; i++) {
		struct local *l = t->local[i];
		if (!l->times)
			continue;
		if (l->stage->ops->thread_init && l->stage->ops->thread_init(l->stage) != 0)
			return WEIR_ENOMEM;
		l->thread_ready = true;
	}
	return 0;
}

/* Make the calling thread `t`. On failure `t` stays the caller's. */
static int become(struct thread *t)
{
	struct weir_graph *g = t->graph;

	WEIR_ASSERT(thread_current == NULL);
	urcu_memb_register_thread();
	thread_current = t;
	t->tid = (int)gettid();
	int rc = init_stages(t);
	if (rc != 0) {
		fini_stages(t);
		thread_current = NULL;
		urcu_memb_unregister_thread();
		return rc;
	}
	lock_take(&g->threads_lock);
	t->next = g->threads;
	g->threads = t;
	lock_release(&g->threads_lock);
	return 0;
}

static int enter(struct weir_graph *g, const char *name, struct weir_stage *home, struct pool *pool)
{
	struct thread *t = thread_new(g, name, home, pool);
	int rc = t ? become(t) : WEIR_ENOMEM;

	if (rc != 0)
		thread_free(t);
	return rc;
}

int thread_spare_new(struct weir_graph *graph, const char *name, struct thread **spare)
{
	*spare = thread_new(graph, name, NULL, NULL);
	return *spare ? 0 : WEIR_ENOMEM;
}

int thread_enter_spare(struct thread *spare)
{
	return become(spare);
}

void thread_spare_free(struct thread *spare)
{
	thread_free(spare);
}

int thread_enter(struct weir_graph *graph, const char *name, struct weir_stage *home)
{
	return enter(graph, name, home, NULL);
}

int thread_enter_pool(struct weir_graph *graph, const char *name, struct pool *pool)
{
	return enter(graph, name, NULL, pool);
}

int weir_thread_attach(struct weir_graph *graph, const char *name)
{
	return enter(graph, name, NULL, NULL);
}

static void fold_book(struct book *into, const struct book *from)
{
	/* A book is an array of counters but for its last member. */
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

/* Leave the sums to the graph and the list of threads in one step, so that no reader counts twice.
 */
static void fold(struct thread *t)
{
	struct weir_graph *g = t->graph;

	lock_take(&g->threads_lock);
	for (int i = 0; i < t->n_locals; i++) {
		struct local *l = t->local[i];
		struct gone *gone = &g->gone[i];
		fold_book(&gone->book, &l->book);
		for (int c = 0; l->times && c < g->n_classes; c++) {
			fold_hist(&gone->times[c].wait, &l->times[c].wait);
			fold_hist(&gone->times[c].service, &l->times[c].service);
		}
		for (int o = 0; o < l->n_outboxes; o++) {
			book_add(&gone->link_events[o], book_read(&l->outbox[o].events));
			for (int c = 0; c < g->n_classes; c++)
				book_add(&gone->link_tried[o * WEIR_CLASSES_MAX + c],
				    book_read(&l->outbox[o].tried[c]));
		}
	}
	struct thread **at = &g->threads;
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	g->gone_moves += atomic_load_explicit(&t->moves, memory_order_relaxed) + 1;
	lock_release(&g->threads_lock);
}

void thread_leave(void)
{
	struct thread *t = thread_self();

	WEIR_ASSERT(t->dirty == NULL);
	fini_stages(t);
	fold(t);
	thread_free(t);
	thread_current = NULL;
	urcu_memb_unregister_thread();
}

void weir_thread_detach(void)
{
	thread_flush();
	thread_leave();
}

void thread_touch(int64_t now_ns)
{
	struct thread *t = thread_self();

	t->now_ns = now_ns;
	t->batch++;
}

int thread_abandon(void)
{
	struct thread *t = thread_self();
	int ended = 0;

	struct weir_event **ev = t->run_ev;
	int n = t->run_n;

	t->refused_by = WEIR_NO_STAGE; /* it may have died in ops->refused */
	/* An inline stage runs on t->offer, in front of which sit those that its door refused. */
	if (n > 0 && ev >= t->offer && ev < t->offer + WEIR_BATCH_MAX) {
		n += (int)(ev - t->offer);
		ev = t->offer;
	}
	for (int i = 0; i < n; i++) {
		if (ev[i]) {
			weir_event_finish(&ev[i], WEIR_EDIED);
			ended++;
		}
	}
	struct weir_stage *st = atomic_load(&t->running);
	if (st) {
		atomic_store(&t->local[st->id]->book.running_since_ns, 0);
		if (st->sink.policy->tick)
			atomic_fetch_sub(&st->sink.running, (unsigned)t->run_n);
	}
	atomic_store(&t->running, NULL);
	t->run_n = 0;
	return ended;
}

/* Move up to a batch of events from the outbox to t->offer; count them by class. */
static int unload(struct thread *t, struct outbox *o, int *per_class)
{
	int n = 0, counted = 0;

	while (o->head && n < WEIR_BATCH_MAX) {
		struct weir_event *ev = o->head;
		o->head = ev->next;
		if (n > 0 && ev->class_id != t->offer[n - 1]->class_id) {
			per_class[t->offer[n - 1]->class_id] += n - counted;
			counted = n;
		}
		t->offer[n++] = ev;
	}
	per_class[t->offer[n - 1]->class_id] += n - counted;
	if (!o->head)
		o->tail = &o->head;
	o->n -= n;
	return n;
}

static void flush_to_sink(struct thread *t, struct outbox *o)
{
	struct local *from = o->from;
	struct local *to = t->local[o->sink->id];
	int reason[WEIR_BATCH_MAX];

	while (o->head) {
		int per_class[WEIR_CLASSES_MAX] = {0};
		int n = unload(t, o, per_class);
		for (int c = 0; c < o->sink->queue.n_classes; c++)
			if (per_class[c])
				book_add(&o->tried[c], (uint64_t)per_class[c]);
		int taken =
		    sink_offer(o->sink, t->offer, n, from->stage->id, t->now_ns, &to->book, reason);
		for (int i = 0; i < n - taken; i++)
			per_class[t->offer[i]->class_id]--;
		for (int c = 0; c < o->sink->queue.n_classes; c++)
			if (per_class[c])
				book_add(
				    &from->book.class_book[c].completed, (uint64_t)per_class[c]);
		book_add(&from->book.running, (uint64_t)-taken);
		book_add(&o->events, (uint64_t)taken);
		if (o->sink->inlined &&
		    taken > 0) /* when the books are right: it may end the thread */
			o->sink->run(o->sink, t->offer + n - taken, taken);
		if (WEIR_UNLIKELY(taken < n))
			stage_refused(from->stage, o->outlet, t->offer, n - taken, reason);
	}
}

/* What was requeued goes back to where it was; only a closed graph has no use for it. */
static void flush_again(struct thread *t, struct outbox *o)
{
	struct local *l = o->from;
	struct sink *s = o->sink;

	while (o->head) {
		int per_class[WEIR_CLASSES_MAX] = {0}, why;
		int n = unload(t, o, per_class);
		int back = sink_take_back(s, t->offer, n, t->now_ns, &why);
		for (int i = back; i < n; i++)
			weir_event_finish(&t->offer[i], why);
		if (back > 0)
			book_add(&l->book.running, (uint64_t)-back);
		if (s->inlined && back > 0)
			s->run(s, t->offer, back);
	}
}

static void flush_to_mailbox(struct outbox *o)
{
	struct weir_event *head = o->head, **tail = o->tail;

	o->head = NULL;
	o->tail = &o->head;
	o->n = 0;
	mailbox_put(o->mailbox, head, tail);
}

bool thread_flush(void)
{
	struct thread *t = thread_self();
	bool any = t->dirty != NULL;

	if (any)
		moves_begin(t);
	while (t->dirty) {
		struct outbox *o = t->dirty;
		if (o->outlet == OUTLET_AGAIN)
			flush_again(t, o);
		else if (o->sink)
			flush_to_sink(t, o);
		else
			flush_to_mailbox(o);
		/* Only now, so that a thread that dies in an inline stage leaves nothing behind. */
		t->dirty = o->next;
		if (!t->dirty)
			t->dirty_tail = &t->dirty;
		o->dirty = false;
	}
	if (atomic_load_explicit(&t->moves, memory_order_relaxed) & 1)
		moves_end(t);
	if (WEIR_UNLIKELY(graph_draining(t->graph)))
		graph_pulse(t->graph);
	return any;
}

void weir_thread_flush(void)
{
	thread_touch(clock_now_ns());
	thread_flush();
}

/* Offer up to a batch; the refused end up in front of ev. Returns how many were refused. */
static int offer_chunk(struct weir_stage *to, struct weir_event **ev, int n, int *reason)
{
	struct thread *t = thread_self();
	int why[WEIR_BATCH_MAX];
	int taken =
	    sink_offer(&to->sink, ev, n, WEIR_NO_STAGE, t->now_ns, &t->local[to->id]->book, why);

	if (taken < n && reason)
		*reason = why[0];
	if (to->sink.inlined && taken > 0)
		to->sink.run(&to->sink, ev + n - taken, taken);
	for (int i = n - taken; i < n; i++)
		ev[i] = NULL;
	return n - taken;
}

int weir_offer(struct weir_stage *to, struct weir_event **ev, int n, int *reason)
{
	int refused = 0;

	WEIR_ASSERT(n >= 1 && thread_self()->run_n == 0); /* a handler emits */
	thread_touch(clock_now_ns());
	moves_begin(thread_self());
	for (int at = 0; at < n; at += WEIR_BATCH_MAX) {
		int chunk = n - at < WEIR_BATCH_MAX ? n - at : WEIR_BATCH_MAX;
		int left = offer_chunk(to, ev + at, chunk, reason);
		for (int i = 0; i < left; i++) {
			struct weir_event *back = ev[at + i];
			ev[at + i] = NULL;
			ev[refused++] = back;
		}
	}
	thread_flush();
	return n - refused;
}

bool weir_thread_running(const char **stage, const char **event_type)
{
	struct thread *t = thread_current;
	const struct weir_stage *st = t ? atomic_load(&t->running) : NULL;

	if (!st)
		return false;
	const struct weir_event_type *type = atomic_load(&t->running_type);
	*stage = st->name;
	*event_type = type ? type->name : "";
	return true;
}
