/* SPDX-License-Identifier: MIT */
/*
 * The sweep: rounds over multiples of the capacity, and the repetition of phases that do not count.
 *
 * A phase is repeated, at most REPEATS_MAX times, if its generator was late, or if its load is below
 * the capacity and was not served: a single disturbance should not decide. If loads below the
 * capacity are not served in spite of that, the machine has changed since the search. The search and
 * the sweep then start over, once; the phases so far are set aside. If the noise hides whether
 * goodput falls, the loads that decide it are repeated, at most DECIDING_MAX times. If even the
 * highest load was served, the sweep goes on at twice that, at most EXTEND_MAX times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_run.h"
#include "load/judge.h"
#include "load/phases.h"
#include "load/sentence.h"
#include "report/verdict.h"

/* Guesses: the time of a noisy run should not exceed that of a quiet one by more than a factor of
 * two. */
#define REPEATS_MAX  2
#define DECIDING_MAX 3
#define EXTEND_MAX   5
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

/* Run the loads once more that decide whether goodput falls: those of the reference, and the
 * highest. Returns the number of phases run. */
static int decide_once(struct bench *b, const struct verdict *v, struct weir_err *err, int *rc)
{
	struct bench_side *s = &b->side[0];
	struct load_plan *phases = calloc(1, sizeof(*phases));
	double last = 0;

	*rc = phases ? 0 : sentence_nomem(err);
	for (int i = 0; phases && i < s->plan.n_phases; i++) {
		double per_s = s->plan.phase[i].from_per_s;
		bool deciding = (per_s >= v->best_from / NEAR && per_s <= v->best_to * NEAR) ||
				per_s >= v->offered_per_s / NEAR;
		if (deciding && s->plan.phase[i].multiple > last &&
		    load_phase_offers(&s->plan, i)) {
			append(phases, &s->plan.phase[i], b->req->opt.pause_ns);
			last = s->plan.phase[i].multiple;
		}
	}
	int n = phases && has_room(s, phases->n_phases) ? phases->n_phases : 0;
	if (n > 0)
		*rc = bench_run(b, s, phases, err);
	free(phases);
	return n;
}

/* Repeat the loads that decide until the noise no longer hides the result. */
static int resolve(struct bench *b, struct weir_err *err)
{
	struct verdict v = verdict(b);
	int rc = 0;

	snprintf(b->part, sizeof(b->part), "deciding");
	for (int i = 0; rc == 0 && i < DECIDING_MAX && v.kind == VERDICT_UNSURE &&
			b->n_sides == 1 && !atomic_load(&bench_stop_asked);
	     i++) {
		if (!b->req->opt.quiet)
			fprintf(stderr,
			    "  repeating the loads that decide: %.0f to %.0f %% of the "
			    "best goodput is too wide\n",
			    v.low * 100, v.high * 100);
		if (decide_once(b, &v, err, &rc) == 0)
			break;
		v = verdict(b);
	}
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

/* Continue a sweep to ten times the capacity that was no overload. On a noisy machine, the capacity
 * at which an objective for the latency is met can be far below that of the threads. */
static int extend(struct bench *b, struct weir_err *err)
{
	const struct load_plan *plan = &b->side[0].plan;
	double multiple = 0;
	int rc = 0;

	for (int i = 0; i < plan->n_phases; i++)
		if (load_phase_offers(plan, i) && plan->phase[i].multiple > multiple)
			multiple = plan->phase[i].multiple;
	snprintf(b->part, sizeof(b->part), "beyond");
	for (int i = 0; rc == 0 && i < EXTEND_MAX && multiple >= EXTEND_FROM && b->n_sides == 1 &&
			verdict(b).kind == VERDICT_LIGHT && !atomic_load(&bench_stop_asked);
	     i++) {
		multiple *= 2;
		if (!b->req->opt.quiet)
			fprintf(stderr, "  %gx the capacity was still served: going on at %gx\n",
			    multiple / 2, multiple);
		if (!extend_once(b, multiple, err, &rc) ||
		    b->side[0].result.phase[b->side[0].plan.n_phases - 1].late)
			break; /* the generator cannot send more */
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
