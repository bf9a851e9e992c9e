/* SPDX-License-Identifier: MIT */
/* Slots of serial keys that move while an event is on its way: the key of the event is a field that
 * moves them when it is read. */
#include "serial_rig.h"

static struct weir_graph *hooked;
static struct slots hooked_slots;
static atomic_int hook_from, hook_seq; /* core and event of the move; -1: no more */

/* The key of an event is read: its slots move. The thread of the core that gives them waits. */
static struct weir_slice hooked_get(const struct weir_event *ev, const char *arg)
{
	if ((int)((const struct probe *)ev)->seq == hook_seq) {
		hook_seq = -1;
		CU_ASSERT_TRUE(serial_give(&group_of(hooked)->core[hook_from], 1 - hook_from,
				   &hooked_slots) >= 0);
	}
	return probe_producer(ev, arg);
}

static const struct weir_field hooked_fields[] = {{"user", hooked_get, "x"}, {.name = NULL}};
static const struct weir_event_type hooked_type = {.name = "hooked",
    .size = sizeof(struct probe),
    .finish = probe_finish,
    .fields = hooked_fields};
static const struct weir_stage_ops hooked_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.hooked",
    .summary = "x",
    .accepts = &hooked_type,
    .handle = end_handle};

/* Number `n` of the keys whose slots the core has. */
static int key_of(int core, int n)
{
	int key = 0;

	for (;; key++) {
		uint64_t h = weir_hash((struct weir_slice){(const char *)&key, sizeof(key)});
		if (serial_owner(group_of(hooked)->serial, h) == core && n-- == 0)
			return key;
	}
}

static void give_slot_of(const struct probe *p)
{
	uint64_t h = weir_hash(probe_producer(&p->ev, NULL));

	hooked_slots = (struct slots){0};
	slots_add(&hooked_slots, (unsigned)(h % QUEUE_SLOTS));
}

static void dress(int i, int key)
{
	weir_event_init(&probes[i].ev, &hooked_type, clock_now_ns());
	probes[i].producer = key;
}

/* A group with two cores; the caller adds its stages, and hooked_start starts it. */
static struct weir_spec *hooked_spec(void)
{
	struct weir_spec *spec = weir_spec_new("hooked");
	struct weir_group_spec *gs = weir_spec_add_group(spec, "core");

	weir_spec_text(&gs->cores, "2");
	weir_spec_text(&gs->schedule, "fifo");
	weir_spec_text(&gs->serial, "user");
	return spec;
}

static void hooked_start(struct weir_spec *spec, int events)
{
	prepare(events);
	atomic_store(&probe_gate, 0);
	hook_seq = -1;
	hooked = fixture_start(spec);
	both_begun(hooked);
	FIXTURE_AWAIT(atomic_load(&group_of(hooked)->pool->n_idle) == 2);
	weir_thread_attach(hooked, "test");
}

static void offer_to(const char *stage, int i, int n)
{
	struct weir_event *run[2] = {&probes[i].ev, &probes[i + n - 1].ev};

	CU_ASSERT_EQUAL(weir_offer(weir_graph_stage(hooked, stage), run, n, NULL), n);
}

/* Both events are for the first core when their keys are made. Then the slot of the first event moves,
 * so the other core must be woken for it. */
static void test_moved_meanwhile(void)
{
	struct weir_spec *spec = hooked_spec();

	fixture_register(&hooked_ops);
	fixture_core_stage(spec, "a", "t.hooked", NULL);
	hooked_start(spec, 2);
	dress(0, key_of(0, 0));
	dress(1, key_of(0, 1));
	give_slot_of(&probes[0]);
	hook_from = 0;
	hook_seq = 1;
	offer_to("a", 0, 2);
	FIXTURE_AWAIT(fixture_ended() == 2);
	CU_ASSERT_EQUAL(book_read(&group_of(hooked)->core[1].book[0].from_queue), 1);
	finish(hooked, 2);
}

static int ended_seq[2], n_ended_seq; /* by one core */

/* The first event waits for the gate. */
static void hooked_end_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		int seq = (int)((struct probe *)ev[i])->seq;
		if (seq == 0)
			FIXTURE_AWAIT(atomic_load(&probe_gate));
		else
			ended_seq[n_ended_seq++] = seq;
	}
	end_handle(st, ev, n);
}

static const struct weir_stage_ops hooked_end_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.hooked-end",
    .summary = "x",
    .accepts = &hooked_type,
    .handle = hooked_end_handle};
static const struct weir_outlet hooked_outlets[] = {
    {"out", &hooked_type, true, ""}, {.name = NULL}};
static const struct weir_stage_ops hooked_pass_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.hooked-pass",
    .summary = "x",
    .accepts = &hooked_type,
    .outlets = hooked_outlets,
    .handle = pass_handle};

/* The second core is in a handler. The first one, which handles all of a, sends two events of one key
 * to b: one into the inbox of the second core. The slot, with that event, comes to the first core while
 * it reads the key of the other one: that must not enter the cell, which is served first. */
static void test_moved_here(void)
{
	struct weir_spec *spec = hooked_spec();

	fixture_register(&hooked_end_ops);
	fixture_register(&hooked_pass_ops);
	weir_spec_text(&fixture_core_stage(spec, "a", "t.hooked-pass", "b")->serial, "none");
	fixture_core_stage(spec, "b", "t.hooked-end", NULL);
	hooked_start(spec, 3);
	n_ended_seq = 0;
	dress(0, key_of(1, 0));
	dress(1, key_of(1, 1));
	dress(2, key_of(1, 1));
	give_slot_of(&probes[1]);
	const struct sink *b = &weir_graph_stage(hooked, "b")->sink;
	offer_to("b", 0, 1);
	FIXTURE_AWAIT(stage_view(hooked, "b").longest_running_ns > 0);
	offer_to("a", 1, 1);
	FIXTURE_AWAIT(queue_part_length(&b->queue, 1) == 1);
	hook_from = 1;
	hook_seq = 2;
	offer_to("a", 2, 1);
	FIXTURE_AWAIT(fixture_ended() == 2);
	CU_ASSERT_EQUAL(ended_seq[0], 1);
	CU_ASSERT_EQUAL(ended_seq[1], 2);
	atomic_store(&probe_gate, 1);
	finish(hooked, 3);
}

/* Whether core `k` is parked, and waits for a fuller batch of a. */
static bool lingers(int k)
{
	struct pool *pool = group_of(hooked)->pool;

	lock_take(&pool->lock);
	const struct handler *h = atomic_load(&pool->handler[k]);
	bool is = h->listed && h->ready_ns[0] != INT64_MAX;
	lock_release(&pool->lock);
	return is;
}

static bool parks_without(int k)
{
	struct pool *pool = group_of(hooked)->pool;

	lock_take(&pool->lock);
	const struct handler *h = atomic_load(&pool->handler[k]);
	bool is = h->listed && h->ready_ns[0] == INT64_MAX;
	lock_release(&pool->lock);
	return is;
}

/* The slot of the event for which the first core waits moves away: it must not wait for the batch any
 * more. When that is due, it would not sleep before the other core has taken it. */
static void test_moved_in_linger(void)
{
	struct weir_spec *spec = hooked_spec();

	fixture_set(fixture_core_stage(spec, "a", "t.hooked", NULL), "cohort.max", "2");
	hooked_start(spec, 2);
	atomic_store(&weir_graph_stage(hooked, "a")->sink.linger_ns, 3600 * NS_PER_S);
	dress(0, key_of(0, 0));
	dress(1, key_of(0, 0));
	give_slot_of(&probes[0]);
	offer_to("a", 0, 1);
	FIXTURE_AWAIT(lingers(0));
	CU_ASSERT_EQUAL(serial_give(&group_of(hooked)->core[0], 1, &hooked_slots), 1);
	FIXTURE_AWAIT(lingers(1));
	pool_wake_ranks(group_of(hooked)->pool, 1);
	FIXTURE_AWAIT(parks_without(0));
	CU_ASSERT_TRUE(lingers(1));
	offer_to("a", 1, 1);
	finish(hooked, 2);
}

CUNIT_MAIN("slots that move", {"before the queue is locked", test_moved_meanwhile},
    {"to the sender", test_moved_here}, {"while their core lingers", test_moved_in_linger})
