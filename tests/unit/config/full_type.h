/* SPDX-License-Identifier: MIT */
/* A stage type with knobs, outlets, fields and metrics of every kind, for tests of what is written
 * about types. */
#ifndef WEIR_TESTS_CONFIG_FULL_TYPE_H
#define WEIR_TESTS_CONFIG_FULL_TYPE_H

/** Register the types "t.full", "t.full_source" and "t.full_router", once. */
void full_type_register(void);

#endif
