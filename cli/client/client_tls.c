/* SPDX-License-Identifier: MIT */
/* Implements TLS for the admin client with GnuTLS; see client_tls.h. */
#include "client_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/gnutls.h>

#include "base/clock.h"
#include "client_wire.h"

/* The TLS versions that the server accepts (admin/http/admin_tls.c). */
#define CLIENT_TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

struct client_tls {
	gnutls_session_t session;
	gnutls_certificate_credentials_t credentials;
};

static int client_tls_fail(struct weir_err *err, const char *host, const char *why)
{
	err->code = WEIR_EFAILED;
	snprintf(err->text, sizeof(err->text), "TLS with %.60s failed: %.170s", host, why);
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
		return client_tls_fail(err, host,
		    "this system trusts no certificate authority: name one with --ca FILE");
	snprintf(why, sizeof(why), "%.200s contains no CA certificate%s%s", ca, n < 0 ? ": " : "",
	    n < 0 ? gnutls_strerror(n) : "");
	return client_tls_fail(err, host, why);
}

/* Explain why the handshake failed, and suggest a solution if the CA is unknown. */
static int client_tls_explain(struct client_tls *t, const char *host, int rc, struct weir_err *err)
{
	unsigned status = gnutls_session_get_verify_cert_status(t->session);
	gnutls_datum_t words = {0};
	char why[300];

	if (rc != GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR || status == (unsigned)-1 ||
	    gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &words, 0) < 0)
		return client_tls_fail(err, host,
		    rc == GNUTLS_E_AGAIN ? "it did not answer in time" : gnutls_strerror(rc));
	snprintf(why, sizeof(why), "%.220s%s", (const char *)words.data,
	    status & GNUTLS_CERT_SIGNER_NOT_FOUND ? "Name its authority with --ca FILE." : "");
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
	/* without this, GnuTLS would do its own polling */
	gnutls_handshake_set_timeout(t->session, GNUTLS_INDEFINITE_TIMEOUT);
	gnutls_transport_set_int(t->session, fd);
	return client_tls_trust(t, host, ca, err);
}

/* Do the handshake. Returns 0 or a GnuTLS error code, which is GNUTLS_E_AGAIN after a time-out. */
static int client_tls_shake(struct client_tls *t, int fd, int64_t until_ns)
{
	int rc;

	while ((rc = gnutls_handshake(t->session)) < 0 && !gnutls_error_is_fatal(rc)) {
		short events = gnutls_record_get_direction(t->session) == 1 ? POLLOUT : POLLIN;
		if (clock_now_ns() >= until_ns)
			return GNUTLS_E_AGAIN;
		if (rc == GNUTLS_E_AGAIN && client_wire_wait(fd, events, until_ns) != 0)
			return GNUTLS_E_AGAIN;
	}
	return rc;
}

int client_tls_begin(int fd, const char *host, const char *ca, int64_t until_ns,
    struct client_tls **out, struct weir_err *err)
{
	struct client_tls *t = calloc(1, sizeof(*t));

	if (!t)
		return client_tls_fail(err, host, "out of memory");
	int rc = client_tls_prepare(t, fd, host, ca, err);
	if (rc == 0) {
		int shaken = client_tls_shake(t, fd, until_ns);
		if (shaken < 0)
			rc = client_tls_explain(t, host, shaken, err);
	}
	if (rc == 0)
		*out = t;
	else
		client_tls_end(t);
	return rc;
}

/* Translate a GnuTLS error code into errno. */
static ssize_t client_tls_result(ssize_t n)
{
	if (n >= 0)
		return n;
	errno = n == GNUTLS_E_AGAIN ? EAGAIN : gnutls_error_is_fatal((int)n) ? ECONNRESET : EINTR;
	return -1;
}

ssize_t client_tls_send(struct client_tls *t, const void *p, size_t n)
{
	return client_tls_result(gnutls_record_send(t->session, p, n));
}

ssize_t client_tls_recv(struct client_tls *t, void *p, size_t n)
{
	return client_tls_result(gnutls_record_recv(t->session, p, n));
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
