/* SPDX-License-Identifier: MIT */
/*
 * Shows stages that are not running normally according to /api/v1/stages: those that an operator
 * has paused or drained, and those in trouble. Also shows the width of every stage that has one,
 * the clients of sources whose I/O threads have a limit of them, and where events wait for their
 * children.
 * Used by `weir ps` and `weir why`.
 */
#ifndef WEIR_CLI_STAGE_STATE_H
#define WEIR_CLI_STAGE_STATE_H

#include <stddef.h>

#include <jansson.h>

/** Return the state into which an operator has put `stage`, an element of `stages`: "paused",
 *  "drained" or "being drained"; NULL if it is running. The text is static or belongs to
 *  `stage`. */
const char *stage_held(const json_t *stage);

/** Print "NAME is paused by an operator, 12 waiting\n" for each of `stages` that is paused or
 *  drained. */
void stages_held_print(const json_t *stages);

/** Describe the width of `stage` in text[size]: "61 of 64 under way, 18 ms each, 312/s; widening
 *  stopped helping at 64"; "" if the stage has no width. */
void stage_width_text(const json_t *stage, char *text, size_t size);

/** Print "NAME: 61 of 64 under way ...\n" for each of `stages` that has a width. */
void stages_width_print(const json_t *stages);

/** Describe the clients of `stage`, a source with a limit of clients per I/O thread, in text[size]:
 *  "4 of 4 I/O threads full (per_thread: 1), 1 with an idle client; 12 more clients wait: raise
 *  'threads'"; "" for other stages. */
void stage_clients_text(const json_t *stage, char *text, size_t size);

/** Print "NAME: 4 of 4 I/O threads full ...\n" for each of `stages` that has such a limit. */
void stages_clients_print(const json_t *stages);

/** Describe the events of `stage`, one of `stages`, that wait for their children, in text[size]: "12
 *  events wait for children, 40 of which are in flight; of the stages after it, disk has most in
 *  flight, 35"; "" if none waits. The stages at which the children are cannot be known exactly. */
void stage_awaits_text(const json_t *stage, const json_t *stages, char *text, size_t size);

/** Print "NAME: 12 events wait for children ...\n" for each of `stages` where events do. */
void stages_awaits_print(const json_t *stages);

/** Print "NAME is in trouble: REASON\n" for each of `stages` that is in trouble. */
void stages_trouble_print(const json_t *stages);

/** The request whose response stage_rate reads. */
#define STAGE_HISTORY_PATH "/api/v1/history?from=-3&step=1s"

/** Return the last known value of column `key` ("in", "shed", "wait_p99") of the stage called
 *  `name` in `history`, the response of STAGE_HISTORY_PATH; -1 if there is none. */
double stage_rate(const json_t *history, const char *name, const char *key);

#endif
