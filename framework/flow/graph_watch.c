/* SPDX-License-Identifier: MIT */
/*
 * The watchdog: handler calls that run longer than `threads: { stuck }` of their stage.
 *
 * Each such call is counted and logged once, with stage, event type and thread. The first of a stage
 * in STACK_EVERY_NS also gives its call stack (base/stack.h) and stands in the journal, and the pool
 * may grow by one thread around it, within its bounds and the budget. A hundred threads that hang at
 * once thus make a hundred lines, not a hundred stacks. The control thread's.
 */
#include "flow/graph.h"

#include <stdio.h>

#include <weir/log.h>

#include "base/clock.h"
#include "base/stack.h"
#include "control/journal.h"
#include "flow/local.h"
#include "sched/pool.h"

/* Guesses. A tick must not take long, for admission has ticks of its own in this thread: so many
 * calls are reported in one, and so long is a stack waited for (it takes tens of us). */
#define REPORTS_MAX    4
#define STACK_AWAIT_NS (50 * NS_PER_MS)
#define STACK_EVERY_NS (10 * NS_PER_S)

/* One stuck call, as it was when it was found. */
struct stuck {
	struct weir_stage *stage;
	const char *type;
	char thread[24];
	struct pool *pool; /* NULL: not a handler thread of a pool */
	int64_t for_ns;
	bool first; /* of its stage for a while */
	bool asked; /* for its stack */
};

static bool is_stuck(const struct thread *t, int64_t now_ns, struct stuck *s, int64_t *since_ns)
{
	s->stage = atomic_load(&t->running);
	if (!s->stage || s->stage->stuck_ns == 0)
		return false;
	*since_ns = atomic_load_explicit(
	    &t->local[s->stage->id]->book.running_since_ns, memory_order_relaxed);
	s->for_ns = now_ns - *since_ns;
	return *since_ns != 0 && s->for_ns > s->stage->stuck_ns && *since_ns != t->stuck_since_ns;
}

/* Find a call that was not reported yet. The thread can not leave while the lock is held, so its
 * number is its own when it is asked for its stack. */
static bool find_stuck(struct weir_graph *g, int64_t now_ns, struct stuck *s)
{
	bool found = false;
	int64_t since_ns;

	lock_take(&g->threads_lock);
	for (struct thread *t = g->threads; t && !found; t = t->next) {
		found = is_stuck(t, now_ns, s, &since_ns);
		if (!found)
			continue;
		const struct weir_event_type *type = atomic_load(&t->running_type);
		t->stuck_since_ns = since_ns;
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

static void log_stack(void)
{
	struct stack stack;
	char line[160];

	if (!stack_await(&stack, STACK_AWAIT_NS)) {
		weir_log(WEIR_LOG_WARN, "  no stack: the thread does not take signals");
		return;
	}
	/* The first two are the signal's. */
	for (int i = 2; i < stack.n; i++) {
		stack_line(&stack, i, line, sizeof(line));
		weir_log(WEIR_LOG_WARN, "  #%d %s", i - 2, line);
	}
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
	snprintf(d.rule, sizeof(d.rule), "%.16s on %.16s in thread %.23s for %lld ms",
	    s->stage->name, s->type, s->thread, (long long)(s->for_ns / NS_PER_MS));
	journal_add(journal, d);
}

void graph_watch(struct weir_graph *g, int64_t now_ns, struct journal *journal)
{
	struct stuck s = {0};

	for (int i = 0; i < REPORTS_MAX && find_stuck(g, now_ns, &s); i++) {
		atomic_fetch_add_explicit(&s.stage->stuck, 1, memory_order_relaxed);
		weir_log(WEIR_LOG_WARN,
		    "stage '%s' (%s): a handler is stuck on events of type '%s' for %.1f s in "
		    "thread "
		    "'%s'",
		    s.stage->name, s.stage->ops->name, s.type, (double)s.for_ns / NS_PER_S,
		    s.thread);
		if (s.asked)
			log_stack();
		if (s.first)
			note(g, &s, journal);
	}
}
