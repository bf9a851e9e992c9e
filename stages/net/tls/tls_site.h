/* SPDX-License-Identifier: MIT */
/*
 * The TLS state of a server: its certificates, which a reload may replace, and its ticket keys,
 * which the next server takes over.
 *
 * | call                      | main, reload | I/O threads |
 * |---------------------------|--------------|-------------|
 * | tls_site_certs            |              | yes         |
 * | all others                | serialized   |             |
 */
#ifndef WEIR_NET_TLS_SITE_H
#define WEIR_NET_TLS_SITE_H

#include <pthread.h>

#include <weir/stage.h>

#include "net/tls/tls_conf.h"

struct tls_certs;
struct tls_tickets;

struct tls_site {
	pthread_mutex_t lock;
	struct tls_certs *certs;     /* guarded by `lock` */
	struct tls_tickets *tickets; /* constant once started; NULL without tickets */
};

/** Read the certificates that `conf` names; *site is NULL if `conf` does not enable TLS. `outlet`
 * is the outlet of `st` to the stage that does its handshakes. Called in ops->init of `st`; faults
 * are attributed to its knobs. Returns 0, or a WEIR_E code with `err`. */
int tls_site_new(struct weir_stage *st, int outlet, const struct tls_conf *conf,
    struct tls_site **site, struct weir_err *err);

/** Create ticket keys, or share those of `before`, which is NULL if there is no earlier server.
 * Returns 0, or WEIR_ESYS with `err`. */
int tls_site_start(struct tls_site *site, const struct tls_conf *conf,
    const struct tls_site *before, struct weir_err *err);

/** Exchange the certificates of `site` for those that `from` has read, and log the certificates
 * that the stage `name` now serves. One thread at a time. */
void tls_site_reread(struct tls_site *site, struct tls_site *from, const char *name);

/** Whether certificates at the same paths differ between `site` and `from`; `text` then says
 * how. */
bool tls_site_renewed(struct tls_site *site, const struct tls_site *from, char *text, size_t size);

/** Free `site`; NULL is allowed. Connections keep references to what they need. */
void tls_site_free(struct tls_site *site);

/** Take a reference to the current certificates. */
struct tls_certs *tls_site_certs(struct tls_site *site);

#endif
