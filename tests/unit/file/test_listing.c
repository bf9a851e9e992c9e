/* SPDX-License-Identifier: MIT */
/* Listings of a directory with malicious names: order, escapes, limits, and hidden files. */
#include "file/listing.h"

#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cunit_main.h"
#include "file/path.h"
#include "http/message/normal_path.h"

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

/* The names of a JSON listing, as "a|b|". */
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
	CU_ASSERT_PTR_NOT_NULL(strstr(
	    body, "<a href=\"./%3Cscript%3E&amp;%22&#39;\">&lt;script&gt;&amp;&quot;&#39;</a>"));
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "\"./javascript:alert(1)\""));
	CU_ASSERT_PTR_NULL(strstr(body, "<script"));
	CU_ASSERT_PTR_NULL(strstr(body, "passwd"));
	free(body);
	body = make(".", FILE_LINKS_NO, LISTING_HTML);
	CU_ASSERT_PTR_NULL(strstr(body, "../"));
	free(body);
}

/* Bytes that are not UTF-8 become a U+FFFD each: overlong forms, surrogates, what is beyond
 * U+10FFFF, and characters that are cut off. The bounds themselves are kept. */
static void test_utf8(void)
{
#define BAD "\xef\xbf\xbd"
	static const struct {
		const char *name, *json;
	} cases[] = {{"\xc1\xbf", BAD BAD "|"}, {"\xc2\x80", "\xc2\x80|"},
	    {"\xdf\xbf", "\xdf\xbf|"}, {"\xe0\x9f\xbf", BAD BAD BAD "|"},
	    {"\xe0\xa0\x80", "\xe0\xa0\x80|"}, {"\xed\x9f\xbf", "\xed\x9f\xbf|"},
	    {"\xed\xa0\x80", BAD BAD BAD "|"}, {"\xee\x80\x80", "\xee\x80\x80|"},
	    {"\xf0\x8f\xbf\xbf", BAD BAD BAD BAD "|"}, {"\xf0\x90\x80\x80", "\xf0\x90\x80\x80|"},
	    {"\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf|"}, {"\xf4\x90\x80\x80", BAD BAD BAD BAD "|"},
	    {"\xf5\x80\x80\x80", BAD BAD BAD BAD "|"}, {"\xe0\xa0", BAD BAD "|"},
	    {"\xc3(", BAD "(|"}, {"\x80", BAD "|"}};

	CU_ASSERT_EQUAL_FATAL(mkdir(path_of("u"), 0755), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[16];
		snprintf(name, sizeof(name), "u/%s", cases[i].name);
		put(name);
		CU_ASSERT_STRING_EQUAL(names("u", FILE_LINKS_NO), cases[i].json);
		CU_ASSERT_EQUAL(unlink(path_of(name)), 0);
	}
	CU_ASSERT_EQUAL(rmdir(path_of("u")), 0);
#undef BAD
}

/* Names that would end an attribute, a tag or a string, or act as a scheme, if they were not
 * escaped. */
static const char *const evil[] = {"\"onmouseover=alert(1) x=\"", "'onmouseover='alert(1)",
    "><img src=x onerror=alert(1)>", "<!--", "--><script>", "&#60;script&#62;", "&lt;b&gt;",
    "javascript:alert(document.domain)", "data:text,html;base64,x", "vbscript:x", "a&b=c;d",
    "\xe2\x80\xa8", "\xff<\xfe", "`x`", "{{7*7}}", "%3Cscript%3E", "!$&'()*+,;=:@-._~"};
#define EVILS ((int)(sizeof(evil) / sizeof(evil[0])))

/* Undo HTML escapes, in place. */
static char *unescaped(char *text)
{
	static const struct {
		const char *entity, *is;
	} known[] = {
	    {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}};

	for (char *p = text; (p = strchr(p, '&')); p++)
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (strncmp(p, known[i].entity, strlen(known[i].entity)) == 0) {
				*p = known[i].is[0];
				memmove(p + 1, p + strlen(known[i].entity),
				    strlen(p + strlen(known[i].entity)) + 1);
				break;
			}
	return text;
}

/* The link `href` below /evil/ is accepted as a path by http.server, is in its normal spelling, and
 * leads to a name of the list. */
static void check_link(const char *href)
{
	char path[PATH_MAP_MAX], name[PATH_MAP_MAX];
	int found = 0;

	CU_ASSERT_EQUAL_FATAL(strncmp(href, "./", 2), 0);
	snprintf(path, sizeof(path), "/evil/%s", href + 2);
	struct weir_slice s = {path, strlen(path)};
	char normal[PATH_MAP_MAX + 1];
	CU_ASSERT_EQUAL(strspn(path + strcspn(path, "\"\\^`{}<># "), " "), 0);
	CU_ASSERT(normal_path(s, normal) > 0);
	CU_ASSERT_EQUAL_FATAL(path_map(s, "", name, sizeof(name)), 0);
	for (int i = 0; i < EVILS; i++)
		found += strcmp(name + strlen("evil/"), evil[i]) == 0;
	CU_ASSERT_EQUAL(found, 1);
}

/* Outside of its own tags the page contains no character that is special in HTML. */
static void check_line(char *line)
{
	static const char start[] = "<tr><td><a href=\"";
	char *href = line + sizeof(start) - 1, *end = strchr(href, '"');

	CU_ASSERT_EQUAL_FATAL(strncmp(line, start, sizeof(start) - 1), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(end);
	char *text = end + 2, *after = strstr(text, "</a></td><td>5</td></tr>");
	CU_ASSERT_EQUAL(strncmp(end, "\">", 2), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(after);
	*end = *after = '\0';
	CU_ASSERT_PTR_NULL(strpbrk(href, "<>'"));
	CU_ASSERT_PTR_NULL(strpbrk(text, "<>'\""));
	check_link(unescaped(href));
}

static void test_evil_names(void)
{
	char name[300], *rest, *line;
	int lines = 0;

	CU_ASSERT_EQUAL_FATAL(mkdir(path_of("evil"), 0755), 0);
	for (int i = 0; i < EVILS; i++) {
		snprintf(name, sizeof(name), "evil/%s", evil[i]);
		put(name);
	}
	char *body = make("evil", FILE_LINKS_NO, LISTING_HTML);
	char *table = strstr(body, "../</a></td></tr>\n");
	CU_ASSERT_PTR_NOT_NULL_FATAL(table);
	line = strtok_r(table + strlen("../</a></td></tr>\n"), "\n", &rest);
	for (; line && strcmp(line, "</table>") != 0; line = strtok_r(NULL, "\n", &rest), lines++)
		check_line(line);
	CU_ASSERT_EQUAL(lines, EVILS);
	free(body);
	body = make("evil", FILE_LINKS_NO, LISTING_JSON);
	json_t *all = json_loads(body, 0, NULL), *e;
	size_t i;
	CU_ASSERT_EQUAL(json_array_size(json_object_get(all, "entries")), EVILS);
	json_array_foreach(json_object_get(all, "entries"), i, e)
	    check_link(json_string_value(json_object_get(e, "href")));
	json_decref(all);
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
	CU_ASSERT_PTR_NOT_NULL(strstr(body, "This list is not complete"));
	free(body);
}

/* Failing to open files is not reported as 404, which would be cached. */
static void test_no_descriptors(void)
{
	struct rlimit was, none;
	char *body = NULL;
	size_t n = 0;
	int lowest = dup(root);

	close(lowest);
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = (rlim_t)lowest;
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
	int rc = listing_make(root, FILE_LINKS_NO, "d", LISTING_JSON, &body, &n);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &was), 0);
	CU_ASSERT_EQUAL(rc, WEIR_EPRESSURE);
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
    {"UTF-8", test_utf8}, {"evil names", test_evil_names}, {"no directory", test_no_directory},
    {"bounded", test_bounded}, {"no descriptors", test_no_descriptors},
    {"remove the root", test_remove_root})
