/* SPDX-License-Identifier: MIT */
/*
 * Computes differences of snapshots; see sample.h. Bucket counts are stored in 32 bits. A
 * difference of unsigned numbers is correct even after the count has wrapped around, provided that
 * a bucket gains fewer than 2^31 events in a step.
 *
 * A sampler has one struct base per stage of the last view, with the totals of that stage. When the
 * stages or classes of a view differ from those of the last one, reshape() builds new bases and
 * copies the totals by name.
 */
#include "sample.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLE_LONGEST_S 100.0

const char *const sample_field_name[SAMPLE_FIELDS] = {
#define SAMPLE_NAME(member, name, brief) name,
    SAMPLE_FIELD_TABLE(SAMPLE_NAME)
#undef SAMPLE_NAME
};

const bool sample_field_brief[SAMPLE_FIELDS] = {
#define SAMPLE_BRIEF(member, name, brief) brief,
    SAMPLE_FIELD_TABLE(SAMPLE_BRIEF)
#undef SAMPLE_BRIEF
};

const char *const sample_class_field_name[SAMPLE_CLASS_FIELDS] = {
#define SAMPLE_NAME(member, name) name,
    SAMPLE_CLASS_FIELD_TABLE(SAMPLE_NAME)
#undef SAMPLE_NAME
};

struct base_class {
	uint64_t in, done, failed, ahead;
	uint64_t shed_by[WEIR_SHED_REASONS];
	uint32_t wait[WEIR_HIST_BUCKETS];
	uint32_t response[WEIR_HIST_BUCKETS]; /* of a source: of requests that were answered ok */
	uint64_t answered[WEIR_OUTCOMES];     /* of a source: its answers */
};

/* The totals of a stage in the last view. */
struct base {
	char *name;
	bool fresh;    /* no totals yet */
	uint64_t away; /* connections refused by a source */
	uint64_t busy_ns;
	uint32_t service[WEIR_HIST_BUCKETS]; /* of all classes */
	struct base_class classes[];         /* n_classes */
};

struct sampler {
	int n_stages, n_classes;
	struct base **base;                 /* n_stages, in the order of the view */
	char *class_name[WEIR_CLASSES_MAX]; /* n_classes, in the order of the view */
	struct sample *sample;
	int64_t then_ns;
};

/* ---- following the graph ---- */

static size_t base_bytes(int n_classes)
{
	return sizeof(struct base) + (size_t)n_classes * sizeof(struct base_class);
}

static void base_free(struct base *b)
{
	if (b)
		free(b->name);
	free(b);
}

static struct base *base_new(const char *name, int n_classes)
{
	struct base *b = calloc(1, base_bytes(n_classes));

	if (!b)
		return NULL;
	b->fresh = true;
	b->name = strdup(name);
	if (b->name)
		return b;
	free(b);
	return NULL;
}

static bool has_shape(const struct sampler *s, const struct weir_graph_view *v)
{
	bool same = s->n_stages == v->n_stages && s->n_classes == v->n_classes;

	for (int c = 0; same && c < v->n_classes; c++)
		same = strcmp(s->class_name[c], v->class_name[c]) == 0;
	for (int i = 0; same && i < v->n_stages; i++)
		same = strcmp(s->base[i]->name, v->stages[i].name) == 0;
	return same;
}

static const struct base *find_base(const struct sampler *s, const char *name)
{
	for (int i = 0; i < s->n_stages; i++)
		if (strcmp(s->base[i]->name, name) == 0)
			return s->base[i];
	return NULL;
}

/* Return the index of the class in the last view, or -1 if it did not exist. */
static int find_class(const struct sampler *s, const char *name)
{
	for (int c = 0; c < s->n_classes; c++)
		if (strcmp(s->class_name[c], name) == 0)
			return c;
	return -1;
}

static void free_bases(struct base **base, int n)
{
	for (int i = 0; base && i < n; i++)
		base_free(base[i]);
	free(base);
}

static void free_names(char *const *name, int n)
{
	for (int c = 0; c < n; c++)
		free(name[c]);
}

/* Copy the totals of a stage. A class that did not exist before starts at 0. */
static void copy_base(const struct sampler *s, const struct base *old,
    const struct weir_graph_view *v, struct base *b)
{
	b->fresh = old->fresh;
	b->away = old->away;
	b->busy_ns = old->busy_ns;
	memcpy(b->service, old->service, sizeof(b->service));
	for (int c = 0; c < v->n_classes; c++) {
		int was = find_class(s, v->class_name[c]);
		if (was >= 0)
			b->classes[c] = old->classes[was];
	}
}

static struct base **new_bases(const struct sampler *s, const struct weir_graph_view *v)
{
	struct base **base = calloc((size_t)v->n_stages + 1, sizeof(*base));

	for (int i = 0; base && i < v->n_stages; i++) {
		const struct base *old = find_base(s, v->stages[i].name);
		base[i] = base_new(v->stages[i].name, v->n_classes);
		if (!base[i]) {
			free_bases(base, v->n_stages);
			return NULL;
		}
		if (old)
			copy_base(s, old, v, base[i]);
	}
	return base;
}

/* Adapt to the stages and classes of `v`. The totals of each stage and class are found by name, so
 * they are kept even if its position has changed. */
static int reshape(struct sampler *s, const struct weir_graph_view *v)
{
	struct base **base = new_bases(s, v);
	struct sample *sample = calloc((size_t)v->n_stages + 1, sizeof(*sample));
	char *name[WEIR_CLASSES_MAX] = {0};
	bool ok = base && sample;

	for (int c = 0; ok && c < v->n_classes; c++) {
		name[c] = strdup(v->class_name[c]);
		ok = name[c];
	}
	if (!ok) {
		free_names(name, v->n_classes);
		free_bases(base, v->n_stages);
		free(sample);
		return WEIR_ENOMEM;
	}
	free_names(s->class_name, s->n_classes);
	free_bases(s->base, s->n_stages);
	free(s->sample);
	memcpy(s->class_name, name, sizeof(name));
	s->base = base;
	s->sample = sample;
	s->n_stages = v->n_stages;
	s->n_classes = v->n_classes;
	return 0;
}

/* ---- differences ---- */

static uint64_t grown(uint64_t now, uint64_t *then)
{
	uint64_t n = now > *then ? now - *then : 0;

	*then = now;
	return n;
}

/* Add the growth of the buckets to `diff`. A bucket that seems to shrink was read during an update;
 * its growth counts as 0. */
static void grown_hist(const uint64_t *now, uint32_t *then, uint32_t *diff)
{
	for (int b = 0; b < WEIR_HIST_BUCKETS; b++) {
		uint32_t n = (uint32_t)now[b] - then[b];
		then[b] = (uint32_t)now[b];
		diff[b] += n > INT32_MAX ? 0 : n;
	}
}

/* Return the upper bound of the bucket with the value of rank `rank`, in seconds. */
static double value_at(const uint32_t *count, uint64_t rank)
{
	uint64_t seen = 0;
	int b = 0;

	for (; b < WEIR_HIST_BUCKETS - 1; b++) {
		seen += count[b];
		if (seen >= rank)
			return (double)weir_hist_upper_ns(b) / 1e9;
	}
	return SAMPLE_LONGEST_S;
}

/* Compute the values of rank ceil(q * total) for q = 0.5 and 0.99, in seconds; NaN if there are no
 * events. */
static void quantiles(const uint32_t *count, double *p50, double *p99)
{
	uint64_t total = 0;

	for (int b = 0; b < WEIR_HIST_BUCKETS; b++)
		total += count[b];
	*p50 = total ? value_at(count, (total + 1) / 2) : NAN;
	*p99 = total ? value_at(count, (total * 99 + 99) / 100) : NAN;
}

/* Return whether the counters of the class have been reset. Totals continue across a reload, so
 * they decrease only after a reset. */
static bool began_anew(const struct base_class *b, const struct weir_class_view *v)
{
	return v->offered < b->in || v->completed < b->done;
}

static void sample_class(const struct weir_class_view *v, struct base_class *b, double per_s,
    struct sample *s, int class_id, uint32_t *wait)
{
	double *row = s->class_v[class_id];
	uint32_t own[WEIR_HIST_BUCKETS] = {0};
	double p50;

	if (began_anew(b, v))
		*b = (struct base_class){0};
	row[SAMPLE_CLASS_IN] = per_s * (double)grown(v->offered, &b->in);
	row[SAMPLE_CLASS_DONE] = per_s * (double)grown(v->completed, &b->done);
	row[SAMPLE_CLASS_SHED] = 0;
	for (int r = 0; r < WEIR_SHED_REASONS; r++) {
		double shed = per_s * (double)grown(v->shed[r], &b->shed_by[r]);
		row[SAMPLE_CLASS_SHED] += shed;
		s->shed_by[r] += shed;
		if (weir_shed_code(r) == WEIR_EDRAINING || weir_shed_code(r) == WEIR_ESTOPPING)
			s->ordered[class_id] += shed;
	}
	s->v[SAMPLE_IN] += row[SAMPLE_CLASS_IN];
	s->v[SAMPLE_DONE] += row[SAMPLE_CLASS_DONE];
	s->v[SAMPLE_SHED] += row[SAMPLE_CLASS_SHED];
	s->v[SAMPLE_FAILED] += per_s * (double)grown(v->failed, &b->failed);
	s->v[SAMPLE_AHEAD] += per_s * (double)grown(v->refused_ahead, &b->ahead);
	grown_hist(v->wait.count, b->wait, own);
	quantiles(own, &p50, &row[SAMPLE_CLASS_WAIT_P99]);
	for (int i = 0; i < WEIR_HIST_BUCKETS; i++)
		wait[i] += own[i];
}

static void sample_service(
    const struct weir_stage_view *v, int n_classes, struct base *b, struct sample *s)
{
	uint64_t now[WEIR_HIST_BUCKETS] = {0};
	uint32_t diff[WEIR_HIST_BUCKETS] = {0};

	for (int c = 0; c < n_classes; c++)
		for (int i = 0; i < WEIR_HIST_BUCKETS; i++)
			now[i] += v->class_view[c].service.count[i];
	grown_hist(now, b->service, diff);
	quantiles(diff, &s->v[SAMPLE_SERVICE_P50], &s->v[SAMPLE_SERVICE_P99]);
}

/* Sample the rates of the answers of a class, by outcome. `answers` is NULL if the stage has none. */
static void sample_outcomes(
    const struct weir_answer_view *answers, double per_s, struct base_class *b, double *row)
{
	static const int field[WEIR_OUTCOMES] = {[WEIR_OUTCOME_DONE] = SAMPLE_CLASS_GOOD,
	    [WEIR_OUTCOME_SHED] = SAMPLE_CLASS_REFUSED,
	    [WEIR_OUTCOME_FAILED] = SAMPLE_CLASS_BROKEN};

	for (int o = 0; o < WEIR_OUTCOMES; o++)
		row[field[o]] = answers ? per_s * (double)grown(weir_hist_total(&answers->by[o]),
						      &b->answered[o])
					: NAN;
}

/* Sample the answers of a source; `all` is for the response times of all classes. */
static void sample_answers(
    const struct weir_stage_view *v, int n_classes, double per_s, struct base *b, struct sample *s)
{
	uint32_t all[WEIR_HIST_BUCKETS] = {0};
	double p50;

	for (int c = 0; c < n_classes; c++) {
		static const struct weir_hist none;
		const struct weir_hist *ok =
		    v->answers ? &v->answers[c].by[WEIR_OUTCOME_DONE] : &none;
		uint32_t own[WEIR_HIST_BUCKETS] = {0};
		sample_outcomes(
		    v->answers ? &v->answers[c] : NULL, per_s, &b->classes[c], s->class_v[c]);
		grown_hist(ok->count, b->classes[c].response, own);
		quantiles(own, &p50, &s->class_v[c][SAMPLE_CLASS_RESPONSE_P99]);
		for (int i = 0; i < WEIR_HIST_BUCKETS; i++)
			all[i] += own[i];
	}
	quantiles(all, &s->v[SAMPLE_RESPONSE_P50], &s->v[SAMPLE_RESPONSE_P99]);
}

/* Add connections that a source refused. They never became events of a class, so only the total of
 * the stage includes them. */
static void sample_away(
    const struct weir_stage_view *v, double per_s, struct base *b, struct sample *s)
{
	uint64_t n = 0;

	for (int i = 0; i < v->n_metrics; i++)
		n += v->metrics[i].kind == WEIR_METRIC_TURNED_AWAY ? (uint64_t)v->metric[i] : 0;
	s->v[SAMPLE_SHED] += per_s * (double)grown(n, &b->away);
}

static double share(double v)
{
	return v > 0 ? (v < 1 ? v : 1) : 0; /* 0 for NaN */
}

static void sample_stage(
    const struct weir_stage_view *v, int n_classes, double span_s, struct base *b, struct sample *s)
{
	uint32_t wait[WEIR_HIST_BUCKETS] = {0};
	double per_s = 1 / span_s;

	*s = (struct sample){.known = !b->fresh};
	b->fresh = false;
	for (int c = 0; c < n_classes; c++)
		sample_class(&v->class_view[c], &b->classes[c], per_s, s, c, wait);
	quantiles(wait, &s->v[SAMPLE_WAIT_P50], &s->v[SAMPLE_WAIT_P99]);
	sample_service(v, n_classes, b, s);
	sample_answers(v, n_classes, per_s, b, s);
	sample_away(v, per_s, b, s);
	s->v[SAMPLE_QUEUE] = (double)v->queue_length;
	s->v[SAMPLE_OLDEST] = (double)v->oldest_wait_ns / 1e9;
	s->v[SAMPLE_BUSY] = share(per_s * (double)grown(v->busy_ns, &b->busy_ns) / 1e9 /
				  (v->threads_now > 0 ? v->threads_now : 1));
	s->v[SAMPLE_THREADS] = v->threads_now;
	s->v[SAMPLE_PRESSURE] = share(v->pressure);
	s->v[SAMPLE_DEGRADATION] = share(v->degradation);
}

/* ---- calls ---- */

struct sampler *sampler_new(void)
{
	return calloc(1, sizeof(struct sampler));
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	free_bases(s->base, s->n_stages);
	free_names(s->class_name, s->n_classes);
	free(s->sample);
	free(s);
}

int sampler_take(struct sampler *s, const struct weir_graph_view *v)
{
	int64_t span_ns = v->now_ns - s->then_ns;

	if (!has_shape(s, v) && reshape(s, v) != 0)
		return WEIR_ENOMEM;
	for (int i = 0; i < v->n_stages; i++) {
		sample_stage(&v->stages[i], v->n_classes, span_ns > 0 ? (double)span_ns / 1e9 : 1,
		    s->base[i], &s->sample[i]);
		s->sample[i].known &= span_ns > 0;
	}
	s->then_ns = v->now_ns;
	return 0;
}

const struct sample *sampler_samples(const struct sampler *s)
{
	return s->sample;
}

size_t sampler_bytes(const struct sampler *s)
{
	size_t each = base_bytes(s->n_classes) + sizeof(*s->base) + sizeof(*s->sample);

	return sizeof(*s) + (size_t)s->n_stages * each;
}
