/* SPDX-License-Identifier: MIT */
/* `weir why --shed ID`: why one request was refused. */
#ifndef WEIR_CLI_WHY_SHED_H
#define WEIR_CLI_WHY_SHED_H

#include "verb.h"

/**
 * Print one sentence about the refusal with id `id`, with the names that the server at `url` has; without a
 * server, or with one that was started later, numbers, and a note on stderr. VERB_OK, or VERB_USAGE when `id` is none.
 */
int why_shed(const char *id, const char *url);

#endif
