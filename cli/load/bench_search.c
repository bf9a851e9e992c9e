/* SPDX-License-Identifier: MIT */
/*
 * The search for the capacity: load/capacity.h chooses the rates, and this file runs the trials.
 *
 * A trial whose generator was late is set aside and run again, from then on with real-time priority
 * where that is allowed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_run.h"
#include "load/capacity.h"
#include "load/judge.h"
#include "load/phases.h"
#include "load/sentence.h"

/* The highest rate of any search, which is more than one core can send. */
#define SEARCH_LIMIT_PER_S 1e6
/* A search ends when the lowest failing rate exceeds the highest passing rate by at most this
 * share. On a shared host, repeated trials differ by more. */
#define SEARCH_PRECISION 0.03

static int64_t trial_ns(const struct bench *b)
{
	const struct bench_options *o = &b->req->opt;

	return o->for_ns + (o->warmup_ns ? o->warmup_ns : BENCH_WARMUP_NS);
}

/* Add the phases of one trial: a warm-up and the trial itself. */
static int trial_phases(
    struct bench *b, double per_s, struct load_plan *phases, struct weir_err *err)
{
	const struct bench_options *o = &b->req->opt;
	int rc = phases_constant(phases, per_s, o->for_ns, err);

	if (rc != 0)
		return rc;
	phases->phase[0].trial = true;
	return phases_warmup(phases, o->warmup_ns ? o->warmup_ns : BENCH_WARMUP_NS, err);
}

static int run_trial(struct bench *b, double per_s, struct weir_err *err)
{
	struct load_plan *phases = calloc(1, sizeof(*phases));

	if (!phases)
		return sentence_nomem(err);
	int rc = trial_phases(b, per_s, phases, err);
	if (rc == 0)
		rc = bench_run(b, &b->side[0], phases, err);
	free(phases);
	return rc;
}

/* Tell the search the result of the last phase, and describe it in `word`. */
static void tell_trial(struct bench *b, struct capacity *search, char *word, size_t size)
{
	struct bench_side *s = &b->side[0];
	int last = s->plan.n_phases - 1;
	const struct load_phase_result *p = &s->result.phase[last];
	int64_t lag_ns = hdr_quantile_ns(&p->lag, 0.99);
	enum load_met met = load_objective_met(&s->plan, p, &b->objective);

	if (p->late) {
		snprintf(word, size, "does not count, since the generator was late by %.1f ms",
		    (double)lag_ns / 1e6);
		capacity_tell_late(search, lag_ns);
		bench_set_aside(s, last, "late");
		if (!search->done)
			bench_was_late(b, lag_ns);
	} else if (met == LOAD_UNKNOWN) {
		snprintf(word, size, "misses %.60s by no more than the generator's lag of %.1f ms",
		    b->slo, (double)lag_ns / 1e6);
		capacity_tell_unknown(search);
	} else {
		snprintf(
		    word, size, "%s %.60s", met == LOAD_MET ? "keeps" : "does not keep", b->slo);
		capacity_tell(search, met == LOAD_MET);
	}
}

/* Run one trial at the rate that the search requests, and print the result on stderr. */
static int trial(struct bench *b, struct capacity *search, int number, struct weir_err *err)
{
	double per_s = capacity_next(search);
	char word[128];

	snprintf(b->part, sizeof(b->part), "trial %d", number);
	b->after_ns = (capacity_left(search) - 1) * trial_ns(b) + bench_sweep_ns(b);
	int rc = run_trial(b, per_s, err);
	if (rc != 0 || atomic_load(&bench_stop_asked))
		return rc;
	tell_trial(b, search, word, sizeof(word));
	if (!b->req->opt.quiet)
		fprintf(stderr, "  %.5g/s %s\n", per_s, word);
	return 0;
}

/* Print how long the search will take. Usually it needs six to fifteen rates, with two trials
 * each. */
static void say_search(const struct bench *b)
{
	double s = (double)trial_ns(b) * 1e-9;

	if (!b->req->opt.quiet)
		fprintf(stderr,
		    "searching: a trial takes %.3g s (--for and --warmup); usually 12 to 30 of "
		    "them, %.0f to %.0f s\n",
		    s, 12 * s, 30 * s);
}

/* End a search. If the generator was late in too many trials, the search is invalid, and so are all
 * results that depend on it. */
static void end_search(struct bench *b, const struct capacity *search)
{
	b->capacity_per_s = search->voided ? 0 : search->good_per_s;
	capacity_describe(search, b->slo, b->capacity_note, sizeof(b->capacity_note));
	for (int i = 0; i < b->n_sides && search->voided; i++)
		capacity_why_void(
		    search, b->side[i].result.voided, sizeof(b->side[i].result.voided));
}

int bench_search(struct bench *b, double start_per_s, struct weir_err *err)
{
	struct capacity search;
	int rc = 0;

	say_search(b);
	b->quiet_lines = true;
	capacity_start(&search, start_per_s, SEARCH_LIMIT_PER_S, SEARCH_PRECISION);
	for (int n = 1; rc == 0 && capacity_next(&search) > 0 && !atomic_load(&bench_stop_asked);
	     n++)
		rc = trial(b, &search, n, err);
	b->quiet_lines = false;
	end_search(b, &search);
	return rc;
}
