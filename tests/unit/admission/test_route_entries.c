/* SPDX-License-Identifier: MIT */
/* At which stages a front's policy is asked (entries, admission/route.h), and about which events it
 * was asked already (judged). */
#include "admission/route.h"

#include <malloc.h>

#include "cunit_main.h"
#include "route_net.h"

/* source -> a -> b -> f, and all events go on: both a and b are entries of f, and the events that
 * they send were judged. */
static void test_chain(void)
{
	static struct net n;
	int src = net_source(&n, 1), a = net_queued(&n), b = net_queued(&n), f = net_front(&n);

	net_pass(&n, net_link(&n, src, a), 0, 100, 100);
	net_pass(&n, net_link(&n, a, b), 0, 100, 100);
	net_pass(&n, net_link(&n, b, f), 0, 100, 100);
	net_learn(&n);
	CU_ASSERT(route_enters(n.r, a, 0, 0) && route_enters(n.r, b, 0, 0));
	CU_ASSERT(route_judged(n.r, a, 0, 0) && route_judged(n.r, b, 0, 0));
	CU_ASSERT(!route_enters(n.r, src, 0, 0) && !route_judged(n.r, src, 0, 0));
	CU_ASSERT(!route_enters(n.r, f, 0, 0)); /* f is not its own entry */
	net_end(&n);
}

/* A cache whose misses, one in ten, go on to f: refusing all because of a tenth gains nothing. */
static void test_cache(void)
{
	static struct net n;
	int cache = net_queued_of(&n, 1), f = net_front(&n);

	net_pass(&n, net_link(&n, cache, f), 0, 5000, 500);
	net_times(&n, f, 0, 1000);
	n.look[cache].in_flight[0] = 20;
	net_learn(&n);
	CU_ASSERT_DOUBLE_EQUAL(route_visits(n.r, cache, 0, 0), 0.1, 1e-9);
	CU_ASSERT(!route_enters(n.r, cache, 0, 0));
	CU_ASSERT(!route_judged(n.r, cache, 0, 0));
	CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 0), 2000); /* but that tenth is in flight */
	net_end(&n);
}

/* Two routes by class after a shared stage: for each class, only its own front is asked. */
static void test_two_routes(void)
{
	static struct net n;
	int a = net_queued_of(&n, 2), narrow = net_front(&n), wide = net_front(&n);
	int l[2] = {net_link(&n, a, narrow), net_link(&n, a, wide)};

	for (int c = 0; c < 2; c++) {
		net_pass(&n, l[c], c, 300, 300);
		n.look[a].in_flight[c] = 10 + c;
		n.look[narrow].cost_ns[c] = 1000;
		n.look[wide].cost_ns[c] = 100;
	}
	net_learn(&n);
	for (int c = 0; c < 2; c++)
		for (int f = 0; f < 2; f++) {
			CU_ASSERT_EQUAL(route_enters(n.r, a, f, c), c == f);
			CU_ASSERT_EQUAL(route_judged(n.r, a, f, c), c == f);
		}
	CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 0), 10 * 1000);
	CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 1), 11 * 100);
	net_end(&n);
}

/* a is itself a front: no stage before it is an entry for a, but a is an entry for f. */
static void test_a_front_that_is_an_entry(void)
{
	static struct net n;
	int src = net_source(&n, 1), a = net_front(&n), f = net_front(&n);

	net_pass(&n, net_link(&n, src, a), 0, 100, 100);
	net_pass(&n, net_link(&n, a, f), 0, 100, 100);
	net_learn(&n);
	CU_ASSERT(!route_enters(n.r, a, 0, 0) && !route_judged(n.r, a, 0, 0));
	CU_ASSERT(route_enters(n.r, a, 1, 0) && route_judged(n.r, a, 1, 0));
	net_end(&n);
}

/* An inline stage has no admission; the events it sends are as judged as those it receives. */
static void test_inline_in_the_middle(void)
{
	static struct net n;
	int src = net_source(&n, 1), a = net_queued(&n), in = net_inline(&n), f = net_front(&n);

	net_pass(&n, net_link(&n, src, a), 0, 100, 100);
	net_pass(&n, net_link(&n, a, in), 0, 100, 100);
	net_pass(&n, net_link(&n, in, f), 0, 100, 100);
	net_learn(&n);
	CU_ASSERT(route_enters(n.r, a, 0, 0) && !route_enters(n.r, in, 0, 0));
	CU_ASSERT(route_judged(n.r, in, 0, 0));
	net_end(&n);
}

/* Events that come straight from a source through an inline stage were not judged. */
static void test_inline_behind_a_source(void)
{
	static struct net n;
	int src = net_source(&n, 1), in = net_inline(&n), f = net_front(&n);

	net_pass(&n, net_link(&n, src, in), 0, 100, 100);
	net_pass(&n, net_link(&n, in, f), 0, 100, 100);
	net_learn(&n);
	CU_ASSERT(!route_judged(n.r, src, 0, 0) && !route_judged(n.r, in, 0, 0));
	net_end(&n);
}

/* If two routes lead into an inline stage, the one with more events counts. */
static void test_inline_of_two_ways(void)
{
	static struct net n;

	for (int by_entry = 0; by_entry < 2; by_entry++) {
		int src = net_source(&n, 1), a = net_queued(&n), in = net_inline(&n);
		int f = net_front(&n);
		unsigned via_a = by_entry ? 60 : 40;
		net_pass(&n, net_link(&n, src, a), 0, 100, via_a);
		net_pass(&n, net_link(&n, src, in), 0, 0, 100 - via_a);
		net_pass(&n, net_link(&n, a, in), 0, via_a, via_a);
		net_pass(&n, net_link(&n, in, f), 0, 100, 100);
		net_learn(&n);
		CU_ASSERT(route_enters(n.r, a, 0, 0));
		CU_ASSERT_EQUAL(route_judged(n.r, in, 0, 0), by_entry == 1);
		net_end(&n);
	}
}

/* One of an entry's two routes leads through a stage from which fewer events go on. The events of
 * that route were judged at the entry all the same, and the policy is not asked again. */
static void test_judged_through_a_queue_that_is_no_gate(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), b = net_queued(&n), c = net_queued(&n), f = net_front(&n);

	net_pass(&n, net_link(&n, a, b), 0, 400, 100);
	net_pass(&n, net_link(&n, a, c), 0, 0, 300);
	net_pass(&n, net_link(&n, b, f), 0, 100, 70);
	net_pass(&n, net_link(&n, c, f), 0, 300, 300);
	net_learn(&n);
	CU_ASSERT(route_enters(n.r, a, 0, 0)); /* 0.925 */
	CU_ASSERT(!route_enters(n.r, b, 0, 0));
	CU_ASSERT(route_enters(n.r, c, 0, 0));
	CU_ASSERT(route_judged(n.r, b, 0, 0));
	net_end(&n);
}

/* A stage becomes an entry from 0.9 on, and stops being one below 0.8. */
static void test_hysteresis(void)
{
	static const struct {
		unsigned sent;
		bool entry;
	} step[] = {{89, false}, {91, true}, {85, true}, {81, true}, {79, false}, {85, false},
	    {89, false}, {91, true}};
	static struct net n;
	int a = net_queued_of(&n, 1), f = net_front(&n), l = net_link(&n, a, f);

	net_learn(&n);
	for (size_t i = 0; i < sizeof(step) / sizeof(step[0]); i++) {
		/* enough events to forget the old ones */
		net_pass(&n, l, 0, 100000000, step[i].sent * 1000000);
		route_learn(n.r, n.look, n.tried);
		CU_ASSERT_DOUBLE_EQUAL(route_visits(n.r, a, 0, 0), step[i].sent / 100.0, 1e-4);
		CU_ASSERT_EQUAL(route_enters(n.r, a, 0, 0), step[i].entry);
	}
	net_end(&n);
}

/* The only event seen so far went on, so the stage is an entry (a mistake costs at most one
 * refusal). */
static void test_first_event(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), f = net_front(&n), l = net_link(&n, a, f);

	net_learn(&n);
	CU_ASSERT(!route_enters(n.r, a, 0, 0));
	net_pass(&n, l, 0, 1, 1);
	route_learn(n.r, n.look, n.tried);
	CU_ASSERT(route_enters(n.r, a, 0, 0));
	net_end(&n);
}

/* ---- by rates ---- */

/* `entry` sends everything to the inline stage m. `split` sends only 60 of 100 and so is no
 * entry. */
struct two_senders {
	struct net n;
	int entry, split, m, to_gate, to_split, gate_m, split_m, m_f;
};

static void make_two_senders(struct two_senders *t)
{
	int src = net_source(&t->n, 1);

	t->entry = net_queued(&t->n);
	t->split = net_queued(&t->n);
	t->m = net_inline(&t->n);
	int f = net_front(&t->n), other = net_queued(&t->n);
	t->to_gate = net_link(&t->n, src, t->entry);
	t->to_split = net_link(&t->n, src, t->split);
	t->gate_m = net_link(&t->n, t->entry, t->m);
	t->split_m = net_link(&t->n, t->split, t->m);
	t->m_f = net_link(&t->n, t->m, f);
	net_link(&t->n, t->split, other);
}

/* `entry` more events pass the stage `entry`, and `split` more the stage `split`. */
static void two_send(struct two_senders *t, unsigned entry, unsigned split)
{
	unsigned on = split * 6 / 10;

	net_pass(&t->n, t->to_gate, 0, entry, entry);
	net_pass(&t->n, t->to_split, 0, split, split);
	net_pass(&t->n, t->gate_m, 0, entry, entry);
	net_pass(&t->n, t->split_m, 0, split, on);
	net_pass(&t->n, t->m_f, 0, entry + on, entry + on);
	t->n.look[t->entry].offered[0] += entry;
	t->n.look[t->split].offered[0] += split;
	t->n.look[t->m].offered[0] += entry + on;
}

/* The current rates decide, not the few hundred events that are remembered of each sender. */
static void test_busy_sender(void)
{
	static struct two_senders t;

	make_two_senders(&t);
	two_send(&t, 500, 99500);
	net_learn(&t.n);
	CU_ASSERT(route_enters(t.n.r, t.entry, 0, 0));
	CU_ASSERT(!route_enters(t.n.r, t.split, 0, 0));
	CU_ASSERT(!route_judged(t.n.r, t.m, 0, 0)); /* 500 of 60,200 */
	net_end(&t.n);
}

/* A sender that stops is forgotten; it counts again when it comes back. */
static void test_sender_falls_silent(void)
{
	static struct two_senders t;

	make_two_senders(&t);
	two_send(&t, 10000, 1000);
	net_learn(&t.n);
	CU_ASSERT(route_judged(t.n.r, t.m, 0, 0));
	for (int i = 0; i < 500; i++) { /* 5 s of ticks */
		two_send(&t, 0, 100);
		route_learn(t.n.r, t.n.look, t.n.tried);
	}
	CU_ASSERT(route_enters(t.n.r, t.entry, 0, 0));
	CU_ASSERT(!route_judged(t.n.r, t.m, 0, 0));
	for (int i = 0; i < 500; i++) {
		two_send(&t, 100, 100);
		route_learn(t.n.r, t.n.look, t.n.tried);
	}
	CU_ASSERT(route_judged(t.n.r, t.m, 0, 0));
	net_end(&t.n);
}

/* c receives events from an entry and directly from an embedder, a million one way and ten the
 * other. They count as judged only if most come from the entry. */
static void test_embedder(void)
{
	for (int by_entry = 0; by_entry < 2; by_entry++) {
		static struct net n;
		int a = net_queued_of(&n, 1), c = net_queued(&n), f = net_front(&n);
		int other = net_queued(&n);
		unsigned sent = by_entry ? 1000000 : 10;
		net_pass(&n, net_link(&n, a, f), 0, 10 * sent, 9 * sent);
		net_pass(&n, net_link(&n, a, c), 0, 0, sent);
		net_pass(&n, net_link(&n, c, f), 0, 1000010, 700000);
		net_pass(&n, net_link(&n, c, other), 0, 0, 300010);
		n.look[a].offered[0] = 10 * sent;
		n.look[c].offered[0] = 1000010;
		net_learn(&n);
		CU_ASSERT(route_enters(n.r, a, 0, 0) && !route_enters(n.r, c, 0, 0));
		CU_ASSERT_EQUAL(route_judged(n.r, c, 0, 0), by_entry == 1);
		net_end(&n);
	}
}

/* Ticks without events are reported one by one to `t`, and as a number to `twin`. The rates are the
 * same in both: they fall below those of the senders that come next at the same tick. */
static void check_idle(struct two_senders *t, struct two_senders *twin, unsigned by_embedder)
{
	const int ticks = 100;
	bool was_judged = false, was_not = false;

	for (int i = 0; i < 2; i++) {
		struct two_senders *a = i ? twin : t;
		make_two_senders(a);
		two_send(a, 10000, 1000);
		a->n.look[a->m].offered[0] += by_embedder;
		net_learn(&a->n);
		route_learn(a->n.r, a->n.look, a->n.tried); /* nothing has changed */
	}
	for (int i = 0; i < ticks; i++)
		route_learn(t->n.r, t->n.look, t->n.tried);
	route_idle(twin->n.r, ticks);
	for (int i = 0; i < 200; i++) {
		for (int k = 0; k < 2; k++) {
			struct two_senders *a = k ? twin : t;
			two_send(a, by_embedder ? 10 : 0, by_embedder ? 0 : 10);
			route_learn(a->n.r, a->n.look, a->n.tried);
		}
		bool judged = route_judged(t->n.r, t->m, 0, 0);
		CU_ASSERT_EQUAL(route_judged(twin->n.r, twin->m, 0, 0), judged);
		was_judged |= judged;
		was_not |= !judged;
	}
	CU_ASSERT_TRUE(was_judged && was_not);
	net_end(&t->n);
	net_end(&twin->n);
}

static void test_idle(void)
{
	static struct two_senders t, twin;

	check_idle(&t, &twin, 0);
	check_idle(&t, &twin, 100000);
}

static void test_gives_memory_back(void)
{
	static struct net n;
	size_t before = 0;

	for (int i = 0; i < 20; i++) {
		before = i == 10 ? mallinfo2().uordblks : before; /* malloc's caches are filled */
		int a = net_queued_of(&n, 2), f = net_front(&n), last = net_front(&n);
		net_pass(&n, net_link(&n, a, f), 0, 100, 100);
		net_pass(&n, net_link(&n, f, last), 1, 100, 50);
		net_learn(&n);
		net_end(&n);
	}
	/* 0 with a sanitizer, which finds leaks itself */
	CU_ASSERT_EQUAL(mallinfo2().uordblks, before);
}

CUNIT_MAIN("entries", {"a chain", test_chain}, {"a cache", test_cache},
    {"two routes by class", test_two_routes},
    {"a front that is an entry", test_a_front_that_is_an_entry},
    {"inline in the middle", test_inline_in_the_middle},
    {"inline behind a source", test_inline_behind_a_source},
    {"inline of two ways", test_inline_of_two_ways},
    {"judged through a queue that is no entry", test_judged_through_a_queue_that_is_no_gate},
    {"hysteresis", test_hysteresis}, {"the first event", test_first_event},
    {"a busy sender", test_busy_sender}, {"a sender falls silent", test_sender_falls_silent},
    {"an embedder", test_embedder}, {"idle ticks", test_idle},
    {"gives its memory back", test_gives_memory_back})
