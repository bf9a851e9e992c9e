/* SPDX-License-Identifier: MIT */
/*
 * `weir bench`: from a command line to a plan, its runs, and what is told about them.
 *
 *   bench_options.c   the table of options, and from them the plan
 *   bench_class.c     classes of requests: --class and the options behind it
 *   bench.c           the runs: one, a search for the capacity, a sweep, two servers in turn
 *   bench_server.c    what the server says of itself meanwhile
 *   bench_print.c     progress and tables
 *
 * Main thread only, but for the poller in bench_server.c.
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

/** Options that stand once, filled by the table of rows in bench_options.c. */
struct bench_options {
	/* rates */
	double rate_per_s, capacity_per_s, speed;
	char *ramp, *steps, *spike, *sweep, *slo, *trace;
	int64_t for_ns, warmup_ns, pause_ns, rounds;
	int arrivals; /* enum load_arrivals */
	double burst_factor, burst_share;
	int64_t burst_ns, seed;
	bool find_capacity, closed;
	/* clients */
	int64_t connections, threads, cpu, pipeline, timeout_ns, grace_ns, session, think_ns;
	int64_t retries, backoff_ns, slow_read_bytes, slow_write_bytes;
	double jitter, slow_read_share, slow_write_share;
	bool fresh, insecure, deadline;
	/* files and places */
	char *admin, *against, *out, *label, *make_site;
	bool json, quiet, force, help;
};

/** One class as given; what is not given is as for the class before the first --class. */
struct bench_class {
	char name[32];
	double weight;
	const char *method, *path, *body, *bodies, *replay, *site;
	int users; /* 0: they are not told apart */
	int n_headers;
	const char *header[32];
};

struct bench_request {
	struct bench_options opt;
	const char *url;
	int n_classes;
	struct bench_class class[LOAD_CLASSES_MAX];
	int argc;
	char **argv;
};

/** The objective of --slo: a latency quantile. */
struct bench_slo {
	double quantile; /* 0.99 */
	int64_t limit_ns;
};

/** Rows of the options that stand once; the name is the option's. */
extern const struct weir_knob bench_knobs[];

/** Parse argv[1..argc). 0, or WEIR_EINVAL with the sentence in `err`. Free with bench_request_fini. */
int bench_parse(int argc, char **argv, struct bench_request *req, struct weir_err *err);
void bench_request_fini(struct bench_request *req);

/** Print all options with their defaults and meaning. */
void bench_print_options(FILE *out);

/** What runs against `url` have in common: all of `plan` but its phases. 0 or a WEIR_E code with `err`. */
int bench_plan(
    const struct bench_request *req, const char *url, struct load_plan *plan, struct weir_err *err);

/** The phases that were asked for, into `plan`, which has none. */
int bench_phases(const struct bench_request *req, struct load_plan *plan, struct weir_err *err);

/** Parse "p99=50ms". */
int bench_slo_parse(const char *text, struct bench_slo *slo, struct weir_err *err);

/** Give class `cls` of `plan` its requests. */
int bench_class_fill(const struct bench_request *req, const struct bench_class *from,
    const struct load_plan *plan, const char *path, struct load_class *cls, struct weir_err *err);

/* ---- telling ---- */

/** Progress of a run; begin before, row per second, end after. A terminal has one line that is rewritten. Elsewhere
 *  there are ten lines or so, evenly spaced and at most one a second; none unless `lines`. */
struct bench_progress {
	const struct load_plan *plan;
	bool shown, terminal;
	int64_t total_ns, every_ns, next_ns;
	uint64_t offered, ok, shed, error;
};
void bench_progress_begin(
    struct bench_progress *p, const struct load_plan *plan, bool quiet, bool lines);
void bench_progress_second(void *progress, const struct load_second *row);
void bench_progress_end(struct bench_progress *p);

/** The table of a result, one line per phase and, of several classes, one per class. */
void bench_print_result(FILE *out, const struct load_plan *plan, const struct load_result *result);

/** A duration in three digits: "35 us", "1.2 ms". */
void bench_print_duration(char *buf, size_t size, int64_t ns);

/* ---- the server's side ---- */

struct bench_server;

/** Poll the admin endpoint `url` once a second from now on. WEIR_ESYS and the like when nobody answers there. */
int bench_server_start(const char *url, struct bench_server **server, struct weir_err *err);

/** The last snapshot, then everything: the member `server` of a run file. The caller owns it; NULL when there was no
 *  memory. Frees `server`. */
json_t *bench_server_stop(struct bench_server *server);

#endif
