/* SPDX-License-Identifier: MIT */
/*
 * The one door of a stage; see sink.h.
 *
 * Order of the tests: deadline (no lock), then per class, highest first, the policy's verdict and
 * the queue's room under the queue's lock, so that of a mixed run the high classes get the last
 * places. Events are stamped before the lock is taken: under it only pointers are copied.
 */
#include "flow/sink.h"

#include <string.h>

/* The verdict on one run. */
struct verdict {
	int offered[WEIR_CLASSES_MAX];
	int want[WEIR_CLASSES_MAX]; /* offered and not expired */
	int shadow[WEIR_CLASSES_MAX];
	int64_t admitted_ns; /* work of what was admitted so far and is not queued yet */
	bool refuses;
	int why[WEIR_BATCH_MAX]; /* by place in the run: 0, or the reason; only when it refuses */
};

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

/* Event `at` of a run of `n` may not enter. */
static void refuse(struct verdict *v, int n, int at, int reason)
{
	if (!v->refuses)
		memset(v->why, 0, (size_t)n * sizeof(v->why[0]));
	v->refuses = true;
	v->why[at] = reason;
}

/* Refuse the last `many` of a class that are not refused yet. */
static void refuse_last(
    struct verdict *v, struct weir_event **ev, int n, int class_id, int many, int reason)
{
	for (int i = n - 1; many > 0 && i >= 0; i--) {
		if (ev[i]->class_id != class_id || (v->refuses && v->why[i]))
			continue;
		refuse(v, n, i, reason);
		many--;
	}
}

/* A number per user, even over 16 bits; an event of nobody is a user of its own. It changes every 73
 * minutes (2^42 ns), so that nobody has the worse number for good (DAGOR changes it every hour). */
static uint16_t user_of(const struct weir_event *ev)
{
	uint64_t id = ev->session ? ev->session + ((uint64_t)ev->queued_ns >> 42 << 32)
				  : (uint64_t)(uintptr_t)ev ^ (uint64_t)ev->arrival_ns;

	id ^= id >> 32;
	return (uint16_t)(id * 0x9e3779b97f4a7c15ULL >> 48); /* Knuth, TAOCP 3, 6.4: golden ratio */
}

static int64_t cost_of(const struct sink *s, int class_id)
{
	return atomic_load_explicit(&s->cost_ns[class_id], memory_order_relaxed);
}

/* Work that threads have taken in batches and not begun: it waits, too. */
static int64_t begun_ns(const struct sink *s)
{
	struct admission_view view = {.threads = 1};
	int64_t running = atomic_load_explicit(&s->running, memory_order_relaxed);

	if (s->look)
		s->look(s, &view);
	return running > view.threads
		   ? (running - view.threads) *
			 atomic_load_explicit(&s->mean_cost_ns, memory_order_relaxed)
		   : 0;
}

int64_t sink_work_ns_locked(const struct sink *s)
{
	int64_t work_ns = 0;

	for (int c = 0; c < s->queue.n_classes; c++)
		work_ns += queue_class_length_locked(&s->queue, c) * cost_of(s, c);
	return work_ns + begun_ns(s);
}

/* What a policy may look at. Cheap policies learn nothing and see nothing but lengths. */
static void fill_view(struct sink *s, uint32_t length, int64_t admitted_ns, int64_t now_ns,
    struct admission_view *view) WEIR_REQUIRES(&s->queue.lock)
{
	*view = (struct admission_view){.now_ns = now_ns,
	    .length = length,
	    .limit = s->queue.limit,
	    .n_classes = s->queue.n_classes,
	    .threads = 1,
	    .slo_ns = s->slo_ns};
	if (!s->policy->tick)
		return;
	view->running = atomic_load_explicit(&s->running, memory_order_relaxed);
	view->work_ns = sink_work_ns_locked(s) + admitted_ns;
	view->cost_ns = atomic_load_explicit(&s->mean_cost_ns, memory_order_relaxed);
	if (s->look)
		s->look(s, view);
}

/* One class of a run, as the policy is asked about it. */
struct question {
	int n;
	int at[WEIR_BATCH_MAX]; /* places in the run */
	uint16_t user[WEIR_BATCH_MAX];
	bool refused[WEIR_BATCH_MAX];
};

static void collect(
    const struct sink *s, struct weir_event **ev, int n, int class_id, struct question *q)
{
	q->n = 0;
	for (int i = 0; i < n; i++) {
		if (ev[i]->class_id != class_id)
			continue;
		q->at[q->n] = i;
		q->refused[q->n] = false;
		if (s->policy->tick)
			q->user[q->n] = user_of(ev[i]);
		q->n++;
	}
}

/* Which of the class may enter? What makes no sense is not obeyed but counted. Returns how many;
 * *flagged: those that may not are marked in q->refused, else they are the last. */
static int answer(struct sink *s, int class_id, struct question *q,
    const struct admission_view *view, int *reason, bool *flagged) WEIR_REQUIRES(&s->queue.lock)
{
	int m = s->policy->admit(
	    s->admission_state, &s->admission, view, class_id, q->n, q->refused, reason);
	int marked = 0;

	for (int i = 0; i < q->n; i++)
		marked += q->refused[i];
	*flagged = marked == q->n - m;
	if (m < 0 || m > q->n || (marked && !*flagged) ||
	    (m < q->n && weir_shed_index(*reason) < 0)) {
		atomic_fetch_add_explicit(&s->nonsense, 1, memory_order_relaxed);
		*flagged = false;
		return q->n;
	}
	return m;
}

static int ask_policy(struct sink *s, struct weir_event **ev, int n, int class_id, uint32_t length,
    int64_t now_ns, struct verdict *v, int *charged) WEIR_REQUIRES(&s->queue.lock)
{
	struct admission_view view;
	struct question q;
	int reason = 0;
	bool flagged;

	collect(s, ev, n, class_id, &q);
	fill_view(s, length, v->admitted_ns, now_ns, &view);
	if (s->policy->tick)
		view.user = q.user;
	int m = answer(s, class_id, &q, &view, &reason, &flagged);
	*charged = m;
	if (s->admission.mode != WEIR_ADMISSION_ENFORCE) {
		v->shadow[class_id] = q.n - m;
		return q.n;
	}
	for (int i = 0; flagged && i < q.n; i++)
		if (q.refused[i])
			refuse(v, n, q.at[i], reason);
	if (!flagged)
		refuse_last(v, ev, n, class_id, q.n - m, reason);
	return m;
}

/* Say in `v` which of ev[0..n) may not enter. Returns how many may. The queue's lock is held. */
static int judge(struct sink *s, struct weir_event **ev, int n, int64_t now_ns, struct verdict *v)
    WEIR_REQUIRES(&s->queue.lock)
{
	int total = 0;
	uint32_t length = queue_length(&s->queue);
	int64_t left = s->inlined ? INT64_MAX : queue_room_locked(&s->queue);
	bool asks = s->policy != &admission_none && s->admission.mode != WEIR_ADMISSION_OFF;

	for (int c = 0; c < s->queue.n_classes; c++) {
		int m = v->want[c], charged = 0;
		if (m == 0)
			continue;
		if (asks)
			m = ask_policy(s, ev, n, c, length, now_ns, v, &charged);
		if (m > left) {
			if (s->policy->give_back && charged > left)
				s->policy->give_back(s->admission_state, charged - (int)left);
			refuse_last(v, ev, n, c, m - (int)left,
			    s->queue.closed ? WEIR_ESTOPPING : WEIR_EQUEUE);
			m = (int)left;
		}
		left -= m;
		length += (uint32_t)m;
		v->admitted_ns += m * cost_of(s, c);
		total += m;
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

	lock_take(&s->queue.lock);
	before = queue_length(&s->queue);
	if (judge(s, ev, n, now_ns, v) < n)
		refused = split_refused(ev, n, v, reason);
	if (!s->inlined && refused < n) {
		int left = push_run(s, ev + refused, n - refused, reason + refused);
		if (left > 0 && s->policy->give_back && s->admission.mode != WEIR_ADMISSION_OFF)
			s->policy->give_back(s->admission_state, left);
		refused += left;
	}
	length = queue_length(&s->queue);
	lock_release(&s->queue.lock);
	if (length > before)
		s->wake(s, before, length, parts);
	return refused;
}

/* The refused are the sender's again, as they were, and counted. */
static void return_refused(struct weir_event **ev, const int *reason, int n, int from,
    enum weir_event_state state, struct book *book)
{
	for (int i = 0; i < n; i++) {
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

	memset(&v, 0, offsetof(struct verdict, why));
	count_classes(ev, n, v.offered);
	int refused = stamp_run(s, ev, n, now_ns, &parts);
	memcpy(v.want, v.offered, sizeof(v.want));
	for (int i = 0; i < refused; i++) {
		reason[i] = WEIR_EDEADLINE;
		v.want[ev[i]->class_id]--;
	}
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
		return_refused(ev, reason, refused, from, before, book);
	return n - refused;
}

int sink_drop(struct sink *s, struct weir_event **ev, int n, int64_t now_ns, struct book *book)
{
	struct weir_event *kept[WEIR_BATCH_MAX];
	int dropped = 0, m = 0;

	if (WEIR_LIKELY(!s->policy->drop))
		return 0;
	lock_take(&s->queue.lock);
	enum weir_admission_mode mode = (enum weir_admission_mode)s->admission.mode;
	for (int i = 0; i < n; i++) {
		bool drop =
		    mode != WEIR_ADMISSION_OFF && s->policy->drop(s->admission_state, &s->admission,
						      now_ns, now_ns - ev[i]->queued_ns);
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

void sink_tick(struct sink *s, const struct admission_sample *sample)
{
	lock_take(&s->queue.lock);
	s->policy->tick(s->admission_state, &s->admission, sample);
	lock_release(&s->queue.lock);
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
