/* SPDX-License-Identifier: MIT */
#include "file/mime.h"

#include <string.h>

#include "cunit_main.h"

static void test_known(void)
{
	CU_ASSERT_STRING_EQUAL(mime_type("index.html"), "text/html; charset=utf-8");
	CU_ASSERT_STRING_EQUAL(mime_type("a/b.css"), "text/css; charset=utf-8");
	CU_ASSERT_STRING_EQUAL(mime_type("app.js"), "text/javascript; charset=utf-8");
	CU_ASSERT_STRING_EQUAL(mime_type("x.aac"), "audio/aac");
	CU_ASSERT_STRING_EQUAL(mime_type("x.zst"), "application/zstd");
	CU_ASSERT_STRING_EQUAL(mime_type("f.woff2"), "font/woff2");
}

static void test_case(void)
{
	CU_ASSERT_STRING_EQUAL(mime_type("PHOTO.JPG"), "image/jpeg");
	CU_ASSERT_STRING_EQUAL(mime_type("a.HtMl"), "text/html; charset=utf-8");
}

static void test_last_extension_counts(void)
{
	CU_ASSERT_STRING_EQUAL(mime_type("a.html.gz"), "application/gzip");
	CU_ASSERT_STRING_EQUAL(mime_type("a.html/b.png"), "image/png");
}

static void test_unknown(void)
{
	static const char *const names[] = {"", "README", "a.", "a.unknown", "dir.html/readme",
	    "html", ".html/x", "x.htmlx", "x.htm l",
	    "aaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbb"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		CU_ASSERT_STRING_EQUAL(mime_type(names[i]), "application/octet-stream");
}

/* The search is binary: an entry out of order would not be found. */
static void test_every_entry_is_found(void)
{
	static const char *const all[] = {"aac", "apng", "atom", "avif", "bmp", "bz2", "css", "csv",
	    "epub", "flac", "gif", "gz", "htm", "html", "ico", "ics", "jpeg", "jpg", "js", "json",
	    "jsonld", "jxl", "m4a", "m4v", "map", "md", "mjs", "mov", "mp3", "mp4", "mpeg", "oga",
	    "ogg", "ogv", "opus", "otf", "pdf", "png", "rss", "svg", "tar", "tif", "tiff", "toml",
	    "ttf", "txt", "vtt", "wasm", "wav", "weba", "webm", "webmanifest", "webp", "woff",
	    "woff2", "xhtml", "xml", "xz", "yaml", "yml", "zip", "zst"};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char name[32] = "x.";
		strcat(name, all[i]);
		CU_ASSERT(strcmp(mime_type(name), "application/octet-stream") != 0);
	}
}

CUNIT_MAIN("mime", {"known", test_known}, {"without case", test_case},
    {"the last extension counts", test_last_extension_counts}, {"unknown", test_unknown},
    {"every entry is found", test_every_entry_is_found})
