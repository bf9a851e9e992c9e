/* SPDX-License-Identifier: MIT */
/*
 * The shares of visits that `mg1` gives to stages, against the smallest mean work that is left waiting
 * for any shares.
 *
 * What is exact: with Poisson arrivals, one server and a fixed table of visits, the sum of load times
 * mean wait over the stages is that of M/G/1 plus the mean work Y that waits while the server switches
 * (the pseudo-conservation law: O. Boxma, W. Groenendijk, Pseudo-conservation laws in cyclic-service
 * systems, J. Applied Probability 24, 1987; for tables: Boxma, Groenendijk, Weststrate, A
 * pseudoconservation law for service systems with a polling table, IEEE Trans. Communications 38,
 * 1990). Only Y depends on the table. The work left at stage i when a switch begins is on average its
 * load times the time since its last visit ended or, if visits are gated, began; and the mean times
 * of all visits follow from linear equations, which a fluid that is served by the table solves.
 *
 * What is checked: the square roots of next_mg1.c come from an approximation of Y in which the visits
 * of a stage are equally far apart. Their Y is close to the smallest one that a search over the numbers
 * of visits finds. The search likes Fibonacci numbers, whose visits are spaced most evenly; that is what
 * the rule loses, up to 7 % at a load of 0.93. Equal shares, shares in proportion to the loads, and
 * the rule for the other kind of gate are worse on average.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/random.h>

#include "sched/next.h"
#include "unit/cunit_main.h"

#define ENTRIES 233
#define STRIDE  144
#define N_MAX   8
#define ROUNDS  8 /* of the table, until the fluid repeats itself */
#define CASES   60
#define NEAR    1.08 /* the rule to the smallest Y found */
#define SHARE   0.15 /* mean difference of a stage's visits from those of the smallest Y */

struct polling {
	int n;
	double load[N_MAX];
	bool gated;
};

/* The mean work that waits when a switch begins, in switches. */
static double left_waiting(const struct polling *p, const uint8_t *table)
{
	double from[N_MAX] = {0}, now = 0, sum = 0;

	for (int k = 0; k < ROUNDS * ENTRIES; k++) {
		int i = table[k % ENTRIES];
		double load = p->load[i], since = now - from[i];
		double visit = p->gated ? load * since : load / (1 - load) * since;
		from[i] = p->gated ? now : now + visit;
		now += visit;
		for (int s = 0; s < p->n && k >= (ROUNDS - 1) * ENTRIES; s++)
			sum += p->load[s] * (now - from[s]) / ENTRIES;
		now += 1;
	}
	return sum;
}

/* As next_mg1.c spaces the visits. */
static double left_with(const struct polling *p, const int *visits)
{
	uint8_t table[ENTRIES];

	for (int i = 0, at = 0; i < p->n; i++)
		for (int k = 0; k < visits[i]; k++, at = (at + STRIDE) % ENTRIES)
			table[at] = (uint8_t)i;
	return left_waiting(p, table);
}

/* Numbers of visits in proportion to `weight`, at least one each. */
static void divide(int n, const double *weight, int *visits)
{
	double sum = 0;
	int rest = ENTRIES, largest = 0;

	for (int i = 0; i < n; i++)
		sum += weight[i];
	for (int i = 0; i < n; i++) {
		visits[i] = (int)fmax(1, weight[i] / sum * ENTRIES);
		rest -= visits[i];
		largest = weight[i] > weight[largest] ? i : largest;
	}
	visits[largest] += rest;
}

/* Move visits from stage to stage while that makes Y smaller. */
static double search(const struct polling *p, int *visits)
{
	double least = left_with(p, visits);

	for (int step = 16; step > 0; step /= 2)
		for (bool better = true; better;) {
			better = false;
			for (int i = 0; i < p->n; i++)
				for (int k = 0; k < p->n; k++) {
					if (i == k || visits[i] <= step)
						continue;
					visits[i] -= step;
					visits[k] += step;
					double y = left_with(p, visits);
					if (y < least * (1 - 1e-9)) {
						least = y;
						better = true;
						continue;
					}
					visits[i] += step;
					visits[k] -= step;
				}
		}
	return least;
}

/* Loads that add up to 0.2 to 0.95, and differ by a factor of up to 100. */
static struct polling draw(uint64_t k)
{
	struct polling p = {.n = 2 + (int)(k % (N_MAX - 1)), .gated = k % 2};
	double sum = 0, all = 0.2 + 0.75 * weir_random_unit(weir_random_at(k, 0));

	for (int i = 0; i < p.n; i++)
		sum += p.load[i] = pow(100, weir_random_unit(weir_random_at(k, 1 + (uint64_t)i)));
	for (int i = 0; i < p.n; i++)
		p.load[i] *= all / sum;
	return p;
}

/* The visits of the policy. */
static double with_rule(const struct polling *p, int *visits)
{
	struct next_stage stage[N_MAX] = {0};
	struct next_limits limits = {.gate = p->gated ? NEXT_ARRIVED : NEXT_ALL};
	struct next_order order;
	struct next_view v = {.n = p->n, .stage = stage, .order = &order};

	memset(visits, 0, sizeof(*visits) * N_MAX);
	for (int i = 0; i < p->n; i++)
		stage[i].load = p->load[i];
	next_order_make(&next_mg1, &v, &limits, &order);
	CU_ASSERT_EQUAL_FATAL(order.n_table, ENTRIES);
	for (int k = 0; k < ENTRIES; k++)
		visits[order.table[k]]++;
	return left_waiting(p, order.table);
}

static void test_least(void)
{
	double worst = 0, off = 0, cyclic = 0, by_load = 0, swapped = 0;
	int stages = 0;

	for (uint64_t k = 0; k < CASES; k++) {
		struct polling p = draw(k), q = p;
		int rule[N_MAX], best[N_MAX], other[N_MAX];
		double even[N_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
		double y = with_rule(&p, rule);

		memcpy(best, rule, sizeof(best));
		double least = search(&p, best);
		worst = fmax(worst, y / least);
		q.gated = !p.gated;
		with_rule(&q, other);
		swapped += left_with(&p, other) / y / CASES;
		divide(p.n, even, other);
		cyclic += left_with(&p, other) / y / CASES;
		divide(p.n, p.load, other);
		by_load += left_with(&p, other) / y / CASES;
		for (int i = 0; i < p.n; i++)
			off += fabs((double)rule[i] / best[i] - 1);
		stages += p.n;
	}
	off /= stages;
	printf(
	    "\n    at most %.3f of the least, visits off by %.2f; of the rule: equal shares %.2f, "
	    "by load %.2f, of the other gate %.2f",
	    worst, off, cyclic, by_load, swapped);
	CU_ASSERT(worst < NEAR);
	CU_ASSERT(off < SHARE);
	CU_ASSERT(cyclic > 1.2 && by_load > 1.2 && swapped > 1.02);
}

/* The fluid is right where the result is known: with two stages in turn, visits are exhaustive and the
 * times follow from v = rho / (1 - rho) (other visit + 2 switches). */
static void test_fluid(void)
{
	struct polling p = {.n = 2, .load = {0.3, 0.4}};
	uint8_t table[ENTRIES + 1];

	for (int i = 0; i < ENTRIES; i++)
		table[i] = (uint8_t)(i % 2);
	/* C = 2 / (1 - 0.7); after visit 1, stage 0 has waited for visit 1 and a switch */
	double c = 2 / 0.3, want = (0.3 * (0.4 * c + 1) + 0.4 * (0.3 * c + 1)) / 2;
	CU_ASSERT_DOUBLE_EQUAL(left_waiting(&p, table), want, 0.05 * want);
}

CUNIT_MAIN("the shares of mg1", {"the fluid", test_fluid}, {"close to the least", test_least})
