/* SPDX-License-Identifier: MIT */
/*
 * Memory is short for a family: that of weir_family_new, of the children of weir_await_first, and of an
 * HTTP request. The children and the event that awaits them end, the request is served without a family,
 * and the next call finds memory again.
 */
#include <weir/op.h>

#include "fixture/http/server.h"

#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "fault/inject.h"
#include "graph/graph.h"

#define CHILDREN 3

static atomic_int n_next, n_kid, cancelled, families;
static atomic_bool starving;

/* From now on, if memory is to be short, allocations of the calling thread fail (`on`) or succeed. */
static void starve(bool on)
{
	if (!atomic_load(&starving))
		return;
	atomic_store(&fault_of_mine, true);
	atomic_store(&fault_goes_on, on);
	fault_mine = on;
	atomic_store(&fault_alloc_in, on ? 0 : -1);
}

static void test_new(void)
{
	struct weir_family *f, *within = weir_family_new(NULL);

	atomic_store(&starving, true);
	starve(true);
	f = weir_family_new(within);
	starve(false);
	CU_ASSERT_PTR_NULL(f);
	weir_family_put(within); /* with the leak check: no reference is left */
	weir_family_end(f);
	weir_family_put(f);
	CU_ASSERT_FALSE(weir_family_over(f));
}

/* ---- weir_await_first ---- */

static void next_ends(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	atomic_fetch_add(&n_next, n);
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], weir_ended_status(ev[i]));
}

static void ask_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < CHILDREN; k++) {
			struct weir_event *c = weir_event_new(st, &probe_type);
			((struct probe *)c)->producer = 1;
			weir_child(st, ev[i], 0, &c);
		}
		starve(true);
		weir_await_first(st, &ev[i], next_ends);
		starve(false);
		CU_ASSERT_PTR_NULL(ev[i]);
	}
}

static void kid_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	atomic_fetch_add(&n_kid, n);
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], WEIR_OK);
}

static const struct weir_outlet ask_outlets[] = {
    {"kid", &probe_type, false, "children"}, {.name = NULL}};
static const struct weir_stage_ops ask_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.ask",
    .summary = "awaits the first of several children",
    .accepts = &probe_type,
    .outlets = ask_outlets,
    .children = 1,
    .handle = ask_handle};
static const struct weir_stage_ops kid_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.kid",
    .summary = "ends children",
    .accepts = &probe_type,
    .handle = kid_handle};

static void count_cancelled(struct probe *p, int status)
{
	atomic_fetch_add(&cancelled, p->producer == 1 && status == WEIR_ECANCELLED);
}

static void offer(struct weir_graph *g, int i)
{
	struct weir_event *ev = &probes[i].ev;

	if (ev->state != WEIR_EVENT_NEW)
		weir_event_init(ev, &probe_type, clock_now_ns());
	CU_ASSERT_EQUAL(weir_offer(weir_graph_stage(g, "ask"), &ev, 1, NULL), 1);
}

/* Also of an event in a family, which keeps its memory and its references. */
static void test_await_first(void)
{
	struct weir_spec *spec = weir_spec_new("first");
	struct weir_family *family = weir_family_new(NULL);

	fixture_set(fixture_stage(spec, "kid", "t.kid", NULL), "threads.max", "1");
	fixture_stage(spec, "ask", "t.ask", "kid");
	prepare(3);
	fixture_on_finish = count_cancelled;
	atomic_store(&starving, true);
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	for (int i = 0; i < 2; i++) {
		weir_event_init(&probes[i].ev, &probe_type, clock_now_ns());
		probes[i].producer = 0;
		weir_family_join(i == 1 ? family : NULL, &probes[i].ev);
		offer(g, i);
		FIXTURE_AWAIT(fixture_ended() == (uint64_t)(CHILDREN + 1) * (i + 1));
		CU_ASSERT_EQUAL(probes[i].status, WEIR_ENOMEM);
		CU_ASSERT_EQUAL(atomic_load(&cancelled), CHILDREN * (i + 1));
	}
	CU_ASSERT_EQUAL(atomic_load(&n_kid), 0);
	CU_ASSERT_EQUAL(atomic_load(&n_next), 0);
	FIXTURE_AWAIT(weir_family_memory(family) == 0);
	atomic_store(&starving, false);
	probes[2].producer = 0;
	offer(g, 2);
	FIXTURE_AWAIT(fixture_ended() == 3 * (CHILDREN + 1));
	CU_ASSERT_EQUAL(probes[2].status, WEIR_OK);
	CU_ASSERT_EQUAL(atomic_load(&n_next), 1);
	struct weir_stage_view v = stage_view(g, "ask");
	CU_ASSERT_EQUAL(v.spawned, 3 * CHILDREN);
	CU_ASSERT_EQUAL(v.spawned, v.joined + v.orphaned + v.cancelled);
	weir_thread_detach();
	finish_graph(g, 0);
	weir_family_put(family);
}

/* ---- weir_http_family ---- */

static void answer_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		struct weir_http_request *req = weir_http_request(ev[i]);
		starve(true);
		struct weir_family *f = weir_http_family(req);
		starve(false);
		CU_ASSERT_EQUAL(f == NULL, atomic_load(&starving));
		CU_ASSERT_PTR_EQUAL(weir_family_of(ev[i]), f);
		atomic_fetch_add(&families, f != NULL);
		weir_event_finish(&ev[i], weir_http_respond_copy(req, 200, "text/plain",
					      (struct weir_slice){"good\n", 5}));
	}
}

static const struct weir_stage_ops answer_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.answer",
    .summary = "asks for the family of a request",
    .accepts = &weir_http_request_type,
    .handle = answer_handle};

static void test_http(void)
{
	struct server s = server_new("t.answer");
	struct answer a = {0};

	server_start(&s);
	int fd = client_open(s.port);
	for (int i = 0; i < 4; i++) {
		atomic_store(&starving, i % 2 == 0);
		CU_ASSERT(client_say(fd, GET("/a")));
		CU_ASSERT(answer_read(fd, &a) && answer_is(&a, 200, "good\n"));
		CU_ASSERT_EQUAL(atomic_load(&families), (i + 1) / 2);
	}
	close(fd);
	answer_free(&a);
	server_stop(&s);
}

static void test_register(void)
{
	fixture_register(&ask_ops);
	fixture_register(&kid_ops);
	fixture_register(&answer_ops);
}

CUNIT_MAIN("families without memory", {"register", test_register}, {"new", test_new},
    {"await first", test_await_first}, {"http", test_http})
