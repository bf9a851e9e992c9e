/* SPDX-License-Identifier: MIT */
/*
 * Operations against a model, in one thread: inline stages that decide at random what happens to each
 * event, and a driver that offers events, lets held ones go and ends families in between. The laws:
 *
 *   a parent gets its continuation once, after the last of its children has ended, and sees them all;
 *   no member of a family that has ended is passed to a handler, and all of them end;
 *   each event ends once, and the books of the stages agree.
 */
#include <weir/random.h>

#include "fixture/graph/probes.h"

#include "base/clock.h"
#include "graph/graph.h"

#define STAGES   4
#define STEPS    3000
#define SEEDS    100
#define HELD     200
#define FAMILIES 3

/* An event, and its model. */
struct item {
	struct weir_event ev;
	struct weir_op op;
	struct item *parent; /* of an awaited child */
	int n_children;      /* awaited */
	bool awaits, ended;
	int hops;
};

static uint64_t seed, drawn;
static struct weir_family *family[FAMILIES];
static struct item *held[HELD];
static int n_held, n_made, n_ended, n_joined, n_cancelled, n_wrong;

static int any(int n)
{
	return (int)(weir_random_at(seed, drawn++) % (uint64_t)n);
}

static void check(bool holds, int line)
{
	if (!holds && n_wrong++ == 0)
		fprintf(stderr, "seed %d: law broken at line %d\n", (int)seed, line);
}

#define CHECK(holds) check(holds, __LINE__)

static void item_ends(struct weir_event *ev, int status)
{
	struct item *it = (struct item *)ev;

	CHECK(!it->ended);
	CHECK(!it->awaits || status == WEIR_ECANCELLED);
	it->ended = true;
	n_cancelled += status == WEIR_ECANCELLED;
	n_ended++;
}

static const struct weir_event_type item_type = {.name = "t.item",
    .size = sizeof(struct item),
    .finish = item_ends,
    .op = offsetof(struct item, op)};

static void next(struct weir_stage *st, struct weir_event **ev, int n);

/* Give the event children, some of which cannot be sent. Returns their number. */
static int give(struct weir_stage *st, struct weir_event *ev)
{
	struct item *it = (struct item *)ev;
	int n = it->hops < 8 ? any(5) : 0;

	for (int i = 0; i < n; i++) {
		struct weir_event *c = weir_event_new(st, &item_type);
		((struct item *)c)->hops = it->hops + 1;
		((struct item *)c)->parent = it;
		weir_child(st, ev, any(8) == 0 ? 9 : any(2), &c);
		n_made++;
	}
	return n;
}

/* Do something with an event in a handler, or with a held one. */
static void act(struct weir_stage *st, struct weir_event **slot)
{
	struct item *it = (struct item *)*slot;
	bool running = (*slot)->state == WEIR_EVENT_RUNNING;
	int given = 0;

	it->hops++;
	if (!weir_family_of(*slot) && any(4) == 0)
		weir_family_join(family[any(FAMILIES)], *slot);
	if (any(3) == 0)
		given = give(st, *slot);
	switch (it->hops > 12 ? 0 : any(8)) {
	case 0:
		if (!running || any(4) > 0)
			weir_event_finish(slot, WEIR_OK);
		break; /* or it is left behind */
	case 1:
		weir_requeue(st, slot);
		break;
	case 2:
	case 3:
		if (running && n_held < HELD) {
			held[n_held++] = it;
			weir_hold(st, slot);
			break;
		} /* fall through */
	case 4:
		weir_emit(st, any(2), slot);
		break;
	default:
		it->n_children = given + give(st, *slot);
		it->awaits = true;
		weir_await(st, slot, next);
	}
}

static void handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		CHECK(!((struct item *)ev[i])->awaits && !weir_family_over(weir_family_of(ev[i])));
	for (int i = 0; i < n; i++)
		act(st, &ev[i]);
}

static void next(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct item *it = (struct item *)ev[i];
		int seen = 0;
		CHECK(it->awaits && !weir_family_over(weir_family_of(ev[i])));
		for (struct weir_event *c = weir_ended(ev[i]); c; c = c->next, seen++)
			CHECK(c->state == WEIR_EVENT_FINISHED && ((struct item *)c)->parent == it &&
			      !((struct item *)c)->ended);
		CHECK(seen == it->n_children);
		it->awaits = false;
		n_joined++;
	}
	for (int i = 0; i < n; i++)
		act(st, &ev[i]);
}

static const struct weir_outlet outlets[] = {
    {"a", &item_type, true, "one way"}, {"b", &item_type, true, "the other"}, {.name = NULL}};
static const struct weir_stage_ops mix_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.mix",
    .summary = "decides at random",
    .accepts = &item_type,
    .outlets = outlets,
    .handle = handle};

static struct weir_graph *start(void)
{
	static const char *const names[STAGES] = {"s3", "s2", "s1", "s0"};
	struct weir_spec *spec = weir_spec_new("model");

	for (int i = 0; i < STAGES; i++) {
		struct weir_stage_spec *s = fixture_stage(spec, names[i], "t.mix", NULL);
		s->inlined = true;
		fixture_set(s, "queue.limit", i % 2 ? "20" : "1000"); /* some refuse */
		if (i > 0 && weir_spec_link(s, "a", names[i - 1], false) != 0)
			abort();
		if (i > 1 && weir_spec_link(s, "b", names[i - 2], false) != 0)
			abort();
	}
	return fixture_start(spec);
}

static void end_family(int i)
{
	weir_family_end(family[i]);
	weir_family_put(family[i]);
	family[i] = weir_family_new(any(2) ? family[(i + 1) % FAMILIES] : NULL);
}

/* Let a held event go, unless its family has ended: then it is for the stage to end it. */
static void let_go(struct weir_graph *g, int i)
{
	struct weir_event *ev = &held[i]->ev;
	struct weir_stage *st = g->stages[ev->stage];

	held[i] = held[--n_held];
	if (weir_family_over(weir_family_of(ev)))
		weir_event_finish(&ev, WEIR_ECANCELLED);
	else
		act(st, &ev);
	weir_thread_flush();
}

static void step(struct weir_graph *g)
{
	struct weir_stage *to = weir_graph_stage(g, "s0");

	if (n_held > 0 && any(2)) {
		let_go(g, any(n_held));
	} else if (any(10) == 0) {
		end_family(any(FAMILIES));
	} else {
		struct weir_event *ev = weir_event_new(to, &item_type);
		n_made++;
		if (weir_offer(to, &ev, 1, NULL) == 0)
			weir_event_finish(&ev, WEIR_EQUEUE);
	}
}

static void check_books(struct weir_graph *g)
{
	struct weir_graph_view *v;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		CHECK(s->spawned == s->joined + s->orphaned + s->cancelled);
		CHECK(s->awaiting == 0 && s->in_flight == 0 && s->law_residual == 0);
		CHECK(atomic_load(&g->stages[i]->sink.queue.keep.count[0]) == 0);
	}
	weir_graph_view_free(v);
}

static void test_laws(void)
{
	weir_log_set_fd(-1);
	for (seed = 1; seed <= SEEDS; seed++) {
		struct weir_graph *g = start();
		drawn = 0;
		n_made = n_ended = n_joined = n_cancelled = n_wrong = 0;
		CU_ASSERT_EQUAL_FATAL(weir_thread_attach(g, "test"), 0);
		for (int i = 0; i < FAMILIES; i++)
			family[i] = weir_family_new(NULL);
		for (int i = 0; i < STEPS; i++)
			step(g);
		while (n_held > 0)
			let_go(g, 0);
		check_books(g);
		weir_thread_detach();
		for (int i = 0; i < FAMILIES; i++)
			weir_family_put(family[i]);
		CU_ASSERT_EQUAL(n_wrong, 0);
		CU_ASSERT_EQUAL(n_made, n_ended);
		CU_ASSERT(n_joined > 100 && n_cancelled > 100);
		finish_graph(g, 0);
	}
	weir_log_set_fd(2);
}

int main(void)
{
	static const struct cunit_case cases[] = {{"laws", test_laws}};

	fixture_register(&mix_ops);
	return cunit_run("op model", cases, 1);
}
