/* SPDX-License-Identifier: MIT */
/*
 * Writes the Prometheus text format; see prom.h. Each function decides from the last byte written
 * which punctuation is needed: a label after a name opens the braces, a label after a label adds a
 * comma, and a value closes open braces. Samples with and without labels are therefore written by
 * the same calls.
 */
#include "prom.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Bucket bounds in a 1-2-5 series from 50 us to 20 s, as documented in the operations manual. All
 * of them are bounds of weir_hist. */
static const int64_t bound_ns[] = {50000, 100000, 200000, 500000, 1000000, 2000000, 5000000,
    10000000, 20000000, 50000000, 100000000, 200000000, 500000000, 1000000000, 2000000000,
    5000000000, 10000000000, 20000000000};

/* Append `value`, escaped. `quotes` says whether to escape quotes, too: true for label values,
 * false for HELP. */
static void escaped(struct textbuf *out, const char *value, bool quotes)
{
	for (; *value; value++) {
		if (*value == '\n')
			textbuf_append(out, "\\n", 2);
		else if (*value == '\\' || (quotes && *value == '"'))
			textbuf_printf(out, "\\%c", *value);
		else
			textbuf_append(out, value, 1);
	}
}

static bool has_labels(const struct textbuf *out)
{
	return out->n > 0 && out->p[out->n - 1] == '"';
}

static void end_labels(struct textbuf *out)
{
	textbuf_printf(out, has_labels(out) ? "} " : " ");
}

void prom_head(struct textbuf *out, const char *name, const char *kind, const char *help)
{
	textbuf_printf(out, "# HELP %s ", name);
	escaped(out, help, false);
	textbuf_printf(out, "\n# TYPE %s %s\n", name, kind);
}

void prom_begin(struct textbuf *out, const char *name, const char *suffix)
{
	textbuf_printf(out, "%s%s", name, suffix);
}

void prom_label(struct textbuf *out, const char *name, const char *value)
{
	textbuf_printf(out, "%s%s=\"", has_labels(out) ? "," : "{", name);
	escaped(out, value, true);
	textbuf_append(out, "\"", 1);
}

void prom_count(struct textbuf *out, uint64_t value)
{
	end_labels(out);
	textbuf_printf(out, "%" PRIu64 "\n", value);
}

void prom_signed(struct textbuf *out, int64_t value)
{
	end_labels(out);
	textbuf_printf(out, "%" PRId64 "\n", value);
}

void prom_real(struct textbuf *out, double value)
{
	end_labels(out);
	if (isnan(value))
		textbuf_printf(out, "NaN\n");
	else if (isinf(value))
		textbuf_printf(out, "%cInf\n", value > 0 ? '+' : '-');
	else
		textbuf_printf(out, "%.9g\n", value);
}

/* Format seconds with as many digits as nanoseconds need: 0.00005, 1.5, 20. */
static void seconds_text(char *buf, size_t size, int64_t ns)
{
	uint64_t all = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
	char digits[16];
	int n = snprintf(digits, sizeof(digits), "%09" PRIu64, all % 1000000000);

	while (n > 0 && digits[n - 1] == '0')
		n--;
	snprintf(buf, size, "%s%" PRIu64 "%s%.*s", ns < 0 ? "-" : "", all / 1000000000,
	    n ? "." : "", n, digits);
}

void prom_seconds(struct textbuf *out, int64_t ns)
{
	char buf[40];

	seconds_text(buf, sizeof(buf), ns);
	end_labels(out);
	textbuf_printf(out, "%s\n", buf);
}

void prom_hist(struct textbuf *out, const char *name, const struct weir_hist *h,
    void (*labels)(struct textbuf *out, const void *arg), const void *arg)
{
	uint64_t below = 0;
	int b = 0;

	for (size_t i = 0; i < sizeof(bound_ns) / sizeof(bound_ns[0]); i++) {
		char le[40];
		while (b < WEIR_HIST_BUCKETS && weir_hist_upper_ns(b) <= bound_ns[i])
			below += h->count[b++];
		prom_begin(out, name, "_bucket");
		labels(out, arg);
		seconds_text(le, sizeof(le), bound_ns[i]);
		prom_label(out, "le", le);
		prom_count(out, below);
	}
	while (b < WEIR_HIST_BUCKETS)
		below += h->count[b++];
	prom_begin(out, name, "_bucket");
	labels(out, arg);
	prom_label(out, "le", "+Inf");
	prom_count(out, below);
	prom_begin(out, name, "_sum");
	labels(out, arg);
	prom_seconds(out, (int64_t)h->sum_ns);
	prom_begin(out, name, "_count");
	labels(out, arg);
	prom_count(out, below);
}
