/* SPDX-License-Identifier: MIT */
/* The texts that `origins` of http.client may have. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "cunit_main.h"
#include "http/client/client_calls.h"

static const struct {
	const char *text, *host;
	int port; /* 0: refused */
	bool secure;
} texts[] = {
    {"127.0.0.1:3000", "127.0.0.1", 3000, false},
    {"http://127.0.0.1:3000", "127.0.0.1", 3000, false},
    {"http://127.0.0.1:3000/", "127.0.0.1", 3000, false},
    {"127.0.0.1", "127.0.0.1", 80, false},
    {"https://127.0.0.1", "127.0.0.1", 443, true},
    {"https://[::1]:8443", "::1", 8443, true},
    {"[::1]", "::1", 80, false},
    {.text = ""},
    {.text = "/"},
    {.text = "http://"},
    {.text = "http:///"},
    {.text = ":3000"},
    {.text = "http://127.0.0.1:3000/path"},
    {.text = "ftp://127.0.0.1"},
    {.text = "127.0.0.1:0"},
    {.text = "127.0.0.1:70000"},
    {.text = "127.0.0.1:x"},
    {.text = "[::1:80"},
    {.text = "::1"},
};

static int port_of(const struct address *a)
{
	return ntohs(a->addr.ss_family == AF_INET6
			 ? ((const struct sockaddr_in6 *)(const void *)&a->addr)->sin6_port
			 : ((const struct sockaddr_in *)(const void *)&a->addr)->sin_port);
}

static void test_texts(void)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char text[64];
		char *items[] = {text};
		struct weir_strings list = {1, items};
		struct origin_spec spec = {0};
		struct weir_err err = {0};
		snprintf(text, sizeof(text), "%s", texts[i].text);
		int rc = origins_parse(&list, &spec, &err);
		bool good = texts[i].port == 0
				? rc == WEIR_EINVAL && err.text[0]
				: rc == 0 && port_of(&spec.address) == texts[i].port &&
				      strcmp(spec.host, texts[i].host) == 0 &&
				      spec.secure == texts[i].secure;
		CU_ASSERT(good);
		if (!good)
			printf("'%s': rc %d, host '%s', %s\n", text, rc, spec.host, err.text);
	}
}

static void test_none(void)
{
	struct weir_strings list = {0, NULL};
	struct origin_spec spec;
	struct weir_err err = {0};

	CU_ASSERT_EQUAL(origins_parse(&list, &spec, &err), WEIR_EINVAL);
}

static void test_long(void)
{
	static char text[CLIENT_ORIGIN_TEXT + 10];
	char *items[] = {text};
	struct weir_strings list = {1, items};
	struct weir_err err = {0};
	struct origin_spec spec;

	memset(text, 'a', sizeof(text) - 1);
	CU_ASSERT_EQUAL(origins_parse(&list, &spec, &err), WEIR_EINVAL);
}

/* For OpenSSL, ".example" is each name that ends so. */
static void test_name(void)
{
	char none[] = "", name[] = ".example";
	struct tls_origin_conf conf = {
	    .ca = none, .cert = none, .key = none, .name = name, .verify = true};
	struct tls_origins *origins = NULL;
	struct weir_err err = {0};

	CU_ASSERT_EQUAL(tls_origins_new(&conf, &origins, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NULL(origins);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "begins with a dot"));
}

CUNIT_MAIN(
    "origins", {"texts", test_texts}, {"none", test_none}, {"long", test_long}, {"name", test_name})
