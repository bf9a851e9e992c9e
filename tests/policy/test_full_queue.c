/* SPDX-License-Identifier: MIT */
/* A flood of a low class, at a queue that reaches its limit long before waits become long and at
 * one that never does: the high class is served. In virtual time, with the server's own sinks and
 * queues. */
#include "virtual_server.h"

#define WARM_NS (5 * NS_PER_S)
#define END_NS  (125 * NS_PER_S)

struct flood {
	const char *limit, *policy, *threads, *slo;
	int n_classes;
	int64_t service_ns, end_ns;
	double high_per_s, low_per_s;
};

static struct weir_graph *build(const struct flood *f)
{
	struct weir_spec *spec = weir_spec_new("flood");
	struct weir_stage_spec *s = fixture_stage(spec, "work", "t.end", NULL);
	char name[2] = "a";

	for (int c = 0; c < f->n_classes; c++, name[0]++)
		weir_spec_add_class(spec, name);
	weir_spec_text(&s->threads.policy, "static");
	fixture_set(s, "threads.min", f->threads);
	fixture_set(s, "threads.max", f->threads);
	fixture_set(s, "queue.limit", f->limit);
	fixture_set(s, "admission.policy", f->policy);
	if (f->slo)
		fixture_set(s, "slo", f->slo);
	return fixture_build(spec);
}

/* Returns the success rate of the high class. */
static double run(const struct flood *f, int64_t slo_ns, double *utilisation)
{
	struct vs *s = vs_new(build(f), slo_ns);
	double all_per_s = f->high_per_s + f->low_per_s;
	struct vs_stage *v = vs_load(s, "work", all_per_s, f->service_ns);

	v->high = f->high_per_s / all_per_s;
	vs_run(s, f->end_ns / 25, f->end_ns);
	double success = 1 - (double)v->lost[0] / (double)v->sent[0];
	*utilisation = vs_good_threads(s, v) / strtod(f->threads, NULL);
	vs_free(s);
	return success;
}

static void check(const struct flood *f)
{
	double utilisation, success = run(f, 500 * NS_PER_MS, &utilisation);

	CU_ASSERT_TRUE(success >= 0.999);
	CU_ASSERT_TRUE(utilisation >= 0.95);
	if (success < 0.999 || utilisation < 0.95 || getenv("WEIR_MATRIX"))
		printf("\n    %s, limit %s, %d classes: success %.5f, threads used %.3f", f->policy,
		    f->limit, f->n_classes, success, utilisation);
}

static void test_small_limit(void)
{
	static const char *const policies[] = {"weir", "none"};
	struct flood f = {.limit = "16",
	    .threads = "4",
	    .n_classes = 2,
	    .service_ns = 5 * NS_PER_MS,
	    .end_ns = END_NS,
	    .high_per_s = 100,
	    .low_per_s = 2500};

	for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
		f.policy = policies[i];
		check(&f);
	}
	f.policy = "weir";
	f.n_classes = 4; /* the flood belongs to the last of them */
	check(&f);
}

/* The default limit: full after 5 ms, while no wait is long yet. */
static void test_default_limit(void)
{
	struct flood f = {.limit = "4096",
	    .policy = "weir",
	    .threads = "4",
	    .n_classes = 2,
	    .service_ns = 5 * NS_PER_US,
	    .end_ns = 2 * NS_PER_S,
	    .high_per_s = 80000,
	    .low_per_s = 1000000};

	check(&f);
}

/* The high class asks for half of a thread whose services take 8 ms on average. Alone it would have
 * 0.2 % of its events end after the 100 ms of the objective (M/M/1: exp(-62.5 / 10)). The cap may
 * refuse a few of those that would have been in time, but not the 2.6 % that wait for longer than
 * half the objective. */
static void test_high_class_asks_for_half(void)
{
	struct flood f = {.limit = "4096",
	    .policy = "weir",
	    .threads = "1",
	    .slo = "100ms",
	    .n_classes = 2,
	    .service_ns = 8 * NS_PER_MS,
	    .end_ns = END_NS,
	    .high_per_s = 62.5,
	    .low_per_s = 1200};
	double utilisation, success = run(&f, 100 * NS_PER_MS, &utilisation);

	CU_ASSERT_TRUE(success >= 0.98);
	CU_ASSERT_TRUE(utilisation >= 0.95);
	printf("\n    success %.5f, threads used %.3f", success, utilisation);
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
}

CUNIT_MAIN("a flood at a full queue", {"types are known", test_prepare},
    {"small limit", test_small_limit}, {"default limit", test_default_limit},
    {"high class asks for half", test_high_class_asks_for_half})
