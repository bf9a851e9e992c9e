/* SPDX-License-Identifier: MIT */
/* Error messages; see sentence.h. */
#include "load/sentence.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weir/knob.h>

/* Lowest rate. 0.001 is a guess: fewer than one request in 1000 s is not a useful load. */
#define RATE_MIN_PER_S 0.001

/* Maximum duration: a year. The total of LOAD_PHASES_MAX phases then fits in 64 bits of ns. */
#define DURATION_MAX_NS (8760.0 * 3600e9)

static const struct weir_knob rate_row = {
    .name = "rate", .type = WEIR_KNOB_RATE, .min = RATE_MIN_PER_S, .max = 1e9};
static const struct weir_knob duration_row = {
    .name = "duration", .type = WEIR_KNOB_DURATION, .min = 0, .max = DURATION_MAX_NS};

int sentence(struct weir_err *err, int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	err->code = code;
	for (char *p = err->text; *p; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			*p = '?';
	return code;
}

int sentence_errno(struct weir_err *err, const char *file)
{
	return sentence(err, WEIR_ESYS, "%.180s: %s", file, strerror(errno));
}

int sentence_nomem(struct weir_err *err)
{
	return sentence(err, WEIR_ENOMEM, "%s", weir_error_text(WEIR_ENOMEM));
}

static int parse(const struct weir_knob *row, const char *word, void *value, struct weir_err *err)
{
	char why[sizeof(err->text)];

	int rc = weir_knob_parse(row, word, value, why, sizeof(why));
	return rc == 0 ? 0 : sentence(err, rc, "%s", why);
}

int sentence_rate(const char *word, double *per_s, struct weir_err *err)
{
	return parse(&rate_row, word, per_s, err);
}

int sentence_duration(const char *word, int64_t *ns, struct weir_err *err)
{
	return parse(&duration_row, word, ns, err);
}
