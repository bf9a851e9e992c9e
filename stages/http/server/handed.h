/* SPDX-License-Identifier: MIT */
/*
 * The rest of a response, handed from one server to the next (net/handover.h).
 *
 *   old server: the first request of a connection is answered, but its client reads slowly
 *               --handed_take--> its bytes, or a descriptor of its file, nothing of the old graph
 *   new server: --handed_request--> a request that is already answered
 *               --handed_begin--> the first one of the connection
 *
 * A download therefore does not keep alive the graph in which it began. Bytes that belong to a
 * stage are copied, provided that all copies together are at most half of the memory that the
 * connections of the new server may hold. A body with its own memory changes owner. A file is sent
 * from a duplicated descriptor, which responses with the same file share (handed_file.h). Waiters
 * for the response (sent.h) are notified of the handover, with the number of bytes sent before it,
 * since nothing in the old graph can be notified later.
 *
 * A response is not handed over if it is streamed, if other requests follow it, or if its request
 * is still being read.
 */
#ifndef WEIR_HTTP_HANDED_H
#define WEIR_HTTP_HANDED_H

#include <stdbool.h>

struct conn;
struct handed;
struct http_io;
struct http_req;
struct http_server;

/** Whether `c` is only sending a response, so that the rest of the response could be handed over
 * with the connection. All functions here run in the I/O thread. */
bool handed_fits(const struct conn *c);

/** Detach the rest of the response of `c`, and drop its only request. Returns NULL, with the
 * response still in `c`, if memory or descriptors do not suffice. */
struct handed *handed_take(struct conn *c);

/** Pass `h` on to `successor`, which replaces the server that `h` was taken for. `h` may be
 * NULL. */
void handed_on(struct handed *h, struct http_server *successor);

/** Allocate a request of `io` for handed_begin; returns NULL if out of memory. The caller must
 * release it with pool_req_drop if it is not used. */
struct http_req *handed_request(struct http_io *io);

/** Make `r` the first request of the new connection `c`, already answered with `h`. `h` is freed
 * with the response. */
void handed_begin(struct conn *c, struct http_req *r, struct handed *h);

/** Free a response that will not be sent. NULL is allowed. */
void handed_free(struct handed *h);

#endif
