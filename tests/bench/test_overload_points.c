/* SPDX-License-Identifier: MIT */
/* The arithmetic of the overload report: rows, values derived from a series, medians, verdicts. */
#include "report/overload/points.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cunit_main.h"

static struct over_rows rows;
static struct over_points points;
static struct weir_err err;

/* Read `text` as a file of rows. */
static int read_rows(const char *text)
{
	char path[] = "overload_rows_XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");

	memset(&rows, 0, sizeof(rows));
	memset(&err, 0, sizeof(err));
	fputs(text, f);
	fclose(f);
	int rc = over_rows_read(path, &rows, &err);
	unlink(path);
	return rc;
}

#define HEAD "{\"row\":\"run\",\"where\":\"sim\",\"capacity_per_s\":100,\"for_s\":10,\"slo_s\":0.1,"

static void test_errors(void)
{
	CU_ASSERT_EQUAL(read_rows("{\"row\":\"about\"}\n\nno json\n"), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, ":3: "));
	over_rows_fini(&rows);
	CU_ASSERT_EQUAL(read_rows(HEAD "\"workload\":\"W1\",\"load\":1}\n"), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "'policy' is missing"));
	over_rows_fini(&rows);
	CU_ASSERT_EQUAL(read_rows(HEAD "\"workload\":\"W1\",\"policy\":\"weir\",\"load\":1,"
				       "\"series\":{\"bin_s\":1,\"offered\":[1],\"good\":[]}}\n"),
	    WEIR_EINVAL);
	over_rows_fini(&rows);
	CU_ASSERT_EQUAL(over_rows_read("absent/rows", &rows, &err), WEIR_ESYS);
	over_rows_fini(&rows);
}

static void add(char *text, size_t size, const char *policy, double load, int round, double goodput,
    const char *more)
{
	size_t n = strlen(text);

	snprintf(text + n, size - n,
	    HEAD
	    "\"workload\":\"W2\",\"policy\":\"%s\",\"load\":%g,\"round\":%d,\"goodput\":%g%s}\n",
	    policy, load, round, goodput, more);
}

static void test_medians(void)
{
	char text[4096] = "";

	add(text, sizeof(text), "none", 2, 1, 0.5, "");
	add(text, sizeof(text), "weir", 2, 1, 0.96, "");
	add(text, sizeof(text), "weir", 2, 2, 0.90, ",\"p99\":0.4");
	add(text, sizeof(text), "weir", 2, 3, 0.10, ",\"void\":true");
	add(text, sizeof(text), "weir", 0.5, 1, 0.5, ",\"p99\":null");
	add(text, sizeof(text), "codel", 2, 1, 0.7, ",\"void\":true");
	CU_ASSERT_EQUAL_FATAL(read_rows(text), 0);
	CU_ASSERT_EQUAL_FATAL(over_points_of(&rows, &points), 0);
	CU_ASSERT_EQUAL(points.n, 4);
	CU_ASSERT_DOUBLE_EQUAL(points.point[0].first->load, 0.5, 0);
	const struct over_point *p = over_point_find(&points, "sim", "W2", "weir", 2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(p->rounds, 2);
	CU_ASSERT_EQUAL(p->voids, 1);
	CU_ASSERT_DOUBLE_EQUAL(p->of[OVER_GOODPUT].mid, 0.93, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(p->of[OVER_GOODPUT].low, 0.90, 1e-9);
	CU_ASSERT_EQUAL(p->of[OVER_P99].n, 1);
	CU_ASSERT_EQUAL(p->of[OVER_JAIN].n, 0);

	struct over_names policy = over_policies(&points, "sim");
	CU_ASSERT_EQUAL_FATAL(policy.n, 3);
	CU_ASSERT_STRING_EQUAL(policy.name[0], "weir");
	CU_ASSERT_EQUAL(over_policies(&points, "server").n, 0);

	struct over_standing s = over_judge(&points, &over_targets[0], "sim", "weir");
	CU_ASSERT_TRUE(s.known); /* the point at 0.5 does not belong to this target */
	CU_ASSERT_FALSE(s.met);
	CU_ASSERT_DOUBLE_EQUAL(s.limit - s.value, 0.02, 1e-9);
	s = over_judge(&points, &over_targets[0], "sim", "codel"); /* void rows only: no verdict */
	CU_ASSERT_FALSE(s.known);
	CU_ASSERT_FALSE(s.met);
	over_points_fini(&points);
	over_rows_fini(&rows);
}

static void test_classes(void)
{
	char text[1024] = "";

	add(text, sizeof(text), "weir", 2, 1, 1,
	    ",\"classes\":[{\"name\":\"c0\",\"offered\":200,\"good\":199},"
	    "{\"name\":\"c1\",\"offered\":10,\"good\":9},{\"name\":\"c2\",\"offered\":1000,"
	    "\"good\":10}]");
	CU_ASSERT_EQUAL_FATAL(read_rows(text), 0);
	CU_ASSERT_DOUBLE_EQUAL(rows.row[0].value[OVER_TOP], 0.995, 1e-9);
	/* A class has a share of 20 of the 1,000 that can be served: c1 got 9 of the 10 that it
	 * offered, c2 got 10. */
	CU_ASSERT_DOUBLE_EQUAL(rows.row[0].value[OVER_GUARANTEE], 0.5, 1e-9);
	over_rows_fini(&rows);
}

/* A run of 100 bins of 0.1 s, in units of the capacity. The load is 0.8, and 5 in a spike from 2 s
 * to 4 s. All of the load is good before the spike and from second `back` on, `in` of it during the
 * spike, and nothing between. */
static struct over_row spike(double in, double back)
{
	static double offered[100], good[100];
	struct over_row r = {.from_s = 2, .to_s = 4, .bin_s = 0.1, .n_bins = 100};

	for (int i = 0; i < 100; i++) {
		bool inside = i >= 20 && i < 40;
		offered[i] = inside ? 5 : 0.8;
		good[i] = inside ? in : i < 20 || i >= lround(back * 10) ? 0.8 : 0;
	}
	for (int m = 0; m < OVER_N_METRICS; m++)
		r.value[m] = NAN;
	r.offered = offered;
	r.good = good;
	return r;
}

static void test_spike(void)
{
	struct over_row r = spike(1, 4);

	over_derive(&r);
	CU_ASSERT_DOUBLE_EQUAL(r.value[OVER_CONVERGE], 0, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(r.value[OVER_RECOVER], 0, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(r.value[OVER_AFTER], 1, 1e-9);
	r = spike(1, 6);
	over_derive(&r);
	/* The tolerance is one bin: a second that begins in the last bad bin may be 95 % good. */
	CU_ASSERT_DOUBLE_EQUAL(r.value[OVER_RECOVER], 2, 0.11);
	CU_ASSERT_DOUBLE_EQUAL(r.value[OVER_AFTER], 1, 1e-9);
	r = spike(0.5, 100);
	over_derive(&r);
	CU_ASSERT_TRUE(isinf(r.value[OVER_RECOVER]));
	CU_ASSERT_DOUBLE_EQUAL(r.value[OVER_AFTER], 0, 1e-9);
	CU_ASSERT_TRUE(isnan(r.value[OVER_SETTLE]));
}

/* Retries after the spike increase the offered load; they need not succeed. */
static void test_retries(void)
{
	struct over_row r = spike(1, 4);

	for (int i = 40; i < 100; i++)
		r.offered[i] = 1.6;
	over_derive(&r);
	CU_ASSERT_DOUBLE_EQUAL(r.value[OVER_RECOVER], 0, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(r.value[OVER_AFTER], 1, 1e-9);
}

static void test_pool(void)
{
	double at[] = {0, 2.5, 3, 4, 5, 9}, threads[] = {4, 8, 16, 14, 18, 18};
	struct over_row r = spike(0, 5);

	for (int i = 20; i < 100; i++)
		r.offered[i] = 0.8;
	r.to_s = 10;
	r.threads_s = at;
	r.threads = threads;
	r.n_threads = 6;
	over_derive(&r);
	CU_ASSERT_DOUBLE_EQUAL(r.value[OVER_REVERSALS], 2 / (10 / 60.0), 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(r.value[OVER_SETTLE], 3, 0.11);
	CU_ASSERT_DOUBLE_EQUAL(r.value[OVER_OF_BEST], 1, 1e-9);
	CU_ASSERT_TRUE(isnan(r.value[OVER_RECOVER]));
}

static void test_numbers(void)
{
	char text[FORMAT_MAX];

	CU_ASSERT_STRING_EQUAL(over_print_2(text, 0.984), "0.98");
	CU_ASSERT_STRING_EQUAL(over_print_share(text, 0.9996), "99.96 %");
	CU_ASSERT_STRING_EQUAL(over_print_share(text, 0.123), "12.3 %");
	CU_ASSERT_STRING_EQUAL(over_print_time(text, INFINITY), "never");
	CU_ASSERT_STRING_EQUAL(over_print_load(text, 1.2), "1.2x");
}

CUNIT_MAIN("overload points", {"errors", test_errors}, {"medians", test_medians},
    {"classes", test_classes}, {"spike", test_spike}, {"retries", test_retries},
    {"pool", test_pool}, {"numbers", test_numbers})
