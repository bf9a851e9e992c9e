/* SPDX-License-Identifier: MIT */
/*
 * Certificates of a server: read, checked, and chosen by the name that a client asks for.
 *
 * One SSL_CTX per certificate, all alike but for that; the first is what a connection begins with, and the name in its
 * ClientHello (SNI, RFC 6066, 3) may move it to another. A name is looked for as it is, then with "*" for its first label
 * (RFC 6125, 6.4.3), else the first certificate is shown.
 *
 * Immutable once loaded, counted: connections hold the set they began with, so a new one may take its place at any time.
 */
#ifndef WEIR_HTTP_TLS_CERTS_H
#define WEIR_HTTP_TLS_CERTS_H

#include <openssl/ssl.h>

#include <weir/error.h>

#include "http/tls_conf.h"

struct tls_certs;

/** Longest name a certificate is looked up by: RFC 1035, 2.3.4. */
#define TLS_NAME_MAX 255

/** Room for a path below `with:`, "tls.certs.999.cert". */
#define TLS_PATH_BYTES 48

/**
 * Read what `conf` names. On failure `err` has the sentence, without a byte of a key, and `at` the path below `with:` of
 * what is wrong. `stage` is for the log: a certificate that has expired, or soon does, is loaded with a warning. 0,
 * WEIR_EINVAL, WEIR_ESYS, WEIR_ENOMEM. Blocks for the files.
 */
int tls_certs_load(const struct tls_conf *conf, const char *stage, struct tls_certs **out,
    char at[TLS_PATH_BYTES], struct weir_err *err);

/** One more reference. Any thread. */
struct tls_certs *tls_certs_ref(struct tls_certs *certs);
/** Drop one; NULL is allowed. Any thread. */
void tls_certs_unref(struct tls_certs *certs);

/** What connections begin with: certificate 0. */
SSL_CTX *tls_certs_first(const struct tls_certs *certs);

/** The certificate for `name[n]`, as the client sent it: its number, from 0. */
int tls_certs_choose(const struct tls_certs *certs, const char *name, size_t n);

/** How many there are. */
int tls_certs_count(const struct tls_certs *certs);

/** Say in the log what is served, as after a reload: "web: certificate site.pem: example.org, until 2027-01-31". */
void tls_certs_tell(const struct tls_certs *certs, const char *stage);

/** Which of `certs` are other than those of `was` from the same path, chains too: "certificate example.org until
 *  2027-01-31, was example.org until 2026-12-01" into text[size], cut there, "; " between several. No path: it may come from
 *  ${}, whose values are told to nobody. Returns how many. */
int tls_certs_renewed(
    const struct tls_certs *certs, const struct tls_certs *was, char *text, size_t size);

#endif
