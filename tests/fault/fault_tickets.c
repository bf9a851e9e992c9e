/* SPDX-License-Identifier: MIT */
/*
 * Memory is short when a stage holds events with tickets: an event that finds no slot ends with
 * WEIR_ENOMEM and its ticket is 0; all others are claimed or expire as usual. Later holds find
 * memory again.
 *
 * Then the n-th allocation, thread creation or epoll_ctl fails in the life of a graph whose stages
 * hold events: stages with a pool, with a loop, inline and with partitions. All events end once.
 */
#include "fault/lives.h"

#define EVENTS 1000
#define FIRST  64 /* slots of the first chunk */

static uint64_t tickets[EVENTS];
static atomic_int handled;
static atomic_bool starving;

/* From now on allocations of the calling thread fail (`on`) or succeed. */
static void starve(bool on)
{
	atomic_store(&fault_of_mine, true);
	atomic_store(&fault_goes_on, on);
	fault_mine = on;
	atomic_store(&fault_alloc_in, on ? 0 : -1);
}

static void wait_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		long at = (struct probe *)ev[i] - probes;
		if (atomic_load(&starving))
			starve(true);
		tickets[at] = weir_hold_until(st, &ev[i], clock_now_ns() + 3600 * NS_PER_S);
		if (atomic_load(&starving))
			starve(false);
		WEIR_ASSERT(ev[i] == NULL);
	}
	atomic_fetch_add(&handled, n);
}

static const struct weir_stage_ops wait_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.wait",
    .summary = "holds with tickets",
    .accepts = &probe_type,
    .handle = wait_handle};

static void test_short_of_slots(void)
{
	struct weir_spec *spec = weir_spec_new("tickets");
	struct weir_stage_spec *s = fixture_stage(spec, "wait", "t.wait", NULL);

	fixture_set(s, "queue.limit", "4000");
	fixture_set(s, "slo", "1h");
	fixture_set(s, "width.policy", "static");
	fixture_set(s, "threads.min", "1");
	fixture_set(s, "threads.max", "1");
	prepare(EVENTS);
	struct weir_graph *g = fixture_start(spec);
	struct weir_stage *st = weir_graph_stage(g, "wait");
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);

	fixture_offer_all(st, probes, FIRST / 2, FIRST / 2);
	FIXTURE_AWAIT(atomic_load(&handled) == FIRST / 2);
	atomic_store(&starving, true);
	fixture_offer_all(st, probes + FIRST / 2, FIRST, FIRST);
	FIXTURE_AWAIT(atomic_load(&handled) == FIRST / 2 + FIRST);
	atomic_store(&starving, false);
	CU_ASSERT_EQUAL(fixture_ended(), FIRST / 2);
	CU_ASSERT_EQUAL(stage_view(g, "wait").class_view[0].failed, FIRST / 2);
	CU_ASSERT_EQUAL(graph_tickets_out(st), FIRST);
	int left = EVENTS - FIRST / 2 - FIRST;
	fixture_offer_all(st, probes + EVENTS - left, left, 50);
	FIXTURE_AWAIT(atomic_load(&handled) == EVENTS);
	for (int i = 0; i < EVENTS; i++) {
		struct weir_event *ev = weir_hold_claim(st, tickets[i]);
		CU_ASSERT_EQUAL(ev == NULL, tickets[i] == 0);
		if (ev)
			weir_event_finish(&ev, WEIR_OK);
		else
			CU_ASSERT_EQUAL(probes[i].status, WEIR_ENOMEM);
	}
	check_each_once(EVENTS);
	CU_ASSERT_EQUAL(stage_view(g, "wait").class_view[0].completed, EVENTS - FIRST / 2);
	weir_thread_detach();
	finish_graph(g, 0);
}

/* ---- whole lives ---- */

#define LIFE 150 /* events */

/* Hold a third of the events until they expire, hold a third and claim them at once, emit the
 * rest. */
static void brief_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		uint64_t seq = ((struct probe *)ev[i])->seq++;
		if (seq % 3 == 2) {
			weir_emit(st, 0, &ev[i]);
			continue;
		}
		int64_t until_ns = clock_now_ns() + (seq % 3 ? 3600 * NS_PER_S : NS_PER_MS);
		uint64_t ticket = weir_hold_until(st, &ev[i], until_ns);
		struct weir_event *held = seq % 3 ? weir_hold_claim(st, ticket) : NULL;
		if (held)
			weir_emit(st, 0, &held);
	}
}

static void brief_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		uint64_t seq = ((struct probe *)ev[i])->seq;
		if (seq % 5 == 0)
			weir_emit(st, 0, &ev[i]);
		else if (seq % 5 < 3) /* `handle` gets it again */
			weir_requeue(st, &ev[i]);
	}
}

static const struct weir_stage_ops brief_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.brief",
    .summary = "holds briefly",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = brief_handle,
    .expired = brief_expired};

static struct weir_spec *life_spec(void)
{
	static const char *const names[] = {"pool", "loop", "inline", "parts"};
	struct weir_spec *spec = weir_spec_new("life");

	for (int i = 0; i < 4; i++) {
		struct weir_stage_spec *s = fixture_stage(
		    spec, names[i], i == 1 ? "t.looper" : "t.brief", i < 3 ? names[i + 1] : "end");
		fixture_set(s, "slo", "1h");
		fixture_set(s, "width.max", "100");
		fixture_set(s, "threads.min", "2");
		fixture_set(s, "threads.max", "2");
		s->inlined = i == 2;
		if (i == 3) {
			s->mode = WEIR_MODE_PARTITIONED;
			weir_spec_text(&s->key, "event");
		}
	}
	fixture_stage(spec, "end", "t.end", NULL);
	return spec;
}

static void traffic(struct weir_graph *g)
{
	if (weir_thread_attach(g, "test") != 0)
		return;
	prepare(LIFE);
	for (int i = 0; i < LIFE; i++) {
		struct weir_event *ev = &probes[i].ev;
		probes[i].seq = (uint64_t)i;
		weir_event_init(ev, &probe_type, 1);
		ev->key = (uint64_t)i;
		if (weir_offer(weir_graph_stage(g, "pool"), &ev, 1, NULL) == 0)
			weir_event_finish(&ev, WEIR_EQUEUE);
	}
	FIXTURE_AWAIT(fixture_ended() == LIFE);
	check_each_once(LIFE);
	weir_thread_detach();
}

static const struct lives lives = {.spec = life_spec, .traffic = traffic};

static void test_allocations(void)
{
	lives_sweep(&lives, &fault_alloc_in, 100);
}

static void test_threads(void)
{
	lives_sweep(&lives, &fault_thread_in, 9);
}

static void test_epoll(void)
{
	lives_sweep(&lives, &fault_epoll_in, 1); /* the call is the loop's */
}

int main(void)
{
	static const struct cunit_case cases[] = {{"short of slots", test_short_of_slots},
	    {"n-th allocation", test_allocations}, {"n-th thread", test_threads},
	    {"n-th epoll_ctl", test_epoll}};
	static struct weir_stage_ops looper_ops;

	looper_ops = brief_ops;
	looper_ops.name = "t.looper";
	looper_ops.flags |= WEIR_STAGE_LOOP;
	fixture_register(&brief_ops);
	fixture_register(&looper_ops);
	fixture_register(&end_ops);
	fixture_register(&wait_ops);
	return cunit_run("fault_tickets", cases, sizeof(cases) / sizeof(cases[0]));
}
