/* SPDX-License-Identifier: MIT */
/*
 * Notifies waiters when the response of a request has been sent, or as soon as it can no longer be
 * sent. (The taps of weir/http.h run earlier: when the request is finished, before its response is
 * sent.)
 *
 *   finished (any thread): sent_await --> the I/O thread sends
 *       --> the kernel has all of it: HTTP_SENT_WHOLE
 *       --> the connection was closed first: HTTP_SENT_TORN
 *       --> a reload handed it over (handed.h): HTTP_SENT_HANDED
 *
 * Each waiter is notified exactly once, in the connection's I/O thread, while the request, its
 * slices and its connection still exist. A request without a waiter costs a branch.
 */
#ifndef WEIR_HTTP_SENT_H
#define WEIR_HTTP_SENT_H

#include <stdbool.h>
#include <stdint.h>

#include "http/request/request.h"

/** What happened to a response. */
enum http_sent_how {
	HTTP_SENT_TORN,   /* the connection was closed first */
	HTTP_SENT_WHOLE,  /* the kernel has accepted all of the response */
	HTTP_SENT_HANDED, /* a reload has handed the rest to the server of another graph */
};

/** One waiter. Embedded in the caller's struct, which `fn` may free. */
struct http_sent {
	struct http_sent *next;
	void (*fn)(struct http_sent *sent, struct http_req *r, enum http_sent_how how);
	/* bytes of the body: initially all of them; when `fn` is called, those that the kernel has
	 * accepted */
	int64_t bytes;
};

/** Return the size of the response body of the finished request `req`; 0 for HEAD and for responses
 * without a body. */
int64_t sent_body_bytes(const struct weir_http_request *req);

/** Register `s`: s->fn is called when the response of `r` has been sent, or as soon as it can no
 * longer be sent. Must be called in a tap of `r`, and r->loop must not be NULL. */
static inline void sent_await(struct http_req *r, struct http_sent *s)
{
	s->bytes = sent_body_bytes(&r->pub);
	s->next = r->sent;
	r->sent = s;
}

/** Notify all waiters of `r`. `body_off` is the number of bytes sent if the body is in memory. It
 * is not used for pieces, files and streams, whose unsent bytes are counted in `r`. I/O thread
 * only. */
void sent_tell(struct http_req *r, enum http_sent_how how, int64_t body_off);

/** Correct the bytes of the waiters of `r`, whose response was replaced after the taps ran. I/O
 * thread only. */
void sent_again(struct http_req *r);

#endif
