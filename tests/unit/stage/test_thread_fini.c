/* SPDX-License-Identifier: MIT */
/* Events that a thread held for a stage and releases when it leaves (thread_fini). They are passed
 * on although the thread is leaving for good. If an inline stage behind that stage ends the thread
 * in the middle of this, nothing is lost. */
#include "fixture/graph/probes.h"

#include "stage/stage.h"
#include "sched/pool.h"

struct kept {
	struct weir_event *ev;
};

static atomic_bool dies;

static void keep_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct kept *k = weir_thread_state(st);

	CU_ASSERT_EQUAL(n, 1);
	k->ev = ev[0];
	weir_hold(st, &ev[0]);
}

static void keep_fini(struct weir_stage *st)
{
	struct kept *k = weir_thread_state(st);

	if (k->ev)
		weir_emit(st, 0, &k->ev);
}

static uint64_t keep_key(struct weir_stage *st, const struct weir_event *ev)
{
	(void)st;
	return (uint64_t)((const struct probe *)ev)->producer;
}

static const struct weir_stage_ops keep_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.keep",
    .summary = "each thread holds an event until it leaves",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .thread_state_size = sizeof(struct kept),
    .thread_fini = keep_fini,
    .handle = keep_handle,
    .key = keep_key};

static void deadly_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	if (atomic_exchange(&dies, false))
		pthread_exit(NULL);
	end_handle(st, ev, n);
}

static const struct weir_stage_ops deadly_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.deadly",
    .summary = "ends its thread once",
    .accepts = &probe_type,
    .handle = deadly_handle};

/* Two threads hold an event each, and one of them leaves. */
static void leave(const char *use, bool inlined, int status)
{
	struct weir_spec *spec = weir_spec_new("fini");
	struct weir_stage_spec *s = fixture_stage(spec, "keep", "t.keep", "end");
	char why[256];

	fixture_set(s, "threads.min", "2");
	fixture_set(s, "threads.max", "2");
	fixture_set(s, "threads.policy", "static");
	fixture_set(s, "cohort.max", "1");
	s->mode = WEIR_MODE_PARTITIONED;
	fixture_stage(spec, "end", use, NULL)->inlined = inlined;
	prepare(2);
	weir_log_set_fd(-1);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	for (int i = 0; i < 2; i++) {
		probes[i].producer = i;
		fixture_offer_all(weir_graph_stage(g, "keep"), &probes[i], 1, 1);
	}
	FIXTURE_AWAIT(stage_view(g, "keep").held == 2);
	CU_ASSERT_EQUAL(weir_graph_set(g, "keep", "threads.min", "1", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(weir_graph_set(g, "keep", "threads.max", "1", why, sizeof(why)), 0);
	FIXTURE_AWAIT(fixture_ended() == 1);
	weir_thread_detach();
	finish_graph(g, 0); /* the other thread leaves, too */
	check_each_once(2);
	CU_ASSERT_TRUE(probes[0].status == status || probes[1].status == status);
	weir_log_set_fd(2);
}

static void test_sent_on(void)
{
	leave("t.end", false, WEIR_OK);
	leave("t.end", true, WEIR_OK);
}

static void test_death_behind(void)
{
	atomic_store(&dies, true);
	leave("t.deadly", true, WEIR_EDIED);
}

static void test_prepare(void)
{
	fixture_register(&keep_ops);
	fixture_register(&end_ops);
	fixture_register(&deadly_ops);
}

CUNIT_MAIN("thread_fini", {"types are known", test_prepare}, {"is sent on", test_sent_on},
    {"a death behind it", test_death_behind})
