/* SPDX-License-Identifier: MIT */
/* When a core gives slots to an idle one, and which cores have slots when threads begin and end. A core is
 * in a handler, or none has events, while the test calls its functions for it. */
#include "serial_rig.h"

#include "sched/serial_choose.h"

#define KEYS 8
#define MS   1000000LL

static atomic_int entered; /* calls of b, which wait */

static void wait_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	atomic_fetch_add(&entered, 1);
	FIXTURE_AWAIT(atomic_load(&probe_gate));
	(void)st;
	weir_event_finish_run(ev, n, WEIR_OK);
}

static const struct weir_stage_ops wait_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.wait",
    .summary = "waits",
    .accepts = &probe_type,
    .handle = wait_handle};

static struct weir_graph *g;
static struct core_group *group;
static struct core *core; /* the first */
static struct weir_stage *a, *b;
static int n_offered;

static void begin(void)
{
	struct weir_spec *spec = weir_spec_new("serial");
	struct weir_group_spec *gs = weir_spec_add_group(spec, "core");

	fixture_register(&pass_ops);
	fixture_register(&wait_ops);
	weir_spec_text(&gs->cores, "2");
	weir_spec_text(&gs->schedule, "fifo");
	weir_spec_text(&gs->serial, "producer");
	fixture_core_stage(spec, "a", "t.pass", "b");
	fixture_core_stage(spec, "b", "t.wait", NULL);
	prepare(100);
	atomic_store(&probe_gate, 0);
	atomic_store(&entered, 0);
	atomic_store(&overtaken, 0);
	n_offered = 0;
	g = fixture_start(spec);
	a = weir_graph_stage(g, "a");
	b = weir_graph_stage(g, "b");
	group = group_of(g);
	core = &group->core[0];
	both_begun(g);
	FIXTURE_AWAIT(atomic_load(&group->pool->n_idle) == 2);
	atomic_store(&group->serial->least_ns, INT64_MAX); /* the cores themselves give none */
	weir_thread_attach(g, "test");
}

static void end(void)
{
	atomic_store(&probe_gate, 1);
	finish(g, n_offered);
}

static uint64_t hash_of(int key)
{
	return weir_hash((struct weir_slice){(const char *)&key, sizeof(key)});
}

/* Key number `n` of those whose slots the core had at the start. Each is of another slot. */
static int key_of(int k, int n)
{
	struct slots seen = {0};

	for (int key = 0;; key++) {
		unsigned slot = (unsigned)(hash_of(key) % QUEUE_SLOTS);
		if (slots_has(&seen, slot) || (int)(slot % CORES) != k)
			continue;
		slots_add(&seen, slot);
		if (n-- == 0)
			return key;
	}
}

/* Offer `each` events of each of the first `keys` keys of core `k` to a. */
static void offer(int k, int keys, int each)
{
	for (int i = 0; i < keys * each; i++) {
		struct weir_event *ev = &probes[n_offered].ev;
		weir_event_init(ev, &probe_type, clock_now_ns());
		probes[n_offered++].producer = key_of(k, i % keys);
		CU_ASSERT_EQUAL_FATAL(weir_offer(a, &ev, 1, NULL), 1);
	}
}

/* The first core is in a call of b with one event. */
static void block(void)
{
	offer(0, 1, 1);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	FIXTURE_AWAIT(atomic_load(&group->pool->n_idle) == 1);
}

/* What an event takes at a and b, as far as the thread of the test knows. */
static void takes(int64_t a_ns, int64_t b_ns)
{
	local_find(thread_self(), a->id)->service_ns = a_ns;
	local_find(thread_self(), b->id)->service_ns = b_ns;
}

/* Deal at `now_ns`. Returns the number of slots that have moved. */
static uint64_t deal(int64_t least_ns, int64_t now_ns)
{
	uint64_t before = book_read(&core->moved);

	atomic_store(&group->serial->least_ns, least_ns);
	thread_self()->now_ns = now_ns;
	serial_deal(core);
	atomic_store(&group->serial->least_ns, INT64_MAX);
	return book_read(&core->moved) - before;
}

/* Eight events of different slots wait in the inbox of a, which take 1 ms each. */
static void test_inbox(void)
{
	begin();
	block();
	offer(0, KEYS, 1);
	CU_ASSERT_EQUAL(queue_part_length(&a->sink.queue, 0), KEYS);
	takes(MS, 0);
	core->deal_ns = 0;
	CU_ASSERT_EQUAL(deal(9 * MS, 100), 0); /* less work than that waits */
	CU_ASSERT_EQUAL(core->deal_ns, 0);
	CU_ASSERT_EQUAL(deal(6 * MS, 100), 0); /* half of it is less */
	CU_ASSERT_EQUAL(core->deal_ns, 100 + SERIAL_AGAIN_NS);
	CU_ASSERT_EQUAL(deal(2 * MS, 99 + SERIAL_AGAIN_NS), 0); /* too early */
	atomic_fetch_or(&group->halted, 1ULL << a->sink.place); /* as if it was paused */
	CU_ASSERT_EQUAL(deal(2 * MS, 100 + SERIAL_AGAIN_NS), 0);
	atomic_fetch_and(&group->halted, ~(1ULL << a->sink.place));
	core->deal_ns = 0;
	atomic_store(&group->serial->state[1], SERIAL_LEFT); /* no core is there */
	CU_ASSERT_EQUAL(deal(2 * MS, 100), 0);
	CU_ASSERT_EQUAL(core->deal_ns, 0);
	atomic_store(&group->serial->state[1], SERIAL_OPEN);
	CU_ASSERT_EQUAL(deal(2 * MS, 100), KEYS / 2);
	FIXTURE_AWAIT(atomic_load(&entered) == 2); /* the other core has events now */
	CU_ASSERT_EQUAL(queue_part_length(&a->sink.queue, 0), KEYS / 2);
	CU_ASSERT_EQUAL(deal(0, 200), 0); /* none is idle */
	end();
}

/* The events have passed a, and wait in the cell of b, on the core that handles one of them. */
static void test_cell(void)
{
	char why[200];

	begin();
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	offer(0, KEYS, 2);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "a", WEIR_STEER_RUN, why, sizeof(why)), 0);
	FIXTURE_AWAIT(atomic_load(&entered) == 1);
	FIXTURE_AWAIT(atomic_load(&group->pool->n_idle) == 1);
	struct cell *cell = &core->cell[b->sink.place];
	uint32_t waiting = cell_length(cell);
	CU_ASSERT_FATAL(waiting >= 2 && queue_part_length(&b->sink.queue, 0) == 0);
	takes(0, MS);
	core->deal_ns = 0;
	CU_ASSERT(deal(MS / 2, 100) > 0);
	CU_ASSERT(cell_length(cell) < waiting);
	CU_ASSERT(cell_length(cell) >= waiting / 2);
	end();
}

/* A single event stays, and so do events of a single slot. */
static void test_few(void)
{
	begin();
	block();
	takes(MS, MS);
	core->deal_ns = 0;
	offer(0, 1, 1);
	CU_ASSERT_EQUAL(deal(0, 100), 0);
	CU_ASSERT_EQUAL(core->deal_ns, 0);
	offer(0, 1, 1);
	CU_ASSERT_EQUAL(deal(0, 100), 0);
	CU_ASSERT_EQUAL(core->deal_ns, 100);
	CU_ASSERT_EQUAL(queue_part_length(&a->sink.queue, 0), 2);
	end();
}

static int slots_of(int k)
{
	int n = 0;

	for (unsigned s = 0; s < QUEUE_SLOTS; s++)
		n += serial_owner(group->serial, s) == k;
	return n;
}

/* The slots of a core whose thread ends go to the other at once, and those without a core to the first
 * that begins. */
static void test_leave_and_join(void)
{
	begin();
	serial_leave(&group->core[1]);
	CU_ASSERT_EQUAL(slots_of(0), QUEUE_SLOTS);
	serial_leave(core);
	CU_ASSERT_EQUAL(slots_of(0), QUEUE_SLOTS);
	serial_join(&group->core[1]);
	CU_ASSERT_EQUAL(slots_of(1), QUEUE_SLOTS);
	serial_join(core);
	CU_ASSERT_EQUAL(slots_of(1), QUEUE_SLOTS);
	offer(0, KEYS, 1);
	end();
}

CUNIT_MAIN("slots that are given", {"inbox", test_inbox}, {"cell", test_cell}, {"few", test_few},
    {"leave and join", test_leave_and_join})
