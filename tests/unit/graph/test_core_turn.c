/* SPDX-License-Identifier: MIT */
/* Core groups: what a core takes first, and when it sleeps. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"
#include "sched/cores.h"

static void gate_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	FIXTURE_AWAIT(atomic_load(&probe_gate));
	end_handle(st, ev, n);
}

/* Like t.gate, which core groups refuse, since it may block. */
static const struct weir_stage_ops wait_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.wait",
    .summary = "waits for the test",
    .accepts = &probe_type,
    .handle = gate_handle};

static struct weir_spec *spec_new(const char *schedule, int cores)
{
	struct weir_spec *spec = weir_spec_new("turn");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");
	char n[16];

	snprintf(n, sizeof(n), "%d", cores);
	weir_spec_text(&g->schedule, schedule);
	weir_spec_text(&g->cores, n);
	return spec;
}

static struct weir_stage_spec *in_group(
    struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	struct weir_stage_spec *s = fixture_stage(spec, name, use, to);

	weir_spec_text(&s->group, "core");
	weir_spec_text(&s->admission.policy, "none");
	s->local = WEIR_LOCAL_ALWAYS;
	return s;
}

static void offer(struct weir_graph *g, const char *name, int first, int n)
{
	fixture_offer_all(weir_graph_stage(g, name), &probes[first], n, n);
}

static struct weir_graph *start(struct weir_spec *spec)
{
	struct weir_graph *g = fixture_start(spec);

	weir_thread_attach(g, "test");
	return g;
}

static void finish(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* ---- lingering ---- */

/* Whether all `n` threads of the pool are parked, and as many as `lingering` wait until a batch of
 * the stage is due. A parked thread does not change what is read here. */
static bool all_parked(const struct sink *s, int n, int lingering)
{
	struct pool *pool = s->pool;
	int parked = 0, linger = 0;

	lock_take(&pool->lock);
	for (int k = 0; k < n; k++) {
		const struct handler *h = atomic_load(&pool->handler[k]);
		if (!h || !h->listed)
			continue;
		parked++;
		linger += h->ready_ns[s->place] != INT64_MAX;
	}
	lock_release(&pool->lock);
	return parked == n && linger == lingering;
}

/* Both cores wait until the batch of a is due. One is then in a call of w, the other takes the
 * event. The first must not go on to wait for it. */
static void test_linger(void)
{
	struct weir_spec *spec = spec_new("fifo", 2);
	struct weir_stage_spec *a = in_group(spec, "a", "t.end", NULL);

	in_group(spec, "w", "t.wait", NULL);
	fixture_set(a, "cohort.max", "2");
	fixture_set(a, "cohort.linger", "500ms");
	prepare(2);
	atomic_store(&probe_gate, 0);
	struct weir_graph *g = start(spec);
	struct sink *sink = &weir_graph_stage(g, "a")->sink;
	struct pool *pool = sink->pool;
	FIXTURE_AWAIT(all_parked(sink, 2, 0));
	offer(g, "a", 0, 1);
	pool_wake_all(pool);
	FIXTURE_AWAIT(all_parked(sink, 2, 2) || fixture_ended() == 1);
	offer(g, "w", 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 1);
	FIXTURE_AWAIT(!(atomic_load(&pool->cores->arrived) >> sink->place & 1));
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == 2);
	FIXTURE_AWAIT(all_parked(sink, 2, 0));
	finish(g, 2);
}

static void test_types(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&wait_ops);
}

CUNIT_MAIN("core turn", {"types are known", test_types}, {"linger", test_linger})
