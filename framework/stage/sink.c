/* SPDX-License-Identifier: MIT */
/*
 * Admits events to a stage; see sink.h.
 *
 * The order of the checks: the deadlines, without a lock; the policies of fronts downstream (admit.h);
 * under the queue's lock and by class, highest first, the stage's own policy and the room in the queue.
 * Events are stamped before the lock is taken, so that only pointers are copied under it.
 */
#include "stage/sink.h"

#include <string.h>

#include "admission/fair.h"
#include "admission/room.h"
#include "base/probe.h"
#include "base/random.h"
#include "event/place.h"
#include "stage/admit.h"
#include "stage/push.h"

uint64_t sink_key(const struct sink *s, const struct weir_event *ev)
{
	switch (s->key.kind) {
	case KEY_CLASS:
		return (uint64_t)ev->class_id + 1;
	case KEY_STAGE:
		return s->stage_key(s->stage, ev);
	case KEY_FIELD:
		return field_key(&s->key.field, ev);
	default:
		return ev->key;
	}
}

/* What few stages need of an event that enters: its key, its partition and its expected work. */
static __attribute__((noinline)) void stamp_more(
    struct sink *s, struct weir_event *e, uint64_t *parts)
{
	if (s->key.kind > KEY_EVENT)
		e->key = sink_key(s, e);
	if (queue_parted(&s->queue))
		*parts |= 1ULL << queue_part(&s->queue, e->key);
	if (s->queue.shortest)
		sink_note_cost(s, e);
}

/* Move events past their deadline to the front, and set stage, state, time and key of the remaining
 * ones, which are added to `v`. Consecutive events of one class are added in one step. Returns the
 * number of events past their deadline. */
static int stamp_run(struct sink *s, struct weir_event **ev, int n, int64_t now_ns,
    struct verdict *v, uint64_t *parts)
{
	int n_expired = 0, run = 0;
	enum weir_event_state state = s->inlined ? WEIR_EVENT_RUNNING : WEIR_EVENT_QUEUED;
	bool more = s->key.kind > KEY_EVENT || queue_parted(&s->queue) || s->queue.shortest;
	uint8_t class_id = ev[0]->class_id;
	/* of the event before, which has been checked, and of those that are admitted */
	uint32_t before = ~event_place(ev[0]), place = 0;

	for (int i = 0; i < n; i++) {
		struct weir_event *e = ev[i];
		if (event_place(e) != before) {
			WEIR_ASSERT(e->state == WEIR_EVENT_NEW || e->state == WEIR_EVENT_RUNNING);
			WEIR_ASSERT(e->class_id < s->queue.n_classes);
			verdict_add(v, class_id, run);
			class_id = e->class_id;
			run = 0;
			before = event_place(e);
			place = event_place_of(s->id, class_id, state);
		}
		if (WEIR_UNLIKELY(e->deadline_ns <= now_ns)) {
			memmove(ev + n_expired + 1, ev + n_expired,
			    (size_t)(i - n_expired) * sizeof(*ev));
			ev[n_expired++] = e;
			continue;
		}
		e->queued_ns = now_ns;
		event_set_place(e, place);
		if (WEIR_UNLIKELY(more))
			stamp_more(s, e, parts);
		run++;
	}
	verdict_add(v, class_id, run);
	return n_expired;
}

/* Refuse ev[0..n), which are past their deadline. */
static WEIR_COLD void refuse_expired(const struct sink *s, struct weir_event **ev, int n,
    int64_t now_ns, struct book *book, int *reason)
{
	for (int i = 0; i < n; i++) {
		book_add(&book->class_book[ev[i]->class_id].offered, 1);
		reason[i] = WEIR_EDEADLINE;
		admit_mark(s, ev[i], WEIR_EDEADLINE, 1, -1, now_ns);
	}
}

/* Refuse all events without consulting a policy, because the stage is being drained. */
static WEIR_COLD void judge_draining(
    struct sink *s, struct weir_event **ev, int n, struct verdict *v) WEIR_REQUIRES(&s->queue.lock)
{
	for (int c = 0; c < s->queue.n_classes; c++)
		if (v->want[c] > 0)
			verdict_refuse_last(v, s, ev, n, c, v->want[c], WEIR_EDRAINING);
}

/* The current values that determine which share of the limit each class may fill. */
static struct room room_of(const struct sink *s)
{
	return (struct room){.limit = s->queue.own,
	    .n_classes = s->queue.n_classes,
	    .n_ranks = s->n_ranks,
	    .rank = s->rank,
	    .wait_ns = atomic_load_explicit(&s->wait_ns, memory_order_relaxed),
	    .slo_ns = s->slo_ns};
}

/* Number of events of the class that occupy a slot: queued, held, or in a handler that may hold
 * them. */
static uint32_t class_in_locked(const struct sink *s, int c) WEIR_REQUIRES(&s->queue.lock)
{
	return queue_class_length_locked(&s->queue, c) + (uint32_t)queue_kept(&s->queue, c);
}

/* Number of free slots for class `c`, at most `left`. Slots are occupied by queued and held
 * events, and by the events of higher classes admitted from this batch, but not by lower classes of
 * the batch, since they are judged later. */
static int64_t class_room(const struct sink *s, const struct verdict *v, int c, int64_t left)
    WEIR_REQUIRES(&s->queue.lock)
{
	uint32_t in[WEIR_CLASSES_MAX];
	struct room r = room_of(s);

	/* Fast path: if everything fits into the smallest share, the events need not be counted by
	 * class. */
	if (v->length + v->want[c] + queue_kept_all(&s->queue) <= room_share(&r, s->n_ranks - 1))
		return left;
	for (int k = 0; k < s->queue.n_classes; k++)
		in[k] = class_in_locked(s, k) + (uint32_t)(k < c ? v->want[k] : 0);
	int64_t room = room_left(&r, c, in);
	return room < left ? room : left;
}

/* Mark in `v` which of ev[0..n) are refused. Returns the number of admitted events. */
static int judge(struct sink *s, struct weir_event **ev, int n, int64_t now_ns, struct verdict *v)
    WEIR_REQUIRES(&s->queue.lock)
{
	int total = 0;
	int64_t left =
	    s->inlined && !queue_keeps(&s->queue) ? INT64_MAX : queue_room_locked(&s->queue);

	if (WEIR_UNLIKELY(s->queue.shut)) {
		judge_draining(s, ev, n, v);
		return 0;
	}
	v->length = queue_length(&s->queue);
	for (unsigned classes = v->classes; classes; classes &= classes - 1) {
		int c = __builtin_ctz(classes), charged = 0;
		if (v->want[c] == 0)
			continue;
		if (admit_applies(s, v, c))
			charged = admit_own(s, ev, n, c, now_ns, v);
		int64_t room = left > 0 && s->rank[c] > 0 ? class_room(s, v, c, left) : left;
		int over = v->want[c] > room ? v->want[c] - (int)room : 0;
		if (over > 0) {
			if (s->policy->give_back && charged > room)
				s->policy->give_back(s->admission_state, charged - (int)room);
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

/* Move the refused events of ev[0..n) to the front; the admitted ones follow. Both keep their
 * order. */
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

/* Push ev[0..n). If a lane cannot grow because memory is short, the remaining events are moved to
 * the front and treated as if the queue were full. Returns their number. */
static int push_run(struct sink *s, struct weir_event **ev, int n, int *reason, uint64_t *parts)
    WEIR_REQUIRES(&s->queue.lock)
{
	struct weir_event *kept[WEIR_BATCH_MAX];
	int pushed = sink_push(s, ev, n, parts), left = n - pushed;

	if (WEIR_LIKELY(left == 0))
		return 0;
	memcpy(kept, ev + pushed, (size_t)left * sizeof(*ev));
	memmove(ev + left, ev, (size_t)pushed * sizeof(*ev));
	memcpy(ev, kept, (size_t)left * sizeof(*ev));
	for (int i = 0; i < left; i++) {
		reason[i] = WEIR_EQUEUE;
		admit_mark(s, ev[i], WEIR_EQUEUE, 1, -1, ev[i]->queued_ns);
	}
	return left;
}

/* Let each admitted event occupy a slot, because the handler of the inline stage may hold the
 * event. */
static void reserve(struct sink *s, const struct verdict *v) WEIR_REQUIRES(&s->queue.lock)
{
	struct thread *t = thread_self();

	for (int c = 0; c < s->queue.n_classes; c++) {
		if (v->want[c] > 0)
			queue_taken(&s->queue, c, v->want[c]);
		t->reserved[c] = v->want[c];
	}
	t->unsettled = &s->queue;
}

/* Choose how many of ev[0..n), which have been admitted, the calling thread runs immediately: as
 * many as there is width for, or none if others wait already. The chosen events occupy slots until
 * the handler returns. Moves them to the end of `ev`, and returns their number. */
static int take_directly(struct sink *s, struct weir_event **ev, int n)
    WEIR_REQUIRES(&s->queue.lock)
{
	struct weir_event *first[WEIR_BATCH_MAX];
	struct thread *t = thread_self();
	bool waits = t->no_direct || queue_paused(&s->queue) || queue_length(&s->queue) > 0;
	int left = waits ? 0 : queue_width_left(&s->queue), run = n < left ? n : left;

	for (int i = 0; i < run; i++) {
		queue_taken(&s->queue, ev[i]->class_id, 1);
		hold_reserve(t, &s->queue, &ev[i], 1);
	}
	if (run > 0 && run < n) {
		memcpy(first, ev, (size_t)run * sizeof(*ev));
		memmove(ev, ev + run, (size_t)(n - run) * sizeof(*ev));
		memcpy(ev + n - run, first, (size_t)run * sizeof(*ev));
	}
	t->to_run = run;
	return run;
}

/* Judge ev[0..n) and push the admitted events. Moves the refused events to the front and returns
 * their number. */
static int admit_run(struct sink *s, struct weir_event **ev, int n, int64_t now_ns,
    struct verdict *v, int *reason, uint64_t parts)
{
	int refused = 0;
	uint32_t before, length;

	lock_take(&s->queue.lock);
	before = queue_length(&s->queue);
	if (judge(s, ev, n, now_ns, v) < n)
		refused = split_refused(ev, n, v, reason);
	if (!s->inlined && refused < n && !(s->splice && admit_to_cell(n - refused))) {
		int run = s->direct ? take_directly(s, ev + refused, n - refused) : 0;
		int left = push_run(s, ev + refused, n - refused - run, reason + refused, &parts);
		if (left > 0 && s->policy->give_back && sink_mode(s) != WEIR_ADMISSION_OFF)
			s->policy->give_back(s->admission_state, left);
		refused += left;
	}
	if (s->inlined && refused < n && queue_keeps(&s->queue))
		reserve(s, v);
	length = queue_length(&s->queue);
	lock_release(&s->queue.lock);
	if (length > before) {
		probe_enqueue(s->name, (int)(length - before), length);
		/* seq_cst, after the length has been raised; pairs with hold_wake */
		if (!s->direct || queue_width_left(&s->queue) > 0)
			s->wake(s, before, length, parts);
	}
	if (WEIR_UNLIKELY((v->all_fronts | v->judged) != 0))
		admit_settle(s, v);
	return refused;
}

/* Restore the former state and stage of the refused events, which return to the sender, and count
 * them as shed. */
static void return_refused(const struct sink *s, struct weir_event **ev, const int *reason, int n,
    int from, enum weir_event_state state, struct book *book)
{
	for (int i = 0; i < n; i++) {
		struct class_book *c = &book->class_book[ev[i]->class_id];
		probe_shed(s->name, ev[i]->class_id, reason[i]);
		event_set_place(
		    ev[i], event_place_of((unsigned)from, ev[i]->class_id, (unsigned)state));
		book_add(&c->refused, 1);
		book_add(&c->shed[weir_shed_index(reason[i])], 1);
	}
}

static WEIR_COLD void count_shadow(const struct verdict *v, struct book *book)
{
	for (unsigned classes = v->classes; classes; classes &= classes - 1) {
		int c = __builtin_ctz(classes);
		book_add(&book->class_book[c].shadow_shed, (uint64_t)v->shadow[c]);
	}
}

int sink_offer(struct sink *s, struct weir_event **ev, int n, int from, int64_t now_ns,
    struct book *book, int *reason)
{
	struct verdict v; /* v.why is undefined unless an event is refused */
	uint64_t parts = 0;
	/* all events of a run come from the same sender and have the same state */
	enum weir_event_state before = ev[0]->state;

	verdict_init(&v);
	int refused = stamp_run(s, ev, n, now_ns, &v, &parts);
	/* Count before the push, so that a reader may see a counted event that is not queued yet,
	 * but never a queued event that is not counted. */
	if (WEIR_UNLIKELY(refused > 0))
		refuse_expired(s, ev, refused, now_ns, book, reason);
	for (unsigned classes = v.classes; classes; classes &= classes - 1) {
		int c = __builtin_ctz(classes);
		book_add(&book->class_book[c].offered, (uint64_t)v.fresh[c]);
	}
	if (refused < n &&
	    !(s->inlined && s->policy == &admission_none && !queue_keeps(&s->queue))) {
		if (s->ahead)
			admit_upstream(s, ev + refused, n - refused, from, now_ns, &v);
		refused +=
		    admit_run(s, ev + refused, n - refused, now_ns, &v, reason + refused, parts);
	}
	if (WEIR_UNLIKELY(v.shadows))
		count_shadow(&v, book);
	if (WEIR_UNLIKELY(refused > 0))
		return_refused(s, ev, reason, refused, from, before, book);
	probe_admit(s->name, n, refused, from);
	return n - refused;
}

int sink_take_back(struct sink *s, struct weir_event **ev, int n, int64_t now_ns, int *why)
{
	uint64_t parts = 0;
	uint32_t before, length;
	int back = 0;

	for (int i = 0; i < n; i++) {
		ev[i]->queued_ns = now_ns;
		event_set_state(ev[i], WEIR_EVENT_AGAIN);
		if (queue_parted(&s->queue))
			parts |= 1ULL << queue_part(&s->queue, ev[i]->key);
		if (WEIR_UNLIKELY(s->queue.shortest))
			sink_note_cost(s, ev[i]);
	}
	lock_take(&s->queue.lock);
	before = queue_length(&s->queue);
	*why = s->queue.closed ? WEIR_ECLOSED : WEIR_ENOMEM;
	if (!s->queue.closed)
		back = s->inlined ? n : sink_push(s, ev, n, &parts);
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
		s->decided[ev[i]->class_id].refused += drop;
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

/* How full the queue is for the most restricted classes (room_full). */
static double fullness_locked(const struct sink *s) WEIR_REQUIRES(&s->queue.lock)
{
	uint32_t in[WEIR_CLASSES_MAX];
	struct room r = room_of(s);

	for (int c = 0; c < s->queue.n_classes; c++)
		in[c] = class_in_locked(s, c);
	return room_full(&r, in);
}

/* Start tracking users, because an event of a user has arrived while all threads were busy. If out
 * of memory, users are served in proportion to their demand, and the next tick tries again. */
static void begin_users(struct sink *s)
{
	struct fair *fair = fair_new(random_u64());

	lock_take(&s->queue.lock);
	s->fair = fair;
	lock_release(&s->queue.lock);
}

/* Create, age or grow the user table. Tables are allocated and freed outside the lock. */
static void tick_users(struct sink *s, int64_t now_ns)
{
	struct fair_table *left = NULL;
	uint32_t slots = 0;

	lock_take(&s->queue.lock);
	bool begins = s->fair_wanted && !s->fair;
	if (s->fair) {
		fair_tick(s->fair, now_ns);
		left = fair_left(s->fair);
		slots = fair_wants(s->fair, now_ns);
	}
	lock_release(&s->queue.lock);
	fair_table_free(left);
	if (begins)
		begin_users(s);
	struct fair_table *table = slots ? fair_table_new(slots) : NULL;
	if (!table)
		return;
	lock_take(&s->queue.lock);
	fair_renew(s->fair, table, now_ns);
	lock_release(&s->queue.lock);
}

void sink_tick(struct sink *s, const struct admission_sample *sample)
{
	lock_take(&s->queue.lock);
	double full = s->n_ranks > 1 ? fullness_locked(s) : 0;
	s->policy->tick(s->admission_state, &s->admission, sample);
	int64_t least_ns = s->policy->least_left && sink_mode(s) == WEIR_ADMISSION_ENFORCE
			       ? s->policy->least_left(s->admission_state)
			       : 0;
	int64_t most_ns = s->policy->most_wait && sink_mode(s) == WEIR_ADMISSION_ENFORCE
			      ? s->policy->most_wait(s->admission_state)
			      : INT64_MAX;
	lock_release(&s->queue.lock);
	atomic_store_explicit(&s->full, full, memory_order_relaxed);
	atomic_store_explicit(&s->least_left_ns, least_ns, memory_order_relaxed);
	atomic_store_explicit(&s->most_wait_ns, most_ns, memory_order_relaxed);
	atomic_store_explicit(&s->wait_ns,
	    (int64_t)((double)sample->work_ns / (sample->threads > 0 ? sample->threads : 1)),
	    memory_order_relaxed);
	if (s->policy->fair)
		tick_users(s, sample->now_ns);
}
