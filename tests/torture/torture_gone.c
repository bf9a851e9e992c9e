/* SPDX-License-Identifier: MIT */
/*
 * torture_gone [requests=6000] [clients=6] [seed=1]
 *
 * Clients that go away while their requests have children, wait with tickets and are continued. They send
 * some requests, wait for a moment or for some bytes of an answer, and leave: by a reset, or by shutting
 * their side down first. The stages (gone_stages.c) run in pools, inline, in a core group, partitioned,
 * exclusive, and in a loop; a server with each placement gets its share of the requests.
 *
 * When the clients have left, everything comes back, though waits without a deadline are never resumed:
 * no stage has an event, no part is left (and no memory: run it with ASan, too), the counters of each
 * stage balance, spawned = joined + orphaned + cancelled, and so does the law of the graph.
 */
#include <netinet/tcp.h>

#include "fixture/graph/probes.h"

#include "torture/gone_stages.h"

static int requests = 6000, clients = 6;
static unsigned first_seed = 1;

struct client {
	int port;
	unsigned seed;
	atomic_llong *left; /* requests to be sent, of all clients */
	pthread_t thread;
};

static unsigned roll(struct client *c, unsigned n)
{
	return (unsigned)rand_r(&c->seed) % n;
}

/* Leave without TIME_WAIT, which would use up the ports. */
static void leave(int fd)
{
	struct linger none = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}

static void visit(struct client *c)
{
	int fd = client_open(c->port), n = 1 + (int)roll(c, 4);
	char text[256] = "", some[64];

	if (fd == -1)
		return;
	for (int i = 0; i < n; i++)
		strcat(text, GET("/a"));
	atomic_fetch_sub(c->left, n);
	if (client_say(fd, text)) {
		unsigned how = roll(c, 4);
		for (unsigned i = roll(c, 40); how > 0 && i > 0; i--)
			sched_yield();
		if (how == 1)
			(void)!recv(fd, some, sizeof(some), MSG_DONTWAIT);
		if (how == 2) {
			shutdown(fd, SHUT_WR);
			for (unsigned i = roll(c, 200); i > 0; i--)
				sched_yield();
		}
	}
	leave(fd);
}

static void *client_main(void *arg)
{
	struct client *c = arg;

	while (atomic_load(c->left) > 0)
		visit(c);
	return NULL;
}

static void let_clients_go(int port, long long n)
{
	struct client *c = calloc((size_t)clients, sizeof(*c));
	atomic_llong left = n;

	for (int i = 0; i < clients; i++) {
		c[i] =
		    (struct client){.port = port, .seed = first_seed + (unsigned)i, .left = &left};
		pthread_create(&c[i].thread, NULL, client_main, &c[i]);
	}
	for (int i = 0; i < clients; i++)
		pthread_join(c[i].thread, NULL);
	free(c);
}

static bool is_empty(const struct server *s)
{
	struct weir_graph_view *v = NULL;
	int64_t n = 0;

	if (weir_graph_view(s->graph, &v) != 0)
		return false;
	for (int i = 0; i < v->n_stages; i++)
		n += v->stages[i].in_flight;
	weir_graph_view_free(v);
	return n == 0;
}

static void check_books(const struct server *s, const char *stage, uint64_t *cancelled)
{
	/* a view may be taken while the counters of a batch that has ended are updated */
	FIXTURE_AWAIT(stage_view(s->graph, stage).law_residual == 0);
	struct weir_stage_view v = stage_view(s->graph, stage);

	CU_ASSERT_EQUAL(v.spawned, v.joined + v.orphaned + v.cancelled);
	CU_ASSERT_EQUAL(v.awaiting, 0);
	CU_ASSERT_EQUAL(v.held, 0);
	*cancelled += v.cancelled;
}

/* Stages 1, 2 and 3 are those of requests, parts and leaves. */
static void with(const char *placement, const char *part, void (*place)(struct server *s))
{
	struct server s = server_new("t.gone");
	struct weir_drain_report report = {0};
	uint64_t cancelled = 0;

	gone_reset();
	fixture_stage(s.spec, "part", part, NULL);
	fixture_stage(s.spec, "leaf", "t.leaf", NULL);
	s.web = &s.spec->stages[0]; /* moved by fixture_stage */
	weir_spec_link(&s.spec->stages[1], "part", "part", false);
	weir_spec_link(&s.spec->stages[2], "leaf", "leaf", false);
	fixture_set(s.web, "with.threads", "2");
	for (int i = 1; i < 4; i++)
		fixture_set(&s.spec->stages[i], "admission.policy", "none");
	for (int i = 1; i < 3; i++)
		fixture_set(&s.spec->stages[i], "width.policy", "static");
	if (place)
		place(&s);
	server_start(&s);
	let_clients_go(s.port, requests / 6);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	FIXTURE_AWAIT(is_empty(&s));
	check_books(&s, "app", &cancelled);
	check_books(&s, "part", &cancelled);
	CU_ASSERT_EQUAL(atomic_load(&gone_made), atomic_load(&gone_ended));
	weir_graph_drain(s.graph, 10000000000LL, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	CU_ASSERT_EQUAL(report.closed, 0);
	weir_graph_free(s.graph);
	printf("%s: %llu requests in stages, %llu parts, %llu cancelled\n", placement,
	    (unsigned long long)atomic_load(&gone_requests),
	    (unsigned long long)atomic_load(&gone_made), (unsigned long long)cancelled);
}

static void test_pools(void)
{
	with("pools", "t.part", NULL);
}

static void place_inline(struct server *s)
{
	for (int i = 1; i < 4; i++)
		s->spec->stages[i].inlined = true;
}

static void test_inline(void)
{
	with("inline", "t.part", place_inline);
}

static void place_core(struct server *s)
{
	struct weir_group_spec *g = weir_spec_add_group(s->spec, "core");

	weir_spec_text(&g->schedule, "wavefront");
	weir_spec_text(&g->cores, "2");
	for (int i = 1; i < 4; i++)
		weir_spec_text(&s->spec->stages[i].group, "core");
}

static void test_core(void)
{
	with("core group", "t.part", place_core);
}

static void place_partitioned(struct server *s)
{
	for (int i = 1; i < 4; i++) {
		s->spec->stages[i].mode = WEIR_MODE_PARTITIONED;
		weir_spec_text(&s->spec->stages[i].key, "event");
		fixture_set(&s->spec->stages[i], "threads.max", "3");
	}
}

static void test_partitioned(void)
{
	with("partitioned", "t.part", place_partitioned);
}

static void place_exclusive(struct server *s)
{
	for (int i = 1; i < 4; i++)
		s->spec->stages[i].mode = WEIR_MODE_EXCLUSIVE;
}

static void test_exclusive(void)
{
	with("exclusive", "t.part", place_exclusive);
}

static void test_loop(void)
{
	with("loop", "t.part.loop", NULL);
}

int main(int argc, char **argv)
{
	static const struct cunit_case cases[] = {{"pools", test_pools}, {"inline", test_inline},
	    {"core group", test_core}, {"partitioned", test_partitioned},
	    {"exclusive", test_exclusive}, {"loop", test_loop}};

	requests = argc > 1 ? atoi(argv[1]) : requests;
	clients = argc > 2 ? atoi(argv[2]) : clients;
	first_seed = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 0) : first_seed;
	gone_register();
	return cunit_run("clients that go away", cases, 6);
}
