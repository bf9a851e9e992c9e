/* SPDX-License-Identifier: MIT */
/* Certificates with their keys, read from PEM files. Any thread, but each object one at a time. */
#ifndef WEIR_ADMIN_ADMIN_TLS_KEYS_H
#define WEIR_ADMIN_ADMIN_TLS_KEYS_H

#include <gnutls/gnutls.h>

#include <weir/error.h>

/** A certificate with its key, held by the endpoint while it is the newest, and by each connection. */
struct keys {
	gnutls_certificate_credentials_t credentials;
	char *cert, *key; /* paths */
	int refs;
};

/** Read the files; the first reference is the caller's. 0, or a code with the sentence in `err`. */
int keys_new(const char *cert, const char *key, struct keys **keys, struct weir_err *err);

/** Give a reference back. NULL is allowed. */
void keys_unref(struct keys *keys);

#endif
