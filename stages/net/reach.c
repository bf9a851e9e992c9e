/* SPDX-License-Identifier: MIT */
/* Logs at startup where a server can be reached. */
#include "net/reach.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

void reach_tell(const struct net_server *srv, const struct net_conf *conf)
{
	for (int i = 0; i < srv->n_addresses; i++) {
		const char *text = conf->listen.items[i];
		char port[8] = "";
		if (srv->port[i] != 0)
			snprintf(port, sizeof(port), ":%u", srv->port[i]);
		weir_log(WEIR_LOG_INFO, "%s: listening on %.*s%s with %d I/O thread%s%s",
		    weir_stage_name(srv->stage),
		    (int)(*port ? strrchr(text, ':') - text : (ptrdiff_t)strlen(text)), text, port,
		    srv->n_io, srv->n_io == 1 ? "" : "s", srv->tls ? ", TLS" : "");
	}
}
