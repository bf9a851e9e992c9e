/* SPDX-License-Identifier: MIT */
/* Logs where a server can be reached. Main thread. */
#ifndef WEIR_HTTP_REACH_H
#define WEIR_HTTP_REACH_H

#include "http/conn/io.h"

/** Log where `srv`, which has started, listens. */
void reach_tell(const struct http_server *srv, const struct http_conf *conf);

#endif
