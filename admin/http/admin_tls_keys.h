/* SPDX-License-Identifier: MIT */
/* Certificates with their keys, read from PEM files. Any thread may call these functions, but each
 * object is used by one thread at a time. */
#ifndef WEIR_ADMIN_ADMIN_TLS_KEYS_H
#define WEIR_ADMIN_ADMIN_TLS_KEYS_H

#include <gnutls/gnutls.h>

#include <weir/error.h>

/** A certificate with its key. The endpoint holds a reference to the newest pair, and each
 *  connection to the pair it was accepted with. */
struct keys {
	gnutls_certificate_credentials_t credentials;
	char *cert, *key; /* paths of the files, owned */
	int refs;
};

/** Read the files; the caller owns the first reference. Returns 0, or an error code with the
 *  message in `err`. */
int keys_new(const char *cert, const char *key, struct keys **keys, struct weir_err *err);

/** Open the file of a certificate. Returns the descriptor, or -1 with the message in `err`. */
int keys_open_cert(const char *cert, struct weir_err *err);

/** Drop a reference. NULL is allowed. */
void keys_unref(struct keys *keys);

#endif
