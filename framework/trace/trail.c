/* SPDX-License-Identifier: MIT */
/* Stores the slowest events; see trail.h. */
#include "trace/trail.h"

#include <stdlib.h>
#include <string.h>

#include <weir/op.h>

#include "trace/trail_tap.h"

/* The slowest events of a class in a window, unordered. */
struct window {
	int n;
	struct weir_slow slow[WEIR_SLOWEST_MAX];
};

struct slow_class {
	/* An event that took at most this long is not among the slowest. Exact only under the
	 * lock. */
	_Atomic int64_t least_ns;
	struct window now, last;
};

struct slowest {
	struct slowest_head head; /* must be the first member */
	struct lock lock;         /* a leaf lock */
	int n_classes;
	struct taps *taps;
	uint64_t id WEIR_GUARDED_BY(lock);
	int64_t began_ns; /* start of the current window; used by the control thread only */
	struct slow_class class[];
};

struct slowest *slowest_new(int n_classes)
{
	struct slowest *s = calloc(1, sizeof(*s) + (unsigned)n_classes * sizeof(s->class[0]));

	if (!s)
		return NULL;
	s->taps = taps_new(&s->head.looking);
	if (!s->taps) {
		free(s);
		return NULL;
	}
	lock_init(&s->lock);
	s->n_classes = n_classes;
	return s;
}

void slowest_free(struct slowest *s)
{
	if (!s)
		return;
	taps_free(s->taps);
	lock_fini(&s->lock);
	free(s);
}

struct taps *slowest_taps(struct slowest *s)
{
	return s->taps;
}

void slowest_tick(struct slowest *s, int64_t now_ns)
{
	taps_tick(s->taps, now_ns);
	if (s->began_ns == 0)
		s->began_ns = now_ns;
	if (now_ns - s->began_ns < SLOWEST_WINDOW_NS)
		return;
	s->began_ns = now_ns;
	lock_take(&s->lock);
	for (int c = 0; c < s->n_classes; c++) {
		struct slow_class *k = &s->class[c];
		memcpy(&k->last, &k->now, sizeof(k->last));
		k->now.n = 0;
		atomic_store_explicit(&k->least_ns, 0, memory_order_relaxed);
	}
	lock_release(&s->lock);
}

static uint32_t span_us(uint32_t from_us, uint32_t until_us)
{
	/* timestamps may be out of order, since a clock may be read before a lock is taken */
	return until_us > from_us ? until_us - from_us : 0;
}

/* Fill `out[0..max)` with the spans of the trail of an event that ended at `end_us`. Returns their
 * number. */
static int fill_spans(const struct weir_trail *t, uint32_t end_us, struct weir_span *out, int max)
{
	int stored = t->n_hops < WEIR_TRAIL_HOPS ? t->n_hops : WEIR_TRAIL_HOPS;
	int n = stored < max ? stored : max;

	for (int i = 0; i < n; i++) {
		const struct weir_hop *h = &t->hop[i];
		/* If the event made more hops than are stored, the time at which the last stored
		 * hop ended is unknown. All the remaining time is then attributed to that hop. */
		uint32_t until_us = i + 1 < stored ? t->hop[i + 1].queued_us : end_us;
		uint32_t left_us = h->left_us > 0 ? h->left_us : until_us;
		out[i] = (struct weir_span){.stage_id = h->stage,
		    .at_ns = (int64_t)h->queued_us * NS_PER_US,
		    .wait_ns = (int64_t)span_us(h->queued_us, h->started_us) * NS_PER_US,
		    .id = trace_hop_span(&t->trace, i),
		    .service_ns = (int64_t)span_us(h->started_us, left_us) * NS_PER_US,
		    .await_ns = (int64_t)span_us(left_us, until_us) * NS_PER_US};
	}
	return n;
}

/* ---- children ---- */

/* A child that has ended. */
struct ended {
	struct weir_event *ev;
	int number;
	int64_t end_ns;
};

static const struct weir_op *op_in(const struct weir_event *ev)
{
	return (const struct weir_op *)((const char *)ev + ev->type->op);
}

/* The time at which the child `ev` ended, or 0 if it is unknown: it has passed no stage. */
static int64_t ended_ns(struct weir_event *ev)
{
	const struct weir_trail *t = ev->type->trail ? trail_of(ev) : NULL;
	int n = !t ? 0 : t->n_hops < WEIR_TRAIL_HOPS ? t->n_hops : WEIR_TRAIL_HOPS;

	return n > 0 ? ev->arrival_ns + (int64_t)t->hop[n - 1].left_us * NS_PER_US : 0;
}

/* Insert `e` into last[0..n), where the child that ended last is first, and drop the one that ended
 * first if there are more than WEIR_SLOW_CHILDREN. Returns the new number. */
static int keep_last(struct ended *last, int n, struct ended e)
{
	int at = n;

	while (at > 0 && last[at - 1].end_ns < e.end_ns)
		at--;
	if (at == WEIR_SLOW_CHILDREN)
		return n;
	if (n == WEIR_SLOW_CHILDREN)
		n--;
	memmove(&last[at + 1], &last[at], (size_t)(n - at) * sizeof(*last));
	last[at] = e;
	return n + 1;
}

/* Record the children that `ev` has awaited last, which are still in memory. */
static void fill_children(const struct weir_event *ev, struct weir_slow *slow)
{
	struct ended last[WEIR_SLOW_CHILDREN];
	int n = 0;

	slow->depth = op_in(ev)->depth;
	for (struct weir_event *c = weir_ended(ev); c; c = c->next) {
		struct ended e = {c, slow->n_children++, ended_ns(c)};
		if (e.end_ns > 0)
			n = keep_last(last, n, e);
	}
	for (int i = 0; i < n; i++) {
		int64_t apart_ns = last[i].ev->arrival_ns - ev->arrival_ns;
		struct weir_span *s = &slow->child_span[slow->n_child_spans];
		int k = fill_spans(trail_of(last[i].ev),
		    trail_us(last[i].end_ns - last[i].ev->arrival_ns), s,
		    WEIR_TRAIL_HOPS - slow->n_child_spans);
		slow->n_child_spans += k;
		for (int j = 0; j < k; j++) {
			s[j].at_ns += apart_ns;
			s[j].child = last[i].number;
		}
	}
}

static void describe(const struct weir_event *ev, struct weir_slow *slow)
{
	if (ev->type->describe)
		ev->type->describe(ev, slow->what, sizeof(slow->what));
	slow->what[sizeof(slow->what) - 1] = '\0';
	for (unsigned char *p = (unsigned char *)slow->what; *p; p++)
		if (*p < ' ' || *p > '~')
			*p = '?';
}

/* Add `slow` to the window. If the window is full, `slow` replaces the fastest event in it, unless
 * `slow` is itself faster. Returns the duration that the next event must exceed. */
static int64_t put(struct window *w, const struct weir_slow *slow)
{
	int least = 0;
	int64_t least_ns;

	if (w->n < WEIR_SLOWEST_MAX) {
		w->slow[w->n++] = *slow;
	} else {
		for (int i = 1; i < w->n; i++)
			least = w->slow[i].took_ns < w->slow[least].took_ns ? i : least;
		if (w->slow[least].took_ns < slow->took_ns)
			w->slow[least] = *slow;
	}
	if (w->n < WEIR_SLOWEST_MAX)
		return 0;
	least_ns = w->slow[0].took_ns;
	for (int i = 1; i < w->n; i++)
		least_ns = w->slow[i].took_ns < least_ns ? w->slow[i].took_ns : least_ns;
	return least_ns;
}

void trail_record(
    struct weir_event *ev, int status, int64_t now_ns, uint64_t below, struct weir_slow *slow)
{
	struct weir_trail *t = trail_of(ev);

	trace_make(t, below);
	*slow = (struct weir_slow){.class_id = ev->class_id,
	    .status = status,
	    .end_id = ev->stage == WEIR_NO_STAGE ? -1 : ev->stage,
	    .wall_ns = clock_wall_ns(),
	    .took_ns = now_ns - ev->arrival_ns,
	    .trace = t->trace};
	slow->n_hops = t->n_hops;
	slow->n_spans = fill_spans(t, trail_us(slow->took_ns), slow->span, WEIR_TRAIL_HOPS);
	if (ev->type->op)
		fill_children(ev, slow);
	describe(ev, slow);
}

WEIR_COLD static void keep(
    struct slowest *s, struct slow_class *k, struct weir_event *ev, int status, int64_t now_ns)
{
	struct weir_slow slow;

	trail_record(ev, status, now_ns, collect_below(s->taps), &slow);
	lock_take(&s->lock);
	slow.id = ++s->id;
	atomic_store_explicit(&k->least_ns, put(&k->now, &slow), memory_order_relaxed);
	lock_release(&s->lock);
}

bool slowest_offer(struct slowest *s, struct weir_event *ev, int status, int64_t now_ns)
{
	WEIR_ASSERT(ev->class_id < s->n_classes);
	struct slow_class *k = &s->class[ev->class_id];
	int64_t least_ns = atomic_load_explicit(&k->least_ns, memory_order_relaxed);

	if (WEIR_LIKELY(now_ns - ev->arrival_ns <= least_ns))
		return false;
	if (ev->type->op && op_in(ev)->parent) /* it is shown with its parent, which takes longer */
		return false;
	keep(s, k, ev, status, now_ns);
	return true;
}

void trail_end(struct slowest *s, struct weir_event *ev, int status, int64_t now_ns)
{
	bool kept = trail_of(ev)->n_hops > 0 && slowest_offer(s, ev, status, now_ns);

	taps_offer(s->taps, ev, status, kept, now_ns);
}

static int slower_first(const void *a, const void *b)
{
	const struct weir_slow *x = a, *y = b;

	if (x->took_ns != y->took_ns)
		return x->took_ns < y->took_ns ? 1 : -1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* Copy the events of classes [first, end), unordered, to `all`, which must have space for two
 * windows per class. Returns their number. */
static int gather(struct slowest *s, int first, int end, struct weir_slow *all)
{
	int n = 0;

	lock_take(&s->lock);
	for (int c = first; c < end; c++) {
		const struct window *w[] = {&s->class[c].now, &s->class[c].last};
		for (int i = 0; i < 2; i++) {
			memcpy(all + n, w[i]->slow, (unsigned)w[i]->n * sizeof(*all));
			n += w[i]->n;
		}
	}
	lock_release(&s->lock);
	return n;
}

int slowest_read(struct slowest *s, int class_id, struct weir_slow *out, int n)
{
	int first = class_id < 0 ? 0 : class_id, end = class_id < 0 ? s->n_classes : class_id + 1;
	struct weir_slow *all =
	    calloc((unsigned)(end - first) * 2 * WEIR_SLOWEST_MAX, sizeof(*all));

	if (!all)
		return WEIR_ENOMEM;
	int total = gather(s, first, end, all);
	qsort(all, (unsigned)total, sizeof(*all), slower_first);
	n = total < n ? total : n;
	memcpy(out, all, (unsigned)n * sizeof(*all));
	free(all);
	return n;
}
