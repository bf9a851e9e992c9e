/* SPDX-License-Identifier: MIT */
/*
 * TLS for the admin client, over non-blocking sockets. The certificate of the server must match the
 * host and be signed by a trusted CA; this check cannot be turned off. One thread.
 */
#ifndef WEIR_CLI_CLIENT_TLS_H
#define WEIR_CLI_CLIENT_TLS_H

#include <stdint.h>
#include <sys/types.h>

#include <weir/error.h>

struct client_tls;

/** Do the handshake with `host`, a name or an address, over `fd`, which is borrowed. `ca` is a PEM
 *  file with CA certificates; if it is NULL, those of the system are used. Waits until `until_ns`
 *  (CLOCK_MONOTONIC) at most. Returns 0 with a new *tls, or WEIR_EFAILED with the message in
 *  `err`. */
int client_tls_begin(int fd, const char *host, const char *ca, int64_t until_ns,
    struct client_tls **tls, struct weir_err *err);

/** Send and receive as send and recv do on a non-blocking socket. Return the number of bytes, 0 at
 *  the end of the stream, or -1 with errno set. After EAGAIN, the next call of client_tls_send must
 *  pass the same bytes. */
ssize_t client_tls_send(struct client_tls *tls, const void *p, size_t n);
ssize_t client_tls_recv(struct client_tls *tls, void *p, size_t n);

/** Free the session; NULL is allowed. The socket remains open. */
void client_tls_end(struct client_tls *tls);

#endif
