/* SPDX-License-Identifier: MIT */
/* Names and keys. Any name may have up to 64 bytes, and 64 are accepted. Keys that begin with "x-"
 * are notes of the user; keys that only begin with "x" are mistakes. */
#include "loading.h"

/* `pattern` with its '@' replaced by `word`. */
static const char *fill(const char *pattern, const char *word)
{
	static char text[1024];
	const char *at = strchr(pattern, '@');

	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - pattern), pattern, word, at + 1);
	return text;
}

/* A name of `n` bytes. */
static const char *name_of(int n)
{
	static char name[80];

	memset(name, 'n', sizeof(name));
	name[n] = '\0';
	return name;
}

static const char *const named[] = {
    "weir: 1\nname: @\nadmin: { listen: \"\" }\nstages: {}\n",
    "weir: 1\nadmin: { listen: \"\" }\nstages:\n  @: { use: t.source, with: { listen: a }, to: w "
    "}\n"
    "  w: { use: t.work }\n",
    "weir: 1\nadmin: { listen: \"\" }\nclasses: { @: {} }\nstages: {}\n",
    "weir: 1\nadmin: { listen: \"\" }\ngroups: { @: {} }\nstages: {}\n",
};

static void test_names_of_64_bytes(void)
{
	for (size_t i = 0; i < sizeof(named) / sizeof(named[0]); i++) {
		for (int n = 1; n <= 64; n += 21) {
			struct weir_spec *spec = load_good(fill(named[i], name_of(n)));
			weir_spec_free(spec);
		}
		CU_ASSERT_PTR_NOT_NULL(
		    strstr(load_bad(fill(named[i], name_of(65))), "cannot be the name of a"));
		CU_ASSERT_PTR_NOT_NULL(strstr(loading_errs.err[0].hint, "1 to 64 letters"));
	}
}

/* The list of changes has room for 23 bytes of the name of a client. */
static void test_names_of_clients(void)
{
	static const char *const client[] = {
	    "weir: 1\nadmin: { listen: 127.0.0.1:1, tokens: { @: { file: f } } }\nstages: {}\n",
	    "weir: 1\nadmin: { listen: ./socket, users: { @: { role: viewer } } }\nstages: {}\n"};

	for (int i = 0; i < 2; i++) {
		weir_spec_free(load_good(fill(client[i], name_of(WEIR_ADMIN_NAME_MAX))));
		CU_ASSERT_PTR_NOT_NULL(
		    strstr(load_bad(fill(client[i], name_of(WEIR_ADMIN_NAME_MAX + 1))),
			"can have at most 23 characters"));
		CU_ASSERT_EQUAL(loading_errs.total, 1);
	}
}

/* Each text is a map of known keys with an additional key "@: 1". */
static const char *const mapped[] = {
    "weir: 1\n@: 1\nadmin: { listen: \"\" }\nstages: {}\n",
    "weir: 1\nadmin: { listen: \"\", @: 1 }\nstages: {}\n",
    "weir: 1\nadmin: { listen: \"\" }\ndefaults: { @: 1 }\nstages: {}\n",
    "weir: 1\nadmin: { listen: \"\" }\nclasses: { a: { slo: 1s, @: 1 } }\nstages: {}\n",
    "weir: 1\nadmin: { listen: \"\" }\ngroups: { g: { @: 1 } }\nstages: {}\n",
    "weir: 1\nadmin: { listen: \"\" }\ndrain: { @: 1 }\nstages: {}\n",
    "weir: 1\nadmin: { listen: \"\" }\nalerts: { @: 1 }\nstages: {}\n",
    "weir: 1\nadmin: { listen: \"\" }\nstages:\n"
    "  web: { use: t.source, with: { listen: a }, to: w, @: 1 }\n  w: { use: t.work }\n",
    "weir: 1\nadmin: { listen: \"\" }\nstages:\n"
    "  web: { use: t.source, with: { listen: a, @: 1 }, to: w }\n  w: { use: t.work }\n",
    "weir: 1\nadmin: { listen: \"\" }\nstages:\n"
    "  web: { use: t.source, with: { listen: a }, to: w, queue: { @: 1 } }\n  w: { use: t.work "
    "}\n",
};

static void test_notes_and_mistakes(void)
{
	static const char *const wrong[] = {"x", "xlo", "x_note", "X-note", "-x-note"};

	for (size_t i = 0; i < sizeof(mapped) / sizeof(mapped[0]); i++) {
		weir_spec_free(load_good(fill(mapped[i], "x-note")));
		weir_spec_free(load_good(fill(mapped[i], "x-")));
		for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++) {
			CU_ASSERT_PTR_NOT_NULL(
			    strstr(load_bad(fill(mapped[i], wrong[k])), wrong[k]));
			CU_ASSERT_EQUAL(loading_errs.total, 1);
		}
	}
}

CUNIT_MAIN("names", {"names of 64 bytes", test_names_of_64_bytes},
    {"names of clients", test_names_of_clients}, {"notes and mistakes", test_notes_and_mistakes})
