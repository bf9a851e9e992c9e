/* SPDX-License-Identifier: MIT */
/* Core groups with `replicas`: events are dealt to the copies in turn, and stay there. */
#include "kept_rig.h"

#include <stdlib.h>

static void test_types(void)
{
	fixture_register(&kept_ops);
	fixture_register(&end_ops);
}

/* Each core is a copy of the group. */
static struct weir_spec *copies(const char *schedule)
{
	struct weir_spec *spec = chain(schedule);

	spec->groups[0].replicas = task_cores();
	return spec;
}

/* Number of events of stage `name` that core `k` has handled. */
static uint64_t at_core(struct weir_graph *g, const char *name, int k)
{
	struct weir_graph_view *v;
	uint64_t n = 0;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	for (int i = 0; i < v->n_stages; i++)
		if (strcmp(v->stages[i].name, name) == 0)
			n = v->stages[i].cores[k].events;
	weir_graph_view_free(v);
	return n;
}

/* The source deals in turn, and events never change the copy, though stages take long. */
static void run_copies(const char *schedule, int run)
{
	int n = EVENTS / task_cores() * task_cores();

	reset(n);
	struct weir_spec *spec = copies(schedule);
	weir_spec_text(&spec->stages[2].use, "t.kept"); /* all stages mark their events */
	fixture_set(&spec->stages[2], "mode", "replicated");
	for (int i = 0; i < 3; i++)
		fixture_set(
		    &spec->stages[i], "queue.limit", "64"); /* so that many take the queues */
	weir_spec_link(&spec->stages[2], "", "d", false);
	in_group(spec, "d", "t.end", NULL);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL(weir_graph_stage(g, "a")->sink.queue.n_parts, task_cores());
	offer(g, n, run);
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	CU_ASSERT_EQUAL(atomic_load(&moved), 0);
	for (int k = 0; k < task_cores(); k++)
		CU_ASSERT_EQUAL(at_core(g, "a", k), (uint64_t)(n / task_cores()));
	weir_thread_detach();
	finish_graph(g, 0);
	check_each_once(n);
	CU_ASSERT_EQUAL(atomic_load(&shared_by_two), 0);
}

static void test_copies(void)
{
	if (task_cores() < 2)
		return;
	run_copies("fifo", 64);
	run_copies("wavefront", 1);
	run_copies("color", 7);
}

/* A stage without replicas is kept in its copy, too, when a core dies. */
static void test_copies_death(void)
{
	if (task_cores() < 2)
		return;
	weir_log_set_fd(-1);
	reset(1000);
	dies = true;
	struct weir_graph *g = fixture_start(copies("fifo"));
	offer(g, 1000, 100);
	FIXTURE_AWAIT(fixture_ended() == 1000);
	CU_ASSERT_EQUAL(atomic_load(&moved), 0);
	finish(g, 1000);
	weir_log_set_fd(2);
}

/* The limit is one for all copies, and what waits is dealt equally. */
static void test_copies_limit(void)
{
	struct weir_event *ev[20];
	char why[200];

	if (task_cores() < 2)
		return;
	reset(20);
	struct weir_spec *spec = copies("fifo");
	fixture_set(&spec->stages[0], "queue.limit", "10");
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *to = weir_graph_stage(g, "a");
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	weir_thread_attach(g, "test");
	for (int i = 0; i < 20; i++) {
		weir_event_init(&probes[i].ev, &probe_type, 1);
		ev[i] = &probes[i].ev;
	}
	int left = 20 - weir_offer(to, ev, 20, NULL);
	CU_ASSERT_EQUAL(left, 10);
	CU_ASSERT_EQUAL(stage_view(g, "a").queue_length, 10);
	for (int k = 0; k < task_cores(); k++)
		CU_ASSERT_TRUE(abs((int)queue_copy_length(&to->sink.queue, k) * task_cores() - 10) <
			       task_cores());
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_RUN, why, sizeof(why)), 0);
	while (left > 0)
		left -= weir_offer(to, ev, left, NULL);
	FIXTURE_AWAIT(fixture_ended() == 20);
	finish(g, 20);
}

CUNIT_MAIN("copies", {"types", test_types}, {"turns", test_copies}, {"death", test_copies_death},
    {"limit", test_copies_limit})
