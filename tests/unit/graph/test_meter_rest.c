/* SPDX-License-Identifier: MIT */
/*
 * A meter at rest gives the same results as one that was sampled all the time (graph/meter.h). Two
 * stages get the same events in virtual time. One is sampled each tick, the other is only checked
 * for changes. Whenever the second is sampled again, costs, quantiles, windows, sinks and the
 * states of the policies must be equal: costs within 1 ns (they are powers here and products
 * there), estimates of the policy weir within 1e-6 threads (it ignores smaller ones), everything
 * else bit for bit.
 */
#include "fixture/graph/probes.h"

#include "admission/weir_fill.h"
#include "event/local.h"
#include "graph/meter.h"

#define THREADS 4
#define CLASSES 2
#define TICK    ADMISSION_TICK_NS
#define MS      1000000LL
#define S       1000000000LL
#define BOUND   1e-6

enum { TICKED, RESTING, SIDES };

static struct weir_graph *g;
static struct side {
	struct weir_stage *stage;
	struct local *local;
	struct meter meter;
} sides[SIDES];
static int64_t now_ns;
static unsigned seed;
static int n_rests;
static bool same; /* all comparisons so far were equal */

static void test_look(const struct sink *s, int rank, struct admission_view *v)
{
	(void)rank;
	(void)s;
	v->threads = THREADS;
	v->idle = THREADS;
}

static void start(const char *policy)
{
	static const char *const names[] = {"ticked", "resting"};
	struct weir_spec *spec = weir_spec_new("rest");

	weir_spec_add_class(spec, "one");
	weir_spec_add_class(spec, "two");
	for (int i = 0; i < SIDES; i++)
		fixture_set(
		    fixture_stage(spec, names[i], "t.end", NULL), "admission.policy", policy);
	g = fixture_build(spec);
	now_ns = 7 * S;
	seed = 1;
	n_rests = 0;
	same = true;
	for (int i = 0; i < SIDES; i++) {
		struct side *s = &sides[i];
		*s = (struct side){.stage = weir_graph_stage(g, names[i]),
		    .local = aligned_alloc(WEIR_CACHE_LINE, sizeof(struct local))};
		memset(s->local, 0, sizeof(struct local));
		s->stage->sink.look = test_look;
		s->local->times = calloc(CLASSES, sizeof(struct time_book));
		g->gone[s->stage->id].books = s->local;
		s->stage->sink.policy->init(
		    s->stage->sink.admission_state, &s->stage->sink.admission, now_ns);
	}
}

static void end(void)
{
	for (int i = 0; i < SIDES; i++) {
		g->gone[sides[i].stage->id].books = NULL;
		free(sides[i].local->times);
		free(sides[i].local);
		free(sides[i].meter.window);
	}
	weir_graph_free(g);
}

/* ---- events ---- */

struct work {
	int class_id, n;
	int64_t wait_ns, service_ns, load_ns;
};

static void do_work(struct side *s, const struct work *w)
{
	struct sink *k = &s->stage->sink;
	bool refused[64] = {0};
	int reason = 0;
	struct admission_view view = {.now_ns = now_ns,
	    .length = w->load_ns > 0 ? 100 : 0,
	    .limit = 1000,
	    .n_classes = CLASSES,
	    .threads = THREADS,
	    .work_ns = w->load_ns,
	    .cost_ns = sink_mean_cost_ns(k),
	    .slo_ns = 500 * MS};

	lock_take(&k->queue.lock);
	int m = k->policy->admit(
	    k->admission_state, &k->admission, &view, w->class_id, w->n, refused, &reason);
	k->decided[w->class_id].offered += (uint64_t)w->n;
	k->decided[w->class_id].wanted += (uint64_t)w->n;
	k->decided[w->class_id].refused += (uint64_t)(w->n - m);
	lock_release(&k->queue.lock);
	book_add(&s->local->book.class_book[w->class_id].completed, (uint64_t)m);
	book_add(&s->local->book.class_book[w->class_id].handled, (uint64_t)m);
	hist_book_add(&s->local->times[w->class_id].wait, w->wait_ns, (uint64_t)m);
	hist_book_add(&s->local->times[w->class_id].service, w->service_ns, (uint64_t)m);
	book_changed(&s->local->book);
}

static int any(int n)
{
	return (int)(rand_r(&seed) / (RAND_MAX / (unsigned)n + 1));
}

static void work(void)
{
	const struct work w = {.class_id = any(CLASSES),
	    .n = 1 + any(60),
	    .wait_ns = any(50) * MS,
	    .service_ns = 1 + any(20) * MS,
	    /* The first event finds an empty queue. */
	    .load_ns = any(3) || sides[RESTING].meter.resting ? 0 : THREADS * any(400) * MS};

	for (int i = 0; i < SIDES; i++)
		do_work(&sides[i], &w);
}

/* ---- time ---- */

static bool tick(void)
{
	struct side *t = &sides[TICKED], *r = &sides[RESTING];
	struct admission_sample sample;

	now_ns += TICK;
	meter_sample(&t->meter, g, t->stage, now_ns, &sample);
	sink_tick(&t->stage->sink, &sample);
	lock_take(&g->threads_lock);
	uint64_t changes = graph_stage_changes(g, r->stage->id);
	lock_release(&g->threads_lock);
	bool rests = meter_look(&r->meter, r->stage, changes, now_ns);
	n_rests += rests;
	return rests;
}

/* ---- the comparison ---- */

static bool close_to(int64_t a, int64_t b)
{
	return a - b <= 1 && b - a <= 1;
}

static bool same_doors(const struct sink *a, const struct sink *b)
{
	bool is_same = atomic_load(&a->wait_ns) == atomic_load(&b->wait_ns) &&
		       close_to(atomic_load(&a->least_left_ns), atomic_load(&b->least_left_ns)) &&
		       close_to(atomic_load(&a->most_wait_ns), atomic_load(&b->most_wait_ns)) &&
		       close_to(sink_mean_cost_ns(a), sink_mean_cost_ns(b));

	for (int c = 0; c < CLASSES; c++)
		is_same &= close_to(sink_cost_ns(a, c), sink_cost_ns(b, c));
	return is_same;
}

static bool same_meters(const struct meter *a, const struct meter *b)
{
	bool is_same = a->at_ns == b->at_ns && a->hist_at_ns == b->hist_at_ns &&
		       a->looked_at_ns == b->looked_at_ns && a->wait_p90_ns == b->wait_p90_ns &&
		       close_to(a->all_response_p90_ns, b->all_response_p90_ns) &&
		       a->service_p99_ns == b->service_p99_ns;

	for (int c = 0; c < CLASSES; c++)
		is_same &= close_to(a->response_p90_ns[c], b->response_p90_ns[c]);
	return is_same;
}

static bool same_numbers(const double *a, const double *b, int n)
{
	bool is_same = true;

	for (int i = 0; i < n; i++)
		is_same &= a[i] - b[i] <= BOUND && b[i] - a[i] <= BOUND;
	return is_same;
}

static bool same_fill(const struct weir_fill *a, const struct weir_fill *b)
{
	return a->n_classes == b->n_classes && a->n_ranks == b->n_ranks &&
	       memcmp(a->rank, b->rank, sizeof(a->rank)) == 0 &&
	       same_numbers(a->offered, b->offered, CLASSES) &&
	       same_numbers(a->wanted, b->wanted, CLASSES) &&
	       same_numbers(a->refused, b->refused, CLASSES) &&
	       same_numbers(a->guaranteed, b->guaranteed, CLASSES) &&
	       same_numbers(a->before, b->before, CLASSES) &&
	       same_numbers(a->more, b->more, CLASSES) && same_numbers(&a->total, &b->total, 1);
}

static bool same_policies(const struct sink *a, const struct sink *b)
{
	size_t from = 0, size = a->policy->state_size;
	bool is_same = true;

	if (a->policy == &admission_weir) { /* its state starts with the estimates */
		is_same =
		    same_fill((const void *)a->admission_state, (const void *)b->admission_state);
		from = sizeof(struct weir_fill);
	}
	return is_same &&
	       memcmp(a->admission_state + from, b->admission_state + from, size - from) == 0;
}

/* Report only the first difference, as it causes all the others. */
static void compare(void)
{
	const struct side *t = &sides[TICKED], *r = &sides[RESTING];
	bool doors = same_doors(&t->stage->sink, &r->stage->sink);
	bool meters = same_meters(&t->meter, &r->meter);
	bool policies = same_policies(&t->stage->sink, &r->stage->sink);

	if (!same)
		return;
	CU_ASSERT(doors);
	CU_ASSERT(meters);
	CU_ASSERT(policies);
	same = doors && meters && policies;
}

/* Work for a while, then nothing for `idle` ticks, then work again. */
static void episode(int busy, int idle)
{
	for (int i = 0; i < busy; i++) {
		if (any(3))
			work();
		if (!tick())
			compare();
	}
	for (int i = 0; i < idle; i++)
		if (!tick())
			compare();
}

static void life(const char *policy)
{
	start(policy);
	for (int i = 0; i < 40; i++)
		episode(1 + any(300), 1 + any(600));
	episode(100, 20000);
	episode(1, 1000);
	for (int i = 0; i < 10; i++)
		episode(1 + any(3), 301 + any(777));
	episode(100, 0);
	CU_ASSERT(n_rests > 10000);
	end();
}

static void test_weir(void)
{
	fixture_register(&end_ops);
	life("weir");
}

static void test_gradient2(void)
{
	life("gradient2");
}

static void test_dagor(void)
{
	life("dagor");
}

static void test_seda_rt(void)
{
	life("seda_rt");
}

/* Costs age at rest. Admission sees that with a delay of METER_REST_NS at most. */
static void test_costs_age_at_rest(void)
{
	const struct work dear = {.class_id = 0, .n = 10, .service_ns = 10 * MS},
			  cheap = {.class_id = 1, .n = 50, .service_ns = MS};
	struct sink *k[SIDES];

	start("gradient2");
	tick(); /* the first sample has nothing to compare with */
	for (int i = 0; i < SIDES; i++) {
		k[i] = &sides[i].stage->sink;
		do_work(&sides[i], &dear);
	}
	tick();
	for (int n = 0; n < 50; n++) {
		for (int i = 0; i < SIDES; i++)
			do_work(&sides[i], &cheap);
		tick();
	}
	int64_t before_ns = sink_cost_ns(k[RESTING], 0) - sink_mean_cost_ns(k[RESTING]);
	for (int n = 0; n < 3000; n++) {
		tick();
		int64_t far_ns = sink_cost_ns(k[RESTING], 0) - sink_cost_ns(k[TICKED], 0);
		CU_ASSERT(far_ns >= -1 && far_ns < before_ns / 10); /* the ageing of one second */
	}
	CU_ASSERT(n_rests > 1000);
	CU_ASSERT(sink_cost_ns(k[RESTING], 0) - sink_mean_cost_ns(k[RESTING]) < before_ns / 10);
	end();
}

CUNIT_MAIN("rest of meters", {"weir", test_weir}, {"gradient2", test_gradient2},
    {"dagor", test_dagor}, {"seda_rt", test_seda_rt}, {"costs age at rest", test_costs_age_at_rest})
