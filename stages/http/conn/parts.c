/* SPDX-License-Identifier: MIT */
/*
 * The stages' side of streamed bodies: reading an upload, writing a response, and waiting for
 * either. The counterpart of transfer.c. Only the owner of the event calls these functions.
 */
#include <weir/http.h>

#include <stdlib.h>
#include <string.h>

#include "http/conn/await.h"
#include "http/conn/conn.h"
#include "http/conn/parts.h"
#include "http/request/filter.h"
#include "http/request/transfer.h"

static struct http_req *req_of(struct weir_http_request *req)
{
	return weir_event_cast(&req->ev, &weir_http_request_type);
}

/* Make the I/O thread check the transfer, unless a signal is in flight. The caller holds the lock,
 * so that the signal is sent before any thread can see the flag. */
static void signal_locked(struct transfer *t)
{
	if (t->signalled)
		return;
	t->signalled = true;
	weir_loop_send(t->r->loop, &t->signal);
}

/* ---- reading ---- */

bool weir_http_body_streamed(const struct weir_http_request *req)
{
	const struct http_req *r = (const struct http_req *)req;

	return r->transfer && r->transfer->in.mem;
}

static int whole_body(struct http_req *r, struct weir_slice *part)
{
	if (r->body_taken || r->pub.body.n == 0)
		return WEIR_HTTP_BODY_END;
	r->body_taken = true;
	*part = r->pub.body;
	return WEIR_HTTP_BODY_PART;
}

/* Mark the bytes lent to the stage as read, and lend it the next ones. */
static int next_locked(struct transfer *t, struct weir_slice *part)
{
	t->in.taken += t->lent;
	t->lent = 0;
	/* The rest of a malformed body is useless, so return the error immediately: a stage that
	 * has not begun its response can still respond with the status of the error. */
	if (t->in_state == TRANSFER_TORN && t->in_error == WEIR_EINVAL)
		return t->in_error;
	if (ring_used(&t->in) > 0) {
		*part = ring_first(&t->in);
		t->lent = part->n;
	}
	/* Signal when half of the ring is free, not for every few bytes. The ring is always empty
	 * before a stage waits, so the I/O thread has always been signalled by then. */
	if (t->starved && ring_free(&t->in) >= t->in.size / 2) {
		t->starved = false;
		signal_locked(t);
	}
	if (t->lent > 0)
		return WEIR_HTTP_BODY_PART;
	if (t->in_state != TRANSFER_OPEN)
		return t->in_state == TRANSFER_WHOLE ? WEIR_HTTP_BODY_END : t->in_error;
	if (!t->asked) {
		t->asked = true;
		if (t->r->expects)
			signal_locked(t);
	}
	return WEIR_HTTP_BODY_WAIT;
}

int weir_http_body_next(struct weir_http_request *req, struct weir_slice *part)
{
	struct http_req *r = req_of(req);
	struct transfer *t = r->transfer;

	*part = (struct weir_slice){NULL, 0};
	if (!weir_http_body_streamed(req))
		return whole_body(r, part);
	pthread_mutex_lock(&t->lock);
	int rc = next_locked(t, part);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

/* ---- writing ---- */

static bool has_no_body(const struct http_req *r)
{
	return r->head || r->pub.res.no_length;
}

/* Make sure that `r` has a transfer, with a ring for the response unless it has no body. */
static int prepare(struct http_req *r)
{
	struct http_io *io = r->conn->io;
	struct transfer *t = r->transfer;

	if (!t)
		t = r->transfer = transfer_new(r, &io->pool);
	if (!t)
		return WEIR_ENOMEM;
	if (has_no_body(r) || t->out.mem)
		return 0;
	/* The I/O thread does not read `out` before it is signalled that the response has begun. */
	return transfer_ring(t, &t->out, io->pool.part_bytes);
}

int http_stream_begin_length(
    struct weir_http_request *req, int status, const char *content_type, int64_t length)
{
	struct http_req *r = req_of(req);
	int rc;

	/* without a client, the answer is for the filters */
	if ((!r->loop && !r->filters) || req->res.streamed)
		return WEIR_EINVAL;
	rc = weir_http_respond(req, status, content_type, (struct weir_slice){NULL, 0}, NULL, NULL);
	if (rc != 0)
		return rc;
	if (WEIR_UNLIKELY(r->filters != NULL))
		rc = filters_head(req, &length);
	if (rc == 0 && r->loop)
		rc = prepare(r);
	if (rc != 0) {
		weir_http_response_reset(req);
		return rc;
	}
	struct transfer *t = r->transfer;
	req->res.streamed = true;
	if (!r->loop)
		return 0;
	t->bodiless = has_no_body(r);
	t->length = length;
	t->chunked = req->minor > 0 && !t->bodiless && length < 0;
	if (req->minor == 0) /* HTTP/1.0 has no trailers */
		request_field_drop(req, "Trailer");
	weir_count(t->meter->stage, SERVER_PART_ANSWERS, 1);
	pthread_mutex_lock(&t->lock);
	t->out_state = TRANSFER_BEGUN;
	signal_locked(t);
	pthread_mutex_unlock(&t->lock);
	return 0;
}

int weir_http_stream_begin(struct weir_http_request *req, int status, const char *content_type)
{
	return http_stream_begin_length(req, status, content_type, -1);
}

/* Make the I/O thread send the bytes of the ring, if it has found the ring empty. */
static void signal_bytes_locked(struct transfer *t)
{
	if (!t->idle || ring_used(&t->out) == 0)
		return;
	t->idle = false;
	signal_locked(t);
}

/* Copy as much of `data` into the ring as fits. Only the caller adds bytes, so space that was free
 * stays free; the I/O thread adds those of a tail, before which no others may go. */
static size_t write_some(struct transfer *t, struct weir_slice data)
{
	size_t done = 0;

	while (done < data.n) {
		char *room;
		pthread_mutex_lock(&t->lock);
		size_t n = transfer_has_tail(t) ? 0 : ring_space(&t->out, &room);
		pthread_mutex_unlock(&t->lock);
		if (n == 0)
			break;
		n = n < data.n - done ? n : data.n - done;
		memcpy(room, data.p + done, n);
		pthread_mutex_lock(&t->lock);
		t->out.put += n;
		signal_bytes_locked(t);
		pthread_mutex_unlock(&t->lock);
		done += n;
	}
	return done;
}

static bool is_gone(struct transfer *t)
{
	pthread_mutex_lock(&t->lock);
	bool gone = t->gone;
	pthread_mutex_unlock(&t->lock);
	return gone;
}

/* Whether filters may be given more: not if the client has gone, or if it has not taken yet what the ring had
 * no room for. */
static bool takes_more(struct transfer *t)
{
	pthread_mutex_lock(&t->lock);
	bool more = !t->gone && !transfer_has_tail(t);
	pthread_mutex_unlock(&t->lock);
	return more;
}

int64_t parts_write(struct weir_http_request *req, struct weir_slice data)
{
	struct transfer *t = req_of(req)->transfer;

	if (!t)
		return (int64_t)data.n; /* there is no client */
	if (is_gone(t))
		return WEIR_EGONE;
	size_t n = t->bodiless ? data.n : write_some(t, data);
	if (n < data.n && t->keeps_all) {
		pthread_mutex_lock(&t->lock);
		transfer_keep_locked(t, (struct weir_slice){data.p + n, data.n - n});
		signal_bytes_locked(t);
		pthread_mutex_unlock(&t->lock);
		n = data.n;
	}
	t->written += (int64_t)n;
	return (int64_t)n;
}

int64_t weir_http_stream_write(struct weir_http_request *req, struct weir_slice data)
{
	struct http_req *r = req_of(req);

	if (!req->res.streamed)
		return WEIR_EINVAL;
	if (WEIR_UNLIKELY(r->filters != NULL) && r->transfer && !takes_more(r->transfer))
		return is_gone(r->transfer) ? WEIR_EGONE : 0;
	return filters_write(r->filters, req, data);
}

int weir_http_stream_trailer(struct weir_http_request *req, const char *name, const char *value)
{
	struct transfer *t = req_of(req)->transfer;
	size_t n = strlen(name) + strlen(value) + 4;
	char *more;

	if (!req->res.streamed || !response_field_good(name, value))
		return WEIR_EINVAL;
	if (!t->chunked) /* without chunks a trailer cannot be sent */
		return 0;
	if (t->n_trailers + n > RESPONSE_FIELDS_MAX)
		return WEIR_ENOMEM;
	more = realloc(t->trailers, t->n_trailers + n);
	if (!more)
		return WEIR_ENOMEM;
	t->trailers = more;
	char *at = mempcpy(more + t->n_trailers, name, strlen(name));
	at = mempcpy(at, ": ", 2);
	at = mempcpy(at, value, strlen(value));
	memcpy(at, "\r\n", 2);
	t->n_trailers += n;
	return 0;
}

int64_t weir_http_stream_bytes(const struct weir_http_request *req)
{
	const struct http_req *r = (const struct http_req *)req;

	return req->res.streamed && r->transfer && !r->transfer->bodiless ? r->transfer->written
									  : 0;
}

/* ---- waiting ---- */

void weir_http_wait(struct weir_stage *st, struct weir_event **ev, unsigned what)
{
	struct http_req *r = weir_event_cast(*ev, &weir_http_request_type);
	struct transfer *t = r->transfer;
	struct weir_event *e = *ev;

	WEIR_ASSERT(t && what != 0); /* only a request with a transfer can have returned "wait" */
	if (what & WEIR_HTTP_BODY)   /* an answer that follows the body should not lag behind it */
		http_stream_flush(&r->pub);
	weir_hold(st, ev);
	pthread_mutex_lock(&t->lock);
	WEIR_ASSERT(!t->waiter);
	if (!transfer_due_locked(t, what)) {
		t->waiter = st;
		t->waits_for = (uint8_t)what;
		e = NULL; /* the event belongs to the I/O thread now */
	}
	pthread_mutex_unlock(&t->lock);
	if (e)
		weir_requeue(st, &e);
}
