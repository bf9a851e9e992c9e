/* SPDX-License-Identifier: MIT */
/* The addresses on which the stages of a server listen, according to its YAML. Stateless;
 * listen_check may resolve names. */
#ifndef WEIR_SERVER_LISTEN_H
#define WEIR_SERVER_LISTEN_H

#include <stdbool.h>

#include <weir/error.h>
#include <weir/spec.h>

/** Return whether the stage listens on addresses. */
bool listen_listens(const struct weir_stage_spec *stage);

/** Return entry `i` of `listen:` of `stage` as written, or the default if `listen:` is not set; ""
 *  after the last entry. */
const char *listen_text(const struct weir_stage_spec *stage, int i);

/** Return the first stage that listens on the address of the admin endpoint, or NULL if there is
 *  none. `spec` must have an admin endpoint. Addresses are compared as written. A stage that
 *  listens on all addresses of the host conflicts if its port is that of the endpoint; port 0 never
 *  conflicts. */
const struct weir_stage_spec *listen_clash(const struct weir_spec *spec);

/** Report every address that occurs twice, in two stages or in one. Nothing is bound. Names are
 *  resolved, as they are when the stages are created. */
void listen_check(const struct weir_spec *spec, struct weir_errs *errs);

#endif
