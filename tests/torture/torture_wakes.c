/* SPDX-License-Identifier: MIT */
/*
 * torture_wakes [producers=2] [seconds=3] [seed=1]
 *
 * Core groups with so little work that their cores sleep after nearly every event: what a sender
 * offers must wake one of them. Random schedules, modes, gates, cores and copies; some stages linger,
 * have a serial key, or take long enough that idle cores get some of the work. Each
 * producer offers a few events and waits until they have ended. Nobody changes anything meanwhile,
 * since most changes wake all cores. If nothing ends for STALL_S although events are in flight, the
 * state of the group is printed, and the program fails.
 */
#include <weir/random.h>

#include "fixture/graph/graph.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "graph/graph.h"
#include "sched/cores.h"

#define STAGES    4
#define PRODUCERS 8
#define RUN       8
#define STALL_S   20

static const char *const names[STAGES] = {"s0", "s1", "s2", "s3"};
static struct probe probes[PRODUCERS][RUN];
static struct weir_graph *graph;
static atomic_bool stop, stalled;

static unsigned below(unsigned *rnd, unsigned n)
{
	return (unsigned)rand_r(rnd) % n;
}

/* ---- stages ---- */

/* Events work for 0 to 60 us, by their number. */
static void hop_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		uint64_t seq = ((struct probe *)ev[i])->seq;
		int64_t end_ns = clock_now_ns() + (int64_t)(seq % 8 == 0 ? 60000 : seq % 3 * 500);
		while (clock_now_ns() < end_ns)
			;
	}
	weir_emit_run(st, 0, ev, n);
}

static uint64_t hop_key(struct weir_stage *st, const struct weir_event *ev)
{
	(void)st;
	return (uint64_t)((const struct probe *)ev)->producer;
}

static const struct weir_stage_ops hop_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.hop",
    .summary = "works for a moment",
    .flags = WEIR_STAGE_REPLICABLE,
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = hop_handle,
    .key = hop_key};

static const struct weir_stage_ops stop_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.stop",
    .summary = "ends events",
    .flags = WEIR_STAGE_REPLICABLE,
    .accepts = &probe_type,
    .handle = end_handle,
    .key = hop_key};

static void dress_stage(struct weir_stage_spec *s, bool plain, unsigned *rnd)
{
	static const char *const lingers[] = {"0", "0", "0", "200us"};
	static const enum weir_local locals[] = {
	    WEIR_LOCAL_AUTO, WEIR_LOCAL_ALWAYS, WEIR_LOCAL_NEVER};

	weir_spec_text(&s->group, "core");
	fixture_set(s, "admission.policy", "none");
	fixture_set(s, "cohort.linger", lingers[below(rnd, 4)]);
	s->local = locals[s->cohort.linger_ns > 0 ? 0 : below(rnd, 3)];
	if (plain)
		return;
	switch (below(rnd, 6)) {
	case 0:
		s->mode = WEIR_MODE_EXCLUSIVE;
		s->local = WEIR_LOCAL_AUTO;
		break;
	case 1:
		s->mode = WEIR_MODE_PARTITIONED;
		s->local = WEIR_LOCAL_AUTO;
		break;
	default:
		break;
	}
}

static struct weir_graph *random_graph(unsigned *rnd)
{
	static const char *const schedules[] = {"fifo", "wavefront", "srpt", "dbr", "mg1", "color"};
	static const char *const cores[] = {"1", "2", "2", "4"};
	struct weir_spec *spec = weir_spec_new("torture");
	struct weir_group_spec *gs = weir_spec_add_group(spec, "core");
	unsigned c = below(rnd, 4);
	bool serial = below(rnd, 4) == 0, copies = !serial && c > 0 && below(rnd, 4) == 0;

	weir_spec_text(&gs->cores, cores[c]);
	weir_spec_text(&gs->schedule, schedules[below(rnd, 6)]);
	gs->gate.events = below(rnd, 3) == 0 ? 2 : 0;
	if (serial)
		weir_spec_text(&gs->serial, "producer");
	gs->replicas = copies ? 2 : 1;
	for (int i = 0; i < STAGES; i++) {
		bool last = i == STAGES - 1;
		dress_stage(fixture_stage(spec, names[i], last ? "t.stop" : "t.hop",
				last ? NULL : names[i + 1]),
		    serial || copies, rnd);
	}
	return fixture_build(spec);
}

/* ---- load ---- */

static bool all_ended(const struct probe *p, int n)
{
	for (int i = 0; i < n; i++)
		if (atomic_load(&p[i].finishes) == 0)
			return false;
	return true;
}

static void offer(int id, unsigned *rnd, uint64_t *seq)
{
	struct probe *mine = probes[id];
	struct weir_event *run[RUN];
	int n = 1 + (int)below(rnd, below(rnd, 2) ? RUN : 1), why = 0;

	for (int i = 0; i < n; i++) {
		weir_event_init(&mine[i].ev, &probe_type, clock_now_ns());
		mine[i].producer = id;
		mine[i].seq = ++*seq;
		mine[i].ev.key = *seq;
		atomic_store(&mine[i].finishes, 0);
		run[i] = &mine[i].ev;
	}
	int taken = weir_offer(weir_graph_stage(graph, names[below(rnd, 2) ? 0 : 2]), run, n, &why);
	for (int i = 0; i < n - taken; i++)
		weir_event_finish(&run[i], why);
	while (!all_ended(mine, n) && !atomic_load(&stalled))
		sched_yield();
}

static void *produce(void *arg)
{
	int id = (int)(intptr_t)arg;
	unsigned rnd = (unsigned)rand();
	uint64_t seq = 0;

	weir_thread_attach(graph, "producer");
	while (!atomic_load(&stop) && !atomic_load(&stalled)) {
		offer(id, &rnd, &seq);
		struct timespec nap = {0, (long)below(&rnd, 100000)};
		if (below(&rnd, 4) > 0)
			nanosleep(&nap, NULL);
	}
	weir_thread_detach();
	return NULL;
}

/* ---- the watchdog ---- */

static void print_core(struct core_group *group, int k)
{
	struct core *c = &group->core[k];
	struct handler *h = atomic_load(&group->pool->handler[k]);

	if (!h)
		return;
	fprintf(stderr,
	    "core %d: slot %d state %d listed %d wake %u filled %llx events %u lingering %llx "
	    "seen %llx asked %u\n",
	    k, atomic_load(&h->slot), atomic_load(&h->state), h->listed, atomic_load(&h->wake),
	    (unsigned long long)c->filled, c->n, (unsigned long long)c->lingering,
	    (unsigned long long)c->seen, atomic_load(&c->asked));
	for (int i = 0; i < group->n_stages; i++)
		if (h->ready_ns[i] != INT64_MAX)
			fprintf(stderr, "  stage %d is due in %lld us\n", i,
			    (long long)(h->ready_ns[i] - clock_now_ns()) / 1000);
}

/* Racy reads, of a group in which nothing moves. */
static void print_state(void)
{
	struct pool *pool = graph->stages[0]->pool;
	struct core_group *group = pool->cores;

	fprintf(stderr, "stall: idle %d spinning %d target %d seats %d arrived %llx halted %llx\n",
	    atomic_load(&pool->n_idle), atomic_load(&pool->n_spinning), atomic_load(&pool->target),
	    atomic_load(&pool->n_seats), (unsigned long long)atomic_load(&group->arrived),
	    (unsigned long long)atomic_load(&group->halted));
	for (int k = 0; k < group->max; k++)
		print_core(group, k);
	for (int i = 0; i < group->n_stages; i++) {
		struct queue *q = &pool->sinks[i]->queue;
		fprintf(stderr, "stage %d (%s): queued %u parts %d leased %d\n", i,
		    pool->sinks[i]->name, queue_length(q), q->n_parts, atomic_load(&q->leased));
	}
}

/* Wait for `ns`; print what is seen if nothing ends for STALL_S. */
static void watch(int64_t ns)
{
	int64_t end_ns = clock_now_ns() + ns, moved_ns = clock_now_ns();
	uint64_t ended = fixture_ended();

	while (clock_now_ns() < end_ns) {
		struct timespec nap = {0, NS_PER_MS};
		nanosleep(&nap, NULL);
		if (fixture_ended() == ended && clock_now_ns() - moved_ns < STALL_S * NS_PER_S) {
			end_ns += clock_now_ns() - moved_ns > 100 * NS_PER_MS ? NS_PER_MS : 0;
			continue;
		}
		if (fixture_ended() == ended) {
			print_state();
			atomic_store(&stalled, true);
			return;
		}
		ended = fixture_ended();
		moved_ns = clock_now_ns();
	}
}

static void run_round(int producers, int64_t ns, unsigned *rnd)
{
	pthread_t p[PRODUCERS];
	struct weir_errs errs = {0};
	struct weir_drain_report r;

	graph = random_graph(rnd);
	if (weir_graph_start(graph, &errs) != 0)
		abort();
	for (int i = 0; i < producers; i++)
		pthread_create(&p[i], NULL, produce, (void *)(intptr_t)i);
	watch(ns);
	atomic_store(&stop, true);
	if (atomic_load(&stalled))
		exit(1);
	for (int i = 0; i < producers; i++)
		pthread_join(p[i], NULL);
	atomic_store(&stop, false);
	weir_graph_drain(graph, 600 * NS_PER_S, &r);
	if (r.law_error != 0 || r.left != 0)
		abort();
	weir_graph_free(graph);
}

int main(int argc, char **argv)
{
	int producers = argc > 1 ? atoi(argv[1]) : 2, rounds = 0;
	double seconds = argc > 2 ? atof(argv[2]) : 3;
	unsigned rnd = argc > 3 ? (unsigned)atoi(argv[3]) : 1;

	if (producers < 1 || producers > PRODUCERS) {
		fprintf(stderr, "1 to %d producers\n", PRODUCERS);
		return 2;
	}
	fixture_register(&hop_ops);
	fixture_register(&stop_ops);
	weir_log_set_fd(-1);
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);
	do {
		run_round(producers, 100 * NS_PER_MS, &rnd);
		rounds++;
	} while (clock_now_ns() < end_ns);
	printf("graphs %d events %llu\n", rounds, (unsigned long long)fixture_ended());
	return 0;
}
