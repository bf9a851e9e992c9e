/* SPDX-License-Identifier: MIT */
/* Resize policies that are each wrong in one way, for tests that have to notice it. */
#ifndef WEIR_TESTS_POLICY_POOL_MUTANTS_H
#define WEIR_TESTS_POLICY_POOL_MUTANTS_H

#include "base/clock.h"
#include "control/resize.h"

static bool want(struct resize_decision *d, const struct resize_view *v, int target)
{
	d->target = target;
	return target != v->target;
}

static bool decide_frozen(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	(void)state, (void)now_ns;
	return want(d, v, v->target);
}

static bool decide_max(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	(void)state, (void)now_ns;
	return want(d, v, v->max);
}

static bool decide_min(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	(void)state, (void)now_ns;
	return want(d, v, v->min);
}

/* Alternates between two sizes: enough threads, but never stable. */
static bool decide_restless(
    void *state, const struct resize_view *v, int64_t now_ns, struct resize_decision *d)
{
	(void)state;
	return want(d, v, now_ns / NS_PER_S % 2 ? v->max : v->max / 2);
}

#endif
