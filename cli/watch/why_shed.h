/* SPDX-License-Identifier: MIT */
/* `weir why --shed ID`: why one request was refused. */
#ifndef WEIR_CLI_WHY_SHED_H
#define WEIR_CLI_WHY_SHED_H

#include "cli/verb.h"

/**
 * Print one sentence about the refusal with id `id`, with names from the server at `url`. Without a
 * server, or if it was started after the refusal, print numbers and a note on stderr. VERB_OK, or
 * VERB_USAGE if `id` is invalid.
 */
int why_shed(const char *id, const char *url);

#endif
