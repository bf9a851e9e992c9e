/* SPDX-License-Identifier: MIT */
/*
 * Detects and reports threads that do not return from a handler, and stages without a thread.
 *
 * A handler call that takes too long has up to three effects, each after a time of its own:
 *
 *   threads.stuck, if the call        the thread is "held": the other I/O threads of its source
 *   runs in an I/O thread             accept clients in its place
 *   HUNG_TIMES * threads.stuck        the call is "hung": the program may stop feeding a watchdog
 *                                     (weir_graph_hung)
 *   the grace time of a drain         the drain leaves the thread behind and reports it
 *
 * The member `trouble` of a stage's view describes why the stage cannot serve.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "graph/graph.h"
#include "event/local.h"
#include "sched/pool.h"

/* Multiple of `stuck` after which a call is hung. 10 is a guess: `stuck` is set to a time that is
 * unusual for the stage, and a call that takes ten times as long is unlikely to return. */
#define HUNG_TIMES 10

int64_t graph_in_call(const struct thread *t, struct weir_stage **st)
{
	int64_t loop_since_ns = atomic_load(&t->loop_since_ns);

	*st = atomic_load(&t->running);
	if (!*st || loop_since_ns != 0)
		return *st ? loop_since_ns : 0;
	return atomic_load_explicit(
	    &t->local[(*st)->id]->book.running_since_ns, memory_order_relaxed);
}

/* ---- checks of the control thread ---- */

static bool is_held(const struct thread *t, int64_t now_ns)
{
	struct weir_stage *st;
	int64_t since_ns = graph_in_call(t, &st);

	return since_ns != 0 && st->stuck_ns > 0 && now_ns - since_ns > st->stuck_ns;
}

static void wake_loops(struct weir_graph *g, const struct weir_stage *source)
    WEIR_REQUIRES(&g->threads_lock)
{
	for (struct thread *t = g->threads; t; t = t->next)
		if (t->link && t->source == source)
			t->link->wake(t->link);
}

void graph_watch_loops(struct weir_graph *g, int64_t now_ns)
{
	lock_take(&g->threads_lock);
	for (struct thread *t = g->threads; t; t = t->next) {
		bool held = t->link && is_held(t, now_ns);
		if (!t->link || held == atomic_load(&t->link->held))
			continue;
		atomic_store(&t->link->held, held);
		atomic_fetch_add(&t->source->loops_held, held ? 1 : -1);
		/* loops with a limit of clients share all that has come, and take over nothing */
		if (t->source->per_loop == 0)
			wake_loops(g, t->source);
	}
	lock_release(&g->threads_lock);
}

void graph_watch_hung(struct weir_graph *g, int64_t now_ns)
{
	struct weir_stage *hung = NULL, *st;
	int64_t first_ns = 0;

	lock_take(&g->threads_lock);
	for (const struct thread *t = g->threads; t; t = t->next) {
		int64_t since_ns = graph_in_call(t, &st);
		bool is = since_ns != 0 && st->stuck_ns > 0 &&
			  now_ns - since_ns > HUNG_TIMES * st->stuck_ns;
		if (is && (!hung || since_ns < first_ns)) {
			hung = st;
			first_ns = since_ns;
		}
	}
	lock_release(&g->threads_lock);
	atomic_store(&g->hung_since_ns, first_ns);
	atomic_store(&g->hung, hung);
}

int64_t weir_graph_hung(const struct weir_graph *g, const char **stage)
{
	const struct weir_stage *st = atomic_load(&g->hung);
	int64_t since_ns = atomic_load(&g->hung_since_ns);
	bool hangs = st && since_ns != 0; /* the two values may belong to different calls */

	*stage = hangs ? st->name : "";
	return hangs ? since_ns : 0;
}

/* ---- as text ---- */

static void append(char *text, size_t size, const char *fmt, ...) WEIR_PRINTF(3, 4);

static void append(char *text, size_t size, const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + n, size - n, fmt, args);
	va_end(args);
}

void graph_refusal_text(const struct pool_refusal *refusal, char *text, size_t size)
{
	if (refusal->by)
		snprintf(text, size, "stage '%.40s' refuses them (thread_init): %s",
		    refusal->by->name, weir_error_text(refusal->code));
	else
		snprintf(text, size, "%s", weir_error_text(refusal->code));
}

static void no_thread(struct weir_stage *st, char *text, size_t size)
{
	struct pool_refusal refusal = pool_refused(st->pool);
	char why[120] = "the last thread ended";

	if (refusal.code != 0)
		graph_refusal_text(&refusal, why, sizeof(why));
	snprintf(text, size, "the stage has no thread: %s", why);
}

/* Whether connections that a thread does not handle wait for it. */
static bool makes_wait(const struct thread *t)
{
	return t->link && t->source->per_loop != 1;
}

/* Describe in `text` the I/O thread that a handler of `st` has held up longest, if any, and whether
 * there are others. */
static void held_threads(struct weir_graph *g, const struct weir_stage *st, char *text, size_t size)
{
	int64_t now_ns = clock_now_ns(), first_ns = now_ns;
	struct weir_stage *in;
	char name[24] = "";
	int n = 0;

	lock_take(&g->threads_lock);
	for (const struct thread *t = g->threads; t; t = t->next) {
		int64_t since_ns = makes_wait(t) && is_held(t, now_ns) ? graph_in_call(t, &in) : 0;
		if (since_ns == 0 || in != st)
			continue;
		n++;
		if (since_ns < first_ns) {
			first_ns = since_ns;
			memcpy(name, t->name, sizeof(name));
		}
	}
	lock_release(&g->threads_lock);
	if (n > 0)
		snprintf(text, size,
		    "its handler has held I/O thread '%s' for %.1f s: connections on it wait%s",
		    name, (double)(now_ns - first_ns) / NS_PER_S,
		    n > 1 ? " (it also holds other I/O threads)" : "");
}

void graph_trouble(struct weir_graph *g, struct weir_stage *st, char *text, size_t size)
{
	*text = '\0';
	if (atomic_load(&g->phase) != GRAPH_RUNNING)
		return;
	if (st->pool && !pool_serves(st->pool))
		no_thread(st, text, size);
	else if (st->sink.inlined || st->sink.direct || (st->pool && st->pool->cores))
		held_threads(g, st, text, size);
}

/* ---- the end of a drain ---- */

/* Whether the thread keeps the graph from being freed: a handler thread that has not exited, or an
 * I/O thread inside a handler or ops->refused. */
static bool is_left(const struct thread *t)
{
	return (t->pool && !t->link) ||
	       (t->link && (atomic_load(&t->running) || atomic_load(&t->refusing)));
}

int graph_left(struct weir_graph *g, bool io_alone)
{
	int n = 0;

	lock_take(&g->threads_lock);
	for (const struct thread *t = g->threads; t; t = t->next)
		n += is_left(t) && !(io_alone && !t->link);
	lock_release(&g->threads_lock);
	return n;
}

static void say_left(const struct thread *t, int64_t now_ns, char *text, size_t size)
{
	struct weir_stage *st;
	int64_t since_ns = graph_in_call(t, &st);

	append(text, size, "%s", *text ? "; " : "");
	if (since_ns == 0) {
		st = atomic_load(&t->refusing);
		append(text, size, "%s%.40s%sthread '%s', outside any handler", st ? "stage '" : "",
		    st ? st->name : "", st ? "' in " : "", t->name);
		return;
	}
	int n = atomic_load_explicit(&t->local[st->id]->book.running_n, memory_order_relaxed);
	append(text, size, "stage '%.40s' (%.30s) in thread '%s' for %.1f s with %d event%s",
	    st->name, st->ops->name, t->name, (double)(now_ns - since_ns) / NS_PER_S, n,
	    n == 1 ? "" : "s");
}

int graph_say_left(struct weir_graph *g, char *text, size_t size)
{
	int64_t now_ns = clock_now_ns();
	int n = 0;

	*text = '\0';
	lock_take(&g->threads_lock);
	for (const struct thread *t = g->threads; t; t = t->next) {
		if (!is_left(t))
			continue;
		if (n++ < LEFT_TOLD)
			say_left(t, now_ns, text, size);
	}
	lock_release(&g->threads_lock);
	if (n > LEFT_TOLD)
		append(text, size, "; and %d more", n - LEFT_TOLD);
	return n;
}
