/* SPDX-License-Identifier: MIT */
/* The simulator of heavy tails: its books, and what queues with discipline `shortest`, the gate
 * `cutoff` and the policy `srpt` do for short requests. The limits are those of issue 17. */
#include "sim/tail.h"

#include <math.h>
#include <stdlib.h>

#include "unit/cunit_main.h"

static struct tail_config conf(int cores)
{
	struct tail_config c;

	tail_fill(3, cores, 0.7, &c);
	c.warmup = 1000;
	c.requests = 60000;
	return c;
}

static struct tail_result *run(const struct tail_config *c)
{
	struct tail_result *r = malloc(sizeof(*r));

	CU_ASSERT_EQUAL_FATAL(tail_run(c, r), 0);
	CU_ASSERT_EQUAL(r->all.total, c->requests);
	CU_ASSERT_EQUAL(r->brief.total + r->tail.total, c->requests);
	return r;
}

static double p99(const struct hdr *h)
{
	return (double)hdr_quantile_ns(h, 0.99);
}

/* The 99th percentile of the short ones is at most half of that of `fifo`, and the mean of all is
 * not above. */
static void better(const struct tail_config *c, const struct tail_result *fifo)
{
	struct tail_result *r = run(c);

	CU_ASSERT(p99(&r->brief) <= 0.5 * p99(&fifo->brief));
	CU_ASSERT(hdr_mean_ns(&r->all) <= hdr_mean_ns(&fifo->all));
	CU_ASSERT((c->limits.gate == NEXT_CUTOFF) == (r->yields > 0));
	free(r);
}

static void test_one(void)
{
	for (int cores = 1; cores <= 8; cores *= 2) {
		struct tail_config c = conf(cores);
		struct tail_result *fifo = run(&c);

		c.limits = (struct next_limits){.gate = NEXT_CUTOFF, .gate_ns = 1000000};
		better(&c, fifo);
		c.shortest = true;
		better(&c, fifo);
		c.limits = (struct next_limits){.gate = NEXT_ALL};
		c.starve_ns = 250000000;
		c.hint_error = 1;
		/* one core alone does not begin with the short ones while it works on a long one */
		if (cores > 1)
			better(&c, fifo);
		free(fifo);
	}
}

static void test_chain(void)
{
	for (int cores = 1; cores <= 8; cores *= 2) {
		struct tail_config c = conf(cores);

		c.chain = true;
		struct tail_result *fifo = run(&c);
		c.policy = &next_srpt;
		better(&c, fifo);
		free(fifo);
	}
}

/* Without a tail and with one core, the mean is that of M/D/1. */
static void test_theory(void)
{
	struct tail_config c = conf(1);

	c.least_ns = 100000;
	c.most_ns = 100001;
	c.batch_ns = 0;
	struct tail_result *r = run(&c);
	double want = 100000 * (1 + 0.7 / (2 * (1 - 0.7)));
	/* events of a batch leave together, so they wait a little longer */
	CU_ASSERT(hdr_mean_ns(&r->all) > want && hdr_mean_ns(&r->all) < 1.6 * want);
	CU_ASSERT_EQUAL(r->tail.total, 0);
	free(r);
}

CUNIT_MAIN("tail", {"one", test_one}, {"chain", test_chain}, {"theory", test_theory})
