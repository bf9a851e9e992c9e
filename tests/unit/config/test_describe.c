/* SPDX-License-Identifier: MIT */
/* Descriptions of the keys of a stage type, and of the keys of every stage. */
#include "loading.h"

#include "admission/admission.h"
#include "fixture/graph/payloads.h"

static const char *describe(const char *type, int expected)
{
	FILE *out = capture_begin();

	types_register();
	CU_ASSERT_EQUAL(config_describe(type, out), expected);
	return capture_end(out);
}

static void test_source(void)
{
	CU_ASSERT_STRING_EQUAL(describe("t.source", 0),
	    "t.source: makes events for tests\n"
	    "a source, which produces events and has no queue\n"
	    "\n"
	    "with:\n"
	    "    listen           address and port\n"
	    "                     text; required\n"
	    "    max_connections  most connections at once\n"
	    "                     a whole number, also with k or M: 20k; 1 to 1000000; default "
	    "1000\n"
	    "\n"
	    "to:\n"
	    "    request          what came in; any event\n"
	    "\n"
	    "example\n"
	    "    stages:\n"
	    "      NAME:\n"
	    "        use: t.source\n"
	    "        with: { listen: ... }\n"
	    "        to: { request: OTHER }\n");
	capture_free();
}

static void test_work(void)
{
	const char *text = describe("t.work", 0);

	CU_ASSERT_PTR_NOT_NULL(
	    strstr(text, "a size: 64KiB, 1MB; 1 to 1GiB; default 64KiB; live\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "1us to 1s; default 1ms\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "one of const, exp, bimodal; default const\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "text; default \".\"\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "        path             what it is for\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "weir_work_done_total\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "counter, events: work that was done\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "any event; optional\n"));
	capture_free();
}

static const struct weir_field order_fields[] = {
    {.name = "customer", .help = "its number"}, {.name = "header.", .help = "one of many"}, {0}};
static const struct weir_event_type order_type = {.name = "t.order", .fields = order_fields};
static const struct weir_stage_ops order_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.order_sink",
    .summary = "takes events with fields",
    .accepts = &order_type,
    .handle = types_handle};

/* The fields of the events that a stage takes are listed. */
static void test_fields(void)
{
	types_register();
	struct weir_err err;
	CU_ASSERT_EQUAL_FATAL(weir_stage_register(&order_ops, &err), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(describe("t.order_sink", 0),
	    "\nfields of t.order (for 'match:', 'by:' and 'key:')\n"
	    "    customer         its number\n"
	    "    header.NAME      one of many\n"));
	capture_free();
}

static void test_flags(void)
{
	const char *text = describe("t.sink", 0);

	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nalways 'mode: exclusive'\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nmay block"));
	CU_ASSERT_PTR_NULL(strstr(describe("t.work", 0), "mode: exclusive"));
	CU_ASSERT_PTR_NULL(strstr(captured, "may block"));
	capture_free();
}

static void test_framework(void)
{
	CU_ASSERT_PTR_NOT_NULL(strstr(describe("stage", 0), "    cohort           "));
	CU_ASSERT_PTR_NOT_NULL(strstr(captured, "or auto; 1 to 1024; default auto; live\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(describe("group", 0), "    schedule         "));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(describe("class", 0), "keys of every class, besides 'match:'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(captured, "or auto; 0 to 7; default auto\n"));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(captured, "a share: 5%, 0.05, or auto; 0% to 50%; default auto\n"));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(describe("overload", 0), "one of off, shadow, enforce; default enforce\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(describe("admin", 0), "    listen           "));
	CU_ASSERT_PTR_NOT_NULL(strstr(describe("drain", 0), "    grace            "));
	for (int i = 0; config_described(i); i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(describe(config_described(i), 0), "keys of "));
	capture_free();
}

/* Every type can be described, and its example uses it. */
static void test_all(void)
{
	const struct weir_stage_ops *ops;

	types_register();
	for (int i = 0; (ops = weir_stage_type_at(i)); i++) {
		char use[128];
		snprintf(use, sizeof(use), "        use: %s\n", ops->name);
		CU_ASSERT_PTR_NOT_NULL(strstr(describe(ops->name, 0), use));
	}
	CU_ASSERT_STRING_EQUAL(describe("no.such", WEIR_ENOENT), "");
	capture_free();
}

/* Every admission policy is listed with its help. */
static void test_policies(void)
{
	const char *text = describe("stage", 0);

	CU_ASSERT_PTR_NOT_NULL(strstr(text, "  one of auto, none, threshold, "));
	for (int i = 0; admission_at(i); i++) {
		char line[512];
		snprintf(line, sizeof(line), "            %-16s %s\n", admission_at(i)->name,
		    admission_at(i)->help);
		CU_ASSERT_PTR_NOT_NULL(strstr(text, line));
	}
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "one of static, seda, weir; default weir\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(describe("group", 0), "one of shared, fifo, "));
	CU_ASSERT_PTR_NOT_NULL(strstr(captured, "; default shared; live\n"));
	capture_free();
}

static void test_payloads(void)
{
	payloads_register();
	CU_ASSERT_PTR_NOT_NULL(strstr(describe("t.decode", 0),
	    "\npayloads\n"
	    "    gives image      a decoded image (outlet 'out')\n"
	    "\nfields of payload image (for 'match:' of classes, 'by:' and 'key:')\n"
	    "    image.width      in pixels\n"
	    "    image.name       \n"));
	capture_free();
	const char *store = describe("t.store", 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(store, "\npayloads\n"
					     "    needs image      a decoded image\n"
					     "    takes image      a decoded image\n"
					     "\nfields of payload image"));
	capture_free();
	CU_ASSERT_PTR_NULL(strstr(describe("t.split", 0), "payload"));
	capture_free();
}

CUNIT_MAIN("describe", {"source", test_source}, {"work", test_work}, {"fields", test_fields},
    {"flags", test_flags}, {"framework", test_framework}, {"policies", test_policies},
    {"all", test_all}, {"payloads", test_payloads})
