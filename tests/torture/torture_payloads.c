/* SPDX-License-Identifier: MIT */
/*
 * torture_payloads [producers=3] [seconds=3] [seed=1]
 *
 * A loop of three stages, one of them inline, whose handlers make payloads at random, read them, drop
 * them, take them, move them to other events, and reserve memory for them in a budget that is small.
 * Handlers requeue and hold events, let tickets expire, and end their thread; queues are short, events
 * have deadlines. Payloads that were taken are kept in a shelf, from which any thread puts them on
 * other events or frees them. Each graph is drained, with and without time. The laws:
 * - a payload has the bytes that its maker wrote, wherever it is found;
 * - what was made has been dropped exactly once at the end, and the budget is unused;
 * - every event has been finished exactly once, and the counters balance.
 */
#include <weir/random.h>

#include "fixture/graph/payloads.h"

#include "base/clock.h"
#include "event/payload.h"
#include "graph/graph.h"

#define PRODUCERS 8
#define WORKS     256
#define RUN       32
#define STAGES    3
#define SHELF     64
#define BUDGET    20000

/* A payload of each type begins with this. */
struct cargo {
	const struct weir_payload_type *type;
	uint64_t number, check;
	uint64_t reserved;
};

static atomic_long made, dropped;
static atomic_ullong faults, offered, deaths, refused;
static atomic_bool stop;
static struct laden *works[PRODUCERS];
static struct weir_graph *graph;
static pthread_mutex_t shelf_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cargo *shelf[SHELF];
static _Thread_local unsigned rnd_of_thread;

static void fault(const char *what, uint64_t a, uint64_t b)
{
	if (atomic_fetch_add(&faults, 1) < 10)
		fprintf(
		    stderr, "%s: %llu %llu\n", what, (unsigned long long)a, (unsigned long long)b);
}

static unsigned below(unsigned n)
{
	if (rnd_of_thread == 0)
		rnd_of_thread = (unsigned)(uintptr_t)&rnd_of_thread >> 4 | 1;
	return (unsigned)rand_r(&rnd_of_thread) % n;
}

/* ---- payloads ---- */

static uint64_t check_of(const struct cargo *c)
{
	return weir_random_at(c->number, (uint64_t)(uintptr_t)c->type);
}

static void inspect(const struct cargo *c, const struct weir_payload_type *type)
{
	if (c->type != type || c->check != check_of(c))
		fault("a payload has changed", c->number, 0);
}

static void drop(void *payload)
{
	struct cargo *c = payload;

	inspect(c, c->type);
	c->check = 0;
	atomic_fetch_add(&dropped, 1);
}

static const struct weir_payload_type types[] = {
    {.name = "a", .size = sizeof(struct cargo), .drop = drop},
    {.name = "b", .size = sizeof(struct cargo) + 100, .drop = drop},
    {.name = "c", .size = sizeof(struct cargo) + 1000, .drop = drop},
    {.name = "d", .size = sizeof(struct cargo), .drop = drop},
    {.name = "e", .size = WEIR_PAYLOAD_SMALL + 1, .drop = drop},
};
#define TYPES (sizeof(types) / sizeof(types[0]))

static void make(struct weir_stage *st, struct weir_event *ev)
{
	static atomic_ullong numbers;
	const struct weir_payload_type *type = &types[below(TYPES)];
	struct cargo *c = weir_payload_new(st, ev, type);

	if (!c) {
		atomic_fetch_add(&refused, 1);
		return;
	}
	c->type = type;
	c->number = atomic_fetch_add(&numbers, 1);
	c->check = check_of(c);
	atomic_fetch_add(&made, 1);
	if (below(2) && weir_payload_reserve(st, c, below(8000)) != 0)
		atomic_fetch_add(&refused, 1);
}

/* Exchange a payload of the event for one of the shelf. */
static void swap(struct weir_event *ev)
{
	struct cargo *c = weir_payload_take(ev, &types[below(TYPES)]);
	unsigned at = below(SHELF);

	pthread_mutex_lock(&shelf_lock);
	struct cargo *other = shelf[at];
	shelf[at] = c;
	pthread_mutex_unlock(&shelf_lock);
	void *payload = other;
	if (payload && weir_payload_put(ev, &payload) != 0)
		weir_payload_free(payload);
}

static void empty_shelf(void)
{
	for (int i = 0; i < SHELF; i++) {
		weir_payload_free(shelf[i]);
		shelf[i] = NULL;
	}
}

static void work_on(struct weir_stage *st, struct weir_event *ev)
{
	for (size_t i = 0; i < TYPES; i++) {
		struct cargo *c = weir_payload(ev, &types[i]);
		if (c)
			inspect(c, &types[i]);
	}
	for (unsigned i = below(3); i > 0; i--)
		make(st, ev);
	if (below(4) == 0)
		weir_payload_drop(ev, &types[below(TYPES)]);
	if (below(4) == 0)
		swap(ev);
}

/* The finish callback takes one now and then. */
static void finish(struct probe *p, int status)
{
	(void)status;
	if (atomic_load(&p->finishes) != 0)
		fault("finished more than once", p->seq, (uint64_t)p->producer);
	if (below(4) == 0)
		weir_payload_free(weir_payload_take(&p->ev, &types[below(TYPES)]));
	if (below(8) == 0)
		weir_payload_drop(&p->ev, &types[below(TYPES)]);
}

/* ---- stages ---- */

static void work(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		work_on(st, ev[i]);
		unsigned fate = below(40);
		if (fate < 20)
			weir_emit(st, 0, &ev[i]);
		else if (fate < 30)
			weir_event_finish(&ev[i], fate < 25 ? WEIR_OK : WEIR_EFAILED);
		else if (fate < 33)
			weir_requeue(st, &ev[i]);
		else if (fate < 37 && st->ops->flags & WEIR_STAGE_HOLDS)
			weir_hold_until(
			    st, &ev[i], clock_now_ns() + (int64_t)below(300) * NS_PER_US);
		else if (fate == 37)
			continue; /* left behind */
		else if (fate == 38 && below(100) == 0 && st->pool) {
			atomic_fetch_add(&deaths, 1);
			pthread_exit(NULL);
		} else
			weir_emit(st, 0, &ev[i]);
	}
}

static void expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++)
		if (below(2)) {
			work_on(st, ev[i]);
			weir_emit(st, 0, &ev[i]);
		}
}

static void came_back(struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason)
{
	(void)outlet, (void)reason;
	for (int i = 0; i < n; i++)
		if (below(2))
			work_on(st, ev[i]);
}

static const struct weir_outlet outlets[] = {{"out", &laden_type, true, ""}, {.name = NULL}};
static const struct weir_stage_ops work_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.work",
    .summary = "makes and moves payloads",
    .accepts = &laden_type,
    .outlets = outlets,
    .handle = work,
    .refused = came_back};
static const struct weir_stage_ops hold_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.hold",
    .summary = "the same, with tickets",
    .flags = WEIR_STAGE_HOLDS,
    .accepts = &laden_type,
    .outlets = outlets,
    .handle = work,
    .expired = expired,
    .refused = came_back};

static struct weir_graph *random_graph(void)
{
	static const char *const names[STAGES] = {"s0", "s1", "s2"}, *const limits[] = {
									 "4", "64", "2000"};
	static const char *const policies[] = {"none", "weir", "codel"};
	struct weir_spec *spec = weir_spec_new("torture");

	spec->payload_bytes = BUDGET;
	for (int i = 0; i < STAGES; i++) {
		struct weir_stage_spec *s =
		    weir_spec_add_stage(spec, names[i], i == 1 && below(2) ? "t.hold" : "t.work");
		weir_spec_link(s, "out", names[(i + 1) % STAGES], i == STAGES - 1);
		s->inlined = i == 2 && below(2);
		fixture_set(s, "admission.policy", s->inlined ? "none" : policies[below(3)]);
		if (!s->inlined)
			fixture_set(s, "queue.limit", limits[below(3)]);
		if (!s->inlined && below(3) == 0)
			fixture_set(s, "cohort.by", "seq");
	}
	return fixture_build(spec);
}

/* ---- load ---- */

static void *produce(void *arg)
{
	int id = (int)(intptr_t)arg, at = 0;
	static _Atomic uint64_t seqs;

	weir_thread_attach(graph, "producer");
	while (!atomic_load(&stop)) {
		struct weir_event *run[RUN];
		int n = 0, why = 0;
		for (int looks = 0; n < RUN && looks < WORKS; looks++, at = (at + 1) % WORKS) {
			struct laden *w = &works[id][at];
			if (w->p.seq != 0 && atomic_load(&w->p.finishes) == 0)
				continue; /* in flight, or held */
			weir_event_init(&w->p.ev, &laden_type, clock_now_ns());
			w->p.seq = atomic_fetch_add(&seqs, 1) + 1;
			atomic_store(&w->p.finishes, 0);
			if (below(4) == 0)
				w->p.ev.deadline_ns = clock_now_ns() + (int64_t)below(1000000);
			work_on(graph->stages[0], &w->p.ev);
			run[n++] = &w->p.ev;
		}
		int taken = n ? weir_offer(graph->stages[0], run, n, &why) : 0;
		for (int i = 0; i < n - taken; i++)
			weir_event_finish(&run[i], why);
		weir_thread_flush();
		atomic_fetch_add(&offered, (uint64_t)n);
		sched_yield();
	}
	weir_thread_detach();
	return NULL;
}

static void end(bool at_once, int producers)
{
	struct weir_drain_report r;

	if (at_once)
		weir_graph_hurry(graph);
	weir_graph_drain(graph, at_once ? 0 : 600 * NS_PER_S, &r);
	if (r.law_error != 0 || r.left != 0)
		fault("the law is broken after the drain", (uint64_t)llabs(r.law_error), 0);
	for (int i = 0; i < producers; i++)
		for (int k = 0; k < WORKS; k++)
			if (works[i][k].p.seq != 0 && atomic_load(&works[i][k].p.finishes) != 1)
				fault("lost", works[i][k].p.seq, (uint64_t)i);
	struct payload_budget *budget = graph->payloads;
	if (below(2))
		empty_shelf(); /* otherwise payloads and their budget outlive the graph */
	atomic_fetch_add(&budget->refs, 1);
	weir_graph_free(graph);
	empty_shelf();
	if (atomic_load(&budget->used) != 0)
		fault("left in the budget", atomic_load(&budget->used), 0);
	if (atomic_load(&budget->refs) != 1)
		fault("references to the budget", (uint64_t)atomic_load(&budget->refs), 1);
	payload_budget_put(budget);
	if (atomic_load(&made) != atomic_load(&dropped))
		fault("made and dropped", (uint64_t)atomic_load(&made),
		    (uint64_t)atomic_load(&dropped));
}

static void run_round(int producers, int64_t ns)
{
	pthread_t p[PRODUCERS];
	struct weir_errs errs = {0};

	graph = random_graph();
	atomic_store(&stop, false);
	if (weir_graph_start(graph, &errs) != 0)
		abort();
	for (int i = 0; i < producers; i++)
		pthread_create(&p[i], NULL, produce, (void *)(intptr_t)i);
	int64_t end_ns = clock_now_ns() + ns;
	while (clock_now_ns() < end_ns && atomic_load(&faults) == 0)
		sched_yield();
	atomic_store(&stop, true);
	for (int i = 0; i < producers; i++)
		pthread_join(p[i], NULL);
	end(below(3) == 0, producers);
}

int main(int argc, char **argv)
{
	int producers = argc > 1 ? atoi(argv[1]) : 3, rounds = 0;
	double seconds = argc > 2 ? atof(argv[2]) : 3;

	rnd_of_thread = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	if (producers < 1 || producers > PRODUCERS) {
		fprintf(stderr, "1 to %d producers\n", PRODUCERS);
		return 2;
	}
	fixture_register(&work_ops);
	fixture_register(&hold_ops);
	fixture_on_finish = finish;
	weir_log_set_fd(-1);
	for (int i = 0; i < producers; i++)
		works[i] = calloc(WORKS, sizeof(*works[i]));
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);
	do {
		run_round(producers, 50 * NS_PER_MS + (int64_t)below(200) * NS_PER_MS);
		rounds++;
	} while (clock_now_ns() < end_ns && atomic_load(&faults) == 0);
	printf("graphs %d events %llu made %ld dropped %ld refused %llu deaths %llu faults %llu\n",
	    rounds, (unsigned long long)atomic_load(&offered), atomic_load(&made),
	    atomic_load(&dropped), (unsigned long long)atomic_load(&refused),
	    (unsigned long long)atomic_load(&deaths), (unsigned long long)atomic_load(&faults));
	for (int i = 0; i < producers; i++)
		free(works[i]);
	return atomic_load(&faults) ? 1 : 0;
}
