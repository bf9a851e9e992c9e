/* SPDX-License-Identifier: MIT */
/*
 * Traces across servers: W3C Trace Context (https://www.w3.org/TR/trace-context/), level 1.
 *
 * A source that receives a trace context attaches it to its event. A stage that calls another
 * server on behalf of the event takes the current context from the event and sends it along. An
 * event without a context is given ids when a stage, a tap, the list of slowest events or the
 * export first needs them. For HTTP, weir_http_trace_field (weir/http.h) writes the header.
 */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H

#include <weir/event.h>

WEIR_C_BEGIN

/** Size of a context as text, "00-<32 hex>-<16 hex>-01", with the NUL. */
#define WEIR_TRACEPARENT_BYTES 56

/** Size of a trace id as text, 32 hex digits, with the NUL. */
#define WEIR_TRACE_ID_BYTES 33

/**
 * Parse the value of a `traceparent` field strictly. Version 00 has exactly 55 bytes; a later
 * version may have more if a '-' follows the first 55. Hex digits must be lower case, neither id
 * may be 0, and version ff is invalid. On success sets the trace id, `parent` (the caller's span)
 * and `sampled` of *trace; other flags are ignored. Returns false, with *trace unchanged, if the
 * value is invalid. Costs about 40 ns.
 */
WEIR_API bool weir_traceparent_read(struct weir_slice value, struct weir_trace *trace);

/** Write "00-<trace id>-<span>-<flags>" for a request made on behalf of `trace`. The receiving
 *  server uses `trace->span` as the parent. */
WEIR_API void weir_traceparent_print(
    const struct weir_trace *trace, char buf[WEIR_TRACEPARENT_BYTES]);

/** Write the 32 digits of the trace id, or "" if `trace` has no id. */
WEIR_API void weir_trace_id_print(const struct weir_trace *trace, char buf[WEIR_TRACE_ID_BYTES]);

/** Attach the received `trace` to the event: copies its trace id, `parent` and `sampled`, and sets no
 *  span. Called by the owner, after weir_event_init. Does nothing if the type of `ev` is not traced. */
WEIR_API void weir_event_trace_set(struct weir_event *ev, const struct weir_trace *trace);

/** Whether the event already belongs to a trace. If so, *trace (may be NULL) receives a copy.
 *  Called by the owner. Creates no ids; costs one load. */
WEIR_API bool weir_event_traced(const struct weir_event *ev, struct weir_trace *trace);

/**
 * Store in *trace the context to send with a request made on behalf of `ev`: the event's trace, and
 * the span of the stage that has the event. An event without a trace gets one now. The export of
 * the event uses the same ids. Returns false if the type of `ev` is not traced. Called by the
 * owner, in a thread of the graph. Costs about 10 ns, plus a system call for the first trace in a
 * thread.
 */
WEIR_API bool weir_event_trace(struct weir_event *ev, struct weir_trace *trace);

WEIR_C_END

#endif
