/* SPDX-License-Identifier: MIT */
/*
 * A thread of the generator, with its event loop and its requests. The life of a request:
 *
 *   due -> on a connection -> answered -> finished
 *    ^  '-> waiting (no connection is free) -> on a connection
 *    '---- later (heap) <---- attempt failed and may be retried
 *
 * A worker may be used only by its own thread, except for `tally`; tally.h describes which parts of
 * `tally` are shared.
 */
#ifndef WEIR_LOAD_WORKER_H
#define WEIR_LOAD_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <weir/clock.h>

#include "framework/io/timer.h"
#include "load/conn.h"
#include "load/plan.h"
#include "load/schedule.h"
#include "load/tally.h"
#include "load/tickets.h"

/** Maximum number of bytes per read. 64 KiB is a guess: the default receive buffer of a loopback
 * socket. */
#define WORKER_BUFFER_BYTES (64 * 1024)

/** State shared by all workers of a run. */
struct run_shared {
	const struct load_plan *plan;
	struct sockaddr_storage address;
	socklen_t n_address;
	struct tls_context *tls;  /* NULL without TLS */
	int64_t start_ns, end_ns; /* start and end of the run (CLOCK_MONOTONIC), set before `go` */
	int64_t phase_end_ns[LOAD_PHASES_MAX];
	atomic_bool *stop; /* from load_hooks; may be NULL */
	atomic_bool abort; /* memory ran out, so all workers must stop */
	pthread_mutex_t gate_lock;
	pthread_cond_t gate;
	int go WEIR_GUARDED_BY(gate_lock); /* 0 while threads wait, 1 to run, -1 to cancel */
	struct tally_exchange exchange;
};

struct worker {
	struct run_shared *run;
	const struct load_plan *plan; /* run->plan */
	int rank, epoll_fd;
	pthread_t thread;
	int64_t now_ns;     /* last reading of the clock, which may be several requests old */
	bool stopping;      /* nothing more may be sent */
	int64_t stopped_ns; /* the time at which this worker noticed the end of the run */
	bool realtime;      /* the thread has real-time priority; set before the run begins */
	int64_t rested_ns;  /* time until which it has rested enough (worker_rest) */
	double cpu_user_s, cpu_system_s;

	/* ---- pending requests ---- */
	struct load_schedule *schedule;
	struct load_arrival arrival; /* the next arrival of this worker */
	bool has_arrival;
	struct ticket_heap later;
	struct ticket_queue waiting;
	/* ---- closed loop ---- */
	int idle_users;
	uint64_t closed_sent;
	uint32_t in_order[LOAD_CLASSES_MAX]; /* index of the next request of replayed classes */
	int phase;                           /* current phase */

	/* ---- connections ---- */
	int n_conns, depth; /* number of slots; maximum number of requests in flight on each */
	struct conn *conn;
	struct flight *flights;
	struct conn *list[CONN_N_LISTS];
	struct conn *kicked;
	int n_open, n_connecting;
	uint64_t n_opened;
	int connect_fails; /* consecutive failures */
	int64_t connect_after_ns;
	struct timer_wheel deadlines, paces;
	char *buffer; /* [WORKER_BUFFER_BYTES], scratch space for one call at a time */

	struct tally tally;
};

/** Return the request of a ticket. */
static inline const struct load_request *worker_request(
    const struct worker *w, const struct ticket *t)
{
	return &w->plan->class[t->class_id].request[t->request];
}

/** Initialise worker `rank` of a run. Returns 0, WEIR_ENOMEM or WEIR_ESYS; call worker_fini in all
 * cases. */
int worker_init(struct worker *w, struct run_shared *run, int rank);
void worker_fini(struct worker *w);

/** Main function of a worker's thread. `arg` is the worker. */
void *worker_main(void *arg);

/** Call conn_work for all connections that were passed to conn_kick. */
void worker_work_kicked(struct worker *w);

/* ---- the life of a request (worker_tickets.c) ---- */

/** Return the phase at a time, searching from `phase` on. */
int worker_phase_at(const struct worker *w, int phase, int64_t at_ns);

/** Return the index of a request of the ticket's class: the next one of a log, or one by its share. */
uint32_t worker_pick_request(struct worker *w, struct ticket *t);

/* ---- users (worker_users.c) ---- */

/** Schedule the next request of a session after a pause. */
void worker_next_of_session(struct worker *w, struct ticket *t);

/** Schedule the next request of a user equivalent, whose request was `good`: for the next file of its
 * page, or for another page after a pause if it has all files or the request has failed. */
void worker_next_page(struct worker *w, struct ticket *t, bool good);

/** Schedule the first requests of this worker's user equivalents. Each n-th user is one of this
 * worker, of n workers. run->start_ns must be set. */
void worker_start_users(struct worker *w);

/** Advance to this worker's next arrival. Each of n workers takes every n-th arrival of the
 * schedule. */
void worker_next_arrival(struct worker *w);

/** Send at most one batch of the requests that are due. Returns true if more are due. */
bool worker_send_due(struct worker *w);

/** Assign waiting requests to connections while connections are available. */
void worker_serve_waiting(struct worker *w);

/** Handle the complete response to an attempt. */
void worker_answered(struct worker *w, struct ticket *t, const struct reply *reply);

/** Handle the failure of an attempt. */
void worker_failed(struct worker *w, struct ticket *t, enum load_error error);

/** Handle the time-out of an attempt. */
void worker_timed_out(struct worker *w, struct ticket *t);

/** Continue the attempt on another connection (conn.h, "Sent twice"). If `last` is set, a further
 * unexpected close makes the attempt fail. */
void worker_resend(struct worker *w, struct ticket *t, bool last);

/** End a request as GONE: the run is over, but the response has not arrived. */
void worker_gone(struct worker *w, const struct ticket *t);

/** Record that a connection was established, or that connecting failed and the connection is
 * already closed. While connecting fails, the worker pauses between attempts (CONNECT_PAUSE_*). */
void worker_connected(struct worker *w);
void worker_connect_failed(struct worker *w, enum load_error error);

/** End waiting requests as timed out that have waited for a connection half of the time-out. A
 * later answer to them would come too late, and a server in overload would be busy with nothing
 * else: each free connection would get the request that is closest to its time-out. */
void worker_expire_waiting(struct worker *w);

/** Return the next time at which a request must be sent (worker_next_send_ns), or at which a
 * waiting request times out or a pause between connection attempts ends (worker_next_waiting_ns).
 * Both return INT64_MAX if there is no such time. */
int64_t worker_next_send_ns(const struct worker *w);
int64_t worker_next_waiting_ns(const struct worker *w);

/** End all remaining requests as GONE. */
void worker_abandon(struct worker *w);

#endif
