/* SPDX-License-Identifier: MIT */
/*
 * A change of the endpoint by a reload, in two steps: everything that can fail before the reload is decided (admin_prepare,
 * any thread), the rest in one go between two requests (admin_switch, the admin thread).
 */
#ifndef WEIR_ADMIN_ADMIN_CHANGE_H
#define WEIR_ADMIN_ADMIN_CHANGE_H

#include "admin.h"
#include "admin_tls.h"
#include "alerts.h"
#include "gate.h"

/** admin_prepare for an endpoint that was told to listen on `listen` and does on `address`, of which only what never changes
 *  is read. */
int admin_change_new(const struct weir_spec *spec, const char *listen,
    const struct authority *address, struct admin_change **change, struct weir_errs *errs);

/** What of an endpoint changes. */
struct admin_parts {
	struct gate *gate;
	struct admin_tls *tls; /* NULL: none */
	struct authority *address;
	struct alerts *alerts;
};

/** Make it so; `change` is empty then, and still to be freed. The admin thread. */
void admin_change_make(struct admin_change *change, const struct admin_parts *parts);

#endif
