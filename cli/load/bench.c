/* SPDX-License-Identifier: MIT */
/*
 * bench: load a server with requests and report the results.
 *
 * A `side` is a server under load, with the joined results of all its runs. --against adds a second
 * side. Each round then loads the two sides one after the other, so that disturbances of the host
 * affect both. A search for the capacity, if requested, comes before the rounds. Ctrl-C stops the
 * current run; the results so far are printed and written.
 */
#include "bench.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load/capacity.h"
#include "load/joined.h"
#include "load/judge.h"
#include "load/phases.h"
#include "load/run.h"
#include "load/runfile.h"
#include "load/sentence.h"
#include "cli/verb.h"

#define SIDES_MAX 2

/* The rate at which a search without --rate begins, and the highest rate of any search, which is
 * more than one core can send. */
#define SEARCH_START_PER_S 100
#define SEARCH_LIMIT_PER_S 1e6
/* A search ends when the lowest failing rate exceeds the highest passing rate by at most this
 * share. On a shared host, repeated trials differ by more. */
#define SEARCH_PRECISION 0.03
/* Default length of the warm-up before each trial. In this time caches are filled and pools
 * settle. */
#define SEARCH_WARMUP_NS 1000000000

struct side {
	struct load_plan plan;     /* its phases are those of all runs so far */
	struct load_result result; /* joined results of all runs so far */
	json_t *server;            /* responses of its admin endpoint; NULL if not polled */
	char out[1024];            /* path of the run file, "" if none */
};

struct bench {
	const struct bench_request *req;
	int n_sides;
	struct side side[SIDES_MAX];
	bool searching; /* a search is in progress, in which each trial prints one line */
	double capacity_per_s;
	char capacity_note[256];
};

static atomic_bool stop_asked;

static void on_interrupt(int sig)
{
	atomic_store(&stop_asked, true);
	signal(sig, SIG_DFL); /* a second signal ends the process immediately */
}

/* ---- one run ---- */

/* Run `phases` against one side. */
static int run_phases(struct bench *b, struct side *s, const struct load_plan *phases,
    struct load_result *result, struct weir_err *err)
{
	struct bench_progress progress;
	struct load_hooks hooks = {&progress, bench_progress_second, &stop_asked};
	struct load_plan run = s->plan;

	run.n_phases = phases->n_phases;
	memcpy(run.phase, phases->phase, sizeof(run.phase));
	run.seed += (uint64_t)s->plan.n_phases; /* new random numbers for each trial and round */
	bench_progress_begin(&progress, &run, b->req->opt.quiet, !b->searching);
	int rc = load_run(&run, &hooks, result, err);
	bench_progress_end(&progress);
	return rc;
}

static int run_and_join(
    struct bench *b, struct side *s, const struct load_plan *phases, struct weir_err *err)
{
	struct load_result result = {0};
	int rc = run_phases(b, s, phases, &result, err);

	if (rc != 0) {
		load_result_fini(&result);
		return rc;
	}
	rc = load_join(&s->plan, &s->result, phases->phase, &result);
	if (rc == WEIR_EINVAL)
		return sentence(err, rc,
		    "all rounds together have more than the %d phases that a run can have",
		    LOAD_PHASES_MAX);
	return rc == 0 ? 0 : sentence_nomem(err);
}

/* ---- the search ---- */

/* Return whether the required share of the offered requests was answered within the limit. Degraded
 * responses do not count as answers. */
static bool kept(const struct load_phase_result *p, int n_classes, const struct bench_slo *slo)
{
	uint64_t offered = 0, good = 0;

	for (int c = 0; c < n_classes; c++) {
		const struct hdr *h = p->class[c].latency[LOAD_OK];
		offered += p->class[c].offered;
		for (int i = 0; h && i < HDR_BUCKETS && hdr_lower_ns(i) < slo->limit_ns; i++)
			good += h->count[i];
	}
	return offered > 0 && (double)good >= slo->quantile * (double)offered;
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
	return phases_warmup(phases, o->warmup_ns ? o->warmup_ns : SEARCH_WARMUP_NS, err);
}

static int run_trial(struct bench *b, double per_s, struct weir_err *err)
{
	struct load_plan *phases = calloc(1, sizeof(*phases));

	if (!phases)
		return sentence_nomem(err);
	int rc = trial_phases(b, per_s, phases, err);
	if (rc == 0)
		rc = run_and_join(b, &b->side[0], phases, err);
	free(phases);
	return rc;
}

/* Exclude the phase of an invalid trial from all results. The phase remains in the run file. */
static void set_aside(struct load_phase *p)
{
	snprintf(p->name, sizeof(p->name), "late %.4g/s", p->from_per_s);
	p->warmup = true;
}

/* Run one trial at the rate that the search requests. Pass the result to the search, and print it
 * on stderr. */
static int trial(
    struct bench *b, struct capacity *search, const struct bench_slo *slo, struct weir_err *err)
{
	struct side *s = &b->side[0];
	double per_s = capacity_next(search);
	char word[96];
	int rc = run_trial(b, per_s, err);

	if (rc != 0)
		return rc;
	const struct load_phase_result *p = &s->result.phase[s->plan.n_phases - 1];
	bool late = p->late;
	if (late) {
		set_aside(&s->plan.phase[s->plan.n_phases - 1]);
		load_judge(&s->plan, &s->result); /* only the trial is invalid, not the search */
	}
	if (atomic_load(&stop_asked))
		return 0;
	if (late) {
		int64_t lag_ns = hdr_quantile_ns(&p->lag, 0.99);
		snprintf(word, sizeof(word),
		    "does not count, since the generator was late by %.1f ms",
		    (double)lag_ns / 1e6);
		capacity_tell_late(search, lag_ns);
	} else {
		bool good = kept(p, s->plan.n_classes, slo);
		snprintf(word, sizeof(word), "%s %.60s", good ? "keeps" : "does not keep",
		    b->req->opt.slo);
		capacity_tell(search, good);
	}
	if (!b->req->opt.quiet)
		fprintf(stderr, "  %.5g/s %s\n", per_s, word);
	return 0;
}

/* Print how long the search will take. Usually it needs six to fifteen rates, with two trials
 * each. */
static void say_search(const struct bench *b)
{
	const struct bench_options *o = &b->req->opt;
	double s = (double)(o->for_ns + (o->warmup_ns ? o->warmup_ns : SEARCH_WARMUP_NS)) * 1e-9;

	if (!o->quiet)
		fprintf(stderr,
		    "searching: a trial takes %.3g s (--for and --warmup); usually 12 to 30 of "
		    "them, "
		    "%.0f to %.0f s\n",
		    s, 12 * s, 30 * s);
}

/* End a search. If the generator was late in too many trials, the search is invalid, and so are all
 * results that depend on it. */
static void end_search(struct bench *b, const struct capacity *search)
{
	b->capacity_per_s = search->voided ? 0 : search->good_per_s;
	capacity_describe(search, b->req->opt.slo, b->capacity_note, sizeof(b->capacity_note));
	for (int i = 0; i < b->n_sides && search->voided; i++)
		capacity_why_void(
		    search, b->side[i].result.voided, sizeof(b->side[i].result.voided));
}

static int search_capacity(struct bench *b, struct weir_err *err)
{
	const struct bench_options *o = &b->req->opt;
	struct capacity search;
	struct bench_slo slo;
	int rc = bench_slo_parse(o->slo, &slo, err);

	if (rc != 0)
		return rc;
	say_search(b);
	b->searching = true;
	capacity_start(&search, o->rate_per_s > 0 ? o->rate_per_s : SEARCH_START_PER_S,
	    SEARCH_LIMIT_PER_S, SEARCH_PRECISION);
	while (rc == 0 && capacity_next(&search) > 0 && !atomic_load(&stop_asked))
		rc = trial(b, &search, &slo, err);
	b->searching = false;
	end_search(b, &search);
	return rc;
}

/* ---- rounds ---- */

static void name_round(struct load_plan *phases, int round)
{
	for (int i = 0; i < phases->n_phases; i++)
		phases->phase[i].round = round;
}

/* Add the phases of the sweep in round `round`. The rates rise in odd rounds and fall in even ones.
 * phases_sweep creates one or more rounds and alternates in the same way. For an even round, create
 * two rounds and use the second one. */
static int sweep_phases(struct bench *b, int round, struct load_plan *phases, struct weir_err *err)
{
	const struct bench_options *o = &b->req->opt;
	double multiple[64];
	int n = phases_multiples(o->sweep, multiple, 64, err);
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
	return 0;
}

static int one_round(struct bench *b, int round, struct weir_err *err)
{
	struct load_plan *phases = calloc(1, sizeof(*phases));
	int rc;

	if (!phases)
		return sentence_nomem(err);
	/* borrowed, since bench_phases derives the length of the phase from these members */
	phases->trace_ns = b->side[0].plan.trace_ns;
	phases->n_trace = b->side[0].plan.n_trace;
	phases->arrivals = b->side[0].plan.arrivals;
	rc = b->req->opt.sweep ? sweep_phases(b, round, phases, err)
			       : bench_phases(b->req, phases, err);
	if (b->req->opt.rounds > 1)
		name_round(phases, round);
	/* The order alternates from round to round, so that neither side has an advantage. */
	for (int i = 0; rc == 0 && i < b->n_sides && !atomic_load(&stop_asked); i++)
		rc = run_and_join(b, &b->side[round % 2 ? i : b->n_sides - 1 - i], phases, err);
	free(phases);
	return rc;
}

/* Return whether rounds were requested. Without --find-capacity they always are. With it, they are
 * only if a sweep, a ramp or steps are given. */
static bool wants_rounds(const struct bench_options *o)
{
	return !o->find_capacity || o->sweep || o->ramp || o->steps;
}

static int run_all(struct bench *b, struct weir_err *err)
{
	const struct bench_options *o = &b->req->opt;
	int rc = 0;

	b->capacity_per_s = o->capacity_per_s;
	if (o->find_capacity)
		rc = search_capacity(b, err);
	if (rc != 0 || !wants_rounds(o) || b->side[0].result.voided[0])
		return rc;
	if (o->sweep && b->capacity_per_s <= 0 && !atomic_load(&stop_asked))
		return sentence(err, WEIR_EINVAL,
		    o->find_capacity ? "--sweep cannot run, since no capacity was found"
				     : "--sweep needs --capacity RATE or --find-capacity");
	for (int r = 1; rc == 0 && r <= o->rounds && !atomic_load(&stop_asked); r++)
		rc = one_round(b, r, err);
	return rc;
}

/* ---- before and after ---- */

/* Set the path of the run file of a side: that of --out for the first side, for the second one with
 * ".against" before the extension ("run.against.json" for "run.json"). It is "" without --out. */
static void name_out(const struct bench_options *o, int side, char *out, size_t size)
{
	const char *dot = o->out ? strrchr(o->out, '.') : NULL;
	size_t n;

	out[0] = '\0';
	if (!o->out)
		return;
	n = dot && !strchr(dot, '/') ? (size_t)(dot - o->out) : strlen(o->out);
	if (side == 0)
		snprintf(out, size, "%s", o->out);
	else
		snprintf(out, size, "%.*s.against%s", (int)n, o->out, o->out + n);
}

static int side_init(struct bench *b, int i, const char *url, struct weir_err *err)
{
	struct side *s = &b->side[i];
	const struct bench_options *o = &b->req->opt;

	b->n_sides = i + 1;
	name_out(o, i, s->out, sizeof(s->out));
	if (s->out[0] && strcmp(s->out, "-") != 0 && !o->force && access(s->out, F_OK) == 0)
		return sentence(err, WEIR_EINVAL, "'%.180s' exists; --force overwrites it", s->out);
	return bench_plan(b->req, url, &s->plan, err);
}

static int write_side(struct bench *b, struct side *s, const char *path, struct weir_err *err)
{
	struct runfile_about about = {.argc = b->req->argc,
	    .argv = b->req->argv,
	    .label = b->req->opt.label ? b->req->opt.label : s->plan.url,
	    .version = WEIR_VERSION,
	    .commit = WEIR_COMMIT,
	    .flags = WEIR_CFLAGS,
	    .capacity_per_s = b->capacity_per_s,
	    .capacity_note = b->capacity_note[0] ? b->capacity_note : NULL,
	    .server = s->server};

	return runfile_write(path, &s->plan, &s->result, &about, err);
}

/* Return whether the server ever accepted a connection. True if nothing has been run. */
static bool reached(const struct side *s)
{
	return s->result.connects > 0 || s->result.n_phases == 0;
}

static int tell(struct bench *b, struct weir_err *err)
{
	int rc = 0;

	for (int i = 0; i < b->n_sides && rc == 0; i++) {
		struct side *s = &b->side[i];
		if (b->req->opt.json) {
			rc = write_side(b, s, "-", err);
		} else {
			printf("%s%s\n", i ? "\n" : "", s->plan.url);
			bench_print_result(stdout, &s->plan, &s->result);
		}
		if (rc == 0 && s->out[0]) {
			rc = write_side(b, s, s->out, err);
			if (rc == 0 && strcmp(s->out, "-") != 0 && !b->req->opt.quiet)
				fprintf(stderr, "written: %s\n", s->out);
		}
	}
	if (b->capacity_note[0] && !b->req->opt.json)
		printf("capacity: %s\n", b->capacity_note);
	return rc;
}

static int exit_code(const struct bench *b)
{
	int code = VERB_OK;

	for (int i = 0; i < b->n_sides; i++) {
		if (!reached(&b->side[i])) {
			fprintf(stderr, "weir bench: no connection to %s could be made\n",
			    b->side[i].plan.url);
			return VERB_UNREACHABLE;
		}
		if (b->side[i].result.voided[0])
			code = VERB_FINDING;
	}
	return code;
}

/* Run everything. With --admin, poll the server's admin endpoint meanwhile. */
static int run_watched(struct bench *b, struct weir_err *err)
{
	struct bench_server *server = NULL;
	const char *admin = b->req->opt.admin;
	int rc = admin ? bench_server_start(admin, &server, err) : 0;

	if (rc != 0)
		return rc;
	rc = run_all(b, err);
	if (server)
		b->side[0].server = bench_server_stop(server);
	return rc;
}

static int bench_main(struct bench *b, const struct verb *verb)
{
	struct weir_err err = {0};
	int rc = side_init(b, 0, b->req->url, &err);

	if (rc == 0 && b->req->opt.against)
		rc = side_init(b, 1, b->req->opt.against, &err);
	if (rc != 0) /* nothing has run yet, so the options are wrong */
		return verb_misused(verb, "%s", err.text);
	rc = run_watched(b, &err);
	/* results that were measured before a failure are shown, too */
	if (rc == 0 || b->side[0].result.n_phases > 0) {
		struct weir_err why = {0};
		int told = tell(b, &why);
		if (told != 0 && rc == 0) {
			rc = told;
			err = why;
		}
	}
	if (rc == 0)
		return exit_code(b);
	if (rc == WEIR_EINVAL)
		return verb_misused(verb, "%s", err.text);
	fprintf(stderr, "weir bench: %s\n", err.text);
	return b->req->opt.admin && b->side[0].result.n_phases == 0 ? VERB_UNREACHABLE
								    : VERB_FINDING;
}

static void bench_fini(struct bench *b)
{
	for (int i = 0; i < b->n_sides; i++) {
		load_result_fini(&b->side[i].result);
		load_plan_fini(&b->side[i].plan);
		json_decref(b->side[i].server);
	}
	free(b);
}

int verb_bench(const struct verb *verb, const struct verb_args *args)
{
	struct bench_request req;
	struct weir_err err = {0};
	int rc = bench_parse(args->n, args->operand, &req, &err);

	if (rc == 0 && req.opt.help) {
		verb_print_help(verb, stdout);
	} else if (rc != 0) {
		rc = verb_misused(verb, "%s", err.text);
	} else {
		struct bench *b = calloc(1, sizeof(*b));
		if (!b) {
			fprintf(stderr, "weir bench: out of memory\n");
			rc = VERB_FINDING;
		} else {
			b->req = &req;
			signal(SIGINT, on_interrupt);
			signal(SIGTERM, on_interrupt);
			signal(SIGPIPE, SIG_IGN);
			rc = bench_main(b, verb);
			bench_fini(b);
		}
	}
	bench_request_fini(&req);
	return rc;
}
