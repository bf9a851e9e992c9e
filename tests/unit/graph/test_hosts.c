/* SPDX-License-Identifier: MIT */
/* Loops of a source whose threads are the cores of a group: what they emit stays on the core, other
 * threads wake them, lingering batches are due in time, cores without a loop have plain threads,
 * loops that cannot be cores do not start, and a core that leaves can come back at once. */
#include "fixture/graph/probes.h"

#include <weir/io.h>

#include "base/clock.h"
#include "base/task.h"
#include "event/local.h"
#include "graph/graph.h"
#include "sched/cores.h"
#include "sched/host.h"

#define SINGLES 500
#define RUN     1000

static struct weir_loop *loops[2];
static int n_loops;                /* how many the source starts, at most one per core */
static atomic_int elsewhere, gone; /* batches that the sending loop did not run; loops that ended */
static struct weir_loop *odd;
static atomic_int held = -1; /* seq of the event that waits for the gate, -1: none */
static atomic_int holding;
static bool slow;                /* the callback takes twice HOST_NS */
static atomic_int turns, waited; /* calls of turn_end; those before the last event was handled */

static void mail(struct weir_loop *loop, struct weir_event *list)
{
	for (int64_t from_ns = clock_now_ns(); slow && clock_now_ns() < from_ns + 2 * HOST_NS;)
		task_relax();
	atomic_store(&turns, 0);
	while (list) {
		struct weir_event *ev = list;
		list = ev->next;
		weir_event_init(ev, &probe_type, weir_loop_now_ns(loop));
		((struct probe *)ev)->producer = loop == loops[1];
		weir_emit(weir_loop_stage(loop), 0, &ev);
	}
}

static void turn_end(struct weir_loop *loop)
{
	(void)loop;
	atomic_fetch_add(&turns, 1);
}

static void stop(struct weir_loop *loop)
{
	(void)loop;
	atomic_fetch_add(&gone, 1);
}

static const struct weir_loop_ops loop_ops = {.mail = mail, .turn_end = turn_end, .stop = stop};

static int source_start(struct weir_stage *st, struct weir_err *err)
{
	int rc = 0;

	(void)err;
	for (int i = 0; i < n_loops && rc == 0; i++)
		rc = weir_loop_start(st, i, &loop_ops, NULL, &loops[i]);
	CU_ASSERT_EQUAL(
	    weir_loop_start(st, weir_loop_cores(st), &loop_ops, NULL, &odd), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_loop_start(st, 0, &loop_ops, NULL, &odd), WEIR_EBUSY);
	return rc;
}

static void source_fini(struct weir_stage *st)
{
	(void)st;
	for (int i = 0; i < n_loops; i++) {
		weir_loop_stop(loops[i]);
		weir_loop_join(loops[i]);
	}
}

static const struct weir_outlet probe_outlet[] = {{"out", &probe_type, false, ""}, {.name = NULL}};

static const struct weir_stage_ops source_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_SOURCE | WEIR_STAGE_HOSTS,
    .name = "t.loops",
    .summary = "emits the mail of its loops",
    .outlets = probe_outlet,
    .start = source_start,
    .fini = source_fini};

/* Passes on; counts the events of loops that another thread handles. */
static void here_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		int from = ((struct probe *)ev[i])->producer;
		atomic_store(&waited, atomic_load(&turns));
		if (from < 2 && !weir_loop_is_mine(loops[from]))
			atomic_fetch_add(&elsewhere, 1);
		if ((int)((struct probe *)ev[i])->seq == atomic_load(&held)) {
			atomic_store(&holding, 1);
			FIXTURE_AWAIT(atomic_load(&probe_gate));
		}
		weir_emit(st, 0, &ev[i]);
	}
}

static const struct weir_stage_ops here_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.here",
    .summary = "passes on and notes the thread",
    .accepts = &probe_type,
    .outlets = probe_outlet,
    .handle = here_handle};

static struct weir_stage_spec *in_group(
    struct weir_spec *spec, const char *name, const char *use, const char *to)
{
	struct weir_stage_spec *s = fixture_stage(spec, name, use, to);

	weir_spec_text(&s->group, "core");
	return s;
}

/* A source and stages a and b in a group of as many cores as there may be, at most 2. */
static struct weir_spec *spec_of(int most)
{
	struct weir_spec *spec = weir_spec_new("hosts");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");
	char cores[8];

	snprintf(cores, sizeof(cores), "%d", task_cores() < 2 ? 1 : 2);
	weir_spec_text(&g->schedule, "wavefront");
	weir_spec_text(&g->cores, cores);
	g->balance = false;
	in_group(spec, "web", "t.loops", "a");
	for (int i = 0; i < 2; i++) {
		struct weir_stage_spec *s =
		    in_group(spec, i ? "b" : "a", i ? "t.end" : "t.here", i ? NULL : "b");
		fixture_set(s, "queue.limit", "20000");
		s->local = WEIR_LOCAL_ALWAYS;
	}
	n_loops = most < atoi(cores) ? most : atoi(cores);
	atomic_store(&elsewhere, 0);
	atomic_store(&gone, 0);
	return spec;
}

static void end(struct weir_graph *g, int n)
{
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
	CU_ASSERT_EQUAL(atomic_load(&gone), n_loops);
}

/* Events of a loop are handled in its thread, whether or not a policy judges them. */
static void emits(const char *policy)
{
	struct weir_spec *spec = spec_of(2);

	prepare(2 * RUN);
	fixture_set(&spec->stages[1], "admission.policy", policy);
	fixture_set(&spec->stages[2], "admission.policy", "none");
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	for (int i = 0; i < 2 * RUN; i++) {
		weir_loop_send(loops[i % n_loops], &probes[i].ev);
		if (i % 7 == 0)
			weir_thread_flush();
	}
	weir_thread_flush();
	end(g, 2 * RUN);
	CU_ASSERT_EQUAL(atomic_load(&elsewhere), 0);
}

static void test_emits(void)
{
	emits("none");
	emits("weir");
}

/* Number of events at the stage that cores took from its queue. */
static uint64_t from_queue(struct weir_graph *g, const char *name)
{
	const struct sink *s = &weir_graph_stage(g, name)->sink;
	const struct pool *pool = s->pool;
	uint64_t n = 0;

	for (int k = 0; k < pool->cores->max; k++)
		n += book_read(&pool->cores->core[k].book[s->place].from_queue);
	return n;
}

/* The first event of a loop stays on the core at stages with `local: always`. At another stage, whose
 * service time is unknown, it takes the queue. */
static void test_first_event(void)
{
	for (int local = WEIR_LOCAL_AUTO; local <= WEIR_LOCAL_ALWAYS; local++) {
		struct weir_spec *spec = spec_of(1);
		prepare(1);
		spec->stages[2].local = local;
		struct weir_graph *g = fixture_start(spec);
		weir_thread_attach(g, "test");
		weir_loop_send(loops[0], &probes[0].ev);
		weir_thread_flush();
		FIXTURE_AWAIT(fixture_ended() == 1);
		CU_ASSERT_EQUAL(from_queue(g, "a"), 0);
		CU_ASSERT_EQUAL(from_queue(g, "b"), local == WEIR_LOCAL_AUTO);
		end(g, 1);
	}
}

/* Each single event from another thread finds the cores asleep, or nearly so. */
static void test_wakes(void)
{
	prepare(SINGLES);
	struct weir_graph *g = fixture_start(spec_of(2));
	weir_thread_attach(g, "test");
	for (int i = 0; i < SINGLES; i++) {
		probes[i].producer = 2;
		fixture_offer_all(weir_graph_stage(g, "a"), &probes[i], 1, 1);
		FIXTURE_AWAIT(atomic_load(&probes[i].finishes) == 1);
	}
	end(g, SINGLES);
}

/* An event waits for others, and nothing wakes the core when its time is over. */
static void test_lingers(void)
{
	struct weir_spec *spec = spec_of(2);

	prepare(20);
	spec->stages[1].local = WEIR_LOCAL_AUTO;
	spec->stages[1].cohort.linger_ns = 300 * NS_PER_US;
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	for (int i = 0; i < 20; i++) {
		probes[i].producer = 2;
		fixture_offer_all(weir_graph_stage(g, "a"), &probes[i], 1, 1);
		FIXTURE_AWAIT(atomic_load(&probes[i].finishes) == 1);
	}
	end(g, 20);
}

/* The source starts one loop only: the other core is a thread of the pool, and both serve. */
static void test_other_cores(void)
{
	prepare(RUN);
	struct weir_graph *g = fixture_start(spec_of(1));
	struct pool *pool = weir_graph_stage(g, "a")->pool;
	int cores = task_cores() < 2 ? 1 : 2;

	FIXTURE_AWAIT(pool_seats(pool) == cores && pool_serves(pool));
	CU_ASSERT_TRUE(atomic_load(&pool->handler[0])->hosted);
	CU_ASSERT_TRUE(cores == 1 || !atomic_load(&pool->handler[1])->hosted);
	weir_thread_attach(g, "test");
	for (int i = 0; i < RUN; i++)
		probes[i].producer = 2;
	fixture_offer_all(weir_graph_stage(g, "a"), probes, RUN, 16);
	end(g, RUN);
}

/* ---- cores that leave and come back ---- */

static bool is_apart(struct pool *pool, int rank)
{
	const struct handler *h = atomic_load(&pool->handler[rank]);

	return h && atomic_load(&h->slot) == HANDLER_APART;
}

/* Start a group of one or two cores, of which both run. */
static struct weir_graph *start_both(struct weir_spec *spec)
{
	weir_spec_text(&spec->groups[0].cores, "1..2");
	weir_spec_text(&spec->groups[0].threads.policy, "static");
	n_loops = 2;
	struct weir_graph *g = fixture_start(spec);
	struct pool *pool = weir_graph_stage(g, "a")->pool;
	FIXTURE_AWAIT(is_apart(pool, 1));
	pool_set_target(pool, 2);
	FIXTURE_AWAIT(pool_seats(pool) == 2);
	weir_thread_attach(g, "test");
	return g;
}

/* The time of the callbacks of a loop does not count as that of its batches: what they have emitted
 * is handled before the loop polls again. */
static void test_slow_callback(void)
{
	prepare(1);
	struct weir_graph *g = fixture_start(spec_of(1));
	weir_thread_attach(g, "test");
	slow = true;
	weir_loop_send(loops[0], &probes[0].ev);
	weir_thread_flush();
	FIXTURE_AWAIT(fixture_ended() == 1);
	slow = false;
	CU_ASSERT_EQUAL(atomic_load(&waited), 1);
	end(g, 1);
}

static void (*real_wake)(struct sink *s, uint32_t before, uint32_t after, uint64_t parts);
static atomic_int comes_back;

static void hooked_wake(struct sink *s, uint32_t before, uint32_t after, uint64_t parts)
{
	if (atomic_exchange(&comes_back, 0))
		pool_set_target(s->pool, 2);
	real_wake(s, before, after, parts);
}

/* A core that leaves puts the events of its cells into queues. Meanwhile it is wanted again, and no
 * wake-up reaches it. */
static void test_wanted_while_leaving(void)
{
	if (task_cores() < 2)
		return;
	prepare(3 * HOST_EVENTS);
	struct weir_graph *g = start_both(spec_of(2));
	struct pool *pool = weir_graph_stage(g, "a")->pool;
	for (int i = 0; i < pool->n_sinks; i++) {
		real_wake = pool->sinks[i]->wake;
		pool->sinks[i]->wake = hooked_wake;
	}
	atomic_store(&probe_gate, 0);
	atomic_store(&held, 0);
	for (int i = 0; i < 3 * HOST_EVENTS; i++)
		weir_loop_send(loops[1], &probes[i].ev);
	weir_thread_flush();
	FIXTURE_AWAIT(atomic_load(&holding));
	pool_set_target(pool, 1);
	unsigned begun = atomic_load(&pool->begun);
	atomic_store(&comes_back, 1);
	atomic_store(&probe_gate, 1);
	/* it has left, and it has begun again */
	FIXTURE_AWAIT(atomic_load(&pool->begun) - begun == 2);
	CU_ASSERT_EQUAL(atomic_load(&comes_back), 0);
	CU_ASSERT_EQUAL(pool_seats(pool), 2);
	atomic_store(&held, -1);
	end(g, 3 * HOST_EVENTS);
}

/* Whether all of the first `n` cores are parked, and as many as `lingering` wait for a batch of `s`. */
static bool all_parked(const struct sink *s, int n, int lingering)
{
	struct pool *pool = s->pool;
	int parked = 0, linger = 0;

	lock_take(&pool->lock);
	for (int k = 0; k < n; k++) {
		const struct handler *h = atomic_load(&pool->handler[k]);
		parked += h->listed;
		linger += h->listed && h->ready_ns[s->place] != INT64_MAX;
	}
	lock_release(&pool->lock);
	return parked == n && linger == lingering;
}

/* Both cores wait for a fuller batch; one leaves, the other gets that. The first comes back and must
 * not wait for the old batch. */
static void test_forgets_lingering(void)
{
	struct weir_spec *spec = spec_of(2);

	if (task_cores() < 2) {
		weir_spec_free(spec);
		return;
	}
	prepare(2);
	spec->stages[1].local = WEIR_LOCAL_AUTO;
	fixture_set(&spec->stages[1], "cohort.max", "2");
	struct weir_graph *g = start_both(spec);
	struct sink *a = &weir_graph_stage(g, "a")->sink;
	atomic_store(&a->linger_ns, 3600 * NS_PER_S);
	probes[0].producer = probes[1].producer = 2;
	fixture_offer_all(weir_graph_stage(g, "a"), &probes[0], 1, 1);
	pool_wake_all(a->pool);
	FIXTURE_AWAIT(all_parked(a, 2, 2) || (pool_wake_all(a->pool), false));
	pool_set_target(a->pool, 1);
	FIXTURE_AWAIT(is_apart(a->pool, 1));
	fixture_offer_all(weir_graph_stage(g, "a"), &probes[1], 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 2);
	pool_set_target(a->pool, 2);
	FIXTURE_AWAIT(all_parked(a, 2, 0));
	end(g, 2);
}

static void register_all(void)
{
	fixture_register(&source_ops);
	fixture_register(&here_ops);
	fixture_register(&end_ops);
}

static void test_all_emits(void)
{
	register_all();
	test_emits();
}

CUNIT_MAIN("hosts", {"emits", test_all_emits}, {"wakes", test_wakes}, {"lingers", test_lingers},
    {"first event", test_first_event}, {"other cores", test_other_cores},
    {"wanted while leaving", test_wanted_while_leaving},
    {"forgets lingering", test_forgets_lingering}, {"slow callback", test_slow_callback})
