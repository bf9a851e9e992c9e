/* SPDX-License-Identifier: MIT */
/*
 * Media types by file name extension.
 *
 * The table has the common types of web sites, from the IANA registry and, for scripts, from RFC
 * 9239. Text is declared as UTF-8, the usual encoding today, since a browser that guesses the
 * charset can be attacked. Unknown files are declared as binary, never as text, so that a browser
 * does not treat them as HTML.
 */
#include "mime.h"

#include <stddef.h>
#include <string.h>

#define TEXT "; charset=utf-8"

struct mime {
	char extension[16];
	const char *type;
};

/* Sorted by extension for the binary search; a unit test checks the order. */
static const struct mime mime_table[] = {
    {"aac", "audio/aac"},
    {"apng", "image/apng"},
    {"atom", "application/atom+xml"},
    {"avif", "image/avif"},
    {"bmp", "image/bmp"},
    {"bz2", "application/x-bzip2"},
    {"css", "text/css" TEXT},
    {"csv", "text/csv" TEXT},
    {"epub", "application/epub+zip"},
    {"flac", "audio/flac"},
    {"gif", "image/gif"},
    {"gz", "application/gzip"},
    {"htm", "text/html" TEXT},
    {"html", "text/html" TEXT},
    {"ico", "image/vnd.microsoft.icon"},
    {"ics", "text/calendar" TEXT},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript" TEXT},
    {"json", "application/json"},
    {"jsonld", "application/ld+json"},
    {"jxl", "image/jxl"},
    {"m4a", "audio/mp4"},
    {"m4v", "video/mp4"},
    {"map", "application/json"},
    {"md", "text/markdown" TEXT},
    {"mjs", "text/javascript" TEXT},
    {"mov", "video/quicktime"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"mpeg", "video/mpeg"},
    {"oga", "audio/ogg"},
    {"ogg", "audio/ogg"},
    {"ogv", "video/ogg"},
    {"opus", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"rss", "application/rss+xml"},
    {"svg", "image/svg+xml" TEXT},
    {"tar", "application/x-tar"},
    {"tif", "image/tiff"},
    {"tiff", "image/tiff"},
    {"toml", "application/toml"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain" TEXT},
    {"vtt", "text/vtt" TEXT},
    {"wasm", "application/wasm"},
    {"wav", "audio/wav"},
    {"weba", "audio/webm"},
    {"webm", "video/webm"},
    {"webmanifest", "application/manifest+json"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"xhtml", "application/xhtml+xml"},
    {"xml", "application/xml"},
    {"xz", "application/x-xz"},
    {"yaml", "application/yaml"},
    {"yml", "application/yaml"},
    {"zip", "application/zip"},
    {"zst", "application/zstd"},
};

const char *mime_type(const char *name)
{
	const char *base = strrchr(name, '/');
	const char *dot = strrchr(base ? base : name, '.');
	size_t low = 0, high = sizeof(mime_table) / sizeof(mime_table[0]);

	while (dot && low < high) {
		size_t middle = (low + high) / 2;
		int order = strcasecmp(dot + 1, mime_table[middle].extension);
		if (order == 0)
			return mime_table[middle].type;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return "application/octet-stream";
}
