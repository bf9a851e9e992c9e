/* SPDX-License-Identifier: MIT */
/*
 * Certificates; see tls_certs.h. What is set on every SSL_CTX, and why:
 *
 *   versions 1.2 and 1.3        RFC 8996 ends the older ones
 *   ciphers                     those of 1.2 by the row `ciphers`: AEAD with ECDHE unless somebody asks for worse
 *   groups                      three whose cost to us is small: a client may ask for any that we list, and some (ffdhe8192)
 *                               take a hundred times the work
 *   no renegotiation, no compression, no early data (the default): attacks on each are known, uses of none
 *   tickets sealed by us        so that I/O threads and reloads share keys (tls_ticket.h); no cache, which would be one more
 *                               thing to bound
 *   an end without close_notify is an end: requests say themselves where they end, and a part of one is never answered
 */
#include "http/tls_certs.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include <weir/log.h>

#include "http/tls_pem.h"
#include "http/tls_ticket.h"

/* Days before its end from which a certificate is warned of: renewal was due a while before (ACME clients renew 30 days
 * ahead), and there is a week left to do it by hand. */
#define SOON_DAYS 7

struct tls_cert {
	SSL_CTX *ctx;
	char *path;
	char until[16]; /* "2027-01-31" */
	char first[80]; /* a name in it, for the log */
	int days, secs; /* to its end, negative when that is over */
	bool too_early; /* it is not good yet */
};

/* A name in a certificate, in lower case. */
struct tls_name {
	char *text;
	int cert;
};

struct tls_certs {
	atomic_int refs;
	int n, n_names;
	struct tls_cert *cert;
	struct tls_name *name; /* sorted, no text twice */
};

/* ---- choosing ---- */

static int by_text(const void *a, const void *b)
{
	const struct tls_name *x = a, *y = b;
	int order = strcmp(x->text, y->text);

	return order != 0 ? order : x->cert - y->cert;
}

static int find(const struct tls_certs *certs, const char *text)
{
	int from = 0, to = certs->n_names;

	while (from < to) {
		int mid = from + (to - from) / 2;
		int order = strcmp(certs->name[mid].text, text);
		if (order == 0)
			return certs->name[mid].cert;
		if (order < 0)
			from = mid + 1;
		else
			to = mid;
	}
	return -1;
}

int tls_certs_choose(const struct tls_certs *certs, const char *name, size_t n)
{
	char text[TLS_NAME_MAX + 1];
	char *dot;
	int found;

	if (n == 0 || n > TLS_NAME_MAX)
		return 0;
	for (size_t i = 0; i < n; i++)
		text[i] = (char)tolower((unsigned char)name[i]);
	text[n] = '\0';
	found = find(certs, text);
	dot = strchr(text, '.');
	if (found < 0 && dot && dot != text) {
		*--dot = '*';
		found = find(certs, dot);
	}
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
	if (i > 0 && !SSL_set_SSL_CTX(ssl, certs->cert[i].ctx))
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	return SSL_TLSEXT_ERR_OK;
}

/* ---- what all share ---- */

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
    EVP_MAC_CTX *mac, int seal)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return tls_tickets_crypt(SSL_get_app_data(ssl), ts.tv_sec * 1000000000LL + ts.tv_nsec, name,
	    iv, cipher, mac, seal);
}

/* RFC 7301, 3.2: who offers protocols, and ours not, is told so. */
static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_n,
    const unsigned char *offered, unsigned n, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto(&chosen, out_n, ours, sizeof(ours) - 1, offered, n) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static void set_options(SSL_CTX *ctx, const struct tls_conf *conf)
{
	uint64_t options = SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
			   SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
			   SSL_OP_IGNORE_UNEXPECTED_EOF;

	if (conf->kernel)
		options |= SSL_OP_ENABLE_KTLS;
	if (conf->ticket_ns == 0)
		options |= SSL_OP_NO_TICKET;
	SSL_CTX_set_options(ctx, options);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				  SSL_MODE_RELEASE_BUFFERS);
	/* A client that sends nothing but key updates gets no more than its turn (tls_conn.c). */
	SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	if (conf->ticket_ns == 0) /* of TLS 1.3: without a cache they lead nowhere */
		SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_timeout(ctx, (long)((conf->ticket_ns + 999999999) / 1000000000));
}

/* A context without a certificate. NULL with `err`, and `at` when a row is to blame. */
static SSL_CTX *context_new(struct tls_certs *certs, const struct tls_conf *conf,
    char at[TLS_PATH_BYTES], struct weir_err *err)
{
	static const unsigned char id[] = "weir";
	char groups[] = "X25519:P-256:P-384"; /* OpenSSL's macro casts const away */
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	int version = conf->min_version == TLS_MIN_1_3 ? TLS1_3_VERSION : TLS1_2_VERSION;
	char why[160];

	ERR_clear_error();
	if (!ctx || SSL_CTX_set_min_proto_version(ctx, version) != 1 ||
	    SSL_CTX_set1_groups_list(ctx, groups) != 1 ||
	    SSL_CTX_set_session_id_context(ctx, id, sizeof(id) - 1) != 1) {
		tls_fail(err, WEIR_ENOMEM, NULL, "TLS can not be set up: %s",
		    tls_reason(why, sizeof(why)));
		goto fail;
	}
	if (SSL_CTX_set_cipher_list(ctx, conf->ciphers) != 1) {
		snprintf(at, TLS_PATH_BYTES, "tls.ciphers");
		tls_fail(err, WEIR_EINVAL, "`openssl ciphers -v LIST` shows what a list is",
		    "there are no such ciphers: '%.80s'", conf->ciphers);
		ERR_clear_error();
		goto fail;
	}
	set_options(ctx, conf);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
	SSL_CTX_set_tlsext_servername_callback(ctx, on_name);
	SSL_CTX_set_tlsext_servername_arg(ctx, certs);
	if (conf->ticket_ns > 0)
		SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket);
	return ctx;
fail:
	SSL_CTX_free(ctx);
	return NULL;
}

/* ---- names ---- */

/* For logs, pages and terminals: a common name may be anything, in any code, and is cut. */
static void note_first(struct tls_cert *cert, const char *name)
{
	snprintf(cert->first, sizeof(cert->first), "%s", name);
	for (char *c = cert->first; *c; c++)
		if (*c < '!' || *c > '~')
			*c = '?';
}

/* A name may not hold a NUL: what looks like one name here would be another there. */
static int add_name(struct tls_certs *certs, int cert, const ASN1_STRING *name)
{
	int n = ASN1_STRING_length(name);
	const char *p = (const char *)ASN1_STRING_get0_data(name);
	struct tls_name *more;
	char *text;

	if (n <= 0 || n > TLS_NAME_MAX || memchr(p, '\0', (size_t)n))
		return 0;
	more = realloc(certs->name, ((size_t)certs->n_names + 1) * sizeof(*more));
	text = strndup(p, (size_t)n);
	if (more)
		certs->name = more;
	if (!more || !text) {
		free(text);
		return WEIR_ENOMEM;
	}
	for (int i = 0; i < n; i++)
		text[i] = (char)tolower((unsigned char)text[i]);
	if (!certs->cert[cert].first[0])
		note_first(&certs->cert[cert], text);
	certs->name[certs->n_names++] = (struct tls_name){text, cert};
	return 0;
}

/* RFC 6125, 6.4.4: the common name counts when there is no DNS name. */
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

/* Of two certificates with a name the first one has it. */
static void sort_names(struct tls_certs *certs)
{
	int kept = 0;

	if (certs->n_names > 0)
		qsort(certs->name, (size_t)certs->n_names, sizeof(*certs->name), by_text);
	for (int i = 0; i < certs->n_names; i++) {
		if (kept > 0 && strcmp(certs->name[kept - 1].text, certs->name[i].text) == 0)
			free(certs->name[i].text);
		else
			certs->name[kept++] = certs->name[i];
	}
	certs->n_names = kept;
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

static int use(struct tls_certs *certs, int i, const struct tls_pair_conf *pair,
    STACK_OF(X509) * chain, EVP_PKEY *key, struct weir_err *err)
{
	X509 *own = sk_X509_shift(chain);
	char why[160];
	int rc = 0;

	ERR_clear_error();
	if (X509_check_private_key(own, key) != 1)
		rc = tls_fail(err, WEIR_EINVAL, NULL,
		    "the key %s is not that of the certificate %s", pair->key, pair->cert);
	else if (SSL_CTX_use_cert_and_key(certs->cert[i].ctx, own, key, chain, 1) != 1)
		rc = tls_fail(err, WEIR_EINVAL, NULL, "the certificate %s can not be used: %s",
		    pair->cert, tls_reason(why, sizeof(why)));
	else if (add_names(certs, i, own) != 0)
		rc = tls_fail(err, WEIR_ENOMEM, NULL, "out of memory");
	if (rc == 0)
		note_times(&certs->cert[i], own);
	ERR_clear_error();
	X509_free(own);
	return rc;
}

/* Certificate `i`, which stands at `where` below `with:`. */
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
	if (!pair->cert[0])
		return tls_fail(err, WEIR_EINVAL, "name its file in 'cert'",
		    "there is a key without its certificate");
	rc = tls_pem_certs(pair->cert, &chain, err);
	if (rc != 0)
		return rc;
	snprintf(at, TLS_PATH_BYTES, "%s.key", where);
	rc = pair->key[0] ? tls_pem_key(pair->key, &key, err)
			  : tls_fail(err, WEIR_EINVAL, "name its file in 'key'",
				"the certificate %s is without its key", pair->cert);
	if (rc == 0)
		rc = use(certs, i, pair, chain, key, err);
	EVP_PKEY_free(key);
	sk_X509_pop_free(chain, X509_free);
	return rc;
}

static void warn_of_times(const struct tls_certs *certs, const char *stage)
{
	for (int i = 0; i < certs->n; i++) {
		const struct tls_cert *c = &certs->cert[i];
		if (c->days < 0 || c->secs < 0)
			weir_log(WEIR_LOG_WARN, "%s: certificate %s has expired on %s", stage,
			    c->path, c->until);
		else if (c->days < SOON_DAYS)
			weir_log(WEIR_LOG_WARN, "%s: certificate %s expires in %d days, on %s",
			    stage, c->path, c->days, c->until);
		if (c->too_early)
			weir_log(
			    WEIR_LOG_WARN, "%s: certificate %s is not good yet", stage, c->path);
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
	if (rc != 0) {
		tls_certs_unref(certs);
		return rc;
	}
	sort_names(certs);
	warn_of_times(certs, stage);
	*out = certs;
	return 0;
}

/* ---- life ---- */

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
		SSL_CTX_free(certs->cert[i].ctx);
		free(certs->cert[i].path);
	}
	for (int i = 0; i < certs->n_names; i++)
		free(certs->name[i].text);
	free(certs->name);
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

void tls_certs_tell(const struct tls_certs *certs, const char *stage)
{
	for (int i = 0; i < certs->n; i++) {
		const struct tls_cert *c = &certs->cert[i];
		weir_log(WEIR_LOG_INFO, "%s: certificate %s: %s, until %s", stage, c->path,
		    c->first[0] ? c->first : "no name", c->until);
	}
}

/* ---- what is new ---- */

static bool same_chain(SSL_CTX *a, SSL_CTX *b)
{
	STACK_OF(X509) *x = NULL, *y = NULL;

	SSL_CTX_get0_chain_certs(a, &x);
	SSL_CTX_get0_chain_certs(b, &y);
	bool same = X509_cmp(SSL_CTX_get0_certificate(a), SSL_CTX_get0_certificate(b)) == 0 &&
		    sk_X509_num(x) == sk_X509_num(y);
	for (int i = 0; same && i < sk_X509_num(x); i++)
		same = X509_cmp(sk_X509_value(x, i), sk_X509_value(y, i)) == 0;
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
		if (!old || same_chain(c->ctx, old->ctx))
			continue;
		if (at < size)
			at += (size_t)snprintf(text + at, size - at,
			    "%scertificate %s until %s, was %s until %s", n ? "; " : "",
			    c->first[0] ? c->first : "no name", c->until,
			    old->first[0] ? old->first : "no name", old->until);
		n++;
	}
	return n;
}
