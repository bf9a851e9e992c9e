/* SPDX-License-Identifier: MIT */
/*
 * `tls:` of a server as configured; the knobs are in tls_conf.c.
 *
 *   tls: { cert: site.pem, key: site.key }
 *   tls: { certs: [ { cert: a.pem, key: a.key }, { cert: b.pem, key: b.key } ],
 *          min_version: 1.3 }
 */
#ifndef WEIR_NET_TLS_CONF_H
#define WEIR_NET_TLS_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/knob.h>

/** Size of a path below `with:`, "tls.certs.999.cert". */
#define TLS_PATH_BYTES 48

/** A certificate with its key: paths of PEM files. */
struct tls_pair_conf {
	char *cert, *key;
};

/* Order of the choices of `min_version:`. */
enum tls_min_version { TLS_MIN_1_2, TLS_MIN_1_3 };

struct tls_conf {
	struct tls_pair_conf own;  /* from `cert` and `key`: the only pair, or the first */
	struct weir_records certs; /* further pairs: struct tls_pair_conf */
	int min_version;           /* enum tls_min_version */
	char *ciphers;             /* for TLS 1.2, an OpenSSL list */
	int64_t ticket_ns;         /* lifetime of a ticket; 0 means no tickets */
	bool kernel;               /* let the kernel encrypt where it can */
};

/** The knobs of `tls:`. */
extern const struct weir_knob tls_knobs[];

/** Whether `conf` enables TLS. */
static inline bool tls_conf_is_on(const struct tls_conf *conf)
{
	return conf->own.cert[0] || conf->own.key[0] || conf->certs.n > 0;
}

#endif
