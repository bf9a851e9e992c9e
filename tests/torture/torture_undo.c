/* SPDX-License-Identifier: MIT */
/*
 * torture_undo [acts=10000] [seed=1]
 *
 * One operator makes random changes to a random chain of stages: sets, values for a time, unsets,
 * pauses, drains, resumes, overload modes, undos, passing time, saves, and reloads that rename,
 * add, remove and move stages (own pool, group, inline; shared, exclusive, partitioned) and change
 * their types and values, in place where that is possible. Events flow meanwhile. At all times:
 * - no change ends the process;
 * - an undo restores exactly the state before the change, unless a reload or an expiry came
 *   between;
 * - a refused undo is refused only once: undos end at "none left";
 * - the configured values are those of the reload, and a source is paused when the graph says so;
 * - every event ends once, and the counters of each graph balance at its end.
 *
 * By hand: torture_undo 100000 SEED. A fault is reported with the number of the change and the
 * seed.
 */
#include <inttypes.h>

#include "fixture/graph/graph.h"

#include "base/clock.h"
#include "operate/changes.h"
#include "torture/undo_shapes.h"

#define PROBES  64
#define STACK   4096
#define HOUR_NS (3600 * NS_PER_S)

static unsigned seed;
static long step;
static int faults;
static struct probe probes[PROBES];
static uint64_t taken;
static long n_reloads, n_in_place, n_refused, n_undone, n_set_aside;
static char why[400];

/* Texts are shown from where they differ. */
static void fault(const char *what, const char *a, const char *b)
{
	size_t same = 0;

	while (a[same] && a[same] == b[same])
		same++;
	same = same > 60 ? same - 60 : 0;
	if (faults++ < 5)
		fprintf(stderr, "act %ld of seed %u: %s\n  %.200s\n  %.200s\n", step, seed, what,
		    a + same, b + same);
}

/* Knobs to set: first those of value_knob[], then other valid ones, then invalid ones; and values
 * for them. */
static const char *const act_knob[] = {"threads.min", "threads.max", "queue.limit", "cohort.max",
    "admission.rate", "degrade.below", "cohort.linger", "admission.mode", "degrade.above",
    "with.word", "with.number", "threads.policy", "mode", "with.wort", "thread.max", "group"};
static const char *const act_value[] = {"1", "2", "3", "auto", "9", "0", "10", "50%", "95%", "1ms",
    "shadow", "enforce", "100k", "word", "", "1001", "-1", "inline"};
#define KNOBS        11 /* number of settable ones in act_knob[] */
#define COUNT(array) ((unsigned)(sizeof(array) / sizeof((array)[0])))

/* ---- the current state ---- */

static void add_text(char **at, const char *end, const char *fmt, ...) WEIR_PRINTF(3, 4);
static void add_text(char **at, const char *end, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(*at, (size_t)(end - *at), fmt, ap);
	va_end(ap);
	*at += n;
	if (*at >= end)
		abort(); /* the buffer of the test is too small */
}

/* Everything that changes can affect, as one text, malloc'ed. */
static char *state_of(struct weir_graph *g)
{
	static struct weir_override l;
	char *text = malloc(32768), *at = text, *end = text + 32768;

	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		add_text(&at, end, "%s %d", st->name, atomic_load(&st->steer));
		for (int k = 0; k < KNOBS; k++) {
			if (weir_graph_override(g, st->name, act_knob[k], &l) != 0)
				continue;
			add_text(&at, end, " %s=%s,%s,%s,%d", act_knob[k], l.configured, l.override,
			    l.permanent, l.expires_wall_ns != 0);
		}
		add_text(&at, end, "\n");
	}
	add_text(&at, end, "%d", (int)weir_graph_overload(g));
	return text;
}

/* States before changes that can be undone, newest last. */
static struct past {
	uint64_t act;
	char *state;
} past[STACK];
static int n_past;

static void forget_past(void)
{
	while (n_past > 0)
		free(past[--n_past].state);
}

static uint64_t newest(struct weir_graph *g)
{
	struct weir_change act = {0};

	weir_graph_changes(g, &act, 1);
	return act.id;
}

/* If an act was recorded after `state` was taken, push `state`, else check that nothing changed.
 * Takes over `state`. */
static void remember(struct weir_graph *g, uint64_t before, char *state)
{
	uint64_t id = newest(g);

	if (id == before) {
		char *now = state_of(g);
		if (strcmp(now, state) != 0)
			fault("what is no act changed something", state, now);
		free(now);
		free(state);
		return;
	}
	if (n_past == STACK)
		forget_past();
	past[n_past++] = (struct past){id, state};
}

/* ---- changes ---- */

static const char *a_stage(struct weir_graph *g)
{
	return below(50) ? g->stages[below((unsigned)g->n_stages)]->name : "nobody";
}

static void turn(struct weir_graph *g)
{
	uint64_t before = newest(g);
	char *state = state_of(g);
	unsigned k = below(below(2) ? 2 : COUNT(act_knob));
	const char *stage = a_stage(g), *knob = act_knob[k];
	const char *value =
	    k < VALUES && below(4) ? value_text[k][below(4)] : act_value[below(COUNT(act_value))];

	switch (below(8)) {
	case 0:
		weir_graph_set_overload(g, (enum weir_admission_mode)below(4));
		break;
	case 1:
	case 2:
		weir_graph_steer(g, stage, (enum weir_steer)below(3), why, sizeof(why));
		break;
	case 3:
		weir_graph_unset(g, stage, knob, why, sizeof(why));
		break;
	case 4:
		weir_graph_set_for(g, stage, knob, value, HOUR_NS, why, sizeof(why));
		break;
	default:
		weir_graph_set(g, stage, knob, value, why, sizeof(why));
	}
	remember(g, before, state);
}

/* Returns false when nothing is left to undo. */
static bool undo(struct weir_graph *g)
{
	struct weir_change act = {0};
	int rc = weir_graph_undo(g, &act, why, sizeof(why));
	const struct past *p = n_past > 0 ? &past[n_past - 1] : NULL;
	bool known = p && p->act + CHANGE_LOG_SIZE > newest(g);

	if (rc == WEIR_EBUSY || rc == WEIR_ENOMEM || (rc != 0 && known))
		fault("an undo is refused", weir_error_text(rc), why);
	n_undone += rc == 0;
	n_set_aside += rc != 0 && rc != WEIR_ENOENT;
	if (rc == 0 && known) {
		char *now = state_of(g);
		if (act.id != p->act || strcmp(now, p->state) != 0)
			fault("an undo brought back something else", p->state, now);
		free(now);
		free(p->state);
		n_past--;
	} else {
		forget_past();
	}
	return rc != WEIR_ENOENT;
}

static void undo_all(struct weir_graph *g)
{
	for (int i = 0; undo(g); i++)
		if (i > CHANGE_LOG_SIZE) {
			fault("undos do not end", "", why);
			return;
		}
}

/* ---- reloads ---- */

static void check_configured(struct weir_graph *g, const struct shape *f)
{
	static struct weir_override l;

	for (int i = 0; i < f->n; i++)
		for (int v = 0; v < VALUES; v++) {
			const char *want = f->one[i].value[v];
			weir_graph_override(g, f->one[i].name, value_knob[v], &l);
			if (strcmp(l.configured, want) != 0)
				fault(value_knob[v], want, l.configured);
		}
}

static void check_sources(struct weir_graph *g)
{
	for (int i = 0; i < g->n_stages; i++) {
		struct weir_stage *st = g->stages[i];
		int how = atomic_load(&st->steer);
		bool paused = st->ops == &spring_ops && *(bool *)weir_state(st);
		if (st->ops == &spring_ops && paused != (how == WEIR_STEER_PAUSE))
			fault("a source does not do what the graph says", st->name, "");
		if (graph_can_steer(st, (enum weir_steer)how, why, sizeof(why)) != 0 &&
		    how != WEIR_STEER_RUN)
			fault("a stage is steered that cannot be", st->name, why);
	}
}

static void end(struct weir_graph *g)
{
	struct weir_drain_report r = {0};
	char text[64];

	weir_graph_drain(g, 600 * NS_PER_S, &r);
	snprintf(text, sizeof(text), "law %" PRId64 ", closed %" PRIu64, r.law_error, r.closed);
	if (r.law_error != 0 || r.closed != 0)
		fault("the drain lost some", text, "");
	snprintf(
	    text, sizeof(text), "%" PRIu64 " taken, %" PRIu64 " ended", taken, fixture_ended());
	if (taken != fixture_ended())
		fault("events do not end once", text, "");
	weir_graph_free(g);
}

/* As in a file written by `weir save`: overrides become configured values. */
static void save_shape(struct weir_graph *g, struct shape *f)
{
	for (int i = 0; i < f->n; i++)
		for (int v = 0; v < VALUES; v++)
			weir_graph_get(g, f->one[i].name, value_knob[v], f->one[i].value[v],
			    sizeof(f->one[i].value[v]));
}

static struct weir_graph *reload(struct weir_graph *g, struct shape *f)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct shape next = *f;
	bool save = below(6) == 0, live = true;
	int n;

	if (save)
		save_shape(g, &next);
	for (unsigned i = save ? 0 : below(5); i > 0; i--)
		live &= change_shape(&next);
	struct weir_graph *wanted = build(&next);
	forget_past();
	n_refused += !wanted;
	bool in_place = wanted && live && weir_graph_configure(g, wanted, &n) == 0;
	if (in_place) {
		weir_graph_free(wanted);
		n_in_place++;
	} else if (wanted) {
		if (weir_graph_succeed(wanted, g, errs) != 0)
			fault("a good graph does not follow", errs->err[0].text, "");
		end(g);
		g = wanted;
		n_reloads++;
	}
	if (wanted)
		*f = next;
	free(errs);
	check_configured(g, f);
	check_sources(g);
	for (unsigned i = below(8); i > 0 && undo(g); i--)
		continue;
	return g;
}

/* ---- the main loop ---- */

static void offer_some(struct weir_graph *g)
{
	struct weir_event *ev[PROBES];
	int n = 0;

	for (int i = 0; i < PROBES && n < 8; i++) {
		struct probe *p = &probes[i];
		if (p->seq != 0 && atomic_load(&p->finishes) == 0)
			continue; /* in flight */
		p->seq++;
		p->producer = i;
		atomic_store(&p->finishes, 0);
		if (p->ev.state != WEIR_EVENT_NEW)
			weir_event_init(&p->ev, &probe_type, clock_now_ns());
		ev[n++] = &p->ev;
	}
	if (n == 0)
		return;
	weir_thread_attach(g, "operator");
	int in = weir_offer(g->stages[1], ev, n, NULL);
	weir_thread_detach();
	taken += (unsigned)in;
	for (int i = 0; i < n - in; i++)
		atomic_store(&((struct probe *)ev[i])->finishes, 1);
}

static struct weir_graph *act(struct weir_graph *g, struct shape *f)
{
	switch (below(20)) {
	case 0:
	case 1:
		return reload(g, f);
	case 2:
	case 3:
	case 4:
		undo(g);
		break;
	case 5:
		if (below(20) == 0)
			undo_all(g);
		break;
	case 6:
		graph_expire(g, clock_now_ns() + (below(2) ? 2 : 0) * HOUR_NS);
		forget_past();
		break;
	case 7:
		offer_some(g);
		break;
	default:
		turn(g);
	}
	return g;
}

int main(int argc, char **argv)
{
	static const struct weir_stage_ops *const types[] = {
	    &pass_ops, &end_ops, &word_ops, &single_ops, &spring_ops, &mute_ops};
	long acts = argc > 1 ? atol(argv[1]) : 10000;
	struct weir_graph *g = NULL;
	struct shape f;

	seed = rnd = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
	for (size_t i = 0; i < COUNT(types); i++)
		fixture_register(types[i]);
	weir_log_set_fd(-1);
	while (!g) {
		random_shape(&f);
		g = build(&f);
	}
	if (weir_graph_start(g, &(struct weir_errs){0}) != 0)
		abort();
	for (step = 1; step <= acts && faults == 0; step++)
		g = act(g, &f);
	undo_all(g);
	forget_past();
	end(g);
	printf("seed %u: acts %ld reloads %ld in place %ld refused %ld undone %ld set aside %ld "
	       "events %" PRIu64 " faults %d\n",
	    seed, step - 1, n_reloads, n_in_place, n_refused, n_undone, n_set_aside, taken, faults);
	return faults ? 1 : 0;
}
