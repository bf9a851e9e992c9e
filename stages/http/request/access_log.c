/* SPDX-License-Identifier: MIT */
/*
 * access_log: passes requests on and writes one line for each request. The line is written when the
 * response has been sent, or as soon as it can no longer be sent.
 *
 * A tap on the request runs in the thread that finishes the request, and registers a waiter for the
 * response (sent.h). When the kernel has all of the response, or the connection was closed first,
 * the I/O thread formats the line (access_line.c), so the line shows how much was sent and how long
 * that took. The I/O thread appends the line to the buffer of a log file (weir/log_file.h); another
 * thread writes the buffer to the file. Requests that the parser refused never enter the graph:
 * http.server reports them in the server's log, and http_bad_requests_total counts them.
 *
 * `sample` is the fraction of the successful requests that is logged. The choice depends only on
 * the number that http.server has assigned to the request, so all access logs of a server log the
 * same requests. Requests that were refused, failed, or took at least `slow` are always logged.
 */
#include "http/request/access_log.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/clock.h>
#include <weir/http.h>
#include <weir/log_file.h>
#include <weir/weir.h>

#include "http/request/sent.h"

#define NS_PER_S 1000000000LL

enum metric { LINES, DROPPED, LEFT_OUT };

struct access_log_conf {
	char *file;
	int format; /* enum access_format */
	int64_t flush_ns, buffer_bytes, slow_ns;
	double sample; /* 0..1 */
};

struct access_log {
	struct weir_stage *stage;
	struct weir_log_file *file;
	const struct weir_field *address;
};

/* What is attached to one request. */
struct logged {
	struct weir_http_tap tap; /* first member */
	struct http_sent sent;
	struct access_log *log;
};

/* ---- lines ---- */

static struct weir_slice client(const struct access_log *log, const struct weir_http_request *req)
{
	struct weir_slice s = log->address->get(&req->ev, NULL);

	return s.n > 0 ? s : (struct weir_slice){"-", 1};
}

/* Whether the request with number `id` is in the sample of size `share`. Multiplying by 2^64 /
 * golden ratio spreads successive numbers evenly (Knuth, The Art of Computer Programming 3,
 * 6.4). */
static bool drawn(int64_t id, double share)
{
	return (double)((uint64_t)id * 0x9e3779b97f4a7c15U >> 11) < share * 0x1p53;
}

/* Return the fraction that is logged of requests like `l`: `sample` for successful and fast ones, 1
 * for the others. Returns 0 if `l` is not in the sample. */
static double share_of(const struct access_log_conf *conf, const struct access_line *l)
{
	if (conf->sample >= 1 || l->outcome != WEIR_OK || l->torn || l->req->res.status >= 400 ||
	    (conf->slow_ns > 0 && l->took_ns >= conf->slow_ns))
		return 1;
	return drawn(l->req->ev.trace_id, conf->sample) ? conf->sample : 0;
}

static void write_line(
    struct access_log *log, const struct http_req *r, int64_t bytes, enum http_sent_how how)
{
	const struct access_log_conf *conf = weir_conf(log->stage);
	const struct weir_http_request *req = &r->pub;
	char text[ACCESS_LINE_BYTES];
	struct access_line line = {.req = req,
	    .outcome = r->outcome,
	    .torn = how == HTTP_SENT_TORN && r->outcome == WEIR_OK,
	    .handed = how == HTTP_SENT_HANDED && r->outcome == WEIR_OK,
	    .bytes = bytes,
	    .took_ns = weir_clock_ns(CLOCK_MONOTONIC) - req->ev.arrival_ns};

	line.share = share_of(conf, &line);
	if (line.share > 0) {
		line.wall_ns = weir_clock_ns(CLOCK_REALTIME);
		line.client = client(log, req);
		line.class_name = weir_class_name(log->stage, req->ev.class_id);
		size_t n = access_line(conf->format, &line, text);
		bool taken = weir_log_file_add(log->file, WEIR_LOG_INFO, text, n);
		weir_count(log->stage, taken ? LINES : DROPPED, 1);
	} else {
		weir_count(log->stage, LEFT_OUT, 1);
	}
}

static void on_sent(struct http_sent *sent, struct http_req *r, enum http_sent_how how)
{
	struct logged *l = (struct logged *)((char *)sent - offsetof(struct logged, sent));

	write_line(l->log, r, sent->bytes, how);
	free(l);
}

static void on_finish(struct weir_http_tap *tap, struct weir_http_request *req, int status)
{
	struct logged *l = (struct logged *)tap;
	struct http_req *r = weir_event_cast(&req->ev, &weir_http_request_type);

	(void)status; /* r->outcome has it */
	if (r->loop) {
		l->sent.fn = on_sent;
		sent_await(r, &l->sent);
		return;
	}
	/* without a server the response is never sent, so write the line now */
	write_line(l->log, r, sent_body_bytes(req), HTTP_SENT_WHOLE);
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

static int access_log_init(struct weir_stage *st, struct weir_err *err)
{
	const struct access_log_conf *conf = weir_conf(st);
	struct access_log *log = weir_state(st);

	log->stage = st;
	log->address = weir_http_request_type.fields;
	while (strcmp(log->address->name, "address") != 0)
		log->address++;
	int rc = weir_log_file_open(
	    conf->file, (size_t)conf->buffer_bytes, conf->flush_ns, &log->file, err);
	if (rc != 0)
		weir_blame(st, "file");
	return rc;
}

static int access_log_start(struct weir_stage *st, struct weir_err *err)
{
	struct access_log *log = weir_state(st);
	int rc = weir_log_file_start(log->file, "access_log", err);

	if (rc != 0)
		weir_blame(st, "file");
	return rc;
}

static void access_log_fini(struct weir_stage *st)
{
	struct access_log *log = weir_state(st);

	weir_log_file_close(log->file);
}

#define ROW(member) offsetof(struct access_log_conf, member)

static const struct weir_knob knobs[] = {
    {.name = "file",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(file),
	.def = "stderr",
	.help = "file to append to, reopened on SIGUSR1; or stderr, stdout, journal"},
    {.name = "format",
	.type = WEIR_KNOB_ENUM,
	.offset = ROW(format),
	.def = "logfmt",
	.choices = "logfmt|json|common|combined",
	.flags = WEIR_KNOB_LIVE,
	.help = "format of a line"},
    {.name = "sample",
	.type = WEIR_KNOB_RATIO,
	.offset = ROW(sample),
	.def = "100%",
	.min = 0,
	.max = 1,
	.flags = WEIR_KNOB_LIVE,
	.help = "share of the successful requests that is logged; errors always are"},
    {.name = "slow",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(slow_ns),
	.def = "1s",
	.min = 0,
	.max = 3.6e12,
	.flags = WEIR_KNOB_LIVE,
	.help = "requests that took at least this long are always logged; 0: they are sampled like "
		"all others"},
    {.name = "flush",
	.type = WEIR_KNOB_DURATION,
	.offset = ROW(flush_ns),
	.def = "200ms",
	.min = 0,
	.max = 6e10,
	.help = "how long a line may wait to be written together with others"},
    {.name = "buffer",
	.type = WEIR_KNOB_BYTES,
	.offset = ROW(buffer_bytes),
	.def = "256KiB",
	.min = 16384,
	.max = 1 << 30,
	.help = "size of a buffer for lines; lines beyond two buffers are dropped and counted"},
    {.name = NULL},
};

static const struct weir_metric metrics[] = {
    [LINES] = {"access_log_lines_total", WEIR_METRIC_COUNTER, "lines", "lines written"},
    [DROPPED] = {"access_log_dropped_total", WEIR_METRIC_COUNTER, "lines",
	"lines lost because the file was too slow or memory was short"},
    [LEFT_OUT] = {"access_log_left_out_total", WEIR_METRIC_COUNTER, "requests",
	"successful requests left out by sampling"},
    {NULL, WEIR_METRIC_COUNTER, NULL, NULL},
};

static const struct weir_outlet outlets[] = {
    {"out", WEIR_ANY_EVENT, true, "every request, unchanged"},
    {NULL, NULL, false, NULL},
};

extern const struct weir_stage_ops weir_stage_access_log;
const struct weir_stage_ops weir_stage_access_log = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
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
