/* SPDX-License-Identifier: MIT */
/*
 * Bodies in parts: a stage that reads and writes them as the target demands, and clients for it.
 * Header-only.
 *
 * t.parts: /sum reads the body and answers "BYTES SUM\n"; /gate/NAME does the same after
 * gate_open("NAME"), with a handler blocked until then; /early/NNN answers without reading it;
 * /mirror sends it back as it arrives; /count/N answers with N bytes in parts; /tear begins an
 * answer and fails; /none/NNN begins one and sends nothing more.
 */
#ifndef WEIR_TESTS_PARTS_FIXTURE_H
#define WEIR_TESTS_PARTS_FIXTURE_H

#include <stdatomic.h>

#include "http_fixture.h"

/* Last error of body_next or stream_write. */
static atomic_int parts_error;
/* Calls that should have been refused but were not. */
static atomic_int parts_misuses;

/* State of t.parts per event. */
struct parts_state {
	struct weir_http_tap tap; /* must be the first member */
	struct weir_slice rest;
	uint64_t bytes, sum;
	bool begun, passed;
};

static atomic_int parts_states; /* that are not freed */

static inline void parts_ended(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	(void)req;
	(void)status;
	free(tap);
	atomic_fetch_sub(&parts_states, 1);
}

static inline struct parts_state *parts_state(struct weir_http_request *req)
{
	struct parts_state *p = (struct parts_state *)weir_http_find_tap(req, parts_ended);

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	p->tap.fn = parts_ended;
	weir_http_add_tap(req, &p->tap);
	atomic_fetch_add(&parts_states, 1);
	return p;
}

/* A checksum that depends on the order and is cheap under a sanitizer. */
static inline uint64_t parts_add(uint64_t sum, const char *p, size_t n)
{
	size_t i = 0;

	for (; i + 8 <= n && sum == 0; i += 8) { /* zeroes leave it at 0 */
		uint64_t word;
		memcpy(&word, p + i, 8);
		if (word)
			break;
	}
	for (; i < n; i++)
		sum = sum * 31 + (uint8_t)p[i];
	return sum;
}

static inline char parts_byte(uint64_t at)
{
	return (char)('a' + at % 26);
}

static inline void parts_end(struct weir_event **ev, int rc)
{
	if (rc < 0)
		atomic_store(&parts_error, rc);
	weir_event_finish(ev, rc);
}

static inline void parts_sum(struct weir_stage *st, struct weir_event **ev, struct parts_state *p)
{
	struct weir_http_request *req = weir_http_request(*ev);
	struct weir_slice part;
	char text[64];
	int rc;

	while ((rc = weir_http_body_next(req, &part)) == WEIR_HTTP_BODY_PART) {
		p->sum = parts_add(p->sum, part.p, part.n);
		p->bytes += part.n;
	}
	if (rc == WEIR_HTTP_BODY_WAIT) {
		weir_http_wait(st, ev, WEIR_HTTP_BODY);
		return;
	}
	int n = snprintf(text, sizeof(text), "%llu %llu\n", (unsigned long long)p->bytes,
	    (unsigned long long)p->sum);
	if (rc == WEIR_HTTP_BODY_END)
		rc = weir_http_respond_copy(
		    req, 200, "text/plain", (struct weir_slice){text, (size_t)n});
	parts_end(ev, rc);
}

/* Begin an answer, and check that it cannot be changed any more. */
static inline int parts_begin(struct weir_http_request *req, int status)
{
	int rc = weir_http_add_field(req, "X-Early", "yes");

	if (rc == 0)
		rc = weir_http_stream_begin(req, status, "text/plain");
	if (rc != 0)
		return rc;
	atomic_fetch_add(&parts_misuses, weir_http_stream_begin(req, 200, NULL) == 0 ||
					     weir_http_add_field(req, "X-Late", "yes") == 0 ||
					     weir_http_respond_status(req, 404) == 0 ||
					     weir_http_stream_trailer(req, "X-Bad", "a\r\nb") == 0);
	return 0;
}

static inline void parts_mirror(
    struct weir_stage *st, struct weir_event **ev, struct parts_state *p)
{
	struct weir_http_request *req = weir_http_request(*ev);

	for (;;) {
		int64_t n = p->rest.n ? weir_http_stream_write(req, p->rest) : 0;
		if (n < 0) {
			parts_end(ev, (int)n);
			return;
		}
		p->rest.p += n;
		p->rest.n -= (size_t)n;
		p->bytes += (uint64_t)n;
		if (p->rest.n > 0) {
			weir_http_wait(st, ev, WEIR_HTTP_ROOM);
			return;
		}
		int rc = weir_http_body_next(req, &p->rest);
		if (rc == WEIR_HTTP_BODY_WAIT) {
			weir_http_wait(st, ev, WEIR_HTTP_BODY);
			return;
		}
		int begun = rc < 0 || p->begun ? 0 : parts_begin(req, 200);
		p->begun = true;
		if (rc != WEIR_HTTP_BODY_PART || begun < 0) {
			char text[24];
			snprintf(text, sizeof(text), "%llu", (unsigned long long)p->bytes);
			if (rc == WEIR_HTTP_BODY_END)
				rc = weir_http_stream_trailer(req, "X-Bytes", text);
			parts_end(ev, begun < 0 ? begun : rc);
			return;
		}
	}
}

static inline void parts_count(struct weir_stage *st, struct weir_event **ev, struct parts_state *p)
{
	struct weir_http_request *req = weir_http_request(*ev);
	uint64_t all = (uint64_t)target_number(req, "/count/");
	char piece[1000];
	int64_t rc = p->begun ? 0 : parts_begin(req, 200);

	p->begun = true;
	while (rc >= 0 && p->bytes < all) {
		size_t n =
		    all - p->bytes < sizeof(piece) ? (size_t)(all - p->bytes) : sizeof(piece);
		for (size_t i = 0; i < n; i++)
			piece[i] = parts_byte(p->bytes + i);
		rc = weir_http_stream_write(req, (struct weir_slice){piece, n});
		if (rc >= 0)
			p->bytes += (uint64_t)rc;
		if (rc >= 0 && (size_t)rc < n) {
			weir_http_wait(st, ev, WEIR_HTTP_ROOM);
			return;
		}
	}
	parts_end(ev, rc < 0 ? (int)rc : WEIR_OK);
}

static inline void parts_tear(struct weir_event **ev)
{
	struct weir_http_request *req = weir_http_request(*ev);

	parts_begin(req, 200);
	weir_http_stream_write(req, (struct weir_slice){"half", 4});
	weir_event_finish(ev, WEIR_EFAILED);
}

static inline void parts_one(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_http_request *req = weir_http_request(*ev);
	struct parts_state *p = parts_state(req);

	if (target_starts(req, "/gate/") && !p->passed)
		gate_pass(req->target.p + 6, req->target.n - 6);
	p->passed = true;
	if (target_starts(req, "/early/")) {
		weir_http_respond_status(req, (int)target_number(req, "/early/"));
		weir_event_finish(ev, WEIR_OK);
	} else if (target_starts(req, "/none/")) {
		weir_event_finish(ev, parts_begin(req, (int)target_number(req, "/none/")));
	} else if (target_starts(req, "/tear")) {
		parts_tear(ev);
	} else if (target_starts(req, "/mirror")) {
		parts_mirror(st, ev, p);
	} else if (target_starts(req, "/count/")) {
		parts_count(st, ev, p);
	} else {
		parts_sum(st, ev, p);
	}
}

static inline void parts_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		parts_one(st, &ev[i]);
}

static const struct weir_stage_ops parts_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "t.parts",
    .summary = "takes and gives bodies in parts",
    .accepts = &weir_http_request_type,
    .handle = parts_handle};

/* A server with t.parts that streams bodies over 1 KiB; set knobs before server_start. */
static inline struct server parts_server_new(void)
{
	static bool registered;

	if (!registered)
		fixture_register(&parts_ops);
	registered = true;
	struct server s = server_new("t.parts");
	fixture_set(s.web, "with.stream", "1KiB");
	fixture_set(s.web, "with.max_body", "10GiB");
	fixture_set(s.app, "threads.max", "3");
	fixture_set(s.app, "threads.min", "3");
	fixture_set(s.app, "cohort.max", "1");
	atomic_store(&parts_error, 0);
	return s;
}

static inline struct server parts_server(void)
{
	struct server s = parts_server_new();

	server_start(&s);
	return s;
}

/* Check that no buffers, state or misuses remain. */
static inline void parts_server_stop(struct server *s)
{
	AWAIT_METRIC(s, "http_stream_buffer_bytes", ==, 0);
	server_stop(s);
	CU_ASSERT_EQUAL(atomic_load(&parts_states), 0);
	CU_ASSERT_EQUAL(atomic_load(&parts_misuses), 0);
}

/* ---- clients ---- */

static inline bool client_sayf(int fd, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline bool client_sayf(int fd, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return client_say(fd, text);
}

#define POST_HEAD(target, more) "POST " target " HTTP/1.1\r\nHost: t\r\n" more "\r\n"

/* Send bytes [from, from + n) of the pattern, in chunks of up to 5000 if `chunked`, without the
 * last chunk. */
static inline bool client_pattern(int fd, uint64_t from, size_t n, bool chunked)
{
	char piece[5000];

	for (size_t at = 0; at < n;) {
		size_t m = n - at < sizeof(piece) ? n - at : sizeof(piece);
		for (size_t i = 0; i < m; i++)
			piece[i] = parts_byte(from + at + i);
		if (chunked && !client_sayf(fd, "%zx\r\n", m))
			return false;
		if (!client_send(fd, piece, m) || (chunked && !client_say(fd, "\r\n")))
			return false;
		at += m;
	}
	return true;
}

/* "BYTES SUM\n" of the first n bytes of the pattern. Static memory. */
static inline const char *pattern_sum(uint64_t n)
{
	static _Thread_local char text[64];
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++)
		sum = sum * 31 + (uint8_t)parts_byte(i);
	snprintf(text, sizeof(text), "%llu %llu\n", (unsigned long long)n, (unsigned long long)sum);
	return text;
}

static inline bool line_read(int fd, char *line, size_t size)
{
	size_t n = 0;

	while (n + 1 < size && client_recv(fd, line + n, 1, 0) == 1) {
		line[++n] = '\0';
		if (line[n - 1] == '\n')
			return true;
	}
	return false;
}

/* Read n bytes that must continue the pattern at `from`. Returns 0, -1 if the stream ends before,
 * -2 if a byte is wrong. */
static inline int pattern_judge(int fd, uint64_t from, size_t n)
{
	char piece[8192];

	while (n > 0) {
		ssize_t got = client_recv(fd, piece, n < sizeof(piece) ? n : sizeof(piece), 0);
		if (got <= 0)
			return -1;
		for (ssize_t i = 0; i < got; i++)
			if (piece[i] != parts_byte(from + (uint64_t)i))
				return -2;
		from += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

static inline bool pattern_read(int fd, uint64_t from, size_t n)
{
	return pattern_judge(fd, from, n) == 0;
}

/* Read a chunked body that must be the pattern. Returns its length if it is complete, -1 if it is
 * torn, -2 if a byte is wrong; `trailers` gets its trailer lines. */
static inline int64_t chunked_read(int fd, char *trailers, size_t size)
{
	uint64_t all = 0;
	char line[300];

	for (;;) {
		if (!line_read(fd, line, sizeof(line)))
			return -1;
		size_t n = strtoul(line, NULL, 16);
		if (n == 0)
			break;
		int rc = pattern_judge(fd, all, n);
		if (rc < 0)
			return rc;
		all += n;
		if (!line_read(fd, line, sizeof(line)))
			return -1;
	}
	trailers[0] = '\0';
	for (size_t used = 0; line_read(fd, line, sizeof(line)) && strcmp(line, "\r\n") != 0;)
		used +=
		    (size_t)snprintf(trailers + used, used < size ? size - used : 0, "%s", line);
	return (int64_t)all;
}

#endif
