/* SPDX-License-Identifier: MIT */
/* Pauses and resumes a server for an operator; see pause.c. */
#ifndef WEIR_NET_PAUSE_H
#define WEIR_NET_PAUSE_H

#include "net/net.h"

/** ops->pause: once a call that pauses has returned, nothing new is accepted or read. An I/O thread
 * that was busy for longer than 1 s is an exception: it pauses only when it has finished its
 * iteration. Called by the operator's thread, never by an I/O thread. */
void pause_server(struct weir_stage *st, bool paused);

/** Pause the I/O thread, which is starting, if the server is paused. */
void pause_begin(struct net_io *io);

/** Carry out the last request to pause or resume. Called by the I/O thread at the end of each
 * iteration. Costs a load when nothing has changed. */
void pause_check(struct net_io *io);

/** Resume the partly read requests that stay with `io` when it hands its connections over, since no
 * operator can resume them here afterwards. I/O thread only. */
void pause_leave(struct net_io *io);

#endif
