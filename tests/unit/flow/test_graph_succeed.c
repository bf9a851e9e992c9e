/* SPDX-License-Identifier: MIT */
/* One graph follows another: what operators did stays done; and configured values that change in place. */
#include "acts_rig.h"

#include "base/clock.h"
#include "flow/graph_acts.h"

static struct weir_graph *built(struct weir_spec *spec)
{
	struct weir_errs errs = {0};
	struct weir_graph *g = NULL;

	CU_ASSERT_EQUAL_FATAL(weir_graph_build(spec, &g, &errs), 0);
	return g;
}

static struct weir_stage_spec *stage_of(struct weir_spec *spec, const char *name)
{
	for (int i = 0; i < spec->n_stages; i++)
		if (strcmp(spec->stages[i].name, name) == 0)
			return &spec->stages[i];
	abort();
}

/* A graph of `spec` follows `old`, which is drained and freed. */
static struct weir_graph *follow(struct weir_graph *old, struct weir_spec *spec)
{
	struct weir_errs errs = {0};
	struct weir_drain_report report = {0};
	struct weir_graph *g = built(spec);

	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(g, old, &errs), 0);
	CU_ASSERT_EQUAL(set_for(old, "queue.limit", "77", 0), WEIR_EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "again in a moment"));
	CU_ASSERT_EQUAL(weir_graph_undo(old, NULL, why, sizeof(why)), WEIR_EBUSY);
	CU_ASSERT_EQUAL(weir_graph_set_overload(old, WEIR_ADMISSION_OFF), WEIR_EBUSY);
	weir_graph_drain(old, NS_PER_S, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(old);
	return g;
}

static void end(struct weir_graph *g)
{
	struct weir_drain_report report = {0};

	weir_graph_drain(g, NS_PER_S, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(g);
}

static void test_overrides_stay(void)
{
	struct weir_graph *g = fixture_start(two_stages());
	struct weir_spec *spec = two_stages();

	/* min above the new max: it must be carried behind max */
	CU_ASSERT_EQUAL(set_for(g, "threads.max", "9", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "threads.min", "6", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "100", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "200", 3600 * NS_PER_S), 0);
	CU_ASSERT_EQUAL(set_for(g, "cohort.max", "8", 0), 0);
	fixture_set(stage_of(spec, "last"), "threads.max", "3");
	fixture_set(stage_of(spec, "last"), "cohort.max", "8"); /* saved meanwhile */
	struct weir_layers before = layers_of(g, "queue.limit");
	g = follow(g, spec);
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "9");
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.min"), "6");
	CU_ASSERT_STRING_EQUAL(layers_of(g, "threads.max").configured, "3");
	struct weir_layers l = layers_of(g, "queue.limit");
	CU_ASSERT_STRING_EQUAL(l.override, "200");
	CU_ASSERT_STRING_EQUAL(l.kept, "100");
	CU_ASSERT(llabs(l.expires_wall_ns - before.expires_wall_ns) < 60 * NS_PER_S);
	CU_ASSERT_FALSE(layers_of(g, "cohort.max").overridden);
	CU_ASSERT_EQUAL(weir_graph_unset(g, "last", "threads.min", why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.min"), "1");
	end(g);
}

static int count_dropped(struct weir_graph *g, const char *what)
{
	struct weir_decision d[32];
	int n = weir_graph_decisions(g, d, 32), found = 0;

	for (int i = 0; i < n; i++)
		found += strcmp(d[i].action, "dropped") == 0 && strstr(d[i].rule, what) != NULL;
	return found;
}

/* What can not stay is told. */
static void test_dropped(void)
{
	struct weir_graph *g = fixture_start(two_stages());
	struct weir_spec *spec = two_stages();

	weir_log_set_level(WEIR_LOG_ERROR);
	CU_ASSERT_EQUAL(weir_graph_set(g, "first", "threads.max", "7", why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "first", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(set_for(g, "threads.max", "5", 0), 0);
	CU_ASSERT_EQUAL(weir_spec_text(&stage_of(spec, "first")->name, "renamed"), 0);
	g = follow(g, spec);
	CU_ASSERT_EQUAL(count_dropped(g, "threads.max"), 1);
	CU_ASSERT_EQUAL(count_dropped(g, "paused"), 1);
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "5");
	/* The act on the stage that is gone can not be undone any more; the one before it can. */
	struct weir_act act;
	CU_ASSERT_EQUAL(weir_graph_undo(g, &act, why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(act.target, "last.threads.max");
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "2");
	CU_ASSERT_EQUAL(weir_graph_undo(g, &act, why, sizeof(why)), WEIR_ENOENT);
	end(g);
}

/* Acts and decisions go on where they were, in their order and numbers. */
static void test_history_goes_on(void)
{
	struct weir_graph *g = fixture_start(two_stages());
	struct weir_decision d[4];

	CU_ASSERT_EQUAL(set_for(g, "threads.max", "5", 0), 0);
	CU_ASSERT_EQUAL(weir_graph_set_overload(g, WEIR_ADMISSION_SHADOW), 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "last", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	g = follow(g, two_stages());
	CU_ASSERT_EQUAL(newest(g).id, 4);
	CU_ASSERT_STRING_EQUAL(newest(g).what, "reload");
	CU_ASSERT_EQUAL(weir_graph_decisions(g, d, 4), 4);
	CU_ASSERT_EQUAL(d[0].id, 4);
	CU_ASSERT_STRING_EQUAL(d[3].rule, "threads.max = 5");
	CU_ASSERT_EQUAL(weir_graph_overload(g), WEIR_ADMISSION_SHADOW);
	struct weir_graph_view *v;
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	for (int i = 0; i < v->n_stages; i++)
		CU_ASSERT_STRING_EQUAL(v->stages[i].state,
		    strcmp(v->stages[i].name, "last") == 0 ? "paused" : "running");
	weir_graph_view_free(v);
	/* Newest first: the pause, the overload mode, the knob. */
	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(weir_graph_undo(g, NULL, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(weir_graph_overload(g), WEIR_ADMISSION_ENFORCE);
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "2");
	end(g);
}

/* What events cost is known from the start where the work is the same, and only there. */
static void test_costs_stay(void)
{
	struct weir_graph *g = fixture_start(two_stages());
	struct weir_spec *spec = two_stages();
	struct weir_errs errs = {0};
	struct weir_drain_report report;

	sink_first_cost(&weir_graph_stage(g, "last")->sink, 7 * NS_PER_MS);
	sink_first_cost(&weir_graph_stage(g, "first")->sink, 3 * NS_PER_MS);
	CU_ASSERT_EQUAL(weir_spec_text(&stage_of(spec, "first")->name, "renamed"), 0);
	struct weir_graph *next = built(spec);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next, g, &errs), 0);
	const struct sink *k = &weir_graph_stage(next, "last")->sink;
	CU_ASSERT_EQUAL(sink_mean_cost_ns(k), 7 * NS_PER_MS);
	CU_ASSERT_EQUAL(sink_cost_ns(k, 0), 7 * NS_PER_MS);
	CU_ASSERT_EQUAL(sink_mean_cost_ns(&weir_graph_stage(next, "renamed")->sink), 0);
	weir_graph_drain(g, NS_PER_S, &report);
	weir_graph_free(g);
	end(next);
}

/* ---- in place ---- */

static int configure(struct weir_graph *g, struct weir_spec *spec, int *n)
{
	struct weir_graph *wanted = built(spec);
	int rc = weir_graph_configure(g, wanted, n);

	weir_graph_free(wanted);
	return rc;
}

/* A reload is his who ordered it; of nobody in particular it is the "reload"'s. */
static void test_whose(void)
{
	struct weir_graph *g = fixture_start(two_stages());
	struct weir_spec *spec = two_stages();
	struct weir_decision d;
	int n;

	g = follow(g, two_stages());
	CU_ASSERT_STRING_EQUAL(newest(g).actor, "reload");
	weir_graph_act_as("anna");
	g = follow(g, two_stages());
	CU_ASSERT_STRING_EQUAL(newest(g).actor, "anna");
	CU_ASSERT_STRING_EQUAL(newest(g).to, "a new graph of 2 stages");
	CU_ASSERT_EQUAL(weir_graph_decisions(g, &d, 1), 1);
	CU_ASSERT_STRING_EQUAL(d.actor, "reload");
	fixture_set(stage_of(spec, "last"), "queue.limit", "50");
	CU_ASSERT_EQUAL(configure(g, spec, &n), 0);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_STRING_EQUAL(newest(g).actor, "anna");
	CU_ASSERT_STRING_EQUAL(newest(g).what, "reload");
	CU_ASSERT_STRING_EQUAL(newest(g).target, "last.queue.limit");
	weir_graph_act_as(NULL);
	end(g);
}

static void test_configure(void)
{
	struct weir_graph *g = fixture_start(two_stages());
	struct weir_spec *spec = two_stages();
	int n;

	/* Both bounds rise beyond the old maximum, and the limit is overridden. */
	fixture_set(stage_of(spec, "last"), "threads.min", "4");
	fixture_set(stage_of(spec, "last"), "threads.max", "8");
	fixture_set(stage_of(spec, "last"), "queue.limit", "50");
	fixture_set(stage_of(spec, "first"), "cohort.max", "3");
	spec->grace_ns = 7 * NS_PER_S;
	spec->overload_mode = WEIR_ADMISSION_SHADOW;
	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "99", 0), 0);
	CU_ASSERT_EQUAL(configure(g, spec, &n), 0);
	CU_ASSERT_EQUAL(n, 4);
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.min"), "4");
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "8");
	CU_ASSERT_FALSE(layers_of(g, "threads.max").overridden);
	CU_ASSERT_STRING_EQUAL(value_of(g, "queue.limit"), "99");
	CU_ASSERT_STRING_EQUAL(layers_of(g, "queue.limit").configured, "50");
	CU_ASSERT_EQUAL(weir_graph_unset(g, "last", "queue.limit", why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(value_of(g, "queue.limit"), "50");
	CU_ASSERT_EQUAL(weir_graph_spec(g)->grace_ns, 7 * NS_PER_S);
	CU_ASSERT_EQUAL(weir_graph_overload(g), WEIR_ADMISSION_SHADOW);
	/* The same again: nothing is left to do. */
	spec = two_stages();
	fixture_set(stage_of(spec, "last"), "threads.min", "4");
	fixture_set(stage_of(spec, "last"), "threads.max", "8");
	fixture_set(stage_of(spec, "last"), "queue.limit", "50");
	fixture_set(stage_of(spec, "first"), "cohort.max", "3");
	CU_ASSERT_EQUAL(configure(g, spec, &n), 0);
	CU_ASSERT_EQUAL(n, 0);
	end(g);
}

/* A minimum that an overriding maximum does not allow: nothing is changed, not even what could be. */
static void test_configure_refused(void)
{
	struct weir_graph *g = fixture_start(two_stages());
	struct weir_spec *spec = two_stages();
	int n;

	fixture_set(stage_of(spec, "last"), "queue.limit", "50");
	fixture_set(stage_of(spec, "last"), "threads.min", "4");
	fixture_set(stage_of(spec, "last"), "threads.max", "8");
	CU_ASSERT_EQUAL(set_for(g, "threads.max", "3", 0), 0);
	CU_ASSERT_EQUAL(configure(g, spec, &n), WEIR_EBUSY);
	CU_ASSERT_EQUAL(n, 0);
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.min"), "1");
	CU_ASSERT_STRING_EQUAL(value_of(g, "queue.limit"), "4096");
	CU_ASSERT_STRING_EQUAL(layers_of(g, "threads.max").configured, "2");
	end(g);
}

/* What was saved is configured then, and no override any more. */
static void test_configure_saved(void)
{
	struct weir_graph *g = fixture_start(two_stages());
	struct weir_spec *spec = two_stages();
	int n;

	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "50", 0), 0);
	fixture_set(stage_of(spec, "last"), "queue.limit", "50");
	CU_ASSERT_EQUAL(configure(g, spec, &n), 0);
	CU_ASSERT_FALSE(layers_of(g, "queue.limit").overridden);
	CU_ASSERT_STRING_EQUAL(layers_of(g, "queue.limit").configured, "50");
	CU_ASSERT_STRING_EQUAL(value_of(g, "queue.limit"), "50");
	end(g);
}

static void test_prepare(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("graph succeed", {"types are known", test_prepare},
    {"overrides stay", test_overrides_stay}, {"what can not stay is told", test_dropped},
    {"journal and acts go on", test_history_goes_on}, {"costs stay", test_costs_stay},
    {"configured in place", test_configure}, {"all or nothing", test_configure_refused},
    {"what was saved", test_configure_saved}, {"whose it is", test_whose})
