/* SPDX-License-Identifier: MIT */
/*
 * Changes between the shared steps in which the answers of many connections are sent
 * (write_turn.c). When all answers of a group were sent and their results are being recorded, the
 * release of one of them holds the I/O thread. The test then makes changes that must not disturb
 * the others: it reloads the graph, lowers a limit, takes memory away, ends connections. Each
 * client gets exactly what it requested, or an end that a counter reports. Each event ends once,
 * and all memory is returned.
 *
 * The stage is inline, so a request that waits at a gate blocks the I/O thread until all clients
 * have sent: their requests are handled in the same iteration.
 */
#include "fixture/graph/drain.h"
#include "fixture/clock/held_clock.h"
#include "fixture/http/server.h"

/* Three groups; the answer that holds the thread is in the second. */
enum { CLIENTS = 96, HOLDS = 40 };

/* More than Linux buffers for a connection whose client does not read: 4 MB (tcp_wmem) and the
 * client's buffer. */
#define BIG "5000000"

static struct server server;

/* ---- the stage ---- */

static struct weir_event *kept; /* the request for /keep, until /free is released */
/* The client that the release of /cut resets. */
static int cut_fd = -1;

static void reset(int fd)
{
	struct linger now = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static void hold(void *arg)
{
	(void)arg;
	gate_pass("amid", 4);
}

static void cut(void *arg)
{
	(void)arg;
	reset(cut_fd);
}

/* Answers the request of another connection, and ends that connection. */
static void free_kept(void *arg)
{
	(void)arg;
	weir_http_respond_copy(
	    weir_http_request(kept), 200, "text/plain", (struct weir_slice){"kept\n", 5});
	weir_http_request(kept)->res.close = true;
	weir_event_finish(&kept, WEIR_OK);
}

static void answer_with(struct weir_http_request *req, void (*release)(void *arg))
{
	weir_http_respond(req, 200, "text/plain", (struct weir_slice){"amid\n", 5}, release, NULL);
}

static void amid_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		if (target_starts(req, "/keep")) {
			kept = ev[i];
			weir_hold(st, &ev[i]);
			continue;
		}
		if (target_starts(req, "/hold"))
			answer_with(req, hold);
		else if (target_starts(req, "/cut"))
			answer_with(req, cut);
		else if (target_starts(req, "/free"))
			answer_with(req, free_kept);
		else {
			reply_handle(st, &ev[i], 1);
			continue;
		}
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops amid_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.amid",
    .summary = "t.reply, and answers whose release does something",
    .accepts = &weir_http_request_type,
    .handle = amid_handle};

static struct server amid_new(void)
{
	static bool registered;

	if (!registered)
		fixture_register(&amid_ops);
	registered = true;
	struct server s = server_new("t.amid");
	fixture_set(s.app, "threads", "inline");
	fixture_set(s.web, "with.max_per_address", "0");
	return s;
}

static void set(const char *knob, const char *value)
{
	char why[256];

	CU_ASSERT_EQUAL(weir_graph_set(server.graph, "web", knob, value, why, sizeof(why)), 0);
}

/* ---- clients ---- */

static bool answers(int fd, int status, const char *body)
{
	struct answer a = {0};
	bool good = answer_read(fd, &a) && answer_is(&a, status, body);

	answer_free(&a);
	return good;
}

static bool asks(int fd, const char *target)
{
	char text[128], body[64];

	snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: t\r\n\r\n", target);
	snprintf(body, sizeof(body), "GET %s\n", target);
	return client_say(fd, text) && answers(fd, 200, body);
}

static void await_http(int64_t connections)
{
	AWAIT_METRIC(&server, "http_connections", ==, connections);
}

struct turn {
	int first; /* blocks the I/O thread until all have sent */
	int fd[CLIENTS];
};

static struct turn turn_open(int already)
{
	struct turn t = {.first = client_open(server.port)};

	for (int i = 0; i < CLIENTS; i++)
		t.fd[i] = client_open(server.port);
	await_http(CLIENTS + 1 + already);
	CU_ASSERT(client_say(t.first, GET("/wait/spoken")));
	gate_await(1);
	return t;
}

/* All clients have sent: the answers go out, and the I/O thread stops in the release of one of
 * them. */
static void turn_go(const struct turn *t)
{
	gate_open("spoken");
	CU_ASSERT(answers(t->first, 200, "GET /wait/spoken\n"));
	gate_await(1);
}

/* All clients send `text`, except for the one whose answer holds the thread. */
static void all_say(const struct turn *t, const char *text)
{
	for (int i = 0; i < CLIENTS; i++)
		CU_ASSERT(client_say(t->fd[i], i == HOLDS ? GET("/hold") : text));
}

/* The answers to GET /a and GET /b. */
static void expect_a_and_b(const struct turn *t)
{
	for (int i = 0; i < CLIENTS; i++)
		CU_ASSERT(i == HOLDS ? answers(t->fd[i], 200, "amid\n")
				     : answers(t->fd[i], 200, "GET /a\n") &&
					   answers(t->fd[i], 200, "GET /b\n"));
}

static void turn_end(struct turn *t)
{
	close(t->first);
	for (int i = 0; i < CLIENTS; i++)
		close(t->fd[i]);
	await_http(0);
	AWAIT_METRIC(&server, "http_memory_bytes", ==, 0);
}

/* `n` requests were answered with 200, and no other answers were sent. */
static void expect_answers(int64_t n)
{
	AWAIT_METRIC(&server, "http_responses_2xx_total", ==, n);
	CU_ASSERT_EQUAL(server_offered(&server), (uint64_t)n);
	CU_ASSERT_EQUAL(server_metric(&server, "http_responses_4xx_total"), 0);
	CU_ASSERT_EQUAL(server_metric(&server, "http_responses_5xx_total"), 0);
	CU_ASSERT_EQUAL(server_metric(&server, "http_undelivered_total"), 0);
}

/* ---- a reload ---- */

/* All clients are answered by the server they asked, and their connections are handed over. */
static void test_reload(void)
{
	struct drain d;
	struct server next = amid_new();
	struct weir_errs errs = {0};

	server = amid_new();
	server_start(&server);
	struct turn t = turn_open(0);
	all_say(&t, GET("/a") GET("/b"));
	turn_go(&t);
	next.graph = fixture_build(next.spec);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next.graph, server.graph, &errs), 0);
	drain_call(&d, server.graph, DRAIN_ALL_NS);
	/* The old server has already made its last read of this connection. */
	CU_ASSERT(client_say(t.fd[0], GET("/next")));
	gate_open("amid");
	expect_a_and_b(&t);
	CU_ASSERT(answers(t.fd[0], 200, "GET /next\n"));
	drain_end(&d);
	CU_ASSERT_EQUAL(d.report.closed, 0);
	server.graph = next.graph;
	await_http(CLIENTS + 1);
	CU_ASSERT(asks(t.first, "/new"));
	for (int i = 0; i < CLIENTS; i++)
		CU_ASSERT(asks(t.fd[i], "/new"));
	expect_answers(3 * CLIENTS + 2); /* of both servers */
	AWAIT_METRIC(&server, "http_accepted_total", ==, CLIENTS + 1);
	turn_end(&t);
	server_stop(&server);
}

/* ---- max_connections ---- */

/* The limit falls below the number of connections. All clients of the iteration are answered, new
 * ones are refused, and new ones are accepted again once the number has dropped. */
static void test_lowered(void)
{
	enum { NEW = 3 };
	int fresh[NEW];

	server = amid_new();
	server_start(&server);
	struct turn t = turn_open(0);
	all_say(&t, GET("/a") GET("/b"));
	turn_go(&t);
	set("with.max_connections", "10");
	for (int i = 0; i < NEW; i++)
		fresh[i] = client_open(server.port);
	gate_open("amid");
	for (int i = 0; i < NEW; i++) {
		struct answer a = {0};
		CU_ASSERT(answer_read(fresh[i], &a));
		CU_ASSERT(a.status == 503 && a.close && client_at_end(fresh[i]));
		answer_free(&a);
		close(fresh[i]);
	}
	expect_a_and_b(&t);
	await_http(CLIENTS + 1);
	set("with.max_connections", "1000");
	fresh[0] = client_open(server.port);
	CU_ASSERT(asks(fresh[0], "/new"));
	close(fresh[0]);
	AWAIT_METRIC(&server, "http_refused_total", ==, NEW);
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 0);
	AWAIT_METRIC(&server, "http_responses_2xx_total", ==, 2 * CLIENTS + 1);
	AWAIT_METRIC(&server, "http_responses_5xx_total", ==, NEW);
	CU_ASSERT_EQUAL(server_offered(&server), 2 * CLIENTS + 1);
	turn_end(&t);
	server_stop(&server);
}

/* The limit is reached, and some connections have long been idle. These are evicted, one for each
 * new connection. None of those in the iteration is evicted, although all have waited as long. */
static void test_reached(void)
{
	enum { NEW = 3, IDLE = 4 };
	int fresh[NEW], idle[IDLE];

	server = amid_new();
	fixture_set(server.web, "with.max_connections", "101");
	_Static_assert(CLIENTS + IDLE + 1 == 101, "as many as may be");
	clock_hold();
	server_start(&server);
	for (int i = 0; i < IDLE; i++) {
		idle[i] = client_open(server.port);
		CU_ASSERT(asks(idle[i], "/first"));
	}
	clock_move(10);
	struct turn t = turn_open(IDLE);
	all_say(&t, GET("/a") GET("/b"));
	turn_go(&t);
	for (int i = 0; i < NEW; i++) {
		fresh[i] = client_open(server.port);
		CU_ASSERT(client_say(fresh[i], GET("/fresh")));
	}
	atomic_fetch_add(&held_ns, 1500 * HELD_NS_PER_MS); /* noticed when the thread continues */
	gate_open("amid");
	for (int i = 0; i < NEW; i++) {
		CU_ASSERT(answers(fresh[i], 200, "GET /fresh\n"));
		CU_ASSERT(client_at_end(idle[i]));
	}
	CU_ASSERT(asks(idle[NEW], "/last"));
	expect_a_and_b(&t);
	AWAIT_METRIC(&server, "http_evicted_total", ==, NEW);
	CU_ASSERT_EQUAL(server_metric(&server, "http_refused_total"), 0);
	expect_answers(2 * CLIENTS + IDLE + NEW + 1);
	for (int i = 0; i < IDLE; i++)
		close(idle[i]);
	for (int i = 0; i < NEW; i++)
		close(fresh[i]);
	turn_end(&t);
	server_stop(&server);
	clock_release();
}

/* ---- memory ---- */

/* Does client `i` request more than its socket can take? */
static bool asks_much(int i)
{
	return i % 8 == 1;
}

/* Read the answer to /big. Is it good, and has it `n` bytes? */
static bool answers_big(int fd, size_t n)
{
	struct answer a = {0};
	bool good = answer_read(fd, &a) && a.status == 200 && a.n == n && !a.close &&
		    a.body[n - 1] == (char)('a' + (n - 1) % 26);

	answer_free(&a);
	return good;
}

/* The answers in flight hold more memory than the new limit. All requests of this iteration are
 * answered. Later ones are refused until the answers have gone. */
static void test_memory(void)
{
	enum { ASK = 10 };
	const int small = 65536;
	struct answer a = {0};

	server = amid_new();
	fixture_set(server.web, "with.memory", "1GiB");
	clock_hold();
	server_start(&server);
	struct turn t = turn_open(0);
	for (int i = 0; i < CLIENTS; i++) {
		if (asks_much(i))
			setsockopt(t.fd[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
		CU_ASSERT(client_say(t.fd[i], i == HOLDS     ? GET("/hold")
					      : asks_much(i) ? GET("/big/" BIG) GET("/b")
							     : GET("/a") GET("/b")));
	}
	turn_go(&t);
	set("with.memory", "1MiB");
	gate_open("amid");
	clock_move(1); /* knobs are read once per iteration */
	for (int i = 0; i < CLIENTS; i++)
		if (!asks_much(i))
			CU_ASSERT(i == HOLDS ? answers(t.fd[i], 200, "amid\n")
					     : answers(t.fd[i], 200, "GET /a\n") &&
						   answers(t.fd[i], 200, "GET /b\n"));
	for (int i = 0; i < ASK; i++) {
		int fd = t.fd[8 * i];
		CU_ASSERT(client_say(fd, GET("/refused")) && answer_read(fd, &a));
		CU_ASSERT(a.status == 503 && a.close && client_at_end(fd));
	}
	AWAIT_METRIC(&server, "http_memory_step", ==, 4);
	AWAIT_METRIC(&server, "http_refused_memory_total", ==, ASK);
	for (int i = 0; i < CLIENTS; i++)
		if (asks_much(i))
			CU_ASSERT(answers_big(t.fd[i], (size_t)atol(BIG)) &&
				  answers(t.fd[i], 200, "GET /b\n"));
	AWAIT_METRIC(&server, "http_memory_step", ==, 0);
	CU_ASSERT(asks(t.first, "/again"));
	AWAIT_METRIC(&server, "http_responses_2xx_total", ==, 2 * CLIENTS + 1);
	AWAIT_METRIC(&server, "http_responses_5xx_total", ==, ASK);
	CU_ASSERT_EQUAL(server_metric(&server, "http_undelivered_total"), 0);
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 0);
	CU_ASSERT_EQUAL(server_offered(&server), 2 * CLIENTS + 1);
	answer_free(&a);
	turn_end(&t);
	server_stop(&server);
	clock_release();
}

/* ---- a release that ends another connection ---- */

/* The release of an answer resets a client of the same group, and causes the answer of another
 * client, whose connection then ends. */
static void test_ends_another(void)
{
	enum { CUTS = 10, CUT = 20, FREES = 11, KEEPS = 5 };

	server = amid_new();
	server_start(&server);
	struct turn t = turn_open(0);
	cut_fd = t.fd[CUT];
	for (int i = 0; i < CLIENTS; i++) {
		const char *text = i == CUTS    ? GET("/cut") GET("/b")
				   : i == FREES ? GET("/free") GET("/b")
				   : i == KEEPS ? GET("/a") GET("/keep") GET("/never")
						: GET("/a") GET("/b");
		CU_ASSERT(client_say(t.fd[i], text));
	}
	gate_open("spoken");
	CU_ASSERT(answers(t.first, 200, "GET /wait/spoken\n"));
	for (int i = 0; i < CLIENTS; i++) {
		bool special = i == CUTS || i == FREES;
		if (i == CUT)
			continue;
		CU_ASSERT(answers(t.fd[i], 200, special ? "amid\n" : "GET /a\n"));
		CU_ASSERT(answers(t.fd[i], 200, i == KEEPS ? "kept\n" : "GET /b\n"));
		if (i == KEEPS)
			CU_ASSERT(client_at_end(t.fd[i]));
	}
	t.fd[CUT] = dup(0); /* the release has closed it */
	await_http(CLIENTS - 1);
	/* Requests after the end are not answered. The reset client had been sent everything. */
	AWAIT_METRIC(&server, "http_responses_2xx_total", ==, 2 * CLIENTS + 1);
	AWAIT_METRIC(&server, "http_undelivered_total", ==, 1);
	CU_ASSERT_EQUAL(server_offered(&server), 2 * CLIENTS + 2);
	turn_end(&t);
	server_stop(&server);
}

CUNIT_MAIN("http amid", {"a reload", test_reload}, {"max_connections lowered", test_lowered},
    {"max_connections reached", test_reached}, {"memory becomes tight", test_memory},
    {"a release ends another", test_ends_another})
