/* SPDX-License-Identifier: MIT */
/*
 * The connections of the endpoint, at most PEERS_MAX at once, all in the admin thread.
 *
 *   accept --> ASKING --whole request--> SERVED (libmicrohttpd owns the descriptor) --> FREE
 *                 |--/events--> FREE       | takes too long: shut down
 *                 |  (live.h owns it)
 *                 +--refused--> LEAVING (answer sent, input thrown away) --> FREE
 *
 * A client that sends or reads slowly costs a slot and nothing else: nobody waits for it. When
 * slots run out one of the place that has the most makes room, the one nearest to its deadline, so
 * the endpoint can not be closed by holding connections open, and who has one connection keeps it
 * while another has many. A place is an address as failures.h counts them, or a user of the file.
 */
#ifndef WEIR_ADMIN_PEERS_H
#define WEIR_ADMIN_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "door.h"
#include "failures.h"
#include "gate.h"
#include "head.h"
#include "live.h"
#include "admin_tls.h"

/** A scraper, a few browsers with six connections each, and `weir` itself. */
#define PEERS_MAX 32

/** Descriptors kept back, so that the endpoint answers when the process has no more. */
#define PEERS_SPARES 2

enum peer_state { PEER_FREE, PEER_ASKING, PEER_SERVED, PEER_LEAVING };

struct peer {
	struct gate_pass pass; /* SERVED: what it may do; the door's owner */
	struct gate_from from;
	struct failures_key place; /* of `from` */
	int fd;
	enum peer_state state;
	int64_t until_ns; /* CLOCK_MONOTONIC: end of patience */
	size_t drained;   /* LEAVING: bytes thrown away */
};

struct peers {
	int epoll_fd, listen_fd; /* the loop's */
	const struct authority *address;
	struct gate *gate;     /* who may ask */
	struct admin_tls *tls; /* before all else; NULL: none */
	struct door *door;
	struct live *live; /* takes the connections that stay; NULL: the door takes all */
	bool paused;       /* out of descriptors: the listener is not watched */
	int spare[PEERS_SPARES];
	struct peer slot[PEERS_MAX];
	char peek[HEAD_PEEK_MAX];
};

/** `epoll_fd` and `listen_fd` are borrowed; the listener is watched with `listen_fd`'s address in
 *  `peers` as its tag. 0 or WEIR_ESYS. */
int peers_init(struct peers *peers, int epoll_fd, int listen_fd, const struct authority *address);

/** The listener is ready: take one connection. */
void peers_accept(struct peers *peers);

/** `peer` became ready. */
void peers_ready(struct peers *peers, struct peer *peer, uint32_t events);

/** The door is about to close the connection that it was given with `pass`. */
void peers_gone(struct gate_pass *pass);

/** End what ran out of patience, and watch the listener again when there is a descriptor for it. */
void peers_expire(struct peers *peers);

/** Time to the next deadline in ms, -1 when there is none. */
int peers_timeout_ms(const struct peers *peers);

/** Close what the door does not own; call door_close first. */
void peers_fini(struct peers *peers);

#endif
