/* SPDX-License-Identifier: MIT */
/*
 * The n-th allocation or thread creation fails in the life of a graph whose events have children, wait
 * and are in families: in stages with a pool, with a loop, inline and with partitions. Each event that
 * was made ends once, and the books of all stages agree.
 */
#include "fault/lives.h"

#define LIFE 60   /* events that are offered */
#define MADE 1000 /* `producer` of events that a stage has made */

static atomic_int made, made_ended;
static struct weir_family
    *all; /* contains the other families; NULL if there was no memory for it */

static void count_end(struct probe *p, int status)
{
	(void)status;
	atomic_fetch_add(&made_ended, p->producer == MADE);
}

/* ---- stages ---- */

static void give_children(struct weir_stage *st, struct weir_event *ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct weir_event *c = weir_event_new(st, &probe_type);
		struct probe *p = (struct probe *)c;
		if (p) {
			p->producer = MADE;
			p->seq = (uint64_t)i;
			atomic_fetch_add(&made, 1);
		}
		weir_child(st, ev, 0, &c);
	}
}

static void next_moves(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		for (const struct weir_event *c = weir_ended(ev[i]); c; c = c->next)
			CU_ASSERT_EQUAL(c->state, WEIR_EVENT_FINISHED);
		weir_emit(st, 1, &ev[i]);
	}
}

static void next_splits(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		give_children(st, ev[i], 2);
		weir_await(st, &ev[i], next_moves);
	}
}

static void split(struct weir_stage *st, struct weir_event **slot)
{
	struct weir_family *f;
	struct weir_event *ev = *slot;
	uint64_t ticket;

	switch (((struct probe *)ev)->seq++ % 5) {
	case 0:
		give_children(st, ev, 3);
		weir_await(st, slot, next_splits);
		break;
	case 1:
		give_children(st, ev, 1); /* an orphan */
		ticket = weir_wait(st, slot, next_splits, WEIR_NO_DEADLINE);
		weir_resume(st, ticket);
		break;
	case 2:
		give_children(st, ev, 2);
		weir_emit(st, 1, slot);
		break;
	case 3:
		weir_hold(st, slot);
		give_children(st, ev, 2);
		weir_await(st, &ev, next_moves);
		break;
	default:
		f = weir_family_of(ev) ? NULL : weir_family_new(all);
		weir_family_join(f, ev);
		give_children(st, ev, 2);
		weir_await(st, slot, next_moves);
		weir_family_end(f);
		weir_family_put(f);
	}
}

static void split_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		split(st, &ev[i]);
}

/* A child with an odd number has children, too. */
static void kid_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		if (((struct probe *)ev[i])->seq % 2 == 1) {
			give_children(st, ev[i], 2);
			weir_await(st, &ev[i], next_moves);
		} else {
			weir_emit(st, 1, &ev[i]);
		}
	}
}

static const struct weir_outlet outlets[] = {{"kid", &probe_type, false, "children"},
    {"on", &probe_type, false, "the rest"}, {.name = NULL}};
static const struct weir_stage_ops split_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.split",
    .summary = "has children and waits",
    .accepts = &probe_type,
    .outlets = outlets,
    .handle = split_handle};
static const struct weir_stage_ops kid_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.kid",
    .summary = "is a child",
    .accepts = &probe_type,
    .outlets = outlets,
    .handle = kid_handle};

static struct weir_spec *life_spec(void)
{
	static const char *const names[] = {"pool", "loop", "inline", "parts", "kid", "end"};
	struct weir_spec *spec = weir_spec_new("life");

	for (int i = 0; i < 5; i++) {
		struct weir_stage_spec *s = fixture_stage(spec, names[i],
		    i == 1   ? "t.splitter"
		    : i == 4 ? "t.kid"
			     : "t.split",
		    NULL);
		CU_ASSERT_EQUAL_FATAL(weir_spec_link(s, "kid", i < 4 ? "kid" : "end", false), 0);
		CU_ASSERT_EQUAL_FATAL(
		    weir_spec_link(s, "on", i < 4 ? names[i + 1] : "end", false), 0);
		if (i < 4) {
			fixture_set(s, "slo", "1h");
			fixture_set(s, "width.max", "100");
		}
		if (i != 2) {
			fixture_set(s, "threads.min", "2");
			fixture_set(s, "threads.max", "2");
		}
		s->inlined = i == 2;
		if (i == 3) {
			s->mode = WEIR_MODE_PARTITIONED;
			weir_spec_text(&s->key, "event");
		}
	}
	fixture_stage(spec, "end", "t.end", NULL);
	return spec;
}

/* ---- whole lives ---- */

static void traffic(struct weir_graph *g)
{
	if (weir_thread_attach(g, "test") != 0)
		return;
	prepare(LIFE);
	atomic_store(&made, 0);
	atomic_store(&made_ended, 0);
	fixture_on_finish = count_end;
	all = weir_family_new(NULL);
	/* seven members: some children are refused */
	weir_family_set_memory(all, 7 * sizeof(struct probe));
	for (int i = 0; i < LIFE; i++) {
		struct weir_event *ev = &probes[i].ev;
		probes[i].seq = (uint64_t)i;
		weir_event_init(ev, &probe_type, 1);
		ev->key = (uint64_t)i;
		if (weir_offer(weir_graph_stage(g, "pool"), &ev, 1, NULL) == 0)
			weir_event_finish(&ev, WEIR_EQUEUE);
	}
	FIXTURE_AWAIT(fixture_ended() == LIFE + (uint64_t)atomic_load(&made_ended) &&
		      atomic_load(&made) == atomic_load(&made_ended));
	check_each_once(LIFE);
	weir_thread_detach();
}

/* All members have ended: nothing counts in their families. */
static void check_memory(void)
{
	CU_ASSERT_EQUAL(weir_family_memory(all), 0);
	weir_family_put(all);
	all = NULL;
}

static void check_books(struct weir_graph *g)
{
	struct weir_graph_view *v;

	CU_ASSERT_EQUAL_FATAL(weir_graph_view(g, &v), 0);
	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		CU_ASSERT_EQUAL(s->spawned, s->joined + s->orphaned + s->cancelled);
		CU_ASSERT_EQUAL(s->awaiting, 0);
		CU_ASSERT_EQUAL(s->in_flight, 0);
		CU_ASSERT_EQUAL(atomic_load(&g->stages[i]->sink.queue.keep.count[0]), 0);
	}
	weir_graph_view_free(v);
}

static const struct lives lives = {
    .spec = life_spec, .traffic = traffic, .check = check_books, .end = check_memory};

static void test_allocations(void)
{
	lives_sweep(&lives, &fault_alloc_in, 100);
}

/* From the n-th allocation after the start on, all fail until the events have ended. */
static void test_none_left(void)
{
	struct weir_drain_report r;
	long n = 0, fired;

	atomic_store(&fault_of_mine, false);
	weir_log_set_fd(-1);
	do {
		struct weir_graph *g = fixture_start(life_spec());
		atomic_store(&fault_fired, 0);
		atomic_store(&fault_goes_on, true);
		atomic_store(&fault_alloc_in, n++);
		traffic(g);
		fired = atomic_load(&fault_fired);
		atomic_store(&fault_goes_on, false);
		atomic_store(&fault_alloc_in, -1);
		weir_graph_drain(g, 600 * NS_PER_S, &r);
		CU_ASSERT_EQUAL(r.law_error, 0);
		check_books(g);
		weir_graph_free(g);
		check_memory();
	} while (fired > 0 && n < 200);
	printf("(%ld lives) ", n);
	CU_ASSERT(n >= 10);
	weir_log_set_fd(2);
}

static void test_threads(void)
{
	lives_sweep(&lives, &fault_thread_in, 9);
}

int main(void)
{
	static const struct cunit_case cases[] = {{"n-th allocation", test_allocations},
	    {"none left", test_none_left}, {"n-th thread", test_threads}};
	static struct weir_stage_ops splitter_ops;

	splitter_ops = split_ops;
	splitter_ops.name = "t.splitter";
	splitter_ops.flags |= WEIR_STAGE_LOOP;
	fixture_register(&split_ops);
	fixture_register(&splitter_ops);
	fixture_register(&kid_ops);
	fixture_register(&end_ops);
	return cunit_run("operations and failures", cases, sizeof(cases) / sizeof(cases[0]));
}
