/* SPDX-License-Identifier: MIT */
/*
 * The transport of the admin client: one request and its response through libcurl. Any thread; each
 * address and each request is used by one thread.
 */
#ifndef WEIR_CLI_CLIENT_CURL_H
#define WEIR_CLI_CLIENT_CURL_H

#include <stdbool.h>
#include <stdint.h>

#include <curl/curl.h>

#include <weir/error.h>

#include "client.h"

/** Maximum wait for a connection, and for a server that sends nothing. 5 s is a guess: servers
 *  respond within milliseconds. */
#define CLIENT_STEP_NS 5000000000LL

/** Where a server listens; see client_get for the forms of `url`. */
struct client_address {
	const char *url;       /* borrowed; for messages */
	const char *unix_path; /* part of `url`, NULL for TCP */
	CURLU *parts;          /* `url` as libcurl has parsed it; owned */
	bool tls;
};

/** A request. All strings are borrowed. */
struct client_request {
	const char *method, *path;
	const char *body;  /* JSON, or NULL */
	const char *token; /* NULL: send none */
	const char *ca;    /* PEM file; NULL: the CA certificates of the system */
	int64_t left_ns;   /* the time that this request may take */
	int64_t limit_ns;  /* the time for all requests; for messages */
};

/** Parse `url`. Returns 0, or WEIR_EINVAL or WEIR_ENOMEM with a message in `err`. After success the
 *  caller must call client_address_end. */
int client_address_parse(const char *url, struct client_address *at, struct weir_err *err);

/** Free what `at` owns. */
void client_address_end(struct client_address *at);

/**
 * Send `request` to `at`, and read the whole response into `answer`, which the caller owns. A token
 * is only sent over TLS or to this machine. The certificate of a server must match its host and be
 * signed by a trusted CA; this check cannot be turned off. Returns 0, or the errors of client_get
 * with a message in `err`; then `answer->body` is NULL.
 */
int client_curl_ask(const struct client_address *at, const struct client_request *request,
    struct client_answer *answer, struct weir_err *err);

/** Store `code` and the formatted message in `err`. Returns `code`. */
int client_fail(struct weir_err *err, int code, const char *fmt, ...) WEIR_PRINTF(3, 4);

#endif
