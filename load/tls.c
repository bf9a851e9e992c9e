/* SPDX-License-Identifier: MIT */
/* TLS with OpenSSL 3, client side; see tls.h. The error queue of the thread is cleared before each
 * call, since SSL_get_error reads it. */
#include "load/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "load/sentence.h"

struct tls_context {
	SSL_CTX *ctx;
	char host[256];
	/* the host is an IP address, so no SNI is sent, and the certificate must contain the
	 * address */
	bool is_address;
	bool verify;
};

/* A session is an SSL object, so it needs no additional memory. */
static SSL *ssl_of(struct tls_session *s)
{
	return (SSL *)s;
}

static bool is_address(const char *host)
{
	unsigned char bytes[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static int explain(struct weir_err *err)
{
	char text[160];

	ERR_error_string_n(ERR_get_error(), text, sizeof(text));
	return sentence(err, WEIR_ESYS, "TLS cannot be set up: %s", text);
}

int tls_new(const struct load_plan *plan, struct tls_context **out, struct weir_err *err)
{
	struct tls_context *tls = calloc(1, sizeof(*tls));

	*out = NULL;
	if (!tls)
		return sentence_nomem(err);
	snprintf(tls->host, sizeof(tls->host), "%s", plan->host);
	tls->is_address = is_address(tls->host);
	tls->verify = plan->verify;
	tls->ctx = SSL_CTX_new(TLS_client_method());
	if (!tls->ctx || SSL_CTX_set_default_verify_paths(tls->ctx) != 1) {
		explain(err);
		tls_free(tls);
		return WEIR_ESYS;
	}
	SSL_CTX_set_verify(tls->ctx, tls->verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_session_cache_mode(tls->ctx, SSL_SESS_CACHE_OFF);
	/* After IO_AGAIN, the write may be repeated from a different address (conn_io.c). */
	SSL_CTX_set_mode(tls->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
				       SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				       SSL_MODE_RELEASE_BUFFERS);
	*out = tls;
	return 0;
}

void tls_free(struct tls_context *tls)
{
	if (tls)
		SSL_CTX_free(tls->ctx);
	free(tls);
}

/* Set the name or address that the certificate must have. */
static bool expect_host(struct tls_context *tls, SSL *ssl)
{
	if (tls->is_address)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), tls->host) == 1;
	return SSL_set_tlsext_host_name(ssl, tls->host) == 1 && SSL_set1_host(ssl, tls->host) == 1;
}

struct tls_session *tls_open(struct tls_context *tls, int fd)
{
	SSL *ssl = SSL_new(tls->ctx);

	if (!ssl)
		return NULL;
	if (SSL_set_fd(ssl, fd) != 1 || !expect_host(tls, ssl)) {
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_connect_state(ssl);
	return (struct tls_session *)ssl;
}

void tls_close(struct tls_session *s)
{
	SSL_free(ssl_of(s));
}

/* Map `rc`, the result of a failed call, to IO_*, or to 0 for the end of the stream. */
static int meaning(SSL *ssl, int rc)
{
	switch (SSL_get_error(ssl, rc)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return IO_AGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		return IO_RESET;
	default:
		if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
			return IO_CUT;
		return IO_TLS;
	}
}

int tls_handshake(struct tls_session *s)
{
	ERR_clear_error();
	int rc = SSL_do_handshake(ssl_of(s));
	if (rc == 1)
		return 1;
	rc = meaning(ssl_of(s), rc);
	return rc == 0 ? IO_TLS : rc;
}

ssize_t tls_read(struct tls_session *s, void *p, size_t n)
{
	ERR_clear_error();
	int rc = SSL_read(ssl_of(s), p, n > INT_MAX ? INT_MAX : (int)n);
	return rc > 0 ? rc : meaning(ssl_of(s), rc);
}

ssize_t tls_write(struct tls_session *s, const void *p, size_t n)
{
	ERR_clear_error();
	int rc = SSL_write(ssl_of(s), p, n > INT_MAX ? INT_MAX : (int)n);
	if (rc > 0)
		return rc;
	rc = meaning(ssl_of(s), rc);
	return rc == 0 ? IO_RESET : rc;
}
