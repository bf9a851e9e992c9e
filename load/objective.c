/* SPDX-License-Identifier: MIT */
/* Objectives for the latency; see objective.h. */
#include "load/objective.h"

#include <ctype.h>
#include <stdlib.h>

#include <weir/knob.h>

#include "load/judge.h"
#include "load/sentence.h"

#define LAG_SHARE 10
/* Share of requests whose lag may be above the 99th percentile of the lag. */
#define LAG_TAIL 0.01

int load_objective_parse(const char *text, struct load_objective *o, struct weir_err *err)
{
	static const struct weir_knob limit = {
	    .name = "slo", .type = WEIR_KNOB_DURATION, .min = 1e3, .max = 1e11};
	char why[256], *end;

	if (text[0] != 'p' || !isdigit((unsigned char)text[1]))
		return sentence(err, WEIR_EINVAL, "--slo '%s' is not of the form p99=50ms", text);
	/* p99 and p99.9 are percentages, p999 is short for p99.9 */
	double nines = strtod(text + 1, &end);
	while (nines > 100)
		nines /= 10;
	if (*end != '=' || nines <= 0 || nines >= 100)
		return sentence(err, WEIR_EINVAL, "--slo '%s' is not of the form p99=50ms", text);
	o->quantile = nines / 100;
	if (weir_knob_parse(&limit, end + 1, &o->limit_ns, why, sizeof(why)) != 0)
		return sentence(err, WEIR_EINVAL, "--slo '%s': %s", text, why);
	return 0;
}

double load_in_time(
    const struct load_plan *plan, const struct load_phase_result *p, int64_t limit_ns)
{
	uint64_t offered = 0, good = 0;

	for (int c = 0; c < plan->n_classes; c++) {
		const struct hdr *h = p->class[c].latency[LOAD_OK];
		offered += p->class[c].offered;
		for (int i = 0; h && i < HDR_BUCKETS && hdr_lower_ns(i) < limit_ns; i++)
			good += h->count[i];
	}
	return offered > 0 ? (double)good / (double)offered : 0;
}

enum load_met load_objective_met(
    const struct load_plan *plan, const struct load_phase_result *p, const struct load_objective *o)
{
	int64_t lag_ns = hdr_quantile_ns(&p->lag, 0.99);

	if (p->late)
		return LOAD_UNKNOWN;
	if (load_in_time(plan, p, o->limit_ns) >= o->quantile)
		return LOAD_MET;
	/* a lag within the strictest limit is not worth a deduction */
	if (lag_ns <= LOAD_LAG_LIMIT_NS ||
	    load_in_time(plan, p, o->limit_ns + lag_ns) + LAG_TAIL < o->quantile)
		return LOAD_MISSED;
	return LOAD_UNKNOWN;
}

int64_t load_objective_lag_ns(const struct load_objective *o)
{
	int64_t share_ns = o->limit_ns / LAG_SHARE;

	return share_ns > LOAD_LAG_LIMIT_NS ? share_ns : LOAD_LAG_LIMIT_NS;
}
