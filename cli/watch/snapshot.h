/* SPDX-License-Identifier: MIT */
/* The parts of `weir snapshot`: the responses of the server, and the configuration without its
 * secrets. Main thread. */
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
	json_t *index, *stages, *graph, *overload, *alerts, *history, *decisions, *acts, *config;
};

/** A chart of one field of the history. */
struct snapshot_curve {
	const char *field, *title, *unit, *about;
	bool worst; /* a point shows the largest value of its seconds instead of the mean */
	format_fn *print;
};

/** Whether `key` names a secret ("password", "with.api_key"). A key that ends in "_file" names a
 *  file with a secret and is not one itself. */
bool snapshot_is_secret(const char *key);

/**
 * Return a line of YAML without anything that looks like a secret, malloc'ed; NULL if out of
 * memory. `*indent` carries state from line to line: it is -1 at first, and then the indentation of
 * a key whose secret may continue below, or -1. The values of keys that name a secret, the user and
 * password of a URL, and everything after the name of a secret in a comment are left out.
 */
char *snapshot_line(const char *line, size_t n, int *indent);

/** Print the files of /api/v1/config as sections of the page. 0 or WEIR_ENOMEM. */
int snapshot_config(FILE *out, const json_t *config);

#endif
