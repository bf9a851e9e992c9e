/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation, then the n-th thread creation, fails, n = 1, 2, ... until a whole server
 * life passes without a failure: load the YAML, build, start with listening sockets, move events
 * through pools, change a knob, take a view, drain, free.
 *
 * Whatever fails, nothing may crash, hang or leak (the sanitizer job checks that), every accepted
 * event is finished exactly once, and the counters balance. When a thread cannot be created the
 * server either reports it at start, or runs and creates the thread later.
 */
#include "fixture/graph/graph.h"

#include <malloc.h>

#include "config.h"
#include "cunit_main.h"
#include "event/queue.h"
#include "graph/graph.h"
#include "fault/inject.h"

#define N 200

static struct probe probes[N];

static const char yaml[] =
    "weir: 1\n"
    "name: fault\n"
    "defaults: { threads: { max: 2 } }\n"
    "classes:\n"
    "  first: { match: { path: /a* } }\n"
    "  last: {}\n"
    "groups: { g: { threads: { min: 1, max: 2 } } }\n"
    "stages:\n"
    "  web: { use: http.server, with: { listen: \"127.0.0.1:0\" }, to: { request: site } }\n"
    "  site: { use: respond, with: { body: hello }, threads: inline }\n";

static const char graph_yaml[] =
    "weir: 1\n"
    "name: fault\n"
    "groups: { g: { threads: { min: 1, max: 2 } } }\n"
    "stages:\n"
    "  a: { use: t.pass, group: g, to: b }\n"
    "  b: { use: t.pass, mode: partitioned, key: producer, to: h,\n"
    "       threads: { min: 2, max: 2 } }\n"
    "  h: { use: hold, with: { time: 1ms, capacity: 16 }, threads: 1, to: c }\n"
    "  c: { use: t.end, cohort: { max: 8, by: producer }, group: g }\n";

/* b and d get their events through cells, c through its queue. */
static const char cores_yaml[] = "weir: 1\n"
				 "name: fault\n"
				 "groups: { g: { schedule: wavefront, cores: 2 } }\n"
				 "defaults: { admission: { policy: none } }\n"
				 "stages:\n"
				 "  a: { use: t.pass, group: g, to: b }\n"
				 "  b: { use: t.pass, group: g, to: c }\n"
				 "  c: { use: t.pass, group: g, local: never, to: d }\n"
				 "  d: { use: t.end, group: g }\n";

static void start_of(int *rc, struct weir_graph **g, const char *text, size_t n)
{
	static struct weir_errs errs;
	struct weir_spec *spec = NULL;

	memset(&errs, 0, sizeof(errs));
	*g = NULL;
	*rc = config_load_text(text, n, "fault.yaml", &spec, &errs);
	if (*rc == 0)
		*rc = weir_graph_build(spec, g, &errs);
	if (*rc != 0) {
		weir_spec_free(spec);
		*g = NULL;
	} else {
		*rc = weir_graph_start(*g, &errs);
	}
	if (*rc != 0)
		CU_ASSERT(errs.total > 0); /* a failure has a message */
	/* Without an injected fault nothing may fail: print why it did. */
	if (*rc != 0 && atomic_load(&fault_fired) == 0) {
		fprintf(stderr, "%s: %s\n", errs.err[0].text, errs.err[0].hint);
		CU_FAIL("failed without a fault");
	}
}

static void traffic(struct weir_graph *g)
{
	struct weir_event *ev[N];
	struct weir_graph_view *view;
	struct weir_profile *profile;
	char why[256];

	if (weir_thread_attach(g, "test") != 0)
		return;
	for (int i = 0; i < N; i++) {
		probes[i] = (struct probe){.producer = i % 5, .seq = (uint64_t)i};
		weir_event_init(&probes[i].ev, &probe_type, 1);
		ev[i] = &probes[i].ev;
	}
	uint64_t before = fixture_ended();
	int taken = weir_offer(weir_graph_stage(g, "a"), ev, N, NULL);
	for (int i = 0; i < N - taken; i++)
		weir_event_finish(&ev[i], WEIR_EQUEUE);
	weir_graph_set(g, "b", "threads.max", "3", why, sizeof(why));
	if (weir_graph_view(g, &view) == 0) { /* a view is whole or does not exist */
		CU_ASSERT_EQUAL(view->n_stages, g->n_stages);
		CU_ASSERT_TRUE(view->n_stages > 0 && view->stages[view->n_stages - 1].name);
		weir_graph_view_free(view);
	}
	if (weir_graph_profile(g, &profile) == 0) {
		CU_ASSERT_EQUAL(profile->n_stages, g->n_stages);
		CU_ASSERT_TRUE(profile->stage[0].n_rows > 0);
		weir_graph_profile_free(profile);
	}
	FIXTURE_AWAIT(fixture_ended() == before + N);
	for (int i = 0; i < N; i++)
		CU_ASSERT_EQUAL(atomic_load(&probes[i].finishes), 1);
	weir_thread_detach();
}

/* One life in which the n-th call fails. Returns whether that call was reached. */
static bool life(atomic_long *which, long n, const char *text, size_t size, bool events)
{
	struct weir_graph *g = NULL;
	struct weir_drain_report r;
	int rc;

	atomic_store(&fault_fired, 0);
	atomic_store(which, n);
	start_of(&rc, &g, text, size);
	if (rc == 0 && events)
		traffic(g);
	if (rc == 0) {
		weir_graph_drain(g, 5000000000LL, &r);
		CU_ASSERT_EQUAL(r.law_error, 0);
	}
	weir_graph_free(g);
	atomic_store(which, -1);
	return atomic_load(&fault_fired) > 0;
}

static void sweep(atomic_long *which, const char *text, size_t size, bool events, long at_least)
{
	long n = 0;

	while (life(which, n, text, size, events))
		n++;
	printf("(%ld failures) ", n);
	CU_ASSERT(n >= at_least);
}

static void test_allocations_of_a_server(void)
{
	sweep(&fault_alloc_in, yaml, sizeof(yaml) - 1, false, 100);
}

static void test_allocations_of_a_graph(void)
{
	sweep(&fault_alloc_in, graph_yaml, sizeof(graph_yaml) - 1, true, 100);
}

static void test_allocations_of_cores(void)
{
	sweep(&fault_alloc_in, cores_yaml, sizeof(cores_yaml) - 1, true, 100);
}

static void test_threads_of_a_server(void)
{
	sweep(&fault_thread_in, yaml, sizeof(yaml) - 1, false, 2);
}

static void test_threads_of_a_graph(void)
{
	sweep(&fault_thread_in, graph_yaml, sizeof(graph_yaml) - 1, true, 4);
}

static void test_threads_of_cores(void)
{
	sweep(&fault_thread_in, cores_yaml, sizeof(cores_yaml) - 1, true, 2);
}

static void test_prepare(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	weir_log_set_fd(-1);
	CU_ASSERT_FALSE(life(&fault_alloc_in, -1, yaml, sizeof(yaml) - 1, false));
}

/* One of the two rings of a lane by key cannot be allocated: nothing is queued, nothing is lost, and
 * the other ring is freed. */
static void test_lane_that_cannot_grow(void)
{
	struct weir_event *ev[N];
	struct queue q;
	size_t before = 0;

	for (int i = 0; i < N; i++)
		ev[i] = &probes[i].ev;
	CU_ASSERT_EQUAL_FATAL(queue_init(&q, 1, 1, 1, true, false), 0);
	lock_take(&q.lock);
	for (int i = 0; i < 40; i++) {
		before = i == 20 ? mallinfo2().uordblks : before; /* malloc's caches are filled */
		atomic_store(&fault_alloc_in, i % 2);
		CU_ASSERT_EQUAL(queue_push_locked(&q, ev, N), 0);
		atomic_store(&fault_alloc_in, -1);
	}
	/* 0 with a sanitizer, which finds leaks itself */
	CU_ASSERT_EQUAL(mallinfo2().uordblks, before);
	CU_ASSERT_EQUAL(queue_length(&q), 0);
	lock_release(&q.lock);
	queue_fini(&q);
}

CUNIT_MAIN("fault", {"the server runs when nothing fails", test_prepare},
    {"a lane that cannot grow", test_lane_that_cannot_grow},
    {"n-th allocation of a server", test_allocations_of_a_server},
    {"n-th allocation of a graph under traffic", test_allocations_of_a_graph},
    {"n-th allocation of a core group", test_allocations_of_cores},
    {"n-th thread of a core group", test_threads_of_cores},
    {"n-th thread of a server", test_threads_of_a_server},
    {"n-th thread of a graph under traffic", test_threads_of_a_graph})
