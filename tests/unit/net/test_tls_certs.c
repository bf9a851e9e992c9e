/* SPDX-License-Identifier: MIT */
/* Which certificate a name gets, and the errors for files that cannot be used. */
#include "net/tls/tls_certs.h"

#include <weir/log.h>

#include "fixture/http/tls.h"

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
	CU_ASSERT_EQUAL(choose(certs, "x.y.b.example"), 0); /* a wildcard is one label */
	CU_ASSERT_EQUAL(choose(certs, "one.b.example"), 2); /* a whole name before a wildcard */
	/* the common name, since there is no other */
	CU_ASSERT_EQUAL(choose(certs, "d"), 3);
	/* the common name does not count beside other names */
	CU_ASSERT_EQUAL(choose(certs, "c"), 0);
	CU_ASSERT_EQUAL(choose(certs, "both.example"), 0); /* the first certificate that has it */
	CU_ASSERT_EQUAL(choose(certs, "nobody.example"), 0);
	CU_ASSERT_EQUAL(choose(certs, ".b.example"), 0);
	CU_ASSERT_EQUAL(choose(certs, ""), 0);
	CU_ASSERT_EQUAL(choose(certs, "."), 0);
	memset(longest, 'a', sizeof(longest));
	CU_ASSERT_EQUAL(tls_certs_choose(certs, longest, sizeof(longest)), 0);
	CU_ASSERT_EQUAL(tls_certs_choose(certs, longest, TLS_NAME_MAX), 0);
	tls_certs_unref(certs);
}

/* Loading fails at `where` with `text` in the message. */
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
	expect("tls.cert", "cannot be read as certificates");
	conf_own("", "a.key");
	expect("tls.cert", "is not a regular file");
	free(conf.own.cert);
	conf.own.cert = strdup("");
	expect("tls.cert", "the key has no certificate");
	conf_own("a.pem", "a.key");
	conf_more("b.pem", "b.key");
	conf_more("none.pem", "b.key");
	expect("tls.certs.2.cert", "No such file");
}

static void test_refused_keys(void)
{
	conf_reset();
	conf_own("a.pem", "b.key");
	expect("tls.key", "does not match the certificate");
	conf_own("a.pem", "none.key");
	expect("tls.key", "none.key: No such file");
	conf_own("a.pem", "a.pem");
	expect("tls.key", "holds no private key");
	put("torn", "key", "-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----\n");
	conf_own("a.pem", "torn.key");
	expect("tls.key", "cannot be read as a private key");
	free(conf.own.key);
	conf.own.key = strdup("");
	expect("tls.key", "a.pem has no key");
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
	expect("tls.key", "a.key is accessible to other users");
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
	expect("tls.ciphers", "no cipher matches 'NO-SUCH-THING'");
	static const char *const useless[] = {"NULL", "eNULL", "aNULL", "NULL@SECLEVEL=0",
	    "aNULL@SECLEVEL=0", "ECDHE+AESGCM:NULL@SECLEVEL=0", "EXPORT:eNULL"};
	for (size_t i = 0; i < sizeof(useless) / sizeof(useless[0]); i++) {
		conf.ciphers = (char *)(uintptr_t)useless[i];
		expect("tls.ciphers",
		    "can be used with TLS 1.2, or one of them lacks encryption or authentication");
	}
	conf.ciphers = (char *)(uintptr_t) "NULL"; /* unused: TLS 1.3 has its own ciphers */
	conf.min_version = TLS_MIN_1_3;
	CU_ASSERT_EQUAL(tls_certs_load(&conf, "web", &certs, at, &err), 0);
	tls_certs_unref(certs);
	conf.min_version = TLS_MIN_1_2;
	/* HIGH includes ciphers without authentication, which are ignored. */
	conf.ciphers = (char *)(uintptr_t) "HIGH";
	CU_ASSERT_EQUAL(tls_certs_load(&conf, "web", &certs, at, &err), 0);
	tls_certs_unref(certs);
	conf.ciphers = (char *)(uintptr_t) "ECDHE+CHACHA20";
	CU_ASSERT_EQUAL(tls_certs_load(&conf, "web", &certs, at, &err), 0);
	tls_certs_unref(certs);
}

/* The kinds of certificates in `ctx`: 1 EC, 2 RSA. */
static int kinds_of(SSL_CTX *ctx)
{
	int kinds = 0;

	for (int rc = SSL_CTX_set_current_cert(ctx, SSL_CERT_SET_FIRST); rc == 1;
	     rc = SSL_CTX_set_current_cert(ctx, SSL_CERT_SET_NEXT))
		kinds |= EVP_PKEY_get_base_id(SSL_CTX_get0_privatekey(ctx)) == EVP_PKEY_RSA ? 2 : 1;
	return kinds;
}

/* A certificate of another kind is offered beside the first when it has all names of the first. */
static void test_kinds(void)
{
	static const struct {
		const char *cert, *key;
		int kinds;
	} t[] = {{"rsa.pem", "rsa.key", 3}, {"wide.pem", "wide.key", 3}, {"b.pem", "b.key", 1},
	    {"both.pem", "both.key", 1}};
	struct tls_certs *certs;
	char at[TLS_PATH_BYTES];
	struct weir_err err = {0};

	for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		conf_reset();
		conf_own("two.pem", "two.key");
		conf_more(t[i].cert, t[i].key);
		CU_ASSERT_EQUAL_FATAL(tls_certs_load(&conf, "web", &certs, at, &err), 0);
		CU_ASSERT_EQUAL(kinds_of(tls_certs_first(certs)), t[i].kinds);
		CU_ASSERT_EQUAL(choose(certs, "one.two.example"), 0);
		tls_certs_unref(certs);
	}
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
	CU_ASSERT_PTR_NOT_NULL(strstr(logged, "old.pem expired on "));
	CU_ASSERT_PTR_NOT_NULL(strstr(logged, "soon.pem expires in "));
	CU_ASSERT_PTR_NULL(strstr(logged, "a.pem"));
	tls_certs_unref(certs);
}

static void append_cert(FILE *to, const char *name)
{
	char line[128];
	FILE *f = fopen(tls_path(name), "r");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	while (fgets(line, sizeof(line), f))
		fputs(line, to);
	fclose(f);
}

static struct tls_certs *load_chain(const char *second)
{
	struct tls_certs *certs = NULL;
	char at[TLS_PATH_BYTES];
	struct weir_err err = {0};
	FILE *f = tls_file("chain", "pem");

	append_cert(f, "a.pem");
	if (second)
		append_cert(f, second);
	fclose(f);
	CU_ASSERT_EQUAL_FATAL(tls_certs_load(&conf, "web", &certs, at, &err), 0);
	return certs;
}

/* A file is renewed, too, when only its chain has changed. */
static void test_renewed_chain(void)
{
	static const char *const second[] = {NULL, "b.pem", "c.pem"};
	struct tls_certs *was, *is;
	char text[200] = "";

	conf_reset();
	conf_own("chain.pem", "a.key");
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++) {
			was = load_chain(second[i]);
			is = load_chain(second[k]);
			CU_ASSERT_EQUAL(tls_certs_renewed(is, was, text, sizeof(text)), i != k);
			tls_certs_unref(was);
			tls_certs_unref(is);
		}
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
	tls_make("two", "DNS:one.two.example,DNS:two.example", false, 30);
	tls_make("rsa", "DNS:TWO.example,DNS:one.two.example", true, 30);
	tls_make("wide", "DNS:three.example,DNS:two.example,DNS:one.two.example", true, 30);
	tls_make("both", "DNS:two.example", true, 30); /* only one of the names */
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
    {"modes of files", test_modes}, {"ciphers", test_ciphers}, {"RSA beside ECDSA", test_kinds},
    {"times", test_times}, {"a renewed chain", test_renewed_chain}, {"remove files", end})
