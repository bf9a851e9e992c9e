/* SPDX-License-Identifier: MIT */
/*
 * Reads certificates and keys from PEM files, with a specific message for each possible fault.
 *
 * A key file must be a regular file that belongs to us or to root. Other users must have no access
 * to it, and its group must not be able to write or execute it. The group may read it, following
 * Debian's convention (ssl-cert). Main thread; blocks to read the files.
 */
#ifndef WEIR_NET_TLS_PEM_H
#define WEIR_NET_TLS_PEM_H

#include <openssl/x509.h>

#include <weir/error.h>

/** Read the certificates in `path`, the server's own first; the caller frees them. Returns 0, or a
 * WEIR_E code with `err` filled. */
int tls_pem_certs(const char *path, STACK_OF(X509) * *certs, struct weir_err *err);

/** Read the private key in `path`, which the caller frees. Returns the same values as
 * tls_pem_certs. */
int tls_pem_key(const char *path, EVP_PKEY **key, struct weir_err *err);

/** Fill `err`, and return `code`. `hint` may be NULL. */
int tls_fail(struct weir_err *err, int code, const char *hint, const char *fmt, ...)
    WEIR_PRINTF(4, 5);

/** Write the reason for OpenSSL's latest error to buf[size], and clear the error. Returns buf. */
const char *tls_reason(char *buf, size_t size);

#endif
