/* SPDX-License-Identifier: MIT */
/*
 * Functions shared by the verbs that communicate with a running server: they send requests, report
 * failures, and parse and format values. Main thread.
 */
#ifndef WEIR_CLI_ACT_H
#define WEIR_CLI_ACT_H

#include <jansson.h>

#include "verb.h"

/** Size of a buffer for the path of a request, with its NUL. */
#define ACT_PATH_MAX 512

/**
 * Send a request with `method` and `body`, which may be NULL, to `path` of the server that `args`
 * selects. Returns VERB_OK with the response in *doc, a new reference. Otherwise, the reason is
 * printed on stderr, and the result is VERB_FINDING (the server refused the request), VERB_USAGE
 * (invalid URL, unknown stage or knob) or VERB_UNREACHABLE.
 */
int act_ask(const struct verb *verb, const struct verb_args *args, const char *method,
    const char *path, const char *body, json_t **doc);

/** What the name of a class begins with where it is the owner of a knob. */
#define ACT_CLASSES "classes."

/** Return whether `name` can be part of a path of the API. If not, the reason is printed on stderr,
 *  and the caller should return VERB_USAGE. */
bool act_name_fits(const struct verb *verb, const char *name);

/** Return the member `key` of `map` if it is a string, otherwise "". */
const char *act_text(const json_t *map, const char *key);

/** Latest Unix time accepted from a server, in seconds: the year 5138. */
#define ACT_TIME_MAX 1e11

/** Format the Unix time `at` as local time, "10:41:02.114". A time that is not between 0 and
 *  ACT_TIME_MAX is shown as time 0. */
const char *act_time(char buf[32], double at);

/** Format a duration: "35us", "1.2ms", "2.5s"; "-" for negative values. */
const char *act_duration(char buf[32], double seconds);

/** Format a rate in at most five characters: "0", "3.25", "912", "120k"; "-" for negative values. */
const char *act_rate(char buf[16], double per_second);

/** Set *n to the value of -n, a number from 1 to `max`. Without -n, *n is unchanged. If the value
 *  is invalid, returns false and prints the reason on stderr. */
bool act_count(const struct verb *verb, const struct verb_args *args, int max, int *n);

/** Print `doc` as JSON with the `flags` of json_dumps, followed by a newline. */
void act_print_json(const json_t *doc, size_t flags);

/** Whether a stage of `graph` (/api/v1/graph) is in the group `name`. */
bool act_is_group(const json_t *graph, const char *name);

/** Print `doc` as indented JSON and release the reference. Returns VERB_OK. */
int act_print(json_t *doc);

#endif
