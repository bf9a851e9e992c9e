/* SPDX-License-Identifier: MIT */
/*
 * Prometheus text: checked line by line by a small strict parser of the format, then searched for
 * samples by their full name.
 */
#include "admin/api/view_prom.h"

#include <ctype.h>
#include <math.h>

#include "cunit_main.h"
#include "made_up.h"
#include "admin/metrics/process.h"
#include "admin/metrics/prom.h"

/* A small parser of the format. It checks that HELP and TYPE occur once and before their samples,
 * that samples of a family are together, and that no sample is repeated. */
static bool is_name(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalpha((unsigned char)p[i]) && p[i] != '_' && p[i] != ':' &&
		    (i == 0 || !isdigit((unsigned char)p[i])))
			return false;
	return n > 0;
}

/* Returns the position after {a="b",c="d"}; NULL when it is malformed. */
static const char *skip_labels(const char *p)
{
	if (*p != '{')
		return p;
	do {
		size_t n = strcspn(++p, "=");
		if (!is_name(p, n) || p[n + 1] != '"')
			return NULL;
		for (p += n + 2; *p != '"'; p++) {
			if (*p == '\\' && !strchr("\\\"n", *++p))
				return NULL;
			if (*p == '\n' || *p == '\0')
				return NULL;
		}
		p++;
	} while (*p == ',');
	return *p == '}' ? p + 1 : NULL;
}

static bool sample_ok(const char *line, const char *family)
{
	size_t n = strcspn(line, "{ ");
	size_t f = strlen(family);
	char *end;

	if (!is_name(line, n) || strncmp(line, family, f) != 0)
		return false;
	size_t rest = n - f;
	if (rest != 0 && (rest != 7 || strncmp(line + f, "_bucket", 7) != 0) &&
	    (rest != 4 || strncmp(line + f, "_sum", 4) != 0) &&
	    (rest != 6 || strncmp(line + f, "_count", 6) != 0))
		return false;
	const char *p = skip_labels(line + n);
	if (!p || *p != ' ')
		return false;
	(void)strtod(p + 1, &end);
	return end != p + 1 && *end == '\n';
}

static const char *next_line(const char *line)
{
	return strchr(line, '\n') + 1;
}

/* Does the sample at `line` (name and labels) occur again further down? */
static bool repeats(const char *line)
{
	char key[512] = "\n";
	const char *end = skip_labels(line + strcspn(line, "{ "));

	memcpy(key + 1, line, (size_t)(end - line) + 1);
	key[1 + end - line + 1] = '\0';
	return strstr(line, key) != NULL;
}

static bool head_ok(const char *line, char *family, size_t size)
{
	char type[512];
	size_t n = strcspn(line + 7, " ");

	if (strncmp(line, "# HELP ", 7) != 0 || !is_name(line + 7, n) || n >= size)
		return false;
	snprintf(family, size, "%.*s", (int)n, line + 7);
	snprintf(type, sizeof(type), "\n# TYPE %s ", family);
	const char *second = next_line(line);
	return strncmp(second, type + 1, strlen(type) - 1) == 0 && !strstr(second, type);
}

static bool is_well_formed(const char *text)
{
	char family[200] = "";
	const char *line = text;

	while (*line) {
		if (*line == '#') {
			if (!head_ok(line, family, sizeof(family)))
				return false;
			line = next_line(next_line(line));
			continue;
		}
		if (!sample_ok(line, family) || repeats(line))
			return false;
		line = next_line(line);
	}
	return true;
}

/* The value of the sample with the name and labels `key`; NAN when it does not exist. */
static double value_of(const char *text, const char *key)
{
	char line[512];

	snprintf(line, sizeof(line), "\n%s ", key);
	const char *p = strstr(text, line);
	return p ? strtod(p + strlen(line), NULL) : NAN;
}

static char *print(struct made_up *m)
{
	struct textbuf out = {0};
	size_t n;

	view_prom(&m->view, &out);
	return textbuf_take(&out, &n);
}

#define EQUAL(text, key, expected) CU_ASSERT_DOUBLE_EQUAL(value_of(text, key), expected, 1e-12)

static void test_well_formed(void)
{
	struct made_up m;

	made_up_init(&m);
	char *text = print(&m);
	CU_ASSERT_TRUE(is_well_formed(text));
	EQUAL(text, "weir_ready", 1);
	EQUAL(text, "weir_uptime_seconds", 10);
	EQUAL(text, "weir_controller_decisions_total", 2);
	EQUAL(text, "weir_stage_queue_length{stage=\"disk\"}", 187);
	EQUAL(text, "weir_stage_held{stage=\"disk\"}", 3);
	EQUAL(text, "weir_stage_awaiting{stage=\"disk\"}", 2);
	EQUAL(text, "weir_stage_spawned_total{stage=\"disk\",class=\"bulk\"}", 40);
	EQUAL(text, "weir_stage_departed_total{stage=\"disk\",class=\"bulk\"}", 38);
	EQUAL(text, "weir_stage_children_ended_total{stage=\"disk\",how=\"joined\"}", 20);
	EQUAL(text, "weir_stage_children_ended_total{stage=\"disk\",how=\"orphaned\"}", 5);
	EQUAL(text, "weir_stage_children_refused_total{stage=\"disk\"}", 4);
	EQUAL(text, "weir_stage_children_ended_total{stage=\"disk\",how=\"cancelled\"}", 4);
	EQUAL(text, "weir_stage_events_in_total{stage=\"disk\",class=\"bulk\"}", 900);
	EQUAL(text, "weir_stage_events_out_total{stage=\"web\",outlet=\"done\"}", 1001);
	EQUAL(
	    text, "weir_stage_shed_total{stage=\"disk\",class=\"bulk\",reason=\"threshold\"}", 20);
	EQUAL(text, "weir_stage_shed_total{stage=\"disk\",class=\"bulk\",reason=\"rate\"}", 0);
	EQUAL(text, "weir_stage_threads{stage=\"disk\",state=\"busy\"}", 4);
	EQUAL(text, "weir_stage_threads_limit{stage=\"disk\",bound=\"max\"}", 32);
	EQUAL(text, "weir_stage_thread_seconds_total{stage=\"disk\",state=\"runnable\"}", 1);
	EQUAL(text, "weir_stage_thread_seconds_total{stage=\"disk\",state=\"idle\"}", 4.5);
	EQUAL(text, "weir_stage_busy_seconds_total{stage=\"disk\"}", 1.500000001);
	EQUAL(text, "weir_stage_oldest_wait_seconds{stage=\"disk\"}", 0.0312);
	EQUAL(text, "weir_stage_cohort_size_bucket{stage=\"disk\",le=\"1\"}", 40);
	EQUAL(text, "weir_stage_cohort_size_bucket{stage=\"disk\",le=\"4\"}", 70);
	EQUAL(text, "weir_stage_cohort_size_bucket{stage=\"disk\",le=\"256\"}", 100);
	EQUAL(text, "weir_stage_cohort_size_bucket{stage=\"disk\",le=\"+Inf\"}", 100);
	EQUAL(text, "weir_stage_cohort_size_sum{stage=\"disk\"}", 250);
	EQUAL(text, "weir_stage_cohort_size_count{stage=\"disk\"}", 100);
	free(text);
}

static void test_not_ready(void)
{
	struct made_up m;

	made_up_init(&m);
	m.view.draining = true;
	char *text = print(&m);
	EQUAL(text, "weir_ready", 0);
	free(text);
	m.view.draining = false;
	memcpy(m.view.stages[MADE_DISK].trouble, "it", sizeof("it"));
	text = print(&m);
	EQUAL(text, "weir_ready", 0);
	free(text);
}

/* Buckets are exact at their bounds and monotone, and +Inf is the count. */
static void test_histogram(void)
{
#define WAIT "weir_stage_queue_wait_seconds"
#define OF   "{stage=\"disk\",class=\"bulk\""
	struct made_up m;

	made_up_init(&m);
	char *text = print(&m);
	EQUAL(text, WAIT "_bucket" OF ",le=\"0.00005\"}", 3);
	EQUAL(text, WAIT "_bucket" OF ",le=\"0.0001\"}", 7);
	EQUAL(text, WAIT "_bucket" OF ",le=\"0.02\"}", 7);
	EQUAL(text, WAIT "_bucket" OF ",le=\"0.05\"}", 607);
	EQUAL(text, WAIT "_bucket" OF ",le=\"20\"}", 607);
	EQUAL(text, WAIT "_bucket" OF ",le=\"+Inf\"}", 610);
	EQUAL(text, WAIT "_count" OF "}", 610);
	CU_ASSERT_DOUBLE_EQUAL(value_of(text, WAIT "_sum" OF "}"),
	    3 * 50e-6 + 4 * 51e-6 + 600 * 0.031 + 2 * 25 + 200, 1e-9);
	const char *p = text;
	double last = -1;
	int n = 0;
	while ((p = strstr(p, "\n" WAIT "_bucket" OF))) {
		double v = strtod(strchr(++p, ' '), NULL);
		CU_ASSERT_TRUE(v >= last);
		last = v;
		n++;
	}
	CU_ASSERT_EQUAL(n, 19); /* 1-2-5 from 50 us to 20 s, and +Inf */
	free(text);
}

/* Every documented bound is a bound of the histogram, or the sums would not be exact. */
static void test_bounds(void)
{
	static const int digit[] = {1, 2, 5};

	for (int64_t decade = 10000; decade <= 10000000000; decade *= 10) {
		for (int i = 0; i < 3; i++) {
			int64_t bound = decade * digit[i];
			if (bound < 50000 || bound > 20000000000)
				continue;
			CU_ASSERT_EQUAL(weir_hist_upper_ns(weir_hist_bucket(bound)), bound);
			CU_ASSERT_NOT_EQUAL(weir_hist_bucket(bound), weir_hist_bucket(bound + 1));
		}
	}
}

/* A stage without a queue has no queue metrics: a limit of 0 would make every chart divide by
 * zero. */
static void test_places(void)
{
	struct made_up m;

	made_up_init(&m);
	char *text = print(&m);
	CU_ASSERT_TRUE(isnan(value_of(text, "weir_stage_queue_limit{stage=\"web\"}")));
	CU_ASSERT_TRUE(isnan(value_of(text, "weir_stage_queue_limit{stage=\"cache\"}")));
	EQUAL(text, "weir_stage_queue_limit{stage=\"log\"}", 0);
	EQUAL(text, "weir_stage_in_flight{stage=\"cache\"}", 0);
	free(text);
}

static void test_type_metrics(void)
{
	struct made_up m;

	made_up_init(&m);
	char *text = print(&m);
	EQUAL(text, "weir_cache_hits_total{stage=\"cache\"}", 41);
	EQUAL(text, "weir_cache_hits_total{stage=\"disk\"}", 7);
	EQUAL(text, "weir_cache_bytes{stage=\"cache\"}", -5);
	EQUAL(text, "weir_read_bytes_total{stage=\"disk\"}", 123456789);
	/* Left out: the same name of another kind, a name of the framework, an invalid name. */
	CU_ASSERT_TRUE(isnan(value_of(text, "weir_cache_bytes{stage=\"disk\"}")));
	CU_ASSERT_DOUBLE_EQUAL(
	    value_of(text, "weir_stage_busy_seconds_total{stage=\"disk\"}"), 1.500000001, 1e-9);
	CU_ASSERT_PTR_NULL(strstr(text, "no good"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "says \"a\\\\b\"\\nin two lines"));
	free(text);
}

static void test_escapes(void)
{
	struct made_up m;

	made_up_init(&m);
	char *text = print(&m);
	EQUAL(text, "weir_stage_in_flight{stage=\"<img src=x onerror=alert(1)>\\\"\\\\\\n\"}", 0);
	free(text);
}

static const char *printed(struct textbuf *out)
{
	return out->p + strlen("x ");
}

static void test_numbers(void)
{
	static const struct {
		int64_t ns;
		const char *text;
	} row[] = {{0, "0\n"}, {1, "0.000000001\n"}, {50000, "0.00005\n"}, {1500000000, "1.5\n"},
	    {-2500000000, "-2.5\n"}, {INT64_MAX, "9223372036.854775807\n"},
	    {INT64_MIN, "-9223372036.854775808\n"}};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		struct textbuf out = {0};
		prom_begin(&out, "x", "");
		prom_seconds(&out, row[i].ns);
		CU_ASSERT_STRING_EQUAL(printed(&out), row[i].text);
		textbuf_fini(&out);
	}
	struct textbuf out = {0};
	prom_begin(&out, "x", "");
	prom_real(&out, NAN);
	prom_begin(&out, "x", "");
	prom_real(&out, -INFINITY);
	CU_ASSERT_STRING_EQUAL(out.p, "x NaN\nx -Inf\n");
	textbuf_fini(&out);
}

static void test_process(void)
{
	struct process process;
	struct textbuf out = {0};

	process_init(&process);
	textbuf_append(&out, "", 0);
	process_prom(&process, &out);
	CU_ASSERT_TRUE(is_well_formed(out.p));
	CU_ASSERT_TRUE(value_of(out.p, "process_resident_memory_bytes") > 100000);
	CU_ASSERT_TRUE(value_of(out.p, "process_cpu_seconds_total") >= 0);
	CU_ASSERT_EQUAL(value_of(out.p, "process_threads"), 1);
	double fds = value_of(out.p, "process_open_fds");
	CU_ASSERT_TRUE(fds >= 5); /* stdin, stdout, stderr, and the two of struct process */
	CU_ASSERT_TRUE(value_of(out.p, "process_max_fds") >= fds);
	CU_ASSERT_TRUE(value_of(out.p, "process_start_time_seconds") > 1e9);
	json_t *json = process_json(&process);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json, "open_files")), fds);
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json, "threads")), 1);
	CU_ASSERT_TRUE(json_integer_value(json_object_get(json, "resident_bytes")) > 100000);
	CU_ASSERT_TRUE(json_integer_value(json_object_get(json, "cores")) >= 1);
	json_decref(json);
	textbuf_fini(&out);
	process_fini(&process);
}

/* Without /proc the rest of a scrape is still valid. */
static void test_no_proc(void)
{
	struct process process = {.stat_fd = -1};
	struct textbuf out = {0};

	process_prom(&process, &out);
	CU_ASSERT_TRUE(is_well_formed(out.p));
	CU_ASSERT_TRUE(isnan(value_of(out.p, "process_open_fds")));
	textbuf_fini(&out);
}

/* docs/api.md names every family except those of stage types. */
static void test_documented(void)
{
	static char doc[1 << 17];
	char name[200];
	struct made_up m;
	FILE *f = fopen(WEIR_SOURCE_DIR "/docs/api.md", "r");

	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	doc[fread(doc, 1, sizeof(doc) - 1, f)] = '\0';
	fclose(f);
	made_up_init(&m);
	for (int i = 0; i < m.view.n_stages; i++)
		m.stage[i].n_metrics = 0;
	char *text = print(&m);
	for (const char *p = text; (p = strstr(p, "# TYPE ")); p++) {
		snprintf(name, sizeof(name), "`%.*s`", (int)strcspn(p + 7, " "), p + 7);
		CU_ASSERT_PTR_NOT_NULL(strstr(doc, name));
	}
	free(text);
}

CUNIT_MAIN("view_prom", {"well-formed, and the values", test_well_formed},
    {"not ready while draining", test_not_ready}, {"histogram", test_histogram},
    {"bounds are exact", test_bounds}, {"stages without a queue", test_places},
    {"metrics of stage types", test_type_metrics}, {"escapes", test_escapes},
    {"numbers", test_numbers}, {"process", test_process}, {"no /proc", test_no_proc},
    {"docs", test_documented})
