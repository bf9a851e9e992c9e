/* SPDX-License-Identifier: MIT */
/* Divides the load of a simulation among the classes and the routes of the server. */
#include "simulate.h"

#include <string.h>

#include <weir/knob.h>

#include "load/sentence.h"

double simulate_class_share(const struct simulate_options *opt, const char *name)
{
	static const struct weir_knob row = {
	    .name = "class", .type = WEIR_KNOB_RATIO, .min = 0, .max = 1};
	size_t n = strlen(name);

	for (int i = 0; i < opt->classes.n; i++) {
		const char *word = opt->classes.word[i];
		double share;
		char why[200];
		if (strncmp(word, name, n) == 0 && word[n] == '=' &&
		    weir_knob_parse(&row, word + n + 1, &share, why, sizeof(why)) == 0)
			return share;
	}
	return -1;
}

/* Events of class `class_id`, which are `share` of all. */
struct part {
	int class_id;
	const char *name;
	double share;
};

static void add_sources(const struct weir_spec *spec, const struct simulate_options *opt,
    const double *route_share, struct simulate_plan *plan, const struct part *part)
{
	struct sim_config *c = &plan->config;
	int64_t slo_ns =
	    spec->n_classes ? spec->classes[part->class_id].slo_ns : c->stage[0].slo_ns;

	for (int r = 0; r < c->n_routes; r++) {
		int from = plan->route_source[r];
		c->source[c->n_sources++] = (struct sim_source){.name = part->name,
		    .class_id = part->class_id,
		    .route = r,
		    .arrivals = SIM_POISSON,
		    .group = from < 0 ? 0 : simulate_source(spec, &spec->stages[from], c),
		    .rate_per_s = plan->offered_per_s * part->share * route_share[r],
		    .deadline_ns = opt->deadline_ns ? opt->deadline_ns : slo_ns};
	}
}

int simulate_load(const struct weir_spec *spec, const struct simulate_options *opt,
    const double *route_share, struct simulate_plan *plan, struct weir_err *err)
{
	int n = spec->n_classes ? spec->n_classes : 1, open = 0;
	double left = 1;

	plan->config.n_classes = n;
	weir_spec_shares(spec, plan->config.priority, plan->config.guarantee);
	for (int i = 0; i < spec->n_classes; i++) {
		double share = simulate_class_share(opt, spec->classes[i].name);
		left -= share > 0 ? share : 0;
		open += share < 0;
	}
	if (left < -1e-9)
		return sentence(
		    err, WEIR_EINVAL, "the classes add up to more than 100%% of the load");
	for (int i = 0; i < n; i++) {
		const char *name = spec->n_classes ? spec->classes[i].name : "default";
		double share = spec->n_classes ? simulate_class_share(opt, name) : 1;
		const struct part part = {i, name, share >= 0 ? share : left / open};
		add_sources(spec, opt, route_share, plan, &part);
	}
	return 0;
}
