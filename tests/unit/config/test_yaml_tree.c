/* SPDX-License-Identifier: MIT */
/* Parsing texts into trees: kinds, quoting, positions in bytes, and the limits that keep a hostile
 * file cheap. The wording of refusals is tested by tests/config/bad. */
#include "loading.h"
#include "source.h"
#include "tree.h"

static struct sources *all;
static struct source *source;

/* The tree of `text`, NULL if there is none; parse_end frees it. */
static const struct weir_node *parse(const char *text)
{
	loading_errs = (struct weir_errs){0};
	all = sources_new();
	CU_ASSERT_PTR_NOT_NULL_FATAL(all);
	CU_ASSERT_EQUAL_FATAL(
	    source_text(all, text, strlen(text), "t.yaml", &source, &loading_errs), 0);
	tree_parse(all, source, &loading_errs);
	return source->root;
}

static void parse_end(void)
{
	sources_free(all);
}

static void test_kinds(void)
{
	const struct weir_node *root =
	    parse("a: one\nb: [x, 'y']\nc: { d: }\ne: |\n  two\n  lines\n");

	CU_ASSERT_PTR_NOT_NULL_FATAL(root);
	CU_ASSERT_EQUAL(root->kind, WEIR_NODE_MAP);
	CU_ASSERT_EQUAL(root->n, 4);
	CU_ASSERT_STRING_EQUAL(root->name[0]->text, "a");
	CU_ASSERT_STRING_EQUAL(root->item[0]->text, "one");
	CU_ASSERT_FALSE(root->item[0]->quoted);
	const struct weir_node *b = weir_node_get(root, "b");
	CU_ASSERT_TRUE(b->kind == WEIR_NODE_LIST && b->n == 2 && b->name == NULL);
	CU_ASSERT_TRUE(b->item[1]->quoted && strcmp(b->item[1]->text, "y") == 0);
	const struct weir_node *d = weir_node_get(weir_node_get(root, "c"), "d");
	CU_ASSERT_TRUE(tree_is_empty(d));
	const struct weir_node *e = weir_node_get(root, "e");
	CU_ASSERT_TRUE(e->quoted && strcmp(e->text, "two\nlines\n") == 0);
	parse_end();
}

static bool is_at(const struct weir_node *node, int line, int col, int len)
{
	return node->mark.line == line && node->mark.col == col && node->mark.len == len;
}

static void test_places(void)
{
	const struct weir_node *root =
	    parse("a:  one # two\nhöhe: { \"k\": 'ö' , z: 1}\n\n  \nl:\n- x\n");

	CU_ASSERT_PTR_NOT_NULL_FATAL(root);
	CU_ASSERT_TRUE(is_at(root->name[0], 1, 1, 1));
	CU_ASSERT_TRUE(is_at(root->item[0], 1, 5, 3));
	CU_ASSERT_TRUE(is_at(root->name[1], 2, 1, 5));
	const struct weir_node *map = root->item[1];
	CU_ASSERT_TRUE(is_at(map->name[0], 2, 10, 3));
	CU_ASSERT_TRUE(is_at(map->item[0], 2, 15, 4));
	CU_ASSERT_TRUE(is_at(map->name[1], 2, 22, 1));
	CU_ASSERT_STRING_EQUAL(map->mark.excerpt, "höhe: { \"k\": 'ö' , z: 1}");
	CU_ASSERT_STRING_EQUAL(map->mark.file, "t.yaml");
	CU_ASSERT_TRUE(is_at(root->item[2]->item[0], 6, 3, 1));
	parse_end();
}

/* Lines end where libyaml ends them; a byte order mark at the start is not a character. */
static void test_line_breaks(void)
{
	const struct weir_node *root = parse("\xef\xbb\xbf"
					     "a: 1\r\nb: 2\rc: 3\nd: 4 # \xc2\x85"
					     "e: 5 # \xe2\x80\xa8"
					     "f: 6\n");

	CU_ASSERT_PTR_NOT_NULL_FATAL(root);
	for (int i = 0; i < root->n; i++)
		CU_ASSERT_TRUE(is_at(root->name[i], i + 1, 1, 1));
	CU_ASSERT_EQUAL(root->n, 6);
	CU_ASSERT_STRING_EQUAL(root->mark.excerpt, "a: 1");
	parse_end();
}

/* `text` repeated `n` times between `head` and `tail`; the caller frees it. */
static char *repeated(const char *head, const char *text, int n, const char *tail)
{
	size_t len = strlen(text);
	char *all_of_it = malloc(strlen(head) + len * (size_t)n + strlen(tail) + 1), *p = all_of_it;

	p = stpcpy(p, head);
	for (int i = 0; i < n; i++)
		p = stpcpy(p, text);
	stpcpy(p, tail);
	return all_of_it;
}

static const char *refusal(char *text)
{
	CU_ASSERT_PTR_NULL(parse(text));
	parse_end();
	free(text);
	return loading_errs.n > 0 ? loading_errs.err[0].text : "";
}

static void accept(char *text)
{
	CU_ASSERT_PTR_NOT_NULL(parse(text));
	CU_ASSERT_EQUAL(loading_errs.total, 0);
	parse_end();
	free(text);
}

static void test_depth(void)
{
	accept(repeated(
	    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "", 0, "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"));
	CU_ASSERT_STRING_EQUAL(
	    refusal(repeated("", "[", 33, "")), "this is nested more than 32 levels deep");
	/* libyaml alone takes 41 s for this text (reliability.md). */
	CU_ASSERT_STRING_EQUAL(
	    refusal(repeated("", "[", 200000, "")), "this is nested more than 32 levels deep");
	CU_ASSERT_STRING_EQUAL(
	    refusal(repeated("", "{a: ", 200000, "")), "this is nested more than 32 levels deep");
	CU_ASSERT_STRING_EQUAL(
	    refusal(repeated("", "- ", 200000, "")), "this is nested more than 32 levels deep");
}

static void test_nodes(void)
{
	accept(repeated("[", "a,", CONFIG_NODES_MAX - 1, "]"));
	CU_ASSERT_STRING_EQUAL(refusal(repeated("[", "a,", CONFIG_NODES_MAX, "]")),
	    "there are more than 10000 values and keys");
}

/* Thousands of keys are sorted rather than compared pairwise. */
static void test_many_keys(void)
{
	char *text = malloc(200000), *p = text;

	for (int i = 0; i < 4000; i++)
		p += sprintf(p, "k%d: %d\n", i, i);
	accept(strdup(text));
	sprintf(p, "k7: again\nk3999: again\n");
	const struct weir_node *root = parse(text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(root);
	CU_ASSERT_EQUAL(root->n, 4000);
	CU_ASSERT_STRING_EQUAL(weir_node_get(root, "k7")->text, "7");
	CU_ASSERT_EQUAL(loading_errs.total, 2);
	CU_ASSERT_STRING_EQUAL(loading_errs.err[1].text, "the key 'k7' appears twice");
	CU_ASSERT_STRING_EQUAL(loading_errs.err[1].hint, "the first is at 8:1");
	parse_end();
	free(text);
}

static void test_size(void)
{
	size_t n = CONFIG_BYTES_MAX + 1;
	char *text = malloc(n + 1);
	struct weir_spec *spec = NULL;

	memset(text, '#', n);
	text[n] = '\0';
	loading_errs = (struct weir_errs){0};
	CU_ASSERT_EQUAL(config_load_text(text, n, "t", &spec, &loading_errs), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(
	    loading_errs.err[0].text, "the text has 1048577 bytes, at most 1048576 are allowed");
	loading_errs = (struct weir_errs){0};
	CU_ASSERT_EQUAL(config_load_text(text, n - 1, "t", &spec, &loading_errs), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(loading_errs.err[0].text, "the configuration is empty");
	free(text);
}

/* NUL bytes inside a text must not be read as its end. */
static void test_nul(void)
{
	struct weir_spec *spec = NULL;

	loading_errs = (struct weir_errs){0};
	CU_ASSERT_EQUAL(
	    config_load_text("weir: 1\0: 2", 11, "t", &spec, &loading_errs), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(loading_errs.err[0].text, "a control character is not allowed here");
}

static void test_copy(void)
{
	const struct weir_node *root = parse("a: { b: [1, '2', { c: }] }\n");
	struct weir_node *copy = tree_copy(root);

	CU_ASSERT_PTR_NOT_NULL_FATAL(copy);
	const struct weir_node *list = weir_node_get(weir_node_get(copy, "a"), "b");
	CU_ASSERT_EQUAL_FATAL(list->n, 3);
	CU_ASSERT_TRUE(list->item[1]->quoted && is_at(list->item[1], 1, 13, 3));
	CU_ASSERT_TRUE(tree_is_empty(weir_node_get(list->item[2], "c")));
	weir_node_free(copy);
	parse_end();
}

CUNIT_MAIN("yaml_tree", {"kinds", test_kinds}, {"places", test_places},
    {"line breaks", test_line_breaks}, {"depth", test_depth}, {"nodes", test_nodes},
    {"many keys", test_many_keys}, {"size", test_size}, {"nul", test_nul}, {"copy", test_copy})
