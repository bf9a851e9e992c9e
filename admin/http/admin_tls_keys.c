/* SPDX-License-Identifier: MIT */
/* Reads certificates and keys; see admin_tls_keys.h. */
#include "admin_tls_keys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/auth/secret.h"

/* Maximum size of a PEM file. A certificate chain or a key takes a few KB. */
#define PEM_BYTES_MAX 262144

static int fail(struct weir_err *err, int code, const char *what, const char *path, const char *why)
{
	err->code = code;
	err->hint[0] = '\0';
	snprintf(err->text, sizeof(err->text), "%s %s cannot be used: %s", what, path, why);
	return code;
}

void keys_unref(struct keys *k)
{
	if (!k || --k->refs > 0)
		return;
	gnutls_certificate_free_credentials(k->credentials);
	free(k->cert);
	free(k->key);
	free(k);
}

/* Read all of `fd` into `pem` and close `fd`. The caller wipes and frees `pem`. */
static int slurp(int fd, gnutls_datum_t *pem)
{
	ssize_t n = 0;

	*pem = (gnutls_datum_t){.data = malloc(PEM_BYTES_MAX)};
	while (pem->data && (n = read(fd, pem->data + pem->size, PEM_BYTES_MAX - pem->size)) > 0)
		pem->size += (unsigned)n;
	int rc = !pem->data ? WEIR_ENOMEM : n < 0 ? WEIR_ESYS : 0;
	close(fd);
	return rc;
}

static void wipe(gnutls_datum_t *pem)
{
	if (pem->data)
		explicit_bzero(pem->data, pem->size);
	free(pem->data);
	*pem = (gnutls_datum_t){0};
}

int keys_open_cert(const char *cert, struct weir_err *err)
{
	int fd = open(cert, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error = errno;

	if (fd >= 0)
		return fd;
	fail(err, WEIR_ESYS, "the certificate", cert, strerror(error));
	secret_hint(cert, error, err->hint, sizeof(err->hint));
	return -1;
}

static int load(gnutls_certificate_credentials_t credentials, const char *cert, const char *key,
    struct weir_err *err)
{
	gnutls_datum_t certs = {0}, secret = {0};
	int rc, fd = keys_open_cert(cert, err);

	if (fd < 0)
		return err->code;
	rc = slurp(fd, &certs);
	if (rc != 0) {
		wipe(&certs);
		return fail(err, rc, "the certificate", cert, weir_error_text(rc));
	}
	fd = secret_open(key, "the key of the certificate", err);
	rc = fd < 0 ? err->code : slurp(fd, &secret);
	if (rc == 0) {
		int failed = gnutls_certificate_set_x509_key_mem(
		    credentials, &certs, &secret, GNUTLS_X509_FMT_PEM);
		if (failed < 0)
			rc = fail(err, WEIR_EINVAL,
			    failed == GNUTLS_E_CERTIFICATE_KEY_MISMATCH
				? "the key does not match the certificate, so"
				: "the certificate or the key of",
			    cert, gnutls_strerror(failed));
	}
	wipe(&certs);
	wipe(&secret);
	return rc;
}

int keys_new(const char *cert, const char *key, struct keys **out, struct weir_err *err)
{
	struct keys *k = calloc(1, sizeof(*k));
	int rc;

	if (!k || gnutls_certificate_allocate_credentials(&k->credentials) < 0) {
		free(k);
		return fail(err, WEIR_ENOMEM, "the certificate", cert, "out of memory");
	}
	k->refs = 1;
	k->cert = strdup(cert);
	k->key = strdup(key);
	rc = k->cert && k->key ? load(k->credentials, cert, key, err)
			       : fail(err, WEIR_ENOMEM, "the certificate", cert, "out of memory");
	if (rc == 0)
		*out = k;
	else
		keys_unref(k);
	return rc;
}
