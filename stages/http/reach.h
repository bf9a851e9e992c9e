/* SPDX-License-Identifier: MIT */
/* Where a server can be reached. Main thread. */
#ifndef WEIR_HTTP_REACH_H
#define WEIR_HTTP_REACH_H

#include "http/server.h"

/** Say in the log where `srv`, which has started, listens. */
void reach_tell(const struct http_server *srv, const struct http_conf *conf);

#endif
