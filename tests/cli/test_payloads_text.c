/* SPDX-License-Identifier: MIT */
/* What ps and why say about refused payloads, also of servers that do not know them. */
#include "unit/cunit_main.h"

#include <string.h>

#include "cli/watch/payloads.h"

static void check(const char *refused, const char *want)
{
	char text[300], json[400];

	snprintf(json, sizeof(json),
	    "{\"payloads\": {\"reserved_bytes\": 786432, \"limit_bytes\": 1073741824}, "
	    "\"stages\": [{\"name\": \"decode\"%s}]}",
	    refused);
	json_t *doc = json_loads(json, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(doc);
	payloads_text(doc, json_array_get(json_object_get(doc, "stages"), 0), text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, want);
	payloads_text(doc, json_array_get(json_object_get(doc, "stages"), 0), text, 10);
	CU_ASSERT_TRUE(strlen(text) < 10);
	json_decref(doc);
}

static void test_text(void)
{
	check("", "");
	check(", \"payloads_refused_total\": {\"memory\": 0, \"budget\": 0, \"slots\": 0}", "");
	check(", \"payloads_refused_total\": {\"memory\": 0, \"budget\": 12, \"slots\": 0}",
	    "decode was refused payloads: 12 over payloads.memory (0.8 of 1024.0 MiB reserved)");
	check(", \"payloads_refused_total\": {\"memory\": 2, \"budget\": 0, \"slots\": 3}",
	    "decode was refused payloads: 2 without memory, 3 beside others of the event");
	check(", \"payloads_refused_total\": {\"family\": 4}",
	    "decode was refused payloads: 4 over the memory of a family");
	check(", \"payloads_refused_total\": {\"memory\": \"x\"}", "");
	check(", \"payloads_refused_total\": 7", "");
}

CUNIT_MAIN("payloads of ps", {"text", test_text})
