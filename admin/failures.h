/* SPDX-License-Identifier: MIT */
/*
 * Who failed to show a good token, and how often: at most FAILURES_MAX a minute from one address.
 *
 * An address is an IPv4 address or the /64 of an IPv6 one, which is what one network gives its
 * machine to choose from. The table is bounded: a new address takes the place of the one with the
 * fewest failures of the last minute. Who wants his own count forgotten must thus fail as often
 * from every other place in the table, which takes more than it gives. Nobody is refused for what
 * others did. One thread; the time is the caller's.
 */
#ifndef WEIR_ADMIN_FAILURES_H
#define WEIR_ADMIN_FAILURES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/** reliability.md (b), auth. */
#define FAILURES_MAX       5
#define FAILURES_WINDOW_NS 60000000000LL

/** Addresses that are remembered: 70 KB. A guess. */
#define FAILURES_PLACES 1024

struct failures_key {
	uint8_t bytes[9]; /* 4 or 6, and the address or the first half of it */
};

struct failures_place {
	struct failures_key key;
	int64_t at_ns[FAILURES_MAX]; /* the newest ones, in no order; 0: none */
};

struct failures {
	struct failures_place place[FAILURES_PLACES];
};

/** The key of an address; everything that has none (a socket file) shares one. */
struct failures_key failures_key(const struct sockaddr_storage *address);

/** How long `key` has to wait before it may try again, in ns; 0: it may. */
int64_t failures_wait_ns(const struct failures *f, struct failures_key key, int64_t now_ns);

/** It failed. Returns how often it did within the last minute, this one included. */
int failures_add(struct failures *f, struct failures_key key, int64_t now_ns);

#endif
