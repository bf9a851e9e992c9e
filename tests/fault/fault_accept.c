/* SPDX-License-Identifier: MIT */
/*
 * accept4 fails. When the client's connection failed, the next one is accepted at once. When the
 * server runs short of a resource, clients wait: the server retries from time to time without
 * spinning, and serves all of them afterwards. The test counts calls and wake-ups, not time.
 */
#include "fixture/http/server.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "fault/inject.h"
#include "net/accept.h"
#include "net/net_rig.h"

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

/* ---- without threads ---- */

static void accept_now(void)
{
	accept_some(&rig.io[0], rig.io[0].listener[0].watch.fd);
}

/* Failed connections do not end the iteration: the client behind them is accepted in the same
 * iteration. */
static void test_goes_on(void)
{
	rig_begin(1);
	rig_listen(0);
	int fd = rig_dial(0);
	fail_accepts(ECONNABORTED, 3);
	accept_now();
	CU_ASSERT_EQUAL(atomic_load(&fault_accept_times), 0);
	CU_ASSERT_TRUE(rig_did("open"));
	close(fd);
	rig_finish();
	weir_log_set_fd(STDERR_FILENO);
}

/* Must run before other tests in which memory is short, since a process logs this once. */
static void test_log(void)
{
	char text[4096] = "";
	int log[2];

	CU_ASSERT_EQUAL_FATAL(pipe2(log, O_CLOEXEC), 0);
	rig_begin(1);
	rig_listen(0);
	weir_log_set_fd(log[1]);
	fail_accepts(ENOMEM, 3);
	for (int i = 0; i < 3; i++)
		accept_now();
	rig_finish();
	weir_log_set_fd(STDERR_FILENO);
	close(log[1]);
	CU_ASSERT(read(log[0], text, sizeof(text) - 1) > 0);
	close(log[0]);
	const char *first = strstr(text, "rig: a connection cannot be accepted: Cannot allocate");
	CU_ASSERT_PTR_NOT_NULL_FATAL(first);
	CU_ASSERT_PTR_NULL(strstr(first + 1, "rig: a connection"));
}

/* ---- a server ---- */

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

CUNIT_MAIN("fault accept", {"logged once", test_log}, {"goes on", test_goes_on},
    {"failed connections", test_transient}, {"out of descriptors or memory", test_shortage})
