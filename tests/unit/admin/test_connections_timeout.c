/* SPDX-License-Identifier: MIT */
/* How long the admin thread may sleep because of its connections, and what it does with those whose
 * time is over. No listener: nothing is accepted. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/clock.h>

#include "admin/http/connections.h"
#include "cunit_main.h"

#define S 1000000000LL

static struct connections p;
static int client; /* the other end of slot 0 */

static int64_t now(void)
{
	return weir_clock_ns(CLOCK_MONOTONIC);
}

static void setup(void)
{
	p = (struct connections){.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .spare = {-1, -1}};
	p.listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CU_ASSERT_FATAL(p.epoll_fd >= 0 && p.listen_fd >= 0);
}

static void teardown(void)
{
	connections_fini(&p);
	close(p.epoll_fd);
	close(p.listen_fd);
}

/* A connection whose time ends in `left_ns`. */
static void hold(int slot, enum connection_state state, int64_t left_ns)
{
	p.slot[slot] = (struct connection){.fd = -1, .state = state, .until_ns = now() + left_ns};
}

/* The timeout is about `ms`: the test has taken at most a minute since hold. */
static bool sleeps(int ms)
{
	int timeout = connections_timeout_ms(&p);

	return timeout <= ms + 1 && timeout > ms - 60000;
}

static void test_timeout(void)
{
	setup();
	CU_ASSERT_EQUAL(connections_timeout_ms(&p), -1);
	hold(5, CONNECTION_READING, 500 * S);
	CU_ASSERT_TRUE(sleeps(500000));
	hold(0, CONNECTION_CLOSING, 400 * S);
	hold(CONNECTIONS_MAX - 1, CONNECTION_SERVED, 300 * S);
	CU_ASSERT_TRUE(sleeps(300000));
	hold(CONNECTIONS_MAX - 1, CONNECTION_FREE, 1 * S); /* its time does not matter */
	CU_ASSERT_TRUE(sleeps(400000));
	hold(7, CONNECTION_READING, -5 * S);
	CU_ASSERT_EQUAL(connections_timeout_ms(&p), 0);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		p.slot[i].state = CONNECTION_FREE;
	teardown();
}

/* While no descriptor is free, the thread looks for one every 100 ms. */
static void test_paused(void)
{
	setup();
	p.paused = true;
	CU_ASSERT_EQUAL(connections_timeout_ms(&p), 100);
	hold(0, CONNECTION_READING, 500 * S);
	CU_ASSERT_EQUAL(connections_timeout_ms(&p), 100);
	hold(1, CONNECTION_READING, -5 * S);
	CU_ASSERT_EQUAL(connections_timeout_ms(&p), 0);
	p.slot[0].state = p.slot[1].state = CONNECTION_FREE;
	teardown();
}

/* A connection in slot 0, from which the client has sent `text`. */
static void connected(enum connection_state state, const char *text, int64_t left_ns)
{
	int fd[2];

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	hold(0, state, left_ns);
	p.slot[0].fd = fd[0];
	client = fd[1];
	CU_ASSERT_EQUAL(send(client, text, strlen(text), 0), (ssize_t)strlen(text));
}

/* Return the data that the client gets, or NULL if the connection is still open and no data have
 * come. */
static const char *received(void)
{
	static char text[4096];
	ssize_t n = recv(client, text, sizeof(text) - 1, MSG_DONTWAIT);

	text[n > 0 ? n : 0] = '\0';
	return n < 0 ? NULL : text;
}

static void test_expire(void)
{
	setup();
	connected(CONNECTION_READING, "GET / HT", 500 * S);
	connections_expire(&p);
	CU_ASSERT_PTR_NULL(received());
	CU_ASSERT_EQUAL(p.slot[0].state, CONNECTION_READING);
	/* part of a request has come: the client gets a response, and a second to read it */
	p.slot[0].until_ns = now();
	connections_expire(&p);
	const char *text = received();
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_EQUAL(strncmp(text, "HTTP/1.1 408 Request Timeout\r\n", 30), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "the request did not arrive in 10 seconds"));
	CU_ASSERT_EQUAL(p.slot[0].state, CONNECTION_CLOSING);
	CU_ASSERT_TRUE(p.slot[0].until_ns <= now() + S);
	CU_ASSERT_EQUAL(p.slot[0].drained, 8);
	CU_ASSERT_STRING_EQUAL(received(), ""); /* no more will come */
	p.slot[0].until_ns = now();
	connections_expire(&p);
	CU_ASSERT_EQUAL(p.slot[0].state, CONNECTION_FREE);
	CU_ASSERT_TRUE(send(client, "x", 1, MSG_NOSIGNAL) < 0); /* closed */
	close(client);
	/* nothing has come: closed without a response */
	connected(CONNECTION_READING, "", -1);
	connections_expire(&p);
	CU_ASSERT_EQUAL(p.slot[0].state, CONNECTION_FREE);
	CU_ASSERT_STRING_EQUAL(received(), "");
	close(client);
	/* libmicrohttpd has the connection and is about to notice that it is shut down */
	connected(CONNECTION_SERVED, "", -1);
	connections_expire(&p);
	CU_ASSERT_EQUAL(p.slot[0].state, CONNECTION_SERVED);
	CU_ASSERT_TRUE(p.slot[0].until_ns > now() - 60 * S && p.slot[0].until_ns <= now() + S);
	CU_ASSERT_STRING_EQUAL(received(), "");
	close(p.slot[0].fd);
	p.slot[0].state = CONNECTION_FREE;
	close(client);
	teardown();
}

/* A client that was refused may still send 64 KiB, which are thrown away. */
static void test_drain(void)
{
	static char much[4096];

	setup();
	connected(CONNECTION_CLOSING, "", 500 * S);
	for (int i = 0; i < 15; i++) {
		CU_ASSERT_EQUAL(send(client, much, sizeof(much), 0), (ssize_t)sizeof(much));
		connections_ready(&p, &p.slot[0], EPOLLIN);
		CU_ASSERT_EQUAL(p.slot[0].state, CONNECTION_CLOSING);
	}
	CU_ASSERT_EQUAL(p.slot[0].drained, 15 * sizeof(much));
	CU_ASSERT_EQUAL(send(client, much, sizeof(much), 0), (ssize_t)sizeof(much));
	connections_ready(&p, &p.slot[0], EPOLLIN);
	CU_ASSERT_EQUAL(p.slot[0].state, CONNECTION_FREE);
	close(client);
	/* a client that disconnects is closed at once */
	connected(CONNECTION_CLOSING, "x", 500 * S);
	close(client);
	connections_ready(&p, &p.slot[0], EPOLLIN | EPOLLRDHUP);
	CU_ASSERT_EQUAL(p.slot[0].state, CONNECTION_FREE);
	teardown();
}

/* Spare descriptors are replaced, and closed at the end. */
static void test_spares(void)
{
	setup();
	connections_expire(&p);
	for (int i = 0; i < CONNECTIONS_SPARES; i++) {
		CU_ASSERT_TRUE(p.spare[i] >= 0);
		CU_ASSERT_TRUE(fcntl(p.spare[i], F_GETFD) & FD_CLOEXEC);
	}
	int first = p.spare[0];
	close(p.spare[1]);
	p.spare[1] = -1;
	connections_expire(&p);
	CU_ASSERT_TRUE(p.spare[0] == first && p.spare[1] >= 0);
	int last = p.spare[1];
	connections_fini(&p);
	CU_ASSERT_TRUE(fcntl(first, F_GETFD) < 0 && fcntl(last, F_GETFD) < 0);
	teardown();
}

CUNIT_MAIN("connections and time", {"timeout", test_timeout}, {"paused", test_paused},
    {"expiry", test_expire}, {"what is sent in vain", test_drain}, {"spares", test_spares})
