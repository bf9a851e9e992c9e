/* SPDX-License-Identifier: MIT */
/* GET /api/v1/history: the query, and the columns. Numbers in the rings: test_history.c. */
#include "admin/history/history_json.h"

#include "cunit_main.h"
#include "admin/text/number_format.h"
#include "made_up.h"

#define T0  1700000000LL
#define NOW ((double)T0 + 30.5)

static struct made_up made_up;
static struct history *history;
static struct reply reply;

static int ask(const char *query)
{
	reply_fini(&reply);
	history_json(history, query, NOW, &reply);
	return reply.status;
}

static bool says(const char *text)
{
	return memmem(reply.body, reply.n, text, strlen(text)) != NULL;
}

/* Seconds 0 to 30; in second s, s events of class bulk are offered to the disk. */
static void setup(void)
{
	made_up_init(&made_up);
	history = history_new();
	for (int s = 0; s <= 30; s++) {
		made_up.view.wall_ns = (T0 + s) * 1000000000LL;
		made_up.view.now_ns = (1000 + s) * 1000000000LL;
		made_up.stage[MADE_DISK].class_view[1].offered += (uint64_t)s;
		if (s != 20)
			history_feed(history, &made_up.view);
	}
}

static void teardown(void)
{
	reply_fini(&reply);
	history_free(history);
}

static json_t *body(void)
{
	json_t *json = json_loadb(reply.body, reply.n, JSON_REJECT_DUPLICATES, NULL);

	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	return json;
}

static double at(const json_t *list, size_t i)
{
	return json_number_value(json_array_get(list, i));
}

static void test_one_stage(void)
{
	setup();
	CU_ASSERT_EQUAL(ask("stage=disk&from=-12&to=1700000025.9"), 200);
	json_t *json = body();
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json, "step")), 1);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json, "from")), T0 + 19);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json, "to")), T0 + 25);
	const json_t *stages = json_object_get(json, "stages");
	CU_ASSERT_EQUAL(json_object_size(stages), 1);
	const json_t *disk = json_object_get(stages, "disk");
	CU_ASSERT_EQUAL(json_object_size(disk), SAMPLE_FIELDS + 1);
	const json_t *in = json_object_get(disk, "in");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(json, "at")), 7);
	CU_ASSERT_EQUAL(at(json_object_get(json, "at"), 6), T0 + 25);
	CU_ASSERT_EQUAL(json_array_size(in), 7);
	CU_ASSERT_EQUAL(at(in, 0), 19);
	CU_ASSERT_TRUE(json_is_null(json_array_get(in, 1))); /* second 20 was missed */
	CU_ASSERT_EQUAL(at(in, 2), 20.5);                    /* (20 + 21) / 2 s */
	CU_ASSERT_EQUAL(at(in, 6), 25);
	CU_ASSERT_TRUE(json_is_null(json_array_get(json_object_get(disk, "wait_p99"), 6)));
	CU_ASSERT_EQUAL(at(json_object_get(disk, "pressure"), 6), 0.25);
	const json_t *bulk = json_array_get(json_object_get(disk, "classes"), 1);
	CU_ASSERT_EQUAL(at(json_object_get(bulk, "in"), 6), 25);
	CU_ASSERT_EQUAL(json_object_size(bulk), SAMPLE_CLASS_FIELDS);
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(json_array_get(json_object_get(json, "classes"), 1)), "bulk");
	json_decref(json);
	teardown();
}

static void test_all_stages(void)
{
	setup();
	CU_ASSERT_EQUAL(ask("step=10s"), 200);
	json_t *json = body();
	const json_t *stages = json_object_get(json, "stages");
	CU_ASSERT_EQUAL(json_object_size(stages), MADE_UP_STAGES);
	const json_t *odd = json_object_get(stages, made_up.stage[MADE_ODD].name);
	CU_ASSERT_EQUAL(json_object_size(odd), 8);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(odd, "busy")), HISTORY_SLOTS_10S);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json, "to")), T0 + 30);
	const json_t *in = json_object_get(json_object_get(stages, "disk"), "in");
	CU_ASSERT_EQUAL(at(in, HISTORY_SLOTS_10S - 1), 26); /* (22 + ... + 30) / 9 s, since 21 */
	json_decref(json);
	teardown();
}

/* The history has nothing of the requested time: a response without points. */
static void test_empty(void)
{
	setup();
	CU_ASSERT_EQUAL(ask("from=5&to=6"), 200);
	CU_ASSERT_TRUE(says("\"at\":[]"));
	CU_ASSERT_EQUAL(ask("from=1800000000&to=1800000001"), 200);
	CU_ASSERT_TRUE(says("\"at\":[]"));
	history_free(history);
	history = history_new();
	CU_ASSERT_EQUAL(ask(""), 200);
	CU_ASSERT_TRUE(says("\"stages\":{}"));
	teardown();
}

static void test_mistakes(void)
{
	setup();
	CU_ASSERT_EQUAL(ask("step=5s"), 400);
	CU_ASSERT_TRUE(says("1s (15 minutes are kept) or 10s (6 hours are kept)"));
	CU_ASSERT_EQUAL(ask("from=yesterday"), 400);
	CU_ASSERT_TRUE(says("relative to now, -900 to -1"));
	CU_ASSERT_EQUAL(ask("step=10s&to=1e9"), 400);
	CU_ASSERT_TRUE(says("'to' must be") && says("now, -21600 to -1"));
	CU_ASSERT_EQUAL(ask("from="), 400);
	CU_ASSERT_EQUAL(ask("from=1.2.3"), 400);
	CU_ASSERT_EQUAL(ask("from=99999999999999999999999999"), 400);
	CU_ASSERT_EQUAL(ask("from=99999999999999999999999999999999"), 400);
	CU_ASSERT_EQUAL(ask("from=-1&to=-5"), 400);
	CU_ASSERT_TRUE(says("'from' is later than 'to'"));
	CU_ASSERT_EQUAL(ask("from=-5&from=-6"), 400);
	CU_ASSERT_EQUAL(ask("form=-5"), 400);
	CU_ASSERT_TRUE(says("'form=-5'"));
	CU_ASSERT_EQUAL(ask("stage=dikc"), 404);
	CU_ASSERT_TRUE(says("'dikc'"));
	CU_ASSERT_EQUAL(ask("&&stage=disk&"), 200);
	teardown();
}

static void test_digits(void)
{
	static const struct {
		double v;
		const char *text;
	} row[] = {{0, "0"}, {NAN, "null"}, {-3, "0"}, {1, "1"}, {100, "100"}, {0.5, "0.5"},
	    {2048, "2048"}, {123456, "123460"}, {99999.6, "100000"}, {0.000123456, "0.00012346"},
	    {31.5, "31.5"}, {1e-13, "0"}, {7e-9, "0.000000007"}, {1e300, "990000000000000"}};
	char out[NUMBER_MAX + 1];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		out[number_print(out, row[i].v)] = '\0';
		CU_ASSERT_STRING_EQUAL(out, row[i].text);
	}
	for (double v = 2e-12; v < 9e14; v *= 1.37) {
		out[number_print(out, v)] = '\0';
		CU_ASSERT_TRUE(fabs(strtod(out, NULL) / v - 1) < 5.01e-5);
		CU_ASSERT_TRUE(fabs(strtod(out, NULL) / number_round(v) - 1) < 1e-12);
	}
}

static void test_digits_text(void)
{
	static const struct {
		double v;
		int digits;
		const char *text;
	} row[] = {{0, 4, "0"}, {1.5, 4, "1.5"}, {-20.26, 3, "-20.3"}, {9999.4, 4, "9999"},
	    {9999.6, 4, "10,000"}, {46837.2, 4, "46,837"}, {999.4, 3, "999"}, {1234.5, 3, "1234"},
	    {0.00012, 3, "0.00012"}, {0.0000397, 3, "0.0000397"}, {-1234567, 3, "-1,234,567"},
	    {123456.75, 9, "123,456.75"}, {1e300, 3, "990,000,000,000,000"}};
	char out[NUMBER_MAX];

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
		CU_ASSERT_STRING_EQUAL(number_text(out, row[i].v, row[i].digits), row[i].text);
}

static void test_seconds_text(void)
{
	char out[NUMBER_MAX];

	CU_ASSERT_STRING_EQUAL(seconds_text(out, 0.0084), "8 ms");
	CU_ASSERT_STRING_EQUAL(seconds_text(out, 6.24), "6.2 s");
	CU_ASSERT_STRING_EQUAL(seconds_text(out, 99.6), "100 s");
	CU_ASSERT_STRING_EQUAL(seconds_text(out, 4800.4), "4800 s");
}

CUNIT_MAIN("history json", {"one stage", test_one_stage}, {"all stages", test_all_stages},
    {"nothing kept", test_empty}, {"mistakes", test_mistakes}, {"digits", test_digits},
    {"digits for people", test_digits_text}, {"seconds for people", test_seconds_text})
