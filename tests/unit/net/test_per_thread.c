/* SPDX-License-Identifier: MIT */
/* Limits of connections per I/O thread: who watches, what waits for room, and whom a full thread tells. */
#include "net/net_rig.h"

#include <stdlib.h>
#include <unistd.h>

#include "net/accept.h"
#include "net/drain.h"
#include "net/net_server.h"
#include "net/per_thread.h"

#define S 1000000000LL

static void begin(int n, int64_t most)
{
	rig_begin(n);
	rig.srv.per_thread = most;
	for (int i = 0; i < n; i++)
		rig.io[i].share.opened = true;
}

static void turn(int i)
{
	net_io_follow(&rig.io[i]);
	net_io_report(&rig.io[i]);
}

static bool watches(int i)
{
	return rig.io[i].listener[0].watched;
}

static void give(char name, bool idle, int first)
{
	per_thread_give(&rig.srv, rig_handed(name, idle), rig.now_ns, first);
}

/* A thread watches while it has room, and accepts one client at a time. */
static void test_room(void)
{
	int fd[4];

	begin(1, 2);
	rig_listen(0);
	for (int i = 0; i < 4; i++)
		fd[i] = rig_dial(0);
	accept_some(&rig.io[0], rig.io[0].listener[0].watch.fd);
	CU_ASSERT_TRUE(rig_did("open"));
	CU_ASSERT_TRUE(watches(0));
	accept_some(&rig.io[0], rig.io[0].listener[0].watch.fd);
	CU_ASSERT_TRUE(rig_did("open"));
	CU_ASSERT_FALSE(watches(0));
	accept_some(&rig.io[0], rig.io[0].listener[0].watch.fd);
	turn(0);
	CU_ASSERT_TRUE(rig_did(""));
	rig_close((struct rig_conn *)rig.io[0].conns);
	CU_ASSERT_FALSE(watches(0)); /* its requests may still be in the graph */
	turn(0);
	CU_ASSERT_TRUE(watches(0));
	accept_some(&rig.io[0], rig.io[0].listener[0].watch.fd);
	CU_ASSERT_TRUE(rig_did("open"));
	CU_ASSERT_FALSE(watches(0));
	for (int i = 0; i < 4; i++)
		close(fd[i]);
	rig_finish();
}

/* What is handed over waits in order, for whichever thread has room first. */
static void test_waiting(void)
{
	struct rig_conn *c;

	begin(2, 1);
	rig_conn(0, 'x', LIST_BEHIND, 0);
	c = rig_conn(1, 'y', LIST_BEHIND, 0);
	turn(0);
	turn(1);
	give('a', true, 0);
	give('b', false, 1);
	CU_ASSERT_TRUE(rig_wakes(0) > 0 && rig_wakes(1) > 0); /* to watch the time */
	CU_ASSERT_EQUAL(rig.srv.n_waiting, 2);
	CU_ASSERT_EQUAL(rig.waits, 2);
	turn(0);
	turn(1);
	CU_ASSERT_TRUE(rig_did(""));
	rig_close(c);
	rig.adopts = false; /* no memory: tried again in 50 ms */
	turn(1);
	CU_ASSERT_EQUAL(rig.srv.n_waiting, 2);
	CU_ASSERT_NOT_EQUAL(timer_wheel_next_ns(&rig.io[1].loop->timers), INT64_MAX);
	rig.adopts = true;
	turn(1);
	CU_ASSERT_TRUE(rig_did("adopt:a adopt:b"));
	CU_ASSERT_EQUAL(rig.srv.n_waiting, 0);
	CU_ASSERT_EQUAL(rig.waits, 0);
	rig_finish();
}

/* What operators see: clients in the backlog wait, and connections that were handed over. */
static void test_clients(void)
{
	struct weir_clients c;
	int fd[2];

	begin(2, 2);
	rig_listen(0);
	rig_conn(0, 'x', LIST_IDLE, 0);
	rig_conn(0, 'y', LIST_BEHIND, 0);
	rig_conn(1, 'z', LIST_BEHIND, 0);
	turn(0);
	turn(1);
	fd[0] = rig_dial(0);
	per_thread_clients(&rig.srv, &c);
	CU_ASSERT_TRUE(c.per_loop == 2 && c.loops == 2 && c.full == 1 && c.idle == 1);
	CU_ASSERT_EQUAL(c.waiting, 1);
	rig_conn(1, 'u', LIST_BEHIND, 0);
	turn(1);
	give('a', false, 0);
	fd[1] = rig_dial(0);
	per_thread_clients(&rig.srv, &c);
	CU_ASSERT_TRUE(c.full == 2 && c.idle == 1);
	CU_ASSERT_EQUAL(c.waiting, 3);
	rig.srv.per_thread = 0;
	per_thread_clients(&rig.srv, &c);
	CU_ASSERT_TRUE(c.per_loop == 0 && c.loops == 0 && c.full == 0 && c.waiting == 0);
	rig.srv.per_thread = 2;
	close(fd[0]);
	close(fd[1]);
	rig_finish();
}

/* A thread with room is told. */
static void test_tell(void)
{
	begin(3, 1);
	rig_conn(0, 'x', LIST_IDLE, 0);
	for (int i = 0; i < 3; i++)
		turn(i);
	give('a', true, 0);
	CU_ASSERT_EQUAL(rig_wakes(0) + rig_wakes(2), 0);
	CU_ASSERT_EQUAL(rig_wakes(1), 1);
	rig_conn(1, 'y', LIST_IDLE, 0); /* it has got a client meanwhile, and tells the next one */
	turn(1);
	CU_ASSERT_TRUE(rig_wakes(2) > 0);
	CU_ASSERT_TRUE(rig_did(""));
	turn(2);
	CU_ASSERT_TRUE(rig_did("adopt:a"));
	rig_finish();
}

/* A connection between two requests is closed at once for one that waits. */
static void test_make_way(void)
{
	begin(1, 1);
	rig_conn(0, 'x', LIST_IDLE, 0);
	turn(0);
	give('a', false, 0);
	turn(0);
	CU_ASSERT_TRUE(rig_did("evict:x"));
	turn(0);
	CU_ASSERT_TRUE(rig_did("adopt:a"));
	rig_conn(0, 'y', LIST_IDLE, 0)->slow = true; /* it has not sent its first request yet */
	turn(0);
	give('b', false, 0);
	turn(0);
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_EQUAL(rig.srv.n_waiting, 1);
	per_thread_fini(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("drop:b+"));
	rig_finish();
}

/* Of a connection that waits, one thread is told, which tells another one if it has got a request. */
static void test_turn_passes(void)
{
	struct rig_conn *c;

	begin(3, 1);
	rig_conn(0, 'x', LIST_BEHIND, 0);
	c = rig_conn(1, 'y', LIST_IDLE, 0);
	rig_conn(2, 'z', LIST_IDLE, 0);
	for (int i = 0; i < 3; i++)
		turn(i);
	give('a', false, 0);
	CU_ASSERT_EQUAL(rig_wakes(0) + rig_wakes(2), 0);
	CU_ASSERT_EQUAL(rig_wakes(1), 1);
	net_list_join(&rig.io[1], &c->net, LIST_BEHIND);
	turn(1);
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_EQUAL(rig_wakes(2), 1);
	turn(2);
	CU_ASSERT_TRUE(rig_did("evict:z"));
	turn(2);
	CU_ASSERT_TRUE(rig_did("adopt:a"));
	rig_finish();
}

/* A thread whose connection becomes idle while others wait makes room without being told. */
static void test_becomes_idle(void)
{
	struct rig_conn *c;

	begin(1, 1);
	c = rig_conn(0, 'x', LIST_BEHIND, 0);
	turn(0);
	give('a', true, 0);
	turn(0);
	CU_ASSERT_TRUE(rig_did(""));
	net_list_join(&rig.io[0], &c->net, LIST_IDLE);
	turn(0);
	CU_ASSERT_TRUE(rig_did("evict:x"));
	turn(0);
	CU_ASSERT_TRUE(rig_did("adopt:a"));
	rig_finish();
}

/* A connection that finds no thread for 10 s is refused, whatever it has sent. */
static void test_too_late(void)
{
	begin(1, 1);
	rig_conn(0, 'x', LIST_BEHIND, 0);
	turn(0);
	give('a', true, 0);
	rig_wait(S);
	give('b', false, 0);
	give('c', true, 0);
	turn(0);
	rig_wait(8 * S);
	turn(0);
	CU_ASSERT_TRUE(rig_did(""));
	rig_wait(S);
	turn(0);
	CU_ASSERT_TRUE(rig_did("drop:a"));
	CU_ASSERT_EQUAL(rig.count[0][NET_REFUSED_HANDED], 1);
	rig_wait(S);
	rig_fire(0); /* the thread looks each second */
	turn(0);
	CU_ASSERT_TRUE(rig_did("drop:b drop:c"));
	CU_ASSERT_EQUAL(rig.count[0][NET_REFUSED_HANDED], 3);
	CU_ASSERT_EQUAL(rig.waits, 0);
	give('d', false, 0);
	per_thread_fini(&rig.io[0]);
	CU_ASSERT_TRUE(rig_did("drop:d+"));
	rig_finish();
}

/* A server that stops closes what is idle; the rest is answered if there is room in time. */
static void test_drain(void)
{
	begin(1, 1);
	struct rig_conn *c = rig_conn(0, 'x', LIST_BEHIND, 0);
	turn(0);
	give('a', false, 0);
	give('b', true, 0);
	rig.srv.phase = NET_DRAINING;
	rig.srv.linger_until_ns = rig.now_ns + S;
	turn(0);
	CU_ASSERT_TRUE(rig_did("drop:b+"));
	rig_close(c);
	turn(0);
	CU_ASSERT_TRUE(rig_did("adopt:a"));
	CU_ASSERT_TRUE(rig.io[0].drain.done);
	give('d', false, 0);
	turn(0);
	CU_ASSERT_EQUAL(rig.srv.n_waiting, 1);
	rig.srv.phase = NET_CLOSED;
	turn(0);
	CU_ASSERT_TRUE(rig_did("drop:d+"));
	rig_finish();
}

/* A server that is replaced passes on what waits. */
static void test_leave(void)
{
	static struct net_server next;
	static struct net_io next_io;

	begin(1, 1);
	next = (struct net_server){
	    .per_thread = 1, .n_io = 1, .n_loops = 1, .io = {&next_io}, .calls = rig.srv.calls};
	pthread_mutex_init(&next.lock, NULL);
	next_io.loop = rig.io[0].loop;
	next_io.srv = &next;
	rig_conn(0, 'x', LIST_IDLE, 0);
	turn(0);
	give('a', true, 0);
	rig.io[0].handover.to = &next;
	rig.io[0].drain.phase = NET_DRAINING;
	turn(0);
	CU_ASSERT_EQUAL(rig.srv.n_waiting, 0);
	CU_ASSERT_EQUAL(next.n_waiting, 1);
	CU_ASSERT_TRUE(next_io.share.look);
	free(next.waiting);
	rig.io[0].handover.to = NULL;
	pthread_mutex_destroy(&next.lock);
	rig_finish();
}

/* The kernel has told thread 0 of clients at two sockets, but it has room for one. */
static void test_second_socket(void)
{
	int fd[2];

	begin(2, 1);
	rig_listen(0);
	fd[0] = rig_dial(0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(rig.io[0].listener);
	rig_listen(1);
	fd[1] = rig_dial(1);
	/* as if both threads watched both */
	rig.io[0].listener = realloc(rig.io[0].listener, 2 * sizeof(struct listener));
	rig.io[0].listener[1] = (struct listener){.watch.fd = dup(rig.io[1].listener[0].watch.fd)};
	rig.io[0].accept.n_listeners = 2;
	accept_some(&rig.io[0], rig.io[0].listener[0].watch.fd);
	CU_ASSERT_TRUE(rig_did("open"));
	CU_ASSERT_TRUE(rig.io[1].share.look);
	CU_ASSERT_EQUAL(rig_wakes(1), 1);
	turn(1);
	CU_ASSERT_FALSE(rig.io[1].share.look);
	CU_ASSERT_TRUE(watches(1));
	accept_some(&rig.io[1], rig.io[1].listener[0].watch.fd);
	CU_ASSERT_TRUE(rig_did("open"));
	CU_ASSERT_FALSE(rig.io[0].share.look);
	close(fd[0]);
	close(fd[1]);
	rig_finish();
}

/* No thread accepts before all have started. Then each wakes two others. */
static void test_start(void)
{
	int fd;

	begin(3, 1);
	for (int i = 0; i < 3; i++)
		rig.io[i].share.opened = false;
	rig.srv.n_loops = 2;
	rig_listen(0);
	fd = rig_dial(0);
	turn(0);
	CU_ASSERT_FALSE(watches(0));
	CU_ASSERT_EQUAL(rig_wakes(1) + rig_wakes(2), 0);
	rig.srv.n_loops = 3;
	turn(0);
	CU_ASSERT_TRUE(watches(0));
	CU_ASSERT_TRUE(rig_wakes(1) == 1 && rig_wakes(2) == 1);
	turn(0);
	turn(1);
	turn(2);
	CU_ASSERT_EQUAL(rig_wakes(0) + rig_wakes(1) + rig_wakes(2), 0);
	close(fd);
	rig_finish();
}

CUNIT_MAIN("per_thread", {"start", test_start}, {"room", test_room}, {"waiting", test_waiting},
    {"tell", test_tell}, {"make way", test_make_way}, {"turn passes", test_turn_passes},
    {"becomes idle", test_becomes_idle}, {"too late", test_too_late}, {"drain", test_drain},
    {"leave", test_leave}, {"second socket", test_second_socket}, {"clients", test_clients})
