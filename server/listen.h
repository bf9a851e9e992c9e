/* SPDX-License-Identifier: MIT */
/* Where the stages of a server listen, according to its YAML. No state; listen_check may resolve
 * names. */
#ifndef WEIR_CLI_LISTEN_H
#define WEIR_CLI_LISTEN_H

#include <stdbool.h>

#include <weir/error.h>
#include <weir/spec.h>

/** Whether the stage listens on addresses. */
bool listen_listens(const struct weir_stage_spec *stage);

/** Return entry `i` of the `listen:` of `stage` as written, or the default; "" past the end. */
const char *listen_text(const struct weir_stage_spec *stage, int i);

/** Return the first stage that listens on the address of the admin endpoint, which `spec` must
 *  have; NULL if there is none. Addresses are compared as written. A stage that listens on every
 *  address of the host conflicts if its port is the same; port 0 never conflicts. */
const struct weir_stage_spec *listen_clash(const struct weir_spec *spec);

/** Report every address that is listened on twice, by two stages or by one. Nothing is bound. Names
 *  are resolved, as when the stages were created. */
void listen_check(const struct weir_spec *spec, struct weir_errs *errs);

#endif
