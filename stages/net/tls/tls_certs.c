/* SPDX-License-Identifier: MIT */
/*
 * Loads and chooses certificates; see tls_certs.h.
 *
 * The SSL_CTX of certificate A also contains, for each other key type, the first certificate that
 * has all names of A, if there is one. Clients that support ECDSA are then sent the ECDSA
 * certificate, others the RSA one.
 */
#include "net/tls/tls_certs.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <weir/log.h>

#include "net/tls/tls_chain.h"
#include "net/tls/tls_ctx.h"
#include "net/tls/tls_names.h"
#include "net/tls/tls_pem.h"

/* A certificate that expires in fewer days than this causes a warning. Renewal was due earlier
 * (ACME clients renew 30 days ahead), and a week is enough to renew it manually. */
#define SOON_DAYS 7

struct tls_cert {
	SSL_CTX *ctx;
	char *path;
	/* This certificate, its chain and its key. `ctx` may also have certificates of other key
	 * types for the same names (add_kinds). */
	X509 *own;
	STACK_OF(X509) * chain;
	EVP_PKEY *key;
	char *missing; /* issuer that is missing from `chain` (tls_certs_missing), or NULL */
	char at[TLS_PATH_BYTES];
	char until[16]; /* "2027-01-31" */
	char first[80]; /* its first name, for the log */
	int days, secs; /* time until the certificate expires; negative once it has */
	bool too_early; /* the certificate is not valid yet */
};

struct tls_certs {
	atomic_int refs;
	int n;
	struct tls_cert *cert;
	struct tls_names names;
};

/* ---- choosing ---- */

int tls_certs_choose(const struct tls_certs *certs, const char *name, size_t n)
{
	int found = tls_names_find(&certs->names, name, n);

	return found < 0 ? 0 : found;
}

static int on_name(SSL *ssl, int *alert, void *arg)
{
	const struct tls_certs *certs = arg;
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	int i;

	(void)alert;
	if (!name)
		return SSL_TLSEXT_ERR_NOACK;
	i = tls_certs_choose(certs, name, strlen(name));
	if (!SSL_set_SSL_CTX(ssl, certs->cert[i].ctx))
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

/* Create a context without a certificate. On failure returns NULL, fills `err`, and sets `at` if a
 * knob is at fault. */
static SSL_CTX *context_new(struct tls_certs *certs, const struct tls_conf *conf,
    char at[TLS_PATH_BYTES], struct weir_err *err)
{
	SSL_CTX *ctx = tls_ctx_new(conf, at, err);

	if (ctx) {
		SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
		SSL_CTX_set_tlsext_servername_arg(ctx, certs);
	}
	return ctx;
}

/* ---- names ---- */

/* Store a name for logs, pages and terminals. It is truncated and restricted to visible ASCII,
 * since a common name may contain anything, in any encoding. */
static void note_first(struct tls_cert *cert, const char *name)
{
	snprintf(cert->first, sizeof(cert->first), "%s", name);
	for (char *c = cert->first; *c; c++)
		if (*c < '!' || *c > '~')
			*c = '?';
}

/* Add a name, unless it contains a NUL, since code that stops at the NUL would see a different
 * name. */
static int add_name(struct tls_certs *certs, int cert, const ASN1_STRING *name)
{
	int n = ASN1_STRING_length(name);
	const char *p = (const char *)ASN1_STRING_get0_data(name);
	const char *text;

	if (n <= 0 || n > TLS_NAME_MAX || memchr(p, '\0', (size_t)n))
		return 0;
	text = tls_names_add(&certs->names, cert, p, (size_t)n);
	if (!text)
		return WEIR_ENOMEM;
	if (!certs->cert[cert].first[0])
		note_first(&certs->cert[cert], text);
	return 0;
}

/* Add the common name, which is used only if there is no DNS name (RFC 6125, 6.4.4). */
static int add_common_name(struct tls_certs *certs, int cert, const X509 *x)
{
	const X509_NAME *subject = X509_get_subject_name(x);
	int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);

	if (at < 0)
		return 0;
	return add_name(certs, cert, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
}

static int add_names(struct tls_certs *certs, int cert, const X509 *x)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
	int n = sk_GENERAL_NAME_num(names), rc = 0, found = 0;

	for (int i = 0; i < n && rc == 0; i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
		if (name->type != GEN_DNS)
			continue;
		rc = add_name(certs, cert, name->d.dNSName);
		found++;
	}
	GENERAL_NAMES_free(names);
	return rc == 0 && found == 0 ? add_common_name(certs, cert, x) : rc;
}

/* ---- key types ---- */

/* Maximum number of key types in one context: RSA, EC, Ed25519, and some spare. */
#define KINDS_MAX 8
/* Maximum number of certificates checked for the same set of names; more than two or three are a
 * mistake. */
#define PEERS_MAX 32

static bool is_in(const int *kinds, int n, int kind)
{
	for (int i = 0; i < n; i++)
		if (kinds[i] == kind)
			return true;
	return false;
}

static int put_beside(struct tls_cert *c, const struct tls_cert *other, struct weir_err *err)
{
	char why[160];

	ERR_clear_error();
	if (SSL_CTX_use_cert_and_key(c->ctx, other->own, other->key, other->chain, 0) == 1)
		return 0;
	return tls_fail(err, WEIR_EINVAL, NULL, "the certificate %s cannot be used beside %s: %s",
	    other->path, c->path, tls_reason(why, sizeof(why)));
}

/* Add to the context of certificate `i` the first certificate of each other key type that has all
 * its names. */
static int add_kinds(struct tls_certs *certs, int i, struct weir_err *err)
{
	int kinds[KINDS_MAX] = {EVP_PKEY_get_base_id(certs->cert[i].key)}, n = 1, rc = 0;
	int peer[PEERS_MAX], n_peers = tls_names_peers(&certs->names, i, peer, PEERS_MAX);

	for (int k = 0; rc == 0 && k < n_peers && n < KINDS_MAX; k++) {
		const struct tls_cert *other = &certs->cert[peer[k]];
		int kind = EVP_PKEY_get_base_id(other->key);
		if (is_in(kinds, n, kind))
			continue;
		kinds[n++] = kind;
		rc = put_beside(&certs->cert[i], other, err);
	}
	return rc;
}

/* ---- loading ---- */

static void note_times(struct tls_cert *cert, const X509 *x)
{
	struct tm tm = {0};

	ASN1_TIME_to_tm(X509_get0_notAfter(x), &tm);
	snprintf(cert->until, sizeof(cert->until), "%04d-%02d-%02d", (tm.tm_year + 1900) % 10000,
	    (tm.tm_mon + 1) % 100, tm.tm_mday % 100);
	ASN1_TIME_diff(&cert->days, &cert->secs, NULL, X509_get0_notAfter(x));
	cert->too_early = X509_cmp_current_time(X509_get0_notBefore(x)) > 0;
}

/* Use `chain`, which begins with the certificate itself, and `key` for certificate `i`, which then
 * owns them. */
static int use(struct tls_certs *certs, int i, const struct tls_pair_conf *pair,
    STACK_OF(X509) * chain, EVP_PKEY *key, struct weir_err *err)
{
	struct tls_cert *c = &certs->cert[i];
	X509 *own = sk_X509_shift(chain);
	char why[160];
	int rc = 0;

	c->own = own;
	c->chain = chain;
	c->key = key;
	ERR_clear_error();
	if (X509_check_private_key(own, key) != 1)
		rc = tls_fail(err, WEIR_EINVAL, NULL,
		    "the key %s does not match the certificate %s", pair->key, pair->cert);
	else if (SSL_CTX_use_cert_and_key(c->ctx, own, key, chain, 1) != 1)
		rc = tls_fail(err, WEIR_EINVAL, NULL, "the certificate %s cannot be used: %s",
		    pair->cert, tls_reason(why, sizeof(why)));
	else if (add_names(certs, i, own) != 0)
		rc = tls_fail(err, WEIR_ENOMEM, NULL, "out of memory");
	if (rc == 0)
		note_times(c, own);
	ERR_clear_error();
	return rc;
}

/* Load certificate `i`, which is configured at `where` below `with:`. */
static int load_one(struct tls_certs *certs, int i, const struct tls_pair_conf *pair,
    const char *where, char at[TLS_PATH_BYTES], struct weir_err *err)
{
	STACK_OF(X509) *chain = NULL;
	EVP_PKEY *key = NULL;
	int rc;

	certs->cert[i].path = strdup(pair->cert);
	if (!certs->cert[i].path)
		return tls_fail(err, WEIR_ENOMEM, NULL, "out of memory");
	snprintf(at, TLS_PATH_BYTES, "%s.cert", where);
	snprintf(certs->cert[i].at, TLS_PATH_BYTES, "%s", at);
	if (!pair->cert[0])
		return tls_fail(err, WEIR_EINVAL, "name the file of the certificate in 'cert'",
		    "the key has no certificate");
	rc = tls_pem_certs(pair->cert, &chain, err);
	if (rc != 0)
		return rc;
	snprintf(at, TLS_PATH_BYTES, "%s.key", where);
	rc = pair->key[0] ? tls_pem_key(pair->key, &key, err)
			  : tls_fail(err, WEIR_EINVAL, "name the file of the key in 'key'",
				"the certificate %s has no key", pair->cert);
	if (rc == 0)
		return use(certs, i, pair, chain, key, err);
	sk_X509_pop_free(chain, X509_free);
	return rc;
}

static void warn_of_times(const struct tls_certs *certs, const char *stage)
{
	for (int i = 0; i < certs->n; i++) {
		const struct tls_cert *c = &certs->cert[i];
		if (c->days < 0 || c->secs < 0)
			weir_log(WEIR_LOG_WARN, "%s: certificate %s expired on %s", stage, c->path,
			    c->until);
		else if (c->days < SOON_DAYS)
			weir_log(WEIR_LOG_WARN, "%s: certificate %s expires in %d days, on %s",
			    stage, c->path, c->days, c->until);
		if (c->too_early)
			weir_log(
			    WEIR_LOG_WARN, "%s: certificate %s is not valid yet", stage, c->path);
	}
}

static int load_all(struct tls_certs *certs, const struct tls_conf *conf, bool own,
    char at[TLS_PATH_BYTES], struct weir_err *err)
{
	int n = own + conf->certs.n;
	char where[TLS_PATH_BYTES - 8];

	certs->cert = calloc((size_t)n, sizeof(*certs->cert));
	if (!certs->cert)
		return tls_fail(err, WEIR_ENOMEM, NULL, "out of memory");
	for (int i = 0; i < n; i++) {
		const struct tls_pair_conf *more = (const void *)conf->certs.items;
		const struct tls_pair_conf *pair = own && i == 0 ? &conf->own : &more[i - own];
		snprintf(where, sizeof(where), "tls");
		if (pair != &conf->own)
			snprintf(where, sizeof(where), "tls.certs.%d", i - own + 1);
		certs->n++;
		snprintf(at, TLS_PATH_BYTES, "%s", where);
		certs->cert[i].ctx = context_new(certs, conf, at, err);
		int rc = certs->cert[i].ctx ? load_one(certs, i, pair, where, at, err) : err->code;
		if (rc != 0)
			return rc;
	}
	return 0;
}

/* Run the checks that need all certificates. */
static int compare_all(struct tls_certs *certs, char at[TLS_PATH_BYTES], struct weir_err *err)
{
	X509_STORE *trusted = tls_chain_store();
	int rc = 0;

	tls_names_sort(&certs->names);
	for (int i = 0; rc == 0 && i < certs->n; i++) {
		struct tls_cert *c = &certs->cert[i];
		snprintf(at, TLS_PATH_BYTES, "%s", c->at);
		c->missing = trusted ? tls_chain_missing(trusted, c->own, c->chain) : NULL;
		rc = add_kinds(certs, i, err);
	}
	X509_STORE_free(trusted);
	return rc;
}

int tls_certs_load(const struct tls_conf *conf, const char *stage, struct tls_certs **out,
    char at[TLS_PATH_BYTES], struct weir_err *err)
{
	struct tls_certs *certs = calloc(1, sizeof(*certs));
	bool own = conf->own.cert[0] || conf->own.key[0];
	int rc;

	snprintf(at, TLS_PATH_BYTES, "tls");
	if (!certs)
		return tls_fail(err, WEIR_ENOMEM, NULL, "out of memory");
	atomic_init(&certs->refs, 1);
	rc = load_all(certs, conf, own, at, err);
	if (rc == 0)
		rc = compare_all(certs, at, err);
	if (rc != 0) {
		tls_certs_unref(certs);
		return rc;
	}
	warn_of_times(certs, stage);
	*out = certs;
	return 0;
}

/* ---- lifecycle ---- */

struct tls_certs *tls_certs_ref(struct tls_certs *certs)
{
	atomic_fetch_add_explicit(&certs->refs, 1, memory_order_relaxed);
	return certs;
}

void tls_certs_unref(struct tls_certs *certs)
{
	if (!certs || atomic_fetch_sub(&certs->refs, 1) != 1)
		return;
	for (int i = 0; i < certs->n; i++) {
		struct tls_cert *c = &certs->cert[i];
		SSL_CTX_free(c->ctx);
		X509_free(c->own);
		sk_X509_pop_free(c->chain, X509_free);
		EVP_PKEY_free(c->key);
		free(c->missing);
		free(c->path);
	}
	tls_names_free(&certs->names);
	free(certs->cert);
	free(certs);
}

SSL_CTX *tls_certs_first(const struct tls_certs *certs)
{
	return certs->cert[0].ctx;
}

int tls_certs_count(const struct tls_certs *certs)
{
	return certs->n;
}

const char *tls_certs_missing(
    const struct tls_certs *certs, int i, const char **at, const char **path)
{
	*at = certs->cert[i].at;
	*path = certs->cert[i].path;
	return certs->cert[i].missing;
}

void tls_certs_tell(const struct tls_certs *certs, const char *stage)
{
	for (int i = 0; i < certs->n; i++) {
		const struct tls_cert *c = &certs->cert[i];
		weir_log(WEIR_LOG_INFO, "%s: certificate %s: %s, until %s", stage, c->path,
		    c->first[0] ? c->first : "no name", c->until);
	}
}

/* ---- renewal ---- */

static bool same_chain(const struct tls_cert *a, const struct tls_cert *b)
{
	bool same = X509_cmp(a->own, b->own) == 0 && sk_X509_num(a->chain) == sk_X509_num(b->chain);

	for (int i = 0; same && i < sk_X509_num(a->chain); i++)
		same = X509_cmp(sk_X509_value(a->chain, i), sk_X509_value(b->chain, i)) == 0;
	return same;
}

static const struct tls_cert *from_path(const struct tls_certs *certs, const char *path)
{
	for (int i = 0; i < certs->n; i++)
		if (strcmp(certs->cert[i].path, path) == 0)
			return &certs->cert[i];
	return NULL;
}

int tls_certs_renewed(
    const struct tls_certs *certs, const struct tls_certs *was, char *text, size_t size)
{
	size_t at = 0;
	int n = 0;

	for (int i = 0; i < certs->n; i++) {
		const struct tls_cert *c = &certs->cert[i], *old = from_path(was, c->path);
		if (!old || same_chain(c, old))
			continue;
		if (at < size)
			at += (size_t)snprintf(text + at, size - at,
			    "%scertificate for %s, valid until %s (before: %s, until %s)",
			    n ? "; " : "", c->first[0] ? c->first : "no name", c->until,
			    old->first[0] ? old->first : "no name", old->until);
		n++;
	}
	return n;
}
