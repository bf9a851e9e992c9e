/* SPDX-License-Identifier: MIT */
/*
 * What the verbs that talk to a running server share: asking, and telling why it did not work.
 * Main thread.
 */
#ifndef WEIR_CLI_ACT_H
#define WEIR_CLI_ACT_H

#include <jansson.h>

#include "verb.h"

/** Longest path of a request. */
#define ACT_PATH_MAX 512

/**
 * Send `body` (NULL: none) with `method` to `path` of the server of `args`. *doc is the answer, a new
 * reference, when VERB_OK is returned; otherwise the reason is on stderr: VERB_FINDING (the server says
 * no), VERB_USAGE (no such URL, stage or knob), VERB_UNREACHABLE.
 */
int act_ask(const struct verb *verb, const struct verb_args *args, const char *method,
    const char *path, const char *body, json_t **doc);

/** May `name` stand in a path of the API? Else VERB_USAGE is due, and the reason is on stderr. */
bool act_name_fits(const struct verb *verb, const char *name);

/** The member `key` of `map` as a text, "" when it is none. */
const char *act_text(const json_t *map, const char *key);

/** "10:41:02.114", local time of Unix time `at`. */
const char *act_time(char buf[32], double at);

/** "35us", "1.2ms", "2.5s"; "-" below 0. */
const char *act_duration(char buf[32], double seconds);

/** -n as a number of 1 to `max`, `n` unchanged without; false: the reason is on stderr. */
bool act_count(const struct verb *verb, const struct verb_args *args, int max, int *n);

/** Print `doc` as JSON and drop the reference. VERB_OK. */
int act_print(json_t *doc);

#endif
