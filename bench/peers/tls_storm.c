/* SPDX-License-Identifier: MIT */
/*
 * Measures the effect of TLS handshakes on open connections, for ./handshakes.
 *
 *   tls_storm PORT KEPT RATE STORMERS SECONDS
 *
 * KEPT connections over TLS are opened at the same time, as wrk opens its connections. Each of them
 * sends its first request as soon as its own side of the handshake is done. In TLS 1.3 the server
 * has not received the end of the handshake then (RFC 8446, 2). When all kept connections have
 * received their first response, a second process starts the storm: on STORMERS connections it
 * repeats connect, handshake, one request, reset.
 *
 * Meanwhile this process sends RATE requests/s, evenly spaced, over any kept connection that is not
 * waiting for a response. The response time is measured from when a request was due, even if no
 * connection was free. This process runs as SCHED_FIFO (root), so that it does not wait for the
 * storm, which shares its core.
 *
 * Prints one line of JSON; times are in microseconds. `open` is the time from connect to the first
 * response, `first` the time from the first request to its response, and `kept` the response time
 * of the requests during the storm.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#define NS_PER_S  1000000000LL
#define SAMPLES   4000000
#define SETTLE_NS (300 * 1000000LL) /* time that the storm runs before the measurement, a guess */
#define EVENTS    256

struct conn {
	SSL *ssl;
	int fd;
	bool open;
	int64_t since_ns; /* when the connect started */
	int64_t due_ns;   /* when its request was due; 0 if no request is pending */
};

/* Counters written by the storm process. */
struct tally {
	volatile long done, failed;
};

struct samples {
	long n;
	int64_t ns[SAMPLES];
};

static SSL_CTX *context;
static struct sockaddr_in server;
static const char request[] = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

static void die(const char *what)
{
	fprintf(stderr, "tls_storm: %s\n", what);
	ERR_print_errors_fp(stderr);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* ---- a connection ---- */

static void begin(int epoll_fd, struct conn *c)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
	struct linger reset = {.l_onoff = 1, .l_linger = 0}; /* no TIME_WAIT */
	int one = 1;

	*c = (struct conn){
	    .fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), .ssl = SSL_new(context)};
	if (c->fd == -1 || !c->ssl)
		die("no socket");
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	c->since_ns = now_ns();
	/* the handshake reports errors */
	(void)connect(c->fd, (struct sockaddr *)&server, sizeof(server));
	SSL_set_fd(c->ssl, c->fd);
	SSL_set_connect_state(c->ssl);
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e);
}

static void end(struct conn *c)
{
	ERR_clear_error();
	SSL_free(c->ssl);
	close(c->fd);
}

static void ask(struct conn *c, int64_t due_ns)
{
	c->due_ns = due_ns;
	if (SSL_write(c->ssl, request, sizeof(request) - 1) != sizeof(request) - 1)
		die("a request could not be written");
}

/* Continue the handshake, the request or the response. Returns 1 if the response has arrived, 0 if
 * it has not, or -1 if the connection is broken. The first request is sent immediately after the
 * handshake. */
static int go_on(struct conn *c)
{
	char buf[4096];
	int rc, got = 0;

	if (!c->open) {
		rc = SSL_do_handshake(c->ssl);
		if (rc != 1) {
			rc = SSL_get_error(c->ssl, rc);
			return rc == SSL_ERROR_WANT_READ || rc == SSL_ERROR_WANT_WRITE ? 0 : -1;
		}
		c->open = true;
		ask(c, now_ns());
	}
	while ((rc = SSL_read(c->ssl, buf, sizeof(buf))) > 0)
		got = 1;
	return SSL_get_error(c->ssl, rc) == SSL_ERROR_WANT_READ ? got : -1;
}

/* ---- the storm ---- */

static void storm(int n, struct tally *tally)
{
	struct conn *c = calloc((size_t)n, sizeof(*c));
	struct epoll_event ready[EVENTS];
	int epoll_fd = epoll_create1(0);

	for (int i = 0; c && i < n; i++)
		begin(epoll_fd, &c[i]);
	while (c) {
		int got = epoll_wait(epoll_fd, ready, EVENTS, -1);
		for (int i = 0; i < got; i++) {
			int rc = go_on(ready[i].data.ptr);
			if (rc == 0)
				continue;
			tally->done += rc == 1;
			tally->failed += rc == -1;
			end(ready[i].data.ptr);
			begin(epoll_fd, ready[i].data.ptr);
		}
	}
}

static pid_t start_storm(int n, struct tally *tally)
{
	pid_t pid = n > 0 ? fork() : 0;

	if (n > 0 && pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		storm(n, tally);
		_exit(1);
	}
	return pid;
}

/* ---- kept connections ---- */

static void note(struct samples *s, int64_t ns)
{
	if (s->n < SAMPLES)
		s->ns[s->n++] = ns;
}

static void open_all(
    int epoll_fd, struct conn *c, int n, struct samples *open, struct samples *first)
{
	struct epoll_event ready[EVENTS];
	int left = n;

	for (int i = 0; i < n; i++)
		begin(epoll_fd, &c[i]);
	while (left > 0) {
		int got = epoll_wait(epoll_fd, ready, EVENTS, -1);
		for (int i = 0; i < got; i++) {
			struct conn *k = ready[i].data.ptr;
			int rc = go_on(k);
			if (rc == -1)
				die("a handshake failed");
			if (rc == 0 || k->due_ns == 0)
				continue;
			note(open, now_ns() - k->since_ns);
			note(first, now_ns() - k->due_ns);
			k->due_ns = 0;
			left--;
		}
	}
}

/* The schedule of requests, and the connections that they use. */
struct plan {
	struct conn *c;
	int n, busy, next;
	int64_t due_ns, every_ns;
};

static void ask_due(struct plan *p)
{
	int64_t now = now_ns();

	while (p->busy < p->n && p->due_ns <= now) {
		struct conn *c = &p->c[p->next++ % p->n];
		if (c->due_ns != 0)
			continue;
		ask(c, p->due_ns);
		p->busy++;
		p->due_ns += p->every_ns;
	}
}

/* Return how long to wait for responses: until the next request is due, or 100 ms at a time if no
 * request can be sent. */
static struct timespec pause_of(const struct plan *p)
{
	int64_t ns = p->due_ns - now_ns();

	if (p->busy == p->n || ns > NS_PER_S / 10)
		ns = NS_PER_S / 10;
	return (struct timespec){.tv_nsec = ns > 0 ? ns : 0};
}

/* Send requests until `to_ns`. Requests that are due at `from_ns` or later are counted. */
static void pace(int epoll_fd, struct plan *p, int64_t from_ns, int64_t to_ns, struct samples *kept)
{
	struct epoll_event ready[EVENTS];

	while (now_ns() < to_ns) {
		ask_due(p);
		struct timespec wait = pause_of(p);
		int got = epoll_pwait2(epoll_fd, ready, EVENTS, &wait, NULL);
		for (int i = 0; i < got; i++) {
			struct conn *c = ready[i].data.ptr;
			int rc = go_on(c);
			if (rc == -1)
				die("the server closed a kept connection");
			if (rc == 0 || c->due_ns == 0)
				continue;
			if (c->due_ns >= from_ns)
				note(kept, now_ns() - c->due_ns);
			c->due_ns = 0;
			p->busy--;
		}
	}
}

/* ---- output ---- */

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double quantile_us(const struct samples *s, double q)
{
	return s->n ? (double)s->ns[(long)(q * (double)(s->n - 1))] / 1000 : 0;
}

static void print(const char *name, struct samples *s)
{
	qsort(s->ns, (size_t)s->n, sizeof(s->ns[0]), by_size);
	printf(
	    "\"%s\": {\"n\": %ld, \"p50\": %.1f, \"p99\": %.1f, \"p999\": %.1f, \"max\": %.1f}, ",
	    name, s->n, quantile_us(s, 0.5), quantile_us(s, 0.99), quantile_us(s, 0.999),
	    quantile_us(s, 1));
}

static struct samples opened, first, kept;

int main(int argc, char **argv)
{
	struct sched_param fifo = {.sched_priority = 50};
	int n = argc == 6 ? atoi(argv[2]) : 0, epoll_fd = epoll_create1(0);
	double rate = argc == 6 ? atof(argv[3]) : 0, seconds = argc == 6 ? atof(argv[5]) : 0;
	struct conn *c = n > 0 ? calloc((size_t)n, sizeof(*c)) : NULL;
	struct tally *tally =
	    mmap(NULL, sizeof(*tally), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct plan plan;
	int64_t from_ns, to_ns;
	long done;
	pid_t pid;

	if (!c || rate <= 0 || seconds <= 0 || tally == MAP_FAILED)
		die("PORT KEPT RATE STORMERS SECONDS");
	server = (struct sockaddr_in){.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)atoi(argv[1])),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	context = SSL_CTX_new(TLS_client_method());
	if (!context)
		die("no context");
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	open_all(epoll_fd, c, n, &opened, &first);
	pid = start_storm(atoi(argv[4]), tally);
	if (sched_setscheduler(0, SCHED_FIFO, &fifo) == -1)
		die("SCHED_FIFO wants root");
	plan = (struct plan){
	    .c = c, .n = n, .due_ns = now_ns(), .every_ns = (int64_t)(NS_PER_S / rate)};
	from_ns = plan.due_ns + SETTLE_NS;
	to_ns = from_ns + (int64_t)(seconds * NS_PER_S);
	pace(epoll_fd, &plan, from_ns, from_ns, &kept);
	done = tally->done;
	pace(epoll_fd, &plan, from_ns, to_ns, &kept);
	done = tally->done - done;
	if (pid > 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	printf("JSON {\"version\": \"%s\", ", SSL_get_version(c[0].ssl));
	print("open", &opened);
	print("first", &first);
	print("kept", &kept);
	printf("\"handshakes_per_s\": %.1f, \"failed\": %ld}\n", (double)done / seconds,
	    tally->failed);
	return 0;
}
