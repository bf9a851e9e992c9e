/* SPDX-License-Identifier: MIT */
/* A stage in a core group, as the endpoint shows what its cores do. */
#include "admin/api/view_json.h"
#include "admin/api/view_prom.h"
#include "cunit_main.h"
#include "made_up.h"

static struct made_up made_up;
static struct weir_stage_view *disk;

static struct weir_core_view cores[2] = {{.visits = 10,
					     .urgent = 2,
					     .starved = 3,
					     .events = 70,
					     .from_queue = 30,
					     .dealt = 4,
					     .moved = 6,
					     .waiting = 5,
					     .oldest_wait_ns = 1500000},
    {.visits = 1, .events = 1}};

static void setup(void)
{
	made_up_init(&made_up);
	disk = &made_up.view.stages[MADE_DISK];
	disk->n_cores = 2;
	disk->cores = cores;
}

static void test_json(void)
{
	setup();
	json_t *stage = view_json_stage(&made_up.view, disk);
	json_t *list = json_object_get(stage, "cores");
	CU_ASSERT_EQUAL(json_array_size(list), 2);
	json_t *expected =
	    json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f}", "visits_total", 10,
		"urgent_total", 2, "starved_total", 3, "events_total", 70, "from_queue_total", 30,
		"dealt_total", 4, "moved_total", 6, "waiting", 5, "oldest_wait_seconds", 0.0015);
	CU_ASSERT_TRUE(json_equal(json_array_get(list, 0), expected));
	json_decref(expected);
	json_decref(stage);
	stage = view_json_stage(&made_up.view, &made_up.view.stages[MADE_CACHE]);
	CU_ASSERT_TRUE(json_is_array(json_object_get(stage, "cores")));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(stage, "cores")), 0);
	json_decref(stage);
}

static void test_prom(void)
{
	static const char *const lines[] = {
	    "\nweir_stage_core_visits_total{stage=\"disk\",core=\"0\",why=\"policy\"} 5\n"
	    "weir_stage_core_visits_total{stage=\"disk\",core=\"0\",why=\"urgent\"} 2\n"
	    "weir_stage_core_visits_total{stage=\"disk\",core=\"0\",why=\"starved\"} 3\n"
	    "weir_stage_core_visits_total{stage=\"disk\",core=\"1\",why=\"policy\"} 1\n",
	    "\nweir_stage_core_events_total{stage=\"disk\",core=\"0\",from=\"cell\"} 40\n"
	    "weir_stage_core_events_total{stage=\"disk\",core=\"0\",from=\"queue\"} 30\n",
	    "\nweir_stage_core_dealt_total{stage=\"disk\",core=\"0\"} 4\n"
	    "weir_stage_core_dealt_total{stage=\"disk\",core=\"1\"} 0\n",
	    "\nweir_stage_core_moved_total{stage=\"disk\",core=\"0\"} 6\n",
	    "\nweir_stage_core_waiting{stage=\"disk\",core=\"0\"} 5\n",
	    "\nweir_stage_core_oldest_wait_seconds{stage=\"disk\",core=\"0\"} 0.0015\n"};
	struct textbuf out = {0};

	setup();
	view_prom(&made_up.view, &out);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(out.p, lines[i]));
	CU_ASSERT_PTR_NULL(strstr(out.p, "weir_stage_core_waiting{stage=\"cache\""));
	textbuf_fini(&out);
}

CUNIT_MAIN("cores", {"JSON", test_json}, {"Prometheus", test_prom})
