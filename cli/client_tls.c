/* SPDX-License-Identifier: MIT */
/* TLS for the admin client, by GnuTLS; see client_tls.h. */
#include "client_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/gnutls.h>

/* As on the server's side, admin/admin_tls.c. */
#define CLIENT_TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct client_tls {
	gnutls_session_t session;
	gnutls_certificate_credentials_t credentials;
};

static int client_tls_fail(struct weir_err *err, const char *host, const char *why)
{
	err->code = WEIR_EFAILED;
	snprintf(err->text, sizeof(err->text), "no TLS with %.60s: %.170s", host, why);
	return WEIR_EFAILED;
}

static bool client_tls_is_name(const char *host)
{
	unsigned char buf[16];

	return inet_pton(AF_INET, host, buf) != 1 && inet_pton(AF_INET6, host, buf) != 1;
}

static int client_tls_trust(
    struct client_tls *t, const char *host, const char *ca, struct weir_err *err)
{
	char why[300];
	int n = ca ? gnutls_certificate_set_x509_trust_file(t->credentials, ca, GNUTLS_X509_FMT_PEM)
		   : gnutls_certificate_set_x509_system_trust(t->credentials);

	if (n > 0)
		return 0;
	if (!ca)
		return client_tls_fail(
		    err, host, "this system trusts nobody: give the authority with --ca FILE");
	snprintf(why, sizeof(why), "%.200s holds no certificate of an authority%s%s", ca,
	    n < 0 ? ": " : "", n < 0 ? gnutls_strerror(n) : "");
	return client_tls_fail(err, host, why);
}

/* Why the certificate is not believed, in words; the mend for the one case that has one. */
static int client_tls_explain(struct client_tls *t, const char *host, int rc, struct weir_err *err)
{
	unsigned status = gnutls_session_get_verify_cert_status(t->session);
	gnutls_datum_t words = {0};
	char why[300];

	if (rc != GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR || status == (unsigned)-1 ||
	    gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &words, 0) < 0)
		return client_tls_fail(err, host,
		    rc == GNUTLS_E_AGAIN ? "it did not answer in 5 s" : gnutls_strerror(rc));
	snprintf(why, sizeof(why), "%.220s%s", (const char *)words.data,
	    status & GNUTLS_CERT_SIGNER_NOT_FOUND ? "Give that authority with --ca FILE." : "");
	gnutls_free(words.data);
	return client_tls_fail(err, host, why);
}

static int client_tls_prepare(
    struct client_tls *t, int fd, const char *host, const char *ca, struct weir_err *err)
{
	if (gnutls_certificate_allocate_credentials(&t->credentials) < 0 ||
	    gnutls_init(&t->session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL) < 0 ||
	    gnutls_priority_set_direct(t->session, CLIENT_TLS_PRIORITIES, NULL) < 0 ||
	    gnutls_credentials_set(t->session, GNUTLS_CRD_CERTIFICATE, t->credentials) < 0 ||
	    (client_tls_is_name(host) &&
		gnutls_server_name_set(t->session, GNUTLS_NAME_DNS, host, strlen(host)) < 0))
		return client_tls_fail(err, host, "out of memory");
	gnutls_session_set_verify_cert(t->session, host, 0);
	gnutls_transport_set_int(t->session, fd);
	return client_tls_trust(t, host, ca, err);
}

int client_tls_begin(
    int fd, const char *host, const char *ca, struct client_tls **out, struct weir_err *err)
{
	struct client_tls *t = calloc(1, sizeof(*t));

	if (!t)
		return client_tls_fail(err, host, "out of memory");
	int rc = client_tls_prepare(t, fd, host, ca, err);
	if (rc == 0) {
		int shaken;
		do
			shaken = gnutls_handshake(t->session);
		while (shaken < 0 && shaken != GNUTLS_E_AGAIN && !gnutls_error_is_fatal(shaken));
		if (shaken < 0)
			rc = client_tls_explain(t, host, shaken, err);
	}
	if (rc == 0)
		*out = t;
	else
		client_tls_end(t);
	return rc;
}

/* errno for what GnuTLS says. */
static ssize_t client_tls_result(ssize_t n)
{
	if (n >= 0)
		return n;
	errno = n == GNUTLS_E_AGAIN ? EAGAIN : ECONNRESET;
	return -1;
}

ssize_t client_tls_send(struct client_tls *t, const void *p, size_t n)
{
	ssize_t sent;

	do
		sent = gnutls_record_send(t->session, p, n);
	while (sent == GNUTLS_E_INTERRUPTED); /* which goes on with the same record */
	return client_tls_result(sent);
}

ssize_t client_tls_recv(struct client_tls *t, void *p, size_t n)
{
	ssize_t got;

	do
		got = gnutls_record_recv(t->session, p, n);
	while (got < 0 && got != GNUTLS_E_AGAIN && !gnutls_error_is_fatal((int)got));
	return client_tls_result(got);
}

void client_tls_end(struct client_tls *t)
{
	if (!t)
		return;
	if (t->session)
		gnutls_deinit(t->session);
	if (t->credentials)
		gnutls_certificate_free_credentials(t->credentials);
	free(t);
}
