/* SPDX-License-Identifier: MIT */
/* Sets up the serial keys of a simulation: the fields that stages name, each with --keys values. */
#include "simulate.h"

#include <string.h>

static bool is_set(const char *text)
{
	return text && text[0];
}

static const char *field_of(const struct weir_spec *spec, const struct weir_stage_spec *st)
{
	const char *name = st->serial;

	for (int i = 0; i < spec->n_groups && !is_set(name); i++)
		if (strcmp(spec->groups[i].name, st->group) == 0)
			name = spec->groups[i].serial;
	return is_set(name) && strcmp(name, "none") != 0 ? name : NULL;
}

/* Requests are of one type and come from one source, so these two have one value. */
static uint32_t values_of(const char *field, int64_t keys)
{
	if (strcmp(field, "class") == 0)
		return 0;
	return strcmp(field, "event") == 0 || strcmp(field, "stage") == 0 ? 1 : (uint32_t)keys;
}

void simulate_keys(
    const struct weir_spec *spec, const struct simulate_options *opt, struct sim_config *c)
{
	const char *names[SIM_FIELDS_MAX];

	for (int i = 0; i < c->n_stages; i++) {
		if (c->stage[i].group == 0 || c->stage[i].exclusive)
			continue;
		int at = simulate_stage(spec, c->stage[i].name, strlen(c->stage[i].name)), f = 0;
		const char *name = field_of(spec, &spec->stages[at]);
		if (!name)
			continue;
		while (f < c->n_fields && strcmp(names[f], name) != 0)
			f++;
		if (f == c->n_fields) {
			names[f] = name;
			c->field[c->n_fields++].values = values_of(name, opt->keys);
		}
		c->stage[i].serial = 1 + f;
	}
}
