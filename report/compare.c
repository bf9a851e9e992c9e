/* SPDX-License-Identifier: MIT */
/*
 * Compares two runs: matches their load points, and takes samples of each metric.
 *
 * The samples are rounds if the rounds of the runs alternated. Otherwise they are single seconds,
 * or rounds if the metric is not known for each second. The first second of a phase is omitted,
 * since the previous load still affects it.
 *
 * All functions are pure apart from allocation. A comparison points to its two runs, which must
 * outlive it.
 */
#include "report/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Two rates whose relative difference is at most this large count as equal, since planned rates are
 * rounded when they are written. */
#define COMPARE_RATE_TOLERANCE 0.005
/* Seed of the bootstrap, an arbitrary value. */
#define COMPARE_SEED 20261121
/* Minimum number of pairs for an interval (stats.c). */
#define COMPARE_ROUNDS_MIN 5
/* Minimum length in seconds of a phase whose first second is omitted. */
#define COMPARE_SECONDS_MIN 4

static int refuse(struct weir_err *err, const char *fmt, ...) WEIR_PRINTF(2, 3);

static int refuse(struct weir_err *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	err->code = WEIR_EINVAL;
	return WEIR_EINVAL;
}

/* ---- checks ---- */

static int check_void(const struct rundata *run, bool force, struct weir_err *err)
{
	if (force || run->result.voided[0] == '\0')
		return 0;
	return refuse(err, "run '%.60s' is void (%.100s); use --force to compare it anyway",
	    run->name, run->result.voided);
}

static int check_classes(const struct rundata *a, const struct rundata *b, struct weir_err *err)
{
	if (a->plan.n_classes != b->plan.n_classes)
		return refuse(err, "the runs have different classes: %d in '%.60s', %d in '%.60s'",
		    a->plan.n_classes, a->name, b->plan.n_classes, b->name);
	for (int i = 0; i < a->plan.n_classes; i++)
		if (strcmp(a->plan.class[i].name, b->plan.class[i].name) != 0)
			return refuse(err,
			    "the runs have different classes: '%s' in '%.60s', '%s' in '%.60s'",
			    a->plan.class[i].name, a->name, b->plan.class[i].name, b->name);
	return 0;
}

static int check_plans(const struct rundata *a, const struct rundata *b, struct weir_err *err)
{
	if (a->plan.closed != b->plan.closed)
		return refuse(err,
		    "'%.60s' is %s-loop run and '%.60s' is %s-loop one: their latencies cannot be "
		    "compared",
		    a->name, a->plan.closed ? "a closed" : "an open", b->name,
		    b->plan.closed ? "a closed" : "an open");
	if (a->plan.closed && a->plan.connections != b->plan.connections)
		return refuse(err, "the closed-loop runs have different connections: %d and %d",
		    a->plan.connections, b->plan.connections);
	if (a->plan.timeout_ns != b->plan.timeout_ns)
		return refuse(err, "the clients had different time-outs: %g s and %g s",
		    (double)a->plan.timeout_ns / 1e9, (double)b->plan.timeout_ns / 1e9);
	return check_classes(a, b, err);
}

/* ---- matching ---- */

static bool near(double x, double y)
{
	return fabs(x - y) <= COMPARE_RATE_TOLERANCE * fmax(fabs(x), fabs(y));
}

static bool same_rate(const struct rundata *a, int i, const struct rundata *b, int j)
{
	const struct run_point *p = &a->point[i], *q = &b->point[j];

	if (a->plan.closed)
		return strcmp(p->name, q->name) == 0;
	return near(p->from_per_s, q->from_per_s) && near(p->to_per_s, q->to_per_s);
}

int compare_partner(const struct rundata *a, int i, const struct rundata *b, bool *by_multiple)
{
	double multiple = a->point[i].multiple;

	for (int j = 0; j < b->n_points; j++)
		if (same_rate(a, i, b, j))
			return j;
	for (int j = 0; multiple > 0 && j < b->n_points; j++) {
		if (near(multiple, b->point[j].multiple)) {
			*by_multiple = true;
			return j;
		}
	}
	return -1;
}

static int match(struct comparison *c, struct weir_err *err)
{
	const struct rundata *a = c->a, *b = c->b;

	c->row = calloc((size_t)a->n_points + 1, sizeof(*c->row));
	if (!c->row) {
		snprintf(err->text, sizeof(err->text), "out of memory");
		return WEIR_ENOMEM;
	}
	for (int i = 0; i < a->n_points; i++) {
		int j = compare_partner(a, i, b, &c->multiples);
		if (j < 0)
			continue;
		c->row[c->n++] =
		    (struct compare_row){.name = a->point[i].name, .point_a = i, .point_b = j};
	}
	c->left_out = a->n_points + b->n_points - 2 * c->n;
	if (c->n > 0)
		return 0;
	if (a->n_points == 0 || b->n_points == 0)
		return refuse(err, "run '%.60s' has no phase that counts",
		    a->n_points == 0 ? a->name : b->name);
	return refuse(err,
	    "the runs offer different rates: '%s' ... in '%.60s', '%s' ... in '%.60s'",
	    a->point[0].name, a->name, b->point[0].name, b->name);
}

/* ---- pairing ---- */

/* Return the start of the run in seconds of Unix time; NAN if the text is not in the format of
 * runfile_write. */
static double started_s(const struct rundata *run)
{
	const char *text = json_string_value(json_object_get(run->json, "started"));
	struct tm tm = {0};
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);

	return rest ? (double)timegm(&tm) + (*rest == '.' ? strtod(rest, NULL) : 0) : NAN;
}

static int round_phase(const struct rundata *run, int point, int round)
{
	for (int i = 0; i < run->plan.n_phases; i++)
		if (run->point_of[i] == point && run->plan.phase[i].round == round)
			return i;
	return -1;
}

/* Return the number of rounds of a point that can be paired. Rounds 1 to n of both runs can be
 * paired if they alternated: each round began in both runs before the next round began in either.
 * Returns 0 if they did not alternate, or if there are fewer than COMPARE_ROUNDS_MIN. */
static int alternating_rounds(const struct comparison *c, const struct compare_row *row)
{
	double start_a = started_s(c->a), start_b = started_s(c->b), last = -INFINITY;
	int n = 0;

	for (int round = 1; round <= LOAD_PHASES_MAX; round++) {
		int i = round_phase(c->a, row->point_a, round);
		int j = round_phase(c->b, row->point_b, round);
		if (i < 0 || j < 0)
			break;
		double at_a = start_a + c->a->phase_at_s[i];
		double at_b = start_b + c->b->phase_at_s[j];
		if (!(fmin(at_a, at_b) >= last))
			return 0;
		last = fmax(at_a, at_b);
		n++;
	}
	return n >= COMPARE_ROUNDS_MIN ? n : 0;
}

/* ---- samples ---- */

struct samples {
	int n, max;
	double *v;
};

static void sample_add(struct samples *s, double v)
{
	if (!isnan(v) && s->n < s->max)
		s->v[s->n++] = v;
}

/* Return the value of a metric in one second; NAN if unknown. */
static double second_value(const struct load_second *s, enum run_metric metric)
{
	double offered = (double)s->all.offered;

	switch (metric) {
	case RUN_GOODPUT:
		return (double)run_good(s->all.outcome);
	case RUN_P50:
		return s->all.p50_ns > 0 ? (double)s->all.p50_ns / 1e9 : NAN;
	case RUN_P99:
		return s->all.p99_ns > 0 ? (double)s->all.p99_ns / 1e9 : NAN;
	case RUN_SHED:
		return offered > 0 ? fmin((double)s->all.outcome[LOAD_SHED] / offered, 1) : NAN;
	case RUN_ERROR:
		return offered > 0 ? fmin((double)run_failed(s->all.outcome) / offered, 1) : NAN;
	default:
		return NAN;
	}
}

static bool counts_second(const struct load_result *r, size_t i, int64_t took_ns)
{
	bool first = i == 0 || r->second[i - 1].phase != r->second[i].phase;

	return !first || took_ns < COMPARE_SECONDS_MIN * 1000000000LL;
}

static void samples_of_seconds(
    struct samples *s, const struct rundata *run, int point, enum run_metric metric)
{
	const struct load_result *r = &run->result;

	for (size_t i = 0; i < r->n_seconds; i++) {
		int phase = r->second[i].phase;
		if (run->point_of[phase] == point && counts_second(r, i, r->phase[phase].took_ns))
			sample_add(s, second_value(&r->second[i], metric));
	}
}

static void samples_of_rounds(
    struct samples *s, const struct rundata *run, int point, enum run_metric metric)
{
	for (int i = 0; i < run->plan.n_phases; i++)
		if (run->point_of[i] == point)
			sample_add(s, run->value[i][metric]);
}

static int samples_init(struct samples *s, const struct rundata *run)
{
	s->n = 0;
	s->max = (int)run->result.n_seconds + run->plan.n_phases;
	s->v = calloc((size_t)s->max, sizeof(double));
	return s->v ? 0 : WEIR_ENOMEM;
}

/* Make all samples greater than 0, since they are used in ratios. */
static void samples_raise(struct samples *s, enum run_metric metric)
{
	for (int i = 0; i < s->n; i++)
		s->v[i] =
		    compare_is_share(metric) ? s->v[i] + COMPARE_SHARE_FLOOR : fmax(s->v[i], 1e-9);
}

/* Take unpaired samples of `metric`: one per second, or one per round if the value of a second is
 * not known. */
static void samples_take(
    struct samples *s, const struct rundata *run, int point, enum run_metric metric)
{
	s->n = 0;
	samples_of_seconds(s, run, point, metric);
	if (s->n == 0)
		samples_of_rounds(s, run, point, metric);
	samples_raise(s, metric);
}

static void samples_take_rounds(
    struct samples *s, const struct rundata *run, int point, enum run_metric metric, int rounds)
{
	s->n = 0;
	for (int round = 1; round <= rounds; round++)
		sample_add(s, run->value[round_phase(run, point, round)][metric]);
	samples_raise(s, metric);
}

/* ---- cells ---- */

/* Return the ratio without an interval, for too few samples. */
static struct stats_ratio bare_ratio(const struct samples *a, const struct samples *b)
{
	double ratio = stats_median(b->v, b->n) / stats_median(a->v, a->n);

	return (struct stats_ratio){ratio, ratio, ratio, a->n < b->n ? a->n : b->n, STATS_TOO_FEW};
}

static struct stats_ratio ratio_of(
    const struct samples *a, const struct samples *b, enum run_metric metric, int rounds)
{
	const struct run_metric_row *row = &run_metric[metric];
	int block = (int)cbrt(a->n < b->n ? a->n : b->n);

	if (rounds > 0 && a->n == rounds && b->n == rounds)
		return stats_compare_paired(
		    a->v, b->v, a->n, row->more_is_better, row->least, COMPARE_SEED);
	if (a->n < 3 || b->n < 3)
		return bare_ratio(a, b);
	return stats_compare_unpaired(a->v, a->n, b->v, b->n, block > 1 ? block : 1,
	    row->more_is_better, row->least, COMPARE_SEED);
}

static void compare_cell(struct comparison *c, struct compare_row *row, enum run_metric metric,
    int rounds, struct samples s[2])
{
	struct compare_cell *cell = &row->cell[metric];
	double a[3], b[3];

	cell->known = rundata_over_rounds(c->a, row->point_a, metric, a) &&
		      rundata_over_rounds(c->b, row->point_b, metric, b);
	if (!cell->known)
		return;
	cell->a = a[0];
	cell->b = b[0];
	if (row->paired) {
		samples_take_rounds(&s[0], c->a, row->point_a, metric, rounds);
		samples_take_rounds(&s[1], c->b, row->point_b, metric, rounds);
	} else {
		samples_take(&s[0], c->a, row->point_a, metric);
		samples_take(&s[1], c->b, row->point_b, metric);
	}
	cell->known = s[0].n > 0 && s[1].n > 0;
	if (!cell->known)
		return;
	cell->ratio = ratio_of(&s[0], &s[1], metric, rounds);
	c->count[cell->ratio.verdict]++;
}

static void compare_row(struct comparison *c, struct compare_row *row, struct samples s[2])
{
	int rounds = alternating_rounds(c, row);

	row->paired = rounds > 0;
	c->drift = c->drift || !row->paired;
	for (int m = 0; m < RUN_N_METRICS; m++)
		compare_cell(c, row, (enum run_metric)m, rounds, s);
}

static int compare_rows(struct comparison *c)
{
	struct samples s[2] = {{0}, {0}};
	int rc = samples_init(&s[0], c->a);

	if (rc == 0)
		rc = samples_init(&s[1], c->b);
	for (int i = 0; rc == 0 && i < c->n; i++)
		compare_row(c, &c->row[i], s);
	free(s[0].v);
	free(s[1].v);
	return rc;
}

int compare_runs(const struct rundata *a, const struct rundata *b, bool force,
    struct comparison *out, struct weir_err *err)
{
	*out = (struct comparison){.a = a, .b = b};
	out->forced = a->result.voided[0] != '\0' || b->result.voided[0] != '\0';
	int rc = check_void(a, force, err);
	if (rc == 0)
		rc = check_void(b, force, err);
	if (rc == 0)
		rc = check_plans(a, b, err);
	if (rc == 0)
		rc = match(out, err);
	if (rc == 0 && compare_rows(out) != 0) {
		snprintf(err->text, sizeof(err->text), "out of memory");
		rc = WEIR_ENOMEM;
	}
	if (rc != 0) {
		err->code = rc;
		compare_fini(out);
	}
	return rc;
}

void compare_fini(struct comparison *c)
{
	free(c->row);
	c->row = NULL;
	c->n = 0;
}
