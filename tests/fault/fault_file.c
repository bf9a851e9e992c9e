/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation fails, n = 1, 2, ... while file.cache fetches a large file, which it keeps
 * open, and answers from it: all of it, HEAD, one range, several, a condition; and a small file, a
 * listing, and a missing file.
 *
 * Whatever fails, each response is either right and complete, or reports a failure, or ends the
 * connection. No descriptor leaks, and the next client is served normally.
 */
#include "fixture/http/site.h"

#include "fault/inject.h"

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

/* Whether the body of response `i` is right. */
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

/* Check the received bytes. Returns how many responses are the same as without failures. */
static int check_heard(size_t n)
{
	char *at = heard, *end = heard + n;
	int good = 0;

	for (int i = 0; i < REQUESTS && at < end; i++) {
		char *body = memmem(at, (size_t)(end - at), "\r\n\r\n", 4);
		if (!body)
			break; /* truncated, so it is the last */
		body += 4;
		int status = atoi(at + 9);
		char *length = memmem(at, (size_t)(body - at), "Content-Length: ", 16);
		size_t bytes =
		    i == 1 || status == 304 || !length ? 0 : strtoul(length + 16, NULL, 10);
		if (bytes > (size_t)(end - body))
			break;
		/* The whole file is right, too, where ranges were requested (RFC 9110, 14.2). It is
		 * sent when memory is short, and to a request that finds the kept object outdated,
		 * as after the tag of a new file has changed (100 ms after the write). */
		bool whole = statuses[i] == 206 && status == 200;
		CU_ASSERT(status == statuses[i] || whole || status >= 500);
		CU_ASSERT(status != statuses[i] || body_right(i, body, bytes));
		CU_ASSERT(!whole || body_right(0, body, bytes));
		good += status == statuses[i] || whole;
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

/* Another date makes the kept object outdated, so the file is fetched again. */
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
		/* Replaced objects are freed after a grace period. */
		FIXTURE_AWAIT(site_open_now() <= 1);
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
