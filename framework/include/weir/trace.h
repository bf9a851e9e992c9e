/* SPDX-License-Identifier: MIT */
/*
 * Traces across servers: W3C Trace Context (https://www.w3.org/TR/trace-context/), level 1.
 *
 * A source that is told of a trace gives it to its event; a stage that asks another server on behalf of the event takes
 * the present context from it and sends it on. An event of which nobody said anything gets ids of its own when
 * somebody asks for them: a stage, a tap, the list of the slowest, the export. For HTTP there is
 * weir_http_trace_field (weir/http.h), which writes the header.
 */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H

#include <weir/event.h>

/** Bytes of a context as text, "00-<32 hex>-<16 hex>-01", with the NUL. */
#define WEIR_TRACEPARENT_BYTES 56

/** Bytes of a trace id as text, 32 hex digits, with the NUL. */
#define WEIR_TRACE_ID_BYTES 33

/**
 * Read the value of a `traceparent` field, strictly: version 00 has 55 bytes, a later one at least those and a '-' behind
 * them; hex digits are lower case, neither id is 0, version ff does not exist. On success *trace has its ids, `parent`
 * being the caller's span, and the sampled bit alone of its flags. false: not readable, *trace as it was. About 40 ns.
 */
WEIR_API bool weir_traceparent_read(struct weir_slice value, struct weir_trace *trace);

/** Write "00-<trace id>-<span>-<flags>" for a request made in the name of `trace`, `span` being its parent there. */
WEIR_API void weir_traceparent_print(
    const struct weir_trace *trace, char buf[WEIR_TRACEPARENT_BYTES]);

/** Write the 32 digits of the trace id; "" when it has none. */
WEIR_API void weir_trace_id_print(const struct weir_trace *trace, char buf[WEIR_TRACE_ID_BYTES]);

/** A source was told of `trace` with the event: its ids, `parent` and `sampled` become the event's. Behind weir_event_init, by
 *  the owner; nothing when the type of `ev` is not traced. */
WEIR_API void weir_event_trace_set(struct weir_event *ev, const struct weir_trace *trace);

/** Does the event belong to a trace yet? *trace (may be NULL) is it. The owner. Makes nothing, costs a load. */
WEIR_API bool weir_event_traced(const struct weir_event *ev, struct weir_trace *trace);

/**
 * The context that a request made on behalf of `ev` takes along: its trace, made now unless it has one, and as `span` the
 * span of the stage that has the event, which is that of the export. false when the type of `ev` is not traced. The
 * owner, in a thread of the graph. About 10 ns; no system call but for the first of a thread.
 */
WEIR_API bool weir_event_trace(struct weir_event *ev, struct weir_trace *trace);

#endif
