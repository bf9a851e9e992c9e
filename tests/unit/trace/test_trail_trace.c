/* SPDX-License-Identifier: MIT */
/* W3C's text format for traces, the traces of events, and random ids. */
#include "fixture/graph/probes.h"

#include <weir/trace.h>

#include "base/random.h"
#include "trace/trail.h"
#include "trace/trail_tap.h"

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"

struct traced {
	struct probe probe; /* must be first */
	struct weir_trail trail;
};

static const struct weir_event_type traced_type = {.name = "traced",
    .size = sizeof(struct traced),
    .finish = probe_finish,
    .trail = offsetof(struct traced, trail)};

static const struct weir_event_type plain_type = {
    .name = "plain", .size = sizeof(struct probe), .finish = probe_finish};

static struct weir_slice slice(const char *text)
{
	return (struct weir_slice){text, strlen(text)};
}

static bool reads(const char *text)
{
	static const struct weir_trace none;
	struct weir_trace t = none;
	bool good = weir_traceparent_read(slice(text), &t);

	/* Malformed text leaves the trace unchanged. */
	CU_ASSERT(good || memcmp(&t, &none, sizeof(t)) == 0);
	return good;
}

static void test_read(void)
{
	struct weir_trace t;

	CU_ASSERT_TRUE_FATAL(weir_traceparent_read(slice("00-" TRACE "-" PARENT "-01"), &t));
	CU_ASSERT_EQUAL(t.id[0], 0x0af7651916cd43ddu);
	CU_ASSERT_EQUAL(t.id[1], 0x8448eb211c80319cu);
	CU_ASSERT_EQUAL(t.parent, 0xb7ad6b7169203331u);
	CU_ASSERT_EQUAL(t.span, 0);
	CU_ASSERT_TRUE(t.sampled);
	CU_ASSERT_TRUE_FATAL(weir_traceparent_read(slice("00-" TRACE "-" PARENT "-fe"), &t));
	CU_ASSERT_FALSE(t.sampled); /* only the lowest flag has a meaning */
	/* Later versions: the part that we know is read. */
	CU_ASSERT_TRUE(reads("01-" TRACE "-" PARENT "-01"));
	CU_ASSERT_TRUE(reads("cc-" TRACE "-" PARENT "-01-what the future brings"));
	CU_ASSERT_FALSE(reads("cc-" TRACE "-" PARENT "-01.what"));
	CU_ASSERT_FALSE(reads("ff-" TRACE "-" PARENT "-01"));
}

static void test_malformed(void)
{
	static const char *const bad[] = {"", "00", "00-" TRACE "-" PARENT,
	    "00-" TRACE "-" PARENT "-", "00-" TRACE "-" PARENT "-0", "00-" TRACE "-" PARENT "-011",
	    "00-" TRACE "-" PARENT "-01-", "00-" TRACE "-" PARENT "-0x",
	    "00-" TRACE "-" PARENT "_01", "00_" TRACE "-" PARENT "-01",
	    "00-" TRACE "_" PARENT "-01", "0g-" TRACE "-" PARENT "-01",
	    " 0-" TRACE "-" PARENT "-01", "00-0AF7651916cd43dd8448eb211c80319c-" PARENT "-01",
	    "00-" TRACE "-B7ad6b7169203331-01", "00-" TRACE "-" PARENT "-0A",
	    "00-00000000000000000000000000000000-" PARENT "-01", "00-" TRACE "-0000000000000000-01",
	    "00-" TRACE "-" PARENT " -1"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_FALSE(reads(bad[i]));
}

static void test_print(void)
{
	char text[WEIR_TRACEPARENT_BYTES], id[WEIR_TRACE_ID_BYTES];
	struct weir_trace t = {.id = {0x0af7651916cd43ddu, 0x8448eb211c80319cu},
	    .parent = 5,
	    .span = 0xb7ad6b7169203331u,
	    .sampled = true};

	weir_traceparent_print(&t, text);
	CU_ASSERT_STRING_EQUAL(text, "00-" TRACE "-" PARENT "-01");
	t.sampled = false;
	weir_traceparent_print(&t, text);
	CU_ASSERT_STRING_EQUAL(text, "00-" TRACE "-" PARENT "-00");
	weir_trace_id_print(&t, id);
	CU_ASSERT_STRING_EQUAL(id, TRACE);
	weir_trace_id_print(&(struct weir_trace){.id = {0, 1}}, id);
	CU_ASSERT_STRING_EQUAL(id, "00000000000000000000000000000001");
	weir_trace_id_print(&(struct weir_trace){0}, id);
	CU_ASSERT_STRING_EQUAL(id, "");
}

static void test_of_events(void)
{
	struct traced e = {0};
	struct probe plain = {0};
	struct weir_event *ev = &e.probe.ev;
	struct weir_trace t, again, told = {.id = {1, 2}, .parent = 3, .sampled = true};

	weir_event_init(ev, &traced_type, 1);
	CU_ASSERT_FALSE(weir_event_traced(ev, NULL));
	CU_ASSERT_TRUE_FATAL(weir_event_trace(ev, &t)); /* created now, not sampled */
	CU_ASSERT(t.id[0] != 0 && t.span != 0);
	CU_ASSERT_EQUAL(t.parent, 0);
	CU_ASSERT_FALSE(t.sampled);
	CU_ASSERT_TRUE(weir_event_trace(ev, &again));
	CU_ASSERT_EQUAL(memcmp(&t, &again, sizeof(t)), 0);
	CU_ASSERT_TRUE(weir_event_traced(ev, &again)); /* the trace exists now */
	CU_ASSERT_EQUAL(memcmp(&t, &again, sizeof(t)), 0);
	/* Each stage has its own span, the same each time it asks. */
	trail_note(&ev, 1, 0, 10, false);
	CU_ASSERT_TRUE(weir_event_trace(ev, &again));
	CU_ASSERT_EQUAL(again.id[1], t.id[1]);
	CU_ASSERT_EQUAL(again.span, trace_hop_span(&t, 0));
	CU_ASSERT_NOT_EQUAL(again.span, t.span);
	trail_note(&ev, 1, 1, 20, false);
	CU_ASSERT_TRUE(weir_event_trace(ev, &again));
	CU_ASSERT_EQUAL(again.span, trace_hop_span(&t, 1));
	CU_ASSERT_NOT_EQUAL(trace_hop_span(&t, 0), trace_hop_span(&t, 1));
	/* A new event does not inherit the trace. An event with a given trace continues that
	 * one. */
	ev->state = WEIR_EVENT_FINISHED;
	weir_event_init(ev, &traced_type, 2);
	CU_ASSERT_FALSE(weir_event_traced(ev, &again));
	weir_event_trace_set(ev, &told);
	CU_ASSERT_TRUE(weir_event_trace(ev, &t));
	CU_ASSERT(t.id[0] == 1 && t.id[1] == 2 && t.parent == 3 && t.sampled);
	CU_ASSERT_NOT_EQUAL(t.span, 0);
	weir_event_init(&plain.ev, &plain_type, 3);
	weir_event_trace_set(&plain.ev, &told);
	CU_ASSERT_FALSE(weir_event_traced(&plain.ev, &t));
	CU_ASSERT_FALSE(weir_event_trace(&plain.ev, &t));
}

static void *draw(void *arg)
{
	uint64_t *out = arg;

	for (int i = 0; i < 1000; i++)
		out[i] = random_id();
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Threads do not draw the same numbers, and bits are 1 as often as 0. */
static void test_random(void)
{
	static uint64_t all[4000];
	pthread_t thread[4];
	int ones[64] = {0};

	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL_FATAL(pthread_create(&thread[i], NULL, draw, all + i * 1000), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 4000; i++)
		for (int b = 0; b < 64; b++)
			ones[b] += all[i] >> b & 1;
	for (int b = 0; b < 64; b++)
		CU_ASSERT(ones[b] > 1700 && ones[b] < 2300); /* 9 sigma */
	qsort(all, 4000, sizeof(all[0]), by_size);
	for (int i = 1; i < 4000; i++)
		CU_ASSERT_NOT_EQUAL(all[i - 1], all[i]);
	CU_ASSERT_NOT_EQUAL(all[0], 0);
}

CUNIT_MAIN("trace", {"read", test_read}, {"malformed", test_malformed}, {"print", test_print},
    {"of events", test_of_events}, {"random", test_random})
