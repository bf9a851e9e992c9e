/* SPDX-License-Identifier: MIT */
/* Logs at startup where a server can be reached, and returns its ports (weir_http_port). */
#include "net/reach.h"

#include <string.h>

#include <weir/http.h>

void reach_tell(const struct http_server *srv, const struct http_conf *conf)
{
	for (int i = 0; i < srv->n_addresses; i++) {
		const char *text = conf->listen.items[i], *colon = strrchr(text, ':');
		weir_log(WEIR_LOG_INFO, "%s: listening on %.*s:%u with %d I/O thread%s%s",
		    weir_stage_name(srv->stage), (int)(colon - text), text, srv->port[i], srv->n_io,
		    srv->n_io == 1 ? "" : "s", srv->tls ? ", TLS" : "");
	}
}

uint16_t weir_http_port(const struct weir_stage *st, int i)
{
	if (weir_stage_type(st) != weir_stage_type_find("http.server"))
		return 0;
	const struct http_server *srv = weir_state(st);

	return i >= 0 && i < srv->n_addresses ? srv->port[i] : 0;
}
