/* SPDX-License-Identifier: MIT */
/*
 * A small blocking HTTP/1.1 client for the admin endpoint of a server: one request per connection,
 * the whole response in memory.
 */
#ifndef WEIR_CLI_CLIENT_H
#define WEIR_CLI_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

/** Address of the admin endpoint unless a server's `admin:` sets another. */
#define CLIENT_DEFAULT_URL "http://127.0.0.1:9900"

struct client_answer {
	int status; /* 200 ... */
	char *body; /* NUL-terminated, the NUL not counted in `n`; owned, free() it */
	size_t n;
	int retry_after_s; /* value of Retry-After, 0 if not sent */
};

/**
 * Set the file of the token that is sent with all requests of this process, and `ca`, the PEM file
 * with the CA certificates that TLS servers are verified against. If `token_file` is NULL,
 * WEIR_TOKEN_FILE is used, or else no token. If `ca` is NULL, WEIR_CA is used, or else the system's
 * CA certificates. Both strings are borrowed. Call it before the first request, from the main
 * thread.
 */
void client_identify(const char *token_file, const char *ca);

/** Default limit of the time that a thread waits for servers, over all its requests. 30 s is a
 *  guess: a verb sends up to a dozen requests, and each response takes milliseconds. */
#define CLIENT_TIMEOUT_NS 30000000000LL

/** Change the time limit for all threads. Call it before the first request, from the main
 *  thread. */
void client_allow(int64_t timeout_ns);

/** Reset the time that this thread has waited so far. Verbs that poll call it before each poll. */
void client_renew(void);

/**
 * GET `path` ("/api/v1/stages") from the server at `url`: "http://127.0.0.1:9900",
 * "127.0.0.1:9900", "[::1]:9900", "https://weir.example.org:9900" or "unix:/run/weir.sock". Waits
 * at most 5 s for a silent server, and in all at most for the remaining time of client_allow. 0, or
 * WEIR_EINVAL (invalid URL), WEIR_ESYS (no response, or the token cannot be read or would be sent
 * in clear), WEIR_EFAILED (the response is not HTTP or comes from the wrong peer, or access is
 * denied), WEIR_ENOMEM, with the message in `err->text`.
 */
int client_get(
    const char *url, const char *path, struct client_answer *answer, struct weir_err *err);

/** Like client_get, but PUT the JSON `body` to `path`. */
int client_put(const char *url, const char *path, const char *body, struct client_answer *answer,
    struct weir_err *err);

/** Like client_get, but send the JSON `body` with `method` ("POST", "DELETE") to `path`. */
int client_act(const char *url, const char *method, const char *path, const char *body,
    struct client_answer *answer, struct weir_err *err);

#endif
