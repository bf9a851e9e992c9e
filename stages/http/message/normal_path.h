/* SPDX-License-Identifier: MIT */
/*
 * Normalizes paths, so that routes, classes, caches and files see only one spelling.
 *
 * RFC 3986 lets clients write one path in many ways. The normal spelling of a path has
 *   no empty segment: "//" is "/"
 *   no "." and no ".." segment, escaped or not (5.2.4); empty segments are removed first
 *   no escape of a byte that a target may have unescaped (GUARD_PATH), except "%25" and "%2F"
 *   every other escape in upper case
 * Normalizing a normal path does not change it: a path is decoded only once, so "%2570" stays as it
 * is. "%2F" also stays: it is a byte of a name, not a separator. A normal path has no control byte,
 * no byte above ASCII and no backslash, and is not longer than what was sent.
 */
#ifndef WEIR_HTTP_NORMAL_PATH_H
#define WEIR_HTTP_NORMAL_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/event.h>

/**
 * Write the normal spelling of `path` to out[path.n + 1]. Returns its length, at least 1, or -1 if
 * the path leads above the root. `path` must be empty or begin with '/', and have only bytes that
 * the guard accepts (GUARD_PATH), with two hex digits after each '%'. `out` must not overlap it.
 * Any thread. The call costs about 2 ns per byte.
 */
long normal_path(struct weir_slice path, char *out);

/**
 * Whether a normal path can be equal to pattern[n], or begin with it if `prefix` is set. If not,
 * writes to `hint[size]` what to use instead, or what is wrong. Any thread.
 */
bool normal_path_pattern(const char *pattern, size_t n, bool prefix, char *hint, size_t size);

#endif
