/* SPDX-License-Identifier: MIT */
/*
 * Connections that become readable together are read, parsed, answered and sent to in steps
 * (read_turn.c, write_turn.c). What happens to one of them in between affects only that one; the
 * others get what they requested, in order. The stage is inline, so a request that waits at a gate
 * holds the I/O thread until all others have sent.
 */
#include "fixture/http/server.h"

#define CLIENTS 96 /* three runs */
#define ROUNDS  3  /* kinds at other positions of a run; more take a minute under TSan */

/* More than Linux buffers for a connection whose client does not read: 4 MB (tcp_wmem) and the
 * client's buffer, which is made small for that. The long pipeline is more than is composed at
 * once. */
#define BIG  "5000000"
#define FOUR GET("/1") GET("/2") GET("/3") GET("/4")

enum kind { ONE, THREE, CLOSES, SPOILT, RESET, SHORT_WRITE, HALF_CLOSED, MANY, WITH_BODY, KINDS };

static const char *const said[KINDS] = {
    [ONE] = GET("/one"),
    [THREE] = GET("/a") GET("/big/30000") GET("/c"),
    [CLOSES] = GET("/a") "GET /b HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n" GET("/never"),
    [SPOILT] = GET("/a") "GET / HTTP/1.1\r\nHost: t\r\nContent-Length: +1\r\n\r\n" GET("/never"),
    [RESET] = GET("/big/100000"),
    [SHORT_WRITE] = GET("/a") GET("/big/" BIG) GET("/c"),
    [HALF_CLOSED] = GET("/a") GET("/b"),
    [MANY] = FOUR FOUR FOUR FOUR,
    [WITH_BODY] = "POST /p HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nbody" GET("/b"),
};

static struct server server;

static void close_by_reset(int fd)
{
	struct linger now = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}

static bool answers(int fd, int status, const char *body)
{
	struct answer a = {0};
	bool good = answer_read(fd, &a) && a.status == status &&
		    (!body || (a.body && strcmp(a.body, body) == 0));

	answer_free(&a);
	return good;
}

static bool answers_bytes(int fd, long n)
{
	struct answer a = {0};
	bool good = answer_read(fd, &a) && a.status == 200 && a.n == (size_t)n &&
		    a.body[n - 1] == 'a' + (n - 1) % 26;

	answer_free(&a);
	return good;
}

static bool answers_many(int fd)
{
	for (int i = 0; i < 16; i++) {
		char body[16];
		snprintf(body, sizeof(body), "GET /%d\n", 1 + i % 4);
		if (!answers(fd, 200, body))
			return false;
	}
	return true;
}

/* Everything that a client of this kind has to get, and how its connection ends. */
static bool is_served(int fd, enum kind kind)
{
	switch (kind) {
	case ONE:
		return answers(fd, 200, "GET /one\n");
	case THREE:
		return answers(fd, 200, "GET /a\n") && answers_bytes(fd, 30000) &&
		       answers(fd, 200, "GET /c\n");
	case CLOSES:
		return answers(fd, 200, "GET /a\n") && answers(fd, 200, "GET /b\n") &&
		       client_at_end(fd);
	case SPOILT:
		return answers(fd, 200, "GET /a\n") && answers(fd, 400, NULL) && client_at_end(fd);
	case SHORT_WRITE:
		return answers(fd, 200, "GET /a\n") && answers_bytes(fd, atol(BIG)) &&
		       answers(fd, 200, "GET /c\n");
	case HALF_CLOSED:
		return answers(fd, 200, "GET /a\n") && answers(fd, 200, "GET /b\n") &&
		       client_at_end(fd);
	case MANY:
		return answers_many(fd);
	default:
		return answers(fd, 200, "POST /p\nbody") && answers(fd, 200, "GET /b\n");
	}
}

static int client_open_as(enum kind kind)
{
	const int small = 65536;
	int fd = client_open(server.port);

	if (kind == SHORT_WRITE)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	return fd;
}

static void speak(int fd, enum kind kind)
{
	CU_ASSERT(client_say(fd, said[kind]));
	if (kind == HALF_CLOSED)
		shutdown(fd, SHUT_WR);
}

/* All clients send while one request holds the thread. Some leave while a second request, which was
 * read together with theirs, holds it. */
static void round_of(int round)
{
	int fd[CLIENTS], first = client_open(server.port), second = client_open(server.port);
	char text[64], gate[16];

	for (int i = 0; i < CLIENTS; i++)
		fd[i] = client_open_as((enum kind)((i + round) % KINDS));
	AWAIT_METRIC(&server, "http_connections", ==, CLIENTS + 2);
	snprintf(text, sizeof(text), GET("/wait/%da"), round);
	CU_ASSERT(client_say(first, text));
	gate_await(1);
	for (int i = 0; i < CLIENTS; i++) {
		if (i == CLIENTS / 6) {
			snprintf(text, sizeof(text), GET("/wait/%db"), round);
			CU_ASSERT(client_say(second, text));
		}
		speak(fd[i], (enum kind)((i + round) % KINDS));
	}
	snprintf(gate, sizeof(gate), "%da", round);
	gate_open(gate);
	CU_ASSERT(answers(first, 200, NULL));
	gate_await(1);
	for (int i = 0; i < CLIENTS; i++)
		if ((i + round) % KINDS == RESET)
			close_by_reset(fd[i]);
	snprintf(gate, sizeof(gate), "%db", round);
	gate_open(gate);
	CU_ASSERT(answers(second, 200, NULL));
	for (int i = 0; i < CLIENTS; i++) {
		enum kind kind = (enum kind)((i + round) % KINDS);
		if (kind == RESET)
			continue;
		bool served = is_served(fd[i], kind);
		if (!served)
			fprintf(stderr, "round %d: client %d of kind %d\n", round, i, kind);
		CU_ASSERT(served);
		close(fd[i]);
	}
	close(first);
	close(second);
	AWAIT_METRIC(&server, "http_connections", ==, 0);
	AWAIT_METRIC(&server, "http_memory_bytes", ==, 0);
}

static void test_turns(void)
{
	server = server_new("t.reply");
	fixture_set(server.app, "threads", "inline");
	fixture_set(server.web, "with.max_per_address", "0");
	/* Clients are read one after another; those at the end of the line are not slow readers. */
	fixture_set(server.web, "with.write_timeout", "1h");
	fixture_set(server.web, "with.min_send_rate", "0");
	server_start(&server);
	for (int round = 0; round < ROUNDS; round++)
		round_of(round);
	server_stop(&server);
}

CUNIT_MAIN("http_turn", {"all at once", test_turns})
