/* SPDX-License-Identifier: MIT */
/*
 * The byte guard and llhttp after it: the rules of stages/http/message/guard.h with texts that they
 * refuse and similar ones that are good (request lines, targets and Host: test_guard_target.c);
 * limits at, below and above; and verdicts that do not depend on splits.
 */
#include "guard_judge.h"

static void test_bytes(void)
{
	static const struct verdict t[] = {
	    {"GET / HTTP/1.1\r\n" HOST "\r\n", 200}, {"GET / HTTP/1.1\r\n" HOST, 0},
	    {"GET / HTTP/1.1\r\n" HOST "\r", 0}, {"", 0},
	    {"GET / HTTP/1.1\n" HOST "\r\n", 400},            /* lone LF in line 1 */
	    {"GET / HTTP/1.1\r\nHost: a\n\r\n", 400},         /* in a field */
	    {"GET / HTTP/1.1\r\n" HOST "\n", 400},            /* as the empty line */
	    {"GET / HTTP/1.1\rHost: a\r\n\r\n", 400},         /* lone CR */
	    {"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", 400}, /* in a value */
	    {"GET / HTTP/1.1\r\r\n" HOST "\r\n", 400}, {"GET / HTTP/1.1\r\n" HOST "\rx", 400},
	    {"GET / HTTP/1.1\r\n" HOST "X: a\x01z\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\n" HOST "X: a\x0bz\r\n\r\n", 400}, /* VT */
	    {"GET / HTTP/1.1\r\n" HOST "X: a\x0cz\r\n\r\n", 400}, /* FF */
	    {"GET / HTTP/1.1\r\n" HOST "X: a\x7fz\r\n\r\n", 400}, /* DEL */
	    {"GET / HTTP/1.1\r\n" HOST "X: a\tz\r\n\r\n", 200},
	    {"GET / HTTP/1.1\r\n" HOST "X: \xc3\xa4\r\n\r\n", 200}, /* obs-text */
	    {"\x16\x03\x01\x02", 400},                              /* TLS */
	};

	JUDGE_ALL(t);
	CU_ASSERT_EQUAL(judge_n("GET / HTTP/1.1\r\nHost: a\0\r\n\r\n", 29, true), 400);
	CU_ASSERT_EQUAL(judge_n("\0", 1, true), 400);
	/* A byte that no request begins with is refused at once. */
	CU_ASSERT_EQUAL(judge_n(" ", 1, true), 400);
	CU_ASSERT_EQUAL(judge_n("\x80", 1, true), 400);
	CU_ASSERT_EQUAL(judge_n("\r\n\"", 3, true), 400);
}

static void test_every_control_byte(void)
{
	static const char text[] =
	    "GET /abcdefgh HTTP/1.1\r\nHost: a\r\nX: 0123456789abcdef\r\n\r\n";
	char copy[sizeof(text)];

	/* At any position: in words of eight bytes or after them, in line 1, a name or a value. */
	for (size_t at = 0; at < sizeof(text) - 1; at++)
		for (int b = 0; b < 256; b++) {
			bool control = (b < 0x20 && b != '\t') || b == 0x7f;
			if (!control || b == text[at])
				continue;
			memcpy(copy, text, sizeof(text));
			copy[at] = (char)b;
			int status = judge_n(copy, sizeof(text) - 1, false);
			CU_ASSERT(status == 400 || (b == '\r' && at == sizeof(text) - 2));
		}
}

static void test_fields(void)
{
	static const struct verdict t[] = {
	    {"GET / HTTP/1.1\r\n" HOST "X:\r\n\r\n", 200}, /* empty value */
	    {"GET / HTTP/1.1\r\n" HOST "X:a\r\n\r\n", 200},
	    {"GET / HTTP/1.1\r\n" HOST "X : a\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\n" HOST "X\t: a\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\n" HOST "X\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\n" HOST "X[]: a\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\n" HOST "X\xc3: a\r\n\r\n", 400},
	    {"GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n", 400},  /* obs-fold */
	    {"GET / HTTP/1.1\r\n" HOST "X: a\r\n\tb\r\n\r\n", 400}, /* obs-fold */
	    {"GET / HTTP/1.1\r\n " HOST "\r\n", 400},               /* before the first */
	    {"GET / HTTP/1.1\r\n \r\n" HOST "\r\n", 400},
	};

	JUDGE_ALL(t);
}

/* Each field that may occur only once occurs twice. */
static void test_once(void)
{
	static const char *const names[] = {"Range", "Origin", "Referer", "If-Range", "User-Agent",
	    "Content-Type", "Max-Forwards", "Authorization", "Content-Range", "If-Modified-Since",
	    "If-Unmodified-Since", "Proxy-Authorization"};
	char text[200];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		sprintf(text, "GET / HTTP/1.1\r\n" HOST "%s: a\r\n\r\n", names[i]);
		CU_ASSERT_EQUAL(judge(text), 200);
		sprintf(text, "GET / HTTP/1.1\r\n" HOST "%s: a\r\nX: b\r\n%s: a\r\n\r\n", names[i],
		    names[i]);
		CU_ASSERT_EQUAL(judge(text), 400);
		sprintf(text, "GET / HTTP/1.1\r\n" HOST "%s: a\r\n%.*sx: a\r\n\r\n", names[i],
		    (int)strlen(names[i]) - 1, names[i]);
		CU_ASSERT_EQUAL(judge(text), 200); /* another name of the same length */
	}
}

static void test_length(void)
{
	static const struct verdict t[] = {
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\n", 200},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 200},
	    {"POST / HTTP/1.1\r\n" HOST "content-length: 5 \r\n\r\n", 200},
	    {"POST / HTTP/1.1\r\n" HOST "content-length:\t5 \r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 999999999999999999\r\n\r\n", 200},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 1000000000000000000\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775807\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 9223372036854775808\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551616\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: +5\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5 5\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0x5\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5,5\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5, 5\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 0000000005\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5.0\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
	    {"POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\n", 200},
	};

	JUDGE_ALL(t);
}

static void test_coding(void)
{
	static const struct verdict t[] = {
	    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 200},
	    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: CHUNKED\r\n\r\n", 200},
	    {"POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: identity\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked, chunked\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked;q=1\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: xchunked\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: \"chunked\"\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: ,chunked\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding:\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST
	     "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		400},
	    {"POST / HTTP/1.1\r\n" HOST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		400},
	    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
		400},
	    {"POST / HTTP/1.1\r\n" HOST "Transfer-Encoding : chunked\r\n\r\n", 400},
	    {"POST / HTTP/1.1\r\n" HOST "Transfer_Encoding: chunked\r\n\r\n",
		200}, /* another field name */
	};

	JUDGE_ALL(t);
}

static void test_expect(void)
{
	static const struct verdict t[] = {
	    {"POST / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\n\r\n", 200},
	    {"POST / HTTP/1.1\r\n" HOST "Expect: 200-maybe\r\n\r\n", 417},
	    {"POST / HTTP/1.0\r\n" HOST "Expect: 200-maybe\r\n\r\n", 200},
	};

	JUDGE_ALL(t);
}

/* The guard's verdict on "GET /aaa... HTTP/1.1" with a target of n bytes. */
static int target_of(size_t n)
{
	char *text = malloc(n + 100);
	int status;

	strcpy(text, "GET ");
	memset(text + 4, 'a', n);
	text[4] = '/';
	strcpy(text + 4 + n, " HTTP/1.1\r\n" HOST "\r\n");
	status = judge_n(text, strlen(text), true);
	free(text);
	return status;
}

/* A head of exactly n bytes, including its empty line, with one long field. */
static char *head_of(size_t n)
{
	static const char begin[] = "GET / HTTP/1.1\r\n" HOST "X: ";
	char *text = malloc(n + 1);

	memset(text, 'x', n);
	memcpy(text, begin, sizeof(begin) - 1);
	memcpy(text + n - 4, "\r\n\r\n", 5);
	return text;
}

static int fields_of(int n)
{
	char text[4096];
	size_t at = (size_t)sprintf(text, "GET / HTTP/1.1\r\nHost: a\r\n");

	for (int i = 1; i < n; i++)
		at += (size_t)sprintf(text + at, "X: %d\r\n", i);
	at += (size_t)sprintf(text + at, "\r\n");
	return judge_n(text, at, true);
}

static void test_limits(void)
{
	CU_ASSERT_EQUAL(target_of(WEIR_HTTP_TARGET_MAX - 1), 200);
	CU_ASSERT_EQUAL(target_of(WEIR_HTTP_TARGET_MAX), 200);
	CU_ASSERT_EQUAL(target_of(WEIR_HTTP_TARGET_MAX + 1), 414);
	CU_ASSERT_EQUAL(target_of(WEIR_HTTP_TARGET_MAX + 1000), 414);
	CU_ASSERT_EQUAL(fields_of(WEIR_HTTP_HEADERS_MAX - 1), 200);
	CU_ASSERT_EQUAL(fields_of(WEIR_HTTP_HEADERS_MAX), 200);
	CU_ASSERT_EQUAL(fields_of(WEIR_HTTP_HEADERS_MAX + 1), 431);
	for (int more = -1; more <= 1; more++) {
		char *text = head_of((size_t)(WEIR_HTTP_HEAD_MAX + more));
		CU_ASSERT_EQUAL(judge(text), more > 0 ? 431 : 200);
		free(text);
	}
}

/* A head that never ends is refused before a read buffer of WEIR_HTTP_HEAD_MAX is full. */
static void test_endless(void)
{
	static char text[WEIR_HTTP_HEAD_MAX];

	memset(text, 'a', sizeof(text));
	CU_ASSERT_EQUAL(judge_n(text, sizeof(text), false), 400);
	text[3] = ' ';
	CU_ASSERT_EQUAL(judge_n(text, sizeof(text), false), 414);
	memcpy(text, "GET / HTTP/1.1\r\nX: ", 19);
	CU_ASSERT_EQUAL(judge_n(text, sizeof(text) - 2, false), 0);
	CU_ASSERT_EQUAL(judge_n(text, sizeof(text) - 1, false), 431);
	CU_ASSERT_EQUAL(judge_n(text, sizeof(text), false), 431);
}

static bool slice_equals(struct weir_slice s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

static void test_slices(void)
{
	static const char text[] =
	    "\r\nPOST http://A.b:8/p/q?r=1?2 HTTP/1.1\r\nHost: a.B:8\r\n"
	    "X-Y: \t two words \r\nConnection: close\r\nContent-Length: 12\r\n\r\nbody";
	struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX];
	struct http_head head = {.headers = headers};

	CU_ASSERT_EQUAL(parse_head(text, sizeof(text) - 1, &head), GUARD_GOOD);
	CU_ASSERT_EQUAL(head.n, sizeof(text) - 1 - 4);
	CU_ASSERT(slice_equals(head.method, "POST"));
	CU_ASSERT_EQUAL(head.method_id, WEIR_HTTP_POST);
	CU_ASSERT(slice_equals(head.target, "http://A.b:8/p/q?r=1?2"));
	CU_ASSERT(slice_equals(head.path, "/p/q"));
	CU_ASSERT(slice_equals(head.query, "r=1?2"));
	CU_ASSERT(slice_equals(head.host, "a.B:8"));
	CU_ASSERT_EQUAL(head.minor, 1);
	CU_ASSERT_EQUAL(head.n_headers, 4);
	CU_ASSERT(slice_equals(head.headers[1].name, "X-Y"));
	CU_ASSERT(slice_equals(head.headers[1].value, "two words"));
	CU_ASSERT_EQUAL(head.content_length, 12);
	CU_ASSERT_FALSE(head.keep_alive);
	CU_ASSERT_FALSE(head.chunked);
}

static bool keeps_alive(const char *text)
{
	struct weir_http_header headers[WEIR_HTTP_HEADERS_MAX];
	struct http_head head = {.headers = headers};

	CU_ASSERT_EQUAL(parse_head(text, strlen(text), &head), GUARD_GOOD);
	return head.keep_alive;
}

static void test_keep_alive(void)
{
	CU_ASSERT(keeps_alive("GET / HTTP/1.1\r\n" HOST "\r\n"));
	CU_ASSERT(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: x\r\n\r\n"));
	CU_ASSERT_FALSE(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: Close\r\n\r\n"));
	CU_ASSERT_FALSE(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: x, close\r\n\r\n"));
	CU_ASSERT_FALSE(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: close\t\r\n\r\n"));
	CU_ASSERT_FALSE(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: x\t,close \t,\r\n\r\n"));
	CU_ASSERT(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: clos, lose\r\n\r\n"));
	CU_ASSERT_FALSE(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: enCLOSEd\r\n\r\n"));
	CU_ASSERT_FALSE(keeps_alive("GET / HTTP/1.0\r\n\r\n"));
	CU_ASSERT(keeps_alive("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
	CU_ASSERT_FALSE(keeps_alive("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"));
	/* llhttp decides on these fields wherever they are in the head. */
	CU_ASSERT_FALSE(keeps_alive("GET / HTTP/1.1\r\ncONNECTION: close\r\n" HOST "\r\n"));
	/* A field without meaning (RFC 9112, 9.3), which llhttp would treat as Connection. */
	CU_ASSERT(
	    keeps_alive("GET / HTTP/1.1\r\n" HOST "pROXY-Connection: close \r\nA: b\r\n\r\n"));
	CU_ASSERT_FALSE(
	    keeps_alive("GET / HTTP/1.0\r\nA: b\r\nProxy-Connection: keep-alive\r\n\r\n"));
	CU_ASSERT(
	    keeps_alive("GET / HTTP/1.1\r\n" HOST "Upgrade: h2c\r\nConnection: upgrade\r\n\r\n"));
}

/* guard_news must return true at every byte that can change the verdict. */
static void test_news(void)
{
	static const char *const texts[] = {"GET / HTTP/1.1\r\n" HOST "X: yy\r\n\r\n",
	    "GET / HTTP/1.1\r\nHost: a\rx", "GET / HTTP/1.1\n",
	    "\r\nGET / HTTP/1.1\r\n" HOST "\r\n"};

	for (size_t t = 0; t < sizeof(texts) / sizeof(texts[0]); t++) {
		size_t n = strlen(texts[t]);
		for (size_t seen = 1; seen < n; seen++) {
			if (judge_n(texts[t], seen, true) != 0)
				break;
			for (size_t now = seen + 1; now <= n; now++)
				if (judge_n(texts[t], now, true) != 0)
					CU_ASSERT(guard_news(texts[t], seen, now));
		}
	}
	for (int more = -1; more <= 1; more++) {
		char *text = head_of((size_t)(WEIR_HTTP_HEAD_MAX + more));
		CU_ASSERT_FALSE(guard_news(text, 5000, 8000));
		CU_ASSERT(guard_news(text, WEIR_HTTP_HEAD_MAX - 8, WEIR_HTTP_HEAD_MAX - 1));
		free(text);
	}
}

static void test_public(void)
{
	static const char good[] = "GET / HTTP/1.1\r\n" HOST "\r\nGET";
	size_t n = 0;
	int status = 0;

	CU_ASSERT_EQUAL(weir_http_guard(good, sizeof(good) - 1, &n, &status), 1);
	CU_ASSERT_EQUAL(n, sizeof(good) - 1 - 3);
	CU_ASSERT_EQUAL(weir_http_guard(good, sizeof(good) - 1, NULL, NULL), 1);
	CU_ASSERT_EQUAL(weir_http_guard(good, 20, &n, &status), 0);
	CU_ASSERT_EQUAL(weir_http_guard("GET / HTTP/1.1\n", 15, &n, &status), WEIR_EINVAL);
	CU_ASSERT_EQUAL(status, 400);
	CU_ASSERT_EQUAL(weir_http_guard("GET / HTTP/1.1\n", 15, NULL, NULL), WEIR_EINVAL);
}

CUNIT_MAIN("guard", {"bytes", test_bytes}, {"every control byte", test_every_control_byte},
    {"fields", test_fields}, {"fields of one value", test_once}, {"Content-Length", test_length},
    {"Transfer-Encoding", test_coding}, {"Expect", test_expect}, {"limits", test_limits},
    {"endless heads", test_endless}, {"slices", test_slices}, {"keep-alive", test_keep_alive},
    {"news", test_news}, {"public call", test_public})
