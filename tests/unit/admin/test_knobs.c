/* SPDX-License-Identifier: MIT */
/*
 * The knobs of a stage as JSON: rows of the framework's table with the values and overrides that
 * the graph reports. When any allocation fails, there is no result instead of a partial one.
 */
#include "cunit_main.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "admin/api/knobs.h"

/* ---- a graph with two values ---- */

static int value_of(void *arg, const char *stage, const char *knob, char *buf, size_t size)
{
	(void)arg;
	if (strcmp(stage, "disk") != 0)
		return WEIR_ENOENT;
	if (strcmp(knob, "threads.max") == 0)
		snprintf(buf, size, "8");
	else if (strcmp(knob, "queue.limit") == 0)
		snprintf(buf, size, "64");
	else
		return WEIR_ENOENT;
	return 0;
}

static int layers_of(void *arg, const char *stage, const char *knob, struct weir_override *l)
{
	(void)arg;
	(void)stage;
	if (strcmp(knob, "threads.max") != 0)
		return WEIR_ENOENT;
	*l = (struct weir_override){
	    .overridden = true, .expires_wall_ns = 1500000000, .has_permanent = true};
	strcpy(l->configured, "2");
	strcpy(l->override, "8");
	strcpy(l->permanent, "4");
	return 0;
}

static const struct admin_source two_values = {.get = value_of, .layers = layers_of};

static const char *text(const json_t *row, const char *member)
{
	const char *s = json_string_value(json_object_get(row, member));

	return s ? s : "(none)";
}

/* ---- tests ---- */

static void test_rows(void)
{
	json_t *all = knobs_json(&two_values, "disk", "no.such.type");

	CU_ASSERT_EQUAL_FATAL(json_array_size(all), 2);
	for (size_t i = 0; i < 2; i++) {
		const json_t *row = json_array_get(all, i);
		bool threads = strcmp(text(row, "name"), "threads.max") == 0;
		CU_ASSERT_STRING_EQUAL(text(row, "value"), threads ? "8" : "64");
		CU_ASSERT_STRING_EQUAL(text(row, "effective"), threads ? "8" : "64");
		CU_ASSERT_STRING_EQUAL(text(row, "configured"), threads ? "2" : "64");
		CU_ASSERT_STRING_EQUAL(text(row, "overridden"), threads ? "8" : "(none)");
		CU_ASSERT_STRING_EQUAL(text(row, "kept"), threads ? "4" : "(none)");
		CU_ASSERT_EQUAL(
		    json_real_value(json_object_get(row, "expires_at")), threads ? 1.5 : 0);
	}
	json_decref(all);
}

static void test_one(void)
{
	bool found = false;
	json_t *row = knob_json(&two_values, "disk", "no.such.type", "queue.limit", &found);

	CU_ASSERT_TRUE(found);
	CU_ASSERT_STRING_EQUAL(text(row, "name"), "queue.limit");
	json_decref(row);
	row = knob_json(&two_values, "disk", "no.such.type", "queue.none", &found);
	CU_ASSERT_FALSE(found);
	CU_ASSERT_PTR_NULL(row);
}

/* ---- allocation failures ---- */

/* the number of the allocation that fails, from 1; allocations not yet freed */
static long failing, in_use;

static void *failing_malloc(size_t size)
{
	void *p = --failing == 0 ? NULL : malloc(size);

	in_use += p != NULL;
	return p;
}

static void counted_free(void *p)
{
	in_use -= p != NULL;
	free(p);
}

static json_t *make(bool one)
{
	bool found = false;

	if (!one)
		return knobs_json(&two_values, "disk", "no.such.type");
	json_t *row = knob_json(&two_values, "disk", "no.such.type", "threads.max", &found);
	CU_ASSERT_TRUE(found); /* out of memory is not reported as "no such knob" */
	return row;
}

static void test_no_memory(void)
{
	json_set_alloc_funcs(failing_malloc, counted_free);
	for (int one = 0; one < 2; one++) {
		json_t *json = NULL;
		long n = 0;
		while (!json) {
			failing = ++n;
			json = make(one);
			if (!json)
				CU_ASSERT_EQUAL(in_use, 0);
		}
		CU_ASSERT_TRUE(failing > 0); /* a result only when no allocation failed */
		CU_ASSERT_TRUE(n > 20);
		json_decref(json);
		CU_ASSERT_EQUAL(in_use, 0);
	}
	json_set_alloc_funcs(malloc, free);
}

CUNIT_MAIN(
    "knobs", {"rows", test_rows}, {"one", test_one}, {"no memory, at any point", test_no_memory})
