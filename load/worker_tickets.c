/* SPDX-License-Identifier: MIT */
/* Handles a request from its intended time to its outcome; see worker.h.
 *
 * A connection calls one function here for each finished attempt. These functions never send a
 * request themselves, so there is no recursion. They put follow-up requests and retries into the
 * queue or the heap, and the event loop sends them from there. Runs in the worker's thread only. */
#include <math.h>
#include <string.h>

#include "load/rng.h"
#include "load/worker.h"

/* Maximum number of requests that are sent before the loop handles responses again. 32 is a guess:
 * sending them takes about 0.1 ms. */
#define SEND_BATCH 32

/* A request waits for a connection for at most the time-out divided by this. A guess: the rest is
 * left to the server. */
#define WAIT_SHARE 2

/* Pauses between connection attempts while all attempts fail. The first pause is doubled after each
 * failure, up to the longest. Both are guesses: a server that accepts connections again is noticed
 * within a tenth of a second. */
#define CONNECT_PAUSE_FIRST_NS   1000000
#define CONNECT_PAUSE_LONGEST_NS 100000000

/* ---- finishing ---- */

int worker_phase_at(const struct worker *w, int phase, int64_t at_ns)
{
	while (phase < w->plan->n_phases - 1 && at_ns >= w->run->phase_end_ns[phase])
		phase++;
	return phase;
}

/* Return the first request whose cumulative share is at least `u`. */
static uint32_t request_at(const struct load_class *cls, double u)
{
	int low = 0, high = cls->n_requests - 1;

	while (low < high) {
		int middle = (low + high) / 2;
		if (cls->request[middle].cumulative >= u)
			high = middle;
		else
			low = middle + 1;
	}
	return (uint32_t)low;
}

uint32_t worker_pick_request(struct worker *w, struct ticket *t)
{
	const struct load_class *cls = &w->plan->class[t->class_id];
	uint32_t *next = &w->in_order[t->class_id];

	if (!cls->in_order)
		return request_at(cls, ticket_uniform(t));
	uint32_t picked = *next;
	*next = (*next + (uint32_t)w->plan->threads) % (uint32_t)cls->n_requests;
	return picked;
}

static void end(struct worker *w, struct ticket *t, enum load_outcome outcome)
{
	tally_ended(&w->tally, t, outcome, w->now_ns - t->due_ns);
	if (w->stopping)
		return;
	if (w->plan->users > 0)
		worker_next_page(w, t, outcome == LOAD_OK || outcome == LOAD_DEGRADED);
	else if (w->plan->closed)
		w->idle_users++;
	else if (t->session_left > 0)
		worker_next_of_session(w, t);
}

/* Retry a failed attempt, or finish the request with `outcome`. */
static void end_or_retry(struct worker *w, struct ticket *t, enum load_outcome outcome)
{
	double pause_ns, jitter;

	if (t->attempt >= w->plan->retries || t->attempt == UINT8_MAX || w->stopping) {
		end(w, t, outcome);
		return;
	}
	struct ticket again = *t;
	again.attempt++;
	again.resent = false;
	jitter = 1 + w->plan->jitter * (2 * ticket_uniform(&again) - 1);
	pause_ns = ldexp((double)w->plan->backoff_ns, again.attempt - 1) * jitter;
	if (pause_ns > (double)(w->run->end_ns - w->run->start_ns + w->plan->grace_ns))
		pause_ns = (double)(w->run->end_ns - w->run->start_ns + w->plan->grace_ns);
	again.attempt_ns = w->now_ns + (int64_t)pause_ns;
	if (!ticket_heap_push(&w->later, &again))
		end(w, t, outcome);
}

static bool is_late(const struct worker *w, const struct ticket *t)
{
	return w->now_ns - t->attempt_ns >= w->plan->timeout_ns;
}

/* The status is good; so must be the rest. */
static void end_if_right(struct worker *w, struct ticket *t, const struct reply *reply)
{
	if (reply_as_expected(reply))
		end(w, t, reply->degraded ? LOAD_DEGRADED : LOAD_OK);
	else
		worker_failed(w, t, LOAD_EWRONG);
}

/* A response after the time-out counts as a time-out, even if it is handled before the timer
 * fires. */
void worker_answered(struct worker *w, struct ticket *t, const struct reply *reply)
{
	const uint16_t status = w->plan->class[t->class_id].expect.status;

	if (is_late(w, t)) {
		worker_timed_out(w, t);
	} else if (status != 0 && reply->status == status) {
		end_if_right(w, t, reply);
	} else if (reply->status == 503 || reply->status == 429) {
		end_or_retry(w, t, LOAD_SHED);
	} else if (reply->status >= 400) {
		worker_failed(w, t, LOAD_ESTATUS);
	} else if (status != 0) {
		worker_failed(w, t, LOAD_EWRONG);
	} else {
		end_if_right(w, t, reply);
	}
}

void worker_failed(struct worker *w, struct ticket *t, enum load_error error)
{
	tally_of(&w->tally, t)->error[error]++;
	end_or_retry(w, t, LOAD_ERROR);
}

void worker_timed_out(struct worker *w, struct ticket *t)
{
	end_or_retry(w, t, LOAD_TIMEOUT);
}

void worker_gone(struct worker *w, const struct ticket *t)
{
	struct ticket gone = *t;

	end(w, &gone, LOAD_GONE);
}

/* End a request that could not be queued. It is not retried, since a retry would not help. */
static void unsent(struct worker *w, struct ticket *t)
{
	tally_of(&w->tally, t)->error[LOAD_EUNSENT]++;
	end(w, t, LOAD_ERROR);
}

void worker_resend(struct worker *w, struct ticket *t, bool last)
{
	t->resent |= last;
	if (!ticket_queue_push_front(&w->waiting, t))
		unsent(w, t);
}

/* ---- connections for requests ---- */

void worker_connected(struct worker *w)
{
	w->connect_fails = 0;
}

/* If no connection is open, all waiting requests fail as well, since no connection could serve
 * them. */
void worker_connect_failed(struct worker *w, enum load_error error)
{
	if (w->now_ns >= w->connect_after_ns) {
		int64_t pause_ns = CONNECT_PAUSE_FIRST_NS;
		for (int i = 0; i < w->connect_fails && pause_ns < CONNECT_PAUSE_LONGEST_NS; i++)
			pause_ns *= 2;
		if (pause_ns > CONNECT_PAUSE_LONGEST_NS)
			pause_ns = CONNECT_PAUSE_LONGEST_NS;
		w->connect_after_ns = w->now_ns + pause_ns;
		w->connect_fails++;
	}
	for (size_t n = w->n_open == 0 ? w->waiting.n : 0; n > 0; n--) {
		struct ticket t = ticket_queue_pop(&w->waiting);
		worker_failed(w, &t, error);
	}
}

/* Whether a connection may be opened. After a failure only one attempt is made at a time, after a
 * pause. */
static bool may_connect(const struct worker *w)
{
	if (!w->list[CONN_FREE])
		return false;
	return w->connect_fails == 0 || (w->n_connecting == 0 && w->now_ns >= w->connect_after_ns);
}

/* Assign the request to a connection. Returns false if none is available. A new connection is
 * preferred for a resent request, since idle ones may be stale, too. */
static bool place(struct worker *w, const struct ticket *t)
{
	if (w->list[CONN_IDLE] && !t->resent)
		conn_add(w, w->list[CONN_IDLE], t);
	else if (may_connect(w))
		conn_open_for(w, t);
	else if (w->list[CONN_IDLE])
		conn_add(w, w->list[CONN_IDLE], t);
	else if (w->list[CONN_ROOM])
		conn_add(w, w->list[CONN_ROOM], t);
	else
		return false;
	return true;
}

void worker_serve_waiting(struct worker *w)
{
	while (w->waiting.n > 0) {
		struct ticket t = *ticket_queue_first(&w->waiting);
		if (!w->list[CONN_IDLE] && !w->list[CONN_ROOM] && !may_connect(w))
			return;
		ticket_queue_pop(&w->waiting);
		place(w, &t);
	}
}

/* Return the time at which the first waiting request ends. */
static int64_t waits_until_ns(const struct worker *w)
{
	return ticket_queue_first(&w->waiting)->attempt_ns + w->plan->timeout_ns / WAIT_SHARE;
}

void worker_expire_waiting(struct worker *w)
{
	while (w->waiting.n > 0 && w->now_ns >= waits_until_ns(w)) {
		struct ticket t = ticket_queue_pop(&w->waiting);
		worker_timed_out(w, &t);
	}
}

/* Start a request whose arrival time has come: assign it to a connection, or append it to the queue
 * if no connection is free. A request that is already late counts as timed out. */
static void start(struct worker *w, struct ticket *t)
{
	if (is_late(w, t))
		worker_timed_out(w, t);
	else if ((w->waiting.n > 0 || !place(w, t)) && !ticket_queue_push(&w->waiting, t))
		unsent(w, t);
}

/* ---- sending ---- */

static struct ticket ticket_of(const struct worker *w, const struct load_arrival *a)
{
	int64_t at_ns = w->run->start_ns + a->at_ns;

	return (struct ticket){.due_ns = at_ns,
	    .attempt_ns = at_ns,
	    .random = (uint32_t)a->random,
	    .request = (uint32_t)a->request,
	    .session_left =
		w->plan->session_requests > 1 ? (uint32_t)w->plan->session_requests - 1 : 0,
	    .phase = (uint8_t)a->phase,
	    .class_id = (uint8_t)a->class_id};
}

/* Of n workers, each sends every n-th arrival of the schedule. */
void worker_next_arrival(struct worker *w)
{
	uint64_t n = (uint64_t)w->plan->threads;

	do {
		w->has_arrival = load_schedule_next(w->schedule, &w->arrival);
	} while (w->has_arrival && w->arrival.number % n != (uint64_t)w->rank);
}

static int64_t arrival_ns(const struct worker *w)
{
	return w->has_arrival ? w->run->start_ns + w->arrival.at_ns : INT64_MAX;
}

/* Take the next request that is due, and count it as offered or as a retry. Returns false if none
 * is due. */
static bool take_due(struct worker *w, struct ticket *t)
{
	int64_t later_ns = ticket_heap_next_ns(&w->later), fresh_ns = arrival_ns(w);

	if (fresh_ns <= later_ns && fresh_ns <= w->now_ns) {
		*t = ticket_of(w, &w->arrival);
		worker_next_arrival(w);
	} else if (later_ns <= w->now_ns) {
		*t = ticket_heap_pop(&w->later);
	} else {
		return false;
	}
	if (t->attempt == 0)
		tally_offered(&w->tally, t);
	else
		tally_retried(&w->tally, t);
	return true;
}

/* Record the lag of the requests of a batch. It is measured after the whole batch was sent, so it
 * includes the time that a request waited for other requests of the batch. */
static void stamp(struct worker *w, const struct ticket *sent, int n)
{
	w->now_ns = weir_clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < n; i++)
		if (sent[i].attempt == 0)
			tally_lag(&w->tally, sent[i].phase, w->now_ns - sent[i].due_ns);
}

/* Whether the next request of a closed loop may be sent: a user has no request in flight, and a
 * connection is available. */
static bool closed_due(const struct worker *w)
{
	const struct load_phase *phase = &w->plan->phase[w->phase];

	if (!w->plan->closed || w->idle_users == 0 || w->now_ns >= w->run->end_ns ||
	    w->now_ns < w->run->start_ns || (phase->from_per_s <= 0 && phase->to_per_s <= 0))
		return false;
	return w->list[CONN_IDLE] || w->list[CONN_ROOM] || may_connect(w);
}

static void send_closed(struct worker *w)
{
	uint64_t number = w->closed_sent++ * (uint64_t)w->plan->threads + (uint64_t)w->rank;
	struct ticket t = {.due_ns = w->now_ns,
	    .attempt_ns = w->now_ns,
	    .random = (uint32_t)weir_random_at(rng_key(w->plan->seed, 0), number),
	    .phase = (uint8_t)w->phase};
	double total = 0, at;

	for (int c = 0; c < w->plan->n_classes; c++)
		total += w->plan->class[c].weight;
	at = total * ticket_uniform(&t);
	while (t.class_id < w->plan->n_classes - 1 && at > w->plan->class[t.class_id].weight)
		at -= w->plan->class[t.class_id++].weight;
	t.request = worker_pick_request(w, &t);
	w->idle_users--;
	tally_offered(&w->tally, &t);
	start(w, &t);
}

bool worker_send_due(struct worker *w)
{
	struct ticket sent[SEND_BATCH];
	int n = 0;

	w->phase = worker_phase_at(w, w->phase, w->now_ns);
	if (w->plan->closed && w->plan->users == 0) {
		for (; n < SEND_BATCH && closed_due(w); n++)
			send_closed(w);
		while (take_due(w, &sent[0])) /* retries */
			start(w, &sent[0]);
		return n == SEND_BATCH;
	}
	while (n < SEND_BATCH && take_due(w, &sent[n])) {
		struct ticket t = sent[n++];
		start(w, &t);
	}
	if (n > 0 && w->depth > 1) /* pipelined requests are written here */
		worker_work_kicked(w);
	if (n > 0)
		stamp(w, sent, n);
	return n == SEND_BATCH;
}

int64_t worker_next_send_ns(const struct worker *w)
{
	int64_t later_ns = ticket_heap_next_ns(&w->later), fresh_ns = arrival_ns(w);

	if (closed_due(w))
		fresh_ns = w->now_ns;
	else if (w->plan->closed && w->now_ns < w->run->end_ns) /* a pause may end with its phase */
		fresh_ns = w->run->phase_end_ns[w->phase];
	return later_ns < fresh_ns ? later_ns : fresh_ns;
}

int64_t worker_next_waiting_ns(const struct worker *w)
{
	bool wants = w->waiting.n > 0 || (w->plan->closed && w->idle_users > 0);
	int64_t at_ns = INT64_MAX;

	if (w->waiting.n > 0)
		at_ns = waits_until_ns(w);
	if (wants && w->list[CONN_FREE] && w->connect_fails > 0 && w->n_connecting == 0 &&
	    w->connect_after_ns < at_ns)
		at_ns = w->connect_after_ns;
	return at_ns;
}

/* Count a request that was due but not sent, since the worker had no time. It counts as offered,
 * and its lag is recorded. */
static void overdue(struct worker *w, const struct ticket *t)
{
	tally_offered(&w->tally, t);
	tally_lag(&w->tally, t->phase, w->now_ns - t->due_ns);
}

void worker_abandon(struct worker *w)
{
	struct ticket t;

	w->stopping = true;
	for (int i = 0; i < w->n_conns; i++)
		conn_abandon(w, &w->conn[i]);
	while (w->waiting.n > 0) {
		t = ticket_queue_pop(&w->waiting);
		worker_gone(w, &t);
	}
	/* requests of users who are still thinking do not count as offered */
	while (w->later.n > 0) {
		t = ticket_heap_pop(&w->later);
		if (t.attempt == 0 && t.due_ns > w->now_ns)
			continue;
		if (t.attempt == 0)
			overdue(w, &t);
		worker_gone(w, &t);
	}
	for (; w->has_arrival && arrival_ns(w) <= w->now_ns; worker_next_arrival(w)) {
		t = ticket_of(w, &w->arrival);
		overdue(w, &t);
		worker_gone(w, &t);
	}
}
