/* SPDX-License-Identifier: MIT */
/* Finds certificates by name. Filled and sorted in the main thread, then readable by any thread. */
#ifndef WEIR_NET_TLS_NAMES_H
#define WEIR_NET_TLS_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/** Longest name by which a certificate is looked up: RFC 1035, 2.3.4. */
#define TLS_NAME_MAX 255

/** A name in a certificate, in lowercase. */
struct tls_name {
	char *text;
	int cert;
};

/** The names of all certificates. Empty if zeroed. */
struct tls_names {
	int n;
	struct tls_name *name; /* sorted by text, then by certificate */
};

/** Add the name p[n] of certificate `cert`, 0 < n <= TLS_NAME_MAX, without a NUL. Returns a copy of
 * the name, which is valid while `names` exists, or NULL if out of memory. */
const char *tls_names_add(struct tls_names *names, int cert, const char *p, size_t n);

/** Sort the names, once all have been added. Required before lookups. */
void tls_names_sort(struct tls_names *names);

/** Return the first certificate for the name text[n] as a client sent it, or else for that name
 * with "*" in place of its first label. Returns -1 if no certificate has either name. */
int tls_names_find(const struct tls_names *names, const char *text, size_t n);

/** Find the certificates other than `cert` that have all its names. Writes them to peer[max] in
 * order, max >= 1, and returns their number; 0 if `cert` has no name. */
int tls_names_peers(const struct tls_names *names, int cert, int *peer, int max);

void tls_names_free(struct tls_names *names);

#endif
