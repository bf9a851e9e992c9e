/* SPDX-License-Identifier: MIT */
/*
 * torture_hold [rounds=4] [seconds=1] [seed=1]
 *
 * Three stages that hold events, in a row: one with a pool, one with a loop (WEIR_STAGE_LOOP), and
 * one that may be inline. Modes, placements and batches differ from round to round, and the graph
 * of each round takes over from the one before. Handlers and `expired` hold with tickets that
 * expire soon or never, hold without, emit to the next stage, requeue, refuse, finish, leave events
 * behind and end their threads. Enders claim from other threads, also with tickets that are void.
 * Meanwhile the operator pauses and drains stages and changes their bounds. Graphs drain with and
 * without grace, in every second round under load.
 *
 * An event has one owner at a time: each owner writes to it, so ThreadSanitizer notices two. In the
 * end each event has ended once, and the counters of each graph balance.
 */
#include <inttypes.h>
#include <pthread.h>

#include "fixture/graph/graph.h"

#include "base/clock.h"
#include "graph/graph.h"
#include "stage/thread.h"
#include "torture/hold_stage.h"

#define PRODUCERS 3
#define ENDERS    2
#define KEEPERS   3
#define PROBES    6000 /* of each producer */

static const char *const names[KEEPERS] = {"pool", "loop", "last"};

struct side;

struct actor {
	struct side *side;
	pthread_t thread;
	unsigned seed;
	int number;
	atomic_uint_fast64_t done;
	struct probe *probes;
	bool *used;
};

/* A graph and the threads that use it. */
struct side {
	struct weir_graph *g;
	struct weir_stage *stage[KEEPERS];
	atomic_bool stop_offering, stop_ending;
	struct actor producer[PRODUCERS], ender[ENDERS];
};

static uint64_t offered; /* in the rounds that have ended */

/* ---- threads ---- */

static void *offer(void *arg)
{
	struct actor *a = arg;
	struct side *s = a->side;
	int at = 0;

	weir_thread_attach(s->g, "producer");
	for (; !atomic_load(&s->stop_offering); at = (at + 1) % PROBES) {
		struct probe *p = &a->probes[at];
		if (a->used[at] && atomic_load(&p->finishes) == 0) { /* still in the graph */
			sched_yield();
			continue;
		}
		struct weir_event *ev = &p->ev;
		*p = (struct probe){.seq = (uint64_t)at};
		weir_event_init(ev, &probe_type, 1);
		ev->key = (uint64_t)at;
		if (hold_draw(&a->seed, 4) == 0)
			ev->deadline_ns =
			    clock_now_ns() + (int64_t)hold_draw(&a->seed, 50) * NS_PER_MS;
		a->used[at] = true;
		if (weir_offer(s->stage[a->number % KEEPERS], &ev, 1, NULL) == 0)
			weir_event_finish(&ev, WEIR_EQUEUE);
		a->done++;
	}
	weir_thread_detach();
	return NULL;
}

static void wake_nobody(struct thread_link *link)
{
	(void)link;
}

static void *end(void *arg)
{
	struct actor *a = arg;
	struct side *s = a->side;
	struct thread_link link = {.wake = wake_nobody};

	/* the first is like an I/O thread: it takes events of inline stages itself */
	thread_enter(s->g, "ender", s->stage[0], a->number == 0 ? &link : NULL);
	for (unsigned i = 0; !atomic_load(&s->stop_ending); i++) {
		struct weir_stage *st = s->stage[i % KEEPERS];
		struct weir_event *ev;
		for (int n = 0; n < 32 && (ev = hold_take(st)); n++) {
			hold_own(ev);
			hold_end_one(st, &ev, &a->seed);
		}
		for (int n = 0; n < 32; n++)
			if ((ev = hold_claim(st)))
				hold_end_one(st, &ev, &a->seed);
		weir_thread_flush();
		sched_yield();
	}
	weir_thread_detach();
	return NULL;
}

/* ---- rounds ---- */

static void place(struct weir_stage_spec *st, unsigned draw)
{
	fixture_set(st, "queue.limit", "8000");
	fixture_set(st, "width.max", "3000");
	fixture_set(st, "width.policy", draw & 1 ? "static" : "weir");
	fixture_set(st, "slo", "1h");
	fixture_set(st, "threads.min", draw & 2 ? "1" : "2");
	fixture_set(st, "threads.max", "3");
	switch (draw / 4 % 4) {
	case 0:
		st->inlined = true;
		return;
	case 1:
		st->mode = WEIR_MODE_EXCLUSIVE;
		break;
	case 2:
		st->mode = WEIR_MODE_PARTITIONED;
		weir_spec_text(&st->key, "event");
		break;
	default:
		break;
	}
	if (draw & 16) {
		fixture_set(st, "cohort.max", "8");
		fixture_set(st, "cohort.linger", "1ms");
	}
}

/* The first keeper is never inline, the others are in every fourth round. */
static struct weir_graph *build(unsigned *seed)
{
	struct weir_spec *spec = weir_spec_new("hold");

	for (int i = 0; i < KEEPERS; i++) {
		unsigned draw = hold_draw(seed, 32);
		struct weir_stage_spec *st = fixture_stage(spec, names[i],
		    i == 1 ? "t.looper" : "t.keeper", i + 1 < KEEPERS ? names[i + 1] : "end");
		place(st, i == 0 && draw / 4 % 4 == 0 ? draw + 12 : draw);
	}
	fixture_stage(spec, "end", "t.end", NULL);
	return fixture_build(spec);
}

static void begin(struct side *s, struct side *old, unsigned *seed)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));

	*s = (struct side){.g = build(seed)};
	int rc = old ? weir_graph_succeed(s->g, old->g, errs) : weir_graph_start(s->g, errs);
	if (rc != 0)
		hold_fault("start", rc);
	free(errs);
	for (int i = 0; i < KEEPERS; i++)
		s->stage[i] = weir_graph_stage(s->g, names[i]);
	for (int i = 0; i < PRODUCERS; i++) {
		struct actor *a = &s->producer[i];
		*a = (struct actor){.side = s,
		    .number = i,
		    .seed = hold_draw(seed, 1 << 20),
		    .probes = calloc(PROBES, sizeof(*a->probes)),
		    .used = calloc(PROBES, sizeof(bool))};
		pthread_create(&a->thread, NULL, offer, a);
	}
	for (int i = 0; i < ENDERS; i++) {
		s->ender[i] =
		    (struct actor){.side = s, .number = i, .seed = hold_draw(seed, 1 << 20)};
		pthread_create(&s->ender[i].thread, NULL, end, &s->ender[i]);
	}
}

static uint64_t done_by(const struct side *s)
{
	uint64_t n = 0;

	for (int i = 0; i < PRODUCERS; i++)
		n += atomic_load(&s->producer[i].done);
	return n;
}

static void operate_one(struct side *s, const char *name, unsigned *seed)
{
	static const char *const bounds[] = {"1", "7", "300", "3000"};
	char why[300];

	switch (hold_draw(seed, 8)) {
	case 0:
	case 1:
		weir_graph_set(
		    s->g, name, "width.max", bounds[hold_draw(seed, 4)], why, sizeof(why));
		break;
	case 2:
		weir_graph_set(
		    s->g, name, "width.min", bounds[hold_draw(seed, 2)], why, sizeof(why));
		break;
	case 3:
		weir_graph_set(
		    s->g, name, "threads.max", hold_draw(seed, 2) ? "2" : "3", why, sizeof(why));
		break;
	case 4:
	case 5:
		weir_graph_steer(s->g, name, (enum weir_steer)hold_draw(seed, 3), why, sizeof(why));
		break;
	default:
		weir_graph_steer(s->g, name, WEIR_STEER_RUN, why, sizeof(why));
	}
}

static void operate(struct side *s, unsigned *seed, int64_t until_ns)
{
	while (clock_now_ns() < until_ns) {
		struct weir_graph_view *v = NULL;
		uint64_t until = done_by(s) + 500;
		operate_one(s, names[hold_draw(seed, KEEPERS)], seed);
		if (weir_graph_view(s->g, &v) == 0)
			weir_graph_view_free(v);
		/* while queues are full and stages paused, nothing is offered */
		while (
		    done_by(s) < until && clock_now_ns() < until_ns && hold_draw(seed, 1000) != 0)
			sched_yield();
	}
}

static void stop_producers(struct side *s)
{
	atomic_store(&s->stop_offering, true);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(s->producer[i].thread, NULL);
}

static void check_stage(struct side *s, int i)
{
	struct weir_stage *st = s->stage[i];

	if (graph_in_flight(s->g, st->id) != 0)
		hold_fault("in flight", graph_in_flight(s->g, st->id));
	if (queue_kept_all(&st->sink.queue) != 0)
		hold_fault("still counted as in work", queue_kept_all(&st->sink.queue));
	if (graph_tickets_out(st) != 0)
		hold_fault("tickets", graph_tickets_out(st));
	if (atomic_load(&st->arriving) != 0)
		hold_fault("arriving", atomic_load(&st->arriving));
}

static void check_producer(struct actor *a)
{
	for (int i = 0; i < PROBES; i++)
		if (a->used[i] && atomic_load(&a->probes[i].finishes) != 1)
			hold_fault("an event ended so often", atomic_load(&a->probes[i].finishes));
	offered += atomic_load(&a->done);
	free(a->probes);
	free(a->used);
}

static void finish(struct side *s, unsigned *seed)
{
	static const int64_t grace_ns[] = {0, NS_PER_MS, 50 * NS_PER_MS, 60 * NS_PER_S};
	struct weir_drain_report r;
	bool under_load = hold_draw(seed, 2);
	int grace =
	    (int)hold_draw(seed, under_load ? 3 : 4); /* under load a graph is never quiet */

	if (!under_load)
		stop_producers(s);
	weir_graph_drain(s->g, grace_ns[grace], &r);
	if (r.left != 0)
		hold_fault("threads left behind", r.left);
	if (under_load)
		stop_producers(s);
	atomic_store(&s->stop_ending, true);
	for (int i = 0; i < ENDERS; i++)
		pthread_join(s->ender[i].thread, NULL);
	for (int i = 0; i < KEEPERS; i++)
		check_stage(s, i);
	weir_graph_free(s->g);
	for (int i = 0; i < PRODUCERS; i++)
		check_producer(&s->producer[i]);
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 4;
	double seconds = argc > 2 ? atof(argv[2]) : 1;
	unsigned seed = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	static struct side side[2];

	hold_register();
	fixture_register(&end_ops);
	weir_log_set_fd(-1); /* deaths and events left behind are intended */
	for (unsigned r = 0; r < rounds; r++) {
		struct side *s = &side[r % 2], *old = r > 0 ? &side[(r + 1) % 2] : NULL;
		begin(s, old, &seed);
		if (old)
			finish(old, &seed);
		operate(s, &seed, clock_now_ns() + (int64_t)(seconds * NS_PER_S));
	}
	finish(&side[(rounds + 1) % 2], &seed);
	printf("torture_hold: %" PRIu64 " events offered, %" PRIu64 " deaths, %" PRIu64
	       " claims, %" PRIu64 " in vain, %" PRIu64 " expiries: %s\n",
	    offered, (uint64_t)atomic_load(&hold_deaths), (uint64_t)atomic_load(&hold_claims),
	    (uint64_t)atomic_load(&hold_void_claims), (uint64_t)atomic_load(&hold_expiries),
	    atomic_load(&hold_faults) ? "wrong" : "fine");
	return atomic_load(&hold_faults) != 0;
}
