/* SPDX-License-Identifier: MIT */
/*
 * accept4 fails. When the client's connection failed, the next one is accepted at once. When the
 * server runs short of a resource, clients wait: the server retries from time to time without
 * spinning, and serves all of them afterwards. The test counts calls and wake-ups, not time.
 */
#include "fixture/http/server.h"

#include "fault/inject.h"

static void fail_accepts(int error, int times)
{
	atomic_store(&fault_accept_errno, error);
	atomic_store(&fault_accept_times, times);
}

static void expect_served(int fd)
{
	struct answer a = {0};

	CU_ASSERT(client_say(fd, GET("/")));
	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 200);
	answer_free(&a);
	close(fd);
}

static void test_transient(void)
{
	static const int errors[] = {ECONNABORTED, EPROTO, EINTR, ENETDOWN, ENOPROTOOPT, EHOSTDOWN,
	    ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH, EPERM};
	struct server s = server_new("t.reply");

	server_start(&s);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		fail_accepts(errors[i], 3);
		expect_served(client_open(s.port));
		CU_ASSERT_EQUAL(atomic_load(&fault_accept_times), 0);
	}
	CU_ASSERT_EQUAL(server_metric(&s, "http_accept_failures_total"), 0);
	server_stop(&s);
}

enum { CLIENTS = 20, FAILURES = 5 };

static void be_short_of(struct server *s, int error)
{
	int64_t before = server_metric(s, "http_accept_failures_total");
	long accepts, wakes;
	int fd[CLIENTS];

	fail_accepts(error, -1);
	for (int i = 0; i < CLIENTS; i++)
		fd[i] = client_open(s->port); /* in the backlog */
	accepts = atomic_load(&fault_accepts);
	wakes = atomic_load(&fault_wakes);
	AWAIT_METRIC(s, "http_accept_failures_total", >=, before + FAILURES);
	accepts = atomic_load(&fault_accepts) - accepts;
	wakes = atomic_load(&fault_wakes) - wakes;
	int64_t failures = server_metric(s, "http_accept_failures_total") - before;
	/* Per failure: an accept and another one for the reserve descriptor; wake-ups for the
	 * timer, the listener, and what the loop does around an iteration. A server that spins has
	 * thousands per failure. */
	CU_ASSERT(failures < 100 * FAILURES);
	CU_ASSERT(accepts <= 2 * (failures + 1));
	CU_ASSERT(wakes <= 8 * (failures + 1));
	fail_accepts(0, 0);
	for (int i = 0; i < CLIENTS; i++)
		expect_served(fd[i]);
}

static void test_shortage(void)
{
	static const int errors[] = {EMFILE, ENFILE, ENOBUFS, ENOMEM};
	struct server s = server_new("t.reply");

	weir_log_set_fd(-1);
	server_start(&s);
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		be_short_of(&s, errors[i]);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	server_stop(&s);
}

CUNIT_MAIN("fault accept", {"failed connections", test_transient},
    {"out of descriptors or memory", test_shortage})
