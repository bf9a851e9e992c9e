/* SPDX-License-Identifier: MIT */
/*
 * Embeds the dashboard files and the API description by means of the assembler, without additional
 * tools or generated source files. WEIR_UI_DIR is the folder of the built page: admin/ui/dist,
 * unless this build has built the page itself. WEIR_OPENAPI_FILE is admin/openapi.json. CMake
 * declares these files as dependencies of the object. With WEIR_UI_OFF the page is a single
 * sentence.
 *
 * WEIR_ZIPPED_DIR is the folder of the same files compressed by gzip, with the ending ".gz". It is
 * not defined if the build has found no gzip. Both copies are embedded, since a few clients (curl
 * without --compressed) do not accept gzip, and the program contains no code that could decompress.
 */
#include "assets.h"

#include <stdbool.h>
#include <string.h>

#define ASSET(symbol, file)                                                                        \
	__asm__(".section .rodata\n"                                                               \
		".global asset_" #symbol "_begin\n"                                                \
		".hidden asset_" #symbol "_begin\n"                                                \
		"asset_" #symbol "_begin:\n"                                                       \
		".incbin \"" file "\"\n"                                                           \
		".global asset_" #symbol "_end\n"                                                  \
		".hidden asset_" #symbol "_end\n"                                                  \
		"asset_" #symbol "_end:\n"                                                         \
		".byte 0\n"                                                                        \
		".previous\n");                                                                    \
	extern const char asset_##symbol##_begin[], asset_##symbol##_end[]

#ifdef WEIR_ZIPPED_DIR
#define ZIPPED_ASSET(symbol, name) ASSET(symbol##_gz, WEIR_ZIPPED_DIR "/" name ".gz")
#define ZIPPED(symbol)             asset_##symbol##_gz_begin, asset_##symbol##_gz_end
#else
#define ZIPPED_ASSET(symbol, name) _Static_assert(true, "not compressed")
#define ZIPPED(symbol)             NULL, NULL
#endif

#define ROW(path, type, symbol)                                                                    \
	{                                                                                          \
		path, type "; charset=utf-8", asset_##symbol##_begin, asset_##symbol##_end,        \
		    ZIPPED(symbol)                                                                 \
	}

ASSET(openapi, WEIR_OPENAPI_FILE);
ZIPPED_ASSET(openapi, "openapi.json");

#ifdef WEIR_UI_OFF
static const char asset_index_begin[] =
    "This weir was built without its dashboard (WEIR_UI=off). /api/v1 lists the routes.\n";
#define asset_index_end (asset_index_begin + sizeof(asset_index_begin) - 1)
#else
ASSET(index, WEIR_UI_DIR "/index.html");
ASSET(app, WEIR_UI_DIR "/app.js");
ASSET(style, WEIR_UI_DIR "/app.css");
ASSET(icon, WEIR_UI_DIR "/icon.svg");
ASSET(licences, WEIR_UI_DIR "/LICENSES.txt");
ZIPPED_ASSET(index, "index.html");
ZIPPED_ASSET(app, "app.js");
ZIPPED_ASSET(style, "app.css");
ZIPPED_ASSET(icon, "icon.svg");
ZIPPED_ASSET(licences, "LICENSES.txt");
#endif

static const struct asset asset[] = {
    {"/api/v1/openapi.json", "application/json", asset_openapi_begin, asset_openapi_end,
	ZIPPED(openapi)},
#ifdef WEIR_UI_OFF
    {"/", "text/plain; charset=utf-8", asset_index_begin, asset_index_end, NULL, NULL},
#else
    ROW("/", "text/html", index),
    ROW("/app.js", "text/javascript", app),
    ROW("/app.css", "text/css", style),
    ROW("/icon.svg", "image/svg+xml", icon),
    ROW("/LICENSES.txt", "text/plain", licences),
#endif
};

const struct asset *asset_find(const char *path)
{
	for (size_t i = 0; i < sizeof(asset) / sizeof(asset[0]); i++)
		if (strcmp(asset[i].path, path) == 0)
			return &asset[i];
	return NULL;
}
