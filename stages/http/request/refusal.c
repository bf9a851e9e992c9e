/* SPDX-License-Identifier: MIT */
/*
 * Composes the response to a refused request. At ten times the load that it can serve, a server
 * spends most of its time here. The fields are therefore written in one pass and are not checked:
 * their names are constant, and the names of stages and classes were checked with the graph.
 */
#include "http/request/refusal.h"

#include <string.h>

#include "http/message/put.h"
#include "http/message/wire.h"

static char *put_text(char *at, const char *text)
{
	return put(at, text, strlen(text));
}

bool refusal_trace_text(const struct weir_event *ev, char buf[WEIR_TRACE_ID_BYTES])
{
	struct weir_trace trace = {0};

	buf[0] = '\0';
	if (weir_event_traced(ev, &trace) && (trace.parent || trace.sampled))
		weir_trace_id_print(&trace, buf);
	return buf[0];
}

/* Write Retry-After: the time `known_ns` from now, at least `least_s`. With `spread`, the time
 * varies at random. The requests of users do not need this: users are admitted at different times
 * already. */
static char *put_retry(
    char *at, const struct http_req *r, int64_t known_ns, int least_s, bool spread)
{
	int s = wire_retry_after_s(known_ns, least_s, spread, r->pub.ev.trace_id);

	at = put_number(PUT(at, "Retry-After: "), (uint64_t)s);
	return PUT(at, "\r\n");
}

/* Whether a stage has refused the request because of a limit of its own. */
static bool limited(const struct http_req *r, int status)
{
	return status == WEIR_ERATE && r->limit_status != 0;
}

/* Size of the fixed text of the fields, and of the values whose length is bounded. */
#define WORDS                                                                                      \
	"Retry-After: \r\nX-Weir-Limit: rate\r\nX-Weir-Shed: stage=; reason=; class=; "            \
	"trace=\r\nX-Weir-Shed-Id: \r\n"
#define FIXED_BYTES (sizeof(WORDS) + PUT_NUMBER_MAX + WEIR_SHED_ID_BYTES)

/* Add fields with the stage that refused the request and the reason: X-Weir-Shed in words, and
 * X-Weir-Shed-Id as the id that `weir why --shed` explains. */
static void name_shed(struct http_req *r, int status, int least_s)
{
	const struct weir_event *ev = &r->pub.ev;
	const struct weir_stage *st = weir_loop_stage(r->loop);
	const char *stage = weir_stage_peer_name(st, ev->stage), *reason = weir_error_word(status),
		   *class = weir_class_name(st, ev->class_id);
	char id[WEIR_SHED_ID_BYTES], trace[WEIR_TRACE_ID_BYTES];
	bool traced = refusal_trace_text(ev, trace);
	char *at = request_fields_room(
	    &r->pub, FIXED_BYTES + strlen(stage) + strlen(reason) + strlen(class) + strlen(trace));

	if (!at)
		return;
	if (limited(r, status))
		at = PUT(
		    put_number(PUT(at, "Retry-After: "), r->limit_s), "\r\nX-Weir-Limit: rate\r\n");
	else
		at = put_retry(at, r, weir_retry_after_ns(ev), least_s,
		    (ev->session & ~WEIR_SESSION_RETRY) == 0);
	at = put_text(PUT(at, "X-Weir-Shed: stage="), stage);
	at = put_text(PUT(at, "; reason="), reason);
	at = put_text(PUT(at, "; class="), class);
	if (traced)
		at = put_text(PUT(at, "; trace="), trace);
	if (weir_shed_id(ev, id))
		at = put_text(PUT(at, "\r\nX-Weir-Shed-Id: "), id);
	request_fields_to(&r->pub, PUT(at, "\r\n"));
}

void refusal_answer(struct http_req *r, int status, int retry_after_s)
{
	weir_http_response_reset(&r->pub);
	weir_http_respond_status(&r->pub, limited(r, status) ? r->limit_status : 503);
	if (r->loop)
		name_shed(r, status, retry_after_s);
}

void refusal_torn(struct http_req *r, int status, const char *limit, int retry_after_s)
{
	weir_http_response_reset(&r->pub);
	weir_http_respond_status(&r->pub, status);
	if (limit)
		weir_http_add_field(&r->pub, "X-Weir-Limit", limit);
	char *at = status == 503 && r->loop ? request_fields_room(&r->pub, FIXED_BYTES) : NULL;
	if (at)
		request_fields_to(&r->pub, put_retry(at, r, 0, retry_after_s, false));
}

void refusal_closed(struct http_req *r, int retry_after_s)
{
	refusal_torn(r, 503, NULL, retry_after_s);
}
