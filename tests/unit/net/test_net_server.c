/* SPDX-License-Identifier: MIT */
/*
 * A server of a protocol other than HTTP: every byte is sent back. Accepting, the limits, eviction,
 * pausing, draining and handover need nothing of the protocol but struct net_calls.
 */
#include "net/echo_source.h"

#include <stdio.h>

/* Longest wait for a client's bytes, in s. */
#define WAIT_S 30

/* ---- graphs and clients ---- */

static struct weir_graph *build(const char *knob, const char *value)
{
	static bool registered;
	struct weir_spec *spec = weir_spec_new("test");

	if (!registered) {
		fixture_register(&echo_ops);
		fixture_register(&end_ops);
	}
	registered = true;
	weir_log_set_level(WEIR_LOG_ERROR);
	for (int i = 0; i <= NET_LIMIT_MEMORY; i++)
		atomic_store(&echo_refused[i], 0);
	atomic_store(&echo_evicted, 0);
	atomic_store(&echo_adopted, 0);
	fixture_stage(spec, "echo", "t.echo", "end");
	fixture_stage(spec, "end", "t.end", NULL);
	if (knob)
		fixture_set(&spec->stages[0], knob, value);
	return fixture_build(spec);
}

static struct weir_graph *begin(const char *knob, const char *value)
{
	struct weir_graph *g = build(knob, value);
	struct weir_errs errs = {0};

	CU_ASSERT_EQUAL_FATAL(weir_graph_start(g, &errs), 0);
	return g;
}

static void finish(struct weir_graph *g)
{
	struct weir_drain_report report = {0};

	weir_graph_drain(g, 10000000000LL, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(g);
}

static struct net_server *server_of(struct weir_graph *g)
{
	return weir_state(weir_graph_stage(g, "echo"));
}

static int dial(struct weir_graph *g)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
	    .sin_port = htons(server_of(g)->port[0]),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval limit = {.tv_sec = WAIT_S};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	CU_ASSERT_EQUAL_FATAL(TEMP_FAILURE_RETRY(connect(fd, (struct sockaddr *)&a, sizeof(a))), 0);
	return fd;
}

static bool says(int fd, const char *text)
{
	size_t n = strlen(text);
	char got[16];

	return TEMP_FAILURE_RETRY(recv(fd, got, n, MSG_WAITALL)) == (ssize_t)n &&
	       memcmp(got, text, n) == 0;
}

static bool echoes(int fd)
{
	return TEMP_FAILURE_RETRY(send(fd, "abc", 3, MSG_NOSIGNAL)) == 3 && says(fd, "abc");
}

static bool at_end(int fd)
{
	char byte;
	ssize_t n = TEMP_FAILURE_RETRY(recv(fd, &byte, 1, 0));

	return n == 0 || (n == -1 && errno == ECONNRESET);
}

/* ---- tests ---- */

static void test_accept(void)
{
	struct weir_graph *g = begin(NULL, NULL);
	int fd[8];

	for (int i = 0; i < 8; i++)
		fd[i] = dial(g);
	for (int i = 0; i < 8; i++)
		CU_ASSERT_TRUE(echoes(fd[i]));
	CU_ASSERT_EQUAL(atomic_load(&server_of(g)->connections), 8);
	for (int i = 0; i < 8; i++)
		close(fd[i]);
	FIXTURE_AWAIT(atomic_load(&server_of(g)->connections) == 0);
	finish(g);
}

/* A client over a limit is refused by the protocol; those within it stay. */
static void check_limit(const char *knob, enum net_limit limit)
{
	struct weir_graph *g = begin(knob, "1");
	int one, other;

	atomic_store(&echo_busy, true);
	one = dial(g);
	CU_ASSERT_TRUE(echoes(one));
	other = dial(g);
	CU_ASSERT_TRUE(says(other, "full"));
	CU_ASSERT_TRUE(at_end(other));
	CU_ASSERT_EQUAL(atomic_load(&echo_refused[limit]), 1);
	CU_ASSERT_TRUE(echoes(one));
	atomic_store(&echo_busy, false);
	close(one);
	close(other);
	finish(g);
}

static void test_limits(void)
{
	check_limit("with.max_connections", NET_LIMIT_CONNECTIONS);
	check_limit("with.max_per_address", NET_LIMIT_ADDRESS);
}

/* Once a connection has been idle for NET_EVICT_AFTER_NS, it gives way to a new one, whichever
 * threads they belong to. */
static void test_evict(void)
{
	struct weir_graph *g = begin("with.max_connections", "1");
	int idle = dial(g), fd = -1;
	bool in = false;

	CU_ASSERT_TRUE(echoes(idle));
	while (!in) {
		fd = dial(g);
		in = echoes(fd);
		if (!in)
			close(fd);
	}
	CU_ASSERT_EQUAL(atomic_load(&echo_evicted), 1);
	CU_ASSERT_TRUE(at_end(idle));
	close(idle);
	close(fd);
	finish(g);
}

static void test_pause(void)
{
	struct weir_graph *g = begin(NULL, NULL);
	char why[300];
	int fd;

	CU_ASSERT_EQUAL(weir_graph_steer(g, "echo", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	fd = dial(g);
	CU_ASSERT_EQUAL(send(fd, "abc", 3, MSG_NOSIGNAL), 3);
	CU_ASSERT_EQUAL(atomic_load(&server_of(g)->connections), 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "echo", WEIR_STEER_RUN, why, sizeof(why)), 0);
	CU_ASSERT_TRUE(says(fd, "abc"));
	close(fd);
	finish(g);
}

static void test_drain(void)
{
	struct weir_graph *g = begin(NULL, NULL);
	int fd = dial(g);

	CU_ASSERT_TRUE(echoes(fd));
	finish(g);
	CU_ASSERT_TRUE(at_end(fd));
	close(fd);
}

static void test_handover(void)
{
	struct weir_graph *old = begin(NULL, NULL), *g = build(NULL, NULL);
	struct weir_errs errs = {0};
	int fd = dial(old);

	CU_ASSERT_TRUE(echoes(fd));
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(g, old, &errs), 0);
	CU_ASSERT_EQUAL(server_of(g)->port[0], server_of(old)->port[0]);
	finish(old);
	CU_ASSERT_TRUE(echoes(fd));
	CU_ASSERT_EQUAL(atomic_load(&echo_adopted), 1);
	CU_ASSERT_EQUAL(atomic_load(&server_of(g)->connections), 1);
	close(fd);
	finish(g);
}

static void check_bad(const char *listen, const char *expected)
{
	struct weir_spec *spec = weir_spec_new("test");
	struct weir_errs errs = {0};
	struct weir_graph *g = NULL;
	char text[1000];

	fixture_stage(spec, "echo", "t.echo", "end");
	fixture_stage(spec, "end", "t.end", NULL);
	fixture_set(&spec->stages[0], "with.listen", listen);
	CU_ASSERT_NOT_EQUAL(weir_graph_build(spec, &g, &errs), 0);
	weir_errs_format(&errs, text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, expected));
	weir_spec_free(spec);
}

static void test_addresses(void)
{
	check_bad("nowhere", "host and port are not separated");
	check_bad("127.0.0.1:65536", "the port is not a number from 0 to 65535");
}

CUNIT_MAIN("net_server", {"accept", test_accept}, {"limits", test_limits}, {"evict", test_evict},
    {"pause", test_pause}, {"drain", test_drain}, {"handover", test_handover},
    {"addresses", test_addresses})
