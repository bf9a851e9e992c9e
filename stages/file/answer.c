/* SPDX-License-Identifier: MIT */
/*
 * Builds responses from files: a whole file, one range, several ranges, or a 304.
 *
 * Each response owns one block of memory, freed by its release callback. The block holds the
 * preformatted header fields, and the body or an open descriptor of the file.
 */
#include "read.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/clock.h>

#include "httpdate.h"
#include "mime.h"
#include "multipart.h"

struct answer {
	int fd; /* -1 if the body is in memory */
	char *body;
	char fields[]; /* followed by the body */
};

static void answer_free(void *arg)
{
	struct answer *a = arg;

	if (a->fd != -1)
		close(a->fd);
	free(a);
}

/* Allocate a block that owns `fd`, with space for `body_bytes`. Returns NULL and closes `fd` if out
 * of memory. */
static struct answer *answer_new(const struct read_state *state, int fd, size_t body_bytes)
{
	/* answer_parts stores an array of struct weir_http_piece in the body */
	size_t align = _Alignof(struct weir_http_piece);
	size_t fields = (state->fields_bytes + align - 1) & -align;
	struct answer *a = malloc(sizeof(*a) + fields + body_bytes);

	if (!a) {
		close(fd);
		return NULL;
	}
	a->fd = fd;
	a->body = a->fields + fields;
	return a;
}

/* Returns WEIR_ESYS if the read fails or the file has shrunk since its size was read. */
static int read_exactly(int fd, char *to, int64_t offset, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t got = pread(fd, to + done, n - done, offset + (int64_t)done);
		if (got == -1 && errno == EINTR)
			continue;
		if (got <= 0)
			return WEIR_ESYS;
		done += (size_t)got;
	}
	return 0;
}

static void answer_close(struct answer *a)
{
	close(a->fd);
	a->fd = -1;
}

/* ---- fields ---- */

__attribute__((format(printf, 3, 4))) static void fields_add(
    struct weir_slice *f, size_t room, const char *format, ...)
{
	char *at = (char *)(uintptr_t)(f->p + f->n);
	va_list args;

	va_start(args, format);
	int n = vsnprintf(at, room - f->n, format, args);
	va_end(args);
	WEIR_ASSERT(n >= 0 && (size_t)n < room - f->n); /* see check_cache_control in read.c */
	f->n += (size_t)n;
}

/* A pattern without a slash is matched against the last path segment, one with a slash against the
 * whole path. */
static bool rule_matches(const struct read_rule *r, const char *name)
{
	char path[PATH_MAP_MAX + 1];
	const char *base = strrchr(name, '/');

	if (!strchr(r->match, '/'))
		return fnmatch(r->match, base ? base + 1 : name, 0) == 0;
	snprintf(path, sizeof(path), "/%s", name);
	return fnmatch(r->match, path, 0) == 0;
}

static const char *cache_control(const struct read_conf *conf, const char *name)
{
	const struct read_rule *r = (const struct read_rule *)(const void *)conf->rules.items;

	for (int i = 0; i < conf->rules.n; i++)
		if (rule_matches(&r[i], name))
			return r[i].value;
	return conf->cache_control;
}

/* Write the header fields. Those that a 304 repeats come last, so that a cache can send them alone.
 * If `type` is NULL, only these are written. */
static struct weir_slice file_fields(struct weir_stage *st, struct answer *a,
    const struct variant *v, const char *name, const char *type, const struct condition_file *c)
{
	const struct read_conf *conf = weir_conf(st);
	size_t room = ((const struct read_state *)weir_state(st))->fields_bytes;
	struct weir_slice f = {a->fields, 0};
	const char *control = cache_control(conf, name);
	char date[HTTPDATE_SIZE];

	httpdate_format(c->modified_s, date);
	if (type)
		fields_add(&f, room, "Content-Type: %s\r\nAccept-Ranges: bytes\r\n%s", type,
		    conf->nosniff ? "X-Content-Type-Options: nosniff\r\n" : "");
	if (type && v->encoding != ENCODING_IDENTITY)
		fields_add(&f, room, "Content-Encoding: %s\r\n", encoding_token(v->encoding));
	fields_add(
	    &f, room, "ETag: %.*s\r\nLast-Modified: %s\r\n", (int)c->etag.n, c->etag.p, date);
	if (v->varies)
		fields_add(&f, room, "Vary: Accept-Encoding\r\n");
	if (*control)
		fields_add(&f, room, "Cache-Control: %s\r\n", control);
	return f;
}

/* ---- responses ---- */

/* Pass ownership of `a` and its contents to the response. */
static int answer_give(struct weir_stage *st, struct weir_http_request *req, struct answer *a,
    const struct condition_verdict *v, struct weir_slice fields)
{
	int rc;

	if (a->fd != -1) {
		weir_count(st, READ_SENDFILES, 1);
		rc = weir_http_respond_file(
		    req, v->status, NULL, a->fd, v->offset, v->length, answer_free, a);
	} else {
		struct weir_slice body = {a->body, (size_t)v->length};
		weir_count(st, READ_BYTES, v->length);
		rc = weir_http_respond(req, v->status, NULL, body, answer_free, a);
	}
	if (rc == 0) {
		req->res.fields = fields;
		req->res.no_length = v->status == 304;
	}
	return rc;
}

/* Respond with several ranges, sent from the file with text lines between them. The body of the
 * struct answer holds the array of pieces, followed by the text lines. */
static int answer_parts(struct weir_stage *st, struct weir_http_request *req,
    const struct variant *v, const char *name, const struct condition *asked,
    const struct condition_file *c)
{
	struct weir_http_piece piece[MULTIPART_PIECES];
	const char *file_type = mime_type(name);
	char type[MULTIPART_TYPE_SIZE];
	struct range_set set;
	struct multipart m;

	condition_ranges(asked, c, &set);
	multipart_init(&m, &set, (struct weir_slice){file_type, strlen(file_type)}, c->size_bytes);
	multipart_type(&m, type);
	struct answer *a =
	    answer_new(weir_state(st), v->file.fd, sizeof(piece) + multipart_text_bytes(&m));
	if (!a)
		return WEIR_EPRESSURE;
	int n = multipart_pieces(&m, a->body + sizeof(piece), NULL, piece);
	memcpy(a->body, piece, sizeof(piece));
	weir_count(st, READ_SENDFILES, 1);
	int rc = weir_http_respond_pieces(
	    req, 206, NULL, (struct weir_http_piece *)(void *)a->body, n, a->fd, answer_free, a);
	if (rc == 0)
		req->res.fields = file_fields(st, a, v, name, type, c);
	return rc;
}

/* Respond with the whole file (200), one range (206), or no body (304). */
static int answer_piece(struct weir_stage *st, struct weir_http_request *req,
    const struct variant *v, const char *name, const struct condition_verdict *judged,
    const struct condition_file *c)
{
	const struct read_conf *conf = weir_conf(st);
	bool head = req->method == WEIR_HTTP_HEAD; /* only the length is needed */
	bool by_fd = judged->length > conf->max_read_bytes || (head && judged->length > 0);
	char range[CONDITION_RANGE_SIZE];
	struct answer *a =
	    answer_new(weir_state(st), v->file.fd, by_fd ? 0 : (size_t)judged->length);

	if (!a)
		return WEIR_EPRESSURE;
	if (!by_fd) {
		int rc = read_exactly(a->fd, a->body, judged->offset, (size_t)judged->length);
		if (rc < 0) {
			answer_free(a);
			return rc;
		}
		answer_close(a);
	}
	const char *type = judged->status == 304 ? NULL : mime_type(name);
	int rc = answer_give(st, req, a, judged, file_fields(st, a, v, name, type, c));
	if (rc < 0 || judged->status != 206)
		return rc;
	condition_content_range(judged, c->size_bytes, range);
	return weir_http_add_field(req, "Content-Range", range);
}

/* Respond without any file content: 412 or 416. */
static int answer_refusal(
    struct weir_http_request *req, const struct variant *v, const struct condition_verdict *judged)
{
	char range[CONDITION_RANGE_SIZE];

	int rc = weir_http_respond_status(req, judged->status);
	if (rc == 0 && v->varies)
		rc = weir_http_add_field(req, "Vary", "Accept-Encoding");
	if (rc < 0 || judged->status != 416)
		return rc;
	condition_content_range(judged, v->file.size_bytes, range);
	return weir_http_add_field(req, "Content-Range", range);
}

int answer_file(
    struct weir_stage *st, struct weir_http_request *req, const struct variant *v, const char *name)
{
	const struct read_conf *conf = weir_conf(st);
	int64_t now_ns = weir_clock_ns(CLOCK_REALTIME);
	char etag[FILE_ETAG_SIZE];
	size_t n = file_etag(&v->file, (enum file_etags)conf->etag, now_ns, etag);
	struct condition_file c = file_condition(&v->file, (struct weir_slice){etag, n}, now_ns);
	struct condition asked;

	weir_count(st, READ_PRECOMPRESSED, v->encoding != ENCODING_IDENTITY);
	c.one_part = v->encoding != ENCODING_IDENTITY;
	c.varies = v->varies;
	condition_scan(req, &asked);
	struct condition_verdict judged = condition_judge(&asked, req->method, &c);
	if (judged.status == 412 || judged.status == 416) {
		close(v->file.fd);
		return answer_refusal(req, v, &judged);
	}
	if (judged.parts > 1)
		return answer_parts(st, req, v, name, &asked, &c);
	return answer_piece(st, req, v, name, &judged, &c);
}

int answer_page(struct weir_stage *st, struct weir_http_request *req, int status,
    const struct file *file, const char *name)
{
	const struct read_conf *conf = weir_conf(st);
	const struct read_state *state = weir_state(st);
	struct condition_verdict all = {status, 0, file->size_bytes, 0};
	bool by_fd = file->size_bytes > conf->max_read_bytes;
	struct answer *a = answer_new(state, file->fd, by_fd ? 0 : (size_t)file->size_bytes);

	if (!a)
		return WEIR_EPRESSURE;
	if (!by_fd) {
		int rc = read_exactly(a->fd, a->body, 0, (size_t)file->size_bytes);
		if (rc < 0) {
			answer_free(a);
			return rc;
		}
		answer_close(a);
	}
	struct weir_slice f = {a->fields, 0};
	fields_add(&f, state->fields_bytes, "Content-Type: %s\r\n%s", mime_type(name),
	    conf->nosniff ? "X-Content-Type-Options: nosniff\r\n" : "");
	return answer_give(st, req, a, &all, f);
}
