/* SPDX-License-Identifier: MIT */
/*
 * Shared by torture_gone.c: stages that split requests, call each other and wait, in ways drawn at random.
 *
 * t.gone accepts requests and has the outlet "part"; t.part and t.part.loop accept parts and have the
 * outlet "leaf"; t.leaf ends parts.
 */
#ifndef WEIR_TESTS_TORTURE_GONE_STAGES_H
#define WEIR_TESTS_TORTURE_GONE_STAGES_H

#include <stdatomic.h>

#include "fixture/http/server.h"

/* Parts that were made and that have ended; requests that their stage got. */
extern atomic_ullong gone_made, gone_ended, gone_requests;

void gone_register(void);
void gone_reset(void);

#endif
