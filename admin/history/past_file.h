/* SPDX-License-Identifier: MIT */
/*
 * Stores the decisions and changes of a server in a file beside its history, PATH.log, so that they
 * survive a restart.
 *
 *   header    "WEIRPAST", version, sizes, checksum
 *   slots     PAST_DECISIONS decisions, then PAST_CHANGES changes, each with a checksum
 *
 * The file has its full size from the start (400 KB). It has the properties of the history file
 * (history_file.h): the first save replaces it as a whole by a rename, later ones write slots in
 * place, so a crash damages at most the slots that are being written, and these are left out at the
 * next start; a file that is incomplete or has another version is renamed to PATH.log.bad; nothing
 * is synced; a thread writes (history_writer.h); failures are logged once and stop nothing; the file
 * is locked. A slot is written again when an outcome or an undo changes it. All functions are called
 * by one thread.
 */
#ifndef WEIR_ADMIN_PAST_FILE_H
#define WEIR_ADMIN_PAST_FILE_H

#include <stdbool.h>

#include <weir/graph.h>

/** Numbers of decisions and changes that are kept: those that a graph keeps. */
#define PAST_DECISIONS 512
#define PAST_CHANGES   256

/** Decisions and changes, each in the order of their ids. */
struct past {
	int n_decisions, n_changes;
	struct weir_decision decision[PAST_DECISIONS];
	struct weir_change change[PAST_CHANGES];
};

struct past_file;

/** Load the file that belongs to the history at `history_path` into `past`, and keep it open for
 *  past_file_save. If the file cannot be used, logs the reason and returns NULL. */
struct past_file *past_file_open(const char *history_path, struct past *past);

/** Start writing what has changed since the last save; `past` has the newest first. Does not wait: if
 *  the writer is busy, or if more has changed than one job can hold, a later call goes on. Returns
 *  whether everything in `past` is in the file. Takes about 0.3 ms. */
bool past_file_save(struct past_file *file, const struct past *past);

/** Wait until the writer is idle, without a time limit: for tests. */
void past_file_wait(struct past_file *file);

/** Write what is missing of `past` (nothing if it is NULL), for at most a second, and free `file`, which
 *  may be NULL. The file on disk remains. */
void past_file_close(struct past_file *file, const struct past *past);

#endif
