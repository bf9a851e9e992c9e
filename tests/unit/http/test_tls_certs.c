/* SPDX-License-Identifier: MIT */
/* Which certificate a name gets, and what is said of files that can not be used. */
#include "http/tls_certs.h"

#include <weir/log.h>

#include "fixture/tls_fixture.h"

static struct tls_conf conf;
static struct tls_pair_conf more[4];

static char *path_of(const char *file)
{
	return strdup(tls_path(file));
}

static void conf_reset(void)
{
	free(conf.own.cert);
	free(conf.own.key);
	for (int i = 0; i < conf.certs.n; i++) {
		free(more[i].cert);
		free(more[i].key);
	}
	conf = (struct tls_conf){.own = {strdup(""), strdup("")},
	    .certs = {0, (char *)more},
	    .ciphers = (char *)(uintptr_t) "ECDHE+AESGCM",
	    .ticket_ns = 3600000000000LL};
}

static void conf_own(const char *cert, const char *key)
{
	free(conf.own.cert);
	free(conf.own.key);
	conf.own = (struct tls_pair_conf){path_of(cert), path_of(key)};
}

static void conf_more(const char *cert, const char *key)
{
	more[conf.certs.n++] = (struct tls_pair_conf){path_of(cert), path_of(key)};
}

static int choose(const struct tls_certs *certs, const char *name)
{
	return tls_certs_choose(certs, name, strlen(name));
}

static void test_choice(void)
{
	struct tls_certs *certs;
	char at[TLS_PATH_BYTES], longest[300];
	struct weir_err err = {0};

	conf_reset();
	conf_own("a.pem", "a.key");
	conf_more("b.pem", "b.key");
	conf_more("c.pem", "c.key");
	conf_more("d.pem", "d.key");
	CU_ASSERT_EQUAL_FATAL(tls_certs_load(&conf, "web", &certs, at, &err), 0);
	CU_ASSERT_EQUAL(tls_certs_count(certs), 4);
	CU_ASSERT_EQUAL(choose(certs, "a.example"), 0);
	CU_ASSERT_EQUAL(choose(certs, "b.example"), 1);
	CU_ASSERT_EQUAL(choose(certs, "B.ExAmPlE"), 1);
	CU_ASSERT_EQUAL(choose(certs, "www.b.example"), 1);
	CU_ASSERT_EQUAL(choose(certs, "x.y.b.example"), 0); /* one label alone */
	CU_ASSERT_EQUAL(choose(certs, "one.b.example"), 2); /* a whole name before a wildcard */
	CU_ASSERT_EQUAL(choose(certs, "d"), 3);             /* the common name, there is no other */
	CU_ASSERT_EQUAL(choose(certs, "c"), 0);             /* it does not count beside others */
	CU_ASSERT_EQUAL(choose(certs, "both.example"), 0);  /* the first that has it */
	CU_ASSERT_EQUAL(choose(certs, "nobody.example"), 0);
	CU_ASSERT_EQUAL(choose(certs, ".b.example"), 0);
	CU_ASSERT_EQUAL(choose(certs, ""), 0);
	CU_ASSERT_EQUAL(choose(certs, "."), 0);
	memset(longest, 'a', sizeof(longest));
	CU_ASSERT_EQUAL(tls_certs_choose(certs, longest, sizeof(longest)), 0);
	CU_ASSERT_EQUAL(tls_certs_choose(certs, longest, TLS_NAME_MAX), 0);
	tls_certs_unref(certs);
}

/* It is refused at `where` with `text` in the sentence. */
static void expect(const char *where, const char *text)
{
	struct tls_certs *certs = NULL;
	char at[TLS_PATH_BYTES];
	struct weir_err err = {0};

	CU_ASSERT(tls_certs_load(&conf, "web", &certs, at, &err) < 0);
	CU_ASSERT_STRING_EQUAL(at, where);
	if (!strstr(err.text, text))
		fprintf(stderr, "'%s' is not in '%s'\n", text, err.text);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, text));
	CU_ASSERT_PTR_NULL(certs);
}

static void put(const char *name, const char *ext, const char *text)
{
	FILE *f = tls_file(name, ext);

	fputs(text, f);
	fclose(f);
}

static void test_refused_certs(void)
{
	conf_reset();
	conf_own("none.pem", "a.key");
	expect("tls.cert", "none.pem: No such file");
	put("empty", "pem", "");
	conf_own("empty.pem", "a.key");
	expect("tls.cert", "holds no certificate");
	put("torn", "pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n");
	conf_own("torn.pem", "a.key");
	expect("tls.cert", "can not be read as certificates");
	conf_own("", "a.key");
	expect("tls.cert", "is not a regular file");
	free(conf.own.cert);
	conf.own.cert = strdup("");
	expect("tls.cert", "there is a key without its certificate");
	conf_own("a.pem", "a.key");
	conf_more("b.pem", "b.key");
	conf_more("none.pem", "b.key");
	expect("tls.certs.2.cert", "No such file");
}

static void test_refused_keys(void)
{
	conf_reset();
	conf_own("a.pem", "b.key");
	expect("tls.key", "is not that of the certificate");
	conf_own("a.pem", "none.key");
	expect("tls.key", "none.key: No such file");
	conf_own("a.pem", "a.pem");
	expect("tls.key", "holds no private key");
	put("torn", "key", "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n");
	conf_own("a.pem", "torn.key");
	expect("tls.key", "can not be read as a private key");
	free(conf.own.key);
	conf.own.key = strdup("");
	expect("tls.key", "is without its key");
	conf_own("a.pem", "locked.key");
	expect("tls.key", "is encrypted");
}

static void test_modes(void)
{
	struct tls_certs *certs;
	char at[TLS_PATH_BYTES];
	struct weir_err err = {0};

	conf_reset();
	conf_own("a.pem", "a.key");
	CU_ASSERT_EQUAL(chmod(tls_path("a.key"), 0644), 0);
	expect("tls.key", "others than its owner may use the key");
	CU_ASSERT_EQUAL(chmod(tls_path("a.key"), 0620), 0);
	expect("tls.key", "(its mode is 0620)");
	CU_ASSERT_EQUAL(chmod(tls_path("a.key"), 0640), 0); /* Debian's ssl-cert */
	CU_ASSERT_EQUAL(tls_certs_load(&conf, "web", &certs, at, &err), 0);
	tls_certs_unref(certs);
	CU_ASSERT_EQUAL(chmod(tls_path("a.key"), 0600), 0);
}

static void test_ciphers(void)
{
	struct tls_certs *certs;
	char at[TLS_PATH_BYTES];
	struct weir_err err = {0};

	conf_reset();
	conf_own("a.pem", "a.key");
	conf.ciphers = (char *)(uintptr_t) "NO-SUCH-THING";
	expect("tls.ciphers", "there are no such ciphers: 'NO-SUCH-THING'");
	conf.ciphers = (char *)(uintptr_t) "ECDHE+CHACHA20";
	CU_ASSERT_EQUAL(tls_certs_load(&conf, "web", &certs, at, &err), 0);
	tls_certs_unref(certs);
}

static char logged[2000];

static void test_times(void)
{
	struct tls_certs *certs;
	char at[TLS_PATH_BYTES];
	struct weir_err err = {0};
	int ends[2];

	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	conf_reset();
	conf_own("a.pem", "a.key");
	conf_more("old.pem", "old.key");
	conf_more("soon.pem", "soon.key");
	weir_log_set_fd(ends[1]);
	CU_ASSERT_EQUAL_FATAL(tls_certs_load(&conf, "web", &certs, at, &err), 0);
	weir_log_set_fd(2);
	close(ends[1]);
	CU_ASSERT(read(ends[0], logged, sizeof(logged) - 1) > 0);
	close(ends[0]);
	CU_ASSERT_PTR_NOT_NULL(strstr(logged, "old.pem has expired on "));
	CU_ASSERT_PTR_NOT_NULL(strstr(logged, "soon.pem expires in "));
	CU_ASSERT_PTR_NULL(strstr(logged, "a.pem"));
	tls_certs_unref(certs);
}

static void lock_key(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	FILE *f = tls_file("locked", "key");

	CU_ASSERT_EQUAL(PEM_write_PrivateKey(f, key, EVP_aes_256_cbc(),
			    (const unsigned char *)"word", 4, NULL, NULL),
	    1);
	fclose(f);
	EVP_PKEY_free(key);
}

static void begin(void)
{
	tls_folder_make();
	tls_make("a", "DNS:a.example,DNS:both.example,IP:127.0.0.1", false, 30);
	tls_make("b", "DNS:*.B.example,DNS:b.example,DNS:both.example", true, 30);
	tls_make("c", "DNS:one.b.example", false, 30);
	tls_make("d", NULL, false, 30);
	tls_make("old", "DNS:old.example", false, -3);
	tls_make("soon", "DNS:soon.example", false, 3);
	lock_key();
}

static void end(void)
{
	conf_reset();
	free(conf.own.cert);
	free(conf.own.key);
	tls_folder_remove();
}

CUNIT_MAIN("tls_certs", {"make files", begin}, {"choice", test_choice},
    {"refused certificates", test_refused_certs}, {"refused keys", test_refused_keys},
    {"modes of files", test_modes}, {"ciphers", test_ciphers}, {"times", test_times},
    {"remove files", end})
