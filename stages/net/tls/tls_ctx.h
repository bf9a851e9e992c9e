/* SPDX-License-Identifier: MIT */
/* Creates the SSL_CTXs of a server, without their certificates. Main thread. */
#ifndef WEIR_NET_TLS_CTX_H
#define WEIR_NET_TLS_CTX_H

#include <openssl/ssl.h>

#include <weir/error.h>

#include "net/tls/tls_conf.h"

/** Create a context as configured in `conf`; the caller frees it. The app data of its connections
 * must be their struct tls_tickets. On failure returns NULL, fills `err`, and sets `at` if a knob
 * below `with:` is at fault. */
SSL_CTX *tls_ctx_new(const struct tls_conf *conf, char at[TLS_PATH_BYTES], struct weir_err *err);

#endif
