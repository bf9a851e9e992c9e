/* SPDX-License-Identifier: MIT */
/* Pools whose target changes. A wake-up consumed by a leaving thread is passed on, and a raised
 * target makes sleeping threads check the partitions that are theirs now. Threads do not spin here,
 * so pool->n_idle is the number of parked threads. A lost wake-up shows as a test that never
 * ends. */
#include "fixture/graph/probes.h"

#include <sched.h>
#include <unistd.h>

#include "base/futex.h"
#include "stage/stage.h"
#include "sched/pool.h"

/* seq of an event that stays in its handler until the gate opens */
#define HELD 1000000

static atomic_int entered;

static uint64_t producer_key(struct weir_stage *st, const struct weir_event *ev)
{
	(void)st;
	return (uint64_t)((const struct probe *)ev)->producer;
}

static void hold_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq != HELD)
			continue;
		atomic_fetch_add(&entered, 1);
		FIXTURE_AWAIT(atomic_load(&probe_gate));
	}
	end_handle(st, ev, n);
}

static const struct weir_stage_ops hold_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.hold",
    .summary = "holds some events in the handler; the producer is the key",
    .flags = WEIR_STAGE_BLOCKS,
    .accepts = &probe_type,
    .handle = hold_handle,
    .key = producer_key};

/* Start stage `a` with `min` to `max` threads and wait until `min` are parked. */
static struct weir_graph *start_parked(
    const char *min, const char *max, int mode, struct weir_stage **st)
{
	struct weir_spec *spec = weir_spec_new("pool");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.hold", NULL);

	fixture_set(s, "threads.min", min);
	fixture_set(s, "threads.max", max);
	fixture_set(s, "threads.spin", "0");
	fixture_set(s, "threads.policy", "static");
	fixture_set(s, "cohort.max", "1");
	s->mode = mode;
	prepare(10);
	atomic_store(&probe_gate, 0);
	atomic_store(&entered, 0);
	struct weir_graph *g = fixture_start(spec);
	*st = weir_graph_stage(g, "a");
	FIXTURE_AWAIT(atomic_load(&(*st)->pool->n_idle) == atoi(min));
	weir_thread_attach(g, "test");
	return g;
}

static void offer_one(struct weir_stage *st, int i, int producer, uint64_t seq)
{
	probes[i].producer = producer;
	probes[i].seq = seq;
	fixture_offer_all(st, &probes[i], 1, 1);
}

static void finish(struct weir_graph *g, int n)
{
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)n);
	check_each_once(n);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* Take `h` off the idle list, as pool_wake does before it wakes a thread. `h` then sleeps until it
 * is woken. */
static void unlist(struct pool *pool, struct handler *h)
{
	lock_take(&pool->lock);
	struct handler **at = &pool->idle;
	while (*at != h)
		at = &(*at)->next_idle;
	*at = h->next_idle;
	h->listed = false;
	atomic_fetch_sub(&pool->n_idle, 1);
	lock_release(&pool->lock);
}

/* The thread of rank 1 is woken for an event but has become surplus meanwhile. It leaves, so rank 0
 * must be woken. */
static void test_leaving_thread_passes_its_wakeup_on(void)
{
	struct weir_stage *st;
	struct weir_graph *g = start_parked("2", "2", WEIR_MODE_SHARED, &st);
	struct pool *pool = st->pool;
	struct handler *h = atomic_load(&pool->handler[1]);

	unlist(pool, h);
	atomic_store(&pool->min, 1);
	atomic_store(&pool->target, 1);         /* as pool_set_target before it wakes a thread */
	atomic_fetch_add(&pool->n_spinning, 1); /* so that offering this event wakes no thread */
	offer_one(st, 0, 0, 0);
	atomic_fetch_sub(&pool->n_spinning, 1);
	atomic_store(&h->wake, 1);
	futex_wake(&h->wake);
	FIXTURE_AWAIT(atomic_load(&probes[0].finishes) == 1);
	finish(g, 1);
}

/* Of four partitions, number 3 belongs to rank 1 of two threads but to rank 0 of three. */
static void test_raised_target_wakes_for_the_partitions_that_move(void)
{
	struct weir_stage *st;
	struct weir_graph *g = start_parked("2", "4", WEIR_MODE_PARTITIONED, &st);
	char why[200];

	CU_ASSERT_EQUAL_FATAL(st->sink.queue.n_parts, 4);
	offer_one(st, 0, 1, HELD);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	offer_one(st, 1, 3, 1); /* waits for rank 1, which is held; rank 0 sleeps */
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "threads.min", "3", why, sizeof(why)), 0);
	FIXTURE_AWAIT(atomic_load(&probes[1].finishes) == 1);
	CU_ASSERT_EQUAL(atomic_load(&probes[0].finishes), 0);
	finish(g, 2);
}

static void finish_two(struct weir_graph *g, struct weir_stage *st)
{
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(atomic_load(&probes[1].finishes) == 1);
	CU_ASSERT_EQUAL(atomic_load(&st->pool->deaths.n), 0);
	finish(g, 3);
}

/* Rank 1 checks the events waiting in the partition of rank 0, gets none and leaves. This must not
 * count as a thread that died within a batch. */
static void test_thread_that_got_nothing_leaves_in_order(void)
{
	struct weir_stage *st;
	struct weir_graph *g = start_parked("2", "2", WEIR_MODE_PARTITIONED, &st);

	CU_ASSERT_EQUAL_FATAL(st->sink.queue.n_parts, 2);
	offer_one(st, 0, 0, HELD);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	offer_one(st, 1, 0, 1);
	offer_one(st, 2, 1, 2);
	FIXTURE_AWAIT(atomic_load(&probes[2].finishes) == 1);
	FIXTURE_AWAIT(atomic_load(&st->pool->n_idle) == 1);
	pool_set_bounds(st->pool, 1, 1);
	struct handler *h = atomic_load(&st->pool->handler[1]);
	FIXTURE_AWAIT(atomic_load(&h->slot) == HANDLER_EMPTY);
	finish_two(g, st);
}

/* A thread inside a handler is not asleep. It must not be woken, or its next sleep would end at
 * once. */
static void test_busy_thread_is_not_woken(void)
{
	struct weir_stage *st;
	struct weir_graph *g = start_parked("2", "2", WEIR_MODE_PARTITIONED, &st);
	struct handler *h = atomic_load(&st->pool->handler[1]);

	offer_one(st, 0, 1, HELD);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	CU_ASSERT_EQUAL(pool_wake_parts(st->pool, 1ULL << 1), 0);
	CU_ASSERT_EQUAL(atomic_load(&h->wake), 0);
	finish(g, 1);
}

/* The same while rank 1 has a batch of partition 3 in its handler: rank 0 cannot take the rest yet
 * and is woken after the batch. */
static void test_partition_that_moves_amid_a_batch(void)
{
	struct weir_stage *st;
	struct weir_graph *g = start_parked("2", "4", WEIR_MODE_PARTITIONED, &st);
	char why[200];

	CU_ASSERT_EQUAL_FATAL(st->sink.queue.n_parts, 4);
	offer_one(st, 0, 3, HELD);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	offer_one(st, 1, 3, 1);
	CU_ASSERT_EQUAL(weir_graph_set(g, "a", "threads.min", "3", why, sizeof(why)), 0);
	FIXTURE_AWAIT(atomic_load(&st->pool->n_idle) == 2);
	CU_ASSERT_EQUAL(atomic_load(&probes[1].finishes), 0);
	finish(g, 2);
}

static int count_listed(struct pool *pool)
{
	int n = 0;

	lock_take(&pool->lock);
	for (int i = 0; i < 2; i++)
		n += ((struct handler *)atomic_load(&pool->handler[i]))->listed;
	lock_release(&pool->lock);
	return n;
}

/* Waking all threads takes each of them off the idle list, even one that is in a handler by
 * then. */
static void test_all_woken_are_off_the_list(void)
{
	struct weir_stage *st;
	struct weir_graph *g = start_parked("2", "2", WEIR_MODE_SHARED, &st);

	atomic_fetch_add(&st->pool->n_spinning, 1); /* the event itself wakes no thread */
	offer_one(st, 0, 0, HELD);
	atomic_fetch_sub(&st->pool->n_spinning, 1);
	pool_wake_all(st->pool);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	FIXTURE_AWAIT(atomic_load(&st->pool->n_idle) == 1);
	CU_ASSERT_EQUAL(count_listed(st->pool), 1);
	finish(g, 1);
}

/* The pool is closed while rank 1 is in a handler and more events wait in its partition. It leaves
 * after the batch, and the next thread of its rank continues. */
static void test_closed_amid_a_batch(void)
{
	struct weir_stage *st;
	struct weir_graph *g = start_parked("2", "2", WEIR_MODE_PARTITIONED, &st);
	struct handler *h = atomic_load(&st->pool->handler[1]);

	offer_one(st, 0, 1, HELD);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	offer_one(st, 1, 1, 1);
	atomic_store(&st->pool->target, 0); /* as pool_close does */
	atomic_store(&probe_gate, 1);
	FIXTURE_AWAIT(atomic_load(&h->slot) == HANDLER_EMPTY);
	CU_ASSERT_EQUAL(atomic_load(&probes[0].finishes), 1);
	CU_ASSERT_EQUAL(atomic_load(&probes[1].finishes), 0);
	CU_ASSERT_EQUAL(pool_set_target(st->pool, 2), 2);
	finish(g, 2);
}

/* ---- pinned ---- */

/* CPUs that the thread of each rank may use, noted when it has handled an event. */
static cpu_set_t used[4];
static char named[4][32]; /* names of these threads */

static void note_cpus(struct weir_stage *st, struct weir_event **ev, int n)
{
	CPU_ZERO(&used[((struct probe *)ev[0])->producer]);
	pthread_getaffinity_np(
	    pthread_self(), sizeof(used[0]), &used[((struct probe *)ev[0])->producer]);
	pthread_getname_np(pthread_self(), named[((struct probe *)ev[0])->producer], 32);
	end_handle(st, ev, n);
}

static const struct weir_stage_ops cpus_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.cpus",
    .summary = "notes where its threads may run",
    .accepts = &probe_type,
    .handle = note_cpus,
    .key = producer_key};

/* CPU number `i`, modulo their count, of the CPUs that this process may use. */
static int allowed_cpu(int i)
{
	cpu_set_t allowed;
	int cpu = 0;

	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (i %= CPU_COUNT(&allowed); !CPU_ISSET(cpu, &allowed) || i-- > 0; cpu++)
		;
	return cpu;
}

/* Thread i is named by stage and rank and pinned to core i, modulo cores; it serves partition i. */
static void test_pinned(void)
{
	struct weir_spec *spec = weir_spec_new("pinned");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.cpus", NULL);

	fixture_set(s, "threads.min", "4");
	fixture_set(s, "threads.max", "4");
	s->threads.pinned = true;
	fixture_set(s, "threads.policy", "static");
	s->mode = WEIR_MODE_PARTITIONED;
	prepare(4);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *st = weir_graph_stage(g, "a");
	CU_ASSERT_EQUAL_FATAL(st->sink.queue.n_parts, 4);
	weir_thread_attach(g, "test");
	for (int i = 0; i < 4; i++)
		offer_one(st, i, i, (uint64_t)i);
	FIXTURE_AWAIT(fixture_ended() == 4);
	for (int i = 0; i < 4; i++) {
		CU_ASSERT_EQUAL(CPU_COUNT(&used[i]), 1);
		CU_ASSERT_TRUE(CPU_ISSET(allowed_cpu(i), &used[i]));
		CU_ASSERT_STRING_EQUAL(named[i], ((const char *[]){"a/0", "a/1", "a/2", "a/3"})[i]);
	}
	finish(g, 4);
}

/* A pool begins with `start` threads if that is set, else with `min`. With `spin: 0` its threads do
 * not spin; the pool does not choose a time. */
static void test_first_target(void)
{
	struct weir_threads_spec spec = {.min = 2, .max = 4, .spin_ns = 0};
	struct pool *pool;

	CU_ASSERT_EQUAL_FATAL(pool_new(NULL, "p", &spec, NULL, &pool), 0);
	CU_ASSERT_EQUAL(atomic_load(&pool->target), 2);
	CU_ASSERT_EQUAL(pool_seats(pool), 2); /* no thread serves yet: the wanted ones count */
	CU_ASSERT_EQUAL(pool->spin_max_ns, 0);
	pool_free(pool);
	spec.start = 3;
	spec.spin_ns = 7000;
	CU_ASSERT_EQUAL_FATAL(pool_new(NULL, "p", &spec, NULL, &pool), 0);
	CU_ASSERT_EQUAL(atomic_load(&pool->target), 3);
	CU_ASSERT_EQUAL(pool->spin_max_ns, 7000);
	pool_free(pool);
}

/* A graph that is only previewed has overrides of the running one, but never threads. */
static void test_bounds_before_start(void)
{
	struct weir_stage *st;
	struct weir_graph *running = start_parked("1", "4", WEIR_MODE_SHARED, &st);
	struct weir_spec *spec = weir_spec_new("pool");
	char why[200] = "";

	CU_ASSERT_EQUAL(weir_graph_set(running, "a", "threads.min", "3", why, sizeof(why)), 0);
	fixture_stage(spec, "a", "t.hold", NULL);
	struct weir_graph *g = fixture_build(spec);
	weir_graph_try_overrides(g, running);
	CU_ASSERT_EQUAL(atomic_load(&weir_graph_stage(g, "a")->pool->target), 3);
	CU_ASSERT_EQUAL(atomic_load(&weir_graph_stage(g, "a")->pool->n_slots), 0);
	weir_graph_free(g);
	finish(running, 0);
}

static void burn_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec == 0 && t.tv_nsec < 5000000);
	end_handle(st, ev, n);
}

static const struct weir_stage_ops burn_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.burn",
    .summary = "makes its thread use 5 ms of CPU",
    .accepts = &probe_type,
    .handle = burn_handle};

/* The CPU time of threads that have ended stays in the sum of the pool. */
static void test_cpu_of_ended_threads(void)
{
	struct weir_spec *spec = weir_spec_new("pool");
	struct schedstat_sample sum;
	struct weir_drain_report r;

	fixture_stage(spec, "a", "t.burn", NULL);
	prepare(1);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *st = weir_graph_stage(g, "a");
	weir_thread_attach(g, "test");
	fixture_offer_all(st, probes, 1, 1);
	FIXTURE_AWAIT(fixture_ended() == 1);
	weir_thread_detach();
	weir_graph_drain(g, 20000000000LL, &r);
	/* the control thread, which does this otherwise, has ended */
	bool known = pool_sched(st->pool, &sum);
	CU_ASSERT_TRUE(sum.cpu_ns >= 5000000);
	CU_ASSERT_EQUAL(known, access("/proc/thread-self/schedstat", R_OK) == 0);
	weir_graph_free(g);
}

/* Let slot `rank` hold a thread whose times were read as `cpu_ns` and `runq_ns`. */
static void pretend_read(struct pool *pool, int rank, uint64_t cpu_ns, uint64_t runq_ns)
{
	struct handler *h = calloc(1, sizeof(*h));

	CU_ASSERT_PTR_NOT_NULL_FATAL(h);
	h->sched.last = (struct schedstat_sample){.cpu_ns = cpu_ns, .runq_ns = runq_ns};
	atomic_store(&h->slot, HANDLER_LIVE);
	atomic_store(&pool->handler[rank], h);
	atomic_store(&pool->n_slots, rank + 1);
}

/* Both times are summed over the threads that live and those that have ended. Not every kernel
 * keeps run-queue times, so they are made up. */
static void test_sum_of_times(void)
{
	struct weir_threads_spec spec = {.min = 2, .max = 2};
	struct schedstat_sample sum;
	struct pool *pool;

	CU_ASSERT_EQUAL_FATAL(pool_new(NULL, "p", &spec, NULL, &pool), 0);
	pretend_read(pool, 0, 100, 7);
	pretend_read(pool, 1, 20, 3000);
	pool->sched_gone = (struct schedstat_sample){.cpu_ns = 4000, .runq_ns = 50};
	CU_ASSERT_TRUE(pool_sched(pool, &sum));
	CU_ASSERT_EQUAL(sum.cpu_ns, 4120);
	CU_ASSERT_EQUAL(sum.runq_ns, 3057);
	pool_free(pool);
}

static void test_prepare(void)
{
	fixture_register(&burn_ops);
	fixture_register(&hold_ops);
	fixture_register(&cpus_ops);
}

CUNIT_MAIN("pool", {"types are known", test_prepare}, {"first target", test_first_target},
    {"bounds before the start", test_bounds_before_start},
    {"CPU time of ended threads", test_cpu_of_ended_threads},
    {"sum of the times of all threads", test_sum_of_times},
    {"a leaving thread passes its wake-up on", test_leaving_thread_passes_its_wakeup_on},
    {"a raised target wakes for partitions that move",
	test_raised_target_wakes_for_the_partitions_that_move},
    {"a thread that got nothing leaves in order", test_thread_that_got_nothing_leaves_in_order},
    {"a busy thread is not woken", test_busy_thread_is_not_woken},
    {"all that are woken are off the list", test_all_woken_are_off_the_list},
    {"a partition that moves amid a batch", test_partition_that_moves_amid_a_batch},
    {"closed amid a batch", test_closed_amid_a_batch}, {"pinned threads", test_pinned})
