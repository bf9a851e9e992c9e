/* SPDX-License-Identifier: MIT */
/*
 * The sweep: rounds over multiples of the capacity, and the repetition of phases that do not count.
 *
 * A phase is repeated, at most REPEATS_MAX times, if its generator was late, or if its load is below
 * the capacity and was not served: a single disturbance should not decide. If loads below the
 * capacity are not served in spite of that, the machine has changed since the search. The search and
 * the sweep then start over, once; the phases so far are set aside. If the highest load was no
 * overload, the sweep goes on at twice that, at most EXTEND_MAX times. If the result is not certain,
 * the highest load and one of the best loads then alternate, and the ratios of these rounds decide.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_run.h"
#include "load/judge.h"
#include "load/phases.h"
#include "load/sentence.h"
#include "report/noise.h"
#include "report/verdict.h"

/* Guesses: the time of a noisy run should not exceed that of a quiet one by more than a factor of
 * two. */
#define REPEATS_MAX 2
#define EXTEND_MAX  5
/* Factor by which the highest load may be less than asked for. A guess. */
#define EXTEND_LOW 3
/* Least highest multiple of a sweep that asks for overload. A guess. */
#define EXTEND_FROM 2
/* Factor by which the measured rate of a load may differ from the planned one. A guess: with few
 * requests, chance alone makes a tenth. */
#define NEAR          1.2
#define MULTIPLES_MAX 64

int64_t bench_sweep_ns(const struct bench *b)
{
	const struct bench_options *o = &b->req->opt;
	double multiple[MULTIPLES_MAX];
	struct weir_err err;
	int n = o->sweep ? phases_multiples(o->sweep, multiple, MULTIPLES_MAX, &err) : 0;

	return n > 0 ? n * (o->for_ns + o->pause_ns) * o->rounds * b->n_sides : 0;
}

/* Return whether phase `i` of a side has to be repeated. */
static bool repeats(const struct bench_side *s, int i)
{
	return load_phase_offers(&s->plan, i) &&
	       (s->result.phase[i].late || verdict_lost(&s->plan, &s->result, i));
}

/* Append a repetition of `phase`, preceded by a pause. Returns 0 or WEIR_EINVAL (no room). */
static int append(struct load_plan *phases, const struct load_phase *phase, int64_t pause_ns)
{
	if (phases->n_phases + 2 > LOAD_PHASES_MAX)
		return WEIR_EINVAL;
	if (pause_ns > 0)
		phases->phase[phases->n_phases++] =
		    (struct load_phase){.name = "pause", .for_ns = pause_ns, .round = phase->round};
	phases->phase[phases->n_phases++] = *phase;
	return 0;
}

/* Whether the side has room for `n` more phases. */
static bool has_room(const struct bench_side *s, int n)
{
	return n > 0 && s->plan.n_phases + n <= LOAD_PHASES_MAX;
}

/* Repeat the phases from `first` on that do not count. Returns the number of phases run. */
static int repeat_once(
    struct bench *b, struct bench_side *s, int first, struct weir_err *err, int *rc)
{
	struct load_plan *phases = calloc(1, sizeof(*phases));
	int64_t worst_ns = 0;

	*rc = phases ? 0 : sentence_nomem(err);
	for (int i = first; phases && i < s->plan.n_phases; i++) {
		const struct load_phase_result *r = &s->result.phase[i];
		if (!repeats(s, i))
			continue;
		append(phases, &s->plan.phase[i], b->req->opt.pause_ns);
		if (r->late && hdr_quantile_ns(&r->lag, 0.99) > worst_ns)
			worst_ns = hdr_quantile_ns(&r->lag, 0.99);
	}
	int n = phases && has_room(s, phases->n_phases) ? phases->n_phases : 0;
	if (n > 0 && worst_ns > 0)
		bench_was_late(b, worst_ns);
	if (n > 0 && !b->req->opt.quiet)
		fprintf(stderr, "  repeating %d load%s that %s\n",
		    n / (b->req->opt.pause_ns > 0 ? 2 : 1),
		    n > (b->req->opt.pause_ns > 0 ? 2 : 1) ? "s" : "",
		    worst_ns > 0 ? "did not count" : "should have been served");
	if (n > 0)
		*rc = bench_run(b, s, phases, err);
	free(phases);
	return n;
}

static int repeat(struct bench *b, struct bench_side *s, int first, struct weir_err *err)
{
	int rc = 0;

	snprintf(b->part, sizeof(b->part), "again");
	for (int i = 0; rc == 0 && i < REPEATS_MAX && !atomic_load(&bench_stop_asked); i++) {
		int next = s->plan.n_phases;
		if (repeat_once(b, s, first, err, &rc) == 0)
			break;
		first = next;
	}
	return rc;
}

/* Add the phases of the sweep in round `round`. The rates rise in odd rounds and fall in even ones.
 * phases_sweep creates one or more rounds and alternates in the same way. For an even round, create
 * two rounds and use the second one. */
static int sweep_phases(struct bench *b, int round, struct load_plan *phases, struct weir_err *err)
{
	const struct bench_options *o = &b->req->opt;
	double multiple[MULTIPLES_MAX];
	int n = phases_multiples(o->sweep, multiple, MULTIPLES_MAX, err);
	int direction = round % 2 ? 1 : 2;

	if (n < 0)
		return n;
	int rc = phases_sweep(
	    phases, b->capacity_per_s, multiple, n, direction, o->for_ns, o->pause_ns, err);
	if (rc != 0)
		return rc;
	int each = phases->n_phases / direction;
	memmove(phases->phase, &phases->phase[phases->n_phases - each],
	    (size_t)each * sizeof(phases->phase[0]));
	phases->n_phases = each;
	for (int i = 0; i < each; i++)
		phases->phase[i].round = o->rounds > 1 ? round : 0;
	return 0;
}

static int sweep_side(struct bench *b, struct bench_side *s, int round,
    const struct load_plan *phases, struct weir_err *err)
{
	int first = s->plan.n_phases;

	if (b->req->opt.rounds > 1)
		snprintf(b->part, sizeof(b->part), "round %d/%d", round, (int)b->req->opt.rounds);
	else
		snprintf(b->part, sizeof(b->part), "sweep");
	b->after_ns -= phases_total_ns(phases);
	int rc = bench_run(b, s, phases, err);
	return rc == 0 ? repeat(b, s, first, err) : rc;
}

static int sweep_round(struct bench *b, int round, struct weir_err *err)
{
	struct load_plan *phases = calloc(1, sizeof(*phases));
	int rc = phases ? sweep_phases(b, round, phases, err) : sentence_nomem(err);

	/* The order alternates from round to round, so that neither side has an advantage. */
	for (int i = 0; rc == 0 && i < b->n_sides && !atomic_load(&bench_stop_asked); i++)
		rc =
		    sweep_side(b, &b->side[round % 2 ? i : b->n_sides - 1 - i], round, phases, err);
	free(phases);
	return rc;
}

static int sweep_rounds(struct bench *b, struct weir_err *err)
{
	int rc = 0;

	b->after_ns = bench_sweep_ns(b);
	for (int r = 1; rc == 0 && r <= b->req->opt.rounds && !atomic_load(&bench_stop_asked); r++)
		rc = sweep_round(b, r, err);
	b->after_ns = 0;
	return rc;
}

/* ---- noise ---- */

static struct verdict verdict(const struct bench *b)
{
	return verdict_of(&b->side[0].plan, &b->side[0].result);
}

/* The number of rounds after which it is judged whether their ratios decide: three, as the interval
 * of noise_pairs assumes. 13 is a guess: so many rounds take about as long as the search. */
static const int looks[] = {NOISE_PAIRS_MIN, 13, 25};

#define N_LOOKS ((int)(sizeof(looks) / sizeof(looks[0])))
/* Rounds that yield no ratio are repeated so often: the generator was late in them, or the load that
 * should have been a best one was no overload. */
#define FAILED_MAX 8
/* Noise from which on one sweep must not say that goodput falls: a single disturbance has that
 * effect, too. A guess. */
#define NOISE_DOUBT 0.03

/* Whether the result is not certain. */
static bool open_question(const struct verdict *v)
{
	switch (v->kind) {
	case VERDICT_UNSURE:
		return true;
	case VERDICT_LOSES: /* a collapse is possible, too */
		return v->pairs > 0 ? v->low < VERDICT_FAIR : v->noise >= NOISE_DOUBT;
	case VERDICT_COLLAPSES:
		return v->pairs == 0 && v->noise >= NOISE_DOUBT;
	default:
		return false;
	}
}

/* Return the phase of the highest load, or -1. */
static int highest_load(const struct bench_side *s)
{
	int at = -1;

	for (int i = 0; i < s->plan.n_phases; i++)
		if (load_phase_counts(&s->plan, &s->result, i) && !s->plan.phase[i].trial &&
		    (at < 0 || s->plan.phase[i].multiple > s->plan.phase[at].multiple))
			at = i;
	return at;
}

/* Whether phase `i` is one of the best loads, and the first of this multiple. */
static bool best_load(const struct bench_side *s, const struct verdict *v, int i, int highest)
{
	const struct load_phase *p = &s->plan.phase[i];

	if (!load_phase_counts(&s->plan, &s->result, i) || p->trial ||
	    p->from_per_s < v->best_from / NEAR || p->from_per_s > v->best_to * NEAR ||
	    p->multiple >= s->plan.phase[highest].multiple)
		return false;
	for (int k = 0; k < i; k++)
		if (s->plan.phase[k].multiple == p->multiple && !s->plan.phase[k].trial &&
		    load_phase_counts(&s->plan, &s->result, k))
			return false;
	return true;
}

/* Return a phase in the middle of the best loads, or -1. It is chosen by its rate and not by its
 * goodput: the luckiest phase would be a wrong reference. */
static int middle_load(const struct bench_side *s, const struct verdict *v, int highest)
{
	int found[LOAD_PHASES_MAX], n = 0;

	for (int i = 0; i < s->plan.n_phases; i++)
		if (best_load(s, v, i, highest)) {
			int k = n++;
			for (; k > 0 &&
			       s->plan.phase[found[k - 1]].multiple > s->plan.phase[i].multiple;
			     k--)
				found[k] = found[k - 1];
			found[k] = i;
		}
	return n > 0 ? found[n / 2] : -1;
}

/* If the newest phase of the load `best` was served, return a phase of the next higher load, below
 * the highest: the capacity is higher than it was. */
static int still_best(const struct bench_side *s, int best, int highest)
{
	int newest = best, next = best;

	for (int i = 0; i < s->plan.n_phases; i++) {
		const struct load_phase *p = &s->plan.phase[i];
		if (p->trial || !load_phase_counts(&s->plan, &s->result, i))
			continue;
		if (p->multiple == s->plan.phase[best].multiple)
			newest = i;
		else if (p->multiple > s->plan.phase[best].multiple &&
			 p->multiple < s->plan.phase[highest].multiple &&
			 (next == best || p->multiple < s->plan.phase[next].multiple))
			next = i;
	}
	return verdict_served(&s->plan, &s->result, newest) ? next : best;
}

/* Run one of the best loads and the highest load directly after each other, as round `round`. The
 * order alternates. Returns the number of phases run. */
static int decide_once(
    struct bench *b, int best, int highest, int round, struct weir_err *err, int *rc)
{
	struct bench_side *s = &b->side[0];
	struct load_plan *phases = calloc(1, sizeof(*phases));
	int order[] = {round % 2 ? best : highest, round % 2 ? highest : best};

	*rc = phases ? 0 : sentence_nomem(err);
	for (int i = 0; phases && i < 2; i++) {
		struct load_phase p = s->plan.phase[order[i]];
		p.round = round;
		append(phases, &p, b->req->opt.pause_ns);
	}
	int n = phases && has_room(s, phases->n_phases) ? phases->n_phases : 0;
	if (n > 0)
		*rc = bench_run(b, s, phases, err);
	free(phases);
	return n;
}

static int last_round(const struct bench_side *s)
{
	int last = 1;

	for (int i = 0; i < s->plan.n_phases; i++)
		last = s->plan.phase[i].round > last ? s->plan.phase[i].round : last;
	return last;
}

static void say_open(const struct bench *b, const struct verdict *v)
{
	if (b->req->opt.quiet)
		return;
	fprintf(stderr,
	    "  %.0f to %.0f %% of the best goodput is not certain enough: the loads that decide "
	    "alternate from now on\n",
	    v->low * 100, v->high * 100);
}

/* Alternate the loads that decide until `look` rounds have a ratio. Returns whether they have. */
static bool alternate(
    struct bench *b, int *best, int highest, int look, struct weir_err *err, int *rc)
{
	const struct bench_options *o = &b->req->opt;
	int have = verdict(b).pairs;

	if (have == 0) /* the ratios of the sweep count once there are enough */
		have = (int)o->rounds;
	for (int left = look - have + FAILED_MAX; *rc == 0 && left > 0; left--) {
		if (verdict(b).pairs >= look || atomic_load(&bench_stop_asked))
			break;
		int more = left > FAILED_MAX ? left - FAILED_MAX - 1 : 0;
		b->after_ns = 2 * more * (o->for_ns + o->pause_ns);
		if (decide_once(b, *best, highest, last_round(&b->side[0]) + 1, err, rc) == 0)
			break;
		*best = still_best(&b->side[0], *best, highest);
	}
	return verdict(b).pairs >= look;
}

/* If the result is not certain, let the loads that decide alternate until it is. */
static int resolve(struct bench *b, struct weir_err *err)
{
	struct verdict v = verdict(b);
	int rc = 0, highest = highest_load(&b->side[0]);
	int best = highest < 0 ? -1 : middle_load(&b->side[0], &v, highest);

	if (!open_question(&v) || b->n_sides > 1 || best < 0)
		return 0;
	say_open(b, &v);
	snprintf(b->part, sizeof(b->part), "deciding");
	for (int i = 0; rc == 0 && i < N_LOOKS && !atomic_load(&bench_stop_asked); i++) {
		if (v.pairs >= looks[i])
			continue;
		if (!alternate(b, &best, highest, looks[i], err, &rc))
			break;
		v = verdict(b);
		if (!open_question(&v))
			break;
	}
	b->after_ns = 0;
	return rc;
}

/* ---- a capacity that was too low ---- */

/* Run a load of `multiple` times the capacity. Returns whether it was run. */
static bool extend_once(struct bench *b, double multiple, struct weir_err *err, int *rc)
{
	struct load_plan *phases = calloc(1, sizeof(*phases));
	const struct bench_options *o = &b->req->opt;
	bool runs = false;

	if (!phases) {
		*rc = sentence_nomem(err);
		return false;
	}
	*rc = phases_sweep(phases, b->capacity_per_s, &multiple, 1, 1, o->for_ns, o->pause_ns, err);
	for (int i = 0; *rc == 0 && i < phases->n_phases; i++)
		phases->phase[i].round = 0;
	runs = *rc == 0 && has_room(&b->side[0], phases->n_phases);
	if (runs)
		*rc = bench_run(b, &b->side[0], phases, err);
	free(phases);
	return runs;
}

/* Whether the highest load is far from the overload that was asked for, `asked` times the capacity:
 * more was served there than at any other load, and more than half of it, or the best goodput is
 * more than EXTEND_LOW times the capacity that was found. A disturbed search can find a capacity
 * that is far too low. */
static bool barely_loaded(struct verdict v, double asked)
{
	return v.kind == VERDICT_LIGHT ||
	       (v.rises && v.offered_per_s < EXTEND_FROM * v.highest_per_s) ||
	       v.offered_per_s * EXTEND_LOW < asked * v.best_per_s;
}

/* Continue a sweep to ten times the capacity that was no overload. On a noisy machine, the capacity
 * at which an objective for the latency is met can be far below that of the threads. */
static int extend(struct bench *b, struct weir_err *err)
{
	const struct bench_side *s = &b->side[0];
	double multiple = 0, asked;
	bool late = false; /* the generator was late at the highest load that was tried last */
	int rc = 0;

	for (int i = 0; i < s->plan.n_phases; i++)
		if (load_phase_offers(&s->plan, i) && s->plan.phase[i].multiple >= multiple) {
			multiple = s->plan.phase[i].multiple;
			late = s->result.phase[i].late;
		}
	asked = multiple;
	snprintf(b->part, sizeof(b->part), "beyond");
	for (int i = 0;
	     rc == 0 && i < EXTEND_MAX && multiple >= EXTEND_FROM && b->n_sides == 1 && !late &&
	     barely_loaded(verdict(b), asked) && !atomic_load(&bench_stop_asked);
	     i++) {
		multiple *= 2;
		if (!b->req->opt.quiet)
			fprintf(stderr,
			    "  %gx the capacity was hardly an overload: going on at %gx\n",
			    multiple / 2, multiple);
		if (!extend_once(b, multiple, err, &rc))
			break;
		late = s->result.phase[s->plan.n_phases - 1].late;
	}
	return rc;
}

/* ---- a machine that changed ---- */

static int start_over(struct bench *b, const struct verdict *v, struct weir_err *err)
{
	struct bench_side *s = &b->side[0];
	double before_per_s = b->capacity_per_s;
	char note[sizeof(b->capacity_note)];

	if (!b->req->opt.quiet)
		fprintf(stderr,
		    "the machine changed: %.4g/s should be served, but only %.0f %% were; "
		    "searching again\n",
		    v->worst_per_s, v->worst_share * 100);
	for (int i = 0; i < s->plan.n_phases; i++)
		if (load_phase_offers(&s->plan, i))
			bench_set_aside(s, i, "before");
	int rc = bench_search(b, before_per_s / 2, err);
	snprintf(note, sizeof(note), "%.300s; found again, since the machine changed after %.4g/s",
	    b->capacity_note, before_per_s);
	snprintf(b->capacity_note, sizeof(b->capacity_note), "%s", note);
	if (rc != 0 || b->capacity_per_s <= 0 || atomic_load(&bench_stop_asked))
		return rc;
	return sweep_rounds(b, err);
}

int bench_sweep(struct bench *b, struct weir_err *err)
{
	int rc = sweep_rounds(b, err);
	struct verdict v = verdict(b);

	if (rc == 0 && v.kind == VERDICT_CHANGED && b->req->opt.find_capacity && b->n_sides == 1 &&
	    !atomic_load(&bench_stop_asked))
		rc = start_over(b, &v, err);
	if (rc == 0 && b->capacity_per_s > 0 && b->req->opt.find_capacity)
		rc = extend(b, err);
	return rc == 0 && b->capacity_per_s > 0 ? resolve(b, err) : rc;
}
