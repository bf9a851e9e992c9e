/* SPDX-License-Identifier: MIT */
/* Saves the overridden knobs in the file of the configuration (docs/api.md). */
#ifndef WEIR_ADMIN_SAVING_H
#define WEIR_ADMIN_SAVING_H

#include "routes.h"

/** POST /api/v1/save. */
void answer_save(const struct call *call, struct reply *reply);

#endif
