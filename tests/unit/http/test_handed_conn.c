/* SPDX-License-Identifier: MIT */
/* A connection leaves one server and enters another: which may leave, what it takes along, and what
 * remains when the other server cannot open it or has stopped. */
#include "http/conn_rig.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/conn/write.h"
#include "http/server/calls.h"
#include "http/server/handed_conn.h"
#include "net/handover.h"
#include "net/net_server.h"

#define IO (&conn_rig.io)

/* The other server. Its I/O thread takes connections over when the test says so. */
static struct http_server heir;
static struct http_io heir_io;

static void begin(void)
{
	conn_rig_begin();
	conn_rig.srv.net.calls = &server_calls;
	memset(&heir, 0, sizeof(heir));
	memset(&heir_io, 0, sizeof(heir_io));
	heir.net.stage = &conn_rig.stage;
	heir.net.calls = &server_calls;
	heir.net.n_io = 1;
	heir.net.io[0] = &heir_io.net;
	heir.memory_limit = INT64_MAX;
	net_io_init(&heir_io.net, &heir.net, 0, &heir_io.conf.net, heir_io.count);
	heir_io.srv = &heir;
	heir_io.ready_tail = &heir_io.ready;
	heir_io.conf = IO->conf;
	pool_init(&heir_io.pool, &conn_rig.srv.body_budget);
	pool_share(&heir_io.pool, &heir.memory_used);
	heir_io.pool.limit_bytes = IO->conf.memory_bytes;
	CU_ASSERT_EQUAL_FATAL(loop_new(&conn_rig.stage, NULL, &heir_io, &heir_io.net.loop), 0);
	IO->net.handover.to = &heir.net;
}

static void end(void)
{
	while (heir_io.net.conns)
		conn_close(conn_of_net(heir_io.net.conns));
	for (struct conn *c = heir_io.ready, *next; c; c = next) {
		next = c->ready_next;
		conn_reap(c);
	}
	CU_ASSERT_EQUAL(heir_io.net.n_conns, 0);
	CU_ASSERT_EQUAL(heir_io.pool.held_bytes, 0);
	CU_ASSERT_EQUAL(atomic_load(&heir.copied_bytes), 0);
	pool_fini(&heir_io.pool);
	loop_free(heir_io.net.loop);
	conn_rig_end();
}

/* What the other server has been given last. */
static struct net_handed *given(void)
{
	struct net_handed *h = atomic_exchange(&heir_io.net.handover.handed, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	CU_ASSERT_PTR_NULL(h->next);
	return h;
}

static struct net_handed *leave(struct conn *c)
{
	CU_ASSERT_TRUE(handed_conn_leave(&c->net));
	CU_ASSERT_FALSE(conn_is_open(c));
	return given();
}

/* A connection whose response of 3 bytes waits for the socket. */
static struct conn *sender(void)
{
	struct conn *c = conn_rig_conn();
	struct http_req *r = conn_rig_request(c);

	r->pub.method = WEIR_HTTP_GET;
	r->pub.minor = 1;
	r->keep_alive = r->answered = true;
	c->socket.blocked = true;
	weir_http_respond_copy(&r->pub, 200, "a/b", (struct weir_slice){"abc", 3});
	return c;
}

/* ---- leaving ---- */

static void test_leaves(void)
{
	struct conn *c;

	begin();
	c = conn_rig_conn();
	conn_rig_request(c); /* is in the graph */
	CU_ASSERT_FALSE(handed_conn_leave(&c->net));
	c = conn_rig_conn();
	conn_rig_body(c);
	CU_ASSERT_FALSE(handed_conn_leave(&c->net));
	c = conn_rig_conn();
	conn_stop_input(c);
	CU_ASSERT_FALSE(handed_conn_leave(&c->net));
	c = conn_rig_conn();
	c->socket.blocked = true;
	CU_ASSERT_FALSE(handed_conn_leave(&c->net));
	c = conn_rig_conn();
	conn_enter(c, CONN_LINGERING);
	CU_ASSERT_FALSE(handed_conn_leave(&c->net));
	/* A server that has stopped has no time for the rest of a response. */
	heir.net.phase = NET_DRAINING;
	c = sender();
	CU_ASSERT_FALSE(handed_conn_leave(&c->net));
	CU_ASSERT_EQUAL(c->in_flight, 1);
	CU_ASSERT_PTR_NULL(atomic_load(&heir_io.net.handover.handed));
	end();
}

/* Bytes that were read but not parsed, and what is known of the client, go with the connection. */
static void test_bytes(void)
{
	struct conn *c;

	begin();
	c = conn_rig_conn();
	c->requests = 7;
	memcpy(c->net.client.address, "::1", 4);
	conn_rig_receive(c, "GET /x");
	CU_ASSERT_TRUE(handed_conn_adopt(&heir_io.net, leave(c)));
	c = conn_of_net(heir_io.net.conns);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	CU_ASSERT_EQUAL(c->requests, 7);
	CU_ASSERT_STRING_EQUAL(c->net.client.address, "::1");
	CU_ASSERT_EQUAL(c->stream.end - c->stream.start, 6);
	CU_ASSERT_EQUAL(memcmp(c->stream.in->data + c->stream.start, "GET /x", 6), 0);
	CU_ASSERT_EQUAL(c->net.wait.kind, WAIT_HEAD);
	CU_ASSERT_EQUAL(heir_io.count[SERVER_CONNECTIONS], 1);
	CU_ASSERT_EQUAL(IO->count[SERVER_CONNECTIONS], 0);
	end();
}

/* ---- entering ---- */

/* If the new server cannot open the connection, nothing has changed, and a later attempt opens
 * it. */
static void check_again(struct conn *c, size_t n_left)
{
	int fd = c->net.watch.fd, socket = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	int unwatched = open("/dev/null", O_RDONLY | O_CLOEXEC); /* epoll refuses it */
	struct net_handed *h = leave(c);

	CU_ASSERT_EQUAL(dup2(unwatched, fd), fd);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_FALSE(handed_conn_adopt(&heir_io.net, h));
	CU_ASSERT_EQUAL(heir_io.pool.held_bytes, 0);
	CU_ASSERT_EQUAL(heir_io.net.n_conns, 0);
	CU_ASSERT_EQUAL(dup2(socket, fd), fd);
	CU_ASSERT_TRUE(handed_conn_adopt(&heir_io.net, h));
	c = conn_of_net(heir_io.net.conns);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	CU_ASSERT_EQUAL(c->in_flight, n_left);
	CU_ASSERT_EQUAL(c->net.ready, n_left > 0);
	close(unwatched);
	close(socket);
}

static void test_again(void)
{
	begin();
	check_again(conn_rig_conn(), 0);
	end();
	begin();
	check_again(sender(), 1);
	end();
}

/* ---- too late ---- */

/* Drop a connection. Returns what its client gets, as far as it fits into 12 bytes. */
static const char *drop(struct net_handed *h, int client, bool late)
{
	static char text[13];
	ssize_t n;

	handed_conn_drop(&heir_io.net, h, late);
	n = recv(client, text, sizeof(text) - 1, MSG_DONTWAIT);
	CU_ASSERT(n >= 0); /* the connection is closed */
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void test_idle(void)
{
	struct conn *c;
	struct net_handed *h;

	begin();
	c = conn_rig_conn();
	int client = conn_rig_client();
	h = leave(c);
	CU_ASSERT_TRUE(handed_conn_is_idle(h));
	CU_ASSERT_STRING_EQUAL(drop(h, client, true), "");
	CU_ASSERT_EQUAL(heir_io.count[SERVER_REFUSED_LATE], 0);
	end();
}

/* A client that has begun a request gets a 503. It is counted as late if the server has stopped. */
static void test_begun(void)
{
	for (int i = 0; i < 4; i++) {
		bool late = i & 1, read = i & 2;
		struct net_handed *h;
		struct conn *c;
		begin();
		c = conn_rig_conn();
		int client = conn_rig_client();
		if (read)
			conn_rig_receive(c, "GET");
		else
			CU_ASSERT_EQUAL(send(client, "GET", 3, 0), 3);
		h = leave(c);
		CU_ASSERT_FALSE(handed_conn_is_idle(h));
		CU_ASSERT_STRING_EQUAL(drop(h, client, late), "HTTP/1.1 503");
		CU_ASSERT_EQUAL(heir_io.count[SERVER_REFUSED_LATE], late);
		CU_ASSERT_EQUAL(heir_io.count[SERVER_UNDELIVERED], 0);
		end();
	}
}

/* The rest of a response that is not sent counts as undelivered. */
static void test_undelivered(void)
{
	struct conn *c;
	struct net_handed *h;

	begin();
	c = sender();
	int client = conn_rig_client();
	CU_ASSERT_EQUAL(send(client, "GET", 3, 0), 3);
	h = leave(c);
	CU_ASSERT_FALSE(handed_conn_is_idle(h));
	handed_conn_drop(&heir_io.net, h, true);
	CU_ASSERT_EQUAL(heir_io.count[SERVER_UNDELIVERED], 1);
	CU_ASSERT_EQUAL(heir_io.count[SERVER_REFUSED_LATE], 0);
	end();
}

CUNIT_MAIN("handed conn", {"leaves", test_leaves}, {"bytes", test_bytes}, {"again", test_again},
    {"idle", test_idle}, {"begun", test_begun}, {"undelivered", test_undelivered})
