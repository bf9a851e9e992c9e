/* SPDX-License-Identifier: MIT */
/* Sends handshakes to their stage; see handshake.h. */
#include "net/handshake.h"

#include "net/net_conn.h"

struct tls_user handshake_user(
    struct net_io *io, struct net_conn *c, const struct tls_calls *calls, int64_t *held_bytes)
{
	return (struct tls_user){.calls = calls,
	    .conn = c,
	    .loop = io->loop,
	    .held_bytes = held_bytes,
	    .address = {c->client.address, c->client.address_n}};
}

/* Return the last class, that of all events that match no other class. */
static uint8_t last_class(const struct weir_stage *st)
{
	int n = 0;

	while (n + 1 < WEIR_CLASSES_MAX && weir_class_name(st, n + 1)[0])
		n++;
	return (uint8_t)n;
}

bool handshake_emit(struct net_io *io, struct net_conn *c, int outlet, struct weir_event *step)
{
	/* once the drain is over, the graph's counters may be closed */
	if (io->drain.phase == NET_CLOSED || !weir_outlet_linked(io->stage, outlet))
		return false;
	step->class_id = last_class(io->stage);
	net_list_join(io, c, LIST_AWAY);
	weir_emit(io->stage, outlet, &step);
	return true;
}
