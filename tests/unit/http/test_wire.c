/* SPDX-License-Identifier: MIT */
/* What clients say about their requests: time left, and who they are. */
#include "http/wire.h"

#include <string.h>

#include "cunit_main.h"

#define MS 1000000LL

static struct weir_http_header headers[4];
static struct weir_http_request *req;

static void say(int i, const char *name, const char *value)
{
	headers[i] = (struct weir_http_header){{name, strlen(name)}, {value, strlen(value)}};
	req->headers = headers;
	req->n_headers = (uint8_t)(i + 1);
}

/* Time left of a request with one header field, -1 none, -2 malformed. */
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

static void setup(void)
{
	static _Alignas(64) unsigned char memory[16384];

	CU_ASSERT_FATAL(weir_http_request_type.size <= sizeof(memory));
	req = (struct weir_http_request *)(void *)memory;
	req->ev.type = &weir_http_request_type;
	test_time_left();
}

CUNIT_MAIN("wire", {"time left", setup}, {"malformed is ignored", test_malformed_is_ignored},
    {"the shorter counts", test_the_shorter_counts}, {"users", test_users})
