/* SPDX-License-Identifier: MIT */
/* The metrics of http.server: one row each. */
#ifndef WEIR_HTTP_METRICS_H
#define WEIR_HTTP_METRICS_H

/* Rows of the metrics table: name, kind, unit, help. */
#define SERVER_METRICS(X)                                                                          \
	X(CONNECTIONS, "http_connections", GAUGE, "connections",                                   \
	    "client connections that are open")                                                    \
	X(ACCEPTED, "http_accepted_total", COUNTER, "connections", "client connections accepted")  \
	X(REFUSED, "http_refused_total", TURNED_AWAY, "connections",                               \
	    "connections refused for exceeding max_connections or for lack of descriptors")        \
	X(REFUSED_ADDRESS, "http_refused_address_total", TURNED_AWAY, "connections",               \
	    "connections refused for exceeding max_per_address")                                   \
	X(REFUSED_RATE, "http_refused_rate_total", TURNED_AWAY, "connections",                     \
	    "connections refused for exceeding accept_rate")                                       \
	X(REFUSED_MEMORY, "http_refused_memory_total", TURNED_AWAY, "requests",                    \
	    "requests that got 503 because memory for connections or bodies was used up")          \
	X(REFUSED_LATE, "http_refused_late_total", COUNTER, "requests",                            \
	    "requests that got 503 because they were incomplete when the drain time ended")        \
	X(REFUSED_HANDED, "http_refused_handed_total", COUNTER, "connections",                     \
	    "connections from before a reload, closed because they could not be taken over")       \
	X(EVICTED, "http_evicted_total", COUNTER, "connections",                                   \
	    "idle or slow connections closed for new ones, to free memory, or for connections of " \
	    "the previous server that wait for an I/O thread")                                     \
	X(ACCEPT_FAILURES, "http_accept_failures_total", COUNTER, "failures",                      \
	    "accepts that failed for lack of descriptors or memory")                               \
	X(ANSWERS_2XX, "http_responses_2xx_total", COUNTER, "responses", "responses of class 2xx") \
	X(ANSWERS_3XX, "http_responses_3xx_total", COUNTER, "responses", "responses of class 3xx") \
	X(ANSWERS_4XX, "http_responses_4xx_total", COUNTER, "responses", "responses of class 4xx") \
	X(ANSWERS_5XX, "http_responses_5xx_total", COUNTER, "responses", "responses of class 5xx") \
	X(BAD_REQUESTS, "http_bad_requests_total", COUNTER, "requests",                            \
	    "requests refused by the parser before they entered the graph")                        \
	X(BYTES_IN, "http_received_bytes_total", COUNTER, "bytes",                                 \
	    "bytes read from clients, without TLS overhead")                                       \
	X(BYTES_OUT, "http_sent_bytes_total", COUNTER, "bytes",                                    \
	    "bytes written to clients, without TLS overhead")                                      \
	X(TIMEOUTS_IDLE, "http_timeouts_idle_total", COUNTER, "connections",                       \
	    "connections closed because they were idle")                                           \
	X(TIMEOUTS_HEADER, "http_timeouts_header_total", COUNTER, "connections",                   \
	    "connections closed because a head took longer than header_timeout")                   \
	X(TIMEOUTS_BODY, "http_timeouts_body_total", COUNTER, "connections",                       \
	    "connections closed because a body paused for body_timeout")                           \
	X(TIMEOUTS_WRITE, "http_timeouts_write_total", COUNTER, "connections",                     \
	    "connections closed because no byte of an answer was read for write_timeout")          \
	X(SLOW_BODIES, "http_slow_bodies_total", COUNTER, "connections",                           \
	    "connections closed because a body arrived more slowly than min_body_rate")            \
	X(SLOW_READERS, "http_slow_readers_total", COUNTER, "connections",                         \
	    "connections closed because answers were read more slowly than min_send_rate")         \
	X(LARGE_HEADS, "http_large_heads_total", COUNTER, "requests",                              \
	    "requests that got 414 or 431 because their target or head was too long")              \
	X(LARGE_BODIES, "http_large_bodies_total", COUNTER, "requests",                            \
	    "requests that got 413 because their body was longer than max_body")                   \
	X(LAST_REQUESTS, "http_keep_alive_ends_total", COUNTER, "connections",                     \
	    "connections closed after keep_alive_requests requests")                               \
	X(PIPELINE_FULL, "http_pipeline_full_total", COUNTER, "times",                             \
	    "times that reading from a connection paused because its pipeline was full")           \
	X(MEMORY, "http_memory_bytes", GAUGE, "bytes",                                             \
	    "memory used by connections: input, requests, bodies, unsent responses")               \
	X(MEMORY_STEP, "http_memory_step", GAUGE, "step",                                          \
	    "measure against memory use: 0 none, 1 shorter time-outs, 2 no keep-alive, 3 "         \
	    "requests refused, 4 nothing accepted")                                                \
	X(MEMORY_LIMIT, "http_memory_limit_bytes", GAUGE, "bytes",                                 \
	    "limit on the memory held by connections, set by 'memory'")                            \
	X(HINTS_IGNORED, "http_hints_ignored_total", COUNTER, "requests",                          \
	    "requests whose x-deadline-ms, grpc-timeout, x-retry-attempt or traceparent could "    \
	    "not be read")                                                                         \
	X(FORWARDED_IGNORED, "http_forwarded_ignored_total", COUNTER, "requests",                  \
	    "requests of a trusted proxy whose X-Forwarded-For or Forwarded could not be read")    \
	X(PROXY_FAILED, "http_proxy_failed_total", COUNTER, "connections",                         \
	    "connections of a trusted proxy closed for a bad, late or missing PROXY header")       \
	X(UNDELIVERED, "http_undelivered_total", COUNTER, "responses",                             \
	    "answers whose client had disconnected")                                               \
	X(PART_BODIES, "http_streamed_bodies_total", COUNTER, "requests",                          \
	    "requests that entered the graph before their body was complete")                      \
	X(PART_ANSWERS, "http_streamed_responses_total", COUNTER, "responses",                     \
	    "responses that stages began to stream")                                               \
	X(PART_TORN, "http_torn_bodies_total", COUNTER, "requests",                                \
	    "streamed request bodies that ended before they were complete")                        \
	X(PART_BYTES, "http_stream_buffer_bytes", GAUGE, "bytes",                                  \
	    "part of body_memory that streamed bodies hold now")                                   \
	X(PART_PEAK, "http_stream_buffer_peak_bytes", GAUGE, "bytes",                              \
	    "the most memory that streamed bodies held at one time")                               \
	X(TLS_CONNECTIONS, "http_tls_connections", GAUGE, "connections",                           \
	    "open connections whose TLS handshake is complete")                                    \
	X(TLS_FULL, "http_tls_handshakes_full_total", COUNTER, "handshakes",                       \
	    "TLS handshakes completed with a key exchange and a signature")                        \
	X(TLS_RESUMED, "http_tls_handshakes_resumed_total", COUNTER, "handshakes",                 \
	    "TLS handshakes completed with a ticket")                                              \
	/* in the order of enum tls_verdict */                                                     \
	X(TLS_FAILED_CLOSED, "http_tls_failed_closed_total", COUNTER, "handshakes",                \
	    "TLS handshakes whose client disconnected")                                            \
	X(TLS_FAILED_VERSION, "http_tls_failed_version_total", COUNTER, "handshakes",              \
	    "TLS handshakes with no version, cipher or protocol in common")                        \
	X(TLS_FAILED_ALERT, "http_tls_failed_alert_total", COUNTER, "handshakes",                  \
	    "TLS handshakes ended by the client, for example over an untrusted certificate")       \
	X(TLS_FAILED_PROTOCOL, "http_tls_failed_protocol_total", COUNTER, "handshakes",            \
	    "connections that sent something other than a TLS handshake, or a malformed one")      \
	X(TLS_FAILED_PLAIN, "http_tls_failed_plain_total", COUNTER, "connections",                 \
	    "connections whose client spoke HTTP to a TLS port")                                   \
	X(TLS_FAILED_TIMEOUT, "http_tls_failed_timeout_total", COUNTER, "handshakes",              \
	    "TLS handshakes that were not complete within header_timeout")                         \
	X(TLS_FAILED_SHED, "http_tls_failed_shed_total", COUNTER, "handshakes",                    \
	    "TLS handshakes refused by the stage that performs them")                              \
	X(TLS_FAILED_INTERNAL, "http_tls_failed_internal_total", COUNTER, "handshakes",            \
	    "TLS handshakes that failed in the server, for example for lack of memory")

enum server_metric {
#define SERVER_METRIC_ENUM(id, name, kind, unit, help) SERVER_##id,
	SERVER_METRICS(SERVER_METRIC_ENUM)
#undef SERVER_METRIC_ENUM
	    SERVER_N_METRICS,
};

#endif
