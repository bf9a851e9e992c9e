/* SPDX-License-Identifier: MIT */
/* Consults the policies of fronts downstream about the events that enter a stage; see admit.h. */
#include "stage/admit_internal.h"

static double fan_of(const struct ahead *a, int class_id, int front)
{
	float fan = atomic_load_explicit(&a->fan[class_id][front], memory_order_relaxed);

	return fan > 1 ? (double)fan : 1;
}

static void admit_at_front(struct sink *entry, struct sink *front, struct admit_call *a)
{
	struct verdict *v = a->v;

	a->rank = ANY_RANK;
	a->length = queue_length(&front->queue);
	a->admitted_ns = 0;
	lock_take(&front->queue.lock);
	for (unsigned left = v->classes; left; left &= left - 1) {
		int c = __builtin_ctz(left);
		if (sink_mode(front) == WEIR_ADMISSION_OFF)
			v->fronts[c] &= (uint16_t) ~(1U << front->front);
		if (!(v->fronts[c] >> front->front & 1))
			continue;
		a->class_id = c;
		a->lead_ns = atomic_load_explicit(
		    &entry->ahead->lead_ns[c][front->front], memory_order_relaxed);
		a->before = atomic_load_explicit(
		    &entry->ahead->before[c][front->front], memory_order_relaxed);
		a->fan = fan_of(entry->ahead, c, front->front);
		front->decided[c].offered += fanned(a->fan, v->fresh[c]);
		int before = v->want[c];
		admit_ask(front, a);
		int refused = before - v->want[c];
		v->refused_by[c][front->front] = (uint16_t)refused;
		if (a->would > refused)
			atomic_fetch_add_explicit(
			    &front->shadow_ahead[c], (uint64_t)a->would, memory_order_relaxed);
		if (refused)
			atomic_fetch_add_explicit(
			    &front->refused_ahead[c], (uint64_t)refused, memory_order_relaxed);
		a->admitted_ns += (int64_t)fanned(a->fan, v->want[c]) * sink_cost_ns(front, c);
		a->length += (uint32_t)fanned(a->fan, v->want[c]);
	}
	lock_release(&front->queue.lock);
}

/* Set which fronts are consulted about each class, and which classes the stage's own policy has
 * already judged. */
static void set_fronts(struct verdict *v, const struct sink *s, int from)
{
	const struct ahead *before = from != WEIR_NO_STAGE ? s->sinks[from]->ahead : NULL;

	for (unsigned left = v->classes; left; left &= left - 1) {
		int c = __builtin_ctz(left);
		unsigned fronts = atomic_load_explicit(&s->ahead->fronts[c], memory_order_relaxed);
		unsigned judged =
		    before ? atomic_load_explicit(&before->judged[c], memory_order_relaxed) : 0;
		v->fronts[c] = (uint16_t)(fronts & ~judged);
		v->all_fronts |= v->fronts[c];
		if (s->front >= 0)
			v->judged |= (uint16_t)((judged >> s->front & 1) << c);
	}
}

void admit_upstream(
    struct sink *entry, struct weir_event **ev, int n, int from, int64_t now_ns, struct verdict *v)
{
	set_fronts(v, entry, from);
	if (v->all_fronts == 0)
		return;
	struct admit_call a = {.ev = ev, .n = n, .v = v, .now_ns = now_ns};
	for (unsigned left = v->all_fronts; left; left &= left - 1)
		admit_at_front(entry, entry->fronts[__builtin_ctz(left)], &a);
}

/* Add to the totals of `front`: the events of the batch that are on their way there, and those that
 * the front has refused. */
static void settle_front(const struct sink *entry, struct sink *front, const struct verdict *v)
{
	int64_t coming_ns = 0;

	for (unsigned left = v->classes; left; left &= left - 1) {
		int c = __builtin_ctz(left);
		if (!(v->fronts[c] >> front->front & 1))
			continue;
		double fan = fan_of(entry->ahead, c, front->front);
		atomic_fetch_add_explicit(&front->wanted_ahead[c],
		    fanned(fan, v->want[c] + v->refused_by[c][front->front]), memory_order_relaxed);
		coming_ns += (int64_t)fanned(fan, v->want[c]) * sink_cost_ns(front, c);
	}
	atomic_fetch_add_explicit(&front->pipeline_ns, coming_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&front->stirred, 1, memory_order_release);
}

void admit_settle(struct sink *entry, const struct verdict *v)
{
	int64_t arrived_ns = 0;

	for (unsigned left = v->judged; left; left &= left - 1) {
		int c = __builtin_ctz(left);
		arrived_ns += v->want[c] * sink_cost_ns(entry, c);
	}
	if (arrived_ns)
		atomic_fetch_sub_explicit(&entry->pipeline_ns, arrived_ns, memory_order_relaxed);
	for (unsigned left = v->all_fronts; left; left &= left - 1)
		settle_front(entry, entry->fronts[__builtin_ctz(left)], v);
}
