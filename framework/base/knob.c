/* SPDX-License-Identifier: MIT */
/* Finds rows of knob tables, sets defaults, and frees what members own. */
#include "base/knob_in.h"

#include <stdlib.h>
#include <string.h>

/* Size of the buffer for error messages about defaults; these messages are never shown. */
#define DEFAULT_BYTES 256

const struct weir_knob *weir_knob_find(const struct weir_knob *table, const char *name)
{
	for (const struct weir_knob *row = table; row && row->name; row++)
		if (strcmp(row->name, name) == 0)
			return row;
	return NULL;
}

size_t knob_choice(const char **choices)
{
	size_t n = strcspn(*choices, "|");

	*choices = (*choices)[n] ? *choices + n + 1 : NULL;
	return n;
}

int knob_strings_add(struct weir_strings *list, const char *text, size_t n)
{
	char **items = realloc(list->items, ((size_t)list->n + 1) * sizeof(*items));

	if (!items)
		return WEIR_ENOMEM;
	list->items = items;
	items[list->n] = strndup(text, n);
	if (!items[list->n])
		return WEIR_ENOMEM;
	list->n++;
	return 0;
}

/* Set a list to its default, which has the form "a, b". */
static int init_strings(const struct weir_knob *row, struct weir_strings *list)
{
	for (const char *p = row->def; *p;) {
		size_t n = strcspn(p, ",");
		if (knob_strings_add(list, p, n) != 0)
			return WEIR_ENOMEM;
		p += n;
		p += strspn(p, ", ");
	}
	return 0;
}

static int init_member(const struct weir_knob *row, void *base)
{
	char why[DEFAULT_BYTES];

	if (row->type == WEIR_KNOB_MAP)
		return weir_knobs_init(row->fields, knob_member(row, base));
	if (!row->def || row->type == WEIR_KNOB_RECORDS)
		return 0;
	if (row->type == WEIR_KNOB_STRINGS)
		return init_strings(row, knob_member(row, base));
	int rc = weir_knob_parse(row, row->def, base, why, sizeof(why));
	WEIR_ASSERT(rc != WEIR_EINVAL); /* else the table has an invalid default */
	return rc;
}

int weir_knobs_init(const struct weir_knob *table, void *base)
{
	for (const struct weir_knob *row = table; row && row->name; row++)
		if (init_member(row, base) != 0) {
			weir_knobs_fini(table, base);
			return WEIR_ENOMEM;
		}
	return 0;
}

static void clear_strings(struct weir_strings *list)
{
	for (int i = 0; i < list->n; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct weir_strings){0};
}

static void clear_records(const struct weir_knob *row, struct weir_records *list)
{
	for (int i = 0; i < list->n; i++)
		weir_knobs_fini(row->fields, list->items + (size_t)i * row->record_size);
	free(list->items);
	*list = (struct weir_records){0};
}

void knob_clear(const struct weir_knob *row, void *base)
{
	void *member = knob_member(row, base);

	switch (row->type) {
	case WEIR_KNOB_STRING:
		free(*(char **)member);
		*(char **)member = NULL;
		break;
	case WEIR_KNOB_STRINGS:
		clear_strings(member);
		break;
	case WEIR_KNOB_RECORDS:
		clear_records(row, member);
		break;
	case WEIR_KNOB_MAP:
		weir_knobs_fini(row->fields, member);
		break;
	case WEIR_KNOB_BOOL:
		*(bool *)member = false;
		break;
	case WEIR_KNOB_ENUM:
		*(int *)member = 0;
		break;
	case WEIR_KNOB_RATE:
	case WEIR_KNOB_RATIO:
		*(double *)member = 0;
		break;
	case WEIR_KNOB_INT:
	case WEIR_KNOB_BYTES:
	case WEIR_KNOB_DURATION:
		*(int64_t *)member = 0;
		break;
	}
}

void weir_knobs_fini(const struct weir_knob *table, void *base)
{
	for (const struct weir_knob *row = table; row && row->name; row++)
		knob_clear(row, base);
}
