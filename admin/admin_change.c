/* SPDX-License-Identifier: MIT */
/* Changes the endpoint on a reload; see admin_change.h. */
#include "admin_change.h"

#include <stdlib.h>
#include <string.h>

#include <weir/log.h>

#include "admin/http/admin_tls_keys.h"

struct admin_change {
	struct weir_alerts_spec alerts;
	/* the address or the use of TLS differs, so no part of `admin:` applies before a restart */
	bool waits;
	bool unless_shed;
	bool shared; /* other users may connect to the socket file */
	/* NULL if `waits`: the current auth and keys stay in use and read their files again */
	struct auth *auth;
	struct keys *keys;
};

static bool waits(
    const struct weir_admin_spec *spec, const char *listen, const struct authority *address)
{
	return strcmp(spec->listen, listen) != 0 || (*spec->tls.cert != '\0') != address->tls;
}

/* Read the token and key files. admin_check has accepted them, but they may have changed since
 * then. If they are now invalid, this function fails and nothing is changed. */
static int prepare_gate(const struct weir_admin_spec *spec, const struct authority *address,
    struct admin_change *c, struct weir_errs *errs)
{
	struct weir_err err = {0};
	int rc = auth_new(spec, address, &c->auth, errs);

	if (rc == 0 && address->tls && keys_new(spec->tls.cert, spec->tls.key, &c->keys, &err) != 0)
		rc = weir_errs_add(errs,
		    spec->tls.cert_mark.file ? &spec->tls.cert_mark : &spec->tls_mark, err.code,
		    err.hint, "%s", err.text);
	c->shared = spec->n_users > 0;
	c->unless_shed = spec->ready.unless_shed;
	return rc;
}

int admin_change_new(const struct weir_spec *spec, const char *listen,
    const struct authority *address, struct admin_change **out, struct weir_errs *errs)
{
	struct admin_change *c = calloc(1, sizeof(*c));
	int rc = c ? weir_alerts_copy(&spec->alerts, &c->alerts) : WEIR_ENOMEM;

	if (rc != 0)
		weir_errs_add(errs, NULL, rc, NULL, "out of memory");
	else if (waits(&spec->admin, listen, address))
		c->waits = true;
	else
		rc = prepare_gate(&spec->admin, address, c, errs);
	if (rc != 0) {
		admin_change_free(c);
		c = NULL;
	}
	*out = c;
	return rc;
}

void admin_change_free(struct admin_change *c)
{
	if (!c)
		return;
	weir_alerts_free(&c->alerts);
	auth_free(c->auth);
	keys_unref(c->keys);
	free(c);
}

void admin_change_make(struct admin_change *c, const struct admin_parts *p)
{
	alerts_rule(p->alerts, &c->alerts);
	if (c->waits) {
		auth_reload(p->auth);
		if (p->tls)
			admin_tls_reload(p->tls);
		return;
	}
	*p->unless_shed = c->unless_shed;
	auth_become(p->auth, c->auth);
	c->auth = NULL;
	if (p->tls && c->keys) {
		admin_tls_use(p->tls, c->keys);
		c->keys = NULL;
	}
	if (authority_share(p->address, c->shared) != 0)
		weir_log(WEIR_LOG_ERROR, "admin: the permissions of the socket file could not be "
					 "changed and remain as they were");
}
