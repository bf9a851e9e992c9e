/* SPDX-License-Identifier: MIT */
/*
 * torture_replicas [producers=2] [seconds=1] [seed=1]
 *
 * Replicated stages under torture. Producers send events through three stages of a core group, all
 * with a state per core. Handlers hold events, requeue them, and end their threads; cores leave and
 * come back, or each is a copy of the group, whose events must stay there; stages are paused; graphs
 * are drained with and without time. Each round builds a new graph with a random schedule and random
 * limits.
 *
 * Checks that each event ends exactly once and the law holds, that no two threads use one replica at
 * once (its members are not atomic, so ThreadSanitizer sees that, too), that the events that the
 * replicas have counted are those that were handled, and that each replica that was made is freed.
 * Prints the number of rounds and events.
 */
#include "fixture/graph/graph.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/task.h"
#include "graph/graph.h"
#include "sched/cores.h"
#include "stage/replica.h"

#define PRODUCERS_MAX 8
#define EVENTS        3000 /* of a producer in a round */

/* State of a replica; only its core's thread may use it. */
struct own {
	int users, number;
	unsigned seed;
	uint64_t handled;
	struct weir_event *held;
};

static atomic_ullong handled, counted, wrong;
static atomic_int made, freed;
static atomic_uint seeds;
static bool deadly, holding, requeuing, copies;

static void expect(bool ok, const char *what)
{
	if (ok)
		return;
	atomic_fetch_add(&wrong, 1);
	fprintf(stderr, "torture_replicas: %s\n", what);
}

static struct own *enter(struct weir_stage *st)
{
	struct own *own = weir_state(st);

	expect(own->users++ == 0, "two threads are in one replica");
	return own;
}

static int own_init(struct weir_stage *st, struct weir_err *err)
{
	struct own *own = enter(st);

	(void)err;
	own->number = replica_entered() + 1;
	own->seed = atomic_fetch_add(&seeds, 1);
	atomic_fetch_add(&made, 1);
	own->users--;
	return 0;
}

static void release(struct weir_stage *st, struct own *own)
{
	while (own->held) {
		struct weir_event *ev = own->held;
		own->held = ev->next;
		weir_emit(st, 0, &ev);
	}
}

static void own_fini(struct weir_stage *st)
{
	struct own *own = enter(st);

	expect(!own->held, "a replica still holds events");
	atomic_fetch_add(&counted, own->handled);
	atomic_fetch_add(&freed, 1);
	own->users--;
}

static void own_thread_fini(struct weir_stage *st)
{
	if (!weir_state(st)) /* the thread of the drain, or a producer */
		return;
	struct own *own = enter(st);
	release(st, own);
	own->users--;
}

static void own_stop(struct weir_stage *st, int64_t until_ns)
{
	struct own *own = enter(st);

	(void)until_ns;
	release(st, own);
	own->users--;
}

/* With copies, each of one core, an event stays on the core that has taken it first. */
static void look(const struct own *own, struct probe *p)
{
	if (p->producer == 0)
		p->producer = own->number;
	expect(!copies || p->producer == own->number, "an event has left its copy");
}

/* Sleep for 20 ms, so that a spare thread stands in for the core. */
static void doze(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void own_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct own *own = enter(st);

	for (int i = 0; i < n; i++) {
		unsigned r = (unsigned)rand_r(&own->seed) % 4000;
		look(own, (struct probe *)ev[i]);
		if (deadly && r == 0) {
			own->users--;
			pthread_exit(NULL);
		}
		if (r == 3999)
			doze();
		if (requeuing && r < 400) {
			weir_requeue(st, &ev[i]);
			continue;
		}
		own->handled++;
		atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
		if (holding && r < 800) {
			struct weir_event *held = ev[i];
			weir_hold(st, &ev[i]);
			held->next = own->held;
			own->held = held;
			continue;
		}
		weir_emit(st, 0, &ev[i]);
	}
	if (rand_r(&own->seed) % 4 == 0)
		release(st, own);
	own->users--;
}

static const struct weir_stage_ops own_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_REPLICABLE,
    .name = "t.own",
    .summary = "counts in a state per core",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .state_size = sizeof(struct own),
    .init = own_init,
    .fini = own_fini,
    .thread_fini = own_thread_fini,
    .handle = own_handle,
    .stop = own_stop};

static int producers = 2;
static struct probe probes[PRODUCERS_MAX][EVENTS];

struct producer {
	pthread_t thread;
	struct weir_graph *g;
	struct probe *p;
	unsigned seed;
};

static void *produce(void *arg)
{
	struct producer *pr = arg;
	struct weir_stage *to = weir_graph_stage(pr->g, "a");

	weir_thread_attach(pr->g, "producer");
	for (int i = 0; i < EVENTS;) {
		int run = 1 + (int)((unsigned)rand_r(&pr->seed) % 64);
		run = run < EVENTS - i ? run : EVENTS - i;
		fixture_offer_all(to, pr->p + i, run, run);
		i += run;
		if (rand_r(&pr->seed) % 8 == 0)
			sched_yield();
	}
	weir_thread_detach();
	return NULL;
}

static void add_stage(
    struct weir_spec *spec, const char *name, const char *use, const char *to, unsigned *seed)
{
	static const char *const limits[] = {"8", "100", "20000"};
	static const char *const largest[] = {"1", "7", "64"};
	struct weir_stage_spec *s = fixture_stage(spec, name, use, to);

	weir_spec_text(&s->group, "core");
	weir_spec_text(&s->admission.policy, "none");
	/* held events have slots, too: with few, the producers would wait until a handler
	 * releases some */
	fixture_set(s, "queue.limit", holding ? "20000" : limits[rand_r(seed) % 3]);
	fixture_set(s, "cohort.max", largest[rand_r(seed) % 3]);
	if (strcmp(use, "t.own") == 0)
		fixture_set(s, "mode", "replicated");
}

static struct weir_spec *random_spec(unsigned *seed)
{
	struct weir_spec *spec = weir_spec_new("replicas");
	struct weir_group_spec *g = weir_spec_add_group(spec, "core");
	int n = 0;

	while (next_policy_at(n))
		n++;
	weir_spec_text(
	    &g->schedule, next_policy_at((int)((unsigned)rand_r(seed) % (unsigned)n))->name);
	g->order = rand_r(seed) % 2 ? WEIR_ORDER_NEWEST : WEIR_ORDER_ARRIVAL;
	g->gate.events = rand_r(seed) % 3;
	copies = task_cores() > 1 && rand_r(seed) % 2; /* each core is one */
	g->replicas = copies ? task_cores() : 1;
	deadly = rand_r(seed) % 2;
	holding = rand_r(seed) % 2;
	requeuing = rand_r(seed) % 2;
	add_stage(spec, "a", "t.own", "b", seed);
	add_stage(spec, "b", "t.own", "c", seed);
	add_stage(spec, "c", "t.own", "d", seed);
	add_stage(spec, "d", "t.end", NULL, seed);
	return spec;
}

static void pause_one(struct weir_graph *g, unsigned *seed)
{
	const char *name = (const char *[]){"a", "b", "c"}[rand_r(seed) % 3];
	char why[200];

	weir_graph_steer(g, name, WEIR_STEER_PAUSE, why, sizeof(why));
	sched_yield();
	weir_graph_steer(g, name, WEIR_STEER_RUN, why, sizeof(why));
}

/* Let cores leave and come back, and pause stages, until all events have ended or, with `hasty`,
 * for a few turns only. */
static void disturb(struct weir_graph *g, unsigned *seed, bool hasty, uint64_t all)
{
	struct pool *pool = weir_graph_stage(g, "a")->pool;
	int max = task_cores();

	pool_set_bounds(pool, copies ? max : 1, max); /* a copy keeps its cores */
	for (int turn = 0; hasty ? turn < 20 : fixture_ended() < all && turn < 2000; turn++) {
		if (rand_r(seed) % 4 == 0)
			pool_set_target(pool, 1 + (int)((unsigned)rand_r(seed) % (unsigned)max));
		if (rand_r(seed) % 8 == 0)
			pause_one(g, seed);
		nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	}
	pool_set_target(pool, max);
}

static uint64_t round_of(unsigned *seed)
{
	struct producer pr[PRODUCERS_MAX];
	struct weir_drain_report r;
	uint64_t all = (uint64_t)producers * EVENTS;

	fixture_reset();
	handled = counted = 0;
	made = freed = 0;
	struct weir_graph *g = fixture_start(random_spec(seed));
	for (int i = 0; i < producers; i++) {
		for (int k = 0; k < EVENTS; k++)
			probes[i][k] = (struct probe){.seq = (uint64_t)k};
		pr[i] = (struct producer){.g = g, .p = probes[i], .seed = (unsigned)rand_r(seed)};
		pthread_create(&pr[i].thread, NULL, produce, &pr[i]);
	}
	disturb(g, seed, rand_r(seed) % 2, all);
	for (int i = 0; i < producers; i++)
		pthread_join(pr[i].thread, NULL);
	weir_graph_drain(g, rand_r(seed) % 3 == 0 ? 0 : 60000000000LL, &r);
	expect(r.law_error == 0 && r.lost == 0, "the law does not hold");
	weir_graph_free(g);
	expect(fixture_ended() == all, "events are lost");
	for (int i = 0; i < producers; i++)
		for (int k = 0; k < EVENTS; k++)
			expect(atomic_load(&probes[i][k].finishes) == 1, "an event ended twice");
	expect(atomic_load(&counted) == atomic_load(&handled), "replicas have not counted all");
	expect(atomic_load(&made) == 3 * task_cores() && atomic_load(&freed) == 3 * task_cores(),
	    "a replica was not made or not freed");
	return all;
}

static int64_t seconds_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

int main(int argc, char **argv)
{
	int seconds = argc > 2 ? atoi(argv[2]) : 1, rounds = 0;
	unsigned seed = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	uint64_t events = 0;

	producers = argc > 1 ? atoi(argv[1]) : 2;
	producers = producers < 1 ? 1 : producers > PRODUCERS_MAX ? PRODUCERS_MAX : producers;
	weir_log_set_fd(-1); /* deaths and pauses are logged */
	fixture_register(&own_ops);
	fixture_register(&end_ops);
	for (int64_t end = seconds_now() + seconds; rounds < 1 || seconds_now() < end; rounds++)
		events += round_of(&seed);
	printf("%d rounds, %llu events, %llu wrong\n", rounds, (unsigned long long)events,
	    (unsigned long long)wrong);
	return wrong != 0;
}
