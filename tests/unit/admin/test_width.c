/* SPDX-License-Identifier: MIT */
/* A stage that holds events while something else works on them, as the endpoint shows it: its
 * width, how much of it is used, and when that limits the server. */
#include <math.h>

#include "admin/api/view_json.h"
#include "admin/api/view_prom.h"
#include "admin/metrics/bottleneck.h"
#include "cunit_main.h"
#include "made_up.h"

static struct made_up made_up;
static struct sample sample[MADE_UP_STAGES];
static struct bottleneck b;
static struct weir_stage_view *disk;

static void setup(void)
{
	made_up_init(&made_up);
	memset(sample, 0, sizeof(sample));
	b = (struct bottleneck){0};
	for (int i = 0; i < MADE_UP_STAGES; i++)
		sample[i].known = true;
	disk = &made_up.view.stages[MADE_DISK];
	disk->width = 20;
	disk->width_min = 2;
	disk->width_max = 40;
	disk->in_work = 17;
	disk->refusals = 9;
	snprintf(disk->width_why, sizeof(disk->width_why), "it grows");
}

static json_t *width_of(const struct weir_stage_view *s)
{
	json_t *json = view_json_stage(&made_up.view, s);
	json_t *width = json_incref(json_object_get(json, "width"));

	json_decref(json);
	return width;
}

static void test_json(void)
{
	setup();
	json_t *width = width_of(disk);
	json_t *expected = json_pack("{s:i, s:i, s:i, s:i, s:i, s:s}", "now", 20, "min", 2, "max",
	    40, "in_work", 17, "refused_total", 9, "why", "it grows");
	CU_ASSERT_TRUE(json_equal(width, expected));
	json_decref(expected);
	json_decref(width);
	width = width_of(&made_up.view.stages[MADE_CACHE]); /* the cache has no width */
	CU_ASSERT_TRUE(json_is_null(width));
	json_decref(width);
}

static void test_prom(void)
{
	struct textbuf out = {0};

	setup();
	view_prom(&made_up.view, &out);
	CU_ASSERT_PTR_NOT_NULL(strstr(out.p, "\nweir_stage_width{stage=\"disk\"} 20\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(out.p, "\nweir_stage_in_work{stage=\"disk\"} 17\n"));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(out.p, "\nweir_stage_refused_behind_total{stage=\"disk\"} 9\n"));
	CU_ASSERT_PTR_NULL(strstr(out.p, "weir_stage_width{stage=\"cache\"}"));
	CU_ASSERT_PTR_NULL(strstr(out.p, "weir_stage_in_work{stage=\"log\"}"));
	textbuf_fini(&out);
}

static void feed(void)
{
	made_up.view.wall_ns += 1000000000;
	bottleneck_feed(&b, &made_up.view, sample);
}

static const char *sentence(void)
{
	static char text[320];

	bottleneck_sentence(&b, text, sizeof(text));
	return text;
}

/* The larger of the two shares counts: that of the width, or that of the threads. */
static void test_bottleneck(void)
{
	setup();
	sample[MADE_DISK].v[SAMPLE_BUSY] = 0.1;
	sample[MADE_DISK].v[SAMPLE_DONE] = 160;
	sample[MADE_DISK].v[SAMPLE_FAILED] = 10;
	disk->in_work = 16;
	feed();
	CU_ASSERT_STRING_EQUAL(sentence(),
	    "Nothing limits the server: disk is the busiest stage, its width is 80 % used.");
	disk->in_work = 17;
	feed();
	CU_ASSERT_TRUE(b.limits && b.width == 20);
	CU_ASSERT_DOUBLE_EQUAL(b.used, 0.85, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(b.served_per_s, 170, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(b.ceiling_per_s, 200, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(b.service_s, 0.1, 1e-9); /* 17 in work, 170 per second */
	CU_ASSERT_STRING_EQUAL(
	    sentence(), "disk limits the server: its width of 20 is 85 % used, 170/s of 200/s.");
	json_t *json = bottleneck_json(&b);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json, "formula")),
	    "20 at once / 100 ms = 200/s at most");
	CU_ASSERT_STRING_EQUAL(
	    json_string_value(json_object_get(json, "law")), "utilisation law, X = U n / S");
	json_decref(json);
	disk->in_work = 25; /* a width that has just become smaller */
	feed();
	CU_ASSERT_EQUAL(b.used, 1);
	CU_ASSERT_STRING_EQUAL(sentence(),
	    "disk limits the server: its width of 20 is 100 % used, 170/s of 170/s, for 1 s.");
	/* disk's threads are busier than its width */
	disk->in_work = 18;
	sample[MADE_DISK].v[SAMPLE_BUSY] = 0.95;
	feed();
	CU_ASSERT_EQUAL(b.width, 0);
	CU_ASSERT_DOUBLE_EQUAL(b.used, 0.95, 1e-9);
	CU_ASSERT_PTR_NOT_NULL(strstr(sentence(), "its 5 threads are 95 % used"));
	/* the threads are as busy as the width: the width is named, since more threads would not
	 * help */
	sample[MADE_DISK].v[SAMPLE_BUSY] = 0.9;
	feed();
	CU_ASSERT_EQUAL(b.width, 20);
}

/* A width of one, as of a connection that serves one request after the other. */
static void test_one(void)
{
	setup();
	disk->width = disk->in_work = 1;
	sample[MADE_DISK].v[SAMPLE_BUSY] = 0.1;
	sample[MADE_DISK].v[SAMPLE_DONE] = 50;
	feed();
	CU_ASSERT_STRING_EQUAL(
	    sentence(), "disk limits the server: its width of 1 is 100 % used, 50/s of 50/s.");
	json_t *json = bottleneck_json(&b);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json, "formula")),
	    "1 at once / 20 ms = 50/s at most");
	json_decref(json);
	disk->in_work = 0;
	feed();
	CU_ASSERT_FALSE(b.limits);
}

/* An inline stage with a width has a queue, and its width may limit the server; its handlers run in
 * the threads of its senders. */
static void test_inline(void)
{
	struct weir_stage_view *cache = &made_up.view.stages[MADE_CACHE];
	struct textbuf out = {0};

	setup();
	disk->width = disk->in_work = 0;
	cache->width = cache->in_work = 4;
	cache->queue_length = 3;
	sample[MADE_CACHE].v[SAMPLE_BUSY] = 0.9;
	sample[MADE_CACHE].v[SAMPLE_DONE] = 50;
	feed();
	CU_ASSERT_STRING_EQUAL(
	    sentence(), "cache limits the server: its width of 4 is 100 % used, 50/s of 50/s.");
	cache->in_work = 2;
	feed();
	CU_ASSERT_DOUBLE_EQUAL(b.used, 0.5, 1e-9);
	view_prom(&made_up.view, &out);
	CU_ASSERT_PTR_NOT_NULL(strstr(out.p, "\nweir_stage_queue_length{stage=\"cache\"} 3\n"));
	textbuf_fini(&out);
	cache->width = 0;
	view_prom(&made_up.view, &out);
	CU_ASSERT_PTR_NULL(strstr(out.p, "weir_stage_queue_length{stage=\"cache\"}"));
	textbuf_fini(&out);
}

static const char disk_samples[] =
    "weir_stage_state{stage=\"disk\",state=\"running\"} 0\n"
    "weir_stage_state{stage=\"disk\",state=\"paused\"} 0\n"
    "weir_stage_state{stage=\"disk\",state=\"draining\"} 1\n"
    "weir_stage_state{stage=\"disk\",state=\"drained\"} 0\n"
    "weir_stage_queue_length{stage=\"disk\"} 187\n"
    "weir_stage_queue_limit{stage=\"disk\"} 4096\n"
    "weir_stage_in_flight{stage=\"disk\"} 191\n"
    "weir_stage_held{stage=\"disk\"} 3\n"
    "weir_stage_awaiting{stage=\"disk\"} 2\n"
    "weir_stage_spawned_total{stage=\"disk\",class=\"interactive\"} 38\n"
    "weir_stage_departed_total{stage=\"disk\",class=\"interactive\"} 39\n"
    "weir_stage_children_ended_total{stage=\"disk\",how=\"joined\"} 20\n"
    "weir_stage_children_ended_total{stage=\"disk\",how=\"orphaned\"} 5\n"
    "weir_stage_children_ended_total{stage=\"disk\",how=\"cancelled\"} 4\n"
    "weir_stage_children_refused_total{stage=\"disk\"} 4\n"
    "weir_stage_events_in_total{stage=\"disk\",class=\"interactive\"} 31\n"
    "weir_stage_events_out_total{stage=\"disk\",outlet=\"retry\"} 1000\n"
    "weir_stage_events_out_total{stage=\"disk\",outlet=\"error\"} 1001\n"
    "weir_stage_completed_total{stage=\"disk\",class=\"interactive\"} 33\n"
    "weir_stage_failed_total{stage=\"disk\",class=\"interactive\"} 34\n"
    "weir_stage_refused_ahead_total{stage=\"disk\",class=\"interactive\"} 36\n"
    "weir_stage_queue_wait_seconds_sum{stage=\"disk\",class=\"interactive\"} 0\n"
    "weir_stage_queue_wait_seconds_count{stage=\"disk\",class=\"interactive\"} 0\n"
    "weir_stage_service_seconds_sum{stage=\"disk\",class=\"interactive\"} 0\n"
    "weir_stage_service_seconds_count{stage=\"disk\",class=\"interactive\"} 0\n"
    "weir_stage_oldest_wait_seconds{stage=\"disk\"} 0.0312\n"
    "weir_stage_longest_running_seconds{stage=\"disk\"} 0.0051\n"
    "weir_stage_threads{stage=\"disk\",state=\"busy\"} 4\n"
    "weir_stage_threads{stage=\"disk\",state=\"spinning\"} 0\n"
    "weir_stage_threads{stage=\"disk\",state=\"idle\"} 1\n"
    "weir_stage_threads_limit{stage=\"disk\",bound=\"min\"} 2\n"
    "weir_stage_threads_limit{stage=\"disk\",bound=\"max\"} 32\n"
    "weir_stage_threads_limit{stage=\"disk\",bound=\"target\"} 5\n"
    "weir_stage_thread_failures_total{stage=\"disk\"} 21\n"
    "weir_stage_thread_deaths_total{stage=\"disk\"} 22\n"
    "weir_stage_stuck_total{stage=\"disk\"} 23\n"
    "weir_stage_thread_seconds_total{stage=\"disk\",state=\"running\"} 0.5\n"
    "weir_stage_thread_seconds_total{stage=\"disk\",state=\"runnable\"} 1\n"
    "weir_stage_thread_seconds_total{stage=\"disk\",state=\"io\"} 1.5\n"
    "weir_stage_thread_seconds_total{stage=\"disk\",state=\"lock\"} 2\n"
    "weir_stage_thread_seconds_total{stage=\"disk\",state=\"memory\"} 2.5\n"
    "weir_stage_thread_seconds_total{stage=\"disk\",state=\"sleep\"} 3\n"
    "weir_stage_thread_seconds_total{stage=\"disk\",state=\"blocked\"} 3.5\n"
    "weir_stage_thread_seconds_total{stage=\"disk\",state=\"downstream\"} 4\n"
    "weir_stage_thread_seconds_total{stage=\"disk\",state=\"idle\"} 4.5\n"
    "weir_stage_busy_seconds_total{stage=\"disk\"} 1.500000001\n"
    "weir_stage_cohort_size_sum{stage=\"disk\"} 250\n"
    "weir_stage_cohort_size_count{stage=\"disk\"} 100\n"
    "weir_stage_wakeups_total{stage=\"disk\"} 24\n"
    "weir_stage_unhandled_total{stage=\"disk\"} 25\n"
    "weir_stage_payloads_refused_total{stage=\"disk\",reason=\"memory\"} 26\n"
    "weir_stage_payloads_refused_total{stage=\"disk\",reason=\"budget\"} 27\n"
    "weir_stage_payloads_refused_total{stage=\"disk\",reason=\"slots\"} 28\n"
    "weir_stage_payloads_refused_total{stage=\"disk\",reason=\"family\"} 29\n"
    "weir_stage_pressure_ratio{stage=\"disk\"} 0.25\n"
    "weir_stage_degradation{stage=\"disk\"} 0.3\n"
    "weir_stage_width{stage=\"disk\"} 20\n"
    "weir_stage_in_work{stage=\"disk\"} 17\n"
    "weir_stage_refused_behind_total{stage=\"disk\"} 9\n"
    "weir_stage_law_residual{stage=\"disk\"} -26\n"
    "weir_stage_law_slack{stage=\"disk\"} 3\n";

/* All samples of a stage, without buckets and refusals. */
static void test_all_samples(void)
{
	struct textbuf out = {0};
	char text[16384] = "";
	size_t n = 0;

	setup();
	made_up.view.n_stages = 3;
	made_up.view.n_classes = 1;
	disk->state = "draining";
	disk->thread_failures = 21;
	disk->thread_deaths = 22;
	disk->stuck = 23;
	disk->wakeups = 24;
	disk->unhandled = 25;
	for (int r = 0; r < WEIR_PAYLOAD_REFUSALS; r++)
		disk->payload_refused[r] = 26 + (uint64_t)r;
	made_up.view.payload_bytes = 15;
	made_up.view.payload_bytes_limit = 16;
	disk->law_residual = -26;
	disk->n_metrics = 0;
	made_up.view.stages[MADE_CACHE].n_metrics = 0;
	struct weir_class_view *c = &disk->class_view[0];
	*c = (struct weir_class_view){.offered = 31,
	    .admitted = 32,
	    .completed = 33,
	    .failed = 34,
	    .shadow_shed = 35,
	    .refused_ahead = 36,
	    .queued = 37,
	    .spawned = 38,
	    .departed = 39};
	made_up.view.collect =
	    (struct weir_collect_state){.collected = 11, .dropped = 12, .sent = 13, .failed = 14};
	view_prom(&made_up.view, &out);
	CU_ASSERT_PTR_NOT_NULL(strstr(out.p, "\nweir_payload_reserved_bytes 15\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(out.p, "\nweir_payload_limit_bytes 16\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(out.p, "\nweir_trace_collected_total 11\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(out.p, "\nweir_trace_dropped_total 12\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(out.p, "\nweir_trace_sent_total 13\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(out.p, "\nweir_trace_failed_total 14\n"));
	for (const char *line = out.p, *next; *line; line = next) {
		next = strchr(line, '\n') + 1;
		size_t length = (size_t)(next - line);
		if (memmem(line, length, "\"disk\"", 6) && !memmem(line, length, "_bucket", 7) &&
		    !memmem(line, length, "_shed_total", 11))
			n +=
			    (size_t)snprintf(text + n, sizeof(text) - n, "%.*s", (int)length, line);
	}
	CU_ASSERT_STRING_EQUAL(text, disk_samples);
	textbuf_fini(&out);
}

CUNIT_MAIN("width", {"JSON", test_json}, {"Prometheus", test_prom}, {"bottleneck", test_bottleneck},
    {"a width of one", test_one}, {"inline", test_inline}, {"all samples", test_all_samples})
