/* SPDX-License-Identifier: MIT */
/* Reads PEM files; see tls_pem.h. The contents of a key file are wiped before they are freed. */
#include "net/tls/tls_pem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>

/* Longest PEM file that is read; certificates with their chain, and keys, take some KB. */
#define PEM_BYTES_MAX 262144
/* Longest chain that is read: by default OpenSSL verifies chains of at most 100. */
#define CHAIN_MAX 100

int tls_fail(struct weir_err *err, int code, const char *hint, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	snprintf(err->hint, sizeof(err->hint), "%s", hint ? hint : "");
	return code;
}

const char *tls_reason(char *buf, size_t size)
{
	unsigned long e = ERR_peek_last_error();
	const char *text = e ? ERR_reason_error_string(e) : NULL;

	snprintf(buf, size, "%s", text ? text : "OpenSSL gives no reason");
	ERR_clear_error();
	return buf;
}

/* ---- files ---- */

struct bytes {
	char *p;
	size_t n;
};

static void wipe(struct bytes *b)
{
	if (b->p)
		explicit_bzero(b->p, b->n);
	free(b->p);
	*b = (struct bytes){0};
}

/* Read all bytes of `fd`, and close it. */
static int slurp(int fd, const char *path, struct bytes *b, struct weir_err *err)
{
	ssize_t n = 0;
	int rc = 0;

	*b = (struct bytes){.p = malloc(PEM_BYTES_MAX)};
	while (b->p && b->n < PEM_BYTES_MAX &&
	       (n = TEMP_FAILURE_RETRY(read(fd, b->p + b->n, PEM_BYTES_MAX - b->n))) > 0)
		b->n += (size_t)n;
	if (!b->p)
		rc = tls_fail(err, WEIR_ENOMEM, NULL, "out of memory");
	else if (n == -1)
		rc = tls_fail(err, WEIR_ESYS, NULL, "cannot read %s: %s", path, strerror(errno));
	else if (b->n == PEM_BYTES_MAX)
		rc = tls_fail(
		    err, WEIR_EINVAL, NULL, "%s is longer than %d KiB", path, PEM_BYTES_MAX / 1024);
	close(fd);
	if (rc != 0)
		wipe(b);
	return rc;
}

/* Open a regular file. O_NONBLOCK is used because opening a FIFO would otherwise block. */
static int open_file(const char *path, struct stat *st, struct weir_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd == -1 || fstat(fd, st) == -1) {
		tls_fail(err, WEIR_ESYS,
		    *path == '/' ? NULL : "a relative path begins at the folder of the YAML file",
		    "cannot read %s: %s", path, strerror(errno));
		if (fd != -1)
			close(fd);
		return -1;
	}
	if (S_ISREG(st->st_mode))
		return fd;
	tls_fail(err, WEIR_EINVAL, NULL, "%s is not a regular file", path);
	close(fd);
	return -1;
}

static int check_key_file(const struct stat *st, const char *path, struct weir_err *err)
{
	char hint[160];

	if (st->st_mode & (S_IRWXO | S_IWGRP | S_IXGRP)) {
		snprintf(hint, sizeof(hint), "run: chmod 600 %s", path);
		return tls_fail(err, WEIR_EINVAL, hint,
		    "the key %s is accessible to other users (its mode is %04o)", path,
		    (unsigned)st->st_mode & 07777);
	}
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return tls_fail(err, WEIR_EINVAL, NULL,
		    "the key %s belongs to user %u, which is neither root nor the user of this "
		    "server",
		    path, (unsigned)st->st_uid);
	return 0;
}

/* ---- certificates ---- */

static int read_certs(
    const struct bytes *b, const char *path, STACK_OF(X509) * certs, struct weir_err *err)
{
	BIO *bio = BIO_new_mem_buf(b->p, (int)b->n);
	char why[160];
	bool many = false;
	X509 *x;

	ERR_clear_error();
	while (bio && (x = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL))) {
		many = sk_X509_num(certs) >= CHAIN_MAX;
		if (!many && sk_X509_push(certs, x) > 0)
			continue;
		X509_free(x);
		break;
	}
	BIO_free(bio);
	if (many)
		return tls_fail(
		    err, WEIR_EINVAL, NULL, "%s has more than %d certificates", path, CHAIN_MAX);
	/* OpenSSL reports the end of the file as an error, which is the only acceptable one here */
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return tls_fail(err, WEIR_EINVAL, NULL, "%s cannot be read as certificates: %s",
		    path, tls_reason(why, sizeof(why)));
	ERR_clear_error();
	if (sk_X509_num(certs) == 0)
		return tls_fail(err, WEIR_EINVAL,
		    "a certificate in PEM begins with -----BEGIN CERTIFICATE-----",
		    "%s holds no certificate", path);
	return 0;
}

int tls_pem_certs(const char *path, STACK_OF(X509) * *certs, struct weir_err *err)
{
	struct bytes b = {0};
	struct stat st;
	int fd = open_file(path, &st, err);
	int rc = fd == -1 ? err->code : slurp(fd, path, &b, err);

	if (rc != 0)
		return rc;
	*certs = sk_X509_new_null();
	rc = *certs ? read_certs(&b, path, *certs, err)
		    : tls_fail(err, WEIR_ENOMEM, NULL, "out of memory");
	wipe(&b); /* a key may be in the same file */
	if (rc != 0) {
		sk_X509_pop_free(*certs, X509_free);
		*certs = NULL;
	}
	return rc;
}

/* ---- keys ---- */

/* OpenSSL's passphrase callback. It provides no passphrase, since the server starts unattended, and
 * records that one was needed. */
static int no_passphrase(char *buf, int size, int writing, void *asked)
{
	(void)writing;
	*(bool *)asked = true;
	if (size > 0)
		buf[0] = '\0';
	return -1;
}

int tls_pem_key(const char *path, EVP_PKEY **key, struct weir_err *err)
{
	struct stat st;
	struct bytes b = {0};
	char why[160];
	bool asked = false;
	int fd = open_file(path, &st, err);
	int rc = fd == -1 ? err->code : check_key_file(&st, path, err);

	if (rc != 0) {
		if (fd != -1)
			close(fd);
		return rc;
	}
	rc = slurp(fd, path, &b, err);
	if (rc != 0)
		return rc;
	ERR_clear_error();
	BIO *bio = BIO_new_mem_buf(b.p, (int)b.n);
	*key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &asked) : NULL;
	BIO_free(bio);
	bool is_key = memmem(b.p, b.n, "PRIVATE KEY-----", 16) != NULL;
	wipe(&b);
	if (*key)
		return 0;
	if (asked)
		return tls_fail(err, WEIR_EINVAL, "decrypt it: openssl pkey -in KEY -out PLAIN",
		    "the key %s is encrypted, and the server cannot ask for its passphrase", path);
	if (!is_key)
		return tls_fail(err, WEIR_EINVAL,
		    "a key in PEM begins with -----BEGIN PRIVATE KEY-----",
		    "%s holds no private key", path);
	return tls_fail(err, WEIR_EINVAL, NULL, "%s cannot be read as a private key: %s", path,
	    tls_reason(why, sizeof(why)));
}
