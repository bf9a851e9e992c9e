/* SPDX-License-Identifier: MIT */
/* The page as text: its contents for different runs, and that no text of a run becomes markup. */
#include "report/html.h"

#include "report/reading.h"

/* The report on `n` made-up runs, allocated. */
static char *page(const struct made_up *m, int n, bool force)
{
	struct rundata run[3];
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	for (int i = 0; i < n; i++)
		reading_read(&m[i], &run[i]);
	CU_ASSERT_EQUAL(report_html(run, n, force, out), 0);
	fclose(out);
	for (int i = 0; i < n; i++)
		rundata_fini(&run[i]);
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	return text;
}

static int count(const char *text, const char *word)
{
	int n = 0;

	for (const char *p = strstr(text, word); p; p = strstr(p + 1, word))
		n++;
	return n;
}

static void test_one(void)
{
	struct made_up m = reading_plain("my run", 1);

	m.n_loads = 5;
	char *text = page(&m, 1, false);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<title>my run"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<p class='verdict ok'>"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "well-conditioned under overload"));
	/* goodput, classes, quantiles; percentiles; outcomes, goodput, latency, in flight; waits, queues,
	 * busy, threads */
	CU_ASSERT_EQUAL(count(text, "<svg class=chart"), 12);
	CU_ASSERT_EQUAL(count(text, "<details class=twin>"), 12);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "ideal: the offered load, up to the capacity"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Decisions of the server"));
	/* the summary, and the classes in the second chart */
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<dt>Check<dd>one load below the capacity: served"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<dt>Certainty<dd>One round"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<dt>vip served there<dd>"));
	const char *second = strstr(strstr(text, "<figure") + 1, "<figure");
	CU_ASSERT_PTR_NOT_NULL_FATAL(second);
	const char *title = strstr(second, "Share of requests served, by class");
	CU_ASSERT(title && title < strstr(second + 1, "<figure"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "queue 187 over threshold 64"));
	CU_ASSERT_PTR_NULL(strstr(text, "Compared with"));
	free(text);
}

static void test_collapse(void)
{
	struct made_up m = reading_plain("bad", 1);

	m.kept = 0.3;
	char *text = page(&m, 1, false);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<p class='verdict bad'>"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "collapses under overload"));
	free(text);
}

/* Loads below the capacity were refused: the page says that the machine changed, not that the server
 * collapses. */
static void test_changed(void)
{
	struct made_up m = reading_plain("changed", 1);

	m.kept = 0.3;
	m.below = 0.6;
	char *text = page(&m, 1, false);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<p class='verdict warn'>"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "The machine changed during the run"));
	CU_ASSERT_PTR_NULL(strstr(text, "collapses"));
	free(text);
}

static void test_two(void)
{
	struct made_up m[] = {reading_plain("first", 1), reading_plain("second", 2)};

	m[1].latency_s = 0.02;
	char *text = page(m, 2, false);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "<p class='verdict bad'><span><b>second</b> Worse in"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Compared with first"));
	CU_ASSERT_TRUE(count(text, "<td class=worse>") >= 6);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\xE2\x96\xBC worse")); /* a shape and a word */
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Over time: first"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "Over time: second"));
	free(text);
}

static void test_void(void)
{
	struct made_up m[] = {reading_plain("first", 1), reading_plain("second", 2)};

	m[1].voided = "the generator was late";
	char *text = page(m, 2, false);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "is VOID and does not count: the generator was late"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "cannot be compared"));
	CU_ASSERT_EQUAL(count(text, "<td class=noise>"), 0);
	free(text);
	text = page(m, 2, true);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "is VOID and does not count"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "compared because of --force"));
	CU_ASSERT_TRUE(count(text, "<td class=noise>") > 0);
	free(text);
	text = page(&m[1], 1, false);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "is VOID and does not count"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "No figure of this run counts"));
	CU_ASSERT_EQUAL(count(text, "<p class='verdict ok'>"), 0);
	CU_ASSERT_PTR_NULL(strstr(text, "well-conditioned under overload"));
	free(text);
}

static void test_closed(void)
{
	struct made_up m = reading_plain("c", 1);

	m.closed = m.no_server = true;
	char *text = page(&m, 1, false);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "c (closed loop)"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "which cannot overload a server"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "side was not recorded"));
	free(text);
}

/* The page loads, links and runs nothing but its own parts. */
static void test_self_contained(void)
{
	struct made_up m = reading_plain("run", 1);
	char *text = page(&m, 1, false);

	CU_ASSERT_EQUAL(count(text, "<script"), 1);
	CU_ASSERT_EQUAL(count(text, " src="), 0);
	CU_ASSERT_EQUAL(count(text, "@import"), 0);
	CU_ASSERT_EQUAL(
	    count(text, "href='#") + count(text, "href='data:,'"), count(text, "href="));
	CU_ASSERT_EQUAL(count(text, "url(#"), count(text, "url("));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "default-src 'none'"));
	free(text);
}

static void test_hostile(void)
{
	static const char bad[] = "'\"><img src=x onerror=alert(1)>";
	struct made_up m[] = {reading_plain(bad, 1), reading_plain(bad, 2)};

	m[0].stage_name = m[1].stage_name = bad;
	m[0].class_name = m[1].class_name = "</style><script>x()";
	m[0].voided = m[1].voided = bad;
	char *text = page(m, 2, true);
	CU_ASSERT_PTR_NULL(strstr(text, "<img"));
	CU_ASSERT_EQUAL(count(text, "<script"), 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "&lt;img src=x"));
	free(text);
}

CUNIT_MAIN("html", {"one run", test_one}, {"a collapse", test_collapse},
    {"a machine that changed", test_changed}, {"two runs", test_two}, {"a void run", test_void},
    {"a closed loop", test_closed}, {"self-contained", test_self_contained},
    {"hostile texts", test_hostile})
