/* SPDX-License-Identifier: MIT */
/* What http.client counts, and what it is configured with. */
#ifndef WEIR_HTTP_CLIENT_CONF_H
#define WEIR_HTTP_CLIENT_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/weir.h>

#include "net/address.h"
#include "net/tls/tls_origin.h"

#define CLIENT_ORIGIN_TEXT 256

#define CLIENT_METRICS(X)                                                                          \
	X(CONNECTIONS, "origin_connections", GAUGE, "connections", "open connections to origins")  \
	X(CONNECTS, "origin_connects_total", COUNTER, "connections",                               \
	    "connections opened to origins")                                                       \
	X(REUSES, "origin_reuses_total", COUNTER, "requests",                                      \
	    "requests sent over a connection that had carried others before")                      \
	X(CONNECT_FAILURES, "origin_connect_failures_total", COUNTER, "connections",               \
	    "connections that could not be opened in time")                                        \
	X(TLS_FAILURES, "origin_tls_failures_total", COUNTER, "connections",                       \
	    "connections whose TLS handshake failed, also because of the certificate")             \
	X(TLS_RESUMED, "origin_tls_resumed_total", COUNTER, "connections",                         \
	    "TLS handshakes that resumed an earlier session")                                      \
	X(CHECKS_PASSED, "origin_checks_passed_total", COUNTER, "checks", "health checks passed")  \
	X(CHECKS_FAILED, "origin_checks_failed_total", COUNTER, "checks", "health checks failed")  \
	X(STALE, "origin_stale_total", COUNTER, "connections",                                     \
	    "kept connections that the origin had closed when a request was sent")                 \
	X(RETRIES, "origin_retries_total", COUNTER, "requests", "requests sent to another origin") \
	X(NO_RETRIES, "origin_retries_refused_total", COUNTER, "requests",                         \
	    "requests not sent again because the retry budget was used up")                        \
	X(EJECTIONS, "origin_ejections_total", COUNTER, "origins",                                 \
	    "times that an origin was left out after failures in a row")                           \
	X(OUT, "origins_out", GAUGE, "origins", "origins that are left out, counted by each loop") \
	X(BAD, "origin_bad_answers_total", COUNTER, "answers",                                     \
	    "answers that were malformed, ambiguous or incomplete")                                \
	X(TIMEOUTS, "origin_timeouts_total", COUNTER, "requests",                                  \
	    "requests for which an origin took longer than 'timeout'")                             \
	X(SLOW, "origin_slow_total", COUNTER, "requests",                                          \
	    "requests whose answer arrived more slowly than 'min_rate'")                           \
	X(DENIED, "origin_denied_total", COUNTER, "addresses",                                     \
	    "addresses of names that 'deny' has ruled out")                                        \
	X(UPGRADES, "origin_upgrades", GAUGE, "connections",                                       \
	    "upgraded connections (WebSocket) now")                                                \
	X(UPGRADES_TOTAL, "origin_upgrades_total", COUNTER, "connections", "connections upgraded") \
	X(UPGRADES_FULL, "origin_upgrades_refused_total", COUNTER, "requests",                     \
	    "requests for an upgrade beyond 'upgrades'")                                           \
	X(UPGRADE_BYTES, "origin_upgrade_bytes_total", COUNTER, "bytes",                           \
	    "bytes of upgraded connections, both ways")                                            \
	X(GONE, "origin_cancelled_total", COUNTER, "requests",                                     \
	    "requests cancelled because their client had gone")                                    \
	X(NONE, "origin_none_total", COUNTER, "requests",                                          \
	    "requests answered with 502 because all origins were left out or had no address")      \
	X(NAMES_CHANGED, "origin_names_changed_total", COUNTER, "changes",                         \
	    "times that the addresses of an origin's name have changed, counted by each loop")     \
	X(NAMES_FAILED, "origin_names_failed_total", COUNTER, "answers",                           \
	    "times that no address of an origin's name was found, counted by each loop")           \
	X(BYTES, "origin_answer_bytes_total", COUNTER, "bytes", "bytes received from origins")

enum client_metric {
#define CLIENT_METRIC_ENUM(id, name, kind, unit, help) CLIENT_##id,
	CLIENT_METRICS(CLIENT_METRIC_ENUM)
#undef CLIENT_METRIC_ENUM
};

struct client_conf {
	struct weir_strings origins;
	int64_t loops, max_connections;
	int64_t connect_timeout_ns, timeout_ns, idle_ns;
	struct weir_strings deny, retry_on;
	int64_t upgrades, upgrade_idle_ns;
	double min_rate; /* bytes per s */
	int64_t retries;
	double retry_budget;
	int64_t fails, eject_ns;
	struct tls_origin_conf tls;
	struct {
		struct weir_strings servers;
		char *file;
		int64_t ttl_min_ns, ttl_max_ns, negative_ns, stale_ns, attempt_ns, tries;
	} resolve;
	struct {
		char *path; /* empty: no checks */
		int64_t every_ns;
	} health;
};

/** An origin as configured. Constant. */
struct origin_spec {
	struct address address; /* unless it is named */
	bool named;             /* `host` is a name, whose addresses are asked for */
	uint16_t port;
	char text[CLIENT_ORIGIN_TEXT]; /* "127.0.0.1:3000", for Host if the client sent none */
	char host[CLIENT_ORIGIN_TEXT]; /* without the port and without brackets */
	bool secure;                   /* https */
};

#endif
