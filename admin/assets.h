/* SPDX-License-Identifier: MIT */
/* Files that are part of the program: the dashboard, and the description of the API. */
#ifndef WEIR_ADMIN_ASSETS_H
#define WEIR_ADMIN_ASSETS_H

#include <stddef.h>

struct asset {
	const char *path; /* as requested: "/", "/app.js", "/api/v1/openapi.json" */
	const char *type; /* Content-Type */
	const char *begin, *end;
};

/** The file at `path`, NULL when there is none. */
const struct asset *asset_find(const char *path);

#endif
