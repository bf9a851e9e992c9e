/* SPDX-License-Identifier: MIT */
/* Spares in pools whose state is made by hand: where they park, whose seat they have, and when their
 * threads are created. */
#include "cunit_main.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "fixture/graph/await.h"
#include "sched/cores.h"
#include "sched/host.h"
#include "sched/spare.h"

#define CORES 2
#define SPARE CORES /* rank of the spare of core 0 */

static struct weir_threads_spec threads = {.min = CORES, .max = CORES, .spin_ns = 0};
static struct core_group group;
static struct core core[CORES + 1];
static struct sink sink;
static struct pool *pool;

static bool nothing_due(struct handler *h)
{
	(void)h;
	return false;
}

static struct handler *handler(int rank)
{
	return atomic_load(&pool->handler[rank]);
}

/* Two cores and the spare of core 0, all of which serve. */
static void begin(void)
{
	memset(&group, 0, sizeof(group));
	memset(core, 0, sizeof(core));
	memset(&sink, 0, sizeof(sink));
	sink.queue.n_parts = CORES;
	group.max = group.first_spare = CORES;
	CU_ASSERT_EQUAL_FATAL(pool_new(NULL, "pool", &threads, NULL, &pool), 0);
	CU_ASSERT_EQUAL_FATAL(pool_add(pool, &sink, 0), 0);
	pool->started = true; /* without threads: the cases make some */
	pool->cores = &group;
	pool->due = nothing_due;
	group.pool = pool;
	atomic_store(&pool->target, CORES);
	for (int i = 0; i <= CORES; i++) {
		lock_take(&pool->lock);
		struct handler *h = pool_handler_locked(pool, i);
		lock_release(&pool->lock);
		CU_ASSERT_PTR_NOT_NULL_FATAL(h);
		core[i].group = &group;
		core[i].number = i;
		core[i].stands_in = i == SPARE;
		h->core = &core[i];
		h->ready_ns[0] = INT64_MAX;
		atomic_store(&h->spare, i == SPARE);
		atomic_store(&h->slot, HANDLER_LIVE);
	}
	pool_deal(pool);
}

static void end(void)
{
	for (int i = 0; i <= CORES; i++)
		atomic_store(&handler(i)->slot, HANDLER_EMPTY);
	pool->cores = NULL; /* is not on the heap */
	pool_free(pool);
}

/* ---- parked threads ---- */

/* Ranks of the threads that park, one after the other, and what is done when all have. */
struct parking {
	int rank[CORES + 1];
	int n;
	void (*then)(int64_t until_ns);
};

static void park_next(void *arg, int64_t until_ns)
{
	struct parking *p = arg, rest = {.n = p->n - 1, .then = p->then};

	if (p->n == 0) {
		p->then(until_ns);
		return;
	}
	for (int i = 0; i < rest.n; i++)
		rest.rank[i] = p->rank[i + 1];
	host_park(handler(p->rank[0]), park_next, &rest);
}

static void park(struct parking p)
{
	park_next(&p, 0);
}

static void wake_each(int64_t until_ns)
{
	(void)until_ns;
	for (int i = CORES; i >= 0; i--) {
		CU_ASSERT_TRUE(pool_wake(pool));
		CU_ASSERT_EQUAL(atomic_load(&handler(SPARE)->wake), i == 0);
	}
	CU_ASSERT_FALSE(pool_wake(pool));
	for (int i = 0; i <= CORES; i++)
		atomic_store(&handler(i)->wake, 0);
}

/* In whatever order they park, cores are woken before the spare: it may not take all events. */
static void test_cores_are_woken_first(void)
{
	begin();
	park((struct parking){.rank = {0, 1, SPARE}, .n = 3, .then = wake_each});
	park((struct parking){.rank = {0, SPARE, 1}, .n = 3, .then = wake_each});
	park((struct parking){.rank = {SPARE, 0, 1}, .n = 3, .then = wake_each});
	end();
}

/* Rank 2 belongs to copy 0 of two, as rank 0 does. */
static void wake_copy(int64_t until_ns)
{
	(void)until_ns;
	CU_ASSERT_EQUAL(pool_wake_parts(pool, 1), 1);
	CU_ASSERT_EQUAL(atomic_exchange(&handler(0)->wake, 0), 1);
	CU_ASSERT_EQUAL(pool_wake_parts(pool, 1), 1);
	CU_ASSERT_EQUAL(atomic_exchange(&handler(SPARE)->wake, 0), 1);
	CU_ASSERT_EQUAL(pool_wake_parts(pool, 1), 0);
	CU_ASSERT_EQUAL(pool_wake_parts(pool, 2), 1);
	CU_ASSERT_EQUAL(atomic_exchange(&handler(1)->wake, 0), 1);
}

static void test_cores_of_a_copy_are_woken_first(void)
{
	begin();
	pool->copies = 2;
	park((struct parking){.rank = {1, 0, SPARE}, .n = 3, .then = wake_copy});
	end();
}

static void sleeps_on(int64_t until_ns)
{
	CU_ASSERT_EQUAL(until_ns, INT64_MAX);
}

static void expires(int64_t until_ns)
{
	CU_ASSERT_EQUAL(until_ns, 7);
}

/* A spare for core 0 of a group whose stages in `kept` keep their events on their core. */
static uint64_t barred_by(uint64_t kept)
{
	static struct watched watched[CORES];
	static struct cell none; /* the group has no stages */

	begin();
	group.watched = watched;
	group.cells = &none;
	group.kept = kept;
	group.expiring = 3;
	spare_start(&group, 0, 1);
	struct core *made = atomic_exchange(&watched[0].spare, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(made);
	uint64_t set = made->barred;
	free(made);
	end();
	return set;
}

/* If one of the stages that hold events is barred, all of them are. */
static void test_barred_stages(void)
{
	CU_ASSERT_EQUAL(barred_by(0), 0);
	CU_ASSERT_EQUAL(barred_by(1), 3);
	CU_ASSERT_EQUAL(barred_by(4), 4);
	CU_ASSERT_EQUAL(barred_by(6), 7);
}

/* The spare does not wake up for events that it may not take. */
static void test_barred_stages_do_not_end_its_sleep(void)
{
	begin();
	sink.expire = (void *)&sink;
	atomic_store(&sink.expires_ns, 7);
	handler(SPARE)->ready_ns[0] = 9;
	park((struct parking){.rank = {SPARE}, .n = 1, .then = expires});
	core[SPARE].barred = 1;
	park((struct parking){.rank = {SPARE}, .n = 1, .then = sleeps_on});
	end();
}

/* ---- seats ---- */

static void wake_spare(int64_t until_ns)
{
	(void)until_ns;
	CU_ASSERT_EQUAL(pool_wake_parts(pool, 1), 1);
	CU_ASSERT_EQUAL(atomic_exchange(&handler(SPARE)->wake, 0), 1);
	CU_ASSERT_EQUAL(pool_wake_parts(pool, 1), 0);
}

/* The core is back, but its spare is blocked, too. */
static void wake_core(int64_t until_ns)
{
	(void)until_ns;
	pool_stop_spare(pool, SPARE);
	CU_ASSERT_EQUAL(atomic_exchange(&handler(0)->wake, 0), 1); /* it has its seat back */
	CU_ASSERT_PTR_EQUAL(atomic_load(&pool->seated[0]), handler(0));
	CU_ASSERT_EQUAL(atomic_load(&handler(SPARE)->seat), NO_SEAT);
}

static void test_seat(void)
{
	int states[WEIR_THREAD_STATES];

	begin();
	CU_ASSERT_EQUAL(pool_read(pool, states), CORES + 1);
	CU_ASSERT_EQUAL(pool_read_own(pool, states), CORES);
	CU_ASSERT_EQUAL(pool_seats(pool), CORES);
	CU_ASSERT_EQUAL(atomic_load(&handler(SPARE)->seat), 0);
	CU_ASSERT_PTR_EQUAL(atomic_load(&pool->seated[0]), handler(SPARE));
	CU_ASSERT_PTR_EQUAL(atomic_load(&pool->seated[1]), handler(1));
	park((struct parking){.rank = {0, SPARE, 1}, .n = 3, .then = wake_spare});
	park((struct parking){.rank = {0}, .n = 1, .then = wake_core});
	pool_start_spare(pool, SPARE, NS_PER_S); /* blocked again, before the spare has ended */
	CU_ASSERT_EQUAL(atomic_load(&handler(SPARE)->slot), HANDLER_LIVE);
	CU_ASSERT_EQUAL(atomic_load(&handler(SPARE)->seat), 0);
	CU_ASSERT_PTR_EQUAL(atomic_load(&pool->seated[0]), handler(SPARE));
	end();
}

/* ---- threads ---- */

static atomic_int n_threads;

/* Bodies of threads: a stage refuses the spare; the thread ends at once. */
static void *refuse_spare(void *arg)
{
	struct handler *h = arg;

	atomic_fetch_add(&n_threads, 1);
	if (h->rank == SPARE)
		pool_not_begun(h, (struct pool_refusal){.code = WEIR_ESYS});
	else
		atomic_store(&h->slot, HANDLER_GONE);
	return NULL;
}

static void *leave(void *arg)
{
	struct handler *h = arg;

	atomic_fetch_add(&n_threads, 1);
	atomic_store(&h->slot, HANDLER_GONE);
	return NULL;
}

static void begin_empty(void *(*body)(void *))
{
	begin();
	for (int i = 0; i <= CORES; i++)
		atomic_store(&handler(i)->slot, HANDLER_EMPTY);
	pool->main = body;
	atomic_store(&n_threads, 0);
}

static void await_threads(int n)
{
	FIXTURE_AWAIT(atomic_load(&n_threads) == n);
	for (int i = 0; i <= CORES; i++) {
		int slot;
		do
			slot = atomic_load(&handler(i)->slot);
		while (slot != HANDLER_GONE && slot != HANDLER_EMPTY);
	}
}

static void end_threads(void)
{
	pool_close(pool);
	pool_repair(pool, 0);
	end();
}

/* A refused spare does not delay the creation of cores, and the reverse. */
static void test_refused(void)
{
	begin_empty(refuse_spare);
	pool_start_spare(pool, SPARE, NS_PER_S);
	await_threads(1);
	struct pool_repairs r = pool_repair(pool, NS_PER_S);
	CU_ASSERT_EQUAL(r.failed, 0);
	CU_ASSERT_EQUAL(r.spawned, CORES);
	CU_ASSERT_EQUAL(pool_refused(pool).code, 0);
	await_threads(1 + CORES);
	pool_start_spare(pool, SPARE, NS_PER_S + NS_PER_MS); /* backs off */
	CU_ASSERT_EQUAL(atomic_load(&handler(SPARE)->slot), HANDLER_EMPTY);
	pool_start_spare(pool, SPARE, 2 * NS_PER_S);
	await_threads(2 + CORES);
	end_threads();
}

/* A spare that has ended is replaced at once. */
static void test_ended(void)
{
	begin_empty(leave);
	for (int n = 1; n <= 3; n++) {
		pool_start_spare(pool, SPARE, NS_PER_S);
		await_threads(n);
	}
	end_threads();
}

/* ---- numbers ---- */

/* Spares have numbers above those of all cores, and belong to the copies of their cores. */
static void test_numbers(void)
{
	struct cores_spec spec = {
	    .name = "cores", .threads = &threads, .n = 2, .max = 3, .copies = 2};
	struct pool *cores;

	CU_ASSERT_EQUAL_FATAL(cores_new(NULL, &spec, &cores), 0);
	CU_ASSERT_EQUAL_FATAL(pool_add(cores, &sink, 0), 0);
	CU_ASSERT_EQUAL_FATAL(cores_open(cores, 0), 0);
	CU_ASSERT_EQUAL(cores->cores->first_spare, 4);
	pool_free(cores);
}

/* ---- event loops ---- */

static void *die(void *arg)
{
	struct handler *h = arg;

	schedstat_begin(&h->sched);
	host_died(h);
	return NULL;
}

static atomic_int resumed_tid;

static void *resume(void *arg)
{
	host_resume(arg);
	atomic_store(&resumed_tid, gettid());
	return NULL;
}

static void run(void *(*body)(void *), struct handler *h)
{
	pthread_t t;

	CU_ASSERT_EQUAL_FATAL(pthread_create(&t, NULL, body, h), 0);
	pthread_join(t, NULL);
}

/* The thread of a loop ends in a handler. Its successor is a core whose times are read: it can be seen
 * that it has run, so that it is not blocked. */
static void test_times_of_a_successor(void)
{
	struct schedstat_sample s;

	begin();
	run(die, handler(0));
	CU_ASSERT_NOT_EQUAL(atomic_load(&handler(0)->sched.ended_at_ns), 0);
	run(resume, handler(0));
	CU_ASSERT_EQUAL(atomic_load(&handler(0)->sched.tid), atomic_load(&resumed_tid));
	CU_ASSERT_EQUAL(atomic_load(&handler(0)->sched.ended_at_ns), 0);
	schedstat_close(&handler(0)->sched, &s);
	end();
}

CUNIT_MAIN("spares in pools", {"cores are woken first", test_cores_are_woken_first},
    {"in each copy", test_cores_of_a_copy_are_woken_first}, {"barred stages", test_barred_stages},
    {"barred stages do not end its sleep", test_barred_stages_do_not_end_its_sleep},
    {"seat", test_seat}, {"refused", test_refused}, {"ended", test_ended},
    {"numbers", test_numbers}, {"times of a successor", test_times_of_a_successor})
