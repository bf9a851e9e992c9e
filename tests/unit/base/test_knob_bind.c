/* SPDX-License-Identifier: MIT */
/* Binding maps to structs: every type, and every mistake, with its location and all in one pass. A
 * refused value leaves the member unchanged. The trees are built by hand here; tests/config does
 * the same through YAML. */
#include "knob_table.h"

#include <stdio.h>
#include <stdlib.h>

#include "cunit_main.h"

static struct all a;
static struct weir_errs errs;

static struct weir_node *node_new(enum weir_node_kind kind, const char *text)
{
	static int line;
	struct weir_node *node = calloc(1, sizeof(*node));

	node->kind = kind;
	node->text = text ? strdup(text) : NULL;
	node->mark = (struct weir_mark){.file = "t", .line = ++line, .col = 1, .len = 1};
	return node;
}

static struct weir_node *text(const char *s)
{
	return node_new(WEIR_NODE_SCALAR, s);
}

static void grow(struct weir_node *node, const char *name, struct weir_node *item)
{
	size_t bytes = ((size_t)node->n + 1) * sizeof(*node->item);

	node->item = realloc(node->item, bytes);
	if (name) {
		node->name = realloc(node->name, bytes);
		node->name[node->n] = text(name);
	}
	node->item[node->n++] = item;
}

static struct weir_node *list_of(struct weir_node *one, struct weir_node *two)
{
	struct weir_node *list = node_new(WEIR_NODE_LIST, NULL);

	if (one)
		grow(list, NULL, one);
	if (two)
		grow(list, NULL, two);
	return list;
}

static struct weir_node *map_of(const char *name, struct weir_node *item)
{
	struct weir_node *map = node_new(WEIR_NODE_MAP, NULL);

	if (name)
		grow(map, name, item);
	return map;
}

static void begin(void)
{
	weir_knobs_fini(all_knobs, &a);
	errs = (struct weir_errs){0};
	CU_ASSERT_EQUAL_FATAL(weir_knobs_init(all_knobs, &a), 0);
}

/* Bind { name: item }. Returns the text of the first error, "" without errors. */
static const char *bind(const char *name, struct weir_node *item)
{
	struct weir_node *map = map_of(name, item);

	errs = (struct weir_errs){0};
	int rc = weir_knobs_bind(all_knobs, map, &a, "stage 'x'", &errs);
	CU_ASSERT_EQUAL(rc, errs.total > 0 ? WEIR_EINVAL : 0);
	CU_ASSERT_TRUE(errs.total == 0 || errs.err[0].line > 0);
	weir_node_free(map);
	return errs.total > 0 ? errs.err[0].text : "";
}

static void test_values(void)
{
	begin();
	CU_ASSERT_STRING_EQUAL(bind("flag", text("false")), "");
	CU_ASSERT_STRING_EQUAL(bind("size", text("1MB")), "");
	CU_ASSERT_STRING_EQUAL(bind("text", text("there")), "");
	CU_ASSERT_FALSE(a.flag);
	CU_ASSERT_EQUAL(a.size_bytes, 1000000);
	CU_ASSERT_STRING_EQUAL(a.text, "there");
	CU_ASSERT_EQUAL(a.wait_ns, 1500000000);
	CU_ASSERT_STRING_EQUAL(bind("list", list_of(text("x"), text("y"))), "");
	CU_ASSERT_TRUE(a.list.n == 2 && strcmp(a.list.items[1], "y") == 0);
	CU_ASSERT_STRING_EQUAL(bind("list", text("alone")), "");
	CU_ASSERT_TRUE(a.list.n == 1 && strcmp(a.list.items[0], "alone") == 0);
	CU_ASSERT_STRING_EQUAL(bind("list", list_of(NULL, NULL)), "");
	CU_ASSERT_EQUAL(a.list.n, 0);
	CU_ASSERT_STRING_EQUAL(bind("inner", map_of("n", text("9"))), "");
	CU_ASSERT_EQUAL(a.inner.n, 9);
	CU_ASSERT_STRING_EQUAL(a.inner.name, "in");
}

static void test_records(void)
{
	begin();
	CU_ASSERT_STRING_EQUAL(
	    bind("records", list_of(map_of("name", text("p")), map_of("name", text("q")))), "");
	CU_ASSERT_EQUAL_FATAL(a.records.n, 2);
	struct inner *r = (struct inner *)(void *)a.records.items;
	CU_ASSERT_TRUE(r[0].n == 3 && strcmp(r[0].name, "p") == 0 && strcmp(r[1].name, "q") == 0);
	/* All mistakes are reported, and the old value stays. */
	struct weir_node *bad = map_of("nam", text("x"));
	grow(bad, "n", text("77"));
	CU_ASSERT_STRING_EQUAL(bind("records", list_of(bad, text("y"))),
	    "unknown key 'nam' in entry 1 of 'records' of stage 'x'");
	CU_ASSERT_EQUAL(errs.total, 4);
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint, "did you mean 'name'?");
	CU_ASSERT_STRING_EQUAL(errs.err[1].text, "'77' is too large: at most 9");
	CU_ASSERT_STRING_EQUAL(
	    errs.err[2].text, "entry 1 of 'records' of stage 'x' needs the key 'name'");
	CU_ASSERT_STRING_EQUAL(errs.err[2].hint, "name: what it is called");
	CU_ASSERT_STRING_EQUAL(errs.err[3].text, "entry 2 of 'records' of stage 'x' must be a map");
	CU_ASSERT_EQUAL(a.records.n, 2);
	CU_ASSERT_STRING_EQUAL(bind("records", list_of(NULL, NULL)), "");
	CU_ASSERT_EQUAL(a.records.n, 0);
}

static void test_wrong_kinds(void)
{
	begin();
	CU_ASSERT_STRING_EQUAL(bind("flag", list_of(NULL, NULL)),
	    "'flag' of stage 'x' takes a single value, not a list");
	CU_ASSERT_STRING_EQUAL(
	    bind("inner", text("5")), "'inner' of stage 'x' takes a map, not a single value");
	CU_ASSERT_STRING_EQUAL(
	    bind("list", map_of(NULL, NULL)), "'list' of stage 'x' takes a list, not a map");
	CU_ASSERT_STRING_EQUAL(bind("list", list_of(list_of(NULL, NULL), text(""))),
	    "an entry of 'list' of stage 'x' must be a string");
	CU_ASSERT_EQUAL(errs.total, 2);
	CU_ASSERT_STRING_EQUAL(bind("records", text("5")),
	    "'records' of stage 'x' takes a list of maps, not a single value");
	CU_ASSERT_STRING_EQUAL(bind("size", text("")), "'size' of stage 'x' has no value");
	CU_ASSERT_STRING_EQUAL(bind("text", text("")), "'text' of stage 'x' has no value");
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint, "write \"\" for an empty string");
	CU_ASSERT_EQUAL(a.list.n, 2);
}

static void test_quoted_empty(void)
{
	struct weir_node *empty = text("");

	begin();
	empty->quoted = true;
	CU_ASSERT_STRING_EQUAL(bind("text", empty), "");
	CU_ASSERT_STRING_EQUAL(a.text, "");
}

static void test_unknown(void)
{
	begin();
	CU_ASSERT_STRING_EQUAL(bind("sise", text("1")), "unknown key 'sise' in stage 'x'");
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint, "did you mean 'size'?");
	CU_ASSERT_STRING_EQUAL(bind("qqqq", text("1")), "unknown key 'qqqq' in stage 'x'");
	CU_ASSERT_STRING_EQUAL(errs.err[0].hint,
	    "known here: flag, count, signed_count, size, wait, spare, rate, share, text, more, "
	    "choice, list, records, inner");
	CU_ASSERT_STRING_EQUAL(bind("x-note", text("anything")), "");
	CU_ASSERT_STRING_EQUAL(
	    bind("inner", map_of("nn", text("1"))), "unknown key 'nn' in 'inner' of stage 'x'");
}

static void test_required(void)
{
	struct inner in = {0};

	errs = (struct weir_errs){0};
	CU_ASSERT_EQUAL(weir_knobs_bind(inner_knobs, NULL, &in, "'with'", &errs), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(errs.err[0].text, "'with' needs the key 'name'");
	CU_ASSERT_EQUAL(errs.err[0].line, 0);
}

static void test_not_a_map(void)
{
	struct weir_node *one = text("5"), *none = text("");

	begin();
	CU_ASSERT_EQUAL(weir_knobs_bind(all_knobs, one, &a, "'admin'", &errs), WEIR_EINVAL);
	CU_ASSERT_EQUAL(weir_knobs_bind(all_knobs, none, &a, "'admin'", &errs), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(errs.err[0].text, "'admin' must be a map, not a single value");
	CU_ASSERT_STRING_EQUAL(errs.err[1].text, "'admin' must be a map, not empty");
	CU_ASSERT_EQUAL(weir_knobs_bind(all_knobs, NULL, &a, "'admin'", &errs), 0);
	weir_node_free(one);
	weir_node_free(none);
}

/* A value without a location (--set) is named in words instead. */
static void test_no_place(void)
{
	struct weir_node *map = map_of("wait", text("10"));

	begin();
	map->item[0]->mark = (struct weir_mark){0};
	CU_ASSERT_EQUAL(weir_knobs_bind(all_knobs, map, &a, "stage 'x'", &errs), WEIR_EINVAL);
	CU_ASSERT_STRING_EQUAL(
	    errs.err[0].text, "'wait' of stage 'x': '10' needs a unit: write 10ms or 10s");
	weir_node_free(map);
	begin();
	weir_knobs_fini(all_knobs, &a);
}

CUNIT_MAIN("knob_bind", {"values", test_values}, {"records", test_records},
    {"wrong kinds", test_wrong_kinds}, {"quoted empty", test_quoted_empty},
    {"unknown", test_unknown}, {"required", test_required}, {"not a map", test_not_a_map},
    {"no place", test_no_place})
