/* SPDX-License-Identifier: MIT */
/* Values of http.server that only it can check: good ones at their limits, and the text and the
 * position of the error for others. */
#include "cunit_main.h"
#include "fixture/graph/graph.h"

/* The error of a server with these knobs (pairs of a name and a value, up to NULL), or "". */
static const char *error_of(const char *const knobs[])
{
	static char text[4096];
	struct weir_spec *spec = weir_spec_new("conf");
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_stage_spec *web = weir_spec_add_stage(spec, "web", "http.server");
	struct weir_graph *g = NULL;

	fixture_set(web, "with.listen", "127.0.0.1:0");
	for (int i = 0; knobs[i]; i += 2)
		fixture_set(web, knobs[i], knobs[i + 1]);
	weir_spec_link(web, "request", "app", false);
	weir_spec_add_stage(spec, "app", "respond");
	if (weir_graph_build(spec, &g, errs) == 0)
		weir_graph_free(g);
	else
		weir_spec_free(spec);
	text[0] = '\0';
	if (errs->n > 0)
		snprintf(text, sizeof(text), "%s", errs->err[0].text);
	free(errs);
	return text;
}

#define LIST(...)                                                                                  \
	(const char *const[])                                                                      \
	{                                                                                          \
		__VA_ARGS__, NULL                                                                  \
	}

static void check(const char *knob, const char *value, const char *error)
{
	const char *text = error_of(LIST(knob, value));

	CU_ASSERT_TRUE(error ? strstr(text, error) != NULL : text[0] == '\0');
}

static void test_server_name(void)
{
	static const char error[] = "'server_name' may have up to 64 visible characters";
	char name[66];

	memset(name, 'n', sizeof(name));
	name[64] = '\0';
	check("with.server_name", name, NULL);
	name[64] = 'n';
	name[65] = '\0';
	check("with.server_name", name, error);
	check("with.server_name", "", NULL);
	check("with.server_name", "weir/1.0", NULL);
	check("with.server_name", "two words", error);
	check("with.server_name", "a\nb", error);
	check("with.server_name", "\xc3\xa4", error);
}

/* Bodies over 1 GiB need `stream`. */
static void test_max_body(void)
{
	check("with.max_body", "1GiB", NULL);
	check("with.max_body", "1073741825B", "'max_body' over 1GiB needs 'stream'");
	CU_ASSERT_STRING_EQUAL(
	    error_of(LIST("with.max_body", "1073741825B", "with.stream", "64KiB")), "");
}

static void test_user(void)
{
	static const char error[] = "'user' must be address, connection or header.NAME";

	check("with.user", "address", NULL);
	check("with.user", "connection", NULL);
	check("with.user", "header.x-user", NULL);
	check("with.user", "header.", error);
	check("with.user", "addres", error);
	check("with.user", "x-user", error);
}

static void test_listen(void)
{
	check("with.listen", "", "'' is not an address to listen on");
	check("with.listen", "127.0.0.1", "host and port are not separated by ':'");
	check("with.listen", "127.0.0.1:65536", "the port is not a number from 0 to 65535");
}

CUNIT_MAIN("http conf", {"server_name", test_server_name}, {"max_body", test_max_body},
    {"user", test_user}, {"listen", test_listen})
