/* SPDX-License-Identifier: MIT */
/* What weir_spec_check refuses of core groups, and of their knobs elsewhere. */
#include "fixture/graph/probes.h"
#include "plan_types.h"

#include "base/task.h"
#include "sched/next.h"

static const struct weir_stage_ops blocks_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.blocks",
    .summary = "x",
    .flags = WEIR_STAGE_BLOCKS,
    .handle = end_handle};

static const struct weir_stage_ops single_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.single",
    .summary = "x",
    .flags = WEIR_STAGE_SINGLE,
    .handle = end_handle};

static const struct weir_stage_ops kept_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.kept",
    .summary = "x",
    .flags = WEIR_STAGE_REPLICABLE,
    .handle = end_handle};

static struct weir_errs errs;

static bool said(const char *text)
{
	for (int i = 0; i < errs.n; i++)
		if (strstr(errs.err[i].text, text))
			return true;
	return false;
}

/* The check fails with one error, which contains `text`, and says how to mend it. */
static void refuses(struct weir_spec *spec, const char *text)
{
	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_NOT_EQUAL(weir_spec_check(spec, &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 1);
	CU_ASSERT_TRUE(said(text));
	CU_ASSERT_TRUE(errs.n > 0 && errs.err[0].hint[0]);
	if (errs.total != 1 || !said(text))
		for (int i = 0; i < errs.n; i++)
			fprintf(stderr, "  said: %s\n", errs.err[i].text);
	weir_spec_free(spec);
}

static void accepts(struct weir_spec *spec)
{
	memset(&errs, 0, sizeof(errs));
	CU_ASSERT_EQUAL(weir_spec_check(spec, &errs), 0);
	for (int i = 0; i < errs.n; i++)
		fprintf(stderr, "  said: %s\n", errs.err[i].text);
	weir_spec_free(spec);
}

static struct weir_group_spec *group_of(struct weir_spec *spec)
{
	return &spec->groups[0];
}

/* A source, and the stages a and b in a group with this schedule. */
static struct weir_spec *chain(const char *schedule)
{
	struct weir_spec *spec = weir_spec_new("plan");

	weir_spec_text(&weir_spec_add_group(spec, "core")->schedule, schedule);
	fixture_stage(spec, "src", "t.source", "a");
	weir_spec_text(&fixture_stage(spec, "a", "t.pass", "b")->group, "core");
	weir_spec_text(&fixture_stage(spec, "b", "t.end", NULL)->group, "core");
	return spec;
}

static void add_visit(struct weir_spec *spec, const char *name)
{
	struct weir_strings *v = &group_of(spec)->visit;

	v->items = realloc(v->items, ((size_t)v->n + 1) * sizeof(*v->items));
	v->items[v->n++] = strdup(name);
}

static void test_types(void)
{
	fixture_register(&plan_source_ops);
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&blocks_ops);
	fixture_register(&single_ops);
	fixture_register(&kept_ops);
}

static void test_schedules(void)
{
	for (int i = 0; next_policy_at(i); i++)
		accepts(chain(next_policy_at(i)->name));
	refuses(chain("wavefrnt"), "there is no schedule 'wavefrnt'");
	struct weir_spec *spec = chain("wavefrnt");
	fixture_set(&spec->stages[1], "urgent.events", "3");
	fixture_set(&spec->stages[2], "mode", "replicated");
	refuses(spec, "there is no schedule 'wavefrnt'");
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint, "did you mean 'wavefront'?");
}

static void test_threads(void)
{
	struct weir_spec *spec = chain("fifo");

	group_of(spec)->threads.max = 4;
	refuses(spec, "a thread per core");
	spec = chain("fifo");
	group_of(spec)->threads.spin_ns = 1000; /* this has a meaning */
	accepts(spec);
	spec = chain("fifo");
	weir_spec_text(&spec->stages[2].use, "t.blocks");
	refuses(spec, "would stop a core");
}

static void refuses_policy(struct weir_spec *spec)
{
	refuses(spec, "'pin' and 'policy' mean nothing");
}

static void test_cores(void)
{
	struct weir_spec *spec = chain("fifo");
	char text[32];

	weir_spec_text(&group_of(spec)->cores, "many");
	refuses(spec, "'many' is neither a number of cores nor a list of CPUs");
	snprintf(text, sizeof(text), "%d", task_cores() + 1);
	spec = chain("fifo");
	weir_spec_text(&group_of(spec)->cores, text);
	refuses(spec, "but this process may use");
	spec = chain("fifo");
	weir_spec_text(&group_of(spec)->cores, "0");
	refuses(spec, "a group cannot have 0 cores");
	spec = chain("fifo");
	weir_spec_text(&group_of(spec)->cores, "1025");
	refuses(spec, "cores 1025, but at most 1024 are allowed");
	spec = chain("fifo");
	weir_spec_text(&group_of(spec)->cores, "0-1,1");
	refuses(spec, "'0-1,1' is not a list of different CPUs");
	spec = chain("fifo");
	weir_spec_text(&group_of(spec)->cores, "1023-1023");
	refuses(spec, "may not run on CPU 1023");
	spec = chain("fifo");
	weir_spec_text(&group_of(spec)->cores, "1..auto");
	weir_spec_text(&group_of(spec)->threads.policy, "seda");
	(task_cores() > 1 ? accepts : refuses_policy)(spec);
	spec = chain("fifo");
	weir_spec_text(&group_of(spec)->cores, "1");
	weir_spec_text(&group_of(spec)->threads.policy, "seda");
	refuses_policy(spec);
	spec = chain("fifo");
	weir_spec_text(&group_of(spec)->cores, "2..1");
	refuses(spec, "'min' of 'cores' is 2, but 'max' is 1");
	snprintf(text, sizeof(text), "1..%d", task_cores() + 1);
	spec = chain("fifo");
	weir_spec_text(&group_of(spec)->cores, text);
	refuses(spec, "but this process may use");
}

static void test_cpu_twice(void)
{
	struct weir_spec *spec = chain("fifo");
	char text[32];
	int cpu = 0;

	while (!task_may_run_on(cpu))
		cpu++;
	snprintf(text, sizeof(text), "%d-%d", cpu, cpu);
	weir_spec_text(&group_of(spec)->cores, text);
	struct weir_group_spec *other = weir_spec_add_group(spec, "other");
	weir_spec_text(&other->schedule, "color");
	weir_spec_text(&other->cores, text);
	weir_spec_text(&spec->stages[2].group, "other");
	refuses(spec, "both have CPU");
}

static void test_only_core_groups(void)
{
	struct weir_spec *spec = chain("shared");

	accepts(spec);
	spec = chain("shared");
	weir_spec_text(&group_of(spec)->cores, "1");
	refuses(spec, "'cores' needs a schedule per core");
	spec = chain("shared");
	group_of(spec)->gate.events = 3;
	refuses(spec, "'gate' needs");
	spec = chain("shared");
	group_of(spec)->gate.cutoff_ns = 1000;
	refuses(spec, "'gate' needs");
	spec = chain("shared");
	group_of(spec)->starve_ns = 0;
	refuses(spec, "'starve' needs");
	spec = chain("shared");
	group_of(spec)->order = WEIR_ORDER_NEWEST;
	refuses(spec, "'order' needs");
	spec = chain("shared");
	group_of(spec)->balance = false;
	refuses(spec, "'balance' needs");
	spec = chain("shared");
	add_visit(spec, "a");
	refuses(spec, "'visit' needs");
}

/* b is replicated and of type `use`. */
static struct weir_spec *replicated(const char *schedule, const char *use)
{
	struct weir_spec *spec = chain(schedule);

	weir_spec_text(&spec->stages[2].use, use);
	fixture_set(&spec->stages[2], "mode", "replicated");
	return spec;
}

static void test_replicated(void)
{
	accepts(replicated("fifo", "t.kept"));
	refuses(replicated("shared", "t.kept"), "'mode: replicated' needs a group with a schedule");
	struct weir_spec *spec = replicated("fifo", "t.kept");
	weir_spec_text(&spec->stages[2].group, "");
	refuses(spec, "'mode: replicated' needs a group with a schedule");
	refuses(replicated("fifo", "t.end"), "keeps one state, so it cannot be replicated");
	refuses(replicated("fifo", "t.single"), "always exclusive, so it cannot be replicated");
	spec = replicated("fifo", "t.kept");
	fixture_set(&spec->stages[2], "local", "never");
	refuses(spec, "'local: never' moves them");
	spec = replicated("fifo", "t.kept");
	fixture_set(&spec->stages[2], "cohort.by", "stage");
	CU_ASSERT_NOT_EQUAL(weir_spec_check(spec, &errs), 0);
	CU_ASSERT_TRUE(said("but with 'cohort.by' they take the queue"));
	weir_spec_free(spec);
	spec = replicated("fifo", "t.kept");
	fixture_set(&spec->stages[2], "cohort.by", "event");
	refuses(spec, "but with 'cohort.by' they take the queue");
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint, "remove 'cohort.by', or 'mode'");
	spec = replicated("fifo", "t.kept");
	fixture_set(&spec->stages[2], "cohort.linger", "1ms");
	fixture_set(&spec->stages[2], "local", "always"); /* this is what it does */
	refuses(spec, "but with 'linger' they take the queue");
	spec = replicated("fifo", "t.kept");
	fixture_set(&spec->stages[2], "queue.discipline", "shortest");
	refuses(spec, "but with 'discipline: shortest' they take the queue");
}

static void set_local(struct weir_spec *spec, const char *knob, const char *value, const char *text)
{
	fixture_set(&spec->stages[2], knob, value);
	fixture_set(&spec->stages[2], "local", "always");
	refuses(spec, text);
}

/* `local: always` of stages whose events take the queue. */
static void test_always(void)
{
	struct weir_spec *spec = chain("fifo");

	fixture_set(&spec->stages[2], "local", "always");
	accepts(spec);
	set_local(chain("fifo"), "mode", "exclusive", "is exclusive, so its events take the queue");
	set_local(chain("fifo"), "cohort.linger", "1ms", "has 'linger', so its events");
	set_local(chain("fifo"), "cohort.by", "event", "has 'cohort.by', so its events");
	spec = chain("fifo");
	weir_spec_text(&spec->stages[2].use, "t.single");
	fixture_set(&spec->stages[2], "local", "always");
	refuses(spec, "is exclusive, so its events take the queue");
}

/* A group needs a stage other than a source; what a source cannot have. */
static void test_empty(void)
{
	struct weir_spec *spec = chain("fifo");

	weir_spec_text(&weir_spec_add_group(spec, "other")->schedule, "srpt");
	refuses(spec, "group 'other' has schedule 'srpt' but no stages");
	spec = chain("fifo");
	weir_spec_add_group(spec, "other"); /* a pool */
	accepts(spec);
	spec = chain("fifo");
	fixture_set(&spec->stages[0], "local", "never");
	refuses(spec, "is a source: no core visits it, so it cannot have 'local'");
	spec = chain("fifo");
	weir_spec_text(&group_of(spec)->serial, "none");
	fixture_set(&spec->stages[1], "mode", "exclusive"); /* no key, so this is allowed */
	accepts(spec);
}

static struct weir_spec *copied(int replicas)
{
	struct weir_spec *spec = chain("fifo");

	group_of(spec)->replicas = replicas;
	weir_spec_text(&group_of(spec)->cores, "1");
	return spec;
}

static void test_replicas(void)
{
	struct weir_spec *spec = chain("shared");

	group_of(spec)->replicas = 2;
	refuses(spec, "'replicas' needs a schedule per core");
	accepts(copied(1));
	refuses(copied(2), "1 core cannot be divided equally among 2 replicas");
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint, "write at most 'replicas: 1'");
	spec = copied(task_cores());
	weir_spec_text(&group_of(spec)->cores, "auto");
	if (task_cores() > 1)
		fixture_set(&spec->stages[1], "mode", "exclusive");
	if (task_cores() > 1)
		refuses(spec, "is exclusive, so it cannot be in the replicas of group 'core'");
	else
		accepts(spec);
}

static void test_stages_outside(void)
{
	struct weir_spec *spec = chain("shared");

	fixture_set(&spec->stages[1], "urgent.events", "3");
	refuses(spec, "'urgent' needs a group");
	spec = chain("shared");
	fixture_set(&spec->stages[1], "local", "never");
	refuses(spec, "'local' needs a group");
	spec = chain("mg1");
	fixture_set(&spec->stages[1], "local", "never");
	fixture_set(&spec->stages[1], "urgent.events", "3");
	fixture_set(&spec->stages[1], "urgent.wait", "3ms");
	accepts(spec);
}

static void test_visit(void)
{
	struct weir_spec *spec = chain("srpt");

	add_visit(spec, "b");
	refuses(spec, "'visit' lacks stage 'a'");
	spec = chain("wavefront");
	add_visit(spec, "b");
	add_visit(spec, "a");
	accepts(spec);
	spec = chain("wavefront");
	add_visit(spec, "b");
	add_visit(spec, "a");
	add_visit(spec, "b");
	refuses(spec, "'visit' repeats stage 'b'");
	spec = chain("wavefront");
	add_visit(spec, "b");
	add_visit(spec, "a");
	add_visit(spec, "src");
	refuses(spec, "'visit' names stage 'src', a source, which is not visited");
	spec = chain("color");
	add_visit(spec, "b");
	add_visit(spec, "a");
	refuses(spec, "orders wavefront and srpt only");
}

static void test_never_acts(void)
{
	struct weir_spec *spec = chain("srpt");

	fixture_set(&spec->stages[1], "urgent.events", "5000");
	weir_spec_text(&group_of(spec)->cores, "1");
	refuses(spec, "a core sees at most 4096, its share of the limit of 4096");
	if (task_cores() > 1) {
		spec = chain("srpt");
		weir_spec_text(&group_of(spec)->cores, "2");
		fixture_set(&spec->stages[1], "urgent.events", "2049");
		accepts(spec);
		spec = chain("srpt");
		weir_spec_text(&group_of(spec)->cores, "2");
		fixture_set(&spec->stages[1], "urgent.events", "2050");
		refuses(spec, "a core sees at most 2049, its share");
		spec = chain("srpt"); /* all events of the queue may be in the inbox of a core */
		weir_spec_text(&group_of(spec)->cores, "2");
		weir_spec_text(&spec->stages[1].serial, "event");
		fixture_set(&spec->stages[1], "urgent.events", "3072");
		accepts(spec);
		spec = chain("srpt");
		weir_spec_text(&group_of(spec)->cores, "2");
		weir_spec_text(&spec->stages[1].serial, "event");
		fixture_set(&spec->stages[1], "urgent.events", "3073");
		refuses(spec, "a core sees at most 3072, its share");
		spec = chain("srpt");
		weir_spec_text(&group_of(spec)->cores, "1..2");
		fixture_set(&spec->stages[1], "urgent.events", "4096");
		accepts(spec);
	}
	spec = chain("srpt");
	fixture_set(&spec->stages[1], "urgent.wait", "1s");
	refuses(spec, "longer than its objective");
	spec = chain("srpt");
	group_of(spec)->starve_ns = 2000000000;
	refuses(spec, "'starve' is longer");
	spec = chain("srpt");
	group_of(spec)->gate.events = 3;
	group_of(spec)->gate.arrived = true;
	refuses(spec, "'gate' says more than once");
	spec = chain("srpt");
	group_of(spec)->gate.cutoff_ns = 500000000; /* as long as the objective */
	accepts(spec);
	spec = chain("srpt");
	group_of(spec)->gate.cutoff_ns = 500000001;
	refuses(spec, "'cutoff' of 'gate' is longer than the shortest objective");
	spec = chain("srpt");
	group_of(spec)->gate.time_ns = group_of(spec)->gate.cutoff_ns = 1000;
	refuses(spec, "'gate' says more than once");
	spec = chain("srpt");
	group_of(spec)->gate.cutoff_ns = 1000;
	group_of(spec)->order = WEIR_ORDER_NEWEST;
	refuses(spec, "'cutoff' of 'gate' would do nothing");
}

static void test_stages(void)
{
	struct weir_spec *spec = chain("fifo");
	char next[16];

	for (int i = 0; i < NEXT_STAGES_MAX; i++) {
		snprintf(next, sizeof(next), "x%d", i);
		weir_spec_text(&fixture_stage(spec, next, "t.pass", NULL)->group, "core");
		struct weir_stage_spec *from = &spec->stages[i == 0 ? 2 : spec->n_stages - 2];
		weir_spec_text(&from->use, "t.pass");
		weir_spec_link(from, "", next, false);
	}
	refuses(spec, "at most 64 are allowed");
}

CUNIT_MAIN("plan cores", {"types", test_types}, {"schedules", test_schedules},
    {"threads", test_threads}, {"cores", test_cores}, {"a CPU twice", test_cpu_twice},
    {"only in core groups", test_only_core_groups}, {"stages outside", test_stages_outside},
    {"replicated", test_replicated}, {"replicas", test_replicas}, {"always", test_always},
    {"empty", test_empty}, {"visit", test_visit}, {"never acts", test_never_acts},
    {"stages", test_stages})
