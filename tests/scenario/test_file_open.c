/* SPDX-License-Identifier: MIT */
/*
 * Large files that file.cache keeps open: served without a look at the disk, seen to have changed however they changed, bounded in
 * number, and whole for slow clients after they have left the cache.
 */
#include "file_fixture.h"

#define BYTES 300000

static struct server start(const char *revalidate, const char *open_files)
{
	return SITE_START(true, "cache.with.max_object", "4KiB", "cache.with.revalidate",
	    revalidate, "cache.with.stale", "1h", "cache.with.open_files", open_files);
}

static bool get_is(int fd, const char *path, const char *p, size_t n)
{
	struct answer a = {0};
	bool same = ask(fd, "GET", path, NULL, &a) && a.status == 200 && a.n == n &&
		    memcmp(a.body, p, n) == 0;

	answer_free(&a);
	return same;
}

static void test_hits(void)
{
	char *p = site_pattern(BYTES, 1);

	site_make();
	site_put("root/f", p, BYTES, 0);
	struct server s = start("1h", "100");
	int fd = client_open(s.port);
	for (int i = 0; i < 5; i++)
		CU_ASSERT(get_is(fd, "/f", p, BYTES));
	CU_ASSERT_EQUAL(stage_metric(&s, "disk", "file_opened_total"), 1);
	CU_ASSERT_EQUAL(stage_metric(&s, "disk", "file_read_bytes_total"), 0);
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_hits_total"), 4);
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_open_files"), 1);
	close(fd);
	server_stop(&s);
	free(p);
	site_remove();
}

/* Write over part of the file, or cut it, without another taking its place. */
static void change_in_place(const char *name, const char *text, off_t size)
{
	int fd = open(site_path(name), O_WRONLY | O_CLOEXEC);

	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	CU_ASSERT_EQUAL(ftruncate(fd, size), 0);
	CU_ASSERT_EQUAL(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	close(fd);
}

/* What is kept is the file itself: a hit must not send new bytes with the tag and the length of the old. */
static void test_changed_in_place(void)
{
	char *p = site_pattern(BYTES, 1);
	struct answer a = {0}, b = {0};

	site_make();
	site_put("root/f", p, BYTES, 0);
	struct server s = start("1h", "100");
	int fd = client_open(s.port);
	CU_ASSERT(get_is(fd, "/f", p, BYTES) && get_is(fd, "/f", p, BYTES));
	CU_ASSERT(ask(fd, "HEAD", "/f", NULL, &a));
	change_in_place("root/f", "CHANGED", BYTES);
	memcpy(p, "CHANGED", 7);
	CU_ASSERT(ask(fd, "GET", "/f", NULL, &b));
	CU_ASSERT(b.n == BYTES && memcmp(b.body, p, BYTES) == 0);
	CU_ASSERT_STRING_NOT_EQUAL(strstr(a.head, "ETag"), strstr(b.head, "ETag"));
	change_in_place("root/f", "SHORTER", 100000);
	memcpy(p, "SHORTER", 7);
	CU_ASSERT(get_is(fd, "/f", p, 100000));
	change_in_place("root/f", "small", 5); /* for memory now */
	CU_ASSERT(get_is(fd, "/f", "small", 5));
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_open_files"), 0);
	close(fd);
	answer_free(&a);
	answer_free(&b);
	server_stop(&s);
	free(p);
	site_remove();
}

/* Another file in its place, and none: as with what is in memory, after `revalidate`. */
static void test_replaced(void)
{
	char *p = site_pattern(BYTES, 1), *q = site_pattern(BYTES, 2);
	struct answer a = {0};

	site_make();
	site_put("root/f", p, BYTES, 10);
	struct server s = start("1ms", "100");
	int fd = client_open(s.port);
	while (stage_metric(&s, "cache", "cache_revalidations_total") < 3)
		CU_ASSERT(get_is(fd, "/f", p, BYTES));
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_open_files"), 1);
	site_put("root/f", q, BYTES, 5);
	do {
		CU_ASSERT_FATAL(ask(fd, "GET", "/f", NULL, &a));
		CU_ASSERT(a.n == BYTES &&
			  (memcmp(a.body, p, BYTES) == 0 || memcmp(a.body, q, BYTES) == 0));
	} while (a.body[0] == p[0]);
	CU_ASSERT_EQUAL_FATAL(unlink(site_path("root/f")), 0);
	do {
		CU_ASSERT_FATAL(ask(fd, "GET", "/f", NULL, &a));
	} while (a.status == 200);
	CU_ASSERT_EQUAL(a.status, 404);
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_open_files"), 0);
	close(fd);
	answer_free(&a);
	server_stop(&s);
	free(p);
	free(q);
	site_remove();
}

static void test_bound(void)
{
	char *p = site_pattern(BYTES, 1), name[32];

	site_make();
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "root/%d", i);
		site_put(name, p, BYTES, i);
	}
	struct server s = start("1h", "10");
	int fd = client_open(s.port);
	for (int i = 0; i < 180; i++) {
		snprintf(name, sizeof(name), "/%d", i % 60);
		CU_ASSERT(get_is(fd, name, p, BYTES));
		CU_ASSERT(stage_metric(&s, "cache", "cache_open_files") <= 10);
	}
	CU_ASSERT(stage_metric(&s, "cache", "cache_open_files") >= 9);
	CU_ASSERT(stage_metric(&s, "cache", "cache_bytes") <= 64 << 20);
	FIXTURE_AWAIT(site_open_now() <= 10); /* evicted ones are closed behind a grace period */
	close(fd);
	server_stop(&s);
	CU_ASSERT_EQUAL(site_open_now(), 0);
	s = start("1h", "0");
	fd = client_open(s.port);
	for (int i = 0; i < 3; i++)
		CU_ASSERT(get_is(fd, "/0", p, BYTES));
	CU_ASSERT_EQUAL(stage_metric(&s, "disk", "file_opened_total"), 3);
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_open_files"), 0);
	close(fd);
	server_stop(&s);
	free(p);
	site_remove();
}

static void test_evicted_while_read(void)
{
	enum { LARGE = 8 << 20 };
	char *p = site_pattern(LARGE, 1), *got = malloc(LARGE), head[2048], name[32];
	int small = 65536;
	size_t n = 0;

	site_make();
	site_put("root/large", p, LARGE, 0);
	struct server s = start("1h", "4");
	int slow = client_open(s.port), quick = client_open(s.port);
	setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	CU_ASSERT(get_is(quick, "/large", p, LARGE));
	CU_ASSERT(client_say(slow, GET("/large")) && head_read(slow, head, sizeof(head)));
	CU_ASSERT_EQUAL_FATAL(unlink(site_path("root/large")), 0);
	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "root/%d", i);
		site_put(name, p, BYTES, i);
		CU_ASSERT(get_is(quick, name + 4, p, BYTES));
	}
	CU_ASSERT(stage_metric(&s, "cache", "cache_evictions_total") > 0);
	for (ssize_t part = 1; n < LARGE && part > 0; n += part > 0 ? (size_t)part : 0)
		part = recv(slow, got + n, LARGE - n, 0);
	CU_ASSERT(n == LARGE && memcmp(got, p, LARGE) == 0);
	close(slow);
	close(quick);
	server_stop(&s);
	CU_ASSERT_EQUAL(site_open_now(), 0);
	free(p);
	free(got);
	site_remove();
}

/* A file that nobody asks for any more is closed while others are: what was deleted gives its room on the disk back. */
static void test_closed_unasked(void)
{
	char *p = site_pattern(BYTES, 1), name[32];

	site_make();
	site_put("root/f", p, BYTES, 0);
	site_put("root/g", p, BYTES, 0);
	struct server s = SITE_START(true, "cache.with.max_object", "4KiB", "cache.with.revalidate",
	    "1ms", "cache.with.stale", "0s");
	int fd = client_open(s.port);
	for (int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "root/%d", i);
		site_text(name, "small");
		CU_ASSERT(get_is(fd, name + 4, "small", 5));
	}
	CU_ASSERT(get_is(fd, "/f", p, BYTES));
	CU_ASSERT_EQUAL(site_open_now(), 1);
	CU_ASSERT_EQUAL_FATAL(unlink(site_path("root/f")), 0);
	FIXTURE_AWAIT(get_is(fd, "/1", "small", 5) && site_open_now() == 0);
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_open_files"), 0);
	while (stage_metric(&s, "cache", "cache_revalidations_total") < 1000)
		CU_ASSERT(get_is(fd, "/g", p, BYTES)); /* what is asked for is shown all the same */
	close(fd);
	server_stop(&s);
	free(p);
	site_remove();
}

/* ---- all at once ---- */

enum { NAMES = 6, VERSIONS = 120, LONG = 40000 };

static struct {
	int port;
	atomic_bool over;
	atomic_int wrong, answers;
} storm;

/* Version v of a file is LONG letters and has a date of its own, v s before the first one's. */
static char letter_of(int v)
{
	return (char)('a' + v % 26);
}

/* The version that the date of an answer says; -1: none. */
static int version_of(const struct answer *a)
{
	const char *date = strstr(a->head, "Last-Modified: ");
	struct tm tm = {0};

	if (!date || !strptime(date + 15, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		return -1;
	int64_t v = 1500000000 - timegm(&tm);
	return v >= 0 && v < VERSIONS ? (int)v : -1;
}

/* Has version `v` of file `name` had this tag whenever it was told? */
static bool tag_fits(const struct answer *a, unsigned name, int v)
{
	static char tags[NAMES][VERSIONS][40];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const char *tag = strstr(a->head, "ETag: \"");
	char *known = tags[name][v];

	if (!tag)
		return false;
	size_t n = strcspn(tag, "\r");
	pthread_mutex_lock(&lock);
	if (!*known)
		snprintf(known, sizeof(tags[0][0]), "%.*s", (int)n, tag);
	bool same = strlen(known) == n && memcmp(known, tag, n) == 0;
	pthread_mutex_unlock(&lock);
	return same;
}

static bool answer_fits(const struct answer *a, unsigned name, size_t bytes)
{
	int v = version_of(a);
	size_t n = 0;

	while (n < a->n && a->body[n] == letter_of(v))
		n++;
	return v >= 0 && n == a->n && n == bytes && tag_fits(a, name, v);
}

static void *storm_client(void *arg)
{
	static const char *const kinds[] = {
	    NULL, "Range: bytes=100-4999\r\n", NULL, "If-Match: *\r\nRange: bytes=-300\r\n"};
	static const size_t bytes[] = {LONG, 4900, 0, 300};
	int fd = client_open(storm.port);
	struct answer a = {0};
	char name[8];

	for (unsigned i = (unsigned)(uintptr_t)arg; !atomic_load(&storm.over); i++) {
		unsigned kind = i / NAMES % 4;
		snprintf(name, sizeof(name), "/%u", i % NAMES);
		/* 503: the machine stalls */
		bool good = ask(fd, kind == 2 ? "HEAD" : "GET", name, kinds[kind], &a) &&
			    (a.status == 503 || answer_fits(&a, i % NAMES, bytes[kind]));
		atomic_fetch_add(&storm.wrong, !good);
		atomic_fetch_add(&storm.answers, 1);
	}
	answer_free(&a);
	close(fd);
	return NULL;
}

static void put_version(int name, int v)
{
	char text[LONG], path[16];

	memset(text, letter_of(v), LONG);
	snprintf(path, sizeof(path), "root/%d", name);
	site_put(path, text, LONG, v);
}

/* Files are replaced, revalidated, evicted, swept and sent at once: no answer has the bytes of one and the tag of another. */
static void test_storm(void)
{
	pthread_t th[3];

	site_make();
	for (int i = 0; i < NAMES; i++)
		put_version(i, 0);
	struct server s = SITE_START(true, "cache.with.max_object", "4KiB", "cache.with.revalidate",
	    "1ms", "cache.with.stale", "1ms", "cache.with.open_files", "3");
	storm.port = s.port;
	for (size_t i = 0; i < 3; i++)
		pthread_create(&th[i], NULL, storm_client, (void *)(uintptr_t)(i * 7));
	for (int v = 1; v < VERSIONS; v++) {
		int before = atomic_load(&storm.answers);
		put_version(v % NAMES, v);
		FIXTURE_AWAIT(atomic_load(&storm.answers) >= before + 5);
	}
	atomic_store(&storm.over, true);
	for (int i = 0; i < 3; i++)
		pthread_join(th[i], NULL);
	CU_ASSERT_EQUAL(storm.wrong, 0);
	server_stop(&s);
	CU_ASSERT_EQUAL(site_open_now(), 0);
	site_remove();
}

CUNIT_MAIN("files kept open", {"hits", test_hits}, {"changed in place", test_changed_in_place},
    {"replaced", test_replaced}, {"bound", test_bound},
    {"evicted while read", test_evicted_while_read}, {"closed unasked", test_closed_unasked},
    {"storm", test_storm})
