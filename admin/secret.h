/* SPDX-License-Identifier: MIT */
/*
 * Secrets of the endpoint: files that hold one, and digests that stand for one.
 *
 * Only SHA-256 digests are kept. A token has at least 128 random bits, so a digest without salt and
 * stretching can not be turned back. Digests are compared to their last byte, so that the time tells
 * nothing. Any thread.
 */
#ifndef WEIR_ADMIN_SECRET_H
#define WEIR_ADMIN_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>
#include <weir/event.h>

#define SECRET_DIGEST_BYTES 32

/** Longest token, without its newline. */
#define SECRET_TOKEN_MAX 512

struct secret_digest {
	uint8_t bytes[SECRET_DIGEST_BYTES];
};

/** The digest of p[n]. false: the library refused, and *digest is of nothing. */
bool secret_digest(const void *p, size_t n, struct secret_digest *digest);

/** 1 when they are equal, else 0; the same time either way. */
unsigned secret_equal(const struct secret_digest *a, const struct secret_digest *b);

/** `n` random bytes from the kernel. false: it has none to give. */
bool secret_random(void *p, size_t n);

/** Is it a token that can not be guessed: letters that a bearer token may have, at least 32 of them
 *  when all are hexadecimal, else 22, and not the same few again and again? */
bool secret_is_strong(struct weir_slice token);

/**
 * Open `path`, which must be a regular file that belongs to us or to root and that nobody else may
 * read. Returns the descriptor; -1 with the sentence in `err`, in which `what` names the file
 * ("the token 'ops'").
 */
int secret_open(const char *path, const char *what, struct weir_err *err);

/** The one token in the file at `path`, as a text in `token`, to be wiped by the caller. Else as below. */
int secret_text(
    const char *path, const char *what, char token[SECRET_TOKEN_MAX + 1], struct weir_err *err);

/** The digest of the one token in the file at `path`, spaces and the newline at its end left out. 0,
 *  WEIR_ESYS, WEIR_EINVAL with the sentence, which does not hold the token. */
int secret_read(
    const char *path, const char *what, struct secret_digest *digest, struct weir_err *err);

#endif
