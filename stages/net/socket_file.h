/* SPDX-License-Identifier: MIT */
/*
 * The files of Unix sockets: created when a server starts, removed when it stops.
 *
 * The file of a server that was killed stays. A new server replaces it if nobody listens there, and never
 * the file of a server that runs. Servers of weir look and replace under a lock of the folder (flock), so
 * that two of them that start together cannot each take the other's file for a dead one.
 *
 * In a reload, the new server shares the socket, and with it the file. A socket that a service manager
 * has passed belongs to the manager, and so does its file.
 */
#ifndef WEIR_NET_SOCKET_FILE_H
#define WEIR_NET_SOCKET_FILE_H

#include "net/address.h"
#include "net/net.h"

/** Check `socket_mode` and `socket_group`. Returns 0, or WEIR_EINVAL with `err` filled. Main thread; may
 * block while groups are looked up. */
int socket_file_check(struct weir_stage *st, const struct net_conf *conf, struct weir_err *err);

/** Create a socket that listens at the file `a`, with the mode and the group of the configuration from
 * the first moment on, and fill `f`. Returns the descriptor, or -1 with `err` filled; there is then no
 * file. Main thread. Waits up to 2 s while another process holds the lock of the folder. */
int socket_file_open(const struct address *a, const struct net_conf *conf, int backlog,
    struct socket_file *f, struct weir_err *err);

/** Share the file of the predecessor, `from`, whose socket is shared, and give it the mode and the group
 * of the new configuration. Returns 0, or WEIR_ESYS with `err` filled. Main thread. */
int socket_file_share(const struct socket_file *from, const struct net_conf *conf,
    struct socket_file *f, struct weir_err *err);

/** Remove the file at address `k` of `srv`, unless another server has replaced it. Later calls have no
 * effect. Any thread; takes the lock of `srv`. */
void socket_file_remove(struct net_server *srv, int k);

/** Remove the files that this start has created. For a start that fails. Main thread. */
void socket_file_undo(struct net_server *srv);

#endif
