/* SPDX-License-Identifier: MIT */
/*
 * Clients that do everything at once, from a seed: pipelines of all kinds of requests cut anywhere,
 * read late or not at all, half-closed, reset in the middle, followed by garbage. A client that
 * reads gets the right answers in order. Afterwards no connection, request or body memory is left,
 * and the balance check holds. The first argument is a seed, the second the number of clients per
 * thread.
 */
#include "fixture/http/server.h"

enum { THREADS = 6, REQUESTS_MAX = 30 };

static unsigned first_seed = 1;
static int clients_each = 60;

struct player {
	pthread_t thread;
	unsigned seed;
	int port, wrong, answers;
};

static int roll(struct player *p, int sides)
{
	p->seed = p->seed * 1664525u + 1013904223u;
	return (int)((p->seed >> 16) % (unsigned)sides);
}

/* A pipeline: its bytes, and the expected answers. */
struct script {
	char text[40000], expected[REQUESTS_MAX][2100];
	size_t n;
	int n_requests;
};

static void add_get(struct script *s, int i)
{
	s->n += (size_t)sprintf(s->text + s->n,
	    "GET /%d HTTP/1.1\r\nHost: t\r\nX-Filler: %0*d\r\n\r\n", i, 1 + i % 60, i);
	sprintf(s->expected[i], "GET /%d\n", i);
}

static void add_post(struct script *s, int i, int length)
{
	s->n += (size_t)sprintf(s->text + s->n,
	    "POST /%d HTTP/1.1\r\nHost: t\r\nContent-Length: %d\r\n\r\n", i, length);
	int head = sprintf(s->expected[i], "POST /%d\n", i);
	memset(s->text + s->n, 'b', (size_t)length);
	memset(s->expected[i] + head, 'b', (size_t)length);
	s->expected[i][head + length] = '\0';
	s->n += (size_t)length;
}

static void add_chunked(struct script *s, int i, int chunks)
{
	s->n += (size_t)sprintf(
	    s->text + s->n, "PUT /%d HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n", i);
	int at = sprintf(s->expected[i], "PUT /%d\n", i);
	for (int c = 0; c < chunks; c++) {
		s->n += (size_t)sprintf(s->text + s->n, "3;x=%d\r\nabc\r\n", c);
		at += sprintf(s->expected[i] + at, "abc");
	}
	s->n += (size_t)sprintf(s->text + s->n, "0\r\nT: v\r\n\r\n");
}

static void write_script(struct player *p, struct script *s)
{
	s->n = 0;
	s->n_requests = 1 + roll(p, REQUESTS_MAX);
	for (int i = 0; i < s->n_requests; i++)
		switch (roll(p, 4)) {
		case 0:
			add_post(s, i, roll(p, 1000));
			break;
		case 1:
			add_chunked(s, i, roll(p, 40));
			break;
		default:
			add_get(s, i);
		}
}

/* Send `n` bytes, cut anywhere. Returns false if the server has closed the connection. */
static bool send_cut(struct player *p, int fd, const struct script *s, size_t n)
{
	for (size_t at = 0; at < n;) {
		size_t len = roll(p, 3) == 0 ? 1 + (size_t)roll(p, 20) : 1 + (size_t)roll(p, 4000);
		len = len < n - at ? len : n - at;
		if (!client_send(fd, s->text + at, len))
			return false;
		at += len;
		if (roll(p, 4) == 0)
			sched_yield();
	}
	return true;
}

static void read_answers(struct player *p, int fd, const struct script *s, int n)
{
	struct answer a = {0};

	for (int i = 0; i < n; i++) {
		if (!answer_read(fd, &a) || !answer_is(&a, 200, s->expected[i])) {
			p->wrong++;
			break;
		}
		p->answers++;
	}
	answer_free(&a);
}

static void reset(int fd)
{
	struct linger now = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
}

static void play_one(struct player *p, struct script *s)
{
	int fd = client_open(p->port);
	struct answer a = {0};

	write_script(p, s);
	switch (roll(p, 6)) {
	case 0: /* leave in the middle of sending */
		send_cut(p, fd, s, 1 + (size_t)roll(p, (int)s->n));
		break;
	case 1: /* the same, with a reset */
		send_cut(p, fd, s, 1 + (size_t)roll(p, (int)s->n));
		reset(fd);
		break;
	case 2: /* read some, then leave */
		if (send_cut(p, fd, s, s->n))
			read_answers(p, fd, s, roll(p, s->n_requests));
		if (roll(p, 2))
			reset(fd);
		break;
	case 3: /* nothing more to send, but still reading */
		send_cut(p, fd, s, s->n);
		shutdown(fd, SHUT_WR);
		read_answers(p, fd, s, s->n_requests);
		p->wrong += !client_at_end(fd);
		break;
	case 4: /* followed by garbage */
		send_cut(p, fd, s, s->n);
		client_say(fd, "\x01\x02\r\n\r\n");
		read_answers(p, fd, s, s->n_requests);
		p->wrong += !answer_read(fd, &a) || a.status != 400 || !a.close;
		answer_free(&a);
		break;
	default: /* two complete rounds */
		send_cut(p, fd, s, s->n);
		read_answers(p, fd, s, s->n_requests);
		write_script(p, s);
		send_cut(p, fd, s, s->n);
		read_answers(p, fd, s, s->n_requests);
	}
	close(fd);
}

static void *play(void *arg)
{
	struct player *p = arg;
	struct script *s = malloc(sizeof(*s));

	for (int i = 0; i < clients_each; i++)
		play_one(p, s);
	free(s);
	return NULL;
}

static void run_chaos(bool inlined)
{
	struct server s = server_new("t.reply");
	struct player p[THREADS];
	int answers = 0;

	s.app->inlined = inlined;
	fixture_set(s.app, "threads.max", "3");
	fixture_set(s.app, "threads.min", "3");
	fixture_set(s.web, "with.threads", "2");
	fixture_set(s.web, "with.pipeline", "8");
	server_start(&s);
	for (int i = 0; i < THREADS; i++) {
		p[i] = (struct player){.seed = first_seed + (unsigned)i, .port = s.port};
		pthread_create(&p[i].thread, NULL, play, &p[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(p[i].thread, NULL);
		CU_ASSERT_EQUAL(p[i].wrong, 0);
		answers += p[i].answers;
	}
	CU_ASSERT(answers > 0);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	AWAIT_METRIC(&s, "http_memory_bytes", ==, 0); /* all memory is returned */
	server_stop(&s);
}

static void test_pool(void)
{
	run_chaos(false);
}

static void test_inline(void)
{
	run_chaos(true);
}

int main(int argc, char **argv)
{
	static const struct cunit_case cases[] = {{"pool", test_pool}, {"inline", test_inline}};

	if (argc > 1)
		first_seed = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		clients_each = atoi(argv[2]);
	return cunit_run("http chaos", cases, sizeof(cases) / sizeof(cases[0]));
}
