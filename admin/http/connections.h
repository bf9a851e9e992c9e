/* SPDX-License-Identifier: MIT */
/*
 * Manages the connections of the endpoint, at most CONNECTIONS_MAX at a time, in the admin thread.
 *
 *   accept --> READING --whole request--> SERVED (libmicrohttpd owns the descriptor) --> FREE
 *                 |--/events--> FREE       | takes too long: shut down
 *                 |  (sse.h owns it)
 *                 +--refused--> CLOSING (response sent, input discarded) --> FREE
 *
 * A client that sends or reads slowly occupies a slot and has no other effect, since the thread
 * never waits for it. When no slot is free, a connection is evicted. Connections that are not
 * SERVED are evicted first. Among them, those of the address that holds the most slots come first,
 * and among these, the one nearest to its deadline. A client that opens many connections therefore
 * evicts its own ones, not those of a client with a single one. Addresses are grouped as in
 * failures.h; on a socket file, connections are counted per user.
 */
#ifndef WEIR_ADMIN_CONNECTIONS_H
#define WEIR_ADMIN_CONNECTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "mhd.h"
#include "admin/auth/failures.h"
#include "admin/auth/auth.h"
#include "admin/request/head.h"
#include "admin/stream/sse.h"
#include "admin_tls.h"

/** Maximum number of connections: enough for a scraper, a few browsers with six connections each,
 *  and `weir` itself. */
#define CONNECTIONS_MAX 32

/** Descriptors held in reserve, so that the endpoint responds even if the process has no others
 *  left. */
#define CONNECTIONS_SPARES 2

enum connection_state {
	CONNECTION_FREE,
	CONNECTION_READING,
	CONNECTION_SERVED,
	CONNECTION_CLOSING
};

struct connection {
	/* SERVED: the rights of the request. connections_gone finds the slot by the address of this
	 * member. */
	struct auth_pass pass;
	struct auth_from from;
	struct failures_key network; /* key of the address or user in `from` */
	int fd;
	enum connection_state state;
	int64_t until_ns; /* CLOCK_MONOTONIC: deadline of the current state */
	size_t drained;   /* CLOSING: bytes discarded */
};

struct connections {
	int epoll_fd, listen_fd; /* of the admin loop */
	const struct authority *address;
	struct auth *auth;     /* authentication */
	struct admin_tls *tls; /* TLS termination; NULL if off */
	struct mhd *mhd;
	struct sse *sse; /* takes over streams; if NULL, libmicrohttpd also gets those */
	bool paused;     /* no descriptor is left, so the listener is not watched */
	int spare[CONNECTIONS_SPARES];
	struct connection slot[CONNECTIONS_MAX];
	char peek[HEAD_PEEK_MAX];
};

/** Initialize. `epoll_fd` and `listen_fd` are borrowed; the epoll tag of the listener is the
 *  address of `listen_fd` in `connections`. Returns 0 or WEIR_ESYS. */
int connections_init(
    struct connections *connections, int epoll_fd, int listen_fd, const struct authority *address);

/** Accept one connection. Call it when the listener is ready. */
void connections_accept(struct connections *connections);

/** Handle the epoll `events` of `conn`. */
void connections_ready(struct connections *connections, struct connection *conn, uint32_t events);

/** Free the slot of the connection that libmicrohttpd got with `pass` and is about to close. */
void connections_gone(struct auth_pass *pass);

/** Close connections whose deadline has passed, and watch the listener again when a descriptor is
 *  available. */
void connections_expire(struct connections *connections);

/** Return the time to the next deadline in ms, or -1 if there is none. */
int connections_timeout_ms(const struct connections *connections);

/** Close the connections that libmicrohttpd does not own; call mhd_close first. */
void connections_fini(struct connections *connections);

#endif
