/* SPDX-License-Identifier: MIT */
/*
 * The door: libmicrohttpd between checked connections and the routes.
 *
 * It accepts nothing itself and has no thread: the admin loop adds connections whose whole request
 * is waiting in the socket (head.h), watches door_fd for readiness and calls door_run. Nothing is
 * ever suspended. All calls from the admin thread.
 */
#ifndef WEIR_ADMIN_DOOR_H
#define WEIR_ADMIN_DOOR_H

#include <weir/error.h>

#include "process.h"
#include "graph_source.h"

struct door;
struct gate;
struct gate_pass;

/** Open for at most `connections`. `gate` is the one that passes come from; NULL: there is none.
 *  `gone(arg, pass)` is called when the connection that was added with `pass` is about to be closed.
 *  0, or WEIR_ENOMEM, WEIR_ESYS. */
int door_open(const struct admin_source *source, struct process *process, struct gate *gate,
    unsigned connections, void (*gone)(void *arg, struct gate_pass *pass), void *arg,
    struct door **door);

/** Close all connections (each calls `gone`) and free. NULL is allowed. */
void door_close(struct door *door);

/** Give away `fd`, whose requests have `pass`, which lives until it is gone: it is closed by the door,
 *  also when this fails (WEIR_ENOMEM), without `gone`. */
int door_add(struct door *door, int fd, struct gate_pass *pass);

/** The descriptor that is readable when door_run has something to do. */
int door_fd(const struct door *door);

/** Do what can be done without waiting. */
void door_run(struct door *door);

/** When door_run wants to be called at the latest, in ms from now; -1: no need. */
int door_timeout_ms(const struct door *door);

#endif
