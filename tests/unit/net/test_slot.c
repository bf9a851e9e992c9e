/* SPDX-License-Identifier: MIT */
/* Which connection is closed when slots, descriptors or the slots of an address run out, with a
 * clock that stands still. */
#include "net/slot.h"

#include <sys/resource.h>

#include "net/net_rig.h"

#define AGE NET_EVICT_AFTER_NS
#define S   1000000000LL

/* ---- slots ---- */

static void test_free(void)
{
	rig_begin(1);
	rig.conf.max_connections = 2;
	CU_ASSERT_TRUE(slot_is_free(&rig.io[0]));
	rig_conn(0, 'a', LIST_BEHIND, 0);
	rig_conn(0, 'r', LIST_REFUSED, 0); /* has no slot */
	CU_ASSERT_TRUE(slot_is_free(&rig.io[0]));
	CU_ASSERT_TRUE(slot_make_free(&rig.io[0], 1, false));
	CU_ASSERT_FALSE(slot_make_free(&rig.io[0], 2, false));
	rig_conn(0, 'b', LIST_BEHIND, 0);
	CU_ASSERT_FALSE(slot_is_free(&rig.io[0]));
	CU_ASSERT_FALSE(slot_make_free(&rig.io[0], 1, false));
	rig.conf.max_connections = 3;
	CU_ASSERT_TRUE(slot_is_free(&rig.io[0]));
	CU_ASSERT_TRUE(rig_did(""));
	rig_finish();
}

/* A connection younger than NET_EVICT_AFTER_NS is spared, whatever it waits for. */
static void test_age(void)
{
	static const enum net_list_id lists[] = {LIST_IDLE, LIST_HALF, LIST_LINGER, LIST_SLOW};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		rig_begin(1);
		rig.conf.max_connections = 1;
		rig_conn(0, 'a', lists[i], AGE - 1)->slow = true;
		CU_ASSERT_FALSE(slot_make_free(&rig.io[0], 1, false));
		CU_ASSERT_TRUE(rig_did(""));
		rig_wait(1);
		CU_ASSERT_TRUE(slot_make_free(&rig.io[0], 1, false));
		CU_ASSERT_TRUE(rig_did("evict:a"));
		rig_finish();
	}
}

/* The longest wait of all lists comes first, then the other lists. */
static void test_order(void)
{
	rig_begin(1);
	rig.conf.max_connections = 5;
	rig_conn(0, 'a', LIST_IDLE, 3 * AGE);
	rig_conn(0, 'b', LIST_IDLE, 2 * AGE);
	rig_conn(0, 'c', LIST_HALF, 5 * AGE);
	rig_conn(0, 'd', LIST_LINGER, 4 * AGE);
	rig_conn(0, 'e', LIST_BEHIND, 9 * AGE);
	CU_ASSERT_TRUE(slot_make_free(&rig.io[0], 1, true));
	CU_ASSERT_TRUE(rig_did("evict:c"));
	CU_ASSERT_TRUE(slot_make_free(&rig.io[0], 3, true));
	CU_ASSERT_TRUE(rig_did("evict:d evict:a"));
	CU_ASSERT_FALSE(slot_make_free(&rig.io[0], 5, true)); /* `e` has a request */
	CU_ASSERT_TRUE(rig_did("evict:b"));
	rig_finish();
}

/* If the longest wait cannot end, because its connection is about to be processed, the next one of
 * its list does, and then those of the other lists. */
static void test_ready(void)
{
	rig_begin(1);
	rig.conf.max_connections = 3;
	rig_conn(0, 'a', LIST_IDLE, 4 * AGE)->net.ready = true;
	rig_conn(0, 'b', LIST_IDLE, 2 * AGE);
	rig_conn(0, 'c', LIST_HALF, 3 * AGE);
	CU_ASSERT_FALSE(slot_make_free(&rig.io[0], 3, true));
	CU_ASSERT_TRUE(rig_did("evict:b evict:c"));
	rig_finish();
}

/* A connection whose handshake is in its stage is evicted for a slot, unless only waiting
 * connections may be. */
static void test_away(void)
{
	rig_begin(1);
	rig.conf.max_connections = 2;
	rig_conn(0, 'a', LIST_AWAY, 9 * AGE);
	rig_conn(0, 'b', LIST_IDLE, AGE);
	CU_ASSERT_TRUE(slot_make_free(&rig.io[0], 1, true));
	CU_ASSERT_TRUE(rig_did("evict:b"));
	CU_ASSERT_FALSE(slot_make_free(&rig.io[0], 2, true));
	CU_ASSERT_FALSE(slot_evict(&rig.io[0])); /* its descriptor would remain */
	CU_ASSERT_EQUAL(slot_idle_since_ns(&rig.io[0], true), INT64_MAX);
	CU_ASSERT_TRUE(rig_did(""));
	rig_conn(0, 'c', LIST_IDLE, AGE);
	CU_ASSERT_TRUE(slot_make_free(&rig.io[0], 1, false));
	CU_ASSERT_TRUE(rig_did("evict:a"));
	rig_finish();
}

/* A transfer is ended only if it is slow and no connection waits. */
static void test_slow(void)
{
	rig_begin(1);
	rig.conf.max_connections = 4;
	rig_conn(0, 'a', LIST_SLOW, 9 * AGE);
	rig_conn(0, 'b', LIST_SLOW, 8 * AGE)->slow = true;
	rig_conn(0, 'c', LIST_SLOW, 7 * AGE)->slow = true;
	rig_conn(0, 'd', LIST_IDLE, AGE);
	CU_ASSERT_FALSE(slot_make_free(&rig.io[0], 2, true));
	CU_ASSERT_TRUE(rig_did("evict:d"));
	CU_ASSERT_TRUE(slot_make_free(&rig.io[0], 2, false));
	CU_ASSERT_TRUE(rig_did("evict:b"));
	CU_ASSERT_FALSE(slot_make_free(&rig.io[0], 4, false));
	CU_ASSERT_TRUE(rig_did("evict:c"));
	rig_finish();
}

/* One search checks NET_EVICT_SCAN transfers, and the next one those after them. */
static void test_scan(void)
{
	rig_begin(1);
	rig.conf.max_connections = NET_EVICT_SCAN + 2;
	for (int i = 0; i < NET_EVICT_SCAN; i++)
		rig_conn(0, 'h', LIST_SLOW, 9 * AGE);
	rig_conn(0, 'y', LIST_SLOW, 8 * AGE)->slow = true;
	rig_conn(0, 'z', LIST_SLOW, 8 * AGE)->slow = true;
	CU_ASSERT_FALSE(slot_make_free(&rig.io[0], 1, false));
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_TRUE(slot_make_free(&rig.io[0], 1, false));
	CU_ASSERT_TRUE(rig_did("evict:y"));
	CU_ASSERT_TRUE(slot_make_free(&rig.io[0], 2, false));
	CU_ASSERT_TRUE(rig_did("evict:z"));
	rig_finish();
}

/* The last transfer that one search checks. */
static void test_scan_last(void)
{
	rig_begin(1);
	rig.conf.max_connections = NET_EVICT_SCAN;
	for (int i = 0; i < NET_EVICT_SCAN - 1; i++)
		rig_conn(0, 'h', LIST_SLOW, 9 * AGE);
	rig_conn(0, 'z', LIST_SLOW, 8 * AGE)->slow = true;
	CU_ASSERT_TRUE(slot_make_free(&rig.io[0], 1, false));
	CU_ASSERT_TRUE(rig_did("evict:z"));
	rig_finish();
}

/* When max_connections was lowered, one call closes at most SLOT_EVICT_RUN. */
static void test_run(void)
{
	rig_begin(1);
	rig.conf.max_connections = 10;
	for (int i = 0; i < 10 + SLOT_EVICT_RUN; i++)
		rig_conn(0, 'a', LIST_IDLE, AGE);
	CU_ASSERT_FALSE(slot_make_free(&rig.io[0], 1, true));
	CU_ASSERT_EQUAL(atomic_load(&rig.srv.connections), 10);
	CU_ASSERT_TRUE(slot_make_free(&rig.io[0], 1, true));
	CU_ASSERT_EQUAL(atomic_load(&rig.srv.connections), 9);
	rig.said = 0;
	rig_finish();
}

/* ---- descriptors ---- */

static void test_descriptors(void)
{
	rig_begin(1);
	CU_ASSERT_EQUAL(slot_idle_since_ns(&rig.io[0], false), INT64_MAX);
	rig_conn(0, 'a', LIST_HALF, 2 * AGE);
	rig_conn(0, 'b', LIST_REFUSED, 3 * AGE);
	rig_conn(0, 'c', LIST_SLOW, 9 * AGE)->slow = true;
	CU_ASSERT_EQUAL(slot_idle_since_ns(&rig.io[0], true), rig.now_ns - 2 * AGE);
	CU_ASSERT_EQUAL(slot_idle_since_ns(&rig.io[0], false), rig.now_ns - 3 * AGE);
	CU_ASSERT_TRUE(slot_evict(&rig.io[0]));
	CU_ASSERT_TRUE(slot_evict(&rig.io[0]));
	CU_ASSERT_FALSE(slot_evict(&rig.io[0]));
	CU_ASSERT_TRUE(rig_did("evict:b evict:a"));
	rig_finish();
}

/* The soft limit is raised as far as it must be and may be, and never lowered. */
static void test_raise(void)
{
	struct rlimit before, r;

	rig_begin(1);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	r = (struct rlimit){.rlim_cur = 100, .rlim_max = 600};
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &r), 0);
	slot_raise_fds(&rig.stage, 200, 0, 0);
	CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &r), 0);
	CU_ASSERT_EQUAL(r.rlim_cur, 328); /* 128 for everything else */
	slot_raise_fds(&rig.stage, 100, 0, 0);
	CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &r), 0);
	CU_ASSERT_EQUAL(r.rlim_cur, 328);
	slot_raise_fds(&rig.stage, 1000, 0, 0);
	CU_ASSERT_EQUAL(getrlimit(RLIMIT_NOFILE, &r), 0);
	CU_ASSERT_EQUAL(r.rlim_cur, 600);
	CU_ASSERT_EQUAL(r.rlim_max, 600);
	rig_finish();
}

/* ---- addresses ---- */

static void test_per_address(void)
{
	struct net_conf conf = {.max_per_address = -1, .max_connections = 1000};

	CU_ASSERT_EQUAL(slot_per_address(&conf), 250);
	conf.max_connections = 260;
	CU_ASSERT_EQUAL(slot_per_address(&conf), 65);
	conf.max_connections = 4;
	CU_ASSERT_EQUAL(slot_per_address(&conf), 64);
	conf.max_per_address = 1;
	CU_ASSERT_EQUAL(slot_per_address(&conf), 1);
	conf.max_per_address = 0;
	CU_ASSERT_EQUAL(slot_per_address(&conf), INT64_MAX);
}

/* A new connection over the limit of its address closes only others of that address. */
static void test_address(void)
{
	rig_begin(1);
	rig.conf.max_per_address = 3;
	CU_ASSERT_EQUAL(clients_enter(rig.srv.clients, RIG_KEY), 1); /* the new connection */
	rig_move(rig_conn(0, 'o', LIST_IDLE, 9 * AGE), 1);
	rig_conn(0, 'a', LIST_IDLE, 2 * AGE);
	rig_conn(0, 'b', LIST_IDLE, AGE);
	CU_ASSERT_EQUAL(slot_check_address(&rig.io[0], RIG_KEY, 3), -1);
	CU_ASSERT_TRUE(rig_did(""));
	rig_conn(0, 'c', LIST_IDLE, AGE - 1);
	CU_ASSERT_EQUAL(slot_check_address(&rig.io[0], RIG_KEY, 4), -1);
	CU_ASSERT_TRUE(rig_did("evict:a"));
	rig_conn(0, 'd', LIST_BEHIND, 0);
	rig_conn(0, 'e', LIST_BEHIND, 0);
	/* two over the limit, of which only `b` waits for long enough */
	CU_ASSERT_EQUAL(slot_check_address(&rig.io[0], RIG_KEY, 5), NET_LIMIT_ADDRESS);
	CU_ASSERT_TRUE(rig_did("evict:b"));
	clients_leave(rig.srv.clients, RIG_KEY);
	rig_finish();
}

/* Connections that other threads have closed in the meantime need not be closed again. */
static void test_address_fewer(void)
{
	rig_begin(1);
	rig.conf.max_per_address = 2;
	rig_conn(0, 'a', LIST_IDLE, 2 * AGE);
	rig_conn(0, 'b', LIST_IDLE, AGE);
	CU_ASSERT_EQUAL(slot_check_address(&rig.io[0], RIG_KEY, 5), -1);
	CU_ASSERT_TRUE(rig_did(""));
	rig_conn(0, 'c', LIST_IDLE, AGE);
	rig_conn(0, 'd', LIST_IDLE, AGE);
	CU_ASSERT_EQUAL(slot_check_address(&rig.io[0], RIG_KEY, 4), -1);
	CU_ASSERT_TRUE(rig_did("evict:a evict:b"));
	rig_finish();
}

static void test_address_run(void)
{
	rig_begin(1);
	rig.conf.max_per_address = 1;
	for (int i = 0; i < SLOT_EVICT_RUN + 2; i++)
		rig_conn(0, 'a', LIST_IDLE, AGE);
	CU_ASSERT_EQUAL(
	    slot_check_address(&rig.io[0], RIG_KEY, SLOT_EVICT_RUN + 2), NET_LIMIT_ADDRESS);
	CU_ASSERT_EQUAL(clients_count(rig.srv.clients, RIG_KEY), 2);
	rig.said = 0;
	for (int i = 0; i < SLOT_EVICT_RUN - 1; i++)
		rig_conn(0, 'a', LIST_IDLE, AGE);
	CU_ASSERT_EQUAL(slot_check_address(&rig.io[0], RIG_KEY, SLOT_EVICT_RUN + 1), -1);
	CU_ASSERT_EQUAL(clients_count(rig.srv.clients, RIG_KEY), 1);
	rig.said = 0;
	rig_finish();
}

/* The rate is checked first: a connection over it closes no other one. */
static void test_rate(void)
{
	rig_begin(1);
	rig.conf.accept_rate = 20;
	rig.conf.max_per_address = 1;
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(slot_check_address(&rig.io[0], RIG_KEY, 1), -1);
	rig_conn(0, 'a', LIST_IDLE, AGE);
	CU_ASSERT_EQUAL(slot_check_address(&rig.io[0], RIG_KEY, 2), NET_LIMIT_RATE);
	CU_ASSERT_TRUE(rig_did(""));
	rig_wait(S / 20);
	CU_ASSERT_EQUAL(slot_check_address(&rig.io[0], RIG_KEY, 1), -1);
	CU_ASSERT_EQUAL(slot_check_address(&rig.io[0], RIG_KEY, 1), NET_LIMIT_RATE);
	rig.conf.accept_rate = 0;
	CU_ASSERT_EQUAL(slot_check_address(&rig.io[0], RIG_KEY, 1), -1);
	rig_finish();
}

CUNIT_MAIN("slot", {"free slots", test_free}, {"age", test_age}, {"order", test_order},
    {"about to be processed", test_ready}, {"handshakes", test_away}, {"slow transfers", test_slow},
    {"length of a search", test_scan}, {"end of a search", test_scan_last},
    {"closed by one call", test_run}, {"descriptors", test_descriptors},
    {"auto limit of an address", test_per_address}, {"limit of an address", test_address},
    {"closed in the meantime", test_address_fewer}, {"closed for an address", test_address_run},
    {"rate of an address", test_rate}, {"limit of the process", test_raise})
