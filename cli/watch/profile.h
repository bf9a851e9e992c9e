/* SPDX-License-Identifier: MIT */
/* The profile of a window of time, from two answers of /api/v1/profile (profile_window.c). */
#ifndef WEIR_CLI_PROFILE_H
#define WEIR_CLI_PROFILE_H

#include <jansson.h>

/**
 * Return what `now` counts more than `then`, an earlier answer of the same server, as a new
 * reference: means and longest waits in place of sums and buckets. If the graph has been replaced
 * in between, all that `now` counts. Returns NULL if `now` is not such an answer, or if out of
 * memory.
 */
json_t *profile_window(const json_t *then, const json_t *now);

#endif
