/* SPDX-License-Identifier: MIT */
/*
 * /events over real sockets: which events are sent, which are sent again after a reconnect, and
 * that neither a watcher that never reads nor too many watchers keep other clients from being
 * served. Times are real: a tick comes within a second, and each wait ends when its event has come.
 */
#include "admin/admin.h"

#include <jansson.h>
#include <sys/resource.h>
#include <time.h>

#include <weir/log.h>

#include "client.h"
#include "cunit_main.h"
#include "admin/stream/sse.h"
#include "made_up.h"

static struct made_up made_up;
static struct admin *admin;
static int port;
static char answer[1 << 16];

/* A made-up server on which time passes. */
static int view_now(void *arg, struct weir_graph_view **view)
{
	struct made_up *m = arg;
	struct timespec t = {0};

	clock_gettime(CLOCK_MONOTONIC, &t);
	m->view.now_ns = t.tv_sec * 1000000000LL + t.tv_nsec;
	clock_gettime(CLOCK_REALTIME, &t);
	m->view.wall_ns = t.tv_sec * 1000000000LL + t.tv_nsec;
	return made_up_view(arg, view);
}

/* From here on the endpoint reads `made_up`. */
static void start(void)
{
	struct weir_err err = {0};
	struct admin_source source = made_up_source(&made_up);

	source.view = view_now;

	weir_log_set_fd(-1);
	CU_ASSERT_EQUAL_FATAL(admin_start_source(&source, "127.0.0.1:0", &admin, &err), 0);
	port = admin_port(admin);
}

static void setup(void)
{
	made_up_init(&made_up);
	start();
}

static void teardown(void)
{
	admin_stop(admin);
	CU_ASSERT_EQUAL(made_up.n_views, 0);
}

/* A connection that has requested `target`. */
static int ask(const char *target, const char *fields)
{
	char request[512];
	int fd = client_connect(port);

	snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n",
	    target, port, fields);
	CU_ASSERT_TRUE_FATAL(fd >= 0 && client_send(fd, request));
	return fd;
}

/* Read until the text ends in an empty line and contains `word`. false: the stream ended before. */
static bool await(int fd, const char *word)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t n = 0;

	answer[0] = '\0';
	while (n < sizeof(answer) - 1 && poll(&p, 1, CLIENT_PATIENCE_MS) > 0) {
		ssize_t got = recv(fd, answer + n, sizeof(answer) - 1 - n, 0);
		if (got <= 0)
			return false;
		n += (size_t)got;
		answer[n] = '\0';
		if (n > 2 && strcmp(answer + n - 2, "\n\n") == 0 && strstr(answer, word))
			return true;
	}
	return false;
}

/* The data of the last event called `name` in the text read so far. */
static json_t *data_of(const char *name)
{
	char line[64];
	const char *last = NULL;

	snprintf(line, sizeof(line), "event: %s\ndata: ", name);
	for (const char *p = answer; (p = strstr(p, line)); p++)
		last = p + strlen(line);
	CU_ASSERT_PTR_NOT_NULL_FATAL(last);
	json_t *json = json_loads(last, JSON_DISABLE_EOF_CHECK, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	return json;
}

static bool has(const char *text)
{
	return strstr(answer, text) != NULL;
}

static void check_tick(const json_t *tick, int hz)
{
	const json_t *stages = json_object_get(tick, "stages");
	const json_t *disk = json_array_get(stages, MADE_DISK);

	CU_ASSERT_EQUAL(json_integer_value(json_object_get(tick, "hz")), hz);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(tick, "overload")), "off");
	CU_ASSERT_TRUE(json_is_true(json_object_get(tick, "ready")));
	CU_ASSERT_EQUAL(json_array_size(stages), MADE_UP_STAGES);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(disk, "name")), "disk");
	CU_ASSERT_EQUAL(json_object_size(disk), 17 + 2);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(tick, "classes")), 2);
	const json_t *self = json_object_get(tick, "self");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(self, "watchers")), 2);
	CU_ASSERT_TRUE(json_is_number(json_object_get(self, "cpu")));
}

/* Both rates at once, and the decisions taken before the first watcher connected. */
static void test_ticks(void)
{
	setup();
	int one = ask("/events?last=0", ""), four = ask("/events?hz=4", "");
	CU_ASSERT_TRUE(await(one, "event: tick"));
	CU_ASSERT_TRUE(has("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"));
	CU_ASSERT_TRUE(has("\"name\":"));
	json_t *tick = data_of("tick");
	check_tick(tick, 1);
	json_decref(tick);
	CU_ASSERT_TRUE(await(four, "event: tick"));
	tick = data_of("tick");
	check_tick(tick, 4);
	json_decref(tick);
	for (int i = 0; i < 4; i++)
		CU_ASSERT_TRUE(await(four, "event: tick"));
	close(one), close(four);
	int late = ask("/events?last=0", "");
	CU_ASSERT_TRUE(await(late, "event: tick"));
	CU_ASSERT_TRUE(has("event: decision\ndata: {\"id\":2"));
	close(late);
	teardown();
}

/* The newest id in the text read so far. */
static unsigned long long newest_id(void)
{
	unsigned long long id = 0;

	for (const char *p = answer; (p = strstr(p, "\nid: ")); p++)
		id = strtoull(p + 5, NULL, 10);
	return id;
}

static void test_replay(void)
{
	char field[64];

	setup();
	int fd = ask("/events?hz=0", "");
	CU_ASSERT_TRUE(await(fd, "event: hello"));
	unsigned long long id = newest_id();
	close(fd);
	admin_switch(admin, NULL, NULL, 5, NULL);
	fd = ask("/events?hz=0", "");
	CU_ASSERT_TRUE(await(fd, "event: hello"));
	if (!has("\"graph\":5"))
		CU_ASSERT_TRUE(await(fd, "event: config")); /* the event came after the greeting */
	close(fd);
	snprintf(field, sizeof(field), "Last-Event-ID: %llu\r\n", id);
	fd = ask("/events?hz=0", field);
	CU_ASSERT_TRUE(await(fd, "event: config"));
	CU_ASSERT_TRUE(has("\"graph\":5}"));
	CU_ASSERT_TRUE(newest_id() > id);
	close(fd);
	teardown();
}

/* A history file that cannot be created: the alert is raised in the first second, sent, and
 * listed. */
static void test_alert(void)
{
	struct weir_err err = {0};

	made_up_init(&made_up);
	struct admin_source source = made_up_source(&made_up);
	source.view = view_now;
	source.history_file = "/dev/null/history";
	weir_log_set_fd(-1);
	CU_ASSERT_EQUAL_FATAL(admin_start_source(&source, "127.0.0.1:0", &admin, &err), 0);
	port = admin_port(admin);
	int fd = ask("/events?hz=0&last=0", "");
	CU_ASSERT_TRUE(await(fd, "event: alert"));
	json_t *alert = data_of("alert");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(alert, "name")), "history_file");
	CU_ASSERT_TRUE(json_is_null(json_object_get(alert, "until")));
	json_decref(alert);
	close(fd);
	CU_ASSERT_EQUAL(client_get(port, "/api/v1/alerts", answer, sizeof(answer)), 200);
	CU_ASSERT_TRUE(
	    has("{\"active\":[{\"id\":1,\"name\":\"history_file\"") && has("\"past\":[]"));
	/* the bottleneck is computed from the sample of a second, which exists by now */
	CU_ASSERT_EQUAL(client_get(port, "/api/v1/graph", answer, sizeof(answer)), 200);
	CU_ASSERT_TRUE(has("\"bottleneck\":"));
	teardown();
}

static void test_refused(void)
{
	setup();
	CU_ASSERT_EQUAL(client_get(port, "/events?hz=3", answer, sizeof(answer)), 400);
	CU_ASSERT_TRUE(has("application/problem+json") && has("which is 0, 1 or 4"));
	CU_ASSERT_EQUAL(client_do(port, "GET", "/events", "Origin: http://evil.example\r\n", "",
			    answer, sizeof(answer)),
	    403);
	CU_ASSERT_EQUAL(client_ask(port, "GET /events HTTP/1.1\r\nHost: evil.example\r\n\r\n",
			    answer, sizeof(answer)),
	    421);
	CU_ASSERT_EQUAL(client_do(port, "HEAD", "/events", "", "", answer, sizeof(answer)), 200);
	CU_ASSERT_EQUAL(client_do(port, "POST", "/events", "", "", answer, sizeof(answer)), 405);
	teardown();
}

/* Ticks of 140 KB. Watchers that never read fill their sockets at once. The others still get each
 * tick, and requests are answered. */
static void test_never_reads(void)
{
	enum { COPIES = 600, SLOW = 20 };
	static char big[4 << 20];
	int slow[SLOW], small = 1;
	char request[128];

	made_up_init(&made_up);
	struct weir_stage_view *many = calloc(COPIES, sizeof(*many));
	CU_ASSERT_PTR_NOT_NULL_FATAL(many);
	for (int i = 0; i < COPIES; i++)
		many[i] = (struct weir_stage_view){.name = "x", .placement = "pool"};
	made_up.view.stages = many;
	made_up.view.n_stages = COPIES;
	made_up.view.n_classes = 1;
	start();
	snprintf(request, sizeof(request),
	    "GET /events?hz=4 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n", port);
	for (int i = 0; i < SLOW; i++) {
		slow[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(slow[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
		client_connect_with(slow[i], port);
		client_send(slow[i], request);
	}
	int fast = ask("/events?hz=4", "");
	struct pollfd p = {.fd = fast, .events = POLLIN};
	size_t n = 0;
	int ticks = 0;
	while (ticks < 3 && poll(&p, 1, CLIENT_PATIENCE_MS) > 0) {
		ssize_t got = recv(fast, big + n, sizeof(big) - 1 - n, 0);
		CU_ASSERT_TRUE_FATAL(got > 0);
		n += (size_t)got;
		big[n] = '\0';
		if (n > 2 && strcmp(big + n - 2, "\n\n") == 0) {
			ticks += strstr(big, "event: tick") != NULL;
			n = 0;
		}
	}
	CU_ASSERT_EQUAL(ticks, 3);
	CU_ASSERT_EQUAL(client_get(port, "/healthz", answer, sizeof(answer)), 200);
	for (int i = 0; i < SLOW; i++)
		close(slow[i]);
	close(fast);
	teardown();
	free(many);
}

/* The watchers above the limit get 503, until another leaves. Other requests are answered
 * throughout. */
static void test_limit(void)
{
	struct rlimit before, low;
	int fd[SSE_WATCHERS_MAX + 1], n = 0;

	getrlimit(RLIMIT_NOFILE, &before);
	low = before;
	low.rlim_cur = 200; /* a quarter is 50 */
	setrlimit(RLIMIT_NOFILE, &low);
	setup();
	setrlimit(RLIMIT_NOFILE, &before);
	for (; n < 50; n++) {
		fd[n] = ask("/events", "");
		CU_ASSERT_TRUE(await(fd[n], "event: hello"));
	}
	CU_ASSERT_EQUAL(client_get(port, "/events", answer, sizeof(answer)), 503);
	CU_ASSERT_TRUE(has("the maximum number of open streams of /events is reached"));
	CU_ASSERT_EQUAL(client_get(port, "/healthz", answer, sizeof(answer)), 200);
	CU_ASSERT_TRUE(await(fd[49], "\"watchers\":50"));
	close(fd[0]);
	bool room = false;
	while (!room) { /* the close is noticed as soon as the admin thread runs */
		fd[0] = ask("/events", "");
		room = await(fd[0], "event: hello");
		if (!room)
			close(fd[0]);
	}
	for (int i = 0; i < n; i++)
		close(fd[i]);
	teardown();
}

/* When the endpoint stops, the stream ends. */
static void test_stop(void)
{
	setup();
	int fd = ask("/events", "");
	CU_ASSERT_TRUE(await(fd, "event: hello"));
	teardown();
	CU_ASSERT_TRUE(client_read(fd, answer, sizeof(answer)) >= 0);
	close(fd);
}

/* The history is filled without any request. */
static void test_history(void)
{
	setup();
	int fd = ask("/events", "");
	CU_ASSERT_TRUE(await(fd, "event: tick"));
	CU_ASSERT_EQUAL(
	    client_get(port, "/api/v1/history?stage=disk&from=-5", answer, sizeof(answer)), 200);
	CU_ASSERT_TRUE(has("\"queue\":["));
	CU_ASSERT_TRUE(has("187"));
	close(fd);
	teardown();
}

CUNIT_MAIN("events", {"ticks", test_ticks}, {"replay", test_replay}, {"alert", test_alert},
    {"refused", test_refused}, {"who never reads", test_never_reads}, {"limit", test_limit},
    {"stop", test_stop}, {"history", test_history})
