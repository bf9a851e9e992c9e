/* SPDX-License-Identifier: MIT */
/* Takes a client's connection away from http.server, for stages of this tree that answer with 101. */
#ifndef WEIR_HTTP_TAKE_H
#define WEIR_HTTP_TAKE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/http.h>
#include <weir/io.h>

struct tls_conn;

/** A connection that is taken; the caller owns all of it. */
struct http_taken {
	int fd;
	struct tls_conn *tls; /* NULL without TLS; call tls_conn_move before use */
	char *early;          /* what the client has sent behind its request; NULL if nothing */
	size_t n_early;
};

/** Whether the request asks for a protocol by Upgrade and Connection, so that nothing that its client has
 * sent behind it is taken for a request before it is answered. Any thread. */
bool http_asks_upgrade(const struct weir_http_request *req);

/** Whether http_take can succeed for the request: its connection belongs to `loop`. The owner of the event, in
 * the thread of `loop`. */
bool http_may_take(const struct weir_http_request *req, const struct weir_loop *loop);

/** Take the connection of `req`, whose event the caller owns, in the thread of its loop. For http.server it is
 * then closed: the event must be finished, and its answer is dropped. Returns 0, or WEIR_EBUSY if answers to
 * earlier requests are not sent yet, WEIR_EGONE if it has been closed, WEIR_ENOMEM. */
int http_take(struct weir_http_request *req, struct http_taken *out);

#endif
