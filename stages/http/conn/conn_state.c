/* SPDX-License-Identifier: MIT */
/*
 * The states of a connection, and the transitions between them.
 *
 *            handshake done          bytes of a head        head complete
 *   SHAKING ----------------> IDLE ------------------> HEAD --------------> BODY, or GRAPH
 *                              ^                                             |
 *                              '-- last response sent -- GRAPH <-------------' body complete
 *
 *   BODY, GRAPH ---- the socket accepts only part of a response --> WRITING --- writable --> back
 *   any of these --- last response sent, close_notify blocked ----> ENDING ---- writable, time-out
 *   any, ENDING ---- last response sent, our side is shut down ---> LINGERING - client done, 2 s
 *   any ------------ error, time-out, client gone, handed over ---> CLOSED
 *
 * Several transitions may happen between two calls of conn_wait: a whole request can be read and
 * answered in one iteration of the event loop. In the table, each state from IDLE to WRITING may
 * therefore follow any other of them. The table forbids only transitions back: into the handshake,
 * from ENDING to a state that reads or answers, from LINGERING to anything but CLOSED, and out of
 * CLOSED.
 *
 * A connection has three independent state machines: its phase, its input, and the stream
 * (stream.h). Whether its socket is blocked depends on the kernel. The state is derived from these.
 * Each call of conn_state_follow compares it with the previous one.
 */
#include "http/conn/conn.h"

#include <weir/error.h>

#include "net/tls/tls_conn.h"

#define BIT(state) (1U << (state))
#define SERVING                                                                                    \
	(BIT(CONN_STATE_IDLE) | BIT(CONN_STATE_HEAD) | BIT(CONN_STATE_BODY) |                      \
	    BIT(CONN_STATE_GRAPH) | BIT(CONN_STATE_WRITING))
#define LEAVING (BIT(CONN_STATE_ENDING) | BIT(CONN_STATE_LINGERING) | BIT(CONN_STATE_CLOSED))

/* The states that may follow each state; most may follow themselves. */
static const unsigned next[CONN_STATES] = {
    [CONN_STATE_SHAKING] = BIT(CONN_STATE_SHAKING) | SERVING | LEAVING,
    [CONN_STATE_IDLE] = SERVING | LEAVING,
    [CONN_STATE_HEAD] = SERVING | LEAVING,
    [CONN_STATE_BODY] = SERVING | LEAVING,
    [CONN_STATE_GRAPH] = SERVING | LEAVING,
    [CONN_STATE_WRITING] = SERVING | LEAVING,
    [CONN_STATE_ENDING] = LEAVING,
    [CONN_STATE_LINGERING] = BIT(CONN_STATE_LINGERING) | BIT(CONN_STATE_CLOSED),
    [CONN_STATE_CLOSED] = 0,
};

enum conn_state conn_state(const struct conn *c)
{
	switch (c->phase) {
	case CONN_CLOSED:
		return CONN_STATE_CLOSED;
	case CONN_LINGERING:
		return CONN_STATE_LINGERING;
	case CONN_ENDING:
		return CONN_STATE_ENDING;
	default:
		break;
	}
	if (c->proxy || (c->net.tls && tls_is_shaking(c->net.tls)))
		return CONN_STATE_SHAKING;
	if (c->socket.blocked)
		return CONN_STATE_WRITING;
	enum stream_doing doing = stream_doing(&c->stream);
	if (doing == STREAM_IN_BODY || doing == STREAM_IN_PARTS)
		return CONN_STATE_BODY;
	if (c->input == INPUT_OPEN && doing == STREAM_AT_HEAD)
		return CONN_STATE_HEAD;
	return c->in_flight > 0 ? CONN_STATE_GRAPH : CONN_STATE_IDLE;
}

bool conn_state_may(enum conn_state from, enum conn_state to)
{
	return next[from] & BIT(to);
}

void conn_state_follow(struct conn *c)
{
	enum conn_state now = conn_state(c);

	WEIR_ASSERT(conn_state_may((enum conn_state)c->state, now));
	c->state = (uint8_t)now;
}

void conn_enter(struct conn *c, enum conn_phase phase)
{
	WEIR_ASSERT(phase > c->phase || (phase == CONN_ENDING && c->phase == CONN_ENDING));
	c->phase = (uint8_t)phase;
	if (phase < CONN_CLOSED)
		conn_stop_input(c);
	conn_state_follow(c);
}
