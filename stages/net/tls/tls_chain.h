/* SPDX-License-Identifier: MIT */
/* Checks whether a certificate chain is complete. Main thread; blocks to read the CA files. */
#ifndef WEIR_NET_TLS_CHAIN_H
#define WEIR_NET_TLS_CHAIN_H

#include <openssl/x509_vfy.h>

/** Return the CAs that this host trusts, read from OpenSSL's locations for them (SSL_CERT_FILE,
 * SSL_CERT_DIR). The caller frees it. Returns NULL if out of memory. */
X509_STORE *tls_chain_store(void);

/**
 * Look for the issuer of `own` in `chain` and in `trusted`, then for the issuer's issuer, up to a
 * certificate that is its own issuer. Returns the name of the first issuer that is in neither; the
 * caller frees the name. Returns NULL if all were found, or if out of memory. Dates and signatures
 * are not checked.
 */
char *tls_chain_missing(X509_STORE *trusted, X509 *own, STACK_OF(X509) * chain);

#endif
