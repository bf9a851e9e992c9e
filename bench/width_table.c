/* SPDX-License-Identifier: MIT */
/*
 * Prints how the width policy `weir` behaves when the other side changes, in virtual time, as a
 * table in Markdown. docs/overload.md ("Stages that wait") has its figures.
 *
 *   width_table [--seeds N] [--trace SCENE SIDE SEED]
 *
 * A row is a scene and a side (tests/unit/control/width_scenes.h). Each column has the worst value
 * over the seeds and, in brackets, the mean. The columns are: the share of the possible throughput
 * that is served in the first 10 s, and in the first 60 s, after the policy has had at least
 * SCENE_AFTER_S to notice the change; the mean width divided by the knee; and the number of changes
 * of direction. --trace prints the steps of one run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../tests/unit/control/width_scenes.h"

struct figures {
	double least_10s, sum_10s, least_60s, sum_60s, most_width, sum_width;
	int most_reversals, sum_reversals, n;
};

static void add(struct figures *f, const struct scene_result *r)
{
	f->least_10s = f->n ? fmin(f->least_10s, r->share_10s) : r->share_10s;
	f->least_60s = f->n ? fmin(f->least_60s, r->share_60s) : r->share_60s;
	f->most_width = fmax(f->most_width, r->width_mean);
	f->sum_10s += r->share_10s;
	f->sum_60s += r->share_60s;
	f->sum_width += r->width_mean;
	f->sum_reversals += r->reversals;
	if (r->reversals > f->most_reversals)
		f->most_reversals = r->reversals;
	f->n++;
}

static void print_scene(enum scene_kind kind, int seeds)
{
	printf("| **%s** | | | | |\n", scene_names[kind]);
	for (int i = 0; i < N_SIDES; i++) {
		struct figures f = {0};
		for (int seed = 1; seed <= seeds; seed++) {
			struct scene_result r;
			if (scene_do(&width_weir, kind, &sides[i], seed, false, &r))
				add(&f, &r);
		}
		if (f.n == 0)
			continue;
		printf("| %s%s | %.3f (%.3f) | %.3f (%.3f) | %.2f (%.2f) | %d (%.1f) |\n",
		    sides[i].name, sides[i].exponential ? ", exponential" : "", f.least_10s,
		    f.sum_10s / f.n, f.least_60s, f.sum_60s / f.n, f.most_width, f.sum_width / f.n,
		    f.most_reversals, (double)f.sum_reversals / f.n);
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	int seeds = 5;

	if (argc == 5 && strcmp(argv[1], "--trace") == 0) {
		struct scene_result r;
		int kind = atoi(argv[2]), side = atoi(argv[3]);
		if (kind < 0 || kind >= N_SCENES || side < 0 || side >= N_SIDES)
			return 1;
		return !scene_do(
		    &width_weir, (enum scene_kind)kind, &sides[side], atoi(argv[4]), true, &r);
	}
	if (argc == 3 && strcmp(argv[1], "--seeds") == 0)
		seeds = atoi(argv[2]);
	else if (argc != 1)
		return 1;
	printf("| scene and side | 10 s: least (mean) | 60 s: least (mean) | width over knee: most "
	       "(mean) | reversals: most (mean) |\n|---|---|---|---|---|\n");
	for (int kind = 0; kind < N_SCENES; kind++)
		print_scene((enum scene_kind)kind, seeds);
	return 0;
}
