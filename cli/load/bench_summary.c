/* SPDX-License-Identifier: MIT */
/*
 * The summary of `weir bench`, a screen before the tables: the verdict, the capacity, the objective,
 * the classes, and how certain all that is.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_run.h"
#include "cli/verb.h"
#include "load/judge.h"
#include "report/format.h"
#include "report/verdict.h"

#define LABEL_WIDTH 12
#define LINE_WIDTH  100

/* Print a term and its text, broken into lines at spaces. */
static void term(FILE *out, const char *name, const char *text)
{
	bool bold = verb_styled(out);
	int at = LABEL_WIDTH;

	if (!*text)
		return;
	fprintf(out, "%s%-*s%s", bold ? "\033[1m" : "", LABEL_WIDTH, name, bold ? "\033[0m" : "");
	for (const char *p = text; *p;) {
		size_t n = strcspn(p, " ");
		int width = 0;
		for (size_t i = 0; i < n; i++)
			width += ((unsigned char)p[i] & 0xC0) != 0x80;
		if (at > LABEL_WIDTH && at + 1 + width > LINE_WIDTH) {
			fprintf(out, "\n%*s", LABEL_WIDTH, "");
			at = LABEL_WIDTH;
		}
		if (at > LABEL_WIDTH)
			fputc(' ', out);
		fwrite(p, 1, n, out);
		at += width + (at > LABEL_WIDTH);
		p += n + (p[n] == ' ');
	}
	fputc('\n', out);
}

/* ---- the objective ---- */

bool bench_is_gate(const struct bench *b)
{
	return b->slo && !b->req->opt.find_capacity;
}

/* Whether the objective is judged in phase `i`: loads beyond the capacity cannot meet it. */
static bool judged(const struct bench_side *s, int i)
{
	return load_phase_offers(&s->plan, i) && s->plan.phase[i].multiple <= 1 &&
	       s->result.phase[i].took_ns > 0;
}

enum load_met bench_gate(const struct bench *b, const struct bench_side *s)
{
	enum load_met all = LOAD_MET;
	int n = 0;

	for (int i = 0; i < s->plan.n_phases && i < s->result.n_phases; i++) {
		if (!judged(s, i))
			continue;
		enum load_met met =
		    load_objective_met(&s->plan, &s->result.phase[i], &b->objective);
		if (met == LOAD_MISSED)
			return LOAD_MISSED;
		all = met == LOAD_UNKNOWN ? LOAD_UNKNOWN : all;
		n++;
	}
	return n > 0 ? all : LOAD_UNKNOWN;
}

/* The least share of requests in time over all phases that are judged. */
static double least_in_time(const struct bench *b, const struct bench_side *s)
{
	double least = 1;

	for (int i = 0; i < s->plan.n_phases && i < s->result.n_phases; i++)
		if (judged(s, i))
			least = fmin(least,
			    load_in_time(&s->plan, &s->result.phase[i], b->objective.limit_ns));
	return least;
}

static void print_gate(FILE *out, const struct bench *b, const struct bench_side *s)
{
	static const char *const words[] = {
	    [LOAD_MET] = "met", [LOAD_MISSED] = "MISSED", [LOAD_UNKNOWN] = "not known"};
	enum load_met met = bench_gate(b, s);
	char text[200];

	if (!bench_is_gate(b))
		return;
	snprintf(text, sizeof(text), "%.60s %s: %.5g %% of the requests were answered in time%s",
	    b->slo, words[met], floor(least_in_time(b, s) * 1e5) / 1e3,
	    met == LOAD_UNKNOWN ? ", but the generator's lag could make the difference" : "");
	term(out, "objective", text);
}

/* ---- classes ---- */

/* Print the share of each class that was served at the highest load that counts. */
static void print_classes(FILE *out, const struct bench_side *s, const struct verdict *v)
{
	char text[600], rate[FORMAT_MAX], share[FORMAT_MAX];
	int at = -1, n;

	for (int i = 0; i < s->plan.n_phases && i < s->result.n_phases; i++)
		if (load_phase_counts(&s->plan, &s->result, i) &&
		    s->plan.phase[i].trial != load_has_runs(&s->plan) &&
		    (at < 0 || s->plan.phase[i].from_per_s >= s->plan.phase[at].from_per_s))
			at = i;
	if (at < 0 || s->plan.n_classes < 2 || v->kind <= VERDICT_NOTHING)
		return;
	n = snprintf(text, sizeof(text), "served of %s:", format_rate(rate, v->offered_per_s));
	for (int c = 0; c < s->plan.n_classes; c++) {
		const struct load_class_result *r = &s->result.phase[at].class[c];
		double good = (double)(r->outcome[LOAD_OK] + r->outcome[LOAD_DEGRADED]);
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s %.31s %s", c ? "," : "",
		    s->plan.class[c].name,
		    format_share(share, r->offered ? good / (double)r->offered : NAN));
	}
	term(out, "classes", text);
}

/* ---- the generator ---- */

/* Write the greatest 99th percentile of the lag in phases up to the capacity, or beyond it, and the
 * limit there; "" if there are none. */
static void lag_text(const struct bench_side *s, bool beyond, char *buf, size_t size)
{
	char lag[FORMAT_MAX], limit[FORMAT_MAX];
	double worst_s = NAN;
	int worst = -1;

	for (int i = 0; i < s->plan.n_phases && i < s->result.n_phases; i++)
		if ((s->result.voided[0] ? load_phase_offers(&s->plan, i)
					 : load_phase_counts(&s->plan, &s->result, i)) &&
		    (s->plan.phase[i].multiple > 1) == beyond) {
			worst = i;
			worst_s = fmax(
			    worst_s, (double)hdr_quantile_ns(&s->result.phase[i].lag, 0.99) / 1e9);
		}
	buf[0] = '\0';
	if (worst < 0)
		return;
	double limit_s = (double)load_phase_lag_limit_ns(&s->plan, worst) / 1e9;
	snprintf(buf, size, "%s %s (limit %s)",
	    beyond ? ", beyond the capacity" : ", lag p99 up to", format_time(lag, worst_s),
	    format_time(limit, limit_s));
}

static void print_generator(FILE *out, const struct bench_side *s, const struct verdict *v)
{
	double took_s = (double)s->result.took_ns / 1e9;
	char text[500], lag[80], beyond[80], late[96] = "";

	lag_text(s, false, lag, sizeof(lag));
	lag_text(s, true, beyond, sizeof(beyond));
	if (v->n_late > 0)
		snprintf(late, sizeof(late), "; %d phase%s with more do not count", v->n_late,
		    v->n_late == 1 ? "" : "s");
	snprintf(text, sizeof(text), "%s%s%s%s; %.0f %% of a core%s, %llu connections made",
	    s->plan.closed ? "closed loop, so latencies leave out the time by which slow answers "
			     "delayed later requests"
			   : "open loop",
	    lag, beyond, late,
	    took_s > 0 ? 100 * (s->result.cpu_user_s + s->result.cpu_system_s) / took_s : 0,
	    s->result.realtime ? " with real-time priority" : "",
	    (unsigned long long)s->result.connects);
	term(out, "generator", text);
}

void bench_print_summary(FILE *out, const struct bench *b, const struct bench_side *s)
{
	struct verdict v = verdict_of(&s->plan, &s->result);
	char text[500];

	term(out, "verdict",
	    v.kind == VERDICT_VOID ? "VOID, see below" : verdict_sentence(&v, text, sizeof(text)));
	term(out, "check", verdict_check(&v, text, sizeof(text)));
	term(out, "certainty", verdict_certainty(&v, text, sizeof(text)));
	print_gate(out, b, s);
	if (s == &b->side[0])
		term(out, "capacity", b->capacity_note);
	print_classes(out, s, &v);
	print_generator(out, s, &v);
	if (s->result.stopped)
		fprintf(out, "stopped by hand after %.1f s\n", (double)s->result.took_ns / 1e9);
	if (s->result.voided[0])
		fprintf(out,
		    "VOID: %s\n"
		    "      give the generator a core that the server does not use (--cpu, "
		    "taskset), a real-time priority (--priority realtime), or another machine\n",
		    s->result.voided);
	fputc('\n', out);
}
