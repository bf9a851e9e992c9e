/* SPDX-License-Identifier: MIT */
/*
 * A small blocking HTTP/1.1 client for the admin endpoint of a server: one request, one connection,
 * the whole answer in memory.
 */
#ifndef WEIR_CLI_CLIENT_H
#define WEIR_CLI_CLIENT_H

#include <stddef.h>

#include <weir/error.h>

/** Where the admin endpoint is unless a server's `admin:` says otherwise. */
#define CLIENT_DEFAULT_URL "http://127.0.0.1:9900"

struct client_answer {
	int status; /* 200 ... */
	char *body; /* ends in NUL, which `n` does not count; owned, free() it */
	size_t n;
	int retry_after_s; /* Retry-After; 0: it was not sent */
};

/**
 * Requests of this process are sent with the token in `token_file`, and servers with TLS must have a
 * certificate of an authority in the PEM file `ca`. NULL: as WEIR_TOKEN_FILE and WEIR_CA say, else no
 * token and the system's authorities. Both are borrowed. Before the first request; main thread.
 */
void client_identify(const char *token_file, const char *ca);

/**
 * GET `path` ("/api/v1/stages") from the server at `url`: "http://127.0.0.1:9900",
 * "127.0.0.1:9900", "[::1]:9900", "https://weir.example.org:9900" or "unix:/run/weir.sock". Waits at
 * most 5 s for each step. 0, or WEIR_EINVAL (no such URL), WEIR_ESYS (nobody answers, or the token
 * can not be read or would be sent in clear), WEIR_EFAILED (what answers is not HTTP or not who it
 * should be, or it does not let us look), WEIR_ENOMEM, with the sentence in `err->text`.
 */
int client_get(
    const char *url, const char *path, struct client_answer *answer, struct weir_err *err);

/** PUT the JSON `body` to `path`, else as client_get. */
int client_put(const char *url, const char *path, const char *body, struct client_answer *answer,
    struct weir_err *err);

/** Send the JSON `body` with `method` ("POST", "DELETE") to `path`, else as client_get. */
int client_act(const char *url, const char *method, const char *path, const char *body,
    struct client_answer *answer, struct weir_err *err);

#endif
