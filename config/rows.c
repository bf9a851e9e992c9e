/* SPDX-License-Identifier: MIT */
/* Describes knob rows; see rows.h. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

static const char *written(enum weir_knob_type type)
{
	static const char *const words[] = {
#define WRITTEN(name, member, text) [WEIR_KNOB_##name] = text,
	    WEIR_KNOB_TYPES(WRITTEN)
#undef WRITTEN
	};

	return words[type];
}

/* Return whether `text` may be written without quotes: it must have only safe characters, and be
 * none of the words that some YAML readers take for booleans or null. Numbers may be written
 * without quotes, since weir reads every scalar as a text. */
static bool is_plain(const char *text)
{
	static const char *const special[] = {
	    "true", "false", "yes", "no", "on", "off", "null", "~"};
	size_t n =
	    strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-");

	for (size_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
		if (strcmp(text, special[i]) == 0)
			return false;
	/* "./x" is a path, but some readers interpret ".5" and ".nan" as numbers. */
	return n > 0 && text[n] == '\0' && text[0] != '-' && (text[0] != '.' || text[1] == '/');
}

void row_quote(FILE *out, const char *text)
{
	if (is_plain(text)) {
		fputs(text, out);
		return;
	}
	fputc('"', out);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '"' || *p == '\\')
			fprintf(out, "\\%c", *p);
		else if (*p == '\n')
			fputs("\\n", out);
		else if (*p < 0x20 || *p == 0x7f)
			fprintf(out, "\\x%02x", *p);
		else
			fputc(*p, out);
	}
	fputc('"', out);
}

static char *printed(const struct weir_knob *row, const void *base)
{
	int n = weir_knob_print(row, base, NULL, 0);
	char *text = malloc((size_t)n + 1);

	if (text)
		weir_knob_print(row, base, text, (size_t)n + 1);
	return text;
}

char *row_value(const struct weir_knob *row, const void *base)
{
	char *text = printed(row, base), *quoted = NULL;
	size_t size;

	if (!text || row->type != WEIR_KNOB_STRING)
		return text;
	FILE *out = open_memstream(&quoted, &size);
	if (out) {
		row_quote(out, text);
		if (fclose(out) != 0) {
			free(quoted);
			quoted = NULL;
		}
	}
	free(text);
	return quoted;
}

static void put_options(FILE *out, const struct weir_knob *row)
{
	struct weir_option option;

	for (int i = 0; row->option(i, &option); i++)
		fprintf(out, "%s%s", i > 0 ? ", " : "one of ", option.name);
}

void row_type(FILE *out, const struct weir_knob *row)
{
	if (row->option) {
		put_options(out, row);
		return;
	}
	if (row->type != WEIR_KNOB_ENUM) {
		fputs(written(row->type), out);
		return;
	}
	fputs("one of ", out);
	for (const char *p = row->choices; *p; p++)
		*p == '|' ? fputs(", ", out) : fputc(*p, out);
}

bool row_has_range(const struct weir_knob *row)
{
	return (row->min != 0 || row->max != 0) && row->type <= WEIR_KNOB_RATIO &&
	       row->type != WEIR_KNOB_BOOL;
}

/* Print a bound in the unit of the row: store it in a temporary member, and print that. */
static void put_bound(FILE *out, const struct weir_knob *row, double bound)
{
	bool real = row->type == WEIR_KNOB_RATE || row->type == WEIR_KNOB_RATIO;
	struct weir_knob here = *row;
	int64_t whole = (int64_t)bound;
	char text[48];

	here.offset = 0;
	here.flags = 0; /* drop the flag for `auto`, so that -1 is printed as a number */
	weir_knob_print(&here, real ? (void *)&bound : (void *)&whole, text, sizeof(text));
	fputs(text, out);
}

void row_least(FILE *out, const struct weir_knob *row)
{
	put_bound(out, row, row->min);
}

void row_most(FILE *out, const struct weir_knob *row)
{
	put_bound(out, row, row->max);
}

bool row_range(FILE *out, const struct weir_knob *row)
{
	if (!row_has_range(row))
		return false;
	row_least(out, row);
	fputs(" to ", out);
	row_most(out, row);
	return true;
}
