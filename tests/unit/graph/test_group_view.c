/* SPDX-License-Identifier: MIT */
/* What the view of a core group says: settings, the visits and what has cut them, and sums that agree
 * with the counters of the stages. */
#include "fixture/graph/probes.h"

#include "base/task.h"
#include "event/local.h"
#include "graph/graph.h"
#include "sched/longest.h"

#define EVENTS 1000

static struct weir_stage_spec *in_group(
    struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	struct weir_stage_spec *s = fixture_stage(spec, name, use, to);

	weir_spec_text(&s->group, "core");
	weir_spec_text(&s->admission.policy, "none");
	fixture_set(s, "queue.limit", "20000"); /* so that all events fit into a cell */
	s->local = WEIR_LOCAL_ALWAYS;
	return s;
}

/* Stages a, b and c in a core group without a limit of waits. */
static struct weir_spec *chain(int cores)
{
	struct weir_spec *spec = weir_spec_new("views");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");

	weir_spec_text(&g->schedule, "fifo");
	weir_spec_text(&g->cores, cores == 1 ? "1" : "2");
	g->starve_ns = 0;
	in_group(spec, "a", "t.pass", "b");
	in_group(spec, "b", "t.pass", "c");
	in_group(spec, "c", "t.end", NULL);
	return spec;
}

/* All events wait in the queue of a before a core takes the first one. */
static struct weir_graph *run(struct weir_spec *spec)
{
	struct weir_graph *g = fixture_start(spec);
	char why[200] = "";

	prepare(EVENTS);
	weir_thread_attach(g, "test");
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	fixture_offer_all(weir_graph_stage(g, "a"), probes, EVENTS, 64);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(fixture_ended() == EVENTS);
	/* so that the last batch is counted */
	FIXTURE_AWAIT(stage_view(g, "c").threads[WEIR_THREAD_BUSY] == 0);
	return g;
}

static void finish(struct weir_graph *g, struct weir_graph_view *v)
{
	weir_graph_view_free(v);
	weir_thread_detach();
	finish_graph(g, 0);
}

static struct weir_graph_view *look(struct weir_graph *g)
{
	struct weir_graph_view *v;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	CU_ASSERT_EQUAL_FATAL(v->n_groups, 1);
	return v;
}

/* The sum over the cores of stage `i` of the group. */
static struct weir_core_view over_cores(const struct weir_graph_view *v, int i)
{
	const struct weir_stage_view *s = v->groups[0].stages[i].stage;
	struct weir_core_view sum = {0};

	for (int k = 0; k < s->n_cores; k++) {
		const struct weir_core_view *c = &s->cores[k];
		sum.visits += c->visits;
		sum.events += c->events;
		sum.batches += c->batches;
		sum.busy_ns += c->busy_ns;
		sum.cut_gate += c->cut_gate;
		sum.cut_urgent += c->cut_urgent;
		sum.cut_starved += c->cut_starved;
	}
	return sum;
}

/* Cores took what their stages have handled, and the group has the sum of its stages. */
static void check_sums(const struct weir_graph_view *v)
{
	const struct weir_group_view *g = &v->groups[0];
	uint64_t events = 0, batches = 0, visits = 0, busy_ns = 0;

	for (int i = 0; i < g->n_stages; i++) {
		const struct weir_stage_view *s = g->stages[i].stage;
		struct weir_core_view sum = over_cores(v, i);
		CU_ASSERT_EQUAL(sum.events, EVENTS);
		CU_ASSERT_EQUAL(sum.events, s->batch_events);
		CU_ASSERT_EQUAL(sum.batches, s->batches);
		CU_ASSERT_TRUE(sum.visits > 0 && sum.visits <= sum.batches);
		CU_ASSERT_TRUE(sum.busy_ns >= s->busy_ns);
		events += sum.events;
		batches += sum.batches;
		visits += sum.visits;
		busy_ns += sum.busy_ns;
	}
	for (int k = 0; k < g->n_cores; k++) {
		events -= g->core[k].events;
		batches -= g->core[k].batches;
		visits -= g->core[k].visits;
		busy_ns -= g->core[k].busy_ns;
	}
	CU_ASSERT_TRUE(events == 0 && batches == 0 && visits == 0 && busy_ns == 0);
}

static void test_conservation(void)
{
	for (int cores = 1; cores <= 2 && cores <= task_cores(); cores++) {
		struct weir_graph *g = run(chain(cores));
		struct weir_graph_view *v = look(g);
		check_sums(v);
		finish(g, v);
	}
}

static void test_settings(void)
{
	struct weir_spec *spec = chain(1);
	struct weir_group_spec *gs = &spec->groups[0];

	gs->gate.time_ns = 10000000;
	gs->starve_ns = 25000000;
	gs->balance = false;
	gs->order = WEIR_ORDER_NEWEST;
	fixture_set(&spec->stages[1], "urgent.events", "64");
	fixture_set(&spec->stages[1], "urgent.wait", "2ms");
	struct weir_graph *g = run(spec);
	struct weir_graph_view *v = look(g);
	const struct weir_group_view *gv = &v->groups[0];
	CU_ASSERT_STRING_EQUAL(gv->name, "core");
	CU_ASSERT_STRING_EQUAL(gv->schedule, "fifo");
	CU_ASSERT_STRING_EQUAL(gv->gate, "time: 10ms");
	CU_ASSERT_EQUAL(gv->starve_ns, 25000000);
	CU_ASSERT_TRUE(!gv->balance && gv->newest);
	CU_ASSERT_EQUAL(gv->cores, 1);
	CU_ASSERT_EQUAL(gv->n_cores, 1);
	CU_ASSERT_EQUAL_FATAL(gv->n_stages, 3);
	CU_ASSERT_STRING_EQUAL(gv->stages[1].stage->name, "b");
	CU_ASSERT_EQUAL(gv->stages[1].urgent_events, 64);
	CU_ASSERT_EQUAL(gv->stages[1].urgent_wait_ns, 2000000);
	CU_ASSERT_EQUAL(gv->stages[0].urgent_events, 0);
	check_sums(v);
	finish(g, v);
}

/* Each visit is of 4 events, and each but the last one is cut. */
static void test_gate(void)
{
	struct weir_spec *spec = chain(1);

	spec->groups[0].gate.events = 4;
	struct weir_graph *g = run(spec);
	struct weir_graph_view *v = look(g);
	CU_ASSERT_STRING_EQUAL(v->groups[0].gate, "events: 4");
	for (int i = 0; i < 3; i++) {
		struct weir_core_view sum = over_cores(v, i);
		CU_ASSERT_EQUAL(sum.visits, EVENTS / 4);
		CU_ASSERT_EQUAL(sum.cut_gate, EVENTS / 4 - 1);
		CU_ASSERT_EQUAL(sum.cut_urgent, 0);
		CU_ASSERT_EQUAL(sum.cut_starved, 0);
	}
	finish(g, v);
}

/* A visit of a goes on after b, which is urgent with one event, has interrupted it. */
static void test_urgent(void)
{
	struct weir_spec *spec = chain(1);

	fixture_set(&spec->stages[1], "urgent.events", "1");
	struct weir_graph *g = run(spec);
	struct weir_graph_view *v = look(g);
	struct weir_core_view a = over_cores(v, 0), b = over_cores(v, 1);
	CU_ASSERT_EQUAL(a.visits, 1);
	CU_ASSERT_EQUAL(a.cut_urgent, a.batches - 1);
	CU_ASSERT_EQUAL(b.visits, a.batches);
	CU_ASSERT_EQUAL(b.cut_urgent, 0);
	finish(g, v);
}

/* Every event has waited for longer than 1 ns, so stages take turns. */
static void test_starved(void)
{
	struct weir_spec *spec = chain(1);

	spec->groups[0].starve_ns = 1;
	struct weir_graph *g = run(spec);
	struct weir_graph_view *v = look(g);
	struct weir_core_view a = over_cores(v, 0);
	CU_ASSERT_TRUE(a.batches == 1 || a.cut_starved > 0);
	CU_ASSERT_EQUAL(a.cut_gate, 0);
	finish(g, v);
}

static void test_longest(void)
{
	struct longest l = {0};

	longest_note(&l, 30);
	longest_note(&l, 20);
	CU_ASSERT_EQUAL(longest_read(&l, 0), 30);
	CU_ASSERT_EQUAL(longest_read(&l, 1), 30); /* the writer sleeps since the window before */
	CU_ASSERT_EQUAL(longest_read(&l, 2), 0);
	longest_turn(&l, 1);
	longest_note(&l, 10);
	CU_ASSERT_EQUAL(longest_read(&l, 0), 30);
	CU_ASSERT_EQUAL(longest_read(&l, 1), 10);
	longest_turn(&l, 1);
	CU_ASSERT_EQUAL(longest_read(&l, 0), 10);
	longest_note(&l, 5);
	longest_turn(&l, 2);
	CU_ASSERT_EQUAL(longest_read(&l, 0), 0);
}

/* The later events wait for the first batch at least. */
static void test_longest_wait(void)
{
	struct weir_graph *g = run(chain(1));
	struct weir_graph_view *v = look(g);

	for (int i = 0; i < 3; i++) {
		const struct weir_stage_view *s = v->groups[0].stages[i].stage;
		CU_ASSERT_TRUE(s->cores[0].longest_wait_ns > 0);
		CU_ASSERT_TRUE(s->cores[0].longest_wait_ns <= v->groups[0].core[0].longest_wait_ns);
	}
	finish(g, v);
}

static void test_types(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("group view", {"types are known", test_types}, {"conservation", test_conservation},
    {"settings", test_settings}, {"gate", test_gate}, {"urgent", test_urgent},
    {"starved", test_starved}, {"longest", test_longest}, {"longest wait", test_longest_wait})
