/* SPDX-License-Identifier: MIT */
/*
 * Slots of max_connections and max_per_address, and descriptors: whether one is free, and the
 * eviction of a connection of this I/O thread to free one. evict.h has the eviction by another
 * thread. I/O thread only, except slot_raise_fds.
 */
#ifndef WEIR_NET_SLOT_H
#define WEIR_NET_SLOT_H

#include "net/net.h"

/** Check the limits per address for a new connection with `key` (clients.h), which is number `n` of
 * its address. Returns -1 if the connection is within the limits, else the limit (enum net_limit)
 * that it exceeds. May evict connections, but only of the same address. I/O thread only. */
int slot_check_address(struct net_io *io, uint64_t key, int64_t n);

/** Whether a slot of max_connections is free. Connections being refused do not count. Threads that
 *  check at the same time may each admit a client to the last slot. */
bool slot_is_free(const struct net_io *io);

/**
 * Try to have `n` slots (1 or more) free, by closing connections of this I/O thread. Returns
 * whether they are free. With `waiting`, only connections without a request are closed.
 *
 * The server may have more than max_connections connections, because the knob was lowered or a
 * reload added some. In that case up to SLOT_EVICT_RUN evictable connections are closed per call,
 * even if that does not free a slot. Otherwise each connection that is closed frees one of the `n`
 * slots.
 */
bool slot_make_free(struct net_io *io, int n, bool waiting);

/** Maximum number of connections that slot_make_free closes per call, at about 10 us each. 64 is
 * a guess. */
#define SLOT_EVICT_RUN 64

/** Return the start of the wait of the connection that would be closed first, to free a slot if
 * `place` is set, else a descriptor. Returns INT64_MAX if no connection could be closed. */
int64_t slot_idle_since_ns(const struct net_io *io, bool place);

/** Close the connection that has waited longest without a request, to free its descriptor. Returns
 * false if none has waited for NET_EVICT_AFTER_NS. */
bool slot_evict(struct net_io *io);

/** Return the limit of connections per address; INT64_MAX if there is none. */
int64_t slot_per_address(const struct net_conf *conf);

/** Raise the soft descriptor limit to what `max_connections`, and `threads` I/O threads that listen on
 * `addresses` each, need, as far as the hard limit allows. */
void slot_raise_fds(
    const struct weir_stage *st, int64_t max_connections, int threads, int addresses);

#endif
