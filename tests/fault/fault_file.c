/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation fails, n = 1, 2, ... while file.cache brings in a large file, which it keeps open, and answers from it:
 * all, HEAD, one range, several, a condition; and a small file, a listing, and what is not there.
 *
 * Whatever fails, each answer is right and whole, says that it failed, or is the last; no descriptor is left, and the next client
 * is served as if nothing had been.
 */
#include "scenario/file_fixture.h"

#include "fault/fault_inject.h"

enum { BYTES = 300000, HEARD = 1 << 20 };

static const char *const script[] = {
    "GET /f HTTP/1.1\r\nHost: t\r\n\r\n",
    "HEAD /f HTTP/1.1\r\nHost: t\r\n\r\n",
    "GET /f HTTP/1.1\r\nHost: t\r\nRange: bytes=5-8\r\n\r\n",
    "GET /f HTTP/1.1\r\nHost: t\r\nRange: bytes=0-9,100-109\r\n\r\n",
    "GET /f HTTP/1.1\r\nHost: t\r\nIf-None-Match: *\r\n\r\n",
    "GET /small HTTP/1.1\r\nHost: t\r\n\r\n",
    "GET /d/ HTTP/1.1\r\nHost: t\r\n\r\n",
    "GET /nothing HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n",
};
#define REQUESTS ((int)(sizeof(script) / sizeof(script[0])))

static const int statuses[REQUESTS] = {200, 200, 206, 206, 304, 200, 200, 404};

static char heard[HEARD], *pattern;

/* The body of answer `i` is what it should be. */
static bool body_right(int i, const char *body, size_t n)
{
	switch (i) {
	case 0:
		return n == BYTES && memcmp(body, pattern, BYTES) == 0;
	case 2:
		return n == 4 && memcmp(body, pattern + 5, 4) == 0;
	case 3:
		return memmem(body, n, pattern, 10) && memmem(body, n, pattern + 100, 10) &&
		       memmem(body, n, "Content-Range: bytes 100-109/300000\r\n", 37);
	case 5:
		return n == 5 && memcmp(body, "small", 5) == 0;
	case 6:
		return memmem(body, n, "./inside", 8) != NULL;
	default:
		return true;
	}
}

/* Look through what was heard: returns how many answers are as without failures. */
static int check_heard(size_t n)
{
	char *at = heard, *end = heard + n;
	int good = 0;

	for (int i = 0; i < REQUESTS && at < end; i++) {
		char *body = memmem(at, (size_t)(end - at), "\r\n\r\n", 4);
		if (!body)
			break; /* torn, and the last */
		body += 4;
		int status = atoi(at + 9);
		char *length = memmem(at, (size_t)(body - at), "Content-Length: ", 16);
		size_t bytes =
		    i == 1 || status == 304 || !length ? 0 : strtoul(length + 16, NULL, 10);
		if (bytes > (size_t)(end - body))
			break;
		CU_ASSERT(status == statuses[i] || status >= 500);
		CU_ASSERT(status != statuses[i] || body_right(i, body, bytes));
		good += status == statuses[i];
		at = body + bytes;
	}
	return good;
}

static int serve_one(int port)
{
	int fd = client_open(port);
	size_t n = 0;
	ssize_t got;

	for (int i = 0; i < REQUESTS; i++)
		client_send(fd, script[i], strlen(script[i]));
	while (n < HEARD && (got = recv(fd, heard + n, HEARD - n, 0)) > 0)
		n += (size_t)got;
	close(fd);
	return check_heard(n);
}

/* Another date: what is kept of the file is so no more, and it is fetched again. */
static void touch(long n)
{
	struct timespec then[2] = {{1500000000 + n, 0}, {1500000000 + n, 0}};

	CU_ASSERT_EQUAL(utimensat(AT_FDCWD, site_path("root/f"), then, 0), 0);
}

static void test_open_file(void)
{
	bool fired = true;
	long n = 0;

	site_make();
	pattern = site_pattern(BYTES, 1);
	site_put("root/f", pattern, BYTES, 0);
	site_text("root/small", "small");
	site_dir("root/d");
	site_text("root/d/inside", "x");
	struct server s = SITE_START(true, "cache.with.max_object", "4KiB", "cache.with.revalidate",
	    "1ms", "cache.with.stale", "1h", "disk.with.listing", "html");
	CU_ASSERT_EQUAL_FATAL(serve_one(s.port), REQUESTS);
	weir_log_set_fd(-1);
	while (fired) {
		touch(n + 1);
		atomic_store(&fault_fired, 0);
		atomic_store(&fault_alloc_in, n++);
		int good = serve_one(s.port);
		atomic_store(&fault_alloc_in, -1);
		fired = atomic_load(&fault_fired) > 0;
		CU_ASSERT(fired || good == REQUESTS);
		CU_ASSERT_EQUAL(serve_one(s.port), REQUESTS);
		FIXTURE_AWAIT(
		    site_open_now() <= 1); /* what was replaced goes after a grace period */
	}
	printf("(%ld failures) ", n - 1);
	CU_ASSERT(n > 5);
	AWAIT_METRIC(&s, "http_connections", ==, 0);
	server_stop(&s);
	CU_ASSERT_EQUAL(site_open_now(), 0);
	free(pattern);
	site_remove();
}

CUNIT_MAIN("fault file", {"n-th allocation while a file is fetched", test_open_file})
