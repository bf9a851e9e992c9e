/* SPDX-License-Identifier: MIT */
/*
 * file.read: answer requests with files below a root directory.
 *
 *   request path --path_map--> name --file_open--> file --condition_judge--> 200 206 304 412 416
 *
 * Every step may end the request: 400 and 404 (path.h), 301 to the directory's own path, 403, 404,
 * 405, 503 (open.h). 404 goes to the outlet `missing` when it is linked, so that a site may have a
 * page, or another place to look, of its own.
 *
 * Small bodies are read into memory here, in this stage's pool, since reads may wait for the disk;
 * bodies over `max_read` leave as a descriptor for sendfile. Either way the answer is one block
 * (struct answer) that the response's release frees: ready-made header fields, then the bytes.
 *
 * No state is shared between threads but the root's descriptor, which never changes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/http.h>
#include <weir/weir.h>

#include "httpdate.h"
#include "mime.h"
#include "open.h"
#include "path.h"

/* outlets */
enum { READ_MISSING };

/* metrics */
enum { READ_FILES, READ_BYTES, READ_SENDFILES, READ_REFUSED };

/* The fixed part of the fields: names, an ETag of 63, a date of 29, a type of up to 40 bytes. */
#define READ_FIELDS_BYTES 320

struct read_conf {
	char *root;
	char *index;
	int64_t max_read_bytes;
	char *cache_control;
};

struct read_state {
	int root;
	size_t fields_bytes; /* room for the fields of any answer */
};

struct answer {
	int fd; /* -1: the body is in memory */
	char *body;
	char fields[]; /* then the body */
};

static void answer_free(void *arg)
{
	struct answer *a = arg;

	if (a->fd != -1)
		close(a->fd);
	free(a);
}

/* An answer that owns `fd`, with room for `body_bytes`; without memory `fd` is closed. */
static struct answer *answer_new(const struct read_state *state, int fd, size_t body_bytes)
{
	struct answer *a = malloc(sizeof(*a) + state->fields_bytes + body_bytes);

	if (!a) {
		close(fd);
		return NULL;
	}
	a->fd = fd;
	a->body = a->fields + state->fields_bytes;
	return a;
}

/* Read the body, which has room, and close the file. WEIR_ESYS when the disk fails or the file has
 * shrunk since its size was asked. */
static int answer_read(struct answer *a, int64_t offset, int64_t length)
{
	int64_t done = 0;

	while (done < length) {
		ssize_t n = pread(a->fd, a->body + done, (size_t)(length - done), offset + done);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			return WEIR_ESYS;
		done += n;
	}
	close(a->fd);
	a->fd = -1;
	return 0;
}

/* Fields that go with 304, too, come last: a cache may then send just them. */
static struct weir_slice answer_fields(struct answer *a, const struct read_state *state,
    const struct read_conf *conf, const char *type, const struct condition_file *c)
{
	char date[HTTPDATE_SIZE];
	int n = 0;

	httpdate_format(c->modified_s, date);
	if (type)
		n = snprintf(a->fields, state->fields_bytes,
		    "Content-Type: %s\r\nAccept-Ranges: bytes\r\n", type);
	n += snprintf(a->fields + n, state->fields_bytes - (size_t)n,
	    "ETag: %.*s\r\nLast-Modified: %s\r\n%s%s%s", (int)c->etag.n, c->etag.p, date,
	    *conf->cache_control ? "Cache-Control: " : "", conf->cache_control,
	    *conf->cache_control ? "\r\n" : "");
	return (struct weir_slice){a->fields, (size_t)n};
}

static int64_t wall_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* Answers without bytes of the file: 412, 416. Returns the outcome of the event. */
static int respond_refusal(
    struct weir_http_request *req, const struct condition_verdict *v, int64_t size_bytes)
{
	char range[CONDITION_RANGE_SIZE];

	int rc = weir_http_respond_status(req, v->status);
	if (rc < 0 || v->status != 416)
		return rc;
	condition_content_range(v, size_bytes, range);
	return weir_http_add_field(req, "Content-Range", range);
}

/* Hand the response what `a` holds, and `a` with it. */
static int respond_answer(struct weir_stage *st, struct weir_http_request *req, struct answer *a,
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

/* Answer with `file`, whose descriptor is taken. Returns the outcome of the event. */
static int respond_file(
    struct weir_stage *st, struct weir_http_request *req, const struct file *file, const char *name)
{
	const struct read_conf *conf = weir_conf(st);
	const struct read_state *state = weir_state(st);
	int64_t now_ns = wall_ns();
	char etag[FILE_ETAG_SIZE], range[CONDITION_RANGE_SIZE];
	size_t n = file_etag(file, now_ns, etag);
	struct condition_file c = file_condition(file, (struct weir_slice){etag, n}, now_ns);
	struct condition asked;

	condition_scan(req, &asked);
	struct condition_verdict v = condition_judge(&asked, req->method, &c);
	if (v.status == 412 || v.status == 416) {
		close(file->fd);
		return respond_refusal(req, &v, file->size_bytes);
	}
	/* HEAD wants the length only: an open file says it unread. */
	bool by_fd =
	    v.length > conf->max_read_bytes || (req->method == WEIR_HTTP_HEAD && v.length > 0);
	struct answer *a = answer_new(state, file->fd, by_fd ? 0 : (size_t)v.length);
	if (!a)
		return WEIR_EPRESSURE;
	int rc = by_fd ? 0 : answer_read(a, v.offset, v.length);
	if (rc < 0) {
		answer_free(a);
		return rc;
	}
	const char *type = v.status == 304 ? NULL : mime_type(name);
	rc = respond_answer(st, req, a, &v, answer_fields(a, state, conf, type, &c));
	if (rc < 0 || v.status != 206)
		return rc;
	condition_content_range(&v, file->size_bytes, range);
	return weir_http_add_field(req, "Content-Range", range);
}

/* The directory `name` was asked for without its slash: say where it is. */
static int respond_redirect(struct weir_http_request *req, const char *name)
{
	char directory[3 * PATH_MAP_MAX + 3];

	if (path_directory(name, directory, sizeof(directory)) < 0)
		return weir_http_respond_status(req, 404);
	size_t size = strlen(directory) + req->query.n + 2;
	char *location = malloc(size);
	if (!location)
		return WEIR_EPRESSURE;
	snprintf(location, size, "%s%s%.*s", directory, req->query.n ? "?" : "", (int)req->query.n,
	    req->query.n ? req->query.p : "");
	int rc = weir_http_respond_status(req, 301);
	if (rc == 0)
		rc = weir_http_add_field(req, "Location", location);
	free(location);
	return rc;
}

/* What the path leads to: 0 and a file, a directory (301), or another status. */
static int read_open(struct weir_stage *st, const struct weir_http_request *req, struct file *file,
    char name[PATH_MAP_MAX])
{
	const struct read_conf *conf = weir_conf(st);
	const struct read_state *state = weir_state(st);
	int rc = path_map(req->path, conf->index, name, PATH_MAP_MAX);

	if (rc == 0)
		return file_open(state->root, name, file) == 0 ? 0 : file->status;
	return rc == WEIR_ENOENT ? 404 : 400;
}

/* The outcome of a request that leads to no file; it has a response unless that is a failure. */
static int read_refuse(
    struct weir_stage *st, struct weir_http_request *req, int status, const char *name)
{
	if (status == 301)
		return respond_redirect(req, name);
	if (status == 503)
		return WEIR_EPRESSURE;
	if (status == 500)
		return WEIR_ESYS;
	weir_count(st, READ_REFUSED, 1);
	return weir_http_respond_status(req, status);
}

static void read_one(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_http_request *req = weir_http_request(*ev);
	char name[PATH_MAP_MAX];
	struct file file;

	if (req->method != WEIR_HTTP_GET && req->method != WEIR_HTTP_HEAD) {
		int rc = weir_http_respond_status(req, 405);
		if (rc == 0)
			rc = weir_http_add_field(req, "Allow", "GET, HEAD");
		weir_event_finish(ev, rc);
		return;
	}
	int status = read_open(st, req, &file, name);
	if (status == 404 && weir_outlet_linked(st, READ_MISSING)) {
		weir_count(st, READ_REFUSED, 1);
		weir_emit(st, READ_MISSING, ev);
		return;
	}
	weir_count(st, READ_FILES, status == 0);
	int rc =
	    status == 0 ? respond_file(st, req, &file, name) : read_refuse(st, req, status, name);
	weir_event_finish(ev, rc);
}

static void read_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		read_one(st, &ev[i]);
}

static int read_init(struct weir_stage *st, struct weir_err *err)
{
	const struct read_conf *conf = weir_conf(st);
	struct read_state *state = weir_state(st);

	if (strpbrk(conf->cache_control, "\r\n")) {
		snprintf(err->text, sizeof(err->text), "'cache_control' must be one line");
		return WEIR_EINVAL;
	}
	if (strchr(conf->index, '/')) {
		snprintf(err->text, sizeof(err->text), "'index' must be a file name, not a path");
		return WEIR_EINVAL;
	}
	if (file_root(conf->root, &state->root) < 0) {
		snprintf(err->text, sizeof(err->text), "root '%.150s' cannot be opened: %s",
		    conf->root, strerror(errno));
		snprintf(err->hint, sizeof(err->hint),
		    "'root' is a directory; a relative one begins at the folder of the YAML file");
		return WEIR_ESYS;
	}
	state->fields_bytes = READ_FIELDS_BYTES + strlen(conf->cache_control);
	return 0;
}

static void read_fini(struct weir_stage *st)
{
	struct read_state *state = weir_state(st);

	close(state->root);
}

static const struct weir_knob read_knobs[] = {
    {.name = "root",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct read_conf, root),
	.flags = WEIR_KNOB_REQUIRED,
	.help = "directory that the files are below"},
    {.name = "index",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct read_conf, index),
	.def = "index.html",
	.help = "file that answers for its directory; empty: directories are not found"},
    /* Measured here (wrk, 16 connections, one core): CPU per request of reading over sendfile is
     * 0.95 at 1 KiB, 1.0 to 1.05 at 4 and 16 KiB, 1.25 at 64, 2.5 at 256, 3.1 at 1024. */
    {.name = "max_read",
	.type = WEIR_KNOB_BYTES,
	.offset = offsetof(struct read_conf, max_read_bytes),
	.def = "16KiB",
	.min = 0,
	.max = 1 << 26,
	.flags = WEIR_KNOB_LIVE,
	.help = "larger bodies are not read into memory but sent by sendfile"},
    {.name = "cache_control",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct read_conf, cache_control),
	.def = "",
	.help = "value of a Cache-Control field for every file, as \"max-age=60\"; empty: none"},
    {0},
};

static const struct weir_outlet read_outlets[] = {
    [READ_MISSING] = {.name = "missing",
	.type = &weir_http_request_type,
	.optional = true,
	.help = "requests for what is not there; unlinked, they are answered 404"},
    {0},
};

static const struct weir_metric read_metrics[] = {
    [READ_FILES] = {"file_opened_total", WEIR_METRIC_COUNTER, "files", "Files opened to answer"},
    [READ_BYTES] = {"file_read_bytes_total", WEIR_METRIC_COUNTER, "bytes",
	"Bytes of files read into memory"},
    [READ_SENDFILES] = {"file_sendfile_total", WEIR_METRIC_COUNTER, "answers",
	"Answers that hold an open file: too large to read, or HEAD"},
    [READ_REFUSED] = {"file_refused_total", WEIR_METRIC_COUNTER, "requests",
	"Requests that led to no file that may be served"},
    {0},
};

const struct weir_stage_ops weir_stage_file_read = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_BLOCKS,
    .name = "file.read",
    .summary = "Answers requests with files below a directory",
    .accepts = &weir_http_request_type,
    .outlets = read_outlets,
    .knobs = read_knobs,
    .conf_size = sizeof(struct read_conf),
    .metrics = read_metrics,
    .state_size = sizeof(struct read_state),
    .init = read_init,
    .handle = read_handle,
    .fini = read_fini,
};
