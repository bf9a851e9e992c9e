/* SPDX-License-Identifier: MIT */
/*
 * Crash reports: the stage and event type that the crashing thread was running, its call stack, and
 * the request ("GET /index.html"). After the report, the signal takes its ordinary course (core
 * dump, or the sanitizer's report).
 */
#ifndef WEIR_CLI_CRASH_H
#define WEIR_CLI_CRASH_H

/** Install handlers for SIGSEGV, SIGBUS, SIGABRT, SIGFPE and SIGILL, and an alternate stack for the
 *  main thread. Call it once, before other threads exist. */
void crash_install(void);

#endif
