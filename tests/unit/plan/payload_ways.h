/* SPDX-License-Identifier: MIT */
/* Graphs of stages with payloads, and the check of them (plan/payloads.c), for its tests. */
#ifndef WEIR_TESTS_UNIT_PLAN_PAYLOAD_WAYS_H
#define WEIR_TESTS_UNIT_PLAN_PAYLOAD_WAYS_H

#include "fixture/graph/payloads.h"

#include "cunit_main.h"

/* The errors of the last ways_check. */
extern struct weir_errs ways_errs;

/* Register the stage types. */
void ways_register(void);

/* Check and free the spec. `want`: part of the first error; NULL: there is none. */
void ways_check(struct weir_spec *spec, const char *want);

/* A stage of type `use`, linked to `to`, which may be NULL. */
struct weir_stage_spec *ways_stage(
    struct weir_spec *spec, const char *name, const char *use, const char *to);

/* A spec that begins with the source "web". */
struct weir_spec *ways_web(const char *source, const char *first);

#endif
