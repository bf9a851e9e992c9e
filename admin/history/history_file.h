/* SPDX-License-Identifier: MIT */
/*
 * Stores the history in a file, so that it survives a restart. The setting is
 * `admin: { history: { file: PATH } }`.
 *
 *   header    "WEIRHIST", version, sizes, names of stages and classes, checksum
 *   slots     those of HISTORY_1S, then of HISTORY_10S, each with its label and a checksum
 *
 * The file has its full size from the start (9 MB for 30 stages with 4 classes). When stages or
 * classes change, a new file replaces it by a rename. Otherwise each step writes its slot in place,
 * so a crash damages at most the slot that is being written. A damaged slot becomes a gap after the
 * next start. A file that is incomplete or has another version is renamed to PATH.bad, and a new
 * one is created. Numbers are in the host's byte order.
 *
 * A failure in this module never stops the server. If the file cannot be used at startup, the
 * history is in memory only. If a write fails, it is tried again later. Only the first of several
 * failures is logged. A separate thread writes the file (history_writer.h), so a slow disk delays
 * nothing else; slots that were missed are written later. Writes go to the page cache and are not
 * synced: a power failure may destroy the file. At startup the server waits until the file has been
 * read, so the file belongs on a local disk. A second server with the same PATH finds the file
 * locked and has its history in memory only. All functions are called by one thread.
 */
#ifndef WEIR_ADMIN_HISTORY_FILE_H
#define WEIR_ADMIN_HISTORY_FILE_H

#include "history.h"

struct history_file;

/** Load the file at `path` into `history`, which is empty, and keep the file open for
 *  history_file_save. If the file cannot be used, logs the reason and returns NULL. */
struct history_file *history_file_open(const char *path, struct history *history);

/** Start writing the part of `history` that is missing in the file; `rings` is the result of
 *  history_feed. Does not wait: if the writer is busy, nothing is written, and a later call catches
 *  up. Takes about 10 us, or about 5 ms when stages have changed. */
void history_file_save(struct history_file *file, const struct history *history, unsigned rings);

/** Wait until the writer is idle, without a time limit: for tests and benchmarks. */
void history_file_wait(struct history_file *file);

/** Return whether the last write failed, or a write has been running for too long. Returns false
 *  for NULL. */
bool history_file_failing(const struct history_file *file);

/** Write the part of `history` that is missing in the file (nothing if it is NULL) and free `file`.
 *  If the write takes longer than 1 s, does not wait for its end and logs that the history was not
 *  saved. `file` may be NULL. The file on disk remains. */
void history_file_close(struct history_file *file, const struct history *history);

#endif
