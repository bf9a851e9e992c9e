/* SPDX-License-Identifier: MIT */
/* Large files that file.cache keeps open: served without disk access, noticed as changed however
 * they changed, bounded in number, and served whole to slow clients after they have left the
 * cache. */
#include "fixture/http/site.h"

#define BYTES 300000

static struct server start(const char *revalidate, const char *open_files)
{
	return SITE_START(true, "cache.with.max_object", "4KiB", "cache.with.revalidate",
	    revalidate, "cache.with.stale", "1h", "cache.with.open_files", open_files);
}

static bool get_is(int fd, const char *path, const char *p, size_t n)
{
	struct answer a = {0};
	bool same = site_ask(fd, "GET", path, NULL, &a) && a.status == 200 && a.n == n &&
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

/* Overwrite part of the file, or truncate it, without replacing it. */
static void change_in_place(const char *name, const char *text, off_t size)
{
	int fd = open(site_path(name), O_WRONLY | O_CLOEXEC);

	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	CU_ASSERT_EQUAL(ftruncate(fd, size), 0);
	CU_ASSERT_EQUAL(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
	close(fd);
}

/* The cache keeps the file itself: a hit must not send new bytes with the old tag and length. */
static void test_changed_in_place(void)
{
	char *p = site_pattern(BYTES, 1);
	struct answer a = {0}, b = {0};

	site_make();
	site_put("root/f", p, BYTES, 0);
	struct server s = start("1h", "100");
	int fd = client_open(s.port);
	CU_ASSERT(get_is(fd, "/f", p, BYTES) && get_is(fd, "/f", p, BYTES));
	CU_ASSERT(site_ask(fd, "HEAD", "/f", NULL, &a));
	change_in_place("root/f", "CHANGED", BYTES);
	memcpy(p, "CHANGED", 7);
	CU_ASSERT(site_ask(fd, "GET", "/f", NULL, &b));
	CU_ASSERT(b.n == BYTES && memcmp(b.body, p, BYTES) == 0);
	CU_ASSERT_STRING_NOT_EQUAL(strstr(a.head, "ETag"), strstr(b.head, "ETag"));
	change_in_place("root/f", "SHORTER", 100000);
	memcpy(p, "SHORTER", 7);
	CU_ASSERT(get_is(fd, "/f", p, 100000));
	change_in_place("root/f", "small", 5); /* fits into memory now */
	CU_ASSERT(get_is(fd, "/f", "small", 5));
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_open_files"), 0);
	close(fd);
	answer_free(&a);
	answer_free(&b);
	server_stop(&s);
	free(p);
	site_remove();
}

/* The file is replaced, or removed: noticed after `revalidate`, as for objects in memory. */
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
		CU_ASSERT_FATAL(site_ask(fd, "GET", "/f", NULL, &a));
		CU_ASSERT(a.n == BYTES &&
			  (memcmp(a.body, p, BYTES) == 0 || memcmp(a.body, q, BYTES) == 0));
	} while (a.body[0] == p[0]);
	CU_ASSERT_EQUAL_FATAL(unlink(site_path("root/f")), 0);
	do {
		CU_ASSERT_FATAL(site_ask(fd, "GET", "/f", NULL, &a));
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
	FIXTURE_AWAIT(site_open_now() <= 10); /* evicted files are closed after a grace period */
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

/* A file that is no longer requested is closed while others are requested, so a deleted file's disk
 * space is freed. */
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
		site_put_ns = 0; /* weak tags are enough */
		CU_ASSERT(get_is(fd, name + 4, "small", 5));
	}
	CU_ASSERT(get_is(fd, "/f", p, BYTES));
	CU_ASSERT_EQUAL(site_open_now(), 1);
	CU_ASSERT_EQUAL_FATAL(unlink(site_path("root/f")), 0);
	FIXTURE_AWAIT(get_is(fd, "/1", "small", 5) && site_open_now() == 0);
	CU_ASSERT_EQUAL(stage_metric(&s, "cache", "cache_open_files"), 0);
	while (stage_metric(&s, "cache", "cache_revalidations_total") < 1000)
		CU_ASSERT(get_is(fd, "/g", p, BYTES)); /* the requested file stays available */
	close(fd);
	server_stop(&s);
	free(p);
	site_remove();
}

/* ---- everything at once ---- */

enum { NAMES = 6, VERSIONS = 120, LONG = 40000 };

static struct {
	int port;
	atomic_bool over;
	atomic_int wrong, answers;
	bool portable;
} storm;

/* Version v of a file consists of LONG letters and has its own date, v s before that of the
 * first. */
static char letter_of(int v)
{
	return (char)('a' + v % 26);
}

/* The version given by the date of an answer; -1: none. */
static int version_of(const struct answer *a)
{
	const char *date = strstr(a->head, "Last-Modified: ");
	struct tm tm = {0};

	if (!date || !strptime(date + 15, "%a, %d %b %Y %H:%M:%S GMT", &tm))
		return -1;
	int64_t v = 1500000000 - timegm(&tm);
	return v >= 0 && v < VERSIONS ? (int)v : -1;
}

/* Tags seen in answers, with their versions. A version has several tags, since its ctime changes
 * when it is put in place and when another replaces it. With `etag: portable` it has only one. */
#define TAGS_MAX 4096
static struct told {
	unsigned name;
	int v;
	char tag[48];
} told[TAGS_MAX];
static int n_told;

/* No other version of file `name` ever had this tag. With portable tags, this version had no
 * other. */
static bool tag_fits(const struct answer *a, unsigned name, int v)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const char *at = strstr(a->head, "ETag: ");
	char tag[48] = "";
	bool fits = true, known = false;

	if (!at || sscanf(at, "ETag: %47[^\r]", tag) != 1)
		return false;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < n_told; i++) {
		bool same = strcmp(told[i].tag, tag) == 0;
		if (told[i].name != name)
			continue;
		known |= same;
		fits &= !same || told[i].v == v;
		fits &= same || told[i].v != v || !storm.portable;
	}
	if (!known && n_told < TAGS_MAX) {
		told[n_told] = (struct told){.name = name, .v = v};
		memcpy(told[n_told++].tag, tag, sizeof(tag));
	}
	pthread_mutex_unlock(&lock);
	return fits;
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
		bool good = site_ask(fd, kind == 2 ? "HEAD" : "GET", name, kinds[kind], &a) &&
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
	site_put_ns = 0; /* no need to wait for strong tags */
}

/* Files are replaced, revalidated, evicted, swept and sent at once: no answer combines the bytes of
 * one version with the tag of another. */
static void check_storm(bool portable)
{
	pthread_t th[3];

	storm.portable = portable;
	storm.over = false;
	n_told = 0;
	site_make();
	for (int i = 0; i < NAMES; i++)
		put_version(i, 0);
	struct server s = SITE_START(true, "cache.with.max_object", "4KiB", "cache.with.revalidate",
	    "1ms", "cache.with.stale", "1ms", "cache.with.open_files", "3", "disk.with.etag",
	    portable ? "portable" : "local");
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

static void test_storm(void)
{
	check_storm(false);
	check_storm(true);
}

CUNIT_MAIN("files kept open", {"hits", test_hits}, {"changed in place", test_changed_in_place},
    {"replaced", test_replaced}, {"bound", test_bound},
    {"evicted while read", test_evicted_while_read}, {"closed unasked", test_closed_unasked},
    {"storm", test_storm})
