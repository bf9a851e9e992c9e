/* SPDX-License-Identifier: MIT */
/* Alerts of stages whose names have the maximum length: each is raised once and names its stage. No
 * alert of a stage that may block. test_bottleneck.c tests the conditions of alerts. */
#include "admin/metrics/alerts.h"

#include <string.h>

#include "cunit_main.h"

#define S     1000000000LL
#define BEGIN "a.name.of.64.bytes.0123456789.0123456789.0123456789.0123456789."

static int n_told;
static struct alert told[64];

static void tell(void *arg, const struct alert *alert)
{
	(void)arg;
	if (n_told < 64)
		told[n_told++] = *alert;
}

/* Two stages whose names differ in the last byte; both are stuck. */
static void test_names_of_64_bytes(void)
{
	struct weir_stage_view stage[2] = {
	    {.name = BEGIN "a", .placement = "pool", .group = BEGIN "a"},
	    {.name = BEGIN "b", .placement = "pool", .group = BEGIN "b"}};
	struct weir_graph_view view = {.wall_ns = 1700000000 * S, .n_stages = 2, .stages = stage};
	struct alerts alerts = {0};
	struct bottleneck b = {0};
	const struct alerts_about about = {.bottleneck = &b};

	n_told = 0;
	for (int i = 0; i < 10; i++, view.wall_ns += S) {
		for (int k = 0; k < 2; k++) {
			stage[k].stuck = i > 0;
			stage[k].longest_running_ns = (i + 1) * S;
		}
		alerts_feed(&alerts, &about, &view, NULL, tell, NULL);
	}
	CU_ASSERT_EQUAL(alerts.n_active, 2);
	CU_ASSERT_EQUAL_FATAL(n_told, 2);
	for (int k = 0; k < 2; k++)
		CU_ASSERT_STRING_EQUAL(told[k].stage, stage[k].name);
	alerts_fini(&alerts);
}

/* An inline stage that may block, since only the client of the call waits: no alert, however
 * long. */
static void test_blocks_alone(void)
{
	struct weir_stage_view stage = {.name = "app", .placement = "inline", .group = ""};
	struct weir_graph_view view = {.wall_ns = 1700000000 * S, .n_stages = 1, .stages = &stage};
	struct alerts alerts = {0};
	const struct alerts_about about = {0};

	for (int alone = 1; alone >= 0; alone--) {
		n_told = 0;
		stage.blocks_alone = alone;
		for (int i = 0; i < 10; i++, view.wall_ns += S) {
			stage.stuck += i % 2;
			stage.longest_running_ns = (i + 1) * S;
			alerts_feed(&alerts, &about, &view, NULL, tell, NULL);
		}
		CU_ASSERT_EQUAL(n_told, alone ? 0 : 1);
	}
	alerts_fini(&alerts);
}

static void test_bottleneck_has_all_of_the_name(void)
{
	struct weir_stage_view stage = {.name = BEGIN "a",
	    .placement = "group",
	    .group = BEGIN "g",
	    .threads_now = 1,
	    .threads_max = 1};
	struct weir_graph_view view = {.wall_ns = 1700000000 * S, .n_stages = 1, .stages = &stage};
	struct sample sample = {.known = true};
	struct bottleneck b = {0};

	sample.v[SAMPLE_BUSY] = 0.95;
	sample.v[SAMPLE_DONE] = 10;
	bottleneck_feed(&b, &view, &sample);
	int64_t since_ns = b.since_ns;
	view.wall_ns += S;
	bottleneck_feed(&b, &view, &sample);
	CU_ASSERT_TRUE(b.limits);
	CU_ASSERT_EQUAL(b.since_ns, since_ns); /* the bottleneck is the same as before */
	CU_ASSERT_STRING_EQUAL(b.stage, stage.name);
	CU_ASSERT_STRING_EQUAL(b.pool, stage.group);
}

CUNIT_MAIN("alerts", {"names of 64 bytes", test_names_of_64_bytes},
    {"blocks alone", test_blocks_alone},
    {"a bottleneck has all of the name", test_bottleneck_has_all_of_the_name})
