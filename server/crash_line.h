/* SPDX-License-Identifier: MIT */
/* Builds the lines of a crash report without stdio, and writes the call stack. Async-signal-safe,
 * except for crash_stack_prepare. */
#ifndef WEIR_SERVER_CRASH_LINE_H
#define WEIR_SERVER_CRASH_LINE_H

#include <stddef.h>
#include <stdint.h>

/** A line of the report. Longer lines are truncated. */
struct crash_line {
	char text[512];
	size_t n;
};

void crash_append(struct crash_line *line, const char *text);

/** Like crash_append, with unprintable bytes replaced by '?'. */
void crash_append_foreign(struct crash_line *line, const char *text);

/** Write the line and a '\n' to stderr, and empty the line. */
void crash_write(struct crash_line *line);

/** Load the libraries that a stack walk requires; this allocates memory. Call this once, before
 *  other threads exist. */
void crash_stack_prepare(void);

/** Write the call stack of the calling thread, which is in a signal handler. The first frame is the
 *  one that was interrupted at `pc`. Each frame is a line such as "#0 weir(+0x4a1f)". It has the
 *  object (the executable or a library), and an address within the object, which addr2line
 *  accepts. */
void crash_stack_write(uintptr_t pc);

#endif
