/* SPDX-License-Identifier: MIT */
/* The rings of frames: what is next for whom, what is skipped, and who frees them. */
#include "frames.h"

#include <string.h>

#include <weir/log.h>

#include "cunit_main.h"

static struct frames frames;

static void setup(void)
{
	weir_log_set_fd(-1);
	frames_init(&frames, 1000);
}

static uint64_t add(enum frames_ring ring)
{
	CU_ASSERT_TRUE(frames_add(&frames, ring, "x", json_pack("{s:i}", "a", 1)));
	return frames.newest;
}

static uint64_t next(enum frames_ring ticks, uint64_t from, uint64_t old)
{
	const struct frame *f = frames_next(&frames, ticks, from, old);

	return f ? f->id : 0;
}

static void test_text(void)
{
	setup();
	frames_add(&frames, FRAMES_EVENT, "act", json_pack("{s:s}", "a", "b\n\ndata: c"));
	const struct frame *f = frames_next(&frames, FRAMES_EVENT, 0, 0);
	static const char text[] = "id: 1001\nevent: act\ndata: {\"a\":\"b\\n\\ndata: c\"}\n\n";
	CU_ASSERT_EQUAL_FATAL(f->n, strlen(text));
	CU_ASSERT_EQUAL(memcmp(f->text, text, f->n), 0);
	CU_ASSERT_FALSE(frames_add(&frames, FRAMES_EVENT, "act", NULL));
	CU_ASSERT_EQUAL(frames.newest, 1001);
	frames_fini(&frames);
}

/* In the order of ids, of one's own rate alone, of ticks only the newest. */
static void test_next(void)
{
	setup();
	CU_ASSERT_EQUAL(next(FRAMES_TICK_1, 0, 0), 0);
	uint64_t t1 = add(FRAMES_TICK_1), t4 = add(FRAMES_TICK_4), e = add(FRAMES_EVENT);
	uint64_t t2 = add(FRAMES_TICK_1), t5 = add(FRAMES_TICK_4);
	CU_ASSERT_EQUAL(next(FRAMES_TICK_1, t1, 1000), e); /* t1 is skipped: t2 is there */
	CU_ASSERT_EQUAL(next(FRAMES_TICK_1, e + 1, 1000), t2);
	CU_ASSERT_EQUAL(next(FRAMES_TICK_1, t2 + 1, 1000), 0);
	CU_ASSERT_EQUAL(next(FRAMES_TICK_4, e + 1, 1000), t5);
	CU_ASSERT_EQUAL(next(FRAMES_EVENT, t1, 1000), e);
	CU_ASSERT_EQUAL(next(FRAMES_EVENT, e + 1, 1000), 0);
	/* who was here before gets the ticks that he missed */
	CU_ASSERT_EQUAL(next(FRAMES_TICK_1, 1001, t5), t1);
	CU_ASSERT_EQUAL(next(FRAMES_TICK_1, t1 + 1, t5), e);
	CU_ASSERT_EQUAL(next(FRAMES_TICK_1, e + 1, t5), t2);
	CU_ASSERT_EQUAL(next(FRAMES_TICK_4, 1001, t4), t4);
	frames_fini(&frames);
}

/* More than the rings hold: the oldest go, and it is known that they did. */
static void test_wrap(void)
{
	setup();
	for (int i = 0; i < FRAMES_EVENTS; i++)
		add(FRAMES_EVENT);
	CU_ASSERT_EQUAL(frames.forgotten, 0);
	uint64_t first = next(FRAMES_EVENT, 0, 0);
	CU_ASSERT_EQUAL(first, 1001);
	struct frame *held = frame_ref(frames_next(&frames, FRAMES_EVENT, 0, 0));
	for (int i = 0; i < 10; i++)
		add(FRAMES_EVENT);
	CU_ASSERT_EQUAL(frames.forgotten, 1010);
	CU_ASSERT_EQUAL(next(FRAMES_EVENT, 0, 0), 1011);
	CU_ASSERT_EQUAL(held->id, 1001); /* whoever sends it still has it */
	frame_unref(held);
	for (int i = 0; i < FRAMES_TICKS + 3; i++)
		add(FRAMES_TICK_1);
	CU_ASSERT_EQUAL(next(FRAMES_TICK_1, frames.newest - 100, UINT64_MAX), frames.newest - 100);
	CU_ASSERT_EQUAL(next(FRAMES_TICK_1, 1 + 1000 + FRAMES_EVENTS + 10, UINT64_MAX),
	    frames.newest - FRAMES_TICKS + 1);
	CU_ASSERT_EQUAL(frames.forgotten, 1010);
	frames_fini(&frames);
}

static void test_too_long(void)
{
	static char text[FRAMES_EVENT_MAX + 1];

	setup();
	memset(text, 'x', sizeof(text) - 1);
	CU_ASSERT_FALSE(frames_add(&frames, FRAMES_EVENT, "act", json_pack("{s:s}", "a", text)));
	CU_ASSERT_TRUE(frames_add(&frames, FRAMES_TICK_1, "tick", json_pack("{s:s}", "a", text)));
	frames_fini(&frames);
}

CUNIT_MAIN("frames", {"text", test_text}, {"what is next", test_next}, {"wrap-around", test_wrap},
    {"too long", test_too_long})
