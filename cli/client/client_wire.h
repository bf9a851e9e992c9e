/* SPDX-License-Identifier: MIT */
/*
 * A connection of the admin client, with or without TLS. No call waits longer than CLIENT_STEP_NS
 * for the peer to send or accept data, or longer than the caller's deadline, even if the response
 * arrives in small pieces. Each connection is used by one thread.
 */
#ifndef WEIR_CLI_CLIENT_WIRE_H
#define WEIR_CLI_CLIENT_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <weir/error.h>

/** Longest wait for a server that sends nothing. 5 s is a guess: servers answer within
 *  milliseconds. */
#define CLIENT_STEP_NS 5000000000LL

struct client_address {
	char host[256];
	char port[16];
	const char *unix_path; /* NULL for TCP */
	bool tls;
};

struct client_wire {
	int fd;                 /* non-blocking */
	struct client_tls *tls; /* NULL without TLS */
	int64_t until_ns;       /* deadline, CLOCK_MONOTONIC */
};

/** Connect to `at`; `ca` is passed to client_tls_begin. Returns 0, WEIR_ESYS with errno set and
 *  `err` unchanged, or the error of client_tls_begin. Close `wire` only if this function returned
 *  0. The deadline does not apply to name resolution. */
int client_wire_open(struct client_wire *wire, const struct client_address *at, const char *ca,
    int64_t until_ns, struct weir_err *err);

/** Send all of p[0..n). Returns 0, or WEIR_ESYS with errno set (ETIMEDOUT if the peer or the
 *  deadline timed out). */
int client_wire_send(const struct client_wire *wire, const char *p, size_t n);

/** Receive up to `n` bytes. Returns their number, 0 at the end of the stream, or -1 with errno set
 *  (ETIMEDOUT if the peer or the deadline timed out). */
ssize_t client_wire_recv(const struct client_wire *wire, char *p, size_t n);

void client_wire_close(struct client_wire *wire);

/** Wait until `fd` is ready for `events`, the flags of poll. Returns 0, or -1 with errno set:
 *  ETIMEDOUT at `until_ns`, or after CLIENT_STEP_NS. */
int client_wire_wait(int fd, short events, int64_t until_ns);

#endif
