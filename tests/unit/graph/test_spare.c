/* SPDX-License-Identifier: MIT */
/* Spare threads of core groups: while a core sleeps in a handler, the events in queues are served, those
 * that belong to it wait, and all is told; spares end with the sleep, the group, and its number of
 * cores. */
#include "fixture/graph/probes.h"

#include <semaphore.h>

#include "base/clock.h"
#include "base/task.h"
#include "event/local.h"
#include "graph/graph.h"
#include "sched/spare.h"

#define EVENTS 400
/* seq of the event that sleeps in t.sleep, and that ends its thread in t.deadly */
#define SLEEPER 0
#define ODD     70

static sem_t bed;
static atomic_int asleep_in; /* number of handlers that sleep */
static atomic_int sleeps;    /* how often the handler at the event sleeps; 0: once */
static atomic_int slept;     /* sleeps that have ended */

static void sleep_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq != SLEEPER)
			continue;
		atomic_fetch_add(&asleep_in, 1);
		do
			while (sem_wait(&bed) != 0)
				continue;
		while (atomic_fetch_add(&slept, 1) + 1 < atomic_load(&sleeps));
		atomic_fetch_sub(&asleep_in, 1);
	}
	end_handle(st, ev, n);
}

static const struct weir_stage_ops sleep_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_REPLICABLE,
    .name = "t.sleep",
    .summary = "sleeps at one event",
    .accepts = &probe_type,
    .handle = sleep_handle};

static const struct weir_stage_ops holds_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.holds",
    .summary = "may hold",
    .accepts = &probe_type,
    .handle = end_handle};

static void deadly_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		if (((struct probe *)ev[i])->seq == ODD)
			pthread_exit(NULL);
	pass_handle(st, ev, n);
}

static const struct weir_stage_ops deadly_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.deadly",
    .summary = "passes on, ends its thread at one event",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = deadly_handle};

static struct weir_stage_spec *in_group(
    struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	struct weir_stage_spec *s = fixture_stage(spec, name, use, to);

	weir_spec_text(&s->group, "core");
	weir_spec_text(&s->admission.policy, "none");
	fixture_set(s, "queue.limit", "20000");
	fixture_set(s, "cohort.max", "1");
	return s;
}

/* One core, or as many as `cores` says: w sleeps; a passes on to b. */
static struct weir_spec *spec_new(const char *cores, const char *use)
{
	struct weir_spec *spec = weir_spec_new("spare");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");

	weir_spec_text(&g->schedule, "fifo");
	weir_spec_text(&g->cores, cores);
	g->threads.stuck_ns = 0; /* the signal of the watchdog would wake the sleeper */
	in_group(spec, "w", "t.sleep", NULL);
	in_group(spec, "a", use, "b");
	in_group(spec, "b", "t.end", NULL);
	prepare(EVENTS);
	sem_init(&bed, 0, 0);
	atomic_store(&sleeps, 0);
	atomic_store(&slept, 0);
	return spec;
}

static struct core_group *group_of(struct weir_graph *g)
{
	return weir_graph_stage(g, "w")->pool->cores;
}

/* Whether the thread of the spare of core `k` is there. */
static bool spare_is(struct weir_graph *g, int k, int slot)
{
	struct core_group *group = group_of(g);
	struct handler *h = atomic_load(&group->pool->handler[group->first_spare + k]);

	return h && atomic_load(&h->slot) == slot;
}

static bool all_gone(struct weir_graph *g)
{
	struct core_group *group = group_of(g);
	bool gone = true;

	for (int i = group->first_spare; i < atomic_load(&group->pool->n_slots); i++) {
		struct handler *h = atomic_load(&group->pool->handler[i]);
		gone &= !h || atomic_load(&h->slot) == HANDLER_EMPTY;
	}
	return gone;
}

static void offer(struct weir_graph *g, const char *name, int first, int n)
{
	fixture_offer_all(weir_graph_stage(g, name), &probes[first], n, n < 16 ? n : 16);
}

/* The first event sleeps in w. */
static struct weir_graph *start_asleep(struct weir_spec *spec)
{
	weir_log_set_fd(-1);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	offer(g, "w", 0, 1);
	FIXTURE_AWAIT(atomic_load(&asleep_in) == 1);
	return g;
}

static void wake(void)
{
	sem_post(&bed);
}

static void finish(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	FIXTURE_AWAIT(all_gone(g));
	weir_thread_detach();
	finish_graph(g, 0);
	sem_destroy(&bed);
	weir_log_set_fd(2);
}

static void check_told(struct weir_graph *g)
{
	struct weir_graph_view *v;
	struct weir_decision d[4];
	int n = weir_graph_decisions(g, d, 4), told = 0;

	for (int i = 0; i < n; i++)
		told += strcmp(d[i].action, "blocked") == 0 && strcmp(d[i].stage, "core") == 0 &&
			strncmp(d[i].rule, "core 0 has slept for ", 21) == 0 &&
			strstr(d[i].rule, " ms in a handler of stage 'w'");
	CU_ASSERT_EQUAL(told, 1);
	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	CU_ASSERT_EQUAL_FATAL(v->n_groups, 1);
	CU_ASSERT_EQUAL(v->groups[0].core[0].blocked, 1);
	/* the work of the spare is shown as that of its core */
	CU_ASSERT_EQUAL(v->groups[0].n_cores, 1);
	CU_ASSERT_EQUAL(v->groups[0].core[0].events, 1 + 2 * (EVENTS - 1));
	weir_graph_view_free(v);
}

static struct weir_core_view core_view(struct weir_graph *g)
{
	struct weir_graph_view *v;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	CU_ASSERT_EQUAL_FATAL(v->n_groups, 1);
	struct weir_core_view core = v->groups[0].core[0];
	weir_graph_view_free(v);
	return core;
}

static bool is_blocked(struct weir_graph *g)
{
	return core_view(g).blocked_ns > 0;
}

/* When the present sleep began, as views show it; 0: the core is awake. */
static int64_t asleep_since(struct weir_graph *g)
{
	return atomic_load(&group_of(g)->watched[0].now.since_ns);
}

/* Two sleeps in a call count once, and the core is blocked in both of them. */
static void test_counts_calls(void)
{
	struct weir_spec *spec = spec_new("1", "t.pass");

	atomic_store(&sleeps, 2);
	struct weir_graph *g = start_asleep(spec);
	FIXTURE_AWAIT(is_blocked(g));
	struct weir_core_view c = core_view(g);
	int64_t first_ns = asleep_since(g);
	CU_ASSERT_STRING_EQUAL(c.blocked_in, "w");
	CU_ASSERT_TRUE(c.blocked_ns >= BLOCKED_NS);
	wake();
	FIXTURE_AWAIT(asleep_since(g) != 0 && asleep_since(g) != first_ns);
	CU_ASSERT_TRUE(core_view(g).blocked_ns > c.blocked_ns);
	CU_ASSERT_EQUAL(core_view(g).blocked, 1);
	wake();
	FIXTURE_AWAIT(fixture_ended() == 1 && !is_blocked(g));
	CU_ASSERT_PTR_NULL(core_view(g).blocked_in);
	CU_ASSERT_EQUAL(core_view(g).blocked, 1);
	offer(g, "w", 0, 1); /* another call */
	FIXTURE_AWAIT(is_blocked(g));
	CU_ASSERT_EQUAL(core_view(g).blocked, 2);
	wake();
	FIXTURE_AWAIT(fixture_ended() == 2);
	weir_thread_detach();
	finish_graph(g, 0);
	sem_destroy(&bed);
	weir_log_set_fd(2);
}

/* The busy time grows during the call, never decreases, and never exceeds the length of the call,
 * though a spare works as well. */
static void test_busy(void)
{
	int64_t began_ns = clock_now_ns();
	struct weir_graph *g = start_asleep(spec_new("1", "t.pass"));
	uint64_t last_ns = 0;

	for (int i = 1; i < EVENTS; i++) {
		offer(g, "a", i, 1);
		FIXTURE_AWAIT(fixture_ended() == (uint64_t)i);
		uint64_t busy_ns = core_view(g).busy_ns;
		CU_ASSERT_TRUE(busy_ns >= last_ns);
		CU_ASSERT_TRUE(busy_ns <= (uint64_t)stage_view(g, "w").longest_running_ns);
		last_ns = busy_ns;
	}
	CU_ASSERT_TRUE(last_ns > 0);
	FIXTURE_AWAIT(core_view(g).busy_ns > last_ns);
	CU_ASSERT_TRUE(core_view(g).events == 1 + 2 * (EVENTS - 1));
	last_ns = core_view(g).busy_ns;
	wake();
	FIXTURE_AWAIT(fixture_ended() == EVENTS && !is_blocked(g));
	CU_ASSERT_TRUE(core_view(g).busy_ns >= last_ns);
	CU_ASSERT_TRUE(core_view(g).busy_ns <= (uint64_t)(clock_now_ns() - began_ns));
	finish(g, EVENTS);
}

/* All events that come from outside pass both stages while the only core sleeps. */
static void test_serves(void)
{
	struct weir_graph *g = start_asleep(spec_new("1", "t.pass"));

	offer(g, "a", 1, EVENTS - 1);
	FIXTURE_AWAIT(fixture_ended() == EVENTS - 1);
	CU_ASSERT_EQUAL(atomic_load(&asleep_in), 1);
	CU_ASSERT_TRUE(spare_is(g, 0, HANDLER_LIVE));
	check_told(g);
	wake();
	finish(g, EVENTS);
}

/* What a sends while it is asleep waits in the cell of c; what comes for b does not. */
static void test_cells_wait(void)
{
	struct weir_spec *spec = spec_new("1", "t.pass");

	fixture_set(in_group(spec, "first", "t.pass", "c"), "cohort.max", "20");
	fixture_set(&spec->stages[3], "cohort.linger", "1s"); /* so that the batch is full */
	in_group(spec, "c", "t.sleep", NULL)->local = WEIR_LOCAL_ALWAYS;
	struct weir_graph *g = fixture_start(spec);
	weir_log_set_fd(-1);
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "first"), probes, 20, 20);
	FIXTURE_AWAIT(atomic_load(&asleep_in) == 1);
	offer(g, "a", 20, 30);
	FIXTURE_AWAIT(fixture_ended() == 30);
	CU_ASSERT_EQUAL(sink_in_cells(&weir_graph_stage(g, "c")->sink), 19);
	for (int i = 0; i < 20; i++)
		CU_ASSERT_EQUAL(atomic_load(&probes[i].finishes), 0);
	wake();
	finish(g, 50);
}

/* The stage of the sleeper is exclusive, serial or replicated: its events wait, others do not. */
static void test_owned(void)
{
	for (int i = 0; i < 3; i++) {
		struct weir_spec *spec = spec_new("1", "t.pass");
		if (i == 0)
			fixture_set(&spec->stages[0], "mode", "exclusive");
		else if (i == 1)
			weir_spec_text(&spec->stages[0].serial, "producer");
		else
			fixture_set(&spec->stages[0], "mode", "replicated");
		struct weir_graph *g = start_asleep(spec);
		offer(g, "w", 1, 20);
		offer(g, "a", 21, 30);
		FIXTURE_AWAIT(fixture_ended() == 30);
		for (int k = 0; k <= 20; k++)
			CU_ASSERT_EQUAL(atomic_load(&probes[k].finishes), 0);
		wake();
		finish(g, 51);
	}
}

/* The spare has the partitions of its core, and its copy of the group. */
static void test_stands_in(void)
{
	for (int i = 0; i < 2; i++) {
		struct weir_spec *spec = spec_new("2", "t.pass");
		if (task_cores() < 2) {
			weir_spec_free(spec);
			return;
		}
		if (i == 0) {
			fixture_set(&spec->stages[1], "mode", "partitioned");
			fixture_set(&spec->stages[1], "key", "producer");
		} else {
			spec->groups[0].replicas = 2;
		}
		for (int k = 0; k < EVENTS; k++)
			probes[k].producer = k;
		struct weir_graph *g = start_asleep(spec);
		CU_ASSERT_TRUE(weir_graph_stage(g, "a")->sink.queue.n_parts >= 2);
		offer(g, "a", 1, EVENTS - 1);
		FIXTURE_AWAIT(fixture_ended() == EVENTS - 1);
		CU_ASSERT_EQUAL(atomic_load(&asleep_in), 1);
		wake();
		finish(g, EVENTS);
	}
}

/* Whether the spare of a core is parked, and the other core is the first that a sender would wake. */
static bool core_is_first(struct weir_graph *g)
{
	struct core_group *group = group_of(g);
	struct pool *pool = group->pool;

	lock_take(&pool->lock);
	const struct handler *h = pool->idle;
	bool is =
	    h && h->rank < group->max && h->next_idle && h->next_idle->rank >= group->first_spare;
	lock_release(&pool->lock);
	return is;
}

/* Events of stages whose events a spare may not take, beside the serial ones and those that hold: the
 * core that is parked gets the wake-up for them. */
static void test_barred(void)
{
	for (int i = 0; i < 2; i++) {
		struct weir_spec *spec = spec_new("2", "t.pass");
		if (task_cores() < 2) {
			weir_spec_free(spec);
			return;
		}
		if (i == 0) {
			fixture_set(in_group(spec, "it", "t.sleep", NULL), "mode", "replicated");
		} else {
			weir_spec_text(&in_group(spec, "k", "t.holds", NULL)->serial, "producer");
			fixture_set(&spec->stages[3], "width.max", "100");
			fixture_set(in_group(spec, "it", "t.holds", NULL), "width.max", "100");
		}
		struct weir_graph *g = start_asleep(spec);
		FIXTURE_AWAIT(core_is_first(g));
		offer(g, "it", 1, 1);
		FIXTURE_AWAIT(fixture_ended() == 1);
		wake();
		finish(g, 2);
	}
}

/* A handler ends the thread of the spare: another one takes its place. */
static void test_death(void)
{
	struct weir_graph *g = start_asleep(spec_new("1", "t.deadly"));

	offer(g, "a", 1, EVENTS - 1);
	FIXTURE_AWAIT(fixture_ended() == EVENTS - 1);
	CU_ASSERT_EQUAL(atomic_load(&asleep_in), 1);
	CU_ASSERT_EQUAL(probes[ODD].status, WEIR_EDIED);
	wake();
	finish(g, EVENTS);
}

/* Choose a key with which the probe gets into this partition of w. */
static void to_partition(struct weir_graph *g, struct probe *p, int part)
{
	const struct sink *s = &weir_graph_stage(g, "w")->sink;

	while (queue_part(&s->queue, sink_key(s, &p->ev)) != part)
		p->producer++;
}

/* The group loses core 1, which sleeps: it needs no spare any more, and the other core goes on. */
static void test_fewer_cores(void)
{
	struct weir_spec *spec = spec_new("1..2", "t.pass");

	if (task_cores() < 2) {
		weir_spec_free(spec);
		return;
	}
	weir_spec_text(&spec->groups[0].threads.policy, "static");
	fixture_set(&spec->stages[0], "mode", "partitioned");
	fixture_set(&spec->stages[0], "key", "producer");
	weir_log_set_fd(-1);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	struct pool *pool = group_of(g)->pool;
	pool_set_target(pool, 2);
	FIXTURE_AWAIT(pool_seats(pool) == 2);
	to_partition(g, &probes[0], 1);
	offer(g, "w", 0, 1);
	FIXTURE_AWAIT(spare_is(g, 1, HANDLER_LIVE));
	CU_ASSERT_EQUAL(atomic_load(&asleep_in), 1);
	pool_set_target(pool, 1);
	FIXTURE_AWAIT(all_gone(g));
	offer(g, "a", 1, EVENTS - 1);
	FIXTURE_AWAIT(fixture_ended() == EVENTS - 1);
	CU_ASSERT_EQUAL(atomic_load(&asleep_in), 1);
	wake();
	finish(g, EVENTS);
}

static void *wake_when_closed(void *arg)
{
	FIXTURE_AWAIT(atomic_load(&group_of(arg)->pool->stopping));
	wake();
	return NULL;
}

/* A drain without time, while the core sleeps. */
static void test_drain(void)
{
	struct weir_graph *g = start_asleep(spec_new("1", "t.pass"));
	struct weir_drain_report r;
	pthread_t t;

	FIXTURE_AWAIT(spare_is(g, 0, HANDLER_LIVE));
	offer(g, "a", 1, 100);
	weir_thread_detach();
	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, wake_when_closed, g), 0);
	weir_graph_drain(g, 0, &r);
	pthread_join(t, NULL);
	CU_ASSERT_EQUAL(r.law_error, 0);
	weir_graph_free(g);
	CU_ASSERT_EQUAL(fixture_ended(), 101);
	check_each_once(101);
	sem_destroy(&bed);
	weir_log_set_fd(2);
}

/* A paused stage waits, and goes on with the spare. */
static void test_pause(void)
{
	struct weir_graph *g = start_asleep(spec_new("1", "t.pass"));
	char why[200];

	FIXTURE_AWAIT(spare_is(g, 0, HANDLER_LIVE));
	CU_ASSERT_EQUAL(weir_graph_steer(g, "b", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	offer(g, "a", 1, 50);
	FIXTURE_AWAIT(stage_view(g, "b").queue_length == 50);
	CU_ASSERT_EQUAL(fixture_ended(), 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "b", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(fixture_ended() == 50);
	wake();
	finish(g, 51);
}

static void test_types(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&sleep_ops);
	fixture_register(&holds_ops);
	fixture_register(&deadly_ops);
}

CUNIT_MAIN("spare threads", {"types are known", test_types}, {"serves queues", test_serves},
    {"cells wait", test_cells_wait}, {"what is owned waits", test_owned},
    {"stands in", test_stands_in}, {"barred", test_barred}, {"death", test_death},
    {"fewer cores", test_fewer_cores}, {"drain", test_drain}, {"pause", test_pause},
    {"counts calls", test_counts_calls}, {"busy time", test_busy})
