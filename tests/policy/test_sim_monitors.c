/* SPDX-License-Identifier: MIT */
/* The laws over time (sim/laws.h) can be broken. For each there is a policy that violates it
 * or, where only the simulator itself could, a state built by hand. That `weir` breaks none of them
 * is tested by test_sim_soak.c. */
#include "runs.h"

#include "sim/world.h"
#include "pool_mutants.h"

static struct sim_config c;

/* The run breaks `law` and no other, with `word` in the message. */
static void breaks(enum sim_law law, const char *word)
{
	struct sim_result *r = NULL;

	c.laws = (unsigned)law;
	CU_ASSERT_EQUAL(sim_run(&c, &r), WEIR_EFAILED);
	CU_ASSERT_PTR_NOT_NULL_FATAL(r);
	CU_ASSERT_EQUAL(r->broken, (unsigned)law);
	CU_ASSERT_PTR_NOT_NULL(strstr(r->breach, word));
	if (!strstr(r->breach, word))
		fprintf(stderr, "not '%s': %s\n", word, r->breach);
	sim_result_free(r);
}

static void fill(const char *workload, double load, const struct admission_policy *p)
{
	sim_workload_fill(sim_workload_find(workload), load, p, NULL, 1, 20 * NS_PER_S, &c);
}

/* ---- admission policies that are nearly weir ---- */

static int admit_all(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	(void)state, (void)p, (void)v, (void)class_id, (void)refused, (void)reason;
	return n;
}

/* Gives no class its guarantee. */
static int admit_strictly(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	if (class_id == 0 || v->idle)
		return admission_weir.admit(state, p, v, class_id, n, refused, reason);
	*reason = WEIR_EPRIORITY;
	return 0;
}

/* Refuses one user in 512. */
static int admit_most(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	(void)state, (void)p, (void)class_id;
	int m = 0;

	for (int i = 0; i < n; i++) {
		refused[i] = v->user[i] < 128;
		m += !refused[i];
	}
	*reason = WEIR_EPRIORITY;
	return m;
}

static int explain_over(const void *state, const struct weir_admission_spec *p,
    const char *const *names, char *buf, size_t size)
{
	(void)names;
	(void)state, (void)p;
	return snprintf(buf, size, "OVER for ever");
}

/* The answer depends on how often it was asked, by any caller. */
static int admit_by_chance(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	static unsigned asked;

	(void)state, (void)p, (void)v, (void)class_id, (void)refused;
	*reason = WEIR_EPRIORITY;
	return asked++ % 2 ? n : 0;
}

static int admit_and_scribble(void *state, const struct weir_admission_spec *p,
    const struct admission_view *v, int class_id, int n, bool *refused, int *reason)
{
	((unsigned char *)state)[admission_weir.state_size] = 1;
	return admission_weir.admit(state, p, v, class_id, n, refused, reason);
}

/* I4: everything enters, and no client gives up. */
static void test_waits(void)
{
	struct admission_policy all = admission_weir;

	all.admit = admit_all;
	fill("W2", 2, &all);
	for (int i = 0; i < c.n_sources; i++)
		c.source[i].hides_deadline = true;
	breaks(SIM_LAW_WAIT, "waited longer than 7");
}

/* I6: a policy that ignores guarantees is noticed. */
static void test_guarantees(void)
{
	struct admission_policy strict = admission_weir;

	strict.admit = admit_strictly;
	fill("W2", 10, &strict);
	c.stage[0].service.mean_ns /= 50;
	for (int i = 0; i < c.n_sources; i++)
		c.source[i].rate_per_s *= 50;
	breaks(SIM_LAW_SHARE, "is owed");
}

/* I8: so many events die on the way that the first stage no longer judges on behalf of the second
 * one. */
static void test_midway(void)
{
	fill("W6", 10, &admission_weir);
	c.fault[c.n_faults++] = (struct sim_fault){.kind = SIM_CRASH,
	    .stage = 0,
	    .from_ns = 3 * NS_PER_S,
	    .to_ns = 20 * NS_PER_S,
	    .period_ns = NS_PER_MS};
	breaks(SIM_LAW_MIDWAY, "its class has only one route");
}

/* I9: the law notices 1 refusal in 512 when services are uneven, and a single one when they are
 * even. */
static void test_calm(void)
{
	struct admission_policy most = admission_weir;

	most.admit = admit_most;
	fill("W1", 0.5, &most);
	breaks(SIM_LAW_CALM, "1 of ");
	fill("W2", 0.5, &most);
	breaks(SIM_LAW_CALM, "at a load of 0.50");
	fill("W3", 0.5, &most);
	breaks(SIM_LAW_CALM, "at a load of 0.50");
}

/* I10: a stage that remains OVER is noticed. */
static void test_normal_again(void)
{
	struct admission_policy over = admission_weir;

	over.explain = explain_over;
	fill("W7", 10, &over);
	breaks(SIM_LAW_NORMAL, "still reports OVER");
}

/* I15: a policy that answers by chance, or that writes beyond its state, is noticed. */
static void test_reads(void)
{
	struct admission_policy chance = admission_weir, scribbles = admission_weir;

	chance.admit = admit_by_chance;
	fill("W2", 0.5, &chance);
	breaks(SIM_LAW_READS, "queried twice");
	scribbles.admit = admit_and_scribble;
	fill("W2", 0.5, &scribbles);
	breaks(SIM_LAW_READS, "beyond its state");
}

/* ---- resize policies ---- */

static bool decide_more(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	(void)state, (void)now_ns;
	return want(d, v, v->target + 1);
}

static void fill_pool(const struct resize_policy *p, int start)
{
	sim_workload_fill(sim_workload_find("W5"), 0.5, &admission_none, p, 1, 60 * NS_PER_S, &c);
	c.stage[0].threads_start = start;
}

/* I12: 100 of 200 threads are busy. A policy that does nothing, takes all or gives up all fails. */
static void test_converges(void)
{
	static const struct resize_policy frozen = {.name = "frozen", .decide = decide_frozen},
					  max = {.name = "max", .decide = decide_max},
					  min = {.name = "min", .decide = decide_min};

	fill_pool(&frozen, 8);
	breaks(SIM_LAW_CONVERGES, "8 threads; the load needs 100.0");
	fill_pool(&max, 100);
	c.stage[0].threads_max = 300;
	breaks(SIM_LAW_CONVERGES, "300 threads; the load needs 100.0");
	fill_pool(&min, 100);
	breaks(SIM_LAW_CONVERGES, "2 threads; the load needs 100.0");
}

/* I11: a number of threads that changes again and again is noticed, and so are threads that only
 * wait for cores. */
static void test_steady(void)
{
	static const struct resize_policy restless = {.name = "restless",
					      .decide = decide_restless},
					  more = {.name = "more", .decide = decide_more};

	fill_pool(&restless, 100);
	breaks(SIM_LAW_STEADY, "after the last reversal");
	fill("W2", 2, &admission_threshold);
	c.stage[0].resize = &more;
	c.stage[0].threads_max = 64;
	c.stage[0].params.threshold = 100;
	breaks(SIM_LAW_STEADY, "which wait for cores");
}

/* ---- states built by hand ---- */

static struct sim s;
static struct sim_result result;

/* Two consecutive stages, 10 s into a run without any event. */
static void make(void)
{
	fill("W6", 1, &admission_weir);
	c.laws = SIM_LAWS_SERVER | SIM_LAWS_POLICY;
	memset(&s, 0, sizeof(s));
	memset(&result, 0, sizeof(result));
	s.conf = &c;
	s.r = &result;
	s.now_ns = s.last_ns = 10 * NS_PER_S;
	for (int i = 0; i < c.n_stages; i++) {
		struct stage *st = &s.stage[i];
		st->conf = &c.stage[i];
		st->conf->admission->init(st->state, &st->conf->params, 0);
		st->target = st->live = c.stage[i].threads_start;
		st->idle = NONE;
		st->mean_cost_ns = NS_PER_MS;
		st->slow = 1;
	}
	setting_init(&s);
	laws_state_init(&s);
	CU_ASSERT_EQUAL_FATAL(routes_init(&s), 0);
	s.routes_at_ns = s.now_ns;
	laws_step(&s);
	laws_tick(&s);
	CU_ASSERT_EQUAL(result.broken, 0);
}

static void broke(enum sim_law law, const char *word)
{
	CU_ASSERT_EQUAL(result.broken, (unsigned)law);
	CU_ASSERT_PTR_NOT_NULL(strstr(result.breach, word));
	if (!strstr(result.breach, word))
		fprintf(stderr, "not '%s': %s\n", word, result.breach);
	route_free(s.route);
	make();
}

/* I1, I2, I7, and the bounds of I11: only a bug in the simulator could break these. */
static void test_books(void)
{
	make();
	s.stage[0].books[1].offered++;
	laws_check(&s, 0);
	broke(SIM_LAW_BOOKS, "class 1: offered 1, ended 0");
	s.in_server = 1;
	laws_step(&s);
	broke(SIM_LAW_BOOKS, "1 requests in the server, but 0 at its stages");
	s.stage[1].pipeline_ns = -1;
	laws_check(&s, 1);
	broke(SIM_LAW_WORK, "-1 ns of work is on its way");
	s.stage[1].target = 1000;
	laws_check(&s, 1);
	broke(SIM_LAW_THREADS, "the target is 1000 threads");
	const struct request late = {.queued_ns = 9 * NS_PER_S, .deadline_ns = s.now_ns};
	laws_left_queue(&s, 0, &late);
	broke(SIM_LAW_DEADLINE, "0 ns after the deadline");
	route_free(s.route);
}

/* I8: an event admitted upstream for a stage must not be judged by that stage's policy again. */
static void test_second_door(void)
{
	make();
	const struct request r = {.at = 1, .asked_for = 1 << 1, .deadline_ns = WEIR_NO_DEADLINE};
	laws_refused(&s, 1, -1, &r, WEIR_EQUEUE); /* not an admission decision */
	CU_ASSERT_EQUAL(result.broken, 0);
	laws_refused(&s, 1, 1, &r, WEIR_EPRIORITY);
	broke(SIM_LAW_MIDWAY, "although an earlier admission decided");
	route_free(s.route);
}

/* I10: the load is low, but the queue does not become shorter. */
static void test_standing(void)
{
	make();
	struct stage *st = &s.stage[0];
	st->length = st->lane[0].n = st->books[0].offered = st->books[0].wanted =
	    st->books[0].asked = 100;
	st->cost_ns[0] = NS_PER_MS;
	for (int i = 0; i < 300 && !result.broken; i++) {
		s.now_ns += ADMISSION_TICK_NS;
		laws_load_tick(&s, 0);
	}
	broke(SIM_LAW_NORMAL, "but events still wait");
	route_free(s.route);
}

/* I14: work in flight without events, or more work than the events can bring; a thread that does
 * not return. */
static void test_returned(void)
{
	make();
	s.stage[1].pipeline_ns = 1;
	laws_routes(&s);
	broke(SIM_LAW_RETURNED, "only 0 events");
	s.stage[0].lane[0].n = 3;
	s.stage[1].cost_ns[0] = NS_PER_MS;
	s.stage[1].pipeline_ns = 3 * NS_PER_MS + 4;
	laws_routes(&s);
	broke(SIM_LAW_RETURNED, "only 3 events");
	s.stage[1].live--;
	for (int i = 0; i < 20 && !result.broken; i++) {
		s.now_ns += ADMISSION_TICK_NS;
		laws_state_tick(&s, 1);
	}
	broke(SIM_LAW_RETURNED, "only 3 of 4 threads exist for 130 ms");
	route_free(s.route);
}

/* I15: time or a counter goes backwards. */
static void test_backwards(void)
{
	make();
	s.now_ns--;
	laws_step(&s);
	broke(SIM_LAW_READS, "the time went back by 1 ns");
	s.stage[0].meter.then[1].asked = 1;
	laws_sampled(&s, 0);
	broke(SIM_LAW_READS, "a counter of class 1 decreased");
	route_free(s.route);
}

CUNIT_MAIN("sim monitors", {"waits", test_waits}, {"guarantees", test_guarantees},
    {"refused midway", test_midway}, {"a calm load", test_calm},
    {"NORMAL again", test_normal_again}, {"reads", test_reads}, {"converges", test_converges},
    {"steady", test_steady}, {"books by hand", test_books},
    {"a second door by hand", test_second_door}, {"a standing queue by hand", test_standing},
    {"returned by hand", test_returned}, {"backwards by hand", test_backwards})
