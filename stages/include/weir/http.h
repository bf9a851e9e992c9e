/* SPDX-License-Identifier: MIT */
/*
 * HTTP requests as events, for stages that answer them.
 *
 * `http.server` makes one event per request; a stage fills in the response and finishes the event,
 * or emits it onwards for another stage to answer. All slices of the request stay valid until the
 * event is finished. A request finished as WEIR_OK without a response is answered 204; as SHED 503
 * with Retry-After, X-Weir-Shed and, when a door refused it, X-Weir-Shed-Id; as WEIR_ECLOSED 503 with
 * Retry-After; as any other failure 500. Both failures name the request's trace in X-Weir-Trace, if it has one.
 *
 * Bodies may move in parts. With `stream:` of http.server a long body is not waited for: the event leaves with the rest to
 * come, and the stage takes it by weir_http_body_next(). A stage may answer in parts, too, by weir_http_stream_begin().
 * Neither ever blocks a handler: who has nothing to do lets go of the event with weir_http_wait() and is called with it
 * again. What a stage keeps per event is freed by a tap, since an event may also end without another call.
 *
 * Only the owner of the event may touch the request. No call blocks; those that can fail say so.
 */
#ifndef WEIR_HTTP_H
#define WEIR_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/event.h>

/* The type of the events. Fields for classes, cohorts and partitions: path, method, host, target,
 * address, connection, scheme, tls, sni, header.NAME. */
WEIR_API extern const struct weir_event_type weir_http_request_type;

#define WEIR_HTTP_METHODS(X) X(GET) X(HEAD) X(POST) X(PUT) X(DELETE) X(PATCH) X(OPTIONS) X(OTHER)

enum weir_http_method {
#define WEIR_HTTP_METHOD_ENUM(m) WEIR_HTTP_##m,
	WEIR_HTTP_METHODS(WEIR_HTTP_METHOD_ENUM)
#undef WEIR_HTTP_METHOD_ENUM
};

struct weir_http_header {
	struct weir_slice name, value; /* as sent; names compare without case */
};

/** Bytes of response fields that need no allocation. */
#define WEIR_HTTP_FIELDS_INLINE 256

struct weir_http_request;
struct weir_stage;

/** Runs once when the request is finished, before the answer leaves, in the finishing thread; the
 *  response may be read and changed, and events that its stage holds may be emitted or finished,
 * since the thread is one of the graph. Must not block. A tap that is in the way is the first in a
 *  list; taps run last added first. Memory of the struct is its owner's until `fn` has run. */
struct weir_http_tap {
	void (*fn)(struct weir_http_tap *tap, struct weir_http_request *req, int status);
	struct weir_http_tap *next;
};

/** One piece of a body that is made of several. */
struct weir_http_piece {
	const char *p;  /* bytes p[0..n); NULL: bytes [offset, offset+n) of the response's fd */
	int64_t offset; /* in the file; 0 for bytes */
	int64_t n;      /* not negative */
};

struct weir_http_response {
	uint16_t status; /* 0: none yet */
	bool no_length;  /* do not send Content-Length (204, 304) */
	bool close;      /* close the connection after this answer */
	bool
	    streamed; /* sent in parts, weir_http_stream_begin: neither body nor fd, no more changes */
	uint16_t n_pieces; /* when > 0 the body is piece[n_pieces], `length` bytes in all */
	struct weir_slice
	    fields;             /* ready-made lines, weir_http_fields_good, valid until released */
	struct weir_slice body; /* bytes, valid until released */
	int fd;                 /* when >= 0 the body is file bytes [offset, offset+length) */
	int64_t offset, length;
	struct weir_http_piece
	    *piece; /* valid until released; http.server shortens them as they are sent */
	/** Called once when body, fields and fd are no longer needed: sent, or never to be sent. In
	 *  the connection's I/O thread or the finishing one. NULL: nothing to release. */
	void (*release)(void *arg);
	void *release_arg;
};

struct weir_http_request {
	struct weir_event ev; /* first: weir_event_cast(ev, &weir_http_request_type) */
	enum weir_http_method method;
	uint8_t minor;                 /* 0 or 1 of HTTP/1.x */
	uint8_t n_headers;             /* at most 100 */
	struct weir_slice method_text; /* "GET" */
	struct weir_slice target;      /* as sent: "/a%20b?q=1" */
	struct weir_slice path;  /* target up to '?', still encoded, begins with '/' (or "*") */
	struct weir_slice query; /* behind '?', may be empty */
	struct weir_slice host;  /* from Host or the absolute target, lower case not forced */
	struct weir_slice body;  /* whole body; empty when it comes in parts */
	const struct weir_http_header *headers;
	struct weir_http_response res;
	struct weir_http_tap *taps;
	char *fields;      /* response fields added one by one: fields_inline or malloc'd */
	uint32_t n_fields; /* bytes used */
	uint32_t fields_size;
	char fields_inline[WEIR_HTTP_FIELDS_INLINE];
	/* what http.server keeps per request follows in its own struct */
};

/** The request of an event: checked cast. */
static inline struct weir_http_request *weir_http_request(struct weir_event *ev)
{
	return weir_event_cast(ev, &weir_http_request_type);
}

/** The value of the first header called `name` (without case), {NULL, 0} when there is none. */
WEIR_API struct weir_slice weir_http_header(const struct weir_http_request *req, const char *name);

/**
 * Answer with `status` and a body that stays valid until `release(arg)` runs (static bytes: NULL).
 * `content_type` may be NULL; it is copied. Replaces an earlier response, releasing it. Returns 0,
 * or WEIR_EINVAL / WEIR_ENOMEM with `release` already called and a 500 in place.
 */
WEIR_API int weir_http_respond(struct weir_http_request *req, int status, const char *content_type,
    struct weir_slice body, void (*release)(void *arg), void *arg);

/** Answer with a body that is copied now. */
WEIR_API int weir_http_respond_copy(
    struct weir_http_request *req, int status, const char *content_type, struct weir_slice body);

/** Answer with bytes [offset, offset+length) of `fd` by sendfile; `release(arg)` closes it. */
WEIR_API int weir_http_respond_file(struct weir_http_request *req, int status,
    const char *content_type, int fd, int64_t offset, int64_t length, void (*release)(void *arg),
    void *arg);

/** Answer with the bytes of `piece[n]`, 1 <= n <= 65535, one behind the other. The array stays valid until `release(arg)`
 *  runs and is changed meanwhile; so do the bytes and `fd`, which those without bytes are of (-1: all have some). They are
 *  sent from where they are. Errors as weir_http_respond. */
WEIR_API int weir_http_respond_pieces(struct weir_http_request *req, int status,
    const char *content_type, struct weir_http_piece *piece, int n, int fd,
    void (*release)(void *arg), void *arg);

/** Bytes of the body that `res` has, in whatever form; 0 for one that is sent in parts. */
static inline int64_t weir_http_body_bytes(const struct weir_http_response *res)
{
	return res->fd >= 0 || res->n_pieces > 0 ? res->length : (int64_t)res->body.n;
}

/** A small plain-text answer, "404 Not Found\n". */
WEIR_API int weir_http_respond_status(struct weir_http_request *req, int status);

/** Add a response field. CR, LF, NUL or a bad name: WEIR_EINVAL, nothing added (no response
 *  splitting). Fields that http.server writes itself (Content-Length, Date, Connection,
 *  Transfer-Encoding) are refused too. WEIR_ENOMEM. */
WEIR_API int weir_http_add_field(
    struct weir_http_request *req, const char *name, const char *value);

/**
 * Are these ready-made lines fit for `res.fields`: "Name: value\r\n" each, names and values as weir_http_add_field has
 * them? http.server does not look at every byte for every answer: a stage that makes such lines of anything but
 * weir_http_add_field asks this once. Builds without NDEBUG die on others. Any thread.
 */
WEIR_API bool weir_http_fields_good(struct weir_slice fields);

/** Run `tap` when the request is finished. */
WEIR_API void weir_http_add_tap(struct weir_http_request *req, struct weir_http_tap *tap);

/** The tap of `req` that runs `fn`, the last added first; NULL: there is none. So a stage finds what it keeps for an event
 *  that comes again. */
WEIR_API struct weir_http_tap *weir_http_find_tap(const struct weir_http_request *req,
    void (*fn)(struct weir_http_tap *tap, struct weir_http_request *req, int status));

/** Call and clear the response's release and forget the response. One that is sent in parts already stays. */
WEIR_API void weir_http_response_reset(struct weir_http_request *req);

/* ---- bodies in parts ---- */

enum weir_http_body {
	WEIR_HTTP_BODY_END,  /* that was all of it */
	WEIR_HTTP_BODY_PART, /* the next bytes */
	WEIR_HTTP_BODY_WAIT, /* none are here: weir_http_wait(st, &ev, WEIR_HTTP_BODY) */
};

/** What weir_http_wait waits for. */
enum weir_http_wait { WEIR_HTTP_BODY = 1, WEIR_HTTP_ROOM = 2 };

/** Does the body come in parts (`stream:` of http.server, and longer than that)? Then `req->body` is empty. */
WEIR_API bool weir_http_body_streamed(const struct weir_http_request *req);

/**
 * The next bytes of the body into *part, valid until the next call (over weir_http_wait and weir_requeue, too), no more
 * than `stream_buffer`; works the same for a body that is whole. Returns enum weir_http_body; or why the rest will never come,
 * now and ever after: WEIR_EGONE the client left or was too slow, WEIR_EINVAL the body is malformed or longer than
 * `max_body`, WEIR_ECLOSED the server stops. Finish with that code, and the client is told what was wrong. The first call
 * that has to wait lets the client begin that waits for "100 Continue". A lock for a moment, no copy.
 */
WEIR_API int weir_http_body_next(struct weir_http_request *req, struct weir_slice *part);

/**
 * Begin an answer of unknown length: `status`, `content_type` (may be NULL) and the fields added so far leave now, in
 * their turn. Chunked for HTTP/1.1, to the end of the connection for 1.0, without a body for HEAD, 204 and 304. From here on
 * the response does not change. The answer ends when the event is finished: with WEIR_OK as it should; with anything
 * else the connection is torn, so that the client can not take it for whole. Returns 0, or WEIR_EINVAL (status, type, begun
 * before, or a request of no server), WEIR_ENOMEM, WEIR_EPRESSURE (`body_memory` is used up) with nothing begun.
 */
WEIR_API int weir_http_stream_begin(
    struct weir_http_request *req, int status, const char *content_type);

/**
 * Give the next bytes of the answer, which are copied. Returns how many were taken, fewer than `data.n` when the buffer
 * is full: weir_http_wait(st, &ev, WEIR_HTTP_ROOM), and go on with the rest. WEIR_EGONE: nobody takes them any more,
 * finish. WEIR_EINVAL: not begun. Without a body (HEAD) all is taken and dropped.
 */
WEIR_API int64_t weir_http_stream_write(struct weir_http_request *req, struct weir_slice data);

/** Add a field behind the end of the answer; dropped where there is no place for it (HTTP/1.0, no body). As
 *  weir_http_add_field. */
WEIR_API int weir_http_stream_trailer(
    struct weir_http_request *req, const char *name, const char *value);

/** Bytes of the body that the stage gave to an answer in parts; 0 for others. */
WEIR_API int64_t weir_http_stream_bytes(const struct weir_http_request *req);

/**
 * Let go of `*ev` until there is something of `what`, bits of enum weir_http_wait, and store NULL: then `handle` of `st` is
 * called with it again, at once if it is here already. For WEIR_HTTP_BODY: bytes, the end, or an error. For
 * WEIR_HTTP_ROOM: half of the buffer is free, or the client has gone. Only after body_next or stream_write said so.
 */
WEIR_API void weir_http_wait(struct weir_stage *st, struct weir_event **ev, unsigned what);

/**
 * How long another server may take that is asked on behalf of `req`: what is left to its deadline, less the round trip
 * `rtt_ns` >= 0 to that server. ns; 0: too late, do not ask; WEIR_NO_DEADLINE: as long as it likes. Reads the clock,
 * about 25 ns; the owner of the request.
 */
WEIR_API int64_t weir_http_deadline_left_ns(const struct weir_http_request *req, int64_t rtt_ns);

/** Bytes that weir_http_deadline_field needs, with the NUL. */
#define WEIR_HTTP_DEADLINE_BYTES 40

/**
 * The same as a header field for the request to that server, "x-deadline-ms: 184\r\n" (rounded down), into `buf[size]`.
 * Returns its length; 0 and an empty text when there is no deadline; WEIR_EDEADLINE when less than 1 ms would be left: do
 * not ask; WEIR_EINVAL when `size` is too small. Empty text on both.
 */
WEIR_API int weir_http_deadline_field(
    const struct weir_http_request *req, int64_t rtt_ns, char *buf, size_t size);

/** Bytes that weir_http_trace_field needs, with the NUL. */
#define WEIR_HTTP_TRACE_BYTES 71

/**
 * The trace of `req` as a header field for a request to another server on its behalf (W3C Trace Context),
 * "traceparent: 00-<trace>-<span>-01\r\n", into `buf[size]`. The trace is the client's, or a new one; the span is that of
 * the stage that has the request. `tracestate` goes on as it came: weir_http_header. Returns the length, WEIR_EINVAL and
 * an empty text when `size` is too small. The owner of the request, in a thread of the graph; about 60 ns.
 */
WEIR_API int weir_http_trace_field(struct weir_http_request *req, char *buf, size_t size);

/** The port that entry `i` of `listen:` got (one asked for port 0 gets a free one); 0 when `st` is
 * no running http.server or has no such entry. Any thread, after the graph has started. */
WEIR_API uint16_t weir_http_port(const struct weir_stage *st, int i);

/** "Not Found" for 404; "Unknown" when not registered. Static. */
WEIR_API const char *weir_http_reason(int status);

/** Case-free comparison of a slice with a string. */
WEIR_API bool weir_slice_is(struct weir_slice s, const char *text);

#endif
