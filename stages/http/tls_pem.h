/* SPDX-License-Identifier: MIT */
/*
 * Certificates and keys out of PEM files, with a sentence for each thing that can be wrong with them.
 *
 * A key file must be a regular one that belongs to us or to root, which others can not use and its group not write; that
 * the group may read it is Debian's custom (ssl-cert). Main thread; blocks for the files.
 */
#ifndef WEIR_HTTP_TLS_PEM_H
#define WEIR_HTTP_TLS_PEM_H

#include <openssl/x509.h>

#include <weir/error.h>

/** The certificates in `path`, the server's first; the caller's to free. 0, or a WEIR_E code with `err` filled. */
int tls_pem_certs(const char *path, STACK_OF(X509) * *certs, struct weir_err *err);

/** The private key in `path`; the caller's to free. Likewise. */
int tls_pem_key(const char *path, EVP_PKEY **key, struct weir_err *err);

/** Fill `err`; returns `code`. `hint` may be NULL. */
int tls_fail(struct weir_err *err, int code, const char *hint, const char *fmt, ...)
    WEIR_PRINTF(4, 5);

/** What OpenSSL says about its newest error, into buf[size], and forget it. */
const char *tls_reason(char *buf, size_t size);

#endif
