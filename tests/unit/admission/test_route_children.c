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

CUNIT_MAIN("route_children", {"children", test_children})
