/* SPDX-License-Identifier: MIT */
/*
 * `weir bench`: turns a command line into a plan, runs it, and reports the results.
 *
 *   bench_options.c   the option table and the parser
 *   bench_plan.c      from the options to the plan
 *   bench_class.c     request classes: --class and the options after it
 *   bench.c           the runs: a single one, rounds, two servers
 *   bench_search.c    the search for the capacity
 *   bench_sweep.c     the sweep over multiples of the capacity
 *   bench_server.c    what the server reports about itself during the runs
 *   bench_progress.c  progress on stderr
 *   bench_summary.c   the summary, and whether the objective was met
 *   bench_print.c     the tables
 *
 * Main thread only, except for the poller in bench_server.c.
 */
#ifndef WEIR_CLI_BENCH_H
#define WEIR_CLI_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <weir/error.h>
#include <weir/knob.h>

#include "load/plan.h"
#include "load/result.h"

/** Options that do not belong to a class. Their values are set through the table in
 *  bench_options.c. */
struct bench_options {
	/* rates */
	double rate_per_s, capacity_per_s, speed;
	int64_t lag_limit_ns;
	int priority; /* enum bench_priority */
	char *ramp, *steps, *spike, *sweep, *slo, *trace;
	int64_t for_ns, warmup_ns, pause_ns, rounds;
	int arrivals; /* enum load_arrivals */
	double burst_factor, burst_share;
	int64_t burst_ns, seed;
	bool find_capacity, closed;
	/* clients */
	int64_t connections, threads, cpu, pipeline, timeout_ns, grace_ns, session, think_ns;
	int64_t clients;
	int think_law; /* enum load_think */
	double think_shape;
	bool pages;
	int64_t retries, backoff_ns, slow_read_bytes, slow_write_bytes;
	double jitter, slow_read_share, slow_write_share;
	bool fresh, insecure, deadline;
	/* files and addresses */
	char *admin, *against, *out, *label, *make_site;
	bool json, quiet, force, help;
};

/* When the generator asks for real-time priority, in the order of the choices of --priority. */
enum bench_priority { BENCH_PRIORITY_AUTO, BENCH_PRIORITY_NORMAL, BENCH_PRIORITY_REALTIME };

/** Exit code if a run missed the objective of --slo. */
#define BENCH_MISSED 4

/** One class as given on the command line. Without --class, there is one class, called "all". */
struct bench_class {
	char name[32];
	double weight;
	const char *method, *path, *paths, *body, *bodies, *replay, *site, *expect;
	int users; /* 0 if users are not distinguished */
	int n_headers;
	const char *header[32];
};

struct bench_request {
	struct bench_options opt;
	const char *url;
	int n_classes;
	struct bench_class class[LOAD_CLASSES_MAX];
	char outside[32]; /* the first class option given before any --class, or "" */
	int argc;
	char **argv;
};

/** The options that do not belong to a class. The name of a row is also the name of the option. */
extern const struct weir_knob bench_knobs[];

/** Parse argv[1..argc). Returns 0, or WEIR_EINVAL with a message in `err`. In both cases, free
 *  `req` with bench_request_fini. */
int bench_parse(int argc, char **argv, struct bench_request *req, struct weir_err *err);
void bench_request_fini(struct bench_request *req);

/** Print all options with their meanings and defaults. */
void bench_print_options(FILE *out);

/** Fill in everything that all runs against `url` have in common: the whole plan except its phases.
 *  Returns 0, or a WEIR_E code with a message in `err`. */
int bench_plan(
    const struct bench_request *req, const char *url, struct load_plan *plan, struct weir_err *err);

/** Add the requested phases to `plan`, which must have none. Returns 0, or a WEIR_E code with a
 *  message in `err`. */
int bench_phases(const struct bench_request *req, struct load_plan *plan, struct weir_err *err);

/** Fill `cls`, a class of `plan`, with the requests that `from` describes. Returns 0, or a WEIR_E
 *  code with a message in `err`. */
int bench_class_fill(const struct bench_request *req, const struct bench_class *from,
    const struct load_plan *plan, const char *path, struct load_class *cls, struct weir_err *err);

/* ---- output ---- */

/** Shows the progress of a run. Set part, before_ns and after_ns, call bench_progress_begin before
 *  the run, bench_progress_second for each second of results, and bench_progress_end after the run.
 *  On a terminal, one line is rewritten every second: a bar, the phase, the time left, the current
 *  rate and p99. Elsewhere, about ten lines are printed at even intervals, at most one per second,
 *  and only if `lines` is set. */
struct bench_progress {
	const struct load_plan *plan;
	const char *part;            /* "trial 7", or "" */
	int64_t before_ns, after_ns; /* time of earlier runs; estimated time of later ones */
	bool shown, terminal;
	int64_t total_ns, every_ns, next_ns;
};
void bench_progress_begin(
    struct bench_progress *p, const struct load_plan *plan, bool quiet, bool lines);
void bench_progress_second(void *progress, const struct load_second *row);
void bench_progress_end(struct bench_progress *p);

/** Write the line of a second, of at most `width` columns, into buf[0..size). With `bar`, it begins
 *  with a bar of the share of all runs that is over. Pure. */
void bench_progress_line(const struct bench_progress *p, const struct load_second *row, bool bar,
    int width, char *buf, size_t size);

/** Print the result table: one line per phase and, if there are several classes, one per class. */
void bench_print_result(FILE *out, const struct load_plan *plan, const struct load_result *result);

/** Format a duration with three digits: "35.0 us", "1.20 ms". */
void bench_print_duration(char *buf, size_t size, int64_t ns);

/* ---- the server's side ---- */

struct bench_server;

/** Start polling the admin endpoint `url` once a second. Returns 0, or a WEIR_E code with a message
 *  in `err`. An endpoint that does not respond to the first request is an error, too. */
int bench_server_start(const char *url, struct bench_server **server, struct weir_err *err);

/** Take the last snapshot, stop polling and free `server`. Returns the member `server` of a run
 *  file, which the caller owns. */
json_t *bench_server_stop(struct bench_server *server);

#endif
