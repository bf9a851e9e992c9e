/* SPDX-License-Identifier: MIT */
/*
 * Variables: a payload (weir/payload.h) of up to WEIR_VARS_MAX named texts and numbers of an event. In
 * the configuration, `vars.NAME` is a field. A stage type that sets variables lists weir_vars_type in
 * `gives`, one that reads them in `needs`.
 *
 * The owner of the event calls these functions, in a thread of the graph.
 */
#ifndef WEIR_VARS_H
#define WEIR_VARS_H

#include <weir/payload.h>

WEIR_C_BEGIN

/** Largest number of variables of an event. */
#define WEIR_VARS_MAX 16

/** Maximum length of the name of a variable in bytes, excluding the NUL. */
#define WEIR_VAR_NAME_MAX 23

/** Maximum length of a text in bytes. 64 KiB is a choice: longer texts deserve a payload type. */
#define WEIR_VAR_TEXT_MAX 65536

struct weir_vars;

/** The payload type, called "vars". */
WEIR_API extern const struct weir_payload_type weir_vars_type;

/** The variables of `ev`, which are made if the event has none. Returns NULL where weir_payload_new
 *  does. */
WEIR_API struct weir_vars *weir_vars(struct weir_stage *st, struct weir_event *ev);

/**
 * Set the variable `name` to a copy of `text`. Returns 0, or, with the variable unchanged, WEIR_EINVAL
 * if the name is empty or too long or the text is too long, WEIR_EBUSY if there are WEIR_VARS_MAX
 * other variables, or WEIR_ENOMEM if out of memory or if `vars` is NULL. Texts of at most 23 bytes need no allocation; costs about 20 ns.
 */
WEIR_API int weir_vars_set(struct weir_vars *vars, const char *name, struct weir_slice text);

/** Set the variable `name` to a number, which also counts as a text of decimal digits. Returns the
 *  codes of weir_vars_set. */
WEIR_API int weir_vars_set_number(struct weir_vars *vars, const char *name, int64_t number);

/** The text of the variable `name`, valid until it is set again or `vars` is dropped; {NULL, 0} if it
 *  was not set. An empty text has a `p` that is not NULL. Costs about 10 ns. */
WEIR_API struct weir_slice weir_vars_get(const struct weir_vars *vars, const char *name);

/** Store the number of the variable `name` in *number. Returns false if it was not set, or its text is
 *  not a decimal number that fits. */
WEIR_API bool weir_vars_number(const struct weir_vars *vars, const char *name, int64_t *number);

WEIR_C_END

#endif
