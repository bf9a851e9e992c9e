/* SPDX-License-Identifier: MIT */
/* More payloads on one way than an event has room for (plan/payloads_many.c). */
#include "payload_ways.h"

/* web, with a note, > decode, which gives an image, > three and four; `last` gets what is left. */
static struct weir_spec *laden_way(const char *last, const char *use)
{
	struct weir_spec *spec = ways_web("t.lader", "decode");

	ways_stage(spec, "decode", "t.decode", "three");
	ways_stage(spec, "three", "t.third", "four");
	ways_stage(spec, "four", "t.fourth", last);
	ways_stage(spec, last, use, "end");
	ways_stage(spec, "end", "t.final", NULL);
	return spec;
}

static void test_fifth(void)
{
	ways_check(laden_way("five", "t.fifth"),
	    "'five' gives fifth; on the way web > decode > three > four > five the event has note, "
	    "image, third, fourth already, and an event has at most 4 payloads");
	CU_ASSERT_EQUAL(ways_errs.total, 1);
	ways_check(laden_way("again", "t.fourth"), NULL); /* no fifth one */
	ways_check(laden_way("swap", "t.swap"), NULL);    /* takes one and gives another */
}

/* One of two ways is too much, and only at the second round of a loop. */
static void test_fifth_way(void)
{
	struct weir_spec *spec = laden_way("store", "t.store");
	struct weir_stage_spec *end = &spec->stages[5];

	CU_ASSERT_STRING_EQUAL(end->name, "end");
	free(end->use);
	end->use = strdup("t.route");
	weir_spec_link(end, "more", "five", false);
	ways_stage(spec, "five", "t.fifth", "last");
	ways_stage(spec, "last", "t.final", NULL);
	ways_check(spec, NULL); /* `store` has taken the image */

	spec = laden_way("store", "t.store");
	end = &spec->stages[5];
	free(end->use);
	end->use = strdup("t.route");
	weir_spec_link(end, "more", "five", false);
	struct weir_stage_spec *five = ways_stage(spec, "five", "t.fifth", NULL);
	weir_spec_link(five, "out", "decode", true);
	ways_check(spec,
	    "'decode' gives image; on the way web > decode > three > four > store > end > "
	    "five > decode the event has note, third, fourth, fifth already");
	CU_ASSERT_EQUAL(ways_errs.total, 1);
}

/* A source that gives five at once, and events of another type, which have none. */
static void test_fifth_source(void)
{
	struct weir_spec *spec = ways_web("t.five", "split");
	struct weir_stage_spec *split = weir_spec_add_stage(spec, "split", "t.split");

	weir_spec_link(split, "whole", "final", false);
	ways_stage(spec, "final", "t.final", NULL);
	ways_check(spec,
	    "'web' gives image, note, third, fourth, fifth; on the way web the event has "
	    "none already");

	spec = ways_web("t.lader", "parent");
	split = weir_spec_add_stage(spec, "parent", "t.parent");
	weir_spec_link(split, "on", "three", false);
	weir_spec_link(split, "child", "three", false);
	ways_stage(spec, "three", "t.third", "four");
	ways_stage(spec, "four", "t.fourth", "five");
	ways_stage(spec, "five", "t.fifth", "decode");
	ways_stage(spec, "decode", "t.decode", "end");
	ways_stage(spec, "end", "t.final", NULL);
	ways_check(
	    spec, "'decode' gives image; on the way web > parent > three > four > five > decode");
	CU_ASSERT_EQUAL(ways_errs.total, 1);
}

static void test_register(void)
{
	ways_register();
}

CUNIT_MAIN("plan_payloads_many", {"register", test_register}, {"a fifth", test_fifth},
    {"a fifth on one way", test_fifth_way}, {"a fifth at a source", test_fifth_source})
