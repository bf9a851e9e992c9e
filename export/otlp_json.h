/* SPDX-License-Identifier: MIT */
/* Converts requests to OTLP's ExportTraceServiceRequest in JSON (opentelemetry-proto, trace/v1).
 * Pure functions. */
#ifndef WEIR_EXPORT_OTLP_JSON_H
#define WEIR_EXPORT_OTLP_JSON_H

#include <jansson.h>

#include <weir/graph.h>

/**
 * Convert `slow[0..n)`. Each request becomes a span whose parent is the client's own span, if the
 * request carried one. It has one child span per stage, with the wait and the service time there.
 * `service` becomes the service.name of the resource. Returns a new reference, or NULL if out of
 * memory.
 */
json_t *otlp_json(const char *service, const struct weir_slow *slow, int n);

/** Return the number of spans that a request is converted to. */
int otlp_spans(const struct weir_slow *slow);

#endif
