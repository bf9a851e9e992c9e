/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation fails, n = 1, 2, ... until none is left: while a configuration (with an
 * include, overrides and every kind of value) is loaded, explained and drawn, while an invalid one
 * is refused, and while the schema is written. Nothing may crash or leak. A failure returns
 * WEIR_ENOMEM and no spec; a success is complete.
 */
#include <jansson.h>

#include "fault/inject.h"
#include "fixture/memory/counted.h"
#include "unit/config/loading.h"

static const char *const sets[] = {"w.with.size=2MB", "w.with.limit.rate=9", "s.threads=2"};

static void write_files(void)
{
	write_file("main.yaml",
	    "weir: 1\n"
	    "include: 'more*.yaml'\n"
	    "name: ${WEIR_TEST_UNSET:-shop}\n"
	    "admin: { listen: 127.0.0.1:0 }\n"
	    "drain: { grace: 1s }\n"
	    "defaults: { threads: { max: 3 }, queue: { limit: 9 }, admission: { policy: rate } }\n"
	    "classes: { a: { match: { path: /a*, method: GET }, slo: 1s }, b: {} }\n"
	    "groups: { g: { threads: 2, schedule: shared } }\n"
	    "stages:\n"
	    "  web: { use: t.source, with: { listen: \"a${WEIR_TEST_UNSET:-b}\" }, to: w }\n"
	    "  w: { use: t.work, to: { next: s, miss: { stage: w, loop: true } },\n"
	    "       with: { root: ., names: [a, b], limits: [{ path: x }, { path: y, rate: 5 }] } "
	    "}\n");
	write_file("more.yaml", "stages: { s: { use: t.sink, cohort: { by: path } } }\n");
	write_file("wrong.yaml",
	    "weir: 2\n"
	    "stagse: 1\n"
	    "stages:\n"
	    "  w: { use: t.work, with: { limits: [{ rat: 5 }, x], names: [a, [b]] },\n"
	    "       to: { next: { stagge: w } }, threads: { min: x }, w: 1, w: 2 }\n"
	    "  v: { use: t.sink, with: { threads: 1 }, slo: \"${WEIR_TEST_UNSET}\" }\n");
}

static int print_all(const struct weir_spec *spec)
{
	FILE *out = capture_begin();

	if (!out)
		return WEIR_ENOMEM;
	int rc = config_explain(spec, NULL, out);
	if (rc == 0)
		rc = config_graph(spec, "dot", out);
	capture_end(out);
	return rc;
}

/* Load once. Returns the result, and in *fired whether an allocation failed. */
static int load_once(const char *path, int n_sets, bool *fired)
{
	struct weir_spec *spec = NULL;

	loading_errs = (struct weir_errs){0};
	int rc = config_load(path, sets, n_sets, &spec, &loading_errs);
	CU_ASSERT_EQUAL(rc == 0, spec != NULL);
	CU_ASSERT_EQUAL(rc == 0, loading_errs.total == 0);
	if (rc == 0) {
		CU_ASSERT_TRUE(spec->n_stages == 3 && spec->n_classes == 2 && spec->n_groups == 1);
		rc = print_all(spec);
	}
	weir_spec_free(spec);
	*fired = atomic_load(&fault_fired) > 0;
	return rc;
}

/* Let allocation `n` of a load fail. */
static int load_failing(const char *path, int n_sets, long n, bool *fired)
{
	atomic_store(&fault_fired, 0);
	atomic_store(&fault_alloc_in, n);
	int rc = load_once(path, n_sets, fired);
	atomic_store(&fault_alloc_in, -1);
	return rc;
}

/* The same failure again leaves no more memory in use. */
static void check_leaks(const char *path, int n_sets, long n)
{
	long before = memory_blocks();
	bool fired;

	load_failing(path, n_sets, n, &fired);
	CU_ASSERT_EQUAL(memory_blocks(), before);
}

static void sweep(const char *path, int n_sets, int whole, long at_least)
{
	bool fired = true;
	long n = 0;

	for (; fired; n++) {
		int rc = load_failing(path, n_sets, n, &fired);
		check_leaks(path, n_sets, n);
		/* An invalid file may be refused for an error found before memory ran out. */
		CU_ASSERT_TRUE(rc == whole ? !fired || whole != 0 : fired && rc == WEIR_ENOMEM);
	}
	printf("(%ld failures) ", n - 1);
	CU_ASSERT_TRUE(n > at_least);
}

static void test_load(void)
{
	const char *folder = enter_folder();

	types_register();
	write_files();
	sweep("main.yaml", 3, 0, 300);
	sweep("wrong.yaml", 0, WEIR_EINVAL, 100);
	leave_folder(folder);
	capture_free();
}

/* The schema needs thousands of allocations from a few places, so only some are tried. */
#define SCHEMA_STEP 13

static void test_schema(void)
{
	bool fired = true;
	long n = 0;

	types_register();
	json_set_alloc_funcs(__wrap_malloc, free);
	FILE *out = fopen("/dev/null", "w");
	for (; fired; n += SCHEMA_STEP) {
		atomic_store(&fault_fired, 0);
		atomic_store(&fault_alloc_in, n);
		int rc = config_schema(out);
		atomic_store(&fault_alloc_in, -1);
		fired = atomic_load(&fault_fired) > 0;
		CU_ASSERT_EQUAL(rc, fired ? WEIR_ENOMEM : 0);
	}
	fclose(out);
	printf("(%ld failures) ", n / SCHEMA_STEP - 1);
	CU_ASSERT_TRUE(n > 500);
}

CUNIT_MAIN("fault config", {"n-th allocation of a load", test_load},
    {"n-th allocation of the schema", test_schema})
