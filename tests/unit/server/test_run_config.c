/* SPDX-License-Identifier: MIT */
/* The body of /api/v1/config: files, lines and values, without what comes from the environment. */
#include "server/run_config.h"

#include "server/reload_report.h"
#include "unit/config/loading.h"

static const char *folder;

static struct weir_spec *loaded(void)
{
	static const char *const sets[] = {"w.queue.limit=5"};

	folder = enter_folder();
	setenv("WEIR_TEST_WORD", "secret", 1);
	write_file("main.yaml", "weir: 1\n"
				"include: more.yaml\n"
				"stages:\n"
				"  w: { use: t.work,\n"
				"       with: { root: \"${WEIR_TEST_WORD}\" } }\n");
	write_file("more.yaml", "name: shop # \xc3\xa4 \"x\"\n");
	struct weir_spec *spec = load_path("main.yaml", sets, 1);
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	return spec;
}

static json_t *shown(const struct weir_spec *spec, const struct run_config *runs)
{
	char *text = run_config_json(spec, runs);

	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	CU_ASSERT_PTR_NULL(strstr(text, "secret"));
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

/* The lines as "file:line path value". */
static const char *lines_of(const json_t *json)
{
	static char all[2000];
	const json_t *line;
	size_t i, n = 0;

	all[0] = '\0';
	json_array_foreach(json_object_get(json, "lines"), i, line)
	{
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s:%d %s %s\n", text(line, "file"),
		    (int)json_integer_value(json_object_get(line, "line")), text(line, "path"),
		    text(line, "value"));
	}
	return all;
}

static void test_files_and_lines(void)
{
	struct weir_spec *spec = loaded();
	json_t *json = shown(spec, &(struct run_config){.folder = ""});
	const json_t *files = json_object_get(json, "files");

	CU_ASSERT_EQUAL_FATAL(json_array_size(files), 2);
	CU_ASSERT_STRING_EQUAL(text(json_array_get(files, 0), "file"), "main.yaml");
	CU_ASSERT_EQUAL(
	    strncmp(text(json_array_get(files, 0), "text"), "weir: 1\ninclude: ", 17), 0);
	CU_ASSERT_STRING_EQUAL(text(json_array_get(files, 1), "file"), "more.yaml");
	CU_ASSERT_STRING_EQUAL(
	    text(json_array_get(files, 1), "text"), "name: shop # \xc3\xa4 \"x\"\n\n");
	CU_ASSERT_STRING_EQUAL(lines_of(json), "more.yaml:1 name shop\n"
					       "main.yaml:4 stages.w.use t.work\n"
					       "main.yaml:5 stages.w.with.root (null)\n");
	/* nothing else is known */
	CU_ASSERT_EQUAL(json_object_size(json_object_get(json, "values")), 0);
	CU_ASSERT_TRUE(json_is_object(json_object_get(json, "values")));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(json, "sets")), 0);
	CU_ASSERT_EQUAL(json_object_size(json), 4);
	json_decref(json);
	weir_spec_free(spec);
	leave_folder(folder);
}

/* Hidden values are null; without a list of them, all are. */
static void test_values(void)
{
	static const char *const sets[] = {"w.queue.limit=5", "w.slo=a=b"};
	struct weir_spec *spec = loaded();
	json_t *hidden = report_hidden(spec);
	struct run_config runs = {
	    .values = "name shop\nstages.w.with.root secret\na.b c  d \nempty \nnone\nlast x",
	    .hidden = hidden,
	    .folder = "",
	    .n_sets = 2,
	    .sets = sets};

	CU_ASSERT_EQUAL(json_object_size(hidden), 1);
	json_t *json = shown(spec, &runs);
	const json_t *values = json_object_get(json, "values");
	CU_ASSERT_EQUAL(json_object_size(values), 6);
	CU_ASSERT_STRING_EQUAL(text(values, "name"), "shop");
	CU_ASSERT_TRUE(json_is_null(json_object_get(values, "stages.w.with.root")));
	CU_ASSERT_STRING_EQUAL(text(values, "a.b"), "c  d ");
	CU_ASSERT_STRING_EQUAL(text(values, "empty"), "");
	CU_ASSERT_STRING_EQUAL(text(values, "none"), "");
	CU_ASSERT_STRING_EQUAL(text(values, "last"), "x");
	const json_t *names = json_object_get(json, "sets");
	CU_ASSERT_EQUAL_FATAL(json_array_size(names), 2);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(names, 0)), "w.queue.limit");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(names, 1)), "w.slo");
	json_decref(json);
	runs.hidden = NULL;
	json = shown(spec, &runs);
	values = json_object_get(json, "values");
	CU_ASSERT_EQUAL(json_object_size(values), 6);
	CU_ASSERT_TRUE(json_is_null(json_object_get(values, "name")));
	json_decref(json);
	json_decref(hidden);
	weir_spec_free(spec);
	leave_folder(folder);
}

/* File names are as the user gave them. */
static void test_folder(void)
{
	struct weir_spec *spec = loaded();
	char path[4096], begins[4096];

	weir_spec_free(spec);
	CU_ASSERT_PTR_NOT_NULL_FATAL(getcwd(begins, sizeof(begins) - 1));
	snprintf(path, sizeof(path), "%.4000s/main.yaml", begins);
	strcat(begins, "/");
	spec = load_path(path, NULL, 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	json_t *json = shown(spec, &(struct run_config){.folder = begins});
	const json_t *files = json_object_get(json, "files");
	CU_ASSERT_STRING_EQUAL(text(json_array_get(files, 0), "file"), "main.yaml");
	CU_ASSERT_STRING_EQUAL(text(json_array_get(files, 1), "file"), "more.yaml");
	CU_ASSERT_EQUAL(strncmp(lines_of(json), "more.yaml:1 name shop\n", 22), 0);
	json_decref(json);
	json = shown(spec, &(struct run_config){.folder = "/elsewhere/"});
	CU_ASSERT_STRING_EQUAL(
	    text(json_array_get(json_object_get(json, "files"), 0), "file"), path);
	json_decref(json);
	weir_spec_free(spec);
	leave_folder(folder);
}

CUNIT_MAIN("the running configuration", {"files and lines", test_files_and_lines},
    {"values", test_values}, {"the folder", test_folder})
