/* SPDX-License-Identifier: MIT */
/* Connections on their way between two servers: which thread gets them, how long they are kept when
 * memory is short, and when they are closed instead. */
#include "net/handover.h"

#include <string.h>

#include "net/drain.h"
#include "net/net_rig.h"

#define MS 1000000LL
#define S  1000000000LL
/* The interval of attempts, and the time after which they end: handover.c. A tick of the timers. */
#define AGAIN (50 * MS)
#define KEPT  (10 * S)
#define TICK  (4 * MS)

/* Threads that hand connections over to the rig's server. */
static struct net_server old_server;
static struct net_io old_io[RIG_IO + 2];

static void begin(int n)
{
	rig_begin(n);
	memset(&old_server, 0, sizeof(old_server));
	memset(old_io, 0, sizeof(old_io));
	old_server.calls = rig.srv.calls;
	for (int i = 0; i < RIG_IO + 2; i++) {
		old_io[i].srv = &old_server;
		old_io[i].index = i;
		old_io[i].handover.to = &rig.srv;
	}
}

static void give(int from, char name, bool idle)
{
	handover_send(&old_io[from], rig_handed(name, idle));
}

/* ---- sending ---- */

/* A thread of the old server gives its connections to the thread with its number, modulo the number
 * of threads of the new server. Only the first connection on an empty list wakes that thread. */
static void test_send(void)
{
	begin(2);
	for (int i = 0; i < 4; i++)
		give(i, (char)('a' + i), true);
	CU_ASSERT_EQUAL(rig_wakes(0), 1);
	CU_ASSERT_EQUAL(rig_wakes(1), 1);
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("adopt:c adopt:a"));
	handover_adopt(&rig.io[1]);
	CU_ASSERT_TRUE(rig_did("adopt:d adopt:b"));
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did(""));
	give(0, 'e', true);
	CU_ASSERT_EQUAL(rig_wakes(0), 1);
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("adopt:e"));
	CU_ASSERT_FALSE(handover_keeps(&rig.io[0]));
	rig_finish();
}

static void test_receiver(void)
{
	begin(1);
	CU_ASSERT_TRUE(handover_receiver_runs(&old_io[0]));
	rig.srv.phase = NET_DRAINING;
	CU_ASSERT_FALSE(handover_receiver_runs(&old_io[0]));
	rig_finish();
}

/* Connections that could not leave for lack of memory leave later. */
static void test_leave_again(void)
{
	begin(1);
	rig_conn(0, 'a', LIST_IDLE, 0);
	rig_conn(0, 'b', LIST_BEHIND, 0);
	handover_leave(&rig.io[0], &old_server);
	CU_ASSERT_TRUE(net_is_leaving(&rig.io[0]));
	CU_ASSERT_TRUE(rig_did("leave:b leave:a"));
	handover_retry(&rig.io[0]);
	rig_wait(AGAIN - 1);
	rig_fire(0);
	CU_ASSERT_TRUE(rig_did(""));
	rig_wait(TICK + 1);
	rig_fire(0);
	CU_ASSERT_TRUE(rig_did("leave:b leave:a"));
	rig_wait(AGAIN + TICK);
	rig_fire(0);
	CU_ASSERT_TRUE(rig_did("")); /* once */
	rig_finish();
}

/* ---- taking over ---- */

/* Without memory, connections are kept in their order, and taken over when there is memory. */
static void test_keep(void)
{
	begin(1);
	rig.adopts = false;
	give(0, 'a', false);
	give(0, 'b', false);
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(handover_keeps(&rig.io[0]));
	give(0, 'c', false);
	CU_ASSERT_EQUAL(rig_wakes(0), 2); /* the list was empty again */
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did(""));
	rig.adopts = true;
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("adopt:b adopt:a adopt:c"));
	CU_ASSERT_FALSE(handover_keeps(&rig.io[0]));
	CU_ASSERT_EQUAL(rig.count[0][NET_REFUSED_HANDED], 0);
	rig_finish();
}

/* A server that keeps connections wakes up to take them over. */
static void test_keep_timer(void)
{
	begin(1);
	rig.adopts = false;
	give(0, 'a', false);
	handover_adopt(&rig.io[0]);
	CU_ASSERT_NOT_EQUAL(timer_wheel_next_ns(&rig.io[0].loop->timers), INT64_MAX);
	rig_wait(AGAIN + TICK);
	rig_fire(0);
	CU_ASSERT_EQUAL(timer_wheel_next_ns(&rig.io[0].loop->timers), INT64_MAX);
	handover_adopt(&rig.io[0]); /* at the end of the iteration */
	CU_ASSERT_NOT_EQUAL(timer_wheel_next_ns(&rig.io[0].loop->timers), INT64_MAX);
	rig.adopts = true;
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("adopt:a"));
	rig_finish();
}

/* After KEPT the connection is closed and counted. One that came later is not, nor those that
 * follow it if there is memory for them. */
static void test_give_up(void)
{
	begin(1);
	rig.adopts = false;
	give(0, 'a', false);
	handover_adopt(&rig.io[0]);
	rig_wait(KEPT - 1);
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did(""));
	give(0, 'b', false);
	rig_wait(1);
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("drop:a"));
	CU_ASSERT_EQUAL(rig.count[0][NET_REFUSED_HANDED], 1);
	CU_ASSERT_TRUE(handover_keeps(&rig.io[0]));
	rig_wait(KEPT - 1); /* `b` has failed first a moment ago */
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did(""));
	rig_wait(1);
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("drop:b"));
	CU_ASSERT_EQUAL(rig.count[0][NET_REFUSED_HANDED], 2);
	CU_ASSERT_FALSE(handover_keeps(&rig.io[0]));
	rig_finish();
}

/* The time of another server does not count. */
static void test_passed_on(void)
{
	begin(1);
	rig.adopts = false;
	give(0, 'a', true);
	handover_adopt(&rig.io[0]);
	old_server.n_io = 1;
	old_server.io[0] = &rig.io[0]; /* the server gets its own connections back */
	rig.io[0].handover.to = &old_server;
	rig_wait(KEPT);
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_FALSE(handover_keeps(&rig.io[0]));
	CU_ASSERT_PTR_NOT_NULL(rig.io[0].handover.handed);
	rig.io[0].handover.to = NULL;
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_TRUE(handover_keeps(&rig.io[0]));
	rig.adopts = true;
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("adopt:a"));
	rig_finish();
}

/* ---- too late ---- */

/* A server that drains answers requests that have begun, and one that has drained takes none. */
static void test_late(void)
{
	begin(1);
	rig.io[0].drain.phase = NET_DRAINING;
	give(0, 'a', true);
	give(0, 'b', false);
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("adopt:b drop:a+"));
	rig.io[0].drain.done = true;
	give(0, 'c', false);
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("drop:c+"));
	rig.io[0].drain.done = false;
	rig.io[0].drain.phase = NET_CLOSED;
	give(0, 'd', false);
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("drop:d+"));
	CU_ASSERT_EQUAL(rig.count[0][NET_REFUSED_HANDED], 0);
	rig_finish();
}

/* A drain waits for connections that are kept, also for those that have not arrived yet. */
static void test_drain(void)
{
	begin(1);
	rig.adopts = false;
	give(0, 'a', false);
	handover_adopt(&rig.io[0]);
	rig.io[0].drain.phase = NET_DRAINING;
	drain_report(&rig.io[0]);
	CU_ASSERT_FALSE(rig.io[0].drain.done);
	rig.adopts = true;
	handover_adopt(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("adopt:a"));
	drain_report(&rig.io[0]);
	CU_ASSERT_TRUE(rig.io[0].drain.done);
	rig_finish();
}

static void test_fini(void)
{
	begin(1);
	rig.adopts = false;
	give(0, 'a', false);
	give(0, 'b', true);
	handover_adopt(&rig.io[0]);
	give(0, 'c', true);
	handover_fini(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("drop:b+ drop:a+ drop:c+"));
	handover_fini(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did(""));
	rig_finish();
}

CUNIT_MAIN("handover", {"send", test_send}, {"receiver stops", test_receiver},
    {"leave again", test_leave_again}, {"keep", test_keep}, {"keep, timer", test_keep_timer},
    {"give up", test_give_up}, {"passed on", test_passed_on}, {"too late", test_late},
    {"drain waits", test_drain}, {"fini", test_fini})
