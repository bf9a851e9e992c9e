/* SPDX-License-Identifier: MIT */
/* Requests without a server, for tests of the cache: allocated by the test, without an event
 * loop. */
#ifndef WEIR_TESTS_FILE_CACHE_REQUEST_H
#define WEIR_TESTS_FILE_CACHE_REQUEST_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/http.h>

#define REQUEST_HEADERS 8

struct test_request {
	struct weir_http_header headers[REQUEST_HEADERS];
	struct weir_http_request *req;
};

struct weir_slice slice(const char *text);

/** A GET of `path`. */
void request_init(struct test_request *t, const char *path);
void request_header(struct test_request *t, const char *name, const char *value);

/** Release the response, as the server does after sending it. */
void request_fini(struct test_request *t);

/** The body of the response, whatever it consists of, as a malloc'd string. */
char *request_body(const struct test_request *t);

/** All response fields, those of res.fields and the added ones, as one malloc'd string. */
char *request_fields(const struct test_request *t);

#endif
