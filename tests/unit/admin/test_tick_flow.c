/* SPDX-License-Identifier: MIT */
/* The rates of the whole server in a tick: which events count as coming in, being done and being
 * shed, for graphs of several shapes. */
#include "admin/stream/tick_text.h"

#include <stdlib.h>
#include <string.h>

#include "cunit_main.h"

#define N 4

static struct weir_stage_view stage[N];
static struct weir_link_view link[N][2];
static struct weir_graph_view view;
static struct sample sample[N];

static void setup(int n_stages)
{
	static const char *const name[N] = {"a", "b", "c", "d"};

	memset(stage, 0, sizeof(stage));
	memset(link, 0, sizeof(link));
	memset(sample, 0, sizeof(sample));
	view = (struct weir_graph_view){
	    .n_stages = n_stages, .stages = stage, .n_classes = 2, .class_name = {"x", "y"}};
	for (int i = 0; i < N; i++) {
		stage[i] = (struct weir_stage_view){
		    .name = name[i], .placement = "pool", .links = link[i]};
		sample[i].known = true;
	}
}

static void leads(int from, int to, uint64_t events)
{
	link[from][stage[from].n_links++] = (struct weir_link_view){
	    .outlet = "next", .to = to < 0 ? NULL : stage[to].name, .events_total = events};
}

/* Rates of class 0 at a stage. */
static void rates(int i, double in, double done, double shed)
{
	sample[i].class_v[0][SAMPLE_CLASS_IN] = in;
	sample[i].class_v[0][SAMPLE_CLASS_DONE] = done;
	sample[i].class_v[0][SAMPLE_CLASS_SHED] = shed;
}

/* The rates of class `c` in the tick: "in done shed". */
static const char *flow(size_t c)
{
	static char line[100];
	const struct tick_about about = {.hz = 1, .overload = WEIR_ADMISSION_ENFORCE};
	struct textbuf t = {0};

	tick_text(&t, &about, &view, sample);
	json_t *json = json_loadb(t.p, t.n, 0, NULL);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	const json_t *class = json_array_get(json_object_get(json, "classes"), c);
	snprintf(line, sizeof(line), "%g %g %g", json_number_value(json_object_get(class, "in")),
	    json_number_value(json_object_get(class, "done")),
	    json_number_value(json_object_get(class, "shed")));
	json_decref(json);
	textbuf_fini(&t);
	return line;
}

/* Without sources and links, the program itself offers the events. */
static void test_alone(void)
{
	setup(1);
	rates(0, 100, 90, 10);
	CU_ASSERT_STRING_EQUAL(flow(0), "100 90 10");
	CU_ASSERT_STRING_EQUAL(flow(1), "0 0 0");
	sample[0].class_v[1][SAMPLE_CLASS_IN] = 3;
	CU_ASSERT_STRING_EQUAL(flow(1), "3 0 0");
	CU_ASSERT_STRING_EQUAL(flow(0), "100 90 10");
	sample[0].known = false;
	CU_ASSERT_STRING_EQUAL(flow(0), "0 0 0");
}

/* a (source) -> b -> c: what b passes on is done only at c. */
static void test_chain(void)
{
	setup(3);
	stage[0].placement = "source";
	leads(0, 1, 1000);
	leads(1, 2, 900);
	rates(0, 7, 7, 2); /* a source: only its refusals count */
	rates(1, 100, 90, 10);
	rates(2, 90, 80, 5);
	CU_ASSERT_STRING_EQUAL(flow(0), "100 80 17");
}

/* a (source) -> c and b -> c: a quarter of the events of c come from the source. */
static void test_shares(void)
{
	setup(4);
	stage[0].placement = "source";
	leads(0, 2, 100);
	leads(1, 2, 200);
	leads(1, -1, 5000); /* an outlet that leads nowhere */
	leads(2, 3, 1);
	leads(3, 2, 100);
	rates(2, 40, 30, 0);
	CU_ASSERT_STRING_EQUAL(flow(0), "10 0 0"); /* 30 - (40 - 10) */
	rates(2, 40, 36, 0);
	CU_ASSERT_STRING_EQUAL(flow(0), "10 6 0");
	/* all from sources */
	stage[1].placement = stage[3].placement = "source";
	CU_ASSERT_STRING_EQUAL(flow(0), "40 36 0");
	/* none from sources */
	stage[0].placement = stage[1].placement = stage[3].placement = "inline";
	CU_ASSERT_STRING_EQUAL(flow(0), "0 0 0");
}

/* Several events made of one: `done` is too small, but not negative. */
static void test_split(void)
{
	setup(3);
	stage[0].placement = "source";
	leads(0, 1, 100);
	leads(1, 2, 300);
	rates(1, 100, 100, 0);
	rates(2, 300, 50, 0);
	CU_ASSERT_STRING_EQUAL(flow(0), "100 0 0");
}

CUNIT_MAIN("flow of a tick", {"alone", test_alone}, {"a chain", test_chain},
    {"shares", test_shares}, {"split", test_split})
