/* SPDX-License-Identifier: MIT */
/* What is stored and told about reloads: the newest one in full, the newest failure, and counts. */
#include "server/reload_report.h"

#include <string.h>

#include <weir/log.h>

#include "cunit_main.h"

static struct report report;
static struct config_diff diff;
static struct weir_errs errs;

static void setup(void)
{
	weir_log_set_fd(-1);
	report_init(&report);
	errs = (struct weir_errs){0};
	CU_ASSERT_EQUAL_FATAL(config_diff("stages.w.use t\nstages.w.key 1\nname a\n",
				  "stages.w.use t\nstages.w.key 2\nname a\n", &diff),
	    0);
}

static void teardown(void)
{
	report_fini(&report);
	config_diff_free(&diff);
}

static json_t *told(int draining)
{
	char *text = report_json(&report, draining);

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	free(text);
	return json;
}

static const char *text(const json_t *map, const char *key)
{
	const char *s = json_string_value(json_object_get(map, key));

	return s ? s : "(null)";
}

static json_int_t number(const json_t *map, const char *key)
{
	return json_integer_value(json_object_get(map, key));
}

/* "result: summary" of the newest reload. */
static const char *newest(void)
{
	static char line[400];
	json_t *json = told(0);
	const json_t *last = json_object_get(json, "last");

	snprintf(line, sizeof(line), "%s: %s", text(last, "result"), text(last, "summary"));
	json_decref(json);
	return line;
}

static void test_none(void)
{
	struct admin_reload_counts n;

	setup();
	json_t *json = told(3);
	CU_ASSERT_EQUAL(number(json, "done") + number(json, "graph") + number(json, "total") +
			    number(json, "failed"),
	    0);
	CU_ASSERT_EQUAL(number(json, "draining"), 3);
	CU_ASSERT_TRUE(json_is_null(json_object_get(json, "last")));
	CU_ASSERT_TRUE(json_is_null(json_object_get(json, "failure")));
	json_decref(json);
	report_counts(&report, &n);
	CU_ASSERT_TRUE(n.last_ok && n.total == 0 && n.failed == 0 && n.last_ok_at == 0);
	teardown();
}

static void test_one(void)
{
	struct outcome out = {
	    .id = 7, .followed = true, .by = "ann", .took_ns = 1500000000, .hidden = json_object()};
	struct admin_reload_counts n;

	setup();
	report_order(&report, &out, &diff, &errs);
	json_t *json = told(0);
	const json_t *last = json_object_get(json, "last");
	CU_ASSERT_EQUAL(number(json, "done"), 7);
	CU_ASSERT_EQUAL(number(json, "graph"), 1);
	CU_ASSERT_EQUAL(number(json, "total"), 1);
	CU_ASSERT_EQUAL(number(json, "failed"), 0);
	CU_ASSERT_TRUE(json_is_null(json_object_get(json, "failure")));
	CU_ASSERT_EQUAL(number(last, "id"), 7);
	CU_ASSERT_TRUE(json_number_value(json_object_get(last, "at")) > 1.7e9);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(last, "took")), 1.5, 1e-9);
	CU_ASSERT_STRING_EQUAL(text(last, "by"), "ann");
	CU_ASSERT_TRUE(json_is_false(json_object_get(last, "preview")));
	CU_ASSERT_STRING_EQUAL(text(last, "result"), "followed");
	CU_ASSERT_STRING_EQUAL(text(last, "summary"), "1 stage is rebuilt, 0 connections dropped");
	CU_ASSERT_STRING_EQUAL(text(last, "text"), "");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(last, "renewed")), 0);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(last, "errors")), 0);
	const json_t *changes = json_object_get(last, "changes"), *c = json_array_get(changes, 0);
	CU_ASSERT_EQUAL(json_array_size(changes), 1);
	CU_ASSERT_STRING_EQUAL(text(c, "path"), "stages.w.key");
	CU_ASSERT_STRING_EQUAL(text(c, "from"), "1");
	CU_ASSERT_STRING_EQUAL(text(c, "to"), "2");
	CU_ASSERT_STRING_EQUAL(text(c, "effect"), "rebuild");
	CU_ASSERT_TRUE(json_is_false(json_object_get(c, "hidden")));
	json_decref(json);
	report_counts(&report, &n);
	CU_ASSERT_TRUE(n.last_ok && n.total == 1 && n.graphs == 1 && n.last_ok_at > 1.7e9);
	json_decref(out.hidden);
	teardown();
}

/* A value from the environment is shown neither as the old nor as the new one. Without the list of
 * such values, no value is shown. */
static void test_hidden(void)
{
	setup();
	json_t *before = json_pack("{s:b}", "stages.w.key", 1), *after = json_pack("{s:b}", "x", 1);
	json_t *both = report_hide_both(before, after);
	CU_ASSERT_EQUAL(json_object_size(both), 2);
	CU_ASSERT_EQUAL(json_object_size(after), 1);
	CU_ASSERT_PTR_NULL(report_hide_both(NULL, after));
	CU_ASSERT_PTR_NULL(report_hide_both(before, NULL));
	for (int i = 0; i < 2; i++) {
		struct outcome out = {.id = 1, .by = "x", .hidden = i == 0 ? both : NULL};
		report_order(&report, &out, &diff, &errs);
		json_t *json = told(0);
		const json_t *c =
		    json_array_get(json_object_get(json_object_get(json, "last"), "changes"), 0);
		CU_ASSERT_TRUE(json_is_null(json_object_get(c, "from")));
		CU_ASSERT_TRUE(json_is_null(json_object_get(c, "to")));
		CU_ASSERT_TRUE(json_is_true(json_object_get(c, "hidden")));
		json_decref(json);
	}
	json_decref(before);
	json_decref(after);
	json_decref(both);
	teardown();
}

static void add_error(const char *why, int line)
{
	struct weir_mark mark = {.file = "t.yaml", .line = line, .col = 3, .len = 4};

	weir_errs_add(&errs, line ? &mark : NULL, WEIR_EINVAL, "a hint", "%s", why);
}

/* A failure is told until a later reload succeeds; a preview does not change that. */
static void test_failure(void)
{
	struct outcome out = {.id = 1, .by = "ann", .rc = WEIR_EINVAL};
	struct admin_reload_counts n;

	setup();
	add_error("one", 5);
	report_order(&report, &out, &diff, &errs);
	CU_ASSERT_STRING_EQUAL(
	    newest(), "failed: 1 error. The running configuration was not changed.");
	add_error("two", 0);
	out.id = 2;
	report_order(&report, &out, &diff, &errs);
	CU_ASSERT_STRING_EQUAL(
	    newest(), "failed: 2 errors. The running configuration was not changed.");
	json_t *json = told(0);
	const json_t *last = json_object_get(json, "last");
	CU_ASSERT_TRUE(json_equal(last, json_object_get(json, "failure")));
	CU_ASSERT_EQUAL(number(json, "failed"), 2);
	CU_ASSERT_EQUAL(number(json, "graph"), 0);
	CU_ASSERT_EQUAL(strncmp(text(last, "text"), "t.yaml:5:3: one", 15), 0);
	const json_t *e = json_array_get(json_object_get(last, "errors"), 0);
	CU_ASSERT_STRING_EQUAL(text(e, "file"), "t.yaml");
	CU_ASSERT_TRUE(
	    number(e, "line") == 5 && number(e, "column") == 3 && number(e, "length") == 4);
	CU_ASSERT_STRING_EQUAL(text(e, "text"), "one");
	CU_ASSERT_STRING_EQUAL(text(e, "hint"), "a hint");
	CU_ASSERT_STRING_EQUAL(text(e, "code"), weir_error_word(WEIR_EINVAL));
	json_decref(json);
	report_counts(&report, &n);
	CU_ASSERT_TRUE(!n.last_ok && n.total == 2 && n.failed == 2 && n.last_ok_at == 0);
	/* a preview that succeeds */
	errs = (struct weir_errs){0};
	out = (struct outcome){.id = 3, .by = "ann", .preview = true};
	report_order(&report, &out, &diff, &errs);
	CU_ASSERT_STRING_EQUAL(newest(), "preview: 1 stage is rebuilt, 0 connections dropped");
	json = told(0);
	CU_ASSERT_EQUAL(number(json, "done"), 3);
	CU_ASSERT_EQUAL(number(json, "total"), 2);
	CU_ASSERT_EQUAL(number(json_object_get(json, "failure"), "id"), 2);
	json_decref(json);
	report_counts(&report, &n);
	CU_ASSERT_FALSE(n.last_ok);
	/* a reload that succeeds */
	out = (struct outcome){.id = 4, .by = "ann", .followed = true};
	report_order(&report, &out, &diff, &errs);
	json = told(0);
	CU_ASSERT_TRUE(json_is_null(json_object_get(json, "failure")));
	CU_ASSERT_EQUAL(number(json, "total"), 3);
	CU_ASSERT_EQUAL(number(json, "failed"), 2);
	CU_ASSERT_EQUAL(number(json, "graph"), 1);
	json_decref(json);
	report_counts(&report, &n);
	CU_ASSERT_TRUE(n.last_ok);
	teardown();
}

/* The words for each result. */
static void test_results(void)
{
	struct config_diff same = {0}, plugin = {.n = 1, .n_plugins = 1, .live = false};
	struct outcome out = {.id = 1, .by = "x", .hidden = json_object()};
	struct config_difference d = {.path = "plugin.a", .from = "x", .to = "y"};

	setup();
	report_order(&report, &out, &same, &errs);
	CU_ASSERT_STRING_EQUAL(newest(), "unchanged: nothing changes");
	report_order(&report, &out, &diff, &errs); /* in the running graph */
	CU_ASSERT_STRING_EQUAL(newest(), "turned: 1 stage is rebuilt, 0 connections dropped");
	out.renewed = json_pack("[{s:s, s:s}]", "stage", "web", "text", "x");
	report_order(&report, &out, &same, &errs);
	CU_ASSERT_STRING_EQUAL(
	    newest(), "turned: no value changes, but 1 stage has renewed certificates");
	json_array_append_new(out.renewed, json_object());
	report_order(&report, &out, &same, &errs);
	CU_ASSERT_STRING_EQUAL(
	    newest(), "turned: no value changes, but 2 stages have renewed certificates");
	json_t *json = told(0);
	CU_ASSERT_EQUAL(
	    json_array_size(json_object_get(json_object_get(json, "last"), "renewed")), 2);
	json_decref(json);
	report_order(&report, &out, &diff, &errs);
	CU_ASSERT_STRING_EQUAL(newest(), "turned: 1 stage is rebuilt, 0 connections dropped");
	json_decref(out.renewed);
	out.renewed = NULL;
	plugin.item = &d;
	out.preview = true;
	report_order(&report, &out, &plugin, &errs);
	CU_ASSERT_STRING_EQUAL(newest(),
	    "preview: 1 plug-in changes, 0 connections dropped; a preview does not load plug-ins: "
	    "'weir check' does, in its own process");
	json_decref(out.hidden);
	teardown();
}

CUNIT_MAIN("reload report", {"none", test_none}, {"one", test_one}, {"hidden", test_hidden},
    {"failure", test_failure}, {"results", test_results})
