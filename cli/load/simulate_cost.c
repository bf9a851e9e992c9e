/* SPDX-License-Identifier: MIT */
/*
 * Determines the service time of an event at each stage; see simulate.h. There are three sources,
 * in this order: the time given on the command line, the mean measured on a running server, and the
 * time configured for the stage (service_ns of types such as `burn`, `delay` and `hold`).
 */
#include "simulate.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <weir/knob.h>
#include <weir/stage.h>

#include "cli/client/client.h"
#include "load/sentence.h"

int simulate_stage(const struct weir_spec *spec, const char *name, size_t n)
{
	for (int i = 0; i < spec->n_stages; i++)
		if (strlen(spec->stages[i].name) == n && memcmp(spec->stages[i].name, name, n) == 0)
			return i;
	return -1;
}

/* ---- configured times ---- */

/* The values of the keys that stages/basic/dist.h defines for types that imitate work. */
struct imitation {
	int64_t time_ns, slow_ns;
	int kind; /* in the order of enum sim_dist_kind */
	double slow_share, sigma;
};

/* Copy the member of `conf` that knob `key` of type `type` describes to *member. Leave *member
 * unchanged if there is no such knob. */
static void read_member(const struct weir_stage_ops *ops, const void *conf, const char *key,
    enum weir_knob_type type, void *member, size_t size)
{
	const struct weir_knob *knob = weir_knob_find(ops->knobs, key);

	if (knob && knob->type == type)
		memcpy(member, (const char *)conf + knob->offset, size);
}

/* Set how the times vary around cost->dist.mean_ns: as configured by the knobs of dist.h, or else
 * exponentially. */
static void vary(const struct weir_stage_ops *ops, const void *conf, struct simulate_cost *cost)
{
	struct imitation m = {.kind = SIM_EXP};

	read_member(ops, conf, "time", WEIR_KNOB_DURATION, &m.time_ns, sizeof(m.time_ns));
	read_member(ops, conf, "slow", WEIR_KNOB_DURATION, &m.slow_ns, sizeof(m.slow_ns));
	read_member(ops, conf, "dist", WEIR_KNOB_ENUM, &m.kind, sizeof(m.kind));
	read_member(ops, conf, "slow_share", WEIR_KNOB_RATIO, &m.slow_share, sizeof(m.slow_share));
	read_member(ops, conf, "sigma", WEIR_KNOB_RATIO, &m.sigma, sizeof(m.sigma));
	cost->dist.kind = (enum sim_dist_kind)m.kind;
	cost->dist.sigma = m.sigma;
	if (cost->dist.kind != SIM_BIMODAL || m.time_ns == 0)
		return;
	cost->dist.slow_share = m.slow_share;
	cost->dist.slow_ratio = (double)m.slow_ns / (double)m.time_ns;
}

static void cost_of_knobs(const struct weir_stage_spec *st, struct simulate_cost *cost)
{
	const struct weir_stage_ops *ops = weir_stage_type_find(st->use);
	/* the messages are discarded: all errors were reported when the file was loaded */
	struct weir_errs errs = {0};

	cost->cpu_share = ops && ops->flags & (WEIR_STAGE_BLOCKS | WEIR_STAGE_HOLDS) ? 0 : 1;
	void *conf = ops && ops->service_ns ? calloc(1, ops->conf_size) : NULL;
	if (!conf)
		return;
	if (weir_knobs_init(ops->knobs, conf) == 0) {
		weir_knobs_bind(ops->knobs, st->with, conf, st->name, &errs);
		cost->from = SIMULATE_KNOBS;
		cost->dist = (struct sim_dist){.mean_ns = ops->service_ns(conf)};
		vary(ops, conf, cost);
		weir_knobs_fini(ops->knobs, conf);
	}
	free(conf);
}

/* ---- a running server ---- */

/* Return the mean service time over all classes of `stage`, an entry of /api/v1/stages; 0 if
 * nothing was served. */
static int64_t measured_mean_ns(const json_t *stage)
{
	const json_t *classes = json_object_get(stage, "classes");
	double sum_s = 0, n = 0;

	for (size_t i = 0; i < json_array_size(classes); i++) {
		const json_t *h = json_object_get(json_array_get(classes, i), "service_seconds");
		sum_s += json_number_value(json_object_get(h, "sum"));
		n += json_number_value(json_object_get(h, "count"));
	}
	return n > 0 ? (int64_t)(sum_s / n * 1e9) : 0;
}

static void take_measured(
    const struct weir_spec *spec, const json_t *stages, struct simulate_plan *plan)
{
	for (size_t i = 0; i < json_array_size(stages); i++) {
		const json_t *stage = json_array_get(stages, i);
		const char *name = json_string_value(json_object_get(stage, "name"));
		int64_t mean_ns = measured_mean_ns(stage);
		int at = name ? simulate_stage(spec, name, strlen(name)) : -1;
		if (at < 0 || mean_ns <= 0)
			continue;
		/* The server reports only the mean. For the distribution, use the configured one,
		 * or assume an exponential one. */
		if (plan->cost[at].from == SIMULATE_UNKNOWN)
			plan->cost[at].dist.kind = SIM_EXP;
		plan->cost[at].dist.mean_ns = mean_ns;
		plan->cost[at].from = SIMULATE_MEASURED;
	}
}

static int ask_server(
    const struct weir_spec *spec, const char *url, struct simulate_plan *plan, struct weir_err *err)
{
	struct client_answer answer = {0};
	int rc = client_get(url, "/api/v1/stages", &answer, err);

	if (rc != 0)
		return rc;
	json_t *doc = json_loadb(answer.body, answer.n, 0, NULL);
	const json_t *stages = json_object_get(doc, "stages");
	if (answer.status != 200 || !json_is_array(stages))
		rc = sentence(
		    err, WEIR_ESYS, "the server at %.100s is not a weir admin endpoint", url);
	else
		take_measured(spec, stages, plan);
	json_decref(doc);
	free(answer.body);
	return rc;
}

/* ---- the command line ---- */

/* Parse one word after the time: a distribution, `cpu` or `blocks`. */
static int take_word(const char *word, size_t n, struct simulate_cost *cost)
{
	static const char *const kinds[] = {"const", "exp", "lognormal", "cpu", "blocks"};
	size_t i = 0;

	while (i < 5 && (strlen(kinds[i]) != n || memcmp(kinds[i], word, n) != 0))
		i++;
	if (i == 5)
		return WEIR_EINVAL;
	if (i >= 3)
		cost->cpu_share = i == 3;
	else
		cost->dist = (struct sim_dist){.kind = i == 0   ? SIM_CONST
						       : i == 1 ? SIM_EXP
								: SIM_LOGNORMAL,
		    .mean_ns = cost->dist.mean_ns,
		    .sigma = 1};
	return 0;
}

static int take_given(const struct weir_spec *spec, const char *word, struct simulate_plan *plan,
    struct weir_err *err)
{
	const char *equals = strchr(word, '=');
	char time[64];
	int at = equals ? simulate_stage(spec, word, (size_t)(equals - word)) : -1;

	if (at < 0)
		return sentence(err, WEIR_EINVAL,
		    "--cost %.60s names no stage of the server: use STAGE=5ms", word);
	struct simulate_cost *cost = &plan->cost[at];
	const char *rest = equals + 1 + strcspn(equals + 1, ",");
	snprintf(time, sizeof(time), "%.*s", (int)(rest - equals - 1), equals + 1);
	if (cost->from == SIMULATE_UNKNOWN)
		cost->dist.kind = SIM_EXP;
	cost->from = SIMULATE_GIVEN;
	if (sentence_duration(time, &cost->dist.mean_ns, err) != 0)
		return WEIR_EINVAL;
	while (*rest) {
		const char *next = rest + 1 + strcspn(rest + 1, ",");
		if (take_word(rest + 1, (size_t)(next - rest - 1), cost) != 0)
			return sentence(err, WEIR_EINVAL,
			    "--cost %.60s: only const, exp or lognormal, and cpu or blocks may "
			    "follow the time",
			    word);
		rest = next;
	}
	return 0;
}

int simulate_costs(const struct weir_spec *spec, const struct simulate_options *opt,
    struct simulate_plan *plan, struct weir_err *err)
{
	int rc = 0;

	if (spec->n_stages > SIMULATE_STAGES_MAX)
		return sentence(err, WEIR_EINVAL,
		    "the server has more than the %d stages that can be simulated",
		    SIMULATE_STAGES_MAX);
	for (int i = 0; i < spec->n_stages; i++)
		cost_of_knobs(&spec->stages[i], &plan->cost[i]);
	if (opt->admin)
		rc = ask_server(spec, opt->admin, plan, err);
	for (int i = 0; rc == 0 && i < opt->cost.n; i++)
		rc = take_given(spec, opt->cost.word[i], plan, err);
	return rc;
}
