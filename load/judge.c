/* SPDX-License-Identifier: MIT */
/* Decides which phases count; see judge.h. */
#include "load/judge.h"

#include <stdio.h>

/* Minimum number of late requests for the generator to count as late. A single late request may be
 * due to one interrupt. The minimum matters only for fewer than 100 requests: with more, a late
 * 99th percentile implies at least two late requests. */
#define LATE_MIN 2

/* Part of the time-out that the lag may take in overload, as it may take of an objective below it. */
#define LAG_SHARE 10

int64_t load_lag_limit_ns(const struct load_plan *plan)
{
	return plan->lag_limit_ns > 0 ? plan->lag_limit_ns : LOAD_LAG_LIMIT_NS;
}

int64_t load_phase_lag_limit_ns(const struct load_plan *plan, int phase)
{
	int64_t limit_ns = load_lag_limit_ns(plan), patient_ns = plan->timeout_ns / LAG_SHARE;

	return plan->phase[phase].multiple > 1 && patient_ns > limit_ns ? patient_ns : limit_ns;
}

bool load_lag_late(const struct hdr *lag, int64_t limit_ns)
{
	uint64_t late = 0;

	for (int b = 0; b < HDR_BUCKETS; b++)
		if (hdr_lower_ns(b) >= limit_ns)
			late += lag->count[b];
	return late >= LATE_MIN && hdr_quantile_ns(lag, 0.99) > limit_ns;
}

bool load_phase_offers(const struct load_plan *plan, int phase)
{
	const struct load_phase *p = &plan->phase[phase];

	return !p->warmup && (plan->closed || p->from_per_s > 0);
}

bool load_phase_counts(const struct load_plan *plan, const struct load_result *result, int phase)
{
	const struct load_phase_result *r = &result->phase[phase];

	return load_phase_offers(plan, phase) && r->took_ns > 0 && !r->late;
}

bool load_has_runs(const struct load_plan *plan)
{
	for (int i = 0; i < plan->n_phases; i++)
		if (load_phase_offers(plan, i) && !plan->phase[i].trial)
			return true;
	return false;
}

void load_judge(const struct load_plan *plan, struct load_result *result)
{
	bool runs = load_has_runs(plan);
	int64_t worst_ns = 0;
	int worst = -1;

	result->voided[0] = '\0';
	for (int i = 0; i < plan->n_phases && i < result->n_phases; i++) {
		int64_t p99_ns = hdr_quantile_ns(&result->phase[i].lag, 0.99);
		if (!load_phase_offers(plan, i) || (runs && plan->phase[i].trial) ||
		    result->phase[i].took_ns <= 0)
			continue;
		if (!result->phase[i].late)
			return;
		if (p99_ns > worst_ns)
			worst = i;
		worst_ns = p99_ns > worst_ns ? p99_ns : worst_ns;
	}
	if (worst >= 0)
		snprintf(result->voided, sizeof(result->voided),
		    "the p99 of the generator's lag was %.1f ms, above %.3g ms, in phase '%s'",
		    (double)worst_ns / 1e6, (double)load_phase_lag_limit_ns(plan, worst) / 1e6,
		    plan->phase[worst].name);
}
