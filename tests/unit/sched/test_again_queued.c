/* SPDX-License-Identifier: MIT */
/* Requeued events go through the queue wherever it matters (sched/again.c): it has to wait for more of them,
 * to order or to separate them, or to share them among threads. */
#include "fixture/graph/probes.h"

#include "graph/graph.h"
#include "sched/pool.h"

#define CALLS 100

static struct weir_graph *g;
static struct weir_stage *go;
static atomic_int n_calls;
static int size_of[CALLS];       /* of the batches */
static uint64_t first_of[CALLS]; /* their first keys */
static void (*on_call)(struct weir_event **ev, int n);
static bool backwards;
static atomic_bool over, endless; /* with `endless`, events are requeued until it is over */

static void go_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	int call = atomic_fetch_add(&n_calls, 1);

	if (call < CALLS) {
		size_of[call] = n;
		first_of[call] = ev[0]->key;
	}
	if (on_call)
		on_call(ev, n);
	for (int k = 0; k < n; k++) {
		struct weir_event **slot = &ev[backwards ? n - 1 - k : k];
		bool again = atomic_load(&endless) ? !atomic_load(&over)
						   : ((struct probe *)*slot)->seq-- > 0;
		if (again)
			weir_requeue(st, slot);
		else
			weir_event_finish(slot, WEIR_OK);
	}
}

static const struct weir_stage_ops go_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_BLOCKS,
    .name = "t.go",
    .summary = "requeues events",
    .accepts = &probe_type,
    .handle = go_handle};

/* Make the spec of a stage with one thread, whose batches have at most 64 events. */
static struct weir_stage_spec *spec_new(struct weir_spec **spec)
{
	fixture_register(&go_ops);
	*spec = weir_spec_new("again");
	weir_spec_add_class(*spec, "high");
	weir_spec_add_class(*spec, "low");
	struct weir_stage_spec *s = fixture_open_stage(*spec, "go", "t.go", NULL);
	fixture_set(s, "threads.max", "1");
	fixture_set(s, "cohort.max", "64");
	fixture_set(s, "slo", "1h");
	weir_spec_text(&s->admission.policy, "none");
	return s;
}

static void start(struct weir_spec *spec)
{
	atomic_store(&n_calls, 0);
	on_call = NULL;
	backwards = false;
	atomic_store(&endless, false);
	atomic_store(&over, false);
	fixture_reset();
	g = fixture_start(spec);
	go = weir_graph_stage(g, "go");
	weir_thread_attach(g, "test");
}

static void end(void)
{
	weir_thread_detach();
	finish_graph(g, 0);
}

static void offer(int i, int again, int class_id)
{
	struct weir_event *ev = &probes[i].ev;

	weir_event_init(ev, &probe_type, 1);
	ev->key = (uint64_t)i;
	ev->class_id = (uint8_t)class_id;
	probes[i].seq = (uint64_t)again;
	probes[i].producer = 1; /* what `cohort.by` reads, when the event is offered */
	CU_ASSERT_EQUAL_FATAL(weir_offer(go, &ev, 1, NULL), 1);
}

/* Offer events 0 to n-1, which are requeued once, odd ones in class `odd`, so that they are taken together,
 * and await their ends. The calls are those from 0 on. */
static void offer_together(int n, int odd)
{
	uint64_t ended = fixture_ended();
	char why[100];

	CU_ASSERT_EQUAL(weir_graph_steer(g, "go", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	for (int i = 0; i < n; i++)
		offer(i, 1, i & 1 ? odd : 0);
	atomic_store(&n_calls, 0);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "go", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(fixture_ended() == ended + (uint64_t)n);
}

/* Repeat this until the first batch had two events, which depends on how long calls take. */
static void offer_two(int odd)
{
	do
		offer_together(2, odd);
	while (size_of[0] != 2);
}

static void test_linger(void)
{
	struct weir_spec *spec;
	struct weir_stage_spec *s = spec_new(&spec);

	fixture_set(s, "cohort.max", "2");
	fixture_set(s, "cohort.linger", "1s");
	start(spec);
	offer(0, 1, 0);
	offer(1, 0, 0);
	FIXTURE_AWAIT(fixture_ended() == 2);
	struct book b = {0};
	graph_sum(g, go->id, &b, NULL, NULL, NULL, NULL);
	CU_ASSERT_EQUAL(book_read(&b.restarted), 1);
	CU_ASSERT(book_read(&b.again_ns) > 0);
	end();
}

static void part(struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		ev[i]->key = (uint64_t)i;
}

static void test_by_key(void)
{
	struct weir_spec *spec;

	fixture_set(spec_new(&spec), "cohort.by", "producer");
	start(spec);
	on_call = part;
	offer_two(0);
	CU_ASSERT_EQUAL(size_of[1], 1);
	end();
}

static void narrow(struct weir_event **ev, int n)
{
	(void)ev;
	if (n == 2 && atomic_load(&n_calls) == 1)
		atomic_store(&go->sink.cohort_max, 1);
}

static void test_largest(void)
{
	struct weir_spec *spec;

	spec_new(&spec);
	start(spec);
	on_call = narrow;
	offer_two(0);
	CU_ASSERT_EQUAL(size_of[1], 1);
	end();
}

static void test_classes(void)
{
	struct weir_spec *spec;

	spec_new(&spec);
	start(spec);
	backwards = true;
	offer_two(1);
	CU_ASSERT_EQUAL(first_of[0], 0);
	CU_ASSERT_EQUAL(first_of[1], 0); /* the higher class, though it was requeued last */
	end();
}

static void join(struct weir_event **ev, int n)
{
	(void)ev;
	if (n == 2 && atomic_load(&n_calls) == 1)
		atomic_store(&go->pool->n_seats, 2);
}

/* If another thread of the pool has begun since, it may take one of the events. */
static void test_threads(void)
{
	struct weir_spec *spec;

	spec_new(&spec);
	start(spec);
	on_call = join;
	offer_two(0);
	CU_ASSERT_EQUAL(size_of[1], 1);
	atomic_store(&go->pool->n_seats, 1);
	end();
}

static int64_t kept[2]; /* events that count, in the first two calls */

static void look(struct weir_event **ev, int n)
{
	int call = atomic_load(&n_calls) - 1;

	(void)ev;
	(void)n;
	if (call < 2)
		kept[call] = queue_count_kept_all(&go->sink.queue);
}

/* An event that runs again at once uses its slot of the limit, as one that comes from the queue. */
static void test_slot(void)
{
	struct weir_spec *spec;

	spec_new(&spec);
	start(spec);
	queue_hold(&go->sink.queue, 0, 1); /* from now on, the queue counts */
	queue_hold(&go->sink.queue, 0, -1);
	on_call = look;
	offer(0, 1, 0);
	FIXTURE_AWAIT(fixture_ended() == 1);
	CU_ASSERT_EQUAL(kept[0], 1);
	CU_ASSERT_EQUAL(kept[1], 1);
	end();
	CU_ASSERT_EQUAL(atomic_load(&n_calls), 2);
}

static atomic_int inside;

static void meet(struct weir_event **ev, int n)
{
	(void)ev;
	(void)n;
	if (atomic_fetch_add(&inside, 1) < 2)
		FIXTURE_AWAIT(atomic_load(&inside) >= 2);
}

/* A thread that is one too many ends, though it always has an event to run again. */
static void test_surplus(void)
{

	struct weir_spec *spec;
	struct weir_stage_spec *s = spec_new(&spec);

	fixture_set(s, "threads.max", "2");
	fixture_set(s, "threads.min", "2");
	start(spec);
	atomic_store(&inside, 0);
	on_call = meet;
	atomic_store(&endless, true);
	offer(0, 0, 0);
	offer(1, 0, 0);
	FIXTURE_AWAIT(atomic_load(&inside) > 4);
	pool_set_bounds(go->pool, 1, 1);
	FIXTURE_AWAIT(stage_view(g, "go").threads_now == 1);
	atomic_store(&over, true);
	FIXTURE_AWAIT(fixture_ended() == 2);
	end();
}

CUNIT_MAIN("again, queued", {"linger", test_linger}, {"by key", test_by_key},
    {"largest", test_largest}, {"classes", test_classes}, {"threads", test_threads},
    {"slot", test_slot}, {"surplus", test_surplus})
