/* SPDX-License-Identifier: MIT */
/* Sums and frees results, and names outcomes and errors; see result.h. */
#include "load/result.h"

#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

const char *const load_outcome_name[LOAD_N_OUTCOMES] = {
#define LOAD_OUTCOME_NAME(id, name, meaning) [LOAD_##id] = name,
    LOAD_OUTCOMES(LOAD_OUTCOME_NAME)
#undef LOAD_OUTCOME_NAME
};

const char *const load_error_name[LOAD_N_ERRORS] = {
#define LOAD_ERROR_NAME(id, name, meaning) [LOAD_E##id] = name,
    LOAD_ERRORS(LOAD_ERROR_NAME)
#undef LOAD_ERROR_NAME
};

void load_class_result_fini(struct load_class_result *c)
{
	for (int o = 0; o < LOAD_N_OUTCOMES; o++)
		free(c->latency[o]);
	free(c->user);
	memset(c, 0, sizeof(*c));
}

void load_result_fini(struct load_result *result)
{
	for (int p = 0; result->phase && p < result->n_phases; p++)
		for (int c = 0; c < LOAD_CLASSES_MAX; c++)
			load_class_result_fini(&result->phase[p].class[c]);
	free(result->phase);
	free(result->second);
	memset(result, 0, sizeof(*result));
}

static void add_counts(struct load_class_result *into, const struct load_class_result *from)
{
	into->offered += from->offered;
	for (int o = 0; o < LOAD_N_OUTCOMES; o++)
		into->outcome[o] += from->outcome[o];
	for (int e = 0; e < LOAD_N_ERRORS; e++)
		into->error[e] += from->error[e];
	into->attempts += from->attempts;
	into->retries += from->retries;
	into->bytes_in += from->bytes_in;
	into->bytes_out += from->bytes_out;
}

static int add_latency(struct load_class_result *into, const struct load_class_result *from)
{
	for (int o = 0; o < LOAD_N_OUTCOMES; o++) {
		if (!from->latency[o])
			continue;
		if (!into->latency[o])
			into->latency[o] = calloc(1, sizeof(*into->latency[o]));
		if (!into->latency[o])
			return WEIR_ENOMEM;
		hdr_merge(into->latency[o], from->latency[o]);
	}
	return 0;
}

int load_phase_total(const struct load_plan *plan, const struct load_phase_result *phase,
    struct load_class_result *into)
{
	for (int c = 0; c < plan->n_classes; c++) {
		add_counts(into, &phase->class[c]);
		if (add_latency(into, &phase->class[c]) != 0) {
			load_class_result_fini(into);
			return WEIR_ENOMEM;
		}
	}
	return 0;
}
