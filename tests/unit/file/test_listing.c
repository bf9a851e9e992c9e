/* SPDX-License-Identifier: MIT */
/* Listings of a directory full of names that mean harm: order, escapes, bounds, what is hidden. */
#include "file/listing.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cunit_main.h"

static char base[] = "/tmp/weir-listing-XXXXXX";
static int root = -1;

static const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", base, name);
	return path;
}

static void put(const char *name)
{
	int fd = open(path_of(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	CU_ASSERT_EQUAL(write(fd, "12345", 5), 5);
	close(fd);
}

static char *make(const char *name, enum file_links links, enum listing_form form)
{
	char *body = NULL;
	size_t n = 0;

	if (listing_make(root, links, name, form, &body, &n) != 0)
		return NULL;
	CU_ASSERT_EQUAL(strlen(body), n);
	return body;
}

/* The names of a listing as JSON, "a|b|". */
static const char *names(const char *directory, enum file_links links)
{
	static char out[1024];
	char *body = make(directory, links, LISTING_JSON);
	json_t *all = body ? json_loads(body, 0, NULL) : NULL, *entry;
	size_t i;

	out[0] = '\0';
	CU_ASSERT_PTR_NOT_NULL_FATAL(all);
	json_array_foreach(json_object_get(all, "entries"), i, entry)
	{
		strncat(out, json_string_value(json_object_get(entry, "name")), 100);
		strcat(out, "|");
	}
	json_decref(all);
	free(body);
	return out;
}

static void test_make_root(void)
{
	CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(base));
	CU_ASSERT_EQUAL_FATAL(file_root(base, &root), 0);
	CU_ASSERT_EQUAL_FATAL(mkdir(path_of("d"), 0755), 0);
	CU_ASSERT_EQUAL_FATAL(mkdir(path_of("d/z"), 0755), 0);
	put("top");
	put("d/b");
	put("d/a");
	put("d/.hidden");
	put("d/x\\y");
	put("d/new\nline");
	put("d/<script>&\"'");
	put("d/javascript:alert(1)");
	put("d/\xc3\xa4\xff");
	put("d/a?b#c%20");
	CU_ASSERT_EQUAL_FATAL(symlink("/etc/passwd", path_of("d/out")), 0);
	CU_ASSERT_EQUAL_FATAL(symlink("../top", path_of("d/up")), 0);
	CU_ASSERT_EQUAL_FATAL(symlink("../../..", path_of("d/far")), 0);
	CU_ASSERT_EQUAL_FATAL(mkfifo(path_of("d/fifo"), 0644), 0);
}

static void test_order_and_hidden(void)
{
	CU_ASSERT_STRING_EQUAL(names("d", FILE_LINKS_NO),
	    "z|<script>&\"'|a|a?b#c%20|b|javascript:alert(1)|\xc3\xa4\xef\xbf\xbd|");
	CU_ASSERT_STRING_EQUAL(names("d", FILE_LINKS_BENEATH),
	    "z|<script>&\"'|a|a?b#c%20|b|javascript:alert(1)|up|\xc3\xa4\xef\xbf\xbd|");
	CU_ASSERT_STRING_EQUAL(names(".", FILE_LINKS_NO), "d|top|");
	CU_ASSERT_STRING_EQUAL(names("d/z", FILE_LINKS_NO), "");
}

static void test_json(void)
{
	char *body = make("d", FILE_LINKS_NO, LISTING_JSON);
	json_t *all = json_loads(body, 0, NULL), *e = json_object_get(all, "entries");

	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(all, "path")), "/d/");
	CU_ASSERT(json_is_false(json_object_get(all, "truncated")));
	json_t *z = json_array_get(e, 0), *odd = json_array_get(e, 3);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(z, "type")), "directory");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(z, "href")), "./z/");
	CU_ASSERT_PTR_NULL(json_object_get(z, "bytes"));
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(odd, "href")), "./a%3Fb%23c%2520");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(odd, "type")), "file");
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(odd, "bytes")), 5);
	CU_ASSERT(json_integer_value(json_object_get(odd, "modified")) > 1500000000);
	json_decref(all);
	free(body);
}

static void test_html(void)
{
	char *body = make("d", FILE_LINKS_NO, LISTING_HTML);

	CU_ASSERT_PTR_NOT_NULL(strstr(body, "<title>/d/</title>"));
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "<a href=\"../\">"));
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "<a href=\"./z/\">z/</a>"));
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(body, "<a href=\"./%3Cscript%3E%26%22%27\">&lt;script&gt;&amp;&quot;&#39;</a>"));
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"./javascript%3Aalert%281%29\""));
	CU_ASSERT_PTR_NULL(strstr(body, "<script"));
	CU_ASSERT_PTR_NULL(strstr(body, "passwd"));
	free(body);
	body = make(".", FILE_LINKS_NO, LISTING_HTML);
	CU_ASSERT_PTR_NULL(strstr(body, "../"));
	free(body);
}

static void test_no_directory(void)
{
	CU_ASSERT_PTR_NULL(make("top", FILE_LINKS_NO, LISTING_HTML));
	CU_ASSERT_PTR_NULL(make("nothing", FILE_LINKS_NO, LISTING_HTML));
	CU_ASSERT_PTR_NULL(make("d/fifo", FILE_LINKS_NO, LISTING_HTML));
	CU_ASSERT_PTR_NULL(make("d/far", FILE_LINKS_BENEATH, LISTING_HTML));
}

static void test_bounded(void)
{
	char name[64];

	CU_ASSERT_EQUAL_FATAL(mkdir(path_of("many"), 0755), 0);
	for (int i = 0; i <= LISTING_MAX; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		put(name);
	}
	char *body = make("many", FILE_LINKS_NO, LISTING_JSON);
	json_t *all = json_loads(body, 0, NULL);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(all, "entries")), LISTING_MAX);
	CU_ASSERT(json_is_true(json_object_get(all, "truncated")));
	json_decref(all);
	free(body);
	body = make("many", FILE_LINKS_NO, LISTING_HTML);
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "There is more than this"));
	free(body);
}

static void test_remove_root(void)
{
	char command[128];

	close(root);
	snprintf(command, sizeof(command), "rm -rf %s", base);
	CU_ASSERT_EQUAL(system(command), 0);
}

CUNIT_MAIN("listing", {"make a root", test_make_root},
    {"order, hidden names", test_order_and_hidden}, {"JSON", test_json}, {"HTML", test_html},
    {"no directory", test_no_directory}, {"bounded", test_bounded},
    {"remove the root", test_remove_root})
