/* SPDX-License-Identifier: MIT */
/* The graph of a spec in its three formats; names that contain syntax of a format. */
#include "loading.h"

static const char *const text = "weir: 1\n"
				"groups: { g: {} }\n"
				"stages:\n"
				"  web: { use: t.source, with: { listen: a }, to: w }\n"
				"  w: { use: t.work, threads: { min: 2, max: 9 },\n"
				"       to: { next: s, miss: { stage: w, loop: true } } }\n"
				"  s: { use: t.sink, group: g }\n"
				"  i: { use: t.sink, threads: inline }\n";

static const char *graph(const struct weir_spec *spec, const char *format, int expected)
{
	FILE *out = capture_begin();

	CU_ASSERT_EQUAL(config_graph(spec, format, out), expected);
	return capture_end(out);
}

static void test_formats(void)
{
	struct weir_spec *spec = load_good(text);

	CU_ASSERT_STRING_EQUAL(graph(spec, "text", 0), "web (t.source)\n"
						       "    to -> w\n"
						       "w (t.work, threads 2 to 9)\n"
						       "    next -> s\n"
						       "    miss (loop) -> w\n"
						       "s (t.sink, group g)\n"
						       "i (t.sink, inline)\n");
	CU_ASSERT_STRING_EQUAL(graph(spec, "dot", 0),
	    "digraph weir {\n"
	    "    rankdir=LR;\n"
	    "    node [shape=box, style=rounded];\n"
	    "    s0 [label=\"web\\nt.source\", style=bold];\n"
	    "    s1 [label=\"w\\nt.work, threads 2 to 9\"];\n"
	    "    s2 [label=\"s\\nt.sink, group g\"];\n"
	    "    s3 [label=\"i\\nt.sink, inline\"];\n"
	    "    s0 -> s1 [label=\"to\"];\n"
	    "    s1 -> s2 [label=\"next\"];\n"
	    "    s1 -> s1 [label=\"miss (loop)\", style=dashed];\n"
	    "}\n");
	CU_ASSERT_STRING_EQUAL(graph(spec, "mermaid", 0),
	    "flowchart LR\n"
	    "    s0[\"web<br/>t.source\"]\n"
	    "    s1[\"w<br/>t.work, threads 2 to 9\"]\n"
	    "    s2[\"s<br/>t.sink, group g\"]\n"
	    "    s3[\"i<br/>t.sink, inline\"]\n"
	    "    s0 -->|\"to\"| s1\n"
	    "    s1 -->|\"next\"| s2\n"
	    "    s1 -.->|\"miss (loop)\"| s1\n");
	CU_ASSERT_STRING_EQUAL(graph(spec, "png", WEIR_EINVAL), "");
	weir_spec_free(spec);
	capture_free();
}

/* A core group is drawn as one. */
static void test_core_group(void)
{
	struct weir_spec *spec =
	    load_good("weir: 1\n"
		      "groups: { g: { schedule: srpt, cores: 1, gate: { time: 2ms } } }\n"
		      "stages:\n"
		      "  web: { use: t.source, with: { listen: a }, to: w }\n"
		      "  w: { use: t.work, group: g, to: { next: s } }\n"
		      "  s: { use: t.sink, group: g }\n");

	CU_ASSERT_STRING_EQUAL(graph(spec, "text", 0),
	    "web (t.source)\n"
	    "    to -> w\n"
	    "w (t.work, group g)\n"
	    "    next -> s\n"
	    "s (t.sink, group g)\n"
	    "group g (srpt, 1 core, gate time: 2ms): w, s\n");
	CU_ASSERT_PTR_NOT_NULL(
	    strstr(graph(spec, "dot", 0), "    subgraph cluster_g0 {\n"
					  "        style=rounded;\n"
					  "        label=\"g\\nsrpt, 1 core, gate time: 2ms\";\n"
					  "        s1 s2;\n"
					  "    }\n"
					  "    s0 -> s1"));
	CU_ASSERT_PTR_NOT_NULL(strstr(graph(spec, "mermaid", 0),
	    "    subgraph g0[\"g<br/>srpt, 1 core, gate time: 2ms\"]\n"
	    "        s1\n"
	    "        s2\n"
	    "    end\n"
	    "    s0 -->"));
	weir_spec_free(spec);
	capture_free();
}

/* A spec that has not been checked: links to missing stages, odd names. */
static void test_odd(void)
{
	struct weir_spec *spec = load_good("weir: 1\nstages:\n"
					   "  w: { use: 'a\"]; b', to: { '\"<x>': gone } }\n");

	CU_ASSERT_STRING_EQUAL(
	    graph(spec, "text", 0), "w (a????b, threads 1 to auto)\n    ??x? -> gone (missing)\n");
	CU_ASSERT_PTR_NULL(strstr(graph(spec, "dot", 0), "->"));
	CU_ASSERT_PTR_NULL(strstr(graph(spec, "mermaid", 0), "-->"));
	weir_spec_free(spec);
	/* the links after a missing one are printed */
	spec = load_good("weir: 1\nstages:\n"
			 "  w: { use: t.work, to: { miss: gone, next: s } }\n"
			 "  s: { use: t.sink }\n");
	CU_ASSERT_PTR_NOT_NULL(strstr(graph(spec, "dot", 0), "s0 -> s1"));
	CU_ASSERT_PTR_NOT_NULL(strstr(graph(spec, "dot", 0), "}\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(graph(spec, "mermaid", 0), "s0 -->"));
	weir_spec_free(spec);
	capture_free();
}

/* A link back to the first stage is printed like any other. */
static void test_back(void)
{
	struct weir_spec *spec =
	    load_good("weir: 1\nstages:\n"
		      "  a: { use: t.work, to: b }\n"
		      "  b: { use: t.work, to: { next: { stage: a, loop: true } } }\n");

	CU_ASSERT_PTR_NOT_NULL(strstr(graph(spec, "dot", 0), "    s1 -> s0 ["));
	CU_ASSERT_PTR_NOT_NULL(strstr(graph(spec, "mermaid", 0), "|\"next (loop)\"| s0\n"));
	weir_spec_free(spec);
	capture_free();
}

CUNIT_MAIN("graph_text", {"formats", test_formats}, {"core group", test_core_group},
    {"odd", test_odd}, {"back", test_back})
