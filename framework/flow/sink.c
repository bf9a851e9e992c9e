/* SPDX-License-Identifier: MIT */
/*
 * The one door of a stage; see sink.h.
 *
 * Order of the tests: deadline (no lock), then the policies of later stages that this door asks for
 * (ask.h), then per class, highest first, the stage's own policy and the queue's room under the
 * queue's lock, so that of a mixed run the high classes get the last places. Events are stamped
 * before the lock is taken: under it only pointers are copied.
 */
#include "flow/sink.h"

#include <string.h>

#include "base/probe.h"
#include "flow/ask.h"

static uint64_t make_key(const struct sink *s, const struct weir_event *ev)
{
	switch (s->key.kind) {
	case KEY_CLASS:
		return (uint64_t)ev->class_id + 1;
	case KEY_STAGE:
		return s->stage_key(s->stage, ev);
	case KEY_FIELD:
		return weir_hash(s->key.field->get(ev, s->key.arg));
	default:
		return ev->key;
	}
}

/* Count a run by class. Runs of one class are counted as one, since adding to memory for each event
 * makes each wait for the one before. */
static void count_classes(struct weir_event **ev, int n, int *per_class)
{
	for (int i = 0; i < n;) {
		uint8_t c = ev[i]->class_id;
		int run = 1;
		while (i + run < n && ev[i + run]->class_id == c)
			run++;
		per_class[c] += run;
		i += run;
	}
}

/* Put the expired in front, stamp the rest as the stage's. Returns how many expired. */
static int stamp_run(struct sink *s, struct weir_event **ev, int n, int64_t now_ns, uint64_t *parts)
{
	struct weir_event *expired[WEIR_BATCH_MAX];
	int n_expired = 0, kept = 0;
	enum weir_event_state state = s->inlined ? WEIR_EVENT_RUNNING : WEIR_EVENT_QUEUED;
	bool keyed = s->key.kind != KEY_NONE;
	uint16_t id = s->id;

	for (int i = 0; i < n; i++) {
		struct weir_event *e = ev[i];
		WEIR_ASSERT(e->state == WEIR_EVENT_NEW || e->state == WEIR_EVENT_RUNNING);
		WEIR_ASSERT(e->class_id < s->queue.n_classes);
		if (WEIR_UNLIKELY(e->deadline_ns <= now_ns)) {
			expired[n_expired++] = e;
			continue;
		}
		e->queued_ns = now_ns;
		e->stage = id;
		e->state = (uint8_t)state;
		if (keyed) {
			e->key = make_key(s, e);
			*parts |= 1ULL << (e->key % (uint64_t)s->queue.n_parts);
		}
		ev[kept++] = e;
	}
	if (WEIR_UNLIKELY(n_expired > 0)) {
		memmove(ev + n_expired, ev, (size_t)kept * sizeof(*ev));
		memcpy(ev, expired, (size_t)n_expired * sizeof(*ev));
	}
	return n_expired;
}

/* The stage is being drained: nobody is asked. */
static void judge_draining(struct sink *s, struct weir_event **ev, int n, struct verdict *v)
{
	for (int c = 0; c < s->queue.n_classes; c++)
		if (v->want[c] > 0)
			verdict_refuse_last(v, s, ev, n, c, v->want[c], WEIR_EDRAINING);
}

/* Say in `v` which of ev[0..n) may not enter. Returns how many may. The queue's lock is held. */
static int judge(struct sink *s, struct weir_event **ev, int n, int64_t now_ns, struct verdict *v)
    WEIR_REQUIRES(&s->queue.lock)
{
	int total = 0;
	int64_t left = s->inlined ? INT64_MAX : queue_room_locked(&s->queue);

	if (WEIR_UNLIKELY(s->queue.shut)) {
		judge_draining(s, ev, n, v);
		return 0;
	}
	v->length = queue_length(&s->queue);
	for (int c = 0; c < s->queue.n_classes; c++) {
		int charged = 0;
		if (v->want[c] == 0)
			continue;
		if (ask_asks(s, v, c))
			charged = ask_own(s, ev, n, c, now_ns, v);
		int over = v->want[c] > left ? v->want[c] - (int)left : 0;
		if (over > 0) {
			if (s->policy->give_back && charged > left)
				s->policy->give_back(s->admission_state, charged - (int)left);
			verdict_refuse_last(
			    v, s, ev, n, c, over, s->queue.closed ? WEIR_ESTOPPING : WEIR_EQUEUE);
		}
		left -= v->want[c];
		v->length += (uint32_t)v->want[c];
		v->admitted_ns += v->want[c] * sink_cost_ns(s, c);
		total += v->want[c];
	}
	return total;
}

/* Move the refused of ev[0..n) to the front, in order; the admitted follow, in order. */
static int split_refused(struct weir_event **ev, int n, const struct verdict *v, int *reason)
{
	struct weir_event *admitted[WEIR_BATCH_MAX];
	int refused = 0, m = 0;

	for (int i = 0; i < n; i++) {
		if (!v->why[i]) {
			admitted[m++] = ev[i];
		} else {
			reason[refused] = v->why[i];
			ev[refused++] = ev[i];
		}
	}
	memcpy(ev + refused, admitted, (size_t)m * sizeof(*ev));
	return refused;
}

/* Push ev[0..n); what a lane has no memory for (as good as full) is moved to the front. Returns how
 * many did not enter. */
static int push_run(struct sink *s, struct weir_event **ev, int n, int *reason)
    WEIR_REQUIRES(&s->queue.lock)
{
	struct weir_event *kept[WEIR_BATCH_MAX];
	int pushed = queue_push_locked(&s->queue, ev, n), left = n - pushed;

	if (WEIR_LIKELY(left == 0))
		return 0;
	memcpy(kept, ev + pushed, (size_t)left * sizeof(*ev));
	memmove(ev + left, ev, (size_t)pushed * sizeof(*ev));
	memcpy(ev, kept, (size_t)left * sizeof(*ev));
	for (int i = 0; i < left; i++)
		reason[i] = WEIR_EQUEUE;
	return left;
}

/* Judge and push ev[0..n). The refused end up in front; returns their number. */
static int admit_run(struct sink *s, struct weir_event **ev, int n, int64_t now_ns,
    struct verdict *v, int *reason, uint64_t parts)
{
	int refused = 0;
	uint32_t before, length;

	if (WEIR_UNLIKELY(s->ahead != NULL))
		ask_ahead(s, ev, n, now_ns, v);
	lock_take(&s->queue.lock);
	before = queue_length(&s->queue);
	if (judge(s, ev, n, now_ns, v) < n)
		refused = split_refused(ev, n, v, reason);
	if (!s->inlined && refused < n) {
		int left = push_run(s, ev + refused, n - refused, reason + refused);
		if (left > 0 && s->policy->give_back && sink_mode(s) != WEIR_ADMISSION_OFF)
			s->policy->give_back(s->admission_state, left);
		refused += left;
	}
	length = queue_length(&s->queue);
	lock_release(&s->queue.lock);
	if (length > before) {
		probe_enqueue(s->name, n - refused, length);
		s->wake(s, before, length, parts);
	}
	ask_settle(s, v);
	return refused;
}

/* The refused are the sender's again, as they were, and counted. */
static void return_refused(const struct sink *s, struct weir_event **ev, const int *reason, int n,
    int from, enum weir_event_state state, struct book *book)
{
	for (int i = 0; i < n; i++) {
		probe_shed(s->name, ev[i]->class_id, reason[i]);
		ev[i]->stage = (uint16_t)from;
		ev[i]->state = (uint8_t)state;
		book_add(&book->class_book[ev[i]->class_id].shed[weir_shed_index(reason[i])], 1);
	}
}

int sink_offer(struct sink *s, struct weir_event **ev, int n, int from, int64_t now_ns,
    struct book *book, int *reason)
{
	struct verdict v; /* v.why is written when something is refused */
	uint64_t parts = 0;
	enum weir_event_state before = ev[0]->state; /* one sender: one state */

	verdict_init(&v, s, from);
	count_classes(ev, n, v.offered);
	int refused = stamp_run(s, ev, n, now_ns, &parts);
	memcpy(v.want, v.offered, sizeof(v.want));
	for (int i = 0; i < refused; i++) {
		reason[i] = WEIR_EDEADLINE;
		v.want[ev[i]->class_id]--;
		ask_mark(s, ev[i], WEIR_EDEADLINE, 1, -1, now_ns);
	}
	memcpy(v.fresh, v.want, sizeof(v.fresh));
	/* Counted before the push: a reader may see an event early, never one that was not offered.
	 */
	for (int c = 0; c < s->queue.n_classes; c++)
		if (v.offered[c])
			book_add(&book->class_book[c].offered, (uint64_t)v.offered[c]);
	if (refused < n && !(s->inlined && s->policy == &admission_none))
		refused +=
		    admit_run(s, ev + refused, n - refused, now_ns, &v, reason + refused, parts);
	for (int c = 0; c < s->queue.n_classes; c++)
		if (v.shadow[c])
			book_add(&book->class_book[c].shadow_shed, (uint64_t)v.shadow[c]);
	if (WEIR_UNLIKELY(refused > 0))
		return_refused(s, ev, reason, refused, from, before, book);
	probe_admit(s->name, n, refused, from);
	return n - refused;
}

int sink_take_back(struct sink *s, struct weir_event **ev, int n, int64_t now_ns, int *why)
{
	enum weir_event_state state = s->inlined ? WEIR_EVENT_RUNNING : WEIR_EVENT_AGAIN;
	uint64_t parts = 0;
	uint32_t before, length;
	int back = 0;

	for (int i = 0; i < n; i++) {
		ev[i]->queued_ns = now_ns;
		ev[i]->state = (uint8_t)state;
		parts |= 1ULL << (ev[i]->key % (uint64_t)s->queue.n_parts);
	}
	lock_take(&s->queue.lock);
	before = queue_length(&s->queue);
	*why = s->queue.closed ? WEIR_ECLOSED : WEIR_ENOMEM;
	if (!s->queue.closed)
		back = s->inlined ? n : queue_push_locked(&s->queue, ev, n);
	length = queue_length(&s->queue);
	lock_release(&s->queue.lock);
	for (int i = back; i < n; i++)
		ev[i]->state = WEIR_EVENT_RUNNING;
	if (length > before) {
		probe_enqueue(s->name, back, length);
		s->wake(s, before, length, parts);
	}
	return back;
}

int sink_drop(struct sink *s, struct weir_event **ev, int n, int64_t now_ns, struct book *book)
{
	struct weir_event *kept[WEIR_BATCH_MAX];
	int dropped = 0, m = 0;

	if (WEIR_LIKELY(!s->policy->drop))
		return 0;
	lock_take(&s->queue.lock);
	int mode = sink_mode(s);
	for (int i = 0; i < n; i++) {
		bool drop = mode != WEIR_ADMISSION_OFF && ev[i]->state != WEIR_EVENT_AGAIN &&
			    s->policy->drop(s->admission_state, &s->admission, now_ns,
				now_ns - ev[i]->queued_ns);
		s->asked[ev[i]->class_id].turned += drop;
		if (drop && mode != WEIR_ADMISSION_ENFORCE)
			book_add(&book->class_book[ev[i]->class_id].shadow_shed, 1);
		if (drop && mode == WEIR_ADMISSION_ENFORCE)
			ev[dropped++] = ev[i];
		else
			kept[m++] = ev[i];
	}
	lock_release(&s->queue.lock);
	memcpy(ev + dropped, kept, (size_t)m * sizeof(*ev));
	return dropped;
}

void sink_first_cost(struct sink *s, int64_t cost_ns)
{
	for (int c = 0; c < s->queue.n_classes; c++)
		atomic_store_explicit(&s->cost_ns[c], cost_ns, memory_order_relaxed);
	atomic_store_explicit(&s->mean_cost_ns, cost_ns, memory_order_relaxed);
}

void sink_tick(struct sink *s, const struct admission_sample *sample)
{
	lock_take(&s->queue.lock);
	s->policy->tick(s->admission_state, &s->admission, sample);
	int64_t least_ns = s->policy->least_left && sink_mode(s) == WEIR_ADMISSION_ENFORCE
			       ? s->policy->least_left(s->admission_state)
			       : 0;
	int64_t most_ns = s->policy->most_wait && sink_mode(s) == WEIR_ADMISSION_ENFORCE
			      ? s->policy->most_wait(s->admission_state)
			      : INT64_MAX;
	lock_release(&s->queue.lock);
	atomic_store_explicit(&s->least_left_ns, least_ns, memory_order_relaxed);
	atomic_store_explicit(&s->most_wait_ns, most_ns, memory_order_relaxed);
	atomic_store_explicit(&s->wait_ns,
	    sample->work_ns / (sample->threads > 0 ? sample->threads : 1), memory_order_relaxed);
}

void sink_explain(struct sink *s, char *buf, size_t size)
{
	buf[0] = '\0';
	if (!s->policy->explain)
		return;
	lock_take(&s->queue.lock);
	s->policy->explain(s->admission_state, &s->admission, buf, size);
	lock_release(&s->queue.lock);
}

void sink_set_admission(struct sink *s, const struct weir_admission_spec *spec, int64_t now_ns)
{
	lock_take(&s->queue.lock);
	s->admission.mode = spec->mode;
	s->admission.threshold = spec->threshold;
	s->admission.rate = spec->rate;
	s->admission.burst = spec->burst;
	s->admission.target_ns = spec->target_ns;
	s->admission.interval_ns = spec->interval_ns;
	s->policy->init(s->admission_state, &s->admission, now_ns);
	lock_release(&s->queue.lock);
}
