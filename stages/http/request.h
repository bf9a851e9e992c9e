/* SPDX-License-Identifier: MIT */
/*
 * A request as http.server has it: the public part first, then what the connection needs.
 *
 * Life, and who may touch it:
 *   taken from the pool, filled             the I/O thread
 *   emitted                                 whoever owns the event: the public part only
 *   finished: taps, default answer          the finishing thread, then handed home
 *   `answered`, written, back to the pool   the I/O thread
 * `conn`, `loop` and the slices do not change between emission and home-coming, so field getters
 * may read them in the owning thread.
 *
 * A request with no `loop` belongs to whoever made it (zeroed, weir_http_request_type.size bytes):
 * its finish fills in a default answer, runs the taps and leaves the rest to the maker. Tests use
 * that.
 */
#ifndef WEIR_HTTP_REQUEST_H
#define WEIR_HTTP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/http.h>
#include <weir/io.h>

/** Headers that need no allocation: browsers send 10 to 20. */
#define REQUEST_HEADERS_INLINE 24

struct conn;
struct rbuf;
struct transfer;
struct http_head;
struct http_sent;

struct http_req {
	struct weir_http_request pub;
	struct weir_loop *loop;
	struct conn *conn;
	struct http_req *next; /* of its connection, in order of arrival; or the free list */
	struct rbuf *in;       /* the buffer that the slices point into; one reference */
	struct weir_http_header *headers_mem; /* when there are more than fit inline, owned */
	char *body_mem;                       /* body that is not in the buffer, owned */
	uint64_t body_size;                   /* bytes allocated there */
	uint64_t body_n;                      /* bytes arrived there */
	uint64_t held_bytes; /* of headers_mem and of the answer, in pool->held_bytes */
	uint64_t wire_bytes; /* that the client has sent for it */
	int16_t outcome;     /* status it was finished with */
	bool answered;       /* home again, the answer may be written */
	bool keep_alive;     /* the client would go on */
	bool last;           /* we would not: the connection has had its requests */
	bool expects;        /* came with Expect: 100-continue; constant, like */
	bool head;           /* the client asked by HEAD, whatever stages make of it */
	bool body_taken;     /* the owner's: weir_http_body_next gave a whole body */
	bool streams;        /* the I/O thread's: its answer goes out in parts */
	bool expect_continue;
	bool refusal; /* never was in the graph: the answer to a malformed request */
	struct http_sent *
	    sent; /* to be told when the answer has left (sent.h); the owner's, then the I/O thread's */
	struct transfer *
	    transfer; /* body or answer in parts: the I/O thread's until it is emitted, then the owner's */
	struct transfer
	    *known_transfer; /* the same once the I/O thread knows, which alone reads it */
	struct weir_trail trail;
	struct weir_http_header headers[REQUEST_HEADERS_INLINE];
};

/** Fill the public part from a good head. 0 or WEIR_ENOMEM. */
int request_fill(struct http_req *r, const struct http_head *head);

/** Bytes of fields that one head may carry: far more than clients accept (8 to 16 KiB), and a bound for the writer. */
#define RESPONSE_FIELDS_MAX 16384

/** May a stage send this field? */
bool response_field_good(const char *name, const char *value);

/** Forget fields added one by one (frees what they own). */
void request_fields_reset(struct weir_http_request *req);

#endif
