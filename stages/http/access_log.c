/* SPDX-License-Identifier: MIT */
/*
 * access_log: passes requests on and writes one line for each when it has been answered.
 *
 * A tap on the request runs when the request is finished, in the finishing thread: it knows the
 * final status and how long the graph took, formats the line and appends it to the writer's buffer
 * (log_writer.c); the file is written elsewhere. Requests that the parser refused never enter the
 * graph and are not logged; http_bad_requests_total counts them.
 *
 *   logfmt  ts=2026-01-02T03:04:05.678Z client=192.0.2.1 method="GET" target="/" status=200 bytes=6
 *           us=113 class=default outcome=ok host="example.org" agent="curl/7.88.1"
 *           and trace=<32 hex digits> when the request belongs to one
 *   common  192.0.2.1 - - [02/Jan/2026:03:04:05 +0000] "GET / HTTP/1.1" 200 6
 */
#include "http/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/http.h>
#include <weir/weir.h>

#define NS_PER_S 1000000000LL

/* Bytes of a client's text that one line takes: what people read; longer ones are cut. A guess. */
#define TEXT_MAX 512
/* Three such texts, all escaped, and the rest of a line. */
#define LINE_MAX_BYTES (3 * (4 * TEXT_MAX + 8) + 512)

enum format { FORMAT_LOGFMT, FORMAT_COMMON };
enum metric { LINES, DROPPED };

struct access_log_conf {
	char *file;
	int format;
	int64_t flush_ns, buffer_bytes;
};

struct access_log {
	struct weir_stage *stage;
	struct log_writer writer;
	const struct weir_field *address;
	int format, fd;
	bool own_fd;
};

/* On its way with one request. */
struct logged {
	struct weir_http_tap tap; /* first */
	struct access_log *log;
};

/* ---- lines ---- */

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static size_t put_text(char *out, size_t n, const char *text)
{
	size_t len = strlen(text);

	memcpy(out + n, text, len);
	return n + len;
}

static int64_t body_bytes(const struct weir_http_request *req)
{
	if (req->method == WEIR_HTTP_HEAD || req->res.no_length)
		return 0;
	if (req->res.streamed)
		return weir_http_stream_bytes(req);
	return req->res.fd >= 0 ? req->res.length : (int64_t)req->res.body.n;
}

static struct weir_slice client(const struct access_log *log, const struct weir_http_request *req)
{
	struct weir_slice s = log->address->get(&req->ev, NULL);

	return s.n > 0 ? s : (struct weir_slice){"-", 1};
}

static size_t put_trace(char *out, size_t n, const struct weir_http_request *req)
{
	char text[WEIR_TRACE_ID_BYTES];
	struct weir_trace trace;

	if (!weir_event_traced(&req->ev, &trace))
		return n;
	weir_trace_id_print(&trace, text);
	return put_text(out, put_text(out, n, " trace="), text);
}

static size_t logfmt_line(
    const struct access_log *log, const struct weir_http_request *req, int status, char *out)
{
	int64_t wall = clock_ns(CLOCK_REALTIME),
		took = clock_ns(CLOCK_MONOTONIC) - req->ev.arrival_ns;
	time_t second = wall / NS_PER_S;
	struct weir_slice who = client(log, req);
	struct tm tm;
	size_t n;

	gmtime_r(&second, &tm);
	n = (size_t)snprintf(out, 128,
	    "ts=%04d-%02d-%02dT%02d:%02d:%02d.%03dZ client=%.*s method=", tm.tm_year + 1900,
	    tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
	    (int)(wall % NS_PER_S / 1000000), (int)who.n, who.p);
	n = log_quote(out, n, req->method_text, 32);
	n = put_text(out, n, " target=");
	n = log_quote(out, n, req->target, TEXT_MAX);
	n += (size_t)snprintf(out + n, 256,
	    " status=%d bytes=%lld us=%lld class=%s outcome=%s host=", req->res.status,
	    (long long)body_bytes(req), (long long)took / 1000,
	    weir_class_name(log->stage, req->ev.class_id), weir_error_word(status));
	n = log_quote(out, n, req->host, 128);
	n = put_text(out, n, " agent=");
	n = log_quote(out, n, weir_http_header(req, "user-agent"), 256);
	n = put_trace(out, n, req);
	out[n++] = '\n';
	return n;
}

/* The request line as it was sent, quoted as one text. */
static size_t quote_request_line(char *out, size_t n, const struct weir_http_request *req)
{
	n = log_quote(out, n, req->method_text, 32) - 1;
	size_t target = n;
	n = log_quote(out, n, req->target, TEXT_MAX) - 1;
	out[target] = ' '; /* in place of its opening quote */
	return put_text(out, n, req->minor == 0 ? " HTTP/1.0\"" : " HTTP/1.1\"");
}

static size_t common_line(
    const struct access_log *log, const struct weir_http_request *req, char *out)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	time_t second = clock_ns(CLOCK_REALTIME) / NS_PER_S;
	struct weir_slice who = client(log, req);
	struct tm tm;
	size_t n;

	gmtime_r(&second, &tm);
	n = (size_t)snprintf(out, 128, "%.*s - - [%02d/%.3s/%04d:%02d:%02d:%02d +0000] ",
	    (int)who.n, who.p, tm.tm_mday, months + 3 * tm.tm_mon, tm.tm_year + 1900, tm.tm_hour,
	    tm.tm_min, tm.tm_sec);
	n = quote_request_line(out, n, req);
	n += (size_t)snprintf(
	    out + n, 64, " %d %lld\n", req->res.status, (long long)body_bytes(req));
	return n;
}

static void on_finish(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	struct logged *l = (struct logged *)tap;
	struct access_log *log = l->log;
	char line[LINE_MAX_BYTES];
	size_t n = log->format == FORMAT_COMMON ? common_line(log, req, line)
						: logfmt_line(log, req, status, line);

	weir_count(log->stage, log_writer_add(&log->writer, line, n) ? LINES : DROPPED, 1);
	free(l);
}

/* ---- the stage ---- */

static void access_log_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct access_log *log = weir_state(st);

	for (int i = 0; i < n; i++) {
		struct logged *l = malloc(sizeof(*l));
		if (l) {
			*l = (struct logged){.tap.fn = on_finish, .log = log};
			weir_http_add_tap(weir_http_request(ev[i]), &l->tap);
		} else {
			weir_count(st, DROPPED, 1);
		}
		weir_emit(st, 0, &ev[i]);
	}
}

static int open_file(struct access_log *log, const char *file, struct weir_err *err)
{
	log->fd = STDERR_FILENO;
	if (strcmp(file, "stderr") == 0)
		return 0;
	log->fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
	if (log->fd == -1) {
		snprintf(err->text, sizeof(err->text), "'%s' cannot be opened for writing: %s",
		    file, strerror(errno));
		return WEIR_ESYS;
	}
	log->own_fd = true;
	return 0;
}

static void close_file(struct access_log *log)
{
	if (log->own_fd)
		close(log->fd);
	log->own_fd = false;
}

static int access_log_init(struct weir_stage *st, struct weir_err *err)
{
	const struct access_log_conf *conf = weir_conf(st);
	struct access_log *log = weir_state(st);
	int rc = open_file(log, conf->file, err);

	if (rc != 0)
		return rc;
	log->stage = st;
	log->format = conf->format;
	log->address = weir_http_request_type.fields;
	while (strcmp(log->address->name, "address") != 0)
		log->address++;
	rc = log_writer_init(&log->writer, log->fd, (size_t)conf->buffer_bytes, conf->flush_ns);
	if (rc != 0)
		close_file(log);
	return rc;
}

static int access_log_start(struct weir_stage *st, struct weir_err *err)
{
	struct access_log *log = weir_state(st);
	int rc = log_writer_start(&log->writer);

	if (rc != 0)
		snprintf(err->text, sizeof(err->text), "the writer thread could not be created");
	return rc;
}

static void access_log_fini(struct weir_stage *st)
{
	struct access_log *log = weir_state(st);

	log_writer_fini(&log->writer);
	close_file(log);
}

#define ROW(member) offsetof(struct access_log_conf, member)

static const struct weir_knob knobs[] = {
    {.name = "file",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(file),
	.def = "stderr",
	.help = "file to append to, or stderr"},
    {.name = "format",
	.type = WEIR_KNOB_ENUM,
	.offset = ROW(format),
	.def = "logfmt",
	.choices = "logfmt|common",
	.help = "shape of a line"},
    {.name = "flush",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(flush_ns),
	.def = "200ms",
	.min = 0,
	.max = 6e10,
	.help = "how long a line may wait for others to be written with it"},
    {.name = "buffer",
	.type = WEIR_KNOB_BYTES,
	.offset = ROW(buffer_bytes),
	.def = "256KiB",
	.min = 16384,
	.max = 1 << 30,
	.help = "lines beyond two such buffers are dropped and counted"},
    {.name = NULL},
};

static const struct weir_metric metrics[] = {
    [LINES] = {"access_log_lines_total", WEIR_METRIC_COUNTER, "lines", "lines written"},
    [DROPPED] = {"access_log_dropped_total", WEIR_METRIC_COUNTER, "lines",
	"lines lost since the file was too slow or memory short"},
    {NULL, WEIR_METRIC_COUNTER, NULL, NULL},
};

static const struct weir_outlet outlets[] = {
    {"out", WEIR_ANY_EVENT, true, "every request, unchanged"},
    {NULL, NULL, false, NULL},
};

extern const struct weir_stage_ops weir_stage_access_log;
const struct weir_stage_ops weir_stage_access_log = {
    .abi = WEIR_STAGE_ABI,
    .name = "access_log",
    .summary = "Writes a line for every request and passes it on",
    .accepts = &weir_http_request_type,
    .outlets = outlets,
    .knobs = knobs,
    .conf_size = sizeof(struct access_log_conf),
    .metrics = metrics,
    .state_size = sizeof(struct access_log),
    .init = access_log_init,
    .start = access_log_start,
    .handle = access_log_handle,
    .fini = access_log_fini,
};
