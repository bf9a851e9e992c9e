/* SPDX-License-Identifier: MIT */
/*
 * Room for a newcomer, wherever in the server somebody waits: behind handshakes that their stage has, or with another I/O thread.
 *
 * The kernel chooses the I/O thread by a hash of addresses and ports, so a client that comes again from the same port comes to
 * the same one: what it answers is the name of its thread. The server's clock stands still but where it is moved.
 */
#include <dirent.h>
#include <sys/resource.h>

#include "fixture/held_clock.h"
#include "fixture/tls_fixture.h"
#include "http_fixture.h"

/* More than one look at a list goes through (limit.c). */
enum { SHAKING = 70 };

#define POST_HALF "POST /p HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nab"

static struct server server;
static rlim_t old_limit;
static int n_open; /* by open_at */

/* ---- who answers ---- */

static void where_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	char name[16];

	(void)st;
	pthread_getname_np(pthread_self(), name, sizeof(name));
	for (int i = 0; i < n; i++) {
		if (target_starts(weir_http_request(ev[i]), "/wait/"))
			gate_pass(weir_http_request(ev[i])->target.p + 6, 4);
		weir_http_respond_copy(weir_http_request(ev[i]), 200, "text/plain",
		    (struct weir_slice){name, strlen(name)});
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops where_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.where",
    .summary = "answers with the name of its thread",
    .accepts = &weir_http_request_type,
    .handle = where_handle};

/* Two I/O threads; knobs may be turned before it starts. */
static void new_where(void)
{
	static bool registered;

	if (!registered)
		fixture_register(&where_ops);
	registered = true;
	n_open = 0;
	server = server_new("t.where");
	fixture_set(server.web, "with.threads", "2");
}

/* ---- clients ---- */

/* A socket bound to `port` of 127.0.0.1, 0: any. */
static int socket_at(int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	CU_ASSERT_EQUAL_FATAL(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static int port_at(int fd)
{
	struct sockaddr_in a;
	socklen_t n = sizeof(a);

	CU_ASSERT_EQUAL_FATAL(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	return ntohs(a.sin_port);
}

static void come(int fd)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)server.port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	CU_ASSERT_EQUAL_FATAL(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

static bool is_answered_by(int fd, const char *thread)
{
	struct answer a = {0};
	bool yes = client_say(fd, GET("/")) && answer_read(fd, &a) && a.status == 200 &&
		   strcmp(a.body, thread) == 0;

	answer_free(&a);
	return yes;
}

/* Gone at once, so that its port is free. */
static void drop(int fd)
{
	struct linger none = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	close(fd);
}

/* A connection of this thread, idle. */
static int open_at(const char *thread)
{
	for (;;) {
		int fd = socket_at(0);
		come(fd);
		bool good = is_answered_by(fd, thread);
		n_open += good;
		if (!good)
			drop(fd);
		AWAIT_METRIC(&server, "http_connections", ==, n_open);
		if (good)
			return fd;
	}
}

/* A socket that will come to this thread. */
static int newcomer_of(const char *thread)
{
	int fd = open_at(thread), port = port_at(fd);

	drop(fd);
	n_open--;
	AWAIT_METRIC(&server, "http_connections", ==, n_open);
	return socket_at(port);
}

static void set_free_descriptors(int n)
{
	struct rlimit r;
	int next = dup(0);

	close(next);
	getrlimit(RLIMIT_NOFILE, &r);
	old_limit = r.rlim_cur;
	r.rlim_cur = (rlim_t)(next + n);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &r), 0);
}

static void restore_descriptors(void)
{
	struct rlimit r;

	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = old_limit;
	setrlimit(RLIMIT_NOFILE, &r);
}

/* ---- two I/O threads ---- */

#define A "web/io0"
#define B "web/io1"

struct clients {
	int busy[2], idle[2], newcomer;
};

/* Two of A in the midst of a request, two of B idle for longer than a moment, and one who will come to A. */
static struct clients start(const char *max_connections)
{
	struct clients k;

	new_where();
	fixture_set(server.web, "with.max_connections", max_connections);
	fixture_set(server.web, "with.min_body_rate", "0"); /* who is busy makes no room */
	fixture_set(server.web, "with.body_timeout", "1h");
	fixture_set(server.app, "threads", "inline");
	clock_hold();
	server_start(&server);
	k.newcomer = newcomer_of(A);
	for (int i = 0; i < 2; i++) {
		k.busy[i] = open_at(A);
		CU_ASSERT(client_say(k.busy[i], POST_HALF));
		k.idle[i] = open_at(B);
	}
	return k;
}

static void end(struct clients *k)
{
	for (int i = 0; i < 2; i++) {
		struct answer a = {0};
		CU_ASSERT(client_say(k->busy[i], "cd") && answer_read(k->busy[i], &a));
		CU_ASSERT_EQUAL(a.status, 200);
		answer_free(&a);
		close(k->busy[i]);
		close(k->idle[i]);
	}
	close(k->newcomer);
	server_stop(&server);
	clock_release();
}

/* A is asked, B has those who wait: the elder one of them goes, and the newcomer is served by A. */
static void expect_room(struct clients *k)
{
	come(k->newcomer);
	CU_ASSERT(is_answered_by(k->newcomer, A));
	CU_ASSERT(client_at_end(k->idle[0]));
	CU_ASSERT(is_answered_by(k->idle[1], B));
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 1);
	CU_ASSERT_EQUAL(server_metric(&server, "http_refused_total"), 0);
}

static void test_connections_of_another_thread(void)
{
	struct clients k = start("4");

	clock_move(1500);
	expect_room(&k);
	end(&k);
}

static void test_descriptors_of_another_thread(void)
{
	struct clients k = start("1000");

	clock_move(1500);
	set_free_descriptors(0);
	expect_room(&k);
	restore_descriptors();
	end(&k);
}

/* Nobody anywhere has waited for a moment: refused at once, as with one thread. */
static void test_nobody_waits(void)
{
	struct clients k = start("4");
	struct answer a = {0};

	come(k.newcomer);
	CU_ASSERT(client_say(k.newcomer, GET("/")) && answer_read(k.newcomer, &a));
	CU_ASSERT_EQUAL(a.status, 503);
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 0);
	answer_free(&a);
	end(&k);
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

/* Does the thread `id` of this process sleep, and not run? */
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

/* When A is gone B goes on. */
static void *free_graph(void *arg)
{
	(void)arg;
	atomic_store(&freeing, gettid());
	weir_graph_free(server.graph);
	return NULL;
}

/* I/O threads end one by one, and what one has with all (here: memory is no longer short, which it tells the others) still finds
 * those that ended before it. */
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
	FIXTURE_AWAIT(
	    is_asleep(atomic_load(&freeing))); /* it has freed all that it does not wait with */
	gate_open("here");
	pthread_join(thread, NULL);
	close(large);
	close(waits);
}

/* ---- who has had the last answer ---- */

/* Clients that were refused, and do not go away, make room like those who are idle. */
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
	clock_move(1500); /* they would stay for 2 s */
	fd[2] = client_open(server.port);
	CU_ASSERT(client_say(fd[2], GET("/")) && answer_read(fd[2], &a));
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 1);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	answer_free(&a);
	server_stop(&server);
	clock_release();
}

/* ---- handshakes ---- */

static int64_t offered_to(const char *stage)
{
	struct weir_graph_view *view;
	int64_t n = 0;

	if (weir_graph_view(server.graph, &view) != 0)
		return 0;
	for (int i = 0; i < view->n_stages; i++)
		if (strcmp(view->stages[i].name, stage) == 0)
			n = (int64_t)view->stages[i].class_view[0].offered;
	weir_graph_view_free(view);
	return n;
}

static void steer(const char *stage, enum weir_steer how)
{
	char why[256];

	CU_ASSERT_EQUAL(weir_graph_steer(server.graph, stage, how, why, sizeof(why)), 0);
}

/* Who waits is found behind however many handshakes that their stage has, whose descriptors would not be free at once. */
static void test_behind_handshakes(void)
{
	struct tls_wish wish = {0};
	struct tls_client k[SHAKING];
	int idle, newcomer;

	tls_folder_make();
	tls_make("one", "DNS:localhost", false, 30);
	server = tls_server_new("t.reply", "one");
	fixture_set(server.app, "threads", "inline");
	clock_hold();
	server_start(&server);
	steer("shake", WEIR_STEER_PAUSE);
	for (int i = 0; i < SHAKING; i++) {
		int fd = socket_at(0);
		come(fd);
		k[i] = tls_client_over(fd, &wish);
		SSL_set0_rbio(k[i].ssl, BIO_new(BIO_s_mem()));
		CU_ASSERT_NOT_EQUAL(SSL_do_handshake(k[i].ssl), 1);
		SSL_set_fd(k[i].ssl, k[i].fd);
	}
	FIXTURE_AWAIT(offered_to("shake") == SHAKING);
	idle = socket_at(0);
	come(idle);
	AWAIT_METRIC(&server, "http_connections", ==, SHAKING + 1);
	newcomer = socket_at(0);
	set_free_descriptors(0);
	clock_move(1500);
	come(newcomer);
	CU_ASSERT(client_at_end(idle));
	AWAIT_METRIC(&server, "http_accepted_total", ==, SHAKING + 2);
	CU_ASSERT_EQUAL(server_metric(&server, "http_evicted_total"), 1);
	CU_ASSERT_EQUAL(server_metric(&server, "http_refused_total"), 0);
	restore_descriptors();
	steer("shake", WEIR_STEER_RUN);
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
	tls_cleanup();
	tls_folder_remove();
}

CUNIT_MAIN("http room", {"connections of another thread", test_connections_of_another_thread},
    {"descriptors of another thread", test_descriptors_of_another_thread},
    {"nobody waits", test_nobody_waits}, {"end one by one", test_end_one_by_one},
    {"lingering", test_lingering}, {"behind handshakes", test_behind_handshakes})
