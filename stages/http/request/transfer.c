/* SPDX-License-Identifier: MIT */
/*
 * Implements the operations of both sides of a transfer under its lock; see transfer.h.
 *
 * Waking is always the last step: once the waiter is removed and the lock released, another thread
 * may finish the event at any moment. From then on only the I/O thread, which wakes the waiter, may
 * touch the transfer.
 */
#include "http/request/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "http/request/metrics.h"
#include "http/request/pool.h"
#include "http/request/waker.h"

static void signal_never_ends(struct weir_event *ev, int status)
{
	(void)ev;
	(void)status;
	WEIR_ASSERT(!"a signal is only sent as mail and never enters the graph");
}

const struct weir_event_type transfer_signal_type = {
    .name = "http.signal", .size = sizeof(struct transfer), .finish = signal_never_ends};

/* ---- memory ---- */

struct transfer *transfer_new(struct http_req *r, const struct pool *p)
{
	struct transfer *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	pthread_mutex_init(&t->lock, NULL);
	weir_event_init(&t->signal, &transfer_signal_type, 0);
	t->r = r;
	t->meter = p->meter;
	t->budget = p->budget;
	t->length = -1;
	return t;
}

/* Track the memory of all transfers of a server, and its peak. */
static void note_bytes(struct part_meter *m, int64_t bytes)
{
	if (!m)
		return;
	int64_t now = atomic_fetch_add_explicit(&m->bytes, bytes, memory_order_relaxed) + bytes;
	int64_t peak = atomic_load_explicit(&m->peak, memory_order_relaxed);

	weir_count(m->stage, SERVER_PART_BYTES, bytes);
	while (now > peak)
		if (atomic_compare_exchange_weak_explicit(
			&m->peak, &peak, now, memory_order_relaxed, memory_order_relaxed)) {
			weir_count(m->stage, SERVER_PART_PEAK, now - peak);
			return;
		}
}

static void ring_fini(struct transfer *t, struct ring *r)
{
	if (!r->mem)
		return;
	free(r->mem);
	r->mem = NULL;
	atomic_fetch_add_explicit(t->budget, (int64_t)r->size, memory_order_relaxed);
	note_bytes(t->meter, -(int64_t)r->size);
	*r = (struct ring){0};
}

int transfer_ring(struct transfer *t, struct ring *r, size_t size)
{
	int64_t bytes = (int64_t)size;

	if (atomic_fetch_sub_explicit(t->budget, bytes, memory_order_relaxed) < bytes) {
		atomic_fetch_add_explicit(t->budget, bytes, memory_order_relaxed);
		return WEIR_EPRESSURE;
	}
	r->mem = malloc(size);
	if (!r->mem) {
		atomic_fetch_add_explicit(t->budget, bytes, memory_order_relaxed);
		return WEIR_ENOMEM;
	}
	r->size = size;
	note_bytes(t->meter, bytes);
	return 0;
}

int transfer_open_body(struct transfer *t, size_t size)
{
	int rc = transfer_ring(t, &t->in, size);

	if (rc == 0)
		t->in_state = TRANSFER_OPEN;
	return rc;
}

static void tail_fini(struct transfer *t)
{
	if (!t->tail)
		return;
	free(t->tail);
	atomic_fetch_add_explicit(t->budget, (int64_t)t->n_tail, memory_order_relaxed);
	note_bytes(t->meter, -(int64_t)t->n_tail);
	t->tail = NULL;
	t->tail_at = t->n_tail = 0;
}

static void transfer_free(struct transfer *t)
{
	pthread_mutex_destroy(&t->lock);
	free(t);
}

void transfer_drop(struct transfer *t)
{
	ring_fini(t, &t->in);
	ring_fini(t, &t->out);
	free(t->frame.text);
	free(t->trailers);
	t->frame.text = t->trailers = NULL;
	tail_fini(t);
	pthread_mutex_lock(&t->lock);
	WEIR_ASSERT(!t->waiter);
	t->orphan = t->signalled;
	bool now = !t->orphan;
	pthread_mutex_unlock(&t->lock);
	if (now)
		transfer_free(t);
}

bool transfer_arrived(struct transfer *t, bool *begun)
{
	pthread_mutex_lock(&t->lock);
	t->signalled = false;
	bool orphan = t->orphan;
	*begun = t->out_state != TRANSFER_SILENT;
	pthread_mutex_unlock(&t->lock);
	if (orphan)
		transfer_free(t);
	return !orphan;
}

/* ---- waking ---- */

bool transfer_due_locked(const struct transfer *t, unsigned what)
{
	if ((what & WEIR_HTTP_BODY) && (t->in_state != TRANSFER_OPEN || ring_used(&t->in) > 0))
		return true;
	/* wait until half of the ring is free, so that a stage is not called for every few bytes
	 * that are sent */
	return (what & WEIR_HTTP_ROOM) &&
	       (t->gone || (!transfer_has_tail(t) && ring_used(&t->out) <= t->out.size / 2));
}

/* Release the lock, and requeue the event if what its stage waits for is available. */
static void unlock_and_wake(struct transfer *t)
{
	struct weir_stage *st = NULL;
	struct weir_event *ev = &t->r->pub.ev;

	if (t->waiter && transfer_due_locked(t, t->waits_for)) {
		st = t->waiter;
		t->waiter = NULL;
	}
	if (t->awaits && transfer_due_locked(t, t->awaits)) {
		t->awaits = 0;
		waker_wake(atomic_load(&t->r->waker));
	}
	pthread_mutex_unlock(&t->lock);
	if (st)
		weir_requeue(st, &ev);
}

/* ---- body, the I/O thread ---- */

size_t transfer_room(struct transfer *t, char **room)
{
	pthread_mutex_lock(&t->lock);
	size_t n = t->in_state == TRANSFER_OPEN ? ring_space(&t->in, room) : 0;
	/* `starved` stays set until the signal is sent, even if there is space now: the caller
	 * might not use that space */
	t->starved |= n == 0;
	pthread_mutex_unlock(&t->lock);
	return n;
}

void transfer_put(struct transfer *t, size_t n)
{
	pthread_mutex_lock(&t->lock);
	WEIR_ASSERT(n <= ring_free(&t->in));
	t->in.put += n;
	unlock_and_wake(t);
}

size_t transfer_copy(struct transfer *t, struct weir_slice data)
{
	size_t done = 0, n;
	char *room;

	while (done < data.n && (n = transfer_room(t, &room)) > 0) {
		n = n < data.n - done ? n : data.n - done;
		memcpy(room, data.p + done, n);
		transfer_put(t, n);
		done += n;
	}
	return done;
}

void transfer_end(struct transfer *t)
{
	pthread_mutex_lock(&t->lock);
	if (t->in_state == TRANSFER_OPEN)
		t->in_state = TRANSFER_WHOLE;
	unlock_and_wake(t);
}

static void tear_locked(struct transfer *t, int error, int status, const char *limit)
{
	if (t->in_state != TRANSFER_OPEN)
		return;
	t->in_state = TRANSFER_TORN;
	t->in_error = (int16_t)error;
	t->in_status = (uint16_t)status;
	t->in_limit = limit;
	if (t->meter)
		weir_count(t->meter->stage, SERVER_PART_TORN, 1);
}

void transfer_tear(struct transfer *t, int error, int status, const char *limit)
{
	pthread_mutex_lock(&t->lock);
	tear_locked(t, error, status, limit);
	unlock_and_wake(t);
}

bool transfer_asked(struct transfer *t)
{
	pthread_mutex_lock(&t->lock);
	bool asked = t->asked;
	pthread_mutex_unlock(&t->lock);
	return asked;
}

/* ---- response, the I/O thread ---- */

enum transfer_out transfer_look(struct transfer *t, struct weir_slice seg[2])
{
	pthread_mutex_lock(&t->lock);
	enum transfer_out state = t->out_state;
	seg[0] = ring_first(&t->out);
	seg[1] = ring_second(&t->out);
	t->idle = seg[0].n == 0;
	pthread_mutex_unlock(&t->lock);
	return state;
}

/* Move bytes of the tail to the ring. */
static void refill_locked(struct transfer *t)
{
	char *room;
	size_t n;

	while (transfer_has_tail(t) && (n = ring_space(&t->out, &room)) > 0) {
		n = n < t->n_tail - t->tail_at ? n : t->n_tail - t->tail_at;
		memcpy(room, t->tail + t->tail_at, n);
		t->out.put += n;
		t->tail_at += n;
	}
	if (t->tail && !transfer_has_tail(t))
		tail_fini(t);
}

void transfer_sent(struct transfer *t, size_t n)
{
	pthread_mutex_lock(&t->lock);
	WEIR_ASSERT(n <= ring_used(&t->out));
	t->out.taken += n;
	refill_locked(t);
	unlock_and_wake(t);
}

void transfer_gone(struct transfer *t, int error)
{
	pthread_mutex_lock(&t->lock);
	tear_locked(t, error, error == WEIR_ECLOSED ? 503 : 400, NULL);
	t->gone = true;
	unlock_and_wake(t);
}

/* ---- the owner of the event ---- */

void transfer_keep_locked(struct transfer *t, struct weir_slice data)
{
	char *more = realloc(t->tail, t->n_tail + data.n);

	t->tail_lost |= !more;
	if (!more)
		return;
	memcpy(more + t->n_tail, data.p, data.n);
	t->tail = more;
	t->n_tail += data.n;
	/* The budget may become negative: the bytes exist already, and have no other place. */
	atomic_fetch_sub_explicit(t->budget, (int64_t)data.n, memory_order_relaxed);
	note_bytes(t->meter, (int64_t)data.n);
	refill_locked(t); /* the ring may have been emptied in the meantime */
}

bool transfer_finished(struct transfer *t, int status)
{
	pthread_mutex_lock(&t->lock);
	bool begun = t->out_state == TRANSFER_BEGUN;
	bool whole = !t->tail_lost && (t->bodiless || t->length < 0 || t->written == t->length);
	if (begun)
		t->out_state = status == WEIR_OK && whole ? TRANSFER_DONE : TRANSFER_ABORTED;
	pthread_mutex_unlock(&t->lock);
	return begun;
}

int transfer_torn_status(struct transfer *t, const char **limit)
{
	pthread_mutex_lock(&t->lock);
	*limit = t->in_limit;
	int status = t->in_state == TRANSFER_TORN ? t->in_status : 0;
	pthread_mutex_unlock(&t->lock);
	return status;
}
