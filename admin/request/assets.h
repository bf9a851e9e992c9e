/* SPDX-License-Identifier: MIT */
/* Files embedded in the program: the dashboard and the API description. */
#ifndef WEIR_ADMIN_ASSETS_H
#define WEIR_ADMIN_ASSETS_H

#include <stddef.h>

struct asset {
	const char *path; /* as requested: "/", "/app.js", "/api/v1/openapi.json" */
	const char *type; /* Content-Type */
	const char *begin, *end;
	const char *zipped, *zipped_end; /* the same compressed by gzip; NULL if there is none */
};

/** Return the file at `path`, or NULL if it does not exist. */
const struct asset *asset_find(const char *path);

#endif
