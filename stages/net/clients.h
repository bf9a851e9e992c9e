/* SPDX-License-Identifier: MIT */
/*
 * The client table of a server counts how many connections each address has open, and how fast it
 * opens them.
 *
 * An address is a whole IPv4 address, or the first 64 bits of an IPv6 address, since a client with
 * one address of a /64 network has all of them (RFC 4291, 2.5.1). The clients of socket files have no
 * addresses; those of each user of the machine count as one. A key is a number, never 0.
 * The counts are exact, in a table that all I/O threads share. The table is accessed when a
 * connection opens and closes, never per request, and has one 32-byte entry for each address with
 * an open connection. Rates take 64 KiB for any number of addresses, so two addresses may share a
 * rate: see clients_may_open.
 *
 * Concurrency: every call except new and free may run in any number of threads at once.
 */
#ifndef WEIR_NET_CLIENTS_H
#define WEIR_NET_CLIENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

struct clients;

/** Create an empty table. Returns NULL if there is no memory, or if there are no random numbers. */
struct clients *clients_new(void);
/** Free the table; NULL is allowed. */
void clients_free(struct clients *p);

/** Return the key of a client's address. IPv4-mapped IPv6 addresses count as IPv4 addresses. */
uint64_t clients_key(const struct sockaddr_storage *addr);

/** Return the key of the clients of socket files that a user of this machine has started. */
uint64_t clients_key_of_user(uid_t user);

/** Count one more connection of `key`. Returns the number of its connections, including this one,
 * or 0 if out of memory, in which case this one is not counted. The call takes the lock of one of
 * 16 shards and costs about 60 ns. */
int64_t clients_enter(struct clients *p, uint64_t key);
/** Return the number of connections of `key`. Costs as much as clients_enter. */
int64_t clients_count(struct clients *p, uint64_t key);
/** Stop counting one connection of `key`, which clients_enter must have counted. */
void clients_leave(struct clients *p, uint64_t key);

/**
 * Whether `key` may open a connection at `now_ns`, if `per_s` > 0 connections per second are
 * allowed, with bursts of one second's worth (at least 10). If so, the connection is counted.
 * Addresses whose hashes collide in both rows of the table share a rate: one pair in 16 million,
 * and different pairs after each restart.
 */
bool clients_may_open(struct clients *p, uint64_t key, double per_s, int64_t now_ns);

#endif
