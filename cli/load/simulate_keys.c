/* SPDX-License-Identifier: MIT */
/* Sets up the serial keys of a simulation: the fields that stages name, each with --keys values. */
#include "simulate.h"

#include <string.h>

#include "load/sentence.h"

#define KEYS 1000 /* `--keys auto` */

static bool is_set(const char *text)
{
	return text && text[0];
}

const char *simulate_serial(const struct weir_spec *spec, const struct weir_stage_spec *st)
{
	const char *name = st->serial;

	for (int i = 0; st->group && i < spec->n_groups && !is_set(name); i++)
		if (strcmp(spec->groups[i].name, st->group) == 0)
			name = spec->groups[i].serial;
	return is_set(name) && strcmp(name, "none") != 0 ? name : NULL;
}

/* Requests are of one type and come from one source, so these two have one value. */
static uint32_t values_of(const char *field, int64_t keys)
{
	if (strcmp(field, "class") == 0)
		return 0;
	if (strcmp(field, "event") == 0 || strcmp(field, "stage") == 0)
		return 1;
	return (uint32_t)(keys > 0 ? keys : KEYS);
}

/* Whether the number of values of the field is that of --keys. */
static bool follows_keys(const char *field)
{
	return values_of(field, 1) != values_of(field, 2);
}

int simulate_keys(const struct weir_spec *spec, const struct simulate_options *opt,
    struct sim_config *c, struct weir_err *err)
{
	const char *names[SIM_FIELDS_MAX];
	bool used = opt->keys <= 0;
	int n = 0;

	for (int i = 0; i < c->n_stages; i++) {
		if (c->stage[i].group == 0 || c->stage[i].exclusive)
			continue;
		int at = simulate_stage(spec, c->stage[i].name, strlen(c->stage[i].name)), f = 0;
		const char *name = simulate_serial(spec, &spec->stages[at]);
		if (!name || simulate_reads(spec, &spec->stages[at]))
			continue;
		while (f < n && strcmp(names[f], name) != 0)
			f++;
		if (f == n) {
			names[n] = name;
			c->field[n++].values = values_of(name, opt->keys);
		}
		c->stage[i].serial = 1 + f;
		used |= follows_keys(name);
	}
	c->n_fields = n;
	if (!used)
		return sentence(err, WEIR_EINVAL,
		    "--keys has no effect: no stage that is simulated with the cores of a group "
		    "has a "
		    "serial key, except for class, event and stage");
	return 0;
}
