/* SPDX-License-Identifier: MIT */
/*
 * TLS for the admin client: the certificate must be that of the host and signed by an authority that
 * is trusted; there is no way around that. Blocking, with the time-outs of the socket. One thread.
 */
#ifndef WEIR_CLI_CLIENT_TLS_H
#define WEIR_CLI_CLIENT_TLS_H

#include <sys/types.h>

#include <weir/error.h>

struct client_tls;

/** Shake hands over `fd`, which is borrowed, with `host`, a name or an address. `ca` is a PEM file of
 *  authorities, NULL for those of the system. 0, or WEIR_EFAILED with the sentence in `err`. */
int client_tls_begin(
    int fd, const char *host, const char *ca, struct client_tls **tls, struct weir_err *err);

/** As send and recv: bytes, 0 at the end, -1 with errno. */
ssize_t client_tls_send(struct client_tls *tls, const void *p, size_t n);
ssize_t client_tls_recv(struct client_tls *tls, void *p, size_t n);

/** NULL is allowed. */
void client_tls_end(struct client_tls *tls);

#endif
