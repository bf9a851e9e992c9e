/* SPDX-License-Identifier: MIT */
/* `weir why --shed ID`: explains why one request was refused. */
#ifndef WEIR_CLI_WHY_SHED_H
#define WEIR_CLI_WHY_SHED_H

#include <stdbool.h>

#include "cli/verb.h"

/**
 * Print a sentence about the refusal with id `id`, using the names of stages and classes from the
 * server at `url`. If there is no server, or if it was started after the refusal, the sentence has
 * numbers instead of names, and a note is printed on stderr. With `json`, the facts are printed as
 * JSON (docs/json.md). Returns VERB_OK, VERB_FINDING if memory ran out, or VERB_USAGE if `id`
 * is invalid.
 */
int why_shed(const char *id, const char *url, bool json);

#endif
