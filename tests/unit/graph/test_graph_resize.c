/* SPDX-License-Identifier: MIT */
/* Resize policy weir with real threads: a stage that blocks grows, explains it with figures from
 * the kernel, and is limited by the thread budget of the process. (For its rules see
 * test_resize_weir.c.) */
#include "fixture/graph/probes.h"

#include <time.h>

#include "base/task.h"

static void nap_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct timespec left = {0, 20000000};

	while (nanosleep(&left, &left) != 0)
		;
	end_handle(st, ev, n);
}

static const struct weir_stage_ops nap_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.nap",
    .summary = "sleeps 20 ms a call",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &probe_type,
    .handle = nap_handle};

static struct weir_graph *start(const char *max)
{
	struct weir_spec *spec = weir_spec_new("resize");
	struct weir_stage_spec *s = fixture_stage(spec, "nap", "t.nap", NULL);

	fixture_set(s, "threads.max", max);
	weir_spec_text(&s->threads.policy, "weir");
	fixture_set(s, "admission.policy", "none"); /* a long queue is wanted */
	prepare(N);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	return g;
}

/* Keep 200 events waiting until the pool has `n` threads. */
static int load_until(struct weir_graph *g, int n)
{
	int at = 0;

	while (stage_view(g, "nap").threads_target < n) {
		CU_ASSERT_TRUE_FATAL(at < N - 50);
		fixture_offer_all(weir_graph_stage(g, "nap"), probes + at, 50, 50);
		at += 50;
		FIXTURE_AWAIT(stage_view(g, "nap").queue_length < 150 ||
			      stage_view(g, "nap").threads_target >= n);
	}
	return at;
}

static void stop(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
}

static void test_grows_by_figures(void)
{
	struct weir_graph *g = start("8");
	struct weir_decision d[64];
	double need = 0, rate, cpu = -1, blocked = 0;
	int at = load_until(g, 8), n = 0, said = 0;

	FIXTURE_AWAIT(
	    (n = weir_graph_decisions(g, d, 64)) > 0); /* journaled after it was carried out */
	for (int i = 0; i < n; i++) {
		/* On a machine that stalls, handlers look stuck, and the watchdog reports them. */
		if (strcmp(d[i].actor, "watchdog") == 0)
			continue;
		CU_ASSERT_STRING_EQUAL(d[i].actor, "weir");
		/* The sum follows the number of threads needed and the number that can help. */
		const char *sum = strchr(d[i].rule, ':');
		said += sum && sscanf(d[i].rule, "need %lf threads", &need) == 1 &&
			sscanf(sum, ": %lf/s x (%lf ms CPU + %lf ms blocked) / 0.8", &rate, &cpu,
			    &blocked) == 3;
	}
	CU_ASSERT_TRUE(said >= 1);
	CU_ASSERT_TRUE(cpu >= 0 && blocked >= 10 && cpu < blocked);
	stop(g, at);
}

/* With a maximum beyond the budget, the budget limits the pool and is named as the reason. Another
 * pool has all but four. */
static void test_budget_holds(void)
{
	struct weir_spec *spec = weir_spec_new("budget");
	fixture_stage(spec, "nap", "t.nap", NULL);
	struct weir_stage_spec *o = fixture_stage(spec, "other", "t.end", NULL);
	struct weir_stage_spec *s = &spec->stages[0];
	struct weir_decision d[64];
	char most[16];

	fixture_set(s, "threads.max", "1024");
	weir_spec_text(&s->threads.policy, "weir");
	snprintf(most, sizeof(most), "%d", task_budget() - 4);
	fixture_set(o, "threads.min", most);
	fixture_set(o, "threads.max", most);
	prepare(N);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	int at = load_until(g, 4), n = weir_graph_decisions(g, d, 64), named = 0;
	while (!named) {
		CU_ASSERT_TRUE_FATAL(at < N - 50);
		fixture_offer_all(weir_graph_stage(g, "nap"), probes + at, 50, 50);
		at += 50;
		FIXTURE_AWAIT(stage_view(g, "nap").queue_length < 150);
		n = weir_graph_decisions(g, d, 64);
		for (int i = 0; i < n; i++)
			named += strstr(d[i].limit, "thread budget allows 4") != NULL;
	}
	CU_ASSERT_EQUAL(stage_view(g, "nap").threads_target, 4);
	stop(g, at);
}

static void test_prepare(void)
{
	fixture_register(&nap_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("graph_resize", {"types are known", test_prepare},
    {"grows by figures", test_grows_by_figures}, {"the budget holds", test_budget_holds})
