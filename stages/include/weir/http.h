/* SPDX-License-Identifier: MIT */
/*
 * HTTP requests as events, for stages that respond to them.
 *
 * `http.server` creates one event per request. A stage either fills in the response and finishes
 * the event, or emits it to another stage. All slices of the request stay valid until the event is
 * finished. A request finished as WEIR_OK without a response is answered with 204. One that was
 * shed is answered with 503, Retry-After and X-Weir-Shed, and with X-Weir-Shed-Id if admission
 * refused it. WEIR_ECLOSED results in 503 with Retry-After. Any other failure results in 500 or, if
 * weir_http_body_next has failed, in the status that matches that error. The responses to failures
 * name the request's trace, if it has one, in X-Weir-Trace.
 *
 * Bodies may be transferred in parts. With `stream:` of http.server the event of a long body is
 * emitted before the whole body has arrived, and the stage reads the rest with
 * weir_http_body_next(). A stage may also send its response in parts, with
 * weir_http_stream_begin(). A stage that cannot continue releases the event with weir_http_wait(),
 * and its `handle` is called with the event again later. A stage that allocates state per event
 * must free it in a tap, since the event may be finished without another call to `handle`.
 *
 * Only the owner of the event may touch the request. No function here blocks.
 */
#ifndef WEIR_HTTP_H
#define WEIR_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/event.h>

WEIR_C_BEGIN

/* The event type of HTTP requests. The fields available to classes, cohorts and partitions are
 * path, method, host, target, address, connection, scheme, tls, sni and header.NAME. */
WEIR_API extern const struct weir_event_type weir_http_request_type;

#define WEIR_HTTP_METHODS(X) X(GET) X(HEAD) X(POST) X(PUT) X(DELETE) X(PATCH) X(OPTIONS) X(OTHER)

enum weir_http_method {
#define WEIR_HTTP_METHOD_ENUM(m) WEIR_HTTP_##m,
	WEIR_HTTP_METHODS(WEIR_HTTP_METHOD_ENUM)
#undef WEIR_HTTP_METHOD_ENUM
};

struct weir_http_header {
	struct weir_slice name, value; /* as sent; names are case-insensitive */
};

/** Bytes of response fields stored without an allocation. */
#define WEIR_HTTP_FIELDS_INLINE 256

struct weir_http_request;
struct weir_stage;
struct weir_family;

/** A callback that runs once when the request is finished, in the thread that finishes it. The
 * response has not been sent yet, and `fn` may read and change it. Only a response that is sent in
 * parts (weir_http_stream_begin) has begun, and `fn` may only read it. `fn` may emit or finish events
 * that its stage holds, since the thread belongs to the graph. It must not block. The most recently
 * added tap runs first. The struct must stay valid until `fn` runs; the framework does not free
 * it. */
struct weir_http_tap {
	void (*fn)(struct weir_http_tap *tap, struct weir_http_request *req, int status);
	struct weir_http_tap *next;
};

/** One piece of a body that consists of several. */
struct weir_http_piece {
	const char *p;  /* bytes p[0..n); if NULL, bytes [offset, offset+n) of the response's fd */
	int64_t offset; /* position in the file; 0 if `p` is set */
	int64_t n;      /* not negative */
};

struct weir_http_response {
	uint16_t status; /* 0 until a response is set */
	bool no_length;  /* do not send Content-Length (204, 304) */
	bool close;      /* close the connection after this response */
	/* set by weir_http_stream_begin: the body is sent in parts, `body` and `fd` are unused, and
	 * the response can no longer be changed */
	bool streamed;
	/* set by weir_http_respond_status for errors: the body is the standard text of the status, for
	 * which `error_pages` of http.server may have a page */
	bool standard;
	uint16_t n_pieces; /* if > 0, the body is piece[0..n_pieces), `length` bytes in total */
	/* preformatted lines, see weir_http_fields_good; must stay valid until `release` runs */
	struct weir_slice fields;
	struct weir_slice body; /* must stay valid until `release` runs */
	/* if >= 0: without pieces, the body is bytes [offset, offset+length) of the file; with
	 * pieces, the file to which they refer */
	int fd;
	int64_t offset, length;
	/* must stay valid until `release` runs; http.server shortens the pieces as it sends them */
	struct weir_http_piece *piece;
	/** Called once when body, fields and fd are no longer needed, whether or not they were
	 * sent. Runs in the connection's I/O thread or in the thread that owns the request. NULL if
	 * there is nothing to release. */
	void (*release)(void *arg);
	void *release_arg;
};

struct weir_http_request {
	struct weir_event ev; /* first: weir_event_cast(ev, &weir_http_request_type) */
	enum weir_http_method method;
	uint8_t minor;                 /* the x of HTTP/1.x, 0 or 1 */
	uint8_t n_headers;             /* at most 100 */
	struct weir_slice method_text; /* "GET" */
	struct weir_slice target;      /* as sent: "/a%20b/./?q=1" */
	/** The normalised path of the target, identical for all equivalent spellings. It begins
	 * with '/' (or is "*") and has no empty, "." or ".." segment. Characters allowed in a
	 * target (letters, digits, -._~!$&'()*+,;=:@[]|) are not escaped; all others are written as
	 * %XX with upper-case digits, and a '/' inside a name as "%2F". Decode it once, and do not
	 * treat "%2F" as a separator. */
	struct weir_slice path;
	/* as sent, without the '?' that separates it from the path; may be empty */
	struct weir_slice query;
	/* from Host or an absolute target: in lower case, without a trailing dot, with the port as
	 * sent */
	struct weir_slice host;
	struct weir_slice body; /* whole body; empty if it arrives in parts */
	const struct weir_http_header *headers;
	struct weir_http_response res;
	struct weir_http_tap *taps;
	char *fields;      /* response fields added one by one: fields_inline or malloc'd */
	uint32_t n_fields; /* bytes used */
	uint32_t fields_size;
	char fields_inline[WEIR_HTTP_FIELDS_INLINE];
	/* followed by the data that http.server keeps per request, in its own struct */
};

/** Cast an event to its request; the type is checked. */
static inline struct weir_http_request *weir_http_request(struct weir_event *ev)
{
	return (struct weir_http_request *)weir_event_cast(ev, &weir_http_request_type);
}

/** Return the value of the first header called `name` (ignoring case), or {NULL, 0} if there is
 * none. */
WEIR_API struct weir_slice weir_http_header(const struct weir_http_request *req, const char *name);

/**
 * Decode the percent-escapes of `text` once: "%2F" becomes '/', of either case. With `plus`, '+' becomes
 * a space, as in queries and forms. Use it on single segments of req->path, after splitting the path at
 * '/', and on other texts that carry such escapes.
 *
 * Writes the bytes and a NUL to buf[size]; `buf` may be text.p, to decode in place where there is room
 * for the NUL. Returns the number of bytes without the NUL. Returns WEIR_EINVAL if a '%' is not followed
 * by two hex digits, if a decoded byte is NUL, or if the result does not fit; buf[0] is then NUL, if
 * size > 0. The result may be any bytes, valid UTF-8 or not. Any thread; about 1 ns for each byte.
 */
WEIR_API int64_t weir_http_percent_decode(
    struct weir_slice text, bool plus, char *buf, size_t size);

/**
 * Take the first parameter of *query, as in req->query or a body of application/x-www-form-urlencoded,
 * "a=1&b=2". Stores its name and value as sent, not decoded, and sets *query to what follows. Empty
 * parameters, as in "&&", are skipped; the value of one without '=' is {NULL, 0}. Returns false at the
 * end. Any thread; allocates nothing.
 */
WEIR_API bool weir_http_query_next(
    struct weir_slice *query, struct weir_slice *name, struct weir_slice *value);

/**
 * Find the first parameter of `query` whose decoded name is `name`, and decode its value to buf[size], as
 * weir_http_percent_decode does, with '+' as a space. Returns the number of bytes, 0 also for "name" and
 * "name="; WEIR_ENOENT if there is none; WEIR_EINVAL if the value cannot be decoded or does not fit.
 * Parameters whose names cannot be decoded are passed over. buf[0] is NUL unless there is a value.
 * Any thread; takes time in proportion to the length of the query.
 */
WEIR_API int64_t weir_http_query_get(
    struct weir_slice query, const char *name, char *buf, size_t size);

/**
 * Give the request a new path and query for the stages that follow, and for an origin to which it is
 * passed on. `path` must be one that a client may send: it begins with '/', has only characters that are
 * allowed in a target, with two hex digits after each '%'; it is converted to the normal form. `query` has no
 * '?'; NULL removes the query. Both are copied. `req->target` keeps what the client has sent, and the
 * class of the request does not change.
 *
 * Returns 0; WEIR_EINVAL if path or query has other characters, if the path leads above the root, or if
 * both together are longer than 8 KiB; WEIR_ENOMEM. On an error nothing changes. Earlier values of
 * `req->path` and `req->query` stay valid until the request is finished. Only the owner of the event may
 * call this; it costs an allocation.
 */
WEIR_API int weir_http_set_target(
    struct weir_http_request *req, struct weir_slice path, const struct weir_slice *query);

/** Return the name in `req->host`, without the port; empty if there is none. Any thread. */
WEIR_API struct weir_slice weir_http_host_name(const struct weir_http_request *req);

/**
 * Respond with `status` and a body, which must stay valid until `release(arg)` runs; `release` may
 * be NULL for static bytes. `content_type` may be NULL; it is copied. Any earlier response is
 * released and replaced. Returns 0, or WEIR_EINVAL or WEIR_ENOMEM; on an error `release` has been
 * called and the response is a 500.
 */
WEIR_API int weir_http_respond(struct weir_http_request *req, int status, const char *content_type,
    struct weir_slice body, void (*release)(void *arg), void *arg);

/** Respond with a copy of `body`. */
WEIR_API int weir_http_respond_copy(
    struct weir_http_request *req, int status, const char *content_type, struct weir_slice body);

/** Respond with bytes [offset, offset+length) of `fd`, sent by sendfile; `release(arg)` closes
 * `fd`. */
WEIR_API int weir_http_respond_file(struct weir_http_request *req, int status,
    const char *content_type, int fd, int64_t offset, int64_t length, void (*release)(void *arg),
    void *arg);

/** Respond with the pieces `piece[n]`, 1 <= n <= 65535, one after the other. The array, the bytes
 * and `fd` must stay valid until `release(arg)` runs, and the array is modified in the meantime.
 * Pieces without bytes refer to `fd`, which is -1 if every piece has bytes. Bytes are sent without
 * copying. Errors as for weir_http_respond. */
WEIR_API int weir_http_respond_pieces(struct weir_http_request *req, int status,
    const char *content_type, struct weir_http_piece *piece, int n, int fd,
    void (*release)(void *arg), void *arg);

/** Return the length in bytes of the body of `res`, whichever form it has, or 0 for a body that is
 * sent in parts. */
static inline int64_t weir_http_body_bytes(const struct weir_http_response *res)
{
	return res->fd >= 0 || res->n_pieces > 0 ? res->length : (int64_t)res->body.n;
}

/** Respond with a line of plain text, such as "404 Not Found\n". For a status from 400, http.server sends the
 * page of its `error_pages` instead, if it has one. */
WEIR_API int weir_http_respond_status(struct weir_http_request *req, int status);

/** Add a response field. Returns 0; WEIR_EINVAL if the name is invalid, the value contains a
 * control byte other than a tab (CR and LF would allow response splitting), or the field is one
 * that http.server writes itself (Content-Length, Date, Connection, Transfer-Encoding); WEIR_ENOMEM
 * if out of memory. On an error nothing is added. */
WEIR_API int weir_http_add_field(
    struct weir_http_request *req, const char *name, const char *value);

/**
 * Whether the preformatted lines `fields` are valid for `res.fields`: each is "Name: value\r\n",
 * with a name and a value that weir_http_add_field accepts. http.server does not check the fields
 * of every response, so a stage that builds such lines itself should check them once with this
 * function. Builds without NDEBUG abort on invalid lines. Any thread.
 */
WEIR_API bool weir_http_fields_good(struct weir_slice fields);

/** Run `tap` when the request is finished. */
WEIR_API void weir_http_add_tap(struct weir_http_request *req, struct weir_http_tap *tap);

/** Return the most recently added tap of `req` whose callback is `fn`, or NULL if there is none. A
 * stage uses it to find its state when `handle` is called with an event again. */
WEIR_API struct weir_http_tap *weir_http_find_tap(const struct weir_http_request *req,
    void (*fn)(struct weir_http_tap *tap, struct weir_http_request *req, int status));

/** Release the response and reset it. A response that is already being sent in parts is left as it
 * is. */
WEIR_API void weir_http_response_reset(struct weir_http_request *req);

/**
 * Return the family of the request (weir/op.h), which ends when the client disconnects. It is made by the
 * first call, which makes the request a member; its children are members, too. After the end, none of them
 * is passed to a handler any more: each ends as WEIR_ECANCELLED at its next door or, if it waits with a
 * ticket, within about 0.1 s. Returns NULL if memory is short, or if the request alone is more than
 * `payloads: { family_memory }`; the calls of weir/op.h accept that.
 *
 * Only requests whose stages call this are cancelled, and only until they have been answered: the orphans of
 * a request whose response has been sent go on. A client that shuts its side down after its request
 * (a half-closed connection) counts as disconnected, since the server cannot tell it from one that has
 * gone. The family is valid until the event is finished; to use it longer, make one within it. Call this
 * before the stage makes children, holds the event or emits it. The request must not be in another family.
 * Only the owner of the event may call this. The first call costs an allocation. Requests without a
 * family pay nothing for the watch of their client.
 */
WEIR_API struct weir_family *weir_http_family(struct weir_http_request *req);

/* ---- bodies in parts ---- */

enum weir_http_body {
	WEIR_HTTP_BODY_END,  /* the body is complete */
	WEIR_HTTP_BODY_PART, /* the next bytes */
	WEIR_HTTP_BODY_WAIT, /* none available: weir_http_wait(st, &ev, WEIR_HTTP_BODY) */
};

/** What weir_http_wait waits for; the values are bit flags. */
enum weir_http_wait { WEIR_HTTP_BODY = 1, WEIR_HTTP_ROOM = 2 };

/** Whether the body arrives in parts, so that `req->body` is empty. This requires `stream:` of
 * http.server, and a body that is longer than its value, or chunked if the client waits for "100
 * Continue". */
WEIR_API bool weir_http_body_streamed(const struct weir_http_request *req);

/**
 * Store the next bytes of the body in *part, at most `stream_buffer`. The bytes are valid until the
 * next call (also across weir_http_wait and weir_requeue). May also be called for a body that did
 * not arrive in parts.
 *
 * Returns enum weir_http_body, or an error if the rest will never arrive: WEIR_EGONE if the client
 * disconnected or was too slow, WEIR_EINVAL if the body is malformed or longer than `max_body`,
 * WEIR_ECLOSED if the server stops. Every later call returns the same error. Bytes of a malformed
 * body that have not been read are lost. If the stage finishes the event with the error, the client
 * gets the matching status. The first call that has to wait sends "100 Continue" to a client that
 * expects it. The call holds a lock briefly and copies nothing.
 */
WEIR_API int weir_http_body_next(struct weir_http_request *req, struct weir_slice *part);

/**
 * Begin a response of unknown length. `status`, `content_type` (may be NULL) and the fields added
 * so far are sent now, after the earlier responses of the connection.
 *
 * The body is chunked for HTTP/1.1, ended by closing the connection for HTTP/1.0, and omitted for
 * HEAD, 204 and 304. The response can no longer be changed. It ends when the event is finished.
 * Finished as WEIR_OK, it is complete; otherwise the connection is aborted, so that the client does
 * not mistake the response for a complete one. Returns 0, or WEIR_EINVAL (a bad status or type, a
 * response that has already begun, or a request that did not come from a server), WEIR_ENOMEM or
 * WEIR_EPRESSURE (`body_memory` is used up). On an error the response has not begun.
 */
WEIR_API int weir_http_stream_begin(
    struct weir_http_request *req, int status, const char *content_type);

/**
 * Append a copy of `data` to the response. Returns the number of bytes accepted, which is less than
 * `data.n` if the buffer is full: call weir_http_wait(st, &ev, WEIR_HTTP_ROOM) and continue with
 * the rest. Returns WEIR_EGONE if the client has disconnected, in which case the event must be
 * finished, and WEIR_EINVAL if the response has not begun. If the response has no body (HEAD), all
 * bytes are accepted and discarded.
 */
WEIR_API int64_t weir_http_stream_write(struct weir_http_request *req, struct weir_slice data);

/** Add a trailer field to the end of the response. It is discarded where trailers are impossible
 * (HTTP/1.0, no body). For HTTP/1.0, weir_http_stream_begin also removes a Trailer field. Errors as
 * for weir_http_add_field. */
WEIR_API int weir_http_stream_trailer(
    struct weir_http_request *req, const char *name, const char *value);

/** Return the number of body bytes that the stage has passed to a response sent in parts; 0 for
 * other responses. */
WEIR_API int64_t weir_http_stream_bytes(const struct weir_http_request *req);

/**
 * Hand over the event, setting `*ev` to NULL, until one of the conditions in `what` (bits of enum
 * weir_http_wait) holds. The event then returns to the queue of `st`, and `handle` is called with
 * it again. If a condition holds already, it returns to the queue at once.
 *
 * WEIR_HTTP_BODY means that body bytes, the end of the body or an error is available,
 * WEIR_HTTP_ROOM that half of the response's buffer is free or the client has disconnected. Call
 * this only after weir_http_body_next has returned WEIR_HTTP_BODY_WAIT, or weir_http_stream_write
 * has accepted fewer bytes than it was given.
 */
WEIR_API void weir_http_wait(struct weir_stage *st, struct weir_event **ev, unsigned what);

/**
 * Return the time that a request to another server on behalf of `req` may take: the time left until
 * the deadline of `req`, minus the round trip `rtt_ns` >= 0 to that server. The result is in ns; it
 * is 0 if it is too late to send that request, and WEIR_NO_DEADLINE if `req` has no deadline. Reads
 * the clock (about 25 ns). Only the owner of `req` may call this.
 */
WEIR_API int64_t weir_http_deadline_left_ns(const struct weir_http_request *req, int64_t rtt_ns);

/** Buffer size for weir_http_deadline_field, with the NUL. */
#define WEIR_HTTP_DEADLINE_BYTES 40

/**
 * Write the result of weir_http_deadline_left_ns as a header field for the request to that server,
 * "x-deadline-ms: 184\r\n" (rounded down), into `buf[size]`. Returns the length of the text; 0 with
 * an empty text if there is no deadline; WEIR_EDEADLINE if less than 1 ms would be left, so that
 * the request should not be sent; WEIR_EINVAL if `size` is too small. The text is empty on both
 * errors.
 */
WEIR_API int weir_http_deadline_field(
    const struct weir_http_request *req, int64_t rtt_ns, char *buf, size_t size);

/** Buffer size for weir_http_trace_field, with the NUL. */
#define WEIR_HTTP_TRACE_BYTES 71

/**
 * Write the trace of `req` as a header field for a request to another server on its behalf (W3C
 * Trace Context), "traceparent: 00-<trace>-<span>-<flags>\r\n", into `buf[size]`. The trace is the
 * client's, or a new one; the span is that of the stage that holds the request. `tracestate` is not
 * written: the caller should forward the value from weir_http_header unchanged. Returns the length,
 * or WEIR_EINVAL and an empty text if `size` is too small. Only the owner of the request may call
 * this, in a thread of the graph. A call costs about 60 ns.
 */
WEIR_API int weir_http_trace_field(struct weir_http_request *req, char *buf, size_t size);

/** Return the port of entry `i` of `listen:` (an entry with port 0 gets a free one), or 0 if `st`
 * is not a running http.server or has no such entry. Any thread, after the graph has started. */
WEIR_API uint16_t weir_http_port(const struct weir_stage *st, int i);

/** Return the reason phrase of `status`: "Not Found" for 404, "Unknown" for an unregistered status.
 * The string is static. */
WEIR_API const char *weir_http_reason(int status);

/** Whether `s` equals `text`, ignoring case. */
WEIR_API bool weir_slice_is(struct weir_slice s, const char *text);

WEIR_C_END

#endif
