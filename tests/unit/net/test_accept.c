/* SPDX-License-Identifier: MIT */
/*
 * What becomes of clients in a backlog: accepted, refused with and without a response, or left to
 * wait, by the state of the server. Sockets are real, and the test is the I/O thread.
 */
#include "net/accept.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/evict.h"
#include "net/listen.h"
#include "net/net_rig.h"

#define AGE NET_EVICT_AFTER_NS
#define MS  1000000LL
/* Accepts of one iteration, and connections that are refused at the same time: accept.c. */
#define AT_ONCE  64
#define REFUSING 64

static int listener(int i)
{
	return rig.io[i].listener[0].watch.fd;
}

static void dial_many(int fd[], int n)
{
	for (int i = 0; i < n; i++)
		fd[i] = rig_dial(0);
}

static void close_many(const int fd[], int n)
{
	for (int i = 0; i < n; i++)
		close(fd[i]);
}

/* How many of the calls recorded since the last check were `word`. */
static int count(const char *word)
{
	int n = 0;

	for (const char *at = rig.record; (at = strstr(at, word)); at += strlen(word))
		n++;
	rig.said = 0;
	rig.record[0] = '\0';
	return n;
}

static bool paused(int i)
{
	CU_ASSERT_EQUAL(rig.io[i].listener[0].watched, !rig.io[i].accept.paused);
	return rig.io[i].accept.paused;
}

/* ---- free slots ---- */

static void test_at_once(void)
{
	int fd[AT_ONCE + 3];

	rig_begin(1);
	rig_listen(0);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did(""));
	dial_many(fd, AT_ONCE + 3);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_EQUAL(count("open "), AT_ONCE);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("open open open"));
	CU_ASSERT_FALSE(paused(0));
	CU_ASSERT_EQUAL(rig.count[0][NET_ACCEPT_FAILURES], 0);
	close_many(fd, AT_ONCE + 3);
	rig_finish();
}

/* A client that has left is opened like any other if a slot is free. If none is free, nothing is
 * evicted for it and accepting goes on. */
static void test_gone(void)
{
	rig_begin(1);
	rig.conf.max_connections = 1;
	rig_listen(0);
	rig_dial_and_leave(0);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("open"));
	rig_conn(0, 'a', LIST_IDLE, AGE);
	rig_dial_and_leave(0);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_FALSE(paused(0));
	rig_finish();
}

/* ---- no free slot ---- */

static void test_evicts(void)
{
	int fd;

	rig_begin(1);
	rig.conf.max_connections = 1;
	rig_listen(0);
	rig_conn(0, 'a', LIST_IDLE, AGE - 1);
	fd = rig_dial(0);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("open!0"));
	CU_ASSERT_FALSE(paused(0));
	close(fd);
	rig_wait(1);
	fd = rig_dial(0);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("evict:a open"));
	close(fd);
	rig_finish();
}

/* A slow transfer gives way only when no other thread has a waiting connection. */
static void test_slow_last(void)
{
	int fd[2];

	rig_begin(2);
	rig.conf.max_connections = 2;
	rig_listen(0);
	rig_conn(0, 's', LIST_SLOW, 9 * AGE)->slow = true;
	rig_conn(1, 'b', LIST_IDLE, AGE);
	evict_tell(&rig.io[1]);
	fd[0] = rig_dial(0);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_TRUE(paused(0));
	fd[1] = rig_dial(0); /* waits in the backlog */
	evict_follow(&rig.io[1]);
	CU_ASSERT_TRUE(rig_did("evict:b"));
	evict_follow(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("open"));
	CU_ASSERT_FALSE(paused(0));
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("evict:s open"));
	close_many(fd, 2);
	rig_finish();
}

/* A new connection asks each other thread at most once, and is then refused. */
static void test_asks(void)
{
	int fd;

	rig_begin(3);
	rig.conf.max_connections = 2;
	rig_listen(0);
	for (int i = 1; i < 3; i++) {
		rig_conn(i, 'x', LIST_IDLE, AGE)->net.ready = true;
		evict_tell(&rig.io[i]);
	}
	fd = rig_dial(0);
	accept_some(&rig.io[0], listener(0));
	for (int i = 1; i < 3; i++) {
		CU_ASSERT_TRUE(rig_did(""));
		CU_ASSERT_TRUE(paused(0));
		evict_follow(&rig.io[1]);
		evict_follow(&rig.io[2]);
		evict_follow(&rig.io[0]);
	}
	CU_ASSERT_TRUE(rig_did("open!0"));
	CU_ASSERT_FALSE(paused(0));
	close(fd);
	rig_finish();
}

/* The reply to a new connection that waits may be late: the timer of the listeners checks again. */
static void test_timer(void)
{
	int fd;

	rig_begin(2);
	rig.conf.max_connections = 1;
	rig_listen(0);
	rig_conn(1, 'b', LIST_IDLE, AGE);
	evict_tell(&rig.io[1]);
	fd = rig_dial(0);
	accept_some(&rig.io[0], listener(0));
	rig_wait(49 * MS);
	rig_fire(0);
	CU_ASSERT_TRUE(paused(0));
	CU_ASSERT_TRUE(rig_did(""));
	rig_wait(5 * MS); /* a tick more */
	rig_fire(0);
	CU_ASSERT_TRUE(rig_did("open!0"));
	CU_ASSERT_FALSE(paused(0));
	evict_follow(&rig.io[1]); /* too late: the request was withdrawn */
	CU_ASSERT_TRUE(rig_did(""));
	close(fd);
	rig_finish();
}

/* ---- refused ---- */

/* REFUSING clients are being refused at the same time. With the next one, accepting pauses until
 * one of them has gone. */
static void test_refusing(void)
{
	int fd[REFUSING + 2];

	rig_begin(1);
	rig.conf.max_connections = 1;
	rig_listen(0);
	rig_conn(0, 'a', LIST_BEHIND, 0);
	dial_many(fd, REFUSING);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_EQUAL(count("open!0"), REFUSING);
	CU_ASSERT_EQUAL(atomic_load(&rig.srv.refusing), REFUSING);
	CU_ASSERT_FALSE(paused(0));
	dial_many(fd + REFUSING, 2);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("open!0"));
	CU_ASSERT_TRUE(paused(0));
	CU_ASSERT_TRUE(rig.io[0].accept.paused);
	while (rig.io[0].list[LIST_REFUSED].first)
		rig_close((struct rig_conn *)rig.io[0].list[LIST_REFUSED].first);
	CU_ASSERT_FALSE(paused(0));
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("open!0"));
	CU_ASSERT_FALSE(paused(0));
	close_many(fd, REFUSING + 2);
	rig_finish();
}

/* Clients over a limit of their address do not make others wait. Beyond REFUSING they are closed
 * without a response. */
static void test_address(void)
{
	int fd[REFUSING + 1];

	rig_begin(1);
	rig.conf.max_per_address = 1;
	rig_listen(0);
	dial_many(fd, REFUSING + 1);
	accept_some(&rig.io[0], listener(0));
	rig.said = 0;
	CU_ASSERT_EQUAL(atomic_load(&rig.srv.connections), 1);
	CU_ASSERT_EQUAL(atomic_load(&rig.srv.refusing), REFUSING - 1);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("open!1"));
	close_many(fd, REFUSING + 1);
	dial_many(fd, 1);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("away!1"));
	CU_ASSERT_FALSE(paused(0));
	rig_close((struct rig_conn *)rig.io[0].list[LIST_REFUSED].first);
	dial_many(fd + 1, 1);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("open!1"));
	close_many(fd, 2);
	rig_finish();
}

/* ---- no free descriptor ---- */

/* From now on the process has no free descriptor. */
static struct rlimit use_up(void)
{
	int lowest = dup(0);
	struct rlimit before, r;

	close(lowest);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	r = before;
	r.rlim_cur = (rlim_t)lowest;
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &r), 0);
	return before;
}

/* The client that uses the reserve descriptor is told that the server is full. */
static void test_reserve(void)
{
	struct rlimit before;
	int fd[2];

	rig_begin(1);
	rig_listen(0);
	CU_ASSERT_NOT_EQUAL(rig.io[0].accept.reserve_fd, -1);
	dial_many(fd, 2);
	before = use_up();
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("away!0+"));
	CU_ASSERT_TRUE(paused(0)); /* the other client waits */
	CU_ASSERT_NOT_EQUAL(rig.io[0].accept.reserve_fd, -1);
	CU_ASSERT_EQUAL(rig.count[0][NET_ACCEPT_FAILURES], 1);
	setrlimit(RLIMIT_NOFILE, &before);
	rig_wait(55 * MS);
	rig_fire(0);
	CU_ASSERT_FALSE(paused(0));
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("open"));
	close_many(fd, 2);
	rig_finish();
}

/* An idle connection is evicted for its descriptor. */
static void test_evict_descriptor(void)
{
	struct rlimit before;
	int fd;

	rig_begin(1);
	rig_listen(0);
	rig_conn(0, 'a', LIST_LINGER, AGE);
	fd = rig_dial(0);
	before = use_up();
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("evict:a open"));
	CU_ASSERT_NOT_EQUAL(rig.io[0].accept.reserve_fd, -1);
	CU_ASSERT_FALSE(paused(0));
	/* An empty backlog is not a failure, though accept fails. */
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_EQUAL(rig.count[0][NET_ACCEPT_FAILURES], 1);
	CU_ASSERT_FALSE(paused(0));
	setrlimit(RLIMIT_NOFILE, &before);
	close(fd);
	rig_finish();
}

/* Without a reserve, a connection that waits is closed before the client is known. */
static void test_no_reserve(void)
{
	struct rlimit before;
	int fd, other;

	rig_begin(1);
	rig_listen(0);
	rig_conn(0, 'a', LIST_IDLE, AGE);
	rig_conn(0, 'b', LIST_IDLE, AGE - 1);
	fd = rig_dial(0);
	before = use_up();
	close(rig.io[0].accept.reserve_fd);
	rig.io[0].accept.reserve_fd = -1;
	other = dup(0); /* takes the number of the reserve */
	accept_some(&rig.io[0], listener(0));
	/* The client got the descriptor of `a`, so none is left for a reserve, and it is
	 * refused. */
	CU_ASSERT_TRUE(rig_did("evict:a away!0+"));
	CU_ASSERT_TRUE(paused(0));
	CU_ASSERT_NOT_EQUAL(rig.io[0].accept.reserve_fd, -1);
	CU_ASSERT_EQUAL(rig.count[0][NET_ACCEPT_FAILURES], 1);
	setrlimit(RLIMIT_NOFILE, &before);
	close(other);
	close(fd);
	rig_finish();
}

/* Without a reserve, and without a connection that may be evicted, the client stays in the
 * backlog. */
static void test_none_at_all(void)
{
	struct rlimit before;
	int fd, other;

	rig_begin(1);
	rig_listen(0);
	rig_conn(0, 'b', LIST_IDLE, 0);
	fd = rig_dial(0);
	before = use_up();
	close(rig.io[0].accept.reserve_fd);
	rig.io[0].accept.reserve_fd = -1;
	other = dup(0);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_TRUE(paused(0));
	close(other);
	rig_wait(55 * MS);
	rig_fire(0); /* the number that is free now becomes the reserve */
	CU_ASSERT_FALSE(paused(0));
	CU_ASSERT_NOT_EQUAL(rig.io[0].accept.reserve_fd, -1);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(rig_did("away!0+"));
	setrlimit(RLIMIT_NOFILE, &before);
	close(fd);
	rig_finish();
}

/* ---- the end ---- */

/* In a drain the backlog is emptied, although the server is full and the listeners are paused. */
static void test_drain(void)
{
	int fd[4];

	rig_begin(2);
	rig.conf.max_connections = 2;
	rig.conf.backlog = 2;
	rig_listen(0);
	rig_conn(0, 'a', LIST_BEHIND, 0);
	rig_conn(1, 'b', LIST_IDLE, AGE);
	evict_tell(&rig.io[1]);
	dial_many(fd, 4);
	accept_some(&rig.io[0], listener(0));
	CU_ASSERT_TRUE(paused(0)); /* the first one waits for `b` */
	rig.io[0].drain.phase = NET_DRAINING;
	listen_close(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("open!0 open!0 open!0 open!0"));
	CU_ASSERT_EQUAL(rig.io[0].accept.newcomer.fd, -1);
	CU_ASSERT_EQUAL(rig.io[0].accept.reserve_fd, -1);
	CU_ASSERT_EQUAL(listener(0), -1);
	CU_ASSERT_FALSE(rig.io[0].accept.last_call);
	listen_close(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did(""));
	close_many(fd, 4);
	rig_finish();
}

/* In a drain, a new connection that waits gets the slot that is free by now. */
static void test_drain_slot(void)
{
	struct rig_conn *c;
	int fd;

	rig_begin(2);
	rig.conf.max_connections = 1;
	rig_listen(0);
	c = rig_conn(1, 'b', LIST_IDLE, AGE);
	evict_tell(&rig.io[1]);
	fd = rig_dial(0);
	accept_some(&rig.io[0], listener(0));
	rig_close(c);
	rig.io[0].drain.phase = NET_DRAINING;
	accept_end(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("open"));
	accept_end(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did(""));
	close(fd);
	rig_finish();
}

/* Outside of a drain, a new connection that waits is told that the server is full, and the backlog
 * is left. */
static void test_stop(void)
{
	int fd[2];

	rig_begin(2);
	rig.conf.max_connections = 1;
	rig_listen(0);
	rig_conn(1, 'b', LIST_IDLE, AGE);
	evict_tell(&rig.io[1]);
	dial_many(fd, 2);
	accept_some(&rig.io[0], listener(0));
	listen_close(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("away!0+"));
	CU_ASSERT_EQUAL(rig_clients(), 0);
	evict_follow(&rig.io[1]);
	CU_ASSERT_TRUE(rig_did("")); /* the request was withdrawn */
	close_many(fd, 2);
	rig_finish();
}

CUNIT_MAIN("accept", {"accepts of one iteration", test_at_once}, {"client has left", test_gone},
    {"evicts", test_evicts}, {"slow transfer", test_slow_last}, {"asks", test_asks},
    {"no reply in time", test_timer}, {"being refused", test_refusing},
    {"limit of an address", test_address}, {"reserve descriptor", test_reserve},
    {"evicts for a descriptor", test_evict_descriptor}, {"no reserve", test_no_reserve},
    {"no reserve and nothing to evict", test_none_at_all}, {"backlog in a drain", test_drain},
    {"slot in a drain", test_drain_slot}, {"stop", test_stop})
