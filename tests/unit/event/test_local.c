/* SPDX-License-Identifier: MIT */
/* Counters of a thread: sums of histograms, and mail that is collected until the thread flushes. */
#include "fixture/graph/probes.h"

#include "event/local.h"
#include "event/mailbox.h"

static void test_sums_of_histograms(void)
{
	struct hist_book book = {0};
	struct weir_hist sum = {0};

	hist_book_add(&book, 100000, 2);
	hist_book_add(&book, 5000000, 1);
	hist_book_add(&book, -5, 1); /* a clock that ran backwards adds no time */
	hist_book_sum(&sum, &book);
	hist_book_sum(&sum, &book);
	CU_ASSERT_EQUAL(sum.sum_ns, 2 * (2 * 100000 + 5000000));
	CU_ASSERT_EQUAL(sum.count[weir_hist_bucket(100000)], 4);
	CU_ASSERT_EQUAL(sum.count[weir_hist_bucket(5000000)], 2);
	CU_ASSERT_EQUAL(sum.count[weir_hist_bucket(0)], 2);
}

static void no_wake(struct mailbox *mb)
{
	(void)mb;
}

/* Events for a mailbox leave the thread together, in order, when it flushes. */
static void test_mail_is_collected(void)
{
	struct weir_spec *spec = weir_spec_new("mail");
	struct mailbox mb = {0};
	struct weir_event ev[3] = {0};

	fixture_stage(spec, "last", "t.end", NULL);
	struct weir_graph *g = fixture_start(spec);
	mailbox_init(&mb, no_wake);
	weir_thread_attach(g, "test");
	for (int i = 0; i < 3; i++)
		mailbox_send(&mb, &ev[i]);
	CU_ASSERT_PTR_NULL(mailbox_take(&mb));
	weir_thread_flush();
	struct weir_event *e = mailbox_take(&mb);
	for (int i = 0; i < 3; i++, e = e->next)
		CU_ASSERT_PTR_EQUAL_FATAL(e, &ev[i]);
	CU_ASSERT_PTR_NULL(e);
	weir_thread_detach();
	mailbox_fini(&mb);
	finish_graph(g, 0);
}

static void test_prepare(void)
{
	fixture_register(&end_ops);
}

CUNIT_MAIN("counters and mail of a thread", {"types are known", test_prepare},
    {"sums of histograms", test_sums_of_histograms}, {"mail is collected", test_mail_is_collected})
