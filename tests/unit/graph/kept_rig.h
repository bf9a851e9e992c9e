/* SPDX-License-Identifier: MIT */
/* Shared by the tests of replicas: a stage type that counts in a state per core and notices if two
 * threads use one, and a core group with it. */
#ifndef WEIR_TESTS_UNIT_GRAPH_KEPT_RIG_H
#define WEIR_TESTS_UNIT_GRAPH_KEPT_RIG_H

#include "fixture/graph/probes.h"

#include <unistd.h>

#include "base/task.h"
#include "graph/graph.h"
#include "sched/cores.h"
#include "stage/replica.h"

#define EVENTS 4000
#define ODD    70

/* State of a replica. */
struct own {
	atomic_int users; /* threads in a callback; the framework promises 1 at most */
	int replica;
	int tid; /* of the thread that last called thread_init */
	uint64_t handled, again, stops, refreshes, begun, left;
	struct weir_event *held;
};

static atomic_int inits, finis, shared_by_two;
static atomic_uint_fast64_t sum_handled, sum_again, sum_stops, sum_left, stops_elsewhere;
static atomic_int moved;   /* events that came from another core */
static int calls, fail_at; /* number of the call of init that fails, from 1; 0: none */
static bool holds, requeues, dies;

static inline struct own *enter(struct weir_stage *st)
{
	struct own *own = weir_state(st);

	WEIR_ASSERT(own != NULL);
	if (atomic_fetch_add(&own->users, 1) != 0)
		atomic_fetch_add(&shared_by_two, 1);
	return own;
}

static inline void leave(struct own *own)
{
	atomic_fetch_sub(&own->users, 1);
}

static inline int kept_init(struct weir_stage *st, struct weir_err *err)
{
	struct own *own = enter(st);

	CU_ASSERT_EQUAL(own->handled, 0);
	own->replica = replica_entered();
	leave(own);
	if (++calls != fail_at) {
		atomic_fetch_add(&inits, 1);
		return 0;
	}
	snprintf(err->text, sizeof(err->text), "no room for another");
	return WEIR_ENOMEM;
}

static inline void kept_fini(struct weir_stage *st)
{
	struct own *own = enter(st);

	CU_ASSERT_EQUAL(own->replica, replica_entered());
	CU_ASSERT_PTR_NULL(own->held);
	atomic_fetch_add(&finis, 1);
	atomic_fetch_add(&sum_handled, own->handled);
	atomic_fetch_add(&sum_again, own->again);
	atomic_fetch_add(&sum_stops, own->stops);
	atomic_fetch_add(&sum_left, own->left);
	leave(own);
}

static inline void release(struct weir_stage *st, struct own *own)
{
	while (own->held) {
		struct weir_event *ev = own->held;
		own->held = ev->next;
		weir_emit(st, 0, &ev);
	}
}

static inline int kept_thread_init(struct weir_stage *st)
{
	struct own *own = weir_state(st);

	if (!own) /* the thread of the drain */
		return 0;
	own = enter(st);
	own->tid = (int)gettid();
	own->begun++;
	leave(own);
	return 0;
}

static inline void kept_thread_fini(struct weir_stage *st)
{
	if (!weir_state(st))
		return;
	struct own *own = enter(st);
	release(st, own);
	own->left++;
	leave(own);
}

/* Marks each event with the replica that handled it first. */
static inline void keep_one(struct weir_stage *st, struct own *own, struct weir_event **ev)
{
	struct probe *p = (struct probe *)*ev;

	if (p->producer == 0)
		p->producer = own->replica + 1;
	else if (p->producer != own->replica + 1)
		atomic_fetch_add(&moved, 1);
	if (requeues && (*ev)->key == 0) {
		(*ev)->key = 1;
		own->again++;
		weir_requeue(st, ev);
		return;
	}
	own->handled++;
	if (holds) {
		struct weir_event *held = *ev;
		weir_hold(st, ev);
		held->next = own->held;
		own->held = held;
		return;
	}
	weir_emit(st, 0, ev);
}

static inline void kept_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct own *own = enter(st);

	for (int i = 0; i < n; i++) {
		if (dies && ((struct probe *)ev[i])->seq == ODD) {
			leave(own);
			pthread_exit(NULL);
		}
		keep_one(st, own, &ev[i]);
	}
	leave(own);
}

static inline void kept_stop(struct weir_stage *st, int64_t until_ns)
{
	struct own *own = enter(st);

	(void)until_ns;
	if (own->stops++ == 0 && own->tid != (int)gettid())
		atomic_fetch_add(&stops_elsewhere, 1);
	release(st, own);
	leave(own);
}

static inline void kept_refresh(struct weir_stage *st, struct weir_stage *wanted)
{
	struct own *own = weir_state(st), *other = weir_state(wanted);

	CU_ASSERT_PTR_NOT_NULL_FATAL(own);
	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	CU_ASSERT_EQUAL(own->replica, other->replica);
	own->refreshes++;
}

static inline bool kept_renewed(
    struct weir_stage *st, struct weir_stage *wanted, char *text, size_t size)
{
	struct own *own = weir_state(st), *other = weir_state(wanted);

	CU_ASSERT_PTR_NOT_NULL_FATAL(other);
	snprintf(text, size, "replica %d", own->replica);
	return own->replica == task_cores() - 1; /* the last one */
}

static const struct weir_stage_ops kept_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_REPLICABLE,
    .name = "t.kept",
    .summary = "counts in a state per core",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .state_size = sizeof(struct own),
    .init = kept_init,
    .fini = kept_fini,
    .thread_init = kept_thread_init,
    .thread_fini = kept_thread_fini,
    .handle = kept_handle,
    .stop = kept_stop,
    .refresh = kept_refresh,
    .renewed = kept_renewed};

static inline void reset(int n)
{
	prepare(n);
	for (int i = 0; i < n; i++)
		probes[i].producer = 0;
	inits = finis = shared_by_two = moved = 0;
	sum_handled = sum_again = sum_stops = sum_left = stops_elsewhere = 0;
	calls = fail_at = 0;
	holds = requeues = dies = false;
}

static inline void in_group(
    struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	struct weir_stage_spec *s = fixture_stage(spec, name, use, to);

	weir_spec_text(&s->group, "core");
	weir_spec_text(&s->admission.policy, "none");
	fixture_set(s, "queue.limit", "20000"); /* so that all events fit into a cell */
	if (strcmp(use, "t.kept") == 0)
		fixture_set(s, "mode", "replicated");
}

/* Stages a, b and c of a core group; a and b are replicated. */
static inline struct weir_spec *chain(const char *schedule)
{
	struct weir_spec *spec = weir_spec_new("replicas");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");

	weir_spec_text(&g->schedule, schedule);
	in_group(spec, "a", "t.kept", "b");
	in_group(spec, "b", "t.kept", "c");
	in_group(spec, "c", "t.end", NULL);
	return spec;
}

static inline void offer(struct weir_graph *g, int n, int run)
{
	weir_thread_attach(g, "test");
	CU_ASSERT_PTR_NULL(weir_state(weir_graph_stage(g, "a"))); /* no core, no replica */
	fixture_offer_all(weir_graph_stage(g, "a"), probes, n, run);
}

static inline uint64_t at_cores(struct weir_graph *g, const char *name, bool from_queue)
{
	struct weir_graph_view *v;
	uint64_t n = 0;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	for (int i = 0; i < v->n_stages; i++)
		for (int k = 0; strcmp(v->stages[i].name, name) == 0 && k < v->stages[i].n_cores;
		     k++)
			n += from_queue ? v->stages[i].cores[k].from_queue
					: v->stages[i].cores[k].events;
	weir_graph_view_free(v);
	return n;
}

static inline void finish(struct weir_graph *g, int n)
{
	weir_thread_detach();
	finish_graph(g, 0);
	CU_ASSERT_EQUAL(fixture_ended(), (uint64_t)n);
	check_each_once(n);
	CU_ASSERT_EQUAL(atomic_load(&finis), 2 * task_cores());
	CU_ASSERT_EQUAL(atomic_load(&inits), 2 * task_cores());
	CU_ASSERT_EQUAL(atomic_load(&shared_by_two), 0);
}

#endif
