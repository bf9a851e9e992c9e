/* SPDX-License-Identifier: MIT */
/* fetch: passes a GET on to another server, and answers with what that sends, head and body. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <weir/hold.h>
#include <weir/http.h>
#include <weir/io.h>
#include <weir/op.h>
#include <weir/weir.h>

#define PATIENCE_NS 1000000000 /* 1 s */

struct fetch_conf {
	int64_t port;
};

struct reply {                    /* belongs to the request */
	struct weir_http_tap tap; /* first member */
	size_t n;
	char text[4096];
};

struct conn {                    /* belongs to the event loop */
	struct weir_watch watch; /* first member */
	struct weir_timer late;
	struct weir_stage *stage;
	uint64_t ticket; /* of the request that waits */
};

static void reply_free(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	(void)req;
	(void)status;
	free(tap);
}

static struct reply *reply_of(struct weir_event *ev)
{
	return (struct reply *)weir_http_find_tap(weir_http_request(ev), reply_free);
}

/* The continuation: all of the reply has arrived. */
static void fetched(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct reply *r = reply_of(ev[i]);
		struct weir_slice body = {r->text, r->n};
		weir_event_finish(&ev[i],
		    weir_http_respond_copy(weir_http_request(ev[i]), 200, "text/plain", body));
	}
}

static void conn_close(struct weir_loop *loop, struct conn *c)
{
	weir_timer_cancel(loop, &c->late);
	weir_loop_del(loop, &c->watch);
	close(c->watch.fd);
	free(c);
}

static void conn_late(struct weir_loop *loop, struct weir_timer *t)
{
	conn_close(loop, (struct conn *)((char *)t - offsetof(struct conn, late)));
}

static void conn_ready(struct weir_loop *loop, struct weir_watch *w, uint32_t events)
{
	struct conn *c = (struct conn *)w;
	struct weir_event *ev = weir_hold_claim(c->stage, c->ticket);

	(void)events;
	if (!ev) { /* the client has gone, or the time is over */
		conn_close(loop, c);
		return;
	}
	struct reply *r = reply_of(ev);
	ssize_t n = recv(w->fd, r->text + r->n, sizeof(r->text) - r->n, MSG_DONTWAIT);
	if (n > 0 || (n == -1 && errno == EAGAIN)) { /* wait for more */
		r->n += n > 0 ? (size_t)n : 0;
		c->ticket = weir_wait(c->stage, &ev, fetched, c->late.at_ns);
		return;
	}
	if (n == 0) /* goes on in `fetched` */
		weir_resume(c->stage, weir_wait(c->stage, &ev, fetched, c->late.at_ns));
	else
		weir_event_finish(&ev, WEIR_EFAILED);
	conn_close(loop, c);
}

/* Open a connection and send the question. Returns NULL if that fails. */
static struct conn *conn_open(struct weir_stage *st, const struct weir_http_request *req)
{
	const struct fetch_conf *conf = weir_conf(st);
	struct sockaddr_in to = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)conf->port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct conn *c = calloc(1, sizeof(*c));
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* on this machine a connection is made at once; elsewhere, connect without blocking */
	if (c && fd != -1 && connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 &&
	    dprintf(fd, "GET %.*s HTTP/1.0\r\n\r\n", (int)req->path.n, req->path.p) > 0) {
		c->watch = (struct weir_watch){.ready = conn_ready, .fd = fd};
		c->late.fire = conn_late;
		c->stage = st;
		return c;
	}
	free(c);
	if (fd != -1)
		close(fd);
	return NULL;
}

static void fetch(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_http_request *req = weir_http_request(*ev);
	struct reply *r = calloc(1, sizeof(*r));
	struct conn *c = r ? conn_open(st, req) : NULL;
	int64_t until_ns = weir_now_ns(st) + PATIENCE_NS;

	if (!c) {
		free(r);
		weir_event_finish(ev, WEIR_EFAILED);
		return;
	}
	r->tap.fn = reply_free;
	weir_http_add_tap(req, &r->tap);
	weir_http_family(req);
	weir_timer_set(weir_loop_here(), &c->late, until_ns);
	c->ticket = weir_wait(st, ev, fetched, until_ns); /* before the answer can arrive */
	weir_loop_add(weir_loop_here(), &c->watch, EPOLLIN);
}

static void fetch_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		fetch(st, &ev[i]);
}

static const struct weir_knob fetch_knobs[] = {
    {.name = "port",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct fetch_conf, port),
	.min = 1,
	.max = 65535,
	.def = "80",
	.help = "port of the other server"},
    {0},
};

const struct weir_stage_ops weir_stage_fetch = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS | WEIR_STAGE_LOOP,
    .name = "fetch",
    .summary = "Asks another server",
    .accepts = &weir_http_request_type,
    .knobs = fetch_knobs,
    .conf_size = sizeof(struct fetch_conf),
    .handle = fetch_handle};
