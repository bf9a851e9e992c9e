/* SPDX-License-Identifier: MIT */
/* Samples of consecutive graphs: a reload neither adds to the counts of a stage nor takes from
 * them. */
#include "admin/metrics/sample.h"

#include <math.h>

#include "fixture/graph/probes.h"

#include "stage/stage.h"

static struct sampler *sampler;
static int first; /* the first probe not yet used */

/* first -> last, classes in this order. */
static struct weir_spec *spec_of(const char *one, const char *two)
{
	struct weir_spec *spec = weir_spec_new("samples");

	fixture_set(fixture_stage(spec, "first", "t.pass", "last"), "admission.policy", "none");
	fixture_set(fixture_stage(spec, "last", "t.end", NULL), "admission.policy", "none");
	weir_spec_add_class(spec, one);
	if (two)
		weir_spec_add_class(spec, two);
	return spec;
}

/* Send n events of the first class through the graph until they end. */
static void pass(struct weir_graph *g, int n)
{
	weir_thread_attach(g, "test");
	fixture_offer_all(weir_graph_stage(g, "first"), probes + first, n, 8);
	weir_thread_detach();
	first += n;
	FIXTURE_AWAIT(fixture_ended() == (uint64_t)first && stage_view(g, "last").in_flight == 0);
	FIXTURE_AWAIT(stage_view(g, "first").in_flight == 0);
}

/* The sample of "first" since the previous call, in events. */
static struct sample look(struct weir_graph *g)
{
	static int64_t now_ns = 1000000000;
	struct weir_graph_view *v;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	v->now_ns = now_ns += 1000000000; /* one second per sample */
	CU_ASSERT_EQUAL_FATAL(sampler_take(sampler, v), 0);
	struct sample s = sampler_samples(sampler)[weir_graph_stage(g, "first")->id];
	weir_graph_view_free(v);
	return s;
}

static struct weir_graph *follow(struct weir_graph *old, struct weir_spec *spec)
{
	struct weir_errs errs = {0};
	struct weir_graph *g = fixture_build(spec);

	CU_ASSERT_EQUAL_FATAL(weir_graph_succeed(g, old, &errs), 0);
	return g;
}

static void setup(void)
{
	prepare(N);
	first = 0;
	weir_log_set_level(WEIR_LOG_ERROR);
	sampler = sampler_new();
}

/* The sample after a reload does not include the past of a stage, whether the old graph still
 * exists or not. */
static void test_reload(void)
{
	setup();
	struct weir_graph *a = fixture_start(spec_of("bulk", NULL));
	pass(a, 1182);
	look(a);
	pass(a, 3);
	CU_ASSERT_EQUAL(look(a).v[SAMPLE_IN], 3);
	for (int i = 0; i < 3; i++) {
		struct weir_graph *b = follow(a, spec_of("bulk", NULL));
		pass(b, 5);
		struct sample s = look(b);
		CU_ASSERT_TRUE(s.known);
		CU_ASSERT_EQUAL(s.v[SAMPLE_IN], 5);
		CU_ASSERT_EQUAL(s.v[SAMPLE_DONE], 5);
		CU_ASSERT_EQUAL(s.class_v[0][SAMPLE_CLASS_IN], 5);
		CU_ASSERT_TRUE(s.v[SAMPLE_BUSY] < 1);
		finish_graph(a, 0);
		s = look(b);
		CU_ASSERT_EQUAL(s.v[SAMPLE_IN], 0);
		CU_ASSERT_EQUAL(s.v[SAMPLE_BUSY], 0);
		CU_ASSERT_TRUE(isnan(s.v[SAMPLE_WAIT_P99]));
		CU_ASSERT_TRUE(isnan(s.v[SAMPLE_SERVICE_P99]));
		a = b;
	}
	finish_graph(a, 0);
	sampler_free(sampler);
}

/* Classes that change their order, are added, removed and added again. */
static void test_reload_of_classes(void)
{
	setup();
	struct weir_graph *a = fixture_start(spec_of("bulk", "vip"));
	pass(a, 1000);
	look(a);
	struct weir_graph *b = follow(a, spec_of("vip", "bulk"));
	finish_graph(a, 0);
	pass(b, 2);
	struct sample s = look(b);
	CU_ASSERT_EQUAL(s.v[SAMPLE_IN], 2);
	CU_ASSERT_EQUAL(s.class_v[0][SAMPLE_CLASS_IN], 2);
	CU_ASSERT_EQUAL(s.class_v[1][SAMPLE_CLASS_IN], 0);
	a = follow(b, spec_of("new", "vip"));
	finish_graph(b, 0);
	pass(a, 4);
	s = look(a);
	CU_ASSERT_EQUAL(s.v[SAMPLE_IN], 4);
	CU_ASSERT_EQUAL(s.class_v[0][SAMPLE_CLASS_IN], 4);
	/* Two reloads between two samples: bulk was gone, and its counts start again. */
	b = follow(a, spec_of("bulk", "vip"));
	finish_graph(a, 0);
	pass(b, 6);
	s = look(b);
	CU_ASSERT_EQUAL(s.v[SAMPLE_IN], 6);
	CU_ASSERT_EQUAL(s.class_v[1][SAMPLE_CLASS_IN], 0);
	finish_graph(b, 0);
	sampler_free(sampler);
}

/* Offer n events of the class to "first", which refuses all. */
static void offer_refused(struct weir_graph *g, int class_id, int n)
{
	weir_thread_attach(g, "test");
	for (int i = 0; i < n; i++) {
		struct weir_event *ev = &probes[first + i].ev;
		weir_event_init(ev, &probe_type, 1);
		ev->class_id = (uint8_t)class_id;
		CU_ASSERT_EQUAL(weir_offer(weir_graph_stage(g, "first"), &ev, 1, NULL), 0);
		weir_event_finish(&ev, WEIR_EDRAINING);
	}
	weir_thread_detach();
	first += n;
}

/* Refusals because an operator drains the stage are also counted separately, by class. */
static void test_ordered(void)
{
	char why[200] = "";

	setup();
	struct weir_graph *g = fixture_start(spec_of("vip", "bulk"));
	pass(g, 3);
	look(g);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "first", WEIR_STEER_DRAIN, why, sizeof(why)), 0);
	offer_refused(g, 0, 3);
	offer_refused(g, 1, 2);
	struct sample s = look(g);
	CU_ASSERT_EQUAL(s.class_v[0][SAMPLE_CLASS_SHED], 3);
	CU_ASSERT_EQUAL(s.ordered[0], 3);
	CU_ASSERT_EQUAL(s.ordered[1], 2);
	CU_ASSERT_EQUAL(s.shed_by[weir_shed_index(WEIR_EDRAINING)], 5);
	CU_ASSERT_EQUAL(weir_graph_steer(g, "first", WEIR_STEER_RUN, why, sizeof(why)), 0);
	finish_graph(g, 0);
	sampler_free(sampler);
}

/* A class is created again. Its counts have not fallen, since more events were refused since then
 * than were offered before. Only the number of completed events shows that counting began again. */
static void test_reload_of_a_refused_class(void)
{
	char why[200] = "";

	setup();
	struct weir_graph *a = fixture_start(spec_of("bulk", "vip"));
	pass(a, 10);
	look(a);
	struct weir_graph *b = follow(a, spec_of("new", "vip"));
	finish_graph(a, 0);
	a = follow(b, spec_of("bulk", "vip"));
	finish_graph(b, 0);
	CU_ASSERT_EQUAL(weir_graph_steer(a, "first", WEIR_STEER_DRAIN, why, sizeof(why)), 0);
	offer_refused(a, 0, 20);
	struct sample s = look(a);
	CU_ASSERT_EQUAL(s.class_v[0][SAMPLE_CLASS_IN], 20);
	CU_ASSERT_EQUAL(weir_graph_steer(a, "first", WEIR_STEER_RUN, why, sizeof(why)), 0);
	finish_graph(a, 0);
	sampler_free(sampler);
}

/* The answers of a source by outcome are rates of each class; a stage without answers has none. */
static void test_answers(void)
{
	struct weir_answer_view answers[2] = {0};
	struct weir_stage_view stage[2] = {
	    {.name = "web", .placement = "source", .group = "", .answers = answers},
	    {.name = "work", .placement = "pool", .group = ""}};
	struct weir_graph_view v = {.n_stages = 2,
	    .stages = stage,
	    .n_classes = 2,
	    .class_name = {"vip", "bulk"},
	    .now_ns = 1000000000};

	sampler = sampler_new();
	answers[0].by[WEIR_OUTCOME_DONE].count[40] = 1000; /* before the first look */
	CU_ASSERT_EQUAL(sampler_take(sampler, &v), 0);
	v.now_ns += 2000000000;
	answers[0].by[WEIR_OUTCOME_DONE].count[40] += 6;
	answers[0].by[WEIR_OUTCOME_DONE].count[50] += 4;
	answers[1].by[WEIR_OUTCOME_SHED].count[10] += 8;
	answers[1].by[WEIR_OUTCOME_FAILED].count[10] += 2;
	CU_ASSERT_EQUAL(sampler_take(sampler, &v), 0);
	const struct sample *s = sampler_samples(sampler);
	CU_ASSERT_EQUAL(s[0].class_v[0][SAMPLE_CLASS_GOOD], 5);
	CU_ASSERT_EQUAL(s[0].class_v[0][SAMPLE_CLASS_REFUSED], 0);
	CU_ASSERT_EQUAL(s[0].class_v[1][SAMPLE_CLASS_GOOD], 0);
	CU_ASSERT_EQUAL(s[0].class_v[1][SAMPLE_CLASS_REFUSED], 4);
	CU_ASSERT_EQUAL(s[0].class_v[1][SAMPLE_CLASS_BROKEN], 1);
	for (int f = SAMPLE_CLASS_GOOD; f <= SAMPLE_CLASS_BROKEN; f++)
		CU_ASSERT_TRUE(isnan(s[1].class_v[0][f]));
	sampler_free(sampler);
}

static void test_prepare(void)
{
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
}

CUNIT_MAIN("sample", {"types are known", test_prepare}, {"a reload", test_reload},
    {"a reload of classes", test_reload_of_classes}, {"ordered refusals", test_ordered},
    {"answers by outcome", test_answers},
    {"reload of a refused class", test_reload_of_a_refused_class})
