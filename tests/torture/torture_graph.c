/* SPDX-License-Identifier: MIT */
/*
 * torture_graph [producers=3] [seconds=4] [seed=1]
 *
 * Producers push probes through graphs whose stages are pools, groups, inline, exclusive,
 * partitioned and in cohorts, chosen at random from the seed, with a loop and refusals. Another
 * thread resizes pools and changes limits, and a handler ends its thread now and then. Each round
 * is stopped during the traffic by a drain without grace time. Afterwards:
 * - every accepted probe has been finished exactly once;
 * - the law offered = completed + shed + failed holds exactly (law_error 0).
 * Meanwhile the partitioned stage, where events enter, sees those of each producer in order.
 *
 * In the output, "rounds" are graphs built and torn down, "events" finishes.
 */
#include "fixture/graph/graph.h"

#include <unistd.h>

#include "base/clock.h"

#define MAX_PRODUCERS 8
#define PROBES        2048

static struct weir_graph *graph;
static struct weir_stage *entry;
static atomic_bool stop;
static atomic_ullong events, faults;
static struct probe *pool[MAX_PRODUCERS];
static _Atomic uint64_t last_seq[MAX_PRODUCERS];

static void fault(const char *what, uint64_t a, uint64_t b)
{
	if (atomic_fetch_add(&faults, 1) < 10)
		fprintf(
		    stderr, "%s: %llu, %llu\n", what, (unsigned long long)a, (unsigned long long)b);
}

/* ---- stages ---- */

static void chaos_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct probe *p = (struct probe *)ev[i];
		uint64_t r = p->seq * 2654435761u >> 7;
		if (r % 20011 == 0)
			pthread_exit(NULL);
		if (r % 97 == 0)
			weir_event_finish(&ev[i], WEIR_EFAILED);
		else if (r % 101 == 0 && p->ev.trace_id++ < 3)
			weir_emit(st, 1, &ev[i]);
		else
			weir_emit(st, 0, &ev[i]);
	}
}

static const struct weir_outlet chaos_outlets[] = {
    {"out", &probe_type, false, ""}, {"again", &probe_type, true, ""}, {.name = NULL}};

static const struct weir_stage_ops chaos_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.chaos",
    .summary = "fails, loops, dies",
    .accepts = &probe_type,
    .outlets = chaos_outlets,
    .handle = chaos_handle};

static void order_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	for (int i = 0; i < n; i++) {
		struct probe *p = (struct probe *)ev[i];
		if (p->seq <= atomic_load(&last_seq[p->producer]))
			fault("order of a key is broken", p->seq, (uint64_t)p->producer);
		atomic_store(&last_seq[p->producer], p->seq);
		weir_emit(st, 0, &ev[i]);
	}
}

static const struct weir_stage_ops order_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.order",
    .summary = "checks order",
    .accepts = &probe_type,
    .outlets = chaos_outlets,
    .handle = order_handle};

static void count_finish(struct probe *p, int status)
{
	(void)status;
	if (atomic_load(&p->finishes) != 0)
		fault("finished more than once", p->seq, (uint64_t)atomic_load(&p->finishes));
	atomic_fetch_add(&events, 1);
}

/* ---- traffic ---- */

static void *produce(void *arg)
{
	int id = (int)(intptr_t)arg;
	uint64_t seq = 0;
	int at = 0;

	if (weir_thread_attach(graph, "producer") != 0)
		abort();
	while (!atomic_load(&stop)) {
		struct weir_event *run[64];
		int n = 0;
		for (; n < 64; n++, at = (at + 1) % PROBES) {
			struct probe *p = &pool[id][at];
			if (p->seq != 0 && atomic_load(&p->finishes) == 0)
				break; /* still in flight */
			weir_event_init(&p->ev, &probe_type, clock_now_ns());
			p->producer = id;
			p->seq = ++seq;
			atomic_store(&p->finishes, 0);
			run[n] = &p->ev;
		}
		int taken = n ? weir_offer(entry, run, n, NULL) : 0;
		for (int i = 0; i < n - taken; i++)
			weir_event_finish(&run[i], WEIR_EQUEUE);
		if (n == 0 || taken < n)
			sched_yield();
	}
	weir_thread_detach();
	return NULL;
}

static void *meddle(void *arg)
{
	unsigned rnd = (unsigned)(intptr_t)arg;
	static const char *const names[] = {"a", "b", "c", "d"};
	char why[256], value[32];

	while (!atomic_load(&stop)) {
		const char *name = names[rand_r(&rnd) % 4];
		snprintf(value, sizeof(value), "%d", 1 + rand_r(&rnd) % 4);
		weir_graph_set(graph, name, "threads.min", "1", why, sizeof(why));
		weir_graph_set(graph, name, "threads.max", value, why, sizeof(why));
		weir_graph_set(graph, name, "threads.min", value, why, sizeof(why));
		snprintf(value, sizeof(value), "%d", 64 + rand_r(&rnd) % 4000);
		weir_graph_set(graph, name, "queue.limit", value, why, sizeof(why));
		snprintf(value, sizeof(value), "%d", 1 + rand_r(&rnd) % 256);
		weir_graph_set(graph, name, "cohort.max", value, why, sizeof(why));
		struct weir_graph_view *v;
		if (weir_graph_view(graph, &v) == 0) {
			for (int i = 0; i < v->n_stages; i++)
				if (llabs(v->stages[i].law_residual) > v->stages[i].law_slack)
					fault("the law does not hold while running",
					    (uint64_t)llabs(v->stages[i].law_residual),
					    (uint64_t)v->stages[i].law_slack);
			weir_graph_view_free(v);
		}
	}
	return NULL;
}

/* a -> b -> c -> d; b loops back to itself through its own queue. */
static struct weir_spec *random_spec(unsigned *rnd)
{
	struct weir_spec *spec = weir_spec_new("torture");
	static const char *const use[] = {"t.order", "t.chaos", "t.pass", "t.end"};
	static const char *const names[] = {"a", "b", "c", "d"};
	struct weir_group_spec *g = weir_spec_add_group(spec, "g");

	g->threads.max = 3;
	g->threads.min = 1 + rand_r(rnd) % 3;
	for (int i = 0; i < 4; i++) {
		struct weir_stage_spec *s = weir_spec_add_stage(spec, names[i], use[i]);
		int place = rand_r(rnd) % 3;
		if (i < 3)
			weir_spec_link(s, "out", names[i + 1], false);
		s->threads.max = 1 + rand_r(rnd) % 4;
		s->queue.limit = 64 + rand_r(rnd) % 4000;
		s->cohort.max = 1 + rand_r(rnd) % 256;
		if (i == 0) {
			s->mode = WEIR_MODE_PARTITIONED;
			weir_spec_text(&s->key, "producer");
		} else if (i == 1) {
			weir_spec_link(s, "again", "b", true);
		} else if (place == 0) {
			s->inlined = true;
		} else if (place == 1) {
			weir_spec_text(&s->group, "g");
		}
		if (i == 3 && place == 2) {
			weir_spec_text(&s->cohort.by, "producer");
			s->cohort.linger_ns = 100000;
		}
	}
	return spec;
}

static void round_of(int producers, double seconds, unsigned *rnd)
{
	pthread_t p[MAX_PRODUCERS], m;
	struct weir_drain_report r;

	fixture_reset();
	fixture_on_finish = count_finish;
	for (int i = 0; i < producers; i++)
		atomic_store(&last_seq[i], 0); /* producers number their events anew */
	graph = fixture_start(random_spec(rnd));
	entry = weir_graph_stage(graph, "a");
	atomic_store(&stop, false);
	for (int i = 0; i < producers; i++) {
		memset(pool[i], 0, PROBES * sizeof(struct probe));
		pthread_create(&p[i], NULL, produce, (void *)(intptr_t)i);
	}
	pthread_create(&m, NULL, meddle, (void *)(intptr_t)rand_r(rnd));
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);
	while (clock_now_ns() < end_ns && atomic_load(&faults) == 0)
		sched_yield();
	weir_graph_hurry(graph); /* so that the drain finds full queues and busy handlers */
	atomic_store(&stop, true);
	pthread_join(m, NULL);
	for (int i = 0; i < producers; i++)
		pthread_join(p[i], NULL);
	weir_graph_drain(graph, 0, &r);
	if (r.law_error != 0)
		fault("the law is broken after the drain", (uint64_t)llabs(r.law_error), r.closed);
	for (int i = 0; i < producers; i++)
		for (int k = 0; k < PROBES; k++)
			if (pool[i][k].seq != 0 && atomic_load(&pool[i][k].finishes) != 1)
				fault("lost", pool[i][k].seq, (uint64_t)i);
	weir_graph_free(graph);
}

int main(int argc, char **argv)
{
	int producers = argc > 1 ? atoi(argv[1]) : 3;
	double seconds = argc > 2 ? atof(argv[2]) : 4;
	unsigned rnd = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	int rounds = 0;

	if (producers < 1 || producers > MAX_PRODUCERS) {
		fprintf(stderr, "1 to %d producers\n", MAX_PRODUCERS);
		return 2;
	}
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	fixture_register(&chaos_ops);
	fixture_register(&order_ops);
	weir_log_set_fd(-1);
	for (int i = 0; i < producers; i++)
		pool[i] = calloc(PROBES, sizeof(struct probe));
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);
	while (clock_now_ns() < end_ns && atomic_load(&faults) == 0) {
		round_of(producers, 0.2, &rnd);
		rounds++;
	}
	printf("rounds %d events %llu faults %llu\n", rounds,
	    (unsigned long long)atomic_load(&events), (unsigned long long)atomic_load(&faults));
	for (int i = 0; i < producers; i++)
		free(pool[i]);
	return atomic_load(&faults) ? 1 : 0;
}
