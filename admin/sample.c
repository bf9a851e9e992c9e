/* SPDX-License-Identifier: MIT */
/*
 * Differences of snapshots. Bucket counts are kept in 32 bits: differences of unsigned numbers are
 * right however often the full count has wrapped, and a step has less than 2^31 events in a bucket.
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
	uint64_t in, done, shed, failed, ahead;
	uint32_t wait[WEIR_HIST_BUCKETS];
};

/* What the last view said of a stage. */
struct base {
	char *name;
	bool fresh;    /* nothing yet */
	uint64_t away; /* turned away in front of the graph */
	uint64_t busy_ns;
	uint64_t shed_by[WEIR_SHED_REASONS];
	uint32_t service[WEIR_HIST_BUCKETS]; /* of all classes */
	struct base_class classes[];         /* n_classes */
};

struct sampler {
	int n_stages, n_classes;
	struct base **base; /* n_stages, in the order of the view */
	struct sample *sample;
	int64_t then_ns;
	uint64_t serial; /* of the graph */
};

/* ---- what is kept follows the graph ---- */

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

	for (int i = 0; same && i < v->n_stages; i++)
		same = strcmp(s->base[i]->name, v->stages[i].name) == 0;
	return same;
}

/* Take what is kept of stage `name`, which may be nothing. */
static struct base *take_base(struct base **base, int n, const char *name)
{
	for (int i = 0; i < n; i++) {
		struct base *b = base[i];
		if (!b || strcmp(b->name, name) != 0)
			continue;
		base[i] = NULL;
		return b;
	}
	return NULL;
}

static void free_bases(struct base **base, int n)
{
	for (int i = 0; base && i < n; i++)
		base_free(base[i]);
	free(base);
}

/* Classes that are others make all stages new: a total of one class is none of another's. */
static int reshape(struct sampler *s, const struct weir_graph_view *v)
{
	size_t n = (size_t)v->n_stages + 1; /* never of zero bytes */
	struct base **base = calloc(n, sizeof(struct base *));
	struct sample *sample = calloc(n, sizeof(*sample));
	bool ok = base && sample;

	for (int i = 0; ok && i < v->n_stages; i++) {
		base[i] = base_new(v->stages[i].name, v->n_classes);
		ok = base[i];
	}
	if (!ok) {
		free_bases(base, v->n_stages);
		free(sample);
		return WEIR_ENOMEM;
	}
	for (int i = 0; s->n_classes == v->n_classes && i < v->n_stages; i++) {
		struct base *old = take_base(s->base, s->n_stages, base[i]->name);
		if (!old)
			continue;
		base_free(base[i]);
		base[i] = old;
	}
	free_bases(s->base, s->n_stages);
	free(s->sample);
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

/* Add what the buckets grew by to `diff`. One that seems to shrink was read while it moved. */
static void grown_hist(const uint64_t *now, uint32_t *then, uint32_t *diff)
{
	for (int b = 0; b < WEIR_HIST_BUCKETS; b++) {
		uint32_t n = (uint32_t)now[b] - then[b];
		then[b] = (uint32_t)now[b];
		diff[b] += n > INT32_MAX ? 0 : n;
	}
}

/* The upper bound of the bucket with the value of rank `rank`, in seconds. */
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

/* The values of rank ceil(q * total) for q = 0.5 and 0.99, in seconds; NaN of nothing. */
static void quantiles(const uint32_t *count, double *p50, double *p99)
{
	uint64_t total = 0;

	for (int b = 0; b < WEIR_HIST_BUCKETS; b++)
		total += count[b];
	*p50 = total ? value_at(count, (total + 1) / 2) : NAN;
	*p99 = total ? value_at(count, (total * 99 + 99) / 100) : NAN;
}

static uint64_t shed_of(const struct weir_class_view *c)
{
	uint64_t n = 0;

	for (int r = 0; r < WEIR_SHED_REASONS; r++)
		n += c->shed[r];
	return n;
}

/* Counters that went back belong to a stage that was made anew. */
static bool began_anew(const struct base *b, const struct weir_stage_view *v, int n_classes)
{
	for (int c = 0; c < n_classes; c++)
		if (v->class_view[c].offered < b->classes[c].in ||
		    v->class_view[c].completed < b->classes[c].done)
			return true;
	return v->busy_ns == 0 && b->busy_ns > 0;
}

static void sample_class(const struct weir_class_view *v, struct base_class *b, double per_s,
    struct sample *s, double *row, uint32_t *wait)
{
	uint32_t own[WEIR_HIST_BUCKETS] = {0};
	double p50;

	row[SAMPLE_CLASS_IN] = per_s * (double)grown(v->offered, &b->in);
	row[SAMPLE_CLASS_DONE] = per_s * (double)grown(v->completed, &b->done);
	row[SAMPLE_CLASS_SHED] = per_s * (double)grown(shed_of(v), &b->shed);
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

static void sample_shed(
    const struct weir_stage_view *v, int n_classes, double per_s, struct base *b, struct sample *s)
{
	for (int r = 0; r < WEIR_SHED_REASONS; r++) {
		uint64_t n = 0;
		for (int c = 0; c < n_classes; c++)
			n += v->class_view[c].shed[r];
		s->shed_by[r] = per_s * (double)grown(n, &b->shed_by[r]);
	}
}

/* What a source turned away never became an event of a class: it is in the sum alone. */
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
	return v > 0 ? (v < 1 ? v : 1) : 0; /* of NaN: 0 */
}

static void sample_stage(const struct weir_stage_view *v, int n_classes, double span_s, bool anew,
    struct base *b, struct sample *s)
{
	uint32_t wait[WEIR_HIST_BUCKETS] = {0};
	double per_s = 1 / span_s;

	*s = (struct sample){.known = !b->fresh};
	if (!b->fresh && (anew || began_anew(b, v, n_classes))) {
		char *name = b->name;
		memset(b, 0, base_bytes(n_classes));
		b->name = name;
	}
	b->fresh = false;
	for (int c = 0; c < n_classes; c++)
		sample_class(&v->class_view[c], &b->classes[c], per_s, s, s->class_v[c], wait);
	quantiles(wait, &s->v[SAMPLE_WAIT_P50], &s->v[SAMPLE_WAIT_P99]);
	sample_service(v, n_classes, b, s);
	sample_shed(v, n_classes, per_s, b, s);
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
		    s->serial != v->serial, s->base[i], &s->sample[i]);
		s->sample[i].known &= span_ns > 0;
	}
	s->then_ns = v->now_ns;
	s->serial = v->serial;
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
