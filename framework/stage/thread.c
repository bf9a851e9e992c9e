/* SPDX-License-Identifier: MIT */
/* Sends events from a thread's outboxes to sinks and mailboxes; see thread.h. graph/threads.c
 * registers threads with a graph. */
#include "stage/thread.h"

#include "base/clock.h"
#include "event/drain_signal.h"
#include "event/local.h"
#include "event/op.h"
#include "event/place.h"
#include "stage/stage.h"

void thread_touch(int64_t now_ns)
{
	struct thread *t = thread_self();

	t->now_ns = now_ns;
	t->batch++;
}

/* Move at most WEIR_BATCH_MAX events from the outbox to t->offer, and count them by class. They have
 * one state: they are all new (made by the sender), or none is. Returns their number. */
static int unload(struct thread *t, struct outbox *o, int *per_class)
{
	struct weir_event *ev = o->head;
	uint8_t state = ev->state, class_id = ev->class_id;
	uint32_t place = event_place(ev);
	int n = 0, counted = 0;

	for (; ev && n < WEIR_BATCH_MAX; ev = ev->next) {
		if (WEIR_UNLIKELY(event_place(ev) != place)) {
			if (ev->state != state)
				break;
			per_class[class_id] += n - counted;
			counted = n;
			class_id = ev->class_id;
			place = event_place(ev);
		}
		t->offer[n++] = ev;
	}
	per_class[class_id] += n - counted;
	o->head = ev;
	if (!ev)
		o->tail = &o->head;
	o->n -= n;
	return n;
}

/* Offer events for which no local can be allocated, and count them in the stage's common book. */
static WEIR_COLD int offer_uncounted(
    struct thread *t, struct sink *s, struct weir_event **ev, int n, int from, int *reason)
{
	struct book book = {0};

	t->no_direct = true; /* without a local the thread can run no handler of the stage */
	int taken = sink_offer(s, ev, n, from, t->now_ns, &book, reason);
	t->no_direct = false;

	book_add_common(t, s->id, &book);
	return taken;
}

/* Offer ev[0..n) from stage `from` to `s`. Returns the number of admitted events, or -1 if nothing
 * was offered because `s` is an inline stage and its local cannot be allocated. */
static inline int offer(
    struct thread *t, struct sink *s, struct weir_event **ev, int n, int from, int *reason)
{
	struct local *to = local_find(t, s->id);

	if (WEIR_LIKELY(to != NULL)) {
		int taken = sink_offer(s, ev, n, from, t->now_ns, &to->book, reason);
		book_changed(&to->book);
		return taken;
	}
	return s->inlined ? -1 : offer_uncounted(t, s, ev, n, from, reason);
}

/* Run those events of ev[0..n) that the calling thread has to run. `taken` is the number of
 * admitted events, which are at the end. */
static void run_taken(struct thread *t, struct sink *s, struct weir_event **ev, int n, int taken)
{
	int run = s->inlined ? taken : s->direct && taken > 0 ? t->to_run : 0;

	if (run == 0)
		return;
	/* the queued events belong to others; see abandon in graph/threads.c */
	memset(ev + n - taken, 0, (size_t)(taken - run) * sizeof(*ev));
	s->run(s, ev + n - run, run);
	if (s->direct) /* events that the handler has not held leave width for others */
		hold_wake(t, s->stage);
}

/* Run a batch from the queue of an inline stage with a width. Returns whether there may be more. */
static bool flush_take(struct thread *t, struct outbox *o)
{
	struct sink *s = o->sink;
	struct queue_take take = {.n_ranks = 1,
	    .max = atomic_load_explicit(&s->cohort_max, memory_order_relaxed),
	    .sharers = 1};

	thread_touch(clock_now_ns());
	take.now_ns = t->now_ns;
	int n = queue_pop(&s->queue, &take, t->offer);
	if (n == 0)
		return false;
	hold_reserve(t, &s->queue, t->offer, n);
	s->run(s, t->offer, n);
	return queue_ready(&s->queue) > 0;
}

/* Count events that the sink has admitted, per_class[c] of class c: they have left the sender.
 * `fresh`: the sender has made them. */
static void count_sent(struct outbox *o, bool fresh, const int *per_class)
{
	for (int c = 0; c < o->sink->queue.n_classes; c++) {
		struct class_book *book = &o->from->book.class_book[c];
		if (per_class[c])
			book_add(WEIR_UNLIKELY(fresh) ? &book->departed : &book->completed,
			    (uint64_t)per_class[c]);
	}
}

/* Finish t->offer[0..n), new events that the sink has refused. */
static WEIR_COLD void refuse_fresh(
    struct thread *t, const struct outbox *o, int n, const int *reason)
{
	for (int i = 0; i < n; i++) {
		t->refused_by = o->sink->id;
		weir_event_finish(&t->offer[i], reason[i]);
	}
	t->refused_by = WEIR_NO_STAGE;
}

/* Move events to the cell of the thread's core, if it may have them. Returns whether none are
 * left. */
static inline bool flush_to_cell(struct thread *t, struct outbox *o)
{
	if (t->core && o->sink->splice)
		while (o->head && o->sink->splice(t, o))
			;
	return !o->head;
}

/* Offer the events that flush_to_cell has left; there are some. */
static void flush_to_sink(struct thread *t, struct outbox *o)
{
	struct local *from = o->from;
	int reason[WEIR_BATCH_MAX];

	do {
		int per_class[WEIR_CLASSES_MAX] = {0};
		int n = unload(t, o, per_class);
		bool fresh = t->offer[0]->state == WEIR_EVENT_NEW;
		for (int c = 0; c < o->sink->queue.n_classes; c++)
			if (per_class[c])
				book_add(&o->tried[c], (uint64_t)per_class[c]);
		if (WEIR_UNLIKELY(fresh))
			book_add(&o->made, (uint64_t)n);
		t->celled = 0;
		int taken = offer(t, o->sink, t->offer, n, from->stage->id, reason);
		t->cell_room = 0;               /* other offers (weir_offer) are queued */
		if (WEIR_UNLIKELY(taken < 0)) { /* the local could not be allocated */
			weir_event_finish_run(t->offer, n, WEIR_ENOMEM);
			continue;
		}
		for (int i = 0; i < n - taken; i++)
			per_class[t->offer[i]->class_id]--;
		count_sent(o, fresh, per_class);
		book_add(&from->book.running, (uint64_t)-taken);
		book_add(&o->events, (uint64_t)taken);
		book_changed(&from->book);
		/* only after the counters are updated, since a handler may end the thread */
		run_taken(t, o->sink, t->offer, n, taken);
		if (t->celled > 0)
			o->sink->put(t, o->sink, t->offer + n - taken, taken);
		if (WEIR_UNLIKELY(taken < n) && fresh)
			refuse_fresh(t, o, n - taken, reason);
		else if (WEIR_UNLIKELY(taken < n))
			stage_refused(from->stage, o->outlet, t->offer, n - taken, reason);
	} while (!flush_to_cell(t, o));
}

static inline void flush_out(struct thread *t, struct outbox *o)
{
	if (WEIR_UNLIKELY(op_checks()))
		op_strip(o);
	if (!flush_to_cell(t, o))
		flush_to_sink(t, o);
}

/* Return requeued events to the queue of their own stage, or finish them if the queue is closed or
 * memory is short. */
static void flush_again(struct thread *t, struct outbox *o)
{
	struct local *l = o->from;
	struct sink *s = o->sink;

	t->slice.again_ns = t->now_ns;
	if (WEIR_UNLIKELY(op_checks()))
		op_strip(o);
	while (o->head) {
		int per_class[WEIR_CLASSES_MAX] = {0}, why;
		if (s->requeue && s->requeue(t, o))
			break;
		int n = unload(t, o, per_class);
		/* before they are put back, so that a profile never shows more restarts */
		book_add(&l->book.put_back, (uint64_t)n);
		int back = sink_take_back(s, t->offer, n, t->now_ns, &why);
		if (WEIR_UNLIKELY(back < n))
			book_add(&l->book.dropped, (uint64_t)(n - back));
		for (int i = back; i < n; i++)
			weir_event_finish(&t->offer[i], why);
		if (back > 0)
			book_add(&l->book.running, (uint64_t)-back);
		book_changed(&l->book);
		if (s->inlined && back > 0)
			s->run(s, t->offer, back);
	}
	if (l->again_holds)
		hold_requeued(l);
}

static void flush_to_mailbox(struct outbox *o)
{
	struct weir_event *head = o->head, **tail = o->tail;

	o->head = NULL;
	o->tail = &o->head;
	o->n = 0;
	mailbox_put(o->mailbox, head, tail);
}

WEIR_HOT bool thread_flush(void)
{
	struct thread *t = thread_self();
	bool any = t->dirty != NULL;

	if (any)
		moves_begin(t);
	while (t->dirty) {
		struct outbox *o = t->dirty;
		bool more = false;
		if (o->outlet == OUTLET_AGAIN)
			flush_again(t, o);
		else if (o->outlet == OUTLET_TAKE)
			more = flush_take(t, o);
		else if (o->sink)
			flush_out(t, o);
		else
			flush_to_mailbox(o);
		/* Remove the outbox from the list only now, so that no events are lost if the
		 * thread exits in an inline stage. */
		t->dirty = o->next;
		if (!t->dirty)
			t->dirty_tail = &t->dirty;
		o->dirty = false;
		if (more)
			outbox_mark(t, o);
	}
	if (atomic_load_explicit(&t->moves, memory_order_relaxed) & 1)
		moves_end(t);
	drain_signal_wake(t->drain);
	return any;
}

void thread_settle_late(struct sink *s)
{
	struct thread *t = thread_self();
	struct local *l = t->local[s->id];
	int64_t behind_ns = 0;
	int n = t->late.n;

	for (int c = 0; t->behind && c < s->queue.n_classes; c++) {
		behind_ns += t->behind_ns[c];
		book_add(&l->book.class_book[c].behind_ns, (uint64_t)t->behind_ns[c]);
		t->behind_ns[c] = 0;
	}
	t->behind = false;
	if (n > 0)
		service_record(l, &t->late, s->queue.n_classes, behind_ns);
	t->late.n = 0;
	if (WEIR_UNLIKELY(n > 0 && s->policy->tick && !sink_mean_cost_ns(s)))
		sink_first_cost(s, (t->late.took_ns + behind_ns) / n);
	if (n > 0 || behind_ns > 0)
		book_changed(&l->book);
}

void thread_forget_behind(void)
{
	struct thread *t = thread_self();

	if (WEIR_UNLIKELY(t->behind))
		memset(t->behind_ns, 0, sizeof(t->behind_ns));
	t->behind = false;
}

void weir_thread_flush(void)
{
	thread_touch(clock_now_ns());
	thread_flush();
}

/* Offer at most WEIR_BATCH_MAX events. Moves refused events to the front of ev and returns their
 * number. */
static int offer_chunk(struct weir_stage *to, struct weir_event **ev, int n, int *reason)
{
	struct thread *t = thread_self();
	int why[WEIR_BATCH_MAX];
	int taken = offer(t, &to->sink, ev, n, WEIR_NO_STAGE, why);

	if (WEIR_UNLIKELY(taken < 0)) { /* nothing was offered: treat the queue as full */
		if (reason)
			*reason = WEIR_EQUEUE;
		return n;
	}
	if (taken < n && reason)
		*reason = why[0];
	run_taken(t, &to->sink, ev, n, taken);
	for (int i = n - taken; i < n; i++)
		ev[i] = NULL;
	return n - taken;
}

int weir_offer(struct weir_stage *to, struct weir_event **ev, int n, int *reason)
{
	int refused = 0;

	WEIR_ASSERT(n >= 1 && thread_self()->run_n == 0); /* a handler must emit instead */
	thread_touch(clock_now_ns());
	moves_begin(thread_self());
	for (int at = 0; at < n; at += WEIR_BATCH_MAX) {
		int chunk = n - at < WEIR_BATCH_MAX ? n - at : WEIR_BATCH_MAX;
		int left = offer_chunk(to, ev + at, chunk, reason);
		for (int i = 0; i < left; i++) {
			struct weir_event *back = ev[at + i];
			ev[at + i] = NULL;
			ev[refused++] = back;
		}
	}
	thread_flush();
	return n - refused;
}

bool weir_thread_running(const char **stage, const char **event_type)
{
	struct thread *t = thread_current;
	const struct weir_stage *st = t ? atomic_load(&t->running) : NULL;

	if (!st)
		return false;
	const struct weir_event_type *type = atomic_load(&t->running_type);
	*stage = st->name;
	*event_type = type ? type->name : "";
	return true;
}

bool weir_thread_event(char *buf, size_t size)
{
	struct thread *t = thread_current;
	const struct weir_event *ev = NULL;

	buf[0] = '\0';
	for (int i = 0; t && atomic_load(&t->running) && i < t->run_n && !ev; i++)
		ev = t->run_ev[i];
	if (ev && ev->type && ev->type->describe)
		ev->type->describe(ev, buf, size);
	return buf[0] != '\0';
}
