/* SPDX-License-Identifier: MIT */
/*
 * From the path of a request to the name of a file below a root.
 *
 * Pure: no file is touched, so that every rule can be tested by itself. What comes out is relative,
 * has no empty, "." or ".." segment and no segment that begins with a dot (but a first
 * ".well-known"), so handing it to openat2(RESOLVE_BENEATH) is the second lock on the same door.
 */
#ifndef WEIR_STAGES_FILE_PATH_H
#define WEIR_STAGES_FILE_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/event.h>

/** Room for the longest name that the kernel takes, with its NUL (PATH_MAX). */
#define PATH_MAP_MAX 4096

/**
 * Write the file name that `path` (as sent, without the query, beginning with '/') stands for into
 * `out[size]`. Percent signs are decoded exactly once; "." and ".." go as RFC 3986, 5.2.4 says; a
 * path that names a directory (ends in '/', "/." or "/..") gets `index` appended. Returns 0;
 * WEIR_EINVAL for a path that no honest client sends (bad percent, control byte, above the root);
 * WEIR_ENOENT for one that may not name a file (dot file, backslash, encoded slash, name too long,
 * directory while `index` is empty). `out` is undefined on failure. Any thread.
 */
int path_map(struct weir_slice path, const char *index, char *out, size_t size);

/** The same for a path that names a directory: its name, "." for the root, without an index. Returns
 *  WEIR_ENOENT, too, for a path that names none. */
int path_map_directory(struct weir_slice path, char *out, size_t size);

/** May `c` stand for itself in the path of a link? RFC 3986: unreserved, sub-delims, ':', '@', and the slash itself. */
bool path_is_plain(unsigned char c);

/**
 * Is `path` the one spelling of its name that browsers send? Without empty, "." and ".." segments,
 * encoded where it must be and nowhere else, in capitals. Every other spelling names the same file:
 * who keeps something per path would keep it once per spelling. Any thread, about 1 ns a byte.
 */
bool path_is_canonical(struct weir_slice path);

/**
 * Write "/" + `name` + "/" percent-encoded into `out[size]`: where to find the directory `name`.
 * Begins with exactly one slash, so a redirect to it cannot leave the site. 0 or WEIR_EINVAL when
 * it does not fit. Any thread.
 */
int path_directory(const char *name, char *out, size_t size);

#endif
