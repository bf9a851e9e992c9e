/* SPDX-License-Identifier: MIT */
/*
 * The files of the dashboard, taken into the program by the assembler: no tool, no generated
 * source. WEIR_UI_DIR is the folder of the built page, admin/ui/dist unless it was built just now;
 * CMake knows that this object depends on its files. With WEIR_UI_OFF there is only a sentence.
 */
#include "assets.h"

#include <string.h>

#define ROW(path, type, symbol)                                                                    \
	{                                                                                          \
		path, type "; charset=utf-8", asset_##symbol##_begin, asset_##symbol##_end         \
	}

#ifdef WEIR_UI_OFF

static const char asset_index_begin[] = "This weir was built without its dashboard (WEIR_UI=off). "
					"/api/v1 lists what there is.\n";
#define asset_index_end (asset_index_begin + sizeof(asset_index_begin) - 1)

static const struct asset asset[] = {
    ROW("/", "text/plain", index),
};

#else

#define ASSET(symbol, file)                                                                        \
	__asm__(".section .rodata\n"                                                               \
		".global asset_" #symbol "_begin\n"                                                \
		".hidden asset_" #symbol "_begin\n"                                                \
		"asset_" #symbol "_begin:\n"                                                       \
		".incbin \"" WEIR_UI_DIR "/" file "\"\n"                                           \
		".global asset_" #symbol "_end\n"                                                  \
		".hidden asset_" #symbol "_end\n"                                                  \
		"asset_" #symbol "_end:\n"                                                         \
		".byte 0\n"                                                                        \
		".previous\n");                                                                    \
	extern const char asset_##symbol##_begin[], asset_##symbol##_end[]

ASSET(index, "index.html");
ASSET(app, "app.js");
ASSET(style, "app.css");
ASSET(icon, "icon.svg");
ASSET(licences, "LICENSES.txt");

static const struct asset asset[] = {
    ROW("/", "text/html", index),
    ROW("/app.js", "text/javascript", app),
    ROW("/app.css", "text/css", style),
    ROW("/icon.svg", "image/svg+xml", icon),
    ROW("/LICENSES.txt", "text/plain", licences),
};

#endif

const struct asset *asset_find(const char *path)
{
	for (size_t i = 0; i < sizeof(asset) / sizeof(asset[0]); i++)
		if (strcmp(asset[i].path, path) == 0)
			return &asset[i];
	return NULL;
}
