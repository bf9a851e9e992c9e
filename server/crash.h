/* SPDX-License-Identifier: MIT */
/*
 * Crash reports. A report contains the stage and the type of the events that the crashing thread
 * was processing, its call stack, and the request ("GET /index.html"). Afterwards, the signal has
 * its normal effect (a core dump, or the report of a sanitizer).
 */
#ifndef WEIR_SERVER_CRASH_H
#define WEIR_SERVER_CRASH_H

/** Install handlers for SIGSEGV, SIGBUS, SIGABRT, SIGFPE and SIGILL, and an alternate stack for the
 *  main thread. Call this once, before other threads exist. */
void crash_install(void);

#endif
