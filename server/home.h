/* SPDX-License-Identifier: MIT */
/*
 * A thread with a working directory of its own, for a server inside a program.
 *
 * Paths in a configuration are relative to the folder of its file, and stages open them at any time. A
 * thread inherits the working directory of the thread that creates it, and shares it with that one. So
 * whatever starts threads for the server is called in this thread, and the working directory of the
 * other threads of the program stays as it is.
 */
#ifndef WEIR_SERVER_HOME_H
#define WEIR_SERVER_HOME_H

#include <weir/error.h>

struct home;

/**
 * Start the thread, in the present working directory. Returns 0 and stores it in *home, to be passed to
 * home_end. Otherwise returns a WEIR_E code with `errs` filled in.
 *
 * Where unshare(2) is forbidden, as in some containers, the thread cannot have its own working directory.
 * If the folder of the file at `path` is the present one, this makes no difference; else it is an error.
 */
int home_start(const char *path, struct home **home, struct weir_errs *errs);

/** Call fn(arg) in the thread and wait until it returns. One thread at a time. */
void home_call(struct home *home, void (*fn)(void *arg), void *arg);

/** End the thread. NULL is allowed. */
void home_end(struct home *home);

#endif
