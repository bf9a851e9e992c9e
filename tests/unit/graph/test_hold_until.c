/* SPDX-License-Identifier: MIT */
/* Events held with tickets: exactly one claim or the deadline gets the event; it is given back at
 * its deadline; and a ticket of another time gets nothing. (What a stage does with them, and how
 * they end: test_hold_until_ends.c.) */
#include "control/width.h"
#include "wait_rig.h"

/* ---- claims ---- */

static void test_claim(void)
{
	start_simple("t.wait", 1);
	for (int i = 0; i < 300; i++)
		offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(atomic_load(&handled) == 300);
	CU_ASSERT_EQUAL(graph_tickets_out(stage), 300);
	for (int i = 0; i < 300; i++) {
		uint64_t ticket = atomic_load(&tickets[i]);
		CU_ASSERT_NOT_EQUAL(ticket, 0);
		claim(i);
		CU_ASSERT_PTR_NULL(weir_hold_claim(stage, ticket));
	}
	CU_ASSERT_EQUAL(graph_tickets_out(stage), 0);
	CU_ASSERT_EQUAL(atomic_load(&gave_back), 0);
	CU_ASSERT_EQUAL(stage_view(g, "wait").class_view[0].completed, 300);
	end();
}

/* A ticket of a slot that has another event now, and numbers that were never tickets. */
static void test_other_tickets(void)
{
	start_simple("t.wait", 1);
	int a = offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(atomic_load(&tickets[a]) != 0);
	uint64_t old = atomic_load(&tickets[a]);
	struct weir_event *ev = weir_hold_claim(stage, old);
	int b = offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(atomic_load(&tickets[b]) != 0);
	/* a thread uses the slot of its last claim first */
	atomic_store(&tickets[a], weir_hold_until(stage, &ev, WEIR_NO_DEADLINE));
	CU_ASSERT_NOT_EQUAL(old, atomic_load(&tickets[a]));
	CU_ASSERT_EQUAL((old ^ atomic_load(&tickets[a])) & 0xffffff, 0); /* the same slot */
	CU_ASSERT_PTR_NULL(weir_hold_claim(stage, old));
	CU_ASSERT_PTR_NULL(weir_hold_claim(stage, 0));
	CU_ASSERT_PTR_NULL(weir_hold_claim(stage, UINT64_MAX));
	for (unsigned bit = 0; bit < 64; bit++)
		CU_ASSERT_PTR_NULL(weir_hold_claim(stage, atomic_load(&tickets[b]) ^ 1ULL << bit));
	claim(a);
	claim(b);
	end();
}

/* A thread that leaves the graph returns the free slots that it has kept from its claims: a later
 * hold finds them, and the table does not grow. */
static void test_slots_of_a_thread(void)
{
	enum { FIRST = 64 }; /* slots of the first chunk */

	start_simple("t.wait", 1);
	for (int i = 0; i < FIRST; i++)
		offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
	for (int i = 0; i < FIRST; i++)
		claim(i);
	weir_thread_detach();
	CU_ASSERT_EQUAL(weir_thread_attach(g, "test"), 0);
	for (int i = 0; i < FIRST; i++)
		offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
	for (int i = FIRST; i < 2 * FIRST; i++) {
		FIXTURE_AWAIT(atomic_load(&tickets[i]) != 0);
		CU_ASSERT((atomic_load(&tickets[i]) & 0xffffff) < FIRST);
	}
	for (int i = FIRST; i < 2 * FIRST; i++)
		claim(i);
	end();
}

/* A claimed event may be held again, with another deadline and another ticket. */
static void test_held_again(void)
{
	start_simple("t.wait", 3);
	int a = offer(WEIR_NO_DEADLINE, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(atomic_load(&tickets[a]) != 0);
	uint64_t first = atomic_load(&tickets[a]);
	struct weir_event *ev = weir_hold_claim(stage, first);
	/* the pool sleeps and knows of no deadline */
	uint64_t second = weir_hold_until(stage, &ev, clock_now_ns() + 10 * NS_PER_MS);
	CU_ASSERT_PTR_NULL(ev);
	CU_ASSERT_NOT_EQUAL(first, second);
	CU_ASSERT_PTR_NULL(weir_hold_claim(stage, first));
	FIXTURE_AWAIT(is_ended(a));
	CU_ASSERT_EQUAL(probes[a].status, WEIR_EDEADLINE);
	CU_ASSERT_PTR_NULL(weir_hold_claim(stage, second));
	end();
}

/* ---- deadlines ---- */

static void test_expires(const char *use)
{
	start_simple(use, 3);
	int64_t now_ns = clock_now_ns();
	int a = offer(now_ns + 20 * NS_PER_MS, WEIR_NO_DEADLINE);
	int b = offer(WEIR_NO_DEADLINE, now_ns + HOUR);
	int c = offer(now_ns + HOUR, WEIR_NO_DEADLINE);
	int d = offer(now_ns + 30 * NS_PER_MS, now_ns + HOUR);
	int e = offer(-5, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(is_ended(a) && is_ended(d) && is_ended(e));
	CU_ASSERT(clock_now_ns() >= now_ns + 30 * NS_PER_MS);
	CU_ASSERT_EQUAL(probes[a].status, WEIR_EDEADLINE);
	CU_ASSERT_PTR_NULL(weir_hold_claim(stage, atomic_load(&tickets[a])));
	claim(b);
	claim(c);
	/* the width policy gets the events that were answered, admission gets all */
	struct width_view w;
	graph_width_look(g, stage, &w);
	CU_ASSERT_EQUAL(w.ended, 2);
	struct weir_stage_view v = stage_view(g, "wait");
	CU_ASSERT_EQUAL(weir_hist_total(&v.class_view[0].service), 5);
	CU_ASSERT(w.service_ns < v.class_view[0].service.sum_ns);
	CU_ASSERT_EQUAL(v.class_view[0].shed[weir_shed_index(WEIR_EDEADLINE)], 3);
	CU_ASSERT_EQUAL(v.class_view[0].completed, 2);
	CU_ASSERT_EQUAL(v.held, 0);
	end();
}

static void test_given_back(void)
{
	test_expires("t.wait");
	CU_ASSERT_EQUAL(atomic_load(&gave_back), 3);
}

static void test_without_expired(void)
{
	test_expires("t.plain");
	CU_ASSERT_EQUAL(atomic_load(&gave_back), 0);
}

/* The deadline of the event counts if it is earlier. It passes while the event is held. */
static void test_own_deadline(void)
{
	start_simple("t.wait", 1);
	for (int tries = 0; atomic_load(&gave_back) == 0; tries++) {
		/* if the machine stalls, the deadline passes in the queue, where the event ends as
		 * well */
		int a = offer(clock_now_ns() + HOUR, clock_now_ns() + 20 * NS_PER_MS);
		FIXTURE_AWAIT(is_ended(a));
		CU_ASSERT_EQUAL(probes[a].status, WEIR_EDEADLINE);
		CU_ASSERT_FATAL(tries < M - 1);
	}
	end();
}

/* A slot that waits in the wheel for a late deadline gets an event with an early one. */
static void test_earlier(void)
{
	start_simple("t.wait", 1);
	int a = offer(clock_now_ns() + 8 * NS_PER_MS, WEIR_NO_DEADLINE); /* lets the wheel run */
	int b = offer(clock_now_ns() + HOUR, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(is_ended(a));
	claim(b);
	int c = offer(clock_now_ns() + 8 * NS_PER_MS, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(is_ended(c));
	CU_ASSERT_EQUAL(probes[c].status, WEIR_EDEADLINE);
	end();
}

/* A slot that waits in the wheel for an early deadline gets an event with a late one, which is
 * filed again when the early one has come. */
static void test_later(void)
{
	start_simple("t.wait", 1);
	int a = offer(clock_now_ns() + 200 * NS_PER_MS, WEIR_NO_DEADLINE);
	int b = offer(clock_now_ns() + 8 * NS_PER_MS, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(is_ended(b)); /* the wheel has run, and has `a` */
	if (!is_ended(a))           /* a machine that stalls */
		claim(a);
	int64_t until_ns = clock_now_ns() + 400 * NS_PER_MS;
	int c = offer(until_ns, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(is_ended(c));
	CU_ASSERT(clock_now_ns() >= until_ns);
	CU_ASSERT_EQUAL(probes[c].status, WEIR_EDEADLINE);
	end();
}

/* The latest possible deadline, just below WEIR_NO_DEADLINE, does not expire early. */
static void test_latest(void)
{
	start_simple("t.wait", 1);
	int a = offer(WEIR_NO_DEADLINE - 1, WEIR_NO_DEADLINE);
	FIXTURE_AWAIT(atomic_load(&tickets[a]) != 0);
	int b = offer(clock_now_ns(), WEIR_NO_DEADLINE); /* its expiry files `a` in the wheel */
	FIXTURE_AWAIT(is_ended(b));
	FIXTURE_AWAIT(stage_view(g, "wait").threads[WEIR_THREAD_IDLE] == 1);
	CU_ASSERT(atomic_load(&stage->sink.expires_ns) > clock_now_ns() + HOUR / 10);
	claim(a);
	end();
}

static void test_many(void)
{
	int claimed = 0;

	start_simple("t.wait", 3);
	int64_t now_ns = clock_now_ns();
	for (int i = 0; i < M; i++)
		offer(now_ns + (1 + i * 7919 % 100) * NS_PER_MS, WEIR_NO_DEADLINE);
	for (int i = 0; i < M; i += 2) {
		FIXTURE_AWAIT(atomic_load(&tickets[i]) != 0);
		struct weir_event *ev = weir_hold_claim(stage, atomic_load(&tickets[i]));
		if (!ev)
			continue;
		claimed++;
		weir_event_finish(&ev, WEIR_OK);
	}
	FIXTURE_AWAIT(fixture_ended() == M);
	CU_ASSERT_EQUAL(atomic_load(&gave_back) + claimed, M);
	CU_ASSERT_EQUAL(stage_view(g, "wait").class_view[0].completed, (uint64_t)claimed);
	end();
}

static void test_inline(void)
{
	inlined = true; /* for the tests below, too, which repeat some of those above */
	test_claim();
}

int main(void)
{
	static const struct cunit_case cases[] = {{"claim", test_claim},
	    {"other tickets", test_other_tickets}, {"slots of a thread", test_slots_of_a_thread},
	    {"held again", test_held_again}, {"given back", test_given_back},
	    {"without expired", test_without_expired}, {"own deadline", test_own_deadline},
	    {"earlier", test_earlier}, {"later", test_later}, {"latest", test_latest},
	    {"many", test_many}, {"inline", test_inline}, {"inline: held again", test_held_again},
	    {"inline: given back", test_given_back}, {"inline: many", test_many}};

	fixture_register(&wait_ops);
	fixture_register(&plain_ops);
	fixture_register(&end_ops);
	return cunit_run("hold_until", cases, sizeof(cases) / sizeof(cases[0]));
}
