/* SPDX-License-Identifier: MIT */
/* The handshakes of a server with TLS: what tls_conn.h needs of a connection, and how the steps
 * reach their stage. I/O thread only. */
#ifndef WEIR_NET_HANDSHAKE_H
#define WEIR_NET_HANDSHAKE_H

#include "net/net.h"
#include "net/tls/tls_conn.h"

/** Return what TLS needs of `c`, whose descriptor and address are set. `calls` are called with `c`;
 * `held_bytes` counts the memory of the I/O thread's connections. */
struct tls_user handshake_user(
    struct net_io *io, struct net_conn *c, const struct tls_calls *calls, int64_t *held_bytes);

/** Emit a step of `c` to the stage of `outlet`, as an event of the last class. Its deadline and
 * session are set already. Returns false if it cannot be emitted: the connection was handed over to
 * a server without TLS, or the drain is over. */
bool handshake_emit(struct net_io *io, struct net_conn *c, int outlet, struct weir_event *step);

#endif
