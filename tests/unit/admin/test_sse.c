/* SPDX-License-Identifier: MIT */
/* Watchers on socket pairs, with a virtual clock: their greeting, their events, and when they are
 * closed. Over real sockets: test_events.c. */
#include "admin/stream/sse.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/log.h>

#include "cunit_main.h"
#include "admin/auth/auth.h"
#include "admin/stream/sse_request.h"

#define S                   1000000000LL
#define ASK(target, fields) "GET " target " HTTP/1.1\r\nHost: 127.0.0.1:9900\r\n" fields "\r\n"

static struct sse *sse;
static int64_t now_ns;
static char got[1 << 20];

static void setup(void)
{
	weir_log_set_fd(-1);
	now_ns = 500 * S;
	CU_ASSERT_EQUAL_FATAL(sse_open(1000, &sse), 0);
	sse_about(sse, "made \"up\"", 490 * S);
}

static void teardown(void)
{
	sse_close(sse);
}

/* The test's end of a watcher that connected with `request`. */
static int come(const char *request)
{
	struct head_problem problem = {0};
	int fd[2];

	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	CU_ASSERT_TRUE(sse_wants(request, strlen(request)));
	CU_ASSERT_FALSE(sse_refuses(sse, request, strlen(request), NULL, &problem));
	sse_add(sse, fd[1], request, strlen(request), NULL, now_ns);
	return fd[0];
}

/* The text that has arrived; NULL when the other side has closed and nothing is left. */
static const char *arrived(int fd)
{
	ssize_t n = recv(fd, got, sizeof(got) - 1, MSG_DONTWAIT);

	got[n > 0 ? n : 0] = '\0';
	return n == 0 ? NULL : got;
}

static void pass(int64_t seconds)
{
	for (; seconds > 0; seconds--) {
		now_ns += S;
		sse_second(sse, now_ns);
		sse_run(sse, now_ns);
	}
}

static void tick(int hz)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "{\"hz\":%d}", hz);

	sse_tick(sse, hz, text, (size_t)n);
	sse_run(sse, now_ns);
}

static void test_hello(void)
{
	setup();
	int fd = come(ASK("/events", ""));
	const char *text = arrived(fd);
	CU_ASSERT_EQUAL(
	    strncmp(text, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n", 50), 0);
	for (const struct reply_field *f = reply_fields; f->name; f++)
		CU_ASSERT_PTR_NOT_NULL(strstr(text, f->value));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(text, "\r\n\r\nretry: 1000\n\nid: 1000\nevent: hello\ndata: {"));
	const char *json = strstr(text, "data: ") + 6;
	json_t *hello = json_loads(json, JSON_DISABLE_EOF_CHECK, NULL);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(hello, "name")), "made \"up\"");
	CU_ASSERT_EQUAL(json_number_value(json_object_get(hello, "start")), 1);
	CU_ASSERT_EQUAL(json_number_value(json_object_get(hello, "uptime_seconds")), 10);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(hello, "graph")), 0);
	CU_ASSERT_TRUE(json_is_false(json_object_get(hello, "gap")));
	json_decref(hello);
	close(fd);
	teardown();
}

/* Each watcher gets its rate and all events. */
static void test_rates(void)
{
	setup();
	int one = come(ASK("/events?hz=1", "")), four = come(ASK("/events?hz=4", ""));
	int none = come(ASK("/events?hz=0", ""));
	CU_ASSERT_EQUAL(sse_watchers(sse), 3);
	CU_ASSERT_EQUAL(sse_watchers_at(sse, 1), 1);
	CU_ASSERT_EQUAL(sse_watchers_at(sse, 4), 1);
	arrived(one), arrived(four), arrived(none);
	tick(1);
	tick(4);
	sse_act(sse, json_pack("{s:i}", "id", 7));
	sse_decision(sse, json_pack("{s:i}", "id", 8));
	sse_config(sse, 12.5, 3);
	sse_run(sse, now_ns);
	CU_ASSERT_STRING_EQUAL(arrived(one),
	    "id: 1001\nevent: tick\ndata: {\"hz\":1}\n\nid: 1003\nevent: act\ndata: {\"id\":7}\n\n"
	    "id: 1004\nevent: decision\ndata: {\"id\":8}\n\n"
	    "id: 1005\nevent: config\ndata: {\"at\":12.5,\"graph\":3}\n\n");
	CU_ASSERT_EQUAL(strncmp(arrived(four), "id: 1002\nevent: tick\ndata: {\"hz\":4}", 34), 0);
	CU_ASSERT_EQUAL(strncmp(arrived(none), "id: 1003\nevent: act", 19), 0);
	close(one), close(four), close(none);
	sse_run(sse, now_ns);
	CU_ASSERT_EQUAL(sse_watchers(sse), 0);
	CU_ASSERT_EQUAL(sse_watchers_at(sse, 4), 0);
	sse_act(NULL, json_object());
	teardown();
}

/* A watcher that reconnects gets the events it missed. One with an id of another server gets all
 * that are kept. */
static void test_replay(void)
{
	setup();
	for (int i = 0; i < 3; i++) {
		sse_act(sse, json_pack("{s:i}", "id", i));
		tick(1);
	}
	int fd = come(ASK("/events", "Last-Event-ID: 1002\r\n"));
	const char *text = strstr(arrived(fd), "\r\n\r\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "id: 1002\nevent: hello"));
	CU_ASSERT_PTR_NULL(strstr(text, "id: 1001\n"));
	for (int id = 1003; id <= 1006; id++) {
		char line[32];
		snprintf(line, sizeof(line), "\n\nid: %d\n", id);
		text = strstr(text, line);
		CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	}
	close(fd);
	/* the field takes precedence over the query; a value that is not a number is ignored */
	fd = come(ASK("/events?last=1001", "Last-Event-ID: 1005\r\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(arrived(fd), "id: 1005\nevent: hello"));
	close(fd);
	fd = come(ASK("/events?last=1004", "Last-Event-ID: x\r\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(arrived(fd), "id: 1004\nevent: hello"));
	close(fd);
	/* an id that this server has not reached is one of another server */
	fd = come(ASK("/events", "Last-Event-ID: 999999\r\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(arrived(fd), "id: 1006\nevent: hello"));
	close(fd);
	for (int i = 0; i < SSE_RING_EVENTS; i++)
		sse_act(sse, json_pack("{s:i}", "id", i));
	fd = come(ASK("/events?last=3", ""));
	CU_ASSERT_PTR_NOT_NULL(strstr(arrived(fd), "\"gap\":true"));
	close(fd);
	teardown();
}

static void test_beat(void)
{
	setup();
	int fd = come(ASK("/events?hz=0", ""));
	arrived(fd);
	pass(SSE_BEAT_S - 1);
	CU_ASSERT_STRING_EQUAL(arrived(fd), "");
	pass(1);
	CU_ASSERT_STRING_EQUAL(arrived(fd), ": beat\n\n");
	pass(SSE_BEAT_S);
	CU_ASSERT_STRING_EQUAL(arrived(fd), ": beat\n\n");
	close(fd);
	teardown();
}

/* A tick larger than these sockets take at once. */
static void big_tick(int number)
{
	static char text[300000];
	int n = snprintf(text, sizeof(text), "{\"n\":%d,\"text\":\"", number);

	memset(text + n, 'x', sizeof(text) - (size_t)n);
	memcpy(text + sizeof(text) - 2, "\"}", 2);
	sse_tick(sse, 1, text, sizeof(text));
	sse_run(sse, now_ns);
}

/* Read until nothing more arrives, letting the sender run. Returns how many ticks were
 * completed. */
static int read_all(int fd, int *last)
{
	int ticks = 0;

	while (arrived(fd) && got[0]) {
		for (const char *p = got; (p = strstr(p, "\"n\":")); p++)
			*last = atoi(p + 4), ticks++;
		sse_run(sse, now_ns);
	}
	return ticks;
}

/* A watcher that stops reading skips ticks and is closed in the end. One that reads is not
 * affected. */
static void test_slow(void)
{
	int last = 0;

	setup();
	int slow = come(ASK("/events", "")), fast = come(ASK("/events", ""));
	for (int i = 1; i <= 10; i++) {
		big_tick(i);
		CU_ASSERT_EQUAL(read_all(fast, &last), 1);
		CU_ASSERT_EQUAL(last, i);
		pass(1);
	}
	/* the watcher reads again: the rest of the tick in progress, and the newest one */
	CU_ASSERT_EQUAL(read_all(slow, &last), 2);
	CU_ASSERT_EQUAL(last, 10);
	big_tick(11);
	CU_ASSERT_EQUAL(read_all(slow, &last), 1);
	/* now the watcher stops for good */
	big_tick(12);
	read_all(fast, &last);
	pass(SSE_PATIENCE_S);
	CU_ASSERT_EQUAL(sse_watchers(sse), 2);
	pass(1);
	CU_ASSERT_EQUAL(sse_watchers(sse), 1);
	big_tick(13);
	CU_ASSERT_EQUAL(read_all(fast, &last), 1);
	close(slow), close(fast);
	teardown();
}

static void test_junk(void)
{
	static char junk[4096];

	setup();
	int fd = come(ASK("/events", ""));
	for (int i = 0; i < 1000 && sse_watchers(sse) > 0; i++) {
		send(fd, junk, sizeof(junk), MSG_NOSIGNAL | MSG_DONTWAIT);
		sse_run(sse, now_ns);
	}
	CU_ASSERT_EQUAL(sse_watchers(sse), 0);
	close(fd);
	teardown();
}

static int status_of(const char *request)
{
	struct head_problem problem = {0};

	CU_ASSERT_TRUE(sse_wants(request, strlen(request)));
	return sse_refuses(sse, request, strlen(request), NULL, &problem) ? problem.status : 200;
}

static bool wanted(const char *request)
{
	return sse_wants(request, strlen(request));
}

static void test_asking(void)
{
	setup();
	CU_ASSERT_TRUE(wanted(ASK("/events", "")));
	CU_ASSERT_FALSE(wanted(ASK("/eventsx", "")));
	CU_ASSERT_FALSE(wanted(ASK("/event", "")));
	CU_ASSERT_FALSE(wanted(ASK("/events/x", "")));
	CU_ASSERT_FALSE(wanted("HEAD /events HTTP/1.1\r\nHost: x\r\n\r\n"));
	CU_ASSERT_FALSE(wanted("POST /events HTTP/1.1\r\nHost: x\r\n\r\n"));
	CU_ASSERT_EQUAL(status_of(ASK("/events?hz=4&last=12&", "")), 200);
	CU_ASSERT_EQUAL(status_of(ASK("/events?", "")), 200);
	CU_ASSERT_EQUAL(status_of(ASK("/events?hz=2", "")), 400);
	CU_ASSERT_EQUAL(status_of(ASK("/events?hz=", "")), 400);
	CU_ASSERT_EQUAL(status_of(ASK("/events?hz=4x", "")), 400);
	CU_ASSERT_EQUAL(status_of(ASK("/events?last=-1", "")), 400);
	CU_ASSERT_EQUAL(status_of(ASK("/events?last=1234567890123456789", "")), 400);
	CU_ASSERT_EQUAL(status_of(ASK("/events?x=1", "")), 400);
	CU_ASSERT_EQUAL(status_of(ASK("/events", "Origin: http://127.0.0.1:9900\r\n"
						 "Sec-Fetch-Site: same-origin\r\n")),
	    200);
	CU_ASSERT_EQUAL(status_of(ASK("/events", "origin: http://evil.example\r\n")), 403);
	CU_ASSERT_EQUAL(status_of(ASK("/events", "Sec-Fetch-Site: cross-site\r\n")), 403);
	teardown();
}

/* Whether a watcher with this pass is admitted; *fd is the watcher's end. */
static bool come_as(uint64_t edition, enum weir_admin_role role, int *fd)
{
	const struct auth_pass who = {.role = role, .token = 0, .edition = edition};
	static const char request[] = ASK("/events", "");
	struct head_problem problem = {0};
	int pair[2];

	if (sse_refuses(sse, request, sizeof(request) - 1, &who, &problem)) {
		CU_ASSERT_EQUAL(problem.status, 503);
		return false;
	}
	CU_ASSERT_EQUAL_FATAL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	sse_add(sse, pair[1], request, sizeof(request) - 1, &who, now_ns);
	*fd = pair[0];
	return true;
}

/* Of 48 slots one token may take 24, and viewers together 36. Without authentication all can be
 * taken. */
static void test_shares(void)
{
	struct rlimit before, low;
	int fd[64], n = 0;

	getrlimit(RLIMIT_NOFILE, &before);
	low = before;
	low.rlim_cur = 192; /* a quarter is 48 */
	setrlimit(RLIMIT_NOFILE, &low);
	setup();
	setrlimit(RLIMIT_NOFILE, &before);
	while (n < 60 && come_as(1, WEIR_ADMIN_VIEWER, &fd[n]))
		n++;
	CU_ASSERT_EQUAL(n, 24);
	while (n < 60 && come_as(2, WEIR_ADMIN_VIEWER, &fd[n]))
		n++;
	CU_ASSERT_EQUAL(n, 36);
	CU_ASSERT_FALSE(come_as(3, WEIR_ADMIN_VIEWER, &fd[n]));
	while (n < 60 && come_as(4, WEIR_ADMIN_OPERATOR, &fd[n]))
		n++;
	CU_ASSERT_EQUAL(n, 48);
	while (n > 0)
		close(fd[--n]);
	teardown();
	setrlimit(RLIMIT_NOFILE, &low);
	setup();
	setrlimit(RLIMIT_NOFILE, &before);
	while (n < 60 && come_as(0, WEIR_ADMIN_OPERATOR, &fd[n]))
		n++;
	CU_ASSERT_EQUAL(n, 48);
	while (n > 0)
		close(fd[--n]);
	teardown();
}

CUNIT_MAIN("sse", {"hello", test_hello}, {"rates", test_rates}, {"replay", test_replay},
    {"heartbeat", test_beat}, {"slow reader", test_slow}, {"junk", test_junk},
    {"asking", test_asking}, {"shares", test_shares})
