/* SPDX-License-Identifier: MIT */
/* Describes core groups in words, for `explain` and `graph`. */
#ifndef WEIR_CONFIG_GROUPS_H
#define WEIR_CONFIG_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <weir/spec.h>

/** Whether the group is a core group. */
bool group_is_core(const struct weir_group_spec *group);

/** Write "wavefront, 2 cores, gate time: 10ms" to buf[size]. */
void group_brief(
    const struct weir_spec *spec, const struct weir_group_spec *group, char *buf, size_t size);

/** Write what the settings of a core group mean as sentences, each on a line after "# ". */
void group_words(const struct weir_spec *spec, const struct weir_group_spec *group, FILE *out);

/** The same as one line without the marks of comments. The caller frees it. Returns NULL if out of
 *  memory. */
char *group_note(const struct weir_spec *spec, const struct weir_group_spec *group);

#endif
