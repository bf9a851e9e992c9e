/* SPDX-License-Identifier: MIT */
/*
 * Converts samples of /api/v1/stages to series; see server.h. A sample has histograms of all waits
 * since the start of the server. To get the p99 of the waits since the previous sample, the
 * difference of the two histograms is computed.
 */
#include "report/server.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

/* Maximum number of stages. 32 is a guess: more would make the charts unreadable. */
#define SERVER_STAGES_MAX 32
/* Maximum number of distinct bucket bounds in a histogram. Histograms of weir/metric.h have 162. */
#define TALLY_MAX 256

/* A histogram: counts by upper bound, in ascending order. Counts may be negative while a difference
 * is computed. */
struct tally {
	int n;
	double upper_s[TALLY_MAX], count[TALLY_MAX];
};

static double number_of(const json_t *map, const char *key)
{
	const json_t *v = json_object_get(map, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static const char *text_of(const json_t *map, const char *key)
{
	const char *text = json_string_value(json_object_get(map, key));

	return text ? text : "";
}

/* ---- CPU ---- */

/* Return the CPU seconds at `at_s`, interpolated between samples; NAN if `at_s` is 1 s or more
 * before the first sample, or 1.5 s or more after the last. */
static double cpu_at(const json_t *each, double at_s)
{
	double last_at = NAN, last_cpu = NAN;

	for (size_t i = 0; i < json_array_size(each); i++) {
		const json_t *sample = json_array_get(each, i);
		double at = number_of(sample, "at_s"),
		       cpu = number_of(sample, "process_cpu_seconds");
		if (isnan(cpu))
			continue;
		if (at >= at_s) {
			if (isnan(last_at) || at - last_at <= 0)
				return at - at_s < 1 ? cpu : NAN;
			return last_cpu + (cpu - last_cpu) * (at_s - last_at) / (at - last_at);
		}
		last_at = at;
		last_cpu = cpu;
	}
	/* The last sample is taken at most a second before the end of the run. */
	return at_s - last_at < 1.5 ? last_cpu : NAN;
}

double server_cpu_s(const json_t *run, double from_s, double to_s)
{
	const json_t *each = json_object_get(json_object_get(run, "server"), "each");
	double used = cpu_at(each, to_s) - cpu_at(each, from_s);

	return used > 0 ? used : NAN;
}

/* ---- waits ---- */

static void tally_add(struct tally *t, double upper_s, double count)
{
	int i = t->n;

	while (i > 0 && t->upper_s[i - 1] >= upper_s)
		i--;
	if (i < t->n && t->upper_s[i] == upper_s) {
		t->count[i] += count;
		return;
	}
	if (t->n == TALLY_MAX)
		return;
	memmove(&t->upper_s[i + 1], &t->upper_s[i], (size_t)(t->n - i) * sizeof(double));
	memmove(&t->count[i + 1], &t->count[i], (size_t)(t->n - i) * sizeof(double));
	t->upper_s[i] = upper_s;
	t->count[i] = count;
	t->n++;
}

/* Add the waits of all classes of a stage, multiplied by `sign`. The last bucket has no upper bound
 * (null); its events are counted at the bound of the previous bucket. */
static void tally_stage(struct tally *t, const json_t *stage, double sign)
{
	const json_t *classes = json_object_get(stage, "classes");

	for (size_t c = 0; c < json_array_size(classes); c++) {
		const json_t *wait = json_object_get(json_array_get(classes, c), "wait_seconds");
		const json_t *buckets = json_object_get(wait, "buckets");
		double last = 0;
		for (size_t b = 0; b < json_array_size(buckets); b++) {
			const json_t *pair = json_array_get(buckets, b);
			const json_t *upper = json_array_get(pair, 0);
			if (json_is_number(upper))
				last = json_number_value(upper);
			tally_add(t, last, sign * json_number_value(json_array_get(pair, 1)));
		}
	}
}

static double tally_quantile(const struct tally *t, double q)
{
	double total = 0, seen = 0;

	for (int i = 0; i < t->n; i++)
		total += fmax(t->count[i], 0);
	for (int i = 0; i < t->n; i++) {
		seen += fmax(t->count[i], 0);
		if (seen > 0 && seen >= q * total)
			return t->upper_s[i];
	}
	return NAN;
}

static double wait_between(const json_t *before, const json_t *now)
{
	struct tally t = {.n = 0};

	tally_stage(&t, now, 1);
	tally_stage(&t, before, -1);
	return tally_quantile(&t, 0.99);
}

/* ---- series ---- */

/* Return the stage called `name`, which is most likely at index `i` of the list; NULL if there is
 * none. */
static const json_t *find_stage(const json_t *stages, size_t i, const char *name)
{
	const json_t *likely = json_array_get(stages, i);

	if (strcmp(text_of(likely, "name"), name) == 0)
		return likely;
	for (i = 0; i < json_array_size(stages); i++)
		if (strcmp(text_of(json_array_get(stages, i), "name"), name) == 0)
			return json_array_get(stages, i);
	return NULL;
}

static void fill_sample(struct server_stage *stage, int i, const json_t *before, const json_t *now)
{
	const double value[SERVER_N_SERIES] = {
	    [SERVER_WAIT_P99] = before ? wait_between(before, now) : NAN,
	    [SERVER_QUEUE] = number_of(json_object_get(now, "queue"), "length"),
	    [SERVER_BUSY] = number_of(json_object_get(now, "threads"), "busy"),
	    [SERVER_THREADS] = number_of(json_object_get(now, "threads"), "now"),
	};

	for (int k = 0; k < SERVER_N_SERIES; k++) {
		stage->value[k][i] = value[k];
		stage->peak[k] = fmax(stage->peak[k], value[k]);
	}
}

static int init_stages(struct server_view *view, const json_t *stages)
{
	size_t n = json_array_size(stages);

	n = n < SERVER_STAGES_MAX ? n : SERVER_STAGES_MAX;
	view->stage = calloc(n + 1, sizeof(*view->stage));
	if (!view->stage)
		return WEIR_ENOMEM;
	view->n_stages = (int)n;
	for (size_t s = 0; s < n; s++) {
		view->stage[s].name = text_of(json_array_get(stages, s), "name");
		for (int k = 0; k < SERVER_N_SERIES; k++) {
			view->stage[s].value[k] = calloc((size_t)view->n + 1, sizeof(double));
			if (!view->stage[s].value[k])
				return WEIR_ENOMEM;
		}
	}
	return 0;
}

static int init_series(struct server_view *view, const json_t *server)
{
	const json_t *each = json_object_get(server, "each");
	const json_t *before = json_object_get(json_object_get(server, "start"), "stages");

	view->n = (int)json_array_size(each);
	view->at_s = calloc((size_t)view->n + 1, sizeof(double));
	if (!view->at_s ||
	    init_stages(view, json_object_get(json_array_get(each, 0), "stages")) != 0)
		return WEIR_ENOMEM;
	for (int i = 0; i < view->n; i++) {
		const json_t *sample = json_array_get(each, (size_t)i);
		const json_t *stages = json_object_get(sample, "stages");
		double at = number_of(sample, "at_s");
		view->at_s[i] = i > 0 ? fmax(at, view->at_s[i - 1]) : at;
		for (int s = 0; s < view->n_stages; s++) {
			const char *name = view->stage[s].name;
			fill_sample(&view->stage[s], i, find_stage(before, (size_t)s, name),
			    find_stage(stages, (size_t)s, name));
		}
		before = stages;
	}
	return 0;
}

/* ---- decisions ---- */

/* Return the uptime of the server at the start of the run. */
static double uptime_at_start(const json_t *server)
{
	const json_t *first = json_array_get(json_object_get(server, "each"), 0);
	double uptime = number_of(first, "uptime_seconds");

	if (!isnan(uptime))
		return uptime - number_of(first, "at_s");
	return number_of(json_object_get(server, "start"), "uptime_seconds");
}

static int by_time(const void *a, const void *b)
{
	const struct server_decision *p = a, *q = b;

	return p->at_s < q->at_s ? -1 : p->at_s > q->at_s;
}

static int init_decisions(struct server_view *view, const json_t *server)
{
	const json_t *list = json_object_get(server, "decisions");
	double start_s = uptime_at_start(server);

	view->decision = calloc(json_array_size(list) + 1, sizeof(*view->decision));
	if (!view->decision)
		return WEIR_ENOMEM;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *d = json_array_get(list, i);
		double at_s = number_of(d, "uptime_seconds") - start_s;
		if (isnan(at_s))
			continue; /* cannot be placed on the run's time axis */
		view->decision[view->n_decisions++] = (struct server_decision){.at_s = at_s,
		    .stage = text_of(d, "stage"),
		    .actor = text_of(d, "actor"),
		    .action = text_of(d, "action"),
		    .rule = text_of(d, "rule"),
		    .inputs = text_of(d, "inputs"),
		    .from = json_integer_value(json_object_get(d, "from")),
		    .to = json_integer_value(json_object_get(d, "to"))};
	}
	qsort(view->decision, (size_t)view->n_decisions, sizeof(*view->decision), by_time);
	return 0;
}

int server_view_init(struct server_view *view, const json_t *run)
{
	const json_t *server = json_object_get(run, "server");

	memset(view, 0, sizeof(*view));
	if (init_series(view, server) == 0 && init_decisions(view, server) == 0)
		return 0;
	server_view_fini(view);
	return WEIR_ENOMEM;
}

void server_view_fini(struct server_view *view)
{
	for (int s = 0; s < view->n_stages; s++)
		for (int k = 0; k < SERVER_N_SERIES; k++)
			free(view->stage[s].value[k]);
	free(view->stage);
	free(view->at_s);
	free(view->decision);
	memset(view, 0, sizeof(*view));
}
