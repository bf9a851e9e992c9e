/* SPDX-License-Identifier: MIT */
/*
 * Writes plan and result as JSON. There is one function per object described in bench/RUNFILE.md,
 * in the same order.
 *
 * json_pack with "o" takes ownership of a reference even on failure, and fails if the reference is
 * NULL. A failure in any of the functions below therefore makes the whole document NULL and leaks
 * nothing.
 */
#include "load/runfile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "framework/base/json.h"
#include "load/judge.h"
#include "load/outfile.h"

/* Significant digits of real numbers: enough for nanoseconds in a run of a day. */
#define RUNFILE_DIGITS 14

/* Names of the arrival processes, in the order of enum load_arrivals. */
static const char *const runfile_arrivals[] = {"poisson", "uniform", "bursts", "trace"};

static double runfile_seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

/* Return a rate per second; 0 if no time has passed. */
static double runfile_rate(uint64_t n, int64_t ns)
{
	return ns > 0 ? (double)n / runfile_seconds(ns) : 0;
}

/* Convert text from the user, such as an argument or a label, to JSON. Text that is not UTF-8 is
 * replaced. */
static json_t *runfile_text(const char *text)
{
	json_t *value = json_string(text ? text : "");

	return value ? value : json_string("(not UTF-8)");
}

static json_t *runfile_positive(double value)
{
	return value > 0 && isfinite(value) ? json_real(value) : json_null();
}

/* ---- about the run ---- */

static json_t *runfile_command(const struct runfile_about *about)
{
	json_t *list = json_array();

	for (int i = 0; i < about->argc; i++)
		json_push(&list, runfile_text(about->argv[i]));
	return list;
}

/* Format a time as "2026-11-21T19:18:49.123Z". */
static json_t *runfile_started(int64_t unix_ns)
{
	time_t whole = (time_t)(unix_ns / 1000000000);
	char text[64];
	struct tm tm;

	if (!gmtime_r(&whole, &tm))
		return json_null();
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof(text) - n, ".%03dZ", (int)(unix_ns % 1000000000 / 1000000));
	return json_string(text);
}

static void runfile_cpu_model(char *model, size_t size)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char line[256];

	snprintf(model, size, "unknown");
	while (file && fgets(line, sizeof(line), file)) {
		const char *colon = strchr(line, ':');
		if (strncmp(line, "model name", 10) != 0 || !colon)
			continue;
		snprintf(model, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
		break;
	}
	if (file)
		fclose(file);
}

static json_t *runfile_host(void)
{
	struct utsname name;
	char model[160];

	runfile_cpu_model(model, sizeof(model));
	bool known = uname(&name) == 0;
	return json_pack("{s:o, s:i, s:s}", "cpu", runfile_text(model), "cores",
	    (int)sysconf(_SC_NPROCESSORS_ONLN), "kernel", known ? name.release : "unknown");
}

/* ---- the plan ---- */

static json_t *runfile_plan_classes(const struct load_plan *plan)
{
	json_t *list = json_array();

	for (int i = 0; i < plan->n_classes; i++) {
		const struct load_class *c = &plan->class[i];
		json_t *one = json_pack("{s:o, s:f, s:i}", "name", runfile_text(c->name), "weight",
		    c->weight, "requests", c->n_requests);
		char expect[120];
		expect_text(&c->expect, expect, sizeof(expect));
		if (expect[0])
			json_object_set_new(one, "expect", json_string(expect));
		json_push(&list, one);
	}
	return list;
}

static const char *const runfile_laws[] = {"exponential", "pareto", "lognormal", "equal"};

static json_t *runfile_plan(const struct load_plan *p)
{
	json_t *plan = json_pack(
	    "{s:o, s:b, s:s, s:o, s:i, s:i, s:b, s:i, s:f, s:b, s:i, s:f, s:f}", "url",
	    runfile_text(p->url), "closed", p->closed, "arrivals", runfile_arrivals[p->arrivals],
	    "classes", runfile_plan_classes(p), "connections", p->connections, "threads",
	    p->threads, "fresh", p->fresh, "pipeline", p->pipeline, "timeout_s",
	    runfile_seconds(p->timeout_ns), "send_deadline", p->send_deadline, "retries",
	    p->retries, "backoff_s", runfile_seconds(p->backoff_ns), "jitter", p->jitter);
	json_t *more = json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "session_requests",
	    p->session_requests, "think_s", runfile_seconds(p->think_ns), "slow_read_share",
	    p->slow_read_share, "slow_read_bytes_per_s", p->slow_read_bytes_per_s,
	    "slow_write_share", p->slow_write_share, "slow_write_bytes_per_s",
	    p->slow_write_bytes_per_s, "grace_s", runfile_seconds(p->grace_ns), "lag_limit_s",
	    runfile_seconds(load_lag_limit_ns(p)));

	if (more && p->users > 0)
		json_put(&more, "users", json_integer(p->users));
	if (more && (p->users > 0 || p->session_requests > 1))
		json_put(&more, "think",
		    json_pack("{s:s, s:f, s:b}", "law", runfile_laws[p->think], "shape",
			p->think_shape, "pages", p->pages));
	if (more && p->held_ratio > 0)
		json_put(&more, "held_ratio", json_real(p->held_ratio));
	if (more && p->arrivals == LOAD_BURSTS)
		json_put(&more, "bursts",
		    json_pack("{s:f, s:f, s:f}", "factor", p->burst_factor, "share", p->burst_share,
			"mean_s", runfile_seconds(p->burst_ns)));
	if (json_object_update(plan, more) != 0) {
		json_decref(plan);
		plan = NULL;
	}
	json_decref(more);
	return plan;
}

/* ---- the result ---- */

static json_t *runfile_buckets(const struct hdr *h)
{
	json_t *list = json_array();

	for (int b = 0; b < HDR_BUCKETS; b++)
		if (h->count[b] > 0)
			json_push(&list, json_pack("[i,I]", b, (json_int_t)h->count[b]));
	return list;
}

static double runfile_quantile(const struct hdr *h, double q)
{
	return runfile_seconds(hdr_quantile_ns(h, q));
}

static json_t *runfile_latency(const struct hdr *h)
{
	return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "count",
	    (json_int_t)h->total, "mean_s", hdr_mean_ns(h) / 1e9, "min_s",
	    runfile_seconds(h->min_ns), "p50_s", runfile_quantile(h, 0.5), "p90_s",
	    runfile_quantile(h, 0.9), "p99_s", runfile_quantile(h, 0.99), "p999_s",
	    runfile_quantile(h, 0.999), "max_s", runfile_seconds(h->max_ns), "buckets",
	    runfile_buckets(h));
}

static json_t *runfile_latencies(const struct load_class_result *c)
{
	json_t *map = json_object();

	for (int i = 0; i < LOAD_N_OUTCOMES; i++)
		if (c->latency[i])
			json_put(&map, load_outcome_name[i], runfile_latency(c->latency[i]));
	return map;
}

static json_t *runfile_counts(const char *const *name, const uint64_t *count, int n)
{
	json_t *map = json_object();

	for (int i = 0; i < n; i++)
		json_put(&map, name[i], json_integer((json_int_t)count[i]));
	return map;
}

static json_t *runfile_users(const struct load_user *user, int n)
{
	json_t *list = json_array();

	for (int i = 0; i < n; i++)
		json_push(&list,
		    json_pack("[I,I]", (json_int_t)user[i].offered, (json_int_t)user[i].good));
	return list;
}

static json_t *runfile_class(const struct load_class *cls, const struct load_class_result *c)
{
	json_t *map = json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "name",
	    runfile_text(cls->name), "offered", (json_int_t)c->offered, "attempts",
	    (json_int_t)c->attempts, "retries", (json_int_t)c->retries, "bytes_in",
	    (json_int_t)c->bytes_in, "bytes_out", (json_int_t)c->bytes_out, "outcomes",
	    runfile_counts(load_outcome_name, c->outcome, LOAD_N_OUTCOMES), "errors",
	    runfile_counts(load_error_name, c->error, LOAD_N_ERRORS), "latency",
	    runfile_latencies(c));

	if (map && c->user)
		json_put(&map, "users", runfile_users(c->user, cls->users));
	return map;
}

static json_t *runfile_lag(const struct hdr *lag)
{
	return json_pack("{s:I, s:f, s:f, s:f}", "count", (json_int_t)lag->total, "p50_s",
	    runfile_quantile(lag, 0.5), "p99_s", runfile_quantile(lag, 0.99), "max_s",
	    runfile_seconds(lag->max_ns));
}

static json_t *runfile_phase(
    const struct load_plan *plan, const struct load_phase *p, const struct load_phase_result *r)
{
	json_t *classes = json_array(), *map;
	uint64_t offered = 0, good = 0;

	for (int i = 0; i < plan->n_classes; i++) {
		const struct load_class_result *c = &r->class[i];
		offered += c->offered;
		good += c->outcome[LOAD_OK] + c->outcome[LOAD_DEGRADED];
		json_push(&classes, runfile_class(&plan->class[i], c));
	}
	map = json_pack("{s:o, s:f, s:f, s:f, s:f, s:i, s:b, s:f, s:b, s:f, s:f, s:o, s:o}", "name",
	    runfile_text(p->name), "from_per_s", p->from_per_s, "to_per_s", p->to_per_s, "for_s",
	    runfile_seconds(p->for_ns), "multiple", p->multiple, "round", p->round, "warmup",
	    p->warmup, "took_s", runfile_seconds(r->took_ns), "complete", r->complete,
	    "offered_per_s", runfile_rate(offered, r->took_ns), "goodput_per_s",
	    runfile_rate(good, r->took_ns), "lag", runfile_lag(&r->lag), "classes", classes);
	if (map && r->late)
		json_put(&map, "late", json_true());
	if (map && p->trial)
		json_put(&map, "trial", json_true());
	return map;
}

static json_t *runfile_phases(const struct load_plan *plan, const struct load_result *result)
{
	json_t *list = json_array();

	for (int i = 0; i < result->n_phases; i++)
		json_push(&list, runfile_phase(plan, &plan->phase[i], &result->phase[i]));
	return list;
}

/* The members `class` and `all` of a second have the same fields, but no common type. */
static json_t *runfile_second_part(
    uint64_t offered, const uint64_t *outcome, uint64_t retries, int64_t p50_ns, int64_t p99_ns)
{
	return json_pack("{s:I, s:o, s:I, s:f, s:f}", "offered", (json_int_t)offered, "outcomes",
	    runfile_counts(load_outcome_name, outcome, LOAD_N_OUTCOMES), "retries",
	    (json_int_t)retries, "p50_s", runfile_seconds(p50_ns), "p99_s",
	    runfile_seconds(p99_ns));
}

static json_t *runfile_second(const struct load_plan *plan, const struct load_second *s)
{
	json_t *classes = json_array();

	for (int i = 0; i < plan->n_classes; i++)
		json_push(
		    &classes, runfile_second_part(s->class[i].offered, s->class[i].outcome,
				  s->class[i].retries, s->class[i].p50_ns, s->class[i].p99_ns));
	return json_pack("{s:f, s:i, s:I, s:I, s:f, s:o, s:o}", "t_s", runfile_seconds(s->at_ns),
	    "phase", s->phase, "in_flight", (json_int_t)s->in_flight, "connections",
	    (json_int_t)s->connections, "lag_max_s", runfile_seconds(s->lag_max_ns), "all",
	    runfile_second_part(
		s->all.offered, s->all.outcome, s->all.retries, s->all.p50_ns, s->all.p99_ns),
	    "classes", classes);
}

/* ---- the document ---- */

static json_t *runfile_head(const struct load_plan *plan, const struct load_result *result,
    const struct runfile_about *about)
{
	return json_pack("{s:i, s:{s:o, s:o, s:o}, s:o, s:o, s:o, s:o, s:s, s:o, s:o}", "weir_run",
	    1, "tool", "version", runfile_text(about->version), "commit",
	    runfile_text(about->commit), "flags", runfile_text(about->flags), "command",
	    runfile_command(about), "label", runfile_text(about->label), "started",
	    runfile_started(result->started_unix_ns), "seed",
	    json_sprintf("%llu", (unsigned long long)plan->seed), "mode",
	    plan->closed ? "closed" : "open", "host", runfile_host(), "plan", runfile_plan(plan));
}

static json_t *runfile_objective(const struct runfile_about *about)
{
	json_t *met = about->objective_met == LOAD_UNKNOWN
			  ? json_null()
			  : json_boolean(about->objective_met == LOAD_MET);

	return json_pack("{s:o, s:o}", "text", runfile_text(about->objective), "met", met);
}

static json_t *runfile_json(const struct load_plan *plan, const struct load_result *result,
    const struct runfile_about *about)
{
	json_t *doc = runfile_head(plan, result, about);

	if (!doc)
		return NULL;
	json_put(&doc, "void", result->voided[0] ? runfile_text(result->voided) : json_null());
	json_put(&doc, "stopped", json_boolean(result->stopped));
	json_put(&doc, "took_s", json_real(runfile_seconds(result->took_ns)));
	json_put(&doc, "capacity_per_s", runfile_positive(about->capacity_per_s));
	json_put(&doc, "capacity_note", runfile_text(about->capacity_note));
	if (about->objective)
		json_put(&doc, "objective", runfile_objective(about));
	json_put(&doc, "generator",
	    json_pack("{s:f, s:f, s:I, s:b}", "cpu_user_s", result->cpu_user_s, "cpu_system_s",
		result->cpu_system_s, "connects", (json_int_t)result->connects, "realtime",
		(int)result->realtime));
	json_put(&doc, "phases", runfile_phases(plan, result));
	json_put(&doc, "server", about->server ? json_incref(about->server) : json_null());
	return doc;
}

static int runfile_no_memory(struct weir_err *err)
{
	err->code = WEIR_ENOMEM;
	snprintf(err->text, sizeof(err->text), "out of memory");
	return WEIR_ENOMEM;
}

#define RUNFILE_HOW (JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(RUNFILE_DIGITS))

/* Write the rows one by one: as one JSON tree, the rows of a day would take 300 MB of memory. */
static int runfile_dump_rows(
    FILE *f, const struct load_plan *plan, const struct load_result *result)
{
	fputs(",\"seconds\":[", f);
	for (size_t i = 0; i < result->n_seconds; i++) {
		json_t *row = runfile_second(plan, &result->second[i]);
		if (i > 0)
			fputc(',', f);
		bool ok = row && (json_dumpf(row, f, RUNFILE_HOW) == 0 || ferror(f));
		json_decref(row);
		if (!ok)
			return WEIR_ENOMEM;
	}
	fputc(']', f);
	return 0;
}

/* Write `doc` with the rows as its last member. Failed writes are recorded by the stream and
 * reported by outfile_commit. */
static int runfile_dump(const char *path, const json_t *doc, const struct load_plan *plan,
    const struct load_result *result, struct weir_err *err)
{
	char *text = json_dumps(doc, RUNFILE_HOW);
	struct outfile out;
	int rc = text ? outfile_open(&out, path, err) : runfile_no_memory(err);

	if (rc != 0) {
		free(text);
		return rc;
	}
	fwrite(text, 1, strlen(text) - 1, out.file); /* without the last brace */
	free(text);
	if (runfile_dump_rows(out.file, plan, result) != 0) {
		outfile_abandon(&out);
		return runfile_no_memory(err);
	}
	fputs("}\n", out.file);
	return outfile_commit(&out, err);
}

int runfile_write(const char *path, const struct load_plan *plan, const struct load_result *result,
    const struct runfile_about *about, struct weir_err *err)
{
	json_t *doc = runfile_json(plan, result, about);

	if (!doc)
		return runfile_no_memory(err);
	int rc = runfile_dump(path, doc, plan, result, err);
	json_decref(doc);
	return rc;
}
