/* SPDX-License-Identifier: MIT */
/* Live knobs of core groups and of their stages: each is set, takes effect, is journalled and undone;
 * values that `check` refuses change nothing. */
#include "acts_rig.h"

#include "base/task.h"
#include "graph/graph.h"
#include "graph/group.h"
#include "sched/cores.h"

static struct weir_spec *a_group(const char *schedule, const char *cores)
{
	static const char *const name[] = {"a", "b", "c"};
	struct weir_spec *spec = weir_spec_new("knobs");
	struct weir_group_spec *gs = weir_spec_add_group(spec, "core");

	weir_spec_text(&gs->schedule, schedule);
	weir_spec_text(&gs->cores, cores);
	for (int i = 0; i < 3; i++) {
		struct weir_stage_spec *s = fixture_stage(
		    spec, name[i], i < 2 ? "t.pass" : "t.end", i < 2 ? name[i + 1] : NULL);
		weir_spec_text(&s->group, "core");
		weir_spec_text(&s->admission.policy, "none");
	}
	prepare(MANY);
	return spec;
}

static struct weir_graph *begin(const char *schedule, const char *cores)
{
	struct weir_graph *g = fixture_start(a_group(schedule, cores));

	weir_thread_attach(g, "test");
	return g;
}

static struct pool *pool_of(const struct weir_graph *g)
{
	return weir_graph_stage(g, "a")->pool;
}

/* What the cores have been told. */
static struct cores_plan told(const struct weir_graph *g)
{
	struct cores_plan plan;

	cores_get(pool_of(g)->cores, &plan);
	return plan;
}

static int set(struct weir_graph *g, const char *name, const char *knob, const char *value)
{
	return weir_graph_set(g, name, knob, value, why, sizeof(why));
}

static const char *text_of(struct weir_graph *g, const char *name, const char *knob)
{
	static char text[200];

	CU_ASSERT_EQUAL(weir_graph_get(g, name, knob, text, sizeof(text)), 0);
	return text;
}

static void undo(struct weir_graph *g)
{
	struct weir_change change;

	CU_ASSERT_EQUAL(weir_graph_undo(g, &change, why, sizeof(why)), 0);
}

/* ---- each knob ---- */

static bool gate_is_5(const struct weir_graph *g)
{
	struct cores_plan p = told(g);

	return p.limits.gate == NEXT_EVENTS && p.limits.gate_events == 5;
}

static bool gate_is_time(const struct weir_graph *g)
{
	struct cores_plan p = told(g);

	return p.limits.gate == NEXT_TIME && p.limits.gate_ns == 10000000;
}

static bool gate_is_arrived(const struct weir_graph *g)
{
	return told(g).limits.gate == NEXT_ARRIVED;
}

static bool gate_is_cutoff(const struct weir_graph *g)
{
	struct cores_plan p = told(g);

	return p.limits.gate == NEXT_CUTOFF && p.limits.gate_ns == 3000000;
}

static bool starve_is_7ms(const struct weir_graph *g)
{
	return told(g).limits.starve_ns == 7000000;
}

static bool is_unbalanced(const struct weir_graph *g)
{
	return !told(g).balance;
}

static bool is_srpt(const struct weir_graph *g)
{
	return told(g).policy == &next_srpt;
}

static bool has_one_core(const struct weir_graph *g)
{
	return atomic_load(&pool_of(g)->target) == 1 && atomic_load(&pool_of(g)->max) == 1;
}

static bool b_is_urgent_at_9(const struct weir_graph *g)
{
	struct cores_plan p = told(g);
	int b = weir_graph_stage(g, "b")->sink.place;

	return p.limits.urgent_set == 1ULL << b && p.limits.urgent[b].events == 9;
}

static bool b_is_urgent_after_2ms(const struct weir_graph *g)
{
	struct cores_plan p = told(g);
	int b = weir_graph_stage(g, "b")->sink.place;

	return p.limits.urgent_set == 1ULL << b && p.limits.urgent[b].wait_ns == 2000000;
}

static bool b_never_stays(const struct weir_graph *g)
{
	const struct sink *s = &weir_graph_stage(g, "b")->sink;

	return sink_local(s) == LOCAL_NEVER && atomic_load(&s->queue.cell_max) == 0 &&
	       atomic_load(&s->queue.own) == atomic_load(&s->queue.limit);
}

static const struct {
	const char *name, *knob, *value, *configured;
	bool (*effect)(const struct weir_graph *g);
	const char *wrong[3];
} knob[] = {{"core", "gate.events", "5", "0", gate_is_5, {"-1", "x", "99M"}},
    {"core", "gate.time", "10ms", "0", gate_is_time, {"10", "2m", "-1ms"}},
    {"core", "gate.arrived", "true", "false", gate_is_arrived, {"yes please", "2", ""}},
    {"core", "gate.cutoff", "3ms", "0", gate_is_cutoff, {"3", "2m", "-1ms"}},
    {"core", "starve", "7ms", "auto", starve_is_7ms, {"501ms", "7", "-1ms"}},
    {"core", "balance", "false", "true", is_unbalanced, {"2", "", "maybe"}},
    {"core", "schedule", "srpt", "color", is_srpt, {"shared", "lifo", ""}},
    {"core", "cores", "1", "auto", has_one_core, {"0", "5000", "0-0"}},
    {"b", "urgent.events", "9", "0", b_is_urgent_at_9, {"4097", "-1", "x"}},
    {"b", "urgent.wait", "2ms", "0", b_is_urgent_after_2ms, {"501ms", "2", "x"}},
    {"b", "local", "never", "auto", b_never_stays, {"sometimes", "", "1"}}};

#define N_KNOBS ((int)(sizeof(knob) / sizeof(knob[0])))

/* The journal has the last change. */
static void check_journal(struct weir_graph *g, const char *what, int i)
{
	struct weir_decision d;
	char rule[100];

	CU_ASSERT_EQUAL_FATAL(weir_graph_decisions(g, &d, 1), 1);
	CU_ASSERT_STRING_EQUAL(d.stage, knob[i].name);
	CU_ASSERT_STRING_EQUAL(d.action, what);
	snprintf(rule, sizeof(rule), "%s = %s", knob[i].knob,
	    strcmp(what, "undo") == 0 ? knob[i].configured : knob[i].value);
	CU_ASSERT_STRING_EQUAL(d.rule, rule);
}

static void test_each(void)
{
	struct weir_graph *g = begin("color", "auto");
	char target[100];

	for (int i = 0; i < N_KNOBS; i++) {
		CU_ASSERT_STRING_EQUAL(text_of(g, knob[i].name, knob[i].knob), knob[i].configured);
		/* with one CPU, the number of cores cannot change */
		bool same = knob[i].effect(g);
		CU_ASSERT_TRUE(!same || task_cores() == 1);
		int rc = set(g, knob[i].name, knob[i].knob, knob[i].value);
		CU_ASSERT_EQUAL(rc, 0);
		if (rc != 0)
			fprintf(stderr, "  %s: %s\n", knob[i].knob, why);
		CU_ASSERT_TRUE(knob[i].effect(g));
		check_journal(g, "set", i);
		snprintf(target, sizeof(target), "%s.%s", knob[i].name, knob[i].knob);
		CU_ASSERT_STRING_EQUAL(newest(g).target, target);
		undo(g);
		check_journal(g, "undo", i);
		CU_ASSERT_EQUAL(knob[i].effect(g), same);
		CU_ASSERT_STRING_EQUAL(text_of(g, knob[i].name, knob[i].knob), knob[i].configured);
	}
	finished(g);
}

static void test_bad_values(void)
{
	struct weir_graph *g = begin("color", "auto");
	struct cores_plan before = told(g);

	for (int i = 0; i < N_KNOBS; i++)
		for (int k = 0; k < 3; k++) {
			why[0] = '\0';
			int rc = set(g, knob[i].name, knob[i].knob, knob[i].wrong[k]);
			CU_ASSERT_EQUAL(rc, WEIR_EINVAL);
			if (rc != WEIR_EINVAL)
				fprintf(stderr, "  %s = %s\n", knob[i].knob, knob[i].wrong[k]);
			CU_ASSERT_NOT_EQUAL(why[0], '\0');
			CU_ASSERT_STRING_EQUAL(
			    text_of(g, knob[i].name, knob[i].knob), knob[i].configured);
		}
	struct cores_plan after = told(g);
	CU_ASSERT_EQUAL(memcmp(&before.limits, &after.limits, sizeof(before.limits)), 0);
	CU_ASSERT_PTR_EQUAL(before.policy, after.policy);
	CU_ASSERT_EQUAL(before.balance, after.balance);
	CU_ASSERT_EQUAL(set(g, "core", "stave", "1ms"), WEIR_ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "group 'core' has no knob 'stave'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "'starve'"));
	CU_ASSERT_EQUAL(set(g, "core", "order", "newest"), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "cannot change while the server runs"));
	struct weir_change change;
	CU_ASSERT_EQUAL(weir_graph_changes(g, &change, 1), 0);
	finished(g);
}

/* Messages of values that only contradict others. */
static void test_contradictions(void)
{
	struct weir_spec *spec = a_group("wavefront", "1");

	struct weir_strings *visit = &spec->groups[0].visit;
	visit->items = calloc(3, sizeof(char *));
	for (visit->n = 0; visit->n < 3; visit->n++)
		visit->items[visit->n] = strdup(spec->stages[2 - visit->n].name);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	CU_ASSERT_EQUAL(set(g, "core", "gate.events", "5"), 0);
	CU_ASSERT_EQUAL(set(g, "core", "gate.time", "1ms"), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "more than once"));
	CU_ASSERT_TRUE(gate_is_5(g));
	CU_ASSERT_EQUAL(set(g, "core", "schedule", "shared"), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "reload"));
	CU_ASSERT_EQUAL(set(g, "core", "schedule", "fifo"), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "'visit' orders wavefront and srpt only"));
	CU_ASSERT_EQUAL(set(g, "core", "schedule", "srpt"), 0);
	CU_ASSERT_EQUAL(set(g, "core", "cores", "0-0"), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "reload"));
	CU_ASSERT_EQUAL(set(g, "b", "urgent.events", "4096"), 0);
	CU_ASSERT_EQUAL(set(g, "b", "queue.limit", "100"), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "at most 100"));
	if (task_cores() > 1) {
		CU_ASSERT_EQUAL(set(g, "core", "cores", "2"), WEIR_EINVAL);
		CU_ASSERT_PTR_NOT_NULL(strstr(why, "at most 2049"));
		CU_ASSERT_EQUAL(set(g, "b", "urgent.events", "2049"), 0);
		CU_ASSERT_EQUAL(set(g, "core", "cores", "2"), 0);
	}
	finished(g);
}

static void says(
    struct weir_graph *g, const char *name, const char *what, const char *value, const char *text)
{
	why[0] = '\0';
	CU_ASSERT_EQUAL(set(g, name, what, value), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, text));
	if (!strstr(why, text))
		fprintf(stderr, "  %s = %s: %s\n", what, value, why);
}

/* Messages name what is wrong, and only values that can be set. */
static void test_messages(void)
{
	static const char *const wrong[] = {"0", "-1", "many", "", "1,1", "2..", "5000"};
	struct weir_graph *g = begin("fifo", "1");

	CU_ASSERT_EQUAL(set(g, "b", "urgent.events", "5"), 0);
	says(g, "core", "schedule", "fif", "there is no schedule 'fif': did you mean 'fifo'?");
	says(g, "core", "schedule", "", "there is no schedule ''");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		says(g, "core", "cores", wrong[i], "write a number from 1 to ");
		says(g, "core", "cores", wrong[i], ", a range such as 1..");
	}
	says(g, "core", "cores", "2..1", "'min' of 'cores' is 2, but 'max' is 1");
	says(g, "core", "cores", "0-0", "reload");
	says(g, "core", "gate.cutoff", "501ms", "longer than the shortest objective");
	CU_ASSERT_EQUAL(set(g, "b", "cohort.linger", "1ms"), 0);
	says(g, "b", "local", "always", "has 'linger', so its events take the queue");
	CU_ASSERT_EQUAL(set(g, "b", "cohort.linger", "0"), 0);
	CU_ASSERT_EQUAL(set(g, "b", "local", "always"), 0);
	says(g, "b", "cohort.linger", "1ms", "'local: always' means nothing");
	finished(g);
}

/* A pool has only the bounds of its threads. */
static void test_shared(void)
{
	struct weir_graph *g = begin("shared", "auto");

	CU_ASSERT_EQUAL(set(g, "core", "starve", "1ms"), WEIR_EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why, "needs a schedule per core"));
	CU_ASSERT_EQUAL(set(g, "core", "schedule", "fifo"), WEIR_EINVAL);
	CU_ASSERT_EQUAL(set(g, "b", "local", "never"), WEIR_EINVAL);
	CU_ASSERT_EQUAL(set(g, "b", "urgent.wait", "1ms"), WEIR_EINVAL);
	CU_ASSERT_EQUAL(set(g, "core", "threads.max", "3"), 0);
	CU_ASSERT_EQUAL(set(g, "core", "threads.min", "2"), 0);
	CU_ASSERT_EQUAL(atomic_load(&pool_of(g)->max), 3);
	CU_ASSERT_EQUAL(atomic_load(&pool_of(g)->target), 2);
	CU_ASSERT_EQUAL(set(g, "core", "threads.max", "1"), WEIR_EINVAL);
	undo(g);
	undo(g);
	CU_ASSERT_EQUAL(atomic_load(&pool_of(g)->min), 1);
	finished(g);
}

/* ---- undo ---- */

/* Set all knobs in the order given by `step` (prime to their number), unset them in another. */
static void in_order(int step, int back)
{
	struct weir_graph *g = begin("color", "auto");
	int n = 0;

	for (int i = 0; i < N_KNOBS; i++) {
		int k = (i * step + 1) % N_KNOBS;
		bool gate = strncmp(knob[k].knob, "gate.", 5) == 0;
		if (gate && told(g).limits.gate != NEXT_ALL)
			continue; /* one gate only */
		CU_ASSERT_EQUAL(set(g, knob[k].name, knob[k].knob, knob[k].value), 0);
		n++;
	}
	for (int i = 0; i < N_KNOBS && back > 0; i++) {
		int k = (i * back + 2) % N_KNOBS;
		int rc = weir_graph_unset(g, knob[k].name, knob[k].knob, why, sizeof(why));
		CU_ASSERT_TRUE(rc == 0 || rc == WEIR_EBUSY);
	}
	for (int i = 0; i < n && back == 0; i++)
		undo(g);
	for (int k = 0; k < N_KNOBS; k++) {
		CU_ASSERT_STRING_EQUAL(text_of(g, knob[k].name, knob[k].knob), knob[k].configured);
		CU_ASSERT_TRUE(!knob[k].effect(g) || task_cores() == 1);
	}
	finished(g);
}

static void test_orders(void)
{
	static const int step[] = {1, 3, 7, 9}; /* prime to 11 */

	for (int i = 0; i < 4; i++) {
		in_order(step[i], 0);
		in_order(step[i], step[3 - i]);
	}
}

/* ---- effects ---- */

/* Stages are visited in the order in which events came, under `color`, although it was set when the
 * events waited. */
static void test_renew(void)
{
	struct weir_graph *g = begin("fifo", "1");
	struct core_group *group = pool_of(g)->cores;
	struct core *core = calloc(1, sizeof(*core));
	struct probe ev[6] = {0};
	static const int stage[] = {2, 0, 0, 1, 2, 0};
	struct next_stage view[3] = {{.length = 9}, {.length = 9}, {.length = 9}};
	struct next_order none = {0};

	core->group = group;
	core->cell = calloc(3, sizeof(*core->cell));
	for (int i = 0; i < 3; i++)
		cell_init(&core->cell[i]);
	for (int i = 0; i < 6; i++) {
		ev[i].ev.queued_ns = 100 + i;
		cell_put(&core->cell[stage[i]], i & 1, &ev[i].ev, &ev[i].ev, 1, false);
		core->filled |= 1ULL << stage[i];
	}
	core->plan.policy = &next_color;
	core_renew(core);
	struct next_view v = {.n = 3, .stage = view, .order = &none, .ready = 7};
	static const int want[] = {2, 0, 1, 2, 0}, run[] = {1, 2, 1, 1, 1};
	for (int i = 0; i < 5; i++) {
		struct next_limits l = {.gate = NEXT_EVENTS, .gate_events = (uint32_t)run[i]};
		struct next_choice c = next_choose(&core->next, &l, &v);
		CU_ASSERT_EQUAL(c.stage, want[i]);
		next_took(&core->next, c.stage, (uint32_t)run[i], (uint32_t)run[i]);
	}
	free(core->cell);
	free(core);
	finished(g);
}

/* All events pass while the settings change, under load. */
static void test_under_load(void)
{
	static const char *const schedules[] = {"fifo", "wavefront", "srpt", "dbr", "mg1", "color"};
	static const char *const locals[] = {"auto", "always", "never"};
	struct weir_graph *g = begin("color", "auto");

	prepare(6400);
	for (int i = 0; i < 100; i++) {
		fixture_offer_all(weir_graph_stage(g, "a"), probes + i * 64, 64, 16);
		CU_ASSERT_EQUAL(set(g, "core", "schedule", schedules[i % 6]), 0);
		CU_ASSERT_EQUAL(set(g, "core", "cores", i % 2 ? "1" : "auto"), 0);
		CU_ASSERT_EQUAL(set(g, "b", "local", locals[i % 3]), 0);
		FIXTURE_AWAIT(fixture_ended() == (uint64_t)(i + 1) * 64);
	}
	check_each_once(6400);
	finished(g);
}

/* The slots of a full cell are withheld from the queue when the cell becomes smaller. */
static void test_bound(void)
{
	struct weir_graph *g = begin("fifo", "1");
	struct core_group *group = pool_of(g)->cores;
	struct sink *s = &weir_graph_stage(g, "b")->sink;
	struct cell *cell = &s->cells[0];

	if (task_cores() < 2) {
		finished(g);
		return;
	}
	CU_ASSERT_EQUAL(atomic_load(&s->queue.cell_max), 2048);
	lock_take(&g->lock); /* the control thread would see the cell, too */
	atomic_store(&cell->n, 1500);
	cores_bound(group, 1, 2);
	CU_ASSERT_EQUAL(atomic_load(&s->queue.cell_max), 1024);
	CU_ASSERT_EQUAL(atomic_load(&s->queue.own), 2048 - (1500 - 1024));
	CU_ASSERT_TRUE(group->undivided);
	atomic_store(&cell->n, 0);
	cores_divide(group);
	CU_ASSERT_EQUAL(atomic_load(&s->queue.own), 2048);
	CU_ASSERT_FALSE(group->undivided);
	lock_release(&g->lock);
	finished(g);
}

/* The controller adds and removes cores of a range, as pool_set_target here, while events pass. */
static void test_resized(void)
{
	struct weir_spec *spec = a_group("fifo", "1..auto");

	weir_spec_text(&spec->groups[0].threads.policy, "seda");
	struct weir_graph *g = fixture_start(spec);
	struct pool *pool = pool_of(g);
	weir_thread_attach(g, "test");
	CU_ASSERT_STRING_EQUAL(pool->spec->policy, "seda");
	CU_ASSERT_EQUAL(atomic_load(&pool->target), 1);
	CU_ASSERT_EQUAL(atomic_load(&pool->max), task_cores());
	prepare(6400);
	for (int i = 0; i < 100; i++) {
		fixture_offer_all(weir_graph_stage(g, "a"), probes + i * 64, 64, 16);
		pool_set_target(pool, i % 2 ? 1 : task_cores());
		FIXTURE_AWAIT(fixture_ended() == (uint64_t)(i + 1) * 64);
	}
	CU_ASSERT_EQUAL(set(g, "core", "cores", "1"), 0);
	CU_ASSERT_EQUAL(pool_set_target(pool, 2), 1); /* a number is not resized */
	undo(g);
	CU_ASSERT_EQUAL(atomic_load(&pool->max), task_cores());
	check_each_once(6400);
	finished(g);
}

/* The largest value of `urgent.events` that is accepted makes a stage urgent. */
static void test_urgent_most(void)
{
	struct weir_spec *spec = a_group("wavefront", "1");

	fixture_set(&spec->stages[0], "queue.limit", "64");
	fixture_set(&spec->stages[0], "urgent.events", "64");
	struct weir_graph *g = fixture_start(spec);
	struct weir_graph_view *v;
	weir_thread_attach(g, "test");
	weir_graph_steer(g, "a", WEIR_STEER_PAUSE, why, sizeof(why));
	fixture_offer_all(weir_graph_stage(g, "a"), probes, 64, 64);
	weir_graph_steer(g, "a", WEIR_STEER_RUN, why, sizeof(why));
	FIXTURE_AWAIT(fixture_ended() == 64);
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	CU_ASSERT_EQUAL(v->stages[0].cores[0].urgent, 1);
	weir_graph_view_free(v);
	finished(g);
}

static void test_types(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("core knobs", {"types are known", test_types}, {"each", test_each},
    {"bad values", test_bad_values}, {"contradictions", test_contradictions},
    {"messages", test_messages}, {"shared", test_shared}, {"orders", test_orders},
    {"renew", test_renew}, {"under load", test_under_load}, {"resized", test_resized},
    {"urgent at most", test_urgent_most}, {"bound", test_bound})
