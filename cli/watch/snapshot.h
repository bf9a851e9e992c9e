/* SPDX-License-Identifier: MIT */
/* The parts of `weir snapshot`: the responses of the server, and the configuration without secrets.
 * Main thread. */
#ifndef WEIR_CLI_SNAPSHOT_H
#define WEIR_CLI_SNAPSHOT_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "report/format.h"

/** The text that replaces a secret. */
#define SNAPSHOT_LEFT_OUT "(left out)"

/** Responses of the API, owned. */
struct snapshot {
	json_t *index, *stages, *graph, *overload, *alerts, *history, *decisions, *changes, *config;
};

/** A chart of one field of the history. */
struct snapshot_curve {
	const char *field, *title, *unit, *about;
	bool worst; /* a point is the maximum over its seconds instead of the mean */
	format_fn *print;
};

/** Return whether a key such as "password" or "with.api_key" holds a secret. A key that ends in
 *  "_file" does not: its value is the name of a file that contains one. */
bool snapshot_is_secret(const char *key);

/**
 * Return a line of YAML without anything that looks like a secret. The caller frees it; NULL if out
 * of memory. Three things are left out: the values of keys that hold a secret, the user and
 * password of a URL, and the rest of a comment after the name of a secret.
 *
 * `*indent` is the state between lines: the indentation of a key whose secret may continue on the
 * following lines, or -1. It must be -1 before the first line.
 */
char *snapshot_line(const char *line, size_t n, int *indent);

/** Print the files of /api/v1/config as a section of the page. Returns 0 or WEIR_ENOMEM. */
int snapshot_config(FILE *out, const json_t *config);

#endif
