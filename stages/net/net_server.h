/* SPDX-License-Identifier: MIT */
/*
 * The life of a server (net.h), and what its I/O threads do in each iteration.
 *
 *   main:        net_conf_check, net_server_init --> net_server_start --> net_server_stop (drain.h)
 *                --> net_server_fini
 *   I/O thread:  net_io_start --> net_io_follow, the protocol, net_io_report: each iteration
 *                --> net_io_stop
 *
 * I/O threads run from start to fini, longer than the drain, so that events that finish late
 * (WEIR_ECLOSED) can still return to their connections.
 */
#ifndef WEIR_NET_SERVER_H
#define WEIR_NET_SERVER_H

#include "net/net.h"

/* ---- main ---- */

/** Check `listen` of `st`, in ops->init. Returns 0, or WEIR_EINVAL with `err`. */
int net_conf_check(struct weir_stage *st, const struct net_conf *conf, struct weir_err *err);

/** Initialize the server of `st`, in ops->init. The state of `st` begins with its struct
 * net_server. `outlet` is the one to the stage that does handshakes. Returns 0, or a WEIR_E code
 * with `err`. */
int net_server_init(
    struct weir_stage *st, const struct net_calls *calls, int outlet, struct weir_err *err);

/** Called by the start function of the stage type: bind the addresses and start the I/O threads,
 * whose loops call `ops`. Returns 0, or a WEIR_E code with `err`; nothing is left running then. */
int net_server_start(struct weir_stage *st, const struct weir_loop_ops *ops, struct weir_err *err);

/** Drain the server, in ops->stop. */
void net_server_stop(struct weir_stage *st, int64_t until_ns);

/** End the I/O threads and free what the server has, in ops->fini. */
void net_server_fini(struct weir_stage *st);

/** Initialize `io`, which is zero, as I/O thread `index` of `srv` (net_calls.io_new). `conf` is the
 * protocol's copy of the configuration, `count` its metrics. */
void net_io_init(struct net_io *io, struct net_server *srv, int index, const struct net_conf *conf,
    int64_t *count);

/* ---- the I/O thread ---- */

/** Begin to accept, once net_io.conf is up to date. Returns 0 or WEIR_ESYS. */
int net_io_start(struct net_io *io);

/** Follow what operators, other threads and other servers have requested. Called in each iteration,
 * before the protocol writes. Costs a few loads when there is nothing to do. */
void net_io_follow(struct net_io *io);

/** Publish what other threads must know. Called in each iteration, after the protocol has freed the
 * connections that it has closed. */
void net_io_report(struct net_io *io);

/** Close the listeners, at the beginning of the loop's last callback. */
void net_io_stop(struct net_io *io);

#endif
