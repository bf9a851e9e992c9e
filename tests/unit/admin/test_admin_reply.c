/* SPDX-License-Identifier: MIT */
/* Replies: which bytes they own, and problems whose messages quote anything. */
#include "admin/request/reply.h"

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

static struct reply reply;

static bool body_is(const char *text)
{
	return reply.n == strlen(text) && memcmp(reply.body, text, reply.n) == 0;
}

static const char *detail_of(const char *text)
{
	static char detail[1024];

	reply_problem(&reply, 422, "%s", text);
	json_t *json = json_loadb(reply.body, reply.n, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	snprintf(detail, sizeof(detail), "%s", json_string_value(json_object_get(json, "detail")));
	json_decref(json);
	return detail;
}

static void test_static(void)
{
	static const char text[] = "some text";

	reply_static(&reply, 200, "text/plain", text, 4);
	CU_ASSERT_EQUAL(reply.status, 200);
	CU_ASSERT_STRING_EQUAL(reply.type, "text/plain");
	CU_ASSERT_TRUE(reply.body == text && reply.n == 4 && !reply.owned);
	/* another reply leaves nothing of this one */
	strcpy(reply.allow, "GET");
	strcpy(reply.etag, "\"x\"");
	strcpy(reply.cookie, "c");
	reply_static(&reply, 304, "text/html", "", 0);
	CU_ASSERT_TRUE(!*reply.allow && !*reply.etag && !*reply.cookie);
	reply_fini(&reply);
	CU_ASSERT_TRUE(reply.status == 0 && !reply.type && !reply.body && reply.n == 0);
}

static void test_text(void)
{
	char *text = strdup("text");

	reply_text(&reply, 201, "text/plain", text, 3);
	CU_ASSERT_EQUAL(reply.status, 201);
	CU_ASSERT_STRING_EQUAL(reply.type, "text/plain");
	CU_ASSERT_TRUE(reply.body == text && reply.owned == text && reply.n == 3);
	reply_text(&reply, 200, "text/plain", NULL, 0);
	CU_ASSERT_EQUAL(reply.status, 503);
	CU_ASSERT_STRING_EQUAL(reply.type, "application/problem+json");
	CU_ASSERT_TRUE(body_is("{\"type\": \"about:blank\", \"title\": \"Service Unavailable\", "
			       "\"status\": 503, \"detail\": \"out of memory\"}\n"));
	CU_ASSERT_PTR_NULL(reply.owned);
	reply_fini(&reply);
}

static void test_json(void)
{
	reply_json(&reply, 200, json_pack("{s:f, s:f}", "a", 0.1, "b", 1700000000.25));
	CU_ASSERT_EQUAL(reply.status, 200);
	CU_ASSERT_STRING_EQUAL(reply.type, "application/json");
	CU_ASSERT_TRUE(body_is("{\"a\":0.1,\"b\":1700000000.25}"));
	CU_ASSERT_PTR_EQUAL(reply.owned, reply.body);
	reply_json(&reply, 200, NULL);
	CU_ASSERT_EQUAL(reply.status, 503);
	reply_fini(&reply);
}

static void test_problem(void)
{
	reply_problem(&reply, 404, "there is no %s '%s'", "stage", "a");
	CU_ASSERT_EQUAL(reply.status, 404);
	CU_ASSERT_STRING_EQUAL(reply.type, "application/problem+json");
	CU_ASSERT_TRUE(body_is("{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,"
			       "\"detail\":\"there is no stage 'a'\"}"));
	reply_fini(&reply);
}

/* A message may quote bytes that are not UTF-8, or be cut off in the middle of a character. */
static void test_details(void)
{
	char longest[700];

	CU_ASSERT_STRING_EQUAL(detail_of(""), "");
	CU_ASSERT_STRING_EQUAL(detail_of("a\xc3\xa9\xe2\x82\xac"), "a\xc3\xa9\xe2\x82\xac");
	CU_ASSERT_STRING_EQUAL(detail_of("\xff-\xe2\x82-\x80"), "?-\?\?-?");
	CU_ASSERT_STRING_EQUAL(detail_of("a \"b\" \\ \n"), "a \"b\" \\ \n");
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	CU_ASSERT_EQUAL(strlen(detail_of(longest)), 511);
	memcpy(longest + 510, "\xc3\xa9", 2);
	const char *cut = detail_of(longest);
	CU_ASSERT_EQUAL(strlen(cut), 511);
	CU_ASSERT_STRING_EQUAL(cut + 509, "x?");
	reply_fini(&reply);
}

/* The phrases of RFC 9110, 6585 and 7540 for every status of the endpoint. */
static void test_reasons(void)
{
	static const struct {
		int status;
		const char *reason;
	} row[] = {{200, "OK"}, {304, "Not Modified"}, {400, "Bad Request"}, {401, "Unauthorized"},
	    {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"},
	    {408, "Request Timeout"}, {409, "Conflict"}, {413, "Content Too Large"},
	    {414, "URI Too Long"}, {415, "Unsupported Media Type"}, {417, "Expectation Failed"},
	    {421, "Misdirected Request"}, {422, "Unprocessable Content"},
	    {429, "Too Many Requests"}, {431, "Request Header Fields Too Large"},
	    {503, "Service Unavailable"}, {505, "HTTP Version Not Supported"}, {599, "Error"}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		CU_ASSERT_STRING_EQUAL(reply_reason(row[i].status), row[i].reason);
}

CUNIT_MAIN("reply", {"static bytes", test_static}, {"text", test_text}, {"JSON", test_json},
    {"problems", test_problem}, {"details", test_details}, {"reasons", test_reasons})
