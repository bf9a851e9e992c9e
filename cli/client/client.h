/* SPDX-License-Identifier: MIT */
/*
 * A small blocking client for the admin endpoint of a server. It sends one HTTP/1.1 request per
 * connection and reads the whole response into memory.
 */
#ifndef WEIR_CLI_CLIENT_H
#define WEIR_CLI_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

/** Default address of the admin endpoint. The section `admin:` of a server may set another one. */
#define CLIENT_DEFAULT_URL "http://127.0.0.1:9900"

struct client_answer {
	int status; /* HTTP status, such as 200 */
	char *body; /* NUL-terminated; the caller must free() it */
	size_t n;
	int retry_after_s; /* value of Retry-After, 0 if not sent */
};

/**
 * Set the credentials of all requests of this process. `token_file` is the file with the token; if
 * it is NULL, the environment variable WEIR_TOKEN_FILE names the file, and without that no token is
 * sent. `ca` is a PEM file with the CA certificates that TLS servers are verified against; if it is
 * NULL, WEIR_CA names the file, and without that the CA certificates of the system are used. Both
 * strings are borrowed. Call this from the main thread before the first request.
 */
void client_identify(const char *token_file, const char *ca);

/** Default limit for the total time that a thread waits for servers, over all its requests. 30 s is
 *  a guess: a verb sends up to a dozen requests, each of which takes milliseconds. */
#define CLIENT_TIMEOUT_NS 30000000000LL

/** Change the time limit for all threads. Call this from the main thread before the first
 *  request. */
void client_allow(int64_t timeout_ns);

/** Reset the time that this thread has waited so far. Verbs that poll a server call this before
 *  each poll. */
void client_renew(void);

/**
 * GET `path` ("/api/v1/stages") from the server at `url`: "http://127.0.0.1:9900",
 * "127.0.0.1:9900", "[::1]:9900", "https://weir.example.org:9900" or "unix:/run/weir.sock". If the
 * server sends nothing for 5 s, the request fails. It also fails when the total time of this thread
 * exceeds the limit of client_allow. Returns 0, or an error with the message in `err->text`:
 * WEIR_EINVAL (invalid URL), WEIR_ESYS (no response, or the token cannot be read or would be sent
 * unencrypted), WEIR_EFAILED (the response is not valid HTTP, TLS failed, or access was denied),
 * WEIR_ENOMEM.
 */
int client_get(
    const char *url, const char *path, struct client_answer *answer, struct weir_err *err);

/** Like client_get, but sends the JSON `body` with PUT to `path`. */
int client_put(const char *url, const char *path, const char *body, struct client_answer *answer,
    struct weir_err *err);

/** Like client_get, but sends the JSON `body` with `method` ("POST", "DELETE") to `path`. `body`
 *  may be NULL. */
int client_act(const char *url, const char *method, const char *path, const char *body,
    struct client_answer *answer, struct weir_err *err);

#endif
