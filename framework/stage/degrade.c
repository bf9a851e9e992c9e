/* SPDX-License-Identifier: MIT */
/* Raises and lowers a stage's degradation level; see degrade.h. */
#include "stage/degrade.h"

void degrade_init(struct degrade *d, double above, double below, int64_t step_ns)
{
	*d = (struct degrade){.above = above, .below = below, .step_ns = step_ns};
}

/* Direction in which the level should move: 1, 0 or -1. */
static int direction(const struct degrade *d)
{
	if (d->mean > d->above && d->tenths < DEGRADE_TENTHS)
		return 1;
	return d->mean < d->below && d->tenths > 0 ? -1 : 0;
}

/* Add a sample to the mean. The first sample, or one after a long pause, replaces the mean. */
static void smooth(struct degrade *d, double pressure, int64_t now_ns)
{
	double part = (double)(now_ns - d->looked_ns) / (DEGRADE_SMOOTH_STEPS * (double)d->step_ns);

	d->mean += (pressure - d->mean) * (d->looked_ns == 0 || part > 1 ? 1 : part);
	d->looked_ns = now_ns;
}

bool degrade_step(struct degrade *d, double pressure, int64_t now_ns)
{
	smooth(d, pressure, now_ns);
	int way = direction(d);
	if (way == 0 || now_ns < d->due_ns)
		return false;
	d->tenths += way;
	d->due_ns = now_ns + d->step_ns;
	return true;
}
