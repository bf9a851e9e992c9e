/* SPDX-License-Identifier: MIT */
/*
 * Clients of a server by address: how many connections each has open, and how fast it opens them.
 *
 * An address is a whole IPv4 address, or the first 64 bits of an IPv6 one: whoever has one address of such a network
 * has all of them (RFC 4291, 2.5.1). Its key is a number, never 0. The counts are exact, in a table that all I/O
 * threads share; it is touched when a connection opens and closes, never per request, and has an entry of 32 bytes per
 * address with a connection. Rates are kept in 64 KiB whatever the number of addresses, so two of them may share what
 * they have: see crowd_may_open.
 *
 * Overlap: every call but new and free may run in any number of threads at once.
 */
#ifndef WEIR_HTTP_CROWD_H
#define WEIR_HTTP_CROWD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct crowd;

/** Counts of nobody; NULL without memory or random numbers. */
struct crowd *crowd_new(void);
/** NULL is legal. */
void crowd_free(struct crowd *p);

/** The key of a client's address. IPv4 addresses that came over an IPv6 socket are IPv4 addresses. */
uint64_t crowd_key(const struct sockaddr_storage *addr);

/** One more connection of `key`. Returns how many it has now, this one included; 0 without memory: it is not counted.
 *  A lock that only addresses with the same hash contend for, about 60 ns. */
int64_t crowd_enter(struct crowd *p, uint64_t key);
/** How many it has now. As dear. */
int64_t crowd_count(struct crowd *p, uint64_t key);
/** One less; `key` has entered. */
void crowd_leave(struct crowd *p, uint64_t key);

/**
 * May `key` open a connection at `now_ns`, if it may open `per_s` > 0 a second, a second's worth (at least 10) at once?
 * Counts it if so. Addresses whose hashes meet in both rows of the table share a rate: one pair in 16 million, other
 * ones after each start.
 */
bool crowd_may_open(struct crowd *p, uint64_t key, double per_s, int64_t now_ns);

#endif
