/* SPDX-License-Identifier: MIT */
/* Internals of knobs, shared by the files knob*.c. The interface is weir/knob.h. */
#ifndef WEIR_BASE_KNOB_IN_H
#define WEIR_BASE_KNOB_IN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/knob.h>

#include "base/text.h"

/** The number that represents `auto`. */
#define KNOB_AUTO (-1)

/** A unit: the suffix after the number, and the factor to base units. Tables list small units first
 *  and end with a NULL suffix. */
struct knob_unit {
	const char *suffix;
	int64_t factor;
};

/** Return the units of a numeric type, or NULL for other types. */
const struct knob_unit *knob_units(enum weir_knob_type type);

/** Return the member of `base` that `row` describes. */
static inline void *knob_member(const struct weir_knob *row, void *base)
{
	return (char *)base + row->offset;
}

static inline const void *knob_member_const(const struct weir_knob *row, const void *base)
{
	return (const char *)base + row->offset;
}

/** Whether `type` has single values, unlike STRINGS, RECORDS and MAP. */
static inline bool knob_is_scalar(enum weir_knob_type type)
{
	return type < WEIR_KNOB_STRINGS;
}

/** Set *min and *max to the range that `row` allows, in base units. Returns false if the row has no
 *  bounds. */
bool knob_bounds(const struct weir_knob *row, double *min, double *max);

/** Parse the number `text` for `row` and check its range. The value of an INT, BYTES or DURATION is
 *  stored in *whole, that of a RATE or RATIO in *real. Returns 0, or WEIR_EINVAL with a message in
 *  why[size]. */
int knob_parse_number(const struct weir_knob *row, const char *text, int64_t *whole, double *real,
    char *why, size_t size);

/** Print a number of `type` in base units as a user would write it. */
void knob_put_whole(struct text_out *out, enum weir_knob_type type, int64_t value);
void knob_put_real(struct text_out *out, enum weir_knob_type type, double value);

/** Free what the member owns, and zero the member. */
void knob_clear(const struct weir_knob *row, void *base);

/** Append a copy of text[n]. Returns 0 or WEIR_ENOMEM. */
int knob_strings_add(struct weir_strings *list, const char *text, size_t n);

/** Return the length of the choice at `*choices`. `*choices` advances to the next choice, or
 *  becomes NULL after the last one. */
size_t knob_choice(const char **choices);

#endif
