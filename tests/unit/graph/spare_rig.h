/* SPDX-License-Identifier: MIT */
/* Shared by the tests of spare threads: a group of one core or more, one of which sleeps in a
 * handler of stage w until the test wakes it. Stage a sends to b. */
#ifndef WEIR_TESTS_UNIT_GRAPH_SPARE_RIG_H
#define WEIR_TESTS_UNIT_GRAPH_SPARE_RIG_H

#include "fixture/graph/probes.h"

#include <semaphore.h>

#include "base/task.h"
#include "event/local.h"
#include "graph/graph.h"
#include "sched/spare.h"

#define EVENTS 400
/* seq of the event that sleeps in t.sleep */
#define SLEEPER 0

static sem_t bed;
static atomic_int asleep_in; /* number of handlers that sleep */
static atomic_int sleeps;    /* how often the handler at the event sleeps; 0: once */
static atomic_int slept;     /* sleeps that have ended */

static inline void sleep_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq != SLEEPER)
			continue;
		atomic_fetch_add(&asleep_in, 1);
		do
			while (sem_wait(&bed) != 0)
				continue;
		while (atomic_fetch_add(&slept, 1) + 1 < atomic_load(&sleeps));
		atomic_fetch_sub(&asleep_in, 1);
	}
	end_handle(st, ev, n);
}

static const struct weir_stage_ops sleep_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_REPLICABLE,
    .name = "t.sleep",
    .summary = "sleeps at one event",
    .accepts = &probe_type,
    .handle = sleep_handle};

static inline struct weir_stage_spec *in_group(
    struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	struct weir_stage_spec *s = fixture_core_stage(spec, name, use, to);

	fixture_set(s, "cohort.max", "1");
	return s;
}

/* One core, or as many as `cores` says: w sleeps; a passes on to b. */
static inline struct weir_spec *spec_new(const char *cores, const char *use)
{
	struct weir_spec *spec = weir_spec_new("spare");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");

	weir_spec_text(&g->schedule, "fifo");
	weir_spec_text(&g->cores, cores);
	g->threads.stuck_ns = 0; /* the signal of the watchdog would wake the sleeper */
	in_group(spec, "w", "t.sleep", NULL);
	in_group(spec, "a", use, "b");
	in_group(spec, "b", "t.end", NULL);
	prepare(EVENTS);
	sem_init(&bed, 0, 0);
	atomic_store(&sleeps, 0);
	atomic_store(&slept, 0);
	return spec;
}

/* The same for two cores; NULL if the machine has fewer. */
static inline struct weir_spec *spec_of_two(const char *cores)
{
	return task_cores() < 2 ? NULL : spec_new(cores, "t.pass");
}

static inline struct core_group *group_of(struct weir_graph *g)
{
	return weir_graph_stage(g, "w")->pool->cores;
}

/* Whether the thread of the spare of core `k` is there. */
static inline bool spare_is(struct weir_graph *g, int k, int slot)
{
	struct core_group *group = group_of(g);
	struct handler *h = atomic_load(&group->pool->handler[group->first_spare + k]);

	return h && atomic_load(&h->slot) == slot;
}

static inline bool all_gone(struct weir_graph *g)
{
	struct core_group *group = group_of(g);
	bool gone = true;

	for (int i = group->first_spare; i < atomic_load(&group->pool->n_slots); i++) {
		struct handler *h = atomic_load(&group->pool->handler[i]);
		gone &= !h || atomic_load(&h->slot) == HANDLER_EMPTY;
	}
	return gone;
}

static inline void offer(struct weir_graph *g, const char *name, int first, int n)
{
	fixture_offer_all(weir_graph_stage(g, name), &probes[first], n, n < 16 ? n : 16);
}

/* The first event sleeps in w. */
static inline struct weir_graph *start_asleep(struct weir_spec *spec)
{
	weir_log_set_fd(-1);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	offer(g, "w", 0, 1);
	FIXTURE_AWAIT(atomic_load(&asleep_in) == 1);
	return g;
}

/* All events that come from outside pass a and b while the core sleeps. */
static inline void serve_others(struct weir_graph *g)
{
	offer(g, "a", 1, EVENTS - 1);
	FIXTURE_AWAIT(fixture_ended() == EVENTS - 1);
	CU_ASSERT_EQUAL(atomic_load(&asleep_in), 1);
}

static inline void wake(void)
{
	sem_post(&bed);
}

/* The first `n` events have ended. */
static inline void finish_of(struct weir_graph *g, int n)
{
	check_each_once(n);
	FIXTURE_AWAIT(all_gone(g));
	weir_thread_detach();
	finish_graph(g, 0);
	sem_destroy(&bed);
	weir_log_set_fd(2);
}

static inline void finish(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	finish_of(g, n);
}

static inline struct weir_core_view core_view(struct weir_graph *g)
{
	struct weir_graph_view *v;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	CU_ASSERT_EQUAL_FATAL(v->n_groups, 1);
	struct weir_core_view core = v->groups[0].core[0];
	weir_graph_view_free(v);
	return core;
}

static inline bool is_blocked(struct weir_graph *g)
{
	return core_view(g).blocked_ns > 0;
}

#endif
