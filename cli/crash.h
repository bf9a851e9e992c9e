/* SPDX-License-Identifier: MIT */
/*
 * The last words of a server that crashes: which stage and event type the crashing thread was
 * running. Then the signal takes its ordinary course (core dump, or the sanitizer's report).
 */
#ifndef WEIR_CLI_CRASH_H
#define WEIR_CLI_CRASH_H

/** Install the handlers of SIGSEGV, SIGBUS, SIGABRT, SIGFPE and SIGILL, and an alternate stack for
 *  the main thread. Once, before threads. */
void crash_install(void);

#endif
