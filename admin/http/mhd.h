/* SPDX-License-Identifier: MIT */
/*
 * Runs libmicrohttpd between checked connections and the routes.
 *
 * The daemon does not accept connections itself and has no thread: the admin loop adds connections
 * whose whole request can be read from the socket (head.h), watches mhd_fd for readiness and calls
 * mhd_run. Requests are never suspended. All functions are called by the admin thread.
 */
#ifndef WEIR_ADMIN_MHD_H
#define WEIR_ADMIN_MHD_H

#include <weir/error.h>

#include "admin/metrics/process.h"
#include "admin/api/graph_source.h"

struct mhd;
struct auth;
struct auth_pass;

/** Start a daemon for at most `connections` connections. `auth` is the issuer of the passes, or
 *  NULL. `gone(arg, pass)` is called when the connection that was added with `pass` is about to be
 *  closed. Returns 0, or WEIR_ENOMEM or WEIR_ESYS. */
int mhd_open(const struct admin_source *source, struct process *process, struct auth *auth,
    unsigned connections, void (*gone)(void *arg, struct auth_pass *pass), void *arg,
    struct mhd **mhd);

/** Close all connections (each calls `gone`) and free `mhd`. NULL is allowed. */
void mhd_close(struct mhd *mhd);

/** Hand over `fd`. Its requests have `pass`, which must stay valid until `gone` is called with it.
 *  On failure (WEIR_ENOMEM) `fd` is closed and `gone` is not called. */
int mhd_add(struct mhd *mhd, int fd, struct auth_pass *pass);

/** Return the descriptor that is readable when mhd_run has something to do. */
int mhd_fd(const struct mhd *mhd);

/** Do all work that does not block. */
void mhd_run(struct mhd *mhd);

/** Return the time in ms within which mhd_run must be called, or -1 if there is no deadline. */
int mhd_timeout_ms(const struct mhd *mhd);

#endif
