/* SPDX-License-Identifier: MIT */
/*
 * `tls:` of http.server as the YAML says it; the rows are in tls_conf.c.
 *
 *        tls: { cert: site.pem, key: site.key }
 *        tls: { certs: [ { cert: a.pem, key: a.key }, { cert: b.pem, key: b.key } ], min_version: 1.3 }
 */
#ifndef WEIR_HTTP_TLS_CONF_H
#define WEIR_HTTP_TLS_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/knob.h>

/** A certificate with its key: paths of PEM files. */
struct tls_pair_conf {
	char *cert, *key;
};

/* Order of the choices of `min_version:`. */
enum tls_min_version { TLS_MIN_1_2, TLS_MIN_1_3 };

struct tls_conf {
	struct tls_pair_conf own;  /* `cert` and `key`: the one and only, or the first */
	struct weir_records certs; /* struct tls_pair_conf: more of them */
	int min_version;           /* enum tls_min_version */
	char *ciphers;             /* of TLS 1.2, an OpenSSL list */
	int64_t ticket_ns;         /* how long a ticket is good; 0: no tickets */
	bool kernel;               /* let the kernel encrypt where it can */
};

/** Rows of `tls:`. */
extern const struct weir_knob tls_knobs[];

/** Does it ask for TLS at all? */
static inline bool tls_conf_is_on(const struct tls_conf *conf)
{
	return conf->own.cert[0] || conf->own.key[0] || conf->certs.n > 0;
}

#endif
