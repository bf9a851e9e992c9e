/* SPDX-License-Identifier: MIT */
/*
 * A request inside http.server: the public part, followed by what the connection needs.
 *
 * Lifecycle, and the thread that may access it:
 *   taken from the pool, filled             the I/O thread
 *   emitted                                 the owner of the event: only the public part
 *   finished: taps, default response        the finishing thread, which then returns it
 *   `answered`, written, back to the pool   the I/O thread
 * `conn`, `loop` and the slices do not change between emission and return, so field getters may
 * read them in the owning thread.
 *
 * A request without `loop` belongs to its creator (zeroed, weir_http_request_type.size bytes).
 * Finishing it fills in a default response and runs the taps; the rest is left to the creator.
 * Tests use such requests.
 */
#ifndef WEIR_HTTP_REQUEST_H
#define WEIR_HTTP_REQUEST_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/http.h>
#include <weir/op.h>
#include <weir/trace.h>
#include <weir/io.h>

/** Number of headers that are stored without an allocation; browsers send 10 to 20. */
#define REQUEST_HEADERS_INLINE 24

struct conn;
struct rbuf;
struct transfer;
struct http_filter;
struct http_head;
struct http_sent;
struct http_kept;
struct http_waker;

struct http_req {
	struct weir_http_request pub;
	struct weir_loop *loop;
	struct conn *conn;
	/* next request of the connection, in order of arrival, or next in the free list */
	struct http_req *next;
	struct rbuf *in; /* the buffer that the slices point into; holds a reference */
	/* Headers beyond the inline ones, then path, query and host in normal spelling; owned or
	 * NULL. */
	void *mem;
	struct http_kept *kept; /* target.c: memory that stages keep with the request; owned */
	uint32_t kept_bytes;    /* size of `kept` */
	char *body_mem;         /* a body that is not in the buffer `in`, owned */
	uint64_t body_size;     /* bytes allocated in body_mem */
	uint64_t body_n;        /* bytes that have arrived in body_mem */
	uint64_t held_bytes;    /* the part of pool->held_bytes for `mem` and the response */
	uint64_t wire_bytes;    /* bytes received from the client for this request */
	int16_t outcome;        /* status with which the request was finished */
	bool answered;          /* returned from the graph: the response may be written */
	bool keep_alive;        /* the client wants to keep the connection open */
	bool upgrade; /* asks for another protocol: nothing behind it is parsed before its answer */
	bool taken;   /* belongs to the I/O thread: its connection was taken (conn/take.h) */
	/* we close the connection after this request: keep_alive_requests is reached, or the
	 * streamed body was cut off (transfer_tear) */
	bool last;
	bool expects; /* the head had Expect: 100-continue; constant */
	/* the client's method was HEAD, even if a stage changes it; constant */
	bool head;
	bool body_taken; /* belongs to the owner: weir_http_body_next has returned a whole body */
	bool lost;       /* belongs to the owner: a filter could not pass on all of the response */
	bool streams;    /* belongs to the I/O thread: the response is streamed */
	bool expect_continue;
	/* What a trusted proxy says of its client; constant. `client_n` is 0 if it says nothing. */
	uint8_t client_n;
	bool has_scheme, is_secure; /* the client's scheme is known; it is https */
	bool from_forwarded;        /* `client` comes from Forwarded, not from X-Forwarded-For */
	bool not_awaited;           /* belongs to the I/O thread: counted in io->not_awaited */
	bool refusal;               /* was never in the graph: exists only to carry a refusal */
	/* A stage has finished the request as WEIR_ERATE because of a limit of its own: the status of the
	 * answer, 0 without such a limit, and its Retry-After. Belong to the owner. */
	uint16_t limit_status;
	uint32_t limit_s;
	/* notified when the response has been sent (sent.h); belongs to the event's owner, then to
	 * the I/O thread */
	struct http_sent *sent;
	/* Date of the answer of an origin, which http.client does not pass on; `date_n` is 0 without one */
	uint8_t date_n;
	char date[29];
	/* filters of the response (filter.h), the last added first; belong to the event's owner */
	struct http_filter *filters;
	/* set if the body or the response is streamed; belongs to the I/O thread until emission,
	 * then to the event's owner */
	struct transfer *transfer;
	/* copy of `transfer`, set by the I/O thread when it learns of the transfer */
	struct transfer *known_transfer;
	/* weir_http_family; NULL before. The owner of the event sets it, the I/O thread ends it and has
	 * the reference. */
	_Atomic(struct weir_family *) family;
	/* waker.h; NULL before. The owner of the event sets it, the I/O thread drops it. */
	_Atomic(struct http_waker *) waker;
	char client[INET6_ADDRSTRLEN]; /* with `client_n` */
	struct weir_op op;
	struct weir_trail trail;
	struct weir_payloads payloads;
	struct weir_http_header headers[REQUEST_HEADERS_INLINE];
};

/** Fill the public part from a good head, and set `*held` to the size of r->mem. Returns 0 or
 * WEIR_ENOMEM. */
int request_fill(struct http_req *r, const struct http_head *head, uint64_t *held);

/** Return `bytes` of memory that is freed when the request is, after its response has been sent; NULL if
 * out of memory. Aligned for any type. Only the owner of the event. */
void *request_keep(struct http_req *r, size_t bytes);
/** Free that memory. Path, query and fields of the request must not be read any more. */
void request_kept_drop(struct http_req *r);

/** Maximum bytes of fields in a response head, so that the head fits into the writer's buffer.
 * Clients accept no more than 8 to 16 KiB. */
#define RESPONSE_FIELDS_MAX 16384

/** Whether a stage may send this field. */
bool response_field_good(const char *name, const char *value);

/** Reserve `n` more bytes for fields. Returns NULL if out of memory. The caller must write
 * well-formed fields there, and then call request_fields_to with the end of what it wrote. */
char *request_fields_room(struct weir_http_request *req, size_t n);
void request_fields_to(struct weir_http_request *req, const char *end);

/** Remove the fields called `name` that were added one by one. */
void request_field_drop(struct weir_http_request *req, const char *name);

/** Return the value of the first field called `name` of the response that stands; {NULL, 0} if there is
 * none. Valid until the fields change. */
struct weir_slice response_field(const struct weir_http_request *req, const char *name);

/** Copy the preformatted fields of the response to those that were added one by one, so that each can be
 * removed. Returns 0 or WEIR_ENOMEM. */
int response_own_fields(struct weir_http_request *req);

/** Replace the body of a response that is not in parts by bytes that stay valid until `release(arg)` runs,
 * and keep its status and fields. The old body is released. Returns 0, or WEIR_EINVAL or WEIR_ENOMEM, after
 * which the response is unchanged, and `release` has been called. */
int response_replace_body(
    struct weir_http_request *req, struct weir_slice body, void (*release)(void *arg), void *arg);

/** Drop the fields that were added one by one, and free what they own. */
void request_fields_reset(struct weir_http_request *req);

#endif
