/* SPDX-License-Identifier: MIT */
/*
 * torture_acts [actors=3] [seconds=4] [seed=1]
 *
 * Two producers push probes through three stages (pools or a group, partitioned, in cohorts, with
 * admission policies, chosen at random from the seed), while actors pause, drain and resume stages,
 * set knobs permanently and for a moment, unset, undo, and inspect queues. At the end of a round
 * every second graph is resumed and awaited; the others are stopped as they are, paused or not.
 * Afterwards:
 * - every accepted event has been finished exactly once: done, shed or failed;
 * - offered = completed + shed + failed at every stage, nothing is in flight, nothing was closed.
 */
#include "fixture/graph/graph.h"

#include "base/clock.h"

#define MAX_ACTORS 8
#define PRODUCERS  2
#define PROBES     512
#define STAGES     3

static struct weir_graph *graph;
static atomic_bool stop_actors, stop_producers;
static atomic_ullong taken, acts, faults;
static struct probe *pool[PRODUCERS];
static const char *const names[STAGES] = {"a", "b", "c"};

static void fault(const char *what, uint64_t a, uint64_t b)
{
	if (atomic_fetch_add(&faults, 1) < 10)
		fprintf(
		    stderr, "%s: %llu, %llu\n", what, (unsigned long long)a, (unsigned long long)b);
}

/* ---- load ---- */

static void offer_run(struct weir_stage *entry, struct probe *from, int producer)
{
	struct weir_event *ev[16];
	int n = 0;

	for (int i = 0; i < 16; i++) {
		struct probe *p = &from[i];
		if (p->seq != 0 && atomic_load(&p->finishes) == 0)
			continue; /* in flight */
		p->seq++;
		p->producer = producer;
		atomic_store(&p->finishes, 0);
		if (p->ev.state != WEIR_EVENT_NEW) /* refused the last time, so it is unchanged */
			weir_event_init(&p->ev, &probe_type, clock_now_ns());
		if (p->seq % 8 == 0)
			p->ev.deadline_ns = clock_now_ns() + 50 * NS_PER_MS;
		ev[n++] = &p->ev;
	}
	if (n == 0)
		return;
	int in = weir_offer(entry, ev, n, NULL);
	atomic_fetch_add(&taken, (unsigned)in);
	for (int i = 0; i < n - in; i++) /* ours again: free for the next run */
		atomic_store(&((struct probe *)ev[i])->finishes, 1);
}

static void *produce(void *arg)
{
	int me = (int)(intptr_t)arg;
	struct weir_stage *entry = weir_graph_stage(graph, "a");

	weir_thread_attach(graph, "producer");
	for (int at = 0; !atomic_load(&stop_producers); at = (at + 16) % PROBES) {
		offer_run(entry, pool[me] + at, me);
		if (at == 0)
			sched_yield();
	}
	weir_thread_detach();
	return NULL;
}

/* ---- changes ---- */

static void act(unsigned *rnd)
{
	static const char *const limits[] = {"16", "64", "512"};
	const char *stage = names[rand_r(rnd) % STAGES], *limit = limits[rand_r(rnd) % 3];
	struct weir_queued queued[100];
	struct weir_graph_view *v;
	struct weir_change done;
	char why[300];

	switch (rand_r(rnd) % 10) {
	case 0:
	case 1:
		weir_graph_steer(graph, stage, WEIR_STEER_PAUSE, why, sizeof(why));
		break;
	case 2:
		weir_graph_steer(graph, stage, WEIR_STEER_DRAIN, why, sizeof(why));
		break;
	case 3:
	case 4:
	case 5:
		weir_graph_steer(graph, stage, WEIR_STEER_RUN, why, sizeof(why));
		break;
	case 6:
		weir_graph_set(graph, stage, "queue.limit", limit, why, sizeof(why));
		weir_graph_set_for(graph, stage, "cohort.max", "7", NS_PER_MS, why, sizeof(why));
		break;
	case 7:
		weir_graph_unset(graph, stage, "queue.limit", why, sizeof(why));
		break;
	case 8:
		weir_graph_undo(graph, &done, why, sizeof(why));
		break;
	default:
		if (weir_graph_queue(graph, stage, queued, 100) > 0 &&
		    strcmp(queued[0].type, "probe") != 0)
			fault("a stranger in the queue", 0, 0);
		if (weir_graph_view(graph, &v) == 0)
			weir_graph_view_free(v);
	}
	atomic_fetch_add(&acts, 1);
}

static void *meddle(void *arg)
{
	unsigned rnd = (unsigned)(intptr_t)arg;

	while (!atomic_load(&stop_actors)) {
		act(&rnd);
		for (int i = rand_r(&rnd) % 64; i > 0; i--)
			sched_yield();
	}
	return NULL;
}

/* ---- rounds ---- */

static struct weir_spec *random_spec(unsigned *rnd)
{
	struct weir_spec *spec = weir_spec_new("torture");
	bool group = rand_r(rnd) % 3 == 0;

	if (group)
		weir_spec_add_group(spec, "g")->threads.max = 2;
	for (int i = 0; i < STAGES; i++) {
		struct weir_stage_spec *s = fixture_stage(spec, names[i],
		    i + 1 < STAGES ? "t.pass" : "t.end", i + 1 < STAGES ? names[i + 1] : NULL);
		fixture_set(s, "queue.limit", "256");
		fixture_set(s, "admission.policy", fixture_policy((unsigned)rand_r(rnd), false));
		fixture_set(s, "admission.rate", "20000");
		if (group)
			weir_spec_text(&s->group, "g");
		else
			fixture_set(s, "threads.max", "2");
		if (i == 1 && rand_r(rnd) % 2) {
			s->mode = WEIR_MODE_PARTITIONED;
			weir_spec_text(&s->key, "producer");
		}
		if (i == 2 && rand_r(rnd) % 2)
			s->cohort.linger_ns = 100000;
	}
	return spec;
}

static void check_stages(void)
{
	struct weir_graph_view *v;

	if (weir_graph_view(graph, &v) != 0)
		abort();
	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		const struct weir_class_view *c = &s->class_view[0];
		uint64_t ended = c->completed + c->failed;
		for (int r = 0; r < WEIR_SHED_REASONS; r++)
			ended += c->shed[r];
		if (c->offered != ended)
			fault("the law is broken", c->offered, ended);
		if (s->in_flight != 0 || s->queue_length != 0)
			fault("something is in flight", s->in_flight, s->queue_length);
		if (strcmp(s->state, "running") != 0)
			fault("a stage does not run", (uint64_t)i, 0);
	}
	weir_graph_view_free(v);
}

static void resume_all(void)
{
	char why[300];

	for (int i = 0; i < STAGES; i++)
		if (weir_graph_steer(graph, names[i], WEIR_STEER_RUN, why, sizeof(why)) != 0)
			fault("resume is refused", (uint64_t)i, 0);
	FIXTURE_AWAIT(fixture_ended() == atomic_load(&taken) || atomic_load(&faults) != 0);
}

static void round_of(int actors, double seconds, unsigned *rnd, bool awaited)
{
	pthread_t p[PRODUCERS], a[MAX_ACTORS];
	struct weir_drain_report r;

	fixture_reset();
	atomic_store(&taken, 0);
	graph = fixture_start(random_spec(rnd));
	atomic_store(&stop_actors, false);
	atomic_store(&stop_producers, false);
	for (int i = 0; i < PRODUCERS; i++) {
		memset(pool[i], 0, PROBES * sizeof(struct probe));
		pthread_create(&p[i], NULL, produce, (void *)(intptr_t)i);
	}
	for (int i = 0; i < actors; i++)
		pthread_create(&a[i], NULL, meddle, (void *)(intptr_t)rand_r(rnd));
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);
	while (clock_now_ns() < end_ns && atomic_load(&faults) == 0)
		sched_yield();
	atomic_store(&stop_producers, true);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(p[i], NULL);
	/* The other graphs are stopped while the actors are active. */
	if (awaited) {
		atomic_store(&stop_actors, true);
		for (int i = 0; i < actors; i++)
			pthread_join(a[i], NULL);
		resume_all();
	}
	weir_graph_drain(graph, 600 * NS_PER_S, &r);
	atomic_store(&stop_actors, true);
	for (int i = 0; i < actors && !awaited; i++)
		pthread_join(a[i], NULL);
	if (r.law_error != 0 || r.closed != 0)
		fault("the drain lost some", (uint64_t)llabs(r.law_error), r.closed);
	if (fixture_ended() != atomic_load(&taken))
		fault("taken, ended", atomic_load(&taken), fixture_ended());
	check_stages();
	weir_graph_free(graph);
}

int main(int argc, char **argv)
{
	int actors = argc > 1 ? atoi(argv[1]) : 3;
	double seconds = argc > 2 ? atof(argv[2]) : 4;
	unsigned rnd = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	unsigned long long done = 0;
	int rounds = 0;

	if (actors < 1 || actors > MAX_ACTORS) {
		fprintf(stderr, "1 to %d actors\n", MAX_ACTORS);
		return 2;
	}
	fixture_register(&pass_ops);
	fixture_register(&end_ops);
	weir_log_set_fd(-1);
	for (int i = 0; i < PRODUCERS; i++)
		pool[i] = calloc(PROBES, sizeof(struct probe));
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);
	while (clock_now_ns() < end_ns && atomic_load(&faults) == 0) {
		round_of(actors, 0.2, &rnd, rounds % 2 == 0);
		done += atomic_load(&taken);
		rounds++;
	}
	printf("rounds %d events %llu acts %llu faults %llu\n", rounds, done,
	    (unsigned long long)atomic_load(&acts), (unsigned long long)atomic_load(&faults));
	for (int i = 0; i < PRODUCERS; i++)
		free(pool[i]);
	return atomic_load(&faults) ? 1 : 0;
}
