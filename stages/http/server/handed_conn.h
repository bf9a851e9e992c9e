/* SPDX-License-Identifier: MIT */
/*
 * A connection of http.server on its way to another server (net/handover.h): its socket and TLS,
 * the bytes that are read but not used, and the rest of the response that it sends (handed.h). The
 * calls are those of struct net_calls; I/O thread only.
 */
#ifndef WEIR_HTTP_HANDED_CONN_H
#define WEIR_HTTP_HANDED_CONN_H

#include <stdbool.h>

struct net_conn;
struct net_handed;
struct net_io;
struct net_server;

/** net_calls.hand_over: a connection leaves if it is between two requests, or only sends a
 * response. If out of memory, it stays, and the attempt is repeated later. */
bool handed_conn_leave(struct net_conn *c);

/** net_calls.handed_on */
void handed_conn_on(struct net_handed *h, struct net_server *to);

/** net_calls.handed_is_idle */
bool handed_conn_is_idle(const struct net_handed *h);

/** net_calls.adopt */
bool handed_conn_adopt(struct net_io *io, struct net_handed *h);

/** net_calls.handed_drop: if the client has begun a request, a 503 is sent first, unless the
 * connection uses TLS or was being answered. */
void handed_conn_drop(struct net_io *io, struct net_handed *h, bool late);

#endif
