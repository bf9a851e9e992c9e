/* SPDX-License-Identifier: MIT */
/* Lines of a crash report, built without stdio, and the call stack. Async-signal-safe. */
#ifndef WEIR_CLI_CRASH_LINE_H
#define WEIR_CLI_CRASH_LINE_H

#include <stddef.h>
#include <stdint.h>

/** A line of the report; longer lines are truncated. */
struct crash_line {
	char text[512];
	size_t n;
};

void crash_append(struct crash_line *line, const char *text);

/** Like crash_append, with unprintable bytes replaced by '?'. */
void crash_append_foreign(struct crash_line *line, const char *text);

/** Write the line to stderr with a '\n'; it is empty afterwards. */
void crash_write(struct crash_line *line);

/** Load the libraries that a stack walk needs, which allocates memory. Call it once, before other
 *  threads exist. */
void crash_stack_prepare(void);

/** Write the stack of the calling thread, which runs a signal handler, beginning with the frame
 *  that was interrupted at `pc`. Each frame is one line like "#0 weir(+0x4a1f)", where the number
 *  is the address that addr2line takes for the object. */
void crash_stack_write(uintptr_t pc);

#endif
