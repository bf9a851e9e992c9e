/* SPDX-License-Identifier: MIT */
/* Media types by file name. */
#ifndef WEIR_STAGES_FILE_MIME_H
#define WEIR_STAGES_FILE_MIME_H

/** The media type of the file `name`, by its last extension, ignoring case. Text types include
 * charset=utf-8; unknown files are "application/octet-stream". Static storage. Any thread. */
const char *mime_type(const char *name);

#endif
