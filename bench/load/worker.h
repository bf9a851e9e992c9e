/* SPDX-License-Identifier: MIT */
/*
 * A thread of the generator: its loop, and the life of a request in it.
 *
 *   due -> on a connection -> answered -> ended
 *   due -> waiting -> on a connection ...
 *   ... -> attempt failed -> later (heap) -> due again, as the same request
 *
 * Everything in a worker belongs to its thread but `tally`, which says what it shares.
 */
#ifndef WEIR_LOAD_WORKER_H
#define WEIR_LOAD_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>

#include "load/conn.h"
#include "load/plan.h"
#include "load/schedule.h"
#include "load/tally.h"
#include "load/tickets.h"
#include "load/wheel.h"

/** Bytes read at once. Guess: what a loopback socket takes by default. */
#define WORKER_BUFFER_BYTES (64 * 1024)

/** What all workers of a run have in common. */
struct run_shared {
	const struct load_plan *plan;
	struct sockaddr_storage address;
	socklen_t n_address;
	struct tls_context *tls;  /* NULL: plain */
	int64_t start_ns, end_ns; /* of the phases, CLOCK_MONOTONIC; set before `go` */
	int64_t phase_end_ns[LOAD_PHASES_MAX];
	atomic_bool *stop; /* NULL: never */
	atomic_bool abort; /* a worker cannot go on */
	pthread_mutex_t gate_lock;
	pthread_cond_t gate;
	int go WEIR_GUARDED_BY(gate_lock); /* 0 wait, 1 run, -1 there is no run */
	struct tally_exchange exchange;
};

struct worker {
	struct run_shared *run;
	const struct load_plan *plan; /* run->plan */
	int rank, epoll_fd;
	pthread_t thread;
	int64_t now_ns;     /* the clock, not older than some requests */
	bool stopping;      /* nothing is sent any more */
	int64_t stopped_ns; /* when the run was over for this worker */
	double cpu_user_s, cpu_system_s;

	/* what is to come */
	struct load_schedule *schedule;
	struct load_arrival arrival; /* the next one of this worker */
	bool has_arrival;
	struct ticket_heap later;
	struct ticket_queue waiting;
	/* closed loop */
	int idle_users;
	uint64_t closed_sent;
	uint32_t in_order[LOAD_CLASSES_MAX]; /* next request of classes that are replayed */
	int phase;                           /* of now */

	/* connections */
	int n_conns, depth; /* slots; requests under way on one */
	struct conn *conn;
	struct flight *flights;
	struct conn *list[CONN_N_LISTS];
	struct conn *kicked;
	int n_open, n_connecting;
	uint64_t n_opened;
	int connect_fails; /* in a row */
	int64_t connect_after_ns;
	struct wheel deadlines, paces;
	char *buffer; /* [WORKER_BUFFER_BYTES], for one call at a time */

	struct tally tally;
};

/** CLOCK_MONOTONIC in ns. */
static inline int64_t worker_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/** The request of a ticket. */
static inline const struct load_request *worker_request(
    const struct worker *w, const struct ticket *t)
{
	return &w->plan->class[t->class_id].request[t->request];
}

/** Worker `rank` of a run. 0, WEIR_ENOMEM or WEIR_ESYS; worker_fini in all cases. */
int worker_init(struct worker *w, struct run_shared *run, int rank);
void worker_fini(struct worker *w);

/** The thread. `arg` is a worker. */
void *worker_main(void *arg);

/** Write and read on connections that were kicked (conn.h). */
void worker_work_kicked(struct worker *w);

/* ---- the life of a request (worker_tickets.c) ---- */

/** Find this worker's next arrival: every n-th of the schedule. */
void worker_next_arrival(struct worker *w);

/** Act on what is due now, a batch at most; true when there is more. */
bool worker_send_due(struct worker *w);

/** Give waiting requests to connections while there are some. */
void worker_serve_waiting(struct worker *w);

/** An attempt brought a whole answer. */
void worker_answered(struct worker *w, struct ticket *t, const struct reply *reply);

/** An attempt failed. */
void worker_failed(struct worker *w, struct ticket *t, enum load_error error);

/** An attempt took too long. */
void worker_timed_out(struct worker *w, struct ticket *t);

/** The attempt goes on with another connection (conn.h, "Sent twice"), for the last time when
 *  `last`. */
void worker_resend(struct worker *w, struct ticket *t, bool last);

/** The run ended first. */
void worker_gone(struct worker *w, const struct ticket *t);

/** A connection could be made, or not (already closed). While none can, tries are few
 *  (CONNECT_PAUSE_*). */
void worker_connected(struct worker *w);
void worker_connect_failed(struct worker *w, enum load_error error);

/** Waiting requests whose time-out came end. */
void worker_expire_waiting(struct worker *w);

/** The next time at which something is to be sent, and at which the queue wants attention;
 *  INT64_MAX: none. */
int64_t worker_next_send_ns(const struct worker *w);
int64_t worker_next_waiting_ns(const struct worker *w);

/** All that has not ended ends as GONE. */
void worker_abandon(struct worker *w);

#endif
