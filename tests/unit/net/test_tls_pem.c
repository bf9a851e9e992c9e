/* SPDX-License-Identifier: MIT */
/* Reading certificates and keys: the limits of files and chains, and what is left of a failure. */
#include "net/tls/tls_pem.h"

#include "fixture/graph/descriptors.h"
#include "fixture/http/tls.h"

/* Longest file, and most certificates of a chain: tls_pem.c. */
#define BYTES 262144
#define CHAIN 100

static EVP_PKEY *key;
static X509 *cert;

static void make(void)
{
	tls_folder_make();
	key = EVP_EC_gen("P-256");
	cert = tls_self_signed(key, "a", NULL, 30);
}

/* Write a file of `n` certificates, followed by empty lines up to `bytes`. */
static void write_certs(int n, long bytes)
{
	FILE *f = tls_file("c", "pem");

	for (int i = 0; i < n; i++)
		PEM_write_X509(f, cert);
	while (ftell(f) < bytes)
		fputc('\n', f);
	fclose(f);
}

/* Number of certificates read, or -1 with `err`. Nothing is left open. */
static int count_certs(const char *file, struct weir_err *err)
{
	STACK_OF(X509) *certs = NULL;
	int before = entries_in(DESCRIPTORS);
	int rc = tls_pem_certs(file, &certs, err), n = -1;

	if (rc == 0) {
		n = sk_X509_num(certs);
		sk_X509_pop_free(certs, X509_free);
	} else {
		CU_ASSERT_PTR_NULL(certs);
		CU_ASSERT_EQUAL(err->code, rc);
	}
	CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before);
	CU_ASSERT_EQUAL(ERR_peek_error(), 0);
	return n;
}

static bool says(const struct weir_err *err, const char *text)
{
	return strstr(err->text, text) != NULL;
}

static void test_chain(void)
{
	struct weir_err err = {0};

	write_certs(0, 0);
	CU_ASSERT_EQUAL(count_certs(tls_path("c.pem"), &err), -1);
	CU_ASSERT(says(&err, "holds no certificate"));
	write_certs(1, 0);
	CU_ASSERT_EQUAL(count_certs(tls_path("c.pem"), &err), 1);
	write_certs(CHAIN, 0);
	CU_ASSERT_EQUAL(count_certs(tls_path("c.pem"), &err), CHAIN);
	write_certs(CHAIN + 1, 0);
	CU_ASSERT_EQUAL(count_certs(tls_path("c.pem"), &err), -1);
	CU_ASSERT(says(&err, "has more than 100 certificates"));
}

static void test_length(void)
{
	struct weir_err err = {0};

	write_certs(2, BYTES - 1);
	CU_ASSERT_EQUAL(count_certs(tls_path("c.pem"), &err), 2);
	write_certs(2, BYTES);
	CU_ASSERT_EQUAL(count_certs(tls_path("c.pem"), &err), -1);
	CU_ASSERT(says(&err, "is longer than 256 KiB"));
	write_certs(2, 3 * BYTES);
	CU_ASSERT_EQUAL(count_certs(tls_path("c.pem"), &err), -1);
	CU_ASSERT(says(&err, "is longer than 256 KiB"));
}

static void test_files(void)
{
	struct weir_err err = {0};

	CU_ASSERT_EQUAL(count_certs(tls_path("none.pem"), &err), -1);
	CU_ASSERT_EQUAL(err.code, WEIR_ESYS);
	CU_ASSERT(says(&err, "No such file"));
	CU_ASSERT_EQUAL(count_certs(tls_folder, &err), -1);
	CU_ASSERT_EQUAL(err.code, WEIR_EINVAL);
	CU_ASSERT(says(&err, "is not a regular file"));
	CU_ASSERT_EQUAL(mkfifo(tls_path("fifo.pem"), 0600), 0); /* does not block */
	CU_ASSERT_EQUAL(count_certs(tls_path("fifo.pem"), &err), -1);
	CU_ASSERT(says(&err, "is not a regular file"));
	unlink(tls_path("fifo.pem"));
}

/* ---- keys ---- */

static int read_key(struct weir_err *err)
{
	EVP_PKEY *found = NULL;
	int before = entries_in(DESCRIPTORS);
	int rc = tls_pem_key(tls_path("k.key"), &found, err);

	CU_ASSERT(rc == 0 ? EVP_PKEY_eq(found, key) == 1 : !found);
	EVP_PKEY_free(found);
	CU_ASSERT_EQUAL(entries_in(DESCRIPTORS), before);
	return rc;
}

static void write_key(const char *before, const EVP_CIPHER *cipher)
{
	FILE *f = tls_file("k", "key");
	unsigned char word[] = "secret";

	fputs(before, f);
	PEM_write_PrivateKey(f, key, cipher, cipher ? word : NULL, cipher ? 6 : 0, NULL, NULL);
	fclose(f);
}

/* Every bit of the mode: others may do nothing, the group may only read. */
static void test_modes(void)
{
	struct weir_err err = {0};

	write_key("", NULL);
	for (unsigned bit = 1; bit <= 0400; bit <<= 1) {
		bool good = bit >= 0100 || bit == 0040;
		CU_ASSERT_EQUAL(chmod(tls_path("k.key"), 0400 | bit), 0);
		CU_ASSERT_EQUAL(read_key(&err), good ? 0 : WEIR_EINVAL);
		CU_ASSERT(good || says(&err, "is accessible to other users (its mode is 04"));
	}
}

static void test_keys(void)
{
	struct weir_err err = {0};
	FILE *f;

	write_key("text before it\n", NULL);
	CU_ASSERT_EQUAL(read_key(&err), 0);
	write_key("", EVP_aes_128_cbc());
	CU_ASSERT_EQUAL(read_key(&err), WEIR_EINVAL);
	CU_ASSERT(says(&err, "is encrypted"));
	f = tls_file("k", "key");
	PEM_write_X509(f, cert);
	fclose(f);
	CU_ASSERT_EQUAL(read_key(&err), WEIR_EINVAL);
	CU_ASSERT(says(&err, "holds no private key"));
	f = tls_file("k", "key");
	fputs("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", f);
	fclose(f);
	CU_ASSERT_EQUAL(read_key(&err), WEIR_EINVAL);
	CU_ASSERT(says(&err, "cannot be read as a private key: "));
	unlink(tls_path("k.key"));
	CU_ASSERT_EQUAL(read_key(&err), WEIR_ESYS);
}

static void test_end(void)
{
	X509_free(cert);
	EVP_PKEY_free(key);
	tls_folder_remove();
}

CUNIT_MAIN("tls pem", {"make files", make}, {"chain", test_chain}, {"length", test_length},
    {"files", test_files}, {"modes", test_modes}, {"keys", test_keys}, {"remove files", test_end})
