/* SPDX-License-Identifier: MIT */
/* Where events go (admission/route.h): small graphs with known answers, and random ones against a
 * slow computation that follows every path. For the stages at which a front's policy is asked, see
 * test_route_entries.c. */
#include "admission/route.h"

#include "cunit_main.h"
#include "route_net.h"

/* ---- visits, times, work ---- */

/* source -> a -> b -> f */
static void test_chain(void)
{
	static struct net n;
	int src = net_source(&n, 1), a = net_queued(&n), b = net_queued(&n), f = net_front(&n);

	net_pass(&n, net_link(&n, src, a), 0, 100, 100);
	net_pass(&n, net_link(&n, a, b), 0, 100, 100);
	net_pass(&n, net_link(&n, b, f), 0, 100, 50);
	net_times(&n, a, 3000, 100);
	net_times(&n, b, 2000, 50);
	net_times(&n, f, 7000, 400);
	net_learn(&n);
	CU_ASSERT_DOUBLE_EQUAL(route_visits(n.r, src, 0, 0), 0.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(route_visits(n.r, a, 0, 0), 0.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(route_visits(n.r, b, 0, 0), 0.5, 1e-9);
	CU_ASSERT_EQUAL(route_visits(n.r, f, 0, 0), 0);
	CU_ASSERT_EQUAL(route_lead_ns(n.r, b, 0, 0), 2050);
	CU_ASSERT_EQUAL(route_lead_ns(n.r, a, 0, 0), 3100 + 2050);
	CU_ASSERT_EQUAL(route_lead_ns(n.r, src, 0, 0), 3100 + 2050); /* a source takes no time */
	CU_ASSERT_EQUAL(route_lead_ns(n.r, f, 0, 0), 0);
	CU_ASSERT_EQUAL(route_rest_ns(n.r, f, 0), 7400);
	CU_ASSERT_EQUAL(route_rest_ns(n.r, b, 0), 2050 + 3700);
	CU_ASSERT_EQUAL(route_rest_ns(n.r, a, 0), 3100 + 2050 + 3700);
	net_end(&n);
}

/* a -> b or c -> f: lead is the mean of both routes, weighted by the events that take them. */
static void test_diamond(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), b = net_queued(&n), c = net_queued(&n), f = net_front(&n);

	net_pass(&n, net_link(&n, a, b), 0, 400, 300);
	net_pass(&n, net_link(&n, a, c), 0, 0, 100);
	net_pass(&n, net_link(&n, b, f), 0, 300, 300);
	net_pass(&n, net_link(&n, c, f), 0, 100, 50);
	net_times(&n, a, 100, 0);
	net_times(&n, b, 1000, 0);
	net_times(&n, c, 9000, 0);
	net_learn(&n);
	CU_ASSERT_DOUBLE_EQUAL(route_visits(n.r, a, 0, 0), 0.75 + 0.125, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(
	    (double)route_lead_ns(n.r, a, 0, 0), 100 + (0.75 * 1000 + 0.125 * 9000) / 0.875, 1);
	CU_ASSERT_EQUAL(route_rest_ns(n.r, a, 0), 100 + 750 + 2250);
	net_end(&n);
}

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

/* Events at the front itself and events at sources are not in flight to the front. */
static void test_pipeline(void)
{
	static struct net n;
	int src = net_source(&n, 2), a = net_queued(&n), b = net_queued(&n), f = net_front(&n);

	for (int c = 0; c < 2; c++) {
		net_pass(&n, net_link(&n, src, a), c, 100, 100);
		net_pass(&n, net_link(&n, a, b), c, 100, 50);
		net_pass(&n, net_link(&n, b, f), c, 100, c ? 10 : 100);
	}
	n.look[f].cost_ns[0] = 1000;
	n.look[f].cost_ns[1] = 20000;
	n.look[a].cost_ns[0] = 77; /* irrelevant */
	n.look[src].in_flight[0] = 1000000;
	n.look[f].in_flight[0] = n.look[f].in_flight[1] = 1000000;
	n.look[a].in_flight[0] = 8;  /* half of them go there: 4 x 1000 */
	n.look[b].in_flight[0] = 3;  /* 3 x 1000 */
	n.look[a].in_flight[1] = 40; /* a twentieth: 2 x 20000 */
	n.look[b].in_flight[1] = 10; /* a tenth: 1 x 20000 */
	net_learn(&n);
	CU_ASSERT_DOUBLE_EQUAL((double)route_pipeline_ns(n.r, 0), 4000 + 3000 + 40000 + 20000, 2);
	n.look[a].in_flight[0] = n.look[b].in_flight[0] = 0;
	n.look[a].in_flight[1] = n.look[b].in_flight[1] = 0;
	route_learn(n.r, n.look, n.tried);
	CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 0), 0); /* no rounding errors remain */
	net_end(&n);
}

/* Events in flight at stages further upstream do not arrive before an event that enters now. */
static void test_before(void)
{
	static struct net n;
	int src = net_source(&n, 2), a = net_queued(&n), b = net_queued(&n), f = net_front(&n);

	for (int c = 0; c < 2; c++) {
		net_pass(&n, net_link(&n, src, a), c, 100, 100);
		net_pass(&n, net_link(&n, a, b), c, 100, 100);
		net_pass(&n, net_link(&n, b, f), c, 100, 100);
	}
	net_times(&n, a, 3000, 100);
	net_times(&n, b, 2000, 50);
	net_times(&n, f, 0, 1000);
	n.look[f].in_flight[0] = 1000000; /* already there */
	net_learn(&n);
	CU_ASSERT_EQUAL(route_before(n.r, a, 0, 0), 1); /* no events in flight: 1 */
	CU_ASSERT_EQUAL(route_before(n.r, f, 0, 0), 1);
	n.look[a].in_flight[0] = 50;
	n.look[a].in_flight[1] = 10;
	n.look[b].in_flight[0] = 15;
	n.look[b].in_flight[1] = 5;
	route_learn(n.r, n.look, n.tried);
	for (int c = 0; c < 2; c++) {
		CU_ASSERT_DOUBLE_EQUAL(route_before(n.r, a, 0, c), 1, 1e-9);
		CU_ASSERT_DOUBLE_EQUAL(route_before(n.r, b, 0, c), 0.25, 1e-9);
		CU_ASSERT_EQUAL(route_before(n.r, f, 0, c), 0); /* the front itself: nothing */
	}
	n.look[a].in_flight[0] = n.look[a].in_flight[1] = 0;
	route_learn(n.r, n.look, n.tried);
	/* the mean over about a second: in 1 of 2 ticks there were events at `a` */
	CU_ASSERT_DOUBLE_EQUAL(
	    route_before(n.r, b, 0, 0), 20 * 1.95 / (20 * 1.95 + 60 * 0.95), 1e-9);
	for (int i = 0; i < 300; i++)
		route_learn(n.r, n.look, n.tried);
	CU_ASSERT_EQUAL(route_before(n.r, b, 0, 0), 1); /* old values are forgotten */
	net_end(&n);
}

/* Two classes take about the same time. An event of class 1 that enters now overtakes few events of
 * class 0, also if only class 0 happens to be in flight at a tick. */
static void test_before_of_classes(void)
{
	static struct net n;
	int a = net_queued_of(&n, 2), f = net_front(&n);

	for (int c = 0; c < 2; c++)
		net_pass(&n, net_link(&n, a, f), c, 100, 100);
	net_times(&n, a, 0, 1000);
	n.look[a].cost_ns[1] = 990;
	net_times(&n, f, 0, 1000);
	n.look[a].in_flight[0] = n.look[a].in_flight[1] = 10;
	net_learn(&n);
	CU_ASSERT_DOUBLE_EQUAL(route_before(n.r, a, 0, 0), 1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(route_before(n.r, a, 0, 1), (10 * 0.99 + 10) / 20, 1e-9);
	n.look[a].in_flight[1] = 0;
	route_learn(n.r, n.look, n.tried);
	CU_ASSERT_DOUBLE_EQUAL(route_before(n.r, a, 0, 1), (19.5 * 0.99 + 9.5) / 29, 1e-9);
	net_end(&n);
}

/* A slow route and a fast one: only the events that have been on the slow one for long arrive
 * before an event that enters the fast one. */
static void test_before_on_two_ways(void)
{
	static struct net n;
	int slow = net_queued_of(&n, 1), fast = net_queued(&n), f = net_front(&n);

	net_pass(&n, net_link(&n, slow, f), 0, 100, 50);
	net_pass(&n, net_link(&n, fast, f), 0, 100, 100);
	net_times(&n, slow, 500000, 100);
	net_times(&n, fast, 100, 100);
	net_times(&n, f, 0, 1000);
	n.look[slow].in_flight[0] = 4000;
	n.look[fast].in_flight[0] = 20;
	net_learn(&n);
	CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 0), 2020000);
	CU_ASSERT_DOUBLE_EQUAL(
	    route_before(n.r, fast, 0, 0), (20 + 2000 * 200.0 / 500100) / 2020, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(route_before(n.r, slow, 0, 0), 1, 1e-9);
	net_end(&n);
}

/* If events stay in a stage longer than they wait and are served (held ones do), their stay counts,
 * per class. */
static void test_stay(void)
{
	static struct net n;
	int a = net_queued_of(&n, 2), f = net_front(&n), l = net_link(&n, a, f);

	for (int c = 0; c < 2; c++)
		net_pass(&n, l, c, 100, 100);
	net_times(&n, a, 300, 20);
	net_times(&n, f, 700, 30);
	n.look[a].stay_ns[0] = 500000;
	net_learn(&n);
	CU_ASSERT_EQUAL(route_lead_ns(n.r, a, 0, 0), 500000);
	CU_ASSERT_EQUAL(route_rest_ns(n.r, a, 0), 500000 + 730);
	CU_ASSERT_EQUAL(route_lead_ns(n.r, a, 0, 1), 320);
	CU_ASSERT_EQUAL(route_rest_ns(n.r, a, 1), 320 + 730);
	n.look[a].stay_ns[0] = 0; /* holds no events any more */
	route_learn(n.r, n.look, n.tried);
	CU_ASSERT_EQUAL(route_lead_ns(n.r, a, 0, 0), 320);
	net_end(&n);
}

/* Counters are read one by one, so a finish may be seen before its start. */
static void test_negative_in_flight(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), b = net_queued(&n), f = net_front(&n);

	net_pass(&n, net_link(&n, a, b), 0, 10, 10);
	net_pass(&n, net_link(&n, b, f), 0, 10, 10);
	net_times(&n, f, 0, 1000);
	n.look[a].in_flight[0] = -5;
	n.look[b].in_flight[0] = 2;
	net_learn(&n);
	CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 0), 2000);
	n.look[b].in_flight[0] = -2;
	route_learn(n.r, n.look, n.tried);
	CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 0), 0);
	net_end(&n);
}

static void test_nothing_known(void)
{
	static struct net n;
	int src = net_source(&n, 2), a = net_queued(&n), f = net_front(&n);

	net_link(&n, src, a);
	net_link(&n, a, f);
	n.look[a].in_flight[0] = 100;
	net_learn(&n);
	for (int c = 0; c < 2; c++) {
		CU_ASSERT(!route_enters(n.r, a, 0, c) && !route_judged(n.r, a, 0, c));
		CU_ASSERT_EQUAL(route_visits(n.r, a, 0, c), 0);
		CU_ASSERT_EQUAL(route_lead_ns(n.r, a, 0, c), 0);
		CU_ASSERT_EQUAL(route_rest_ns(n.r, a, c), 0);
	}
	CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 0), 0);
	net_end(&n);
}

/* a -> b -> f, and f sends back to a: the remaining route is counted once. */
static void test_loops_are_not_followed(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), b = net_queued(&n), f = net_front(&n);

	net_pass(&n, net_link(&n, a, b), 0, 100, 100);
	net_pass(&n, net_link(&n, b, f), 0, 100, 60);
	int back = net_link(&n, f, a);
	n.link[back].loop = true;
	net_pass(&n, back, 0, 60, 60);
	net_times(&n, a, 10, 0);
	net_times(&n, b, 20, 0);
	net_times(&n, f, 30, 1000);
	n.look[f].in_flight[0] = 9;
	net_learn(&n);
	route_learn(n.r, n.look, n.tried); /* nor after another tick */
	CU_ASSERT_DOUBLE_EQUAL(route_visits(n.r, a, 0, 0), 0.6, 1e-9);
	CU_ASSERT_EQUAL(route_visits(n.r, f, 0, 0), 0);
	CU_ASSERT_EQUAL(route_lead_ns(n.r, a, 0, 0), 30);
	CU_ASSERT_EQUAL(route_rest_ns(n.r, f, 0), 1030);
	CU_ASSERT_EQUAL(route_pipeline_ns(n.r, 0), 0);
	net_end(&n);
}

/* If only a few events in ten thousand go to the front, the mean of their times is only noise. */
static void test_who_hardly_goes_there_has_no_lead(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), f = net_front(&n), l = net_link(&n, a, f);

	net_times(&n, a, 5000, 0);
	net_pass(&n, l, 0, 10000, 99);
	net_learn(&n);
	CU_ASSERT_EQUAL(route_lead_ns(n.r, a, 0, 0), 0);
	net_end(&n);
	a = net_queued_of(&n, 1), f = net_front(&n), l = net_link(&n, a, f);
	net_times(&n, a, 5000, 0);
	net_pass(&n, l, 0, 10000, 101);
	net_learn(&n);
	CU_ASSERT_EQUAL(route_lead_ns(n.r, a, 0, 0), 5000);
	net_end(&n);
}

/* ---- forgetting ---- */

/* A class that went to f now goes elsewhere. This is learned within about two thousand events, and
 * the first hundred do not override the past. */
static void test_a_route_that_changes(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), f = net_front(&n), other = net_queued(&n);
	int l = net_link(&n, a, f), m = net_link(&n, a, other);

	net_pass(&n, l, 0, 100000, 100000);
	net_learn(&n);
	CU_ASSERT_DOUBLE_EQUAL(route_visits(n.r, a, 0, 0), 1, 1e-9);
	for (int t = 0; t < 40; t++) { /* 50 events per tick */
		double before = route_visits(n.r, a, 0, 0);
		net_pass(&n, m, 0, 50, 50);
		route_learn(n.r, n.look, n.tried);
		CU_ASSERT(route_visits(n.r, a, 0, 0) < before);
		if (t == 1)
			CU_ASSERT(route_visits(n.r, a, 0, 0) > 0.7);
	}
	CU_ASSERT(route_visits(n.r, a, 0, 0) < 0.05);
	CU_ASSERT(!route_enters(n.r, a, 0, 0));
	net_end(&n);
}

/* Ticks without events change nothing. */
static void test_silence_forgets_nothing(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), f = net_front(&n), l = net_link(&n, a, f);

	net_pass(&n, l, 0, 40, 38);
	net_learn(&n);
	for (int t = 0; t < 1000; t++)
		route_learn(n.r, n.look, n.tried);
	CU_ASSERT_DOUBLE_EQUAL(route_visits(n.r, a, 0, 0), 0.95, 1e-9);
	CU_ASSERT(route_enters(n.r, a, 0, 0));
	net_end(&n);
}

/* More tried than handled, which is possible when counters are read one by one: at most all went
 * on. */
static void test_more_tried_than_handled(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), f = net_front(&n);

	net_pass(&n, net_link(&n, a, f), 0, 10, 12);
	net_learn(&n);
	CU_ASSERT_EQUAL(route_visits(n.r, a, 0, 0), 1);
	net_end(&n);
}

/* A counter may be read slightly behind an earlier reading; that does not count as negative
 * progress. */
static void test_books_a_step_behind(void)
{
	static struct net n;
	int a = net_queued_of(&n, 1), f = net_front(&n), l = net_link(&n, a, f);

	net_pass(&n, l, 0, 10, 10);
	net_learn(&n);
	n.tried[l * WEIR_CLASSES_MAX] -= 4;
	route_learn(n.r, n.look, n.tried);
	CU_ASSERT_EQUAL(route_visits(n.r, a, 0, 0), 1);
	net_end(&n);
}

/* ---- against the slow computation ---- */

static uint64_t random_state;

static unsigned random_below(unsigned n)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(random_state >> 33) % n;
}

/* Stages 0 .. n-1, links from lower to higher numbers only, under shuffled names. */
static void random_net(struct net *n)
{
	int name[NET_STAGES], stages = 3 + (int)random_below(6);

	n->shape.n_classes = 1 + (int)random_below(3);
	for (int i = 0; i < stages; i++)
		name[i] = i;
	for (int i = stages - 1; i > 0; i--) {
		int k = (int)random_below((unsigned)i + 1), was = name[i];
		name[i] = name[k];
		name[k] = was;
	}
	n->shape.n_stages = stages;
	for (int i = 0; i < stages; i++) {
		struct route_stage *st = &n->stage[name[i]];
		unsigned kind = i == 0 ? 0 : 1 + random_below(3);
		n->order[i] = name[i];
		*st = (struct route_stage){.source = kind == 0, .queued = kind >= 2, .front = -1};
		if (kind == 3 && n->shape.n_fronts < 4)
			st->front = n->shape.n_fronts++;
		for (int c = 0; c < n->shape.n_classes; c++) {
			n->look[name[i]].cost_ns[c] = random_below(100000);
			n->look[name[i]].in_flight[c] = (int)random_below(50) - 5;
			n->look[name[i]].handled[c] = 400;
		}
		n->look[name[i]].wait_ns = random_below(1000000);
	}
	for (int i = 0; i < stages; i++)
		for (int k = i + 1; k < stages && n->shape.n_links < NET_LINKS; k++)
			if (random_below(2))
				net_link(n, name[i], name[k]);
}

static void random_shares(struct net *n)
{
	for (int s = 0; s < n->shape.n_stages; s++)
		for (int c = 0; c < n->shape.n_classes; c++) {
			unsigned left = 400;
			for (int l = 0; l < n->shape.n_links; l++) {
				if (n->link[l].from != s)
					continue;
				unsigned take = random_below(3) ? random_below(left + 1) : left;
				n->tried[l * WEIR_CLASSES_MAX + c] = take;
				left -= take;
			}
		}
}

/* Follows all paths from a stage, one by one. */
struct walk {
	const struct net *n;
	int c, f;
	double visits, time_ns; /* to front f: probability, and probability times time */
	double rest_ns;
};

static void walk_from(struct walk *w, int s, double p, double so_far_ns)
{
	const struct net *n = w->n;
	double stay =
	    n->stage[s].source ? 0 : (double)n->look[s].wait_ns + (double)n->look[s].cost_ns[w->c];

	w->rest_ns += p * stay;
	for (int l = 0; l < n->shape.n_links; l++) {
		double q = p * (double)n->tried[l * WEIR_CLASSES_MAX + w->c] / 400;
		if (n->link[l].from != s || q == 0)
			continue;
		if (n->stage[n->link[l].to].front == w->f) {
			w->visits += q;
			w->time_ns += q * (so_far_ns + stay);
		}
		walk_from(w, n->link[l].to, q, so_far_ns + stay);
	}
}

static bool near(double is, double want)
{
	double off = is > want ? is - want : want - is;

	return off <= 1.5 + 1e-6 * want; /* rounding to whole ns */
}

static int compare_stage(const struct net *n, int s, int c, int f, double *pipeline_ns, int at)
{
	struct walk w = {.n = n, .c = c, .f = f};
	int wrong = 0;

	walk_from(&w, s, 1, 0);
	double off = route_visits(n->r, s, f, c) - w.visits;
	wrong += off > 1e-6 || off < -1e-6;
	wrong += !near((double)route_rest_ns(n->r, s, c), w.rest_ns);
	if (w.visits > 0.0101 || w.visits == 0)
		wrong += !near(
		    (double)route_lead_ns(n->r, s, f, c), w.visits > 0 ? w.time_ns / w.visits : 0);
	bool edge = w.visits > 0.9 - 1e-9 && w.visits < 0.9 + 1e-9;
	bool entry = n->stage[s].queued && s != at && w.visits >= 0.9;
	wrong += !edge && route_enters(n->r, s, f, c) != entry;
	if (s != at && !n->stage[s].source && n->look[s].in_flight[c] > 0)
		*pipeline_ns +=
		    w.visits * (double)n->look[s].in_flight[c] * (double)n->look[at].cost_ns[c];
	return wrong;
}

static void test_random_graphs(void)
{
	static struct net n;
	int entries = 0;

	for (uint64_t seed = 1; seed <= 500; seed++) {
		int wrong = 0;
		random_state = seed;
		random_net(&n);
		random_shares(&n);
		net_learn(&n);
		for (int at = 0; at < n.shape.n_stages; at++) {
			int f = n.stage[at].front;
			double pipeline_ns = 0;
			for (int i = 0; f >= 0 && i < n.shape.n_stages * n.shape.n_classes; i++) {
				int s = i % n.shape.n_stages, c = i / n.shape.n_stages;
				wrong += compare_stage(&n, s, c, f, &pipeline_ns, at);
				entries += route_enters(n.r, s, f, c);
			}
			wrong += f >= 0 && !near((double)route_pipeline_ns(n.r, f), pipeline_ns);
		}
		if (wrong)
			fprintf(stderr, "seed %d: %d answers are wrong\n", (int)seed, wrong);
		CU_ASSERT_EQUAL(wrong, 0);
		net_end(&n);
	}
	CU_ASSERT(entries > 100);
}

CUNIT_MAIN("routes", {"a chain", test_chain}, {"a diamond", test_diamond},
    {"children", test_children}, {"work on its way", test_pipeline}, {"before", test_before},
    {"before on two ways", test_before_on_two_ways},
    {"before, of two classes", test_before_of_classes}, {"stay", test_stay},
    {"negative in flight", test_negative_in_flight}, {"nothing known", test_nothing_known},
    {"loops are not followed", test_loops_are_not_followed},
    {"who hardly goes there", test_who_hardly_goes_there_has_no_lead},
    {"a route that changes", test_a_route_that_changes},
    {"silence forgets nothing", test_silence_forgets_nothing},
    {"more tried than handled", test_more_tried_than_handled},
    {"books a step behind", test_books_a_step_behind}, {"random graphs", test_random_graphs})
