/* SPDX-License-Identifier: MIT */
/*
 * A server in this process and raw clients of it, for scenario tests. Header-only.
 *
 * The server is "web" (http.server on a free port of 127.0.0.1) in front of "app", whose stage type
 * is chosen by the test. Clients are blocking sockets with a limit of WAIT_MS per step. The limit
 * only ends tests that hang; no test depends on it. An interrupted step, as when this process was
 * stopped for a while, is continued. Conditions inside the server are awaited through its metrics.
 *
 * t.reply answers with "METHOD target\n" and the request's body. The target can change that:
 * /wait/NAME is answered only after gate_open("NAME"), /status/NNN with that status, /big/N with N
 * bytes, /copy/N the same in small memory, /fail fails, /none finishes without a response, /close
 * asks for the end of the connection.
 */
#ifndef WEIR_TESTS_HTTP_FIXTURE_H
#define WEIR_TESTS_HTTP_FIXTURE_H

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <weir/graph.h>
#include <weir/http.h>
#include <weir/weir.h>

#include "cunit_main.h"
#include "fixture/graph_fixture.h"

#define WAIT_MS 20000

/* ---- gates: what t.reply waits for ---- */

static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_cond = PTHREAD_COND_INITIALIZER;
static char gate_names[64][32];
static int n_gates;
static int n_at_gates; /* requests that are waiting now */

static inline void gate_open(const char *name)
{
	pthread_mutex_lock(&gate_lock);
	snprintf(gate_names[n_gates++], sizeof(gate_names[0]), "%s", name);
	pthread_cond_broadcast(&gate_cond);
	pthread_mutex_unlock(&gate_lock);
}

static inline bool gate_is_open(const char *name, size_t n)
{
	for (int i = 0; i < n_gates; i++)
		if (strlen(gate_names[i]) == n && memcmp(gate_names[i], name, n) == 0)
			return true;
	return false;
}

static inline void gate_pass(const char *name, size_t n)
{
	pthread_mutex_lock(&gate_lock);
	n_at_gates++;
	pthread_cond_broadcast(&gate_cond);
	while (!gate_is_open(name, n))
		pthread_cond_wait(&gate_cond, &gate_lock);
	n_at_gates--;
	pthread_mutex_unlock(&gate_lock);
}

static inline int gate_count(void)
{
	pthread_mutex_lock(&gate_lock);
	int n = n_at_gates;
	pthread_mutex_unlock(&gate_lock);
	return n;
}

/* Wait until `n` requests wait at gates. */
#define gate_await(n) FIXTURE_AWAIT(gate_count() >= (n))

static inline void gates_reset(void)
{
	pthread_mutex_lock(&gate_lock);
	n_gates = n_at_gates = 0;
	pthread_mutex_unlock(&gate_lock);
}

/* ---- the answering stage ---- */

static inline bool target_starts(const struct weir_http_request *req, const char *prefix)
{
	size_t n = strlen(prefix);

	return req->target.n >= n && memcmp(req->target.p, prefix, n) == 0;
}

static inline long target_number(const struct weir_http_request *req, const char *prefix)
{
	char text[32] = "";
	size_t skip = strlen(prefix), n = req->target.n - skip;

	memcpy(text, req->target.p + skip, n < sizeof(text) ? n : sizeof(text) - 1);
	return strtol(text, NULL, 10);
}

static inline void reply_bytes(struct weir_http_request *req, long n)
{
	char *mem = malloc((size_t)n + 1);

	for (long i = 0; i < n; i++)
		mem[i] = (char)('a' + i % 26);
	weir_http_respond(req, 200, "text/plain", (struct weir_slice){mem, (size_t)n}, free, mem);
}

static inline void reply_echo(struct weir_http_request *req)
{
	size_t n = req->method_text.n + 1 + req->target.n + 1 + req->body.n;
	char *mem = malloc(n), *at = mem;

	at = mempcpy(at, req->method_text.p, req->method_text.n);
	*at++ = ' ';
	at = mempcpy(at, req->target.p, req->target.n);
	*at++ = '\n';
	if (req->body.n > 0)
		memcpy(at, req->body.p, req->body.n);
	weir_http_respond(req, 200, "text/plain", (struct weir_slice){mem, n}, free, mem);
}

static inline int reply_one(struct weir_http_request *req)
{
	if (target_starts(req, "/wait/"))
		gate_pass(req->target.p + 6, req->target.n - 6);
	if (target_starts(req, "/fail"))
		return WEIR_EFAILED;
	if (target_starts(req, "/none"))
		return WEIR_OK;
	if (target_starts(req, "/status/"))
		weir_http_respond_status(req, (int)target_number(req, "/status/"));
	else if (target_starts(req, "/big/"))
		reply_bytes(req, target_number(req, "/big/"));
	else
		reply_echo(req);
	if (target_starts(req, "/close"))
		req->res.close = true;
	return WEIR_OK;
}

static inline void reply_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], reply_one(weir_http_request(ev[i])));
}

static const struct weir_stage_ops reply_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.reply",
    .summary = "answers as the target says",
    .accepts = &weir_http_request_type,
    .handle = reply_handle};

/* ---- the server ---- */

struct server {
	struct weir_spec *spec; /* valid until server_start */
	struct weir_stage_spec *web, *app;
	struct weir_graph *graph;
	int port;
	int probe; /* a connection for use by the test */
};

/* A server with an app of type `use`; set knobs before server_start. */
static inline struct server server_new(const char *use)
{
	static bool registered;
	struct server s = {.spec = weir_spec_new("test")};

	if (!registered)
		fixture_register(&reply_ops);
	registered = true;
	weir_log_set_level(WEIR_LOG_ERROR);
	gates_reset();
	weir_spec_add_stage(s.spec, "web", "http.server");
	weir_spec_add_stage(s.spec, "app", use);
	s.web = &s.spec->stages[0];
	s.app = &s.spec->stages[1];
	weir_spec_link(s.web, "", "app", false);
	fixture_set(s.web, "with.listen", "127.0.0.1:0");
	fixture_set(s.web, "with.threads", "1");
	fixture_set(s.web, "with.linger", "100ms");
	/* A machine that stalls is not an overload to test here. */
	fixture_set(s.app, "admission.policy", "none");
	return s;
}

static inline void server_start(struct server *s)
{
	s->graph = fixture_start(s->spec);
	s->port = weir_http_port(weir_graph_stage(s->graph, "web"), 0);
	CU_ASSERT_NOT_EQUAL_FATAL(s->port, 0);
}

/* Drain and free; the balance check must hold. */
static inline void server_stop(struct server *s)
{
	struct weir_drain_report report = {0};

	weir_graph_drain(s->graph, 10000000000LL, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(s->graph);
}

/* A metric of stage "web". */
static inline int64_t server_metric(const struct server *s, const char *name)
{
	struct weir_graph_view *view;
	int64_t value = -1;

	if (weir_graph_view(s->graph, &view) != 0)
		return -1;
	for (int i = 0; i < view->n_stages; i++)
		for (int m = 0; m < view->stages[i].n_metrics; m++)
			if (strcmp(view->stages[i].metrics[m].name, name) == 0)
				value = view->stages[i].metric[m];
	weir_graph_view_free(view);
	return value;
}

/* Events offered to a stage so far. */
static inline uint64_t server_offered_to(const struct server *s, const char *stage)
{
	struct weir_graph_view *view;
	uint64_t n = 0;

	if (weir_graph_view(s->graph, &view) != 0)
		return 0;
	for (int i = 0; i < view->n_stages; i++)
		if (strcmp(view->stages[i].name, stage) == 0)
			n = view->stages[i].class_view[0].offered;
	weir_graph_view_free(view);
	return n;
}

static inline uint64_t server_offered(const struct server *s)
{
	return server_offered_to(s, "app");
}

/* Pause, drain or resume a stage, as an operator would. */
static inline void server_steer(const struct server *s, const char *stage, enum weir_steer how)
{
	char why[300];

	CU_ASSERT_EQUAL(weir_graph_steer(s->graph, stage, how, why, sizeof(why)), 0);
}

#define AWAIT_METRIC(server, name, op, value) FIXTURE_AWAIT(server_metric(server, name) op(value))

/* ---- raw clients ---- */

/* connect was interrupted: wait for its result. */
static inline bool connect_went_on(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int error = errno;
	socklen_t n = sizeof(error);

	if (error != EINTR || poll(&p, 1, WAIT_MS) != 1)
		return false;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error == 0;
}

/* `from`: the client's own address, such as "127.0.0.2" for one that other clients do not have. */
static inline int client_open_from(int port, const char *from)
{
	struct sockaddr_in own = {.sin_family = AF_INET};
	struct sockaddr_in a = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct timeval limit = {.tv_sec = WAIT_MS / 1000};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (from && (inet_pton(AF_INET, from, &own.sin_addr) != 1 ||
			bind(fd, (struct sockaddr *)&own, sizeof(own)) != 0))
		CU_FAIL("the client's address");
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 || connect_went_on(fd))
		return fd;
	close(fd);
	return -1;
}

static inline int client_open(int port)
{
	return client_open_from(port, NULL);
}

/* recv(2) that continues after the process was stopped and resumed, which interrupts calls with a
 * time-out. */
static inline ssize_t client_recv(int fd, void *p, size_t n, int flags)
{
	ssize_t got;

	do
		got = recv(fd, p, n, flags);
	while (got < 0 && errno == EINTR);
	return got;
}

static inline bool client_send(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t done = send(fd, p, n, MSG_NOSIGNAL);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

static inline bool client_say(int fd, const char *text)
{
	return client_send(fd, text, strlen(text));
}

/* Exactly `n` bytes. */
static inline bool client_take(int fd, void *p, size_t n)
{
	char *at = p;

	while (n > 0) {
		ssize_t got = client_recv(fd, at, n, 0);
		if (got <= 0)
			return false;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

/* One answer as read. */
struct answer {
	int status;
	bool close;      /* has Connection: close */
	long length;     /* Content-Length, -1 if absent */
	size_t n;        /* bytes of the body */
	char *body;      /* freed by the next answer_read */
	char head[4096]; /* including the empty line */
};

/* Read exactly up to the end of a head. The bytes after it are left for the next read, so input is
 * peeked at before it is consumed. */
static inline bool head_read(int fd, char *head, size_t size)
{
	size_t n = 0;
	char *end = NULL;

	while (!end && n + 1 < size) {
		ssize_t got = client_recv(fd, head + n, size - 1 - n, MSG_PEEK);
		if (got <= 0)
			break;
		size_t from = n < 3 ? 0 : n - 3;
		end = memmem(head + from, n + (size_t)got - from, "\r\n\r\n", 4);
		size_t take = end ? (size_t)(end + 4 - (head + n)) : (size_t)got;
		if (!client_take(fd, head + n, take))
			break;
		n += take;
	}
	head[n] = '\0';
	return end;
}

/* Value of a field in a head, or NULL. Static memory. */
static inline const char *head_field(const char *head, const char *name)
{
	static _Thread_local char value[1024];
	char key[128];
	const char *at;

	snprintf(key, sizeof(key), "\r\n%s: ", name);
	at = strcasestr(head, key);
	if (!at)
		return NULL;
	at += strlen(key);
	snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\r"), at);
	return value;
}

/* Read one answer. `bodiless`: it has a length but no body (HEAD). */
static inline bool answer_read_as(int fd, struct answer *a, bool bodiless)
{
	const char *length;

	free(a->body);
	*a = (struct answer){.length = -1};
	if (!head_read(fd, a->head, sizeof(a->head)))
		return false;
	if (sscanf(a->head, "HTTP/1.1 %d ", &a->status) != 1)
		return false;
	a->close = strcasestr(a->head, "\r\nConnection: close\r\n") != NULL;
	length = head_field(a->head, "Content-Length");
	if (length)
		a->length = atol(length);
	if (bodiless || a->length <= 0)
		return true;
	a->body = malloc((size_t)a->length + 1);
	while (a->n < (size_t)a->length) {
		ssize_t got = client_recv(fd, a->body + a->n, (size_t)a->length - a->n, 0);
		if (got <= 0)
			return false;
		a->n += (size_t)got;
	}
	a->body[a->n] = '\0';
	return true;
}

static inline bool answer_read(int fd, struct answer *a)
{
	return answer_read_as(fd, a, false);
}

static inline void answer_free(struct answer *a)
{
	free(a->body);
	a->body = NULL;
}

static inline bool answer_is(const struct answer *a, int status, const char *body)
{
	bool same = a->status == status && a->n == strlen(body) &&
		    (a->n == 0 || memcmp(a->body, body, a->n) == 0);

	if (!same)
		fprintf(stderr, "got %d \"%s\", expected %d \"%s\"\n", a->status,
		    a->body ? a->body : "", status, body);
	return same;
}

/* Has the server shut down its side (or reset the connection)? Waits for that; false if bytes
 * arrive instead. */
static inline bool client_at_end(int fd)
{
	char byte;
	ssize_t n = client_recv(fd, &byte, 1, 0);

	return n == 0 || (n == -1 && errno == ECONNRESET);
}

#define GET(target) "GET " target " HTTP/1.1\r\nHost: t\r\n\r\n"

#endif
