/* SPDX-License-Identifier: MIT */
/* The text of a tick is the JSON that docs/api.md describes, whatever the names and numbers. */
#include "admin/stream/tick_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"
#include "made_up.h"

static struct made_up m;
static struct sample sample[MADE_UP_STAGES];

static json_t *tick(const struct bottleneck *b)
{
	struct tick_about about = {.hz = 4,
	    .overload = WEIR_ADMISSION_SHADOW,
	    .self_cpu = 0.0125,
	    .watchers = 3,
	    .bottleneck = b};
	struct textbuf t = {0};
	json_error_t err;
	size_t n;

	tick_text(&t, &about, &m.view, sample);
	char *text = textbuf_take(&t, &n);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_PTR_NULL(strchr(text, '\n')); /* one line of an event stream */
	json_t *json = json_loadb(text, n, JSON_REJECT_DUPLICATES, &err);
	if (!json)
		printf("%s: %.80s\n", err.text, text + (err.position > 40 ? err.position - 40 : 0));
	free(text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	return json;
}

static void setup(void)
{
	made_up_init(&m);
	memset(sample, 0, sizeof(sample));
}

static void test_whole(void)
{
	setup();
	sample[MADE_DISK].known = true;
	sample[MADE_DISK].v[SAMPLE_IN] = 123.456;
	sample[MADE_DISK].v[SAMPLE_WAIT_P99] = NAN;
	sample[MADE_DISK].v[SAMPLE_BUSY] = 1;
	sample[MADE_DISK].shed_by[weir_shed_index(WEIR_ETHRESHOLD)] = 2.5;
	sample[MADE_DISK].class_v[1][SAMPLE_CLASS_SHED] = 2.5;
	json_t *t = tick(NULL);
	const json_t *list = json_object_get(t, "stages");
	const json_t *disk = json_array_get(list, MADE_DISK);
	CU_ASSERT_EQUAL(json_array_size(list), MADE_UP_STAGES);
	CU_ASSERT_EQUAL(json_object_size(disk), SAMPLE_FIELDS + 2);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(disk, "in")), 123.46, 1e-9);
	CU_ASSERT_TRUE(json_is_null(json_object_get(disk, "wait_p99")));
	CU_ASSERT_EQUAL(json_object_size(json_object_get(disk, "shed_by")), 1);
	CU_ASSERT_DOUBLE_EQUAL(
	    json_number_value(json_object_get(json_object_get(disk, "shed_by"), "threshold")), 2.5,
	    1e-9);
	/* not seen before: no rates are known */
	CU_ASSERT_TRUE(json_is_null(json_object_get(json_array_get(list, MADE_LOG), "in")));
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(json_object_get(json_array_get(list, MADE_ODD), "name")),
	    m.stage[MADE_ODD].name);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(t, "overload")), "shadow");
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(t, "at")), 1700000000, 1e-6);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(t, "uptime")), 10, 1e-6);
	CU_ASSERT_TRUE(json_is_null(json_object_get(t, "bottleneck")));
	const json_t *bulk = json_array_get(json_object_get(t, "classes"), 1);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(bulk, "shed")), 2.5, 1e-9);
	CU_ASSERT_EQUAL(
	    json_integer_value(json_object_get(json_object_get(t, "self"), "watchers")), 3);
	json_decref(t);
}

/* Names that JSON cannot contain unescaped. */
static void test_names(void)
{
	static const char *const name[] = {
	    "", "\"", "\\", "\x01\x1f\t", "a\xff z", "\xc3\xa9\xe2\x82\xac", "\xe2\x82"};
	static const char *const told[] = {
	    "", "\"", "\\", "\x01\x1f\t", "a? z", "\xc3\xa9\xe2\x82\xac", "??"};

	for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
		setup();
		m.stage[MADE_DISK].name = name[i];
		m.view.class_name[0] = name[i];
		json_t *t = tick(NULL);
		const json_t *disk = json_array_get(json_object_get(t, "stages"), MADE_DISK);
		CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(disk, "name")), told[i]);
		const json_t *class = json_array_get(json_object_get(t, "classes"), 0);
		CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(class, "name")), told[i]);
		json_decref(t);
	}
}

static void test_bottleneck(void)
{
	setup();
	struct bottleneck b = {.known = true,
	    .limits = true,
	    .stage = "disk",
	    .threads = 5,
	    .max = 5,
	    .used = 0.97,
	    .since_ns = 1700000000123456789,
	    .now_ns = 1700000031123456789};
	json_t *t = tick(&b), *same = bottleneck_json(&b);
	json_t *told = json_object_get(t, "bottleneck");
	CU_ASSERT_TRUE(json_equal(told, same));
	CU_ASSERT_TRUE(json_is_true(json_object_get(told, "chronic")));
	CU_ASSERT_DOUBLE_EQUAL(
	    json_number_value(json_object_get(told, "since")), 1700000000.123, 1e-4);
	json_decref(same);
	json_decref(t);
}

/* No stages and no classes. */
static void test_empty(void)
{
	setup();
	m.view.n_stages = m.view.n_classes = 0;
	json_t *t = tick(NULL);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(t, "stages")), 0);
	json_decref(t);
}

CUNIT_MAIN("tick", {"the whole", test_whole}, {"names", test_names},
    {"the bottleneck", test_bottleneck}, {"nothing", test_empty})
