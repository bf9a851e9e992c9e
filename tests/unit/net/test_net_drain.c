/* SPDX-License-Identifier: MIT */
/* An I/O thread follows a drain and a pause, step by step. */
#include "net/drain.h"

#include <string.h>
#include <unistd.h>

#include "net/listen.h"
#include "net/net_rig.h"
#include "net/net_server.h"
#include "net/pause.h"

#define MS 1000000LL

static int reports(enum net_phase phase)
{
	int n;

	pthread_mutex_lock(&rig.srv.lock);
	n = rig.srv.n_reports[phase];
	pthread_mutex_unlock(&rig.srv.lock);
	return n;
}

static void iterate(int i)
{
	net_io_follow(&rig.io[i]);
	net_io_report(&rig.io[i]);
}

/* ---- drain ---- */

static void test_nothing(void)
{
	rig_begin(1);
	rig_conn(0, 'a', LIST_IDLE, 0);
	iterate(0);
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_EQUAL(rig.io[0].drain.phase, NET_RUNNING);
	CU_ASSERT_EQUAL(reports(NET_DRAINING), 0);
	rig_finish();
}

/* Without connections a thread reports at once, and once. */
static void test_empty(void)
{
	rig_begin(2);
	rig_listen(0);
	rig.srv.phase = NET_DRAINING;
	rig.srv.linger_until_ns = rig.now_ns + 100 * MS;
	iterate(0);
	CU_ASSERT_EQUAL(reports(NET_DRAINING), 1);
	CU_ASSERT_TRUE(rig.io[0].drain.done);
	CU_ASSERT_EQUAL(rig.io[0].listener[0].watch.fd, -1);
	iterate(0);
	CU_ASSERT_EQUAL(reports(NET_DRAINING), 1);
	iterate(1);
	CU_ASSERT_EQUAL(reports(NET_DRAINING), 2);
	rig_finish();
}

/* The backlog counts as connections: its clients are accepted, and the thread reports after
 * them. */
static void test_backlog(void)
{
	int fd;

	rig_begin(1);
	rig_listen(0);
	fd = rig_dial(0);
	rig.srv.phase = NET_DRAINING;
	rig.srv.linger_until_ns = rig.now_ns + 100 * MS;
	iterate(0);
	CU_ASSERT_TRUE(rig_did("open"));
	CU_ASSERT_EQUAL(reports(NET_DRAINING), 0);
	rig_close((struct rig_conn *)rig.io[0].conns);
	iterate(0);
	CU_ASSERT_EQUAL(reports(NET_DRAINING), 1);
	close(fd);
	rig_finish();
}

/* Idle connections are ended when the linger time is over, and not before. The listeners accept
 * until then. */
static void test_linger(void)
{
	rig_begin(1);
	rig_listen(0);
	rig_conn(0, 'a', LIST_IDLE, 0);
	rig_conn(0, 'b', LIST_BEHIND, 0);
	rig.srv.phase = NET_DRAINING;
	rig.srv.linger_until_ns = rig.now_ns + 100 * MS;
	iterate(0);
	rig_wait(100 * MS - 1);
	rig_fire(0);
	iterate(0);
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_TRUE(rig.io[0].listener[0].watched);
	rig_wait(5 * MS);
	rig_fire(0);
	CU_ASSERT_TRUE(rig_did("idle:b idle:a"));
	CU_ASSERT_EQUAL(rig.io[0].listener[0].watch.fd, -1);
	CU_ASSERT_EQUAL(reports(NET_DRAINING), 0); /* the connections are still there */
	rig_finish();
}

/* When the time is over, everything is ended late, and the thread reports once for each phase. */
static void test_closed(void)
{
	rig_begin(1);
	rig_listen(0);
	rig_conn(0, 'a', LIST_IDLE, 0);
	rig.srv.phase = NET_DRAINING;
	rig.srv.linger_until_ns = rig.now_ns + 100 * MS;
	iterate(0);
	rig.srv.phase = NET_CLOSED;
	iterate(0);
	CU_ASSERT_TRUE(rig_did("late:a"));
	CU_ASSERT_EQUAL(reports(NET_CLOSED), 1);
	CU_ASSERT_EQUAL(rig.io[0].listener[0].watch.fd, -1);
	iterate(0);
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_EQUAL(reports(NET_CLOSED), 1);
	rig_wait(200 * MS);
	rig_fire(0); /* the linger time no longer matters */
	CU_ASSERT_TRUE(rig_did(""));
	rig_close((struct rig_conn *)rig.io[0].conns);
	iterate(0);
	CU_ASSERT_EQUAL(reports(NET_DRAINING), 1);
	rig_finish();
}

/* A thread that sees both phases in one iteration goes through both. */
static void test_both(void)
{
	rig_begin(1);
	rig_conn(0, 'a', LIST_IDLE, 0);
	rig.srv.phase = NET_CLOSED;
	iterate(0);
	CU_ASSERT_TRUE(rig_did("late:a"));
	CU_ASSERT_EQUAL(rig.io[0].drain.phase, NET_CLOSED);
	CU_ASSERT_EQUAL(reports(NET_CLOSED), 1);
	rig_finish();
}

/* ---- drain for a reload ---- */

static struct net_server next_server;
static struct weir_stage next_stage;

/* Connections leave at the beginning and again at the end; only those that cannot are ended. */
static void test_leave(void)
{
	rig_begin(1);
	memset(&next_server, 0, sizeof(next_server));
	next_stage.state = &next_server;
	rig.stage.successor = &next_stage;
	rig_conn(0, 'a', LIST_IDLE, 0);
	rig.srv.phase = NET_DRAINING;
	rig.srv.linger_until_ns = rig.now_ns + 100 * MS;
	iterate(0);
	CU_ASSERT_TRUE(rig_did("leave:a"));
	CU_ASSERT_PTR_EQUAL(rig.io[0].handover.to, &next_server);
	rig.srv.phase = NET_CLOSED;
	iterate(0);
	CU_ASSERT_TRUE(rig_did("leave:a late:a"));
	rig_finish();
}

/* If this server's graph failed to start, its connections go back to the predecessor. */
static void test_leave_back(void)
{
	rig_begin(1);
	memset(&next_server, 0, sizeof(next_server));
	next_stage.state = &next_server;
	rig.stage.predecessor = &next_stage;
	rig_conn(0, 'a', LIST_IDLE, 0);
	rig.srv.phase = NET_DRAINING;
	iterate(0);
	CU_ASSERT_TRUE(rig_did("leave:a"));
	CU_ASSERT_PTR_EQUAL(rig.io[0].handover.to, &next_server);
	rig_finish();
}

/* Listeners that the new server shares are closed without accepting, since it accepts their
 * clients. Those that it does not share are emptied. */
static void test_leave_listeners(void)
{
	for (int shared = 0; shared < 2; shared++) {
		int fd;
		rig_begin(1);
		memset(&next_server, 0, sizeof(next_server));
		next_stage.state = &next_server;
		rig.stage.successor = &next_stage;
		rig_listen(0);
		rig.io[0].listener[0].shared = shared == 1;
		fd = rig_dial(0);
		rig.srv.phase = NET_DRAINING;
		iterate(0);
		CU_ASSERT_TRUE(rig_did(shared ? "" : "open"));
		CU_ASSERT_EQUAL(rig.io[0].listener[0].watch.fd, -1);
		close(fd);
		rig_finish();
	}
}

/* Outside of a reload a listener that was shared once is emptied, too. */
static void test_shared_before(void)
{
	int fd;

	rig_begin(1);
	rig_listen(0);
	rig.io[0].listener[0].shared = true;
	fd = rig_dial(0);
	rig.srv.phase = NET_DRAINING;
	iterate(0);
	CU_ASSERT_TRUE(rig_did("open"));
	close(fd);
	rig_finish();
}

/* ---- pause ---- */

/* Data that were read are processed before the pause and after it. In between, no connection is
 * accepted. */
static void test_pause(void)
{
	rig_begin(1);
	rig_listen(0);
	rig_conn(0, 'a', LIST_IDLE, 0);
	rig_conn(0, 'b', LIST_BEHIND, 0);
	atomic_store(&rig.srv.paused, true);
	iterate(0);
	CU_ASSERT_TRUE(rig_did("resume:b resume:a settle:b settle:a"));
	CU_ASSERT_TRUE(rig.io[0].pause.on);
	CU_ASSERT_TRUE(rig.io[0].pause.seen);
	CU_ASSERT_FALSE(rig.io[0].listener[0].watched);
	iterate(0);
	CU_ASSERT_TRUE(rig_did(""));
	atomic_store(&rig.srv.paused, false);
	iterate(0);
	CU_ASSERT_TRUE(rig_did("resume:b resume:a settle:b settle:a"));
	CU_ASSERT_FALSE(rig.io[0].pause.on);
	CU_ASSERT_FALSE(rig.io[0].pause.seen);
	CU_ASSERT_TRUE(rig.io[0].listener[0].watched);
	rig_finish();
}

/* A server that starts paused does not accept. */
static void test_pause_first(void)
{
	rig_begin(1);
	atomic_store(&rig.srv.paused, true);
	rig_listen(0);
	CU_ASSERT_TRUE(rig.io[0].pause.on);
	CU_ASSERT_TRUE(rig.io[0].pause.seen);
	CU_ASSERT_FALSE(rig.io[0].listener[0].watched);
	atomic_store(&rig.srv.paused, false);
	iterate(0);
	CU_ASSERT_TRUE(rig.io[0].listener[0].watched);
	rig_finish();
}

/* A pause and a full server are independent: the listeners are watched when both are over. */
static void test_pause_full(void)
{
	rig_begin(1);
	rig_listen(0);
	listen_hold(&rig.io[0]);
	CU_ASSERT_FALSE(rig.io[0].listener[0].watched);
	atomic_store(&rig.srv.paused, true);
	iterate(0);
	listen_resume(&rig.io[0]);
	CU_ASSERT_FALSE(rig.io[0].listener[0].watched);
	listen_hold(&rig.io[0]);
	atomic_store(&rig.srv.paused, false);
	iterate(0);
	CU_ASSERT_FALSE(rig.io[0].listener[0].watched);
	listen_resume(&rig.io[0]);
	CU_ASSERT_TRUE(rig.io[0].listener[0].watched);
	rig_finish();
}

/* A thread that leaves ends its pause and follows no further one. */
static void test_pause_leave(void)
{
	rig_begin(1);
	memset(&next_server, 0, sizeof(next_server));
	next_stage.state = &next_server;
	rig.stage.successor = &next_stage;
	rig_conn(0, 'a', LIST_BEHIND, 0);
	atomic_store(&rig.srv.paused, true);
	iterate(0);
	CU_ASSERT_TRUE(rig_did("resume:a settle:a"));
	rig.srv.phase = NET_DRAINING;
	rig.srv.linger_until_ns = rig.now_ns + 100 * MS;
	iterate(0);
	CU_ASSERT_TRUE(rig_did("leave:a resume:a settle:a"));
	CU_ASSERT_FALSE(rig.io[0].pause.on);
	iterate(0);
	CU_ASSERT_TRUE(rig_did(""));
	CU_ASSERT_FALSE(rig.io[0].pause.on);
	rig_finish();
}

/* The pausing thread wakes all I/O threads; it does not wait for them to resume. */
static void test_pause_wakes(void)
{
	rig_begin(2);
	rig.stage.state = &rig.srv;
	rig.io[0].pause.seen = rig.io[1].pause.seen = true;
	pause_server(&rig.stage, true);
	CU_ASSERT_TRUE(atomic_load(&rig.srv.paused));
	CU_ASSERT_EQUAL(rig_wakes(0), 1);
	CU_ASSERT_EQUAL(rig_wakes(1), 1);
	pause_server(&rig.stage, false);
	CU_ASSERT_FALSE(atomic_load(&rig.srv.paused));
	CU_ASSERT_EQUAL(rig_wakes(0), 1);
	CU_ASSERT_EQUAL(rig_wakes(1), 1);
	rig_finish();
}

/* ---- standing in ---- */

static void hold_up(int i, bool on)
{
	atomic_store(&rig.io[i].loop->link.held, on);
	rig.stage.loops_held += on ? 1 : -1;
}

/* While thread 1 is blocked, thread 0 accepts its clients, and closes only its own duplicate. */
static void test_stand_in(void)
{
	int fd[2];

	rig_begin(3);
	for (int i = 0; i < 3; i++)
		rig_listen(i);
	hold_up(1, true);
	iterate(0);
	CU_ASSERT_EQUAL(rig.io[0].accept.n_stand_in, 1);
	CU_ASSERT_EQUAL(rig.io[0].accept.stood[0], 1u << 1);
	CU_ASSERT_TRUE(rig.io[0].accept.stand_in[0].watched);
	fd[0] = rig_dial(1);
	struct weir_watch *w = &rig.io[0].accept.stand_in[0].watch;
	CU_ASSERT_NOT_EQUAL(w->fd, rig.io[1].listener[0].watch.fd);
	w->ready(rig.io[0].loop, w, EPOLLIN);
	CU_ASSERT_TRUE(rig_did("open"));
	CU_ASSERT_EQUAL(rig.io[0].n_conns, 1);
	hold_up(2, true);
	iterate(0);
	CU_ASSERT_EQUAL(rig.io[0].accept.n_stand_in, 2);
	CU_ASSERT_EQUAL(rig.io[0].accept.stood[0], 1u << 1 | 1u << 2);
	listen_hold(&rig.io[0]);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_FALSE(rig.io[0].accept.stand_in[i].watched);
	listen_resume(&rig.io[0]);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_TRUE(rig.io[0].accept.stand_in[i].watched);
	hold_up(1, false);
	hold_up(2, false);
	iterate(0);
	CU_ASSERT_EQUAL(rig.io[0].accept.n_stand_in, 0);
	CU_ASSERT_EQUAL(rig.io[0].accept.stood[0], 0);
	fd[1] = rig_dial(1);
	w = &rig.io[1].listener[0].watch;
	w->ready(rig.io[1].loop, w, EPOLLIN);
	CU_ASSERT_TRUE(rig_did("open"));
	CU_ASSERT_EQUAL(rig.io[1].n_conns, 1);
	close(fd[0]);
	close(fd[1]);
	rig_finish();
}

/* A thread does not stand in for itself, nor for sockets that all threads watch, nor when it
 * drains. */
static void test_stand_in_not(void)
{
	rig_begin(2);
	for (int i = 0; i < 2; i++)
		rig_listen(i);
	rig.io[1].listener[0].passed = true;
	hold_up(0, true);
	hold_up(1, true);
	iterate(0);
	CU_ASSERT_EQUAL(rig.io[0].accept.n_stand_in, 0);
	CU_ASSERT_EQUAL(rig.io[0].accept.stood[0], 1u << 1);
	rig.io[1].drain.phase = NET_CLOSED;
	iterate(1);
	CU_ASSERT_EQUAL(rig.io[1].accept.n_stand_in, 0);
	hold_up(0, false);
	hold_up(1, false);
	rig_finish();
}

/* In a stop, the backlog of the blocked thread is emptied by the one that stands in for it. */
static void test_stand_in_stop(void)
{
	int fd;

	rig_begin(2);
	for (int i = 0; i < 2; i++)
		rig_listen(i);
	hold_up(1, true);
	iterate(0);
	fd = rig_dial(1);
	rig.srv.phase = NET_DRAINING;
	rig.srv.linger_until_ns = rig.now_ns + 100 * MS;
	iterate(0);
	CU_ASSERT_TRUE(rig_did("open"));
	CU_ASSERT_EQUAL(rig.io[0].accept.n_stand_in, 0);
	CU_ASSERT_NOT_EQUAL(rig.io[1].listener[0].watch.fd, -1);
	close(fd);
	rig_finish();
}

CUNIT_MAIN("net drain", {"running", test_nothing}, {"empty", test_empty}, {"backlog", test_backlog},
    {"linger", test_linger}, {"closed", test_closed}, {"both phases at once", test_both},
    {"leave", test_leave}, {"leave, back", test_leave_back},
    {"leave, listeners", test_leave_listeners}, {"shared before", test_shared_before},
    {"pause", test_pause}, {"starts paused", test_pause_first},
    {"pause when full", test_pause_full}, {"pause and leave", test_pause_leave},
    {"pause wakes", test_pause_wakes}, {"stand in", test_stand_in},
    {"no need to stand in", test_stand_in_not}, {"stand in and stop", test_stand_in_stop})
