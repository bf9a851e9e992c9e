/* SPDX-License-Identifier: MIT */
/*
 * The admin client and servers that answer correctly, incorrectly or not at all. Each case is one
 * connection to a listener of the test on 127.0.0.1, whose thread reads the request and sends fixed
 * bytes.
 */
#include "cli/client/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cunit_main.h"

struct peer {
	pthread_t thread;
	int fd;
	const char *say;
	char url[128];
	char heard[1024];
	pid_t disturb; /* thread of the client, interrupted by signals while it waits; 0: none */
	pthread_t disturbed;
};

static atomic_int signals_seen;

static void on_signal(int number)
{
	(void)number;
	atomic_fetch_add(&signals_seen, 1);
}

/** Does thread `tid` of this process sleep in a call? */
static bool asleep(pid_t tid)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	FILE *f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (f)
		fclose(f);
	return state == 'S';
}

/** Send three signals, each while the client sleeps: it can only be waiting for the response. */
static void disturb(const struct peer *p)
{
	for (int i = 1; i <= 3; i++) {
		while (!asleep(p->disturb))
			sched_yield();
		pthread_kill(p->disturbed, SIGUSR1);
		while (atomic_load(&signals_seen) < i)
			sched_yield();
	}
	while (!asleep(p->disturb))
		sched_yield();
}

static void *peer_run(void *arg)
{
	struct peer *p = arg;
	size_t n = 0;
	int fd = accept(p->fd, NULL, NULL);

	while (n < sizeof(p->heard) - 1 && !strstr(p->heard, "\r\n\r\n")) {
		ssize_t got = recv(fd, p->heard + n, sizeof(p->heard) - 1 - n, 0);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	if (p->disturb)
		disturb(p);
	if (send(fd, p->say, strlen(p->say), MSG_NOSIGNAL) < 0)
		p->heard[0] = '\0';
	close(fd);
	return NULL;
}

static void peer_listen_tcp(struct peer *p)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(at);

	p->fd = socket(AF_INET, SOCK_STREAM, 0);
	CU_ASSERT_FATAL(bind(p->fd, (struct sockaddr *)&at, n) == 0);
	CU_ASSERT_FATAL(listen(p->fd, 1) == 0);
	CU_ASSERT_FATAL(getsockname(p->fd, (struct sockaddr *)&at, &n) == 0);
	snprintf(p->url, sizeof(p->url), "http://127.0.0.1:%d/", ntohs(at.sin_port));
}

static void peer_listen_unix(struct peer *p, const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	snprintf(p->url, sizeof(p->url), "unix:%s", path);
	p->fd = socket(AF_UNIX, SOCK_STREAM, 0);
	CU_ASSERT_FATAL(bind(p->fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	CU_ASSERT_FATAL(listen(p->fd, 1) == 0);
}

/** Send a request to a listening peer that answers `say`. Returns the result of client_get. */
static int ask_peer(struct peer *p, const char *say, struct client_answer *a, struct weir_err *err)
{
	p->say = say;
	memset(a, 0, sizeof(*a));
	memset(err, 0, sizeof(*err));
	CU_ASSERT_FATAL(pthread_create(&p->thread, NULL, peer_run, p) == 0);
	int rc = client_get(p->url, "/x", a, err);
	pthread_join(p->thread, NULL);
	close(p->fd);
	return rc;
}

static int ask(const char *say, struct client_answer *a, struct weir_err *err)
{
	struct peer p = {0};

	peer_listen_tcp(&p);
	int rc = ask_peer(&p, say, a, err);
	CU_ASSERT(strncmp(p.heard, "GET /x HTTP/1.1\r\nHost: 127.0.0.1:", 33) == 0);
	return rc;
}

/** `say` must be accepted as a response with this status and body. */
static void good(const char *say, int status, const char *body)
{
	struct client_answer a;
	struct weir_err err;

	CU_ASSERT_FATAL(ask(say, &a, &err) == 0);
	CU_ASSERT(a.status == status);
	CU_ASSERT(a.n == strlen(body));
	CU_ASSERT_STRING_EQUAL(a.body, body);
	free(a.body);
}

/** `say` must be refused as not HTTP, with that message. */
static void bad(const char *say)
{
	struct client_answer a;
	struct weir_err err;

	CU_ASSERT(ask(say, &a, &err) == WEIR_EFAILED);
	CU_ASSERT(a.body == NULL);
	CU_ASSERT(strstr(err.text, "not a weir admin endpoint") != NULL);
}

static void test_whole_answers(void)
{
	good("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi");
	good("HTTP/1.1 503 Busy\r\ncontent-length:0\r\n\r\n", 503, "");
	good("HTTP/1.1 200 OK\r\n\r\nto the end", 200, "to the end");
	good("HTTP/1.0 404 Not Found\r\nX-Content-Length: 9\r\n\r\nno", 404, "no");
}

static void test_chunked_answers(void)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	char say[256];

	snprintf(say, sizeof(say), "%s3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n", head);
	good(say, 200, "abc0123456789");
	snprintf(say, sizeof(say), "%s0\r\n\r\n", head);
	good(say, 200, "");
	static const char *const cut[] = {"", "3", "3\r\n", "3\r\nab", "3\r\nabc",
	    "3\r\nabcd\r\n0\r\n\r\n", "3\r\nabc\r\n", "ffffffffffffffff\r\nabc\r\n", "x\r\n"};
	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		snprintf(say, sizeof(say), "%s%s", head, cut[i]);
		bad(say);
	}
}

/* A program that is stopped and continued gets EINTR from a receive with a time-out, whatever
 * SA_RESTART says. */
static void test_signals(void)
{
	struct sigaction act = {.sa_handler = on_signal}, old;
	struct peer p = {.disturb = gettid(), .disturbed = pthread_self()};
	struct client_answer a;
	struct weir_err err;

	atomic_store(&signals_seen, 0);
	CU_ASSERT_FATAL(sigaction(SIGUSR1, &act, &old) == 0);
	peer_listen_tcp(&p);
	CU_ASSERT_FATAL(
	    ask_peer(&p, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", &a, &err) == 0);
	CU_ASSERT_STRING_EQUAL(a.body, "hi");
	CU_ASSERT(atomic_load(&signals_seen) == 3);
	free(a.body);
	sigaction(SIGUSR1, &old, NULL);
}

static void test_broken_answers(void)
{
	bad("");
	bad("hello\n");
	bad("HTTP/1.1 200 OK\r\n");
	bad("SSH-2.0-OpenSSH\r\n\r\n");
	bad("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhi");
	bad("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nhi");
}

static void test_socket_file(void)
{
	struct client_answer a;
	struct weir_err err;
	struct peer p = {0};
	char folder[] = "/tmp/weir-client-XXXXXX", path[64];

	CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/sock", folder);
	peer_listen_unix(&p, path);
	CU_ASSERT(ask_peer(&p, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", &a, &err) == 0);
	CU_ASSERT(a.status == 200);
	CU_ASSERT(strstr(p.heard, "Host: localhost\r\n") != NULL);
	free(a.body);
	unlink(path);
	rmdir(folder);
}

/* A socket file whose queue is full until the client sleeps or has given up. */
struct crowded {
	struct peer peer;
	pid_t client;
	int crowd[64], n;
	atomic_bool over;
};

static void crowded_fill(struct crowded *c, const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	bool in = true;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
	while (in && c->n < 64) {
		int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		in = connect(fd, (const struct sockaddr *)&at, sizeof(at)) == 0;
		CU_ASSERT(in || errno == EAGAIN);
		if (in)
			c->crowd[c->n++] = fd;
		else
			close(fd);
	}
	CU_ASSERT_FATAL(!in);
}

static void *crowded_run(void *arg)
{
	struct crowded *c = arg;

	while (!asleep(c->client) && !atomic_load(&c->over))
		sched_yield();
	for (int i = 0; i < c->n; i++) {
		close(accept(c->peer.fd, NULL, NULL));
		close(c->crowd[i]);
	}
	return atomic_load(&c->over) ? NULL : peer_run(&c->peer);
}

static void test_crowded_socket_file(void)
{
	char folder[] = "/tmp/weir-client-XXXXXX", path[64];
	struct crowded c = {
	    .peer.say = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", .client = gettid()};
	struct client_answer a = {0};
	struct weir_err err = {0};

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	peer_listen_unix(&c.peer, path);
	crowded_fill(&c, path);
	CU_ASSERT_FATAL(pthread_create(&c.peer.thread, NULL, crowded_run, &c) == 0);
	int rc = client_get(c.peer.url, "/x", &a, &err);
	atomic_store(&c.over, rc != 0);
	pthread_join(c.peer.thread, NULL);
	CU_ASSERT_EQUAL(rc, 0);
	if (rc == 0)
		CU_ASSERT_STRING_EQUAL(a.body, "ok");
	free(a.body);
	close(c.peer.fd);
	unlink(path);
	rmdir(folder);
}

static void test_addresses(void)
{
	static const char *const wrong[] = {"", "http://", "http://:9900", "a b", "[::1", "[::1]x",
	    "127.0.0.1:", "127.0.0.1:99999999999999999999", "127.0.0.1:1/path", "https://",
	    "ftp://x"};
	struct client_answer a;
	struct weir_err err;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		memset(&err, 0, sizeof(err));
		CU_ASSERT(client_get(wrong[i], "/x", &a, &err) == WEIR_EINVAL);
		CU_ASSERT(strstr(err.text, "is not an address") != NULL);
	}
}

static void test_nobody_there(void)
{
	struct client_answer a;
	struct weir_err err = {0};
	struct peer p = {0};

	peer_listen_tcp(&p);
	close(p.fd);
	CU_ASSERT(client_get(p.url, "/x", &a, &err) == WEIR_ESYS);
	CU_ASSERT(strstr(err.text, p.url) != NULL);
	char path[256] = "unix:/";
	memset(path + 6, 'x', sizeof(path) - 7);
	CU_ASSERT(client_get(path, "/x", &a, &err) == WEIR_ESYS);
	CU_ASSERT(client_get("unix:/nowhere.sock", "/x", &a, &err) == WEIR_ESYS);
}

static void test_put(void)
{
	struct client_answer a = {0};
	struct weir_err err = {0};
	struct peer p = {.say = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"};
	static const char about[] =
	    "\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n";

	peer_listen_tcp(&p);
	CU_ASSERT_FATAL(pthread_create(&p.thread, NULL, peer_run, &p) == 0);
	int rc = client_put(p.url, "/y", "{\"mode\": \"off\"}", &a, &err);
	pthread_join(p.thread, NULL);
	close(p.fd);
	CU_ASSERT_EQUAL_FATAL(rc, 0);
	CU_ASSERT_EQUAL(a.status, 200);
	CU_ASSERT_STRING_EQUAL(a.body, "ok");
	CU_ASSERT(strncmp(p.heard, "PUT /y HTTP/1.1\r\nHost: 127.0.0.1:", 33) == 0);
	CU_ASSERT(strstr(p.heard, about) != NULL);
	CU_ASSERT(strstr(p.heard, "{\"mode\": \"off\"}") != NULL);
	free(a.body);
	static char path[20000] = "/"; /* longer than any request of the client */
	memset(path + 1, 'x', sizeof(path) - 2);
	struct peer q = {0};
	peer_listen_tcp(&q);
	CU_ASSERT_EQUAL(client_put(q.url, path, "{}", &a, &err), WEIR_ESYS);
	CU_ASSERT(strstr(err.text, strerror(EMSGSIZE)) != NULL);
	close(q.fd);
}

CUNIT_MAIN("client", {"whole answers", test_whole_answers},
    {"chunked answers", test_chunked_answers}, {"broken answers", test_broken_answers},
    {"socket file", test_socket_file},
    {"a socket file with a full queue", test_crowded_socket_file}, {"addresses", test_addresses},
    {"nobody there", test_nobody_there}, {"put", test_put},
    {"signals while it waits", test_signals})
