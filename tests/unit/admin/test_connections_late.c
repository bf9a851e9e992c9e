/* SPDX-License-Identifier: MIT */
/* Requests that do not arrive in time, on a clock that the test moves, and the endpoint at rest
 * while one is awaited. */
#include "admin/http/connections.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weir/log.h>

#include "admin/admin.h"
#include "client.h"
#include "cunit_main.h"
#include "fixture/graph/await.h"
#include "made_up.h"

#define NS_PER_S 1000000000LL

static struct made_up made_up;
static struct admin *admin;
static int port;
static char answer[4096];
static atomic_llong ahead_ns; /* of the monotonic clock */
static atomic_int views;      /* the endpoint takes one a second, even without requests */

/* Replaces the function of libc. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (id == CLOCK_MONOTONIC)
		ts->tv_sec += atomic_load(&ahead_ns) / NS_PER_S;
	return rc;
}

static int counted_view(void *arg, struct weir_graph_view **v)
{
	atomic_fetch_add(&views, 1);
	return made_up_view(arg, v);
}

static void setup(void)
{
	struct weir_err err = {0};

	weir_log_set_fd(-1);
	made_up_init(&made_up);
	struct admin_source source = made_up_source(&made_up);
	source.view = counted_view;
	CU_ASSERT_EQUAL_FATAL(admin_start_source(&source, "127.0.0.1:0", &admin, &err), 0);
	port = admin_port(admin);
}

static void teardown(void)
{
	admin_stop(admin);
	weir_log_set_fd(2);
}

static int begun(void)
{
	char head[128];
	int fd = client_connect(port);

	snprintf(head, sizeof(head), "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n", port);
	client_send(fd, head);
	return fd;
}

/* A client that has begun a request learns why its connection is closed. One that has sent nothing
 * gets no response. */
static void test_late(void)
{
	setup();
	int part = begun(), silent = client_connect(port);
	CU_ASSERT_EQUAL(client_get(port, "/healthz", answer, sizeof(answer)), 200);
	atomic_fetch_add(&ahead_ns, 11 * NS_PER_S);
	client_read(part, answer, sizeof(answer));
	CU_ASSERT_EQUAL(client_status(answer), 408);
	CU_ASSERT_EQUAL(client_read(silent, answer, sizeof(answer)), 0);
	close(part);
	close(silent);
	teardown();
}

static int64_t cpu_ns(void)
{
	struct timespec ts;

	syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* While it waits for the rest of a request, the endpoint sleeps. This thread sleeps, too, so the
 * process uses little of the two seconds of CPU time that a busy loop would take. */
static void test_sleeps(void)
{
	setup();
	int part = begun();
	CU_ASSERT_EQUAL(client_get(port, "/healthz", answer, sizeof(answer)), 200);
	int from = atomic_load(&views);
	int64_t used_ns = cpu_ns();
	while (atomic_load(&views) < from + 2)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	CU_ASSERT_TRUE(cpu_ns() - used_ns < NS_PER_S / 2);
	close(part);
	teardown();
}

CUNIT_MAIN("late requests", {"late", test_late}, {"sleeps", test_sleeps})
