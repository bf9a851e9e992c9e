/* SPDX-License-Identifier: MIT */
/*
 * Registers threads with a graph and unregisters them, and handles threads that exit inside a
 * handler; see thread.h.
 *
 * The locals of the stages that a thread runs, and its outboxes for the first MAILBOX_SET
 * mailboxes, are allocated when the thread registers. Other locals are allocated at first use
 * (graph/books.c).
 *
 *   enter --thread_init of its stages--> registered --leave--> gone; its totals remain
 *                                         |     ^
 *                          exits in a handler   resume, in another system thread
 *                                         v     |
 *                                        passed on
 */
#include "stage/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <urcu/urcu-memb.h>

#include <weir/log.h>

#include "base/clock.h"
#include "graph/graph.h"
#include "event/local.h"
#include "sched/pool.h"
#include "stage/replica.h"

/* Call thread_fini of the thread's stages, while `t` is still `thread_current`. */
static void fini_stages(struct thread *t)
{
	for (int i = 0; i < t->n_locals; i++) {
		struct local *l = t->local[i];
		if (l && l->thread_ready && l->stage->ops->thread_fini)
			l->stage->ops->thread_fini(l->stage);
		if (l)
			l->thread_ready = false;
	}
}

static void thread_free(struct thread *t)
{
	if (!t)
		return;
	for (int i = 0; i < MAILBOX_SETS; i++)
		free(t->mail[i]);
	graph_books_free(t);
	slab_leave(&t->slab);
	free(t);
}

/* Allocate a thread struct with the locals of the stages that the thread runs or, if `all` is set,
 * of every stage. Returns NULL if out of memory. */
static struct thread *thread_new(
    struct weir_graph *g, const char *name, struct weir_stage *source, struct pool *pool, bool all)
{
	struct thread *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->graph = g;
	t->drain = &g->drain;
	t->slowest = g->slowest;
	t->payloads = g->payloads;
	t->slab.depot = g->depot;
	t->pool = pool;
	t->source = source;
	snprintf(t->name, sizeof(t->name), "%s", name);
	t->dirty_tail = &t->dirty;
	t->refused_by = WEIR_NO_STAGE;
	t->number = -1;
	t->now_ns = clock_now_ns();
	t->mail[0] = mailbox_outboxes_new();
	if (t->mail[0] && graph_books_make(t, all) == 0)
		return t;
	thread_free(t);
	return NULL;
}

static _Thread_local const struct weir_stage *refused_by;

const struct weir_stage *thread_refused_by(void)
{
	return refused_by;
}

static int init_stage(struct local *l)
{
	const struct weir_stage_ops *ops = l->stage->ops;

	/* The state may have been used by an earlier system thread or by a thread_init that
	 * failed. */
	if (l->thread_state)
		memset(l->thread_state, 0, ops->thread_state_size);
	int rc = ops->thread_init ? ops->thread_init(l->stage) : 0;

	l->thread_ready = rc == 0;
	return rc <= 0 ? rc : WEIR_ENOMEM;
}

/* Whether the calling thread has no replica of the stage, and so will not run it: a spare thread
 * (sched/spare.h). */
static bool lacks_state(const struct weir_stage *st)
{
	return st->replicas && replica_entered() >= replicas_of(st);
}

/* Call thread_init of all stages, even after a failure: a thread that must not fail
 * (thread_enter_spare) continues without the stages whose thread_init has failed. Returns the first
 * error. */
static int init_stages(struct thread *t)
{
	int first = 0;

	refused_by = NULL;
	for (int i = 0; i < t->n_locals; i++) {
		struct local *l = t->local[i];
		int rc = l && l->runs && !lacks_state(l->stage) ? init_stage(l) : 0;
		if (rc != 0 && first == 0) {
			first = rc;
			refused_by = l->stage;
		}
	}
	return first;
}

bool thread_prepare(struct local *l)
{
	return init_stage(l) == 0;
}

static void attach(struct thread *t)
{
	WEIR_ASSERT(thread_current == NULL);
	urcu_memb_register_thread();
	thread_current = t;
	/* The lock is needed for thread_resume, where the thread is already in the list. */
	lock_take(&t->graph->threads_lock);
	t->tid = (int)gettid();
	lock_release(&t->graph->threads_lock);
}

static void detach(struct thread *t)
{
	fini_stages(t);
	thread_current = NULL;
	urcu_memb_unregister_thread();
}

static void enlist(struct thread *t)
{
	struct weir_graph *g = t->graph;

	lock_take(&g->threads_lock);
	t->next = g->threads;
	g->threads = t;
	graph_books_list(g, t);
	lock_release(&g->threads_lock);
}

/* Make `t` the calling thread's struct. On failure `t` still belongs to the caller. */
static int become(struct thread *t)
{
	attach(t);
	int rc = init_stages(t);
	if (rc != 0)
		detach(t);
	else
		enlist(t);
	return rc;
}

static int enter(struct weir_graph *g, const char *name, struct weir_stage *source,
    struct thread_link *link, struct pool *pool)
{
	refused_by = NULL;
	struct thread *t = thread_new(g, name, source, pool, false);
	if (!t)
		return WEIR_ENOMEM;
	t->link = link;
	int rc = become(t);
	if (rc != 0)
		thread_free(t);
	return rc;
}

int thread_spare_new(struct weir_graph *graph, const char *name, struct thread **spare)
{
	*spare = thread_new(graph, name, NULL, NULL, true);
	return *spare ? 0 : WEIR_ENOMEM;
}

static void say_refused(const struct thread *t, int rc)
{
	weir_log(WEIR_LOG_WARN,
	    "stage '%s' (%s) refuses thread '%s' (thread_init): %s; the events of the stage fail "
	    "in this thread until the stage accepts the thread",
	    refused_by->name, refused_by->ops->name, t->name, weir_error_text(rc));
}

void thread_enter_spare(struct thread *spare)
{
	attach(spare);
	int rc = init_stages(spare);
	enlist(spare);
	if (rc != 0)
		say_refused(spare, rc);
}

struct thread *thread_step_out(void)
{
	struct thread *t = thread_current;

	if (t)
		urcu_memb_unregister_thread();
	thread_current = NULL;
	return t;
}

void thread_step_in(struct thread *t)
{
	if (t)
		urcu_memb_register_thread();
	thread_current = t;
}

void thread_spare_free(struct thread *spare)
{
	thread_free(spare);
}

int thread_enter(
    struct weir_graph *graph, const char *name, struct weir_stage *source, struct thread_link *link)
{
	return enter(graph, name, source, link, NULL);
}

int thread_enter_core(struct weir_graph *graph, const char *name, struct weir_stage *source,
    struct thread_link *link, struct pool *pool)
{
	return enter(graph, name, source, link, pool);
}

int thread_enter_pool(struct weir_graph *graph, const char *name, struct pool *pool)
{
	return enter(graph, name, NULL, NULL, pool);
}

int weir_thread_attach(struct weir_graph *graph, const char *name)
{
	return enter(graph, name, NULL, NULL, NULL);
}

/* Add the thread's counters to the common books and remove the thread from the list in one critical
 * section, so that no reader counts them twice. */
static void fold(struct thread *t)
{
	struct weir_graph *g = t->graph;

	lock_take(&g->threads_lock);
	graph_books_fold(g, t);
	struct thread **at = &g->threads;
	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	g->gone_moves += atomic_load_explicit(&t->moves, memory_order_relaxed) + 1;
	if (t->link && atomic_exchange(&t->link->held, false))
		atomic_fetch_sub(&t->source->loops_held, 1);
	lock_release(&g->threads_lock);
}

void thread_end(void)
{
	struct thread *t = thread_self();

	fini_stages(t);
	/* The flush may have run inline stages, for which thread_prepare has called thread_init
	 * again. */
	while (thread_flush())
		fini_stages(t);
}

bool thread_in_handler(void)
{
	const struct thread *t = thread_self();

	return atomic_load(&t->running) || atomic_load(&t->refusing);
}

void thread_leave(void)
{
	struct thread *t = thread_self();

	thread_end(); /* before fold, since stages may still change counters */
	WEIR_ASSERT(t->dirty == NULL);
	fold(t);
	detach(t);
	thread_free(t);
}

void weir_thread_detach(void)
{
	thread_flush();
	thread_leave();
}

/* Finish the events of the current batch as WEIR_EDIED. */
static void abandon(struct thread *t)
{
	struct weir_event **ev = t->run_ev;
	int n = t->run_n;

	/* the thread may have exited in ops->refused, which leaves another value here */
	t->refused_by = WEIR_NO_STAGE;
	/* The batch of an inline stage is in t->offer, after the events that its admission has
	 * refused; finish those events, too. */
	if (n > 0 && ev >= t->offer && ev < t->offer + WEIR_BATCH_MAX) {
		n += (int)(ev - t->offer);
		ev = t->offer;
	}
	for (int i = 0; i < n; i++)
		if (ev[i])
			weir_event_finish(&ev[i], WEIR_EDIED);
	hold_settle(t);
	struct weir_stage *st = atomic_load(&t->running);
	if (st) {
		struct book *book = &t->local[st->id]->book;
		atomic_store(&book->running_since_ns, 0);
		book_changed(book);
		hold_forget_stays(t);
		if (st->sink.policy->tick)
			atomic_fetch_sub(&st->sink.running, (unsigned)t->run_n);
	}
	atomic_store(&t->running, NULL);
	atomic_store(&t->refusing, NULL);
	t->run_n = 0;
	if (st && st->sink.direct) /* the batch no longer takes up a part of the width */
		hold_wake(t, st);
}

void thread_died(struct thread_deaths *deaths)
{
	struct thread *t = thread_self();
	const struct weir_stage *st = atomic_load(&t->running);

	if (!st)
		st = atomic_load(&t->refusing);
	atomic_store(&deaths->last_in, st);
	atomic_fetch_add(&deaths->n, 1);
	abandon(t);
	while (thread_flush())
		continue;
}

struct thread *thread_pass_on(void)
{
	struct thread *t = thread_self();

	WEIR_ASSERT(t->dirty == NULL);
	detach(t);
	return t;
}

void thread_resume(struct thread *t)
{
	attach(t);
	int rc = init_stages(t);
	if (rc != 0)
		say_refused(t, rc);
}
