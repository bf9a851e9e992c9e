/* SPDX-License-Identifier: MIT */
/* Run files: what is written is read back, and a malformed value is named by its path. */
#include "load/runfile.h"

#include <unistd.h>

#include "cunit_main.h"
#include "fixture/load/made_up_run.h"

#define FILE_NAME "test_runfile.json"

static const struct made_up small = {.label = "small \"one\"",
    .capacity_per_s = 200,
    .kept = 0.9,
    .latency_s = 0.003,
    .errors = 0.01,
    .phase_s = 2,
    .n_loads = 3,
    .started_unix_ns = 1795000000123000000LL,
    .seed = 7};

/* The small run, after writing and reading. */
static json_t *small_run(void)
{
	struct weir_err err = {0};
	json_t *run = NULL;

	CU_ASSERT_EQUAL_FATAL(made_up_write(&small, FILE_NAME), 0);
	CU_ASSERT_EQUAL_FATAL(runfile_read(FILE_NAME, &run, &err), 0);
	unlink(FILE_NAME);
	return run;
}

static const char *text_at(const json_t *run, const char *key)
{
	return json_string_value(json_object_get(run, key));
}

static void test_head(void)
{
	json_t *run = small_run();

	CU_ASSERT_STRING_EQUAL(text_at(run, "label"), "small \"one\"");
	CU_ASSERT_STRING_EQUAL(text_at(run, "started"), "2026-11-18T11:06:40.123Z");
	CU_ASSERT_STRING_EQUAL(text_at(run, "seed"), "7");
	CU_ASSERT_STRING_EQUAL(text_at(run, "mode"), "open");
	CU_ASSERT_TRUE(json_is_null(json_object_get(run, "void")));
	CU_ASSERT_DOUBLE_EQUAL(
	    json_number_value(json_object_get(run, "capacity_per_s")), 200, 1e-9);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(run, "phases")), 4);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(run, "seconds")), 8);
	CU_ASSERT_EQUAL(
	    json_array_size(json_object_get(json_object_get(run, "server"), "each")), 8);
	json_decref(run);
}

/* Good responses per second of a phase, computed from its classes. */
static double goodput(const json_t *phase)
{
	const json_t *classes = json_object_get(phase, "classes");
	double good = 0;

	for (size_t i = 0; i < json_array_size(classes); i++) {
		const json_t *outcomes = json_object_get(json_array_get(classes, i), "outcomes");
		good += json_number_value(json_object_get(outcomes, "ok")) +
			json_number_value(json_object_get(outcomes, "degraded"));
	}
	return good / json_number_value(json_object_get(phase, "took_s"));
}

static void test_phases(void)
{
	json_t *run = small_run();

	for (size_t i = 0; i < 4; i++) {
		const json_t *phase = json_array_get(json_object_get(run, "phases"), i);
		CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(phase, "goodput_per_s")),
		    goodput(phase), 1e-6);
		CU_ASSERT_EQUAL(json_is_true(json_object_get(phase, "warmup")), i == 0);
	}
	json_decref(run);
}

static void test_histogram(void)
{
	struct load_class_result class = {0};
	struct hdr *h = calloc(1, sizeof(*h)), *back = calloc(1, sizeof(*back));
	struct load_plan plan = {.n_classes = 1, .n_phases = 1};
	struct load_phase_result phase = {.took_ns = 1000000000};
	struct load_result result = {.n_phases = 1, .phase = &phase};
	struct runfile_about about = {.argc = 0};
	struct weir_err err = {0};
	json_t *run = NULL;

	snprintf(plan.class[0].name, sizeof(plan.class[0].name), "all");
	for (int64_t ns = 500; ns < 200000000000; ns *= 3)
		hdr_add(h, ns, (uint64_t)ns % 7 + 1);
	class.latency[LOAD_OK] = h;
	phase.class[0] = class;
	CU_ASSERT_EQUAL_FATAL(runfile_write(FILE_NAME, &plan, &result, &about, &err), 0);
	CU_ASSERT_EQUAL_FATAL(runfile_read(FILE_NAME, &run, &err), 0);
	const json_t *one = json_array_get(
	    json_object_get(json_array_get(json_object_get(run, "phases"), 0), "classes"), 0);
	CU_ASSERT_EQUAL(
	    runfile_hdr(json_object_get(json_object_get(one, "latency"), "ok"), back), 0);
	CU_ASSERT_EQUAL(memcmp(h->count, back->count, sizeof(h->count)), 0);
	CU_ASSERT_EQUAL(h->total, back->total);
	CU_ASSERT_EQUAL(h->min_ns, back->min_ns);
	CU_ASSERT_EQUAL(h->max_ns, back->max_ns);
	CU_ASSERT_EQUAL(hdr_quantile_ns(h, 0.99), hdr_quantile_ns(back, 0.99));
	json_decref(run);
	free(h);
	free(back);
	unlink(FILE_NAME);
}

/* ---- malformed files ---- */

/* The value at a path like "phases.1.classes.0": object members by name, list elements by
 * number. */
static json_t *walk(json_t *at, const char *path)
{
	char word[64];
	int n;

	while (*path && sscanf(path, "%63[^.]%n", word, &n) == 1) {
		at = json_is_array(at) ? json_array_get(at, (size_t)atoi(word))
				       : json_object_get(at, word);
		path += n + (path[n] == '.');
	}
	return at;
}

/* Write the small run with `key` of the object at `path` replaced by the JSON `value` (NULL:
 * removed). Returns the message of reading it, in static storage. */
static const char *refusal(const char *path, const char *key, const char *value)
{
	static struct weir_err err;
	json_t *run = small_run(), *read = NULL, *at = walk(run, path);

	memset(&err, 0, sizeof(err));
	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	if (value)
		json_object_set_new(at, key, json_loads(value, JSON_DECODE_ANY, NULL));
	else
		json_object_del(at, key);
	CU_ASSERT_EQUAL(json_dump_file(run, FILE_NAME, 0), 0);
	CU_ASSERT_EQUAL(runfile_read(FILE_NAME, &read, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NULL(read);
	json_decref(read);
	json_decref(run);
	unlink(FILE_NAME);
	return err.text;
}

static const struct {
	const char *path, *key, *value, *said;
} mistakes[] = {
    {"", "weir_run", NULL, "no member 'weir_run'"},
    {"", "weir_run", "2", "another version"},
    {"", "phases", NULL, "phases is missing"},
    {"", "phases", "[]", "phases has 0 entries"},
    {"", "phases", "[1]", "phases[0] is not an object"},
    {"", "mode", "\"ajar\"", "neither 'open' nor 'closed'"},
    {"", "void", "false", "void is not a text"},
    {"", "took_s", "-1", "took_s is not a time"},
    {"", "took_s", "1e300", "took_s is not a time"},
    {"", "server", "[]", "server is not an object"},
    {"plan", "timeout_s", "\"1\"", "plan.timeout_s is not a time"},
    {"plan", "classes", "[]", "plan.classes has 0 entries"},
    {"phases.3.classes.0", "offered", NULL, "phases[3].classes[0].offered is missing"},
    {"phases.3.classes.0", "offered", "1.5", "phases[3].classes[0].offered is not a whole"},
    {"phases.3.classes.0", "offered", "-1", "phases[3].classes[0].offered is not a whole"},
    {"phases.1", "classes", "[]", "phases[1].classes has 0 entries"},
    {"phases.1.classes.1", "name", "\"x\"", "phases[1].classes[1] is not the class"},
    {"phases.1.classes.1.outcomes", "shed", NULL, "phases[1].classes[1].outcomes.shed"},
    {"phases.1.classes.1.latency.ok", "count", "3", "latency.ok has buckets that do not add"},
    {"phases.1.classes.1.latency.ok", "buckets", "[[5000,1]]", "latency.ok has buckets"},
    {"phases.1.classes.1.latency.ok", "buckets", "[[7,1],[6,1]]", "latency.ok has buckets"},
    {"phases.1.classes.1.latency.ok", "buckets", "[3]", "latency.ok has buckets"},
    {"phases.1.classes.1.latency.ok", "max_s", "0", "latency.ok has buckets"},
    {"seconds.4", "phase", "4", "seconds[4] belongs to no phase"},
    {"seconds.4", "t_s", "0.5", "seconds[4] is earlier"},
    {"seconds.4", "classes", "[]", "seconds[4].classes has 0"},
    {"server.each.0", "at_s", "\"now\"", "server.each[0].at_s is not a time"},
};

static void test_mistakes(void)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
		const char *said = refusal(mistakes[i].path, mistakes[i].key, mistakes[i].value);
		CU_ASSERT_PTR_NOT_NULL(strstr(said, mistakes[i].said));
		CU_ASSERT_PTR_NOT_NULL(strstr(said, FILE_NAME));
		if (!strstr(said, mistakes[i].said))
			fprintf(stderr, "\n'%s' was said, not '%s'\n", said, mistakes[i].said);
	}
}

static void test_no_json(void)
{
	struct weir_err err = {0};
	json_t *run = NULL;
	FILE *file = fopen(FILE_NAME, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs("{\"weir_run\": 1,\n oops}", file);
	fclose(file);
	CU_ASSERT_EQUAL(runfile_read(FILE_NAME, &run, &err), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "not JSON: line 2"));
	unlink(FILE_NAME);
	CU_ASSERT_EQUAL(runfile_read(FILE_NAME, &run, &err), WEIR_ESYS);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "cannot be read"));
	CU_ASSERT_PTR_NULL(run);
}

/* A label that is not UTF-8 must not make the run unreadable. */
static void test_bad_label(void)
{
	struct made_up run = small;
	struct weir_err err = {0};
	json_t *json = NULL;

	run.label = "caf\xE9";
	CU_ASSERT_EQUAL(made_up_write(&run, FILE_NAME), 0);
	CU_ASSERT_EQUAL(runfile_read(FILE_NAME, &json, &err), 0);
	CU_ASSERT_STRING_EQUAL(text_at(json, "label"), "(not UTF-8)");
	json_decref(json);
	unlink(FILE_NAME);
}

CUNIT_MAIN("runfile", {"who, when and how", test_head}, {"phases", test_phases},
    {"a histogram comes back", test_histogram}, {"mistakes are named", test_mistakes},
    {"no JSON, no file", test_no_json}, {"a label that is no text", test_bad_label})
