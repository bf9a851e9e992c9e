/* SPDX-License-Identifier: MIT */
/* Eviction across I/O threads: which of several threads is asked; connections that were refused and
 * linger do not count as evictable; and the threads that are asked or answered are woken. */
#include "fixture/http/evict.h"

#define C "web/io2"

static void expect_refused(int fd)
{
	struct answer a = {0};

	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	answer_free(&a);
}

static void start_many(const char *threads, const char *min_body_rate)
{
	new_where();
	fixture_set(server.web, "with.threads", threads);
	fixture_set(server.web, "with.max_connections", "4");
	fixture_set(server.web, "with.min_body_rate", min_body_rate);
	fixture_set(server.web, "with.body_timeout", "1h");
	fixture_set(server.app, "threads", "inline");
	clock_hold();
	server_start(&server);
}

/* Like evict_fill(), but thread `who` has the idle connections. */
static struct clients fill_with(const char *who)
{
	struct clients k = {.newcomer = newcomer_of(A)};

	for (int i = 0; i < 2; i++) {
		k.busy[i] = open_at(A);
		CU_ASSERT(client_say(k.busy[i], POST_HALF));
		k.idle[i] = open_at(who);
	}
	return k;
}

/* New connections are refused for lack of slots, and do not go away. */
static void linger_at(int *told, int n)
{
	for (int i = 0; i < n; i++) {
		come(told[i]);
		expect_refused(told[i]);
	}
}

static void close_all(const int *fd, int n)
{
	for (int i = 0; i < n; i++)
		close(fd[i]);
}

/* ---- with connections that linger ---- */

/* Refused connections linger in the asking thread: no busy connection is evicted while another
 * thread has an idle one. */
static void test_refused_with_the_asker(void)
{
	struct clients k;
	int told[3];

	start_many("2", "1k");
	for (int i = 0; i < 3; i++)
		told[i] = newcomer_of(A);
	k = fill_with(B);
	linger_at(told, 3);
	clock_move(1500); /* by now the bodies are too slow */
	come(k.newcomer);
	CU_ASSERT(is_answered_by(k.newcomer, A));
	CU_ASSERT(client_at_end(k.idle[0]));
	AWAIT_METRIC(&server, "http_evicted_total", ==, 1);
	close_all(told, 3);
	evict_end(&k);
}

/* Refused connections linger in a third thread: that thread is not mistaken for the one to ask. */
static void test_refused_with_a_third(void)
{
	struct clients k;
	int told[3];

	start_many("3", "0");
	for (int i = 0; i < 3; i++)
		told[i] = newcomer_of(B);
	k = fill_with(C);
	linger_at(told, 3);
	clock_move(200);
	CU_ASSERT(is_answered_by(k.idle[0], C));
	CU_ASSERT(is_answered_by(k.idle[1], C));
	clock_move(1300);
	come(k.newcomer);
	CU_ASSERT(is_answered_by(k.newcomer, A));
	CU_ASSERT(client_at_end(k.idle[0]));
	AWAIT_METRIC(&server, "http_evicted_total", ==, 1);
	close_all(told, 3);
	evict_end(&k);
}

/* ---- wake-ups ---- */

/* Threads that nothing else wakes: the asked thread is woken, and so is the one that asked. */
static void test_woken(void)
{
	struct clients k = evict_start("4");

	clock_move(1500);
	clock_quiet(2);
	come(k.newcomer);
	CU_ASSERT(is_answered_by(k.newcomer, A));
	CU_ASSERT(client_at_end(k.idle[0]));
	clock_loud();
	CU_ASSERT(is_answered_by(k.newcomer, A));
	CU_ASSERT(is_answered_by(k.idle[1], B));
	evict_end(&k);
}

CUNIT_MAIN("http neighbours", {"refused ones with the asker", test_refused_with_the_asker},
    {"refused ones with a third thread", test_refused_with_a_third}, {"woken", test_woken})
