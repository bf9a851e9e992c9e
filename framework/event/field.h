/* SPDX-License-Identifier: MIT */
/* A resolved field of the configuration: of the events themselves, or of a payload on them. */
#ifndef WEIR_EVENT_FIELD_H
#define WEIR_EVENT_FIELD_H

#include <stdio.h>

#include <weir/payload.h>

/** Size of the buffer that field_text may use for a number. */
#define FIELD_NUMBER_BYTES 24

/** A field. Either `field` is set, or `payload` and `of_payload` are; all are NULL if there is no
 *  field. */
struct field_ref {
	const struct weir_field *field;
	const struct weir_payload_type *payload;
	const struct weir_payload_field *of_payload;
	const char *arg; /* for fields that take an argument; owned by the stage or class */
};

static inline bool field_found(const struct field_ref *f)
{
	return f->field || f->of_payload;
}

/** The value of a payload's field in `ev`, written to `digits` if it is a number. Returns {NULL, 0} if
 *  the event has no such payload, or the payload has no such value. */
struct weir_slice field_of_payload(
    const struct field_ref *f, const struct weir_event *ev, char digits[FIELD_NUMBER_BYTES]);

/** The value of the field in `ev`. It is valid as long as the event, its payloads and `digits`. Called
 *  by the owner of the event. */
static inline struct weir_slice field_text(
    const struct field_ref *f, const struct weir_event *ev, char digits[FIELD_NUMBER_BYTES])
{
	return WEIR_LIKELY(f->field != NULL) ? f->field->get(ev, f->arg)
					     : field_of_payload(f, ev, digits);
}

/** The value of the field as a key (weir_hash). */
static inline uint64_t field_key(const struct field_ref *f, const struct weir_event *ev)
{
	char digits[FIELD_NUMBER_BYTES];

	return weir_hash(field_text(f, ev, digits));
}

/** Store the value of the field in *number. A text counts as a number if it has only digits, with
 *  or without a point; a fraction is ignored. Returns whether there is a number. */
bool field_number(const struct field_ref *f, const struct weir_event *ev, uint64_t *number);

#endif
