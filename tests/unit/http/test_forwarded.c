/* SPDX-License-Identifier: MIT */
/* Who the client is, by what proxies say. */
#include "http/message/forwarded.h"

#include <stdio.h>
#include <string.h>

#include "cunit_main.h"

static struct networks trust;

static void trusting(const char *first, const char *second)
{
	struct weir_err err = {0};

	trust.n = 0;
	CU_ASSERT_EQUAL_FATAL(network_parse(first, &trust.item[trust.n++], &err), 0);
	CU_ASSERT_EQUAL_FATAL(network_parse(second, &trust.item[trust.n++], &err), 0);
}

/* "CLIENT SCHEME" of a request with up to three fields "Name: value", followed by " malformed" if so; "-"
 * for what is not known. Static memory. */
static const char *read(enum forwarded_from from, const char *a, const char *b, const char *c)
{
	static char out[200];
	const char *const lines[] = {a, b, c};
	struct weir_http_header headers[3];
	struct weir_http_request req = {.headers = headers};
	struct forwarded f;
	char client[INET6_ADDRSTRLEN] = "-";

	for (int i = 0; i < 3 && lines[i]; i++) {
		const char *colon = strchr(lines[i], ':');
		headers[req.n_headers++] =
		    (struct weir_http_header){.name = {lines[i], (size_t)(colon - lines[i])},
			.value = {colon + 2, strlen(colon + 2)}};
	}
	forwarded_read(&req, from, &trust, &f);
	if (f.known)
		net_address_text(&f.client, client);
	snprintf(out, sizeof(out), "%s %.*s%s", client, f.scheme.n ? (int)f.scheme.n : 1,
	    f.scheme.n ? f.scheme.p : "-", f.malformed ? " malformed" : "");
	return out;
}

#define X(...)           read(FORWARDED_X, __VA_ARGS__)
#define RFC(...)         read(FORWARDED_RFC, __VA_ARGS__)
#define IS(is, expected) CU_ASSERT_STRING_EQUAL(is, expected)

static void test_x(void)
{
	trusting("10.0.0.0/8", "fd00::/8");
	IS(X("X-Forwarded-For: 192.0.2.1", NULL, NULL), "192.0.2.1 -");
	IS(X("x-forwarded-FOR: 192.0.2.1, 10.0.0.1 , 10.0.0.2", NULL, NULL), "192.0.2.1 -");
	IS(X("X-Forwarded-For: 6.6.6.6, 192.0.2.1, 10.0.0.1", NULL, NULL), "192.0.2.1 -");
	IS(X("X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 192.0.2.1", NULL), "192.0.2.1 -");
	IS(X("X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 10.0.0.1", NULL), "192.0.2.1 -");
	IS(X("X-Forwarded-For: 10.0.0.2, 10.0.0.1", NULL, NULL),
	    "10.0.0.2 -"); /* all are proxies */
	IS(X("X-Forwarded-For: 2001:DB8::1, fd00::9", NULL, NULL), "2001:db8::1 -");
	IS(X("Host: t", NULL, NULL), "- -");
	IS(X("Forwarded: for=192.0.2.1", NULL, NULL), "- -");
}

static void test_x_forms(void)
{
	trusting("10.0.0.0/8", "fd00::/8");
	IS(X("X-Forwarded-For: 192.0.2.1:5678", NULL, NULL), "192.0.2.1 -");
	IS(X("X-Forwarded-For: [2001:db8::1]:5678", NULL, NULL), "2001:db8::1 -");
	IS(X("X-Forwarded-For: [2001:db8::1]", NULL, NULL), "2001:db8::1 -");
	IS(X("X-Forwarded-For: ::ffff:192.0.2.1", NULL, NULL), "192.0.2.1 -");
}

/* Something that is no address ends the chain. What precedes it is not read. */
static void test_x_malformed(void)
{
	static const char *const bad[] = {"", "unknown", "192.0.2.1:", "192.0.2.1:x",
	    "192.0.2.1:123456", "[192.0.2.1]", "[2001:db8::1", "[2001:db8::1]x",
	    "[2001:db8::1]:", "2001:db8::1]", "192.0.2.1 192.0.2.2", "[]", "[]:1", "\"192.0.2.1\"",
	    "192.0.2"};
	char line[100];

	trusting("10.0.0.0/8", "fd00::/8");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line), "X-Forwarded-For: 6.6.6.6, %s", bad[i]);
		IS(X(line, NULL, NULL), "- - malformed");
		snprintf(line, sizeof(line), "X-Forwarded-For: 6.6.6.6, %s, 10.0.0.1", bad[i]);
		IS(X(line, NULL, NULL), "10.0.0.1 - malformed");
	}
	IS(X("X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: unknown", NULL), "- - malformed");
	IS(X("X-Forwarded-For: unknown, 192.0.2.1", NULL, NULL), "192.0.2.1 -");
}

static void test_x_scheme(void)
{
	trusting("10.0.0.0/8", "fd00::/8");
	IS(X("X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", NULL), "192.0.2.1 https");
	IS(X("X-Forwarded-Proto: HTTP", NULL, NULL), "- http");
	IS(X("X-Forwarded-Proto: https, http", NULL, NULL), "- -");
	IS(X("X-Forwarded-Proto: ftp", NULL, NULL), "- -");
	IS(X("X-Forwarded-Proto: https", "X-Forwarded-Proto: http", NULL), "- -");
}

/* A chain of more trusted proxies than are followed ends at one of them. */
static void test_long(void)
{
	char line[1000] = "X-Forwarded-For: 192.0.2.1", want[40];

	trusting("10.0.0.0/8", "fd00::/8");
	for (int i = FORWARDED_HOPS_MAX - 1; i >= 1; i--)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), ", 10.0.0.%d", i);
	IS(X(line, NULL, NULL), "192.0.2.1 -");
	snprintf(line + strlen(line), sizeof(line) - strlen(line), ", 10.0.0.0");
	snprintf(want, sizeof(want), "10.0.0.%d -", FORWARDED_HOPS_MAX - 1);
	IS(X(line, NULL, NULL), want);

	strcpy(line, "Forwarded: for=192.0.2.1");
	for (int i = FORWARDED_HOPS_MAX - 1; i >= 1; i--)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), ", for=10.0.0.%d", i);
	IS(RFC(line, NULL, NULL), "192.0.2.1 -");
	snprintf(line + strlen(line), sizeof(line) - strlen(line), ", for=10.0.0.0");
	IS(RFC(line, NULL, NULL), want);
}

static void test_rfc(void)
{
	trusting("10.0.0.0/8", "fd00::/8");
	IS(RFC("Forwarded: for=192.0.2.1", NULL, NULL), "192.0.2.1 -");
	IS(RFC("forwarded: For=192.0.2.1;PROTO=https;by=203.0.113.43", NULL, NULL),
	    "192.0.2.1 https");
	IS(RFC("Forwarded: for=\"[2001:db8:cafe::17]:4711\"", NULL, NULL), "2001:db8:cafe::17 -");
	IS(RFC("Forwarded: for=6.6.6.6, for=192.0.2.1;proto=http , for=10.0.0.1;proto=https", NULL,
	       NULL),
	    "192.0.2.1 http");
	IS(RFC("Forwarded: for=192.0.2.1", "Forwarded: for=10.0.0.1", NULL), "192.0.2.1 -");
	IS(RFC("Forwarded: by=\"a,b;c\";for=\"192.0.2.1:80\";x=y", NULL, NULL), "192.0.2.1 -");
	IS(RFC("Forwarded: ;for=192.0.2.1;", NULL, NULL), "192.0.2.1 -");
	IS(RFC("X-Forwarded-For: 192.0.2.1", "X-Forwarded-Proto: https", NULL), "- -");
}

static void test_rfc_malformed(void)
{
	static const char *const bad[] = {"for=unknown", "for=_hidden", "proto=http", "",
	    "for=192.0.2.1;for=192.0.2.2", "for", "for=", "for=\"192.0.2.1", "for=\"192.0.2\\.1\"",
	    "for=192.0.2.1 192.0.2.2", "for=\"192.0.2.1\"x", "for=192.0.2.1;proto=a;proto=b",
	    "for =192.0.2.1", "for= 192.0.2.1", "for=\"\""};
	char line[100];

	trusting("10.0.0.0/8", "fd00::/8");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line), "Forwarded: for=6.6.6.6, %s", bad[i]);
		IS(RFC(line, NULL, NULL), "- - malformed");
		IS(RFC("Forwarded: for=6.6.6.6", line, NULL), "- - malformed");
		IS(RFC(line, "Forwarded: for=192.0.2.9", NULL), "192.0.2.9 -");
	}
}

/* A client sends the beginning of a quoted string, so that the proxy's own element would be inside. */
static void test_rfc_forged(void)
{
	trusting("10.0.0.0/8", "fd00::/8");
	IS(RFC("Forwarded: for=6.6.6.6, for=\", for=192.0.2.1", NULL, NULL), "- - malformed");
	IS(RFC("Forwarded: for=6.6.6.6;x, for=192.0.2.1", NULL, NULL), "- - malformed");
	IS(RFC("Forwarded: for=6.6.6.6;by=\", for=\"[2001:db8::1]\"", NULL, NULL), "- - malformed");
	IS(RFC("Forwarded: for=6.6.6.6;by=\", for=\"[2001:db8::1]\";by=\"x\"", NULL, NULL),
	    "- - malformed");
}

static void test_proxy(void)
{
	trusting("10.0.0.0/8", "fd00::/8");
	IS(read(FORWARDED_PROXY, "X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1", NULL),
	    "- -");
}

CUNIT_MAIN("forwarded", {"X-Forwarded-For", test_x}, {"its forms", test_x_forms},
    {"malformed", test_x_malformed}, {"its scheme", test_x_scheme}, {"long chains", test_long},
    {"Forwarded", test_rfc}, {"malformed Forwarded", test_rfc_malformed},
    {"forged", test_rfc_forged}, {"neither", test_proxy})
