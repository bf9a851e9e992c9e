/* SPDX-License-Identifier: MIT */
/* Stages that split events into children, in admission/route.h. */
#include "admission/route.h"

#include "cunit_main.h"
#include "route_net.h"

/* a splits its events into 8 children for f and waits for them; b, after it, gets the events then. The
 * children leave when the first call at `a` ends. Those of waiting events are not counted as coming,
 * and their time is part of the stay at `a`. */
static void test_children(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), f = net_front(&n), b = net_queued(&n);
	int split = net_link(&n, a, f);

	n.link[split].children = true;
	net_pass(&n, split, 0, 100, 800);
	net_pass(&n, net_link(&n, a, b), 0, 0, 100);
	net_times(&n, a, 1000, 200);
	net_times(&n, f, 5000, 300);
	net_times(&n, b, 10, 20);
	n.look[a].stay_ns[0] = 9000;
	n.look[a].in_flight[0] = 12;
	n.look[a].awaiting[0] = 10;
	net_learn(&n);
	CU_ASSERT_DOUBLE_EQUAL(route_visits(n.r, a, 0, 0), 8, 1e-9);
	CU_ASSERT_EQUAL(route_lead_ns(n.r, a, 0, 0), 1200);
	CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 0), 2 * 8 * 300);
	CU_ASSERT_EQUAL(route_rest_ns(n.r, a, 0), 9000 + 30);
	CU_ASSERT(route_enters(n.r, a, 0, 0));
	CU_ASSERT(route_judged(n.r, a, 0, 0));
	net_end(&n);
}

/* b is behind `a`: the events of `a` that wait for their children still come to it, and a second look
 * finds the same. Counters may be inconsistent for a moment: more events wait than are in flight, or
 * fewer than none. */
static void test_waiting_pass_on(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), kids = net_front(&n), b = net_front(&n);
	int split = net_link(&n, a, kids);

	n.link[split].children = true;
	net_pass(&n, split, 0, 100, 800);
	net_pass(&n, net_link(&n, a, b), 0, 0, 100);
	net_times(&n, a, 1000, 200);
	net_times(&n, kids, 0, 10);
	net_times(&n, b, 0, 300);
	n.look[a].in_flight[0] = 12;
	n.look[a].awaiting[0] = 10;
	net_learn(&n);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 0), 2 * 8 * 10);
		CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 1), 12 * 300);
		route_learn(n.r, n.look, n.tried);
	}
	n.look[a].awaiting[0] = 15;
	route_learn(n.r, n.look, n.tried);
	CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 0), 0);
	n.look[a].awaiting[0] = -3;
	route_learn(n.r, n.look, n.tried);
	CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 0), 12 * 8 * 10);
	net_end(&n);
}

/* A stay that has been measured is an upper bound of the time until the children leave. */
static void test_short_stay(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), f = net_front(&n);
	int split = net_link(&n, a, f);

	n.link[split].children = true;
	net_pass(&n, split, 0, 100, 200);
	net_times(&n, a, 1000, 200);
	n.look[a].stay_ns[0] = 700;
	net_learn(&n);
	CU_ASSERT_EQUAL(route_lead_ns(n.r, a, 0, 0), 700);
	net_end(&n);
}

CUNIT_MAIN("route_children", {"children", test_children}, {"waiting", test_waiting_pass_on},
    {"a short stay", test_short_stay})
