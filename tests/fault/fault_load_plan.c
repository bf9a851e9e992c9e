/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation fails, n = 1, 2, ... until none is left, while a plan of the load generator
 * is made (site, bodies, log, trace), its schedule is started and its results are summed. Nothing
 * may crash or leak (the sanitizer job checks that). A failure returns WEIR_ENOMEM and a message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fault/inject.h"
#include "load/mix.h"
#include "load/phases.h"
#include "load/result.h"
#include "load/schedule.h"
#include "load/trace.h"
#include "unit/cunit_main.h"

static const char log_text[] = "h - - [01/Jan/2000:00:00:03 +0000] \"GET /3 HTTP/1.1\" 200 5\n"
			       "h - - [01/Jan/2000:00:00:01 +0000] \"PUT /1 HTTP/1.1\" 200 5\n";
static char dir[] = "fault_load.XXXXXX", log_path[64], trace_path[64];

static void write_text(char path[64], const char *name, const char *text)
{
	snprintf(path, 64, "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(f);
	fputs(text, f);
	fclose(f);
}

static int make_plan(struct load_plan *plan, struct weir_err *err)
{
	const struct mix_head head = {.method = "GET", .host = "h"};
	int rc = phases_constant(plan, 100, 1000000000, err);

	plan->n_classes = 3;
	for (int c = 0; c < 3; c++)
		plan->class[c].weight = 1;
	if (rc == 0)
		rc = mix_add_site(&plan->class[0], &head, "specweb99", "", 1, 1, err);
	if (rc == 0)
		rc = mix_add_bodies(&plan->class[1], &head, "/", dir, err);
	if (rc == 0)
		rc = mix_add_log(&plan->class[2], &head, log_path, err);
	if (rc == 0)
		rc = load_trace_replay(plan, &plan->class[2], 1, err);
	if (rc == 0)
		rc = load_trace_read(plan, trace_path, err);
	for (int c = 0; c < 3 && rc == 0; c++)
		rc = load_class_seal(&plan->class[c], err);
	return rc;
}

static int sum_results(const struct load_plan *plan)
{
	static struct hdr ok, shed;
	static struct load_phase_result phase;
	struct load_class_result sum = {0};

	phase.class[0].latency[LOAD_OK] = &ok;
	phase.class[1].latency[LOAD_SHED] = &shed;
	int rc = load_phase_total(plan, &phase, &sum);
	CU_ASSERT_EQUAL(rc == 0, sum.latency[LOAD_SHED] != NULL);
	load_class_result_fini(&sum);
	return rc;
}

static int make_all(void)
{
	static struct load_plan plan;
	struct load_schedule *s = NULL;
	struct load_arrival a;
	struct weir_err err = {0};

	int rc = make_plan(&plan, &err);
	CU_ASSERT_TRUE(rc == 0 || strcmp(err.text, weir_error_text(WEIR_ENOMEM)) == 0);
	if (rc == 0)
		rc = load_schedule_new(&plan, &s);
	CU_ASSERT_EQUAL(rc == 0, s && load_schedule_next(s, &a));
	load_schedule_free(s);
	if (rc == 0)
		rc = sum_results(&plan);
	load_plan_fini(&plan);
	return rc;
}

static void test_plan(void)
{
	long n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
	write_text(log_path, "log", log_text);
	write_text(trace_path, "trace", "0\n1ms\n");
	for (bool fired = true; fired; n++) {
		atomic_store(&fault_fired, 0);
		atomic_store(&fault_alloc_in, n);
		int rc = make_all();
		fired = atomic_load(&fault_fired) > 0;
		CU_ASSERT_EQUAL(rc, fired ? WEIR_ENOMEM : 0);
	}
	atomic_store(&fault_alloc_in, -1);
	CU_ASSERT(n > 50); /* the site alone has 36 files */
	unlink(log_path);
	unlink(trace_path);
	CU_ASSERT_EQUAL(rmdir(dir), 0);
}

CUNIT_MAIN("fault load plan", {"plan, schedule, sums", test_plan})
