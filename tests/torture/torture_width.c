/* SPDX-License-Identifier: MIT */
/*
 * torture_width [rounds=3] [seconds=1] [seed=1]
 *
 * A stage with thousands of held events, in one graph per round, each of which takes over from the
 * one before while that still holds events. Producers offer without a pause; enders finish, emit,
 * requeue, refuse and hold again at random; half of the events are held with tickets, and expire
 * while enders claim them; handlers die; the operator changes bounds and limits, pauses, drains and
 * resumes. At all times no more are held than the width allows, and in the end every event has
 * ended once and the counters of each graph balance.
 */
#include <inttypes.h>
#include <pthread.h>

#include "fixture/graph/graph.h"

#include "base/clock.h"
#include "graph/graph.h"
#include "stage/thread.h"

#define PRODUCERS 2
#define ENDERS    2
#define PROBES    12000 /* of each producer */
#define LIMIT     16000
#define WIDTH     6000
#define RING      16384 /* tickets; further ones are lost, and their events expire */

struct keeper {
	pthread_mutex_t lock;
	struct weir_event *first, **last; /* held without tickets */
	int n;                            /* held, at least */
	uint64_t ring[RING];
	unsigned first_ticket, last_ticket;
};

struct side;

struct actor {
	struct side *side;
	pthread_t thread;
	unsigned seed;
	atomic_uint_fast64_t done;
	struct probe *probes;
	bool *used;
};

/* A graph and the threads that use it. */
struct side {
	struct weir_graph *g;
	struct weir_stage *stage, *pass; /* `pass` sends on to `stage` */
	atomic_bool stop_offering, stop_ending;
	struct actor producer[PRODUCERS], ender[ENDERS];
};

static uint64_t offered; /* in the rounds that have ended */
static atomic_int faults, most_held;
static atomic_uint_fast64_t deaths, claims, expiries;

static void fault(const char *what, int64_t is)
{
	if (atomic_fetch_add(&faults, 1) < 5)
		fprintf(stderr, "torture_width: %s: %" PRId64 "\n", what, is);
}

static unsigned below(unsigned *seed, unsigned n)
{
	*seed = *seed * 1664525u + 1013904223u;
	return (*seed >> 8) % n;
}

/* ---- the stage ---- */

static int keeper_init(struct weir_stage *st, struct weir_err *err)
{
	struct keeper *k = weir_state(st);

	(void)err;
	pthread_mutex_init(&k->lock, NULL);
	k->last = &k->first;
	return 0;
}

static void count_held(struct keeper *k, int n)
{
	k->n += n;
	if (k->n > atomic_load(&most_held))
		atomic_store(&most_held, k->n);
}

static void keep(struct weir_stage *st, struct weir_event **slot)
{
	struct keeper *k = weir_state(st);
	struct weir_event *e = *slot;

	weir_hold(st, slot);
	pthread_mutex_lock(&k->lock);
	e->next = NULL;
	*k->last = e;
	k->last = &e->next;
	count_held(k, 1);
	pthread_mutex_unlock(&k->lock);
}

/* Hold an event, which is in a handler or held, with a ticket, for up to 8 ms or for ever. */
static void keep_ticket(struct weir_stage *st, struct weir_event **slot, unsigned *seed)
{
	struct keeper *k = weir_state(st);
	int64_t until_ns = clock_now_ns() + below(seed, 8) * NS_PER_MS;

	pthread_mutex_lock(&k->lock);
	bool kept = k->last_ticket - k->first_ticket < RING / 2;
	pthread_mutex_unlock(&k->lock);
	if (kept && below(seed, 2))
		until_ns = WEIR_NO_DEADLINE;
	uint64_t ticket = weir_hold_until(st, slot, until_ns);
	pthread_mutex_lock(&k->lock);
	count_held(k, 1);
	if (kept)
		k->ring[k->last_ticket++ % RING] = ticket;
	pthread_mutex_unlock(&k->lock);
}

static void keeper_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	static _Thread_local unsigned seed = 1;

	for (int i = 0; i < n; i++) {
		if (below(&seed, 20) == 0)
			weir_event_finish(&ev[i], WEIR_OK);
		else if (below(&seed, 2))
			keep_ticket(st, &ev[i], &seed);
		else
			keep(st, &ev[i]);
	}
	/* the threads of the test, which run the stage if it is inline, must live */
	if (thread_self()->pool && below(&seed, 20000) == 0) {
		atomic_fetch_add(&deaths, 1);
		pthread_exit(NULL);
	}
}

static void keeper_expired(struct weir_stage *st, struct weir_event **ev, int n)
{
	static _Thread_local unsigned seed = 1;
	struct keeper *k = weir_state(st);

	atomic_fetch_add(&expiries, (unsigned)n);
	pthread_mutex_lock(&k->lock);
	k->n -= n;
	pthread_mutex_unlock(&k->lock);
	for (int i = 0; i < n; i++)
		switch (below(&seed, 8)) {
		case 0:
			weir_emit(st, 0, &ev[i]);
			break;
		case 1:
			weir_hold_refused(st, ev[i]);
			weir_requeue(st, &ev[i]);
			break;
		case 2:
			weir_event_finish(&ev[i], WEIR_EFAILED);
			break;
		case 3:
			keep_ticket(st, &ev[i], &seed);
			break;
		default: /* the framework finishes it */
			break;
		}
	if (below(&seed, 5000) == 0) {
		atomic_fetch_add(&deaths, 1);
		pthread_exit(NULL);
	}
}

static struct weir_event *keeper_take(struct keeper *k)
{
	pthread_mutex_lock(&k->lock);
	struct weir_event *ev = k->first;
	if (ev) {
		k->first = ev->next;
		if (!k->first)
			k->last = &k->first;
		k->n--;
	}
	pthread_mutex_unlock(&k->lock);
	return ev;
}

/* Take the oldest ticket, and claim its event. */
static struct weir_event *keeper_claim(struct weir_stage *st)
{
	struct keeper *k = weir_state(st);
	uint64_t ticket = 0;

	pthread_mutex_lock(&k->lock);
	if (k->first_ticket != k->last_ticket)
		ticket = k->ring[k->first_ticket++ % RING];
	pthread_mutex_unlock(&k->lock);
	struct weir_event *ev = ticket ? weir_hold_claim(st, ticket) : NULL;
	if (!ev)
		return NULL;
	if (weir_hold_claim(st, ticket))
		fault("claimed twice", (int64_t)ticket);
	atomic_fetch_add(&claims, 1);
	pthread_mutex_lock(&k->lock);
	k->n--;
	pthread_mutex_unlock(&k->lock);
	return ev;
}

static const struct weir_stage_ops keeper_ops = {.abi = WEIR_STAGE_ABI,
    .flags = WEIR_STAGE_HOLDS,
    .name = "t.keeper",
    .summary = "holds events until the test ends them",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .state_size = sizeof(struct keeper),
    .init = keeper_init,
    .handle = keeper_handle,
    .expired = keeper_expired};

/* ---- threads ---- */

static void *offer(void *arg)
{
	struct actor *a = arg;
	struct side *s = a->side;
	int at = 0;

	weir_thread_attach(s->g, "producer");
	while (!atomic_load(&s->stop_offering)) {
		struct probe *p = &a->probes[at];
		if (a->used[at] && atomic_load(&p->finishes) == 0) { /* still in the graph */
			sched_yield();
			continue;
		}
		struct weir_event *ev = &p->ev;
		*p = (struct probe){.seq = (uint64_t)at};
		weir_event_init(ev, &probe_type, 1);
		ev->key = (uint64_t)at;
		a->used[at] = true;
		if (weir_offer(a == s->producer ? s->pass : s->stage, &ev, 1, NULL) == 0)
			weir_event_finish(&ev, WEIR_EQUEUE);
		a->done++;
		at = (at + 1) % PROBES;
	}
	weir_thread_detach();
	return NULL;
}

static void end_one(struct side *s, struct actor *a, struct weir_event *ev)
{
	switch (below(&a->seed, 11)) {
	case 0:
		weir_emit(s->stage, 0, &ev);
		break;
	case 9:
		weir_hold_served(s->stage, ev);
		weir_emit(s->stage, 0, &ev);
		break;
	case 10:
		weir_hold_served(s->stage, ev);
		weir_hold_served(s->stage, ev);
		weir_event_finish(&ev, WEIR_OK);
		break;
	case 1:
		weir_requeue(s->stage, &ev);
		break;
	case 2:
		weir_hold_refused(s->stage, ev);
		weir_requeue(s->stage, &ev);
		break;
	case 3:
		weir_hold_refused(s->stage, ev);
		weir_event_finish(&ev, WEIR_EFAILED);
		break;
	case 4:
		keep_ticket(s->stage, &ev, &a->seed);
		break;
	default:
		weir_event_finish(&ev, WEIR_OK);
	}
}

static void wake_nobody(struct thread_link *link)
{
	(void)link;
}

static void *end(void *arg)
{
	struct actor *a = arg;
	struct side *s = a->side;
	struct keeper *k = weir_state(s->stage);
	struct thread_link link = {.wake = wake_nobody};

	/* the first is like an I/O thread, which takes events of inline stages */
	thread_enter(s->g, "ender", s->stage, a == s->ender ? &link : NULL);
	while (!atomic_load(&s->stop_ending)) {
		struct weir_event *ev;
		for (int i = 0; i < 32 && (ev = keeper_take(k)); i++)
			end_one(s, a, ev);
		for (int i = 0; i < 32; i++)
			if ((ev = keeper_claim(s->stage)))
				end_one(s, a, ev);
		weir_thread_flush();
		sched_yield();
	}
	weir_thread_detach();
	return NULL;
}

/* ---- rounds ---- */

static struct weir_graph *build(unsigned round)
{
	struct weir_spec *spec = weir_spec_new("width");
	struct weir_stage_spec *st = fixture_stage(spec, "keep", "t.keeper", "end");

	fixture_set(st, "queue.limit", "16000");
	fixture_set(st, "width.max", "6000");
	fixture_set(st, "width.policy", round % 2 ? "static" : "weir");
	fixture_set(st, "slo", "1h");
	fixture_set(st, "threads.min", "2");
	fixture_set(st, "threads.max", "3");
	if (round % 4 == 3) {
		st->inlined = true;
	} else if (round % 3 == 2) {
		st->mode = WEIR_MODE_PARTITIONED;
		weir_spec_text(&st->key, "event");
	}
	fixture_stage(spec, "end", "t.end", NULL);
	fixture_stage(spec, "pass", "t.pass", "keep");
	return fixture_build(spec);
}

static void begin(struct side *s, unsigned round, struct side *old, unsigned seed)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));

	*s = (struct side){.g = build(round)};
	int rc = old ? weir_graph_succeed(s->g, old->g, errs) : weir_graph_start(s->g, errs);
	if (rc != 0)
		fault("start", rc);
	free(errs);
	s->stage = weir_graph_stage(s->g, "keep");
	s->pass = weir_graph_stage(s->g, "pass");
	for (int i = 0; i < PRODUCERS; i++) {
		struct actor *a = &s->producer[i];
		*a = (struct actor){.side = s,
		    .probes = calloc(PROBES, sizeof(*a->probes)),
		    .used = calloc(PROBES, sizeof(bool))};
		pthread_create(&a->thread, NULL, offer, a);
	}
	for (int i = 0; i < ENDERS; i++) {
		s->ender[i] = (struct actor){.side = s, .seed = seed + (unsigned)i};
		pthread_create(&s->ender[i].thread, NULL, end, &s->ender[i]);
	}
}

/* Wait until the producers have offered `more` events, at most until `until_ns`. Producers offer
 * even while the queue is full or the stage drains: their events are refused then. */
static void await_offers(struct side *s, uint64_t more, int64_t until_ns)
{
	uint64_t first = 0, now = 0;

	for (int i = 0; i < PRODUCERS; i++)
		first += atomic_load(&s->producer[i].done);
	while (now < first + more && clock_now_ns() < until_ns) {
		sched_yield();
		now = 0;
		for (int i = 0; i < PRODUCERS; i++)
			now += atomic_load(&s->producer[i].done);
	}
}

static void operate(struct side *s, unsigned *seed, int64_t until_ns)
{
	static const char *const widths[] = {"1", "7", "300", "6000"};
	char why[300];

	while (clock_now_ns() < until_ns) {
		switch (below(seed, 6)) {
		case 0:
			weir_graph_set(
			    s->g, "keep", "width.max", widths[below(seed, 4)], why, sizeof(why));
			break;
		case 1:
			weir_graph_set(
			    s->g, "keep", "width.min", widths[below(seed, 2)], why, sizeof(why));
			break;
		case 2:
		case 3:
			weir_graph_steer(
			    s->g, "keep", (enum weir_steer)below(seed, 3), why, sizeof(why));
			break;
		default:
			weir_graph_steer(s->g, "keep", WEIR_STEER_RUN, why, sizeof(why));
		}
		struct weir_graph_view *v = NULL;
		if (weir_graph_view(s->g, &v) == 0)
			weir_graph_view_free(v);
		await_offers(s, 2000, until_ns);
	}
	weir_graph_set(s->g, "keep", "width.max", "6000", why, sizeof(why));
	weir_graph_steer(s->g, "keep", WEIR_STEER_RUN, why, sizeof(why));
}

static void check_ended(const struct actor *a)
{
	for (int i = 0; i < PROBES; i++)
		if (a->used[i] && atomic_load(&a->probes[i].finishes) != 1)
			fault("an event ended so often", atomic_load(&a->probes[i].finishes));
}

static void finish(struct side *s)
{
	struct weir_drain_report r;

	atomic_store(&s->stop_offering, true);
	for (int i = 0; i < PRODUCERS; i++)
		pthread_join(s->producer[i].thread, NULL);
	weir_graph_drain(s->g, 60 * NS_PER_S, &r);
	if (r.law_error != 0 || r.lost != 0 || r.left != 0)
		fault("law", r.law_error);
	atomic_store(&s->stop_ending, true);
	for (int i = 0; i < ENDERS; i++)
		pthread_join(s->ender[i].thread, NULL);
	if (queue_kept_all(&s->stage->sink.queue) != 0)
		fault("still counted as in work", queue_kept_all(&s->stage->sink.queue));
	pthread_mutex_destroy(&((struct keeper *)weir_state(s->stage))->lock);
	weir_graph_free(s->g);
	for (int i = 0; i < PRODUCERS; i++) {
		check_ended(&s->producer[i]);
		offered += atomic_load(&s->producer[i].done);
		free(s->producer[i].probes);
		free(s->producer[i].used);
	}
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 3;
	double seconds = argc > 2 ? atof(argv[2]) : 1;
	unsigned seed = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	static struct side side[2];

	fixture_register(&keeper_ops);
	fixture_register(&end_ops);
	fixture_register(&pass_ops);
	weir_log_set_level(WEIR_LOG_ERROR);
	for (unsigned r = 0; r < rounds; r++) {
		struct side *s = &side[r % 2], *old = r > 0 ? &side[(r + 1) % 2] : NULL;
		begin(s, r, old, seed + r);
		if (old)
			finish(old);
		operate(s, &seed, clock_now_ns() + (int64_t)(seconds * NS_PER_S));
	}
	finish(&side[(rounds + 1) % 2]);
	if (atomic_load(&most_held) > WIDTH)
		fault("more held than the width", atomic_load(&most_held));
	printf("torture_width: %" PRIu64 " events offered, at most %d held, %" PRIu64
	       " deaths, %" PRIu64 " claims, %" PRIu64 " expiries: %s\n",
	    offered, atomic_load(&most_held), (uint64_t)atomic_load(&deaths),
	    (uint64_t)atomic_load(&claims), (uint64_t)atomic_load(&expiries),
	    atomic_load(&faults) ? "wrong" : "fine");
	return atomic_load(&faults) != 0;
}
