/* SPDX-License-Identifier: MIT */
/* Where the stages of a server listen, as its YAML says it. Pure functions. */
#ifndef WEIR_CLI_LISTEN_H
#define WEIR_CLI_LISTEN_H

#include <stdbool.h>

#include <weir/error.h>
#include <weir/spec.h>

/** Does the stage listen on addresses? */
bool listen_listens(const struct weir_stage_spec *stage);

/** Entry `i` of its `listen:` as it was written, or the default; "" past the end. */
const char *listen_text(const struct weir_stage_spec *stage, int i);

/** A stage that asks for the very address of the admin endpoint, which `spec` has; NULL for none.
 *  Addresses are compared as written, one that means every address of the machine meets any, and
 *  port 0 meets none. */
const struct weir_stage_spec *listen_clash(const struct weir_spec *spec);

/** Report every address that is listened on twice: by two stages, or by one. Nothing is bound; names are looked up, as
 *  they were when the stages were made. */
void listen_check(const struct weir_spec *spec, struct weir_errs *errs);

#endif
