/* SPDX-License-Identifier: MIT */
/* How pressed a stage is, for handlers that can do less: weir_pressure, weir_degradation. */
#include "stage/stage.h"

/* Longest wait that the admission policy `weir` allows, as a share of the objective (WAIT_CAP in
 * weir.c). */
#define FULL_WAIT_SHARE 0.5

/* The share of all slots that are taken, those of the cells included, if the queue has `in`. */
static double sink_fullness(const struct sink *s, int64_t in)
{
	uint32_t slots = atomic_load_explicit(&s->queue.limit, memory_order_relaxed);

	return slots > 0 ? (double)(in + sink_in_cells(s)) / (double)slots : 0;
}

double weir_pressure(const struct weir_stage *st)
{
	const struct sink *s = &st->sink;
	uint32_t own = atomic_load_explicit(&s->queue.own, memory_order_relaxed);
	int64_t in = queue_length(&s->queue) + queue_kept_all(&s->queue);
	int64_t wait_ns = atomic_load_explicit(&s->wait_ns, memory_order_relaxed);
	double full = own > 0 ? (double)in / (double)own : 0;
	double all = sink_fullness(s, in);
	double classes = atomic_load_explicit(&s->full, memory_order_relaxed);
	double late = s->slo_ns > 0 ? (double)wait_ns / (FULL_WAIT_SHARE * (double)s->slo_ns) : 0;
	double p = full > late ? full : late;

	p = all > p ? all : p;
	p = classes > p ? classes : p;
	return p > 1 ? 1 : p;
}

double weir_degradation(const struct weir_stage *st)
{
	return (double)atomic_load_explicit(&st->degraded, memory_order_relaxed) / DEGRADE_TENTHS;
}
