/* SPDX-License-Identifier: MIT */
/* Eviction for a new connection, wherever in the server an idle one is: after handshakes that are
 * in their stage, or in another I/O thread. */
#include <dirent.h>

#include "fixture/graph/drain.h"
#include "fixture/http/tls.h"
#include "fixture/http/evict.h"

#include "net/net.h"

static rlim_t old_limit;

/* More connections than one pass over a list examines (limit.c). */
enum { SHAKING = 70 };

/* ---- two I/O threads ---- */

static void expect_refused(int fd, const char *limit)
{
	struct answer a = {0};

	CU_ASSERT(answer_read(fd, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	const char *code = field_in(a.head, "X-Weir-Limit");
	CU_ASSERT(!limit || (code && strcmp(code, limit) == 0));
	answer_free(&a);
}

/* The new connection reaches A, and B has idle ones: the older one of them is evicted, and A serves
 * the new one. */
static void expect_room_behind(struct clients *k, int refused)
{
	come(k->newcomer);
	CU_ASSERT(is_answered_by(k->newcomer, A));
	CU_ASSERT(client_at_end(k->idle[0]));
	CU_ASSERT(is_answered_by(k->idle[1], B));
	AWAIT_METRIC(&server, "http_evicted_total", ==, 1);
	AWAIT_METRIC(&server, "http_refused_total", ==, refused);
}

static void expect_room(struct clients *k)
{
	expect_room_behind(k, 0);
}

static void test_connections_of_another_thread(void)
{
	struct clients k = evict_start("4");

	clock_move(1500);
	expect_room(&k);
	evict_end(&k);
}

/* Connections that were refused and linger in B have no slots: one connection is evicted for the
 * new one, not one for each of them. */
static void test_over_full(void)
{
	struct clients k;
	int told[3];

	evict_start_empty("4");
	for (int i = 0; i < 3; i++)
		told[i] = newcomer_of(B);
	k = evict_fill();
	for (int i = 0; i < 3; i++) {
		come(told[i]);
		expect_refused(told[i], "max_connections");
	}
	clock_move(1500);
	expect_room_behind(&k, 3);
	for (int i = 0; i < 3; i++)
		close(told[i]);
	evict_end(&k);
}

static void test_descriptors_of_another_thread(void)
{
	struct clients k = evict_start("1000");

	clock_move(1500);
	old_limit = descriptors_leave(0);
	expect_room(&k);
	descriptors_restore(old_limit);
	evict_end(&k);
}

/* No connection in any thread has been idle for long enough: refused at once, as with one
 * thread. */
static void test_nobody_waits(void)
{
	struct clients k = evict_start("4");
	struct answer a = {0};

	come(k.newcomer);
	CU_ASSERT(client_say(k.newcomer, GET("/")) && answer_read(k.newcomer, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 0);
	answer_free(&a);
	evict_end(&k);
}

/* ---- connections that are not accepted ---- */

static void turn(const char *knob, const char *value)
{
	char why[256];

	CU_ASSERT_EQUAL(weir_graph_set(server.graph, "web", knob, value, why, sizeof(why)), 0);
}

/* No other thread is asked on behalf of a connection that its address limit refuses. */
static void expect_nobody_asked(struct clients *k)
{
	turn("with.max_per_address", "1");
	clock_move(1500);
	come(k->newcomer);
	expect_refused(k->newcomer, NULL);
	AWAIT_METRIC(&server, "http_refused_address_total", ==, 1);
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 0);
	for (int i = 0; i < 2; i++)
		CU_ASSERT(is_answered_by(k->idle[i], B));
}

static void test_address_over_places(void)
{
	struct clients k = evict_start("4");

	expect_nobody_asked(&k);
	evict_end(&k);
}

static void test_address_over_descriptors(void)
{
	struct clients k = evict_start("1000");

	old_limit = descriptors_leave(0);
	expect_nobody_asked(&k);
	descriptors_restore(old_limit);
	evict_end(&k);
}

/* Four slots, and a new connection of A that waits for B, which is blocked. */
static struct clients start_with_hung(void)
{
	struct clients k = evict_start("4");

	clock_move(1500);
	CU_ASSERT(is_answered_by(k.idle[1], B)); /* B has noticed that idle[0] has waited longest */
	CU_ASSERT(client_say(k.idle[1], GET("/wait/hung")));
	gate_await(1);
	come(k.newcomer);
	FIXTURE_AWAIT(
	    atomic_load(&((struct net_server *)weir_state(weir_graph_stage(server.graph, "web")))
			     ->io[1]
			     ->evict.asked[0]) != 0);
	return k;
}

static void expect_hung_answered(struct clients *k)
{
	struct answer a = {0};

	gate_open("hung");
	CU_ASSERT(answer_read(k->idle[1], &a));
	CU_ASSERT_EQUAL(a.status, 200);
	answer_free(&a);
}

/* B answers too late: the new connection has been refused, and none is evicted for it any more. */
static void test_too_late(void)
{
	struct clients k = start_with_hung();

	clock_move(60);
	expect_refused(k.newcomer, "max_connections");
	expect_hung_answered(&k);
	CU_ASSERT(is_answered_by(k.idle[0], B));
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 0);
	evict_end(&k);
}

/* A drain begins while the new connection waits: the new connection is refused. */
static void test_drain_while_waiting(void)
{
	struct drain d;
	struct clients k = start_with_hung();

	drain_call(&d, server.graph, DRAIN_ALL_NS);
	clock_move(1); /* ends the linger time, which uses another clock */
	expect_refused(k.newcomer, "max_connections");
	close(k.newcomer);
	expect_hung_answered(&k);
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(client_say(k.busy[i], "cd"));
		close(k.busy[i]);
		close(k.idle[i]);
	}
	drain_end(&d);
	clock_release();
}

/* ---- the end ---- */

static bool is_running(const char *thread)
{
	DIR *d = opendir("/proc/self/task");
	bool found = false;
	struct dirent *e;

	while ((e = readdir(d)) != NULL) {
		char path[300], name[32] = "";
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		FILE *f = fopen(path, "r");
		if (f && fgets(name, sizeof(name), f))
			found |= strncmp(name, thread, strlen(thread)) == 0;
		if (f)
			fclose(f);
	}
	closedir(d);
	return found;
}

/* Is thread `id` of this process asleep? */
static bool is_asleep(pid_t id)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)id);
	f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state == 'S';
}

static _Atomic pid_t freeing; /* the thread that frees the graph */

static void *free_graph(void *arg)
{
	(void)arg;
	atomic_store(&freeing, gettid());
	weir_graph_free(server.graph);
	return NULL;
}

/* I/O threads end one by one: A has ended, and B continues. When B changes state shared by all
 * threads (here it tells the others that memory is no longer short), it can still reach those that
 * ended before. */
static void test_end_one_by_one(void)
{
	static char body[900000];
	struct weir_drain_report report = {0};
	pthread_t thread;
	int large, waits;

	new_where();
	fixture_set(server.web, "with.memory", "1MiB");
	fixture_set(server.app, "threads", "inline");
	server_start(&server);
	large = open_at(B);
	waits = open_at(B);
	CU_ASSERT(
	    client_say(large, "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 950000\r\n\r\n"));
	CU_ASSERT(client_send(large, body, sizeof(body)));
	AWAIT_METRIC(&server, "http_memory_step", >=, 1);
	CU_ASSERT(client_say(waits, GET("/wait/here")));
	gate_await(1);
	weir_graph_drain(server.graph, 100000000LL, &report);
	pthread_create(&thread, NULL, free_graph, NULL);
	FIXTURE_AWAIT(!is_running(A));
	/* The thread that frees the graph has freed everything that it need not wait for. */
	FIXTURE_AWAIT(is_asleep(atomic_load(&freeing)));
	gate_open("here");
	pthread_join(thread, NULL);
	close(large);
	close(waits);
}

/* ---- connections after their last answer ---- */

/* Refused clients that do not go away are evicted like idle ones. */
static void test_lingering(void)
{
	struct answer a = {0};
	int fd[3];

	server = server_new("t.reply");
	fixture_set(server.web, "with.max_connections", "2");
	fixture_set(server.app, "threads", "inline");
	clock_hold();
	server_start(&server);
	for (int i = 0; i < 2; i++) {
		fd[i] = client_open(server.port);
		CU_ASSERT(client_say(fd[i], "GET / HTTP/3.0\r\n\r\n") && answer_read(fd[i], &a));
		CU_ASSERT_EQUAL(a.status, 505);
	}
	AWAIT_METRIC(&server, "http_connections", ==, 2);
	clock_move(1500); /* refused clients may stay for 2 s */
	fd[2] = client_open(server.port);
	CU_ASSERT(client_say(fd[2], GET("/")) && answer_read(fd[2], &a));
	CU_ASSERT_EQUAL(a.status, 200);
	AWAIT_METRIC(&server, "http_evicted_total", ==, 1);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	answer_free(&a);
	server_stop(&server);
	clock_release();
}

/* ---- handshakes ---- */

/* An idle connection is found after any number of handshakes that are in their stage, whose
 * descriptors could not be freed at once. */
static void test_behind_handshakes(void)
{
	struct tls_wish wish = {0};
	struct tls_client k[SHAKING];
	int idle, newcomer;

	tls_begin();
	server = tls_server_new("t.reply", "one");
	fixture_set(server.app, "threads", "inline");
	clock_hold();
	server_start(&server);
	server_steer(&server, "shake", WEIR_STEER_PAUSE);
	for (int i = 0; i < SHAKING; i++) {
		int fd = socket_at(0);
		come(fd);
		k[i] = tls_client_hello(fd, &wish);
	}
	FIXTURE_AWAIT(server_offered_to(&server, "shake") == SHAKING);
	idle = socket_at(0);
	come(idle);
	AWAIT_METRIC(&server, "http_connections", ==, SHAKING + 1);
	newcomer = socket_at(0);
	old_limit = descriptors_leave(0);
	clock_move(1500);
	come(newcomer);
	CU_ASSERT(client_at_end(idle));
	AWAIT_METRIC(&server, "http_accepted_total", ==, SHAKING + 2);
	AWAIT_METRIC(&server, "http_evicted_total", ==, 1);
	CU_ASSERT_EQUAL(server_metric(&server, "http_refused_total"), 0);
	descriptors_restore(old_limit);
	server_steer(&server, "shake", WEIR_STEER_RUN);
	for (int i = 0; i < SHAKING; i++) {
		CU_ASSERT(tls_shake_hands(&k[i]));
		CU_ASSERT(tls_ask(&k[i], GET("/"), "GET /\n"));
		SSL_free(k[i].ssl);
		close(k[i].fd);
	}
	close(idle);
	close(newcomer);
	server_stop(&server);
	clock_release();
}

/* Of two idle connections, the one that was accepted first but finished its handshake last is the
 * younger one. */
static void test_eldest_behind_the_handshake(void)
{
	struct tls_wish wish = {0};
	struct tls_client last, first;
	int fd[2] = {socket_at(0), socket_at(0)}, newcomer = socket_at(0);

	server = tls_server_new("t.reply", "one");
	fixture_set(server.web, "with.max_connections", "2");
	fixture_set(server.app, "threads", "inline");
	clock_hold();
	server_start(&server);
	come(fd[0]);
	last = tls_client_hello(fd[0], &wish);
	FIXTURE_AWAIT(server_offered_to(&server, "shake") == 1);
	clock_move(500);
	come(fd[1]);
	first = tls_client_hello(fd[1], &wish);
	CU_ASSERT_EQUAL(SSL_do_handshake(first.ssl), 1);
	AWAIT_METRIC(&server, "http_tls_connections", ==, 1);
	clock_move(900);
	CU_ASSERT_EQUAL(SSL_do_handshake(last.ssl), 1);
	AWAIT_METRIC(&server, "http_tls_connections", ==, 2);
	clock_move(1200);
	come(newcomer);
	AWAIT_METRIC(&server, "http_evicted_total", ==, 1);
	CU_ASSERT(tls_ask(&last, GET("/"), "GET /\n"));
	SSL_free(first.ssl);
	SSL_free(last.ssl);
	for (int i = 0; i < 2; i++)
		close(fd[i]);
	close(newcomer);
	server_stop(&server);
	clock_release();
}

/* A connection with a long handshake counts as idle only from the end of the handshake on. */
static void test_idle_since_the_handshake(void)
{
	struct tls_wish wish = {0};
	struct tls_client k;
	int fd = socket_at(0), early = socket_at(0), newcomer = socket_at(0);
	char byte;

	/* with the files of the previous test */
	server = tls_server_new("t.reply", "one");
	fixture_set(server.web, "with.max_connections", "1");
	fixture_set(server.app, "threads", "inline");
	clock_hold();
	server_start(&server);
	server_steer(&server, "shake", WEIR_STEER_PAUSE);
	come(fd);
	k = tls_client_hello(fd, &wish);
	FIXTURE_AWAIT(server_offered_to(&server, "shake") == 1);
	clock_move(5000);
	server_steer(&server, "shake", WEIR_STEER_RUN);
	CU_ASSERT_EQUAL(SSL_do_handshake(k.ssl), 1);
	AWAIT_METRIC(&server, "http_tls_connections", ==, 1);
	clock_move(500);
	come(early);
	AWAIT_METRIC(&server, "http_refused_total", ==, 1);
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 0);
	clock_move(600);
	come(newcomer);
	AWAIT_METRIC(&server, "http_evicted_total", ==, 1);
	CU_ASSERT(recv(fd, &byte, 1, 0) >= 0);
	SSL_free(k.ssl);
	close(fd);
	close(early);
	close(newcomer);
	server_stop(&server);
	clock_release();
	tls_end();
}

CUNIT_MAIN("http room", {"connections of another thread", test_connections_of_another_thread},
    {"over full", test_over_full},
    {"descriptors of another thread", test_descriptors_of_another_thread},
    {"nobody waits", test_nobody_waits}, {"address, places", test_address_over_places},
    {"address, descriptors", test_address_over_descriptors}, {"too late", test_too_late},
    {"drain while waiting", test_drain_while_waiting}, {"end one by one", test_end_one_by_one},
    {"lingering", test_lingering}, {"behind handshakes", test_behind_handshakes},
    {"eldest behind the handshake", test_eldest_behind_the_handshake},
    {"idle since the handshake", test_idle_since_the_handshake})
