/* SPDX-License-Identifier: MIT */
/*
 * The search for the capacity: load/capacity.h chooses the rates, and this file runs the trials.
 *
 * A trial whose generator was late is set aside and run again, from then on with real-time priority
 * where that is allowed. On a noisy machine, where no rate meets the objective, a lower share of
 * requests is asked for, and at last the goodput in overload is measured.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_run.h"
#include "load/capacity.h"
#include "load/judge.h"
#include "load/phases.h"
#include "load/sentence.h"
#include "load/stats.h"
#include "report/verdict.h"

/* The highest rate of any search, which is more than one core can send. */
#define SEARCH_LIMIT_PER_S 1e6
/* A search ends when the lowest failing rate exceeds the highest passing rate by at most this
 * share. On a shared host, repeated trials differ by more. */
#define SEARCH_PRECISION 0.03
/* The same on a noisy machine, where a closer look finds chance. */
#define SEARCH_PRECISION_NOISY 0.1

void bench_set_aside(struct bench_side *s, int i, const char *why)
{
	struct load_phase *p = &s->plan.phase[i];

	snprintf(p->name, sizeof(p->name), "%.8s %.4g/s", why, p->from_per_s);
	p->warmup = true;
	load_judge(&s->plan, &s->result);
}

void bench_was_late(struct bench *b, int64_t lag_ns)
{
	if (b->realtime || b->req->opt.priority != BENCH_PRIORITY_AUTO)
		return;
	b->realtime = true;
	if (!b->req->opt.quiet)
		fprintf(stderr,
		    "  noisy: the generator was late by %.1f ms, and now asks for real-time "
		    "priority\n",
		    (double)lag_ns / 1e6);
}

/* A load of which less than this share was served was overload. A guess: below the capacity, noise
 * alone loses less. */
#define SATURATED 0.8
/* Trials whose median is the goodput in overload. */
#define SATURATION_LEAST 5
#define SATURATION_MAX   64
/* Share that loads below a capacity measured in overload must serve: that above which a load is no
 * overload. Less would let a load pass that is one. */
#define HELD_SATURATED SATURATED

/* What was served in overload. */
struct saturation {
	int n;
	double good_per_s[SATURATION_MAX];
	bool overload, late; /* the last trial */
};

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

/* The objective of the search at present. */
static const char *aim(const struct bench *b)
{
	return b->relaxed[0] ? b->relaxed : b->slo;
}

/* Tell the search the result of the last phase, and describe it in `word`. */
static void tell_trial(struct bench *b, struct capacity *search, char *word, size_t size)
{
	struct bench_side *s = &b->side[0];
	int last = s->plan.n_phases - 1;
	const struct load_phase_result *p = &s->result.phase[last];
	int64_t lag_ns = hdr_quantile_ns(&p->lag, 0.99);
	b->worst_lag_ns = lag_ns > b->worst_lag_ns ? lag_ns : b->worst_lag_ns;
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
		    aim(b), (double)lag_ns / 1e6);
		capacity_tell_unknown(search);
	} else {
		snprintf(
		    word, size, "%s %.60s", met == LOAD_MET ? "keeps" : "does not keep", aim(b));
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
	capacity_describe(search, aim(b), b->capacity_note, sizeof(b->capacity_note));
	size_t n = strlen(b->capacity_note);
	if (b->relaxed[0])
		snprintf(b->capacity_note + n, sizeof(b->capacity_note) - n,
		    "; noisy: relaxed from %.30s, which no rate met", b->slo);
	for (int i = 0; i < b->n_sides && search->voided; i++)
		capacity_why_void(
		    search, b->side[i].result.voided, sizeof(b->side[i].result.voided));
}

/* ---- noise ---- */

/* The shares that a noisy search asks for in turn, after that of --slo. Guesses: a machine that
 * disturbs more than a tenth of the requests at every rate allows no measurement. */
static const double relaxed[] = {0.95, 0.90};

#define N_RELAXED ((int)(sizeof(relaxed) / sizeof(relaxed[0])))

/* Whether the machine disturbs the generator, and so presumably the server: other processes compete
 * for its cores. */
static bool noisy(const struct bench *b)
{
	return b->worst_lag_ns > LOAD_LAG_LIMIT_NS;
}

/* Store the goodput of a trial that was overload: one that served clearly less than it was offered. */
static void note_overload(struct bench *b, struct saturation *sat)
{
	const struct bench_side *s = &b->side[0];
	const struct load_phase_result *p = &s->result.phase[s->plan.n_phases - 1];
	double offered = 0, good = 0, failed = 0;

	for (int c = 0; c < s->plan.n_classes; c++) {
		offered += (double)p->class[c].offered;
		failed += (double)p->class[c].outcome[LOAD_ERROR];
		good += (double)(p->class[c].outcome[LOAD_OK] + p->class[c].outcome[LOAD_DEGRADED]);
	}
	sat->overload = good > 0 && good + failed < SATURATED * offered;
	if (!p->late && sat->overload && sat->n < SATURATION_MAX)
		sat->good_per_s[sat->n++] = good / ((double)p->took_ns / 1e9);
}

/* Whether the failed rates are too close to what is served in overload: then they failed because of
 * their load. */
static bool near_saturation(const struct capacity *search, const struct saturation *sat)
{
	return sat->n > 0 && search->bad_per_s > stats_median(sat->good_per_s, sat->n) / 2;
}

/* If two rates failed and none passed on a noisy machine, ask for a lower share, and begin again.
 * Otherwise the search would go down to rates at which no request meets a disturbance, which say
 * nothing about the server. Returns false if there is no lower share. */
static bool relax(struct bench *b, struct capacity *search, const struct saturation *sat)
{
	double next = 0;

	if (!noisy(b) || search->done || search->good_per_s > 0 ||
	    search->n_rates < (b->relaxed[0] ? 1 : 2) || near_saturation(search, sat))
		return true;
	for (int i = N_RELAXED - 1; i >= 0; i--)
		if (relaxed[i] < b->objective.quantile - 1e-9)
			next = relaxed[i];
	if (next <= 0)
		return b->objective.quantile < relaxed[N_RELAXED - 1] - 1e-9;
	const char *limit = strchr(b->slo, '=');
	b->objective.quantile = next;
	snprintf(b->relaxed, sizeof(b->relaxed), "p%g%.40s", next * 100, limit ? limit : "");
	for (int k = 0; k < b->n_sides; k++)
		b->side[k].plan.held_ratio = next - (VERDICT_TRIAL - VERDICT_HELD);
	if (!b->req->opt.quiet)
		fprintf(stderr,
		    "  noisy: %s is missed at %.4g/s already; the search begins again with %s\n",
		    b->slo, search->bad_per_s, b->relaxed);
	capacity_start(search, search->bad_per_s, SEARCH_LIMIT_PER_S, SEARCH_PRECISION_NOISY);
	return true;
}

/* ---- goodput in overload ---- */

/* Run one trial to see what is served at `per_s`. */
static int overload_once(
    struct bench *b, struct saturation *sat, double per_s, struct weir_err *err)
{
	int n = sat->n;
	int rc = run_trial(b, per_s, err);

	if (rc != 0 || atomic_load(&bench_stop_asked))
		return rc;
	note_overload(b, sat);
	const struct bench_side *s = &b->side[0];
	sat->late = s->result.phase[s->plan.n_phases - 1].late;
	if (sat->late)
		bench_set_aside(&b->side[0], s->plan.n_phases - 1, "late");
	if (!b->req->opt.quiet && sat->n > n)
		fprintf(stderr, "  %.5g/s: %.5g/s were served\n", per_s, sat->good_per_s[n]);
	else if (!b->req->opt.quiet)
		fprintf(stderr, "  %.5g/s %s\n", per_s,
		    sat->late ? "does not count, since the generator was late" : "is no overload");
	return 0;
}

/* The objective fails at any rate: take what is served in overload as the capacity. The rate is
 * doubled until it is more than that, and then tried until there are enough values. */
static int saturate(struct bench *b, double per_s, struct weir_err *err)
{
	struct saturation sat = {0};
	int rc = 0, late = 0;

	snprintf(b->part, sizeof(b->part), "overload");
	b->after_ns = 0;
	if (!b->req->opt.quiet)
		fprintf(stderr, "  noisy: no rate meets %s; measuring what is served in overload\n",
		    aim(b));
	while (rc == 0 && sat.n < SATURATION_LEAST && per_s < SEARCH_LIMIT_PER_S &&
	       late < CAPACITY_LATE_IN_A_ROW && !atomic_load(&bench_stop_asked)) {
		rc = overload_once(b, &sat, per_s, err);
		late = sat.late ? late + 1 : 0;
		if (!sat.late && !sat.overload)
			per_s *= 2;
	}
	if (sat.n < SATURATION_LEAST)
		return rc;
	double good = stats_median(sat.good_per_s, sat.n);
	b->capacity_per_s = good;
	snprintf(b->capacity_note, sizeof(b->capacity_note),
	    "%.4g/s served in overload (median of %d trials); noisy: no rate met %.30s, nor %.30s",
	    good, sat.n, b->slo, aim(b));
	for (int i = 0; i < b->n_sides; i++)
		b->side[i].plan.held_ratio = HELD_SATURATED;
	return 0;
}

int bench_search(struct bench *b, double start_per_s, struct weir_err *err)
{
	struct capacity search;
	struct saturation sat = {0};
	int rc = 0;
	bool met = true; /* the objective, or a relaxed one, can be met */

	say_search(b);
	b->quiet_lines = true;
	capacity_start(&search, start_per_s, SEARCH_LIMIT_PER_S, SEARCH_PRECISION);
	for (int n = 1;
	     rc == 0 && met && capacity_next(&search) > 0 && !atomic_load(&bench_stop_asked); n++) {
		rc = trial(b, &search, n, err);
		if (rc == 0)
			note_overload(b, &sat);
		met = relax(b, &search, &sat);
	}
	end_search(b, &search);
	if (rc == 0 && !met && !atomic_load(&bench_stop_asked))
		rc = saturate(b, 2 * search.bad_per_s, err);
	b->quiet_lines = false;
	return rc;
}
