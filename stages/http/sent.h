/* SPDX-License-Identifier: MIT */
/*
 * What is to be told when the answer of a request has left, or never will: the taps of weir/http.h run when a request is finished,
 * which is before its answer is sent.
 *
 *   finished (any thread): sent_await --> home --> the I/O thread sends --> all of it is the kernel's: told, whole
 *                                                                    '--> the connection ended first: told, not whole
 *
 * Each is told exactly once, in the connection's I/O thread, while the request, its slices and its connection are still there; a
 * request that nobody waits for costs a branch.
 */
#ifndef WEIR_HTTP_SENT_H
#define WEIR_HTTP_SENT_H

#include <stdbool.h>
#include <stdint.h>

#include "http/request.h"

struct conn;

/** Embedded in what waits, and its own to free when told. */
struct http_sent {
	struct http_sent *next;
	void (*fn)(struct http_sent *sent, struct http_req *r, bool whole);
	int64_t bytes; /* of the body: all of them, then those that the kernel has taken */
};

/** Bytes of the body that `req`, which is finished, is answered with; 0 for HEAD and answers without one. */
int64_t sent_body_bytes(const struct weir_http_request *req);

/** Have s->fn called. In a tap of `r`, which has a loop. */
static inline void sent_await(struct http_req *r, struct http_sent *s)
{
	s->bytes = sent_body_bytes(&r->pub);
	s->next = r->sent;
	r->sent = s;
}

/** Tell all that wait. `whole`: the answer is sent; else it never will be. `r` is the first request of `c`. The I/O thread. */
void sent_tell(struct conn *c, struct http_req *r, bool whole);

/** The answer of `r` became another one behind the taps. The I/O thread. */
void sent_again(struct http_req *r);

#endif
