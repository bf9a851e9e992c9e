/* SPDX-License-Identifier: MIT */
/* A core group and a stage in it, as the endpoint shows what its cores do. */
#include "admin/api/view_json.h"
#include "admin/api/view_prom.h"
#include "admin/metrics/bottleneck.h"
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
					     .blocked = 7,
					     .blocked_ns = 6200000000,
					     .blocked_in = "disk",
					     .spare_blocked_ns = 1200000000,
					     .spare_blocked_in = "cache",
					     .waiting = 5,
					     .oldest_wait_ns = 1500000,
					     .batches = 12,
					     .busy_ns = 2500000000,
					     .cut_gate = 6,
					     .cut_urgent = 1,
					     .longest_wait_ns = 40000000},
    {.visits = 1, .events = 1}};

static struct weir_group_stage_view member[1];
static struct weir_group_view group = {.name = "core",
    .schedule = "srpt",
    .gate = "time: 10ms",
    .starve_ns = 25000000,
    .balance = true,
    .cores = 2,
    .n_cores = 2,
    .core = cores,
    .n_stages = 1,
    .stages = member};

static void setup(void)
{
	made_up_init(&made_up);
	disk = &made_up.view.stages[MADE_DISK];
	disk->n_cores = 2;
	disk->cores = cores;
	member[0] = (struct weir_group_stage_view){
	    .stage = disk, .urgent_events = 64, .urgent_wait_ns = 2000000};
	made_up.view.n_groups = 1;
	made_up.view.groups = &group;
}

static json_t *expected_core(void)
{
	return json_pack(
	    "{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:f, s:s, s:f, s:i, "
	    "s:f, s:f, s:f, s:s}",
	    "visits_total", 10, "urgent_total", 2, "starved_total", 3, "cut_by_gate_total", 6,
	    "cut_by_urgent_total", 1, "cut_by_starved_total", 0, "batches_total", 12,
	    "events_total", 70, "from_queue_total", 30, "dealt_total", 4, "moved_total", 6,
	    "blocked_total", 7, "blocked_seconds", 6.2, "blocked_in", "disk", "busy_seconds_total",
	    2.5, "waiting", 5, "oldest_wait_seconds", 0.0015, "longest_wait_seconds", 0.04,
	    "spare_blocked_seconds", 1.2, "spare_blocked_in", "cache");
}

static void test_json(void)
{
	setup();
	json_t *stage = view_json_stage(&made_up.view, disk);
	json_t *list = json_object_get(stage, "cores");
	CU_ASSERT_EQUAL(json_array_size(list), 2);
	json_t *expected = expected_core();
	CU_ASSERT_TRUE(json_equal(json_array_get(list, 0), expected));
	json_decref(expected);
	CU_ASSERT_TRUE(json_is_null(json_object_get(json_array_get(list, 1), "blocked_in")));
	json_decref(stage);
	stage = view_json_stage(&made_up.view, &made_up.view.stages[MADE_CACHE]);
	CU_ASSERT_TRUE(json_is_array(json_object_get(stage, "cores")));
	CU_ASSERT_EQUAL(json_array_size(json_object_get(stage, "cores")), 0);
	json_decref(stage);
}

static void test_group_json(void)
{
	setup();
	json_t *doc = view_json_stages(&made_up.view);
	json_t *got = json_array_get(json_object_get(doc, "groups"), 0);
	json_t *core = expected_core();
	json_t *expected =
	    json_pack("{s:s, s:n, s:s, s:s, s:f, s:b, s:s, s:i, s:[{s:s, s:{s:i, s:f}}]}", "name",
		"core", "source", "schedule", "srpt", "gate", "time: 10ms", "starve_seconds", 0.025,
		"balance", true, "order", "arrival", "cores_now", 2, "stages", "name", "disk",
		"urgent", "events", 64, "wait_seconds", 0.002);

	CU_ASSERT_TRUE(json_equal(json_array_get(json_object_get(got, "cores"), 0), core));
	json_object_del(got, "cores");
	CU_ASSERT_TRUE(json_equal(got, expected));
	json_decref(doc);
	json_decref(core);
	doc = view_json_graph(
	    &made_up.view); /* settings only: its ETag must not change with counts */
	CU_ASSERT_TRUE(json_equal(json_array_get(json_object_get(doc, "groups"), 0), expected));
	json_decref(doc);
	json_decref(expected);
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
	    "\nweir_stage_core_blocked_total{stage=\"disk\",core=\"0\"} 7\n",
	    "\nweir_core_group_blocked_total{group=\"core\",core=\"0\"} 7\n"
	    "weir_core_group_blocked_total{group=\"core\",core=\"1\"} 0\n",
	    "\nweir_stage_core_waiting{stage=\"disk\",core=\"0\"} 5\n",
	    "\nweir_stage_core_oldest_wait_seconds{stage=\"disk\",core=\"0\"} 0.0015\n",
	    "\nweir_stage_core_cuts_total{stage=\"disk\",core=\"0\",by=\"gate\"} 6\n"
	    "weir_stage_core_cuts_total{stage=\"disk\",core=\"0\",by=\"urgent\"} 1\n"
	    "weir_stage_core_cuts_total{stage=\"disk\",core=\"0\",by=\"starved\"} 0\n",
	    "\nweir_stage_core_batches_total{stage=\"disk\",core=\"0\"} 12\n",
	    "\nweir_stage_core_busy_seconds_total{stage=\"disk\",core=\"0\"} 2.5\n",
	    "\nweir_stage_core_longest_wait_seconds{stage=\"disk\",core=\"0\"} 0.04\n",
	    "\nweir_core_group_info{group=\"core\",schedule=\"srpt\",gate=\"time: 10ms\"} 1\n",
	    "\nweir_core_group_cores{group=\"core\"} 2\n",
	    "\nweir_core_group_starve_seconds{group=\"core\"} 0.025\n",
	    "\nweir_core_group_balance{group=\"core\"} 1\n",
	    "\nweir_core_group_busy_seconds_total{group=\"core\",core=\"0\"} 2.5\n"
	    "weir_core_group_busy_seconds_total{group=\"core\",core=\"1\"} 0\n"};
	struct textbuf out = {0};

	setup();
	view_prom(&made_up.view, &out);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		CU_ASSERT_PTR_NOT_NULL(strstr(out.p, lines[i]));
	CU_ASSERT_PTR_NULL(strstr(out.p, "weir_stage_core_waiting{stage=\"cache\""));
	textbuf_fini(&out);
}

static struct weir_stage_view work;
static struct weir_graph_view small;
static struct sample sample;

/* Stage work with 4 threads in a core group of 4 cores, none of them blocked. */
static void setup_small(double busy, double done)
{
	work = (struct weir_stage_view){.name = "work",
	    .placement = "group",
	    .group = "core",
	    .threads_now = 4,
	    .threads_max = 8};
	small = (struct weir_graph_view){.wall_ns = 1700000000000000000,
	    .n_stages = 1,
	    .stages = &work,
	    .n_groups = 1,
	    .groups = &group};
	sample = (struct sample){.known = true, .v = {[SAMPLE_BUSY] = busy, [SAMPLE_DONE] = done}};
	group.cores = 4;
	group.n_cores = 0;
}

static void says(struct bottleneck *b, const char *expected)
{
	char text[320];

	bottleneck_feed(b, &small, &sample);
	bottleneck_sentence(b, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, expected);
}

/* A stage in a core group that limits the server: the group is named, with its schedule. */
static void test_bottleneck(void)
{
	struct bottleneck b = {0};

	setup_small(0.5, 100);
	says(&b, "Nothing limits the server: work is the busiest stage, the cores of its group "
		 "'core' (srpt) are 50 % used.");
	setup_small(0.95, 380);
	says(&b, "work limits the server: the 4 cores of its group 'core' (srpt) are 95 % used, "
		 "380/s of 400/s; the group may get more cores.");
	json_t *json = bottleneck_json(&b);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json, "group")), "core");
	json_decref(json);
	small.n_groups = 0; /* the group is a pool */
	says(&b, "work limits the server: its 4 threads are 95 % used, 380/s of 400/s; the pool "
		 "may still grow.");
	json = bottleneck_json(&b);
	CU_ASSERT_TRUE(json_is_null(json_object_get(json, "group")));
	json_decref(json);
}

/* A core sleeps in a handler: that is said instead of "Nothing limits", and threads are not called
 * cores if the group has spares. */
static void test_asleep(void)
{
	struct bottleneck b = {0};

	setup_small(0.5, 100);
	group.n_cores = 2;
	says(&b, "Core 0 of group 'core' is blocked: it has slept for 6.2 s in a handler of stage "
		 "'disk', and its spare thread sleeps, too.");
	CU_ASSERT_FALSE(b.limits);
	cores[0].spare_blocked_in = NULL;
	says(&b, "Core 0 of group 'core' is blocked: it has slept for 6.2 s in a handler of stage "
		 "'disk'.");
	cores[0].spare_blocked_in = "cache";
	group.n_cores = 0; /* it has woken up since then */
	json_t *json = bottleneck_json_now(&b, &small);
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(json_string_value(json_object_get(json, "text")), "Nothing limits"));
	json_decref(json);
	setup_small(1, 0);
	group.n_cores = 2;
	work.threads_now = 5;
	says(&b, "work limits the server: the 5 threads of its group 'core' (srpt), which has 4 "
		 "cores, are 100 % used; the group may get more cores.");
	setup_small(0.5, 100);
	group.cores = 1;
	says(&b, "Nothing limits the server: work is the busiest stage, the 4 threads of its group "
		 "'core' (srpt), which has 1 core, are 50 % used.");
}

CUNIT_MAIN("cores", {"JSON of a stage", test_json}, {"JSON of a group", test_group_json},
    {"Prometheus", test_prom}, {"bottleneck", test_bottleneck}, {"asleep", test_asleep})
