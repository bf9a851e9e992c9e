/* SPDX-License-Identifier: MIT */
/* Loading configurations in tests, from a text or a file, with the resulting messages. */
#ifndef WEIR_TESTS_CONFIG_LOADING_H
#define WEIR_TESTS_CONFIG_LOADING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/spec.h>

#include "config.h"
#include "cunit_main.h"
#include "unit/config/types.h"

/** Errors of the last load. */
extern struct weir_errs loading_errs;

/** Messages of the last load as a user sees them; valid until the next call. */
const char *loading_said(void);

/** Load `text` as "t.yaml"; NULL if it is refused. The caller frees the spec. */
struct weir_spec *load_text(const char *text);

/** Load a file with overrides; NULL if it is refused. */
struct weir_spec *load_path(const char *path, const char *const *sets, int n_sets);

/** Load a text that must be valid; otherwise print the messages and fail the test. */
struct weir_spec *load_good(const char *text);

/** Load a text that must be refused. Returns the first message. */
const char *load_bad(const char *text);
const struct weir_stage_spec *stage_of(const struct weir_spec *spec, const char *name);

/** Write `text` to the file `path`. */
void write_file(const char *path, const char *text);

/** Create and enter a new folder. Returns its name; the test fails if that is impossible. */
const char *enter_folder(void);

/** Leave a folder made by enter_folder, and remove it. */
void leave_folder(const char *path);

/** Capture what a printing function writes: capture_begin returns the stream, capture_end the text,
 * which is valid until the next capture_begin. */
extern char *captured;

FILE *capture_begin(void);

const char *capture_end(FILE *out);

/** Free the text of the last capture. */
void capture_free(void);

#endif
