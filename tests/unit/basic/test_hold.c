/* SPDX-License-Identifier: MIT */
/*
 * hold: in which order events leave it, and that a stop releases them at once. No real time is
 * involved: the loop of the stage is stopped while a batch is sent, so all holds of the batch begin
 * at the same time, and their order follows from the draws.
 */
#include <errno.h>
#include <sched.h>
#include <semaphore.h>

#include <weir/clock.h>

#include "basic/dist.h"
#include "fixture/graph/probes.h"

#define EVENTS 200

/* The numbers of the events in the order in which they left. */
static int left[EVENTS + 1];
static atomic_int n_left, gate;

static void note(struct probe *p, int status)
{
	CU_ASSERT_EQUAL(status, WEIR_OK);
	left[atomic_load(&n_left)] = (int)(p - probes);
	atomic_fetch_add(&n_left, 1);
	FIXTURE_AWAIT(p != probes || atomic_load(&gate) == 1);
}

static struct weir_graph *start(const char *dist, const char *time, const char *capacity)
{
	struct weir_spec *spec = weir_spec_new("hold");
	struct weir_stage_spec *s = weir_spec_add_stage(spec, "hold", "hold");

	prepare(EVENTS + 1);
	atomic_store(&n_left, 0);
	fixture_on_finish = note;
	fixture_set(s, "threads.max", "1");
	fixture_set(s, "with.dist", dist);
	fixture_set(s, "with.time", time);
	fixture_set(s, "with.slow", "60s");
	fixture_set(s, "with.slow_share", "50%");
	fixture_set(s, "with.capacity", capacity);
	fixture_set(s, "with.seed", "7");
	fixture_set(s, "queue.limit", "1000");
	fixture_set(s, "width.policy", "static");
	fixture_set(s, "admission.policy", "none");
	struct weir_graph *g = fixture_start(spec);
	CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
	return g;
}

/* Send the first event, which stops the loop when it leaves, then all others, and let them go. */
static void send_all(struct weir_graph *g)
{
	struct weir_stage *st = weir_graph_stage(g, "hold");

	atomic_store(&gate, 0);
	fixture_offer_all(st, probes, 1, 1);
	FIXTURE_AWAIT(atomic_load(&n_left) == 1);
	fixture_offer_all(st, probes + 1, EVENTS, 50);
	FIXTURE_AWAIT(stage_view(g, "hold").batch_events == EVENTS + 1);
	atomic_store(&gate, 1);
}

static void finish(struct weir_graph *g)
{
	struct weir_drain_report report;

	weir_thread_detach();
	weir_graph_drain(g, 60000000000LL, &report);
	CU_ASSERT_EQUAL(report.law_error, 0);
	CU_ASSERT_EQUAL(report.closed, 0);
	CU_ASSERT_EQUAL(fixture_ended(), EVENTS + 1);
	CU_ASSERT_EQUAL(atomic_load(&fixture_done), EVENTS + 1);
	check_each_once(EVENTS + 1);
	weir_graph_free(g);
	fixture_on_finish = NULL;
}

static const struct dist exponential = {.kind = DIST_EXP, .time_ns = 10000000, .seed = 7};

/* Events leave in the order in which their times end. Event `i` has draw `i`. */
static void test_order(void)
{
	struct weir_graph *g = start("exp", "10ms", "0");

	send_all(g);
	FIXTURE_AWAIT(atomic_load(&n_left) == EVENTS + 1);
	for (int i = 2; i <= EVENTS; i++)
		CU_ASSERT(dist_draw_ns(&exponential, (uint64_t)left[i - 1]) <=
			  dist_draw_ns(&exponential, (uint64_t)left[i]));
	finish(g);
}

/* The order in which events leave a server that works on `capacity` at once. */
static void schedule(int capacity, int order[EVENTS])
{
	int64_t done_ns[EVENTS + 1] = {0};
	bool gone[EVENTS + 1] = {false};
	int next = 1, busy = 0;
	int64_t now_ns = 0;

	for (int n = 0; n < EVENTS; n++) {
		int best = 0;
		for (; busy < capacity && next <= EVENTS; busy++, next++)
			done_ns[next] = now_ns + dist_draw_ns(&exponential, (uint64_t)next);
		for (int i = 1; i < next; i++)
			if (!gone[i] && (best == 0 || done_ns[i] < done_ns[best]))
				best = i;
		gone[best] = true;
		now_ns = done_ns[best];
		order[n] = best;
		busy--;
	}
}

/* With a capacity, further events wait for their turn, which begins when another event is done. */
static void check_capacity(const char *text, int capacity)
{
	struct weir_graph *g = start("exp", "10ms", text);
	int order[EVENTS];

	schedule(capacity, order);
	send_all(g);
	FIXTURE_AWAIT(atomic_load(&n_left) == EVENTS + 1);
	for (int i = 0; i < EVENTS; i++)
		CU_ASSERT_EQUAL(left[i + 1], order[i]);
	finish(g);
}

static void test_capacity(void)
{
	check_capacity("3", 3);
	check_capacity("100", 100);
}

/* With a capacity of one, events leave in the order of arrival. */
static void test_one(void)
{
	struct weir_graph *g = start("const", "10us", "1");

	send_all(g);
	FIXTURE_AWAIT(atomic_load(&n_left) == EVENTS + 1);
	for (int i = 0; i <= EVENTS; i++)
		CU_ASSERT_EQUAL(left[i], i);
	finish(g);
}

/* No event leaves before its time: half of them have none, the others a minute. A stop releases
 * these at once, and those that wait. */
static void check_stop(const char *capacity)
{
	static const struct dist half = {.kind = DIST_BIMODAL,
	    .time_ns = 0,
	    .slow_ns = 60000000000,
	    .slow_share = 0.5,
	    .seed = 7};
	struct weir_graph *g = start("bimodal", "0s", capacity);
	int soon = 0;

	atomic_store(&gate, 1);
	fixture_offer_all(weir_graph_stage(g, "hold"), probes, EVENTS + 1, 50);
	if (strcmp(capacity, "0") == 0) {
		for (uint64_t i = 0; i <= EVENTS; i++)
			soon += dist_draw_ns(&half, i) == 0;
		CU_ASSERT(soon > 0 && soon < EVENTS);
		FIXTURE_AWAIT(atomic_load(&n_left) == soon);
		for (int i = 0; i < soon; i++)
			CU_ASSERT_EQUAL(dist_draw_ns(&half, (uint64_t)left[i]), 0);
	}
	finish(g);
}

static void test_stop(void)
{
	check_stop("0");
	check_stop("2");
}

/* The time until which a stop waits, as libc is told. */
static _Atomic int64_t waited_until_ns;

int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until)
{
	int64_t until_ns = until->tv_sec * 1000000000LL + until->tv_nsec;

	atomic_store(&waited_until_ns, until_ns);
	while (sem_trywait(sem) != 0) {
		if (weir_clock_ns(clock) >= until_ns) {
			errno = ETIMEDOUT;
			return -1;
		}
		sched_yield();
	}
	return 0;
}

/* Times that have passed, so a stop waits for nothing. */
static void test_stop_until(void)
{
	static const int64_t until_ns[] = {1, 999999999, 1000000000, 3999999999};
	struct weir_graph *g = start("const", "60s", "0");
	struct weir_stage *st = weir_graph_stage(g, "hold");

	for (size_t i = 0; i < sizeof(until_ns) / sizeof(until_ns[0]); i++) {
		weir_stage_type_find("hold")->stop(st, until_ns[i]);
		CU_ASSERT_EQUAL(atomic_load(&waited_until_ns), until_ns[i]);
	}
	atomic_store(&gate, 1);
	fixture_offer_all(st, probes, EVENTS + 1, 50);
	finish(g); /* events that come after a stop leave at once */
}

static void test_service_time(void)
{
	const struct weir_stage_ops *ops = weir_stage_type_find("hold");
	void *conf = calloc(1, ops->conf_size);

	CU_ASSERT_EQUAL_FATAL(weir_knobs_init(ops->knobs, conf), 0);
	CU_ASSERT_EQUAL(ops->service_ns(conf), 1000000);
	weir_knobs_fini(ops->knobs, conf);
	free(conf);
}

CUNIT_MAIN("hold", {"order", test_order}, {"capacity", test_capacity}, {"one at a time", test_one},
    {"stop", test_stop}, {"stop until", test_stop_until}, {"service time", test_service_time})
