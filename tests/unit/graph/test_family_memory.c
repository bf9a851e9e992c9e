/* SPDX-License-Identifier: MIT */
/* Families: the bound on the memory of their events and payloads. A child, a member, a payload or a
 * reservation above it is refused, and what has been released may be used again. */
#include "event/op.h"
#include "event/payload.h"
#include "fixture/graph/payloads.h"
#include "op_rig.h"

#define ONE sizeof(struct probe)

static struct weir_family *family;
static atomic_int n_next;

#define SMALL_SIZE 100
#define BIG_SIZE   10000

static const struct weir_payload_type small_type = {.name = "small", .size = SMALL_SIZE};
static const struct weir_payload_type big_type = {.name = "big", .size = BIG_SIZE};

static void begin(struct weir_spec *spec, rig_each *each, uint64_t bytes)
{
	on_par = each;
	atomic_store(&n_next, 0);
	rig_start(spec);
	family = weir_family_new(NULL);
	weir_family_set_memory(family, bytes);
}

static void join(int i)
{
	weir_event_init(&probes[i].ev, &probe_type, clock_now_ns());
	CU_ASSERT_EQUAL(weir_family_join(family, &probes[i].ev), 0);
}

static void offer_member(int i)
{
	join(i);
	rig_offer(i);
}

/* End the graph after `n` events. Nothing counts in the family then. */
static void end(uint64_t n)
{
	rig_end(n);
	CU_ASSERT_EQUAL(weir_family_memory(family), 0);
	weir_family_put(family);
}

/* ---- members ---- */

static void test_members(void)
{
	struct weir_family *f = weir_family_new(NULL);
	struct probe p[3] = {0};

	weir_family_set_memory(NULL, 1);
	CU_ASSERT_EQUAL(weir_family_memory(NULL), 0);
	CU_ASSERT_EQUAL(weir_family_join(NULL, &p[0].ev), 0);
	weir_family_set_memory(f, 2 * ONE);
	for (int i = 0; i < 3; i++) {
		weir_event_init(&p[i].ev, &probe_type, 0);
		CU_ASSERT_EQUAL(weir_family_join(f, &p[i].ev), i < 2 ? 0 : WEIR_ELIMIT);
		CU_ASSERT_PTR_EQUAL(weir_family_of(&p[i].ev), i < 2 ? f : NULL);
		CU_ASSERT_EQUAL(weir_family_memory(f), (i < 2 ? i + 1 : 2) * ONE);
	}
	/* outside a graph there is no other bound than the family's own */
	weir_family_set_memory(f, 0);
	CU_ASSERT_EQUAL(weir_family_join(f, &p[2].ev), 0);
	/* lowered below what is used: nothing ends, and nothing more fits */
	weir_family_set_memory(f, 1);
	CU_ASSERT_EQUAL(weir_family_memory(f), 3 * ONE);
	CU_ASSERT_FALSE(family_grow(f, 1));
	for (int i = 0; i < 3; i++)
		family_leave(f, 1, ONE);
	CU_ASSERT_EQUAL(weir_family_memory(f), 0);
	weir_family_put(f);
}

/* A family within others counts in all of them, or in none. */
static void test_nested(void)
{
	struct weir_family *outer = weir_family_new(NULL);
	struct weir_family *in[2] = {weir_family_new(outer), weir_family_new(outer)};
	struct weir_family *deep = weir_family_new(in[0]);

	weir_family_set_memory(outer, 100);
	weir_family_set_memory(in[1], 70);
	CU_ASSERT(family_grow(deep, 40));
	CU_ASSERT_EQUAL(weir_family_memory(deep), 40);
	CU_ASSERT_EQUAL(weir_family_memory(in[0]), 40);
	CU_ASSERT_EQUAL(weir_family_memory(outer), 40);
	CU_ASSERT_FALSE(family_grow(in[1], 61)); /* too much for `outer` only */
	CU_ASSERT_EQUAL(weir_family_memory(in[1]), 0);
	CU_ASSERT_FALSE(family_grow(in[1], 71));
	CU_ASSERT(family_grow(in[1], 60));
	CU_ASSERT_FALSE(family_grow(deep, 1));
	CU_ASSERT_EQUAL(weir_family_memory(deep), 40);
	CU_ASSERT_EQUAL(weir_family_memory(in[0]), 40);
	CU_ASSERT_EQUAL(weir_family_memory(outer), 100);
	family_shrink(in[1], 60);
	CU_ASSERT_FALSE(family_grow(deep, UINT64_MAX)); /* the sum would overflow */
	CU_ASSERT(family_grow(deep, 60));
	family_shrink(deep, 100);
	CU_ASSERT_EQUAL(weir_family_memory(outer), 0);
	weir_family_put(outer);
	weir_family_put(deep);
	weir_family_put(in[0]);
	weir_family_put(in[1]);
}

/* ---- children ---- */

#define FIT 3 /* children beside their parent */

static void make(struct weir_stage *st, struct weir_event *ev, int n)
{
	uint64_t before = fixture_ended();

	for (int i = 0; i < n; i++) {
		struct weir_event *c = weir_event_new(st, &probe_type);
		CU_ASSERT_EQUAL(weir_child(st, ev, KID, &c), i < FIT ? 0 : WEIR_ELIMIT);
		CU_ASSERT_PTR_NULL(c);
	}
	/* the others have ended, so the handler uses no more memory */
	CU_ASSERT_EQUAL(fixture_ended() - before, (uint64_t)n - FIT);
	CU_ASSERT_EQUAL(weir_family_memory(family), (FIT + 1) * ONE);
}

static int count_ended(const struct weir_event *ev)
{
	int n = 0;

	for (const struct weir_event *c = weir_ended(ev); c; c = c->next, n++)
		CU_ASSERT_EQUAL(weir_child_status(c), WEIR_OK);
	return n;
}

static void next_ends(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	atomic_fetch_add(&n_next, n);
	for (int i = 0; i < n; i++)
		weir_event_finish(&ev[i], weir_ended_status(ev[i]));
}

static void next_free(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)n;
	/* the event has awaited again, so its children have been released */
	CU_ASSERT_EQUAL(weir_family_memory(family), ONE);
	CU_ASSERT_PTR_NULL(weir_ended(ev[0]));
	make(st, ev[0], FIT + 1);
	weir_await(st, &ev[0], next_ends);
}

static void next_sees(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)n;
	CU_ASSERT_EQUAL(count_ended(ev[0]), FIT);
	CU_ASSERT_EQUAL(weir_ended_status(ev[0]), WEIR_ELIMIT);
	/* children that have ended count until they are released */
	CU_ASSERT_EQUAL(weir_family_memory(family), (FIT + 1) * ONE);
	struct weir_event *c = weir_event_new(st, &probe_type);
	CU_ASSERT_EQUAL(weir_child(st, ev[0], KID, &c), WEIR_ELIMIT);
	weir_await(st, &ev[0], next_free);
}

static void par_fans(struct weir_stage *st, struct weir_event **ev)
{
	make(st, *ev, 2 * FIT);
	weir_await(st, ev, next_sees);
}

/* The bound is met in the middle of a fan-out, by a family of its own and by the graph's. */
static void test_fan_out(void)
{
	for (int i = 0; i < 2; i++) {
		struct weir_spec *spec = rig_spec("t.par");
		if (i == 1)
			spec->family_bytes = (FIT + 1) * ONE;
		begin(spec, par_fans, i == 0 ? (FIT + 1) * ONE : 0);
		offer_member(0);
		FIXTURE_AWAIT(atomic_load(&n_next) == 1);
		struct weir_stage_view v = stage_view(g, "par");
		CU_ASSERT_EQUAL(v.children_refused, FIT + 2);
		CU_ASSERT_EQUAL(v.spawned, 3 * FIT + 2);
		CU_ASSERT_EQUAL(v.joined, 2 * FIT);
		CU_ASSERT_EQUAL(atomic_load(&n_kid), 2 * FIT);
		CU_ASSERT_EQUAL(probes[0].status, WEIR_ELIMIT);
		end(3 * FIT + 3);
	}
}

static void par_one(struct weir_stage *st, struct weir_event **ev)
{
	rig_child(st, *ev, KID);
	weir_await(st, ev, next_ends);
}

/* The default of the graph changes while families exist. An event in no family is not bounded. */
static void test_live(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	spec->family_bytes = ONE;
	begin(spec, par_one, 0);
	offer_member(0);
	FIXTURE_AWAIT(fixture_ended() == 2);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_ELIMIT);
	FIXTURE_AWAIT(weir_family_memory(family) == 0);
	atomic_store(&g->payloads->family_limit, 2 * ONE);
	offer_member(1);
	FIXTURE_AWAIT(fixture_ended() == 4);
	CU_ASSERT_EQUAL(probes[1].status, WEIR_OK);
	atomic_store(&g->payloads->family_limit, 0);
	rig_offer(2);
	FIXTURE_AWAIT(fixture_ended() == 6);
	CU_ASSERT_EQUAL(probes[2].status, WEIR_OK);
	end(6);
}

static void kid_makes(struct weir_stage *st, struct weir_event **ev)
{
	(void)st;
	/* the race counts in the family around it */
	CU_ASSERT_PTR_NOT_EQUAL(weir_family_of(*ev), family);
	CU_ASSERT_EQUAL(weir_family_memory(weir_family_of(*ev)), weir_family_memory(family) - ONE);
}

static void par_races(struct weir_stage *st, struct weir_event **ev)
{
	make(st, *ev, FIT + 1);
	weir_await_first(st, ev, next_ends);
}

static void test_race(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	spec->family_bytes = ONE; /* does not bind families with a bound of their own */
	fixture_set(&spec->stages[0], "threads.max", "1");
	begin(spec, par_races, (FIT + 1) * ONE);
	on_kid = kid_makes;
	offer_member(0);
	FIXTURE_AWAIT(fixture_ended() == FIT + 2);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_OK);
	end(FIT + 2);
}

/* ---- the ends of families ---- */

static void par_many(struct weir_stage *st, struct weir_event **ev)
{
	make(st, *ev, FIT + 2);
	weir_await(st, ev, next_ends);
}

static void steer(const char *stage, enum weir_steer how)
{
	char why[256];

	CU_ASSERT_EQUAL_FATAL(weir_graph_steer(g, stage, how, why, sizeof(why)), 0);
}

/* The family ends while its members wait in a queue. */
static void test_cancelled(void)
{
	begin(rig_spec("t.par"), par_many, (FIT + 1) * ONE);
	steer("kid", WEIR_STEER_PAUSE);
	offer_member(0);
	FIXTURE_AWAIT(queue_length(&weir_graph_stage(g, "kid")->sink.queue) == FIT);
	weir_family_end(family);
	CU_ASSERT_EQUAL(weir_family_memory(family), (FIT + 1) * ONE);
	steer("kid", WEIR_STEER_RUN);
	FIXTURE_AWAIT(fixture_ended() == FIT + 3);
	CU_ASSERT_EQUAL(atomic_load(&n_kid), 0);
	CU_ASSERT_EQUAL(probes[0].status, WEIR_ECANCELLED);
	end(FIT + 3);
}

static void par_dies(struct weir_stage *st, struct weir_event **ev)
{
	make(st, *ev, FIT + 2);
	pthread_exit(NULL);
}

static void test_died(void)
{
	begin(rig_spec("t.par"), par_dies, (FIT + 1) * ONE);
	for (int i = 0; i < 3; i++) {
		offer_member(i);
		FIXTURE_AWAIT(fixture_ended() == (uint64_t)(FIT + 3) * (i + 1));
		CU_ASSERT_EQUAL(probes[i].status, WEIR_EDIED);
		FIXTURE_AWAIT(weir_family_memory(family) == 0);
	}
	end(3 * (FIT + 3));
}

static void test_drained(void)
{
	struct weir_drain_report r;

	begin(rig_spec("t.par"), par_many, (FIT + 1) * ONE);
	steer("kid", WEIR_STEER_PAUSE);
	offer_member(0);
	FIXTURE_AWAIT(queue_length(&weir_graph_stage(g, "kid")->sink.queue) == FIT);
	weir_thread_detach();
	weir_graph_drain(g, 0, &r);
	CU_ASSERT_EQUAL(r.law_error, 0);
	CU_ASSERT_EQUAL(fixture_ended(), FIT + 3);
	weir_graph_free(g);
	CU_ASSERT_EQUAL(weir_family_memory(family), 0);
	weir_family_put(family);
}

/* ---- payloads ---- */

static struct weir_event *make_laden(struct weir_stage *st, struct weir_family *f)
{
	struct weir_event *ev = weir_event_new(st, &laden_type);

	CU_ASSERT_EQUAL(weir_family_join(f, ev), 0);
	return ev;
}

static void par_payloads(struct weir_stage *st, struct weir_event **ev)
{
	const uint64_t base = sizeof(struct laden);
	struct weir_event *c = make_laden(st, family);

	(void)ev;
	void *p = weir_payload_new(st, c, &small_type);
	CU_ASSERT_PTR_NOT_NULL_FATAL(p);
	CU_ASSERT_EQUAL(weir_family_memory(family), base + SMALL_SIZE);
	CU_ASSERT_PTR_NULL(weir_payload_new(st, c, &big_type));
	weir_family_set_memory(family, base + SMALL_SIZE + BIG_SIZE);
	CU_ASSERT_PTR_NOT_NULL_FATAL(weir_payload_new(st, c, &big_type));
	CU_ASSERT_EQUAL(weir_payload_reserve(st, p, 1), WEIR_ELIMIT);
	weir_payload_drop(c, &big_type);
	CU_ASSERT_EQUAL(weir_payload_reserve(st, p, BIG_SIZE + 1), WEIR_ELIMIT);
	CU_ASSERT_EQUAL(weir_payload_reserve(st, p, BIG_SIZE), 0);
	CU_ASSERT_EQUAL(weir_family_memory(family), base + SMALL_SIZE + BIG_SIZE);
	CU_ASSERT_EQUAL(weir_payload_reserve(st, p, 500), 0);
	CU_ASSERT_EQUAL(weir_family_memory(family), base + SMALL_SIZE + 500);
	/* over the budget of the graph: nothing more counts in the family either */
	weir_family_set_memory(family, UINT64_MAX);
	CU_ASSERT_EQUAL(weir_payload_reserve(st, p, 1 << 20), WEIR_ENOMEM);
	CU_ASSERT_EQUAL(weir_family_memory(family), base + SMALL_SIZE + 500);
	weir_payload_reserve(st, p, 0);
	CU_ASSERT_EQUAL(weir_family_memory(family), base + SMALL_SIZE);
	weir_event_finish(&c, WEIR_OK);
	CU_ASSERT_EQUAL(weir_family_memory(family), 0);
}

static void par_moves(struct weir_stage *st, struct weir_event **ev)
{
	const uint64_t base = sizeof(struct laden);
	struct weir_family *within = weir_family_new(family), *other = weir_family_new(NULL);
	struct weir_event *a = make_laden(st, within), *b = make_laden(st, other), *c, *none;

	(void)ev;
	weir_payload_reserve(st, weir_payload_new(st, a, &small_type), 50);
	void *p = weir_payload_take(a, &small_type);
	weir_event_finish(&a, WEIR_OK);
	CU_ASSERT_EQUAL(weir_family_memory(within), SMALL_SIZE + 50);
	weir_family_set_memory(other, base + SMALL_SIZE + 49);
	CU_ASSERT_EQUAL(weir_payload_put(b, &p), WEIR_ELIMIT);
	CU_ASSERT_PTR_NOT_NULL(p);
	CU_ASSERT_EQUAL(weir_family_memory(within), SMALL_SIZE + 50);
	CU_ASSERT_EQUAL(weir_family_memory(family), SMALL_SIZE + 50);
	CU_ASSERT_EQUAL(weir_family_memory(other), base);
	weir_family_set_memory(other, base + SMALL_SIZE + 50);
	CU_ASSERT_EQUAL(weir_payload_put(b, &p), 0);
	CU_ASSERT_EQUAL(weir_family_memory(within), 0);
	CU_ASSERT_EQUAL(weir_family_memory(family), 0);
	CU_ASSERT_EQUAL(weir_family_memory(other), base + SMALL_SIZE + 50);
	/* to an event in no family, which joins one later, with its payload */
	p = weir_payload_take(b, &small_type);
	none = weir_event_new(st, &laden_type);
	CU_ASSERT_EQUAL(weir_payload_put(none, &p), 0);
	CU_ASSERT_EQUAL(weir_family_memory(other), base);
	weir_family_set_memory(family, base + SMALL_SIZE + 49);
	CU_ASSERT_EQUAL(weir_family_join(family, none), WEIR_ELIMIT);
	CU_ASSERT_EQUAL(weir_family_memory(family), 0);
	weir_family_set_memory(family, base + SMALL_SIZE + 50);
	CU_ASSERT_EQUAL(weir_family_join(within, none), 0);
	CU_ASSERT_EQUAL(weir_family_memory(family), base + SMALL_SIZE + 50);
	/* from one family to the one around it, which is full */
	p = weir_payload_take(none, &small_type);
	weir_family_set_memory(family, 2 * base + SMALL_SIZE + 50);
	c = make_laden(st, family);
	CU_ASSERT_EQUAL(weir_payload_put(c, &p), 0);
	CU_ASSERT_EQUAL(weir_family_memory(within), base);
	CU_ASSERT_EQUAL(weir_family_memory(family), 2 * base + SMALL_SIZE + 50);
	/* the payload is the last one that refers to its family */
	p = weir_payload_take(c, &small_type);
	weir_event_finish(&b, WEIR_OK);
	weir_event_finish(&c, WEIR_OK);
	weir_event_finish(&none, WEIR_OK);
	CU_ASSERT_EQUAL(weir_family_memory(within), 0);
	weir_family_put(within);
	weir_family_put(other);
	weir_payload_free(p);
}

static void test_payloads(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	spec->payload_bytes = BIG_SIZE;
	begin(spec, par_payloads, sizeof(struct laden) + SMALL_SIZE);
	rig_offer(0);
	FIXTURE_AWAIT(fixture_ended() == 2);
	struct weir_stage_view v = stage_view(g, "par");
	CU_ASSERT_EQUAL(v.payload_refused[WEIR_PAYLOAD_FAMILY], 3);
	CU_ASSERT_EQUAL(v.payload_refused[WEIR_PAYLOAD_BUDGET], 1);
	end(2);
}

static void test_moved(void)
{
	begin(rig_spec("t.par"), par_moves, 0);
	rig_offer(0);
	end(5);
}

/* ---- many threads ---- */

static atomic_bool over;

static void kid_looks(struct weir_stage *st, struct weir_event **ev)
{
	(void)st;
	(void)ev;
	if (weir_family_memory(family) > (FIT + 1) * ONE * 2)
		atomic_store(&over, true);
}

static void next_more(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (++((struct probe *)ev[i])->seq > 300) {
			weir_event_finish(&ev[i], WEIR_OK);
			continue;
		}
		for (int k = 0; k < 2 * FIT; k++)
			rig_child(st, ev[i], KID);
		weir_await(st, &ev[i], next_more);
	}
}

static void par_more(struct weir_stage *st, struct weir_event **ev)
{
	struct weir_event *e = *ev;

	*ev = NULL;
	next_more(st, &e, 1);
}

/* Events of several threads compete for the memory of a family. It never has more. */
static void test_threads(void)
{
	struct weir_spec *spec = rig_spec("t.par");

	for (int i = 0; i < 3; i += 2) {
		fixture_set(&spec->stages[i], "threads.min", "4");
		fixture_set(&spec->stages[i], "threads.max", "4");
	}
	begin(spec, par_more, (FIT + 1) * ONE * 2);
	on_kid = kid_looks;
	atomic_store(&over, false);
	for (int i = 0; i < 6; i++)
		join(i);
	for (int i = 0; i < 6; i++)
		rig_offer(i);
	for (int i = 0; i < 6; i++)
		FIXTURE_AWAIT(atomic_load(&probes[i].finishes) == 1);
	CU_ASSERT_FALSE(atomic_load(&over));
	struct weir_stage_view v = stage_view(g, "par");
	CU_ASSERT(v.children_refused > 0);
	end(v.spawned + 6);
}

static void test_register(void)
{
	rig_register();
}

CUNIT_MAIN("family memory", {"register", test_register}, {"members", test_members},
    {"nested", test_nested}, {"fan-out", test_fan_out}, {"live", test_live}, {"race", test_race},
    {"cancelled", test_cancelled}, {"died", test_died}, {"drained", test_drained},
    {"payloads", test_payloads}, {"moved", test_moved}, {"threads", test_threads})
