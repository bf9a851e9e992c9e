/* SPDX-License-Identifier: MIT */
/* Counts misses of objectives in windows; see burn.h. */
#include "burn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1000000000LL

/* Totals are stored each STEP_NS, for the longest window. A window is too long by at most a step. */
#define STEP_NS (30 * NS_PER_S)
#define STEPS   (6 * 3600 / 30 + 1)

static const struct {
	int64_t long_ns, short_ns;
	double factor;
} rates[BURN_RATES] = {
    {3600 * NS_PER_S, 300 * NS_PER_S, 14.4},
    {6 * 3600 * NS_PER_S, 1800 * NS_PER_S, 6},
};

struct totals {
	uint64_t all, missed;
};

struct burn_class {
	char name[WEIR_NAME_MAX + 1];
	int64_t slo_ns;
	struct totals seen;      /* counters of the last view */
	struct totals now;       /* sum of their increases */
	int64_t begin_ns, at_ns; /* of the first view and of the last one */
	unsigned n; /* number of steps stored so far; step i is at begin_ns + i * STEP_NS */
	struct totals step[STEPS];
};

void burn_count(const struct weir_answer_view *answers, int64_t slo_ns, bool highest, uint64_t *all,
    uint64_t *missed)
{
	const struct weir_hist *done = &answers->by[WEIR_OUTCOME_DONE];
	uint64_t failed = weir_hist_total(&answers->by[WEIR_OUTCOME_FAILED]);
	uint64_t shed = highest ? weir_hist_total(&answers->by[WEIR_OUTCOME_SHED]) : 0;

	for (int b = 0; b < WEIR_HIST_BUCKETS; b++) {
		*all += done->count[b];
		if (b > 0 && weir_hist_upper_ns(b - 1) >= slo_ns)
			*missed += done->count[b];
	}
	*all += failed + shed;
	*missed += failed + shed;
}

static struct totals count(const struct weir_graph_view *v, int c)
{
	struct totals t = {0};

	for (int i = 0; i < v->n_stages; i++)
		if (v->stages[i].answers)
			burn_count(&v->stages[i].answers[c], v->class_slo_ns[c], c == 0, &t.all,
			    &t.missed);
	return t;
}

/* Another class, or another objective, or other counters: begin again. */
static void begin(struct burn_class *b, const struct weir_graph_view *v, int c, struct totals now)
{
	*b = (struct burn_class){.slo_ns = v->class_slo_ns[c],
	    .seen = now,
	    .begin_ns = v->now_ns,
	    .at_ns = v->now_ns,
	    .n = 1};
	snprintf(b->name, sizeof(b->name), "%s", v->class_name[c]);
}

static bool continues(
    const struct burn_class *b, const struct weir_graph_view *v, int c, struct totals now)
{
	return b->n > 0 && b->slo_ns == v->class_slo_ns[c] && now.all >= b->seen.all &&
	       now.missed >= b->seen.missed && v->now_ns >= b->at_ns &&
	       strncmp(b->name, v->class_name[c], WEIR_NAME_MAX) == 0;
}

static void feed_class(
    struct burn_class *b, const struct weir_graph_view *v, int c, struct totals now)
{
	if (!continues(b, v, c, now)) {
		begin(b, v, c, now);
		return;
	}
	/* steps that have passed since the last view show what was known then */
	for (; b->begin_ns + (int64_t)b->n * STEP_NS <= v->now_ns; b->n++)
		b->step[b->n % STEPS] = b->now;
	b->now.all += now.all - b->seen.all;
	b->now.missed += now.missed - b->seen.missed;
	b->seen = now;
	b->at_ns = v->now_ns;
}

void burn_feed(struct burn *burn, const struct weir_graph_view *v)
{
	for (int c = 0; c < WEIR_CLASSES_MAX; c++) {
		bool wanted = c < v->n_classes && v->class_slo_ns[c] > 0;
		struct totals now = wanted ? count(v, c) : (struct totals){0};
		if (!wanted) {
			free(burn->class_[c]);
			burn->class_[c] = NULL;
			continue;
		}
		if (!burn->class_[c] && now.all > 0)
			burn->class_[c] = calloc(1, sizeof(struct burn_class));
		if (burn->class_[c])
			feed_class(burn->class_[c], v, c, now);
	}
}

/* What has been counted in the last `window_ns`, or since the start if that is shorter. */
static struct totals in_window(const struct burn_class *b, int64_t window_ns)
{
	int64_t from_ns = b->at_ns - b->begin_ns - window_ns;
	unsigned at = from_ns > 0 ? (unsigned)(from_ns / STEP_NS) : 0;
	unsigned oldest = b->n > STEPS ? b->n - STEPS : 0;
	const struct totals *then = &b->step[(at > oldest ? at : oldest) % STEPS];

	return (struct totals){b->now.all - then->all, b->now.missed - then->missed};
}

static double share(struct totals t)
{
	return t.all > 0 ? (double)t.missed / (double)t.all : 0;
}

struct burn_state burn_judge(const struct burn *burn, int c, double objective)
{
	const struct burn_class *b = burn->class_[c];
	double budget = 1 - objective;
	struct burn_state s = {0};

	if (!b || b->at_ns - b->begin_ns < BURN_COLD_NS || budget <= 0)
		return s;
	for (int i = 0; i < BURN_RATES && !s.due; i++) {
		struct totals in_long = in_window(b, rates[i].long_ns);
		s.long_ns = rates[i].long_ns;
		s.short_ns = rates[i].short_ns;
		s.long_share = share(in_long);
		s.short_share = share(in_window(b, rates[i].short_ns));
		s.rate = s.long_share / budget;
		s.due = in_long.missed >= BURN_MISSES_MIN && s.rate > rates[i].factor &&
			s.short_share > rates[i].factor * budget;
	}
	return s;
}

void burn_fini(struct burn *burn)
{
	for (int c = 0; c < WEIR_CLASSES_MAX; c++)
		free(burn->class_[c]);
	*burn = (struct burn){0};
}
