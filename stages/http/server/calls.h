/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HTTP_CALLS_H
#define WEIR_HTTP_CALLS_H

#include "net/net.h"

/** The calls of net/net.h to http.server. */
extern const struct net_calls server_calls;

#endif
