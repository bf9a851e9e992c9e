/* SPDX-License-Identifier: MIT */
/*
 * torture_modes [producers=3] [seconds=4] [seed=1] [operations=0]
 *
 * Everything at once: graphs of two to six stages in random modes (shared, exclusive, partitioned,
 * inline), pools and groups, with random admission, resize and batch policies, keys, cohorts,
 * limits and classes. Handlers finish, hold, requeue, loop, make children and await them, leave events
 * behind, end their thread and refuse threads. Families end. Operators set knobs permanently and for a moment, unset, undo, pause, drain,
 * resume, and inspect. Each graph is soon replaced by another one, by a reload that is refused now
 * and then, and is drained at once or with time. Now and then the producers stop until the graph is
 * idle. Afterwards:
 * - every event has been finished exactly once;
 * - an idle graph has no event waiting, neither for a thread nor for its turn in a partition;
 * - the counters of each graph balanced while it ran, and balance exactly at its end, also by thread
 *   (profiles); all counts are back to zero: held, taken, running, leased, idle.
 *
 * In the output, "graphs" are graphs that ran, "events" finishes, "made" events that stages have made, at
 * least as many as `operations`; of these, "cancelled" ended with their family and "refused" by a bound.
 */
#include <weir/random.h>

#include "torture/modes_ops.h"

#include "base/clock.h"
#include "fixture/graph/profile.h"
#include "graph/graph.h"
#include "sched/pool.h"

#define MAX_PRODUCERS 8
#define ACTORS        2
#define PROBES        512
#define RUN           64

static struct weir_graph *_Atomic current, *_Atomic ending;
static pthread_rwlock_t graphs; /* read-locked: both pointers stay unchanged */
static atomic_bool stop, pausing;
static atomic_ullong events;
static atomic_int attached;
static struct probe *pool[MAX_PRODUCERS];
static int rounds, failed_reloads;
static unsigned rnd_family; /* used only by the main thread */

static void count_finish(struct probe *p, int status)
{
	if (atomic_load(&p->finishes) != 0)
		fault("finished more than once", p->seq, (uint64_t)atomic_load(&p->finishes));
	ops_finished(p, status);
	atomic_fetch_add(&events, 1);
}

/* ---- load ---- */

static void dress(struct probe *p, int producer, uint64_t seq)
{
	uint64_t r = weir_random_at(0, seq << 3 | (unsigned)producer);
	int64_t now_ns = clock_now_ns();

	weir_event_init(&p->ev, &probe_type, now_ns);
	p->producer = producer;
	p->seq = seq;
	p->status = 0;
	p->ev.class_id = (uint8_t)(r % CLASSES);
	p->ev.key = r >> 50;
	if (r >> 10 & 1)
		p->ev.deadline_ns = now_ns - NS_PER_MS + (int64_t)(r >> 12 & 0x3ffffff);
	p->ev.session = (uint32_t)(r >> 40 & 63) | (r >> 46 & 1 ? WEIR_SESSION_RETRY : 0);
	atomic_store(&p->finishes, 0);
}

static void offer_run(struct weir_graph *g, int id, int *at, uint64_t *seq)
{
	struct weir_event *run[RUN];
	uint64_t r = weir_random_at(0, *seq << 3 | (unsigned)id);
	int n = 0, most = r & 1 ? RUN : 1 + (int)(r >> 1 & 7), why = 0;

	for (int looks = 0; n < most && looks < 4 * RUN; looks++, *at = (*at + 1) % PROBES) {
		struct probe *p = &pool[id][*at];
		if (p->seq != 0 && atomic_load(&p->finishes) == 0)
			continue; /* still in flight, or held */
		dress(p, id, ++*seq);
		run[n++] = &p->ev;
	}
	struct weir_stage *to = g->stages[r >> 8 & 1 ? 0 : (r >> 9) % (unsigned)g->n_stages];
	int taken = n ? weir_offer(to, run, n, &why) : 0;
	for (int i = 0; i < n - taken; i++)
		weir_event_finish(&run[i], why);
	if (n == 0 || taken < n)
		sched_yield();
}

/* Offer events to the current graph. The thread detaches while producers pause, since a draining
 * graph waits until no thread is attached. */
static void *produce(void *arg)
{
	int id = (int)(intptr_t)arg, at = 0;
	uint64_t seq = 0;

	while (!atomic_load(&stop)) {
		pthread_rwlock_rdlock(&graphs);
		struct weir_graph *g = atomic_load(&current);
		bool in = !atomic_load(&pausing) && weir_thread_attach(g, "producer") == 0;
		atomic_fetch_add(&attached, in);
		pthread_rwlock_unlock(&graphs);
		while (in && !atomic_load(&pausing) && !atomic_load(&stop))
			offer_run(g, id, &at, &seq);
		if (in) {
			weir_thread_detach();
			atomic_fetch_sub(&attached, 1);
		}
		sched_yield();
	}
	return NULL;
}

/* ---- changes ---- */

static void check_view(struct weir_graph *g)
{
	struct weir_graph_view *v;

	if (weir_graph_view(g, &v) != 0)
		return;
	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		if (llabs(s->law_residual) > s->law_slack)
			fault("the law does not hold while running",
			    (uint64_t)llabs(s->law_residual), (uint64_t)s->law_slack);
		if (s->admission_nonsense)
			fault("an answer made no sense", (uint64_t)i, s->admission_nonsense);
	}
	weir_graph_view_free(v);
}

/* Two profiles of the same graph. */
static void check_profile(struct weir_graph *g)
{
	struct weir_profile *was = NULL, *p = NULL;

	if (weir_graph_profile(g, &was) == 0 && weir_graph_profile(g, &p) == 0) {
		const char *why = profile_breaks(was);
		if (!why)
			why = profile_breaks(p);
		if (!why)
			why = profile_shrinks(was, p);
		if (why)
			fault(why, 0, 0);
	}
	weir_graph_profile_free(was);
	weir_graph_profile_free(p);
}

struct turn {
	const char *knob;
	const char *const value[5];
};

static void turn_one(
    struct weir_graph *g, const char *who, const struct turn *knobs, unsigned n, unsigned *rnd)
{
	unsigned k = below(rnd, n);
	const char *value = pick(rnd, knobs[k].value);
	char why[500];

	switch (below(rnd, 4)) {
	case 0:
		weir_graph_set_for(g, who, knobs[k].knob, value,
		    (int64_t)below(rnd, 20) * NS_PER_MS + 1, why, sizeof(why));
		break;
	case 1:
		weir_graph_unset(g, who, knobs[k].knob, why, sizeof(why));
		break;
	default:
		weir_graph_set(g, who, knobs[k].knob, value, why, sizeof(why));
	}
}

#define COUNT(table) (unsigned)(sizeof(table) / sizeof((table)[0]))

static void turn_group(struct weir_graph *g, unsigned *rnd)
{
	static const struct turn knobs[] = {{"schedule", {"fifo", "srpt", "mg1", "color", NULL}},
	    {"schedule", {"wavefront", "dbr", "color", "shared", NULL}},
	    {"cores", {"1", "2", "3", "auto", NULL}},
	    {"cores", {"1..3", "2..auto", "1", "4", NULL}}, {"gate.events", {"0", "1", "30", NULL}},
	    {"gate.time", {"0", "1us", "1ms", NULL}}, {"gate.arrived", {"true", "false", NULL}},
	    {"gate.cutoff", {"0", "10us", NULL}}, {"starve", {"auto", "0", "1us", "1ms", NULL}},
	    {"balance", {"true", "false", NULL}}, {"threads.max", {"1", "4", "3", NULL}}};

	turn_one(g, below(rnd, 2) ? "g" : "h", knobs, COUNT(knobs), rnd);
}

static void turn(struct weir_graph *g, const char *stage, unsigned *rnd)
{
	static const struct turn knobs[] = {{"threads.min", {"1", "2", "3", NULL}},
	    {"threads.max", {"1", "4", "3", NULL}}, {"queue.limit", {"1", "33", "512", NULL}},
	    {"cohort.max", {"1", "5", "256", NULL}}, {"cohort.linger", {"0", "1ms", "200us", NULL}},
	    {"admission.mode", {"off", "shadow", "enforce", NULL}},
	    {"admission.rate", {"100", "100000", NULL}}, {"degrade.above", {"1", "50%", NULL}},
	    {"local", {"auto", "always", "never", NULL}}, {"urgent.events", {"0", "1", "8", NULL}},
	    {"urgent.wait", {"0", "1ms", NULL}}};

	if (below(rnd, 3) == 0)
		turn_group(g, rnd);
	else
		turn_one(g, stage, knobs, COUNT(knobs), rnd);
}

static void act(struct weir_graph *g, unsigned *rnd)
{
	const char *stage = stage_names[below(rnd, STAGES_MAX)];
	struct weir_queued queued[QUEUE_PEEK_MAX];
	struct weir_decision told[8];
	struct weir_change done;
	char why[300];

	switch (below(rnd, 17)) {
	case 0:
		weir_graph_steer(g, stage, WEIR_STEER_PAUSE, why, sizeof(why));
		break;
	case 1:
		weir_graph_steer(g, stage, WEIR_STEER_DRAIN, why, sizeof(why));
		break;
	case 2:
	case 3:
	case 4:
		weir_graph_steer(g, stage, WEIR_STEER_RUN, why, sizeof(why));
		break;
	case 5:
		weir_graph_undo(g, &done, why, sizeof(why));
		break;
	case 6:
		weir_graph_set_overload(g, (enum weir_admission_mode)below(rnd, 3));
		break;
	case 7:
		weir_graph_queue(g, stage, queued, QUEUE_PEEK_MAX);
		weir_graph_decisions(g, told, 8);
		break;
	case 8:
		/* not of a graph that drains: law_slack does not cover what a drain moves */
		if (g == atomic_load(&current))
			check_view(g);
		break;
	case 9:
		check_profile(g);
		break;
	default:
		turn(g, stage, rnd);
	}
}

static void *meddle(void *arg)
{
	unsigned rnd = (unsigned)(intptr_t)arg;

	while (!atomic_load(&stop)) {
		pthread_rwlock_rdlock(&graphs);
		struct weir_graph *old = atomic_load(&ending);
		act(old && below(&rnd, 4) == 0 ? old : atomic_load(&current), &rnd);
		pthread_rwlock_unlock(&graphs);
		for (int i = (int)below(&rnd, 64); i > 0; i--)
			sched_yield();
	}
	return NULL;
}

/* ---- the end of a graph ---- */

/* Whether all events in flight are held or wait for children that are: once nothing is offered, all
 * others end. */
static bool at_rest(struct weir_graph *g)
{
	struct weir_graph_view *v;
	uint64_t in_flight = 0, held = 0;

	if (weir_graph_view(g, &v) != 0)
		return false;
	for (int i = 0; i < v->n_stages; i++) {
		in_flight += v->stages[i].in_flight;
		held += v->stages[i].held + v->stages[i].awaiting;
	}
	weir_graph_view_free(v);
	return in_flight == held;
}

/* Stop the producers; events they have offered may still be in flight. */
static void send_away(void)
{
	atomic_store(&pausing, true);
	FIXTURE_AWAIT(atomic_load(&attached) == 0);
}

static void come_to_rest(struct weir_graph *g)
{
	char why[300];

	send_away();
	pthread_rwlock_wrlock(&graphs); /* keeps the actors away from the graphs */
	for (int i = 0; i < g->n_stages; i++)
		if (g->stages[i]->pool &&
		    weir_graph_steer(g, g->stages[i]->name, WEIR_STEER_RUN, why, sizeof(why)) != 0)
			fault("resume is refused", (uint64_t)i, 0);
	FIXTURE_AWAIT(at_rest(g) || atomic_load(&faults) != 0);
	/* a sender may still have to count what has ended since */
	FIXTURE_AWAIT(!profile_at_rest(g, NULL) || atomic_load(&faults) != 0);
	pthread_rwlock_unlock(&graphs);
	atomic_store(&pausing, false);
}

static void check_counts(struct weir_graph *g)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		struct queue *q = &st->sink.queue;
		for (int c = 0; c < g->n_classes; c++)
			if (atomic_load(&q->keep.count[c]))
				fault("counts of held events are left",
				    (uint64_t)atomic_load(&q->keep.count[c]), (uint64_t)c);
		if (atomic_load(&st->sink.running) || atomic_load(&q->leased) || queue_length(q))
			fault("something runs", atomic_load(&st->sink.running),
			    (uint64_t)atomic_load(&q->leased));
		if (sink_in_cells(&st->sink) != 0)
			fault("left in cells", sink_in_cells(&st->sink), (uint64_t)i);
		if (st->pool &&
		    (atomic_load(&st->pool->n_idle) || atomic_load(&st->pool->n_spinning)))
			fault("somebody is idle", (uint64_t)atomic_load(&st->pool->n_idle),
			    (uint64_t)atomic_load(&st->pool->n_spinning));
		if (graph_in_flight(g, i) != 0)
			fault("in flight", (uint64_t)graph_in_flight(g, i), (uint64_t)i);
	}
}

static void drain(struct weir_graph *g, bool at_once)
{
	struct weir_drain_report r;

	if (at_once)
		weir_graph_hurry(g);
	weir_graph_drain(g, at_once ? 0 : 600 * NS_PER_S, &r);
	if (r.law_error != 0 || r.left != 0)
		fault("the law is broken after the drain", (uint64_t)llabs(r.law_error),
		    (uint64_t)r.left);
	check_counts(g);
	ops_check(g);
	const char *why = profile_at_rest(g, NULL);
	if (why)
		fault(why, 0, 0);
}

static void end(struct weir_graph *g, unsigned *rnd)
{
	drain(g, below(rnd, 2));
	pthread_rwlock_wrlock(&graphs);
	atomic_store(&ending, NULL);
	pthread_rwlock_unlock(&graphs);
	weir_graph_free(g);
}

/* ---- rounds ---- */

static void run_for(double seconds)
{
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);

	while (clock_now_ns() < end_ns && atomic_load(&faults) == 0) {
		if (below(&rnd_family, 256) == 0)
			ops_end_family(rnd_family >> 8);
		sched_yield();
	}
}

/* Replace the graph by another one, unless a stage refuses its threads. */
static void reload(unsigned *rnd)
{
	struct weir_graph *old = atomic_load(&current), *next = random_graph(rnd);
	struct weir_errs *errs = calloc(1, sizeof(*errs));

	atomic_store(&may_refuse, below(rnd, 4) == 0);
	int rc = weir_graph_succeed(next, old, errs);
	atomic_store(&may_refuse, false);
	free(errs);
	if (rc != 0) {
		check_counts(next);
		weir_graph_free(next);
		failed_reloads++;
		return;
	}
	send_away();
	pthread_rwlock_wrlock(&graphs);
	atomic_store(&current, next);
	atomic_store(&ending, old);
	pthread_rwlock_unlock(&graphs);
	atomic_store(&pausing, false);
	end(old, rnd);
	rounds++;
}

/* For that long, and until stages have made that many events. */
static void live(double seconds, uint64_t operations, unsigned *rnd)
{
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);

	while ((clock_now_ns() < end_ns || ops_made() < operations) && atomic_load(&faults) == 0) {
		run_for(0.02 * (double)below(rnd, 8));
		atomic_store(&may_refuse, below(rnd, 3) == 0);
		run_for(0.05);
		atomic_store(&may_refuse, false);
		if (below(rnd, 2))
			come_to_rest(atomic_load(&current));
		reload(rnd);
	}
}

static void check_all_ended(int producers)
{
	for (int i = 0; i < producers; i++)
		for (int k = 0; k < PROBES; k++)
			if (pool[i][k].seq != 0 && atomic_load(&pool[i][k].finishes) != 1)
				fault("lost", pool[i][k].seq, (uint64_t)i);
}

static void play(int producers, double seconds, uint64_t operations, unsigned *rnd)
{
	pthread_t p[MAX_PRODUCERS], m[ACTORS];
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_graph *g = random_graph(rnd);

	if (weir_graph_start(g, errs) != 0)
		abort();
	free(errs);
	atomic_store(&current, g);
	atomic_store(&may_die, true);
	for (int i = 0; i < producers; i++)
		pthread_create(&p[i], NULL, produce, (void *)(intptr_t)i);
	for (int i = 0; i < ACTORS; i++)
		pthread_create(&m[i], NULL, meddle, (void *)(intptr_t)rand_r(rnd));
	live(seconds, operations, rnd);
	send_away();
	atomic_store(&stop, true);
	for (int i = 0; i < producers; i++)
		pthread_join(p[i], NULL);
	for (int i = 0; i < ACTORS; i++)
		pthread_join(m[i], NULL);
	end(atomic_load(&current), rnd);
	ops_over();
	check_all_ended(producers);
}

int main(int argc, char **argv)
{
	int producers = argc > 1 ? atoi(argv[1]) : 3;
	double seconds = argc > 2 ? atof(argv[2]) : modes_sleeps ? 1 : modes_splits ? 2 : 4;
	unsigned rnd = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	uint64_t operations = argc > 4 ? (uint64_t)atof(argv[4]) : modes_splits ? 100000 : 0;
	int64_t from_ns = clock_now_ns();
	pthread_rwlockattr_t attr;

	if (producers < 1 || producers > MAX_PRODUCERS) {
		fprintf(stderr, "1 to %d producers\n", MAX_PRODUCERS);
		return 2;
	}
	fixture_register(&mix_ops);
	fixture_on_finish = count_finish;
	weir_log_set_fd(-1);
	pthread_rwlockattr_init(&attr);
	pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&graphs, &attr);
	for (int i = 0; i < producers; i++)
		pool[i] = calloc(PROBES, sizeof(struct probe));
	play(producers, seconds, operations, &rnd);
	if (modes_sleeps)
		printf("sleeps %llu, ", (unsigned long long)atomic_load(&sleeps));
	ops_report();
	printf("%.1f s, graphs %d refused %d events %llu deaths %llu refusals %llu faults %llu\n",
	    (double)(clock_now_ns() - from_ns) / NS_PER_S, rounds + 1, failed_reloads,
	    (unsigned long long)atomic_load(&events), (unsigned long long)atomic_load(&deaths),
	    (unsigned long long)atomic_load(&refusals), (unsigned long long)atomic_load(&faults));
	for (int i = 0; i < producers; i++)
		free(pool[i]);
	return atomic_load(&faults) ? 1 : 0;
}
