/* SPDX-License-Identifier: MIT */
/*
 * TLS for the admin client: the certificate must match the host and be signed by a trusted CA; this
 * cannot be turned off. For non-blocking sockets. One thread.
 */
#ifndef WEIR_CLI_CLIENT_TLS_H
#define WEIR_CLI_CLIENT_TLS_H

#include <stdint.h>
#include <sys/types.h>

#include <weir/error.h>

struct client_tls;

/** Do the handshake over `fd`, which is borrowed, with `host`, a name or an address. `ca` is a PEM
 *  file with CA certificates; if it is NULL, the system's are used. Waits until `until_ns`
 *  (CLOCK_MONOTONIC) at most. 0, or WEIR_EFAILED with the message in `err`. */
int client_tls_begin(int fd, const char *host, const char *ca, int64_t until_ns,
    struct client_tls **tls, struct weir_err *err);

/** Like send and recv on a non-blocking socket: return the number of bytes, 0 at the end of the
 *  stream, or -1 with errno. After EAGAIN, the next call of client_tls_send must pass the same
 *  bytes. */
ssize_t client_tls_send(struct client_tls *tls, const void *p, size_t n);
ssize_t client_tls_recv(struct client_tls *tls, void *p, size_t n);

/** NULL is allowed. */
void client_tls_end(struct client_tls *tls);

#endif
