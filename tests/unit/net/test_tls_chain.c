/* SPDX-License-Identifier: MIT */
/* Which issuer a chain lacks: a forgotten intermediate, or none for a self-signed certificate and
 * for one directly below a trusted root. */
#include "net/tls/tls_chain.h"

#include "fixture/http/tls.h"

static EVP_PKEY *key;
static X509 *root, *inter, *leaf, *other;

static X509 *issue(const char *name, X509 *issuer)
{
	X509 *x = tls_self_signed(key, name, NULL, -2); /* its date does not matter */

	X509_set_issuer_name(x, X509_get_subject_name(issuer));
	CU_ASSERT_FATAL(X509_sign(x, key, EVP_sha256()) > 0);
	return x;
}

/* Expects `missing` as the missing issuer of `own`, with `more` in its file and `trusted` (may be
 * NULL) as the trusted authority. */
static void expect(X509 *own, X509 *more, X509 *trusted, const char *missing)
{
	X509_STORE *store = X509_STORE_new();
	STACK_OF(X509) *chain = sk_X509_new_null();

	if (more)
		sk_X509_push(chain, more);
	if (trusted)
		X509_STORE_add_cert(store, trusted);
	char *name = tls_chain_missing(store, own, chain);
	if (missing) {
		CU_ASSERT_PTR_NOT_NULL_FATAL(name);
		CU_ASSERT_STRING_EQUAL(name, missing);
	} else {
		CU_ASSERT_PTR_NULL(name);
	}
	free(name);
	sk_X509_free(chain);
	X509_STORE_free(store);
	CU_ASSERT_EQUAL(ERR_peek_error(), 0);
}

static void test_missing(void)
{
	key = EVP_EC_gen("P-256");
	root = tls_self_signed(key, "root", NULL, 30);
	other = tls_self_signed(key, "other", NULL, 30);
	inter = issue("inter", root);
	leaf = issue("leaf", inter);
	expect(root, NULL, NULL, NULL); /* self-signed */
	expect(leaf, inter, root, NULL);
	expect(leaf, NULL, root, "inter");
	expect(leaf, other, root, "inter");
	expect(leaf, root, root, "inter");
	expect(leaf, inter, NULL, "root"); /* an authority that this host does not trust */
	expect(inter, NULL, root, NULL);
	expect(inter, root, NULL, NULL); /* complete: the root is part of the file */
	expect(leaf, NULL, NULL, "inter");
	X509_free(root);
	X509_free(inter);
	X509_free(leaf);
	X509_free(other);
	EVP_PKEY_free(key);
}

static X509_NAME *name_of(const char *field, const char *text)
{
	X509_NAME *n = X509_NAME_new();

	X509_NAME_add_entry_by_txt(n, field, MBSTRING_ASC, (const unsigned char *)text, -1, -1, 0);
	return n;
}

/* The issuer's name is shown, so only visible ASCII is left of it. Without a common name all of it
 * is shown. */
static void expect_name(const char *field, const char *text, const char *shown)
{
	X509_NAME *n = name_of(field, text);

	key = EVP_EC_gen("P-256");
	leaf = tls_self_signed(key, "leaf", NULL, 30);
	X509_set_issuer_name(leaf, n);
	CU_ASSERT_FATAL(X509_sign(leaf, key, EVP_sha256()) > 0);
	expect(leaf, NULL, NULL, shown);
	X509_free(leaf);
	X509_NAME_free(n);
	EVP_PKEY_free(key);
}

static void test_names(void)
{
	expect_name("CN", "a b~c", "a b~c");
	expect_name("CN",
	    "a\nb\x7f"
	    "c\x1b[31m",
	    "a?b?c?[31m");
	expect_name("O", "Org", "/O=Org");
}

static void test_store(void)
{
	X509_STORE *store = tls_chain_store();

	CU_ASSERT_PTR_NOT_NULL(store);
	X509_STORE_free(store);
}

CUNIT_MAIN(
    "tls chain", {"what is missing", test_missing}, {"names", test_names}, {"trusted", test_store})
