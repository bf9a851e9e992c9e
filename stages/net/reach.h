/* SPDX-License-Identifier: MIT */
/* Logs where a server can be reached. Main thread. */
#ifndef WEIR_NET_REACH_H
#define WEIR_NET_REACH_H

#include "net/net.h"

/** Log where `srv`, which has started, listens. */
void reach_tell(const struct net_server *srv, const struct net_conf *conf);

#endif
