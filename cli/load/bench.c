/* SPDX-License-Identifier: MIT */
/*
 * bench: load a server with requests and report the results.
 *
 * --against adds a second side. Each round then loads the two sides one after the other, so that disturbances of the host
 * affect both. A search for the capacity, if requested, comes before the rounds. Ctrl-C stops the
 * current run; the results so far are printed and written.
 */
#include "bench_run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load/joined.h"
#include "load/judge.h"
#include "load/phases.h"
#include "load/run.h"
#include "load/runfile.h"
#include "load/sentence.h"
#include "cli/verb.h"

/* The rate at which a search without --rate begins. */
#define SEARCH_START_PER_S 100
/* The objective of a search without --slo. */
#define SLO_DEFAULT "p99=100ms"

/* The time-out without --timeout, and in a search with an objective, as a multiple of it. */
#define TIMEOUT_NS       10000000000
#define TIMEOUT_PATIENCE 10

atomic_bool bench_stop_asked;

static void on_interrupt(int sig)
{
	atomic_store(&bench_stop_asked, true);
	signal(sig, SIG_DFL); /* a second signal ends the process immediately */
}

/* ---- one run ---- */

static int run_phases(struct bench *b, struct bench_side *s, const struct load_plan *phases,
    struct load_result *result, struct weir_err *err)
{
	struct bench_progress progress = {
	    .plan = NULL, .part = b->part, .before_ns = b->before_ns, .after_ns = b->after_ns};
	struct load_hooks hooks = {&progress, bench_progress_second, &bench_stop_asked};
	struct load_plan run = s->plan;

	run.n_phases = phases->n_phases;
	memcpy(run.phase, phases->phase, sizeof(run.phase));
	run.seed += (uint64_t)s->plan.n_phases; /* new random numbers for each trial and round */
	run.realtime = b->realtime;
	bench_progress_begin(&progress, &run, b->req->opt.quiet, !b->quiet_lines);
	int rc = load_run(&run, &hooks, result, err);
	bench_progress_end(&progress);
	b->before_ns += phases_total_ns(phases);
	return rc;
}

int bench_run(
    struct bench *b, struct bench_side *s, const struct load_plan *phases, struct weir_err *err)
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

/* ---- rounds ---- */

static int one_round(struct bench *b, int round, struct weir_err *err)
{
	struct load_plan *phases = calloc(1, sizeof(*phases));
	int rounds = (int)b->req->opt.rounds, rc;

	if (!phases)
		return sentence_nomem(err);
	/* borrowed, since bench_phases derives the length of the phase from these members */
	phases->trace_ns = b->side[0].plan.trace_ns;
	phases->n_trace = b->side[0].plan.n_trace;
	phases->arrivals = b->side[0].plan.arrivals;
	rc = bench_phases(b->req, phases, err);
	for (int i = 0; rounds > 1 && i < phases->n_phases; i++)
		phases->phase[i].round = round;
	if (rounds > 1)
		snprintf(b->part, sizeof(b->part), "round %d/%d", round, rounds);
	/* The order alternates from round to round, so that neither side has an advantage. */
	for (int i = 0; rc == 0 && i < b->n_sides && !atomic_load(&bench_stop_asked); i++) {
		b->after_ns =
		    phases_total_ns(phases) * ((rounds - round) * b->n_sides + b->n_sides - 1 - i);
		rc = bench_run(b, &b->side[round % 2 ? i : b->n_sides - 1 - i], phases, err);
	}
	free(phases);
	return rc;
}

/* Return whether rounds were requested. Without --find-capacity they always are. With it, they are
 * only if a ramp or steps are given. */
static bool wants_rounds(const struct bench_options *o)
{
	return !o->find_capacity || o->ramp || o->steps;
}

static int run_all(struct bench *b, struct weir_err *err)
{
	const struct bench_options *o = &b->req->opt;
	int rc = 0;

	b->capacity_per_s = o->capacity_per_s;
	if (o->find_capacity)
		rc = bench_search(b, o->rate_per_s > 0 ? o->rate_per_s : SEARCH_START_PER_S, err);
	if (rc != 0 || b->side[0].result.voided[0])
		return rc;
	if (o->sweep && b->capacity_per_s <= 0 && !atomic_load(&bench_stop_asked))
		return sentence(err, WEIR_EINVAL,
		    o->find_capacity ? "--sweep cannot run, since no capacity was found"
				     : "--sweep needs --capacity RATE or --find-capacity");
	if (o->sweep)
		return atomic_load(&bench_stop_asked) ? 0 : bench_sweep(b, err);
	for (int r = 1;
	     rc == 0 && wants_rounds(o) && r <= o->rounds && !atomic_load(&bench_stop_asked); r++)
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

/* Return the time-out of requests without --timeout. In a search or a sweep with an objective,
 * requests must time out within a load. Otherwise no load could be an overload, and answers to
 * requests of one load would still be awaited in the next. A client that waits for ten times the
 * objective is patient, which is a guess. */
static int64_t default_timeout_ns(const struct bench *b)
{
	const struct bench_options *o = &b->req->opt;
	int64_t timeout_ns = TIMEOUT_PATIENCE * b->objective.limit_ns;

	if (!b->slo || !(o->find_capacity || o->sweep))
		return TIMEOUT_NS;
	timeout_ns = timeout_ns < o->for_ns / 2 ? timeout_ns : o->for_ns / 2;
	if (o->pause_ns > 0 && o->pause_ns < timeout_ns)
		timeout_ns = o->pause_ns;
	return timeout_ns > b->objective.limit_ns ? timeout_ns : b->objective.limit_ns;
}

static int side_init(struct bench *b, int i, const char *url, struct weir_err *err)
{
	struct bench_side *s = &b->side[i];
	const struct bench_options *o = &b->req->opt;

	b->n_sides = i + 1;
	name_out(o, i, s->out, sizeof(s->out));
	if (s->out[0] && strcmp(s->out, "-") != 0 && !o->force && access(s->out, F_OK) == 0)
		return sentence(err, WEIR_EINVAL, "'%.180s' exists; --force overwrites it", s->out);
	int rc = bench_plan(b->req, url, &s->plan, err);
	if (rc == 0 && b->slo)
		rc = load_objective_parse(b->slo, &b->objective, err);
	if (rc == 0 && o->timeout_ns == 0)
		s->plan.timeout_ns = default_timeout_ns(b);
	if (rc == 0)
		s->plan.lag_limit_ns = o->lag_limit_ns > 0 ? o->lag_limit_ns
				       : b->slo            ? load_objective_lag_ns(&b->objective)
							   : 0;
	return rc;
}

static int write_side(struct bench *b, struct bench_side *s, const char *path, struct weir_err *err)
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

	if (bench_is_gate(b)) {
		about.objective = b->slo;
		about.objective_met = bench_gate(b, s);
	}
	return runfile_write(path, &s->plan, &s->result, &about, err);
}

/* Return whether the server ever accepted a connection. True if nothing has been run. */
static bool reached(const struct bench_side *s)
{
	return s->result.connects > 0 || s->result.n_phases == 0;
}

static int tell(struct bench *b, struct weir_err *err)
{
	int rc = 0;

	for (int i = 0; i < b->n_sides && rc == 0; i++) {
		struct bench_side *s = &b->side[i];
		if (b->req->opt.json) {
			rc = write_side(b, s, "-", err);
		} else {
			printf("%s%s\n", i ? "\n" : "", s->plan.url);
			bench_print_summary(stdout, b, s);
			bench_print_result(stdout, &s->plan, &s->result);
		}
		if (rc == 0 && s->out[0]) {
			rc = write_side(b, s, s->out, err);
			if (rc == 0 && strcmp(s->out, "-") != 0 && !b->req->opt.quiet)
				fprintf(stderr, "written: %s\n", s->out);
		}
	}
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
	for (int i = 0; i < b->n_sides && code == VERB_OK && bench_is_gate(b); i++) {
		enum load_met met = bench_gate(b, &b->side[i]);
		if (met == LOAD_UNKNOWN)
			code = VERB_FINDING;
		else if (met == LOAD_MISSED)
			return BENCH_MISSED;
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

	b->slo = b->req->opt.slo ? b->req->opt.slo : b->req->opt.find_capacity ? SLO_DEFAULT : NULL;
	b->realtime = b->req->opt.priority == BENCH_PRIORITY_REALTIME;
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
