/* SPDX-License-Identifier: MIT */
/* What file.read says about its configuration: the place of an error, and warnings about what is
 * allowed but has no effect. */
#include "config.h"
#include "fixture/http/site.h"

/* Build a server whose file.read has the settings `with`, one a line, the first in line 8. */
static struct weir_graph *build(const char *with, struct weir_errs *errs)
{
	struct weir_spec *spec = NULL;
	struct weir_graph *g = NULL;
	char yaml[2048];

	snprintf(yaml, sizeof(yaml),
	    "weir: 1\nadmin: { listen: \"\" }\nstages:\n  disk:\n    use: file.read\n    with:\n"
	    "      root: %s/root\n%s",
	    site_base, with);
	CU_ASSERT_EQUAL_FATAL(config_load_text(yaml, strlen(yaml), "test.yaml", &spec, errs), 0);
	if (weir_graph_build(spec, &g, errs) != 0)
		weir_spec_free(spec);
	return g;
}

static void check_place(const char *with, const char *place)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	char text[2048] = "";

	CU_ASSERT_PTR_NULL(build(with, errs));
	weir_errs_format(errs, text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, place));
	free(errs);
}

static void test_place(void)
{
	site_make();
	check_place("      cache_control: \"a\\nb\"\n", "test.yaml:8:22: ");
	check_place(
	    "      index: index.html\n      cache_control: \"a\\nb\"\n", "test.yaml:9:22: ");
	check_place("      cache_rules:\n"
		    "        - { match: a, value: b }\n"
		    "        - { match: a, value: \"a\\nb\" }\n"
		    "        - { match: a, value: b }\n",
	    "test.yaml:10:30: ");
	site_remove();
}

/* The log while a server with these settings is created. Static memory. */
static const char *warnings(const char *with)
{
	static char text[4096];
	char name[] = "/tmp/weir-log-XXXXXX";
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	int fd = mkstemp(name);

	CU_ASSERT_NOT_EQUAL_FATAL(fd, -1);
	unlink(name);
	weir_log_set_fd(fd);
	struct weir_graph *g = build(with, errs);
	weir_log_set_fd(STDERR_FILENO);
	CU_ASSERT_PTR_NOT_NULL(g);
	memset(text, 0, sizeof(text));
	CU_ASSERT_TRUE(pread(fd, text, sizeof(text) - 1, 0) >= 0);
	weir_graph_free(g);
	close(fd);
	free(errs);
	return text;
}

static int count_of(const char *text, const char *word)
{
	int n = 0;

	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

/* Pages that can be served at this time have no warning, others have one each. */
static void test_pages(void)
{
	site_make();
	site_text("root/there.html", "x");
	site_dir("root/folder");
	CU_ASSERT_EQUAL(
	    count_of(warnings("      error_pages: { 404: /there.html }\n"), "servable"), 0);
	const char *text = warnings("      error_pages:\n"
				    "        400: /there.html\n"
				    "        403: /none.html\n"
				    "        404: /folder\n");
	CU_ASSERT_EQUAL(count_of(text, "servable"), 2);
	CU_ASSERT_EQUAL(
	    count_of(text, "test.yaml:10:14: stage 'disk' (file.read): '/none.html' is not"), 1);
	CU_ASSERT_EQUAL(
	    count_of(text, "test.yaml:11:14: stage 'disk' (file.read): '/folder' is not"), 1);
	CU_ASSERT_EQUAL(count_of(text, "with status 403 have a line"), 1);
	site_remove();
}

static void test_patterns(void)
{
	site_make();
	const char *text = warnings("      cache_rules:\n"
				    "        - { match: \"*.css\", value: a }\n"
				    "        - { match: \"^/a\", value: a }\n"
				    "        - { match: \"a$b^c\", value: a }\n"
				    "        - { match: \"/a$\", value: a }\n");
	CU_ASSERT_EQUAL(count_of(text, "regular expression"), 2);
	CU_ASSERT_EQUAL(
	    count_of(text, "test.yaml:10:20: stage 'disk' (file.read): '^/a' looks"), 1);
	CU_ASSERT_EQUAL(
	    count_of(text, "test.yaml:12:20: stage 'disk' (file.read): '/a$' looks"), 1);
	site_remove();
}

CUNIT_MAIN("file configuration", {"place of an error", test_place}, {"error pages", test_pages},
    {"patterns", test_patterns})
