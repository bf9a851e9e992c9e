/* SPDX-License-Identifier: MIT */
/*
 * Builds the tables of the alias method; see pick.h.
 *
 * Shares are scaled to a mean of 1, the size of a cell. A share below 1 (small) leaves part of its
 * cell free. The free part is filled with a part of a share of at least 1 (large). The rest of the
 * large share is then classified again as small or large. One array holds both lists: the list of
 * small shares grows from the front, that of large shares from the end.
 */
#include "load/pick.h"

#include <stdlib.h>

#include <weir/error.h>

struct work {
	double *share;
	uint32_t *list;
	uint32_t n_small, large; /* small: list[0..n_small), large: list[large..n) */
};

static void sort_in(struct work *w, uint32_t i)
{
	if (w->share[i] < 1)
		w->list[w->n_small++] = i;
	else
		w->list[--w->large] = i;
}

static void fill(struct pick *p, struct work *w)
{
	for (uint32_t i = p->n; i-- > 0;)
		sort_in(w, i);
	while (w->n_small > 0 && w->large < p->n) {
		uint32_t small = w->list[--w->n_small], large = w->list[w->large++];
		p->cell[small] = (struct pick_cell){(float)w->share[small], large};
		w->share[large] -= 1 - w->share[small];
		sort_in(w, large);
	}
	/* The remaining shares are 1 except for rounding errors. */
	while (w->n_small > 0) {
		uint32_t i = w->list[--w->n_small];
		p->cell[i] = (struct pick_cell){1, i};
	}
	for (; w->large < p->n; w->large++)
		p->cell[w->list[w->large]] = (struct pick_cell){1, w->list[w->large]};
}

int pick_init(struct pick *p, const double *weight, uint32_t n)
{
	struct work w = {.large = n};
	double sum = 0;
	int rc = WEIR_ENOMEM;

	p->n = n;
	p->cell = calloc(n, sizeof(*p->cell));
	w.share = calloc(n, sizeof(*w.share));
	w.list = calloc(n, sizeof(*w.list));
	if (p->cell && w.share && w.list) {
		for (uint32_t i = 0; i < n; i++)
			sum += weight[i];
		for (uint32_t i = 0; i < n; i++)
			w.share[i] = weight[i] / sum * n;
		fill(p, &w);
		rc = 0;
	}
	free(w.list);
	free(w.share);
	if (rc != 0)
		pick_fini(p);
	return rc;
}

void pick_fini(struct pick *p)
{
	free(p->cell);
	*p = (struct pick){0};
}
