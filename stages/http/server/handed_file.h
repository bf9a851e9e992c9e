/* SPDX-License-Identifier: MIT */
/*
 * Files of responses whose rest is sent by another server after a handover (handed.h). Responses of
 * one I/O thread with the same file share one descriptor. A cached file that many slow clients
 * download therefore takes one descriptor per I/O thread after a reload, rather than one per
 * client. No position is shared: each response has its offset.
 */
#ifndef WEIR_HTTP_HANDED_FILE_H
#define WEIR_HTTP_HANDED_FILE_H

#include "http/conn/io.h"

/** Return the file of `fd` with a reference, from `files` or as a new duplicate of `fd`. Returns
 * NULL if out of memory or descriptors. Only in the thread of `files`. */
struct handed_file *handed_file_get(struct handed_files *files, int fd);

/** The descriptor, valid while the caller has its reference. Any thread. */
int handed_file_fd(const struct handed_file *f);

/** Drop a reference; the last one closes the file. NULL is allowed. Any thread. */
void handed_file_put(struct handed_file *f);

/** Forget the files, which live on while responses refer to them. */
void handed_files_forget(struct handed_files *files);

#endif
