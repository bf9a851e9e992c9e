/* SPDX-License-Identifier: MIT */
/*
 * Loads and checks the certificates of a server, and chooses one by the name that a client
 * requests.
 *
 * There is one SSL_CTX per certificate, and the contexts differ only in their certificates. A
 * context also contains certificates with other key types (RSA beside ECDSA) if they have all of
 * its names. A client is sent one that it can verify, with ECDSA preferred to RSA. A connection
 * begins with the first context, and the name in its ClientHello (SNI, RFC 6066, 3) may move it to
 * another. The name is looked up as it is, then with "*" for its first label (RFC 6125, 6.4.3). If
 * neither is found, the first certificate is sent.
 *
 * A set is immutable once loaded, and reference-counted: each connection holds a reference to the
 * set with which it began, so the server's set may be replaced at any time.
 */
#ifndef WEIR_NET_TLS_CERTS_H
#define WEIR_NET_TLS_CERTS_H

#include <openssl/ssl.h>

#include <weir/error.h>

#include "net/tls/tls_conf.h"
#include "net/tls/tls_names.h"

struct tls_certs;

/**
 * Read the certificates of `conf`. On failure, `err` holds the message, which contains no byte of a
 * key, and `at` the path of the faulty value below `with:`. A certificate that has expired or soon
 * will is still loaded, with a warning in the log, where `stage` is the name of the stage. Returns
 * 0, WEIR_EINVAL, WEIR_ESYS or WEIR_ENOMEM. Blocks to read the files.
 */
int tls_certs_load(const struct tls_conf *conf, const char *stage, struct tls_certs **out,
    char at[TLS_PATH_BYTES], struct weir_err *err);

/** Take another reference. Any thread. */
struct tls_certs *tls_certs_ref(struct tls_certs *certs);
/** Drop a reference; NULL is allowed. Any thread. */
void tls_certs_unref(struct tls_certs *certs);

/** Return the context that connections begin with: certificate 0. */
SSL_CTX *tls_certs_first(const struct tls_certs *certs);

/** Return the index of the certificate for `name[n]`, a name as sent by a client. */
int tls_certs_choose(const struct tls_certs *certs, const char *name, size_t n);

/** Return the number of certificates. */
int tls_certs_count(const struct tls_certs *certs);

/** Return the name of the issuer that is missing from the chain of certificate `i`, because the
 * issuer's certificate is neither in the file nor trusted by this host. Returns NULL if none is
 * missing. *at is set to the path of the certificate below `with:`, *path to its file. All are
 * valid while `certs` exists. */
const char *tls_certs_missing(
    const struct tls_certs *certs, int i, const char **at, const char **path);

/** Log the certificates that are served, for example after a reload: "web: certificate site.pem:
 * example.org, until 2027-01-31". */
void tls_certs_tell(const struct tls_certs *certs, const char *stage);

/** Describe in text[size] which of `certs` differ, including their chains, from those of `was` with
 * the same path: "certificate for example.org, valid until 2027-01-31 (before: example.org, until
 * 2026-12-01)", with "; " between several, truncated. The path is not printed: it may be taken from
 * ${}, whose values are never shown. Returns the number of certificates that differ. */
int tls_certs_renewed(
    const struct tls_certs *certs, const struct tls_certs *was, char *text, size_t size);

#endif
