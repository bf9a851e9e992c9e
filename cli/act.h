/* SPDX-License-Identifier: MIT */
/*
 * Functions shared by the verbs that talk to a running server: sending a request and reporting why
 * it failed. Main thread.
 */
#ifndef WEIR_CLI_ACT_H
#define WEIR_CLI_ACT_H

#include <jansson.h>

#include "verb.h"

/** Longest path of a request. */
#define ACT_PATH_MAX 512

/**
 * Send `body`, which may be NULL, with `method` to `path` of the server that `args` selects. On
 * VERB_OK, *doc is the response, a new reference. Otherwise the reason is on stderr: VERB_FINDING
 * (refused by the server), VERB_USAGE (unknown URL, stage or knob), VERB_UNREACHABLE.
 */
int act_ask(const struct verb *verb, const struct verb_args *args, const char *method,
    const char *path, const char *body, json_t **doc);

/** Whether `name` can be part of a path of the API. If not, the reason is on stderr and the caller
 *  returns VERB_USAGE. */
bool act_name_fits(const struct verb *verb, const char *name);

/** Return the member `key` of `map` as a string, "" if it is not one. */
const char *act_text(const json_t *map, const char *key);

/** Latest time accepted from a server, in Unix time: the year 5138. */
#define ACT_TIME_MAX 1e11

/** Format Unix time `at` as local time, "10:41:02.114". If `at` is not between 0 and ACT_TIME_MAX,
 *  time 0 is shown. */
const char *act_time(char buf[32], double at);

/** Format a duration: "35us", "1.2ms", "2.5s"; "-" for negative values. */
const char *act_duration(char buf[32], double seconds);

/** Parse -n as a number from 1 to `max`; `n` is unchanged without -n. Returns false with the reason
 *  on stderr. */
bool act_count(const struct verb *verb, const struct verb_args *args, int max, int *n);

/** Print `doc` as JSON with `flags` of json_dumps, and a newline. */
void act_print_json(const json_t *doc, size_t flags);

/** Print `doc` as indented JSON and drop the reference. Returns VERB_OK. */
int act_print(json_t *doc);

#endif
