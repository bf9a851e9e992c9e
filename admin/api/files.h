/* SPDX-License-Identifier: MIT */
/* The files of the dashboard and the description of the API, which are parts of the program. */
#ifndef WEIR_ADMIN_FILES_H
#define WEIR_ADMIN_FILES_H

#include "routes.h"

/** Answer with the file at the path of `call`, which asset_find knows: compressed by gzip if the
 *  client accepts that and the build has compressed it. */
void answer_asset(const struct call *call, struct reply *reply);

#endif
