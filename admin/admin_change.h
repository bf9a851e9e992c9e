/* SPDX-License-Identifier: MIT */
/*
 * Changes the endpoint on a reload, in two steps. admin_prepare (any thread) does everything that
 * can fail, while the reload can still be abandoned. admin_switch (the admin thread) applies the
 * result between two requests; it cannot fail.
 */
#ifndef WEIR_ADMIN_ADMIN_CHANGE_H
#define WEIR_ADMIN_ADMIN_CHANGE_H

#include "admin.h"
#include "admin/http/admin_tls.h"
#include "admin/metrics/alerts.h"
#include "admin/auth/auth.h"

/** Does the work of admin_prepare (admin.h) for an endpoint whose configured address is `listen`.
 *  `address` is the parsed address in use; only members that never change are read, so any thread
 *  may call this function. */
int admin_change_new(const struct weir_spec *spec, const char *listen,
    const struct authority *address, struct admin_change **change, struct weir_errs *errs);

/** The parts of an endpoint that a change replaces. */
struct admin_parts {
	struct auth *auth;
	struct admin_tls *tls; /* NULL without TLS */
	struct authority *address;
	struct alerts *alerts;
	bool *unless_shed; /* as in struct admin_source */
};

/** Apply the change. `change` is empty afterwards but must still be freed. Admin thread only. */
void admin_change_make(struct admin_change *change, const struct admin_parts *parts);

#endif
