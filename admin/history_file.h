/* SPDX-License-Identifier: MIT */
/*
 * The history in a file, so that it survives a restart: `admin: { history: { file: PATH } }`.
 *
 *   header    "WEIRHIST", version, sizes, names of stages and classes, checksum
 *   slots     those of HISTORY_1S, then of HISTORY_10S, each with its label and a checksum
 *
 * The file has its full size from the start (6 MB for 30 stages with 4 classes) and is replaced as a
 * whole, by a rename, when stages or classes change; a step writes its slot in place. So a crash
 * spoils at most the slot that was being written, which is a gap after the next start. What is no
 * whole file of this version is renamed to PATH.bad and a new one begun. Numbers are in the
 * machine's byte order.
 *
 * Nothing here stops a server: what fails is logged, once each time it begins, and the history is
 * then in memory alone. Writes go to the page cache and are not synced: a power cut may cost the
 * file. It belongs on a local disk, since a write that hangs would hold the admin thread. A second
 * server with the same PATH finds it locked and keeps its history in memory. One thread.
 */
#ifndef WEIR_ADMIN_HISTORY_FILE_H
#define WEIR_ADMIN_HISTORY_FILE_H

#include "history.h"

struct history_file;

/** Read what `path` has into `history`, which is empty, and keep the file for history_file_save.
 *  NULL when it can not be used, which is logged. */
struct history_file *history_file_open(const char *path, struct history *history);

/** Write the newest slots of `rings`, bits as history_feed returns them. About 10 us; about 5 ms
 *  when stages have changed. */
void history_file_save(struct history_file *file, const struct history *history, unsigned rings);

/** Did the last call fail? NULL: no. */
bool history_file_failing(const struct history_file *file);

/** NULL is allowed. The file stays. */
void history_file_close(struct history_file *file);

#endif
