/* SPDX-License-Identifier: MIT */
/* Knobs inside base: what init, parse, print and bind share. The contract is weir/knob.h. */
#ifndef WEIR_BASE_KNOB_IN_H
#define WEIR_BASE_KNOB_IN_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/knob.h>

#include "base/text.h"

/** What `auto` is stored as. */
#define KNOB_AUTO (-1)

/** A unit of a type: what is written behind the number, and how much it is in base units. Tables
 *  end with NULL, small units first. */
struct knob_unit {
	const char *suffix;
	int64_t factor;
};

/** Units of a type of number, NULL for other types. */
const struct knob_unit *knob_units(enum weir_knob_type type);

/** The member of `base` that `row` describes. */
static inline void *knob_member(const struct weir_knob *row, void *base)
{
	return (char *)base + row->offset;
}

static inline const void *knob_member_const(const struct weir_knob *row, const void *base)
{
	return (const char *)base + row->offset;
}

/** Is it one value, as opposed to STRINGS, RECORDS and MAP? */
static inline bool knob_is_scalar(enum weir_knob_type type)
{
	return type < WEIR_KNOB_STRINGS;
}

/** The least and the most that `row` allows, in base units; false: no bounds. */
bool knob_bounds(const struct weir_knob *row, double *min, double *max);

/** Parse the number `text` of `row` (INT, BYTES, DURATION: into *whole; RATE, RATIO: *real), range
 *  checked. 0, or WEIR_EINVAL with the sentence in `why`. */
int knob_parse_number(const struct weir_knob *row, const char *text, int64_t *whole, double *real,
    char *why, size_t size);

/** A number of `type` in base units as a user would write it. */
void knob_put_whole(struct text_out *out, enum weir_knob_type type, int64_t value);
void knob_put_real(struct text_out *out, enum weir_knob_type type, double value);

/** Free what the member owns and zero it. */
void knob_clear(const struct weir_knob *row, void *base);

/** Append a copy of text[n]. 0 or WEIR_ENOMEM. */
int knob_strings_add(struct weir_strings *list, const char *text, size_t n);

/** Length of choice `*choices` points at, which moves to the next one (or to NULL). */
size_t knob_choice(const char **choices);

#endif
