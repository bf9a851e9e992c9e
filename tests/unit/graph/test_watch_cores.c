/* SPDX-License-Identifier: MIT */
/* What the looks at the cores of a group lead to, in made-up time: the graph is not started, its threads
 * are made by hand, and those that the group creates end at once. */
#include "fixture/graph/probes.h"

#include <sched.h>
#include <semaphore.h>
#include <unistd.h>

#include "base/asleep.h"
#include "base/clock.h"
#include "event/local.h"
#include "graph/graph.h"
#include "sched/serial.h"
#include "sched/spare.h"

#define MS    NS_PER_MS
#define CORES 3

/* A group may have three cores on every machine. */
#define FIXTURE_CPUS CORES
#include "fixture/graph/cpus.h"

static sem_t bed;
static atomic_int sleeper_tid;
static pthread_t sleeper;

static struct weir_graph *g;
static struct core_group *group;
static struct thread *core, *spare; /* of core 0; the latter was registered before */
static struct local *no_local[1];   /* by stage: they have handled nothing */
static int64_t now_ns;

static void *sleep_on(void *arg)
{
	(void)arg;
	atomic_store(&sleeper_tid, gettid());
	while (sem_wait(&bed) != 0)
		continue;
	return NULL;
}

static void *leave(void *arg)
{
	atomic_store(&((struct handler *)arg)->slot, HANDLER_GONE);
	return NULL;
}

static struct thread *thread_new(bool stands_in, struct thread *next)
{
	struct thread *t = aligned_alloc(_Alignof(struct thread), sizeof(*t));

	CU_ASSERT_PTR_NOT_NULL_FATAL(t);
	memset(t, 0, sizeof(*t));
	t->graph = g;
	t->pool = group->pool;
	t->local = no_local;
	t->spare = stands_in;
	t->tid = atomic_load(&sleeper_tid);
	t->next = next;
	return t;
}

static void begin(const char *cores, const char *serial)
{
	struct weir_spec *spec = weir_spec_new("watch");
	struct weir_group_spec *gs = weir_spec_add_group(spec, "core");
	struct weir_stage_spec *s = fixture_stage(spec, "a", "t.end", NULL);

	weir_spec_text(&gs->schedule, "fifo");
	weir_spec_text(&gs->cores, cores);
	if (serial)
		weir_spec_text(&s->serial, serial);
	weir_spec_text(&s->group, "core");
	weir_log_set_fd(-1);
	g = fixture_build(spec);
	group = weir_graph_stage(g, "a")->pool->cores;
	group->pool->main = leave;
	spare = thread_new(true, NULL);
	core = g->threads = thread_new(false, spare);
	now_ns = 1000 * MS;
}

static void end(void)
{
	g->threads = NULL;
	free(core);
	free(spare);
	pool_close(group->pool);
	CU_ASSERT_EQUAL(pool_join(group->pool, INT64_MAX), 0);
	weir_graph_free(g);
	weir_log_set_fd(2);
}

/* The thread has been in a handler of stage a since then; 0: it is in none. */
static void in_call(struct thread *t, int64_t since_ns)
{
	atomic_store(&t->running, since_ns ? weir_graph_stage(g, "a") : NULL);
	atomic_store(&t->loop_since_ns, since_ns);
}

/* A look some ms later. Returns when the next one is due, in ns from then. */
static int64_t look(int64_t ms)
{
	now_ns += ms * MS;
	return graph_watch_cores(g, now_ns) - now_ns;
}

static bool has_spare(void)
{
	struct handler *h = atomic_load(&group->pool->handler[group->first_spare]);

	return h && atomic_load(&h->spare);
}

static bool is_blocked(void)
{
	return group->watched[0].own.blocked.is;
}

static void test_blocked(void)
{
	begin("1", NULL);
	CU_ASSERT_EQUAL(look(0), 100 * MS);
	in_call(core, now_ns - 50 * MS);
	CU_ASSERT_EQUAL(look(100), BLOCKED_NS);
	CU_ASSERT_FALSE(is_blocked());
	CU_ASSERT_EQUAL(look(5), 10 * MS);
	CU_ASSERT_TRUE(is_blocked());
	CU_ASSERT_TRUE(has_spare());
	CU_ASSERT_EQUAL(atomic_load(&group->watched[0].n), 1);
	in_call(core, 0);
	look(5);
	CU_ASSERT_FALSE(is_blocked());
	CU_ASSERT_FALSE(has_spare());
	end();
}

/* The spare sleeps, and its core does not. */
static void test_spare_sleeps(void)
{
	begin("1", NULL);
	in_call(spare, now_ns - 50 * MS);
	look(0);
	look(5);
	look(5);
	CU_ASSERT_FALSE(is_blocked());
	CU_ASSERT_FALSE(has_spare());
	end();
}

/* The group is to lose the core, before it was seen to be blocked or later. */
static void test_surplus(void)
{
	begin("1", NULL);
	in_call(core, now_ns - 50 * MS);
	atomic_store(&group->pool->target, 0);
	look(0);
	look(5);
	CU_ASSERT_TRUE(is_blocked());
	CU_ASSERT_FALSE(has_spare());
	atomic_store(&group->pool->target, 1);
	look(5);
	CU_ASSERT_TRUE(has_spare());
	atomic_store(&group->pool->target, 0);
	look(5);
	CU_ASSERT_TRUE(is_blocked());
	CU_ASSERT_FALSE(has_spare());
	end();
}

/* Number of slots of core `from` that core `to` gets when the former ends. */
static int slots_given(int from, int to)
{
	bool had[QUEUE_SLOTS];
	int n = 0;

	for (int s = 0; s < QUEUE_SLOTS; s++)
		had[s] = serial_owner(group->serial, (uint64_t)s) == from;
	serial_leave(&group->core[from]);
	for (int s = 0; s < QUEUE_SLOTS; s++)
		n += had[s] && serial_owner(group->serial, (uint64_t)s) == to;
	return n;
}

/* Serial slots of a core that ends go to a blocked core only if there is no other. */
static void test_serial(void)
{
	begin("3", "producer");
	for (int k = 0; k < CORES; k++)
		atomic_store(&group->serial->state[k], SERIAL_OPEN);
	CU_ASSERT_EQUAL_FATAL(group->max, CORES);
	in_call(core, now_ns - 50 * MS);
	look(0);
	look(5);
	CU_ASSERT_TRUE(has_spare());
	CU_ASSERT_EQUAL(slots_given(2, 0), 0);
	CU_ASSERT_TRUE(slots_given(1, 0) > 0);
	for (int s = 0; s < QUEUE_SLOTS; s++)
		CU_ASSERT_EQUAL(serial_owner(group->serial, (uint64_t)s), 0);
	end();
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
	sem_init(&bed, 0, 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&sleeper, NULL, sleep_on, NULL), 0);
	FIXTURE_AWAIT(atomic_load(&sleeper_tid) != 0 && asleep(atomic_load(&sleeper_tid)));
}

static void test_finish(void)
{
	sem_post(&bed);
	pthread_join(sleeper, NULL);
	sem_destroy(&bed);
}

CUNIT_MAIN("watched cores", {"a thread sleeps", test_prepare}, {"blocked", test_blocked},
    {"the spare sleeps", test_spare_sleeps}, {"surplus", test_surplus}, {"serial", test_serial},
    {"it wakes up", test_finish})
