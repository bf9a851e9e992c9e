/* SPDX-License-Identifier: MIT */
/*
 * What TLS of a server is made of: its certificates, which a reload may exchange, and the keys of its tickets, which the
 * next server takes over.
 *
 * | call                      | main, reload | I/O threads |
 * |---------------------------|--------------|-------------|
 * | tls_site_certs            |              | yes         |
 * | all others                | one at once  |             |
 */
#ifndef WEIR_HTTP_TLS_SITE_H
#define WEIR_HTTP_TLS_SITE_H

#include <pthread.h>

#include <weir/stage.h>

#include "http/tls_conf.h"

struct tls_certs;
struct tls_tickets;

struct tls_site {
	pthread_mutex_t lock;
	struct tls_certs *certs;     /* under the lock */
	struct tls_tickets *tickets; /* constant once started; NULL: none are given */
};

/** The outlet of http.server to the stage of handshakes. */
#define TLS_OUTLET 1

/** Read what `conf` asks for; *site is NULL when that is no TLS. In ops->init of `st`: what is wrong is blamed. 0, or a
 *  WEIR_E code with `err`. */
int tls_site_new(struct weir_stage *st, const struct tls_conf *conf, struct tls_site **site,
    struct weir_err *err);

/** Make keys for tickets, or take those of `before` (NULL: there is none). 0, or WEIR_ESYS with `err`. */
int tls_site_start(struct tls_site *site, const struct tls_conf *conf,
    const struct tls_site *before, struct weir_err *err);

/** ops->refresh of http.server: take the certificates that `wanted` has read, and give it ours. */
void tls_site_reread(struct weir_stage *st, struct weir_stage *wanted);

/** ops->renewed of http.server: certificates at the same paths that are others. */
bool tls_site_renewed(struct weir_stage *st, struct weir_stage *wanted, char *text, size_t size);

/** NULL is allowed. Connections keep what they need. */
void tls_site_free(struct tls_site *site);

/** A reference to the certificates of now. */
struct tls_certs *tls_site_certs(struct tls_site *site);

#endif
