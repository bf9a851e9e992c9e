/* SPDX-License-Identifier: MIT */
/* The parts of `weir snapshot`: what was asked for, and the configuration without its secrets. Main thread. */
#ifndef WEIR_CLI_SNAPSHOT_H
#define WEIR_CLI_SNAPSHOT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "report/format.h"

/** What stands in place of a secret. */
#define SNAPSHOT_LEFT_OUT "(left out)"

/** Answers of the API, owned. */
struct snapshot {
	json_t *index, *stages, *graph, *overload, *alerts, *history, *decisions, *acts, *config;
};

/** A chart of one field of the history. */
struct snapshot_curve {
	const char *field, *title, *unit, *about;
	bool worst; /* of a point's seconds the largest value, else the mean */
	format_fn *print;
};

/** Does `key` name a secret ("password", "with.api_key")? A key that ends in "_file" names a file that holds one, and
 *  is none. */
bool snapshot_is_secret(const char *key);

/**
 * A line of YAML without what looks like a secret, on the heap; NULL without memory. `*indent` carries on from line to
 * line: -1 at first; else the indentation of a key whose secret may go on below. Left out are the values of keys that name a
 * secret, the name and password of an URL, and what follows such a word in a comment.
 */
char *snapshot_line(const char *line, size_t n, int *indent);

/** The files of /api/v1/config as sections of the page. 0 or WEIR_ENOMEM. */
int snapshot_config(FILE *out, const json_t *config);

#endif
