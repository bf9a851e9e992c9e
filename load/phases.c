/* SPDX-License-Identifier: MIT */
/*
 * Parses phases; see phases.h. Every function checks all words before it changes the plan, or
 * undoes its changes, so the plan is unchanged on failure.
 */
#include "load/phases.h"

#include <stdio.h>
#include <string.h>

#include "load/sentence.h"

/* Size of the buffer for a word of a list or a range; longer words are not numbers. */
#define WORD_BYTES 64

/* Limits for the multiples of a spike or a sweep. Both are guesses: the evaluation protocol goes up
 * to 10. */
#define MULTIPLE_MIN 0.001
#define MULTIPLE_MAX 1000.0

/* The load grid of the evaluation protocol, as multiples of the capacity. */
static const double load_grid[] = {0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.5, 2, 3, 5, 10};

#define N_LOAD_GRID ((int)(sizeof(load_grid) / sizeof(load_grid[0])))

/* ---- words ---- */

/* Copy text[0..n) to `word`. A text that is too long is truncated and ends in "...", so that no
 * parser accepts it. */
static void cut_word(char word[WORD_BYTES], const char *text, size_t n)
{
	if (n >= WORD_BYTES)
		snprintf(word, WORD_BYTES, "%.59s...", text);
	else
		snprintf(word, WORD_BYTES, "%.*s", (int)n, text);
}

/* Copy the next word of a comma-separated list; *list becomes NULL after the last one. */
static void next_word(char word[WORD_BYTES], const char **list)
{
	size_t n = strcspn(*list, ",");

	cut_word(word, *list, n);
	*list = (*list)[n] ? *list + n + 1 : NULL;
}

/* Parse a multiple such as "2x". */
static int parse_multiple(const char *word, double *multiple, struct weir_err *err)
{
	char number[WORD_BYTES];
	size_t n = strlen(word);

	if (n > 1 && word[n - 1] == 'x') {
		cut_word(number, word, n - 1);
		if (sentence_rate(number, multiple, err) == 0 && *multiple >= MULTIPLE_MIN &&
		    *multiple <= MULTIPLE_MAX)
			return 0;
	}
	return sentence(err, WEIR_EINVAL,
	    "'%s' is not a multiple from %gx to %gx, such as 2x or 0.5x", word, MULTIPLE_MIN,
	    MULTIPLE_MAX);
}

/* ---- phases ---- */

static int check_room(const struct load_plan *plan, int n, struct weir_err *err)
{
	if (plan->n_phases + n <= LOAD_PHASES_MAX)
		return 0;
	return sentence(err, WEIR_EINVAL, "the run needs %d phases, but at most %d are possible",
	    plan->n_phases + n, LOAD_PHASES_MAX);
}

static int check_time(int64_t for_ns, struct weir_err *err)
{
	return for_ns > 0 ? 0
			  : sentence(err, WEIR_EINVAL, "the duration of a phase must be above 0s");
}

static int check_add(const struct load_plan *plan, int n, int64_t for_ns, struct weir_err *err)
{
	int rc = check_time(for_ns, err);

	return rc != 0 ? rc : check_room(plan, n, err);
}

static struct load_phase *add(struct load_plan *plan, double from, double to, int64_t for_ns)
{
	struct load_phase *p = &plan->phase[plan->n_phases++];

	*p = (struct load_phase){.from_per_s = from, .to_per_s = to, .for_ns = for_ns};
	if (from == to)
		snprintf(p->name, sizeof(p->name), "%.9g/s", from);
	else
		snprintf(p->name, sizeof(p->name), "%.7g..%.7g/s", from, to);
	return p;
}

static void insert(struct load_plan *plan, int at, const struct load_phase *phase)
{
	memmove(&plan->phase[at + 1], &plan->phase[at],
	    (size_t)(plan->n_phases - at) * sizeof(plan->phase[0]));
	plan->phase[at] = *phase;
	plan->n_phases++;
}

int phases_constant(struct load_plan *plan, double per_s, int64_t for_ns, struct weir_err *err)
{
	int rc = check_add(plan, 1, for_ns, err);

	if (rc != 0)
		return rc;
	if (!(per_s > 0))
		return sentence(err, WEIR_EINVAL, "the rate must be above 0 per second");
	add(plan, per_s, per_s, for_ns);
	return 0;
}

int phases_ramp(struct load_plan *plan, const char *text, int64_t for_ns, struct weir_err *err)
{
	const char *dots = strstr(text, "..");
	char word[WORD_BYTES];
	double from, to;

	if (!dots)
		return sentence(err, WEIR_EINVAL,
		    "'%.60s' is not a ramp: write FROM..TO, such as 1k..10k", text);
	cut_word(word, text, (size_t)(dots - text));
	int rc = sentence_rate(word, &from, err);
	if (rc != 0)
		return rc;
	cut_word(word, dots + 2, strlen(dots + 2));
	rc = sentence_rate(word, &to, err);
	if (rc == 0)
		rc = check_add(plan, 1, for_ns, err);
	if (rc == 0)
		add(plan, from, to, for_ns);
	return rc;
}

int phases_steps(struct load_plan *plan, const char *text, int64_t for_ns, struct weir_err *err)
{
	int before = plan->n_phases;
	int rc = check_time(for_ns, err);

	for (const char *at = text; at && rc == 0;) {
		char word[WORD_BYTES];
		double per_s;
		next_word(word, &at);
		rc = sentence_rate(word, &per_s, err);
		if (rc == 0)
			rc = check_room(plan, 1, err);
		if (rc == 0)
			add(plan, per_s, per_s, for_ns);
	}
	if (rc != 0)
		plan->n_phases = before;
	return rc;
}

/* ---- spikes ---- */

struct spike {
	double factor;
	int64_t at_ns, for_ns;
};

static int parse_spike(struct spike *spike, const char *text, struct weir_err *err)
{
	const char *at = strchr(text, '@'), *plus = at ? strchr(at, '+') : NULL;
	char word[WORD_BYTES];

	if (!plus)
		return sentence(err, WEIR_EINVAL,
		    "'%.60s' is not a spike: write FACTORx@AT+FOR, such as 10x@20s+5s", text);
	cut_word(word, text, (size_t)(at - text));
	int rc = parse_multiple(word, &spike->factor, err);
	if (rc != 0)
		return rc;
	cut_word(word, at + 1, (size_t)(plus - at - 1));
	rc = sentence_duration(word, &spike->at_ns, err);
	if (rc != 0)
		return rc;
	cut_word(word, plus + 1, strlen(plus + 1));
	rc = sentence_duration(word, &spike->for_ns, err);
	return rc != 0 ? rc : check_time(spike->for_ns, err);
}

static double rate_at(const struct load_phase *p, int64_t into_ns)
{
	double rise = p->to_per_s - p->from_per_s;

	return p->from_per_s + rise * (double)into_ns / (double)p->for_ns;
}

/* Split phase `i` in two, the first part of length `first_ns`, unless a part would be empty.
 * Returns whether it was split. */
static bool split(struct load_plan *plan, int i, int64_t first_ns)
{
	struct load_phase second = plan->phase[i], *first = &plan->phase[i];

	if (first_ns <= 0 || first_ns >= first->for_ns)
		return false;
	second.from_per_s = rate_at(first, first_ns);
	second.for_ns -= first_ns;
	first->to_per_s = second.from_per_s;
	first->for_ns = first_ns;
	insert(plan, i + 1, &second);
	return true;
}

/* Split the phase at time `at_ns` of the run, so that a phase starts at that time. */
static void cut_at(struct load_plan *plan, int64_t at_ns)
{
	int64_t begin_ns = 0;

	for (int i = 0; i < plan->n_phases && begin_ns < at_ns; i++) {
		if (split(plan, i, at_ns - begin_ns))
			return;
		begin_ns += plan->phase[i].for_ns;
	}
}

static void raise_rate(struct load_phase *p, double factor)
{
	if (p->from_per_s <= 0 && p->to_per_s <= 0)
		return; /* a multiple of a pause is still a pause */
	p->from_per_s *= factor;
	p->to_per_s *= factor;
	p->multiple *= factor;
	snprintf(p->name, sizeof(p->name), "spike %gx", factor);
}

/* Return the time at which the leading warm-up ends. */
static int64_t warm_at_ns(const struct load_plan *plan)
{
	int64_t at_ns = 0;

	for (int i = 0; i < plan->n_phases && plan->phase[i].warmup; i++)
		at_ns += plan->phase[i].for_ns;
	return at_ns;
}

int phases_spike(struct load_plan *plan, const char *text, struct weir_err *err)
{
	int64_t warm_ns = warm_at_ns(plan), begin_ns = 0;
	int64_t left_ns = phases_total_ns(plan) - warm_ns;
	struct spike spike = {0};

	int rc = parse_spike(&spike, text, err);
	if (rc == 0)
		rc = check_room(plan, 2, err); /* a spike splits at most two phases */
	if (rc != 0)
		return rc;
	if (spike.at_ns > left_ns - spike.for_ns)
		return sentence(err, WEIR_EINVAL,
		    "the spike '%.60s' does not lie within the run, which takes %gs", text,
		    (double)left_ns * 1e-9);
	int64_t from_ns = warm_ns + spike.at_ns, to_ns = from_ns + spike.for_ns;
	cut_at(plan, from_ns);
	cut_at(plan, to_ns);
	for (int i = 0; i < plan->n_phases; i++) {
		if (begin_ns >= from_ns && begin_ns < to_ns)
			raise_rate(&plan->phase[i], spike.factor);
		begin_ns += plan->phase[i].for_ns;
	}
	return 0;
}

/* ---- warm-up, sweeps ---- */

int phases_warmup(struct load_plan *plan, int64_t for_ns, struct weir_err *err)
{
	struct load_phase warmup = {.name = "warm-up", .for_ns = for_ns, .warmup = true};

	int rc = check_add(plan, 1, for_ns, err);
	if (rc != 0)
		return rc;
	for (int i = 0; i < plan->n_phases && warmup.from_per_s <= 0; i++)
		warmup.from_per_s = plan->phase[i].from_per_s; /* the first phase may be a pause */
	if (warmup.from_per_s <= 0)
		return sentence(err, WEIR_EINVAL, "a warm-up needs a phase after it");
	warmup.to_per_s = warmup.from_per_s;
	insert(plan, 0, &warmup);
	return 0;
}

/* Fill in the multiples of the load grid that lie within FROM..TO. */
static int multiples_range(
    const char *text, const char *dots, double *multiple, int max, struct weir_err *err)
{
	const double slack = 1e-9; /* tolerance, so that rounding cannot exclude the bounds */
	char word[WORD_BYTES];
	double from = 0, to = 0;
	int n = 0;

	cut_word(word, text, (size_t)(dots - text));
	if (parse_multiple(word, &from, err) != 0)
		return WEIR_EINVAL;
	cut_word(word, dots + 2, strlen(dots + 2));
	if (parse_multiple(word, &to, err) != 0)
		return WEIR_EINVAL;
	for (int i = 0; i < N_LOAD_GRID && n < max; i++)
		if (load_grid[i] >= from - slack && load_grid[i] <= to + slack)
			multiple[n++] = load_grid[i];
	if (n == 0)
		return sentence(err, WEIR_EINVAL,
		    "'%.60s' contains no multiple of the load grid (0.1x..10x): list multiples, "
		    "such as 0.5x,1x,2x",
		    text);
	return n;
}

/* Insert `value` into multiple[0..n), which is in ascending order. Returns false if it is already
 * present. */
static bool sort_in(double *multiple, int n, double value)
{
	int at = n;

	while (at > 0 && multiple[at - 1] > value)
		at--;
	if (at > 0 && multiple[at - 1] >= value)
		return false;
	memmove(&multiple[at + 1], &multiple[at], (size_t)(n - at) * sizeof(*multiple));
	multiple[at] = value;
	return true;
}

int phases_multiples(const char *text, double *multiple, int max, struct weir_err *err)
{
	const char *dots = strstr(text, "..");
	int n = 0;

	if (dots)
		return multiples_range(text, dots, multiple, max, err);
	for (const char *at = text; at; n++) {
		char word[WORD_BYTES];
		double value = 0;
		next_word(word, &at);
		if (parse_multiple(word, &value, err) != 0)
			return WEIR_EINVAL;
		if (n == max)
			return sentence(
			    err, WEIR_EINVAL, "'%.60s' has more than %d multiples", text, max);
		if (!sort_in(multiple, n, value))
			return sentence(err, WEIR_EINVAL, "'%s' is listed twice", word);
	}
	return n;
}

static void add_pause(struct load_plan *plan, int64_t for_ns, int round)
{
	struct load_phase *p = add(plan, 0, 0, for_ns);

	snprintf(p->name, sizeof(p->name), "pause");
	p->round = round;
}

int phases_sweep(struct load_plan *plan, double capacity_per_s, const double *multiple, int n,
    int rounds, int64_t for_ns, int64_t pause_ns, struct weir_err *err)
{
	int each = pause_ns > 0 ? 2 : 1;
	int rc = check_time(for_ns, err);

	if (rc == 0 && !(capacity_per_s > 0))
		rc = sentence(err, WEIR_EINVAL, "the capacity must be above 0 per second");
	if (rc == 0 && (rounds < 1 || rounds > LOAD_PHASES_MAX))
		rc = sentence(err, WEIR_EINVAL,
		    "a sweep cannot have %d rounds: 1 to %d are possible", rounds, LOAD_PHASES_MAX);
	if (rc == 0)
		rc = check_room(plan, n * each * rounds, err);
	for (int i = 0; rc == 0 && i < n * rounds; i++) {
		int round = i / n + 1, at = round % 2 ? i % n : n - 1 - i % n;
		if (pause_ns > 0)
			add_pause(plan, pause_ns, round);
		double per_s = capacity_per_s * multiple[at];
		struct load_phase *p = add(plan, per_s, per_s, for_ns);
		snprintf(p->name, sizeof(p->name), "%gx", multiple[at]);
		p->multiple = multiple[at];
		p->round = round;
	}
	return rc;
}

int64_t phases_total_ns(const struct load_plan *plan)
{
	int64_t total_ns = 0;

	for (int i = 0; i < plan->n_phases; i++)
		total_ns += plan->phase[i].for_ns;
	return total_ns;
}
