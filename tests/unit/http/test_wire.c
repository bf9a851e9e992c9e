/* SPDX-License-Identifier: MIT */
/* Hints that clients send with requests: the time left, and the user. */
#include "http/message/wire.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cunit_main.h"

#define MS 1000000LL

/* The fields of the request. The elements around them are not part of the request. */
static struct weir_http_header around[6], *const headers = around + 1;
static struct weir_http_request *req;

static void say(int i, const char *name, const char *value)
{
	headers[i] = (struct weir_http_header){{name, strlen(name)}, {value, strlen(value)}};
	req->headers = headers;
	req->n_headers = (uint8_t)(i + 1);
	around[0] = headers[i + 1] = (struct weir_http_header){{"x-deadline-ms", 13}, {"1", 1}};
}

/* Time left of a request with one header field; -1: none, -2: malformed. */
static int64_t left(const char *name, const char *value)
{
	bool malformed;

	say(0, name, value);
	int64_t ns = wire_left_ns(req, &malformed);
	return malformed ? (ns < 0 ? -2 : -3) : ns;
}

static void test_time_left(void)
{
	CU_ASSERT_EQUAL(left("x-deadline-ms", "250"), 250 * MS);
	CU_ASSERT_EQUAL(left("X-Deadline-Ms", "0"), 0);
	CU_ASSERT_EQUAL(left("x-deadline-ms", "99999999"), WIRE_LEFT_MAX_NS);
	CU_ASSERT_EQUAL(left("grpc-timeout", "250m"), 250 * MS);
	CU_ASSERT_EQUAL(left("grpc-timeout", "7S"), 7000 * MS);
	CU_ASSERT_EQUAL(left("grpc-timeout", "1M"), 60000 * MS);
	CU_ASSERT_EQUAL(left("grpc-timeout", "99999999H"), WIRE_LEFT_MAX_NS);
	CU_ASSERT_EQUAL(left("grpc-timeout", "12u"), 12000);
	CU_ASSERT_EQUAL(left("grpc-timeout", "12n"), 12);
	CU_ASSERT_EQUAL(left("x-deadline", "250"), -1);
	CU_ASSERT_EQUAL(left("x-deadline-mss", "250"), -1);
}

static void test_malformed_is_ignored(void)
{
	static const char *const ms[] = {
	    "", "-1", "+1", "1.5", "1e3", " 5", "5 ", "5ms", "123456789", "0x10"};
	static const char *const grpc[] = {"", "5", "m", "5x", "5mm", "-5m", "123456789m", "5 m"};

	for (size_t i = 0; i < sizeof(ms) / sizeof(ms[0]); i++)
		CU_ASSERT_EQUAL(left("x-deadline-ms", ms[i]), -2);
	for (size_t i = 0; i < sizeof(grpc) / sizeof(grpc[0]); i++)
		CU_ASSERT_EQUAL(left("grpc-timeout", grpc[i]), -2);
}

static void test_the_shorter_counts(void)
{
	bool malformed;

	say(0, "grpc-timeout", "2S");
	say(1, "x-deadline-ms", "300");
	say(2, "x-deadline-ms", "soon");
	CU_ASSERT_EQUAL(wire_left_ns(req, &malformed), 300 * MS);
	CU_ASSERT_TRUE(malformed);
}

/* 1 when there is a trace; 2 is added when a field was malformed. */
static int trace_of(struct weir_trace *t)
{
	bool malformed = false, found = wire_trace(req, t, &malformed);

	return found + 2 * malformed;
}

static void test_traces(void)
{
	static const char good[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
	static const char other[] = "00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-00";
	struct weir_trace t = {0};
	char field[WEIR_HTTP_TRACE_BYTES];

	say(0, "traceparent2", good);
	say(1, "tracestate", good);
	CU_ASSERT_EQUAL(trace_of(&t), 0);
	say(1, "TraceParent", good);
	CU_ASSERT_EQUAL(trace_of(&t), 1);
	CU_ASSERT_EQUAL(t.parent, 0xb7ad6b7169203331u);
	say(2, "traceparent", other); /* two fields are ignored */
	CU_ASSERT_EQUAL(trace_of(&t), 2);
	/* found by fuzz_hints: the parent became that of the last field */
	CU_ASSERT_EQUAL(t.parent, 0xb7ad6b7169203331u);
	say(0, "traceparent", "00-junk");
	CU_ASSERT_EQUAL(trace_of(&t), 2);
	/* The field sent downstream: the same trace, and a span of ours. */
	req->ev.state = WEIR_EVENT_IDLE;
	weir_event_init(&req->ev, &weir_http_request_type, 1);
	weir_event_trace_set(&req->ev, &t);
	CU_ASSERT_EQUAL(
	    weir_http_trace_field(req, field, sizeof(field)), WEIR_HTTP_TRACE_BYTES - 1);
	CU_ASSERT_EQUAL(memcmp(field, "traceparent: ", 13), 0);
	CU_ASSERT_EQUAL(memcmp(field + 13, good, 36), 0);
	CU_ASSERT_NOT_EQUAL(memcmp(field + 13, good, 52), 0);
	CU_ASSERT_STRING_EQUAL(field + 65, "-01\r\n");
	CU_ASSERT_EQUAL(weir_http_trace_field(req, field, sizeof(field) - 1), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(field, "");
}

static void test_users(void)
{
	CU_ASSERT_TRUE(wire_user_known(""));
	CU_ASSERT_TRUE(wire_user_known("address"));
	CU_ASSERT_TRUE(wire_user_known("header.x-user"));
	CU_ASSERT_FALSE(wire_user_known("header."));
	CU_ASSERT_FALSE(wire_user_known("adress"));
	CU_ASSERT_FALSE(wire_user_known("x-user"));
	say(0, "X-User", "17");
	uint32_t first = wire_user(req, "header.x-user");
	CU_ASSERT(first != 0);
	CU_ASSERT_EQUAL(wire_user(req, "header.x-user"), first);
	say(0, "X-User", "18");
	CU_ASSERT(wire_user(req, "header.x-user") != first);
	CU_ASSERT_EQUAL(wire_user(req, "header.x-other"), 0);
	CU_ASSERT_EQUAL(wire_user(req, ""), 0);
}

/* Session numbers have 31 bits, whatever the hash. Of 64 users at least one would have the top
 * bit. */
static void test_users_leave_the_mark_alone(void)
{
	uint32_t all = 0;

	for (int i = 0; i < 64; i++) {
		char name[16];
		snprintf(name, sizeof(name), "user%d", i);
		say(0, "X-User", name);
		all |= wire_user(req, "header.x-user");
	}
	CU_ASSERT_EQUAL(all, ~WEIR_SESSION_RETRY);
}

static int attempt(const char *value)
{
	bool malformed = false;

	say(0, "x-retry-attempt", value);
	int n = wire_attempt(req, &malformed);
	return malformed ? -1 - n : n;
}

static void test_attempts(void)
{
	static const char *const bad[] = {
	    "", "256", "-1", "+1", "1.0", "one", " 1", "1 ", "999999999"};
	bool malformed = false;

	CU_ASSERT_EQUAL(attempt("0"), 0);
	CU_ASSERT_EQUAL(attempt("1"), 1);
	CU_ASSERT_EQUAL(attempt("255"), 255);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CU_ASSERT_EQUAL(attempt(bad[i]), -1);
	say(0, "X-Retry-Attempt", "3");
	say(1, "x-retry-attempt", "1");
	CU_ASSERT_EQUAL(wire_attempt(req, &malformed), 3);
	CU_ASSERT_FALSE(malformed);
	say(2, "x-retry-attempt", "again");
	CU_ASSERT_EQUAL(wire_attempt(req, &malformed), 3);
	CU_ASSERT_TRUE(malformed);
	say(0, "x-other", "3");
	malformed = true; /* stays set */
	CU_ASSERT_EQUAL(wire_attempt(req, &malformed), 0);
	CU_ASSERT_TRUE(malformed);
}

static void test_hints_are_seen(void)
{
	say(0, "Host", "a");
	CU_ASSERT_FALSE(wire_may_hint(req));
	say(1, "user-agents", "eleven letters, as traceparent");
	say(2, "Content-Type", "as many as grpc-timeout");
	say(3, "x-retry-attempX", "1");
	CU_ASSERT_EQUAL(wire_hints(req), 0);
	say(3, "X-Deadline-Ms", "1");
	CU_ASSERT_EQUAL(wire_hints(req), WIRE_LEFT);
	CU_ASSERT_TRUE(wire_may_hint(req));
	say(3, "grpc-timeout", "1S");
	CU_ASSERT_EQUAL(wire_hints(req), WIRE_LEFT);
	say(2, "X-RETRY-ATTEMPT", "1");
	say(3, "TraceParent", "");
	CU_ASSERT_EQUAL(wire_hints(req), WIRE_ATTEMPT | WIRE_TRACE);
}

static void test_retry_after(void)
{
	CU_ASSERT_EQUAL(wire_retry_after_s(0, 0, false, 7), 0);
	CU_ASSERT_EQUAL(wire_retry_after_s(0, 2, false, 7), 2);
	CU_ASSERT_EQUAL(wire_retry_after_s(1, 0, false, 7), 1);
	CU_ASSERT_EQUAL(wire_retry_after_s(3000 * MS, 1, false, 7), 3);
	CU_ASSERT_EQUAL(wire_retry_after_s(3001 * MS, 1, false, 7), 4);
	CU_ASSERT_EQUAL(wire_retry_after_s(INT64_MAX, 1, false, 7), WIRE_RETRY_MAX_S);
	CU_ASSERT_EQUAL(wire_retry_after_s(1, 3600, false, 7), 3600); /* the operator's value */
}

/* The least and the most that 2000 clients get, and how many get less than known_ns. */
static void spread(int64_t known_ns, int least_s, int *least, int *most, int *below)
{
	*least = INT32_MAX;
	*most = *below = 0;
	for (uint64_t i = 0; i < 2000; i++) {
		int s = wire_retry_after_s(known_ns, least_s, true, 0x8123456789000000 + (i << 5));
		*least = s < *least ? s : *least;
		*most = s > *most ? s : *most;
		*below += (int64_t)s * 1000 * MS < known_ns;
	}
}

static void test_spread_of_retries(void)
{
	int least, most, below;

	spread(10000 * MS, 1, &least, &most, &below); /* 5..15 */
	CU_ASSERT_EQUAL(least, 5);
	CU_ASSERT_EQUAL(most, 15);
	CU_ASSERT(below > 700 && below < 1120); /* 5 of 11 */
	spread(10000 * MS, 9, &least, &most, &below);
	CU_ASSERT_EQUAL(least, 9);
	CU_ASSERT_EQUAL(most, 15);
	spread(0, 1, &least, &most, &below);
	CU_ASSERT_EQUAL(least, 1);
	CU_ASSERT_EQUAL(most, 2);
	spread(60000 * MS, 1, &least, &most, &below);
	CU_ASSERT_EQUAL(most, WIRE_RETRY_MAX_S);
	spread(0, 3600, &least, &most, &below);
	CU_ASSERT_EQUAL(least, 3600);
	CU_ASSERT_EQUAL(wire_retry_after_s(0, 0, true, 7), 0);
	CU_ASSERT_EQUAL(
	    wire_retry_after_s(9000 * MS, 1, true, 77), wire_retry_after_s(9000 * MS, 1, true, 77));
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void test_deadline_downstream(void)
{
	char text[WEIR_HTTP_DEADLINE_BYTES] = "old", small[8];
	int ms = 0;

	req->ev.deadline_ns = WEIR_NO_DEADLINE;
	CU_ASSERT_EQUAL(weir_http_deadline_left_ns(req, 5 * MS), WEIR_NO_DEADLINE);
	CU_ASSERT_EQUAL(weir_http_deadline_field(req, 5 * MS, text, sizeof(text)), 0);
	CU_ASSERT_STRING_EQUAL(text, "");
	/* An hour, so that the delays of a slow host do not matter. */
	req->ev.deadline_ns = now_ns() + 3600000 * MS;
	int64_t left_ns = weir_http_deadline_left_ns(req, 600000 * MS);
	CU_ASSERT(left_ns <= 3000000 * MS && left_ns > 2000000 * MS);
	int n = weir_http_deadline_field(req, 600000 * MS, text, sizeof(text));
	CU_ASSERT_EQUAL(n, (int)strlen(text));
	CU_ASSERT_EQUAL(sscanf(text, "x-deadline-ms: %d\r\n", &ms), 1);
	CU_ASSERT(ms < 3000000 && ms > 2000000); /* rounded down */
	CU_ASSERT_STRING_EQUAL(text + n - 2, "\r\n");
	CU_ASSERT_EQUAL(weir_http_deadline_field(req, 0, small, sizeof(small)), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(small, "");
	/* Less than the round trip left, and a deadline long past. */
	req->ev.deadline_ns = now_ns() + 1000000 * MS;
	CU_ASSERT_EQUAL(weir_http_deadline_left_ns(req, 1000000 * MS), 0);
	CU_ASSERT_EQUAL(
	    weir_http_deadline_field(req, 1000000 * MS, text, sizeof(text)), WEIR_EDEADLINE);
	CU_ASSERT_STRING_EQUAL(text, "");
	req->ev.deadline_ns = 1;
	CU_ASSERT_EQUAL(weir_http_deadline_left_ns(req, 0), 0);
}

static void setup(void)
{
	static _Alignas(64) unsigned char memory[16384];

	CU_ASSERT_FATAL(weir_http_request_type.size <= sizeof(memory));
	req = (struct weir_http_request *)(void *)memory;
	req->ev.type = &weir_http_request_type;
	test_time_left();
}

CUNIT_MAIN("wire", {"time left", setup}, {"malformed is ignored", test_malformed_is_ignored},
    {"the shorter counts", test_the_shorter_counts}, {"users", test_users},
    {"users leave the mark alone", test_users_leave_the_mark_alone}, {"attempts", test_attempts},
    {"hints are seen", test_hints_are_seen}, {"Retry-After", test_retry_after},
    {"spread of retries", test_spread_of_retries},
    {"the deadline downstream", test_deadline_downstream}, {"traces", test_traces})
