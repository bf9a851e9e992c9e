/* SPDX-License-Identifier: MIT */
/* Drain in difficult graphs: stages listed downstream first, with a loop; a start that fails after
 * events have entered; several consecutive stages that hold events. */
#include "fixture/graph/probes.h"

#include <sched.h>

#include "stage/stage.h"
#include "sched/pool.h"

/* ---- a drain ends only when nothing is in flight ---- */

/*
 * Stages of the ring, and the number of hops of its event. Drain reads the stages against the
 * stream, so it meets the event in every pass. It also sums the counters of the parked threads, so
 * it spends longer at a stage than the event needs to move from one counter to the next. With more
 * than 28 parked threads, those of the ring would exceed the thread budget of one core.
 */
#define RING   24
#define HOPS   10000
#define PARKED "28"

static atomic_int stopped_early;

static void hop_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (--((struct probe *)ev[i])->seq == 0)
			weir_event_finish(&ev[i], WEIR_OK);
		else
			weir_emit(st, 0, &ev[i]);
	}
}

static void hop_stop(struct weir_stage *st, int64_t until_ns)
{
	(void)st, (void)until_ns;
	if (atomic_load(&probes[0].finishes) == 0)
		atomic_fetch_add(&stopped_early, 1);
}

static const struct weir_outlet hop_outlets[] = {
    {"out", &probe_type, false, "the next"}, {.name = NULL}};

static const struct weir_stage_ops hop_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.hop",
    .summary = "passes an event on so many times",
    .accepts = &probe_type,
    .outlets = hop_outlets,
    .handle = hop_handle,
    .stop = hop_stop};

/* Pin the calling thread to the last core that it may use, or undo that. Drain is woken by the
 * ring's thread and would otherwise run on that thread's core, where it reads only while nothing
 * moves. */
static void stay_away_from_the_ring(bool away)
{
	static cpu_set_t before;
	cpu_set_t last;
	int cpu = CPU_SETSIZE - 1;

	if (away) {
		CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(before), &before), 0);
		while (!CPU_ISSET(cpu, &before))
			cpu--;
		CPU_ZERO(&last);
		CPU_SET(cpu, &last);
	}
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(last), away ? &last : &before), 0);
}

static void test_quiet_when_listed_downstream_first(void)
{
	struct weir_spec *spec = weir_spec_new("ring");
	struct weir_group_spec *group = weir_spec_add_group(spec, "g");
	char name[8], to[8];

	group->threads.min = group->threads.max = 1;
	group->threads.pinned = true; /* to the first core */
	for (int i = 0; i < RING; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		snprintf(to, sizeof(to), "s%d", i > 0 ? i - 1 : RING - 1);
		struct weir_stage_spec *s = fixture_stage(spec, name, "t.hop", NULL);
		CU_ASSERT_EQUAL_FATAL(weir_spec_link(s, "", to, i == 0), 0);
		weir_spec_text(&s->group, "g");
	}
	fixture_set(fixture_stage(spec, "parked", "t.end", NULL), "threads.min", PARKED);
	prepare(1);
	probes[0].seq = HOPS;
	atomic_store(&stopped_early, 0);
	struct weir_graph *g = fixture_start(spec);
	stay_away_from_the_ring(true);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, name), probes, 1, 1);
	weir_thread_detach();
	finish_graph(g, 0);
	stay_away_from_the_ring(false);
	CU_ASSERT_EQUAL(atomic_load(&stopped_early), 0);
	check_each_once(1);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_OK);
}

/* ---- a start that fails ---- */

#define LET_IN 50

static atomic_int starts, stops;

/* The first of two sources admits events, the second fails. */
static int twin_start(struct weir_stage *st, struct weir_err *err)
{
	if (atomic_fetch_add(&starts, 1) > 0) {
		snprintf(err->text, sizeof(err->text), "the second never starts");
		return WEIR_ESYS;
	}
	weir_thread_attach(stage_graph(st), "twin");
	for (int i = 0; i < LET_IN; i++) {
		struct weir_event *ev = &probes[i].ev;
		weir_event_init(ev, &probe_type, 1);
		weir_emit(st, 0, &ev);
	}
	weir_thread_detach();
	return 0;
}

static void twin_stop(struct weir_stage *st, int64_t until_ns)
{
	(void)st, (void)until_ns;
	atomic_fetch_add(&stops, 1);
}

static const struct weir_stage_ops twin_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.twin",
    .summary = "a source of which only one starts",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = pass_outlets,
    .start = twin_start,
    .stop = twin_stop};

/* Keeps its thread until the pool stops, so that the other events are still queued then. */
static void last_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	FIXTURE_AWAIT(atomic_load(&st->pool->stopping));
	end_handle(st, ev, n);
}

static const struct weir_stage_ops last_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.last",
    .summary = "works only when it must end",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &probe_type,
    .handle = last_handle};

static void test_failed_start_ends_what_came_in(void)
{
	struct weir_spec *spec = weir_spec_new("twins");
	struct weir_errs *errs = calloc(1, sizeof(*errs));

	fixture_stage(spec, "one", "t.twin", "last");
	fixture_stage(spec, "two", "t.twin", "last");
	struct weir_stage_spec *s = fixture_stage(spec, "last", "t.last", NULL);
	fixture_set(s, "threads.max", "1");
	fixture_set(s, "cohort.max", "1");
	prepare(LET_IN);
	atomic_store(&starts, 0);
	atomic_store(&stops, 0);
	struct weir_graph *g = fixture_build(spec);
	CU_ASSERT_EQUAL(weir_graph_start(g, errs), WEIR_ESYS);
	free(errs);
	CU_ASSERT_EQUAL(atomic_load(&starts), 2);
	CU_ASSERT_EQUAL(atomic_load(&stops), 1);
	CU_ASSERT_EQUAL_FATAL(fixture_ended(), LET_IN); /* no event may be queued in freed memory */
	check_each_once(LET_IN);
	CU_ASSERT_EQUAL(probes[LET_IN - 1].status, WEIR_ECLOSED);
	weir_graph_free(g);
}

/* ---- holders ---- */

#define HOLDERS 4

struct holder {
	pthread_mutex_t mutex;
	struct weir_event *held;
};

static int holder_init(struct weir_stage *st, struct weir_err *err)
{
	(void)err;
	return pthread_mutex_init(&((struct holder *)weir_state(st))->mutex, NULL) == 0 ? 0
											: WEIR_ESYS;
}

static void holder_fini(struct weir_stage *st)
{
	pthread_mutex_destroy(&((struct holder *)weir_state(st))->mutex);
}

static void holder_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct holder *h = weir_state(st);

	for (int i = 0; i < n; i++) {
		struct weir_event *e = ev[i];
		weir_hold(st, &ev[i]);
		pthread_mutex_lock(&h->mutex);
		e->next = h->held;
		h->held = e;
		pthread_mutex_unlock(&h->mutex);
	}
}

static void holder_stop(struct weir_stage *st, int64_t until_ns)
{
	struct holder *h = weir_state(st);

	(void)until_ns;
	pthread_mutex_lock(&h->mutex);
	struct weir_event *e = h->held, *next;
	h->held = NULL;
	pthread_mutex_unlock(&h->mutex);
	for (; e; e = next) {
		next = e->next;
		weir_emit(st, 0, &e); /* the last outlet is not linked: the event ends */
	}
}

static const struct weir_stage_ops holder_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.holder",
    .summary = "holds events until the graph closes",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .state_size = sizeof(struct holder),
    .init = holder_init,
    .fini = holder_fini,
    .handle = holder_handle,
    .stop = holder_stop};

static void drain_holders(bool inlined)
{
	struct weir_spec *spec = weir_spec_new("holders");
	char name[8], to[8];

	for (int i = 0; i < HOLDERS; i++) {
		snprintf(name, sizeof(name), "h%d", i);
		snprintf(to, sizeof(to), "h%d", i + 1);
		fixture_stage(spec, name, "t.holder", i < HOLDERS - 1 ? to : NULL)->inlined =
		    inlined && i > 0;
	}
	prepare(10);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "h0"), probes, 10, 10);
	FIXTURE_AWAIT(stage_view(g, "h0").held == 10);
	weir_thread_detach();
	finish_graph(g, 0);
	check_each_once(10);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), 10);
}

static void test_holders_inline(void)
{
	drain_holders(true);
}

static void test_holders_in_pools(void)
{
	drain_holders(false);
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
	fixture_register(&hop_ops);
	fixture_register(&twin_ops);
	fixture_register(&last_ops);
	fixture_register(&holder_ops);
}

CUNIT_MAIN("drain", {"types are known", test_prepare},
    {"stages listed downstream first", test_quiet_when_listed_downstream_first},
    {"a failed start ends what came in", test_failed_start_ends_what_came_in},
    {"holders in a chain, inline", test_holders_inline},
    {"holders in a chain, in pools", test_holders_in_pools})
