/* SPDX-License-Identifier: MIT */
/* Handlers that do not return: a drain ends nevertheless and names them, the program's watchdog is
 * notified, and the graph can be freed once they have returned. Also: a graph that stays although
 * another one is about to replace it. */
#include "fixture/graph/probes.h"

#include "base/clock.h"

static struct weir_graph *start_stuck(const char *stuck, int n)
{
	struct weir_spec *spec = weir_spec_new("stuck");
	struct weir_stage_spec *gate = fixture_stage(spec, "gate", "t.gate", NULL);

	fixture_set(gate, "threads.max", "2");
	fixture_set(gate, "threads.min", "2");
	fixture_set(gate, "threads.stuck", stuck);
	fixture_set(gate, "cohort.max", "1");
	prepare(n);
	atomic_store(&probe_gate, 0);
	weir_log_set_fd(-1);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "gate"), probes, n, 1);
	weir_thread_detach();
	return g;
}

static uint64_t running(struct weir_graph *g)
{
	struct weir_stage_view v = stage_view(g, "gate");

	return v.in_flight - v.queue_length;
}

static void *free_main(void *arg)
{
	weir_graph_free(arg);
	return NULL;
}

/* Free the graph, which waits until its threads have left their handlers. */
static void come_back(struct weir_graph *g, int n)
{
	pthread_t t;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, free_main, g), 0);
	CU_ASSERT_EQUAL(fixture_ended(), (uint64_t)n - 2);
	atomic_store(&probe_gate, 1);
	pthread_join(t, NULL);
	check_each_once(n);
	weir_log_set_fd(2);
}

static void check_report(const struct weir_drain_report *r, uint64_t closed)
{
	CU_ASSERT_EQUAL(r->closed, closed);
	CU_ASSERT_EQUAL(r->left, 2);
	CU_ASSERT_EQUAL(r->lost, 2);
	CU_ASSERT_EQUAL(r->law_error, 0);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(r->left_text, "stage 'gate' (t.gate) in thread 'gate/0' for "));
	CU_ASSERT_PTR_NOT_NULL(strstr(r->left_text, "in thread 'gate/1'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(r->left_text, " with 1 event; stage 'gate' (t.gate) in"));
}

static void test_left_behind_at_the_end_of_the_grace(void)
{
	struct weir_graph *g = start_stuck("0", 5);
	struct weir_drain_report r;

	FIXTURE_AWAIT(running(g) == 2);
	weir_graph_drain(g, NS_PER_MS, &r);
	check_report(&r, 3);
	come_back(g, 5);
}

static void *hurry_main(void *arg)
{
	weir_graph_hurry(arg);
	return NULL;
}

static void test_left_behind_in_a_hurry(void)
{
	struct weir_graph *g = start_stuck("1s", 2);
	struct weir_drain_report r;
	pthread_t t;

	FIXTURE_AWAIT(running(g) == 2);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, hurry_main, g), 0);
	weir_graph_drain(g, 3600 * NS_PER_S, &r);
	pthread_join(t, NULL);
	check_report(&r, 0);
	come_back(g, 2);
}

static bool is_hung(struct weir_graph *g, const char *stage)
{
	const char *name;
	int64_t since_ns = weir_graph_hung(g, &name);

	return strcmp(name, stage) == 0 && (since_ns != 0) == (*stage != '\0');
}

static void test_hung(void)
{
	struct weir_graph *g = start_stuck("10ms", 2);

	FIXTURE_AWAIT(is_hung(g, "gate"));
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(is_hung(g, ""));
	FIXTURE_AWAIT(fixture_ended() == 2);
	finish_graph(g, 0);
	weir_log_set_fd(2);
}

/* ---- staying ---- */

static atomic_int begins, begin_open;

/* The thread of the second graph waits until the test lets it start. */
static int slow_thread_init(struct weir_stage *st)
{
	(void)st;
	if (atomic_fetch_add(&begins, 1) > 0)
		FIXTURE_AWAIT(atomic_load(&begin_open));
	return 0;
}

static const struct weir_stage_ops slow_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.slow",
    .summary = "its threads take long to begin",
    .accepts = &probe_type,
    .thread_init = slow_thread_init,
    .handle = end_handle};

struct follower {
	struct weir_graph *g, *old;
	struct weir_errs errs;
	int rc;
};

static void *follow_main(void *arg)
{
	struct follower *f = arg;

	f->rc = weir_graph_succeed(f->g, f->old, &f->errs);
	return NULL;
}

static struct weir_graph *build_slow(void)
{
	struct weir_spec *spec = weir_spec_new("slow");

	fixture_set(fixture_stage(spec, "a", "t.slow", NULL), "threads.max", "1");
	return fixture_build(spec);
}

static void test_a_graph_that_stays(void)
{
	static struct follower f;
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	pthread_t t;

	atomic_store(&begins, 0);
	atomic_store(&begin_open, 0);
	f.old = build_slow();
	CU_ASSERT_EQUAL_FATAL(weir_graph_start(f.old, errs), 0);
	f.g = build_slow();
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, follow_main, &f), 0);
	FIXTURE_AWAIT(atomic_load(&begins) == 2);
	CU_ASSERT_TRUE(weir_graph_stay(f.old)); /* in the middle of the other graph's start */
	CU_ASSERT_TRUE(weir_graph_stay(f.old));
	struct weir_drain_report r;
	weir_graph_drain(f.old, NS_PER_S, &r);
	CU_ASSERT_EQUAL(r.law_error, 0);
	atomic_store(&begin_open, 1);
	pthread_join(t, NULL);
	CU_ASSERT_EQUAL(f.rc, WEIR_EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(f.errs.err[0].text, "about to stop"));
	CU_ASSERT_PTR_NULL(weir_successor(weir_graph_stage(f.old, "a")));
	weir_graph_free(f.old);
	weir_graph_free(f.g);
	/* A graph that has been replaced cannot stay, but its successor can. */
	f.old = build_slow();
	CU_ASSERT_EQUAL_FATAL(weir_graph_start(f.old, errs), 0);
	f.g = build_slow();
	CU_ASSERT_EQUAL(weir_graph_succeed(f.g, f.old, errs), 0);
	CU_ASSERT_FALSE(weir_graph_stay(f.old));
	CU_ASSERT_TRUE(weir_graph_stay(f.g));
	finish_graph(f.old, 0);
	finish_graph(f.g, 0);
	free(errs);
}

static void test_prepare(void)
{
	fixture_register(&gate_ops);
	fixture_register(&slow_ops);
}

CUNIT_MAIN("graph stuck", {"types are known", test_prepare},
    {"left behind at the end of the grace", test_left_behind_at_the_end_of_the_grace},
    {"left behind in a hurry", test_left_behind_in_a_hurry}, {"hung", test_hung},
    {"a graph that stays", test_a_graph_that_stays})
