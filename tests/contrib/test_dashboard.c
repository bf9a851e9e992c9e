/* SPDX-License-Identifier: MIT */
/*
 * The dashboard for Grafana as a document: panels that explain themselves, lie beside each other
 * and query the data source that was chosen. metrics.sh and promtool.sh check that its metrics
 * exist and that its queries parse.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cunit_main.h"

#define COLUMNS 24

static json_t *panels;

static const char *text(const json_t *map, const char *key)
{
	const char *value = json_string_value(json_object_get(map, key));

	return value ? value : "";
}

static int number(const json_t *map, const char *key)
{
	const json_t *value = json_object_get(map, key);

	return json_is_integer(value) ? (int)json_integer_value(value) : -1;
}

static bool is_row(const json_t *panel)
{
	return strcmp(text(panel, "type"), "row") == 0;
}

static void test_said(void)
{
	int rows = 0;

	for (size_t i = 0; i < json_array_size(panels); i++) {
		const json_t *p = json_array_get(panels, i);
		const json_t *targets = json_object_get(p, "targets");
		CU_ASSERT(text(p, "title")[0] != '\0');
		rows += is_row(p);
		if (is_row(p))
			continue;
		CU_ASSERT(text(p, "description")[0] != '\0');
		CU_ASSERT_STRING_EQUAL(
		    text(json_object_get(p, "datasource"), "uid"), "${datasource}");
		CU_ASSERT(json_array_size(targets) > 0);
		for (size_t k = 0; k < json_array_size(targets); k++) {
			const json_t *t = json_array_get(targets, k);
			CU_ASSERT_PTR_NOT_NULL(
			    strstr(text(t, "expr"), "job=\"$job\",instance=~\"$instance\""));
			CU_ASSERT(text(t, "legendFormat")[0] != '\0');
			CU_ASSERT(text(t, "refId")[0] == (char)('A' + k));
		}
	}
	CU_ASSERT_EQUAL(rows, 5);
}

static bool apart(const json_t *a, const json_t *b)
{
	return number(a, "x") + number(a, "w") <= number(b, "x") ||
	       number(b, "x") + number(b, "w") <= number(a, "x") ||
	       number(a, "y") + number(a, "h") <= number(b, "y") ||
	       number(b, "y") + number(b, "h") <= number(a, "y");
}

static void test_places(void)
{
	for (size_t i = 0; i < json_array_size(panels); i++) {
		const json_t *p = json_array_get(panels, i), *at = json_object_get(p, "gridPos");
		CU_ASSERT(number(at, "x") >= 0 && number(at, "y") >= 0);
		CU_ASSERT(number(at, "w") > 0 && number(at, "h") > 0);
		CU_ASSERT(number(at, "x") + number(at, "w") <= COLUMNS);
		for (size_t k = 0; k < i; k++) {
			const json_t *other = json_array_get(panels, k);
			CU_ASSERT(number(p, "id") != number(other, "id"));
			CU_ASSERT(apart(at, json_object_get(other, "gridPos")));
		}
	}
}

int main(void)
{
	static const struct cunit_case cases[] = {{"said", test_said}, {"places", test_places}};
	json_error_t error;
	json_t *doc = json_load_file(
	    WEIR_SOURCE_DIR "/contrib/grafana/weir.json", JSON_REJECT_DUPLICATES, &error);

	if (!doc) {
		printf("weir.json:%d: %s\n", error.line, error.text);
		return 1;
	}
	panels = json_object_get(doc, "panels");
	int rc = cunit_run("dashboard", cases, sizeof(cases) / sizeof(cases[0]));
	json_decref(doc);
	return rc;
}
