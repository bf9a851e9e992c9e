/* SPDX-License-Identifier: MIT */
/*
 * Bodies in parts under torture. Clients upload, download and mirror at once through a server with
 * two I/O threads and three handler threads. They pipeline, stall, send invalid chunks and
 * disconnect in the middle, with the smallest possible buffers.
 *
 *     torture_parts [CLIENTS [SECONDS [SEED]]]
 *
 * Checks that every byte returned is right, that each answer to a well-behaved client is complete,
 * and that at the end the law holds and no event's state, buffer or connection is left. The same is
 * checked for servers that are stopped during the traffic. Prints what was done; a hang is ended by
 * ctest.
 */
#include <netinet/tcp.h>
#include <time.h>

#include "fixture/http/parts.h"

struct client {
	int port;
	unsigned seed;
	int64_t until_ns;
	bool careless; /* the server may stop while it runs */
	uint64_t done[6], wrong;
	pthread_t thread;
};

enum act { UPLOAD, DOWNLOAD, MIRROR, LEAVE, BREAK, EARLY };
static const char *const act_names[] = {
    "uploads", "downloads", "mirrors", "departures", "broken bodies", "early answers"};

static int64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static unsigned roll(struct client *c, unsigned n)
{
	return (unsigned)rand_r(&c->seed) % n;
}

/* A random length of a body. */
static size_t length(struct client *c)
{
	return roll(c, 4) == 0 ? roll(c, 300000) : roll(c, 40000);
}

static bool post(struct client *c, int fd, const char *target, size_t n, bool chunked)
{
	(void)c;
	if (chunked)
		return client_sayf(fd,
		    "POST %s HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n", target);
	return client_sayf(
	    fd, "POST %s HTTP/1.1\r\nHost: t\r\nContent-Length: %zu\r\n\r\n", target, n);
}

static bool upload(struct client *c, int fd)
{
	struct answer a = {0};
	size_t n = length(c), part = roll(c, (unsigned)n + 1);
	bool chunked = roll(c, 2);
	bool ok = post(c, fd, "/sum", n, chunked) && client_pattern(fd, 0, part, chunked);

	if (roll(c, 3) == 0)
		sched_yield();
	ok = ok && client_pattern(fd, part, n - part, chunked) &&
	     (!chunked || client_say(fd, "0\r\n\r\n")) && answer_read(fd, &a) &&
	     answer_is(&a, 200, pattern_sum(n));
	answer_free(&a);
	return ok;
}

static bool read_parts(int fd, int64_t n)
{
	struct answer a = {0};
	char trailers[200];
	bool ok = answer_read_as(fd, &a, true) && a.status == 200 &&
		  chunked_read(fd, trailers, sizeof(trailers)) == n;

	answer_free(&a);
	return ok;
}

static bool download(struct client *c, int fd)
{
	int64_t n[3];
	bool ok = true;
	int count = 1 + (int)roll(c, 3);

	for (int i = 0; i < count; i++) {
		n[i] = (int64_t)length(c);
		ok = ok && client_sayf(
			       fd, "GET /count/%lld HTTP/1.1\r\nHost: t\r\n\r\n", (long long)n[i]);
	}
	for (int i = 0; i < count; i++)
		ok = ok && read_parts(fd, n[i]);
	return ok;
}

struct sending {
	int fd;
	size_t n;
	bool chunked;
};

static void *send_main(void *arg)
{
	struct sending *s = arg;

	if (client_pattern(s->fd, 0, s->n, s->chunked) && s->chunked)
		client_say(s->fd, "0\r\n\r\n");
	return NULL;
}

static bool mirror(struct client *c, int fd)
{
	struct sending s = {.fd = fd, .n = length(c), .chunked = roll(c, 2)};
	pthread_t thread;
	bool ok = post(c, fd, "/mirror", s.n, s.chunked);

	pthread_create(&thread, NULL, send_main, &s);
	ok = ok && read_parts(fd, (int64_t)s.n);
	pthread_join(thread, NULL);
	return ok;
}

/* Disconnect in the middle; whatever was transferred must be right. */
static void leave(struct client *c, int fd)
{
	static const char *const targets[] = {"/sum", "/mirror", "/early/200"};
	char some[3000];
	size_t n = length(c);

	if (roll(c, 2)) {
		post(c, fd, targets[roll(c, 3)], n, false);
		client_pattern(fd, 0, roll(c, (unsigned)n + 1), false);
	} else {
		client_sayf(fd, "GET /count/%zu HTTP/1.1\r\nHost: t\r\n\r\n", n + 5000);
		if (recv(fd, some, roll(c, sizeof(some)), 0) < 0)
			return;
	}
	if (roll(c, 2))
		shutdown(fd, SHUT_WR);
}

/* An invalid chunk: 400, if no answer was begun. */
static bool break_body(struct client *c, int fd)
{
	struct answer a = {0};
	bool ok = post(c, fd, "/sum", 0, true) && client_pattern(fd, 0, length(c), true) &&
		  client_say(fd, "5;\r\n") && answer_read(fd, &a) && a.status == 400 && a.close;

	answer_free(&a);
	return ok;
}

static bool early(struct client *c, int fd)
{
	struct answer a = {0};
	size_t n = 1 + roll(c, 60000);
	bool ok = post(c, fd, "/early/404", n, false) && client_pattern(fd, 0, n, false) &&
		  answer_read(fd, &a) && a.status == 404 && !a.close;

	answer_free(&a);
	return ok;
}

/* Returns whether the connection can be used again. */
static bool act(struct client *c, int fd, enum act what)
{
	bool ok = true;

	if (what == UPLOAD)
		ok = upload(c, fd);
	else if (what == DOWNLOAD)
		ok = download(c, fd);
	else if (what == MIRROR)
		ok = mirror(c, fd);
	else if (what == LEAVE)
		leave(c, fd);
	else if (what == BREAK)
		ok = break_body(c, fd);
	else
		ok = early(c, fd);
	c->done[what]++;
	c->wrong += !ok && !c->careless;
	if (!ok && !c->careless)
		fprintf(stderr, "%s: failed\n", act_names[what]);
	return ok && what != LEAVE && what != BREAK;
}

static void *client_main(void *arg)
{
	struct client *c = arg;

	while (clock_ns() < c->until_ns) {
		int fd = client_open(c->port), one = 1;
		if (fd == -1) /* the server has stopped */
			break;
		/* the client's writes are small */
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		while (clock_ns() < c->until_ns && act(c, fd, (enum act)roll(c, 6)))
			continue;
		close(fd);
	}
	return NULL;
}

static int clients = 4, seconds = 2;
static unsigned first_seed;

static void test_clients(void)
{
	struct client *c = calloc((size_t)clients, sizeof(*c));
	struct weir_drain_report report = {0};
	uint64_t done[6] = {0}, wrong = 0;
	struct server s = parts_server_new();

	fixture_set(s.web, "with.threads", "2");
	fixture_set(s.web, "with.stream_buffer", "16KiB");
	server_start(&s);
	for (int i = 0; i < clients; i++) {
		c[i] = (struct client){.port = s.port,
		    .seed = first_seed + (unsigned)i,
		    .until_ns = clock_ns() + seconds * 1000000000LL};
		pthread_create(&c[i].thread, NULL, client_main, &c[i]);
	}
	for (int i = 0; i < clients; i++) {
		pthread_join(c[i].thread, NULL);
		wrong += c[i].wrong;
		for (int k = 0; k < 6; k++)
			done[k] += c[i].done[k];
	}
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	AWAIT_METRIC(&s, "http_stream_buffer_bytes", ==, 0);
	weir_graph_drain(s.graph, 10000000000LL, &report);
	weir_graph_free(s.graph);
	printf("seed %u:", first_seed);
	for (int k = 0; k < 6; k++)
		printf(" %llu %s,", (unsigned long long)done[k], act_names[k]);
	printf(" %llu wrong\n", (unsigned long long)wrong);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(report.law_error, 0);
	CU_ASSERT_EQUAL(atomic_load(&parts_states), 0);
	CU_ASSERT_EQUAL(atomic_load(&parts_misuses), 0);
	free(c);
}

/* The server is stopped during the traffic, at once or after a moment: whatever the state of a
 * body, its event ends once. */
static void round_of(unsigned *seed, uint64_t *closed)
{
	struct client *c = calloc((size_t)clients, sizeof(*c));
	struct weir_drain_report report = {0};
	struct server s = parts_server_new();

	fixture_set(s.web, "with.threads", "2");
	fixture_set(s.web, "with.stream_buffer", "16KiB");
	fixture_set(s.web, "with.linger", "0ms");
	server_start(&s);
	for (int i = 0; i < clients; i++) {
		c[i] = (struct client){
		    .port = s.port, .seed = (*seed)++, .until_ns = INT64_MAX, .careless = true};
		pthread_create(&c[i].thread, NULL, client_main, &c[i]);
	}
	AWAIT_METRIC(&s, "http_received_bytes_total", >, rand_r(seed) % 300000);
	weir_graph_drain(s.graph, rand_r(seed) % 2 ? 0 : 20000000, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(s.graph);
	CU_ASSERT_EQUAL(atomic_load(&parts_states), 0);
	for (int i = 0; i < clients; i++)
		pthread_join(c[i].thread, NULL);
	*closed += report.closed;
	free(c);
}

static void test_drained(void)
{
	int64_t until_ns = clock_ns() + seconds * 1000000000LL;
	unsigned seed = first_seed, rounds = 0;
	uint64_t closed = 0;

	while (clock_ns() < until_ns) {
		round_of(&seed, &closed);
		rounds++;
	}
	printf("%u rounds, %llu events ended by the drain\n", rounds, (unsigned long long)closed);
}

int main(int argc, char **argv)
{
	static const struct cunit_case cases[] = {
	    {"clients of all kinds", test_clients}, {"drained in the midst", test_drained}};

	clients = argc > 1 ? atoi(argv[1]) : clients;
	seconds = argc > 2 ? atoi(argv[2]) : seconds;
	first_seed = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 0) : (unsigned)time(NULL);
	return cunit_run("bodies in parts", cases, 2);
}
