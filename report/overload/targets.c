/* SPDX-License-Identifier: MIT */
/* The targets of the evaluation protocol (bench/OVERLOAD.md), and how policies are judged by them;
 * see points.h. */
#include "report/overload/points.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ANY_FROM 0
#define ANY_TO   1e9

const struct over_target over_targets[] = {
    {"goodput at 2 to 10 times the capacity", OVER_GOODPUT, " W1 W2 W3 W4 ", 2, ANY_TO, 0.95, 0,
	false},
    {"p99 of admitted requests / objective", OVER_P99, " W1 W2 W3 W4 W6 W7 W8 W10 W11 W12 ",
	ANY_FROM, ANY_TO, 1, 0, false},
    {"refused at loads up to 0.7 (W1, W2)", OVER_REFUSED, " W1 W2 ", ANY_FROM, 0.7, 0, 0, false},
    {"refused at loads up to 0.7 (W3, W4)", OVER_REFUSED, " W3 W4 ", ANY_FROM, 0.7, 0.001, 0,
	false},
    /* The limit is 20 ms or half the objective, whichever is longer. */
    {"spike to 1.4x: time to converge", OVER_CONVERGE, " W7 ", 1.3, 1.5, 0.02, 0.5, false},
    {"spike to 10x: time to recover", OVER_RECOVER, " W7 ", 9, 11, 0.2, 0, false},
    {"spike to 10x with retries: time to recover", OVER_RECOVER, " W9 ", 9, 11, 2, 0, false},
    {"spike to 10x with retries: success 5 s later / before, worst round", OVER_AFTER, " W9 ", 9,
	11, 0.95, 0, true},
    {"success of the highest class under a flood", OVER_TOP, " W10 ", ANY_FROM, ANY_TO, 0.999, 0,
	false},
    {"lowest share of a lower class / its guarantee", OVER_GUARANTEE, " W1 W2 W3 W4 ", 2, ANY_TO,
	0.9, 0, false},
    {"Jain's index of equal users", OVER_JAIN, " W11 ", ANY_FROM, ANY_TO, 0.95, 0, false},
    {"wasted work", OVER_WASTED, NULL, ANY_FROM, ANY_TO, 0.01, 0, false},
    /* The target is checked up to 3x: at higher loads the shared stage limits both routes. */
    {"goodput of the route beside a narrow route", OVER_UNAFFECTED, " W6 ", ANY_FROM, 3, 0.97, 0,
	false},
    {"goodput of the route beside a slow route", OVER_UNAFFECTED, " W8 ", ANY_FROM, 0.9, 0.97, 0,
	false},
    {"pool: time until the goodput has recovered", OVER_SETTLE, " W5 ", ANY_FROM, 0.9, 3, 0, false},
    {"pool: reversals per minute", OVER_REVERSALS, " W5 ", ANY_FROM, 0.9, 1, 0, false},
    {"pool: goodput / that of a static pool", OVER_OF_BEST, " W5 ", ANY_FROM, 0.9, 0.95, 0, false},
    /* 27 us is 1.3 times the 21 us that the bare server of bench/refusal takes at twice its
     * capacity. */
    {"CPU time per refusal, with request and response", OVER_REJECT, NULL, 2, ANY_TO, 27e-6, 0,
	false},
    {"share of one core used by the controllers", OVER_CONTROL, NULL, ANY_FROM, ANY_TO, 0.005, 0,
	false},
};

const int over_n_targets = (int)(sizeof(over_targets) / sizeof(over_targets[0]));

static bool concerns(const struct over_target *t, const struct over_row *r)
{
	char word[24];

	snprintf(word, sizeof(word), " %s ", r->workload);
	return (!t->workloads || strstr(t->workloads, word)) && r->load >= t->load_from &&
	       r->load <= t->load_to;
}

static double limit_of(const struct over_target *t, const struct over_row *r)
{
	return t->limit_slo > 0 ? fmax(t->limit, t->limit_slo * r->slo_s) : t->limit;
}

static double counted(const struct over_target *t, const struct over_range *v, bool more)
{
	if (!t->worst_round)
		return v->mid;
	return more ? v->low : v->high;
}

struct over_standing over_judge(
    const struct over_points *p, const struct over_target *t, const char *where, const char *policy)
{
	struct over_standing s = {.value = NAN, .limit = t->limit};
	bool more = over_more_is_better[t->metric];

	for (int i = 0; i < p->n; i++) {
		const struct over_point *at = &p->point[i];
		const struct over_range *v = &at->of[t->metric];
		if (v->n == 0 || at->rounds == 0 || strcmp(at->first->where, where) != 0 ||
		    strcmp(at->first->policy, policy) != 0 || !concerns(t, at->first))
			continue;
		double value = counted(t, v, more);
		if (s.known && (more ? value >= s.value : value <= s.value))
			continue;
		s = (struct over_standing){
		    .known = true, .value = value, .limit = limit_of(t, at->first), .worst = at};
	}
	s.met = s.known && (more ? s.value >= s.limit : s.value <= s.limit);
	return s;
}
