/* SPDX-License-Identifier: MIT */
/* Sets up the keys of a simulation: the fields by which stages of core groups are serial or partitioned,
 * each with --keys values. */
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

/* The field by which the queue of the stage is partitioned in the model, or NULL. */
static const char *parted_by(const struct weir_stage_spec *st)
{
	if (st->mode != WEIR_MODE_PARTITIONED)
		return NULL;
	return is_set(st->key) ? st->key : "stage";
}

/* Return 1 + the index of the field, which is added if it is new. */
static int field_at(
    const char **names, const char *name, const struct simulate_options *opt, struct sim_config *c)
{
	int f = 0;

	while (f < c->n_fields && strcmp(names[f], name) != 0)
		f++;
	if (f == c->n_fields) {
		names[f] = name;
		c->field[c->n_fields++].values = values_of(name, opt->keys);
	}
	return 1 + f;
}

int simulate_keys(const struct weir_spec *spec, const struct simulate_options *opt,
    struct sim_config *c, struct weir_err *err)
{
	const char *names[SIM_FIELDS_MAX];
	bool used = opt->keys <= 0;

	c->n_fields = 0;
	for (int i = 0; i < c->n_stages; i++) {
		struct sim_stage *to = &c->stage[i];
		if (to->group == 0 || to->exclusive)
			continue;
		const struct weir_stage_spec *st =
		    &spec->stages[simulate_stage(spec, to->name, strlen(to->name))];
		const char *serial = simulate_serial(spec, st), *part = parted_by(st);
		const char *name = serial ? serial : part;
		if (!name || simulate_reads(spec, st))
			continue;
		int field = field_at(names, name, opt, c);
		if (serial)
			to->serial = field;
		else
			to->partition = field;
		used |= follows_keys(name);
	}
	if (!used)
		return sentence(err, WEIR_EINVAL,
		    "--keys has no effect: no stage that is simulated with the cores of a group "
		    "has a "
		    "serial key or is partitioned, except by class, event and stage");
	return 0;
}
