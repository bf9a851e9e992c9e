/* SPDX-License-Identifier: MIT */
/*
 * echo: answer an HTTP request with its own contents. THE STAGE TO COPY.
 *
 * It does little, but shows the usual parts of a stage: a fixed knob, a live knob, an optional
 * outlet, a metric, shared state and a key. docs/writing-a-stage.md explains it step by step. A
 * stage is one file and one CMake line:
 *
 *         weir_stage(echo basic/echo.c)
 *
 * and its contract is the struct at the bottom, `weir_stage_echo`. Everything above it is static.
 * Help texts, checks, metrics, the JSON Schema and the dashboard are generated from the tables, so
 * there is nothing to register. Leave out what your stage does not need.
 *
 * Try it:
 *
 *         stages:
 *           web:  { use: http.server, with: { listen: 127.0.0.1:8080 }, to: { request: echo } }
 *           echo: { use: echo, with: { greeting: "you sent" } }
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/http.h> /* requests as events */
#include <weir/weir.h> /* everything else a stage may use */

/* Outlets and metrics are known to the framework by their index in the tables below. */
enum { ECHO_LARGE };
enum { ECHO_BYTES };

/* Filled in from `with:`. There is one member per knob; weir/knob.h lists the C type for each type
 * of knob. */
struct echo_conf {
	char *greeting;
	int64_t max_body_bytes;
};

/* One per stage, initially zeroed and shared by all its threads. Members must therefore be atomic,
 * or constant after init. For state per thread, set thread_state_size. */
struct echo_state {
	size_t greeting_bytes;       /* set by init, then constant */
	atomic_uint_fast64_t served; /* incremented by all handlers */
};

/* Build the response. Returns its length; *text is malloc'd, or NULL if out of memory. */
static size_t echo_text(
    const struct weir_stage *st, uint64_t number, const struct weir_http_request *req, char **text)
{
	/* Immutable and valid until the handler returns. If a live knob is changed in the meantime,
	 * the change takes effect in the next batch. */
	const struct echo_conf *conf = weir_conf(st);
	const struct echo_state *state = weir_state(st);
	size_t size = state->greeting_bytes + req->method_text.n + req->target.n + req->body.n + 64;
	char *t = malloc(size);
	int n = 0;

	/* Slices are not NUL-terminated: print them by length. */
	if (t)
		n = snprintf(t, size, "%s (%llu)\n%.*s %.*s\n", conf->greeting,
		    (unsigned long long)number, (int)req->method_text.n, req->method_text.p,
		    (int)req->target.n, req->target.p);
	if (t && req->body.n > 0)
		memcpy(t + n, req->body.p, req->body.n); /* a body may contain NUL bytes */
	*text = t;
	return (size_t)n + req->body.n;
}

static void echo_one(struct weir_stage *st, struct weir_event **ev)
{
	const struct echo_conf *conf = weir_conf(st);
	struct echo_state *state = weir_state(st);
	/* aborts if the event is not an HTTP request, since that would be a bug */
	struct weir_http_request *req = weir_http_request(*ev);
	char *text;

	/* This stage needs the whole body, so a body that arrives in parts counts as too long;
	 * digest.c shows how to handle such bodies. */
	if ((int64_t)req->body.n > conf->max_body_bytes || weir_http_body_streamed(req)) {
		/* Send the event to the outlet if the YAML links one, else answer here. */
		if (weir_outlet_linked(st, ECHO_LARGE)) {
			/* *ev is NULL now: the next stage owns the event */
			weir_emit(st, ECHO_LARGE, ev);
			return;
		}
		weir_event_finish(ev, weir_http_respond_status(req, 413));
		return;
	}
	uint64_t number = 1 + atomic_fetch_add_explicit(&state->served, 1, memory_order_relaxed);
	size_t n = echo_text(st, number, req, &text);
	if (!text) {
		/* Lack of memory is reported as the outcome of the event: the client gets a 500. */
		weir_event_finish(ev, WEIR_ENOMEM);
		return;
	}
	weir_count(st, ECHO_BYTES, (int64_t)n);
	/* The response takes over `text` and frees it once it is sent. */
	int rc = weir_http_respond(
	    req, 200, "text/plain; charset=utf-8", (struct weir_slice){text, n}, free, text);
	weir_event_finish(ev, rc);
}

/* Called with at least one event, each of the type in `accepts`. On return, every event must have
 * been emitted, finished or held. The function may run in several threads at the same time, unless
 * the YAML sets `mode: exclusive`. */
static void echo_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		echo_one(st, &ev[i]);
}

/* Check what the knob table cannot check, and acquire resources. A stage that acquires any releases
 * them in `fini`. */
static int echo_init(struct weir_stage *st, struct weir_err *err)
{
	const struct echo_conf *conf = weir_conf(st);
	struct echo_state *state = weir_state(st);

	if (strchr(conf->greeting, '\n')) {
		snprintf(err->text, sizeof(err->text), "'greeting' must be one line");
		return WEIR_EINVAL;
	}
	state->greeting_bytes = strlen(conf->greeting);
	return 0;
}

/* Events with the same key form a cohort (`cohort: { by: stage }`) or are handled by the same
 * thread (`mode: partitioned`). Here the key is a hash of the path. */
static uint64_t echo_key(struct weir_stage *st, const struct weir_event *ev)
{
	(void)st;
	return weir_hash(((const struct weir_http_request *)ev)->path);
}

static const struct weir_knob echo_knobs[] = {
    {.name = "greeting",
	.type = WEIR_KNOB_STRING,
	.offset = offsetof(struct echo_conf, greeting),
	.def = "you sent",
	.help = "text at the start of every answer"},
    {.name = "max_body",
	.type = WEIR_KNOB_BYTES,
	.offset = offsetof(struct echo_conf, max_body_bytes),
	.def = "64KiB",
	.min = 0,
	.max = 1 << 30,
	.flags = WEIR_KNOB_LIVE, /* may be changed while the server runs */
	.help = "longest body that is echoed"},
    {0},
};

static const struct weir_outlet echo_outlets[] = {
    [ECHO_LARGE] = {.name = "large",
	.type = &weir_http_request_type,
	.optional = true,
	.help = "requests whose body exceeds 'max_body' or is streamed; if unlinked, they get 413"},
    {0},
};

static const struct weir_metric echo_metrics[] = {
    [ECHO_BYTES] = {"echo_bytes_total", WEIR_METRIC_COUNTER, "bytes", "Bytes of echoed answers"},
    {0},
};

/* The only symbol that this file exports, also when it is built as a plug-in. */
const struct weir_stage_ops weir_stage_echo = {
    .abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_IN_PARTS,
    .name = "echo",
    .summary = "Answers a request with its own content",
    .accepts = &weir_http_request_type,
    .outlets = echo_outlets,
    .knobs = echo_knobs,
    .conf_size = sizeof(struct echo_conf),
    .metrics = echo_metrics,
    .state_size = sizeof(struct echo_state),
    .init = echo_init,
    .handle = echo_handle,
    .key = echo_key,
};
