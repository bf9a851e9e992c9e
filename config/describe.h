/* SPDX-License-Identifier: MIT */
/* Parts of `weir describe TYPE` (describe.c). */
#ifndef WEIR_CONFIG_DESCRIBE_H
#define WEIR_CONFIG_DESCRIBE_H

#include <stdio.h>

#include <weir/stage.h>

/** Width of the column of names. */
#define NAME_WIDTH 16

/** A section or another map of the YAML that `describe` knows by `name`. */
struct described {
	const char *name, *head;
	const struct weir_knob *rows;
};

/** Return what is known of the section called `name`, or NULL. */
const struct described *describe_section(const char *name);

/** Write the payloads that stages of this type need, give and take, and their fields. */
void describe_payloads(FILE *out, const struct weir_stage_ops *ops);

#endif
