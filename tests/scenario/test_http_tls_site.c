/* SPDX-License-Identifier: MIT */
/* HTTPS from YAML: several certificates, files, classes by TLS fields, and what is refused, with
 * its location. */
#include "config/loading.h"
#include "fixture/http/tls.h"
#include "fixture/http/site.h"

#define WEB                                                                                        \
	"weir: 1\n"                                                                                \
	"stages:\n"                                                                                \
	"  web:\n"                                                                                 \
	"    use: http.server\n"                                                                   \
	"    to: { request: app, handshake: shake }\n"                                             \
	"    with:\n"                                                                              \
	"      listen: \"127.0.0.1:0\"\n"                                                          \
	"      threads: 1\n"
#define APP                                                                                        \
	"  app: { use: respond, with: { body: \"ok\" }, threads: inline }\n"                       \
	"  shake: { use: tls.handshake }\n"

static struct server start(const char *yaml)
{
	struct server s = {.spec = load_text(yaml)};

	CU_ASSERT_PTR_NOT_NULL_FATAL(s.spec);
	server_start(&s);
	return s;
}

static void expect_shown(const struct server *s, const char *sni, const char *name)
{
	struct tls_wish wish = {.sni = sni};
	struct tls_client k = tls_client_open(s->port, &wish);

	CU_ASSERT_STRING_EQUAL(tls_shown(&k), name);
	CU_ASSERT(tls_ask(&k, GET("/"), "ok"));
	tls_client_close(&k);
}

static void test_names(void)
{
	struct server s = start(WEB "      tls:\n"
				    "        cert: a.pem\n"
				    "        key: a.key\n"
				    "        certs:\n"
				    "          - { cert: b.pem, key: b.key }\n"
				    "          - { cert: c.pem, key: c.key }\n" APP);

	expect_shown(&s, NULL, "a");
	expect_shown(&s, "a.example", "a");
	expect_shown(&s, "B.example", "b");
	expect_shown(&s, "www.b.example", "b");
	expect_shown(&s, "c.example", "c");
	expect_shown(&s, "unknown.example", "a");
	server_stop(&s);
}

/* A class for clients that used a name; it counts its requests. */
static void test_fields(void)
{
	struct server s =
	    start("classes:\n"
		  "  named: { match: { scheme: https, tls: TLSv1.3, sni: b.example } }\n"
		  "  rest: {}\n" WEB "      tls: { cert: a.pem, key: a.key }\n" APP);
	struct weir_graph_view *view;
	uint64_t named = 0, rest = 0;

	expect_shown(&s, "b.example", "a");
	expect_shown(&s, "c.example", "a");
	expect_shown(&s, NULL, "a");
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(s.graph, &view), 0);
	for (int i = 0; i < view->n_stages; i++)
		if (strcmp(view->stages[i].name, "app") == 0) {
			named = view->stages[i].class_view[0].offered;
			rest = view->stages[i].class_view[1].offered;
		}
	weir_graph_view_free(view);
	CU_ASSERT_EQUAL(named, 1);
	CU_ASSERT_EQUAL(rest, 2);
	server_stop(&s);
}

/* Expect a refusal at line:column with `text`. */
static void expect_refused(const char *yaml, int line, int col, const char *text)
{
	struct weir_spec *spec = load_text(yaml);
	struct weir_graph *g = NULL;
	struct weir_errs errs = {0};

	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	CU_ASSERT_NOT_EQUAL(weir_graph_build(spec, &g, &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 1);
	if (errs.err[0].line != line || errs.err[0].col != col || !strstr(errs.err[0].text, text))
		fprintf(stderr, "%d:%d: %s\n", errs.err[0].line, errs.err[0].col, errs.err[0].text);
	CU_ASSERT_EQUAL(errs.err[0].line, line);
	CU_ASSERT_EQUAL(errs.err[0].col, col);
	CU_ASSERT_PTR_NOT_NULL(strstr(errs.err[0].text, text));
	weir_spec_free(spec);
}

static void test_refused(void)
{
	expect_refused(WEB "      tls: { cert: none.pem, key: a.key }\n" APP, 9, 20,
	    "stage 'web' (http.server): cannot read none.pem");
	expect_refused(WEB "      tls: { cert: a.pem, key: b.key }\n" APP, 9, 32,
	    "the key b.key does not match the certificate a.pem");
	expect_refused(WEB "      tls:\n        certs:\n          - { cert: a.pem, key: a.key }\n"
			   "          - { cert: b.pem, key: none.key }\n" APP,
	    12, 33, "cannot read none.key");
	expect_refused(WEB "      tls: { cert: a.pem }\n" APP, 9, 12, "a.pem has no key");
	expect_refused(WEB "      tls: { min_version: 1.3 }\n" APP, 9, 12, "names no certificate");
	expect_refused(WEB "      tls: { cert: a.pem, key: a.key, ciphers: NOPE }\n" APP, 9, 48,
	    "no cipher matches 'NOPE'");
	expect_refused(WEB "      tls: { cert: a.pem, key: a.key, ciphers: \"NULL\" }\n" APP, 9, 48,
	    "none of the ciphers 'NULL' can be used");
	expect_refused(WEB APP, 3, 3, "'handshake' is linked, but 'tls' is missing");
	expect_refused("weir: 1\nstages:\n  web:\n    use: http.server\n    to: app\n    with:\n"
		       "      tls: { cert: a.pem, key: a.key }\n"
		       "  app: { use: respond, with: { body: \"ok\" }, threads: inline }\n",
	    7, 12, "handshakes need a stage of their own");
}

/* The kind of certificate that a client gets if it accepts signatures of `algorithms`. */
static int shown(const struct server *s, int version, const char *algorithms)
{
	struct tls_wish wish = {.version = version, .sni = "a.example"};
	struct tls_client k = tls_client_over(client_open(s->port), &wish);

	char list[64]; /* the macro does not accept const */
	snprintf(list, sizeof(list), "%s", algorithms);
	CU_ASSERT_EQUAL(SSL_set1_sigalgs_list(k.ssl, list), 1);
	CU_ASSERT(tls_shake_hands(&k));
	int kind = EVP_PKEY_get_base_id(X509_get0_pubkey(SSL_get0_peer_certificate(k.ssl)));
	CU_ASSERT(tls_ask(&k, GET("/"), "ok"));
	tls_client_close(&k);
	return kind;
}

/* One name, two keys: a client that supports ECDSA gets that certificate, wherever it is in the
 * list. */
static void test_two_kinds(void)
{
	static const char rsa[] = "RSA+SHA256:RSA-PSS+SHA256", ec[] = "ECDSA+SHA256";
	static const char all[] = "RSA-PSS+SHA256:RSA+SHA256:ECDSA+SHA256";
	static const char *const yaml[] = {WEB
	    "      tls:\n        cert: a.pem\n        key: a.key\n"
	    "        certs: [ { cert: rsa.pem, key: rsa.key } ]\n" APP,
	    WEB
	    "      tls: { certs: [ { cert: b.pem, key: b.key }, { cert: rsa.pem, key: rsa.key }, "
	    "{ cert: a.pem, key: a.key } ] }\n" APP};

	tls_make("rsa", "DNS:a.example", true, 30);
	for (int i = 0; i < 2; i++) {
		struct server s = start(yaml[i]);
		for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
			CU_ASSERT_EQUAL(shown(&s, version, ec), EVP_PKEY_EC);
			CU_ASSERT_EQUAL(shown(&s, version, rsa), EVP_PKEY_RSA);
			CU_ASSERT_EQUAL(shown(&s, version, all), EVP_PKEY_EC);
		}
		server_stop(&s);
	}
}

/* The issuer of the certificate is not in its file and is not trusted. The message gives the
 * location. */
static void test_missing_issuer(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = tls_self_signed(key, "lonely", "DNS:lonely.example", 30);
	X509_NAME *issuer = X509_NAME_new();
	char said[2000] = "";
	int ends[2];

	X509_NAME_add_entry_by_txt(
	    issuer, "CN", MBSTRING_ASC, (const unsigned char *)"The middle", -1, -1, 0);
	X509_set_issuer_name(x, issuer);
	CU_ASSERT_FATAL(X509_sign(x, key, EVP_sha256()) > 0);
	FILE *f = tls_file("lonely", "pem");
	PEM_write_X509(f, x);
	fclose(f);
	f = tls_file("lonely", "key");
	PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	fclose(f);
	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	weir_log_set_level(WEIR_LOG_WARN);
	weir_log_set_fd(ends[1]);
	struct server s = start(WEB "      tls: { cert: lonely.pem, key: lonely.key }\n" APP);
	server_stop(&s);
	weir_log_set_fd(2);
	weir_log_set_level(WEIR_LOG_ERROR);
	close(ends[1]);
	CU_ASSERT(read(ends[0], said, sizeof(said) - 1) > 0);
	close(ends[0]);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(said, "lonely.pem does not contain the certificate of 'The middle'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(said, "9:20"));
	X509_NAME_free(issuer);
	X509_free(x);
	EVP_PKEY_free(key);
}

/* Files are sent in pieces of many records, to a client that reads them late. */
static void test_files(void)
{
	enum { N = 9000001 };
	struct server s;
	struct answer a = {0};
	char *p = site_pattern(N, 1);

	site_make();
	site_put("root/big", p, N, 0);
	site_put("root/small", p, 1000, 0);
	s = tls_server_new("file.read", "a");
	fixture_set(s.app, "with.root", site_path("root"));
	server_start(&s);
	struct tls_client k = tls_client_open(s.port, &(struct tls_wish){0});
	for (int i = 0; i < 2; i++) {
		CU_ASSERT(tls_say(&k, GET("/big") GET("/small") GET("/big")));
		AWAIT_METRIC(&s, "http_sent_bytes_total", >, 100000);
		CU_ASSERT(tls_answer(&k, &a) && a.n == N && memcmp(a.body, p, N) == 0);
		CU_ASSERT(tls_answer(&k, &a) && a.n == 1000 && memcmp(a.body, p, 1000) == 0);
		CU_ASSERT(tls_answer(&k, &a) && a.n == N && memcmp(a.body, p, N) == 0);
	}
	tls_client_close(&k);
	server_stop(&s);
	site_remove();
	answer_free(&a);
	free(p);
}

static void begin(void)
{
	tls_folder_make();
	CU_ASSERT_EQUAL_FATAL(chdir(tls_folder), 0);
	weir_log_set_level(WEIR_LOG_ERROR);
	tls_make("a", "DNS:a.example", false, 30);
	tls_make("b", "DNS:b.example,DNS:*.b.example", true, 30);
	tls_make("c", "DNS:c.example", false, 30);
}

static void end(void)
{
	tls_cleanup();
	CU_ASSERT_EQUAL(chdir("/"), 0);
	tls_folder_remove();
}

CUNIT_MAIN("http_tls_site", {"make files", begin}, {"names", test_names}, {"fields", test_fields},
    {"refused", test_refused}, {"two kinds of keys", test_two_kinds},
    {"missing issuer", test_missing_issuer}, {"files", test_files}, {"remove files", end})
