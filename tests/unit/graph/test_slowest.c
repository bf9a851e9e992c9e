/* SPDX-License-Identifier: MIT */
/* The paths of events and the slowest events: which are kept, in which order and for how long, and
 * how their time was spent. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"
#include "trace/trail.h"

#define S 1000000000LL

struct traced {
	struct probe probe; /* first member: the fixture's finish counts it */
	struct weir_trail trail;
};

static void tell(const struct weir_event *ev, char *buf, size_t size)
{
	snprintf(buf, size, "number\n%llu", (unsigned long long)((const struct probe *)ev)->seq);
}

static const struct weir_event_type traced_type = {.name = "traced",
    .size = sizeof(struct traced),
    .finish = probe_finish,
    .fields = probe_fields,
    .trail = offsetof(struct traced, trail),
    .describe = tell};

static void on_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		weir_emit(st, 0, &ev[i]);
}

static const struct weir_stage_ops on_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.on",
    .summary = "sends on",
    .outlets = pass_outlets,
    .handle = on_handle};

static void stop_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	weir_event_finish_run(ev, n, WEIR_OK);
}

static const struct weir_stage_ops stop_ops = {
    .abi = WEIR_STAGE_ABI, .name = "t.stop", .summary = "ends", .handle = stop_handle};

static struct traced traced[400];

static struct weir_event *fresh(int i, int64_t now_ns)
{
	struct traced *t = &traced[i];

	t->probe.seq = (uint64_t)i;
	t->probe.ev.state = WEIR_EVENT_IDLE;
	weir_event_init(&t->probe.ev, &traced_type, now_ns);
	return &t->probe.ev;
}

/* first (pool) -> between (inline) -> last (pool), not started. */
static struct weir_graph *build(void)
{
	struct weir_spec *spec = weir_spec_new("slowest");
	struct weir_stage_spec *s;

	fixture_stage(spec, "first", "t.on", "between");
	s = fixture_stage(spec, "between", "t.on", "last");
	s->inlined = true;
	fixture_stage(spec, "last", "t.stop", NULL);
	return fixture_build(spec);
}

static void test_ways(void)
{
	struct weir_event *ev[40];
	struct weir_errs errs = {0};
	struct weir_slow slow[WEIR_SLOWEST_MAX + 1];
	struct weir_graph *g = build();

	fixture_reset();
	CU_ASSERT_EQUAL_FATAL(weir_graph_start(g, &errs), 0);
	CU_ASSERT_EQUAL(weir_graph_slowest(g, -1, slow, 16), 0);
	CU_ASSERT_EQUAL(weir_graph_slowest(g, 1, slow, 16), WEIR_ENOENT);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	int64_t now_ns = clock_now_ns();
	for (int i = 0; i < 40; i++) /* number i started (i * 7) % 40 s ago */
		ev[i] = fresh(i, now_ns - (i * 7 % 40) * S);
	CU_ASSERT_EQUAL(weir_offer(weir_graph_stage(g, "first"), ev, 40, NULL), 40);
	FIXTURE_AWAIT(fixture_ended() == 40);
	CU_ASSERT_EQUAL(weir_graph_slowest(g, -1, slow, 3), 3);
	CU_ASSERT_EQUAL_FATAL(
	    weir_graph_slowest(g, 0, slow, WEIR_SLOWEST_MAX + 1), WEIR_SLOWEST_MAX);
	for (int i = 0; i < WEIR_SLOWEST_MAX; i++) {
		char what[32];
		int number = (39 - i) * 23 % 40; /* 7 * 23 = 1 modulo 40 */
		snprintf(what, sizeof(what), "number?%d", number);
		CU_ASSERT_STRING_EQUAL(slow[i].what, what);
		CU_ASSERT(
		    slow[i].took_ns >= (39 - i) * S && slow[i].took_ns < (40 - i) * S + 60 * S);
		CU_ASSERT_STRING_EQUAL(slow[i].class_name, "default");
		CU_ASSERT_EQUAL(slow[i].status, WEIR_OK);
		CU_ASSERT_EQUAL(slow[i].n_hops, 3);
		CU_ASSERT_EQUAL_FATAL(slow[i].n_spans, 3);
		CU_ASSERT_STRING_EQUAL(slow[i].span[0].stage, "first");
		CU_ASSERT_STRING_EQUAL(slow[i].span[1].stage, "between");
		CU_ASSERT_STRING_EQUAL(slow[i].span[2].stage, "last");
		CU_ASSERT_EQUAL(slow[i].span[1].wait_ns, 0); /* inline: no queue */
		int64_t at_ns = slow[i].span[0].at_ns;
		CU_ASSERT(at_ns >= (39 - i) * S - 1000);
		for (int k = 0; k < 3; k++) {
			CU_ASSERT(slow[i].span[k].wait_ns >= 0 && slow[i].span[k].service_ns >= 0);
			CU_ASSERT(slow[i].span[k].at_ns >= at_ns);
			at_ns = slow[i].span[k].at_ns + slow[i].span[k].wait_ns;
		}
		CU_ASSERT(at_ns <= slow[i].took_ns);
	}
	weir_thread_detach();
	finish_graph(g, 0);
}

/* An event that passed `hops` stages, queued for 1 ms and handled for 2 ms in each. */
static struct weir_event *made_up(int i, int hops, int64_t took_ns)
{
	struct weir_event *ev = fresh(i, 1000 * S - took_ns);
	struct weir_trail *t = trail_of(ev);

	for (int k = 0; k < hops; k++) {
		ev->queued_ns = ev->arrival_ns + 3000000LL * k;
		trail_note(&ev, 1, k % 3, ev->queued_ns + 1000000, true);
	}
	CU_ASSERT_EQUAL(t->n_hops, hops);
	return ev;
}

static void test_long_ways_are_cut(void)
{
	struct weir_slow slow[2];
	struct weir_graph *g = build();

	slowest_offer(g->slowest, made_up(1, WEIR_TRAIL_HOPS + 5, S), WEIR_EFAILED, 1000 * S);
	CU_ASSERT_EQUAL_FATAL(weir_graph_slowest(g, 0, slow, 2), 1);
	CU_ASSERT_EQUAL(slow[0].n_hops, WEIR_TRAIL_HOPS + 5);
	CU_ASSERT_EQUAL(slow[0].n_spans, WEIR_TRAIL_HOPS);
	CU_ASSERT_EQUAL(slow[0].status, WEIR_EFAILED);
	CU_ASSERT_EQUAL(slow[0].took_ns, S);
	for (int k = 0; k < WEIR_TRAIL_HOPS; k++) {
		CU_ASSERT_EQUAL(slow[0].span[k].at_ns, 3000000 * k);
		CU_ASSERT_EQUAL(slow[0].span[k].wait_ns, 1000000);
		CU_ASSERT_EQUAL(slow[0].span[k].service_ns,
		    k + 1 < WEIR_TRAIL_HOPS ? 2000000 : S - 3000000 * k - 1000000);
	}
	weir_graph_free(g);
}

/* An event that is shed when it leaves the queue has spent its time there and is among the
 * slowest. */
static void test_shed_at_the_exit(void)
{
	struct weir_event *ev[1];
	struct weir_errs errs = {0};
	struct weir_slow slow[1];
	struct weir_graph *g = build();
	char why[200];

	fixture_reset();
	CU_ASSERT_EQUAL_FATAL(weir_graph_start(g, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "first", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	ev[0] = fresh(7, clock_now_ns());
	ev[0]->deadline_ns = ev[0]->arrival_ns + 20000000; /* soon */
	CU_ASSERT_EQUAL(weir_offer(weir_graph_stage(g, "first"), ev, 1, NULL), 1);
	FIXTURE_AWAIT(clock_now_ns() > traced[7].probe.ev.arrival_ns + 20000000);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "first", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(fixture_ended() == 1);
	CU_ASSERT_EQUAL_FATAL(weir_graph_slowest(g, 0, slow, 1), 1);
	CU_ASSERT_EQUAL(slow[0].status, WEIR_EDEADLINE);
	CU_ASSERT_EQUAL_FATAL(slow[0].n_spans, 1);
	CU_ASSERT_STRING_EQUAL(slow[0].span[0].stage, "first");
	CU_ASSERT(slow[0].span[0].wait_ns > 10000000);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* A sender may stamp an event later than the clock reading of the thread that takes it. */
static void test_clocks_that_cross(void)
{
	struct weir_slow slow[1];
	struct weir_graph *g = build();
	struct weir_event *ev = made_up(1, 1, S);

	trail_of(ev)->hop[0] = (struct weir_hop){.queued_us = 5, .started_us = 4};
	slowest_offer(g->slowest, ev, WEIR_OK, 1000 * S);
	CU_ASSERT_EQUAL_FATAL(weir_graph_slowest(g, 0, slow, 1), 1);
	CU_ASSERT_EQUAL(slow[0].span[0].wait_ns, 0);
	weir_graph_free(g);
}

/* Events of the current and the last minute; fast events of a busy minute are not kept. */
static void test_windows(void)
{
	struct weir_slow slow[40];
	struct weir_graph *g = build();

	slowest_tick(g->slowest, S);
	for (int i = 0; i < 100; i++)
		slowest_offer(g->slowest, made_up(i, 1, (i + 1) * S), WEIR_OK, 1000 * S);
	CU_ASSERT_EQUAL(weir_graph_slowest(g, -1, slow, 40), WEIR_SLOWEST_MAX);
	CU_ASSERT_EQUAL(slow[0].took_ns, 100 * S);
	CU_ASSERT_EQUAL(slow[WEIR_SLOWEST_MAX - 1].took_ns, (101 - WEIR_SLOWEST_MAX) * S);
	slowest_tick(g->slowest, S + SLOWEST_WINDOW_NS - 1); /* not yet */
	slowest_offer(g->slowest, made_up(101, 1, S), WEIR_OK, 1000 * S);
	CU_ASSERT_EQUAL(weir_graph_slowest(g, -1, slow, 40), WEIR_SLOWEST_MAX);
	slowest_tick(g->slowest, S + SLOWEST_WINDOW_NS);
	slowest_offer(g->slowest, made_up(101, 1, S), WEIR_OK, 1000 * S);
	CU_ASSERT_EQUAL(weir_graph_slowest(g, -1, slow, 40), WEIR_SLOWEST_MAX + 1);
	CU_ASSERT_EQUAL(slow[WEIR_SLOWEST_MAX].took_ns, S);
	slowest_tick(g->slowest, S + 2 * SLOWEST_WINDOW_NS);
	CU_ASSERT_EQUAL(weir_graph_slowest(g, -1, slow, 40), 1);
	weir_graph_free(g);
}

/* Threads end events while others read. */
static void test_many_threads(void)
{
	struct weir_event *ev[50];
	struct weir_errs errs = {0};
	struct weir_slow slow[WEIR_SLOWEST_MAX];
	struct weir_graph *g = build();

	fixture_reset();
	CU_ASSERT_EQUAL_FATAL(weir_graph_start(g, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	int64_t now_ns = clock_now_ns();
	for (int i = 0; i < 400;) {
		int n = 0;
		for (; n < 50; n++, i++)
			ev[n] = fresh(i, now_ns - i * S);
		CU_ASSERT_EQUAL(weir_offer(weir_graph_stage(g, "first"), ev, n, NULL), n);
		CU_ASSERT(weir_graph_slowest(g, 0, slow, WEIR_SLOWEST_MAX) >= 0);
	}
	FIXTURE_AWAIT(fixture_ended() == 400);
	CU_ASSERT_EQUAL(weir_graph_slowest(g, 0, slow, WEIR_SLOWEST_MAX), WEIR_SLOWEST_MAX);
	for (int i = 0; i < WEIR_SLOWEST_MAX; i++)
		CU_ASSERT_EQUAL((slow[i].took_ns - slow[0].took_ns) / S, -i);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void setup(void)
{
	fixture_register(&on_ops);
	fixture_register(&stop_ops);
	test_ways();
}

CUNIT_MAIN("slowest", {"ways", setup}, {"long ways are cut", test_long_ways_are_cut},
    {"shed at the exit", test_shed_at_the_exit}, {"clocks that cross", test_clocks_that_cross},
    {"windows", test_windows}, {"many threads", test_many_threads})
