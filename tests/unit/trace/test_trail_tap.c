/* SPDX-License-Identifier: MIT */
/* Taps and the collection: which events they select, what they keep for each reader, and when they
 * end. */
#include "fixture/graph/probes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <weir/trace.h>

#include "graph/graph.h"
#include "trace/trail.h"
#include "trace/trail_tap.h"

#define MS 1000000LL
#define S  1000000000LL

struct traced {
	struct probe probe; /* first member: the fixture's finish counts it */
	struct weir_trail trail;
};

static void tell(const struct weir_event *ev, char *buf, size_t size)
{
	snprintf(buf, size, "%llu", (unsigned long long)((const struct probe *)ev)->seq);
}

static const struct weir_event_type traced_type = {.name = "traced",
    .size = sizeof(struct traced),
    .finish = probe_finish,
    .trail = offsetof(struct traced, trail),
    .describe = tell};

static void on_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq == 1003)
			ev[i]->deadline_ns = 1;
		weir_emit(st, 0, &ev[i]);
	}
}

static const struct weir_stage_ops on_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.on",
    .summary = "sends on",
    .outlets = pass_outlets,
    .handle = on_handle};

static void stop_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(
		    &ev[i], ((struct probe *)ev[i])->seq % 2 ? WEIR_EFAILED : WEIR_OK);
}

static const struct weir_stage_ops stop_ops = {
    .abi = WEIR_STAGE_ABI, .name = "t.stop", .summary = "ends", .handle = stop_handle};

static struct traced traced[2 * COLLECT_EVENTS];
static struct weir_slow slow[COLLECT_EVENTS + 1];
static struct weir_graph *g;

static struct weir_event *fresh(int i, int64_t arrival_ns)
{
	struct traced *t = &traced[i];

	t->probe.seq = (uint64_t)i;
	t->probe.ev.state = WEIR_EVENT_IDLE;
	weir_event_init(&t->probe.ev, &traced_type, arrival_ns);
	return &t->probe.ev;
}

/* first -> last, in the caller's thread. */
static void begin(void)
{
	struct weir_spec *spec = weir_spec_new("tap");
	struct weir_errs errs = {0};
	static bool registered;

	if (!registered) {
		fixture_register(&on_ops);
		fixture_register(&stop_ops);
	}
	registered = true;
	fixture_stage(spec, "first", "t.on", "last")->inlined = true;
	fixture_stage(spec, "last", "t.stop", NULL)->inlined = true;
	fixture_stage(spec, "aside", "t.stop", NULL)->inlined = true;
	fixture_reset();
	g = fixture_build(spec);
	CU_ASSERT_EQUAL_FATAL(weir_graph_start(g, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
}

static void end(void)
{
	weir_thread_detach();
	finish_graph(g, 0);
}

/* Send event `i`, which started `age_ns` ago, through `stage`. */
static void pass(const char *stage, int i, int64_t age_ns)
{
	struct weir_event *ev = fresh(i, clock_now_ns() - age_ns);

	CU_ASSERT_EQUAL(weir_offer(weir_graph_stage(g, stage), &ev, 1, NULL), 1);
}

static int tap(const struct weir_tap *want, struct weir_tap_state *state)
{
	return weir_graph_tap(g, want, state->next, slow, COLLECT_EVENTS, state);
}

static void test_what_it_shows(void)
{
	struct weir_tap want = {.stage = "first", .class_id = -1, .outcome = -1};
	struct weir_tap_state state = {0};

	begin();
	pass("first", 0, S); /* before the tap was opened */
	CU_ASSERT_EQUAL(tap(&want, &state), 0);
	pass("first", 2, S);
	pass("aside", 4, S);
	pass("last", 6, S); /* did not pass `first` */
	pass("first", 3, 2 * S);
	CU_ASSERT_EQUAL_FATAL(tap(&want, &state), 2);
	CU_ASSERT_STRING_EQUAL(slow[0].what, "2");
	CU_ASSERT_STRING_EQUAL(slow[1].what, "3");
	CU_ASSERT_EQUAL(slow[0].status, WEIR_OK);
	CU_ASSERT_EQUAL(slow[1].status, WEIR_EFAILED);
	CU_ASSERT_STRING_EQUAL(slow[0].class_name, "default");
	CU_ASSERT_STRING_EQUAL(slow[0].end, "last");
	CU_ASSERT_EQUAL_FATAL(slow[0].n_spans, 2);
	CU_ASSERT_STRING_EQUAL(slow[0].span[0].stage, "first");
	CU_ASSERT_STRING_EQUAL(slow[0].span[1].stage, "last");
	CU_ASSERT(slow[0].span[0].id != slow[0].span[1].id && slow[0].trace.span != 0);
	CU_ASSERT_NOT_EQUAL(slow[0].trace.id[0], slow[1].trace.id[0]);
	CU_ASSERT(slow[1].took_ns >= 2 * S && slow[1].id == slow[0].id + 1);
	CU_ASSERT_EQUAL(tap(&want, &state), 0); /* each once */
	/* A new reader sees events from now on. A reader that repeats an old position gets the same
	 * events again. */
	struct weir_tap_state other = {0}, again = {.next = slow[0].id};
	CU_ASSERT_EQUAL(tap(&want, &other), 0);
	CU_ASSERT_EQUAL(other.next, state.next);
	CU_ASSERT_EQUAL(tap(&want, &again), 1);
	CU_ASSERT_STRING_EQUAL(slow[0].what, "3");
	CU_ASSERT_EQUAL(
	    tap(&(struct weir_tap){.stage = "nosuch", .class_id = -1}, &other), WEIR_ENOENT);
	CU_ASSERT_EQUAL(
	    tap(&(struct weir_tap){.stage = "first", .class_id = 1}, &other), WEIR_ENOENT);
	end();
}

static void test_filters(void)
{
	struct weir_tap failed = {.stage = "last", .class_id = 0, .outcome = WEIR_OUTCOME_FAILED};
	struct weir_tap shed = {.stage = "last", .class_id = 0, .outcome = WEIR_OUTCOME_SHED};
	struct weir_tap late = {
	    .stage = "last", .class_id = -1, .outcome = -1, .slow_ns = 3600 * S};
	struct weir_tap_state a = {0}, b = {0}, c = {0};

	begin();
	CU_ASSERT_EQUAL(tap(&failed, &a) + tap(&shed, &b) + tap(&late, &c), 0);
	pass("first", 1, S);
	pass("first", 2, 3601 * S);
	pass("first", 1003, S); /* refused by the sink of `last` */
	CU_ASSERT_EQUAL_FATAL(tap(&failed, &a), 1);
	CU_ASSERT_STRING_EQUAL(slow[0].what, "1");
	CU_ASSERT_EQUAL_FATAL(tap(&late, &c), 1);
	CU_ASSERT_STRING_EQUAL(slow[0].what, "2");
	CU_ASSERT_EQUAL_FATAL(tap(&shed, &b), 1);
	CU_ASSERT_STRING_EQUAL(slow[0].what, "1003");
	CU_ASSERT_EQUAL(slow[0].n_spans, 1);
	CU_ASSERT_EQUAL(slow[0].status, WEIR_EDEADLINE);
	CU_ASSERT_STRING_EQUAL(slow[0].end, "last");
	end();
}

/* Unread events stay; events that do not fit are counted. */
static void test_slow_reader(void)
{
	struct weir_tap want = {.stage = "first", .class_id = -1, .outcome = -1};
	struct weir_tap_state state = {0};

	begin();
	CU_ASSERT_EQUAL(tap(&want, &state), 0);
	for (int i = 0; i < TAP_EVENTS + 10; i++)
		pass("first", i, MS);
	CU_ASSERT_EQUAL_FATAL(weir_graph_tap(g, &want, state.next, slow, 100, &state), 100);
	CU_ASSERT_EQUAL(state.dropped, 10);
	CU_ASSERT_STRING_EQUAL(slow[99].what, "99");
	for (int i = 0; i < 200; i++)
		pass("first", 300 + i, MS);
	CU_ASSERT_EQUAL_FATAL(tap(&want, &state), TAP_EVENTS);
	CU_ASSERT_STRING_EQUAL(slow[0].what, "100");
	CU_ASSERT_STRING_EQUAL(slow[TAP_EVENTS - 1].what, "399");
	CU_ASSERT_EQUAL(state.dropped, 110);
	end();
}

static void test_leases(void)
{
	struct taps *taps;
	struct weir_tap_state state[TAPS_MAX + 1] = {0};
	struct weir_tap want = {.stage = "first", .class_id = -1, .outcome = -1};

	begin();
	taps = slowest_taps(g->slowest);
	CU_ASSERT_FALSE(taps_watched(taps));
	for (int i = 0; i < TAPS_MAX; i++) {
		want.slow_ns = i;
		CU_ASSERT_EQUAL(tap(&want, &state[i]), 0);
	}
	CU_ASSERT_TRUE(taps_watched(taps));
	want.slow_ns = TAPS_MAX;
	CU_ASSERT_EQUAL(tap(&want, &state[TAPS_MAX]), WEIR_EBUSY);
	want.slow_ns = 0; /* an open tap serves any number of readers */
	CU_ASSERT_EQUAL(tap(&want, &state[TAPS_MAX]), 0);
	int64_t now_ns = clock_now_ns();
	taps_tick(taps, now_ns);
	CU_ASSERT_TRUE(taps_watched(taps));
	taps_tick(taps, now_ns + 2 * TAP_LEASE_NS);
	CU_ASSERT_FALSE(taps_watched(taps));
	pass("first", 1, S);
	/* A late reader with an old position gets what is there, which is nothing. */
	CU_ASSERT_EQUAL(tap(&want, &state[0]), 0);
	pass("first", 2, S);
	CU_ASSERT_EQUAL(tap(&want, &state[0]), 1);
	end();
}

/* ---- the collection ---- */

static int n_collected(void)
{
	return weir_graph_collected(g, slow, COLLECT_EVENTS);
}

static void pass_traced(int i, uint64_t low, bool sampled)
{
	struct weir_event *ev = fresh(i, clock_now_ns() - MS);
	struct weir_trace t = {.id = {7, low}, .parent = 9, .sampled = sampled};

	weir_event_trace_set(ev, &t);
	CU_ASSERT_EQUAL(weir_offer(weir_graph_stage(g, "first"), &ev, 1, NULL), 1);
}

static void test_collection(void)
{
	struct weir_collect want = {.sample = 1};
	struct weir_collect_state state;

	begin();
	pass("first", 0, MS);
	CU_ASSERT_EQUAL(n_collected(), 0);
	CU_ASSERT_EQUAL(weir_graph_collect(g, &want), 0);
	CU_ASSERT_EQUAL(weir_graph_collect(g, &want), WEIR_EBUSY);
	for (int i = 0; i < COLLECT_EVENTS + 5; i++)
		pass("first", i, MS);
	weir_graph_collect_state(g, &state);
	CU_ASSERT(state.on && state.waiting == COLLECT_EVENTS);
	CU_ASSERT(state.collected == COLLECT_EVENTS && state.dropped == 5);
	CU_ASSERT_EQUAL_FATAL(n_collected(), COLLECT_EVENTS);
	CU_ASSERT_STRING_EQUAL(slow[0].what, "0");
	CU_ASSERT_TRUE(slow[0].trace.sampled);
	CU_ASSERT_STRING_EQUAL(slow[0].span[1].stage, "last");
	weir_graph_collect_sent(g, 3, 4);
	weir_graph_collect_end(g);
	pass("first", 0, MS);
	CU_ASSERT_EQUAL(n_collected(), 0);
	weir_graph_collect_state(g, &state);
	CU_ASSERT(!state.on && state.waiting == 0 && state.sent == 3 && state.failed == 4);
	/* Only the traces of callers are collected, not those that start here. */
	want = (struct weir_collect){.follow = true};
	CU_ASSERT_EQUAL(weir_graph_collect(g, &want), 0);
	pass("first", 1, MS);
	pass_traced(2, UINT64_MAX, true);
	pass_traced(3, 0, false);
	CU_ASSERT_EQUAL_FATAL(n_collected(), 1);
	CU_ASSERT_STRING_EQUAL(slow[0].what, "2");
	CU_ASSERT(slow[0].trace.parent == 9 && slow[0].trace.id[0] == 7);
	weir_graph_collect_end(g);
	/* Sampled by the trace id, whatever the caller's flag. */
	want = (struct weir_collect){.sample = 0.5};
	CU_ASSERT_EQUAL(weir_graph_collect(g, &want), 0);
	pass_traced(2, UINT64_MAX, true);
	pass_traced(3, 0, false);
	CU_ASSERT_EQUAL_FATAL(n_collected(), 1);
	CU_ASSERT_STRING_EQUAL(slow[0].what, "3");
	end();
}

static void test_sample_and_slowest(void)
{
	struct weir_collect want = {.sample = 0.25};

	begin();
	CU_ASSERT_EQUAL(weir_graph_collect(g, &want), 0);
	for (int i = 0; i < 2000; i++)
		pass("first", i, MS);
	int n = n_collected();
	CU_ASSERT(n > 400 && n < 600); /* 500, 5 sigma */
	for (int i = 0; i < n; i++)
		CU_ASSERT_TRUE(slow[i].trace.sampled);
	weir_graph_collect_end(g);
	want = (struct weir_collect){.slow = true};
	CU_ASSERT_EQUAL(weir_graph_collect(g, &want), 0);
	pass("first", 1, 100 * S); /* slower than any before */
	pass("first", 2, 0);       /* faster than the slowest event so far */
	CU_ASSERT_EQUAL_FATAL(n_collected(), 1);
	CU_ASSERT_STRING_EQUAL(slow[0].what, "1");
	end();
}

/* ---- threads ---- */

#define THREADS 4
#define EACH    300

static atomic_int n_done;

static void *pass_many(void *arg)
{
	int first = (int)(intptr_t)arg * EACH;

	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "passing"), 0);
	for (int i = 0; i < EACH; i++)
		pass("first", first + i, MS);
	weir_thread_detach();
	atomic_fetch_add(&n_done, 1);
	return NULL;
}

/* Threads end events while taps open and close and the collection is read: each event is seen once
 * or counted as dropped. */
static void test_many_threads(void)
{
	static bool seen[THREADS * EACH], taken[THREADS * EACH];
	struct weir_tap want = {.stage = "last", .class_id = -1, .outcome = -1}, other = want;
	struct weir_tap_state state = {0}, coming = {0};
	struct weir_collect_state collect;
	struct weir_collect all = {.sample = 1};
	pthread_t thread[THREADS];
	int n_seen = 0, n_taken = 0, n;
	bool last = false;

	begin();
	struct taps *taps = slowest_taps(g->slowest);
	atomic_store(&n_done, 0);
	CU_ASSERT_EQUAL(weir_graph_collect(g, &all), 0);
	CU_ASSERT_EQUAL(tap(&want, &state), 0);
	for (int t = 0; t < THREADS; t++)
		CU_ASSERT_EQUAL_FATAL(
		    pthread_create(&thread[t], NULL, pass_many, (void *)(intptr_t)t), 0);
	do {
		last = atomic_load(&n_done) == THREADS;
		for (; (n = tap(&want, &state)) > 0; n_seen += n)
			for (int i = 0; i < n; i++) {
				CU_ASSERT_FALSE(seen[atoi(slow[i].what)]);
				seen[atoi(slow[i].what)] = true;
			}
		for (; (n = n_collected()) > 0; n_taken += n)
			for (int i = 0; i < n; i++) {
				CU_ASSERT_FALSE(taken[atoi(slow[i].what)]);
				taken[atoi(slow[i].what)] = true;
			}
		other.slow_ns = 1 + n_seen % 3;
		coming.next = 0;
		CU_ASSERT(tap(&other, &coming) >= 0);
		taps_tick(taps, clock_now_ns());
	} while (!last);
	for (int t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	weir_graph_collect_state(g, &collect);
	CU_ASSERT_EQUAL(n_seen + (int)state.dropped, THREADS * EACH);
	CU_ASSERT_EQUAL(n_taken + (int)collect.dropped, THREADS * EACH);
	CU_ASSERT_EQUAL(n_taken, (int)collect.collected);
	end();
}

CUNIT_MAIN("tap", {"what it shows", test_what_it_shows}, {"filters", test_filters},
    {"slow reader", test_slow_reader}, {"leases", test_leases}, {"collection", test_collection},
    {"sample and slowest", test_sample_and_slowest}, {"many threads", test_many_threads})
