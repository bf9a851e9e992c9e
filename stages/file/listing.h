/* SPDX-License-Identifier: MIT */
/* What a directory holds, as a page or as JSON. Blocks on the disk. Any thread. */
#ifndef WEIR_STAGES_FILE_LISTING_H
#define WEIR_STAGES_FILE_LISTING_H

#include <stddef.h>

#include "open.h"

enum listing_form { LISTING_OFF, LISTING_HTML, LISTING_JSON };

/** Entries in a listing; what is more is left out, and the listing says so. Guess: more than a person
 *  reads, and 2 ms of looking at files. */
#define LISTING_MAX 1000

/**
 * List the directory `name` (as file_open takes it, "." is the root) in `form`: directories, then
 * files, each sorted by bytes; no dot files, no links unless `links` follows them and they lead to
 * something that may be served, no names that a request cannot spell. Names are escaped for where
 * they stand. Returns 0 with *body malloc'd, the caller's to free, and its length; WEIR_ENOENT when
 * it is no directory that may be read; WEIR_ENOMEM. `form` is not LISTING_OFF.
 *
 *   { "path": "/a/", "truncated": false, "entries": [
 *     { "name": "b.txt", "href": "./b.txt", "type": "file", "bytes": 5, "modified": 784111777 } ] }
 *
 * `type` is "file" or "directory"; `modified` is in seconds since 1970; bytes that are no UTF-8 are
 * U+FFFD in `name`, while `href` is exact.
 */
int listing_make(int root, enum file_links links, const char *name, enum listing_form form,
    char **body, size_t *n);

/** The media type of `form`. */
const char *listing_type(enum listing_form form);

#endif
