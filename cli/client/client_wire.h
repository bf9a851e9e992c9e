/* SPDX-License-Identifier: MIT */
/*
 * A connection of the admin client, in clear or over TLS. No call waits longer than CLIENT_STEP_NS
 * for the peer to send or take anything, nor beyond the caller's deadline, even if the response
 * arrives in small pieces. Each connection is used by one thread.
 */
#ifndef WEIR_CLI_CLIENT_WIRE_H
#define WEIR_CLI_CLIENT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/error.h>

/** Longest wait for a silent server. 5 s is a guess: servers answer within milliseconds. */
#define CLIENT_STEP_NS 5000000000LL

struct client_address {
	char host[256];
	char port[16];
	const char *unix_path; /* NULL for TCP */
	bool tls;
};

struct client_wire {
	int fd;                 /* non-blocking */
	struct client_tls *tls; /* NULL if in clear */
	int64_t until_ns;       /* deadline, CLOCK_MONOTONIC */
};

/** Connect to `at`; `ca` as for client_tls_begin. 0, or WEIR_ESYS with errno and an empty `err`, or
 *  the result of client_tls_begin. Close `wire` only if this returned 0. Name resolution takes as
 *  long as the system's resolver does. */
int client_wire_open(struct client_wire *wire, const struct client_address *at, const char *ca,
    int64_t until_ns, struct weir_err *err);

/** Send all of p[n]. 0, or WEIR_ESYS with errno, ETIMEDOUT after the deadline. */
int client_wire_send(const struct client_wire *wire, const char *p, size_t n);

/** Receive up to `n` bytes. Returns their number, 0 at the end of the stream, or -1 with errno,
 *  ETIMEDOUT after the deadline. */
ssize_t client_wire_recv(const struct client_wire *wire, char *p, size_t n);

void client_wire_close(struct client_wire *wire);

/** Wait until `fd` is ready for `events` (poll). 0, or -1 with errno: ETIMEDOUT at `until_ns`, or
 *  after CLIENT_STEP_NS. */
int client_wire_wait(int fd, short events, int64_t until_ns);

#endif
