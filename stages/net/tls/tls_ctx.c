/* SPDX-License-Identifier: MIT */
/*
 * Creates SSL_CTXs with the following settings; see tls_ctx.h.
 *
 *   versions 1.2 and 1.3   RFC 8996 deprecates the older ones
 *   ciphers                those of 1.2 as configured by `ciphers`: by default AEAD with ECDHE
 *   groups                 three that are cheap for us: a client may choose any that we list, and
 *                          some (ffdhe8192) cost a hundred times as much
 *   no renegotiation, no compression, no early data (the default): each has known attacks and no
 *                          known use
 *   tickets sealed by us   so that I/O threads and reloads share keys (tls_ticket.h); no session
 *                          cache, whose size would have to be limited
 *   an end without close_notify is accepted: requests contain their own length, so a truncated
 *                          request is recognized
 */
#include "net/tls/tls_ctx.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <openssl/err.h>

#include <weir/clock.h>
#include <weir/event.h>

#include "net/tls/tls_pem.h"
#include "net/tls/tls_ticket.h"

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
    EVP_MAC_CTX *mac, int seal)
{
	return tls_tickets_crypt(
	    SSL_get_app_data(ssl), weir_clock_ns(CLOCK_MONOTONIC), name, iv, cipher, mac, seal);
}

/* Return the name in the ClientHello that is being read, before OpenSSL has extracted it. Its n is
 * 0 if there is none. The extension (RFC 6066, 3) is a list with its length before it. The list has
 * one entry: a type of 0, and the name with its length before it. */
static struct weir_slice asked_name(SSL *ssl)
{
	const unsigned char *p;
	size_t n;

	if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &p, &n) != 1 || n < 5 ||
	    p[2] != TLSEXT_NAMETYPE_host_name || ((size_t)p[3] << 8 | p[4]) != n - 5)
		return (struct weir_slice){NULL, 0};
	return (struct weir_slice){(const char *)p + 5, n - 5};
}

/* Decide whether to use a ticket. A TLS 1.2 session must not be resumed under a different name (RFC
 * 6066, 3). OpenSSL would do so, and would report the old name. In TLS 1.3 the name is that of the
 * new ClientHello (RFC 8446, 4.2.11). */
static SSL_TICKET_RETURN on_opened(SSL *ssl, SSL_SESSION *session, const unsigned char *name,
    size_t n, SSL_TICKET_STATUS status, void *arg)
{
	(void)name;
	(void)n;
	(void)arg;
	switch (status) {
	case SSL_TICKET_EMPTY:
	case SSL_TICKET_NO_DECRYPT:
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	case SSL_TICKET_SUCCESS:
	case SSL_TICKET_SUCCESS_RENEW:
		break;
	default:
		return SSL_TICKET_RETURN_ABORT;
	}
	const char *was = SSL_SESSION_get0_hostname(session);
	struct weir_slice is = asked_name(ssl);
	if (SSL_SESSION_get_protocol_version(session) < TLS1_3_VERSION &&
	    (strlen(was ? was : "") != is.n || (is.n > 0 && strncasecmp(was, is.p, is.n) != 0)))
		return SSL_TICKET_RETURN_IGNORE_RENEW;
	return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

/* Select our protocol. A client that offers protocols, but not ours, gets an alert (RFC 7301,
 * 3.2). */
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
	/* Without AUTO_RETRY, SSL_read returns after a record without data rather than reading the
	 * next one. A client that sends only key updates can therefore not keep an I/O thread busy:
	 * there is one read per iteration for it, and tls_io.c counts the reads without data. */
	SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	/* in TLS 1.3 NO_TICKET would still send stateful tickets, which are useless without a
	 * cache */
	if (conf->ticket_ns == 0)
		SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_timeout(ctx, (long)((conf->ticket_ns + 999999999) / 1000000000));
}

/* Whether each usable cipher of the list encrypts and authenticates (a list may also name ciphers
 * that cannot be used), and whether there is a usable cipher at all if TLS 1.2 is allowed. */
static bool ciphers_good(SSL_CTX *ctx, const struct tls_conf *conf)
{
	SSL *ssl = SSL_new(ctx);
	STACK_OF(SSL_CIPHER) *all = ssl ? SSL_get1_supported_ciphers(ssl) : NULL;
	int older = 0;
	bool good = true;

	for (int i = 0; i < sk_SSL_CIPHER_num(all); i++) {
		const SSL_CIPHER *c = sk_SSL_CIPHER_value(all, i);
		if (strcmp(SSL_CIPHER_get_version(c), "TLSv1.3") == 0)
			continue;
		older++;
		good = good && SSL_CIPHER_get_cipher_nid(c) != NID_undef &&
		       SSL_CIPHER_get_auth_nid(c) != NID_auth_null;
	}
	sk_SSL_CIPHER_free(all);
	SSL_free(ssl);
	return good && (older > 0 || conf->min_version == TLS_MIN_1_3);
}

static int set_ciphers(SSL_CTX *ctx, const struct tls_conf *conf, struct weir_err *err)
{
	if (SSL_CTX_set_cipher_list(ctx, conf->ciphers) != 1) {
		ERR_clear_error();
		return tls_fail(err, WEIR_EINVAL,
		    "run `openssl ciphers -v LIST` to see what a list contains",
		    "no cipher matches '%.80s'", conf->ciphers);
	}
	if (!ciphers_good(ctx, conf))
		return tls_fail(err, WEIR_EINVAL,
		    "run `openssl ciphers -s -v -tls1_2 LIST` to see the usable ciphers of a list",
		    "none of the ciphers '%.80s' can be used with TLS 1.2, or one of them lacks "
		    "encryption or authentication",
		    conf->ciphers);
	return 0;
}

SSL_CTX *tls_ctx_new(const struct tls_conf *conf, char at[TLS_PATH_BYTES], struct weir_err *err)
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
		tls_fail(err, WEIR_ENOMEM, NULL, "TLS cannot be set up: %s",
		    tls_reason(why, sizeof(why)));
		goto fail;
	}
	if (set_ciphers(ctx, conf, err) != 0) {
		snprintf(at, TLS_PATH_BYTES, "tls.ciphers");
		goto fail;
	}
	set_options(ctx, conf);
	SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
	if (conf->ticket_ns > 0) {
		SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket);
		SSL_CTX_set_session_ticket_cb(ctx, NULL, on_opened, NULL);
	}
	return ctx;
fail:
	SSL_CTX_free(ctx);
	return NULL;
}
