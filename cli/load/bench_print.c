/* SPDX-License-Identifier: MIT */
/*
 * Prints the output of `weir bench`: progress on stderr, and the table of results on stdout. On a
 * terminal, progress is one line that is rewritten every second; elsewhere, it is about ten lines
 * per run.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "load/phases.h"
#include "load/run.h"
#include "cli/verb.h"

#define BAR_WIDTH 24

/* Number of progress lines per run, if lines are not rewritten. 10 is a guess: enough to see
 * progress, and still readable with 64 rounds. */
#define LINES_PER_RUN 10

void bench_print_duration(char *buf, size_t size, int64_t ns)
{
	static const struct {
		int64_t from_ns;
		double unit_ns;
		const char *name;
	} units[] = {{1000000000, 1e9, "s"}, {1000000, 1e6, "ms"}, {0, 1e3, "us"}};
	int i = 0;

	while (ns < units[i].from_ns)
		i++;
	double v = (double)ns / units[i].unit_ns;
	snprintf(buf, size, "%.*f %s", v < 10 ? 2 : v < 100 ? 1 : 0, v, units[i].name);
}

/* ---- progress ---- */

void bench_progress_begin(
    struct bench_progress *p, const struct load_plan *plan, bool quiet, bool lines)
{
	*p = (struct bench_progress){.plan = plan, .terminal = isatty(STDERR_FILENO)};
	p->shown = !quiet && (lines || p->terminal);
	p->total_ns = phases_total_ns(plan);
	p->every_ns = p->terminal ? 0 : p->total_ns / LINES_PER_RUN;
}

static void print_bar(double done)
{
	int full = (int)(done * BAR_WIDTH + 0.5);

	fputc('[', stderr);
	for (int i = 0; i < BAR_WIDTH; i++)
		fputc(i < full ? '#' : '.', stderr);
	fputs("] ", stderr);
}

void bench_progress_second(void *progress, const struct load_second *row)
{
	struct bench_progress *p = progress;
	const uint64_t *n = row->all.outcome;
	char p50[24], p99[24];

	if (!p->shown || row->at_ns < p->next_ns)
		return;
	p->next_ns = row->at_ns + p->every_ns;
	double done = (double)(row->at_ns + 1000000000) / (double)p->total_ns;
	bench_print_duration(p50, sizeof(p50), row->all.p50_ns);
	bench_print_duration(p99, sizeof(p99), row->all.p99_ns);
	if (p->terminal) {
		fputs("\r\033[K", stderr);
		print_bar(done > 1 ? 1 : done);
	}
	fprintf(stderr,
	    "%4.0fs %-14.14s due %" PRIu64 "/s  ok %" PRIu64 "/s  shed %" PRIu64 "  error %" PRIu64
	    "  late %" PRIu64 "  p50 %s  p99 %s",
	    (double)row->at_ns * 1e-9 + 1, p->plan->phase[row->phase].name, row->all.offered,
	    n[LOAD_OK] + n[LOAD_DEGRADED], n[LOAD_SHED], n[LOAD_ERROR], n[LOAD_TIMEOUT], p50, p99);
	if (!p->terminal)
		fputc('\n', stderr);
	fflush(stderr);
}

void bench_progress_end(struct bench_progress *p)
{
	if (p->shown && p->terminal)
		fputs("\r\033[K", stderr);
}

/* ---- the table ---- */

static double share(uint64_t n, uint64_t of)
{
	return of ? 100.0 * (double)n / (double)of : 0;
}

static void print_row(
    FILE *out, const char *name, const struct load_class_result *c, int64_t took_ns)
{
	static const double quantiles[] = {0.5, 0.9, 0.99, 0.999, 1};
	const struct hdr *h = c->latency[LOAD_OK] ? c->latency[LOAD_OK] : c->latency[LOAD_DEGRADED];
	double s = (double)took_ns * 1e-9;
	const uint64_t *n = c->outcome;
	char text[24];

	fprintf(out, "%-16.16s %10.1f %10.1f %6.2f%% %6.2f%% %6.2f%%", name, (double)c->offered / s,
	    (double)(n[LOAD_OK] + n[LOAD_DEGRADED]) / s, share(n[LOAD_SHED], c->offered),
	    share(n[LOAD_ERROR] + n[LOAD_GONE], c->offered), share(n[LOAD_TIMEOUT], c->offered));
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
		if (h && h->total)
			bench_print_duration(text, sizeof(text), hdr_quantile_ns(h, quantiles[i]));
		else
			snprintf(text, sizeof(text), "-");
		fprintf(out, " %9s", text);
	}
	fputc('\n', out);
}

static void print_errors(FILE *out, const char *name, const struct load_class_result *c)
{
	bool any = false;

	for (int e = 0; e < LOAD_N_ERRORS; e++) {
		if (c->error[e] == 0)
			continue;
		fprintf(out, "%s %" PRIu64 " %s", any ? "," : "  failed attempts:", c->error[e],
		    load_error_name[e]);
		any = true;
	}
	if (c->retries)
		fprintf(out, "%s %" PRIu64 " retries", any ? "; " : " ", c->retries);
	if (any || c->retries)
		fprintf(out, "  (%s)\n", name);
}

static void print_phase(
    FILE *out, const struct load_plan *plan, const struct load_result *result, int i)
{
	const struct load_phase_result *p = &result->phase[i];
	struct load_class_result total = {0};
	char name[64];

	if (plan->phase[i].warmup || p->took_ns <= 0 || plan->phase[i].from_per_s == 0)
		return;
	if (load_phase_total(plan, p, &total) != 0)
		return;
	print_row(out, plan->phase[i].name, &total, p->took_ns);
	for (int c = 0; plan->n_classes > 1 && c < plan->n_classes; c++) {
		snprintf(name, sizeof(name), "  %s", plan->class[c].name);
		print_row(out, name, &p->class[c], p -> took_ns);
	}
	print_errors(out, plan->phase[i].name, &total);
	load_class_result_fini(&total);
}

static void print_foot(FILE *out, const struct load_plan *plan, const struct load_result *result)
{
	double s = (double)result->took_ns * 1e-9;
	int64_t worst_ns = -1; /* no phase has been counted yet */
	char lag[24] = "-";

	for (int i = 0; i < result->n_phases; i++) {
		int64_t ns = hdr_quantile_ns(&result->phase[i].lag, 0.99);
		if (!plan->phase[i].warmup && ns > worst_ns)
			worst_ns = ns;
	}
	if (worst_ns >= 0)
		bench_print_duration(lag, sizeof(lag), worst_ns);
	fprintf(out,
	    "generator: %s, lag p99 %s (limit 1 ms), %.0f %% of a core, %" PRIu64
	    " connections made\n",
	    plan->closed ? "closed loop, so latencies leave out the time by which slow answers "
			   "delayed later requests"
			 : "open loop",
	    lag, s > 0 ? 100 * (result->cpu_user_s + result->cpu_system_s) / s : 0,
	    result->connects);
	if (result->stopped)
		fprintf(out, "stopped by hand after %.1f s\n", s);
	if (result->voided[0])
		fprintf(out,
		    "VOID: %s\n"
		    "      give the generator a core that the server does not use (--cpu, "
		    "taskset), a real-time priority (chrt -f 1), or another machine\n",
		    result->voided);
}

void bench_print_result(FILE *out, const struct load_plan *plan, const struct load_result *result)
{
	bool bold = verb_styled(out);

	fprintf(out, "%s%-16s %10s %10s %7s %7s %7s %9s %9s %9s %9s %9s%s\n", bold ? "\033[1m" : "",
	    "PHASE", plan->closed ? "SENT/s" : "OFFERED/s", "GOODPUT/s", "SHED", "ERROR", "TIMEOUT",
	    "P50", "P90", "P99", "P99.9", "MAX", bold ? "\033[0m" : "");
	for (int i = 0; i < result->n_phases; i++)
		print_phase(out, plan, result, i);
	print_foot(out, plan, result);
}
