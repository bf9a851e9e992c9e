/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: finds and reports handler calls that take longer than `threads: { stuck }` of their
 * stage.
 *
 * Each such call is counted and logged once, with stage, event type and thread. The first stuck
 * call of a stage in STACK_EVERY_NS is also journalled and logged with its call stack
 * (base/stack.h), and the pool may grow by one thread, within its bounds and the budget, to replace
 * the stuck thread. So if a hundred threads hang at the same time, a hundred lines are logged, but
 * not a hundred stacks. Runs in the control thread.
 */
#include "graph/graph.h"

#include <stdio.h>
#include <string.h>

#include <weir/log.h>

#include "base/clock.h"
#include "base/stack.h"
#include "control/journal.h"
#include "event/local.h"
#include "sched/pool.h"
#include "stage/stage.h"

/* A round must be short, since admission ticks run in the same thread. So at most REPORTS_MAX calls
 * are reported per round, and the wait for a stack, which usually takes tens of us, is limited to
 * STACK_AWAIT_NS. STACK_EVERY_NS limits the stacks of each stage. All three values are guesses. */
#define REPORTS_MAX    4
#define STACK_AWAIT_NS (50 * NS_PER_MS)
#define STACK_EVERY_NS (10 * NS_PER_S)

/* A stuck call, as of the time when it was found. */
struct stuck {
	struct weir_stage *stage;
	const char *type;
	char thread[24];
	struct pool *pool; /* NULL if the thread is not a handler thread of a pool */
	int64_t since_ns, for_ns;
	bool first; /* the stage's first stuck call in STACK_EVERY_NS */
	bool asked; /* the thread's call stack has been requested */
};

/* Return the start time of the handle call that thread `t` is running at stage `id`, or 0 if there
 * is none. */
static int64_t since_of(const struct weir_graph *g, const struct thread *t, int id)
    WEIR_REQUIRES(&g->threads_lock)
{
	const struct local *l = g->gone[id].books;

	while (l && l->thread != t)
		l = l->next;
	return l ? atomic_load_explicit(&l->book.running_since_ns, memory_order_relaxed) : 0;
}

static bool is_stuck(const struct weir_graph *g, const struct thread *t, int64_t now_ns,
    struct stuck *s, int64_t *since_ns) WEIR_REQUIRES(&g->threads_lock)
{
	s->stage = atomic_load(&t->running);
	if (!s->stage || s->stage->stuck_ns == 0)
		return false;
	*since_ns = atomic_load(&t->loop_since_ns);
	if (*since_ns == 0)
		*since_ns = since_of(g, t, s->stage->id);
	s->for_ns = now_ns - *since_ns;
	return *since_ns != 0 && s->for_ns > s->stage->stuck_ns && *since_ns != t->stuck_since_ns;
}

/* Find a stuck call that has not been reported yet. The call stack is requested with the lock held:
 * the thread cannot exit meanwhile, so its thread id is valid. */
static bool find_stuck(struct weir_graph *g, int64_t now_ns, struct stuck *s)
{
	bool found = false;
	int64_t since_ns;

	lock_take(&g->threads_lock);
	for (struct thread *t = g->threads; t && !found; t = t->next) {
		found = is_stuck(g, t, now_ns, s, &since_ns);
		if (!found)
			continue;
		const struct weir_event_type *type = atomic_load(&t->running_type);
		t->stuck_since_ns = s->since_ns = since_ns;
		s->type = type ? type->name : "?";
		s->pool = t->pool;
		snprintf(s->thread, sizeof(s->thread), "%s", t->name);
		bool due = s->stage->stuck_shown_ns == 0 ||
			   now_ns - s->stage->stuck_shown_ns >= STACK_EVERY_NS;
		s->asked = due && stack_ask(t->tid);
		if (due)
			s->stage->stuck_shown_ns = now_ns;
		s->first = due;
	}
	lock_release(&g->threads_lock);
	return found;
}

/* Log the stack that was asked for, and add its lines to text[size], as many as fit. */
static void log_stack(char *text, size_t size)
{
	struct symbol_file file = {0};
	struct stack stack;
	char line[200];
	size_t n = 0;

	if (!stack_await(&stack, STACK_AWAIT_NS)) {
		weir_log(WEIR_LOG_WARN, "  no stack: the thread did not handle the signal");
		return;
	}
	/* Skip the first two frames, which belong to the signal. */
	for (int i = 2; i < stack.n; i++) {
		stack_line(&stack, i, &file, line, sizeof(line));
		weir_log(WEIR_LOG_WARN, "  #%d %s", i - 2, line);
		if (n + strlen(line) + 2 <= size)
			n += (size_t)snprintf(text + n, size - n, "%s\n", line);
	}
	symbol_file_close(&file);
}

/* Keep the call and its stack for views. */
static void keep(struct weir_graph *g, const struct stuck *s, const char *stack)
{
	struct stuck_call *call = &s->stage->stuck_call;

	lock_take(&g->threads_lock);
	call->since_ns = s->since_ns;
	call->view = (struct weir_stuck_view){
	    .id = atomic_load_explicit(&s->stage->stuck, memory_order_relaxed),
	    .wall_ns = clock_wall_ns(),
	    .for_ns = s->for_ns};
	snprintf(call->view.thread, sizeof(call->view.thread), "%s", s->thread);
	snprintf(call->view.type, sizeof(call->view.type), "%s", s->type);
	snprintf(call->view.stack, sizeof(call->view.stack), "%s", stack);
	lock_release(&g->threads_lock);
}

void graph_stuck_view(struct weir_graph *g, const struct weir_stage *st, struct weir_stuck_view *v)
{
	struct weir_stage *in;

	if (atomic_load_explicit(&st->stuck, memory_order_relaxed) == 0)
		return;
	lock_take(&g->threads_lock);
	*v = st->stuck_call.view;
	int64_t since_ns = st->stuck_call.since_ns;
	for (const struct thread *t = g->threads; t && since_ns != 0; t = t->next)
		v->runs |= graph_in_call(t, &in) == since_ns && in == st;
	lock_release(&g->threads_lock);
	if (v->runs)
		v->for_ns = clock_now_ns() - since_ns;
}

static void note(struct weir_graph *g, const struct stuck *s, struct journal *journal)
{
	struct weir_decision d = {0};
	const char *pool = s->pool ? s->pool->name : s->stage->name;

	d.from = s->pool ? atomic_load(&s->pool->target) : 0;
	d.to = s->pool ? graph_grow_around(g, s->pool) : 0;
	snprintf(d.stage, sizeof(d.stage), "%s", pool);
	snprintf(d.actor, sizeof(d.actor), "watchdog");
	snprintf(d.action, sizeof(d.action), "stuck");
	snprintf(d.rule, sizeof(d.rule), "%.16s handles %.14s in thread %.23s for %lld ms",
	    s->stage->name, s->type, s->thread, (long long)(s->for_ns / NS_PER_MS));
	journal_add(journal, d);
}

/* Report I/O threads that have exited in a handler, as control.c does for the threads of pools. */
static void note_deaths(struct weir_stage *st, struct journal *journal)
{
	const struct weir_stage *in = atomic_load(&st->deaths.last_in);
	uint64_t n = atomic_load(&st->deaths.n);
	struct weir_decision d = {0};

	if (n == st->deaths_told)
		return;
	snprintf(d.stage, sizeof(d.stage), "%s", st->name);
	snprintf(d.actor, sizeof(d.actor), "repair");
	snprintf(d.action, sizeof(d.action), "thread_died");
	snprintf(d.rule, sizeof(d.rule), "%d I/O thread(s) ended inside a handler of stage '%.24s'",
	    (int)(n - st->deaths_told), in ? in->name : "?");
	st->deaths_told = n;
	journal_add(journal, d);
	weir_log(WEIR_LOG_WARN, "source '%s': %s, and were replaced", st->name, d.rule);
}

void graph_watch(struct weir_graph *g, int64_t now_ns, struct journal *journal)
{
	struct stuck s = {0};

	for (int i = 0; i < g->n_stages; i++)
		note_deaths(g->stages[i], journal);
	for (int i = 0; i < REPORTS_MAX && find_stuck(g, now_ns, &s); i++) {
		atomic_fetch_add_explicit(&s.stage->stuck, 1, memory_order_relaxed);
		weir_log(WEIR_LOG_WARN,
		    "stage '%s' (%s): a handler is stuck on events of type '%s' for %.1f s in "
		    "thread "
		    "'%s'",
		    s.stage->name, s.stage->ops->name, s.type, (double)s.for_ns / NS_PER_S,
		    s.thread);
		char stack[sizeof(s.stage->stuck_call.view.stack)] = "";
		if (s.asked)
			log_stack(stack, sizeof(stack));
		if (s.first) {
			keep(g, &s, stack);
			note(g, &s, journal);
		}
	}
}
