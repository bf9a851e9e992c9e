/* SPDX-License-Identifier: MIT */
/*
 * Converts the JSON of a run file to plain data. runfile_read has checked every member that is read
 * here, so the only possible error is lack of memory.
 *
 * The plan and the result are converted first, into the structures of load/plan.h and
 * load/result.h. From these are computed: the metrics of each phase, the start of each phase, and
 * the load points with their phases. The values of a point are then medians over the phases that
 * belong to it.
 */
#include "report/rundata.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/runfile.h"
#include "load/stats.h"
#include "report/rundata_points.h"
#include "report/server.h"

/* Greatest distance from the end of a phase to the first row of the next phase for the two phases
 * to be consecutive. A row of one second belongs to the phase in which it begins, so the distance
 * is up to one second even without a pause. */
#define PHASE_GAP_S 1.5

const struct run_metric_row run_metric[RUN_N_METRICS] = {
#define RUN_METRIC_ROW(id, word, heading, more, least) {word, heading, more, least},
    RUN_METRICS(RUN_METRIC_ROW)
#undef RUN_METRIC_ROW
};

uint64_t run_failed(const uint64_t outcome[LOAD_N_OUTCOMES])
{
	return outcome[LOAD_ERROR] + outcome[LOAD_TIMEOUT] + outcome[LOAD_GONE];
}

uint64_t run_good(const uint64_t outcome[LOAD_N_OUTCOMES])
{
	return outcome[LOAD_OK] + outcome[LOAD_DEGRADED];
}

static uint64_t get_count(const json_t *map, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(map, key));
}

static double get_number(const json_t *map, const char *key)
{
	return json_number_value(json_object_get(map, key));
}

static int64_t get_ns(const json_t *map, const char *key)
{
	return (int64_t)llround(get_number(map, key) * 1e9);
}

static bool get_truth(const json_t *map, const char *key)
{
	return json_is_true(json_object_get(map, key));
}

static void get_text(const json_t *map, const char *key, char *out, size_t size)
{
	const char *text = json_string_value(json_object_get(map, key));

	snprintf(out, size, "%s", text ? text : "");
}

static void get_outcomes(const json_t *map, uint64_t outcome[LOAD_N_OUTCOMES])
{
	for (int i = 0; i < LOAD_N_OUTCOMES; i++)
		outcome[i] = get_count(map, load_outcome_name[i]);
}

/* ---- plan ---- */

static int take_plan(struct load_plan *plan, const json_t *json)
{
	const json_t *classes = json_object_get(json, "classes");

	plan->url = strdup(json_string_value(json_object_get(json, "url")));
	plan->timeout_ns = get_ns(json, "timeout_s");
	plan->connections = (int)get_count(json, "connections");
	plan->threads = (int)get_count(json, "threads");
	plan->lag_limit_ns = get_ns(json, "lag_limit_s");
	plan->n_classes = (int)json_array_size(classes);
	for (int i = 0; i < plan->n_classes; i++) {
		const json_t *class = json_array_get(classes, (size_t)i);
		get_text(class, "name", plan->class[i].name, sizeof(plan->class[i].name));
		plan->class[i].weight = get_number(class, "weight");
	}
	return plan->url ? 0 : WEIR_ENOMEM;
}

static void take_phase_plan(struct load_phase *phase, const json_t *json)
{
	get_text(json, "name", phase->name, sizeof(phase->name));
	phase->from_per_s = get_number(json, "from_per_s");
	phase->to_per_s = get_number(json, "to_per_s");
	phase->for_ns = get_ns(json, "for_s");
	phase->multiple = get_number(json, "multiple");
	phase->round = (int)(get_count(json, "round") & 0xffff);
	phase->warmup = get_truth(json, "warmup");
	phase->trial = get_truth(json, "trial");
}

/* ---- result ---- */

static int take_latency(struct load_class_result *class, const json_t *latency)
{
	for (int i = 0; i < LOAD_N_OUTCOMES; i++) {
		const json_t *one = json_object_get(latency, load_outcome_name[i]);
		if (!one)
			continue;
		class->latency[i] = malloc(sizeof(struct hdr));
		if (!class->latency[i])
			return WEIR_ENOMEM;
		runfile_hdr(one, class->latency[i]);
	}
	return 0;
}

static int take_class(struct load_class_result *class, const json_t *json)
{
	const json_t *errors = json_object_get(json, "errors");

	class->offered = get_count(json, "offered");
	class->attempts = get_count(json, "attempts");
	class->retries = get_count(json, "retries");
	class->bytes_in = get_count(json, "bytes_in");
	class->bytes_out = get_count(json, "bytes_out");
	get_outcomes(json_object_get(json, "outcomes"), class->outcome);
	for (int i = 0; i < LOAD_N_ERRORS; i++)
		class->error[i] = get_count(errors, load_error_name[i]);
	return take_latency(class, json_object_get(json, "latency"));
}

/* The generator's lag is not read here. The file has only quantiles of the lag, and reports read
 * these from the JSON. */
static int take_phase(struct load_phase_result *phase, const json_t *json)
{
	const json_t *classes = json_object_get(json, "classes");
	int rc = 0;

	phase->took_ns = get_ns(json, "took_s");
	phase->complete = get_truth(json, "complete");
	phase->late = get_truth(json, "late");
	for (size_t i = 0; rc == 0 && i < json_array_size(classes); i++)
		rc = take_class(&phase->class[i], json_array_get(classes, i));
	return rc;
}

static int take_phases(struct rundata *run, const json_t *phases)
{
	int n = (int)json_array_size(phases), rc = 0;

	run->result.phase = calloc((size_t)n, sizeof(*run->result.phase));
	if (!run->result.phase)
		return WEIR_ENOMEM;
	run->plan.n_phases = run->result.n_phases = n;
	for (int i = 0; rc == 0 && i < n; i++) {
		const json_t *phase = json_array_get(phases, (size_t)i);
		take_phase_plan(&run->plan.phase[i], phase);
		rc = take_phase(&run->result.phase[i], phase);
	}
	return rc;
}

/* A macro, since the parts of a second have no common type. */
#define TAKE_SECOND_PART(part, json)                                                               \
	(get_outcomes(json_object_get(json, "outcomes"), (part).outcome),                          \
	    (part).offered = get_count(json, "offered"),                                           \
	    (part).retries = get_count(json, "retries"), (part).p50_ns = get_ns(json, "p50_s"),    \
	    (part).p99_ns = get_ns(json, "p99_s"))

static void take_second(struct load_second *second, const json_t *json)
{
	const json_t *classes = json_object_get(json, "classes");

	second->at_ns = get_ns(json, "t_s");
	second->phase = (int)get_count(json, "phase");
	second->in_flight = (int64_t)get_count(json, "in_flight");
	second->connections = (int64_t)get_count(json, "connections");
	second->lag_max_ns = get_ns(json, "lag_max_s");
	TAKE_SECOND_PART(second->all, json_object_get(json, "all"));
	for (size_t i = 0; i < json_array_size(classes); i++)
		TAKE_SECOND_PART(second->class[i], json_array_get(classes, i));
}

static int take_seconds(struct load_result *result, const json_t *seconds)
{
	size_t n = json_array_size(seconds);

	result->second = calloc(n ? n : 1, sizeof(*result->second));
	if (!result->second)
		return WEIR_ENOMEM;
	result->n_seconds = n;
	for (size_t i = 0; i < n; i++)
		take_second(&result->second[i], json_array_get(seconds, i));
	return 0;
}

static int take_result(struct rundata *run)
{
	struct load_result *result = &run->result;
	const json_t *generator = json_object_get(run->json, "generator");

	result->took_ns = get_ns(run->json, "took_s");
	result->stopped = get_truth(run->json, "stopped");
	get_text(run->json, "void", result->voided, sizeof(result->voided));
	result->cpu_user_s = get_number(generator, "cpu_user_s");
	result->cpu_system_s = get_number(generator, "cpu_system_s");
	result->connects = get_count(generator, "connects");
	result->realtime = get_truth(generator, "realtime");
	int rc = take_phases(run, json_object_get(run->json, "phases"));
	if (rc == 0)
		rc = take_seconds(result, json_object_get(run->json, "seconds"));
	return rc;
}

/* ---- metrics ---- */

static double quantile_s(const struct hdr *h, double q)
{
	return h->total ? (double)hdr_quantile_ns(h, q) / 1e9 : NAN;
}

static void phase_latency(const struct load_plan *plan, const struct load_phase_result *phase,
    int class_id, struct hdr *h)
{
	for (int c = 0; c < plan->n_classes; c++) {
		if (class_id >= 0 && c != class_id)
			continue;
		if (phase->class[c].latency[LOAD_OK])
			hdr_merge(h, phase->class[c].latency[LOAD_OK]);
		if (phase->class[c].latency[LOAD_DEGRADED])
			hdr_merge(h, phase->class[c].latency[LOAD_DEGRADED]);
	}
}

/* Mark the trials of a file whose version of weir did not mark them: they are the phases without a
 * multiple in a run that has both a search and a sweep. */
static void mark_trials(struct rundata *run)
{
	const char *note = json_string_value(json_object_get(run->json, "capacity_note"));
	bool sweep = false, marked = false;

	for (int i = 0; i < run->plan.n_phases; i++) {
		sweep |= run->plan.phase[i].multiple > 0 && !run->plan.phase[i].warmup;
		marked |= run->plan.phase[i].trial;
	}
	for (int i = 0; *note && sweep && !marked && i < run->plan.n_phases; i++)
		run->plan.phase[i].trial = run->plan.phase[i].multiple <= 0 &&
					   run->plan.phase[i].from_per_s > 0 &&
					   !run->plan.phase[i].warmup;
}

/* Set the start of each phase. A phase begins at the end of the previous one, unless another server
 * was measured in between: if the first row of the phase is well after the end of the previous
 * phase, the phase begins with that row. */
static void take_phase_times(struct rundata *run)
{
	const struct load_result *r = &run->result;
	double end_s = 0;
	size_t row = 0;

	for (int i = 0; i < r->n_phases; i++) {
		while (row < r->n_seconds && r->second[row].phase < i)
			row++;
		bool there = row < r->n_seconds && r->second[row].phase == i;
		double first_s = there ? (double)r->second[row].at_ns / 1e9 : end_s;
		run->phase_at_s[i] = first_s - end_s > PHASE_GAP_S ? first_s : end_s;
		end_s = run->phase_at_s[i] + (double)r->phase[i].took_ns / 1e9;
	}
}

static void figure_phase(struct rundata *run, int i, struct hdr *h)
{
	const struct load_phase_result *phase = &run->result.phase[i];
	double *value = run->value[i], took_s = (double)phase->took_ns / 1e9;
	double offered = 0, good = 0, shed = 0, failed = 0;

	for (int c = 0; c < run->plan.n_classes; c++) {
		offered += (double)phase->class[c].offered;
		good += (double)run_good(phase->class[c].outcome);
		shed += (double)phase->class[c].outcome[LOAD_SHED];
		failed += (double)run_failed(phase->class[c].outcome);
	}
	memset(h, 0, sizeof(*h));
	phase_latency(&run->plan, phase, -1, h);
	run->offered_per_s[i] = took_s > 0 ? offered / took_s : 0;
	value[RUN_GOODPUT] = took_s > 0 ? good / took_s : NAN;
	value[RUN_P50] = quantile_s(h, 0.5);
	value[RUN_P99] = quantile_s(h, 0.99);
	value[RUN_P999] = quantile_s(h, 0.999);
	value[RUN_SHED] = offered > 0 ? shed / offered : NAN;
	value[RUN_ERROR] = offered > 0 ? failed / offered : NAN;
	double at_s = run->phase_at_s[i];
	double cpu_s = server_cpu_s(run->json, at_s, at_s + took_s);
	value[RUN_CPU] = offered > 0 ? cpu_s / offered : NAN;
}

static int take_figures(struct rundata *run)
{
	size_t n = (size_t)run->plan.n_phases;
	struct hdr *h = malloc(sizeof(*h));

	run->value = calloc(n, sizeof(*run->value));
	run->offered_per_s = calloc(n, sizeof(*run->offered_per_s));
	run->phase_at_s = calloc(n, sizeof(*run->phase_at_s));
	if (!h || !run->value || !run->offered_per_s || !run->phase_at_s) {
		free(h);
		return WEIR_ENOMEM;
	}
	take_phase_times(run);
	for (int i = 0; i < run->plan.n_phases; i++)
		figure_phase(run, i, h);
	free(h);
	return 0;
}

/* ---- the calls ---- */

/* Append `text` to the name, truncating it if necessary. */
static void name_add(struct rundata *run, const char *text)
{
	size_t n = strlen(run->name);

	snprintf(run->name + n, sizeof(run->name) - n, "%s", text);
}

/* Set the name of the run. "(closed loop)" is part of the name, so that it is shown with all
 * figures of the run. */
static void take_name(struct rundata *run, const char *path)
{
	const char *slash = strrchr(path, '/');

	snprintf(run->file, sizeof(run->file), "%s", slash ? slash + 1 : path);
	get_text(run->json, "label", run->name, sizeof(run->name) - 20);
	if (run->name[0] == '\0')
		name_add(run, run->file);
	if (run->plan.closed)
		name_add(run, " (closed loop)");
}

int rundata_read(const char *path, struct rundata *run, struct weir_err *err)
{
	memset(run, 0, sizeof(*run));
	int rc = runfile_read(path, &run->json, err);
	if (rc != 0)
		return rc;
	run->plan.closed =
	    strcmp(json_string_value(json_object_get(run->json, "mode")), "closed") == 0;
	take_name(run, path);
	run->capacity_per_s = get_number(run->json, "capacity_per_s");
	rc = take_plan(&run->plan, json_object_get(run->json, "plan"));
	if (rc == 0)
		rc = take_result(run);
	if (rc == 0) {
		mark_trials(run);
		rc = take_figures(run);
	}
	if (rc == 0)
		rc = rundata_take_points(run);
	if (rc != 0) {
		err->code = rc;
		snprintf(err->text, sizeof(err->text), "out of memory");
		rundata_fini(run);
	}
	return rc;
}

void rundata_fini(struct rundata *run)
{
	load_plan_fini(&run->plan);
	load_result_fini(&run->result);
	json_decref(run->json);
	free(run->value);
	free(run->offered_per_s);
	free(run->phase_at_s);
	free(run->point);
	free(run->point_of);
	memset(run, 0, sizeof(*run));
}

static bool middle(const double *v, int n, double out[3])
{
	if (n == 0)
		return false;
	out[0] = stats_median(v, n);
	out[1] = out[2] = v[0];
	for (int i = 1; i < n; i++) {
		out[1] = fmin(out[1], v[i]);
		out[2] = fmax(out[2], v[i]);
	}
	return true;
}

bool rundata_over_rounds(
    const struct rundata *run, int point, enum run_metric metric, double out[3])
{
	double v[LOAD_PHASES_MAX];
	int n = 0;

	for (int i = 0; i < run->plan.n_phases; i++)
		if (run->point_of[i] == point && !isnan(run->value[i][metric]))
			v[n++] = run->value[i][metric];
	return middle(v, n, out);
}

bool rundata_offered(const struct rundata *run, int point, double out[3])
{
	double v[LOAD_PHASES_MAX];
	int n = 0;

	for (int i = 0; i < run->plan.n_phases; i++)
		if (run->point_of[i] == point)
			v[n++] = run->offered_per_s[i];
	return middle(v, n, out);
}

void rundata_latency(const struct rundata *run, int point, int class_id, struct hdr *into)
{
	memset(into, 0, sizeof(*into));
	for (int i = 0; i < run->plan.n_phases; i++)
		if (run->point_of[i] == point)
			phase_latency(&run->plan, &run->result.phase[i], class_id, into);
}
