/* SPDX-License-Identifier: MIT */
/* Verdicts in words; see verdict.h. */
#include "report/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/format.h"

static const struct {
	const char *word, *level;
} words[] = {
    [VERDICT_VOID] = {"void", "void"},
    [VERDICT_NOTHING] = {"nothing was served", "bad"},
    [VERDICT_GENERATOR] = {"not overloaded: the generator is the limit", "warn"},
    [VERDICT_LIGHT] = {"not overloaded", "plain"},
    [VERDICT_SINGLE] = {"one load, nothing to compare it with", "plain"},
    [VERDICT_CHANGED] = {"the machine changed", "warn"},
    [VERDICT_UNSURE] = {"too noisy for a verdict", "warn"},
    [VERDICT_KEPT] = {"well-conditioned under overload", "ok"},
    [VERDICT_LOSES] = {"it loses goodput under overload", "warn"},
    [VERDICT_COLLAPSES] = {"it collapses under overload", "bad"},
};

const char *verdict_word(const struct verdict *v)
{
	return words[v->kind].word;
}

const char *verdict_level(const struct verdict *v)
{
	return words[v->kind].level;
}

/* "92 % (88 to 96 %) of that": without the interval if the noise is unknown. */
static char *kept_text(const struct verdict *v, char buf[4 * FORMAT_MAX])
{
	char share[FORMAT_MAX], high[FORMAT_MAX];

	format_share(share, v->kept);
	if (isnan(v->noise))
		snprintf(buf, 4 * FORMAT_MAX, "%s", share);
	else
		snprintf(buf, 4 * FORMAT_MAX, "%s (%.0f to %s)", share, v->low * 100,
		    format_share(high, round(v->high * 100) / 100));
	return buf;
}

static void overload_sentence(const struct verdict *v, char *buf, size_t size)
{
	char best[FORMAT_MAX], p99[FORMAT_MAX], offered[FORMAT_MAX], kept[4 * FORMAT_MAX];

	if (v->rises) {
		snprintf(buf, size,
		    "Served %s when %s were offered, more than at any lower load "
		    "(p99 %s): %s.",
		    format_rate(best, v->best_per_s), format_rate(offered, v->offered_per_s),
		    format_time(p99, v->highest_p99_s), verdict_word(v));
		return;
	}
	snprintf(buf, size, "Served %s at best, and %s of that when %s were offered (p99 %s): %s.",
	    format_rate(best, v->best_per_s), kept_text(v, kept),
	    format_rate(offered, v->offered_per_s), format_time(p99, v->highest_p99_s),
	    verdict_word(v));
}

static void light_sentence(const struct verdict *v, char *buf, size_t size)
{
	char best[FORMAT_MAX], p99[FORMAT_MAX], offered[FORMAT_MAX];

	format_rate(best, v->best_per_s);
	format_time(p99, v->best_p99_s);
	format_rate(offered, v->offered_per_s);
	if (v->kind == VERDICT_SINGLE || (v->n_points == 1 && v->kind == VERDICT_LIGHT))
		snprintf(buf, size, "Served %s of %s offered, at p99 %s%s.", best, offered, p99,
		    v->closed ? " in a closed loop, which cannot overload a server"
		    : v->kind == VERDICT_SINGLE
			? "; a single load does not show whether goodput falls under overload"
			: "; the load did not exceed the capacity");
	else if (!v->closed && v->n_below > 0 &&
		 v->n_points > v->n_below + 1) /* beyond the capacity */
		snprintf(buf, size,
		    "Served %s at p99 %s: all of it within the time-out, so this was no overload; "
		    "longer phases (--for) or a shorter --timeout make one.",
		    best, p99);
	else
		snprintf(buf, size, "Served %s at p99 %s%s.", best, p99,
		    v->closed ? " in a closed loop, which cannot overload a server"
			      : "; the load did not exceed the capacity");
}

static void generator_sentence(const struct verdict *v, char *buf, size_t size)
{
	char best[FORMAT_MAX], p99[FORMAT_MAX], late[FORMAT_MAX], offered[FORMAT_MAX];

	snprintf(buf, size,
	    "Served %s at p99 %s. The generator, not the server, is the limit on this machine: it "
	    "could "
	    "send %s in time, but not %s.",
	    format_rate(best, v->best_per_s), format_time(p99, v->best_p99_s),
	    format_rate(offered, v->offered_per_s), format_rate(late, v->late_per_s));
}

static void changed_sentence(const struct verdict *v, char *buf, size_t size)
{
	char share[FORMAT_MAX], rate[FORMAT_MAX];

	snprintf(buf, size,
	    "The machine changed during the run: of %s, a load below the capacity, only %s was "
	    "served. This run says nothing about overload.",
	    format_rate(rate, v->worst_per_s), format_share(share, v->worst_share));
}

char *verdict_sentence(const struct verdict *v, char *buf, size_t size)
{
	switch (v->kind) {
	case VERDICT_VOID:
		snprintf(buf, size, "No figure of this run counts.");
		break;
	case VERDICT_NOTHING:
		snprintf(buf, size, "Nothing was served.");
		break;
	case VERDICT_GENERATOR:
		generator_sentence(v, buf, size);
		break;
	case VERDICT_LIGHT:
	case VERDICT_SINGLE:
		light_sentence(v, buf, size);
		break;
	case VERDICT_CHANGED:
		changed_sentence(v, buf, size);
		break;
	default:
		overload_sentence(v, buf, size);
	}
	return buf;
}

char *verdict_certainty(const struct verdict *v, char *buf, size_t size)
{
	char noise[FORMAT_MAX], sd[FORMAT_MAX];

	buf[0] = '\0';
	if (v->kind < VERDICT_CHANGED)
		return buf;
	if (v->pairs > 0) {
		snprintf(buf, size,
		    "%d rounds, in each of which the loads alternated; the ratio of a round varied "
		    "by %s (standard deviation).",
		    v->pairs, format_share(sd, v->ratio_sd));
		return buf;
	}
	format_share(noise, v->noise);
	if (isnan(v->noise))
		snprintf(buf, size,
		    "One round, too short to measure its noise: there are no error bars. "
		    "--rounds 5 measures them.");
	else if (v->rounds < 2)
		snprintf(buf, size,
		    "One round: the noise of %s is an estimate, from the spread of its seconds and "
		    "of neighbouring loads. --rounds 5 measures it.",
		    noise);
	else
		snprintf(buf, size, "%d rounds, whose goodput varied by %s (standard deviation).",
		    v->rounds, noise);
	return buf;
}

char *verdict_check(const struct verdict *v, char *buf, size_t size)
{
	char share[FORMAT_MAX], rate[FORMAT_MAX];

	buf[0] = '\0';
	if (v->n_below == 0)
		return buf;
	if (v->n_held == v->n_below)
		snprintf(buf, size, "%s below the capacity: served, the least %s",
		    v->n_below == 1 ? "one load" : "all loads",
		    format_share(share, v->worst_share));
	else
		snprintf(buf, size, "%d of %d loads below the capacity: not served, of %s only %s",
		    v->n_below - v->n_held, v->n_below, format_rate(rate, v->worst_per_s),
		    format_share(share, v->worst_share));
	return buf;
}
