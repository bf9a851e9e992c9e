/* SPDX-License-Identifier: MIT */
/*
 * torture_serial [producers=3] [seconds=4] [seed=1]
 *
 * Core groups with serial keys: five stages, of which four or five are serial, a chain that events
 * leave and enter again by a side link. A group has four cores, also where the machine has fewer.
 * Slots move whenever a core idles; handlers requeue and hold events, let tickets expire, and end
 * their thread; events have classes and deadlines; operators pause stages, let batches linger, change
 * limits and the number of cores, and look into the queues. Each graph is drained, with and without
 * time. The laws:
 * - events of one key are never in handlers of two threads at a time;
 * - events of a key that were neither requeued nor held pass each serial stage in the order in which
 *   they passed the one before, and the first one in the order of their producer;
 * - what a core that does not own a key sends to a serial stage comes in the order of that core;
 * - every event has been finished exactly once, and the counters balance.
 */
#include <weir/random.h>

#include "torture/serial_stage.h"

#include <sched.h>

#include "base/clock.h"
#include "graph/graph.h"
#include "sched/serial.h"

#define FIXTURE_CPUS CORES
#include "fixture/graph/cpus.h"

#define WORKS 256
#define RUN   32

static const char *const names[STAGES] = {"s0", "s1", "s2", "s3", "s4"};
static struct work *works[PRODUCERS];
static uint64_t seqs[PRODUCERS]; /* of each producer, over all graphs */
static struct weir_graph *graph;
static atomic_bool stop, calm; /* producers end; operators end */
static atomic_ullong moved, offered;

static unsigned below(unsigned *rnd, unsigned n)
{
	return (unsigned)rand_r(rnd) % n;
}

static void count_finish(struct probe *p, int status)
{
	(void)status;
	if (atomic_load(&p->finishes) != 0)
		fault("finished more than once", p->seq, (uint64_t)p->producer);
}

/* ---- graphs ---- */

static void stage(struct weir_spec *spec, int i, unsigned *rnd)
{
	static const char *const limits[] = {"4", "64", "2000"};
	static const char *const policies[] = {"none", "none", "none", "weir", "codel"};
	static const char *const lingers[] = {"0", "0", "0", "100us"};
	bool holds = below(rnd, 8) == 0;
	struct weir_stage_spec *s =
	    weir_spec_add_stage(spec, names[i], holds ? "t.work-hold" : "t.work");

	weir_spec_text(&s->group, "core");
	if (i + 1 < STAGES) {
		weir_spec_link(s, "out", names[i + 1], false);
		weir_spec_link(s, "side", names[STAGES - 1], false);
	}
	fixture_set(s, "queue.limit", limits[below(rnd, 3)]);
	fixture_set(s, "admission.policy", policies[below(rnd, 5)]);
	fixture_set(s, "cohort.linger", lingers[below(rnd, 4)]);
	s->local = (int)below(rnd, 8) == 0 ? WEIR_LOCAL_NEVER : WEIR_LOCAL_AUTO;
	if (holds)
		fixture_set(s, "width.max", below(rnd, 2) ? "4" : "1");
	weir_spec_text(&s->serial, i == 2 && below(rnd, 3) == 0               ? "other"
				   : (i == 4 || i == 2) && below(rnd, 3) == 0 ? "none"
									      : "");
}

static struct weir_graph *random_graph(unsigned *rnd)
{
	static const char *const schedules[] = {"fifo", "wavefront", "srpt", "dbr", "mg1", "color"};
	static const char *const classes[CLASSES] = {"one", "two", "three"};
	struct weir_spec *spec = weir_spec_new("torture");
	struct weir_group_spec *gs = weir_spec_add_group(spec, "core");
	char cores[8];

	for (int c = 0; c < CLASSES; c++)
		weir_spec_add_class(spec, classes[c]);
	snprintf(cores, sizeof(cores), "%u", below(rnd, 4) == 0 ? 1 + below(rnd, 3) : CORES);
	weir_spec_text(&gs->cores, cores);
	weir_spec_text(&gs->schedule, schedules[below(rnd, 6)]);
	weir_spec_text(&gs->serial, "user");
	gs->gate.events = below(rnd, 3) == 0 ? 8 : 0;
	for (int i = 0; i < STAGES; i++)
		stage(spec, i, rnd);
	return fixture_build(spec);
}

/* ---- load ---- */

static void dress(struct work *w, int producer, uint64_t seq)
{
	uint64_t r = weir_random_at(0, seq << 3 | (unsigned)producer);
	int64_t now_ns = clock_now_ns();

	memset(w, 0, sizeof(*w));
	weir_event_init(&w->p.ev, &work_type, now_ns);
	w->p.producer = producer;
	w->p.seq = seq;
	w->key[0] = (int)(r & 1 ? r >> 1 & 1 : (r >> 1) % KEYS); /* two keys have most events */
	w->key[1] = (int)((r >> 20) % KEYS);
	snprintf(w->user, sizeof(w->user), "u%d", w->key[0]);
	snprintf(w->other, sizeof(w->other), "o%d", w->key[1]);
	w->p.ev.class_id = (uint8_t)((r >> 30) % CLASSES);
	if ((r >> 40) % 4 == 0)
		w->p.ev.deadline_ns = now_ns + (int64_t)(r >> 42 & 0x3fffff);
}

static void offer(int id, unsigned *rnd, int *at)
{
	struct weir_event *run[RUN];
	int n = 0, most = 1 + (int)below(rnd, RUN), why = 0;

	for (int looks = 0; n < most && looks < WORKS; looks++, *at = (*at + 1) % WORKS) {
		struct work *w = &works[id][*at];
		if (w->p.seq != 0 && atomic_load(&w->p.finishes) == 0)
			continue; /* in flight, or held */
		dress(w, id, ++seqs[id]);
		run[n++] = &w->p.ev;
	}
	int taken = n ? weir_offer(graph->stages[0], run, n, &why) : 0;
	for (int i = 0; i < n - taken; i++)
		weir_event_finish(&run[i], why);
	atomic_fetch_add(&offered, (uint64_t)n);
	if (taken < n || n == 0)
		sched_yield();
}

static void *produce(void *arg)
{
	int id = (int)(intptr_t)arg, at = 0;
	unsigned rnd = (unsigned)id + 1;

	weir_thread_attach(graph, "producer");
	while (!atomic_load(&stop))
		offer(id, &rnd, &at);
	weir_thread_detach();
	return NULL;
}

/* ---- operators ---- */

static void act(unsigned *rnd)
{
	static const char *const limits[] = {"4", "50", "2000"};
	const char *name = names[below(rnd, STAGES)];
	struct weir_queued queued[QUEUE_PEEK_MAX];
	struct weir_graph_view *v;
	struct pool *pool = graph->stages[0]->pool;
	char why[300];

	switch (below(rnd, 12)) {
	case 0:
		weir_graph_steer(graph, name, WEIR_STEER_PAUSE, why, sizeof(why));
		break;
	case 1:
		weir_graph_steer(graph, name, WEIR_STEER_DRAIN, why, sizeof(why));
		break;
	case 2:
		weir_graph_set(graph, name, "queue.limit", limits[below(rnd, 3)], why, sizeof(why));
		break;
	case 3:
		weir_graph_set(
		    graph, name, "cohort.linger", below(rnd, 4) ? "0" : "200us", why, sizeof(why));
		break;
	case 4:
		weir_graph_queue(graph, name, queued, QUEUE_PEEK_MAX);
		break;
	case 5:
		if (weir_graph_view(graph, &v) == 0)
			weir_graph_view_free(v);
		break;
	case 6: /* cores leave and join */
		pool_set_target(pool, 1 + (int)below(rnd, CORES));
		break;
	default:
		weir_graph_steer(graph, name, WEIR_STEER_RUN, why, sizeof(why));
	}
}

static void *meddle(void *arg)
{
	unsigned rnd = (unsigned)(intptr_t)arg;

	while (!atomic_load(&calm)) {
		act(&rnd);
		for (int i = (int)below(&rnd, 200); i > 0; i--)
			sched_yield();
	}
	return NULL;
}

/* ---- rounds ---- */

static void check_end(struct weir_graph *g)
{
	struct core_group *group = g->stages[0]->pool->cores;

	for (int i = 0; i < g->n_stages; i++) {
		struct sink *s = &g->stages[i]->sink;
		if (sink_waiting(s) != 0 || graph_in_flight(g, i) != 0)
			fault("left", sink_waiting(s), (uint64_t)i);
		for (int k = 0; k < s->queue.n_parts; k++)
			if (queue_part_length(&s->queue, k) != 0)
				fault("left in an inbox", (uint64_t)k, (uint64_t)i);
	}
	for (int k = 0; k < group->max; k++)
		atomic_fetch_add(&moved, book_read(&group->core[k].moved));
}

static void end(struct weir_graph *g, bool at_once)
{
	struct weir_drain_report r;

	if (at_once)
		weir_graph_hurry(g);
	weir_graph_drain(g, at_once ? 0 : 600 * NS_PER_S, &r);
	if (r.law_error != 0 || r.left != 0)
		fault("the law is broken after the drain", (uint64_t)llabs(r.law_error),
		    (uint64_t)r.left);
	check_end(g);
	weir_graph_free(g);
}

/* Let all stages run, so that a drain with time ends. That wakes all cores, so events follow, of which
 * none may be left because nobody was woken. */
static void resume_all(struct weir_graph *g)
{
	char why[300];

	for (int i = 0; i < STAGES; i++)
		weir_graph_steer(g, names[i], WEIR_STEER_RUN, why, sizeof(why));
}

static void run_round(int producers, int64_t ns, unsigned *rnd)
{
	pthread_t p[PRODUCERS], m;
	struct weir_errs errs = {0};

	graph = random_graph(rnd);
	serial_begin();
	struct serial *serial = graph->stages[0]->pool->cores->serial;
	if (below(rnd, 3) > 0)
		atomic_store(&serial->least_ns, 0); /* slots move as often as they can */
	atomic_store(&may_hold, below(rnd, 2) == 0);
	atomic_store(&spin, below(rnd, 2) ? 40 : 0);
	atomic_store(&stop, false);
	atomic_store(&calm, false);
	if (weir_graph_start(graph, &errs) != 0)
		abort();
	struct pool *pool = graph->stages[0]->pool;
	pool_set_bounds(pool, 1, pool->cores->max);
	atomic_store(&may_die, true);
	for (int i = 0; i < producers; i++)
		pthread_create(&p[i], NULL, produce, (void *)(intptr_t)i);
	pthread_create(&m, NULL, meddle, (void *)(intptr_t)rand_r(rnd));
	int64_t end_ns = clock_now_ns() + ns;
	while (clock_now_ns() < end_ns && atomic_load(&faults) == 0)
		sched_yield();
	atomic_store(&calm, true);
	pthread_join(m, NULL);
	resume_all(graph);
	for (int64_t until_ns = clock_now_ns() + 10 * NS_PER_MS; clock_now_ns() < until_ns;)
		sched_yield();
	atomic_store(&stop, true);
	for (int i = 0; i < producers; i++)
		pthread_join(p[i], NULL);
	end(graph, below(rnd, 3) == 0);
}

static void check_all_ended(int producers)
{
	for (int i = 0; i < producers; i++)
		for (int k = 0; k < WORKS; k++)
			if (works[i][k].p.seq != 0 && atomic_load(&works[i][k].p.finishes) != 1)
				fault("lost", works[i][k].p.seq, (uint64_t)i);
}

int main(int argc, char **argv)
{
	int producers = argc > 1 ? atoi(argv[1]) : 3, rounds = 0;
	double seconds = argc > 2 ? atof(argv[2]) : 4;
	unsigned rnd = argc > 3 ? (unsigned)atoi(argv[3]) : 1;

	if (producers < 1 || producers > PRODUCERS) {
		fprintf(stderr, "1 to %d producers\n", PRODUCERS);
		return 2;
	}
	fixture_register(&work_ops);
	fixture_register(&work_hold_ops);
	fixture_on_finish = count_finish;
	weir_log_set_fd(-1);
	for (int i = 0; i < producers; i++)
		works[i] = calloc(WORKS, sizeof(*works[i]));
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);
	do {
		run_round(producers, 50 * NS_PER_MS + (int64_t)below(&rnd, 200) * NS_PER_MS, &rnd);
		check_all_ended(producers);
		rounds++;
	} while (clock_now_ns() < end_ns && atomic_load(&faults) == 0);
	printf("graphs %d events %llu handled %llu moved %llu deaths %llu faults %llu\n", rounds,
	    (unsigned long long)atomic_load(&offered), (unsigned long long)atomic_load(&handled),
	    (unsigned long long)atomic_load(&moved), (unsigned long long)atomic_load(&deaths),
	    (unsigned long long)atomic_load(&faults));
	for (int i = 0; i < producers; i++)
		free(works[i]);
	return atomic_load(&faults) ? 1 : 0;
}
