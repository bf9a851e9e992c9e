/* SPDX-License-Identifier: MIT */
/* Writes overridden knobs into the file of the configuration. */
#ifndef WEIR_SERVER_SAVE_H
#define WEIR_SERVER_SAVE_H

#include <stdbool.h>

#include "admin/admin.h"

/** Write saved[0..n) into the file `path`, as admin_reloading.save does (admin.h). `folder` is removed from
 *  the names of files that are shown. One thread at a time. */
int save_values(const char *path, const char *folder, const struct admin_saved *saved, int n,
    bool preview, char **file, char **changes);

#endif
