/* SPDX-License-Identifier: MIT */
/* The files of the dashboard, which are part of the program. */
#ifndef WEIR_ADMIN_ASSETS_H
#define WEIR_ADMIN_ASSETS_H

#include <stddef.h>

struct asset {
	const char *path; /* as requested: "/", "/app.js" */
	const char *type; /* Content-Type */
	const char *begin, *end;
};

/** The file at `path`, NULL when there is none. */
const struct asset *asset_find(const char *path);

#endif
