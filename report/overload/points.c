/* SPDX-License-Identifier: MIT */
/* Groups rows into points and collects names; see points.h. */
#include "report/overload/points.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const bool over_more_is_better[OVER_N_METRICS] = {
#define OVER_MORE(id, word, heading, more, print) more,
    OVER_METRICS(OVER_MORE)
#undef OVER_MORE
};

const char *const over_heading[OVER_N_METRICS] = {
#define OVER_HEADING(id, word, heading, more, print) heading,
    OVER_METRICS(OVER_HEADING)
#undef OVER_HEADING
};

format_fn *const over_print[OVER_N_METRICS] = {
#define OVER_PRINT(id, word, heading, more, print) print,
    OVER_METRICS(OVER_PRINT)
#undef OVER_PRINT
};

static bool same(const struct over_row *a, const char *where, const char *workload,
    const char *policy, double load)
{
	return strcmp(a->where, where) == 0 && strcmp(a->workload, workload) == 0 &&
	       strcmp(a->policy, policy) == 0 && fabs(a->load - load) < 1e-9;
}

static struct over_point *find(struct over_point *point, int n, const char *where,
    const char *workload, const char *policy, double load)
{
	for (int i = 0; i < n; i++)
		if (same(point[i].first, where, workload, policy, load))
			return &point[i];
	return NULL;
}

const struct over_point *over_point_find(const struct over_points *p, const char *where,
    const char *workload, const char *policy, double load)
{
	return find(p->point, p->n, where, workload, policy, load);
}

bool over_is_of(const struct over_work *w, const struct over_row *r)
{
	return strcmp(r->where, w->where) == 0 && strcmp(r->workload, w->workload) == 0;
}

bool over_same_point(const struct over_row *a, const struct over_row *b)
{
	return a->is_void == b->is_void && same(a, b->where, b->workload, b->policy, b->load);
}

const struct over_point *over_at(const struct over_work *w, int policy, double load)
{
	return over_point_find(w->points, w->where, w->workload, w->policy.name[policy], load);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Compute the median and the range of v[0..n), which is sorted in place. */
static struct over_range range_of(double *v, int n)
{
	if (n == 0)
		return (struct over_range){0, NAN, NAN, NAN};
	qsort(v, (size_t)n, sizeof(*v), by_value);
	double below = v[(n - 1) / 2], above = v[n / 2];
	return (struct over_range){n, below < above ? (below + above) / 2 : below, v[0], v[n - 1]};
}

static void fill_point(const struct over_rows *rows, struct over_point *p, double *v)
{
	bool valid = p->rounds > 0;

	for (int m = 0; m < OVER_N_METRICS; m++) {
		int n = 0;
		for (int i = 0; i < rows->n; i++) {
			const struct over_row *r = &rows->row[i], *f = p->first;
			if (r->is_void != valid && !isnan(r->value[m]) &&
			    same(r, f->where, f->workload, f->policy, f->load))
				v[n++] = r->value[m];
		}
		p->of[m] = range_of(v, n);
	}
}

static int by_load(const void *a, const void *b)
{
	const struct over_point *x = a, *y = b;

	return (x->first->load > y->first->load) - (x->first->load < y->first->load);
}

int over_points_of(const struct over_rows *rows, struct over_points *out)
{
	size_t room = rows->n > 0 ? (size_t)rows->n : 1;
	double *v = calloc(room, sizeof(*v));

	*out = (struct over_points){.point = calloc(room, sizeof(*out->point))};
	if (!v || !out->point) {
		free(v);
		over_points_fini(out);
		return WEIR_ENOMEM;
	}
	for (int i = 0; i < rows->n; i++) {
		const struct over_row *r = &rows->row[i];
		struct over_point *p =
		    find(out->point, out->n, r->where, r->workload, r->policy, r->load);
		if (!p) {
			p = &out->point[out->n++];
			p->first = r;
		}
		if (p->first->is_void)
			p->first = r;
		p->rounds += !r->is_void;
		p->voids += r->is_void;
	}
	for (int i = 0; i < out->n; i++)
		fill_point(rows, &out->point[i], v);
	free(v);
	qsort(out->point, (size_t)out->n, sizeof(*out->point), by_load);
	return 0;
}

void over_points_fini(struct over_points *p)
{
	free(p->point);
	*p = (struct over_points){0};
}

/* ---- names ---- */

static void add_name(struct over_names *names, const char *name)
{
	for (int i = 0; i < names->n; i++)
		if (strcmp(names->name[i], name) == 0)
			return;
	if (names->n < OVER_NAMES_MAX)
		names->name[names->n++] = name;
}

/* Return the rank of a policy. The rank determines the position and the style of the policy. The
 * policy that the report is about has rank 0; the policies for comparison follow. */
static int rank_of(const char *policy)
{
	static const char *const order[] = {"weir", "none", "codel", "gradient2", "dagor",
	    "seda_rt", "threshold", "static", "best static"};
	int n = (int)(sizeof(order) / sizeof(order[0]));

	for (int i = 0; i < n; i++)
		if (strcmp(order[i], policy) == 0)
			return i;
	return n;
}

static int by_rank(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;
	int d = rank_of(*x) - rank_of(*y);

	return d ? d : strcmp(*x, *y);
}

static int by_number(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;
	long d = strtol(*x + 1, NULL, 10) - strtol(*y + 1, NULL, 10);

	return d ? (d > 0) - (d < 0) : strcmp(*x, *y);
}

struct over_names over_workloads(const struct over_points *p, const char *where)
{
	struct over_names names = {0};

	for (int i = 0; i < p->n; i++)
		if (strcmp(p->point[i].first->where, where) == 0)
			add_name(&names, p->point[i].first->workload);
	qsort(names.name, (size_t)names.n, sizeof(names.name[0]), by_number);
	return names;
}

struct over_names over_policies(const struct over_points *p, const char *where)
{
	struct over_names names = {0};

	for (int i = 0; i < p->n; i++)
		if (strcmp(p->point[i].first->where, where) == 0)
			add_name(&names, p->point[i].first->policy);
	qsort(names.name, (size_t)names.n, sizeof(names.name[0]), by_rank);
	return names;
}

/* ---- numbers ---- */

static char *print_digits(char *buf, double value, int digits, const char *unit)
{
	if (isnan(value))
		snprintf(buf, FORMAT_MAX, "\xE2\x80\x93");
	else if (isinf(value))
		snprintf(buf, FORMAT_MAX, "never");
	else
		snprintf(buf, FORMAT_MAX, "%.*f%s", digits, value, unit);
	return buf;
}

char *over_print_2(char *buf, double value)
{
	return print_digits(buf, value, 2, "");
}

char *over_print_3(char *buf, double value)
{
	return print_digits(buf, value, 3, "");
}

char *over_print_share(char *buf, double value)
{
	double percent = value * 100;
	bool near_end = percent < 1 || percent > 99;

	return print_digits(buf, percent, near_end ? 2 : 1, " %");
}

char *over_print_time(char *buf, double value)
{
	if (isinf(value))
		return print_digits(buf, value, 0, "");
	return format_time(buf, value);
}

char *over_print_load(char *buf, double value)
{
	snprintf(buf, FORMAT_MAX, "%.3gx", value);
	return buf;
}
