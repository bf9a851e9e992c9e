/* SPDX-License-Identifier: MIT */
/* The end of a waker that is on its way: its arrival and its drop, in both orders. A tool that finds
 * reads of freed memory, such as ASan, sees what goes wrong. */
#include <stdlib.h>

#include "cunit_main.h"
#include "http/request/request.h"
#include "http/request/waker.h"

static int owner;

/* A waker of `r`, which has been sent. */
static struct http_waker *sent(struct http_req *r)
{
	struct http_waker *w = waker_new(NULL, &owner, NULL, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(w);
	atomic_store(&r->waker, w);
	atomic_store(&w->state, WAKER_SENT);
	return w;
}

static void test_arrives(void)
{
	struct http_req r = {0};
	struct http_waker *w = sent(&r);

	CU_ASSERT_PTR_EQUAL(waker_arrived(w), &owner);
	CU_ASSERT_EQUAL(atomic_load(&w->state), WAKER_IDLE);
	CU_ASSERT_FALSE(waker_over(w));
	waker_wake(w); /* of a request that is over: nothing is sent */
	CU_ASSERT_EQUAL(atomic_load(&w->state), WAKER_OVER);
	waker_drop(&r);
	CU_ASSERT_PTR_NULL(atomic_load(&r.waker));
}

static void test_arrives_then_dropped(void)
{
	struct http_req r = {0};
	struct http_waker *w = sent(&r);

	CU_ASSERT(waker_over(w));
	CU_ASSERT_PTR_NULL(waker_arrived(w));
	CU_ASSERT_EQUAL(atomic_load(&w->state), WAKER_ARRIVED); /* it is not freed yet */
	waker_wake(w);
	waker_drop(&r);
}

static void test_dropped_then_arrives(void)
{
	struct http_req r = {0};
	struct http_waker *w = sent(&r);

	CU_ASSERT(waker_over(w));
	waker_drop(&r);
	CU_ASSERT_EQUAL(atomic_load(&w->state), WAKER_DROPPED);
	CU_ASSERT_PTR_NULL(waker_arrived(w));
}

CUNIT_MAIN("waker", {"arrives", test_arrives}, {"arrives, then dropped", test_arrives_then_dropped},
    {"dropped, then arrives", test_dropped_then_arrives})
