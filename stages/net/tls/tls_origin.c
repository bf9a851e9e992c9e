/* SPDX-License-Identifier: MIT */
#include "net/tls/tls_origin.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <weir/knob.h>

#include "net/tls/tls_bio.h"
#include "net/tls/tls_pem.h"

struct tls_origins {
	SSL_CTX *ctx;
	char *name; /* NULL if the name is that of the address */
};

struct tls_session {
	SSL_SESSION *ssl;
};

struct tls_origin {
	SSL *ssl;
	struct tls_bio bio;
	struct tls_session **session;
	char why[160];
};

#define ROW(member) offsetof(struct tls_origin_conf, member)

const struct weir_knob tls_origin_knobs[] = {
    {.name = "verify",
	.type = WEIR_KNOB_BOOL,
	.offset = ROW(verify),
	.def = "true",
	.help = "whether a server must prove with a certificate that it is the one in 'origins'"},
    {.name = "ca",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(ca),
	.def = "",
	.help = "PEM file with the authorities that may sign the certificates; if empty, those of "
		"the system"},
    {.name = "name",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(name),
	.def = "",
	.help =
	    "name that is asked for (SNI) and that certificates must have; if empty, the host in "
	    "'origins'"},
    {.name = "cert",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(cert),
	.def = "",
	.help = "PEM file with a certificate that is shown to servers that ask for one"},
    {.name = "key",
	.type = WEIR_KNOB_STRING,
	.offset = ROW(key),
	.def = "",
	.help = "PEM file with the private key of 'cert'; only the owner and the group of the file "
		"may read it"},
    {.name = NULL},
};

/* ---- what connections have in common ---- */

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct tls_origin *t = SSL_get_app_data(ssl);

	if (!*t->session)
		*t->session = calloc(1, sizeof(**t->session));
	if (!*t->session)
		return 0;
	SSL_SESSION_free((*t->session)->ssl);
	(*t->session)->ssl = session;
	return 1; /* the reference is ours */
}

static int own_pair(SSL_CTX *ctx, const struct tls_origin_conf *conf, struct weir_err *err)
{
	STACK_OF(X509) *certs = NULL;
	EVP_PKEY *key = NULL;
	char why[160];
	int rc;

	if (!conf->cert[0] != !conf->key[0])
		return tls_fail(err, WEIR_EINVAL, NULL, "'cert' and 'key' belong together");
	if (!conf->cert[0])
		return 0;
	rc = tls_pem_certs(conf->cert, &certs, err);
	if (rc == 0)
		rc = tls_pem_key(conf->key, &key, err);
	if (rc == 0) {
		X509 *own = sk_X509_shift(certs);
		if (SSL_CTX_use_cert_and_key(ctx, own, key, certs, 1) != 1)
			rc = tls_fail(err, WEIR_EINVAL, NULL, "'%.100s' and '%.100s': %s",
			    conf->cert, conf->key, tls_reason(why, sizeof(why)));
		X509_free(own);
	}
	sk_X509_pop_free(certs, X509_free);
	EVP_PKEY_free(key);
	return rc;
}

static int authorities(SSL_CTX *ctx, const struct tls_origin_conf *conf, struct weir_err *err)
{
	char why[160];

	if (conf->ca[0] && SSL_CTX_load_verify_file(ctx, conf->ca) != 1)
		return tls_fail(err, WEIR_EINVAL, NULL, "'ca': '%.100s' cannot be read: %s",
		    conf->ca, tls_reason(why, sizeof(why)));
	if (!conf->ca[0] && SSL_CTX_set_default_verify_paths(ctx) != 1)
		return tls_fail(err, WEIR_ESYS, NULL, "the system's authorities cannot be read: %s",
		    tls_reason(why, sizeof(why)));
	return 0;
}

static bool configure(SSL_CTX *ctx, const struct tls_origin_conf *conf)
{
	static const unsigned char ours[] = "\x08http/1.1";

	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				  SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(
	    ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
	SSL_CTX_sess_set_new_cb(ctx, on_session);
	SSL_CTX_set_verify(ctx, conf->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
	       SSL_CTX_set_alpn_protos(ctx, ours, sizeof(ours) - 1) == 0;
}

int tls_origins_new(
    const struct tls_origin_conf *conf, struct tls_origins **out, struct weir_err *err)
{
	struct tls_origins *all = calloc(1, sizeof(*all));
	int rc = WEIR_ENOMEM;

	*out = NULL;
	if (conf->name[0] == '.')
		rc = tls_fail(err, WEIR_EINVAL, NULL,
		    "'name': '%.100s' begins with a dot, so it would be any name below",
		    conf->name);
	if (!all || rc == WEIR_EINVAL) {
		free(all);
		return rc;
	}
	all->ctx = SSL_CTX_new(TLS_client_method());
	if (all->ctx && configure(all->ctx, conf))
		rc = conf->verify ? authorities(all->ctx, conf, err) : 0;
	if (rc == 0)
		rc = own_pair(all->ctx, conf, err);
	if (rc == 0 && conf->name[0]) {
		all->name = strdup(conf->name);
		rc = all->name ? 0 : WEIR_ENOMEM;
	}
	if (rc != 0) {
		tls_origins_free(all);
		all = NULL;
	}
	*out = all;
	return rc;
}

void tls_origins_free(struct tls_origins *all)
{
	if (!all)
		return;
	SSL_CTX_free(all->ctx);
	free(all->name);
	free(all);
}

void tls_origin_forget(struct tls_session **session)
{
	if (*session)
		SSL_SESSION_free((*session)->ssl);
	free(*session);
	*session = NULL;
}

/* ---- a connection ---- */

/* Ask for the name, and require a certificate for it. */
static bool set_name(SSL *ssl, const char *host)
{
	unsigned char address[16];

	if (inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	/* as SSL_set_tlsext_host_name, whose cast discards `const` */
	return SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
		   (void *)(uintptr_t)host) == 1 &&
	       SSL_set1_host(ssl, host) == 1;
}

struct tls_origin *tls_origin_new(
    struct tls_origins *all, int fd, const char *host, struct tls_session **session)
{
	struct tls_origin *t = calloc(1, sizeof(*t));
	BIO *bio;

	if (!t)
		return NULL;
	t->session = session;
	t->bio.fd = fd;
	t->ssl = SSL_new(all->ctx);
	bio = t->ssl ? tls_bio_new(&t->bio) : NULL;
	if (!bio) {
		SSL_free(t->ssl);
		free(t);
		return NULL;
	}
	SSL_set_bio(t->ssl, bio, bio);
	SSL_set_app_data(t->ssl, t);
	SSL_set_connect_state(t->ssl);
	if (!set_name(t->ssl, all->name ? all->name : host)) {
		tls_origin_free(t);
		return NULL;
	}
	if (*session)
		SSL_set_session(t->ssl, (*session)->ssl);
	return t;
}

void tls_origin_free(struct tls_origin *t)
{
	if (!t)
		return;
	if (SSL_is_init_finished(t->ssl))
		SSL_shutdown(t->ssl);
	/* otherwise OpenSSL would mark the session as one that cannot be resumed */
	SSL_set_shutdown(t->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(t->ssl);
	tls_bio_fini(&t->bio);
	free(t);
	ERR_clear_error();
}

void tls_origin_ready(struct tls_origin *t, bool end_is_near)
{
	tls_bio_ready(&t->bio, end_is_near);
}

void tls_origin_flush(struct tls_origin *t)
{
	tls_bio_flush(&t->bio);
}

const char *tls_origin_why(const struct tls_origin *t)
{
	return t->why;
}

bool tls_origin_resumed(const struct tls_origin *t)
{
	return SSL_session_reused(t->ssl) == 1;
}

static void note_why(struct tls_origin *t)
{
	long verdict = SSL_get_verify_result(t->ssl);
	char reason[128];

	if (verdict != X509_V_OK)
		snprintf(t->why, sizeof(t->why), "its certificate is not accepted: %s",
		    X509_verify_cert_error_string(verdict));
	else
		snprintf(t->why, sizeof(t->why), "the TLS handshake has failed: %s",
		    ERR_peek_error() ? tls_reason(reason, sizeof(reason)) : "it was cut off");
	ERR_clear_error();
}

static bool waits(int error)
{
	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

int tls_origin_shake(struct tls_origin *t)
{
	int rc;

	ERR_clear_error();
	rc = SSL_do_handshake(t->ssl);
	if (rc == 1)
		return 1;
	if (waits(SSL_get_error(t->ssl, rc)))
		return 0;
	note_why(t);
	return -1;
}

int64_t tls_origin_write(struct tls_origin *t, const void *p, size_t n)
{
	size_t sent;
	int rc;

	if (n == 0)
		return 0;
	ERR_clear_error();
	rc = SSL_write_ex(t->ssl, p, n, &sent);
	if (rc == 1)
		return (int64_t)sent;
	rc = waits(SSL_get_error(t->ssl, rc)) ? 0 : -1;
	ERR_clear_error();
	return rc;
}

int64_t tls_origin_read(struct tls_origin *t, void *p, size_t n)
{
	size_t got;
	int rc, error;

	ERR_clear_error();
	rc = SSL_read_ex(t->ssl, p, n, &got);
	if (rc == 1)
		return (int64_t)got;
	error = SSL_get_error(t->ssl, rc);
	ERR_clear_error();
	if (waits(error))
		return 0;
	return error == SSL_ERROR_ZERO_RETURN ? -1 : -2;
}
