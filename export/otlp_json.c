/* SPDX-License-Identifier: MIT */
/* Converts requests to OTLP; see otlp_json.h. In OTLP's JSON encoding, ids are hexadecimal and
 * 64-bit numbers are strings. */
#include "otlp_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/trace.h>

#include "framework/base/json.h"

/* SpanKind and StatusCode of opentelemetry-proto, trace/v1/trace.proto. */
enum { KIND_INTERNAL = 1, KIND_SERVER = 2 };
enum { STATUS_ERROR = 2 };

static json_t *text_attribute(const char *key, const char *value)
{
	return json_pack("{s:s, s:{s:s}}", "key", key, "value", "stringValue", value);
}

static json_t *number_attribute(const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return json_pack("{s:s, s:{s:s}}", "key", key, "value", "intValue", text);
}

/* Build a span; `parent` is 0 if the span has none. Takes ownership of `attributes`. */
static json_t *span(const struct weir_trace *trace, uint64_t id, uint64_t parent, const char *name,
    int kind, int64_t start_ns, int64_t end_ns, json_t *attributes)
{
	char trace_id[WEIR_TRACE_ID_BYTES], span_id[17], parent_id[17] = "", start[24], end[24];

	weir_trace_id_print(trace, trace_id);
	snprintf(span_id, sizeof(span_id), "%016" PRIx64, id);
	if (parent)
		snprintf(parent_id, sizeof(parent_id), "%016" PRIx64, parent);
	snprintf(start, sizeof(start), "%" PRId64, start_ns);
	snprintf(end, sizeof(end), "%" PRId64, end_ns);
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:s, s:o}", "traceId", trace_id, "spanId",
	    span_id, "parentSpanId", parent_id, "name", name, "kind", kind, "startTimeUnixNano",
	    start, "endTimeUnixNano", end, "attributes", attributes);
}

/* Build the span of the request. Its name is only the first word of the description, which is the
 * method: names with paths would be too many. */
static json_t *request_span(const struct weir_slow *slow)
{
	char name[32];
	json_t *attributes = json_array(), *json;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(slow->what, " "), slow->what);
	json_push(&attributes, text_attribute("weir.request", slow->what));
	json_push(&attributes, text_attribute("weir.class", slow->class_name));
	json_push(&attributes, text_attribute("weir.outcome", weir_error_word(slow->status)));
	json_push(&attributes, text_attribute("weir.end", slow->end ? slow->end : ""));
	json_push(&attributes, number_attribute("weir.hops", slow->n_hops));
	json = span(&slow->trace, slow->trace.span, slow->trace.parent, *name ? name : "request",
	    slow->depth > 0 ? KIND_INTERNAL : KIND_SERVER, slow->wall_ns - slow->took_ns,
	    slow->wall_ns, attributes);
	if (json && slow->status != WEIR_OK &&
	    json_object_set_new(json, "status",
		json_pack("{s:i, s:s}", "code", STATUS_ERROR, "message",
		    weir_error_text(slow->status))) != 0) {
		json_decref(json);
		return NULL;
	}
	return json;
}

static json_t *stage_span(const struct weir_slow *slow, const struct weir_span *s)
{
	int64_t start_ns = slow->wall_ns - slow->took_ns + s->at_ns;
	json_t *attributes = json_array();

	json_push(&attributes, text_attribute("weir.stage", s->stage));
	json_push(&attributes, number_attribute("weir.wait_ns", s->wait_ns));
	json_push(&attributes, number_attribute("weir.service_ns", s->service_ns));
	if (s->await_ns > 0)
		json_push(&attributes, number_attribute("weir.awaiting_ns", s->await_ns));
	return span(&slow->trace, s->id, slow->trace.span, s->stage, KIND_INTERNAL, start_ns,
	    start_ns + s->wait_ns + s->service_ns + s->await_ns, attributes);
}

int otlp_spans(const struct weir_slow *slow)
{
	return 1 + slow->n_spans;
}

json_t *otlp_json(const char *service, const struct weir_slow *slow, int n)
{
	json_t *spans = json_array(), *about = json_array();

	for (int i = 0; i < n; i++) {
		json_push(&spans, request_span(&slow[i]));
		for (int k = 0; k < slow[i].n_spans; k++)
			json_push(&spans, stage_span(&slow[i], &slow[i].span[k]));
	}
	json_push(&about, text_attribute("service.name", service));
	json_push(&about, text_attribute("telemetry.sdk.name", "weir"));
	json_push(&about, text_attribute("telemetry.sdk.version", WEIR_VERSION));
	return json_pack("{s:[{s:{s:o}, s:[{s:{s:s, s:s}, s:o}]}]}", "resourceSpans", "resource",
	    "attributes", about, "scopeSpans", "scope", "name", "weir", "version", WEIR_VERSION,
	    "spans", spans);
}
