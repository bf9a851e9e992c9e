/* SPDX-License-Identifier: MIT */
/*
 * Parses one value. The loader, `check`, the admin endpoint and `--set` all show the error messages
 * produced here, which state what was found and what is expected.
 */
#include "base/knob_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Maximum number of choices considered for a suggestion. */
#define CHOICES_MAX 32

static int parse_bool(const char *text, bool *value, char *why, size_t size)
{
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
		*value = text[0] == 't';
		return 0;
	}
	snprintf(why, size, "'%.60s' is not true or false", text);
	return WEIR_EINVAL;
}

static void choices_nearest(const char *text, const char *choices, char *nearest, size_t size)
{
	char copy[512];
	const char *names[CHOICES_MAX];
	int n = 0;

	snprintf(copy, sizeof(copy), "%s", choices);
	for (char *save, *c = strtok_r(copy, "|", &save); c && n < CHOICES_MAX;
	     c = strtok_r(NULL, "|", &save))
		names[n++] = c;
	const char *found = weir_nearest(text, names, n);
	snprintf(nearest, size, "%s", found ? found : "");
}

static int parse_enum(
    const struct weir_knob *row, const char *text, int *value, char *why, size_t size)
{
	struct text_out out = {why, size, 0};
	char shown[64], nearest[64];
	int i = 0;

	for (const char *c = row->choices; c; i++) {
		const char *name = c;
		size_t n = knob_choice(&c);
		if (strlen(text) == n && memcmp(text, name, n) == 0) {
			*value = i;
			return 0;
		}
	}
	snprintf(shown, sizeof(shown), "'%.60s'", text);
	text_put(&out, shown);
	text_put(&out, " is not one of ");
	for (const char *c = row->choices; c;) {
		const char *name = c;
		text_put_bytes(&out, name, knob_choice(&c));
		text_put(&out, c ? ", " : "");
	}
	choices_nearest(text, row->choices, nearest, sizeof(nearest));
	if (nearest[0]) {
		text_put(&out, ": did you mean '");
		text_put(&out, nearest);
		text_put(&out, "'?");
	}
	text_end(&out);
	return WEIR_EINVAL;
}

static int parse_string(const char *text, char **value, char *why, size_t size)
{
	char *copy = strdup(text);

	if (!copy) {
		snprintf(why, size, "%s", weir_error_text(WEIR_ENOMEM));
		return WEIR_ENOMEM;
	}
	free(*value);
	*value = copy;
	return 0;
}

static int parse_whole(
    const struct weir_knob *row, const char *text, int64_t *value, char *why, size_t size)
{
	int64_t whole;

	if (strcmp(text, "auto") == 0) {
		if (row->flags & WEIR_KNOB_AUTO) {
			*value = KNOB_AUTO;
			return 0;
		}
		snprintf(why, size, "'auto' is not allowed here");
		return WEIR_EINVAL;
	}
	int rc = knob_parse_number(row, text, &whole, NULL, why, size);
	if (rc == 0)
		*value = whole;
	return rc;
}

static int parse_real(
    const struct weir_knob *row, const char *text, double *value, char *why, size_t size)
{
	double real;

	if (strcmp(text, "auto") == 0 && row->flags & WEIR_KNOB_AUTO) {
		*value = KNOB_AUTO;
		return 0;
	}
	int rc = knob_parse_number(row, text, NULL, &real, why, size);
	if (rc == 0)
		*value = real;
	return rc;
}

int weir_knob_parse(
    const struct weir_knob *row, const char *text, void *base, char *why, size_t size)
{
	void *member = knob_member(row, base);

	switch (row->type) {
	case WEIR_KNOB_BOOL:
		return parse_bool(text, member, why, size);
	case WEIR_KNOB_INT:
	case WEIR_KNOB_BYTES:
	case WEIR_KNOB_DURATION:
		return parse_whole(row, text, member, why, size);
	case WEIR_KNOB_RATE:
	case WEIR_KNOB_RATIO:
		return parse_real(row, text, member, why, size);
	case WEIR_KNOB_STRING:
		return parse_string(text, member, why, size);
	case WEIR_KNOB_ENUM:
		return parse_enum(row, text, member, why, size);
	case WEIR_KNOB_STRINGS:
	case WEIR_KNOB_RECORDS:
	case WEIR_KNOB_MAP:
		break;
	}
	snprintf(why, size, "'%.40s' takes %s, not a single string", row->name,
	    row->type == WEIR_KNOB_MAP ? "a map" : "a list");
	return WEIR_EINVAL;
}
