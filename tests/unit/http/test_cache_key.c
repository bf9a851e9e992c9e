/* SPDX-License-Identifier: MIT */
/* http.cache: keys of requests and URLs, and variants. */
#include "cunit_main.h"

#include <stdio.h>
#include <string.h>

#include "http/cache/key.h"
#include "unit/file/cache_request.h"

static const struct weir_strings none;

static bool url_is(const char *url, const char *key)
{
	struct hcache_key k;
	bool good = hcache_key_of_url(slice(url), NULL, &k);

	if (!key)
		return !good;
	return good && k.n == strlen(key) && memcmp(k.p, key, k.n) == 0;
}

static void test_urls(void)
{
	CU_ASSERT(url_is("http://a/", "http://a/"));
	CU_ASSERT(url_is("HTTP://A.:80", "http://a/"));
	CU_ASSERT(url_is("https://a:443/x/../%62//c?d=%62#e", "https://a/b/c?d=%62"));
	CU_ASSERT(url_is("http://a:8080/?", "http://a:8080/?"));
	CU_ASSERT(url_is("http:///x", NULL));
	CU_ASSERT(url_is("http://[::1]:80/", "http://[::1]/"));
	static const char *const no_host[] = {"http://./x", "http://:80/", "http://a../",
	    "http://a:80:80/", "http://[::1]:80:80/", "http://[:80/"};
	for (size_t i = 0; i < sizeof(no_host) / sizeof(no_host[0]); i++)
		CU_ASSERT(url_is(no_host[i], NULL));
	CU_ASSERT(url_is("ftp://a/", NULL));
	CU_ASSERT(url_is("/x", NULL));
	CU_ASSERT(url_is("http://a@b/", NULL));
	CU_ASSERT(url_is("http://a/../..", NULL));
	CU_ASSERT(url_is("http://a/%zz", NULL));
	CU_ASSERT(url_is("http://a/%4", NULL));
	CU_ASSERT(url_is("http://a/x y", NULL));
	CU_ASSERT(url_is("http://a/?x y", NULL));
	CU_ASSERT(url_is("http://a/?x\ny", NULL));
	CU_ASSERT(url_is("http://a\n/", NULL));
}

static void test_requests(void)
{
	struct test_request t;
	struct hcache_key k, url;
	char name[] = "X-Tenant", *names[] = {name};
	const struct weir_strings fields = {1, names};

	request_init(&t, "/b");
	t.req->ev.type = &weir_http_request_type;
	t.req->host = slice("a:80");
	t.req->query = slice("x=1");
	request_header(&t, "x-tenant", "7");
	CU_ASSERT(hcache_key_make(t.req, &none, &k));
	CU_ASSERT(hcache_key_of_url(slice("http://a/b?x=1"), NULL, &url));
	CU_ASSERT(k.n == url.n && memcmp(k.p, url.p, k.n) == 0);
	CU_ASSERT(hcache_key_make(t.req, &fields, &k));
	CU_ASSERT(k.n == url.n + 11 && memcmp(k.p + url.n, "\nx-tenant:7", 11) == 0);
	/* references of an answer to it */
	CU_ASSERT(hcache_key_of_url(slice("/c"), t.req, &k) && k.n == 10);
	CU_ASSERT(hcache_key_of_url(slice("http://A/c"), t.req, &k) && k.n == 10);
	CU_ASSERT(!hcache_key_of_url(slice("//b/c"), t.req, &k));
	CU_ASSERT(!hcache_key_of_url(slice("https://a/c"), t.req, &k));
	CU_ASSERT(!hcache_key_of_url(slice("c"), t.req, &k));
	request_fini(&t);
}

static bool names_are(const char *vary, const char *names, bool any)
{
	struct hcache_vary v = {0};

	hcache_vary_add(&v, slice(vary));
	return v.any == any && v.n == strlen(names) && memcmp(v.names, names, v.n) == 0;
}

static void test_vary(void)
{
	CU_ASSERT(names_are("", "", false));
	CU_ASSERT(names_are("B, a ,b,, A", "a\nb\n", false));
	CU_ASSERT(names_are("aa, a, ab", "a\naa\nab\n", false));
	CU_ASSERT(names_are("Host, X-Forwarded-Proto, a", "a\n", false));
	CU_ASSERT(names_are("a, *", "a\n", true));
	CU_ASSERT(names_are("Via", "", true));
	CU_ASSERT(names_are("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q",
	    "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np\n", true));
	struct hcache_vary v = {0};
	/* what is no name of a field, such as one with a NUL, makes the answer match no other request */
	hcache_vary_add(&v, (struct weir_slice){"b\0z, b\0a", 8});
	CU_ASSERT(v.any && v.n == 0);
	v = (struct hcache_vary){0};
	hcache_vary_add(&v, slice("b"));
	hcache_vary_join(&v, slice("a\nb\nc\n"));
	CU_ASSERT(v.n == 6 && memcmp(v.names, "a\nb\nc\n", 6) == 0);
}

/* Whether two requests with these values of a field have the same variant. NULL: without the field. */
static bool same(const char *name, const char *a, const char *b)
{
	const char *values[] = {a, b};
	struct hcache_key k[2];
	char names[64];

	snprintf(names, sizeof(names), "%s\n", name);
	for (int i = 0; i < 2; i++) {
		struct test_request t;
		request_init(&t, "/");
		if (values[i])
			request_header(&t, name, values[i]);
		k[i].n = 0;
		CU_ASSERT(hcache_key_vary(&k[i], t.req, slice(names), 7));
		request_fini(&t);
	}
	return k[0].n == k[1].n && memcmp(k[0].p, k[1].p, k[0].n) == 0;
}

static void test_variants(void)
{
	CU_ASSERT(same("accept-encoding", "gzip, br", "BR,gzip"));
	CU_ASSERT(same("accept", "text/html;q=0.5, a/b", "a/b , text/html; q=0.5"));
	CU_ASSERT(!same("accept-language", "de, en", "en, de"));
	CU_ASSERT(!same("accept", "d e", "de"));
	CU_ASSERT(!same("accept-encoding", "gzip", "gzip;q=0"));
	CU_ASSERT(!same("accept-encoding", NULL, ""));
	CU_ASSERT(!same("x-lang", "de", "DE"));
	CU_ASSERT(!same("x-lang", "a, b", "b, a"));
	CU_ASSERT(same("x-lang", "a", "a"));
}

static void test_too_long(void)
{
	static char value[HCACHE_KEY_MAX + 2];
	struct test_request t;
	struct hcache_key k = {.n = 5};

	memset(value, 'x', sizeof(value) - 1);
	request_init(&t, "/");
	t.req->ev.type = &weir_http_request_type;
	request_header(&t, "a", value);
	CU_ASSERT(!hcache_key_vary(&k, t.req, slice("a\n"), 7));
	CU_ASSERT_EQUAL(k.n, 5);
	t.req->path = slice(value);
	CU_ASSERT(!hcache_key_make(t.req, &none, &k));
	request_fini(&t);
}

CUNIT_MAIN("cache_key", {"urls", test_urls}, {"requests", test_requests}, {"vary", test_vary},
    {"variants", test_variants}, {"too long", test_too_long})
