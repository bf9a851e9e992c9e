/* SPDX-License-Identifier: MIT */
/*
 * Prints the tables of `weir bench`: a row per phase. The trials of a search have a table of their
 * own. A phase whose generator was late, which does not count, is marked by that word.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/verb.h"
#include "load/judge.h"

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

	if (load_phase_total(plan, p, &total) != 0)
		return;
	snprintf(name, sizeof(name), "%s%.20s", p->late ? "late " : "", plan->phase[i].name);
	print_row(out, name, &total, p->took_ns);
	for (int c = 0; plan->n_classes > 1 && c < plan->n_classes; c++) {
		snprintf(name, sizeof(name), "  %s", plan->class[c].name);
		print_row(out, name, &p->class[c], p -> took_ns);
	}
	print_errors(out, plan->phase[i].name, &total);
	load_class_result_fini(&total);
}

/* The phases of a table: indices in order of the offered rate, rounds in order of time. */
struct table {
	const struct load_plan *plan;
	int n;
	int phase[LOAD_PHASES_MAX];
};

/* Whether phase `i` is in the table of the trials of a search, or else in the main one. */
static bool belongs(
    const struct load_plan *plan, const struct load_result *result, int i, bool trials)
{
	bool apart = plan->phase[i].trial && load_has_runs(plan);

	return apart == trials && load_phase_offers(plan, i) && result->phase[i].took_ns > 0;
}

static void sort_in(struct table *t, int i)
{
	double per_s = t->plan->phase[i].from_per_s + t->plan->phase[i].to_per_s;
	int at = t->n++;

	for (; at > 0 && !t->plan->closed && t->plan->phase[i].multiple > 0; at--) {
		const struct load_phase *p = &t->plan->phase[t->phase[at - 1]];
		if (p->from_per_s + p->to_per_s <= per_s)
			break;
		t->phase[at] = t->phase[at - 1];
	}
	t->phase[at] = i;
}

static void print_table(FILE *out, const struct load_plan *plan, const struct load_result *result,
    const char *heading, bool trials)
{
	struct table t = {.plan = plan};
	bool bold = verb_styled(out);

	for (int i = 0; i < plan->n_phases && i < result->n_phases; i++)
		if (belongs(plan, result, i, trials))
			sort_in(&t, i);
	if (trials && t.n == 0)
		return;
	fprintf(out, "%s%-16s %10s %10s %7s %7s %7s %9s %9s %9s %9s %9s%s\n", bold ? "\033[1m" : "",
	    heading, plan->closed ? "SENT/s" : "OFFERED/s", "GOODPUT/s", "SHED", "ERROR", "TIMEOUT",
	    "P50", "P90", "P99", "P99.9", "MAX", bold ? "\033[0m" : "");
	for (int k = 0; k < t.n; k++)
		print_phase(out, plan, result, t.phase[k]);
}

void bench_print_result(FILE *out, const struct load_plan *plan, const struct load_result *result)
{
	print_table(out, plan, result, "PHASE", false);
	print_table(out, plan, result, "SEARCH TRIAL", true);
}
