/* SPDX-License-Identifier: MIT */
/*
 * Counts wrong tokens per address. After FAILURES_MAX wrong tokens within a minute, the address
 * must wait until the oldest of them is a minute old.
 *
 * An address is an IPv4 address or the /64 of an IPv6 one, since a host may choose any address in
 * its /64. The size of the table is fixed: a new address replaces the one with the fewest failures
 * in the last minute. To get its own count discarded, a client would need as many other addresses
 * as the table has slots, and would have to fail as often from each of them, which costs more than
 * it gains. Failures of one address never cause the refusal of another. Used by one thread; the
 * caller passes the time.
 */
#ifndef WEIR_ADMIN_FAILURES_H
#define WEIR_ADMIN_FAILURES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/** Number of wrong tokens allowed within a window, and the length of the window. Both are
 *  guesses. */
#define FAILURES_MAX       5
#define FAILURES_WINDOW_NS 60000000000LL

/** Number of addresses in the table. 1024 is a guess; they take 56 KB. */
#define FAILURES_SLOTS 1024

struct failures_key {
	/* 4 or 6 (the IP version), then the IPv4 address or the first half of the IPv6 address */
	uint8_t bytes[9];
};

struct failures_slot {
	struct failures_key key;
	int64_t at_ns[FAILURES_MAX]; /* times of the newest failures, unordered; 0 if unused */
};

struct failures {
	struct failures_slot slot[FAILURES_SLOTS];
};

/** Return the key of an address. All peers without an address (clients of a socket file) share one
 * key. */
struct failures_key failures_key(const struct sockaddr_storage *address);

/** Return how long `key` must wait before it may try again, in ns; 0 if it may try now. */
int64_t failures_wait_ns(const struct failures *f, struct failures_key key, int64_t now_ns);

/** Record a failure. Returns the number of failures within the last minute, this one included. */
int failures_add(struct failures *f, struct failures_key key, int64_t now_ns);

#endif
