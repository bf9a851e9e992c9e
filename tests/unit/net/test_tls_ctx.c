/* SPDX-License-Identifier: MIT */
/* What the configuration of TLS turns on and off in OpenSSL, and which ciphers are refused. */
#include "net/tls/tls_ctx.h"

#include <string.h>

#include <openssl/ssl.h>

#include "cunit_main.h"

#define S 1000000000LL

static char ciphers[] = "ECDHE+AESGCM";

static struct tls_conf conf_of(int min_version, int64_t ticket_ns, bool kernel)
{
	return (struct tls_conf){.min_version = min_version,
	    .ticket_ns = ticket_ns,
	    .kernel = kernel,
	    .ciphers = ciphers};
}

static SSL_CTX *make(const struct tls_conf *conf)
{
	char at[TLS_PATH_BYTES] = "";
	struct weir_err err = {0};
	SSL_CTX *ctx = tls_ctx_new(conf, at, &err);

	CU_ASSERT_PTR_NOT_NULL_FATAL(ctx);
	CU_ASSERT_STRING_EQUAL(at, "");
	return ctx;
}

static bool has(const SSL_CTX *ctx, uint64_t option)
{
	return (SSL_CTX_get_options(ctx) & option) == option;
}

static void test_always(void)
{
	struct tls_conf conf = conf_of(TLS_MIN_1_2, S, false);
	SSL_CTX *ctx = make(&conf);

	CU_ASSERT_TRUE(has(ctx, SSL_OP_NO_RENEGOTIATION));
	CU_ASSERT_TRUE(has(ctx, SSL_OP_NO_COMPRESSION));
	CU_ASSERT_TRUE(has(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE));
	CU_ASSERT_TRUE(has(ctx, SSL_OP_PRIORITIZE_CHACHA));
	CU_ASSERT_TRUE(has(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF));
	CU_ASSERT_EQUAL(SSL_CTX_get_mode(ctx) & SSL_MODE_AUTO_RETRY, 0);
	CU_ASSERT_NOT_EQUAL(SSL_CTX_get_mode(ctx) & SSL_MODE_ENABLE_PARTIAL_WRITE, 0);
	CU_ASSERT_NOT_EQUAL(SSL_CTX_get_mode(ctx) & SSL_MODE_RELEASE_BUFFERS, 0);
	CU_ASSERT_NOT_EQUAL(SSL_CTX_get_mode(ctx) & SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, 0);
	CU_ASSERT_EQUAL(SSL_CTX_get_read_ahead(ctx), 1);
	CU_ASSERT_EQUAL(SSL_CTX_get_session_cache_mode(ctx), SSL_SESS_CACHE_OFF);
	CU_ASSERT_EQUAL(SSL_CTX_get_max_early_data(ctx), 0);
	SSL_CTX_free(ctx);
}

static void test_kernel(void)
{
	for (int on = 0; on < 2; on++) {
		struct tls_conf conf = conf_of(TLS_MIN_1_2, S, on == 1);
		SSL_CTX *ctx = make(&conf);
		CU_ASSERT_EQUAL(has(ctx, SSL_OP_ENABLE_KTLS), on == 1);
		SSL_CTX_free(ctx);
	}
}

static void test_version(void)
{
	struct tls_conf conf = conf_of(TLS_MIN_1_2, S, false);
	SSL_CTX *ctx = make(&conf);

	CU_ASSERT_EQUAL(SSL_CTX_get_min_proto_version(ctx), TLS1_2_VERSION);
	SSL_CTX_free(ctx);
	conf.min_version = TLS_MIN_1_3;
	ctx = make(&conf);
	CU_ASSERT_EQUAL(SSL_CTX_get_min_proto_version(ctx), TLS1_3_VERSION);
	SSL_CTX_free(ctx);
}

/* Without a lifetime there are no tickets, of either kind. A lifetime is rounded up to seconds. */
static void test_tickets(void)
{
	static const int64_t ns[] = {0, 1, S, S + 1, 3600 * S};
	static const long s[] = {0, 1, 1, 2, 3600};

	for (int i = 0; i < 5; i++) {
		struct tls_conf conf = conf_of(TLS_MIN_1_2, ns[i], false);
		SSL_CTX *ctx = make(&conf);
		CU_ASSERT_EQUAL(has(ctx, SSL_OP_NO_TICKET), i == 0);
		CU_ASSERT_EQUAL(SSL_CTX_get_num_tickets(ctx) == 0, i == 0);
		CU_ASSERT_EQUAL(SSL_CTX_get_timeout(ctx), s[i]);
		SSL_CTX_free(ctx);
	}
}

/* Whether a list is refused, and its position is reported. */
static bool is_refused(char *list, int min_version)
{
	struct tls_conf conf = conf_of(min_version, S, false);
	char at[TLS_PATH_BYTES] = "";
	struct weir_err err = {0};

	conf.ciphers = list;
	SSL_CTX *ctx = tls_ctx_new(&conf, at, &err);
	CU_ASSERT_EQUAL(ctx == NULL, err.code == WEIR_EINVAL);
	CU_ASSERT_EQUAL(ctx == NULL, strcmp(at, "tls.ciphers") == 0);
	SSL_CTX_free(ctx);
	return !ctx;
}

static void test_ciphers(void)
{
	char good[] = "ECDHE-RSA-AES128-GCM-SHA256", none[] = "NOSUCH";
	char plain[] = "eNULL:@SECLEVEL=0", anonymous[] = "aNULL:@SECLEVEL=0";
	char mixed[] = "ECDHE-RSA-AES128-GCM-SHA256:AECDH-AES128-SHA:@SECLEVEL=0";

	CU_ASSERT_FALSE(is_refused(good, TLS_MIN_1_2));
	CU_ASSERT_TRUE(is_refused(none, TLS_MIN_1_2));
	CU_ASSERT_TRUE(is_refused(plain, TLS_MIN_1_2));
	CU_ASSERT_TRUE(is_refused(anonymous, TLS_MIN_1_2));
	CU_ASSERT_TRUE(is_refused(mixed, TLS_MIN_1_2));
}

CUNIT_MAIN("tls ctx", {"always", test_always}, {"kernel", test_kernel}, {"version", test_version},
    {"tickets", test_tickets}, {"ciphers", test_ciphers})
