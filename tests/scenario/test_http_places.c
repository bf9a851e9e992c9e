/* SPDX-License-Identifier: MIT */
/* No connection is evicted for a new one that is not accepted. Connections refused for their
 * address have no slot and cost none, and after a limit was lowered, connections are evicted down
 * to it and no further. One I/O thread, whose clock stands still unless it is moved. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "fixture/clock/held_clock.h"
#include "fixture/http/server.h"

#define OTHER     "127.0.0.2"
#define POST_HALF "POST /p HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nab"

static struct server server;
static atomic_bool no_devices; /* as in a sandbox without /dev */

int open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode = 0;

	if (flags & O_CREAT) {
		va_start(list, flags);
		mode = (mode_t)va_arg(list, int);
		va_end(list);
	}
	/* Without a free descriptor, the kernel does not check whether the file exists. */
	if (atomic_load(&no_devices) && strncmp(path, "/dev/", 5) == 0)
		path = "/no/such/file";
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static void start_with(const char *knob, const char *value)
{
	server = server_new("t.reply");
	fixture_set(server.web, knob, value);
	fixture_set(server.web, "with.min_body_rate", "0"); /* busy connections are not evicted */
	fixture_set(server.web, "with.body_timeout", "1h");
	fixture_set(server.app, "threads", "inline");
	clock_hold();
	server_start(&server);
}

static void stop(void)
{
	server_stop(&server);
	clock_release();
}

/* Change a live knob. It is read when the time has changed. */
static void turn(const char *knob, const char *value)
{
	char why[256];

	CU_ASSERT_EQUAL(weir_graph_set(server.graph, "web", knob, value, why, sizeof(why)), 0);
	clock_move(1);
}

static bool is_served(int fd)
{
	struct answer a = {0};
	bool yes = client_say(fd, GET("/")) && answer_read(fd, &a) && a.status == 200;

	answer_free(&a);
	return yes;
}

static int open_idle(const char *from)
{
	int fd = client_open_from(server.port, from);

	CU_ASSERT(is_served(fd));
	return fd;
}

/* A client that gets a refusal and does not go away. */
static int open_refused(const char *from, const char *limit)
{
	struct answer a = {0};
	int fd = client_open_from(server.port, from);

	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	const char *code = field_in(a.head, "X-Weir-Limit");
	CU_ASSERT(limit ? code && strcmp(code, limit) == 0 : !code);
	answer_free(&a);
	return fd;
}

static void close_all(const int *fd, int n)
{
	for (int i = 0; i < n; i++)
		close(fd[i]);
}

/* ---- refused connections ---- */

static void test_refused_have_no_place(void)
{
	int fd[3], told[5], mine;

	start_with("with.max_connections", "4");
	turn("with.max_per_address", "2");
	fd[0] = open_idle(NULL);
	clock_move(1500);
	for (int i = 1; i < 3; i++)
		fd[i] = open_idle(OTHER);
	for (int i = 0; i < 5; i++)
		told[i] = open_refused(OTHER, "max_per_address");
	AWAIT_METRIC(&server, "http_connections", ==, 8);
	mine = open_idle(NULL); /* the fourth */
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 0);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(is_served(fd[i]));
	/* Refused connections do not count for their address either: if one closes, another is
	 * accepted. */
	close(fd[1]);
	AWAIT_METRIC(&server, "http_connections", ==, 8);
	fd[1] = open_idle(OTHER);
	close_all(fd, 3);
	close_all(told, 5);
	close(mine);
	AWAIT_METRIC(&server, "http_connections", ==, 0);
	stop();
}

/* Closing a refused connection that lingers frees no slot: an idle one is evicted, and the new one
 * is accepted. */
static void test_refused_make_no_place(void)
{
	int fd[4], told[3], mine;

	start_with("with.max_connections", "4");
	turn("with.max_per_address", "2");
	for (int i = 0; i < 4; i++)
		fd[i] = open_idle(i < 2 ? OTHER : NULL);
	for (int i = 0; i < 3; i++)
		told[i] = open_refused(OTHER, "max_per_address");
	clock_move(500);
	CU_ASSERT(is_served(fd[0]) && is_served(fd[1]) && is_served(fd[2]) && is_served(fd[3]));
	clock_move(1100);
	mine = open_idle("127.0.0.3");
	CU_ASSERT(client_at_end(fd[0]));
	AWAIT_METRIC(&server, "http_evicted_total", ==, 1);
	AWAIT_METRIC(&server, "http_connections", ==, 7);
	close_all(fd, 4);
	close_all(told, 3);
	close(mine);
	stop();
}

/* ---- a limit that was lowered ---- */

static void test_lowered(void)
{
	int fd[6], mine;

	start_with("with.max_connections", "6");
	for (int i = 0; i < 6; i++)
		fd[i] = open_idle(NULL);
	clock_move(1500);
	turn("with.max_connections", "3");
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 0);
	mine = open_idle(NULL);
	for (int i = 0; i < 4; i++) /* three are over the limit, one makes a slot free */
		CU_ASSERT(client_at_end(fd[i]));
	CU_ASSERT(is_served(fd[4]) && is_served(fd[5]));
	AWAIT_METRIC(&server, "http_evicted_total", ==, 4);
	AWAIT_METRIC(&server, "http_connections", ==, 3);
	close_all(fd, 6);
	close(mine);
	stop();
}

/* Connections that cannot be evicted keep the number above the limit: no new one is accepted, and
 * none below the limit is evicted in vain. */
static void test_lowered_and_busy(void)
{
	int busy[3], idle[2], told[2];

	start_with("with.max_connections", "5");
	for (int i = 0; i < 3; i++) {
		busy[i] = client_open(server.port);
		CU_ASSERT(client_say(busy[i], POST_HALF));
	}
	for (int i = 0; i < 2; i++)
		idle[i] = open_idle(NULL);
	AWAIT_METRIC(&server, "http_connections", ==, 5);
	clock_move(1500);
	turn("with.max_connections", "3");
	for (int i = 0; i < 2; i++)
		told[i] = open_refused(NULL, "max_connections");
	for (int i = 0; i < 2; i++)
		CU_ASSERT(client_at_end(idle[i]));
	AWAIT_METRIC(&server, "http_evicted_total", ==, 2);
	for (int i = 0; i < 3; i++) {
		struct answer a = {0};
		CU_ASSERT(client_say(busy[i], "cd") && answer_read(busy[i], &a));
		CU_ASSERT(answer_is(&a, 200, "POST /p\nabcd"));
		answer_free(&a);
	}
	close_all(busy, 3);
	close_all(idle, 2);
	close_all(told, 2);
	stop();
}

/* The limit per address is lowered. */
static void test_lowered_of_address(void)
{
	int fd[4], mine, theirs;

	start_with("with.max_per_address", "4");
	theirs = open_idle(OTHER);
	for (int i = 0; i < 4; i++)
		fd[i] = open_idle(NULL);
	clock_move(1500);
	turn("with.max_per_address", "2");
	mine = open_idle(NULL);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(client_at_end(fd[i]));
	CU_ASSERT(is_served(fd[3]) && is_served(theirs));
	AWAIT_METRIC(&server, "http_evicted_total", ==, 3);
	close_all(fd, 4);
	close(mine);
	close(theirs);
	stop();
}

/* ---- descriptors ---- */

static rlim_t set_files(rlim_t n)
{
	struct rlimit r;
	rlim_t before;

	getrlimit(RLIMIT_NOFILE, &r);
	before = r.rlim_cur;
	r.rlim_cur = n;
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &r), 0);
	return before;
}

/* Connect a socket that was created before descriptors ran out. */
static void come(int fd)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)server.port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	CU_ASSERT_EQUAL(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

/* Out of descriptors: a connection over the accept rate evicts none, an acceptable one does. */
static void test_descriptors(void)
{
	struct answer a = {0};
	int fd[2], fast, good, next;
	rlim_t before;

	start_with("with.accept_rate", "0.001"); /* 10 at once */
	for (int i = 0; i < 2; i++)
		fd[i] = open_idle(OTHER);
	for (int i = 0; i < 10; i++)
		close(open_idle(NULL));
	AWAIT_METRIC(&server, "http_connections", ==, 2);
	clock_move(1500);
	fast = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	good = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	next = dup(0);
	close(next);
	before = set_files((rlim_t)next);
	come(fast);
	CU_ASSERT(answer_read(fast, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	AWAIT_METRIC(&server, "http_refused_rate_total", ==, 1);
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 0);
	turn("with.accept_rate", "0");
	come(good);
	CU_ASSERT(is_served(good));
	CU_ASSERT(client_at_end(fd[0]));
	CU_ASSERT(is_served(fd[1]));
	AWAIT_METRIC(&server, "http_evicted_total", ==, 1);
	set_files(before);
	close_all(fd, 2);
	close(fast);
	close(good);
	stop();
	answer_free(&a);
}

/* Without /dev: an idle connection is evicted, and no other. */
static void test_no_devices(void)
{
	int fd, good, next;
	rlim_t before;

	atomic_store(&no_devices, true);
	start_with("with.max_connections", "10");
	fd = open_idle(NULL);
	clock_move(1500);
	good = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	next = dup(0);
	close(next);
	before = set_files((rlim_t)next);
	come(good);
	CU_ASSERT(is_served(good));
	CU_ASSERT(client_at_end(fd));
	AWAIT_METRIC(&server, "http_evicted_total", ==, 1);
	CU_ASSERT_EQUAL(server_metric(&server, "http_refused_total"), 0);
	set_files(before);
	close(fd);
	close(good);
	stop();
	atomic_store(&no_devices, false);
}

CUNIT_MAIN("http places", {"who is refused has no place", test_refused_have_no_place},
    {"who is refused makes no place", test_refused_make_no_place}, {"a lower limit", test_lowered},
    {"a lower limit, busy", test_lowered_and_busy},
    {"a lower limit of an address", test_lowered_of_address}, {"descriptors", test_descriptors},
    {"no devices", test_no_devices})
