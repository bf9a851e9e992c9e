/* SPDX-License-Identifier: MIT */
/* http.cache: Cache-Control, ages and lifetimes, and which answers are stored. */
#include "cunit_main.h"

#include <stdlib.h>
#include <string.h>

#include "http/cache/answer.h"
#include "unit/file/cache_request.h"

static struct hcache_control control(const char *a, const char *b)
{
	struct hcache_control c;

	hcache_control_init(&c);
	hcache_control_add(&c, slice(a));
	if (b)
		hcache_control_add(&c, slice(b));
	return c;
}

static void test_directives(void)
{
	struct hcache_control c = control(
	    " Max-Age=60 ,s-maxage=\"30\", PUBLIC,must-revalidate,proxy-revalidate,immutable",
	    "stale-while-revalidate=5, stale-if-error=6,must-understand,no-transform");

	CU_ASSERT_EQUAL(c.max_age_s, 60);
	CU_ASSERT_EQUAL(c.s_maxage_s, 30);
	CU_ASSERT_EQUAL(c.stale_while_revalidate_s, 5);
	CU_ASSERT_EQUAL(c.stale_if_error_s, 6);
	CU_ASSERT(c.is_public && c.must_revalidate && c.proxy_revalidate && c.immutable);
	CU_ASSERT(c.must_understand && c.no_transform);
	CU_ASSERT(!c.is_private && !c.no_store && !c.no_cache && !c.only_if_cached);
	CU_ASSERT_EQUAL(c.min_fresh_s, HCACHE_ABSENT);
}

/* What occurs twice counts as the strictest. */
static void test_twice(void)
{
	struct hcache_control c = control("max-age=60, max-age=5", "max-age=600, public, private");

	CU_ASSERT_EQUAL(c.max_age_s, 5);
	CU_ASSERT(c.is_public && c.is_private);
	c = control("min-fresh=1, min-fresh=9", "max-stale=3, max-stale");
	CU_ASSERT_EQUAL(c.min_fresh_s, 9);
	CU_ASSERT_EQUAL(c.max_stale_s, 3);
}

static void test_numbers(void)
{
	static const struct {
		const char *text;
		int64_t s;
	} rows[] = {
	    {"max-age=0", 0},
	    {"max-age", 0},
	    {"max-age=", 0},
	    {"max-age=-1", 0},
	    {"max-age=1.5", 0},
	    {"max-age=x", 0},
	    {"max-age=\"10\"", 10},
	    {"max-age = 10", 10},
	    {"max-age=00000000000000000000000000010", 10},
	    {"max-age=2147483647", 2147483647},
	    {"max-age=2147483649", HCACHE_SECONDS_MAX},
	    {"max-age=99999999999999999999999999999", HCACHE_SECONDS_MAX},
	    {"max-agex=10", HCACHE_ABSENT},
	    {"xmax-age=10", HCACHE_ABSENT},
	    {"\"max-age=10\"", HCACHE_ABSENT},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct hcache_control c = control(rows[i].text, NULL);
		CU_ASSERT_EQUAL(c.max_age_s, rows[i].s);
		if (c.max_age_s != rows[i].s)
			printf("%s: %lld\n", rows[i].text, (long long)c.max_age_s);
	}
	CU_ASSERT_EQUAL(control("max-stale", NULL).max_stale_s, HCACHE_SECONDS_MAX);
	CU_ASSERT_EQUAL(control("max-stale=x", NULL).max_stale_s, 0);
}

static void test_quotes_hide_directives(void)
{
	struct hcache_control c = control(
	    "x=\"no-store, max-age=1\", y=\"a\\\", no-store\", community=\"UCI\", max-age=7", NULL);

	CU_ASSERT(!c.no_store);
	CU_ASSERT_EQUAL(c.max_age_s, 7);
	c = control("x=\"unterminated, no-store, max-age=1", NULL);
	CU_ASSERT(!c.no_store);
	c = control(",, ,\t,no-store,,", NULL);
	CU_ASSERT(c.no_store);
}

static void test_lists_of_fields(void)
{
	struct hcache_control c = control("private=\"Set-Cookie, X-User\", no-cache=x-one", NULL);

	CU_ASSERT(!c.is_private && !c.no_cache);
	CU_ASSERT(hcache_control_lists(&c, slice("set-cookie")));
	CU_ASSERT(hcache_control_lists(&c, slice("X-USER")));
	CU_ASSERT(hcache_control_lists(&c, slice("X-One")));
	CU_ASSERT(!hcache_control_lists(&c, slice("X-Use")));
	c = control("private=\"\", no-cache=\" , \"", NULL);
	CU_ASSERT(c.is_private && c.no_cache);
	c = control("private=a, private=b, private=c, private=d, private=e", NULL);
	CU_ASSERT(c.is_private);
}

/* ---- ages ---- */

#define NOW  784111777 /* Sun, 06 Nov 1994 08:49:37 GMT */
#define DATE "Sun, 06 Nov 1994 08:49:37 GMT"

static const struct hcache_heuristic tenth = {0.1, 3600};

static struct hcache_times times(
    const char *date, const char *expires, const char *modified, const char *age)
{
	struct hcache_times t;

	hcache_times_init(&t);
	if (date)
		hcache_times_add(&t, slice("Date"), slice(date));
	if (expires)
		hcache_times_add(&t, slice("Expires"), slice(expires));
	if (modified)
		hcache_times_add(&t, slice("Last-Modified"), slice(modified));
	if (age)
		hcache_times_add(&t, slice("Age"), slice(age));
	return t;
}

static void test_age(void)
{
	struct hcache_times t = times(DATE, NULL, NULL, NULL);

	CU_ASSERT_EQUAL(hcache_age_s(&t, NOW, 0), 0);
	CU_ASSERT_EQUAL(hcache_age_s(&t, NOW + 10, 3), 10);
	CU_ASSERT_EQUAL(hcache_age_s(&t, NOW - 10, 3), 3); /* a clock that is ahead */
	t = times(DATE, NULL, NULL, "20");
	CU_ASSERT_EQUAL(hcache_age_s(&t, NOW + 10, 3), 23);
	t = times(NULL, NULL, NULL, "20");
	CU_ASSERT_EQUAL(hcache_age_s(&t, NOW, 0), 20);
	t = times("yesterday", NULL, NULL, "-5"); /* an age that is malformed is endless */
	CU_ASSERT_EQUAL(hcache_age_s(&t, NOW, 0), HCACHE_SECONDS_MAX);
}

static int64_t lifetime(const char *cc, const struct hcache_times *t, int status)
{
	struct hcache_control c = control(cc, NULL);

	return hcache_lifetime_s(&c, t, status, &tenth, NOW);
}

static void test_lifetime(void)
{
	struct hcache_times t =
	    times(DATE, "Sun, 06 Nov 1994 08:50:37 GMT", "Sun, 06 Nov 1994 08:48:37 GMT", NULL);

	CU_ASSERT_EQUAL(lifetime("", &t, 200), 60);
	CU_ASSERT_EQUAL(lifetime("max-age=5", &t, 200), 5);
	CU_ASSERT_EQUAL(lifetime("max-age=5, s-maxage=0", &t, 200), 0);
	t = times(DATE, "0", "Sun, 06 Nov 1994 08:48:37 GMT", NULL);
	CU_ASSERT_EQUAL(lifetime("", &t, 200), 0);
	t = times(DATE, "Sun, 06 Nov 1994 08:48:37 GMT", NULL, NULL); /* in the past */
	CU_ASSERT_EQUAL(lifetime("", &t, 200), 0);
	t = times(NULL, "Sun, 06 Nov 1994 08:50:37 GMT", NULL, NULL); /* counted from now */
	CU_ASSERT_EQUAL(lifetime("", &t, 200), 60);
	t = times(DATE, "Sun, 06 Nov 1994 08:50:37 GMT", NULL, NULL);
	hcache_times_add(&t, slice("expires"), slice("Sun, 06 Nov 1994 08:59:37 GMT"));
	CU_ASSERT_EQUAL(lifetime("", &t, 200), 0); /* twice */
}

static void test_heuristic(void)
{
	struct hcache_times t = times(DATE, NULL, "Sun, 06 Nov 1994 08:48:37 GMT", NULL);
	struct hcache_control c = control("", NULL);
	struct hcache_heuristic off = {0, 3600};

	CU_ASSERT_EQUAL(lifetime("", &t, 200), 6);
	CU_ASSERT_EQUAL(lifetime("", &t, 301), 6);
	CU_ASSERT_EQUAL(lifetime("", &t, 302), 0);
	CU_ASSERT_EQUAL(lifetime("", &t, 404), 0);
	CU_ASSERT_EQUAL(hcache_lifetime_s(&c, &t, 200, &off, NOW), 0);
	t = times(DATE, NULL, "Thu, 06 Nov 1980 08:48:37 GMT", NULL);
	CU_ASSERT_EQUAL(lifetime("", &t, 200), 3600); /* the limit */
	t = times(DATE, NULL, "Mon, 07 Nov 1994 08:48:37 GMT", NULL);
	CU_ASSERT_EQUAL(lifetime("", &t, 200), 0); /* in the future */
}

/* ---- what is stored ---- */

enum { AUTHORIZED = 1, COOKIE = 2 };

static enum hcache_verdict judge(int status, const char *fields, int asker)
{
	struct hcache_asker by = {asker & AUTHORIZED, asker & COOKIE};
	struct hcache_answer a;
	struct test_request t;

	request_init(&t, "/");
	t.req->res.status = (uint16_t)status;
	t.req->res.fields = slice(fields);
	hcache_answer_read(&a, t.req, 0);
	hcache_answer_time(&a, &tenth, NOW, 0);
	enum hcache_verdict v = hcache_answer_judge(&a, &by);
	request_fini(&t);
	return v;
}

#define FRESH "Cache-Control: max-age=9\r\n"

static void test_judge(void)
{
	static const struct {
		int status;
		const char *fields;
		int asker;
		enum hcache_verdict verdict;
	} rows[] = {
	    {200, FRESH, 0, HCACHE_STORE},
	    {200, FRESH, COOKIE, HCACHE_STORE},
	    {200, "", 0, HCACHE_REFUSE},
	    {200, "Cache-Control: max-age=0\r\n", 0, HCACHE_REFUSE},
	    {200, "Cache-Control: max-age=0\r\nETag: \"a\"\r\n", 0, HCACHE_STORE},
	    {200, "Cache-Control: no-cache\r\nETag: \"a\"\r\n", 0, HCACHE_STORE},
	    {200, "ETag: \"a\"\r\n", COOKIE, HCACHE_REFUSE},
	    {200, "Cache-Control: max-age=9\r\nCache-Control: no-store\r\n", 0, HCACHE_REFUSE},
	    {200, "Cache-Control: max-age=9, private\r\n", 0, HCACHE_REFUSE},
	    {200, "Cache-Control: max-age=9, private=\"x\"\r\n", 0, HCACHE_STORE},
	    {200, FRESH "Age: 9\r\n", 0, HCACHE_REFUSE},
	    {200, FRESH "Age: 8\r\n", 0, HCACHE_STORE},
	    {200, FRESH "Set-Cookie: a=b\r\n", 0, HCACHE_REFUSE},
	    {200, "Cache-Control: public, max-age=9\r\nSet-Cookie: a=b\r\n", 0, HCACHE_STORE},
	    {200, "Cache-Control: s-maxage=9\r\nSet-Cookie: a=b\r\n", 0, HCACHE_STORE},
	    {200, FRESH, AUTHORIZED, HCACHE_REFUSE},
	    {200, "Cache-Control: max-age=9, public\r\n", AUTHORIZED, HCACHE_STORE},
	    {200, "Cache-Control: max-age=9, must-revalidate\r\n", AUTHORIZED, HCACHE_STORE},
	    {200, "Cache-Control: s-maxage=9\r\n", AUTHORIZED, HCACHE_STORE},
	    {200, FRESH "Vary: *\r\n", 0, HCACHE_REFUSE},
	    {200, FRESH "Vary: a, *\r\n", 0, HCACHE_REFUSE},
	    {200, FRESH "Vary: X-Forwarded-For\r\n", 0, HCACHE_REFUSE},
	    {200, FRESH "Vary: Accept, X-Forwarded-Proto\r\n", 0, HCACHE_STORE},
	    {200, FRESH "Content-Range: bytes 0-1/2\r\n", 0, HCACHE_REFUSE},
	    {206, FRESH, 0, HCACHE_REFUSE},
	    {304, FRESH, 0, HCACHE_REFUSE},
	    {301, FRESH, 0, HCACHE_STORE},
	    {404, FRESH, 0, HCACHE_STORE},
	    {404, "", 0, HCACHE_REFUSE},
	    {400, FRESH, 0, HCACHE_REFUSE},
	    {403, FRESH, 0, HCACHE_REFUSE},
	    {413, FRESH, 0, HCACHE_REFUSE},
	    {431, FRESH, 0, HCACHE_REFUSE},
	    {429, FRESH, 0, HCACHE_IGNORE},
	    {500, FRESH, 0, HCACHE_IGNORE},
	    {503, FRESH, 0, HCACHE_IGNORE},
	    {299, FRESH, 0, HCACHE_REFUSE},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum hcache_verdict v = judge(rows[i].status, rows[i].fields, rows[i].asker);
		CU_ASSERT_EQUAL(v, rows[i].verdict);
		if (v != rows[i].verdict)
			printf("%d %s: %d\n", rows[i].status, rows[i].fields, v);
	}
}

CUNIT_MAIN("cache_control", {"directives", test_directives}, {"what occurs twice", test_twice},
    {"numbers", test_numbers}, {"quotes hide directives", test_quotes_hide_directives},
    {"lists of fields", test_lists_of_fields}, {"age", test_age}, {"lifetime", test_lifetime},
    {"heuristic", test_heuristic}, {"what is stored", test_judge})
