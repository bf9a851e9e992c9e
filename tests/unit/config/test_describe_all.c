/* SPDX-License-Identifier: MIT */
/* The whole description of types that have knobs, outlets, fields and metrics of every kind. */
#include "full_type.h"
#include "loading.h"

static const char *describe(const char *type)
{
	FILE *out = capture_begin();

	types_register();
	full_type_register();
	CU_ASSERT_EQUAL(config_describe(type, out), 0);
	return capture_end(out);
}

static void same(const char *found, const char *expected)
{
	if (strcmp(found, expected) != 0)
		fprintf(stderr, "expected\n%sbut found\n%s", expected, found);
	CU_ASSERT_STRING_EQUAL(found, expected);
	capture_free();
}

static void test_full(void)
{
	same(describe("t.full"),
	    "t.full: has everything\n"
	    "takes t.item\n"
	    "accepts requests whose bodies are still arriving\n"
	    "\n"
	    "with:\n"
	    "    size             how many\n"
	    "                     one of small, large; default small\n"
	    "        small            a few\n"
	    "        large            many of them\n"
	    "    parts            what it has\n"
	    "                     a list of maps; required\n"
	    "        path             where\n"
	    "                         text; required\n"
	    "        depth            \n"
	    "                         a whole number, also with k or M: 20k; default 3\n"
	    "    part             its own\n"
	    "        path             where\n"
	    "                         text; required\n"
	    "        depth            \n"
	    "                         a whole number, also with k or M: 20k; default 3\n"
	    "    wait             how long\n"
	    "                     a duration: 200us, 10ms, 1.5s, 2m, or auto; 0 to 1s; default "
	    "auto; live\n"
	    "    least            at least\n"
	    "                     a whole number, also with k or M: 20k, or auto; -5 to 0; default "
	    "0\n"
	    "    empty            none\n"
	    "                     a list of strings\n"
	    "    text             any\n"
	    "                     text; default \"\"\n"
	    "    on               without a default\n"
	    "                     true or false\n"
	    "\n"
	    "to:\n"
	    "    done             what is complete; t.item\n"
	    "    rest             all else; t.bare; optional\n"
	    "    last             ; any event\n"
	    "    ...              every name under 'to:' is an outlet\n"
	    "\n"
	    "fields of t.item (for 'match:', 'by:' and 'key:')\n"
	    "    owner            whose it is\n"
	    "    label.NAME       \n"
	    "\n"
	    "metrics\n"
	    "    weir_full_items_total\n"
	    "                     counter, items: items that were seen\n"
	    "    weir_full_depth\n"
	    "                     gauge, levels: levels in use\n"
	    "\n"
	    "example\n"
	    "    stages:\n"
	    "      NAME:\n"
	    "        use: t.full\n"
	    "        with: { parts: [], part: {} }\n"
	    "        to: { done: OTHER, last: OTHER }\n");
}

static void test_source(void)
{
	same(describe("t.full_source"), "t.full_source: makes items\n"
					"a source, which produces events and has no queue\n"
					"\n"
					"to:\n"
					"    done             what is complete; t.item\n"
					"    rest             all else; t.bare; optional\n"
					"    last             ; any event\n"
					"\n"
					"fields of t.item (for 'match:', 'by:' and 'key:')\n"
					"    owner            whose it is\n"
					"    label.NAME       \n"
					"\n"
					"example\n"
					"    stages:\n"
					"      NAME:\n"
					"        use: t.full_source\n"
					"        to: { done: OTHER, last: OTHER }\n");
}

static void test_router(void)
{
	same(describe("t.full_router"),
	    "t.full_router: sends items anywhere\n"
	    "takes t.bare\n"
	    "may block, so it needs threads; it can be inline behind a source with "
	    "'per_thread: 1'\n"
	    "\n"
	    "to:\n"
	    "    ...              every name under 'to:' is an outlet\n"
	    "\n"
	    "example\n"
	    "    stages:\n"
	    "      NAME:\n"
	    "        use: t.full_router\n"
	    "        to: { one: OTHER, two: ANOTHER }\n");
}

static void test_work(void)
{
	same(describe("t.work"),
	    "t.work: works for tests\n"
	    "takes any event\n"
	    "\n"
	    "with:\n"
	    "    root             folder\n"
	    "                     text; default \".\"\n"
	    "    size             most bytes kept\n"
	    "                     a size: 64KiB, 1MB; 1 to 1GiB; default 64KiB; live\n"
	    "    time             how long it works\n"
	    "                     a duration: 200us, 10ms, 1.5s, 2m; 1us to 1s; default 1ms\n"
	    "    rate             how often\n"
	    "                     a rate per second: 500, 20k; default 20k\n"
	    "    share            of all\n"
	    "                     a share: 5%, 0.05; default 5%\n"
	    "    verbose          say more\n"
	    "                     true or false; default false\n"
	    "    dist             distribution\n"
	    "                     one of const, exp, bimodal; default const\n"
	    "    names            some names\n"
	    "                     a list of strings; default a, b\n"
	    "    limits           limits by path\n"
	    "                     a list of maps\n"
	    "        path             what it is for\n"
	    "                         text; required\n"
	    "        rate             how often\n"
	    "                         a rate per second: 500, 20k; default 100\n"
	    "    limit            a limit of all\n"
	    "        rate             the one limit\n"
	    "                         a rate per second: 500, 20k; default 7\n"
	    "\n"
	    "to:\n"
	    "    next             what was worked on; any event; optional\n"
	    "    miss             what was not; any event; optional\n"
	    "\n"
	    "metrics\n"
	    "    weir_work_done_total\n"
	    "                     counter, events: work that was done\n"
	    "\n"
	    "example\n"
	    "    stages:\n"
	    "      NAME:\n"
	    "        use: t.work\n");
}

CUNIT_MAIN("describe, all of it", {"full", test_full}, {"source", test_source},
    {"router", test_router}, {"work", test_work})
