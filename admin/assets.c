/* SPDX-License-Identifier: MIT */
/*
 * The files of the dashboard, taken into the program by the assembler: no tool, no generated
 * source. WEIR_UI_DIR is the folder admin/ui; CMake knows that this object depends on its files.
 */
#include "assets.h"

#include <string.h>

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
ASSET(style, "app.css");
ASSET(icon, "icon.svg");
ASSET(app, "app.js");
ASSET(detail, "detail.js");
ASSET(format, "format.js");
ASSET(graph, "graph.js");
ASSET(layout, "layout.js");
ASSET(model, "model.js");
ASSET(stages, "stages.js");
ASSET(verdict, "verdict.js");

#define ROW(path, type, symbol)                                                                    \
	{                                                                                          \
		path, type "; charset=utf-8", asset_##symbol##_begin, asset_##symbol##_end         \
	}

static const struct asset asset[] = {
    ROW("/", "text/html", index),
    ROW("/app.css", "text/css", style),
    ROW("/icon.svg", "image/svg+xml", icon),
    ROW("/app.js", "text/javascript", app),
    ROW("/detail.js", "text/javascript", detail),
    ROW("/format.js", "text/javascript", format),
    ROW("/graph.js", "text/javascript", graph),
    ROW("/layout.js", "text/javascript", layout),
    ROW("/model.js", "text/javascript", model),
    ROW("/stages.js", "text/javascript", stages),
    ROW("/verdict.js", "text/javascript", verdict),
};

const struct asset *asset_find(const char *path)
{
	for (size_t i = 0; i < sizeof(asset) / sizeof(asset[0]); i++)
		if (strcmp(asset[i].path, path) == 0)
			return &asset[i];
	return NULL;
}
