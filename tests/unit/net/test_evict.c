/* SPDX-License-Identifier: MIT */
/* An I/O thread requests an eviction from another one: which one, what it evicts, and the reply. */
#include "net/evict.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/listen.h"
#include "net/net_rig.h"

#define AGE NET_EVICT_AFTER_NS

static int client[RIG_IO];

/* Thread `i` has a new connection that waits. */
static void newcomer(int i)
{
	struct newcomer *who = &rig.io[i].accept.newcomer;
	int pair[2];

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	who->fd = pair[0];
	client[i] = pair[1];
	who->key = RIG_KEY;
	who->asks = 1;
	who->addr.ss_family = AF_INET;
	CU_ASSERT(clients_enter(rig.srv.clients, RIG_KEY) > 0);
}

static void end(void)
{
	for (int i = 0; i < RIG_IO; i++)
		if (client[i] != 0)
			close(client[i]);
	memset(client, 0, sizeof(client));
	rig_finish();
}

static void publish(void)
{
	for (int i = 0; i < rig.srv.n_io; i++)
		evict_tell(&rig.io[i]);
}

static bool waits(int i)
{
	return rig.io[i].accept.newcomer.fd != -1;
}

/* ---- whom to ask ---- */

static void test_publish(void)
{
	rig_begin(2);
	rig_conn(0, 'r', LIST_REFUSED, 9 * AGE); /* has no slot */
	publish();
	CU_ASSERT_EQUAL(rig.io[0].evict.idle_since_ns, INT64_MAX);
	rig_conn(0, 'a', LIST_IDLE, 2 * AGE);
	publish();
	CU_ASSERT_EQUAL(rig.io[0].evict.idle_since_ns, rig.now_ns - 2 * AGE);
	CU_ASSERT_EQUAL(rig.io[1].evict.idle_since_ns, INT64_MAX);
	end();
}

/* A single thread has nobody to publish anything for. */
static void test_alone(void)
{
	rig_begin(1);
	rig_conn(0, 'a', LIST_IDLE, 2 * AGE);
	publish();
	CU_ASSERT_EQUAL(rig.io[0].evict.idle_since_ns, INT64_MAX);
	CU_ASSERT_FALSE(evict_ask(&rig.io[0], EVICT_FOR_SLOT, true));
	end();
}

/* The thread whose connection waits longest is asked, if it waits for long enough. */
static void test_eldest(void)
{
	rig_begin(3);
	rig_conn(0, 'a', LIST_IDLE, 9 * AGE); /* a thread does not ask itself */
	rig_conn(1, 'b', LIST_IDLE, AGE - 1);
	publish();
	CU_ASSERT_FALSE(evict_ask(&rig.io[0], EVICT_FOR_SLOT, true));
	rig_wait(1);
	rig_conn(2, 'c', LIST_IDLE, AGE + 1);
	publish();
	CU_ASSERT_TRUE(evict_ask(&rig.io[0], EVICT_FOR_SLOT, true));
	CU_ASSERT_EQUAL(rig.io[2].evict.asked[0], 1u << 0);
	CU_ASSERT_EQUAL(rig_wakes(2), 1);
	/* thread 2 has not replied, so thread 1 is asked: its wait has just become long enough */
	CU_ASSERT_TRUE(evict_ask(&rig.io[0], EVICT_FOR_SLOT, false));
	CU_ASSERT_EQUAL(rig.io[1].evict.asked[0], 1u << 0);
	CU_ASSERT_EQUAL(rig_wakes(1), 1);
	CU_ASSERT_FALSE(evict_ask(&rig.io[0], EVICT_FOR_SLOT, false));
	/* other threads may still ask thread 0 */
	CU_ASSERT_TRUE(evict_ask(&rig.io[1], EVICT_FOR_SLOT, true));
	CU_ASSERT_EQUAL(rig.io[0].evict.asked[0], 1u << 1);
	CU_ASSERT_EQUAL(rig_wakes(0), 1);
	end();
}

/* A thread that has replied that it has nothing is not asked again for the same connection. */
static void test_none(void)
{
	rig_begin(2);
	rig.conf.max_connections = 1;
	rig_conn(1, 'b', LIST_IDLE, AGE)->net.ready = true;
	publish();
	newcomer(0);
	CU_ASSERT_TRUE(evict_ask(&rig.io[0], EVICT_FOR_SLOT, true));
	evict_follow(&rig.io[1]);
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_EQUAL(rig_wakes(0), 1); /* there is a reply all the same */
	CU_ASSERT_EQUAL(rig.io[0].evict.none[0], 1u << 1);
	CU_ASSERT_FALSE(evict_ask(&rig.io[0], EVICT_FOR_SLOT, false));
	CU_ASSERT_TRUE(evict_ask(&rig.io[0], EVICT_FOR_SLOT, true)); /* for the next connection */
	evict_follow(&rig.io[1]);
	evict_follow(&rig.io[0]); /* the waiting connection is refused */
	CU_ASSERT_FALSE(waits(0));
	CU_ASSERT_TRUE(rig_did("open!0"));
	end();
}

/* ---- the other thread ---- */

static void test_slot(void)
{
	rig_begin(2);
	rig.conf.max_connections = 2;
	rig_conn(1, 'a', LIST_IDLE, 2 * AGE);
	rig_conn(1, 'b', LIST_IDLE, AGE);
	publish();
	newcomer(0);
	CU_ASSERT_TRUE(evict_ask(&rig.io[0], EVICT_FOR_SLOT, true));
	CU_ASSERT_EQUAL(rig_wakes(1), 1);
	evict_follow(&rig.io[1]);
	CU_ASSERT_TRUE(rig_did("evict:a"));
	CU_ASSERT_EQUAL(rig.io[1].evict.asked[0], 0);
	/* published at once */
	CU_ASSERT_EQUAL(rig.io[1].evict.idle_since_ns, rig.now_ns - AGE);
	CU_ASSERT_EQUAL(rig_wakes(0), 1);
	evict_follow(&rig.io[1]); /* once */
	CU_ASSERT_TRUE(rig_did(""));
	evict_follow(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("open"));
	CU_ASSERT_FALSE(waits(0));
	CU_ASSERT_EQUAL(rig.io[0].evict.wanted, 0);
	CU_ASSERT_EQUAL(rig.io[0].evict.none[0], 0);
	evict_follow(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did(""));
	end();
}

/* Requests of two threads that arrive together are served with a slot each. */
static void test_two(void)
{
	rig_begin(3);
	rig.conf.max_connections = 3;
	for (int i = 0; i < 3; i++)
		rig_conn(1, (char)('a' + i), LIST_IDLE, 2 * AGE);
	publish();
	newcomer(0);
	newcomer(2);
	CU_ASSERT_TRUE(evict_ask(&rig.io[0], EVICT_FOR_SLOT, true));
	CU_ASSERT_TRUE(evict_ask(&rig.io[2], EVICT_FOR_SLOT, true));
	evict_follow(&rig.io[1]);
	CU_ASSERT_TRUE(rig_did("evict:a evict:b"));
	CU_ASSERT_EQUAL(rig_wakes(0), 1);
	CU_ASSERT_EQUAL(rig_wakes(2), 1);
	evict_follow(&rig.io[0]);
	evict_follow(&rig.io[2]);
	CU_ASSERT_TRUE(rig_did("open open"));
	end();
}

/* A request that was withdrawn evicts nothing and has no reply; others are still served. */
static void test_withdrawn(void)
{
	rig_begin(3);
	rig.conf.max_connections = 2;
	rig_conn(1, 'a', LIST_IDLE, 2 * AGE);
	rig_conn(1, 'b', LIST_IDLE, 2 * AGE);
	publish();
	newcomer(2);
	CU_ASSERT_TRUE(evict_ask(&rig.io[0], EVICT_FOR_SLOT, true));
	CU_ASSERT_TRUE(evict_ask(&rig.io[2], EVICT_FOR_SLOT, true));
	evict_unask(&rig.io[0]);
	evict_follow(&rig.io[1]);
	CU_ASSERT_TRUE(rig_did("evict:a"));
	CU_ASSERT_EQUAL(rig_wakes(0), 0);
	CU_ASSERT_EQUAL(rig_wakes(2), 1);
	evict_follow(&rig.io[2]);
	CU_ASSERT_TRUE(rig_did("open"));
	end();
}

/* For a descriptor, a connection without a slot may be evicted, too; for a slot, only one that has
 * a slot. */
static void test_descriptor(void)
{
	rig_begin(2);
	rig.conf.max_connections = 1;
	rig_conn(1, 'a', LIST_IDLE, 2 * AGE);
	rig_conn(1, 'r', LIST_REFUSED, 3 * AGE);
	publish();
	newcomer(0);
	CU_ASSERT_TRUE(evict_ask(&rig.io[0], EVICT_FOR_DESCRIPTOR, true));
	evict_follow(&rig.io[1]);
	CU_ASSERT_TRUE(rig_did("evict:r"));
	CU_ASSERT_EQUAL(rig.io[0].evict.none[0], 0);
	rig_conn(1, 'r', LIST_REFUSED, 3 * AGE);
	CU_ASSERT_TRUE(evict_ask(&rig.io[0], EVICT_FOR_DESCRIPTOR | EVICT_FOR_SLOT, false));
	evict_follow(&rig.io[1]);
	CU_ASSERT_TRUE(rig_did("evict:r evict:a"));
	CU_ASSERT_EQUAL(rig.io[0].evict.none[0], 0);
	evict_follow(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("open"));
	end();
}

/* If only half of what was requested can be freed, the reply is that there is none. */
static void test_half(void)
{
	rig_begin(2);
	rig.conf.max_connections = 1;
	rig_conn(0, 'b', LIST_BEHIND, 0);
	rig_conn(1, 'r', LIST_REFUSED, 3 * AGE);
	rig.io[1].evict.idle_since_ns = 1;
	newcomer(0);
	CU_ASSERT_TRUE(evict_ask(&rig.io[0], EVICT_FOR_DESCRIPTOR | EVICT_FOR_SLOT, true));
	evict_follow(&rig.io[1]);
	CU_ASSERT_TRUE(rig_did("evict:r"));
	CU_ASSERT_EQUAL(rig.io[0].evict.none[0], 1u << 1);
	evict_follow(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("open!0"));
	end();
}

/* ---- a connection of its own closes ---- */

static void test_retry(void)
{
	struct rig_conn *c;

	rig_begin(2);
	rig.conf.max_connections = 1;
	c = rig_conn(0, 'a', LIST_BEHIND, 0);
	newcomer(0);
	evict_retry(&rig.io[0]);
	CU_ASSERT_EQUAL(rig_wakes(0), 1);
	evict_follow(&rig.io[0]);
	CU_ASSERT_TRUE(waits(0)); /* there is no slot yet, nor a reply */
	CU_ASSERT_TRUE(rig_did(""));
	rig_close(c);
	CU_ASSERT_EQUAL(rig_wakes(0), 1);
	CU_ASSERT_TRUE(waits(0)); /* the close itself does not retry */
	evict_follow(&rig.io[0]);
	CU_ASSERT_FALSE(waits(0));
	CU_ASSERT_TRUE(rig_did("open"));
	end();
}

/* News without a new connection that waits resume the listeners. */
static void test_resume(void)
{
	rig_begin(2);
	rig_listen(0);
	listen_hold(&rig.io[0]);
	evict_follow(&rig.io[0]);
	CU_ASSERT_TRUE(rig.io[0].accept.paused);
	evict_retry(&rig.io[0]);
	evict_follow(&rig.io[0]);
	CU_ASSERT_FALSE(rig.io[0].accept.paused);
	end();
}

CUNIT_MAIN("evict", {"published", test_publish}, {"one thread", test_alone},
    {"longest wait", test_eldest}, {"nothing to evict", test_none}, {"slot", test_slot},
    {"two requests", test_two}, {"withdrawn", test_withdrawn}, {"descriptor", test_descriptor},
    {"half of it", test_half}, {"own connection closes", test_retry}, {"resume", test_resume})
