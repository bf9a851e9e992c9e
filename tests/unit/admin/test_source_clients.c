/* SPDX-License-Identifier: MIT */
/* A source whose I/O threads have a limit of clients: how the endpoint shows it, and when it limits
 * the server. */
#include "admin/api/view_json.h"
#include "admin/api/view_prom.h"
#include "admin/metrics/bottleneck.h"
#include "cunit_main.h"
#include "made_up.h"

static struct made_up made_up;
static struct weir_stage_view *web, *disk;
static struct sample sample[MADE_UP_STAGES];
static struct bottleneck b;

static void setup(void)
{
	made_up_init(&made_up);
	web = &made_up.view.stages[MADE_WEB];
	disk = &made_up.view.stages[MADE_DISK];
	web->clients =
	    (struct weir_clients){.per_loop = 1, .loops = 20, .full = 17, .idle = 3, .waiting = 12};
	memset(sample, 0, sizeof(sample));
	for (int i = 0; i < MADE_UP_STAGES; i++)
		sample[i].known = true;
	sample[MADE_WEB].v[SAMPLE_DONE] = 170;
	b = (struct bottleneck){0};
}

static json_t *clients_of(const struct weir_stage_view *s)
{
	json_t *stage = view_json_stage(&made_up.view, s);
	json_t *clients = json_incref(json_object_get(stage, "clients"));

	json_decref(stage);
	return clients;
}

static void test_json(void)
{
	setup();
	json_t *clients = clients_of(web);
	json_t *expected = json_pack("{s:i, s:i, s:i, s:i, s:i}", "threads", 20, "full", 17, "idle",
	    3, "per_thread", 1, "waiting", 12);
	CU_ASSERT_TRUE(json_equal(clients, expected));
	json_decref(expected);
	json_decref(clients);
	clients = clients_of(disk);
	CU_ASSERT_TRUE(json_is_null(clients));
	json_decref(clients);
}

static void test_prom(void)
{
	struct textbuf out = {0};

	setup();
	view_prom(&made_up.view, &out);
	CU_ASSERT_PTR_NOT_NULL(strstr(out.p, "\nweir_stage_io_threads{stage=\"web\"} 20\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(out.p, "\nweir_stage_io_threads_full{stage=\"web\"} 17\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(out.p, "\nweir_stage_clients_waiting{stage=\"web\"} 12\n"));
	CU_ASSERT_PTR_NULL(strstr(out.p, "weir_stage_clients_waiting{stage=\"disk\"}"));
	textbuf_fini(&out);
}

static void says(const char *expected)
{
	char text[320];

	made_up.view.wall_ns += 1000000000;
	bottleneck_feed(&b, &made_up.view, sample);
	bottleneck_sentence(&b, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, expected);
}

static void test_limits(void)
{
	setup();
	says("web limits the server: 17 of its 20 I/O threads have a client, and 12 more wait; "
	     "raise "
	     "its 'threads', or lower 'idle_timeout', since 3 of these clients are idle.");
	CU_ASSERT_TRUE(b.limits);
	CU_ASSERT_DOUBLE_EQUAL(b.used, 0.85, 1e-9);
	json_t *json = bottleneck_json(&b);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json, "formula")),
	    "20 at once / 100 ms = 200/s at most");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json, "threads")), 20);
	CU_ASSERT_TRUE(json_is_null(json_object_get(json, "group")));
	json_decref(json);
	web->clients.full = 20;
	web->clients.idle = 0;
	web->clients.waiting = 1;
	says(
	    "web limits the server: all of its 20 I/O threads have a client, and 1 more waits, for "
	    "1 s; raise its 'threads'.");
	web->clients.waiting = 0; /* full, but nobody waits */
	says(
	    "Nothing limits the server: web is the busiest stage, all of its 20 I/O threads have a "
	    "client.");
	CU_ASSERT_FALSE(b.limits);
}

/* More than one client for each thread; a single thread. */
static void test_words(void)
{
	setup();
	web->clients = (struct weir_clients){.per_loop = 4, .loops = 3, .full = 3, .waiting = 2};
	says(
	    "web limits the server: all of its 3 I/O threads have 4 clients each, and 2 more wait; "
	    "raise its 'threads'.");
	CU_ASSERT_EQUAL(b.width, 12);
	web->clients.full = 1;
	says("Nothing limits the server: web is the busiest stage, 1 of its 3 I/O threads has 4 "
	     "clients.");
	web->clients = (struct weir_clients){.per_loop = 1, .loops = 1, .full = 1, .idle = 1};
	says("Nothing limits the server: web is the busiest stage, its I/O thread has a client.");
	web->clients.full = 0;
	says("Nothing limits the server: web is the busiest stage, its I/O thread has no client.");
	web->clients.full = 1;
	web->clients.waiting = 5;
	says("web limits the server: its I/O thread has a client, and 5 more wait; raise its "
	     "'threads', or lower 'idle_timeout', since 1 of these clients is idle.");
}

/* Threads that wait for a pool behind them are full, too: then it is the pool that limits. */
static void test_pool_behind(void)
{
	setup();
	web->clients.full = 20;
	sample[MADE_DISK].v[SAMPLE_BUSY] = 0.95;
	says("disk limits the server: its 5 threads are 95 % used; the pool may still grow.");
	sample[MADE_DISK].v[SAMPLE_BUSY] = 0.8;
	says("disk limits the server: its 5 threads are 80 % used, for 1 s; the pool may still "
	     "grow.");
	sample[MADE_DISK].v[SAMPLE_BUSY] = 0.74;
	says("web limits the server: all of its 20 I/O threads have a client, and 12 more wait; "
	     "raise "
	     "its 'threads', or lower 'idle_timeout', since 3 of these clients are idle.");
	web->clients.waiting = 0;
	says("Nothing limits the server: disk is the busiest stage, its threads are 74 % used.");
}

CUNIT_MAIN("clients of a source", {"JSON", test_json}, {"Prometheus", test_prom},
    {"it limits", test_limits}, {"words", test_words}, {"a pool behind", test_pool_behind})
