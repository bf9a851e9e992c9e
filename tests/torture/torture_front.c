/* SPDX-License-Identifier: MIT */
/*
 * torture_front [producers=3] [seconds=2] [seed=1]
 *
 * Overload control under all conditions: producers offer runs of three classes, with and without
 * deadlines, of known users and of none, first attempts and retries, at every stage of a -> b -> c
 * -> d. Events are admitted upstream on behalf of later stages, and each stage has an objective of
 * 3 ms. The stages are pools, groups, inline, partitioned and in cohorts, chosen at random from the
 * seed. Stage a fails, loops and ends its thread now and then; b holds some events and sends them
 * on later. Another thread changes the modes of the policies and of the graph (the kill switch),
 * threads, queues and cohorts. Each round is stopped during the traffic by a drain without grace
 * time. Afterwards:
 * - every probe has been finished exactly once;
 * - refused events are new and carry the token of a stage, with the reason reported for them;
 * - the law offered = completed + shed + failed held while running and holds exactly (law_error 0);
 * - no policy returned an invalid answer.
 *
 * In the output, "rounds" are graphs built and torn down, "events" finishes, "ahead" refusals on
 * behalf of later stages and "shadow" those of shadow mode; then sheds by reason.
 */
#include "fixture/graph/graph.h"

#include <unistd.h>

#include <weir/random.h>

#include "base/clock.h"
#include "stage/shed_token.h"

#define MAX_PRODUCERS 8
#define PROBES        2048
#define RUN           64
#define CLASSES       3
#define STAGES        4
#define HELD_MAX      8
#define MODE_EVERY    1000 /* changes of other knobs per change of a mode */

static const char *const names[STAGES] = {"a", "b", "c", "d"};

static struct weir_graph *graph;
static atomic_bool stop;
static atomic_ullong events, faults;
static struct probe *pool[MAX_PRODUCERS];
static uint64_t ahead, shadow, shed[WEIR_SHED_REASONS];

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
		uint64_t r = weir_random_at(0, p->seq);
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

/* Events held by a thread, oldest first. */
struct held {
	int n;
	struct weir_event *ev[HELD_MAX];
};

static void hold_fini(struct weir_stage *st)
{
	struct held *h = weir_thread_state(st);

	for (int i = 0; i < h->n; i++)
		weir_event_finish(&h->ev[i], WEIR_EFAILED);
	h->n = 0;
}

/* Each run sends on what earlier runs held, and holds some of its own. */
static void hold_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct held *h = weir_thread_state(st);

	for (int i = 0; i < h->n; i++)
		weir_emit(st, 0, &h->ev[i]);
	h->n = 0;
	for (int i = 0; i < n; i++) {
		const struct probe *p = (struct probe *)ev[i];
		if (h->n < HELD_MAX && weir_random_at(0, p->seq) % 13 == 0) {
			h->ev[h->n++] = ev[i];
			weir_hold(st, &ev[i]);
		} else {
			weir_emit(st, 0, &ev[i]);
		}
	}
}

static const struct weir_stage_ops hold_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.hold",
    .summary = "holds some for a while",
    .thread_state_size = sizeof(struct held),
    .thread_fini = hold_fini,
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = hold_handle};

/* Up to 16 us each, so that producers offer several times the capacity. */
static void work_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	(void)st;
	for (int i = 0; i < n; i++) {
		const struct probe *p = (struct probe *)ev[i];
		int64_t end_ns = clock_now_ns() + (int64_t)(weir_random_at(0, p->seq) & 0x3fff);
		while (clock_now_ns() < end_ns)
			;
		weir_event_finish(&ev[i], WEIR_OK);
	}
}

static const struct weir_stage_ops work_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.work",
    .summary = "computes",
    .accepts = &probe_type,
    .handle = work_handle};

static void count_finish(struct probe *p, int status)
{
	(void)status;
	if (atomic_load(&p->finishes) != 0)
		fault("finished more than once", p->seq, (uint64_t)atomic_load(&p->finishes));
	atomic_fetch_add(&events, 1);
}

/* ---- traffic ---- */

static void dress(struct probe *p, int producer, uint64_t seq)
{
	uint64_t r = weir_random_at(0, seq << 3 | (unsigned)producer);
	int64_t now_ns = clock_now_ns();

	weir_event_init(&p->ev, &probe_type, now_ns);
	p->producer = producer;
	p->seq = seq;
	p->ev.class_id = (uint8_t)(r % CLASSES);
	if (r >> 10 & 1) /* up to 67 ms, some of them already past */
		p->ev.deadline_ns = now_ns - NS_PER_MS + (int64_t)(r >> 12 & 0x3ffffff);
	p->ev.session = (uint32_t)(r >> 40 & 63) | (r >> 46 & 1 ? WEIR_SESSION_RETRY : 0);
	atomic_store(&p->finishes, 0);
}

/* Refused events still belong to their producer and have a token with the reason. For a run refused
 * for several reasons, the reason of one event is reported. */
static void check_refused(struct weir_event **ev, int n, int why)
{
	bool found = false;

	for (int i = 0; i < n; i++) {
		struct shed_token t;
		const struct probe *p = (struct probe *)ev[i];
		if (ev[i]->state != WEIR_EVENT_NEW)
			fault("refused and not new", p->seq, ev[i]->state);
		if (!shed_token_unpack(ev[i]->trace_id, &t))
			fault("refused without a token", p->seq, ev[i]->trace_id);
		else if (t.stage >= STAGES || t.class_id != p->ev.class_id)
			fault("a token of another", t.stage, t.class_id);
		else
			found |= weir_shed_code(t.reason_index) == why;
	}
	if (n > 0 && !found)
		fault("no token has the reason that was told", (uint64_t)-why, (uint64_t)n);
}

static void *produce(void *arg)
{
	int id = (int)(intptr_t)arg, at = 0;
	uint64_t seq = 0, runs = 0;

	if (weir_thread_attach(graph, "producer") != 0)
		abort();
	while (!atomic_load(&stop)) {
		struct weir_event *run[RUN];
		uint64_t r = weir_random_at(0, ++runs << 3 | (unsigned)id);
		int n = 0, most = r & 1 ? RUN : 1 + (int)(r >> 1) % 8, why = 0;
		for (; n < most; n++, at = (at + 1) % PROBES) {
			struct probe *p = &pool[id][at];
			if (p->seq != 0 && atomic_load(&p->finishes) == 0)
				break; /* still in flight */
			dress(p, id, ++seq);
			run[n] = &p->ev;
		}
		/* half of the runs go to the first stage */
		const char *to = names[r >> 8 & 1 ? 0 : r >> 9 & 3];
		int taken = n ? weir_offer(weir_graph_stage(graph, to), run, n, &why) : 0;
		check_refused(run, n - taken, why);
		for (int i = 0; i < n - taken; i++)
			weir_event_finish(&run[i], why);
		if (n == 0 || taken < n)
			sched_yield();
	}
	weir_thread_detach();
	return NULL;
}

/* ---- changes ---- */

static void set(const char *name, const char *knob, const char *value)
{
	char why[256];

	weir_graph_set(graph, name, knob, value, why, sizeof(why));
}

static void set_number(const char *name, const char *knob, unsigned value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	set(name, knob, text);
}

static void check_view(bool at_end)
{
	struct weir_graph_view *v;

	if (weir_graph_view(graph, &v) != 0)
		return;
	for (int i = 0; i < v->n_stages; i++) {
		const struct weir_stage_view *s = &v->stages[i];
		if (llabs(s->law_residual) > s->law_slack)
			fault("the law does not hold while running",
			    (uint64_t)llabs(s->law_residual), (uint64_t)s->law_slack);
		if (s->admission_nonsense)
			fault("an answer made no sense", (uint64_t)i, s->admission_nonsense);
		for (int c = 0; at_end && c < CLASSES; c++) {
			ahead += s->class_view[c].refused_ahead;
			shadow += s->class_view[c].shadow_shed;
			for (int k = 0; k < WEIR_SHED_REASONS; k++)
				shed[k] += s->class_view[c].shed[k];
		}
	}
	weir_graph_view_free(v);
}

static void *meddle(void *arg)
{
	static const char *const modes[] = {"off", "shadow", "enforce", "enforce"};
	static const enum weir_admission_mode switches[] = {WEIR_ADMISSION_OFF,
	    WEIR_ADMISSION_SHADOW, WEIR_ADMISSION_ENFORCE, WEIR_ADMISSION_ENFORCE,
	    WEIR_ADMISSION_ENFORCE};
	unsigned rnd = (unsigned)(intptr_t)arg;

	while (!atomic_load(&stop)) {
		const char *name = names[rand_r(&rnd) % STAGES];
		unsigned threads = 1 + (unsigned)rand_r(&rnd) % 4;
		set(name, "threads.min", "1");
		set_number(name, "threads.max", threads);
		set_number(name, "threads.min", threads);
		set_number(name, "queue.limit", 64 + (unsigned)rand_r(&rnd) % 4000);
		set_number(name, "cohort.max", 1 + (unsigned)rand_r(&rnd) % 256);
		/* Rarely: setting the mode of a policy restarts it, and it would never learn. */
		if (rand_r(&rnd) % MODE_EVERY == 0)
			set(name, "admission.mode", modes[rand_r(&rnd) % 4]);
		if (rand_r(&rnd) % MODE_EVERY == 0)
			weir_graph_set_overload(graph, switches[rand_r(&rnd) % 5]);
		check_view(false);
	}
	return NULL;
}

/* ---- rounds ---- */

static void random_stage(struct weir_spec *spec, int i, unsigned *rnd)
{
	static const char *const use[STAGES] = {"t.chaos", "t.hold", "t.pass", "t.work"};
	struct weir_stage_spec *s = weir_spec_add_stage(spec, names[i], use[i]);
	int place = rand_r(rnd) % 3;

	if (i < STAGES - 1)
		weir_spec_link(s, "out", names[i + 1], false);
	s->threads.max = 1 + rand_r(rnd) % 4;
	s->queue.limit = 64 + rand_r(rnd) % 4000;
	s->slo_ns = 3 * NS_PER_MS;
	s->cohort.max = 1 + rand_r(rnd) % 256;
	if (i == 0) {
		weir_spec_link(s, "again", "a", true);
	} else if (i == 1) {
		if (place == 0) {
			s->mode = WEIR_MODE_PARTITIONED;
			weir_spec_text(&s->key, "producer");
		}
	} else if (place == 0) {
		s->inlined = true;
	} else if (place == 1) {
		weir_spec_text(&s->group, "g");
	} else if (i == STAGES - 1) {
		weir_spec_text(&s->cohort.by, "producer");
		s->cohort.linger_ns = 100000;
	}
}

static struct weir_spec *random_spec(unsigned *rnd)
{
	struct weir_spec *spec = weir_spec_new("torture");
	struct weir_group_spec *g = weir_spec_add_group(spec, "g");

	weir_spec_add_class(spec, "one");
	weir_spec_add_class(spec, "two");
	weir_spec_add_class(spec, "three");
	for (int c = 0; c < CLASSES; c++)
		spec->classes[c].slo_ns = 3 * NS_PER_MS;
	g->threads.max = 3;
	g->threads.min = 1 + rand_r(rnd) % 3;
	for (int i = 0; i < STAGES; i++)
		random_stage(spec, i, rnd);
	return spec;
}

static void check_all_ended(int producers)
{
	for (int i = 0; i < producers; i++)
		for (int k = 0; k < PROBES; k++)
			if (pool[i][k].seq != 0 && atomic_load(&pool[i][k].finishes) != 1)
				fault("lost", pool[i][k].seq, (uint64_t)i);
}

static void round_of(int producers, double seconds, unsigned *rnd)
{
	pthread_t p[MAX_PRODUCERS], m;
	struct weir_drain_report r;

	fixture_reset();
	fixture_on_finish = count_finish;
	graph = fixture_start(random_spec(rnd));
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
	check_view(true);
	check_all_ended(producers);
	weir_graph_free(graph);
}

static void report(int rounds)
{
	printf("rounds %d events %llu faults %llu\nahead %llu shadow %llu shed", rounds,
	    (unsigned long long)atomic_load(&events), (unsigned long long)atomic_load(&faults),
	    (unsigned long long)ahead, (unsigned long long)shadow);
	for (int k = 0; k < WEIR_SHED_REASONS; k++)
		printf(" %s %llu", weir_error_word(weir_shed_code(k)), (unsigned long long)shed[k]);
	printf("\n");
}

int main(int argc, char **argv)
{
	int producers = argc > 1 ? atoi(argv[1]) : 3;
	double seconds = argc > 2 ? atof(argv[2]) : 2;
	unsigned rnd = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	int rounds = 0;

	if (producers < 1 || producers > MAX_PRODUCERS) {
		fprintf(stderr, "1 to %d producers\n", MAX_PRODUCERS);
		return 2;
	}
	fixture_register(&pass_ops);
	fixture_register(&work_ops);
	fixture_register(&chaos_ops);
	fixture_register(&hold_ops);
	weir_log_set_fd(-1);
	for (int i = 0; i < producers; i++)
		pool[i] = calloc(PROBES, sizeof(struct probe));
	int64_t end_ns = clock_now_ns() + (int64_t)(seconds * NS_PER_S);
	while (clock_now_ns() < end_ns && atomic_load(&faults) == 0) {
		round_of(producers, 0.2, &rnd);
		rounds++;
	}
	report(rounds);
	for (int i = 0; i < producers; i++)
		free(pool[i]);
	return atomic_load(&faults) ? 1 : 0;
}
