/* SPDX-License-Identifier: MIT */
/*
 * Maps request paths to names of files below a root.
 *
 * The functions are pure and touch no file, so every rule can be tested by itself. The result is
 * relative and has no empty, "." or ".." segment and no segment that begins with a dot (except a
 * first ".well-known"). openat2(RESOLVE_BENEATH) then enforces the confinement a second time.
 */
#ifndef WEIR_STAGES_FILE_PATH_H
#define WEIR_STAGES_FILE_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/event.h>

/** Size of the longest path that the kernel accepts, with its NUL (PATH_MAX). */
#define PATH_MAP_MAX 4096

/**
 * Write the file name for the request path `path` into `out[size]`. `path` has no query, begins
 * with '/' and need not be normalised.
 *
 * Percent escapes are decoded exactly once; "." and ".." are resolved as in RFC 3986, 5.2.4;
 * `index` is appended to a path that names a directory (one that ends in '/', "/." or "/..").
 * Returns 0; WEIR_EINVAL for a path that no honest client sends (bad percent escape, control byte,
 * above the root); WEIR_ENOENT for one that may not name a file (dot file, backslash, encoded
 * slash, name too long, directory while `index` is empty). `out` is undefined on failure. Any
 * thread.
 */
int path_map(struct weir_slice path, const char *index, char *out, size_t size);

/** Like path_map, but for a path that names a directory: writes the name without an index, or "."
 * for the root. Also returns WEIR_ENOENT if `path` does not name a directory. */
int path_map_directory(struct weir_slice path, char *out, size_t size);

/** Whether `c` may appear unescaped in the path of a link (RFC 3986: unreserved, sub-delims, ':',
 * '@' and the slash). */
bool path_is_plain(unsigned char c);

/**
 * Write the URL path of the directory `name`, which is "/" + `name` + "/" percent-encoded, into
 * `out[size]`. It begins with exactly one slash, so a redirect to it cannot leave the site. Returns
 * 0, or WEIR_EINVAL if it does not fit. Any thread.
 */
int path_directory(const char *name, char *out, size_t size);

#endif
