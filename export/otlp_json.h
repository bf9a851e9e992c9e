/* SPDX-License-Identifier: MIT */
/* Requests as OTLP's ExportTraceServiceRequest in JSON (opentelemetry-proto, trace/v1). Pure functions. */
#ifndef WEIR_EXPORT_OTLP_JSON_H
#define WEIR_EXPORT_OTLP_JSON_H

#include <jansson.h>

#include <weir/graph.h>

/**
 * `slow[0..n)` as a new reference, NULL without memory: of each a span for the request, whose parent is the caller's, and one
 * for each stage below it, with its wait and service. `service` is the resource's service.name.
 */
json_t *otlp_json(const char *service, const struct weir_slow *slow, int n);

/** Spans that a request makes. */
int otlp_spans(const struct weir_slow *slow);

#endif
