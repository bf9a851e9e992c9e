/* SPDX-License-Identifier: MIT */
/*
 * Secrets of the endpoint: token files, and digests of tokens.
 *
 * Only SHA-256 digests are stored in memory. A token has at least 128 random bits, so its digest
 * cannot be inverted even without salt and stretching. A comparison always reads all bytes of both
 * digests, so that its time reveals nothing. Any thread may call these functions.
 */
#ifndef WEIR_ADMIN_SECRET_H
#define WEIR_ADMIN_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/event.h>

#define SECRET_DIGEST_BYTES 32

/** Maximum length of a token, without its newline. */
#define SECRET_TOKEN_MAX 512

struct secret_digest {
	uint8_t bytes[SECRET_DIGEST_BYTES];
};

/** Compute the digest of p[n]. Returns false, with *digest set to zero, if the library failed. */
bool secret_digest(const void *p, size_t n, struct secret_digest *digest);

/** Return 1 if the digests are equal, else 0. Takes constant time. */
unsigned secret_equal(const struct secret_digest *a, const struct secret_digest *b);

/** Get `n` random bytes from the kernel. Returns false if none are available. */
bool secret_random(void *p, size_t n);

/** Return whether a token is too long to be guessed. All its characters must be allowed in a bearer
 *  token. It needs at least 32 characters if all are hexadecimal digits, else at least 22, and
 *  DIFFERENT_MIN (secret.c) of them must differ. */
bool secret_is_strong(struct weir_slice token);

/** Write to hint[size] what to do about a file that open(2) refused with `error`: where a relative
 *  path was looked for, or as which user. "" for errors that say enough. Never fails. */
void secret_hint(const char *path, int error, char *hint, size_t size);

/**
 * Open `path`, which must be a regular file that belongs to the server's user or to root and that
 * no other user may access. Returns the descriptor, or -1 with the message in `err`. The message
 * refers to the file as `what` ("the token 'ops'").
 */
int secret_open(const char *path, const char *what, struct weir_err *err);

/** Read the token in the file at `path` into `token`, a string that the caller must wipe. Errors as
 *  for secret_read. */
int secret_text(
    const char *path, const char *what, char token[SECRET_TOKEN_MAX + 1], struct weir_err *err);

/** Compute the digest of the token in the file at `path`; trailing spaces and the newline are not
 *  part of it. Returns 0, or WEIR_ESYS or WEIR_EINVAL with the message in `err`. The message does
 *  not contain the token. */
int secret_read(
    const char *path, const char *what, struct secret_digest *digest, struct weir_err *err);

#endif
