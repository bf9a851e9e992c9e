/* SPDX-License-Identifier: MIT */
/* Directory listings as HTML or JSON. Calls block on the disk. Any thread. */
#ifndef WEIR_STAGES_FILE_LISTING_H
#define WEIR_STAGES_FILE_LISTING_H

#include <stddef.h>

#include "open.h"

enum listing_form { LISTING_OFF, LISTING_HTML, LISTING_JSON };

/** Maximum number of entries in a listing; a listing of a larger directory is marked as truncated.
 * 1000 is a guess: more than a person reads, and about 2 ms of stat calls. */
#define LISTING_MAX 1000

/**
 * List the directory `name` (as for file_open; "." is the root) in `form`, which must not be
 * LISTING_OFF.
 *
 * Directories come first, then files, each sorted by the bytes of the name. Names that file.read
 * refuses in requests (path.h), such as dot files, are left out. A link is listed only if `links`
 * allows following it and its target may be served. Names are escaped for their context. Returns 0
 * with *body malloc'd, for the caller to free, and its length in *n; WEIR_ENOENT if `name` is not a
 * readable directory; WEIR_EPRESSURE if descriptors or memory are short while it is opened;
 * WEIR_ENOMEM.
 *
 *   { "path": "/a/", "truncated": false, "entries": [
 *     { "name": "b.txt", "href": "./b.txt", "type": "file", "bytes": 5, "modified": 784111777 } ] }
 *
 * `type` is "file" or "directory"; `modified` is in seconds since 1970; bytes that are not valid
 * UTF-8 appear as U+FFFD in `name`, while `href` is exact.
 */
int listing_make(int root, enum file_links links, const char *name, enum listing_form form,
    char **body, size_t *n);

/** The media type of `form`. */
const char *listing_type(enum listing_form form);

#endif
