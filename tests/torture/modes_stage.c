/* SPDX-License-Identifier: MIT */
#include "torture/modes_ops.h"
#include "torture/modes_stage.h"

#include <time.h>

#include <weir/random.h>

#include "event/local.h"

atomic_ullong faults, deaths, refusals, sleeps;
atomic_bool may_die, may_refuse;

void fault(const char *what, uint64_t a, uint64_t b)
{
	if (atomic_fetch_add(&faults, 1) < 10)
		fprintf(
		    stderr, "%s: %llu, %llu\n", what, (unsigned long long)a, (unsigned long long)b);
}

/* ---- what is held ---- */

/* The events held by a stage; any thread may let them go. */
struct ours {
	pthread_mutex_t lock; /* all zeros are an initialised one */
	struct weir_event *first;
	bool ends; /* ops->stop was called: nothing is held any more */
};

/* The events held by one thread of a stage. */
struct mine {
	unsigned ready;
	int n;
	struct weir_event *ev[MINE_MAX];
};

static bool hold_ours(struct weir_stage *st, struct weir_event **slot)
{
	struct ours *o = weir_state(st);
	struct weir_event *ev = *slot;

	pthread_mutex_lock(&o->lock);
	bool holds = !o->ends;
	if (holds) {
		weir_hold(st, slot);
		ev->next = o->first;
		o->first = ev;
	}
	pthread_mutex_unlock(&o->lock);
	return holds;
}

static struct weir_event *take_ours(struct weir_stage *st, bool ends)
{
	struct ours *o = weir_state(st);

	pthread_mutex_lock(&o->lock);
	struct weir_event *ev = o->first;
	if (ev)
		o->first = ev->next;
	o->ends |= ends;
	pthread_mutex_unlock(&o->lock);
	return ev;
}

static void let_go(struct weir_stage *st, struct weir_event *ev, uint64_t r)
{
	if (r % 4 == 0)
		weir_event_finish(&ev, WEIR_OK);
	else if (r % 4 == 1)
		weir_requeue(st, &ev);
	else
		weir_emit(st, 0, &ev);
}

/* ---- the type ---- */

static int mix_thread_init(struct weir_stage *st)
{
	static atomic_ullong calls;
	struct mine *m = weir_thread_state(st);

	if (m->ready != 0 || m->n != 0)
		fault("thread state is in use", m->ready, (uint64_t)m->n);
	m->ready = READY;
	if (!atomic_load(&may_refuse) || weir_random_at(0, atomic_fetch_add(&calls, 1)) % 3 != 0)
		return 0;
	atomic_fetch_add(&refusals, 1);
	return WEIR_ESYS;
}

static void mix_thread_fini(struct weir_stage *st)
{
	struct mine *m = weir_thread_state(st);

	if (m->ready != READY)
		fault("thread state of another", m->ready, 0);
	for (int i = 0; i < m->n; i++)
		let_go(st, m->ev[i], ((struct probe *)m->ev[i])->seq);
}

static void mix_stop(struct weir_stage *st, int64_t until_ns)
{
	struct weir_event *ev;

	(void)until_ns;
	while ((ev = take_ours(st, true)))
		let_go(st, ev, ((struct probe *)ev)->seq);
}

static void die(uint64_t r)
{
	if (r % 20011 != 0 || !atomic_load(&may_die) || !thread_self()->pool)
		return; /* threads of the test, and that of a drain, are not replaced */
	atomic_fetch_add(&deaths, 1);
	pthread_exit(NULL);
}

/* Sleep for 6 to 20 ms, so that a spare thread stands in for the core. */
static void doze(uint64_t r)
{
	struct timespec ts = {.tv_nsec = (long)(6 + (r >> 20) % 15) * 1000000};

	if (!modes_sleeps || r % 1009 != 0 || !thread_self()->core)
		return;
	atomic_fetch_add(&sleeps, 1);
	nanosleep(&ts, NULL);
}

/* A stage that has held events has no more use for its cells. */
static bool may_hold(const struct weir_stage *st)
{
	return !modes_cells || strcmp(weir_stage_name(st), "s0") == 0;
}

static void mix_one(struct weir_stage *st, struct mine *m, struct weir_event **slot)
{
	struct probe *p = (struct probe *)*slot;
	uint64_t r =
	    weir_random_at(0, p->seq << 8 ^ (uint64_t)p->producer << 4 ^ (uint64_t)++p->status);

	die(r);
	doze(r);
	if (p->status <= HOPS_MAX && r % 4 == 0 && weir_slice_over(st)) {
		weir_requeue(st, slot);
		return;
	}
	if (modes_splits && p->status <= HOPS_MAX && (r >> 40) % 8 == 0) {
		ops_split(st, slot, r >> 8);
		return;
	}
	switch (p->status > HOPS_MAX ? 0 : r >> 32 & 63) {
	case 0:
		weir_event_finish(slot, r & 1 ? WEIR_OK : WEIR_EFAILED);
		break;
	case 1:
		weir_requeue(st, slot);
		break;
	case 2:
	case 3:
		if (!may_hold(st) || !hold_ours(st, slot))
			weir_emit(st, 0, slot);
		break;
	case 4:
		if (may_hold(st) && m->n < MINE_MAX && thread_self()->pool) {
			m->ev[m->n++] = *slot;
			weir_hold(st, slot);
		}
		break; /* else it is left behind */
	case 5:
	case 6:
		weir_emit(st, 1, slot);
		break;
	case 7:
		weir_emit(st, 2, slot);
		break;
	case 8:
	case 10:
	case 11:
		if (may_hold(st)) /* an event that awaits occupies a slot, as a held one does */
			ops_split(st, slot, r >> 8);
		else
			weir_emit(st, 0, slot);
		break;
	case 9:
		ops_spawn(st, r >> 8);
		weir_emit(st, 1, slot);
		break;
	default:
		weir_emit(st, 0, slot);
	}
}

static void mix_handle(struct weir_stage *st, struct weir_event **ev, int n)
{
	struct mine *m = weir_thread_state(st);
	struct weir_event *held;

	if (m->ready != READY)
		fault("a thread that the stage does not know", m->ready, 0);
	while (m->n > 0)
		let_go(st, m->ev[--m->n], (uint64_t)n);
	for (int i = 0; i < 4 && (held = take_ours(st, false)); i++)
		let_go(st, held, (uint64_t)i);
	for (int i = 0; i < n; i++)
		mix_one(st, m, &ev[i]);
}

/* Refused events go another way, or end. */
static void mix_refused(
    struct weir_stage *st, int outlet, struct weir_event **ev, int n, int reason)
{
	for (int i = 0; i < n; i++) {
		struct probe *p = (struct probe *)ev[i];
		uint64_t r = weir_random_at(0, p->seq + (uint64_t)p->status);
		die(r);
		if (outlet == 0 && ++p->status <= HOPS_MAX && r % 8 == 0)
			weir_emit(st, 2, &ev[i]);
		else if (r % 2)
			weir_event_finish(&ev[i], reason);
	}
}

static uint64_t mix_key(struct weir_stage *st, const struct weir_event *ev)
{
	(void)st;
	return ((const struct probe *)ev)->seq % 32;
}

static const struct weir_outlet mix_outlets[] = {{"out", &probe_type, true, ""},
    {"again", &probe_type, true, ""}, {"side", &probe_type, true, ""}, {.name = NULL}};

const struct weir_stage_ops mix_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.mix",
    .summary = "does whatever a handler may do",
    .accepts = &probe_type,
    .outlets = mix_outlets,
    .state_size = sizeof(struct ours),
    .thread_state_size = sizeof(struct mine),
    .thread_init = mix_thread_init,
    .thread_fini = mix_thread_fini,
    .handle = mix_handle,
    .refused = mix_refused,
    .key = mix_key,
    .stop = mix_stop};

/* ---- random configurations ---- */

const char *const stage_names[STAGES_MAX] = {"s0", "s1", "s2", "s3", "s4", "s5"};

unsigned below(unsigned *rnd, unsigned n)
{
	return (unsigned)rand_r(rnd) % n;
}

const char *pick(unsigned *rnd, const char *const *of)
{
	unsigned n = 0;

	while (of[n])
		n++;
	return of[below(rnd, n)];
}

static void random_threads(struct weir_threads_spec *t, unsigned *rnd)
{
	static const char *const policies[] = {"static", "weir", "seda", NULL};

	t->max = 1 + below(rnd, 4);
	t->min = 1 + below(rnd, (unsigned)t->max);
	weir_spec_text(&t->policy, pick(rnd, policies));
}

static void random_queue(struct weir_stage_spec *s, unsigned *rnd)
{
	static const char *const limits[] = {"1", "16", "64", "512", NULL};
	static const char *const maxima[] = {"1", "7", "64", "256", NULL};
	static const char *const lingers[] = {"0", "0", "100us", "1ms", NULL};
	static const char *const disciplines[] = {"auto", "fifo", "priority", "shortest", NULL};
	static const char *const starves[] = {"auto", "0", "100us", NULL};
	static const char *const slos[] = {"3ms", "500ms", NULL};

	fixture_set(s, "queue.limit", pick(rnd, limits));
	fixture_set(s, "queue.discipline", pick(rnd, disciplines));
	if (s->queue.discipline == WEIR_DISCIPLINE_SHORTEST)
		fixture_set(s, "queue.starve", pick(rnd, starves));
	fixture_set(s, "cohort.max", pick(rnd, maxima));
	fixture_set(s, "cohort.linger", pick(rnd, lingers));
	fixture_set(s, "slo", pick(rnd, slos));
}

static void random_policies(struct weir_stage_spec *s, unsigned *rnd)
{
	static const char *const batches[] = {"static", "weir", "seda", NULL};

	fixture_set(s, "admission.policy", fixture_policy(below(rnd, 1 << 16), s->inlined));
	fixture_set(s, "admission.rate", "20000");
	weir_spec_text(&s->cohort.policy, pick(rnd, batches));
	if (!s->inlined && below(rnd, 3) == 0)
		fixture_set(s, "degrade.above", "60%");
}

static bool is_core_group(const struct weir_group_spec *gs)
{
	return strcmp(gs->schedule, "shared") != 0;
}

static void random_core_group(struct weir_group_spec *gs, unsigned *rnd)
{
	static const char *const schedules[] = {
	    "fifo", "wavefront", "srpt", "dbr", "mg1", "color", NULL};
	static const char *const cores[] = {"auto", "1", "1..auto", "2", "1..2", "3", NULL};
	static const char *const policies[] = {"static", "weir", "seda", NULL};

	weir_spec_text(&gs->schedule, pick(rnd, schedules));
	weir_spec_text(&gs->cores, pick(rnd, cores));
	if (strchr(gs->cores, '.'))
		weir_spec_text(&gs->threads.policy, pick(rnd, policies));
	gs->gate.events = below(rnd, 4) == 0 ? 1 + below(rnd, 100) : 0;
	gs->gate.time_ns = gs->gate.events == 0 && below(rnd, 3) == 0 ? 1000 : 0;
	if (gs->gate.events == 0 && gs->gate.time_ns == 0 && below(rnd, 2))
		gs->gate.cutoff_ns = 1 + (int64_t)below(rnd, 20000);
	gs->starve_ns = below(rnd, 2) ? -1 : 1 + (int64_t)below(rnd, 2000000);
	gs->order = (int)below(rnd, 2);
	gs->balance = below(rnd, 4) > 0;
}

static void random_group(struct weir_spec *spec, const char *name, unsigned *rnd)
{
	struct weir_group_spec *gs = weir_spec_add_group(spec, name);

	if (modes_cells || below(rnd, 3) == 0)
		random_core_group(gs, rnd);
	else
		random_threads(&gs->threads, rnd);
}

/* The check refuses core groups without stages, so those become pools. */
static void end_unused(struct weir_spec *spec)
{
	for (int k = 0; k < spec->n_groups; k++) {
		struct weir_group_spec *gs = &spec->groups[k];
		bool used = false;
		for (int i = 0; i < spec->n_stages; i++)
			used |= strcmp(spec->stages[i].group, gs->name) == 0;
		if (used || !is_core_group(gs))
			continue;
		weir_spec_text(&gs->schedule, "shared");
		weir_spec_text(&gs->cores, "auto");
		gs->gate = (struct weir_gate_spec){0};
		gs->starve_ns = -1;
		gs->order = WEIR_ORDER_ARRIVAL;
		gs->balance = true;
	}
}

/* A pool of its own, a group, or a core group. */
static void random_place(struct weir_spec *spec, struct weir_stage_spec *s, unsigned *rnd)
{
	static const char *const waits[] = {"0", "1ms", NULL};
	const struct weir_group_spec *gs = &spec->groups[below(rnd, 4) == 0];

	if (modes_cells ? below(rnd, 8) == 0 : below(rnd, 3) > 0) {
		random_threads(&s->threads, rnd);
		return;
	}
	weir_spec_text(&s->group, gs->name);
	if (!is_core_group(gs))
		return;
	s->local = (int)below(rnd, 3);
	s->urgent.events = below(rnd, 3) == 0 ? 1 : 0;
	fixture_set(s, "urgent.wait", pick(rnd, waits));
	if (modes_cells && below(rnd, 4))
		weir_spec_text(&s->admission.policy, "none");
	if (modes_cells && below(rnd, 4))
		fixture_set(s, "cohort.linger", "0");
	bool queued = s->mode != WEIR_MODE_SHARED || s->cohort.linger_ns > 0 || s->cohort.by[0];
	if (s->local == WEIR_LOCAL_ALWAYS && queued) /* the check refuses it */
		s->local = WEIR_LOCAL_AUTO;
}

static void random_stage(struct weir_spec *spec, int i, int n, const bool *inlined, unsigned *rnd)
{
	static const char *const keys[] = {"producer", "event", "class", "stage", NULL};
	struct weir_stage_spec *s = weir_spec_add_stage(spec, stage_names[i], "t.mix");
	int again = (int)below(rnd, (unsigned)i + 1);

	if (i + 1 < n) {
		weir_spec_link(s, "out", stage_names[i + 1], false);
		weir_spec_link(
		    s, "side", stage_names[i + 1 + (int)below(rnd, (unsigned)(n - i - 1))], false);
	}
	while (inlined[again])
		again--;
	weir_spec_link(s, "again", stage_names[again], true);
	s->inlined = inlined[i];
	random_queue(s, rnd);
	random_policies(s, rnd);
	if (s->inlined)
		return;
	s->mode = modes_cells && below(rnd, 4) ? WEIR_MODE_SHARED : (int)below(rnd, 3);
	if (s->mode == WEIR_MODE_PARTITIONED)
		weir_spec_text(&s->key, pick(rnd, keys));
	else if (below(rnd, 4) == 0)
		weir_spec_text(&s->cohort.by, pick(rnd, keys));
	random_place(spec, s, rnd);
}

static struct weir_spec *random_spec(unsigned *rnd)
{
	struct weir_spec *spec = weir_spec_new("torture");
	int n = 2 + (int)below(rnd, STAGES_MAX - 1);
	bool inlined[STAGES_MAX];

	for (int c = 0; c < CLASSES; c++) {
		static const char *const names[] = {"one", "two", "three"};
		struct weir_class_spec *class = weir_spec_add_class(spec, names[c]);
		if (c > 0 && below(rnd, 3) == 0)
			class->priority = class[-1].priority = c; /* served alike */
	}
	random_group(spec, "g", rnd);
	random_group(spec, "h", rnd);
	for (int i = 0; i < n; i++)
		inlined[i] = i > 0 && below(rnd, 3) == 0;
	for (int i = 0; i < n; i++)
		random_stage(spec, i, n, inlined, rnd);
	end_unused(spec);
	return spec;
}

struct weir_graph *random_graph(unsigned *rnd)
{
	struct weir_graph *g = NULL;
	struct weir_errs *errs = calloc(1, sizeof(*errs));

	while (!g) {
		struct weir_spec *spec = random_spec(rnd);
		memset(errs, 0, sizeof(*errs));
		if (weir_graph_build(spec, &g, errs) != 0) {
			g = NULL;
			weir_spec_free(spec);
		}
	}
	free(errs);
	return g;
}
