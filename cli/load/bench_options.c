/* SPDX-License-Identifier: MIT */
/*
 * Parses the options of `weir bench` with a table of knobs, so units, ranges and messages are the
 * same as in the YAML. bench_class.c turns the options of a class into requests, and bench_plan.c
 * turns the other options into a plan.
 */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/sentence.h"

#define ROW(n, t, member, d, lo, hi, h)                                                            \
	{                                                                                          \
		.name = n, .type = WEIR_KNOB_##t,                                                  \
		.offset = offsetof(struct bench_options, member), .def = d, .min = lo, .max = hi,  \
		.help = h                                                                          \
	}
#define YEAR_NS 3.2e16

const struct weir_knob bench_knobs[] = {
    ROW("rate", RATE, rate_per_s, NULL, 0, 1e7, "requests per second"),
    ROW("ramp", STRING, ramp, NULL, 0, 0, "FROM..TO: a rate that changes evenly, such as 1k..10k"),
    ROW("steps", STRING, steps, NULL, 0, 0, "A,B,C: these rates in turn, each for --for"),
    ROW("spike", STRING, spike, NULL, 0, 0,
	"10x@20s+5s: ten times the rate from second 20 for 5 s"),
    ROW("for", DURATION, for_ns, "10s", 1e6, YEAR_NS,
	"length of the run, or of each step or trial"),
    ROW("warmup", DURATION, warmup_ns, "0s", 0, YEAR_NS,
	"time at the start of a run or trial, left out of all results"),
    {.name = "arrivals",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct bench_options, arrivals),
	.def = "poisson",
	.choices = "poisson|uniform|bursts",
	.help = "distribution of the send times at a given rate"},
    ROW("burst-factor", RATE, burst_factor, "5", 1, 1000,
	"rate of a burst, as a multiple of the mean rate"),
    ROW("burst-share", RATIO, burst_share, "10%", 0.0001, 0.9999,
	"share of the time that bursts last"),
    ROW("burst-length", DURATION, burst_ns, "100ms", 1e5, YEAR_NS, "mean length of a burst"),
    ROW("trace", STRING, trace, NULL, 0, 0, "a file of send times since the start, one per line"),
    ROW("speed", RATE, speed, NULL, 0, 1e6,
	"send the requests of --replay at the intervals of the log, divided by this factor"),
    ROW("seed", INT, seed, "1", 0, 9e15,
	"seed of all random numbers; the same seed gives the same schedule"),
    ROW("closed", BOOL, closed, "false", 0, 0,
	"closed loop: a connection sends a request when the previous one is answered"),
    ROW("find-capacity", BOOL, find_capacity, "false", 0, 0,
	"search for the highest rate that keeps --slo, starting at --rate (100/s)"),
    ROW("slo", STRING, slo, NULL, 0, 0,
	"p99=100ms: the objective of --find-capacity (p99=100ms); of other runs, one to be met, "
	"with exit status 4 if it is missed"),
    ROW("capacity", RATE, capacity_per_s, NULL, 0, 1e7,
	"the known capacity, which --sweep multiplies"),
    ROW("sweep", STRING, sweep, NULL, 0, 0,
	"0.1x..10x or 0.5x,1x,2x: measure the overload curve at these multiples of the capacity"),
    ROW("rounds", INT, rounds, "1", 1, 64,
	"number of times the load is run; with --against, alternately on both servers"),
    ROW("pause", DURATION, pause_ns, "1s", 0, YEAR_NS, "pause between the rates of a sweep"),
    ROW("against", STRING, against, NULL, 0, 0,
	"a second server, loaded alternately with the first and compared with it"),
    ROW("connections", INT, connections, "1000", 1, 1000000, "maximum number of open connections"),
    ROW("threads", INT, threads, "1", 1, 256, "threads of the generator"),
    ROW("cpu", INT, cpu, "-1", -1, 4095,
	"pin thread i of the generator, counted from 0, to this core plus i; -1: pin none"),
    ROW("lag-limit", DURATION, lag_limit_ns, "0s", 0, 1e10,
	"a phase does not count if the p99 of the generator's lag is higher; 0s: a tenth of --slo, "
	"or 1ms without it"),
    {.name = "priority",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct bench_options, priority),
	.def = "auto",
	.choices = "auto|normal|realtime",
	.help =
	    "priority of the generator; auto: real-time once it was late, where that is allowed"},
    ROW("fresh", BOOL, fresh, "false", 0, 0, "a new connection for every request"),
    ROW("pipeline", INT, pipeline, "1", 1, 64,
	"maximum number of requests in flight on a connection"),
    ROW("timeout", DURATION, timeout_ns, "0s", 0, YEAR_NS,
	"time limit of each attempt of a request, from the intended send time of the attempt; 0s: "
	"10s, or in a search or sweep with --slo ten times that, and at most --pause and half of "
	"--for"),
    ROW("deadline", BOOL, deadline, "false", 0, 0,
	"send the header x-deadline-ms with the time left of --timeout"),
    ROW("insecure", BOOL, insecure, "false", 0, 0, "accept any certificate"),
    ROW("session", INT, session, "1", 1, 1000000, "requests that each arriving user sends"),
    ROW("clients", INT, clients, "0", 0, 1000000,
	"a closed loop of users who request a page, think, and request the next"),
    ROW("pages", BOOL, pages, "false", 0, 0,
	"a page of --clients has embedded files, in number as in SURGE (Pareto, alpha 2.43)"),
    ROW("think", DURATION, think_ns, "1s", 0, YEAR_NS,
	"a user's mean pause between the requests of --session or the pages of --clients"),
    {.name = "think-law",
	.type = WEIR_KNOB_ENUM,
	.offset = offsetof(struct bench_options, think_law),
	.def = "exponential",
	.choices = "exponential|pareto|lognormal|equal",
	.help = "distribution of these pauses"},
    ROW("think-shape", RATE, think_shape, "1.5", 0.1, 100,
	"alpha of pareto, above 1, or sigma of lognormal"),
    ROW("retries", INT, retries, "0", 0, 100,
	"maximum number of retries of a request that was shed, failed or timed out"),
    ROW("backoff", DURATION, backoff_ns, "100ms", 0, YEAR_NS,
	"wait before the first retry, doubled for each further one"),
    ROW("jitter", RATIO, jitter, "50%", 0, 1, "variation of the back-off, in both directions"),
    ROW("slow-read", RATIO, slow_read_share, "0%", 0, 1, "share of connections that read slowly"),
    ROW("slow-read-rate", BYTES, slow_read_bytes, "1KiB", 1, 1e12,
	"bytes per second on a connection that reads slowly"),
    ROW("slow-write", RATIO, slow_write_share, "0%", 0, 1,
	"share of connections that write slowly"),
    ROW("slow-write-rate", BYTES, slow_write_bytes, "64B", 1, 1e12,
	"bytes per second on a connection that writes slowly"),
    ROW("grace", DURATION, grace_ns, "2s", 0, YEAR_NS, "wait for outstanding answers at the end"),
    ROW("make-site", STRING, make_site, NULL, 0, 0,
	"write the files of --site below this folder, so that the server can serve them"),
    ROW("admin", STRING, admin, NULL, 0, 0,
	"the server's admin endpoint, whose numbers go into the run file"),
    ROW("out", STRING, out, NULL, 0, 0, "write the run file to this path"),
    ROW("label", STRING, label, NULL, 0, 0, "the name of the run in tables and reports"),
    ROW("json", BOOL, json, "false", 0, 0, "print the run file instead of a table"),
    ROW("quiet", BOOL, quiet, "false", 0, 0, "print no progress"),
    ROW("force", BOOL, force, "false", 0, 0, "overwrite the run file"),
    {.name = NULL},
};

void bench_print_options(FILE *out)
{
	for (const struct weir_knob *k = bench_knobs; k->name; k++) {
		bool flag = k->type == WEIR_KNOB_BOOL;
		fprintf(out, "  --%-16s %s", k->name, k->help);
		if (k->choices)
			fprintf(out, ": %s", k->choices);
		if (k->def && !flag)
			fprintf(out, " (%s)", k->def);
		fputc('\n', out);
	}
	fputs(
	    "  --class NAME[:WEIGHT] the options after it apply to this class of requests:\n"
	    "     --path PATH, --method METHOD, --header 'NAME: VALUE', --body TEXT or @FILE,\n"
	    "     --bodies FOLDER, --replay LOG, --site specweb99|surge[:FILES],\n"
	    "     --paths FILE (lines WEIGHT /PATH or /PATH),\n"
	    "     --expect status=200,type=text/html,hash=HEX (what differs is the error "
	    "'wrong'),\n"
	    "     --users N (x-user: u0 to u(N-1) at random, counted separately in the run file)\n"
	    "short: -c connections, -t threads, -o out, -q quiet, -H header, -k insecure\n",
	    out);
}

/* ---- reading argv ---- */

/* The option that is being parsed. Its value is in the same word or in the next one. */
struct cursor {
	int argc, at;
	char **argv;
	char name[32];
	const char *value; /* NULL if it has not been read yet */
};

static const char *short_name(char c)
{
	static const char *const names[] = {
	    "cconnections", "tthreads", "oout", "qquiet", "Hheader", "kinsecure", "hhelp"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i][0] == c)
			return names[i] + 1;
	return NULL;
}

/* Split the option argv[at] into name and value. */
static int cursor_open(struct cursor *c, struct weir_err *err)
{
	const char *word = c->argv[c->at];
	const char *equals = strchr(word, '=');

	c->value = NULL;
	if (word[1] != '-') {
		const char *name = short_name(word[1]);
		if (!name)
			return sentence(err, WEIR_EINVAL, "unknown option '%.40s'", word);
		snprintf(c->name, sizeof(c->name), "%s", name);
		c->value = word[2] ? word + 2 : NULL;
		return 0;
	}
	size_t n = equals ? (size_t)(equals - word) : strlen(word);
	if (n - 2 >= sizeof(c->name))
		return sentence(err, WEIR_EINVAL, "unknown option '%.40s'", word);
	memcpy(c->name, word + 2, n - 2);
	c->name[n - 2] = '\0';
	c->value = equals ? equals + 1 : NULL;
	return 0;
}

static int cursor_value(struct cursor *c, struct weir_err *err)
{
	if (!c->value && c->at + 1 >= c->argc)
		return sentence(err, WEIR_EINVAL, "--%s needs a value", c->name);
	if (!c->value)
		c->value = c->argv[++c->at];
	return 0;
}

static int unknown_option(const char *name, struct weir_err *err)
{
	const char *names[80];
	int n = 0;

	for (const struct weir_knob *k = bench_knobs; k->name && n < 80; k++)
		names[n++] = k->name;
	const char *near = weir_nearest(name, names, n);
	if (near)
		return sentence(
		    err, WEIR_EINVAL, "unknown option '--%s'; did you mean '--%s'?", name, near);
	return sentence(err, WEIR_EINVAL, "unknown option '--%s'", name);
}

static int take_knob(struct cursor *c, struct bench_options *opt, struct weir_err *err)
{
	const struct weir_knob *row = weir_knob_find(bench_knobs, c->name);
	char why[256];

	if (!row)
		return unknown_option(c->name, err);
	if (row->type == WEIR_KNOB_BOOL && !c->value)
		c->value = "true";
	else if (cursor_value(c, err) != 0)
		return WEIR_EINVAL;
	int rc = weir_knob_parse(row, c->value, opt, why, sizeof(why));
	return rc == 0 ? 0 : sentence(err, WEIR_EINVAL, "--%s: %s", c->name, why);
}

/* ---- the options of a class ---- */

static int add_class(struct bench_request *req, const char *text, struct weir_err *err)
{
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	char *end = NULL;
	double weight = colon ? strtod(colon + 1, &end) : 1;

	if (req->n_classes == LOAD_CLASSES_MAX)
		return sentence(
		    err, WEIR_EINVAL, "--class '%s': more than %d classes", text, LOAD_CLASSES_MAX);
	if (n == 0 || n >= sizeof(req->class[0].name))
		return sentence(err, WEIR_EINVAL, "--class '%s': a name has 1 to %zu bytes", text,
		    sizeof(req->class[0].name) - 1);
	if (colon && (end == colon + 1 || *end || !(weight > 0) || weight > 1e9))
		return sentence(err, WEIR_EINVAL,
		    "--class '%s': the weight must be a number above 0, at most 1e9", text);
	if (req->outside[0])
		return sentence(err, WEIR_EINVAL,
		    "--%s before the first --class applies to no class: write it after the class",
		    req->outside);
	struct bench_class *cls = &req->class[req->n_classes++];
	*cls = (struct bench_class){.weight = weight};
	memcpy(cls->name, text, n);
	return 0;
}

static const char **class_member(struct bench_class *cls, const char *name)
{
	static const char *const names[] = {
	    "method", "path", "paths", "body", "bodies", "replay", "site", "expect"};
	const char **member[] = {&cls->method, &cls->path, &cls->paths, &cls->body, &cls->bodies,
	    &cls->replay, &cls->site, &cls->expect};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return member[i];
	return NULL;
}

/* Maximum number of users of a class. 100000 is a guess: each user takes memory for a request and
 * for two counters per phase. */
#define USERS_MAX 100000

static int take_users(struct bench_class *cls, const char *text, struct weir_err *err)
{
	static const struct weir_knob range = {
	    .name = "users", .type = WEIR_KNOB_INT, .min = 1, .max = USERS_MAX};
	char why[256];
	int64_t n = 0;

	if (weir_knob_parse(&range, text, &n, why, sizeof(why)) != 0)
		return sentence(err, WEIR_EINVAL, "--users: %s", why);
	cls->users = (int)n;
	return 1;
}

/* Store the option if it belongs to a class. Returns 1 if it does, 0 if it does not, or a WEIR_E
 * code. */
static int take_class(struct cursor *c, struct bench_request *req, struct weir_err *err)
{
	struct bench_class *cls = &req->class[req->n_classes ? req->n_classes - 1 : 0];
	const char **member = class_member(cls, c->name);
	bool header = strcmp(c->name, "header") == 0, class = strcmp(c->name, "class") == 0;
	bool users = strcmp(c->name, "users") == 0;

	if (!member && !header && !class && !users)
		return 0;
	if (cursor_value(c, err) != 0)
		return WEIR_EINVAL;
	if (class)
		return add_class(req, c->value, err) == 0 ? 1 : WEIR_EINVAL;
	if (req->n_classes == 0 && !req->outside[0])
		memcpy(req->outside, c->name, sizeof(req->outside));
	if (users)
		return take_users(cls, c->value, err);
	if (member)
		*member = c->value;
	else if (cls->n_headers == (int)(sizeof(cls->header) / sizeof(cls->header[0])))
		return sentence(err, WEIR_EINVAL, "--header '%s': too many headers", c->value);
	else
		cls->header[cls->n_headers++] = c->value;
	return 1;
}

int bench_parse(int argc, char **argv, struct bench_request *req, struct weir_err *err)
{
	struct cursor c = {.argc = argc, .argv = argv};

	memset(req, 0, sizeof(*req));
	req->argc = argc;
	req->argv = argv;
	req->class[0] = (struct bench_class){.name = "all", .weight = 1};
	if (weir_knobs_init(bench_knobs, &req->opt) != 0)
		return sentence(err, WEIR_EINVAL, "out of memory");
	for (c.at = 1; c.at < argc; c.at++) {
		if (argv[c.at][0] != '-' || !argv[c.at][1]) {
			if (req->url)
				return sentence(
				    err, WEIR_EINVAL, "unexpected argument '%s'", argv[c.at]);
			req->url = argv[c.at];
			continue;
		}
		if (cursor_open(&c, err) != 0)
			return WEIR_EINVAL;
		if (strcmp(c.name, "help") == 0) {
			req->opt.help = true;
			return 0;
		}
		int taken = take_class(&c, req, err);
		if (taken < 0 || (taken == 0 && take_knob(&c, &req->opt, err) != 0))
			return WEIR_EINVAL;
	}
	if (!req->url)
		return sentence(err, WEIR_EINVAL, "the URL is missing");
	req->n_classes = req->n_classes ? req->n_classes : 1;
	return 0;
}

void bench_request_fini(struct bench_request *req)
{
	weir_knobs_fini(bench_knobs, &req->opt);
}
