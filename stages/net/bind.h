/* SPDX-License-Identifier: MIT */
/* Binding of listening sockets: main binds them before the I/O threads start. */
#ifndef WEIR_NET_BIND_H
#define WEIR_NET_BIND_H

#include "net/net.h"

/** Bind every address of the configuration once per I/O thread or, with `per_thread`, once for all. On
 *  failure fills `err`; sockets bound so far are closed by listen_close. Main thread. */
int listen_bind(struct net_server *srv, const struct net_conf *conf, struct weir_err *err);

/** Add a listener with the socket `fd` to `io`. Returns NULL if out of memory, and the caller still
 * owns `fd`. Main thread, before the I/O thread starts. */
struct listener *listen_add(struct net_io *io, int fd);

/** Report entry `i` of `listen:` as the cause of the error. Called in init and start of `st`. */
void listen_blame(struct weir_stage *st, int i);

#endif
