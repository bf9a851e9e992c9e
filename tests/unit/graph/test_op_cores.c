/* SPDX-License-Identifier: MIT */
/* Operations in core groups: the handlers and continuations of a replicated stage, whatever thread ends
 * the last child; and spare threads that run children and continuations while a core sleeps. */
#include "spare_rig.h"

#include "base/clock.h"
#include "event/op.h"

#define LEAVES 4
#define ROUNDS 2

/* the thread that first handled event i */
static pthread_t home[EVENTS];
static atomic_int moved, n_next, missing;
static atomic_int shared_by_two,
    without; /* replicas that two threads used at a time, or that were none */

/* State of a replica of t.fan: threads in a callback. */
struct own {
	atomic_int users;
};

static struct own *enter(struct weir_stage *st)
{
	struct own *own = weir_state(st);

	if (!own)
		atomic_fetch_add(&without, 1);
	else if (atomic_fetch_add(&own->users, 1) != 0)
		atomic_fetch_add(&shared_by_two, 1);
	return own;
}

static void leave(struct own *own)
{
	if (own)
		atomic_fetch_sub(&own->users, 1);
}

static void joined(struct weir_stage *st, struct weir_event **ev, int n);

static void fan(struct weir_stage *st, struct weir_event **slot)
{
	for (int i = 0; i < LEAVES; i++) {
		struct weir_event *c = weir_event_new(st, &probe_type);
		((struct probe *)c)->seq = EVENTS;
		weir_child(st, *slot, 0, &c);
	}
	weir_await(st, slot, joined);
}

static void fan_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct own *own = enter(st);

	for (int i = 0; i < n; i++) {
		home[((struct probe *)ev[i])->seq] = pthread_self();
		fan(st, &ev[i]);
	}
	leave(own);
}

static void joined(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct own *own = enter(st);

	atomic_fetch_add(&n_next, n);
	for (int i = 0; i < n; i++) {
		struct probe *p = (struct probe *)ev[i];
		int found = 0;
		for (const struct weir_event *c = weir_ended(ev[i]); c; c = c->next)
			found += weir_child_status(c) == WEIR_OK;
		atomic_fetch_add(&missing, LEAVES - found);
		if (!pthread_equal(home[p->seq], pthread_self()))
			atomic_fetch_add(&moved, 1);
		if (++p->producer < ROUNDS)
			fan(st, &ev[i]);
		else
			weir_event_finish(&ev[i], weir_ended_status(ev[i]));
	}
	leave(own);
}

static void leaf_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

static const struct weir_outlet fan_outlets[] = {
    {"leaf", &probe_type, false, "children"}, {.name = NULL}};
static const struct weir_stage_ops fan_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_REPLICABLE,
    .name = "t.fan",
    .summary = "has children",
    .accepts = &probe_type,
    .outlets = fan_outlets,
    .children = 1,
    .state_size = sizeof(struct own),
    .handle = fan_handle};
static const struct weir_stage_ops leaf_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_REPLICABLE,
    .name = "t.leaf",
    .summary = "ends children",
    .accepts = &probe_type,
    .handle = leaf_handle};

/* As spec_new, but a splits events, and b ends the children. */
static struct weir_spec *fan_spec(const char *cores)
{
	struct weir_spec *spec = spec_new(cores, "t.fan");

	weir_spec_text(&spec->stages[2].use, "t.leaf");
	memset(home, 0, sizeof(home));
	atomic_store(&moved, 0);
	atomic_store(&shared_by_two, 0);
	atomic_store(&without, 0);
	atomic_store(&missing, 0);
	atomic_store(&n_next, 0);
	for (int i = 0; i < EVENTS; i++)
		probes[i].producer = 0;
	return spec;
}

/* `parents` events have ended, and all their children. */
static void check_books(struct weir_graph *g, uint64_t parents)
{
	FIXTURE_AWAIT(stage_view(g, "a").joined == parents * LEAVES * ROUNDS);
	FIXTURE_AWAIT(stage_view(g, "a").in_flight == 0);
	/* an event is counted before it is finished */
	FIXTURE_AWAIT(fixture_ended() == parents * (1 + LEAVES * ROUNDS));
	struct weir_stage_view v = stage_view(g, "a");
	CU_ASSERT_EQUAL(v.spawned, parents * LEAVES * ROUNDS);
	CU_ASSERT_EQUAL(v.awaiting, 0);
	CU_ASSERT_EQUAL(v.law_residual, 0);
	CU_ASSERT_EQUAL(atomic_load(&missing), 0);
	CU_ASSERT_EQUAL(atomic_load(&n_next), (int)parents * ROUNDS);
}

/* Where the stage of the children is. */
enum b_is { B_SHARED, B_REPLICATED, B_POOL, B_INLINE, B_WAYS };

static struct weir_spec *replicated(const char *schedule, enum b_is b)
{
	struct weir_spec *spec = fan_spec(task_cores() < 2 ? "1" : "2");
	struct weir_stage_spec *s = &spec->stages[2];

	weir_spec_text(&spec->groups[0].schedule, schedule);
	fixture_set(&spec->stages[1], "mode", "replicated");
	if (b == B_REPLICATED)
		fixture_set(s, "mode", "replicated");
	else if (b != B_SHARED)
		weir_spec_text(&s->group, "");
	if (b == B_POOL)
		fixture_set(s, "threads.max", "2");
	s->inlined = b == B_INLINE;
	return spec;
}

/* The children are ended by any core, by their replica, by a pool, or in the thread of their parent. */
static void test_replicated(void)
{
	static const char *const schedules[] = {"fifo", "srpt", "color"};

	for (int i = 0; i < 3; i++)
		for (int b = B_SHARED; b < B_WAYS; b++) {
			struct weir_graph *g =
			    fixture_start(replicated(schedules[i], (enum b_is)b));
			weir_thread_attach(g, "test");
			CU_ASSERT_STRING_EQUAL(stage_view(g, "a").mode, "replicated");
			offer(g, "a", 0, EVENTS);
			check_books(g, EVENTS);
			CU_ASSERT_EQUAL(atomic_load(&shared_by_two), 0);
			CU_ASSERT_EQUAL(atomic_load(&without), 0);
			finish_of(g, EVENTS);
		}
}

/* The only core sleeps: its spare thread handles parents, children and continuations. */
static void test_spare(void)
{
	struct weir_graph *g = start_asleep(fan_spec("1"));

	offer(g, "a", 1, EVENTS - 1);
	check_books(g, EVENTS - 1);
	CU_ASSERT_EQUAL(atomic_load(&asleep_in), 1); /* so none but a spare can have done it */
	wake();
	FIXTURE_AWAIT(atomic_load(&probes[0].finishes) == 1);
	finish_of(g, EVENTS);
}

/* The core has handled the parents before it sleeps. Their children and continuations are those of the
 * spare, and the second half of the rounds, too. */
static void test_spare_goes_on(void)
{
	struct weir_spec *spec = fan_spec("1");
	char why[256];

	weir_log_set_fd(-1);
	struct weir_graph *g = fixture_start(spec);
	weir_thread_attach(g, "test");
	CU_ASSERT_EQUAL(weir_graph_steer(g, "b", WEIR_STEER_PAUSE, why, sizeof(why)), 0);
	offer(g, "a", 1, 50);
	FIXTURE_AWAIT(stage_view(g, "a").awaiting == 50);
	offer(g, "w", 0, 1);
	FIXTURE_AWAIT(atomic_load(&asleep_in) == 1);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "b", WEIR_STEER_RUN, why, sizeof(why)), 0);
	check_books(g, 50);
	CU_ASSERT_EQUAL(atomic_load(&asleep_in), 1);
	CU_ASSERT_EQUAL(atomic_load(&moved), 50 * ROUNDS);
	wake();
	FIXTURE_AWAIT(atomic_load(&probes[0].finishes) == 1);
	finish_of(g, 51);
}

static void test_register(void)
{
	fixture_register(&fan_ops);
	fixture_register(&leaf_ops);
	fixture_register(&sleep_ops);
}

CUNIT_MAIN("op cores", {"register", test_register}, {"replicated", test_replicated},
    {"spare", test_spare}, {"spare goes on", test_spare_goes_on})
