/* SPDX-License-Identifier: MIT */
/*
 * Manages the connections of the endpoint, at most PEERS_MAX at a time, in the admin thread.
 *
 *   accept --> ASKING --whole request--> SERVED (libmicrohttpd owns the descriptor) --> FREE
 *                 |--/events--> FREE       | takes too long: shut down
 *                 |  (live.h owns it)
 *                 +--refused--> LEAVING (response sent, input discarded) --> FREE
 *
 * A client that sends or reads slowly occupies a slot and has no other effect: nothing waits for
 * it. When slots run out, one connection of the address that holds the most slots is evicted: the
 * one nearest to its deadline. Therefore a client that holds many connections open cannot block the
 * endpoint, and it does not displace a client with a single connection. Addresses are counted as in
 * failures.h; on a socket file, connections are counted per user.
 */
#ifndef WEIR_ADMIN_PEERS_H
#define WEIR_ADMIN_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "mhd.h"
#include "admin/auth/failures.h"
#include "admin/auth/auth.h"
#include "admin/request/head.h"
#include "admin/stream/live.h"
#include "admin_tls.h"

/** Maximum number of connections: enough for a scraper, a few browsers with six connections each,
 *  and `weir` itself. */
#define PEERS_MAX 32

/** Descriptors held in reserve, so that the endpoint responds even if the process has no others
 *  left. */
#define PEERS_SPARES 2

enum peer_state { PEER_FREE, PEER_ASKING, PEER_SERVED, PEER_LEAVING };

struct peer {
	/* SERVED: the rights of the request; identifies the slot in peers_gone */
	struct auth_pass pass;
	struct auth_from from;
	struct failures_key place; /* key of the address or user in `from` */
	int fd;
	enum peer_state state;
	int64_t until_ns; /* CLOCK_MONOTONIC: deadline of the current state */
	size_t drained;   /* LEAVING: bytes discarded */
};

struct peers {
	int epoll_fd, listen_fd; /* of the admin loop */
	const struct authority *address;
	struct auth *auth;     /* authentication */
	struct admin_tls *tls; /* TLS termination; NULL if off */
	struct mhd *mhd;
	struct live *live; /* takes over streams; if NULL, libmicrohttpd also gets those */
	bool paused;       /* no descriptor is left, so the listener is not watched */
	int spare[PEERS_SPARES];
	struct peer slot[PEERS_MAX];
	char peek[HEAD_PEEK_MAX];
};

/** Initialize. `epoll_fd` and `listen_fd` are borrowed; the epoll tag of the listener is the
 *  address of `listen_fd` in `peers`. Returns 0 or WEIR_ESYS. */
int peers_init(struct peers *peers, int epoll_fd, int listen_fd, const struct authority *address);

/** Accept one connection. Call it when the listener is ready. */
void peers_accept(struct peers *peers);

/** Handle the epoll `events` of `peer`. */
void peers_ready(struct peers *peers, struct peer *peer, uint32_t events);

/** Free the slot of the connection that libmicrohttpd got with `pass` and is about to close. */
void peers_gone(struct auth_pass *pass);

/** Close connections whose deadline has passed, and watch the listener again when a descriptor is
 *  available. */
void peers_expire(struct peers *peers);

/** Return the time to the next deadline in ms, or -1 if there is none. */
int peers_timeout_ms(const struct peers *peers);

/** Close the connections that libmicrohttpd does not own; call mhd_close first. */
void peers_fini(struct peers *peers);

#endif
