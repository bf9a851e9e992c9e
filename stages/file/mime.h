/* SPDX-License-Identifier: MIT */
/* Media types by file name. One table, sorted, in mime.c. */
#ifndef WEIR_STAGES_FILE_MIME_H
#define WEIR_STAGES_FILE_MIME_H

/** The media type of a file called `name` by its last extension, without case, with charset=utf-8
 *  for text; "application/octet-stream" when it is not known. Static storage. Any thread. */
const char *mime_type(const char *name);

#endif
