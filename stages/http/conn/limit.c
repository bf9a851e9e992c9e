/* SPDX-License-Identifier: MIT */
/* Counts the limits that clients exceed, and refuses with their texts; see limit.h. */
#include "http/conn/limit.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http/conn/pages.h"
#include "http/conn/wire_io.h"
#include "http/request/refusal_log.h"

static const struct row {
	int metric, status;
	const char *code, *text;
} rows[] = {
#define LIMIT_ROW(id, metric, status, code, text) {SERVER_##metric, status, code, text},
    LIMITS(LIMIT_ROW)
#undef LIMIT_ROW
};

void limit_count(struct http_io *io, enum limit l)
{
	io->count[rows[l].metric]++;
}

/* ---- refusals ---- */

static void refusal_text(struct http_req *r, int status, const char *why)
{
	char text[160];
	int n = snprintf(text, sizeof(text), "%d %s: %s\n", status, weir_http_reason(status), why);

	if (weir_http_respond_copy(&r->pub, status, "text/plain; charset=utf-8",
		(struct weir_slice){text, n < (int)sizeof(text) ? (size_t)n : sizeof(text) - 1}) !=
	    0)
		weir_http_respond_status(&r->pub, status); /* no memory for `why` */
	r->pub.res.standard = true;
	if (status != 503)
		return;
	snprintf(text, sizeof(text), "%d", conn_retry_after_s(r->conn));
	weir_http_add_field(&r->pub, "Retry-After", text);
}

/* Refuse a request without queueing the response, because there is no memory for it. A short
 * response is sent directly, unless another one is queued before it. */
static enum conn_next refuse_in_short(struct conn *c, int status)
{
	char head[COMPOSE_BARE_MAX];
	struct iovec iov = {.iov_base = head, .iov_len = compose_bare(status, 0, head)};
	ssize_t n = (ssize_t)iov.iov_len;

	if (!c->first && !c->socket.blocked && wire_send(c, &iov, 1, false) == n)
		return CONN_END;
	return CONN_CLOSE;
}

/* Like conn_refuse; `code` is the value of X-Weir-Limit, or NULL. */
static enum conn_next refuse(struct conn *c, int status, const char *why, const char *code)
{
	/* a response would need a whole handshake first */
	bool mute = c->net.tls && tls_is_shaking(c->net.tls);
	struct http_req *r = mute ? NULL : pool_req(&c->io->pool);

	conn_stop_input(c);
	c->io->count[SERVER_BAD_REQUESTS] += status != 503;
	refusal_log(&c->io->refusals, c->io->net.stage, weir_loop_now_ns(c->io->net.loop),
	    c->net.client.address, status, why);
	if (mute)
		return CONN_CLOSE;
	if (!r)
		return refuse_in_short(c, status);
	r->pub.method = stream_asks_head(&c->stream) ? WEIR_HTTP_HEAD : WEIR_HTTP_GET;
	r->pub.minor = 1;
	r->refusal = r->answered = true;
	conn_append(c, r);
	refusal_text(r, status, why);
	if (code)
		weir_http_add_field(&r->pub, "X-Weir-Limit", code);
	pages_apply(c->io, r);
	conn_make_ready(c);
	return CONN_WAIT;
}

enum conn_next conn_refuse(struct conn *c, int status, const char *why)
{
	return refuse(c, status, why, NULL);
}

static enum conn_next refuse_for(struct conn *c, enum limit l, const char *why)
{
	limit_count(c->io, l);
	return refuse(c, rows[l].status, why, rows[l].code);
}

enum conn_next limit_refuse(struct conn *c, enum limit l)
{
	return refuse_for(c, l, rows[l].text);
}

/* The limit that the parser means by `status`, or N_LIMITS. */
static enum limit parsed(int status)
{
	switch (status) {
	case 413:
		return LIMIT_BODY;
	case 414:
		return LIMIT_TARGET;
	case 431:
		return LIMIT_HEAD;
	case 503:
		return LIMIT_MEMORY;
	default:
		return N_LIMITS;
	}
}

enum conn_next limit_refuse_parsed(struct conn *c, int status, const char *why)
{
	enum limit l = parsed(status);

	return l < N_LIMITS ? refuse_for(c, l, why) : refuse(c, status, why, NULL);
}

void limit_tear(struct conn *c, enum limit l)
{
	limit_count(c->io, l);
	conn_tear_part(c, WEIR_EGONE, rows[l].status, rows[l].code);
}

void limit_tear_parsed(struct conn *c, int status)
{
	enum limit l = parsed(status);

	if (l == LIMIT_MEMORY) {
		limit_tear(c, l);
		return;
	}
	if (l < N_LIMITS)
		limit_count(c->io, l);
	/* WEIR_EINVAL: the stage need not read the rest of a malformed body (parts.c) */
	conn_tear_part(c, WEIR_EINVAL, status, l < N_LIMITS ? rows[l].code : NULL);
}

/* ---- clients without a connection ---- */

void limit_tell(struct http_io *io, int fd)
{
	char head[COMPOSE_BARE_MAX];

	if (!io->srv->net.tls)
		(void)!TEMP_FAILURE_RETRY(send(fd, head, compose_bare(503, 1, head), MSG_NOSIGNAL));
	shutdown(fd, SHUT_WR);
	/* Read what has arrived, since unread data would turn the close into a reset. */
	(void)!TEMP_FAILURE_RETRY(recv(fd, io->scratch.out, sizeof(io->scratch.out), MSG_DONTWAIT));
	close(fd);
}
