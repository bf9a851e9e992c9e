/* SPDX-License-Identifier: MIT */
/* Manages the certificates and ticket keys of a server; see tls_site.h. */
#include "net/tls/tls_site.h"

#include <stdlib.h>

#include <weir/clock.h>

#include "net/tls/tls_certs.h"
#include "net/tls/tls_pem.h"
#include "net/tls/tls_ticket.h"

/* Check for faults that can be found without reading files: `tls` without a certificate, a missing
 * handshake stage, or a handshake stage without `tls`. */
static int check_links(struct weir_stage *st, int outlet, bool on, struct weir_err *err)
{
	bool linked = weir_outlet_linked(st, outlet);

	if (!on && weir_blame(st, "tls"))
		return tls_fail(err, WEIR_EINVAL, "write tls: { cert: FILE, key: FILE }",
		    "'tls' names no certificate");
	if (on && !linked) {
		weir_blame(st, "tls");
		return tls_fail(err, WEIR_ELINK,
		    "add a stage { use: tls.handshake }, and link it here: to: { handshake: NAME }",
		    "handshakes need a stage of their own");
	}
	if (!on && linked)
		return tls_fail(err, WEIR_EINVAL, "add 'tls:', or remove 'handshake' under 'to:'",
		    "'handshake' is linked, but 'tls' is missing");
	return 0;
}

/* Warn of incomplete chains. They are not necessarily mistakes: a client may have the missing
 * certificate, or trust a private CA. */
static void warn_of_chains(struct weir_stage *st, const struct tls_certs *certs)
{
	for (int i = 0; i < tls_certs_count(certs); i++) {
		const char *at, *path;
		const char *issuer = tls_certs_missing(certs, i, &at, &path);
		if (issuer)
			weir_warn(st, at,
			    "%.100s does not contain the certificate of '%.80s', an authority "
			    "unknown to this host: append that certificate, since clients may "
			    "refuse the connection",
			    path, issuer);
	}
}

int tls_site_new(struct weir_stage *st, int outlet, const struct tls_conf *conf,
    struct tls_site **site, struct weir_err *err)
{
	bool on = tls_conf_is_on(conf);
	struct tls_certs *certs;
	char at[TLS_PATH_BYTES];
	int rc = check_links(st, outlet, on, err);

	*site = NULL;
	if (rc != 0 || !on)
		return rc;
	rc = tls_certs_load(conf, weir_stage_name(st), &certs, at, err);
	if (rc != 0) {
		weir_blame(st, at);
		return rc;
	}
	*site = calloc(1, sizeof(**site));
	if (!*site) {
		tls_certs_unref(certs);
		return tls_fail(err, WEIR_ENOMEM, NULL, "out of memory");
	}
	pthread_mutex_init(&(*site)->lock, NULL);
	(*site)->certs = certs;
	warn_of_chains(st, certs);
	return 0;
}

int tls_site_start(struct tls_site *site, const struct tls_conf *conf,
    const struct tls_site *before, struct weir_err *err)
{

	if (conf->ticket_ns == 0)
		return 0;
	if (before && before->tickets) {
		site->tickets = tls_tickets_ref(before->tickets);
		tls_tickets_set_lifetime(site->tickets, conf->ticket_ns);
		return 0;
	}
	site->tickets = tls_tickets_new(conf->ticket_ns, weir_clock_ns(CLOCK_MONOTONIC));
	return site->tickets ? 0 : tls_fail(err, WEIR_ESYS, NULL, "cannot create ticket keys");
}

struct tls_certs *tls_site_certs(struct tls_site *site)
{
	pthread_mutex_lock(&site->lock);
	struct tls_certs *certs = tls_certs_ref(site->certs);
	pthread_mutex_unlock(&site->lock);
	return certs;
}

void tls_site_reread(struct tls_site *site, struct tls_site *from, const char *name)
{
	pthread_mutex_lock(&site->lock);
	struct tls_certs *old = site->certs;
	site->certs = from->certs;
	pthread_mutex_unlock(&site->lock);
	/* no lock is needed from here on: only this thread replaces the certificates */
	tls_certs_tell(from->certs, name);
	from->certs = old;
}

bool tls_site_renewed(struct tls_site *site, const struct tls_site *from, char *text, size_t size)
{
	struct tls_certs *was = tls_site_certs(site);
	bool renewed = tls_certs_renewed(from->certs, was, text, size) > 0;
	tls_certs_unref(was);
	return renewed;
}

void tls_site_free(struct tls_site *site)
{
	if (!site)
		return;
	tls_certs_unref(site->certs);
	tls_tickets_unref(site->tickets);
	pthread_mutex_destroy(&site->lock);
	free(site);
}
