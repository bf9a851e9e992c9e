/* SPDX-License-Identifier: MIT */
/* The rings of frames: which frame a watcher gets next, which are skipped, and when they are
 * freed. */
#include "admin/stream/sse_ring.h"

#include <string.h>

#include <weir/log.h>

#include "cunit_main.h"

static struct sse_ring frames;

static void setup(void)
{
	weir_log_set_fd(-1);
	sse_ring_init(&frames, 1000);
}

static uint64_t add(enum sse_ring_ring ring)
{
	CU_ASSERT_TRUE(sse_ring_add(&frames, ring, "x", json_pack("{s:i}", "a", 1)));
	return frames.newest;
}

static uint64_t next(enum sse_ring_ring ticks, uint64_t from, uint64_t old)
{
	const struct frame *f = sse_ring_next(&frames, ticks, from, old);

	return f ? f->id : 0;
}

static void test_text(void)
{
	setup();
	sse_ring_add(&frames, SSE_RING_EVENT, "act", json_pack("{s:s}", "a", "b\n\ndata: c"));
	const struct frame *f = sse_ring_next(&frames, SSE_RING_EVENT, 0, 0);
	static const char text[] = "id: 1001\nevent: act\ndata: {\"a\":\"b\\n\\ndata: c\"}\n\n";
	CU_ASSERT_EQUAL_FATAL(f->n, strlen(text));
	CU_ASSERT_EQUAL(memcmp(f->text, text, f->n), 0);
	CU_ASSERT_FALSE(sse_ring_add(&frames, SSE_RING_EVENT, "act", NULL));
	CU_ASSERT_EQUAL(frames.newest, 1001);
	sse_ring_fini(&frames);
}

/* In the order of ids, only ticks of the watcher's rate, and only the newest tick. */
static void test_next(void)
{
	setup();
	CU_ASSERT_EQUAL(next(SSE_RING_TICK_1, 0, 0), 0);
	uint64_t t1 = add(SSE_RING_TICK_1), t4 = add(SSE_RING_TICK_4), e = add(SSE_RING_EVENT);
	uint64_t t2 = add(SSE_RING_TICK_1), t5 = add(SSE_RING_TICK_4);
	CU_ASSERT_EQUAL(next(SSE_RING_TICK_1, t1, 1000), e); /* t1 is skipped, since t2 exists */
	CU_ASSERT_EQUAL(next(SSE_RING_TICK_1, e + 1, 1000), t2);
	CU_ASSERT_EQUAL(next(SSE_RING_TICK_1, t2 + 1, 1000), 0);
	CU_ASSERT_EQUAL(next(SSE_RING_TICK_4, e + 1, 1000), t5);
	CU_ASSERT_EQUAL(next(SSE_RING_EVENT, t1, 1000), e);
	CU_ASSERT_EQUAL(next(SSE_RING_EVENT, e + 1, 1000), 0);
	/* a watcher that reconnects gets the ticks that it missed */
	CU_ASSERT_EQUAL(next(SSE_RING_TICK_1, 1001, t5), t1);
	CU_ASSERT_EQUAL(next(SSE_RING_TICK_1, t1 + 1, t5), e);
	CU_ASSERT_EQUAL(next(SSE_RING_TICK_1, e + 1, t5), t2);
	CU_ASSERT_EQUAL(next(SSE_RING_TICK_4, 1001, t4), t4);
	sse_ring_fini(&frames);
}

/* More than the rings hold: the oldest frames are dropped, and `forgotten` shows it. */
static void test_wrap(void)
{
	setup();
	for (int i = 0; i < SSE_RING_EVENTS; i++)
		add(SSE_RING_EVENT);
	CU_ASSERT_EQUAL(frames.forgotten, 0);
	uint64_t first = next(SSE_RING_EVENT, 0, 0);
	CU_ASSERT_EQUAL(first, 1001);
	struct frame *held = frame_ref(sse_ring_next(&frames, SSE_RING_EVENT, 0, 0));
	for (int i = 0; i < 10; i++)
		add(SSE_RING_EVENT);
	CU_ASSERT_EQUAL(frames.forgotten, 1010);
	CU_ASSERT_EQUAL(next(SSE_RING_EVENT, 0, 0), 1011);
	CU_ASSERT_EQUAL(held->id, 1001); /* a sender that holds a reference keeps the frame */
	frame_unref(held);
	for (int i = 0; i < SSE_RING_TICKS + 3; i++)
		add(SSE_RING_TICK_1);
	CU_ASSERT_EQUAL(
	    next(SSE_RING_TICK_1, frames.newest - 100, UINT64_MAX), frames.newest - 100);
	CU_ASSERT_EQUAL(next(SSE_RING_TICK_1, 1 + 1000 + SSE_RING_EVENTS + 10, UINT64_MAX),
	    frames.newest - SSE_RING_TICKS + 1);
	CU_ASSERT_EQUAL(frames.forgotten, 1010);
	sse_ring_fini(&frames);
}

static void test_too_long(void)
{
	static char text[SSE_RING_EVENT_MAX + 1];

	setup();
	memset(text, 'x', sizeof(text) - 1);
	CU_ASSERT_FALSE(
	    sse_ring_add(&frames, SSE_RING_EVENT, "act", json_pack("{s:s}", "a", text)));
	CU_ASSERT_TRUE(
	    sse_ring_add(&frames, SSE_RING_TICK_1, "tick", json_pack("{s:s}", "a", text)));
	sse_ring_fini(&frames);
}

CUNIT_MAIN("frames", {"text", test_text}, {"what is next", test_next}, {"wrap-around", test_wrap},
    {"too long", test_too_long})
