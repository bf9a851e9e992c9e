/* SPDX-License-Identifier: MIT */
/* What the tables of a stage type must have, so that it can be registered. */
#include "fixture/graph/graph.h"

#include "cunit_main.h"

static void end_all(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	weir_event_finish_run(ev, n, WEIR_OK);
}

static struct weir_metric rows[WEIR_METRICS_MAX + 2];
static const struct weir_stage_ops ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.rows",
    .summary = "has metrics",
    .accepts = &probe_type,
    .metrics = rows,
    .handle = end_all};

static void refused(const char *text)
{
	struct weir_err err = {0};

	CU_ASSERT_EQUAL(weir_stage_register(&ops, &err), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(err.text, text);
}

static void test_metrics(void)
{
	struct weir_err err = {0};

	rows[0] = (struct weir_metric){"rows_total", WEIR_METRIC_COUNTER, NULL, "rows"};
	refused("stage type 't.rows': metric 'rows_total' needs a unit and a help text");
	rows[0] = (struct weir_metric){"rows_total", WEIR_METRIC_COUNTER, "rows", NULL};
	refused("stage type 't.rows': metric 'rows_total' needs a unit and a help text");
	for (int i = 0; i <= WEIR_METRICS_MAX; i++)
		rows[i] = (struct weir_metric){"rows_total", WEIR_METRIC_COUNTER, "rows", "rows"};
	refused("stage type 't.rows' has 65 metrics, at most 64 are allowed");
	rows[WEIR_METRICS_MAX].name = NULL;
	CU_ASSERT_EQUAL(weir_stage_register(&ops, &err), 0);
}

CUNIT_MAIN("stage types", {"metrics", test_metrics})
