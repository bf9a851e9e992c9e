/* SPDX-License-Identifier: MIT */
/* Connections handed over at a reload that cannot be registered because epoll takes no further
 * descriptor. The server retries for a while, by its own clock; then they are closed in good order
 * and counted. */
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "fixture/clock/held_clock.h"
#include "net/net.h"
#include "fixture/http/server.h"

static atomic_int n_failed;
static atomic_bool is_full; /* as if max_user_watches (epoll(7)) were reached */

int epoll_ctl(int fd, int op, int of, struct epoll_event *event)
{
	if (op != EPOLL_CTL_ADD || !atomic_load(&is_full))
		return (int)syscall(SYS_epoll_ctl, fd, op, of, event);
	atomic_fetch_add(&n_failed, 1);
	errno = ENOSPC;
	return -1;
}

static struct server server_inline(void)
{
	struct server s = server_new("t.reply");

	fixture_set(s.app, "threads", "inline");
	return s;
}

/* `next` replaces `s` on its address. */
static void follow(struct server *s, struct server *next)
{
	struct weir_errs errs = {0};

	CU_ASSERT_EQUAL_FATAL(weir_graph_build(next->spec, &next->graph, &errs), 0);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next->graph, s->graph, &errs), 0);
	next->port = weir_http_port(weir_graph_stage(next->graph, "web"), 0);
}

/* Drain `s`. Its successor cannot register the connections that it gets. */
static void end_of(struct server *s)
{
	struct weir_drain_report report = {0};

	atomic_store(&is_full, true);
	weir_graph_drain(s->graph, 10000000000LL, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(s->graph);
}

struct clients {
	int idle, half;
};

/* Return when `next` has tried in vain to register both connections. It may have taken them from
 * the old server one after the other, so this waits for one attempt more after both were taken. */
static void await_kept(struct server *next)
{
	const struct net_server *srv = weir_state(weir_graph_stage(next->graph, "web"));

	FIXTURE_AWAIT(atomic_load(&n_failed) > 0);
	for (int i = 0; i < srv->n_io; i++)
		FIXTURE_AWAIT(!atomic_load(&srv->io[i]->handover.handed));
	int before = atomic_load(&n_failed);
	clock_move(100);
	FIXTURE_AWAIT(atomic_load(&n_failed) > before);
}

static struct clients come_over(struct server *next)
{
	struct server s = server_inline();
	struct answer a = {0};
	struct clients k;

	clock_hold();
	server_start(&s);
	k.idle = client_open(s.port);
	CU_ASSERT(client_say(k.idle, GET("/")) && answer_read(k.idle, &a));
	k.half = client_open(s.port);
	CU_ASSERT(client_say(k.half, "GET /half HTTP/1.1\r\nHo"));
	AWAIT_METRIC(&s, "http_received_bytes_total", ==, (int64_t)strlen(GET("/")) + 22);
	*next = server_inline();
	follow(&s, next);
	atomic_store(&n_failed, 0);
	end_of(&s);
	await_kept(next);
	answer_free(&a);
	return k;
}

static void end(struct server *s, struct clients *k)
{
	atomic_store(&is_full, false);
	close(k->idle);
	close(k->half);
	server_stop(s);
	clock_release();
}

static void test_for_good(void)
{
	struct server next;
	struct clients k = come_over(&next);
	struct answer a = {0};

	clock_move(9000); /* connections are kept for 10 s */
	CU_ASSERT_EQUAL(server_metric(&next, "http_refused_handed_total"), 0);
	clock_move(1100);
	CU_ASSERT(answer_read(k.half, &a)); /* this client had begun a request */
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT(a.close);
	CU_ASSERT(client_at_end(k.half));
	CU_ASSERT(client_at_end(k.idle));
	AWAIT_METRIC(&next, "http_refused_handed_total", ==, 2);
	CU_ASSERT_EQUAL(server_metric(&next, "http_connections"), 0);
	end(&next, &k);
	answer_free(&a);
}

static void test_for_a_while(void)
{
	struct server next;
	struct clients k = come_over(&next);
	struct answer a = {0};

	clock_move(9000);
	atomic_store(&is_full, false);
	clock_move(100);
	CU_ASSERT(client_say(k.idle, GET("/new")) && answer_read(k.idle, &a));
	CU_ASSERT(answer_is(&a, 200, "GET /new\n"));
	CU_ASSERT(client_say(k.half, "st: t\r\n\r\n") && answer_read(k.half, &a));
	CU_ASSERT(answer_is(&a, 200, "GET /half\n"));
	CU_ASSERT_EQUAL(server_metric(&next, "http_refused_handed_total"), 0);
	end(&next, &k);
	answer_free(&a);
}

/* The server that cannot register the connections ends: a client that has begun a request gets an
 * answer. */
static void test_until_the_end(void)
{
	struct weir_drain_report report = {0};
	struct server next;
	struct clients k = come_over(&next);
	struct answer a = {0};

	weir_graph_drain(next.graph, 1, &report);
	CU_ASSERT(answer_read(k.half, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT(a.close);
	CU_ASSERT(client_at_end(k.half));
	CU_ASSERT(client_at_end(k.idle));
	AWAIT_METRIC(&next, "http_refused_late_total", ==, 1);
	weir_graph_free(next.graph);
	atomic_store(&is_full, false);
	close(k.idle);
	close(k.half);
	clock_release();
	answer_free(&a);
}

CUNIT_MAIN("http kept", {"until the end", test_until_the_end}, {"for good", test_for_good},
    {"for a while", test_for_a_while})
