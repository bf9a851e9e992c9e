/* SPDX-License-Identifier: MIT */
/* One graph replaces another and keeps the changes of operators; configured values that change in
 * place. */
#include "acts_rig.h"

#include "base/clock.h"
#include "operate/changes.h"

static struct weir_graph *built(struct weir_spec *spec)
{
	struct weir_errs errs = {0};
	struct weir_graph *g = NULL;

	CU_ASSERT_EQUAL_FATAL(weir_graph_build(spec, &g, &errs), 0);
	return g;
}

/* A graph of `spec` replaces `old`, which is drained and freed. */
static struct weir_graph *follow(struct weir_graph *old, struct weir_spec *spec)
{
	struct weir_errs errs = {0};
	struct weir_drain_report report = {0};
	struct weir_graph *g = built(spec);

	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(g, old, &errs), 0);
	for (int i = 0; i < g->n_stages; i++) /* `old` is freed below */
		CU_ASSERT_PTR_NULL(g->stages[i]->predecessor);
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

	/* min is above the new max: max must be carried over first */
	CU_ASSERT_EQUAL(set_for(g, "threads.max", "9", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "threads.min", "6", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "100", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "queue.limit", "200", 3600 * NS_PER_S), 0);
	CU_ASSERT_EQUAL(set_for(g, "cohort.max", "8", 0), 0);
	fixture_set(stage_of(spec, "last"), "threads.max", "3");
	fixture_set(stage_of(spec, "last"), "cohort.max", "8"); /* saved meanwhile */
	struct weir_override before = layers_of(g, "queue.limit");
	g = follow(g, spec);
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "9");
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.min"), "6");
	CU_ASSERT_STRING_EQUAL(layers_of(g, "threads.max").configured, "3");
	struct weir_override l = layers_of(g, "queue.limit");
	CU_ASSERT_STRING_EQUAL(l.override, "200");
	CU_ASSERT_STRING_EQUAL(l.permanent, "100");
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

/* Changes that cannot be kept are reported. */
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
	/* The change to the removed stage can no longer be undone, the one before it can. */
	struct weir_change act;
	CU_ASSERT_EQUAL(weir_graph_undo(g, &act, why, sizeof(why)), 0);
	CU_ASSERT_STRING_EQUAL(act.target, "last.threads.max");
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.max"), "2");
	CU_ASSERT_EQUAL(weir_graph_undo(g, &act, why, sizeof(why)), WEIR_ENOENT);
	end(g);
}

static int undo(struct weir_graph *g, struct weir_change *act)
{
	why[0] = '\0';
	return weir_graph_undo(g, act, why, sizeof(why));
}

/* A change to a stage that no longer has its own pool: undoing it neither crashes nor blocks older
 * changes. */
static void undo_behind(const char *group)
{
	struct weir_graph *g = fixture_start(two_stages());
	struct weir_spec *spec = two_stages();
	struct weir_change act;

	weir_log_set_level(WEIR_LOG_ERROR);
	CU_ASSERT_EQUAL(set_for(g, "cohort.max", "8", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "threads.max", "5", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "threads.max", "6", 3600 * NS_PER_S), 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "last", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "last", WEIR_STEER_RUN, why, sizeof(why)), 0);
	if (group) {
		weir_spec_add_group(spec, group);
		weir_spec_text(&stage_of(spec, "last")->group, group);
	} else {
		fixture_set(stage_of(spec, "last"), "threads", "inline");
	}
	g = follow(g, spec);
	if (group) { /* its queue can still be paused */
		CU_ASSERT_EQUAL(undo(g, &act), 0);
		CU_ASSERT_STRING_EQUAL(act.what, "resume");
		CU_ASSERT_EQUAL(undo(g, &act), 0);
		CU_ASSERT_STRING_EQUAL(act.what, "pause");
	}
	CU_ASSERT_EQUAL(undo(g, &act), 0);
	CU_ASSERT_STRING_EQUAL(act.target, "last.cohort.max");
	CU_ASSERT_STRING_EQUAL(value_of(g, "cohort.max"), "64");
	CU_ASSERT_EQUAL(undo(g, &act), WEIR_ENOENT);
	end(g);
}

static void test_undo_where_inline(void)
{
	undo_behind(NULL);
	undo_behind("shared");
}

/* A value that cannot be restored is reported once, and earlier changes can still be undone. */
static void test_undo_set_aside(void)
{
	struct weir_spec *spec = two_stages(), *next = two_stages();
	struct weir_change act;

	weir_log_set_level(WEIR_LOG_ERROR);
	fixture_set(stage_of(spec, "last"), "threads.max", "6");
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL(set_for(g, "cohort.max", "8", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "threads.min", "5", 0), 0);
	CU_ASSERT_EQUAL(weir_graph_unset(g, "last", "threads.min", why, sizeof(why)), 0);
	g = follow(g, next); /* in `next`, threads.max is 2 */
	CU_ASSERT_EQUAL(undo(g, &act), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "threads.min 5 would be greater than threads.max 2"));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(why, "'unset' of 'last.threads.min' can no longer be undone"));
	/* threads.min is 1 already, as before it was set, so the undo goes on to the change before */
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.min"), "1");
	CU_ASSERT_EQUAL(undo(g, &act), 0);
	CU_ASSERT_STRING_EQUAL(act.target, "last.cohort.max");
	CU_ASSERT_EQUAL(undo(g, &act), WEIR_ENOENT);
	end(g);
}

/* The history of changes and decisions continues, with the same order and numbers. */
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

/* Event costs are known from the start if the work is the same, and only then. */
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

static const struct weir_stage_ops other_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.other",
    .summary = "finishes events in another way",
    .accepts = &probe_type,
    .handle = end_handle};

/* The cost of `first` in a graph that replaces one in which it was 3 ms. In both, `last` is inline
 * after it. */
static int64_t cost_with_behind(const char *use_behind)
{
	struct weir_spec *spec = two_stages(), *next_spec = two_stages();
	struct weir_errs errs = {0};
	struct weir_drain_report report;

	stage_of(spec, "last")->inlined = stage_of(next_spec, "last")->inlined = true;
	CU_ASSERT_EQUAL(weir_spec_text(&stage_of(next_spec, "last")->use, use_behind), 0);
	struct weir_graph *g = fixture_start(spec), *next = built(next_spec);
	sink_first_cost(&weir_graph_stage(g, "first")->sink, 3 * NS_PER_MS);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next, g, &errs), 0);
	int64_t cost_ns = sink_mean_cost_ns(&weir_graph_stage(next, "first")->sink);
	weir_graph_drain(g, NS_PER_S, &report);
	weir_graph_free(g);
	end(next);
	return cost_ns;
}

/* The work of the inline stages after a stage is part of its cost. */
static void test_costs_of_other_work_behind_go(void)
{
	CU_ASSERT_EQUAL(cost_with_behind("t.end"), 3 * NS_PER_MS);
	CU_ASSERT_EQUAL(cost_with_behind("t.other"), 0);
}

static int refuse_thread(struct weir_stage *st)
{
	(void)st;
	return WEIR_ESYS;
}

static const struct weir_stage_ops picky_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.picky",
    .summary = "refuses threads",
    .accepts = &probe_type,
    .thread_init = refuse_thread,
    .handle = end_handle};

/* A thread attached to the old graph starts the reload, which fails, and continues to work. Later
 * it drains the old graph as a thread of the new one. */
static void test_by_an_attached_thread(void)
{
	struct weir_graph *g = fixture_start(two_stages());
	struct weir_spec *picky = two_stages();
	struct weir_errs errs = {0};
	struct weir_drain_report report;

	weir_thread_attach(g, "test");
	CU_ASSERT_EQUAL(weir_spec_text(&stage_of(picky, "last")->use, "t.picky"), 0);
	struct weir_graph *refused = built(picky);
	CU_ASSERT_EQUAL(weir_graph_succeed(refused, g, &errs), WEIR_ESYS);
	weir_graph_free(refused);
	fixture_offer_all(weir_graph_stage(g, "first"), probes, 10, 10);
	FIXTURE_AWAIT(fixture_ended() == 10);
	struct weir_graph *next = built(two_stages()); /* its spec prepares the probes again */
	fixture_offer_all(weir_graph_stage(g, "first"), probes, 20, 10);
	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(next, g, &errs), 0);
	FIXTURE_AWAIT(fixture_ended() == 20);
	weir_thread_detach();
	weir_thread_attach(next, "test");
	weir_graph_drain(g, NS_PER_S, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	weir_graph_free(g);
	fixture_offer_all(weir_graph_stage(next, "first"), probes + 20, 10, 10);
	FIXTURE_AWAIT(fixture_ended() == 30);
	weir_thread_detach();
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

/* A reload is attributed to the operator who ordered it, otherwise to "reload". */
static void test_whose(void)
{
	struct weir_graph *g = fixture_start(two_stages());
	struct weir_spec *spec = two_stages();
	struct weir_decision d;
	int n;

	g = follow(g, two_stages());
	CU_ASSERT_STRING_EQUAL(newest(g).actor, "reload");
	weir_graph_change_as("anna");
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
	weir_graph_change_as(NULL);
	end(g);
}

static void test_configure(void)
{
	struct weir_graph *g = fixture_start(two_stages());
	struct weir_spec *spec = two_stages();
	int n;

	/* Both bounds rise above the old maximum, and the limit is overridden. */
	fixture_set(stage_of(spec, "last"), "threads.min", "4");
	fixture_set(stage_of(spec, "last"), "threads.max", "8");
	fixture_set(stage_of(spec, "last"), "queue.limit", "50");
	fixture_set(stage_of(spec, "first"), "cohort.max", "3");
	spec->grace_ns = 7 * NS_PER_S;
	spec->payload_bytes = 12345;
	spec->family_bytes = 2345;
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
	CU_ASSERT_EQUAL(atomic_load(&g->payloads->limit), 12345);
	CU_ASSERT_EQUAL(atomic_load(&g->payloads->family_limit), 2345);
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

/* `threads` of a group member has no effect. It neither prevents changes of other knobs nor is it
 * overridden: it follows the file. */
static struct weir_spec *member(const char *min)
{
	struct weir_spec *spec = two_stages();

	weir_spec_add_group(spec, "shared");
	weir_spec_text(&stage_of(spec, "last")->group, "shared");
	fixture_set(stage_of(spec, "last"), "threads.min", min);
	return spec;
}

static void test_threads_of_a_member(void)
{
	struct weir_graph *g = fixture_start(member("3"));
	int n;

	CU_ASSERT_EQUAL(set_for(g, "admission.rate", "5", 0), 0);
	CU_ASSERT_EQUAL(set_for(g, "threads.min", "1", 0), WEIR_EINVAL);
	CU_ASSERT_EQUAL(set_for(g, "degrade.below", "100%", 0), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(value_of(g, "degrade.below"), "20%");
	CU_ASSERT_EQUAL(configure(g, member("1"), &n), 0);
	CU_ASSERT_EQUAL(n, 1);
	CU_ASSERT_STRING_EQUAL(value_of(g, "threads.min"), "1");
	CU_ASSERT_EQUAL(configure(g, member("1"), &n), 0);
	CU_ASSERT_EQUAL(n, 0);
	end(g);
}

/* An overriding maximum does not allow the new minimum: nothing changes, not even the other
 * values. */
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

/* A saved override becomes the configured value and is no longer an override. */
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

/* A permanent value that was saved under a temporary one is no override any more, whether the graph
 * is replaced or configured in place: it would hide later changes of the file. */
static void test_saved_beneath(void)
{
	for (int in_place = 0; in_place < 2; in_place++) {
		struct weir_graph *g = fixture_start(two_stages());
		struct weir_spec *spec = two_stages();
		int n;
		CU_ASSERT_EQUAL(set_for(g, "queue.limit", "50", 0), 0);
		CU_ASSERT_EQUAL(set_for(g, "queue.limit", "70", 3600 * NS_PER_S), 0);
		fixture_set(stage_of(spec, "last"), "queue.limit", "50");
		if (in_place) {
			CU_ASSERT_EQUAL(configure(g, spec, &n), 0);
		} else {
			g = follow(g, spec);
		}
		CU_ASSERT_STRING_EQUAL(value_of(g, "queue.limit"), "70");
		CU_ASSERT_FALSE(layers_of(g, "queue.limit").has_permanent);
		graph_expire(g, clock_now_ns() + 3601 * NS_PER_S);
		CU_ASSERT_STRING_EQUAL(value_of(g, "queue.limit"), "50");
		CU_ASSERT_FALSE(layers_of(g, "queue.limit").overridden);
		end(g);
	}
}

static void test_prepare(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&other_ops);
	fixture_register(&picky_ops);
}

CUNIT_MAIN("graph succeed", {"types are known", test_prepare},
    {"overrides stay", test_overrides_stay}, {"what can not stay is told", test_dropped},
    {"journal and acts go on", test_history_goes_on}, {"costs stay", test_costs_stay},
    {"costs of other work behind go", test_costs_of_other_work_behind_go},
    {"by an attached thread", test_by_an_attached_thread}, {"configured in place", test_configure},
    {"all or nothing", test_configure_refused},
    {"undo where a stage is inline now", test_undo_where_inline},
    {"what cannot be undone is set aside", test_undo_set_aside},
    {"threads of a member of a group", test_threads_of_a_member},
    {"what was saved", test_configure_saved}, {"saved beneath", test_saved_beneath},
    {"whose it is", test_whose})
