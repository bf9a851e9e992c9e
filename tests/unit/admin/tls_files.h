/* SPDX-License-Identifier: MIT */
/* A certificate and a key of the admin endpoint, in files. Header-only. */
#ifndef WEIR_TESTS_TLS_FILES_H
#define WEIR_TESTS_TLS_FILES_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "cunit_main.h"

static char folder[32];
static char cert_path[64], key_path[64];

static inline void put_pem(const char *path, const gnutls_datum_t *pem)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, pem->data, pem->size), (ssize_t)pem->size);
	close(fd);
}

/* A key and a certificate of its own for 127.0.0.1, valid for an hour, in a new folder. */
static inline void make_files(void)
{
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t cert;
	gnutls_datum_t pem;

	snprintf(folder, sizeof(folder), "/tmp/weir-test-XXXXXX");
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	snprintf(cert_path, sizeof(cert_path), "%s/cert", folder);
	snprintf(key_path, sizeof(key_path), "%s/key", folder);
	gnutls_x509_privkey_init(&key);
	gnutls_x509_crt_init(&cert);
	CU_ASSERT_EQUAL_FATAL(gnutls_x509_privkey_generate(key, GNUTLS_PK_ECDSA,
				  GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0),
	    0);
	gnutls_x509_crt_set_version(cert, 3);
	gnutls_x509_crt_set_serial(cert, "\1", 1);
	gnutls_x509_crt_set_activation_time(cert, time(NULL) - 3600);
	gnutls_x509_crt_set_expiration_time(cert, time(NULL) + 3600);
	gnutls_x509_crt_set_key(cert, key);
	CU_ASSERT_EQUAL_FATAL(gnutls_x509_crt_sign2(cert, cert, key, GNUTLS_DIG_SHA256, 0), 0);
	CU_ASSERT_EQUAL_FATAL(gnutls_x509_crt_export2(cert, GNUTLS_X509_FMT_PEM, &pem), 0);
	put_pem(cert_path, &pem);
	gnutls_free(pem.data);
	CU_ASSERT_EQUAL_FATAL(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &pem), 0);
	put_pem(key_path, &pem);
	gnutls_free(pem.data);
	gnutls_x509_crt_deinit(cert);
	gnutls_x509_privkey_deinit(key);
}

static inline void remove_files(void)
{
	unlink(cert_path);
	unlink(key_path);
	rmdir(folder);
}

#endif
