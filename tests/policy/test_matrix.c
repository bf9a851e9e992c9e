/* SPDX-License-Identifier: MIT */
/*
 * Overload control in every mode and placement of a stage, with every policy, in virtual time.
 *
 * Policy `weir`: at three times the capacity of the stage, answers in time use at least 0.95 of the
 * capacity, and 99 of 100 answers come within the objective. The other policies guarantee less
 * (docs/overload.md); for them, threads that cannot have a partition must not change the result.
 * WEIR_MATRIX=1 prints the figures of all cells.
 */
#include "virtual_server.h"

#define SLO_NS  (500 * NS_PER_MS)
#define WARM_NS (5 * NS_PER_S)
#define END_NS  (25 * NS_PER_S)
#define LOAD    3
#define LIMIT   "4096"

enum placement { OWN_1, OWN_4, GROUP_ALONE, GROUP_QUIET, GROUP_LOADED, PLACEMENTS };

static const char *const placements[] = {"own pool of 1", "own pool of 4", "alone in a group of 4",
    "in a group of 4, others at 1/16", "in a group of 4, others at 3"};
static const char *const modes[] = {"shared", "exclusive", "partitioned"};

/* A cell of the matrix. */
struct square {
	enum weir_stage_mode mode;
	enum placement placement;
	const char *policy;
	int64_t service_ns, others_ns; /* of the stage, and of the other stages of the group */
};

struct figures {
	double goodput; /* fraction of what is possible */
	double p99;     /* fraction of the objective; of the worst stage */
};

/* ---- the graph ---- */

static void place(struct weir_spec *spec, struct weir_stage_spec *s, enum placement p)
{
	if (p <= OWN_4) {
		const char *n = p == OWN_1 ? "1" : "4";
		weir_spec_text(&s->threads.policy, "static");
		fixture_set(s, "threads.min", n);
		fixture_set(s, "threads.max", n);
		return;
	}
	struct weir_group_spec *g =
	    spec->n_groups ? &spec->groups[0] : weir_spec_add_group(spec, "all");
	weir_spec_text(&g->threads.policy, "static");
	g->threads.min = g->threads.max = 4;
	weir_spec_text(&s->group, "all");
}

static struct weir_graph *build(const struct square *c)
{
	struct weir_spec *spec = weir_spec_new("matrix");
	struct weir_stage_spec *s = fixture_stage(spec, "work", "t.end", NULL);

	s->mode = c->mode;
	if (c->mode == WEIR_MODE_PARTITIONED)
		weir_spec_text(&s->key, "producer");
	fixture_set(s, "admission.policy", c->policy);
	fixture_set(s, "queue.limit", LIMIT);
	if (strcmp(c->policy, "rate") == 0)
		fixture_set(s, "admission.rate", "100");
	place(spec, s, c->placement);
	for (int i = 0; i < 2 && c->placement >= GROUP_QUIET; i++) {
		s = fixture_stage(spec, i ? "other" : "another", "t.end", NULL);
		fixture_set(s, "admission.policy", "weir");
		place(spec, s, c->placement);
	}
	return fixture_build(spec);
}

/* ---- a cell ---- */

static double threads_of(const struct square *c)
{
	return c->placement == OWN_1 || c->mode == WEIR_MODE_EXCLUSIVE ? 1 : 4;
}

/* How many threads' worth of the offered work can be done. */
static double possible(const struct square *c)
{
	if (c->placement == GROUP_LOADED)
		return 4;
	return c->placement == GROUP_QUIET ? fmin(threads_of(c) + 0.5, 4) : threads_of(c);
}

static struct figures run(const struct square *c)
{
	struct vs *s = vs_new(build(c), SLO_NS);
	double beside = c->placement == GROUP_QUIET    ? 0.25
			: c->placement == GROUP_LOADED ? 4 * LOAD
						       : 0;
	struct figures f = {0};
	double good = 0;

	vs_load(s, "work", LOAD * threads_of(c) * 1e9 / (double)c->service_ns, c->service_ns);
	for (int i = 0; i < 2 && beside > 0; i++)
		vs_load(
		    s, i ? "other" : "another", beside * 1e9 / (double)c->others_ns, c->others_ns);
	vs_run(s, WARM_NS, END_NS);
	for (int i = 0; i < s->n_stages; i++) {
		good += vs_good_threads(s, &s->at[i]);
		f.p99 = fmax(f.p99, (double)vs_p99_ns(&s->at[i]) / (double)SLO_NS);
	}
	f.goodput = good / possible(c);
	vs_free(s);
	if (getenv("WEIR_MATRIX"))
		printf("\n    %-9s %-11s %-32s %5.3g %5.3g ms: goodput %.3f, p99 %.2f of the "
		       "objective",
		    c->policy, modes[c->mode], placements[c->placement],
		    (double)c->service_ns * 1e-6, (double)c->others_ns * 1e-6, f.goodput, f.p99);
	return f;
}

static void must_hold(const struct square *c)
{
	struct figures f = run(c);
	bool holds = f.goodput >= 0.95 && f.p99 <= 1;

	CU_ASSERT_TRUE(holds);
	if (!holds)
		printf("\n    %s, %s: goodput %.3f, p99 %.2f of the objective", modes[c->mode],
		    placements[c->placement], f.goodput, f.p99);
}

/* ---- tests ---- */

static void all_cells(int64_t service_ns, int64_t others_ns)
{
	struct square c = {.policy = "weir", .service_ns = service_ns, .others_ns = others_ns};

	for (int mode = WEIR_MODE_SHARED; mode <= WEIR_MODE_PARTITIONED; mode++) {
		for (int p = OWN_1; p < PLACEMENTS; p++) {
			c.mode = (enum weir_stage_mode)mode;
			c.placement = (enum placement)p;
			must_hold(&c);
		}
	}
}

static void test_weir(void)
{
	all_cells(5 * NS_PER_MS, 5 * NS_PER_MS);
}

/* The other stages keep the threads for ten times as long, or for a tenth of the time. */
static void test_unequal_services(void)
{
	all_cells(2 * NS_PER_MS, 20 * NS_PER_MS);
	all_cells(20 * NS_PER_MS, 2 * NS_PER_MS);
}

/* Half of the load has one key: its thread is offered 3 times its capacity, the others 1 time. */
static void test_one_hot_key(void)
{
	struct square c = {.mode = WEIR_MODE_PARTITIONED,
	    .placement = OWN_4,
	    .policy = "weir",
	    .service_ns = 5 * NS_PER_MS};
	struct vs *s = vs_new(build(&c), SLO_NS);

	vs_load(s, "work", 4.8 * 200, c.service_ns)->hot = 0.5;
	vs_run(s, WARM_NS, END_NS);
	double good = vs_good_threads(s, &s->at[0]);
	double p99 = (double)vs_p99_ns(&s->at[0]) / (double)SLO_NS;
	CU_ASSERT_TRUE(good >= 0.95 * (1 + 3 * 0.6));
	CU_ASSERT_TRUE(p99 <= 1);
	if (getenv("WEIR_MATRIX"))
		printf("\n    one hot key: %.3f threads in time, p99 %.2f of the objective", good,
		    p99);
	vs_free(s);
}

/* Threads without a partition are useless: an exclusive stage in a pool of four behaves like one in
 * a pool of one. */
static void test_other_policies(void)
{
	for (int i = 0; admission_at(i); i++) {
		struct square c = {.mode = WEIR_MODE_EXCLUSIVE,
		    .placement = OWN_1,
		    .policy = admission_at(i)->name,
		    .service_ns = 5 * NS_PER_MS};
		struct figures one = run(&c);
		c.placement = OWN_4;
		struct figures four = run(&c);
		CU_ASSERT_DOUBLE_EQUAL(four.goodput, one.goodput, 0.02);
		CU_ASSERT_DOUBLE_EQUAL(four.p99, one.p99, 0.02);
		for (int mode = WEIR_MODE_SHARED;
		     getenv("WEIR_MATRIX") && mode <= WEIR_MODE_PARTITIONED; mode++) {
			c.mode = (enum weir_stage_mode)mode;
			for (int p = OWN_1; p < PLACEMENTS; p++) {
				c.placement = (enum placement)p;
				c.others_ns = c.service_ns;
				run(&c);
			}
		}
	}
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
}

CUNIT_MAIN("modes and placements", {"types are known", test_prepare}, {"weir", test_weir},
    {"unequal services", test_unequal_services}, {"one hot key", test_one_hot_key},
    {"other policies", test_other_policies})
