/* SPDX-License-Identifier: MIT */
/* The text of a private key does not stay in memory, whether its file is accepted or refused. */
#include "net/tls/tls_pem.h"

#include "fixture/http/tls.h"
#include "fixture/memory/wiped.h"

static char line[80]; /* of the key's text */

static void make(void)
{
	tls_folder_make();
	tls_make("one", NULL, false, 30);
	FILE *f = fopen(tls_path("one.key"), "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	for (int i = 0; i < 2; i++)
		CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof(line), f));
	fclose(f);
	CU_ASSERT_TRUE(strlen(line) > 40);
}

/* Append "one.key" to `file`. */
static void append_key(const char *file)
{
	FILE *to = fopen(tls_path(file), "a"), *from = fopen(tls_path("one.key"), "r");

	CU_ASSERT_TRUE_FATAL(to && from);
	for (int c = getc(from); c != EOF; c = getc(from))
		putc(c, to);
	fclose(from);
	fclose(to);
}

static void test_key(void)
{
	EVP_PKEY *key = NULL;
	struct weir_err err = {0};

	wiped_begin();
	CU_ASSERT_EQUAL(tls_pem_key(tls_path("one.key"), &key, &err), 0);
	CU_ASSERT_EQUAL(wiped_times(line), 1);
	EVP_PKEY_free(key);
}

static void test_refused(void)
{
	EVP_PKEY *key = NULL;
	struct weir_err err = {0};
	FILE *f = tls_file("bad", "key");

	fprintf(f, "-----BEGIN PRIVATE KEY-----\n%s", line);
	fclose(f);
	wiped_begin();
	CU_ASSERT_EQUAL(tls_pem_key(tls_path("bad.key"), &key, &err), WEIR_EINVAL);
	CU_ASSERT_EQUAL(wiped_times(line), 1);
}

/* The file of the certificates may also hold the key. */
static void test_both(void)
{
	STACK_OF(X509) *certs = NULL;
	struct weir_err err = {0};

	append_key("one.pem");
	wiped_begin();
	CU_ASSERT_EQUAL(tls_pem_certs(tls_path("one.pem"), &certs, &err), 0);
	CU_ASSERT_EQUAL(wiped_times(line), 1);
	sk_X509_pop_free(certs, X509_free);
}

/* A file that is too long is not parsed. */
static void test_long(void)
{
	EVP_PKEY *key = NULL;
	struct weir_err err = {0};
	FILE *f = tls_file("long", "key");

	fprintf(f, "%s%300000s", line, "");
	fclose(f);
	wiped_begin();
	CU_ASSERT_EQUAL(tls_pem_key(tls_path("long.key"), &key, &err), WEIR_EINVAL);
	CU_ASSERT_EQUAL(wiped_times(line), 1);
}

CUNIT_MAIN("tls wiped", {"make files", make}, {"a key", test_key}, {"a refused key", test_refused},
    {"certificates and a key", test_both}, {"a long file", test_long},
    {"remove files", tls_folder_remove})
